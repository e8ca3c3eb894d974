// How tensors lie in memory, as far as it can be known without running: whether reshape and
// contiguous give a view or a copy depends on it, and with that what a later write changes. Where
// it stays open, the two may share memory: reading one after the other was written is refused.

#include <algorithm>

#include "formats/pytorch/aten/context.h"
#include "formats/pytorch/aten/listed.h"

namespace tombolo::pytorch {

namespace {

SymDim at_end(const SymShape& list, size_t from_end) { return list[list.size() - 1 - from_end]; }

bool all_numbers(const SymShape& list) {
  for (const SymDim& one : list)
    if (!one.is_value()) return false;
  return true;
}

/// True where memory that is laid out by `sizes` and `strides` is in order and without gaps.
/// Symbols stand for sizes above 1: a "yes" holds for 1 too, a "no" may not.
bool in_order(const SymShape& sizes, const SymShape& strides) {
  SymDim expected(1);
  for (size_t i = sizes.size(); i-- > 0;) {
    if (sizes[i].is_value() && sizes[i].value() == 0) return true;
    if (!(sizes[i].is_value() && sizes[i].value() == 1) && !strides[i].equals(expected))
      return false;
    expected = expected * sizes[i];
  }
  return true;
}

/// The strides of a view with other sizes; nothing where there is no such view. As PyTorch does it:
/// axes that lie in memory without gaps are split and merged.
std::optional<SymShape> viewed(const SymShape& sizes, const SymShape& strides,
                               const SymShape& wanted) {
  SymShape result(wanted.size(), SymDim(1));
  if (sizes.empty()) return result;
  size_t left = wanted.size();
  SymDim base = strides.back(), count(1), made(1);
  for (size_t i = sizes.size(); i-- > 0;) {
    count = count * sizes[i];
    const bool one_before = i > 0 && sizes[i - 1].is_value() && sizes[i - 1].value() == 1;
    if (i > 0 && (one_before || strides[i - 1].equals(count * base))) continue;
    while (left > 0 && (!made.equals(count) ||
                        (wanted[left - 1].is_value() && wanted[left - 1].value() == 1))) {
      --left;
      result[left] = made * base;
      made = made * wanted[left];
    }
    if (!made.equals(count)) return std::nullopt;
    if (i > 0) {
      base = strides[i - 1];
      count = SymDim(1);
      made = SymDim(1);
    }
  }
  if (left != 0) return std::nullopt;
  return result;
}

}  // namespace

std::optional<SymShape> AtenContext::torch_sizes(const Cell& cell) const {
  if (!b.has_shape(cell.value)) return std::nullopt;
  SymShape sizes = b.shape(cell.value);
  if (tombolo::is_complex(cell.dtype) && !sizes.empty()) sizes.pop_back();
  for (const SymDim& size : sizes)
    if (size.is_unknown()) return std::nullopt;
  return sizes;
}

std::optional<SymShape> AtenContext::strides(const Cell& cell) const {
  if (cell.layout == CellLayout::kStrided) return cell.strides;
  const auto sizes = torch_sizes(cell);
  if (cell.layout != CellLayout::kContiguous || !sizes) return std::nullopt;
  SymShape result(sizes->size(), SymDim(1));
  for (size_t i = result.size(); i-- > 1;) result[i - 1] = result[i] * (*sizes)[i];
  return result;
}

void AtenContext::set_strides(Cell& cell, const SymShape& sizes, SymShape strides) {
  if (in_order(sizes, strides)) {
    cell.layout = CellLayout::kContiguous;
    cell.strides.clear();
    return;
  }
  for (const SymDim& one : strides)
    if (one.is_unknown()) {
      cell.layout = CellLayout::kUnknown;
      return;
    }
  cell.layout = CellLayout::kStrided;
  cell.strides = std::move(strides);
}

/// The strides of what a view operator shows of a tensor; nothing where they are not known.
std::optional<SymShape> AtenContext::view_strides(const Frame& frame, const Cell& base,
                                                  const Cell& shown) const {
  const auto old = strides(base), sizes = torch_sizes(base), wanted = torch_sizes(shown);
  if (!old || !sizes || !wanted || old->size() != sizes->size()) return std::nullopt;
  const std::string_view full = frame.op->schema.name, name = full.substr(0, full.find('.'));
  const auto rank = static_cast<int64_t>(sizes->size());
  const auto argument = [&](size_t index) -> const Arg& {
    static const Arg kNothing;
    return index < frame.args.size() ? frame.args[index] : kNothing;
  };
  const auto axis = [&](size_t index, int64_t room) -> std::optional<size_t> {
    const auto value = argument(index).integer.dim.constant();
    if (!value) return std::nullopt;
    const int64_t at = *value < 0 ? *value + room : *value;
    return at >= 0 && at < room ? std::optional(static_cast<size_t>(at)) : std::nullopt;
  };
  SymShape result = *old;
  const auto erase = [&](size_t at) { result.erase(result.begin() + static_cast<int64_t>(at)); };
  if (name == "alias" || name == "detach" || name == "lift_fresh" || name == "conj") return result;
  if (name == "transpose" || name == "swapaxes" || name == "swapdims") {
    const auto first = axis(1, rank), second = axis(2, rank);
    if (!first || !second) return rank == 0 ? std::optional(result) : std::nullopt;
    std::swap(result[*first], result[*second]);
    return result;
  }
  if (name == "t" || name == "mT" || name == "numpy_T") {
    if (rank < 2) return result;
    if (name == "numpy_T") return SymShape(result.rbegin(), result.rend());
    std::swap(result[result.size() - 1], result[result.size() - 2]);
    return result;
  }
  if (name == "permute") {
    const Args& order = argument(1).list;
    if (order.size() != result.size()) return std::nullopt;
    for (size_t i = 0; i < order.size(); ++i) {
      const auto value = order[i].integer.dim.constant();
      if (!value || *value < -rank || *value >= rank) return std::nullopt;
      result[i] = (*old)[static_cast<size_t>(*value < 0 ? *value + rank : *value)];
    }
    return result;
  }
  if (name == "select" || name == "unbind") {
    const auto at = axis(1, rank);
    if (!at) return std::nullopt;
    erase(*at);
    return result;
  }
  if (name == "slice") {
    const auto at = axis(1, rank);
    const Arg& step = argument(4);
    const auto by = step.is_none() ? std::optional<int64_t>(1) : step.integer.dim.constant();
    if (!at || !by) return std::nullopt;
    result[*at] = result[*at] * SymDim(*by);
    return result;
  }
  if (name == "narrow" || name == "split" || name == "split_with_sizes" || name == "chunk" ||
      name == "tensor_split" || name == "hsplit" || name == "vsplit" || name == "dsplit")
    return result;
  if (name == "unsqueeze") {
    const auto at = axis(1, rank + 1);
    if (!at) return std::nullopt;
    result.insert(result.begin() + static_cast<int64_t>(*at),
                  *at < sizes->size() ? (*sizes)[*at] * (*old)[*at] : SymDim(1));
    return result;
  }
  if (name == "squeeze") {
    if (wanted->size() == sizes->size()) return result;
    for (size_t i = sizes->size(); i-- > 0;)
      if ((*sizes)[i].is_value() && (*sizes)[i].value() == 1) {
        const bool meant = full == "squeeze" || (full == "squeeze.dim" && axis(1, rank) == i);
        if (meant) erase(i);
      }
    return result.size() == wanted->size() ? std::optional(result) : std::nullopt;
  }
  if (name == "expand" || name == "broadcast_to" || name == "expand_as") {
    SymShape wide(wanted->size(), SymDim(0));
    for (size_t i = 0; i < result.size() && i < wide.size(); ++i)
      if ((at_end(*sizes, i)).equals(at_end(*wanted, i)))
        wide[wide.size() - 1 - i] = at_end(result, i);
    return wide;
  }
  if (name == "unfold") {
    const auto at = axis(1, rank);
    const auto step = argument(3).integer.dim.constant();
    if (!at || !step) return std::nullopt;
    result.push_back(result[*at]);
    result[*at] = result[*at] * SymDim(*step);
    return result;
  }
  if (name == "diagonal") {
    const auto first = axis(2, rank), second = axis(3, rank);
    if (!first || !second || *first == *second) return std::nullopt;
    const SymDim both = result[*first] + result[*second];
    erase(std::max(*first, *second));
    erase(std::min(*first, *second));
    result.push_back(both);
    return result;
  }
  if (name == "view" || name == "view_as" || name == "reshape" || name == "reshape_as" ||
      name == "flatten" || name == "ravel" || name == "unflatten" || name == "contiguous")
    return viewed(*sizes, *old, *wanted);
  return std::nullopt;
}

AtenContext::Sharing AtenContext::sharing(const Frame& frame, const Cell& base,
                                          const Cell& result) const {
  if (frame.op->row->kind == RowKind::kView) return Sharing::kView;
  const std::string_view name = frame.op->schema.name;
  const bool order = name == "contiguous" &&
                     (frame.args.size() < 2 || frame.args[1].is_none() ||
                      frame.args[1].integer.is(0) || frame.args[1].kind == Arg::Kind::kOther);
  if (name == "contiguous" && !order) return Sharing::kUnknown;
  if (base.layout == CellLayout::kContiguous) return Sharing::kView;
  if (base.layout == CellLayout::kUnknown) return Sharing::kUnknown;
  const auto old = strides(base), sizes = torch_sizes(base), wanted = torch_sizes(result);
  if (!old || !sizes || !wanted) return Sharing::kUnknown;
  // Strided and yet a view: where axes that stay together are split or merged.
  if (name != "contiguous" && viewed(*sizes, *old, *wanted)) return Sharing::kView;
  return all_numbers(*sizes) && all_numbers(*wanted) ? Sharing::kCopy : Sharing::kUnknown;
}

/// The layout of a new tensor: in order where all arguments are, but for operators that give their
/// results in an order of their own. Some give them in order whatever their arguments are (tried
/// with every order of four axes).
void AtenContext::lay_out_new(const Frame& frame, Cell& result) const {
  static constexpr std::string_view kOwnOrder[] = {
      "nonzero",   "argwhere", "lstm",         "gru",   "rnn_tanh",        "rnn_relu", "einsum",
      "tensordot", "index",    "stft",         "istft", "unique_dim",      "qr",       "svd",
      "cholesky",  "inverse",  "grid_sampler", "cdist", "channel_shuffle", "bilinear", "pinverse",
      "matrix_exp"};
  static constexpr std::string_view kInOrder[] = {"addmm",
                                                  "addmv",
                                                  "all",
                                                  "amax",
                                                  "amin",
                                                  "any",
                                                  "argmax",
                                                  "argmin",
                                                  "baddbmm",
                                                  "bmm",
                                                  "bucketize",
                                                  "count_nonzero",
                                                  "cummax",
                                                  "cummin",
                                                  "cumprod",
                                                  "cumsum",
                                                  "embedding",
                                                  "gather",
                                                  "im2col",
                                                  "index_add",
                                                  "index_copy",
                                                  "index_select",
                                                  "kthvalue",
                                                  "layer_norm",
                                                  "linalg_vector_norm",
                                                  "linear",
                                                  "log_softmax",
                                                  "logcumsumexp",
                                                  "logsumexp",
                                                  "masked_select",
                                                  "mean",
                                                  "median",
                                                  "mm",
                                                  "mode",
                                                  "mv",
                                                  "nansum",
                                                  "norm",
                                                  "one_hot",
                                                  "outer",
                                                  "pixel_shuffle",
                                                  "prod",
                                                  "repeat",
                                                  "repeat_interleave",
                                                  "scatter",
                                                  "searchsorted",
                                                  "softmax",
                                                  "std",
                                                  "sum",
                                                  "take",
                                                  "tile",
                                                  "topk",
                                                  "tril",
                                                  "triu",
                                                  "var"};
  const std::string_view full = frame.op->schema.name, name = full.substr(0, full.find('.'));
  const bool reduces = full == "max.dim" || full == "min.dim";
  if (reduces || listed(kInOrder, name)) {
    result.layout = CellLayout::kContiguous;
    return;
  }
  bool known = !listed(kOwnOrder, name) && !name.starts_with("linalg_") &&
               !name.starts_with("fft_") && !name.starts_with("scaled_dot") &&
               !name.starts_with("_scaled_dot");
  const auto look = [&](const Arg& arg) {
    if (arg.is_tensor()) known = known && arg.tensor->layout == CellLayout::kContiguous;
  };
  for (const Arg& arg : frame.args) {
    look(arg);
    for (const Arg& part : arg.list) look(part);
  }
  result.layout = known ? CellLayout::kContiguous : CellLayout::kUnknown;
}

// ---- memories ----

const std::vector<uint64_t>& AtenContext::memories_of(const Ref& root) {
  if (root->memories.empty()) {
    root->memories.push_back(holders_.size());
    holders_.push_back({root});
  }
  return root->memories;
}

void AtenContext::may_share(const Ref& base, const Ref& copy) {
  const Ref from = root(base), to = root(copy);
  if (from == to) return;
  (void)memories_of(to);
  for (const uint64_t memory : memories_of(from)) {
    if (std::find(to->memories.begin(), to->memories.end(), memory) != to->memories.end()) continue;
    to->memories.push_back(memory);
    holders_[memory].push_back(to);
  }
}

void AtenContext::check_stale(const Cell& root) {
  if (!root.stale) return;
  refuse(
      "whether a tensor shares the memory of another one, which was written, depends on data or on "
      "sizes or strides that are not known",
      "use clone() where a copy is meant");
}

void AtenContext::mark_stale(const Ref& root) {
  if (root->stale) return;
  if (journal) journal->emplace_back(root, *root);
  root->stale = true;
}

void AtenContext::note_write(const Ref& root) {
  bool pinned = root->pinned;
  for (const uint64_t memory : root->memories)
    for (const Ref& holder : holders_[memory]) pinned = pinned || holder->pinned;
  if (pinned)
    return refuse(
        "a tensor is written in place that a list holds whose length or index depends on "
        "data",
        "put a clone() into the list");
  check_stale(*root);
  for (const uint64_t memory : root->memories)
    for (const Ref& holder : holders_[memory])
      if (holder != root) mark_stale(holder);
}

}  // namespace tombolo::pytorch
