#include "ops/function_text.h"
#include "ops/infer_generic.h"
#include "ops/kernels/random.h"
#include "ops/schema.h"

namespace tombolo::ops {

static Status body_of_bernoulli(FunctionContext& context) {
  const int64_t type =
      context.attributes.get_int("dtype", static_cast<int64_t>(context.input_type(0)));
  if (!dtype_from_number(type))
    return runtime_error("neither dtype nor the element type of the input is known");
  context.line("uniform = RandomUniformLike <low = 0.0, high = 1.0, seed: float = @seed> (input)");
  context.line("hit = Less (uniform, input)");
  context.line("output = Cast <to = " + std::to_string(type) + "> (hit)");
  return ok();
}

namespace {

Status run_bernoulli(KernelContext& context) {
  TRY(const Tensor* x, context.input(0));
  if (!is_float(x->dtype()))
    return context.error("probabilities must be floats, are " + to_string(*x));
  TRY(const DType dtype, dtype_attribute(context, "dtype", x->dtype()));
  if (is_string(dtype) || is_complex(dtype))
    return unsupported("draws of type " + std::string(name_of(dtype)));
  TRY(Tensor * out, context.output(0, dtype, x->dims()));
  return with_random(context, [&](auto& random) -> Status {
    constexpr int64_t kBlock = 256;
    double chances[kBlock];
    for (int64_t begin = 0; begin < x->size(); begin += kBlock) {
      const int64_t count = std::min(kBlock, x->size() - begin);
      load_doubles(*x, begin, count, chances);
      bool good = true;
      for (int64_t i = 0; i < count; ++i) good &= (chances[i] >= 0) & (chances[i] <= 1);
      for (int64_t i = 0; i < count && !good; ++i)
        if (!(chances[i] >= 0 && chances[i] <= 1))
          return context.error("element " + std::to_string(begin + i) + ", " +
                               std::to_string(chances[i]) + ", is not a probability");
      if (dtype == DType::kFloat32) {
        float* to = out->data<float>() + begin;
        // As numbers: no branch could foresee the draws.
        int32_t hits[kBlock];
        for (int64_t i = 0; i < count; ++i) hits[i] = random.next_unit() < chances[i];
        for (int64_t i = 0; i < count; ++i) to[i] = static_cast<float>(hits[i]);
      } else {
        for (int64_t i = 0; i < count; ++i)
          out->set_int64(begin + i, random.next_unit() < chances[i]);
      }
    }
    return ok();
  });
}

}  // namespace

OPERATOR(Bernoulli) = {
    .name = "Bernoulli",
    .doc = "1 with the probability given by each element, else 0",
    .versions = {15, 22},
    .inputs = {{"input", "T1"}},
    .outputs = {{"output", "T2"}},
    .attributes =
        {
            {"dtype", Attr::kInt},
            {"seed", Attr::kFloat},
        },
    .types =
        {
            {"T1", {{15, kFloats}, {22, kBf16}}},
            {"T2", {{15, kNumbers | kBool | kBf16}}},
        },
    .functions =
        {
            {.versions = {.until = 21}, .opset = 15, .builder = body_of_bernoulli},
            {.versions = {.since = 22}, .opset = 22, .builder = body_of_bernoulli},
        },
    .determinism = Determinism::kRandom,
    .infer = infer_random_like,
    .reference = run_bernoulli,
};

}  // namespace tombolo::ops
