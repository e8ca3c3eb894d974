#include <algorithm>
#include <string>
#include <unordered_map>
#include <vector>

#include "ops/infer_helpers.h"
#include "ops/kernel_context.h"
#include "ops/kernels/int_table.h"
#include "ops/kernels/text_table.h"
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
/// The n-grams of the pool as a tree: a walk from the root takes a token at each step.
struct GramPool {
  bool strings = false;
  TextTable by_text;  ///< where tokens have their numbers from
  IntTable by_number;
  /// Steps from the root, by number of the token; then others, by (node, token).
  std::vector<int32_t> first;
  IntTable step;
  std::vector<int32_t> next;
  std::vector<int64_t> gram;  ///< per node: the number of the n-gram that ends there, or -1

  std::vector<int64_t> places;  ///< per gram: the coordinate of the output
  std::vector<float> weights;   ///< per gram; empty: all one
  int64_t width = 0;            ///< of the output
  bool apart = true;            ///< no two grams have one coordinate

  static int64_t step_key(int32_t node, int64_t token) { return int64_t{node} << 32 | token; }
  int32_t go(int32_t node, int64_t token) const {
    if (node == 0) return first[static_cast<size_t>(token)];
    const int64_t at = step.find(step_key(node, token));
    return at < 0 ? -1 : next[static_cast<size_t>(at)];
  }
};

/// Puts the n-grams into the tree. `tokens` are the numbers of all tokens of the pool.
struct GramTree {
  GramPool& pool;
  std::unordered_map<int64_t, int32_t> steps;

  void add(std::span<const int64_t> tokens, int64_t gram) {
    int32_t node = 0;
    for (const int64_t token : tokens) {
      const auto fresh = static_cast<int32_t>(pool.gram.size());
      int32_t& to = node == 0
                        ? pool.first[static_cast<size_t>(token)]
                        : steps.try_emplace(GramPool::step_key(node, token), -1).first->second;
      if (to < 0) {
        to = fresh;
        pool.gram.push_back(-1);
      }
      node = to;
    }
    // Of equal ones the first counts.
    int64_t& here = pool.gram[static_cast<size_t>(node)];
    if (here < 0) here = gram;
  }
  void finish() {
    std::vector<int64_t> keys;
    for (const auto& [key, to] : steps) {
      keys.push_back(key);
      pool.next.push_back(to);
    }
    pool.step = IntTable(keys);
  }
};

/// Numbers of the tokens of the pool: that of the first of equal ones.
std::vector<int64_t> number_tokens(GramPool& pool, std::span<const Text> words,
                                   std::span<const int64_t> numbers) {
  std::vector<int64_t> tokens;
  if (pool.strings) {
    pool.by_text = TextTable(words.size());
    for (size_t i = 0; i < words.size(); ++i) pool.by_text.add(words[i], static_cast<int64_t>(i));
    for (const Text word : words) tokens.push_back(pool.by_text.find(word));
  } else {
    pool.by_number = IntTable(numbers);
    for (const int64_t number : numbers) tokens.push_back(pool.by_number.find(number));
  }
  return tokens;
}

Result<GramPool> read_pool(const KernelContext& context, bool strings) {
  const AttributeReader& attributes = context.attributes;
  const auto counts = attributes.get_ints("ngram_counts");
  const auto places = attributes.get_ints("ngram_indexes");
  const auto weights = attributes.get_floats("weights");
  const auto words = attributes.get_strings("pool_strings");
  const auto numbers = attributes.get_ints("pool_int64s");
  const size_t size = strings ? words.size() : numbers.size();
  if (size > INT32_MAX) return unsupported("a pool of " + std::to_string(size) + " tokens");
  GramPool pool;
  pool.strings = strings;
  pool.places.assign(places.begin(), places.end());
  pool.weights.assign(weights.begin(), weights.end());
  pool.first.assign(size, -1);
  pool.gram = {-1};
  const std::vector<int64_t> tokens = number_tokens(pool, words, numbers);
  GramTree tree{pool, {}};
  size_t row = 0;
  for (size_t n = 0; n < counts.size(); ++n) {
    const auto begin = static_cast<uint64_t>(counts[n]);
    const uint64_t end = n + 1 < counts.size() ? static_cast<uint64_t>(counts[n + 1]) : size;
    if (begin > end || end > size || (end - begin) % (n + 1) != 0)
      return context.error("ngram_counts " + dims_to_string(counts) + " does not fit a pool of " +
                           std::to_string(size) + " tokens");
    for (uint64_t at = begin; at < end; at += n + 1, ++row)
      tree.add(std::span(tokens).subspan(at, n + 1), static_cast<int64_t>(row));
  }
  tree.finish();
  if (row != places.size() || (!weights.empty() && weights.size() != row))
    return context.error("the pool holds " + std::to_string(row) + " n-grams, ngram_indexes " +
                         std::to_string(places.size()) + ", weights " +
                         std::to_string(weights.size()));
  for (const int64_t place : places) {
    if (place < 0 || place > INT32_MAX)
      return context.error("ngram_indexes holds " + std::to_string(place));
    pool.width = std::max(pool.width, place + 1);
  }
  std::vector<int64_t> sorted = pool.places;
  std::sort(sorted.begin(), sorted.end());
  pool.apart = std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end();
  return pool;
}

