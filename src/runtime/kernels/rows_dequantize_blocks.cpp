// DequantizeLinear of codes of 4 and 8 bits with a scale for each block of an axis, of 4 bits or to
// float16 with any scales, and of bytes with a scale for each element of the last axis.

#include <algorithm>
#include <memory>
#include <vector>

#include "runtime/kernels/blocks.h"
#include "runtime/kernels/isa.h"
#include "runtime/kernels/kernel.h"
#include "runtime/kernels/unpack_codes.h"

namespace tombolo {
namespace {

struct DequantizeState final : KernelState {
  int64_t rows = 1, n = 1;  ///< rows of n codes
  int64_t block = 1;        ///< codes of a row that share a scale; 0: each has its own
  // Scales of row r begin at ((r / length) * blocks + (r % length) / share) * step.
  int64_t length = 1, blocks = 1, share = 1, step = 1;
  int64_t all = 1;  ///< codes
  int bits = 8;
  bool is_signed = false;
  DType type = DType::kFloat32;
};

bool plan_dequantize_blocks(const KernelQuery& q, DequantizeState& s) {
  if (active_isa() == Isa::kScalar || q.inputs.size() < 2 || !is_f32_or_short(q.dtype(1)))
    return false;
  const DType type = q.dtype(0);
  s.is_signed = type == DType::kInt8 || type == DType::kInt4;
  s.bits = type == DType::kInt4 || type == DType::kUInt4 ? 4 : 8;
  if (!s.is_signed && type != DType::kUInt8 && type != DType::kUInt4) return false;
  if (q.has_input(2) && (q.dtype(2) != type || Dims(q.dims(2)) != Dims(q.dims(1)))) return false;
  s.type = q.dtype(1);
  const int64_t given = q.attributes.get_int("output_dtype", 0);
  if (given != 0 && given != static_cast<int64_t>(s.type)) return false;
  const auto dims = q.dims(0), scale = q.dims(1);
  s.all = element_count(dims);
  if (s.all < 1) return false;
  const int64_t count = element_count(scale), size = q.attributes.get_int("block_size", 0);
  if (size == 0 && (scale.empty() || (scale.size() == 1 && count == 1))) {
    // One for all, in rows of some length.
    s.n = s.block = std::min<int64_t>(s.all, 4096);
    s.rows = (s.all + s.n - 1) / s.n;
    s.step = 0;
    return true;
  }
  const auto rank = static_cast<int64_t>(dims.size());
  int64_t axis = q.attributes.get_int("axis", 1);
  if (axis < 0) axis += rank;
  if (axis < 0 || axis >= rank) return false;
  const int64_t length = dims[static_cast<size_t>(axis)];
  const int64_t outer = element_count(dims.first(static_cast<size_t>(axis)));
  const int64_t inner = element_count(dims.subspan(static_cast<size_t>(axis) + 1));
  if (size == 0) {
    if (scale.size() != 1 || count != length) return false;
    if (inner == 1) {
      s.rows = outer;
      s.n = length;
      s.block = s.step = 0;
    } else {
      s.rows = outer * length;
      s.n = s.block = inner;
      s.length = length;
      s.blocks = 0;
    }
    return true;
  }
  Dims expected(dims);
  expected[static_cast<size_t>(axis)] = (length + size - 1) / std::max<int64_t>(1, size);
  if (size < 1 || Dims(scale) != expected) return false;
  s.blocks = expected[static_cast<size_t>(axis)];
  if (inner == 1) {
    s.rows = outer;
    s.n = length;
    s.block = size;
  } else {
    s.rows = outer * length;
    s.n = s.step = inner;
    s.block = 0;
    s.length = length;
    s.share = size;
  }
  return true;
}
bool supports_dequantize_blocks(const KernelQuery& q) {
  DequantizeState state;
  if (!plan_dequantize_blocks(q, state)) return false;
  // The others have a kernel for whole rows of bytes.
  return state.bits == 4 || state.type != DType::kFloat32 || state.block == 0 ||
         q.attributes.get_int("block_size", 0) != 0;
}
Result<std::unique_ptr<KernelState>> prepare_dequantize_blocks(const PrepareContext& q) {
  auto state = std::make_unique<DequantizeState>();
  plan_dequantize_blocks(q, *state);
  return state;
}

Status run_dequantize_blocks(KernelRun& run) {
  const auto& s = run.state<DequantizeState>();
  const Tensor &x = run.input(0), &scale = run.input(1);
  TRY(Tensor * y, run.output(0, s.type, x.dims()));
  const int64_t count = scale.size();
  std::vector<float> wide(scale.dtype() == DType::kFloat32 ? 0 : static_cast<size_t>(count));
  const float* scales = load_floats(scale, 0, count, wide.data());
  std::vector<float> zeros(static_cast<size_t>(count));
  constexpr float kOne = 1, kNone = 0;
  if (run.has_input(2))
    unpack_blocks({run.data<uint8_t>(2), 0, s.bits, s.is_signed}, count, count, &kOne, &kNone,
                  zeros.data());
  const bool narrow = s.type != DType::kFloat32;
  run.parallel_for(s.rows, std::max<int64_t>(1, (1 << 14) / s.n), [&](int64_t begin, int64_t end) {
    std::vector<float> room(narrow ? static_cast<size_t>(s.n) : 0);
    for (int64_t r = begin; r < end; ++r) {
      const int64_t first = r * s.n, n = std::min(s.n, s.all - first);
      const int64_t at = (r / s.length * s.blocks + r % s.length / s.share) * s.step;
      float* to = floats_to_fill(*y, first, room.data());
      const CodeRow row{x.data<uint8_t>(), first, s.bits, s.is_signed};
      if (s.block != 0) {
        unpack_blocks(row, n, s.block, scales + at, zeros.data() + at, to);
      } else {
        unpack_blocks(row, n, n, &kOne, &kNone, to);
        const float *factor = scales + at, *zero = zeros.data() + at;
        for (int64_t i = 0; i < n; ++i) to[i] = (to[i] - zero[i]) * factor[i];
      }
      store_floats(to, n, *y, first);
    }
  });
  return ok();
}

}  // namespace

KERNEL(dequantize_blocks) = {
    .name = "dequantize_blocks",
    .op = "DequantizeLinear",
    .supports = supports_dequantize_blocks,
    .prepare = prepare_dequantize_blocks,
    .run = run_dequantize_blocks,
    .priority = 1,
};

}  // namespace tombolo
