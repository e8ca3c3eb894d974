// BeamSearch and WhisperBeamSearch: several sequences for each prompt go on together, the likeliest
// are kept. Decoders like GPT-2, or an encoder and a decoder like T5's and Whisper's.

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "ops/infer_helpers.h"
#include "ops/kernels/compute.h"
#include "ops/kernels/subgraph.h"
#include "ops/microsoft/generation.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {

constexpr GenerationInputs kInputs = {2, 6, 7, 8, 9};
constexpr int64_t kGpt = 0, kWhisper = 2;

/// The best finished sequences of one prompt, best first.
struct Finished {
  struct Sequence {
    std::vector<int32_t> tokens;
    float score;
  };
  std::vector<Sequence> best;
  bool done = false;

  void add(const std::vector<int32_t>& tokens, float sum, float penalty, size_t most) {
    const float score = sum / std::pow(static_cast<float>(tokens.size()), penalty);
    if (best.size() == most && score <= best.back().score) return;
    if (best.size() == most) best.pop_back();
    auto at = best.end();
    while (at != best.begin() && score > (at - 1)->score) --at;
    best.insert(at, {tokens, score});
  }
};

struct Search {
  Generation g;
  float length_penalty = 1;
  bool early = false;
  int64_t returned = 1;
  std::vector<Finished> finished;  ///< per prompt
  std::vector<float> beam_scores;  ///< per row
  std::vector<float> kept_scores;  ///< of all steps, when they are asked for
  bool keep_scores = false;
  int step = 0;
  // What the scorer chose.
  std::vector<int32_t> tokens;
  std::vector<int64_t> from;

  void begin() {
    finished.resize(static_cast<size_t>(g.batch));
    // The beams of a prompt are equal at first: all but one wait.
    for (int64_t row = 0; row < g.rows(); ++row)
      beam_scores.push_back(row % g.beams == 0 ? 0 : -1e9f);
  }
  bool all_done() const {
    return std::all_of(finished.begin(), finished.end(), [](const auto& f) { return f.done; });
  }

  /// Chooses the next tokens by these logits and puts them behind the sequences.
  Status advance(const KernelContext& context, const RunValue& logits) {
    TRY(std::vector<float> scores, last_logits(context, logits, g));
    log_softmax_rows(scores, g.vocabulary);
    CHECK_OK(adjust_scores(context, g, ++step, scores));
    for (int64_t row = 0; row < g.rows(); ++row)
      for (int64_t j = 0; j < g.vocabulary; ++j)
        scores[static_cast<size_t>(row * g.vocabulary + j)] +=
            beam_scores[static_cast<size_t>(row)];
    if (keep_scores) kept_scores.insert(kept_scores.end(), scores.begin(), scores.end());
    tokens.clear();
    from.clear();
    for (int64_t b = 0; b < g.batch; ++b) CHECK_OK(choose(context, b, scores));
    std::vector<std::vector<int32_t>> longer;
    for (size_t row = 0; row < tokens.size(); ++row) {
      longer.push_back(g.sequences[static_cast<size_t>(from[row])]);
      longer.back().push_back(tokens[row]);
    }
    g.sequences = std::move(longer);
    ++g.length;
    return ok();
  }

