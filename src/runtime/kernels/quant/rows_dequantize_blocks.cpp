// DequantizeLinear with a scale for each block or for each element of the last axis, to floats of
// 16 bits, and of what has fewer than 8 bits or is a float.

#include <algorithm>
#include <memory>
#include <vector>

#include "base/float_formats.h"
#include "runtime/kernels/blocks.h"
#include "runtime/kernels/isa.h"
#include "runtime/kernels/quant/scale_rows.h"
#include "runtime/kernels/quant/unpack_codes.h"

namespace tombolo {
namespace {

struct DequantizeState final : KernelState {
  ScaleRows rows;
  DType from = DType::kUInt8, to = DType::kFloat32;
  int64_t repeats = 1;  ///< of all scales and zero points, in a row of several
};

/// Of types that unpack_blocks reads.
bool is_packed(DType type) {
  return bits_of(type) <= 8 && is_integer(type) && type != DType::kBool;
}
bool is_short(DType type) { return type == DType::kInt16 || type == DType::kUInt16; }

bool plan_dequantize_blocks(const KernelQuery& q, DequantizeState& s) {
  if (active_isa() == Isa::kScalar || q.inputs.size() < 2 || !is_f32_or_short(q.dtype(1)))
    return false;
  s.from = q.dtype(0);
  const bool small_float = is_float(s.from) && bits_of(s.from) <= 8 && s.from != DType::kFloat8E8M0;
  if (!is_packed(s.from) && !is_short(s.from) && !small_float) return false;
  if (q.has_input(2) && (q.dtype(2) != s.from || Dims(q.dims(2)) != Dims(q.dims(1)))) return false;
  s.to = q.dtype(1);
  const int64_t given = q.attributes.get_int("output_dtype", 0);
  if (given != 0 && given != static_cast<int64_t>(s.to)) return false;
  const auto rows = read_scale_rows(q);
  if (!rows) return false;
  s.rows = *rows;
  s.repeats = s.rows.join_short();
  // Rows of small floats begin with a byte.
  return !small_float || s.rows.n * static_cast<int64_t>(bits_of(s.from)) % 8 == 0;
}
bool supports_dequantize_blocks(const KernelQuery& q) {
  DequantizeState s;
  if (!plan_dequantize_blocks(q, s)) return false;
  // dequantize_linear has a way for whole rows of bytes and 16 bits.
  const bool others = is_integer(s.from) && bits_of(s.from) >= 8 && s.to == DType::kFloat32;
  return !others || s.rows.block == 0 || q.attributes.get_int("block_size", 0) != 0;
}
Result<std::unique_ptr<KernelState>> prepare_dequantize_blocks(const PrepareContext& q) {
  auto state = std::make_unique<DequantizeState>();
  plan_dequantize_blocks(q, *state);
  return state;
}

/// Codes [first, first + n) as they are.
void read_codes(const Tensor& x, int64_t first, int64_t n, float* to) {
  const DType type = x.dtype();
  const auto* bytes = reinterpret_cast<const uint8_t*>(x.bytes().data());
  constexpr float kOne = 1, kNone = 0;
  if (type == DType::kInt16)
    for (int64_t i = 0; i < n; ++i) to[i] = x.data<int16_t>()[first + i];
  else if (type == DType::kUInt16)
    for (int64_t i = 0; i < n; ++i) to[i] = x.data<uint16_t>()[first + i];
  else if (is_float(type))
    decode_floats(type, bytes + first * static_cast<int64_t>(bits_of(type)) / 8,
                  static_cast<size_t>(n), to);
  else
    unpack_blocks({bytes, first, static_cast<int>(bits_of(type)), is_signed_integer(type)}, n, n,
                  &kOne, &kNone, to);
}

Status run_dequantize_blocks(KernelRun& run) {
  const auto& state = run.state<DequantizeState>();
  const ScaleRows& s = state.rows;
  const Tensor &x = run.input(0), &scale = run.input(1);
  TRY(Tensor * y, run.output(0, state.to, x.dims()));
  const int64_t count = scale.size(), all = count * state.repeats;
  const bool same = state.repeats == 1 && scale.dtype() == DType::kFloat32;
  std::vector<float> wide(same ? 0 : static_cast<size_t>(all));
  const float* scales = load_floats(scale, 0, count, wide.data());
  std::vector<float> zeros(static_cast<size_t>(all));
  if (run.has_input(2)) read_codes(run.input(2), 0, count, zeros.data());
  if (state.repeats > 1) {
    if (scales != wide.data()) std::copy_n(scales, count, wide.data());
    for (int64_t i = count; i < all; ++i) {
      wide[static_cast<size_t>(i)] = wide[static_cast<size_t>(i - count)];
      zeros[static_cast<size_t>(i)] = zeros[static_cast<size_t>(i - count)];
    }
    scales = wide.data();
  }
  const bool narrow = state.to != DType::kFloat32;
  run.parallel_for(s.rows, std::max<int64_t>(1, (1 << 14) / s.n), [&](int64_t begin, int64_t end) {
    std::vector<float> room(narrow ? static_cast<size_t>(s.n) : 0);
    for (int64_t r = begin; r < end; ++r) {
      const int64_t first = r * s.n, n = s.elements_of(r), at = s.scales_of(r);
      float* to = floats_to_fill(*y, first, room.data());
      const float *factor = scales + at, *zero = zeros.data() + at;
      if (s.block != 0 && is_packed(state.from)) {
        unpack_blocks({x.data<uint8_t>(), first, static_cast<int>(bits_of(state.from)),
                       is_signed_integer(state.from)},
                      n, s.block, factor, zero, to);
      } else {
        read_codes(x, first, n, to);
        if (s.block == 0)
          for (int64_t i = 0; i < n; ++i) to[i] = (to[i] - zero[i]) * factor[i];
        else
          for (int64_t b = 0; b < n; b += s.block, ++factor, ++zero)
            for (int64_t i = b; i < std::min(n, b + s.block); ++i)
              to[i] = (to[i] - *zero) * *factor;
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
