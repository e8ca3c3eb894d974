// GroupQueryAttention and SparseAttention of com.microsoft in floats, as decoders are exported:
// separate query, key and value, a cache of floats or of codes, rotary embedding. How far a
// sequence is comes with the run, and so does the layout of blocks that SparseAttention's heads
// see.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "ops/microsoft/kv_cache.h"
#include "runtime/kernels/attention/attention.h"
#include "runtime/kernels/attention/rotate.h"
#include "runtime/kernels/elementwise/binary.h"
#include "runtime/kernels/isa.h"
#include "runtime/kernels/kernel.h"
#include "runtime/kernels/matmul/gemm.h"
#include "runtime/kernels/quant/unpack_codes.h"

namespace tombolo {
namespace {

constexpr size_t kPastKey = 3, kPastValue = 4;
constexpr size_t kPositions = 9, kScoreBias = 10, kHeadSink = 11;
constexpr size_t kKeyScale = 12, kValueScale = 13;
constexpr size_t kQueryNorm = 14, kKeyNorm = 15;
constexpr size_t kBlockRows = 5, kBlockColumns = 6;  // of SparseAttention

/// Where the other inputs are.
struct Ports {
  size_t lengths = 5, total = 6, cosines = 7, sines = 8;
};

struct GroupQueryState final : KernelState {
  Ports ports;
  bool sparse = false;
  int64_t layouts = 0, blocks = 0, block = 1, listed = 0;  ///< listed: columns of a layout
  int64_t batch = 1, rows = 1, heads = 1, kv_heads = 1, size = 1;
  int64_t capacity = 0;  ///< steps of the cache
  int64_t half = 0;      ///< pairs of features that turn
  int64_t positions = 0;
  bool has_past = false, causal = true, interleaved = false;
  bool packed = false;  ///< queries, keys and values lie behind one another
  int64_t window = -1;  ///< keys that a query sees; -1: all
  bool evicts = false;  ///< the cache lets go of steps that no query sees any more
  bool sink = false;    ///< one more score of 0 where no sinks are given
  bool positions_given = false, norms = false;
  float scale = 1, softcap = 0, epsilon = 0;
  int bits = 32;  ///< of an element of the cache: floats, or codes of 8 or 4 bits
  bool coded() const { return bits != 32; }
  DType cached() const {
    return bits == 32 ? DType::kFloat32 : bits == 8 ? DType::kInt8 : DType::kUInt8;
  }
  /// Elements of a step of a head in the cache.
  int64_t cached_size() const { return bits == 4 ? size / 2 : size; }
  int64_t width() const { return (heads + (packed ? 2 * kv_heads : 0)) * size; }
  int64_t kv_width() const { return packed ? width() : kv_heads * size; }
};

/// Keys and values as codes, both of them.
bool plan_codes(const KernelQuery& q, GroupQueryState& s) {
  const Text keys = q.attributes.get_string("k_quant_type", "NONE"),
             values = q.attributes.get_string("v_quant_type", "NONE");
  const auto plain = [](Text kind) { return kind.empty() || kind == "NONE"; };
  if (plain(keys) && plain(values)) return true;
  if (s.sparse || plain(keys) || plain(values)) return false;
  const int64_t bits = q.attributes.get_int("kv_cache_bit_width", 8);
  if (bits != 8 && (bits != 4 || s.size % 2 != 0)) return false;
  s.bits = static_cast<int>(bits);
  for (const size_t i : {kKeyScale, kValueScale}) {
    const Text kind = i == kKeyScale ? keys : values;
    const bool channel = kind == "PER_CHANNEL";
    if ((!channel && kind != "PER_TENSOR") || !q.has_input(i) ||
        q.inputs[i].size() != (channel ? s.kv_heads * s.size : 1))
      return false;
  }
  return true;
}

constexpr int64_t kMostSeen = int64_t{1} << 25;  ///< bytes that say who sees whom

bool plan_layout(const KernelQuery& q, GroupQueryState& s) {
  for (const size_t i : {kBlockRows, kBlockColumns})
    if (!q.has_input(i) || q.dtype(i) != DType::kInt32 || q.dims(i).size() != 2 ||
        q.dims(i)[0] != q.dims(kBlockRows)[0])
      return false;
  s.block = q.attributes.get_int("sparse_block_size", 0);
  s.layouts = q.dims(kBlockRows)[0];
  s.blocks = q.dims(kBlockRows)[1] - 1;
  s.listed = q.dims(kBlockColumns)[1];
  return s.block >= 1 && s.layouts >= 1 && s.blocks >= 1 && s.blocks <= 1 << 14 &&
         s.block <= 1 << 20 && s.batch * s.heads * s.rows * s.capacity <= kMostSeen;
}

bool plan_group_query(const KernelQuery& q, GroupQueryState& s) {
  const auto& attributes = q.attributes;
  s.sparse = q.node.op_type() == "SparseAttention";
  if (s.sparse) s.ports = {8, 7, 9, 10};
  const size_t lengths = s.ports.lengths, total = s.ports.total;
  if (active_isa() == Isa::kScalar || q.inputs.size() <= std::max(lengths, total) ||
      q.wants_output(3))
    return false;
  s.packed = !q.has_input(1) && !q.has_input(2);
  for (size_t i = 0; i < (s.packed ? 1 : 3); ++i)
    if (q.dtype(i) != DType::kFloat32 || q.dims(i).size() != 3 || element_count(q.dims(i)) < 1)
      return false;
  for (size_t i = s.ports.sines + 1; i < q.inputs.size(); ++i) {
    const bool known =
        !s.sparse && (i == kPositions || i == kScoreBias || i == kHeadSink || i == kQueryNorm ||
                      i == kKeyNorm || i == kKeyScale || i == kValueScale);
    if (q.has_input(i) && !known) return false;
    if (q.has_input(i) && q.dtype(i) != (i == kPositions ? DType::kInt64 : DType::kFloat32))
      return false;
  }
  s.causal = s.sparse || attributes.get_int("causal", 1) != 0;
  if (!s.sparse && s.causal) s.window = attributes.get_int("local_window_size", -1);
  s.sink = !s.sparse && attributes.get_int("smooth_softmax", -1) == 1;
  s.heads = attributes.get_int("num_heads", 0);
  s.kv_heads = attributes.get_int("kv_num_heads", 0);
  if (s.heads < 1 || s.kv_heads < 1 || s.heads % s.kv_heads != 0) return false;
  s.batch = q.dims(0)[0];
  s.rows = q.dims(0)[1];
  s.size = q.dims(0)[2] / (s.heads + (s.packed ? 2 * s.kv_heads : 0));
  if (s.size < 1 || s.width() != q.dims(0)[2]) return false;
  for (size_t i = 1; i < 3 && !s.packed; ++i)
    if (Dims(q.dims(i)) != Dims{s.batch, s.rows, s.kv_heads * s.size}) return false;
  if (!plan_codes(q, s) || q.has_input(kPastKey) != q.has_input(kPastValue)) return false;
  s.has_past = q.has_input(kPastKey);
  if (s.has_past) {
    if (q.dims(kPastKey).size() != 4) return false;
    s.capacity = q.dims(kPastKey)[2];
    for (const size_t i : {kPastKey, kPastValue})
      if (q.dtype(i) != s.cached() ||
          Dims(q.dims(i)) != Dims{s.batch, s.kv_heads, s.capacity, s.cached_size()})
        return false;
  }
  s.evicts = !s.sparse && attributes.get_int("sliding_window_cache", 0) != 0;
  if (s.evicts && (!s.has_past || !s.causal || s.window < 1 || s.window > s.capacity)) return false;
  for (const size_t i : {lengths, total})
    if (!q.has_input(i) || (q.dtype(i) != DType::kInt32 && q.dtype(i) != DType::kInt64))
      return false;
  if (element_count(q.dims(lengths)) != s.batch || element_count(q.dims(total)) != 1) return false;
  if (s.sparse && (!s.has_past || !plan_layout(q, s))) return false;
  if (!s.sparse) {
    s.positions_given = q.has_input(kPositions);
    if (s.positions_given && Dims(q.dims(kPositions)) != Dims{s.batch, s.rows}) return false;
    if (q.has_input(kHeadSink) && Dims(q.dims(kHeadSink)) != Dims{s.heads}) return false;
    for (const size_t i : {kQueryNorm, kKeyNorm})
      if (q.has_input(i) && Dims(q.dims(i)) != Dims{s.size}) return false;
    s.norms = q.has_input(kQueryNorm) || q.has_input(kKeyNorm);
    s.epsilon = attributes.get_float("qk_norm_epsilon", 1e-6f);
    if (q.has_input(kScoreBias)) {
      const auto bias = q.dims(kScoreBias);
      if (bias.size() != 4 || (bias[0] != 1 && bias[0] != s.batch) ||
          (bias[1] != 1 && bias[1] != s.heads) || bias[2] != s.rows)
        return false;
    }
  }
  const float scale = attributes.get_float("scale", 0);
  s.scale = scale != 0 ? scale : static_cast<float>(1 / std::sqrt(static_cast<double>(s.size)));
  s.softcap = s.sparse ? 0 : attributes.get_float("softcap", 0);
  s.interleaved = attributes.get_int("rotary_interleaved", 0) != 0;
  if (attributes.get_int("do_rotary", 0) == 0) return true;
  for (const size_t i : {s.ports.cosines, s.ports.sines})
    if (!q.has_input(i) || q.dtype(i) != DType::kFloat32 || q.dims(i).size() != 2 ||
        Dims(q.dims(i)) != Dims(q.dims(s.ports.cosines)))
      return false;
  s.positions = q.dims(s.ports.cosines)[0];
  s.half = q.dims(s.ports.cosines)[1];
  return 2 * s.half <= s.size;
}

bool supports_group_query(const KernelQuery& query) {
  GroupQueryState state;
  return plan_group_query(query, state);
}

Result<std::unique_ptr<KernelState>> prepare_group_query(const PrepareContext& context) {
  auto state = std::make_unique<GroupQueryState>();
  plan_group_query(context, *state);
  const GroupQueryState& s = *state;
  state->scratch_bytes = static_cast<size_t>(s.batch * s.rows * s.heads * s.size) * sizeof(float);
  return state;
}

/// How far each sequence is; see the reference kernel.
struct Progress {
  int64_t columns = 0;
  /// Steps in columns and, of them, from the cache.
  std::vector<int64_t> totals, past;
  std::vector<int64_t> gone;     ///< steps before the first column
  std::vector<int64_t> skipped;  ///< of the cache that are given, steps before the first column
  std::vector<int64_t> stays;    ///< steps of the cache afterwards
  bool first = false;
  bool staged = false;  ///< there are more columns than the cache has room for
};

/// Of caches that let go of steps: columns are what is in the cache afterwards. If queries see
/// earlier ones, they are what is in it before and all new ones.
void find_columns(const GroupQueryState& s, Progress& p) {
  p.columns = s.capacity;
  std::vector<int64_t> had;
  for (size_t b = 0; b < p.totals.size(); ++b) {
    const int64_t past = p.past[b];
    had.push_back(ops::resident_steps(past, s.capacity, s.window));
    p.stays.push_back(ops::resident_steps(p.totals[b], s.capacity, s.window));
    if (std::max<int64_t>(0, past - s.window + 1) < p.totals[b] - p.stays[b] ||
        past + s.rows > p.totals[b] - p.stays[b] + s.capacity)
      p.staged = true;
  }
  for (size_t b = 0; b < p.totals.size(); ++b) {
    const int64_t before = p.past[b] - had[b];  // of the first step that is given
    const int64_t first = p.staged ? before : p.totals[b] - p.stays[b];
    p.gone.push_back(first);
    p.skipped.push_back(first - before);
    p.past[b] -= first;
    p.totals[b] -= first;
    if (p.staged) p.columns = std::max(p.columns, p.past[b] + s.rows);
  }
}

Result<Progress> read_progress(const KernelRun& run, const GroupQueryState& s) {
  Progress result;
  const int64_t most = run.input(s.ports.total).get_int64(0);
  result.first = most == s.rows;
  result.columns = s.sparse ? s.capacity : std::max(most, s.capacity);
  if (most < 1 || most > int64_t{1} << 31)
    return runtime_error("total_sequence_length is " + std::to_string(most));
  for (int64_t b = 0; b < s.batch; ++b) {
    const int64_t total = run.input(s.ports.lengths).get_int64(b) + (s.sparse ? 0 : 1);
    const int64_t past = s.has_past && !result.first ? total - s.rows : 0;
    if (total < 1 || total > most || past < 0 || (past > s.capacity && !s.evicts) ||
        (!s.has_past && total > s.rows) ||
        (s.sparse && std::max(total, past + s.rows) > s.capacity))
      return runtime_error("seqlens_k has the value " + std::to_string(total - 1) + " with " +
                           std::to_string(s.rows) + " new steps, a cache of " +
                           std::to_string(s.capacity) + " and a total of " + std::to_string(most));
    result.totals.push_back(total);
    result.past.push_back(past);
    // Padding behind the end of a prompt has position 1.
    const int64_t last = std::max(past + s.rows - 1, int64_t{1});
    const int64_t reached =
        result.first && s.rows > total ? std::max(total - 1, int64_t{1}) : past + s.rows - 1;
    if (s.positions_given) {
      for (int64_t r = 0; r < s.rows && s.half != 0; ++r) {
        const int64_t place = run.data<int64_t>(kPositions)[b * s.rows + r];
        if (place < 0 || place >= s.positions)
          return runtime_error("position " + std::to_string(place) + ", but cos_cache has " +
                               std::to_string(s.positions) + " rows");
      }
    } else if (s.half != 0 && std::min(last, reached) >= s.positions)
      return runtime_error("position " + std::to_string(std::min(last, reached)) +
                           ", but cos_cache has " + std::to_string(s.positions) + " rows");
  }
  if (s.evicts) {
    find_columns(s, result);
  } else {
    result.gone.resize(result.past.size());
    result.skipped = result.gone;
  }
  return result;
}

/// For each sequence, head and query a byte for each key that it sees: [batch, heads, rows,
/// columns]. Causality and lengths come on top.
Result<Tensor> read_layout(const KernelRun& run, const GroupQueryState& s,
                           const Progress& progress) {
  const int32_t *ends = run.data<int32_t>(kBlockRows), *list = run.data<int32_t>(kBlockColumns);
  for (int64_t i = 0; i < s.layouts * (s.blocks + 1); ++i) {
    const int64_t before = i % (s.blocks + 1) == 0 ? 0 : ends[i - 1];
    if (ends[i] < before || ends[i] > s.listed)
      return runtime_error("block_row_indices has the value " + std::to_string(ends[i]) +
                           ", there are " + std::to_string(s.listed) + " columns");
  }
  const int64_t dims[] = {s.batch, s.heads, s.rows, progress.columns};
  TRY(Tensor seen, Tensor::allocate(DType::kBool, dims));
  auto* to = seen.data<uint8_t>();
  std::memset(to, 0, static_cast<size_t>(seen.size()));
  for (int64_t i = 0; i < s.batch * s.heads * s.rows; ++i, to += progress.columns) {
    const int64_t place = progress.past[static_cast<size_t>(i / s.rows / s.heads)] + i % s.rows;
    const int64_t layout = i / s.rows % s.heads % s.layouts, row = place / s.block;
    if (row >= s.blocks) continue;
    const int32_t* end = ends + layout * (s.blocks + 1) + row;
    for (int64_t j = end[0]; j < end[1]; ++j) {
      const int64_t column = list[layout * s.listed + j];
      if (column < 0 || column >= s.blocks)
        return runtime_error("block_col_indices has the value " + std::to_string(column) +
                             ", there are " + std::to_string(s.blocks) + " blocks");
      const int64_t first = column * s.block;
      if (first < progress.columns)
        std::memset(to + first, 1,
                    static_cast<size_t>(std::min(s.block, progress.columns - first)));
    }
  }
  return seen;
}

/// attention_bias, whose columns are those of all steps, for the columns that there are.
Result<Tensor> bias_of_columns(const GroupQueryState& s, const Progress& progress,
                               const Tensor& bias) {
  const int64_t heads = bias.dim(1), given = bias.dim(3), columns = progress.columns;
  TRY(Tensor own, Tensor::allocate(DType::kFloat32, {{s.batch, heads, s.rows, columns}}));
  auto* to = own.data<float>();
  for (int64_t i = 0; i < s.batch * heads * s.rows; ++i, to += columns) {
    const int64_t b = i / (heads * s.rows), row = bias.dim(0) == 1 ? i % (heads * s.rows) : i;
    const int64_t gone = progress.gone[static_cast<size_t>(b)];
    const int64_t count = std::min(columns, given - gone);
    std::copy_n(bias.data<float>() + row * given + gone, count, to);
    std::fill_n(to + count, columns - count, 0.0f);
  }
  return own;
}

/// One head, normalised by its root mean square where there is a weight, and turned.
void prepare_head(const GroupQueryState& s, const float* from, const float* weight,
                  const float* cosine, const float* sine, float* to) {
  if (weight != nullptr) {
    float* normal = thread_floats(3, static_cast<size_t>(s.size));
    float squares = 0;
    dot_rows(from, from, s.size, 1, s.size, &squares);
    const float inverse = 1 / std::sqrt(squares / static_cast<float>(s.size) + s.epsilon);
    for (int64_t i = 0; i < s.size; ++i) normal[i] = from[i] * inverse * weight[i];
    from = normal;
  }
  if (cosine != nullptr)
    rotate_row(from, to, s.size, s.half, cosine, sine, s.interleaved);
  else
    std::memcpy(to, from, static_cast<size_t>(s.size) * sizeof(float));
}

/// The codes of one head of the cache, and the floats that they stand for.
class CodedHead {
 public:
  /// `scales`: one for each feature, or one.
  CodedHead(const GroupQueryState& s, const float* scales, bool channel)
      : s_(s), scales_(scales), channel_(channel) {
    for (int64_t i = 0; channel && i < kTogether * s.size; ++i)
      spread_.push_back(scales[i % s.size]);
  }

