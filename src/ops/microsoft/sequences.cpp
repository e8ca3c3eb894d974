// Operators on token sequences and alignments.

#include <algorithm>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "ops/infer_helpers.h"
#include "ops/kernels/compute.h"
#include "ops/kernels/movement.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {

/// Scores of tokens that would repeat an n-gram of the sequence become -infinity.
Status run_ngram_repeat_block(KernelContext& context) {
  TRY(const Tensor* ids, context.input(0));
  TRY(const Tensor* scores, context.input(1));
  const int64_t n = context.attributes.get_int("ngram_size", 0);
  if (n < 1 || n > int64_t{1} << 40) return context.error("ngram_size is " + std::to_string(n));
  if (ids->rank() != 2 || scores->rank() != 2 || ids->dim(0) != scores->dim(0))
    return context.error("input_ids and scores must be matrices of one height, are " +
                         to_string(*ids) + " and " + to_string(*scores));
  TRY(Tensor y, scores->clone());
  const int64_t length = ids->dim(1), words = scores->dim(1);
  for (int64_t b = 0; b < ids->dim(0); ++b) {
    const auto token = [&](int64_t at) { return ids->get_int64(b * length + at); };
    for (int64_t i = 0; i + n <= length; ++i) {
      bool repeats = true;
      for (int64_t k = 0; repeats && k + 1 < n; ++k)
        repeats = token(i + k) == token(length - (n - 1) + k);
      if (!repeats) continue;
      const int64_t next = token(i + n - 1);
      if (next < 0 || next >= words)
        return context.error("input_ids has the value " + std::to_string(next) + ", there are " +
                             std::to_string(words) + " scores");
      y.set_double(b * words + next, -std::numeric_limits<double>::infinity());
    }
  }
  context.set_output(0, std::move(y));
  return ok();
}
Status infer_ngram_repeat_block(InferContext& context) {
  context.same_as_input(0, 1);
  return ok();
}

/// The cheapest path through a matrix of costs: rows of its steps.
Status run_dynamic_time_warping(KernelContext& context) {
  TRY(const Tensor* input, context.input(0));
  const bool batched = input->rank() == 3 && input->dim(0) == 1;
  if (input->rank() != 2 && !batched)
    return context.error("input must be a matrix, is " + to_string(*input));
  const int64_t rows = input->dim(batched ? 1 : 0), columns = input->dim(batched ? 2 : 1);
  TRY(const Tensor in, as<float>(context, *input));
  TRY(Tensor costs, context.allocate(DType::kFloat32, {{rows + 1, columns + 1}}));
  TRY(Tensor steps, context.allocate(DType::kInt8, costs.dims()));
  const int64_t width = columns + 1;
  float* cost = costs.data<float>();
  int8_t* step = steps.data<int8_t>();
  std::fill_n(cost, costs.size(), std::numeric_limits<float>::infinity());
  std::fill_n(step, steps.size(), int8_t{-1});
  cost[0] = 0;
  for (int64_t j = 1; j <= columns; ++j)
    for (int64_t i = 1; i <= rows; ++i) {
      const float both = cost[(i - 1) * width + j - 1], up = cost[(i - 1) * width + j];
      const float left = cost[i * width + j - 1];
      const int8_t kind = both < up && both < left ? 0 : up < both && up < left ? 1 : 2;
      cost[i * width + j] = (kind == 0   ? both
                             : kind == 1 ? up
                                         : left) +
                            in.data<float>()[(i - 1) * columns + j - 1];
      step[i * width + j] = kind;
    }
  for (int64_t j = 0; j <= columns; ++j) step[j] = 2;
  for (int64_t i = 0; i <= rows; ++i) step[i * width] = 1;
  std::vector<std::pair<int64_t, int64_t>> path;
  for (int64_t i = rows, j = columns; i > 0 || j > 0;) {
    path.emplace_back(i - 1, j - 1);
    const int8_t kind = step[i * width + j];
    i -= kind == 0 || kind == 1;
    j -= kind == 0 || kind == 2;
  }
  const auto length = static_cast<int64_t>(path.size());
  TRY(Tensor * y, context.output(0, DType::kInt32, {{2, length}}));
  for (int64_t t = 0; t < length; ++t) {
    const auto& [i, j] = path[static_cast<size_t>(length - 1 - t)];
    y->set_int64(t, i);
    y->set_int64(length + t, j);
  }
  return ok();
}
Status infer_dynamic_time_warping(InferContext& context) {
  context.set_tensor(0, DType::kInt32, {SymDim(2), context.host.fresh_symbol("path")});
  return ok();
}

