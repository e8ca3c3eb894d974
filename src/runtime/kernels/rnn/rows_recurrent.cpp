// LSTM, GRU and RNN of floats: one product for the inputs of many steps, one a step for the state,
// the gates by vectors. DynamicQuantizeLSTM is LSTM but for its
// weights, which are of 8 bits, and inputs and states, which are rounded to 8 bits on the way.

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/kernels/elementwise/binary.h"
#include "runtime/kernels/elementwise/unary.h"
#include "runtime/kernels/isa.h"
#include "runtime/kernels/kernel.h"
#include "runtime/kernels/matmul/gemm.h"
#include "runtime/kernels/quant/qgemm.h"
#include "runtime/kernels/quant/quantize.h"
#include "runtime/kernels/rnn/cells.h"

namespace tombolo {
namespace {

/// W or R of DynamicQuantizeLSTM, all directions: panels, then the sums of their columns.
struct ByteWeights {
  const std::byte* packed = nullptr;  ///< null: zero points are not in the middle
  size_t step = 0, panel_bytes = 0;   ///< from direction to direction; of the panels
  std::vector<float> scales;          ///< one a column
};

/// An activation: a function of rows; tanh may have its input and its result scaled.
struct GateFunction {
  UnaryFn* function = nullptr;
  float alpha = 0, beta = 0;
  bool scaled = false;

  void operator()(const float* x, float* y, int64_t n) const {
    if (!scaled) return function(x, y, n, alpha, beta);
    for (int64_t j = 0; j < n; ++j) y[j] = beta * x[j];
    function(y, y, n, 0, 0);
    for (int64_t j = 0; j < n; ++j) y[j] *= alpha;
  }
};

struct RecurrentState final : KernelState {
  int64_t steps = 1, batch = 1, input = 1, hidden = 1, directions = 1, gates = 4;
  int64_t parts = 1;         ///< of the batch, which go their ways by themselves
  int64_t chunk = 1;         ///< steps whose inputs are multiplied at a time
  bool batch_major = false;  ///< layout = 1
  bool coupled = false;      ///< input_forget: what is not let in is kept
  float clip = std::numeric_limits<float>::infinity();
  GateFunction functions[2][3];  ///< by direction
  bool usual[2] = {};            ///< whether these and the cell are what cells.h computes
  bool reversed[2] = {false, false};
  bool linear_before_reset = false;
  bool coarse = false;  ///< DynamicQuantizeLSTM
  ByteWeights bytes[2];
  const float *w = nullptr, *r = nullptr;       ///< packed, one direction after the other
  int64_t w_step = 0, r_step = 0, r_gates = 0;  ///< r_gates: floats of the first two gates of GRU

  int64_t room = 0;  ///< floats of scratch memory of a direction

