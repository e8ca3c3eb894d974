#pragma once

// Session: a model made ready to run. Reading the model is done; the session brings it up to the
// newest operator set, plans the order, and runs it: with the fastest kernel that takes each node,
// along a memory plan made for the shapes given (runtime/specialise.h).

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "ir/model.h"
#include "ir/run_value.h"

namespace tombolo {

struct Profile;

struct SessionOptions {
  uint64_t seed = 0;           ///< of the random operators
  uint64_t time_limit_ms = 0;  ///< of one run, looked at before every node and graph; 0: none
  uint64_t memory_limit = 0;   ///< bytes of tensors alive in a run; 0: what the machine has to give
  bool reference = false;      ///< reference kernels alone: the oracle of everything fast
  bool specialise = true;      ///< memory plans by shape; false: node by node, always
  bool deterministic = false;  ///< the same bits whatever the number of threads
  bool fast_math = false;      ///< rounded products may stand for float ones
  int optimise = 2;            ///< level of graph rewrites, 0 to 3
  /// Bytes of images that a node takes of a large batch at a time (runtime/batch_slices.h); 0: by
  /// the caches of the processor.
  int64_t batch_room = 0;
  /// A folder where packed weights are kept for sessions to come (runtime/pack_cache.h); empty:
  /// none.
  std::string pack_cache;
};

/// What differs from run to run.
struct RunOptions {
  const std::atomic<bool>* cancelled = nullptr;  ///< set by another thread: the run ends soon
  uint64_t time_limit_ms = 0;                    ///< 0: the session's
  uint64_t memory_limit = 0;                     ///< 0: the session's
  Profile* profile = nullptr;                    ///< times every node
  /// The caller's input tensors do not own their bytes: outputs must not share them.
  bool borrowed_inputs = false;
  /// Per output, in graph order: a tensor to write to where type and shape agree (an empty one:
  /// none). The run then returns that tensor.
  std::vector<Tensor> outputs;
};

/// One input or output of a session, as the caller sees it.
struct SessionPort {
  std::string name;
  const Type* type = nullptr;  ///< declared; null when unknown
  bool has_default = false;    ///< an input that an initialiser also gives

  bool is_optional() const { return type != nullptr && type->kind == Type::Kind::kOptional; }
  /// An input without which nothing runs.
  bool is_required() const { return !has_default && !is_optional(); }
};

struct NamedValue {
  std::string name;
  RunValue value;
};

class Session {
 public:
  /// Takes the model. Errors name every operator that has no kernel, at once.
  static Result<std::unique_ptr<Session>> create(std::unique_ptr<Model> model,
                                                 SessionOptions options = {});
  ~Session();

  /// Inputs in graph order. Those that an initialiser also gives (IR 3 lists them all) come with
  /// has_default and may be left out.
  const std::vector<SessionPort>& inputs() const { return inputs_; }
  const std::vector<SessionPort>& outputs() const { return outputs_; }
  const Model& model() const { return *model_; }
  const SessionOptions& options() const;

  /// Runs once. `inputs` by name; a tensor must have the declared type and a shape that fits the
  /// declared one (a name stands for one size). Outputs in graph order. Safe to call from many
  /// threads at a time.
  Result<std::vector<RunValue>> run(const std::vector<NamedValue>& inputs,
                                    const RunOptions& options = {}) const;
  /// The same with one value an input, in graph order; kNone where the default is meant.
  Result<std::vector<RunValue>> run_ordered(std::vector<RunValue> inputs,
                                            const RunOptions& options = {}) const;
  /// Position of an input, or a usage error that lists those there are.
  Result<size_t> input_index(const std::string& name) const;

  uint64_t packed_bytes() const;  ///< of weights in the layouts of kernels

 private:
  struct Impl;
  Session();
  std::unique_ptr<Model> model_;
  std::vector<SessionPort> inputs_, outputs_;
  std::unique_ptr<Impl> impl_;
};

/// Bytes of tensors that a run may hold by default: most of what this process may still allocate
/// (free memory, cgroup limit, address-space limit).
uint64_t default_memory_limit();

}  // namespace tombolo
