// MatMulNBits (com.microsoft) with 4 bits: weights stay at 4 bits in memory.

#include <string>
#include <vector>

#include "runtime/kernels/blocks.h"
#include "runtime/kernels/isa.h"
#include "runtime/kernels/kernel.h"
#include "runtime/kernels/nbits.h"

namespace tombolo {
namespace {

struct NbitsState final : KernelState {
  NbitsShape shape = {};
  const std::byte* packed = nullptr;
  int64_t rows = 0;
  bool bytes = false;  ///< A may be rounded to bytes
  Dims output;
};

bool plan_nbits(const KernelQuery& q, NbitsState& s) {
  if (active_isa() == Isa::kScalar || q.inputs.size() < 3 || !is_f32_or_short(q.dtype(0)))
    return false;
  const auto& attributes = q.attributes;
  s.shape = {attributes.get_int("N", 0), attributes.get_int("K", 0),
             attributes.get_int("block_size", 0), false};
  const NbitsShape& shape = s.shape;
  constexpr int64_t kMost = int64_t{1} << 28;
  if (attributes.get_int("bits", 4) != 4 || attributes.get_int("weight_prepacked", 0) != 0 ||
      shape.n < 1 || shape.k < 1 || shape.n > kMost || shape.k > kMost || shape.block < 8 ||
      shape.block % 8 != 0 || shape.block > kMost)
    return false;
  const auto a = q.dims(0);
  if (a.empty() || a.back() != shape.k || element_count(a) < 1) return false;
  const int64_t blocks = shape.blocks();
  if (q.constant(1) == nullptr || q.constant(2) == nullptr || q.dtype(1) != DType::kUInt8 ||
      !is_f32_or_short(q.dtype(2)) ||
      element_count(q.dims(1)) != shape.n * blocks * shape.block / 2 ||
      element_count(q.dims(2)) != shape.n * blocks)
    return false;
  if (q.has_input(3) && (q.constant(3) == nullptr || q.dtype(3) != DType::kUInt8 ||
                         element_count(q.dims(3)) != shape.n * ((blocks + 1) / 2)))
    return false;
  if (q.has_input(4)) return false;
  if (q.has_input(5) &&
      (q.dims(5).size() != 1 || q.dims(5)[0] != shape.n || q.dtype(5) != q.dtype(0)))
    return false;
  s.rows = element_count(a) / shape.k;
  s.shape.has_zeros = q.has_input(3);
  s.bytes = attributes.get_int("accuracy_level", 0) == 4 && nbits_has_bytes();
  s.output = Dims(a);
  s.output[static_cast<uint32_t>(a.size() - 1)] = shape.n;
  return true;
}

bool supports_nbits(const KernelQuery& query) {
  NbitsState state;
  return plan_nbits(query, state);
}

Result<std::unique_ptr<KernelState>> prepare_nbits(const PrepareContext& context) {
  auto state = std::make_unique<NbitsState>();
  plan_nbits(context, *state);
  const NbitsShape& shape = state->shape;
  const Tensor& scales = *context.constant(2);
  const Tensor* zeros = context.constant(3);
  const std::string key =
      "nbits/" + std::string(name_of(active_isa())) + "/" + std::to_string(shape.block);
  // Scales and zero points go with the codes.
  TRY(state->packed,
      context.packed(std::array{context.constant(1), &scales, zeros}, key,
                     nbits_packed_bytes(shape), [&](std::byte* target) {
                       std::vector<float> wide(static_cast<size_t>(scales.size()));
                       const float* from = load_floats(scales, 0, scales.size(), wide.data());
                       nbits_pack(shape, context.constant(1)->data<uint8_t>(), from,
                                  zeros == nullptr ? nullptr : zeros->data<uint8_t>(), target);
                     }));
  if (context.dtype(0) != DType::kFloat32)
    state->scratch_bytes =
        static_cast<size_t>(state->rows * (shape.k + shape.n) + shape.n) * 4 + 64;
  return state;
}

Status run_nbits(KernelRun& run) {
  const auto& s = run.state<NbitsState>();
  const Tensor& a = run.input(0);
  TRY(Tensor * y, run.output(0, a.dtype(), s.output));
  auto* scratch = reinterpret_cast<float*>(run.scratch());
  const bool narrow = scratch != nullptr;
  float* result = narrow ? scratch + s.rows * s.shape.k : nullptr;
  float* wide_bias = narrow ? result + s.rows * s.shape.n : nullptr;
  const float* x = load_floats(a, 0, a.size(), scratch);
  const float* bias =
      run.has_input(5) ? load_floats(run.input(5), 0, s.shape.n, wide_bias) : nullptr;
  float* to = floats_to_fill(*y, 0, result);
  (s.bytes ? nbits_gemm_bytes : nbits_gemm)(s.shape, s.rows, x, s.packed, bias, to);
  store_floats(to, y->size(), *y, 0);
  return ok();
}

}  // namespace

KERNEL(matmul_nbits) = {
    .name = "matmul_nbits",
    .op = "MatMulNBits",
    .domain = "com.microsoft",
    .supports = supports_nbits,
    .prepare = prepare_nbits,
    .run = run_nbits,
};

}  // namespace tombolo
