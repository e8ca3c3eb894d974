// NGramHashMapping: numbers of the n-grams that end at each token, by hashing. Sequences in a
// batch, or one behind the other with their bounds.

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "ops/infer_helpers.h"
#include "ops/kernels/compute.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {

struct Hashing {
  int64_t longest = 0, heads = 0, pad = 0;
  const Tensor* ids = nullptr;
  const Tensor* multipliers = nullptr;
  const Tensor* sizes = nullptr;
  const Tensor* past = nullptr;
  const Tensor* offsets = nullptr;
  const Tensor* segments = nullptr;
  const Tensor* past_segments = nullptr;
  bool has_eos = false, resets = false;
  int64_t eos = 0;

  int64_t history() const { return longest - 1; }
  int64_t width() const { return history() * heads; }
  int64_t filler() const { return has_eos ? eos : pad; }
};

Result<Hashing> read_hashing(const KernelContext& context, size_t past, size_t offsets,
                             size_t eos) {
  Hashing h;
  h.longest = context.attributes.get_int("max_ngram_size", 0);
  h.heads = context.attributes.get_int("n_head_per_ngram", 0);
  h.pad = context.attributes.get_int("pad_id", 0);
  if (h.longest < 2 || h.longest > 4096 || h.heads < 1 || h.heads > 65536)
    return context.error("max_ngram_size is " + std::to_string(h.longest) +
                         ", n_head_per_ngram is " + std::to_string(h.heads));
  TRY(h.ids, context.input(0));
  TRY(h.multipliers, context.input(1));
  TRY(h.sizes, context.input(2));
  TRY(h.past, context.optional_input(past));
  TRY(h.offsets, context.optional_input(offsets));
  TRY(const Tensor* end, context.optional_input(eos));
  TRY(h.segments, context.optional_input(eos + 1));
  const DType type = h.ids->dtype();
  if (type != DType::kInt32 && type != DType::kInt64)
    return context.error("input_ids must be int32 or int64, is " + to_string(*h.ids));
  for (const Tensor* each : {h.multipliers, h.sizes, h.past, h.offsets, end})
    if (each != nullptr && each->dtype() != type)
      return context.error("an input has another type than input_ids: " + to_string(*each));
  if (h.multipliers->rank() != 1 || h.multipliers->size() < h.longest)
    return context.error("multipliers must hold " + std::to_string(h.longest) + " numbers, is " +
                         to_string(*h.multipliers));
  CHECK_OK(check_dims(context, "vocab_sizes", *h.sizes, {{h.width()}}));
  if (h.offsets != nullptr)
    CHECK_OK(check_dims(context, "head_offsets", *h.offsets, {{h.width()}}));
  for (int64_t i = 0; i < h.sizes->size(); ++i)
    if (h.sizes->get_int64(i) < 1)
      return context.error("vocab_sizes holds " + std::to_string(h.sizes->get_int64(i)));
  if (end != nullptr) {
    if (end->size() != 1) return context.error("eos_token_id must be one number");
    h.has_eos = true;
    h.eos = end->get_int64(0);
  }
  h.resets = h.has_eos && context.attributes.get_int("reset_on_eos", 0) != 0;
  return h;
}

/// One sequence: what lies before it, then its tokens `first` to `last` of the input.
struct Line {
  std::vector<int64_t> ids, segments;
};

Line read_line(const Hashing& h, int64_t batch, int64_t first, int64_t last) {
  Line line;
  const int64_t history = h.history();
  for (int64_t i = 0; i < history; ++i)
    line.ids.push_back(h.past != nullptr ? h.past->get_int64(batch * history + i) : h.filler());
  for (int64_t t = first; t < last; ++t) line.ids.push_back(h.ids->get_int64(t));
  if (h.segments == nullptr) return line;
  for (int64_t i = 0; i < history; ++i)
    line.segments.push_back(h.past_segments != nullptr
                                ? h.past_segments->get_int64(batch * history + i)
                                : h.segments->get_int64(first));
  for (int64_t t = first; t < last; ++t) line.segments.push_back(h.segments->get_int64(t));
  return line;
}

/// Hashes of the tokens behind the history; overflow wraps in T.
template <typename T>
void hash_line(const Hashing& h, const Line& line, T* to) {
  using U = std::make_unsigned_t<T>;
  const auto count = static_cast<int64_t>(line.ids.size());
  int64_t begin = 0;  // what lies before does not count
  for (int64_t t = 0; t < count; ++t) {
    const auto at = static_cast<size_t>(t);
    if (t > 0 && h.resets && line.ids[at - 1] == h.eos) begin = t;
    if (t > 0 && !line.segments.empty() && line.segments[at] != line.segments[at - 1]) begin = t;
    if (t < h.history()) continue;
    U mix = 0;
    for (int64_t k = 0; k < h.longest; ++k) {
      const int64_t id = t - k < begin ? h.filler() : line.ids[static_cast<size_t>(t - k)];
      mix ^= static_cast<U>(id) * static_cast<U>(h.multipliers->get_int64(k));
      if (k == 0) continue;
      for (int64_t head = 0; head < h.heads; ++head) {
        const int64_t column = (k - 1) * h.heads + head;
        const auto size = static_cast<T>(h.sizes->get_int64(column));
        T hash = static_cast<T>(static_cast<T>(mix) % size);
        if (hash < 0) hash = static_cast<T>(hash + size);
        if (h.offsets != nullptr)
          hash =
              static_cast<T>(static_cast<U>(hash) + static_cast<U>(h.offsets->get_int64(column)));
        *to++ = hash;
      }
    }
  }
}

