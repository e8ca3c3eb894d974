#pragma once

#include "ops/kernel_context.h"

namespace tombolo {

/// For reading attributes and constant inputs by the reference kernels' own functions.
class NoHost final : public KernelHost {
 public:
  Result<std::vector<RunValue>> run_graph(const Graph&, std::vector<RunValue>) override {
    return runtime_error("there are no subgraphs");
  }
  Status reserve(uint64_t) override { return ok(); }
  uint64_t seed() override { return 0; }
  void parallel_for(int64_t count, int64_t, void (*body)(void*, int64_t, int64_t),
                    void* argument) override {
    body(argument, 0, count);
  }
};

}  // namespace tombolo
