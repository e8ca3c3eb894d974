// Expand, and ScatterND that replaces, of elements of 1 to 16 bytes; ScatterND that combines
// floats.

#include <algorithm>
#include <cstring>

#include "ops/kernels/arguments.h"
#include "ops/kernels/broadcast.h"
#include "runtime/kernels/elementwise/binary.h"
#include "runtime/kernels/isa.h"
#include "runtime/kernels/kernel.h"

namespace tombolo {
namespace {

// Expand: axes that are repeated and axes that are copied take turns.

bool supports_expand(const KernelQuery& q) {
  return active_isa() != Isa::kScalar && q.inputs.size() == 2 && bytes_of(q.dtype(0)) != 0 &&
         q.dtype(1) == DType::kInt64 && q.dims(1).size() == 1 && element_count(q.dims(0)) > 0;
}

/// f(T{}) of the unsigned type of so many bytes; false where there is none.
template <typename F>
bool with_unsigned(size_t bytes, F&& f) {
  switch (bytes) {
    case 1:
      f(uint8_t{});
      return true;
    case 2:
      f(uint16_t{});
      return true;
    case 4:
      f(uint32_t{});
      return true;
    case 8:
      f(uint64_t{});
      return true;
    default:
      return false;
  }
}

/// `count` copies of one element: the first ones are copied with the widest vectors that memcpy
/// knows of.
void repeat(const std::byte* x, std::byte* y, int64_t count, size_t bytes) {
  constexpr int64_t kFirst = 2048;
  const auto fill = [&]<typename T>(T value) {
    constexpr auto kSize = static_cast<int64_t>(sizeof(T));
    std::memcpy(&value, x, sizeof value);
    std::fill_n(reinterpret_cast<T*>(y), std::min(count, kFirst / kSize), value);
    for (int64_t at = kFirst; at < count * kSize; at += kFirst)
      std::memcpy(y + at, y, static_cast<size_t>(std::min(kFirst, count * kSize - at)));
  };
  if (with_unsigned(bytes, fill)) return;
  for (int64_t i = 0; i < count; ++i) std::memcpy(y + i * static_cast<int64_t>(bytes), x, bytes);
}

/// `count` copies of each of n elements. Stores are of a fixed number, which the next element's
/// then write over, but for the last ones.
template <typename T>
void repeat_each(const T* x, T* y, int64_t n, int64_t count) {
  constexpr auto kAtOnce = static_cast<int64_t>(64 / sizeof(T));
  const T* end = y + n * count;
  for (int64_t i = 0; i < n; ++i, y += count) {
    const T value = x[i];
    int64_t done = 0;
    for (; done < count && end - (y + done) >= kAtOnce; done += kAtOnce)
      for (int64_t k = 0; k < kAtOnce; ++k) y[done + k] = value;
    for (; done < count; ++done) y[done] = value;
  }
}
void repeat_each(const std::byte* x, std::byte* y, int64_t n, int64_t count, size_t bytes) {
  const auto typed = [&]<typename T>(T) {
    repeat_each(reinterpret_cast<const T*>(x), reinterpret_cast<T*>(y), n, count);
  };
  if (with_unsigned(bytes, typed)) return;
  for (int64_t i = 0; i < n; ++i, x += bytes)
    for (int64_t k = 0; k < count; ++k, y += bytes) std::memcpy(y, x, bytes);
}

/// Copies the first `bytes` bytes `count` - 1 times behind them, more and more at a time.
void copy_again(std::byte* y, int64_t bytes, int64_t count) {
  constexpr int64_t kMost = 1 << 14;
  for (int64_t done = 1; done < count;) {
    const int64_t more = std::min({done, count - done, std::max<int64_t>(1, kMost / bytes)});
    std::memcpy(y + done * bytes, y, static_cast<size_t>(more * bytes));
    done += more;
  }
}

Status run_expand(KernelRun& run) {
  const Tensor &x = run.input(0), &shape = run.input(1);
  const std::span<const int64_t> target(shape.data<int64_t>(), static_cast<size_t>(shape.size()));
  for (const int64_t dim : target)
    if (dim < 0) return runtime_error("the shape has a dimension of " + std::to_string(dim));
  TRY(const Dims dims, ops::broadcast_dims(x.dims(), target));
  if (dims == x.dims()) return run.view(0, 0, 0, x.dtype(), dims);
  TRY(Tensor * y, run.output(0, x.dtype(), dims));
  if (y->size() == 0) return ok();
  // Neighbouring axes of one kind are one.
  struct Axis {
    int64_t length, step;  ///< step: elements of x, 0 where it is repeated
  };
  std::vector<Axis> axes;
  int64_t step = 1;
  for (size_t j = dims.size(), i = x.rank(); j-- > 0;) {
    const int64_t own = i > 0 ? x.dim(--i) : 1;
    if (dims[j] == 1) continue;
    const bool copied = own != 1;
    if (!axes.empty() && copied == (axes.back().step != 0))
      axes.back().length *= dims[j];
    else
      axes.push_back({dims[j], copied ? step : 0});
    step *= own;
  }
  const auto bytes = static_cast<size_t>(bytes_of(x.dtype()));
  const Axis line = axes.empty() ? Axis{1, 1} : axes[0];
  const int64_t rows = y->size() / line.length, size = static_cast<int64_t>(bytes);
  // Rows that follow one another and are equal.
  const int64_t equal = axes.size() > 1 && axes[1].step == 0 ? axes[1].length : 1;
  // Short rows of one element, one after the other.
  constexpr int64_t kShort = 1024;
  const int64_t each =
      axes.size() > 1 && line.step == 0 && line.length * size <= kShort && axes[1].step != 0
          ? axes[1].length
          : 1;
  const std::byte* from = x.data<std::byte>();
  std::byte* to = y->data<std::byte>();
  run.parallel_for(rows, std::max<int64_t>(1, (1 << 16) / (line.length * size)),
                   [&](int64_t begin, int64_t end) {
                     int64_t same = 1;
                     for (int64_t row = begin; row < end; row += same) {
                       int64_t at = 0, rest = row;
                       const int64_t many = std::max(equal, each);
                       same = std::min(end - row, many - row % many);
                       for (size_t j = 1; j < axes.size(); rest /= axes[j++].length)
                         at += rest % axes[j].length * axes[j].step;
                       std::byte* out = to + row * line.length * size;
                       if (each > 1) {
                         repeat_each(from + at * size, out, same, line.length, bytes);
                         continue;
                       }
                       if (line.step == 0)
                         repeat(from + at * size, out, line.length, bytes);
                       else
                         std::memcpy(out, from + at * size,
                                     static_cast<size_t>(line.length) * bytes);
                       copy_again(out, line.length * size, same);
                     }
                   });
  return ok();
}

// ScatterND: tuples of indices say where pieces go, the last one of a place stays, or floats are
// combined with what is there, one after the other.

enum class Combine : uint8_t { kReplace, kAdd, kMul, kMax, kMin };
constexpr Text kCombinations[] = {"none", "add", "mul", "max", "min"};

struct ScatterState final : KernelState {
  Dims lengths, steps;  ///< of the axes that a tuple names; bytes from one to the next
  int64_t piece = 1, count = 0;
  Combine combine = Combine::kReplace;
};

bool plan_scatter(const KernelQuery& q, ScatterState& s) {
  if (active_isa() == Isa::kScalar || q.inputs.size() != 3 || bytes_of(q.dtype(0)) == 0 ||
      q.dtype(1) != DType::kInt64 || q.dtype(2) != q.dtype(0) || element_count(q.dims(0)) < 1 ||
      element_count(q.dims(1)) < 1)
    return false;
  const auto* const how = std::find(std::begin(kCombinations), std::end(kCombinations),
                                    q.attributes.get_string("reduction", "none"));
  if (how == std::end(kCombinations)) return false;
  s.combine = static_cast<Combine>(how - kCombinations);
  if (s.combine != Combine::kReplace && q.dtype(0) != DType::kFloat32) return false;
  const auto data = q.dims(0), index = q.dims(1);
  if (index.empty() || index.back() > static_cast<int64_t>(data.size())) return false;
  const auto depth = static_cast<size_t>(index.back());
  Dims updates;
  for (size_t j = 0; j + 1 < index.size(); ++j) updates.push_back(index[j]);
  for (size_t j = depth; j < data.size(); ++j) updates.push_back(data[j]);
  if (Dims(q.dims(2)) != updates) return false;
  s.piece = element_count(data.subspan(depth)) * static_cast<int64_t>(bytes_of(q.dtype(0)));
  for (size_t j = 0; j < depth; ++j) {
    s.lengths.push_back(data[j]);
    s.steps.push_back(element_count(data.subspan(j + 1, depth - j - 1)) * s.piece);
  }
  s.count = element_count(index.first(index.size() - 1));
  return true;
}
bool supports_scatter(const KernelQuery& q) {
  ScatterState state;
  return plan_scatter(q, state);
}
Result<std::unique_ptr<KernelState>> prepare_scatter(const PrepareContext& q) {
  auto state = std::make_unique<ScatterState>();
  plan_scatter(q, *state);
  return state;
}

/// put(to, from, bytes) for each piece; of long ones each thread takes a part of all, so that those
/// of one place come in their order.
template <typename Put>
Status scatter(KernelRun& run, const ScatterState& s, const std::byte* from, std::byte* to,
               Put&& put) {
  constexpr int64_t kLine = 64;
  const auto depth = static_cast<uint32_t>(s.lengths.size());
  Status said = ok();
  run.parallel_for(
      (s.piece + kLine - 1) / kLine, std::max<int64_t>(2, 4096 / std::max<int64_t>(1, s.count)),
      [&](int64_t begin, int64_t end) {
        const auto* index = run.data<int64_t>(1);
        const int64_t first = begin * kLine, bytes = std::min(s.piece, end * kLine) - first;
        const std::byte* source = from + first;
        if (depth == 1) {  // what is written could be all that is read, but for these
          const int64_t length = s.lengths[0], step = s.steps[0], piece = s.piece;
          for (const int64_t* const stop = index + s.count; index != stop; ++index) {
            const int64_t given = *index, at = given < 0 ? given + length : given;
            if (static_cast<uint64_t>(at) >= static_cast<uint64_t>(length)) {
              if (begin == 0) said = ops::checked_index(given, length, 0).error();
              return;  // all parts find the same
            }
            put(to + first + at * step, source, bytes);
            source += piece;
          }
          return;
        }
        for (int64_t i = 0; i < s.count; ++i, index += depth, source += s.piece) {
          int64_t place = first;
          for (uint32_t j = 0; j < depth; ++j) {
            const int64_t given = index[j], at = given < 0 ? given + s.lengths[j] : given;
            if (static_cast<uint64_t>(at) >= static_cast<uint64_t>(s.lengths[j])) {
              if (begin == 0) said = ops::checked_index(given, s.lengths[j], j).error();
              return;  // all parts find the same
            }
            place += at * s.steps[j];
          }
          put(to + place, source, bytes);
        }
      });
  return said;
}

/// kPiece: bytes of a piece, 0 for any number.
template <size_t kPiece>
Status replace(KernelRun& run, const ScatterState& s, const std::byte* from, std::byte* to) {
  return scatter(run, s, from, to, [](std::byte* target, const std::byte* x, int64_t bytes) {
    std::memcpy(target, x, kPiece != 0 ? kPiece : static_cast<size_t>(bytes));
  });
}

template <typename Fold>
Status combine(KernelRun& run, const ScatterState& s, const std::byte* from, std::byte* to,
               Binary op, Fold&& fold) {
  if (s.piece == int64_t{sizeof(float)})
    return scatter(run, s, from, to, [&](std::byte* target, const std::byte* source, int64_t) {
      auto* y = reinterpret_cast<float*>(target);
      *y = fold(*y, *reinterpret_cast<const float*>(source));
    });
  BinaryFn* const fn = binary_fn(op, DType::kFloat32);
  return scatter(run, s, from, to, [&](std::byte* target, const std::byte* source, int64_t bytes) {
    fn(target, false, source, false, target, bytes / int64_t{sizeof(float)});
  });
}

/// `other`, which one instruction makes, unless a stays as it is no number: seldom, as is foreseen.
float unless_nan(float a, float other) {
  if (a != a) [[unlikely]]
    return a;
  return other;
}

Status run_scatter(KernelRun& run) {
  const auto& s = run.state<ScatterState>();
  const Tensor &data = run.input(0), &updates = run.input(2);
  TRY(Tensor * y, run.output(0, data.dtype(), data.dims()));
  auto* to = y->data<std::byte>();
  if (to != data.data<std::byte>()) {
    const int64_t bytes = data.size() * static_cast<int64_t>(bytes_of(data.dtype()));
    run.parallel_for(bytes, 1 << 18, [&](int64_t begin, int64_t end) {
      std::memcpy(to + begin, data.data<std::byte>() + begin, static_cast<size_t>(end - begin));
    });
  }
  const auto* from = updates.data<std::byte>();
  switch (s.combine) {
    case Combine::kAdd:
      return combine(run, s, from, to, Binary::kAdd, [](float a, float b) { return a + b; });
    case Combine::kMul:
      return combine(run, s, from, to, Binary::kMul, [](float a, float b) { return a * b; });
    case Combine::kMax:
      return combine(run, s, from, to, Binary::kMax,
                     [](float a, float b) { return unless_nan(a, a > b ? a : b); });
    case Combine::kMin:
      return combine(run, s, from, to, Binary::kMin,
                     [](float a, float b) { return unless_nan(a, a < b ? a : b); });
    case Combine::kReplace:
      break;
  }
  switch (s.piece) {
    case 4:
      return replace<4>(run, s, from, to);
    case 8:
      return replace<8>(run, s, from, to);
    default:
      return replace<0>(run, s, from, to);
  }
}

}  // namespace

KERNEL(expand) = {
    .name = "expand",
    .op = "Expand",
    .supports = supports_expand,
    .run = run_expand,
};
KERNEL(scatter_nd) = {
    .name = "scatter_nd",
    .op = "ScatterND",
    .supports = supports_scatter,
    .prepare = prepare_scatter,
    .run = run_scatter,
    .in_place = 1,
};

}  // namespace tombolo
