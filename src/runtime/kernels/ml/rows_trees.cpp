// Tree ensembles of ai.onnx.ml: every test is "x <= split", the children of a node lie side by
// side, and sixteen walks go down at a time without a branch.

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
#include "runtime/kernels/ml/ml_setting.h"
#include "runtime/kernels/no_host.h"

namespace tombolo {
namespace {

using ops::Aggregate;
using ops::Forest;
using ops::TreeMode;
using ops::TreeNode;

/// `child` when x <= split, else `child + 1`. A leaf has a split that is not a number, and is its
/// own second child: a walk that has arrived stays.
template <typename T>
struct FlatNode {
  T split;
  uint32_t feature;  ///< with kEqual and kMissing
  int32_t child;
};
constexpr uint32_t kMissing = 1u << 31;  ///< what is not a number goes to the first child
constexpr uint32_t kEqual = 1u << 30;    ///< the test is x == split
constexpr uint32_t kFeature = kEqual - 1;

template <typename T>
struct FlatForest {
  std::vector<FlatNode<T>> nodes;
  std::vector<int32_t> source;  ///< the node of the Forest that each is
  std::vector<int32_t> roots;
  std::vector<int32_t> depths;  ///< of the tree below each root
  /// Of each leaf for each target, where a leaf has at most one vote for each: at the leaf's own
  /// place for one target, else at the row that it has in `leaf_rows`.
  std::vector<double> weights;
  std::vector<int32_t> leaf_rows;
  uint32_t features = 0;
  bool general = false;   ///< kMissing or kEqual is used
  bool mirrored = false;  ///< a row is followed by its opposite, which some nodes look at

  /// False when the trees are no trees (nodes have several parents, or lead in a circle), or a test
  /// is not one of order.
  bool build(const Forest& forest, int64_t width);

