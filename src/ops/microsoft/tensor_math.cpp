// Small numeric operators: distances, inverses, Fourier transforms, complex products.

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <string>
#include <utility>
#include <vector>

#include "ops/infer_helpers.h"
#include "ops/kernels/broadcast.h"
#include "ops/kernels/compute.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {

/// Distances between the rows of two matrices.
Status run_cdist(KernelContext& context) {
  TRY(const Tensor* a, context.input(0));
  TRY(const Tensor* b, context.input(1));
  if (a->rank() != 2 || b->rank() != 2 || a->dim(1) != b->dim(1))
    return context.error("A and B must be matrices of one width, are " + to_string(*a) + " and " +
                         to_string(*b));
  const Text metric = context.attributes.get_string("metric", "sqeuclidean");
  if (metric != "sqeuclidean" && metric != "euclidean")
    return context.error("metric is \"" + std::string(metric) + "\"");
  const int64_t rows = a->dim(0), columns = b->dim(0), width = a->dim(1);
  return with_float(context, *a, [&]<typename T>() -> Status {
    TRY(const Tensor left, as<T>(context, *a));
    TRY(const Tensor right, as<T>(context, *b));
    TRY(Tensor y, context.allocate(dtype_of<T>(), {{rows, columns}}));
    context.parallel_for(rows, 1, [&](int64_t first, int64_t last) {
      for (int64_t i = first; i < last; ++i)
        for (int64_t j = 0; j < columns; ++j) {
          double sum = 0;
          for (int64_t k = 0; k < width; ++k) {
            const double gap = static_cast<double>(left.data<T>()[i * width + k]) -
                               static_cast<double>(right.data<T>()[j * width + k]);
            sum += gap * gap;
          }
          y.data<T>()[i * columns + j] =
              static_cast<T>(metric == "euclidean" ? std::sqrt(sum) : sum);
        }
    });
    return give(context, 0, a->dtype(), std::move(y));
  });
}
Status infer_cdist(InferContext& context) {
  const SymShape* a = context.shape(0);
  const SymShape* b = context.shape(1);
  if (a == nullptr || b == nullptr) return ok();
  CHECK_OK(expect_rank(context, 0, 2));
  CHECK_OK(expect_rank(context, 1, 2));
  set_shape(context, 0, {(*a)[0], (*b)[0]});
  return ok();
}

/// Gauss and Jordan, the greatest pivot of each column.
bool invert(int64_t n, double* m, double* inverse) {
  for (int64_t i = 0; i < n * n; ++i) inverse[i] = i / n == i % n ? 1 : 0;
  for (int64_t column = 0; column < n; ++column) {
    int64_t pivot = column;
    for (int64_t row = column + 1; row < n; ++row)
      if (std::fabs(m[row * n + column]) > std::fabs(m[pivot * n + column])) pivot = row;
    const double head = m[pivot * n + column];
    if (head == 0) return false;
    for (int64_t j = 0; j < n; ++j) {
      std::swap(m[pivot * n + j], m[column * n + j]);
      std::swap(inverse[pivot * n + j], inverse[column * n + j]);
      m[column * n + j] /= head;
      inverse[column * n + j] /= head;
    }
    for (int64_t row = 0; row < n; ++row) {
      const double factor = m[row * n + column];
      if (row == column || factor == 0) continue;
      for (int64_t j = 0; j < n; ++j) {
        m[row * n + j] -= factor * m[column * n + j];
        inverse[row * n + j] -= factor * inverse[column * n + j];
      }
    }
  }
  return true;
}

Status run_inverse(KernelContext& context) {
  TRY(const Tensor* x, context.input(0));
  if (x->rank() < 2 || x->dim(x->rank() - 1) != x->dim(x->rank() - 2))
    return context.error("X must hold square matrices, is " + to_string(*x));
  if (!is_float(x->dtype())) return context.error("X must hold floats, is " + to_string(*x));
  const int64_t n = x->dim(x->rank() - 1), size = n * n;
  TRY(Tensor work, context.allocate(DType::kFloat64, {{2, n, n}}));
  TRY(Tensor y, context.allocate(DType::kFloat64, x->dims()));
  TRY(const Tensor in, as<double>(context, *x));
  for (int64_t i = 0; size != 0 && i < x->size() / size; ++i) {
    std::copy_n(in.data<double>() + i * size, size, work.data<double>());
    // A singular matrix has no inverse: infinite, as a division by its determinant gives.
    if (!invert(n, work.data<double>(), work.data<double>() + size))
      std::fill_n(work.data<double>() + size, size, std::numeric_limits<double>::infinity());
    std::copy_n(work.data<double>() + size, size, y.data<double>() + i * size);
  }
  return give(context, 0, x->dtype(), std::move(y));
}

