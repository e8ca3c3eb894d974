#include "ir/text/printer_impl.h"

namespace tombolo::text {

void Printer::model(const Model& model) {
  storage_ = model.storage_ptr();
  {
    Annotation header(*this, "<\n  ", "\n>\n", ",\n  ");
    if (model.has_ir_version) header.number("ir_version", model.ir_version);
    if (!model.opset_imports.empty()) {
      header.key("opset_import");
      opset_imports(model.opset_imports);
    }
    header.text("producer_name", model.producer_name);
    header.text("producer_version", model.producer_version);
    header.text("domain", model.domain);
    if (model.has_model_version) header.number("model_version", model.model_version);
    header.text("doc_string", model.doc);
    header.entries("metadata_props", model.metadata);
    if (!model.training.empty()) {
      header.key("training_info");
      put('[');
      list(model.training, ", ", [&](const TrainingInfo& info) { training(info); });
      put(']');
    }
    if (!model.configurations.empty()) {
      header.key("configuration");
      put('[');
      list(model.configurations, ", ", [&](const DeviceConfiguration& configuration) {
        put('{');
        Annotation fields(*this, "", "");
        fields.text("name", configuration.name);
        if (configuration.has_num_devices) fields.number("num_devices", configuration.num_devices);
        if (!configuration.devices.empty()) {
          fields.key("device");
          put('[');
          list(configuration.devices, ", ", [&](Text device) { quoted(device); });
          put(']');
        }
        fields.hex("unknown", configuration.unknown);
        put('}');
      });
      put(']');
    }
    header.hex("unknown", model.unknown);
  }
  if (model.graph != nullptr)
    graph(*model.graph);
  else
    put('?');
  put('\n');
  for (const auto& function : model.functions) {
    this->function(*function);
    put('\n');
  }
}

void Printer::opset_imports(const std::vector<OpsetImport>& imports) {
  put('[');
  list(imports, ", ", [&](const OpsetImport& import) {
    quoted(import.domain);
    put(" : ");
    if (import.has_version)
      number(import.version);
    else
      put('?');
    Annotation(*this).hex("unknown", import.unknown);
  });
  put(']');
}

void Printer::training(const TrainingInfo& info) {
  put('{');
  Annotation fields(*this, "", "");
  ++indent_;
  if (info.initialization != nullptr) {
    fields.key("initialization");
    graph(*info.initialization);
  }
  if (info.algorithm != nullptr) {
    fields.key("algorithm");
    graph(*info.algorithm);
  }
  --indent_;
  fields.entries("initialization_binding", info.initialization_binding);
  fields.entries("update_binding", info.update_binding);
  fields.hex("unknown", info.unknown);
  put('}');
}

void Printer::function(const Function& function) {
  storage_ = function.body.storage_ptr();
  put("<\n  ");
  {
    Annotation header(*this, "", "\n>\n", ",\n  ");
    header.key("domain");  // always, so that there is a header
    quoted(function.domain);
    if (!function.overload.empty()) header.text("overload", function.overload);
    header.key("opset_import");
    opset_imports(function.opset_imports);
    header.text("doc_string", function.doc);
    header.entries("metadata_props", function.metadata);
    header.hex("unknown", function.unknown);
  }
  name(function.name);
  put(' ');
  if (!function.attributes.empty() || !function.attribute_protos.empty()) {
    put('<');
    list(function.attributes, ", ", [&](Text attribute) { name(attribute); });
    if (!function.attributes.empty() && !function.attribute_protos.empty()) put(", ");
    list(function.attribute_protos, ", ", [&](const Attribute& item) { attribute(item); });
    put("> ");
  }
  auto plain = [&](const Value* value) {
    if (value != nullptr && is_reserved(value->name()))
      quoted(value->name());
    else
      value_name(value);
  };
  put('(');
  list(function.body.inputs(), ", ", plain);
  put(") => (");
  list(function.body.outputs(), ", ", [&](const GraphOutput& output) { plain(output.value); });
  put(')');
  declarations(function.body);
  node_list(function.body);
}

}  // namespace tombolo::text
