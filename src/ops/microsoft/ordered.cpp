// 8-bit matrices in the element orders of cuBLASLt: quantising into them, products, GELU, norms.

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "ops/infer_helpers.h"
#include "ops/kernels/compute.h"
#include "ops/kernels/quantize.h"
#include "ops/microsoft/linear.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {

enum Order : int64_t { kColumn, kRow, kColumn32, kColumn4x4R2x8C, kColumn32x2R4x4 };

Result<Order> read_order(const KernelContext& context, const char* name, int64_t fallback) {
  const int64_t order = context.attributes.get_int(name, fallback);
  if (order < kColumn || order > kColumn32x2R4x4)
    return context.error(std::string(name) + " is " + std::to_string(order));
  return static_cast<Order>(order);
}

/// Where element (row, column) of a [rows, columns] matrix lies. Orders in tiles need whole tiles.
int64_t place_of(Order order, int64_t row, int64_t column, int64_t rows, int64_t columns) {
  const int64_t band = column / 32 * 32 * rows, c = column % 32, r = row % 32;
  switch (order) {
    case kColumn:
      return column * rows + row;
    case kRow:
      return row * columns + column;
    case kColumn32:
      return band + row * 32 + c;
    case kColumn4x4R2x8C:  // tiles of 8 rows: even rows first, in groups of 8 columns
      return band + (row / 8 * 8 + row % 2 * 4 + c / 8) * 32 +
             ((c % 8 >= 4 ? 4 : 0) + row % 8 / 2) * 4 + c % 4;
    case kColumn32x2R4x4:  // tiles of 32 rows
      return band + row / 32 * 1024 + ((r % 8 / 2 * 4 + r / 8) * 2 + r % 2) * 32 + c;
  }
  return 0;
}

struct Matrix {
  int64_t batch = 1, rows = 1, columns = 1;
  int64_t size() const { return rows * columns; }
};

Result<Matrix> read_matrix(const KernelContext& context, const char* name, const Tensor& x,
                           std::initializer_list<Order> orders) {
  const size_t rank = x.rank();
  if (rank == 0) return context.error(std::string(name) + " is a scalar");
  Matrix m;
  m.columns = x.dim(rank - 1);
  if (rank > 1) m.rows = x.dim(rank - 2);
  for (size_t i = 0; i + 2 < rank; ++i) m.batch *= x.dim(i);
  for (const Order order : orders) {
    const int64_t tile = order == kColumn32x2R4x4 ? 32 : order == kColumn4x4R2x8C ? 8 : 1;
    if (order >= kColumn32 && (m.columns % 32 != 0 || m.rows % tile != 0))
      return context.error(std::string(name) + " must have whole tiles of " + std::to_string(tile) +
                           " rows and 32 columns, is " + to_string(x));
  }
  return m;
}

int8_t to_code(double value) {
  return static_cast<int8_t>(quantized(value, 0, range_of(DType::kInt8)));
}

Status run_quantize_with_order(KernelContext& context) {
  TRY(const Tensor* x, context.input(0));
  TRY(const float scale, scalar_scale(context, 1, "scale_input"));
  TRY(const Order from, read_order(context, "order_input", kRow));
  TRY(const Order to, read_order(context, "order_output", kRow));
  TRY(const Matrix m, read_matrix(context, "input", *x, {from, to}));
  TRY(const Tensor in, as<float>(context, *x));
  TRY(Tensor * y, context.output(0, DType::kInt8, x->dims()));
  for (int64_t b = 0; b < m.batch; ++b)
    for (int64_t r = 0; r < m.rows; ++r)
      for (int64_t c = 0; c < m.columns; ++c)
        y->data<int8_t>()[b * m.size() + place_of(to, r, c, m.rows, m.columns)] =
            to_code(static_cast<double>(
                        in.data<float>()[b * m.size() + place_of(from, r, c, m.rows, m.columns)]) /
                    static_cast<double>(scale));
  return ok();
}

