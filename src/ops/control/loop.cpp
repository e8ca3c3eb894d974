#include <algorithm>
#include <bit>

#include "ops/infer_helpers.h"
#include "ops/kernels/arguments.h"
#include "ops/kernels/join.h"
#include "ops/kernels/subgraph.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {
/// True when a loop-carried value keeps its shape; else `state` is widened to what holds for both.
bool settle(InferType& state, const InferType& next) {
  if (!state.shape) return true;
  if (!next.shape || next.shape->size() != state.shape->size()) {
    state.shape.reset();
    return false;
  }
  bool settled = true;
  for (size_t i = 0; i < state.shape->size(); ++i) {
    SymDim& dim = (*state.shape)[i];
    if (dim.is_unknown() || dim.equals((*next.shape)[i])) continue;
    dim = SymDim();
    settled = false;
  }
  return settled;
}

Status infer_loop(InferContext& context) {
  const Graph* body = context.attributes.get_graph("body");
  if (body == nullptr) return ok();
  const size_t carried = context.input_count() > 2 ? context.input_count() - 2 : 0;
  if (body->inputs().size() != carried + 2)
    return context.error("body has " + std::to_string(body->inputs().size()) +
                         " inputs, but with " + std::to_string(carried) +
                         " loop-carried values it needs " + std::to_string(carried + 2));
  if (body->outputs().size() < carried + 1)
    return context.error("body has " + std::to_string(body->outputs().size()) +
                         " outputs, but with " + std::to_string(carried) +
                         " loop-carried values it needs at least " + std::to_string(carried + 1));
  if (context.outputs.size() > body->outputs().size() - 1)
    return context.error("the node has " + std::to_string(context.outputs.size()) +
                         " outputs, but body gives " + std::to_string(body->outputs().size() - 1));
  std::vector<InferType> inputs(carried + 2);
  inputs[0] = InferType::tensor(DType::kInt64, {});
  inputs[1] = InferType::tensor(DType::kBool, {});
  for (size_t i = 0; i < carried; ++i) {
    inputs[i + 2] = context.input(i + 2);
    // A sequence grows, an optional fills: their elements' shapes may change at once.
    if (const auto& element = inputs[i + 2].element;
        element && inputs[i + 2].kind == Type::Kind::kSequence) {
      InferType open = *element;
      open.shape.reset();
      inputs[i + 2].element = std::make_shared<const InferType>(std::move(open));
    }
  }
  std::vector<InferType> outputs;
  for (int round = 0; round < 3; ++round) {
    TRY(outputs, context.host.infer_graph(*body, inputs));
    bool settled = true;
    for (size_t i = 0; i < carried; ++i) settled &= settle(inputs[i + 2], outputs[i + 1]);
    if (settled) break;
    if (round == 1)
      for (size_t i = 0; i < carried; ++i) inputs[i + 2].shape.reset();
  }
  for (size_t i = 0; i < context.outputs.size(); ++i) {
    if (i < carried) {
      // The initial value is the result when the loop never runs.
      InferType type = outputs[i + 1];
      const InferType& initial = context.input(i + 2);
      if (initial.shape && type.shape && initial.shape->size() == type.shape->size()) {
        for (size_t k = 0; k < type.shape->size(); ++k)
          if (!(*type.shape)[k].equals((*initial.shape)[k])) (*type.shape)[k] = SymDim();
      } else if (initial.kind == Type::Kind::kTensor) {
        type.shape.reset();
      }
      if (type.kind == Type::Kind::kNone) type = inputs[i + 2];
      context.set_output(i, std::move(type));
    } else {
      InferType type = outputs[i + 1];
      if (type.kind != Type::Kind::kTensor) {
        context.set_output(i, InferType());
        continue;
      }
      if (type.shape) {
        // As many rows as iterations; the condition may end the loop early.
        const SymShape* condition = context.ints(1);
        const bool runs_through =
            !context.has_input(1) ||
            (condition != nullptr && condition->size() == 1 && (*condition)[0].constant() == 1);
        SymDim rows;
        if (runs_through && outputs[0].is_tensor())
          if (const auto trips = scalar_of(context, 0); trips && context.has_input(0)) {
            const GraphOutput& keep_going = body->outputs()[0];
            // Only where the body hands on the condition that it was given.
            const Value* passed = keep_going.value;
            while (passed != nullptr && passed->producer() != nullptr &&
                   passed->producer()->op_type() == "Identity")
              passed = passed->producer()->input(0);
            if (passed == body->inputs()[1]) rows = max(*trips, SymDim(0));
          }
        type.shape->insert(type.shape->begin(), rows);
      }
      context.set_output(i, std::move(type));
    }
  }
  return ok();
}

/// True when an iteration left everything as it found it, so that all that follow will too. Looked
/// at in ever fewer iterations: it costs a comparison, and what stands still does so for ever.
class Standstill {
 public:
  explicit Standstill(const Graph& body)
      : possible_(!body.inputs()[0]->has_uses() && is_deterministic(body)) {}

