// QuantizeLinear and DequantizeLinear between floats and integers of 8 or 16 bits, and
// DynamicQuantizeLinear.

#include <algorithm>
#include <cmath>
#include <vector>

#include "runtime/kernels/isa.h"
#include "runtime/kernels/kernel.h"
#include "runtime/kernels/quant/quantize.h"
#include "runtime/kernels/quant/scale_rows.h"

namespace tombolo {
namespace {

bool is_16(DType dtype) { return dtype == DType::kInt16 || dtype == DType::kUInt16; }

struct QdqState final : KernelState {
  int64_t outer = 1, length = 1, inner = 1;  ///< per tensor: one row of all
  DType type = DType::kUInt8;
};

/// Granularity: one scale, or one for each index of an axis.
bool plan_scales(const KernelQuery& q, QdqState& s) {
  if (active_isa() == Isa::kScalar || q.inputs.size() < 2 || q.dtype(1) != DType::kFloat32 ||
      q.attributes.get_int("block_size", 0) != 0)
    return false;
  const auto dims = q.dims(0), scale = q.dims(1);
  const int64_t count = element_count(scale);
  if (element_count(dims) < 1) return false;
  if (q.has_input(2) && Dims(q.dims(2)) != Dims(scale)) return false;
  if (scale.empty() || (scale.size() == 1 && count == 1)) {
    s.inner = element_count(dims);
    return true;
  }
  if (scale.size() != 1) return false;
  const auto rank = static_cast<int64_t>(dims.size());
  int64_t axis = q.attributes.get_int("axis", 1);
  if (axis < 0) axis += rank;
  if (axis < 0 || axis >= rank || dims[static_cast<size_t>(axis)] != count) return false;
  s.outer = element_count(dims.first(static_cast<size_t>(axis)));
  s.length = count;
  s.inner = element_count(dims.subspan(static_cast<size_t>(axis) + 1));
  return true;
}

bool plan_quantize(const KernelQuery& q, QdqState& s) {
  if (q.dtype(0) != DType::kFloat32 || !plan_scales(q, s)) return false;
  const auto type = read_quantised_type(q);
  if (!type) return false;
  s.type = *type;
  return is_byte(s.type) || is_16(s.type);
}

bool plan_dequantize(const KernelQuery& q, QdqState& s) {
  if ((!is_byte(q.dtype(0)) && !is_16(q.dtype(0)) && q.dtype(0) != DType::kInt32) ||
      !plan_scales(q, s))
    return false;
  const int64_t given = q.attributes.get_int("output_dtype", 0);
  if (given != 0 && given != static_cast<int64_t>(DType::kFloat32)) return false;
  return !q.has_input(2) || q.dtype(2) == q.dtype(0);
}

template <bool (*kPlan)(const KernelQuery&, QdqState&)>
bool supports(const KernelQuery& query) {
  QdqState state;
  return kPlan(query, state);
}

template <bool (*kPlan)(const KernelQuery&, QdqState&)>
Result<std::unique_ptr<KernelState>> prepare(const PrepareContext& context) {
  auto state = std::make_unique<QdqState>();
  kPlan(context, *state);
  return state;
}

int32_t integer_at(const KernelRun& run, size_t index, int64_t at) {
  if (!run.has_input(index)) return 0;
  const Tensor& tensor = run.input(index);
  switch (tensor.dtype()) {
    case DType::kInt8:
      return tensor.data<int8_t>()[at];
    case DType::kUInt8:
      return tensor.data<uint8_t>()[at];
    case DType::kInt16:
      return tensor.data<int16_t>()[at];
    case DType::kUInt16:
      return tensor.data<uint16_t>()[at];
    default:
      return tensor.data<int32_t>()[at];
  }
}

/// body(first element, count, scale index) over runs that share a scale.
template <typename Body>
void for_scales(const KernelRun& run, const QdqState& s, Body&& body) {
  constexpr int64_t kGrain = 1 << 14;
  const int64_t count = s.outer * s.length * s.inner;
  run.parallel_for(count, kGrain, [&](int64_t begin, int64_t end) {
    while (begin < end) {
      const int64_t row = begin / s.inner;
      const int64_t n = std::min(end, (row + 1) * s.inner) - begin;
      body(begin, n, row % s.length);
      begin += n;
    }
  });
}

Status run_quantize(KernelRun& run) {
  const auto& s = run.state<QdqState>();
  TRY(Tensor * y, run.output(0, s.type, run.input(0).dims()));
  const float *x = run.data<float>(0), *scale = run.data<float>(1);
  auto* out = y->data<std::byte>();
  for_scales(run, s, [&](int64_t at, int64_t n, int64_t index) {
    const int32_t zero = integer_at(run, 2, index);
    if (is_16(s.type))
      quantize_row16(x + at, n, scale[index], zero, s.type == DType::kInt16,
                     reinterpret_cast<uint16_t*>(out) + at);
    else
      quantize_row(x + at, n, scale[index], zero, s.type == DType::kInt8,
                   reinterpret_cast<uint8_t*>(out) + at);
  });
  return ok();
}

Status run_dequantize(KernelRun& run) {
  const auto& s = run.state<QdqState>();
  const Tensor& x = run.input(0);
  TRY(Tensor * y, run.output(0, DType::kFloat32, x.dims()));
  const float* scale = run.data<float>(1);
  float* out = y->data<float>();
  for_scales(run, s, [&](int64_t at, int64_t n, int64_t index) {
    const int32_t zero = integer_at(run, 2, index);
    if (x.dtype() == DType::kInt32)
      dequantize_sums(x.data<int32_t>() + at, n, scale[index], zero, out + at);
    else if (is_16(x.dtype()))
      dequantize_row16(x.data<uint16_t>() + at, x.dtype() == DType::kInt16, n, scale[index], zero,
                       out + at);
    else
      dequantize_row(x.data<uint8_t>() + at, x.dtype() == DType::kInt8, n, scale[index], zero,
                     out + at);
  });
  return ok();
}

bool supports_dynamic(const KernelQuery& query) {
  return active_isa() != Isa::kScalar && query.dtype(0) == DType::kFloat32 &&
         element_count(query.dims(0)) > 0;
}

Status run_dynamic(KernelRun& run) {
  const Tensor& x = run.input(0);
  const float* in = x.data<float>();
  TRY(Tensor * y, run.output(0, DType::kUInt8, x.dims()));
  TRY(Tensor * scale_out, run.output(1, DType::kFloat32, {}));
  TRY(Tensor * zero_out, run.output(2, DType::kUInt8, {}));
  constexpr int64_t kPart = 1 << 15;
  const int64_t parts = (x.size() + kPart - 1) / kPart;
  std::vector<float> limits(static_cast<size_t>(2 * parts));  // the range holds zero
  run.parallel_for(parts, 1, [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p)
      value_range(in + p * kPart, std::min(kPart, x.size() - p * kPart),
                  limits[static_cast<size_t>(2 * p)], limits[static_cast<size_t>(2 * p + 1)]);
  });
  float least = 0, greatest = 0;
  for (int64_t p = 0; p < parts; ++p) {
    least = std::min(least, limits[static_cast<size_t>(2 * p)]);
    greatest = std::max(greatest, limits[static_cast<size_t>(2 * p + 1)]);
  }
  const DynamicScale codes = dynamic_scale(least, greatest);
  *scale_out->data<float>() = codes.scale;
  *zero_out->data<uint8_t>() = static_cast<uint8_t>(codes.zero);
  run.parallel_for(x.size(), 1 << 14, [&](int64_t begin, int64_t end) {
    quantize_row(in + begin, end - begin, codes.scale, codes.zero, false,
                 y->data<uint8_t>() + begin);
  });
  return ok();
}

}  // namespace

KERNEL(quantize_linear) = {
    .name = "quantize_linear",
    .op = "QuantizeLinear",
    .supports = supports<plan_quantize>,
    .prepare = prepare<plan_quantize>,
    .run = run_quantize,
};
KERNEL(dequantize_linear) = {
    .name = "dequantize_linear",
    .op = "DequantizeLinear",
    .supports = supports<plan_dequantize>,
    .prepare = prepare<plan_dequantize>,
    .run = run_dequantize,
};
KERNEL(dynamic_quantize_linear) = {
    .name = "dynamic_quantize_linear",
    .op = "DynamicQuantizeLinear",
    .supports = supports_dynamic,
    .run = run_dynamic,
};

}  // namespace tombolo
