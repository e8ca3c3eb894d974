// Attention of projected queries, keys and values, with a cache apart for keys and values.

#include <string>

#include "ops/infer_helpers.h"
#include "ops/kernels/arguments.h"
#include "ops/microsoft/heads.h"
#include "ops/microsoft/projected.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {

/// Where the inputs lie; those of query, key and value are 0 to 2.
struct Ports {
  size_t bias, mask, score_bias, past_key, past_value, past_length, beams;
};
constexpr Ports kMultiHead = {3, 4, 5, 6, 7, 8, 99};
constexpr Ports kDecoderMasked = {10, 3, 4, 5, 6, 7, 8};

/// Queries, keys and values as heads from whichever packing the inputs have.
template <typename T>
Result<Projected> read_parts(const KernelContext& context, const Ports& ports, int64_t heads) {
  TRY(const Tensor* query, context.input(0));
  TRY(const Tensor* key, context.optional_input(1));
  TRY(const Tensor* value, context.optional_input(2));
  TRY(const Tensor bias, optional_as<T>(context, ports.bias));
  Projected parts;
  if (key == nullptr && query->rank() == 5) {
    if (query->dim(2) != heads || query->dim(3) != 3)
      return context.error("a packed query must be [batch, steps, " + std::to_string(heads) +
                           ", 3, size], is " + to_string(*query));
    TRY(parts.q, packed_heads<T>(context, *query, 0, bias));
    TRY(parts.k, packed_heads<T>(context, *query, 1, bias));
    TRY(parts.v, packed_heads<T>(context, *query, 2, bias));
    return parts;
  }
  if (key == nullptr) {
    if (query->rank() != 3 || query->dim(2) % (3 * heads) != 0)
      return context.error("a query without key must be [batch, steps, 3 * " +
                           std::to_string(heads) + " * size], is " + to_string(*query));
    const int64_t width = query->dim(2);
    TRY(const Tensor in, as<T>(context, *query));
    TRY(Tensor all, context.allocate(dtype_of<T>(), query->dims()));
    if (!absent(bias)) CHECK_OK(check_dims(context, "bias", bias, {{width}}));
    for (int64_t i = 0; i < all.size(); ++i)
      all.data<T>()[i] = in.data<T>()[i] + (absent(bias) ? T{} : bias.data<T>()[i % width]);
    return split_projection<T>(context, all, {heads, width / 3, width / 3, width / 3});
  }
  TRY(parts.q, split_heads<T>(context, "query", *query, heads, bias, 0));
  const int64_t hidden = query->dim(2), batch = query->dim(0), size = hidden / heads;
  if (key->rank() == 5) {
    CHECK_OK(check_dims(context, "a packed key", *key, {{batch, key->dim(1), heads, 2, size}}));
    TRY(parts.k, packed_heads<T>(context, *key, 0));
    TRY(parts.v, packed_heads<T>(context, *key, 1));
    return parts;
  }
  if (value == nullptr) return context.error("value is needed with a key of rank 3 or 4");
  if (key->rank() == 4) {
    CHECK_OK(check_dims(context, "key", *key, {{batch, heads, key->dim(2), size}}));
    if (value->rank() != 4) return context.error("value must have rank 4, is " + to_string(*value));
    CHECK_OK(check_dims(context, "value", *value, {{batch, heads, key->dim(2), value->dim(3)}}));
    TRY(parts.k, as<T>(context, *key));
    TRY(parts.v, as<T>(context, *value));
    return parts;
  }
  TRY(parts.k, split_heads<T>(context, "key", *key, heads, bias, hidden));
  TRY(parts.v, split_heads<T>(context, "value", *value, heads, bias, 2 * hidden));
  if (parts.k.dim(0) != batch || parts.k.dim(3) != size || parts.v.dim(0) != batch ||
      parts.v.dim(2) != parts.k.dim(2))
    return context.error("query, key and value do not fit each other: " + to_string(*query) + ", " +
                         to_string(*key) + ", " + to_string(*value));
  return parts;
}

