#include <charconv>
#include <cstdlib>

#include "formats/pytorch/script/syntax.h"

namespace tombolo::script {

std::string Expr::dotted() const {
  if (kind == Kind::kName) return std::string(text);
  if (kind != Kind::kAttribute) return {};
  std::string base = items[0]->dotted();
  return base.empty() ? base : base + "." + std::string(text);
}

namespace {

constexpr int kMaxSyntaxDepth = 200;

/// Binary operators by how tightly they bind.
int precedence(std::string_view symbol) {
  if (symbol == "or") return 1;
  if (symbol == "and") return 2;
  if (symbol == "==" || symbol == "!=" || symbol == "<" || symbol == ">" || symbol == "<=" ||
      symbol == ">=" || symbol == "in" || symbol == "is" || symbol == "not in" ||
      symbol == "is not")
    return 4;
  if (symbol == "|") return 5;
  if (symbol == "^") return 6;
  if (symbol == "&") return 7;
  if (symbol == "<<" || symbol == ">>") return 8;
  if (symbol == "+" || symbol == "-") return 9;
  if (symbol == "*" || symbol == "/" || symbol == "//" || symbol == "%" || symbol == "@") return 10;
  if (symbol == "**") return 12;
  return 0;
}

class Parser {
 public:
  Parser(std::vector<Token> tokens, SourceFile& file, std::string_view name, std::string scope)
      : tokens_(std::move(tokens)), file_(file), name_(name), scope_(std::move(scope)) {}

  Status run() {
    while (!is(Token::Kind::kEnd)) {
      if (is(Token::Kind::kNewline)) {
        next();
      } else if (is_name("class")) {
        CHECK_OK(parse_class());
      } else if (is_name("def")) {
        TRY(const Function* function, parse_function());
        file_.functions_by_name[function->name] = function;
      } else {
        // op_version_set = 1, imports
        if (is_name("import") || is_name("from")) {
          while (!is(Token::Kind::kNewline) && !is(Token::Kind::kEnd)) next();
          continue;
        }
        TRY(const Stmt* ignored, parse_statement());
        (void)ignored;
      }
    }
    return ok();
  }

 private:
  using Kind = Expr::Kind;

  const Token& token() const { return tokens_[at_]; }
  void next() {
    if (at_ + 1 < tokens_.size()) ++at_;
  }
  bool is(Token::Kind kind) const { return token().kind == kind; }
  bool is_symbol(std::string_view text) const {
    return is(Token::Kind::kSymbol) && token().text == text;
  }
  bool is_name(std::string_view text) const {
    return is(Token::Kind::kName) && token().text == text;
  }
  bool accept(std::string_view symbol) {
    if (!is_symbol(symbol)) return false;
    next();
    return true;
  }
  Error error(const std::string& what) const {
    return parse_error(what).at("line " + std::to_string(token().line));
  }
  Status expect(std::string_view symbol) {
    if (!accept(symbol)) return error("\"" + std::string(symbol) + "\" is missing");
    return ok();
  }
  Result<std::string_view> identifier() {
    if (!is(Token::Kind::kName)) return error("a name is missing");
    const std::string_view text = token().text;
    next();
    return text;
  }
  Expr* make(Kind kind) {
    Expr& expr = file_.exprs.emplace_back();
    expr.kind = kind;
    expr.line = token().line;
    return &expr;
  }
  struct Deeper {
    explicit Deeper(int& depth) : depth_(depth) { ++depth_; }
    ~Deeper() { --depth_; }
    int& depth_;
  };

  /// The items up to a closing bracket, which is consumed.
  Status items_until(std::string_view close, std::vector<const Expr*>& items) {
    while (!accept(close)) {
      TRY(const Expr* item, parse_expr());
      items.push_back(item);
      if (!accept(",")) return expect(close);
    }
    return ok();
  }

  Result<const Expr*> parse_expr() {
    const Deeper deeper(depth_);
    if (depth_ > kMaxSyntaxDepth) return error("expressions nested too deeply");
    return parse_binary(1);
  }

