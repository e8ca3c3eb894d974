// NonMaxSuppression: a box is compared with a vector of those that were picked before.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/kernels/image/rows_select_boxes.cpp"
#include "runtime/kernels/targets.h"
// After targets.h, which sets macros for Highway.
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <bit>
#include <vector>

#include "ops/kernels/select_boxes.h"
#include "runtime/kernels/dispatch.h"
#include "runtime/kernels/kernel.h"

#if defined(__x86_64__)
#include "runtime/kernels/intrinsics.h"
#endif

HWY_BEFORE_NAMESPACE();
namespace tombolo {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Blocks of 16 boxes: their tops, left, bottom and right sides, and areas. Comparisons are those
/// of std::min and std::max, which numbers that are none tell apart.
bool overlaps_any(const float* blocks, int64_t count, const ops::Box& box, float threshold) {
  const hn::CappedTag<float, 16> d;
  using V = hn::Vec<decltype(d)>;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const V top = hn::Set(d, box.top), left = hn::Set(d, box.left), bottom = hn::Set(d, box.bottom),
          right = hn::Set(d, box.right), area = hn::Set(d, box.area()),
          limit = hn::Set(d, threshold), zero = hn::Zero(d);
  const auto least = [](V a, V b) HWY_ATTR { return hn::IfThenElse(hn::Lt(b, a), b, a); };
  const auto most = [](V a, V b) HWY_ATTR { return hn::IfThenElse(hn::Lt(a, b), b, a); };
  for (int64_t block = 0; block < count; ++block)
    for (int64_t lane = 0; lane < 16; lane += lanes) {
      const float* other = blocks + block * 80 + lane;
      const V height =
          hn::Sub(least(bottom, hn::LoadU(d, other + 32)), most(top, hn::LoadU(d, other)));
      const V width =
          hn::Sub(least(right, hn::LoadU(d, other + 48)), most(left, hn::LoadU(d, other + 16)));
      const V areas = hn::LoadU(d, other + 64);
      const auto meet =
          hn::And(hn::And(hn::Gt(height, zero), hn::Gt(width, zero)), hn::Gt(areas, zero));
      if (hn::AllFalse(d, meet)) continue;
      const V common = hn::Mul(height, width);
      const V share = hn::Div(common, hn::Sub(hn::Add(area, areas), common));
      if (!hn::AllFalse(d, hn::And(meet, hn::Gt(share, limit)))) return true;
    }
  return false;
}

#if HWY_TARGET == HWY_AVX3
/// ops::box_candidates of a vector of scores, those of `inside`.
HWY_INLINE size_t put_candidates(hn::Vec<hn::ScalableTag<float>> score, __mmask16 inside,
                                 int64_t at, uint64_t* to) {
  const __m512i bits = _mm512_castps_si512(_mm512_add_ps(score.raw, _mm512_setzero_ps()));
  const __m512i key = _mm512_xor_si512(
      bits, _mm512_or_si512(_mm512_srai_epi32(bits, 31), _mm512_set1_epi32(INT32_MIN)));
  const __m512i place =
      _mm512_sub_epi32(_mm512_set1_epi32(static_cast<int>(UINT32_MAX - static_cast<uint32_t>(at))),
                       _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15));
  const auto half = [&](int first, uint64_t* out) HWY_ATTR {
    const __m256i low =
        first == 0 ? _mm512_castsi512_si256(place) : _mm512_extracti64x4_epi64(place, 1);
    const __m256i high =
        first == 0 ? _mm512_castsi512_si256(key) : _mm512_extracti64x4_epi64(key, 1);
    const auto mask = static_cast<__mmask8>(inside >> first);
    const __m512i pairs = _mm512_or_si512(_mm512_slli_epi64(_mm512_cvtepu32_epi64(high), 32),
                                          _mm512_cvtepu32_epi64(low));
    // Not straight to memory, which takes many times as long on some processors.
    _mm512_storeu_si512(out, _mm512_maskz_compress_epi64(mask, pairs));
    return static_cast<size_t>(__builtin_popcount(mask));
  };
  const size_t some = half(0, to);
  return some + half(8, to + some);
}
#endif

