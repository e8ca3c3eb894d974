// DecoderMaskedMultiHeadAttention of com.microsoft, and MultiHeadAttention with a buffer for past
// and present, in floats: one query a sequence, with a cache whose steps may come from other beams.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <string>

#include "runtime/kernels/attention/attention.h"
#include "runtime/kernels/isa.h"
#include "runtime/kernels/kernel.h"
#include "runtime/kernels/matmul/gemm.h"

namespace tombolo {
namespace {

constexpr size_t kNone = 99;

/// Where the inputs lie; those of query, key and value are 0 to 2.
struct Ports {
  size_t bias, mask, score_bias, past_key, past_value, past_length, beams, indirection;
};
constexpr Ports kMultiHead = {3, 4, 5, 6, 7, 8, kNone, kNone};
constexpr Ports kDecoderMasked = {10, 3, 4, 5, 6, 7, 8, 9};

struct DecoderMaskedState final : KernelState {
  Ports ports = {};
  int64_t batch = 1, heads = 1, size = 1, value_size = 1;
  int64_t capacity = 0;  ///< steps of the cache, or of the keys of cross-attention
  bool cross = false;    ///< keys and values come as heads, and nothing is added to them
  bool grows = false;    ///< the cache put out is one step longer
  float scale = 1, filter = 0;
  int64_t bias_batch = 0, bias_head = 0, bias_columns = 0;  ///< strides of attention_bias
};

bool is_float(const KernelQuery& q, size_t index) { return q.dtype(index) == DType::kFloat32; }

bool plan_decoder_masked(const KernelQuery& q, const Ports& at, DecoderMaskedState& s) {
  s.ports = at;
  if (active_isa() == Isa::kScalar) return false;
  for (const size_t i : {size_t(0), size_t(1), size_t(2)})
    if (!q.has_input(i) || !is_float(q, i) || element_count(q.dims(i)) < 1) return false;
  const auto query = q.dims(0), key = q.dims(1), value = q.dims(2);
  s.heads = q.attributes.get_int("num_heads", 0);
  if (query.size() != 3 || query[1] != 1 || s.heads < 1 || query[2] % s.heads != 0) return false;
  s.batch = query[0];
  s.size = query[2] / s.heads;
  s.cross = key.size() == 4;
  if (s.cross) {
    if (q.has_input(at.past_key) || q.has_input(at.past_value) || q.wants_output(1) ||
        q.wants_output(2) || value.size() != 4)
      return false;
    s.capacity = key[2];
    s.value_size = value[3];
    if (Dims(key) != Dims{s.batch, s.heads, s.capacity, s.size} ||
        Dims(value) != Dims{s.batch, s.heads, s.capacity, s.value_size})
      return false;
  } else {
    if (Dims(key) != Dims(query) || value.size() != 3 || value[0] != s.batch || value[1] != 1 ||
        value[2] % s.heads != 0 || !q.has_input(at.past_key) || !q.has_input(at.past_value))
      return false;
    s.value_size = value[2] / s.heads;
    if (!is_float(q, at.past_key) || !is_float(q, at.past_value) || q.dims(at.past_key).size() != 4)
      return false;
    s.capacity = q.dims(at.past_key)[2];
    if (Dims(q.dims(at.past_key)) != Dims{s.batch, s.heads, s.capacity, s.size} ||
        Dims(q.dims(at.past_value)) != Dims{s.batch, s.heads, s.capacity, s.value_size})
      return false;
    s.grows = !q.has_input(at.past_length);
    if (!s.grows &&
        (q.inputs[at.past_length].size() != 1 ||
         (q.dtype(at.past_length) != DType::kInt32 && q.dtype(at.past_length) != DType::kInt64)))
      return false;
  }
  if (q.has_input(at.bias) &&
      (!is_float(q, at.bias) ||
       Dims(q.dims(at.bias)) != Dims{s.heads * (2 * s.size + s.value_size)}))
    return false;
  // [batch, columns]; how many columns there are shows when it runs.
  if (q.has_input(at.mask) && (q.dtype(at.mask) != DType::kInt32 || q.dims(at.mask).size() != 2 ||
                               q.dims(at.mask)[0] != s.batch))
    return false;
  if (q.has_input(at.score_bias)) {
    const auto bias = q.dims(at.score_bias);
    if (!is_float(q, at.score_bias) || bias.size() != 4 || (bias[0] != 1 && bias[0] != s.batch) ||
        (bias[1] != 1 && bias[1] != s.heads) || bias[2] != 1)
      return false;
    s.bias_columns = bias[3];
    s.bias_head = bias[1] == 1 ? 0 : bias[3];
    s.bias_batch = bias[0] == 1 ? 0 : bias[1] * bias[3];
  }
  if (q.has_input(at.beams) &&
      (q.dtype(at.beams) != DType::kInt32 || q.inputs[at.beams].size() != 1))
    return false;
  if (q.has_input(at.indirection) &&
      (q.dtype(at.indirection) != DType::kInt32 || q.dims(at.indirection).size() != 3))
    return false;
  const float scale = q.attributes.get_float("scale", 0);
  s.scale = scale != 0 ? scale : static_cast<float>(1 / std::sqrt(static_cast<double>(s.size)));
  s.filter = q.attributes.get_float("mask_filter_value", -10000.0f);
  return true;
}

template <const Ports& kAt>
bool supports_decoder_masked(const KernelQuery& query) {
  DecoderMaskedState state;
  return plan_decoder_masked(query, kAt, state);
}

template <const Ports& kAt>
Result<std::unique_ptr<KernelState>> prepare_decoder_masked(const PrepareContext& context) {
  auto state = std::make_unique<DecoderMaskedState>();
  plan_decoder_masked(context, kAt, *state);
  return state;
}

/// Which beam has each step of each sequence.
struct Beams {
  const int32_t* of = nullptr;  ///< null: each sequence has its own
  int64_t count = 1, steps = 0;