  std::string_view binary_operator() {
    if (is(Token::Kind::kSymbol) && precedence(token().text) != 0) return token().text;
    if (is_name("or") || is_name("and") || is_name("in")) return token().text;
    if (is_name("is")) {
      const bool negated = at_ + 1 < tokens_.size() &&
                           tokens_[at_ + 1].kind == Token::Kind::kName &&
                           tokens_[at_ + 1].text == "not";
      return negated ? "is not" : "is";
    }
    if (is_name("not") && at_ + 1 < tokens_.size() && tokens_[at_ + 1].text == "in")
      return "not in";
    return {};
  }

  Result<const Expr*> parse_binary(int lowest) {
    TRY(const Expr* left, parse_unary());
    for (;;) {
      const std::string_view symbol = binary_operator();
      const int binds = precedence(symbol);
      if (symbol.empty() || binds < lowest) return left;
      if (symbol == "is not" || symbol == "not in") next();
      next();
      Expr* both = make(Kind::kBinary);
      both->text = symbol;
      const Deeper deeper(depth_);
      if (depth_ > kMaxSyntaxDepth) return error("expressions nested too deeply");
      TRY(const Expr* right, parse_binary(symbol == "**" ? binds : binds + 1));
      both->items = {left, right};
      left = both;
    }
  }

  Result<const Expr*> parse_unary() {
    if (is_symbol("-") || is_symbol("~") || is_symbol("+") || is_name("not")) {
      const Deeper deeper(depth_);
      if (depth_ > kMaxSyntaxDepth) return error("expressions nested too deeply");
      Expr* unary = make(Kind::kUnary);
      unary->text = token().text;
      next();
      TRY(const Expr* operand, unary->text == "not" ? parse_binary(3) : parse_binary(11));
      if (unary->text == "+") return operand;
      if (unary->text == "-" && operand->kind == Kind::kInt) {
        Expr* number = make(Kind::kInt);
        number->integer = static_cast<int64_t>(~static_cast<uint64_t>(operand->integer) + 1);
        return number;
      }
      if (unary->text == "-" && operand->kind == Kind::kFloat) {
        Expr* number = make(Kind::kFloat);
        number->real = -operand->real;
        return number;
      }
      unary->items = {operand};
      return unary;
    }
    return parse_postfix();
  }

