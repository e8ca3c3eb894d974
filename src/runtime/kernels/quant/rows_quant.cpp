// Quantised products: MatMulInteger, QLinearMatMul; QGemm and MatMulIntegerToFloat of
// com.microsoft. B is a constant in real models and is packed once; otherwise it is packed in every
// run.

#include <algorithm>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "runtime/kernels/broadcast.h"
#include "runtime/kernels/isa.h"
#include "runtime/kernels/kernel.h"
#include "runtime/kernels/matmul/gemm.h"
#include "runtime/kernels/quant/qgemm.h"

namespace tombolo {
namespace {

constexpr size_t kNone = SIZE_MAX;

/// Where an operator has its inputs.
struct Places {
  size_t a, a_scale, a_zero, b, b_scale, b_zero, bias, y_scale, y_zero;
  bool float_bias;
};
constexpr Places kInteger = {0, kNone, 2, 1, kNone, 3, kNone, kNone, kNone, false};
constexpr Places kLinear = {0, 1, 2, 3, 4, 5, kNone, 6, 7, false};
constexpr Places kGemm = {0, 1, 2, 3, 4, 5, 6, 7, 8, false};
constexpr Places kToFloat = {0, 2, 4, 1, 3, 5, 6, kNone, kNone, true};

/// What each column of the result takes, in room for n numbers each.
struct Columns {
  int32_t* add = nullptr;
  int32_t* zeros = nullptr;  ///< those of B, where `any_zero`
  float* scales = nullptr;   ///< where `own_scales`
  float scale = 1;
  bool any_zero = false, own_scales = false;
  bool below_one = false;  ///< QFinish's, of constant ones
};

struct QMatMulState final : KernelState {
  int64_t m = 1, n = 1, k = 1;
  bool a_signed = false, b_signed = false, trans_b = false, copy_a = false;
  bool few_rows = false;  ///< of A, and B comes with the run
  DType out_type = DType::kInt32;
  const std::byte* packed = nullptr;  ///< panels, then the sums of the columns
  const QTiles* tiles = nullptr;
  size_t panel_bytes = 0;
  QProduct product;
  Dims output;
  // Of products with a B each: where they are in A and B, in matrices; else empty.
  std::vector<int64_t> a_at, b_at;
  size_t product_bytes = 0;  ///< scratch of one of them
  /// Where all that they depend on is constant: of one row they take longer than its product.
  std::optional<Columns> columns;
  std::vector<int32_t> column_numbers;
  std::vector<float> column_scales;

