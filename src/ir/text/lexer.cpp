#include "ir/text/lexer.h"

#include <algorithm>
#include <vector>

#include "ir/text/number.h"

namespace tombolo::text {

namespace {

size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t change = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, change});
    }
  }
  return row[b.size()];
}

/// The line around `at`, cut to what fits a terminal, with a caret under the place.
std::string excerpt(std::string_view text, size_t at) {
  constexpr size_t kBefore = 60, kAfter = 40;
  size_t begin = at, end = at;
  while (begin > 0 && text[begin - 1] != '\n' && at - begin < kBefore) --begin;
  while (end < text.size() && text[end] != '\n' && end - at < kAfter) ++end;
  std::string line, caret;
  for (size_t i = begin; i < end; ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    line += c < 0x20 || c == 0x7F ? ' ' : static_cast<char>(c);
    // One column a character: the bytes that continue a UTF-8 character take none.
    if (i < at && (c & 0xC0) != 0x80) caret += ' ';
  }
  return "  " + line + "\n  " + caret + "^";
}

}  // namespace

std::string suggest(std::string_view word, std::span<const std::string_view> candidates) {
  std::string_view best;
  size_t distance = std::max<size_t>(2, word.size() / 3) + 1;
  if (word.size() <= 64)
    for (std::string_view candidate : candidates)
      if (const size_t d = edit_distance(word, candidate); d < distance) {
        distance = d;
        best = candidate;
      }
  if (!best.empty()) return "did you mean \"" + std::string(best) + "\"?";
  std::string all = "one of: ";
  for (std::string_view candidate : candidates) {
    if (all.back() != ' ') all += ", ";
    all += candidate;
  }
  return all;
}

void Lexer::skip_space() {
  while (at_ < text_.size()) {
    const char c = text_[at_];
    if (c == ' ' || (c >= '\t' && c <= '\r')) {
      ++at_;
    } else if (c == '#') {
      at_ = std::min(text_.find('\n', at_), text_.size());
    } else {
      return;
    }
  }
}

Error Lexer::take_error() { return std::move(error_); }

bool Lexer::fail(std::string message, std::string hint, size_t at) {
  if (failed_) return false;
  failed_ = true;
  if (at == std::string_view::npos) {
    skip_space();
    at = at_;
  }
  at = std::min(at, text_.size());
  const auto lines = std::count(text_.begin(), text_.begin() + static_cast<ptrdiff_t>(at), '\n');
  const size_t start = at == 0 ? std::string_view::npos : text_.rfind('\n', at - 1);
  const size_t column = at - (start == std::string_view::npos ? 0 : start + 1) + 1;
  error_ = parse_error(std::move(message));
  error_.where = "line " + std::to_string(lines + 1) + ", column " + std::to_string(column);
  error_.help = (hint.empty() ? "the line is" : hint) + "\n" + excerpt(text_, at);
  return false;
}

bool Lexer::fail_resource(std::string message, std::string hint) {
  fail(std::move(message), std::move(hint));
  error_.kind = ErrorKind::kResource;
  return false;
}

std::string Lexer::found() {
  if (at_end()) return "found the end of the text";
  std::string_view next = peek_word();
  if (next.empty()) next = text_.substr(at_, 1);
  next = next.substr(0, 40);
  const auto c = static_cast<unsigned char>(next[0]);
  if (c < 0x20 || c >= 0x7F) {
    constexpr char kHex[] = "0123456789abcdef";
    return std::string("found the byte 0x") + kHex[c >> 4] + kHex[c & 15];
  }
  return next == "\"" ? "found a string" : "found \"" + std::string(next) + "\"";
}

bool Lexer::expect(char c, const char* after) {
  if (match(c)) return true;
  return fail(std::string("expected '") + c + "' " + after + ", " + found());
}

std::string_view Lexer::peek_word() {
  skip_space();
  size_t end = at_;
  if (end < text_.size() && is_letter(text_[end]))
    while (end < text_.size() && (is_letter(text_[end]) || is_digit(text_[end]))) ++end;
  return text_.substr(at_, end - at_);
}