 private:
  Status choose(const KernelContext& context, int64_t b, const std::vector<float>& scores) {
    Finished& own = finished[static_cast<size_t>(b)];
    const int64_t first = b * g.beams, width = g.beams * g.vocabulary;
    if (own.done) {
      for (int64_t k = 0; k < g.beams; ++k) {
        tokens.push_back(static_cast<int32_t>(g.pad));
        from.push_back(first);
        beam_scores[static_cast<size_t>(first + k)] = 0;
      }
      return ok();
    }
    const float* of = scores.data() + first * g.vocabulary;
    const int64_t candidates = std::min(2 * g.beams, width);
    std::vector<int64_t> order(static_cast<size_t>(width));
    std::iota(order.begin(), order.end(), 0);
    std::partial_sort(order.begin(), order.begin() + candidates, order.end(),
                      [&](int64_t i, int64_t j) { return of[i] != of[j] ? of[i] > of[j] : i < j; });
    const size_t had = tokens.size();
    for (int64_t k = 0; k < candidates && tokens.size() - had < static_cast<size_t>(g.beams); ++k) {
      const int64_t place = order[static_cast<size_t>(k)], token = place % g.vocabulary;
      const int64_t row = first + place / g.vocabulary;
      if (token == g.eos) {
        if (k < g.beams)
          own.add(g.sequences[static_cast<size_t>(row)], of[place], length_penalty,
                  static_cast<size_t>(g.beams));
        continue;
      }
      tokens.push_back(static_cast<int32_t>(token));
      from.push_back(row);
    }
    if (tokens.size() - had < static_cast<size_t>(g.beams))
      return context.error("the vocabulary is too small for " + std::to_string(g.beams) + " beams");
    std::vector<float> chosen;
    for (int64_t k = 0, next = 0; next < g.beams; ++k) {
      const int64_t place = order[static_cast<size_t>(k)];
      if (place % g.vocabulary == g.eos) continue;
      chosen.push_back(of[place]);
      ++next;
    }
    std::copy(chosen.begin(), chosen.end(), beam_scores.begin() + first);
    if (own.best.size() < static_cast<size_t>(g.beams)) return ok();
    // Whether what goes on could still become better than the worst that is finished.
    const float possible = of[order[0]] / std::pow(static_cast<float>(g.length), length_penalty);
    own.done = early || own.best.back().score >= possible;
    return ok();
  }

 public:
  Status give(KernelContext& context) {
    TRY(Tensor * sequences, context.output(0, DType::kInt32, {{g.batch, returned, g.max_length}}));
    std::fill_n(sequences->data<int32_t>(), sequences->size(), static_cast<int32_t>(g.pad));
    Tensor scores;
    TRY(scores, context.allocate(DType::kFloat32, {{g.batch, returned}}));
    for (int64_t b = 0; b < g.batch; ++b) {
      Finished& own = finished[static_cast<size_t>(b)];
      for (int64_t k = 0; !own.done && k < g.beams; ++k) {
        const auto row = static_cast<size_t>(b * g.beams + k);
        own.add(g.sequences[row], beam_scores[row], length_penalty, static_cast<size_t>(g.beams));
      }
      for (int64_t k = 0; k < returned; ++k) {
        const auto& best = own.best[static_cast<size_t>(k)];
        std::copy(best.tokens.begin(), best.tokens.end(),
                  sequences->data<int32_t>() + (b * returned + k) * g.max_length);
        scores.data<float>()[b * returned + k] = best.score;
      }
    }
    const DType type = float_type(context);
    CHECK_OK(ops::give(context, 1, type, std::move(scores)));
    if (!keep_scores) return ok();
    const int64_t per_step = g.rows() * g.vocabulary;
    TRY(Tensor all, context.allocate(DType::kFloat32,
                                     {{g.max_length - prompt, g.batch, g.beams, g.vocabulary}}));
    std::fill_n(all.data<float>(), all.size(), 0.0f);
    if (per_step != 0)
      std::copy_n(kept_scores.begin(),
                  std::min<int64_t>(all.size(), static_cast<int64_t>(kept_scores.size())),
                  all.data<float>());
    return ops::give(context, 2, type, std::move(all));
  }
  int64_t prompt = 0;

  /// Scores have the type of the penalties, if there are any.
  static DType float_type(const KernelContext& context) {
    for (const size_t i : {size_t{5}, size_t{6}})
      if (context.has_input(i) && context.value(i).is_tensor())
        return context.value(i).tensor().dtype();
    return DType::kFloat32;
  }
};

// ---- an encoder and a decoder

std::vector<int64_t> each_repeated(int64_t batch, int64_t beams) {
  std::vector<int64_t> rows;
  for (int64_t row = 0; row < batch * beams; ++row) rows.push_back(row / beams);
  return rows;
}

/// What the decoder of an encoder-decoder is fed with, in the order of its inputs.
struct Feeds {
  KernelContext& context;
  const Graph& decoder;
  std::vector<RunValue> values;
  size_t past = 0;    ///< the first input that is a state
  size_t layers = 0;  ///< each has two states of its own and two of the encoder
  bool whole = true;  ///< the decoder takes the whole sequences, not the last tokens