  const int32_t* sums_of(const std::byte* panels) const {
    return reinterpret_cast<const int32_t*>(panels + panel_bytes);
  }
  bool flips() const { return a_signed && !product.a_signed; }
};

bool one_or_n(const KernelQuery& query, size_t index, int64_t n) {
  const int64_t size = element_count(query.dims(index));
  return query.dims(index).size() <= 1 && (size == 1 || size == n);
}
bool one_float(const KernelQuery& q, size_t index) {
  return q.has_input(index) && q.dtype(index) == DType::kFloat32 && q.inputs[index].size() == 1;
}

bool plan_qmatmul(const KernelQuery& q, const Places& at, QMatMulState& s) {
  if (active_isa() == Isa::kScalar || !q.has_input(at.a) || !q.has_input(at.b) ||
      !is_byte(q.dtype(at.a)) || !is_byte(q.dtype(at.b)))
    return false;
  const auto da = q.dims(at.a), db = q.dims(at.b);
  if (da.size() < 2 || db.size() < 2 || q.attributes.get_int("transA", 0) != 0 ||
      q.attributes.get_float("alpha", 1) != 1)
    return false;
  s.trans_b = q.attributes.get_int("transB", 0) != 0;
  s.k = db[db.size() - (s.trans_b ? 1 : 2)];
  s.n = db[db.size() - (s.trans_b ? 2 : 1)];
  // One B for all rows of A, which is what layers are; or one for each matrix of A.
  const bool one_b = element_count(db.first(db.size() - 2)) == 1 && db.size() <= da.size();
  s.m = one_b ? element_count(da.first(da.size() - 1)) : da[da.size() - 2];
  if (da.back() != s.k || s.m < 1 || s.n < 1 || s.k < 1 || s.k > 1 << 16) return false;
  s.a_signed = q.dtype(at.a) == DType::kInt8;
  s.b_signed = q.dtype(at.b) == DType::kInt8;
  s.output = Dims(da);
  if (!one_b) {
    const auto batches = BroadcastLoops<2>::of({da.first(da.size() - 2), db.first(db.size() - 2)});
    if (!batches || batches->count < 1) return false;
    batches->for_runs(0, batches->count, [&](int64_t, const int64_t* offset, int64_t n) {
      for (int64_t i = 0; i < n; ++i) {
        s.a_at.push_back(offset[0] + i * batches->step[0][0]);
        s.b_at.push_back(offset[1] + i * batches->step[0][1]);
      }
    });
    s.output = batches->output;
    s.output.push_back(s.m);
    s.output.push_back(s.n);
  }
  s.output[s.output.size() - 1] = s.n;
  if (q.has_input(at.a_zero) &&
      (q.inputs[at.a_zero].size() != 1 || q.dtype(at.a_zero) != q.dtype(at.a)))
    return false;
  if (q.has_input(at.b_zero) &&
      (!one_or_n(q, at.b_zero, s.n) || q.dtype(at.b_zero) != q.dtype(at.b)))
    return false;
  if (at.a_scale != kNone) {
    if (!one_float(q, at.a_scale) || !q.has_input(at.b_scale) ||
        q.dtype(at.b_scale) != DType::kFloat32 || !one_or_n(q, at.b_scale, s.n))
      return false;
    s.out_type = DType::kFloat32;
  }
  if (at.bias != kNone && q.has_input(at.bias)) {
    const auto bias = q.dims(at.bias);
    if (q.dtype(at.bias) != (at.float_bias ? DType::kFloat32 : DType::kInt32) ||
        element_count(bias) != s.n || (bias.size() != 1 && !(bias.size() == 2 && bias[0] == 1)))
      return false;
  }
  if (at.y_scale != kNone && q.has_input(at.y_scale)) {
    if (!one_float(q, at.y_scale) || !q.has_input(at.y_zero) || !is_byte(q.dtype(at.y_zero)) ||
        q.inputs[at.y_zero].size() != 1)
      return false;
    s.out_type = q.dtype(at.y_zero);
  }
  return true;
}

template <const Places& kAt>
bool supports_qmatmul(const KernelQuery& query) {
  QMatMulState state;
  return plan_qmatmul(query, kAt, state);
}

size_t padded_columns(const QMatMulState& s) {
  const int64_t width = s.tiles->panel;
  return static_cast<size_t>((s.n + width - 1) / width * width + 64);
}

void pack(const QMatMulState& s, const uint8_t* b, std::byte* target) {
  q_pack_panels(b, s.trans_b ? 1 : s.n, s.trans_b ? s.k : 1, s.k, s.n, !s.b_signed, true, target,
                reinterpret_cast<int32_t*>(target + s.panel_bytes), *s.tiles);
}

int32_t byte_at(const Tensor& tensor, int64_t index) {
  return tensor.dtype() == DType::kInt8 ? tensor.data<int8_t>()[index]
                                        : tensor.data<uint8_t>()[index];
}

/// `given(place)`: the tensor there, or null.
template <const Places& kAt, typename Given>
void fill_columns(const QMatMulState& s, const int32_t* sums, Columns& c, Given&& given) {
  int32_t a_zero = s.flips() ? 128 : 0;
  if (const Tensor* zero = given(kAt.a_zero)) a_zero += byte_at(*zero, 0);
  const Tensor* const b_zeros = given(kAt.b_zero);
  const int32_t lower = s.b_signed ? 0 : -128;
  const int32_t first_zero = lower + (b_zeros != nullptr ? byte_at(*b_zeros, 0) : 0);
  c.any_zero = first_zero != 0;
  if (b_zeros != nullptr && b_zeros->size() > 1)
    for (int64_t j = 0; j < s.n; ++j)
      c.any_zero |= (c.zeros[j] = lower + byte_at(*b_zeros, j)) != 0;
  else if (c.any_zero)
    std::fill_n(c.zeros, s.n, first_zero);
  // In loops that vectors do: of one row these take as long as many a product.
  const auto origin = static_cast<uint32_t>(a_zero), all = static_cast<uint32_t>(s.k) * origin;
  for (int64_t j = 0; j < s.n; ++j)
    c.add[j] = static_cast<int32_t>(0 - origin * static_cast<uint32_t>(sums[j]));
  for (int64_t j = 0; j < s.n && c.any_zero; ++j)
    c.add[j] = static_cast<int32_t>(static_cast<uint32_t>(c.add[j]) +
                                    all * static_cast<uint32_t>(c.zeros[j]));
  if constexpr (kAt.bias != kNone && !kAt.float_bias)
    if (const Tensor* const bias = given(kAt.bias)) {
      const int32_t* const more = bias->data<int32_t>();
      for (int64_t j = 0; j < s.n; ++j)
        c.add[j] =
            static_cast<int32_t>(static_cast<uint32_t>(c.add[j]) + static_cast<uint32_t>(more[j]));
    }
  if constexpr (kAt.a_scale != kNone) {
    const Tensor& b_scale = *given(kAt.b_scale);
    double factor = static_cast<double>(given(kAt.a_scale)->template data<float>()[0]);
    if (s.out_type != DType::kFloat32)
      factor /= static_cast<double>(given(kAt.y_scale)->template data<float>()[0]);
    const auto scale_of = [&](int64_t j) {
      return static_cast<float>(factor * static_cast<double>(b_scale.data<float>()[j]));
    };
    c.own_scales = b_scale.size() != 1;
    if (!c.own_scales) c.scale = scale_of(0);
    for (int64_t j = 0; j < s.n && c.own_scales; ++j) c.scales[j] = scale_of(j);
  }
}

template <const Places& kAt>
Result<std::unique_ptr<KernelState>> prepare_qmatmul(const PrepareContext& context) {
  auto state = std::make_unique<QMatMulState>();
  QMatMulState& s = *state;
  plan_qmatmul(context, kAt, s);
  const Tensor* b = s.b_at.empty() ? context.constant(kAt.b) : nullptr;
  s.tiles = b == nullptr ? &q_tiles()
                         : &q_constant_tiles(b->data<uint8_t>(), s.trans_b ? 1 : s.n,
                                             s.trans_b ? s.k : 1, s.k, s.n, !s.b_signed, s.m);
  s.panel_bytes = q_panel_bytes(s.k, s.n, *s.tiles);
  // Unsigned bytes whose rows are whole groups are taken as they lie; AMX takes signed ones, too.
  const bool amx = q_use_amx(s.m);
  s.copy_a = !amx && (s.a_signed || s.tiles->element != 1 || s.k % s.tiles->group != 0);
  s.product = q_plan_rows(s.m, s.n, s.k, s.copy_a ? q_row_bytes(s.k, *s.tiles) : s.k,
                          s.a_signed && amx, *s.tiles);
  s.product.streams = !context.options.stays_near(1);
  const size_t packed_bytes = s.panel_bytes + padded_columns(s) * sizeof(int32_t);
  s.few_rows = b == nullptr && !s.trans_b && q_few_rows_pays(s.m);
  s.scratch_bytes = static_cast<size_t>(s.m + 16) * sizeof(int32_t) +
                    3 * padded_columns(s) * sizeof(int32_t) + 512;
  if (s.copy_a && !s.few_rows)
    s.scratch_bytes += static_cast<size_t>(s.m * q_row_bytes(s.k, *s.tiles) + 64);
  if (b == nullptr) {
    s.scratch_bytes += s.few_rows ? static_cast<size_t>((s.m + 1) * s.n) * sizeof(int32_t) + 128
                                  : packed_bytes + 64;
    s.product_bytes = s.scratch_bytes;
    if (!s.b_at.empty()) s.scratch_bytes = 0;  // each thread has its own
    return state;
  }
  TRY(s.packed, context.packed(
                    kAt.b, std::string("qgemm_b/") + s.tiles->name + (s.trans_b ? "/t" : "/n"),
                    packed_bytes, [&](std::byte* target) { pack(s, b->data<uint8_t>(), target); }));
  constexpr size_t kGiven[] = {kAt.a_scale, kAt.a_zero,  kAt.b_scale, kAt.b_zero,
                               kAt.bias,    kAt.y_scale, kAt.y_zero};
  const auto changes = [&](size_t i) {
    return i != kNone && context.has_input(i) && context.constant(i) == nullptr;
  };
  if (std::any_of(std::begin(kGiven), std::end(kGiven), changes)) return state;
  const auto n = static_cast<size_t>(s.n);
  s.column_numbers.resize(2 * n);
  s.column_scales.resize(n);
  Columns columns{s.column_numbers.data(), s.column_numbers.data() + n, s.column_scales.data()};
  fill_columns<kAt>(s, s.sums_of(s.packed), columns, [&](size_t i) {
    return i != kNone && context.has_input(i) ? context.constant(i) : nullptr;
  });
  columns.below_one = columns.own_scales && q_below_one(columns.scales, s.n);
  s.columns = columns;
  return state;
}

/// One product: x times b, which is packed already where the state has it so.
template <const Places& kAt>
void multiply(KernelRun& run, const uint8_t* x, const uint8_t* b, std::byte* out,
              std::byte* scratch) {
  const auto& s = run.state<QMatMulState>();
  const auto take = [&](size_t bytes) {
    std::byte* at = scratch;
    scratch += (bytes + 63) / 64 * 64;
    return at;
  };
  const std::byte* packed = s.packed;
  auto* row_sums = reinterpret_cast<int32_t*>(take(static_cast<size_t>(s.m) * sizeof(int32_t)));
  const std::byte* rows = reinterpret_cast<const std::byte*>(x);
  const bool flip = s.flips();
  const int32_t* column_sums = nullptr;
  int32_t* sums = nullptr;
  if (s.few_rows) {
    auto* const down = reinterpret_cast<int32_t*>(take(static_cast<size_t>(s.n) * sizeof(int32_t)));
    sums = reinterpret_cast<int32_t*>(take(static_cast<size_t>(s.m * s.n) * sizeof(int32_t)));
    q_few_rows({s.m, s.n, s.k, x, static_cast<uint8_t>(flip ? 0x80 : 0),
                static_cast<uint8_t>(s.b_signed ? 0 : 0x80), s.a_signed && !flip, b, sums, down});
    column_sums = down;
  } else {
    if (s.copy_a) {
      std::byte* target = take(static_cast<size_t>(s.m * q_row_bytes(s.k, *s.tiles)));
      q_pack_rows(x, s.k, s.m, s.k, flip, false, target, *s.tiles);
      rows = target;
    }
    if (packed == nullptr) {
      std::byte* target = take(s.panel_bytes + static_cast<size_t>(s.n + 64) * sizeof(int32_t));
      pack(s, b, target);
      packed = target;
    }
    column_sums = s.sums_of(packed);
  }
  Columns columns;
  if (s.columns) {
    columns = *s.columns;
  } else {
    columns.add = reinterpret_cast<int32_t*>(take(static_cast<size_t>(s.n) * sizeof(int32_t)));
    columns.zeros = reinterpret_cast<int32_t*>(take(static_cast<size_t>(s.n) * sizeof(int32_t)));
    columns.scales = reinterpret_cast<float*>(take(static_cast<size_t>(s.n) * sizeof(float)));
    fill_columns<kAt>(s, column_sums, columns, [&](size_t i) {
      return i != kNone && run.has_input(i) ? &run.input(i) : nullptr;
    });
  }
  QFinish finish;
  finish.column_add = columns.add;
  if (columns.any_zero) {
    q_row_sums(x, s.k, s.m, s.k, flip, s.a_signed && !flip, row_sums);
    finish.row_sum = row_sums;
    finish.zero = columns.zeros;
  }
  finish.out = out;
  finish.ldo = s.n;
  if (kAt.a_scale != kNone) {
    finish.scale = columns.scale;
    if (columns.own_scales) finish.column_scale = columns.scales;
    finish.below_one = columns.below_one;
    finish.kind = QFinish::Kind::kFloat;
  }
  if (kAt.float_bias && run.has_input(kAt.bias)) finish.column_bias = run.data<float>(kAt.bias);
  if (is_byte(s.out_type)) {
    finish.kind = QFinish::Kind::kByte;
    finish.zero_point = byte_at(run.input(kAt.y_zero), 0);
    finish.least = s.out_type == DType::kInt8 ? -128 : 0;
    finish.greatest = s.out_type == DType::kInt8 ? 127 : 255;
  }
  if (s.few_rows) return q_finish(finish, sums, s.n, 0, s.m, 0, s.n);
  q_product(s.product, rows, s.copy_a ? s.m * q_row_bytes(s.k, *s.tiles) : s.m * s.k, packed,
            finish);
}

template <const Places& kAt>
Status run_qmatmul(KernelRun& run) {
  const auto& s = run.state<QMatMulState>();
  TRY(Tensor * y, run.output(0, s.out_type, s.output));
  const uint8_t* a = run.data<uint8_t>(kAt.a);
  const uint8_t* b = s.packed == nullptr ? run.data<uint8_t>(kAt.b) : nullptr;
  auto* out = y->data<std::byte>();
  if (s.b_at.empty()) {
    multiply<kAt>(run, a, b, out, run.scratch());
    return ok();
  }
  const int64_t bytes = s.m * s.n * static_cast<int64_t>(bytes_of(s.out_type));
  run.parallel_for(
      static_cast<int64_t>(s.b_at.size()), std::max<int64_t>(1, 1'000'000 / (s.m * s.n * s.k)),
      [&](int64_t begin, int64_t end) {
        auto* const room =
            reinterpret_cast<std::byte*>(thread_floats(3, s.product_bytes / sizeof(float) + 1));
        for (int64_t i = begin; i < end; ++i)
          multiply<kAt>(run, a + s.a_at[static_cast<size_t>(i)] * s.m * s.k,
                        b + s.b_at[static_cast<size_t>(i)] * s.k * s.n, out + i * bytes, room);
      });
  return ok();
}

}  // namespace

KERNEL(matmul_integer) = {
    .name = "matmul_integer",
    .op = "MatMulInteger",
    .supports = supports_qmatmul<kInteger>,
    .prepare = prepare_qmatmul<kInteger>,
    .run = run_qmatmul<kInteger>,
};
KERNEL(qlinear_matmul) = {
    .name = "qlinear_matmul",
    .op = "QLinearMatMul",
    .supports = supports_qmatmul<kLinear>,
    .prepare = prepare_qmatmul<kLinear>,
    .run = run_qmatmul<kLinear>,
};
KERNEL(qgemm) = {
    .name = "qgemm",
    .op = "QGemm",
    .domain = "com.microsoft",
    .supports = supports_qmatmul<kGemm>,
    .prepare = prepare_qmatmul<kGemm>,
    .run = run_qmatmul<kGemm>,
};
KERNEL(matmul_integer_to_float) = {
    .name = "matmul_integer_to_float",
    .op = "MatMulIntegerToFloat",
    .domain = "com.microsoft",
    .supports = supports_qmatmul<kToFloat>,
    .prepare = prepare_qmatmul<kToFloat>,
    .run = run_qmatmul<kToFloat>,
};

}  // namespace tombolo
