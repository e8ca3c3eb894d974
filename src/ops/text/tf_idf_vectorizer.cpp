#include <map>
#include <string>
#include <vector>

#include "ops/infer_helpers.h"
#include "ops/kernel_context.h"
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
/// The n-grams of the pool: tokens, joined by a byte that UTF-8 does not use, to a row number.
struct GramPool {
  std::map<std::string, size_t, std::less<>> grams;
  std::vector<int64_t> places;  ///< per gram: the coordinate of the output
  std::vector<float> weights;   ///< per gram; empty: all one
  int64_t width = 0;            ///< of the output

  static void append(std::string& gram, std::string_view token) {
    gram += token;
    gram += '\xFF';
  }
};

Result<GramPool> read_pool(const KernelContext& context, bool strings) {
  const AttributeReader& attributes = context.attributes;
  const auto counts = attributes.get_ints("ngram_counts");
  const auto places = attributes.get_ints("ngram_indexes");
  const auto weights = attributes.get_floats("weights");
  const auto words = attributes.get_strings("pool_strings");
  const auto numbers = attributes.get_ints("pool_int64s");
  const size_t size = strings ? words.size() : numbers.size();
  GramPool pool;
  pool.places.assign(places.begin(), places.end());
  pool.weights.assign(weights.begin(), weights.end());
  size_t row = 0;
  for (size_t n = 0; n < counts.size(); ++n) {
    const auto begin = static_cast<uint64_t>(counts[n]);
    const uint64_t end = n + 1 < counts.size() ? static_cast<uint64_t>(counts[n + 1]) : size;
    if (begin > end || end > size || (end - begin) % (n + 1) != 0)
      return context.error("ngram_counts " + dims_to_string(counts) + " does not fit a pool of " +
                           std::to_string(size) + " tokens");
    for (uint64_t at = begin; at < end; at += n + 1, ++row) {
      std::string gram;
      for (uint64_t k = at; k <= at + n; ++k)
        GramPool::append(gram, strings ? std::string(words[k]) : std::to_string(numbers[k]));
      pool.grams.emplace(std::move(gram), row);
    }
  }
  if (row != places.size() || (!weights.empty() && weights.size() != row))
    return context.error("the pool holds " + std::to_string(row) + " n-grams, ngram_indexes " +
                         std::to_string(places.size()) + ", weights " +
                         std::to_string(weights.size()));
  for (const int64_t place : places) {
    if (place < 0 || place > INT32_MAX)
      return context.error("ngram_indexes holds " + std::to_string(place));
    pool.width = std::max(pool.width, place + 1);
  }
  return pool;
}

Status run_tf_idf_vectorizer(KernelContext& context) {
  TRY(const Tensor* x, context.input(0));
  const AttributeReader& attributes = context.attributes;
  const bool strings = x->is_string();
  if ((!strings && !is_integer(x->dtype())) || x->rank() > 2)
    return context.error("strings or integers of shape [C] or [N, C] are needed, not " +
                         to_string(*x));
  TRY(const GramPool pool, read_pool(context, strings));
  const Text mode = attributes.get_string("mode", "");
  if (mode != "TF" && mode != "IDF" && mode != "TFIDF")
    return context.error("mode must be TF, IDF or TFIDF, is \"" + std::string(mode) + "\"");
  const int64_t shortest = attributes.get_int("min_gram_length", 1);
  const int64_t longest = attributes.get_int("max_gram_length", 1);
  const int64_t skips = attributes.get_int("max_skip_count", 0);
  if (shortest < 1 || longest < shortest || skips < 0)
    return context.error("min_gram_length, max_gram_length and max_skip_count do not fit");

  const int64_t rows = x->rank() == 2 ? x->dim(0) : 1;
  const int64_t length = x->rank() == 0 ? 1 : x->dim(x->rank() - 1);
  Dims dims;
  if (x->rank() == 2) dims.push_back(rows);
  dims.push_back(pool.width);
  TRY(Tensor * out, context.output(0, DType::kFloat32, dims));
  std::fill_n(out->data<float>(), out->size(), 0.0f);
  std::vector<int64_t> counts(pool.places.size());
  for (int64_t row = 0; row < rows; ++row) {
    std::vector<std::string> tokens;
    for (int64_t i = 0; i < length; ++i)
      tokens.push_back(strings ? x->strings()[static_cast<size_t>(row * length + i)]
                               : std::to_string(x->get_int64(row * length + i)));
    std::fill(counts.begin(), counts.end(), 0);
    // A skip of s takes every (s + 1)-th token; of single tokens there is nothing to skip.
    for (int64_t n = shortest; n <= std::min(longest, length); ++n)
      for (int64_t step = 1; step <= (n == 1 ? 1 : std::min(skips, length) + 1); ++step)
        for (int64_t start = 0; start + (n - 1) * step < length; ++start) {
          std::string gram;
          for (int64_t k = 0; k < n; ++k)
            GramPool::append(gram, tokens[static_cast<size_t>(start + k * step)]);
          const auto found = pool.grams.find(gram);
          if (found != pool.grams.end()) ++counts[found->second];
        }
    for (size_t gram = 0; gram < counts.size(); ++gram) {
      if (counts[gram] == 0) continue;
      const float weight = mode == "TF" || pool.weights.empty() ? 1 : pool.weights[gram];
      out->data<float>()[row * pool.width + pool.places[gram]] +=
          (mode == "IDF" ? 1.0f : static_cast<float>(counts[gram])) * weight;
    }
  }
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
    .reference = run_tf_idf_vectorizer,
};

}  // namespace tombolo::ops
