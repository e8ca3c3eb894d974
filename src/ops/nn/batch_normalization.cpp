#include "ops/infer_helpers.h"
#include "ops/kernels/compute.h"
#include "ops/kernels/moments.h"
#include "ops/schema.h"
#include "ops/step_context.h"
#include "ops/version_steps.h"

namespace tombolo::ops {

namespace {
Status infer_batch_normalization(InferContext& context) {
  CHECK_OK(infer_unary(context));
  const SymShape* x = context.shape(0);
  SymDim channels = x != nullptr && x->size() > 1    ? (*x)[1]
                    : x != nullptr && x->size() == 1 ? SymDim(1)
                                                     : SymDim();
  const bool spatial = context.opset >= 9 || context.attributes.get_int("spatial", 1) != 0;
  if (!spatial) return ok();
  for (size_t i = 1; i < 5; ++i) {
    const SymShape* shape = context.shape(i);
    if (shape == nullptr) continue;
    CHECK_OK(expect_rank(context, i, 1));
    TRY(channels, unify_dims(context, channels, (*shape)[0],
                             "channels of X against the size of scale, B, mean and variance"));
  }
  for (size_t i = 1; i < context.outputs.size(); ++i) set_shape(context, i, {channels});
  return ok();
}
}  // namespace

namespace {

/// Whether the node computes the batch's own statistics.
bool is_training(const KernelContext& context) {
  if (context.opset >= 14) return context.attributes.get_int("training_mode", 0) != 0;
  if (context.opset < 7) return context.attributes.get_int("is_test", 0) == 0;
  for (size_t i = 1; i < context.output_count(); ++i)
    if (context.wants_output(i)) return true;
  return false;
}

template <typename T>
Status batch_normalization(KernelContext& context, const Tensor& x) {
  if (x.rank() < 1) return context.error("X must have a rank of at least 1, is " + to_string(x));
  const int64_t batch = x.dim(0), channels = x.rank() > 1 ? x.dim(1) : 1;
  // Before version 9, spatial = 0 has a mean and a variance for each element of a sample.
  const bool spatial = context.opset >= 9 || context.attributes.get_int("spatial", 1) != 0;
  const int64_t sample = batch == 0 ? 0 : x.size() / batch;
  const int64_t plane = spatial ? (channels == 0 ? 0 : sample / channels) : 1;
  const int64_t groups = spatial ? channels : sample;
  Tensor parameters[4];
  const char* const names[] = {"scale", "B", "the mean", "the variance"};
  for (size_t i = 0; i < 4; ++i) {
    TRY(const Tensor* tensor, context.input(i + 1));
    TRY(parameters[i], as<T>(context, *tensor));
    if (parameters[i].size() != groups && x.size() != 0)
      return context.error(std::string(names[i]) + " must have " + std::to_string(groups) +
                           " elements, is " + to_string(*tensor));
  }
  const double epsilon = static_cast<double>(context.attributes.get_float("epsilon", 1e-5f));
  const double momentum = static_cast<double>(context.attributes.get_float("momentum", 0.9f));
  const bool training = is_training(context);
  TRY(Tensor in, as<T>(context, x));
  TRY(Tensor y, context.allocate(dtype_of<T>(), x.dims()));
  Tensor statistics[4];  // running mean and variance, then those of the batch
  for (Tensor& tensor : statistics) {
    TRY(tensor, context.allocate(dtype_of<T>(), parameters[2].dims()));
  }
  context.parallel_for(x.size() == 0 ? 0 : groups, 1, [&](int64_t first, int64_t last) {
    for (int64_t c = first; c < last; ++c) {
      const double old_mean = static_cast<double>(parameters[2].data<T>()[c]);
      const double old_variance = static_cast<double>(parameters[3].data<T>()[c]);
      Moments now{old_mean, old_variance};
      if (training) {
        now = moments_of(in.data<T>() + c * plane, plane, batch, sample);
        const double running[] = {old_mean * momentum + now.mean * (1 - momentum),
                                  old_variance * momentum + now.variance * (1 - momentum), now.mean,
                                  now.variance};
        for (size_t i = 0; i < 4; ++i) statistics[i].data<T>()[c] = static_cast<T>(running[i]);
      }
      const double scale =
          static_cast<double>(parameters[0].data<T>()[c]) * now.inverse_deviation(epsilon);
      for (int64_t n = 0; n < batch; ++n) {
        const int64_t at = n * sample + c * plane;
        normalize(in.data<T>() + at, y.data<T>() + at, plane, now.mean, scale,
                  static_cast<double>(parameters[1].data<T>()[c]));
      }
    }
  });
  TRY(const Tensor* mean, context.input(3));
  if (training && x.size() != 0) {
    for (size_t i = 0; i < 4; ++i)
      CHECK_OK(give(context, i + 1, mean->dtype(), std::move(statistics[i])));
  } else {
    CHECK_OK(give(context, 1, mean->dtype(), parameters[2]));
    CHECK_OK(give(context, 2, mean->dtype(), parameters[3]));
  }
  return give(context, 0, x.dtype(), std::move(y));
}

Status run_batch_normalization(KernelContext& context) {
  TRY(const Tensor* x, context.input(0));
  return with_float(context, *x, [&]<typename T>() { return batch_normalization<T>(context, *x); });
}

}  // namespace

namespace {

/// That the outputs of training are there says that it trains.
Status step_drop_is_test(StepContext& step) {
  if (step.get_int("is_test", 0) != 0)
    for (uint32_t i = static_cast<uint32_t>(step.node.outputs().size()); i-- > 1;)
      if (step.output_used(i)) return step.cannot("outputs of training are read in a test");
  if (step.get_int("is_test", 0) != 0)
    while (step.node.outputs().size() > 1)
      step.node.remove_output(static_cast<uint32_t>(step.node.outputs().size()) - 1);
  step.node.remove_attribute("is_test");
  return ok();
}

/// spatial = 0 has statistics for each element of a sample: those become the channels.
Status step_always_spatial(StepContext& step) {
  Node& node = step.node;
  if (step.get_int("spatial", 1) == 0 && step.rank(0) != 2) {
    if (node.outputs().size() != 1 || node.output(0) == nullptr)
      return step.cannot("spatial = 0 in training");
    for (size_t i = 0; i < 5; ++i)
      if (!step.has_input(i)) return step.cannot("an input is absent");
    Node& shape = step.before("Shape", {node.input(0)}, "shape");
    Node& flat = step.before("Flatten", {node.input(0)}, "flat");
    flat.set_int("axis", 1);
    node.set_input(0, flat.output(0));
    Value* const all = step.ints({-1}, "all");
    for (uint32_t i = 1; i < 5; ++i)
      node.set_input(i, step.before("Reshape", {node.input(i), all}, "flat").output(0));
    step.after("Reshape").add_input(shape.output(0));
  }
  node.remove_attribute("spatial");
  return ok();
}

/// Outputs Y, mean, var, saved_mean, saved_var become Y, running_mean, running_var.
Status step_training_mode(StepContext& step) {
  Node& node = step.node;
  if (step.output_used(3) || step.output_used(4))
    return step.cannot("saved_mean and saved_var are no longer given");
  for (size_t i = 1; i < node.outputs().size(); ++i)
    if (node.output(i) != nullptr) node.set_int("training_mode", 1);
  while (node.outputs().size() > 3)
    node.remove_output(static_cast<uint32_t>(node.outputs().size()) - 1);
  return ok();
}

}  // namespace

namespace {

/// Before opset 14 training was told by outputs whose meaning was not fixed: said in its parts.
Status step_statistics_by_hand(StepContext& step) {
  if (step.get_int("training_mode", 0) == 0) {
    step.node.remove_attribute("training_mode");
    return ok();
  }
  const std::optional<size_t> rank = step.rank(0);
  const DType type = step.dtype(0), statistics = step.dtype(3);
  if (!rank || *rank < 2 || type == DType::kUndefined || statistics == DType::kUndefined)
    return step.cannot("training needs the type and rank of X, which are not known");
  std::vector<int64_t> axes, column(*rank, 1);
  for (size_t i = 0; i < *rank; ++i)
    if (i != 1) axes.push_back(static_cast<int64_t>(i));
  column[1] = -1;
  std::string list;
  for (const int64_t axis : axes) list += (list.empty() ? "" : ", ") + std::to_string(axis);
  const double momentum = static_cast<double>(step.get_float("momentum", 0.9f));
  const std::string to_type = " = Cast <to = " + std::to_string(static_cast<int>(type)) + "> (";
  const std::string to_statistics =
      " = Cast <to = " + std::to_string(static_cast<int>(statistics)) + "> (";
  std::string text =
      int_list("column", column) + typed_scalar("old_part", statistics, momentum) +
      typed_scalar("new_part", statistics, 1 - momentum) +
      typed_scalar("least", type, static_cast<double>(step.get_float("epsilon", 1e-5f)));
  text +=
      "mean = ReduceMean <axes = [" + list +
      "]> (X)\ncentred = Sub (X, mean)\n"
      "square = Mul (centred, centred)\nvariance = ReduceMean <axes = [" +
      list +
      "]> (square)\nraised = Add (variance, least)\ndeviation = Sqrt (raised)\n"
      "normal = Div (centred, deviation)\nscale_own" +
      to_type + "scale)\nbias_own" + to_type +
      "B)\nscale_column = Reshape (scale_own, column)\nbias_column = Reshape (bias_own, column)\n"
      "scaled = Mul (normal, scale_column)\nY = Add (scaled, bias_column)\n";
  text += int_list("flat", {{-1}});
  for (const std::string name : {"mean", "var"}) {
    const std::string now = name == "mean" ? "mean" : "variance";
    text += now + "_flat = Reshape (" + now + ", flat)\n" + now + "_now" + to_statistics + now +
            "_flat)\n" + name + "_new = Mul (" + now + "_now, new_part)\n" + name +
            "_old = Mul (input_" + name + ", old_part)\nrunning_" + name + " = Add (" + name +
            "_new, " + name + "_old)\n";
  }
  return step.replace(13, text);
}

}  // namespace

OPERATOR(BatchNormalization) = {
    .name = "BatchNormalization",
    .doc = "normalises per channel by running or batch statistics",
    .versions = {1, 6, 7, 9, 14, 15},
    .inputs =
        {
            {"X", "T"},
            {"scale", "T", kSingle, {.until = 14}},
            {"B", "T", kSingle, {.until = 14}},
            {"mean", "T", kSingle, {.until = 13}},
            {"var", "T", kSingle, {.until = 13}},
            {"input_mean", "U", kSingle, {.since = 14, .until = 14}},
            {"input_var", "U", kSingle, {.since = 14, .until = 14}},
            {"scale", "T1", kSingle, {.since = 15}},
            {"B", "T1", kSingle, {.since = 15}},
            {"input_mean", "T2", kSingle, {.since = 15}},
            {"input_var", "T2", kSingle, {.since = 15}},
        },
    .outputs =
        {
            {"Y", "T"},
            {"mean", "T", kOptional, {.until = 13}},
            {"var", "T", kOptional, {.until = 13}},
            {"saved_mean", "T", kOptional, {.until = 13}},
            {"saved_var", "T", kOptional, {.until = 13}},
            {"running_mean", "U", kOptional, {.since = 14, .until = 14}},
            {"running_var", "U", kOptional, {.since = 14, .until = 14}},
            {"running_mean", "T2", kOptional, {.since = 15}},
            {"running_var", "T2", kOptional, {.since = 15}},
        },
    .attributes =
        {
            {"consumed_inputs", required(Attr::kInts), {.until = 5}},
            {"epsilon", 1e-05f},
            {"is_test", 0, {.until = 6}},
            {"momentum", 0.9f},
            {"spatial", 1, {.until = 8}},
            {"training_mode", 0, {.since = 14}},
        },
    .types =
        {
            {"T", {{1, kFloats}, {14, kBf16}}},
            {"U", {{14, kFloats | kBf16}}, {.since = 14, .until = 14}},
            {"T1", {{15, kFloats | kBf16}}, {.since = 15}},
            {"T2", {{15, kFloats | kBf16}}, {.since = 15}},
        },
    .infer = infer_batch_normalization,
    .reference = run_batch_normalization,
    .up = {{6, 7, step_drop_is_test}, {7, 9, step_always_spatial}, {9, 14, step_training_mode}},
    .down = {{14, 9, step_statistics_by_hand}, {9, 7, step_as_it_is}},
};

}  // namespace tombolo::ops
