// What qgemm_sorted.h asks of bytes, with AVX2: panels of 16 columns, in groups of four bytes of k,
// and rows of them.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <utility>
#include <vector>

#include "runtime/kernels/quant/qgemm_sorted.h"

#if defined(__x86_64__)
#include "runtime/kernels/quant/avx2_bytes.h"

namespace tombolo {
namespace {

/// What the positive and what the negative numbers of each two neighbours add up to, 255 at most.
struct Range {
  __m256i above, below;
};

TOMBOLO_AVX2_INLINE __m256i two_sums(__m256i x, __m256i y) {
  const __m256i ones = _mm256_set1_epi8(1);
  return _mm256_packus_epi16(_mm256_maddubs_epi16(x, ones), _mm256_maddubs_epi16(y, ones));
}

TOMBOLO_AVX2_INLINE Range range_of(const std::byte* group, QKind kind = kQSingle) {
  const __m256i zero = _mm256_setzero_si256(), order = order_of(kind);
  const __m256i x = _mm256_shuffle_epi8(load_bytes(group), order);
  const __m256i y = _mm256_shuffle_epi8(load_bytes(group + 32), order);
  return {two_sums(_mm256_max_epi8(x, zero), _mm256_max_epi8(y, zero)),
          two_sums(_mm256_sub_epi8(zero, _mm256_min_epi8(x, zero)),
                   _mm256_sub_epi8(zero, _mm256_min_epi8(y, zero)))};
}

TOMBOLO_AVX2 uint8_t largest(const Range& range) {
  const __m256i x = _mm256_max_epu8(range.above, range.below);
  __m128i most = _mm_max_epu8(_mm256_castsi256_si128(x), _mm256_extracti128_si256(x, 1));
  most = _mm_max_epu8(most, _mm_srli_epi16(most, 8));
  // The largest is what is least of what is left of 255.
  const __m128i left = _mm_and_si128(_mm_xor_si128(most, _mm_set1_epi8(-1)), _mm_set1_epi16(255));
  return static_cast<uint8_t>(255 - _mm_extract_epi16(_mm_minpos_epu16(left), 0));
}

/// What may add up to so that 16 bits hold products with numbers up to the cap; sums of 255 may be
/// more.
constexpr uint8_t most_at(int cap) { return static_cast<uint8_t>(std::min(254, 32767 / cap)); }

/// Sorts the groups of one panel by what fits sums of 16 bits.
class Sorter {
 public:
  TOMBOLO_AVX2 Sorter(const std::byte* panel, int64_t stretches, int64_t groups) {
    const auto all = static_cast<size_t>(stretches * groups);
    units_.reserve(all);
    twos_.reserve(all / 2);
    for (size_t i = 0; i < all; ++i) {
      const std::byte* group = panel + i * 64;
      Unit& unit = units_.emplace_back(unit_of(i, range_of(group)));
      if (unit.largest <= most_at(255)) continue;  // it fits in its own order
      unit.crossed = largest(range_of(group, kQCrossed));
      unit.outer = largest(range_of(group, kQOuter));
    }
    // Two neighbours of one stretch: they are neighbours in a row, too.
    for (size_t i = 0; i + 1 < all; ++i)
      if (const size_t at = i % static_cast<size_t>(groups);
          at % 2 == 0 && at + 1 < static_cast<size_t>(groups))
        twos_.push_back(unit_of(i, sums_of(units_[i], units_[i + 1])));
    by_size_ = by_size(units_);
    twos_by_size_ = by_size(twos_);
  }