  Status describe() {
    const auto& inputs = decoder.inputs();
    layers = (decoder.outputs().size() - 1) / 2;
    while (past < inputs.size() && !inputs[past]->name().starts_with("past_")) ++past;
    if (decoder.outputs().size() < 3 || inputs.size() != past + 4 * layers || past < 1 || past > 3)
      return unsupported(
          "a decoder whose inputs are not input_ids, encoder_attention_mask, "
          "encoder_hidden_states and four states a layer (caches in place are for GPUs)");
    const Type* ids = inputs[0]->type();
    whole = ids == nullptr || ids->dims.size() != 2 || ids->dims[1].kind != Dim::Kind::kValue ||
            ids->dims[1].value != 1;
    values.resize(inputs.size());
    return ok();
  }

  Status tokens(const Generation& g) {
    std::vector<std::vector<int32_t>> rows;
    for (const auto& sequence : g.sequences)
      rows.push_back(whole ? sequence : std::vector<int32_t>{sequence.back()});
    TRY(Tensor ids, token_matrix(context, rows));
    values[0] = std::move(ids);
    return ok();
  }

  /// A state without steps, as the decoder declares it.
  Result<Tensor> empty_state(int64_t rows) const {
    const Type* type = decoder.inputs()[past]->type();
    if (type == nullptr || !type->is_tensor() || type->dims.size() != 4 ||
        type->dims[1].kind != Dim::Kind::kValue || type->dims[3].kind != Dim::Kind::kValue)
      return context.error("the states of the decoder must declare heads and their size");
    return context.allocate(type->dtype(), {{rows, type->dims[1].value, 0, type->dims[3].value}});
  }

  Status state(size_t index, const RunValue& value, const std::vector<int64_t>& rows) {
    TRY(const Tensor tensor, tensor_of(context, value, "a state"));
    TRY(Tensor picked, pick_rows(context, tensor, rows, 0));
    values[index] = std::move(picked);
    return ok();
  }
};

/// Padding at the left does not count; a token at the end that is the padding's does.
Result<Tensor> encoder_mask(const KernelContext& context, const Tensor& ids, int64_t pad) {
  TRY(const Tensor* given, context.optional_input(kInputs.attention_mask));
  if (given != nullptr) {
    CHECK_OK(check_dims(context, "attention_mask", *given, ids.dims().span()));
    return *given;
  }
  TRY(Tensor mask, context.allocate(DType::kInt32, ids.dims()));
  for (int64_t b = 0; b < ids.dim(0); ++b) {
    bool begun = false;
    for (int64_t j = 0; j < ids.dim(1); ++j) {
      begun = begun || ids.get_int64(b * ids.dim(1) + j) != pad;
      mask.data<int32_t>()[b * ids.dim(1) + j] = begun ? 1 : 0;
    }
  }
  return mask;
}

