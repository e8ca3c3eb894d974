// Tree ensembles of ai.onnx.ml: every test is "x <= split", the children of a node lie side by
// side, and sixteen walks go down at a time without a branch; or, in small trees, every test is
// made for rows side by side (tree_masks.h).

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "ops/kernels/tree.h"
#include "runtime/kernels/isa.h"
#include "runtime/kernels/kernel.h"
#include "runtime/kernels/ml/flat_forest.h"
#include "runtime/kernels/ml/linear_scores.h"
#include "runtime/kernels/ml/ml_setting.h"
#include "runtime/kernels/ml/tree_masks.h"
#include "runtime/kernels/no_host.h"

namespace tombolo {
namespace {

using ops::Aggregate;
using ops::Forest;

constexpr int kWalks = 16;

template <bool kGeneral, typename T>
inline int32_t step(const FlatNode<T>* nodes, int32_t at, const T* row) {
  const FlatNode<T>& node = nodes[at];
  if constexpr (!kGeneral)
    return node.child + static_cast<int32_t>(!(row[node.feature] <= node.split));
  const T x = row[node.feature & FlatNode<T>::kFeature];
  bool yes = x <= node.split;
  yes &= static_cast<bool>(((node.feature & FlatNode<T>::kEqual) == 0) | (x >= node.split));
  yes |= static_cast<bool>(((node.feature & FlatNode<T>::kMissing) != 0) & (x != x));
  return node.child + static_cast<int32_t>(!yes);
}

int64_t groups_of(int64_t walks) { return (walks + kWalks - 1) / kWalks; }
/// Of so few rows that they do not fill one: those of each row, unless many fewer do when rows go
/// together, though a step takes longer then.
int64_t few_groups(int64_t rows, int64_t trees) {
  const int64_t apart = rows * groups_of(trees), together = groups_of(rows * trees);
  return together * 8 < apart * 7 ? together : apart;
}

/// Walk i goes from at[i] to its leaf, at most `depth` steps away, looking at row(i).
template <bool kGeneral, typename T, typename Row>
inline void go_down(const FlatNode<T>* nodes, Row&& row, int32_t depth, int32_t* at) {
  int32_t a[kWalks];
  std::copy_n(at, kWalks, a);
  // So few steps are taken faster than asked about.
  constexpr int32_t kFew = 8;
  for (int32_t k = std::min(depth, kFew); k > 0; --k)
#pragma GCC unroll 16
    for (int i = 0; i < kWalks; ++i) a[i] = step<kGeneral>(nodes, a[i], row(i));
  for (int32_t left = depth - kFew, moved = 1; left > 0 && moved != 0; left -= 2) {
    moved = 0;
#pragma GCC unroll 16
    for (int i = 0; i < kWalks; ++i) a[i] = step<kGeneral>(nodes, a[i], row(i));
#pragma GCC unroll 16
    for (int i = 0; i < kWalks; ++i) {
      const int32_t next = step<kGeneral>(nodes, a[i], row(i));
      moved |= next ^ a[i];
      a[i] = next;
    }
  }
  std::copy_n(a, kWalks, at);
}

/// kWalks of rows of their own.
template <bool kGeneral, typename T>
void walk(const FlatNode<T>* nodes, const T* const* rows, int32_t depth, int32_t* at) {
  const T* r[kWalks];
  std::copy_n(rows, kWalks, r);
  go_down<kGeneral>(
      nodes, [&](int i) { return r[i]; }, depth, at);
}
/// kWalks of one row.
template <bool kGeneral, typename T>
void walk_row(const FlatNode<T>* nodes, const T* row, int32_t depth, int32_t* at) {
  go_down<kGeneral>(
      nodes, [&](int) { return row; }, depth, at);
}

struct TreeState final : KernelState {
  std::variant<ops::TreeRegression, ops::TreeClassification> meaning;
  std::variant<std::monostate, FlatForest<float>, FlatForest<double>> flat;
  MaskForest masks;  ///< the same without walks, where that is known to serve
  bool has_masks = false;
  double walk_cost = 0;  ///< of a row, in cycles or so
  size_t columns = 1;    ///< of scores given out

