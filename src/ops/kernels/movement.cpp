#include "ops/kernels/movement.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/bit_packing.h"
#include "base/thread_pool.h"
#include "ops/kernels/parts.h"

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
  uint64_t stride = 1;  // may wrap where a dimension is 0: nobody walks over such a tensor
  for (size_t j = dims.size(); j-- > 0;) {
    strides[j] = static_cast<int64_t>(stride);
    stride *= static_cast<uint64_t>(std::max<int64_t>(dims[j], 1));
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

namespace {

/// to[j * out] = from[j * in] with small steps known to the compiler, which then has vectors for
/// it.
template <typename T>
void copy_steps(const T* __restrict__ from, int64_t in, T* __restrict__ to, int64_t out,
                int64_t count) {
  const auto fixed = [&]<int kIn, int kOut>() {
    for (int64_t j = 0; j < count; ++j) to[j * kOut] = from[j * kIn];
  };
  if (out == 1 && in == 2) return fixed.template operator()<2, 1>();
  if (out == 1 && in == 3) return fixed.template operator()<3, 1>();
  if (out == 1 && in == 4) return fixed.template operator()<4, 1>();
  if (out == 1 && in == -1) return fixed.template operator()<-1, 1>();
  for (int64_t j = 0; j < count; ++j) to[j * out] = from[j * in];
}

/// A box with two innermost axes: [n1][n0], element (i, j) at i * step1 + j * step0 on either side.
struct Sheet {
  int64_t n1, n0;
  int64_t from1, from0, to1, to0;
};

/// Rows of few elements side by side, whose number the compiler knows: a call a row costs more than
/// the row.
template <int kWidth, typename T>
void copy_narrow(const T* __restrict__ from, T* __restrict__ to, const Sheet& s) {
  for (int64_t i = 0; i < s.n1; ++i, from += s.from1, to += s.to1)
    std::memcpy(to, from, kWidth * sizeof(T));
}

template <typename T>
void copy_sheet(const T* from, T* to, const Sheet& s) {
  if (s.from0 == 1 && s.to0 == 1) switch (s.n0) {
      case 1:
        return copy_narrow<1>(from, to, s);
      case 2:
        return copy_narrow<2>(from, to, s);
      case 3:
        return copy_narrow<3>(from, to, s);
      case 4:
        return copy_narrow<4>(from, to, s);
      case 8:
        return copy_narrow<8>(from, to, s);
      default:
        break;
    }
  for (int64_t i = 0; i < s.n1; ++i, from += s.from1, to += s.to1) {
    if (s.from0 == 1 && s.to0 == 1) {
      std::memcpy(to, from, static_cast<size_t>(s.n0) * sizeof(T));
    } else if (s.to0 == 1) {
      if (s.from0 == 0) {
        std::fill_n(to, s.n0, *from);
      } else {
        copy_steps(from, s.from0, to, 1, s.n0);
      }
    } else {
      for (int64_t j = 0; j < s.n0; ++j) to[j * s.to0] = from[j * s.from0];
    }
  }
}

/// All but strings and packed elements, in threads.
template <typename T>
void copy_axes(const T* from, T* to, const Dims& shape, const Dims& in, const Dims& out) {
  const size_t rank = shape.size();
  Sheet sheet{1, shape[rank - 1], 0, in[rank - 1], 0, out[rank - 1]};
  size_t outer = rank - 1;
  if (rank > 1) {
    --outer;
    sheet.n1 = shape[outer];
    sheet.from1 = in[outer];
    sheet.to1 = out[outer];
  }
  int64_t sheets = 1;
  for (size_t j = 0; j < outer; ++j) sheets *= shape[j];
  constexpr int64_t kGrain = 1 << 15;
  if (sheets == 1 && sheet.n1 > 1 && sheet.n1 * sheet.n0 > kGrain) {
    parallel_parts(sheet.n1, std::max<int64_t>(1, kGrain / sheet.n0),
                   [&](int64_t begin, int64_t end) {
                     Sheet part = sheet;
                     part.n1 = end - begin;
                     copy_sheet(from + begin * sheet.from1, to + begin * sheet.to1, part);
                   });
    return;
  }
  parallel_parts(sheets, std::max<int64_t>(1, kGrain / (sheet.n1 * sheet.n0)),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t at = begin; at < end; ++at) {
                     int64_t rest = at, source = 0, target = 0;
                     for (size_t j = outer; j-- > 0; rest /= shape[j]) {
                       source += rest % shape[j] * in[j];
                       target += rest % shape[j] * out[j];
                     }
                     copy_sheet(from + source, to + target, sheet);
                   }
                 });
}