  void before(int64_t iteration, const std::vector<RunValue>& carried) {
    watching_ =
        possible_ && iteration >= kFirst && std::has_single_bit(static_cast<uint64_t>(iteration));
    if (watching_) state_ = carried;
  }
  bool after(const std::vector<RunValue>& carried) const {
    return watching_ && std::equal(state_.begin(), state_.end(), carried.begin(), same);
  }

 private:
  static constexpr int64_t kFirst = 1024;

  static bool same(const RunValue& a, const RunValue& b) {
    return a.is_tensor() && b.is_tensor() && a.tensor() == b.tensor();
  }

  bool possible_, watching_ = false;
  std::vector<RunValue> state_;
};

Status run_loop(KernelContext& context) {
  // Node: M, cond, carried... -> carried..., scanned...
  // Body: iteration, cond, carried... -> cond, carried..., scanned...
  const size_t carried_count = context.input_count() < 2 ? 0 : context.input_count() - 2;
  TRY(const Graph* body, body_graph(context, "body", static_cast<int64_t>(carried_count) + 2));
  if (context.output_count() < carried_count)
    return context.error("the node has fewer outputs than values carried");
  const size_t scan_count = context.output_count() - carried_count;

  std::optional<int64_t> limit;
  if (context.has_input(0)) {
    TRY(limit, scalar_int(context, 0, "M"));
  }
  bool condition = true;
  if (context.has_input(1)) {
    TRY(condition, bool_of(context, context.value(1), "cond"));
  }
  std::vector<RunValue> carried;
  for (size_t k = 0; k < carried_count; ++k)
    carried.push_back(context.has_input(k + 2) ? context.value(k + 2) : RunValue());
  std::vector<Stack> scanned(scan_count, Stack(0, limit.value_or(-1)));

  Standstill standstill(*body);
  for (int64_t i = 0; condition && (!limit || i < *limit); ++i) {
    standstill.before(i, carried);
    std::vector<RunValue> inputs;
    inputs.reserve(carried.size() + 2);
    inputs.emplace_back(Tensor::scalar_int64(i));
    TRY(Tensor holds, Tensor::allocate(DType::kBool, {}));
    *holds.data<uint8_t>() = 1;
    inputs.emplace_back(std::move(holds));
    for (RunValue& value : carried) inputs.push_back(std::move(value));
    TRY(auto results, run_body(context, *body, std::move(inputs), 1 + carried_count + scan_count));
    TRY(condition, bool_of(context, results[0], "the condition that the body gives"));
    for (size_t k = 0; k < carried_count; ++k) carried[k] = std::move(results[1 + k]);
    for (size_t k = 0; k < scan_count; ++k) {
      TRY(Tensor item, tensor_of(context, results[1 + carried_count + k], "a scan output"));
      CHECK_OK(scanned[k].add(context, item));
    }
    if (condition && standstill.after(carried)) {
      if (!limit)
        return context.error("the loop never ends: it has no trip count, iteration " +
                             std::to_string(i) + " changed nothing, and its condition stays true");
      if (scan_count == 0) break;
    }
  }
  for (size_t k = 0; k < carried_count; ++k) context.set_output(k, std::move(carried[k]));
  for (size_t k = 0; k < scan_count; ++k) {
    TRY(Tensor out, scanned[k].empty() ? empty_scan_output(context, *body, 1 + carried_count + k, 0)
                                       : scanned[k].take(context));
    context.set_output(carried_count + k, std::move(out));
  }
  return ok();
}

}  // namespace

OPERATOR(Loop) = {
    .name = "Loop",
    .doc = "repeats a subgraph by count and condition, carrying values",
    .versions = {1, 11, 13, 16, 19, 21, 23, 24, 25},
    .inputs =
        {
            {"M", "I", kOptional},
            {"cond", "B", kOptional},
            {"v_initial", "V", kVariadic, {.until = 10}, 1, kMixed},
            {"v_initial", "V", kVariadic, {.since = 11}, 0, kMixed},
        },
    .outputs = {{"v_final_and_scan_outputs", "V", kVariadic, {}, 1, kMixed}},
    .attributes = {{"body", required(Attr::kGraph)}},
    .types =
        {
            {"V",
             {{1, kAll},
              {13, seq_of(kAll)},
              {16, kBf16 | seq_of(kBf16) | optional_of(kAll | kBf16 | seq_of(kAll | kBf16))},
              {19, kFp8 | seq_of(kFp8) | optional_of(kFp8)},
              {21, kInt4 | seq_of(kInt4) | optional_of(kInt4)},
              {23, kFp4 | seq_of(kFp4) | optional_of(kFp4)},
              {24, kE8m0 | seq_of(kE8m0) | optional_of(kE8m0)},
              {25, kInt2 | seq_of(kInt2) | optional_of(kInt2)}}},
            {"I", {{1, kI64}}},
            {"B", {{1, kBool}}},
        },
    .determinism = Determinism::kBySubgraph,
    .infer = infer_loop,
    .reference = run_loop,
};

}  // namespace tombolo::ops
