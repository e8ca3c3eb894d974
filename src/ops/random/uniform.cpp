#include "ops/infer_generic.h"
#include "ops/kernels/random.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {

Status fill_uniform(KernelContext& context, bool like) {
  const double low = static_cast<double>(context.attributes.get_float("low", 0));
  const double high = static_cast<double>(context.attributes.get_float("high", 1));
  return fill_random(context, like, [low, width = high - low](Tensor& out, auto& random) {
    fill_by(out, [&] { return low + width * random.next_unit(); });
  });
}

Status run_random_uniform(KernelContext& context) { return fill_uniform(context, false); }

}  // namespace

OPERATOR(RandomUniform) = {
    .name = "RandomUniform",
    .doc = "uniformly distributed numbers of a given shape",
    .versions = {1, 22},
    .outputs = {{"output", "T"}},
    .attributes =
        {
            {"dtype", 1},
            {"high", 1.0f},
            {"low", 0.0f},
            {"seed", Attr::kFloat},
            {"shape", required(Attr::kInts)},
        },
    .types = {{"T", {{1, kFloats}, {22, kBf16}}}},
    .determinism = Determinism::kRandom,
    .infer = infer_random,
    .reference = run_random_uniform,
};

namespace {

Status run_random_uniform_like(KernelContext& context) { return fill_uniform(context, true); }

}  // namespace

OPERATOR(RandomUniformLike) = {
    .name = "RandomUniformLike",
    .doc = "uniformly distributed numbers in the shape of the input",
    .versions = {1, 22},
    .inputs = {{"input", "T1"}},
    .outputs = {{"output", "T2"}},
    .attributes =
        {
            {"dtype", Attr::kInt},
            {"high", 1.0f},
            {"low", 0.0f},
            {"seed", Attr::kFloat},
        },
    .types =
        {
            {"T1", {{1, kAll}, {22, kBf16}}},
            {"T2", {{1, kFloats}, {22, kBf16}}},
        },
    .determinism = Determinism::kRandom,
    .infer = infer_random_like,
    .reference = run_random_uniform_like,
};

}  // namespace tombolo::ops
