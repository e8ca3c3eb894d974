#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/kernels/elementwise/chain.cpp"
#include "runtime/kernels/targets.h"
// After targets.h, which sets macros for Highway.
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>

#include "runtime/kernels/dispatch.h"
#include "runtime/kernels/elementwise/binary.h"
#include "runtime/kernels/elementwise/chain.h"
#include "runtime/kernels/elementwise/unary.h"
#include "runtime/kernels/vec-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tombolo {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using F = hn::ScalableTag<float>;
using V = hn::Vec<F>;

#define REGISTERS V v0, V v1, V v2, V v3, V v4, V v5, V v6, V v7
using StepFn = void(const ChainStep*, ChainFrame*, REGISTERS);

// The last thing that each step does, with the same arguments: a jump, not a call.
#define NEXT return reinterpret_cast<StepFn*>(s[1].fn)(s + 1, f, v0, v1, v2, v3, v4, v5, v6, v7)
#define EACH(expression)                                        \
  {                                                             \
    const auto each = [&](V x) HWY_ATTR { return expression; }; \
    v0 = each(v0);                                              \
    v1 = each(v1);                                              \
    v2 = each(v2);                                              \
    v3 = each(v3);                                              \
    v4 = each(v4);                                              \
    v5 = each(v5);                                              \
    v6 = each(v6);                                              \
    v7 = each(v7);                                              \
  }
#define EACH_WITH(from, expression)                                  \
  {                                                                  \
    const float* p = (from);                                         \
    const size_t n = hn::Lanes(d);                                   \
    const auto each = [&](V x, V y) HWY_ATTR { return expression; }; \
    v0 = each(v0, hn::LoadU(d, p));                                  \
    v1 = each(v1, hn::LoadU(d, p + n));                              \
    v2 = each(v2, hn::LoadU(d, p + 2 * n));                          \
    v3 = each(v3, hn::LoadU(d, p + 3 * n));                          \
    v4 = each(v4, hn::LoadU(d, p + 4 * n));                          \
    v5 = each(v5, hn::LoadU(d, p + 5 * n));                          \
    v6 = each(v6, hn::LoadU(d, p + 6 * n));                          \
    v7 = each(v7, hn::LoadU(d, p + 7 * n));                          \
  }
#define STORE_ALL(to)              \
  {                                \
    float* p = (to);               \
    const size_t n = hn::Lanes(d); \
    hn::StoreU(v0, d, p);          \
    hn::StoreU(v1, d, p + n);      \
    hn::StoreU(v2, d, p + 2 * n);  \
    hn::StoreU(v3, d, p + 3 * n);  \
    hn::StoreU(v4, d, p + 4 * n);  \
    hn::StoreU(v5, d, p + 5 * n);  \
    hn::StoreU(v6, d, p + 6 * n);  \
    hn::StoreU(v7, d, p + 7 * n);  \
  }

HWY_INLINE float* temp(ChainFrame* f, int32_t index) { return f->temps + index * kChainTile; }

// Operands: an input, a temporary, or the number `a`. The reversed forms have the accumulator on
// the right.
#define BINARY(name, ...)                                            \
  void name##_input(const ChainStep* s, ChainFrame* f, REGISTERS) {  \
    const F d;                                                       \
    EACH_WITH(f->inputs[s->operand] + f->at, __VA_ARGS__) NEXT;      \
  }                                                                  \
  void name##_temp(const ChainStep* s, ChainFrame* f, REGISTERS) {   \
    const F d;                                                       \
    EACH_WITH(temp(f, s->operand), __VA_ARGS__) NEXT;                \
  }                                                                  \
  void name##_number(const ChainStep* s, ChainFrame* f, REGISTERS) { \
    [[maybe_unused]] const F d;                                      \
    const V y = hn::Set(d, s->a);                                    \
    EACH(__VA_ARGS__) NEXT;                                          \
  }
