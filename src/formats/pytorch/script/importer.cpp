#include "formats/pytorch/script/importer.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>

#include "formats/common/npy.h"
#include "formats/pytorch/script/interpreter.h"

namespace tombolo::script {

namespace {

using AKind = Arg::Kind;

/// The examples that inputs take their types and ranks from.
class Samples {
 public:
  explicit Samples(std::vector<NamedTensor> tensors) : tensors_(std::move(tensors)) {
    used_.resize(tensors_.size());
    // Test cases hold outputs too, and a second size.
    bool numbered = false;
    for (const NamedTensor& one : tensors_) numbered = numbered || one.name.starts_with("in_");
    for (size_t i = 0; i < tensors_.size(); ++i) {
      const std::string_view name = tensors_[i].name;
      if (numbered && !name.starts_with("in_")) used_[i] = true;
      if (!numbered && (name.starts_with("out_") || name.starts_with("out2_"))) used_[i] = true;
    }
    // in_10 comes after in_9.
    order_.resize(tensors_.size());
    for (size_t i = 0; i < order_.size(); ++i) order_[i] = i;
    std::stable_sort(order_.begin(), order_.end(),
                     [&](size_t a, size_t b) { return number(a) < number(b); });
  }

  const Tensor* by_name(std::string_view name) {
    for (size_t i = 0; i < tensors_.size(); ++i)
      if (!used_[i] && tensors_[i].name == name) {
        used_[i] = true;
        return &tensors_[i].tensor;
      }
    return nullptr;
  }
  /// The next one that is not named otherwise.
  const Tensor* next() {
    for (const size_t i : order_)
      if (!used_[i]) {
        used_[i] = true;
        return &tensors_[i].tensor;
      }
    return nullptr;
  }
  /// What follows "NAME." in the names of the examples.
  std::vector<std::string> below(const std::string& name) const {
    std::vector<std::string> keys;
    for (const NamedTensor& one : tensors_) {
      if (!one.name.starts_with(name + ".")) continue;
      const std::string rest = one.name.substr(name.size() + 1);
      const std::string key = rest.substr(0, rest.find('.'));
      if (std::find(keys.begin(), keys.end(), key) == keys.end()) keys.push_back(key);
    }
    return keys;
  }
  size_t left() const { return static_cast<size_t>(std::count(used_.begin(), used_.end(), false)); }
  bool empty() const { return tensors_.empty(); }

 private:
  int64_t number(size_t index) const {
    const std::string& name = tensors_[index].name;
    const size_t bar = name.rfind('_');
    int64_t value = 0;
    if (bar != std::string::npos)
      std::from_chars(name.data() + bar + 1, name.data() + name.size(), value);
    return value;
  }

  std::vector<NamedTensor> tensors_;
  std::vector<bool> used_;
  std::vector<size_t> order_;
};

class Importer {
 public:
  Importer(ScriptArchive& archive, Samples samples, const LoadOptions& options, int64_t open_axes)
      : samples_(std::move(samples)),
        options_(options),
        open_axes_(open_axes),
        model_(std::make_unique<Model>(Model::create(kImportOpset, "main"))),
        context_(*model_),
        in_(archive, context_) {}

  Result<std::unique_ptr<Model>> run() {
    model_->producer_name = model_->storage().copy("pytorch");
    TRY(Item module, in_.root());
    if (module.kind != Item::Kind::kObject || module.box->type == nullptr)
      return unsupported("the archive holds no module");
    const Class& type = *module.box->type;
    const std::string entry = options_.signature.empty() ? "forward" : options_.signature;
    const auto method = type.methods.find(entry);
    if (method == type.methods.end()) {
      std::string names;
      for (const auto& [name, function] : type.methods)
        names += (names.empty() ? "" : ", ") + std::string(name);
      return usage_error("the module has no method \"" + entry + "\"")
          .with_help("its methods are: " + names + "; choose one with --signature");
    }
    Items args;
    const auto& parameters = method->second->parameters;
    for (size_t i = 1; i < parameters.size(); ++i) {
      // Arguments behind this one that must be given.
      size_t after = 0;
      for (size_t k = i + 1; k < parameters.size(); ++k)
        after += !parameters[k].fallback && parameters[k].type &&
                 type_name(*parameters[k].type) != "Optional" &&
                 !options_.set.contains(std::string(parameters[k].name));
      auto item = input(parameters[i], after);
      if (!item.ok())
        return std::move(item).error().at("argument \"" + std::string(parameters[i].name) + "\"");
      args.push_back(*std::move(item));
    }
    inputs_ = model_->graph->inputs().size();
    TRY(Item result, in_.call_method(module, entry, std::move(args)));
    CHECK_OK(output(result, ""));
    CHECK_OK(state());
    CHECK_OK(context_.take_status());
    remove_dead(*model_->graph);
    if (model_->graph->outputs().empty()) return unsupported("the program gives no tensor back");
    return std::move(model_);
  }

