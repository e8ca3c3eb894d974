// Loss functions.

#include <cmath>

#include "formats/pytorch/aten/context.h"

namespace tombolo::pytorch {
namespace {

using C = AtenContext;

Value* reduced(C& c, Value* loss) {
  const int64_t how = c.integer("reduction");
  if (how == 0 || c.rank(loss) == 0) return loss;
  return c.op(how == 1 ? "ReduceMean" : "ReduceSum", {loss}, {{"keepdims", 0}});
}

DType common(C& c, const char* target = "target") { return c.promote({"self", target}); }

void mse(C& c) {
  const DType type = common(c);
  Value* d = c.sub(c.operand("self", type), c.operand("target", type));
  c.out(reduced(c, c.mul(d, d)));
}
void l1(C& c) {
  const DType type = common(c);
  c.out(reduced(c, c.op("Abs", {c.sub(c.operand("self", type), c.operand("target", type))})));
}
void smooth_l1(C& c) {
  const DType type = common(c);
  Value* d = c.op("Abs", {c.sub(c.operand("self", type), c.operand("target", type))});
  const bool huber = c.has_arg("delta");
  const double beta = c.real(huber ? "delta" : "beta");
  if (beta == 0) return c.out(reduced(c, d));
  Value* half = c.mul(c.like(0.5, d), c.mul(d, d));
  Value* near = huber ? half : c.div(half, c.like(beta, d));
  Value* far = c.sub(d, c.like(0.5 * beta, d));
  if (huber) far = c.mul(far, c.like(beta, d));
  c.out(reduced(c, c.where(c.op("Less", {d, c.like(beta, d)}), near, far)));
}

void binary_cross_entropy(C& c) {
  Value *x = c.x("self"), *t = c.cast(c.x("target"), c.dtype(x));
  Value* low = c.like(-100, x);
  Value* one = c.like(1, x);
  Value* yes = c.op("Max", {c.op("Log", {x}), low});
  Value* no = c.op("Max", {c.op("Log", {c.sub(one, x)}), low});
  Value* loss = c.op("Neg", {c.add(c.mul(t, yes), c.mul(c.sub(one, t), no))});
  if (c.given("weight")) loss = c.mul(loss, c.x("weight"));
  c.out(reduced(c, loss));
}

void binary_cross_entropy_with_logits(C& c) {
  Value *x = c.x("self"), *t = c.cast(c.x("target"), c.dtype(x));
  Value* one = c.like(1, x);
  // -log sigmoid(x) = softplus(-x)
  Value* no_part = c.mul(c.sub(one, t), x);
  Value* tail = c.op("Softplus", {c.op("Neg", {x})});
  if (c.given("pos_weight"))
    tail = c.mul(c.add(one, c.mul(c.sub(c.x("pos_weight"), one), t)), tail);
  Value* loss = c.add(no_part, tail);
  if (c.given("weight")) loss = c.mul(loss, c.x("weight"));
  c.out(reduced(c, loss));
}

/// The loss for class indices, along axis 1 (axis 0 of a vector); also the sum of weights.
Value* nll(C& c, Value* log_p, Value* target, Value* weight, int64_t ignore, int64_t reduction,
           Value** total_weight) {
  const bool single = c.rank(log_p) == 1;
  if (single) {
    log_p = c.unsqueeze(log_p, {0});
    target = c.reshape(target, {SymInt(1)});
  }
  target = c.cast(target, DType::kInt64);
  Value* counted = c.op("Not", {c.op("Equal", {target, c.b.int_scalar(ignore)})});
  Value* safe = c.where(counted, target, c.b.int_scalar(0));
  Value* picked =
      c.squeeze(c.op("GatherElements", {log_p, c.unsqueeze(safe, {1})}, {{"axis", 1}}), {1});
  Value* w = weight ? c.op("Gather", {c.cast(weight, c.dtype(log_p)), safe}, {{"axis", 0}})
                    : c.like(1, log_p);
  w = c.where(counted, w, c.like(0, log_p));
  Value* loss = c.op("Neg", {c.mul(picked, w)});
  loss = c.where(counted, loss, c.like(0, log_p));
  Value* total = c.op("ReduceSum", {w}, {{"keepdims", 0}});
  if (total_weight) *total_weight = total;
  if (reduction == 0) return single ? c.squeeze(loss, {0}) : loss;
  Value* sum = c.op("ReduceSum", {loss}, {{"keepdims", 0}});
  return reduction == 1 ? c.div(sum, total) : sum;
}

void nll_loss(C& c) {
  const int64_t reduction = c.integer("reduction");
  Value* total = nullptr;
  Value* loss = nll(c, c.x("self"), c.x("target"), c.opt("weight"), c.any_integer("ignore_index"),
                    reduction, &total);
  c.out(loss);
  if (c.schema().results.size() == 2) c.out(reduction == 0 ? c.like(0, total) : total);
}

void cross_entropy(C& c) {
  Value *x = c.x("self"), *target = c.x("target"), *weight = c.opt("weight");
  const int64_t axis = c.rank(x) == 1 ? 0 : 1, reduction = c.integer("reduction");
  const double smoothing = c.real("label_smoothing");
  Value* log_p = c.op("LogSoftmax", {x}, {{"axis", axis}});
  const SymInt classes = c.size(x, axis);
  const DType type = c.dtype(x);
  const auto by_class = [&](Value* v) {
    Ints after;
    for (int64_t i = axis + 1; i < c.rank(x); ++i) after.push_back(i - axis);
    return c.unsqueeze(c.cast(v, type), after);
  };
  if (is_float(c.dtype(target))) {
    // Probabilities of the classes.
    Value* t = c.cast(target, type);
    if (smoothing > 0)
      t = c.add(c.mul(t, c.like(1 - smoothing, t)),
                c.div(c.like(smoothing, t), c.operand_of(Arg(classes), type)));
    Value* p = c.mul(log_p, t);
    if (weight) p = c.mul(p, by_class(weight));
    Value* loss = c.op("Neg", {c.reduce("ReduceSum", p, {axis}, false)});
    if (reduction == 0) return c.out(loss);
    Value* sum = c.op("ReduceSum", {loss}, {{"keepdims", 0}});
    if (reduction == 2) return c.out(sum);
    const SymInt count = c.floor_div(c.numel(x), classes);
    return c.out(c.div(sum, c.operand_of(Arg(count), type)));
  }
  const int64_t ignore = c.any_integer("ignore_index");
  Value* total = nullptr;
  Value* plain = nll(c, log_p, target, weight, ignore, reduction, &total);
  if (smoothing <= 0) return c.out(plain);
  Value* spread = weight ? c.mul(log_p, by_class(weight)) : log_p;
  Value* smooth = c.op("Neg", {c.reduce("ReduceSum", spread, {axis}, false)});
  Value* counted = c.op("Not", {c.op("Equal", {target, c.b.int_scalar(ignore)})});
  smooth = c.where(counted, smooth, c.like(0, smooth));
  if (reduction != 0) {
    smooth = c.op("ReduceSum", {smooth}, {{"keepdims", 0}});
    if (reduction == 1) smooth = c.div(smooth, total);
  }
  Value* share = c.div(c.like(smoothing, x), c.operand_of(Arg(classes), type));
  c.out(c.add(c.mul(plain, c.like(1 - smoothing, x)), c.mul(smooth, share)));
}

void kl_div(C& c) {
  Value *x = c.x("self"), *t = c.x("target");
  Value* loss = nullptr;
  if (c.flag("log_target")) {
    loss = c.mul(c.op("Exp", {t}), c.sub(t, x));
  } else {
    loss = c.sub(c.lower("xlogy.Tensor", {c.arg("target"), c.arg("target")}), c.mul(t, x));
  }
  c.out(reduced(c, loss));
}

void poisson_nll(C& c) {
  Value *x = c.x("input"), *t = c.x("target");
  Value* loss = c.flag("log_input")
                    ? c.sub(c.op("Exp", {x}), c.mul(t, x))
                    : c.sub(x, c.mul(t, c.op("Log", {c.add(x, c.like(c.real("eps"), x))})));
  if (c.flag("full")) {
    Value* stirling = c.add(c.sub(c.mul(t, c.op("Log", {t})), t),
                            c.mul(c.like(0.5, t), c.op("Log", {c.mul(c.like(2 * M_PI, t), t)})));
    loss = c.add(loss, c.where(c.op("LessOrEqual", {t, c.like(1, t)}), c.like(0, t), stirling));
  }
  c.out(reduced(c, loss));
}

void soft_margin(C& c) {
  const DType type = common(c);
  Value* z = c.op("Neg", {c.mul(c.operand("self", type), c.operand("target", type))});
  c.out(reduced(c, c.op("Log", {c.add(c.like(1, z), c.op("Exp", {z}))})));
}

void margin_ranking(C& c) {
  Value *a = c.x("input1"), *y = c.x("input2"), *t = c.x("target");
  Value* loss = c.add(c.mul(c.op("Neg", {t}), c.sub(a, y)), c.like(c.real("margin"), a));
  c.out(reduced(c, c.op("Max", {loss, c.like(0, loss)})));
}

void hinge_embedding(C& c) {
  Value *x = c.x("self"), *t = c.x("target");
  Value* zero = c.like(0, x);
  Value* margin = c.op("Max", {c.sub(c.like(c.real("margin"), x), x), zero});
  Value* apart = c.where(c.op("Equal", {t, c.like(1, t)}), zero, margin);
  Value* near = c.where(c.op("Equal", {t, c.like(-1, t)}), zero, x);
  c.out(reduced(c, c.add(apart, near)));
}

void cosine_embedding(C& c) {
  Value *a = c.x("input1"), *y = c.x("input2"), *t = c.x("target");
  const int64_t axis = c.rank(t);
  const double tiny = 1e-12;
  Value* dot = c.reduce("ReduceSum", c.mul(a, y), {axis}, false);
  Value* aa = c.add(c.reduce("ReduceSum", c.mul(a, a), {axis}, false), c.like(tiny, a));
  Value* yy = c.add(c.reduce("ReduceSum", c.mul(y, y), {axis}, false), c.like(tiny, a));
  Value* cosine = c.div(dot, c.op("Sqrt", {c.mul(aa, yy)}));
  Value* zero = c.like(0, cosine);
  Value* same = c.sub(c.like(1, cosine), cosine);
  Value* apart = c.op("Max", {c.sub(cosine, c.like(c.real("margin"), cosine)), zero});
  Value* loss = c.add(c.where(c.op("Equal", {t, c.like(1, t)}), same, zero),
                      c.where(c.op("Equal", {t, c.like(-1, t)}), apart, zero));
  c.out(reduced(c, loss));
}

void triplet_margin(C& c) {
  const auto distance = [&](const char* one, const char* other) {
    return c.lower("pairwise_distance", {c.arg(one), c.arg(other), c.arg("p"), c.arg("eps")});
  };
  Value* near = distance("anchor", "positive");
  Value* far = distance("anchor", "negative");
  if (c.flag("swap")) far = c.op("Min", {far, distance("positive", "negative")});
  Value* loss = c.add(c.sub(near, far), c.like(c.real("margin"), near));
  c.out(reduced(c, c.op("Max", {loss, c.like(0, loss)})));
}

void multi_margin(C& c) {
  Value *x = c.x("self"), *t = c.cast(c.x("target"), DType::kInt64);
  const bool single = c.rank(x) <= 1;
  if (c.rank(x) == 0) x = c.unsqueeze(x, {0});
  if (single) {
    x = c.unsqueeze(x, {0});
    t = c.reshape(t, {SymInt(1)});
  }
  Value* index = c.unsqueeze(t, {1});
  Value* right = c.op("GatherElements", {x, index}, {{"axis", 1}});
  Value* z = c.op("Max", {c.add(c.sub(c.like(c.real("margin"), x), right), x), c.like(0, x)});
  const double p = c.real("p");
  if (p == 2) z = c.mul(z, z);
  if (c.given("weight")) z = c.mul(z, c.op("Gather", {c.x("weight"), index}, {{"axis", 0}}));
  Value* own = c.op("Equal", {c.range(c.size(x, 1)), index});
  z = c.where(own, c.like(0, z), z);
  Value* loss = c.reduce("ReduceMean", z, {1}, false);
  if (single && c.integer("reduction") == 0) loss = c.squeeze(loss, {0});
  c.out(reduced(c, loss));
}

void multilabel_margin(C& c) {
  Value *x = c.x("self"), *t = c.cast(c.x("target"), DType::kInt64);
  const bool single = c.rank(x) <= 1;
  if (c.rank(x) == 0) x = c.unsqueeze(x, {0});
  if (c.rank(t) == 0) t = c.unsqueeze(t, {0});
  if (single) {
    x = c.unsqueeze(x, {0});
    t = c.unsqueeze(t, {0});
  }
  // Labels count up to the first -1.
  Value* ended = c.op(
      "CumSum", {c.cast(c.op("Less", {t, c.b.int_scalar(0)}), DType::kInt64), c.b.int_scalar(1)});
  Value* counts = c.op("Equal", {ended, c.b.int_scalar(0)});
  Value* safe = c.where(counts, t, c.b.int_scalar(0));
  Value* classes = c.range(c.size(x, 1));
  Value* hit =
      c.op("And", {c.op("Equal", {c.unsqueeze(safe, {2}), classes}), c.unsqueeze(counts, {2})});
  Value* is_label = c.reduce("ReduceMax", c.cast(hit, DType::kInt32), {1}, false);
  Value* right = c.op("GatherElements", {x, safe}, {{"axis", 1}});
  Value* z = c.add(c.sub(c.like(1, x), c.unsqueeze(right, {2})), c.unsqueeze(x, {1}));
  z = c.op("Max", {z, c.like(0, x)});
  Value* use =
      c.op("And", {c.unsqueeze(counts, {2}),
                   c.unsqueeze(c.op("Equal", {is_label, c.scalar(0, DType::kInt32)}), {1})});
  z = c.where(use, z, c.like(0, x));
  Value* sum = c.reduce("ReduceSum", z, {1, 2}, false);
  Value* loss = c.div(sum, c.operand_of(Arg(c.size(x, 1)), c.dtype(x)));
  if (single) loss = c.squeeze(loss, {0});
  c.out(reduced(c, loss));
  if (c.schema().results.size() == 2)
    c.out(c.cast(single ? c.squeeze(is_label, {0}) : is_label, c.dtype(x)));
}

/// A linear layer and its cross entropy at once, which PyTorch computes in chunks; the gradients
/// that it makes on the way are nobody's outside of training.
void linear_cross_entropy(C& c) {
  Value* logits = c.lower("linear", {c.arg("input"), c.arg("linear_weight"), c.arg("linear_bias")});
  const bool each = !c.has_arg("reduction");
  const std::string how = each ? "none" : c.text("reduction");
  const int64_t reduction = how == "none" ? 0 : how == "mean" ? 1 : 2;
  const Arg smoothing = c.has_arg("label_smoothing") ? c.arg("label_smoothing") : Arg(0.0);
  Value* loss =
      c.lower("cross_entropy_loss", {Arg(c.cell(logits)), c.arg("target"), c.arg("weight"),
                                     Arg(reduction), c.arg("ignore_index"), smoothing});
  c.out(loss);
  if (!each)
    for (int i = 0; i < 3; ++i) c.out_arg(Arg());
}

#define LOSS(name) \
  {                \
    name "_loss(Tensor self, Tensor target, int reduction=Mean) -> Tensor"
#define WEIGHTED "Tensor? weight=None, int reduction=Mean, SymInt ignore_index=-100"

constexpr Row kLossRows[] = {LOSS("mse"), mse}, LOSS("l1"), l1
}
,
    {"smooth_l1_loss(Tensor self, Tensor target, int reduction=Mean, float beta=1.0) -> Tensor",
     smooth_l1},
    {"huber_loss(Tensor self, Tensor target, int reduction=Mean, float delta=1.0) -> Tensor",
     smooth_l1},
    {"binary_cross_entropy(Tensor self, Tensor target, Tensor? weight=None, int reduction=Mean) -> "
     "Tensor",
     binary_cross_entropy},
    {"binary_cross_entropy_with_logits(Tensor self, Tensor target, Tensor? weight=None, Tensor? "
     "pos_weight=None, int reduction=Mean) -> Tensor",
     binary_cross_entropy_with_logits},
    {"nll_loss(Tensor self, Tensor target, " WEIGHTED ") -> Tensor", nll_loss},
    {"nll_loss2d(Tensor self, Tensor target, " WEIGHTED ") -> Tensor", nll_loss},
    {"nll_loss_nd(Tensor self, Tensor target, " WEIGHTED ") -> Tensor", nll_loss},
    {"nll_loss_forward(Tensor self, Tensor target, Tensor? weight, int reduction, SymInt "
     "ignore_index) -> (Tensor output, Tensor total_weight)",
     nll_loss},
    {"nll_loss2d_forward(Tensor self, Tensor target, Tensor? weight, int reduction, SymInt "
     "ignore_index) -> (Tensor output, Tensor total_weight)",
     nll_loss},
    {"cross_entropy_loss(Tensor self, Tensor target, " WEIGHTED
     ", float label_smoothing=0.0) -> Tensor",
     cross_entropy},
    {"kl_div(Tensor self, Tensor target, int reduction=Mean, *, bool log_target=False) -> Tensor",
     kl_div},
    {"poisson_nll_loss(Tensor input, Tensor target, bool log_input, bool full, float eps, int "
     "reduction) -> Tensor",
     poisson_nll},
    LOSS("soft_margin"), soft_margin
}
,
    {"margin_ranking_loss(Tensor input1, Tensor input2, Tensor target, float margin=0.0, int "
     "reduction=Mean) -> Tensor",
     margin_ranking},
    {"hinge_embedding_loss(Tensor self, Tensor target, float margin=1.0, int reduction=Mean) -> "
     "Tensor",
     hinge_embedding},
    {"cosine_embedding_loss(Tensor input1, Tensor input2, Tensor target, float margin=0.0, int "
     "reduction=Mean) -> Tensor",
     cosine_embedding},
    {"triplet_margin_loss(Tensor anchor, Tensor positive, Tensor negative, float margin=1.0, float "
     "p=2.0, float eps=1e-06, bool swap=False, int reduction=Mean) -> Tensor",
     triplet_margin},
    {"multi_margin_loss(Tensor self, Tensor target, Scalar p=1, Scalar margin=1, Tensor? "
     "weight=None, int reduction=Mean) -> Tensor",
     multi_margin},
    LOSS("multilabel_margin"), multilabel_margin
}
,
    {"torch_nn::_linear_cross_entropy_batch_chunked(Tensor input, Tensor linear_weight, Tensor "
     "target, "
     "Tensor? linear_bias=None, Tensor? weight=None, str reduction='mean', int ignore_index=-100, "
     "float label_smoothing=0.0, int batch_chunk_size=0, str acc_policy='compact', ScalarType? "
     "acc_dtype=None, bool allow_retain_graph=True, bool compute_input_grad=False, bool "
     "compute_linear_weight_grad=False, bool compute_linear_bias_grad=False) -> (Tensor, Tensor, "
     "Tensor, Tensor)",
     linear_cross_entropy},
    {"torch_nn::_linear_cross_entropy_batch_chunked_no_reduction(Tensor input, Tensor "
     "linear_weight, "
     "Tensor target, Tensor? linear_bias=None, Tensor? weight=None, int ignore_index=-100, int "
     "batch_chunk_size=0, str acc_policy='compact', ScalarType? acc_dtype=None) -> Tensor",
     linear_cross_entropy},
    {"multilabel_margin_loss_forward(Tensor self, Tensor target, int reduction) -> (Tensor output, "
     "Tensor is_target)",
     multilabel_margin},
}
;

}  // namespace

std::span<const Row> loss_rows() { return kLossRows; }

}  // namespace tombolo::pytorch
