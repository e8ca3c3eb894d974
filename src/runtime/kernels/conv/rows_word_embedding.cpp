// WordConvEmbedding of com.microsoft. The characters of all words lie one behind the other, so that
// windows are rows of a matrix that overlap: one product with all filters.

#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "runtime/kernels/elementwise/unary.h"
#include "runtime/kernels/isa.h"
#include "runtime/kernels/kernel.h"
#include "runtime/kernels/matmul/gemm.h"

namespace tombolo {
namespace {

struct WordState final : KernelState {
  int64_t words = 0, longest = 0;  ///< characters of a word
  int64_t filters = 0, window = 0, size = 0, known = 0;
  const std::byte* packed = nullptr;
  Dims output;
};

bool plan_words(const KernelQuery& q, WordState& s) {
  if (active_isa() == Isa::kScalar || q.inputs.size() != 4 || q.dtype(0) != DType::kInt32)
    return false;
  for (size_t i = 1; i < 4; ++i)
    if (q.dtype(i) != DType::kFloat32) return false;
  const auto text = q.dims(0), w = q.dims(1), table = q.dims(3);
  if (q.constant(1) == nullptr || text.empty() || element_count(text) < 1 || w.size() != 4 ||
      w[1] != 1 || table.size() != 2 || w[3] != table[1] || Dims(q.dims(2)) != Dims{w[0]})
    return false;
  s.longest = text.back();
  s.words = element_count(text) / s.longest;
  s.filters = w[0];
  s.window = w[2];
  s.size = w[3];
  s.known = table[0];
  s.output = Dims(text);
  s.output[s.output.size() - 1] = s.filters;
  return s.filters >= 1 && s.window >= 1 && s.size >= 1 && s.window <= s.longest;
}

bool supports_words(const KernelQuery& query) {
  WordState state;
  return plan_words(query, state);
}

Result<std::unique_ptr<KernelState>> prepare_words(const PrepareContext& context) {
  auto state = std::make_unique<WordState>();
  WordState& s = *state;
  plan_words(context, s);
  const int64_t k = s.window * s.size;
  TRY(s.packed, context.packed(1, "words/" + std::string(name_of(active_isa())),
                               static_cast<size_t>(packed_b_floats(k, s.filters)) * sizeof(float),
                               [&](std::byte* target) {
                                 Tensor room;
                                 pack_b(context.aligned_constant(1, room).data<float>(), 1, k, k,
                                        s.filters, 1, reinterpret_cast<float*>(target));
                               }));
  s.scratch_bytes =
      static_cast<size_t>(s.words * s.longest * (s.size + s.filters) + 16) * sizeof(float);
  return state;
}

Status run_words(KernelRun& run) {
  const auto& s = run.state<WordState>();
  TRY(Tensor * y, run.output(0, DType::kFloat32, s.output));
  const auto* text = run.data<int32_t>(0);
  const float *bias = run.data<float>(2), *table = run.data<float>(3);
  auto* characters = reinterpret_cast<float*>(run.scratch());
  float* sums = characters + (s.words * s.longest * s.size + 15) / 16 * 16;
  // Where each word begins, and how many of its characters count: it ends at the first 0.
  std::vector<int64_t> begins(static_cast<size_t>(s.words + 1));
  int64_t count = 0;
  for (int64_t word = 0; word < s.words; ++word) {
    begins[static_cast<size_t>(word)] = count;
    const int32_t* from = text + word * s.longest;
    int64_t length = 0;
    while (length < s.longest && from[length] > 0) ++length;
    if (length == 0) continue;
    length = std::max(length, s.window);
    for (int64_t i = 0; i < length; ++i, ++count) {
      if (from[i] < 0 || from[i] >= s.known)
        return runtime_error("Sequence has the value " + std::to_string(from[i]) + ", C has " +
                             std::to_string(s.known) + " rows");
      std::memcpy(characters + count * s.size, table + from[i] * s.size,
                  static_cast<size_t>(s.size) * sizeof(float));
    }
  }
  begins[static_cast<size_t>(s.words)] = count;
  const int64_t rows = count - s.window + 1;
  if (rows > 0)
    gemm(rows, s.filters, s.window * s.size, characters, s.size,
         reinterpret_cast<const float*>(s.packed), sums, s.filters, {.col_bias = bias});
  run.parallel_for(s.words, std::max<int64_t>(1, 16384 / (s.longest * s.filters)),
                   [&](int64_t begin, int64_t end) {
                     for (int64_t word = begin; word < end; ++word) {
                       float* out = y->data<float>() + word * s.filters;
                       const int64_t first = begins[static_cast<size_t>(word)];
                       const int64_t last = begins[static_cast<size_t>(word + 1)] - s.window;
                       if (last < first) {
                         std::fill_n(out, s.filters, 0.0f);
                         continue;
                       }
                       std::memcpy(out, sums + first * s.filters,
                                   static_cast<size_t>(s.filters) * sizeof(float));
                       for (int64_t at = first + 1; at <= last; ++at)
                         for (int64_t j = 0; j < s.filters; ++j)
                           out[j] = std::max(out[j], sums[at * s.filters + j]);
                       unary_fn(Unary::kTanh)(out, out, s.filters, 0, 0);
                     }
                   });
  return ok();
}

}  // namespace

KERNEL(word_conv_embedding) = {
    .name = "word_conv_embedding",
    .op = "WordConvEmbedding",
    .domain = "com.microsoft",
    .supports = supports_words,
    .prepare = prepare_words,
    .run = run_words,
};

}  // namespace tombolo
