// Pools of bytes with channels last: NhwcMaxPool, QLinearAveragePool, QLinearGlobalAveragePool of
// com.microsoft; the last one also with channels first.

#include <algorithm>
#include <vector>

#include "runtime/kernels/conv/geometry.h"
#include "runtime/kernels/isa.h"
#include "runtime/kernels/kernel.h"
#include "runtime/kernels/matmul/gemm.h"
#include "runtime/kernels/quant/qpool.h"

namespace tombolo {
namespace {

struct QPoolState final : KernelState {
  SlidingWindow window;
  int64_t channels = 0;
  bool average = false, counts_pads = false, global = false;
  bool planes = false;  ///< channels first
  Dims output;
};

bool plan_pool(const KernelQuery& q, QPoolState& s) {
  const Text op = q.node.op_type();
  s.average = op != "NhwcMaxPool";
  s.global = op == "QLinearGlobalAveragePool";
  const auto x = q.dims(0);
  if (active_isa() == Isa::kScalar || !is_byte(q.dtype(0)) || x.size() < 3 || x.size() > 5 ||
      element_count(x) < 1)
    return false;
  if (s.average) {
    s.planes = q.attributes.get_int("channels_last", 0) == 0;
    if (s.planes && !s.global) return false;
    for (const size_t i : {size_t(1), size_t(3)})
      if (!q.has_input(i) || q.dtype(i) != DType::kFloat32 || element_count(q.dims(i)) != 1)
        return false;
    for (const size_t i : {size_t(2), size_t(4)})
      if (q.has_input(i) && (q.dtype(i) != q.dtype(0) || element_count(q.dims(i)) != 1))
        return false;
    s.counts_pads = q.attributes.get_int("count_include_pad", 0) != 0;
  }
  if (s.planes) {
    s.channels = x[1];
    s.output = {x[0], x[1]};
    s.output.resize(static_cast<uint32_t>(x.size()), 1);
    return true;
  }
  s.channels = x.back();
  const auto spatial = x.subspan(1, x.size() - 2);
  if (s.global) {
    ConvGeometry& g = s.window.shape;
    for (size_t i = 0; i < spatial.size(); ++i)
      g.in[3 - spatial.size() + i] = g.kernel[3 - spatial.size() + i] = spatial[i];
  } else {
    const auto window =
        read_sliding_window(q.attributes, spatial, {}, q.attributes.get_int("ceil_mode", 0) != 0);
    if (!window || window->shape.taps() > 1 << 16) return false;
    s.window = *window;
  }
  s.window.shape.batch = x[0];
  s.output = {x[0]};
  for (size_t i = 0; i < spatial.size(); ++i)
    s.output.push_back(s.window.shape.out[3 - spatial.size() + i]);
  s.output.push_back(s.channels);
  return true;
}

bool supports_pool(const KernelQuery& query) {
  QPoolState state;
  return plan_pool(query, state);
}

Result<std::unique_ptr<KernelState>> prepare_pool(const PrepareContext& context) {
  auto state = std::make_unique<QPoolState>();
  plan_pool(context, *state);
  return state;
}

/// Positions of a window along an axis: [begin, end) of the kernel's that lie inside, and how many
/// count.
struct Along {
  int64_t first, begin, end, count;
};
Along along(const QPoolState& s, int axis, int64_t o) {
  const ConvGeometry& g = s.window.shape;
  Along a{o * g.stride[axis] - g.pad[axis], 0, g.kernel[axis], 0};
  const auto at = [&](int64_t k) { return a.first + k * g.dilation[axis]; };
  while (a.begin < a.end && at(a.begin) < 0) ++a.begin;
  while (a.end > a.begin && at(a.end - 1) >= g.in[axis]) --a.end;
  if (!s.counts_pads) {
    a.count = a.end - a.begin;
  } else {
    for (int64_t k = 0; k < g.kernel[axis]; ++k)
      a.count += at(k) < g.in[axis] + s.window.pad_end[axis];
  }
  return a;
}

int32_t byte_at(const KernelRun& run, size_t index) {
  return run.has_input(index) ? static_cast<int32_t>(run.input(index).get_int64(0)) : 0;
}

/// The mean of each plane.
Status run_planes(KernelRun& run, const QPoolState& s) {
  const Tensor& x = run.input(0);
  TRY(Tensor * y, run.output(0, x.dtype(), s.output));
  const bool is_signed = x.dtype() == DType::kInt8;
  const int64_t planes = y->size(), area = x.size() / planes;
  const double factor = static_cast<double>(run.data<float>(1)[0]) /
                        static_cast<double>(run.data<float>(3)[0]) / static_cast<double>(area);
  const int32_t x_zero = byte_at(run, 2), y_zero = byte_at(run, 4);
  run.parallel_for(planes, std::max<int64_t>(1, 200'000 / area), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const uint8_t* from = x.data<uint8_t>() + i * area;
      const auto sum = static_cast<int32_t>(sum_bytes(from, area, is_signed));
      round_sums(&sum, 1, x_zero * static_cast<int32_t>(area), static_cast<float>(factor), y_zero,
                 is_signed, y->data<uint8_t>() + i);
    }
  });
  return ok();
}

Status run_pool(KernelRun& run) {
  const auto& s = run.state<QPoolState>();
  if (s.planes) return run_planes(run, s);
  const ConvGeometry& g = s.window.shape;
  const Tensor& x = run.input(0);
  TRY(Tensor * y, run.output(0, x.dtype(), s.output));
  const bool is_signed = x.dtype() == DType::kInt8;
  const int64_t rows = g.batch * g.out[0] * g.out[1];
  const int64_t work = std::max<int64_t>(1, g.out[2] * g.taps() * s.channels);
  double factor = 0;
  int32_t x_zero = 0, y_zero = 0;
  if (s.average) {
    factor =
        static_cast<double>(run.data<float>(1)[0]) / static_cast<double>(run.data<float>(3)[0]);
    x_zero = byte_at(run, 2);
    y_zero = byte_at(run, 4);
  }
  const uint8_t lowest = is_signed ? 0x80 : 0;
  run.parallel_for(rows, std::max<int64_t>(1, 200'000 / work), [&](int64_t begin, int64_t end) {
    std::vector<const uint8_t*> lines, taps;
    std::vector<Along> across;
    for (int64_t w = 0; w < g.out[2]; ++w) across.push_back(along(s, 2, w));
    std::vector<int32_t> sums(s.average ? static_cast<size_t>(s.channels) : 0);
    for (int64_t r = begin; r < end; ++r) {
      const int64_t n = r / (g.out[0] * g.out[1]), d = r / g.out[1] % g.out[0], h = r % g.out[1];
      const Along ad = along(s, 0, d), ah = along(s, 1, h);
      uint8_t* to = y->data<uint8_t>() + r * g.out[2] * s.channels;
      lines.clear();
      for (int64_t i = ad.begin; i < ad.end; ++i)
        for (int64_t j = ah.begin; j < ah.end; ++j)
          lines.push_back(x.data<uint8_t>() +
                          ((n * g.in[0] + ad.first + i * g.dilation[0]) * g.in[1] + ah.first +
                           j * g.dilation[1]) *
                              g.in[2] * s.channels);
      for (int64_t w = 0; w < g.out[2]; ++w, to += s.channels) {
        const Along& aw = across[static_cast<size_t>(w)];
        taps.resize(lines.size() * static_cast<size_t>(aw.end - aw.begin));
        const uint8_t** tap = taps.data();
        for (const uint8_t* line : lines)
          for (int64_t k = aw.begin; k < aw.end; ++k)
            *tap++ = line + (aw.first + k * g.dilation[2]) * s.channels;
        if (!s.average) {
          if (taps.empty())
            std::fill_n(to, s.channels, lowest);
          else
            max_rows(taps.data(), static_cast<int64_t>(taps.size()), s.channels, is_signed, to);
          continue;
        }
        std::fill(sums.begin(), sums.end(), 0);
        add_rows(taps.data(), static_cast<int64_t>(taps.size()), s.channels, is_signed,
                 sums.data());
        const int64_t count = std::max<int64_t>(1, ad.count * ah.count * aw.count);
        round_sums(sums.data(), s.channels, x_zero * static_cast<int32_t>(taps.size()),
                   static_cast<float>(factor / static_cast<double>(count)), y_zero, is_signed, to);
      }
    }
  });
  return ok();
}

}  // namespace

KERNEL(nhwc_max_pool) = {
    .name = "nhwc_max_pool",
    .op = "NhwcMaxPool",
    .domain = "com.microsoft",
    .supports = supports_pool,
    .prepare = prepare_pool,
    .run = run_pool,
};
KERNEL(qlinear_average_pool) = {
    .name = "qlinear_average_pool",
    .op = "QLinearAveragePool",
    .domain = "com.microsoft",
    .supports = supports_pool,
    .prepare = prepare_pool,
    .run = run_pool,
};
KERNEL(qlinear_global_average_pool) = {
    .name = "qlinear_global_average_pool",
    .op = "QLinearGlobalAveragePool",
    .domain = "com.microsoft",
    .supports = supports_pool,
    .prepare = prepare_pool,
    .run = run_pool,
};

}  // namespace tombolo
