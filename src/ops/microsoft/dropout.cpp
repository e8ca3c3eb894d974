// Dropout and softmax with a bias in front.

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "ops/infer_helpers.h"
#include "ops/kernels/compute.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {

/// (data + bias) without the dropped elements, + residual. The mask comes as bools or as bits.
Status dropout(KernelContext& context, bool biased, bool bits) {
  TRY(const Tensor* data, context.input(0));
  TRY(const Tensor* residual, biased ? context.optional_input(2) : Result<const Tensor*>(nullptr));
  const size_t ratio_input = biased ? 3 : 1;
  TRY(const Tensor* ratio_given, context.optional_input(ratio_input));
  TRY(const Tensor* training, context.optional_input(ratio_input + 1));
  const double ratio =
      ratio_given == nullptr || ratio_given->size() == 0 ? 0.5 : ratio_given->get_double(0);
  const bool drops =
      training != nullptr && training->size() > 0 && training->get_int64(0) != 0 && ratio != 0;
  if (!(ratio >= 0 && ratio < 1)) return context.error("ratio must be in [0, 1)");
  return with_float(context, *data, [&]<typename T>() -> Status {
    TRY(const Tensor in, as<T>(context, *data));
    Tensor bias, more;
    if (biased) {
      TRY(const Tensor* given, context.input(1));
      TRY(const Tensor wide, as<T>(context, *given));
      TRY(bias, expanded<T>(context, "bias", wide, data->dims()));
    }
    if (residual != nullptr) {
      CHECK_OK(check_dims(context, "residual", *residual, data->dims()));
      TRY(more, as<T>(context, *residual));
    }
    TRY(Tensor y, context.allocate(dtype_of<T>(), data->dims()));
    const int64_t words = (data->size() + 31) / 32;
    TRY(Tensor mask,
        context.allocate(bits ? DType::kUInt32 : DType::kBool, bits ? Dims{words} : data->dims()));
    std::ranges::fill(mask.mutable_bytes(), std::byte{0});
    RandomStream random = context.random();
    const double factor = drops ? 1 / (1 - ratio) : 1;
    for (int64_t i = 0; i < y.size(); ++i) {
      const bool kept = !drops || random.next_unit() >= ratio;
      if (kept && bits) mask.data<uint32_t>()[i / 32] |= 1u << (i % 32);
      if (kept && !bits) mask.data<uint8_t>()[i] = 1;
      double value = static_cast<double>(in.data<T>()[i]);
      if (biased) value += static_cast<double>(bias.data<T>()[i]);
      value = kept ? value * factor : 0;
      if (residual != nullptr) value += static_cast<double>(more.data<T>()[i]);
      y.data<T>()[i] = static_cast<T>(value);
    }
    if (context.wants_output(1)) context.set_output(1, std::move(mask));
    return give(context, 0, data->dtype(), std::move(y));
  });
}
Status run_bias_dropout(KernelContext& context) { return dropout(context, true, false); }
Status run_bitmask_dropout(KernelContext& context) { return dropout(context, false, true); }
Status run_bitmask_bias_dropout(KernelContext& context) { return dropout(context, true, true); }

Status infer_bias_dropout(InferContext& context) {
  const SymShape* data = context.shape(0);
  if (data == nullptr) return ok();
  set_shape(context, 0, *data);
  context.set_tensor(1, DType::kBool, *data);
  return ok();
}
Status infer_bitmask_dropout(InferContext& context) {
  const SymShape* data = context.shape(0);
  if (data == nullptr) return ok();
  set_shape(context, 0, *data);
  context.set_tensor(1, DType::kUInt32, {ceil_div(product_of(*data), SymDim(32))});
  return ok();
}

