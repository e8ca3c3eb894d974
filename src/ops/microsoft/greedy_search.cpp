// GreedySearch and Sampling: one sequence for each prompt, by the likeliest token or by chance.

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "ops/infer_helpers.h"
#include "ops/kernels/compute.h"
#include "ops/microsoft/generation.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {

constexpr GenerationInputs kInputs = {2, 3, 4, 5, 6};

/// Top-p: what is not among the likeliest tokens becomes the filter value.
void filter_tail(const AttributeReader& attributes, const Generation& g,
                 std::vector<float>& scores) {
  const double most = static_cast<double>(attributes.get_float("top_p", 0));
  const float filter = attributes.get_float("filter_value", -1e20f);
  const bool custom = attributes.get_int("custom", 0) != 0;
  const int64_t kept = std::max<int64_t>(0, attributes.get_int("min_tokens_to_keep", 0));
  std::vector<size_t> order(static_cast<size_t>(g.vocabulary));
  for (int64_t row = 0; row < g.batch; ++row) {
    float* of = scores.data() + row * g.vocabulary;
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return custom ? of[a] > of[b] : of[a] < of[b]; });
    std::vector<float> shares;
    for (const size_t j : order) shares.push_back(of[j]);
    log_softmax_rows(shares, g.vocabulary);
    double sum = 0;
    for (int64_t j = 0; j < g.vocabulary; ++j) {
      sum += std::exp(static_cast<double>(shares[static_cast<size_t>(j)]));
      if (custom) {  // from the likeliest on: what follows once the sum is reached
        if (j + 1 < g.vocabulary && sum > most) of[order[static_cast<size_t>(j + 1)]] = filter;
      } else if (sum <= 1 - most && (j == 0 || j < g.vocabulary - kept)) {
        of[order[static_cast<size_t>(j)]] = filter;
      }
    }
  }
}

int32_t draw(const float* scores, int64_t count, RandomStream& random) {
  const double most = static_cast<double>(*std::max_element(scores, scores + count));
  double sum = 0;
  for (int64_t j = 0; j < count; ++j) sum += std::exp(static_cast<double>(scores[j]) - most);
  double left = random.next_unit() * sum;
  for (int64_t j = 0; j < count; ++j) {
    left -= std::exp(static_cast<double>(scores[j]) - most);
    if (left < 0) return static_cast<int32_t>(j);
  }
  return static_cast<int32_t>(std::max_element(scores, scores + count) - scores);
}

Status generate(KernelContext& context, bool sampling) {
  if (context.attributes.get_int("model_type", 0) != 0)
    return unsupported("model_type other than 0: a decoder like GPT-2");
  TRY(const Tensor* ids, context.input(0));
  if (ids->rank() != 2 || ids->dtype() != DType::kInt32 || ids->dim(1) < 1)
    return context.error("input_ids must be int32 [batch, length], is " + to_string(*ids));
  Generation g;
  g.batch = ids->dim(0), g.length = ids->dim(1);
  CHECK_OK(read_generation(context, kInputs, g));
  TRY(const Tensor* mask, context.optional_input(kInputs.attention_mask));
  RandomStream random = context.random();
  if (sampling) {
    g.temperature = context.attributes.get_float("temperature", 1);
    g.presence_penalty = context.attributes.get_float("presence_penalty", 0);
    TRY(g.presence_mask, context.optional_input(7));
    if (context.has_input(8)) {
      TRY(const int64_t seed, one_integer(context, 8, "seed", {}));
      random = RandomStream::seeded(static_cast<uint64_t>(seed));
    }
  }
  for (int64_t b = 0; b < g.batch; ++b) {
    g.sequences.emplace_back();
    for (int64_t j = 0; j < g.length; ++j)
      g.sequences.back().push_back(static_cast<int32_t>(ids->get_int64(b * g.length + j)));
  }
  std::vector<int64_t> same(static_cast<size_t>(g.batch));
  std::iota(same.begin(), same.end(), 0);
  std::vector<bool> ended(static_cast<size_t>(g.batch));
  std::vector<float> scores;
  TRY(Decoder decoder, Decoder::of_prompt(context, *ids, mask, g));
  for (int step = 1; g.length < g.max_length && g.batch > 0; ++step) {
    TRY(const RunValue logits, decoder.step());
    TRY(scores, last_logits(context, logits, g));
    CHECK_OK(adjust_scores(context, g, step, scores));
    if (sampling) filter_tail(context.attributes, g, scores);
    std::vector<int32_t> tokens;
    for (int64_t b = 0; b < g.batch; ++b) {
      const float* of = scores.data() + b * g.vocabulary;
      int32_t token = sampling ? draw(of, g.vocabulary, random)
                               : static_cast<int32_t>(std::max_element(of, of + g.vocabulary) - of);
      // A sequence that ended is filled up.
      if (token == g.eos || ended[static_cast<size_t>(b)]) {
        ended[static_cast<size_t>(b)] = true;
        token = static_cast<int32_t>(g.pad);
      }
      tokens.push_back(token);
      g.sequences[static_cast<size_t>(b)].push_back(token);
    }
    ++g.length;
    if (std::find(ended.begin(), ended.end(), false) == ended.end()) break;
    if (g.length < g.max_length) CHECK_OK(decoder.next(tokens, same));
  }
  TRY(Tensor * out, context.output(0, DType::kInt32, {{g.batch, g.max_length}}));
  for (int64_t b = 0; b < g.batch; ++b) {
    auto& sequence = g.sequences[static_cast<size_t>(b)];
    sequence.resize(static_cast<size_t>(g.max_length), static_cast<int32_t>(g.pad));
    std::copy(sequence.begin(), sequence.end(), out->data<int32_t>() + b * g.max_length);
  }
  if (!sampling || !context.wants_output(1)) return ok();
  TRY(Tensor * filtered, context.output(1, DType::kFloat32, {{g.batch, g.vocabulary}}));
  std::copy(scores.begin(), scores.end(), filtered->data<float>());
  return ok();
}

