#include "ops/infer_generic.h"
#include "ops/kernels/random.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {

Status fill_normal(KernelContext& context, bool like) {
  const double mean = static_cast<double>(context.attributes.get_float("mean", 0));
  const double scale = static_cast<double>(context.attributes.get_float("scale", 1));
  return fill_random(context, like, [mean, scale](Tensor& out, auto& random) {
    NormalStream normal(random);
    fill_by(out, [&] { return mean + scale * normal.next(); });
  });
}

Status run_random_normal(KernelContext& context) { return fill_normal(context, false); }

}  // namespace

OPERATOR(RandomNormal) = {
    .name = "RandomNormal",
    .doc = "normally distributed numbers of a given shape",
    .versions = {1, 22},
    .outputs = {{"output", "T"}},
    .attributes =
        {
            {"dtype", 1},
            {"mean", 0.0f},
            {"scale", 1.0f},
            {"seed", Attr::kFloat},
            {"shape", required(Attr::kInts)},
        },
    .types = {{"T", {{1, kFloats}, {22, kBf16}}}},
    .determinism = Determinism::kRandom,
    .infer = infer_random,
    .reference = run_random_normal,
};

namespace {

Status run_random_normal_like(KernelContext& context) { return fill_normal(context, true); }

}  // namespace

OPERATOR(RandomNormalLike) = {
    .name = "RandomNormalLike",
    .doc = "normally distributed numbers in the shape of the input",
    .versions = {1, 22},
    .inputs = {{"input", "T1"}},
    .outputs = {{"output", "T2"}},
    .attributes =
        {
            {"dtype", Attr::kInt},
            {"mean", 0.0f},
            {"scale", 1.0f},
            {"seed", Attr::kFloat},
        },
    .types =
        {
            {"T1", {{1, kAll}, {22, kBf16}}},
            {"T2", {{1, kFloats}, {22, kBf16}}},
        },
    .determinism = Determinism::kRandom,
    .infer = infer_random_like,
    .reference = run_random_normal_like,
};

}  // namespace tombolo::ops
