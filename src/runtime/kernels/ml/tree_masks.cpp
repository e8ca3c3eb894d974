#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/kernels/ml/tree_masks.cpp"
#include "runtime/kernels/targets.h"
// After targets.h, which sets macros for Highway.
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <utility>

#include "runtime/kernels/dispatch.h"
#include "runtime/kernels/isa.h"
#include "runtime/kernels/ml/tree_masks.h"
#include "runtime/kernels/tensor/transpose_tile.h"
#include "runtime/kernels/vec-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tombolo {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Leaves that are left where x is above the split.
template <class U, class F>
HWY_INLINE U strike(U left, F x, F split, U keep) {
#if HWY_TARGET <= HWY_AVX3
  const __mmask16 above = _mm512_cmp_ps_mask(x.raw, split.raw, _CMP_NLE_UQ);
  return U{_mm512_mask_and_epi32(left.raw, above, left.raw, keep.raw)};
#else
  const hn::DFromV<U> u;
  const auto stays = hn::BitCast(u, hn::VecFromMask(hn::DFromV<F>(), hn::Le(x, split)));
  return hn::And(left, hn::Or(stays, keep));
#endif
}

/// The number of the lowest bit: the exponent of what it stands for, which a float has exactly.
template <class V>
HWY_INLINE V first_leaf(V left) {
  const hn::DFromV<V> d;
  const hn::RebindToFloat<decltype(d)> f;
  const auto lowest = hn::ConvertTo(f, hn::And(left, hn::Neg(left)));
  const auto exponent = hn::And(hn::ShiftRight<23>(hn::BitCast(d, lowest)), hn::Set(d, 255));
  return hn::Sub(exponent, hn::Set(d, 127));
}

/// kGroups vectors of rows.
template <int kGroups>
void add_masks(const MaskForest& forest, int64_t first, int64_t last, const float* columns,
               double* sums) {
  const hn::ScalableTag<float> f;
  const hn::RebindToUnsigned<decltype(f)> u;
  const hn::RebindToSigned<decltype(f)> d;
  const hn::Half<decltype(f)> half;
  const hn::Repartition<double, decltype(f)> wide;
  const auto lanes = static_cast<int64_t>(hn::Lanes(f));
  using U = hn::Vec<decltype(u)>;
  const MaskForest::Tree* const trees = forest.trees.data();
  for (int64_t t = first; t < last; ++t) {
    const auto [words_end, targets_end, values] = trees[t];
    const int32_t words_begin = t == 0 ? 0 : trees[t - 1].words_end;
    const int32_t words = words_end - words_begin;
    hn::Vec<decltype(d)> leaf[kGroups];
#pragma GCC unroll 4
    for (int g = 0; g < kGroups; ++g) leaf[g] = hn::Zero(d);
    // An earlier word with leaves left has the first of them.
    for (int32_t w = words - 1; w >= 0; --w) {
      const auto at_word = static_cast<size_t>(words_begin + w);
      const MaskForest::Word& word = forest.words[at_word];
      const int32_t begin = at_word == 0 ? 0 : forest.words[at_word - 1].tests_end;
      U left[kGroups];
#pragma GCC unroll 4
      for (int g = 0; g < kGroups; ++g) left[g] = hn::Set(u, word.leaves);
      const MaskForest::Test* test = forest.tests.data() + begin;
      for (const auto* const end = forest.tests.data() + word.tests_end; test != end; ++test) {
        const auto split = hn::Set(f, test->split);
        const auto keep = hn::Set(u, test->keep);
        const float* const x = columns + test->column * kLinearRows;
#pragma GCC unroll 4
        for (int g = 0; g < kGroups; ++g)
          left[g] = strike(left[g], hn::LoadU(f, x + g * lanes), split, keep);
      }
#pragma GCC unroll 4
      for (int g = 0; g < kGroups; ++g) {
        auto at = first_leaf(hn::BitCast(d, left[g]));
        if (words > 1) at = hn::Add(at, hn::Set(d, 32 * w));
        leaf[g] = hn::IfThenElse(hn::RebindMask(d, hn::Ne(left[g], hn::Zero(u))), at, leaf[g]);
      }
    }
    const float* value = forest.values.data() + values;
    const int32_t targets_begin = t == 0 ? 0 : trees[t - 1].targets_end;
    for (int32_t i = targets_begin; i < targets_end; ++i, value += 32 * words) {
      double* to = sums + forest.targets[static_cast<size_t>(i)] * kLinearRows;
#pragma GCC unroll 4
      for (int g = 0; g < kGroups; ++g, to += lanes) {
        hn::Vec<decltype(f)> votes;
#if HWY_TARGET <= HWY_AVX3
        if (words == 1)
          votes = hn::Vec<decltype(f)>{_mm512_permutex2var_ps(hn::LoadU(f, value).raw, leaf[g].raw,
                                                              hn::LoadU(f, value + 16).raw)};
        else
#endif
          votes = hn::GatherIndex(f, value, leaf[g]);
        double* const behind = to + lanes / 2;
        const auto low = hn::PromoteTo(wide, hn::LowerHalf(half, votes));
        const auto high = hn::PromoteTo(wide, hn::UpperHalf(half, votes));
        hn::StoreU(hn::Add(hn::LoadU(wide, to), low), wide, to);
        hn::StoreU(hn::Add(hn::LoadU(wide, behind), high), wide, behind);
      }
    }
  }
}