  /// For numbers up to `cap`: counts of each kind and their groups, in that order.
  TOMBOLO_AVX2 void sort_for(int cap, int32_t* counts, uint16_t* order) const {
    const uint8_t most = most_at(cap);
    std::vector<bool> done(units_.size());
    auto fours = pairs_of(twos_, twos_by_size_, most);
    for (const uint16_t i : fours) done[i] = done[i + 1u] = true;
    std::vector<uint16_t> kinds[kQKinds], single;
    for (const uint16_t i : by_size_) {
      if (done[i]) continue;
      const QKind kind = kind_of(units_[i], most);
      (kind == kQSingle ? single : kinds[kind]).push_back(i);
    }
    kinds[kQDouble] = pairs_of(units_, single, most);
    for (const uint16_t i : kinds[kQDouble]) done[i] = true;
    for (const uint16_t i : single)
      if (!done[i]) kinds[kQSingle].push_back(i);
    // Read from the front to the back, as prefetchers expect it.
    order_pairs(fours);
    order_pairs(kinds[kQDouble]);
    for (int k = kQSingle; k < kQKinds; ++k) std::sort(kinds[k].begin(), kinds[k].end());
    counts[kQFour] = static_cast<int32_t>(fours.size() / 2);
    uint16_t* to = std::copy(fours.begin(), fours.end(), order);
    for (int k = kQDouble; k < kQKinds; ++k) {
      counts[k] = static_cast<int32_t>(kinds[k].size() / (k == kQDouble ? 2 : 1));
      to = std::copy(kinds[k].begin(), kinds[k].end(), to);
    }
  }

 private:
  /// A group, or two neighbours, the first of which it has the index of.
  struct Unit {
    std::byte range[64];  ///< Range
    uint16_t index;
    uint8_t largest, crossed, outer;  ///< in each order of a group
  };

  TOMBOLO_AVX2 static Unit unit_of(size_t index, const Range& range) {
    const uint8_t most = tombolo::largest(range);
    Unit unit{{}, static_cast<uint16_t>(index), most, most, most};
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(unit.range), range.above);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(unit.range + 32), range.below);
    return unit;
  }
  TOMBOLO_AVX2_INLINE static Range sums_of(const Unit& x, const Unit& y) {
    return {_mm256_adds_epu8(load_bytes(x.range), load_bytes(y.range)),
            _mm256_adds_epu8(load_bytes(x.range + 32), load_bytes(y.range + 32))};
  }

  /// Places of units, the largest first.
  static std::vector<uint16_t> by_size(const std::vector<Unit>& units) {
    std::vector<uint16_t> places(units.size());
    size_t begin[257] = {};
    for (const Unit& unit : units) ++begin[256 - unit.largest];
    for (int i = 1; i <= 256; ++i) begin[i] += begin[i - 1];
    for (size_t i = 0; i < units.size(); ++i)
      places[begin[255 - units[i].largest]++] = static_cast<uint16_t>(i);
    return places;
  }

  /// Finds pairs of units that fit together, two neighbours each: the largest are given the first
  /// partner that they find among the smallest.
  TOMBOLO_AVX2 static std::vector<uint16_t> pairs_of(const std::vector<Unit>& units,
                                                     const std::vector<uint16_t>& places,
                                                     uint8_t most) {
    constexpr int kTries = 16;
    std::vector<uint8_t> taken(places.size());
    std::vector<uint16_t> pairs;
    const __m256i limit = _mm256_set1_epi8(static_cast<char>(most));
    size_t least = places.size();
    for (size_t i = 0; i < places.size(); ++i) {
      const Unit& unit = units[places[i]];
      if (taken[i] || unit.largest > most) continue;
      while (least > 0 && taken[least - 1]) --least;
      int tries = 0;
      for (size_t j = least; j-- > i + 1 && tries < kTries;) {
        if (taken[j]) continue;
        ++tries;
        const Unit& other = units[places[j]];
        const Range sums = sums_of(unit, other);
        const __m256i over = _mm256_subs_epu8(_mm256_max_epu8(sums.above, sums.below), limit);
        if (_mm256_testz_si256(over, over) == 0) continue;
        taken[j] = 1;
        pairs.push_back(unit.index);
        pairs.push_back(other.index);
        break;
      }
    }
    return pairs;
  }

  static void order_pairs(std::vector<uint16_t>& pairs) {
    std::vector<std::pair<uint16_t, uint16_t>> sorted;
    for (size_t i = 0; i < pairs.size(); i += 2)
      sorted.push_back(std::minmax({pairs[i], pairs[i + 1]}));
    std::sort(sorted.begin(), sorted.end());
    pairs.clear();
    for (const auto& [first, second] : sorted) pairs.insert(pairs.end(), {first, second});
  }

  /// The least demanding kind of a group that stands alone.
  static QKind kind_of(const Unit& unit, uint8_t most) {
    return unit.largest <= most   ? kQSingle
           : unit.crossed <= most ? kQCrossed
           : unit.outer <= most   ? kQOuter
                                  : kQWide;
  }

