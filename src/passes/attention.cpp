// softmax(q k' * scale + mask) v, as exporters write it, becomes Attention.
//
// What hides keys must be such that Attention says the same (attention_mask.h), or the graph must
// ask itself for zeros where it hides all: Where(IsNaN(p), 0, p), which transformers writes, or a
// test of every score of a row against -infinity, which PyTorch's decomposition writes. Level 3
// takes any mask.

#include <algorithm>
#include <cmath>
#include <limits>

#include "passes/attention_mask.h"
#include "passes/attributes.h"
#include "passes/elements.h"
#include "passes/evaluate.h"
#include "passes/passes.h"
#include "passes/reshape_target.h"
#include "passes/runtime_operators.h"

namespace tombolo::passes {
namespace {

struct Found {
  Node* root = nullptr;  ///< the MatMul with v
  std::vector<Node*> nodes;
  Value *q = nullptr, *k_transposed = nullptr, *v = nullptr;
  AttentionMask mask;
  /// Windows of so many images, where that is not known: heads of one window follow those of the
  /// one before.
  struct Windows {
    SymDim images;
    int64_t count, heads, queries, keys;
  };
  std::optional<Windows> windows;
  std::optional<Tensor> computed;  ///< a mask that stands in no initialiser yet
  double scale = 1;
  bool guarded = false;
  bool turned = false;  ///< the product is v' p', whose result is turned, and v is given as v'
};

class Recogniser {
 public:
  Recogniser(Rewriter& rewriter, Node& root) : rewriter_(rewriter) { found_.root = &root; }

  std::optional<Found> run() {
    Node& root = *found_.root;
    const auto rank = rewriter_.rank(root.input(0));
    found_.v = rank ? with_rank(root.input(1), *rank) : nullptr;
    if (found_.v == nullptr || *rank < 3) return std::nullopt;
    Value* weights = root.input(0);
    // Over the pixels of an image channels come first, and all is turned.
    Node* turn = inner(root.input(1), "Transpose", 1);
    if (turn != nullptr && turns_matrices(AttributeReader(*turn).get_ints("perm")) &&
        rewriter_.producer(turn->input(0), "Softmax") != nullptr) {
      found_.turned = true;
      found_.v = root.input(0);
      weights = turn->input(0);
      take(*turn);
    }
    size_t uses = 1;
    Value* dropped = nullptr;  // keys whose weights are no more
    Node* guard = inner(weights, "Where", 1);
    if (guard != nullptr) {
      if (!is_all_zero(rewriter_, guard->input(1))) return std::nullopt;
      weights = guard->input(2);
      take(*guard);
      if (Node* test = inner(guard->input(0), "IsNaN", 1)) {  // Where(IsNaN(p), 0, p)
        if (test->input(0) != weights) return std::nullopt;
        take(*test);
        uses = 2;
      } else {
        shared_ = scores_of_blind_rows(guard->input(0));
        if (shared_ == nullptr) dropped = guard->input(0);  // as DeBERTa drops what it has hidden
      }
      found_.guarded = true;
    }
    Node* softmax = inner(weights, "Softmax", uses);
    if (softmax == nullptr || (shared_ != nullptr && softmax->input(0) != shared_))
      return std::nullopt;
    const int64_t axis = AttributeReader(*softmax).get_int("axis", -1);
    if (axis != -1 && axis != static_cast<int64_t>(*rank) - 1) return std::nullopt;
    take(*softmax);
    Value* scores = softmax->input(0);
    if (Value* inside = dropped == nullptr ? without_windows(scores) : nullptr) {
      // What is added to every window (a bias for relative positions) joins it.
      Node* add = inner(inside, "Add", 1);
      if (add == nullptr) return product(inside) ? std::optional(found_) : std::nullopt;
      for (const size_t side : {size_t(0), size_t(1)}) {
        const Tensor* bias = rewriter_.constant(add->input(1 - side));
        if (bias == nullptr) continue;
        const auto added = found_.windows ? in_windows(*bias) : std::optional(*bias);
        if (!added) return std::nullopt;
        auto sum = compute("Add", {*added, *found_.computed});
        if (!sum || Dims(sum->dims()) != Dims(found_.computed->dims())) return std::nullopt;
        found_.computed = *std::move(sum);
        take(*add);
        return product(add->input(side)) ? std::optional(found_) : std::nullopt;
      }
      return std::nullopt;
    }
    if (!masked(scores)) return std::nullopt;
    if (dropped != nullptr) {
      AttentionMask& mask = found_.mask;
      if (mask.hidden != dropped || !mask.when) return std::nullopt;
      mask.low = -std::numeric_limits<double>::infinity();  // rows without a key are zeros then
    }
    return found_;
  }

