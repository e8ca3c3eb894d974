#include "ops/infer_helpers.h"
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
};

}  // namespace tombolo::ops
