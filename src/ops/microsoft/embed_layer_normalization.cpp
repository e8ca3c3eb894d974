// The embeddings of BERT: word + position + segment, normalised.

#include <string>
#include <vector>

#include "ops/infer_helpers.h"
#include "ops/kernels/compute.h"
#include "ops/kernels/moments.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {

/// The tables as floats.
struct Tables {
  Tensor word, position, segment;  ///< segment may be undefined
  Tensor gamma, beta;
};

Status embed(KernelContext& context, const Tables& tables, size_t mask_input, int positions_input,
             int sum_output, DType type) {
  TRY(const Tensor* ids, context.input(0));
  TRY(const Tensor* segments, context.optional_input(1));
  TRY(const Tensor* mask, context.optional_input(mask_input));
  const Tensor* positions = nullptr;
  if (positions_input >= 0) {
    TRY(positions, context.optional_input(static_cast<size_t>(positions_input)));
  }
  if (ids->rank() != 2)
    return context.error("input_ids must be [batch, steps], is " + to_string(*ids));
  const int64_t batch = ids->dim(0), steps = ids->dim(1);
  if ((segments == nullptr) != absent(tables.segment))
    return context.error("segment_ids and segment_embedding must be given together");
  if (segments != nullptr) CHECK_OK(check_dims(context, "segment_ids", *segments, ids->dims()));
  if (mask != nullptr) CHECK_OK(check_dims(context, "mask", *mask, ids->dims()));
  if (positions != nullptr && positions->dims() != ids->dims())
    CHECK_OK(check_dims(context, "position_ids", *positions, {{1, steps}}));
  if (tables.word.rank() != 2)
    return context.error("word_embedding must be a matrix, is " + to_string(tables.word));
  const int64_t width = tables.word.dim(1);
  for (const Tensor* table : {&tables.position, &tables.segment}) {
    if (absent(*table)) continue;
    if (table->rank() != 2 || table->dim(1) != width)
      return context.error("the embeddings differ in width: " + to_string(tables.word) + " and " +
                           to_string(*table));
  }
  CHECK_OK(check_dims(context, "gamma", tables.gamma, {{width}}));
  CHECK_OK(check_dims(context, "beta", tables.beta, {{width}}));
  const auto epsilon = static_cast<double>(context.attributes.get_float("epsilon", 1e-12f));
  TRY(Tensor sum, context.allocate(DType::kFloat32, {{batch, steps, width}}));
  TRY(Tensor y, context.allocate(DType::kFloat32, sum.dims()));
  const auto row_of = [&](const Tensor& table, int64_t id,
                          const char* name) -> Result<const float*> {
    if (id < 0 || id >= table.dim(0))
      return context.error(std::string(name) + " has the value " + std::to_string(id) +
                           ", the table has " + std::to_string(table.dim(0)) + " rows");
    return table.data<float>() + id * width;
  };
  for (int64_t i = 0; i < batch * steps; ++i) {
    TRY(const float* word, row_of(tables.word, ids->get_int64(i), "input_ids"));
    const int64_t place =
        positions == nullptr ? i % steps : positions->get_int64(i % positions->size());
    TRY(const float* position, row_of(tables.position, place, "position_ids"));
    const float* segment = nullptr;
    if (segments != nullptr) {
      TRY(segment, row_of(tables.segment, segments->get_int64(i), "segment_ids"));
    }
    float* total = sum.data<float>() + i * width;
    for (int64_t j = 0; j < width; ++j)
      total[j] = word[j] + position[j] + (segment == nullptr ? 0 : segment[j]);
    const Moments moments = moments_of(total, width);
    const double inverse = moments.inverse_deviation(epsilon);
    for (int64_t j = 0; j < width; ++j)
      y.data<float>()[i * width + j] =
          static_cast<float>((static_cast<double>(total[j]) - moments.mean) * inverse *
                                 static_cast<double>(tables.gamma.data<float>()[j]) +
                             static_cast<double>(tables.beta.data<float>()[j]));
  }
  // How many steps of each sequence count; 0 without a mask.
  if (context.wants_output(1)) {
    TRY(Tensor * ends, context.output(1, DType::kInt32, {{batch}}));
    for (int64_t b = 0; b < batch; ++b) {
      int64_t count = 0;
      for (int64_t s = 0; mask != nullptr && s < steps; ++s)
        count += mask->get_int64(b * steps + s) == 1;
      ends->set_int64(b, count);
    }
  }
  if (sum_output >= 0)
    CHECK_OK(give(context, static_cast<size_t>(sum_output), type, std::move(sum)));
  return give(context, 0, type, std::move(y));
}

Status run_embed_layer_normalization(KernelContext& context) {
  Tables tables;
  TRY(const Tensor* word, context.input(2));
  TRY(tables.word, optional_as<float>(context, 2));
  TRY(tables.position, optional_as<float>(context, 3));
  TRY(tables.segment, optional_as<float>(context, 4));
  TRY(tables.gamma, optional_as<float>(context, 5));
  TRY(tables.beta, optional_as<float>(context, 6));
  if (absent(tables.position) || absent(tables.gamma) || absent(tables.beta))
    return context.error("position_embedding, gamma and beta are needed");
  return embed(context, tables, 7, 8, 2, word->dtype());
}