  int64_t width() const { return gates * hidden; }
  /// GRU whose reset gate multiplies what the state gives the candidate, bias and all.
  bool inside() const { return gates == 3 && linear_before_reset; }
  /// Floats of a sequence that a step of GRU needs beside gates and states.
  int64_t aside() const { return inside() ? width() : hidden; }
  Dims state_dims() const {
    return batch_major ? Dims{batch, directions, hidden} : Dims{directions, batch, hidden};
  }
};

struct FunctionRow {
  std::string_view name;
  Unary function;
  int parameters;
  float alpha = 0, beta = 0;
};
constexpr FunctionRow kFunctions[] = {
    {"relu", Unary::kRelu, 0},
    {"tanh", Unary::kTanh, 0},
    {"sigmoid", Unary::kSigmoid, 0},
    {"affine", Unary::kAffine, 2, 1, 0},
    {"leakyrelu", Unary::kLeakyRelu, 1, 0.01f},
    {"scaledtanh", Unary::kTanh, 2, 1, 1},
    {"hardsigmoid", Unary::kHardSigmoid, 2, 0.2f, 0.5f},
    {"elu", Unary::kElu, 1, 1},
    {"softsign", Unary::kSoftsign, 0},
    {"softplus", Unary::kSoftplus, 0},
};

/// alpha and beta are lists from which each activation that has such a parameter takes the next.
bool read_functions(const AttributeReader& attributes, RecurrentState& s) {
  const auto given = attributes.get_strings("activations");
  const auto alphas = attributes.get_floats("activation_alpha");
  const auto betas = attributes.get_floats("activation_beta");
  const size_t each = s.gates == 4 ? 3 : s.gates == 3 ? 2 : 1;
  const size_t count = each * static_cast<size_t>(s.directions);
  // RNN may leave its default, of two directions, on one.
  if (!given.empty() && given.size() != count && !(s.gates == 1 && given.size() == 2)) return false;
  size_t alpha = 0, beta = 0;
  s.usual[0] = s.usual[1] = s.gates > 1;
  for (size_t i = 0; i < count; ++i) {
    std::string name(!given.empty()                 ? std::string_view(given[i])
                     : i % each == 0 && s.gates > 1 ? "sigmoid"
                                                    : "tanh");
    for (char& c : name)
      if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    const auto* row = std::find_if(std::begin(kFunctions), std::end(kFunctions),
                                   [&](const FunctionRow& known) { return known.name == name; });
    if (row == std::end(kFunctions)) return false;
    GateFunction& function = s.functions[i / each][i % each];
    function = {unary_fn(row->function), row->alpha, row->beta, name == "scaledtanh"};
    s.usual[i / each] &= name == (i % each == 0 ? "sigmoid" : "tanh");
    if (row->parameters >= 1 && alpha < alphas.size()) function.alpha = alphas[alpha++];
    if (row->parameters >= 2 && beta < betas.size()) function.beta = betas[beta++];
  }
  return true;
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
  s.batch_major = attributes.get_int("layout", 0) != 0;
  s.coupled = attributes.get_int("input_forget", 0) != 0;
  if (attributes.has("clip")) s.clip = attributes.get_float("clip", 0);
  if (!(s.clip >= 0)) return false;
  const bool limited = s.clip != std::numeric_limits<float>::infinity();
  if (s.coarse && (q.has_input(4) || q.has_input(7) || limited || s.batch_major || s.coupled))
    return false;
  const Text direction = attributes.get_string("direction", "forward");
  if (direction != "forward" && direction != "reverse" && direction != "bidirectional")
    return false;
  const auto x = q.dims(0), w = q.dims(1), r = q.dims(2);
  if (x.size() != 3 || w.size() != 3 || r.size() != 3 || element_count(x) < 1) return false;
  s.gates = gates;
  s.steps = x[s.batch_major ? 1 : 0];
  s.batch = x[s.batch_major ? 0 : 1];
  s.input = x[2];
  s.directions = direction == "bidirectional" ? 2 : 1;
  if (!read_functions(attributes, s)) return false;
  if (q.has_input(4) && (q.dtype(4) != DType::kInt32 || Dims(q.dims(4)) != Dims{s.batch}))
    return false;
  if (s.coupled || limited || q.has_input(7)) s.usual[0] = s.usual[1] = false;
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
    if (q.has_input(i) && Dims(q.dims(i)) != s.state_dims()) return false;
  return !q.has_input(7) || Dims(q.dims(7)) == Dims{s.directions, 3 * s.hidden};
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

/// Floats of R's first gates, which multiply the state as it is: GRU's candidate multiplies another
/// one and is packed by itself.
int64_t first_columns(const RecurrentState& s) {
  return s.gates == 3 && !s.inside() ? 2 * s.hidden : s.width();
}

void pack_w(const Weights& from, const RecurrentState& s, float* to) {
  pack_b(from.data, from.row, from.column, s.input, s.width(), 1, to);
}

void pack_r(const Weights& from, const RecurrentState& s, float* to) {
  const int64_t first = first_columns(s);
  pack_b(from.data, from.row, from.column, s.hidden, first, 1, to);
  pack_b(from.data + first * from.column, from.row, from.column, s.hidden, s.width() - first, 1,
         to + s.r_gates);
}

template <int64_t kGates>
Result<std::unique_ptr<KernelState>> prepare_recurrent(const PrepareContext& context) {
  auto state = std::make_unique<RecurrentState>();
  RecurrentState& s = *state;
  plan_recurrent(context, kGates, s);
  const int64_t first = first_columns(s);
  s.w_step = packed_b_floats(s.input, s.width());
  s.r_gates = packed_b_floats(s.hidden, first);
  s.r_step = s.r_gates + packed_b_floats(s.hidden, s.width() - first);
  const std::string isa = std::string(name_of(active_isa())) + "/" + std::to_string(kGates) +
                          (s.inside() ? "/whole" : "");
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
  if (s.bytes[0].packed == nullptr && context.constant(1) != nullptr) {
    TRY(const std::byte* w,
        context.packed(sources(1), "rnn_w/" + isa, bytes(s.w_step), [&](std::byte* target) {
          std::vector<float> room;
          for (int64_t d = 0; d < s.directions; ++d) {
            pack_w(weights_of(context, s, 1, d, room), s,
                   reinterpret_cast<float*>(target) + d * s.w_step);
          }
        }));
    s.w = reinterpret_cast<const float*>(w);
  }
  if (s.bytes[1].packed == nullptr && context.constant(2) != nullptr) {
    TRY(const std::byte* r,
        context.packed(sources(2), "rnn_r/" + isa, bytes(s.r_step), [&](std::byte* target) {
          std::vector<float> room;
          for (int64_t d = 0; d < s.directions; ++d) {
            pack_r(weights_of(context, s, 2, d, room), s,
                   reinterpret_cast<float*>(target) + d * s.r_step);
          }
        }));
    s.r = reinterpret_cast<const float*>(r);
  }
  // Sequences of a batch know nothing of each other. Where each core can keep all weights near,
  // threads take some each, and wait for nobody at the end of a step.
  constexpr int64_t kNear = int64_t{512} << 10, kLeastRows = 4;
  if (!s.coarse && s.r_step <= kNear / int64_t{sizeof(float)})
    s.parts = std::clamp<int64_t>(context.options.threads / s.directions, 1,
                                  std::max<int64_t>(s.batch / kLeastRows, 1));
  // The gates of some steps at a time, so that they are near when the states come to them, but of
  // enough rows for a product. What is rounded to bytes is rounded together.
  const int64_t near_rows = std::max<int64_t>(near_bytes() / 2 / (s.width() * 4), 64);
  s.chunk = s.steps;
  if (!s.coarse && (s.batch == 1 || !s.batch_major)) {
    constexpr int64_t kEnough = 8;  // rows of a part
    if (s.parts == 1)
      s.chunk = std::clamp<int64_t>(near_rows / s.batch, 1, s.steps);
    else if (s.batch / s.parts >= kEnough)
      s.chunk = 1;
  }
  s.room = s.batch * (s.chunk * s.width() + 4 * s.hidden + s.aside()) + 2 * s.width() + 256;
  int64_t inputs = 0;
  if (s.coarse) {
    inputs = s.steps * s.batch * s.input;  // rounded
    s.room += s.batch * s.width() + 16;    // what a state gives each gate
  }
  // Weights that come in are packed by each run.
  if (!s.coarse && s.w == nullptr) inputs += s.directions * s.w_step + 16;
  if (!s.coarse && s.r == nullptr) inputs += s.directions * s.r_step + 16;
  s.scratch_bytes = static_cast<size_t>(s.directions * s.room + inputs) * sizeof(float);
  return state;
}

/// Some sequences of a batch on their way through one direction.
struct Cell {
  const RecurrentState& s;
  int64_t direction, rows;
  int64_t step;  ///< from the gates of one sequence to those of the next
  const float* r;
  const float* recurrent_bias;  ///< of what the state gives GRU's gates, where it is by itself
  const float* peepholes;       ///< [i o f], or null
  float *c, *room;
  // DynamicQuantizeLSTM: by h, to each gate.
  float* given;
  ByteProduct* bytes;
  bool at_rest;  ///< the state is zero, as it is before the first step

  BinaryFn& sum = *binary_fn(Binary::kAdd, DType::kFloat32);
  BinaryFn& difference = *binary_fn(Binary::kSub, DType::kFloat32);
  BinaryFn& product = *binary_fn(Binary::kMul, DType::kFloat32);

  const GateFunction& function(size_t index) const { return s.functions[direction][index]; }
  void add(float* x, const float* y, int64_t n) const { sum(x, false, y, false, x, n); }
  void multiply(float* x, const float* y, int64_t n) const { product(x, false, y, false, x, n); }
  bool limited() const { return s.clip != std::numeric_limits<float>::infinity(); }
  void limit(float* x, int64_t n) const {
    for (int64_t j = 0; j < n; ++j) x[j] = x[j] > s.clip ? s.clip : x[j] < -s.clip ? -s.clip : x[j];
  }

  /// One step of LSTM: gates [rows, i o f g] hold what the input gives; from state h to `next`,
  /// which may be h.
  void lstm(float* gates, float* h, float* next, bool backwards) const {
    const int64_t n = s.hidden, width = s.width();
    if (at_rest) {
      // What it gives is zero.
    } else if (s.bytes[1].packed != nullptr) {
      bytes->multiply(h, s.bytes[1], direction, nullptr, given);
      add(gates, given, rows * width);
    } else {
      if (s.coarse) {
        round_to_bytes(h, rows * n, next);
        h = next;
      }
      gemm(rows, width, n, h, n, r, gates, step,
           {.init = gates, .ldi = step, .backwards = backwards});
    }
    if (s.usual[direction]) return lstm_cells(gates, step, rows, n, c, next);
    for (int64_t b = 0; b < rows; ++b) {
      float* g = gates + b * step;
      float *hb = next + b * n, *cb = c + b * n;
      if (peepholes != nullptr || limited() || s.coupled) {
        special_cell(g, cb, hb);
        continue;
      }
      function(0)(g, g, 3 * n);
      function(1)(g + 3 * n, g + 3 * n, n);
      multiply(cb, g + 2 * n, n);
      multiply(g, g + 3 * n, n);
      add(cb, g, n);
      function(2)(cb, hb, n);
      multiply(hb, g + n, n);
    }
  }

  /// Gates that see the cell, are limited, or follow one from the other.
  void special_cell(float* g, float* cb, float* hb) const {
    const int64_t n = s.hidden;
    float *in = g, *out = g + n, *forget = g + 2 * n, *candidate = g + 3 * n;
    if (peepholes != nullptr)
      for (int64_t j = 0; j < n; ++j) {
        in[j] += peepholes[j] * cb[j];
        forget[j] += peepholes[2 * n + j] * cb[j];
      }
    if (limited()) {
      limit(in, n);
      limit(forget, 2 * n);
    }
    function(0)(in, in, n);
    if (s.coupled)
      for (int64_t j = 0; j < n; ++j) forget[j] = 1 - in[j];
    else
      function(0)(forget, forget, n);
    function(1)(candidate, candidate, n);
    for (int64_t j = 0; j < n; ++j) cb[j] = forget[j] * cb[j] + in[j] * candidate[j];
    for (int64_t j = 0; peepholes != nullptr && j < n; ++j) out[j] += peepholes[n + j] * cb[j];
    if (limited()) limit(out, n);
    function(0)(out, out, n);
    const float* shown = cb;
    if (limited()) {
      std::copy_n(cb, n, candidate);
      limit(candidate, n);
      shown = candidate;
    }
    function(2)(shown, hb, n);
    for (int64_t j = 0; j < n; ++j) hb[j] *= out[j];
  }

  /// One step of RNN.
  void plain(float* gates, const float* h, float* next, bool backwards) const {
    const int64_t n = s.hidden;
    if (!at_rest)
      gemm(rows, n, n, h, n, r, gates, step, {.init = gates, .ldi = step, .backwards = backwards});
    for (int64_t b = 0; b < rows; ++b) {
      if (limited()) limit(gates + b * step, n);
      function(0)(gates + b * step, next + b * n, n);
    }
  }

  /// One step of GRU: gates [rows, z r h].
  void gru(float* gates, const float* h, float* next, bool backwards) const {
    const int64_t n = s.hidden;
    constexpr float one = 1;
    const bool usual = s.usual[direction];
    if (s.inside()) {
      if (!at_rest)
        gemm(rows, 3 * n, n, h, n, r, room, 3 * n,
             {.col_bias = recurrent_bias, .backwards = backwards});
      for (int64_t b = 0; at_rest && b < rows; ++b) {
        if (recurrent_bias != nullptr)
          std::copy_n(recurrent_bias, 3 * n, room + 3 * b * n);
        else
          std::fill_n(room + 3 * b * n, 3 * n, 0.0f);
      }
      if (usual) return gru_cells(gates, step, rows, n, room, h, next);
      for (int64_t b = 0; b < rows; ++b) {
        float *g = gates + b * step, *own = room + 3 * b * n;
        add(g, own, 2 * n);
        if (limited()) limit(g, 2 * n);
        function(0)(g, g, 2 * n);
        multiply(own + 2 * n, g + n, n);
        add(g + 2 * n, own + 2 * n, n);
      }
    } else {
      if (!at_rest)
        gemm(rows, 2 * n, n, h, n, r, gates, step,
             {.init = gates, .ldi = step, .backwards = backwards});
      if (usual) {
        gru_reset(gates, step, rows, n, h, room);
      } else {
        for (int64_t b = 0; b < rows; ++b) {
          float* g = gates + b * step;
          if (limited()) limit(g, 2 * n);
          function(0)(g, g, 2 * n);
          product(g + n, false, h + b * n, false, room + b * n, n);
        }
      }
      if (!at_rest)
        gemm(rows, n, n, room, n, r + s.r_gates, gates + 2 * n, step,
             {.init = gates + 2 * n, .ldi = step, .backwards = backwards});
      if (usual) return gru_update(gates, step, rows, n, h, next);
    }
    for (int64_t b = 0; b < rows; ++b) {
      float *g = gates + b * step, *hb = next + b * n;
      if (limited()) limit(g + 2 * n, n);
      function(1)(g + 2 * n, g + 2 * n, n);
      product(h + b * n, false, g, false, hb, n);  // h = (1 - z) * candidate + z * h
      difference(&one, true, g, false, g, n);
      multiply(g + 2 * n, g, n);
      add(hb, g + 2 * n, n);
    }
  }
};

Status run_recurrent(KernelRun& run) {
  const auto& s = run.state<RecurrentState>();
  const bool lstm = s.gates == 4;
  const int64_t rows = s.steps * s.batch, width = s.width(), state = s.batch * s.hidden;
  Tensor *y = nullptr, *last[2] = {nullptr, nullptr};
  if (run.wants_output(0)) {
    TRY(y, run.output(0, DType::kFloat32,
                      s.batch_major ? Dims{s.batch, s.steps, s.directions, s.hidden}
                                    : Dims{s.steps, s.directions, s.batch, s.hidden}));
  }
  for (size_t i = 0; i < (lstm ? 2u : 1u); ++i)
    if (run.wants_output(i + 1)) {
      TRY(last[i], run.output(i + 1, DType::kFloat32, s.state_dims()));
    }
  const int32_t* lengths = run.has_input(4) ? run.data<int32_t>(4) : nullptr;
  for (int64_t b = 0; lengths != nullptr && b < s.batch; ++b)
    if (lengths[b] < 0 || lengths[b] > s.steps)
      return runtime_error("sequence_lens has the value " + std::to_string(lengths[b]) +
                           ", X has " + std::to_string(s.steps) + " steps");
  // No step is taken after the end of the longest sequence.
  const int64_t longest =
      lengths == nullptr ? s.steps : *std::max_element(lengths, lengths + s.batch);
  const float* x = run.data<float>(0);
  const bool in_bytes = s.bytes[0].packed != nullptr;
  float* room = reinterpret_cast<float*>(run.scratch()) + s.directions * s.room;
  if (s.coarse && !in_bytes) {
    round_to_bytes(x, rows * s.input, room);
    x = room;
  }
  const float *w = s.w, *r = s.r;
  // Weights that come in.
  const auto pack = [&](size_t index, int64_t inner, int64_t floats, auto&& to_panels) {
    float* target = std::exchange(room, room + s.directions * floats + 16);
    for (int64_t d = 0; d < s.directions; ++d)
      to_panels(Weights{run.data<float>(index) + d * width * inner, 1, inner}, s,
                target + d * floats);
    return target;
  };
  if (!s.coarse && w == nullptr) w = pack(1, s.input, s.w_step, pack_w);
  if (!s.coarse && r == nullptr) r = pack(2, s.hidden, s.r_step, pack_r);

  // The memory of a direction begins with the gates.
  const int64_t h_at = s.chunk * s.batch * width + 16, c_at = h_at + state + 16,
                room_at = c_at + state + 16, kept_at = room_at + s.batch * s.aside() + 16,
                bias_at = kept_at + 2 * state + 16, given_at = bias_at + 2 * width + 16;
  const auto memory = [&](int64_t d) {
    return reinterpret_cast<float*>(run.scratch()) + d * s.room;
  };
  // A state of one sequence in the tensors of the node.
  const auto state_at = [&](int64_t d, int64_t b) {
    return (s.batch_major ? b * s.directions + d : d * s.batch + b) * s.hidden;
  };
  // What `count` rows of the input from `row` on give the gates.
  const auto multiply_inputs = [&](int64_t d, int64_t row, int64_t count, float* to) {
    const float* bias = run.has_input(3) ? memory(d) + bias_at : nullptr;
    const float* from = x + row * s.input;
    if (in_bytes)
      ByteProduct(count, s.input, width).multiply(from, s.bytes[0], d, bias, to);
    else
      gemm(count, width, s.input, from, s.input, w + d * s.w_step, to, width, {.col_bias = bias});
  };
  const auto begin_direction = [&](int64_t d) {
    float* gates = memory(d);
    for (size_t which = 0; which < (lstm ? 2u : 1u); ++which) {
      float* to = gates + (which == 0 ? h_at : c_at);
      if (!run.has_input(5 + which)) {
        std::fill_n(to, state, 0.0f);
        continue;
      }
      for (int64_t b = 0; b < s.batch; ++b)
        std::copy_n(run.data<float>(5 + which) + state_at(d, b), s.hidden, to + b * s.hidden);
    }
    if (run.has_input(3)) {
      // Both biases are added to what the input gives, or each to its own.
      const float* given = run.data<float>(3) + d * 2 * width;
      float* bias = gates + bias_at;
      for (int64_t j = 0; j < width; ++j) bias[j] = given[j] + (s.inside() ? 0 : given[width + j]);
    }
    if (s.chunk == s.steps && longest > 0)
      multiply_inputs(d, 0, s.batch_major || in_bytes ? rows : longest * s.batch, gates);
  };
  // Sequences [from, to) of the batch.
  const auto walk = [&](int64_t d, int64_t from, int64_t to) {
    float* const gates = memory(d);
    float *const state_room = gates + h_at + from * s.hidden, *h = state_room;
    float* const c = gates + c_at + from * s.hidden;
    float* kept = gates + kept_at + 2 * from * s.hidden;
    const int64_t count = to - from, part = count * s.hidden;
    const int64_t of_step = s.batch_major ? 1 : s.batch, of_sequence = s.batch_major ? s.steps : 1;
    std::optional<ByteProduct> product;
    if (s.bytes[1].packed != nullptr) product.emplace(s.batch, s.hidden, width);
    Cell cell{
        .s = s,
        .direction = d,
        .rows = count,
        .step = of_sequence * width,
        .r = r != nullptr ? r + d * s.r_step : nullptr,
        .recurrent_bias =
            s.inside() && run.has_input(3) ? run.data<float>(3) + (2 * d + 1) * width : nullptr,
        .peepholes = run.has_input(7) ? run.data<float>(7) + d * 3 * s.hidden : nullptr,
        .c = c,
        .room = gates + room_at + from * s.aside(),
        .given = gates + given_at,
        .bytes = product ? &*product : nullptr,
        .at_rest = std::all_of(h, h + part, [](float number) { return number == 0; }),
    };
    // Where nobody needs the state as it was, it is written where it comes out.
    const bool direct = y != nullptr && lengths == nullptr && (!s.batch_major || count == 1);
    const int64_t out_step = s.batch_major ? s.steps * s.directions * s.hidden : s.hidden;
    const auto out_at = [&](int64_t t) {
      if (y == nullptr) return static_cast<float*>(nullptr);
      const int64_t row = s.batch_major ? (from * s.steps + t) * s.directions + d
                                        : (t * s.directions + d) * s.batch + from;
      return y->data<float>() + row * s.hidden;
    };
    const auto clear = [&](float* out, int64_t first) {
      for (int64_t b = first; out != nullptr && b < count; ++b)
        std::fill_n(out + b * out_step, s.hidden, 0.0f);
    };
    for (int64_t t = longest; t < s.steps; ++t) clear(out_at(t), 0);
    int64_t low = 0;  // the step whose gates lie first
    for (int64_t step = 0; step < longest; ++step) {
      const int64_t t = s.reversed[d] ? longest - 1 - step : step;
      if (s.chunk < s.steps && step % s.chunk == 0) {
        const int64_t ahead = std::min(s.chunk, longest - step);
        low = s.reversed[d] ? t - ahead + 1 : t;
        multiply_inputs(d, low * s.batch + from, ahead * count, gates + from * width);
      }
      // Where a sequence has ended its state stays what it was, and nothing comes out. What comes
      // after the last one that goes on is left out; states that are rounded are so together.
      int64_t active = count;
      while (lengths != nullptr && !s.coarse && active > 0 && t >= lengths[from + active - 1])
        --active;
      const auto for_ended = [&](auto&& body) {
        for (int64_t b = 0; lengths != nullptr && b < active; ++b)
          if (t >= lengths[from + b]) body(b);
      };
      for_ended([&](int64_t b) {
        std::copy_n(h + b * s.hidden, s.hidden, kept + b * s.hidden);
        std::copy_n(c + b * s.hidden, s.hidden, kept + part + b * s.hidden);
      });
      float* const out = out_at(t);
      clear(out, active);
      if (active == 0) continue;
      cell.rows = active;
      float* const own = gates + ((t - low) * of_step + from * of_sequence) * width;
      float* const next = direct ? out : state_room;
      const bool odd = step % 2 != 0;
      s.gates == 1 ? cell.plain(own, h, next, odd)
      : lstm       ? cell.lstm(own, h, next, odd)
                   : cell.gru(own, h, next, odd);
      cell.at_rest = false;
      h = next;
      for (int64_t b = 0; !direct && out != nullptr && b < active; ++b)
        std::copy_n(h + b * s.hidden, s.hidden, out + b * out_step);
      for_ended([&](int64_t b) {
        std::copy_n(kept + b * s.hidden, s.hidden, h + b * s.hidden);
        std::copy_n(kept + part + b * s.hidden, s.hidden, c + b * s.hidden);
        if (out != nullptr) std::fill_n(out + b * out_step, s.hidden, 0.0f);
      });
    }
    for (size_t which = 0; which < 2; ++which)
      for (int64_t b = 0; last[which] != nullptr && b < count; ++b)
        std::copy_n((which == 0 ? h : c) + b * s.hidden, s.hidden,
                    last[which]->data<float>() + state_at(d, from + b));
  };
  if (s.parts == 1) {
    // Each direction has a thread of its own, and that a step's product to itself.
    run.parallel_for(s.directions, 1, [&](int64_t begin, int64_t end) {
      for (int64_t d = begin; d < end; ++d) {
        begin_direction(d);
        walk(d, 0, s.batch);
      }
    });
    return ok();
  }
  for (int64_t d = 0; d < s.directions; ++d) begin_direction(d);
  run.parallel_for(s.directions * s.parts, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t part = i % s.parts;
      walk(i / s.parts, part * s.batch / s.parts, (part + 1) * s.batch / s.parts);
    }
  });
  return ok();
}

}  // namespace

KERNEL(lstm_f32) = {
    .name = "lstm_f32",
    .op = "LSTM",
    .supports = supports_recurrent<4>,
    .prepare = prepare_recurrent<4>,
    .run = products<run_recurrent>,
};
KERNEL(dynamic_quantize_lstm) = {
    .name = "dynamic_quantize_lstm",
    .op = "DynamicQuantizeLSTM",
    .domain = "com.microsoft",
    .supports = supports_recurrent<4>,
    .prepare = prepare_recurrent<4>,
    .run = products<run_recurrent>,
};
KERNEL(gru_f32) = {
    .name = "gru_f32",
    .op = "GRU",
    .supports = supports_recurrent<3>,
    .prepare = prepare_recurrent<3>,
    .run = products<run_recurrent>,
};

KERNEL(rnn_f32) = {
    .name = "rnn_f32",
    .op = "RNN",
    .supports = supports_recurrent<1>,
    .prepare = prepare_recurrent<1>,
    .run = products<run_recurrent>,
};

}  // namespace tombolo
