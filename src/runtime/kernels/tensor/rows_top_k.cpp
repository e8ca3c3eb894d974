// TopK: of few, by what is beyond the best so far; of many, digit by digit.

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <compare>
#include <functional>
#include <limits>
#include <numeric>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "ops/kernels/order_key.h"
#include "runtime/kernels/blocks.h"
#include "runtime/kernels/isa.h"
#include "runtime/kernels/kernel.h"
#include "runtime/kernels/matmul/gemm.h"
#include "runtime/kernels/tensor/axis_lines.h"
#include "runtime/kernels/tensor/best_columns.h"
#include "runtime/kernels/tensor/lookup.h"
#include "runtime/kernels/tensor/order_keys.h"
#include "runtime/kernels/tensor/transpose_tile.h"
#include "runtime/kernels/tensor/turned_blocks.h"

namespace tombolo {
namespace {

constexpr int64_t kFew = 24;
constexpr int64_t kShortLine = 64;  ///< such lines are turned into columns
constexpr int64_t kFewColumns = 8;  ///< less than these leave lanes empty

bool supports_topk(const KernelQuery& q) {
  AxisLines state;
  if (active_isa() == Isa::kScalar || q.opset < 10 || q.inputs.size() != 2 ||
      !read_lines(q.dims(0), q.attributes.get_int("axis", -1), state) || q.constant(1) == nullptr ||
      q.dtype(1) != DType::kInt64 || q.constant(1)->size() != 1)
    return false;
  const int64_t k = q.constant(1)->get_int64(0);
  if (k < 1 || k > state.length) return false;
  switch (q.dtype(0)) {
    case DType::kFloat32:
    case DType::kFloat64:
    case DType::kInt32:
    case DType::kInt64:
    case DType::kFloat16:
    case DType::kBFloat16:
      return true;
    default:
      return false;
  }
}
struct TopkState final : AxisLines {
  int64_t k = 1;
  bool largest = true;
  bool sorted = true;  ///< the best first; else by their places
  Dims output;
};
Result<std::unique_ptr<KernelState>> prepare_topk(const PrepareContext& q) {
  auto state = std::make_unique<TopkState>();
  const int64_t axis = q.attributes.get_int("axis", -1);
  read_lines(q.dims(0), axis, *state);
  state->k = q.constant(1)->get_int64(0);
  if (is_short_float(q.dtype(0)))
    state->scratch_bytes = static_cast<size_t>(q.inputs[0].size()) * sizeof(float);
  state->largest = q.attributes.get_int("largest", 1) != 0;
  state->sorted = q.attributes.get_int("sorted", 1) != 0;
  state->output = Dims(q.dims(0));
  state->output[static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(q.dims(0).size())
                                             : axis)] = state->k;
  return state;
}

/// A number and its place as one thing that can be sorted: the greater one is the better one.
template <typename T>
struct Ranking {
  struct Number {
    uint64_t key, rest;
    auto operator<=>(const Number&) const = default;
  };
  uint64_t flip;  ///< all ones where the least are wanted

  explicit Ranking(bool largest) : flip(largest ? 0 : UINT64_MAX) {}
  Number operator()(T x, int64_t i) const {
    using Wide = std::conditional_t<std::is_floating_point_v<T>, double, int64_t>;
    return {ops::order_key(static_cast<Wide>(x)) ^ flip, UINT64_MAX - static_cast<uint64_t>(i)};
  }
  static int64_t place(const Number& number) {
    return static_cast<int64_t>(UINT64_MAX - number.rest);
  }
};
template <>
struct Ranking<float> {
  using Number = uint64_t;
  uint32_t flip;

