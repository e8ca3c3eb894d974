// Gather of weights of a few bits in blocks, dequantised.

#include <algorithm>
#include <string>
#include <vector>

#include "ops/infer_helpers.h"
#include "ops/kernels/arguments.h"
#include "ops/microsoft/block_weights.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {

/// How many elements a byte of data holds.
int64_t elements_a_byte(const AttributeReader& attributes, DType type) {
  return type == DType::kUInt8 && attributes.get_int("bits", 4) != 0
             ? 8 / std::max<int64_t>(1, attributes.get_int("bits", 4))
             : 1;
}

Status run_gather_block_quantized(KernelContext& context) {
  TRY(const Tensor* data, context.input(0));
  TRY(const Tensor* indices, context.input(1));
  TRY(const Tensor* scales, context.input(2));
  TRY(const Tensor* zeros, context.optional_input(3));
  CHECK_OK(check_index_type(*indices));
  const auto& attributes = context.attributes;
  const auto rank = static_cast<int64_t>(data->rank());
  TRY(const int64_t gather_axis,
      normalize_axis(attributes.get_int("gather_axis", 0), rank, "gather_axis"));
  TRY(const int64_t quantize_axis,
      normalize_axis(attributes.get_int("quantize_axis", 1), rank, "quantize_axis"));
  const int64_t block = attributes.get_int("block_size", 128);
  const int64_t bits = attributes.get_int("bits", 4);
  const bool packed = data->dtype() == DType::kUInt8;
  if (block < 1 || block > int64_t{1} << 31 || (packed && bits != 2 && bits != 4 && bits != 8))
    return context.error("block_size is " + std::to_string(block) + ", bits is " +
                         std::to_string(bits));
  const int64_t each = elements_a_byte(attributes, data->dtype());
  Dims dims = data->dims();
  dims[dims.size() - 1] *= each;
  // The scales: one for each block along the axis; floats may also share one along others.
  bool fits = scales->rank() == data->rank();
  Dims strides;
  strides.resize(static_cast<uint32_t>(rank));
  int64_t stride = 1;
  for (int64_t axis = rank - 1; fits && axis >= 0; --axis) {
    const auto at = static_cast<size_t>(axis);
    const int64_t whole = axis == quantize_axis ? (dims[at] + block - 1) / block : dims[at];
    const int64_t own = scales->dim(at);
    fits = own == whole || (own == 1 && is_float(data->dtype()));
    strides[at] = own == 1 && whole != 1 ? 0 : stride;
    stride *= own;
  }
  if (!fits)
    return context.error("scales must have one for each block of " + std::to_string(block) +
                         " along axis " + std::to_string(quantize_axis) + " of " +
                         dims_to_string(dims) + ", is " + to_string(*scales));
  if (zeros != nullptr) {
    Dims wanted = scales->dims();
    const size_t last = wanted.size() - 1;
    wanted[last] = (wanted[last] + each - 1) / each;
    CHECK_OK(check_dims(context, "zero_points", *zeros, wanted));
    if (is_float(data->dtype())) return context.error("floats take no zero_points");
  }
  Dims out;
  const auto axis = static_cast<size_t>(gather_axis);
  for (size_t i = 0; i < axis; ++i) out.push_back(dims[i]);
  for (const int64_t dim : indices->dims()) out.push_back(dim);
  for (size_t i = axis + 1; i < dims.size(); ++i) out.push_back(dims[i]);
  const int64_t inner = product(dims, axis + 1, dims.size());
  const int64_t count = indices->size(), length = dims[axis];
  std::vector<int64_t> rows(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    TRY(rows[static_cast<size_t>(i)], checked_index(indices->get_int64(i), length, gather_axis));
  }
  const double middle = packed ? static_cast<double>(int64_t{1} << (bits - 1)) : 0;
  TRY(const Tensor factors, as<float>(context, *scales));
  TRY(Tensor y, context.allocate(DType::kFloat32, out));
  const int64_t scale_columns = scales->dim(scales->rank() - 1);
  const auto code_of = [&](const Tensor& codes, int64_t row, int64_t column, int64_t columns) {
    if (!packed)
      return is_integer(codes.dtype())
                 ? static_cast<double>(codes.get_int64(row * columns + column))
                 : codes.get_double(row * columns + column);
    const int64_t width = (columns + each - 1) / each;
    return static_cast<double>(
        packed_code(codes.data<uint8_t>() + row * width, column, static_cast<int>(bits)));
  };
  context.parallel_for(y.size(), 1 << 12, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t place = inner == 0 ? 0 : i % inner, line = inner == 0 ? 0 : i / inner;
      const int64_t from =
          (line / count * length + rows[static_cast<size_t>(line % count)]) * inner + place;
      int64_t rest = from, scale = 0;
      for (size_t a = dims.size(); a-- > 0; rest /= dims[a]) {
        const int64_t index = rest % dims[a];
        scale += (static_cast<int64_t>(a) == quantize_axis ? index / block : index) * strides[a];
      }
      const int64_t columns = dims[dims.size() - 1];
      const double code = code_of(*data, from / columns, from % columns, columns);
      const double zero = zeros == nullptr ? middle
                                           : code_of(*zeros, scale / scale_columns,
                                                     scale % scale_columns, scale_columns);
      y.data<float>()[i] =
          static_cast<float>((code - zero) * static_cast<double>(factors.data<float>()[scale]));
    }
  });
  return give(context, 0, scales->dtype(), std::move(y));
}

Status infer_gather_block_quantized(InferContext& context) {
  InferType type = InferType::tensor(context.elem(2));
  const SymShape* data = context.shape(0);
  const SymShape* indices = context.shape(1);
  if (data != nullptr && indices != nullptr && !data->empty()) {
    TRY(const size_t axis,
        checked_axis(context, context.attributes.get_int("gather_axis", 0), data->size()));
    SymShape dims = *data;
    dims.back() = dims.back() * SymDim(elements_a_byte(context.attributes, context.elem(0)));
    SymShape out(dims.begin(), dims.begin() + static_cast<std::ptrdiff_t>(axis));
    out.insert(out.end(), indices->begin(), indices->end());
    out.insert(out.end(), dims.begin() + static_cast<std::ptrdiff_t>(axis) + 1, dims.end());
    type.shape = std::move(out);
  }
  context.set_output(0, std::move(type));
  return ok();
}

}  // namespace

OPERATOR(microsoft_GatherBlockQuantized) = {
    .name = "GatherBlockQuantized",
    .domain = "com.microsoft",
    .doc = "gathers from weights of a few bits in blocks, dequantised",
    .versions = {1},
    .inputs =
        {
            {"data", "T1"},
            {"indices", "Tind"},
            {"scales", "T2"},
            {"zero_points", "T1", kOptional},
        },
    .outputs =
        {
            {"output", "T2"},
        },
    .attributes =
        {
            {"bits", 4},
            {"block_size", 128},
            {"gather_axis", 0},
            {"quantize_axis", 1},
        },
    .types =
        {
            {"T1", {{1, kFp8 | kInt4 | kFp4 | kU8}}},
            {"T2", {{1, kBf16 | kF16 | kF32}}},
            {"Tind", {{1, kIndices}}},
        },
    .infer = infer_gather_block_quantized,
    .reference = run_gather_block_quantized,
};

}  // namespace tombolo::ops