/// [..., n] to [..., n / 2 + 1, 2], and back: the last axis alone, without scaling on the way
/// there.
Status run_rfft(KernelContext& context) {
  TRY(const Tensor* x, context.input(0));
  if (x->rank() < 1) return context.error("X must not be a scalar");
  if (context.attributes.get_int("signal_ndim", 1) != 1)
    return unsupported("a Fourier transform over several axes");
  TRY(const Tensor in, as<double>(context, *x));
  const int64_t n = x->dim(x->rank() - 1), half = n / 2 + 1;
  if (n == 0) return context.error("there is no signal in " + to_string(*x));
  Dims dims = x->dims();
  dims[dims.size() - 1] = half;
  dims.push_back(2);
  TRY(Tensor y, context.allocate(DType::kFloat64, dims));
  for (int64_t row = 0; row < x->size() / n; ++row)
    for (int64_t k = 0; k < half; ++k) {
      double real = 0, imaginary = 0;
      for (int64_t t = 0; t < n; ++t) {
        const double angle =
            -2 * std::numbers::pi * static_cast<double>(k * t % n) / static_cast<double>(n);
        real += in.data<double>()[row * n + t] * std::cos(angle);
        imaginary += in.data<double>()[row * n + t] * std::sin(angle);
      }
      y.data<double>()[(row * half + k) * 2] = real;
      y.data<double>()[(row * half + k) * 2 + 1] = imaginary;
    }
  return give(context, 0, x->dtype(), std::move(y));
}
Status infer_rfft(InferContext& context) {
  const SymShape* x = context.shape(0);
  if (x == nullptr || x->empty()) return ok();
  SymShape out = *x;
  out.back() = floor_div(out.back(), SymDim(2)) + SymDim(1);
  out.push_back(SymDim(2));
  set_shape(context, 0, std::move(out));
  return ok();
}

Status run_irfft(KernelContext& context) {
  TRY(const Tensor* x, context.input(0));
  if (x->rank() < 2 || x->dim(x->rank() - 1) != 2)
    return context.error("X must be [..., n / 2 + 1, 2], is " + to_string(*x));
  if (context.attributes.get_int("signal_ndim", 1) != 1)
    return unsupported("a Fourier transform over several axes");
  TRY(const Tensor in, as<double>(context, *x));
  const int64_t half = x->dim(x->rank() - 2), n = std::max<int64_t>(0, 2 * (half - 1));
  Dims dims(x->dims().span().first(x->rank() - 1));
  dims[dims.size() - 1] = n;
  TRY(Tensor y, context.allocate(DType::kFloat64, dims));
  for (int64_t row = 0; n != 0 && row < y.size() / n; ++row)
    for (int64_t t = 0; t < n; ++t) {
      double sum = 0;
      for (int64_t k = 0; k < half; ++k) {
        const double angle =
            2 * std::numbers::pi * static_cast<double>(k * t % n) / static_cast<double>(n);
        const double* at = in.data<double>() + (row * half + k) * 2;
        // The other half mirrors this one.
        const double weight = k == 0 || k == half - 1 ? 1 : 2;
        sum += weight * (at[0] * std::cos(angle) - at[1] * std::sin(angle));
      }
      y.data<double>()[row * n + t] = sum / static_cast<double>(n);
    }
  return give(context, 0, x->dtype(), std::move(y));
}
Status infer_irfft(InferContext& context) {
  const SymShape* x = context.shape(0);
  if (x == nullptr || x->size() < 2) return ok();
  SymShape out(x->begin(), x->end() - 1);
  out.back() = SymDim(2) * (out.back() - SymDim(1));
  set_shape(context, 0, std::move(out));
  return ok();
}

/// Products of complex numbers whose parts are the last axis, of 2.
Status complex_product(KernelContext& context, bool conjugate) {
  TRY(const Tensor* a, context.input(0));
  TRY(const Tensor* b, context.input(1));
  for (const Tensor* x : {a, b})
    if (x->rank() == 0 || x->dim(x->rank() - 1) != 2)
      return context.error("the last axis must have length 2, one input is " + to_string(*x));
  TRY(const Dims dims, broadcast_dims(a->dims(), b->dims()));
  TRY(const Tensor wide_a, as<double>(context, *a));
  TRY(const Tensor wide_b, as<double>(context, *b));
  TRY(const Tensor left, expanded<double>(context, "A", wide_a, dims));
  TRY(const Tensor right, expanded<double>(context, "B", wide_b, dims));
  TRY(Tensor y, context.allocate(DType::kFloat64, dims));
  for (int64_t i = 0; i + 1 < y.size(); i += 2) {
    const double *l = left.data<double>() + i, *r = right.data<double>() + i;
    const double imaginary = conjugate ? -r[1] : r[1];
    y.data<double>()[i] = l[0] * r[0] - l[1] * imaginary;
    y.data<double>()[i + 1] = l[0] * imaginary + l[1] * r[0];
  }
  return give(context, 0, a->dtype(), std::move(y));
}
Status run_complex_mul(KernelContext& context) { return complex_product(context, false); }
Status run_complex_mul_conj(KernelContext& context) { return complex_product(context, true); }

Status infer_broadcast_pair(InferContext& context) {
  const SymShape* a = context.shape(0);
  const SymShape* b = context.shape(1);
  if (a == nullptr || b == nullptr) return ok();
  TRY(SymShape shape, broadcast(*a, *b));
  set_shape(context, 0, std::move(shape));
  return ok();
}