  std::vector<Unit> units_, twos_;
  std::vector<uint16_t> by_size_, twos_by_size_;
};

/// Eight bytes in the lower half of a register.
TOMBOLO_AVX2_INLINE __m128i load_eight(const std::byte* at) {
  return _mm_loadl_epi64(reinterpret_cast<const __m128i*>(at));
}

/// `count` bytes, at most eight, at the end of a row of `run`.
inline uint64_t last_bytes(const std::byte* at, int64_t count, int64_t run) {
  uint64_t word = 0;
  if (run >= 8) {
    __builtin_memcpy(&word, at + count - 8, 8);
    return word >> 8 * (8 - count);
  }
  for (int64_t i = 0; i < count; ++i) word |= static_cast<uint64_t>(at[i]) << 8 * i;
  return word;
}

/// The largest byte of each four, eight of them in the lower half.
TOMBOLO_AVX2_INLINE __m128i most_of_fours(__m256i x) {
  x = _mm256_max_epu8(x, _mm256_srli_epi32(x, 16));
  x = _mm256_max_epu8(x, _mm256_srli_epi32(x, 8));
  x = _mm256_shuffle_epi8(x, _mm256_set1_epi32(0x0c080400));
  return _mm_unpacklo_epi32(_mm256_castsi256_si128(x), _mm256_extracti128_si256(x, 1));
}
/// The smallest: what is least is most of what is left of 255.
TOMBOLO_AVX2_INLINE __m128i least_of_fours(__m256i x) {
  return _mm_xor_si128(most_of_fours(_mm256_xor_si256(x, _mm256_set1_epi8(-1))), _mm_set1_epi8(-1));
}

}  // namespace

TOMBOLO_AVX2 void q_sort_groups(const std::byte* panel, int64_t stretches, int64_t groups,
                                int32_t* counts, uint16_t* order) {
  const Sorter sorter(panel, stretches, groups);
  for (size_t i = 0; i < std::size(kQCaps); ++i, counts += kQKinds, order += stretches * groups)
    sorter.sort_for(kQCaps[i], counts, order);
}

TOMBOLO_AVX2 int64_t q_count_wide(const std::byte* panel, int64_t groups) {
  int64_t count = 0;
  for (int64_t i = 0; i < groups; ++i, panel += 64) {
    bool wide = true;
    for (const QKind kind : {kQSingle, kQCrossed, kQOuter})
      wide = wide && largest(range_of(panel, kind)) > most_at(255);
    count += wide ? 1 : 0;
  }
  return count;
}

TOMBOLO_AVX2 void q_widen_group(const std::byte* group, std::byte* out) { widen_group(group, out); }

TOMBOLO_AVX2 int64_t q_count_above(const uint8_t* x, int64_t n, uint8_t limit) {
  const __m256i most = _mm256_set1_epi8(static_cast<char>(limit));
  int64_t count = 0, i = 0;
  for (; i + 32 <= n; i += 32) {
    const __m256i over =
        _mm256_subs_epu8(load_bytes(reinterpret_cast<const std::byte*>(x + i)), most);
    count += 32 - __builtin_popcount(static_cast<uint32_t>(
                      _mm256_movemask_epi8(_mm256_cmpeq_epi8(over, _mm256_setzero_si256()))));
  }
  for (; i < n; ++i) count += x[i] > limit;
  return count;
}

