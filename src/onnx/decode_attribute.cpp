// AttributeProto: a discriminator and fourteen members, of which one should be set.

#include <bit>

#include "onnx/decoder.h"

namespace tombolo::onnx {

namespace {

/// One row a member: AttributeProto's field, and the wire type of one value of it.
struct Member {
  AttrType type;
  uint32_t field;
  WireType wire;
  bool repeated;
};
constexpr Member kMembers[] = {
    {AttrType::kFloat, 2, WireType::kFixed32, false},
    {AttrType::kInt, 3, WireType::kVarint, false},
    {AttrType::kString, 4, WireType::kBytes, false},
    {AttrType::kTensor, 5, WireType::kBytes, false},
    {AttrType::kGraph, 6, WireType::kBytes, false},
    {AttrType::kFloats, 7, WireType::kFixed32, true},
    {AttrType::kInts, 8, WireType::kVarint, true},
    {AttrType::kStrings, 9, WireType::kBytes, true},
    {AttrType::kTensors, 10, WireType::kBytes, true},
    {AttrType::kGraphs, 11, WireType::kBytes, true},
    {AttrType::kType, 14, WireType::kBytes, false},
    {AttrType::kTypes, 15, WireType::kBytes, true},
    {AttrType::kSparseTensor, 22, WireType::kBytes, false},
    {AttrType::kSparseTensors, 23, WireType::kBytes, true},
};

const Member* member_of(AttrType type) {
  for (const Member& row : kMembers)
    if (row.type == type) return &row;
  return nullptr;
}
const Member* member_of(const WireReader& reader) {
  for (const Member& row : kMembers)
    if (row.field == reader.field &&
        (row.wire == reader.type || (row.repeated && reader.type == WireType::kBytes)))
      return &row;
  return nullptr;
}

/// The value of a list attribute without elements.
Attribute::Value empty_value(AttrType type) {
  switch (type) {
    case AttrType::kFloats:
      return std::vector<float>();
    case AttrType::kInts:
      return std::vector<int64_t>();
    case AttrType::kStrings:
      return std::vector<Text>();
    case AttrType::kTensors:
      return std::vector<Constant>();
    case AttrType::kGraphs:
      return std::vector<std::unique_ptr<Graph>>();
    case AttrType::kSparseTensors:
      return std::vector<SparseConstant>();
    case AttrType::kTypes:
      return std::vector<const Type*>();
    default:
      return std::monostate();
  }
}

}  // namespace

bool Decoder::attribute(std::string_view bytes, Attribute& attribute, Graph& home, Node* parent,
                        std::vector<Pending>& pending) {
  uint32_t members = 0;
  Pieces unknown;
  attribute.has_type = false;
  const bool fine = fields(bytes, unknown, [&](const WireReader& r) {
    switch (r.field) {
      case 1:
        return text(r, attribute.name);
      case 13:
        return r.type == WireType::kBytes ? text(r, attribute.ensure_extra().doc) : Took::kNo;
      case 20:
        // A number outside the enumeration is an unknown field to proto2.
        if (r.type != WireType::kVarint || r.number > static_cast<uint64_t>(AttrType::kTypes))
          return Took::kNo;
        attribute.type = static_cast<AttrType>(r.number);
        attribute.has_type = true;
        return Took::kYes;
      case 21:
        return r.type == WireType::kBytes ? text(r, attribute.ensure_extra().ref_attr_name)
                                          : Took::kNo;
      default:
        break;
    }
    if (member_of(r) == nullptr) return Took::kNo;
    members |= 1u << r.field;
    return Took::kYes;
  });
  if (!fine) return false;

  // SPEC IR.md: before IR 2 there is no discriminator, the member that is set says the type.
  if (!attribute.has_type)
    for (const Member& row : kMembers)
      if ((members >> row.field & 1) != 0) {
        attribute.type = row.type;
        break;
      }
  attribute.value = empty_value(attribute.type);
  const Member* main = member_of(attribute.type);
  if (members != 0) {
    const uint32_t main_field = main != nullptr ? main->field : 0;
    Pieces message;
    Pieces seen;
    if (!fields(bytes, seen, [&](const WireReader& r) {
          if (member_of(r) == nullptr) return Took::kYes;
          if (r.field == main_field) return attribute_member(r, attribute, message);
          unknown.add(r.slice());
          return Took::kYes;
        }))
      return false;
    if (message.any() &&
        !attribute_message(message.text(*storage_), attribute, home, parent, pending))
      return false;
    if (auto* graphs = std::get_if<std::vector<std::unique_ptr<Graph>>>(&attribute.value)) {
      // attribute_member kept only their number; read the contents in file order.
      size_t index = 0;
      WireReader reader(bytes);
      while (reader.next()) {
        if (!reader.is(main_field, WireType::kBytes)) continue;
        (*graphs)[index] = std::make_unique<Graph>(storage_, parent);
        pending.push_back(
            {(*graphs)[index].get(), reader.bytes,
             "attribute \"" + std::string(attribute.name) + "\" > graph " + std::to_string(index)});
        ++index;
      }
    }
  }
  if (unknown.any()) attribute.ensure_extra().unknown = unknown.text(*storage_);
  return true;
}

Decoder::Took Decoder::attribute_member(const WireReader& r, Attribute& attribute,
                                        Pieces& message) {
  auto& value = attribute.value;
  switch (attribute.type) {
    case AttrType::kFloat:
      value = std::bit_cast<float>(static_cast<uint32_t>(r.number));
      return Took::kYes;
    case AttrType::kInt:
      value = static_cast<int64_t>(r.number);
      return Took::kYes;
    case AttrType::kString:
      value = Text(r.bytes);
      return Took::kYes;
    case AttrType::kFloats:
      return floats(r, std::get<std::vector<float>>(value));
    case AttrType::kInts:
      return integers(r, std::get<std::vector<int64_t>>(value));
    case AttrType::kStrings:
      return texts(r, std::get<std::vector<Text>>(value));
    case AttrType::kTensors:
      return items(r, std::get<std::vector<Constant>>(value), "tensor",
                   [&](std::string_view bytes, Constant& item) { return constant(bytes, item); });
    case AttrType::kSparseTensors:
      return items(
          r, std::get<std::vector<SparseConstant>>(value), "sparse tensor",
          [&](std::string_view bytes, SparseConstant& item) { return sparse(bytes, item); });
    case AttrType::kTypes:
      return items(r, std::get<std::vector<const Type*>>(value), "type",
                   [&](std::string_view bytes, const Type*& item) { return type(bytes, item); });
    case AttrType::kGraphs:
      if (!spend(sizeof(Graph))) return Took::kFailed;
      std::get<std::vector<std::unique_ptr<Graph>>>(value).emplace_back();
      return Took::kYes;
    default:
      return piece(r, message);
  }
}

bool Decoder::attribute_message(std::string_view bytes, Attribute& attribute, Graph& home,
                                Node* parent, std::vector<Pending>& pending) {
  switch (attribute.type) {
    case AttrType::kTensor: {
      auto tensor = std::make_unique<Constant>();
      if (!spend(sizeof(Constant)) || !constant(bytes, *tensor)) return at("tensor");
      attribute.value = std::move(tensor);
      return true;
    }
    case AttrType::kSparseTensor: {
      auto tensor = std::make_unique<SparseConstant>();
      if (!spend(sizeof(SparseConstant)) || !sparse(bytes, *tensor)) return at("sparse tensor");
      attribute.value = std::move(tensor);
      return true;
    }
    case AttrType::kType: {
      const Type* read = nullptr;
      if (!type(bytes, read)) return false;
      attribute.value = read;
      return true;
    }
    default: {
      if (!spend(sizeof(Graph))) return false;
      auto graph = std::make_unique<Graph>(home.storage_ptr(), parent);
      pending.push_back({graph.get(), bytes, "attribute \"" + std::string(attribute.name) + "\""});
      attribute.value = std::move(graph);
      return true;
    }
  }
}

}  // namespace tombolo::onnx