template <typename T>
Status multi_head_attention(KernelContext& context, const Ports& ports, DType type) {
  const int64_t heads = context.attributes.get_int("num_heads", 0);
  if (heads < 1 || heads > 1 << 20) return context.error("num_heads is " + std::to_string(heads));
  TRY(const Projected parts, read_parts<T>(context, ports, heads));
  TRY(const Tensor past_key, optional_as<T>(context, ports.past_key));
  TRY(const Tensor past_value, optional_as<T>(context, ports.past_value));
  if (absent(past_key) != absent(past_value))
    return context.error("past_key and past_value must be given together");
  int64_t before = 0, room = 0;
  const int64_t rows = parts.q.dim(2);
  if (!absent(past_key)) {
    if (past_key.rank() != 4 || past_value.rank() != 4 || past_key.dim(2) != past_value.dim(2))
      return context.error("past_key and past_value must be [batch, heads, length, size], are " +
                           to_string(past_key) + " and " + to_string(past_value));
    before = past_key.dim(2);
    if (context.has_input(ports.past_length)) {
      TRY(before, scalar_int(context, ports.past_length, "past_sequence_length"));
      room = past_key.dim(2);
      if (before < 0 || before > room - parts.k.dim(2))
        return context.error("past_sequence_length is " + std::to_string(before) +
                             ", the buffer holds " + std::to_string(room) + " steps, " +
                             std::to_string(parts.k.dim(2)) + " are to be added");
    }
  }
  TRY(const Tensor old_keys,
      follow_beams<T>(context, past_key, before, ports.beams, ports.beams + 1));
  TRY(const Tensor old_values,
      follow_beams<T>(context, past_value, before, ports.beams, ports.beams + 1));
  TRY(Tensor keys, append_heads<T>(context, "past_key", old_keys, before, parts.k));
  TRY(Tensor values, append_heads<T>(context, "past_value", old_values, before, parts.v));
  const int64_t batch = parts.q.dim(0), columns = keys.dim(2), size = parts.q.dim(3);
  TRY(const Tensor* mask, context.optional_input(ports.mask));
  ScoreBias<T> adjust{{}, {}, rows, columns};
  const auto filter =
      static_cast<double>(context.attributes.get_float("mask_filter_value", -10000.0f));
  TRY(adjust.mask,
      padding_mask<T>(context, mask, context.attributes.get_int("unidirectional", 0) != 0, filter,
                      batch, rows, columns, before));
  TRY(adjust.bias, read_score_bias<T>(context, ports.score_bias, batch, heads, rows, columns));
  Tensor kept;
  Attend<T> arguments{
      .q = parts.q, .k = keys, .v = values, .scale = attention_scale(context, size)};
  if (context.wants_output(3)) {
    TRY(kept, context.allocate(dtype_of<T>(), {{batch, heads, rows, columns}}));
    arguments.kept = &kept;
  }
  TRY(Tensor y, attend<T>(context, arguments, adjust));
  if (context.wants_output(3)) CHECK_OK(give(context, 3, type, std::move(kept)));
  if (context.wants_output(1)) {
    // Beams are followed for the scores alone: the cache keeps its order.
    TRY(Tensor present, room == 0
                            ? Result<Tensor>(keys)
                            : append_heads<T>(context, "past_key", past_key, before, parts.k));
    TRY(present, refill_cache<T>(context, present, past_key, room));
    CHECK_OK(give(context, 1, type, std::move(present)));
  }
  if (context.wants_output(2)) {
    // Beams are followed for the scores alone: the cache keeps its order.
    TRY(Tensor present, room == 0
                            ? Result<Tensor>(values)
                            : append_heads<T>(context, "past_value", past_value, before, parts.v));
    TRY(present, refill_cache<T>(context, present, past_value, room));
    CHECK_OK(give(context, 2, type, std::move(present)));
  }
  return give(context, 0, type, std::move(y));
}

