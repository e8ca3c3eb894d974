// QLinearAdd, QLinearMul, QLinearWhere, QLinearSigmoid, QLinearLeakyRelu and QLinearSoftmax of
// com.microsoft: blocks of codes to numbers and back, as the reference has it; functions of one
// input by a table of all codes, as ByteTable of ai.tombolo has it.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "runtime/kernels/blocks.h"
#include "runtime/kernels/broadcast.h"
#include "runtime/kernels/elementwise/binary.h"
#include "runtime/kernels/elementwise/spread_rows.h"
#include "runtime/kernels/isa.h"
#include "runtime/kernels/kernel.h"
#include "runtime/kernels/quant/byte_table.h"
#include "runtime/kernels/quant/qpool.h"
#include "runtime/kernels/quant/quantize.h"

namespace tombolo {
namespace {

/// Scale and zero point at `index` and behind it are one number each.
bool is_linear(const KernelQuery& q, size_t index, DType dtype) {
  return q.has_input(index) && q.dtype(index) == DType::kFloat32 && q.inputs[index].size() == 1 &&
         (!q.has_input(index + 1) ||
          (q.dtype(index + 1) == dtype && q.inputs[index + 1].size() == 1));
}

struct Linear {
  float scale;
  int32_t zero;
};
Linear linear_at(const KernelRun& run, size_t index) {
  const int64_t zero = run.has_input(index + 1) ? run.input(index + 1).get_int64(0) : 0;
  return {*run.data<float>(index), static_cast<int32_t>(zero)};
}

struct QBinaryState final : KernelState {
  BroadcastLoops<2> loops;
  bool product = false;
};

bool supports_qbinary(const KernelQuery& q) {
  if (active_isa() == Isa::kScalar || q.inputs.size() < 7) return false;
  const DType dtype = q.dtype(0);
  return is_byte(dtype) && q.dtype(3) == dtype && is_linear(q, 1, dtype) &&
         is_linear(q, 4, dtype) && is_linear(q, 6, dtype) &&
         BroadcastLoops<2>::of({q.dims(0), q.dims(3)}).has_value();
}

Result<std::unique_ptr<KernelState>> prepare_qbinary(const PrepareContext& q) {
  auto state = std::make_unique<QBinaryState>();
  state->loops = *BroadcastLoops<2>::of({q.dims(0), q.dims(3)});
  state->product = q.node.op_type() == "QLinearMul";
  return state;
}

Status run_qbinary(KernelRun& run) {
  const auto& state = run.state<QBinaryState>();
  const BroadcastLoops<2>& loops = state.loops;
  const DType dtype = run.input(0).dtype();
  TRY(Tensor * y, run.output(0, dtype, loops.output));
  const Linear a = linear_at(run, 1), b = linear_at(run, 4), to = linear_at(run, 6);
  const uint8_t* from[2] = {run.data<uint8_t>(0), run.data<uint8_t>(3)};
  uint8_t* out = y->data<uint8_t>();
  ByteSum sum{
      a.zero,       b.zero, to.zero, a.scale / to.scale, b.scale / to.scale, dtype == DType::kInt8,
      state.product};
  if (state.product) sum.a_scale = a.scale * b.scale / to.scale;
  constexpr int64_t kRow = 4096;
  if (loops.axes > 1 && loops.length[0] < kShortRow) {
    run.parallel_for(loops.count, 1 << 15, [&](int64_t begin, int64_t end) {
      uint8_t rooms[2][kSpreadBefore + kRow + kSpreadBehind];
      // Every block begins at the same place of a row, so that what repeats is written once.
      const int64_t many = kRow / loops.length[0] * loops.length[0];
      int64_t held[2] = {-1, -1};
      for (int64_t at = begin; at < end; at += many) {
        const int64_t n = std::min(many, end - at);
        const auto side = [&](int k) {
          return spread_rows(loops, k, from[k], at, n, rooms[k] + kSpreadBefore, held[k]);
        };
        add_bytes(side(0), side(1), n, sum, out + at);
      }
    });
    return ok();
  }
  if (!state.product && (loops.step[0][0] == 0) != (loops.step[0][1] == 0)) {
    const int many = loops.step[0][0] == 0 ? 1 : 0;
    if (many == 1) {
      std::swap(sum.a_zero, sum.b_zero);
      std::swap(sum.a_scale, sum.b_scale);
    }
    run.parallel_for(loops.count, 1 << 15, [&](int64_t begin, int64_t end) {
      loops.for_runs(begin, end, [&](int64_t at, const int64_t* offset, int64_t n) {
        add_one_byte(from[many] + offset[many], from[1 - many][offset[1 - many]], n, sum, out + at);
      });
    });
    return ok();
  }
  run.parallel_for(loops.count, 1 << 15, [&](int64_t begin, int64_t end) {
    // What is repeated along the innermost axis, as a row.
    uint8_t rows[2][kRow];
    loops.for_runs(begin, end, [&](int64_t at, const int64_t* offset, int64_t n) {
      for (int k = 0; k < 2; ++k)
        if (loops.step[0][k] == 0)
          std::memset(rows[k], from[k][offset[k]], static_cast<size_t>(std::min(n, kRow)));
      for (int64_t i = 0; i < n; i += kRow) {
        const auto side = [&](int k) {
          return loops.step[0][k] == 0 ? rows[k] : from[k] + offset[k] + i;
        };
        add_bytes(side(0), side(1), std::min(kRow, n - i), sum, out + at + i);
      }
    });
  });
  return ok();
}

/// y = table[x], x being input 0.
void look_up(KernelRun& run, const uint8_t* table, Tensor& y) {
  const uint8_t* codes = run.data<uint8_t>(0);
  uint8_t* out = y.data<uint8_t>();
  run.parallel_for(y.size(), 1 << 15, [&](int64_t begin, int64_t end) {
    look_up_bytes(table, codes + begin, end - begin, out + begin);
  });
}

bool supports_qunary(const KernelQuery& q) {
  return active_isa() != Isa::kScalar && q.inputs.size() >= 4 && is_byte(q.dtype(0)) &&
         is_linear(q, 1, q.dtype(0)) && is_linear(q, 3, q.dtype(0));
}

struct QUnaryState final : KernelState {
  bool sigmoid = false;
  float alpha = 0;
};

Result<std::unique_ptr<KernelState>> prepare_qunary(const PrepareContext& q) {
  auto state = std::make_unique<QUnaryState>();
  state->sigmoid = q.node.op_type() == "QLinearSigmoid";
  state->alpha = q.attributes.get_float("alpha", 0.01f);
  return state;
}

Status run_qunary(KernelRun& run) {
  const auto& state = run.state<QUnaryState>();
  const Tensor& x = run.input(0);
  TRY(Tensor * y, run.output(0, x.dtype(), x.dims()));
  const bool is_signed = x.dtype() == DType::kInt8;
  uint8_t table[256];
  float values[256];
  for (int i = 0; i < 256; ++i) table[i] = static_cast<uint8_t>(i);
  const Linear from = linear_at(run, 1), to = linear_at(run, 3);
  dequantize_row(table, is_signed, 256, from.scale, from.zero, values);
  for (float& value : values) {
    if (state.sigmoid)
      value = static_cast<float>(1 / (1 + std::exp(-static_cast<double>(value))));
    else
      value = value < 0 ? state.alpha * value : value;
  }
  quantize_row(values, 256, to.scale, to.zero, is_signed, table);
  look_up(run, table, *y);
  return ok();
}

struct QWhereState final : KernelState {
  BroadcastLoops<3> loops;
  WhereFn* fn = nullptr;
};

bool supports_qwhere(const KernelQuery& q) {
  if (active_isa() == Isa::kScalar || q.inputs.size() < 8) return false;
  const DType dtype = q.dtype(1);
  return q.dtype(0) == DType::kBool && is_byte(dtype) && q.dtype(4) == dtype &&
         is_linear(q, 2, dtype) && is_linear(q, 5, dtype) && is_linear(q, 7, dtype) &&
         BroadcastLoops<3>::of({q.dims(0), q.dims(1), q.dims(4)}).has_value();
}

Result<std::unique_ptr<KernelState>> prepare_qwhere(const PrepareContext& q) {
  auto state = std::make_unique<QWhereState>();
  state->loops = *BroadcastLoops<3>::of({q.dims(0), q.dims(1), q.dims(4)});
  state->fn = where_fn(1);
  return state;
}

/// Codes under another scale. Nothing to look up where no code changes.
struct Recoded {
  uint8_t table[256];
  bool same = true;