Status run_dequantize_with_order(KernelContext& context) {
  TRY(const Tensor* x, context.input(0));
  TRY(const float scale, scalar_scale(context, 1, "scale_input"));
  TRY(const Order from, read_order(context, "order_input", kRow));
  TRY(const Order to, read_order(context, "order_output", kRow));
  TRY(const Matrix m, read_matrix(context, "input", *x, {from, to}));
  if (x->dtype() != DType::kInt8) return context.error("input must be int8, is " + to_string(*x));
  const int64_t type = context.attributes.get_int("to", 0);
  if (type != static_cast<int64_t>(DType::kFloat32) &&
      type != static_cast<int64_t>(DType::kFloat16))
    return context.error("to is " + std::to_string(type) + ", neither float nor float16");
  TRY(Tensor y, context.allocate(DType::kFloat32, x->dims()));
  for (int64_t b = 0; b < m.batch; ++b)
    for (int64_t r = 0; r < m.rows; ++r)
      for (int64_t c = 0; c < m.columns; ++c)
        y.data<float>()[b * m.size() + place_of(to, r, c, m.rows, m.columns)] =
            scale * static_cast<float>(
                        x->data<int8_t>()[b * m.size() + place_of(from, r, c, m.rows, m.columns)]);
  return give(context, 0, static_cast<DType>(type), std::move(y));
}

/// Element type `to`, which the kernel knows at run time alone.
Status infer_dequantize_with_order(InferContext& context) {
  const int64_t type = context.attributes.get_int("to", 0);
  if (type != static_cast<int64_t>(DType::kFloat32) &&
      type != static_cast<int64_t>(DType::kFloat16))
    return context.error("to is " + std::to_string(type) + ", neither float nor float16");
  InferType out = InferType::tensor(static_cast<DType>(type));
  if (context.shape(0) != nullptr) out.shape = *context.shape(0);
  context.set_output(0, std::move(out));
  return ok();
}

Status infer_quantize_with_order(InferContext& context) {
  InferType out = InferType::tensor(DType::kInt8);
  if (context.shape(0) != nullptr) out.shape = *context.shape(0);
  context.set_output(0, std::move(out));
  return ok();
}

/// Y = (A B scale_A scale_B + bias + C scale_C) / scale_Y, rounded.
Status run_qordered_matmul(KernelContext& context) {
  TRY(const Tensor* a, context.input(0));
  TRY(const float a_scale, scalar_scale(context, 1, "scale_A"));
  TRY(const Tensor* b, context.input(2));
  TRY(const Tensor* b_scale, context.input(3));
  TRY(const float y_scale, scalar_scale(context, 4, "scale_Y"));
  TRY(const Tensor* bias, context.optional_input(5));
  TRY(const Tensor* c, context.optional_input(6));
  TRY(const Order order, read_order(context, "order_A", kRow));
  TRY(const Order order_b, read_order(context, "order_B", kColumn));
  TRY(const Order order_y, read_order(context, "order_Y", kRow));
  for (const Tensor* x : {a, b, c})
    if (x != nullptr && (x->dtype() != DType::kInt8 || x->rank() < 2))
      return context.error("A, B and C must be int8 matrices, one is " + to_string(*x));
  if (order_y != order) return context.error("order_Y must be order_A");
  TRY(const Matrix ma, read_matrix(context, "A", *a, {order}));
  const int64_t k = ma.columns, rows = ma.rows;
  const int64_t n = b->dim(b->rank() - 1);
  Matrix mb;
  for (size_t i = 0; i + 2 < b->rank(); ++i) mb.batch *= b->dim(i);
  if (b->dim(b->rank() - 2) != k || (mb.batch != 1 && mb.batch != ma.batch))
    return context.error("A and B do not fit: " + to_string(*a) + ", " + to_string(*b));
  if (order_b >= kColumn4x4R2x8C && (k % 32 != 0 || n % (order_b == kColumn32x2R4x4 ? 32 : 8) != 0))
    return context.error("B must have whole tiles, is " + to_string(*b));
  if (order == kColumn32 && n % 32 != 0)
    return context.error("Y would not have whole tiles: B is " + to_string(*b));
  if (b_scale->size() != 1) CHECK_OK(check_dims(context, "scale_B", *b_scale, {{n}}));
  if (bias != nullptr) CHECK_OK(check_dims(context, "bias", *bias, {{n}}));
  double c_scale = 0;
  int64_t c_batch = 1;
  if (c != nullptr) {
    TRY(const float given, scalar_scale(context, 7, "scale_C"));
    c_scale = static_cast<double>(given);
    for (size_t i = 0; i + 2 < c->rank(); ++i) c_batch *= c->dim(i);
    if (c->dim(c->rank() - 1) != n || c->dim(c->rank() - 2) != rows ||
        (c_batch != 1 && c_batch != ma.batch))
      return context.error("C does not fit the product: " + to_string(*c));
  }
  Dims dims = a->dims();
  dims[dims.size() - 1] = n;
  TRY(Tensor * y, context.output(0, DType::kInt8, dims));
  for (int64_t batch = 0; batch < ma.batch; ++batch)
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < n; ++j) {
        const int8_t* left = a->data<int8_t>() + batch * rows * k;
        const int8_t* right = b->data<int8_t>() + (mb.batch == 1 ? 0 : batch * k * n);
        int64_t sum = 0;
        for (int64_t p = 0; p < k; ++p) {
          // Orders in tiles hold B's transpose.
          const int64_t at = order_b >= kColumn4x4R2x8C ? place_of(order_b, j, p, n, k)
                                                        : place_of(order_b, p, j, k, n);
          sum += int64_t{left[place_of(order, i, p, rows, k)]} * int64_t{right[at]};
        }
        double value = static_cast<double>(sum) * static_cast<double>(a_scale) *
                       b_scale->get_double(b_scale->size() == 1 ? 0 : j);
        if (bias != nullptr) value += bias->get_double(j);
        const int64_t at = place_of(order_y, i, j, rows, n);
        if (c != nullptr)
          value += c_scale * static_cast<double>(
                                 c->data<int8_t>()[(c_batch == 1 ? 0 : batch * rows * n) + at]);
        y->data<int8_t>()[batch * rows * n + at] = to_code(value / static_cast<double>(y_scale));
      }
  return ok();
}

