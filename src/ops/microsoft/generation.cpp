#include "ops/microsoft/generation.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <utility>

#include "ops/kernels/compute.h"
#include "ops/kernels/subgraph.h"

namespace tombolo::ops {

namespace {
constexpr float kLowest = std::numeric_limits<float>::lowest();
constexpr int64_t kLongest = 4096, kMostBeams = 1024;

Result<const Tensor*> mask_of(const KernelContext& context, size_t index) {
  TRY(const Tensor* mask, context.optional_input(index));
  if (mask != nullptr && mask->dtype() != DType::kInt32)
    return context.error("input " + std::to_string(index) + " must be of int32, is " +
                         to_string(*mask));
  return mask;
}

void penalise_repetition(const Generation& g, std::vector<float>& scores) {
  for (int64_t row = 0; row < g.rows(); ++row) {
    float* of = scores.data() + row * g.vocabulary;
    const auto& sequence = g.sequences[static_cast<size_t>(row)];
    for (const int32_t token : std::set<int32_t>(sequence.begin(), sequence.end()))
      if (token >= 0 && token < g.vocabulary)
        of[token] =
            of[token] < 0 ? of[token] * g.repetition_penalty : of[token] / g.repetition_penalty;
  }
}

/// Forbids what would complete an n-gram that the sequence has already.
void forbid_ngrams(const Generation& g, std::vector<float>& scores) {
  if (g.ngram > g.length) return;
  for (int64_t row = 0; row < g.rows(); ++row) {
    const auto& sequence = g.sequences[static_cast<size_t>(row)];
    const auto before = static_cast<std::ptrdiff_t>(g.ngram - 1);
    for (auto at = sequence.begin(); sequence.end() - at > before; ++at) {
      const int32_t last = at[before];
      if (std::equal(at, at + before, sequence.end() - before) && last >= 0 && last < g.vocabulary)
        scores[static_cast<size_t>(row * g.vocabulary + last)] = kLowest;
    }
  }
}

/// Whisper: timestamps come in pairs, do not decrease, and the first is an early one.
void keep_timestamps_in_order(const Generation& g, std::vector<float>& scores) {
  const int64_t first = g.first_timestamp;
  for (int64_t row = 0; row < g.rows(); ++row) {
    float* of = scores.data() + row * g.vocabulary;
    const auto& sequence = g.sequences[static_cast<size_t>(row)];
    const auto forbid = [&](int64_t from, int64_t to) {
      from = std::clamp<int64_t>(from, 0, g.vocabulary);
      std::fill(of + from, of + std::clamp(to, from, g.vocabulary), kLowest);
    };
    const auto length = static_cast<int64_t>(sequence.size());
    int64_t begin = 0;
    while (begin < length && sequence[static_cast<size_t>(begin++)] < first) {
    }
    for (size_t k = 0; k < g.special.size(); ++k)
      if (k < 2 || length > begin) forbid(g.special[k], g.special[k] + 1);
    const bool last = length > 0 && sequence.back() >= first;
    const bool before = length <= begin || sequence[static_cast<size_t>(length - 2)] >= first;
    if (last && before) forbid(first, g.vocabulary);
    if (last && !before) forbid(0, g.eos);
    int64_t latest = -1;
    for (const int32_t token : sequence)
      if (token >= first) latest = token;
    if (latest >= 0) forbid(first, last && !before ? latest : latest + 1);
    constexpr int64_t kLatestStart = 50;
    if (length == begin) forbid(first + kLatestStart + 1, g.vocabulary);
    // When timestamps together are likelier than any word, the next token is one.
    if (first > g.vocabulary) continue;
    const float most = *std::max_element(of, of + first);
    double sum = 0;
    const float peak = first < g.vocabulary ? *std::max_element(of + first, of + g.vocabulary) : 0;
    for (int64_t j = first; j < g.vocabulary; ++j)
      sum += std::exp(static_cast<double>(of[j]) - static_cast<double>(peak));
    if (first < g.vocabulary &&
        std::log(sum) + static_cast<double>(peak) > static_cast<double>(most))
      forbid(0, first);
  }
}

}  // namespace

Result<int64_t> one_integer(const KernelContext& context, size_t index, const char* name,
                            std::optional<int64_t> fallback) {
  TRY(const Tensor* tensor, context.optional_input(index));
  if (tensor == nullptr && fallback) return *fallback;
  if (tensor == nullptr) return context.error(std::string(name) + " is missing");
  if (tensor->size() != 1 || !is_integer(tensor->dtype()))
    return context.error(std::string(name) + " must be one integer, is " + to_string(*tensor));
  return tensor->get_int64(0);
}

Result<float> one_float(const KernelContext& context, size_t index, const char* name,
                        float fallback) {
  TRY(const Tensor* tensor, context.optional_input(index));
  if (tensor == nullptr) return fallback;
  if (tensor->size() != 1 || !is_float(tensor->dtype()))
    return context.error(std::string(name) + " must be one float, is " + to_string(*tensor));
  return static_cast<float>(tensor->get_double(0));
}

Status read_generation(const KernelContext& context, const GenerationInputs& at, Generation& g) {
  const AttributeReader& attributes = context.attributes;
  g.eos = attributes.get_int("eos_token_id", -1);
  g.pad = attributes.get_int("pad_token_id", -1);
  g.start = attributes.get_int("decoder_start_token_id", -1);
  g.ngram = attributes.get_int("no_repeat_ngram_size", 0);
  g.vocabulary = std::max<int64_t>(0, attributes.get_int("vocab_size", -1));
  TRY(g.max_length, one_integer(context, 1, "max_length", kLongest));
  TRY(g.min_length, one_integer(context, at.min_length, "min_length", 0));
  TRY(g.repetition_penalty, one_float(context, at.repetition_penalty, "repetition_penalty", 1));
  TRY(g.vocab_mask, mask_of(context, at.vocab_mask));
  TRY(g.prefix_vocab_mask, mask_of(context, at.prefix_vocab_mask));
  if (g.pad < 0 || g.pad > INT32_MAX)
    return context.error("pad_token_id is " + std::to_string(g.pad));
  if (g.max_length > kLongest || g.max_length <= g.length)
    return context.error("max_length must be above the " + std::to_string(g.length) +
                         " tokens that are there, and at most " + std::to_string(kLongest) +
                         ", is " + std::to_string(g.max_length));
  if (!(g.repetition_penalty > 0)) return context.error("repetition_penalty must be above 0");
  if (g.beams < 1 || g.beams > kMostBeams)
    return context.error("num_beams is " + std::to_string(g.beams));
  return ok();
}

Result<std::vector<float>> last_logits(const KernelContext& context, const RunValue& logits,
                                       Generation& g) {
  TRY(const Tensor given, tensor_of(context, logits, "logits"));
  const int64_t rows = given.rank() == 3 ? given.dim(0) : 0;
  if (rows == 0 || (rows != g.rows() && rows != g.batch) || given.dim(1) < 1 || given.dim(2) < 1 ||
      !is_float(given.dtype()))
    return context.error("the decoder's logits must be floats [" + std::to_string(g.rows()) +
                         ", steps, vocabulary], are " + to_string(given));
  const int64_t steps = given.dim(1), width = given.dim(2);
  // Logits may be padded beyond the vocabulary.
  if (g.vocabulary == 0) g.vocabulary = width;
  if (g.vocabulary > width)
    return context.error("vocab_size is " + std::to_string(g.vocabulary) + ", logits are " +
                         to_string(given));
  TRY(const Tensor wide, as<float>(context, given));
  std::vector<float> scores(static_cast<size_t>(g.rows() * g.vocabulary));
  for (int64_t row = 0; row < g.rows(); ++row) {
    const int64_t from = rows == g.rows() ? row : row / g.beams;
    std::copy_n(wide.data<float>() + (from * steps + steps - 1) * width, g.vocabulary,
                scores.data() + row * g.vocabulary);
  }
  return scores;
}

void log_softmax_rows(std::vector<float>& scores, int64_t width) {
  for (size_t row = 0; row < scores.size(); row += static_cast<size_t>(width)) {
    float* at = scores.data() + row;
    const double most = static_cast<double>(*std::max_element(at, at + width));
    double sum = 0;
    for (int64_t j = 0; j < width; ++j) sum += std::exp(static_cast<double>(at[j]) - most);
    const double shift = most + std::log(sum);
    for (int64_t j = 0; j < width; ++j)
      at[j] = static_cast<float>(static_cast<double>(at[j]) - shift);
  }
}

Status adjust_scores(const KernelContext& context, const Generation& g, int step,
                     std::vector<float>& scores) {
  if (g.vocab_mask != nullptr)
    CHECK_OK(check_dims(context, "vocab_mask", *g.vocab_mask, {{g.vocabulary}}));
  if (g.prefix_vocab_mask != nullptr)
    CHECK_OK(
        check_dims(context, "prefix_vocab_mask", *g.prefix_vocab_mask, {{g.batch, g.vocabulary}}));
  if (g.presence_mask != nullptr)
    CHECK_OK(check_dims(context, "presence_mask", *g.presence_mask, {{g.batch, g.vocabulary}}));
  if (g.repetition_penalty != 1) penalise_repetition(g, scores);
  if (g.ngram > 0) forbid_ngrams(g, scores);
  for (int64_t row = 0; row < g.rows(); ++row) {
    float* of = scores.data() + row * g.vocabulary;
    const int64_t masks = row / g.beams * g.vocabulary;
    for (int64_t j = 0; j < g.vocabulary; ++j) {
      if (g.vocab_mask != nullptr && g.vocab_mask->get_int64(j) == 0) of[j] = kLowest;
      if (step == 1 && g.prefix_vocab_mask != nullptr &&
          g.prefix_vocab_mask->get_int64(masks + j) == 0)
        of[j] = kLowest;
    }
    if (g.length < g.min_length && g.eos >= 0 && g.eos < g.vocabulary) of[g.eos] = kLowest;
    for (int64_t j = 0; j < g.vocabulary; ++j) {
      if (g.temperature > 0 && g.temperature != 1) of[j] /= g.temperature;
      if (g.presence_mask != nullptr)
        of[j] -= static_cast<float>(g.presence_mask->get_int64(masks + j)) * g.presence_penalty;
    }
  }
  if (g.timestamps) keep_timestamps_in_order(g, scores);
  return ok();
}

Result<Tensor> pick_rows(const KernelContext& context, const Tensor& tensor,
                         const std::vector<int64_t>& from, size_t axis) {
  if (tensor.rank() <= axis) return context.error("a state is " + to_string(tensor));
  Dims dims = tensor.dims();
  const int64_t length = dims[axis];
  dims[axis] = static_cast<int64_t>(from.size());
  TRY(Tensor out, context.allocate(tensor.dtype(), dims));
  const int64_t outer = product(dims.span(), 0, axis);
  const int64_t bytes =
      product(dims.span(), axis + 1, dims.size()) * static_cast<int64_t>(bytes_of(tensor.dtype()));
  std::byte* to = out.mutable_bytes().data();
  const std::byte* source = tensor.bytes().data();
  for (int64_t o = 0; o < outer; ++o)
    for (const int64_t row : from) {
      if (row < 0 || row >= length)
        return context.error("there is no row " + std::to_string(row) + " in " + to_string(tensor));
      to = std::copy_n(source + (o * length + row) * bytes, bytes, to);
    }
  return out;
}

Result<Tensor> token_matrix(const KernelContext& context,
                            const std::vector<std::vector<int32_t>>& rows) {
  const int64_t width = rows.empty() ? 0 : static_cast<int64_t>(rows[0].size());
  TRY(Tensor out, context.allocate(DType::kInt32, {{static_cast<int64_t>(rows.size()), width}}));
  int32_t* to = out.data<int32_t>();
  for (const auto& row : rows) to = std::copy(row.begin(), row.end(), to);
  return out;
}

Result<Decoder> Decoder::of_prompt(KernelContext& context, const Tensor& ids, const Tensor* mask,
                                   const Generation& g) {
  Decoder decoder(context);
  decoder.graph_ = context.attributes.get_graph("decoder");
  if (decoder.graph_ == nullptr) return context.error("the attribute decoder is missing");
  decoder.first_ = context.attributes.get_graph("init_decoder");
  const auto& inputs = decoder.graph_->inputs();
  const size_t layers = decoder.graph_->outputs().size() - 1;
  if (decoder.graph_->outputs().size() < 2 || inputs.size() != layers + 3 ||
      (decoder.first_ != nullptr && decoder.first_->inputs().size() != inputs.size()))
    return unsupported(
        "a decoder with other inputs than input_ids, position_ids, attention_mask and the past, or "
        "without past (caches in place are for GPUs)");
  if (mask != nullptr) CHECK_OK(check_dims(context, "attention_mask", *mask, ids.dims().span()));
  const Type* past = inputs[3]->type();
  if (past == nullptr || !past->is_tensor() || past->dims.size() != 5 ||
      past->dims[2].kind != Dim::Kind::kValue || past->dims[4].kind != Dim::Kind::kValue)
    return context.error("past_0 of the decoder must declare heads and their size");

  std::vector<std::vector<int32_t>> tokens, positions, masks;
  for (int64_t row = 0; row < g.rows(); ++row) {
    const int64_t from = row / g.beams * ids.dim(1);
    int32_t position = 0;
    tokens.emplace_back();
    positions.emplace_back();
    masks.emplace_back();
    for (int64_t j = 0; j < ids.dim(1); ++j) {
      const auto token = static_cast<int32_t>(ids.get_int64(from + j));
      // Positions count what is not padding, whatever the mask says.
      tokens.back().push_back(token);
      masks.back().push_back(mask != nullptr ? static_cast<int32_t>(mask->get_int64(from + j))
                                             : token != g.pad);
      positions.back().push_back(token != g.pad ? position++ : 0);
    }
    decoder.positions_.push_back(position);
  }
  for (const auto* rows : {&tokens, &positions, &masks}) {
    TRY(Tensor matrix, token_matrix(context, *rows));
    decoder.feeds_.emplace_back(std::move(matrix));
  }
  TRY(const Tensor empty, context.allocate(past->dtype(), {{2, g.rows(), past->dims[2].value, 0,
                                                            past->dims[4].value}}));
  for (size_t i = 0; i < layers; ++i) decoder.feeds_.emplace_back(empty);
  return decoder;
}

Result<RunValue> Decoder::step() {
  const Graph& graph = !later_ && first_ != nullptr ? *first_ : *graph_;
  later_ = true;
  TRY(results_, run_body(*context_, graph, feeds_, graph_->outputs().size()));
  return results_[0];
}

Status Decoder::next(const std::vector<int32_t>& tokens, const std::vector<int64_t>& from) {
  const auto rows = static_cast<int64_t>(tokens.size());
  TRY(Tensor ids, context_->allocate(DType::kInt32, {{rows, 1}}));
  TRY(Tensor positions, context_->allocate(DType::kInt32, {{rows, 1}}));
  for (int64_t row = 0; row < rows; ++row) {
    ids.data<int32_t>()[row] = tokens[static_cast<size_t>(row)];
    positions.data<int32_t>()[row] = positions_[static_cast<size_t>(row)]++;
  }
  const Tensor& old = feeds_[2].tensor();
  const int64_t length = old.dim(1);
  TRY(Tensor mask, context_->allocate(DType::kInt32, {{rows, length + 1}}));
  for (int64_t row = 0; row < rows; ++row) {
    std::copy_n(old.data<int32_t>() + row * length, length,
                mask.data<int32_t>() + row * (length + 1));
    mask.data<int32_t>()[row * (length + 1) + length] = 1;
  }
  feeds_[0] = std::move(ids);
  feeds_[1] = std::move(positions);
  feeds_[2] = std::move(mask);
  for (size_t i = 1; i < results_.size(); ++i) {
    TRY(const Tensor present, tensor_of(*context_, results_[i], "a present state"));
    TRY(Tensor past, pick_rows(*context_, present, from, 1));
    feeds_[i + 2] = std::move(past);
  }
  return ok();
}

}  // namespace tombolo::ops
