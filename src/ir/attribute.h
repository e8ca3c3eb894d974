#pragma once

// Attribute: AttributeProto. The member that `type` names is held typed; members beside it
// (invalid, but possible in a file) are kept as wire bytes in `extra->unknown` and written back.

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <variant>
#include <vector>

#include "ir/attr_type.h"
#include "ir/constant.h"
#include "ir/storage.h"
#include "ir/type.h"

namespace tombolo {

class Graph;

class Attribute {
 public:
  struct Extra {
    Text ref_attr_name;  ///< inside functions: the function's attribute that this one takes
    Text doc;
    Text unknown;
  };
  using Value = std::variant<std::monostate, float, int64_t, Text, std::vector<float>,
                             std::vector<int64_t>, std::vector<Text>, std::unique_ptr<Constant>,
                             std::unique_ptr<Graph>, std::unique_ptr<SparseConstant>, const Type*,
                             std::vector<Constant>, std::vector<std::unique_ptr<Graph>>,
                             std::vector<SparseConstant>, std::vector<const Type*>>;

  Attribute();
  Attribute(Text name, AttrType type, Value value);
  Attribute(Attribute&&) noexcept;
  Attribute& operator=(Attribute&&) noexcept;
  ~Attribute();

  Text name;
  AttrType type = AttrType::kUndefined;
  bool has_type = true;  ///< the discriminator is in the file (it is not before IR 2)
  Value value;           ///< monostate: no member is set (its default then)
  std::unique_ptr<Extra> extra;

  Extra& ensure_extra() {
    if (!extra) extra = std::make_unique<Extra>();
    return *extra;
  }
  Text ref_attr_name() const { return extra ? extra->ref_attr_name : Text(); }
  bool is_reference() const { return !ref_attr_name().empty(); }

  /// Typed reads; null (or an empty span) when the attribute is of another type. An absent member
  /// of the right type reads as protobuf's default.
  const float* f() const;
  const int64_t* i() const;
  const Text* s() const;
  std::span<const float> floats() const;
  std::span<const int64_t> ints() const;
  std::span<const Text> strings() const;
  const Constant* tensor() const;
  const Graph* graph() const;
  Graph* graph();
  const SparseConstant* sparse_tensor() const;
  const Type* type_proto() const;
};

}  // namespace tombolo
