// LSTM, GRU and RNN of floats with their usual activations: one product for the inputs of all
// steps, one a step for the state, the gates by vectors. DynamicQuantizeLSTM is LSTM but for its
// weights, which are of 8 bits, and inputs and states, which are rounded to 8 bits on the way.

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <vector>

#include "runtime/kernels/gemm.h"
#include "runtime/kernels/isa.h"
#include "runtime/kernels/kernel.h"
#include "runtime/kernels/qgemm.h"
#include "runtime/kernels/quantize.h"
#include "runtime/kernels/unary.h"

namespace tombolo {
namespace {

/// W or R of DynamicQuantizeLSTM, all directions: panels, then the sums of their columns.
struct ByteWeights {
  const std::byte* packed = nullptr;  ///< null: zero points are not in the middle
  size_t step = 0, panel_bytes = 0;   ///< from direction to direction; of the panels
  std::vector<float> scales;          ///< one a column
};

struct RecurrentState final : KernelState {
  int64_t steps = 1, batch = 1, input = 1, hidden = 1, directions = 1, gates = 4;
  bool reversed[2] = {false, false};
  bool linear_before_reset = false;
  bool coarse = false;  ///< DynamicQuantizeLSTM
  ByteWeights bytes[2];
  const float *w = nullptr, *r = nullptr;       ///< packed, one direction after the other
  int64_t w_step = 0, r_step = 0, r_gates = 0;  ///< r_gates: floats of the first two gates of GRU

  int64_t room = 0;  ///< floats of scratch memory of a direction

