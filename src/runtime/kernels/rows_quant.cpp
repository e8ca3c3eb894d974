// Quantised products: MatMulInteger, QLinearMatMul. B is a constant in real models and is packed
// once; otherwise it is packed in every run.

#include <algorithm>
#include <string>
#include <vector>

#include "runtime/kernels/isa.h"
#include "runtime/kernels/kernel.h"
#include "runtime/kernels/qgemm.h"

namespace tombolo {
namespace {

struct QMatMulState final : KernelState {
  int64_t m = 1, n = 1, k = 1;
  bool a_signed = false, b_signed = false, linear = false;
  DType out_type = DType::kInt32;
  const std::byte* packed = nullptr;  ///< panels, then the sums of the columns
  size_t panel_bytes = 0;
  Dims output;
};

bool is_byte(DType dtype) { return dtype == DType::kInt8 || dtype == DType::kUInt8; }

bool one_or_n(const KernelQuery& query, size_t index, int64_t n) {
  const int64_t size = element_count(query.dims(index));
  return query.dims(index).size() <= 1 && (size == 1 || size == n);
}

/// `linear`: QLinearMatMul (a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero).
bool plan_qmatmul(const KernelQuery& q, bool linear, QMatMulState& s) {
  const size_t b = linear ? 3 : 1;
  if (active_isa() == Isa::kScalar || q.inputs.size() < (linear ? 8 : 2) || !is_byte(q.dtype(0)) ||
      !is_byte(q.dtype(b)))
    return false;
  const auto da = q.dims(0), db = q.dims(b);
  // One B for all rows of A, which is what layers are.
  if (da.size() < 2 || db.size() != 2 || da.back() != db[0]) return false;
  s.k = db[0];
  s.n = db[1];
  s.m = element_count(da.first(da.size() - 1));
  if (s.m < 1 || s.n < 1 || s.k < 1 || s.k > 1 << 16) return false;
  s.a_signed = q.dtype(0) == DType::kInt8;
  s.b_signed = q.dtype(b) == DType::kInt8;
  s.linear = linear;
  s.output = Dims(da);
  s.output[static_cast<uint32_t>(da.size() - 1)] = s.n;
  if (linear) {
    for (size_t i : {size_t{1}, size_t{4}, size_t{6}})
      if (q.dtype(i) != DType::kFloat32) return false;
    for (size_t i : {size_t{1}, size_t{2}, size_t{6}, size_t{7}})
      if (!q.has_input(i) || element_count(q.dims(i)) != 1) return false;
    if (!one_or_n(q, 4, s.n) || !one_or_n(q, 5, s.n) || !is_byte(q.dtype(7))) return false;
    if (q.dtype(2) != q.dtype(0) || q.dtype(5) != q.dtype(b)) return false;
    s.out_type = q.dtype(7);
  } else {
    if (q.has_input(2) && (element_count(q.dims(2)) != 1 || q.dtype(2) != q.dtype(0))) return false;
    if (q.has_input(3) && (!one_or_n(q, 3, s.n) || q.dtype(3) != q.dtype(b))) return false;
  }
  s.panel_bytes = q_panel_bytes(s.k, s.n);
  return true;
}

template <bool kLinear>
bool supports_qmatmul(const KernelQuery& query) {
  QMatMulState state;
  return plan_qmatmul(query, kLinear, state);
}

size_t padded_columns(const QMatMulState& s) {
  const int64_t width = q_tiles().panel;
  return static_cast<size_t>((s.n + width - 1) / width * width + 64);
}

void pack(const QMatMulState& s, const uint8_t* b, std::byte* target) {
  q_pack_panels(b, s.n, 1, s.k, s.n, !s.b_signed, true, target,
                reinterpret_cast<int32_t*>(target + s.panel_bytes));
}

template <bool kLinear>
Result<std::unique_ptr<KernelState>> prepare_qmatmul(const PrepareContext& context) {
  auto state = std::make_unique<QMatMulState>();
  QMatMulState& s = *state;
  plan_qmatmul(context, kLinear, s);
  const size_t b = kLinear ? 3 : 1;
  const size_t packed_bytes = s.panel_bytes + padded_columns(s) * sizeof(int32_t);
  s.scratch_bytes = static_cast<size_t>(s.m * q_row_bytes(s.k) + 64) +
                    static_cast<size_t>(s.m + 16) * sizeof(int32_t) +
                    3 * padded_columns(s) * sizeof(int32_t);
  if (context.constant(b) == nullptr) {
    s.scratch_bytes += packed_bytes + 64;
    return state;
  }
  TRY(s.packed, context.packed(b, std::string("qgemm_b/") + q_tiles().name, packed_bytes,
                               [&](std::byte* target) {
                                 pack(s, context.constant(b)->data<uint8_t>(), target);
                               }));
  return state;
}

int32_t byte_at(const Tensor& tensor, int64_t index) {
  return tensor.dtype() == DType::kInt8 ? tensor.data<int8_t>()[index]
                                        : tensor.data<uint8_t>()[index];
}

Status run_qmatmul(KernelRun& run) {
  const auto& s = run.state<QMatMulState>();
  TRY(Tensor * y, run.output(0, s.out_type, s.output));
  const size_t b = s.linear ? 3 : 1, a_zero_at = 2, b_zero_at = s.linear ? 5 : 3;
  std::byte* scratch = run.scratch();
  const auto take = [&](size_t bytes) {
    std::byte* at = scratch;
    scratch += (bytes + 63) / 64 * 64;
    return at;
  };
  const std::byte* packed = s.packed;
  auto* row_sums = reinterpret_cast<int32_t*>(take(static_cast<size_t>(s.m) * sizeof(int32_t)));
  auto* column_add = reinterpret_cast<int32_t*>(take(static_cast<size_t>(s.n) * sizeof(int32_t)));
  auto* zeros = reinterpret_cast<int32_t*>(take(static_cast<size_t>(s.n) * sizeof(int32_t)));
  auto* scales = reinterpret_cast<float*>(take(static_cast<size_t>(s.n) * sizeof(float)));
  const uint8_t* x = run.data<uint8_t>(0);
  const std::byte* rows = reinterpret_cast<const std::byte*>(x);
  // Unsigned bytes whose rows are whole groups are taken as they lie.
  if (s.a_signed || q_tiles().element != 1 || s.k % q_tiles().group != 0) {
    std::byte* target = take(static_cast<size_t>(s.m * q_row_bytes(s.k)));
    q_pack_rows(x, s.k, s.m, s.k, s.a_signed, false, target);
    rows = target;
  }
  if (packed == nullptr) {
    std::byte* target = take(s.panel_bytes + static_cast<size_t>(s.n + 64) * sizeof(int32_t));
    pack(s, run.data<uint8_t>(b), target);
    packed = target;
  }
  const auto* sums = reinterpret_cast<const int32_t*>(packed + s.panel_bytes);
  int32_t a_zero = s.a_signed ? 128 : 0;
  if (run.has_input(a_zero_at)) a_zero += byte_at(run.input(a_zero_at), 0);
  bool any_zero = false;
  for (int64_t j = 0; j < s.n; ++j) {
    int32_t b_zero = s.b_signed ? 0 : -128;
    if (run.has_input(b_zero_at)) {
      const Tensor& tensor = run.input(b_zero_at);
      b_zero += byte_at(tensor, tensor.size() == 1 ? 0 : j);
    }
    any_zero |= b_zero != 0;
    zeros[j] = b_zero;
    column_add[j] = static_cast<int32_t>(static_cast<uint32_t>(static_cast<int32_t>(s.k) * a_zero) *
                                             static_cast<uint32_t>(b_zero) -
                                         static_cast<uint32_t>(a_zero * sums[j]));
  }
  QFinish finish;
  finish.column_add = column_add;
  if (any_zero) {
    q_row_sums(x, s.k, s.m, s.k, s.a_signed, false, row_sums);
    finish.row_sum = row_sums;
    finish.zero = zeros;
  }
  finish.out = y->data<std::byte>();
  finish.ldo = s.n;
  if (s.linear) {
    const Tensor& b_scale = run.input(4);
    const double factor =
        static_cast<double>(run.data<float>(1)[0]) / static_cast<double>(run.data<float>(6)[0]);
    for (int64_t j = 0; j < s.n; ++j)
      scales[j] = static_cast<float>(
          factor * static_cast<double>(b_scale.data<float>()[b_scale.size() == 1 ? 0 : j]));
    finish.column_scale = scales;
    finish.kind = QFinish::Kind::kByte;
    finish.zero_point = byte_at(run.input(7), 0);
    finish.least = s.out_type == DType::kInt8 ? -128 : 0;
    finish.greatest = s.out_type == DType::kInt8 ? 127 : 255;
  }
  qgemm(s.m, s.n, s.k, rows, packed, finish);
  return ok();
}

}  // namespace

KERNEL(matmul_integer) = {
    .name = "matmul_integer",
    .op = "MatMulInteger",
    .supports = supports_qmatmul<false>,
    .prepare = prepare_qmatmul<false>,
    .run = run_qmatmul,
};
KERNEL(qlinear_matmul) = {
    .name = "qlinear_matmul",
    .op = "QLinearMatMul",
    .supports = supports_qmatmul<true>,
    .prepare = prepare_qmatmul<true>,
    .run = run_qmatmul,
};

}  // namespace tombolo
