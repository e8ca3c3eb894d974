#pragma once

// Scaled dot-product attention over floats, one block of queries at a time: scores stay in the
// second cache between the two products.

#include <cstddef>
#include <cstdint>

namespace tombolo {

/// Elements of a tensor [batch, heads, steps, size], wherever these axes lie.
struct HeadLayout {
  int64_t batch_stride = 0, head_stride = 0, step_stride = 0;
  int64_t at(int64_t b, int64_t h) const { return b * batch_stride + h * head_stride; }
};

/// How both products are taken.
enum class AttentionProducts : uint8_t {
  kFloats,
  kBf16,    ///< rounded (bf16.h): see attention_bf16_fits()
  kDigits,  ///< as integers (gemm_digits.h); heads whose numbers these do not hold go by floats
};

struct AttentionShape {
  int64_t batch = 1, q_heads = 1, kv_heads = 1;
  int64_t rows = 1, columns = 1;  ///< queries, keys
  int64_t size = 1, value_size = 1;
  HeadLayout q, k, v, y;
  float scale = 1, softcap = 0;
  bool causal = false;
  int64_t left = -1, right = -1;        ///< window around a query's position; -1: none
  int64_t last = -1;                    ///< of the keys up to a query only so many count; -1: all
  int64_t sink_head = 0, sink_row = 0;  ///< strides of the sinks
  AttentionProducts products = AttentionProducts::kFloats;
  // Mask: [batch, heads, rows, columns] by strides (0 where repeated), added or a byte of truth.
  int64_t mask_stride[3] = {}, mask_columns = 0;
};

struct AttentionData {
  const float *q, *k, *v;
  float* y;
  const float* mask = nullptr;
  const uint8_t* bool_mask = nullptr;
  const int64_t* offsets = nullptr;  ///< position of the first query, one for each of the batch
  const int64_t* valid = nullptr;    ///< keys that count, one for each of the batch
  const float* sinks = nullptr;      ///< one more score each, without a value
  /// Makes steps [from, to) of head `line` of the keys, or `values`: where they are not there yet;
  /// null: all are. Each is asked for once. Gives where the first lies; if `keep` is false that
  /// need only stay until the next call of the same thread.
  const float* (*make)(const void* argument, int64_t line, bool values, int64_t from, int64_t to,
                       bool keep) = nullptr;
  const void* argument = nullptr;
};

/// Whether fast_math may round these products: there is something to gain, and a processor for it.
bool attention_bf16_fits(const AttentionShape& shape);
/// The fastest; rounded ones only where the option fast_math `rounds`.
AttentionProducts attention_products(const AttentionShape& shape, bool rounds);
size_t attention_scratch_floats(const AttentionShape& shape);
/// Whether AttentionData::make is only asked for what need not be kept: a head's keys and values
/// are read once, some steps at a time, as soon as they are made.
bool attention_reads_once(const AttentionShape& shape);
/// A row in which no key counts gives zeros.
void run_attention(const AttentionShape& shape, const AttentionData& data, float* scratch);

/// out[j] = q . k_j for n keys `step` apart.
void dot_rows(const float* q, const float* k, int64_t step, int64_t n, int64_t size, float* out);
/// out += the sum of n rows v_j, each times weights[j].
void add_weighted_rows(const float* weights, const float* v, int64_t step, int64_t n, int64_t size,
                       float* out);
/// row = row * scale + mask (null: none), -infinity where a byte is 0 (null: none); gives the
/// largest, leaving out NaN.
float scale_scores(float* row, int64_t n, float scale, const float* mask,
                   const uint8_t* bytes = nullptr);
/// row = e^(row - most); gives the sum.
float powers_of_scores(float* row, int64_t n, float most);

}  // namespace tombolo