/// ops::box_candidates: most scores are low, and some vectors are looked at together.
size_t candidates(const ops::BoxSelection& s, const float* scores, uint64_t* to) {
  const hn::ScalableTag<float> d;
  constexpr int64_t kTogether = 64 / HWY_LANES(float);
  const auto lanes = static_cast<int64_t>(hn::Lanes(d)), step = kTogether * lanes;
  const auto limit = hn::Set(d, s.score_threshold);
  const bool filtered = s.filtered;
  const auto counts = [&](int64_t at) HWY_ATTR {
    const auto score = hn::LoadU(d, scores + at);
    return filtered ? hn::Gt(score, limit) : hn::Eq(score, score);
  };
#if HWY_TARGET != HWY_AVX3
  if (!filtered) return ops::box_candidates(s, scores, 0, s.count, to);
#endif
  size_t some = 0;
  int64_t i = 0;
  for (; i + step <= s.count; i += step) {
    auto any = counts(i);
#pragma GCC unroll 16
    for (int64_t v = 1; v < kTogether; ++v) any = hn::Or(any, counts(i + v * lanes));
    if (hn::AllFalse(d, any)) continue;
#if HWY_TARGET == HWY_AVX3
    for (int64_t v = 0; v < kTogether; ++v)
      some += put_candidates(hn::LoadU(d, scores + i + v * lanes), counts(i + v * lanes).raw,
                             i + v * lanes, to + some);
#else
    for (int64_t v = i; v < i + step; v += lanes) {
      uint8_t bits[8];  // as many as the function asks for
      hn::StoreMaskBits(d, counts(v), bits);
      for (uint32_t left = bits[0]; left != 0; left &= left - 1) {
        const int64_t at = v + std::countr_zero(left);
        to[some++] = ops::box_candidate(scores[at], at);
      }
    }
#endif
  }
  return some + ops::box_candidates(s, scores, i, s.count, to + some);
}

}  // namespace HWY_NAMESPACE
}  // namespace tombolo
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tombolo {
namespace {

class PickedBlocks {
 public:
  void clear() {
    blocks_.clear();
    count_ = 0;
  }
  void add(const ops::Box& box) {
    if (count_ % 16 == 0) blocks_.resize(blocks_.size() + 80, 0.0f);  // without area: never met
    float* at = blocks_.data() + count_ / 16 * 80 + count_ % 16;
    const float numbers[5] = {box.top, box.left, box.bottom, box.right, box.area()};
    for (size_t i = 0; i < 5; ++i) at[i * 16] = numbers[i];
    ++count_;
  }
  static size_t candidates(const ops::BoxSelection& s, const float* scores, uint64_t* to) {
    using Fn = size_t(const ops::BoxSelection&, const float*, uint64_t*);
    return TOMBOLO_TARGET(Fn, candidates)(s, scores, to);
  }
  bool overlaps(const ops::Box& box, float threshold) const {
    using Fn = bool(const float*, int64_t, const ops::Box&, float);
    return box.area() > 0 &&
           TOMBOLO_TARGET(Fn, overlaps_any)(
               blocks_.data(), static_cast<int64_t>(blocks_.size()) / 80, box, threshold);
  }

 private:
  std::vector<float> blocks_;
  size_t count_ = 0;
};

bool supports_select(const KernelQuery& q) {
  if (active_isa() == Isa::kScalar || q.inputs.size() < 2 || q.dtype(0) != DType::kFloat32 ||
      q.dtype(1) != DType::kFloat32)
    return false;
  const auto boxes = q.dims(0), scores = q.dims(1);
  if (boxes.size() != 3 || scores.size() != 3 || boxes[2] != 4 || boxes[0] != scores[0] ||
      boxes[1] != scores[2] || boxes[1] > INT32_MAX)
    return false;
  for (size_t i = 2; i < q.inputs.size(); ++i)
    if (q.has_input(i) &&
        (element_count(q.dims(i)) != 1 || q.dtype(i) != (i == 2 ? DType::kInt64 : DType::kFloat32)))
      return false;
  return true;
}

struct SelectState final : KernelState {
  ops::BoxSelection selection;
};

Result<std::unique_ptr<KernelState>> prepare_select(const PrepareContext& q) {
  auto state = std::make_unique<SelectState>();
  state->selection = {.batch = q.dims(0)[0],
                      .classes = q.dims(1)[1],
                      .count = q.dims(0)[1],
                      .filtered = q.has_input(4),
                      .centred = q.attributes.get_int("center_point_box", 0) != 0};
  return state;
}

Status run_select(KernelRun& run) {
  ops::BoxSelection s = run.state<SelectState>().selection;
  if (run.has_input(2)) s.most = run.data<int64_t>(2)[0];
  if (run.has_input(3)) s.iou_threshold = run.data<float>(3)[0];
  if (run.has_input(4)) s.score_threshold = run.data<float>(4)[0];
  const std::vector<int64_t> selected = ops::select_boxes<PickedBlocks>(
      s, run.data<float>(0), run.data<float>(1),
      [&](int64_t n, int64_t grain, auto&& body) { run.parallel_for(n, grain, body); });
  const int64_t dims[] = {static_cast<int64_t>(selected.size()) / 3, 3};
  TRY(Tensor * y, run.output(0, DType::kInt64, dims));
  std::copy(selected.begin(), selected.end(), y->data<int64_t>());
  return ok();
}

}  // namespace

KERNEL(select_boxes) = {
    .name = "select_boxes",
    .op = "NonMaxSuppression",
    .supports = supports_select,
    .prepare = prepare_select,
    .run = run_select,
};

}  // namespace tombolo
#endif
