// ArgMax and ArgMin along any axis.

#include <algorithm>
#include <vector>

#include "runtime/kernels/blocks.h"
#include "runtime/kernels/isa.h"
#include "runtime/kernels/kernel.h"
#include "runtime/kernels/reduce/extremum.h"
#include "runtime/kernels/tensor/turned_blocks.h"

namespace tombolo {
namespace {

struct ExtremumState final : KernelState {
  int64_t outer = 1, length = 1, inner = 1;
  Extremum extremum;
  Dims output;
};

bool read_extremum(const KernelQuery& q, ExtremumState& s) {
  if (active_isa() == Isa::kScalar || q.inputs.empty() ||
      !(has_extremum_places(q.dtype(0)) || is_short_float(q.dtype(0))))
    return false;
  const auto dims = q.dims(0);
  const auto rank = static_cast<int64_t>(dims.size());
  int64_t axis = q.attributes.get_int("axis", 0);
  if (axis < -rank || axis >= rank) return false;
  if (axis < 0) axis += rank;
  for (int64_t j = 0; j < rank; ++j) {
    const int64_t dim = dims[static_cast<size_t>(j)];
    (j < axis ? s.outer : j == axis ? s.length : s.inner) *= dim;
    if (j != axis)
      s.output.push_back(dim);
    else if (q.attributes.get_int("keepdims", 1) != 0)
      s.output.push_back(1);
  }
  s.extremum = {s.length, s.inner, q.node.op_type() == "ArgMax",
                q.attributes.get_int("select_last_index", 0) != 0};
  return s.length > 0 && s.length < INT32_MAX && s.outer > 0 && s.inner > 0;
}

bool supports_extremum(const KernelQuery& q) {
  ExtremumState state;
  return read_extremum(q, state);
}

Result<std::unique_ptr<KernelState>> prepare_extremum(const PrepareContext& q) {
  auto state = std::make_unique<ExtremumState>();
  read_extremum(q, *state);
  return state;
}

/// Tasks [begin, end) of 16-bit floats: some lines at a time as floats.
void short_floats(const ExtremumState& s, const Tensor& x, int64_t strip, int64_t begin,
                  int64_t end, int64_t* places) {
  constexpr int64_t kNumbers = 4096;
  Extremum extremum = s.extremum;
  if (s.inner == 1) {
    const int64_t together = std::max<int64_t>(1, kNumbers / s.length);
    std::vector<float> room(static_cast<size_t>(std::min(together, end - begin) * s.length));
    for (int64_t i = begin; i < end; i += together) {
      const int64_t lines = std::min(together, end - i);
      extremum_places(extremum, DType::kFloat32,
                      load_floats(x, i * s.length, lines * s.length, room.data()), lines,
                      places + i);
    }
    return;
  }
  const int64_t strips = (s.inner + strip - 1) / strip;
  extremum.step = strip;
  std::vector<float> room(static_cast<size_t>(s.length * strip));
  for (int64_t task = begin; task < end; ++task) {
    const int64_t outer = task / strips, column = task % strips * strip;
    const int64_t width = std::min(strip, s.inner - column);
    for (int64_t i = 0; i < s.length; ++i)
      load_floats(x, (outer * s.length + i) * s.inner + column, width, room.data() + i * strip);
    extremum_places(extremum, DType::kFloat32, room.data(), width,
                    places + outer * s.inner + column);
  }
}

/// Blocks [begin, end), some turned together.
void extremum_turned(const ExtremumState& s, const Tensor& x, int64_t together, int64_t begin,
                     int64_t end, int64_t* places) {
  const auto size = static_cast<int64_t>(bytes_of(x.dtype()));
  const int64_t block = s.length * s.inner;
  alignas(64) std::byte turned[kTurnedBytes];
  int64_t found[kMostTurnedLines];
  Extremum extremum = s.extremum;
  for (int64_t first = begin; first < end; first += together) {
    const int64_t count = std::min(together, end - first);
    turn_blocks(x.data<std::byte>() + first * block * size, count, block, size, turned);
    extremum.step = s.inner * count;
    extremum_places(extremum, x.dtype(), turned, s.inner * count, found);
    for (int64_t i = 0; i < count; ++i)
      for (int64_t column = 0; column < s.inner; ++column)
        places[(first + i) * s.inner + column] = found[column * count + i];
  }
}

Status run_extremum(KernelRun& run) {
  const auto& s = run.state<ExtremumState>();
  TRY(Tensor * y, run.output(0, DType::kInt64, s.output));
  const Tensor& given = run.input(0);
  const std::byte* x = given.data<std::byte>();
  const auto size = static_cast<int64_t>(bytes_of(given.dtype()));
  int64_t* places = y->data<int64_t>();
  const bool shorts = is_short_float(given.dtype());
  const int64_t together =
      shorts || s.inner == 1 ? 0 : blocks_to_turn(s.outer, s.length, s.inner, size);
  if (together != 0) {
    run.parallel_for(s.outer, std::max(together, (1 << 15) / (s.length * s.inner)),
                     [&](int64_t begin, int64_t end) {
                       extremum_turned(s, given, together, begin, end, places);
                     });
    return ok();
  }
  // Lines that lie side by side go on together, some at a time.
  const int64_t strip = s.inner == 1 ? 1 : 256, strips = (s.inner + strip - 1) / strip;
  run.parallel_for(
      s.outer * strips, std::max<int64_t>(1, (1 << 15) / (s.length * std::min(strip, s.inner))),
      [&](int64_t begin, int64_t end) {
        if (shorts) return short_floats(s, given, strip, begin, end, places);
        if (s.inner == 1)
          return extremum_places(s.extremum, given.dtype(), x + begin * s.length * size,
                                 end - begin, places + begin);
        for (int64_t task = begin; task < end; ++task) {
          const int64_t outer = task / strips, column = task % strips * strip;
          extremum_places(s.extremum, given.dtype(),
                          x + (outer * s.length * s.inner + column) * size,
                          std::min(strip, s.inner - column), places + outer * s.inner + column);
        }
      });
  return ok();
}

}  // namespace

KERNEL(arg_max) = {
    .name = "arg_max",
    .op = "ArgMax",
    .supports = supports_extremum,
    .prepare = prepare_extremum,
    .run = run_extremum,
};
KERNEL(arg_min) = {
    .name = "arg_min",
    .op = "ArgMin",
    .supports = supports_extremum,
    .prepare = prepare_extremum,
    .run = run_extremum,
};

}  // namespace tombolo