  /// The first step after `t` that another beam has.
  int64_t end_of_run(int64_t sequence, int64_t t, int64_t end) const {
    if (of == nullptr) return end;
    const int32_t* beam = of + sequence * steps;
    int64_t to = t + 1;
    while (to < end && beam[to] == beam[t]) ++to;
    return to;
  }
  int64_t source(int64_t sequence, int64_t t) const {
    return of == nullptr ? sequence : sequence / count * count + of[sequence * steps + t];
  }
};

Result<Beams> read_beams(const KernelRun& run, const DecoderMaskedState& s, int64_t before) {
  Beams beams;
  if (!run.has_input(s.ports.indirection) || !run.has_input(s.ports.beams) || s.cross) return beams;
  const Tensor& indirection = run.input(s.ports.indirection);
  beams.count = run.input(s.ports.beams).get_int64(0);
  beams.steps = indirection.dim(2);
  beams.of = indirection.data<int32_t>();
  if (beams.count < 1 || s.batch % beams.count != 0 ||
      indirection.dim(0) != s.batch / beams.count || indirection.dim(1) != beams.count ||
      beams.steps < before)
    return runtime_error("cache_indirection must be [batch, beams, steps], is " +
                         to_string(indirection));
  for (int64_t b = 0; b < s.batch; ++b)
    for (int64_t t = 0; t < before; ++t)
      if (beams.of[b * beams.steps + t] < 0 || beams.of[b * beams.steps + t] >= beams.count)
        return runtime_error("cache_indirection has the value " +
                             std::to_string(beams.of[b * beams.steps + t]) + ", there are " +
                             std::to_string(beams.count) + " beams");
  return beams;
}

/// One head of the caches that are put out: the old one with a new step in it.
void put_out(const float* old, int64_t capacity, const float* now, int64_t before, int64_t size,
             bool grows, float* to) {
  std::memcpy(to, old, static_cast<size_t>(capacity * size) * sizeof(float));
  std::memcpy(to + (grows ? capacity : before) * size, now,
              static_cast<size_t>(size) * sizeof(float));
}

Status run_decoder_masked(KernelRun& run) {
  const auto& s = run.state<DecoderMaskedState>();
  const Ports& at = s.ports;
  int64_t before = s.capacity;
  if (!s.cross && !s.grows) before = run.input(at.past_length).get_int64(0);
  if (before < 0 || before > s.capacity - (s.cross || s.grows ? 0 : 1))
    return runtime_error("past_sequence_length is " + std::to_string(before) +
                         ", the buffer holds " + std::to_string(s.capacity) + " steps");
  const int64_t columns = before + (s.cross ? 0 : 1);
  if (run.has_input(at.mask) && run.input(at.mask).dim(1) != columns)
    return runtime_error("the mask must have " + std::to_string(columns) + " columns, is " +
                         to_string(run.input(at.mask)));
  if (run.has_input(at.score_bias) && s.bias_columns != columns)
    return runtime_error("attention_bias must have " + std::to_string(columns) + " columns, is " +
                         to_string(run.input(at.score_bias)));
  TRY(const Beams beams, read_beams(run, s, before));
  const int64_t width = s.heads * s.value_size, room = s.capacity + (s.grows ? 1 : 0);
  TRY(Tensor * y, run.output(0, DType::kFloat32, {{s.batch, 1, width}}));
  float* present[2] = {};
  float* kept = nullptr;
  for (const size_t i : {size_t(1), size_t(2)})
    if (run.wants_output(i)) {
      TRY(Tensor * cache, run.output(i, DType::kFloat32,
                                     {{s.batch, s.heads, room, i == 1 ? s.size : s.value_size}}));
      present[i - 1] = cache->data<float>();
    }
  if (run.wants_output(3)) {
    TRY(Tensor * scores, run.output(3, DType::kFloat32, {{s.batch, s.heads, 1, columns}}));
    kept = scores->data<float>();
  }
  const float* keys = run.data<float>(s.cross ? 1 : at.past_key);
  const float* values = run.data<float>(s.cross ? 2 : at.past_value);
  const float* bias = run.has_input(at.bias) ? run.data<float>(at.bias) : nullptr;
  const float* score_bias = run.has_input(at.score_bias) ? run.data<float>(at.score_bias) : nullptr;
  const int32_t* mask = run.has_input(at.mask) ? run.data<int32_t>(at.mask) : nullptr;
  const int64_t hidden = s.heads * s.size, ld = columns + 16;
  run.parallel_for(
      s.batch * s.heads, std::max<int64_t>(1, 8192 / ((columns + 1) * s.size)),
      [&](int64_t begin, int64_t end) {
        float* scores =
            thread_floats(1, static_cast<size_t>(2 * ld + 2 * s.size + s.value_size + 16));
        float *added = scores + ld, *q = added + ld, *k = q + s.size, *v = k + s.size;
        // A head of query, key or value with its part of the bias.
        const auto head_of = [&](size_t input, int64_t i, int64_t size, int64_t part, float* to) {
          const float* from = run.data<float>(input) + i * size;
          for (int64_t j = 0; j < size; ++j)
            to[j] = from[j] + (bias != nullptr ? bias[part + i % s.heads * size + j] : 0.0f);
        };
        for (int64_t i = begin; i < end; ++i) {
          const int64_t b = i / s.heads, h = i % s.heads;
          head_of(0, i, s.size, 0, q);
          if (!s.cross) {
            head_of(1, i, s.size, hidden, k);
            head_of(2, i, s.value_size, 2 * hidden, v);
            if (present[0] != nullptr)
              put_out(keys + i * s.capacity * s.size, s.capacity, k, before, s.size, s.grows,
                      present[0] + i * room * s.size);
            if (present[1] != nullptr)
              put_out(values + i * s.capacity * s.value_size, s.capacity, v, before, s.value_size,
                      s.grows, present[1] + i * room * s.value_size);
          }
          const auto line = [&](int64_t t) {
            return (beams.source(b, t) * s.heads + h) * s.capacity + t;
          };
          for (int64_t t = 0; t < before;) {
            const int64_t to = beams.end_of_run(b, t, before);
            dot_rows(q, keys + line(t) * s.size, s.size, to - t, s.size, scores + t);
            t = to;
          }
          if (!s.cross) dot_rows(q, k, s.size, 1, s.size, scores + before);
          const float* adds =
              score_bias != nullptr ? score_bias + b * s.bias_batch + h * s.bias_head : nullptr;
          if (mask != nullptr) {
            for (int64_t j = 0; j < columns; ++j)
              added[j] = (mask[b * columns + j] > 0 ? 0.0f : s.filter) +
                         (adds != nullptr ? adds[j] : 0.0f);
            adds = added;
          }
          const float most = scale_scores(scores, columns, s.scale, adds);
          if (kept != nullptr) std::copy_n(scores, columns, kept + i * columns);
          float factor = 0;
          if (most != -std::numeric_limits<float>::infinity() ||
              std::any_of(scores, scores + columns, [](float x) { return std::isnan(x); }))
            factor = 1 / powers_of_scores(scores, columns, most);
          float* out = y->data<float>() + i * s.value_size;
          std::fill_n(out, s.value_size, 0.0f);
          if (factor == 0) continue;
          for (int64_t t = 0; t < before;) {
            const int64_t to = beams.end_of_run(b, t, before);
            add_weighted_rows(scores + t, values + line(t) * s.value_size, s.value_size, to - t,
                              s.value_size, out);
            t = to;
          }
          if (!s.cross) add_weighted_rows(scores + before, v, s.value_size, 1, s.value_size, out);
          for (int64_t j = 0; j < s.value_size; ++j) out[j] *= factor;
        }
      });
  return ok();
}

}  // namespace

KERNEL(decoder_masked_attention_f32) = {
    .name = "decoder_masked_attention_f32",
    .op = "DecoderMaskedMultiHeadAttention",
    .domain = "com.microsoft",
    .supports = supports_decoder_masked<kDecoderMasked>,
    .prepare = prepare_decoder_masked<kDecoderMasked>,
    .run = products<run_decoder_masked>,
};
KERNEL(multi_head_attention_step_f32) = {
    .name = "multi_head_attention_step_f32",
    .op = "MultiHeadAttention",
    .domain = "com.microsoft",
    .supports = supports_decoder_masked<kMultiHead>,
    .prepare = prepare_decoder_masked<kMultiHead>,
    .run = products<run_decoder_masked>,
};

}  // namespace tombolo
