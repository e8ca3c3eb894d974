// MatMul and Gemm of floats, and MatMul with what surrounds it (ai.tombolo MatMul: A, B, bias, Z;
// transA, transB, alpha, activation).

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <limits>
#include <string>

#include "runtime/kernels/conv/geometry.h"
#include "runtime/kernels/elementwise/convert.h"
#include "runtime/kernels/isa.h"
#include "runtime/kernels/kernel.h"
#include "runtime/kernels/matmul/activation_post.h"
#include "runtime/kernels/matmul/bf16.h"
#include "runtime/kernels/matmul/fixed26.h"
#include "runtime/kernels/matmul/gemm.h"
#include "runtime/kernels/matmul/gemm_digits.h"
#include "runtime/kernels/matmul/gemm_narrow.h"
#include "runtime/kernels/matmul/gemm_small.h"
#include "runtime/kernels/matmul/product_axes.h"
#include "runtime/kernels/matmul/turned_rows.h"
#include "runtime/kernels/parallel.h"
#include "runtime/kernels/tensor/transpose_tile.h"
#include "runtime/kernels/weights.h"

namespace tombolo {
namespace {

constexpr int64_t kTurnedRows = 6;  ///< products of so many wait for their weights

struct MatMulState final : KernelState, ProductAxes {
  float alpha = 1, beta = 1;
  bool bf16 = false;                           ///< products of bf16
  PanelFormat format = PanelFormat::kFloat32;  ///< of B packed, where products are of float32
  bool b_once = false;                         ///< no matrix of B is for two products in a row
  bool columns = false;                        ///< B is kept turned, for gemm_columns()
  bool halves = false;                         ///< the model keeps A and B in 16 bits
  Fixed26Panels fixed26;                       ///< of a matrix of B in that format
  std::optional<DigitPanels> digits;           ///< of a matrix of B kept as such
  const float* digit_scales = nullptr;         ///< of its matrices, one behind the other
  const std::byte* packed = nullptr;  ///< B, when it is constant: its matrices one behind the other
  size_t packed_step = 0;             ///< bytes from one of its matrices to the next
  bool reads_turned = false;          ///< tiles read A turned as it is
  size_t a_floats = 0;                ///< scratch for A turned
  Activation activation;
  enum class Addend : uint8_t { kNone, kColumns, kRows, kScalar, kMatrix } bias = Addend::kNone;
  mutable std::atomic<uint32_t> turns = 0;  ///< of a weight, see GemmEpilogue::backwards