void hash_line(const Hashing& h, const Line& line, Tensor& out, int64_t row) {
  if (out.dtype() == DType::kInt32)
    hash_line(h, line, out.data<int32_t>() + row * h.width());
  else
    hash_line(h, line, out.data<int64_t>() + row * h.width());
}

void put_tail(const std::vector<int64_t>& values, size_t end, int64_t count, Tensor& out,
              int64_t row) {
  for (int64_t i = 0; i < count; ++i)
    out.set_int64(row * count + i,
                  values[end - static_cast<size_t>(count) + static_cast<size_t>(i)]);
}

Status run_ngram_hash(KernelContext& context) {
  TRY(const Hashing h, read_hashing(context, 3, 4, 5));
  if (h.ids->rank() != 2)
    return context.error("input_ids must be [batch, steps], is " + to_string(*h.ids));
  const int64_t batch = h.ids->dim(0), steps = h.ids->dim(1);
  if (h.past != nullptr) CHECK_OK(check_dims(context, "past_ids", *h.past, {{batch, h.history()}}));
  if (h.segments != nullptr)
    CHECK_OK(check_dims(context, "segment_ids", *h.segments, h.ids->dims().span()));
  const DType type = h.ids->dtype();
  TRY(Tensor * hashes, context.output(0, type, {{batch, steps, h.width()}}));
  TRY(Tensor present, context.allocate(type, {{batch, h.history()}}));
  for (int64_t b = 0; b < batch; ++b) {
    const Line line =
        steps == 0 && h.segments != nullptr ? Line{} : read_line(h, b, b * steps, (b + 1) * steps);
    if (line.ids.empty()) return context.error("input_ids is empty");
    hash_line(h, line, *hashes, b * steps);
    put_tail(line.ids, line.ids.size(), h.history(), present, b);
  }
  return give(context, 1, type, std::move(present));
}

Status run_varlen_ngram_hash(KernelContext& context) {
  TRY(Hashing h, read_hashing(context, 4, 5, 6));
  TRY(const Tensor* bounds, context.input(3));
  TRY(h.past_segments, context.optional_input(8));
  TRY(const Tensor* capture, context.optional_input(9));
  const int64_t capacity = context.attributes.get_int("state_update_capacity", 0);
  if (h.ids->rank() != 1 || bounds->rank() != 1 || bounds->size() < 1)
    return context.error("input_ids and cumulative_sequence_length must be lists, are " +
                         to_string(*h.ids) + " and " + to_string(*bounds));
  const int64_t batch = bounds->size() - 1, tokens = h.ids->size();
  if (capacity < 0 || capacity > 8 || (capacity > 0) != (capture != nullptr))
    return context.error("capture_count goes with a state_update_capacity of 1 to 8");
  if (h.past != nullptr) CHECK_OK(check_dims(context, "past_ids", *h.past, {{batch, h.history()}}));
  if (h.segments != nullptr) CHECK_OK(check_dims(context, "segment_ids", *h.segments, {{tokens}}));
  if (h.past_segments != nullptr)
    CHECK_OK(check_dims(context, "past_segment_ids", *h.past_segments, {{batch, h.history()}}));
  if (capture != nullptr) CHECK_OK(check_dims(context, "capture_count", *capture, {{batch}}));
  const DType type = h.ids->dtype();
  TRY(Tensor * hashes, context.output(0, type, {{tokens, h.width()}}));
  TRY(Tensor present, context.allocate(type, {{batch, h.history()}}));
  TRY(Tensor segments, context.allocate(DType::kInt32, {{batch, h.history()}}));
  TRY(Tensor update, context.allocate(type, {{batch, capacity, h.history()}}));
  for (int64_t i = 0; i < update.size(); ++i) update.set_int64(i, h.pad);
  for (int64_t i = 0; i < segments.size(); ++i) segments.set_int64(i, 0);
  if (bounds->get_int64(0) != 0 || bounds->get_int64(batch) != tokens)
    return context.error("cumulative_sequence_length must go from 0 to " + std::to_string(tokens));
  for (int64_t b = 0; b < batch; ++b) {
    const int64_t first = bounds->get_int64(b), last = bounds->get_int64(b + 1);
    if (first >= last || last > tokens)
      return context.error("sequence " + std::to_string(b) + " would be tokens " +
                           std::to_string(first) + " to " + std::to_string(last));
    const Line line = read_line(h, b, first, last);
    hash_line(h, line, *hashes, first);
    put_tail(line.ids, line.ids.size(), h.history(), present, b);
    if (!line.segments.empty())
      put_tail(line.segments, line.segments.size(), h.history(), segments, b);
    if (capture == nullptr) continue;
    const int64_t count =
        std::clamp<int64_t>(capture->get_int64(b), 0, std::min(capacity, last - first));
    for (int64_t k = 0; k < count; ++k)
      put_tail(line.ids, static_cast<size_t>(h.history() + k + 1), h.history(), update,
               b * capacity + k);
  }
  CHECK_OK(give(context, 1, type, std::move(present)));
  CHECK_OK(give(context, 2, DType::kInt32, std::move(segments)));
  return give(context, 3, type, std::move(update));
}

