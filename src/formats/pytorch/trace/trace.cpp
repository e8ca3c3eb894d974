#include "formats/pytorch/trace/trace.h"

#include <cmath>
#include <unordered_map>
#include <unordered_set>

#include "formats/common/json_view.h"
#include "formats/common/refusal.h"
#include "formats/pytorch/aten/context.h"
#include "formats/pytorch/pt2/cleanup.h"
#include "formats/pytorch/torch_tensor.h"
#include "formats/weights/safetensors.h"

namespace tombolo::pytorch {
namespace {

constexpr std::string_view kMark = "\"tombolo-trace\"";
constexpr int64_t kVersion = 1;
constexpr int kMaxDepth = 50;

/// "float32", as PyTorch and NumPy say; kUndefined for what is no element type.
DType dtype_of(std::string_view name) {
  if (name == "int") return DType::kInt64;
  if (const torch::ElementType* type = torch::element_type_of_dtype(name);
      type != nullptr && type->lanes == 1)
    return type->dtype;
  return DType::kUndefined;
}

class TraceImporter {
 public:
  TraceImporter(Model& model, Json root) : model_(model), root_(root), c_(model) {}

  Status run(const std::vector<Weight>& weights) {
    CHECK_OK(bind_inputs());
    for (const Weight& weight : weights) {
      if (names_.contains(weight.name))
        return parse_error("\"" + weight.name + "\" is an input and a weight");
      weights_[weight.name] = &weight;
    }
    const Json nodes = root_["nodes"];
    const std::vector<bool> needed = needed_nodes(nodes);
    for (size_t i = 0; i < nodes.size(); ++i) {
      const Json node = nodes.at(i);
      const std::string op(node["op"].string_or(""));
      const std::string label(node["outputs"].at(0).string_or(""));
      if (needed[i] && !AtenContext::knows(op)) refusals_.add("operator " + op, label, "");
    }
    if (!refusals_.empty()) return refusals_.error();
    for (size_t i = 0; i < nodes.size(); ++i)
      if (needed[i]) CHECK_OK(lower(nodes.at(i)));
    if (!refusals_.empty()) return refusals_.error();
    c_.b.set_scope("");
    CHECK_OK(finish());
    return clean_up(model_);
  }

 private:
  Status bind_inputs() {
    const Json inputs = root_["inputs"];
    for (size_t i = 0; i < inputs.size(); ++i) {
      const Json input = inputs.at(i);
      const std::string name(input["name"].string_or(""));
      const DType type = dtype_of(input["dtype"].string_or(""));
      if (name.empty() || type == DType::kUndefined)
        return parse_error("input " + std::to_string(i) + " has no name or no known dtype");
      SymShape shape;
      const Json dims = input["shape"];
      for (size_t axis = 0; axis < dims.size(); ++axis) {
        const Json dim = dims.at(axis);
        if (dim.is_int() && dim.int_or(-1) >= 0)
          shape.emplace_back(dim.int_or(0));
        else if (dim.is_string())
          shape.push_back(SymDim::parse(dim.string_or("")));
        else
          return parse_error("axis " + std::to_string(axis) + " of input \"" + name +
                             "\" is neither a length nor a name");
      }
      SymShape held = shape;
      if (is_complex(type)) held.emplace_back(2);
      Value* value = c_.b.input(name, AtenContext::real_of(type), held);
      if (!names_.emplace(name, Arg(c_.cell(value, type))).second)
        return parse_error("two inputs are called \"" + name + "\"");
      for (size_t axis = 0; axis < shape.size(); ++axis)
        if (shape[axis].is_expression()) {
          const std::string text = shape[axis].to_string();
          if (text.find_first_of(" +-*/%(") == text.npos)
            c_.bind_symbol(text, value, static_cast<int64_t>(axis));
        }
    }
    return ok();
  }

  static void collect(Json value, std::unordered_set<std::string>& names, int depth = 0) {
    if (depth > kMaxDepth) return;
    if (const Json name = value["t"]; name.is_string()) names.emplace(name.string_or(""));
    for (size_t i = 0; value.is_array() && i < value.size(); ++i)
      collect(value.at(i), names, depth + 1);
  }

