#include "runtime/prepared.h"

#include <algorithm>

#include <cstring>

#include "ops/registry.h"

namespace tombolo {

namespace {

const Tensor* tensor_of(const RunValue* value) {
  return value != nullptr && value->is_tensor() ? &value->tensor() : nullptr;
}

/// Absent, or a dense tensor of numbers: what rows can take.
bool is_plain(const RunValue* value) {
  if (value == nullptr || value->is_none()) return true;
  return value->is_tensor() && !value->tensor().is_string();
}

/// Whether an input that the operator needs is absent: rows rely on what is needed, the reference
/// kernel says what is missing.
bool lacks_input(const NodePlan& node, std::span<const InputInfo> inputs) {
  const OpVersion* version = find_version(node.node->domain(), node.node->op_type(), node.opset);
  if (version == nullptr) return false;
  for (size_t i = 0; i < version->inputs.size(); ++i)
    if (version->inputs[i].option == Option::kSingle && (i >= inputs.size() || !inputs[i].present))
      return true;
  return false;
}

/// Whether `value`, if there is one, is that of a tensor of the same type and shape.
bool same_value(const Tensor& value, const Tensor& tensor) {
  return value.dtype() == DType::kUndefined || value.bytes().empty() ||
         std::memcmp(value.data<std::byte>(), tensor.data<std::byte>(), value.bytes().size()) == 0;
}

/// An aligned copy of a constant, one a session.
Result<RunValue> aligned_copy(const Tensor& tensor, PackStore& packs) {
  const Tensor* const sources[] = {&tensor};
  TRY(const std::byte* copy,
      packs.get({.sources = sources,
                 .key = "aligned",
                 .bytes = tensor.bytes().size(),
                 .fill =
                     [](void* argument, std::byte* target) {
                       static_cast<const Tensor*>(argument)->write_to(target);
                     },
                 .argument = const_cast<Tensor*>(&tensor),
                 .worth_keeping = false}));
  return RunValue(
      Tensor::view(tensor.dtype(), tensor.dims(), {copy, tensor.bytes().size()}, nullptr));
}

}  // namespace

bool Prepared::fits(std::span<const RunValue* const> values) const {
  if (values.size() != inputs.size()) return false;
  for (size_t i = 0; i < values.size(); ++i) {
    const Tensor* tensor = tensor_of(values[i]);
    if (tensor == nullptr) {
      if (inputs[i].dtype != DType::kUndefined) return false;
      continue;
    }
    if (tensor->dtype() != inputs[i].dtype || !(tensor->dims() == inputs[i].dims) ||
        !same_value(inputs[i].value, *tensor))
      return false;
  }
  return true;
}

bool Prepared::values_fit(const Tensor* const* given) const {
  for (size_t i = 0; i < inputs.size(); ++i)
    if (given[i] != nullptr && !same_value(inputs[i].value, *given[i])) return false;
  return true;
}

bool Prepared::same_but_rows(const Prepared& other) const {
  if (inputs.size() != other.inputs.size() || inputs.empty()) return false;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Input &a = inputs[i], &b = other.inputs[i];
    if (a.dtype != b.dtype || a.dims.size() != b.dims.size() ||
        a.value.dtype() != DType::kUndefined || b.value.dtype() != DType::kUndefined)
      return false;
    for (size_t axis = i == 0 ? 1 : 0; axis < a.dims.size(); ++axis)
      if (a.dims[axis] != b.dims[axis]) return false;
  }
  return true;
}

std::shared_ptr<const KernelState> PreparedCache::of_other_rows(size_t node,
                                                                const Prepared& prepared) {
  std::lock_guard lock(mutex_);
  for (const PreparedPtr& other : nodes_[node])
    if (other->row == prepared.row && other->state != nullptr && prepared.same_but_rows(*other))
      return other->state;
  return nullptr;
}

Result<PreparedPtr> PreparedCache::get(const GraphPlan& plan, const NodePlan& node,
                                       std::span<const RunValue* const> values,
                                       const KernelSetting& setting) {
  if (node.rows.empty() || !std::all_of(values.begin(), values.end(), is_plain))
    return PreparedPtr();
  {
    std::lock_guard lock(mutex_);
    auto& list = nodes_[node.index];
    for (size_t i = 0; i < list.size(); ++i) {
      if (!list[i]->fits(values)) continue;
      if (i != 0)
        std::rotate(list.begin(), list.begin() + static_cast<std::ptrdiff_t>(i),
                    list.begin() + static_cast<std::ptrdiff_t>(i) + 1);
      return list[0];
    }
  }
  auto prepared = std::make_shared<Prepared>();
  std::vector<InputInfo> infos(values.size());
  prepared->inputs.resize(values.size());
  const std::span<const ValueRef> refs = plan.inputs_of(node);
  for (size_t i = 0; i < values.size(); ++i) {
    const Tensor* tensor = tensor_of(values[i]);
    if (tensor == nullptr) continue;
    Prepared::Input& input = prepared->inputs[i];
    input.dtype = tensor->dtype();
    input.dims = tensor->dims();
    if (refs[i].constant == nullptr && is_chosen_value(node.values, i, *tensor)) {
      TRY(input.value, tensor->clone());
      prepared->by_values = true;
      tensor = &input.value;
    } else if (refs[i].constant == nullptr) {
      tensor = nullptr;
    }
    infos[i] = {true, input.dtype, input.dims, tensor};
  }
  const PrepareContext context{
      {*node.node, node.opset, AttributeReader(*node.node), infos, setting.options}, setting.packs};
  if (!lacks_input(node, infos)) prepared->row = choose_kernel(node.rows, context);
  const uint32_t unaligned = prepared->row == nullptr ? 0 : prepared->row->unaligned;
  for (size_t i = 0; i < infos.size(); ++i) {
    if (infos[i].constant == nullptr || infos[i].constant->aligned() ||
        (i < 32 && (unaligned >> i & 1) != 0))
      continue;
    TRY(RunValue copy, aligned_copy(*infos[i].constant, setting.packs));
    prepared->aligned.emplace_back(i, std::move(copy));
  }
  for (const auto& [i, copy] : prepared->aligned) infos[i].constant = &copy.tensor();
  if (prepared->row != nullptr && prepared->row->any_rows)
    prepared->state = of_other_rows(node.index, *prepared);
  if (prepared->row != nullptr && prepared->row->prepare != nullptr && prepared->state == nullptr) {
    TRY(prepared->state, prepared->row->prepare(context));
  }
  std::lock_guard lock(mutex_);
  auto& list = nodes_[node.index];
  list.insert(list.begin(), prepared);
  if (list.size() > kKeep) list.pop_back();
  return PreparedPtr(std::move(prepared));
}

}  // namespace tombolo
