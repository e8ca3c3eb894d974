#include "runtime/flatten.h"

namespace tombolo {

std::vector<NamedTensor> flatten_outputs(const std::vector<SessionPort>& ports,
                                         const std::vector<RunValue>& values) {
  std::vector<NamedTensor> flat;
  auto add = [&](auto&& self, const std::string& name, const RunValue& value) -> void {
    switch (value.kind()) {
      case RunValue::Kind::kTensor:
        flat.push_back({name, value.tensor()});
        return;
      case RunValue::Kind::kSequence: {
        const SequenceValue& sequence = value.sequence();
        for (size_t i = 0; i < sequence.size(); ++i)
          self(self, name + "." + std::to_string(i), sequence.item(i));
        return;
      }
      case RunValue::Kind::kOptional:
        if (const RunValue* content = value.optional_content()) self(self, name, *content);
        return;
      case RunValue::Kind::kMap:
        flat.push_back({name + ".keys", value.map().keys});
        if (value.map().of_scalars()) {
          flat.push_back({name + ".values", value.map().scalars});
          return;
        }
        for (size_t i = 0; i < value.map().values.size(); ++i)
          self(self, name + ".values." + std::to_string(i), value.map().values[i]);
        return;
      case RunValue::Kind::kSparse:
        flat.push_back({name + ".values", value.sparse().values});
        flat.push_back({name + ".indices", value.sparse().indices});
        return;
      case RunValue::Kind::kNone:
        return;
    }
  };
  for (size_t i = 0; i < values.size(); ++i) add(add, ports[i].name, values[i]);
  return flat;
}

}  // namespace tombolo
