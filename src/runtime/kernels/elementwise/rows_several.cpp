// Max, Min, Sum and Mean of several inputs with broadcasting: two at first, then each other one, a
// block at a time that stays in the first cache.

#include <algorithm>
#include <cstring>
#include <vector>

#include "runtime/kernels/blocks.h"
#include "runtime/kernels/broadcast.h"
#include "runtime/kernels/elementwise/binary.h"
#include "runtime/kernels/elementwise/spread_rows.h"
#include "runtime/kernels/isa.h"
#include "runtime/kernels/kernel.h"

namespace tombolo {
namespace {

constexpr int64_t kSeveralBlock = kBlockFloats;
constexpr int64_t kSeveralRoom = kSpreadBefore + kSeveralBlock + kSpreadBehind;

/// One of the inputs, as the output meets it.
struct OneOfSeveral {
  BroadcastLoops<2> loops;  ///< the output, and this input
  bool dense = false;       ///< of the output's shape
  bool single = false;      ///< one number for all
  bool short_rows = false;  ///< that cost more to find than to compute: written out for a block
};

struct SeveralState final : KernelState {
  std::vector<OneOfSeveral> inputs;
  Dims output;
  int64_t count = 0;
  BinaryFn* fn = nullptr;
  BinaryFn* scale = nullptr;  ///< of Mean
};

Binary several_op(const KernelQuery& q) {
  const std::string_view op = q.node.op_type();
  return op == "Max" ? Binary::kMax : op == "Min" ? Binary::kMin : Binary::kAdd;
}

bool plan_several(const KernelQuery& q, SeveralState& s) {
  if (active_isa() == Isa::kScalar || q.inputs.size() < 2 || q.opset < 8) return false;
  const DType dtype = q.dtype(0), computed = is_short_float(dtype) ? DType::kFloat32 : dtype;
  const bool is_mean = q.node.op_type() == "Mean";
  if (!is_f32_or_short(dtype) && dtype != DType::kFloat64 && (is_mean || !is_integer(dtype)))
    return false;
  s.fn = binary_fn(several_op(q), computed);
  if (s.fn == nullptr) return false;
  if (is_mean) s.scale = binary_fn(Binary::kMul, computed);
  for (size_t i = 0; i < q.inputs.size(); ++i) {
    if (q.dtype(i) != dtype) return false;
    const auto both = BroadcastLoops<2>::of({s.output, q.dims(i)});
    if (!both) return false;
    s.output = both->output;
    s.count = both->count;
  }
  for (const InputInfo& input : q.inputs) {
    const auto loops = BroadcastLoops<2>::of({s.output, input.dims});
    if (!loops) return false;
    s.inputs.push_back({.loops = *loops,
                        .dense = input.size() == s.count,
                        .single = input.size() == 1,
                        .short_rows = loops->axes > 1 && loops->length[0] <= kShortRow});
  }
  return true;
}
bool supports_several(const KernelQuery& q) {
  SeveralState state;
  return plan_several(q, state);
}
Result<std::unique_ptr<KernelState>> prepare_several(const PrepareContext& q) {
  auto state = std::make_unique<SeveralState>();
  plan_several(q, *state);
  return state;
}

/// Inputs of elements T, computed as numbers C: the same, or floats where T are halves.
template <typename T, typename C>
class SeveralBlocks {
 public:
  SeveralBlocks(const KernelRun& run, const SeveralState& s, Tensor& y)
      : run_(run), s_(s), y_(y), held_(s.inputs.size(), -1), spread_(s.inputs.size() * kRoom) {}

  void compute(int64_t begin, int64_t end) {
    // Every block begins at the same place of a row, so that what repeats is written once.
    int64_t block = kSeveralBlock;
    for (const OneOfSeveral& input : s_.inputs)
      if (input.short_rows && !input.dense) {
        const int64_t row = input.loops.length[0];
        const int64_t whole = block / row * row;
        if (whole > kSeveralBlock / 2) block = whole;
      }
    for (int64_t at = begin; at < end; at += block) one(at, std::min(block, end - at));
  }

 private:
  static constexpr bool kHalves = !std::is_same_v<T, C>;
  static constexpr size_t kRoom = static_cast<size_t>(kSeveralRoom);

  const T* source(size_t i) const { return run_.data<T>(i); }
  T* room(size_t i) { return spread_.data() + i * kRoom + kSpreadBefore; }

