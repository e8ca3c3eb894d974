#pragma once

// The subset of Python that TorchScript archives keep in code/: classes with attributes and
// methods, functions, assignments, if, for, while, return, expressions. Text to syntax tree; what a
// name means is the interpreter's business.

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace tombolo::script {

struct Expr {
  enum class Kind : uint8_t {
    kName,
    kAttribute,  ///< items[0] . text
    kCall,       ///< items[0] ( items[1..], named )
    kIndex,      ///< items[0] [ items[1] ]
    kSlice,      ///< items[0] : items[1] : items[2], any of them null
    kList,
    kTuple,
    kDict,  ///< items: key, value, ...
    kInt,
    kFloat,
    kImaginary,
    kString,
    kTrue,
    kFalse,
    kNone,
    kUnary,   ///< text: "-", "not", "~"
    kBinary,  ///< text: the operator
  };
  Kind kind = Kind::kNone;
  uint32_t line = 0;
  std::string_view text;
  int64_t integer = 0;
  double real = 0;
  std::vector<const Expr*> items;
  std::vector<std::pair<std::string_view, const Expr*>> named;

  /// "torch.nn.functional.relu" of a chain of names; empty for anything else.
  std::string dotted() const;
};

struct Function;

struct Stmt {
  enum class Kind : uint8_t {
    kExpr,
    kAssign,  ///< targets = value; several targets unpack
    kIf,
    kFor,  ///< targets in value
    kWhile,
    kReturn,
    kAssert,
    kPass,
    kBreak,
    kContinue,
    kDelete,
    kWith,    ///< with value [as targets[0]]
    kDefine,  ///< a function within a function
  };
  Kind kind = Kind::kPass;
  uint32_t line = 0;
  bool unpack = false;  ///< assign: the targets take the parts of the value
  std::vector<const Expr*> targets;
  const Expr* value = nullptr;  ///< also the condition
  const Expr* annotation = nullptr;
  const Function* function = nullptr;
  std::vector<const Stmt*> body, otherwise;
};

struct Parameter {
  std::string_view name;
  const Expr* type = nullptr;
  const Expr* fallback = nullptr;
};

struct Function {
  std::string_view name;
  uint32_t line = 0;
  std::vector<Parameter> parameters;
  const Expr* result = nullptr;  ///< type
  std::vector<const Stmt*> body;
  std::string_view file;  ///< "code/__torch__/net.py"
  std::string scope;      ///< "__torch__.net"
};

struct Class {
  std::string_view name;
  std::string_view base;  ///< Module, NamedTuple, Interface, Enum or empty
  std::vector<std::pair<std::string_view, const Expr*>> attributes;  ///< name and type
  std::vector<std::pair<std::string_view, const Expr*>> values;      ///< name = value
  std::map<std::string_view, const Function*> methods;
};

/// One file of code/, parsed. Everything lives as long as this.
struct SourceFile {
  std::deque<Expr> exprs;
  std::deque<Stmt> stmts;
  std::deque<Function> functions;
  std::deque<Class> classes;
  std::deque<std::string> texts;
  std::shared_ptr<const void> owner;
  std::map<std::string_view, const Function*> functions_by_name;
  std::map<std::string_view, const Class*> classes_by_name;
};

struct Token {
  enum class Kind : uint8_t {
    kName,
    kInt,
    kFloat,
    kImaginary,
    kString,
    kSymbol,
    kNewline,
    kIndent,
    kDedent,
    kEnd
  };
  Kind kind = Kind::kEnd;
  uint32_t line = 0;
  std::string_view text;  ///< strings: unescaped
};

/// Tokens with indentation made explicit, as Python's own tokenizer does.
Result<std::vector<Token>> tokenize(std::string_view text, std::deque<std::string>& texts);

/// Parses a file of code/. `file` is for messages, `scope` the module that it is: "__torch__.net".
Result<std::unique_ptr<SourceFile>> parse_source(std::string_view text,
                                                 std::shared_ptr<const void> owner,
                                                 std::string_view file, std::string scope);

}  // namespace tombolo::script
