// The tile of byte products with AVX2: vpmaddubsw makes twice as many products as vpmaddwd does for
// as many instructions, but adds two of them in 16 bits, where they may saturate. Groups of four
// bytes of k are sorted by what fits (QTiles::sorted), for each panel of 16 columns and for each
// cap, above which the numbers of the other side are not (kQCaps). Where sums of four groups or two
// fit, one step to 32 bits serves them all. Where those of one do not, other bytes of it are put
// side by side, and where no order helps, its numbers are multiplied as 16-bit numbers, even and
// odd ones apart. And the tiles of AVX-VNNI, which need none of this. Functions carry their target.

#include <algorithm>
#include <utility>

#include "runtime/kernels/quant/qgemm_sorted.h"
#include "runtime/kernels/row_pointers.h"

#if defined(__x86_64__)
#include "runtime/kernels/quant/avx2_bytes.h"

#define TOMBOLO_AVX_VNNI __attribute__((target("avx2,avxvnni")))
#define TOMBOLO_AVX_VNNI_INLINE inline __attribute__((always_inline, target("avx2,avxvnni")))

namespace tombolo {
namespace {

TOMBOLO_AVX2_INLINE __m256i group_of(const std::byte* a) {
  int32_t group;
  __builtin_memcpy(&group, a, 4);
  return _mm256_set1_epi32(group);
}

// Sums of the tile and what they need fill the sixteen registers. Told so: gcc otherwise moves sums
// between registers and the stack.

/// sum += the four products of unsigned and signed bytes.
TOMBOLO_AVX2_INLINE void add_single(__m256i& sum, __m256i a, __m256i b, __m256i ones) {
  __m256i pairs;
  asm("vpmaddubsw %3, %2, %1\n\tvpmaddwd %4, %1, %1\n\tvpaddd %1, %0, %0"
      : "+x"(sum), "=&x"(pairs)
      : "x"(a), "x"(b), "x"(ones));
}

/// The same for the groups a and c of one row, with both halves of the columns.
TOMBOLO_AVX2_INLINE void add_double(__m256i& left, __m256i& right, __m256i a, __m256i c, __m256i b0,
                                    const std::byte* b, const std::byte* d, __m256i ones) {
  __m256i pairs, more;
  const auto* from = reinterpret_cast<const __m256i*>(b);
  const auto* then = reinterpret_cast<const __m256i*>(d);
  asm("vpmaddubsw %6, %4, %2\n\t"
      "vpmaddubsw %8, %5, %3\n\t"
      "vpaddw %3, %2, %2\n\t"
      "vpmaddwd %10, %2, %2\n\t"
      "vpaddd %2, %0, %0\n\t"
      "vpmaddubsw %7, %4, %4\n\t"
      "vpmaddubsw %9, %5, %5\n\t"
      "vpaddw %5, %4, %4\n\t"
      "vpmaddwd %10, %4, %4\n\t"
      "vpaddd %4, %1, %1"
      : "+x"(left), "+x"(right), "=&x"(pairs), "=&x"(more), "+x"(a), "+x"(c)
      : "x"(b0), "m"(from[1]), "m"(then[0]), "m"(then[1]), "x"(ones));
}

/// The same for a group of 16-bit numbers (q_widen_group).
TOMBOLO_AVX2_INLINE void add_wide(__m256i& left, __m256i& right, __m256i a, __m256i b0, __m256i b1,
                                  const std::byte* b, __m256i low) {
  __m256i even, product;
  const auto* from = reinterpret_cast<const __m256i*>(b);
  asm("vpand %9, %4, %2\n\t"
      "vpsrlw $8, %4, %4\n\t"
      "vpmaddwd %5, %2, %3\n\t"
      "vpaddd %3, %0, %0\n\t"
      "vpmaddwd %6, %2, %2\n\t"
      "vpaddd %2, %1, %1\n\t"
      "vpmaddwd %7, %4, %3\n\t"
      "vpaddd %3, %0, %0\n\t"
      "vpmaddwd %8, %4, %4\n\t"
      "vpaddd %4, %1, %1"
      : "+x"(left), "+x"(right), "=&x"(even), "=&x"(product), "+x"(a)
      : "x"(b0), "x"(b1), "m"(from[2]), "m"(from[3]), "x"(low));
}

/// sum += the two products of 16-bit numbers.
TOMBOLO_AVX2_INLINE void add_pairs(__m256i& sum, __m256i a, const std::byte* b) {
  asm("vpmaddwd %2, %1, %1\n\tvpaddd %1, %0, %0"
      : "+x"(sum), "+x"(a)
      : "m"(*reinterpret_cast<const __m256i*>(b)));
}

constexpr int kLeastAsking = 2, kMostAsking = 4;

/// each(r) for r < kR, as constants from the start: gcc unrolls loops after it has decided which
/// sums live in registers.
template <typename Each, int... kRow>
TOMBOLO_AVX2_INLINE void for_rows(std::integer_sequence<int, kRow...>, Each&& each) {
  (each(std::integral_constant<int, kRow>()), ...);
}

template <int kR>
TOMBOLO_AVX2_INLINE void begin_sums(__m256i (&sum)[kR][2], __m256i from0, __m256i from1) {
#pragma GCC unroll 8
  for (int r = 0; r < kR; ++r) {
    sum[r][0] = from0;
    sum[r][1] = from1;
  }
}

template <int kR>
TOMBOLO_AVX2_INLINE void put_sums(__m256i (&to)[kR][2], const __m256i (&from)[kR][2]) {
#pragma GCC unroll 8
  for (int r = 0; r < kR; ++r) {
    to[r][0] = from[r][0];
    to[r][1] = from[r][1];
  }
}

/// The first of four groups of one row, of both halves of the columns: `a` becomes those of the
/// right.
TOMBOLO_AVX2_INLINE __m256i begin_four(__m256i& a, const std::byte* b) {
  __m256i left;
  const auto* from = reinterpret_cast<const __m256i*>(b);
  asm("vpmaddubsw %2, %1, %0\n\tvpmaddubsw %3, %1, %1"
      : "=&x"(left), "+x"(a)
      : "m"(from[0]), "m"(from[1]));
  return left;
}
TOMBOLO_AVX2_INLINE void next_of_four(__m256i& left, __m256i& right, __m256i a,
                                      const std::byte* b) {
  __m256i product;
  const auto* from = reinterpret_cast<const __m256i*>(b);
  asm("vpmaddubsw %4, %2, %3\n\t"
      "vpaddw %3, %0, %0\n\t"
      "vpmaddubsw %5, %2, %2\n\t"
      "vpaddw %2, %1, %1"
      : "+x"(left), "+x"(right), "+x"(a), "=&x"(product)
      : "m"(from[0]), "m"(from[1]));
}
/// The same where several rows meet what is loaded of the panel.
TOMBOLO_AVX2_INLINE void next_of_four(__m256i& left, __m256i& right, __m256i a, __m256i b0,
                                      __m256i b1) {
  __m256i product;
  asm("vpmaddubsw %4, %2, %3\n\t"
      "vpaddw %3, %0, %0\n\t"
      "vpmaddubsw %5, %2, %2\n\t"
      "vpaddw %2, %1, %1"
      : "+x"(left), "+x"(right), "+x"(a), "=&x"(product)
      : "x"(b0), "x"(b1));
}
/// Products of a group's upper and lower four bits, of both halves of the columns, to sums of 16.
TOMBOLO_AVX2_INLINE void add_nibbles(__m256i (&high)[2], __m256i (&low)[2], const std::byte* upper,
                                     const std::byte* lower, __m256i b0, __m256i b1) {
  __m256i bits, product;
  asm("vpbroadcastd %6, %4\n\t"
      "vpmaddubsw %8, %4, %5\n\t"
      "vpmaddubsw %9, %4, %4\n\t"
      "vpaddw %5, %0, %0\n\t"
      "vpaddw %4, %1, %1\n\t"
      "vpbroadcastd %7, %4\n\t"
      "vpmaddubsw %8, %4, %5\n\t"
      "vpmaddubsw %9, %4, %4\n\t"
      "vpaddw %5, %2, %2\n\t"
      "vpaddw %4, %3, %3"
      : "+x"(high[0]), "+x"(high[1]), "+x"(low[0]), "+x"(low[1]), "=&x"(bits), "=&x"(product)
      : "m"(*reinterpret_cast<const int32_t*>(upper)),
        "m"(*reinterpret_cast<const int32_t*>(lower)), "x"(b0), "x"(b1));
}
TOMBOLO_AVX2_INLINE void end_four(__m256i& sum, __m256i products, __m256i ones) {
  asm("vpmaddwd %2, %1, %1\n\tvpaddd %1, %0, %0" : "+x"(sum), "+x"(products) : "x"(ones));
}
/// The same where registers hold too much else.
TOMBOLO_AVX2_INLINE void end_four(__m256i& sum, __m256i products, const int16_t* ones) {
  asm("vpmaddwd %2, %1, %1\n\tvpaddd %1, %0, %0"
      : "+x"(sum), "+x"(products)
      : "m"(*reinterpret_cast<const __m256i*>(ones)));
}

/// Two times two groups that lie one behind the other: x and y of a row, at b and d of the panel.
TOMBOLO_AVX2_INLINE void add_four(__m256i (&sum)[2], const std::byte* x, const std::byte* y,
                                  const std::byte* b, const std::byte* d, __m256i ones) {
  __m256i right = group_of(x);
  __m256i left = begin_four(right, b);
  next_of_four(left, right, group_of(x + 4), b + 64);
  next_of_four(left, right, group_of(y), d);
  next_of_four(left, right, group_of(y + 4), d + 64);
  end_four(sum[0], left, ones);
  end_four(sum[1], right, ones);
}

/// Groups whose products of four bits by bytes have room in 16.
constexpr int kNibbleGroups = 8;
static_assert(kNibbleGroups * 2 * 15 * 128 <= 32767);

/// The upper and the lower four bits of so many groups of a row, for two broadcasts each.
struct NibbleRow {
  alignas(32) std::byte high[4 * kNibbleGroups], low[4 * kNibbleGroups];

