#pragma once

// SymDim: one dimension (or one element of a shape-like tensor) as shape inference knows it: a
// number, an expression over named dimensions, or unknown. Arithmetic simplifies to a canonical
// form, so that equal expressions of the same symbols compare equal: (H + 2 - 3) // 1 + 1 is H.
//
// Grammar of the text form (cli.md, `infer`): integers, names, + - * // %, min(a,b), max(a,b),
// parentheses; floor semantics as in Python.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tombolo {

class SymDim {
 public:
  SymDim() = default;  ///< unknown
  SymDim(int64_t value) : kind_(Kind::kValue), value_(value) {}
  // Not inline: their code would stand at every use.
  SymDim(const SymDim& other);
  SymDim(SymDim&& other) noexcept;
  SymDim& operator=(const SymDim& other);
  SymDim& operator=(SymDim&& other) noexcept;
  ~SymDim();
  /// A named dimension, or an expression in the grammar above; text that does not parse as an
  /// expression is taken whole as a name. What names nothing is unknown.
  static SymDim parse(std::string_view text);
  /// Whether exporters write this for any dimension of unknown size ("?", "None", "-1"): two of
  /// them need not be equal.
  static bool names_nothing(std::string_view text);
  static SymDim symbol(std::string_view name);

  bool is_value() const { return kind_ == Kind::kValue; }
  bool is_unknown() const { return kind_ == Kind::kUnknown; }
  bool is_expression() const { return kind_ == Kind::kExpression; }
  int64_t value() const { return value_; }  ///< only when is_value()
  std::optional<int64_t> constant() const {
    return is_value() ? std::optional(value_) : std::nullopt;
  }
  std::string to_string() const;  ///< "?" when unknown
  /// Names, terms and operations of an expression: the smaller one of two equals says more. A
  /// number has 0, what is unknown more than any other.
  int size() const;

  /// True when both are known and provably equal. Two unknowns are not equal.
  bool equals(const SymDim& other) const;
  /// True when provably different (numbers that differ, or expressions that differ by a constant).
  bool differs(const SymDim& other) const;
  /// Provable bounds, given that no named dimension is negative.
  std::optional<int64_t> lower_bound() const;
  std::optional<int64_t> upper_bound() const;

  // Anything with an unknown operand is unknown (but 0 * unknown is 0). Overflow gives unknown.
  friend SymDim operator+(const SymDim& a, const SymDim& b);
  friend SymDim operator-(const SymDim& a, const SymDim& b);
  friend SymDim operator*(const SymDim& a, const SymDim& b);
  friend SymDim floor_div(const SymDim& a, const SymDim& b);  ///< unknown when b is 0
  friend SymDim modulo(const SymDim& a, const SymDim& b);     ///< sign of b, as Python's %
  friend SymDim min(const SymDim& a, const SymDim& b);
  friend SymDim max(const SymDim& a, const SymDim& b);
  friend SymDim ceil_div(const SymDim& a, const SymDim& b);
  size_t hash() const;  ///< of the canonical form; equal dimensions hash equal
  struct Expression;    // symbolic_dim.cpp

 private:
  enum class Kind : uint8_t { kUnknown, kValue, kExpression };
  Kind kind_ = Kind::kUnknown;
  int64_t value_ = 0;
  std::shared_ptr<const Expression> expression_;
};

using SymShape = std::vector<SymDim>;

}  // namespace tombolo
