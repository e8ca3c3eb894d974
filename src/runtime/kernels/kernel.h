#pragma once

// How a fast kernel joins the runtime: a row that says for which operator it is, when it applies,
// how it is made ready and how it runs.
//
//   KERNEL(relu_f32) = {
//       .name = "relu_f32",
//       .op = "Relu",
//       .supports = supports_relu,
//       .run = run_relu,
//       .in_place = 1,
//   };
//
// The build lists the lines that start with KERNEL(symbol) under src/runtime/kernels, because
// self-registration is dropped from static libraries without a word. Among the rows of an operator
// the one with the highest `priority` that `supports` the node is taken; the reference kernel in
// src/ops comes last, and is the oracle. So a row may be as narrow as it likes.
//
// The executor asks when the node is first met with inputs of these types and shapes: they are all
// known then, only the data are not (but for constants, and for small inputs that `values` names).
// What `prepare` made is kept for these shapes and shared by all threads that run the session: it
// must not change afterwards.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <new>
#include <span>
#include <string_view>
#include <type_traits>

#include "base/float_control.h"
#include "base/result.h"
#include "base/thread_pool.h"
#include "ir/graph.h"
#include "ir/tensor.h"
#include "ops/attributes.h"
#include "ops/schema.h"

namespace tombolo {

/// What is known of an input when its node's kernel is chosen. Inputs that are no dense tensors
/// (sequences, strings, ...) keep the node on its reference kernel: rows never see them.
struct InputInfo {
  bool present = false;  ///< false: an optional input that is not given
  DType dtype = DType::kUndefined;
  std::span<const int64_t> dims;
  /// Its value, when that is the same in every run, or part of the choice (KernelRow::values).
  const Tensor* constant = nullptr;

  size_t rank() const { return dims.size(); }
  int64_t size() const { return element_count(dims); }
};

/// What the caller allows. Same for all nodes of a session.
struct KernelOptions {
  int threads = 1;         ///< at most so many take part in a parallel_for
  bool fast_math = false;  ///< rounded products may stand for float ones
  bool decodes = false;    ///< the model is given what it kept: most calls are for a row or a few
  /// Elements of all weights together.
  double weights = std::numeric_limits<double>::infinity();

  /// Whether a shared cache keeps all weights from run to run, of so many bytes each.
  bool stays_near(double bytes) const {
    constexpr double kShared = 8 << 20;
    return weights * bytes <= kShared;
  }
};

/// A node, its inputs and what the caller allows: all that decides which kernel runs.
struct KernelQuery {
  const Node& node;
  int opset;  ///< version of the node's domain under which it is read
  AttributeReader attributes;
  std::span<const InputInfo> inputs;
  KernelOptions options;

  bool has_input(size_t index) const { return index < inputs.size() && inputs[index].present; }
  DType dtype(size_t index) const {
    return has_input(index) ? inputs[index].dtype : DType::kUndefined;
  }
  std::span<const int64_t> dims(size_t index) const { return inputs[index].dims; }
  const Tensor* constant(size_t index) const {
    return has_input(index) ? inputs[index].constant : nullptr;
  }
  bool wants_output(size_t index) const { return node.output(index) != nullptr; }
};

/// What `prepare` found out: the algorithm, packed weights, sizes. Rows derive from it.
struct KernelState {
  virtual ~KernelState() = default;
  size_t scratch_bytes = 0;  ///< of memory that `run` gets for itself, 64-byte aligned
  /// Output 0 is the inputs back to back (Concat along the outermost axis that is not 1). The plan
  /// then lets their producers write there; `run` copies only what does not lie in place yet.
  bool joins_inputs = false;
};

/// What a pack is made of, and how.
struct PackRequest {
  std::span<const Tensor* const> sources;  ///< the weight, and what else goes into its pack
  /// Names layout and all that it depends on: "gemm_b_f32/avx2/t".
  std::string_view key;
  size_t bytes = 0;
  void (*fill)(void* argument, std::byte* target) = nullptr;
  void* argument = nullptr;
  bool worth_keeping = true;  ///< on disk, where the session has a place there
};

/// Where packed weights are kept: once a session, whatever the number of shapes and threads.
class PackStore {
 public:
  virtual ~PackStore() = default;
  /// `bytes` bytes, 64-byte aligned, filled by `fill` unless that was done before of these sources
  /// under this key. The pages of the model's file behind the sources are let go of afterwards.
  virtual Result<const std::byte*> get(const PackRequest& request) = 0;
  /// Lets go of the pages behind part of a source that was packed. They come back when touched.
  virtual void release(std::span<const std::byte> part) = 0;
};

/// What `prepare` sees beside the query.
struct PrepareContext : KernelQuery {
  PackStore& packs;

