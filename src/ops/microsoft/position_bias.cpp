// Biases of attention scores by relative position.

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string>
#include <utility>

#include "ops/infer_helpers.h"
#include "ops/kernels/arguments.h"
#include "ops/kernels/compute.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {

/// T5's bucket of a distance: exact near by, then by logarithm up to `most`.
int64_t bucket_of(int64_t distance, bool both_ways, int64_t buckets, int64_t most) {
  int64_t bucket = 0;
  if (both_ways) {
    buckets /= 2;
    if (distance > 0) bucket = buckets;
    distance = std::abs(distance);
  } else {
    distance = distance < 0 ? -distance : 0;
  }
  const int64_t exact = buckets / 2;
  if (distance < exact || exact == 0) return bucket + std::min(distance, buckets - 1);
  const float fraction = std::log(static_cast<float>(distance) / static_cast<float>(exact)) /
                         std::log(static_cast<float>(most) / static_cast<float>(exact));
  const float beyond = fraction * static_cast<float>(buckets - exact);
  // Not in range, and not NaN, where max_distance is no more than the exact distances.
  const bool near = beyond >= 0 && beyond < static_cast<float>(buckets - exact);
  return bucket + (near ? exact + static_cast<int64_t>(beyond) : buckets - 1);
}

/// [1, heads, queries, keys] from a table [buckets, heads].
Status run_relative_position_bias(KernelContext& context) {
  TRY(const Tensor* table, context.input(0));
  TRY(const int64_t queries, scalar_int(context, 1, "query_length"));
  TRY(const int64_t keys, scalar_int(context, 2, "key_length"));
  const int64_t most = context.attributes.get_int("max_distance", 0);
  const bool both_ways = context.attributes.get_int("is_bidirectional", 0) != 0;
  if (table->rank() != 2 || table->dim(0) < (both_ways ? 2 : 1))
    return context.error("bias_table must be [buckets, heads], is " + to_string(*table));
  const int64_t buckets = table->dim(0), heads = table->dim(1);
  if (queries < 0 || keys < 0 || queries > 1 << 24 || keys > 1 << 24 || most < 1)
    return context.error("query_length is " + std::to_string(queries) + ", key_length is " +
                         std::to_string(keys) + ", max_distance is " + std::to_string(most));
  TRY(Tensor * y, context.output(0, table->dtype(), {{1, heads, queries, keys}}));
  for (int64_t i = 0; i < queries; ++i)
    for (int64_t j = 0; j < keys; ++j) {
      const int64_t bucket = bucket_of(j - i, both_ways, buckets, most);
      for (int64_t h = 0; h < heads; ++h)
        y->set_double((h * queries + i) * keys + j, table->get_double(bucket * heads + h));
    }
  return ok();
}

Status infer_relative_position_bias(InferContext& context) {
  const SymShape* table = context.shape(0);
  if (table == nullptr) return ok();
  CHECK_OK(expect_rank(context, 0, 2));
  set_shape(context, 0,
            {SymDim(1), (*table)[1], scalar_of(context, 1).value_or(SymDim()),
             scalar_of(context, 2).value_or(SymDim())});
  return ok();
}

