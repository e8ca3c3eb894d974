// MaxPool with places, or of doubles, and MaxUnpool.

#include <algorithm>
#include <atomic>
#include <cstring>
#include <string>
#include <vector>

#include "runtime/kernels/conv/geometry.h"
#include "runtime/kernels/isa.h"
#include "runtime/kernels/kernel.h"
#include "runtime/kernels/pool/pool_places.h"

namespace tombolo {
namespace {

struct PlacesState final : KernelState {
  PoolPlaces pool;
  Dims output;
};

bool plan_places(const KernelQuery& q, PlacesState& s) {
  if (active_isa() == Isa::kScalar || q.dims(0).size() < 3 || element_count(q.dims(0)) < 1)
    return false;
  switch (q.dtype(0)) {
    case DType::kFloat64:
    case DType::kFloat32:
    case DType::kUInt8:
    case DType::kInt8:
      break;
    default:
      return false;
  }
  const auto window = read_sliding_window(q.attributes, q.dims(0).subspan(2), {},
                                          q.attributes.get_int("ceil_mode", 0) != 0);
  if (!window) return false;
  ConvGeometry& g = s.pool.shape;
  g = window->shape;
  if (g.in_plane() >= INT32_MAX || g.out_plane() < 1) return false;
  s.output = output_dims(g, q.dims(0)[1], q.dims(0).size() - 2);
  s.output[0] = q.dims(0)[0];
  const bool column_major = q.attributes.get_int("storage_order", 0) == 1;
  s.pool.step[0] = column_major ? 1 : g.in[1] * g.in[2];
  s.pool.step[1] = column_major ? g.in[0] : g.in[2];
  s.pool.step[2] = column_major ? g.in[0] * g.in[1] : 1;
  return true;
}
bool supports_places(const KernelQuery& q) {
  PlacesState state;
  return plan_places(q, state);
}
Result<std::unique_ptr<KernelState>> prepare_places(const PrepareContext& q) {
  auto state = std::make_unique<PlacesState>();
  plan_places(q, *state);
  return state;
}

template <typename T>
void pool_planes(KernelRun& run, Tensor& y, Tensor* indices) {
  const PoolPlaces& pool = run.state<PlacesState>().pool;
  const T* x = run.data<T>(0);
  const int64_t in = pool.shape.in_plane(), out = pool.shape.out_plane();
  int64_t* places = indices == nullptr ? nullptr : indices->data<int64_t>();
  run.parallel_for(y.size() / out, grain_of(out * pool.shape.taps(), 1 << 14),
                   [&](int64_t begin, int64_t end) {
                     for (int64_t p = begin; p < end; ++p)
                       pool_places(pool, x + p * in, p * in, y.data<T>() + p * out,
                                   places == nullptr ? nullptr : places + p * out);
                   });
}

Status run_places(KernelRun& run) {
  const auto& s = run.state<PlacesState>();
  const DType dtype = run.input(0).dtype();
  TRY(Tensor * y, run.output(0, dtype, s.output));
  Tensor* indices = nullptr;
  if (run.wants_output(1)) {
    TRY(indices, run.output(1, DType::kInt64, s.output));
  }
  switch (dtype) {
    case DType::kFloat64:
      pool_planes<double>(run, *y, indices);
      break;
    case DType::kFloat32:
      pool_planes<float>(run, *y, indices);
      break;
    case DType::kUInt8:
      pool_planes<uint8_t>(run, *y, indices);
      break;
    default:
      pool_planes<int8_t>(run, *y, indices);
  }
  return ok();
}

// MaxUnpool.

struct UnpoolState final : KernelState {
  Dims counted;                ///< the shape in which places count: what the attributes give
  Dims output;                 ///< as given, or the same
  std::vector<int32_t> moved;  ///< where the places of a plane lie in a larger output

