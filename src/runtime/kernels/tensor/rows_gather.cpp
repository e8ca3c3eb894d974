// Gather, GatherND and Compress of pieces of some bytes, NonZero.

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <string>
#include <vector>

#include "ops/kernels/arguments.h"
#include "runtime/kernels/isa.h"
#include "runtime/kernels/kernel.h"
#include "runtime/kernels/tensor/pick_steps.h"

namespace tombolo {
namespace {

struct GatherState final : KernelState {
  int64_t outer = 1, length = 1, piece = 1;  ///< piece: bytes that stay together
  int64_t axis = 0;
  Dims output;
};

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
  s.axis = axis;
  s.outer = element_count(q.dims(0).first(at));
  s.length = q.dims(0)[at];
  s.piece = element_count(q.dims(0).subspan(at + 1)) * static_cast<int64_t>(bytes_of(q.dtype(0)));
  for (size_t j = 0; j < at; ++j) s.output.push_back(q.dims(0)[j]);
  for (const int64_t dim : q.dims(1)) s.output.push_back(dim);
  for (size_t j = at + 1; j < q.dims(0).size(); ++j) s.output.push_back(q.dims(0)[j]);
  return true;
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

/// Copies a piece out of each of `count` parts that are `step` bytes apart.
template <size_t kFixed>
void copy_far(const std::byte* from, int64_t step, int64_t count, size_t size, std::byte* to) {
  const size_t bytes = kFixed != 0 ? kFixed : size;
  for (int64_t i = 0; i < count; ++i, from += step, to += bytes) std::memcpy(to, from, bytes);
}

/// One piece of each part: a column, or one of the two numbers of complex ones.
void gather_one(const KernelRun& run, const std::byte* from, int64_t outer, int64_t length,
                int64_t piece, std::byte* to) {
  const auto size = static_cast<size_t>(piece);
  const int64_t step = length * piece;
  const auto places = reinterpret_cast<uintptr_t>(from) | reinterpret_cast<uintptr_t>(to);
  const bool number = size <= 8 && std::has_single_bit(size) && places % size == 0;
  PickStepsFn* const pick = number ? pick_steps_fn(size) : nullptr;
  const auto copy = size == 16   ? copy_far<16>
                    : size == 32 ? copy_far<32>
                    : size == 64 ? copy_far<64>
                                 : copy_far<0>;
  run.parallel_for(outer, std::max<int64_t>(1, (1 << 16) / (piece + 64)),
                   [&](int64_t begin, int64_t end) {
                     const std::byte* source = from + begin * step;
                     std::byte* target = to + begin * piece;
                     if (pick != nullptr)
                       pick(source, length, end - begin, target);
                     else
                       copy(source, step, end - begin, size, target);
                   });
}

auto pieces_copier(size_t size) {
  switch (size) {
    case 1:
      return copy_pieces<1>;
    case 2:
      return copy_pieces<2>;
    case 4:
      return copy_pieces<4>;
    case 8:
      return copy_pieces<8>;
    case 16:
      return copy_pieces<16>;
    case 32:
      return copy_pieces<32>;
    case 64:
      return copy_pieces<64>;
    case 128:
      return copy_pieces<128>;
    case 256:
      return copy_pieces<256>;
    default:
      return copy_pieces<0>;
  }
}

/// Reads places along an axis, also counted from its end; false where one is outside. `runs` is how
/// many follow the one before.
template <typename T>
bool read_places(const T* index, int64_t count, int64_t length, int64_t* places, int64_t& runs) {
  bool inside = true;
  int64_t before = -2;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t given = index[i], place = given < 0 ? given + length : given;
    inside &= static_cast<uint64_t>(place) < static_cast<uint64_t>(length);
    // Places may be any number, also one that nothing follows.
    runs += static_cast<int64_t>(static_cast<uint64_t>(place) == static_cast<uint64_t>(before) + 1);
    places[i] = before = place;
  }
  return inside;
}

constexpr int64_t kLongList = 1024;

/// Places of a long list are read a part at a time, where they are near. What stands side by side,
/// as in windows of a signal, is copied as one. False where a place is outside.
template <typename T>
bool gather_long(const KernelRun& run, const std::byte* from, int64_t outer, int64_t length,
                 int64_t piece, const T* index, int64_t count, std::byte* to) {
  const int64_t part = std::clamp<int64_t>((1 << 16) / piece, 1, kLongList),
                parts = (count + part - 1) / part;
  // A part is read once for all, or for some where there are too few parts for the threads.
  const int64_t shares = std::clamp<int64_t>(4 * run.options().threads / parts, 1, outer);
  const bool far = length * piece > 1 << 22;  // beyond the second cache
  const auto copy = pieces_copier(static_cast<size_t>(piece));
  std::atomic<bool> inside = true;
  run.parallel_for(
      parts * shares, std::max<int64_t>(1, (1 << 16) * shares / (part * (piece + 8) * outer)),
      [&](int64_t begin, int64_t end) {
        int64_t places[kLongList];
        for (int64_t task = begin; task < end; ++task) {
          const int64_t first = task / shares * part, share = task % shares;
          const int64_t some = std::min(part, count - first);
          int64_t runs = 0;
          if (!read_places(index + first, some, length, places, runs)) {
            inside = false;
            return;
          }
          for (int64_t at = share * outer / shares; at < (share + 1) * outer / shares; ++at) {
            const std::byte* source = from + at * length * piece;
            std::byte* target = to + (at * count + first) * piece;
            if (runs < some / 4 * 3) {
              copy(source, places, some, static_cast<size_t>(piece), far, target);
              continue;
            }
            for (int64_t i = 0, stop; i < some; i = stop) {
              for (stop = i + 1; stop < some && places[stop] == places[stop - 1] + 1;) ++stop;
              std::memcpy(target + i * piece, source + places[i] * piece,
                          static_cast<size_t>((stop - i) * piece));
            }
          }
        }
      });
  return inside;
}

/// Copies the pieces at `places`, for each of `outer` parts of `length` pieces.
void gather_all(const KernelRun& run, const std::byte* from, int64_t outer, int64_t length,
                int64_t piece, const std::vector<int64_t>& places, std::byte* to) {
  // Parts of the list of places, for each outer part.
  const auto count = static_cast<int64_t>(places.size());
  if (count == 1 && outer > 1)
    return gather_one(run, from + places[0] * piece, outer, length, piece, to);
  const int64_t part = std::max<int64_t>(1, (1 << 16) / piece), parts = (count + part - 1) / part;
  const auto size = static_cast<size_t>(piece);
  const bool far = length * piece > 1 << 22;  // beyond the second cache
  const auto copy = pieces_copier(size);
  const int64_t grain =
      std::max<int64_t>(1, (1 << 16) / (std::clamp<int64_t>(count, 1, part) * piece));
  run.parallel_for(outer * parts, grain, [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const int64_t at = task / parts, first = task % parts * part;
      copy(from + at * length * piece, places.data() + first, std::min(part, count - first), size,
           far, to + (at * count + first) * piece);
    }
  });
}