  /// Elements [at, at + n) of input i, as broadcast.
  const T* written_out(size_t i, int64_t at, int64_t n) {
    const OneOfSeveral& input = s_.inputs[i];
    if (input.dense) return source(i) + at;
    if (input.short_rows) return spread_rows(input.loops, 1, source(i), at, n, room(i), held_[i]);
    T* to = room(i);
    if (input.single && held_[i] == 0) return to;
    held_[i] = 0;
    if (input.single) {
      std::fill_n(to, kSeveralBlock, *source(i));
      return to;
    }
    input.loops.for_runs(at, at + n, [&](int64_t from, const int64_t* offset, int64_t count) {
      const T* x = source(i) + offset[1];
      if (input.loops.step[0][1] == 0)
        std::fill_n(to + (from - at), count, *x);
      else
        std::memcpy(to + (from - at), x, static_cast<size_t>(count) * sizeof(T));
    });
    return to;
  }
  const C* as_computed(const T* x, int64_t n, C* room) const {
    if constexpr (!kHalves) {
      return x;
    } else {
      widen_short(y_.dtype(), x, room, n);
      return room;
    }
  }

  /// The output is written last: it may lie where an input does.
  void one(int64_t at, int64_t n) {
    const size_t count = s_.inputs.size();
    alignas(64) C sum[kSeveralBlock];
    alignas(64) C wide[kHalves ? kSeveralBlock : 1];
    C* const last = kHalves ? sum : reinterpret_cast<C*>(y_.data<T>() + at);
    const C* so_far = as_computed(written_out(0, at, n), n, sum);
    for (size_t i = 1; i < count; ++i) {
      C* const to = i + 1 == count && s_.scale == nullptr ? last : sum;
      const OneOfSeveral& input = s_.inputs[i];
      if (kHalves || input.dense || input.short_rows) {
        s_.fn(so_far, false, as_computed(written_out(i, at, n), n, wide), false, to, n);
      } else {
        const C* x = reinterpret_cast<const C*>(source(i));
        input.loops.for_runs(at, at + n, [&](int64_t from, const int64_t* offset, int64_t some) {
          s_.fn(so_far + (from - at), false, x + offset[1], input.loops.step[0][1] == 0,
                to + (from - at), some);
        });
      }
      so_far = to;
    }
    if (s_.scale != nullptr) {
      const C factor = static_cast<C>(1 / static_cast<double>(count));
      s_.scale(so_far, false, &factor, true, last, n);
    }
    if constexpr (kHalves) store_floats(sum, n, y_, at);
  }

  const KernelRun& run_;
  const SeveralState& s_;
  Tensor& y_;
  std::vector<int64_t> held_;
  std::vector<T> spread_;
};

template <typename T, typename C = T>
void run_blocks_of(const KernelRun& run, const SeveralState& s, Tensor& y) {
  const int64_t grain = std::max<int64_t>(kSeveralBlock, (1 << 15) / std::ssize(s.inputs));
  run.parallel_for(s.count, grain, [&](int64_t begin, int64_t end) {
    SeveralBlocks<T, C>(run, s, y).compute(begin, end);
  });
}

Status run_several(KernelRun& run) {
  const auto& s = run.state<SeveralState>();
  const DType dtype = run.input(0).dtype();
  TRY(Tensor * y, run.output(0, dtype, s.output));
  if (is_short_float(dtype)) {
    run_blocks_of<uint16_t, float>(run, s, *y);
    return ok();
  }
  if (dtype == DType::kFloat32) {
    run_blocks_of<float>(run, s, *y);
    return ok();
  }
  if (dtype == DType::kFloat64) {
    run_blocks_of<double>(run, s, *y);
    return ok();
  }
  switch (bytes_of(dtype)) {
    case 1:
      run_blocks_of<uint8_t>(run, s, *y);
      break;
    case 2:
      run_blocks_of<int16_t>(run, s, *y);
      break;
    case 4:
      run_blocks_of<int32_t>(run, s, *y);
      break;
    default:
      run_blocks_of<int64_t>(run, s, *y);
  }
  return ok();
}

}  // namespace

// Those of two inputs have rows of their own, which go first.
KERNEL(max_several) = {
    .name = "max",
    .op = "Max",
    .supports = supports_several,
    .prepare = prepare_several,
    .run = run_several,
    .in_place = 0xFFFFFFFFu,
    .priority = -1,
};
KERNEL(min_several) = {
    .name = "min",
    .op = "Min",
    .supports = supports_several,
    .prepare = prepare_several,
    .run = run_several,
    .in_place = 0xFFFFFFFFu,
    .priority = -1,
};
KERNEL(sum_several) = {
    .name = "sum",
    .op = "Sum",
    .supports = supports_several,
    .prepare = prepare_several,
    .run = run_several,
    .in_place = 0xFFFFFFFFu,
    .priority = -1,
};
KERNEL(mean_several) = {
    .name = "mean",
    .op = "Mean",
    .supports = supports_several,
    .prepare = prepare_several,
    .run = run_several,
    .in_place = 0xFFFFFFFFu,
};

}  // namespace tombolo