Status run_with(KernelContext& context, const Ports& ports) {
  TRY(const Tensor* query, context.input(0));
  return with_float(context, *query, [&]<typename T>() {
    return multi_head_attention<T>(context, ports, query->dtype());
  });
}
Status run_multi_head_attention(KernelContext& context) { return run_with(context, kMultiHead); }
Status run_decoder_masked(KernelContext& context) { return run_with(context, kDecoderMasked); }

Status infer_with(InferContext& context, const Ports& ports) {
  const SymShape* query = context.shape(0);
  const SymShape* key = context.shape(1);
  const SymShape* value = context.shape(2);
  const int64_t heads = context.attributes.get_int("num_heads", 0);
  if (heads < 1 || heads > 1 << 20)
    return context.error("num_heads must be at least 1, and not huge");
  if (query == nullptr || (query->size() != 3 && query->size() != 5)) return ok();
  SymDim width, size, value_size, length;
  if (query->size() == 5) {
    size = value_size = (*query)[4];
    length = (*query)[1];
  } else if (!context.has_input(1)) {
    size = value_size = floor_div((*query)[2], SymDim(3 * heads));
    length = (*query)[1];
  } else {
    size = floor_div((*query)[2], SymDim(heads));
    if (key != nullptr && key->size() == 5) {
      value_size = size;
      length = (*key)[1];
    } else if (key != nullptr && (key->size() == 3 || key->size() == 4)) {
      length = (*key)[key->size() == 3 ? 1 : 2];
      if (value != nullptr && value->size() == key->size())
        value_size = value->size() == 4 ? (*value)[3] : floor_div((*value)[2], SymDim(heads));
    }
  }
  width = value_size * SymDim(heads);
  if (value != nullptr && value->size() == 3) width = (*value)[2];
  set_shape(context, 0, {(*query)[0], (*query)[1], width});
  SymDim total = length;
  if (context.has_input(ports.past_key)) {
    const SymShape* past = context.shape(ports.past_key);
    const SymDim before = past != nullptr && past->size() == 4 ? (*past)[2] : SymDim();
    total = context.has_input(ports.past_length) ? before : before + length;
  }
  set_shape(context, 1, {(*query)[0], SymDim(heads), total, size});
  set_shape(context, 2, {(*query)[0], SymDim(heads), total, value_size});
  const SymDim columns = context.has_input(ports.past_length) ? SymDim() : total;
  context.set_tensor(3, context.elem(0), {(*query)[0], SymDim(heads), (*query)[1], columns});
  return ok();
}
Status infer_multi_head_attention(InferContext& context) { return infer_with(context, kMultiHead); }
Status infer_decoder_masked(InferContext& context) { return infer_with(context, kDecoderMasked); }

template <typename T>
Status decoder_self_attention(KernelContext& context, const Tensor& input) {
  TRY(const Tensor* weights, context.input(1));
  const int64_t heads = context.attributes.get_int("num_heads", 0);
  TRY(const Projection widths, read_projection(context, input, *weights, heads));
  if (input.rank() != 3) return context.error("input must have rank 3, is " + to_string(input));
  TRY(const Tensor in, as<T>(context, input));
  TRY(const Tensor w, as<T>(context, *weights));
  TRY(const Tensor bias, optional_as<T>(context, 2));
  TRY(Projected parts, project<T>(context, in, w, bias, widths));
  return attend_projected<T>(
      context, std::move(parts), widths, input.dtype(),
      {.mask = 3, .past = 4, .bias = 5, .past_length = 6, .present = 1, .beams = 7});
}
Status run_decoder_self_attention(KernelContext& context) {
  TRY(const Tensor* input, context.input(0));
  return with_float(context, *input,
                    [&]<typename T>() { return decoder_self_attention<T>(context, *input); });
}
Status infer_decoder_self_attention(InferContext& context) {
  return infer_projected(context, 4, 6);
}

}  // namespace

