// Operators that only look at their input under another shape, or at a part of it that lies in one
// piece: no data move.

#include <algorithm>
#include <optional>

#include "runtime/kernels/kernel.h"

namespace tombolo {
namespace {

/// Small integers of a tensor input (axes, shape, starts).
bool read_ints(const Tensor& tensor, Dims& values) {
  if (tensor.rank() > 1 || tensor.size() > 64) return false;
  values.clear();
  for (int64_t i = 0; i < tensor.size(); ++i) {
    if (tensor.dtype() == DType::kInt64)
      values.push_back(tensor.data<int64_t>()[i]);
    else if (tensor.dtype() == DType::kInt32)
      values.push_back(tensor.data<int32_t>()[i]);
    else
      return false;
  }
  return true;
}

Status whole(KernelRun& run, std::span<const int64_t> dims) {
  return run.view(0, 0, 0, run.input(0).dtype(), dims);
}

// ---- Reshape

struct ReshapeState final : KernelState {
  bool allow_zero = false;
};

bool supports_reshape(const KernelQuery& query) {
  return query.opset >= 5 && query.dtype(1) == DType::kInt64 && query.inputs[1].rank() == 1;
}

Result<std::unique_ptr<KernelState>> prepare_reshape(const PrepareContext& context) {
  auto state = std::make_unique<ReshapeState>();
  state->allow_zero = context.attributes.get_int("allowzero", 0) != 0;
  return std::unique_ptr<KernelState>(std::move(state));
}

Status run_reshape(KernelRun& run) {
  const Tensor& x = run.input(0);
  const Tensor& shape = run.input(1);
  const bool allow_zero = run.state<ReshapeState>().allow_zero;
  if (shape.size() > 4096) return runtime_error("the shape has more than 4096 dims");
  const std::span<const int64_t> given = shape.span<int64_t>();
  Dims dims;
  std::optional<size_t> open;
  for (size_t j = 0; j < given.size(); ++j) {
    int64_t dim = given[j];
    if (dim == -1) {
      if (open) return runtime_error("shape " + dims_to_string(given) + " has two dims of -1");
      open = j;
      dim = 1;
    } else if (dim == 0 && !allow_zero) {
      if (j >= x.rank())
        return runtime_error("shape " + dims_to_string(given) + " copies dim " + std::to_string(j) +
                             " of " + to_string(x) + ", which it does not have");
      dim = x.dim(j);
    } else if (dim < 0) {
      return runtime_error("shape " + dims_to_string(given) + " has a negative dim");
    }
    dims.push_back(dim);
  }
  const int64_t known = element_count(dims);
  if (open && known > 0 && x.size() % known == 0) dims[*open] = x.size() / known;
  if ((open && known == 0) || element_count(dims) != x.size())
    return runtime_error(to_string(x) + " cannot take the shape " + dims_to_string(given));
  return whole(run, dims);
}

// ---- Squeeze, Unsqueeze, Flatten, Identity, Dropout

bool supports_axes_input(const KernelQuery& query) {
  return query.opset >= 13 && (!query.has_input(1) || query.dtype(1) == DType::kInt64);
}

Status run_squeeze(KernelRun& run) {
  const Tensor& x = run.input(0);
  Dims axes, dims;
  const auto rank = static_cast<int64_t>(x.rank());
  const bool given = run.has_input(1);
  if (given && !read_ints(run.input(1), axes)) return runtime_error("axes must be a list");
  for (int64_t* at = axes.begin(); at != axes.end(); ++at) {
    int64_t& axis = *at;
    if (axis < -rank || axis >= rank)
      return runtime_error("axis " + std::to_string(axis) + " is out of range for " + to_string(x));
    if (axis < 0) axis += rank;
    if (std::find(axes.begin(), at, axis) != at)
      return runtime_error("axis " + std::to_string(axis) + " is given twice");
    if (x.dim(static_cast<size_t>(axis)) != 1)
      return runtime_error("axis " + std::to_string(axis) + " of " + to_string(x) + " is not 1");
  }
  for (int64_t axis = 0; axis < rank; ++axis) {
    const int64_t dim = x.dim(static_cast<size_t>(axis));
    const bool drop = given ? std::find(axes.begin(), axes.end(), axis) != axes.end() : dim == 1;
    if (!drop) dims.push_back(dim);
  }
  return whole(run, dims);
}

Status run_unsqueeze(KernelRun& run) {
  const Tensor& x = run.input(0);
  if (!run.has_input(1)) return runtime_error("axes are missing");
  Dims axes;
  if (!read_ints(run.input(1), axes)) return runtime_error("axes must be a list");
  const auto rank = static_cast<int64_t>(x.rank() + axes.size());
  Dims dims;
  dims.resize(static_cast<uint32_t>(rank), -1);
  for (int64_t axis : axes) {
    const int64_t at = axis < 0 ? axis + rank : axis;
    if (at < 0 || at >= rank || dims[static_cast<size_t>(at)] == 1)
      return runtime_error("axis " + std::to_string(axis) + " is out of range or given twice");
    dims[static_cast<size_t>(at)] = 1;
  }
  size_t next = 0;
  for (int64_t& dim : dims)
    if (dim < 0) dim = x.dim(next++);
  return whole(run, dims);
}

struct AxisState final : KernelState {
  int64_t axis = 0;
};

bool supports_flatten(const KernelQuery& query) {
  const int64_t axis = query.attributes.get_int("axis", 1);
  const auto rank = static_cast<int64_t>(query.inputs[0].rank());
  return axis >= -rank && axis <= rank;
}

Result<std::unique_ptr<KernelState>> prepare_flatten(const PrepareContext& context) {
  auto state = std::make_unique<AxisState>();
  state->axis = context.attributes.get_int("axis", 1);
  if (state->axis < 0) state->axis += static_cast<int64_t>(context.inputs[0].rank());
  return std::unique_ptr<KernelState>(std::move(state));
}

Status run_flatten(KernelRun& run) {
  const Tensor& x = run.input(0);
  int64_t dims[2] = {1, 1};
  for (size_t i = 0; i < x.rank(); ++i)
    dims[static_cast<int64_t>(i) >= run.state<AxisState>().axis] *= x.dim(i);
  return whole(run, dims);
}

bool supports_identity(const KernelQuery& query) { return query.has_input(0); }

/// At inference, without the mask.
bool supports_dropout(const KernelQuery& query) {
  if (query.opset < 12 || query.wants_output(1)) return false;
  if (!query.has_input(2)) return true;
  const Tensor* training = query.constant(2);
  return training != nullptr && training->dtype() == DType::kBool && training->size() == 1 &&
         training->data<uint8_t>()[0] == 0;
}

Status run_identity(KernelRun& run) { return whole(run, run.input(0).dims()); }

/// Tile of every axis once: by counts that exporters compute, often of a batch of one.
bool supports_once(const KernelQuery& query) {
  Dims repeats;
  const Tensor* given = query.opset >= 6 && query.has_input(1) ? query.constant(1) : nullptr;
  return given != nullptr && given->rank() == 1 && read_ints(*given, repeats) &&
         repeats.size() == query.dims(0).size() &&
         std::all_of(repeats.begin(), repeats.end(), [](int64_t times) { return times == 1; });
}

// ---- Parts in one piece: Slice with constant bounds, Gather of one constant index

struct PartState final : KernelState {
  size_t offset = 0;
  Dims dims;
};

struct Part {
  size_t offset = 0;
  Dims dims;
};

/// The constant slice of `query`, when it lies in one piece.
bool find_slice(const KernelQuery& query, Part& part) {
  if (query.opset < 10 || bytes_of(query.dtype(0)) == 0) return false;
  Dims starts, ends, axes, steps;
  auto read = [&](size_t index, Dims& values) {
    if (!query.has_input(index)) return true;
    return query.constant(index) != nullptr && read_ints(*query.constant(index), values);
  };
  if (!read(1, starts) || !read(2, ends) || !read(3, axes) || !read(4, steps)) return false;
  const std::span<const int64_t> x = query.dims(0);
  const auto rank = static_cast<int64_t>(x.size());
  if (axes.empty())
    for (uint32_t i = 0; i < starts.size(); ++i) axes.push_back(i);
  if (ends.size() != starts.size() || axes.size() != starts.size()) return false;
  if (!steps.empty() && steps.size() != starts.size()) return false;
  part.dims.assign(x);
  Dims begin;
  begin.resize(static_cast<uint32_t>(rank), 0);
  for (size_t i = 0; i < starts.size(); ++i) {
    int64_t axis = axes[i];
    if (axis < -rank || axis >= rank) return false;
    if (axis < 0) axis += rank;
    if (!steps.empty() && steps[i] != 1) return false;
    const int64_t length = x[static_cast<size_t>(axis)];
    auto bound = [&](int64_t at) {
      return std::clamp<int64_t>(at < 0 ? (at < -length ? 0 : at + length) : at, 0, length);
    };
    begin[static_cast<size_t>(axis)] = bound(starts[i]);
    part.dims[static_cast<size_t>(axis)] = std::max<int64_t>(0, bound(ends[i]) - bound(starts[i]));
  }
  // In one piece: the axes before the first one that is cut are 1, and nothing is cut behind it.
  bool outer_is_one = true;
  size_t stride = bytes_of(query.dtype(0));
  for (int64_t length : x) stride *= static_cast<size_t>(length);
  if (stride == 0) return false;
  for (size_t axis = 0; axis < x.size(); ++axis) {
    stride /= static_cast<size_t>(x[axis]);
    if (part.dims[axis] != x[axis] && !outer_is_one) return false;
    part.offset += stride * static_cast<size_t>(begin[axis]);
    outer_is_one &= part.dims[axis] == 1;
  }
  return element_count(part.dims) > 0;
}

bool supports_slice(const KernelQuery& query) {
  Part part;
  return find_slice(query, part);
}

/// x[..1.., i, ...]: one index along the outermost axis that is not 1.
bool find_gather(const KernelQuery& query, Part& part) {
  const Tensor* index = query.constant(1);
  if (index == nullptr || index->size() != 1 || bytes_of(query.dtype(0)) == 0) return false;
  if (index->dtype() != DType::kInt64 && index->dtype() != DType::kInt32) return false;
  const std::span<const int64_t> x = query.dims(0);
  const auto rank = static_cast<int64_t>(x.size());
  int64_t axis = query.attributes.get_int("axis", 0);
  if (axis < -rank || axis >= rank) return false;
  if (axis < 0) axis += rank;
  int64_t at = index->get_int64(0);
  const int64_t length = x[static_cast<size_t>(axis)];
  if (at < -length || at >= length) return false;
  if (at < 0) at += length;
  size_t stride = bytes_of(query.dtype(0));
  for (int64_t i = 0; i < rank; ++i) {
    const int64_t dim = x[static_cast<size_t>(i)];
    if (i < axis && dim != 1) return false;
    if (i > axis) stride *= static_cast<size_t>(dim);
    if (i != axis) {
      part.dims.push_back(dim);
      continue;
    }
    for (size_t k = 0; k < index->rank(); ++k) part.dims.push_back(1);
  }
  part.offset = stride * static_cast<size_t>(at);
  return element_count(part.dims) > 0;
}

bool supports_gather(const KernelQuery& query) {
  Part part;
  return find_gather(query, part);
}

Result<std::unique_ptr<KernelState>> prepare_part(const PrepareContext& context) {
  Part part;
  if (context.node.op_type() == "Slice")
    find_slice(context, part);
  else
    find_gather(context, part);
  auto state = std::make_unique<PartState>();
  state->offset = part.offset;
  state->dims = part.dims;
  return std::unique_ptr<KernelState>(std::move(state));
}

Status run_part(KernelRun& run) {
  const auto& state = run.state<PartState>();
  return run.view(0, 0, state.offset, run.input(0).dtype(), state.dims);
}

}  // namespace

KERNEL(view_reshape) = {
    .name = "view",
    .op = "Reshape",
    .supports = supports_reshape,
    .prepare = prepare_reshape,
    .run = run_reshape,
    .view_only = true,
};
KERNEL(view_squeeze) = {
    .name = "view",
    .op = "Squeeze",
    .supports = supports_axes_input,
    .run = run_squeeze,
    .view_only = true,
};
KERNEL(view_unsqueeze) = {
    .name = "view",
    .op = "Unsqueeze",
    .supports = supports_axes_input,
    .run = run_unsqueeze,
    .view_only = true,
};
KERNEL(view_flatten) = {
    .name = "view",
    .op = "Flatten",
    .supports = supports_flatten,
    .prepare = prepare_flatten,
    .run = run_flatten,
    .view_only = true,
};
KERNEL(view_identity) = {
    .name = "view",
    .op = "Identity",
    .supports = supports_identity,
    .run = run_identity,
    .view_only = true,
};
KERNEL(view_dropout) = {
    .name = "view",
    .op = "Dropout",
    .supports = supports_dropout,
    .run = run_identity,
    .view_only = true,
};
KERNEL(view_tile) = {
    .name = "view",
    .op = "Tile",
    .supports = supports_once,
    .run = run_identity,
    .values = 1u << 1,
    .view_only = true,
};
KERNEL(view_slice) = {
    .name = "view",
    .op = "Slice",
    .supports = supports_slice,
    .prepare = prepare_part,
    .run = run_part,
    .priority = 100,
    .view_only = true,
};
KERNEL(view_gather) = {
    .name = "view",
    .op = "Gather",
    .supports = supports_gather,
    .prepare = prepare_part,
    .run = run_part,
    .priority = 100,
    .view_only = true,
};

}  // namespace tombolo
