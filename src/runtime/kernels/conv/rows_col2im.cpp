// Col2Im: blocks are added row by row into their image.

#include <algorithm>
#include <cstring>
#include <vector>

#include "runtime/kernels/conv/add_runs.h"
#include "runtime/kernels/isa.h"
#include "runtime/kernels/kernel.h"

namespace tombolo {
namespace {

struct FoldState final : KernelState {
  Dims output;
  std::vector<AddRun> runs;                  ///< what one row of one tap adds
  int64_t maps = 0, plane = 0, columns = 0;  ///< of one map: elements in the image, in the columns
  int64_t stride = 1;                        ///< of the last axis
};

bool constant_ints(const KernelQuery& q, size_t index, Dims& values) {
  const Tensor* tensor = q.constant(index);
  if (tensor == nullptr || tensor->dtype() != DType::kInt64 || tensor->rank() != 1) return false;
  for (int64_t i = 0; i < tensor->size(); ++i) values.push_back(tensor->get_int64(i));
  return true;
}

bool plan_fold(const KernelQuery& q, FoldState* s) {
  if (active_isa() == Isa::kScalar || q.inputs.size() != 3) return false;
  switch (q.dtype(0)) {
    case DType::kFloat32:
    case DType::kFloat64:
    case DType::kInt32:
    case DType::kInt64:
      break;
    default:
      return false;
  }
  Dims image, block;
  if (!constant_ints(q, 1, image) || !constant_ints(q, 2, block)) return false;
  const size_t rank = image.size();
  const auto x = q.dims(0);
  if (rank < 1 || block.size() != rank || x.size() != 3 || element_count(x) < 1) return false;
  const auto list = [&](const char* name, size_t count, int64_t fallback, Dims& values) {
    const auto given = q.attributes.get_ints(name);
    if (!given.empty() && given.size() != count) return false;
    for (size_t j = 0; j < count; ++j) values.push_back(given.empty() ? fallback : given[j]);
    return true;
  };
  Dims dilations, strides, pads, blocks;
  if (!list("dilations", rank, 1, dilations) || !list("strides", rank, 1, strides) ||
      !list("pads", 2 * rank, 0, pads))
    return false;
  constexpr int64_t kMost = 1 << 24;
  for (size_t j = 0; j < rank; ++j) {
    if (image[j] < 1 || image[j] > kMost || block[j] < 1 || block[j] > kMost || dilations[j] < 1 ||
        dilations[j] > kMost || strides[j] < 1 || strides[j] > kMost || pads[j] < 0 ||
        pads[j] > kMost || pads[rank + j] < 0 || pads[rank + j] > kMost)
      return false;
    const int64_t room = image[j] + pads[j] + pads[rank + j] - dilations[j] * (block[j] - 1) - 1;
    if (room < 0) return false;
    blocks.push_back(room / strides[j] + 1);
  }
  const int64_t taps = element_count(block), places = element_count(blocks);
  if (taps < 1 || x[1] % taps != 0 || x[2] != places || element_count(image) < 1) return false;
  const int64_t width = blocks.back();
  if (taps * (places / width) > 1 << 20) return false;
  if (s == nullptr) return true;
  s->output = {x[0], x[1] / taps};
  for (const int64_t dim : image) s->output.push_back(dim);
  s->maps = x[0] * (x[1] / taps);
  s->plane = element_count(image);
  s->columns = taps * places;
  s->stride = strides.back();
  const size_t last = rank - 1;
  const int64_t rows = places / width;
  // What row `row` of tap `tap` adds: of no elements where it lies outside.
  const auto run_of = [&](int64_t tap, int64_t row) -> AddRun {
    int64_t tap_rest = tap / block[last], rest = row, to = 0, step = image[last];
    for (size_t j = last; j-- > 0; tap_rest /= block[j], rest /= blocks[j]) {
      const int64_t at =
          rest % blocks[j] * strides[j] + tap_rest % block[j] * dilations[j] - pads[j];
      if (at < 0 || at >= image[j]) return {0, 0, 0};
      to += at * step;
      step *= image[j];
    }
    // Blocks whose tap lies inside the row.
    const int64_t shift = tap % block[last] * dilations[last] - pads[last], by = strides[last];
    const int64_t first = shift >= 0 ? 0 : (-shift + by - 1) / by;
    const int64_t end =
        std::min(width, shift >= image[last] ? 0 : (image[last] - 1 - shift) / by + 1);
    return {(tap * rows + row) * width + first, to + shift + first * by,
            std::max<int64_t>(0, end - first)};
  };
  for (int64_t tap = 0; tap < taps; ++tap) {
    // Neighbours two apart go between each other, which is one way through the row.
    const bool pairs = strides[last] == 2 && dilations[last] == 1 && tap % block[last] % 2 == 0 &&
                       tap % block[last] + 1 < block[last];
    for (int64_t row = 0; row < rows; ++row) {
      AddRun run = run_of(tap, row);
      const AddRun next = pairs ? run_of(tap + 1, row) : AddRun{0, 0, 0};
      if (next.count > 0 && next.count == run.count && next.to == run.to + 1)
        run.between = next.from;
      if (run.count > 0) s->runs.push_back(run);
      if (next.count > 0 && run.between < 0) s->runs.push_back(next);
    }
    if (pairs) ++tap;
  }
  return true;
}
bool supports_fold(const KernelQuery& q) { return plan_fold(q, nullptr); }
Result<std::unique_ptr<KernelState>> prepare_fold(const PrepareContext& q) {
  auto state = std::make_unique<FoldState>();
  plan_fold(q, state.get());
  return state;
}

template <typename T>
void fold_all(const KernelRun& run, Tensor& y) {
  const auto& s = run.state<FoldState>();
  const T* from = reinterpret_cast<const T*>(run.data<std::byte>(0));
  T* to = reinterpret_cast<T*>(y.data<std::byte>());
  run.parallel_for(s.maps, std::max<int64_t>(1, (1 << 14) / s.columns),
                   [&](int64_t begin, int64_t end) {
                     for (int64_t map = begin; map < end; ++map) {
                       std::memset(to + map * s.plane, 0, static_cast<size_t>(s.plane) * sizeof(T));
                       add_runs<T>(s.runs, s.stride, from + map * s.columns, to + map * s.plane);
                     }
                   });
}

Status run_fold(KernelRun& run) {
  const DType dtype = run.input(0).dtype();
  TRY(Tensor * y, run.output(0, dtype, run.state<FoldState>().output));
  // Integers wrap: their sums are those of unsigned ones.
  if (dtype == DType::kFloat32)
    fold_all<float>(run, *y);
  else if (dtype == DType::kFloat64)
    fold_all<double>(run, *y);
  else if (dtype == DType::kInt32)
    fold_all<uint32_t>(run, *y);
  else
    fold_all<uint64_t>(run, *y);
  return ok();
}

}  // namespace

KERNEL(col2im) = {
    .name = "col2im",
    .op = "Col2Im",
    .supports = supports_fold,
    .prepare = prepare_fold,
    .run = run_fold,
    .values = 0b110,
};

}  // namespace tombolo
