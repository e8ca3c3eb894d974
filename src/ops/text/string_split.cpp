#include <algorithm>
#include <string>
#include <string_view>

#include "ops/infer_helpers.h"
#include "ops/kernel_context.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {
Status infer_string_split(InferContext& context) {
  const SymShape* x = context.shape(0);
  if (x == nullptr) return ok();
  SymShape parts = *x;
  parts.push_back(context.host.fresh_symbol("parts"));
  set_shape(context, 1, *x);
  set_shape(context, 0, std::move(parts));
  return ok();
}
/// As Python's str.split: without a delimiter, runs of white space separate and ends are trimmed.
/// Calls found(part) for each and gives their number.
template <typename Found>
int64_t split_text(std::string_view text, std::string_view delimiter, int64_t most, Found&& found) {
  int64_t parts = 0;
  const auto give = [&](std::string_view part) {
    found(part);
    ++parts;
  };
  if (!delimiter.empty()) {
    size_t end;
    while ((most < 0 || parts < most) &&
           (end = delimiter.size() == 1 ? text.find(delimiter[0]) : text.find(delimiter)) !=
               std::string_view::npos) {
      give(text.substr(0, end));
      text.remove_prefix(end + delimiter.size());
    }
    give(text);
    return parts;
  }
  const auto is_space = [](char c) { return c == ' ' || (c >= '\t' && c <= '\r'); };
  size_t at = 0;
  while (true) {
    while (at < text.size() && is_space(text[at])) ++at;
    if (at == text.size()) return parts;
    const size_t begin = at;
    if (most >= 0 && parts == most) {
      size_t end = text.size();
      while (is_space(text[end - 1])) --end;
      give(text.substr(begin, end - begin));
      return parts;
    }
    while (at < text.size() && !is_space(text[at])) ++at;
    give(text.substr(begin, at - begin));
  }
}

/// The parts of split_text() between white space: without a branch for each character.
int64_t count_words(std::string_view text) {
  const auto is_space = [](char c) {
    return static_cast<int64_t>(c == ' ') |
           static_cast<int64_t>(static_cast<uint8_t>(c - '\t') < 5);
  };
  int64_t words = 0, before = 1;
  for (const char c : text) {
    const int64_t space = is_space(c);
    words += before & (space ^ 1);
    before = space;
  }
  return words;
}

Status run_string_split(KernelContext& context) {
  TRY(const Tensor* x, context.input(0));
  if (!x->is_string()) return context.error("strings are needed, not " + to_string(*x));
  const Text delimiter = context.attributes.get_string("delimiter", "");
  const int64_t most = context.attributes.get_int("maxsplit", -1);
  TRY(Tensor * counts,
      context.output(1 < context.output_count() ? 1 : 0, DType::kInt64, x->dims()));
  // Twice: a list of all parts would take longer.
  const auto& texts = x->strings();
  int64_t longest = 0;
  for (size_t i = 0; i < texts.size(); ++i) {
    const int64_t parts = delimiter.empty() && most < 0
                              ? count_words(texts[i])
                              : split_text(texts[i], delimiter, most, [](std::string_view) {});
    counts->data<int64_t>()[i] = parts;
    longest = std::max(longest, parts);
  }
  Dims dims = x->dims();
  dims.push_back(longest);
  TRY(Tensor * out, context.output(0, DType::kString, dims));
  for (size_t i = 0; i < texts.size(); ++i) {
    std::string* to = out->strings().data() + i * static_cast<size_t>(longest);
    split_text(texts[i], delimiter, most,
               [&](std::string_view part) { to++->assign(part.data(), part.size()); });
  }
  return ok();
}

}  // namespace

OPERATOR(StringSplit) = {
    .name = "StringSplit",
    .doc = "splits each string, with the number of parts",
    .versions = {20},
    .inputs = {{"X", "T1"}},
    .outputs =
        {
            {"Y", "T2"},
            {"Z", "T3"},
        },
    .attributes =
        {
            {"delimiter", Attr::kString},
            {"maxsplit", Attr::kInt},
        },
    .types =
        {
            {"T1", {{20, kStr}}},
            {"T2", {{20, kStr}}},
            {"T3", {{20, kI64}}},
        },
    .infer = infer_string_split,
    .reference = run_string_split,
};

}  // namespace tombolo::ops
