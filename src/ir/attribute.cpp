#include "ir/attribute.h"

#include "ir/graph.h"

namespace tombolo {

Attribute::Attribute() = default;
Attribute::Attribute(Text name_, AttrType type_, Value value_)
    : name(name_), type(type_), value(std::move(value_)) {}
Attribute::Attribute(Attribute&&) noexcept = default;
Attribute& Attribute::operator=(Attribute&&) noexcept = default;
Attribute::~Attribute() = default;

namespace {
template <typename T>
std::span<const T> list_of(const Attribute::Value& value) {
  const auto* list = std::get_if<std::vector<T>>(&value);
  return list != nullptr ? std::span<const T>(*list) : std::span<const T>();
}
/// The scalar member, or a default where the type is right but the member is absent.
template <typename T>
const T* scalar_of(const Attribute& attribute, AttrType type) {
  static const T kDefault{};
  if (attribute.type != type) return nullptr;
  if (std::holds_alternative<std::monostate>(attribute.value)) return &kDefault;
  return std::get_if<T>(&attribute.value);
}
template <typename T>
T* pointer_of(const Attribute::Value& value) {
  const auto* pointer = std::get_if<std::unique_ptr<T>>(&value);
  return pointer != nullptr ? pointer->get() : nullptr;
}
}  // namespace

const float* Attribute::f() const { return scalar_of<float>(*this, AttrType::kFloat); }
const int64_t* Attribute::i() const { return scalar_of<int64_t>(*this, AttrType::kInt); }
const Text* Attribute::s() const { return scalar_of<Text>(*this, AttrType::kString); }
std::span<const float> Attribute::floats() const { return list_of<float>(value); }
std::span<const int64_t> Attribute::ints() const { return list_of<int64_t>(value); }
std::span<const Text> Attribute::strings() const { return list_of<Text>(value); }
const Constant* Attribute::tensor() const { return pointer_of<Constant>(value); }
const Graph* Attribute::graph() const { return pointer_of<Graph>(value); }
Graph* Attribute::graph() { return pointer_of<Graph>(value); }
const SparseConstant* Attribute::sparse_tensor() const { return pointer_of<SparseConstant>(value); }
const Type* Attribute::type_proto() const {
  const auto* pointer = std::get_if<const Type*>(&value);
  return pointer != nullptr ? *pointer : nullptr;
}

}  // namespace tombolo
