#pragma once

// Functions of TorchScript itself: arithmetic of numbers, lists, dicts, strings, and what asks a
// tensor for its properties. Tables by name; a function answers nothing where it is not meant for
// its arguments, and the call is then one of ATen's.

#include <optional>
#include <span>
#include <string_view>

#include "formats/pytorch/script/interpreter.h"

namespace tombolo::script {

using Answer = Result<std::optional<Item>>;
using Builtin = Answer (*)(Interpreter& in, Items& args, NamedItems& named);

struct BuiltinRow {
  std::string_view name;
  Builtin run;
};

std::span<const BuiltinRow> number_builtins();     // of numbers and None
std::span<const BuiltinRow> math_builtins();       // what Python's math has
std::span<const BuiltinRow> text_builtins();       // of strings
std::span<const BuiltinRow> container_builtins();  // of lists, tuples, dicts, strings
std::span<const BuiltinRow> tensor_builtins();     // of tensors
std::span<const BuiltinRow> quantized_builtins();  // "quantized::linear" and the like
std::span<const BuiltinRow> quantized_rnn_builtins();

inline Answer not_mine() { return std::optional<Item>(); }
inline Answer answer(Item item) { return std::optional<Item>(std::move(item)); }

/// base[key] of lists, tuples, dicts, strings.
Result<Item> get_item(Interpreter& in, const Item& base, const Item& key);
Result<Item> set_item(Interpreter& in, const Item& base, const Item& key, Item value);
/// AtenContext::pin of an item that is a tensor: an element of a sequence.
void pin(const Item& item);
/// Equality of values that are known now; nothing where the model must say.
std::optional<bool> known_equal(const Item& a, const Item& b);

}  // namespace tombolo::script
