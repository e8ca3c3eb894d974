#pragma once

// Rewriter: what passes see and edit the model with. It knows types, shapes and constants of every
// value, those of new nodes included, and makes edits that keep names, uses and the graph's
// interface right.

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "analysis/infer.h"
#include "ir/model.h"
#include "ir/run_value.h"
#include "ops/infer_context.h"
#include "ops/schema.h"

namespace tombolo {

/// A dimension that is 1 for certain.
inline bool is_one(const SymDim& dim) { return dim.constant() == 1; }

struct RewriteLimits {
  uint64_t fold_growth = uint64_t(1) << 20;    ///< bytes that folding one node may add
  uint64_t total_growth = uint64_t(64) << 20;  ///< bytes that folding may add in all
  uint64_t unroll_nodes = 400;                 ///< nodes that unrolling one Loop may give
  int opset_ceiling = 26;                      ///< operators that came later are not written
};

/// Runs a node that the model has at `opset` on its inputs (null where absent).
using NodeRunner = Result<std::vector<RunValue>> (*)(const Node& node, int64_t opset,
                                                     std::span<const RunValue* const> inputs);

class Rewriter {
 public:
  explicit Rewriter(Model& model, int level = 2, RewriteLimits limits = {});
  ~Rewriter();

  Model& model() { return model_; }
  int level() const { return level_; }
  RewriteLimits limits;
  /// New weights may be Deferred: what only the runtime can read.
  bool defers = false;
  /// Products may be rounded to 16 bits, as kernels for blocks of channels do.
  bool fast_math = false;
  NodeRunner run_node = nullptr;  ///< null: there are the reference kernels alone

  // Facts.

  /// Infers the whole model anew, unless nothing changed since the last time.
  void refresh();
  /// Null when nothing is known.
  const InferType* type(const Value* value) const;
  DType dtype(const Value* value) const;            ///< of a tensor; kUndefined when not known
  const SymShape* shape(const Value* value) const;  ///< null when the rank is not known
  std::optional<size_t> rank(const Value* value) const;
  std::optional<std::vector<int64_t>> dims(const Value* value) const;  ///< all known as numbers
  std::optional<int64_t> dim(const Value* value, int64_t axis) const;  ///< axis may be negative
  /// Elements of a small integer tensor, symbolic.
  const SymShape* elements(const Value* value) const;
  /// Both shapes are known and provably the same.
  bool same_shape(const Value* a, const Value* b) const;
  bool same_dtype(const Value* a, const Value* b) const;

  /// An initialiser that no caller may replace, or what a Constant node gives.
  bool is_constant(const Value* value) const;
  /// Its tensor, aligned; null when the value is no constant (or cannot be read).
  const Tensor* constant(const Value* value) const;
  /// The one element of a constant of one element, whatever its rank.
  std::optional<double> scalar(const Value* value) const;
  /// A constant list of integers (rank 0 or 1), or elements that inference knows as numbers.
  std::optional<std::vector<int64_t>> ints(const Value* value) const;

  /// `node` is the operator `op` of `domain` in its newest version, not a call of a function.
  bool is(const Node* node, Text op, Text domain = {}) const;
  /// The producer of `value` if it is that operator and stands in the same graph as `beside`.
  Node* producer(const Value* value, Text op) const;
  /// One node reads the value, once, and it is no output of a graph.
  static bool single_use(const Value* value);
  /// The node that alone reads the value, in `graph`, if it gives one value itself.
  static Node* only_reader(const Value* value, const Graph& graph);
  /// Somebody reads the value, a node or the graph's caller; not where it is null.
  static bool is_read(const Value* value);
  const OpDecl* declaration(const Node& node) const;  ///< null for functions and unknown operators

  // Edits.

  /// A new node before `before`, with `outputs` new values named after `hint`.
  Node& add(Node& before, Text op, std::span<Value* const> inputs, Text hint = {},
            size_t outputs = 1, Text domain = {});
  Node& add(Node& before, Text op, std::initializer_list<Value*> inputs, Text hint = {},
            size_t outputs = 1, Text domain = {}) {
    return add(before, op, std::span<Value* const>(inputs.begin(), inputs.size()), hint, outputs,
               domain);
  }
  /// Infers the outputs of a node that was added or whose attributes or inputs were changed.
  void touch(Node& node);
  Value* initializer(Graph& graph, const Tensor& tensor, Text hint);
  Value* initializer(Graph& graph, DType dtype, std::span<const int64_t> dims,
                     std::shared_ptr<const Deferred> elements, Text hint);
  Value* ints_initializer(Graph& graph, std::span<const int64_t> values, Text hint);
  /// Numbers of float32; no dims: one, without axes.
  Value* float_initializer(Graph& graph, std::span<const int64_t> dims,
                           std::span<const double> values, Text hint);
  /// The length of one axis of x, as a list of one that the run makes.
  Value* axis_length(Node& before, Value* x, int64_t axis, Text hint);
  /// One number of int8 or uint8, without axes.
  Value* byte_initializer(Graph& graph, DType dtype, int64_t number, Text hint);
  /// All that reads `from` reads `to` instead. A name of the graph's interface stays: `to` takes it
  /// over, or, where that cannot be, an Identity keeps it (false is returned then, and when that
  /// Identity is already there nothing happens).
  bool replace(Value& from, Value& to);
  /// True when replace() would need no Identity.
  bool replaceable(const Value& from, const Value& to) const;
  /// Erases a node whose outputs nobody reads.
  void erase(Node& node);
  /// replace(), then erases the producer of `from` when nothing reads it any more.
  bool supersede(Value& from, Value& to);

  Text unique_name(Text hint);
  /// Every graph of the main graph, outermost first (functions are left alone).
  template <typename Visit>
  void for_each(Visit&& visit) {
    if (model_.graph) for_each_graph(*model_.graph, visit);
  }
  void changed() { stale_ = true; }
  void functions_changed();             ///< some of the model's functions are gone
  uint64_t& grown() { return grown_; }  ///< bytes that folding has added

 private:
  class Host;
  void collect_names();
  Value* define(Graph& graph, Constant constant);
  bool is_overridable(const Value& value) const;

  Model& model_;
  int level_;
  bool stale_ = true;
  std::unique_ptr<Inference> inference_;
  TypePool pool_;
  std::unordered_map<uint32_t, const InferType*> own_types_;
  std::unordered_map<uint32_t, const SymShape*> own_elements_;
  mutable std::unordered_map<uint32_t, std::optional<Tensor>> constants_;
  std::unordered_set<std::string> shadowed_;  ///< operators that functions of the model redefine
  bool names_collected_ = false;
  std::unordered_set<std::string_view> names_;
  std::unordered_map<std::string, int> next_suffix_;
  uint64_t grown_ = 0;
  uint64_t next_symbol_ = 0;
};

}  // namespace tombolo