Status run_greedy_search(KernelContext& context) { return generate(context, false); }
Status run_sampling(KernelContext& context) { return generate(context, true); }

Status infer_greedy_search(InferContext& context) {
  const SymShape* ids = context.shape(0);
  const SymShape* longest = context.ints(1);
  SymDim vocabulary;
  if (const int64_t size = context.attributes.get_int("vocab_size", -1); size > 0)
    vocabulary = SymDim(size);
  const SymDim batch = ids != nullptr && ids->size() == 2 ? (*ids)[0] : SymDim();
  context.set_tensor(
      0, DType::kInt32,
      {batch, longest != nullptr && longest->size() == 1 ? (*longest)[0] : SymDim()});
  if (context.wants_output(1)) context.set_tensor(1, DType::kFloat32, {batch, vocabulary});
  return ok();
}

}  // namespace

OPERATOR(microsoft_GreedySearch) = {
    .name = "GreedySearch",
    .domain = "com.microsoft",
    .doc = "generates text, always with the likeliest token",
    .versions = {1},
    .inputs =
        {
            {"input_ids", "I"},
            {"max_length", "I"},
            {"min_length", "I", kOptional},
            {"repetition_penalty", "T", kOptional},
            {"vocab_mask", "I", kOptional},
            {"prefix_vocab_mask", "I", kOptional},
            {"attention_mask", "I", kOptional},
        },
    .outputs = {{"sequences", "I"}},
    .attributes =
        {
            {"decoder", required(Attr::kGraph)},
            {"decoder_start_token_id", -1},
            {"encoder", Attr::kGraph},
            {"eos_token_id", required(Attr::kInt)},
            {"init_decoder", Attr::kGraph},
            {"model_type", 0},
            {"no_repeat_ngram_size", 0},
            {"pad_token_id", required(Attr::kInt)},
            {"vocab_size", -1},
        },
    .types = {{"T", {{1, kF32}}}, {"I", {{1, kI32}}}},
    .determinism = Determinism::kBySubgraph,
    .infer = infer_greedy_search,
    .reference = run_greedy_search,
};

OPERATOR(microsoft_Sampling) = {
    .name = "Sampling",
    .domain = "com.microsoft",
    .doc = "generates text, tokens drawn from the likeliest ones",
    .versions = {1},
    .inputs =
        {
            {"input_ids", "I"},
            {"max_length", "I"},
            {"min_length", "I", kOptional},
            {"repetition_penalty", "T", kOptional},
            {"vocab_mask", "I", kOptional},
            {"prefix_vocab_mask", "I", kOptional},
            {"attention_mask", "I", kOptional},
            {"presence_mask", "I", kOptional},
            {"seed", "I", kOptional},
        },
    .outputs =
        {
            {"sequences", "I"},
            {"filtered_logits", "T", kOptional},
        },
    .attributes =
        {
            {"custom", 0},
            {"decoder", required(Attr::kGraph)},
            {"decoder_start_token_id", -1},
            {"encoder", Attr::kGraph},
            {"eos_token_id", required(Attr::kInt)},
            {"filter_value", -1e20f},
            {"init_decoder", Attr::kGraph},
            {"min_tokens_to_keep", 0},
            {"model_type", 0},
            {"no_repeat_ngram_size", 0},
            {"pad_token_id", required(Attr::kInt)},
            {"presence_penalty", 0.0f},
            {"temperature", 1.0f},
            {"top_p", 0.0f},
            {"vocab_size", -1},
        },
    .types = {{"T", {{1, kF32}}}, {"I", {{1, kI32}}}},
    .determinism = Determinism::kRandom,
    .infer = infer_greedy_search,
    .reference = run_sampling,
};

}  // namespace tombolo::ops
