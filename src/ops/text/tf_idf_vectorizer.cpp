#include "ops/infer_helpers.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {
Status infer_tf_idf_vectorizer(InferContext& context) {
  const SymShape* x = context.shape(0);
  if (x == nullptr) return ok();
  int64_t columns = 0;
  for (const int64_t index : context.attributes.get_ints("ngram_indexes")) {
    if (index < 0 || index == INT64_MAX)
      return context.error("ngram_indexes holds a negative index");
    columns = std::max(columns, index + 1);
  }
  if (x->size() == 1)
    set_shape(context, 0, {SymDim(columns)});
  else if (x->size() == 2)
    set_shape(context, 0, {(*x)[0], SymDim(columns)});
  else
    return context.error("X must be [C] or [N,C], but its shape is " + shape_to_string(*x));
  return ok();
}
}  // namespace

OPERATOR(TfIdfVectorizer) = {
    .name = "TfIdfVectorizer",
    .doc = "counts or weights n-grams of a pool",
    .versions = {9},
    .inputs = {{"X", "T"}},
    .outputs = {{"Y", "T1"}},
    .attributes =
        {
            {"max_gram_length", required(Attr::kInt)},
            {"max_skip_count", required(Attr::kInt)},
            {"min_gram_length", required(Attr::kInt)},
            {"mode", required(Attr::kString)},
            {"ngram_counts", required(Attr::kInts)},
            {"ngram_indexes", required(Attr::kInts)},
            {"pool_int64s", Attr::kInts},
            {"pool_strings", Attr::kStrings},
            {"weights", Attr::kFloats},
        },
    .types =
        {
            {"T", {{9, kIndices | kStr}}},
            {"T1", {{9, kF32}}},
        },
    .infer = infer_tf_idf_vectorizer,
};

}  // namespace tombolo::ops