 private:
  Result<Item> input(const Parameter& parameter, size_t after) {
    const std::string name(parameter.name);
    const auto set = options_.set.find(name);
    if (set != options_.set.end()) return setting(set->second, parameter.type);
    if (parameter.type == nullptr) return tensor_input(name, true);
    return typed_input(name, *parameter.type, parameter.fallback, after);
  }

  static std::string type_name(const Expr& type) {
    if (type.kind == Expr::Kind::kIndex) return type.items[0]->dotted();
    return type.dotted();
  }
  static std::vector<const Expr*> type_args(const Expr& type) {
    if (type.kind != Expr::Kind::kIndex) return {};
    const Expr* inside = type.items[1];
    if (inside->kind == Expr::Kind::kTuple) return inside->items;
    return {inside};
  }

  /// --set NAME=VALUE
  Result<Item> setting(const std::string& text, const Expr* type) {
    std::string name = type ? type_name(*type) : "";
    if (name == "Optional") name = type_name(*type_args(*type)[0]);
    if (text == "None") return Item();
    if (name == "str") return Item(Arg(text));
    if (name == "bool") return Item(Arg(text == "True" || text == "true" || text == "1"));
    char* end = nullptr;
    if (name == "float") {
      const double value = std::strtod(text.c_str(), &end);
      if (text.empty() || *end != '\0') return usage_error("\"" + text + "\" is no number");
      return Item(Arg(value));
    }
    if (name == "int" || name == "number" || name == "Scalar") {
      const int64_t value = std::strtoll(text.c_str(), &end, 10);
      if (!text.empty() && *end == '\0') return Item(Arg(value));
      const double real = std::strtod(text.c_str(), &end);
      if (name == "int" || text.empty() || *end != '\0')
        return usage_error("\"" + text + "\" is no number");
      return Item(Arg(real));
    }
    return usage_error("--set gives numbers and strings, and the argument is neither");
  }

  Result<Item> typed_input(const std::string& name, const Expr& type, const Expr* fallback,
                           size_t after) {
    const std::string kind = type_name(type);
    const auto args = type_args(type);
    if (kind == "Tensor") return tensor_input(name, true);
    if (kind == "Optional" && args.size() == 1) {
      // Present where an example says so.
      const bool given = samples_.left() > after;
      if (!given) return fallback ? in_.evaluate(*fallback) : Result<Item>(Item());
      return typed_input(name, *args[0], nullptr, after);
    }
    if (kind == "Tuple") {
      Items items;
      for (size_t i = 0; i < args.size(); ++i) {
        TRY(Item item, typed_input(name + "." + std::to_string(i), *args[i], nullptr,
                                   after + args.size() - i - 1));
        items.push_back(std::move(item));
      }
      return Item::tuple(std::move(items));
    }
    if (kind == "List" && args.size() == 1) {
      // As many as the examples that later arguments leave.
      Items items;
      const size_t count = samples_.left() > after ? samples_.left() - after : 0;
      if (count == 0)
        return usage_error("the length of a list of inputs is not known")
            .with_help("give example inputs with --sample FILE.npz");
      for (size_t i = 0; i < count; ++i) {
        TRY(Item item,
            typed_input(name + "." + std::to_string(i), *args[0], nullptr, after + count - i - 1));
        items.push_back(std::move(item));
      }
      return Item::list(std::move(items));
    }
    if (kind == "Dict" && args.size() == 2) {
      const std::vector<std::string> keys = samples_.below(name);
      if (keys.empty())
        return usage_error("the keys of a dict of inputs are not known")
            .with_help("give example inputs named \"" + name + ".KEY\" with --sample FILE.npz");
      Item dict = Item::of(Item::Kind::kDict, std::make_shared<Box>());
      for (const std::string& key : keys) {
        Item label{Arg(key)};
        if (type_name(*args[0]) == "int") label = Item(Arg(int64_t{std::atoll(key.c_str())}));
        TRY(Item item, typed_input(name + "." + key, *args[1], nullptr, after));
        dict.box->keys.push_back(std::move(label));
        dict.box->items.push_back(std::move(item));
      }
      return dict;
    }
    if (kind == "int" || kind == "float" || kind == "bool" || kind == "number" ||
        kind == "Scalar") {
      const Tensor* sample = samples_.by_name(name);
      if (sample == nullptr) sample = samples_.next();
      const DType dtype = kind == "float" || ((kind == "number" || kind == "Scalar") && sample &&
                                              is_float(sample->dtype()))
                              ? DType::kFloat64
                          : kind == "bool" ? DType::kBool
                                           : DType::kInt64;
      Value* value = context_.b.input(name, dtype, {});
      if (fallback) {
        TRY(Item item, in_.evaluate(*fallback));
        if (item.is_number() && !item.arg.computed) {
          TRY(Tensor initial, Tensor::allocate(dtype, {}));
          if (dtype == DType::kFloat64) {
            initial.set_double(0, item.arg.kind == AKind::kFloat
                                      ? item.arg.real
                                      : static_cast<double>(item.arg.integer.dim.value()));
          } else {
            initial.set_int64(0, item.arg.integer.dim.value());
          }
          model_->graph->set_initializer(
              value, Constant::from_tensor(initial, value->name(), model_->storage()));
        }
      }
      if (dtype == DType::kInt64) return Item(Arg(SymInt(SymDim(), value)));
      Arg arg;
      arg.kind = dtype == DType::kBool ? AKind::kBool : AKind::kFloat;
      arg.computed = value;
      return Item(std::move(arg));
    }
    if (kind == "str") {
      if (fallback) return in_.evaluate(*fallback);
      return usage_error("a string that the program needs")
          .with_help("give it with --set " + name + "=VALUE");
    }
    if (fallback) return in_.evaluate(*fallback);
    return unsupported("inputs of type " + kind);
  }

