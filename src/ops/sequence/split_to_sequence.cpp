#include "ops/infer_helpers.h"
#include "ops/kernels/arguments.h"
#include "ops/kernels/join.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {
Status infer_split_to_sequence(InferContext& context) {
  const SymShape* data = context.shape(0);
  InferType element = InferType::tensor(context.elem(0));
  if (data != nullptr) {
    TRY(const size_t axis,
        checked_axis(context, context.attributes.get_int("axis", 0), data->size()));
    SymShape out = *data;
    bool squeezed = false;
    if (!context.has_input(1)) {
      squeezed = context.attributes.get_int("keepdims", 1) == 0;
      out[axis] = 1;
    } else {
      // A scalar: chunks of that length, the last may be shorter. A list: their lengths.
      const SymShape* split = context.ints(1);
      const SymShape* split_shape = context.shape(1);
      SymDim length;
      if (split != nullptr && split_shape != nullptr && !split->empty()) {
        length = (*split)[0];
        if (split_shape->empty() && !modulo(out[axis], length).equals(SymDim(0))) length = SymDim();
        for (const SymDim& part : *split)
          if (!part.equals((*split)[0])) length = SymDim();
      }
      out[axis] = length;
    }
    if (squeezed) out.erase(out.begin() + static_cast<std::ptrdiff_t>(axis));
    element.shape = std::move(out);
  }
  context.set_output(0, InferType::sequence(std::move(element)));
  return ok();
}
Status run_split_to_sequence(KernelContext& context) {
  TRY(const Tensor* data, context.input(0));
  TRY(const int64_t axis,
      normalize_axis(context.attributes.get_int("axis", 0), static_cast<int64_t>(data->rank())));
  const auto at = static_cast<size_t>(axis);
  const int64_t length = data->dim(at);
  TRY(const Tensor* split, context.optional_input(1));
  SequenceValue result;
  result.elem = data->dtype();
  if (split == nullptr) {
    // Parts without elements take memory too: measured with all that owns and copies them.
    constexpr uint64_t kPart = 512;
    CHECK_OK(context.host.reserve(static_cast<uint64_t>(length) * kPart));
    result.items.reserve(static_cast<size_t>(length));
    const bool keep = context.attributes.get_int("keepdims", 1) != 0;
    for (int64_t i = 0; i < length; ++i) {
      TRY(Tensor part,
          keep ? slice_along(context, *data, at, i, 1) : element_along(context, *data, at, i));
      result.items.emplace_back(std::move(part));
    }
  } else if (split->rank() == 0) {
    CHECK_OK(check_index_type(*split));
    const int64_t chunk = split->get_int64(0);
    if (chunk <= 0) return context.error("parts of length " + std::to_string(chunk));
    for (int64_t i = 0; i < length; i += std::min(chunk, length - i)) {
      TRY(Tensor part, slice_along(context, *data, at, i, std::min(chunk, length - i)));
      result.items.emplace_back(std::move(part));
    }
  } else {
    CHECK_OK(check_index_type(*split));
    int64_t from = 0;
    for (int64_t k = 0; k < split->size(); ++k) {
      const int64_t part_length = split->get_int64(k);
      if (part_length < 0 || part_length > length - from)
        return context.error("part " + std::to_string(k) + " of length " +
                             std::to_string(part_length) + " does not fit the rest, " +
                             std::to_string(length - from));
      TRY(Tensor part, slice_along(context, *data, at, from, part_length));
      result.items.emplace_back(std::move(part));
      from += part_length;
    }
    if (from != length)
      return context.error("the parts add up to " + std::to_string(from) +
                           ", not to the length of the axis, " + std::to_string(length));
  }
  context.set_output(0, std::move(result));
  return ok();
}

}  // namespace

OPERATOR(SplitToSequence) = {
    .name = "SplitToSequence",
    .doc = "cuts a tensor into a sequence of parts",
    .versions = {11, 24},
    .inputs =
        {
            {"input", "T"},
            {"split", "I", kOptional},
        },
    .outputs = {{"output_sequence", "S"}},
    .attributes =
        {
            {"axis", 0},
            {"keepdims", 1},
        },
    .types =
        {
            {"T", {{11, kAll}, {24, kBf16}}},
            {"I", {{11, kIndices}}},
            {"S", {{11, seq_of(kAll)}, {24, seq_of(kBf16)}}},
        },
    .infer = infer_split_to_sequence,
    .reference = run_split_to_sequence,
};

}  // namespace tombolo::ops
