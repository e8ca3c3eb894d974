// QLinearConcat of com.microsoft: codes under another scale by a table, the
// others as they are.

#include <algorithm>
#include <cstddef>

#include "runtime/kernels/isa.h"
#include "runtime/kernels/kernel.h"
#include "runtime/kernels/quant/byte_table.h"
#include "runtime/kernels/quant/quantize.h"
#include "runtime/kernels/tensor/transpose_tile.h"

namespace tombolo {
namespace {

struct QConcatState final : KernelState {
  int64_t outer = 1;
  std::vector<int64_t> lengths;  ///< bytes of a row of each input
  int64_t row = 0;
  Dims output;
};

bool one(const KernelQuery& q, size_t scale, DType dtype) {
  return q.has_input(scale) && q.has_input(scale + 1) && q.dtype(scale) == DType::kFloat32 &&
         q.inputs[scale].size() == 1 && q.dtype(scale + 1) == dtype &&
         q.inputs[scale + 1].size() == 1;
}

bool plan_concat(const KernelQuery& q, QConcatState& s) {
  if (active_isa() == Isa::kScalar || q.inputs.size() < 5 || q.inputs.size() % 3 != 2) return false;
  const DType dtype = q.dtype(1);
  if (!is_byte(dtype) || !one(q, 0, dtype)) return false;
  const auto first = q.dims(2);
  const auto rank = static_cast<int64_t>(first.size());
  int64_t axis = q.attributes.get_int("axis", 0);
  if (axis < 0) axis += rank;
  if (axis < 0 || axis >= rank) return false;
  const auto along = static_cast<uint32_t>(axis);
  s.output = Dims(first);
  s.output[along] = 0;
  for (size_t i = 2; i < q.inputs.size(); i += 3) {
    if (!q.has_input(i) || q.dtype(i) != dtype || !one(q, i + 1, dtype)) return false;
    const auto dims = q.dims(i);
    if (dims.size() != first.size()) return false;
    for (size_t d = 0; d < dims.size(); ++d)
      if (d != along && dims[d] != first[d]) return false;
    s.output[along] += dims[along];
    s.lengths.push_back(element_count(dims.subspan(along)));
    s.row += s.lengths.back();
  }
  s.outer = element_count(first.first(along));
  return s.row > 0 && s.outer > 0;
}

bool supports_concat(const KernelQuery& query) {
  QConcatState state;
  return plan_concat(query, state);
}

Result<std::unique_ptr<KernelState>> prepare_concat(const PrepareContext& context) {
  auto state = std::make_unique<QConcatState>();
  plan_concat(context, *state);
  return state;
}

Status run_concat(KernelRun& run) {
  const auto& s = run.state<QConcatState>();
  const DType dtype = run.input(1).dtype();
  const bool is_signed = dtype == DType::kInt8;
  TRY(Tensor * y, run.output(0, dtype, s.output));
  const auto zero_at = [&](size_t i) { return static_cast<int32_t>(run.input(i).get_int64(0)); };
  int64_t offset = 0;
  for (size_t i = 0; i < s.lengths.size(); ++i) {
    uint8_t table[256];
    float values[256];
    for (int code = 0; code < 256; ++code) table[code] = static_cast<uint8_t>(code);
    dequantize_row(table, is_signed, 256, *run.data<float>(3 * i + 3), zero_at(3 * i + 4), values);
    quantize_row(values, 256, *run.data<float>(0), zero_at(1), is_signed, table);
    bool same = true;
    for (int code = 0; code < 256; ++code) same &= table[code] == code;
    const int64_t length = s.lengths[i];
    if (length == 0) continue;
    const uint8_t* from = run.input(3 * i + 2).data<uint8_t>();
    uint8_t* to = y->data<uint8_t>() + offset;
    // Rows that a vector takes a few of (channels last): whole stretches of x are looked up first.
    constexpr int64_t kShort = 1024, kStretch = 8192;
    const bool apart = !same && length > kShort;
    const int64_t stretch = apart ? 1 : std::max<int64_t>(1, kStretch / length);
    run.parallel_for(s.outer, std::max<int64_t>(1, 32768 / std::max<int64_t>(1, length)),
                     [&](int64_t begin, int64_t end) {
                       uint8_t room[kStretch];
                       for (int64_t r = begin; r < end; r += stretch) {
                         const int64_t rows = std::min(stretch, end - r);
                         const uint8_t* x = from + r * length;
                         uint8_t* out = to + r * s.row;
                         if (apart) {
                           look_up_bytes(table, x, length, out);
                           continue;
                         }
                         if (!same) look_up_bytes(table, x, rows * length, room);
                         const auto size = static_cast<size_t>(length);
                         copy_strided(reinterpret_cast<const std::byte*>(same ? x : room), size,
                                      reinterpret_cast<std::byte*>(out), static_cast<size_t>(s.row),
                                      size, rows);
                       }
                     });
    offset += length;
  }
  return ok();
}

}  // namespace

KERNEL(qlinear_concat) = {
    .name = "qlinear_concat",
    .op = "QLinearConcat",
    .domain = "com.microsoft",
    .supports = supports_concat,
    .prepare = prepare_concat,
    .run = run_concat,
};

}  // namespace tombolo
