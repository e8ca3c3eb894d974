#include "formats/pytorch/pt2/symbolic.h"

#include <cctype>
#include <charconv>
#include <vector>

namespace tombolo::pytorch {
namespace {

constexpr int kMaxSymbolicDepth = 64;

/// A quotient that is exact or floored: sympy's Rational and Pow(x, -1) meet in a product.
struct Term {
  SymDim above{1}, below{1};
  bool whole() const { return below.is_value() && below.value() == 1; }
  SymDim floor() const { return whole() ? above : floor_div(above, below); }
};

class SympyReader {
 public:
  explicit SympyReader(std::string_view text) : text_(text) {}

  SymDim read() {
    const Term term = sum();
    skip();
    if (failed_ || at_ != text_.size()) return {};
    return term.floor();
  }

 private:
  void skip() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  bool take(std::string_view token) {
    skip();
    if (!text_.substr(at_).starts_with(token)) return false;
    at_ += token.size();
    return true;
  }
  Term fail() {
    failed_ = true;
    return {};
  }
  static Term add(const Term& a, const Term& b, bool minus) {
    const SymDim right = b.above * a.below;
    const SymDim left = a.above * b.below;
    return {minus ? left - right : left + right, a.below * b.below};
  }
  Term sum() {
    if (++depth_ > kMaxSymbolicDepth) return fail();
    Term left = product();
    while (!failed_) {
      if (take("+")) {
        left = add(left, product(), false);
      } else if (take("-")) {
        left = add(left, product(), true);
      } else {
        break;
      }
    }
    --depth_;
    return left;
  }
  Term product() {
    Term left = power();
    while (!failed_) {
      if (take("//")) {
        const Term right = power();
        left = {floor_div(left.above * right.below, left.below * right.above), SymDim(1)};
      } else if (text_.substr(at_).starts_with("**")) {
        break;
      } else if (take("*")) {
        const Term right = power();
        left = {left.above * right.above, left.below * right.below};
      } else if (take("/")) {
        const Term right = power();
        left = {left.above * right.below, left.below * right.above};
      } else if (take("%")) {
        left = {modulo(left.floor(), power().floor()), SymDim(1)};
      } else {
        break;
      }
      skip();
    }
    return left;
  }
  Term power() {
    Term base = atom();
    skip();
    if (take("**")) return raise(base, atom());
    return base;
  }
  Term raise(const Term& base, const Term& exponent) {
    const auto n = exponent.floor().constant();
    if (!n || !exponent.whole() || *n > 8 || *n < -8) return fail();
    Term result;
    for (int64_t i = 0; i < (*n < 0 ? -*n : *n); ++i)
      result = {result.above * base.above, result.below * base.below};
    if (*n < 0) std::swap(result.above, result.below);
    return result;
  }
  Term atom() {
    skip();
    if (failed_ || at_ >= text_.size()) return fail();
    if (take("-")) {
      const Term inner = power();
      return {SymDim(0) - inner.above, inner.below};
    }
    if (take("(")) {
      const Term inner = sum();
      if (!take(")")) return fail();
      return inner;
    }
    const size_t start = at_;
    while (at_ < text_.size() &&
           (std::isalnum(static_cast<unsigned char>(text_[at_])) || text_[at_] == '_'))
      ++at_;
    const std::string_view word = text_.substr(start, at_ - start);
    if (word.empty()) return fail();
    if (std::isdigit(static_cast<unsigned char>(word.front()))) {
      int64_t number = 0;
      const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
      if (error != std::errc() || end != word.data() + word.size()) return fail();
      return {SymDim(number), SymDim(1)};
    }
    if (!take("(")) return {SymDim::symbol(word), SymDim(1)};
    return call(word);
  }
  /// Integer(2), Symbol('s0', positive=True), FloorDiv(a, b), ...
  Term call(std::string_view name) {
    if (name == "Symbol") {
      skip();
      const size_t open = at_;
      if (open >= text_.size() || (text_[open] != '\'' && text_[open] != '"')) return fail();
      const size_t close = text_.find(text_[open], open + 1);
      const size_t end = text_.find(')', close == text_.npos ? open : close);
      if (close == text_.npos || end == text_.npos) return fail();
      at_ = end + 1;
      return {SymDim::symbol(text_.substr(open + 1, close - open - 1)), SymDim(1)};
    }
    std::vector<Term> args;
    if (!take(")")) {
      do {
        args.push_back(sum());
        if (failed_) return {};
      } while (take(","));
      if (!take(")")) return fail();
    }
    const auto fold = [&](auto&& step) {
      if (args.empty()) return fail();
      Term result = args.front();
      for (size_t i = 1; i < args.size(); ++i) result = step(result, args[i]);
      return result;
    };
    const auto floored = [](const SymDim& value) { return Term{value, SymDim(1)}; };
    if (name == "Integer" && args.size() == 1) return args[0];
    if (name == "Rational" && args.size() == 2) return {args[0].above, args[1].above};
    if (name == "Add") return fold([](const Term& a, const Term& b) { return add(a, b, false); });
    if (name == "Mul")
      return fold([](const Term& a, const Term& b) {
        return Term{a.above * b.above, a.below * b.below};
      });
    if (name == "Pow" || name == "PowByNatural")
      return args.size() == 2 ? raise(args[0], args[1]) : fail();
    if (name == "Max" || name == "Min")
      return fold([&](const Term& a, const Term& b) {
        return floored(name == "Max" ? max(a.floor(), b.floor()) : min(a.floor(), b.floor()));
      });
    if ((name == "FloorDiv" || name == "CleanDiv" || name == "IntTrueDiv") && args.size() == 2)
      return floored(floor_div(args[0].floor(), args[1].floor()));
    if (name == "CeilDiv" && args.size() == 2)
      return floored(ceil_div(args[0].floor(), args[1].floor()));
    if ((name == "Mod" || name == "PythonMod") && args.size() == 2)
      return floored(modulo(args[0].floor(), args[1].floor()));
    if (name == "ModularIndexing" && args.size() == 3)
      return floored(modulo(floor_div(args[0].floor(), args[1].floor()), args[2].floor()));
    if ((name == "floor" || name == "TruncToInt" || name == "FloorToInt" || name == "Identity" ||
         name == "ToFloat") &&
        args.size() == 1)
      return floored(args[0].floor());
    if ((name == "ceiling" || name == "CeilToInt") && args.size() == 1)
      return floored(ceil_div(args[0].above, args[0].below));
    return fail();
  }

  std::string_view text_;
  size_t at_ = 0;
  int depth_ = 0;
  bool failed_ = false;
};

}  // namespace

SymDim parse_sympy(std::string_view text) { return SympyReader(text).read(); }

SymDim read_sym_int(Json value) {
  if (value.is_int()) return SymDim(value.int_or(0));
  const Json expression = value["as_expr"];
  if (!expression.is_null()) return parse_sympy(expression["expr_str"].string_or(""));
  if (const auto number = value["as_int"].as_int()) return SymDim(*number);
  if (value["expr_str"].is_string()) return parse_sympy(value["expr_str"].string_or(""));
  return {};
}

}  // namespace tombolo::pytorch