  /// Scratch for what is added where it does not lie there as it is.
  int64_t bias_floats() const {
    if (bias == Addend::kNone || (beta == 1 && bias != Addend::kScalar)) return 0;
    const int64_t size = bias == Addend::kMatrix ? m * n : bias == Addend::kRows ? m : n;
    return (size + 31) / 16 * 16;
  }
};

/// Everything but the packed weights. False where the reference must answer.
bool plan_matmul(const KernelQuery& q, bool gemm, MatMulState& s) {
  if (active_isa() == Isa::kScalar || q.inputs.size() < 2) return false;
  if (!takes_floats_and_weight(q)) return false;
  const auto activation = read_activation(q.attributes);
  if (!activation) return false;
  s.activation = *activation;
  s.alpha = q.attributes.get_float("alpha", 1);
  s.beta = q.attributes.get_float("beta", 1);
  if (gemm && (q.dims(0).size() != 2 || q.dims(1).size() != 2)) return false;
  auto axes = product_axes(q, q.attributes.get_int("transA", 0) != 0,
                           q.attributes.get_int("transB", 0) != 0);
  if (!axes) return false;
  static_cast<ProductAxes&>(s) = *std::move(axes);
  // Only packing widens weights, and weights are packed as the file has them.
  if (!s.b_shared && q.constant(1) == nullptr && q.dtype(1) != DType::kFloat32) return false;
  const bool ordered_b = !q.attributes.get_ints("perm_b").empty();
  if (ordered_b && q.constant(1) != nullptr) return false;
  if (s.trans_a) s.a_floats = static_cast<size_t>(s.m * s.k);
  using Addend = MatMulState::Addend;
  if (q.has_input(2)) {
    const auto c = q.dims(2);
    const int64_t size = element_count(c);
    if (gemm) {
      if (c.size() > 2) return false;
      const int64_t rows_c = c.size() == 2 ? c[0] : 1, cols_c = c.empty() ? 1 : c.back();
      if ((rows_c != 1 && rows_c != s.m) || (cols_c != 1 && cols_c != s.n)) return false;
      s.bias = size == 1     ? Addend::kScalar
               : rows_c == 1 ? Addend::kColumns
               : cols_c == 1 ? Addend::kRows
                             : Addend::kMatrix;
    } else {
      if (c.size() > 1 || (size != 1 && size != s.n)) return false;
      s.bias = size == 1 && s.n != 1 ? Addend::kScalar : Addend::kColumns;
    }
  }
  if (q.has_input(3) && Dims(q.dims(3)) != s.output) return false;
  return true;
}

template <bool kGemm>
bool supports_matmul(const KernelQuery& query) {
  MatMulState state;
  return plan_matmul(query, kGemm, state);
}

/// Where few rows are used once, rounding B would cost more than it saves; and so for small
/// matrices.
bool supports_bf16(const KernelQuery& query, const MatMulState& s) {
  const bool constant = s.b_shared && query.constant(1) != nullptr;
  return query.options.fast_math && has_bf16_dot() && s.k >= 16 && s.n >= 16 &&
         (constant || s.m >= 16) &&
         // To pack a number of B takes twice as long as to round one.
         (has_amx_bf16() || bf16_pays({s.m, s.k, s.n, s.m * s.k + (constant ? 0 : 2 * s.k * s.n)}));
}

template <bool kGemm>
bool supports_matmul_bf16(const KernelQuery& query) {
  MatMulState state;
  return plan_matmul(query, kGemm, state) && supports_bf16(query, state);
}

int64_t round16(int64_t x) { return (x + 31) / 16 * 16; }

/// Reads `format` back from what it wrote: whether that gives the same bits.
bool keeps_bits(const float* x, int64_t n, PanelFormat format, uint16_t* halves, float* back) {
  const bool f16 = format == PanelFormat::kFloat16;
  (f16 ? f32_to_f16 : f32_to_bf16)(x, halves, n);
  (f16 ? f16_to_f32 : bf16_to_f32)(halves, back, n);
  return std::memcmp(x, back, static_cast<size_t>(n) * sizeof(float)) == 0;
}

/// How panels keep a weight of floats.
struct WeightFormat {
  PanelFormat format = PanelFormat::kFloat32;
  int64_t raws = 0;     ///< Fixed26Panels::raws
  bool digits = false;  ///< of bytes (gemm_digits.h) instead
};

/// The 16 bits that hold all of these floats exactly, as those of models that were trained or kept
/// in halves and exported in float32. Others are told from a few.
PanelFormat exact_halves(const Tensor& floats) {
  constexpr int64_t kPart = 4096;
  std::vector<float> part(kPart), back(kPart);
  std::vector<uint16_t> halves(kPart);
  bool may[kPanelFormats] = {false, takes_panels(PanelFormat::kFloat16),
                             takes_panels(PanelFormat::kBfloat16)};
  const auto elements = static_cast<int64_t>(floats.size());
  for (int64_t i = 0; i < elements && (may[1] || may[2]); i += kPart) {
    const int64_t n = std::min(kPart, elements - i);
    std::memcpy(part.data(), floats.data<std::byte>() + i * 4, static_cast<size_t>(n) * 4);
    for (const PanelFormat format : {PanelFormat::kFloat16, PanelFormat::kBfloat16}) {
      bool& still = may[static_cast<int>(format)];
      still = still && keeps_bits(part.data(), n, format, halves.data(), back.data());
    }
  }
  return may[1] ? PanelFormat::kFloat16 : may[2] ? PanelFormat::kBfloat16 : PanelFormat::kFloat32;
}

/// Whether no second cache holds B.
bool lies_far(const MatMulState& s) { return s.k * s.n * 4 >= 2 * near_bytes(); }

/// Few rows wait for a B that lies far: a fifth less of it is worth taking it apart, once for all
/// rows and several panels. From four rows on, arithmetic no longer hides behind memory (five of
/// 4096 x 4096 take 1.2 of the time of floats). The first call of a decoder has many, those after
/// it few. From a shared cache floats come as fast, with vectors of 256 bits almost twice as fast.
bool waits_for_memory(const KernelQuery& query, const MatMulState& s) {
  constexpr int64_t kFewRows = 3;
  const bool steps = query.options.decodes;
  if (query.options.stays_near(4) && (gemm_tiles().lanes < 16 || (s.m > 1 && !steps))) return false;
  const auto& wide = gemm_tiles().wide[static_cast<int>(PanelFormat::kFixed26)];
  const bool few = steps || (s.m <= kFewRows && wide[s.m][2] != nullptr);
  return few && takes_panels(PanelFormat::kFixed26) && s.k >= gemm_tiles().panel() && lies_far(s);
}

/// Vectors keep memory busier than tiles do, so it takes more rows where B lies far.
bool digits_pay(const KernelQuery& query, const MatMulState& s) {
  return !query.options.decodes && s.m >= (lies_far(s) ? 48 : kMaxWideRows + 1);
}

/// Lets go of a weight's memory where it has been read.
struct Release {
  PackStore& packs;
  const std::byte* bytes;
  static void done(const void* argument, int64_t begin, int64_t end) {
    const auto& self = *static_cast<const Release*>(argument);
    self.packs.release({self.bytes + begin * 4, self.bytes + end * 4});
  }
};

bool fits_digits(const PrepareContext& context, const MatMulState& s, const Tensor& b,
                 float* scales) {
  for (int64_t i = 0; i < s.matrices; ++i) {
    const Release part{context.packs, b.data<std::byte>() + i * s.k * s.n * 4};
    float* const own = scales + i * DigitPanels{s.k, s.n}.scales() / 4;
    if (!digits_of(part.bytes, s.k, s.n, s.trans_b, {&Release::done, &part}, own)) return false;
  }
  return true;
}

WeightFormat weight_format(const PrepareContext& context, const MatMulState& s, const Tensor& b,
                           float* scales) {
  if (scales != nullptr && digits_pay(context, s) && fits_digits(context, s, b, scales))
    return {.digits = true};
  constexpr int64_t kStaysNear = 64 << 10;  // floats: no use to make them smaller
  if (s.k * s.n < kStaysNear) return {};
  WeightFormat found{exact_halves(b)};
  if (found.format != PanelFormat::kFloat32 || !waits_for_memory(context, s)) return found;
  for (int64_t i = 0; i < s.matrices; ++i) {
    const Release part{context.packs, b.data<std::byte>() + i * s.k * s.n * 4};
    const auto fits = fixed26_fits(part.bytes, s.k, s.n, s.trans_b, {&Release::done, &part});
    if (!fits) return found;
    found.raws = std::max(found.raws, fits->raws);
  }
  found.format = PanelFormat::kFixed26;
  return found;
}

/// Halves stay halves in memory, and floats that halves or 26 bits hold become such: what waits for
/// memory, products of few rows, has less to wait for. With AMX, products of more rows take digits
/// (gemm_digits.h). Not where B is scaled.
Status choose_format(const PrepareContext& context, MatMulState& s) {
  constexpr int64_t kFewest = 16 << 10;  // floats
  const Tensor* const b = context.constant(1);
  if (b == nullptr || s.bf16 || s.alpha != 1) return ok();
  if (b->dtype() != DType::kFloat32) {
    const bool f16 = b->dtype() == DType::kFloat16;
    const PanelFormat format = f16 ? PanelFormat::kFloat16 : PanelFormat::kBfloat16;
    if (takes_panels(format)) s.format = format;
    s.halves = true;
    return ok();
  }
  if (b->deferred() != nullptr || s.n < gemm_tiles().panel() || s.k * s.n < kFewest) return ok();
  // Looked at once a session, not for each number of rows: the first one decides.
  constexpr size_t kHeader = 64;
  static_assert(sizeof(WeightFormat) <= kHeader);
  const DigitPanels panels{s.k, s.n};
  const bool digits = digits_fit(s.n, s.k);
  const size_t bytes =
      kHeader + (digits ? static_cast<size_t>(s.matrices * panels.scales()) : size_t{0});
  TRY(const std::byte* const kept,
      context.packed(1,
                     "weight_format/" + std::string(name_of(active_isa())) +
                         (digits ? "/digits" : "") + (s.trans_b ? "/t" : "/n"),
                     bytes, [&](std::byte* target) {
                       auto* scales = digits ? reinterpret_cast<float*>(target + kHeader) : nullptr;
                       const WeightFormat found = weight_format(context, s, *b, scales);
                       std::memcpy(target, &found, sizeof found);
                     }));
  WeightFormat found;
  std::memcpy(&found, kept, sizeof found);
  s.format = found.format;
  s.fixed26 = {s.k, gemm_tiles().lanes, found.raws};
  if (found.digits) s.digits = panels;
  s.digit_scales = reinterpret_cast<const float*>(kept + kHeader);
  return ok();
}

/// The matrix of B that begins at element `start`, turned for gemm_columns().
void pack_columns(const PrepareContext& context, const MatMulState& s, int64_t start,
                  float* target) {
  Tensor made;
  const Tensor& weights = context.aligned_constant(1, made);
  std::vector<float> room;
  const float* from = weight_floats(weights, start, s.k * s.n, room);
  for (int64_t j = 0; j < s.n; ++j)
    for (int64_t i = 0; i < s.k; ++i)
      target[j * s.k + i] = s.alpha * from[s.trans_b ? j * s.k + i : i * s.n + j];
}

/// Packs the matrix of B that begins at element `start`, some megabytes at a time, and lets go of
/// what was read: both forms of a large weight never take memory together. Panels of floats, or
/// those of bf16_gemm().
void pack_weight(const PrepareContext& context, const MatMulState& s, int64_t start,
                 std::byte* target) {
  if (s.columns) return pack_columns(context, s, start, reinterpret_cast<float*>(target));
  constexpr int64_t kFloats = int64_t{1} << 20;
  Tensor made;
  const Tensor& weights = context.constant(1)->deferred() != nullptr
                              ? context.aligned_constant(1, made)
                              : *context.constant(1);
  const auto bytes_of_one = static_cast<int64_t>(bits_of(weights.dtype()) / 8);
  std::vector<float> room;
  const int64_t width = gemm_tiles().panel(), panels = (s.n + width - 1) / width;
  float scale = 1;
  if (s.bf16 && has_f16_products()) {
    float largest = 0;
    for (int64_t i = start; i < start + s.k * s.n; i += kFloats) {
      const int64_t count = std::min(kFloats, start + s.k * s.n - i);
      largest =
          std::max(largest, largest_of(weight_floats(weights, i, count, room), count, 1, count));
    }
    scale = f16_scale(largest * std::abs(s.alpha));
  }
  if (s.bf16) bf16_pack_scale(scale, s.k, s.n, target);
  const bool fixed26 = s.format == PanelFormat::kFixed26, digits = s.digits.has_value();
  if (fixed26) fixed26_begin(s.fixed26, target);
  if (digits)
    std::memcpy(target, s.digit_scales + start / (s.k * s.n) * s.digits->scales() / 4,
                static_cast<size_t>(s.digits->scales()));
  // Bf16 is packed in pairs of rows, weights of 26 bits in eights, digits 64.
  const int64_t unit = digits ? kDigitsDepth : kFixed26Rows;
  const int64_t rows =
      s.trans_b ? s.k : std::clamp(kFloats / s.n / unit * unit, unit, round_up(s.k, unit));
  const int64_t group =
      s.trans_b ? std::clamp<int64_t>(kFloats / std::max<int64_t>(1, s.k * width), 1, panels)
                : panels;
  for (int64_t k0 = 0; k0 < s.k; k0 += rows)
    for (int64_t from = 0; from < panels; from += group) {
      const int64_t k = std::min(rows, s.k - k0), to = std::min(panels, from + group);
      const int64_t begin = start + (s.trans_b ? from * width * s.k : k0 * s.n);
      const int64_t end = start + (s.trans_b ? std::min(s.n, to * width) * s.k : (k0 + k) * s.n);
      const bool halves = s.format == PanelFormat::kFloat16 || s.format == PanelFormat::kBfloat16;
      const bool narrows = halves && weights.dtype() == DType::kFloat32;
      const float* b = halves && !narrows
                           ? nullptr
                           : weight_floats(weights, begin, end - begin, room) - (begin - start);
      const auto* half = weights.data<uint16_t>() + start;
      parallel(
          to - from, std::max<int64_t>(1, 16384 / (k * width)), [&](int64_t first, int64_t last) {
            for (int64_t p = from + first; p < from + last; ++p) {
              const int64_t column = p * width;
              const int64_t row_step = s.trans_b ? 1 : s.n, column_step = s.trans_b ? s.k : 1;
              const int64_t from_at = s.trans_b ? column * s.k : k0 * s.n + column;
              const int64_t columns = std::min(width, s.n - column), to_at = (p * s.k + k0) * width;
              auto* const half_panel = reinterpret_cast<uint16_t*>(target) + to_at;
              if (halves && !narrows) {
                pack_b_panel(half + from_at, row_step, column_step, k, columns, half_panel);
                continue;
              }
              if (fixed26 || digits) {  // in pieces that stay near
                constexpr int64_t kPiece = 256;
                float* const piece = thread_floats(0, static_cast<size_t>(kPiece * width));
                for (int64_t at = 0; at < k; at += kPiece) {
                  const int64_t some = std::min(kPiece, k - at);
                  pack_b_panel(b + from_at + at * row_step, row_step, column_step, some, columns, 1,
                               piece);
                  if (digits)
                    digits_pack(piece, k0 + at, some, *s.digits, p, target);
                  else
                    fixed26_pack(piece, k0 + at, some, s.fixed26, p, target);
                }
                continue;
              }
              float* panel = s.bf16 || narrows ? thread_floats(0, static_cast<size_t>(k * width))
                                               : reinterpret_cast<float*>(target) + to_at;
              pack_b_panel(b + from_at, row_step, column_step, k, columns, s.alpha, panel);
              if (narrows)
                (s.format == PanelFormat::kFloat16 ? f32_to_f16 : f32_to_bf16)(panel, half_panel,
                                                                               k * width);
              if (s.bf16) bf16_pack(panel, k0, k, s.k, p, scale, target);
            }
          });
      const std::byte* bytes = weights.data<std::byte>();
      context.packs.release({bytes + begin * bytes_of_one, bytes + end * bytes_of_one});
    }
}

/// Whether panels of B become digits in each run.
bool makes_digits(const MatMulState& s) {
  return !s.bf16 && !s.digits && digits_pay_for_floats(s.m, s.n, s.k) &&
         (s.format == PanelFormat::kFloat32 || s.format == PanelFormat::kFixed26);
}

/// Floats that the packed form of B takes.
int64_t packed_floats(const MatMulState& s) {
  if (s.bf16) return (bf16_b_bytes(s.k, s.n) + 3) / 4 + 64;
  if (s.digits) return s.digits->bytes() / 4 + 64;
  const int64_t elements = packed_b_floats(s.k, s.n), width = gemm_tiles().panel();
  if (s.format == PanelFormat::kFixed26)
    return (s.fixed26.bytes((s.n + width - 1) / width) + 3) / 4 + 64;
  return (s.format == PanelFormat::kFloat32 ? elements : (elements + 1) / 2) + 64;
}

/// Whether each matrix of B meets one of A, of not many rows.
bool packs_on_the_way(const MatMulState& s) {
  return s.b_once && !s.bf16 && gemm_packing_fits(s.m);
}

/// Whether tiles read A turned as it is.
bool takes_turned(const MatMulState& s) {
  constexpr int64_t kNarrow = 8, kSmall = 65536;
  return s.trans_a && !s.bf16 && !s.digits && !makes_digits(s) && !s.columns && !s.halves &&
         s.format == PanelFormat::kFloat32 && s.m > kMaxWideRows && s.n > kNarrow &&
         s.m * s.n * s.k > kSmall;
}

/// Floats that a B which is no constant is packed into.
int64_t room_floats(const MatMulState& s) {
  return makes_digits(s) || packs_on_the_way(s) ? 0 : packed_floats(s);
}

template <bool kGemm, bool kBf16 = false>
Result<std::unique_ptr<KernelState>> prepare_matmul(const PrepareContext& context) {
  auto state = std::make_unique<MatMulState>();
  MatMulState& s = *state;
  plan_matmul(context, kGemm, s);
  if (element_count(s.output) == 0) return state;  // an expert to whom nobody was sent
  s.bf16 = kBf16;
  s.b_once = std::adjacent_find(s.b_at.begin(), s.b_at.end()) == s.b_at.end();
  CHECK_OK(choose_format(context, s));
  s.columns = context.constant(1) != nullptr && s.format == PanelFormat::kFloat32 && !s.bf16 &&
              !s.halves && !s.digits && gemm_columns_fits(s.n, s.k);
  s.reads_turned = takes_turned(s);
  if (s.reads_turned) s.a_floats = 0;
  const int64_t packed = s.columns ? s.k * s.n : packed_floats(s);
  size_t floats = s.a_floats + 64;
  floats += static_cast<size_t>(s.bias_floats());
  if (context.constant(1) != nullptr) {
    s.packed_step = (static_cast<size_t>(packed) * sizeof(float) + 63) / 64 * 64;
    constexpr const char* kKeys[kPanelFormats] = {"gemm_b_f32/", "gemm_b_f16/", "gemm_b_bfloat16/",
                                                  "gemm_b_fixed26/"};
    const std::string key =
        (kBf16       ? (has_f16_products() ? "gemm_b_f16_scaled" : "gemm_b_bf16_line")
         : s.columns ? "gemm_b_columns"
         : s.digits.has_value()
             ? "gemm_b_digits"
             : kKeys[static_cast<int>(s.format)] + std::string(name_of(active_isa()))) +
        (s.trans_b ? "/t" : "/n") + std::to_string(std::bit_cast<uint32_t>(s.alpha));
    TRY(s.packed, context.packed(1, key, static_cast<size_t>(s.matrices) * s.packed_step,
                                 [&](std::byte* target) {
                                   for (int64_t i = 0; i < s.matrices; ++i)
                                     pack_weight(context, s, i * s.k * s.n,
                                                 target + static_cast<size_t>(i) * s.packed_step);
                                 }));
  } else {
    floats += static_cast<size_t>(room_floats(s));
  }
  s.scratch_bytes = floats * sizeof(float);
  return state;
}

/// out[j, i] = a[i, j], with rows of `a` lda apart.
void turn(const float* a, int64_t lda, int64_t rows, int64_t columns, float* out) {
  constexpr int64_t kTile = 32;
  parallel((rows + kTile - 1) / kTile, std::max<int64_t>(1, 1024 / columns),
           [&](int64_t begin, int64_t end) {
             for (int64_t i = begin * kTile; i < std::min(rows, end * kTile); i += kTile)
               for (int64_t j = 0; j < columns; j += kTile)
                 transpose_tile(reinterpret_cast<const std::byte*>(a + i * lda + j), lda,
                                reinterpret_cast<std::byte*>(out + j * rows + i), rows,
                                std::min(kTile, rows - i), std::min(kTile, columns - j),
                                sizeof(float));
           });
}

/// Products that take less than to prepare a tile.
constexpr int64_t kTiny = 128;
void tiny_product(const MatMulState& s, const float* a, int64_t lda, const float* b, float* c) {
  const int64_t row = s.b_row(), column = s.b_column();
  for (int64_t i = 0; i < s.m; ++i, a += lda, c += s.ldc)
    for (int64_t j = 0; j < s.n; ++j) {
      float sum = 0;
      for (int64_t k = 0; k < s.k; ++k) sum += a[k] * b[k * row + j * column];
      c[j] = s.alpha * sum;
    }
}

/// Packed panels of floats, or of 26 bits, or those of a B that is not packed, for gemm_digits().
struct PanelsOfB {
  const MatMulState& s;
  const void* packed;
  const float* b;