  /// What the outputs follow from, and what writes in place: a trace holds all that was run.
  std::vector<bool> needed_nodes(Json nodes) const {
    std::unordered_set<std::string> names;
    const Json outputs = root_["outputs"];
    for (size_t i = 0; i < outputs.size(); ++i) names.emplace(outputs.at(i).string_or(""));
    std::vector<bool> needed(nodes.size());
    for (size_t i = nodes.size(); i-- > 0;) {
      const Json node = nodes.at(i), made = node["outputs"], named_args = node["kwargs"];
      const std::string_view op = node["op"].string_or("");
      needed[i] = op.substr(0, op.find('.')).ends_with('_') || named_args["out"].exists();
      for (size_t k = 0; k < made.size(); ++k)
        needed[i] = needed[i] || names.contains(std::string(made.at(k).string_or("")));
      if (!needed[i]) continue;
      collect(node["args"], names);
      for (size_t k = 0; k < named_args.size(); ++k) collect(named_args.member(k), names);
    }
    return needed;
  }

  /// A value by name; weights enter the model where they are first read.
  Result<Arg> named(std::string_view text) {
    const std::string name(text);
    if (const auto found = names_.find(name); found != names_.end()) return found->second;
    const auto weight = weights_.find(name);
    if (weight == weights_.end()) return parse_error("nothing defines \"" + name + "\"");
    Ref cell;
    const Tensor& tensor = weight->second->tensor;
    if (is_complex(tensor.dtype()))
      return unsupported("the weight \"" + name +
                         "\" is complex: store its real and imaginary part");
    Value* const value = c_.b.weight(tensor, name);
    cell = c_.cell(value);
    state_.push_back({name, cell, value});
    names_[name] = Arg(cell);
    return Arg(cell);
  }

  Result<Arg> read(Json value, int depth = 0) {
    if (depth > kMaxDepth) return parse_error("arguments are nested too deeply");
    if (value.is_null()) return Arg();
    if (value.is_bool()) return Arg(value.bool_or(false));
    if (value.is_int()) return Arg(value.int_or(0));
    if (value.is_number()) return Arg(value.double_or(0));
    if (value.is_string()) return Arg(std::string(value.string_or("")));
    if (value.is_array()) {
      std::vector<Arg> items;
      for (size_t i = 0; i < value.size(); ++i) {
        TRY(Arg item, read(value.at(i), depth + 1));
        items.push_back(std::move(item));
      }
      return Arg(std::move(items));
    }
    if (const Json name = value["t"]; name.is_string()) return named(name.string_or(""));
    if (const Json name = value["dtype"]; name.is_string()) {
      const DType type = dtype_of(name.string_or(""));
      if (type == DType::kUndefined)
        return unsupported("the element type " + std::string(name.string_or("")));
      return Arg(type);
    }
    if (const Json real = value["float"]; real.is_string()) {
      const std::string_view text = real.string_or("");
      if (text == "inf") return Arg(static_cast<double>(INFINITY));
      if (text == "-inf") return Arg(-static_cast<double>(INFINITY));
      if (text == "nan") return Arg(static_cast<double>(NAN));
    }
    if (const Json parts = value["complex"]; parts.size() == 2)
      return Arg::complex(parts.at(0).double_or(0), parts.at(1).double_or(0));
    return parse_error("an argument is nothing that a trace may hold: " + value.to_string());
  }

  Status lower(Json node) {
    const std::string op(node["op"].string_or(""));
    const Json outputs = node["outputs"], given = node["args"], by_name = node["kwargs"];
    const std::string label(outputs.at(0).string_or(""));
    const std::string place = "node \"" + label + "\" (" + op + ")";
    c_.b.set_scope(label);
    std::vector<Arg> args;
    std::vector<std::pair<std::string, Arg>> named_args;
    const auto read_all = [&]() -> Status {
      for (size_t i = 0; i < given.size(); ++i) {
        TRY(Arg arg, read(given.at(i)));
        args.push_back(std::move(arg));
      }
      for (size_t i = 0; i < by_name.size(); ++i) {
        TRY(Arg arg, read(by_name.member(i)));
        named_args.emplace_back(by_name.key(i), std::move(arg));
      }
      return ok();
    };
    if (Status done = read_all(); !done) return std::move(done).at(place);
    auto results = c_.call(op, std::move(args), std::move(named_args));
    if (!results) {
      if (results.error().kind != ErrorKind::kUnsupported)
        return std::move(results).error().at(place);
      refusals_.add("operator " + op, label, results.error().message, results.error().help);
      // What depends on it cannot be looked at.
      return refusals_.error();
    }
    std::vector<Arg> all = *std::move(results);
    if (all.size() == 1 && all[0].kind == Arg::Kind::kList && outputs.size() != 0)
      all = std::vector<Arg>(std::move(all[0].list));
    for (size_t i = 0; i < outputs.size(); ++i) {
      const std::string name(outputs.at(i).string_or(""));
      if (name.empty()) continue;
      if (i >= all.size())
        return parse_error("the operator gives " + std::to_string(all.size()) + " results, not " +
                           std::to_string(outputs.size()))
            .at(place);
      names_[name] = std::move(all[i]);
    }
    return ok();
  }