  explicit Ranking(bool largest) : flip(largest ? 0 : UINT32_MAX) {}
  Number operator()(float x, int64_t i) const {
    return uint64_t{ops::order_key(x) ^ flip} << 32 | (UINT32_MAX - static_cast<uint32_t>(i));
  }
  static int64_t place(Number number) {
    return static_cast<int64_t>(UINT32_MAX - static_cast<uint32_t>(number));
  }
};

/// The best few of x, the best first, kept in order as they come.
void best_few(const float* x, int64_t n, int64_t k, bool largest, uint64_t* found) {
  const Ranking<float> rank(largest);
  int64_t count = 0;
  const auto insert = [&](uint64_t number) {
    int64_t at = count < k ? count++ : k - 1;
    for (; at > 0 && found[at - 1] < number; --at) found[at] = found[at - 1];
    found[at] = number;
  };
  constexpr int64_t kRun = 1024, kShort = 24, kBounded = 64;
  if (n <= kShort) {
    for (int64_t i = 0; i < n; ++i)
      if (const uint64_t number = rank(x[i], i); count < k || number > found[k - 1]) insert(number);
    return;
  }
  // A bound first; where there is none yet, short runs: what is looked for gets better quickly.
  const bool bounded = n >= kBounded;
  float limit = bounded ? bound_of_best(x, n, k, largest) : std::numeric_limits<float>::quiet_NaN();
  bool inclusive = bounded;
  int32_t places[kRun + 16];
  for (int64_t i = 0, run = bounded ? kRun : std::max<int64_t>(k, 16); i < n;
       i += run, run = std::min(2 * run, kRun)) {
    run = std::min(run, n - i);
    const int64_t some = places_beyond(x + i, run, limit, inclusive, largest, places);
    for (int64_t j = 0; j < some; ++j) {
      const uint64_t number = rank(x[i + places[j]], i + places[j]);
      if (count < k || number > found[k - 1]) insert(number);
    }
    if (count < k) continue;
    // What is no better than the last of them stays out; NaN as a bound lets everything in.
    limit = x[Ranking<float>::place(found[k - 1])];
    inclusive = false;
  }
}

/// The next worse number, if there is one.
template <typename T>
T next_worse(T x, bool largest) {
  using Limits = std::numeric_limits<T>;
  if constexpr (std::is_floating_point_v<T>)
    return std::nextafter(x, largest ? -Limits::infinity() : Limits::infinity());
  else
    return largest ? static_cast<T>(x - (x != Limits::lowest()))
                   : static_cast<T>(x + (x != Limits::max()));
}

/// The same for other numbers, NaN the greatest.
template <typename T>
void best_few(const T* x, int64_t n, int64_t k, bool largest, typename Ranking<T>::Number* found) {
  const Ranking<T> rank(largest);
  int64_t count = 0;
  // A bound first: what does not reach it is none of the best. Nothing is worse than the worst.
  constexpr int64_t kBounded = 64;
  const T bound = n >= kBounded ? bound_of_best(x, n, k, largest) : T{0};
  T limit = next_worse(bound, largest);
  const bool bounded = n >= kBounded && limit != bound && bound == bound;
  for (int64_t i = 0; i < n; ++i) {
    if (bounded || count == k) {
      i = first_beyond(x, i, n, limit, largest);
      if (i == n) return;
    }
    const auto number = rank(x[i], i);
    if (count == k && number < found[k - 1]) continue;
    int64_t at = count < k ? count++ : k - 1;
    for (; at > 0 && found[at - 1] < number; --at) found[at] = found[at - 1];
    found[at] = number;
    if (count == k) limit = x[Ranking<T>::place(found[k - 1])];
  }
}

/// The best k of many: of each part of a line only what is better than the worst of the best so far
/// is looked at, and those are cut to k by the digits of their keys. All stay in order of place.
template <typename T>
class BestOfMany {
 public:
  /// Of lines of n; in memory of the calling thread.
  BestOfMany(int64_t k, int64_t n, bool largest, bool sorted)
      : k_(k), n_(n), largest_(largest), sorted_(sorted) {
    constexpr int64_t kPart = 4096;
    part_ = 4 * k >= n ? n : std::min(n, std::max(4 * k, kPart));
    const int64_t most = part_ == n ? n : k + part_ / 2 + part_;
    size_t bytes = 0;
    const auto take = [&](int64_t count, size_t size) {
      const size_t at = bytes;
      bytes += round_up(count * static_cast<int64_t>(size), 64);
      return at;
    };
    const size_t keys = take(most, sizeof(Key)), left = take(most, sizeof(Key));
    const bool direct = part_ == n || std::is_same_v<T, float>;
    const size_t part_keys = take(direct ? 0 : part_, sizeof(Key));
    const size_t places = take(most + kSpare, 4), chosen = take(most + kSpare, 4);
    const size_t numbered = take(sorted ? k : 0, sizeof(Numbered));
    const size_t room = take(sorted ? k : 0, sizeof(Numbered));
    auto* const all = reinterpret_cast<std::byte*>(thread_floats(0, bytes / sizeof(float)));
    keys_ = reinterpret_cast<Key*>(all + keys);
    left_ = reinterpret_cast<Key*>(all + left);
    part_keys_ = reinterpret_cast<Key*>(all + part_keys);
    places_ = reinterpret_cast<int32_t*>(all + places);
    chosen_ = reinterpret_cast<int32_t*>(all + chosen);
    numbered_ = reinterpret_cast<Numbered*>(all + numbered);
    room_ = reinterpret_cast<Numbered*>(all + room);
  }