  int64_t width() const { return gates * hidden; }
};

bool usual_activations(const AttributeReader& attributes, int64_t gates) {
  const auto given = attributes.get_strings("activations");
  const size_t each = gates == 4 ? 3 : gates == 3 ? 2 : 1;
  for (size_t i = 0; i < given.size(); ++i) {
    std::string name(given[i]);
    for (char& c : name)
      if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    if (name != (i % each == 0 && gates != 1 ? "sigmoid" : "tanh")) return false;
  }
  return given.empty() || given.size() % each == 0;
}

/// DynamicQuantizeLSTM: inputs behind those of LSTM.
constexpr size_t kScales = 8;

/// Constant weights of 8 bits, and their scales and zero points: one a direction, or one a column.
bool quantised_weights(const KernelQuery& q) {
  if (q.inputs.size() != kScales + 4) return false;
  for (const size_t i : {size_t(1), size_t(2)}) {
    const size_t scale = kScales + 2 * (i - 1), zero = scale + 1;
    const Tensor *codes = q.constant(i), *scales = q.constant(scale), *zeros = q.constant(zero);
    if (codes == nullptr || scales == nullptr || zeros == nullptr || codes->rank() != 3 ||
        scales->dtype() != DType::kFloat32 || zeros->dtype() != codes->dtype() ||
        (codes->dtype() != DType::kInt8 && codes->dtype() != DType::kUInt8))
      return false;
    for (const int64_t size : {scales->size(), zeros->size()})
      if (size != codes->dim(0) && size != codes->dim(0) * codes->dim(2)) return false;
  }
  return true;
}

bool plan_recurrent(const KernelQuery& q, int64_t gates, RecurrentState& s) {
  s.coarse = q.node.domain() == "com.microsoft";
  if (active_isa() == Isa::kScalar || q.inputs.size() < 3 || (!s.coarse && q.opset < 7))
    return false;
  if (s.coarse && !quantised_weights(q)) return false;
  for (size_t i = 0; i < std::min(q.inputs.size(), kScales); ++i)
    if (i != 4 && !(s.coarse && (i == 1 || i == 2)) && q.has_input(i) &&
        q.dtype(i) != DType::kFloat32)
      return false;
  const auto& attributes = q.attributes;
  if ((q.has_input(4) && s.coarse) || q.has_input(7) || attributes.has("clip") ||
      attributes.get_int("layout", 0) != 0 || attributes.get_int("input_forget", 0) != 0 ||
      !usual_activations(attributes, gates) || q.constant(1) == nullptr || q.constant(2) == nullptr)
    return false;
  const Text direction = attributes.get_string("direction", "forward");
  if (direction != "forward" && direction != "reverse" && direction != "bidirectional")
    return false;
  const auto x = q.dims(0), w = q.dims(1), r = q.dims(2);
  if (x.size() != 3 || w.size() != 3 || r.size() != 3 || element_count(x) < 1) return false;
  s.gates = gates;
  s.steps = x[0];
  s.batch = x[1];
  s.input = x[2];
  s.directions = direction == "bidirectional" ? 2 : 1;
  if (q.has_input(4) && (q.dtype(4) != DType::kInt32 || Dims(q.dims(4)) != Dims{s.batch}))
    return false;
  s.reversed[0] = direction == "reverse";
  s.reversed[1] = true;
  s.hidden = r[s.coarse ? 1 : 2];
  s.linear_before_reset = attributes.get_int("linear_before_reset", 0) != 0;
  const auto of = [&](int64_t rows) {
    return s.coarse ? Dims{s.directions, rows, s.width()} : Dims{s.directions, s.width(), rows};
  };
  if (attributes.get_int("hidden_size", s.hidden) != s.hidden || s.hidden < 1 ||
      Dims(w) != of(s.input) || Dims(r) != of(s.hidden))
    return false;
  if (q.has_input(3) && Dims(q.dims(3)) != Dims{s.directions, 2 * s.width()}) return false;
  for (size_t i = 5; i < 7; ++i)
    if (q.has_input(i) && Dims(q.dims(i)) != Dims{s.directions, s.batch, s.hidden}) return false;
  return true;
}

template <int64_t kGates>
bool supports_recurrent(const KernelQuery& query) {
  RecurrentState state;
  return plan_recurrent(query, kGates, state);
}

/// The weights of one direction as floats, and the steps from row to row (of x or h) and from
/// column to column.
struct Weights {
  const float* data;
  int64_t row, column;
};
Weights weights_of(const PrepareContext& context, const RecurrentState& s, size_t index,
                   int64_t direction, std::vector<float>& room) {
  const int64_t rows = index == 1 ? s.input : s.hidden, width = s.width();
  const int64_t start = direction * rows * width;
  if (!s.coarse) return {context.constant(index)->data<float>() + start, 1, rows};
  const Tensor& codes = *context.constant(index);
  const size_t scale_at = kScales + 2 * (index - 1);
  Tensor copies[2];
  const Tensor &scales = context.aligned_constant(scale_at, copies[0]),
               &zeros = context.aligned_constant(scale_at + 1, copies[1]);
  const auto of = [&](const Tensor& x, int64_t column) {
    return x.size() == s.directions ? direction : direction * width + column;
  };
  room.resize(static_cast<size_t>(rows * width));
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < width; ++j) {
      const int64_t code = codes.get_int64(start + i * width + j) - zeros.get_int64(of(zeros, j));
      room[static_cast<size_t>(i * width + j)] =
          static_cast<float>(code) * scales.data<float>()[of(scales, j)];
    }
  return {room.data(), width, 1};
}

/// Packs codes as they are where what they stand for is a multiple of them.
Status pack_bytes(const PrepareContext& context, const RecurrentState& s, size_t index,
                  ByteWeights& out) {
  const int64_t rows = index == 1 ? s.input : s.hidden, width = s.width();
  const size_t scale_at = kScales + 2 * (index - 1);
  const Tensor& codes = *context.constant(index);
  const bool flip = codes.dtype() == DType::kUInt8;
  const Tensor& zeros = *context.constant(scale_at + 1);
  for (int64_t i = 0; i < zeros.size(); ++i)
    if (zeros.get_int64(i) != (flip ? 128 : 0)) return ok();
  Tensor copy;
  const Tensor& scales = context.aligned_constant(scale_at, copy);
  for (int64_t i = 0; i < s.directions * width; ++i)
    out.scales.push_back(scales.data<float>()[scales.size() == s.directions ? i / width : i]);
  out.scales.resize(out.scales.size() + 64);
  out.panel_bytes = (q_panel_bytes(rows, width) + 63) / 64 * 64;
  out.step = (out.panel_bytes + static_cast<size_t>(width + 64) * sizeof(int32_t) + 63) / 64 * 64;
  TRY(out.packed,
      context.packed(index, std::string("rnn_bytes/") + q_tiles().name,
                     static_cast<size_t>(s.directions) * out.step, [&](std::byte* target) {
                       for (int64_t d = 0; d < s.directions; ++d) {
                         std::byte* to = target + static_cast<size_t>(d) * out.step;
                         q_pack_panels(codes.data<uint8_t>() + d * rows * width, width, 1, rows,
                                       width, flip, true, to,
                                       reinterpret_cast<int32_t*>(to + out.panel_bytes));
                       }
                     }));
  return ok();
}

/// Products of rows that are rounded to bytes on their way. One for all steps: a single row costs
/// less than its plan and its memory.
class ByteProduct {
 public:
  ByteProduct(int64_t rows, int64_t k, int64_t width)
      : rows_(rows),
        k_(k),
        width_(width),
        plan_(q_plan_rows(rows, width, k, q_row_bytes(k))),
        flat_(static_cast<size_t>(rows * k)),
        packed_(static_cast<size_t>(rows * plan_.lda) + 64),
        adds_(static_cast<size_t>(width) + 64) {}

