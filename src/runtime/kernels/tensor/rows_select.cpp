// Operators that look for elements or places: Hardmax, Unique, GatherElements.

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <numeric>
#include <utility>
#include <vector>

#include "ops/kernels/movement.h"
#include "runtime/kernels/isa.h"
#include "runtime/kernels/kernel.h"
#include "runtime/kernels/reduce/extremum.h"
#include "runtime/kernels/tensor/axis_lines.h"
#include "runtime/kernels/tensor/lookup.h"
#include "runtime/kernels/tensor/turned_blocks.h"

namespace tombolo {
namespace {

// Hardmax.

bool plan_hardmax(const KernelQuery& q, AxisLines& s) {
  return active_isa() != Isa::kScalar && q.opset >= 13 && !q.inputs.empty() &&
         (q.dtype(0) == DType::kFloat32 || q.dtype(0) == DType::kFloat64) &&
         read_lines(q.dims(0), q.attributes.get_int("axis", -1), s);
}
bool supports_hardmax(const KernelQuery& q) {
  AxisLines state;
  return plan_hardmax(q, state);
}
Result<std::unique_ptr<KernelState>> prepare_hardmax(const PrepareContext& q) {
  auto state = std::make_unique<AxisLines>();
  plan_hardmax(q, *state);
  return state;
}
/// `count` lines, `next` apart, of numbers `step` apart.
template <typename T>
void hardmax_lines(const T* x, int64_t n, int64_t step, int64_t count, int64_t next, DType dtype,
                   int64_t* places, T* y) {
  extremum_places({.n = n, .step = step}, dtype, x, count, places);
  if (step == 1)
    std::memset(y, 0, static_cast<size_t>(count * n) * sizeof(T));
  else
    for (int64_t i = 0; i < n; ++i)
      std::memset(y + i * step, 0, static_cast<size_t>(count) * sizeof(T));
  for (int64_t j = 0; j < count; ++j) {
    const T* line = x + j * next;
    int64_t place = places[j];
    if (line[place * step] != line[place * step]) {  // a NaN is no maximum here
      place = 0;
      for (int64_t i = 1; i < n; ++i)
        if (line[place * step] < line[i * step]) place = i;
    }
    y[j * next + place * step] = 1;
  }
}

template <typename T>
void hardmax(KernelRun& run, const AxisLines& s, T* to) {
  const DType dtype = run.input(0).dtype();
  const T* from = run.data<T>(0);
  constexpr int64_t kSize = sizeof(T);
  if (const int64_t together = blocks_to_turn(s.outer, s.length, s.inner, kSize);
      together != 0 && s.inner != 1) {
    const int64_t block = s.length * s.inner;
    run.parallel_for(s.outer, std::max(together, grain_of(block, 1 << 14)),
                     [&](int64_t begin, int64_t end) {
                       alignas(64) std::byte turned[kTurnedBytes], made[kTurnedBytes];
                       int64_t places[kMostTurnedLines];
                       for (int64_t at = begin; at < end; at += together) {
                         const int64_t count = std::min(together, end - at);
                         const int64_t lines = count * s.inner;
                         turn_blocks(reinterpret_cast<const std::byte*>(from + at * block), count,
                                     block, kSize, turned);
                         hardmax_lines(reinterpret_cast<const T*>(turned), s.length, lines, lines,
                                       1, dtype, places, reinterpret_cast<T*>(made));
                         turn_blocks_back(made, count, block, kSize,
                                          reinterpret_cast<std::byte*>(to + at * block));
                       }
                     });
    return;
  }
  // Lines one behind the other, or side by side, some at a time; no more than stay near.
  constexpr int64_t kLines = 256, kNear = 1 << 14;
  const int64_t step = s.inner, next = s.inner == 1 ? s.length : 1;
  const int64_t outer = s.inner == 1 ? 1 : s.outer, lines = s.inner == 1 ? s.outer : s.inner;
  const int64_t most = s.inner == 1 ? std::max<int64_t>(1, kNear / s.length) : kLines;
  const int64_t some = std::min({kLines, most, lines}), strips = (lines + some - 1) / some;
  run.parallel_for(
      outer * strips, grain_of(s.length * some, 1 << 14), [&](int64_t begin, int64_t end) {
        int64_t places[kLines];
        for (int64_t task = begin; task < end; ++task) {
          const int64_t first = task % strips * some, count = std::min(some, lines - first);
          const int64_t at = task / strips * s.length * s.inner + first * next;
          hardmax_lines(from + at, s.length, step, count, next, dtype, places, to + at);
        }
      });
}
Status run_hardmax(KernelRun& run) {
  const auto& s = run.state<AxisLines>();
  TRY(Tensor * y, run.output(0, run.input(0).dtype(), run.input(0).dims()));
  y->dtype() == DType::kFloat32 ? hardmax(run, s, y->data<float>())
                                : hardmax(run, s, y->data<double>());
  return ok();
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
  if (run.state<AxisLines>().length != 0) {  // sorted
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
  auto state = std::make_unique<AxisLines>();
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
  Dims places, strides;  ///< of the indices, and of the data
  int64_t rows = 1, width = 1, length = 1;
  size_t axis = 0;
  bool dense = false;  ///< a row of the indices picks from the row of the data that is as far
  /// Of indices that are as many as the data but along the axis, where what is behind it is short:
  /// what is behind it, all that is picked of and for a place before the axis. Else 0.
  int64_t inner = 0, block = 0, block_places = 0;
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
  // Axes behind it of which all is picked from are one.
  Dims data(q.dims(0)), places(q.dims(1));
  const auto joins = [&] {
    const size_t behind = data.size() - state->axis - 1;
    return behind > 0 && data.back() == places.back() && (behind > 1 || data.back() == 1);
  };
  while (joins()) {
    const int64_t inner = data.back();
    data.pop_back();
    places.pop_back();
    data.back() *= inner;
    places.back() *= inner;
  }
  state->strides = ops::contiguous_strides(data);
  state->width = places.back();
  state->rows = element_count(places) / state->width;
  state->length = data[state->axis];
  state->dense = state->axis + 1 == data.size();
  for (size_t j = 0; j < state->axis; ++j) state->dense &= data[j] == places[j];
  constexpr int64_t kShort = 16;
  bool alike = state->width < kShort;
  for (size_t j = 0; j < data.size(); ++j) alike &= j == state->axis || data[j] == places[j];
  if (alike) {
    state->inner = state->dense ? 1 : data.back();
    state->block = state->length * state->inner;
    state->block_places = places[state->axis] * state->inner;
  }
  state->places = places;
  return state;
}

/// Of blocks of the data, from the first one on; false where an index is outside.
template <typename T, typename I>
bool pick_blocks(const PickState& s, int64_t blocks, const T* x, const I* place, T* out) {
  for (; blocks > 0; --blocks, x += s.block) {
    int64_t column = 0;
    for (int64_t i = 0; i < s.block_places; ++i) {
      int64_t at = *place++;
      at += at < 0 ? s.length : 0;
      if (static_cast<uint64_t>(at) >= static_cast<uint64_t>(s.length)) return false;
      *out++ = x[at * s.inner + column];
      column = column + 1 == s.inner ? 0 : column + 1;
    }
  }
  return true;
}

template <typename T, typename I>
bool pick_rows(const KernelRun& run, const PickState& s, Tensor& y) {
  const Tensor& index = run.input(1);
  const auto* from = run.data<T>(0);
  const auto* places = index.data<I>();
  auto* to = y.data<T>();
  const size_t last = s.places.size() - 1;
  std::atomic<bool> outside = false;
  if (s.inner > 0) {
    const int64_t n = s.block_places;
    run.parallel_for(y.size() / n, grain_of(n, 1 << 14), [&](int64_t begin, int64_t end) {
      if (!pick_blocks(s, end - begin, from + begin * s.block, places + begin * n, to + begin * n))
        outside = true;
    });
    return !outside;
  }
  run.parallel_for(s.rows, grain_of(s.width, 1 << 14), [&](int64_t begin, int64_t end) {
    // As many as stay in the first cache, and what becomes of them.
    constexpr int64_t kPlaces = 256;
    int32_t offsets[kPlaces];
    for (int64_t row = begin; row < end; ++row) {
      int64_t rest = row, base = s.dense ? row * s.length : 0;
      for (size_t j = last; !s.dense && j-- > 0; rest /= s.places[j])
        if (j != s.axis) base += rest % s.places[j] * s.strides[j];
      const int64_t step = s.axis == last ? 0 : 1, stride = s.strides[s.axis];
      for (int64_t at = 0; at < s.width; at += kPlaces) {
        const int64_t n = std::min(kPlaces, s.width - at);
        const I* place = places + row * s.width + at;
        const T* x = from + base + at * step;
        T* out = to + row * s.width + at;
        // Mostly none is counted from the end.
        if (step == 0 && stride == 1 && all_places_inside(place, n, s.length)) {
#pragma GCC unroll 4
          for (int64_t i = 0; i < n; ++i) out[i] = x[place[i]];
          continue;
        }
        if (!place_offsets(place, n, s.length, step, stride, offsets)) {
          outside = true;
          return;
        }
#pragma GCC unroll 4
        for (int64_t i = 0; i < n; ++i) out[i] = x[offsets[i]];
      }
    }
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