  Result<Item> tensor_input(const std::string& name, bool) {
    const Tensor* sample = samples_.by_name(name);
    if (sample == nullptr) sample = samples_.next();
    if (sample == nullptr)
      return unsupported("TorchScript keeps no types and ranks of tensor inputs")
          .with_help("give example inputs with --sample FILE.npz");
    SymShape shape;
    for (size_t axis = 0; axis < sample->rank(); ++axis) {
      const int64_t size = sample->dim(axis);
      if (static_cast<int64_t>(axis) < open_axes_ && size > 0)
        shape.push_back(SymDim::symbol(name_of(name) + "_dim" + std::to_string(axis)));
      else
        shape.emplace_back(size);
    }
    DType dtype = sample->dtype();
    if (is_complex(dtype)) shape.emplace_back(2);
    Value* value = context_.b.input(name, AtenContext::real_of(dtype), shape);
    for (size_t axis = 0; axis < sample->rank(); ++axis)
      if (shape[axis].is_expression())
        context_.bind_symbol(shape[axis].to_string(), value, static_cast<int64_t>(axis));
    return Item(Arg(context_.cell(value, dtype)));
  }

  /// Names of dimensions are identifiers.
  static std::string name_of(std::string text) {
    for (char& letter : text)
      if (!std::isalnum(static_cast<unsigned char>(letter))) letter = '_';
    return text;
  }

  Status output(const Item& item, const std::string& path) {
    const auto below = [&](const std::string& name) {
      return path.empty() ? name : path + "." + name;
    };
    switch (item.kind) {
      case Item::Kind::kArg:
        break;
      case Item::Kind::kList:
      case Item::Kind::kTuple:
        if (item.box->sequence) {
          add_output(item.box->sequence, path);
          return ok();
        }
        for (size_t i = 0; i < item.box->items.size(); ++i)
          CHECK_OK(
              output(item.box->items[i],
                     below(i < item.box->names.size() ? item.box->names[i] : std::to_string(i))));
        return ok();
      case Item::Kind::kDict:
        for (size_t i = 0; i < item.box->keys.size(); ++i) {
          const Item& key = item.box->keys[i];
          CHECK_OK(
              output(item.box->items[i], below(key.is_text() ? key.arg.text : std::to_string(i))));
        }
        return ok();
      default:
        return unsupported(kind_of(item) + " as an output");
    }
    if (item.is_tensor()) {
      TRY(Item real, in_.dequantized(item));
      Value* value = context_.read(real.arg.tensor);
      if (context_.failed()) {
        const Status status = context_.take_status();
        return Error(status.error()).at("the result " + (path.empty() ? "of forward" : path));
      }
      add_output(value, path);
      return ok();
    }
    // Numbers that the model computes; what is known before is no output.
    if (item.is_number() && item.arg.computed) add_output(item.arg.computed, path);
    if (item.is_arg(AKind::kInt) && !item.arg.integer.is_number())
      add_output(context_.int_value(item.arg.integer), path);
    return ok();
  }

  void add_output(Value* value, const std::string& path) {
    std::string name = path.empty()                                        ? "output"
                       : std::isdigit(static_cast<unsigned char>(path[0])) ? "output." + path
                                                                           : path;
    // Not an input, a weight, or one that is an output already.
    value = own_output(context_, value);
    context_.b.rename(value, name);
    model_->graph->add_output(value);
  }

