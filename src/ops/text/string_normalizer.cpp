#include <string>
#include <vector>

#include "ops/infer_helpers.h"
#include "ops/kernel_context.h"
#include "ops/kernels/text_table.h"
#include "ops/schema.h"
#include "ops/text/letter_case.h"

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
  else
    out.back() = max(out.back(), SymDim(1));
  set_shape(context, 0, std::move(out));
  return ok();
}
struct StopWords {
  std::vector<std::string> words;
  TextTable table;
};

/// The words that are left out, in lower case unless case counts.
Result<StopWords> read_words(const KernelContext& context, bool exact) {
  StopWords stop;
  for (const Text word : context.attributes.get_strings("stopwords"))
    stop.words.push_back(exact ? std::string(word) : change_case(std::string(word), false));
  stop.table = TextTable(stop.words.size());
  for (size_t i = 0; i < stop.words.size(); ++i)
    stop.table.add(stop.words[i], static_cast<int64_t>(i));
  return stop;
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
  TRY(const auto stopwords,
      context.made_once<StopWords>([&] { return read_words(context, exact); }));
  std::vector<std::string> kept;
  kept.reserve(x->strings().size());
  const auto is_stop = [&](const std::string& word) { return stopwords->table.find(word) >= 0; };
  for (const std::string& text : x->strings()) {
    if (stopwords->words.empty() || exact) {
      if (!stopwords->words.empty() && is_stop(text)) continue;
      kept.push_back(action == "NONE" ? text : change_case(text, action == "UPPER"));
      continue;
    }
    std::string word = change_case(text, false);
    if (is_stop(word)) continue;
    kept.push_back(action == "NONE"    ? text
                   : action == "LOWER" ? std::move(word)
                                       : change_case(text, true));
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
