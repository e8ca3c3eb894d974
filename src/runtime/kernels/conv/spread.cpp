#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/kernels/conv/spread.cpp"
#include "runtime/kernels/targets.h"
// After targets.h, which sets macros for Highway.
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <array>
#include <utility>

#include "runtime/kernels/conv/spread.h"
#include "runtime/kernels/dispatch.h"
#include "runtime/kernels/vec-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tombolo {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using F = hn::ScalableTag<float>;

/// Without masks: what is added next would wait for a masked store.
HWY_INLINE void fill_row(float* to, int64_t n, float value) {
  int64_t i = 0;
  const auto with = [&](auto d) HWY_ATTR __attribute__((always_inline)) {
    const auto lanes = static_cast<int64_t>(hn::Lanes(d));
    for (; i + lanes <= n; i += lanes) hn::StoreU(hn::Set(d, value), d, to + i);
  };
  with(F());
  with(hn::CappedTag<float, 8>());
  with(hn::CappedTag<float, 4>());
  for (; i < n; ++i) to[i] = value;
}
/// Whole vectors of D from i on; gives where they end.
template <class D>
HWY_INLINE int64_t add_vectors(D d, const float* from, int64_t i, int64_t n, float* to) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (; i + lanes <= n; i += lanes)
    hn::StoreU(hn::Add(hn::LoadU(d, to + i), hn::LoadU(d, from + i)), d, to + i);
  return i;
}
HWY_INLINE void add_to_row(const float* from, int64_t n, float* to) {
  int64_t i = add_vectors(F(), from, 0, n, to);
  i = add_vectors(hn::CappedTag<float, 8>(), from, i, n, to);
  i = add_vectors(hn::CappedTag<float, 4>(), from, i, n, to);
  for (; i < n; ++i) to[i] += from[i];
}

/// each(from) for the rows of the columns that reach a row of Y.
template <typename Each>
HWY_INLINE void rows_that_reach(const SpreadPlan& plan, const float* columns, size_t deep,
                                size_t down, Each&& each) {
  for (auto i = plan.first[0][deep]; i < plan.first[0][deep + 1]; ++i) {
    const SpreadPlan::Reach& a = plan.reach[0][static_cast<size_t>(i)];
    for (auto j = plan.first[1][down]; j < plan.first[1][down + 1]; ++j) {
      const SpreadPlan::Reach& b = plan.reach[1][static_cast<size_t>(j)];
      each(columns + a.tap + a.at + b.tap + b.at);
    }
  }
}

/// load_within(d, row, at, n, zero) of one row after the other.
class WithinRow {
 public:
  HWY_INLINE WithinRow(int64_t at, int64_t n) : at_(at), n_(n) {
#if HWY_TARGET <= HWY_AVX2
    const F d;
    const auto before = hn::FirstN(d, static_cast<size_t>(at < 0 ? -at : 0));
    inside_ = hn::AndNot(before, hn::FirstN(d, static_cast<size_t>(n > at ? n - at : 0)));
#endif
  }
  HWY_INLINE hn::Vec<F> load(const float* row) const {
    const F d;
#if HWY_TARGET <= HWY_AVX2
    return hn::MaskedLoad(inside_, d, row + at_);
#else
    return load_within(d, row, at_, n_, hn::Zero(d));
#endif
  }

 private:
  [[maybe_unused]] int64_t at_, n_;
#if HWY_TARGET <= HWY_AVX2
  hn::Mask<F> inside_;
#endif
};

/// A row that is few vectors, or whose parts are one each: what reaches one is added up in
/// registers, as what is stored and read again elsewhere has to be waited for. Two sums, which wait
/// half as long.
HWY_INLINE void sum_short_row(const SpreadPlan& plan, const float* columns, float bias, size_t deep,
                              size_t down, float* phases) {
  const F d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t step = plan.shape.stride[2], width = plan.shape.out[2];
  for (int64_t p = 0; p < std::min(step, width); ++p) {
    const auto part = static_cast<size_t>(p);
    const SpreadPlan::Stretch* const first = plan.stretches.data() + plan.first_stretch[part];
    const SpreadPlan::Stretch* const end = plan.stretches.data() + plan.first_stretch[part + 1];
    for (int64_t i = p * plan.length; i < (p + 1) * plan.length; i += lanes) {
      auto sum = hn::Set(d, bias), other = hn::Zero(d);
      const SpreadPlan::Stretch* s = first;
      for (; s + 2 <= end; s += 2) {
        const WithinRow a(i - s[0].to, s[0].count), b(i - s[1].to, s[1].count);
        rows_that_reach(plan, columns, deep, down, [&](const float* from) HWY_ATTR {
          sum = hn::Add(sum, a.load(from + s[0].from));
          other = hn::Add(other, b.load(from + s[1].from));
        });
      }
      if (s < end) {
        const WithinRow a(i - s->to, s->count);
        rows_that_reach(plan, columns, deep, down, [&](const float* from) HWY_ATTR {
          sum = hn::Add(sum, a.load(from + s->from));
        });
      }
      sum = hn::Add(sum, other);
      if (step == 1)
        store_n(sum, d, phases + i, width - i);
      else
        hn::StoreU(sum, d, phases + i);  // in the room whole vectors
    }
  }
}

