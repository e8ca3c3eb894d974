#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/kernels/image/crop.cpp"
#include "runtime/kernels/targets.h"
// After targets.h, which sets macros for Highway.
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <limits>

#include "runtime/kernels/dispatch.h"
#include "runtime/kernels/image/crop.h"
#include "runtime/kernels/vec-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tombolo {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using CF = hn::ScalableTag<float>;
using CI = hn::RebindToSigned<CF>;
using CV = hn::Vec<CF>;

constexpr bool kCropGathers = HWY_TARGET <= HWY_AVX2;  // else number by number

/// What is read for all columns, in whole vectors: those outside read some that is.
void place_columns(const CropBox& box, CropRoom& room) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(CF()));
  const int64_t count = (box.column_count + lanes - 1) / lanes;
  const auto padded = static_cast<size_t>(count * lanes);
  room.places[0].assign(padded, 0);
  room.places[1].assign(padded, 0);
  room.share.assign(padded, 0);
  room.inside.assign(padded, 0);
  room.vectors.resize(static_cast<size_t>(count));
  room.lines.resize(2 * padded);
  room.all_inside = true;
  for (int64_t v = 0; v < count; ++v) {
    const int64_t begin = v * lanes, end = std::min(begin + lanes, box.column_count);
    int64_t low = std::numeric_limits<int32_t>::max(), high = 0;
    for (int64_t j = begin; j < end; ++j) {
      const ops::CropSample& sample = box.columns[j];
      room.all_inside = room.all_inside && sample.inside;
      if (!sample.inside) continue;
      low = std::min(low, sample.first);
      high = std::max(high, sample.second);
    }
    if (low > high) low = high;
    CropVector& vector = room.vectors[static_cast<size_t>(v)];
    vector.low = static_cast<int32_t>(low);
    vector.loads = static_cast<int32_t>((high - low) / lanes + 1);
    if (vector.loads > 2 || !kCropGathers) {
      vector = {0, 0};
      low = 0;
    }
    for (int64_t j = begin; j < end; ++j) {
      const ops::CropSample& sample = box.columns[j];
      if (!sample.inside) continue;
      const auto at = static_cast<size_t>(j);
      room.places[0][at] = static_cast<int32_t>(sample.first - low);
      room.places[1][at] = static_cast<int32_t>(sample.second - low);
      room.share[at] = sample.share;
      room.inside[at] = 1;
    }
  }
}

/// A row of the picture at all columns.
template <bool kNearest>
HWY_INLINE void crop_row(const CropRoom& room, const float* x, int64_t width, float* line) {
  const CF f;
  const CI i;
  const auto lanes = static_cast<int64_t>(hn::Lanes(f));
  const int32_t *first = room.places[0].data(), *second = room.places[1].data();
  const float* share = room.share.data();
  if constexpr (!kCropGathers) {
    for (size_t j = 0; j < room.share.size(); ++j) {
      const float a = x[first[j]];
      line[j] = kNearest ? a : a + (x[second[j]] - a) * share[j];
    }
    return;
  }
  const auto last = hn::Set(i, static_cast<int32_t>(lanes - 1));
  for (const CropVector& vector : room.vectors) {
    const auto at = hn::LoadU(i, first), next = hn::LoadU(i, second);
    CV a, b;
    if (vector.loads == 0) {
      a = hn::GatherIndex(f, x, at);
      b = kNearest ? a : hn::GatherIndex(f, x, next);
    } else {
      const int64_t left = width - vector.low;
      const CV near = load_n(f, x + vector.low, left);
      const CV far = vector.loads == 1 ? near : load_n(f, x + vector.low + lanes, left - lanes);
      const auto pick = [&](auto place) HWY_ATTR {
        const auto lane = hn::IndicesFromVec(f, hn::And(place, last));
        const CV v = hn::TableLookupLanes(near, lane);
        if (vector.loads == 1) return v;
        return hn::IfThenElse(hn::RebindMask(f, hn::Gt(place, last)),
                              hn::TableLookupLanes(far, lane), v);
      };
      a = pick(at);
      b = kNearest ? a : pick(next);
    }
    hn::StoreU(kNearest ? a : hn::MulAdd(hn::Sub(b, a), hn::LoadU(f, share), a), f, line);
    first += lanes;
    second += lanes;
    share += lanes;
    line += lanes;
  }
}

