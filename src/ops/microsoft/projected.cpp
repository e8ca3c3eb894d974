#include "ops/microsoft/projected.h"

#include <string>

#include "ops/infer_helpers.h"
#include "ops/kernels/arguments.h"
#include "ops/microsoft/rotate.h"

namespace tombolo::ops {

Result<Projection> read_projection(const KernelContext& context, const Tensor& input,
                                   const Tensor& weights, int64_t heads) {
  if (input.rank() < 2 || input.rank() > 3 || weights.rank() != 2 ||
      weights.dim(0) != input.dim(input.rank() - 1))
    return context.error("input and weights do not fit each other: " + to_string(input) + " and " +
                         to_string(weights));
  Projection result;
  result.heads = heads;
  result.q = result.k = result.v = weights.dim(1) / 3;
  const auto sizes = context.attributes.get_ints("qkv_hidden_sizes");
  if (!sizes.empty()) {
    if (sizes.size() != 3 || sizes[0] != sizes[1])
      return context.error("qkv_hidden_sizes must be three sizes, the first two equal");
    result.q = sizes[0], result.k = sizes[1], result.v = sizes[2];
  }
  const int64_t limit = weights.dim(1);
  if (heads < 1 || result.q < 0 || result.v < 0 || result.q > limit || result.v > limit ||
      result.width() != limit || result.q % heads != 0 || result.v % heads != 0)
    return context.error("weights of " + std::to_string(limit) + " columns do not split into " +
                         std::to_string(heads) + " heads of queries, keys and values");
  return result;
}

template <typename T>
Status attend_projected(KernelContext& context, Projected parts, const Projection& widths,
                        DType type, const ProjectedPorts& ports) {
  const auto& attributes = context.attributes;
  const int64_t batch = parts.q.dim(0), rows = parts.q.dim(2), size = parts.q.dim(3);
  const bool shared = attributes.get_int("past_present_share_buffer", 0) != 0;
  const Tensor* past = nullptr;
  if (ports.past >= 0) {
    TRY(past, context.optional_input(static_cast<size_t>(ports.past)));
  }
  int64_t before = 0, room = 0;
  Tensor past_key, past_value;
  if (past != nullptr) {
    if (past->rank() != 5 || past->dim(0) != 2)
      return context.error("past must be [2, batch, heads, length, size], is " + to_string(*past));
    CHECK_OK(check_dims(context, "past", *past, {{2, batch, widths.heads, past->dim(3), size}}));
    if (parts.v.dim(3) != size)
      return context.error("with a past, queries and values must have one size");
    before = past->dim(3);
    const bool said =
        ports.past_length >= 0 && context.has_input(static_cast<size_t>(ports.past_length));
    if (shared && said) {
      TRY(before,
          scalar_int(context, static_cast<size_t>(ports.past_length), "past_sequence_length"));
      room = past->dim(3);
      if (before < 0 || before > room - rows)
        return context.error("past_sequence_length is " + std::to_string(before) +
                             ", the buffer holds " + std::to_string(room) + " steps, " +
                             std::to_string(rows) + " are to be added");
    }
    TRY(const Tensor all, as<T>(context, *past));
    const int64_t half = all.size() / 2;
    const int64_t dims[] = {batch, widths.heads, past->dim(3), size};
    TRY(past_key, context.allocate(dtype_of<T>(), dims));
    TRY(past_value, context.allocate(dtype_of<T>(), dims));
    std::copy_n(all.data<T>(), half, past_key.data<T>());
    std::copy_n(all.data<T>() + half, half, past_value.data<T>());
  }
  if (attributes.get_int("do_rotary", 0) != 0) {
    const int64_t turned = attributes.get_int("rotary_embedding_dim", 0);
    CHECK_OK(rotate_by_position<T>(context, parts.q, turned == 0 ? size : turned, before));
    CHECK_OK(rotate_by_position<T>(context, parts.k, turned == 0 ? size : turned, before));
  }
  const Tensor old[] = {past_key, past_value};
  if (ports.beams >= 0) {
    const auto beams = static_cast<size_t>(ports.beams);
    TRY(past_key, follow_beams<T>(context, past_key, before, beams, beams + 1));
    TRY(past_value, follow_beams<T>(context, past_value, before, beams, beams + 1));
  }
  TRY(Tensor keys, append_heads<T>(context, "past", past_key, before, parts.k));
  TRY(Tensor values, append_heads<T>(context, "past", past_value, before, parts.v));
  const int64_t columns = keys.dim(2);
  const Tensor* mask = nullptr;
  if (ports.mask >= 0) {
    TRY(mask, context.optional_input(static_cast<size_t>(ports.mask)));
  }
  ScoreBias<T> adjust{{}, {}, rows, columns};
  TRY(adjust.mask,
      padding_mask<T>(context, mask, attributes.get_int("unidirectional", 0) != 0,
                      static_cast<double>(attributes.get_float("mask_filter_value", -10000.0f)),
                      batch, rows, columns, before));
  if (ports.bias >= 0) {
    TRY(adjust.bias, read_score_bias<T>(context, static_cast<size_t>(ports.bias), batch,
                                        widths.heads, rows, columns));
  }
  const Attend<T> arguments{
      .q = parts.q, .k = keys, .v = values, .scale = attention_scale(context, size)};
  TRY(Tensor y, attend<T>(context, arguments, adjust));
  if (ports.present >= 0 && context.wants_output(static_cast<size_t>(ports.present))) {
    if (keys.dim(3) != values.dim(3))
      return context.error("with a present state, keys and values must have one size");
    const int64_t length = std::max(columns, room);
    TRY(Tensor present, context.allocate(dtype_of<T>(), {{2, batch, widths.heads, length, size}}));
    T* to = present.data<T>();
    for (int part = 0; part < 2; ++part) {
      // Beams are followed for the scores alone: the cache keeps its order.
      TRY(Tensor made,
          append_heads<T>(context, "past", old[part], before, part == 0 ? parts.k : parts.v));
      TRY(made, refill_cache<T>(context, made, old[part], room));
      to = std::copy_n(made.data<T>(), made.size(), to);
    }
    CHECK_OK(give(context, static_cast<size_t>(ports.present), type, std::move(present)));
  }
  return give(context, 0, type, std::move(y));
}

template Status attend_projected<float>(KernelContext&, Projected, const Projection&, DType,
                                        const ProjectedPorts&);
template Status attend_projected<double>(KernelContext&, Projected, const Projection&, DType,
                                         const ProjectedPorts&);

Status infer_projected(InferContext& context, size_t past, size_t past_length) {
  const SymShape* input = context.shape(0);
  const SymShape* weights = context.shape(1);
  if (input == nullptr || weights == nullptr) return ok();
  CHECK_OK(expect_rank(context, 0, 3));
  CHECK_OK(expect_rank(context, 1, 2));
  const int64_t heads = context.attributes.get_int("num_heads", 0);
  if (heads < 1) return context.error("num_heads must be at least 1");
  const auto sizes = context.attributes.get_ints("qkv_hidden_sizes");
  const SymDim width = sizes.size() == 3 ? SymDim(sizes[2]) : floor_div((*weights)[1], SymDim(3));
  set_shape(context, 0, {(*input)[0], (*input)[1], width});
  const SymDim size = floor_div(width, SymDim(heads));
  SymDim length = (*input)[1];
  if (context.has_input(past)) {
    const SymShape* cache = context.shape(past);
    const SymDim before = cache != nullptr && cache->size() == 5 ? (*cache)[3] : SymDim();
    const bool shared = context.attributes.get_int("past_present_share_buffer", 0) != 0 &&
                        context.has_input(past_length);
    length = shared ? before : before + length;
  }
  set_shape(context, 1, {SymDim(2), (*input)[0], SymDim(heads), length, size});
  return ok();
}

}  // namespace tombolo::ops