  /// The places in x[0..n) of its best k.
  const int32_t* find(const T* x) {
    const int64_t part = part_;
    order_keys(x, part, largest_, keys_);
    std::iota(places_, places_ + part, 0);
    int64_t held = part;
    Key least = 0;
    for (int64_t at = part;; at += part) {
      // Few more are no trouble yet, and to cut them takes as long as to look at a part.
      if (held > k_ + (at < n_ ? std::min(k_ / 2, part_ / 2) : 0)) {
        least = cut(narrow(held));
        held = k_;
      }
      if (at >= n_ || least == std::numeric_limits<Key>::max()) break;
      held += add_better(x, at, std::min(part, n_ - at), least, held);
    }
    if (sorted_) sort();
    return places_;
  }

 private:
  using Key = OrderKey<T>;
  struct Numbered {
    Key key;
    int32_t place;
  };
  static constexpr int64_t kSpare = 64;  ///< what places_from() may write beyond the last

  /// The k-th greatest of n keys and how many that are equal to it are among the best; or one that
  /// just the best k reach.
  struct Bound {
    Key least;
    int64_t equal;
  };
  template <int kBits>
  Bound bound_of(const Key* from, int64_t n) {
    constexpr int64_t kFewKeys = 128;
    constexpr size_t kDigits = size_t{1} << kBits;
    int64_t wanted = k_;
    while (n > kFewKeys) {
      Key apart = 0;
      for (int64_t i = 0; i < n; ++i) apart |= from[i] ^ from[0];
      if (apart == 0) return {from[0], wanted};
      const int shift = std::max(0, static_cast<int>(std::bit_width(apart)) - kBits);
      const auto digit = [&](Key key) { return static_cast<size_t>(key >> shift) % kDigits; };
      // Two counts: one and the same twice in turn would wait for itself.
      std::array<uint32_t, kDigits> even{}, odd{};
      int64_t i = 0;
      for (; i + 2 <= n; i += 2) {
        ++even[digit(from[i])];
        ++odd[digit(from[i + 1])];
      }
      if (i < n) ++even[digit(from[i])];
      size_t at = kDigits;
      int64_t here = 0;
      do {
        wanted -= here;
        --at;
        here = int64_t{even[at]} + int64_t{odd[at]};
      } while (here < wanted);
      const Key common = from[0] >> shift >> kBits << kBits;
      const Key upper = common | static_cast<Key>(at);
      if (here == wanted) return {static_cast<Key>(upper << shift), wanted};
      int64_t left = 0;
      for (int64_t j = 0; j < n; ++j) {
        const Key key = from[j];
        left_[left] = key;
        left += key >> shift == upper ? 1 : 0;
      }
      from = left_;
      n = left;
    }
    if (from != left_) std::copy_n(from, n, left_);
    Key* const nth = left_ + wanted - 1;
    std::nth_element(left_, nth, left_ + n, std::greater<>());
    // Those before it are as great at least.
    return {*nth, wanted - std::count_if(left_, nth, [&](Key key) { return key > *nth; })};
  }

  /// What is better than `least` among x[at..at + n) goes behind the first `held`; gives how many.
  int64_t add_better(const T* x, int64_t at, int64_t n, Key least, int64_t held) {
    int64_t better = 0;
    if constexpr (std::is_same_v<T, float>) {
      // Numbers as they are, in order of which few need a key. NaN comes in, and is cut again.
      const float limit = ops::float_of_order_key(largest_ ? least : ~least);
      better = places_beyond(x + at, n, limit, false, largest_, chosen_);
      for (int64_t j = 0; j < better; ++j)
        keys_[held + j] = ops::order_key(x[at + chosen_[j]]) ^ (largest_ ? 0 : UINT32_MAX);
    } else {
      order_keys(x + at, n, largest_, part_keys_);
      better = places_from(part_keys_, n, static_cast<Key>(least + 1), chosen_);
      for (int64_t j = 0; j < better; ++j) keys_[held + j] = part_keys_[chosen_[j]];
    }
    for (int64_t j = 0; j < better; ++j) places_[held + j] = static_cast<int32_t>(at) + chosen_[j];
    return better;
  }