/// Whether all elements of all inputs are finite (or only not NaN, only not infinite).
Status run_is_all_finite(KernelContext& context) {
  const bool only_infinite = context.attributes.get_int("isinf_only", 0) != 0;
  const bool only_nan = context.attributes.get_int("isnan_only", 0) != 0;
  if (only_infinite && only_nan)
    return context.error("isinf_only and isnan_only cannot be given together");
  bool finite = true;
  for (size_t i = 0; i < context.input_count(); ++i) {
    TRY(const Tensor* x, context.input(i));
    for (int64_t j = 0; finite && j < x->size(); ++j) {
      const double value = x->get_double(j);
      finite = only_infinite ? !std::isinf(value)
               : only_nan    ? !std::isnan(value)
                             : std::isfinite(value);
    }
  }
  TRY(Tensor * y, context.output(0, DType::kBool, {}));
  y->set_int64(0, finite ? 1 : 0);
  return ok();
}
Status infer_is_all_finite(InferContext& context) {
  context.set_tensor(0, DType::kBool, {});
  return ok();
}

}  // namespace

OPERATOR(microsoft_CDist) = {
    .name = "CDist",
    .domain = "com.microsoft",
    .doc = "distances between rows",
    .versions = {1},
    .inputs =
        {
            {"A", "T"},
            {"B", "T"},
        },
    .outputs =
        {
            {"C", "T"},
        },
    .attributes =
        {
            {"metric", "sqeuclidean"},
        },
    .types =
        {
            {"T", {{1, kFloats32}}},
        },
    .infer = infer_cdist,
    .reference = run_cdist,
};

OPERATOR(microsoft_Inverse) = {
    .name = "Inverse",
    .domain = "com.microsoft",
    .doc = "inverse matrices",
    .versions = {1},
    .inputs =
        {
            {"X", "T"},
        },
    .outputs =
        {
            {"Y", "T"},
        },
    .types =
        {
            {"T", {{1, kFloats}}},
        },
    .infer = infer_unary,
    .reference = run_inverse,
};

OPERATOR(microsoft_Rfft) = {
    .name = "Rfft",
    .domain = "com.microsoft",
    .doc = "Fourier transform of real signals along the last axis",
    .versions = {1},
    .inputs =
        {
            {"X", "T"},
        },
    .outputs =
        {
            {"Y", "T"},
        },
    .attributes =
        {
            {"normalized", 0},
            {"onesided", 1},
            {"signal_ndim", 1},
        },
    .types =
        {
            {"T", {{1, kFloats}}},
        },
    .infer = infer_rfft,
    .reference = run_rfft,
};

OPERATOR(microsoft_Irfft) = {
    .name = "Irfft",
    .domain = "com.microsoft",
    .doc = "inverse of Rfft",
    .versions = {1},
    .inputs =
        {
            {"X", "T"},
        },
    .outputs =
        {
            {"Y", "T"},
        },
    .attributes =
        {
            {"normalized", 0},
            {"onesided", 1},
            {"signal_ndim", required(Attr::kInt)},
        },
    .types =
        {
            {"T", {{1, kFloats}}},
        },
    .infer = infer_irfft,
    .reference = run_irfft,
};

OPERATOR(microsoft_ComplexMul) = {
    .name = "ComplexMul",
    .domain = "com.microsoft",
    .doc = "products of complex numbers whose parts are the last axis",
    .versions = {1},
    .inputs =
        {
            {"A", "T"},
            {"B", "T"},
        },
    .outputs =
        {
            {"C", "T"},
        },
    .types =
        {
            {"T", {{1, kFloats}}},
        },
    .infer = infer_broadcast_pair,
    .reference = run_complex_mul,
};

OPERATOR(microsoft_ComplexMulConj) = {
    .name = "ComplexMulConj",
    .domain = "com.microsoft",
    .doc = "products with conjugates, parts in the last axis",
    .versions = {1},
    .inputs =
        {
            {"A", "T"},
            {"B", "T"},
        },
    .outputs =
        {
            {"C", "T"},
        },
    .types =
        {
            {"T", {{1, kFloats}}},
        },
    .infer = infer_broadcast_pair,
    .reference = run_complex_mul_conj,
};

OPERATOR(microsoft_IsAllFinite) = {
    .name = "IsAllFinite",
    .domain = "com.microsoft",
    .doc = "whether all elements of all inputs are finite",
    .versions = {1},
    .inputs =
        {
            {"input", "V", kVariadic, {}, 1},
        },
    .outputs =
        {
            {"output", "T"},
        },
    .attributes =
        {
            {"isinf_only", 0},
            {"isnan_only", 0},
        },
    .types =
        {
            {"V", {{1, kFloats | kBf16}}},
            {"T", {{1, kBool}}},
        },
    .infer = infer_is_all_finite,
    .reference = run_is_all_finite,
};

}  // namespace tombolo::ops