BINARY(add, hn::Add(x, y))
BINARY(sub, hn::Sub(x, y))
BINARY(sub_from, hn::Sub(y, x))
BINARY(mul, hn::Mul(x, y))
BINARY(div, hn::Div(x, y))
BINARY(div_into, hn::Div(y, x))
// As in binary_arithmetic.cpp: a NaN on either side stays, the first of equals is given.
#define MAX_OF(u, v) hn::IfThenElse(hn::IsNaN(u), u, hn::IfThenElse(hn::Lt(v, u), u, v))
#define MIN_OF(u, v) hn::IfThenElse(hn::IsNaN(u), u, hn::IfThenElse(hn::Gt(v, u), u, v))
BINARY(max, MAX_OF(x, y))
BINARY(max_with, MAX_OF(y, x))
BINARY(min, MIN_OF(x, y))
BINARY(min_with, MIN_OF(y, x))
BINARY(prelu, hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::Mul(x, y), x))
BINARY(prelu_of, hn::IfThenElse(hn::Lt(y, hn::Zero(d)), hn::Mul(y, x), y))
BINARY(load, (static_cast<void>(x), y))

#define UNARY(name, ...)                                                 \
  void name(const ChainStep* s, ChainFrame* f, REGISTERS) {              \
    const F d;                                                           \
    [[maybe_unused]] const V zero = hn::Zero(d), one = hn::Set(d, 1.0f); \
    [[maybe_unused]] const V a = hn::Set(d, s->a), b = hn::Set(d, s->b); \
    EACH(__VA_ARGS__) NEXT;                                              \
  }
// As in unary_simple.cpp.
UNARY(step_abs, hn::Abs(x))
UNARY(step_neg, hn::Neg(x))
UNARY(step_relu, hn::IfThenElse(hn::Lt(x, zero), zero, x))
UNARY(step_clip, min_of(b, max_of(a, x)))
UNARY(step_floor, hn::Floor(x))
UNARY(step_ceil, hn::Ceil(x))
UNARY(step_sqrt, hn::Sqrt(x))
UNARY(step_reciprocal, hn::Div(one, x))
UNARY(step_leaky_relu, hn::IfThenElse(hn::Lt(x, zero), hn::Mul(a, x), x))
UNARY(step_square, hn::Mul(x, x))
UNARY(step_round, hn::Round(x))

/// round(x / c) between a and b. A division waits longer than all else together. By the reciprocal,
/// and twice what is left over, which has no rounding, the quotient is that of the division to the
/// bit (P. Markstein, Computation of elementary functions on the IBM RISC System/6000 processor,
/// 1990), where nothing overflows: so x is limited first.
void step_rounded_quotient(const ChainStep* s, ChainFrame* f, REGISTERS) {
  const F d;
  const V a = hn::Set(d, s->a), b = hn::Set(d, s->b), c = hn::Set(d, s->c);
#if HWY_NATIVE_FMA
  const V low = hn::Set(d, (s->a - 1) * s->c), high = hn::Set(d, (s->b + 1) * s->c);
  const V inverse = hn::Set(d, 1 / s->c);
  const auto quotient = [&](V x) HWY_ATTR {
    x = min_of(high, max_of(low, x));
    V q = hn::Mul(x, inverse);
    q = hn::MulAdd(hn::NegMulAdd(q, c, x), inverse, q);
    return hn::MulAdd(hn::NegMulAdd(q, c, x), inverse, q);
  };
#else
  const auto quotient = [&](V x) HWY_ATTR { return hn::Div(x, c); };
#endif
  EACH(min_of(b, max_of(a, hn::Round(quotient(x)))))
  NEXT;
}

/// What takes long is done by the functions of rows, which cost less than a step of their own here.
void call_unary(const ChainStep* s, ChainFrame* f, REGISTERS) {
  const F d;
  HWY_ALIGN float room[kChainTile];
  STORE_ALL(room)
  reinterpret_cast<UnaryFn*>(s->row)(room, room, static_cast<int64_t>(8 * hn::Lanes(d)), s->a,
                                     s->b);
  EACH_WITH(room, (static_cast<void>(x), y))
  NEXT;
}
/// b says which side the accumulator is on: 0 left, 1 right, and 2 more when the other is `a`.
HWY_INLINE void call_row(const ChainStep* s, const float* other, float* room, int64_t n) {
  const bool number = other == nullptr, right = s->b != 0;
  const float* with = number ? &s->a : other;
  if (right)
    reinterpret_cast<BinaryFn*>(s->row)(with, number, room, false, room, n);
  else
    reinterpret_cast<BinaryFn*>(s->row)(room, false, with, number, room, n);
}
#define CALL_BINARY(name, from)                                      \
  void name(const ChainStep* s, ChainFrame* f, REGISTERS) {          \
    const F d;                                                       \
    HWY_ALIGN float room[kChainTile];                                \
    STORE_ALL(room)                                                  \
    call_row(s, from, room, static_cast<int64_t>(8 * hn::Lanes(d))); \
    EACH_WITH(room, (static_cast<void>(x), y))                       \
    NEXT;                                                            \
  }