  /// x by the weights of one direction; plus the bias, when there is one.
  void multiply(const float* x, const ByteWeights& weights, int64_t direction, const float* bias,
                float* out) {
    float least = 0, greatest = 0;
    value_range(x, rows_ * k_, least, greatest);
    const DynamicScale codes = dynamic_scale(std::min(least, 0.0f), std::max(greatest, 0.0f));
    quantize_row(x, rows_ * k_, codes.scale, codes.zero, false, flat_.data());
    q_pack_rows(flat_.data(), k_, rows_, k_, false, false, packed_.data());
    const std::byte* panels = weights.packed + static_cast<size_t>(direction) * weights.step;
    const auto* sums = reinterpret_cast<const int32_t*>(panels + weights.panel_bytes);
    for (int64_t j = 0; j < width_; ++j) adds_[static_cast<size_t>(j)] = -codes.zero * sums[j];
    QFinish finish;
    finish.kind = QFinish::Kind::kFloat;
    finish.column_add = adds_.data();
    finish.column_scale = weights.scales.data() + direction * width_;
    finish.scale = codes.scale;
    finish.column_bias = bias;
    finish.out = out;
    finish.ldo = width_;
    q_product(plan_, packed_.data(), rows_ * plan_.lda, panels, finish);
  }

 private:
  int64_t rows_, k_, width_;
  QProduct plan_;
  std::vector<uint8_t> flat_;
  std::vector<std::byte> packed_;
  std::vector<int32_t> adds_;
};

/// x as DynamicQuantizeLinear and back would give it.
void round_to_bytes(const float* x, int64_t n, float* y) {
  float least = 0, greatest = 0;
  value_range(x, n, least, greatest);
  const DynamicScale codes = dynamic_scale(std::min(least, 0.0f), std::max(greatest, 0.0f));
  constexpr int64_t kPart = 1024;
  uint8_t part[kPart];
  for (int64_t i = 0; i < n; i += kPart) {
    const int64_t count = std::min(kPart, n - i);
    quantize_row(x + i, count, codes.scale, codes.zero, false, part);
    dequantize_row(part, false, count, codes.scale, codes.zero, y + i);
  }
}

template <int64_t kGates>
Result<std::unique_ptr<KernelState>> prepare_recurrent(const PrepareContext& context) {
  auto state = std::make_unique<RecurrentState>();
  RecurrentState& s = *state;
  plan_recurrent(context, kGates, s);
  // The candidate gate of GRU multiplies another state: it is packed by itself.
  const int64_t first = kGates == 3 ? 2 * s.hidden : s.width();
  s.w_step = packed_b_floats(s.input, s.width());
  s.r_gates = packed_b_floats(s.hidden, first);
  s.r_step = s.r_gates + packed_b_floats(s.hidden, s.width() - first);
  const std::string isa = std::string(name_of(active_isa())) + "/" + std::to_string(kGates);
  const auto bytes = [&](int64_t step) {
    return static_cast<size_t>(s.directions * step + 64) * sizeof(float);
  };
  // What the floats are made of: the weights and, of codes, their scales and zero points.
  const auto sources = [&](size_t index) {
    const size_t scale_at = kScales + 2 * (index - 1);
    return std::array{context.constant(index), s.coarse ? context.constant(scale_at) : nullptr,
                      s.coarse ? context.constant(scale_at + 1) : nullptr};
  };
  if (s.coarse) {
    CHECK_OK(pack_bytes(context, s, 1, s.bytes[0]));
    CHECK_OK(pack_bytes(context, s, 2, s.bytes[1]));
  }
  if (s.bytes[0].packed == nullptr) {
    TRY(const std::byte* w,
        context.packed(sources(1), "rnn_w/" + isa, bytes(s.w_step), [&](std::byte* target) {
          std::vector<float> room;
          for (int64_t d = 0; d < s.directions; ++d) {
            const Weights from = weights_of(context, s, 1, d, room);
            pack_b(from.data, from.row, from.column, s.input, s.width(), 1,
                   reinterpret_cast<float*>(target) + d * s.w_step);
          }
        }));
    s.w = reinterpret_cast<const float*>(w);
  }
  if (s.bytes[1].packed == nullptr) {
    TRY(const std::byte* r,
        context.packed(sources(2), "rnn_r/" + isa, bytes(s.r_step), [&](std::byte* target) {
          std::vector<float> room;
          for (int64_t d = 0; d < s.directions; ++d) {
            const Weights from = weights_of(context, s, 2, d, room);
            float* to = reinterpret_cast<float*>(target) + d * s.r_step;
            pack_b(from.data, from.row, from.column, s.hidden, first, 1, to);
            pack_b(from.data + first * from.column, from.row, from.column, s.hidden,
                   s.width() - first, 1, to + s.r_gates);
          }
        }));
    s.r = reinterpret_cast<const float*>(r);
  }
  s.room = s.steps * s.batch * s.width() + 4 * s.batch * s.hidden + 2 * s.width() + 256;
  int64_t inputs = 0;
  if (s.coarse) {
    inputs = s.steps * s.batch * s.input;  // rounded
    s.room += s.batch * s.width() + 16;    // what a state gives each gate
  }
  s.scratch_bytes = static_cast<size_t>(s.directions * s.room + inputs) * sizeof(float);
  return state;
}

struct Cell {
  const RecurrentState& s;
  const float* r;
  const float* recurrent_bias;  ///< of GRU's candidate gate, when it stands inside the reset
  float *h, *c, *room;
  int64_t direction;
  // DynamicQuantizeLSTM: by h, to each gate.
  float* given;
  ByteProduct* product;

