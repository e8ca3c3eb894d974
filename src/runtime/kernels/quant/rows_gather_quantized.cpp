// GatherBlockQuantized of com.microsoft: the pieces that indices choose, and only those, become
// floats, row by row.

#include <algorithm>
#include <string>
#include <vector>

#include "ops/kernels/arguments.h"
#include "runtime/kernels/blocks.h"
#include "runtime/kernels/isa.h"
#include "runtime/kernels/kernel.h"
#include "runtime/kernels/quant/unpack_codes.h"

namespace tombolo {
namespace {

struct GatherQuantizedState final : KernelState {
  int bits = 4;
  bool is_signed = false;
  float middle = 0;                          ///< the zero point where none is given
  int64_t axis = 0, length = 1, inner = 1;   ///< of the gather
  int64_t depth = 1, behind = 1, block = 1;  ///< the quantised axis, and elements behind it
  int64_t blocks = 1;                        ///< along it
  int64_t columns = 1, zero_columns = 1;     ///< the last axis of the scales; zero points lie so
  Dims output;
};

bool plan_gather_quantized(const KernelQuery& q, GatherQuantizedState& s) {
  if (active_isa() == Isa::kScalar || q.inputs.size() < 3 || !is_f32_or_short(q.dtype(2)) ||
      (q.dtype(1) != DType::kInt64 && q.dtype(1) != DType::kInt32))
    return false;
  const auto& attributes = q.attributes;
  const DType dtype = q.dtype(0);
  const bool packed = dtype == DType::kUInt8;
  if (!packed && dtype != DType::kInt4 && dtype != DType::kUInt4) return false;
  const int64_t bits = packed ? attributes.get_int("bits", 4) : 4;
  if (bits != 2 && bits != 4 && bits != 8) return false;
  s.bits = static_cast<int>(bits);
  s.is_signed = dtype == DType::kInt4;
  s.middle = packed ? static_cast<float>(1 << (bits - 1)) : 0;
  Dims dims(q.dims(0));
  const auto rank = static_cast<int64_t>(dims.size());
  const int64_t each = packed ? 8 / bits : 1;
  if (rank < 1 || element_count(q.dims(1)) < 1) return false;
  dims[static_cast<size_t>(rank - 1)] *= each;
  int64_t quantized = attributes.get_int("quantize_axis", 1);
  s.axis = attributes.get_int("gather_axis", 0);
  if (quantized < 0) quantized += rank;
  if (s.axis < 0) s.axis += rank;
  s.block = attributes.get_int("block_size", 128);
  if (quantized < 0 || quantized >= rank || s.axis < 0 || s.axis >= rank || s.block < 1 ||
      s.block > int64_t{1} << 31 || element_count(dims) < 1)
    return false;
  const auto at = static_cast<size_t>(s.axis), deep = static_cast<size_t>(quantized);
  s.length = dims[at];
  s.inner = element_count(dims.span().subspan(at + 1));
  s.depth = dims[deep];
  s.behind = element_count(dims.span().subspan(deep + 1));
  s.blocks = (s.depth + s.block - 1) / s.block;
  Dims scales = dims;
  scales[deep] = s.blocks;
  if (Dims(q.dims(2)) != scales) return false;
  s.columns = scales[static_cast<size_t>(rank - 1)];
  s.zero_columns = (s.columns + each - 1) / each * each;
  if (q.has_input(3)) {
    scales[static_cast<size_t>(rank - 1)] = s.zero_columns / each;
    if (q.dtype(3) != dtype || Dims(q.dims(3)) != scales) return false;
  }
  s.output = Dims(dims.span().first(at));
  for (const int64_t dim : q.dims(1)) s.output.push_back(dim);
  for (const int64_t dim : dims.span().subspan(at + 1)) s.output.push_back(dim);
  return true;
}
bool supports_gather_quantized(const KernelQuery& q) {
  GatherQuantizedState state;
  return plan_gather_quantized(q, state);
}
Result<std::unique_ptr<KernelState>> prepare_gather_quantized(const PrepareContext& q) {
  auto state = std::make_unique<GatherQuantizedState>();
  plan_gather_quantized(q, *state);
  return state;
}

/// Scales and zero points [at, at + n) as floats.
struct Factors {
  std::vector<float> scales, zeros;