  TOMBOLO_AVX2_INLINE void set(__m256i bytes) {
    const __m256i bits = _mm256_set1_epi8(15);
    _mm256_store_si256(reinterpret_cast<__m256i*>(high),
                       _mm256_and_si256(_mm256_srli_epi16(bytes, 4), bits));
    _mm256_store_si256(reinterpret_cast<__m256i*>(low), _mm256_and_si256(bytes, bits));
  }
};

/// The next panel, line by line, to the second cache: where the first has 32 KiB, the panels of
/// 12 KiB that came there pushed each other out.
class NextPanel {
 public:
  TOMBOLO_AVX2_INLINE explicit NextPanel(const QTile& t)
      : at_(t.next != nullptr ? t.next : t.b), step_(t.next_step) {}
  TOMBOLO_AVX2_INLINE void ask(int lines) {
    for (int i = 0; i < lines; ++i, at_ += step_)
      _mm_prefetch(reinterpret_cast<const char*>(at_), _MM_HINT_T1);
  }
  /// For two groups each: tiles that share the panel have one line for both, or less.
  TOMBOLO_AVX2_INLINE void ask_for_twos(int count) {
    const bool alone = step_ > 32;
    for (int i = 0; i < count; ++i, at_ += 2 * step_) {
      _mm_prefetch(reinterpret_cast<const char*>(at_), _MM_HINT_T1);
      if (alone) _mm_prefetch(reinterpret_cast<const char*>(at_ + step_), _MM_HINT_T1);
    }
  }