TOMBOLO_AVX2 void q_range_of_groups(const std::byte* a, int64_t lda, int32_t rows, int64_t run,
                                    uint8_t* most, uint8_t* least) {
  int64_t i = 0;
  for (; i + 32 <= run; i += 32, a += 32, most += 8, least += 8) {
    __m256i x = load_bytes(a), y = x;
    for (int32_t r = 1; r < rows; ++r) {
      const __m256i row = load_bytes(a + r * lda);
      x = _mm256_max_epu8(x, row);
      y = _mm256_min_epu8(y, row);
    }
    _mm_storel_epi64(reinterpret_cast<__m128i*>(most), most_of_fours(x));
    _mm_storel_epi64(reinterpret_cast<__m128i*>(least), least_of_fours(y));
  }
  for (; i < run; i += 8, a += 8, most += 2, least += 2) {
    const int64_t left = std::min<int64_t>(8, run - i);
    // Of fewer than eight, zeros are above those that count, and are none of the smallest.
    const uint64_t beyond = left < 8 ? ~uint64_t{0} << 8 * left : 0;
    __m128i x = _mm_setzero_si128(), y = _mm_set1_epi8(-1);
    for (int32_t r = 0; r < rows; ++r) {
      const uint64_t word = last_bytes(a + r * lda, left, run);
      x = _mm_max_epu8(x, _mm_cvtsi64_si128(static_cast<int64_t>(word)));
      y = _mm_min_epu8(y, _mm_cvtsi64_si128(static_cast<int64_t>(word | beyond)));
    }
    const int high = _mm_extract_epi16(most_of_fours(_mm256_castsi128_si256(x)), 0);
    const int low = _mm_extract_epi16(least_of_fours(_mm256_castsi128_si256(y)), 0);
    most[0] = static_cast<uint8_t>(high);
    least[0] = static_cast<uint8_t>(low);
    if (left <= 4) continue;
    most[1] = static_cast<uint8_t>(high >> 8);
    least[1] = static_cast<uint8_t>(low >> 8);
  }
}

TOMBOLO_AVX2 void q_copy_less(const std::byte* from, int64_t step, int32_t rows, int64_t run,
                              uint8_t less, std::byte* to, int64_t to_step) {
  const __m256i x = _mm256_set1_epi8(static_cast<char>(less));
  const __m128i half = _mm256_castsi256_si128(x);
  const auto copy_eight = [&](int64_t i) TOMBOLO_AVX2 {
    _mm_storel_epi64(reinterpret_cast<__m128i*>(to + i), _mm_sub_epi8(load_eight(from + i), half));
  };
  for (int32_t r = 0; r < rows; ++r, from += step, to += to_step) {
    int64_t i = 0;
    for (; i + 32 <= run; i += 32)
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + i),
                          _mm256_sub_epi8(load_bytes(from + i), x));
    for (; i + 8 <= run; i += 8) copy_eight(i);
    if (i == run) continue;
    if (run >= 8) {
      copy_eight(run - 8);
    } else {
      for (; i < run; ++i) to[i] = static_cast<std::byte>(static_cast<uint8_t>(from[i]) - less);
    }
  }
}

TOMBOLO_AVX2 void q_place_groups(const uint16_t* order, int64_t n, uint32_t first, QGroup* to) {
  static_assert(sizeof(QGroup) == 8 && offsetof(QGroup, panel) == 4);
  const __m256i begin = _mm256_set1_epi32(static_cast<int32_t>(first));
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    const auto* from = reinterpret_cast<const __m128i*>(order + i);
    const __m256i group = _mm256_cvtepu16_epi32(_mm_loadu_si128(from));
    const __m256i row = _mm256_add_epi32(_mm256_slli_epi32(group, 2), begin);
    const __m256i panel = _mm256_slli_epi32(group, 6);
    const __m256i low = _mm256_unpacklo_epi32(row, panel);  // of groups 0, 1, 4 and 5
    const __m256i high = _mm256_unpackhi_epi32(row, panel);
    auto* out = reinterpret_cast<__m256i*>(to + i);
    _mm256_storeu_si256(out, _mm256_permute2x128_si256(low, high, 0x20));
    _mm256_storeu_si256(out + 1, _mm256_permute2x128_si256(low, high, 0x31));
  }
  for (; i < n; ++i) to[i] = {order[i] * 4u + first, order[i] * 64u};
}

}  // namespace tombolo

#else

namespace tombolo {
void q_sort_groups(const std::byte*, int64_t, int64_t, int32_t*, uint16_t*) {}
int64_t q_count_wide(const std::byte*, int64_t) { return 0; }
void q_widen_group(const std::byte*, std::byte*) {}
int64_t q_count_above(const uint8_t*, int64_t, uint8_t) { return 0; }
void q_range_of_groups(const std::byte*, int64_t, int32_t, int64_t, uint8_t*, uint8_t*) {}
void q_copy_less(const std::byte*, int64_t, int32_t, int64_t, uint8_t, std::byte*, int64_t) {}
void q_place_groups(const uint16_t*, int64_t, uint32_t, QGroup*) {}
}  // namespace tombolo

#endif