Status infer_ngram_hash(InferContext& context) {
  const SymShape* ids = context.shape(0);
  if (ids == nullptr) return ok();
  const int64_t history = std::max<int64_t>(context.attributes.get_int("max_ngram_size", 2), 1) - 1;
  const int64_t heads = context.attributes.get_int("n_head_per_ngram", 1);
  if (history < 1 || history > 4096 || heads < 1 || heads > 65536) return ok();
  CHECK_OK(expect_rank(context, 0, 2));
  set_shape(context, 0, {(*ids)[0], (*ids)[1], SymDim(history * heads)});
  set_shape(context, 1, {(*ids)[0], SymDim(history)});
  return ok();
}

Status infer_varlen_ngram_hash(InferContext& context) {
  const SymShape* ids = context.shape(0);
  const SymShape* bounds = context.shape(3);
  const int64_t history = std::max<int64_t>(context.attributes.get_int("max_ngram_size", 2), 1) - 1;
  const int64_t heads = context.attributes.get_int("n_head_per_ngram", 1);
  if (ids == nullptr || bounds == nullptr || bounds->size() != 1 || history < 1 || history > 4096 ||
      heads < 1 || heads > 65536)
    return ok();
  CHECK_OK(expect_rank(context, 0, 1));
  const SymDim batch = (*bounds)[0] - SymDim(1);
  set_shape(context, 0, {(*ids)[0], SymDim(history * heads)});
  set_shape(context, 1, {batch, SymDim(history)});
  set_shape(context, 2, {batch, SymDim(history)});
  set_shape(
      context, 3,
      {batch, SymDim(context.attributes.get_int("state_update_capacity", 0)), SymDim(history)});
  return ok();
}

}  // namespace

OPERATOR(microsoft_NGramHashMapping) = {
    .name = "NGramHashMapping",
    .domain = "com.microsoft",
    .doc = "hashes of the n-grams that end at each token",
    .versions = {1},
    .inputs =
        {
            {"input_ids", "M"},
            {"multipliers", "M"},
            {"vocab_sizes", "M"},
            {"past_ids", "M", kOptional},
            {"head_offsets", "M", kOptional},
            {"eos_token_id", "M", kOptional},
            {"segment_ids", "tensor(int32)", kOptional},
        },
    .outputs = {{"hash_ids", "M"}, {"present_ids", "M", kOptional}},
    .attributes =
        {
            {"max_ngram_size", required(Attr::kInt)},
            {"n_head_per_ngram", required(Attr::kInt)},
            {"pad_id", required(Attr::kInt)},
            {"reset_on_eos", 0},
        },
    .types = {{"M", {{1, kI32 | kI64}}}},
    .infer = infer_ngram_hash,
    .reference = run_ngram_hash,
};

OPERATOR(microsoft_VarlenNGramHashMapping) = {
    .name = "VarlenNGramHashMapping",
    .domain = "com.microsoft",
    .doc = "hashes of the n-grams that end at each token, of sequences one behind the other",
    .versions = {1},
    .inputs =
        {
            {"input_ids", "M"},
            {"multipliers", "M"},
            {"vocab_sizes", "M"},
            {"cumulative_sequence_length", "S"},
            {"past_ids", "M", kOptional},
            {"head_offsets", "M", kOptional},
            {"eos_token_id", "M", kOptional},
            {"segment_ids", "tensor(int32)", kOptional},
            {"past_segment_ids", "S", kOptional},
            {"capture_count", "S", kOptional},
        },
    .outputs =
        {
            {"hash_ids", "M"},
            {"present_ids", "M", kOptional},
            {"present_segment_ids", "S", kOptional},
            {"state_update", "M", kOptional},
        },
    .attributes =
        {
            {"max_ngram_size", required(Attr::kInt)},
            {"n_head_per_ngram", required(Attr::kInt)},
            {"pad_id", required(Attr::kInt)},
            {"reset_on_eos", 0},
            {"state_update_capacity", 0},
        },
    .types = {{"M", {{1, kI32 | kI64}}}, {"S", {{1, kI32}}}},
    .infer = infer_varlen_ngram_hash,
    .reference = run_varlen_ngram_hash,
};

}  // namespace tombolo::ops