 private:
  const std::byte* at_;
  int64_t step_;
};

/// Sums of products of upper and lower bits, for kNibbleGroups groups at most.
template <int kR>
struct Nibbles {
  __m256i high[kR][2], low[kR][2];

  TOMBOLO_AVX2_INLINE Nibbles() {
    begin_sums(high, _mm256_setzero_si256(), _mm256_setzero_si256());
    begin_sums(low, _mm256_setzero_si256(), _mm256_setzero_si256());
  }
  TOMBOLO_AVX2_INLINE void add(int r, const NibbleRow& row, int g, __m256i b0, __m256i b1) {
    add_nibbles(high[r], low[r], row.high + 4 * g, row.low + 4 * g, b0, b1);
  }
  TOMBOLO_AVX2_INLINE void end(__m256i (&sum)[kR][2]) {
    const __m256i ones = _mm256_set1_epi16(1), sixteens = _mm256_set1_epi16(16);
    for_rows(
        std::make_integer_sequence<int, kR>(), [&](auto r) TOMBOLO_AVX2
        __attribute__((always_inline)) {
          end_four(sum[r][0], high[r][0], sixteens);
          end_four(sum[r][1], high[r][1], sixteens);
          end_four(sum[r][0], low[r][0], ones);
          end_four(sum[r][1], low[r][1], ones);
        });
  }
};

/// Of so few rows that the panels take as long to come as to be multiplied, as they lie: the rows'
/// numbers in two halves, whose products fit with whatever weights, eight to a sum of 16 bits.
template <int kR>
TOMBOLO_AVX2_INLINE void accumulate_nibbles(const QTile& t, __m256i from0, __m256i from1,
                                            __m256i (&sum)[kR][2]) {
  constexpr std::make_integer_sequence<int, kR> all_rows;
  begin_sums(sum, from0, from1);
  NextPanel next(t);
  for (int64_t s = 0; s < t.stretches; ++s) {
    RowPointers<std::byte, kR> a(t.a + (t.offsets != nullptr ? t.offsets[s] : 0), t.lda);
    const std::byte* b = t.b + s * t.stretch_bytes;
    NibbleRow rows[kR];
    const auto multiply = [&](Nibbles<kR> & nibbles, int g) TOMBOLO_AVX2
        __attribute__((always_inline)) {
      next.ask(1);
      const __m256i b0 = load_bytes(b + 64 * g), b1 = load_bytes(b + 64 * g + 32);
      for_rows(
          all_rows, [&](auto r) TOMBOLO_AVX2
          __attribute__((always_inline)) { nibbles.add(r, rows[r], g, b0, b1); });
    };
    int64_t left = t.groups;
    for (; left >= kNibbleGroups; left -= kNibbleGroups) {
#pragma GCC unroll 2
      for (int r = 0; r < kR; ++r) rows[r].set(load_bytes(a.at(r)));
      Nibbles<kR> nibbles;
#pragma GCC unroll 8
      for (int g = 0; g < kNibbleGroups; ++g) multiply(nibbles, g);
      nibbles.end(sum);
      a.advance(4 * kNibbleGroups);
      b += 64 * kNibbleGroups;
    }
    if (left == 0) continue;
    for (int r = 0; r < kR; ++r) {
      alignas(32) std::byte bytes[4 * kNibbleGroups];  // the row ends here
      for (int64_t g = 0; g < left; ++g) __builtin_memcpy(bytes + 4 * g, a.at(r) + 4 * g, 4);
      rows[r].set(load_bytes(bytes));
    }
    Nibbles<kR> nibbles;
    for (int g = 0; g < left; ++g) multiply(nibbles, g);
    nibbles.end(sum);
  }
}

/// The same in the order of what fits, groups that do not in halves: reading a panel in any order
/// takes no longer where it is near. From memory it comes at two thirds of the speed, still as fast
/// as two rows are multiplied in halves.
template <int kR>
TOMBOLO_AVX2_INLINE void accumulate_in_order(const QTile& t, const SortedPanel& panel,
                                             __m256i from0, __m256i from1, __m256i (&sum)[kR][2]) {
  begin_sums(sum, from0, from1);
  const RowPointers<std::byte, kR> a(t.a + (t.offsets != nullptr ? t.offsets[0] : 0), t.lda);
  const std::byte* const b = t.b;
  NextPanel next(t);
  const __m256i ones = _mm256_set1_epi16(1);
  const int32_t* counts = panel.counts(0);
  const uint16_t* at = panel.order(0);
  if (t.next != nullptr) {  // what is read first of the next panel
    const auto* const ends = reinterpret_cast<const char*>(at + t.groups) + (t.next - t.b);
    for (const auto* line = reinterpret_cast<const char*>(counts) + (t.next - t.b); line < ends;
         line += 64)
      _mm_prefetch(line, _MM_HINT_T1);
  }
  constexpr std::make_integer_sequence<int, kR> all_rows;
  __m256i kept[kR][2];  // apart from what halves add to: one row takes a tenth longer without
  put_sums(kept, sum);
  for (const uint16_t* end = at + 2 * counts[kQFour]; at < end; at += 2) {
    const int64_t x = at[0], y = at[1];
    next.ask(4);
    for_rows(
        all_rows, [&](auto r) TOMBOLO_AVX2 __attribute__((always_inline)) {
          add_four(kept[r], a.at(r) + 4 * x, a.at(r) + 4 * y, b + 64 * x, b + 64 * y, ones);
        });
  }
  for (const uint16_t* end = at + 2 * counts[kQDouble]; at < end; at += 2) {
    const int64_t x = at[0], y = at[1];
    next.ask(2);
    const __m256i b0 = load_bytes(b + 64 * x);
    for_rows(
        all_rows, [&](auto r) TOMBOLO_AVX2 __attribute__((always_inline)) {
          add_double(kept[r][0], kept[r][1], group_of(a.at(r) + 4 * x), group_of(a.at(r) + 4 * y),
                     b0, b + 64 * x, b + 64 * y, ones);
        });
  }
  for (const uint16_t* end = at + counts[kQSingle]; at < end; ++at) {
    const int64_t x = *at;
    next.ask(1);
    const __m256i b0 = load_bytes(b + 64 * x), b1 = load_bytes(b + 64 * x + 32);
    for_rows(
        all_rows, [&](auto r) TOMBOLO_AVX2 __attribute__((always_inline)) {
          const __m256i group = group_of(a.at(r) + 4 * x);
          add_single(kept[r][0], group, b0, ones);
          add_single(kept[r][1], group, b1, ones);
        });
  }
  put_sums(sum, kept);
  const uint16_t* const all = at + counts[kQCrossed] + counts[kQOuter] + counts[kQWide];
  while (at < all) {
    Nibbles<kR> nibbles;
    for (const uint16_t* end = std::min(at + kNibbleGroups, all); at < end; ++at) {
      const int64_t x = *at;
      next.ask(1);
      const __m256i b0 = load_bytes(b + 64 * x), b1 = load_bytes(b + 64 * x + 32);
#pragma GCC unroll 2
      for (int r = 0; r < kR; ++r) {
        NibbleRow row;
        row.set(group_of(a.at(r) + 4 * x));
        nibbles.add(r, row, 0, b0, b1);
      }
    }
    nibbles.end(sum);
  }
}

constexpr int kRowsOfFours = 3;  ///< whose sums of 16 and of 32 bits registers hold
/// Rows that share what is read of the panel. With fewer gcc keeps all sums on the stack for it,
/// which takes a quarter longer.
constexpr int kLeastShared = 5;

/// Fours of rows [kFrom, kFrom + kP): what is read of the panel meets all of them, as two loads for
/// each product would take longer than to multiply.
template <int kFrom, int kP, int kR, typename Ask>
TOMBOLO_AVX2_INLINE void add_fours(__m256i (&sum)[kR][2], const std::byte* const (&rows)[kR],
                                   const QGroup* at, const QGroup* end, const std::byte* panel,
                                   Ask&& ask) {
  alignas(32) static constexpr int16_t kOnes[16] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
  for (; at < end; at += 2) {
    const int64_t x = at[0].row, y = at[1].row;
    const std::byte *b = panel + at[0].panel, *d = panel + at[1].panel;
    ask(at);
    __m256i left[kP], right[kP];
    const __m256i b0 = load_bytes(b), b1 = load_bytes(b + 32);
#pragma GCC unroll 8
    for (int r = 0; r < kP; ++r) {
      const __m256i a = group_of(rows[kFrom + r] + x);
      left[r] = _mm256_maddubs_epi16(a, b0);
      right[r] = _mm256_maddubs_epi16(a, b1);
    }
    const auto next = [&](int64_t offset, const std::byte* from) TOMBOLO_AVX2
        __attribute__((always_inline)) {
      const __m256i c0 = load_bytes(from), c1 = load_bytes(from + 32);
#pragma GCC unroll 8
      for (int r = 0; r < kP; ++r)
        next_of_four(left[r], right[r], group_of(rows[kFrom + r] + offset), c0, c1);
    };
    next(x + 4, b + 64);
    next(y, d);
    next(y + 4, d + 64);
#pragma GCC unroll 8
    for (int r = 0; r < kP; ++r) {
      end_four(sum[kFrom + r][0], left[r], kOnes);
      end_four(sum[kFrom + r][1], right[r], kOnes);
    }
  }
}

/// The broadcast side is unsigned, the packed one signed and sorted.
template <int kR>
TOMBOLO_AVX2_INLINE void accumulate(const QTile& t, __m256i from0, __m256i from1,
                                    __m256i (&sum)[kR][2]) {
  if constexpr (kR <= kQUnsortedRows) {
    const SortedPanel panel(t.b, t.groups);
    if ((kR > 1 || !t.streams) && t.stretches == 1 && panel.fits())
      return accumulate_in_order<kR>(t, panel, from0, from1, sum);
    return accumulate_nibbles<kR>(t, from0, from1, sum);
  }
  const QSorted& q = *t.sorted;
  if (q.less != 0) {
    const __m256i less = _mm256_set1_epi32(q.less);
    const auto* columns = reinterpret_cast<const std::byte*>(q.column_sums);
    from0 = _mm256_add_epi32(from0, _mm256_mullo_epi32(less, load_bytes(columns)));
    from1 = _mm256_add_epi32(from1, _mm256_mullo_epi32(less, load_bytes(columns + 32)));
  }
  constexpr std::make_integer_sequence<int, kR> all_rows;
  begin_sums(sum, from0, from1);
  // A register for each row: what a group adds to it, an address can.
  const std::byte* rows[kR];
#pragma GCC unroll 8
  for (int r = 0; r < kR; ++r) rows[r] = t.a + r * t.lda;
  const QGroup* at = q.groups;
  const std::byte* const panel = t.b;
  const __m256i ones = _mm256_set1_epi16(1);
  NextPanel next(t);
  // Panels of long rows are beyond the first cache, in an order that no prefetcher sees through.
  const auto soon = [&](const QGroup* group, int lines) TOMBOLO_AVX2
      __attribute__((always_inline)) {
    for (int i = 0; i < lines; ++i)
      _mm_prefetch(reinterpret_cast<const char*>(panel) + group->panel + 64 * i, _MM_HINT_T0);
  };
  // Of two groups, or of two times two neighbours.
  const auto ask_for_two = [&](const QGroup* two, int lines) TOMBOLO_AVX2
      __attribute__((always_inline)) {
    next.ask_for_twos(lines);
    soon(two + 8, lines);
    soon(two + 9, lines);
  };
  if constexpr (kR < kLeastShared) {
    for (const QGroup* end = at + 2 * q.counts[kQFour]; at < end; at += 2) {
      ask_for_two(at, 2);
      const std::byte *b = panel + at[0].panel, *d = panel + at[1].panel;
      for_rows(
          all_rows, [&](auto r) TOMBOLO_AVX2 __attribute__((always_inline)) {
            add_four(sum[r], rows[r] + at[0].row, rows[r] + at[1].row, b, d, ones);
          });
    }
  } else if (const QGroup* const fours = at; q.counts[kQFour] > 0) {
    const auto ask_for_fours = [&](const QGroup* two) TOMBOLO_AVX2 __attribute__((always_inline)) {
      ask_for_two(two, 2);
    };
    const auto ask_for_nothing = [](const QGroup*) TOMBOLO_AVX2 __attribute__((always_inline)){};
    at += 2 * q.counts[kQFour];
    add_fours<0, kRowsOfFours>(sum, rows, fours, at, panel, ask_for_fours);
    add_fours<kRowsOfFours, kR - kRowsOfFours>(sum, rows, fours, at, panel, ask_for_nothing);
  }
  for (const QGroup* end = at + 2 * q.counts[kQDouble]; at < end; at += 2) {
    const int64_t x = at[0].row, y = at[1].row;
    const std::byte *b = panel + at[0].panel, *d = panel + at[1].panel;
    const __m256i b0 = load_bytes(b);
    ask_for_two(at, 1);
    for_rows(
        all_rows, [&](auto r) TOMBOLO_AVX2 __attribute__((always_inline)) {
          add_double(sum[r][0], sum[r][1], group_of(rows[r] + x), group_of(rows[r] + y), b0, b, d,
                     ones);
        });
  }
  for (const QGroup* end = at + q.counts[kQSingle]; at < end; ++at) {
    const int64_t x = at->row;
    const std::byte* b = panel + at->panel;
    const __m256i b0 = load_bytes(b), b1 = load_bytes(b + 32);
    if ((at - q.groups) % 2 == 0) next.ask_for_twos(1);
    for_rows(
        all_rows, [&](auto r) TOMBOLO_AVX2 __attribute__((always_inline)) {
          const __m256i av = group_of(rows[r] + x);
          add_single(sum[r][0], av, b0, ones);
          add_single(sum[r][1], av, b1, ones);
        });
  }
  const auto add_ordered = [&](QKind kind) TOMBOLO_AVX2 __attribute__((always_inline)) {
    if (q.counts[kind] == 0) return;
    const __m256i by = order_of(kind);
    for (const QGroup* end = at + q.counts[kind]; at < end; ++at) {
      const int64_t x = at->row;
      const std::byte* b = panel + at->panel;
      const __m256i b0 = _mm256_shuffle_epi8(load_bytes(b), by);
      const __m256i b1 = _mm256_shuffle_epi8(load_bytes(b + 32), by);
      for_rows(
          all_rows, [&](auto r) TOMBOLO_AVX2 __attribute__((always_inline)) {
            const __m256i av = _mm256_shuffle_epi8(group_of(rows[r] + x), by);
            add_single(sum[r][0], av, b0, ones);
            add_single(sum[r][1], av, b1, ones);
          });
    }
  };
  add_ordered(kQCrossed);
  add_ordered(kQOuter);
  const __m256i low = _mm256_set1_epi16(255);
  const std::byte* wide = q.wide;
  for (const QGroup* end = at + q.counts[kQWide]; at < end; ++at, wide += 128) {
    const int64_t x = at->row;
    const __m256i b0 = load_bytes(wide), b1 = load_bytes(wide + 32);
    for_rows(
        all_rows, [&](auto r) TOMBOLO_AVX2 __attribute__((always_inline)) {
          add_wide(sum[r][0], sum[r][1], group_of(rows[r] + x), b0, b1, wide, low);
        });
  }
  const int16_t* rare = q.rare;
  for (int32_t i = 0; i < q.rares; ++i, rare += 4 * kQRareRows) {
    alignas(32) std::byte group[128];
    widen_group(panel + int64_t{q.rare_groups[i]} * 64, group);
    for_rows(
        all_rows, [&](auto r) TOMBOLO_AVX2 __attribute__((always_inline)) {
          const auto* row = reinterpret_cast<const std::byte*>(rare + 4 * r);
          const __m256i even = group_of(row), odd = group_of(row + 4);
          for (int half = 0; half < 2; ++half) {
            add_pairs(sum[r][half], even, group + 32 * half);
            add_pairs(sum[r][half], odd, group + 64 + 32 * half);
          }
        });
  }
}

template <int kR>
TOMBOLO_AVX2 void sum_tile(const QTile& t) {
  __m256i sum[kR][2];
  const __m256i zero = _mm256_setzero_si256();
  accumulate<kR>(t, zero, zero, sum);
#pragma GCC unroll 8
  for (int r = 0; r < kR; ++r) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(t.c + r * t.ldc), sum[r][0]);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(t.c + r * t.ldc + 8), sum[r][1]);
  }
}