  const float* load(const GatherQuantizedState& s, const Tensor& scale, const Tensor* zero,
                    int64_t at, int64_t n) {
    scales.resize(static_cast<size_t>(n));
    zeros.assign(static_cast<size_t>(n), s.middle);
    if (zero != nullptr) {
      const CodeRow row{zero->data<uint8_t>(), 0, s.bits, s.is_signed};
      const float one = 1, none = 0;
      // Zero points lie in rows of whole bytes.
      for (int64_t i = 0; i < n;) {
        const int64_t column = (at + i) % s.columns, count = std::min(n - i, s.columns - column);
        CodeRow part = row;
        part.first = (at + i) / s.columns * s.zero_columns + column;
        unpack_blocks(part, count, count, &one, &none, zeros.data() + i);
        i += count;
      }
    }
    return load_floats(scale, at, n, scales.data());
  }
};

Status run_gather_quantized(KernelRun& run) {
  const auto& s = run.state<GatherQuantizedState>();
  const Tensor &indices = run.input(1), &scale = run.input(2);
  const Tensor* zero = run.has_input(3) ? &run.input(3) : nullptr;
  const int64_t count = indices.size();
  std::vector<int64_t> rows(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    TRY(rows[static_cast<size_t>(i)], ops::checked_index(indices.get_int64(i), s.length, s.axis));
  }
  TRY(Tensor * y, run.output(0, scale.dtype(), s.output));
  const int64_t pieces = y->size() / s.inner;
  const CodeRow codes{run.data<uint8_t>(0), 0, s.bits, s.is_signed};
  run.parallel_for(pieces, std::max<int64_t>(1, 8192 / s.inner), [&](int64_t begin, int64_t end) {
    Factors factors;
    std::vector<float> narrow(static_cast<size_t>(scale.dtype() == DType::kFloat32 ? 0 : s.inner));
    for (int64_t piece = begin; piece < end; ++piece) {
      const int64_t from =
          (piece / count * s.length + rows[static_cast<size_t>(piece % count)]) * s.inner;
      float* const to = floats_to_fill(*y, piece * s.inner, narrow.data());
      CodeRow row = codes;
      // Stretches of which the quantised axis says how long they are.
      for (int64_t i = 0; i < s.inner;) {
        const int64_t at = from + i, line = at / s.behind;
        const int64_t index = line % s.depth;
        const int64_t first = line / s.depth * s.blocks + index / s.block;
        row.first = at;
        if (s.behind == 1) {
          // To the end of the axis, but for what lies before a whole block.
          const int64_t inside = index % s.block;
          const int64_t most = std::min(s.inner - i, s.depth - index);
          const int64_t n = inside == 0 ? most : std::min(most, s.block - inside);
          const float* scales = factors.load(s, scale, zero, first, (n + s.block - 1) / s.block);
          unpack_blocks(row, n, s.block, scales, factors.zeros.data(), to + i);
          i += n;
        } else {
          const int64_t place = at % s.behind, n = std::min(s.inner - i, s.behind - place);
          const float* scales = factors.load(s, scale, zero, first * s.behind + place, n);
          unpack_blocks(row, n, 1, scales, factors.zeros.data(), to + i);
          i += n;
        }
      }
      store_floats(to, s.inner, *y, piece * s.inner);
    }
  });
  return ok();
}

}  // namespace

KERNEL(gather_block_quantized) = {
    .name = "gather_block_quantized",
    .op = "GatherBlockQuantized",
    .domain = "com.microsoft",
    .supports = supports_gather_quantized,
    .prepare = prepare_gather_quantized,
    .run = run_gather_quantized,
};

}  // namespace tombolo
