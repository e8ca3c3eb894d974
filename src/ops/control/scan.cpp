#include "ops/infer_helpers.h"
#include "ops/kernels/arguments.h"
#include "ops/kernels/join.h"
#include "ops/kernels/movement.h"
#include "ops/kernels/subgraph.h"
#include "ops/schema.h"
#include "ops/step_context.h"

namespace tombolo::ops {

namespace {
Status infer_scan(InferContext& context) {
  const Graph* body = context.attributes.get_graph("body");
  if (body == nullptr) return ok();
  // Version 8 has sequence_lens first and a batch axis in front of everything.
  const size_t skip = context.opset < 9 ? 1 : 0;
  const auto scans = context.attributes.get_int("num_scan_inputs", 0);
  const size_t given = context.input_count() > skip ? context.input_count() - skip : 0;
  if (scans < 1 || static_cast<size_t>(scans) > given)
    return context.error("num_scan_inputs is " + std::to_string(scans) + ", but there are " +
                         std::to_string(given) + " inputs");
  const size_t states = given - static_cast<size_t>(scans);
  if (body->inputs().size() != given)
    return context.error("body has " + std::to_string(body->inputs().size()) +
                         " inputs, but Scan has " + std::to_string(given));
  if (body->outputs().size() < states || context.outputs.size() > body->outputs().size())
    return context.error("body has " + std::to_string(body->outputs().size()) + " outputs, for " +
                         std::to_string(states) + " states and a node with " +
                         std::to_string(context.outputs.size()) + " outputs");
  const auto axes = context.attributes.get_ints("scan_input_axes");
  const auto output_axes = context.attributes.get_ints("scan_output_axes");
  std::vector<InferType> inputs(given);
  SymDim length, batch;
  for (size_t i = 0; i < given; ++i) {
    InferType type = context.input(i + skip);
    if (type.shape && skip == 1) {
      if (type.shape->empty()) return context.error("inputs need a batch axis");
      if (batch.is_unknown()) batch = (*type.shape)[0];
      type.shape->erase(type.shape->begin());
    }
    if (i >= states && type.shape) {
      const size_t k = i - states;
      TRY(const size_t axis, checked_axis(context, skip == 0 && k < axes.size() ? axes[k] : 0,
                                          type.shape->size(), "scan_input_axes"));
      TRY(length, unify_dims(context, length, (*type.shape)[axis], "lengths of the scan inputs"));
      type.shape->erase(type.shape->begin() + static_cast<std::ptrdiff_t>(axis));
    }
    inputs[i] = std::move(type);
  }
  std::vector<InferType> outputs;
  for (int round = 0; round < 3; ++round) {
    TRY(outputs, context.host.infer_graph(*body, inputs));
    bool settled = true;
    for (size_t i = 0; i < states; ++i) {
      InferType& state = inputs[i];
      if (!state.shape) continue;
      const auto& next = outputs[i].shape;
      if (!next || next->size() != state.shape->size()) {
        state.shape.reset();
        settled = false;
        continue;
      }
      for (size_t k = 0; k < next->size(); ++k)
        if (!(*state.shape)[k].is_unknown() && !(*state.shape)[k].equals((*next)[k])) {
          (*state.shape)[k] = SymDim();
          settled = false;
        }
    }
    if (settled) break;
    if (round == 1)
      for (size_t i = 0; i < states; ++i) inputs[i].shape.reset();
  }
  for (size_t i = 0; i < context.outputs.size(); ++i) {
    InferType type = i < states ? inputs[i] : outputs[i];
    if (i < states && type.elem == DType::kUndefined) type.elem = outputs[i].elem;
    if (type.kind == Type::Kind::kNone) continue;
    if (i >= states && type.shape) {
      const size_t k = i - states;
      TRY(const size_t axis,
          checked_axis(context, skip == 0 && k < output_axes.size() ? output_axes[k] : 0,
                       type.shape->size() + 1, "scan_output_axes"));
      type.shape->insert(type.shape->begin() + static_cast<std::ptrdiff_t>(axis), length);
    }
    if (skip == 1 && type.shape) type.shape->insert(type.shape->begin(), batch);
    context.set_output(i, std::move(type));
  }
  return ok();
}
/// One scan without a batch. Body: states..., slices... -> states..., scanned...
struct Scan {
  const KernelContext& context;
  const Graph& body;
  size_t states, scans, results;    ///< counts: states, scanned inputs, scanned outputs
  std::vector<size_t> axes;         ///< per scanned input
  std::vector<int64_t> directions;  ///< per scanned input: 1 is backwards

