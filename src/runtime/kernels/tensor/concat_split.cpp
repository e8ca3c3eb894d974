// Concat and Split. Along the outermost axis that is not 1 neither moves anything: the inputs of
// Concat are made where they belong (KernelState::joins_inputs), the outputs of Split are views.

#include <algorithm>
#include <cstring>
#include <vector>

#include "runtime/kernels/kernel.h"
#include "runtime/kernels/tensor/transpose_tile.h"

namespace tombolo {
namespace {

constexpr int64_t kGrainBytes = 1 << 18;

struct JoinState final : KernelState {
  int64_t outer = 1;
  size_t row_bytes = 0;  ///< of the joined tensor
  std::vector<size_t> part_bytes;
  Dims dims;  ///< of the joined tensor
  int64_t axis = 0;
};

/// Sizes of the axis and what is around it; false when the axis is out of range.
bool around_axis(std::span<const int64_t> dims, int64_t& axis, int64_t& outer, int64_t& inner) {
  const auto rank = static_cast<int64_t>(dims.size());
  if (axis < -rank || axis >= rank) return false;
  if (axis < 0) axis += rank;
  outer = element_count(dims.first(static_cast<size_t>(axis)));
  inner = element_count(dims.subspan(static_cast<size_t>(axis) + 1));
  return true;
}

bool supports_concat(const KernelQuery& query) {
  if (!query.has_input(0) || bytes_of(query.dtype(0)) == 0) return false;
  int64_t axis = query.attributes.get_int("axis", 1), outer, inner;
  if (!around_axis(query.dims(0), axis, outer, inner)) return false;
  for (const InputInfo& input : query.inputs) {
    if (!input.present || input.dtype != query.dtype(0) || input.rank() != query.dims(0).size())
      return false;
    for (size_t i = 0; i < input.rank(); ++i)
      if (static_cast<int64_t>(i) != axis && input.dims[i] != query.dims(0)[i]) return false;
  }
  return true;
}

Result<std::unique_ptr<KernelState>> prepare_concat(const PrepareContext& context) {
  auto state = std::make_unique<JoinState>();
  state->axis = context.attributes.get_int("axis", 1);
  int64_t inner = 1, total = 0;
  around_axis(context.dims(0), state->axis, state->outer, inner);
  const auto axis = static_cast<size_t>(state->axis);
  for (const InputInfo& input : context.inputs) {
    total += input.dims[axis];
    state->part_bytes.push_back(static_cast<size_t>(input.dims[axis] * inner) *
                                bytes_of(input.dtype));
    state->row_bytes += state->part_bytes.back();
  }
  state->dims.assign(context.dims(0));
  state->dims[axis] = total;
  state->joins_inputs = state->outer == 1;
  return std::unique_ptr<KernelState>(std::move(state));
}

/// Many columns of one element become rows: blocks of them are laid one after the other, then
/// turned.
template <size_t kBytes>
void join_columns(const KernelRun& run, int64_t outer, std::byte* to) {
  constexpr int64_t kRows = 64;
  const auto columns = static_cast<int64_t>(run.input_count());
  run.parallel_for(
      (outer + kRows - 1) / kRows, std::max<int64_t>(1, 256 / columns),
      [&](int64_t begin, int64_t end) {
        std::vector<std::byte> block(static_cast<size_t>(columns * kRows) * kBytes);
        for (int64_t row = begin * kRows; row < std::min(outer, end * kRows); row += kRows) {
          const int64_t rows = std::min(kRows, outer - row);
          for (int64_t i = 0; i < columns; ++i)
            std::memcpy(block.data() + static_cast<size_t>(i * kRows) * kBytes,
                        run.input(static_cast<size_t>(i)).data<std::byte>() +
                            static_cast<size_t>(row) * kBytes,
                        static_cast<size_t>(rows) * kBytes);
          transpose_tile(block.data(), kRows, to + static_cast<size_t>(row * columns) * kBytes,
                         columns, columns, rows, static_cast<int64_t>(kBytes));
        }
      });
}

Status run_concat(KernelRun& run) {
  const auto& state = run.state<JoinState>();
  TRY(Tensor * y, run.output(0, run.input(0).dtype(), state.dims));
  std::byte* to = y->data<std::byte>();
  if (state.outer == 1) {
    // All parts that are not made in place in one go: each by itself would not come out even among
    // threads.
    struct Part {
      const std::byte* from;
      std::byte* to;
      int64_t bytes;
    };
    std::vector<Part> parts;
    int64_t total = 0;
    for (size_t i = 0; i < run.input_count(); to += state.part_bytes[i], ++i) {
      const std::byte* from = run.input(i).data<std::byte>();
      if (from == to || state.part_bytes[i] == 0) continue;
      parts.push_back({from, to, static_cast<int64_t>(state.part_bytes[i])});
      total += parts.back().bytes;
    }
    if (parts.empty()) return ok();
    run.parallel_for(total, kGrainBytes, [&](int64_t begin, int64_t end) {
      int64_t at = 0;
      for (const Part& part : parts) {
        const int64_t first = std::max(begin - at, int64_t{0});
        const int64_t last = std::min(end - at, part.bytes);
        if (first < last)
          std::memcpy(part.to + first, part.from + first, static_cast<size_t>(last - first));
        at += part.bytes;
      }
    });
    return ok();
  }
  if (state.row_bytes == 0) return ok();
  const auto all_have = [&](size_t bytes) {
    return run.input_count() >= 8 && state.outer >= 16 &&
           std::all_of(state.part_bytes.begin(), state.part_bytes.end(),
                       [&](size_t part) { return part == bytes; });
  };
  if (all_have(4)) return join_columns<4>(run, state.outer, to), ok();
  if (all_have(8)) return join_columns<8>(run, state.outer, to), ok();
  const int64_t grain = std::max<int64_t>(1, kGrainBytes / static_cast<int64_t>(state.row_bytes));
  run.parallel_for(state.outer, grain, [&](int64_t begin, int64_t end) {
    std::byte* at = to + static_cast<size_t>(begin) * state.row_bytes;
    for (size_t i = 0; i < run.input_count(); ++i) {
      const size_t bytes = state.part_bytes[i];
      copy_strided(run.input(i).data<std::byte>() + static_cast<size_t>(begin) * bytes, bytes, at,
                   state.row_bytes, bytes, end - begin);
      at += bytes;
    }
  });
  return ok();
}

// ---- Split

struct SplitState final : KernelState {
  int64_t outer = 1, inner = 1, axis = 0;
  Dims sizes;  ///< of the parts along the axis
};

bool split_sizes(const KernelQuery& query, int64_t length, Dims& sizes) {
  const auto count = static_cast<int64_t>(query.node.outputs().size());
  if (query.has_input(1)) {
    const Tensor* given = query.constant(1);
    if (given == nullptr || given->dtype() != DType::kInt64 || given->size() != count) return false;
    int64_t total = 0;
    for (int64_t i = 0; i < count; ++i) {
      sizes.push_back(given->data<int64_t>()[i]);
      if (sizes.back() < 0 || sizes.back() > length) return false;
      total += sizes.back();
    }
    return total == length;
  }
  // Parts of equal size, the last one smaller where it does not work out.
  const int64_t wanted = query.attributes.get_int("num_outputs", count);
  if (wanted != count || count == 0) return false;
  const int64_t part = (length + count - 1) / count;
  for (int64_t i = 0; i < count; ++i) {
    sizes.push_back(i + 1 < count ? part : length - part * (count - 1));
    if (sizes.back() < 0) return false;
  }
  return true;
}

bool supports_split(const KernelQuery& query) {
  int64_t axis = query.attributes.get_int("axis", 0), outer, inner;
  Dims sizes;
  return query.opset >= 13 && bytes_of(query.dtype(0)) != 0 &&
         around_axis(query.dims(0), axis, outer, inner) &&
         split_sizes(query, query.dims(0)[static_cast<size_t>(axis)], sizes);
}

Result<std::unique_ptr<KernelState>> prepare_split(const PrepareContext& context) {
  auto state = std::make_unique<SplitState>();
  state->axis = context.attributes.get_int("axis", 0);
  around_axis(context.dims(0), state->axis, state->outer, state->inner);
  split_sizes(context, context.dims(0)[static_cast<size_t>(state->axis)], state->sizes);
  return std::unique_ptr<KernelState>(std::move(state));
}

Status run_split(KernelRun& run) {
  const auto& state = run.state<SplitState>();
  const Tensor& x = run.input(0);
  const size_t unit = bytes_of(x.dtype()) * static_cast<size_t>(state.inner);
  const size_t row = unit * static_cast<size_t>(x.dim(static_cast<size_t>(state.axis)));
  Dims dims;
  for (int64_t dim : x.dims()) dims.push_back(dim);
  size_t offset = 0;
  for (size_t i = 0; i < run.output_count(); ++i) {
    const size_t bytes = unit * static_cast<size_t>(state.sizes[i]);
    dims[static_cast<size_t>(state.axis)] = state.sizes[i];
    if (!run.wants_output(i)) {
      offset += bytes;
      continue;
    }
    if (state.outer == 1) {
      CHECK_OK(run.view(i, 0, offset, x.dtype(), dims));
    } else {
      TRY(Tensor * y, run.output(i, x.dtype(), dims));
      const std::byte* from = x.data<std::byte>() + offset;
      std::byte* to = y->data<std::byte>();
      if (bytes != 0)
        run.parallel_for(
            state.outer, std::max<int64_t>(1, kGrainBytes / static_cast<int64_t>(bytes)),
            [=](int64_t begin, int64_t end) {
              const auto first = static_cast<size_t>(begin);
              copy_strided(from + first * row, row, to + first * bytes, bytes, bytes, end - begin);
            });
    }
    offset += bytes;
  }
  return ok();
}

}  // namespace

KERNEL(concat_copy) = {
    .name = "concat",
    .op = "Concat",
    .supports = supports_concat,
    .prepare = prepare_concat,
    .run = run_concat,
};
KERNEL(split_copy) = {
    .name = "split",
    .op = "Split",
    .supports = supports_split,
    .prepare = prepare_split,
    .run = run_split,
    .values = 1 << 1,
};

}  // namespace tombolo