  /// `steps` steps from `codes` on.
  void decode(const uint8_t* codes, int64_t steps, float* to) const {
    if (steps < 1) return;
    const int64_t n = steps * s_.size;
    const float one = 1, zero = s_.bits == 4 ? 8 : 0;
    unpack_blocks({codes, 0, s_.bits, s_.bits == 8}, n, n, channel_ ? &one : scales_, &zero, to);
    const int64_t block = kTogether * s_.size;
    for (int64_t i = 0; channel_ && i < n; i += block)
      multiply_(to + i, false, spread_.data(), false, to + i, std::min(block, n - i));
  }
  /// One step.
  void encode(const float* x, uint8_t* codes) const {
    const double low = s_.bits == 8 ? -128 : -8, high = -low - 1;
    const auto code = [&](int64_t i) {
      const double exact =
          static_cast<double>(x[i]) / static_cast<double>(scales_[channel_ ? i : 0]);
      const double inside = std::min(std::max(exact == exact ? exact : 0.0, low), high);
      // To the nearest whole number, of two the even one: doubles of this size are whole.
      constexpr double kWhole = 6755399441055744.0;
      return static_cast<int>((inside + kWhole) - kWhole);
    };
    for (int64_t i = 0; s_.bits == 8 && i < s_.size; ++i) codes[i] = static_cast<uint8_t>(code(i));
    for (int64_t i = 0; s_.bits == 4 && i < s_.size; i += 2)
      codes[i / 2] = static_cast<uint8_t>((code(i) + 8) | (code(i + 1) + 8) << 4);
  }