/// Calls body with a null pointer to an unsigned type of the elements' size; false for strings and
/// packed elements.
template <typename Body>
bool by_width(DType dtype, Body&& body) {
  switch (bits_of(dtype)) {
    case 8:
      body(static_cast<uint8_t*>(nullptr));
      return true;
    case 16:
      body(static_cast<uint16_t*>(nullptr));
      return true;
    case 32:
      body(static_cast<uint32_t*>(nullptr));
      return true;
    case 64:
      if (is_complex(dtype))
        body(static_cast<Pair*>(nullptr));
      else
        body(static_cast<uint64_t*>(nullptr));
      return true;
    case 128:
      body(static_cast<Wide*>(nullptr));
      return true;
    default:
      return false;
  }
}

}  // namespace

void copy_box(const Tensor& from, int64_t from_offset, std::span<const int64_t> from_strides,
              Tensor& to, int64_t to_offset, std::span<const int64_t> to_strides,
              std::span<const int64_t> dims) {
  // Lengths of a box of nothing may be any: their products need not be numbers.
  if (std::find(dims.begin(), dims.end(), 0) != dims.end()) return;
  // Axes of length 1 vanish; an axis that continues its neighbour on both sides joins it.
  Dims shape, in, out;
  for (size_t j = 0; j < dims.size(); ++j) {
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

  // A short last axis makes short loops: one that is read in order goes inside instead.
  const size_t last = shape.size() - 1;
  if (shape[last] < 16 && in[last] != 1)
    for (size_t j = 0; j < last; ++j)
      if (in[j] == 1 && shape[j] > shape[last]) {
        std::swap(shape[j], shape[last]);
        std::swap(in[j], in[last]);
        std::swap(out[j], out[last]);
        // What was last comes next to it: its neighbours lie in the same cache lines.
        for (size_t k = j; k + 1 < last; ++k) {
          std::swap(shape[k], shape[k + 1]);
          std::swap(in[k], in[k + 1]);
          std::swap(out[k], out[k + 1]);
        }
        break;
      }
  if (by_width(to.dtype(), [&]<typename T>(T*) {
        copy_axes(from.data<T>() + from_offset, to.data<T>() + to_offset, shape, in, out);
      }))
    return;

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

namespace {

/// Part of a row: elements [begin, end) that come one after another in the source, are all one, or
/// stand where the table says.
struct Segment {
  enum class Kind : uint8_t { kRun, kValue, kTable } kind;
  int64_t begin, end;
};

std::vector<Segment> segments_of(const std::vector<int64_t>& table) {
  std::vector<Segment> list;
  const auto n = static_cast<int64_t>(table.size());
  const auto source = [&](int64_t i) { return table[static_cast<size_t>(i)]; };
  for (int64_t i = 0; i < n;) {
    int64_t end = i + 1;
    if (source(i) < 0) {
      while (end < n && source(end) < 0) ++end;
      list.push_back({Segment::Kind::kValue, i, end});
    } else {
      while (end < n && source(end) == source(end - 1) + 1) ++end;
      const bool run = end - i >= 4;
      if (!run && !list.empty() && list.back().kind == Segment::Kind::kTable)
        list.back().end = end;
      else
        list.push_back({run ? Segment::Kind::kRun : Segment::Kind::kTable, i, end});
    }
    i = end;
  }
  return list;
}

/// How many times each element comes, one after the other, if that is all the table says; else 0.
int64_t repeats_of(const std::vector<int64_t>& table) {
  const auto n = static_cast<int64_t>(table.size());
  int64_t times = 1;
  while (times < n && table[static_cast<size_t>(times)] == table[0]) ++times;
  if (times == 1 || n % times != 0 || table[0] != 0) return 0;
  for (int64_t i = 0; i < n; ++i)
    if (table[static_cast<size_t>(i)] != i / times) return 0;
  return times;
}

/// Each of `count` elements `times` times.
template <typename T>
void repeat_row(const T* __restrict__ from, int64_t count, int64_t times, T* __restrict__ to) {
  const auto fixed = [&]<int kTimes>() {
    for (int64_t i = 0; i < count; ++i) {
      const T value = from[i];
      for (int k = 0; k < kTimes; ++k) to[i * kTimes + k] = value;
    }
  };
  if (times == 2) return fixed.template operator()<2>();
  if (times == 3) return fixed.template operator()<3>();
  if (times == 4) return fixed.template operator()<4>();
  for (int64_t i = 0; i < count; ++i) std::fill_n(to + i * times, times, from[i]);
}

template <typename T>
void copy_tables(const T* from, T* to, const Dims& strides,
                 std::span<const std::vector<int64_t>> tables, int64_t unit, T value) {
  const size_t outer = tables.size() - 1;
  const std::vector<int64_t>& inner = tables[outer];
  const std::vector<Segment> segments = segments_of(inner);
  const int64_t times = unit == 1 ? repeats_of(inner) : 0;
  const auto width = static_cast<int64_t>(inner.size()) * unit;
  int64_t rows = 1;
  for (size_t j = 0; j < outer; ++j) rows *= static_cast<int64_t>(tables[j].size());
  const auto one_row = [&](const T* source, T* target) {
    if (times != 0)
      return repeat_row(source, static_cast<int64_t>(inner.size()) / times, times, target);
    for (const Segment& s : segments) {
      T* out = target + s.begin * unit;
      const int64_t count = (s.end - s.begin) * unit;
      const int64_t* places = inner.data() + s.begin;
      if (s.kind == Segment::Kind::kValue)
        std::fill_n(out, count, value);
      else if (s.kind == Segment::Kind::kRun)
        std::memcpy(out, source + places[0] * unit, static_cast<size_t>(count) * sizeof(T));
      else if (unit == 1)
        for (int64_t i = 0; i < count; ++i) out[i] = source[places[i]];
      else
        for (int64_t i = 0; i < s.end - s.begin; ++i)
          std::memcpy(out + i * unit, source + places[i] * unit,
                      static_cast<size_t>(unit) * sizeof(T));
    }
  };
  parallel_parts(rows, std::max<int64_t>(1, (1 << 15) / std::max<int64_t>(1, width)),
                 [&](int64_t begin, int64_t end) {
                   int64_t last = -2;
                   // Where the row stands on each axis: counted on, since a division costs more
                   // than a short row.
                   std::vector<size_t> index(outer, 0);
                   int64_t rest = begin;
                   for (size_t j = outer; j-- > 0; rest /= static_cast<int64_t>(tables[j].size()))
                     index[j] = static_cast<size_t>(rest) % tables[j].size();
                   for (int64_t row = begin; row < end; ++row) {
                     int64_t source = 0;
                     for (size_t j = 0; j < outer; ++j) {
                       const int64_t at = tables[j][index[j]];
                       source = at < 0 || source < 0 ? -1 : source + at * strides[j];
                     }
                     for (size_t j = outer; j-- > 0;) {
                       if (++index[j] < tables[j].size()) break;
                       index[j] = 0;
                     }
                     T* target = to + row * width;
                     if (source < 0)
                       std::fill_n(target, width, value);
                     else if (source == last)  // rows of an image that grows come several times
                       std::memcpy(target, target - width, static_cast<size_t>(width) * sizeof(T));
                     else
                       one_row(from + source, target);
                     last = source;
                   }
                 });
}

}  // namespace

void copy_by_tables(const Tensor& from, std::span<const int64_t> from_dims,
                    std::span<const std::vector<int64_t>> tables, const Tensor* value, Tensor& to) {
  if (to.size() == 0) return;
  // Whole axes at the end are moved as one.
  int64_t unit = 1;
  Dims strides = contiguous_strides(from_dims);
  const auto is_whole = [&](size_t j) {
    if (static_cast<int64_t>(tables[j].size()) != from_dims[j]) return false;
    for (size_t i = 0; i < tables[j].size(); ++i)
      if (tables[j][i] != static_cast<int64_t>(i)) return false;
    return true;
  };
  size_t rank = tables.size();
  for (; rank > 1 && is_whole(rank - 1); --rank) unit *= from_dims[rank - 1];
  tables = tables.first(rank);
  if (by_width(to.dtype(), [&]<typename T>(T*) {
        copy_tables(from.data<T>(), to.data<T>(), strides, tables, unit,
                    value != nullptr ? *value->data<T>() : T{});
      }))
    return;
  Dims dims;
  for (const auto& table : tables) dims.push_back(static_cast<int64_t>(table.size()));
  std::vector<size_t> index(rank, 0);
  for (int64_t at = 0; at < to.size(); at += unit) {
    int64_t source = 0;
    for (size_t j = 0; j < rank && source >= 0; ++j) {
      const int64_t place = tables[j][index[j]];
      source = place < 0 ? -1 : source + place * strides[j];
    }
    if (source >= 0)
      copy_elements(from, source, to, at, unit);
    else if (value != nullptr)
      fill_elements(*value, 0, to, at, unit);
    for (size_t j = rank; j-- > 0;) {
      if (++index[j] < tables[j].size()) break;
      index[j] = 0;
    }
  }
}

}  // namespace tombolo::ops