  /// Whether so many rows take less time without walks.
  bool takes_masks(int64_t rows) const {
    if (!has_masks) return false;
    const auto trees = static_cast<int64_t>(masks.trees.size());
    const int64_t walks = rows < kWalks ? few_groups(rows, trees) * kWalks : rows * trees;
    return masks.cost(rows) * static_cast<double>(trees) < walk_cost * static_cast<double>(walks);
  }
  const Forest& forest() const {
    return std::visit([](const auto& m) -> const Forest& { return m.forest; }, meaning);
  }
  Aggregate aggregate() const {
    const auto* regression = std::get_if<ops::TreeRegression>(&meaning);
    return regression != nullptr ? regression->aggregate : Aggregate::kSum;
  }
};

bool is_classifier(const Node& node) { return node.op_type() == "TreeEnsembleClassifier"; }

bool supports_trees(const KernelQuery& query) {
  if (active_isa() == Isa::kScalar || query.inputs.size() != 1 || query.dims(0).size() != 2)
    return false;
  const DType dtype = query.dtype(0);
  if (dtype != DType::kFloat32 && dtype != DType::kFloat64 &&
      (query.node.op_type() == "TreeEnsemble" ||
       (dtype != DType::kInt64 && dtype != DType::kInt32)))
    return false;
  return query.dims(0)[1] > 0;
}

template <typename Body>
auto with_context(const Node& node, int opset, const AttributeReader& attributes, Body&& body) {
  NoHost host;
  const KernelContext context{node, opset, {}, {}, attributes, host, nullptr};
  return body(context);
}

Result<std::unique_ptr<KernelState>> prepare_trees(const PrepareContext& q) {
  auto state = std::make_unique<TreeState>();
  CHECK_OK(with_context(q.node, q.opset, q.attributes, [&](const KernelContext& context) -> Status {
    const int64_t features = q.dims(0)[1];
    if (is_classifier(q.node)) {
      TRY(state->meaning, ops::read_tree_classifier(context, features));
      auto& rule = std::get<ops::TreeClassification>(state->meaning);
      std::vector<double> none(static_cast<size_t>(rule.forest.targets)), row;
      rule.decide(none, row);
      state->columns = row.size();
    } else if (q.node.op_type() == "TreeEnsemble") {
      TRY(state->meaning, ops::read_tree_ensemble(context, features));
    } else {
      TRY(state->meaning, ops::read_tree_regressor(context, features));
    }
    return ok();
  }));
  if (!is_classifier(q.node)) state->columns = static_cast<size_t>(state->forest().targets);
  if (q.dtype(0) == DType::kFloat32) {
    FlatForest<float> flat;
    if (flat.build(state->forest(), q.dims(0)[1])) {
      const bool sums =
          state->aggregate() == Aggregate::kSum || state->aggregate() == Aggregate::kAverage;
      state->has_masks = sums && state->masks.build(flat, state->forest().targets);
      for (const int32_t depth : flat.depths) state->walk_cost += 8 + 1.6 * depth;
      state->flat = std::move(flat);
    }
  } else {
    FlatForest<double> flat;
    if (flat.build(state->forest(), q.dims(0)[1])) state->flat = std::move(flat);
  }
  return state;
}

/// Where results go: scores [rows, columns] in float or double, and numbers of classes.
struct Target {
  Tensor* scores;
  int64_t* labels;     ///< null where there are none
  std::string* names;  ///< in their place, of classes that have names

