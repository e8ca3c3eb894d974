#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "ops/infer_helpers.h"
#include "ops/kernels/compute.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {

/// A scalar input as a number.
Result<double> scalar_input(const KernelContext& context, size_t index, const char* name) {
  TRY(Tensor value, optional_as<double>(context, index));
  if (absent(value) || value.size() != 1)
    return context.error(std::string(name) + " must be a scalar");
  return value.data<double>()[0];
}

/// y[bins][bands]: a triangle down each column, between an edge and the second one after it.
template <typename T>
void fill_triangles(const std::vector<int64_t>& edges, int64_t bins, T* y) {
  const auto bands = static_cast<int64_t>(edges.size()) - 2;
  std::fill_n(y, bins * bands, T{0});
  // What lies beyond the spectrum has no bin to be written to.
  const auto inside = [&](int64_t bin) { return std::clamp<int64_t>(bin, 0, bins); };
  for (int64_t band = 0; band < bands; ++band) {
    const int64_t* edge = edges.data() + band;
    const int64_t left = edge[0], centre = edge[1], right = edge[2];
    const auto set = [&](int64_t bin, double value) {
      y[bin * bands + band] = static_cast<T>(value);
    };
    if (centre == left) {
      if (centre >= 0 && centre < bins) set(centre, 1);
    } else {
      for (int64_t bin = inside(left); bin < inside(centre + 1); ++bin)
        set(bin, static_cast<double>(bin - left) / static_cast<double>(centre - left));
    }
    for (int64_t bin = inside(centre); bin < inside(right); ++bin)
      set(bin, static_cast<double>(right - bin) / static_cast<double>(right - centre));
  }
}

Status run_mel_weight_matrix(KernelContext& context) {
  TRY(const double bands_given, scalar_input(context, 0, "num_mel_bins"));
  TRY(const double length, scalar_input(context, 1, "dft_length"));
  TRY(const double rate, scalar_input(context, 2, "sample_rate"));
  TRY(const double low, scalar_input(context, 3, "lower_edge_hertz"));
  TRY(const double high, scalar_input(context, 4, "upper_edge_hertz"));
  if (!(bands_given >= 0 && bands_given < 0x1p31) || !(length >= 0 && length < 0x1p40) ||
      !(rate > 0))
    return context.error("num_mel_bins is " + std::to_string(bands_given) + ", dft_length is " +
                         std::to_string(length) + ", sample_rate is " + std::to_string(rate));
  if (!(low > -700) || !(high > -700) || !std::isfinite(low) || !std::isfinite(high))
    return context.error("the edges are " + std::to_string(low) + " and " + std::to_string(high) +
                         " hertz");
  const auto type = dtype_from_number(context.attributes.get_int("output_datatype", 1));
  if (!type || is_string(*type) || is_complex(*type))
    return context.error("output_datatype is not a type of numbers");
  const auto bands = static_cast<int64_t>(bands_given);
  const int64_t bins = static_cast<int64_t>(length) / 2 + 1;
  // Edges of the triangles: evenly spaced on the mel scale, as bins of the spectrum.
  const auto mel = [](double hertz) { return 2595 * std::log10(1 + hertz / 700); };
  const double first = mel(low), step = (mel(high) - first) / static_cast<double>(bands + 2);
  CHECK_OK(context.host.reserve(static_cast<uint64_t>(bands + 2) * sizeof(int64_t)));
  std::vector<int64_t> edges(static_cast<size_t>(bands + 2));
  for (size_t i = 0; i < edges.size(); ++i) {
    const double hertz = 700 * (std::pow(10, (first + step * static_cast<double>(i)) / 2595) - 1);
    const double bin = std::floor((length + 1) * hertz / rate);
    edges[i] = static_cast<int64_t>(std::clamp(bin, -0x1p50, 0x1p50));
  }
  const std::array dims{bins, bands};
  if (*type == DType::kFloat32 || *type == DType::kFloat64) {
    TRY(Tensor * y, context.output(0, *type, dims));
    *type == DType::kFloat32 ? fill_triangles(edges, bins, y->data<float>())
                             : fill_triangles(edges, bins, y->data<double>());
    return ok();
  }
  TRY(Tensor y, context.allocate(DType::kFloat64, dims));
  fill_triangles(edges, bins, y.data<double>());
  return give(context, 0, *type, std::move(y));
}

}  // namespace

namespace {
Status infer_mel_weight_matrix(InferContext& context) {
  const auto dtype = dtype_from_number(context.attributes.get_int("output_datatype", 1));
  if (!dtype) return context.error("output_datatype is no type");
  const auto bins = scalar_of(context, 0), length = scalar_of(context, 1);
  context.set_tensor(
      0, *dtype, {length ? floor_div(*length, SymDim(2)) + 1 : SymDim(), bins ? *bins : SymDim()});
  return ok();
}
}  // namespace

OPERATOR(MelWeightMatrix) = {
    .name = "MelWeightMatrix",
    .doc = "matrix that maps spectrogram bins to mel bins",
    .versions = {17},
    .inputs =
        {
            {"num_mel_bins", "T1"},
            {"dft_length", "T1"},
            {"sample_rate", "T1"},
            {"lower_edge_hertz", "T2"},
            {"upper_edge_hertz", "T2"},
        },
    .outputs = {{"output", "T3"}},
    .attributes = {{"output_datatype", 1}},
    .types =
        {
            {"T1", {{17, kIndices}}},
            {"T2", {{17, kFloats | kBf16}}},
            {"T3", {{17, kNumbers | kBf16}}},
        },
    .infer = infer_mel_weight_matrix,
    .reference = run_mel_weight_matrix,
};

}  // namespace tombolo::ops