  Recoded(Linear from, Linear to, bool is_signed) {
    uint8_t codes[256];
    float values[256];
    for (int i = 0; i < 256; ++i) codes[i] = static_cast<uint8_t>(i);
    dequantize_row(codes, is_signed, 256, from.scale, from.zero, values);
    quantize_row(values, 256, to.scale, to.zero, is_signed, table);
    for (int i = 0; i < 256; ++i) same = same && table[i] == codes[i];
  }
  const uint8_t* of(const uint8_t* x, int64_t n, uint8_t* room) const {
    if (same) return x;
    look_up_bytes(table, x, n, room);
    return room;
  }
};

Status run_qwhere(KernelRun& run) {
  const auto& state = run.state<QWhereState>();
  const BroadcastLoops<3>& loops = state.loops;
  const DType dtype = run.input(1).dtype();
  const bool is_signed = dtype == DType::kInt8;
  TRY(Tensor * y, run.output(0, dtype, loops.output));
  const Linear to = linear_at(run, 7);
  const Recoded left(linear_at(run, 2), to, is_signed), right(linear_at(run, 5), to, is_signed);
  const uint8_t* const from[3] = {run.data<uint8_t>(0), run.data<uint8_t>(1), run.data<uint8_t>(4)};
  uint8_t* out = y->data<uint8_t>();
  constexpr int64_t kBlock = 4096;
  run.parallel_for(loops.count, 1 << 15, [&](int64_t begin, int64_t end) {
    uint8_t rooms[2][kBlock];
    const int64_t* step = loops.step[0];
    loops.for_runs(begin, end, [&](int64_t at, const int64_t* offset, int64_t n) {
      for (int64_t i = 0; i < n; i += kBlock) {
        const int64_t count = std::min(kBlock, n - i);
        const auto codes = [&](int k) { return from[k] + offset[k] + i * step[k]; };
        const uint8_t* a = left.of(codes(1), step[1] == 0 ? 1 : count, rooms[0]);
        const uint8_t* b = right.of(codes(2), step[2] == 0 ? 1 : count, rooms[1]);
        state.fn(codes(0), step[0] == 0, a, step[1] == 0, b, step[2] == 0, out + at + i, count);
      }
    });
  });
  return ok();
}

/// Powers of e, by how far codes lie below their row's largest.
struct CodePowers {
  float scale = 0, of[256];