  void give_label(const ops::ClassLabels& of, int64_t row, int64_t number) const {
    const bool known = number >= 0 && number < of.count();
    if (names != nullptr)
      names[row] = known ? std::string_view(of.strings[static_cast<size_t>(number)]) : "";
    if (labels != nullptr) labels[row] = known ? of.ints[static_cast<size_t>(number)] : number;
  }
};

/// Sums of all trees as the aggregate asks for.
void average(const TreeState& state, std::span<double> sums) {
  if (state.aggregate() != Aggregate::kAverage || state.forest().roots.empty()) return;
  for (double& sum : sums) sum /= static_cast<double>(state.forest().roots.size());
}

void give(const TreeState& state, std::span<double> sums, std::vector<double>& room, int64_t row,
          const Target& to) {
  std::span<const double> scores = sums;
  if (const auto* rule = std::get_if<ops::TreeClassification>(&state.meaning)) {
    if (rule->transform == ops::PostTransform::kNone && !rule->one_score && rule->base.empty()) {
      to.give_label(rule->labels, row, ops::greatest(sums));
    } else {
      const int64_t number = rule->decide(sums, room);
      scores = room;
      to.give_label(rule->labels, row, number);
    }
  } else {
    std::get<ops::TreeRegression>(state.meaning).finish(sums);
  }
  if (to.scores == nullptr) return;
  const size_t at = static_cast<size_t>(row) * state.columns;
  if (to.scores->dtype() == DType::kFloat32)
    for (size_t i = 0; i < scores.size(); ++i)
      to.scores->data<float>()[at + i] = static_cast<float>(scores[i]);
  else
    std::copy(scores.begin(), scores.end(), to.scores->data<double>() + at);
}

/// Columns of kLinearRows scores: what a rule makes of columns of sums, where vectors can.
struct ScoreColumns {
  std::vector<double> sums;  ///< changed
  std::vector<float> scores;
  int64_t labels[kLinearRows];

  /// Two classes with one score: the second column, and the first made of it, unless the score is
  /// that of the second class (`is_second`).
  void one_score(const ops::TreeClassification& rule, bool is_second) {
    double* const first = sums.data();
    double* const second = first + kLinearRows;
    const bool logistic = rule.transform == ops::PostTransform::kLogistic;
    if (!is_second) std::copy_n(first, kLinearRows, second);
    const double threshold = rule.probabilities ? 0.5 : 0;
    for (int64_t r = 0; r < kLinearRows; ++r) {
      labels[r] = second[r] > threshold ? 1 : 0;
      if (is_second)
        first[r] = 0;
      else
        first[r] = rule.probabilities && !logistic ? 1 - second[r] : -second[r];
    }
  }
  void find_greatest(int64_t targets) {
    double most[kLinearRows];
    std::copy_n(sums.data(), kLinearRows, most);
    std::fill_n(labels, kLinearRows, 0);
    for (int64_t t = 1; t < targets; ++t)
      for (int64_t r = 0; r < kLinearRows; ++r) {
        const double sum = sums[static_cast<size_t>(t * kLinearRows + r)];
        labels[r] = sum > most[r] ? t : labels[r];
        most[r] = sum > most[r] ? sum : most[r];
      }
  }
};

/// What the sums of `all`, columns of kLinearRows, say of rows from `row` on.
void give_columns(const TreeState& state, ScoreColumns& all, int64_t row, int64_t rows,
                  const Target& to) {
  using ops::PostTransform;
  const auto* classes = std::get_if<ops::TreeClassification>(&state.meaning);
  const auto* numbers = std::get_if<ops::TreeRegression>(&state.meaning);
  const bool one_score = classes != nullptr && classes->one_score;
  const PostTransform asked = classes != nullptr ? classes->transform : numbers->transform;
  const std::vector<double>& base = classes != nullptr ? classes->base : numbers->base;
  const int64_t targets = state.forest().targets;
  const auto columns = static_cast<int64_t>(state.columns);
  average(state, all.sums);
  const bool vectors = vectors_have(asked) &&
                       (to.scores == nullptr || to.scores->dtype() == DType::kFloat32) &&
                       columns == (one_score ? 2 : targets);
  if (!vectors) {
    std::vector<double> one(static_cast<size_t>(targets)), room;
    for (int64_t r = 0; r < rows; ++r) {
      for (size_t t = 0; t < one.size(); ++t)
        one[t] = all.sums[t * kLinearRows + static_cast<size_t>(r)];
      give(state, one, room, row + r, to);
    }
    return;
  }
  for (int64_t t = 0; t < targets && !base.empty(); ++t)
    for (int64_t r = 0; r < kLinearRows; ++r)
      all.sums[static_cast<size_t>(t * kLinearRows + r)] +=
          base[base.size() == 1 ? 0 : static_cast<size_t>(t)];
  all.sums.resize(static_cast<size_t>(columns * kLinearRows));
  PostTransform transform = asked;
  if (one_score) {
    const bool is_second = !classes->forest.votes.empty() && classes->forest.votes[0].target == 1;
    all.one_score(*classes, is_second);
    if (asked == PostTransform::kSoftmax && !is_second) transform = PostTransform::kNone;
  } else if (classes != nullptr) {
    all.find_greatest(targets);
  }
  for (int64_t r = 0; r < rows && classes != nullptr; ++r)
    to.give_label(classes->labels, row + r, all.labels[r]);
  if (to.scores == nullptr) return;
  all.scores.resize(all.sums.size());
  narrow_scores(all.sums.data(), columns * kLinearRows, all.scores.data());
  give_score_columns(transform, all.scores.data(), columns, rows,
                     to.scores->data<float>() + row * columns);
}

/// The sums of rows while trees are added in their order.
struct Sums {
  Sums(const TreeState& s, int64_t rows)
      : state(s),
        targets(static_cast<size_t>(s.forest().targets)),
        sum(s.aggregate() == Aggregate::kSum || s.aggregate() == Aggregate::kAverage),
        values(targets * static_cast<size_t>(rows)),
        voted(values.size()) {}

