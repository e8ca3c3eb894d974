#pragma once

// Runs a TorchScript program on tensors of the graph that is being built: what is known now is
// computed now, what is not becomes nodes. Modules and functions are inlined, loops of known length
// unrolled, branches on known conditions taken; the others become If and Loop.

#include <array>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_set>
#include <vector>

#include "formats/pytorch/aten/context.h"
#include "formats/pytorch/script/archive.h"
#include "formats/pytorch/script/value.h"

namespace tombolo::script {

using pytorch::AtenContext;
using Items = std::vector<Item>;
using NamedItems = std::vector<std::pair<std::string, Item>>;

enum class Flow : uint8_t { kNormal, kReturn, kBreak, kContinue };

/// The value as an output of the graph that is being built: made by a node, and for nothing else.
Value* own_output(AtenContext& c, Value* value);
/// Removes nodes that nothing uses, in bodies too, and initialisers that nothing uses.
void remove_dead(Graph& graph);
/// Empties the body of a node that is given up, so that it holds no uses of values around it.
void discard(Graph& body);

class Interpreter {
 public:
  Interpreter(ScriptArchive& archive, AtenContext& context) : archive_(archive), c(context) {}

  /// The module that the archive holds.
  Result<Item> root();
  Result<Item> call_method(const Item& object, std::string_view name, Items args,
                           NamedItems named = {});
  Result<Item> call_function(const Function& function, Items args, NamedItems named,
                             const std::string& scope);
  /// A tensor attribute of the archive, under the name that its path gives it.
  Result<Item> lazy(const PickleValue& value, const std::string& path);
  Result<Item> evaluate(const Expr& expr);
  Result<Item> attribute(const Item& base, std::string_view name);
  /// The member of an enumeration under a name or a value; each is one object.
  Result<Item> enum_member(const Class& type, const std::string& qualified, std::string_view name,
                           const Item* value);

  /// Tensors of the archive that were used, by name, and what they hold now.
  struct State {
    std::string name;
    Ref cell;
    Value* initial = nullptr;
    std::shared_ptr<Item> reassigned;  ///< what the program put in its place
  };
  const std::vector<State>& states() const { return states_; }
  ScriptArchive& archive() { return archive_; }
  AtenContext& context() { return c; }

  // ---- shared by the files of built-in functions ----

  /// A list of values as an ATen call takes it.
  Result<Arg> to_arg(const Item& item);
  Item from_arg(const Arg& arg);
  Result<Item> aten(std::string_view overload, Items args, NamedItems named = {});
  /// A function of the language or an operator, by the name that a program calls it.
  Result<Item> invoke(const std::string& name, Items args, NamedItems named = {});
  /// quantized.cpp: the real numbers of a quantised tensor (others as they are), and back.
  Result<Item> dequantized(const Item& item);
  Result<Item> requantized(const Item& item,
                           const std::shared_ptr<const pytorch::Quantization>& quantization);
  std::shared_ptr<const pytorch::Quantization> own_quantization(
      const std::string& overload, std::shared_ptr<const pytorch::Quantization> given);
  /// The value of a 0-d bool, known or not.
  Result<Arg> truth(const Item& item);
  void touch(const BoxRef& box);

 private:
  friend class Builtins;
  struct Frame {
    const Function* function = nullptr;
    std::map<std::string, Item, std::less<>> locals;
    Item result;
    std::string scope;
    Text module, source;  ///< what nodes carry as metadata
  };
  void set_metadata(const Stmt& stmt);
  struct Journal {
    std::vector<std::pair<BoxRef, Box>> boxes;
    std::vector<std::pair<Ref, Cell>> cells;
  };
  /// What a branch or a loop body left behind: of variables, containers and tensors.
  struct Outcome {
    std::map<std::string, Item, std::less<>> locals;
    std::vector<std::pair<BoxRef, Box>> boxes;
    std::vector<std::pair<Ref, Value*>> cells;
    std::vector<Ref> stale;  ///< of these a tensor that may be the same was written
    bool returned = false;
    Item result;
  };