  Status add_output(Value* value, const std::string& name) {
    if (!value->producer() || value->output_uses() != 0) value = c_.b.op("Identity", {value});
    if (!name.empty() && value->name() != name) c_.b.rename(value, name);
    model_.graph->add_output(value);
    return ok();
  }

  Status finish() {
    const Json outputs = root_["outputs"];
    for (size_t i = 0; i < outputs.size(); ++i) {
      TRY(Arg result, named(outputs.at(i).string_or("")));
      const std::string name = "output_" + std::to_string(i);
      if (result.is_tensor())
        CHECK_OK(add_output(c_.read(result.tensor), name));
      else if (result.kind == Arg::Kind::kInt)
        CHECK_OK(add_output(c_.int_value(result.integer), name));
    }
    // Weights that the program wrote to: the old value is the default of an input.
    for (const State& one : state_) {
      if (AtenContext::root(one.cell)->version == 0) continue;
      c_.b.set_type(one.initial, c_.b.dtype(one.initial), SymShape(c_.b.shape(one.initial)));
      model_.graph->define_input(one.initial);
      CHECK_OK(add_output(c_.read(one.cell), one.name + ".new"));
    }
    return c_.take_status();
  }

  struct State {
    std::string name;
    Ref cell;
    Value* initial;
  };
  Model& model_;
  Json root_;
  AtenContext c_;
  Refusals refusals_;
  std::unordered_map<std::string, Arg> names_;
  std::unordered_map<std::string, const Weight*> weights_;
  std::vector<State> state_;
};

/// "net.trace.json" -> "net.trace.safetensors".
std::string beside(const std::string& path) {
  const size_t dot = path.rfind('.');
  const size_t slash = path.rfind('/');
  const bool has_dot = dot != path.npos && (slash == path.npos || dot > slash);
  return (has_dot ? path.substr(0, dot) : path) + ".safetensors";
}

}  // namespace

int probe_trace(const Source& source) {
  if (source.is_folder) return 0;
  const auto bytes = source.file.bytes();
  const std::string_view head(reinterpret_cast<const char*>(bytes.data()),
                              std::min<size_t>(bytes.size(), 256));
  return head.find(kMark) != head.npos && head.find('{') != head.npos ? 3 : 0;
}

Result<std::unique_ptr<Model>> load_trace(const Source& source, const LoadOptions& options) {
  const auto bytes = source.file.bytes();
  TRY(const JsonDocument document,
      JsonDocument::parse({reinterpret_cast<const char*>(bytes.data()), bytes.size()}));
  const Json root = document.root();
  if (root["format"].string_or("") != "tombolo-trace") return parse_error("this is no trace");
  if (const int64_t version = root["version"].int_or(0); version < 1 || version > kVersion)
    return unsupported("the trace has version " + std::to_string(version) + "; known are 1 to " +
                       std::to_string(kVersion));
  auto model = std::make_unique<Model>(Model::create(kImportOpset));
  model->producer_name = "tombolo";
  model->graph->name = "main_graph";
  model->metadata.push_back({"source", model->storage().copy(root["producer"].string_or("trace"))});
  const std::string path = options.weights.empty() ? beside(source.path) : options.weights;
  auto file = MappedFile::open(path);
  if (!file) return std::move(file).error().at("weights of the trace, file \"" + path + "\"");
  auto weights = read_safetensors(file->bytes(), file->owner());
  if (!weights) return std::move(weights).error().at("file \"" + path + "\"");
  model->storage().keep(file->owner());
  TraceImporter importer(*model, root);
  CHECK_OK(importer.run(*weights));
  return model;
}

}  // namespace tombolo::pytorch
