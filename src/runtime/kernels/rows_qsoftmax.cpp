// QLinearSoftmax of com.microsoft along memory: powers of e come from a table of how far codes lie
// below the row's largest.

#include <algorithm>
#include <cmath>
#include <vector>

#include "runtime/kernels/isa.h"
#include "runtime/kernels/kernel.h"
#include "runtime/kernels/quantize.h"

namespace tombolo {
namespace {

constexpr size_t kX = 0, kXScale = 1, kXZero = 2, kYScale = 3, kYZero = 4;

struct QSoftmaxState final : KernelState {
  int64_t length = 1;
};

/// Numbers that one sum takes, which lie together; 0 where they do not.
int64_t length_of(const KernelQuery& q) {
  const auto dims = q.dims(kX);
  const auto rank = static_cast<int64_t>(dims.size());
  int64_t axis = q.attributes.get_int("axis", -1);
  if (axis < 0) axis += rank;
  if (axis < 0 || axis >= rank) return 0;
  // Before opset 13 all axes from this one on are one.
  if (q.attributes.get_int("opset", 13) >= 13 && axis + 1 != rank) return 0;
  return element_count(dims.subspan(static_cast<size_t>(axis)));
}

bool supports_qsoftmax(const KernelQuery& q) {
  const DType dtype = q.dtype(kX);
  if (active_isa() == Isa::kScalar || q.inputs.size() < 5 ||
      (dtype != DType::kUInt8 && dtype != DType::kInt8))
    return false;
  for (const size_t i : {kXScale, kYScale})
    if (q.dtype(i) != DType::kFloat32 || element_count(q.dims(i)) != 1) return false;
  for (const size_t i : {kXZero, kYZero})
    if (q.has_input(i) && (q.dtype(i) != dtype || element_count(q.dims(i)) != 1)) return false;
  return length_of(q) > 0;
}

Result<std::unique_ptr<KernelState>> prepare_qsoftmax(const PrepareContext& q) {
  auto state = std::make_unique<QSoftmaxState>();
  state->length = length_of(q);
  return state;
}

Status run_qsoftmax(KernelRun& run) {
  const int64_t n = run.state<QSoftmaxState>().length;
  const Tensor& x = run.input(kX);
  TRY(Tensor * y, run.output(0, x.dtype(), x.dims()));
  const bool is_signed = x.dtype() == DType::kInt8;
  const float scale = *run.data<float>(kXScale), y_scale = *run.data<float>(kYScale);
  const auto y_zero =
      static_cast<int32_t>(run.has_input(kYZero) ? run.input(kYZero).get_int64(0) : 0);
  float powers[256];
  for (int i = 0; i < 256; ++i)
    powers[i] = static_cast<float>(std::exp(-std::abs(static_cast<double>(scale)) * i));
  // Codes that grow with the numbers.
  const auto mask = static_cast<uint8_t>((is_signed ? 0x80 : 0) ^ (scale < 0 ? 0xFF : 0));
  const uint8_t* from = x.data<uint8_t>();
  uint8_t* to = y->data<uint8_t>();
  run.parallel_for(x.size() / n, std::max<int64_t>(1, 8192 / n), [&](int64_t begin, int64_t end) {
    std::vector<float> row(static_cast<size_t>(n));
    for (int64_t r = begin; r < end; ++r) {
      const uint8_t* codes = from + r * n;
      uint8_t most = 0;
      for (int64_t i = 0; i < n; ++i) most = std::max(most, static_cast<uint8_t>(codes[i] ^ mask));
      double sum = 0;
      for (int64_t i = 0; i < n; ++i) {
        row[static_cast<size_t>(i)] = powers[most - (codes[i] ^ mask)];
        sum += static_cast<double>(row[static_cast<size_t>(i)]);
      }
      const auto share = static_cast<float>(1 / sum);
      for (float& value : row) value *= share;
      quantize_row(row.data(), n, y_scale, y_zero, is_signed, to + r * n);
    }
  });
  return ok();
}

}  // namespace

KERNEL(qlinear_softmax) = {
    .name = "qlinear_softmax",
    .op = "QLinearSoftmax",
    .domain = "com.microsoft",
    .supports = supports_qsoftmax,
    .prepare = prepare_qsoftmax,
    .run = run_qsoftmax,
};

}  // namespace tombolo
