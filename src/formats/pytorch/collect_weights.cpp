// Naming the tensors of a pickled object.

#include <unordered_set>

#include "formats/pytorch/checkpoint.h"

namespace tombolo::torch {

namespace {

using Kind = PickleValue::Kind;

constexpr size_t kMaxDepth = 500, kMaxVisits = 4'000'000, kMaxTensors = 1'000'000;

class Collector {
 public:
  explicit Collector(TensorReader& reader) : reader_(reader) {}

  Status visit(const PickleValue& value, const std::string& path) {
    if (++visits_ > kMaxVisits) return resource_error("the pickle refers to itself too often");
    if (const PickleValue* parts = subclass_parts(value)) return pairs(parts->entries, path);
    if (reader_.is_tensor(value)) return tensor(value, path);
    if (!value.is_sequence() && !value.is(Kind::kDict) && !value.is(Kind::kObject)) return ok();
    // What refers to itself has no path of its own the second time.
    if (!open_.insert(&value).second) return ok();
    if (open_.size() > kMaxDepth) return resource_error("the pickle is nested too deeply");
    CHECK_OK(members(value, path));
    open_.erase(&value);
    return ok();
  }

  std::vector<Weight> weights;

 private:
  /// The attributes of a tensor subclass that only wraps other tensors (torchao's quantised
  /// weights): (function, type, its arguments, attributes).
  static const PickleValue* subclass_parts(const PickleValue& value) {
    if (!value.is(Kind::kObject) || value.callable == nullptr ||
        !value.callable->is(Kind::kGlobal) ||
        !value.callable->text.starts_with("_rebuild_from_type"))
      return nullptr;
    const PickleValue *function = value.at(0), *parts = value.at(3);
    if (function == nullptr || parts == nullptr || !function->is(Kind::kGlobal) ||
        function->text != "_rebuild_wrapper_subclass" || !parts->is(Kind::kDict))
      return nullptr;
    return parts;
  }

  Status tensor(const PickleValue& value, const std::string& path) {
    if (weights.size() >= kMaxTensors) return resource_error("more than a million tensors");
    auto weight = reader_.weight(value, path);
    if (!weight.ok()) return std::move(weight).error().at("tensor \"" + path + "\"");
    weights.push_back(*std::move(weight));
    return ok();
  }

  static std::string join(const std::string& path, const std::string& name) {
    return path.empty() ? name : path + "." + name;
  }

  Status pairs(const std::vector<PickleValue*>& entries, const std::string& path) {
    size_t appended = 0;
    for (size_t i = 0; i + 1 < entries.size(); i += 2) {
      const PickleValue& key = *entries[i];
      std::string name;
      if (key.is_text() || key.is(Kind::kBytes)) {
        name = std::string(key.text);
      } else if (key.is(Kind::kInt)) {
        name = std::to_string(key.integer);
      } else if (key.is(Kind::kBool)) {
        name = key.integer != 0 ? "True" : "False";
      } else if (key.is_none()) {
        name = std::to_string(appended++);
      } else if (key.is(Kind::kTuple)) {
        for (const PickleValue* part : key.items)
          name = join(name, part->is_text()        ? std::string(part->text)
                            : part->is(Kind::kInt) ? std::to_string(part->integer)
                                                   : "_");
      } else {
        name = std::to_string(i / 2);
      }
      CHECK_OK(visit(*entries[i + 1], join(path, name)));
    }
    return ok();
  }

  Status members(const PickleValue& value, const std::string& path) {
    if (value.is_sequence()) {
      for (size_t i = 0; i < value.items.size(); ++i)
        CHECK_OK(visit(*value.items[i], join(path, std::to_string(i))));
      return ok();
    }
    if (value.is(Kind::kDict)) return pairs(value.entries, path);
    const PickleValue* state = value.state;
    if (state != nullptr && state->find("_parameters") && state->find("_modules"))
      return module(*state, path);
    for (size_t i = 0; value.is_new && i < value.items.size(); ++i)
      CHECK_OK(visit(*value.items[i], join(path, std::to_string(i))));
    CHECK_OK(pairs(value.entries, path));
    if (state == nullptr) return ok();
    if (state->is(Kind::kDict)) return pairs(state->entries, path);
    return visit(*state, path);
  }

  /// torch.nn.Module: parameters, buffers that are saved, children, as state_dict() orders them.
  Status module(const PickleValue& state, const std::string& path) {
    CHECK_OK(visit(*state.find("_parameters"), path));
    const PickleValue* hidden = state.find("_non_persistent_buffers_set");
    if (const PickleValue* buffers = state.find("_buffers"); buffers && buffers->is(Kind::kDict)) {
      std::vector<PickleValue*> saved;
      for (size_t i = 0; i + 1 < buffers->entries.size(); i += 2) {
        bool skip = false;
        for (const PickleValue* name : hidden ? hidden->items : std::vector<PickleValue*>())
          skip = skip || (name->is_text() && name->text == buffers->entries[i]->text);
        if (skip) continue;
        saved.push_back(buffers->entries[i]);
        saved.push_back(buffers->entries[i + 1]);
      }
      CHECK_OK(pairs(saved, path));
    }
    return visit(*state.find("_modules"), path);
  }

  TensorReader& reader_;
  std::unordered_set<const PickleValue*> open_;
  size_t visits_ = 0;
};

}  // namespace

Result<std::vector<Weight>> collect_weights(const PickleValue& root, TensorReader& reader) {
  Collector collector(reader);
  CHECK_OK(collector.visit(root, ""));
  return std::move(collector.weights);
}

}  // namespace tombolo::torch
