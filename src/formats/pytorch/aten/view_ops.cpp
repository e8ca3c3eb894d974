// Operators whose result shows the memory of their argument.

#include <algorithm>

#include "formats/pytorch/aten/complex.h"
#include "formats/pytorch/aten/context.h"

namespace tombolo::pytorch {
namespace {

using C = AtenContext;

/// Axes of the tensor as the program sees it: a pair's axis does not count.
int64_t rank_of(C& c, Value* x) { return c.rank(x) - (c.is_complex("self") ? 1 : 0); }

SymInts with_pair(C& c, SymInts sizes) {
  if (c.is_complex("self")) sizes.emplace_back(2);
  return sizes;
}

void copy_of(C& c) { c.out(c.x("self"), c.type("self")); }

void view(C& c) { c.out(c.reshape(c.x("self"), with_pair(c, c.syms(c.detail()))), c.type("self")); }

/// The sizes of another tensor, for `self`: without its axis of pairs, with that of `self`.
SymInts sizes_like(C& c, std::string_view other) {
  SymInts sizes = c.sizes(c.x(other));
  if (c.is_complex(other)) sizes.pop_back();
  return with_pair(c, std::move(sizes));
}

void view_as(C& c) { c.out(c.reshape(c.x("self"), sizes_like(c, "other")), c.type("self")); }

void view_dtype(C& c) {
  // The same bytes under another type.
  Value* x = c.x("self");
  const DType to = c.dtype("dtype").value_or(DType::kUndefined), from = c.type("self");
  if (to == from) return c.out(x, from);
  if (bits_of(to) == 0 || is_complex(to) || is_complex(from))
    return c.refuse("a view as another type of complex numbers");
  Value* y = c.op("BitCast", {x}, {{"to", static_cast<int64_t>(to)}});
  c.out(y);
}

void flatten(C& c) {
  Value* x = c.x("self");
  const int64_t r = rank_of(c, x);
  if (r == 0) return c.out(c.reshape(x, with_pair(c, {SymInt(1)})), c.type("self"));
  const int64_t start = c.has_arg("start_dim") ? c.axis(c.integer("start_dim"), r) : 0;
  const int64_t end = c.has_arg("end_dim") ? c.axis(c.integer("end_dim"), r) : r - 1;
  if (start > end) return c.refuse("axes in a wrong order");
  if (start == end) return c.out(x, c.type("self"));
  if (start == 1 && end == r - 1 && !is_complex(c.type("self")) && c.size(x, 0).dim.is_unknown()) {
    // A number of rows that depends on data need not be computed, and may be 0.
    Value* rows = c.op("Flatten", {x}, {{"axis", int64_t{1}}});
    return c.out(rows, c.type("self"));
  }
  SymInts sizes;
  SymInt merged(1);
  for (int64_t i = 0; i < r; ++i) {
    if (i < start || i > end) sizes.push_back(c.size(x, i));
    if (i >= start && i <= end) merged = c.mul(merged, c.size(x, i));
    if (i == end) sizes.push_back(merged);
  }
  c.out(c.reshape(x, with_pair(c, std::move(sizes))), c.type("self"));
}

void unflatten(C& c) {
  Value* x = c.x("self");
  const int64_t r = rank_of(c, x), dim = c.axis(c.integer("dim"), r);
  SymInts parts = c.syms("sizes"), sizes;
  // -1 stands for what is left of this axis alone.
  SymInt rest = c.size(x, dim);
  for (const SymInt& part : parts)
    if (!part.is(-1)) rest = c.floor_div(rest, part);
  for (int64_t i = 0; i < r; ++i) {
    if (i != dim) {
      sizes.push_back(c.size(x, i));
      continue;
    }
    for (const SymInt& part : parts) sizes.push_back(part.is(-1) ? rest : part);
  }
  c.out(c.reshape(x, with_pair(c, std::move(sizes))), c.type("self"));
}

void transpose(C& c) {
  Value* x = c.x("self");
  const int64_t r = rank_of(c, x);
  const bool named = c.has_arg("axis0");
  const int64_t a = c.axis(c.integer(named ? "axis0" : "dim0"), r),
                y = c.axis(c.integer(named ? "axis1" : "dim1"), r);
  c.out(r == 0 ? x : c.swap(x, a, y), c.type("self"));
}

void transpose_last(C& c) {
  // t, mT, H, mH, adjoint
  Value* x = c.x("self");
  const int64_t r = rank_of(c, x);
  if (r >= 2) x = c.swap(x, r - 2, r - 1);
  if (std::string_view(c.detail()) == "conj" && c.is_complex("self")) x = complex_conj(c, x);
  c.out(x, c.type("self"));
}

void reverse_axes(C& c) {
  Value* x = c.x("self");
  const int64_t r = rank_of(c, x);
  Ints perm;
  for (int64_t i = r; i-- > 0;) perm.push_back(i);
  if (c.is_complex("self")) perm.push_back(r);
  c.out(c.transpose(x, perm), c.type("self"));
}

void permute(C& c) {
  Value* x = c.x("self");
  const int64_t r = rank_of(c, x);
  Ints perm;
  for (const int64_t dim : c.ints("dims")) perm.push_back(c.axis(dim, r));
  if (c.is_complex("self")) perm.push_back(r);
  if (static_cast<int64_t>(perm.size()) != c.rank(x))
    return c.refuse("a permutation of other axes");
  c.out(c.transpose(x, perm), c.type("self"));
}

void movedim(C& c) {
  Value* x = c.x("self");
  const int64_t r = rank_of(c, x);
  Ints from, to;
  for (const int64_t dim : c.ints("source")) from.push_back(c.axis(dim, r));
  for (const int64_t dim : c.ints("destination")) to.push_back(c.axis(dim, r));
  Ints perm(static_cast<size_t>(r), -1), left;
  for (size_t i = 0; i < from.size() && i < to.size(); ++i)
    perm[static_cast<size_t>(to[i])] = from[i];
  for (int64_t i = 0; i < r; ++i)
    if (std::find(from.begin(), from.end(), i) == from.end()) left.push_back(i);
  size_t next = 0;
  for (int64_t& axis : perm)
    if (axis < 0 && next < left.size()) axis = left[next++];
  if (c.is_complex("self")) perm.push_back(r);
  c.out(c.transpose(x, perm), c.type("self"));
}

void squeeze(C& c) {
  Value* x = c.x("self");
  const int64_t r = rank_of(c, x);
  Ints wanted, axes;
  if (c.has_arg("dim")) {
    for (const int64_t dim : c.ints("dim")) wanted.push_back(c.axis(dim, r));
  } else {
    for (int64_t i = 0; i < r; ++i) wanted.push_back(i);
  }
  for (const int64_t axis : wanted) {
    if (r == 0 || std::find(axes.begin(), axes.end(), axis) != axes.end()) continue;
    const SymDim length = c.b.dim(x, axis);
    const auto most = length.is_unknown() ? std::nullopt : length.upper_bound();
    if (length.is_value() ? length.value() == 1 : most && *most <= 1) {
      if (!length.is_value()) return c.refuse("whether an axis has one element or none");
      axes.push_back(axis);
    }
  }
  c.out(c.squeeze(x, axes), c.type("self"));
}

void unsqueeze(C& c) {
  Value* x = c.x("self");
  const int64_t r = rank_of(c, x);
  c.out(c.unsqueeze(x, {c.axis(c.integer("dim"), r + 1)}), c.type("self"));
}

void expand(C& c) { c.out(c.expand(c.x("self"), with_pair(c, c.syms("size"))), c.type("self")); }
/// resize and resize_as: the first elements in another shape. More elements than there were would
/// be whatever the memory held.
void resized(C& c) {
  Value* x = c.x("self");
  const SymInts sizes =
      c.has_arg("size") ? with_pair(c, c.syms("size")) : sizes_like(c, "the_template");
  const SymInts now = c.sizes(x);
  bool same = now.size() == sizes.size();
  for (size_t i = 0; same && i < now.size(); ++i) same = now[i].dim.equals(sizes[i].dim);
  if (same) return c.out_arg(c.arg("self"));
  SymInt before(1), after(1);
  for (const SymInt& size : now) before = c.mul(before, size);
  for (const SymInt& size : sizes) after = c.mul(after, size);
  if (!before.dim.equals(after.dim)) {
    if (!before.is_number() || !after.is_number() || after.dim.value() > before.dim.value())
      return c.refuse("a tensor is made larger: its new elements are what the memory held");
    x = c.slice(c.reshape(x, {SymInt(-1)}), 0, SymInt(0), after);
  }
  c.out(c.reshape(x, sizes), c.type("self"));
}

void expand_as(C& c) { c.out(c.expand(c.x("self"), sizes_like(c, "other")), c.type("self")); }

void select(C& c) {
  Value* x = c.x("self");
  c.out(c.select(x, c.axis(c.integer("dim"), rank_of(c, x)), c.sym("index")), c.type("self"));
}

void slice(C& c) {
  Value* x = c.x("self");
  const SymInt start = c.given("start") ? c.sym("start") : SymInt(0);
  const SymInt end = c.given("end") ? c.sym("end") : SymInt(INT64_MAX);
  c.out(c.slice(x, c.axis(c.integer("dim"), rank_of(c, x)), start, end, c.integer("step")),
        c.type("self"));
}

void narrow(C& c) {
  Value* x = c.x("self");
  const int64_t dim = c.axis(c.integer("dim"), rank_of(c, x));
  SymInt start = c.sym("start");
  if (start.is_number() && start.dim.value() < 0) start = c.add(c.size(x, dim), start);
  const SymInt length = c.sym("length");
  c.out(c.slice(x, dim, start, c.add(start, length)), c.type("self"));
}

/// split, chunk, tensor_split, ...: a list of slices.
void emit_pieces(C& c, Value* x, int64_t dim, const SymInts& lengths) {
  Ints numbers;
  bool known = true;
  for (const SymInt& length : lengths) {
    known = known && length.is_number();
    numbers.push_back(length.dim.constant().value_or(0));
  }
  if (lengths.size() == 1) {
    Value* whole[] = {x};
    return c.out_list(whole);
  }
  if (known) {
    Node* node = c.b.begin("Split", Values{x, c.b.ints(numbers)}, {{"axis", dim}});
    return c.out_list(c.b.finish(node, lengths.size()));
  }
  Values parts;
  SymInt at(0);
  for (const SymInt& length : lengths) {
    const SymInt next = c.add(at, length);
    parts.push_back(c.slice(x, dim, at, next));
    at = next;
  }
  c.out_list(parts);
}

void split(C& c) {
  Value* x = c.x("self");
  const int64_t dim = c.axis(c.integer("dim"), rank_of(c, x));
  const char* name = c.has_arg("split_sizes") ? "split_sizes" : "split_size";
  const Arg& size = c.arg(name);
  if (size.kind == Arg::Kind::kList) return emit_pieces(c, x, dim, c.syms(name));
  const SymInt each = c.sym(name), whole = c.size(x, dim);
  if (!each.is_number() || !whole.is_number()) {
    // With a length that is an exact multiple the count is a number all the same.
    const SymInt count = c.floor_div(c.sub(c.add(whole, each), SymInt(1)), each);
    if (!count.is_number()) return c.refuse("a split into a number of parts that is not known");
    SymInts lengths;
    for (int64_t i = 0; i < c.count(count.dim.value()); ++i) {
      const SymInt rest = c.sub(whole, c.mul(each, SymInt(i)));
      lengths.push_back(i + 1 < count.dim.value() ? each : rest);
    }
    return emit_pieces(c, x, dim, lengths);
  }
  SymInts lengths;
  const int64_t total = whole.dim.value(), step = each.dim.value();
  if (step <= 0) {
    lengths.emplace_back(total);
  } else if (c.count(total / step) == total / step) {
    for (int64_t at = 0; at < total; at += step) lengths.emplace_back(std::min(step, total - at));
    if (lengths.empty()) lengths.emplace_back(0);
  }
  emit_pieces(c, x, dim, lengths);
}

void chunk(C& c) {
  Value* x = c.x("self");
  const int64_t dim = c.axis(c.integer("dim"), rank_of(c, x)), chunks = c.integer("chunks");
  const SymInt whole = c.size(x, dim);
  if (c.count(chunks) < 1) return c.refuse("no chunks");
  SymInts lengths;
  if (whole.is_number()) {
    const int64_t total = whole.dim.value(), step = (total + chunks - 1) / chunks;
    if (total == 0) {
      lengths.assign(static_cast<size_t>(chunks), SymInt(0));
    } else {
      for (int64_t at = 0; at < total; at += step) lengths.emplace_back(std::min(step, total - at));
    }
  } else {
    // As many as asked for, all but the last of the same length: what the program was traced with.
    const SymInt step = c.floor_div(c.add(whole, SymInt(chunks - 1)), SymInt(chunks));
    for (int64_t i = 0; i + 1 < chunks; ++i) lengths.push_back(step);
    lengths.push_back(c.sub(whole, c.mul(step, SymInt(chunks - 1))));
  }
  emit_pieces(c, x, dim, lengths);
}

void tensor_split_at(C& c, Value* x, int64_t dim) {
  const std::string_view name = c.name();
  const bool by_count = name.ends_with(".sections") || name.ends_with(".int");
  const SymInt whole = c.size(x, dim);
  // The first ones are longer by 1 where it does not divide.
  const auto in_sections = [&](int64_t sections) {
    SymInts lengths;
    if (c.count(sections) < 1) return c.refuse("no sections");
    for (int64_t i = 0; i < sections; ++i)
      lengths.push_back(c.floor_div(c.add(whole, SymInt(sections - 1 - i)), SymInt(sections)));
    return emit_pieces(c, x, dim, lengths);
  };
  if (by_count) return in_sections(c.integer(c.has_arg("sections") ? "sections" : "indices"));
  Values parts;
  SymInt at(0);
  Ints indices;
  if (c.has_arg("tensor_indices_or_sections")) {
    const Tensor* constant = c.b.constant_value(c.x("tensor_indices_or_sections"));
    if (!constant) {
      // How many there are is known, where is not.
      Value* computed = c.cast(c.x("tensor_indices_or_sections"), DType::kInt64);
      const auto count = c.rank(computed) == 1 ? c.known(computed, 0) : std::nullopt;
      if (!count) return c.refuse("a split into a number of parts that depends on data");
      for (int64_t i = 0; i < c.count(*count); ++i) {
        const SymInt next(SymDim(), c.select(computed, 0, SymInt(i)));
        parts.push_back(c.slice(x, dim, at, next));
        at = next;
      }
      parts.push_back(c.slice(x, dim, at, SymInt(INT64_MAX)));
      return c.out_list(parts);
    }
    if (constant->rank() == 0) return in_sections(constant->get_int64(0));
    for (int64_t i = 0; i < constant->size(); ++i) indices.push_back(constant->get_int64(i));
  } else {
    indices = c.ints("indices");
  }
  for (const int64_t index : indices) {
    parts.push_back(c.slice(x, dim, at, SymInt(index)));
    at = SymInt(index);
  }
  parts.push_back(c.slice(x, dim, at, SymInt(INT64_MAX)));
  c.out_list(parts);
}

void tensor_split(C& c) {
  Value* x = c.x("self");
  tensor_split_at(c, x, c.axis(c.integer("dim"), rank_of(c, x)));
}
void split_along(C& c) {
  // hsplit, vsplit, dsplit
  Value* x = c.x("self");
  const std::string_view which = c.detail();
  const int64_t dim = which == "h" ? (rank_of(c, x) == 1 ? 0 : 1) : which == "v" ? 0 : 2;
  tensor_split_at(c, x, dim);
}

void unbind(C& c) {
  Value* x = c.x("self");
  const int64_t dim = c.axis(c.integer("dim"), rank_of(c, x));
  const auto count = c.known(x, dim);
  if (!count) return c.refuse("unbind of an axis of unknown length");
  if (c.count(*count) == 0) return c.out_list({});
  if (*count == 1) {
    Value* one[] = {c.squeeze(x, {dim})};
    return c.out_list(one);
  }
  Node* node = c.b.begin("Split", Values{x}, {{"axis", dim}, {"num_outputs", *count}});
  Values parts = c.b.finish(node, static_cast<size_t>(*count));
  for (Value*& part : parts) part = c.squeeze(part, {dim});
  c.out_list(parts);
}

void unfold(C& c) {
  // [..., n, ...] -> [..., windows, ..., size]
  Value* x = c.x("self");
  const int64_t r = c.rank(x);
  const int64_t size = c.integer("size"), step = c.integer("step");
  if (size < 0 || step < 1) return c.refuse("windows of a negative size or without a step");
  if (r == 0) return c.out(c.reshape(x, {SymInt(1)}));
  const int64_t dim = c.axis(c.integer("dimension"), r);
  const SymInt windows =
      c.add(c.floor_div(c.sub(c.size(x, dim), SymInt(size)), SymInt(step)), SymInt(1));
  Value* starts = c.mul(c.range(windows), c.b.int_scalar(step));
  Value* places = c.add(c.unsqueeze(starts, {1}), c.range(SymInt(size)));
  Value* y = c.op("Gather", {x, places}, {{"axis", dim}});
  Ints perm;
  for (int64_t i = 0; i <= r; ++i)
    if (i != dim + 1) perm.push_back(i);
  perm.push_back(dim + 1);
  c.out(c.transpose(y, perm));
}

void diagonal(C& c) {
  const char* source = c.has_arg("A") ? "A" : "self";
  Value* x = c.x(source);
  const bool complex = c.is_complex(source);
  const int64_t r = c.rank(x) - (complex ? 1 : 0);
  const int64_t d1 = c.axis(c.integer("dim1"), r), d2 = c.axis(c.integer("dim2"), r);
  const int64_t offset = c.integer("offset");
  if (r < 2 || d1 == d2) return c.refuse("a diagonal of one axis");
  // The two axes last (before a pair's), then one axis of rows times columns, then a stride.
  Ints perm;
  for (int64_t i = 0; i < r; ++i)
    if (i != d1 && i != d2) perm.push_back(i);
  perm.push_back(d1);
  perm.push_back(d2);
  if (complex) perm.push_back(r);
  Value* y = c.transpose(x, perm);
  const SymInt rows = c.size(y, r - 2), columns = c.size(y, r - 1);
  SymInt count = offset >= 0 ? c.minimum(rows, c.sub(columns, SymInt(offset)))
                             : c.minimum(c.add(rows, SymInt(offset)), columns);
  count = c.maximum(count, SymInt(0));
  Value* index = c.range(count);
  const auto shifted = [&](int64_t by) {
    return by == 0 ? index : c.add(index, c.b.int_scalar(by));
  };
  Value* row = shifted(offset < 0 ? -offset : 0);
  Value* column = shifted(offset > 0 ? offset : 0);
  Value* flat_index = c.add(c.mul(row, c.int_value(columns)), column);
  SymInts sizes;
  for (int64_t i = 0; i < r - 2; ++i) sizes.push_back(c.size(y, i));
  sizes.push_back(c.mul(rows, columns));
  if (complex) sizes.emplace_back(2);
  Value* flat = c.reshape(y, sizes);
  c.out(c.op("Gather", {flat, flat_index}, {{"axis", r - 2}}), c.type(source));
}

void as_strided(C& c) {
  Value* x = c.x("self");
  const SymInts sizes = c.syms("size"), strides = c.syms("stride");
  const bool complex = c.is_complex("self");
  SymInt offset(0);
  if (c.given("storage_offset")) offset = c.sym("storage_offset");
  Value* index = c.int_value(offset);
  const size_t r = sizes.size();
  for (size_t i = 0; i < r; ++i) {
    Value* steps = c.mul(c.range(sizes[i]), c.int_value(strides[i]));
    Ints after;
    for (size_t k = i + 1; k < r; ++k) after.push_back(static_cast<int64_t>(k - i));
    index = c.add(index, c.unsqueeze(steps, after));
  }
  // Positions count in the storage; a contiguous tensor is all of its own.
  SymInts flat = {SymInt(-1)};
  if (complex) flat.emplace_back(2);
  if (c.ref("self")->layout != CellLayout::kContiguous)
    return c.refuse("strides of a tensor that is itself a view");
  c.out(c.op("Gather", {c.reshape(x, flat), index}, {{"axis", 0}}), c.type("self"));
}

void view_as_real(C& c) { c.out(c.x("self")); }
void view_as_complex(C& c) {
  Value* x = c.x("self");
  c.out(x, C::complex_of(c.dtype(x)));
}
void real_part(C& c) { c.out(c.is_complex("self") ? c.re(c.x("self")) : c.x("self")); }
void imaginary_part(C& c) {
  if (!c.is_complex("self")) return c.refuse("the imaginary part of a real tensor");
  c.out(c.im(c.x("self")));
}
void conj(C& c) {
  Value* x = c.x("self");
  c.out(c.is_complex("self") ? complex_conj(c, x) : x, c.type("self"));
}

constexpr RowKind kV = RowKind::kView, kM = RowKind::kMaybeView;

constexpr Row kViewOpsRows[] = {
    {"alias(Tensor(a) self) -> Tensor(a)", copy_of, "", kV},
    {"alias_copy(Tensor self) -> Tensor", copy_of},
    {"detach(Tensor(a) self) -> Tensor(a)", copy_of, "", kV},
    {"detach_copy(Tensor self) -> Tensor", copy_of},
    {"lift_fresh(Tensor(a) self) -> Tensor(a)", copy_of, "", kV},
    {"lift_fresh_copy(Tensor self) -> Tensor", copy_of},
    {"lift(Tensor self) -> Tensor", copy_of},
    {"resolve_conj(Tensor(a) self) -> Tensor(a)", copy_of},
    {"resolve_neg(Tensor(a) self) -> Tensor(a)", copy_of},
    {"view(Tensor(a) self, SymInt[] size) -> Tensor(a)", view, "size", kV},
    {"view_copy(Tensor self, SymInt[] size) -> Tensor", view, "size"},
    {"_unsafe_view(Tensor self, SymInt[] size) -> Tensor", view, "size"},
    {"_reshape_alias(Tensor(a) self, SymInt[] size, SymInt[] stride) -> Tensor(a)", view, "size",
     kV},
    {"_reshape_copy(Tensor self, SymInt[] size) -> Tensor", view, "size"},
    {"reshape(Tensor(a) self, SymInt[] shape) -> Tensor(a)", view, "shape", kM},
    {"view.dtype(Tensor(a) self, ScalarType dtype) -> Tensor(a)", view_dtype, "", kV},
    {"view_copy.dtype(Tensor self, ScalarType dtype) -> Tensor", view_dtype},
    {"view_as(Tensor(a) self, Tensor other) -> Tensor(a)", view_as, "", kV},
    {"reshape_as(Tensor(a) self, Tensor other) -> Tensor(a)", view_as, "", kM},
    {"resize(Tensor self, SymInt[] size, *, MemoryFormat? memory_format=None) -> Tensor", resized,
     "", kV},
    {"resize_as(Tensor self, Tensor the_template, *, MemoryFormat? memory_format=None) -> Tensor",
     resized},
    {"flatten.using_ints(Tensor(a) self, int start_dim=0, int end_dim=-1) -> Tensor(a)", flatten,
     "", kM},
    {"ravel(Tensor(a) self) -> Tensor(a)", flatten, "", kM},
    {"unflatten.int(Tensor(a) self, int dim, SymInt[] sizes) -> Tensor(a)", unflatten, "", kM},
    {"transpose.int(Tensor(a) self, int dim0, int dim1) -> Tensor(a)", transpose, "", kV},
    {"transpose_copy.int(Tensor self, int dim0, int dim1) -> Tensor", transpose},
    {"swapaxes(Tensor(a) self, int axis0, int axis1) -> Tensor(a)", transpose, "", kV},
    {"swapdims(Tensor(a) self, int dim0, int dim1) -> Tensor(a)", transpose, "", kV},
    {"t(Tensor(a) self) -> Tensor(a)", transpose_last, "", kV},
    {"t_copy(Tensor self) -> Tensor", transpose_last},
    {"mT(Tensor(a) self) -> Tensor(a)", transpose_last, "", kV},
    {"mH(Tensor(a) self) -> Tensor(a)", transpose_last, "conj", kV},
    {"adjoint(Tensor(a) self) -> Tensor(a)", transpose_last, "conj", kV},
    {"matrix_H(Tensor(a) self) -> Tensor(a)", transpose_last, "conj", kV},
    {"numpy_T(Tensor(a) self) -> Tensor(a)", reverse_axes, "", kV},
    {"permute(Tensor(a) self, int[] dims) -> Tensor(a)", permute, "", kV},
    {"permute_copy(Tensor self, int[] dims) -> Tensor", permute},
    {"movedim.int(Tensor(a) self, int source, int destination) -> Tensor(a)", movedim, "", kV},
    {"movedim.intlist(Tensor(a) self, int[] source, int[] destination) -> Tensor(a)", movedim, "",
     kV},
    {"moveaxis.int(Tensor(a) self, int source, int destination) -> Tensor(a)", movedim, "", kV},
    {"moveaxis.intlist(Tensor(a) self, int[] source, int[] destination) -> Tensor(a)", movedim, "",
     kV},
    {"squeeze(Tensor(a) self) -> Tensor(a)", squeeze, "", kV},
    {"squeeze.dim(Tensor(a) self, int dim) -> Tensor(a)", squeeze, "", kV},
    {"squeeze.dims(Tensor(a) self, int[] dim) -> Tensor(a)", squeeze, "", kV},
    {"squeeze_copy(Tensor self) -> Tensor", squeeze},
    {"squeeze_copy.dim(Tensor self, int dim) -> Tensor", squeeze},
    {"squeeze_copy.dims(Tensor self, int[] dim) -> Tensor", squeeze},
    {"unsqueeze(Tensor(a) self, int dim) -> Tensor(a)", unsqueeze, "", kV},
    {"unsqueeze_copy(Tensor self, int dim) -> Tensor", unsqueeze},
    {"expand(Tensor(a) self, SymInt[] size, *, bool implicit=False) -> Tensor(a)", expand, "", kV},
    {"expand_copy(Tensor self, SymInt[] size, *, bool implicit=False) -> Tensor", expand},
    {"broadcast_to(Tensor(a) self, SymInt[] size) -> Tensor(a)", expand, "", kV},
    {"expand_as(Tensor(a) self, Tensor other) -> Tensor(a)", expand_as, "", kV},
    {"select.int(Tensor(a) self, int dim, SymInt index) -> Tensor(a)", select, "", kV},
    {"select_copy.int(Tensor self, int dim, SymInt index) -> Tensor", select},
    {"slice.Tensor(Tensor(a) self, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1) "
     "-> Tensor(a)",
     slice, "", kV},
    {"slice_copy.Tensor(Tensor self, int dim=0, SymInt? start=None, SymInt? end=None, SymInt "
     "step=1) -> Tensor",
     slice},
    {"narrow(Tensor(a) self, int dim, SymInt start, SymInt length) -> Tensor(a)", narrow, "", kV},
    {"narrow.Tensor(Tensor(a) self, int dim, Tensor start, SymInt length) -> Tensor(a)", narrow, "",
     kV},
    {"narrow_copy(Tensor self, int dim, SymInt start, SymInt length) -> Tensor", narrow},
    {"split.Tensor(Tensor(a) self, SymInt split_size, int dim=0) -> Tensor(a)[]", split, "", kV},
    {"split.sizes(Tensor(a) self, SymInt[] split_size, int dim=0) -> Tensor(a)[]", split, "", kV},
    {"split_copy.Tensor(Tensor self, SymInt split_size, int dim=0) -> Tensor[]", split},
    {"split_with_sizes(Tensor(a) self, SymInt[] split_sizes, int dim=0) -> Tensor(a)[]", split, "",
     kV},
    {"split_with_sizes_copy(Tensor self, SymInt[] split_sizes, int dim=0) -> Tensor[]", split},
    {"unsafe_split.Tensor(Tensor self, SymInt split_size, int dim=0) -> Tensor[]", split},
    {"unsafe_split_with_sizes(Tensor self, SymInt[] split_sizes, int dim=0) -> Tensor[]", split},
    {"chunk(Tensor(a) self, int chunks, int dim=0) -> Tensor(a)[]", chunk, "", kV},
    {"unsafe_chunk(Tensor self, int chunks, int dim=0) -> Tensor[]", chunk},
    {"tensor_split.sections(Tensor(a) self, SymInt sections, int dim=0) -> Tensor(a)[]",
     tensor_split, "", kV},
    {"tensor_split.indices(Tensor(a) self, SymInt[] indices, int dim=0) -> Tensor(a)[]",
     tensor_split, "", kV},
    {"tensor_split.tensor_indices_or_sections(Tensor(a) self, Tensor tensor_indices_or_sections, "
     "int dim=0) -> Tensor(a)[]",
     tensor_split, "", kV},
    {"hsplit.int(Tensor(a) self, int sections) -> Tensor(a)[]", split_along, "h", kV},
    {"hsplit.array(Tensor(a) self, int[] indices) -> Tensor(a)[]", split_along, "h", kV},
    {"vsplit.int(Tensor(a) self, int sections) -> Tensor(a)[]", split_along, "v", kV},
    {"vsplit.array(Tensor(a) self, int[] indices) -> Tensor(a)[]", split_along, "v", kV},
    {"dsplit.int(Tensor(a) self, int sections) -> Tensor(a)[]", split_along, "d", kV},
    {"dsplit.array(Tensor(a) self, int[] indices) -> Tensor(a)[]", split_along, "d", kV},
    {"unbind.int(Tensor(a) self, int dim=0) -> Tensor(a)[]", unbind, "", kV},
    {"unbind_copy.int(Tensor self, int dim=0) -> Tensor[]", unbind},
    {"unfold(Tensor(a) self, int dimension, int size, int step) -> Tensor(a)", unfold, "", kV},
    {"unfold_copy(Tensor self, int dimension, int size, int step) -> Tensor", unfold},
    {"diagonal(Tensor(a) self, int offset=0, int dim1=0, int dim2=1) -> Tensor(a)", diagonal, "",
     kV},
    {"diagonal_copy(Tensor self, int offset=0, int dim1=0, int dim2=1) -> Tensor", diagonal},
    {"linalg_diagonal(Tensor(a) A, *, int offset=0, int dim1=-2, int dim2=-1) -> Tensor(a)",
     diagonal, "", kV},
    {"as_strided(Tensor(a) self, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None) -> "
     "Tensor(a)",
     as_strided, "", kV},
    {"as_strided_copy(Tensor self, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None) -> "
     "Tensor",
     as_strided},
    {"view_as_real(Tensor(a) self) -> Tensor(a)", view_as_real, "", kV},
    {"view_as_real_copy(Tensor self) -> Tensor", view_as_real},
    {"view_as_complex(Tensor(a) self) -> Tensor(a)", view_as_complex, "", kV},
    {"view_as_complex_copy(Tensor self) -> Tensor", view_as_complex},
    {"real(Tensor(a) self) -> Tensor(a)", real_part, "", kV},
    {"imag(Tensor(a) self) -> Tensor(a)", imaginary_part, "", kV},
    {"conj(Tensor(a) self) -> Tensor(a)", conj, "", kV},
    {"_conj(Tensor(a) self) -> Tensor(a)", conj, "", kV},
    {"_conj_copy(Tensor self) -> Tensor", conj},
    {"_conj_physical(Tensor self) -> Tensor", conj},
    {"conj_physical(Tensor self) -> Tensor", conj},
    {"_neg_view(Tensor(a) self) -> Tensor(a)",
     [](C& c) { c.out(c.op("Neg", {c.x("self")}), c.type("self")); }, "", kV},
    {"_neg_view_copy(Tensor self) -> Tensor",
     [](C& c) { c.out(c.op("Neg", {c.x("self")}), c.type("self")); }},
};

}  // namespace

std::span<const Row> view_rows() { return kViewOpsRows; }

}  // namespace tombolo::pytorch
