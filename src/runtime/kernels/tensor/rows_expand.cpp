// Expand and Tile, of elements of 1 to 16 bytes: axes that are repeated and axes that are copied
// take turns.

#include <algorithm>
#include <cstring>

#include "ops/kernels/arguments.h"
#include "ops/kernels/broadcast.h"
#include "runtime/kernels/isa.h"
#include "runtime/kernels/kernel.h"
#include "runtime/kernels/matmul/gemm.h"

namespace tombolo {
namespace {

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

/// A short line, in whole chunks where there is room for them.
template <int64_t kChunk>
void copy_line(const std::byte* x, const std::byte* x_end, std::byte* y, const std::byte* y_end,
               int64_t line) {
  const int64_t room = line + kChunk - 1;
  if (x_end - x < room || y_end - y < room) {
    std::memcpy(y, x, static_cast<size_t>(line));
    return;
  }
  for (int64_t i = 0; i < line; i += kChunk) std::memcpy(y + i, x + i, kChunk);
}

/// Each of so many short lines `count` times. What is too much the next line writes over.
template <int64_t kChunk>
void repeat_lines(const std::byte* x, std::byte* y, int64_t lines, int64_t line, int64_t count) {
  const std::byte *x_end = x + lines * line, *y_end = y + lines * line * count;
  for (int64_t i = 0; i < lines; ++i, x += line)
    for (int64_t k = 0; k < count; ++k, y += line) copy_line<kChunk>(x, x_end, y, y_end, line);
}

/// What becomes of one tensor as another with some axes that repeat: the innermost comes first, and
/// neighbours are of different kinds.
class Repeats {
 public:
  explicit Repeats(int64_t bytes) : bytes_(bytes) {}

  /// The next axis outwards.
  void add(int64_t length, bool copied) {
    if (length == 1) return;
    if (!levels_.empty() && copied == (levels_.back().step != 0)) {
      levels_.back().length *= length;
    } else {
      levels_.push_back({length, copied ? given_ : 0, made_});
    }
    made_ *= length;
    if (copied) given_ *= length;
  }

  void run(const KernelRun& run, const std::byte* x, std::byte* y) {
    if (levels_.empty()) levels_.push_back({1, 1, 1});
    constexpr int64_t kTask = 1 << 16;
    size_t top = levels_.size() - 1;
    int64_t outer = 1;
    for (; top > 0 && levels_[top].block * bytes_ > kTask; --top) outer *= levels_[top].length;
    const Level& level = levels_[top];
    run.parallel_for(outer * level.length, std::max<int64_t>(1, kTask / (level.block * bytes_)),
                     [&](int64_t begin, int64_t end) {
                       int64_t made_of = -1, made = 0;
                       for (int64_t n = 0; begin < end; begin += n) {
                         const int64_t i = begin % level.length;
                         n = std::min(end - begin, level.length - i);
                         int64_t at = i * level.step, rest = begin / level.length;
                         for (size_t j = top + 1; j < levels_.size(); rest /= levels_[j++].length)
                           at += rest % levels_[j].length * levels_[j].step;
                         std::byte* const to = y + begin * level.block * bytes_;
                         const int64_t bytes = n * level.block * bytes_;
                         if (at == made_of && n == made && is_near(bytes))
                           std::memcpy(to, to - bytes, static_cast<size_t>(bytes));
                         else
                           fill(top, n, x + at * bytes_, to);
                         made_of = at;
                         made = n;
                       }
                     });
  }

 private:
  struct Level {
    int64_t length, step;  ///< step: elements of x, 0 where it is repeated
    int64_t block;         ///< elements of y from one to the next
  };

  /// Whether so many bytes of y are rather copied than made again: long copies need not read what
  /// they write over.
  static bool is_near(int64_t bytes) { return bytes <= 4 * near_bytes(); }