Status search_encoded(KernelContext& context, Search& search, const Tensor& input,
                      const Tensor& prompt, bool whisper) {
  Generation& g = search.g;
  const Graph* encoder = context.attributes.get_graph("encoder");
  const Graph* decoder = context.attributes.get_graph("decoder");
  if (encoder == nullptr || decoder == nullptr)
    return context.error("the attributes encoder and decoder must be there");
  Feeds feeds{context, *decoder, {}};
  CHECK_OK(feeds.describe());
  Tensor mask;
  if (!whisper) {
    TRY(mask, encoder_mask(context, input, g.pad));
  }
  std::vector<RunValue> given = {input};
  if (!whisper) given.emplace_back(mask);
  if (encoder->inputs().size() == given.size() + 1) given.emplace_back(prompt);
  if (encoder->inputs().size() != given.size())
    return context.error("the encoder has " + std::to_string(encoder->inputs().size()) + " inputs");
  const size_t states = 2 * feeds.layers;
  // Encoders used to run the decoder's first step as well.
  const bool first_step = encoder->outputs().size() == 2 + 2 * states;
  if (!first_step && encoder->outputs().size() != states)
    return context.error("the encoder has " + std::to_string(encoder->outputs().size()) +
                         " outputs for " + std::to_string(feeds.layers) + " layers");
  TRY(const std::vector<RunValue> encoded,
      run_body(context, *encoder, std::move(given), encoder->outputs().size()));

  const std::vector<int64_t> spread = each_repeated(g.batch, g.beams);
  std::vector<int64_t> own(spread);
  for (size_t i = 1; i < feeds.past; ++i) {
    const Text name = decoder->inputs()[i]->name();
    if (name == "encoder_attention_mask" && !whisper) {
      CHECK_OK(feeds.state(i, mask, spread));
    } else if (name == "encoder_hidden_states" && first_step) {
      CHECK_OK(feeds.state(i, encoded[1], spread));
    } else {
      return unsupported("the decoder's input " + std::string(name));
    }
  }
  const size_t crossed = first_step ? 2 + states : 0;
  for (size_t i = 0; i < states; ++i)
    CHECK_OK(feeds.state(feeds.past + states + i, encoded[crossed + i], spread));
  RunValue logits;
  std::vector<RunValue> results;
  if (first_step) {
    logits = encoded[0];
    // The states of the first step have a row for each prompt.
    results.assign(encoded.begin() + 1, encoded.begin() + 2 + static_cast<ptrdiff_t>(states));
  } else {
    TRY(const Tensor empty, feeds.empty_state(g.rows()));
    for (size_t i = 0; i < states; ++i) feeds.values[feeds.past + i] = empty;
    const bool whole = feeds.whole;
    feeds.whole = true;
    CHECK_OK(feeds.tokens(g));
    feeds.whole = whole;
    TRY(results, run_body(context, *decoder, feeds.values, states + 1));
    logits = results[0];
  }
  if (whisper && context.wants_output(4)) {
    const int64_t silence = context.attributes.get_int("no_speech_token_id", -1);
    TRY(std::vector<float> scores, last_logits(context, logits, g));
    if (silence < 0 || silence >= g.vocabulary)
      return context.error("no_speech_token_id is " + std::to_string(silence));
    log_softmax_rows(scores, g.vocabulary);
    TRY(Tensor shares, context.allocate(DType::kFloat32, {{g.batch}}));
    for (int64_t b = 0; b < g.batch; ++b)
      shares.data<float>()[b] =
          std::exp(scores[static_cast<size_t>(b * g.beams * g.vocabulary + silence)]);
    CHECK_OK(give(context, 4, Search::float_type(context), std::move(shares)));
  }
  bool per_prompt = first_step;
  while (true) {
    CHECK_OK(search.advance(context, logits));
    if (search.all_done() || g.length >= g.max_length) return ok();
    CHECK_OK(feeds.tokens(g));
    for (size_t i = 0; i < states; ++i) {
      std::vector<int64_t> rows = search.from;
      if (per_prompt)
        for (int64_t& row : rows) row /= g.beams;
      CHECK_OK(feeds.state(feeds.past + i, results[1 + i], rows));
    }
    per_prompt = false;
    TRY(results, run_body(context, *decoder, feeds.values, states + 1));
    logits = results[0];
  }
}

Status search_gpt(KernelContext& context, Search& search, const Tensor& ids) {
  TRY(const Tensor* mask, context.optional_input(kInputs.attention_mask));
  TRY(Decoder decoder, Decoder::of_prompt(context, ids, mask, search.g));
  while (true) {
    TRY(const RunValue logits, decoder.step());
    CHECK_OK(search.advance(context, logits));
    if (search.all_done() || search.g.length >= search.g.max_length) return ok();
    CHECK_OK(decoder.next(search.tokens, search.from));
  }
}