  /// Leaves of rows from `row` on, `next` (0 or 1) rows apart, in their order.
  template <typename T>
  void add(const FlatForest<T>& flat, int64_t row, int64_t next, const int32_t* leaves, int64_t n) {
    const size_t at = static_cast<size_t>(row) * targets;
    const size_t apart = static_cast<size_t>(next) * targets;
    if (!sum || flat.weights.empty()) {
      for (int64_t i = 0; i < n; ++i) {
        const size_t to = at + static_cast<size_t>(i) * apart;
        state.forest().add_votes(static_cast<size_t>(flat.source[static_cast<size_t>(leaves[i])]),
                                 state.aggregate(), std::span(values).subspan(to, targets),
                                 std::span(voted).subspan(to, targets));
      }
      return;
    }
    const double* const weights = flat.weights.data();
    double* to = values.data() + at;
    if (targets == 1) {
      if (next == 0) {
        double one = *to;
        for (int64_t i = 0; i < n; ++i) one += weights[leaves[i]];
        *to = one;
      } else {
        for (int64_t i = 0; i < n; ++i) to[i] += weights[leaves[i]];
      }
      return;
    }
    for (int64_t i = 0; i < n; ++i, to += apart) {
      const double* const weight =
          weights + static_cast<size_t>(flat.leaf_rows[static_cast<size_t>(leaves[i])]) * targets;
      for (size_t t = 0; t < targets; ++t) to[t] += weight[t];
    }
  }
  void clear() {
    std::fill(values.begin(), values.end(), 0);
    std::fill(voted.begin(), voted.end(), 0);
  }
  /// The first n rows, given out from row `row` on.
  void finish(int64_t n, int64_t row, const Target& to) {
    constexpr int64_t kFew = 8;  // vectors would have mostly nothing in them
    const auto columns = static_cast<int64_t>(targets);
    if (n < kFew) average(state, values);
    for (int64_t r = 0; r < n && n < kFew; ++r)
      give(state, std::span(values).subspan(static_cast<size_t>(r) * targets, targets), one,
           row + r, to);
    if (n < kFew) return;
    for (int64_t r = 0; r < n; r += kLinearRows) {
      const int64_t some = std::min(kLinearRows, n - r);
      room.sums.resize(static_cast<size_t>(columns * kLinearRows));
      for (int64_t t = 0; t < columns; ++t)
        for (int64_t i = 0; i < some; ++i)
          room.sums[static_cast<size_t>(t * kLinearRows + i)] =
              values[static_cast<size_t>((r + i) * columns + t)];
      give_columns(state, room, row + r, some, to);
    }
  }