  /// Runs `length` steps. `values` holds the states and is updated, `scanned` gets what they give.
  Status run(std::vector<RunValue>& values, std::span<const Tensor> inputs, int64_t length,
             std::vector<Stack>& scanned) const {
    for (int64_t i = 0; i < length; ++i) {
      std::vector<RunValue> given;
      given.reserve(states + scans);
      for (RunValue& value : values) given.push_back(std::move(value));
      for (size_t k = 0; k < scans; ++k) {
        TRY(Tensor slice,
            element_along(context, inputs[k], axes[k], directions[k] == 1 ? length - 1 - i : i));
        given.emplace_back(std::move(slice));
      }
      TRY(auto outputs, run_body(context, body, std::move(given), states + results));
      for (size_t k = 0; k < states; ++k) values[k] = std::move(outputs[k]);
      for (size_t k = 0; k < results; ++k) {
        TRY(Tensor item, tensor_of(context, outputs[states + k], "a scan output"));
        CHECK_OK(scanned[k].add(context, item));
      }
    }
    return ok();
  }
};

/// Reads an attribute of `count` numbers, zeros when absent.
Result<std::vector<int64_t>> scan_list(const KernelContext& context, const char* name,
                                       size_t count) {
  const auto given = context.attributes.get_ints(name);
  if (given.empty()) return std::vector<int64_t>(count, 0);
  if (given.size() != count)
    return context.error(std::string(name) + " has " + std::to_string(given.size()) +
                         " elements for " + std::to_string(count) + " values");
  return std::vector<int64_t>(given.begin(), given.end());
}

/// Version 9 on: no batch axis.
Status run_scan_unbatched(KernelContext& context, Scan scan) {
  TRY(const auto axes, scan_list(context, "scan_input_axes", scan.scans));
  TRY(scan.directions, scan_list(context, "scan_input_directions", scan.scans));
  TRY(const auto out_axes, scan_list(context, "scan_output_axes", scan.results));
  TRY(const auto out_directions, scan_list(context, "scan_output_directions", scan.results));
  std::vector<RunValue> values;
  for (size_t k = 0; k < scan.states; ++k) {
    if (!context.has_input(k)) return context.error("input " + std::to_string(k) + " is missing");
    values.push_back(context.value(k));
  }
  std::vector<Tensor> inputs;
  int64_t length = 0;
  for (size_t k = 0; k < scan.scans; ++k) {
    TRY(const Tensor* input, context.input(scan.states + k));
    TRY(const int64_t axis, normalize_axis(axes[k], static_cast<int64_t>(input->rank())));
    scan.axes.push_back(static_cast<size_t>(axis));
    if (k == 0) length = input->dim(scan.axes[0]);
    if (input->dim(scan.axes[k]) != length)
      return context.error("scanned inputs have " + std::to_string(length) + " and " +
                           std::to_string(input->dim(scan.axes[k])) + " elements");
    inputs.push_back(*input);
  }
  std::vector<Stack> scanned;
  for (size_t k = 0; k < scan.results; ++k)
    scanned.emplace_back(out_axes[k], length, out_directions[k] == 1);
  CHECK_OK(scan.run(values, inputs, length, scanned));
  for (size_t k = 0; k < scan.states; ++k) context.set_output(k, std::move(values[k]));
  for (size_t k = 0; k < scan.results; ++k) {
    TRY(Tensor out, scanned[k].empty()
                        ? empty_scan_output(context, scan.body, scan.states + k, out_axes[k])
                        : scanned[k].take(context));
    context.set_output(scan.states + k, std::move(out));
  }
  return ok();
}

/// Version 8: everything has a batch axis before the others, and sequences may end early; what a
/// short one leaves of a scan output is zero.
Status run_scan_batched(KernelContext& context, Scan scan) {
  TRY(scan.directions, scan_list(context, "directions", scan.scans));
  scan.axes.assign(scan.scans, 0);
  if (scan.scans == 0) return context.error("at least one input must be scanned");
  std::vector<const Tensor*> inputs;
  for (size_t k = 0; k < scan.states + scan.scans; ++k) {
    TRY(const Tensor* input, context.input(1 + k));
    inputs.push_back(input);
  }
  const Tensor& first = *inputs[scan.states];
  for (size_t k = 0; k < inputs.size(); ++k) {
    const bool scanned = k >= scan.states;
    if (inputs[k]->rank() < (scanned ? 2u : 1u) || first.rank() < 2 ||
        inputs[k]->dim(0) != first.dim(0) || (scanned && inputs[k]->dim(1) != first.dim(1)))
      return context.error("input " + std::to_string(k + 1) + ", " + to_string(*inputs[k]) +
                           ", lacks the batch and sequence axes of " + to_string(first));
  }
  const int64_t batch = first.dim(0), longest = first.dim(1);
  TRY(const Tensor* lengths, context.optional_input(0));
  if (lengths != nullptr) {
    CHECK_OK(check_index_type(*lengths));
    if (lengths->size() != batch)
      return context.error("sequence_lens must have " + std::to_string(batch) + " elements, is " +
                           to_string(*lengths));
  }

  std::vector<std::vector<Tensor>> outputs(scan.states + scan.results);
  for (int64_t b = 0; b < batch; ++b) {
    const int64_t length = lengths != nullptr ? lengths->get_int64(b) : longest;
    if (length < 0 || length > longest)
      return context.error("sequence length " + std::to_string(length) + " is out of range for " +
                           std::to_string(longest) + " steps");
    std::vector<RunValue> values;
    std::vector<Tensor> rows;
    for (size_t k = 0; k < inputs.size(); ++k) {
      TRY(Tensor row, element_along(context, *inputs[k], 0, b));
      if (k < scan.states)
        values.emplace_back(std::move(row));
      else
        rows.push_back(std::move(row));
    }
    std::vector<Stack> scanned(scan.results, Stack(0, length));
    CHECK_OK(scan.run(values, rows, length, scanned));
    for (size_t k = 0; k < scan.states; ++k) {
      TRY(Tensor value, tensor_of(context, values[k], "a state"));
      outputs[k].push_back(std::move(value));
    }
    for (size_t k = 0; k < scan.results; ++k) {
      TRY(const Tensor some, scanned[k].empty()
                                 ? empty_scan_output(context, scan.body, scan.states + k, 0)
                                 : scanned[k].take(context));
      Dims dims = some.dims();
      dims[0] = longest;
      TRY(Tensor padded, context.allocate(some.dtype(), dims));
      fill_zero(padded);
      copy_elements(some, 0, padded, 0, some.size());
      outputs[scan.states + k].push_back(std::move(padded));
    }
  }
  for (size_t k = 0; k < outputs.size(); ++k) {
    TRY(Tensor out, stack(context, outputs[k], 0));
    context.set_output(k, std::move(out));
  }
  return ok();
}

Status run_scan(KernelContext& context) {
  const bool batched = context.opset < 9;
  const auto inputs = static_cast<int64_t>(context.input_count()) - (batched ? 1 : 0);
  const int64_t scans = context.attributes.get_int("num_scan_inputs", 0);
  if (scans < 0 || scans > inputs || inputs - scans > static_cast<int64_t>(context.output_count()))
    return context.error("num_scan_inputs=" + std::to_string(scans) + " does not fit " +
                         std::to_string(inputs) + " inputs and " +
                         std::to_string(context.output_count()) + " outputs");
  TRY(const Graph* body, body_graph(context, "body", inputs));
  const auto states = static_cast<size_t>(inputs - scans);
  const Scan scan{
      context, *body, states, static_cast<size_t>(scans), context.output_count() - states, {}, {}};
  return batched ? run_scan_batched(context, scan) : run_scan_unbatched(context, scan);
}

}  // namespace

namespace {

/// The type of a slice of `inner` values: one more axis in front.
const Type* stacked(const Type* inner, Storage& storage) {
  if (inner == nullptr || !inner->is_tensor() || !inner->has_shape) return inner;
  Type type = *inner;
  type.dims.insert(type.dims.begin(), Dim());
  return storage.intern(std::move(type));
}

/// Opset 8 scans axis 1 of each sample of a batch (axis 0): a scan over the batch around a scan
/// over the sequence.
Status step_scan_batch(StepContext& step) {
  Node& node = step.node;
  Attribute* body = node.attribute("body");
  const int64_t scanned = step.get_int("num_scan_inputs", 0);
  if (step.has_input(0)) return step.cannot("sequences of different lengths");
  if (body == nullptr || body->graph() == nullptr) return step.cannot("there is no body");
  const auto& inputs = body->graph()->inputs();
  const auto& outputs = body->graph()->outputs();
  const auto count = static_cast<int64_t>(node.inputs().size()) - 1;
  if (scanned < 1 || scanned > count || static_cast<int64_t>(inputs.size()) != count ||
      outputs.size() < inputs.size() - static_cast<size_t>(scanned) ||
      node.outputs().size() > outputs.size())
    return step.cannot("the body does not fit the inputs");
  for (size_t i = 1; i < node.inputs().size(); ++i)
    if (!step.has_input(i)) return step.cannot("an input is absent");
  const size_t states = static_cast<size_t>(count - scanned);

  Attribute moved = std::move(*body);
  const std::optional<std::vector<int64_t>> directions = step.get_ints("directions");
  node.remove_attribute("body");
  node.remove_attribute("directions");
  node.remove_input(0);
  Graph& batch = node.set_graph("body");
  batch.name = batch.storage().copy("sample");
  Node& inner = *batch.add_node("Scan");
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Type* type = inputs[i]->type();
    inner.add_input(batch.add_input(step.host.unique_name(batch, inputs[i]->name()),
                                    i < states ? type : stacked(type, batch.storage())));
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Value* from = outputs[i].value;
    const Type* type = from != nullptr ? from->type() : nullptr;
    Value* made = inner.add_output(
        step.host.unique_name(batch, from != nullptr ? from->name() : Text("output")));
    made->set_type(i < states ? type : stacked(type, batch.storage()));
    batch.add_output(made);
  }
  moved.graph()->set_parent_node(&inner);
  inner.set_attribute(std::move(moved));
  inner.set_int("num_scan_inputs", scanned);
  if (directions && !directions->empty()) inner.set_ints("scan_input_directions", *directions);
  node.set_int("num_scan_inputs", count);
  step.host.created(&inner, step.to);
  return ok();
}

}  // namespace