  /// Packed form of constant input `index` (see PackRequest). `fill(target)` writes it; it may
  /// call tombolo::parallel_for.
  template <typename Fill>
  Result<const std::byte*> packed(size_t index, std::string_view key, size_t bytes,
                                  Fill&& fill) const {
    return packed(std::array{inputs[index].constant}, key, bytes, fill);
  }
  /// The same of several constants, of which some may be absent (null).
  template <size_t kCount, typename Fill>
  Result<const std::byte*> packed(const std::array<const Tensor*, kCount>& constants,
                                  std::string_view key, size_t bytes, Fill&& fill) const {
    std::array<const Tensor*, kCount> sources = {};
    size_t count = 0;
    for (const Tensor* constant : constants)
      if (constant != nullptr) sources[count++] = constant;
    return packs.get({{sources.data(), count},
                      key,
                      bytes,
                      [](void* argument, std::byte* target) {
                        (*static_cast<std::remove_reference_t<Fill>*>(argument))(target);
                      },
                      &fill});
  }

  /// Constant input `index` for `fill` to read: where it lies, or in `room` if it is not aligned
  /// there or yet to be made. What is made of it must not outlive `room`.
  const Tensor& aligned_constant(size_t index, Tensor& room) const {
    const Tensor& tensor = *inputs[index].constant;
    if (tensor.aligned()) return tensor;
    auto copy = tensor.clone();
    if (!copy) throw std::bad_alloc();
    room = *std::move(copy);
    return room;
  }
};

/// What `run` sees: the tensors of one execution. Inputs have the types and shapes of the query.
/// Data of inputs and outputs are aligned for their element type, not more: a planned output may
/// lie inside the output of a later Concat.
class KernelRun {
 public:
  bool has_input(size_t index) const { return index < input_count_ && inputs_[index] != nullptr; }
  size_t input_count() const { return input_count_; }
  const Tensor& input(size_t index) const { return *inputs_[index]; }
  template <typename T>
  const T* data(size_t index) const {
    return inputs_[index]->data<T>();
  }
  size_t output_count() const { return output_count_; }
  bool wants_output(size_t index) const { return index < output_count_ && wanted_[index]; }

  /// Where to write output `index`, of this type and shape; uninitialised. It is where the plan
  /// wants it (perhaps the buffer of an input that `in_place` allows) or new memory. Every wanted
  /// output must be asked for exactly once. Call it before reading inputs starts to depend on it,
  /// never from inside a parallel loop.
  Result<Tensor*> output(size_t index, DType dtype, std::span<const int64_t> dims) {
    Tensor* planned = outputs_[index];
    if (planned != nullptr && planned->dtype() == dtype && same(planned->dims(), dims)) [[likely]]
      return planned;
    return new_output(index, dtype, dims);
  }
  /// Output `index` becomes a view of input `input`, from byte `offset` on. Costs nothing; later
  /// nodes get it like any other tensor.
  Status view(size_t index, size_t input, size_t offset, DType dtype,
              std::span<const int64_t> dims) {
    Tensor* planned = outputs_[index];
    if (planned != nullptr && planned->dtype() == dtype && same(planned->dims(), dims) &&
        planned->data<std::byte>() == inputs_[input]->data<std::byte>() + offset) [[likely]]
      return ok();
    return new_view(index, input, offset, dtype, dims);
  }

  /// `scratch_bytes` of the state.
  std::byte* scratch() const { return scratch_; }
  template <typename State>
  const State& state() const {
    return static_cast<const State&>(*state_);
  }
  const KernelOptions& options() const { return *options_; }

  /// Splits [0, count) among threads, about `grain` or more each: body(begin, end), concurrently.
  template <typename Body>
  void parallel_for(int64_t count, int64_t grain, Body&& body) const {
    if (count <= grain || options_->threads == 1) {
      if (count > 0) body(int64_t{0}, count);
      return;
    }
    tombolo::parallel_for(
        count, grain,
        [](void* argument, int64_t begin, int64_t end) {
          (*static_cast<std::remove_reference_t<Body>*>(argument))(begin, end);
        },
        &body);
  }

 protected:
  KernelRun() = default;
  ~KernelRun() = default;
  virtual Result<Tensor*> new_output(size_t index, DType dtype, std::span<const int64_t> dims) = 0;
  virtual Status new_view(size_t index, size_t input, size_t offset, DType dtype,
                          std::span<const int64_t> dims) = 0;

