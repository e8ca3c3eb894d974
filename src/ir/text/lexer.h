#pragma once

// Lexer: the characters of ONNX text. Functions that return bool have failed when they return
// false: the error is then set, once, with its place in the text.

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "ir/storage.h"

namespace tombolo::text {

class Lexer {
 public:
  Lexer(std::string_view text, Storage& storage) : text_(text), storage_(storage) {}

  /// The error; only after a function returned false.
  Error take_error();
  bool failed() const { return failed_; }

 protected:
  /// What a number looks like; the text says the value.
  struct Number {
    std::string_view text;
    bool is_integer = false;
  };

  /// The next character behind white space and comments; '\0' at the end of the text.
  char peek() {
    skip_space();
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  /// Takes the next character if it is `c`.
  bool match(char c) {
    if (peek() != c || at_ >= text_.size()) return false;
    ++at_;
    return true;
  }
  /// Takes the two next characters if they are `pair`, with nothing between them.
  bool match(const char (&pair)[3]) {
    if (peek() != pair[0] || at_ + 1 >= text_.size() || text_[at_ + 1] != pair[1]) return false;
    at_ += 2;
    return true;
  }
  bool at_end() {
    skip_space();
    return at_ >= text_.size();
  }
  /// As match, and it is an error if not; `after` says where ("after the inputs").
  [[nodiscard]] bool expect(char c, const char* after);

  /// The next word, without taking it; empty when there is none.
  std::string_view peek_word();
  std::string_view word() {
    std::string_view found = peek_word();
    at_ += found.size();
    return found;
  }
  bool next_is_word() {
    const char c = peek();
    return is_letter(c);
  }
  bool next_is_name() {
    const char c = peek();
    return is_letter(c) || c == '"';
  }
  bool next_is_number();
  /// A word or a quoted string. `what` completes "expected ...".
  [[nodiscard]] bool name(Text& out, const char* what);
  /// A quoted string. A view of the text, or of the storage where it has escapes.
  [[nodiscard]] bool quoted(Text& out, const char* what);
  [[nodiscard]] bool number(Number& out, const char* what);
  template <typename T>
  [[nodiscard]] bool number(T& out, const char* what);
  template <typename T>
  [[nodiscard]] bool convert(const Number& from, T& out);

  /// A copy in the storage, unless it is there already.
  Text keep(Text text);

  /// Sets the error, at the last position that was looked at or at `at`. Always false.
  bool fail(std::string message, std::string hint = {}, size_t at = std::string_view::npos);
  bool fail_resource(std::string message, std::string hint);
  /// "found ..." for messages.
  std::string found();
  size_t position() const { return at_; }
  /// At least this many characters are left.
  size_t remaining() const { return text_.size() - at_; }
  void rewind(size_t position) { at_ = position; }
  std::string_view rest() const { return text_.substr(at_); }

  static bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  }
  static bool is_digit(char c) { return c >= '0' && c <= '9'; }

  Storage& storage() { return storage_; }

 private:
  void skip_space();

  std::string_view text_;
  size_t at_ = 0;
  Storage& storage_;
  bool failed_ = false;
  Error error_;
};

/// "did you mean ...?" when one of `candidates` is near `word`; else the list of them.
std::string suggest(std::string_view word, std::span<const std::string_view> candidates);

}  // namespace tombolo::text
