#include <algorithm>

#include "ops/infer_helpers.h"
#include "ops/kernel_context.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {
Status infer_string_normalizer(InferContext& context) {
  const SymShape* x = context.shape(0);
  if (x == nullptr) return ok();
  if (x->size() != 1 && !(x->size() == 2 && ((*x)[0].constant() == 1 || !(*x)[0].is_value())))
    return context.error("X must be [C] or [1,C], but its shape is " + shape_to_string(*x));
  // Stop words go away; nothing else changes the count. What remains is at least one string.
  SymShape out = *x;
  if (!context.attributes.get_strings("stopwords").empty())
    out.back() = context.host.fresh_symbol("strings");
  set_shape(context, 0, std::move(out));
  return ok();
}
/// Case of the letters that pair off by a fixed distance: ASCII, Latin-1, Greek, Cyrillic. Other
/// text is left as it is; see docs/numerics.md.
std::string change_case(const std::string& text, bool upper) {
  struct Letters {
    uint32_t first, last;  // lower case
    uint32_t distance;     // down to upper case
  };
  constexpr Letters kLetters[] = {{'a', 'z', 32},     {0xE0, 0xF6, 32},   {0xF8, 0xFE, 32},
                                  {0x3B1, 0x3C1, 32}, {0x3C3, 0x3C9, 32}, {0x430, 0x44F, 32},
                                  {0x450, 0x45F, 80}};
  std::string result;
  for (size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i]);
    const bool pair = lead >= 0xC3 && lead <= 0xD1 && i + 1 < text.size() &&
                      (static_cast<unsigned char>(text[i + 1]) & 0xC0) == 0x80;
    uint32_t code =
        pair ? (lead & 0x1Fu) << 6 | (static_cast<unsigned char>(text[i + 1]) & 0x3Fu) : lead;
    if (pair || lead < 0x80)
      for (const Letters& letters : kLetters) {
        const uint32_t shift = upper ? 0 : letters.distance;
        if (code < letters.first - shift || code > letters.last - shift) continue;
        code = upper ? code - letters.distance : code + letters.distance;
        break;
      }
    if (pair) {
      result += static_cast<char>(0xC0 | code >> 6);
      result += static_cast<char>(0x80 | (code & 0x3F));
    } else {
      result += static_cast<char>(code);
    }
    i += pair ? 2 : 1;
  }
  return result;
}

Status run_string_normalizer(KernelContext& context) {
  TRY(const Tensor* x, context.input(0));
  if (!x->is_string() || x->rank() < 1 || x->rank() > 2 || (x->rank() == 2 && x->dim(0) != 1))
    return context.error("strings of shape [C] or [1, C] are needed, not " + to_string(*x));
  const Text action = context.attributes.get_string("case_change_action", "NONE");
  if (action != "NONE" && action != "LOWER" && action != "UPPER")
    return context.error("case_change_action must be NONE, LOWER or UPPER, is \"" +
                         std::string(action) + "\"");
  const bool exact = context.attributes.get_int("is_case_sensitive", 0) != 0;
  std::vector<std::string> stopwords;
  for (const Text word : context.attributes.get_strings("stopwords"))
    stopwords.push_back(exact ? std::string(word) : change_case(std::string(word), false));
  std::sort(stopwords.begin(), stopwords.end());
  std::vector<std::string> kept;
  for (const std::string& text : x->strings()) {
    const std::string word = exact ? text : change_case(text, false);
    if (std::binary_search(stopwords.begin(), stopwords.end(), word)) continue;
    kept.push_back(action == "NONE" ? text : change_case(text, action == "UPPER"));
  }
  if (kept.empty()) kept.emplace_back();
  Dims dims = x->dims();
  dims[dims.size() - 1] = static_cast<int64_t>(kept.size());
  context.set_output(0, Tensor::of_strings(dims, std::move(kept)));
  return ok();
}

}  // namespace

OPERATOR(StringNormalizer) = {
    .name = "StringNormalizer",
    .doc = "drops stop words and changes case",
    .versions = {10},
    .inputs = {{"X", "tensor(string)"}},
    .outputs = {{"Y", "tensor(string)"}},
    .attributes =
        {
            {"case_change_action", "NONE"},
            {"is_case_sensitive", 0},
            {"locale", Attr::kString},
            {"stopwords", Attr::kStrings},
        },
    .infer = infer_string_normalizer,
    .reference = run_string_normalizer,
};

}  // namespace tombolo::ops
