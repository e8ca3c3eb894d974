// Resize by nearest neighbours: to twice the width of 32-bit elements, where each row is doubled,
// into two rows at once where it comes twice; else of pixels, that is what follows the last axis
// that changes, or single elements, by vectors where they are small.

#include <algorithm>
#include <cstring>
#include <vector>

#include "runtime/kernels/image/pick_bytes.h"
#include "runtime/kernels/image/resample.h"
#include "runtime/kernels/image/resize_query.h"
#include "runtime/kernels/isa.h"
#include "runtime/kernels/kernel.h"

namespace tombolo {
namespace {

struct NearestState final : KernelState {
  Dims output;
  std::vector<int64_t> rows;  ///< where each row of the output comes from: elements, or bytes
  int64_t row = 0;            ///< a row of the input, in the same
  /// Of pixels: where each of a row's comes from, and their bytes; no pixels of an element.
  std::vector<int64_t> columns;
  size_t pixel = 0;
  std::vector<int32_t> places;     ///< the same of pixels of 32 bits, counted in those
  std::optional<BytePicks> picks;  ///< the same of other pixels, where rows are picked by vectors
};

bool stays(const std::vector<ops::ResizeTaps>& places, int64_t length) {
  for (size_t i = 0; i < places.size(); ++i)
    if (places[i].first != static_cast<int64_t>(i)) return false;
  return static_cast<int64_t>(places.size()) == length;
}

bool plan_nearest(const KernelQuery& q, NearestState& s) {
  if (active_isa() == Isa::kScalar || q.inputs.empty() || bits_of(q.dtype(0)) % 8 != 0 ||
      q.attributes.get_string("mode", "nearest") != "nearest" || q.dims(0).empty() ||
      element_count(q.dims(0)) < 1 ||
      q.attributes.get_string("coordinate_transformation_mode", "half_pixel") ==
          "tf_crop_and_resize")
    return false;
  const ResizeQuery resize(q);
  if (!resize.plan()) return false;
  const size_t rank = q.dims(0).size();
  std::vector<std::vector<ops::ResizeTaps>> places;
  size_t width = 0;  // the last axis that changes
  for (size_t j = 0; j < rank; ++j) {
    auto list = resize.taps(j);
    if (!list || list->empty()) return false;
    s.output.push_back(static_cast<int64_t>(list->size()));
    if (!stays(*list, q.dims(0)[j])) width = j;
    places.push_back(*std::move(list));
  }
  s.rows = {0};
  for (size_t j = 0; j < width; ++j) {
    if (s.rows.size() * places[j].size() > size_t{1} << 22) return false;
    std::vector<int64_t> next;
    for (const int64_t row : s.rows)
      for (const auto& place : places[j]) next.push_back(row * q.dims(0)[j] + place.first);
    s.rows = std::move(next);
  }
  bool doubles = width + 1 == rank && bits_of(q.dtype(0)) == 32 &&
                 static_cast<int64_t>(places[width].size()) == 2 * q.dims(0)[width];
  for (size_t i = 0; doubles && i < places[width].size(); ++i)
    doubles = places[width][i].first == static_cast<int64_t>(i / 2);
  if (doubles) {
    s.row = q.dims(0)[width];
    return true;
  }
  s.pixel = bits_of(q.dtype(0)) / 8;
  for (size_t j = width + 1; j < rank; ++j) s.pixel *= static_cast<size_t>(q.dims(0)[j]);
  s.row = q.dims(0)[width] * static_cast<int64_t>(s.pixel);
  for (const auto& place : places[width])
    s.columns.push_back(place.first * static_cast<int64_t>(s.pixel));
  // Vectors are made from one or two of the input, unless an image shrinks by more than that.
  const auto count = static_cast<int64_t>(s.columns.size()), given = q.dims(0)[width];
  const bool dense = active_isa() == Isa::kAvx512
                         ? 2 * count >= given
                         : active_isa() == Isa::kAvx2 && 3 * count >= 2 * given;
  if (s.pixel == 4 && count >= 16 && dense && s.row <= INT32_MAX &&
      std::is_sorted(s.columns.begin(), s.columns.end()))
    for (const int64_t column : s.columns) s.places.push_back(static_cast<int32_t>(column / 4));
  else if (s.pixel < BytePicks::kBlock)
    s.picks = plan_byte_picks(s.columns, static_cast<int64_t>(s.pixel), s.row);
  return true;
}
bool supports_nearest(const KernelQuery& q) {
  NearestState state;
  return plan_nearest(q, state);
}
Result<std::unique_ptr<KernelState>> prepare_nearest(const PrepareContext& q) {
  auto state = std::make_unique<NearestState>();
  plan_nearest(q, *state);
  for (int64_t& row : state->rows) row *= state->row;
  return state;
}

void pick_places(const NearestState& s, const std::byte* from, std::byte* to) {
  pick_row(reinterpret_cast<const uint32_t*>(from), s.row / 4, s.places.data(),
           static_cast<int64_t>(s.places.size()), reinterpret_cast<uint32_t*>(to));
}
/// kPixel: the bytes of a pixel, 0 for any.
template <size_t kPixel>
void copy_row(const NearestState& s, const std::byte* from, std::byte* to) {
  const size_t pixel = kPixel == 0 ? s.pixel : kPixel;
  for (const int64_t column : s.columns) {
    std::memcpy(to, from + column, pixel);
    to += pixel;
  }
}
void copy_pixels(const KernelRun& run, const NearestState& s, const std::byte* x, std::byte* y) {
  const auto row_bytes = static_cast<int64_t>(s.columns.size() * s.pixel);
  using Copy = void(const NearestState&, const std::byte*, std::byte*);
  Copy* const copy = !s.places.empty() ? pick_places
                     : s.pixel == 64   ? copy_row<64>
                     : s.pixel == 8    ? copy_row<8>
                     : s.pixel == 4    ? copy_row<4>
                     : s.pixel == 2    ? copy_row<2>
                     : s.pixel == 1    ? copy_row<1>
                                       : copy_row<0>;
  run.parallel_for(static_cast<int64_t>(s.rows.size()), std::max<int64_t>(1, (1 << 16) / row_bytes),
                   [&](int64_t begin, int64_t end) {
                     if (s.picks)
                       return pick_bytes(*s.picks, x, s.rows.data() + begin, end - begin,
                                         y + begin * row_bytes);
                     for (int64_t r = begin; r < end; ++r) {
                       const int64_t source = s.rows[static_cast<size_t>(r)];
                       std::byte* to = y + r * row_bytes;
                       if (r > begin && s.rows[static_cast<size_t>(r) - 1] == source)
                         std::memcpy(to, to - row_bytes, static_cast<size_t>(row_bytes));
                       else
                         copy(s, x + source, to);
                     }
                   });
}

Status run_nearest(KernelRun& run) {
  const auto& s = run.state<NearestState>();
  const Tensor& x = run.input(0);
  TRY(Tensor * y, run.output(0, x.dtype(), s.output));
  if (s.pixel != 0) {
    copy_pixels(run, s, x.data<std::byte>(), y->data<std::byte>());
    return ok();
  }
  const uint32_t* from = x.data<uint32_t>();
  uint32_t* to = y->data<uint32_t>();
  const int64_t width = x.dims().back();
  run.parallel_for(static_cast<int64_t>(s.rows.size()), std::max<int64_t>(1, (1 << 14) / width),
                   [&](int64_t begin, int64_t end) {
                     for (int64_t r = begin; r < end; ++r) {
                       const int64_t source = s.rows[static_cast<size_t>(r)];
                       uint32_t* row = to + r * 2 * width;
                       const bool pair =
                           r + 1 < end && s.rows[static_cast<size_t>(r) + 1] == source;
                       double_row(from + source, width, row, pair ? row + 2 * width : nullptr);
                       if (pair) ++r;
                     }
                   });
  return ok();
}

}  // namespace

KERNEL(resize_nearest) = {
    .name = "resize",
    .op = "Resize",
    .supports = supports_nearest,
    .prepare = prepare_nearest,
    .run = run_nearest,
    .values = 0b1110,
    .priority = -1,
};

}  // namespace tombolo