 private:
  /// The producer of `value`, an `op` in the root's graph, read `uses` times and by nobody else.
  Node* inner(const Value* value, Text op, size_t uses) const {
    if (value == shared_) ++uses;  // the guard reads it too
    return value != nullptr && value->uses().size() == uses ? producer(value, op) : nullptr;
  }

  /// Likewise read once, and by any Shape, which finds the same size before the scale.
  Node* scale_of(const Value* value, Text op) const {
    const auto measures = [&](const Use& use) { return rewriter_.is(use.node, "Shape"); };
    if (value == nullptr ||
        std::count_if(value->uses().begin(), value->uses().end(), measures) + 1 !=
            static_cast<std::ptrdiff_t>(value->uses().size()))
      return nullptr;
    return producer(value, op);
  }

  Node* producer(const Value* value, Text op) const {
    Node* node = value->producer();
    const bool fits = rewriter_.is(node, op) && &node->graph() == &found_.root->graph() &&
                      value->output_uses() == 0;
    return fits ? node : nullptr;
  }

  /// Windows of an image are a batch, and which keys a window sees is added where the batch is
  /// taken apart: scores = Reshape(Reshape(x) + constant). Gives x, and the constant as it is added
  /// to x.
  Value* without_windows(Value* scores) {
    Node* back = inner(scores, "Reshape", 1);
    Node* add = back != nullptr ? inner(back->input(0), "Add", 1) : nullptr;
    if (add == nullptr) return nullptr;
    for (const size_t side : {size_t(0), size_t(1)}) {
      Node* apart = inner(add->input(side), "Reshape", 1);
      const Tensor* mask = rewriter_.constant(add->input(1 - side));
      if (apart == nullptr || mask == nullptr) continue;
      if (auto computed = mask_of_windows(scores, *apart, *add, *mask))
        found_.computed = *std::move(computed);
      else
        continue;
      take(*back);
      take(*add);
      take(*apart);
      return apart->input(0);
    }
    return nullptr;
  }

  /// The mask as it is added to x, where x[P, h, N, M] is apart as [B, P / B, h, N, M].
  std::optional<Tensor> mask_of_windows(const Value* scores, const Node& apart, const Node& add,
                                        const Tensor& mask) {
    if (!rewriter_.same_shape(scores, apart.input(0)) ||
        !rewriter_.same_shape(apart.output(0), add.output(0)))
      return std::nullopt;
    const SymShape *whole = rewriter_.shape(scores), *split = rewriter_.shape(apart.output(0));
    const auto dims = rewriter_.dims(scores), apart_dims = rewriter_.dims(apart.output(0));
    if (dims && apart_dims) return reshaped(mask, *apart_dims, *dims);
    if (whole->size() != 4 || split->size() != 5) return std::nullopt;
    for (size_t i = 1; i < 5; ++i)
      if (!(*split)[i].is_value() || (i > 1 && !(*split)[i].equals((*whole)[i - 1])))
        return std::nullopt;
    found_.windows = {(*split)[0], (*split)[1].value(), (*split)[2].value(), (*split)[3].value(),
                      (*split)[4].value()};
    auto in_all = in_windows(mask);
    if (!in_all) found_.windows.reset();
    return in_all;
  }
  /// For each window and head.
  std::optional<Tensor> in_windows(const Tensor& mask) const {
    const Found::Windows& w = *found_.windows;
    return reshaped(mask, {1, w.count, w.heads, w.queries, w.keys},
                    {1, w.count * w.heads, w.queries, w.keys});
  }
  /// Spread over `dims`, then of the shape `to`.
  static std::optional<Tensor> reshaped(const Tensor& tensor, const std::vector<int64_t>& dims,
                                        const std::vector<int64_t>& to) {
    constexpr int64_t kMost = 1 << 22;  // elements
    if (element_count(dims) > kMost) return std::nullopt;
    const auto list = [](const std::vector<int64_t>& values) {
      const int64_t size[] = {static_cast<int64_t>(values.size())};
      return Tensor::of<int64_t>(DType::kInt64, size, values);
    };
    auto spread = compute("Expand", {tensor, list(dims)});
    if (!spread || element_count(spread->dims()) != element_count(dims)) return std::nullopt;
    auto made = compute("Reshape", {*spread, list(to)});
    if (!made) return std::nullopt;
    return *std::move(made);
  }