/// Windows of `size` elements every `step` along an axis, as a last axis.
Status run_unfold_tensor(KernelContext& context) {
  TRY(const Tensor* x, context.input(0));
  const int64_t size = context.attributes.get_int("size", 0);
  const int64_t step = context.attributes.get_int("step", 1);
  TRY(const int64_t axis, normalize_axis(context.attributes.get_int("dim", -1),
                                         static_cast<int64_t>(x->rank()), "dim"));
  const auto at = static_cast<size_t>(axis);
  if (size < 1 || step < 1 || size > x->dim(at))
    return context.error("size is " + std::to_string(size) + ", step is " + std::to_string(step) +
                         ", the axis has " + std::to_string(x->dim(at)));
  Dims dims = x->dims();
  const Dims from = contiguous_strides(x->dims());
  Dims strides = from;
  dims[at] = (x->dim(at) - size) / step + 1;
  strides[at] = from[at] * std::min(step, x->dim(at));
  dims.push_back(size);
  strides.push_back(from[at]);
  TRY(Tensor * y, context.output(0, x->dtype(), dims));
  if (y->size() != 0) copy_box(*x, 0, strides, *y, 0, contiguous_strides(dims), dims);
  return ok();
}
Status infer_unfold_tensor(InferContext& context) {
  const SymShape* x = context.shape(0);
  if (x == nullptr) return ok();
  const int64_t size = context.attributes.get_int("size", 0);
  const int64_t step = context.attributes.get_int("step", 1);
  if (size < 1 || step < 1) return context.error("size and step must be at least 1");
  TRY(const size_t axis, checked_axis(context, context.attributes.get_int("dim", -1), x->size()));
  SymShape out = *x;
  out[axis] = floor_div(out[axis] - SymDim(size), SymDim(step)) + SymDim(1);
  out.push_back(SymDim(size));
  set_shape(context, 0, std::move(out));
  return ok();
}

/// Aggressive decoding: takes the predicted tokens up to where they leave the source, and finds
/// where the end of the result comes up in the source.
Status run_bifurcation_detector(KernelContext& context) {
  TRY(const std::vector<int64_t> source, context.input_ints(0));
  TRY(const std::vector<int64_t> current, context.input_ints(1));
  TRY(const std::vector<int64_t> previous, context.input_ints(2));
  std::vector<int64_t> predicted;
  if (context.has_input(3)) {
    TRY(predicted, context.input_ints(3));
  }
  const auto count = static_cast<int64_t>(source.size());
  if (previous.size() != 1 || previous[0] < 0 || previous[0] > count)
    return context.error("prev_suffix_match_idx must be one place in src_tokens");
  std::vector<int64_t> tokens = current;
  if (context.has_input(3)) {
    if (static_cast<int64_t>(predicted.size()) != count - previous[0] + 1)
      return context.error("pred_tokens must have " + std::to_string(count - previous[0] + 1) +
                           " tokens, has " + std::to_string(predicted.size()));
    int64_t same = 0;
    while (same < count - previous[0] &&
           predicted[static_cast<size_t>(same)] == source[static_cast<size_t>(previous[0] + same)])
      ++same;
    tokens.insert(tokens.end(), predicted.begin(), predicted.begin() + same + 1);
  }
  const int64_t least = context.attributes.get_int("min_ngram_size", 1);
  const int64_t most = context.attributes.get_int("max_ngram_size", 3);
  if (least < 1 || most < least)
    return context.error("min_ngram_size is " + std::to_string(least) + ", max_ngram_size is " +
                         std::to_string(most));
  int64_t match = -1;
  for (int64_t n = least; n <= most && n <= static_cast<int64_t>(tokens.size()); ++n) {
    const auto ngram = tokens.end() - n;
    const auto first = std::search(source.begin(), source.end(), ngram, tokens.end());
    if (first == source.end()) break;
    match = first - source.begin() + n;
    if (match >= count) break;
    if (std::search(first + 1, source.end(), ngram, tokens.end()) == source.end()) break;
    match = -1;
  }
  context.set_output(0, Tensor::int64s(tokens));
  TRY(Tensor * index, context.output(1, DType::kInt64, {{1}}));
  index->set_int64(0, match);
  return ok();
}
Status infer_bifurcation_detector(InferContext& context) {
  context.set_tensor(0, DType::kInt64, {context.host.fresh_symbol("tokens")});
  context.set_tensor(1, DType::kInt64, {SymDim(1)});
  return ok();
}

}  // namespace

