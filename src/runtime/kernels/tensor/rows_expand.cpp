// Expand, of elements of 1 to 16 bytes.

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
  const auto size = static_cast<int64_t>(bytes);
  // Short rows that are repeated as a whole are put together once, where that stays near.
  constexpr int64_t kShortLine = 256, kNear = 1 << 17;
  int64_t times = 1;
  if (axes.size() > 2 && axes.back().step == 0 && axes[0].length * size <= kShortLine &&
      y->size() / axes.back().length * size <= kNear) {
    times = axes.back().length;
    axes.pop_back();
  }
  const Axis line = axes.empty() ? Axis{1, 1} : axes[0];
  const int64_t all = y->size() / times, rows = all / line.length;
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
  run.parallel_for(times - 1, std::max<int64_t>(1, (1 << 16) / (all * size)),
                   [&](int64_t begin, int64_t end) {
                     for (int64_t i = begin; i < end; ++i)
                       std::memcpy(to + (i + 1) * all * size, to, static_cast<size_t>(all * size));
                   });
  return ok();
}

}  // namespace

KERNEL(expand) = {
    .name = "expand",
    .op = "Expand",
    .supports = supports_expand,
    .run = run_expand,
};
}  // namespace tombolo