// What finish_columns (qgemm_tile.cpp) makes of sums, here where they are: layers of few inputs
// would spend as long on writing and reading them as on the products.

template <bool kRest>
TOMBOLO_AVX2_INLINE __m256i number(const QEnds& e, int i, __m256i sum, const std::byte* rest) {
  __m256 x = _mm256_mul_ps(_mm256_cvtepi32_ps(sum), _mm256_loadu_ps(e.scale + 8 * i));
  if constexpr (kRest) {
    const __m256 first = _mm256_round_ps(
        _mm256_min_ps(_mm256_set1_ps(e.own_high), _mm256_max_ps(_mm256_set1_ps(e.own_low), x)),
        _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(rest + 8 * i));
    const __m256i wide = e.rest_signed ? _mm256_cvtepi8_epi32(bytes) : _mm256_cvtepu8_epi32(bytes);
    const __m256 other = _mm256_cvtepi32_ps(_mm256_sub_epi32(wide, _mm256_set1_epi32(e.rest_zero)));
    x = _mm256_add_ps(_mm256_mul_ps(first, _mm256_set1_ps(e.own)),
                      _mm256_mul_ps(other, _mm256_set1_ps(e.other)));
  }
  return _mm256_cvtps_epi32(x);
}

template <bool kRest>
TOMBOLO_AVX2_INLINE __m256i row_of(const QEnds& e, const __m256i (&sums)[2],
                                   const std::byte* rest) {
  return _mm256_adds_epi16(
      _mm256_packs_epi32(number<kRest>(e, 0, sums[0], rest), number<kRest>(e, 1, sums[1], rest)),
      _mm256_set1_epi16(e.zero));
}

