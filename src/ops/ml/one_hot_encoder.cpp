#include <algorithm>
#include <string>
#include <unordered_map>

#include "ops/infer_helpers.h"
#include "ops/kernels/int_table.h"
#include "ops/kernels/ml.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {

Status run_one_hot_encoder(KernelContext& context) {
  TRY(const Tensor* x, context.input(0));
  const auto ints = context.attributes.get_ints("cats_int64s");
  const auto strings = context.attributes.get_strings("cats_strings");
  const size_t count = x->is_string() ? strings.size() : ints.size();
  if (count == 0) return context.error("there are no categories for " + to_string(*x));
  std::unordered_map<std::string_view, size_t> by_text;
  const IntTable by_number(x->is_string() ? std::span<const int64_t>() : ints);
  for (size_t i = 0; x->is_string() && i < count; ++i) by_text.try_emplace(strings[i], i);
  const int64_t* whole = x->dtype() == DType::kInt64 ? x->data<int64_t>() : nullptr;
  const bool zeros = context.attributes.get_int("zeros", 1) != 0;
  Dims dims = x->dims();
  dims.push_back(static_cast<int64_t>(count));
  TRY(Tensor * y, context.output(0, DType::kFloat32, dims));
  std::fill_n(y->data<float>(), y->size(), 0.0f);
  float* to = y->data<float>();
  if (whole != nullptr && zeros) {
    float none;  // takes the ones of what is no category
    by_number.find_each({whole, static_cast<size_t>(x->size())}, [&](int64_t at) {
      *(at < 0 ? &none : to + at) = 1;
      to += count;
    });
    return ok();
  }
  for (int64_t i = 0; i < x->size(); ++i) {
    size_t at = count;
    if (x->is_string()) {
      const auto found = by_text.find(x->strings()[static_cast<size_t>(i)]);
      if (found != by_text.end()) at = found->second;
    } else {
      const int64_t found = by_number.find(whole != nullptr ? whole[i] : x->get_int64(i));
      if (found >= 0) at = static_cast<size_t>(found);
    }
    if (at < count)
      to[static_cast<size_t>(i) * count + at] = 1;
    else if (!zeros)
      return context.error("element " + std::to_string(i) + " is none of the categories");
  }
  return ok();
}

}  // namespace

namespace {
Status infer_one_hot_encoder(InferContext& context) {
  const SymShape* x = context.shape(0);
  if (context.elem(0) == DType::kUndefined) return ok();
  const size_t columns = context.elem(0) == DType::kString
                             ? context.attributes.get_strings("cats_strings").size()
                             : context.attributes.get_ints("cats_int64s").size();
  if (x == nullptr) return ok();
  SymShape out = *x;
  out.push_back(static_cast<int64_t>(columns));
  context.set_tensor(0, DType::kFloat32, std::move(out));
  return ok();
}
}  // namespace

OPERATOR(OneHotEncoder) = {
    .name = "OneHotEncoder",
    .domain = "ai.onnx.ml",
    .doc = "a new axis with 1 at the category of the element",
    .versions = {1},
    .inputs = {{"X", "T"}},
    .outputs = {{"Y", "tensor(float)"}},
    .attributes =
        {
            {"cats_int64s", Attr::kInts},
            {"cats_strings", Attr::kStrings},
            {"zeros", 1},
        },
    .types = {{"T", {{1, kFloats32 | kIndices | kStr}}}},
    .infer = infer_one_hot_encoder,
    .reference = run_one_hot_encoder,
};

}  // namespace tombolo::ops
