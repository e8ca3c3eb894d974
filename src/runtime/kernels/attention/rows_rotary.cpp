// RotaryEmbedding of floats: ai.onnx and com.microsoft.

#include <algorithm>
#include <string>

#include "runtime/kernels/attention/rotate.h"
#include "runtime/kernels/isa.h"
#include "runtime/kernels/kernel.h"

namespace tombolo {
namespace {

struct RotaryState final : KernelState {
  int64_t batch = 1, heads = 1, steps = 1, size = 1, half = 1;
  bool packed = false;  ///< [batch, steps, heads * size], else [batch, heads, steps, size]
  bool interleaved = false;
  size_t cosine = 1, positions = 3;  ///< inputs; the sine follows the cosine
  bool by_position = false;          ///< the caches are rows that positions pick
  bool offset = false;               ///< one position for all: where counting starts
};

bool plan_rotary(const KernelQuery& q, bool microsoft, RotaryState& s) {
  s.cosine = microsoft ? 2 : 1;
  s.positions = microsoft ? 1 : 3;
  if (active_isa() == Isa::kScalar || q.inputs.size() < s.cosine + 2) return false;
  for (const size_t i : {size_t{0}, s.cosine, s.cosine + 1})
    if (q.dtype(i) != DType::kFloat32) return false;
  const auto x = q.dims(0), cosine = q.dims(s.cosine);
  if ((x.size() != 3 && x.size() != 4) || element_count(x) < 1 ||
      Dims(cosine) != Dims(q.dims(s.cosine + 1)) || cosine.size() < 2)
    return false;
  s.packed = x.size() == 3;
  s.half = cosine.back();
  s.batch = x[0];
  s.steps = x[s.packed ? 1 : 2];
  const int64_t given = q.attributes.get_int("rotary_embedding_dim", 0);
  s.heads = s.packed ? q.attributes.get_int("num_heads", 0) : x[1];
  if (s.heads < 1 || (s.packed && x[2] % s.heads != 0)) return false;
  s.size = s.packed ? x[2] / s.heads : x[3];
  if (s.half < 1 || 2 * s.half > s.size) return false;
  if (microsoft ? given > 0 && given != 2 * s.half : 2 * s.half != (given == 0 ? s.size : given))
    return false;
  s.interleaved = q.attributes.get_int("interleaved", 0) != 0;
  s.by_position = q.has_input(s.positions);
  if (!s.by_position) return !microsoft && Dims(cosine) == Dims({s.batch, s.steps, s.half});
  if (q.dtype(s.positions) != DType::kInt64 || cosine.size() != 2) return false;
  const auto positions = q.dims(s.positions);
  if (Dims(positions) == Dims({s.batch, s.steps})) return true;
  s.offset = microsoft && element_count(positions) == 1 && positions.size() < 2;
  return s.offset;
}

template <bool kMicrosoft>
bool supports_rotary(const KernelQuery& q) {
  RotaryState state;
  return plan_rotary(q, kMicrosoft, state);
}
template <bool kMicrosoft>
Result<std::unique_ptr<KernelState>> prepare_rotary(const PrepareContext& q) {
  auto state = std::make_unique<RotaryState>();
  plan_rotary(q, kMicrosoft, *state);
  return state;
}

Status run_rotary(KernelRun& run) {
  const auto& s = run.state<RotaryState>();
  const Tensor& x = run.input(0);
  const Tensor& cosines = run.input(s.cosine);
  const int64_t* positions = s.by_position ? run.data<int64_t>(s.positions) : nullptr;
  const auto row_of = [&](int64_t n, int64_t t) {
    if (positions == nullptr) return n * s.steps + t;
    return s.offset ? positions[0] + t : positions[n * s.steps + t];
  };
  if (positions != nullptr)
    for (int64_t n = 0; n < s.batch; ++n)
      for (int64_t t = 0; t < s.steps; ++t)
        if (row_of(n, t) < 0 || row_of(n, t) >= cosines.dim(0))
          return runtime_error("position_ids has the value " + std::to_string(row_of(n, t)) +
                               ", the caches have " + std::to_string(cosines.dim(0)) + " rows");
  TRY(Tensor * y, run.output(0, DType::kFloat32, x.dims()));
  const float *from = x.data<float>(), *cosine = cosines.data<float>(),
              *sine = run.data<float>(s.cosine + 1);
  float* to = y->data<float>();
  run.parallel_for(
      s.batch * s.heads * s.steps, std::max<int64_t>(1, (1 << 14) / s.size),
      [&](int64_t begin, int64_t end) {
        // Where this part begins; from there on places are counted, not divided.
        int64_t n = begin / (s.heads * s.steps);
        int64_t t = s.packed ? begin / s.heads % s.steps : begin % s.steps;
        int64_t head = s.packed ? begin % s.heads : begin / s.steps % s.heads;
        const auto advance = [](int64_t& inner, int64_t inners, int64_t& outer, int64_t outers) {
          if (++inner < inners) return false;
          inner = 0;
          if (++outer < outers) return false;
          outer = 0;
          return true;
        };
        constexpr int64_t kSome = 64;
        int64_t rows[kSome];
        for (int64_t v = begin; v < end; v += kSome) {
          const int64_t some = std::min(kSome, end - v);
          for (int64_t i = 0; i < some; ++i) {
            rows[i] = row_of(n, t);
            n += s.packed ? advance(head, s.heads, t, s.steps) : advance(t, s.steps, head, s.heads);
          }
          rotate_rows(from + v * s.size, to + v * s.size, some, s.size, s.half, cosine, sine, rows,
                      s.interleaved);
        }
      });
  return ok();
}

}  // namespace

KERNEL(rotary_embedding) = {
    .name = "rotary_embedding",
    .op = "RotaryEmbedding",
    .supports = supports_rotary<false>,
    .prepare = prepare_rotary<false>,
    .run = run_rotary,
    .in_place = 1,
};
KERNEL(ms_rotary_embedding) = {
    .name = "rotary_embedding",
    .op = "RotaryEmbedding",
    .domain = "com.microsoft",
    .supports = supports_rotary<true>,
    .prepare = prepare_rotary<true>,
    .run = run_rotary,
    .in_place = 1,
};

}  // namespace tombolo