template <int kR, bool kRest>
TOMBOLO_AVX2_INLINE void store_bytes(const QEnds& ends, const __m256i (&sum)[kR][2], int64_t row) {
  // Nobody else's: after each store of bytes what others may see is read again.
  const QEnds e = ends;
  const int64_t ldo = e.ldo;
  std::byte* to = e.out + row * ldo;
  const std::byte* rest = kRest ? e.rest + row * ldo : nullptr;
#pragma GCC unroll 8
  for (int r = 0; r < kR; r += 2, to += 2 * ldo) {
    const int next = r + 1 < kR ? r + 1 : r;
    const __m256i first = row_of<kRest>(e, sum[r], rest);
    const __m256i second =
        next == r ? first : row_of<kRest>(e, sum[next], kRest ? rest + ldo : nullptr);
    __m256i bytes = _mm256_packs_epi16(first, second);
    bytes = _mm256_max_epi8(_mm256_min_epi8(bytes, _mm256_set1_epi8(e.greatest)),
                            _mm256_set1_epi8(e.least));
    bytes = _mm256_xor_si256(bytes, _mm256_set1_epi8(e.middle));
    // Narrowing leaves fours of columns: of both vectors of the first row, then of the second.
    bytes = _mm256_permutevar8x32_epi32(bytes, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm256_castsi256_si128(bytes));
    if (next != r)
      _mm_storeu_si128(reinterpret_cast<__m128i*>(to + ldo), _mm256_extracti128_si256(bytes, 1));
    if constexpr (kRest) rest += 2 * ldo;
  }
}