void add_groups(const MaskForest* forest, int64_t first, int64_t last, const float* columns,
                int64_t rows, double* sums) {
  constexpr int64_t kLanes = static_cast<int64_t>(hn::MaxLanes(hn::ScalableTag<float>()));
  constexpr int kMost = static_cast<int>(std::min<int64_t>(4, kLinearRows / kLanes));
  for (int64_t r = 0; r < rows; r += kMost * kLanes) {
    const int64_t groups = (rows - r + kLanes - 1) / kLanes;
    const float* x = columns + r;
    if (groups == 1)
      add_masks<1>(*forest, first, last, x, sums + r);
    else if (kMost == 2 || groups == 2)
      add_masks<2>(*forest, first, last, x, sums + r);
    else
      add_masks<kMost>(*forest, first, last, x, sums + r);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace tombolo
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tombolo {

namespace {
constexpr int32_t kMostLeaves = 512;
constexpr size_t kMostTargets = 16;  ///< of one tree: a walk adds the votes of a leaf side by side
}  // namespace

bool MaskForest::add_tree(const FlatForest<float>& forest, int32_t root, int64_t target_count,
                          std::vector<int32_t>& column_of) {
  // Leaves in their order, and which of them each test strikes out.
  struct Struck {
    int32_t node, first, last;
  };
  struct Open {
    int32_t node;
    size_t test;  ///< whose first child has been seen to the end; none: npos
  };
  constexpr auto kNone = static_cast<size_t>(-1);
  std::vector<Struck> struck;
  std::vector<int32_t> leaves;
  std::vector<Open> open = {{root, kNone}};
  while (!open.empty()) {
    const auto [node, test] = open.back();
    open.pop_back();
    if (test != kNone) struck[test].last = static_cast<int32_t>(leaves.size());
    if (forest.is_leaf(node)) {
      if (leaves.size() == kMostLeaves) return false;
      leaves.push_back(node);
      continue;
    }
    const int32_t child = forest.nodes[static_cast<size_t>(node)].child;
    open.push_back({child + 1, struck.size()});
    open.push_back({child, kNone});
    struck.push_back({node, static_cast<int32_t>(leaves.size()), 0});
  }
  const auto count = static_cast<int32_t>(leaves.size()), word_count = (count + 31) / 32;
  for (int32_t w = 0; w < word_count; ++w) {
    const auto bits = [&](int32_t begin, int32_t end) {  // of leaves [begin, end)
      begin = std::clamp(begin - 32 * w, 0, 32);
      end = std::clamp(end - 32 * w, 0, 32);
      const uint64_t ones = (uint64_t{1} << (end - begin)) - 1;
      return begin < end ? static_cast<uint32_t>(ones << begin) : 0u;
    };
    for (const Struck& s : struck) {
      const uint32_t gone = bits(s.first, s.last);
      if (gone == 0) continue;
      const FlatNode<float>& node = forest.nodes[static_cast<size_t>(s.node)];
      int32_t& column = column_of[node.feature];
      if (column < 0) {
        column = static_cast<int32_t>(columns.size());
        const bool opposite = node.feature >= forest.features;
        columns.push_back({node.feature - (opposite ? forest.features : 0), opposite});
      }
      tests.push_back({node.split, ~gone, column});
    }
    words.push_back({static_cast<int32_t>(tests.size()), bits(0, count)});
  }
  const auto start = static_cast<int32_t>(values.size());
  size_t voted = 0;
  for (int64_t t = 0; t < target_count; ++t) {
    std::vector<float> votes(static_cast<size_t>(32 * word_count));
    bool any = false;
    for (size_t i = 0; i < leaves.size(); ++i) {
      const auto node = static_cast<size_t>(leaves[i]);
      const size_t at = target_count == 1 ? node
                                          : static_cast<size_t>(forest.leaf_rows[node]) *
                                                    static_cast<size_t>(target_count) +
                                                static_cast<size_t>(t);
      const double vote = forest.weights[at];
      votes[i] = static_cast<float>(vote);
      if (static_cast<double>(votes[i]) != vote) return false;
      any = any || vote != 0;
    }
    if (!any) continue;
    if (++voted > kMostTargets) return false;
    targets.push_back(static_cast<int32_t>(t));
    values.insert(values.end(), votes.begin(), votes.end());
  }
  trees.push_back(
      {static_cast<int32_t>(words.size()), static_cast<int32_t>(targets.size()), start});
  return true;
}

bool MaskForest::build(const FlatForest<float>& forest, int64_t target_count) {
  if (forest.general || forest.weights.empty()) return false;
  std::vector<int32_t> column_of(forest.features * (forest.mirrored ? 2 : 1), -1);
  for (const int32_t root : forest.roots)
    if (!add_tree(forest, root, target_count, column_of)) return false;
  // Whole rows are turned unless few of their features are looked at.
  features = forest.features;
  whole_rows = static_cast<int64_t>(columns.size()) * 4 >= features;
  if (!whole_rows) return true;
  std::vector<int32_t> place;
  std::vector<Column> opposites;
  for (const Column& column : columns) {
    if (!column.opposite) {
      place.push_back(static_cast<int32_t>(column.feature));
      continue;
    }
    place.push_back(static_cast<int32_t>(features) + static_cast<int32_t>(opposites.size()));
    opposites.push_back(column);
  }
  columns = std::move(opposites);
  for (Test& test : tests) test.column = place[static_cast<size_t>(test.column)];
  return true;
}

double MaskForest::cost(int64_t rows) const {
  const int64_t lanes = vector_floats();
  const auto vectors = static_cast<double>((rows + lanes - 1) / lanes);
  const auto chunks = static_cast<double>((rows + kLinearRows - 1) / kLinearRows);
  const double of_vector = static_cast<double>(tests.size()) +
                           4 * static_cast<double>(words.size()) +
                           8 * static_cast<double>(targets.size());
  return vectors * 1.45 * of_vector +
         chunks * (50 + 10 * static_cast<double>(column_floats()) / kLinearRows);
}

void MaskForest::gather(const float* x, int64_t rows, float* to) const {
  if (whole_rows) {
    transpose_tile(reinterpret_cast<const std::byte*>(x), features,
                   reinterpret_cast<std::byte*>(to), kLinearRows, rows, features, sizeof(float));
    to += features * kLinearRows;
  }
  for (const auto [feature, opposite] : columns) {
    const float* from = x + feature;
    const float sign = opposite ? -1.0f : 1.0f;
    for (int64_t r = 0; r < rows; ++r, from += features) to[r] = sign * *from;
    to += kLinearRows;
  }
}

void MaskForest::add(int64_t first, int64_t last, const float* columns_of_rows, int64_t rows,
                     double* sums) const {
  TOMBOLO_TARGET(void(const MaskForest*, int64_t, int64_t, const float*, int64_t, double*),
                 add_groups)
  (this, first, last, columns_of_rows, rows, sums);
}

}  // namespace tombolo
#endif