  /// What is added to `scores`, without zeros that are added to it and spread no score, as T5 has
  /// them where its decoder looks at the encoder.
  Value* addend(const Node& add, size_t side) const {
    Value* value = add.input(side);
    if (!rewriter_.same_shape(add.input(1 - side), add.output(0))) return value;
    constexpr int kMaxSteps = 8;
    for (int i = 0; i < kMaxSteps; ++i) {
      const Node* sum = rewriter_.producer(value, "Add");
      if (sum == nullptr || sum->input(0) == nullptr || sum->input(1) == nullptr) break;
      const bool first = is_all_zero(rewriter_, sum->input(0));
      if (!first && !is_all_zero(rewriter_, sum->input(1))) break;
      value = sum->input(first ? 1 : 0);
    }
    return value;
  }

  /// The scores s of Not(any(Not(s == -infinity))) over the last axis, as Cast and ReduceMax say
  /// `any`; null for anything else.
  Value* scores_of_blind_rows(Value* value) {
    std::vector<Node*> chain;
    for (const char* op : {"Not", "Cast", "ReduceMax", "Cast", "Not", "Equal"}) {
      Node* node = inner(value, op, 1);
      if (node == nullptr) return nullptr;
      chain.push_back(node);
      value = node->input(0);
    }
    const AttributeReader reduction(*chain[2]);
    const auto axes =
        chain[2]->input(1) != nullptr ? rewriter_.ints(chain[2]->input(1)) : std::nullopt;
    const auto never = rewriter_.scalar(chain[5]->input(1));
    if (reduction.get_int("keepdims", 1) != 1 || !axes || axes->size() != 1 ||
        ((*axes)[0] != -1 && (*axes)[0] != 3) || !never ||
        *never != -std::numeric_limits<double>::infinity() ||
        AttributeReader(*chain[1]).get_int("to", 0) != static_cast<int64_t>(DType::kBool))
      return nullptr;
    for (Node* node : chain) take(*node);
    return value;
  }
  void take(Node& node) { found_.nodes.push_back(&node); }

  /// value = other * constant (or / constant): gives other, and the factor.
  Value* scaled(Value* value, double& factor) {
    for (const bool divide : {false, true}) {
      Node* node = scale_of(value, divide ? "Div" : "Mul");
      if (node == nullptr) continue;
      for (const size_t side : {size_t(1), size_t(0)}) {
        if (divide && side == 0) break;
        const auto constant = rewriter_.scalar(node->input(side));
        const auto rank = rewriter_.rank(node->input(side));
        if (!constant || !rank || *rank > 4 || !std::isfinite(*constant) || *constant <= 0)
          continue;
        factor *= divide ? 1 / *constant : *constant;
        take(*node);
        return node->input(1 - side);
      }
    }
    return value;
  }

