// Views and in-place writes. A view remembers the call that made it: when its base has been
// written, the call is repeated; when the view is written, the base is rebuilt around it.

#include "formats/pytorch/aten/context.h"
#include "formats/pytorch/aten/listed.h"

namespace tombolo::pytorch {

namespace {

/// Whether a view may show an element of its base in several places.
bool repeats(std::string_view overload) {
  static constexpr std::string_view kRepeat[] = {"as_strided", "broadcast_tensors", "broadcast_to",
                                                 "expand",     "expand_as",         "unfold"};
  return listed(kRepeat, overload.substr(0, overload.find('.')));
}

}  // namespace

Ref AtenContext::root(Ref cell) {
  while (cell->view) cell = cell->view->base;
  return cell;
}

bool AtenContext::is_alone(const Cell& tensor, const ViewCall* except) const {
  if (tensor.view || tensor.origin || tensor.pinned || tensor.quantization) return false;
  for (const auto& one : tensor.views)
    if (const auto view = one.lock(); view && view.get() != except) return false;
  for (const uint64_t memory : tensor.memories)
    for (const Ref& holder : holders_[memory])
      if (holder.get() != &tensor) return false;
  return true;
}

void AtenContext::mark_views(Frame& frame) {
  const bool shows = frame.op->row->kind != RowKind::kValue && !frame.args.empty() &&
                     frame.args.front().is_tensor();
  const Arg self = shows ? frame.args.front() : Arg();
  const uint64_t version = shows ? root(self.tensor)->version : 0;
  const auto is_argument = [&](const Ref& cell) {
    for (const Arg& arg : frame.args) {
      if (arg.is_tensor() && arg.tensor == cell) return true;
      for (const Arg& part : arg.list)
        if (part.is_tensor() && part.tensor == cell) return true;
    }
    return false;
  };
  const auto mark = [&](Arg& result, size_t index) {
    if (!result.is_tensor() || result.tensor->view || is_argument(result.tensor)) return;
    if (!shows) return lay_out_new(frame, *result.tensor);
    switch (sharing(frame, *self.tensor, *result.tensor)) {
      case Sharing::kCopy:
        return;  // in order
      case Sharing::kUnknown:
        may_share(self.tensor, result.tensor);
        if (frame.op->schema.name == "contiguous") result.tensor->layout = CellLayout::kUnknown;
        return;
      case Sharing::kView:
        break;
    }
    auto view = std::make_shared<ViewCall>();
    view->base = self.tensor;
    view->overload = frame.op->schema.name;
    view->args = frame.args;
    view->args.front() = Arg();
    view->result = index;
    std::vector<std::weak_ptr<ViewCall>>& known = self.tensor->views;
    std::erase_if(known, [](const auto& one) { return one.expired(); });
    known.push_back(view);
    result.tensor->view = std::move(view);
    result.tensor->seen = version;
    auto strides = view_strides(frame, *self.tensor, *result.tensor);
    const auto sizes = torch_sizes(*result.tensor);
    result.tensor->layout = CellLayout::kUnknown;
    if (strides && sizes && strides->size() == sizes->size())
      set_strides(*result.tensor, *sizes, *std::move(strides));
  };
  for (size_t i = 0; i < frame.results.size(); ++i) {
    Arg& result = frame.results[i];
    if (result.kind == Arg::Kind::kList)
      for (size_t k = 0; k < result.list.size(); ++k) mark(result.list[k], k);
    else
      mark(result, i);
  }
}

Value* AtenContext::replay(const ViewCall& view, Value* base) {
  Args args = view.args;
  args.front() = Arg(cell(base, view.base->dtype));
  const Args results = lower_all(view.overload, std::move(args));
  const Arg* result = results.empty() ? nullptr : &results.front();
  if (result && result->kind == Arg::Kind::kList)
    result = view.result < result->list.size() ? &result->list[view.result] : nullptr;
  else if (view.result < results.size())
    result = &results[view.result];
  return result && result->is_tensor() ? result->tensor->value : placeholder();
}

Value* AtenContext::read(const Ref& cell) {
  if (!cell) {
    refuse("a tensor is missing");  // mostly one that could not be made: the first reason stays
    return placeholder();
  }
  const Ref base = root(cell);
  check_stale(*base);
  if (!cell->view) return cell->value;
  const uint64_t version = base->version;
  if (cell->seen != version) {
    if (journal) journal->emplace_back(cell, *cell);
    cell->value = replay(*cell->view, read(cell->view->base));
    cell->seen = version;
  }
  return cell->value;
}

void AtenContext::write(const Ref& cell, Value* value) {
  if (journal) journal->emplace_back(cell, *cell);
  if (!cell->view) {
    note_write(cell);
    cell->value = value;
    ++cell->version;
    return;
  }
  const ViewCall& view = *cell->view;
  Value* shown = read(cell);
  write(view.base, written_back(view, read(view.base), shown, value));
  for (const Cell* one = cell.get(); one->view; one = one->view->base.get())
    if (repeats(one->view->overload)) return;  // looked at anew: other places changed too
  cell->value = value;
  cell->seen = root(cell)->version;
}

/// The base with `value` in the place of what the view shows.
Value* AtenContext::written_back(const ViewCall& view, Value* base, Value* shown, Value* value) {
  const std::string_view full = view.overload, name = full.substr(0, full.find('.'));
  const auto argument = [&](size_t i) { return i < view.args.size() ? view.args[i] : Arg(); };
  const auto number = [&](size_t i) { return argument(i).integer.dim.constant().value_or(0); };
  const bool complex = tombolo::is_complex(view.base->dtype);
  if (!complex) {
    if (name == "select") {
      return lower("select_scatter", {cell(base), cell(value), argument(1), argument(2)});
    }
    if (name == "slice") {
      return lower("slice_scatter",
                   {cell(base), cell(value), argument(1), argument(2), argument(3), argument(4)});
    }
    if (name == "transpose" || name == "swapaxes" || name == "swapdims")
      return swap(value, number(1), number(2));
    if (name == "t" || name == "numpy_T" || name == "mT") {
      return b.rank(value) < 2 ? value : swap(value, -1, -2);
    }
    if (name == "permute") {
      const Arg dims = argument(1);
      Ints inverse(dims.list.size());
      for (size_t i = 0; i < dims.list.size(); ++i) {
        const int64_t from = axis(dims.list[i].integer.dim.constant().value_or(0),
                                  static_cast<int64_t>(dims.list.size()));
        inverse[static_cast<size_t>(from)] = static_cast<int64_t>(i);
      }
      return transpose(value, inverse);
    }
    if (name == "view" || name == "reshape" || name == "flatten" || name == "unflatten" ||
        name == "squeeze" || name == "unsqueeze" || name == "alias" || name == "detach" ||
        name == "view_as" || name == "reshape_as" || name == "_unsafe_view" ||
        name == "contiguous" || name == "lift_fresh" || name == "to" || name == "_to_copy") {
      if (b.dtype(base) == b.dtype(value)) return reshape(value, sizes(base));
    }
  }
  // Any other view: find out which elements it shows by looking at it through their numbers.
  Value* flat = reshape(base, {SymInt(-1)});
  Value* numbers = reshape(range(size(flat, 0)), sizes(base));
  if (complex || b.dtype(base) != b.dtype(value)) {
    // view_as_real and friends change the type; the pairs' own axis is part of the numbering.
    if (name == "view_as_real" || name == "view_as_complex") return value;
    refuse("a write through " + std::string(full) + " of a complex tensor");
    return base;
  }
  Value* indices = reshape(replay(view, numbers), {SymInt(-1)});
  value = expand(value, sizes(shown));
  Value* updates = reshape(value, {SymInt(-1)});
  if (!repeats(full)) return reshape(op("ScatterElements", {flat, indices, updates}), sizes(base));
  // An element may be shown in several places: the one that was written counts, the others go
  // behind the end.
  Value* same = op("Equal", {shown, value});
  if (is_float(b.dtype(value)))
    same = op("Or", {same, op("And", {op("IsNaN", {shown}), op("IsNaN", {value})})});
  const SymInt count = size(flat, 0);
  indices = where(reshape(same, {SymInt(-1)}), int_value(count), indices);
  flat = concat({flat, AtenContext::full({SymInt(1)}, 0, b.dtype(flat))}, 0);
  Value* written = op("ScatterElements", {flat, indices, updates});
  return reshape(slice(written, 0, SymInt(0), count), sizes(base));
}

}  // namespace tombolo::pytorch