  int64_t plane() const { return element_count(counted) / (counted[0] * counted[1]); }
  int64_t place_in_output(int64_t place) const {
    int64_t step = 1, result = 0;
    for (uint32_t j = counted.size(); j-- > 2; step *= output[j]) {
      result += place % counted[j] * step;
      place /= counted[j];
    }
    return result;
  }
};

bool plan_unpool(const KernelQuery& q, UnpoolState& s) {
  if (active_isa() == Isa::kScalar || q.inputs.size() < 2 || q.dtype(1) != DType::kInt64 ||
      (q.dtype(0) != DType::kFloat32 && q.dtype(0) != DType::kFloat64))
    return false;
  const auto x = q.dims(0);
  if (x.size() < 3 || Dims(x) != Dims(q.dims(1)) || element_count(x) < 1) return false;
  const auto kernel = q.attributes.get_ints("kernel_shape"),
             strides = q.attributes.get_ints("strides"), pads = q.attributes.get_ints("pads");
  const size_t axes = x.size() - 2;
  if (kernel.size() != axes || (!strides.empty() && strides.size() != axes) ||
      (!pads.empty() && pads.size() != 2 * axes))
    return false;
  s.counted = {x[0], x[1]};
  for (size_t j = 0; j < axes; ++j) {
    const int64_t stride = strides.empty() ? 1 : strides[j];
    const int64_t begin = pads.empty() ? 0 : pads[j], end = pads.empty() ? 0 : pads[j + axes];
    constexpr int64_t kMost = 1 << 20;
    if (x[2 + j] > kMost || kernel[j] < 1 || kernel[j] > kMost || stride < 1 || stride > kMost ||
        begin < 0 || begin > kMost || end < 0 || end > kMost)
      return false;
    s.counted.push_back((x[2 + j] - 1) * stride + kernel[j] - begin - end);
    if (s.counted.back() < 1) return false;
  }
  s.output = s.counted;
  if (q.has_input(2)) {
    const Tensor* shape = q.constant(2);
    if (shape == nullptr || shape->dtype() != DType::kInt64 ||
        shape->size() != static_cast<int64_t>(x.size()))
      return false;
    s.output.assign(std::span(shape->data<int64_t>(), x.size()));
    // What cuts off places is left to the reference, which says so.
    for (size_t j = 0; j < x.size(); ++j)
      if (s.output[j] < s.counted[j] || (j < 2 && s.output[j] != s.counted[j])) return false;
  }
  return element_count(s.output) > 0 &&
         element_count(s.output) / (s.output[0] * s.output[1]) <= INT32_MAX;
}
bool supports_unpool(const KernelQuery& q) {
  UnpoolState state;
  return plan_unpool(q, state);
}
Result<std::unique_ptr<KernelState>> prepare_unpool(const PrepareContext& q) {
  auto state = std::make_unique<UnpoolState>();
  plan_unpool(q, *state);
  // Where only the first axis of a plane is longer, places stay.
  if (std::equal(state->output.begin() + 3, state->output.end(), state->counted.begin() + 3))
    return state;
  state->moved.resize(static_cast<size_t>(state->plane()));
  for (size_t i = 0; i < state->moved.size(); ++i)
    state->moved[i] = static_cast<int32_t>(state->place_in_output(static_cast<int64_t>(i)));
  return state;
}

template <typename T>
Status unpool(KernelRun& run, Tensor& y) {
  const auto& s = run.state<UnpoolState>();
  const Tensor& x = run.input(0);
  const T* from = x.data<T>();
  const int64_t* places = run.data<int64_t>(1);
  T* to = y.data<T>();
  const int64_t planes = x.dim(0) * x.dim(1), in = x.size() / planes, out = y.size() / planes;
  const int64_t counted = s.plane(), all = counted * planes;
  // Each plane into its own part of the output, as MaxPool gives them. Where one reaches into
  // another, the order of writing counts: all of it again, in order.
  std::atomic<bool> crosses = false;
  run.parallel_for(planes, grain_of(out, 1 << 14), [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) {
      T* plane = to + p * out;
      std::memset(plane, 0, static_cast<size_t>(out) * sizeof(T));
      bool inside = true;
      const auto put = [&](auto&& place_of) {
        for (int64_t i = p * in; i < (p + 1) * in; ++i) {
          const auto at = static_cast<uint64_t>(places[i] - p * counted);
          if (at < static_cast<uint64_t>(counted))
            plane[place_of(at)] = from[i];
          else
            inside = false;
        }
      };
      if (s.moved.empty())
        put([](uint64_t at) { return at; });
      else
        put([&](uint64_t at) { return s.moved[at]; });
      if (!inside) crosses = true;
    }
  });
  if (!crosses) return ok();
  std::memset(to, 0, static_cast<size_t>(y.size()) * sizeof(T));
  const bool same = s.output == s.counted;
  for (int64_t i = 0; i < x.size(); ++i) {
    const int64_t place = places[i];
    if (place < 0 || place >= all)
      return runtime_error("index " + std::to_string(place) + " is outside the output, which is " +
                           dims_to_string(s.counted));
    if (same)
      to[place] = from[i];
    else
      to[place / counted * out + s.place_in_output(place % counted)] = from[i];
  }
  return ok();
}

Status run_unpool(KernelRun& run) {
  const DType dtype = run.input(0).dtype();
  TRY(Tensor * y, run.output(0, dtype, run.state<UnpoolState>().output));
  return dtype == DType::kFloat32 ? unpool<float>(run, *y) : unpool<double>(run, *y);
}

}  // namespace

// What only wants the numbers, of a type that it has, is left to max_pool.
KERNEL(max_pool_places) = {
    .name = "max_pool_places",
    .op = "MaxPool",
    .supports = supports_places,
    .prepare = prepare_places,
    .run = run_places,
    .priority = -1,
};
KERNEL(max_unpool) = {
    .name = "max_unpool",
    .op = "MaxUnpool",
    .supports = supports_unpool,
    .prepare = prepare_unpool,
    .run = run_unpool,
    .values = 1 << 2,
};

}  // namespace tombolo