OPERATOR(microsoft_NGramRepeatBlock) = {
    .name = "NGramRepeatBlock",
    .domain = "com.microsoft",
    .doc = "forbids tokens that would repeat an n-gram",
    .versions = {1},
    .inputs =
        {
            {"input_ids", "Tid"},
            {"scores", "T"},
        },
    .outputs =
        {
            {"scores_out", "T"},
        },
    .attributes =
        {
            {"ngram_size", required(Attr::kInt)},
        },
    .types =
        {
            {"Tid", {{1, kI64}}},
            {"T", {{1, kF32}}},
        },
    .infer = infer_ngram_repeat_block,
    .reference = run_ngram_repeat_block,
};

OPERATOR(microsoft_DynamicTimeWarping) = {
    .name = "DynamicTimeWarping",
    .domain = "com.microsoft",
    .doc = "the cheapest path through a matrix of costs",
    .versions = {1},
    .inputs =
        {
            {"input", "F"},
        },
    .outputs =
        {
            {"output", "I"},
        },
    .types =
        {
            {"F", {{1, kF32}}},
            {"I", {{1, kI32}}},
        },
    .infer = infer_dynamic_time_warping,
    .reference = run_dynamic_time_warping,
};

OPERATOR(microsoft_UnfoldTensor) = {
    .name = "UnfoldTensor",
    .domain = "com.microsoft",
    .doc = "sliding windows along an axis, as a last axis",
    .versions = {1},
    .inputs =
        {
            {"input", "T"},
        },
    .outputs =
        {
            {"output", "T"},
        },
    .attributes =
        {
            {"dim", -1},
            {"size", required(Attr::kInt)},
            {"step", 1},
        },
    .types =
        {
            {"T", {{1, kAll | kBf16}}},
        },
    .infer = infer_unfold_tensor,
    .reference = run_unfold_tensor,
};

OPERATOR(microsoft_BifurcationDetector) = {
    .name = "BifurcationDetector",
    .domain = "com.microsoft",
    .doc = "takes predicted tokens up to where they leave the source",
    .versions = {1},
    .inputs =
        {
            {"src_tokens", "T"},
            {"cur_tokens", "T"},
            {"prev_suffix_match_idx", "T"},
            {"pred_tokens", "T", kOptional},
        },
    .outputs =
        {
            {"tokens", "T"},
            {"suffix_match_idx", "T"},
        },
    .attributes =
        {
            {"max_ngram_size", 3},
            {"min_ngram_size", 1},
        },
    .types =
        {
            {"T", {{1, kI64}}},
        },
    .infer = infer_bifurcation_detector,
    .reference = run_bifurcation_detector,
};

}  // namespace tombolo::ops
