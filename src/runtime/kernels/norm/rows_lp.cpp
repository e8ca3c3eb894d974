// LpNormalization of floats and doubles, with sums in double.

#include <algorithm>
#include <cmath>
#include <vector>

#include "runtime/kernels/isa.h"
#include "runtime/kernels/kernel.h"
#include "runtime/kernels/norm/lp_rows.h"
#include "runtime/kernels/norm/moments.h"
#include "runtime/kernels/tensor/turned_blocks.h"

namespace tombolo {
namespace {

struct LpState final : KernelState {
  int64_t outer = 1, length = 1, inner = 1;
  bool squares = true;
};

bool plan_lp(const KernelQuery& q, LpState& s) {
  if (active_isa() == Isa::kScalar || q.inputs.empty() || element_count(q.dims(0)) < 1 ||
      (q.dtype(0) != DType::kFloat32 && q.dtype(0) != DType::kFloat64))
    return false;
  const auto rank = static_cast<int64_t>(q.dims(0).size());
  int64_t axis = q.attributes.get_int("axis", -1);
  if (axis < 0) axis += rank;
  const int64_t p = q.attributes.get_int("p", 2);
  if (axis < 0 || axis >= rank || (p != 1 && p != 2)) return false;
  s.squares = p == 2;
  s.outer = element_count(q.dims(0).first(static_cast<size_t>(axis)));
  s.length = q.dims(0)[static_cast<size_t>(axis)];
  s.inner = element_count(q.dims(0).subspan(static_cast<size_t>(axis) + 1));
  return true;
}
bool supports_lp(const KernelQuery& q) {
  LpState state;
  return plan_lp(q, state);
}
Result<std::unique_ptr<KernelState>> prepare_lp(const PrepareContext& q) {
  auto state = std::make_unique<LpState>();
  plan_lp(q, *state);
  return state;
}

/// Wide blocks: down their columns.
template <typename T>
void lp_blocks(const KernelRun& run, const LpState& s, const T* from, T* to) {
  constexpr int64_t kColumns = 64;
  const int64_t columns = (s.inner + kColumns - 1) / kColumns;
  run.parallel_for(s.outer * columns, grain_of(s.length * kColumns),
                   [&](int64_t begin, int64_t end) {
                     for (int64_t task = begin; task < end; ++task) {
                       const int64_t column = task % columns * kColumns;
                       const int64_t at = task / columns * s.length * s.inner + column;
                       lp_columns(s.squares, from + at, s.length, s.inner,
                                  std::min(kColumns, s.inner - column), to + at);
                     }
                   });
}

/// Lines that do not lie in one piece are copied some at a time, of several blocks where they are
/// few in each.
template <typename T>
void lp_lines(const KernelRun& run, const LpState& s, const T* from, T* to) {
  constexpr int64_t kLines = 16, kTogether = 64;
  const int64_t groups = (s.inner + kLines - 1) / kLines;
  const int64_t lines = std::min(kLines, s.inner),
                together = std::max<int64_t>(1, kTogether / lines);
  run.parallel_for(s.outer * groups, grain_of(s.length * lines), [&](int64_t begin, int64_t end) {
    std::vector<T> room(static_cast<size_t>(together * lines * s.length));
    for (int64_t task = begin; task < end; task += together) {
      const int64_t some = std::min(together, end - task);
      const auto each = [&](auto&& copy) {
        int64_t count = 0;
        for (int64_t t = task; t < task + some; ++t) {
          const int64_t first = t % groups * kLines, width = std::min(kLines, s.inner - first);
          copy(t / groups * s.length * s.inner + first, width,
               reinterpret_cast<std::byte*>(room.data() + count * s.length));
          count += width;
        }
        return count;
      };
      const int64_t count = each([&](int64_t at, int64_t width, std::byte* here) {
        transpose_tile(reinterpret_cast<const std::byte*>(from + at), s.inner, here, s.length,
                       s.length, width, sizeof(T));
      });
      lp_rows(s.squares, room.data(), count, s.length, room.data());
      each([&](int64_t at, int64_t width, std::byte* here) {
        transpose_tile(here, s.length, reinterpret_cast<std::byte*>(to + at), s.inner, width,
                       s.length, sizeof(T));
      });
    }
  });
}

/// Blocks of few columns, some turned together.
template <typename T>
void lp_turned(const KernelRun& run, const LpState& s, const T* from, T* to, int64_t together) {
  const int64_t block = s.length * s.inner;
  run.parallel_for(s.outer, std::max(together, grain_of(block)), [&](int64_t begin, int64_t end) {
    work_on_turned(from + begin * block, to + begin * block, end - begin, block, s.inner, together,
                   [&](T* lines, int64_t width) {
                     lp_columns(s.squares, lines, s.length, width, width, lines);
                   });
  });
}

template <typename T>
void lp_any(const KernelRun& run, const LpState& s, const T* from, T* to) {
  if (s.inner == 1) {
    run.parallel_for(s.outer, grain_of(s.length), [&](int64_t begin, int64_t end) {
      lp_rows(s.squares, from + begin * s.length, end - begin, s.length, to + begin * s.length);
    });
    return;
  }
  if (const int64_t together = blocks_to_turn(s.outer, s.length, s.inner, sizeof(T)); together != 0)
    return lp_turned(run, s, from, to, together);
  constexpr int64_t kNarrow = 8;
  if (s.inner >= kNarrow) return lp_blocks(run, s, from, to);
  lp_lines(run, s, from, to);
}
Status run_lp(KernelRun& run) {
  const auto& s = run.state<LpState>();
  const Tensor& x = run.input(0);
  TRY(Tensor * y, run.output(0, x.dtype(), x.dims()));
  if (x.dtype() == DType::kFloat32)
    lp_any(run, s, x.data<float>(), y->data<float>());
  else
    lp_any(run, s, x.data<double>(), y->data<double>());
  return ok();
}

}  // namespace

KERNEL(lp_normalization) = {
    .name = "lp_normalization",
    .op = "LpNormalization",
    .supports = supports_lp,
    .prepare = prepare_lp,
    .run = run_lp,
    .in_place = 1,
};

}  // namespace tombolo
