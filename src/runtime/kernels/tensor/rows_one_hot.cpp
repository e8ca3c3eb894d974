// OneHot: some rows at a time are filled, then the elements among them that are on are set.

#include <algorithm>
#include <cstring>
#include <string>

#include "runtime/kernels/isa.h"
#include "runtime/kernels/kernel.h"

namespace tombolo {
namespace {

struct OneHotState final : KernelState {
  uint32_t axis = 0;
};

bool supports_one_hot(const KernelQuery& q) {
  if (active_isa() == Isa::kScalar || q.inputs.size() != 3 || element_count(q.dims(0)) < 1 ||
      (q.dtype(0) != DType::kInt64 && q.dtype(0) != DType::kInt32) || q.dtype(1) != DType::kInt64 ||
      element_count(q.dims(1)) != 1 || element_count(q.dims(2)) != 2)
    return false;
  const auto rank = static_cast<int64_t>(q.dims(0).size());
  const int64_t axis = q.attributes.get_int("axis", -1), bits = bits_of(q.dtype(2));
  return axis >= -rank - 1 && axis <= rank && bits >= 8 && bits <= 64 && (bits & (bits - 1)) == 0;
}
Result<std::unique_ptr<KernelState>> prepare_one_hot(const PrepareContext& q) {
  auto state = std::make_unique<OneHotState>();
  const int64_t axis = q.attributes.get_int("axis", -1);
  state->axis =
      static_cast<uint32_t>(axis < 0 ? axis + static_cast<int64_t>(q.dims(0).size()) + 1 : axis);
  return state;
}

/// The output as [outer][depth][inner].
struct OneHotShape {
  int64_t outer, depth, inner;
};
/// Rows [begin, end) of outer * depth.
template <typename T, typename I>
void set_rows(const OneHotShape& s, const I* indices, const T* values, int64_t begin, int64_t end,
              T* y) {
  const T off = values[0], on = values[1];
  if (off == 0)
    std::memset(y + begin * s.inner, 0, static_cast<size_t>((end - begin) * s.inner) * sizeof(T));
  else
    std::fill(y + begin * s.inner, y + end * s.inner, off);
  for (int64_t o = begin / s.depth; o * s.depth < end; ++o) {
    const int64_t low = std::max(begin, o * s.depth) - o * s.depth;
    const auto rows = static_cast<uint64_t>(std::min(end, (o + 1) * s.depth) - o * s.depth - low);
    const I* index = indices + o * s.inner;
    T* to = y + (o * s.depth + low) * s.inner;
    for (int64_t i = 0; i < s.inner; ++i) {
      // One outside [-depth, depth) leaves its column off.
      const auto place = static_cast<int64_t>(index[i]);
      const int64_t row = (place < 0 ? place + s.depth : place) - low;
      if (static_cast<uint64_t>(row) < rows) to[row * s.inner + i] = on;
    }
  }
}

/// Elements by their bits.
template <typename T>
void set_all(const KernelRun& run, const OneHotShape& s, T* y) {
  const Tensor& indices = run.input(0);
  const auto* values = reinterpret_cast<const T*>(run.data<std::byte>(2));
  // Each part reads all indices of its rows: not too few of those at a time.
  constexpr int64_t kNear = 65536 / static_cast<int64_t>(sizeof(T)), kRows = 32;
  const int64_t part = std::max(kRows, kNear / s.inner);
  run.parallel_for(s.outer * s.depth, part, [&](int64_t begin, int64_t end) {
    for (; begin < end; begin += part) {
      const int64_t stop = std::min(end, begin + part);
      if (indices.dtype() == DType::kInt64)
        set_rows(s, indices.data<int64_t>(), values, begin, stop, y);
      else
        set_rows(s, indices.data<int32_t>(), values, begin, stop, y);
    }
  });
}

Status run_one_hot(KernelRun& run) {
  const Tensor& indices = run.input(0);
  const DType type = run.input(2).dtype();
  const int64_t depth = run.data<int64_t>(1)[0];
  const uint32_t axis = run.state<OneHotState>().axis;
  if (depth < 0) return runtime_error("depth " + std::to_string(depth) + " is negative");
  Dims dims = indices.dims();
  dims.insert(axis, depth);
  TRY(Tensor * y, run.output(0, type, dims));
  if (y->size() == 0) return ok();
  OneHotShape s{1, depth, 1};
  for (uint32_t j = 0; j < indices.dims().size(); ++j)
    (j < axis ? s.outer : s.inner) *= indices.dim(j);
  auto* to = y->data<std::byte>();
  switch (bits_of(type)) {
    case 8:
      set_all(run, s, reinterpret_cast<uint8_t*>(to));
      break;
    case 16:
      set_all(run, s, reinterpret_cast<uint16_t*>(to));
      break;
    case 32:
      set_all(run, s, reinterpret_cast<uint32_t*>(to));
      break;
    default:
      set_all(run, s, reinterpret_cast<uint64_t*>(to));
  }
  return ok();
}

}  // namespace

KERNEL(one_hot) = {
    .name = "one_hot",
    .op = "OneHot",
    .supports = supports_one_hot,
    .prepare = prepare_one_hot,
    .run = run_one_hot,
};

}  // namespace tombolo
