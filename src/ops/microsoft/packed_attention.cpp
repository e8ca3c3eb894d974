// Attention over batches whose padding was taken out, and taking it out.

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "ops/infer_helpers.h"
#include "ops/kernels/movement.h"
#include "ops/microsoft/heads.h"
#include "ops/microsoft/projected.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {

/// Where the tokens of a packed batch belong: from token_offset and cumulative_sequence_length.
struct Packing {
  int64_t batch = 0, steps = 0, tokens = 0;
  std::vector<int64_t> lengths;  ///< per sequence
  std::vector<int64_t> places;   ///< per token: batch * steps + step
};

Result<Packing> read_packing(const KernelContext& context, size_t offsets, size_t cumulative,
                             int64_t tokens) {
  TRY(const Tensor* places, context.input(offsets));
  TRY(const Tensor* ends, context.input(cumulative));
  if (places->rank() != 2)
    return context.error("token_offset must be [batch, steps], is " + to_string(*places));
  Packing result;
  result.batch = places->dim(0), result.steps = places->dim(1), result.tokens = tokens;
  CHECK_OK(check_dims(context, "cumulative_sequence_length", *ends, {{result.batch + 1}}));
  if (tokens > places->size() || ends->get_int64(0) != 0 || ends->get_int64(result.batch) != tokens)
    return context.error("cumulative_sequence_length does not count " + std::to_string(tokens) +
                         " tokens in " + to_string(*places));
  for (int64_t b = 0; b < result.batch; ++b) {
    const int64_t length = ends->get_int64(b + 1) - ends->get_int64(b);
    if (length < 0 || length > result.steps)
      return context.error("a sequence would have " + std::to_string(length) + " tokens");
    result.lengths.push_back(length);
    for (int64_t s = 0; s < length; ++s) result.places.push_back(b * result.steps + s);
  }
  return result;
}

/// [tokens, heads * size] as [batch, heads, steps, size], padding zero; columns from `offset` of
/// rows of `width`, each head `head_stride` after the one before.
template <typename T>
Result<Tensor> unpack(const KernelContext& context, const Packing& packing, const Tensor& x,
                      int64_t heads, int64_t size, int64_t width, int64_t offset,
                      int64_t head_stride) {
  TRY(Tensor out, context.allocate(dtype_of<T>(), {{packing.batch, heads, packing.steps, size}}));
  std::fill_n(out.data<T>(), out.size(), T{});
  for (int64_t t = 0; t < packing.tokens; ++t) {
    const int64_t place = packing.places[static_cast<size_t>(t)];
    const int64_t b = place / packing.steps, s = place % packing.steps;
    for (int64_t h = 0; h < heads; ++h)
      std::copy_n(x.data<T>() + t * width + offset + h * head_stride, size,
                  out.data<T>() + ((b * heads + h) * packing.steps + s) * size);
  }
  return out;
}

template <typename T>
Status attend_packed(KernelContext& context, const Packing& packing, const Projected& parts,
                     int64_t heads, size_t bias_input, DType type) {
  ScoreBias<T> adjust{{}, {}, packing.steps, packing.steps};
  TRY(adjust.bias,
      read_score_bias<T>(context, bias_input, packing.batch, heads, packing.steps, packing.steps));
  const Attend<T> arguments{.q = parts.q,
                            .k = parts.k,
                            .v = parts.v,
                            .scale = attention_scale(context, parts.q.dim(3)),
                            .lengths = packing.lengths};
  TRY(const Tensor y, attend<T>(context, arguments, adjust));
  const int64_t width = heads * parts.v.dim(3);
  TRY(Tensor out, context.allocate(dtype_of<T>(), {{packing.tokens, width}}));
  for (int64_t t = 0; t < packing.tokens; ++t)
    std::copy_n(y.data<T>() + packing.places[static_cast<size_t>(t)] * width, width,
                out.data<T>() + t * width);
  return give(context, 0, type, std::move(out));
}

