#include <algorithm>

#include "ops/infer_helpers.h"
#include "ops/kernel_context.h"
#include "ops/schema.h"
#include "ops/version_steps.h"

namespace tombolo::ops {

namespace {
Status infer_shape(InferContext& context) {
  const SymShape* data = context.shape(0);
  if (data == nullptr) {
    set_rank(context, 0, 1);
    return ok();
  }
  const auto rank = static_cast<int64_t>(data->size());
  const auto clamped = [rank](int64_t index) {
    if (index < 0) index += rank;
    return std::clamp<int64_t>(index, 0, rank);
  };
  int64_t start = 0, end = rank;
  if (context.opset >= 15) {
    start = clamped(context.attributes.get_int("start", 0));
    end = clamped(context.attributes.get_int("end", rank));
  }
  SymShape elements;
  for (int64_t i = start; i < end; ++i) elements.push_back((*data)[static_cast<size_t>(i)]);
  set_shape(context, 0, {SymDim(static_cast<int64_t>(elements.size()))});
  context.set_value(0, std::move(elements));
  return ok();
}
Status run_shape(KernelContext& context) {
  TRY(const Tensor* data, context.input(0));
  const auto rank = static_cast<int64_t>(data->rank());
  int64_t start = context.attributes.get_int("start", 0);
  int64_t end = context.attributes.get_int("end", rank);
  start = std::clamp<int64_t>(start < 0 ? start + rank : start, 0, rank);
  end = std::clamp<int64_t>(end < 0 ? end + rank : end, 0, rank);
  const int64_t count[] = {std::max<int64_t>(end - start, 0)};
  TRY(Tensor * out, context.output(0, DType::kInt64, count));
  std::copy_n(data->dims().begin() + start, count[0], out->data<int64_t>());
  return ok();
}

}  // namespace

namespace {

Status step_slice_of_shape(StepContext& step) {
  const int64_t start = step.get_int("start", 0);
  if (start == 0 && !step.has("end")) {
    step.node.remove_attribute("start");
    return ok();
  }
  const int64_t end = step.get_int("end", INT64_MAX);
  return step.replace(13, "all = Shape (data)\n" + int_list("first", {{start}}) +
                              int_list("last", {{end}}) + "shape = Slice (all, first, last)\n");
}

}  // namespace

OPERATOR(Shape) = {
    .name = "Shape",
    .doc = "the dimensions as int64, or a range of them",
    .versions = {1, 13, 15, 19, 21, 23, 24, 25},
    .inputs = {{"data", "T"}},
    .outputs = {{"shape", "T1"}},
    .attributes =
        {
            {"end", Attr::kInt, {.since = 15}},
            {"start", 0, {.since = 15}},
        },
    .types =
        {
            {"T",
             {{1, kAll},
              {13, kBf16},
              {19, kFp8},
              {21, kInt4},
              {23, kFp4},
              {24, kE8m0},
              {25, kInt2}}},
            {"T1", {{1, kI64}}},
        },
    .infer = infer_shape,
    .reference = run_shape,
    .down = {{15, 13, step_slice_of_shape}},
};

}  // namespace tombolo::ops