Status run_beam_search(KernelContext& context) {
  const AttributeReader& attributes = context.attributes;
  const bool named_whisper = context.node.op_type() == "WhisperBeamSearch";
  const int64_t kind = attributes.get_int("model_type", named_whisper ? kWhisper : kGpt);
  if (kind < kGpt || kind > kWhisper) return context.error("model_type is " + std::to_string(kind));
  const bool whisper = kind == kWhisper;
  if (named_whisper && (!whisper || context.wants_output(3) ||
                        attributes.get_int("decoder_output_cross_qk", 0) != 0))
    return unsupported("cross_qk, or a model_type other than 2");
  TRY(const Tensor* input, context.input(0));
  if (input->rank() != (whisper ? 3u : 2u) || input->dim(0) < 1 || input->dim(1) < 1 ||
      (!whisper && input->dtype() != DType::kInt32))
    return context.error("input_ids is " + to_string(*input));
  Search search;
  Generation& g = search.g;
  g.batch = input->dim(0);
  g.start = attributes.get_int("decoder_start_token_id", -1);
  Tensor prompt;
  if (kind == kGpt) {
    prompt = *input;
  } else if (whisper && context.has_input(10)) {
    TRY(const Tensor* given, context.input(10));
    if (given->rank() != 2 || given->dtype() != DType::kInt32 || given->dim(0) != g.batch ||
        given->dim(1) < 1)
      return context.error("decoder_input_ids must be int32 [batch, length], is " +
                           to_string(*given));
    prompt = *given;
  } else {
    if (g.start < 0 || g.start > INT32_MAX)
      return context.error("decoder_start_token_id is " + std::to_string(g.start));
    TRY(prompt, context.allocate(DType::kInt32, {{g.batch, 1}}));
    std::fill_n(prompt.data<int32_t>(), g.batch, static_cast<int32_t>(g.start));
  }
  search.prompt = g.length = prompt.dim(1);
  TRY(g.beams, one_integer(context, 3, "num_beams", 1));
  TRY(search.returned, one_integer(context, 4, "num_return_sequences", 1));
  TRY(search.length_penalty, one_float(context, 5, "length_penalty", 1));
  search.early = attributes.get_int("early_stopping", 0) == 1;
  CHECK_OK(read_generation(context, kInputs, g));
  if (search.returned < 1 || search.returned > g.beams)
    return context.error("num_return_sequences must be from 1 to num_beams, is " +
                         std::to_string(search.returned));
  if (named_whisper) {
    TRY(g.temperature, one_float(context, 14, "temperature", 1));
  }
  TRY(const int64_t rules, one_integer(context, 11, "logits_processor", 0));
  if (whisper && rules == 1) {
    g.timestamps = true;
    // The places in the multilingual vocabulary, for models that do not say them.
    g.first_timestamp = attributes.get_int("beginning_timestamp_token_id", g.eos + 107);
    g.special = {attributes.get_int("no_timestamps_token_id", g.eos + 106),
                 attributes.get_int("start_of_lm_token_id", g.eos + 105),
                 g.start >= 0 ? g.start : g.eos + 1,
                 attributes.get_int("translate_token_id", g.eos + 101),
                 attributes.get_int("transcribe_token_id", g.eos + 102)};
  }
  for (int64_t row = 0; row < g.rows(); ++row) {
    g.sequences.emplace_back();
    for (int64_t j = 0; j < g.length; ++j)
      g.sequences.back().push_back(
          static_cast<int32_t>(prompt.get_int64(row / g.beams * g.length + j)));
  }
  search.keep_scores = context.wants_output(2);
  search.begin();
  if (kind == kGpt) {
    CHECK_OK(search_gpt(context, search, *input));
  } else {
    CHECK_OK(search_encoded(context, search, *input, prompt, whisper));
  }
  return search.give(context);
}

Status infer_beam_search(InferContext& context) {
  const SymShape* input = context.shape(0);
  const auto known = [&](size_t index) {
    const SymShape* value = context.ints(index);
    return value != nullptr && value->size() == 1 ? (*value)[0] : SymDim();
  };
  const SymDim batch = input != nullptr && !input->empty() ? (*input)[0] : SymDim();
  const int64_t size = context.attributes.get_int("vocab_size", -1);
  DType type = DType::kFloat32;
  for (const size_t i : {size_t{6}, size_t{5}})
    if (context.has_input(i) && context.elem(i) != DType::kUndefined) type = context.elem(i);
  context.set_tensor(0, DType::kInt32, {batch, known(4), known(1)});
  if (context.wants_output(1)) context.set_tensor(1, type, {batch, known(4)});
  if (context.wants_output(2))
    context.set_tensor(2, type, {SymDim(), batch, known(3), size > 0 ? SymDim(size) : SymDim()});
  if (context.wants_output(4)) context.set_tensor(4, type, {batch});
  return ok();
}

}  // namespace