  /// One step of LSTM: gates [batch, i o f g] hold what the input gives.
  void lstm(float* gates) const {
    const int64_t n = s.hidden, width = s.width();
    if (s.bytes[1].packed != nullptr) {
      product->multiply(h, s.bytes[1], direction, nullptr, given);
      for (int64_t j = 0; j < s.batch * width; ++j) gates[j] += given[j];
    } else {
      if (s.coarse) round_to_bytes(h, s.batch * n, h);
      gemm(s.batch, width, n, h, n, r, gates, width, {.init = gates, .ldi = width});
    }
    for (int64_t b = 0; b < s.batch; ++b) {
      float* g = gates + b * width;
      float *hb = h + b * n, *cb = c + b * n;
      unary_fn(Unary::kSigmoid)(g, g, 3 * n, 0, 0);
      unary_fn(Unary::kTanh)(g + 3 * n, g + 3 * n, n, 0, 0);
      for (int64_t j = 0; j < n; ++j) cb[j] = g[2 * n + j] * cb[j] + g[j] * g[3 * n + j];
      unary_fn(Unary::kTanh)(cb, hb, n, 0, 0);
      for (int64_t j = 0; j < n; ++j) hb[j] *= g[n + j];
    }
  }

  /// One step of RNN.
  void plain(float* gates) const {
    const int64_t n = s.hidden;
    gemm(s.batch, n, n, h, n, r, gates, n, {.init = gates, .ldi = n});
    unary_fn(Unary::kTanh)(gates, h, s.batch * n, 0, 0);
  }

