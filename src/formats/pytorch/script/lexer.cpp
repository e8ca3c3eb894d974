#include <cctype>

#include "formats/pytorch/script/syntax.h"

namespace tombolo::script {

namespace {

constexpr size_t kMaxTokens = 20'000'000, kMaxIndents = 200;

bool starts_name(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return std::isalpha(byte) != 0 || c == '_' || byte >= 0x80;
}
bool is_digit(char c) { return c >= '0' && c <= '9'; }

int hex_value(char c) {
  if (is_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

class Lexer {
 public:
  Lexer(std::string_view text, std::deque<std::string>& texts) : text_(text), texts_(texts) {}

  Result<std::vector<Token>> run() {
    std::vector<size_t> indents = {0};
    bool line_start = true;
    int brackets = 0;
    while (at_ < text_.size()) {
      if (tokens_.size() > kMaxTokens) return resource_error("the source text is too long");
      if (line_start && brackets == 0) {
        size_t column = 0;
        while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t')) {
          column += text_[at_] == '\t' ? 8 : 1;
          ++at_;
        }
        if (at_ >= text_.size()) break;
        if (text_[at_] == '\n' || text_[at_] == '#' || text_[at_] == '\r') {
          skip_line();
          continue;
        }
        line_start = false;
        if (column > indents.back()) {
          if (indents.size() > kMaxIndents) return error("blocks nested too deeply");
          indents.push_back(column);
          push(Token::Kind::kIndent, {});
        }
        while (column < indents.back()) {
          indents.pop_back();
          push(Token::Kind::kDedent, {});
        }
        if (column != indents.back()) return error("indentation that fits no block");
      }
      const char c = text_[at_];
      if (c == '\n') {
        if (brackets == 0) {
          push(Token::Kind::kNewline, {});
          line_start = true;
        }
        ++at_;
        ++line_;
      } else if (c == ' ' || c == '\t' || c == '\r') {
        ++at_;
      } else if (c == '\\' && at_ + 1 < text_.size() && text_[at_ + 1] == '\n') {
        at_ += 2;
        ++line_;
      } else if (c == '#') {
        while (at_ < text_.size() && text_[at_] != '\n') ++at_;
      } else if (c == '"' || c == '\'') {
        CHECK_OK(string(c));
      } else if (is_digit(c) || (c == '.' && at_ + 1 < text_.size() && is_digit(text_[at_ + 1]))) {
        number();
      } else if (starts_name(c)) {
        const size_t start = at_;
        while (at_ < text_.size() && (starts_name(text_[at_]) || is_digit(text_[at_]))) ++at_;
        push(Token::Kind::kName, text_.substr(start, at_ - start));
      } else {
        if (c == '(' || c == '[' || c == '{') ++brackets;
        if ((c == ')' || c == ']' || c == '}') && brackets > 0) --brackets;
        static constexpr std::string_view kLong[] = {
            "**", "//", "->", "==", "!=", "<=", ">=", "<<", ">>", "+=", "-=", "*=", "/="};
        size_t length = 1;
        for (const std::string_view symbol : kLong)
          if (text_.substr(at_).starts_with(symbol)) length = 2;
        if (length == 1 &&
            std::string_view("()[]{},:.=+-*/%@<>&|^~;").find(c) == std::string_view::npos)
          return error("a character that is no Python");
        push(Token::Kind::kSymbol, text_.substr(at_, length));
        at_ += length;
      }
    }
    if (!line_start) push(Token::Kind::kNewline, {});
    while (indents.size() > 1) {
      indents.pop_back();
      push(Token::Kind::kDedent, {});
    }
    push(Token::Kind::kEnd, {});
    return std::move(tokens_);
  }

 private:
  Error error(const std::string& what) const {
    return parse_error(what).at("line " + std::to_string(line_));
  }
  void push(Token::Kind kind, std::string_view text) { tokens_.push_back({kind, line_, text}); }
  void skip_line() {
    while (at_ < text_.size() && text_[at_] != '\n') ++at_;
    if (at_ < text_.size()) ++at_;
    ++line_;
  }

  void number() {
    const size_t start = at_;
    bool real = false;
    if (text_.substr(at_).starts_with("0x") || text_.substr(at_).starts_with("0X")) {
      at_ += 2;
      while (at_ < text_.size() && hex_value(text_[at_]) >= 0) ++at_;
      push(Token::Kind::kInt, text_.substr(start, at_ - start));
      return;
    }
    while (at_ < text_.size() && is_digit(text_[at_])) ++at_;
    // "1.forward" does not occur: a digit is never followed by an attribute.
    if (at_ < text_.size() && text_[at_] == '.') {
      real = true;
      ++at_;
      while (at_ < text_.size() && is_digit(text_[at_])) ++at_;
    }
    if (at_ < text_.size() && (text_[at_] == 'e' || text_[at_] == 'E')) {
      size_t ahead = at_ + 1;
      if (ahead < text_.size() && (text_[ahead] == '+' || text_[ahead] == '-')) ++ahead;
      if (ahead < text_.size() && is_digit(text_[ahead])) {
        real = true;
        at_ = ahead;
        while (at_ < text_.size() && is_digit(text_[at_])) ++at_;
      }
    }
    const std::string_view digits = text_.substr(start, at_ - start);
    if (at_ < text_.size() && text_[at_] == 'j') {
      ++at_;
      push(Token::Kind::kImaginary, digits);
    } else {
      push(real ? Token::Kind::kFloat : Token::Kind::kInt, digits);
    }
  }

  Status string(char quote) {
    const bool triple = text_.substr(at_).starts_with(std::string(3, quote));
    const std::string_view end = triple ? text_.substr(at_, 3) : text_.substr(at_, 1);
    at_ += end.size();
    std::string value;
    while (!text_.substr(at_).starts_with(end)) {
      if (at_ >= text_.size() || (text_[at_] == '\n' && !triple))
        return error("a string that does not end");
      char c = text_[at_++];
      if (c == '\n') ++line_;
      if (c != '\\' || at_ >= text_.size()) {
        value += c;
        continue;
      }
      c = text_[at_++];
      switch (c) {
        case 'n':
          value += '\n';
          break;
        case 't':
          value += '\t';
          break;
        case 'r':
          value += '\r';
          break;
        case 'a':
          value += '\a';
          break;
        case 'b':
          value += '\b';
          break;
        case 'f':
          value += '\f';
          break;
        case 'v':
          value += '\v';
          break;
        case '\n':
          ++line_;
          break;
        case 'x': {
          int code = 0;
          for (int i = 0; i < 2 && at_ < text_.size() && hex_value(text_[at_]) >= 0; ++i)
            code = code * 16 + hex_value(text_[at_++]);
          value += static_cast<char>(code);
          break;
        }
        default:
          if (c >= '0' && c <= '7') {
            int code = c - '0';
            for (int i = 0; i < 2 && at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '7';
                 ++i)
              code = code * 8 + (text_[at_++] - '0');
            value += static_cast<char>(code);
          } else {
            value += c;
          }
      }
    }
    at_ += end.size();
    texts_.push_back(std::move(value));
    push(Token::Kind::kString, texts_.back());
    return ok();
  }

  std::string_view text_;
  std::deque<std::string>& texts_;
  std::vector<Token> tokens_;
  size_t at_ = 0;
  uint32_t line_ = 1;
};

}  // namespace

Result<std::vector<Token>> tokenize(std::string_view text, std::deque<std::string>& texts) {
  return Lexer(text, texts).run();
}

}  // namespace tombolo::script