/// rel_pos scaled by gates that the queries give.
Status run_gated_relative_position_bias(KernelContext& context) {
  TRY(const Tensor* query, context.input(0));
  TRY(const Tensor* query_bias, context.input(1));
  TRY(const Tensor* positions, context.input(2));
  TRY(const Tensor* weight, context.input(3));
  TRY(const Tensor* bias, context.input(4));
  TRY(const Tensor* eco, context.input(5));
  if (context.has_input(6)) return unsupported("queries without padding (token_offset)");
  const int64_t heads = context.attributes.get_int("num_heads", 0);
  if (query->rank() != 3 || heads < 1 || query->dim(2) % heads != 0)
    return context.error("query_layer must be [batch, steps, " + std::to_string(heads) +
                         " * size], is " + to_string(*query));
  const int64_t batch = query->dim(0), steps = query->dim(1), width = query->dim(2);
  const int64_t size = width / heads;
  if (weight->rank() != 2 || weight->dim(0) != size || weight->dim(1) % 2 != 0)
    return context.error("weight must be [" + std::to_string(size) + ", even], is " +
                         to_string(*weight));
  const int64_t gates = weight->dim(1);
  CHECK_OK(check_dims(context, "query_bias", *query_bias, {{width}}));
  CHECK_OK(check_dims(context, "rel_pos", *positions, {{1, heads, steps, steps}}));
  CHECK_OK(check_dims(context, "bias", *bias, {{gates}}));
  CHECK_OK(check_dims(context, "eco_a", *eco, {{1, heads, 1, 1}}));
  TRY(const Tensor q, as<float>(context, *query));
  TRY(const Tensor qb, as<float>(context, *query_bias));
  TRY(const Tensor w, as<float>(context, *weight));
  TRY(const Tensor b, as<float>(context, *bias));
  TRY(Tensor y, context.allocate(DType::kFloat32, {{batch, heads, steps, steps}}));
  for (int64_t n = 0; n < batch; ++n)
    for (int64_t h = 0; h < heads; ++h)
      for (int64_t i = 0; i < steps; ++i) {
        double sums[2] = {};
        for (int64_t g = 0; g < gates; ++g) {
          auto sum = static_cast<double>(b.data<float>()[g]);
          for (int64_t k = 0; k < size; ++k)
            sum += (static_cast<double>(q.data<float>()[(n * steps + i) * width + h * size + k]) +
                    static_cast<double>(qb.data<float>()[h * size + k])) *
                   static_cast<double>(w.data<float>()[k * gates + g]);
          sums[g / (gates / 2)] += sum;
        }
        const double update = 1 / (1 + std::exp(-sums[0])), reset = 1 / (1 + std::exp(-sums[1]));
        const double factor = update * (reset * eco->get_double(h) - 1) + 2;
        for (int64_t j = 0; j < steps; ++j)
          y.data<float>()[((n * heads + h) * steps + i) * steps + j] =
              static_cast<float>(factor * positions->get_double((h * steps + i) * steps + j));
      }
  return give(context, 0, query->dtype(), std::move(y));
}

Status infer_gated_relative_position_bias(InferContext& context) {
  const SymShape* query = context.shape(0);
  if (query == nullptr || context.has_input(6)) return ok();
  CHECK_OK(expect_rank(context, 0, 3));
  set_shape(
      context, 0,
      {(*query)[0], SymDim(context.attributes.get_int("num_heads", 0)), (*query)[1], (*query)[1]});
  return ok();
}

}  // namespace

OPERATOR(microsoft_RelativePositionBias) = {
    .name = "RelativePositionBias",
    .domain = "com.microsoft",
    .doc = "T5's bias by relative position",
    .versions = {1},
    .inputs =
        {
            {"bias_table", "T"},
            {"query_length", "U"},
            {"key_length", "U"},
        },
    .outputs =
        {
            {"output", "T"},
        },
    .attributes =
        {
            {"is_bidirectional", 0},
            {"max_distance", required(Attr::kInt)},
        },
    .types =
        {
            {"T", {{1, kF16 | kF32}}},
            {"U", {{1, kI64}}},
        },
    .infer = infer_relative_position_bias,
    .reference = run_relative_position_bias,
};

OPERATOR(microsoft_GatedRelativePositionBias) = {
    .name = "GatedRelativePositionBias",
    .domain = "com.microsoft",
    .doc = "a bias by relative position that queries gate",
    .versions = {1},
    .inputs =
        {
            {"query_layer", "T"},
            {"query_bias", "T"},
            {"rel_pos", "T"},
            {"weight", "T"},
            {"bias", "T"},
            {"eco_a", "T"},
            {"token_offset", "M", kOptional},
        },
    .outputs =
        {
            {"output", "T"},
        },
    .attributes =
        {
            {"num_heads", required(Attr::kInt)},
        },
    .types =
        {
            {"T", {{1, kF16 | kF32}}},
            {"M", {{1, kI32}}},
        },
    .infer = infer_gated_relative_position_bias,
    .reference = run_gated_relative_position_bias,
};

}  // namespace tombolo::ops