  /// A product to which something is added, or of which some is replaced by what is lowest.
  bool masked(Value* scores) {
    constexpr double kLow = -1e9;
    AttentionMask& mask = found_.mask;
    // As OPT keeps what it adds from becoming infinite.
    if (Node* max = inner(scores, "Max", 1); max != nullptr && max->inputs().size() == 2) {
      for (const size_t side : {size_t(1), size_t(0)}) {
        const auto floor = rewriter_.scalar(max->input(side));
        if (!floor || !(*floor <= kScoresVanish) || !std::isfinite(*floor) || mask.any() ||
            mask.floor)
          continue;
        take(*max);
        mask.floor = *floor;
        return masked(max->input(1 - side));
      }
      return false;
    }
    if (Node* add = inner(scores, "Add", 1)) {
      for (const size_t side : {size_t(0), size_t(1)}) {
        const Found saved = found_;
        take(*add);
        (mask.hidden == nullptr ? mask.outside : mask.inside).push_back(addend(*add, 1 - side));
        if (masked(add->input(side))) return true;
        found_ = saved;
      }
      return false;
    }
    if (Node* where = mask.hidden == nullptr && !mask.floor ? inner(scores, "Where", 1) : nullptr) {
      for (const size_t side : {size_t(1), size_t(2)}) {
        const auto low = rewriter_.scalar(where->input(side));
        if (where->input(0) == nullptr || !low || !(*low <= kLow)) continue;
        take(*where);
        mask.hidden = where->input(0);
        mask.low = *low;
        mask.when = side == 1;
        return masked(where->input(3 - side));
      }
      return false;
    }
    return masked_before_scale(scores) || product(scores);
  }

  /// As GPT-J, whose scores are scaled when some are replaced already.
  bool masked_before_scale(Value* scores) {
    if (found_.mask.hidden != nullptr || found_.mask.floor) return false;
    const Found saved = found_;
    double factor = 1;
    Value* replaced = scaled(scores, factor);
    if (replaced != scores && inner(replaced, "Where", 1) != nullptr && masked(replaced) &&
        found_.mask.inside.empty()) {
      found_.scale *= factor;
      found_.mask.low *= factor;
      if (std::isfinite(found_.scale) && found_.scale > 0) return true;
    }
    found_ = saved;
    return false;
  }

  bool product(Value* value) {
    value = scaled(value, found_.scale);
    Node* matmul = inner(value, "MatMul", 1);
    if (matmul == nullptr) return false;
    take(*matmul);
    const auto rank = rewriter_.rank(matmul->output(0));
    if (!rank) return false;
    found_.q = with_rank(scaled(matmul->input(0), found_.scale), *rank);
    found_.k_transposed = with_rank(scaled(matmul->input(1), found_.scale), *rank);
    return found_.q != nullptr && found_.k_transposed != nullptr && std::isfinite(found_.scale) &&
           found_.scale > 0;
  }

  /// A factor of that rank: what it was before a batch of one was taken off; null for others.
  Value* with_rank(Value* value, size_t rank) const {
    const SymShape* shape = value != nullptr ? rewriter_.shape(value) : nullptr;
    if (shape == nullptr) return nullptr;
    if (shape->size() == rank) return value;
    const Node* view = value->producer();
    if (shape->size() + 1 != rank ||
        !(rewriter_.is(view, "Reshape") || rewriter_.is(view, "Squeeze")) ||
        view->input(0) == nullptr)
      return nullptr;
    const SymShape* from = rewriter_.shape(view->input(0));
    if (from == nullptr || from->size() != rank || !is_one((*from)[0])) return nullptr;
    for (size_t i = 0; i < shape->size(); ++i)
      if (!(*from)[i + 1].equals((*shape)[i])) return nullptr;
    return view->input(0);
  }