  /// Of the first n, many times k, what may be among the best k; gives how many. The greatest of
  /// some are looked at first: where k of those reach a bound, so do the best k.
  int64_t narrow(int64_t n) {
    const int64_t rows = std::min<int64_t>(16, n / (4 * k_)),
                  columns = n / std::max<int64_t>(rows, 1);
    if (rows < 2) return n;
    auto* const greatest = reinterpret_cast<Key*>(chosen_);  // as large as half of all keys
    greatest_keys(keys_, columns, rows, greatest);
    const Key least = bound_of<8>(greatest, columns).least;
    const int64_t some = places_from(keys_, n, least, chosen_);
    for (int64_t j = 0; j < some; ++j) {
      keys_[j] = keys_[chosen_[j]];
      places_[j] = places_[chosen_[j]];
    }
    return some;
  }

  /// Of the first n only the best k stay; gives the least key of them.
  Key cut(int64_t n) {
    constexpr int64_t kMany = 8192;
    Bound bound = n >= kMany ? bound_of<11>(keys_, n) : bound_of<8>(keys_, n);
    const int64_t some = places_from(keys_, n, bound.least, chosen_);
    const bool all = some == k_;
    Key least = std::numeric_limits<Key>::max();
    int64_t to = 0;
    for (int64_t j = 0; j < some; ++j) {
      const int32_t from = chosen_[j];
      const Key key = keys_[from];
      keys_[to] = key;
      places_[to] = places_[from];
      const bool equal = key == bound.least;
      const bool stays = all || !equal || bound.equal > 0;
      bound.equal -= equal ? 1 : 0;
      least = stays ? std::min(least, key) : least;
      to += stays ? 1 : 0;
    }
    return least;
  }

  /// The best first; of equals the first, as they stand already.
  void sort() {
    Key apart = 0;
    for (int64_t i = 0; i < k_; ++i) {
      numbered_[i] = {keys_[i], places_[i]};
      apart |= keys_[i] ^ keys_[0];
    }
    constexpr int64_t kFewNumbers = 64, kManyNumbers = 2048;
    if (k_ < kFewNumbers)
      std::sort(numbered_, numbered_ + k_, [](const Numbered& a, const Numbered& b) {
        return a.key > b.key || (a.key == b.key && a.place < b.place);
      });
    else if (k_ < kManyNumbers)
      sort_by_digits<8>(static_cast<int>(std::bit_width(apart)));
    else
      sort_by_digits<11>(static_cast<int>(std::bit_width(apart)));
    for (int64_t i = 0; i < k_; ++i) places_[i] = numbered_[i].place;
  }
  /// By the lowest digit at first. Keys differ in their lower `bits` alone.
  template <int kBits>
  void sort_by_digits(int bits) {
    constexpr size_t kDigits = size_t{1} << kBits;
    std::array<uint32_t, kDigits> starts;
    for (int shift = 0; shift < bits; shift += kBits) {
      const auto digit = [&](const Numbered& number) {
        return static_cast<size_t>(static_cast<Key>(~number.key) >> shift) % kDigits;
      };
      starts.fill(0);
      const std::span<const Numbered> numbers(numbered_, static_cast<size_t>(k_));
      for (const Numbered& number : numbers) ++starts[digit(number)];
      if (starts[digit(numbers[0])] == numbers.size()) continue;
      uint32_t start = 0;
      for (uint32_t& count : starts) start += std::exchange(count, start);
      for (const Numbered& number : numbers) room_[starts[digit(number)]++] = number;
      std::swap(numbered_, room_);
    }
  }

  int64_t k_, n_, part_;
  bool largest_, sorted_;
  Key *keys_, *left_, *part_keys_;  ///< of what is held; of some of it; of what comes next
  int32_t *places_, *chosen_;
  Numbered *numbered_, *room_;
};

/// What a run of TopK reads and writes. `given` are the numbers as they came, `x` what they are
/// compared as.
template <typename T, typename Given>
struct TopkRun {
  const TopkState& s;
  const T* x;
  const Given* given;
  Given* values;  ///< null where nobody asks
  int64_t* indices;

