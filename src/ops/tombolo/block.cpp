// Operators of ai.tombolo on blocked channels: [N, C / 16, H, W, 16], the last block filled up with
// what no one reads. The pass block-layout writes them for the runtime alone. Here they are run as
// the operators of the standard that they stand for, on channels first.

#include "ops/tombolo/block.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "ops/infer_generic.h"
#include "ops/infer_helpers.h"
#include "ops/kernel_context.h"
#include "ops/registry.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {

constexpr int64_t kBlock = kChannelBlock;

/// [N, C, spatial...] to blocks, or back to `channels` channels.
Result<Tensor> turn(const KernelContext& context, const Tensor& x, bool to_blocks,
                    int64_t channels) {
  const Dims from = x.dims();
  if (from.size() < (to_blocks ? 2u : 3u) || (!to_blocks && from.back() != kBlock))
    return context.error("channels cannot be turned of " + to_string(x));
  const int64_t batch = from[0], blocks = to_blocks ? (channels + kBlock - 1) / kBlock : from[1];
  if (channels < 0 || channels > blocks * kBlock || (to_blocks && channels != from[1]))
    return context.error("there are not " + std::to_string(channels) + " channels in " +
                         to_string(x));
  Dims to = {batch, to_blocks ? blocks : channels};
  int64_t plane = 1;
  for (size_t i = 2; i < from.size() - (to_blocks ? 0 : 1); ++i) {
    to.push_back(from[i]);
    plane *= from[i];
  }
  if (to_blocks) to.push_back(kBlock);
  TRY(Tensor y, context.allocate(x.dtype(), to));
  const auto size = static_cast<int64_t>(bytes_of(x.dtype()));
  const std::byte* source = x.bytes().data();
  auto* target = y.data<std::byte>();
  if (to_blocks) std::memset(target, 0, y.bytes().size());
  for (int64_t n = 0; n < batch; ++n)
    for (int64_t c = 0; c < channels; ++c)
      for (int64_t p = 0; p < plane; ++p) {
        const int64_t flat = (n * channels + c) * plane + p;
        const int64_t block = ((n * blocks + c / kBlock) * plane + p) * kBlock + c % kBlock;
        std::memcpy(target + (to_blocks ? block : flat) * size,
                    source + (to_blocks ? flat : block) * size, static_cast<size_t>(size));
      }
  return y;
}

Status infer_block(InferContext& context) {
  const SymShape* x = context.shape(0);
  if (x == nullptr || x->size() < 2) return ok();
  SymShape y = *x;
  y[1] = ceil_div(y[1], kBlock);
  y.push_back(kBlock);
  context.set_tensor(0, context.elem(0), std::move(y));
  return ok();
}
Status run_block(KernelContext& context) {
  TRY(const Tensor* x, context.input(0));
  if (x->rank() < 2) return context.error("X has no channels");
  TRY(Tensor y, turn(context, *x, true, x->dim(1)));
  context.set_output(0, RunValue(std::move(y)));
  return ok();
}

Status infer_unblock(InferContext& context) {
  const SymShape* x = context.shape(0);
  if (x == nullptr || x->size() < 3) return ok();
  SymShape y(x->begin(), x->end() - 1);
  y[1] = context.attributes.get_int("channels", 0);
  context.set_tensor(0, context.elem(0), std::move(y));
  return ok();
}
Status run_unblock(KernelContext& context) {
  TRY(const Tensor* x, context.input(0));
  TRY(Tensor y, turn(context, *x, false, context.attributes.get_int("channels", 0)));
  context.set_output(0, RunValue(std::move(y)));
  return ok();
}

