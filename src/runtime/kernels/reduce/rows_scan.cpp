// CumSum along any axis.

#include <algorithm>

#include "runtime/kernels/isa.h"
#include "runtime/kernels/kernel.h"
#include "runtime/kernels/reduce/scan.h"
#include "runtime/kernels/tensor/turned_blocks.h"

namespace tombolo {
namespace {

struct ScanState final : KernelState {
  int64_t outer = 1, length = 1, inner = 1;
  bool exclusive = false, reverse = false;
};

bool plan_scan(const KernelQuery& q, ScanState& s) {
  if (active_isa() == Isa::kScalar || q.inputs.size() != 2) return false;
  const DType dtype = q.dtype(0);
  if (dtype != DType::kFloat32 && dtype != DType::kFloat64 && dtype != DType::kInt32 &&
      dtype != DType::kInt64)
    return false;
  const Tensor* given = q.constant(1);
  if (given == nullptr || given->size() != 1 || !is_integer(given->dtype())) return false;
  const auto rank = static_cast<int64_t>(q.dims(0).size());
  int64_t axis = given->get_int64(0);
  if (axis < 0) axis += rank;
  if (axis < 0 || axis >= rank || element_count(q.dims(0)) < 1) return false;
  s.outer = element_count(q.dims(0).first(static_cast<size_t>(axis)));
  s.length = q.dims(0)[static_cast<size_t>(axis)];
  s.inner = element_count(q.dims(0).subspan(static_cast<size_t>(axis) + 1));
  s.exclusive = q.attributes.get_int("exclusive", 0) != 0;
  s.reverse = q.attributes.get_int("reverse", 0) != 0;
  return true;
}
bool supports_scan(const KernelQuery& q) {
  ScanState state;
  return plan_scan(q, state);
}
Result<std::unique_ptr<KernelState>> prepare_scan(const PrepareContext& q) {
  auto state = std::make_unique<ScanState>();
  plan_scan(q, *state);
  return state;
}

template <typename T>
Status scan(KernelRun& run) {
  const auto& s = run.state<ScanState>();
  const Tensor& x = run.input(0);
  TRY(Tensor * y, run.output(0, x.dtype(), x.dims()));
  const T* from = x.data<T>();
  T* to = y->template data<T>();
  if (s.length == 1) {  // each number is its own sum, or follows none
    constexpr int64_t kGrain = 1 << 14;
    run.parallel_for(x.size(), kGrain, [&](int64_t begin, int64_t end) {
      if (s.exclusive)
        std::fill(to + begin, to + end, T{});
      else if (to != from)
        std::copy(from + begin, from + end, to + begin);
    });
    return ok();
  }
  if (s.inner == 1) {
    run.parallel_for((s.outer + 7) / 8, std::max<int64_t>(1, (1 << 12) / s.length),
                     [&](int64_t begin, int64_t end) {
                       running_rows(from + begin * 8 * s.length,
                                    std::min(end * 8, s.outer) - begin * 8, s.length, s.exclusive,
                                    s.reverse, to + begin * 8 * s.length);
                     });
    return ok();
  }
  // Neighbours that fill no vector, and fewer than two with 256 bits: AVX-512 has masks for them.
  const int64_t bytes = s.inner * static_cast<int64_t>(sizeof(T));
  const bool odd = bytes % 16 != 0 && bytes < 32 && vector_floats() < 16;
  const int64_t together = odd ? blocks_to_turn(s.outer, s.length, s.inner, sizeof(T)) : 0;
  if (together != 0) {
    const int64_t block = s.length * s.inner;
    run.parallel_for(s.outer, std::max<int64_t>(together, (1 << 14) / block),
                     [&](int64_t begin, int64_t end) {
                       work_on_turned(from + begin * block, to + begin * block, end - begin, block,
                                      s.inner, together, [&](T* lines, int64_t width) {
                                        running_sums(lines, 1, s.length, width, width, s.exclusive,
                                                     s.reverse, lines);
                                      });
                     });
    return ok();
  }
  constexpr int64_t kWidth = 1024;
  if (s.inner <= kWidth) {
    const int64_t block = s.length * s.inner;
    run.parallel_for(s.outer, std::max<int64_t>(1, (1 << 14) / block),
                     [&](int64_t begin, int64_t end) {
                       running_sums(from + begin * block, end - begin, s.length, s.inner, s.inner,
                                    s.exclusive, s.reverse, to + begin * block);
                     });
    return ok();
  }
  const int64_t strips = (s.inner + kWidth - 1) / kWidth;
  run.parallel_for(s.outer * strips, std::max<int64_t>(1, (1 << 14) / (s.length * kWidth)),
                   [&](int64_t begin, int64_t end) {
                     for (int64_t task = begin; task < end; ++task) {
                       // Backwards from block to block too.
                       const int64_t block = s.reverse ? s.outer * strips - 1 - task : task;
                       const int64_t column = block % strips * kWidth;
                       const int64_t at = block / strips * s.length * s.inner + column;
                       running_sums(from + at, 1, s.length, s.inner,
                                    std::min(kWidth, s.inner - column), s.exclusive, s.reverse,
                                    to + at);
                     }
                   });
  return ok();
}

Status run_scan(KernelRun& run) {
  switch (run.input(0).dtype()) {
    case DType::kFloat32:
      return scan<float>(run);
    case DType::kFloat64:
      return scan<double>(run);
    case DType::kInt32:
      return scan<int32_t>(run);
    default:
      return scan<int64_t>(run);
  }
}

}  // namespace

KERNEL(cum_sum) = {
    .name = "cum_sum",
    .op = "CumSum",
    .supports = supports_scan,
    .prepare = prepare_scan,
    .run = run_scan,
    .in_place = 1,
    .values = 1 << 1,
};

}  // namespace tombolo
