// Models and functions, and the entry points of parser.h.

#include <algorithm>

#include "ir/text/parser_impl.h"

namespace tombolo::text {

namespace {
constexpr std::string_view kModelKeys[] = {
    "ir_version", "opset_import",   "producer_name", "producer_version", "domain", "model_version",
    "doc_string", "metadata_props", "training_info", "configuration",    "unknown"};
}  // namespace

bool Parser::begins_model() {
  if (!match('<')) {
    Text ignored;
    return next_is_name() && name(ignored, "") && (peek() == '(' || match("@{"));
  }
  const std::string_view key = word();
  return match(':') &&
         std::find(std::begin(kModelKeys), std::end(kModelKeys), key) != std::end(kModelKeys);
}

bool Parser::model(Model& model) {
  if (match('<') && !model_header(model)) return false;
  if (!match('?')) {
    model.graph = std::make_unique<Graph>(storage_ptr_);
    if (!graph(*model.graph, nullptr)) return false;
  }
  while (!at_end()) {
    if (!charge(sizeof(Function) + 64)) return false;
    model.functions.push_back(std::make_unique<Function>(storage_ptr_));
    if (!function(*model.functions.back())) return false;
  }
  return true;
}

bool Parser::model_header(Model& model) {
  return entries('>', kModelKeys, [&](size_t key) {
    switch (key) {
      case 0:
        model.has_ir_version = true;
        return number(model.ir_version, "an integer");
      case 1:
        return opset_imports(model.opset_imports);
      case 2:
        return text_value(model.producer_name);
      case 3:
        return text_value(model.producer_version);
      case 4:
        return text_value(model.domain);
      case 5:
        model.has_model_version = true;
        return number(model.model_version, "an integer");
      case 6:
        return text_value(model.doc);
      case 7:
        return string_entries(model.metadata);
      case 8:
        return list(model.training, [&](TrainingInfo& item) { return training(item); });
      case 9:
        return list(model.configurations,
                    [&](DeviceConfiguration& item) { return device_configuration(item); });
      default:
        return hex_value(model.unknown);
    }
  });
}

bool Parser::opset_imports(std::vector<OpsetImport>& out) {
  static constexpr std::string_view kKeys[] = {"unknown"};
  return list(out, [&](OpsetImport& item) {
    if (!text_value(item.domain) || !expect(':', "after the domain")) return false;
    if (!match('?')) {
      item.has_version = true;
      if (!number(item.version, "a version")) return false;
    }
    return annotation(kKeys, [&](size_t) { return hex_value(item.unknown); });
  });
}

bool Parser::training(TrainingInfo& out) {
  static constexpr std::string_view kKeys[] = {
      "initialization", "algorithm", "initialization_binding", "update_binding", "unknown"};
  return expect('{', "to begin a training info") && entries('}', kKeys, [&](size_t key) {
           switch (key) {
             case 0:
               out.initialization = std::make_unique<Graph>(storage_ptr_);
               return graph(*out.initialization, nullptr);
             case 1:
               out.algorithm = std::make_unique<Graph>(storage_ptr_);
               return graph(*out.algorithm, nullptr);
             case 2:
               return string_entries(out.initialization_binding);
             case 3:
               return string_entries(out.update_binding);
             default:
               return hex_value(out.unknown);
           }
         });
}

bool Parser::device_configuration(DeviceConfiguration& out) {
  static constexpr std::string_view kKeys[] = {"name", "num_devices", "device", "unknown"};
  return expect('{', "to begin a configuration") && entries('}', kKeys, [&](size_t key) {
           switch (key) {
             case 0:
               return text_value(out.name);
             case 1:
               out.has_num_devices = true;
               return int32_value(out.num_devices);
             case 2:
               return texts_value(out.devices);
             default:
               return hex_value(out.unknown);
           }
         });
}

bool Parser::function(Function& function) {
  static constexpr std::string_view kKeys[] = {"domain",     "overload",       "opset_import",
                                               "doc_string", "metadata_props", "unknown"};
  const bool header = !match('<') || entries('>', kKeys, [&](size_t key) {
    switch (key) {
      case 0:
        return text_value(function.domain);
      case 1:
        return text_value(function.overload);
      case 2:
        return opset_imports(function.opset_imports);
      case 3:
        return text_value(function.doc);
      case 4:
        return string_entries(function.metadata);
      default:
        return hex_value(function.unknown);
    }
  });
  Text found;
  if (!header || !name(found, "the name of a function")) return false;
  function.name = keep(found);
  if (!function_attributes(function)) return false;
  GraphLinker linker(function.body, nullptr, {.copy_names = true, .function = true});
  if (!inputs(linker, false)) return false;
  if (!match("=>"))
    return fail("expected \"=>\" after the inputs of the function, " + this->found());
  if (!outputs(linker, false) || !declarations(linker) || !node_list(function.body, linker))
    return false;
  linker.finish();
  return true;
}

/// `<` names of attributes without default, and attributes with one `>`
bool Parser::function_attributes(Function& function) {
  if (!match('<')) return true;
  if (match('>')) return true;
  do {
    Text found;
    if (!charge(sizeof(Attribute)) || !name(found, "the name of an attribute")) return false;
    found = intern(found);
    if (peek() == ',' || peek() == '>') {
      function.attributes.push_back(found);
      continue;
    }
    Attribute attribute;
    attribute.name = found;
    if (!this->attribute(attribute, nullptr, nullptr)) return false;
    function.attribute_protos.push_back(std::move(attribute));
  } while (match(','));
  return expect('>', "after the attributes of the function");
}

bool Parser::end_of_text() { return at_end() || fail("expected the end of the text, " + found()); }

}  // namespace tombolo::text

namespace tombolo {

bool looks_like_text(std::string_view text) {
  return text::Parser(text.substr(0, 1 << 16), std::make_shared<Storage>(), {}).begins_model();
}

Result<std::unique_ptr<Model>> parse_text(std::string_view text, const ParseOptions& options) {
  auto model = std::make_unique<Model>();
  text::Parser parser(text, model->storage_ptr(), options);
  if (!parser.model(*model)) return parser.take_error();
  return model;
}

Result<std::unique_ptr<Graph>> parse_graph(std::string_view text, StoragePtr storage) {
  auto graph = std::make_unique<Graph>(storage);
  text::Parser parser(text, std::move(storage), {});
  if (!parser.graph(*graph, nullptr) || !parser.end_of_text()) return parser.take_error();
  return graph;
}

Result<std::unique_ptr<Function>> parse_function(std::string_view text, StoragePtr storage) {
  auto function = std::make_unique<Function>(storage);
  text::Parser parser(text, std::move(storage), {});
  if (!parser.function(*function) || !parser.end_of_text()) return parser.take_error();
  return function;
}

Result<Node*> parse_node(std::string_view text, Graph& graph) {
  text::Parser parser(text, graph.storage_ptr(), {});
  GraphLinker linker(graph, nullptr, {.copy_names = true});
  linker.adopt();
  Node* node = nullptr;
  if (!parser.node(graph, linker, &node) || !parser.end_of_text()) return parser.take_error();
  linker.finish();
  return node;
}

Status parse_nodes(std::string_view text, Graph& graph) {
  text::Parser parser(text, graph.storage_ptr(), {});
  GraphLinker linker(graph, nullptr, {.copy_names = true});
  linker.adopt();
  while (!parser.at_end())
    if (!parser.node(graph, linker)) return parser.take_error();
  linker.finish();
  return ok();
}

}  // namespace tombolo