  Result<const Expr*> parse_postfix() {
    TRY(const Expr* base, parse_atom());
    for (int chain = 0;; ++chain) {
      if (chain > 10'000) return error("an expression that is too long");
      if (accept(".")) {
        Expr* attribute = make(Kind::kAttribute);
        // CONSTANTS.0 in old files
        if (is(Token::Kind::kInt)) {
          attribute->text = token().text;
          next();
        } else {
          TRY(attribute->text, identifier());
        }
        attribute->items = {base};
        base = attribute;
      } else if (accept("(")) {
        Expr* call = make(Kind::kCall);
        call->items = {base};
        while (!accept(")")) {
          if (is(Token::Kind::kName) && at_ + 1 < tokens_.size() &&
              tokens_[at_ + 1].kind == Token::Kind::kSymbol && tokens_[at_ + 1].text == "=") {
            const std::string_view name = token().text;
            next();
            next();
            TRY(const Expr* value, parse_expr());
            call->named.emplace_back(name, value);
          } else {
            TRY(const Expr* value, parse_expr());
            call->items.push_back(value);
          }
          if (!accept(",")) {
            CHECK_OK(expect(")"));
            break;
          }
        }
        base = call;
      } else if (accept("[")) {
        Expr* index = make(Kind::kIndex);
        TRY(const Expr* inside, parse_subscript());
        index->items = {base, inside};
        base = index;
      } else {
        return base;
      }
    }
  }

  /// What stands between brackets: an index, a tuple of them, a slice. Consumes the bracket.
  Result<const Expr*> parse_subscript() {
    std::vector<const Expr*> parts;
    bool tuple = false;
    while (!accept("]")) {
      const Expr* part = nullptr;
      if (!is_symbol(":")) {
        TRY(part, parse_expr());
      }
      if (is_symbol(":")) {
        Expr* slice = make(Kind::kSlice);
        slice->items = {part, nullptr, nullptr};
        for (size_t i = 1; i < 3 && accept(":"); ++i) {
          if (is_symbol(":") || is_symbol("]") || is_symbol(",")) continue;
          TRY(slice->items[i], parse_expr());
        }
        part = slice;
      }
      parts.push_back(part);
      if (!accept(",")) {
        CHECK_OK(expect("]"));
        break;
      }
      tuple = true;
    }
    if (parts.size() == 1 && !tuple) return parts[0];
    Expr* all = make(Kind::kTuple);
    all->items = std::move(parts);
    return all;
  }

  Result<const Expr*> parse_atom() {
    const Token& first = token();
    switch (first.kind) {
      case Token::Kind::kInt: {
        Expr* number = make(Kind::kInt);
        const bool hex = first.text.size() > 2 && (first.text[1] == 'x' || first.text[1] == 'X');
        const std::string_view digits = hex ? first.text.substr(2) : first.text;
        uint64_t value = 0;
        const auto [end, code] =
            std::from_chars(digits.data(), digits.data() + digits.size(), value, hex ? 16 : 10);
        if (code != std::errc()) {
          number->kind = Kind::kFloat;
          number->real = std::strtod(std::string(digits).c_str(), nullptr);
        }
        number->integer = static_cast<int64_t>(value);
        next();
        return number;
      }
      case Token::Kind::kFloat:
      case Token::Kind::kImaginary: {
        Expr* number = make(first.kind == Token::Kind::kFloat ? Kind::kFloat : Kind::kImaginary);
        number->real = std::strtod(std::string(first.text).c_str(), nullptr);
        next();
        return number;
      }
      case Token::Kind::kString: {
        Expr* text = make(Kind::kString);
        text->text = first.text;
        next();
        while (is(Token::Kind::kString)) {
          file_.texts.push_back(std::string(text->text) + std::string(token().text));
          text->text = file_.texts.back();
          next();
        }
        return text;
      }
      case Token::Kind::kName: {
        const Kind kind = first.text == "True"    ? Kind::kTrue
                          : first.text == "False" ? Kind::kFalse
                          : first.text == "None"  ? Kind::kNone
                                                  : Kind::kName;
        Expr* name = make(kind);
        name->text = first.text;
        next();
        return name;
      }
      default:
        break;
    }
    if (accept("(")) {
      std::vector<const Expr*> items;
      bool tuple = false;
      while (!accept(")")) {
        TRY(const Expr* item, parse_expr());
        items.push_back(item);
        if (!accept(",")) {
          CHECK_OK(expect(")"));
          break;
        }
        tuple = true;
      }
      if (items.size() == 1 && !tuple) return items[0];
      Expr* all = make(Kind::kTuple);
      all->items = std::move(items);
      return all;
    }
    if (accept("[")) {
      Expr* list = make(Kind::kList);
      CHECK_OK(items_until("]", list->items));
      return list;
    }
    if (accept("{")) {
      Expr* dict = make(Kind::kDict);
      while (!accept("}")) {
        TRY(const Expr* key, parse_expr());
        CHECK_OK(expect(":"));
        TRY(const Expr* value, parse_expr());
        dict->items.push_back(key);
        dict->items.push_back(value);
        if (!accept(",")) {
          CHECK_OK(expect("}"));
          break;
        }
      }
      return dict;
    }
    return error("an expression is missing");
  }

  Result<std::vector<const Stmt*>> parse_block() {
    CHECK_OK(expect(":"));
    std::vector<const Stmt*> body;
    const Deeper deeper(depth_);
    if (depth_ > kMaxSyntaxDepth) return error("blocks nested too deeply");
    if (!is(Token::Kind::kNewline)) {
      TRY(const Stmt* single, parse_statement());
      body.push_back(single);
      return body;
    }
    next();
    if (!is(Token::Kind::kIndent)) return error("a block is missing");
    next();
    while (!is(Token::Kind::kDedent) && !is(Token::Kind::kEnd)) {
      if (is(Token::Kind::kNewline)) {
        next();
        continue;
      }
      TRY(const Stmt* statement, parse_statement());
      body.push_back(statement);
    }
    next();
    return body;
  }

  Status end_of_line() {
    if (accept(";")) return ok();
    if (is(Token::Kind::kEnd)) return ok();
    if (!is(Token::Kind::kNewline)) return error("the line goes on where it should end");
    next();
    return ok();
  }

  Result<const Stmt*> parse_if() {
    Stmt& statement = file_.stmts.emplace_back();
    statement.kind = Stmt::Kind::kIf;
    statement.line = token().line;
    next();
    TRY(statement.value, parse_expr());
    TRY(statement.body, parse_block());
    if (is_name("elif")) {
      const Deeper deeper(depth_);
      if (depth_ > kMaxSyntaxDepth) return error("blocks nested too deeply");
      TRY(const Stmt* other, parse_if());
      statement.otherwise.push_back(other);
    } else if (is_name("else")) {
      next();
      TRY(statement.otherwise, parse_block());
    }
    return &statement;
  }

  Result<const Stmt*> parse_statement() {
    if (is_name("if")) return parse_if();
    Stmt& statement = file_.stmts.emplace_back();
    statement.line = token().line;
    if (is_name("for")) {
      statement.kind = Stmt::Kind::kFor;
      next();
      do {
        TRY(const Expr* target, parse_postfix());
        statement.targets.push_back(target);
      } while (accept(",") && !is_name("in"));
      if (!is_name("in")) return error("\"in\" is missing");
      next();
      TRY(statement.value, parse_expr());
      TRY(statement.body, parse_block());
      return &statement;
    }
    if (is_name("while")) {
      statement.kind = Stmt::Kind::kWhile;
      next();
      TRY(statement.value, parse_expr());
      TRY(statement.body, parse_block());
      return &statement;
    }
    if (is_name("with")) {
      statement.kind = Stmt::Kind::kWith;
      next();
      TRY(statement.value, parse_expr());
      if (is_name("as")) {
        next();
        TRY(const Expr* target, parse_postfix());
        statement.targets.push_back(target);
      }
      TRY(statement.body, parse_block());
      return &statement;
    }
    if (is_name("def")) {
      const Deeper deeper(depth_);
      if (depth_ > kMaxSyntaxDepth) return error("blocks nested too deeply");
      statement.kind = Stmt::Kind::kDefine;
      TRY(statement.function, parse_function());
      return &statement;
    }
    if (is_name("pass") || is_name("break") || is_name("continue")) {
      statement.kind = is_name("pass")    ? Stmt::Kind::kPass
                       : is_name("break") ? Stmt::Kind::kBreak
                                          : Stmt::Kind::kContinue;
      next();
      CHECK_OK(end_of_line());
      return &statement;
    }
    if (is_name("return") || is_name("assert") || is_name("del")) {
      statement.kind = is_name("return")   ? Stmt::Kind::kReturn
                       : is_name("assert") ? Stmt::Kind::kAssert
                                           : Stmt::Kind::kDelete;
      next();
      if (!is(Token::Kind::kNewline) && !is(Token::Kind::kEnd)) {
        TRY(statement.value, parse_list_of_exprs());
      }
      CHECK_OK(end_of_line());
      return &statement;
    }
    TRY(const Expr* first, parse_expr());
    if (accept(":")) {
      TRY(statement.annotation, parse_expr());
      statement.targets = {first};
      statement.kind = Stmt::Kind::kAssign;
      if (accept("=")) {
        TRY(statement.value, parse_list_of_exprs());
      }
      CHECK_OK(end_of_line());
      return &statement;
    }
    std::vector<const Expr*> targets = {first};
    bool unpack = false;
    while (accept(",")) {
      unpack = true;
      if (is_symbol("=") || is(Token::Kind::kNewline)) break;
      TRY(const Expr* target, parse_expr());
      targets.push_back(target);
    }
    if (accept("=")) {
      statement.kind = Stmt::Kind::kAssign;
      if (!unpack && first->kind == Expr::Kind::kTuple) {
        unpack = true;
        targets = first->items;
      }
      statement.targets = std::move(targets);
      statement.unpack = unpack;
      TRY(statement.value, parse_list_of_exprs());
    } else if (is_symbol("+=") || is_symbol("-=") || is_symbol("*=") || is_symbol("/=")) {
      Expr* both = make(Kind::kBinary);
      both->text = token().text.substr(0, 1);
      next();
      TRY(const Expr* right, parse_expr());
      both->items = {first, right};
      statement.kind = Stmt::Kind::kAssign;
      statement.targets = {first};
      statement.value = both;
    } else {
      statement.kind = Stmt::Kind::kExpr;
      statement.value = first;
    }
    CHECK_OK(end_of_line());
    return &statement;
  }

  /// One expression, or several with commas: a tuple.
  Result<const Expr*> parse_list_of_exprs() {
    TRY(const Expr* first, parse_expr());
    if (!is_symbol(",")) return first;
    Expr* tuple = make(Kind::kTuple);
    tuple->items = {first};
    while (accept(",")) {
      if (is(Token::Kind::kNewline) || is(Token::Kind::kEnd)) break;
      TRY(const Expr* more, parse_expr());
      tuple->items.push_back(more);
    }
    return tuple;
  }

  Result<const Function*> parse_function() {
    Function& function = file_.functions.emplace_back();
    function.line = token().line;
    function.file = name_;
    function.scope = scope_;
    next();
    TRY(function.name, identifier());
    CHECK_OK(expect("("));
    while (!accept(")")) {
      Parameter parameter;
      if (accept("*")) {
        (void)accept(",");
        continue;
      }
      TRY(parameter.name, identifier());
      if (accept(":")) {
        TRY(parameter.type, parse_expr());
      }
      if (accept("=")) {
        TRY(parameter.fallback, parse_expr());
      }
      function.parameters.push_back(parameter);
      if (!accept(",")) {
        CHECK_OK(expect(")"));
        break;
      }
    }
    if (accept("->")) {
      TRY(function.result, parse_expr());
    }
    TRY(function.body, parse_block());
    return &function;
  }

  Status parse_class() {
    Class& type = file_.classes.emplace_back();
    next();
    TRY(type.name, identifier());
    if (accept("(")) {
      if (!is_symbol(")")) {
        TRY(const Expr* base, parse_expr());
        file_.texts.push_back(base->dotted());
        type.base = file_.texts.back();
      }
      CHECK_OK(expect(")"));
    }
    CHECK_OK(expect(":"));
    if (!is(Token::Kind::kNewline)) return error("a class without a body");
    next();
    if (!is(Token::Kind::kIndent)) return error("a class without a body");
    next();
    while (!is(Token::Kind::kDedent) && !is(Token::Kind::kEnd)) {
      if (is(Token::Kind::kNewline)) {
        next();
        continue;
      }
      if (is_name("def")) {
        TRY(const Function* method, parse_function());
        type.methods[method->name] = method;
        continue;
      }
      TRY(const Stmt* statement, parse_statement());
      if (statement->kind != Stmt::Kind::kAssign) continue;
      const Expr& target = *statement->targets[0];
      if (statement->annotation) {
        type.attributes.emplace_back(target.text, statement->annotation);
      } else if (target.kind == Kind::kIndex && target.items[0]->text == "__annotations__") {
        // __annotations__["0"] = type: a name that Python cannot spell
        type.attributes.emplace_back(target.items[1]->text, statement->value);
        continue;
      }
      if (statement->value && target.kind == Kind::kName)
        type.values.emplace_back(target.text, statement->value);
    }
    next();
    file_.classes_by_name[type.name] = &type;
    return ok();
  }

  std::vector<Token> tokens_;
  SourceFile& file_;
  std::string_view name_;
  std::string scope_;
  size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

Result<std::unique_ptr<SourceFile>> parse_source(std::string_view text,
                                                 std::shared_ptr<const void> owner,
                                                 std::string_view file, std::string scope) {
  auto source = std::make_unique<SourceFile>();
  source->owner = std::move(owner);
  source->texts.emplace_back(file);
  const std::string_view name = source->texts.front();
  auto tokens = tokenize(text, source->texts);
  if (!tokens.ok()) return std::move(tokens).error().at(std::string(file));
  Parser parser(*std::move(tokens), *source, name, std::move(scope));
  const Status done = parser.run();
  if (!done.ok()) {
    Error error = done.error();
    return std::move(error).at(std::string(file));
  }
  return source;
}

}  // namespace tombolo::script
