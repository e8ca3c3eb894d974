// ConvTranspose of floats: a convolution with a kernel of one position gives what each input pixel
// adds to the outputs under its window; those are added up channel by channel.

#include <algorithm>
#include <string>

#include "runtime/kernels/conv.h"
#include "runtime/kernels/gemm.h"
#include "runtime/kernels/geometry.h"
#include "runtime/kernels/isa.h"
#include "runtime/kernels/kernel.h"
#include "runtime/kernels/spread.h"
#include "runtime/kernels/transpose_tile.h"

namespace tombolo {
namespace {

struct TransposedState final : KernelState {
  ConvGeometry shape;  ///< `in` is that of X, `out` that of Y; channels are those of a group
  ConvPlan product;    ///< to [group][output channel][kernel position][pixel of X]
  const float* packed = nullptr;
  Dims output;
};

constexpr int64_t kLimit = int64_t{1} << 24;

std::optional<ConvGeometry> read_transposed(const KernelQuery& q) {
  if (active_isa() == Isa::kScalar || q.inputs.size() < 2) return std::nullopt;
  for (size_t i = 0; i < q.inputs.size(); ++i)
    if ((q.has_input(i) || i < 2) && q.dtype(i) != DType::kFloat32) return std::nullopt;
  const auto x = q.dims(0), w = q.dims(1);
  const AttributeReader& a = q.attributes;
  if (x.size() < 3 || x.size() > 5 || w.size() != x.size() || element_count(x) < 1 ||
      element_count(w) < 1)
    return std::nullopt;
  // What sizes an output otherwise stays with the reference.
  const Text auto_pad = a.get_string("auto_pad", "NOTSET");
  if (!a.get_ints("output_shape").empty() || (auto_pad != "NOTSET" && auto_pad != "VALID"))
    return std::nullopt;
  const size_t spatial = x.size() - 2, first = 3 - spatial;
  const auto kernel = a.get_ints("kernel_shape"), strides = a.get_ints("strides"),
             dilations = a.get_ints("dilations"), pads = a.get_ints("pads"),
             extra = a.get_ints("output_padding");
  const auto fits = [](std::span<const int64_t> list, size_t size) {
    return list.empty() || list.size() == size;
  };
  if (!fits(kernel, spatial) || !fits(strides, spatial) || !fits(dilations, spatial) ||
      !fits(pads, 2 * spatial) || !fits(extra, spatial))
    return std::nullopt;
  ConvGeometry s;
  s.batch = x[0];
  s.groups = a.get_int("group", 1);
  if (s.groups < 1 || x[1] % s.groups != 0 || w[0] != x[1]) return std::nullopt;
  s.in_channels = x[1] / s.groups;
  s.out_channels = w[1];
  double floats = static_cast<double>(s.groups * s.out_channels);
  for (size_t i = 0; i < spatial; ++i) {
    const size_t axis = first + i;
    s.in[axis] = x[2 + i];
    s.kernel[axis] = w[2 + i];
    s.stride[axis] = strides.empty() ? 1 : strides[i];
    s.dilation[axis] = dilations.empty() ? 1 : dilations[i];
    const bool padded = !pads.empty() && auto_pad != "VALID";
    s.pad[axis] = padded ? pads[i] : 0;
    const int64_t end = padded ? pads[i + spatial] : 0, more = extra.empty() ? 0 : extra[i];
    for (const int64_t number : {s.in[axis], s.kernel[axis], s.stride[axis], s.dilation[axis]})
      if (number < 1 || number >= kLimit) return std::nullopt;
    for (const int64_t number : {s.pad[axis], end, more})
      if (number < 0 || number >= kLimit) return std::nullopt;
    if (!kernel.empty() && kernel[i] != s.kernel[axis]) return std::nullopt;
    s.out[axis] = (s.in[axis] - 1) * s.stride[axis] + more + s.extent(static_cast<int>(axis)) -
                  s.pad[axis] - end;
    if (s.out[axis] < 1 || s.out[axis] >= kLimit) return std::nullopt;
    floats *= static_cast<double>(s.out[axis]);
  }
  if (floats > 1e9) return std::nullopt;
  if (q.has_input(2) && (q.dims(2).size() != 1 || q.dims(2)[0] != s.groups * s.out_channels))
    return std::nullopt;
  return s;
}

bool supports_transposed(const KernelQuery& query) { return read_transposed(query).has_value(); }

/// [group][input][output x tap] to [group][output x tap][input], packed.
void pack_transposed(const TransposedState& state, const float* w, float* packed) {
  const ConvGeometry& s = state.shape;
  const int64_t inputs = s.in_channels, rows = state.product.shape.out_channels;
  std::vector<float> turned(static_cast<size_t>(s.groups * inputs * rows));
  for (int64_t g = 0; g < s.groups; ++g)
    transpose_tile(reinterpret_cast<const std::byte*>(w + g * inputs * rows), rows,
                   reinterpret_cast<std::byte*>(turned.data() + g * inputs * rows), inputs, inputs,
                   rows, sizeof(float));
  pack_convolution(state.product, turned.data(), packed);
}

Result<std::unique_ptr<KernelState>> prepare_transposed(const PrepareContext& context) {
  auto state = std::make_unique<TransposedState>();
  const ConvGeometry s = *read_transposed(context);
  state->shape = s;
  ConvGeometry product;
  product.groups = s.groups;
  product.in_channels = s.in_channels;
  product.out_channels = s.out_channels * s.taps();
  product.in[2] = product.out[2] = s.in_plane();
  state->product = plan_convolution(product);
  const ConvPlan& plan = state->product;
  state->output = output_dims(s, s.groups * s.out_channels, context.dims(0).size() - 2);
  state->scratch_bytes =
      (plan.scratch_floats + static_cast<size_t>(s.groups * product.out_channels * s.in_plane()) +
       128) *
      sizeof(float);
  if (context.constant(1) == nullptr) {
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

Status run_transposed_conv(KernelRun& run) {
  const auto& state = run.state<TransposedState>();
  const ConvGeometry& s = state.shape;
  TRY(Tensor * y, run.output(0, DType::kFloat32, state.output));
  auto* scratch = reinterpret_cast<float*>(run.scratch());
  float* columns = scratch + (state.product.scratch_floats + 31) / 16 * 16;
  const float* packed = state.packed;
  if (packed == nullptr) {  // weights that are computed, those of a quantised network say
    float* target =
        columns + (s.groups * state.product.shape.out_channels * s.in_plane() + 31) / 16 * 16;
    pack_transposed(state, run.data<float>(1), target);
    packed = target;
  }
  const float* bias = run.has_input(2) ? run.data<float>(2) : nullptr;
  const int64_t outputs = s.groups * s.out_channels, plane = s.out_plane();
  const int64_t column_floats = s.taps() * s.in_plane();
  for (int64_t n = 0; n < s.batch; ++n) {
    run_convolution(state.product, run.data<float>(0) + n * s.groups * s.in_channels * s.in_plane(),
                    packed, columns, {}, scratch);
    float* to = y->data<float>() + n * outputs * plane;
    // Rows of all channels, one channel behind the other.
    const int64_t rows = s.out[0] * s.out[1];
    run.parallel_for(
        outputs * rows, std::max<int64_t>(1, 16384 / s.out[2]), [&](int64_t begin, int64_t end) {
          float* room = thread_floats(1, static_cast<size_t>(spread_room(s)));
          while (begin < end) {
            const int64_t c = begin / rows, first = begin % rows;
            const int64_t last = std::min(rows, first + end - begin);
            spread_rows(s, columns + c * column_floats, bias != nullptr ? bias[c] : 0.0f, first,
                        last, to + c * plane, room);
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
    .run = run_transposed_conv,
    .unaligned = 1u << 1,
};

}  // namespace tombolo