  static bool same(const Dims& a, std::span<const int64_t> b) {
    if (a.size() != b.size()) return false;
    for (size_t i = 0; i < b.size(); ++i)
      if (a[i] != b[i]) return false;
    return true;
  }

  const Tensor* const* inputs_ = nullptr;  ///< null where absent
  Tensor* const* outputs_ = nullptr;       ///< planned; null where not
  const bool* wanted_ = nullptr;
  uint32_t input_count_ = 0, output_count_ = 0;
  std::byte* scratch_ = nullptr;
  const KernelState* state_ = nullptr;
  const KernelOptions* options_ = nullptr;
};

/// One of several nodes that may run as one.
struct JoinedNode {
  const KernelState* state;  ///< what its row prepared
  size_t inputs;
  uint32_t present;  ///< bit i: input i is given
};

/// How nodes in a row run as one, each of which is the only one to read what the node before it
/// wrote, as its input 0. What lies between them is then never written to memory. Nodes join whose
/// rows have the same JoinedRow.
struct JoinedRow {
  Literal name;  ///< what profiles show
  /// What `run` takes for the first `taken` of the nodes, two at least; null where that gains
  /// nothing.
  std::unique_ptr<KernelState> (*prepare)(std::span<const JoinedNode> nodes,
                                          const KernelOptions& options, size_t& taken);
  /// Inputs are those of all nodes, one after the other, but for input 0 of all but the first;
  /// output 0 is that of the last.
  Status (*run)(KernelRun&);
};

struct KernelRow {
  Literal name;  ///< what profiles show
  Literal op;
  Literal domain = "";  ///< "" is ai.onnx; "com.microsoft"; "ai.tombolo" for the optimiser's own
  /// Whether the row computes this node, exactly as the reference does (see docs/numerics.md).
  bool (*supports)(const KernelQuery&);
  /// Optional: packs weights, chooses the algorithm, sizes the scratch memory. May return null.
  Result<std::unique_ptr<KernelState>> (*prepare)(const PrepareContext&) = nullptr;
  Status (*run)(KernelRun&);
  /// Bit i: output 0 may be written where input i lies, if both have the same bytes and nobody
  /// needs the input afterwards.
  uint32_t in_place = 0;
  /// Bit i: a constant input i may lie anywhere in the model's file, not aligned for its type, or
  /// be deferred. All others are aligned, and have data: by a copy, where that is not so.
  uint32_t unaligned = 0;
  /// Bit i: what a small input i says (axes, sizes, a count) is part of the choice, like the shapes
  /// of all inputs, whether it is constant or not: the query sees it as a constant.
  uint32_t values = 0;
  int priority = 0;  ///< the highest goes first
  /// `run` only makes views, and which ones follows from the shapes and constant inputs alone: the
  /// plan leaves the node out where it can.
  bool view_only = false;
  /// What `prepare` makes is the same for any length of the first axis of input 0, and is large: it
  /// is made once for all.
  bool any_rows = false;
  const JoinedRow* joined = nullptr;  ///< how it runs together with others, if at all
};

#define KERNEL(symbol)                    \
  extern const KernelRow kernel_##symbol; \
  constinit const KernelRow kernel_##symbol

/// All rows, in the order of their symbols (made by cmake/index.cmake).
extern const std::span<const KernelRow* const> kKernelIndex;

/// KernelRow::run of products of many numbers. Trained networks have weights too small to be normal
/// where weight decay has let channels die, and states of silent inputs come to such numbers:
/// products with them take a hundred times as long, and count for nothing (docs/numerics.md).
template <Status (*kRun)(KernelRun&)>
Status products(KernelRun& run) {
  const WithoutDenormals zero;
  return kRun(run);
}

/// What an input named by KernelRow::values may have at most; a larger one is chosen for unseen.
constexpr int64_t kMostChosenValues = 32;
inline bool is_chosen_value(uint32_t values, size_t index, const Tensor& tensor) {
  return index < 32 && (values >> index & 1) != 0 && tensor.size() <= kMostChosenValues &&
         bytes_of(tensor.dtype()) != 0 && !tensor.is_string();
}

/// How many pieces, of `work` elements each, a thread is worth: `least` elements together.
inline int64_t grain_of(int64_t work, int64_t least = 1 << 13) {
  return std::max<int64_t>(1, least / std::max<int64_t>(1, work));
}

/// The rows of an operator, best first; empty when there is none.
std::span<const KernelRow* const> kernels_of(std::string_view domain, std::string_view op);

/// The first row that supports the query, or null.
const KernelRow* choose_kernel(std::span<const KernelRow* const> rows, const KernelQuery& query);

}  // namespace tombolo