  /// The results of a line stand at these places of it.
  template <typename Place>
  void put(int64_t outer, int64_t column, const Place& place) const {
    const int64_t from = outer * s.length * s.inner + column, to = outer * s.k * s.inner + column;
    if (values != nullptr)
      for (int64_t r = 0; r < s.k; ++r) values[to + r * s.inner] = given[from + place(r) * s.inner];
    if (indices != nullptr)
      for (int64_t r = 0; r < s.k; ++r) indices[to + r * s.inner] = place(r);
  }
  /// The r-th results of `count` columns from `column` on.
  void put_side_by_side(int64_t outer, int64_t column, int64_t count, int64_t r,
                        const int32_t* places) const {
    const Given* from = given + outer * s.length * s.inner + column;
    const int64_t to = (outer * s.k + r) * s.inner + column;
    if (values != nullptr)
      for (int64_t j = 0; j < count; ++j) values[to + j] = from[places[j] * s.inner + j];
    if (indices != nullptr)
      for (int64_t j = 0; j < count; ++j) indices[to + j] = places[j];
  }
};

/// Places r of each column, `step` apart, in their order.
void order_columns(int32_t* places, int64_t k, int64_t columns, int64_t step) {
  for (int64_t j = 0; j < columns; ++j)
    for (int64_t r = 1; r < k; ++r)
      for (int64_t at = r; at > 0 && places[(at - 1) * step + j] > places[at * step + j]; --at)
        std::swap(places[(at - 1) * step + j], places[at * step + j]);
}

constexpr int64_t kColumnLines = 32;  ///< side by side, at a time

/// Lines side by side.
template <typename T, typename Given>
void topk_columns(const KernelRun& run, const TopkRun<T, Given>& topk) {
  const TopkState& s = topk.s;
  const int64_t strips = (s.inner + kColumnLines - 1) / kColumnLines;
  run.parallel_for(s.outer * strips, grain_of(s.length * kColumnLines, 1 << 14),
                   [&](int64_t begin, int64_t end) {
                     int32_t places[kBestOfColumns * kColumnLines];
                     for (int64_t task = begin; task < end; ++task) {
                       const int64_t block = task / strips, first = task % strips * kColumnLines;
                       const int64_t count = std::min(kColumnLines, s.inner - first);
                       best_of_columns(topk.x + block * s.length * s.inner + first, s.length,
                                       s.inner, count, s.k, s.largest, places, kColumnLines);
                       if (!s.sorted) order_columns(places, s.k, count, kColumnLines);
                       for (int64_t r = 0; r < s.k; ++r)
                         topk.put_side_by_side(block, first, count, r, places + r * kColumnLines);
                     }
                   });
}

/// Short lines, or those of few columns, of blocks that are turned together.
template <typename T, typename Given>
void topk_turned(const KernelRun& run, const TopkRun<T, Given>& topk, int64_t together) {
  const TopkState& s = topk.s;
  const int64_t size = s.length * s.inner;
  run.parallel_for(
      s.outer, std::max(together, grain_of(size, 1 << 14)), [&](int64_t begin, int64_t end) {
        int32_t places[kBestOfColumns * kColumnLines];
        alignas(64) std::byte turned[kTurnedBytes];
        for (int64_t block = begin; block < end; block += together) {
          const int64_t blocks = std::min(together, end - block), lines = blocks * s.inner;
          turn_blocks(reinterpret_cast<const std::byte*>(topk.x + block * size), blocks, size,
                      sizeof(T), turned);
          int64_t at = 0, column = 0;  // where the next line comes from
          for (int64_t first = 0; first < lines; first += kColumnLines) {
            const int64_t count = std::min(kColumnLines, lines - first);
            best_of_columns(reinterpret_cast<const T*>(turned) + first, s.length, lines, count, s.k,
                            s.largest, places, kColumnLines);
            if (!s.sorted) order_columns(places, s.k, count, kColumnLines);
            for (int64_t j = 0; j < count; ++j, at = at + 1 == blocks ? 0 : at + 1) {
              topk.put(block + at, column, [&](int64_t r) { return places[r * kColumnLines + j]; });
              column += at + 1 == blocks ? 1 : 0;
            }
          }
        }
      });
}

/// Lines that do not lie in one piece are copied sixteen at a time.
template <typename T, typename Given>
void topk_lines(const KernelRun& run, const TopkRun<T, Given>& topk) {
  using Number = typename Ranking<T>::Number;
  const TopkState& s = topk.s;
  constexpr int64_t kLines = 16;
  const int64_t together = s.inner == 1 ? 1 : kLines, groups = (s.inner + together - 1) / together;
  run.parallel_for(s.outer * groups, grain_of(s.length * together, 1 << 14),
                   [&](int64_t begin, int64_t end) {
                     Number few[kFew];
                     int32_t few_places[kFew];
                     std::optional<BestOfMany<T>> many;
                     if (s.k > kFew) many.emplace(s.k, s.length, s.largest, s.sorted);
                     std::vector<T> room(s.inner == 1 ? 0 : static_cast<size_t>(kLines * s.length));
                     for (int64_t task = begin; task < end; ++task) {
                       const int64_t outer = task / groups, first = task % groups * together;
                       const int64_t lines = std::min(together, s.inner - first);
                       const T* block = topk.x + outer * s.length * s.inner + first;
                       if (s.inner != 1)
                         transpose_tile(reinterpret_cast<const std::byte*>(block), s.inner,
                                        reinterpret_cast<std::byte*>(room.data()), s.length,
                                        s.length, lines, sizeof(T));
                       for (int64_t j = 0; j < lines; ++j) {
                         const T* x = s.inner == 1 ? block : room.data() + j * s.length;
                         const int32_t* places = few_places;
                         if (s.k <= kFew) {
                           best_few(x, s.length, s.k, s.largest, few);
                           for (int64_t r = 0; r < s.k; ++r)
                             few_places[r] = static_cast<int32_t>(Ranking<T>::place(few[r]));
                           if (!s.sorted) std::sort(few_places, few_places + s.k);
                         } else {
                           places = many->find(x);
                         }
                         topk.put(outer, first + j, [&](int64_t r) { return places[r]; });
                       }
                     }
                   });
}

template <typename T, typename Given>
Status topk_of(KernelRun& run, const T* x, Tensor* values, Tensor* indices) {
  const auto& s = run.state<TopkState>();
  const TopkRun<T, Given> topk{s, x, run.data<Given>(0),
                               values == nullptr ? nullptr : values->data<Given>(),
                               indices == nullptr ? nullptr : indices->data<int64_t>()};
  const int64_t together = s.inner > 1 || s.length <= kShortLine
                               ? blocks_to_turn(s.outer, s.length, s.inner, sizeof(T))
                               : 0;
  if (s.k <= kBestOfColumns && s.inner >= kFewColumns)
    topk_columns(run, topk);
  else if (s.k <= kBestOfColumns && together != 0)
    topk_turned(run, topk, together);
  else
    topk_lines(run, topk);
  return ok();
}

Status run_topk(KernelRun& run) {
  const auto& s = run.state<TopkState>();
  const Tensor& x = run.input(0);
  Tensor *values = nullptr, *indices = nullptr;
  if (run.wants_output(0)) {
    TRY(values, run.output(0, x.dtype(), s.output));
  }
  if (run.wants_output(1)) {
    TRY(indices, run.output(1, DType::kInt64, s.output));
  }
  switch (x.dtype()) {
    case DType::kFloat64:
      return topk_of<double, double>(run, x.data<double>(), values, indices);
    case DType::kInt32:
      return topk_of<int32_t, int32_t>(run, x.data<int32_t>(), values, indices);
    case DType::kInt64:
      return topk_of<int64_t, int64_t>(run, x.data<int64_t>(), values, indices);
    case DType::kFloat32:
      return topk_of<float, float>(run, x.data<float>(), values, indices);
    default: {  // 16-bit floats, compared as floats
      auto* wide = reinterpret_cast<float*>(run.scratch());
      run.parallel_for(x.size(), 1 << 15, [&](int64_t begin, int64_t end) {
        load_floats(x, begin, end - begin, wide + begin);
      });
      return topk_of<float, uint16_t>(run, wide, values, indices);
    }
  }
}

}  // namespace

KERNEL(top_k) = {
    .name = "top_k",
    .op = "TopK",
    .supports = supports_topk,
    .prepare = prepare_topk,
    .run = run_topk,
    .values = 1 << 1,
};
}  // namespace tombolo