/// How n-grams are looked for, and what is made of their counts.
struct GramSearch {
  int64_t shortest = 1, longest = 1, skips = 0;
  bool counts = true;  ///< false: a gram that occurs at all counts once
  bool weighted = true;

  /// done(gram) for each that is found among the tokens (-1: no token of the pool).
  template <typename Done>
  void find(const GramPool& pool, std::span<const int64_t> tokens, Done&& done) const {
    const auto length = static_cast<int64_t>(tokens.size());
    // A skip of s takes every (s + 1)-th token; of single tokens there is nothing to skip.
    const int64_t steps = longest == 1 ? 1 : std::min(skips, length) + 1;
    for (int64_t step = 1; step <= steps; ++step)
      for (int64_t start = 0; start < length; ++start) {
        int32_t node = 0;
        int64_t at = start;
        for (int64_t n = 1; n <= longest && at < length; ++n, at += step) {
          const int64_t token = tokens[static_cast<size_t>(at)];
          if (token < 0 || (node = pool.go(node, token)) < 0) break;
          const int64_t gram = pool.gram[static_cast<size_t>(node)];
          if (gram >= 0 && n >= shortest && (n > 1 || step == 1)) done(gram);
        }
      }
  }
};

/// Rows of X to rows of Y. Keeps its room from row to row.
class RowCounter {
 public:
  RowCounter(const GramPool& pool, const GramSearch& search)
      : pool_(pool), search_(search), counts_(pool.places.size()) {}

  void run(const Tensor& x, int64_t begin, int64_t length, float* to) {
    tokens_.clear();
    const auto add = [&](int64_t token) { tokens_.push_back(token); };
    if (pool_.strings) {
      for (int64_t i = begin; i < begin + length; ++i)
        add(pool_.by_text.find(x.strings()[static_cast<size_t>(i)]));
    } else if (x.dtype() == DType::kInt64) {
      pool_.by_number.find_each({x.data<int64_t>() + begin, static_cast<size_t>(length)}, add);
    } else {
      pool_.by_number.find_each(
          length, [&](int64_t i) { return x.get_int64(begin + i); }, add);
    }
    found_.clear();
    search_.find(pool_, tokens_, [&](int64_t gram) {
      if (counts_[static_cast<size_t>(gram)]++ == 0) found_.push_back(gram);
    });
    // Sums come in the order of the grams where several share a coordinate.
    if (!pool_.apart) std::sort(found_.begin(), found_.end());
    for (const int64_t found : found_) {
      const auto gram = static_cast<size_t>(found);
      const float weight = search_.weighted && !pool_.weights.empty() ? pool_.weights[gram] : 1;
      to[pool_.places[gram]] +=
          (search_.counts ? static_cast<float>(counts_[gram]) : 1.0f) * weight;
      counts_[gram] = 0;
    }
  }

 private:
  const GramPool& pool_;
  const GramSearch search_;
  std::vector<int64_t> counts_, tokens_, found_;
};

Status run_tf_idf_vectorizer(KernelContext& context) {
  TRY(const Tensor* x, context.input(0));
  const AttributeReader& attributes = context.attributes;
  const bool strings = x->is_string();
  if ((!strings && !is_integer(x->dtype())) || x->rank() > 2)
    return context.error("strings or integers of shape [C] or [N, C] are needed, not " +
                         to_string(*x));
  TRY(auto pool, context.made_once<GramPool>([&] { return read_pool(context, strings); }));
  if (pool->strings != strings) {
    TRY(GramPool other, read_pool(context, strings));
    pool = std::make_shared<const GramPool>(std::move(other));
  }
  const Text mode = attributes.get_string("mode", "");
  if (mode != "TF" && mode != "IDF" && mode != "TFIDF")
    return context.error("mode must be TF, IDF or TFIDF, is \"" + std::string(mode) + "\"");
  const GramSearch search{.shortest = attributes.get_int("min_gram_length", 1),
                          .longest = attributes.get_int("max_gram_length", 1),
                          .skips = attributes.get_int("max_skip_count", 0),
                          .counts = mode != "IDF",
                          .weighted = mode != "TF"};
  if (search.shortest < 1 || search.longest < search.shortest || search.skips < 0)
    return context.error("min_gram_length, max_gram_length and max_skip_count do not fit");

  const int64_t rows = x->rank() == 2 ? x->dim(0) : 1;
  const int64_t length = x->rank() == 0 ? 1 : x->dim(x->rank() - 1);
  Dims dims;
  if (x->rank() == 2) dims.push_back(rows);
  dims.push_back(pool->width);
  TRY(Tensor * out, context.output(0, DType::kFloat32, dims));
  float* to = out->data<float>();
  context.parallel_for(rows, std::max<int64_t>(1, 16384 / (length + pool->width + 1)),
                       [&](int64_t begin, int64_t end) {
                         RowCounter counter(*pool, search);
                         for (int64_t row = begin; row < end; ++row) {
                           std::fill_n(to + row * pool->width, pool->width, 0.0f);
                           counter.run(*x, row * length, length, to + row * pool->width);
                         }
                       });
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