CALL_BINARY(call_input, f->inputs[s->operand] + f->at)
CALL_BINARY(call_temp, temp(f, s->operand))
CALL_BINARY(call_number, nullptr)

void save(const ChainStep* s, ChainFrame* f, REGISTERS) {
  const F d;
  STORE_ALL(temp(f, s->operand))
  NEXT;
}
void finish(const ChainStep*, ChainFrame* f, REGISTERS) {
  const F d;
  STORE_ALL(f->out + f->at)
}

void run_tiles(const ChainStep* steps, ChainFrame* f, int64_t n) {
  const V zero = hn::Zero(F());
  const auto tile = static_cast<int64_t>(8 * hn::Lanes(F()));
  for (f->at = 0; f->at < n; f->at += tile)
    reinterpret_cast<StepFn*>(steps->fn)(steps, f, zero, zero, zero, zero, zero, zero, zero, zero);
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
  // The compiler does not know what the steps leave in the upper halves of registers, which makes
  // all code for older vectors slow.
  _mm256_zeroupper();
#endif
}

int64_t lanes() { return static_cast<int64_t>(hn::Lanes(F())); }

void fill_vectors(float* to, int64_t n, float value) {
  const auto all = hn::Set(F(), value);
  for (int64_t i = 0; i < n; i += lanes()) hn::StoreU(all, F(), to + i);
}

}  // namespace HWY_NAMESPACE
}  // namespace tombolo
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tombolo {
namespace {

using ops::ElementwiseStep;

/// The function `name` for the active instruction set, whatever its vectors.
#define FN(name) chain_fn(TOMBOLO_CHAIN_ROW(name))
struct ChainRow {
  ChainFn* row[3];
};
ChainFn* chain_fn(const ChainRow& row) { return row.row[isa_index()]; }
#if defined(__x86_64__)
#define TOMBOLO_CHAIN_ROW(name)                                                             \
  ChainRow {                                                                                \
    {                                                                                       \
      reinterpret_cast<ChainFn*>(&N_SSE4::name), reinterpret_cast<ChainFn*>(&N_AVX2::name), \
          reinterpret_cast<ChainFn*>(&N_AVX3::name)                                         \
    }                                                                                       \
  }
#elif defined(__aarch64__)
#define TOMBOLO_CHAIN_ROW(name)                                     \
  ChainRow {                                                        \
    { reinterpret_cast<ChainFn*>(&N_NEON::name), nullptr, nullptr } \
  }
#else
#define TOMBOLO_CHAIN_ROW(name)                                       \
  ChainRow {                                                          \
    { reinterpret_cast<ChainFn*>(&N_EMU128::name), nullptr, nullptr } \
  }
#endif

struct BinaryForms {
  std::string_view name;
  ChainFn* forms[2][3];  ///< accumulator left or right; an input, a temporary, a number
};
#define FORMS(name) \
  { FN(name##_input), FN(name##_temp), FN(name##_number) }

BinaryForms forms_of(std::string_view op) {
  if (op == "Add") return {op, {FORMS(add), FORMS(add)}};
  if (op == "Sub") return {op, {FORMS(sub), FORMS(sub_from)}};
  if (op == "Mul") return {op, {FORMS(mul), FORMS(mul)}};
  if (op == "Div") return {op, {FORMS(div), FORMS(div_into)}};
  if (op == "Max") return {op, {FORMS(max), FORMS(max_with)}};
  if (op == "Min") return {op, {FORMS(min), FORMS(min_with)}};
  if (op == "PRelu") return {op, {FORMS(prelu), FORMS(prelu_of)}};
  const auto call = [] { return BinaryForms{"", {FORMS(call), FORMS(call)}}; };
  return call();
}

ChainFn* simple_step(std::string_view op) {
  if (op == "Abs") return FN(step_abs);
  if (op == "Neg") return FN(step_neg);
  if (op == "Relu") return FN(step_relu);
  if (op == "Clip") return FN(step_clip);
  if (op == "Floor") return FN(step_floor);
  if (op == "Ceil") return FN(step_ceil);
  if (op == "Round") return FN(step_round);
  if (op == "Sqrt") return FN(step_sqrt);
  if (op == "Reciprocal") return FN(step_reciprocal);
  if (op == "LeakyRelu") return FN(step_leaky_relu);
  return nullptr;
}

Unary unary_of(std::string_view op) {
  constexpr std::pair<std::string_view, Unary> kNames[] = {
      {"HardSigmoid", Unary::kHardSigmoid},
      {"HardSwish", Unary::kHardSwish},
      {"ThresholdedRelu", Unary::kThresholdedRelu},
      {"Softsign", Unary::kSoftsign},
      {"Shrink", Unary::kShrink},
      {"Exp", Unary::kExp},
      {"Sigmoid", Unary::kSigmoid},
      {"Tanh", Unary::kTanh},
      {"Erf", Unary::kErf},
      {"Gelu", Unary::kGelu},
      {"GeluTanh", Unary::kGeluTanh},
      {"Swish", Unary::kSwish},
      {"Softplus", Unary::kSoftplus},
      {"Mish", Unary::kMish},
      {"Elu", Unary::kElu},
      {"Selu", Unary::kSelu},
      {"Celu", Unary::kCelu},
      {"Log", Unary::kLog},
      {"Sin", Unary::kSin},
      {"Cos", Unary::kCos},
      {"Atan", Unary::kAtan},
  };
  for (const auto& [name, unary] : kNames)
    if (name == op) return unary;
  return Unary::kIdentity;
}

/// Writes a program: every step's result comes into the accumulator once, and is kept in a
/// temporary when it is read again.
class Compiler {
 public:
  Compiler(std::span<const ElementwiseStep> steps, std::span<const ChainConstant> inputs)
      : steps_(steps), inputs_(inputs), uses_(steps.size()), saved_(steps.size(), -1) {
    for (const ElementwiseStep& step : steps)
      for (int i = 0; i < step.op->operands; ++i)
        if (!is_input(step.args[i])) ++uses_[at(step.args[i])];
  }

  ChainProgram compile() {
    make(steps_.size() - 1);
    put({FN(finish)});
    program_.tile = 8 * TOMBOLO_TARGET(int64_t(), lanes)();
    return std::move(program_);
  }

 private:
  bool is_input(int arg) const { return static_cast<size_t>(arg) < inputs_.size(); }
  size_t at(int arg) const { return static_cast<size_t>(arg) - inputs_.size(); }
  /// An input, or a result that lies in a temporary.
  bool is_ready(int arg) const { return is_input(arg) || saved_[at(arg)] >= 0; }
  void put(ChainStep step) { program_.steps.push_back(step); }

  int take_temp() {
    if (free_.empty()) return program_.temps++;
    const int temp = free_.back();
    free_.pop_back();
    return temp;
  }
  /// One reader of a result less.
  void used(int arg) {
    if (is_input(arg) || saved_[at(arg)] < 0) return;
    if (--uses_[at(arg)] == 0) free_.push_back(saved_[at(arg)]);
  }

  /// Which of the three forms of a binary step takes `arg`, and its operand.
  std::pair<int, ChainStep> operand(int arg) const {
    ChainStep step;
    if (!is_input(arg)) {
      step.operand = saved_[at(arg)];
      return {1, step};
    }
    const auto index = static_cast<size_t>(arg);
    if (inputs_[index].known) {
      step.a = inputs_[index].value;
      return {2, step};
    }
    step.operand = arg;
    return {0, step};
  }

  /// `arg` into the accumulator.
  void bring(int arg) {
    if (!is_ready(arg)) return make(at(arg));
    auto [form, step] = operand(arg);
    ChainFn* const loads[] = FORMS(load);
    step.fn = loads[form];
    put(step);
    used(arg);
  }

  /// The Div by a constant, rounded, that `clip` bounds: of sizes that the step takes.
  const ElementwiseStep* rounded_quotient(const ElementwiseStep& clip) const {
    constexpr float kLeast = 1e-18f, kMost = 1e18f, kMostCode = 1e6f;
    if (clip.op->name != "Clip" || !(clip.params[0] >= -kMostCode) ||
        !(clip.params[1] <= kMostCode) || is_input(clip.args[0]))
      return nullptr;
    const ElementwiseStep& round = steps_[at(clip.args[0])];
    if (round.op->name != "Round" || uses_[at(clip.args[0])] != 1 || is_input(round.args[0]))
      return nullptr;
    const ElementwiseStep& div = steps_[at(round.args[0])];
    if (div.op->name != "Div" || uses_[at(round.args[0])] != 1 || !is_input(div.args[1]))
      return nullptr;
    const ChainConstant& by = inputs_[static_cast<size_t>(div.args[1])];
    return by.known && by.value >= kLeast && by.value <= kMost ? &div : nullptr;
  }

  void make(size_t index) {
    const ElementwiseStep& step = steps_[index];
    if (const ElementwiseStep* div = rounded_quotient(step)) {
      bring(div->args[0]);
      put({FN(step_rounded_quotient), 0, step.params[0], step.params[1],
           inputs_[static_cast<size_t>(div->args[1])].value});
    } else if (step.op->operands == 1) {
      bring(step.args[0]);
      unary(step);
    } else {
      binary(step);
    }
    if (uses_[index] > 1) {
      saved_[index] = take_temp();
      put({FN(save), saved_[index]});
      --uses_[index];  // whoever asked for it has it in the accumulator
    }
  }

  void unary(const ElementwiseStep& step) {
    ChainStep put_step{simple_step(step.op->name), 0, step.params[0], step.params[1]};
    if (put_step.fn == nullptr) {
      put_step.fn = FN(call_unary);
      put_step.row = reinterpret_cast<void (*)()>(unary_fn(unary_of(step.op->name)));
    }
    put(put_step);
  }

  void binary(const ElementwiseStep& step) {
    int left = step.args[0], right = step.args[1];
    const bool squares = step.op->name == "Pow" && is_input(right) &&
                         inputs_[static_cast<size_t>(right)].known &&
                         inputs_[static_cast<size_t>(right)].value == 2;
    if (squares) {
      bring(left);
      return put({FN(step_square)});
    }
    bool turned = false;  // the accumulator is on the right
    if (left == right && !is_ready(left)) {
      make(at(left));  // has two readers: it is saved, and in the accumulator
    } else if (is_ready(right)) {
      bring(left);
    } else if (is_ready(left)) {
      bring(right);
      turned = true;
    } else {
      // The right one waits in a temporary while the left one is made. Making one may save the
      // other, or take what was counted on: so each is looked at anew.
      make(at(right));
      if (saved_[at(right)] < 0) {
        saved_[at(right)] = take_temp();
        put({FN(save), saved_[at(right)]});
      } else {
        ++uses_[at(right)];
      }
      bring(left);
    }
    const int other = turned ? left : right;
    auto [form, with] = operand(other);
    with.fn = forms_of(step.op->name).forms[turned ? 1 : 0][form];
    if (step.op->name == "Pow") {
      with.row = reinterpret_cast<void (*)()>(pow_fn(DType::kFloat32));
      with.b = turned ? 1 : 0;
    }
    put(with);
    used(other);
  }

  std::span<const ElementwiseStep> steps_;
  std::span<const ChainConstant> inputs_;
  std::vector<int> uses_;   ///< readers that have not read yet
  std::vector<int> saved_;  ///< the temporary that holds each result, or -1
  std::vector<int> free_;
  ChainProgram program_;
};

}  // namespace

ChainProgram compile_chain(std::span<const ElementwiseStep> steps,
                           std::span<const ChainConstant> inputs) {
  return Compiler(steps, inputs).compile();
}

void run_chain(const ChainProgram& program, ChainFrame& frame, int64_t n) {
  TOMBOLO_TARGET(void(const ChainStep*, ChainFrame*, int64_t), run_tiles)
  (program.steps.data(), &frame, n);
}

void fill_block(float* to, int64_t n, float value) {
  TOMBOLO_TARGET(void(float*, int64_t, float), fill_vectors)(to, n, value);
}

}  // namespace tombolo
#endif