  Rewriter& rewriter_;
  Found found_;
  const Value* shared_ = nullptr;  ///< scores that the guard reads beside the softmax
};

/// Scores of a matrix that are so many that not to write them repays what Attention takes to begin,
/// where heads do not share it, and to turn its sides.
constexpr int64_t kOneHeadScores = 4096, kTurnedScores = 1 << 19;
bool many_scores(const SymDim& queries, const SymDim& keys, int64_t least) {
  const auto rows = queries.constant(), columns = keys.constant();
  return rows && columns && *columns > 0 && *rows >= least / *columns;
}

/// Keys and values whose heads are repeated for groups of queries: the value before the repetition.
Value* before_repeat(const Rewriter& rewriter, Value* value) {
  const Node* reshape = value->producer();
  if (!rewriter.is(reshape, "Reshape")) return nullptr;
  const Node* expand = reshape->input(0) != nullptr ? reshape->input(0)->producer() : nullptr;
  if (!rewriter.is(expand, "Expand")) return nullptr;
  const Node* view = expand->input(0) != nullptr ? expand->input(0)->producer() : nullptr;
  if (!rewriter.is(view, "Unsqueeze") && !rewriter.is(view, "Reshape")) return nullptr;
  Value* source = view->input(0);
  const SymShape* from = rewriter.shape(source);
  const SymShape* single = rewriter.shape(expand->input(0));
  const SymShape* wide = rewriter.shape(expand->output(0));
  const SymShape* to = rewriter.shape(value);
  if (from == nullptr || single == nullptr || wide == nullptr || to == nullptr ||
      from->size() != 4 || single->size() != 5 || wide->size() != 5 || to->size() != 4)
    return nullptr;
  for (const auto& [i, k] : {std::pair(0, 0), std::pair(1, 1), std::pair(2, 3), std::pair(3, 4)}) {
    const auto a = static_cast<size_t>(i), b = static_cast<size_t>(k);
    if (!(*from)[a].equals((*single)[b]) || !(*from)[a].equals((*wide)[b])) return nullptr;
    if (i != 1 && !(*from)[a].equals((*to)[a])) return nullptr;
  }
  if (!is_one((*single)[2]) || !(*wide)[1].is_value() || !(*wide)[2].is_value() ||
      (*to)[1].constant() != (*wide)[1].value() * (*wide)[2].value())
    return nullptr;
  return source;
}

/// Matrices from their transposition: a Transpose goes, or turns the other way.
Value* untransposed(Rewriter& rewriter, Node& before, Value* transposed, size_t rank) {
  std::vector<int64_t> perm(rank);
  for (size_t i = 0; i < rank; ++i) perm[i] = static_cast<int64_t>(i);
  const std::vector<int64_t> same = perm;
  Value* source = transposed;
  if (const Node* node = rewriter.producer(transposed, "Transpose")) {
    const auto own = AttributeReader(*node).get_ints("perm");
    if (own.size() == rank) {
      perm.assign(own.begin(), own.end());
      source = node->input(0);
    }
  }
  std::swap(perm[rank - 2], perm[rank - 1]);
  if (perm == same) return source;
  Node& other = rewriter.add(before, "Transpose", {source}, transposed->name());
  other.set_ints("perm", perm);
  rewriter.touch(other);
  return other.output(0);
}

/// Attention takes four axes. Of matrices with more, those before the heads are one batch; those of
/// windows are heads of their image.
class Regrouped {
 public:
  Regrouped(const SymShape& q, const SymShape& k, const SymShape& v,
            const std::optional<Found::Windows>& windows)
      : shapes_{q, k, v} {
    for (const SymShape& shape : shapes_) {
      merged_.push_back(merge(shape));
      if (!windows) continue;
      merged_.back()[0] = windows->images;
      merged_.back()[1] = SymDim(windows->count * windows->heads);
    }
    whole_ = q;
    whole_.back() = v.back();
  }
  /// Whether lists of numbers say all the shapes.
  bool fits() const {
    const size_t lead = shapes_[0].size() - 2;
    for (size_t i = 0; i < 3; ++i) {
      for (size_t j = 0; j < lead; ++j)
        if (!shapes_[i][j].equals(shapes_[0][j])) return false;
      if (!reshape_target(shapes_[i], merged_[i])) return false;
    }
    return reshape_target(result(), whole_).has_value();
  }
  const SymShape& queries() const { return merged_[0]; }
  Value* merged(Rewriter& rewriter, Node& before, Value* value, size_t index) const {
    return add_reshape(rewriter, before, value, shapes_[index], merged_[index])->output(0);
  }
  Value* apart(Rewriter& rewriter, Node& before, Value* y) const {
    return add_reshape(rewriter, before, y, result(), whole_)->output(0);
  }

