#include <algorithm>

#include "analysis/checker_impl.h"

namespace tombolo {

namespace {

/// Text attributes that take one of a few words: SPEC Operators.md, the operators' attribute texts.
struct Words {
  std::string_view op, attribute;
  std::string_view allowed;  ///< separated by blanks, with one in front and one behind
};
constexpr std::string_view kAutoPad = " NOTSET SAME_UPPER SAME_LOWER VALID ";
constexpr std::string_view kDirections = " forward reverse bidirectional ";
constexpr std::string_view kPost = " NONE SOFTMAX LOGISTIC SOFTMAX_ZERO PROBIT ";
constexpr Words kWords[] = {
    {"AveragePool", "auto_pad", kAutoPad},
    {"BitShift", "direction", " LEFT RIGHT "},
    {"CastMap", "cast_to", " TO_FLOAT TO_STRING TO_INT64 "},
    {"CastMap", "map_form", " DENSE SPARSE "},
    {"CausalConvWithState", "activation", " none silu swish "},
    {"Conv", "auto_pad", kAutoPad},
    {"ConvInteger", "auto_pad", kAutoPad},
    {"ConvTranspose", "auto_pad", kAutoPad},
    {"DepthToSpace", "mode", " DCR CRD "},
    {"GRU", "direction", kDirections},
    {"Gelu", "approximate", " none tanh "},
    {"GridSample", "mode", " linear nearest cubic bilinear bicubic "},
    {"GridSample", "padding_mode", " zeros border reflection "},
    {"ImageDecoder", "pixel_format", " Grayscale RGB BGR "},
    {"LSTM", "direction", kDirections},
    {"LinearAttention", "update_rule", " linear gated delta gated_delta "},
    {"LinearClassifier", "post_transform", kPost},
    {"LinearRegressor", "post_transform", kPost},
    {"LpPool", "auto_pad", kAutoPad},
    {"MaxPool", "auto_pad", kAutoPad},
    {"Momentum", "mode", " standard nesterov "},
    {"NegativeLogLikelihoodLoss", "reduction", " none sum mean "},
    {"Normalizer", "norm", " MAX L1 L2 "},
    {"Pad", "mode", " constant reflect edge wrap "},
    {"QLinearConv", "auto_pad", kAutoPad},
    {"RNN", "direction", kDirections},
    {"Resize", "coordinate_transformation_mode",
     " half_pixel half_pixel_symmetric pytorch_half_pixel align_corners asymmetric "
     "tf_half_pixel_for_nn tf_crop_and_resize "},
    {"Resize", "keep_aspect_ratio_policy", " stretch not_larger not_smaller "},
    {"Resize", "mode", " nearest linear cubic "},
    {"Resize", "nearest_mode", " round_prefer_floor round_prefer_ceil floor ceil "},
    {"RoiAlign", "coordinate_transformation_mode", " half_pixel output_half_pixel "},
    {"RoiAlign", "mode", " avg max "},
    {"SVMClassifier", "kernel_type", " LINEAR POLY RBF SIGMOID "},
    {"SVMClassifier", "post_transform", kPost},
    {"SVMRegressor", "kernel_type", " LINEAR POLY RBF SIGMOID "},
    {"SVMRegressor", "post_transform", kPost},
    {"ScatterElements", "reduction", " none add mul max min "},
    {"ScatterND", "reduction", " none add mul max min "},
    {"SoftmaxCrossEntropyLoss", "reduction", " none sum mean "},
    {"StringNormalizer", "case_change_action", " LOWER UPPER NONE "},
    {"TensorScatter", "mode", " linear circular "},
    {"TfIdfVectorizer", "mode", " TF IDF TFIDF "},
    {"TreeEnsembleClassifier", "post_transform", kPost},
    {"TreeEnsembleRegressor", "aggregate_function", " AVERAGE SUM MIN MAX "},
    {"TreeEnsembleRegressor", "post_transform", kPost},
    {"Upsample", "mode", " nearest linear bilinear "},
};

/// Operators that releases before 1.5 had as experiments, without a version.
constexpr std::string_view kExperiments[] = {"ATen", "ConstantFill", "GRUUnit", "GivenTensorFill"};

std::string port_text(size_t given, size_t least, size_t most, const char* what) {
  std::string text = std::to_string(given) + " " + what + (given == 1 ? "" : "s") + " given, ";
  if (least == most) return text + std::to_string(least) + " expected";
  if (most == SIZE_MAX) return text + "at least " + std::to_string(least) + " expected";
  return text + std::to_string(least) + " to " + std::to_string(most) + " expected";
}

/// The value that the attribute holds is of the kind that its type names (or there is none).
bool holds_own_type(const Attribute& attribute) {
  const size_t index = attribute.value.index();
  if (index == 0) return true;
  constexpr AttrType kKinds[] = {
      AttrType::kUndefined, AttrType::kFloat,         AttrType::kInt,     AttrType::kString,
      AttrType::kFloats,    AttrType::kInts,          AttrType::kStrings, AttrType::kTensor,
      AttrType::kGraph,     AttrType::kSparseTensor,  AttrType::kType,    AttrType::kTensors,
      AttrType::kGraphs,    AttrType::kSparseTensors, AttrType::kTypes};
  return index < std::size(kKinds) && kKinds[index] == attribute.type;
}

/// True when the bytes hold a field that is a member of AttributeProto's value.
bool has_other_value(std::string_view unknown) {
  // f=2 i=3 s=4 t=5 g=6 floats=7 ints=8 strings=9 tensors=10 graphs=11 tp=14 type_protos=15
  // sparse_tensor=22 sparse_tensors=23. The first tag tells enough.
  if (unknown.empty()) return false;
  uint32_t tag = 0;
  for (size_t i = 0; i < unknown.size() && i < 5; ++i) {
    tag |= static_cast<uint32_t>(static_cast<unsigned char>(unknown[i]) & 0x7f) << (7 * i);
    if ((static_cast<unsigned char>(unknown[i]) & 0x80) == 0) break;
  }
  const uint32_t field = tag >> 3;
  return (field >= 2 && field <= 11) || field == 14 || field == 15 || field == 22 || field == 23;
}

}  // namespace

std::string Checker::function_key(Text domain, Text name, Text overload) {
  std::string key(canonical_domain(domain));
  key += '\0';
  key += name;
  key += '\0';
  key += overload;
  return key;
}

const Function* Checker::find_function(const Node& node) const {
  if (functions_.empty()) return nullptr;
  const auto it = functions_.find(function_key(node.domain(), node.op_type(), node.overload()));
  return it != functions_.end() ? it->second : nullptr;
}

int64_t Checker::opset(Text domain, const Unit& unit) const {
  if (unit.function == nullptr) return model_.opset(domain);
  for (const OpsetImport& import : unit.function->opset_imports)
    if (canonical_domain(import.domain) == canonical_domain(domain)) return import.version;
  return 0;
}

void Checker::node(const Node& node, const Scope& scope, const Place& place) {
  if (node.op_type().empty()) {
    report(rules::kEmptyOperator, place, "the node names no operator");
  } else {
    operator_of(node, scope, place);
  }
  if (node.inputs().empty() && node.outputs().empty())
    report(rules::kNoPorts, place, "the node has neither inputs nor outputs");
  if (!node.attributes().empty()) {
    std::unordered_set<std::string_view> seen;
    for (const Attribute& attribute : node.attributes()) {
      const Place here = Place::named("attribute", attribute.name, &place);
      if (node.attributes().size() > 1 && !seen.insert(attribute.name).second)
        report(rules::kDuplicateAttribute, here,
               "attribute " + quote_name(attribute.name) + " is given twice");
      this->attribute(attribute, scope, here);
    }
  }
  if (node.extra() != nullptr) {
    metadata(node.extra()->metadata, place);
    if (!node.extra()->overload.empty()) needs_ir(10, "overload", place);
    if (!node.extra()->devices.empty()) devices(node, place);
  }
}

void Checker::operator_of(const Node& node, const Scope& scope, const Place& place) {
  const Text domain = canonical_domain(node.domain());
  const std::string shown = domain.empty() ? std::string("ai.onnx") : std::string(domain);
  const int64_t version = opset(domain, *scope.unit);
  if (version == 0 && (model_.ir_version >= 3 || scope.unit->function != nullptr)) {
    report(rules::kDomain, place,
           "the domain " + shown + " is not imported" +
               (scope.unit->function != nullptr ? " by the function" : ""),
           "add an opset_import for it");
  }
  if (const Function* function = find_function(node)) return call(node, *function, place);
  const int known = latest_opset(domain);
  const OpDecl* decl = find_operator(domain, node.op_type());
  if (known == 0 && decl != nullptr) {
    // Contributed operators grow inputs and attributes without a new version: what our rows do not
    // know may be newer than they are.
    if (version != 0) advisory(node, versions_of(*decl).back(), place);
    return;
  }
  if (known == 0) {
    // A domain of someone else: nothing is known of its operators, unless the model itself defines
    // functions there.
    if (function_domains_.contains(domain))
      report(rules::kUndefinedFunction, place,
             "the model has functions in the domain " + shown + ", but none named " +
                 quote_name(node.op_type()) +
                 (node.overload().empty() ? std::string()
                                          : " with the overload " + quote_name(node.overload())));
    return;
  }
  if (decl == nullptr) {
    if (std::find(std::begin(kExperiments), std::end(kExperiments), node.op_type()) !=
        std::end(kExperiments))
      return report(rules::kExperimentalOperator, place,
                    std::string(node.op_type()) + " was an experiment and is in no operator set");
    return report(rules::kUnknownOperator, place,
                  "there is no operator " + quote_name(node.op_type()) + " in " + shown);
  }
  if (decl->domain == kGuestDomain) {
    report(rules::kExperimentalOperator, place,
           std::string(node.op_type()) + " is in no released operator set of ai.onnx",
           "some runtimes know it; a standard operator would run everywhere");
    return advisory(node, versions_of(*decl).back(), place);
  }
  if (!node.overload().empty())
    report(rules::kOverload, place,
           "the overload " + quote_name(node.overload()) + " is named, but " +
               std::string(node.op_type()) + " is a standard operator, which has none");
  if (version == 0) return;
  const OpVersion* resolved =
      resolve(*decl, static_cast<int>(std::clamp<int64_t>(version, 0, 9999)));
  if (resolved == nullptr)
    return report(rules::kUnknownOperator, place,
                  std::string(node.op_type()) + " came with version " +
                      std::to_string(versions_of(*decl).front().since) + " of " + shown +
                      ", but version " + std::to_string(version) + " is imported",
                  "import a newer operator set, or convert the model to one");
  // GroupNormalization-18 was declared deprecated when it was born; models with it are in use and
  // well defined.
  if (resolved->deprecated && node.op_type() != "GroupNormalization")
    report(rules::kDeprecated, place,
           std::string(node.op_type()) + " is deprecated in version " + std::to_string(version) +
               " of " + shown,
           "convert the model to a newer operator set, which replaces it");
  arity(node, *resolved, place);
  attributes(node, *resolved, place);
}

void Checker::advisory(const Node& node, const OpVersion& version, const Place& place) {
  advisory_ = true;
  arity(node, version, place);
  attributes(node, version, place);
  advisory_ = false;
}

void Checker::call(const Node& node, const Function& function, const Place& place) {
  if (node.inputs().size() > function.body.inputs().size())
    report(rules::kArity, place,
           port_text(node.inputs().size(), 0, function.body.inputs().size(), "input"));
  if (node.outputs().size() > function.body.outputs().size())
    report(rules::kArity, place,
           port_text(node.outputs().size(), 0, function.body.outputs().size(), "output"));
  for (const Attribute& attribute : node.attributes()) {
    bool known = std::find(function.attributes.begin(), function.attributes.end(),
                           attribute.name) != function.attributes.end();
    for (const Attribute& declared : function.attribute_protos) {
      if (declared.name != attribute.name) continue;
      known = true;
      if (declared.type != attribute.type && attribute.has_type)
        report(rules::kAttributeType, place,
               "attribute " + quote_name(attribute.name) + " is " +
                   std::string(to_string(attribute.type)) + ", but the function's default is " +
                   std::string(to_string(declared.type)));
    }
    if (!known)
      report(rules::kUnknownAttribute, place,
             "the function " + quote_name(function.name) + " has no attribute " +
                 quote_name(attribute.name));
  }
}

void Checker::arity(const Node& node, const OpVersion& version, const Place& place) {
  const auto check = [&](std::span<Value* const> given, std::span<const ResolvedParam> params,
                         size_t least, size_t most, const char* what) {
    // Empty names at the end are as good as nothing.
    if (given.size() < least || given.size() > most)
      report(rules::kArity, place,
             std::string(node.op_type()) + "-" + std::to_string(version.since) + ": " +
                 port_text(given.size(), least, most, what));
    for (size_t i = 0; i < given.size() && i < params.size(); ++i)
      if (given[i] == nullptr && params[i].option == Option::kSingle)
        report(rules::kMissingPort, place,
               std::string(what) + " " + std::string(params[i].name) + " (" + std::to_string(i) +
                   ") of " + std::string(node.op_type()) + " is left out, but it is not optional");
  };
  check(node.inputs(), version.inputs, version.min_inputs, version.max_inputs, "input");
  check(node.outputs(), version.outputs, version.min_outputs, version.max_outputs, "output");
}

void Checker::attributes(const Node& node, const OpVersion& version, const Place& place) {
  for (const Attribute& attribute : node.attributes()) {
    if (attribute.name.empty()) continue;
    const Place here = Place::named("attribute", attribute.name, &place);
    const AttrDecl* declared = version.attribute(attribute.name);
    if (declared == nullptr) {
      if (attribute.name.starts_with("__")) continue;  // internal annotations are allowed
      std::string names;
      for (const AttrDecl* known : version.attributes)
        names += (names.empty() ? "" : ", ") + std::string(std::string_view(known->name));
      report(rules::kUnknownAttribute, here,
             std::string(node.op_type()) + "-" + std::to_string(version.since) +
                 " has no attribute " + quote_name(attribute.name),
             names.empty() ? std::string("it has none") : "it has " + names);
      continue;
    }
    if (attribute.has_type && attribute.type != declared->spec.type)
      report(rules::kAttributeType, here,
             "attribute " + quote_name(attribute.name) + " is " +
                 std::string(to_string(attribute.type)) + ", but " + std::string(node.op_type()) +
                 " takes " + std::string(to_string(declared->spec.type)));
    attribute_text(node, attribute, here);
  }
  for (const AttrDecl* declared : version.attributes)
    if (declared->spec.required && node.attribute(declared->name) == nullptr)
      report(rules::kMissingAttribute, place,
             std::string(node.op_type()) + " needs the attribute " +
                 quote_name(std::string_view(declared->name)));
}

void Checker::attribute_text(const Node& node, const Attribute& attribute, const Place& place) {
  if (attribute.type != AttrType::kString || attribute.is_reference() || advisory_) return;
  const Text* text = attribute.s();
  if (text == nullptr) return;
  for (const Words& row : kWords) {
    if (row.op != node.op_type() || row.attribute != attribute.name) continue;
    const std::string word = " " + std::string(text->substr(0, 100)) + " ";
    if (text->find(' ') == Text::npos && !text->empty() &&
        row.allowed.find(word) != std::string_view::npos)
      return;
    report(rules::kAttributeValue, place,
           std::string(row.attribute) + " is " + quote_name(*text) + ", which " +
               std::string(node.op_type()) + " does not know",
           "it knows" + std::string(row.allowed.substr(0, row.allowed.size() - 1)));
    return;
  }
}

void Checker::attribute(const Attribute& attribute, const Scope& scope, const Place& place) {
  if (attribute.name.empty()) report(rules::kAttributeForm, place, "the attribute has no name");
  if (attribute.is_reference()) {
    if (scope.unit->function == nullptr)
      report(rules::kAttributeReference, place,
             "the attribute refers to " + quote_name(attribute.ref_attr_name()) +
                 ", but only functions have attributes to refer to");
    else if (!scope.unit->attributes.contains(attribute.ref_attr_name()))
      report(rules::kAttributeReference, place,
             "the attribute refers to " + quote_name(attribute.ref_attr_name()) +
                 ", which the function does not declare");
    if (attribute.value.index() != 0)
      report(rules::kAttributeForm, place, "the attribute has both a value and a reference");
    if (!attribute.has_type && model_.ir_version >= 2)
      report(rules::kAttributeForm, place, "the attribute does not say its type");
    return;
  }
  if (!attribute.has_type && model_.ir_version >= 2) {
    report(rules::kAttributeForm, place, "the attribute does not say its type",
           "set AttributeProto.type");
  } else if (attribute.type == AttrType::kUndefined ||
             static_cast<int>(attribute.type) > static_cast<int>(AttrType::kTypes) ||
             static_cast<int>(attribute.type) < 0) {
    report(rules::kAttributeForm, place, "the attribute's type is unknown");
  } else if (!holds_own_type(attribute)) {
    report(rules::kAttributeForm, place,
           "the attribute says it is " + std::string(to_string(attribute.type)) +
               ", but holds another kind of value");
  }
  if (attribute.extra && has_other_value(attribute.extra->unknown))
    report(rules::kAttributeForm, place, "the attribute holds more than one value");
  const bool needs_value =
      attribute.type == AttrType::kTensor || attribute.type == AttrType::kGraph ||
      attribute.type == AttrType::kSparseTensor || attribute.type == AttrType::kType;
  if (needs_value && attribute.value.index() == 0)
    report(rules::kAttributeForm, place,
           "the attribute says it is " + std::string(to_string(attribute.type)) +
               ", but holds nothing");
  if (const Constant* tensor = attribute.tensor()) constant(*tensor, place);
  if (const SparseConstant* tensor = attribute.sparse_tensor()) sparse(*tensor, place);
  if (const Graph* inner = attribute.graph()) graph(*inner, &scope, *scope.unit, place);
  if (const Type* inner = attribute.type_proto()) type(inner, false, place);
  if (const auto* list = std::get_if<std::vector<Constant>>(&attribute.value))
    for (const Constant& tensor : *list) constant(tensor, place);
  if (const auto* list = std::get_if<std::vector<SparseConstant>>(&attribute.value))
    for (const SparseConstant& tensor : *list) sparse(tensor, place);
  if (const auto* list = std::get_if<std::vector<std::unique_ptr<Graph>>>(&attribute.value))
    for (const auto& inner : *list)
      if (inner != nullptr) graph(*inner, &scope, *scope.unit, place);
}

void Checker::devices(const Node& node, const Place& place) {
  needs_ir(11, "device configurations", place);
  const auto on_node = [&node](Text name) -> const Value* {
    for (const Value* value : node.inputs())
      if (value != nullptr && value->name() == name) return value;
    for (const Value* value : node.outputs())
      if (value != nullptr && value->name() == name) return value;
    return nullptr;
  };
  for (const NodeDeviceConfiguration& device : node.extra()->devices) {
    const DeviceConfiguration* configuration = nullptr;
    for (const DeviceConfiguration& candidate : model_.configurations)
      if (candidate.name == device.configuration_id) configuration = &candidate;
    if (configuration == nullptr)
      report(rules::kDevice, place,
             "the model has no device configuration " + quote_name(device.configuration_id));
    if (device.has_pipeline_stage && device.pipeline_stage < 0)
      report(rules::kDevice, place,
             "the pipeline stage is " + std::to_string(device.pipeline_stage));
    for (const ShardingSpec& spec : device.sharding) {
      const Value* value = on_node(spec.tensor_name);
      if (value == nullptr)
        report(rules::kDevice, place,
               "the sharding names " + quote_name(spec.tensor_name) +
                   ", which is no input or output of the node");
      for (const int64_t index : spec.devices) {
        const bool group =
            std::any_of(spec.groups.begin(), spec.groups.end(),
                        [index](const ShardingSpec::Group& g) { return g.key == index; });
        if (!group && configuration != nullptr &&
            (index < 0 || index >= configuration->num_devices))
          report(rules::kDevice, place,
                 "the sharding of " + quote_name(spec.tensor_name) + " names device " +
                     std::to_string(index) + " of " + std::to_string(configuration->num_devices));
      }
      for (const ShardedDim& dim : spec.dims) {
        if (value != nullptr && value->type() != nullptr && value->type()->has_shape) {
          const auto rank = static_cast<int64_t>(value->type()->dims.size());
          if (dim.axis < -rank || dim.axis >= rank)
            report(rules::kDevice, place,
                   "the sharding of " + quote_name(spec.tensor_name) + " names axis " +
                       std::to_string(dim.axis) + " of rank " + std::to_string(rank));
        }
        for (const ShardedDim::Simple& simple : dim.simple)
          if (simple.has_num_shards && simple.num_shards < 1)
            report(rules::kDevice, place,
                   "the sharding of " + quote_name(spec.tensor_name) + " has " +
                       std::to_string(simple.num_shards) + " shards");
      }
    }
  }
}

}  // namespace tombolo