/// Infers `op` on channels first; `channels` of input 0. What is plain is not in blocks.
Status infer_as(InferContext& context, Text op, Text domain, const SymDim& channels, bool plain,
                bool plain_output = false) {
  const SymShape* x = context.shape(0);
  if (x == nullptr || x->size() != (plain ? 4u : 5u)) return ok();
  const InferType first =
      InferType::tensor(context.elem(0), SymShape{(*x)[0], channels, (*x)[2], (*x)[3]});
  std::vector<const InferType*> inputs(context.inputs.begin(), context.inputs.end());
  inputs[0] = &first;
  std::vector<InferType> outputs(1);
  std::vector<std::optional<SymShape>> values(1);
  InferContext inner{context.node,         latest_opset(""), context.attributes,
                     context.host,         inputs,           context.constants,
                     context.input_values, outputs,          values};
  CHECK_OK(find_operator(domain, op)->infer(inner));
  if (!outputs[0].has_shape() || outputs[0].shape->size() != 4) return ok();
  const SymShape& y = *outputs[0].shape;
  if (plain_output) {
    context.set_tensor(0, context.elem(0), y);
    return ok();
  }
  context.set_tensor(0, context.elem(0),
                     {y[0], ceil_div(y[1], kBlock), y[2], y[3], SymDim(kBlock)});
  return ok();
}

/// Runs `op` on channels first: input 0 turned to `channels` channels, unless it lies so already,
/// and the result turned to blocks of `made` channels, if any are named.
Status run_turned(KernelContext& context, Text op, Text domain, std::vector<const RunValue*> inputs,
                  std::optional<int64_t> channels, std::optional<int64_t> made) {
  RunValue first;
  if (channels) {
    TRY(const Tensor* x, context.input(0));
    TRY(Tensor turned, turn(context, *x, false, *channels));
    first = RunValue(std::move(turned));
    inputs[0] = &first;
  }
  std::vector<RunValue> outputs(1);
  KernelContext inner{context.node,
                      domain.empty() ? latest_opset("") : 1,
                      inputs,
                      outputs,
                      context.attributes,
                      context.host,
                      context.binding};
  CHECK_OK(find_operator(domain, op)->reference(inner));
  if (!made) {
    context.set_output(0, std::move(outputs[0]));
    return ok();
  }
  TRY(Tensor y, turn(context, outputs[0].tensor(), true, *made));
  context.set_output(0, RunValue(std::move(y)));
  return ok();
}

Status infer_block_conv(InferContext& context) {
  const SymShape* w = context.shape(1);
  if (w == nullptr || w->size() != 4) return ok();
  return infer_as(context, "Conv", "ai.tombolo",
                  (*w)[1] * SymDim(context.attributes.get_int("group", 1)),
                  context.attributes.get_int("plain", 0) != 0,
                  context.attributes.get_int("plain_output", 0) != 0);
}
Status run_block_conv(KernelContext& context) {
  TRY(const Tensor* w, context.input(1));
  if (w->rank() != 4) return context.error("W must have rank 4, is " + to_string(*w));
  std::vector<const RunValue*> inputs(context.inputs.begin(), context.inputs.end());
  const bool plain_output = context.attributes.get_int("plain_output", 0) != 0;
  RunValue rest;
  if (context.has_input(3) && !plain_output) {
    TRY(const Tensor* z, context.input(3));
    TRY(Tensor turned, turn(context, *z, false, w->dim(0)));
    rest = RunValue(std::move(turned));
    inputs[3] = &rest;
  }
  std::optional<int64_t> channels;
  if (context.attributes.get_int("plain", 0) == 0)
    channels = w->dim(1) * context.attributes.get_int("group", 1);
  std::optional<int64_t> made;
  if (!plain_output) made = w->dim(0);
  return run_turned(context, "Conv", "ai.tombolo", std::move(inputs), channels, made);
}

Status infer_block_transposed(InferContext& context) {
  const SymShape* w = context.shape(1);
  if (w == nullptr || w->size() != 4) return ok();
  return infer_as(context, "ConvTranspose", "", (*w)[0], false);
}
Status run_block_transposed(KernelContext& context) {
  TRY(const Tensor* w, context.input(1));
  if (w->rank() != 4) return context.error("W must have rank 4, is " + to_string(*w));
  return run_turned(context, "ConvTranspose", "", {context.inputs.begin(), context.inputs.end()},
                    w->dim(0), w->dim(1) * context.attributes.get_int("group", 1));
}