constexpr int64_t kFewVectors = 4;

/// to[i * count + p] = phases[p * length + i] + more, and `more` alone from the phase `given` on,
/// which kAll says there are not.
template <bool kAll>
HWY_INLINE void interleave(const float* phases, int64_t length, int64_t count, int64_t given,
                           int64_t n, float more, float* to) {
  int64_t i = 0;
  if (count >= 2 && count <= 4) {
    const F d;
    const auto lanes = static_cast<int64_t>(hn::Lanes(d));
    const auto extra = hn::Set(d, more);
    const auto put = [&](float* out) HWY_ATTR __attribute__((always_inline)) {
      const auto phase = [&](int64_t p) HWY_ATTR __attribute__((always_inline)) {
        return kAll || p < given ? hn::Add(hn::LoadU(d, phases + p * length + i), extra) : extra;
      };
      if (count == 2)
        hn::StoreInterleaved2(phase(0), phase(1), d, out);
      else if (count == 3)
        hn::StoreInterleaved3(phase(0), phase(1), phase(2), d, out);
      else
        hn::StoreInterleaved4(phase(0), phase(1), phase(2), phase(3), d, out);
    };
    for (; count * (i + lanes) <= n; i += lanes) put(to + count * i);
    if (i + lanes <= length + kSpreadVector) {
      HWY_ALIGN float last[4 * HWY_LANES(float)];
      put(last);
      for (int64_t at = 0; count * i + at < n; at += lanes)
        store_n(hn::Load(d, last + at), d, to + count * i + at, n - count * i - at);
      return;
    }
  }
  for (int64_t p = 0; p < count; ++p)
    for (int64_t j = i; j * count + p < n; ++j)
      to[j * count + p] = kAll || p < given ? phases[p * length + j] + more : more;
}

/// A row of Y where windows are SpreadPlan::apart: each of its pixels is one of the columns, or the
/// bias. Not inlined: rows of 16 pixels side by side take a fifth longer beside it.
HWY_NOINLINE void row_apart(const SpreadPlan& plan, const float* columns, float bias, size_t deep,
                            size_t down, float* to) {
  const ConvGeometry& s = plan.shape;
  const int64_t step = s.stride[2], width = s.out[2], some = std::min(width, s.in[2] * step);
  const int64_t a = plan.first[0][deep], b = plan.first[1][down];
  if (a == plan.first[0][deep + 1] || b == plan.first[1][down + 1])
    return fill_row(to, width, bias);
  const SpreadPlan::Reach &plane = plan.reach[0][static_cast<size_t>(a)],
                          &row = plan.reach[1][static_cast<size_t>(b)];
  const float* from = columns + plane.tap + plane.at + row.tap + row.at;
  if (s.kernel[2] == step)
    interleave<true>(from, s.in_plane(), step, step, some, bias, to);
  else
    interleave<false>(from, s.in_plane(), step, s.kernel[2], some, bias, to);
  fill_row(to + some, width - some, bias);
}

/// Rows of few pixels where windows lie side by side, one pixel wide: those of a position of the
/// kernel one after the other.
template <int kWidth>
void spread_narrow(const SpreadPlan& plan, const float* columns, float bias, int64_t begin,
                   int64_t end, float* y) {
  const ConvGeometry& s = plan.shape;
  for (int64_t row = begin; row < end;) {
    const int64_t deep = row / s.out[1], down = row % s.out[1];
    const int64_t rows = std::min(s.out[1] - down, end - row);
    const SpreadPlan::Reach& a = plan.reach[0][static_cast<size_t>(deep)];
    for (int64_t k = 0; k < std::min(s.stride[1], rows); ++k) {
      const SpreadPlan::Reach& b = plan.reach[1][static_cast<size_t>(down + k)];
      const float* HWY_RESTRICT from = columns + a.tap + a.at + b.tap + b.at;
      float* HWY_RESTRICT to = y + (row + k) * kWidth;
      for (int64_t r = k; r < rows; r += s.stride[1], from += kWidth, to += s.stride[1] * kWidth)
        for (int i = 0; i < kWidth; ++i) to[i] = from[i] + bias;
    }
    row += rows;
  }
}

template <int... kLess>
constexpr auto all_narrow(std::integer_sequence<int, kLess...>) {
  return std::array{&spread_narrow<kLess + 1>...};
}