  /// What the program writes to its buffers is an extra input, with its first value as default, and
  /// an extra output.
  Status state() {
    for (const Interpreter::State& one : in_.states()) {
      Item now = one.reassigned ? *one.reassigned : Item(Arg(one.cell));
      if (!now.is_tensor()) continue;
      Value* value = context_.read(now.arg.tensor);
      if (value == one.initial) continue;
      context_.b.set_type(one.initial, context_.b.dtype(one.initial),
                          SymShape(context_.b.shape(one.initial)));
      model_->graph->define_input(one.initial);
      value = own_output(context_, value);
      context_.b.rename(value, one.name + ".out");
      model_->graph->add_output(value);
    }
    return ok();
  }

  Samples samples_;
  const LoadOptions& options_;
  int64_t open_axes_;  ///< so many axes of each input may have other sizes than the example
  std::unique_ptr<Model> model_;
  AtenContext context_;
  Interpreter in_;
  size_t inputs_ = 0;
};

/// Example inputs that tracing recorded.
std::vector<NamedTensor> traced_samples(ScriptArchive& archive) {
  std::vector<NamedTensor> samples;
  const PickleValue* root = archive.traced_inputs();
  const auto unwrap = [](const PickleValue* value) {
    while (value && value->is(PickleValue::Kind::kObject) &&
           value->qualified_name().starts_with("torch.jit._pickle.") && value->at(0))
      value = value->at(0);
    return value;
  };
  root = unwrap(root);
  const PickleValue* inputs = root ? unwrap(root->find("forward")) : nullptr;
  if (inputs == nullptr) return samples;
  const auto collect = [&](const PickleValue* value, int depth, const auto& self) -> void {
    value = unwrap(value);
    if (value == nullptr || depth > 10) return;
    if (value->is_sequence()) {
      for (const PickleValue* item : value->items) self(item, depth + 1, self);
      return;
    }
    if (value->is(PickleValue::Kind::kDict)) {
      for (size_t i = 1; i < value->entries.size(); i += 2)
        self(value->entries[i], depth + 1, self);
      return;
    }
    if (!value->is(PickleValue::Kind::kObject)) return;
    auto tensor = archive.tensor(*value, "traced_inputs/");
    if (!tensor.ok()) return;
    // Storages may have been left out: types and sizes are what is needed.
    NamedTensor sample;
    sample.name = "arr_" + std::to_string(samples.size());
    const DType dtype = tensor->type->dtype;
    auto made = Tensor::allocate(dtype, tensor->sizes);
    if (element_count(tensor->sizes) > (1 << 28) || !made.ok()) return;
    sample.tensor = *made;
    samples.push_back(std::move(sample));
  };
  collect(inputs, 0, collect);
  return samples;
}

}  // namespace

Result<std::unique_ptr<Model>> import_torchscript(Blob file, std::vector<NamedTensor> samples,
                                                  const LoadOptions& options) {
  TRY(auto archive, ScriptArchive::open(file));
  if (samples.empty()) samples = traced_samples(*archive);
  // Sizes of inputs stay open. Where the program cannot be converted so, all but the first of each
  // input (the batch) are those of the examples; at last that one too.
  constexpr int64_t kAll = 1 << 20;
  auto model = Importer(*archive, Samples(samples), options, kAll).run();
  if (!model.ok() && model.error().kind == ErrorKind::kUnsupported && !samples.empty()) {
    const Error why = model.error();
    for (const int64_t open_axes : {1, 0}) {
      auto fixed = Importer(*archive, Samples(samples), options, open_axes).run();
      if (!fixed.ok() && open_axes > 0) continue;
      if (!fixed.ok()) return fixed;
      (*fixed)->metadata.push_back(
          {(*fixed)->storage().copy("sizes"),
           (*fixed)->storage().copy(std::string(open_axes > 0 ? "all but the first " : "") +
                                    "those of the example inputs: " + why.message +
                                    (why.where.empty() ? "" : " (" + why.where + ")"))});
      model = std::move(fixed);
      break;
    }
  }
  if (model.ok()) (*model)->storage().keep(file.owner);
  return model;
}

int probe_torchscript(const Source& source) {
  if (source.is_folder || !ZipArchive::probe(source.file.bytes())) return 0;
  auto zip = ZipArchive::open(source.file.bytes(), source.file.owner());
  return zip.ok() && is_script_archive(*zip) ? 3 : 0;
}

Result<std::unique_ptr<Model>> load_torchscript(const Source& source, const LoadOptions& options) {
  std::vector<NamedTensor> samples;
  if (!options.sample.empty()) {
    TRY(MappedFile file, MappedFile::open(options.sample));
    auto tensors = read_npz(file);
    if (!tensors.ok()) return std::move(tensors).error().at("file \"" + options.sample + "\"");
    samples = *std::move(tensors);
  }
  auto model =
      import_torchscript({source.file.bytes(), source.file.owner()}, std::move(samples), options);
  if (model.ok()) (*model)->storage().keep(source.file);
  return model;
}

}  // namespace tombolo::script
