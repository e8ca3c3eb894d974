#include "ir/run_value.h"

namespace tombolo {

RunValue::RunValue(SequenceValue sequence)
    : state_(std::make_shared<SequenceValue>(std::move(sequence))) {
}  // own_sequence() writes to it
RunValue::RunValue(MapValue map) : state_(std::make_shared<const MapValue>(std::move(map))) {}
RunValue::RunValue(SparseValue sparse)
    : state_(std::make_shared<const SparseValue>(std::move(sparse))) {}

RunValue RunValue::optional_of(RunValue value) {
  RunValue result;
  result.state_ = std::make_shared<const OptionalValue>(OptionalValue{true, std::move(value)});
  return result;
}

RunValue RunValue::empty_optional() {
  RunValue result;
  result.state_ = std::make_shared<const OptionalValue>();
  return result;
}

size_t SequenceValue::size() const {
  return rows != nullptr ? static_cast<size_t>(rows->scalars.dim(0)) : items.size();
}
RunValue SequenceValue::item(size_t index) const {
  if (rows == nullptr) return items[index];
  const int64_t columns = rows->scalars.dim(1);
  return MapValue{
      rows->keys, {}, rows->scalars.part(static_cast<int64_t>(index) * columns, {{columns}})};
}

size_t MapValue::size() const {
  return of_scalars() ? static_cast<size_t>(scalars.size()) : values.size();
}
RunValue MapValue::value(size_t index) const {
  return of_scalars() ? RunValue(scalars.part(static_cast<int64_t>(index), {})) : values[index];
}

const SequenceValue& RunValue::sequence() const {
  return *std::get<std::shared_ptr<const SequenceValue>>(state_);
}
SequenceValue* RunValue::own_sequence() {
  const auto* held = std::get_if<std::shared_ptr<const SequenceValue>>(&state_);
  return held != nullptr && held->use_count() == 1 ? const_cast<SequenceValue*>(held->get())
                                                   : nullptr;
}
const MapValue& RunValue::map() const { return *std::get<std::shared_ptr<const MapValue>>(state_); }
const SparseValue& RunValue::sparse() const {
  return *std::get<std::shared_ptr<const SparseValue>>(state_);
}
const RunValue* RunValue::optional_content() const {
  const auto& optional = *std::get<std::shared_ptr<const OptionalValue>>(state_);
  return optional.has ? &optional.content : nullptr;
}

RunValue::RunValue(const RunValue& other) = default;
RunValue::RunValue(RunValue&& other) noexcept = default;
RunValue& RunValue::operator=(const RunValue& other) = default;
RunValue& RunValue::operator=(RunValue&& other) noexcept = default;
RunValue::~RunValue() = default;

}  // namespace tombolo
