// Tokenizer: splits strings at separators, by an expression, or into characters.

#include <re2/re2.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ops/infer_helpers.h"
#include "ops/kernel_context.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {

using Tokens = std::vector<std::string_view>;

/// Bytes of the UTF-8 character at the front; 1 for what is none.
size_t character_bytes(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  const size_t bytes = lead < 0x80       ? 1
                       : lead >> 5 == 6  ? 2
                       : lead >> 4 == 14 ? 3
                       : lead >> 3 == 30 ? 4
                                         : 1;
  return std::min(bytes, text.size());
}
int64_t character_count(std::string_view text) {
  return std::count_if(text.begin(), text.end(),
                       [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; });
}

Result<std::unique_ptr<RE2>> compile(const KernelContext& context, std::string_view pattern) {
  RE2::Options options;
  options.set_log_errors(false);
  options.set_longest_match(true);
  auto expression =
      std::make_unique<RE2>(re2::StringPiece(pattern.data(), pattern.size()), options);
  if (!expression->ok())
    return context.error("the expression \"" + std::string(pattern) +
                         "\" is wrong: " + expression->error());
  return expression;
}

/// Calls found(begin, end) for each match that is not empty, left to right.
template <typename Found>
void for_each_match(const RE2& expression, std::string_view text, Found&& found) {
  const re2::StringPiece whole(text.data(), text.size());
  for (size_t at = 0; at <= text.size();) {
    re2::StringPiece match;
    if (!expression.Match(whole, at, text.size(), RE2::UNANCHORED, &match, 1)) return;
    const auto begin = static_cast<size_t>(match.data() - text.data());
    if (match.empty()) {
      if (begin >= text.size()) return;
      at = begin + character_bytes(text.substr(begin));
      continue;
    }
    found(begin, begin + match.size());
    at = begin + match.size();
  }
}

/// Expressions that most models have: letters of a class, one or as many as there are, or any
/// character. They take no engine.
struct LetterRun {
  std::array<bool, 256> inside = {};
  bool many = false;

  static std::optional<LetterRun> read(std::string_view pattern) {
    LetterRun run;
    if (pattern == ".") {
      for (int c = 0; c < 128; ++c) run.inside[static_cast<size_t>(c)] = c != '\n';
      return run;
    }
    if (pattern.ends_with('+')) {
      run.many = true;
      pattern.remove_suffix(1);
    }
    if (pattern.size() < 3 || pattern.front() != '[' || pattern.back() != ']') return std::nullopt;
    pattern = pattern.substr(1, pattern.size() - 2);
    const auto plain = [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    };
    for (size_t i = 0; i < pattern.size(); ++i) {
      const char low = pattern[i];
      char high = low;
      if (i + 2 < pattern.size() && pattern[i + 1] == '-') high = pattern[i += 2];
      if (!plain(low) || !plain(high) || high < low) return std::nullopt;
      for (int c = low; c <= high; ++c) run.inside[static_cast<size_t>(c)] = true;
    }
    return run;
  }
  bool has(char c) const { return inside[static_cast<unsigned char>(c)]; }
  /// Calls found(begin, end) for each match, left to right.
  template <typename Found>
  void for_each(std::string_view text, Found&& found) const {
    for (size_t at = 0; at < text.size();) {
      if (!has(text[at])) {
        ++at;
        continue;
      }
      const size_t begin = at++;
      while (many && at < text.size() && has(text[at])) ++at;
      found(begin, at);
    }
  }
};

bool is_ascii(std::string_view text) {
  unsigned char all = 0;
  for (const char c : text) all |= static_cast<unsigned char>(c);
  return all < 0x80;
}

struct Splitter {
  bool characters = false;
  std::vector<std::unique_ptr<RE2>> separators;
  std::unique_ptr<RE2> token;
  std::optional<LetterRun> letters;  ///< the same, of texts of ASCII
  int64_t least = 1;                 ///< characters that a token must have

  Tokens split(std::string_view text) const {
    Tokens tokens;
    const auto add = [&](Tokens& to, std::string_view token_text) {
      if (!token_text.empty() && (least <= 1 || character_count(token_text) >= least))
        to.push_back(token_text);
    };
    if (characters) {
      for (size_t at = 0; at < text.size();) {
        const size_t bytes = character_bytes(text.substr(at));
        tokens.push_back(text.substr(at, bytes));
        at += bytes;
      }
      return tokens;
    }
    if (letters && is_ascii(text)) {
      letters->for_each(
          text, [&](size_t begin, size_t end) { add(tokens, text.substr(begin, end - begin)); });
      return tokens;
    }
    if (token != nullptr) {
      for_each_match(*token, text, [&](size_t begin, size_t end) {
        add(tokens, text.substr(begin, end - begin));
      });
      return tokens;
    }
    tokens.push_back(text);
    for (const auto& separator : separators) {
      Tokens finer;
      for (const std::string_view part : tokens) {
        size_t start = 0;
        for_each_match(*separator, part, [&](size_t begin, size_t end) {
          add(finer, part.substr(start, begin - start));
          start = end;
        });
        add(finer, part.substr(start));
      }
      tokens = std::move(finer);
    }
    return tokens;
  }
};

