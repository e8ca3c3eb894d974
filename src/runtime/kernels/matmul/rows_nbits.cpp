// MatMulNBits with 2, 4 and 8 bits, and MatMulBnb4, of com.microsoft: weights stay at so many bits
// in memory.

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "ops/kernels/bnb4.h"
#include "runtime/kernels/blocks.h"
#include "runtime/kernels/isa.h"
#include "runtime/kernels/kernel.h"
#include "runtime/kernels/matmul/nbits.h"
#include "runtime/kernels/parallel.h"

namespace tombolo {
namespace {

struct NbitsState final : KernelState {
  NbitsShape shape = {};
  const std::byte* packed = nullptr;
  bool digits = false;  ///< packed as digits of AMX
  int64_t rows = 0;
  int bits = 4;        ///< as the model has them
  bool bytes = false;  ///< A may be rounded to bytes
  Dims output;
  /// Of weights whose k belong to blocks in any order (g_idx): which k comes where when they are
  /// sorted by block. Else empty.
  std::vector<int32_t> order;
};

/// Sorts the k of g_idx by block. False where a block has not just as many as it holds.
bool sort_by_block(const Tensor& block_of, const NbitsShape& shape, std::vector<int32_t>& order) {
  if (block_of.size() != shape.k) return false;
  std::vector<int64_t> next(static_cast<size_t>(shape.blocks()));
  for (size_t i = 0; i < next.size(); ++i) next[i] = static_cast<int64_t>(i) * shape.block;
  order.resize(static_cast<size_t>(shape.k));
  const auto* block = block_of.data<int32_t>();
  for (int64_t i = 0; i < shape.k; ++i) {
    if (block[i] < 0 || block[i] >= shape.blocks()) return false;
    int64_t& at = next[static_cast<size_t>(block[i])];
    if (at >= std::min((block[i] + 1) * shape.block, shape.k)) return false;
    order[static_cast<size_t>(at++)] = static_cast<int32_t>(i);
  }
  return true;
}

bool is_plain(const NbitsShape& shape) {
  constexpr int64_t kMost = int64_t{1} << 28;
  return shape.n >= 1 && shape.k >= 1 && shape.n <= kMost && shape.k <= kMost && shape.block >= 8 &&
         shape.block <= kMost;
}

bool plan_nbits(const KernelQuery& q, NbitsState& s) {
  if (active_isa() == Isa::kScalar || q.inputs.size() < 3 || !is_f32_or_short(q.dtype(0)))
    return false;
  const auto& attributes = q.attributes;
  const int64_t bits = attributes.get_int("bits", 4);
  s.bits = static_cast<int>(bits);
  s.shape = {.n = attributes.get_int("N", 0),
             .k = attributes.get_int("K", 0),
             .block = attributes.get_int("block_size", 0),
             .kind = nbits_kind(bits, attributes.get_int("block_size", 0))};
  const NbitsShape& shape = s.shape;
  if ((bits != 2 && bits != 4 && bits != 8) || attributes.get_int("weight_prepacked", 0) != 0 ||
      !is_plain(shape) || shape.block % 8 != 0)
    return false;
  const auto a = q.dims(0);
  if (a.empty() || a.back() != shape.k || element_count(a) < 1) return false;
  const int64_t blocks = shape.blocks();
  if (q.constant(1) == nullptr || q.constant(2) == nullptr || q.dtype(1) != DType::kUInt8 ||
      !is_f32_or_short(q.dtype(2)) ||
      element_count(q.dims(1)) != shape.n * blocks * (shape.block * bits / 8) ||
      element_count(q.dims(2)) != shape.n * blocks)
    return false;
  if (q.has_input(3) && (q.constant(3) == nullptr || q.dtype(3) != DType::kUInt8 ||
                         element_count(q.dims(3)) != shape.n * ((blocks * bits + 7) / 8)))
    return false;
  if (q.has_input(4) && (q.constant(4) == nullptr || q.dtype(4) != DType::kInt32 ||
                         !sort_by_block(*q.constant(4), shape, s.order)))
    return false;
  if (q.has_input(5) &&
      (q.dims(5).size() != 1 || q.dims(5)[0] != shape.n || q.dtype(5) != q.dtype(0)))
    return false;
  s.rows = element_count(a) / shape.k;
  s.shape.has_zeros = q.has_input(3) || shape.bits() != bits;
  s.bytes = nbits_may_round(shape, attributes.get_int("accuracy_level", 0), q.options.fast_math);
  s.output = Dims(a);
  s.output[static_cast<uint32_t>(a.size() - 1)] = shape.n;
  return true;
}

bool supports_nbits(const KernelQuery& query) {
  NbitsState state;
  return plan_nbits(query, state);
}

/// Whether all blocks of a column have one scale, and one zero point. Of 8 bits.
bool one_scale(const NbitsShape& shape, const Tensor& scales, const Tensor* zeros) {
  const auto alike = [&](const std::byte* bytes, size_t size) {  // at any address
    const size_t row = static_cast<size_t>(shape.blocks()) * size;
    for (int64_t i = 0; i < shape.n; ++i, bytes += row)
      for (size_t at = size; at < row; at += size)
        if (std::memcmp(bytes, bytes + at, size) != 0) return false;
    return true;
  };
  return alike(scales.bytes().data(), bytes_of(scales.dtype())) &&
         (zeros == nullptr || alike(zeros->bytes().data(), 1));
}

/// What run_nbits() needs for floats of 16 bits.
void reserve(const PrepareContext& context, NbitsState& s) {
  const NbitsShape& shape = s.shape;
  if (context.dtype(0) != DType::kFloat32)
    s.scratch_bytes = static_cast<size_t>(s.rows * (shape.k + shape.n) + shape.n) * 4 + 64;
  if (!s.order.empty()) s.scratch_bytes += static_cast<size_t>(s.rows * shape.k) * 4;
}

/// The codes of `weights` with their k in the order of `state`, rows as long as before.
std::vector<uint8_t> sorted_codes(const NbitsState& state, const uint8_t* codes) {
  const NbitsShape& shape = state.shape;
  const int bits = state.bits, mask = (1 << bits) - 1;
  const int64_t row_bytes = shape.blocks() * (shape.block * bits / 8);
  std::vector<uint8_t> out(static_cast<size_t>(shape.n * row_bytes));
  parallel(shape.n, std::max<int64_t>(1, 65536 / shape.k), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const uint8_t* from = codes + row * row_bytes;
      uint8_t* to = out.data() + row * row_bytes;
      for (int64_t i = 0; i < shape.k; ++i) {
        const int64_t at = int64_t{state.order[static_cast<size_t>(i)]} * bits;
        const int code = from[at / 8] >> at % 8 & mask;
        to[i * bits / 8] = static_cast<uint8_t>(to[i * bits / 8] | code << i * bits % 8);
      }
    }
  });
  return out;
}