 private:
  static SymShape merge(const SymShape& shape) {
    SymDim batch(int64_t{1});
    for (size_t i = 0; i + 3 < shape.size(); ++i) batch = batch * shape[i];
    SymShape out(shape.end() - 3, shape.end());
    out.insert(out.begin(), batch);
    return out;
  }
  SymShape result() const {
    SymShape y = merged_[0];
    y.back() = whole_.back();
    return y;
  }

  SymShape shapes_[3];
  std::vector<SymShape> merged_;
  SymShape whole_;
};

/// Whether what is made of scores, element by element or in other shapes, goes into a Softmax.
bool goes_into_softmax(const Rewriter& rewriter, const Value* scores) {
  constexpr int kMostSteps = 8;
  for (int i = 0; i < kMostSteps; ++i) {
    if (!Rewriter::single_use(scores)) return false;
    const Node* next = scores->uses()[0].node;
    if (rewriter.is(next, "Softmax")) return true;
    bool known = false;
    for (const Text op : {Text("Add"), Text("Where"), Text("Mul"), Text("Div"), Text("Reshape")})
      known = known || rewriter.is(next, op);
    if (!known || next->outputs().size() != 1 || next->output(0) == nullptr) return false;
    scores = next->output(0);
  }
  return false;
}

/// FusedMatMul of com.microsoft, as ONNX Runtime's optimiser writes scores, spelled out.
size_t spell_out_scores(Rewriter& rewriter, Node& node) {
  if (!rewriter.is(&node, "FusedMatMul", kMicrosoft) || node.input(0) == nullptr ||
      node.input(1) == nullptr || !goes_into_softmax(rewriter, node.output(0)))
    return 0;
  const AttributeReader attributes(node);
  if (attributes.get_int("transBatchA", 0) != 0 || attributes.get_int("transBatchB", 0) != 0)
    return 0;
  Value* sides[2] = {node.input(0), node.input(1)};
  const DType dtype = rewriter.dtype(node.output(0));
  for (const size_t i : {size_t(0), size_t(1)}) {
    const auto rank = rewriter.rank(sides[i]);
    if (!rank || *rank < 2 || rewriter.dtype(sides[i]) != dtype) return 0;
    if (attributes.get_int(i == 0 ? "transA" : "transB", 0) != 0)
      sides[i] = untransposed(rewriter, node, sides[i], *rank);
  }
  const float alpha = attributes.get_float("alpha", 1);
  const auto factor = filled(dtype, {}, alpha);
  if (!factor) return 0;
  const Text name = node.output(0)->name();
  Node* made = &rewriter.add(node, "MatMul", {sides[0], sides[1]}, name);
  rewriter.touch(*made);
  if (alpha != 1) {
    Value* scale = rewriter.initializer(node.graph(), *factor, "scale");
    made = &rewriter.add(node, "Mul", {made->output(0), scale}, name);
    rewriter.touch(*made);
  }
  rewriter.supersede(*node.output(0), *made->output(0));
  return 1;
}

size_t to_attention(Rewriter& rewriter, Node& root) {
  if (!rewriter.is(&root, "MatMul") || rewriter.limits.opset_ceiling < 23) return 0;
  auto found = Recogniser(rewriter, root).run();
  if (!found) return 0;
  const DType dtype = rewriter.dtype(found->q);
  if (dtype != DType::kFloat32 && dtype != DType::kFloat64 && dtype != DType::kFloat16 &&
      dtype != DType::kBFloat16)
    return 0;
  if (dtype == DType::kFloat64 &&
      found->scale != static_cast<double>(static_cast<float>(found->scale)))
    return 0;
  if (rewriter.dtype(found->k_transposed) != dtype || rewriter.dtype(found->v) != dtype) return 0;
  const SymShape* q = rewriter.shape(found->q);
  const SymShape* kt = rewriter.shape(found->k_transposed);
  const SymShape* v = rewriter.shape(found->v);
  const size_t rank = q != nullptr ? q->size() : 0;
  if (rank < 3 || kt == nullptr || v == nullptr || kt->size() != rank || v->size() != rank)
    return 0;
  const SymDim keys = (*kt)[rank - 1], values = (*v)[found->turned ? rank - 1 : rank - 2];
  if (!(*q)[0].equals((*kt)[0]) || !(*q)[0].equals((*v)[0]) || !keys.equals(values) ||
      !(*q)[rank - 1].equals((*kt)[rank - 2]))
    return 0;
  const SymDim queries = (*q)[rank - 2];
  if (found->turned && !many_scores(queries, keys, kTurnedScores)) return 0;
  if (rank == 4) {
    if (!(*kt)[1].equals((*v)[1])) return 0;
    const bool same_heads = (*q)[1].equals((*kt)[1]);
    if (!same_heads && !(is_one((*kt)[1]) && (*q)[1].lower_bound().value_or(0) >= 1)) return 0;
  } else if (rank == 3 && (found->mask.any() || found->computed ||  // it would be one of heads
                           !many_scores(queries, keys, kOneHeadScores))) {
    return 0;
  }
  std::optional<Regrouped> groups;
  if (rank > 4 || found->windows) {
    const auto exchanged = [](SymShape shape) {
      std::swap(shape[shape.size() - 1], shape[shape.size() - 2]);
      return shape;
    };
    groups.emplace(*q, exchanged(*kt), found->turned ? exchanged(*v) : *v, found->windows);
    if ((found->computed && !found->windows) || !groups->fits()) return 0;
  }
  if (found->computed)
    found->mask.outside = {rewriter.initializer(root.graph(), *found->computed, "mask")};
  MaskFit fit = MaskFit::kAsItIs;
  if (found->mask.any())
    fit = fit_of_mask(rewriter, found->mask, dtype, groups ? groups->queries() : *q, keys,
                      found->guarded || rewriter.level() >= 3);
  if (fit == MaskFit::kNot) return 0;
  // No key at all: softmax of nothing, and a sum of nothing; both give zeros.

  Value* k = untransposed(rewriter, root, found->k_transposed, rank);
  Value* value = found->turned ? untransposed(rewriter, root, found->v, rank) : found->v;
  if (Value* k_source = before_repeat(rewriter, k))
    if (Value* v_source = before_repeat(rewriter, value))
      if (rewriter.shape(k_source) != nullptr && rewriter.shape(v_source) != nullptr &&
          (*rewriter.shape(k_source))[1].equals((*rewriter.shape(v_source))[1])) {
        k = k_source;
        value = v_source;
      }
  std::vector<Value*> inputs = {found->q, k, value};
  if (groups)
    for (size_t i = 0; i < 3; ++i) inputs[i] = groups->merged(rewriter, root, inputs[i], i);
  if (found->mask.any()) {
    auto mask = make_mask(rewriter, root, found->mask, inputs[0], inputs[1], fit);
    if (!mask) return 0;
    inputs.push_back(*mask);
  }
  Node& attention = rewriter.add(root, "Attention", inputs, root.output(0)->name());
  attention.set_float("scale", static_cast<float>(found->scale));
  if (rank == 3) {
    attention.set_int("q_num_heads", 1);
    attention.set_int("kv_num_heads", 1);
  }
  rewriter.touch(attention);
  Value* y = attention.output(0);
  if (groups) y = groups->apart(rewriter, root, y);
  if (found->turned) y = untransposed(rewriter, root, y, rank);
  rewriter.supersede(*root.output(0), *y);
  for (Node* node : found->nodes)
    if (!node->output(0)->has_uses() && node->output(0)->producer() == node) rewriter.erase(*node);
  for (size_t i = found->nodes.size(); i-- > 0;) {
    Node* node = found->nodes[i];
    if (node->output(0)->producer() == node && !node->output(0)->has_uses()) rewriter.erase(*node);
  }
  return 1;
}

/// [B, S, H * D] behind Transpose(Reshape(x)), which Attention of rank 3 takes apart itself.
Value* packed(const Rewriter& rewriter, const Value* heads) {
  const Node* transpose = rewriter.producer(heads, "Transpose");
  if (transpose == nullptr) return nullptr;
  const auto perm = AttributeReader(*transpose).get_ints("perm");
  if (perm.size() != 4 || perm[0] != 0 || perm[1] != 2 || perm[2] != 1 || perm[3] != 3)
    return nullptr;
  const Node* reshape = rewriter.producer(transpose->input(0), "Reshape");
  if (reshape == nullptr) return nullptr;
  Value* source = reshape->input(0);
  const SymShape* from = rewriter.shape(source);
  const SymShape* to = rewriter.shape(reshape->output(0));
  if (from == nullptr || to == nullptr || from->size() != 3 || to->size() != 4 ||
      !(*from)[0].equals((*to)[0]) || !(*from)[1].equals((*to)[1]) || !(*to)[2].is_value() ||
      !(*to)[3].is_value() || (*from)[2].constant() != (*to)[2].value() * (*to)[3].value())
    return nullptr;
  return source;
}

size_t pack(Rewriter& rewriter, Node& node) {
  if (!rewriter.is(&node, "Attention") || node.outputs().size() != 1 || node.inputs().size() > 4 ||
      rewriter.rank(node.input(0)) != 4u || !Rewriter::single_use(node.output(0)))
    return 0;
  Node* transpose = node.output(0)->uses()[0].node;
  if (!rewriter.is(transpose, "Transpose") || !Rewriter::single_use(transpose->output(0))) return 0;
  const auto perm = AttributeReader(*transpose).get_ints("perm");
  if (perm.size() != 4 || perm[0] != 0 || perm[1] != 2 || perm[2] != 1 || perm[3] != 3) return 0;
  Node* reshape = transpose->output(0)->uses()[0].node;
  if (!rewriter.is(reshape, "Reshape") || transpose->output(0)->uses()[0].index != 0) return 0;
  const SymShape* y = rewriter.shape(node.output(0));
  const SymShape* out = rewriter.shape(reshape->output(0));
  if (y == nullptr || out == nullptr || out->size() != 3 || !(*out)[0].equals((*y)[0]) ||
      !(*out)[1].equals((*y)[2]) || !(*y)[1].is_value() || !(*y)[3].is_value() ||
      (*out)[2].constant() != (*y)[1].value() * (*y)[3].value())
    return 0;
  Value* sources[3];
  for (size_t i = 0; i < 3; ++i) {
    sources[i] = packed(rewriter, node.input(i));
    if (sources[i] == nullptr) return 0;
  }
  const auto q_heads = rewriter.dim(node.input(0), 1), kv_heads = rewriter.dim(node.input(1), 1);
  if (!q_heads || !kv_heads) return 0;
  std::vector<Value*> inputs(sources, sources + 3);
  if (node.input(3) != nullptr) inputs.push_back(node.input(3));
  Node& made = rewriter.add(*reshape, "Attention", inputs, reshape->output(0)->name());
  for (const Attribute& attribute : node.attributes()) {
    if (attribute.i() != nullptr) made.set_int(attribute.name, *attribute.i());
    if (attribute.f() != nullptr) made.set_float(attribute.name, *attribute.f());
  }
  made.set_int("q_num_heads", *q_heads);
  made.set_int("kv_num_heads", *kv_heads);
  rewriter.touch(made);
  rewriter.supersede(*reshape->output(0), *made.output(0));
  rewriter.erase(*transpose);
  rewriter.erase(node);
  return 1;
}

}  // namespace

Result<size_t> recognise_attention(Rewriter& rewriter) {
  rewriter.refresh();
  size_t count = 0;
  rewriter.for_each([&](Graph& graph) {
    for (Node* node : graph.nodes()) {
      if (node->outputs().size() != 1 || node->output(0) == nullptr) continue;
      if (const size_t done = spell_out_scores(rewriter, *node); done != 0) {
        count += done;
        continue;
      }
      const size_t found = to_attention(rewriter, *node);
      count += found;
      if (found == 0) count += pack(rewriter, *node);
    }
  });
  return count;
}

}  // namespace tombolo::passes