template <typename T>
Status packed_attention(KernelContext& context, const Tensor& input) {
  TRY(const Tensor* weights, context.input(1));
  const int64_t heads = context.attributes.get_int("num_heads", 0);
  if (input.rank() != 2) return context.error("input must have rank 2, is " + to_string(input));
  TRY(const Projection widths, read_projection(context, input, *weights, heads));
  TRY(const Packing packing, read_packing(context, 3, 4, input.dim(0)));
  TRY(const Tensor in, as<T>(context, input));
  TRY(const Tensor w, as<T>(context, *weights));
  TRY(const Tensor bias, optional_as<T>(context, 2));
  // One batch of all tokens; the heads of its parts are then laid out by sequence.
  TRY(const Projected flat,
      project<T>(context, in.reshaped({{1, input.dim(0), input.dim(1)}}), w, bias, widths));
  Projected parts;
  Tensor* const made[] = {&parts.q, &parts.k, &parts.v};
  const Tensor* const from[] = {&flat.q, &flat.k, &flat.v};
  for (int i = 0; i < 3; ++i) {
    const int64_t size = from[i]->dim(3);
    TRY(*made[i],
        unpack<T>(context, packing, *from[i], heads, size, size, 0, packing.tokens * size));
  }
  return attend_packed<T>(context, packing, parts, heads, 5, input.dtype());
}

Status run_packed_attention(KernelContext& context) {
  TRY(const Tensor* input, context.input(0));
  return with_float(context, *input,
                    [&]<typename T>() { return packed_attention<T>(context, *input); });
}

Status infer_packed_attention(InferContext& context) {
  const SymShape* input = context.shape(0);
  const SymShape* weights = context.shape(1);
  if (input == nullptr || weights == nullptr) return ok();
  CHECK_OK(expect_rank(context, 0, 2));
  CHECK_OK(expect_rank(context, 1, 2));
  const auto sizes = context.attributes.get_ints("qkv_hidden_sizes");
  set_shape(
      context, 0,
      {(*input)[0], sizes.size() == 3 ? SymDim(sizes[2]) : floor_div((*weights)[1], SymDim(3))});
  return ok();
}

template <typename T>
Status packed_multi_head(KernelContext& context, const Tensor& query) {
  const int64_t heads = context.attributes.get_int("num_heads", 0);
  TRY(const Tensor* key, context.optional_input(1));
  TRY(const Tensor* value, context.optional_input(2));
  TRY(const Tensor bias, optional_as<T>(context, 3));
  if (heads < 1 || heads > 1 << 20) return context.error("num_heads is " + std::to_string(heads));
  if ((key == nullptr) != (value == nullptr))
    return context.error("key and value must be given together");
  TRY(const Packing packing, read_packing(context, 4, 5, query.rank() == 0 ? 0 : query.dim(0)));
  Projected parts;
  Tensor* const made[] = {&parts.q, &parts.k, &parts.v};
  const Tensor* const given[] = {&query, key, value};
  int64_t column = 0;  // of the bias
  for (int64_t i = 0; i < 3; ++i) {
    const Tensor& from = key == nullptr ? query : *given[i];
    const bool packed = key == nullptr;
    int64_t size, width, offset = 0, stride;
    if (packed) {
      if (from.rank() != 4 || from.dim(1) != heads || from.dim(2) != 3)
        return context.error("a query alone must be [tokens, " + std::to_string(heads) +
                             ", 3, size], is " + to_string(from));
      size = from.dim(3), width = heads * 3 * size, offset = i * size, stride = 3 * size;
    } else {
      if (from.rank() != 2 || from.dim(0) != packing.tokens || from.dim(1) % heads != 0)
        return context.error("query, key and value must be [tokens, " + std::to_string(heads) +
                             " * size], one is " + to_string(from));
      width = from.dim(1), size = stride = width / heads;
    }
    TRY(Tensor in, as<T>(context, from));
    if (!absent(bias)) {
      if (bias.rank() != 1 || bias.dim(0) < column + heads * size)
        return context.error("bias is too short: " + to_string(bias));
      TRY(Tensor sum, in.clone());
      for (int64_t t = 0; t < packing.tokens; ++t)
        for (int64_t h = 0; h < heads; ++h)
          for (int64_t j = 0; j < size; ++j)
            sum.data<T>()[t * width + offset + h * stride + j] +=
                bias.data<T>()[column + h * size + j];
      in = std::move(sum);
      column += heads * size;
    }
    TRY(*made[i], unpack<T>(context, packing, in, heads, size, width, offset, stride));
  }
  if (parts.q.dim(3) != parts.k.dim(3))
    return context.error("query and key must have one width: " + to_string(query));
  return attend_packed<T>(context, packing, parts, heads, 6, query.dtype());
}

