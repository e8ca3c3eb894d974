#pragma once

// Session: a model made ready to run. Reading the model is done; the session brings it up to the
// newest operator set, plans the order, and runs it with the reference kernels.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "ir/model.h"
#include "ir/run_value.h"

namespace tombolo {

struct SessionOptions {
  uint64_t seed = 0;           ///< of the random operators
  uint64_t time_limit_ms = 0;  ///< of one run, looked at before every node and graph; 0: none
  uint64_t memory_limit = 0;   ///< bytes of tensors alive in a run; 0: what the machine has to give
};

/// One input or output of a session, as the caller sees it.
struct SessionPort {
  std::string name;
  const Type* type = nullptr;  ///< declared; null when unknown
  bool has_default = false;    ///< an input that an initialiser also gives
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

  /// Runs once. `inputs` by name; a tensor must have the declared type and a shape that fits the
  /// declared one (a name stands for one size). Outputs in graph order. Safe to call from many
  /// threads at a time.
  Result<std::vector<RunValue>> run(const std::vector<NamedValue>& inputs) const;

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
