// QLinearConvLast of ai.tombolo, QLinearConv with channels last, limits, and a sum that is rounded
// again, QLinearConvTranspose and ConvIntegerToFloat; run as the operators that they stand for.
// QLinearAffine: a factor and a shift for each channel, constant or (QLinearInstanceNormalization)
// of each image. ByteTable: any function of one byte.

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "ops/infer_helpers.h"
#include "ops/kernels/quantize.h"
#include "ops/microsoft/official.h"
#include "ops/registry.h"
#include "ops/schema.h"

namespace tombolo::ops {
namespace {

constexpr size_t kZ = 9;

/// Makes codes of numbers: rounded, around a zero point, between the node's limits.
class CodeWriter {
 public:
  CodeWriter(const KernelContext& context, const Tensor& zero)
      : range_(range_of(zero.dtype())),
        zero_(zero.get_int64(0)),
        low_(context.attributes.get_int("low", range_.least)),
        high_(context.attributes.get_int("high", range_.greatest)) {}
  int64_t code(double number) const {
    return std::min(std::max(quantized(number, zero_, range_), low_), high_);
  }

 private:
  IntegerRange range_;
  int64_t zero_, low_, high_;
};

/// Infers the convolution of an x whose channels are last; its result has them first.
Status infer_channels_first(InferContext& context, size_t weight_input) {
  InferType x = context.input(0);
  if (x.shape) x.shape = channels_first(*x.shape);
  std::vector<const InferType*> inputs(context.inputs.begin(), context.inputs.end());
  if (inputs.empty()) return ok();
  inputs[0] = &x;
  InferContext inner{context.node, kOfficialOpset,  context.attributes,
                     context.host, inputs,          {},
                     {},           context.outputs, {}};
  return infer_convolution(inner, weight_input);
}

Status infer_last(InferContext& context) {
  CHECK_OK(infer_channels_first(context, 3));
  if (context.inputs.empty() || context.outputs.empty()) return ok();
  InferType y = InferType::tensor(context.elem(context.has_input(kZ) ? kZ + 4 : 7));
  if (context.outputs[0].shape) y.shape = channels_last(*context.outputs[0].shape);
  context.set_output(0, std::move(y));
  return ok();
}

/// y + Z under the scale and zero point of the sum.
Result<Tensor> sum(KernelContext& context, const Tensor& y) {
  Graph graph(std::make_shared<Storage>());
  Node& node = *graph.add_node("QLinearAdd", "com.microsoft");
  std::vector<RunValue> values = {RunValue(y)};
  std::vector<const RunValue*> inputs = {&values[0]};
  for (const size_t i : {size_t(6), size_t(7), kZ, kZ + 1, kZ + 2, kZ + 3, kZ + 4}) {
    if (!context.has_input(i)) return context.error("input " + std::to_string(i) + " is missing");
    inputs.push_back(&context.value(i));
  }
  for (size_t i = 0; i < inputs.size(); ++i) node.add_input(graph.add_input("x"));
  node.add_output("y");
  const OpDecl* op = find_operator("com.microsoft", "QLinearAdd");
  std::vector<RunValue> outputs(1);
  KernelContext inner{node, 1, inputs, outputs, AttributeReader(node), context.host, nullptr};
  CHECK_OK(op->reference(inner));
  return outputs[0].tensor();
}

Status run_last(KernelContext& context) {
  std::vector<Tensor> inputs;
  for (size_t i = 0; i < std::min(context.input_count(), kZ); ++i) {
    TRY(Tensor input, tensor_or_absent(context, i));
    inputs.push_back(std::move(input));
  }
  if (inputs.empty()) return context.error("there is no x");
  TRY(inputs[0], channels_first(context, inputs[0]));
  Official official(context);
  const Node& node = official.node_with(
      "QLinearConv", {"auto_pad", "dilations", "group", "kernel_shape", "pads", "strides"});
  TRY(std::vector<RunValue> outputs, official.run(node, inputs));
  TRY(Tensor y, channels_last(context, outputs[0].tensor()));
  if (context.has_input(kZ)) {
    TRY(y, sum(context, y));
  }
  const bool is_signed = y.dtype() == DType::kInt8;
  const int64_t low = context.attributes.get_int("low", is_signed ? -128 : 0);
  const int64_t high = context.attributes.get_int("high", is_signed ? 127 : 255);
  for (int64_t i = 0; i < y.size(); ++i)
    y.set_int64(i, std::min(std::max(y.get_int64(i), low), high));
  context.set_output(0, std::move(y));
  return ok();
}

Status infer_transposed(InferContext& context) {
  const InferType w = context.input(3);
  InferType x = context.input(0);
  const bool last = context.attributes.get_int("channels_last", 0) != 0;
  if (x.shape && last) x.shape = channels_first(*x.shape);
  const InferType* inputs[] = {&x, &w};
  InferContext inner{context.node, kOfficialOpset,  context.attributes,
                     context.host, inputs,          {},
                     {},           context.outputs, {}};
  CHECK_OK(find_operator("", "ConvTranspose")->infer(inner));
  if (context.outputs.empty()) return ok();
  InferType y = InferType::tensor(context.elem(7));
  if (context.outputs[0].shape)
    y.shape = last ? channels_last(*context.outputs[0].shape) : *context.outputs[0].shape;
  context.set_output(0, std::move(y));
  return ok();
}

Status run_transposed(KernelContext& context) {
  TRY(const Tensor* x, context.input(0));
  TRY(const Tensor* w, context.input(3));
  const int64_t outputs = w->rank() < 2 ? 1 : w->dim(1) * context.attributes.get_int("group", 1);
  TRY(const Tensor* x_scale, one_or_each(context, 1, "x_scale", 1));
  TRY(const Tensor* w_scale, one_or_each(context, 4, "w_scale", outputs));
  TRY(const Tensor* y_scale, one_or_each(context, 6, "y_scale", 1));
  TRY(const Tensor* y_zero, one_or_each(context, 7, "y_zero_point", 1));
  TRY(const Tensor* x_zero, one_or_each(context, 2, "x_zero_point", 1));
  TRY(const Tensor* w_zero, one_or_each(context, 5, "w_zero_point", outputs));
  TRY(const Tensor bias, tensor_or_absent(context, 8));
  if (context.has_input(8) && bias.size() != outputs)
    return context.error("B does not fit " + std::to_string(outputs) + " outputs");
  const bool last = context.attributes.get_int("channels_last", 0) != 0;
  Tensor first = *x;
  if (last) {
    TRY(first, channels_first(context, *x));
  }
  // Doubles hold all sums.
  TRY(Tensor image, context.allocate(DType::kFloat64, first.dims()));
  for (int64_t i = 0; i < image.size(); ++i)
    image.data<double>()[i] = first.get_double(i) - x_zero->get_double(0);
  TRY(Tensor weights, context.allocate(DType::kFloat64, w->dims()));
  const int64_t taps = outputs == 0 || w->rank() < 2 || w->dim(0) * w->dim(1) == 0
                           ? 1
                           : w->size() / (w->dim(0) * w->dim(1));
  const int64_t inputs = w->rank() == 0 ? 1 : w->dim(0),
                group_outputs = w->rank() < 2 ? 1 : w->dim(1);
  const int64_t group_inputs =
      std::max<int64_t>(1, inputs / std::max<int64_t>(1, context.attributes.get_int("group", 1)));
  for (int64_t i = 0; i < weights.size(); ++i) {
    const int64_t output =
        i / (taps * group_outputs) / group_inputs * group_outputs + i / taps % group_outputs;
    weights.data<double>()[i] =
        w->get_double(i) - w_zero->get_double(w_zero->size() == 1 ? 0 : output);
  }
  Official official(context);
  const Node& node =
      official.node_with("ConvTranspose", {"auto_pad", "dilations", "group", "kernel_shape",
                                           "output_padding", "output_shape", "pads", "strides"});
  TRY(const Tensor sums, official.call(node, {image, weights}));
  TRY(Tensor y, context.allocate(y_zero->dtype(), sums.dims()));
  const CodeWriter writer(context, *y_zero);
  const int64_t plane =
      std::max<int64_t>(1, sums.size() / std::max<int64_t>(1, sums.dim(0) * outputs));
  for (int64_t i = 0; i < sums.size(); ++i) {
    const int64_t output = i / plane % outputs;
    const double scale = x_scale->get_double(0) *
                         w_scale->get_double(w_scale->size() == 1 ? 0 : output) /
                         y_scale->get_double(0);
    const double sum = sums.get_double(i) + (context.has_input(8) ? bias.get_double(output) : 0.0);
    y.set_int64(i, writer.code(sum * scale));
  }
  if (last) {
    TRY(y, channels_last(context, y));
  }
  context.set_output(0, std::move(y));
  return ok();
}

Status infer_to_float(InferContext& context) {
  CHECK_OK(infer_channels_first(context, 1));
  if (context.inputs.empty() || context.outputs.empty()) return ok();
  InferType y = InferType::tensor(DType::kFloat32);
  if (context.outputs[0].shape) y.shape = *context.outputs[0].shape;
  context.set_output(0, std::move(y));
  return ok();
}

Status run_to_float(KernelContext& context) {
  std::vector<Tensor> inputs;
  for (const size_t i : {size_t(0), size_t(1), size_t(4), size_t(5)}) {
    TRY(Tensor input, tensor_or_absent(context, i));
    inputs.push_back(std::move(input));
  }
  TRY(inputs[0], channels_first(context, inputs[0]));
  TRY(const Tensor* x_scale, context.input(2));
  TRY(const Tensor* w_scale, context.input(3));
  TRY(const Tensor bias, tensor_or_absent(context, 6));
  Official official(context);
  const Node& node = official.node_with(
      "ConvInteger", {"auto_pad", "dilations", "group", "kernel_shape", "pads", "strides"});
  TRY(std::vector<RunValue> outputs, official.run(node, inputs));
  const Tensor& sums = outputs[0].tensor();
  const int64_t channels = sums.dim(1);
  if (x_scale->size() != 1 || (w_scale->size() != 1 && w_scale->size() != channels) ||
      (context.has_input(6) && bias.size() != channels))
    return context.error("scales and bias do not fit " + std::to_string(channels) + " outputs");
  TRY(Tensor * y, context.output(0, DType::kFloat32, sums.dims()));
  const int64_t plane = sums.size() / std::max<int64_t>(1, sums.dim(0) * channels);
  for (int64_t i = 0; i < sums.size(); ++i) {
    const int64_t channel = i / plane % channels;
    const double scale =
        x_scale->get_double(0) * w_scale->get_double(w_scale->size() == 1 ? 0 : channel);
    y->set_double(
        i, sums.get_double(i) * scale + (context.has_input(6) ? bias.get_double(channel) : 0.0));
  }
  return ok();
}

Status infer_affine(InferContext& context) {
  InferType y = InferType::tensor(context.elem(3));
  if (context.shape(0) != nullptr) y.shape = *context.shape(0);
  context.set_output(0, std::move(y));
  return ok();
}

/// What both operators of channels read: codes, two numbers for each channel, and where those are.
struct ChannelCodes {
  const Tensor *x, *factor, *shift, *zero;
  bool last;
  int64_t batch, channels, pixels;