  /// The first n of an axis, with all that is inside.
  void fill(size_t top, int64_t n, const std::byte* x, std::byte* y) const {
    constexpr int64_t kShortRow = 1024, kShortLine = 256, kFewTimes = 32;
    const Level &level = levels_[top], &line = levels_[0];
    const bool copied = level.step != 0;
    const int64_t block = level.block * bytes_, line_bytes = line.length * bytes_;
    if (top == 0) {
      if (copied)
        std::memcpy(y, x, static_cast<size_t>(n * bytes_));
      else
        repeat(x, y, n, static_cast<size_t>(bytes_));
    } else if (top == 1 && copied && line_bytes <= kShortRow) {
      repeat_each(x, y, n, line.length, static_cast<size_t>(bytes_));
    } else if (top == 2 && copied && line_bytes <= kShortLine && levels_[1].length <= kFewTimes) {
      (line_bytes <= 16   ? repeat_lines<16>
       : line_bytes <= 32 ? repeat_lines<32>
                          : repeat_lines<64>)(x, y, n, line_bytes, levels_[1].length);
    } else if (!copied && is_near(block)) {
      fill(top - 1, levels_[top - 1].length, x, y);
      copy_again(y, block, n);
    } else {
      for (int64_t i = 0; i < n; ++i)
        fill(top - 1, levels_[top - 1].length, x + i * level.step * bytes_, y + i * block);
    }
  }

  int64_t bytes_, given_ = 1, made_ = 1;
  std::vector<Level> levels_;
};

Status run_expand(KernelRun& run) {
  const Tensor &x = run.input(0), &shape = run.input(1);
  const std::span<const int64_t> target(shape.data<int64_t>(), static_cast<size_t>(shape.size()));
  for (const int64_t dim : target)
    if (dim < 0) return runtime_error("the shape has a dimension of " + std::to_string(dim));
  TRY(const Dims dims, ops::broadcast_dims(x.dims(), target));
  if (dims == x.dims()) return run.view(0, 0, 0, x.dtype(), dims);
  TRY(Tensor * y, run.output(0, x.dtype(), dims));
  if (y->size() == 0) return ok();
  Repeats repeats(static_cast<int64_t>(bytes_of(x.dtype())));
  for (size_t j = dims.size(), i = x.rank(); j-- > 0;) {
    const int64_t own = i > 0 ? x.dim(--i) : 1;
    repeats.add(dims[j], own != 1);
  }
  repeats.run(run, x.data<std::byte>(), y->data<std::byte>());
  return ok();
}

bool supports_tile(const KernelQuery& q) {
  return q.opset >= 6 && supports_expand(q) &&
         q.dims(1)[0] == static_cast<int64_t>(q.dims(0).size());
}

Status run_tile(KernelRun& run) {
  const Tensor &x = run.input(0), &times = run.input(1);
  const std::span<const int64_t> counts(times.data<int64_t>(), x.rank());
  Dims dims = x.dims();
  for (size_t i = 0; i < dims.size(); ++i) {
    if (counts[i] < 0) return runtime_error("repeats " + dims_to_string(counts) + " are negative");
    if (__builtin_mul_overflow(dims[i], counts[i], &dims[i]))
      return resource_error("repeats " + dims_to_string(counts) + " are too large");
  }
  TRY(Tensor * y, run.output(0, x.dtype(), dims));
  if (y->size() == 0) return ok();
  Repeats repeats(static_cast<int64_t>(bytes_of(x.dtype())));
  for (size_t i = dims.size(); i-- > 0;) {
    repeats.add(x.dim(i), true);
    repeats.add(counts[i], false);
  }
  repeats.run(run, x.data<std::byte>(), y->data<std::byte>());
  return ok();
}

}  // namespace

KERNEL(expand) = {
    .name = "expand",
    .op = "Expand",
    .supports = supports_expand,
    .run = run_expand,
};
KERNEL(tile) = {
    .name = "tile",
    .op = "Tile",
    .supports = supports_tile,
    .run = run_tile,
};
}  // namespace tombolo
