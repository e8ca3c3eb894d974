#include "ops/kernels/pad.h"

#include <algorithm>
#include <cstring>

#include "ops/kernels/arguments.h"
#include "ops/kernels/movement.h"
#include "ops/kernels/parts.h"

namespace tombolo::ops {

namespace {

/// One axis: which input element an output element shows.
struct PadAxis {
  int64_t first, length;  ///< the part of the input that is kept
  int64_t added;          ///< elements before it in the output

  /// The input's index for output index `i`; -1 for the constant.
  int64_t source(int64_t i, PadMode mode) const {
    int64_t at = i - added;
    if (at >= 0 && at < length) return first + at;
    switch (mode) {
      case PadMode::kConstant:
        return -1;
      case PadMode::kEdge:
        return first + std::clamp<int64_t>(at, 0, length - 1);
      case PadMode::kWrap:
        at %= length;
        return first + (at < 0 ? at + length : at);
      case PadMode::kReflect: {
        if (length == 1) return first;
        const int64_t period = 2 * (length - 1);
        at %= period;
        if (at < 0) at += period;
        return first + (at < length ? at : period - at);
      }
    }
    return -1;
  }
};

/// As memcpy, whose call takes longer than the copy of a short row.
inline void copy_row(const void* from, void* to, size_t bytes) {
  constexpr size_t kPiece = 16, kShort = 512;
  if (bytes < kPiece || bytes > kShort) {
    std::memcpy(to, from, bytes);
    return;
  }
  const auto* source = static_cast<const std::byte*>(from);
  auto* target = static_cast<std::byte*>(to);
  for (size_t i = 0; i + kPiece < bytes; i += kPiece) std::memcpy(target + i, source + i, kPiece);
  std::memcpy(target + bytes - kPiece, source + bytes - kPiece, kPiece);
}

/// Places are known for the outer axes; the last padded axis is the part that is kept, copied as it
/// lies, between what is added. `unit` elements belong to each of its places.
template <typename T>
void copy_padded(const T* from, T* to, const Dims& strides,
                 std::span<const std::vector<int64_t>> outer, const PadAxis& axis, int64_t count,
                 int64_t unit, PadMode mode, T value) {
  const int64_t width = count * unit, behind = axis.added + axis.length;
  int64_t rows = 1;
  for (const auto& table : outer) rows *= static_cast<int64_t>(table.size());
  std::vector<int64_t> places(static_cast<size_t>(count - axis.length));
  for (int64_t i = 0; i < count - axis.length; ++i)
    places[static_cast<size_t>(i)] = axis.source(i < axis.added ? i : i + axis.length, mode);
  // Calls to copy the parts of a row would take longer than an element at a time.
  constexpr int64_t kShort = 16;
  std::vector<int64_t> short_row;
  for (int64_t i = 0; unit == 1 && count <= kShort && i < count; ++i)
    short_row.push_back(axis.source(i, mode));
  parallel_parts(
      rows, std::max<int64_t>(1, (1 << 15) / std::max<int64_t>(1, width)),
      [&](int64_t begin, int64_t end) {
        std::vector<size_t> index(outer.size(), 0);
        const auto go_to = [&](int64_t row) {
          for (size_t j = outer.size(); j-- > 0; row /= static_cast<int64_t>(outer[j].size()))
            index[j] = static_cast<size_t>(row) % outer[j].size();
        };
        go_to(begin);
        // Where the first axes lead to, so many of them; -1: to what is added.
        std::vector<int64_t> sources(outer.size() + 1, 0);
        size_t known = 0;
        for (int64_t row = begin; row < end; ++row) {
          for (size_t j = known; j < outer.size(); ++j) {
            const int64_t at = outer[j][index[j]];
            sources[j + 1] = at < 0 || sources[j] < 0 ? -1 : sources[j] + at * strides[j];
          }
          const int64_t source = sources.back();
          for (known = outer.size(); known-- > 0;) {
            if (++index[known] < outer[known].size()) break;
            index[known] = 0;
          }
          T* out = to + row * width;
          if (source < 0) {
            // All rows below the axis that leads to what is added.
            int64_t below = 1;
            for (size_t j = outer.size(); j > 1 && sources[j - 1] < 0; --j)
              below *= static_cast<int64_t>(outer[j - 1].size());
            if (below == 1) {
              std::fill_n(out, width, value);
              continue;
            }
            const int64_t stretch = std::min(end - row, below - row % below);
            if (value == T{0})
              std::memset(out, 0, static_cast<size_t>(stretch * width) * sizeof(T));
            else
              std::fill_n(out, stretch * width, value);
            row += stretch - 1;
            go_to(row + 1);
            known = 0;
            continue;
          }
          const T* line = from + source;
          if (!short_row.empty()) {
            if (mode == PadMode::kConstant)
              for (int64_t i = 0; i < width; ++i) {
                const int64_t place = short_row[static_cast<size_t>(i)];
                out[i] = place < 0 ? value : line[place];
              }
            else
              for (int64_t i = 0; i < width; ++i) out[i] = line[short_row[static_cast<size_t>(i)]];
            continue;
          }
          const auto fill = [&](int64_t first, int64_t last, const int64_t* place) {
            if (mode == PadMode::kConstant)
              std::fill_n(out + first * unit, (last - first) * unit, value);
            else if (unit == 1)
              for (int64_t i = first; i < last; ++i) out[i] = line[*place++];
            else
              for (int64_t i = first; i < last; ++i)
                std::copy_n(line + *place++ * unit, unit, out + i * unit);
          };
          fill(0, axis.added, places.data());
          copy_row(line + axis.first * unit, out + axis.added * unit,
                   static_cast<size_t>(axis.length * unit) * sizeof(T));
          fill(behind, count, places.data() + axis.added);
        }
      });
}

}  // namespace

Result<Tensor> pad_tensor(const KernelContext& context, const Tensor& data,
                          const std::vector<int64_t>& before, const std::vector<int64_t>& after,
                          PadMode mode, const Tensor* value) {
  const size_t rank = data.rank();
  std::vector<PadAxis> axes;
  Dims dims;
  for (size_t j = 0; j < rank; ++j) {
    int64_t length = 0;
    if (__builtin_add_overflow(data.dim(j), before[j], &length) ||
        __builtin_add_overflow(length, after[j], &length) || length < 0 ||
        before[j] < -data.dim(j) || after[j] < -data.dim(j))
      return context.error("pads of " + std::to_string(before[j]) + " and " +
                           std::to_string(after[j]) + " do not fit axis " + std::to_string(j) +
                           " of " + to_string(data));
    const int64_t first = std::max<int64_t>(0, -before[j]);
    const int64_t last = data.dim(j) - std::max<int64_t>(0, -after[j]);
    axes.push_back({first, std::max<int64_t>(last - first, 0), std::max<int64_t>(before[j], 0)});
    if (axes[j].length == 0 && length > 0 && mode != PadMode::kConstant)
      return context.error("axis " + std::to_string(j) + " of " + to_string(data) +
                           " has no elements to repeat");
    dims.push_back(length);
  }
  TRY(Tensor zero, context.allocate(data.dtype(), {}));
  fill_zero(zero);
  if (value == nullptr) value = &zero;
  TRY(Tensor out, context.allocate(data.dtype(), dims));
  if (out.size() == 0) return out;
  if (rank == 0) return data;

  std::vector<std::vector<int64_t>> tables(rank);
  const auto fill_table = [&](size_t j) {
    tables[j].resize(static_cast<size_t>(dims[j]));
    for (int64_t i = 0; i < dims[j]; ++i)
      tables[j][static_cast<size_t>(i)] = axes[j].source(i, mode);
  };
  // Axes at the end to which nothing is done are one with the last one that is padded.
  size_t at = rank;
  int64_t unit = 1;
  while (at > 1 && before[at - 1] == 0 && after[at - 1] == 0) unit *= dims[--at];
  for (size_t j = 0; j + 1 < at; ++j) fill_table(j);
  const Dims strides = contiguous_strides(data.dims());
  const auto padded = [&]<typename T>(T*) {
    copy_padded(data.data<T>(), out.data<T>(), strides, std::span(tables).first(at - 1),
                axes[at - 1], dims[at - 1], unit, mode, *value->data<T>());
  };
  if (!is_complex(data.dtype()) && !data.is_string()) {
    switch (bits_of(data.dtype())) {
      case 8:
        padded(static_cast<uint8_t*>(nullptr));
        return out;
      case 16:
        padded(static_cast<uint16_t*>(nullptr));
        return out;
      case 32:
        padded(static_cast<uint32_t*>(nullptr));
        return out;
      case 64:
        padded(static_cast<uint64_t*>(nullptr));
        return out;
      default:
        break;
    }
  }
  for (size_t j = at - 1; j < rank; ++j) fill_table(j);
  copy_by_tables(data, data.dims(), tables, value, out);
  return out;
}

}  // namespace tombolo::ops