  int64_t place(int64_t image, int64_t channel, int64_t pixel) const {
    return last ? (image * pixels + pixel) * channels + channel
                : (image * channels + channel) * pixels + pixel;
  }
};
Result<ChannelCodes> read_channel_codes(KernelContext& context) {
  ChannelCodes codes = {};
  TRY(codes.x, context.input(0));
  TRY(codes.factor, context.input(1));
  TRY(codes.shift, context.input(2));
  TRY(codes.zero, one_or_each(context, 3, "y_zero_point", 1));
  codes.last = context.attributes.get_int("channels_last", 0) != 0;
  const Tensor& x = *codes.x;
  if (x.rank() < 2) return context.error("x has no channels");
  codes.batch = x.dim(0);
  codes.channels = x.dim(codes.last ? x.rank() - 1 : 1);
  codes.pixels = x.size() / std::max<int64_t>(1, codes.batch * codes.channels);
  if (codes.factor->size() != codes.channels || codes.shift->size() != codes.channels)
    return context.error("what there is for each channel does not fit " +
                         std::to_string(codes.channels) + " channels");
  return codes;
}

Status run_affine(KernelContext& context) {
  TRY(const ChannelCodes codes, read_channel_codes(context));
  const CodeWriter writer(context, *codes.zero);
  TRY(Tensor * y, context.output(0, codes.zero->dtype(), codes.x->dims()));
  for (int64_t n = 0; n < codes.batch; ++n)
    for (int64_t c = 0; c < codes.channels; ++c)
      for (int64_t i = 0; i < codes.pixels; ++i) {
        const int64_t at = codes.place(n, c, i);
        y->set_int64(at, writer.code(codes.x->get_double(at) * codes.factor->get_double(c) +
                                     codes.shift->get_double(c)));
      }
  return ok();
}

Status run_instance_norm(KernelContext& context) {
  TRY(const ChannelCodes codes, read_channel_codes(context));
  const CodeWriter writer(context, *codes.zero);
  TRY(Tensor * y, context.output(0, codes.zero->dtype(), codes.x->dims()));
  const double x_step = static_cast<double>(context.attributes.get_float("x_scale", 1));
  const double y_step = static_cast<double>(context.attributes.get_float("y_scale", 1));
  const double epsilon = static_cast<double>(context.attributes.get_float("epsilon", 1e-5f));
  const auto count = static_cast<double>(codes.pixels);
  for (int64_t n = 0; n < codes.batch; ++n)
    for (int64_t c = 0; c < codes.channels; ++c) {
      double mean = 0, variance = 0;
      for (int64_t i = 0; i < codes.pixels; ++i)
        mean += codes.x->get_double(codes.place(n, c, i)) / count;
      for (int64_t i = 0; i < codes.pixels; ++i) {
        const double off = (codes.x->get_double(codes.place(n, c, i)) - mean) * x_step;
        variance += off * off / count;
      }
      const double factor = codes.factor->get_double(c) * x_step / std::sqrt(variance + epsilon);
      for (int64_t i = 0; i < codes.pixels; ++i) {
        const int64_t at = codes.place(n, c, i);
        const double number =
            (codes.x->get_double(at) - mean) * factor + codes.shift->get_double(c);
        y->set_int64(at, writer.code(number / y_step));
      }
    }
  return ok();
}

Status infer_table(InferContext& context) {
  InferType y = InferType::tensor(context.elem(1));
  if (context.shape(0) != nullptr) y.shape = *context.shape(0);
  context.set_output(0, std::move(y));
  return ok();
}

Status run_table(KernelContext& context) {
  TRY(const Tensor* x, context.input(0));
  TRY(const Tensor* table, context.input(1));
  if (table->size() != 256) return context.error("a table of bytes has 256 elements");
  TRY(Tensor * y, context.output(0, table->dtype(), x->dims()));
  const uint8_t* codes = x->data<uint8_t>();
  for (int64_t i = 0; i < x->size(); ++i) y->data<uint8_t>()[i] = table->data<uint8_t>()[codes[i]];
  return ok();
}

}  // namespace

OPERATOR(TomboloByteTable) = {
    .name = "ByteTable",
    .domain = "ai.tombolo",
    .doc = "element x of table, the bits of x read as a number from 0 to 255",
    .versions = {1},
    .inputs =
        {
            {"X", "T1"},
            {"table", "T2"},
        },
    .outputs = {{"Y", "T2"}},
    .types =
        {
            {"T1", {{1, kInt8s}}},
            {"T2", {{1, kInt8s}}},
        },
    .infer = infer_table,
    .reference = run_table,
};

OPERATOR(TomboloQLinearAffine) = {
    .name = "QLinearAffine",
    .domain = "ai.tombolo",
    .doc =
        "x times a factor plus a shift for each channel, rounded, plus a zero point, between "
        "limits",
    .versions = {1},
    .inputs =
        {
            {"x", "T1"},
            {"factor", "tensor(float)"},
            {"shift", "tensor(float)"},
            {"y_zero_point", "T2"},
        },
    .outputs = {{"y", "T2"}},
    .attributes =
        {
            {"channels_last", 0},
            {"high", Attr::kInt},
            {"low", Attr::kInt},
        },
    .types =
        {
            {"T1", {{1, kInt8s}}},
            {"T2", {{1, kInt8s}}},
        },
    .infer = infer_affine,
    .reference = run_affine,
};

OPERATOR(TomboloQLinearInstanceNormalization) = {
    .name = "QLinearInstanceNormalization",
    .domain = "ai.tombolo",
    .doc =
        "InstanceNormalization of codes of scale x_scale, quantised by y_scale and a zero "
        "point, between limits",
    .versions = {1},
    .inputs =
        {
            {"x", "T1"},
            {"scale", "tensor(float)"},
            {"B", "tensor(float)"},
            {"y_zero_point", "T2"},
        },
    .outputs = {{"y", "T2"}},
    .attributes =
        {
            {"channels_last", 0},
            {"epsilon", 1e-5f},
            {"high", Attr::kInt},
            {"low", Attr::kInt},
            {"x_scale", 1.0f},
            {"y_scale", 1.0f},
        },
    .types =
        {
            {"T1", {{1, kInt8s}}},
            {"T2", {{1, kInt8s}}},
        },
    .infer = infer_affine,
    .reference = run_instance_norm,
};

OPERATOR(TomboloConvIntegerToFloat) = {
    .name = "ConvIntegerToFloat",
    .domain = "ai.tombolo",
    .doc = "ConvInteger of x with channels last, times both scales, plus B for each output",
    .versions = {1},
    .inputs =
        {
            {"x", "T1"},
            {"w", "T2"},
            {"x_scale", "tensor(float)"},
            {"w_scale", "tensor(float)"},
            {"x_zero_point", "T1"},
            {"w_zero_point", "T2"},
            {"B", "tensor(float)", kOptional},
        },
    .outputs = {{"y", "tensor(float)"}},
    .attributes =
        {
            {"auto_pad", "NOTSET"},
            {"dilations", Attr::kInts},
            {"group", 1},
            {"kernel_shape", Attr::kInts},
            {"pads", Attr::kInts},
            {"strides", Attr::kInts},
        },
    .types =
        {
            {"T1", {{1, kInt8s}}},
            {"T2", {{1, kInt8s}}},
        },
    .infer = infer_to_float,
    .reference = run_to_float,
};

OPERATOR(TomboloQLinearConvTranspose) = {
    .name = "QLinearConvTranspose",
    .domain = "ai.tombolo",
    .doc =
        "ConvTranspose of quantised tensors, quantised again, between limits; channels last on "
        "request",
    .versions = {1},
    .inputs =
        {
            {"x", "T1"},
            {"x_scale", "tensor(float)"},
            {"x_zero_point", "T1"},
            {"w", "T2"},
            {"w_scale", "tensor(float)"},
            {"w_zero_point", "T2"},
            {"y_scale", "tensor(float)"},
            {"y_zero_point", "T3"},
            {"B", "T4", kOptional},
        },
    .outputs = {{"y", "T3"}},
    .attributes =
        {
            {"auto_pad", "NOTSET"},
            {"channels_last", 0},
            {"dilations", Attr::kInts},
            {"group", 1},
            {"high", Attr::kInt},
            {"kernel_shape", Attr::kInts},
            {"low", Attr::kInt},
            {"output_padding", Attr::kInts},
            {"output_shape", Attr::kInts},
            {"pads", Attr::kInts},
            {"strides", Attr::kInts},
        },
    .types =
        {
            {"T1", {{1, kInt8s}}},
            {"T2", {{1, kInt8s}}},
            {"T3", {{1, kInt8s}}},
            {"T4", {{1, kI32}}},
        },
    .infer = infer_transposed,
    .reference = run_transposed,
};

OPERATOR(TomboloQLinearConvLast) = {
    .name = "QLinearConvLast",
    .domain = "ai.tombolo",
    .doc = "QLinearConv with channels last, plus Z under another scale, between limits",
    .versions = {1},
    .inputs =
        {
            {"x", "T1"},
            {"x_scale", "tensor(float)"},
            {"x_zero_point", "T1"},
            {"w", "T2"},
            {"w_scale", "tensor(float)"},
            {"w_zero_point", "T2"},
            {"y_scale", "tensor(float)"},
            {"y_zero_point", "T3"},
            {"B", "T4", kOptional},
            {"Z", "T3", kOptional},
            {"z_scale", "tensor(float)", kOptional},
            {"z_zero_point", "T3", kOptional},
            {"sum_scale", "tensor(float)", kOptional},
            {"sum_zero_point", "T3", kOptional},
        },
    .outputs = {{"y", "T3"}},
    .attributes =
        {
            {"auto_pad", "NOTSET"},
            {"dilations", Attr::kInts},
            {"group", 1},
            {"high", Attr::kInt},
            {"kernel_shape", Attr::kInts},
            {"low", Attr::kInt},
            {"pads", Attr::kInts},
            {"strides", Attr::kInts},
        },
    .types =
        {
            {"T1", {{1, kInt8s}}},
            {"T2", {{1, kInt8s}}},
            {"T3", {{1, kInt8s}}},
            {"T4", {{1, kI32}}},
        },
    .infer = infer_last,
    .reference = run_last,
};

}  // namespace tombolo::ops