bool is_pool(Text op) {
  return op == "MaxPool" || op == "AveragePool" || op == "GlobalMaxPool" ||
         op == "GlobalAveragePool";
}
Status infer_block_pool(InferContext& context) {
  const SymShape* x = context.shape(0);
  const Text op = context.attributes.get_string("pool", "");
  if (!is_pool(op)) return context.error("no pool " + std::string(op));
  if (x == nullptr || x->size() != 5) return ok();
  return infer_as(context, op, "", (*x)[1] * SymDim(kBlock), false);
}
Status run_block_pool(KernelContext& context) {
  TRY(const Tensor* x, context.input(0));
  const Text op = context.attributes.get_string("pool", "");
  if (!is_pool(op) || x->rank() != 5) return context.error("no pool of " + to_string(*x));
  const int64_t channels = x->dim(1) * kBlock;
  return run_turned(context, op, "", {context.inputs[0]}, channels, channels);
}

Status run_block_lrn(KernelContext& context) {
  TRY(const Tensor* x, context.input(0));
  if (x->rank() != 5) return context.error("no channels in " + to_string(*x));
  const int64_t channels = context.attributes.get_int("channels", 0);
  return run_turned(context, "LRN", "", {context.inputs[0]}, channels, channels);
}

/// The sum of channels, one number for each input; nothing where they are no such numbers.
std::optional<int64_t> sum_channels(std::span<const int64_t> channels, size_t inputs) {
  int64_t total = 0;
  for (const int64_t count : channels) {
    if (count < 1 || count > INT32_MAX) return std::nullopt;
    total += count;
  }
  return channels.size() == inputs ? std::optional(total) : std::nullopt;
}
constexpr const char* kChannelsSay = "channels must be a positive number for each input";
Status infer_block_concat(InferContext& context) {
  const SymShape* x = context.shape(0);
  const auto total = sum_channels(context.attributes.get_ints("channels"), context.inputs.size());
  if (!total) return context.error(kChannelsSay);
  if (x == nullptr || x->size() != 5) return ok();
  SymShape y = *x;
  y[1] = (*total + kBlock - 1) / kBlock;
  context.set_tensor(0, context.elem(0), std::move(y));
  return ok();
}
Status run_block_concat(KernelContext& context) {
  const auto channels = context.attributes.get_ints("channels");
  const auto total = sum_channels(channels, context.inputs.size());
  if (!total) return context.error(kChannelsSay);
  Dims dims;
  std::vector<Tensor> parts;
  for (size_t i = 0; i < channels.size(); ++i) {
    TRY(const Tensor* x, context.input(i));
    if (x->rank() != 5) return context.error("no channels in " + to_string(*x));
    TRY(Tensor part, turn(context, *x, false, channels[i]));
    if (i == 0) dims = part.dims();
    for (size_t j = 0; j < dims.size(); ++j)
      if (j != 1 && part.dims()[j] != dims[j])
        return context.error("inputs differ in more than their channels");
    parts.push_back(std::move(part));
  }
  dims[1] = *total;
  TRY(Tensor joined, context.allocate(parts[0].dtype(), dims));
  auto* to = joined.data<std::byte>();
  for (int64_t n = 0; n < dims[0]; ++n)
    for (const Tensor& part : parts) {
      const size_t bytes = part.bytes().size() / static_cast<size_t>(dims[0]);
      std::memcpy(to, part.bytes().data() + static_cast<size_t>(n) * bytes, bytes);
      to += bytes;
    }
  TRY(Tensor y, turn(context, joined, true, *total));
  context.set_output(0, RunValue(std::move(y)));
  return ok();
}

}  // namespace

OPERATOR(TomboloBlockChannels) = {
    .name = "BlockChannels",
    .domain = "ai.tombolo",
    .doc = "channels first to blocks of 16 channels",
    .versions = {1},
    .inputs = {{"X", "T"}},
    .outputs = {{"Y", "T"}},
    .types = {{"T", {{1, kFloats | kBf16}}}},
    .infer = infer_block,
    .reference = run_block,
};

OPERATOR(TomboloUnblockChannels) = {
    .name = "UnblockChannels",
    .domain = "ai.tombolo",
    .doc = "blocks of 16 channels to channels first",
    .versions = {1},
    .inputs = {{"X", "T"}},
    .outputs = {{"Y", "T"}},
    .attributes = {{"channels", 0}},
    .types = {{"T", {{1, kFloats | kBf16}}}},
    .infer = infer_unblock,
    .reference = run_unblock,
};

