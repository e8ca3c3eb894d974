// CDist of com.microsoft: distances of the rows of two matrices, as products of matrices go: the
// second one in panels.

#include <algorithm>
#include <array>
#include <string>

#include "runtime/kernels/distance.h"
#include "runtime/kernels/gemm.h"
#include "runtime/kernels/isa.h"
#include "runtime/kernels/kernel.h"

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

}  // namespace

KERNEL(cdist) = {
    .name = "cdist",
    .op = "CDist",
    .domain = "com.microsoft",
    .supports = supports_distance,
    .prepare = prepare_distance,
    .run = run_distance,
};

}  // namespace tombolo
