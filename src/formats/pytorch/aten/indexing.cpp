// Gathering and scattering.

#include <algorithm>
#include <cmath>

#include "formats/pytorch/aten/context.h"

namespace tombolo::pytorch {
namespace {

using C = AtenContext;

int64_t rank_of(C& c, std::string_view name, Value* x) {
  return c.rank(x) - (c.is_complex(name) ? 1 : 0);
}

Value* index64(C& c, Value* index) {
  const DType type = c.dtype(index);
  return type == DType::kInt64 || type == DType::kInt32 ? index : c.cast(index, DType::kInt64);
}

// ---- index with tensors ----

struct Indices {
  Values at;             ///< per axis, null where a whole axis is taken
  Ints axes;             ///< where they stand
  bool adjacent = true;  ///< no whole axis between them
};

/// Boolean indices become the coordinates of their true elements.
Indices read_indices(C& c, Value* x, int64_t r) {
  Indices result;
  for (const Ref& ref : c.tensors("indices")) {
    if (!ref) {
      result.at.push_back(nullptr);
      continue;
    }
    Value* index = c.read(ref);
    const DType type = ref->dtype != DType::kUndefined ? ref->dtype : c.dtype(index);
    if (type == DType::kUndefined) c.refuse("an index of unknown type: it may be a mask");
    if (type == DType::kBool || type == DType::kUInt8) {
      const int64_t axes = c.rank(index);
      Value* found = c.op("NonZero", {index});
      for (int64_t i = 0; i < axes; ++i)
        result.at.push_back(c.op("Gather", {found, c.b.int_scalar(i)}, {{"axis", 0}}));
    } else {
      result.at.push_back(index64(c, index));
    }
  }
  (void)x;
  if (static_cast<int64_t>(result.at.size()) > r) c.refuse("more indices than axes");
  for (size_t i = 0; i < result.at.size(); ++i)
    if (result.at[i]) result.axes.push_back(static_cast<int64_t>(i));
  for (size_t i = 1; i < result.axes.size(); ++i)
    result.adjacent = result.adjacent && result.axes[i] == result.axes[i - 1] + 1;
  return result;
}

/// [..., k] coordinates for GatherND and ScatterND, of the axes brought first.
Value* coordinates(C& c, const Indices& indices) {
  Values columns;
  SymInts shape;
  bool equal = true;
  for (const int64_t axis : indices.axes) {
    Value* index = c.cast(indices.at[static_cast<size_t>(axis)], DType::kInt64);
    const SymInts sizes = c.sizes(index);
    if (!columns.empty()) {
      equal = equal && sizes.size() == shape.size();
      for (size_t i = 0; equal && i < sizes.size(); ++i) equal = sizes[i].dim.equals(shape[i].dim);
    } else {
      shape = sizes;
    }
    columns.push_back(index);
  }
  if (!equal) {
    // Broadcast by adding zeros: the sizes may be known only while the model runs.
    Value* zero = nullptr;
    for (Value* column : columns) {
      Value* none = c.mul(column, c.b.int_scalar(0));
      zero = zero ? c.add(zero, none) : none;
    }
    for (Value*& column : columns) column = c.add(column, zero);
  }
  for (Value*& column : columns) column = c.unsqueeze(column, {-1});
  return c.concat(columns, c.rank(columns[0]) - 1);
}

Ints indexed_first(const Indices& indices, int64_t r, bool complex) {
  Ints perm = indices.axes;
  for (int64_t i = 0; i < r; ++i)
    if (std::find(indices.axes.begin(), indices.axes.end(), i) == indices.axes.end())
      perm.push_back(i);
  if (complex) perm.push_back(r);
  return perm;
}

void index(C& c) {
  Value* x = c.x("self");
  const bool complex = c.is_complex("self");
  const int64_t r = rank_of(c, "self", x);
  const Indices indices = read_indices(c, x, r);
  if (c.failed()) return;
  if (indices.axes.empty()) return c.out(x, c.type("self"));
  if (indices.axes.size() == 1) {
    const int64_t axis = indices.axes[0];
    return c.out(c.op("Gather", {x, indices.at[static_cast<size_t>(axis)]}, {{"axis", axis}}),
                 c.type("self"));
  }
  Value* where = coordinates(c, indices);
  const int64_t index_rank = c.rank(where) - 1, count = static_cast<int64_t>(indices.axes.size());
  Value* y = c.op("GatherND", {c.transpose(x, indexed_first(indices, r, complex)), where});
  if (indices.adjacent && indices.axes[0] != 0) {
    // The indexed axes stand where the first of them stood.
    const int64_t before = indices.axes[0], total = index_rank + r - count + (complex ? 1 : 0);
    Ints perm;
    for (int64_t i = 0; i < before; ++i) perm.push_back(index_rank + i);
    for (int64_t i = 0; i < index_rank; ++i) perm.push_back(i);
    for (int64_t i = index_rank + before; i < total; ++i) perm.push_back(i);
    y = c.transpose(y, perm);
  }
  c.out(y, c.type("self"));
}

void index_put(C& c) {
  Value* x = c.x("self");
  if (c.is_complex("self")) return c.refuse("complex numbers");
  const int64_t r = c.rank(x);
  // One mask over the first axes and one value: a choice.
  const Refs given = c.tensors("indices");
  Value* values = c.cast(c.x("values"), c.dtype(x));
  const bool accumulate = c.flag("accumulate");
  if (given.size() == 1 && given[0] && given[0]->dtype == DType::kBool && c.rank(values) == 0) {
    Value* mask = c.read(given[0]);
    Ints after;
    for (int64_t i = c.rank(mask); i < r; ++i) after.push_back(i);
    mask = c.unsqueeze(mask, after);
    return c.out(c.where(mask, accumulate ? c.add(x, values) : values, x));
  }
  const Indices indices = read_indices(c, x, r);
  if (c.failed()) return;
  if (indices.axes.empty()) {
    Value* spread = c.expand(values, c.sizes(x));
    return c.out(accumulate ? c.add(x, spread) : spread);
  }
  const Ints perm = indexed_first(indices, r, false);
  Value* source = c.transpose(x, perm);
  Value* where = coordinates(c, indices);
  const int64_t index_rank = c.rank(where) - 1, count = static_cast<int64_t>(indices.axes.size());
  // The shape of what is written, in torch's order of axes, then with the indexed ones first.
  SymInts index_sizes;
  for (int64_t i = 0; i < index_rank; ++i) index_sizes.push_back(c.size(where, i));
  SymInts rest;
  for (int64_t i = count; i < r; ++i) rest.push_back(c.size(source, i));
  const int64_t before = indices.adjacent ? indices.axes[0] : 0;
  SymInts wanted(rest.begin(), rest.begin() + before);
  wanted.insert(wanted.end(), index_sizes.begin(), index_sizes.end());
  wanted.insert(wanted.end(), rest.begin() + before, rest.end());
  values = c.expand(values, wanted);
  if (before > 0) {
    Ints order;
    for (int64_t i = 0; i < index_rank; ++i) order.push_back(before + i);
    for (int64_t i = 0; i < before; ++i) order.push_back(i);
    for (int64_t i = before + index_rank; i < static_cast<int64_t>(wanted.size()); ++i)
      order.push_back(i);
    values = c.transpose(values, order);
  }
  const bool is_bool = c.dtype(x) == DType::kBool;
  Value* written = accumulate && !is_bool
                       ? c.op("ScatterND", {source, where, values}, {{"reduction", "add"}})
                       : c.op("ScatterND", {source, where, values});
  Ints inverse(perm.size());
  for (size_t i = 0; i < perm.size(); ++i)
    inverse[static_cast<size_t>(perm[i])] = static_cast<int64_t>(i);
  c.out(c.transpose(written, inverse));
}

void index_select(C& c) {
  Value* x = c.x("self");
  Value* index = index64(c, c.x("index"));
  const int64_t r = rank_of(c, "self", x);
  if (r == 0) return c.out(x, c.type("self"));
  if (c.rank(index) == 0) index = c.unsqueeze(index, {0});
  c.out(c.op("Gather", {x, index}, {{"axis", c.axis(c.integer("dim"), r)}}), c.type("self"));
}

void embedding(C& c) {
  c.out(c.op("Gather", {c.x("weight"), index64(c, c.x("indices"))}, {{"axis", 0}}));
}

/// Rows that are asked for, shortened to a norm of at most max_norm.
void embedding_renorm(C& c) {
  Value *x = c.x("self"), *indices = c.reshape(index64(c, c.x("indices")), {SymInt(-1)});
  Value* norm = c.lower("linalg_vector_norm",
                        {Arg(c.cell(x)), Arg(c.real("norm_type")), Arg::ints(Ints{1}), Arg(true)});
  Value* limit = c.like(c.real("max_norm"), x);
  Value* shorter = c.mul(x, c.div(limit, c.add(norm, c.like(1e-7, x))));
  Value* used = c.op(
      "ReduceMax",
      {c.cast(c.op("Equal", {c.range(c.size(x, 0)), c.unsqueeze(indices, {1})}), DType::kInt32),
       c.b.ints({0})},
      {{"keepdims", 0}});
  Value* change =
      c.op("And", {c.unsqueeze(c.cast(used, DType::kBool), {1}), c.op("Greater", {norm, limit})});
  c.out(c.where(change, shorter, x));
}

void take(C& c) {
  Value* flat = c.reshape(c.x("self"), {SymInt(-1)});
  c.out(c.op("Gather", {flat, index64(c, c.x("index"))}, {{"axis", 0}}));
}

/// An index for each part of complex numbers.
Value* both_parts(C& c, Value* index) {
  SymInts sizes = c.sizes(index);
  sizes.emplace_back(2);
  return c.expand(c.unsqueeze(index, {-1}), sizes);
}

void put(C& c) {
  Value* x = c.x("self");
  const bool pairs = c.is_complex("self");
  const SymInts all = pairs ? SymInts{SymInt(-1), SymInt(2)} : SymInts{SymInt(-1)};
  Value* flat = c.reshape(x, all);
  Value* index = c.reshape(index64(c, c.x("index")), {SymInt(-1)});
  if (pairs) index = both_parts(c, index);
  Value* source = c.reshape(c.x("source"), all);
  // Negative indices are fine for ScatterElements.
  Value* y = c.flag("accumulate") ? c.op("ScatterElements", {flat, index, source},
                                         {{"axis", 0}, {"reduction", "add"}})
                                  : c.op("ScatterElements", {flat, index, source}, {{"axis", 0}});
  c.out(c.reshape(y, c.sizes(x)), c.type("self"));
}

void gather(C& c) {
  Value *x = c.x("self"), *index = index64(c, c.x("index"));
  const bool scalar = c.rank(index) == 0, pairs = c.is_complex("self");
  if (c.rank(x) == (pairs ? 1 : 0)) x = c.unsqueeze(x, {0});
  if (scalar) index = c.unsqueeze(index, {0});
  const int64_t axis = c.axis(c.integer("dim"), c.rank(index));
  if (pairs) index = both_parts(c, index);
  Value* y = c.op("GatherElements", {x, index}, {{"axis", axis}});
  c.out(scalar ? c.squeeze(y, {0}) : y, c.type("self"));
}

void take_along_dim(C& c) {
  Value *x = c.x("self"), *index = index64(c, c.x("indices"));
  if (!c.given("dim")) {
    Value* flat = c.reshape(x, {SymInt(-1)});
    return c.out(c.op("GatherElements", {flat, c.reshape(index, {SymInt(-1)})}, {{"axis", 0}}));
  }
  const int64_t r = c.rank(x), dim = c.axis(c.integer("dim"), r);
  SymInts sx = c.sizes(x), si = c.sizes(index);
  for (int64_t i = 0; i < r; ++i) {
    if (i == dim) continue;
    SymInt &a = sx[static_cast<size_t>(i)], &z = si[static_cast<size_t>(i)];
    if (a.is(1)) a = z;
    if (z.is(1)) z = a;
  }
  c.out(c.op("GatherElements", {c.expand(x, sx), c.expand(index, si)}, {{"axis", dim}}));
}

// ---- scatter ----

std::string reduction_of(C& c, std::string_view name) {
  const std::string how = c.text(name);
  if (how == "sum" || how == "add") return "add";
  if (how == "prod" || how == "multiply") return "mul";
  if (how == "amax") return "max";
  if (how == "amin") return "min";
  return how.empty() ? "none" : how;
}

/// scatter and its relatives. `mean` is a sum divided by how many were added.
void scatter(C& c) {
  Value *x = c.x("self"), *index = index64(c, c.x("index"));
  if (c.is_complex("self")) return c.refuse("complex numbers");
  const bool scalar = c.rank(x) == 0;
  if (scalar) x = c.unsqueeze(x, {0});
  if (c.rank(index) == 0) index = c.unsqueeze(index, {0});
  const int64_t r = c.rank(x), dim = c.axis(c.integer("dim"), r);
  const DType type = c.dtype(x);
  Value* source = nullptr;
  if (c.has_arg("src")) {
    source = c.cast(c.x("src"), type);
    if (c.rank(source) == 0) source = c.unsqueeze(source, {0});
    // Only the part that the index covers counts.
    for (int64_t i = 0; i < r; ++i)
      if (!c.b.dim(source, i).equals(c.b.dim(index, i)))
        source = c.slice(source, i, SymInt(0), c.size(index, i));
  } else {
    source = c.expand(c.operand("value", type), c.sizes(index));
  }
  std::string how = c.name().starts_with("scatter_add") ? "add" : "none";
  if (c.has_arg("reduce") && c.given("reduce")) how = reduction_of(c, "reduce");
  const bool include_self = !c.has_arg("include_self") || c.flag("include_self");
  const bool mean = how == "mean";
  Value* base = x;
  const auto scattered = [&](Value* to, Value* what, const std::string& reduction) {
    return reduction == "none" ? c.op("ScatterElements", {to, index, what}, {{"axis", dim}})
                               : c.op("ScatterElements", {to, index, what},
                                      {{"axis", dim}, {"reduction", reduction}});
  };
  if (!include_self && how != "none") {
    // Places that are written start from the neutral element.
    const bool whole = is_integer(type);
    Value* neutral = nullptr;
    if (how == "add" || mean) {
      neutral = c.scalar(0, type);
    } else if (how == "mul") {
      neutral = c.scalar(1, type);
    } else if (whole) {
      // The first written value itself: set before reducing.
      neutral = nullptr;
    } else {
      neutral = c.scalar(how == "max" ? -INFINITY : INFINITY, type);
    }
    base = scattered(x, neutral ? c.expand(neutral, c.sizes(index)) : source, "none");
  }
  Value* y = scattered(base, source, mean ? "add" : how);
  if (mean) {
    Value* counts = c.full(c.sizes(x), include_self ? 1 : 0, DType::kInt64);
    Value* ones = c.full(c.sizes(index), 1, DType::kInt64);
    counts = scattered(counts, ones, "add");
    counts = c.cast(c.op("Max", {counts, c.b.int_scalar(1)}), type);
    y = is_float(type) ? c.div(y, counts)
                       : c.lower("floor_divide", {Arg(c.cell(y)), Arg(c.cell(counts))});
  }
  c.out(scalar ? c.squeeze(y, {0}) : y);
}

/// index_add, index_copy, index_fill, index_reduce: along one axis, by whole slices.
void index_along(C& c) {
  Value* x = c.x("self");
  if (c.is_complex("self")) return c.refuse("complex numbers");
  const bool scalar = c.rank(x) == 0;
  const DType type = c.dtype(x);
  if (scalar) x = c.unsqueeze(x, {0});
  const int64_t r = c.rank(x), dim = c.axis(c.integer("dim"), r);
  Value* index = c.cast(c.x("index"), DType::kInt64);
  if (c.rank(index) == 0) index = c.unsqueeze(index, {0});
  SymInts sizes = c.sizes(x);
  sizes[static_cast<size_t>(dim)] = c.size(index, 0);
  Value* source = nullptr;
  if (c.has_arg("source")) {
    source = c.cast(c.x("source"), type);
    if (c.rank(source) < r) source = c.reshape(source, sizes);
  } else {
    source = c.expand(c.operand("value", type), sizes);
  }
  const std::string_view what = c.detail();
  if (what == "add") {
    const Arg& alpha = c.arg("alpha");
    if (!(alpha.kind == Arg::Kind::kInt && alpha.integer.is(1)))
      source = c.mul(source, c.operand("alpha", type));
  }
  Ints others;
  for (int64_t i = 0; i < r; ++i)
    if (i != dim) others.push_back(i);
  Value* wide = c.expand(c.unsqueeze(index, others), sizes);
  if (what == "reduce") {
    const Args result = c.lower_all(
        "scatter_reduce.two", {Arg(c.cell(x)), Arg(dim), Arg(c.cell(wide)), Arg(c.cell(source)),
                               c.arg("reduce"), c.arg("include_self")});
    if (c.failed()) return;
    Value* y = c.read(result.front().tensor);
    return c.out(scalar ? c.squeeze(y, {0}) : y);
  }
  Value* y = what == "add" && type != DType::kBool
                 ? c.op("ScatterElements", {x, wide, source}, {{"axis", dim}, {"reduction", "add"}})
                 : c.op("ScatterElements", {x, wide, source}, {{"axis", dim}});
  c.out(scalar ? c.squeeze(y, {0}) : y);
}

// ---- scatter of views ----

void select_scatter(C& c) {
  Value* x = c.x("self");
  const int64_t r = c.rank(x), dim = c.axis(c.integer("dim"), r);
  SymInt index = c.sym("index");
  const SymInt length = c.size(x, dim);
  if (index.is_number() && index.dim.value() < 0) index = c.add(length, index);
  SymInts sizes = c.sizes(x);
  sizes.erase_axis(static_cast<size_t>(dim));
  Value* source = c.unsqueeze(c.expand(c.cast(c.x("src"), c.dtype(x)), sizes), {dim});
  if (length.is(1)) return c.out(source);
  Values parts;
  if (index.is_number() && length.is_number()) {
    if (!index.is(0)) parts.push_back(c.slice(x, dim, SymInt(0), index));
    parts.push_back(source);
    if (index.dim.value() + 1 < length.dim.value())
      parts.push_back(c.slice(x, dim, c.add(index, SymInt(1)), SymInt(INT64_MAX)));
    return c.out(c.concat(parts, dim));
  }
  Value* at = c.range(length);
  Ints after;
  for (int64_t i = dim + 1; i < r; ++i) after.push_back(i - dim);
  c.out(c.where(c.unsqueeze(c.op("Equal", {at, c.int_value(index)}), after), source, x));
}

void slice_scatter(C& c) {
  Value* x = c.x("self");
  const int64_t r = c.rank(x), dim = c.axis(c.integer("dim"), r), step = c.integer("step");
  const SymInt length = c.size(x, dim);
  const auto bound = [&](const char* name, const SymInt& fallback) {
    SymInt value = c.given(name) ? c.sym(name) : fallback;
    if (value.is_number() && value.dim.value() < 0)
      value = c.maximum(c.add(length, value), SymInt(0));
    if (value.is_number() && value.dim.value() > INT32_MAX) return length;
    if (value.is_number() && length.is_number()) return c.minimum(value, length);
    if (value.value == nullptr || !value.dim.is_unknown()) return value;
    // Computed: of either sign, and perhaps beyond the end.
    Value *number = value.value, *size = c.int_value(length), *zero = c.b.int_scalar(0);
    number = c.where(c.op("Less", {number, zero}), c.add(number, size), number);
    return SymInt(SymDim(), c.op("Min", {c.op("Max", {number, zero}), size}));
  };
  const SymInt start = bound("start", SymInt(0));
  SymInt end = bound("end", length);
  if (start.dim.is_unknown() || end.dim.is_unknown()) end = c.maximum(end, start);
  SymInt count = c.sub(end, start);
  if (step != 1) count = c.floor_div(c.add(count, SymInt(step - 1)), SymInt(step));
  count = c.maximum(count, SymInt(0));
  if (count.is(0)) return c.out(x);
  SymInts sizes = c.sizes(x);
  sizes[static_cast<size_t>(dim)] = count;
  Value* source = c.cast(c.x("src"), c.dtype(x));
  if (c.has_rank(source) && c.rank(source) <= r) {
    const SymDim own = c.rank(source) == r ? c.b.dim(source, dim) : SymDim(1);
    if (own.is_value() && own.value() != 1) sizes[static_cast<size_t>(dim)] = SymInt(own);
    source = c.expand(source, sizes);
  }
  if (step == 1) {
    Values parts;
    if (!start.is(0)) parts.push_back(c.slice(x, dim, SymInt(0), start));
    parts.push_back(source);
    if (!end.dim.equals(length.dim)) parts.push_back(c.slice(x, dim, end, SymInt(INT64_MAX)));
    Value* y = c.concat(parts, dim);
    if (y->producer() && parts.size() > 1) c.b.set_type(y, c.dtype(x), SymShape(c.b.shape(x)));
    return c.out(y);
  }
  Value* places = c.add(c.mul(c.range(count), c.b.int_scalar(step)), c.int_value(start));
  Ints others;
  for (int64_t i = 0; i < r; ++i)
    if (i != dim) others.push_back(i);
  Value* wide = c.expand(c.unsqueeze(places, others), sizes);
  c.out(c.op("ScatterElements", {x, wide, source}, {{"axis", dim}}));
}

/// A view of the base is replaced: find out which elements the view shows by looking through it.
void view_scatter(C& c) {
  Value* x = c.x("self");
  if (c.is_complex("self")) return c.refuse("complex numbers");
  Value* flat = c.reshape(x, {SymInt(-1)});
  Value* numbers = c.reshape(c.range(c.size(flat, 0)), c.sizes(x));
  Args args = {Arg(c.cell(numbers))};
  std::string view;
  if (c.name() == "diagonal_scatter") {
    view = "diagonal_copy";
    for (const char* name : {"offset", "dim1", "dim2"}) args.push_back(c.arg(name));
  } else {
    view = "as_strided_copy";
    for (const char* name : {"size", "stride", "storage_offset"}) args.push_back(c.arg(name));
  }
  Value* shown = c.lower(view, args);
  Value* source = c.expand(c.cast(c.x("src"), c.dtype(x)), c.sizes(shown));
  Value* y =
      c.op("ScatterElements",
           {flat, c.reshape(shown, {SymInt(-1)}), c.reshape(source, {SymInt(-1)})}, {{"axis", 0}});
  c.out(c.reshape(y, c.sizes(x)));
}

// ---- masks ----

void masked_fill(C& c) {
  Value* x = c.x("self");
  Value* mask = c.cast(c.x("mask"), DType::kBool);
  const DType type = c.type("self");
  if (is_complex(type)) mask = c.unsqueeze(mask, {-1});
  c.out(c.where(mask, c.operand("value", type), x), type);
}

void masked_select(C& c) {
  Value *x = c.x("self"), *mask = c.cast(c.x("mask"), DType::kBool);
  const SymInts sx = c.sizes(x), sm = c.sizes(mask);
  SymInts shape = sx.size() >= sm.size() ? sx : sm;
  const SymInts& other = sx.size() >= sm.size() ? sm : sx;
  for (size_t i = 0; i < other.size(); ++i) {
    SymInt& one = shape[shape.size() - other.size() + i];
    if (one.is(1)) one = other[i];
  }
  Value* y = c.op(
      "Compress",
      {c.reshape(c.expand(x, shape), {SymInt(-1)}), c.reshape(c.expand(mask, shape), {SymInt(-1)})},
      {{"axis", 0}});
  if (!c.has_rank(y)) c.b.set_type(y, c.dtype(x), {SymDim()});
  c.out(y);
}

void masked_scatter(C& c) {
  Value *x = c.x("self"), *source = c.reshape(c.x("source"), {SymInt(-1)});
  Value* mask = c.cast(c.x("mask"), DType::kBool);
  if (c.rank(mask) > 0) {
    // Either is broadcast to the other.
    Value* both = c.where(mask, x, x);
    x = c.expand(x, c.sizes(both));
  }
  mask = c.expand(mask, c.sizes(x));
  // The n-th true element takes the n-th of the source.
  Value* flat = c.cast(c.reshape(mask, {SymInt(-1)}), DType::kInt64);
  Value* order = c.sub(c.op("CumSum", {flat, c.b.int_scalar(0)}), c.b.int_scalar(1));
  order = c.op("Max", {order, c.b.int_scalar(0)});
  Value* picked = c.reshape(c.op("Gather", {source, order}, {{"axis", 0}}), c.sizes(x));
  c.out(c.where(mask, picked, x));
}

void nonzero(C& c) {
  Value* x = c.x("self");
  if (c.is_complex("self"))
    x = c.op("ReduceMax", {c.cast(c.cast(x, DType::kBool), DType::kInt32), c.b.ints({-1})},
             {{"keepdims", 0}});
  if (c.rank(x) == 0) {
    // A scalar has one place and no coordinates.
    Value* flag = c.cast(c.cast(x, DType::kBool), DType::kInt64);
    return c.out(c.full({SymInt(SymDim(), flag), SymInt(0)}, 0, DType::kInt64));
  }
  c.out(c.swap(c.op("NonZero", {x}), 0, 1));
}

void nonzero_numpy(C& c) {
  Value* x = c.x("self");
  if (c.rank(x) == 0) x = c.unsqueeze(x, {0});
  Value* found = c.op("NonZero", {x});
  Values columns;
  for (int64_t i = 0; i < c.rank(x); ++i)
    columns.push_back(c.op("Gather", {found, c.b.int_scalar(i)}, {{"axis", 0}}));
  c.out_list(columns);
}

void one_hot(C& c) {
  Value* x = c.x("self");
  const SymInt classes = c.sym("num_classes");
  Value* depth = nullptr;
  if (classes.is(-1)) {
    depth = c.add(c.op("ReduceMax", {x}, {{"keepdims", 0}}), c.b.int_scalar(1));
  } else {
    depth = c.int_value(classes);
  }
  c.out(c.op("OneHot", {x, depth, c.b.ints({0, 1})}, {{"axis", -1}}));
}

/// argwhere is nonzero; item-like reads give numbers.
void fill_diagonal(C& c) {
  Value* x = c.x("self");
  const int64_t r = c.rank(x);
  if (r != 2) return c.refuse("a diagonal of more than two axes");
  const SymInt rows = c.size(x, 0), columns = c.size(x, 1);
  Value* i = c.unsqueeze(c.range(rows), {1});
  Value* k = c.range(columns);
  Value* hit = nullptr;
  if (c.flag("wrap")) {
    hit = c.op("Equal", {c.op("Mod", {i, c.int_value(c.add(columns, SymInt(1)))}), k});
  } else {
    hit = c.op("Equal", {i, k});
  }
  c.out(c.where(hit, c.operand("fill_value", c.dtype(x)), x));
}

void searchsorted(C& c) {
  const bool bucketize = c.name().starts_with("bucketize");
  const std::string_view sequence_name = bucketize ? "boundaries" : "sorted_sequence";
  const DType type = c.promote({sequence_name, "self"});
  Value *sequence = c.operand(sequence_name, type), *x = c.operand("self", type);
  bool right = c.flag("right");
  if (c.has_arg("side") && c.given("side")) right = c.text("side") == "right";
  if (c.has_arg("sorter") && c.given("sorter"))
    sequence = c.op("GatherElements", {sequence, c.x("sorter")}, {{"axis", -1}});
  // How many boundaries lie before: [.., n, 1] against [.., 1, m].
  Value* wide = c.unsqueeze(x, {-1});
  Value* bounds = c.rank(sequence) > 1 ? c.unsqueeze(sequence, {-2}) : sequence;
  Value* before = c.op(right ? "GreaterOrEqual" : "Greater", {wide, bounds});
  // Beyond all numbers stands NaN.
  if (is_float(type))
    before = c.op("Or", {before, c.op("IsNaN", {c.add(wide, c.mul(bounds, c.like(0, bounds)))})});
  Value* count =
      c.op("ReduceSum", {c.cast(before, DType::kInt64), c.b.ints({-1})}, {{"keepdims", 0}});
  c.out(c.flag("out_int32") ? c.cast(count, DType::kInt32) : count);
}

void unique(C& c) {
  Value* x = c.x("self");
  const bool by_dim = c.has_arg("dim") && c.given("dim");
  const bool consecutive = c.name().find("consecutive") != std::string_view::npos;
  if (consecutive) return c.refuse("runs of equal elements");
  const DType type = c.dtype(x);
  Value* source = type == DType::kBool ? c.cast(x, DType::kInt32) : x;
  Values results = by_dim
                       ? c.b.op_many("Unique", {source}, 4,
                                     {{"axis", c.axis(c.integer("dim"), c.rank(x))}, {"sorted", 1}})
                       : c.b.op_many("Unique", {source}, 4, {{"sorted", 1}});
  const SymDim count = c.b.dim(results[0], by_dim ? c.axis(c.integer("dim"), c.rank(x)) : 0);
  (void)count;
  c.out(c.cast(results[0], type));
  // What was not asked for is empty.
  Value* none = c.full({SymInt(0)}, 0, DType::kInt64);
  const bool old = c.name() == "_unique";
  const bool inverse = by_dim || c.flag("return_inverse");
  c.out(!inverse ? none : by_dim ? results[2] : c.reshape(results[2], c.sizes(x)));
  if (!old) c.out(by_dim || c.flag("return_counts") ? results[3] : none);
}

/// The sum, mean or maximum of the rows that each bag names.
void embedding_bag(C& c) {
  Value *weight = c.x("weight"), *indices = c.cast(c.x("indices"), DType::kInt64);
  const int64_t mode = c.integer("mode");
  Value* offsets = c.cast(c.x("offsets"), DType::kInt64);
  const bool last_given = c.flag("include_last_offset");
  if (last_given) offsets = c.slice(offsets, 0, SymInt(0), SymInt(-1));
  Value* per_sample = c.opt("per_sample_weights");
  const DType type = c.dtype(weight);
  const SymInt n = c.size(indices, 0), bags = c.size(offsets, 0);
  // Which bag an index belongs to: the number of offsets at or before its place, less one.
  Value* places = c.unsqueeze(c.range(n), {1});
  Value* started =
      c.cast(c.op("GreaterOrEqual", {places, c.unsqueeze(offsets, {0})}), DType::kInt64);
  Value* bag =
      c.sub(c.op("ReduceSum", {started, c.b.ints({1})}, {{"keepdims", 0}}), c.b.int_scalar(1));
  Value* member =
      c.op("Equal", {c.unsqueeze(c.range(bags), {1}), c.unsqueeze(bag, {0})});  // [bags, n]
  if (c.has_arg("padding_idx") && c.given("padding_idx")) {
    const int64_t padding = c.integer("padding_idx");
    if (padding >= 0)
      member = c.op(
          "And",
          {member,
           c.unsqueeze(c.op("Not", {c.op("Equal", {indices, c.b.int_scalar(padding)})}), {0})});
  }
  Value* rows = c.op("Gather", {weight, indices}, {{"axis", 0}});
  if (per_sample) rows = c.mul(rows, c.unsqueeze(c.cast(per_sample, type), {1}));
  Value* share = c.cast(member, type);
  Value* counts =
      c.op("ReduceSum", {c.cast(member, DType::kInt64), c.b.ints({1})}, {{"keepdims", 0}});
  if (mode == 2) {
    Value* wide =
        c.where(c.unsqueeze(member, {2}), c.unsqueeze(rows, {0}), c.like(-INFINITY, rows));
    Value* high = c.op("ReduceMax", {wide, c.b.ints({1})}, {{"keepdims", 0}});
    Value* empty = c.unsqueeze(c.op("Equal", {counts, c.b.int_scalar(0)}), {1});
    c.out(c.where(empty, c.like(0, high), high));
  } else {
    Value* total = c.op("MatMul", {share, rows});
    if (mode == 1) {
      Value* least = c.op("Max", {counts, c.b.int_scalar(1)});
      total = c.div(total, c.unsqueeze(c.cast(least, type), {1}));
    }
    c.out(total);
  }
  // What is returned beside is only for the backward pass, and differs from path to path.
  for (int i = 0; i < 3; ++i) c.out_arg(Arg());
}

constexpr Row kIndexingRows[] = {
    {"index.Tensor(Tensor self, Tensor?[] indices) -> Tensor", index},
    {"_unsafe_index.Tensor(Tensor self, Tensor?[] indices) -> Tensor", index},
    {"index_put(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor",
     index_put},
    {"_unsafe_index_put(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False) -> "
     "Tensor",
     index_put},
    {"_index_put_impl(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False, bool "
     "unsafe=False) -> Tensor",
     index_put},
    {"index_select(Tensor self, int dim, Tensor index) -> Tensor", index_select},
    {"embedding_renorm(Tensor self, Tensor indices, float max_norm, float norm_type) -> Tensor",
     embedding_renorm},
    {"embedding(Tensor weight, Tensor indices, SymInt padding_idx=-1, bool "
     "scale_grad_by_freq=False, bool sparse=False) -> Tensor",
     embedding},
    {"_embedding_bag(Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq=False, "
     "int mode=0, bool sparse=False, Tensor? per_sample_weights=None, bool "
     "include_last_offset=False, int padding_idx=-1) -> (Tensor, Tensor, Tensor, Tensor)",
     embedding_bag},
    {"_embedding_bag_forward_only(Tensor weight, Tensor indices, Tensor offsets, bool "
     "scale_grad_by_freq=False, int mode=0, bool sparse=False, Tensor? per_sample_weights=None, "
     "bool include_last_offset=False, int padding_idx=-1) -> (Tensor, Tensor, Tensor, Tensor)",
     embedding_bag},
    {"embedding_bag(Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq=False, "
     "int mode=0, bool sparse=False, Tensor? per_sample_weights=None, bool "
     "include_last_offset=False) -> (Tensor, Tensor, Tensor, Tensor)",
     embedding_bag},
    {"embedding_bag.padding_idx(Tensor weight, Tensor indices, Tensor offsets, bool "
     "scale_grad_by_freq, int mode, bool sparse, Tensor? per_sample_weights, bool "
     "include_last_offset, int? padding_idx) -> (Tensor, Tensor, Tensor, Tensor)",
     embedding_bag},
    {"take(Tensor self, Tensor index) -> Tensor", take},
    {"put(Tensor self, Tensor index, Tensor source, bool accumulate=False) -> Tensor", put},
    {"gather(Tensor self, int dim, Tensor index, *, bool sparse_grad=False) -> Tensor", gather},
    {"take_along_dim(Tensor self, Tensor indices, int? dim=None) -> Tensor", take_along_dim},
    {"scatter.src(Tensor self, int dim, Tensor index, Tensor src) -> Tensor", scatter},
    {"scatter.value(Tensor self, int dim, Tensor index, Scalar value) -> Tensor", scatter},
    {"scatter.reduce(Tensor self, int dim, Tensor index, Tensor src, *, str reduce) -> Tensor",
     scatter},
    {"scatter.value_reduce(Tensor self, int dim, Tensor index, Scalar value, *, str reduce) -> "
     "Tensor",
     scatter},
    {"scatter_add(Tensor self, int dim, Tensor index, Tensor src) -> Tensor", scatter},
    {"scatter_reduce.two(Tensor self, int dim, Tensor index, Tensor src, str reduce, *, bool "
     "include_self=True) -> Tensor",
     scatter},
    {"index_add(Tensor self, int dim, Tensor index, Tensor source, *, Scalar alpha=1) -> Tensor",
     index_along, "add"},
    {"index_copy(Tensor self, int dim, Tensor index, Tensor source) -> Tensor", index_along,
     "copy"},
    {"index_fill.int_Scalar(Tensor self, int dim, Tensor index, Scalar value) -> Tensor",
     index_along, "fill"},
    {"index_fill.int_Tensor(Tensor self, int dim, Tensor index, Tensor value) -> Tensor",
     index_along, "fill"},
    {"index_reduce(Tensor self, int dim, Tensor index, Tensor source, str reduce, *, bool "
     "include_self=True) -> Tensor",
     index_along, "reduce"},
    {"select_scatter(Tensor self, Tensor src, int dim, SymInt index) -> Tensor", select_scatter},
    {"slice_scatter(Tensor self, Tensor src, int dim=0, SymInt? start=None, SymInt? end=None, "
     "SymInt step=1) -> Tensor",
     slice_scatter},
    {"diagonal_scatter(Tensor self, Tensor src, int offset=0, int dim1=0, int dim2=1) -> Tensor",
     view_scatter},
    {"as_strided_scatter(Tensor self, Tensor src, SymInt[] size, SymInt[] stride, SymInt? "
     "storage_offset=None) -> Tensor",
     view_scatter},
    {"masked_fill.Scalar(Tensor self, Tensor mask, Scalar value) -> Tensor", masked_fill},
    {"masked_fill.Tensor(Tensor self, Tensor mask, Tensor value) -> Tensor", masked_fill},
    {"masked_select(Tensor self, Tensor mask) -> Tensor", masked_select},
    {"masked_scatter(Tensor self, Tensor mask, Tensor source) -> Tensor", masked_scatter},
    {"nonzero(Tensor self) -> Tensor", nonzero},
    {"argwhere(Tensor self) -> Tensor", nonzero},
    {"nonzero_numpy(Tensor self) -> Tensor[]", nonzero_numpy},
    {"one_hot(Tensor self, int num_classes=-1) -> Tensor", one_hot},
    {"fill_diagonal(Tensor self, Scalar fill_value, bool wrap=False) -> Tensor", fill_diagonal},
    {"searchsorted.Tensor(Tensor sorted_sequence, Tensor self, *, bool out_int32=False, bool "
     "right=False, str? side=None, Tensor? sorter=None) -> Tensor",
     searchsorted},
    {"searchsorted.Scalar(Tensor sorted_sequence, Scalar self, *, bool out_int32=False, bool "
     "right=False, str? side=None, Tensor? sorter=None) -> Tensor",
     searchsorted},
    {"bucketize.Tensor(Tensor self, Tensor boundaries, *, bool out_int32=False, bool right=False) "
     "-> Tensor",
     searchsorted},
    {"bucketize.Scalar(Scalar self, Tensor boundaries, *, bool out_int32=False, bool right=False) "
     "-> Tensor",
     searchsorted},
    {"_unique2(Tensor self, bool sorted=True, bool return_inverse=False, bool return_counts=False) "
     "-> (Tensor, Tensor, Tensor)",
     unique},
    {"unique_dim(Tensor self, int dim, bool sorted=True, bool return_inverse=False, bool "
     "return_counts=False) -> (Tensor, Tensor, Tensor)",
     unique},
    {"_unique(Tensor self, bool sorted=True, bool return_inverse=False) -> (Tensor, Tensor)",
     unique},
};

}  // namespace

std::span<const Row> indexing_rows() { return kIndexingRows; }

}  // namespace tombolo::pytorch