OPERATOR(Scan) = {
    .name = "Scan",
    .doc = "runs a subgraph over the slices of its inputs, carrying states",
    .versions = {8, 9, 11, 16, 19, 21, 23, 24, 25},
    .inputs =
        {
            {"sequence_lens", "I", kOptional, {.until = 8}},
            {"initial_state_and_scan_inputs", "V", kVariadic, {}, 1, kMixed},
        },
    .outputs = {{"final_state_and_scan_outputs", "V", kVariadic, {}, 1, kMixed}},
    .attributes =
        {
            {"body", required(Attr::kGraph)},
            {"directions", Attr::kInts, {.until = 8}},
            {"num_scan_inputs", required(Attr::kInt)},
            {"scan_input_axes", Attr::kInts, {.since = 9}},
            {"scan_input_directions", Attr::kInts, {.since = 9}},
            {"scan_output_axes", Attr::kInts, {.since = 9}},
            {"scan_output_directions", Attr::kInts, {.since = 9}},
        },
    .types =
        {
            {"I", {{8, kI64}}, {.until = 8}},
            {"V",
             {{8, kAll},
              {16, kBf16},
              {19, kFp8},
              {21, kInt4},
              {23, kFp4},
              {24, kE8m0},
              {25, kInt2}}},
        },
    .determinism = Determinism::kBySubgraph,
    .infer = infer_scan,
    .reference = run_scan,
    .up = {{8, 9, step_scan_batch}},
};

}  // namespace tombolo::ops