  /// One step of GRU: gates [batch, z r h].
  void gru(float* gates) const {
    const int64_t n = s.hidden, width = s.width();
    gemm(s.batch, 2 * n, n, h, n, r, gates, width, {.init = gates, .ldi = width});
    for (int64_t b = 0; b < s.batch; ++b) {
      float* g = gates + b * width;
      unary_fn(Unary::kSigmoid)(g, g, 2 * n, 0, 0);
      if (!s.linear_before_reset)
        for (int64_t j = 0; j < n; ++j) room[b * n + j] = g[n + j] * h[b * n + j];
    }
    if (s.linear_before_reset) {
      gemm(s.batch, n, n, h, n, r + s.r_gates, room, n, {.col_bias = recurrent_bias});
      for (int64_t b = 0; b < s.batch; ++b) {
        float* g = gates + b * width;
        for (int64_t j = 0; j < n; ++j) g[2 * n + j] += g[n + j] * room[b * n + j];
      }
    } else {
      gemm(s.batch, n, n, room, n, r + s.r_gates, gates + 2 * n, width,
           {.init = gates + 2 * n, .ldi = width});
    }
    for (int64_t b = 0; b < s.batch; ++b) {
      float *g = gates + b * width, *hb = h + b * n;
      unary_fn(Unary::kTanh)(g + 2 * n, g + 2 * n, n, 0, 0);
      for (int64_t j = 0; j < n; ++j) hb[j] = (1 - g[j]) * g[2 * n + j] + g[j] * hb[j];
    }
  }
};

Status run_recurrent(KernelRun& run) {
  const auto& s = run.state<RecurrentState>();
  const bool lstm = s.gates == 4;
  const int64_t rows = s.steps * s.batch, width = s.width(), state = s.batch * s.hidden;
  Tensor *y = nullptr, *last[2] = {nullptr, nullptr};
  if (run.wants_output(0)) {
    TRY(y, run.output(0, DType::kFloat32, Dims{s.steps, s.directions, s.batch, s.hidden}));
  }
  for (size_t i = 0; i < (lstm ? 2u : 1u); ++i)
    if (run.wants_output(i + 1)) {
      TRY(last[i], run.output(i + 1, DType::kFloat32, Dims{s.directions, s.batch, s.hidden}));
    }
  const int32_t* lengths = run.has_input(4) ? run.data<int32_t>(4) : nullptr;
  for (int64_t b = 0; lengths != nullptr && b < s.batch; ++b)
    if (lengths[b] < 0 || lengths[b] > s.steps)
      return runtime_error("sequence_lens has the value " + std::to_string(lengths[b]) +
                           ", X has " + std::to_string(s.steps) + " steps");
  const float* x = run.data<float>(0);
  const bool in_bytes = s.bytes[0].packed != nullptr;
  if (s.coarse && !in_bytes) {
    float* rounded = reinterpret_cast<float*>(run.scratch()) + s.directions * s.room;
    round_to_bytes(x, rows * s.input, rounded);
    x = rounded;
  }
  const auto direction = [&](int64_t d) {
    float* gates = reinterpret_cast<float*>(run.scratch()) + d * s.room;
    float* h = gates + rows * width + 16;
    float* c = h + state + 16;
    float* room = c + state + 16;
    float* bias = room + state + 16;
    for (int which = 0; which < 2; ++which) {
      float* to = which == 0 ? h : c;
      const auto index = static_cast<size_t>(5 + which);
      if ((which == 0 || lstm) && run.has_input(index))
        std::copy_n(run.data<float>(index) + d * state, state, to);
      else
        std::fill_n(to, state, 0.0f);
    }
    const float* r = s.r != nullptr ? s.r + d * s.r_step : nullptr;
    std::optional<ByteProduct> product;
    if (s.bytes[1].packed != nullptr) product.emplace(s.batch, s.hidden, width);
    Cell cell{s, r, nullptr, h, c, room, d, bias + 2 * width + 16, product ? &*product : nullptr};
    if (run.has_input(3)) {
      // Both biases are added before a gate, but for GRU's candidate inside the reset.
      const float* given = run.data<float>(3) + d * 2 * width;
      for (int64_t j = 0; j < width; ++j)
        bias[j] =
            given[j] + (!lstm && s.linear_before_reset && j >= 2 * s.hidden ? 0 : given[width + j]);
      if (!lstm && s.linear_before_reset) cell.recurrent_bias = given + width + 2 * s.hidden;
    }
    const float* added = run.has_input(3) ? bias : nullptr;
    if (in_bytes)
      ByteProduct(rows, s.input, width).multiply(x, s.bytes[0], d, added, gates);
    else
      gemm(rows, width, s.input, x, s.input, s.w + d * s.w_step, gates, width, {.col_bias = added});
    std::vector<float> kept(lengths != nullptr ? static_cast<size_t>(2 * state) : 0);
    for (int64_t step = 0; step < s.steps; ++step) {
      const int64_t t = s.reversed[d] ? s.steps - 1 - step : step;
      float* own = gates + t * s.batch * width;
      // Where a sequence has ended its state stays what it was, and nothing comes out.
      const auto for_ended = [&](auto&& body) {
        for (int64_t b = 0; lengths != nullptr && b < s.batch; ++b)
          if (t >= lengths[b]) body(b * s.hidden);
      };
      for_ended([&](int64_t at) {
        std::copy_n(h + at, s.hidden, kept.data() + at);
        std::copy_n(c + at, s.hidden, kept.data() + state + at);
      });
      s.gates == 1 ? cell.plain(own) : lstm ? cell.lstm(own) : cell.gru(own);
      float* out = y != nullptr ? y->data<float>() + (t * s.directions + d) * state : nullptr;
      if (out != nullptr) std::copy_n(h, state, out);
      for_ended([&](int64_t at) {
        std::copy_n(kept.data() + at, s.hidden, h + at);
        std::copy_n(kept.data() + state + at, s.hidden, c + at);
        if (out != nullptr) std::fill_n(out + at, s.hidden, 0.0f);
      });
    }
    if (last[0] != nullptr) std::copy_n(h, state, last[0]->data<float>() + d * state);
    if (last[1] != nullptr) std::copy_n(c, state, last[1]->data<float>() + d * state);
  };
  // Each direction has a thread of its own, and that a step's product to itself.
  run.parallel_for(s.directions, 1, [&](int64_t begin, int64_t end) {
    for (int64_t d = begin; d < end; ++d) direction(d);
  });
  return ok();
}

}  // namespace

KERNEL(lstm_f32) = {
    .name = "lstm_f32",
    .op = "LSTM",
    .supports = supports_recurrent<4>,
    .prepare = prepare_recurrent<4>,
    .run = run_recurrent,
};
KERNEL(dynamic_quantize_lstm) = {
    .name = "dynamic_quantize_lstm",
    .op = "DynamicQuantizeLSTM",
    .domain = "com.microsoft",
    .supports = supports_recurrent<4>,
    .prepare = prepare_recurrent<4>,
    .run = run_recurrent,
};
KERNEL(gru_f32) = {
    .name = "gru_f32",
    .op = "GRU",
    .supports = supports_recurrent<3>,
    .prepare = prepare_recurrent<3>,
    .run = run_recurrent,
};

KERNEL(rnn_f32) = {
    .name = "rnn_f32",
    .op = "RNN",
    .supports = supports_recurrent<1>,
    .prepare = prepare_recurrent<1>,
    .run = run_recurrent,
};

}  // namespace tombolo