  static const float* panel(const void* argument, int64_t panel, float* room) {
    const auto& [s, packed, b] = *static_cast<const PanelsOfB*>(argument);
    if (packed == nullptr) {
      const int64_t row = s.b_row(), column = s.b_column(), first = panel * kDigitsWidth;
      pack_b_panel(b + first * column, row, column, s.k, std::min(kDigitsWidth, s.n - first),
                   s.alpha, room);
      return room;
    }
    if (s.format == PanelFormat::kFloat32)
      return static_cast<const float*>(packed) + panel * s.k * kDigitsWidth;
    fixed26_widen(fixed26_panels(packed, s.k), panel, packed, room);
    return room;
  }
};

/// Whether a small result is of sums so short that registers hold all of a panel of B, with rows
/// enough to pay for it.
bool sums_stay_short(const MatMulState& s) {
  constexpr int64_t kEnough = 80;  // vectors of the result
  const GemmTiles& tiles = gemm_tiles();
  return s.k <= (tiles.lanes >= 16 ? 12 : kMaxShort) && s.m > tiles.max_rows &&
         s.m * s.n >= kEnough * tiles.lanes;
}

/// Product `index` of the batch, of rows of A that lie lda apart. `room` is for B when it is not
/// packed yet; `fresh`: what it holds is of another B.
void multiply(const MatMulState& s, int64_t index, bool fresh, const float* a, int64_t lda,
              const float* all_b, float* room, float* c, const GemmEpilogue& epilogue) {
  const int64_t offset = s.b_at[static_cast<size_t>(index)];
  const int64_t row = s.b_row(), column = s.b_column();
  const float* b = all_b + offset;
  const std::byte* packed = nullptr;
  if (s.packed != nullptr) {
    const int64_t matrix = s.matrices == 1 ? 0 : offset / std::max<int64_t>(1, s.k * s.n);
    packed = s.packed + static_cast<size_t>(matrix) * s.packed_step;
  }
  if (s.bf16) {
    if (packed == nullptr) {
      auto* rounded = reinterpret_cast<std::byte*>(room);
      if (fresh) bf16_pack_b(b, row, column, s.k, s.n, s.alpha, rounded);
      packed = rounded;
    }
    return bf16_gemm(s.m, s.n, s.k, a, lda, packed, c, s.ldc, epilogue);
  }
  if (s.reads_turned) {
    const LyingB lies{row, column, s.alpha};
    const bool on_the_way = packed == nullptr && packs_on_the_way(s);
    if (packed == nullptr && !on_the_way && fresh) pack_b(b, row, column, s.k, s.n, s.alpha, room);
    const float* from = packed != nullptr ? reinterpret_cast<const float*>(packed)
                        : on_the_way      ? b
                                          : room;
    return gemm_turned(s.m, s.n, s.k, a, lda, from, on_the_way ? &lies : nullptr, c, s.ldc,
                       epilogue);
  }
  const bool dense = (lda == s.k || s.m == 1) && (s.ldc == s.n || s.m == 1);  // A and C
  const bool narrow = s.format == PanelFormat::kFloat32 && dense &&
                      gemm_narrow_fits(s.m, s.n, s.k, epilogue) && !gemm_columns_fits(s.n, s.k);
  // Rows of few columns share vectors there.
  const bool shared = narrow && s.n > 1 && s.n < 8;
  if (packed == nullptr && s.k == 1 && epilogue.is_plain() && !shared)
    return gemm_outer(s.m, s.n, s.alpha, a, lda, b, c, s.ldc);
  // Short columns leave most of a vector idle.
  if (packed == nullptr && s.m * s.n * s.k <= kTiny && epilogue.is_plain() &&
      ((s.n == 1 && s.k < 8) || !gemm_small_fits(s.m, s.n, s.k, epilogue)))
    return tiny_product(s, a, lda, b, c);
  // One column: the rows of A are those of a matrix that is turned. Short ones share vectors.
  constexpr int64_t kShort = 4;
  if (packed == nullptr && s.n == 1 && s.trans_b && !(narrow && s.k <= kShort) &&
      (s.ldc == 1 || s.m == 1) && epilogue.is_plain() && gemm_dots_fits(1, epilogue))
    return gemm_dots(1, s.m, s.k, b, s.k, a, lda, s.alpha, c, s.m, epilogue);
  if (s.columns)
    return gemm_columns(s.m, s.n, s.k, a, lda, reinterpret_cast<const float*>(packed), s.k, 1, c,
                        s.ldc, epilogue);
  if (packed != nullptr && s.digits)
    return gemm_digits(s.m, a, lda, packed, *s.digits, c, s.ldc, epilogue);
  if (narrow) {
    if (packed == nullptr)
      return gemm_narrow(s.m, s.n, s.k, a, b, row, column, s.alpha, c, epilogue);
    const auto* panels = reinterpret_cast<const float*>(packed);
    return gemm_narrow(s.m, s.n, s.k, a, panels, gemm_tiles().panel(), 1, 1, c, epilogue);
  }
  if (makes_digits(s)) {
    const PanelsOfB panels{s, packed, b};
    return gemm_digits(s.m, s.n, s.k, a, lda, {&PanelsOfB::panel, &panels}, c, s.ldc, epilogue);
  }
  if (packed != nullptr)
    return gemm(s.m, s.n, s.k, a, lda, packed, s.format, c, s.ldc, epilogue, s.halves);
  if (!s.trans_b && s.alpha == 1 && sums_stay_short(s))
    return gemm_unpacked(s.m, s.n, s.k, a, lda, b, s.ldb, c, s.ldc, epilogue);
  if (gemm_small_fits(s.m, s.n, s.k, epilogue))
    return gemm_small(s.m, s.n, s.k, a, lda, b, s.ldb, s.trans_b, s.alpha, c, s.ldc, epilogue);
  if (s.trans_b && gemm_turned_rows_fits(s.m, s.n, s.k))
    return gemm_turned_rows({a, lda, s.m, b, s.ldb, s.n, s.k, c, s.ldc}, s.alpha, epilogue);
  if (s.trans_b && gemm_dots_fits(s.m, epilogue))
    return gemm_dots(s.m, s.n, s.k, a, lda, b, s.ldb, s.alpha, c, s.ldc, epilogue);
  if (!s.trans_b && gemm_few_fits(s.m, s.n))
    return gemm_few(s.m, s.n, s.k, a, lda, b, s.ldb, s.alpha, c, s.ldc, epilogue);
  if (gemm_columns_fits(s.n, s.k)) {
    const float* columns = b;
    if (!s.trans_b) {
      float* const turned = thread_floats(3, static_cast<size_t>(s.n * s.k));
      transpose_tile(reinterpret_cast<const std::byte*>(b), s.ldb,
                     reinterpret_cast<std::byte*>(turned), s.k, s.k, s.n, sizeof(float));
      columns = turned;
    }
    return gemm_columns(s.m, s.n, s.k, a, lda, columns, s.trans_b ? s.ldb : s.k, s.alpha, c, s.ldc,
                        epilogue);
  }
  // Packing pays when B is used by many rows and is not near anyway; it must be done when B is
  // turned.
  constexpr int64_t kNear = 8192;  // floats
  if (!s.trans_b && s.alpha == 1 &&
      (s.m <= 2 * gemm_tiles().max_rows || (s.k * s.n <= kNear && s.ldb == s.n)))
    return gemm_unpacked(s.m, s.n, s.k, a, lda, b, s.ldb, c, s.ldc, epilogue);
  if (packs_on_the_way(s))
    return gemm_packing(s.m, s.n, s.k, a, lda, b, row, column, s.alpha, c, s.ldc, epilogue);
  if (fresh) pack_b(b, row, column, s.k, s.n, s.alpha, room);
  gemm(s.m, s.n, s.k, a, lda, room, c, s.ldc, epilogue);
}

Status run_matmul(KernelRun& run) {
  const auto& s = run.state<MatMulState>();
  TRY(Tensor * y, run.output(0, DType::kFloat32, s.output));
  if (y->size() == 0) return ok();
  auto* scratch = reinterpret_cast<float*>(run.scratch());
  float* turned = scratch;
  float* bias_room = turned + round16(static_cast<int64_t>(s.a_floats));
  const float* a = run.data<float>(0);
  const float* b = run.data<float>(1);
  float* c = y->data<float>();
  using Addend = MatMulState::Addend;
  GemmEpilogue epilogue;
  const ActivationPost post(s.activation);
  post.set(epilogue);
  float* packed = bias_room;
  if (s.bias != Addend::kNone) {
    const float* bias = run.data<float>(2);
    if (s.bias == Addend::kScalar) {
      std::fill_n(bias_room, s.n, s.beta * bias[0]);
      bias = bias_room;
    } else if (s.beta != 1) {
      const int64_t size = run.input(2).size();
      for (int64_t j = 0; j < size; ++j) bias_room[j] = s.beta * bias[j];
      bias = bias_room;
    }
    packed += s.bias_floats();
    if (s.bias == Addend::kColumns || s.bias == Addend::kScalar) {
      epilogue.col_bias = bias;
    } else if (s.bias == Addend::kRows) {
      epilogue.row_bias = bias;
    } else {
      epilogue.init = bias;
      epilogue.ldi = s.ldc;
    }
  }
  // Weights of a small network that are a little more than the second cache holds: what a run reads
  // first is what the one before has left there.
  if (s.packed != nullptr && s.m <= kTurnedRows &&
      s.packed_step <= static_cast<size_t>(2 * near_bytes()))
    epilogue.backwards = s.turns.fetch_add(1, std::memory_order_relaxed) % 2 != 0;
  const float* residual = run.has_input(3) ? run.data<float>(3) : nullptr;
  // Product i, with what its matrices need: A turned, B packed.
  const auto product = [&](int64_t i, bool fresh, float* room_a, float* room_b) {
    const auto at = static_cast<size_t>(i);
    const float* from = a + s.a_at[at];
    int64_t lda = s.lda;
    if (s.a_floats != 0) {
      turn(from, s.lda, s.k, s.m, room_a);
      from = room_a;
      lda = s.k;
    }
    GemmEpilogue e = epilogue;
    if (residual != nullptr) {
      e.init = residual + s.c_at[at];
      e.ldi = s.ldc;
    }
    multiply(s, i, fresh, from, lda, b, room_b, c + s.c_at[at], e);
  };
  const auto fresh = [&](int64_t i, int64_t first) {
    const auto at = static_cast<size_t>(i);
    return i == first || s.b_at[at] != s.b_at[at - 1];
  };
  // Many small products: each thread takes whole ones.
  const int64_t batch = s.batch(), work = std::max<int64_t>(1, s.m * s.n * s.k);
  constexpr int64_t kSmall = int64_t{1} << 21;
  // Small results side by side get their activation some at a time.
  constexpr int64_t kSmallResult = 512, kTogether = 4096;
  const int64_t result = s.m * s.n;
  const bool apart = batch >= 2 * thread_count() &&
                     (s.packed == nullptr || s.matrices > 1 || work <= kSmall) &&
                     (s.a_floats == 0 || work <= kSmall);
  bool later = apart && epilogue.post != nullptr && result <= kSmallResult && s.ldc == s.n;
  for (int64_t i = 0; later && i < batch; ++i) later = s.c_at[static_cast<size_t>(i)] == i * result;
  if (later) epilogue.post = nullptr;
  if (apart) {
    parallel(batch, std::max<int64_t>(1, 100'000 / work), [&](int64_t begin, int64_t end) {
      const int64_t floats_a = round16(static_cast<int64_t>(s.a_floats));
      const int64_t floats_b = s.packed != nullptr ? 0 : room_floats(s);
      float* const own = thread_floats(2, static_cast<size_t>(floats_a + floats_b));
      int64_t done = begin;
      for (int64_t i = begin; i < end; ++i) {
        product(i, fresh(i, begin), own, own + floats_a);
        if (!later || (i + 1 < end && (i + 1 - done) * result < kTogether)) continue;
        apply_activation(s.activation, c + done * result, (i + 1 - done) * result);
        done = i + 1;
      }
    });
    return ok();
  }
  for (int64_t i = 0; i < batch; ++i) product(i, fresh(i, 0), turned, packed);
  return ok();
}

}  // namespace

KERNEL(matmul_f32) = {
    .name = "matmul_f32",
    .op = "MatMul",
    .supports = supports_matmul<false>,
    .prepare = prepare_matmul<false>,
    .run = products<run_matmul>,
    .unaligned = 1u << 1,
};

KERNEL(gemm_f32) = {
    .name = "gemm_f32",
    .op = "Gemm",
    .supports = supports_matmul<true>,
    .prepare = prepare_matmul<true>,
    .run = products<run_matmul>,
    .unaligned = 1u << 1,
};

KERNEL(fused_matmul_f32) = {
    .name = "fused_matmul_f32",
    .op = "MatMul",
    .domain = "ai.tombolo",
    .supports = supports_matmul<false>,
    .prepare = prepare_matmul<false>,
    .run = products<run_matmul>,
    .in_place = 1u << 3,
    .unaligned = 1u << 1,
};

KERNEL(matmul_bf16) = {
    .name = "matmul_bf16",
    .op = "MatMul",
    .supports = supports_matmul_bf16<false>,
    .prepare = prepare_matmul<false, true>,
    .run = products<run_matmul>,
    .unaligned = 1u << 1,
    .priority = 1,
};

KERNEL(gemm_bf16) = {
    .name = "gemm_bf16",
    .op = "Gemm",
    .supports = supports_matmul_bf16<true>,
    .prepare = prepare_matmul<true, true>,
    .run = products<run_matmul>,
    .unaligned = 1u << 1,
    .priority = 1,
};

KERNEL(fused_matmul_bf16) = {
    .name = "fused_matmul_bf16",
    .op = "MatMul",
    .domain = "ai.tombolo",
    .supports = supports_matmul_bf16<false>,
    .prepare = prepare_matmul<false, true>,
    .run = products<run_matmul>,
    .in_place = 1u << 3,
    .unaligned = 1u << 1,
    .priority = 1,
};

}  // namespace tombolo
