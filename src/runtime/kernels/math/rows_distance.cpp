// CDist of com.microsoft: distances of the rows of two matrices, as products of matrices go: the
// second one in panels. Of many features from products themselves, but for pairs that are near.

#include <algorithm>
#include <array>
#include <string>

#include "runtime/kernels/isa.h"
#include "runtime/kernels/kernel.h"
#include "runtime/kernels/math/distance.h"
#include "runtime/kernels/matmul/gemm.h"
#include "runtime/kernels/matmul/gemm_wide.h"
#include "runtime/kernels/parallel.h"

namespace tombolo {
namespace {

struct DistanceState final : KernelState {
  bool root = false;
  const std::byte* packed = nullptr;  ///< null: packed in every run
  size_t squares_at = 0;              ///< in scratch, of rows, then of columns
};

template <DType kType>
bool supports_distance(const KernelQuery& q) {
  if (active_isa() == Isa::kScalar || q.inputs.size() != 2) return false;
  for (size_t i = 0; i < 2; ++i)
    if (q.dtype(i) != kType || q.dims(i).size() != 2 || element_count(q.dims(i)) < 1) return false;
  const Text metric = q.attributes.get_string("metric", "sqeuclidean");
  // Long sums of floats lose more than those of the reference, in double.
  return q.dims(0)[1] == q.dims(1)[1] && (kType == DType::kFloat64 || q.dims(0)[1] <= 1 << 14) &&
         (metric == "sqeuclidean" || metric == "euclidean");
}

// Panels of both types.
int64_t distance_panel(const float*) { return gemm_tiles().panel(); }
int64_t distance_panel(const double*) { return wide_panel<double>(); }
void pack_distance(const float* b, int64_t width, int64_t columns, float* out) {
  pack_b(b, 1, width, width, columns, 1, out);
}
void pack_distance(const double* b, int64_t width, int64_t columns, double* out) {
  const int64_t panels = (columns + wide_panel<double>() - 1) / wide_panel<double>();
  parallel(panels, grain_of(width * wide_panel<double>()), [&](int64_t begin, int64_t end) {
    pack_wide(b, 1, width, width, columns, begin, end, out);
  });
}

// Products of rows with a panel.
void distance_products(int64_t rows, int64_t columns, int64_t width, const float* a,
                       const float* panel, float* y, int64_t ldy) {
  gemm(rows, columns, width, a, width, panel, y, ldy, {});
}
void distance_products(int64_t rows, int64_t columns, int64_t width, const double* a,
                       const double* panel, double* y, int64_t ldy) {
  multiply_wide<double>({a, width, panel, y, ldy, columns, width}, 0, rows, 0, 1);
}

/// From so many features on; less is bound by what surrounds the sums.
constexpr int64_t kManyFeatures = 48;

template <typename T>
Result<std::unique_ptr<KernelState>> prepare_distance(const PrepareContext& q) {
  auto state = std::make_unique<DistanceState>();
  state->root = q.attributes.get_string("metric", "sqeuclidean") == "euclidean";
  const int64_t columns = q.dims(1)[0], width = q.dims(1)[1];
  const int64_t wide = distance_panel(static_cast<const T*>(nullptr));
  const size_t bytes = static_cast<size_t>(round_up(columns, wide) * width) * sizeof(T);
  state->scratch_bytes = static_cast<size_t>(q.dims(0)[0] + columns) * sizeof(T) + 64;
  if (q.constant(1) == nullptr) {
    state->squares_at = (bytes + 63) / 64 * 64;
    state->scratch_bytes += state->squares_at;
    return state;
  }
  Tensor room;
  auto fill = [&](std::byte* target) {
    pack_distance(q.aligned_constant(1, room).data<T>(), width, columns,
                  reinterpret_cast<T*>(target));
  };
  TRY(state->packed, q.packed(1, "distance/" + std::string(name_of(active_isa())), bytes, fill));
  return state;
}

template <typename T, DType kType>
Status run_distance(KernelRun& run) {
  const auto& s = run.state<DistanceState>();
  const Tensor &a = run.input(0), &b = run.input(1);
  const int64_t rows = a.dim(0), columns = b.dim(0), width = a.dim(1);
  TRY(Tensor * y, run.output(0, kType, std::array{rows, columns}));
  const auto* packed = reinterpret_cast<const T*>(s.packed);
  if (packed == nullptr) {
    auto* room = reinterpret_cast<T*>(run.scratch());
    pack_distance(b.data<T>(), width, columns, room);
    packed = room;
  }
  // To look at some pairs has to be little beside all of them.
  constexpr int64_t kManyPairs = 1024;
  const bool products = width >= kManyFeatures && rows * columns >= kManyPairs &&
                        !mostly_near(a.data<T>(), rows, b.data<T>(), columns, width);
  auto* const squares = reinterpret_cast<T*>(run.scratch() + s.squares_at);
  for (int side = 0; products && side < 2; ++side) {
    const T* x = side == 0 ? a.data<T>() : b.data<T>();
    T* const to = squares + (side == 0 ? 0 : rows);
    run.parallel_for(side == 0 ? rows : columns, grain_of(width), [&](int64_t begin, int64_t end) {
      sums_of_squares(x + begin * width, end - begin, width, to + begin);
    });
  }
  const int64_t wide = distance_panel(packed), panels = (columns + wide - 1) / wide;
  constexpr int64_t kRows = 240;  // whole tiles of every instruction set
  const int64_t stretches = (rows + kRows - 1) / kRows;
  run.parallel_for(
      panels * stretches, std::max<int64_t>(1, (1 << 15) / (wide * width * std::min(kRows, rows))),
      [&](int64_t begin, int64_t end) {
        for (int64_t task = begin; task < end; ++task) {
          const int64_t p = task % panels, first = task / panels * kRows;
          const int64_t some = std::min(kRows, rows - first);
          const int64_t cols = std::min(wide, columns - p * wide);
          const T* const own = a.data<T>() + first * width;
          T* const to = y->data<T>() + first * columns + p * wide;
          if (products) {
            distance_products(some, cols, width, own, packed + p * wide * width, to, columns);
            distances_of_products<T>({.a = own,
                                      .b = b.data<T>() + p * wide * width,
                                      .squares_a = squares + first,
                                      .squares_b = squares + rows + p * wide,
                                      .width = width,
                                      .root = s.root,
                                      .y = to,
                                      .ldy = columns,
                                      .rows = some,
                                      .cols = cols});
            continue;
          }
          distance_rows<T>({.a = own,
                            .panel = packed + p * wide * width,
                            .width = width,
                            .panel_width = wide,
                            .root = s.root,
                            .y = to,
                            .ldy = columns,
                            .cols = cols},
                           some);
        }
      });
  return ok();
}

}  // namespace

KERNEL(distance_f64) = {
    .name = "distance_f64",
    .op = "CDist",
    .domain = "com.microsoft",
    .supports = supports_distance<DType::kFloat64>,
    .prepare = prepare_distance<double>,
    .run = run_distance<double, DType::kFloat64>,
};
KERNEL(cdist) = {
    .name = "cdist",
    .op = "CDist",
    .domain = "com.microsoft",
    .supports = supports_distance<DType::kFloat32>,
    .prepare = prepare_distance<float>,
    .run = run_distance<float, DType::kFloat32>,
};

}  // namespace tombolo
