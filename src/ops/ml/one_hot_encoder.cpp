#include <algorithm>
#include <cmath>
#include <string>

#include "ops/infer_helpers.h"
#include "ops/kernels/elementwise.h"
#include "ops/kernels/int_table.h"
#include "ops/kernels/ml.h"
#include "ops/kernels/text_table.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {

struct Categories {
  IntTable by_number;
  TextTable by_text;
};

Result<Categories> read_categories(const KernelContext& context) {
  Categories categories;
  categories.by_number = IntTable(context.attributes.get_ints("cats_int64s"));
  const auto strings = context.attributes.get_strings("cats_strings");
  categories.by_text = TextTable(strings.size());
  for (size_t i = 0; i < strings.size(); ++i)
    categories.by_text.add(strings[i], static_cast<int64_t>(i));
  return categories;
}

/// done(place) for each element of x in turn.
template <typename Done>
void find_each(const Categories& categories, const Tensor& x, Done&& done) {
  const IntTable& numbers = categories.by_number;
  if (x.is_string()) {
    for (const std::string& text : x.strings()) done(categories.by_text.find(text));
  } else if (x.dtype() == DType::kInt64) {
    numbers.find_each({x.data<int64_t>(), static_cast<size_t>(x.size())}, done);
  } else if (x.dtype() == DType::kFloat32) {
    // Most are whole numbers that an int32 holds, which takes one instruction.
    const float* from = x.data<float>();
    numbers.find_each(
        x.size(),
        [from](int64_t i) {
          return std::fabs(from[i]) < 2e9f ? static_cast<int32_t>(from[i])
                                           : to_integer<int64_t>(static_cast<double>(from[i]));
        },
        done);
  } else {
    numbers.find_each(
        x.size(), [&x](int64_t i) { return x.get_int64(i); }, done);
  }
}

Status run_one_hot_encoder(KernelContext& context) {
  TRY(const Tensor* x, context.input(0));
  const size_t count = x->is_string() ? context.attributes.get_strings("cats_strings").size()
                                      : context.attributes.get_ints("cats_int64s").size();
  if (count == 0) return context.error("there are no categories for " + to_string(*x));
  TRY(const auto categories,
      context.made_once<Categories>([&] { return read_categories(context); }));
  const bool zeros = context.attributes.get_int("zeros", 1) != 0;
  Dims dims = x->dims();
  dims.push_back(static_cast<int64_t>(count));
  TRY(Tensor * y, context.output(0, DType::kFloat32, dims));
  std::fill_n(y->data<float>(), y->size(), 0.0f);
  float* to = y->data<float>();
  float none = 0;  // takes the ones of what is no category
  find_each(*categories, *x, [&](int64_t at) {
    *(at < 0 ? &none : to + at) = 1;
    to += count;
  });
  if (zeros || none == 0) return ok();
  int64_t element = 0, first = -1;
  find_each(*categories, *x, [&](int64_t at) {
    if (at < 0 && first < 0) first = element;
    ++element;
  });
  return context.error("element " + std::to_string(first) + " is none of the categories");
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