Result<std::unique_ptr<KernelState>> prepare_nbits(const PrepareContext& context) {
  auto state = std::make_unique<NbitsState>();
  plan_nbits(context, *state);
  const NbitsShape& shape = state->shape;
  const Tensor& scales = *context.constant(2);
  const Tensor* zeros = context.constant(3);
  const int bits = state->bits;
  if (bits == 8) state->shape.one_scale = one_scale(shape, scales, zeros);
  auto pack = [&](std::byte* target) {
    const auto* codes = context.constant(1)->data<uint8_t>();
    std::vector<uint8_t> sorted;
    if (!state->order.empty()) {
      sorted = sorted_codes(*state, codes);
      codes = sorted.data();
    }
    const int64_t blocks = shape.blocks();
    std::vector<float> wide(static_cast<size_t>(scales.size()));
    std::vector<uint8_t> each;
    if (shape.has_zeros) each.assign(static_cast<size_t>(shape.n * blocks), 2);
    for (int64_t i = 0; zeros != nullptr && i < shape.n * blocks; ++i) {
      const int64_t bit = i % blocks * bits;
      const uint8_t byte = zeros->data<uint8_t>()[i / blocks * ((blocks * bits + 7) / 8) + bit / 8];
      each[static_cast<size_t>(i)] = static_cast<uint8_t>(byte >> bit % 8 & ((1 << bits) - 1));
    }
    nbits_pack(shape,
               {.codes = codes,
                .row_bytes = blocks * (shape.block * bits / 8),
                .bits = bits,
                .scales = load_floats(scales, 0, scales.size(), wide.data()),
                .zeros = each.data()},
               target);
  };
  // Scales and zero points go with the codes, and the order of the k is in their place. A decoder
  // has one form for one row and for many.
  const std::array sources{context.constant(1), &scales, zeros, context.constant(4)};
  const std::string key = "nbits/" + std::string(name_of(active_isa())) + "/" +
                          std::to_string(bits) + "/" + std::to_string(shape.block);
  state->digits = !state->bytes && !context.options.decodes && nbits_digits_fit(shape, state->rows);
  if (state->digits) {
    TRY(state->packed,
        context.packed(sources, key + "/digits", nbits_digit_bytes(shape), [&](std::byte* target) {
          std::vector<std::byte> codes(nbits_packed_bytes(shape));
          pack(codes.data());
          nbits_pack_digits(shape, codes.data(), target);
        }));
  } else {
    TRY(state->packed, context.packed(sources, key, nbits_packed_bytes(shape), pack));
  }
  reserve(context, *state);
  return state;
}