OPERATOR(microsoft_MultiHeadAttention) = {
    .name = "MultiHeadAttention",
    .domain = "com.microsoft",
    .doc = "attention of queries, keys and values, packed or apart, with bias, masks and cache",
    .versions = {1},
    .inputs =
        {
            {"query", "T"},
            {"key", "T", kOptional},
            {"value", "T", kOptional},
            {"bias", "T", kOptional},
            {"key_padding_mask", "M", kOptional},
            {"attention_bias", "T", kOptional},
            {"past_key", "T", kOptional},
            {"past_value", "T", kOptional},
            {"past_sequence_length", "M", kOptional},
            {"cache_indirection", "M", kOptional},
        },
    .outputs =
        {
            {"output", "T"},
            {"present_key", "T", kOptional},
            {"present_value", "T", kOptional},
            {"qk", "QK", kOptional},
        },
    .attributes =
        {
            {"mask_filter_value", Attr::kFloat},
            {"num_heads", required(Attr::kInt)},
            {"scale", Attr::kFloat},
            {"unidirectional", 0},
        },
    .types =
        {
            {"T", {{1, kBf16 | kF16 | kF32}}},
            {"QK", {{1, kBf16 | kF16 | kF32}}},
            {"M", {{1, kI32}}},
        },
    .infer = infer_multi_head_attention,
    .reference = run_multi_head_attention,
};

OPERATOR(microsoft_DecoderMaskedMultiHeadAttention) = {
    .name = "DecoderMaskedMultiHeadAttention",
    .domain = "com.microsoft",
    .doc = "attention of one step with a cache that beams share",
    .versions = {1},
    .inputs =
        {
            {"query", "T"},
            {"key", "T", kOptional},
            {"value", "T", kOptional},
            {"mask_index", "M", kOptional},
            {"attention_bias", "T", kOptional},
            {"past_key", "T", kOptional},
            {"past_value", "T", kOptional},
            {"past_sequence_length", "M", kOptional},
            {"beam_width", "M", kOptional},
            {"cache_indirection", "M", kOptional},
            {"bias", "T", kOptional},
        },
    .outputs =
        {
            {"output", "T"},
            {"present_key", "T", kOptional},
            {"present_value", "T", kOptional},
            {"qk", "QK", kOptional},
        },
    .attributes =
        {
            {"mask_filter_value", Attr::kFloat},
            {"num_heads", required(Attr::kInt)},
            {"output_qk", Attr::kInt},
            {"past_present_share_buffer", Attr::kInt},
            {"scale", Attr::kFloat},
        },
    .types =
        {
            {"T", {{1, kF16 | kF32}}},
            {"QK", {{1, kF16 | kF32}}},
            {"M", {{1, kI32}}},
        },
    .infer = infer_decoder_masked,
    .reference = run_decoder_masked,
};

OPERATOR(microsoft_DecoderMaskedSelfAttention) = {
    .name = "DecoderMaskedSelfAttention",
    .domain = "com.microsoft",
    .doc = "Attention of one step with a cache that beams share",
    .versions = {1},
    .inputs =
        {
            {"input", "T"},
            {"weights", "T"},
            {"bias", "T"},
            {"mask_index", "M", kOptional},
            {"past", "T"},
            {"attention_bias", "T", kOptional},
            {"past_sequence_length", "M"},
            {"beam_width", "M", kOptional},
            {"cache_indirection", "M", kOptional},
        },
    .outputs =
        {
            {"output", "T"},
            {"present", "T"},
        },
    .attributes =
        {
            {"do_rotary", Attr::kInt},
            {"mask_filter_value", Attr::kFloat},
            {"num_heads", required(Attr::kInt)},
            {"past_present_share_buffer", Attr::kInt},
            {"scale", Attr::kFloat},
        },
    .types =
        {
            {"T", {{1, kF16 | kF32}}},
            {"M", {{1, kI32}}},
        },
    .infer = infer_decoder_self_attention,
    .reference = run_decoder_self_attention,
};

}  // namespace tombolo::ops
