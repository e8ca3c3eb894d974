// Operators that look for elements or places: Hardmax, TopK, Unique, GatherElements.

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <compare>
#include <cstring>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "ops/kernels/movement.h"
#include "ops/kernels/order_key.h"
#include "runtime/kernels/blocks.h"
#include "runtime/kernels/isa.h"
#include "runtime/kernels/kernel.h"
#include "runtime/kernels/reduce/extremum.h"
#include "runtime/kernels/tensor/best_columns.h"
#include "runtime/kernels/tensor/lookup.h"
#include "runtime/kernels/tensor/transpose_tile.h"

namespace tombolo {
namespace {

/// An axis as [outer][length][inner].
struct AxisState : KernelState {
  int64_t outer = 1, length = 1, inner = 1;
};
bool read_axis(std::span<const int64_t> dims, int64_t axis, AxisState& s) {
  const auto rank = static_cast<int64_t>(dims.size());
  if (axis < 0) axis += rank;
  if (axis < 0 || axis >= rank) return false;
  s.outer = element_count(dims.first(static_cast<size_t>(axis)));
  s.length = dims[static_cast<size_t>(axis)];
  s.inner = element_count(dims.subspan(static_cast<size_t>(axis) + 1));
  return s.outer > 0 && s.length > 0 && s.inner > 0 && s.length < INT32_MAX;
}

// Hardmax.

bool plan_hardmax(const KernelQuery& q, AxisState& s) {
  return active_isa() != Isa::kScalar && q.opset >= 13 && !q.inputs.empty() &&
         (q.dtype(0) == DType::kFloat32 || q.dtype(0) == DType::kFloat64) &&
         read_axis(q.dims(0), q.attributes.get_int("axis", -1), s);
}
bool supports_hardmax(const KernelQuery& q) {
  AxisState state;
  return plan_hardmax(q, state);
}
Result<std::unique_ptr<KernelState>> prepare_hardmax(const PrepareContext& q) {
  auto state = std::make_unique<AxisState>();
  plan_hardmax(q, *state);
  return state;
}
template <typename T>
void hardmax(KernelRun& run, const AxisState& s, T* to) {
  const DType dtype = run.input(0).dtype();
  const T* from = run.data<T>(0);
  // Lines one behind the other, or side by side, some at a time.
  constexpr int64_t kLines = 256;
  const int64_t step = s.inner, next = s.inner == 1 ? s.length : 1;
  const int64_t outer = s.inner == 1 ? 1 : s.outer, lines = s.inner == 1 ? s.outer : s.inner;
  const int64_t some = std::min(kLines, lines), strips = (lines + some - 1) / some;
  run.parallel_for(
      outer * strips, grain_of(s.length * some, 1 << 14), [&](int64_t begin, int64_t end) {
        int64_t places[kLines];
        for (int64_t task = begin; task < end; ++task) {
          const int64_t first = task % strips * some, count = std::min(some, lines - first);
          const int64_t at = task / strips * s.length * s.inner + first * next;
          const T* x = from + at;
          T* y = to + at;
          extremum_places({.n = s.length, .step = step}, dtype, x, count, places);
          if (step == 1)
            std::memset(y, 0, static_cast<size_t>(count * s.length) * sizeof(T));
          else
            for (int64_t i = 0; i < s.length; ++i)
              std::memset(y + i * step, 0, static_cast<size_t>(count) * sizeof(T));
          for (int64_t j = 0; j < count; ++j) {
            const T* line = x + j * next;
            int64_t place = places[j];
            if (line[place * step] != line[place * step]) {  // a NaN is no maximum here
              place = 0;
              for (int64_t i = 1; i < s.length; ++i)
                if (line[place * step] < line[i * step]) place = i;
            }
            y[j * next + place * step] = 1;
          }
        }
      });
}
Status run_hardmax(KernelRun& run) {
  const auto& s = run.state<AxisState>();
  TRY(Tensor * y, run.output(0, run.input(0).dtype(), run.input(0).dims()));
  y->dtype() == DType::kFloat32 ? hardmax(run, s, y->data<float>())
                                : hardmax(run, s, y->data<double>());
  return ok();
}

// TopK.

constexpr int64_t kFew = 24;
constexpr int64_t kShortLine = 64;  ///< such lines are turned into columns

bool supports_topk(const KernelQuery& q) {
  AxisState state;
  if (active_isa() == Isa::kScalar || q.opset < 10 || q.inputs.size() != 2 ||
      !read_axis(q.dims(0), q.attributes.get_int("axis", -1), state) || q.constant(1) == nullptr ||
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
struct TopkState final : AxisState {
  int64_t k = 1;
  bool largest = true;
  Dims output;
};
Result<std::unique_ptr<KernelState>> prepare_topk(const PrepareContext& q) {
  auto state = std::make_unique<TopkState>();
  const int64_t axis = q.attributes.get_int("axis", -1);
  read_axis(q.dims(0), axis, *state);
  state->k = q.constant(1)->get_int64(0);
  if (is_short_float(q.dtype(0)))
    state->scratch_bytes = static_cast<size_t>(q.inputs[0].size()) * sizeof(float);
  state->largest = q.attributes.get_int("largest", 1) != 0;
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

/// The same for other numbers, NaN the greatest.
template <typename T>
void best_few(const T* x, int64_t n, int64_t k, bool largest, typename Ranking<T>::Number* found) {
  const Ranking<T> rank(largest);
  int64_t count = 0;
  for (int64_t i = 0; i < n; ++i) {
    if (count == k) {
      i = first_beyond(x, i, n, x[Ranking<T>::place(found[k - 1])], largest);
      if (i == n) return;
    }
    const auto number = rank(x[i], i);
    if (count == k && number < found[k - 1]) continue;
    int64_t at = count < k ? count++ : k - 1;
    for (; at > 0 && found[at - 1] < number; --at) found[at] = found[at - 1];
    found[at] = number;
  }
}

/// The greatest first, counted eleven bits at a time. Places that come in their order keep it, so
/// that the lower half of a number need not be looked at.
void sort_falling(std::vector<uint64_t>& numbers, std::vector<uint64_t>& room, bool in_order) {
  constexpr size_t kBits = 11, kValues = size_t{1} << kBits;
  std::array<uint32_t, kValues> starts;
  room.resize(numbers.size());
  for (size_t shift = in_order ? 32 : 0; shift < 64; shift += kBits) {
    const auto digit = [&](uint64_t number) { return ~number >> shift & (kValues - 1); };
    starts.fill(0);
    for (const uint64_t number : numbers) ++starts[digit(number)];
    if (starts[digit(numbers[0])] == numbers.size()) continue;
    uint32_t start = 0;
    for (uint32_t& count : starts) start += std::exchange(count, start);
    for (const uint64_t number : numbers) room[starts[digit(number)]++] = number;
    numbers.swap(room);
  }
}
template <typename Number>
void sort_best_first(std::vector<Number>& found, [[maybe_unused]] std::vector<Number>& room,
                     [[maybe_unused]] bool in_order) {
  if constexpr (std::is_same_v<Number, uint64_t>) {
    constexpr size_t kMany = 2048;  // where counting costs less than comparing
    if (found.size() >= kMany) return sort_falling(found, room, in_order);
  }
  std::sort(found.begin(), found.end(), std::greater<>());
}

/// The best k of many: candidates gather until there are many, then only the best stay.
template <typename T, typename Number>
void best_many(const T* x, int64_t n, int64_t k, bool largest, std::vector<Number>& found,
               std::vector<Number>& sorted) {
  const Ranking<T> rank(largest);
  const auto keep = static_cast<size_t>(k);
  found.clear();
  if (n == k) {
    found.resize(keep);
    for (int64_t i = 0; i < n; ++i) found[static_cast<size_t>(i)] = rank(x[i], i);
    return sort_best_first(found, sorted, true);
  }
  const size_t room = std::max<size_t>(2 * keep, keep + 64);
  const auto part = [&] {  // the best ones, in any order but for the last
    std::nth_element(found.begin(), found.begin() + static_cast<std::ptrdiff_t>(keep) - 1,
                     found.end(), std::greater<>());
    found.resize(keep);
  };
  bool limited = false;
  Number least{};
  const auto take = [&](int64_t i) {
    const Number number = rank(x[i], i);
    if (limited && number < least) return;
    found.push_back(number);
    if (found.size() < room) return;
    part();
    least = found.back();
    limited = true;
  };
  if constexpr (std::is_same_v<T, float>) {
    constexpr int64_t kRun = 1024;
    int32_t places[kRun + 16];
    for (int64_t i = 0, run = 64; i < n; i += run, run = std::min(2 * run, kRun)) {
      run = std::min(run, n - i);
      const float limit = limited ? x[rank.place(least)] : std::numeric_limits<float>::quiet_NaN();
      const int64_t some = places_beyond(x + i, run, limit, false, largest, places);
      for (int64_t j = 0; j < some; ++j) take(i + places[j]);
    }
  } else {
    for (int64_t i = 0; i < n; ++i) {
      if (limited) i = first_beyond(x, i, n, x[rank.place(least)], largest);
      if (i < n) take(i);
    }
  }
  part();
  sort_best_first(found, sorted, false);
}

/// What a run of TopK reads and writes. `given` are the numbers as they came, `x` what they are
/// compared as.
template <typename T, typename Given>
struct TopkRun {
  const TopkState& s;
  const T* x;
  const Given* given;
  Given* values;  ///< null where nobody asks
  int64_t* indices;

  /// Result r of a line stands at `place` of it.
  void put(int64_t outer, int64_t column, int64_t r, int64_t place) const {
    const int64_t to = (outer * s.k + r) * s.inner + column;
    if (values != nullptr) values[to] = given[(outer * s.length + place) * s.inner + column];
    if (indices != nullptr) indices[to] = place;
  }
};

/// Lines side by side, or short ones that are turned into columns.
template <typename T, typename Given>
void topk_columns(const KernelRun& run, const TopkRun<T, Given>& topk) {
  constexpr int64_t kLines = 32;
  const TopkState& s = topk.s;
  const int64_t outer = s.inner == 1 ? 1 : s.outer, lines = s.inner == 1 ? s.outer : s.inner;
  const int64_t strips = (lines + kLines - 1) / kLines;
  run.parallel_for(
      outer * strips, grain_of(s.length * kLines, 1 << 14), [&](int64_t begin, int64_t end) {
        int32_t places[kBestOfColumns * kLines];
        alignas(64) T turned[kShortLine * kLines];
        for (int64_t task = begin; task < end; ++task) {
          const int64_t block = task / strips, first = task % strips * kLines;
          const int64_t count = std::min(kLines, lines - first);
          const T* x = topk.x + block * s.length * s.inner + first;
          if (s.inner == 1) {
            transpose_tile(reinterpret_cast<const std::byte*>(topk.x + first * s.length), s.length,
                           reinterpret_cast<std::byte*>(turned), kLines, count, s.length,
                           sizeof(T));
            x = turned;
          }
          best_of_columns(x, s.length, s.inner == 1 ? kLines : s.inner, count, s.k, s.largest,
                          places, kLines);
          for (int64_t r = 0; r < s.k; ++r)
            for (int64_t j = 0; j < count; ++j) {
              const int64_t place = places[r * kLines + j];
              s.inner == 1 ? topk.put(first + j, 0, r, place)
                           : topk.put(block, first + j, r, place);
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
                     std::vector<Number> many, sorted;
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
                         const Number* found = few;
                         if (s.k <= kFew) {
                           best_few(x, s.length, s.k, s.largest, few);
                         } else {
                           best_many(x, s.length, s.k, s.largest, many, sorted);
                           found = many.data();
                         }
                         for (int64_t r = 0; r < s.k; ++r)
                           topk.put(outer, first + j, r, Ranking<T>::place(found[r]));
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
  const bool side_by_side =
      s.inner >= 8 || (s.inner == 1 && s.outer >= 16 && s.length <= kShortLine);
  if (s.k <= kBestOfColumns && side_by_side)
    topk_columns(run, topk);
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

// Unique of all elements, by a table of hashes.

bool supports_unique(const KernelQuery& q) {
  return active_isa() != Isa::kScalar && q.inputs.size() == 1 &&
         !q.attributes.get_int("axis").has_value() && q.inputs[0].size() > 0 &&
         q.inputs[0].size() < INT32_MAX / 4 &&
         (q.dtype(0) == DType::kFloat32 || q.dtype(0) == DType::kFloat64 ||
          q.dtype(0) == DType::kInt32 || q.dtype(0) == DType::kInt64 ||
          q.dtype(0) == DType::kUInt8 || q.dtype(0) == DType::kInt8);
}

/// Equal numbers have equal keys: both zeros, all NaN.
template <typename T>
uint64_t key_of(T x) {
  if constexpr (std::is_floating_point_v<T>) {
    if (x != x) return UINT64_MAX;
    return std::bit_cast<uint64_t>(x == 0 ? 0.0 : static_cast<double>(x));
  } else {
    return static_cast<uint64_t>(x);
  }
}

template <typename T>
Status unique(KernelRun& run) {
  const Tensor& input = run.input(0);
  const T* x = input.data<T>();
  const int64_t n = input.size();
  // Groups in the order in which they are met: their first place, their size; the group of each.
  std::vector<int32_t> first, sizes, group(static_cast<size_t>(n));
  const int bits = std::bit_width(static_cast<uint64_t>(2 * n));
  const auto mask = (size_t{1} << bits) - 1;
  std::vector<int32_t> table(mask + 1, -1);
  for (int64_t i = 0; i < n; ++i) {
    const uint64_t key = key_of(x[i]);
    size_t at = (key * 0x9E3779B97F4A7C15u) >> (64 - bits);
    while (table[at] >= 0 && key_of(x[first[static_cast<size_t>(table[at])]]) != key)
      at = (at + 1) & mask;
    if (table[at] < 0) {
      table[at] = static_cast<int32_t>(first.size());
      first.push_back(static_cast<int32_t>(i));
      sizes.push_back(0);
    }
    group[static_cast<size_t>(i)] = table[at];
    ++sizes[static_cast<size_t>(table[at])];
  }
  const size_t count = first.size();
  std::vector<int32_t> order(count), rank(count);
  std::iota(order.begin(), order.end(), 0);
  if (run.state<AxisState>().length != 0) {  // sorted
    std::vector<std::pair<T, int32_t>> values(count);
    for (size_t g = 0; g < count; ++g) values[g] = {x[first[g]], static_cast<int32_t>(g)};
    std::sort(values.begin(), values.end(), [](const auto& a, const auto& b) {
      if constexpr (std::is_floating_point_v<T>)
        return a.first < b.first || (a.first == a.first && b.first != b.first);
      else
        return a.first < b.first;
    });
    for (size_t k = 0; k < count; ++k) order[k] = values[k].second;
  }
  for (size_t k = 0; k < count; ++k) rank[static_cast<size_t>(order[k])] = static_cast<int32_t>(k);
  const int64_t few[] = {static_cast<int64_t>(count)}, all[] = {n};
  if (run.wants_output(0)) {
    TRY(Tensor * y, run.output(0, input.dtype(), few));
    for (size_t k = 0; k < count; ++k)
      y->template data<T>()[k] = x[first[static_cast<size_t>(order[k])]];
  }
  if (run.wants_output(1)) {
    TRY(Tensor * y, run.output(1, DType::kInt64, few));
    for (size_t k = 0; k < count; ++k) y->data<int64_t>()[k] = first[static_cast<size_t>(order[k])];
  }
  if (run.wants_output(2)) {
    TRY(Tensor * y, run.output(2, DType::kInt64, all));
    for (size_t i = 0; i < group.size(); ++i)
      y->data<int64_t>()[i] = rank[static_cast<size_t>(group[i])];
  }
  if (run.wants_output(3)) {
    TRY(Tensor * y, run.output(3, DType::kInt64, few));
    for (size_t k = 0; k < count; ++k) y->data<int64_t>()[k] = sizes[static_cast<size_t>(order[k])];
  }
  return ok();
}

Result<std::unique_ptr<KernelState>> prepare_unique(const PrepareContext& q) {
  auto state = std::make_unique<AxisState>();
  state->length = q.attributes.get_int("sorted", 1);
  return state;
}

Status run_unique(KernelRun& run) {
  switch (run.input(0).dtype()) {
    case DType::kFloat32:
      return unique<float>(run);
    case DType::kFloat64:
      return unique<double>(run);
    case DType::kInt32:
      return unique<int32_t>(run);
    case DType::kInt64:
      return unique<int64_t>(run);
    case DType::kUInt8:
      return unique<uint8_t>(run);
    default:
      return unique<int8_t>(run);
  }
}

// GatherElements of elements of 1 to 8 bytes.

struct PickState final : KernelState {
  Dims data, strides;
  int64_t rows = 1, width = 1, length = 1;
  size_t axis = 0;
  bool dense = false;  ///< a row of the indices picks from the row of the data that is as far
};

bool supports_pick(const KernelQuery& q) {
  if (active_isa() == Isa::kScalar || q.inputs.size() != 2 || bytes_of(q.dtype(0)) == 0 ||
      bytes_of(q.dtype(0)) > 8 || (q.dtype(1) != DType::kInt64 && q.dtype(1) != DType::kInt32))
    return false;
  const auto data = q.dims(0), index = q.dims(1);
  const auto rank = static_cast<int64_t>(data.size());
  int64_t axis = q.attributes.get_int("axis", 0);
  if (axis < 0) axis += rank;
  if (axis < 0 || axis >= rank || index.size() != data.size() || element_count(data) < 1 ||
      element_count(index) < 1 || element_count(data) >= INT32_MAX)
    return false;
  for (size_t j = 0; j < data.size(); ++j)
    if (static_cast<int64_t>(j) != axis && index[j] > data[j]) return false;
  return true;
}
Result<std::unique_ptr<KernelState>> prepare_pick(const PrepareContext& q) {
  auto state = std::make_unique<PickState>();
  const auto rank = static_cast<int64_t>(q.dims(0).size());
  const int64_t axis = q.attributes.get_int("axis", 0);
  state->axis = static_cast<size_t>(axis < 0 ? axis + rank : axis);
  state->data = Dims(q.dims(0));
  state->strides = ops::contiguous_strides(q.dims(0));
  state->width = q.dims(1).back();
  state->rows = element_count(q.dims(1)) / state->width;
  state->length = q.dims(0)[state->axis];
  const size_t last = q.dims(0).size() - 1;
  state->dense = state->axis == last && Dims(q.dims(0).first(last)) == Dims(q.dims(1).first(last));
  return state;
}

/// pick_elements() of any elements and indices.
template <typename T, typename I>
bool pick_any(const T* from, const I* index, int64_t n, int64_t length, int64_t step,
              int64_t stride, T* out) {
  // Without branches: signs come in any order. A place outside becomes 0.
  int64_t good = -1;
  const auto place_of = [&](int64_t i) {
    const int64_t given = index[i], place = given + (length & given >> 63);
    const int64_t inside =
        -static_cast<int64_t>(static_cast<uint64_t>(place) < static_cast<uint64_t>(length));
    good &= inside;
    return place & inside;
  };
  if (step == 0 && stride == 1)
    for (int64_t i = 0; i < n; ++i) out[i] = from[place_of(i)];
  else
    for (int64_t i = 0; i < n; ++i) out[i] = from[i * step + place_of(i) * stride];
  return good != 0;
}

template <typename T, typename I>
bool pick_rows(const KernelRun& run, const PickState& s, Tensor& y) {
  const Tensor& index = run.input(1);
  const auto* from = run.data<T>(0);
  const auto* places = index.data<I>();
  auto* to = y.data<T>();
  const size_t last = s.data.size() - 1;
  constexpr bool kWide = std::is_same_v<T, uint32_t> && std::is_same_v<I, int64_t>;
  std::atomic<bool> outside = false;
  run.parallel_for(s.rows, grain_of(s.width, 1 << 14), [&](int64_t begin, int64_t end) {
    bool good = true;
    for (int64_t row = begin; row < end; ++row) {
      int64_t rest = row, base = s.dense ? row * s.length : 0;
      for (size_t j = last; !s.dense && j-- > 0; rest /= index.dim(j))
        if (j != s.axis) base += rest % index.dim(j) * s.strides[j];
      const int64_t step = s.axis == last ? 0 : 1, stride = s.strides[s.axis];
      const I* place = places + row * s.width;
      T* out = to + row * s.width;
      bool inside;
      if constexpr (kWide) {
        constexpr int64_t kFew = 16;
        inside = s.width < kFew
                     ? pick_any(from + base, place, s.width, s.length, step, stride, out)
                     : pick_elements(from + base, place, s.width, s.length, step, stride, out);
      } else {
        inside = pick_any(from + base, place, s.width, s.length, step, stride, out);
      }
      good &= inside;
    }
    if (!good) outside = true;
  });
  return !outside;
}
template <typename I>
bool pick_by(const KernelRun& run, const PickState& s, Tensor& y) {
  switch (bytes_of(y.dtype())) {
    case 1:
      return pick_rows<uint8_t, I>(run, s, y);
    case 2:
      return pick_rows<uint16_t, I>(run, s, y);
    case 4:
      return pick_rows<uint32_t, I>(run, s, y);
    default:
      return pick_rows<uint64_t, I>(run, s, y);
  }
}
Status run_pick(KernelRun& run) {
  const auto& s = run.state<PickState>();
  const Tensor& index = run.input(1);
  TRY(Tensor * y, run.output(0, run.input(0).dtype(), index.dims()));
  const bool wide = index.dtype() == DType::kInt64;
  if (wide ? pick_by<int64_t>(run, s, *y) : pick_by<int32_t>(run, s, *y)) return ok();
  for (int64_t i = 0; i < index.size(); ++i) {
    const int64_t place = index.get_int64(i);
    if (place < -s.length || place >= s.length)
      return runtime_error("index " + std::to_string(place) + " is out of range for axis " +
                           std::to_string(s.axis) + " of " + std::to_string(s.length) +
                           " elements");
  }
  return ok();
}

}  // namespace

KERNEL(hardmax) = {
    .name = "hardmax",
    .op = "Hardmax",
    .supports = supports_hardmax,
    .prepare = prepare_hardmax,
    .run = run_hardmax,
};
KERNEL(top_k) = {
    .name = "top_k",
    .op = "TopK",
    .supports = supports_topk,
    .prepare = prepare_topk,
    .run = run_topk,
    .values = 1 << 1,
};
KERNEL(unique) = {
    .name = "unique",
    .op = "Unique",
    .supports = supports_unique,
    .prepare = prepare_unique,
    .run = run_unique,
};
KERNEL(gather_elements) = {
    .name = "gather_elements",
    .op = "GatherElements",
    .supports = supports_pick,
    .prepare = prepare_pick,
    .run = run_pick,
};

}  // namespace tombolo