Status infer_qordered_matmul(InferContext& context) { return infer_matmul(context, 0, 2); }

Status run_qordered_gelu(KernelContext& context) {
  TRY(const Tensor* x, context.input(0));
  TRY(const float scale, scalar_scale(context, 1, "scale_X"));
  TRY(const float y_scale, scalar_scale(context, 2, "scale_Y"));
  if (x->dtype() != DType::kInt8) return context.error("X must be int8, is " + to_string(*x));
  if (context.attributes.get_int("order_X", kRow) !=
      context.attributes.get_int("order_Y", context.attributes.get_int("order_X", kRow)))
    return context.error("order_Y must be order_X");
  TRY(Tensor * y, context.output(0, DType::kInt8, x->dims()));
  for (int64_t i = 0; i < x->size(); ++i) {
    const double v = static_cast<double>(scale) * static_cast<double>(x->data<int8_t>()[i]);
    y->data<int8_t>()[i] =
        to_code(v * 0.5 * (1 + std::erf(v / std::sqrt(2.0))) / static_cast<double>(y_scale));
  }
  return ok();
}

Status run_qordered_layer_normalization(KernelContext& context) {
  TRY(const Tensor* x, context.input(0));
  TRY(const float scale, scalar_scale(context, 1, "scale_X"));
  TRY(const Tensor* gamma, context.input(2));
  TRY(const Tensor* beta, context.optional_input(3));
  TRY(const float y_scale, scalar_scale(context, 4, "scale_Y"));
  TRY(const Order order, read_order(context, "order_X", kRow));
  if (x->dtype() != DType::kInt8) return context.error("X must be int8, is " + to_string(*x));
  if (context.attributes.get_int("order_Y", kRow) != order)
    return context.error("order_Y must be order_X");
  const int64_t axis = context.attributes.get_int("axis", -1);
  if (axis != -1 && axis != static_cast<int64_t>(x->rank()) - 1)
    return unsupported("axis other than the last");
  TRY(const Matrix m, read_matrix(context, "X", *x, {order}));
  CHECK_OK(check_dims(context, "scale", *gamma, {{m.columns}}));
  if (beta != nullptr) CHECK_OK(check_dims(context, "B", *beta, {{m.columns}}));
  const auto epsilon = static_cast<double>(context.attributes.get_float("epsilon", 1e-5f));
  TRY(Tensor * y, context.output(0, DType::kInt8, x->dims()));
  for (int64_t row = 0; row < m.batch * m.rows; ++row) {
    const int64_t first = row / m.rows * m.size();
    const auto at = [&](int64_t c) {
      return first + place_of(order, row % m.rows, c, m.rows, m.columns);
    };
    const auto value = [&](int64_t c) {
      return static_cast<double>(scale) * static_cast<double>(x->data<int8_t>()[at(c)]);
    };
    double sum = 0, squares = 0;
    for (int64_t c = 0; c < m.columns; ++c) sum += value(c);
    const double mean = sum / static_cast<double>(m.columns);
    for (int64_t c = 0; c < m.columns; ++c) squares += (value(c) - mean) * (value(c) - mean);
    const double root = std::sqrt(squares / static_cast<double>(m.columns) + epsilon);
    for (int64_t c = 0; c < m.columns; ++c)
      y->data<int8_t>()[at(c)] = to_code(((value(c) - mean) / root * gamma->get_double(c) +
                                          (beta != nullptr ? beta->get_double(c) : 0)) /
                                         static_cast<double>(y_scale));
  }
  return ok();
}

}  // namespace