/// softmax(data + bias) over all axes from `axis` on.
Status run_bias_softmax(KernelContext& context) {
  TRY(const Tensor* data, context.input(0));
  TRY(const Tensor* bias, context.input(1));
  const auto rank = static_cast<int64_t>(data->rank());
  TRY(const int64_t axis, normalize_axis(context.attributes.get_int("axis", 1), rank));
  return with_float(context, *data, [&]<typename T>() -> Status {
    TRY(const Tensor in, as<T>(context, *data));
    TRY(const Tensor wide, as<T>(context, *bias));
    TRY(const Tensor added, expanded<T>(context, "bias", wide, data->dims()));
    TRY(Tensor y, context.allocate(dtype_of<T>(), data->dims()));
    const int64_t length = product(data->dims(), static_cast<size_t>(axis), data->rank());
    for (int64_t row = 0; length != 0 && row < y.size() / length; ++row) {
      T* to = y.data<T>() + row * length;
      for (int64_t i = 0; i < length; ++i)
        to[i] = in.data<T>()[row * length + i] + added.data<T>()[row * length + i];
      const auto greatest = static_cast<double>(*std::max_element(to, to + length));
      double sum = 0;
      for (int64_t i = 0; i < length; ++i) sum += std::exp(static_cast<double>(to[i]) - greatest);
      for (int64_t i = 0; i < length; ++i)
        to[i] = static_cast<T>(std::exp(static_cast<double>(to[i]) - greatest) / sum);
    }
    return give(context, 0, data->dtype(), std::move(y));
  });
}

}  // namespace

OPERATOR(microsoft_BiasDropout) = {
    .name = "BiasDropout",
    .domain = "com.microsoft",
    .doc = "dropout of data + bias, plus a residual",
    .versions = {1},
    .inputs =
        {
            {"data", "T"},
            {"bias", "T"},
            {"residual", "T", kOptional},
            {"ratio", "T1", kOptional},
            {"training_mode", "T2", kOptional},
        },
    .outputs =
        {
            {"output", "T"},
            {"mask", "T2", kOptional},
        },
    .attributes =
        {
            {"seed", Attr::kInt},
        },
    .types =
        {
            {"T", {{1, kFloats | kBf16}}},
            {"T1", {{1, kFloats | kBf16}}},
            {"T2", {{1, kBool}}},
        },
    .determinism = Determinism::kRandom,
    .infer = infer_bias_dropout,
    .reference = run_bias_dropout,
};

OPERATOR(microsoft_BitmaskDropout) = {
    .name = "BitmaskDropout",
    .domain = "com.microsoft",
    .doc = "dropout with a mask of bits",
    .versions = {1},
    .inputs =
        {
            {"data", "T"},
            {"ratio", "T1", kOptional},
            {"training_mode", "T2", kOptional},
        },
    .outputs =
        {
            {"output", "T"},
            {"mask", "T3", kOptional},
        },
    .attributes =
        {
            {"seed", Attr::kInt},
        },
    .types =
        {
            {"T", {{1, kFloats | kBf16}}},
            {"T1", {{1, kFloats | kBf16}}},
            {"T2", {{1, kBool}}},
            {"T3", {{1, kU32}}},
        },
    .determinism = Determinism::kRandom,
    .infer = infer_bitmask_dropout,
    .reference = run_bitmask_dropout,
};

OPERATOR(microsoft_BitmaskBiasDropout) = {
    .name = "BitmaskBiasDropout",
    .domain = "com.microsoft",
    .doc = "BiasDropout with a mask of bits",
    .versions = {1},
    .inputs =
        {
            {"data", "T"},
            {"bias", "T"},
            {"residual", "T", kOptional},
            {"ratio", "T1", kOptional},
            {"training_mode", "T2", kOptional},
        },
    .outputs =
        {
            {"output", "T"},
            {"mask", "T3", kOptional},
        },
    .attributes =
        {
            {"seed", Attr::kInt},
        },
    .types =
        {
            {"T", {{1, kFloats | kBf16}}},
            {"T1", {{1, kFloats | kBf16}}},
            {"T2", {{1, kBool}}},
            {"T3", {{1, kU32}}},
        },
    .determinism = Determinism::kRandom,
    .infer = infer_bitmask_dropout,
    .reference = run_bitmask_bias_dropout,
};

OPERATOR(microsoft_BiasSoftmax) = {
    .name = "BiasSoftmax",
    .domain = "com.microsoft",
    .doc = "softmax(data + bias) over all axes from `axis` on",
    .versions = {1},
    .inputs =
        {
            {"data", "T"},
            {"bias", "T"},
        },
    .outputs =
        {
            {"output", "T"},
        },
    .attributes =
        {
            {"axis", 1},
            {"is_inner_broadcast", required(Attr::kInt)},
        },
    .types =
        {
            {"T", {{1, kFloats}}},
        },
    .infer = infer_unary,
    .reference = run_bias_softmax,
};

}  // namespace tombolo::ops