Status run_gather(KernelRun& run) {
  const auto& s = run.state<GatherState>();
  const Tensor &data = run.input(0), &indices = run.input(1);
  const int64_t count = indices.size();
  const auto gather = [&]<typename T>(const T* index) -> Status {
    bool inside = true;
    if (count > kLongList) {
      TRY(Tensor * y, run.output(0, data.dtype(), s.output));
      inside = gather_long(run, data.data<std::byte>(), s.outer, s.length, s.piece, index, count,
                           y->data<std::byte>());
      if (inside) return ok();
    }
    std::vector<int64_t> places(static_cast<size_t>(count));
    int64_t runs = 0;
    inside = inside && read_places(index, count, s.length, places.data(), runs);
    for (int64_t i = 0; !inside && i < count; ++i)
      if (const int64_t given = index[i]; given < -s.length || given >= s.length)
        return ops::checked_index(given, s.length, s.axis).error();
    TRY(Tensor * y, run.output(0, data.dtype(), s.output));
    gather_all(run, data.data<std::byte>(), s.outer, s.length, s.piece, places,
               y->data<std::byte>());
    return ok();
  };
  return indices.dtype() == DType::kInt64 ? gather(indices.data<int64_t>())
                                          : gather(indices.data<int32_t>());
}

// GatherND: tuples of indices, each of which names a piece.

struct TupleState final : KernelState {
  Dims lengths, steps;  ///< of the axes that a tuple names; from one to the next in pieces
  int64_t first_axis = 0, batches = 1, batch_pieces = 1, piece = 1;
  Dims output;
};

