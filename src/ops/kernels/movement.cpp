#include "ops/kernels/movement.h"

#include <algorithm>
#include <cstring>

#include "base/bit_packing.h"

namespace tombolo::ops {

namespace {

struct Wide {
  uint64_t words[2];
};
struct Pair {  // complex64 need not be aligned to its size
  uint32_t words[2];
};

template <typename T>
void copy_row(const T* from, int64_t from_stride, T* to, int64_t to_stride, int64_t count) {
  if (from_stride == 1 && to_stride == 1)
    std::copy_n(from, count, to);
  else if (from_stride == 0 && to_stride == 1)
    std::fill_n(to, count, *from);
  else
    for (int64_t i = 0; i < count; ++i) to[i * to_stride] = from[i * from_stride];
}

/// One row of `count` elements under strides, whatever the element type is.
void copy_strided_row(const Tensor& from, int64_t from_index, int64_t from_stride, Tensor& to,
                      int64_t to_index, int64_t to_stride, int64_t count) {
  if (count <= 0) return;
  const DType dtype = to.dtype();
  auto copy = [&]<typename T>(T) {
    copy_row(from.data<T>() + from_index, from_stride, to.data<T>() + to_index, to_stride, count);
  };
  switch (bits_of(dtype)) {
    case 0:
      return copy_row(from.strings().data() + from_index, from_stride,
                      to.strings().data() + to_index, to_stride, count);
    case 8:
      return copy(uint8_t{});
    case 16:
      return copy(uint16_t{});
    case 32:
      return copy(uint32_t{});
    case 64:
      return is_complex(dtype) ? copy(Pair{}) : copy(uint64_t{});
    case 128:
      return copy(Wide{});
    default:
      for (int64_t i = 0; i < count; ++i)
        set_packed_code(to.data<uint8_t>(), bits_of(dtype),
                        static_cast<size_t>(to_index + i * to_stride),
                        packed_code(from.data<uint8_t>(), bits_of(dtype),
                                    static_cast<size_t>(from_index + i * from_stride)));
  }
}

}  // namespace

Dims contiguous_strides(std::span<const int64_t> dims) {
  Dims strides;
  strides.resize(static_cast<uint32_t>(dims.size()), 0);
  int64_t stride = 1;
  for (size_t j = dims.size(); j-- > 0;) {
    strides[j] = stride;
    stride *= std::max<int64_t>(dims[j], 1);
  }
  return strides;
}

void copy_elements(const Tensor& from, int64_t from_index, Tensor& to, int64_t to_index,
                   int64_t count) {
  copy_strided_row(from, from_index, 1, to, to_index, 1, count);
}

void fill_elements(const Tensor& value, int64_t value_index, Tensor& to, int64_t to_index,
                   int64_t count) {
  copy_strided_row(value, value_index, 0, to, to_index, 1, count);
}

void fill_zero(Tensor& to) {
  if (to.is_string()) {
    std::fill(to.strings().begin(), to.strings().end(), std::string());
  } else if (!to.bytes().empty()) {
    std::memset(to.mutable_bytes().data(), 0, to.bytes().size());
  }
}

void copy_box(const Tensor& from, int64_t from_offset, std::span<const int64_t> from_strides,
              Tensor& to, int64_t to_offset, std::span<const int64_t> to_strides,
              std::span<const int64_t> dims) {
  // Axes of length 1 vanish; an axis that continues its neighbour on both sides joins it.
  Dims shape, in, out;
  for (size_t j = 0; j < dims.size(); ++j) {
    if (dims[j] == 0) return;
    if (dims[j] == 1) continue;
    if (!shape.empty() && in.back() == from_strides[j] * dims[j] &&
        out.back() == to_strides[j] * dims[j]) {
      shape.back() *= dims[j];
      in.back() = from_strides[j];
      out.back() = to_strides[j];
    } else {
      shape.push_back(dims[j]);
      in.push_back(from_strides[j]);
      out.push_back(to_strides[j]);
    }
  }
  if (shape.empty()) return copy_strided_row(from, from_offset, 1, to, to_offset, 1, 1);

  const uint32_t outer = shape.size() - 1;
  Dims index;
  index.resize(outer, 0);
  while (true) {
    copy_strided_row(from, from_offset, in[outer], to, to_offset, out[outer], shape[outer]);
    uint32_t axis = outer;
    while (axis-- > 0) {
      from_offset += in[axis];
      to_offset += out[axis];
      if (++index[axis] < shape[axis]) break;
      from_offset -= in[axis] * shape[axis];
      to_offset -= out[axis] * shape[axis];
      index[axis] = 0;
    }
    if (axis == UINT32_MAX) return;
  }
}

}  // namespace tombolo::ops