/// Input `index` as numbers: scale * (x - zero point).
Result<Tensor> dequantized(const KernelContext& context, size_t index, size_t scale, size_t zero) {
  TRY(const Tensor* x, context.optional_input(index));
  if (x == nullptr) return Tensor();
  TRY(const Tensor* factor, context.input(scale));
  TRY(const Tensor* offset, context.input(zero));
  if (factor->size() != 1 || offset->size() != 1)
    return context.error("scales and zero points must be scalars");
  TRY(Tensor y, context.allocate(DType::kFloat32, x->dims()));
  for (int64_t i = 0; i < y.size(); ++i)
    y.data<float>()[i] = static_cast<float>(factor->get_double(0)) *
                         static_cast<float>(x->get_int64(i) - offset->get_int64(0));
  return y;
}

Status run_qembed_layer_normalization(KernelContext& context) {
  Tables tables;
  TRY(tables.word, dequantized(context, 2, 8, 13));
  TRY(tables.position, dequantized(context, 3, 9, 14));
  TRY(tables.segment, dequantized(context, 4, 10, 15));
  TRY(tables.gamma, dequantized(context, 5, 11, 16));
  TRY(tables.beta, dequantized(context, 6, 12, 17));
  if (absent(tables.word) || absent(tables.position) || absent(tables.gamma) || absent(tables.beta))
    return context.error("word and position embedding, gamma and beta are needed");
  return embed(context, tables, 7, -1, -1, DType::kFloat32);
}

Status infer_embed_layer_normalization(InferContext& context) {
  const SymShape* ids = context.shape(0);
  const SymShape* word = context.shape(2);
  if (ids == nullptr) return ok();
  CHECK_OK(expect_rank(context, 0, 2));
  const SymDim width = word != nullptr && word->size() == 2 ? (*word)[1] : SymDim();
  set_shape(context, 0, {(*ids)[0], (*ids)[1], width});
  context.set_tensor(1, DType::kInt32, {(*ids)[0]});
  set_shape(context, 2, {(*ids)[0], (*ids)[1], width});
  return ok();
}

}  // namespace

OPERATOR(microsoft_EmbedLayerNormalization) = {
    .name = "EmbedLayerNormalization",
    .domain = "com.microsoft",
    .doc = "word + position + segment embeddings, normalised",
    .versions = {1},
    .inputs =
        {
            {"input_ids", "T1"},
            {"segment_ids", "T1", kOptional},
            {"word_embedding", "T"},
            {"position_embedding", "T"},
            {"segment_embedding", "T", kOptional},
            {"gamma", "T"},
            {"beta", "T"},
            {"mask", "T1", kOptional},
            {"position_ids", "T1", kOptional},
        },
    .outputs =
        {
            {"output", "T"},
            {"mask_index", "T1", kOptional},
            {"embedding_sum", "T", kOptional},
        },
    .attributes =
        {
            {"epsilon", 1e-12f},
            {"mask_index_type", Attr::kInt},
        },
    .types =
        {
            {"T1", {{1, kI32}}},
            {"T", {{1, kF16 | kF32}}},
        },
    .infer = infer_embed_layer_normalization,
    .reference = run_embed_layer_normalization,
};

OPERATOR(microsoft_QEmbedLayerNormalization) = {
    .name = "QEmbedLayerNormalization",
    .domain = "com.microsoft",
    .doc = "EmbedLayerNormalization from quantised tables",
    .versions = {1},
    .inputs =
        {
            {"input_ids", "T1"},
            {"segment_ids", "T1", kOptional},
            {"word_embedding_quant", "T2"},
            {"position_embedding_quant", "T2"},
            {"segment_embedding", "T2", kOptional},
            {"gamma_quant", "T2"},
            {"beta_quant", "T2"},
            {"mask", "T1", kOptional},
            {"word_embedding_scale", "T"},
            {"position_embedding_scale", "T"},
            {"segment_embedding_scale", "T", kOptional},
            {"gamma_scale", "T"},
            {"beta_scale", "T"},
            {"word_embedding_zero_point", "T2"},
            {"position_embedding_zero_point", "T2"},
            {"segment_embedding_zero_point", "T2", kOptional},
            {"gamma_zero_point", "T2"},
            {"beta_zero_point", "T2"},
        },
    .outputs =
        {
            {"layernorm_out", "T"},
            {"mask_index_out", "T1"},
        },
    .attributes =
        {
            {"epsilon", 1e-12f},
        },
    .types =
        {
            {"T1", {{1, kI32}}},
            {"T2", {{1, kInt8s}}},
            {"T", {{1, kF32}}},
        },
    .infer = infer_embed_layer_normalization,
    .reference = run_qembed_layer_normalization,
};

}  // namespace tombolo::ops
