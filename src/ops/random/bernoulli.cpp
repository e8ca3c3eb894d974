#include "ops/function_text.h"
#include "ops/infer_generic.h"
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
};

}  // namespace tombolo::ops