bool plan_tuples(const KernelQuery& q, TupleState& s) {
  if (active_isa() == Isa::kScalar || q.inputs.size() != 2 || bytes_of(q.dtype(0)) == 0 ||
      q.dtype(1) != DType::kInt64 || element_count(q.dims(0)) < 1 || element_count(q.dims(1)) < 1)
    return false;
  const auto data = q.dims(0), index = q.dims(1);
  const int64_t given = q.attributes.get_int("batch_dims", 0);
  if (index.empty() || given < 0 || given >= static_cast<int64_t>(index.size())) return false;
  const auto batch = static_cast<size_t>(given);
  const auto depth = static_cast<uint64_t>(index.back());
  if (batch > data.size() || depth > data.size() - batch) return false;
  const size_t end = batch + static_cast<size_t>(depth);
  for (size_t j = 0; j < batch; ++j)
    if (data[j] != index[j]) return false;
  s.first_axis = given;
  s.batches = element_count(data.first(batch));
  s.piece = element_count(data.subspan(end)) * static_cast<int64_t>(bytes_of(q.dtype(0)));
  for (size_t j = batch; j < end; ++j) {
    s.lengths.push_back(data[j]);
    s.steps.push_back(element_count(data.subspan(j + 1, end - j - 1)));
  }
  s.batch_pieces = element_count(data.subspan(batch, end - batch));
  for (size_t j = 0; j + 1 < index.size(); ++j) s.output.push_back(index[j]);
  for (size_t j = end; j < data.size(); ++j) s.output.push_back(data[j]);
  return true;
}
bool supports_tuples(const KernelQuery& q) {
  TupleState state;
  return plan_tuples(q, state);
}
Result<std::unique_ptr<KernelState>> prepare_tuples(const PrepareContext& q) {
  auto state = std::make_unique<TupleState>();
  plan_tuples(q, *state);
  return state;
}

Status run_tuples(KernelRun& run) {
  const auto& s = run.state<TupleState>();
  const Tensor &data = run.input(0), &indices = run.input(1);
  const auto depth = static_cast<int64_t>(s.lengths.size());
  const int64_t count = indices.size() / std::max<int64_t>(depth, 1), each = count / s.batches;
  const int64_t* index = indices.data<int64_t>();
  std::vector<int64_t> places(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    int64_t place = i / each * s.batch_pieces;
    for (uint32_t j = 0; j < s.lengths.size(); ++j) {
      int64_t at = index[i * depth + j];
      if (at < 0) at += s.lengths[j];
      if (static_cast<uint64_t>(at) >= static_cast<uint64_t>(s.lengths[j]))
        return ops::checked_index(index[i * depth + j], s.lengths[j], s.first_axis + j).error();
      place += at * s.steps[j];
    }
    places[static_cast<size_t>(i)] = place;
  }
  TRY(Tensor * y, run.output(0, data.dtype(), s.output));
  gather_all(run, data.data<std::byte>(), 1, s.batches * s.batch_pieces, s.piece, places,
             y->data<std::byte>());
  return ok();
}

// Compress: the pieces along an axis whose flag is set.

struct CompressState final : KernelState {
  int64_t outer = 1, length = 1, piece = 1;
  Dims output;
  uint32_t axis = 0;  ///< in the output
};

bool plan_compress(const KernelQuery& q, CompressState& s) {
  if (active_isa() == Isa::kScalar || q.inputs.size() != 2 || bytes_of(q.dtype(0)) == 0 ||
      q.dtype(1) != DType::kBool || q.dims(1).size() != 1 || element_count(q.dims(0)) < 1)
    return false;
  const auto rank = static_cast<int64_t>(q.dims(0).size());
  const auto given = q.attributes.get_int("axis");
  s.piece = static_cast<int64_t>(bytes_of(q.dtype(0)));
  if (!given) {
    s.length = element_count(q.dims(0));
    s.output = {s.length};
    return true;
  }
  const int64_t axis = *given < 0 ? *given + rank : *given;
  if (axis < 0 || axis >= rank) return false;
  s.axis = static_cast<uint32_t>(axis);
  s.outer = element_count(q.dims(0).first(s.axis));
  s.length = q.dims(0)[s.axis];
  s.piece *= element_count(q.dims(0).subspan(s.axis + 1));
  s.output = Dims(q.dims(0));
  return true;
}
bool supports_compress(const KernelQuery& q) {
  CompressState state;
  return plan_compress(q, state);
}
Result<std::unique_ptr<KernelState>> prepare_compress(const PrepareContext& q) {
  auto state = std::make_unique<CompressState>();
  plan_compress(q, *state);
  return state;
}

