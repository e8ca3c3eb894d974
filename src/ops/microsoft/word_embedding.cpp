// WordConvEmbedding: words from the characters that they are spelt with.

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "ops/infer_helpers.h"
#include "ops/kernels/compute.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {

/// The greatest, over the places of a window in the word, of tanh(filter . characters + bias).
Status run_word_conv_embedding(KernelContext& context) {
  TRY(const Tensor* words, context.input(0));
  TRY(const Tensor* filters, context.input(1));
  TRY(const Tensor* biases, context.input(2));
  TRY(const Tensor* characters, context.input(3));
  if (words->rank() < 1 || filters->rank() != 4 || filters->dim(1) != 1 ||
      characters->rank() != 2 || filters->dim(3) != characters->dim(1))
    return context.error("W must be [filters, 1, window, size], C [characters, size], are " +
                         to_string(*filters) + " and " + to_string(*characters));
  const int64_t longest = words->dim(words->rank() - 1);
  const int64_t count = filters->dim(0), window = filters->dim(2), size = filters->dim(3);
  CHECK_OK(check_dims(context, "B", *biases, {{count}}));
  TRY(const Tensor w, as<float>(context, *filters));
  TRY(const Tensor b, as<float>(context, *biases));
  TRY(const Tensor table, as<float>(context, *characters));
  Dims dims = words->dims();
  dims[dims.size() - 1] = count;
  TRY(Tensor y, context.allocate(DType::kFloat32, dims));
  const int64_t rows = longest == 0 ? 0 : words->size() / longest;
  std::fill_n(y.data<float>(), y.size(), 0.0f);
  for (int64_t row = 0; row < rows; ++row) {
    int64_t length = 0;  // a word ends at the first character that is 0
    while (length < longest && words->get_int64(row * longest + length) > 0) ++length;
    if (length == 0) continue;
    length = std::max(length, std::min(window, longest));
    for (int64_t i = 0; i < length; ++i) {
      const int64_t id = words->get_int64(row * longest + i);
      if (id < 0 || id >= characters->dim(0))
        return context.error("Sequence has the value " + std::to_string(id) + ", C has " +
                             std::to_string(characters->dim(0)) + " rows");
    }
    for (int64_t f = 0; f < count; ++f) {
      double most = -std::numeric_limits<double>::infinity();
      for (int64_t at = 0; at + window <= length; ++at) {
        auto sum = static_cast<double>(b.data<float>()[f]);
        for (int64_t k = 0; k < window; ++k) {
          const int64_t id = words->get_int64(row * longest + at + k);
          for (int64_t j = 0; j < size; ++j)
            sum += static_cast<double>(w.data<float>()[(f * window + k) * size + j]) *
                   static_cast<double>(table.data<float>()[id * size + j]);
        }
        most = std::max(most, std::tanh(sum));
      }
      y.data<float>()[row * count + f] = static_cast<float>(most);
    }
  }
  return give(context, 0, DType::kFloat32, std::move(y));
}

Status infer_word_conv_embedding(InferContext& context) {
  InferType type = InferType::tensor(context.elem(1));
  const SymShape* words = context.shape(0);
  const SymShape* filters = context.shape(1);
  if (words != nullptr && !words->empty() && filters != nullptr && filters->size() == 4) {
    type.shape = *words;
    type.shape->back() = (*filters)[0];
  }
  context.set_output(0, std::move(type));
  return ok();
}

}  // namespace

OPERATOR(microsoft_WordConvEmbedding) = {
    .name = "WordConvEmbedding",
    .domain = "com.microsoft",
    .doc = "words from the characters that they are spelt with",
    .versions = {1},
    .inputs =
        {
            {"Sequence", "T"},
            {"W", "T1"},
            {"B", "T1"},
            {"C", "T1"},
        },
    .outputs =
        {
            {"Y", "T1"},
        },
    .attributes =
        {
            {"char_embedding_size", Attr::kInt},
            {"conv_window_size", Attr::kInt},
            {"embedding_size", Attr::kInt},
        },
    .types =
        {
            {"T", {{1, kI32}}},
            {"T1", {{1, kF32}}},
        },
    .infer = infer_word_conv_embedding,
    .reference = run_word_conv_embedding,
};

}  // namespace tombolo::ops