/// Whole panels.
template <int kR>
TOMBOLO_AVX2_INLINE void store_words(const QEnds& ends, const __m256i (&sum)[kR][2], int64_t row) {
  const QEnds e = ends;
  float* to = reinterpret_cast<float*>(e.out) + row * e.ldo;
#pragma GCC unroll 8
  for (int r = 0; r < kR; ++r, to += e.ldo)
    for (int i = 0; i < 2; ++i) {
      if (e.integers) {
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + 8 * i), sum[r][i]);
        continue;
      }
      __m256 x = _mm256_mul_ps(_mm256_cvtepi32_ps(sum[r][i]), _mm256_loadu_ps(e.scale + 8 * i));
      if (e.bias != nullptr)
        x = _mm256_add_ps(x, _mm256_loadu_ps(e.bias + 8 * i));  // -0 + 0 would be 0
      _mm256_storeu_ps(to + 8 * i, x);
    }
}

template <int kR, bool kRest>
TOMBOLO_AVX2 void byte_tile(const QTile& t, const QEnds& e, int64_t row, int64_t /*columns*/) {
  __m256i sum[kR][2];
  const auto* add = reinterpret_cast<const __m256i*>(e.add);
  accumulate<kR>(t, _mm256_loadu_si256(add), _mm256_loadu_si256(add + 1), sum);
  store_bytes<kR, kRest>(e, sum, row);
}

template <int kR>
TOMBOLO_AVX2 void word_tile(const QTile& t, const QEnds& e, int64_t row, int64_t /*columns*/) {
  __m256i sum[kR][2];
  const auto* add = reinterpret_cast<const __m256i*>(e.add);
  accumulate<kR>(t, _mm256_loadu_si256(add), _mm256_loadu_si256(add + 1), sum);
  store_words<kR>(e, sum, row);
}

/// Pairs of 16-bit numbers on both sides (pair_tile in qgemm_tile.cpp).
template <int kR>
TOMBOLO_AVX2_INLINE void accumulate_pairs(const QTile& t, const QEnds& e, __m256i (&sum)[kR][2]) {
  const auto* add = reinterpret_cast<const __m256i*>(e.add);
  begin_sums(sum, _mm256_loadu_si256(add), _mm256_loadu_si256(add + 1));
  for (int64_t s = 0; s < t.stretches; ++s) {
    RowPointers<std::byte, kR> a(t.a + (t.offsets != nullptr ? t.offsets[s] : 0), t.lda);
    const std::byte* b = t.b + s * t.stretch_bytes;
    for (int64_t g = t.groups; g > 0; --g, a.advance(4), b += 64) {
      const __m256i b0 = load_bytes(b), b1 = load_bytes(b + 32);
#pragma GCC unroll 8
      for (int r = 0; r < kR; ++r) {
        __m256i left, right = group_of(a.at(r));
        asm("vpmaddwd %4, %3, %2\n\tvpaddd %2, %0, %0\n\t"
            "vpmaddwd %5, %3, %3\n\tvpaddd %3, %1, %1"
            : "+x"(sum[r][0]), "+x"(sum[r][1]), "=&x"(left), "+x"(right)
            : "x"(b0), "x"(b1));
      }
    }
  }
}

