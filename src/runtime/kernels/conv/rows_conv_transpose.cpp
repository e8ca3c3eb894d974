// ConvTranspose of floats: a convolution with a kernel of one position gives what each input pixel
// adds to the outputs under its window; those are added up channel by channel.

#include <algorithm>
#include <cstring>
#include <string>

#include "runtime/kernels/conv/add_windows.h"
#include "runtime/kernels/conv/conv.h"
#include "runtime/kernels/conv/geometry.h"
#include "runtime/kernels/conv/spread.h"
#include "runtime/kernels/isa.h"
#include "runtime/kernels/kernel.h"
#include "runtime/kernels/matmul/gemm.h"

namespace tombolo {
namespace {

struct TransposedState final : KernelState {
  ConvGeometry shape;  ///< `in` is that of X, `out` that of Y; channels are those of a group
  SpreadPlan spread;
  ConvPlan product;         ///< to [group][output channel][kernel position][pixel of X]
  bool one_pixel = false;   ///< and one group: a plain product with the weights as they lie
  bool by_windows = false;  ///< add_windows
  const float* packed = nullptr;
  Dims output;
};

std::optional<ConvGeometry> read_transposed(const KernelQuery& q) {
  if (active_isa() == Isa::kScalar || q.inputs.size() < 2) return std::nullopt;
  for (size_t i = 0; i < q.inputs.size(); ++i)
    if ((q.has_input(i) || i < 2) && q.dtype(i) != DType::kFloat32) return std::nullopt;
  const auto s = read_transposed_geometry(q.attributes, q.dims(0), q.dims(1));
  if (s && q.has_input(2) && (q.dims(2).size() != 1 || q.dims(2)[0] != s->groups * s->out_channels))
    return std::nullopt;
  return s;
}

bool supports_transposed(const KernelQuery& query) { return read_transposed(query).has_value(); }

/// Packs [group][input][output x tap]: inputs are what the product sums over.
void pack_transposed(const TransposedState& state, const float* w, float* packed) {
  const ConvPlan& plan = state.product;
  const int64_t inputs = plan.shape.in_channels, rows = plan.shape.out_channels;
  switch (plan.algorithm) {
    case ConvPlan::Algorithm::kTransposed:
      return pack_b(w, rows, 1, inputs, rows, 1, packed);
    case ConvPlan::Algorithm::kDirect:
      return pack_direct(plan.shape, w, {1, rows}, packed);
    case ConvPlan::Algorithm::kPixels:
      return pack_conv_pixels(plan, w, {1, rows}, packed);
    default:  // of one input: as it lies
      std::memcpy(packed, w, plan.weight_floats * sizeof(float));
  }
}

/// [input] times [input][output x tap]: each position of the kernel gives one output, or none.
Result<std::unique_ptr<KernelState>> prepare_one_pixel(const PrepareContext& context,
                                                       std::unique_ptr<TransposedState> state) {
  const int64_t rows = state->shape.in_channels, columns = state->product.shape.out_channels;
  state->one_pixel = true;
  state->scratch_bytes =
      static_cast<size_t>((state->shape.batch + 1) * columns + 32) * sizeof(float);
  TRY(const std::byte* packed,
      context.packed(1, "conv_transpose_f32/" + std::string(name_of(active_isa())) + "/one",
                     static_cast<size_t>(packed_b_floats(rows, columns)) * sizeof(float),
                     [&](std::byte* target) {
                       Tensor copy;
                       pack_b(context.aligned_constant(1, copy).data<float>(), columns, 1, rows,
                              columns, 1.0f, reinterpret_cast<float*>(target));
                     }));
  state->packed = reinterpret_cast<const float*>(packed);
  return state;
}

Result<std::unique_ptr<KernelState>> prepare_windows(const PrepareContext& context,
                                                     std::unique_ptr<TransposedState> state) {
  state->by_windows = true;
  const ConvGeometry& s = state->shape;
  TRY(const std::byte* packed,
      context.packed(1,
                     "conv_transpose_f32/" + std::string(name_of(active_isa())) + "/windows/" +
                         std::to_string(s.groups),
                     add_windows_weight_floats(s) * sizeof(float), [&](std::byte* target) {
                       Tensor copy;
                       pack_add_windows(s, context.aligned_constant(1, copy).data<float>(),
                                        reinterpret_cast<float*>(target));
                     }));
  state->packed = reinterpret_cast<const float*>(packed);
  return state;
}

Result<std::unique_ptr<KernelState>> prepare_transposed(const PrepareContext& context) {
  auto state = std::make_unique<TransposedState>();
  const ConvGeometry s = *read_transposed(context);
  state->shape = s;
  state->output = output_dims(s, s.groups * s.out_channels, context.dims(0).size() - 2);
  const bool constant = context.constant(1) != nullptr;
  const bool one_pixel = constant && s.groups == 1 && s.in_plane() == 1;
  if (constant && !one_pixel && add_windows_pays(s))
    return prepare_windows(context, std::move(state));
  state->spread = plan_spread(s);
  ConvGeometry product;
  product.groups = s.groups;
  product.in_channels = s.in_channels;
  product.out_channels = s.out_channels * s.taps();
  product.in[2] = product.out[2] = s.in_plane();
  state->product = plan_convolution(product);
  const ConvPlan& plan = state->product;
  if (one_pixel) return prepare_one_pixel(context, std::move(state));
  const auto columns = static_cast<size_t>(s.groups * product.out_channels * s.in_plane());
  state->scratch_bytes = (plan.scratch_floats + columns + 128) * sizeof(float);
  if (!constant) {  // those of a quantised network, say
    state->scratch_bytes += (plan.weight_floats + 64) * sizeof(float);
    return state;
  }
  const std::string key = "conv_transpose_f32/" + std::string(name_of(active_isa())) + "/" +
                          name_of(plan.algorithm) + "/" + std::to_string(s.groups);
  TRY(const std::byte* packed,
      context.packed(1, key, (plan.weight_floats + 64) * sizeof(float), [&](std::byte* target) {
        Tensor copy;
        pack_transposed(*state, context.aligned_constant(1, copy).data<float>(),
                        reinterpret_cast<float*>(target));
      }));
  state->packed = reinterpret_cast<const float*>(packed);
  return state;
}

void run_one_pixel(KernelRun& run, const TransposedState& state, float* y) {
  const ConvGeometry& s = state.shape;
  const int64_t taps = s.taps(), columns = s.out_channels * taps, plane = s.out_plane();
  auto* const spread = reinterpret_cast<float*>(run.scratch());
  const float* bias = run.has_input(2) ? run.data<float>(2) : nullptr;
  for (int64_t c = 0; bias != nullptr && c < s.out_channels; ++c)
    std::fill_n(spread + c * taps, taps, bias[c]);
  // Where each position of the kernel goes; as they lie, if all of them do.
  std::vector<int64_t> places;
  bool as_they_lie = plane == taps;
  for (int64_t k = 0; k < taps; ++k) {
    int64_t at[3] = {k / (s.kernel[1] * s.kernel[2]), k / s.kernel[2] % s.kernel[1],
                     k % s.kernel[2]};
    int64_t place = 0;
    for (int axis = 0; axis < 3; ++axis) {
      at[axis] = at[axis] * s.dilation[axis] - s.pad[axis];
      if (at[axis] < 0 || at[axis] >= s.out[axis]) place = -1;
      if (place >= 0) place = place * s.out[axis] + at[axis];
    }
    places.push_back(place);
    as_they_lie &= place == k;
  }
  float* const product = as_they_lie ? y : spread + (columns + 15) / 16 * 16;
  gemm(s.batch, columns, s.in_channels, run.data<float>(0), s.in_channels, state.packed, product,
       columns, {.col_bias = bias != nullptr ? spread : nullptr});
  if (as_they_lie) return;
  for (int64_t c = 0; c < s.batch * s.out_channels; ++c) {
    std::fill_n(y + c * plane, plane, bias != nullptr ? bias[c % s.out_channels] : 0.0f);
    for (int64_t k = 0; k < taps; ++k)
      if (places[static_cast<size_t>(k)] >= 0)
        y[c * plane + places[static_cast<size_t>(k)]] = product[c * taps + k];
  }
}

Status run_transposed_conv(KernelRun& run) {
  const auto& state = run.state<TransposedState>();
  const ConvGeometry& s = state.shape;
  TRY(Tensor * y, run.output(0, DType::kFloat32, state.output));
  if (state.one_pixel) {
    run_one_pixel(run, state, y->data<float>());
    return ok();
  }
  if (state.by_windows) {
    add_windows(s, run.data<float>(0), state.packed,
                run.has_input(2) ? run.data<float>(2) : nullptr, y->data<float>());
    return ok();
  }
  auto* scratch = reinterpret_cast<float*>(run.scratch());
  const float* packed = state.packed;
  const int64_t rows_in = s.groups * state.product.shape.out_channels;
  float* const columns = scratch + (state.product.scratch_floats + 31) / 16 * 16;
  if (packed == nullptr) {
    float* const room = columns + (rows_in * s.in_plane() + 31) / 16 * 16;
    pack_transposed(state, run.data<float>(1), room);
    packed = room;
  }
  const float* bias = run.has_input(2) ? run.data<float>(2) : nullptr;
  const int64_t outputs = s.groups * s.out_channels, plane = s.out_plane();
  const int64_t column_floats = s.taps() * s.in_plane();
  for (int64_t n = 0; n < s.batch; ++n) {
    const float* x = run.data<float>(0) + n * s.groups * s.in_channels * s.in_plane();
    run_convolution(state.product, x, packed, columns, {}, scratch);
    float* to = y->data<float>() + n * outputs * plane;
    // Rows of all channels, one channel behind the other.
    const int64_t rows = s.out[0] * s.out[1];
    run.parallel_for(
        outputs * rows, std::max<int64_t>(1, 16384 / s.out[2]), [&](int64_t begin, int64_t end) {
          float* room = thread_floats(1, static_cast<size_t>(spread_room(s)));
          while (begin < end) {
            const int64_t c = begin / rows, first = begin % rows;
            const int64_t last = std::min(rows, first + end - begin);
            spread_rows(state.spread, columns + c * column_floats, bias != nullptr ? bias[c] : 0.0f,
                        first, last, to + c * plane, room);
            begin += last - first;
          }
        });
  }
  return ok();
}

}  // namespace

KERNEL(conv_transpose_f32) = {
    .name = "conv_transpose_f32",
    .op = "ConvTranspose",
    .supports = supports_transposed,
    .prepare = prepare_transposed,
    .run = products<run_transposed_conv>,
    .unaligned = 1u << 1,
};

}  // namespace tombolo