OPERATOR(TomboloBlockConcat) = {
    .name = "BlockConcat",
    .domain = "ai.tombolo",
    .doc = "Concat of values in blocks of 16 channels, of which each has so many (channels)",
    .versions = {1},
    .inputs = {{"X", "T", kVariadic}},
    .outputs = {{"Y", "T"}},
    .attributes = {{"channels", Attr::kInts}},
    .types = {{"T", {{1, kFloats | kBf16}}}},
    .infer = infer_block_concat,
    .reference = run_block_concat,
};

OPERATOR(TomboloBlockConv) = {
    .name = "BlockConv",
    .domain = "ai.tombolo",
    .doc =
        "Conv of ai.tombolo with X (unless it is plain), Z and Y (unless that is) in blocks of 16 "
        "channels",
    .versions = {1},
    .inputs = {{"X", "T"}, {"W", "TW"}, {"B", "T", kOptional}, {"Z", "T", kOptional}},
    .outputs = {{"Y", "T"}},
    .attributes =
        {
            {"activation", ""},
            {"activation_params", Attr::kFloats},
            {"auto_pad", "NOTSET"},
            {"dilations", Attr::kInts},
            {"group", 1},
            {"kernel_shape", Attr::kInts},
            {"pads", Attr::kInts},
            {"plain", 0},
            {"plain_output", 0},
            {"strides", Attr::kInts},
        },
    .types = {{"T", {{1, kFloats | kBf16}}}, {"TW", {{1, kFloats | kBf16}}}},
    .infer = infer_block_conv,
    .reference = run_block_conv,
};

OPERATOR(TomboloBlockConvTranspose) = {
    .name = "BlockConvTranspose",
    .domain = "ai.tombolo",
    .doc = "ConvTranspose with X and Y in blocks of 16 channels",
    .versions = {1},
    .inputs = {{"X", "T"}, {"W", "T"}, {"B", "T", kOptional}},
    .outputs = {{"Y", "T"}},
    .attributes =
        {
            {"auto_pad", "NOTSET"},
            {"dilations", Attr::kInts},
            {"group", 1},
            {"kernel_shape", Attr::kInts},
            {"output_padding", Attr::kInts},
            {"output_shape", Attr::kInts},
            {"pads", Attr::kInts},
            {"strides", Attr::kInts},
        },
    .types = {{"T", {{1, kFloats | kBf16}}}},
    .infer = infer_block_transposed,
    .reference = run_block_transposed,
};

OPERATOR(TomboloBlockLRN) = {
    .name = "BlockLRN",
    .domain = "ai.tombolo",
    .doc = "LRN in blocks of 16 channels, of which there are so many (channels)",
    .versions = {1},
    .inputs = {{"X", "T"}},
    .outputs = {{"Y", "T"}},
    .attributes =
        {
            {"alpha", 0.0001f},
            {"beta", 0.75f},
            {"bias", 1.0f},
            {"channels", 0},
            {"size", required(Attr::kInt)},
        },
    .types = {{"T", {{1, kFloats | kBf16}}}},
    .infer = infer_unary,
    .reference = run_block_lrn,
};

OPERATOR(TomboloBlockPool) = {
    .name = "BlockPool",
    .domain = "ai.tombolo",
    .doc =
        "MaxPool, AveragePool, GlobalMaxPool or GlobalAveragePool (pool) in blocks of 16 channels",
    .versions = {1},
    .inputs = {{"X", "T"}},
    .outputs = {{"Y", "T"}},
    .attributes =
        {
            {"auto_pad", "NOTSET"},
            {"ceil_mode", 0},
            {"count_include_pad", 0},
            {"dilations", Attr::kInts},
            {"kernel_shape", Attr::kInts},
            {"pads", Attr::kInts},
            {"pool", ""},
            {"strides", Attr::kInts},
        },
    .types = {{"T", {{1, kFloats | kBf16}}}},
    .infer = infer_block_pool,
    .reference = run_block_pool,
};

}  // namespace tombolo::ops
