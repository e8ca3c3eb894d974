// Rearranging elements: cat, stack, repeat, roll, flip, pad, triangles.

#include <algorithm>
#include <cmath>

#include "formats/pytorch/aten/complex.h"
#include "formats/pytorch/aten/context.h"

namespace tombolo::pytorch {
namespace {

using C = AtenContext;

/// The tensors of a list in their common type, empty vectors (which cat allows) left out.
Values joined(C& c, std::string_view name, DType& type) {
  type = c.promote({name});
  Values parts;
  for (const Ref& ref : c.tensors(name)) {
    if (!ref) continue;
    Value* value = c.operand_of(Arg(ref), type);
    if (c.rank(value) == 1 + (is_complex(type) ? 1 : 0) && c.known(value, 0) == 0 &&
        c.tensors(name).size() > 1 && c.name().find("cat") != std::string_view::npos)
      continue;
    parts.push_back(value);
  }
  if (parts.empty())
    for (const Ref& ref : c.tensors(name)) {
      parts.push_back(c.operand_of(Arg(ref), type));
      break;
    }
  return parts;
}

int64_t logical(C& c, Value* x, DType type) { return c.rank(x) - (is_complex(type) ? 1 : 0); }

void cat(C& c) {
  DType type;
  const Values parts = joined(c, "tensors", type);
  if (parts.empty()) return c.refuse("nothing to join");
  c.out(c.concat(parts, c.axis(c.integer("dim"), logical(c, parts[0], type))), type);
}

void stack(C& c) {
  DType type;
  Values parts = joined(c, "tensors", type);
  if (parts.empty()) return c.refuse("nothing to stack");
  const int64_t dim =
      c.axis(c.has_arg("dim") ? c.integer("dim") : 0, logical(c, parts[0], type) + 1);
  for (Value*& part : parts) part = c.unsqueeze(part, {dim});
  c.out(c.concat(parts, dim), type);
}

/// hstack, vstack, dstack, column_stack: at least so many axes, joined along one of them.
void stack_along(C& c) {
  DType type;
  Values parts = joined(c, "tensors", type);
  if (parts.empty()) return c.refuse("nothing to stack");
  const std::string_view which = c.detail();
  int64_t axis = 0;
  for (Value*& part : parts) {
    const int64_t r = logical(c, part, type);
    if (which == "h") {
      if (r == 0) part = c.unsqueeze(part, {0});
      axis = r <= 1 ? 0 : 1;
    } else if (which == "v") {
      if (r == 0) part = c.unsqueeze(part, {0, 1});
      if (r == 1) part = c.unsqueeze(part, {0});
    } else if (which == "d") {
      if (r == 0) part = c.unsqueeze(part, {0, 1, 2});
      if (r == 1) part = c.unsqueeze(part, {0, 2});
      if (r == 2) part = c.unsqueeze(part, {2});
      axis = 2;
    } else {
      if (r == 0) part = c.unsqueeze(part, {0, 1});
      if (r == 1) part = c.unsqueeze(part, {1});
      axis = 1;
    }
  }
  c.out(c.concat(parts, axis), type);
}

void at_least(C& c) {
  const int64_t wanted = c.detail()[0] - '0';
  const auto lifted = [&](const Ref& ref) {
    Value* x = c.read(ref);
    const int64_t r = logical(c, x, ref->dtype);
    if (wanted == 1) return r == 0 ? c.unsqueeze(x, {0}) : x;
    if (wanted == 2) return r == 0 ? c.unsqueeze(x, {0, 1}) : r == 1 ? c.unsqueeze(x, {0}) : x;
    return r == 0   ? c.unsqueeze(x, {0, 1, 2})
           : r == 1 ? c.unsqueeze(x, {0, 2})
           : r == 2 ? c.unsqueeze(x, {2})
                    : x;
  };
  if (c.has_arg("self")) return c.out(lifted(c.ref("self")), c.type("self"));
  Args items;
  for (const Ref& ref : c.tensors("tensors")) {
    items.emplace_back(c.cell(lifted(ref), ref->dtype));
    c.may_share(ref, items.back().tensor);
  }
  c.out_arg(Arg(std::move(items)));
}

void broadcast_tensors(C& c) {
  SymInts shape;
  for (const Ref& ref : c.tensors("tensors")) {
    const SymInts sizes = c.sizes(c.read(ref));
    while (shape.size() < sizes.size()) shape.insert(shape.begin(), SymInt(1));
    for (size_t i = 0; i < sizes.size(); ++i) {
      SymInt& one = shape[shape.size() - sizes.size() + i];
      if (one.is(1)) one = sizes[i];
    }
  }
  Args items;
  for (const Ref& ref : c.tensors("tensors")) {
    items.emplace_back(c.cell(c.expand(c.read(ref), shape), ref->dtype));
    c.may_share(ref, items.back().tensor);
  }
  c.out_arg(Arg(std::move(items)));
}

void meshgrid(C& c) {
  const Refs tensors = c.tensors("tensors");
  const bool swapped = c.has_arg("indexing") && c.text("indexing") == "xy" && tensors.size() > 1;
  SymInts shape;
  Values parts;
  for (size_t i = 0; i < tensors.size(); ++i) {
    Value* x = c.read(tensors[i]);
    if (c.rank(x) == 0) x = c.unsqueeze(x, {0});
    parts.push_back(x);
    shape.push_back(c.size(x, 0));
  }
  if (swapped) std::swap(shape[0], shape[1]);
  Values result;
  for (size_t i = 0; i < parts.size(); ++i) {
    size_t place = i;
    if (swapped && i < 2) place = 1 - i;
    Ints axes;
    for (size_t k = 0; k < parts.size(); ++k)
      if (k != place) axes.push_back(static_cast<int64_t>(k));
    result.push_back(c.expand(c.unsqueeze(parts[i], axes), shape));
  }
  Args items;
  for (size_t i = 0; i < result.size(); ++i) {
    items.emplace_back(c.cell(result[i], tensors[i]->dtype));
    c.may_share(tensors[i], items.back().tensor);
  }
  c.out_arg(Arg(std::move(items)));
}

void repeat(C& c) {
  Value* x = c.x("self");
  const bool complex = c.is_complex("self");
  SymInts repeats = c.syms(c.has_arg("repeats") ? "repeats" : "dims");
  const int64_t r = logical(c, x, c.type("self"));
  Ints front;
  for (int64_t i = r; i < static_cast<int64_t>(repeats.size()); ++i) front.push_back(i - r);
  x = c.unsqueeze(x, front);
  while (static_cast<int64_t>(repeats.size()) < r) repeats.insert(repeats.begin(), SymInt(1));
  bool trivial = true;
  for (const SymInt& one : repeats) trivial = trivial && one.is(1);
  Shape shape;
  for (size_t i = 0; i < repeats.size(); ++i)
    shape.push_back(c.b.dim(x, static_cast<int64_t>(i)) * repeats[i].dim);
  if (complex) {
    repeats.emplace_back(1);
    shape.emplace_back(2);
  }
  if (trivial) return c.out(x, c.type("self"));
  Value* y = c.op("Tile", {x, c.shape_value(repeats)});
  c.b.set_type(y, c.dtype(x), shape);
  c.out(y, c.type("self"));
}

void repeat_interleave(C& c) {
  Value* x = c.x("self");
  int64_t dim = 0;
  if (!c.given("dim")) {
    x = c.reshape(x, {SymInt(-1)});
  } else {
    dim = c.axis(c.integer("dim"), c.rank(x));
  }
  if (c.rank(x) == 0) x = c.unsqueeze(x, {0});
  const Arg& repeats = c.arg("repeats");
  const int64_t r = c.rank(x);
  if (repeats.kind == Arg::Kind::kInt) {
    SymInts wide = c.sizes(x), merged = wide;
    wide.insert_axis(static_cast<size_t>(dim) + 1, c.sym("repeats"));
    merged[static_cast<size_t>(dim)] = c.mul(merged[static_cast<size_t>(dim)], c.sym("repeats"));
    return c.out(c.reshape(c.expand(c.unsqueeze(x, {dim + 1}), wide), merged));
  }
  Value* counts = c.cast(c.x("repeats"), DType::kInt64);
  if (c.rank(counts) == 0 || c.known(counts, 0) == 1)
    counts = c.expand(c.reshape(counts, {SymInt(1)}), {c.size(x, dim)});
  // Output place j shows the first element whose running count passes j.
  Value* ends = c.op("CumSum", {counts, c.b.int_scalar(0)});
  Value* total = c.op("ReduceSum", {counts}, {{"keepdims", 0}});
  Value* places = c.op("Range", {c.b.int_scalar(0), total, c.b.int_scalar(1)});
  c.b.set_type(places, DType::kInt64, {SymDim()});
  Value* passed = c.op("GreaterOrEqual", {c.unsqueeze(places, {1}), c.unsqueeze(ends, {0})});
  Value* index =
      c.op("ReduceSum", {c.cast(passed, DType::kInt64), c.b.ints({1})}, {{"keepdims", 0}});
  (void)r;
  c.out(c.op("Gather", {x, index}, {{"axis", dim}}));
}

void repeat_interleave_counts(C& c) {
  c.out(c.lower("repeat_interleave.self_Tensor",
                {Arg(c.cell(c.range(c.size(c.x("repeats"), 0)))), c.arg("repeats"), Arg(0)}));
}

void roll(C& c) {
  Value* x = c.x("self");
  const int64_t r = logical(c, x, c.type("self"));
  const SymInts shifts = c.syms("shifts");
  const Ints dims = c.ints("dims");
  const SymInts sizes = c.sizes(x);
  const auto rolled = [&](Value* v, int64_t dim, const SymInt& shift) {
    const SymInt length = c.size(v, dim);
    if (length.is(0)) return v;
    SymInt rest = c.modulo(shift, length);
    if (!rest.is_number())
      rest = SymInt(SymDim(), c.op("Mod", {c.int_value(shift), c.int_value(length)}));
    const SymInt cut = c.sub(length, rest);
    if (cut.is_number() && length.is_number() && cut.dim.value() == length.dim.value()) return v;
    return c.concat({c.slice(v, dim, cut, SymInt(INT64_MAX)), c.slice(v, dim, SymInt(0), cut)},
                    dim);
  };
  if (dims.empty()) {
    if (shifts.empty()) return c.out(x, c.type("self"));
    SymInts flat = {SymInt(-1)};
    if (c.is_complex("self")) flat.emplace_back(2);
    return c.out(c.reshape(rolled(c.reshape(x, flat), 0, shifts[0]), sizes), c.type("self"));
  }
  for (size_t i = 0; i < dims.size() && i < shifts.size(); ++i)
    if (r > 0) x = rolled(x, c.axis(dims[i], r), shifts[i]);
  if (c.has_rank(x)) {
    Shape shape;
    for (const SymInt& one : sizes) shape.push_back(one.dim);
    if (x->producer()) c.b.set_type(x, c.dtype(x), shape);
  }
  c.out(x, c.type("self"));
}

Value* flipped(C& c, Value* x, const Ints& axes) {
  if (axes.empty()) return x;
  const Ints from(axes.size(), -1), to(axes.size(), INT64_MIN), steps(axes.size(), -1);
  Value* y = c.op("Slice", {x, c.b.ints(from), c.b.ints(to), c.b.ints(axes), c.b.ints(steps)});
  c.b.set_type(y, c.dtype(x), SymShape(c.b.shape(x)));
  return y;
}

void flip(C& c) {
  Value* x = c.x("self");
  const std::string_view which = c.detail();
  const int64_t r = logical(c, x, c.type("self"));
  Ints axes;
  if (which == "lr") {
    axes = {1};
  } else if (which == "ud") {
    axes = {0};
  } else {
    for (const int64_t dim : c.ints("dims")) axes.push_back(c.axis(dim, r));
  }
  c.out(r == 0 ? x : flipped(c, x, axes), c.type("self"));
}

void rot90(C& c) {
  Value* x = c.x("self");
  const int64_t r = logical(c, x, c.type("self"));
  const Ints dims = c.ints("dims");
  if (dims.size() != 2) return c.refuse("a rotation needs two axes");
  const int64_t a = c.axis(dims[0], r), z = c.axis(dims[1], r);
  if (a == z) return c.refuse("a rotation needs two axes");
  const int64_t k = ((c.integer("k") % 4) + 4) % 4;
  if (k == 1) x = c.swap(flipped(c, x, {z}), a, z);
  if (k == 2) x = flipped(c, x, {a, z});
  if (k == 3) x = flipped(c, c.swap(x, a, z), {z});
  c.out(x, c.type("self"));
}

void triangle(C& c) {
  Value* x = c.x("self");
  const bool upper = std::string_view(c.detail()) == "upper";
  const SymInt k = c.has_arg("diagonal") ? c.sym("diagonal") : SymInt(0);
  const auto cut = [&](Value* v) {
    const DType type = c.dtype(v);
    Value* y = k.is(0) ? c.op("Trilu", {v}, {{"upper", upper}})
                       : c.op("Trilu", {v, c.int_value(k)}, {{"upper", upper}});
    return c.cast(y, type);
  };
  if (c.is_complex("self")) return c.out(c.pair(cut(c.re(x)), cut(c.im(x))), c.type("self"));
  c.out(cut(x));
}

void triangle_indices(C& c) {
  const int64_t rows = c.integer("row"), columns = c.integer("col"), offset = c.integer("offset");
  const bool upper = std::string_view(c.detail()) == "upper";
  Ints first, second;
  if (rows < 0 || columns < 0 || rows > 2048 || columns > 2048)
    return c.refuse("indices of a very large triangle");
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t k = 0; k < columns; ++k)
      if (upper ? k - i >= offset : k - i <= offset) {
        first.push_back(i);
        second.push_back(k);
      }
  const int64_t dims[] = {2, static_cast<int64_t>(first.size())};
  first.insert(first.end(), second.begin(), second.end());
  const Tensor tensor = Tensor::of<int64_t>(DType::kInt64, dims, first);
  c.out(c.cast(c.b.constant(tensor, "indices"), c.dtype("dtype").value_or(DType::kInt64)));
}

void diag(C& c) {
  Value* x = c.x("self");
  const Arg k = c.has_arg("diagonal") ? c.arg("diagonal") : c.arg("offset");
  const int64_t r = logical(c, x, c.type("self"));
  const bool embed = c.name() == "diagflat" || r == 1;
  if (c.name() == "diagflat" && r != 1) {
    Ref flat = c.cell(
        c.reshape(x, c.is_complex("self") ? SymInts{SymInt(-1), SymInt(2)} : SymInts{SymInt(-1)}),
        c.type("self"));
    return c.out(c.lower("diag_embed", {Arg(flat), k}), c.type("self"));
  }
  c.out(c.lower(embed ? "diag_embed" : "diagonal_copy", {c.arg("self"), k}), c.type("self"));
}

void diag_embed(C& c) {
  Value* x = c.x("self");
  const bool complex = c.is_complex("self");
  const int64_t r = logical(c, x, c.type("self"));
  const int64_t d1 = c.axis(c.integer("dim1"), r + 1), d2 = c.axis(c.integer("dim2"), r + 1);
  const int64_t offset = c.integer("offset"), shift = offset < 0 ? -offset : offset;
  if (r < 1 || d1 == d2) return c.refuse("a diagonal of one axis");
  const SymInt n = c.size(x, r - 1);
  // [..., n] -> [..., n, size]: one element in every row, zero elsewhere.
  const SymInt size = c.add(n, SymInt(shift));
  Value* rows = c.unsqueeze(c.range(size), {1});
  Value* columns = c.range(size);
  if (offset != 0) rows = c.add(rows, c.b.int_scalar(offset));
  Value* mask = c.op("Equal", {rows, columns});
  Value* padded = x;
  if (shift != 0) {
    SymInts zeros;
    for (int64_t i = 0; i + 1 < r; ++i) zeros.push_back(c.size(x, i));
    zeros.emplace_back(shift);
    if (complex) zeros.emplace_back(2);
    Value* zero = c.full(zeros, 0, c.dtype(x));
    padded = offset > 0 ? c.concat({x, zero}, r - 1) : c.concat({zero, x}, r - 1);
  }
  // Row i of the result holds the element whose row it is: padded[..., i] for offset > 0.
  Value* y = c.unsqueeze(padded, {r});
  if (complex) mask = c.unsqueeze(mask, {2});
  y = c.where(mask, y, c.like(0, y));
  // Rows stand at r - 1, columns at r; they go to d1 and d2.
  Ints perm(static_cast<size_t>(r) + 1, -1);
  perm[static_cast<size_t>(d1)] = r - 1;
  perm[static_cast<size_t>(d2)] = r;
  int64_t next = 0;
  for (int64_t& axis : perm)
    if (axis < 0) axis = next++;
  if (complex) perm.push_back(r + 1);
  c.out(c.transpose(y, perm), c.type("self"));
}

void block_diag(C& c) {
  DType type;
  Values parts = joined(c, "tensors", type);
  if (is_complex(type)) return c.refuse("complex blocks");
  SymInt columns(0);
  for (Value*& part : parts) {
    const int64_t r = c.rank(part);
    if (r < 2) part = c.unsqueeze(part, r == 0 ? Ints{0, 1} : Ints{0});
    columns = c.add(columns, c.size(part, 1));
  }
  SymInt before(0);
  Values rows;
  for (Value* part : parts) {
    const SymInt width = c.size(part, 1), after = c.sub(c.sub(columns, before), width);
    Value* pads = c.shape_value(SymInts{SymInt(0), before, SymInt(0), after});
    Value* row = c.op("Pad", {part, pads});
    c.b.set_type(row, c.dtype(part), {c.b.dim(part, 0), columns.dim});
    rows.push_back(row);
    before = c.add(before, width);
  }
  c.out(c.concat(rows, 0));
}

void cartesian(C& c) {
  // cartesian_prod
  Args flat;
  const Args grids = c.lower_all("meshgrid", {c.arg("tensors")});
  if (c.tensors("tensors").size() == 1) return c.out(c.read(c.tensors("tensors")[0]));
  Values columns;
  for (const Arg& grid : grids.front().list)
    columns.push_back(c.unsqueeze(c.reshape(c.read(grid.tensor), {SymInt(-1)}), {1}));
  c.out(c.concat(columns, 1));
}

void combinations(C& c) {
  Value* x = c.x("self");
  const auto n = c.known(x, 0);
  const int64_t r = c.integer("r");
  const bool again = c.flag("with_replacement");
  if (!n || r < 0 || r > 4 || std::pow(static_cast<double>(*n), static_cast<double>(r)) > 1 << 22)
    return c.refuse("combinations of an unknown number of elements");
  Ints flat, chosen;
  const auto walk = [&](const auto& self, int64_t from) -> void {
    if (static_cast<int64_t>(chosen.size()) == r) {
      flat.insert(flat.end(), chosen.begin(), chosen.end());
      return;
    }
    for (int64_t i = from; i < *n; ++i) {
      chosen.push_back(i);
      self(self, again ? i : i + 1);
      chosen.pop_back();
    }
  };
  if (r > 0) walk(walk, 0);
  if (r == 0) return c.out(c.full({SymInt(0)}, 0, c.dtype(x)));
  const int64_t dims[] = {static_cast<int64_t>(flat.size()) / r, r};
  c.out(
      c.op("Gather", {x, c.b.constant(Tensor::of<int64_t>(DType::kInt64, dims, flat), "choice")}));
}

// ---- padding ----

/// torch lists pads from the last axis on; ONNX first all begins, then all ends.
Value* pad_values(C& c, const SymInts& pads, int64_t r) {
  SymInts order(static_cast<size_t>(2 * r), SymInt(0));
  for (size_t i = 0; 2 * i + 1 < pads.size() && static_cast<int64_t>(i) < r; ++i) {
    const size_t axis = static_cast<size_t>(r) - 1 - i;
    order[axis] = pads[2 * i];
    order[axis + static_cast<size_t>(r)] = pads[2 * i + 1];
  }
  return c.shape_value(order);
}

Value* padded(C& c, Value* x, const SymInts& pads, const std::string& mode, Value* fill) {
  const int64_t r = c.rank(x);
  Shape shape = c.b.shape(x);
  bool nothing = true;
  for (size_t i = 0; 2 * i + 1 < pads.size() && static_cast<int64_t>(i) < r; ++i) {
    SymDim& dim = shape[shape.size() - 1 - i];
    dim = dim + pads[2 * i].dim + pads[2 * i + 1].dim;
    nothing = nothing && pads[2 * i].is(0) && pads[2 * i + 1].is(0);
  }
  if (nothing) return x;
  const std::string onnx = mode == "replicate" ? "edge" : mode == "circular" ? "wrap" : mode;
  Value* source = c.dtype(x) == DType::kBool ? c.cast(x, DType::kUInt8) : x;
  Value* y = fill ? c.op("Pad", {source, pad_values(c, pads, r), c.cast(fill, c.dtype(source))},
                         {{"mode", onnx}})
                  : c.op("Pad", {source, pad_values(c, pads, r)}, {{"mode", onnx}});
  c.b.set_type(y, c.dtype(source), shape);
  return c.cast(y, c.dtype(x));
}

void pad_with(C& c, Value* x, const SymInts& pads, const std::string& mode, Value* fill) {
  const int64_t r = c.rank(x);
  if (mode != "constant") {
    // What negative pads cut off is what is there after the others have grown.
    SymInts grown = pads;
    Ints cut(pads.size());
    for (size_t i = 0; i < pads.size(); ++i) {
      const auto pad = pads[i].dim.constant();
      if (!pad || *pad >= 0) continue;
      if (*pad < -kMaxNumber) return c.refuse("a pad out of range");
      cut[i] = -*pad;
      grown[i] = SymInt(0);
    }
    if (std::any_of(cut.begin(), cut.end(), [](int64_t length) { return length != 0; })) {
      const DType type = c.type("self");
      // What goes round is what the cuts leave.
      const bool before = mode == "circular";
      Value* y = before ? x : padded(c, x, grown, mode, fill);
      for (size_t i = 0; 2 * i + 1 < cut.size(); ++i) {
        if (cut[2 * i] == 0 && cut[2 * i + 1] == 0) continue;
        const int64_t axis = r - 1 - static_cast<int64_t>(i);
        y = c.slice(y, axis, SymInt(cut[2 * i]), c.sub(c.size(y, axis), SymInt(cut[2 * i + 1])));
      }
      if (before) y = padded(c, y, grown, mode, fill);
      return c.out(y, type);
    }
  }
  c.out(padded(c, x, pads, mode, fill), c.type("self"));
}

void constant_pad(C& c) {
  Value* x = c.x("self");
  SymInts pads = c.syms("pad");
  const Arg& value = c.arg("value");
  const bool zero = value.is_none() || (value.kind == Arg::Kind::kInt && value.integer.is(0)) ||
                    (value.kind == Arg::Kind::kFloat && !value.computed && value.real == 0);
  if (c.is_complex("self")) pads.insert(pads.begin(), {SymInt(0), SymInt(0)});
  pad_with(c, x, pads, "constant", zero ? nullptr : c.operand_of(value, c.dtype(x)));
}

void pad_mode(C& c) {
  if (c.is_complex("self")) return c.refuse("complex numbers");
  pad_with(c, c.x("self"), c.syms("padding"), c.detail(), nullptr);
}

void pad_any(C& c) {
  const std::string mode = c.text("mode");
  SymInts pads = c.syms("pad");
  if (c.is_complex("self")) pads.insert(pads.begin(), {SymInt(0), SymInt(0)});
  Value* x = c.x("self");
  Value* fill = mode == "constant" && c.given("value") ? c.operand("value", c.dtype(x)) : nullptr;
  pad_with(c, x, pads, mode, fill);
}

void pad_circular(C& c) { pad_with(c, c.x("self"), c.syms("pad"), "circular", nullptr); }

// ---- pixels and channels ----

/// The first axes that are not [C, H, W].
SymInts lead_of(C& c, Value* x, int64_t tail) {
  SymInts lead;
  for (int64_t i = 0; i < c.rank(x) - tail; ++i) lead.push_back(c.size(x, i));
  return lead;
}

void pixel_shuffle(C& c) {
  Value* x = c.x("self");
  const int64_t r = c.rank(x), by = c.integer("upscale_factor");
  if (r == 4 && c.dtype(x) != DType::kBool)
    return c.out(c.op("DepthToSpace", {x}, {{"blocksize", by}, {"mode", "CRD"}}));
  SymInts shape = lead_of(c, x, 3), target = shape;
  const SymInt channels = c.floor_div(c.size(x, -3), SymInt(by * by)), h = c.size(x, -2),
               w = c.size(x, -1);
  for (const SymInt& one : {channels, SymInt(by), SymInt(by), h, w}) shape.push_back(one);
  for (const SymInt& one : {channels, c.mul(h, SymInt(by)), c.mul(w, SymInt(by))})
    target.push_back(one);
  const int64_t l = r - 3;
  Ints perm;
  for (int64_t i = 0; i < l; ++i) perm.push_back(i);
  for (const int64_t i : {0, 3, 1, 4, 2}) perm.push_back(l + i);
  c.out(c.reshape(c.transpose(c.reshape(x, shape), perm), target));
}

void pixel_unshuffle(C& c) {
  Value* x = c.x("self");
  const int64_t r = c.rank(x), by = c.integer("downscale_factor");
  SymInts shape = lead_of(c, x, 3), target = shape;
  const SymInt channels = c.size(x, -3), h = c.floor_div(c.size(x, -2), SymInt(by)),
               w = c.floor_div(c.size(x, -1), SymInt(by));
  for (const SymInt& one : {channels, h, SymInt(by), w, SymInt(by)}) shape.push_back(one);
  for (const SymInt& one : {c.mul(channels, SymInt(by * by)), h, w}) target.push_back(one);
  const int64_t l = r - 3;
  Ints perm;
  for (int64_t i = 0; i < l; ++i) perm.push_back(i);
  for (const int64_t i : {0, 2, 4, 1, 3}) perm.push_back(l + i);
  c.out(c.reshape(c.transpose(c.reshape(x, shape), perm), target));
}

void channel_shuffle(C& c) {
  Value* x = c.x("self");
  const SymInt groups = c.sym("groups");
  SymInts sizes = c.sizes(x), split = sizes;
  split[1] = groups;
  split.insert_axis(2, c.floor_div(sizes[1], groups));
  c.out(c.reshape(c.swap(c.reshape(x, split), 1, 2), sizes));
}

constexpr Row kShapeOpsRows[] = {
    {"cat(Tensor[] tensors, int dim=0) -> Tensor", cat},
    {"concat(Tensor[] tensors, int dim=0) -> Tensor", cat},
    {"concatenate(Tensor[] tensors, int dim=0) -> Tensor", cat},
    {"stack(Tensor[] tensors, int dim=0) -> Tensor", stack},
    {"_stack(Tensor[] tensors, int dim=0) -> Tensor", stack},
    {"hstack(Tensor[] tensors) -> Tensor", stack_along, "h"},
    {"vstack(Tensor[] tensors) -> Tensor", stack_along, "v"},
    {"row_stack(Tensor[] tensors) -> Tensor", stack_along, "v"},
    {"dstack(Tensor[] tensors) -> Tensor", stack_along, "d"},
    {"column_stack(Tensor[] tensors) -> Tensor", stack_along, "c"},
    {"atleast_1d(Tensor self) -> Tensor", at_least, "1", RowKind::kView},
    {"atleast_2d(Tensor self) -> Tensor", at_least, "2", RowKind::kView},
    {"atleast_3d(Tensor self) -> Tensor", at_least, "3", RowKind::kView},
    {"atleast_1d.Sequence(Tensor[] tensors) -> Tensor[]", at_least, "1"},
    {"atleast_2d.Sequence(Tensor[] tensors) -> Tensor[]", at_least, "2"},
    {"atleast_3d.Sequence(Tensor[] tensors) -> Tensor[]", at_least, "3"},
    {"broadcast_tensors(Tensor[] tensors) -> Tensor[]", broadcast_tensors},
    {"meshgrid(Tensor[] tensors) -> Tensor[]", meshgrid},
    {"meshgrid.indexing(Tensor[] tensors, *, str indexing) -> Tensor[]", meshgrid},
    {"repeat(Tensor self, SymInt[] repeats) -> Tensor", repeat},
    {"tile(Tensor self, SymInt[] dims) -> Tensor", repeat},
    {"repeat_interleave.self_int(Tensor self, SymInt repeats, int? dim=None, *, SymInt? "
     "output_size=None) -> Tensor",
     repeat_interleave},
    {"repeat_interleave.self_Tensor(Tensor self, Tensor repeats, int? dim=None, *, SymInt? "
     "output_size=None) -> Tensor",
     repeat_interleave},
    {"repeat_interleave.Tensor(Tensor repeats, *, SymInt? output_size=None) -> Tensor",
     repeat_interleave_counts},
    {"roll(Tensor self, SymInt[1] shifts, int[1] dims=[]) -> Tensor", roll},
    {"flip(Tensor self, int[] dims) -> Tensor", flip},
    {"fliplr(Tensor self) -> Tensor", flip, "lr"},
    {"flipud(Tensor self) -> Tensor", flip, "ud"},
    {"rot90(Tensor self, int k=1, int[] dims=[0,1]) -> Tensor", rot90},
    {"tril(Tensor self, SymInt diagonal=0) -> Tensor", triangle, "lower"},
    {"triu(Tensor self, SymInt diagonal=0) -> Tensor", triangle, "upper"},
    {"tril_indices(int row, int col, int offset=0, *, ScalarType? dtype=long, Layout? layout=None, "
     "Device? device=None, bool? pin_memory=None) -> Tensor",
     triangle_indices, "lower"},
    {"triu_indices(int row, int col, int offset=0, *, ScalarType? dtype=long, Layout? layout=None, "
     "Device? device=None, bool? pin_memory=None) -> Tensor",
     triangle_indices, "upper"},
    {"diag(Tensor self, int diagonal=0) -> Tensor", diag},
    {"diagflat(Tensor self, int offset=0) -> Tensor", diag},
    {"diag_embed(Tensor self, int offset=0, int dim1=-2, int dim2=-1) -> Tensor", diag_embed},
    {"block_diag(Tensor[] tensors) -> Tensor", block_diag},
    {"cartesian_prod(Tensor[] tensors) -> Tensor", cartesian},
    {"combinations(Tensor self, int r=2, bool with_replacement=False) -> Tensor", combinations},
    {"constant_pad_nd(Tensor self, SymInt[] pad, Scalar value=0) -> Tensor", constant_pad},
    {"pad(Tensor self, SymInt[] pad, str mode='constant', float? value=None) -> Tensor", pad_any},
    {"_pad_circular(Tensor self, SymInt[] pad) -> Tensor", pad_circular},
    {"reflection_pad1d(Tensor self, SymInt[2] padding) -> Tensor", pad_mode, "reflect"},
    {"reflection_pad2d(Tensor self, SymInt[4] padding) -> Tensor", pad_mode, "reflect"},
    {"reflection_pad3d(Tensor self, SymInt[6] padding) -> Tensor", pad_mode, "reflect"},
    {"replication_pad1d(Tensor self, SymInt[2] padding) -> Tensor", pad_mode, "edge"},
    {"replication_pad2d(Tensor self, SymInt[4] padding) -> Tensor", pad_mode, "edge"},
    {"replication_pad3d(Tensor self, SymInt[6] padding) -> Tensor", pad_mode, "edge"},
    {"pixel_shuffle(Tensor self, int upscale_factor) -> Tensor", pixel_shuffle},
    {"pixel_unshuffle(Tensor self, int downscale_factor) -> Tensor", pixel_unshuffle},
    {"channel_shuffle(Tensor self, SymInt groups) -> Tensor", channel_shuffle},
    {"native_channel_shuffle(Tensor self, SymInt groups) -> Tensor", channel_shuffle},
};

}  // namespace

std::span<const Row> shape_rows() { return kShapeOpsRows; }

}  // namespace tombolo::pytorch