  explicit CodePowers(float given) : scale(given) {
    for (int i = 0; i < 256; ++i)
      of[i] = static_cast<float>(std::exp(-std::abs(static_cast<double>(scale)) * i));
  }
};

struct QSoftmaxState final : KernelState {
  int64_t length = 1, behind = 1;
  std::optional<CodePowers> powers;  ///< of a constant scale
};

/// Numbers that one sum takes, and how far they lie apart; 0 where there are none.
QSoftmaxState softmax_of(const KernelQuery& q) {
  QSoftmaxState s;
  const auto dims = q.dims(0);
  const auto rank = static_cast<int64_t>(dims.size());
  int64_t axis = q.attributes.get_int("axis", -1);
  if (axis < 0) axis += rank;
  s.length = 0;
  if (axis < 0 || axis >= rank) return s;
  // Before opset 13 all axes from this one on are one.
  s.length = element_count(dims.subspan(static_cast<size_t>(axis)));
  if (q.attributes.get_int("opset", 13) >= 13 && s.length > 0) {
    s.length = dims[static_cast<size_t>(axis)];
    s.behind = element_count(dims.subspan(static_cast<size_t>(axis) + 1));
  }
  return s;
}

bool supports_qsoftmax(const KernelQuery& q) {
  const DType dtype = q.dtype(0);
  return active_isa() != Isa::kScalar && q.inputs.size() >= 5 && is_byte(dtype) &&
         is_linear(q, 1, dtype) && is_linear(q, 3, dtype) && softmax_of(q).length > 0;
}

Result<std::unique_ptr<KernelState>> prepare_qsoftmax(const PrepareContext& q) {
  auto state = std::make_unique<QSoftmaxState>(softmax_of(q));
  if (const Tensor* scale = q.constant(1)) state->powers.emplace(*scale->data<float>());
  return state;
}

/// Rows of n codes, some at a time: to make codes of three numbers takes as long as of sixty.
void qsoftmax_rows(const uint8_t* from, int64_t rows, int64_t n, uint8_t mask, const float* powers,
                   const Linear& to, bool is_signed, uint8_t* out) {
  constexpr int64_t kTogether = 512;
  const int64_t most_rows = std::max<int64_t>(1, kTogether / n);
  std::vector<float> room(static_cast<size_t>(std::min(rows, most_rows) * n));
  for (int64_t r = 0; r < rows; r += most_rows) {
    const int64_t some = std::min(most_rows, rows - r);
    float* row = room.data();
    for (int64_t j = 0; j < some; ++j, row += n) {
      const uint8_t* codes = from + (r + j) * n;
      uint8_t most = 0;
      for (int64_t i = 0; i < n; ++i) most = std::max(most, static_cast<uint8_t>(codes[i] ^ mask));
      double even = 0, odd = 0;
      int64_t i = 0;
      for (; i + 2 <= n; i += 2) {
        row[i] = powers[most - (codes[i] ^ mask)];
        row[i + 1] = powers[most - (codes[i + 1] ^ mask)];
        even += static_cast<double>(row[i]);
        odd += static_cast<double>(row[i + 1]);
      }
      if (i < n) {
        row[i] = powers[most - (codes[i] ^ mask)];
        even += static_cast<double>(row[i]);
      }
      const auto share = static_cast<float>(1 / (even + odd));
      for (i = 0; i < n; ++i) row[i] *= share;
    }
    quantize_row(room.data(), some * n, to.scale, to.zero, is_signed, out + r * n);
  }
}

Status run_qsoftmax(KernelRun& run) {
  const auto& state = run.state<QSoftmaxState>();
  const int64_t n = state.length, behind = state.behind;
  const Tensor& x = run.input(0);
  TRY(Tensor * y, run.output(0, x.dtype(), x.dims()));
  const bool is_signed = x.dtype() == DType::kInt8;
  const float scale = linear_at(run, 1).scale;
  const Linear to = linear_at(run, 3);
  std::optional<CodePowers> given;
  const CodePowers& all = state.powers ? *state.powers : given.emplace(scale);
  const float* const powers = all.of;
  // Codes that grow with the numbers.
  const auto mask = static_cast<uint8_t>((is_signed ? 0x80 : 0) ^ (scale < 0 ? 0xFF : 0));
  const uint8_t* from = x.data<uint8_t>();
  uint8_t* out = y->data<uint8_t>();
  if (behind > 1) {
    // Along another axis than the last: a few columns at a time.
    constexpr int64_t kColumns = 64;
    const int64_t parts = (behind + kColumns - 1) / kColumns;
    run.parallel_for(x.size() / n / behind * parts, 1, [&](int64_t begin, int64_t end) {
      std::vector<float> rows(static_cast<size_t>(n * kColumns));
      for (int64_t task = begin; task < end; ++task) {
        const int64_t at = task % parts * kColumns, columns = std::min(kColumns, behind - at);
        const int64_t first = task / parts * n * behind + at;
        uint8_t most[kColumns] = {};
        float sums[kColumns] = {};
        for (int64_t i = 0; i < n; ++i)
          for (int64_t j = 0; j < columns; ++j)
            most[j] = std::max(most[j], static_cast<uint8_t>(from[first + i * behind + j] ^ mask));
        for (int64_t i = 0; i < n; ++i)
          for (int64_t j = 0; j < columns; ++j) {
            const float power = powers[most[j] - (from[first + i * behind + j] ^ mask)];
            rows[static_cast<size_t>(i * kColumns + j)] = power;
            sums[j] += power;
          }
        for (int64_t j = 0; j < columns; ++j) sums[j] = 1 / sums[j];
        for (int64_t i = 0; i < n; ++i) {
          float* row = rows.data() + i * kColumns;
          for (int64_t j = 0; j < columns; ++j) row[j] *= sums[j];
          quantize_row(row, columns, to.scale, to.zero, is_signed, out + first + i * behind);
        }
      }
    });
    return ok();
  }
  run.parallel_for(x.size() / n, std::max<int64_t>(1, 8192 / n), [&](int64_t begin, int64_t end) {
    qsoftmax_rows(from + begin * n, end - begin, n, mask, powers, to, is_signed, out + begin * n);
  });
  return ok();
}

bool supports_table(const KernelQuery& q) {
  return active_isa() != Isa::kScalar && q.inputs.size() == 2 && is_byte(q.dtype(0)) &&
         is_byte(q.dtype(1)) && element_count(q.dims(1)) == 256;
}

Result<std::unique_ptr<KernelState>> prepare_table(const PrepareContext&) {
  return std::make_unique<KernelState>();
}

Status run_table(KernelRun& run) {
  const Tensor& table = run.input(1);
  TRY(Tensor * y, run.output(0, table.dtype(), run.input(0).dims()));
  look_up(run, table.data<uint8_t>(), *y);
  return ok();
}

}  // namespace

KERNEL(qlinear_add) = {
    .name = "qlinear_add",
    .op = "QLinearAdd",
    .domain = "com.microsoft",
    .supports = supports_qbinary,
    .prepare = prepare_qbinary,
    .run = run_qbinary,
};
KERNEL(qlinear_mul) = {
    .name = "qlinear_mul",
    .op = "QLinearMul",
    .domain = "com.microsoft",
    .supports = supports_qbinary,
    .prepare = prepare_qbinary,
    .run = run_qbinary,
};
KERNEL(qlinear_sigmoid) = {
    .name = "qlinear_sigmoid",
    .op = "QLinearSigmoid",
    .domain = "com.microsoft",
    .supports = supports_qunary,
    .prepare = prepare_qunary,
    .run = run_qunary,
};
KERNEL(qlinear_leaky_relu) = {
    .name = "qlinear_leaky_relu",
    .op = "QLinearLeakyRelu",
    .domain = "com.microsoft",
    .supports = supports_qunary,
    .prepare = prepare_qunary,
    .run = run_qunary,
};
KERNEL(qlinear_where) = {
    .name = "qlinear_where",
    .op = "QLinearWhere",
    .domain = "com.microsoft",
    .supports = supports_qwhere,
    .prepare = prepare_qwhere,
    .run = run_qwhere,
};

KERNEL(qlinear_softmax) = {
    .name = "qlinear_softmax",
    .op = "QLinearSoftmax",
    .domain = "com.microsoft",
    .supports = supports_qsoftmax,
    .prepare = prepare_qsoftmax,
    .run = run_qsoftmax,
};

KERNEL(byte_table) = {
    .name = "byte_table",
    .op = "ByteTable",
    .domain = "ai.tombolo",
    .supports = supports_table,
    .prepare = prepare_table,
    .run = run_table,
    .in_place = 1,
};

}  // namespace tombolo
