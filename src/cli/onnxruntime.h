#pragma once

// ONNX Runtime as a yardstick: its shared library is looked for when asked and driven over its C
// interface. Nothing of it is linked or shipped.

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "ir/run_value.h"

namespace tombolo::cli {

/// The path of libonnxruntime.so: what is given, else TOMBOLO_ONNXRUNTIME, else what the loader
/// finds. Empty when there is none.
std::string find_onnxruntime(const std::string& given);

class OnnxRuntime {
 public:
  struct Options {
    int threads = 1;
    std::string disabled;  ///< optimisers, separated by semicolons
  };
  static Result<std::unique_ptr<OnnxRuntime>> open(const std::string& library,
                                                   const std::string& model,
                                                   const Options& options);
  ~OnnxRuntime();
  const std::string& version() const;
  const std::vector<std::string>& inputs() const;
  const std::vector<std::string>& outputs() const;
  /// Runs on tensors, and keeps the outputs until the next run.
  Status run(const std::vector<NamedTensor>& inputs);
  /// The outputs of the last run, in graph order; absent where one is of no type that this
  /// reads.
  Result<std::vector<RunValue>> results() const;

 private:
  struct Impl;
  OnnxRuntime();
  std::unique_ptr<Impl> impl_;
};

}  // namespace tombolo::cli