bool Lexer::name(Text& out, const char* what) {
  if (peek() == '"') return quoted(out, what);
  out = word();
  return !out.empty() || fail(std::string("expected ") + what + ", " + found());
}

bool Lexer::quoted(Text& out, const char* what) {
  if (peek() != '"') return fail(std::string("expected ") + what + ", " + found());
  const size_t begin = at_ + 1;
  size_t end = begin, escapes = 0;
  while (end < text_.size() && text_[end] != '"') {
    if (text_[end] == '\\') {
      ++end;
      ++escapes;
    }
    ++end;
  }
  if (end >= text_.size()) return fail("a string without its closing '\"'");
  at_ = end + 1;
  out = text_.substr(begin, end - begin);
  if (escapes == 0) return true;
  // A backslash stands for the character behind it, whatever that is.
  auto block = storage_.allocate(out.size() - escapes);
  char* to = reinterpret_cast<char*>(block.data());
  for (size_t i = 0; i < out.size(); ++i) *to++ = out[i] == '\\' ? out[++i] : out[i];
  out = {reinterpret_cast<const char*>(block.data()), block.size()};
  return true;
}

bool Lexer::next_is_number() {
  const char c = peek();
  if (is_digit(c) || c == '-') return true;
  // Words are compared without case, as upstream does.
  std::string_view next = peek_word();
  if (next.empty() || next.size() > 8) return false;
  std::string lower(next);
  for (char& letter : lower)
    if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
  return lower == "inf" || lower == "nan" || lower == "infinity";
}

bool Lexer::number(Number& out, const char* what) {
  if (!next_is_number()) return fail(std::string("expected ") + what + ", " + found());
  const size_t begin = at_;
  size_t at = at_;
  auto digits = [&] {
    while (at < text_.size() && is_digit(text_[at])) ++at;
  };
  if (text_[at] == '-') ++at;
  if (at < text_.size() && is_letter(text_[at])) {
    while (at < text_.size() && (is_letter(text_[at]) || is_digit(text_[at]))) ++at;
    if (at < text_.size() && text_[at] == '(' && text_.substr(begin, at - begin) == "nan")
      at = std::min(text_.find(')', at), text_.size() - 1) + 1;
  } else {
    digits();
    out.is_integer = true;
    if (at < text_.size() && text_[at] == '.') {
      out.is_integer = false;
      ++at;
      digits();
    }
    if (at < text_.size() && (text_[at] == 'e' || text_[at] == 'E')) {
      out.is_integer = false;
      ++at;
      if (at < text_.size() && (text_[at] == '+' || text_[at] == '-')) ++at;
      digits();
    }
  }
  out.text = text_.substr(begin, at - begin);
  at_ = at;
  return true;
}

template <typename T>
bool Lexer::convert(const Number& from, T& out) {
  const size_t at = static_cast<size_t>(from.text.data() - text_.data());
  const std::string shown(from.text.substr(0, 40));
  if (!from.is_integer && std::is_integral_v<T>)
    return fail("expected an integer, found \"" + shown + "\"", {}, at);
  switch (read_number(from.text, out)) {
    case NumberStatus::kOk:
      return true;
    case NumberStatus::kOverflow:
      return fail("the number " + shown + " is too large", {}, at);
    case NumberStatus::kMalformed:
      break;
  }
  return fail(
      "\"" + shown + "\" is not a number" + (std::is_unsigned_v<T> ? " of an unsigned type" : ""),
      {}, at);
}

template <typename T>
bool Lexer::number(T& out, const char* what) {
  Number literal;
  return number(literal, what) && convert(literal, out);
}

template bool Lexer::convert(const Number&, float&);
template bool Lexer::convert(const Number&, double&);
template bool Lexer::convert(const Number&, int64_t&);
template bool Lexer::convert(const Number&, uint64_t&);
template bool Lexer::number(float&, const char*);
template bool Lexer::number(double&, const char*);
template bool Lexer::number(int64_t&, const char*);
template bool Lexer::number(uint64_t&, const char*);

Text Lexer::keep(Text text) {
  const bool inside = text.data() >= text_.data() && text.data() <= text_.data() + text_.size();
  return inside || text.empty() ? storage_.copy(text) : text;
}

}  // namespace tombolo::text
