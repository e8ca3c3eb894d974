// Random numbers (refused), and what belongs to no other family.

#include <cmath>

#include "formats/pytorch/aten/complex.h"
#include "formats/pytorch/aten/context.h"

namespace tombolo::pytorch {
namespace {

using C = AtenContext;

void random(C& c) {
  c.refuse("it draws random numbers, and ONNX's generators give others than PyTorch's",
           "make the random tensor an input of the model");
}

void angle(C& c) {
  if (c.is_complex("self")) {
    Value* z = c.x("self");
    return c.out(atan2_values(c, c.im(z), c.re(z)));
  }
  Value* x = c.operand("self", c.promote({"self"}, Promotion::kIntToFloat));
  Value* negative = c.op("Less", {x, c.like(0, x)});
  Value* y = c.where(negative, c.like(M_PI, x), c.like(0, x));
  c.out(c.where(c.op("IsNaN", {x}), x, y));
}

void sum_to_size(C& c) {
  Value* x = c.x("self");
  const SymInts sizes = c.syms("size");
  const int64_t r = c.rank(x), extra = r - static_cast<int64_t>(sizes.size());
  Ints first, kept;
  for (int64_t i = 0; i < extra; ++i) first.push_back(i);
  if (!first.empty()) x = c.reduce("ReduceSum", x, first, false);
  for (size_t i = 0; i < sizes.size(); ++i)
    if (sizes[i].is(1) && c.known(x, static_cast<int64_t>(i)) != 1)
      kept.push_back(static_cast<int64_t>(i));
  if (!kept.empty()) x = c.reduce("ReduceSum", x, kept, true);
  if (x == c.x("self")) return c.out_arg(c.arg("self"));
  c.out(x);
}

void frexp(C& c) {
  Value* x = c.x("self");
  Value* a = c.cast(c.op("Abs", {x}), DType::kFloat64);
  Value* zero = c.op("Equal", {a, c.scalar(0, DType::kFloat64)});
  Value* safe = c.where(zero, c.scalar(1, DType::kFloat64), a);
  Value* e =
      c.add(c.op("Floor", {c.mul(c.op("Log", {safe}), c.scalar(1 / M_LN2, DType::kFloat64))}),
            c.scalar(1, DType::kFloat64));
  // The logarithm may be off by one at powers of two.
  const auto mantissa = [&](Value* exponent) {
    return c.div(safe, c.op("Pow", {c.scalar(2, DType::kFloat64), exponent}));
  };
  e = c.where(c.op("GreaterOrEqual", {mantissa(e), c.scalar(1, DType::kFloat64)}),
              c.add(e, c.scalar(1, DType::kFloat64)), e);
  e = c.where(c.op("Less", {mantissa(e), c.scalar(0.5, DType::kFloat64)}),
              c.sub(e, c.scalar(1, DType::kFloat64)), e);
  Value* m = c.cast(mantissa(e), c.dtype(x));
  Value* sign = c.op("Sign", {x});
  // 0, infinities and NaN are their own mantissa.
  Value* itself = c.op("Or", {zero, c.op("Or", {c.op("IsInf", {a}), c.op("IsNaN", {a})})});
  c.out(c.where(itself, x, c.mul(m, sign)));
  c.out(c.cast(c.where(itself, c.scalar(0, DType::kFloat64), e), DType::kInt32));
}

void unique_consecutive(C& c) {
  Value* x = c.x("self");
  const SymInts sizes = c.sizes(x);
  const bool by_dim = c.given("dim");
  const int64_t dim = by_dim ? c.axis(c.integer("dim"), c.rank(x)) : 0;
  if (!by_dim) x = c.reshape(x, {SymInt(-1)});
  const SymInt n = c.size(x, dim);
  if (n.is(0)) {
    Value* none = c.full({SymInt(0)}, 0, DType::kInt64);
    c.out(x);
    c.out(c.flag("return_inverse") && !by_dim ? c.reshape(none, sizes) : none);
    return c.out(none);
  }
  Value* head = c.slice(x, dim, SymInt(0), c.sub(n, SymInt(1)));
  Value* tail = c.slice(x, dim, SymInt(1), SymInt(INT64_MAX));
  Value* differs = c.cast(c.op("Not", {c.op("Equal", {head, tail})}), DType::kInt32);
  Ints others;
  for (int64_t i = 0; i < c.rank(x); ++i)
    if (i != dim) others.push_back(i);
  if (!others.empty()) differs = c.reduce("ReduceMax", differs, others, false);
  Value* ones = c.full({SymInt(1)}, 1, DType::kInt32);
  Value* starts = c.concat({ones, differs}, 0);  // 1 where a run starts
  Value* order = c.cast(starts, DType::kInt64);
  Value* inverse = c.sub(c.op("CumSum", {order, c.b.int_scalar(0)}), c.b.int_scalar(1));
  Value* mask = c.cast(starts, DType::kBool);
  Value* values = c.op("Compress", {x, mask}, {{"axis", dim}});
  Value* places = c.op("Compress", {c.range(n), mask}, {{"axis", 0}});
  if (!c.has_rank(places)) c.b.set_type(places, DType::kInt64, {SymDim()});
  if (!c.has_rank(values)) {
    Shape shape = c.b.shape(x);
    shape[static_cast<size_t>(dim)] = SymDim();
    c.b.set_type(values, c.dtype(x), shape);
  }
  Value* ends = c.concat({c.slice(places, 0, SymInt(1), SymInt(INT64_MAX)), c.int_vector(n)}, 0);
  c.out(values);
  c.out(c.flag("return_inverse") && !by_dim ? c.reshape(inverse, sizes)
        : c.flag("return_inverse")          ? inverse
                                            : c.full({SymInt(0)}, 0, DType::kInt64));
  c.out(c.flag("return_counts") ? c.sub(ends, places) : c.full({SymInt(0)}, 0, DType::kInt64));
}

/// A copy with strides of its own, which the file says of its results.
void copy_strided(C& c) { c.out(c.x("a"), c.type("a")); }

/// Sequences [length, ..] side by side, filled up to the longest one.
void pad_sequence(C& c) {
  const Values given = c.values("sequences");
  if (given.empty()) return c.refuse("a list without tensors");
  SymInt most = c.size(given[0], 0);
  for (Value* one : given) most = c.maximum(most, c.size(one, 0));
  const bool left = c.given("padding_side") && c.text("padding_side") == "left";
  Values rows;
  for (Value* one : given) {
    SymInts missing = c.sizes(one);
    missing[0] = c.sub(most, missing[0]);
    if (!missing[0].is(0)) {
      Value* fill = c.full(missing, c.real("padding_value"), c.dtype(one));
      one = left ? c.concat({fill, one}, 0) : c.concat({one, fill}, 0);
    }
    rows.push_back(c.unsqueeze(one, {c.flag("batch_first") ? 0 : 1}));
  }
  c.out(c.concat(rows, c.flag("batch_first") ? 0 : 1));
}

void nonzero_static(C& c) {
  Value* x = c.x("self");
  const SymInt size = c.sym("size");
  Value* found = c.swap(c.op("NonZero", {x}), 0, 1);
  Value* fill = c.full({size, SymInt(c.rank(x))}, static_cast<double>(c.any_integer("fill_value")),
                       DType::kInt64);
  c.out(c.slice(c.concat({found, fill}, 0), 0, SymInt(0), size));
}

/// Elements at indices where the mask says so, a fill value elsewhere.
void masked_index(C& c) {
  Value* mask = c.cast(c.x("mask"), DType::kBool);
  Args indices;
  for (const Ref& ref : c.tensors("indices")) {
    if (!ref) {
      indices.emplace_back();
      continue;
    }
    Value* index = c.read(ref);
    // Places outside are looked at nowhere.
    indices.emplace_back(c.cell(c.where(mask, index, c.like(0, index))));
  }
  if (c.has_arg("values")) {
    Value* values = c.x("values");
    values = c.where(mask, values, c.like(0, values));
    return c.out(
        c.lower("index_put", {c.arg("self"), Arg(indices), Arg(c.cell(values)), Arg(true)}));
  }
  Value* picked = c.lower("index.Tensor", {c.arg("self"), Arg(indices)});
  c.out(c.where(mask, picked, c.operand("fill", c.dtype(picked))));
}

void softmax_backward(C& c) {
  Value *g = c.x("grad_output"), *y = c.x("output");
  const int64_t dim = c.axis(c.integer("dim"), c.rank(y));
  if (std::string_view(c.detail()) == "log")
    return c.out(c.sub(g, c.mul(c.op("Exp", {y}), c.reduce("ReduceSum", g, {dim}, true))));
  Value* weighted = c.mul(g, y);
  c.out(c.sub(weighted, c.mul(y, c.reduce("ReduceSum", weighted, {dim}, true))));
}

void pool_backward(C& c) {
  Value *x = c.x("self"), *g = c.x("grad_output"), *indices = c.x("indices");
  const int64_t r = c.rank(x);
  SymInts lead, flat, flat_out;
  for (int64_t i = 0; i < r - 2; ++i) lead.push_back(c.size(x, i));
  flat = lead;
  flat.emplace_back(-1);
  flat_out = lead;
  flat_out.push_back(c.mul(c.size(x, -1), c.size(x, -2)));
  Value* y = c.op("ScatterElements",
                  {c.full(flat_out, 0, c.dtype(x)), c.reshape(indices, flat), c.reshape(g, flat)},
                  {{"axis", r - 2}, {"reduction", "add"}});
  c.out(c.reshape(y, c.sizes(x)));
}

void chunk_cat(C& c) {
  const int64_t chunks = c.integer("num_chunks");
  if (chunks < 1) return c.refuse("no chunks");
  const auto tensors = c.tensors("tensors");
  if (tensors.empty()) return c.refuse("a list without tensors");
  const int64_t dim = c.axis(c.integer("dim"), c.rank(c.read(tensors[0])));
  Values parts;
  for (const Ref& ref : tensors) {
    Value* x = c.read(ref);
    const auto n = c.known(x, dim);
    if (!n) return c.refuse("an axis of unknown length");
    const int64_t padded = (*n + chunks - 1) / chunks * chunks;
    if (padded != *n) {
      Ints pads(2 * static_cast<size_t>(c.rank(x)), 0);
      pads[static_cast<size_t>(c.rank(x) + dim)] = padded - *n;
      x = c.op("Pad", {x, c.b.ints(pads)});
    }
    SymInts shape;
    for (int64_t i = 0; i < dim; ++i) shape.push_back(c.size(x, i));
    shape.emplace_back(chunks);
    shape.emplace_back(-1);
    parts.push_back(c.reshape(x, shape));
  }
  c.out(c.concat(parts, dim + 1));
}

/// Estimates of the derivative, second order inside, first (or second) at the ends.
void gradient(C& c) {
  Value* x = c.x("self");
  const int64_t r = c.rank(x), edge = c.integer("edge_order");
  Ints dims;
  if (c.given("dim")) {
    for (const int64_t d : c.ints("dim")) dims.push_back(c.axis(d, r));
  } else {
    for (int64_t i = 0; i < r; ++i) dims.push_back(i);
  }
  const Arg& spacing = c.arg("spacing");
  const DType type = c.dtype(x);
  if (!is_float(type)) return c.refuse("a gradient of integers");
  Values results;
  for (size_t k = 0; k < dims.size(); ++k) {
    const int64_t d = dims[k];
    const SymInt n = c.size(x, d);
    Value* points = nullptr;  // positions along the axis
    if (spacing.kind == Arg::Kind::kList && k < spacing.list.size() &&
        spacing.list[k].is_tensor()) {
      points = c.cast(c.read(spacing.list[k].tensor), type);
    } else {
      Arg step = spacing.kind == Arg::Kind::kList
                     ? (k < spacing.list.size() ? spacing.list[k] : Arg(1))
                     : spacing;
      if (step.is_none()) step = Arg(1);
      points = c.mul(c.cast(c.range(n), type), c.operand_of(step, type));
    }
    Ints after;
    for (int64_t i = d + 1; i < r; ++i) after.push_back(i - d);
    Value* p = c.unsqueeze(points, after);
    const auto piece = [&](Value* v, int64_t axis, int64_t from, int64_t to) {
      return c.slice(v, axis, SymInt(from), to == 0 ? SymInt(INT64_MAX) : SymInt(to));
    };
    Value* h = c.sub(piece(p, 0, 1, 0), piece(p, 0, 0, -1));
    Value* slope = c.div(c.sub(piece(x, d, 1, 0), piece(x, d, 0, -1)), h);
    Value* h0 = piece(h, 0, 0, -1);
    Value* h1 = piece(h, 0, 1, 0);
    Value *s0 = piece(slope, d, 0, -1), *s1 = piece(slope, d, 1, 0);
    Value* inner = c.div(c.add(c.mul(s0, h1), c.mul(s1, h0)), c.add(h0, h1));
    Value *first = piece(slope, d, 0, 1), *last = piece(slope, d, -1, 0);
    if (edge == 2) {
      // Extrapolated from the parabola through the three outermost points.
      const auto bend = [&](int64_t from, int64_t to) {
        return c.div(c.sub(piece(s1, d, from, to), piece(s0, d, from, to)),
                     c.add(piece(h0, 0, from, to), piece(h1, 0, from, to)));
      };
      first = c.sub(first, c.mul(bend(0, 1), piece(h, 0, 0, 1)));
      last = c.add(last, c.mul(bend(-1, 0), piece(h, 0, -1, 0)));
    }
    results.push_back(c.concat({first, inner, last}, d));
  }
  c.out_list(results);
}

void trapezoid(C& c) {
  Value* y = c.x("y");
  const bool running = c.name().starts_with("cumulative");
  const bool pairs = c.is_complex("y");
  const int64_t r = c.rank(y) - (pairs ? 1 : 0), dim = c.axis(c.integer("dim"), r);
  Value* high = c.slice(y, dim, SymInt(1), SymInt(INT64_MAX));
  Value* low = c.slice(y, dim, SymInt(0), SymInt(-1));
  Value* means = c.mul(c.add(high, low), c.like(0.5, y));
  if (c.has_arg("x")) {
    Value* x = c.x("x");
    const int64_t rx = c.rank(x) - (c.is_complex("x") ? 1 : 0), dx = rx == 1 ? 0 : dim - (r - rx);
    Value* h =
        c.sub(c.slice(x, dx, SymInt(1), SymInt(INT64_MAX)), c.slice(x, dx, SymInt(0), SymInt(-1)));
    if (rx == 1) {
      Ints after;
      for (int64_t i = dim + 1; i < r; ++i) after.push_back(i - dim);
      h = c.unsqueeze(h, after);
    }
    if (pairs && !c.is_complex("x")) h = c.unsqueeze(h, {-1});
    means = pairs && c.is_complex("x") ? complex_mul(c, means, h) : c.mul(means, h);
  } else {
    means = c.mul(means, c.operand("dx", c.dtype(y)));
  }
  c.out(running ? c.op("CumSum", {means, c.b.int_scalar(dim)})
                : c.reduce("ReduceSum", means, {dim}, false),
        c.type("y"));
}

// ---- torchvision ----

void nms(C& c) {
  // [n, 4] boxes with one score each; what is left, best first.
  Value* boxes = c.unsqueeze(c.x("dets"), {0});
  Value* scores = c.unsqueeze(c.x("scores"), {0, 1});
  Value* most = c.int_value(c.size(c.x("dets"), 0));
  Value* threshold = c.scalar(c.real("iou_threshold"), DType::kFloat32);
  Value* picked =
      c.op("NonMaxSuppression", {c.cast(boxes, DType::kFloat32), c.cast(scores, DType::kFloat32),
                                 c.unsqueeze(most, {0}), threshold});
  c.out(c.op("Gather", {picked, c.b.int_scalar(2)}, {{"axis", 1}}));
}

/// The scale as an attribute; one that is computed (from sizes that vary) goes into the boxes.
double box_scale(C& c, Value*& boxes) {
  const Arg& scale = c.arg("spatial_scale");
  if (!scale.computed && !scale.is_tensor()) return c.real("spatial_scale");
  boxes = c.mul(boxes, c.operand("spatial_scale", c.dtype(boxes)));
  return 1;
}

void roi_align(C& c) {
  Value* rois = c.x("rois");
  Value* batch = c.cast(c.op("Gather", {rois, c.b.int_scalar(0)}, {{"axis", 1}}), DType::kInt64);
  Value* boxes = c.slice(rois, 1, SymInt(1), SymInt(5));
  const int64_t ratio = c.integer("sampling_ratio");
  const double scale = box_scale(c, boxes);
  c.out(c.op("RoiAlign", {c.x("input"), boxes, batch},
             {{"output_height", c.integer("pooled_height")},
              {"output_width", c.integer("pooled_width")},
              {"spatial_scale", scale},
              {"sampling_ratio", ratio < 0 ? int64_t{0} : ratio},
              {"coordinate_transformation_mode",
               c.flag("aligned") ? "half_pixel" : "output_half_pixel"}}));
}

void roi_pool(C& c) {
  Value* rois = c.x("rois");
  Value* boxes = c.slice(rois, 1, SymInt(1), SymInt(5));
  Value* whole = boxes;
  const double scale = box_scale(c, boxes);
  if (boxes != whole) rois = c.concat({c.slice(rois, 1, SymInt(0), SymInt(1)), boxes}, 1);
  Value* y = c.op("MaxRoiPool", {c.x("input"), rois},
                  {{"pooled_shape", Ints{c.integer("pooled_height"), c.integer("pooled_width")}},
                   {"spatial_scale", scale}});
  c.out(y);
  c.out_arg(Arg());
}

void deform_conv2d(C& c) {
  const int64_t sh = c.integer("stride_h"), sw = c.integer("stride_w"), ph = c.integer("pad_h"),
                pw = c.integer("pad_w"), dh = c.integer("dilation_h"), dw = c.integer("dilation_w");
  Value* mask = c.flag("use_mask") ? c.x("mask") : nullptr;
  Value* w = c.x("weight");
  c.out(c.op("DeformConv", {c.x("input"), w, c.x("offset"), c.x("bias"), mask},
             {{"strides", Ints{sh, sw}},
              {"pads", Ints{ph, pw, ph, pw}},
              {"dilations", Ints{dh, dw}},
              {"group", c.integer("groups")},
              {"offset_group", c.integer("offset_groups")},
              {"kernel_shape", Ints{c.known(w, 2).value_or(1), c.known(w, 3).value_or(1)}}}));
}

#define LIKE                                                                                  \
  "ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, " \
  "MemoryFormat? memory_format=None"
#define OPTIONS \
  "ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None"

constexpr Row kMiscRows[] = {
    {"angle(Tensor self) -> Tensor", angle},
    {"sum_to_size(Tensor self, SymInt[] size) -> Tensor", sum_to_size},
    {"frexp.Tensor(Tensor self) -> (Tensor mantissa, Tensor exponent)", frexp},
    {"prims::copy_strided(Tensor a, SymInt[] stride) -> Tensor", copy_strided},
    {"pad_sequence(Tensor[] sequences, bool batch_first=False, float padding_value=0.0, str "
     "padding_side='right') -> Tensor",
     pad_sequence},
    {"unique_consecutive(Tensor self, bool return_inverse=False, bool return_counts=False, int? "
     "dim=None) -> (Tensor, Tensor, Tensor)",
     unique_consecutive},
    {"nonzero_static(Tensor self, *, SymInt size, int fill_value=-1) -> Tensor", nonzero_static},
    {"_unsafe_masked_index(Tensor self, Tensor mask, Tensor?[] indices, Scalar fill) -> Tensor",
     masked_index},
    {"_unsafe_masked_index_put_accumulate(Tensor self, Tensor mask, Tensor?[] indices, Tensor "
     "values) -> Tensor",
     masked_index},
    {"_softmax_backward_data(Tensor grad_output, Tensor output, int dim, ScalarType input_dtype) "
     "-> Tensor",
     softmax_backward},
    {"_log_softmax_backward_data(Tensor grad_output, Tensor output, int dim, ScalarType "
     "input_dtype) -> Tensor",
     softmax_backward, "log"},
    {"max_pool2d_with_indices_backward(Tensor grad_output, Tensor self, int[2] kernel_size, int[2] "
     "stride, int[2] padding, int[2] dilation, bool ceil_mode, Tensor indices) -> Tensor",
     pool_backward},
    {"_chunk_cat(Tensor[] tensors, int dim, int num_chunks) -> Tensor", chunk_cat},
    {"gradient.scalarint(Tensor self, *, Scalar? spacing=None, int? dim=None, int edge_order=1) -> "
     "Tensor[]",
     gradient},
    {"gradient.scalararray(Tensor self, *, Scalar spacing, int[] dim, int edge_order=1) -> "
     "Tensor[]",
     gradient},
    {"gradient.array(Tensor self, *, int[] dim, int edge_order=1) -> Tensor[]", gradient},
    {"gradient.scalarrayint(Tensor self, *, Scalar[] spacing, int? dim=None, int edge_order=1) -> "
     "Tensor[]",
     gradient},
    {"gradient.scalarrayarray(Tensor self, *, Scalar[] spacing, int[] dim, int edge_order=1) -> "
     "Tensor[]",
     gradient},
    {"gradient.tensorarrayint(Tensor self, *, Tensor[] spacing, int? dim=None, int edge_order=1) "
     "-> Tensor[]",
     gradient},
    {"gradient.tensorarray(Tensor self, *, Tensor[] spacing, int[] dim, int edge_order=1) -> "
     "Tensor[]",
     gradient},
    {"trapezoid.x(Tensor y, Tensor x, *, int dim=-1) -> Tensor", trapezoid},
    {"trapezoid.dx(Tensor y, *, Scalar dx=1, int dim=-1) -> Tensor", trapezoid},
    {"trapz.x(Tensor y, Tensor x, *, int dim=-1) -> Tensor", trapezoid},
    {"trapz.dx(Tensor y, *, float dx=1, int dim=-1) -> Tensor", trapezoid},
    {"cumulative_trapezoid.x(Tensor y, Tensor x, *, int dim=-1) -> Tensor", trapezoid},
    {"cumulative_trapezoid.dx(Tensor y, *, Scalar dx=1, int dim=-1) -> Tensor", trapezoid},
    {"torchvision::nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor", nms},
    {"torchvision::roi_align(Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, "
     "SymInt pooled_width, int sampling_ratio, bool aligned) -> Tensor",
     roi_align},
    {"torchvision::roi_pool(Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, "
     "SymInt pooled_width) -> (Tensor, Tensor)",
     roi_pool},
    {"torchvision::deform_conv2d(Tensor input, Tensor weight, Tensor offset, Tensor mask, Tensor "
     "bias, SymInt stride_h, SymInt stride_w, SymInt pad_h, SymInt pad_w, SymInt dilation_h, "
     "SymInt dilation_w, SymInt groups, SymInt offset_groups, bool use_mask) -> Tensor",
     deform_conv2d},
    {"rand(SymInt[] size, *, " OPTIONS ") -> Tensor", random},
    {"rand_like(Tensor self, *, " LIKE ") -> Tensor", random},
    {"randn(SymInt[] size, *, " OPTIONS ") -> Tensor", random},
    {"randn_like(Tensor self, *, " LIKE ") -> Tensor", random},
    {"randint(SymInt high, SymInt[] size, *, " OPTIONS ") -> Tensor", random},
    {"randint.low(SymInt low, SymInt high, SymInt[] size, *, " OPTIONS ") -> Tensor", random},
    {"randint_like(Tensor self, SymInt high, *, " LIKE ") -> Tensor", random},
    {"randint_like.low_dtype(Tensor self, SymInt low, SymInt high, *, " LIKE ") -> Tensor", random},
    {"randperm(SymInt n, *, " OPTIONS ") -> Tensor", random},
    {"bernoulli(Tensor self, *, Generator? generator=None) -> Tensor", random},
    {"bernoulli.p(Tensor self, float p, *, Generator? generator=None) -> Tensor", random},
    {"multinomial(Tensor self, SymInt num_samples, bool replacement=False, *, Generator? "
     "generator=None) -> Tensor",
     random},
    {"normal.float_float(float mean, float std, SymInt[] size, *, Generator? "
     "generator=None, " OPTIONS ") -> Tensor",
     random},
    {"normal.Tensor_Tensor(Tensor mean, Tensor std, *, Generator? generator=None) -> Tensor",
     random},
    {"normal.Tensor_float(Tensor mean, float std=1, *, Generator? generator=None) -> Tensor",
     random},
    {"normal(Tensor self, float mean=0, float std=1, *, Generator? generator=None) -> Tensor",
     random},
    {"normal_functional(Tensor self, float mean=0, float std=1, *, Generator? generator=None) -> "
     "Tensor",
     random},
    {"uniform(Tensor self, float from=0, float to=1, *, Generator? generator=None) -> Tensor",
     random},
    {"cauchy(Tensor self, float median=0, float sigma=1, *, Generator? generator=None) -> Tensor",
     random},
    {"exponential(Tensor self, float lambd=1, *, Generator? generator=None) -> Tensor", random},
    {"geometric(Tensor self, float p, *, Generator? generator=None) -> Tensor", random},
    {"log_normal(Tensor self, float mean=1, float std=2, *, Generator? generator=None) -> Tensor",
     random},
    {"random(Tensor self, *, Generator? generator=None) -> Tensor", random},
    {"poisson(Tensor self, Generator? generator=None) -> Tensor", random},
};

}  // namespace

std::span<const Row> misc_rows() { return kMiscRows; }

}  // namespace tombolo::pytorch