Result<Splitter> read_splitter(const KernelContext& context) {
  Splitter splitter;
  const auto separators = context.attributes.get_strings("separators");
  const Text expression = context.attributes.get_string("tokenexp", "");
  splitter.least = context.attributes.get_int("mincharnum", 1);
  if (splitter.least < 1) return context.error("mincharnum is " + std::to_string(splitter.least));
  if (separators.empty() == expression.empty())
    return context.error("either separators or tokenexp must be given");
  if (!expression.empty()) {
    TRY(splitter.token, compile(context, expression));
    splitter.letters = LetterRun::read(expression);
    return splitter;
  }
  splitter.characters = separators.size() == 1 && separators[0].empty();
  if (splitter.characters) return splitter;
  for (const Text separator : separators) {
    if (separator.empty()) return context.error("an empty separator must stand alone");
    TRY(std::unique_ptr<RE2> compiled, compile(context, separator));
    splitter.separators.push_back(std::move(compiled));
  }
  return splitter;
}

Status run_tokenizer(KernelContext& context) {
  TRY(const Tensor* x, context.input(0));
  if (!x->is_string() || x->rank() < 1 || x->rank() > 2)
    return context.error("X must be strings of rank 1 or 2, is " + to_string(*x));
  TRY(const auto splitter, context.made_once<Splitter>([&] { return read_splitter(context); }));
  const bool mark = context.attributes.get_int("mark", 0) != 0;
  const Text padding = context.attributes.get_string("pad_value", "");
  // What is found without an engine is found twice: a list of it would take longer.
  const auto& texts = x->strings();
  const bool twice = splitter->letters && splitter->least == 1 &&
                     std::all_of(texts.begin(), texts.end(), is_ascii);
  std::vector<Tokens> rows(twice ? 0 : texts.size());
  size_t most = 0;
  for (size_t i = 0; i < texts.size(); ++i) {
    size_t count = 0;
    if (twice) {
      splitter->letters->for_each(texts[i], [&](size_t, size_t) { ++count; });
    } else {
      rows[i] = splitter->split(texts[i]);
      count = rows[i].size();
    }
    most = std::max(most, count);
  }
  // Marks stand around tokens: where there are none at all, there are none either.
  if (mark && most != 0) most += 2;
  Dims dims = x->dims();
  dims.push_back(static_cast<int64_t>(most));
  TRY(Tensor * y, context.output(0, DType::kString, dims));
  if (most == 0) return ok();
  auto to = y->strings().begin();
  for (size_t i = 0; i < texts.size(); ++i) {
    const auto first = to;
    if (mark) *to++ = "\x02";
    if (twice)
      splitter->letters->for_each(texts[i], [&](size_t begin, size_t end) {
        (to++)->assign(texts[i], begin, end - begin);
      });
    else
      for (const std::string_view token : rows[i]) (to++)->assign(token);
    if (mark) {
      *to++ = "\x03";
    }
    for (auto used = static_cast<size_t>(to - first); used < most; ++used) (to++)->assign(padding);
  }
  return ok();
}

Status infer_tokenizer(InferContext& context) {
  const SymShape* x = context.shape(0);
  if (x == nullptr) return ok();
  SymShape out = *x;
  out.push_back(context.host.fresh_symbol("tokens"));
  set_shape(context, 0, std::move(out));
  return ok();
}

/// An echo, for tests of bindings.
Status run_sample_op(KernelContext& context) {
  TRY(const Tensor* x, context.input(0));
  context.set_output(0, *x);
  return ok();
}

}  // namespace

OPERATOR(microsoft_Tokenizer) = {
    .name = "Tokenizer",
    .domain = "com.microsoft",
    .doc = "splits strings at separators, by an expression, or into characters",
    .versions = {1},
    .inputs =
        {
            {"X", "T"},
        },
    .outputs =
        {
            {"Y", "T"},
        },
    .attributes =
        {
            {"mark", required(Attr::kInt)},
            {"mincharnum", required(Attr::kInt)},
            {"pad_value", required(Attr::kString)},
            {"separators", Attr::kStrings},
            {"tokenexp", Attr::kString},
        },
    .types =
        {
            {"T", {{1, kStr}}},
        },
    .infer = infer_tokenizer,
    .reference = run_tokenizer,
};

OPERATOR(microsoft_SampleOp) = {
    .name = "SampleOp",
    .domain = "com.microsoft",
    .doc = "gives back its input",
    .versions = {1},
    .inputs =
        {
            {"X", "T"},
        },
    .outputs =
        {
            {"Y", "T"},
        },
    .types =
        {
            {"T", {{1, kInt32s | kFloats}}},
        },
    .infer = infer_unary,
    .reference = run_sample_op,
};

}  // namespace tombolo::ops
