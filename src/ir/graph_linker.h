#pragma once

// GraphLinker: turns the names of a serialised graph into Values. Every reader uses it, so that the
// same names mean the same graph whatever the format, valid or not.
//
// Scoping (SPEC IR.md, "Names Within a Graph"): a name means the value of that name in its own
// graph, wherever that stands, else in the graphs around it. A name that nothing defines becomes an
// undefined value of the outermost graph. Of two definitions of one name the first is bound; the
// second is kept as a value of the same name that nothing uses.

#include <memory>
#include <unordered_set>
#include <vector>

#include "ir/graph.h"
#include "ir/name_table.h"

namespace tombolo {

class GraphLinker {
 public:
  struct Options {
    bool copy_names = false;  ///< names do not live as long as the storage
    bool function = false;    ///< a function body: inputs take their type from value_info
  };
  /// `parent` links the graph around this one; null for a main graph or a function body.
  GraphLinker(Graph& graph, GraphLinker* parent, Options options);

  // One call for each entry of the file, in file order within each list; lists in any order.
  // `info` may be null; its name is not used.
  Value* input(Text name, const Type* type, std::unique_ptr<ValueInfo> info);
  Value* initializer(std::unique_ptr<Constant> constant);
  Value* sparse_initializer(std::unique_ptr<SparseConstant> constant);
  void value_info(Text name, const Type* type, std::unique_ptr<ValueInfo> info);
  void output(Text name, const Type* type, std::unique_ptr<ValueInfo> info);
  /// The value that a node's input names; null for the empty name (an absent input).
  Value* use(Text name);
  void node_output(Node* node, Text name);

  /// To be called once, when the graph is complete and before its parent's finish(): resolves
  /// forward references, captured values and the outputs.
  void finish();

  /// Binds what `graph` already holds, to add to a graph that was built otherwise.
  void adopt();

 private:
  struct PendingOutput {
    Graph* graph;
    size_t index;
    Text name;
  };
  Value* make(Text name);
  Value* find_outside(Text name) const;
  void bind_output(const PendingOutput& pending, Value* value);

  Graph& graph_;
  GraphLinker* parent_;
  Options options_;
  NameTable table_;
  std::vector<Value*> loose_;  // made before their definition; some may never get one
  std::vector<PendingOutput> pending_;
  std::unordered_set<const Value*> bare_;  // has an entry that says nothing: it must stay so
};

}  // namespace tombolo
