// ModelProto and the messages that hang on it: training, devices, sharding.

#include "onnx/decoder.h"

namespace tombolo::onnx {

bool Decoder::opset_import(std::string_view bytes, OpsetImport& import) {
  return fields(bytes, import.unknown, [&](const WireReader& r) {
    if (r.field == 1) return text(r, import.domain);
    return r.field == 2 ? number(r, import.version, import.has_version) : Took::kNo;
  });
}

bool Decoder::model(std::string_view bytes, Model& model) {
  Pieces graph_bytes;
  if (!fields(bytes, model.unknown, [&](const WireReader& r) {
        switch (r.field) {
          case 1:
            return number(r, model.ir_version, model.has_ir_version);
          case 2:
            return text(r, model.producer_name);
          case 3:
            return text(r, model.producer_version);
          case 4:
            return text(r, model.domain);
          case 5:
            return number(r, model.model_version, model.has_model_version);
          case 6:
            return text(r, model.doc);
          case 7:
            return piece(r, graph_bytes);
          case 8:
            return items(
                r, model.opset_imports, "opset_import",
                [&](std::string_view part, OpsetImport& item) { return opset_import(part, item); });
          case 14:
            return entries(r, model.metadata);
          case 20:
            return items(
                r, model.training, "training_info",
                [&](std::string_view part, TrainingInfo& item) { return training(part, item); });
          case 25: {
            if (r.type != WireType::kBytes) return Took::kNo;
            if (!spend(sizeof(Function))) return Took::kFailed;
            Function& item = *model.functions.emplace_back(std::make_unique<Function>(storage_));
            if (function(r.bytes, item)) return Took::kYes;
            at("function " + std::to_string(model.functions.size() - 1) + " \"" +
               std::string(item.name.substr(0, 200)) + "\"");
            return Took::kFailed;
          }
          case 26:
            return items(r, model.configurations, "configuration",
                         [&](std::string_view part, DeviceConfiguration& item) {
                           return device(part, item);
                         });
          default:
            return Took::kNo;
        }
      }))
    return false;
  if (!graph_bytes.any()) return true;
  model.graph = std::make_unique<Graph>(storage_);
  return graph(graph_bytes.text(*storage_), *model.graph, nullptr, 0) || at("graph");
}

bool Decoder::training(std::string_view bytes, TrainingInfo& training) {
  Pieces initialization, algorithm;
  if (!fields(bytes, training.unknown, [&](const WireReader& r) {
        switch (r.field) {
          case 1:
            return piece(r, initialization);
          case 2:
            return piece(r, algorithm);
          case 3:
            return entries(r, training.initialization_binding);
          case 4:
            return entries(r, training.update_binding);
          default:
            return Took::kNo;
        }
      }))
    return false;
  auto read = [&](const Pieces& part, std::unique_ptr<Graph>& out, const char* place) {
    if (!part.any()) return true;
    out = std::make_unique<Graph>(storage_);
    return graph(part.text(*storage_), *out, nullptr, 0) || at(place);
  };
  return read(initialization, training.initialization, "initialization") &&
         read(algorithm, training.algorithm, "algorithm");
}

bool Decoder::device(std::string_view bytes, DeviceConfiguration& device) {
  return fields(bytes, device.unknown, [&](const WireReader& r) {
    switch (r.field) {
      case 1:
        return text(r, device.name);
      case 2:
        return number(r, device.num_devices, device.has_num_devices);
      case 3:
        return texts(r, device.devices);
      default:
        return Took::kNo;
    }
  });
}

bool Decoder::device_configuration(std::string_view bytes, NodeDeviceConfiguration& out) {
  return fields(bytes, out.unknown, [&](const WireReader& r) {
    switch (r.field) {
      case 1:
        return text(r, out.configuration_id);
      case 2:
        return items(
            r, out.sharding, "sharding_spec",
            [&](std::string_view part, ShardingSpec& item) { return sharding(part, item); });
      case 3:
        return number(r, out.pipeline_stage, out.has_pipeline_stage);
      default:
        return Took::kNo;
    }
  });
}

bool Decoder::sharding(std::string_view bytes, ShardingSpec& out) {
  return fields(bytes, out.unknown, [&](const WireReader& r) {
    switch (r.field) {
      case 1:
        return text(r, out.tensor_name);
      case 2:
        return integers(r, out.devices);
      case 3:
        return items(r, out.groups, "device group",
                     [&](std::string_view part, ShardingSpec::Group& item) {
                       return fields(part, item.unknown, [&](const WireReader& g) {
                         if (g.field == 1) return number(g, item.key, item.has_key);
                         return g.field == 2 ? integers(g, item.values) : Took::kNo;
                       });
                     });
      case 4:
        return items(r, out.dims, "sharded_dim", [&](std::string_view part, ShardedDim& item) {
          return sharded_dim(part, item);
        });
      default:
        return Took::kNo;
    }
  });
}

bool Decoder::sharded_dim(std::string_view bytes, ShardedDim& out) {
  return fields(bytes, out.unknown, [&](const WireReader& r) {
    if (r.field == 1) return number(r, out.axis, out.has_axis);
    if (r.field != 2) return Took::kNo;
    return items(r, out.simple, "simple_sharding",
                 [&](std::string_view part, ShardedDim::Simple& item) {
                   return simple_sharding(part, item);
                 });
  });
}

bool Decoder::simple_sharding(std::string_view bytes, ShardedDim::Simple& out) {
  return fields(bytes, out.unknown, [&](const WireReader& r) {
    if (r.is(1, WireType::kVarint)) {
      out.dim = Dim::of(static_cast<int64_t>(r.number));
      return Took::kYes;
    }
    if (r.is(2, WireType::kBytes)) {
      out.dim = Dim::named(r.bytes);
      return Took::kYes;
    }
    return r.field == 3 ? number(r, out.num_shards, out.has_num_shards) : Took::kNo;
  });
}

}  // namespace tombolo::onnx
