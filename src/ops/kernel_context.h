#pragma once

// What a reference kernel sees of the run: its node, inputs, attributes, and where outputs go.
// A kernel is `Status run_xxx(KernelContext& context)`. Inputs were not checked against the schema:
// a kernel checks what it relies on and says so in an error; index tensors are hostile.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "ir/graph.h"
#include "ir/run_value.h"
#include "ops/attributes.h"

namespace tombolo {

/// Seedable stream for the random operators: one per node, derived from the session's seed and the
/// node's position, or from the node's own `seed` attribute. See docs/numerics.md.
struct RandomStream {
  uint64_t state[4];
  uint64_t next();       ///< 64 random bits (xoshiro256**)
  double next_unit();    ///< uniform in [0, 1), 53 bits
  double next_normal();  ///< standard normal (Box-Muller)
  static RandomStream seeded(uint64_t seed);
};

/// What the executor lends to kernels. Control-flow kernels run subgraphs through it, so that no
/// include points from ops/ to runtime/.
class KernelHost {
 public:
  virtual ~KernelHost() = default;
  /// Runs `graph` (a subgraph of the running node) with `inputs` for its graph inputs, in order.
  /// Captured outer values are found by the host. Returns the graph's outputs, in order.
  virtual Result<std::vector<RunValue>> run_graph(const Graph& graph,
                                                  std::vector<RunValue> inputs) = 0;
  /// Counts `bytes` against the run's memory limit before they are allocated.
  virtual Status reserve(uint64_t bytes) = 0;
  virtual uint64_t seed() = 0;  ///< the session's seed
  /// Calls body(begin, end) over [0, count) split among the threads of the run; blocks until done.
  virtual void parallel_for(int64_t count, int64_t grain, void (*body)(void*, int64_t, int64_t),
                            void* argument) = 0;
  /// Input `index` of the running node for it to take, where nothing reads it afterwards; else
  /// null.
  virtual RunValue* last_use(size_t) { return nullptr; }
  /// What `keep` was given for this node in an earlier run of the session; null where the host
  /// keeps nothing.
  virtual std::shared_ptr<const void> kept() { return nullptr; }
  virtual void keep(std::shared_ptr<const void>) {}
};

struct KernelContext {
  const Node& node;
  int opset;                                ///< version of the node's domain under which it is read
  std::span<const RunValue* const> inputs;  ///< null where absent
  std::span<RunValue> outputs;              ///< one for each output of the node
  AttributeReader attributes;
  KernelHost& host;
  const AttributeBinding* binding = nullptr;

  size_t input_count() const { return inputs.size(); }
  bool has_input(size_t index) const {
    return index < inputs.size() && inputs[index] != nullptr && !inputs[index]->is_none();
  }
  const RunValue& value(size_t index) const { return *inputs[index]; }
  /// Input `index` as a tensor that must be there. Data are aligned.
  Result<const Tensor*> input(size_t index) const;
  /// Input `index` as a tensor, null when absent.
  Result<const Tensor*> optional_input(size_t index) const;
  /// A small integer tensor input (axes, shape, pads, ...) as numbers; any integer type.
  Result<std::vector<int64_t>> input_ints(size_t index) const;

  size_t output_count() const { return outputs.size(); }
  bool wants_output(size_t index) const {
    return index < outputs.size() && node.output(index) != nullptr;
  }
  /// A new tensor of this type and shape, counted against the memory limit, uninitialised.
  Result<Tensor> allocate(DType dtype, std::span<const int64_t> dims) const;
  /// Allocates output `index` and returns where to write. Uninitialised. When the output is not
  /// wanted, gives a scratch tensor all the same.
  Result<Tensor*> output(size_t index, DType dtype, std::span<const int64_t> dims);
  void set_output(size_t index, RunValue value) {
    if (index < outputs.size()) outputs[index] = std::move(value);
  }

  /// Splits [0, count) among threads: body(begin, end). The body must be safe to run concurrently.
  template <typename Body>
  void parallel_for(int64_t count, int64_t grain, Body&& body) const {
    host.parallel_for(
        count, grain,
        [](void* argument, int64_t begin, int64_t end) {
          (*static_cast<std::remove_reference_t<Body>*>(argument))(begin, end);
        },
        &body);
  }

  /// make() gives a Result<T> that follows from the node's attributes alone (a table of keys, a
  /// compiled pattern): made once a session, where the host keeps it. One T for each operator.
  template <typename T, typename Make>
  Result<std::shared_ptr<const T>> made_once(Make&& make) const {
    if (auto known = std::static_pointer_cast<const T>(host.kept())) return known;
    TRY(T made, make());
    auto shared = std::make_shared<const T>(std::move(made));
    host.keep(shared);
    return Result<std::shared_ptr<const T>>(std::move(shared));
  }

  /// An error of this node: `message` is about the node's inputs; the executor adds where.
  Error error(std::string message) const { return runtime_error(std::move(message)); }
  /// A stream for this node: its own `seed` attribute if it has one, else the session's and its id.
  RandomStream random() const;
};

/// `axis` in [-rank, rank) made non-negative, or an error that names it.
Result<int64_t> normalize_axis(int64_t axis, int64_t rank, const char* what = "axis");

}  // namespace tombolo
