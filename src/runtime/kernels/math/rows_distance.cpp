// CDist of com.microsoft: distances of the rows of two matrices, as products of matrices go: the
// second one in panels.

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "runtime/kernels/isa.h"
#include "runtime/kernels/kernel.h"
#include "runtime/kernels/math/distance.h"
#include "runtime/kernels/matmul/gemm.h"
#include "runtime/kernels/ml/ml_rows.h"
#include "runtime/kernels/tensor/transpose_tile.h"

namespace tombolo {
namespace {

struct DistanceState final : KernelState {
  bool root = false;
  const float* packed = nullptr;  ///< null: packed in every run
};

bool supports_distance(const KernelQuery& q) {
  if (active_isa() == Isa::kScalar || q.inputs.size() != 2) return false;
  for (size_t i = 0; i < 2; ++i)
    if (q.dtype(i) != DType::kFloat32 || q.dims(i).size() != 2 || element_count(q.dims(i)) < 1)
      return false;
  const Text metric = q.attributes.get_string("metric", "sqeuclidean");
  // Long sums of floats lose more than those of the reference, in double.
  return q.dims(0)[1] == q.dims(1)[1] && q.dims(0)[1] <= 1 << 14 &&
         (metric == "sqeuclidean" || metric == "euclidean");
}

Result<std::unique_ptr<KernelState>> prepare_distance(const PrepareContext& q) {
  auto state = std::make_unique<DistanceState>();
  state->root = q.attributes.get_string("metric", "sqeuclidean") == "euclidean";
  const int64_t columns = q.dims(1)[0], width = q.dims(1)[1];
  const size_t bytes = static_cast<size_t>(packed_b_floats(width, columns)) * sizeof(float);
  if (q.constant(1) == nullptr) {
    state->scratch_bytes = bytes;
    return state;
  }
  Tensor room;
  auto fill = [&](std::byte* target) {
    pack_b(q.aligned_constant(1, room).data<float>(), 1, width, width, columns, 1,
           reinterpret_cast<float*>(target));
  };
  TRY(const std::byte* packed,
      q.packed(1, "distance/" + std::string(name_of(active_isa())), bytes, fill));
  state->packed = reinterpret_cast<const float*>(packed);
  return state;
}

Status run_distance(KernelRun& run) {
  const auto& s = run.state<DistanceState>();
  const Tensor &a = run.input(0), &b = run.input(1);
  const int64_t rows = a.dim(0), columns = b.dim(0), width = a.dim(1);
  TRY(Tensor * y, run.output(0, DType::kFloat32, std::array{rows, columns}));
  const float* packed = s.packed;
  if (packed == nullptr) {
    auto* room = reinterpret_cast<float*>(run.scratch());
    pack_b(b.data<float>(), 1, width, width, columns, 1, room);
    packed = room;
  }
  const int64_t wide = gemm_tiles().panel(), panels = (columns + wide - 1) / wide;
  constexpr int64_t kRows = 64;
  const int64_t stretches = (rows + kRows - 1) / kRows;
  run.parallel_for(panels * stretches,
                   std::max<int64_t>(1, (1 << 15) / (wide * width * std::min(kRows, rows))),
                   [&](int64_t begin, int64_t end) {
                     for (int64_t task = begin; task < end; ++task) {
                       const int64_t p = task % panels, first = task / panels * kRows;
                       distance_rows({.a = a.data<float>() + first * width,
                                      .panel = packed + p * wide * width,
                                      .width = width,
                                      .panel_width = wide,
                                      .root = s.root,
                                      .y = y->data<float>() + first * columns + p * wide,
                                      .ldy = columns,
                                      .cols = std::min(wide, columns - p * wide)},
                                     std::min(kRows, rows - first));
                     }
                   });
  return ok();
}

// Doubles, all of whose sums are squares of differences.

struct WideState final : KernelState {
  bool root = false;
  int64_t padded = 0;
  std::vector<double> vectors;  ///< constant B as [feature][padded]
};

bool supports_wide(const KernelQuery& q) {
  if (active_isa() == Isa::kScalar || q.inputs.size() != 2) return false;
  for (size_t i = 0; i < 2; ++i)
    if (q.dtype(i) != DType::kFloat64 || q.dims(i).size() != 2 || element_count(q.dims(i)) < 1)
      return false;
  const Text metric = q.attributes.get_string("metric", "sqeuclidean");
  return q.dims(0)[1] == q.dims(1)[1] && (metric == "sqeuclidean" || metric == "euclidean");
}

void lay_out(const Tensor& b, int64_t padded, double* to) {
  const int64_t count = b.dim(0), width = b.dim(1);
  transpose_tile(b.data<std::byte>(), width, reinterpret_cast<std::byte*>(to), padded, count, width,
                 sizeof(double));
  for (int64_t i = 0; i < width; ++i)
    std::fill(to + i * padded + count, to + (i + 1) * padded, 0.0);
}

Result<std::unique_ptr<KernelState>> prepare_wide(const PrepareContext& q) {
  auto state = std::make_unique<WideState>();
  state->root = q.attributes.get_string("metric", "sqeuclidean") == "euclidean";
  state->padded = (q.dims(1)[0] + kSvmStep - 1) / kSvmStep * kSvmStep;
  const auto size = static_cast<size_t>(state->padded * q.dims(1)[1]);
  if (q.constant(1) == nullptr) {
    state->scratch_bytes = size * sizeof(double);
    return state;
  }
  Tensor room;
  state->vectors.resize(size);
  lay_out(q.aligned_constant(1, room), state->padded, state->vectors.data());
  return state;
}

Status run_wide(KernelRun& run) {
  const auto& s = run.state<WideState>();
  const Tensor &a = run.input(0), &b = run.input(1);
  const int64_t rows = a.dim(0), columns = b.dim(0), width = a.dim(1);
  TRY(Tensor * y, run.output(0, DType::kFloat64, std::array{rows, columns}));
  const double* vectors = s.vectors.data();
  if (s.vectors.empty()) {
    auto* room = reinterpret_cast<double*>(run.scratch());
    lay_out(b, s.padded, room);
    vectors = room;
  }
  constexpr int64_t kRows = 4;
  run.parallel_for(
      (rows + kRows - 1) / kRows, std::max<int64_t>(1, (1 << 15) / (kRows * s.padded * width)),
      [&](int64_t begin, int64_t end) {
        std::vector<double> block(static_cast<size_t>(kRows * s.padded));
        for (int64_t row = begin * kRows; row < std::min(rows, end * kRows); row += kRows) {
          const int64_t some = std::min(kRows, rows - row);
          squared_distances(a.data<double>() + row * width, some, vectors, width, s.padded, s.root,
                            block.data());
          for (int64_t r = 0; r < some; ++r)
            std::copy_n(block.data() + r * s.padded, columns,
                        y->data<double>() + (row + r) * columns);
        }
      });
  return ok();
}

}  // namespace

KERNEL(distance_f64) = {
    .name = "distance_f64",
    .op = "CDist",
    .domain = "com.microsoft",
    .supports = supports_wide,
    .prepare = prepare_wide,
    .run = run_wide,
};
KERNEL(cdist) = {
    .name = "cdist",
    .op = "CDist",
    .domain = "com.microsoft",
    .supports = supports_distance,
    .prepare = prepare_distance,
    .run = run_distance,
};

}  // namespace tombolo