  const TreeState& state;
  size_t targets;
  bool sum;
  std::vector<double> values, one;
  ScoreColumns room;
  std::vector<uint8_t> voted;
};

/// Rows [begin, begin + n) of x: as they lie, or widened into `room`.
template <typename T>
const T* rows_of(const Tensor& x, int64_t begin, int64_t n, std::vector<T>& room) {
  const int64_t features = x.dim(1);
  if constexpr (std::is_same_v<T, double>) {
    if (x.dtype() != DType::kFloat64) {
      room.resize(static_cast<size_t>(n * features));
      widen_features(x, begin * features, n * features, room.data());
      return room.data();
    }
  }
  return x.data<T>() + begin * features;
}

/// The same, each row followed by its opposite.
template <typename T>
const T* mirrored_rows(const Tensor& x, int64_t begin, int64_t n, std::vector<T>& wide,
                       std::vector<T>& room) {
  const int64_t features = x.dim(1);
  const T* from = rows_of(x, begin, n, wide);
  room.resize(static_cast<size_t>(2 * n * features));
  T* to = room.data();
  for (int64_t r = 0; r < n; ++r, from += features, to += 2 * features)
    for (int64_t i = 0; i < features; ++i) {
      to[i] = from[i];
      to[features + i] = -from[i];
    }
  return room.data();
}
template <typename T>
void run_flat(const KernelRun& run, const TreeState& state, const FlatForest<T>& flat,
              const Target& to) {
  const Tensor& input = run.input(0);
  const int64_t rows = input.dim(0), features = input.dim(1) * (flat.mirrored ? 2 : 1);
  const auto read = [&](int64_t begin, int64_t n, std::vector<T>& wide, std::vector<T>& room) {
    return flat.mirrored ? mirrored_rows(input, begin, n, wide, room)
                         : rows_of(input, begin, n, wide);
  };
  const auto trees = static_cast<int64_t>(flat.roots.size());
  auto* const fn = flat.general ? &walk<true, T> : &walk<false, T>;
  auto* const row_fn = flat.general ? &walk_row<true, T> : &walk_row<false, T>;
  const FlatNode<T>* nodes = flat.nodes.data();
  const auto by_trees = [&](const T* row, int64_t begin, int64_t end, int32_t* leaves) {
    for (int64_t t = begin; t < end; t += kWalks) {
      int32_t at[kWalks];
      const int64_t n = std::min<int64_t>(kWalks, end - t);
      for (int64_t i = 0; i < kWalks; ++i)
        at[i] = flat.roots[static_cast<size_t>(t + std::min(i, n - 1))];
      const auto first = flat.depths.begin() + t;
      row_fn(nodes, row, *std::max_element(first, first + n), at);
      std::copy_n(at, n, leaves + (t - begin));
    }
  };
  // The walks of group `group` of all rows with all trees.
  const auto by_pairs = [&](const T* x, int64_t group, int32_t* leaves) {
    int32_t at[kWalks], depth = 0;
    const T* from[kWalks];
    const int64_t first = group * kWalks, n = std::min<int64_t>(kWalks, rows * trees - first);
    for (int64_t i = 0; i < kWalks; ++i) {
      const int64_t pair = first + std::min(i, n - 1);
      const auto t = static_cast<size_t>(pair % trees);
      at[i] = flat.roots[t];
      from[i] = x + pair / trees * features;
      depth = std::max(depth, flat.depths[t]);
    }
    fn(nodes, from, depth, at);
    std::copy_n(at, n, leaves + first);
  };
  constexpr int64_t kWork = 400;  // walks that are worth a thread: some microseconds
  if (rows < kWalks) {
    std::vector<int32_t> leaves(static_cast<size_t>(rows * trees));
    std::vector<T> wide, mirror;
    const T* x = read(0, rows, wide, mirror);
    const int64_t groups = few_groups(rows, trees), of_row = groups_of(trees);
    // Trees of one row, or of several where they would leave too many walks with nothing to do.
    const bool by_row = groups == rows * of_row;
    run.parallel_for(groups, kWork / kWalks, [&](int64_t begin, int64_t end) {
      for (int64_t task = begin; task < end;) {
        if (!by_row) {
          by_pairs(x, task++, leaves.data());
          continue;
        }
        const int64_t row = task / of_row, until = std::min(end, (row + 1) * of_row);
        const int64_t from = task % of_row * kWalks;
        by_trees(x + row * features, from, std::min(trees, from + (until - task) * kWalks),
                 leaves.data() + row * trees + from);
        task = until;
      }
    });
    Sums sums(state, rows);
    for (int64_t row = 0; row < rows; ++row)
      sums.add(flat, row, 0, leaves.data() + row * trees, trees);
    sums.finish(rows, 0, to);
    return;
  }
  // Blocks of rows, all of them down one tree before the next: of large ones each tree comes from
  // far less often. Each thread has as many.
  constexpr int64_t kLeast = 64, kMost = 512;
  const int64_t threads = run.options().threads == 1 ? 1 : 2 * run.options().threads;
  const int64_t wanted = ((rows + kMost - 1) / kMost + threads - 1) / threads * threads;
  const int64_t most = std::max(kLeast, (rows + wanted - 1) / wanted);
  const int64_t blocks = (rows + most - 1) / most;
  run.parallel_for(blocks, std::max<int64_t>(1, kWork / (most * std::max<int64_t>(1, trees))),
                   [&](int64_t first, int64_t last) {
                     std::vector<T> wide, mirror;
                     std::vector<int32_t> leaves;
                     Sums sums(state, most);
                     for (int64_t block = first; block < last; ++block) {
                       const int64_t begin = block * most, n = std::min(most, rows - begin);
                       const T* x = read(begin, n, wide, mirror);
                       sums.clear();
                       // Rows that are left go down several trees at a time.
                       const int64_t rest = n % kWalks;
                       const bool apart = rest * ((trees + kWalks - 1) / kWalks) < trees;
                       const int64_t together = apart ? n - rest : n;
                       for (size_t t = 0; t < flat.roots.size(); ++t)
                         for (int64_t r = 0; r < together; r += kWalks) {
                           int32_t at[kWalks];
                           const T* from[kWalks];
                           for (int64_t i = 0; i < kWalks; ++i) {
                             at[i] = flat.roots[t];
                             from[i] = x + std::min(r + i, n - 1) * features;
                           }
                           fn(nodes, from, flat.depths[t], at);
                           sums.add(flat, r, 1, at, std::min<int64_t>(kWalks, n - r));
                         }
                       for (int64_t r = together; r < n; ++r) {
                         leaves.resize(static_cast<size_t>(trees));
                         by_trees(x + r * features, 0, trees, leaves.data());
                         sums.add(flat, r, 0, leaves.data(), trees);
                       }
                       sums.finish(n, begin, to);
                     }
                   });
}

/// Rows side by side, kLinearRows at a time, without walks.
void run_masks(const KernelRun& run, const TreeState& state, const Target& to) {
  const MaskForest& masks = state.masks;
  const Tensor& x = run.input(0);
  const int64_t rows = x.dim(0), features = x.dim(1);
  const auto trees = static_cast<int64_t>(masks.trees.size());
  const size_t columns = masks.column_floats();
  const auto results = static_cast<size_t>(state.forest().targets * kLinearRows);
  const int64_t chunks = (rows + kLinearRows - 1) / kLinearRows;
  constexpr double kWork = 40'000;  // cycles that are worth a thread
  const double work = masks.cost(std::min(rows, kLinearRows));
  // One chunk of many trees: threads share those. How many parts there are does not depend on how
  // many threads there are, so neither do sums.
  const int64_t parts = chunks > 1 ? 1 : std::min<int64_t>(16, static_cast<int64_t>(work / kWork));
  if (parts > 1) {
    std::vector<float> gathered(columns);
    ScoreColumns room;
    std::vector<double>& sums = room.sums;
    sums.assign(results * static_cast<size_t>(parts), 0.0);
    masks.gather(x.data<float>(), rows, gathered.data());
    run.parallel_for(parts, 1, [&](int64_t begin, int64_t end) {
      for (int64_t part = begin; part < end; ++part)
        masks.add(trees * part / parts, trees * (part + 1) / parts, gathered.data(), rows,
                  sums.data() + static_cast<size_t>(part) * results);
    });
    for (size_t i = results; i < sums.size(); ++i) sums[i % results] += sums[i];
    sums.resize(results);
    return give_columns(state, room, 0, rows, to);
  }
  const auto grain = static_cast<int64_t>(kWork / (work + 100));
  run.parallel_for(chunks, std::max<int64_t>(1, grain), [&](int64_t begin, int64_t end) {
    std::vector<float> gathered(columns);
    ScoreColumns room;
    for (int64_t row = begin * kLinearRows; row < std::min(rows, end * kLinearRows);
         row += kLinearRows) {
      const int64_t some = std::min(kLinearRows, rows - row);
      masks.gather(x.data<float>() + row * features, some, gathered.data());
      room.sums.assign(results, 0.0);
      masks.add(0, trees, gathered.data(), some, room.sums.data());
      give_columns(state, room, row, some, to);
    }
  });
}

Status run_trees(KernelRun& run) {
  const auto& state = run.state<TreeState>();
  const Tensor& x = run.input(0);
  const int64_t rows = x.dim(0), features = x.dim(1);
  const int64_t dims[] = {rows, static_cast<int64_t>(state.columns)};
  Target to{};
  if (std::holds_alternative<ops::TreeClassification>(state.meaning)) {
    if (run.wants_output(0)) {
      const bool names = !std::get<ops::TreeClassification>(state.meaning).labels.strings.empty();
      TRY(Tensor * labels,
          run.output(0, names ? DType::kString : DType::kInt64, std::span(dims).first(1)));
      if (names)
        to.names = labels->strings().data();
      else
        to.labels = labels->data<int64_t>();
    }
    if (run.wants_output(1)) {
      TRY(to.scores, run.output(1, DType::kFloat32, dims));
    }
  } else {
    const bool same = std::get<ops::TreeRegression>(state.meaning).result_as_input;
    TRY(to.scores, run.output(0, same ? x.dtype() : DType::kFloat32, dims));
  }
  if (const auto* flat = std::get_if<FlatForest<float>>(&state.flat)) {
    if (state.takes_masks(rows))
      run_masks(run, state, to);
    else
      run_flat(run, state, *flat, to);
    return ok();
  }
  if (const auto* flat = std::get_if<FlatForest<double>>(&state.flat)) {
    run_flat(run, state, *flat, to);
    return ok();
  }
  std::vector<double> room;
  const double* wide = rows_of(x, 0, rows, room);
  // Tests of membership, or nodes that several lead to.
  std::atomic<bool> circle = false;
  run.parallel_for(rows, 16, [&](int64_t begin, int64_t end) {
    const auto targets = static_cast<size_t>(state.forest().targets);
    std::vector<double> sums(targets), scores;
    std::vector<uint8_t> voted(targets);
    for (int64_t row = begin; row < end && !circle; ++row) {
      if (!state.forest().predict(wide + row * features, state.aggregate(), sums, voted))
        circle = true;
      else
        give(state, sums, scores, row, to);
    }
  });
  return circle ? Status(runtime_error("a tree runs in a circle")) : ok();
}

}  // namespace

KERNEL(tree_ensemble) = {
    .name = "trees",
    .op = "TreeEnsemble",
    .domain = "ai.onnx.ml",
    .supports = supports_trees,
    .prepare = prepare_trees,
    .run = run_trees,
    .any_rows = true,
};
KERNEL(tree_ensemble_classifier) = {
    .name = "trees",
    .op = "TreeEnsembleClassifier",
    .domain = "ai.onnx.ml",
    .supports = supports_trees,
    .prepare = prepare_trees,
    .run = run_trees,
    .any_rows = true,
};
KERNEL(tree_ensemble_regressor) = {
    .name = "trees",
    .op = "TreeEnsembleRegressor",
    .domain = "ai.onnx.ml",
    .supports = supports_trees,
    .prepare = prepare_trees,
    .run = run_trees,
    .any_rows = true,
};

}  // namespace tombolo