Status run_nbits(KernelRun& run) {
  const auto& s = run.state<NbitsState>();
  const Tensor& a = run.input(0);
  TRY(Tensor * y, run.output(0, a.dtype(), s.output));
  auto* scratch = reinterpret_cast<float*>(run.scratch());
  const bool narrow = a.dtype() != DType::kFloat32;
  float* result = narrow ? scratch + s.rows * s.shape.k : nullptr;
  float* wide_bias = narrow ? result + s.rows * s.shape.n : nullptr;
  const float* x = load_floats(a, 0, a.size(), scratch);
  const float* bias =
      run.has_input(5) ? load_floats(run.input(5), 0, s.shape.n, wide_bias) : nullptr;
  float* to = floats_to_fill(*y, 0, result);
  if (!s.order.empty()) {
    float* sorted = scratch + (narrow ? s.rows * (s.shape.k + s.shape.n) + s.shape.n : 0);
    run.parallel_for(
        s.rows, std::max<int64_t>(1, 16384 / s.shape.k), [&](int64_t begin, int64_t end) {
          for (int64_t row = begin; row < end; ++row)
            for (int64_t i = 0; i < s.shape.k; ++i)
              sorted[row * s.shape.k + i] = x[row * s.shape.k + s.order[static_cast<size_t>(i)]];
        });
    x = sorted;
  }
  const auto product = s.digits ? &nbits_gemm_digits : s.bytes ? &nbits_gemm_bytes : &nbits_gemm;
  product(s.shape, s.rows, x, s.packed, bias, to);
  store_floats(to, y->size(), *y, 0);
  return ok();
}

/// Codes and blocks go through the whole matrix: only where rows begin with both.
bool plan_bnb4(const KernelQuery& q, NbitsState& s) {
  if (active_isa() == Isa::kScalar || q.inputs.size() != 3 || !is_f32_or_short(q.dtype(0)))
    return false;
  const auto& attributes = q.attributes;
  s.shape = {.n = attributes.get_int("N", 0),
             .k = attributes.get_int("K", 0),
             .block = attributes.get_int("block_size", 0),
             .kind = NbitsKind::kTable};
  const NbitsShape& shape = s.shape;
  const int64_t kind = attributes.get_int("quant_type", 0);
  if (!is_plain(shape) || shape.block % 8 != 0 || shape.k % shape.block != 0 ||
      attributes.get_int("transB", 1) == 0 || (kind != 0 && kind != 1))
    return false;
  s.shape.table = kind == 0 ? ops::kFp4Values : ops::kNf4Values;
  const auto a = q.dims(0);
  if (a.empty() || a.back() != shape.k || element_count(a) < 1 || q.constant(1) == nullptr ||
      q.constant(2) == nullptr || q.dtype(1) != DType::kUInt8 || !is_f32_or_short(q.dtype(2)) ||
      element_count(q.dims(1)) != shape.n * shape.k / 2 ||
      element_count(q.dims(2)) != shape.n * shape.blocks())
    return false;
  s.rows = element_count(a) / shape.k;
  s.output = Dims(a);
  s.output[static_cast<uint32_t>(a.size() - 1)] = shape.n;
  return true;
}

bool supports_bnb4(const KernelQuery& query) {
  NbitsState state;
  return plan_bnb4(query, state);
}

Result<std::unique_ptr<KernelState>> prepare_bnb4(const PrepareContext& context) {
  auto state = std::make_unique<NbitsState>();
  plan_bnb4(context, *state);
  const NbitsShape& shape = state->shape;
  const Tensor& scales = *context.constant(2);
  const std::string key =
      "bnb4/" + std::string(name_of(active_isa())) + "/" + std::to_string(shape.block);
  TRY(state->packed,
      context.packed(std::array{context.constant(1), &scales}, key, nbits_packed_bytes(shape),
                     [&](std::byte* target) {
                       std::vector<float> wide(static_cast<size_t>(scales.size()));
                       nbits_pack(shape,
                                  {.codes = context.constant(1)->data<uint8_t>(),
                                   .row_bytes = shape.k / 2,
                                   .high_first = true,
                                   .scales = load_floats(scales, 0, scales.size(), wide.data())},
                                  target);
                     }));
  reserve(context, *state);
  return state;
}

}  // namespace

KERNEL(matmul_bnb4) = {
    .name = "matmul_bnb4",
    .op = "MatMulBnb4",
    .domain = "com.microsoft",
    .supports = supports_bnb4,
    .prepare = prepare_bnb4,
    .run = products<run_nbits>,
};
KERNEL(matmul_nbits) = {
    .name = "matmul_nbits",
    .op = "MatMulNBits",
    .domain = "com.microsoft",
    .supports = supports_nbits,
    .prepare = prepare_nbits,
    .run = products<run_nbits>,
};

}  // namespace tombolo
