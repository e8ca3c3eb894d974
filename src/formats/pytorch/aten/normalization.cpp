// Normalisation.

#include "formats/pytorch/aten/context.h"

namespace tombolo::pytorch {
namespace {

using C = AtenContext;

/// A vector over the channels, axis 1 of `r` axes.
Value* per_channel(C& c, Value* v, int64_t r) {
  Ints after;
  for (int64_t i = 2; i < r; ++i) after.push_back(i - 1);
  return c.unsqueeze(v, after);
}

Ints not_channels(int64_t r) {
  Ints axes;
  for (int64_t i = 0; i < r; ++i)
    if (i != 1) axes.push_back(i);
  return axes;
}

struct BatchNorm {
  Value *x, *weight, *bias, *mean, *var;
  bool training;
  double momentum, eps;
};

/// The output; in training also the batch's mean and 1/deviation, and the new running values.
Value* batch_norm_values(C& c, const BatchNorm& n, Value** mean_out, Value** rstd_out,
                         Value** new_mean, Value** new_var) {
  const int64_t r = c.rank(n.x);
  const DType type = c.dtype(n.x);
  const SymInt channels = c.size(n.x, 1);
  const auto vector = [&](Value* v, double fallback) {
    return v ? v : c.full({channels}, fallback, type);
  };
  if (!n.training && n.mean && n.var) {
    Value *scale = vector(n.weight, 1), *shift = vector(n.bias, 0);
    const DType wide = c.dtype(scale);
    if (c.dtype(n.mean) == wide && c.dtype(n.var) == wide)
      return c.op("BatchNormalization", {n.x, scale, shift, n.mean, n.var}, {{"epsilon", n.eps}});
    return c.op("BatchNormalization",
                {n.x, scale, shift, c.cast(n.mean, wide), c.cast(n.var, wide)},
                {{"epsilon", n.eps}});
  }
  const Ints axes = not_channels(r);
  Value* mean = c.reduce("ReduceMean", n.x, axes, true);
  Value* centred = c.sub(n.x, mean);
  Value* var = c.reduce("ReduceMean", c.mul(centred, centred), axes, true);
  Value* rstd = c.op("Reciprocal", {c.op("Sqrt", {c.add(var, c.like(n.eps, var))})});
  Value* y = c.mul(centred, rstd);
  if (n.weight) y = c.mul(y, per_channel(c, n.weight, r));
  if (n.bias) y = c.add(y, per_channel(c, n.bias, r));
  if (mean_out) *mean_out = c.squeeze(mean, axes);
  if (rstd_out) *rstd_out = c.squeeze(rstd, axes);
  const auto blended = [&](Value* old, Value* now) {
    return c.add(c.mul(old, c.like(1 - n.momentum, old)), c.mul(now, c.like(n.momentum, now)));
  };
  if (new_mean && n.mean)
    *new_mean = blended(n.mean, c.cast(c.squeeze(mean, axes), c.dtype(n.mean)));
  if (new_var && n.var) {
    SymInt count(1);
    for (const int64_t axis : axes) count = c.mul(count, c.size(n.x, axis));
    Value* number = c.operand_of(Arg(count), type);
    Value* unbiased = c.mul(c.squeeze(var, axes), c.div(number, c.sub(number, c.like(1, number))));
    *new_var = blended(n.var, c.cast(unbiased, c.dtype(n.var)));
  }
  return y;
}

BatchNorm read_batch_norm(C& c) {
  BatchNorm n{};
  n.x = c.x("input");
  n.weight = c.opt("weight");
  n.bias = c.opt("bias");
  n.mean = c.has_arg("running_mean") ? c.opt("running_mean") : nullptr;
  n.var = c.has_arg("running_var") ? c.opt("running_var") : nullptr;
  n.training = c.has_arg("training") ? c.flag("training")
                                     : c.has_arg("use_input_stats") && c.flag("use_input_stats");
  n.momentum = c.has_arg("momentum") && c.given("momentum") ? c.real("momentum") : 0.1;
  n.eps = c.real(c.has_arg("eps") ? "eps" : "epsilon");
  return n;
}

/// batch_norm and cudnn's form: in training the running values are written where they lie.
void batch_norm(C& c) {
  const BatchNorm n = read_batch_norm(c);
  Value *mean = nullptr, *var = nullptr;
  c.out(batch_norm_values(c, n, nullptr, nullptr, &mean, &var));
  if (mean) c.write(c.ref("running_mean"), mean);
  if (var) c.write(c.ref("running_var"), var);
}

/// native_batch_norm and its relatives return the statistics too.
void native_batch_norm(C& c) {
  BatchNorm n = read_batch_norm(c);
  const std::string_view name = c.name();
  if (name.find("no_training") != name.npos || name == "_batch_norm_no_update") n.training = false;
  if (name.find("with_update") != name.npos) n.training = true;
  Value *mean = nullptr, *rstd = nullptr, *new_mean = nullptr, *new_var = nullptr;
  c.out(batch_norm_values(c, n, &mean, &rstd, &new_mean, &new_var));
  // Without training torch gives empty ones.
  Value* none = mean ? nullptr : c.full({SymInt(0)}, 0, c.dtype(n.x));
  c.out(mean ? mean : none);
  c.out(rstd ? rstd : none);
  const bool functional = name.find("functional") != name.npos;
  if (name.find("with_update") != name.npos || name == "_batch_norm_no_update")
    c.out(c.full({SymInt(0)}, 0, DType::kUInt8));
  if (functional) {
    c.out(new_mean ? new_mean : n.mean);
    c.out(new_var ? new_var : n.var);
  } else if (n.training) {
    if (new_mean) c.write(c.ref("running_mean"), new_mean);
    if (new_var) c.write(c.ref("running_var"), new_var);
  }
}

void instance_norm(C& c) {
  BatchNorm n = read_batch_norm(c);
  if (!n.training && n.mean)
    return c.out(batch_norm_values(c, n, nullptr, nullptr, nullptr, nullptr));
  const SymInt channels = c.size(n.x, 1);
  const DType type = c.dtype(n.x);
  if (n.mean) {
    // The running values move towards the means over the batch, where they lie.
    Ints axes;
    SymInt count(1);
    for (int64_t i = 2; i < c.rank(n.x); ++i) {
      axes.push_back(i);
      count = c.mul(count, c.size(n.x, i));
    }
    Value* mean = c.reduce("ReduceMean", n.x, axes, true);
    Value* d = c.sub(n.x, mean);
    Value* size = c.operand_of(Arg(count), type);
    Value* var =
        c.div(c.reduce("ReduceSum", c.mul(d, d), axes, false), c.sub(size, c.like(1, size)));
    const auto blended = [&](Value* old, Value* now) {
      Value* fresh = c.reduce("ReduceMean", c.cast(now, c.dtype(old)), {0}, false);
      return c.add(c.mul(old, c.like(1 - n.momentum, old)), c.mul(fresh, c.like(n.momentum, old)));
    };
    c.write(c.ref("running_mean"), blended(n.mean, c.squeeze(mean, axes)));
    if (n.var) c.write(c.ref("running_var"), blended(n.var, var));
  }
  Value* scale = n.weight ? n.weight : c.full({channels}, 1, type);
  Value* shift = n.bias ? n.bias : c.full({channels}, 0, type);
  c.out(c.op("InstanceNormalization", {n.x, scale, shift}, {{"epsilon", n.eps}}));
}

void layer_norm(C& c) {
  Value* x = c.x("input");
  const int64_t axis = -static_cast<int64_t>(c.arg("normalized_shape").list.size());
  const DType type = c.dtype(x);
  const bool native = c.schema().results.size() == 3;
  Value *weight = c.opt("weight"), *bias = c.opt("bias");
  SymInts shape = c.syms("normalized_shape");
  if (!weight) weight = c.full(shape, 1, bias ? c.dtype(bias) : type);
  if (c.dtype(weight) != type) weight = c.cast(weight, type);
  if (bias && c.dtype(bias) != type) bias = c.cast(bias, type);
  const Attrs attrs = {{"axis", axis}, {"epsilon", c.real("eps")}};
  if (!native) return c.out(c.op("LayerNormalization", {x, weight, bias}, attrs));
  const Values results = c.b.op_many("LayerNormalization", {x, weight, bias}, 3, attrs);
  for (Value* one : results) c.out(one);
}

void rms_norm(C& c) {
  Value* x = c.x("input");
  const int64_t axis = -static_cast<int64_t>(c.arg("normalized_shape").list.size());
  const DType type = c.dtype(x);
  double eps = 1.1920928955078125e-07;
  if (c.given("eps")) {
    eps = c.real("eps");
  } else if (type == DType::kFloat64) {
    eps = 2.220446049250313e-16;
  } else if (type == DType::kFloat16) {
    eps = 0.0009765625;
  } else if (type == DType::kBFloat16) {
    eps = 0.0078125;
  }
  Value* weight = c.opt("weight");
  if (!weight) weight = c.full(c.syms("normalized_shape"), 1, type);
  Value* y =
      c.op("RMSNormalization", {x, c.cast(weight, type)}, {{"axis", axis}, {"epsilon", eps}});
  c.out(y);
  if (c.schema().results.size() == 2) {
    Ints axes;
    for (int64_t i = axis; i < 0; ++i) axes.push_back(i + c.rank(x));
    Value* square = c.reduce("ReduceMean", c.mul(x, x), axes, true);
    c.out(c.op("Reciprocal", {c.op("Sqrt", {c.add(square, c.like(eps, square))})}));
  }
}

Value* group_norm_value(C& c, Value* x, Value* weight, Value* bias, int64_t groups, double eps) {
  const DType type = c.dtype(x);
  const SymInt channels = c.size(x, 1);
  if (!weight) weight = c.full({channels}, 1, type);
  if (!bias) bias = c.full({channels}, 0, type);
  return c.op("GroupNormalization", {x, c.cast(weight, type), c.cast(bias, type)},
              {{"epsilon", eps}, {"num_groups", groups}});
}

void group_norm(C& c) {
  c.out(group_norm_value(c, c.x("input"), c.opt("weight"), c.opt("bias"), c.integer("num_groups"),
                         c.real("eps")));
}

void native_group_norm(C& c) {
  Value* x = c.x("input");
  const int64_t groups = c.integer("group");
  const double eps = c.real("eps");
  c.out(group_norm_value(c, x, c.opt("weight"), c.opt("bias"), groups, eps));
  Value* wide = c.reshape(x, {c.size(x, 0), SymInt(groups), SymInt(-1)});
  Value* mean = c.reduce("ReduceMean", wide, {2}, true);
  Value* d = c.sub(wide, mean);
  Value* var = c.reduce("ReduceMean", c.mul(d, d), {2}, false);
  c.out(c.squeeze(mean, {2}));
  c.out(c.op("Reciprocal", {c.op("Sqrt", {c.add(var, c.like(eps, var))})}));
}

void weight_norm(C& c) {
  Value *v = c.x("v"), *g = c.x("g");
  const int64_t dim = c.integer("dim"), r = c.rank(v);
  Ints axes;
  for (int64_t i = 0; i < r; ++i)
    if (i != dim) axes.push_back(i);
  Value* norm = c.reduce("ReduceL2", v, axes, true);
  c.out(c.mul(v, c.div(g, norm)));
  if (c.schema().results.size() == 2) c.out(norm);
}

constexpr Row kNormalizationRows[] = {
    {"batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? "
     "running_var, bool training, float momentum, float eps, bool cudnn_enabled) -> Tensor",
     batch_norm},
    {"native_batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? "
     "running_var, bool training, float momentum, float eps) -> (Tensor, Tensor, Tensor)",
     native_batch_norm},
    {"_native_batch_norm_legit(Tensor input, Tensor? weight, Tensor? bias, Tensor(a!) "
     "running_mean, Tensor(b!) running_var, bool training, float momentum, float eps) -> (Tensor, "
     "Tensor, Tensor)",
     native_batch_norm},
    {"_native_batch_norm_legit.no_stats(Tensor input, Tensor? weight, Tensor? bias, bool training, "
     "float momentum, float eps) -> (Tensor, Tensor, Tensor)",
     native_batch_norm},
    {"_native_batch_norm_legit_no_training(Tensor input, Tensor? weight, Tensor? bias, Tensor "
     "running_mean, Tensor running_var, float momentum, float eps) -> (Tensor, Tensor, Tensor)",
     native_batch_norm},
    {"_native_batch_norm_legit_functional(Tensor input, Tensor? weight, Tensor? bias, Tensor "
     "running_mean, Tensor running_var, bool training, float momentum, float eps) -> (Tensor, "
     "Tensor, Tensor, Tensor, Tensor)",
     native_batch_norm},
    {"_batch_norm_with_update(Tensor input, Tensor? weight, Tensor? bias, Tensor(a!) running_mean, "
     "Tensor(b!) running_var, float momentum, float eps) -> (Tensor, Tensor, Tensor, Tensor)",
     native_batch_norm},
    {"_batch_norm_with_update_functional(Tensor input, Tensor? weight, Tensor? bias, Tensor "
     "running_mean, Tensor running_var, float momentum, float eps) -> (Tensor, Tensor, Tensor, "
     "Tensor, Tensor, Tensor)",
     native_batch_norm},
    {"_batch_norm_no_update(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, "
     "Tensor? running_var, float momentum, float eps) -> (Tensor, Tensor, Tensor, Tensor)",
     native_batch_norm},
    {"cudnn_batch_norm(Tensor input, Tensor weight, Tensor? bias, Tensor? running_mean, Tensor? "
     "running_var, bool training, float exponential_average_factor, float epsilon) -> (Tensor, "
     "Tensor, Tensor, Tensor)",
     native_batch_norm},
    {"instance_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? "
     "running_var, bool use_input_stats, float momentum, float eps, bool cudnn_enabled) -> Tensor",
     instance_norm},
    {"layer_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight=None, Tensor? bias=None, "
     "float eps=1e-05, bool cudnn_enable=True) -> Tensor",
     layer_norm},
    {"native_layer_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight, Tensor? bias, "
     "float eps) -> (Tensor, Tensor, Tensor)",
     layer_norm},
    {"rms_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight=None, float? eps=None) -> "
     "Tensor",
     rms_norm},
    {"_fused_rms_norm(Tensor input, int[] normalized_shape, Tensor? weight, float? eps) -> "
     "(Tensor, Tensor)",
     rms_norm},
    {"group_norm(Tensor input, int num_groups, Tensor? weight=None, Tensor? bias=None, float "
     "eps=1e-05, bool cudnn_enabled=True) -> Tensor",
     group_norm},
    {"native_group_norm(Tensor input, Tensor? weight, Tensor? bias, SymInt N, SymInt C, SymInt "
     "HxW, int group, float eps) -> (Tensor, Tensor, Tensor)",
     native_group_norm},
    {"_weight_norm(Tensor v, Tensor g, int dim=0) -> Tensor", weight_norm},
    {"_weight_norm_interface(Tensor v, Tensor g, int dim=0) -> (Tensor, Tensor)", weight_norm},
};

}  // namespace

std::span<const Row> normalization_rows() { return kNormalizationRows; }

}  // namespace tombolo::pytorch