 private:
  void collect_weights(const Forest& forest);
  bool place(const Forest& forest, size_t at, int32_t slot, std::vector<uint8_t>& seen);
};

/// The greatest T not above x, in comparisons with numbers of type T.
template <typename T>
T not_above(double x) {
  const T rounded = static_cast<T>(x);
  if (!(static_cast<double>(rounded) > x)) return rounded;
  return std::nextafter(rounded, -std::numeric_limits<T>::infinity());
}
/// The greatest T below x; not a number where there is none.
template <typename T>
T below(double x) {
  const T most = not_above<T>(x);
  if (static_cast<double>(most) < x) return most;
  if (most == -std::numeric_limits<T>::infinity()) return std::numeric_limits<T>::quiet_NaN();
  return std::nextafter(most, -std::numeric_limits<T>::infinity());
}

template <typename T>
bool FlatForest<T>::build(const Forest& forest, int64_t width) {
  if (forest.nodes.size() > (size_t{1} << 29) || width > kFeature / 2) return false;
  features = static_cast<uint32_t>(width);
  std::vector<uint8_t> seen(forest.nodes.size());
  for (int64_t root : forest.roots) {
    roots.push_back(static_cast<int32_t>(nodes.size()));
    nodes.emplace_back();
    source.push_back(0);
    if (!place(forest, static_cast<size_t>(root), roots.back(), seen)) return false;
  }
  collect_weights(forest);
  return true;
}

template <typename T>
void FlatForest<T>::collect_weights(const Forest& forest) {
  const auto targets = static_cast<size_t>(forest.targets);
  constexpr size_t kMost = 64;  // more would be mostly zeros
  if (targets < 1 || targets > kMost) return;
  std::vector<double> found;
  std::vector<int32_t> rows(nodes.size());
  std::vector<uint8_t> voted(targets);
  for (size_t i = 0; i < nodes.size(); ++i) {
    const TreeNode& node = forest.nodes[static_cast<size_t>(source[i])];
    if (node.mode != TreeMode::kLeaf && targets > 1) continue;
    rows[i] = static_cast<int32_t>(found.size() / targets);
    found.resize(found.size() + targets);
    if (node.mode != TreeMode::kLeaf) continue;
    std::fill(voted.begin(), voted.end(), 0);
    for (size_t v = node.first; v < node.last; ++v) {
      const auto target = static_cast<size_t>(forest.votes[v].target);
      if (voted[target]++ != 0) return;
      found[found.size() - targets + target] = forest.votes[v].weight;
    }
  }
  weights = std::move(found);
  if (targets > 1) leaf_rows = std::move(rows);
}

template <typename T>
bool FlatForest<T>::place(const Forest& forest, size_t root, int32_t slot,
                          std::vector<uint8_t>& seen) {
  struct Open {
    size_t node;
    int32_t slot, depth;
  };
  std::vector<Open> open = {{root, slot, 0}};
  int32_t deepest = 0;
  while (!open.empty()) {
    const auto [at, here, depth] = open.back();
    open.pop_back();
    deepest = std::max(deepest, depth);
    if (seen[at]++ != 0) return false;
    const TreeNode& node = forest.nodes[at];
    source[static_cast<size_t>(here)] = static_cast<int32_t>(at);
    FlatNode<T> flat{std::numeric_limits<T>::quiet_NaN(), 0, here - 1};
    if (node.mode != TreeMode::kLeaf) {
      if (node.feature > kFeature) return false;
      const bool turned =
          node.mode == TreeMode::kGt || node.mode == TreeMode::kGte || node.mode == TreeMode::kNeq;
      bool first_is_true = true;
      flat.feature = static_cast<uint32_t>(node.feature);
      switch (node.mode) {
        case TreeMode::kLeq:
        case TreeMode::kGt:
          flat.split = not_above<T>(node.split);
          break;
        case TreeMode::kLt:
        case TreeMode::kGte:
          flat.split = below<T>(node.split);
          break;
        case TreeMode::kEq:
        case TreeMode::kNeq:
          if (static_cast<double>(static_cast<T>(node.split)) == node.split)
            flat.split = static_cast<T>(node.split);
          flat.feature |= kEqual;
          break;
        default:
          return false;
      }
      // No number is above one that is not: then what is asked for is false, whatever x is.
      const bool never = node.split != node.split && node.mode != TreeMode::kNeq;
      if (never) flat.split = std::numeric_limits<T>::quiet_NaN();
      if (turned && !never) first_is_true = false;
      // Where a missing value goes: to `on_true` if the node says so, or if the test is "not
      // equal".
      const bool missing_true = node.missing_is_true || node.mode == TreeMode::kNeq;
      if (missing_true == first_is_true) flat.feature |= kMissing;
      if (flat.feature == (static_cast<uint32_t>(node.feature) | kMissing) &&
          flat.split == flat.split) {
        // "-x < -split" leads where "x <= split" does not: what is no number then goes the right
        // way without being asked for.
        flat.feature = static_cast<uint32_t>(node.feature) + features;
        flat.split = below<T>(-static_cast<double>(flat.split));
        first_is_true = !first_is_true;
        mirrored = true;
      }
      general = general || (flat.feature & (kMissing | kEqual)) != 0;
      flat.child = static_cast<int32_t>(nodes.size());
      nodes.resize(nodes.size() + 2);
      source.resize(nodes.size());
      const auto on_true = static_cast<size_t>(node.on_true);
      const auto on_false = static_cast<size_t>(node.on_false);
      open.push_back({first_is_true ? on_false : on_true, flat.child + 1, depth + 1});
      open.push_back({first_is_true ? on_true : on_false, flat.child, depth + 1});
    }
    nodes[static_cast<size_t>(here)] = flat;
  }
  depths.push_back(deepest);
  return true;
}

constexpr int kWalks = 16;

template <bool kGeneral, typename T>
inline int32_t step(const FlatNode<T>* nodes, int32_t at, const T* row) {
  const FlatNode<T>& node = nodes[at];
  if constexpr (!kGeneral)
    return node.child + static_cast<int32_t>(!(row[node.feature] <= node.split));
  const T x = row[node.feature & kFeature];
  bool yes = x <= node.split;
  yes &= static_cast<bool>(((node.feature & kEqual) == 0) | (x >= node.split));
  yes |= static_cast<bool>(((node.feature & kMissing) != 0) & (x != x));
  return node.child + static_cast<int32_t>(!yes);
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
  for (int32_t moved = depth > kFew; moved != 0;) {
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
  size_t columns = 1;  ///< of scores given out

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
    if (flat.build(state->forest(), q.dims(0)[1])) state->flat = std::move(flat);
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

/// The sums of one row while trees are added in their order.
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
  std::span<double> of(int64_t row) {
    return std::span(values).subspan(static_cast<size_t>(row) * targets, targets);
  }
  void finish(int64_t row, std::vector<double>& room, int64_t to_row, const Target& to) {
    if (state.aggregate() == Aggregate::kAverage && !state.forest().roots.empty())
      for (double& value : of(row)) value /= static_cast<double>(state.forest().roots.size());
    give(state, of(row), room, to_row, to);
  }

  const TreeState& state;
  size_t targets;
  bool sum;
  std::vector<double> values;
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
  constexpr int64_t kWork = 400;  // walks that are worth a thread: some microseconds
  if (rows < kWalks) {
    std::vector<int32_t> leaves(static_cast<size_t>(rows * trees));
    std::vector<double> room;
    std::vector<T> wide, mirror;
    const T* x = read(0, rows, wide, mirror);
    const int64_t groups = (trees + kWalks - 1) / kWalks;
    run.parallel_for(rows * groups, kWork / kWalks, [&](int64_t begin, int64_t end) {
      for (int64_t task = begin; task < end;) {
        const int64_t row = task / groups, until = std::min(end, (row + 1) * groups);
        const int64_t from = task % groups * kWalks;
        by_trees(x + row * features, from, std::min(trees, from + (until - task) * kWalks),
                 leaves.data() + row * trees + from);
        task = until;
      }
    });
    Sums sums(state, 1);
    for (int64_t row = 0; row < rows; ++row) {
      sums.clear();
      sums.add(flat, 0, 0, leaves.data() + row * trees, trees);
      sums.finish(0, room, row, to);
    }
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
                     std::vector<double> room;
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
                       for (int64_t r = 0; r < n; ++r) sums.finish(r, room, begin + r, to);
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
