// Gather of pieces of some bytes, NonZero.

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "runtime/kernels/isa.h"
#include "runtime/kernels/kernel.h"

namespace tombolo {
namespace {

struct GatherState final : KernelState {
  int64_t outer = 1, length = 1, piece = 1;  ///< piece: bytes that stay together
  Dims output;
};

/// Pieces of at least 16 bytes; smaller ones the reference picks from tables.
bool plan_gather(const KernelQuery& q, GatherState& s) {
  if (active_isa() == Isa::kScalar || q.inputs.size() != 2 || bytes_of(q.dtype(0)) == 0 ||
      (q.dtype(1) != DType::kInt64 && q.dtype(1) != DType::kInt32) ||
      element_count(q.dims(0)) < 1 || element_count(q.dims(1)) < 1)
    return false;
  const auto rank = static_cast<int64_t>(q.dims(0).size());
  int64_t axis = q.attributes.get_int("axis", 0);
  if (axis < 0) axis += rank;
  if (axis < 0 || axis >= rank) return false;
  const auto at = static_cast<size_t>(axis);
  s.outer = element_count(q.dims(0).first(at));
  s.length = q.dims(0)[at];
  s.piece = element_count(q.dims(0).subspan(at + 1)) * static_cast<int64_t>(bytes_of(q.dtype(0)));
  for (size_t j = 0; j < at; ++j) s.output.push_back(q.dims(0)[j]);
  for (const int64_t dim : q.dims(1)) s.output.push_back(dim);
  for (size_t j = at + 1; j < q.dims(0).size(); ++j) s.output.push_back(q.dims(0)[j]);
  return s.piece >= 16;
}
bool supports_gather(const KernelQuery& q) {
  GatherState state;
  return plan_gather(q, state);
}
Result<std::unique_ptr<KernelState>> prepare_gather(const PrepareContext& q) {
  auto state = std::make_unique<GatherState>();
  plan_gather(q, *state);
  return state;
}

template <size_t kFixed>
void copy_pieces(const std::byte* from, const int64_t* places, int64_t count, size_t size, bool far,
                 std::byte* to) {
  const size_t bytes = kFixed != 0 ? kFixed : size;
  constexpr int64_t kAhead = 4;  // places are anywhere: nothing but the list says what comes next
  for (int64_t i = 0; i < count; ++i, to += bytes) {
    if (far && i + kAhead < count) {
      const std::byte* next = from + places[i + kAhead] * static_cast<int64_t>(bytes);
      for (size_t line = 0; line < bytes && line < 512; line += 64) __builtin_prefetch(next + line);
    }
    std::memcpy(to, from + places[i] * static_cast<int64_t>(bytes), bytes);
  }
}

Status run_gather(KernelRun& run) {
  const auto& s = run.state<GatherState>();
  const Tensor &data = run.input(0), &indices = run.input(1);
  const int64_t count = indices.size();
  std::vector<int64_t> places(static_cast<size_t>(count));
  bool inside = true;
  const auto read = [&]<typename T>(const T* index) {
    for (int64_t i = 0; i < count; ++i) {
      const int64_t given = index[i], place = given < 0 ? given + s.length : given;
      inside &= static_cast<uint64_t>(place) < static_cast<uint64_t>(s.length);
      places[static_cast<size_t>(i)] = place;
    }
  };
  indices.dtype() == DType::kInt64 ? read(indices.data<int64_t>()) : read(indices.data<int32_t>());
  if (!inside)
    for (int64_t i = 0; i < count; ++i)
      if (const int64_t given = indices.get_int64(i); given < -s.length || given >= s.length)
        return runtime_error("index " + std::to_string(given) + " is out of range for an axis of " +
                             std::to_string(s.length) + " elements");
  TRY(Tensor * y, run.output(0, data.dtype(), s.output));
  const std::byte* from = data.data<std::byte>();
  std::byte* to = y->data<std::byte>();
  // Parts of the list of indices, for each outer part.
  const int64_t part = std::max<int64_t>(1, (1 << 16) / s.piece), parts = (count + part - 1) / part;
  const auto size = static_cast<size_t>(s.piece);
  const bool far = s.length * s.piece > 1 << 22;  // beyond the second cache
  run.parallel_for(s.outer * parts, 1, [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const int64_t outer = task / parts, first = task % parts * part;
      const int64_t some = std::min(part, count - first);
      const std::byte* source = from + outer * s.length * s.piece;
      std::byte* target = to + (outer * count + first) * s.piece;
      const int64_t* list = places.data() + first;
      switch (size) {
        case 16:
          copy_pieces<16>(source, list, some, size, far, target);
          break;
        case 32:
          copy_pieces<32>(source, list, some, size, far, target);
          break;
        case 64:
          copy_pieces<64>(source, list, some, size, far, target);
          break;
        case 128:
          copy_pieces<128>(source, list, some, size, far, target);
          break;
        case 256:
          copy_pieces<256>(source, list, some, size, far, target);
          break;
        default:
          copy_pieces<0>(source, list, some, size, far, target);
      }
    }
  });
  return ok();
}

// NonZero.

bool supports_non_zero(const KernelQuery& q) {
  if (active_isa() == Isa::kScalar || q.inputs.size() != 1 || q.dims(0).empty() ||
      element_count(q.dims(0)) < 1 || q.dims(0).back() > INT32_MAX)
    return false;
  switch (q.dtype(0)) {
    case DType::kBool:
    case DType::kUInt8:
    case DType::kInt8:
    case DType::kInt32:
    case DType::kInt64:
    case DType::kFloat32:
      return true;
    default:
      return false;
  }
}

template <typename T>
Status non_zero(KernelRun& run) {
  const Tensor& x = run.input(0);
  const T* from = reinterpret_cast<const T*>(x.data<std::byte>());
  const size_t rank = x.rank();
  const int64_t width = x.dim(rank - 1), rows = x.size() / width;
  // How many there are before each row.
  std::vector<int64_t> before(static_cast<size_t>(rows) + 1);
  run.parallel_for(rows, std::max<int64_t>(1, (1 << 14) / width), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      int64_t count = 0;
      for (int64_t i = 0; i < width; ++i) count += from[row * width + i] != T{0};
      before[static_cast<size_t>(row) + 1] = count;
    }
  });
  for (size_t row = 0; row < static_cast<size_t>(rows); ++row) before[row + 1] += before[row];
  const int64_t total = before.back();
  const int64_t dims[] = {static_cast<int64_t>(rank), total};
  TRY(Tensor * y, run.output(0, DType::kInt64, dims));
  int64_t* to = y->data<int64_t>();
  run.parallel_for(rows, std::max<int64_t>(1, (1 << 14) / width), [&](int64_t begin, int64_t end) {
    // One more than there can be: each place is written, whether it is kept or not.
    std::vector<int64_t> places(static_cast<size_t>(width) + 1);
    for (int64_t row = begin; row < end; ++row) {
      size_t count = 0;
      for (int64_t i = 0; i < width; ++i) {
        places[count] = i;
        count += from[row * width + i] != T{0};
      }
      int64_t* out = to + before[static_cast<size_t>(row)];
      std::copy_n(places.data(), count, out + static_cast<int64_t>(rank - 1) * total);
      int64_t rest = row;
      for (size_t j = rank - 1; j-- > 0; rest /= x.dim(j))
        std::fill_n(out + static_cast<int64_t>(j) * total, count, rest % x.dim(j));
    }
  });
  return ok();
}

Status run_non_zero(KernelRun& run) {
  switch (run.input(0).dtype()) {
    case DType::kInt32:
      return non_zero<int32_t>(run);
    case DType::kInt64:
      return non_zero<int64_t>(run);
    case DType::kFloat32:
      return non_zero<float>(run);
    default:
      return non_zero<uint8_t>(run);
  }
}

}  // namespace

KERNEL(gather_pieces) = {
    .name = "gather",
    .op = "Gather",
    .supports = supports_gather,
    .prepare = prepare_gather,
    .run = run_gather,
    .priority = -1,
};
KERNEL(non_zero) = {
    .name = "non_zero",
    .op = "NonZero",
    .supports = supports_non_zero,
    .run = run_non_zero,
};

}  // namespace tombolo
