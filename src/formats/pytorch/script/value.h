#pragma once

// What a TorchScript program computes with while it is lowered: tensors and numbers as ATen calls
// take them, and lists, tuples, dicts and objects, which live in the interpreter alone.

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "formats/common/pickle.h"
#include "formats/pytorch/aten/arg.h"
#include "formats/pytorch/script/syntax.h"

namespace tombolo::script {

using pytorch::Arg;
using pytorch::Cell;
using pytorch::Ref;
using pytorch::SymInt;

struct Box;
using BoxRef = std::shared_ptr<Box>;

struct Item {
  enum class Kind : uint8_t {
    kArg,  ///< None, tensor, number, string, dtype, device
    kList,
    kTuple,
    kDict,
    kObject,
    kMaybe,          ///< None or a value, which is only known when the model runs
    kUninitialized,  ///< of a variable that no path reads
    kLazy,           ///< an attribute of the archive that was not looked at yet
  };
  Kind kind = Kind::kArg;
  Arg arg;
  BoxRef box;
  const PickleValue* lazy = nullptr;

  Item() = default;
  Item(Arg value) : arg(std::move(value)) {}
  // Not inline: their code would stand at every use.
  Item(const Item& other);
  Item(Item&& other) noexcept;
  Item& operator=(const Item& other);
  Item& operator=(Item&& other) noexcept;
  ~Item();
  static Item of(Kind kind, BoxRef box) {
    Item item;
    item.kind = kind;
    item.box = std::move(box);
    return item;
  }
  static Item list(std::vector<Item> items);
  static Item tuple(std::vector<Item> items);

  bool is(Kind what) const { return kind == what; }
  bool is_arg(Arg::Kind what) const { return kind == Kind::kArg && arg.kind == what; }
  bool is_none() const { return is_arg(Arg::Kind::kNone); }
  bool is_tensor() const { return is_arg(Arg::Kind::kTensor); }
  bool is_text() const { return is_arg(Arg::Kind::kString); }
  bool is_number() const { return kind == Kind::kArg && arg.is_number(); }
  bool is_sequence() const { return kind == Kind::kList || kind == Kind::kTuple; }
};

/// The content of a list, tuple, dict, object or of a maybe.
struct Box {
  std::vector<Item> items;  ///< of a list or tuple; values of a dict; the value of a maybe
  std::vector<Item> keys;   ///< of a dict
  std::map<std::string, Item, std::less<>> attributes;  ///< of an object; fields of a named tuple
  std::vector<std::string> names;                       ///< of a named tuple
  std::string type_name;                                ///< of an object: "__torch__.net.Net"
  const Class* type = nullptr;
  const Function* function = nullptr;  ///< of a closure
  std::string path;                    ///< of a module: "layer1.0"
  Value* sequence = nullptr;           ///< of a list whose length is only known when the model runs
  Value* present = nullptr;            ///< of a maybe: 0-d bool
  BoxRef origin;                       ///< of a copy that leaves a branch: what it shows

  Box();
  Box(const Box& other);
  Box(Box&& other) noexcept;
  Box& operator=(const Box& other);
  Box& operator=(Box&& other) noexcept;
  ~Box();
};

/// The tensor that a copy shows which left a branch (Cell::origin); others themselves.
inline const Ref& origin_of(const Ref& tensor) { return tensor->origin ? tensor->origin : tensor; }
inline const BoxRef& origin_of(const BoxRef& box) { return box->origin ? box->origin : box; }
inline Item origin_of(const Item& item) {
  if (item.is_tensor()) return Item(Arg(origin_of(item.arg.tensor)));
  return item.box ? Item::of(item.kind, origin_of(item.box)) : item;
}

/// For messages: "a list", "an integer".
std::string kind_of(const Item& item);

/// The shape that two values of one variable have in common: the same value, or leaves that the
/// graph carries and how they are put together.
struct Pattern {
  enum class Kind : uint8_t { kSame, kLeaf, kTuple, kList, kDict, kMaybe, kSequence };
  Kind kind = Kind::kSame;
  Item same;                        ///< also what a leaf is like
  DType dtype = DType::kUndefined;  ///< of a leaf, ONNX's
  DType torch_dtype = DType::kUndefined;
  bool has_shape = false;
  SymShape shape;
  std::vector<Pattern> parts;
  // Of a leaf that is a tensor:
  std::vector<Ref> origins;  ///< the tensors that it is on one path or another
  bool stale = false;        ///< one of them must not be read any more
};

}  // namespace tombolo::script