template <bool kNearest>
void crop_channels(const CropPlanes& planes, const CropBox& box, CropRoom& room) {
  const CF f;
  const auto lanes = static_cast<int64_t>(hn::Lanes(f));
  place_columns(box, room);
  const auto step = static_cast<int64_t>(room.share.size());
  const CV outside = hn::Set(f, box.outside);
  float* y = planes.y;
  for (int64_t c = 0; c < planes.channels; ++c) {
    const float* x = planes.x + c * planes.height * planes.width;
    // Rows of the output that are neighbours mostly read the same ones.
    int64_t held[2] = {-1, -1};
    const auto line_of = [&](int64_t row, int64_t other) {
      for (int64_t k = 0; k < 2; ++k)
        if (held[k] == row) return room.lines.data() + k * step;
      const int64_t k = held[0] == other ? 1 : 0;
      held[k] = row;
      float* line = room.lines.data() + k * step;
      crop_row<kNearest>(room, x + row * planes.width, planes.width, line);
      return line;
    };
    for (int64_t i = 0; i < box.row_count; ++i, y += box.column_count) {
      const ops::CropSample& row = box.rows[i];
      if (!row.inside) {
        std::fill_n(y, box.column_count, box.outside);
        continue;
      }
      const float* above = line_of(row.first, row.second);
      const float* below = line_of(row.second, row.first);
      const CV share = hn::Set(f, row.share);
      for (int64_t j = 0; j < box.column_count; j += lanes) {
        CV v = hn::LoadU(f, above + j);
        if constexpr (!kNearest) v = hn::MulAdd(hn::Sub(hn::LoadU(f, below + j), v), share, v);
        if (!room.all_inside) {
          const CV inside = hn::LoadU(f, room.inside.data() + j);
          v = hn::IfThenElse(hn::Gt(inside, hn::Zero(f)), v, outside);
        }
        store_n(v, f, y + j, box.column_count - j);
      }
    }
  }
}

void crop_any(const CropPlanes& planes, const CropBox& box, CropRoom& room) {
  (box.nearest ? crop_channels<true> : crop_channels<false>)(planes, box, room);
}

/// The columns of cells: their pixels in turn, the last one once more where another has more.
/// Those of many columns are better looked through one by one.
void place_cells(const CropCells& cells, CropRoom& room) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(CF()));
  const int64_t padded = (cells.column_count + lanes - 1) / lanes * lanes;
  int64_t left = std::numeric_limits<int64_t>::max(), right = 0;
  room.turns = 0;
  for (int64_t j = 0; j < cells.column_count; ++j) {
    const ops::CellSpan& cell = cells.columns[j];
    if (cell.first >= cell.last) continue;
    left = std::min(left, cell.first);
    right = std::max(right, cell.last);
    room.turns = std::max(room.turns, cell.last - cell.first);
  }
  room.left = room.turns == 0 ? 0 : left;
  room.span = room.turns == 0 ? 0 : right - left;
  room.lines.resize(static_cast<size_t>((room.span + lanes - 1) / lanes * lanes));
  room.without.clear();
  for (int64_t i = 0; i < cells.row_count; ++i)
    for (int64_t j = 0; j < cells.column_count; ++j)
      if (cells.rows[i].first >= cells.rows[i].last ||
          cells.columns[j].first >= cells.columns[j].last)
        room.without.push_back(i * cells.column_count + j);
  constexpr int64_t kMostTurns = kCropGathers ? 32 : 0;
  room.one_by_one = room.turns > kMostTurns;
  if (room.one_by_one) return;
  room.places[0].assign(static_cast<size_t>(room.turns * padded), 0);
  for (int64_t turn = 0; turn < room.turns; ++turn)
    for (int64_t j = 0; j < cells.column_count; ++j) {
      const ops::CellSpan& cell = cells.columns[j];
      if (cell.first < cell.last)
        room.places[0][static_cast<size_t>(turn * padded + j)] =
            static_cast<int32_t>(std::min(cell.first + turn, cell.last - 1) - left);
    }
}