void spread_some(const SpreadPlan& plan, const float* columns, float bias, int64_t begin,
                 int64_t end, float* y, float* room) {
  const ConvGeometry& s = plan.shape;
  const int64_t step = s.stride[2], width = s.out[2], length = plan.length;
  static constexpr auto kNarrow = all_narrow(std::make_integer_sequence<int, 8>());
  if (plan.side_by_side && step == 1 && width <= static_cast<int64_t>(kNarrow.size()))
    return kNarrow[static_cast<size_t>(width - 1)](plan, columns, bias, begin, end, y);
  for (int64_t row = begin; row < end; ++row) {
    const auto deep = static_cast<size_t>(row / s.out[1]),
               down = static_cast<size_t>(row % s.out[1]);
    if (plan.side_by_side && step != 1) {
      const SpreadPlan::Reach &a = plan.reach[0][deep], &b = plan.reach[1][down];
      interleave<true>(columns + a.tap + a.at + b.tap + b.at, s.in_plane(), step, step, width, bias,
                       y + row * width);
      continue;
    }
    if (plan.apart && step != 1) {
      row_apart(plan, columns, bias, deep, down, y + row * width);
      continue;
    }
    float* phases = step == 1 ? y + row * width : room;
    if (length <= (step == 1 ? kFewVectors : 1) * static_cast<int64_t>(hn::Lanes(F()))) {
      sum_short_row(plan, columns, bias, deep, down, phases);
    } else {
      // In the room whole vectors.
      fill_row(phases, step == 1 ? width : step * length + kSpreadVector, bias);
      rows_that_reach(plan, columns, deep, down, [&](const float* from) HWY_ATTR {
        for (const SpreadPlan::Stretch& stretch : plan.stretches)
          add_to_row(from + stretch.from, stretch.count, phases + stretch.to);
      });
    }
    if (step != 1) interleave<true>(phases, length, step, step, width, -0.0f, y + row * width);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace tombolo
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tombolo {

bool spread_apart(const ConvGeometry& s) {
  bool apart = s.pad[2] == 0;
  for (int axis = 0; axis < 3; ++axis)
    apart &= s.kernel[axis] == 1 || (s.kernel[axis] <= s.stride[axis] && s.dilation[axis] == 1);
  return apart;
}

SpreadPlan plan_spread(const ConvGeometry& s) {
  SpreadPlan plan;
  plan.shape = s;
  plan.side_by_side = true;
  plan.apart = spread_apart(s);
  for (int axis = 0; axis < 3; ++axis) {
    plan.side_by_side &= s.kernel[axis] == s.stride[axis] && s.pad[axis] == 0 &&
                         s.dilation[axis] == 1 && s.in[axis] * s.stride[axis] == s.out[axis];
  }
  for (int axis = 0; axis < 2; ++axis) {
    const int64_t taps = s.in_plane() * s.kernel[2] * (axis == 0 ? s.kernel[1] : 1);
    const int64_t places = s.in[2] * (axis == 0 ? s.in[1] : 1);
    plan.first[axis].push_back(0);
    for (int64_t o = 0; o < s.out[axis]; ++o) {
      for (int64_t k = 0; k < s.kernel[axis]; ++k) {
        const int64_t at = o + s.pad[axis] - k * s.dilation[axis];
        if (at >= 0 && at % s.stride[axis] == 0 && at / s.stride[axis] < s.in[axis])
          plan.reach[axis].push_back({k * taps, at / s.stride[axis] * places});
      }
      plan.first[axis].push_back(static_cast<int64_t>(plan.reach[axis].size()));
    }
  }
  const int64_t step = s.stride[2], width = s.out[2];
  plan.length = step == 1 ? width : (width + step - 1) / step;
  for (int64_t k = 0; k < s.kernel[2]; ++k) {
    const int64_t shift = k * s.dilation[2] - s.pad[2];
    const int64_t phase = (shift % step + step) % step, first = (shift - phase) / step;
    const int64_t places = phase < width ? (width - phase + step - 1) / step : 0;
    const int64_t skipped = std::max<int64_t>(0, -first);
    const int64_t count = std::min(s.in[2], places - first) - skipped;
    if (count > 0)
      plan.stretches.push_back(
          {k * s.in_plane() + skipped, phase * plan.length + first + skipped, count});
  }
  const auto part = [&](const SpreadPlan::Stretch& stretch) { return stretch.to / plan.length; };
  std::stable_sort(plan.stretches.begin(), plan.stretches.end(),
                   [&](const auto& a, const auto& b) { return part(a) < part(b); });
  for (int64_t p = 0; p <= step; ++p)
    plan.first_stretch.push_back(
        static_cast<size_t>(std::count_if(plan.stretches.begin(), plan.stretches.end(),
                                          [&](const auto& stretch) { return part(stretch) < p; })));
  return plan;
}

int64_t spread_room(const ConvGeometry& shape) { return shape.out[2] + shape.stride[2] + 64; }

void spread_rows(const SpreadPlan& plan, const float* columns, float bias, int64_t begin,
                 int64_t end, float* y, float* room) {
  using Fn = void(const SpreadPlan&, const float*, float, int64_t, int64_t, float*, float*);
  TOMBOLO_TARGET(Fn, spread_some).get()(plan, columns, bias, begin, end, y, room);
}

}  // namespace tombolo
#endif
