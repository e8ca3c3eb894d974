#include "ops/schema.h"

namespace tombolo::ops {

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
};

}  // namespace tombolo::ops