  // statements
  Result<Flow> execute(const std::vector<const Stmt*>& body);
  Result<Flow> statement(const Stmt& stmt);
  Status assign(const Expr& target, Item value);
  Result<Flow> execute_if(const Stmt& stmt);
  Result<Flow> execute_for(const Stmt& stmt);
  Result<Flow> execute_while(const Stmt& stmt);
  Result<Flow> execute_with(const Stmt& stmt);
  Result<Item> call_closure(const Item& closure);
  Result<Flow> dynamic_if(const Stmt& stmt, Value* condition);
  /// Two ways to go on, of which the model takes one.
  struct Branches {
    virtual ~Branches() = default;
    virtual Result<Flow> run(int side) = 0;
  };
  Result<Flow> branch(Value* condition, Branches& sides);
  struct Choice {
    virtual ~Choice() = default;
    virtual Result<Item> run(const Item& item) = 0;
  };
  Result<Item> choose(const Item& maybe, Choice& choice);
  Result<std::optional<Item>> split_optionals(std::string_view name, const Items& args,
                                              const NamedItems& named);
  Result<Flow> dynamic_loop(const Stmt& stmt, const Item* trips);
  Error located(Error error, const Stmt& stmt);

  // control_flow.cpp
  void begin_journal();
  Outcome end_journal();
  Result<Pattern> unify(const Item& a, const Item& b, bool force, int depth);
  Status lower(const Item& item, const Pattern& pattern, std::vector<Value*>& out);
  Item raise(const Pattern& pattern, const std::vector<Value*>& values, size_t& at);
  Result<Value*> leaf_value(const Item& item, const Pattern& pattern);
  // aliasing.cpp
  /// How the tensors that go from one turn of a loop to the next share memory, with each other and
  /// with others: the body must be lowered again where there is more than was assumed.
  class Relations {
   public:
    void leaves(const Item& item, const Pattern& pattern);
    /// Notes what is seen of the leaves, `outside`: memories from before the loop; true where it is
    /// new.
    bool grow(AtenContext& c, uint64_t outside);
    void clear() { known_.clear(); }

   private:
    std::vector<Ref> tensors_;
    std::set<std::array<uint64_t, 3>> known_;
  };
  Item frozen(const Item& item);
  Value* frozen_value(const Ref& tensor);
  int empty_side(const Value* condition);
  Item empty_like(const Item& item, const Item& other);
  void entangle();
  Item element_like(const Pattern& pattern);
  void restore(const BoxRef& box, const Item& item);
  std::unordered_set<const void*> reachable();
  void add_loaded(std::unordered_set<const void*>& alive) const;

  // expressions
  Result<Item> call(const Expr& expr);
  Result<Item> call_builtin(const std::string& name, const Expr& expr, Items& args,
                            NamedItems& named);
  Result<Item> index(const Item& base, const Item& key);
  Result<Item> constant_tensor(const PickleValue& value, size_t number);
  Result<Item> construct(const std::string& qualified, Items args, NamedItems named);
  Result<Item> annotated(const Expr& type, Item value);
  Result<bool> is_instance(const Item& item, const Expr& type);
  Status arguments(const Expr& call, Items& args, NamedItems& named);
  Result<std::optional<Item>> upgraded(const std::string& base, Items& args, NamedItems& named);
  Result<const pytorch::Operator*> overload(std::string_view base, const std::vector<Arg>& args,
                                            const std::vector<std::pair<std::string, Arg>>& named);

  ScriptArchive& archive_;
  AtenContext& c;
  std::vector<std::unique_ptr<Frame>> frames_;
  std::deque<Journal> journals_;
  std::map<const PickleValue*, Item> loaded_;
  std::map<std::string, Item> enums_;
  std::vector<State> states_;
  std::vector<std::pair<Ref, std::vector<Ref>>> raised_;  ///< what raise() made, and what it may be
  std::map<std::string, Text, std::less<>> texts_;        ///< of metadata, kept by the model
  size_t steps_ = 0, depth_ = 0;
};

}  // namespace tombolo::script