Status run_packed_multi_head(KernelContext& context) {
  TRY(const Tensor* query, context.input(0));
  return with_float(context, *query,
                    [&]<typename T>() { return packed_multi_head<T>(context, *query); });
}

Status infer_packed_multi_head(InferContext& context) {
  const SymShape* query = context.shape(0);
  const SymShape* value = context.shape(2);
  if (query == nullptr) return ok();
  if (query->size() == 4)
    set_shape(context, 0, {(*query)[0], (*query)[1] * (*query)[3]});
  else if (value != nullptr && value->size() == 2 && !query->empty())
    set_shape(context, 0, {(*query)[0], (*value)[1]});
  return ok();
}

/// Tokens in front, in order; then the padding's places. And counts of tokens.
Status run_remove_padding(KernelContext& context) {
  TRY(const Tensor* input, context.input(0));
  TRY(const Tensor* counts, context.input(1));
  if (input->rank() != 3) return context.error("input must have rank 3, is " + to_string(*input));
  const int64_t batch = input->dim(0), steps = input->dim(1), width = input->dim(2);
  CHECK_OK(check_dims(context, "sequence_token_count", *counts, {{batch}}));
  int64_t total = 0, longest = 0;
  for (int64_t b = 0; b < batch; ++b) {
    const int64_t count = counts->get_int64(b);
    if (count < 0 || count > steps)
      return context.error("sequence_token_count has the value " + std::to_string(count) +
                           ", sequences have " + std::to_string(steps) + " steps");
    total += count;
    longest = std::max(longest, count);
  }
  TRY(Tensor * output, context.output(0, input->dtype(), {{total, width}}));
  TRY(Tensor * places, context.output(1, DType::kInt32, {{batch, steps}}));
  TRY(Tensor * ends, context.output(2, DType::kInt32, {{batch + 1}}));
  TRY(Tensor * most, context.output(3, DType::kInt32, {{1}}));
  most->set_int64(0, longest);
  int64_t token = 0, padding = total;
  ends->set_int64(0, 0);
  for (int64_t b = 0; b < batch; ++b) {
    for (int64_t s = 0; s < steps; ++s) {
      const int64_t place = b * steps + s;
      if (s >= counts->get_int64(b)) {
        places->set_int64(padding++, place);
        continue;
      }
      copy_elements(*input, place * width, *output, token * width, width);
      places->set_int64(token++, place);
    }
    ends->set_int64(b + 1, token);
  }
  return ok();
}

Status infer_remove_padding(InferContext& context) {
  const SymShape* input = context.shape(0);
  if (input == nullptr) return ok();
  CHECK_OK(expect_rank(context, 0, 3));
  set_shape(context, 0, {context.host.fresh_symbol("tokens"), (*input)[2]});
  context.set_tensor(1, DType::kInt32, {(*input)[0], (*input)[1]});
  context.set_tensor(2, DType::kInt32, {(*input)[0] + SymDim(1)});
  context.set_tensor(3, DType::kInt32, {SymDim(1)});
  return ok();
}