/// give(i) of the `count` numbers whose flag is set, one after the other. Without a branch: a
/// random flag is guessed wrong every other time.
template <typename T, typename Give>
void keep(const uint8_t* flags, int64_t count, T* to, Give&& give) {
  for (int64_t i = 0, kept = 0; kept < count; ++i) {
    to[kept] = give(i);
    kept += flags[i] != 0;
  }
}

Status run_compress(KernelRun& run) {
  const auto& s = run.state<CompressState>();
  const Tensor &data = run.input(0), &condition = run.input(1);
  const auto* flags = reinterpret_cast<const uint8_t*>(condition.data<std::byte>());
  const int64_t all = condition.size();
  for (int64_t i = s.length; i < all; ++i)
    if (flags[i] != 0)
      return runtime_error("the condition keeps index " + std::to_string(i) +
                           " of an axis of length " + std::to_string(s.length));
  int64_t count = 0;
  for (int64_t i = 0; i < std::min(all, s.length); ++i) count += flags[i] != 0;
  Dims dims = s.output;
  dims[s.axis] = count;
  TRY(Tensor * y, run.output(0, data.dtype(), dims));
  const auto elements = [&]<typename T>(T) {
    const T* from = reinterpret_cast<const T*>(data.data<std::byte>());
    keep(flags, count, reinterpret_cast<T*>(y->data<std::byte>()),
         [&](int64_t i) { return from[i]; });
    return ok();
  };
  if (s.outer == 1 && s.piece == 1) return elements(uint8_t{});
  if (s.outer == 1 && s.piece == 2) return elements(uint16_t{});
  if (s.outer == 1 && s.piece == 4) return elements(uint32_t{});
  if (s.outer == 1 && s.piece == 8) return elements(uint64_t{});
  std::vector<int64_t> places(static_cast<size_t>(count));
  keep(flags, count, places.data(), [](int64_t i) { return i; });
  gather_all(run, data.data<std::byte>(), s.outer, s.length, s.piece, places, y->data<std::byte>());
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

/// The last axes of a shape, taken as one where rows would be short.
struct LastAxes {
  size_t first;                      ///< of them
  int64_t width = 1;                 ///< elements
  std::vector<int64_t> coordinates;  ///< [axis][element]; of a single axis: none

  explicit LastAxes(const Dims& dims) : first(dims.size()) {
    constexpr int64_t kEnough = 128, kMost = 1024;
    do width *= dims[--first];
    while (first > 0 && width < kEnough && width * dims[first - 1] <= kMost);
    if (first + 1 == dims.size()) return;
    coordinates.resize((dims.size() - first) * static_cast<size_t>(width));
    int64_t step = 1;
    for (size_t axis = dims.size(); axis-- > first; step *= dims[axis]) {
      int64_t* to = coordinates.data() + static_cast<int64_t>(axis - first) * width;
      for (int64_t i = 0; i < width; i += step) to = std::fill_n(to, step, i / step % dims[axis]);
    }
  }
};

template <typename T>
Status non_zero(KernelRun& run) {
  const Tensor& x = run.input(0);
  const T* from = reinterpret_cast<const T*>(x.data<std::byte>());
  const size_t rank = x.rank();
  const LastAxes last(x.dims());
  const int64_t width = last.width, rows = x.size() / width;
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
      for (size_t j = last.first; j < rank; ++j) {
        int64_t* const line = out + static_cast<int64_t>(j) * total;
        if (last.coordinates.empty()) {
          std::copy_n(places.data(), count, line);
          continue;
        }
        const int64_t* const at =
            last.coordinates.data() + static_cast<int64_t>(j - last.first) * width;
        for (size_t i = 0; i < count; ++i) line[i] = at[places[i]];
      }
      int64_t rest = row;
      for (size_t j = last.first; j-- > 0; rest /= x.dim(j))
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
    .unaligned = 1u << 0,
    .priority = -1,
};
KERNEL(compress) = {
    .name = "compress",
    .op = "Compress",
    .supports = supports_compress,
    .prepare = prepare_compress,
    .run = run_compress,
};
KERNEL(gather_tuples) = {
    .name = "gather_nd",
    .op = "GatherND",
    .supports = supports_tuples,
    .prepare = prepare_tuples,
    .run = run_tuples,
};
KERNEL(non_zero) = {
    .name = "non_zero",
    .op = "NonZero",
    .supports = supports_non_zero,
    .run = run_non_zero,
};

}  // namespace tombolo