template <int kR, bool kRest>
TOMBOLO_AVX2 void byte_pair_tile(const QTile& t, const QEnds& e, int64_t row, int64_t /*columns*/) {
  __m256i sum[kR][2];
  accumulate_pairs<kR>(t, e, sum);
  store_bytes<kR, kRest>(e, sum, row);
}

template <int kR>
TOMBOLO_AVX2 void word_pair_tile(const QTile& t, const QEnds& e, int64_t row, int64_t /*columns*/) {
  __m256i sum[kR][2];
  accumulate_pairs<kR>(t, e, sum);
  store_words<kR>(e, sum, row);
}

// With AVX-VNNI, which processors without AVX-512 have: four products an instruction, exact.

/// In assembly: gcc otherwise keeps the sums on the stack, too.
template <QDotKind kKind>
TOMBOLO_AVX_VNNI_INLINE void add_dot(__m256i& sum, __m256i a, __m256i b) {
  if constexpr (kKind == QDotKind::kUnsignedRows)
    asm("%{vex%} vpdpbusd %2, %1, %0" : "+x"(sum) : "x"(a), "x"(b));
  if constexpr (kKind == QDotKind::kSignedRows)
    asm("%{vex%} vpdpbusd %2, %1, %0" : "+x"(sum) : "x"(b), "x"(a));
  if constexpr (kKind == QDotKind::kPairs)
    asm("%{vex%} vpdpwssd %2, %1, %0" : "+x"(sum) : "x"(a), "x"(b));
}

constexpr int kDotRows = 6;

template <int kR, QDotKind kKind>
TOMBOLO_AVX_VNNI_INLINE void add_group(const QTile& t, const RowPointers<std::byte, kR>& a, int at,
                                       const std::byte* b, const std::byte*& next,
                                       __m256i (&sum)[kR][2]) {
  const __m256i b0 = load_bytes(b), b1 = load_bytes(b + 32);
  if constexpr (kR >= kLeastAsking && kR <= kMostAsking)
    _mm_prefetch(reinterpret_cast<const char*>(b) + t.ahead, _MM_HINT_T1);
  if constexpr (kR > kMostAsking) {
    _mm_prefetch(reinterpret_cast<const char*>(next), _MM_HINT_T1);
    next += t.next_step;
  }
#pragma GCC unroll 8
  for (int r = 0; r < kR; ++r) {
    const __m256i av = group_of(a.at(r) + at);
    add_dot<kKind>(sum[r][0], av, b0);
    add_dot<kKind>(sum[r][1], av, b1);
  }
}

template <int kR, QDotKind kKind, int... kTurn>
TOMBOLO_AVX_VNNI_INLINE void accumulate_dots(const QTile& t, __m256i from0, __m256i from1,
                                             __m256i (&sum)[kR][2],
                                             std::integer_sequence<int, kTurn...>) {
  constexpr int kCount = sizeof...(kTurn);
  __m256i sums[kCount][kR][2];
  const __m256i zero = _mm256_setzero_si256();
  (begin_sums(sums[kTurn], kTurn == 0 ? from0 : zero, kTurn == 0 ? from1 : zero), ...);
  [[maybe_unused]] const std::byte* next = t.next != nullptr ? t.next : t.b;
  for (int64_t s = 0; s < t.stretches; ++s) {
    RowPointers<std::byte, kR> a(t.a + (t.offsets != nullptr ? t.offsets[s] : 0), t.lda);
    const std::byte* b = t.b + s * t.stretch_bytes;
    int64_t g = t.groups;
    for (; g >= kCount; g -= kCount, a.advance(4 * kCount), b += 64 * kCount)
      (add_group<kR, kKind>(t, a, 4 * kTurn, b + 64 * kTurn, next, sums[kTurn]), ...);
    if constexpr (kCount > 1)
      for (; g > 0; --g, a.advance(4), b += 64) add_group<kR, kKind>(t, a, 0, b, next, sums[0]);
  }
#pragma GCC unroll 8
  for (int r = 0; r < kR; ++r)
    for (int i = 0; i < 2; ++i) {
      sum[r][i] = sums[0][r][i];
      ((kTurn == 0 ? void() : void(sum[r][i] = _mm256_add_epi32(sum[r][i], sums[kTurn][r][i]))),
       ...);
    }
}

template <int kR, QDotKind kKind>
TOMBOLO_AVX_VNNI_INLINE void accumulate_dots(const QTile& t, __m256i from0, __m256i from1,
                                             __m256i (&sum)[kR][2]) {
  accumulate_dots<kR, kKind>(t, from0, from1, sum, std::make_integer_sequence<int, q_turns(kR)>());
}

template <int kR, QDotKind kKind>
TOMBOLO_AVX_VNNI void dot_tile(const QTile& t) {
  __m256i sum[kR][2];
  accumulate_dots<kR, kKind>(t, _mm256_setzero_si256(), _mm256_setzero_si256(), sum);
#pragma GCC unroll 8
  for (int r = 0; r < kR; ++r)
    for (int i = 0; i < 2; ++i) {
      auto* to = reinterpret_cast<__m256i*>(t.c + r * t.ldc + 8 * i);
      if (kKind == QDotKind::kPairs && t.add)
        sum[r][i] = _mm256_add_epi32(sum[r][i], _mm256_loadu_si256(to));
      _mm256_storeu_si256(to, sum[r][i]);
    }
}