/// The inverse: padding becomes zeros.
Status run_restore_padding(KernelContext& context) {
  TRY(const Tensor* input, context.input(0));
  TRY(const Tensor* places, context.input(1));
  if (input->rank() != 2 || places->rank() != 2 || input->dim(0) > places->size())
    return context.error("input and token_offset do not fit each other: " + to_string(*input) +
                         " and " + to_string(*places));
  const int64_t width = input->dim(1), room = places->size();
  TRY(Tensor * output,
      context.output(0, input->dtype(), {{places->dim(0), places->dim(1), width}}));
  fill_zero(*output);
  for (int64_t t = 0; t < input->dim(0); ++t) {
    const int64_t place = places->get_int64(t);
    if (place < 0 || place >= room)
      return context.error("token_offset has the value " + std::to_string(place) + ", there are " +
                           std::to_string(room) + " places");
    copy_elements(*input, t * width, *output, place * width, width);
  }
  return ok();
}

Status infer_restore_padding(InferContext& context) {
  const SymShape* input = context.shape(0);
  const SymShape* places = context.shape(1);
  if (input == nullptr || places == nullptr) return ok();
  CHECK_OK(expect_rank(context, 0, 2));
  CHECK_OK(expect_rank(context, 1, 2));
  set_shape(context, 0, {(*places)[0], (*places)[1], (*input)[1]});
  return ok();
}

}  // namespace

OPERATOR(microsoft_PackedAttention) = {
    .name = "PackedAttention",
    .domain = "com.microsoft",
    .doc = "Attention over sequences without their padding",
    .versions = {1},
    .inputs =
        {
            {"input", "T"},
            {"weights", "T"},
            {"bias", "T"},
            {"token_offset", "M"},
            {"cumulative_sequence_length", "M"},
            {"attention_bias", "T", kOptional},
        },
    .outputs =
        {
            {"output", "T"},
        },
    .attributes =
        {
            {"num_heads", required(Attr::kInt)},
            {"qkv_hidden_sizes", Attr::kInts},
            {"scale", Attr::kFloat},
        },
    .types =
        {
            {"T", {{1, kF16 | kF32}}},
            {"M", {{1, kI32}}},
        },
    .infer = infer_packed_attention,
    .reference = run_packed_attention,
};

OPERATOR(microsoft_PackedMultiHeadAttention) = {
    .name = "PackedMultiHeadAttention",
    .domain = "com.microsoft",
    .doc = "MultiHeadAttention over sequences without their padding",
    .versions = {1},
    .inputs =
        {
            {"query", "T"},
            {"key", "T", kOptional},
            {"value", "T", kOptional},
            {"bias", "T", kOptional},
            {"token_offset", "M"},
            {"cumulative_sequence_length", "M"},
            {"attention_bias", "T", kOptional},
        },
    .outputs =
        {
            {"output", "T"},
        },
    .attributes =
        {
            {"mask_filter_value", Attr::kFloat},
            {"num_heads", required(Attr::kInt)},
            {"scale", Attr::kFloat},
        },
    .types =
        {
            {"T", {{1, kF16 | kF32}}},
            {"M", {{1, kI32}}},
        },
    .infer = infer_packed_multi_head,
    .reference = run_packed_multi_head,
};

OPERATOR(microsoft_RemovePadding) = {
    .name = "RemovePadding",
    .domain = "com.microsoft",
    .doc = "takes the padding out of a batch of sequences",
    .versions = {1},
    .inputs =
        {
            {"input", "T"},
            {"sequence_token_count", "M"},
        },
    .outputs =
        {
            {"output", "T"},
            {"token_offset", "M"},
            {"cumulated_seq_len", "M"},
            {"max_seq_len", "M"},
        },
    .types =
        {
            {"T", {{1, kF16 | kF32}}},
            {"M", {{1, kI32}}},
        },
    .infer = infer_remove_padding,
    .reference = run_remove_padding,
};

OPERATOR(microsoft_RestorePadding) = {
    .name = "RestorePadding",
    .domain = "com.microsoft",
    .doc = "puts the padding back",
    .versions = {1},
    .inputs =
        {
            {"input", "T"},
            {"token_offset", "M"},
        },
    .outputs =
        {
            {"output", "T"},
        },
    .types =
        {
            {"T", {{1, kF16 | kF32}}},
            {"M", {{1, kI32}}},
        },
    .infer = infer_restore_padding,
    .reference = run_restore_padding,
};

}  // namespace tombolo::ops
