#include "ops/infer_helpers.h"
#include "ops/kernels/arguments.h"
#include "ops/kernels/movement.h"
#include "ops/schema.h"
#include "ops/step_context.h"

namespace tombolo::ops {

namespace {
Status infer_constant(InferContext& context) {
  const AttributeReader& attributes = context.attributes;
  if (const Constant* constant = attributes.get_tensor("value")) {
    SymShape shape;
    for (const int64_t dim : constant->dims.span())
      shape.push_back(dim < 0 ? SymDim() : SymDim(dim));
    context.set_tensor(0, constant->dtype(), std::move(shape));
    // The engine reads the elements of a constant itself, where they are wanted.
    return ok();
  }
  const auto list = [](size_t size) { return SymShape{SymDim(static_cast<int64_t>(size))}; };
  if (attributes.has("value_int")) {
    context.set_tensor(0, DType::kInt64, {});
  } else if (attributes.has("value_float")) {
    context.set_tensor(0, DType::kFloat32, {});
  } else if (attributes.has("value_string")) {
    context.set_tensor(0, DType::kString, {});
  } else if (attributes.has("value_ints")) {
    context.set_tensor(0, DType::kInt64, list(attributes.get_ints("value_ints").size()));
  } else if (attributes.has("value_floats")) {
    context.set_tensor(0, DType::kFloat32, list(attributes.get_floats("value_floats").size()));
  } else if (attributes.has("value_strings")) {
    context.set_tensor(0, DType::kString, list(attributes.get_strings("value_strings").size()));
  } else if (const Attribute* sparse = attributes.find("sparse_value");
             sparse != nullptr && sparse->sparse_tensor() != nullptr) {
    SymShape shape;
    for (const int64_t dim : sparse->sparse_tensor()->dims.span()) shape.push_back(dim);
    context.set_tensor(0, sparse->sparse_tensor()->values.dtype(), std::move(shape));
  }
  return ok();
}
/// The dense form of a sparse attribute.
Status dense_constant(KernelContext& context, const SparseConstant& sparse) {
  const StoragePtr& storage = context.node.graph().storage_ptr();
  TRY(const Tensor values, sparse.values.value(storage));
  TRY(const Tensor indices, sparse.indices.value(storage));
  const size_t rank = sparse.dims.size();
  const bool linear = indices.rank() == 1;
  const bool fits = indices.dtype() == DType::kInt64 && values.rank() == 1 && indices.rank() >= 1 &&
                    indices.rank() <= 2 && indices.dim(0) == values.dim(0) &&
                    (linear || indices.dim(1) == static_cast<int64_t>(rank));
  if (!fits)
    return context.error("a sparse value of " + to_string(values) + " has indices " +
                         to_string(indices));
  TRY(Tensor * out, context.output(0, values.dtype(), sparse.dims));
  fill_zero(*out);
  const Dims strides = contiguous_strides(sparse.dims);
  for (int64_t k = 0; k < values.size(); ++k) {
    int64_t at = 0;
    for (size_t j = 0; !linear && j < rank; ++j) {
      TRY(const int64_t place,
          checked_index(indices.get_int64(k * static_cast<int64_t>(rank) + static_cast<int64_t>(j)),
                        sparse.dims[j], static_cast<int64_t>(j)));
      at += place * strides[j];
    }
    if (linear) {
      TRY(at, checked_index(indices.get_int64(k), out->size(), 0));
    }
    copy_elements(values, k, *out, at, 1);
  }
  return ok();
}

template <typename T>
Status list_constant(KernelContext& context, DType dtype, std::span<const T> values) {
  const int64_t dims[] = {static_cast<int64_t>(values.size())};
  TRY(Tensor * out, context.output(0, dtype, dims));
  for (size_t i = 0; i < values.size(); ++i) {
    if constexpr (std::is_same_v<T, Text>)
      out->strings()[i] = std::string(values[i]);
    else
      out->data<T>()[i] = values[i];
  }
  return ok();
}

template <typename T>
Status scalar_constant(KernelContext& context, DType dtype, T value) {
  CHECK_OK(list_constant(context, dtype, std::span<const T>(&value, 1)));
  context.set_output(0, context.outputs[0].tensor().reshaped({}));
  return ok();
}

Status run_constant(KernelContext& context) {
  const AttributeReader& attributes = context.attributes;
  TRY(auto value, tensor_attribute(context, "value"));
  if (value) {
    context.set_output(0, std::move(*value));
    return ok();
  }
  if (const Attribute* sparse = attributes.find("sparse_value");
      sparse != nullptr && sparse->sparse_tensor() != nullptr)
    return dense_constant(context, *sparse->sparse_tensor());
  if (attributes.has("value_float"))
    return scalar_constant(context, DType::kFloat32, attributes.get_float("value_float", 0));
  if (attributes.has("value_int"))
    return scalar_constant(context, DType::kInt64, attributes.get_int("value_int", 0));
  if (attributes.has("value_string"))
    return scalar_constant(context, DType::kString, attributes.get_string("value_string", ""));
  if (attributes.has("value_floats"))
    return list_constant(context, DType::kFloat32, attributes.get_floats("value_floats"));
  if (attributes.has("value_ints"))
    return list_constant(context, DType::kInt64, attributes.get_ints("value_ints"));
  if (attributes.has("value_strings"))
    return list_constant(context, DType::kString, attributes.get_strings("value_strings"));
  return context.error("none of the value attributes is given");
}

}  // namespace

namespace {

Status step_tensor_value(StepContext& step) {
  Node& node = step.node;
  Tensor tensor;
  const Attribute* one = nullptr;
  if ((one = node.attribute("value_int")) != nullptr && one->i() != nullptr)
    tensor = Tensor::scalar_int64(*one->i());
  else if ((one = node.attribute("value_float")) != nullptr && one->f() != nullptr)
    tensor = Tensor::scalar_float(*one->f());
  else if ((one = node.attribute("value_ints")) != nullptr)
    tensor = Tensor::int64s(one->ints());
  else if ((one = node.attribute("value_floats")) != nullptr)
    tensor = Tensor::of(DType::kFloat32,
                        std::array<int64_t, 1>{static_cast<int64_t>(one->floats().size())},
                        one->floats());
  else if ((one = node.attribute("value_string")) != nullptr && one->s() != nullptr)
    tensor = Tensor::of_strings({}, {std::string(*one->s())});
  else if ((one = node.attribute("value_strings")) != nullptr)
    tensor = Tensor::of_strings(std::array<int64_t, 1>{static_cast<int64_t>(one->strings().size())},
                                {one->strings().begin(), one->strings().end()});
  else
    return ok();
  const std::string name(one->name);
  node.set_tensor("value", tensor);
  node.remove_attribute(name);
  return ok();
}

}  // namespace

OPERATOR(Constant) = {
    .name = "Constant",
    .doc = "a value stored in the node",
    .versions = {1, 9, 11, 12, 13, 19, 21, 23, 24, 25},
    .outputs = {{"output", "T"}},
    .attributes =
        {
            {"value", required(Attr::kTensor), {.until = 10}},
            {"value", Attr::kTensor, {.since = 11}},
            {"sparse_value", Attr::kSparseTensor, {.since = 11}},
            {"value_float", Attr::kFloat, {.since = 12}},
            {"value_floats", Attr::kFloats, {.since = 12}},
            {"value_int", Attr::kInt, {.since = 12}},
            {"value_ints", Attr::kInts, {.since = 12}},
            {"value_string", Attr::kString, {.since = 12}},
            {"value_strings", Attr::kStrings, {.since = 12}},
        },
    .types = {{"T",
               {{1, kFloats},
                {9, kInts | kComplex | kStr | kBool},
                {13, kBf16},
                {19, kFp8},
                {21, kInt4},
                {23, kFp4},
                {24, kE8m0},
                {25, kInt2}}}},
    .infer = infer_constant,
    .reference = run_constant,
    .down = {{12, 11, step_tensor_value}},
};

}  // namespace tombolo::ops
