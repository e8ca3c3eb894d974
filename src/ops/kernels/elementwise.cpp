#include "ops/kernels/elementwise.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>

#include "base/float_formats.h"
#include "ops/kernels/broadcast.h"

namespace tombolo::ops {

namespace {

constexpr int64_t kBlock = 1024;     ///< elements widened at a time
constexpr int64_t kGrain = 1 << 16;  ///< elements that are worth a thread
constexpr size_t kMaxInputs = 3;

/// Whether elements are stored as they are computed.
bool is_native(DType dtype) {
  return dtype == DType::kFloat32 || dtype == DType::kFloat64 || dtype == DType::kInt64 ||
         dtype == DType::kUInt64;
}

template <typename From, typename To>
void convert(const void* in, int64_t count, To* out) {
  const From* from = static_cast<const From*>(in);
  for (int64_t i = 0; i < count; ++i) out[i] = static_cast<To>(from[i]);
}

const void* address(const Tensor& tensor, int64_t index) {
  return tensor.bytes().data() + static_cast<size_t>(index) * bytes_of(tensor.dtype());
}
void* address(Tensor& tensor, int64_t index) {
  return tensor.mutable_bytes().data() + static_cast<size_t>(index) * bytes_of(tensor.dtype());
}

Status check_type(const RowFns& fns, const Tensor& tensor, RowFn& fn) {
  const Compute compute = compute_type(tensor.dtype());
  const bool is_bool = tensor.dtype() == DType::kBool;
  fn = compute == Compute::kNone ? nullptr : fns.fns[static_cast<size_t>(compute)];
  if (is_bool ? fns.bools == Bools::kRefuse : fns.bools == Bools::kOnly) fn = nullptr;
  if (fn == nullptr)
    return unsupported("elements of type " + std::string(name_of(tensor.dtype())) +
                       " are not allowed here");
  return ok();
}

Status check_same_types(std::span<const Tensor* const> inputs) {
  for (size_t k = 1; k < inputs.size(); ++k)
    if (inputs[k]->dtype() != inputs[0]->dtype())
      return runtime_error("inputs must have one type, but input 0 is " + to_string(*inputs[0]) +
                           " and input " + std::to_string(k) + " is " + to_string(*inputs[k]));
  return ok();
}

}  // namespace

Compute compute_type(DType dtype) {
  switch (class_of(dtype)) {
    case DTypeClass::kFloat:
      return dtype == DType::kFloat64 ? Compute::kDouble : Compute::kFloat;
    case DTypeClass::kInt:
      return Compute::kInt64;
    case DTypeClass::kUInt:
    case DTypeClass::kBool:
      return Compute::kUInt64;
    default:
      return Compute::kNone;
  }
}

void widen(const Tensor& tensor, int64_t begin, int64_t count, void* out) {
  const DType dtype = tensor.dtype();
  if (is_sub_byte(dtype)) {
    for (int64_t i = 0; i < count; ++i) {
      if (is_float(dtype))
        static_cast<float*>(out)[i] = static_cast<float>(tensor.get_double(begin + i));
      else
        static_cast<int64_t*>(out)[i] = tensor.get_int64(begin + i);
    }
    return;
  }
  const void* in = address(tensor, begin);
  switch (dtype) {
    case DType::kInt8:
      return convert<int8_t>(in, count, static_cast<int64_t*>(out));
    case DType::kInt16:
      return convert<int16_t>(in, count, static_cast<int64_t*>(out));
    case DType::kInt32:
      return convert<int32_t>(in, count, static_cast<int64_t*>(out));
    case DType::kBool:
    case DType::kUInt8:
      return convert<uint8_t>(in, count, static_cast<uint64_t*>(out));
    case DType::kUInt16:
      return convert<uint16_t>(in, count, static_cast<uint64_t*>(out));
    case DType::kUInt32:
      return convert<uint32_t>(in, count, static_cast<uint64_t*>(out));
    case DType::kFloat64:
    case DType::kInt64:
    case DType::kUInt64:
      std::memcpy(out, in, static_cast<size_t>(count) * 8);
      return;
    default:
      decode_floats(dtype, in, static_cast<size_t>(count), static_cast<float*>(out));
  }
}

void narrow(const void* in, int64_t count, Tensor& tensor, int64_t begin) {
  const DType dtype = tensor.dtype();
  if (is_sub_byte(dtype)) {
    for (int64_t i = 0; i < count; ++i) {
      if (is_float(dtype))
        tensor.set_double(begin + i, static_cast<const float*>(in)[i]);
      else
        tensor.set_int64(begin + i, static_cast<const int64_t*>(in)[i]);
    }
    return;
  }
  void* out = address(tensor, begin);
  switch (dtype) {
    case DType::kBool:
      for (int64_t i = 0; i < count; ++i)
        static_cast<uint8_t*>(out)[i] = static_cast<const uint64_t*>(in)[i] != 0;
      return;
    case DType::kInt8:
    case DType::kUInt8:
      return convert<uint64_t>(in, count, static_cast<uint8_t*>(out));
    case DType::kInt16:
    case DType::kUInt16:
      return convert<uint64_t>(in, count, static_cast<uint16_t*>(out));
    case DType::kInt32:
    case DType::kUInt32:
      return convert<uint64_t>(in, count, static_cast<uint32_t*>(out));
    case DType::kFloat64:
    case DType::kInt64:
    case DType::kUInt64:
      std::memcpy(out, in, static_cast<size_t>(count) * 8);
      return;
    default:
      encode_floats(dtype, static_cast<const float*>(in), static_cast<size_t>(count), out);
  }
}

void load_doubles(const Tensor& tensor, int64_t begin, int64_t count, double* out) {
  alignas(64) std::array<uint64_t, kBlock> block;
  for (int64_t at = 0; at < count; at += kBlock) {
    const int64_t some = std::min(kBlock, count - at);
    widen(tensor, begin + at, some, block.data());
    switch (compute_type(tensor.dtype())) {
      case Compute::kFloat:
        convert<float>(block.data(), some, out + at);
        break;
      case Compute::kDouble:
        convert<double>(block.data(), some, out + at);
        break;
      case Compute::kInt64:
        convert<int64_t>(block.data(), some, out + at);
        break;
      default:
        convert<uint64_t>(block.data(), some, out + at);
    }
  }
}

void store_doubles(const double* in, int64_t count, Tensor& tensor, int64_t begin) {
  const DType dtype = tensor.dtype();
  if (dtype == DType::kFloat64)
    std::copy_n(in, count, tensor.data<double>() + begin);
  else if (dtype == DType::kFloat32)
    convert<double>(in, count, tensor.data<float>() + begin);
  else
    encode_floats(dtype, in, static_cast<size_t>(count),
                  tensor.mutable_bytes().data() + begin * bits_of(dtype) / 8);
}

Status run_rows(KernelContext& context, std::span<const Tensor* const> inputs, const RowFns& fns,
                const void* op) {
  RowFn fn = nullptr;
  CHECK_OK(check_type(fns, *inputs[0], fn));
  CHECK_OK(check_same_types(inputs));
  TRY(const Broadcast broadcast, Broadcast::of(inputs));
  const DType dtype = inputs[0]->dtype();
  TRY(Tensor * out, context.output(0, fns.to_bool ? DType::kBool : dtype, broadcast.output));

  const bool native = is_native(dtype);
  const bool direct = native || fns.to_bool;  // the operator writes what is stored
  context.parallel_for(broadcast.count, kGrain, [&](int64_t begin, int64_t end) {
    alignas(64) std::array<uint64_t, kBlock> blocks[kMaxInputs + 1];
    const void* in[kMaxInputs];
    BroadcastCursor cursor(broadcast, begin, end);
    while (!cursor.done()) {
      const int64_t count = cursor.run(native ? INT64_MAX : kBlock);
      for (size_t k = 0; k < inputs.size(); ++k) {
        if (native) {
          in[k] = address(*inputs[k], cursor.offset(k));
        } else {
          widen(*inputs[k], cursor.offset(k), broadcast.steps[k] ? count : 1, blocks[k].data());
          in[k] = blocks[k].data();
        }
      }
      void* target = direct ? address(*out, cursor.at()) : blocks[kMaxInputs].data();
      fn(in, broadcast.steps.data(), target, count, op);
      if (!direct) narrow(target, count, *out, cursor.at());
      cursor.advance(count);
    }
  });
  return ok();
}

namespace {

/// Before operator set 7 operands had equal shapes, or with broadcast=1 the second lay inside the
/// first: at its end, or from `axis` on. Gives the second operand a shape that numpy's rule reads
/// so.
Result<Tensor> align_legacy(const KernelContext& context, const Tensor& a, const Tensor& b) {
  if (context.attributes.get_int("broadcast", 0) == 0) {
    if (a.dims() != b.dims())
      return context.error("without broadcast=1 (operator set " + std::to_string(context.opset) +
                           ") shapes must be equal, but are " + to_string(a) + " and " +
                           to_string(b));
    return b;
  }
  const auto rank = static_cast<int64_t>(a.rank());
  const auto inner = static_cast<int64_t>(b.rank());
  if (inner > rank) return context.error(to_string(b) + " does not broadcast to " + to_string(a));
  const std::optional<int64_t> axis = context.attributes.get_int("axis");
  int64_t start = rank - inner;
  if (axis && inner > 0) {
    TRY(start, normalize_axis(*axis, rank));
  }
  if (start + inner > rank)
    return context.error("axis " + std::to_string(*axis) + " leaves no room for " + to_string(b) +
                         " in " + to_string(a));
  Dims dims;
  dims.resize(static_cast<uint32_t>(rank - start), 1);
  for (int64_t j = 0; j < inner; ++j) {
    const int64_t own = b.dim(static_cast<size_t>(j));
    if (own != 1 && own != a.dim(static_cast<size_t>(start + j)))
      return context.error(to_string(b) + " does not lie in " + to_string(a) + " from axis " +
                           std::to_string(start) + " on");
    dims[static_cast<size_t>(j)] = own;
  }
  return b.reshaped(dims);
}

}  // namespace

Status run_rows(KernelContext& context, size_t count, const RowFns& fns, const void* op) {
  const Tensor* inputs[kMaxInputs];
  for (size_t k = 0; k < count; ++k) {
    TRY(inputs[k], context.input(k));
  }
  Tensor aligned;
  if (count == 2 && context.opset < 7 && context.node.domain().empty()) {
    TRY(aligned, align_legacy(context, *inputs[0], *inputs[1]));
    inputs[1] = &aligned;
  }
  return run_rows(context, std::span<const Tensor* const>(inputs, count), fns, op);
}

Status refuse_zero_divisor(KernelContext& context, size_t index) {
  TRY(const Tensor* divisor, context.input(index));
  if (!is_integer(divisor->dtype())) return ok();
  alignas(64) std::array<uint64_t, kBlock> block;
  for (int64_t at = 0; at < divisor->size(); at += kBlock) {
    const int64_t count = std::min(kBlock, divisor->size() - at);
    widen(*divisor, at, count, block.data());
    const uint64_t* begin = block.data();
    const uint64_t* end = begin + count;
    const uint64_t* zero = std::find(begin, end, uint64_t{0});
    if (zero != end)
      return context.error("integer division by zero: element " +
                           std::to_string(at + (zero - begin)) + " of input " +
                           std::to_string(index) + " is 0");
  }
  return ok();
}

Status run_fold(KernelContext& context, const RowFns& fns, const void* op, double scale) {
  std::vector<const Tensor*> inputs(context.input_count());
  if (inputs.empty()) return context.error("at least one input is needed");
  for (size_t k = 0; k < inputs.size(); ++k) {
    TRY(inputs[k], context.input(k));
  }
  RowFn fn = nullptr;
  CHECK_OK(check_type(fns, *inputs[0], fn));
  CHECK_OK(check_same_types(inputs));
  TRY(const Broadcast broadcast, Broadcast::of(inputs));
  const DType dtype = inputs[0]->dtype();
  TRY(Tensor * out, context.output(0, dtype, broadcast.output));

  const size_t width = compute_type(dtype) == Compute::kFloat ? 4 : 8;
  context.parallel_for(broadcast.count, kGrain, [&](int64_t begin, int64_t end) {
    alignas(64) std::array<uint64_t, kBlock> sum, block;
    BroadcastCursor cursor(broadcast, begin, end);
    while (!cursor.done()) {
      const int64_t count = cursor.run(kBlock);
      widen(*inputs[0], cursor.offset(0), broadcast.steps[0] ? count : 1, sum.data());
      if (!broadcast.steps[0])
        for (int64_t i = 1; i < count; ++i)
          std::memcpy(reinterpret_cast<std::byte*>(sum.data()) + static_cast<size_t>(i) * width,
                      sum.data(), width);
      for (size_t k = 1; k < inputs.size(); ++k) {
        widen(*inputs[k], cursor.offset(k), broadcast.steps[k] ? count : 1, block.data());
        const void* const in[] = {sum.data(), block.data()};
        const uint8_t steps[] = {1, broadcast.steps[k]};
        fn(in, steps, sum.data(), count, op);
      }
      if (scale != 1 && is_float(dtype)) {
        for (int64_t i = 0; i < count; ++i) {
          if (width == 4)
            reinterpret_cast<float*>(sum.data())[i] *= static_cast<float>(scale);
          else
            reinterpret_cast<double*>(sum.data())[i] *= scale;
        }
      }
      narrow(sum.data(), count, *out, cursor.at());
      cursor.advance(count);
    }
  });
  return ok();
}

}  // namespace tombolo::ops
