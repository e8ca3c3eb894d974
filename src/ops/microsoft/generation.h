#pragma once

// What the operators that generate text share: their parameters, the rules that change scores, and
// the calls of the decoder with its growing past.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ops/kernel_context.h"

namespace tombolo::ops {

/// Where the operators have their inputs.
struct GenerationInputs {
  size_t min_length, repetition_penalty, vocab_mask, prefix_vocab_mask, attention_mask;
};

struct Generation {
  int64_t batch = 0, beams = 1, vocabulary = 0;
  int64_t length = 0;  ///< of the sequences now
  int64_t max_length = 0, min_length = 0;
  int64_t eos = 0, pad = 0, start = -1;
  int64_t ngram = 0;
  float repetition_penalty = 1, temperature = 1, presence_penalty = 0;
  const Tensor* vocab_mask = nullptr;
  const Tensor* prefix_vocab_mask = nullptr;
  const Tensor* presence_mask = nullptr;
  bool timestamps = false;       ///< Whisper's rules for tokens of time
  int64_t first_timestamp = 0;   ///< those of the model's vocabulary
  std::vector<int64_t> special;  ///< notimestamps, start of lm, start, translate, transcribe
  /// [batch * beams] sequences, each of `length` tokens.
  std::vector<std::vector<int32_t>> sequences;

  int64_t rows() const { return batch * beams; }
};

/// An integer or a float in a tensor of one element.
Result<int64_t> one_integer(const KernelContext& context, size_t index, const char* name,
                            std::optional<int64_t> fallback);
Result<float> one_float(const KernelContext& context, size_t index, const char* name,
                        float fallback);

/// Reads attributes and inputs that all have; `batch` and `length` are known.
Status read_generation(const KernelContext& context, const GenerationInputs& at, Generation& g);

/// The last step of logits [rows or batch, steps, vocabulary] as [rows, vocabulary] floats.
Result<std::vector<float>> last_logits(const KernelContext& context, const RunValue& logits,
                                       Generation& g);
/// log(softmax) of each row, in place.
void log_softmax_rows(std::vector<float>& scores, int64_t width);
/// Penalties and masks; `step` counts from 1.
Status adjust_scores(const KernelContext& context, const Generation& g, int step,
                     std::vector<float>& scores);

/// A decoder in the manner of GPT-2: input_ids, position_ids, attention_mask, past_0, ... gives
/// logits, present_0, ...
class Decoder {
 public:
  /// `mask` may be null: then padding is what is the padding token.
  static Result<Decoder> of_prompt(KernelContext& context, const Tensor& ids, const Tensor* mask,
                                   const Generation& g);
  /// Runs the decoder; logits.
  Result<RunValue> step();
  /// Takes the next tokens; row i goes on from the past of row `from[i]`.
  Status next(const std::vector<int32_t>& tokens, const std::vector<int64_t>& from);

 private:
  explicit Decoder(KernelContext& context) : context_(&context) {}
  KernelContext* context_;
  const Graph* graph_ = nullptr;
  const Graph* first_ = nullptr;  ///< for the first call, when there is one
  std::vector<RunValue> feeds_, results_;
  std::vector<int32_t> positions_;
  bool later_ = false;
};

/// Rows `from` of a tensor along `axis`.
Result<Tensor> pick_rows(const KernelContext& context, const Tensor& tensor,
                         const std::vector<int64_t>& from, size_t axis);
/// [rows, columns] of int32.
Result<Tensor> token_matrix(const KernelContext& context,
                            const std::vector<std::vector<int32_t>>& rows);

}  // namespace tombolo::ops