OPERATOR(microsoft_QuantizeWithOrder) = {
    .name = "QuantizeWithOrder",
    .domain = "com.microsoft",
    .doc = "quantises a matrix into an element order of cuBLASLt",
    .versions = {1},
    .inputs = {{"input", "F"}, {"scale_input", "S"}},
    .outputs = {{"output", "Q"}},
    .attributes =
        {
            {"order_input", required(Attr::kInt)},
            {"order_output", required(Attr::kInt)},
        },
    .types = {{"Q", {{1, kI8}}}, {"F", {{1, kF16 | kF32}}}, {"S", {{1, kF32}}}},
    .infer = infer_quantize_with_order,
    .reference = run_quantize_with_order,
};

OPERATOR(microsoft_DequantizeWithOrder) = {
    .name = "DequantizeWithOrder",
    .domain = "com.microsoft",
    .doc = "numbers of a quantised matrix in an element order of cuBLASLt",
    .versions = {1},
    .inputs = {{"input", "Q"}, {"scale_input", "S"}},
    .outputs = {{"output", "F"}},
    .attributes =
        {
            {"order_input", required(Attr::kInt)},
            {"order_output", required(Attr::kInt)},
            {"to", required(Attr::kInt)},
        },
    .types = {{"Q", {{1, kI8}}}, {"F", {{1, kF16 | kF32}}}, {"S", {{1, kF32}}}},
    .infer = infer_dequantize_with_order,
    .reference = run_dequantize_with_order,
};

OPERATOR(microsoft_QOrderedMatMul) = {
    .name = "QOrderedMatMul",
    .domain = "com.microsoft",
    .doc = "product of quantised matrices in element orders of cuBLASLt",
    .versions = {1},
    .inputs =
        {
            {"A", "Q"},
            {"scale_A", "S"},
            {"B", "Q"},
            {"scale_B", "S"},
            {"scale_Y", "S"},
            {"bias", "S", kOptional},
            {"C", "Q", kOptional},
            {"scale_C", "S", kOptional},
        },
    .outputs = {{"Y", "Q"}},
    .attributes =
        {
            {"order_A", required(Attr::kInt)},
            {"order_B", required(Attr::kInt)},
            {"order_Y", required(Attr::kInt)},
        },
    .types = {{"Q", {{1, kI8}}}, {"S", {{1, kF32}}}},
    .infer = infer_qordered_matmul,
    .reference = run_qordered_matmul,
};

OPERATOR(microsoft_QOrderedGelu) = {
    .name = "QOrderedGelu",
    .domain = "com.microsoft",
    .doc = "GELU of quantised numbers",
    .versions = {1},
    .inputs = {{"X", "Q"}, {"scale_X", "S"}, {"scale_Y", "S"}},
    .outputs = {{"Y", "Q"}},
    .attributes = {{"order_X", Attr::kInt}, {"order_Y", Attr::kInt}},
    .types = {{"Q", {{1, kI8}}}, {"S", {{1, kF32}}}},
    .infer = infer_unary,
    .reference = run_qordered_gelu,
};

OPERATOR(microsoft_QOrderedLayerNormalization) = {
    .name = "QOrderedLayerNormalization",
    .domain = "com.microsoft",
    .doc = "layer normalisation of quantised numbers",
    .versions = {1},
    .inputs =
        {
            {"X", "Q"},
            {"scale_X", "S"},
            {"scale", "F"},
            {"B", "F", kOptional},
            {"scale_Y", "S"},
        },
    .outputs = {{"Y", "Q"}},
    .attributes =
        {
            {"axis", -1},
            {"epsilon", 1e-5f},
            {"order_X", 1},
            {"order_Y", 1},
        },
    .types = {{"F", {{1, kF16 | kF32}}}, {"S", {{1, kF32}}}, {"Q", {{1, kI8}}}},
    .infer = infer_unary,
    .reference = run_qordered_layer_normalization,
};

}  // namespace tombolo::ops
