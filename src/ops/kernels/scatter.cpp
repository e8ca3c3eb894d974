#include "ops/kernels/scatter.h"

#include <complex>
#include <vector>

#include "ops/kernels/arguments.h"
#include "ops/kernels/elementwise.h"
#include "ops/kernels/movement.h"

namespace tombolo::ops {

namespace {

template <typename T>
T combine(Reduction reduction, T a, T b) {
  switch (reduction) {
    case Reduction::kAdd:
      return wrap_add(a, b);
    case Reduction::kMul:
      return wrap_mul(a, b);
    // A comparison each: one instruction of floats, where a branch would be guessed wrong half of
    // the time.
    case Reduction::kMax: {
      const T most = a > b ? a : b;
      return a != a ? a : most;
    }
    case Reduction::kMin: {
      const T least = a < b ? a : b;
      return a != a ? a : least;
    }
    default:
      return b;
  }
}

template <typename T>
void combine_as(Reduction reduction, const Tensor& updates, int64_t from, Tensor& out, int64_t to) {
  T a, b;
  widen(out, to, 1, &a);
  widen(updates, from, 1, &b);
  a = combine(reduction, a, b);
  narrow(&a, 1, out, to);
}

template <typename T>
void combine_complex(Reduction reduction, const Tensor& updates, int64_t from, Tensor& out,
                     int64_t to) {
  const std::complex<T> b = updates.data<std::complex<T>>()[from];
  std::complex<T>& a = out.data<std::complex<T>>()[to];
  a = reduction == Reduction::kAdd ? a + b : a * b;
}

/// Calls body with the reduction as a constant, so that loops know it.
template <typename Body>
void with_reduction(Reduction reduction, Body&& body) {
  switch (reduction) {
    case Reduction::kNone:
      return body.template operator()<Reduction::kNone>();
    case Reduction::kAdd:
      return body.template operator()<Reduction::kAdd>();
    case Reduction::kMul:
      return body.template operator()<Reduction::kMul>();
    case Reduction::kMax:
      return body.template operator()<Reduction::kMax>();
    case Reduction::kMin:
      return body.template operator()<Reduction::kMin>();
  }
}

/// Rows of updates along the last axis, for elements of type T: where each goes is known.
template <typename T>
void scatter_rows(Reduction reduction, const T* updates, const int64_t* places, int64_t count,
                  T* out) {
  with_reduction(reduction, [&]<Reduction kHow>() {
    for (int64_t i = 0; i < count; ++i) {
      if constexpr (kHow == Reduction::kNone)
        out[places[i]] = updates[i];
      else
        out[places[i]] = combine(kHow, out[places[i]], updates[i]);
    }
  });
}

/// Neighbours into neighbours.
template <typename T>
void combine_neighbours(Reduction reduction, const T* updates, int64_t count, T* out) {
  with_reduction(reduction, [&]<Reduction kHow>() {
    for (int64_t i = 0; i < count; ++i) out[i] = combine(kHow, out[i], updates[i]);
  });
}

}  // namespace

Result<Reduction> scatter_reduction(const KernelContext& context, const Tensor& data,
                                    const Tensor& updates) {
  if (updates.dtype() != data.dtype())
    return context.error("updates " + to_string(updates) + " are not of the type of data " +
                         to_string(data));
  const Text name = context.attributes.get_string("reduction", "none");
  constexpr std::string_view kNames[] = {"none", "add", "mul", "max", "min"};
  for (size_t k = 0; k < std::size(kNames); ++k) {
    if (name != kNames[k]) continue;
    const bool ordered = k >= static_cast<size_t>(Reduction::kMax);
    if (k != 0 && (data.is_string() || (ordered && is_complex(data.dtype()))))
      return unsupported("reduction " + std::string(name) + " of " + to_string(data));
    return static_cast<Reduction>(k);
  }
  return context.error("reduction must be none, add, mul, max or min, is \"" + std::string(name) +
                       "\"");
}

void combine_element(Reduction reduction, const Tensor& updates, int64_t from, Tensor& out,
                     int64_t to) {
  if (reduction == Reduction::kNone) return copy_elements(updates, from, out, to, 1);
  switch (compute_type(out.dtype())) {
    case Compute::kFloat:
      return combine_as<float>(reduction, updates, from, out, to);
    case Compute::kDouble:
      return combine_as<double>(reduction, updates, from, out, to);
    case Compute::kInt64:
      return combine_as<int64_t>(reduction, updates, from, out, to);
    case Compute::kUInt64:
      return combine_as<uint64_t>(reduction, updates, from, out, to);
    case Compute::kNone:
      return out.dtype() == DType::kComplex64
                 ? combine_complex<float>(reduction, updates, from, out, to)
                 : combine_complex<double>(reduction, updates, from, out, to);
  }
}

void combine_run(Reduction reduction, const Tensor& updates, int64_t from, Tensor& out, int64_t to,
                 int64_t count) {
  const auto as = [&]<typename T>(T) {
    combine_neighbours(reduction, updates.data<T>() + from, count, out.data<T>() + to);
  };
  if (reduction == Reduction::kNone) return copy_elements(updates, from, out, to, count);
  switch (out.dtype()) {
    case DType::kFloat32:
      return as(float{});
    case DType::kFloat64:
      return as(double{});
    case DType::kInt32:
      return as(int32_t{});
    case DType::kInt64:
      return as(int64_t{});
    default:
      for (int64_t i = 0; i < count; ++i)
        combine_element(reduction, updates, from + i, out, to + i);
  }
}

Status scatter_elements(KernelContext& context) {
  TRY(const Tensor* data, context.input(0));
  TRY(const Tensor* indices, context.input(1));
  TRY(const Tensor* updates, context.input(2));
  CHECK_OK(check_index_type(*indices));
  TRY(const Reduction reduction, scatter_reduction(context, *data, *updates));
  TRY(const int64_t axis,
      normalize_axis(context.attributes.get_int("axis", 0), static_cast<int64_t>(data->rank())));
  const auto at = static_cast<size_t>(axis);
  bool fits = indices->rank() == data->rank() && indices->dims() == updates->dims();
  for (size_t j = 0; fits && j < data->rank(); ++j)
    fits = j == at || indices->dim(j) <= data->dim(j);
  if (!fits)
    return context.error("indices " + to_string(*indices) + " and updates " + to_string(*updates) +
                         " do not fit data " + to_string(*data));
  TRY(Tensor * out, context.output(0, data->dtype(), data->dims()));
  copy_elements(*data, 0, *out, 0, data->size());
  if (indices->size() == 0) return ok();
  const Dims strides = contiguous_strides(data->dims());
  const auto by_rows = [&]<typename T>(T) -> Status {
    const size_t last = data->rank() - 1;
    const int64_t width = indices->dim(last), rows = indices->size() / width;
    const int64_t length = data->dim(at), step = at == last ? 0 : 1, stride = strides[at];
    std::vector<int64_t> places(static_cast<size_t>(width));
    for (int64_t row = 0; row < rows; ++row) {
      int64_t rest = row, base = 0;
      for (size_t j = last; j-- > 0; rest /= indices->dim(j))
        if (j != at) base += rest % indices->dim(j) * strides[j];
      const bool wide = indices->dtype() == DType::kInt64;
      for (int64_t i = 0; i < width; ++i) {
        const int64_t index =
            wide ? indices->data<int64_t>()[row * width + i] : indices->get_int64(row * width + i);
        int64_t place = index < 0 ? index + length : index;
        if (static_cast<uint64_t>(place) >= static_cast<uint64_t>(length)) [[unlikely]] {
          TRY(place, checked_index(index, length, axis));
        }
        places[static_cast<size_t>(i)] = base + i * step + place * stride;
      }
      scatter_rows(reduction, updates->data<T>() + row * width, places.data(), width,
                   out->data<T>());
    }
    return ok();
  };
  if (data->rank() > 0) switch (data->dtype()) {
      case DType::kFloat32:
        return by_rows(float{});
      case DType::kFloat64:
        return by_rows(double{});
      case DType::kInt32:
        return by_rows(int32_t{});
      case DType::kInt64:
        return by_rows(int64_t{});
      default:
        // What replaces is moved as it is.
        if (reduction != Reduction::kNone || data->is_string() || is_complex(data->dtype())) break;
        if (bits_of(data->dtype()) == 8) return by_rows(uint8_t{});
        if (bits_of(data->dtype()) == 16) return by_rows(uint16_t{});
        break;
    }
  Odometer walk(indices->dims());
  int64_t from = 0;
  do {
    TRY(const int64_t place, checked_index(indices->get_int64(from), data->dim(at), axis));
    const int64_t to = walk.dot(strides) + (place - walk.index[at]) * strides[at];
    combine_element(reduction, *updates, from++, *out, to);
  } while (walk.next());
  return ok();
}

}  // namespace tombolo::ops