OPERATOR(microsoft_BeamSearch) = {
    .name = "BeamSearch",
    .domain = "com.microsoft",
    .doc = "generates text by the likeliest of several sequences",
    .versions = {1},
    .inputs =
        {
            {"input_ids", "F"},
            {"max_length", "I"},
            {"min_length", "I", kOptional},
            {"num_beams", "I"},
            {"num_return_sequences", "I"},
            {"length_penalty", "T", kOptional},
            {"repetition_penalty", "T", kOptional},
            {"vocab_mask", "M", kOptional},
            {"prefix_vocab_mask", "M", kOptional},
            {"attention_mask", "I", kOptional},
            {"decoder_input_ids", "I", kOptional},
            {"logits_processor", "I", kOptional},
        },
    .outputs =
        {
            {"sequences", "I"},
            {"sequences_scores", "T", kOptional},
            {"scores", "T", kOptional},
        },
    .attributes =
        {
            {"decoder", required(Attr::kGraph)},
            {"decoder_start_token_id", -1},
            {"early_stopping", 0},
            {"encoder", Attr::kGraph},
            {"eos_token_id", required(Attr::kInt)},
            {"init_decoder", Attr::kGraph},
            {"model_type", 0},
            {"no_repeat_ngram_size", 0},
            {"pad_token_id", required(Attr::kInt)},
            {"vocab_size", -1},
        },
    .types =
        {
            {"T", {{1, kF32 | kF16}}},
            {"F", {{1, kF32 | kI32 | kF16}}},
            {"I", {{1, kI32}}},
            {"M", {{1, kI32}}},
        },
    .determinism = Determinism::kBySubgraph,
    .infer = infer_beam_search,
    .reference = run_beam_search,
};

OPERATOR(microsoft_WhisperBeamSearch) = {
    .name = "WhisperBeamSearch",
    .domain = "com.microsoft",
    .doc = "BeamSearch for Whisper",
    .versions = {1},
    .inputs =
        {
            {"input_ids", "F"},
            {"max_length", "I"},
            {"min_length", "I", kOptional},
            {"num_beams", "I"},
            {"num_return_sequences", "I"},
            {"length_penalty", "T", kOptional},
            {"repetition_penalty", "T", kOptional},
            {"vocab_mask", "M", kOptional},
            {"prefix_vocab_mask", "M", kOptional},
            {"attention_mask", "I", kOptional},
            {"decoder_input_ids", "I", kOptional},
            {"logits_processor", "I", kOptional},
            {"cross_qk_layer_head", "I", kOptional},
            {"extra_decoding_ids", "I", kOptional},
            {"temperature", "T", kOptional},
        },
    .outputs =
        {
            {"sequences", "I"},
            {"sequences_scores", "T", kOptional},
            {"scores", "T", kOptional},
            {"cross_qk", "V", kOptional},
            {"non_speech_probs", "T", kOptional},
        },
    .attributes =
        {
            {"beginning_timestamp_token_id", Attr::kInt},
            {"decoder", required(Attr::kGraph)},
            {"decoder_output_cross_qk", Attr::kInt},
            {"decoder_start_token_id", -1},
            {"early_stopping", 0},
            {"encoder", Attr::kGraph},
            {"eos_token_id", required(Attr::kInt)},
            {"init_decoder", Attr::kGraph},
            {"model_type", 2},
            {"no_repeat_ngram_size", 0},
            {"no_speech_token_id", Attr::kInt},
            {"no_timestamps_token_id", Attr::kInt},
            {"pad_token_id", required(Attr::kInt)},
            {"start_of_lm_token_id", Attr::kInt},
            {"transcribe_token_id", Attr::kInt},
            {"translate_token_id", Attr::kInt},
            {"vocab_size", -1},
        },
    .types =
        {
            {"T", {{1, kF32 | kF16}}},
            {"F", {{1, kF32 | kI32 | kF16}}},
            {"I", {{1, kI32}}},
            {"M", {{1, kI32}}},
            {"V", {{1, kF32}}},
        },
    .determinism = Determinism::kBySubgraph,
    .infer = infer_beam_search,
    .reference = run_beam_search,
};

}  // namespace tombolo::ops