/// Of numbers none of which is NaN.
HWY_INLINE float greatest_in_row(const float* x, int64_t n) {
  const CF f;
  const auto lanes = static_cast<int64_t>(hn::Lanes(f));
  if (n < lanes) return *std::max_element(x, x + n);
  CV most = hn::LoadU(f, x + n - lanes);
  for (int64_t i = 0; i + lanes < n; i += lanes) most = max_of(most, hn::LoadU(f, x + i));
  return hn::GetLane(hn::MaxOfLanes(f, most));
}

void greatest_of_cells(const CropPlanes& planes, const CropCells& cells, CropRoom& room) {
  const CF f;
  const CI index;
  const auto lanes = static_cast<int64_t>(hn::Lanes(f));
  place_cells(cells, room);
  const int64_t width = planes.width, span = room.span, count = cells.column_count;
  const int64_t padded = (count + lanes - 1) / lanes * lanes;
  const CV least = hn::Set(f, -std::numeric_limits<float>::infinity());
  const bool one_vector = span <= lanes && count <= lanes && !room.one_by_one;
  float *y = planes.y, *line = room.lines.data();
  for (int64_t c = 0; c < planes.channels; ++c) {
    const float* x = planes.x + c * planes.height * width + room.left;
    auto nan = hn::MaskFromVec(hn::Zero(f));
    float* to = y;
    for (int64_t i = 0; i < cells.row_count && span > 0; ++i, to += count) {
      const ops::CellSpan rows = cells.rows[i];
      const auto down = [&](int64_t j) HWY_ATTR {
        CV most = least;
        for (int64_t row = rows.first; row < rows.last; ++row) {
          const CV v = load_n(f, x + row * width + j, span - j);
          nan = hn::Or(nan, hn::IsNaN(v));
          most = max_of(v, most);
        }
        return most;
      };
      const auto in_turn = [&](int64_t j, auto&& look_up) HWY_ATTR {
        CV most = least;
        for (int64_t turn = 0; turn < room.turns; ++turn) {
          const auto at = hn::LoadU(index, room.places[0].data() + turn * padded + j);
          most = max_of(most, look_up(at));
        }
        store_n(most, f, to + j, count - j);
      };
      if (one_vector) {
        const CV all = down(0);
        in_turn(0, [&](auto at)
                       HWY_ATTR { return hn::TableLookupLanes(all, hn::IndicesFromVec(f, at)); });
        continue;
      }
      for (int64_t j = 0; j < span; j += lanes) hn::StoreU(down(j), f, line + j);
      if (!room.one_by_one) {
        for (int64_t j = 0; j < count; j += lanes)
          in_turn(j, [&](auto at) HWY_ATTR { return hn::GatherIndex(f, line, at); });
        continue;
      }
      for (int64_t j = 0; j < count; ++j) {
        const ops::CellSpan& cell = cells.columns[j];
        if (cell.first < cell.last)
          to[j] = greatest_in_row(line + cell.first - room.left, cell.last - cell.first);
      }
    }
    for (const int64_t cell : room.without) y[cell] = 0;
    if (!hn::AllFalse(f, nan))
      for (int64_t cell = 0; cell < cells.row_count * count; ++cell) {
        const ops::CellSpan &rows = cells.rows[cell / count], &cut = cells.columns[cell % count];
        if (rows.first >= rows.last || cut.first >= cut.last) continue;
        const float first = x[rows.first * width + cut.first - room.left];
        if (first != first) y[cell] = first;
      }
    y += cells.row_count * count;
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace tombolo
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tombolo {

void crop_box(const CropPlanes& planes, const CropBox& box, CropRoom& room) {
  TOMBOLO_TARGET(void(const CropPlanes&, const CropBox&, CropRoom&), crop_any)
      .get()(planes, box, room);
}
void crop_greatest(const CropPlanes& planes, const CropCells& cells, CropRoom& room) {
  TOMBOLO_TARGET(void(const CropPlanes&, const CropCells&, CropRoom&), greatest_of_cells)
      .get()(planes, cells, room);
}

}  // namespace tombolo
#endif