template <int kR, bool kRest>
TOMBOLO_AVX_VNNI void byte_dot_tile(const QTile& t, const QEnds& e, int64_t row,
                                    int64_t /*columns*/) {
  __m256i sum[kR][2];
  const auto* add = reinterpret_cast<const __m256i*>(e.add);
  accumulate_dots<kR, QDotKind::kUnsignedRows>(t, _mm256_loadu_si256(add),
                                               _mm256_loadu_si256(add + 1), sum);
  store_bytes<kR, kRest>(e, sum, row);
}

/// Of short sums: what is done from tile to tile outside takes a tenth of their time.
template <bool kRest>
TOMBOLO_AVX_VNNI void byte_dot_lines(const QTile& t, const QEnds& e, int64_t row, int64_t count,
                                     int64_t columns) {
  QTile line = t;
  for (int64_t i = 0; i < count; ++i, line.a += kDotRows * t.lda, row += kDotRows)
    byte_dot_tile<kDotRows, kRest>(line, e, row, columns);
}

template <int kR>
TOMBOLO_AVX_VNNI void word_dot_tile(const QTile& t, const QEnds& e, int64_t row,
                                    int64_t /*columns*/) {
  __m256i sum[kR][2];
  const auto* add = reinterpret_cast<const __m256i*>(e.add);
  accumulate_dots<kR, QDotKind::kUnsignedRows>(t, _mm256_loadu_si256(add),
                                               _mm256_loadu_si256(add + 1), sum);
  store_words<kR>(e, sum, row);
}

template <int... kR>
void fill_dots(QTiles& tiles, std::integer_sequence<int, kR...>) {
  ((tiles.unsigned_rows[kR + 1] = &dot_tile<kR + 1, QDotKind::kUnsignedRows>), ...);
  ((tiles.signed_rows[kR + 1] = &dot_tile<kR + 1, QDotKind::kSignedRows>), ...);
  ((tiles.byte_rows[0][kR + 1] = &byte_dot_tile<kR + 1, false>), ...);
  ((tiles.byte_rows[1][kR + 1] = &byte_dot_tile<kR + 1, true>), ...);
  ((tiles.word_rows[kR + 1] = &word_dot_tile<kR + 1>), ...);
}
template <int... kR>
void fill_pairs(QTiles& tiles, std::integer_sequence<int, kR...>) {
  ((tiles.unsigned_rows[kR + 1] = tiles.signed_rows[kR + 1] = &dot_tile<kR + 1, QDotKind::kPairs>),
   ...);
}

template <int... kR>
void fill(QTiles& tiles, std::integer_sequence<int, kR...>) {
  // Only unsigned rows: of images in panels (QLinearConv) the weights are the broadcast side.
  ((tiles.unsigned_rows[kR + 1] = &sum_tile<kR + 1>), ...);
  ((tiles.byte_rows[0][kR + 1] = &byte_tile<kR + 1, false>), ...);
  ((tiles.byte_rows[1][kR + 1] = &byte_tile<kR + 1, true>), ...);
  ((tiles.word_rows[kR + 1] = &word_tile<kR + 1>), ...);
}
template <int... kR>
void fill_ends(QTiles& tiles, std::integer_sequence<int, kR...>) {
  ((tiles.byte_rows[0][kR + 1] = &byte_pair_tile<kR + 1, false>), ...);
  ((tiles.byte_rows[1][kR + 1] = &byte_pair_tile<kR + 1, true>), ...);
  ((tiles.word_rows[kR + 1] = &word_pair_tile<kR + 1>), ...);
}

}  // namespace

QTiles make_byte_tiles() {
  QTiles tiles{.max_rows = kQRareRows,
               .panel = 16,
               .group = 4,
               .element = 1,
               .sorted = true,
               .name = "sorted bytes"};
  tiles.least_columns = tiles.panel;
  // None asks for QTile::ahead: the next panel is asked for line by line.
  tiles.most_asking = kQUnsortedRows;
  tiles.least_asking = tiles.most_asking + 1;
  tiles.shares = true;
  fill(tiles, std::make_integer_sequence<int, kQRareRows>());
  return tiles;
}

QTiles with_ends(QTiles pairs) {
  pairs.least_columns = pairs.panel;
  fill_ends(pairs, std::make_integer_sequence<int, 5>());
  return pairs;
}

QTiles make_avx_vnni_tiles() {
  QTiles tiles{.max_rows = kDotRows, .panel = 16, .group = 4, .element = 1, .name = "avx vnni"};
  tiles.least_columns = tiles.panel;
  tiles.least_asking = kLeastAsking;
  tiles.most_asking = kMostAsking;
  tiles.shares = true;
  tiles.line_rows = kDotRows;
  tiles.line_groups = 32;
  tiles.byte_lines[0] = &byte_dot_lines<false>;
  tiles.byte_lines[1] = &byte_dot_lines<true>;
  fill_dots(tiles, std::make_integer_sequence<int, kDotRows>());
  return tiles;
}

QTiles make_avx_vnni_pair_tiles() {
  QTiles tiles{
      .max_rows = kDotRows, .panel = 16, .group = 2, .element = 2, .name = "avx vnni pairs"};
  tiles.least_asking = kLeastAsking;
  tiles.most_asking = kMostAsking;
  tiles.shares = true;
  fill_pairs(tiles, std::make_integer_sequence<int, kDotRows>());
  return tiles;
}

}  // namespace tombolo

#else

namespace tombolo {
QTiles make_byte_tiles() { return {}; }
QTiles with_ends(QTiles pairs) { return pairs; }
QTiles make_avx_vnni_tiles() { return {}; }
QTiles make_avx_vnni_pair_tiles() { return {}; }
}  // namespace tombolo

#endif