 private:
  static constexpr int64_t kTogether = 8;  ///< steps that are multiplied at once
  const GroupQueryState& s_;
  const float* scales_;
  bool channel_;
  std::vector<float> spread_;
  BinaryFn* multiply_ = binary_fn(Binary::kMul, DType::kFloat32);
};

/// Steps of a head of the cache: what is there, then new ones, then nothing that counts.
struct Steps {
  int64_t from, old, fresh, to;  ///< old, fresh: where these end
  Steps(int64_t begin, int64_t end, int64_t past, int64_t room)
      : from(begin),
        old(std::clamp(past, begin, end)),
        fresh(std::clamp(past + room, old, end)),
        to(end) {}
};

/// Steps of head i of the coded keys (`which` is 1) or values as codes to `codes`, which may be
/// null, and the floats of those that count to `to`. `past`: steps of the cache, without the first
/// ones that are `skipped`.
template <typename NewStep>
void write_codes(const KernelRun& run, const GroupQueryState& s, size_t which, int64_t i,
                 const Steps& steps, int64_t past, int64_t skipped, uint8_t* codes, float* to,
                 NewStep&& new_step) {
  const size_t input = which == 1 ? kKeyScale : kValueScale;
  const bool channel = run.input(input).size() != 1;
  const CodedHead head(s, run.data<float>(input) + (channel ? i % s.kv_heads * s.size : 0),
                       channel);
  const int64_t width = s.cached_size();
  if (steps.from < steps.old) {
    const auto* old = reinterpret_cast<const uint8_t*>(run.data<std::byte>(which + 2)) +
                      (i * s.capacity + skipped + steps.from) * width;
    const int64_t count = steps.old - steps.from;
    head.decode(old, count, to);
    if (codes != nullptr) std::memcpy(codes, old, static_cast<size_t>(count * width));
  }
  for (int64_t r = steps.old; r < steps.fresh; ++r) {
    float* floats = to + (r - steps.from) * s.size;
    std::vector<uint8_t> step(static_cast<size_t>(width));
    new_step(r - past, floats);
    head.encode(floats, step.data());
    head.decode(step.data(), 1, floats);
    if (codes != nullptr) std::copy(step.begin(), step.end(), codes + (r - steps.from) * width);
  }
  if (codes != nullptr)
    std::memset(codes + (steps.fresh - steps.from) * width, 0,
                static_cast<size_t>((steps.to - steps.fresh) * width));
}

/// What stays of all columns of the keys or values. What lies behind them may be anything.
void keep_last_steps(const GroupQueryState& s, const Progress& progress, const Tensor& all,
                     Tensor& kept) {
  const auto step = static_cast<int64_t>(bytes_of(s.cached())) * s.cached_size();
  for (int64_t i = 0; i < s.batch * s.kv_heads; ++i) {
    const auto b = static_cast<size_t>(i / s.kv_heads);
    const int64_t count = progress.stays[b], first = progress.totals[b] - count;
    std::byte* const to = kept.data<std::byte>() + i * s.capacity * step;
    std::memcpy(to, all.data<std::byte>() + (i * progress.columns + first) * step,
                static_cast<size_t>(count * step));
  }
}

Status run_group_query(KernelRun& run) {
  const auto& s = run.state<GroupQueryState>();
  TRY(const Progress progress, read_progress(run, s));
  const int64_t columns = progress.columns;
  TRY(Tensor * y, run.output(0, DType::kFloat32, {{s.batch, s.rows, s.heads * s.size}}));
  const int64_t cache[] = {s.batch, s.kv_heads, columns, s.size};
  // Where there are more columns than the cache has room for, what stays of them is copied there.
  Tensor rooms[2], staged[2], *kept[2] = {}, *codes[2] = {};
  for (size_t i = 0; i < 2; ++i) {
    const int64_t width = s.cached_size();
    if (run.wants_output(i + 1)) {
      const int64_t steps = s.evicts ? s.capacity : columns;
      TRY(kept[i], run.output(i + 1, s.cached(), {{s.batch, s.kv_heads, steps, width}}));
    }
    if (s.coded()) codes[i] = kept[i];
    if (progress.staged && kept[i] != nullptr) {
      TRY(staged[i], Tensor::allocate(s.cached(), {{s.batch, s.kv_heads, columns, width}}));
      if (s.coded()) codes[i] = &staged[i];
    }
  }
  const float* cosine = s.half != 0 ? run.data<float>(s.ports.cosines) : nullptr;
  const float* sine = s.half != 0 ? run.data<float>(s.ports.sines) : nullptr;
  const auto angle = [&](int64_t b, int64_t row) {
    const auto at = static_cast<size_t>(b);
    if (s.positions_given) return run.data<int64_t>(kPositions)[b * s.rows + row] * s.half;
    const int64_t position = progress.gone[at] + progress.past[at] + row;
    return (progress.first && position >= progress.totals[at] ? 1 : position) * s.half;
  };
  const auto weight_at = [&](size_t i) {
    return s.norms && run.has_input(i) ? run.data<float>(i) : nullptr;
  };
  const float *query_norm = weight_at(kQueryNorm), *key_norm = weight_at(kKeyNorm);
  const auto bytes = static_cast<size_t>(s.size) * sizeof(float);
  // Of packed inputs the keys come behind the queries, and the values behind those.
  const float* news[3] = {run.data<float>(0)};
  for (const size_t i : {size_t(1), size_t(2)})
    news[i] = s.packed ? news[0] + (s.heads + static_cast<int64_t>(i - 1) * s.kv_heads) * s.size
                       : run.data<float>(i);
  const auto new_step = [&](size_t which, int64_t b, int64_t h, int64_t r, float* to) {
    const float* from = news[which] + (b * s.rows + r) * s.kv_width() + h * s.size;
    if (which == 1 && (s.half != 0 || key_norm != nullptr))
      prepare_head(s, from, key_norm, s.half != 0 ? cosine + angle(b, r) : nullptr,
                   sine + angle(b, r), to);
    else
      std::memcpy(to, from, bytes);
  };
  const float* query = news[0];
  int64_t query_step = s.width();
  if (s.half != 0 || query_norm != nullptr) {
    auto* turned = reinterpret_cast<float*>(run.scratch());
    const int64_t step = s.heads * s.size;
    run.parallel_for(s.batch * s.rows, std::max<int64_t>(1, 8192 / step),
                     [&](int64_t begin, int64_t end) {
                       for (int64_t i = begin; i < end; ++i) {
                         const int64_t at = angle(i / s.rows, i % s.rows);
                         for (int64_t h = 0; h < s.heads; ++h)
                           prepare_head(s, query + i * query_step + h * s.size, query_norm,
                                        s.half != 0 ? cosine + at : nullptr, sine + at,
                                        turned + i * step + h * s.size);
                       }
                     });
    query = turned;
    query_step = step;
  }
  AttentionShape shape;
  shape.batch = s.batch;
  shape.q_heads = s.heads;
  shape.kv_heads = s.kv_heads;
  shape.rows = s.rows;
  // Behind the steps that stay a cache that lets go of some may hold anything.
  shape.columns =
      s.evicts ? *std::max_element(progress.totals.begin(), progress.totals.end()) : columns;
  shape.size = shape.value_size = s.size;
  shape.q = {s.rows * query_step, s.size, query_step};
  shape.y = {s.rows * s.heads * s.size, s.size, s.heads * s.size};
  shape.k = shape.v = {s.kv_heads * columns * s.size, columns * s.size, s.size};
  shape.scale = s.scale;
  shape.softcap = s.softcap;
  shape.causal = s.causal;
  shape.last = s.window;
  shape.sink_head = 1;
  AttentionData data{query, nullptr, nullptr, y->data<float>()};
  const std::vector<float> zeros(s.sink ? static_cast<size_t>(s.heads) : 0);
  if (s.sink) data.sinks = zeros.data();
  if (!s.sparse && run.has_input(kHeadSink)) data.sinks = run.data<float>(kHeadSink);
  Tensor biases;
  if (!s.sparse && run.has_input(kScoreBias)) {
    const Tensor& bias = run.input(kScoreBias);
    if (bias.dim(3) != run.input(s.ports.total).get_int64(0))
      return runtime_error("attention_bias must have total_sequence_length columns, is " +
                           to_string(bias));
    const Tensor* mask = &bias;
    if (s.evicts) {
      TRY(biases, bias_of_columns(s, progress, bias));
      mask = &biases;
    }
    data.mask = mask->data<float>();
    shape.mask_columns = std::min(mask->dim(3), shape.columns);
    shape.mask_stride[2] = mask->dim(3);
    shape.mask_stride[1] = mask->dim(1) == 1 ? 0 : s.rows * mask->dim(3);
    shape.mask_stride[0] = mask->dim(0) == 1 ? 0 : mask->dim(1) * s.rows * mask->dim(3);
  }
  Tensor seen;
  if (s.sparse) {
    TRY(seen, read_layout(run, s, progress));
    data.bool_mask = seen.data<uint8_t>();
    shape.mask_columns = columns;
    shape.mask_stride[0] = s.heads * s.rows * columns;
    shape.mask_stride[1] = s.rows * columns;
    shape.mask_stride[2] = columns;
  }
  // One step: the heads that share keys are rows of one product, which reads the cache once.
  const int64_t group = s.heads / s.kv_heads;
  if (s.rows == 1 && group > 1) {
    shape.q_heads = s.kv_heads;
    shape.rows = group;
    shape.q = {query_step, group * s.size, s.size};
    shape.y = {s.heads * s.size, group * s.size, s.size};
    shape.mask_stride[2] = shape.mask_stride[1];
    shape.mask_stride[1] *= group;
    shape.sink_head = group;
    shape.sink_row = 1;
    shape.causal = false;  // all are at the last position, which sees all keys that count
  }
  shape.products = attention_products(shape, run.options().fast_math);
  data.offsets = progress.past.data();
  data.valid = progress.totals.data();
  const bool once = attention_reads_once(shape);
  float* cached[2] = {};
  for (const size_t i : {size_t(0), size_t(1)}) {
    if (!s.coded() && kept[i] != nullptr) {
      cached[i] = (progress.staged ? staged[i] : *kept[i]).data<float>();
    } else if (!once) {
      TRY(rooms[i], Tensor::allocate(DType::kFloat32, cache));
      cached[i] = rooms[i].data<float>();
    }
  }
  data.k = cached[0];
  data.v = cached[1];
  // Keys and values: the cache, what is new, zeros.
  const auto make = [&](int64_t i, bool is_value, int64_t from, int64_t to, bool keep) {
    const int64_t b = i / s.kv_heads, h = i % s.kv_heads;
    const auto sequence = static_cast<size_t>(b);
    const int64_t past = progress.past[sequence], skipped = progress.skipped[sequence];
    const int64_t room = s.evicts ? progress.totals[sequence] - past : columns - past;
    const Steps steps(from, to, past, std::min(s.rows, room));
    const size_t which = is_value ? 2 : 1;
    float* const all = cached[is_value];
    if (!s.coded() && all == nullptr && steps.old == to)  // nobody keeps them: read where they are
      return run.data<float>(which + 2) + (i * s.capacity + skipped + from) * s.size;
    float* const floats = all != nullptr && (keep || !s.coded())
                              ? all + (i * columns + from) * s.size
                              : thread_floats(2, static_cast<size_t>((to - from) * s.size));
    const auto fresh = [&](int64_t r, float* step) { new_step(which, b, h, r, step); };
    if (s.coded()) {
      Tensor* const out = codes[is_value];
      const int64_t width = s.cached_size();
      write_codes(run, s, which, i, steps, past, skipped,
                  out == nullptr ? nullptr
                                 : reinterpret_cast<uint8_t*>(out->data<std::byte>()) +
                                       (i * columns + from) * width,
                  floats, fresh);
    } else {
      if (steps.from < steps.old)
        std::memcpy(floats, run.data<float>(which + 2) + (i * s.capacity + skipped + from) * s.size,
                    static_cast<size_t>(steps.old - steps.from) * bytes);
      for (int64_t r = steps.old; r < steps.fresh; ++r)
        fresh(r - past, floats + (r - from) * s.size);
    }
    float* const rest = floats + (steps.fresh - from) * s.size;
    const size_t rest_bytes = static_cast<size_t>(to - steps.fresh) * bytes;
    if (s.sparse && rest_bytes > 0)  // its cache stays what it was
      std::memcpy(rest, run.data<float>(which + 2) + (i * s.capacity + steps.fresh) * s.size,
                  rest_bytes);
    else
      std::memset(rest, 0, rest_bytes);
    return static_cast<const float*>(floats);
  };
  data.argument = &make;
  data.make = [](const void* argument, int64_t line, bool is_value, int64_t from, int64_t to,
                 bool keep) {
    return (*static_cast<decltype(&make)>(argument))(line, is_value, from, to, keep);
  };
  // A tensor, whose memory is kept for the next run: that of the heap would come page by page.
  const int64_t floats[] = {static_cast<int64_t>(attention_scratch_floats(shape))};
  TRY(Tensor scratch, Tensor::allocate(DType::kFloat32, floats));
  run_attention(shape, data, scratch.data<float>());
  for (size_t i = 0; progress.staged && i < 2; ++i)
    if (kept[i] != nullptr) keep_last_steps(s, progress, staged[i], *kept[i]);
  return ok();
}

}  // namespace

KERNEL(group_query_attention_f32) = {
    .name = "group_query_attention_f32",
    .op = "GroupQueryAttention",
    .domain = "com.microsoft",
    .supports = supports_group_query,
    .prepare = prepare_group_query,
    .run = products<run_group_query>,
};
KERNEL(sparse_attention_f32) = {
    .name = "sparse_attention_f32",
    .op = "SparseAttention",
    .domain = "com.microsoft",
    .supports = supports_group_query,
    .prepare = prepare_group_query,
    .run = products<run_group_query>,
};

}  // namespace tombolo
