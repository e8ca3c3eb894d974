#pragma once

// A graph specialised to the shapes of its inputs.
//
// The first run with inputs of certain shapes goes node by node and is traced: which kernel each
// node got, which types and shapes came out, what is a view of what. From the trace a plan of
// memory is made: offsets in one arena by lifetime, in-place outputs, views, outputs of the graph
// where the caller wants them. Later runs with these shapes follow it. Nothing is assumed: an
// output that comes out otherwise than traced (its size depends on data) is noticed, the run goes
// on node by node, and the next trace leaves that value out of the plan.

#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <vector>

#include "runtime/plan.h"
#include "runtime/prepared.h"
#include "runtime/step_sharing.h"

namespace tombolo {

/// Kinds, types and shapes of what a graph reads: its inputs, then values of frames around it; of
/// small inputs that decide on kernels also what they say.
struct Signature {
  std::vector<int64_t> words;
  uint64_t hash = 0;

  void clear() { words.clear(); }
  void add(const RunValue* value);
  void add_value(const RunValue* value);
  void finish();
  friend bool operator==(const Signature& a, const Signature& b) {
    return a.hash == b.hash && a.words == b.words;
  }
};

/// What a traced run saw of one slot.
struct TraceSlot {
  enum class From : uint8_t { kNothing, kOther, kTensor, kSlotView, kConstantView };
  From from = From::kNothing;
  DType dtype = DType::kUndefined;
  Dims dims;
  size_t bytes = 0;
  int base = -1;      ///< kSlotView: the slot that it is a view of
  size_t offset = 0;  ///< kSlotView: from its first byte
  bool free = false;  ///< kTensor, but not in memory that a plan could choose
  Tensor value;       ///< kConstantView, and small tensors that may turn out fixed
};

struct Trace {
  std::vector<TraceSlot> slots;
  std::vector<PreparedPtr> nodes;  ///< null: the reference kernel, or a function
};

/// Where a slot's tensor lies in a specialised run.
struct SlotPlan {
  enum class Where : uint8_t {
    kFree,    ///< wherever the node puts it: made anew in each run
    kArena,   ///< at `offset` of the arena
    kRoot,    ///< at `offset` of memory that the run provides: output `root`, or input slot `root`
    kFixed,   ///< `value`, the same in every run
    kCaller,  ///< an input
    kNone,    ///< nowhere: it lies between nodes that run as one
  };
  Where where = Where::kFree;
  bool tensor = false;        ///< dtype and dims are checked, and counted on by later nodes
  bool plain_output = false;  ///< kRoot: the whole of the memory, with nothing else in it
  uint32_t root = 0;
  DType dtype = DType::kUndefined;
  Dims dims;
  size_t offset = 0, bytes = 0;
  Tensor value;
};

/// Nodes in a row that run as one (JoinedRow).
struct JoinedStep {
  const JoinedRow* row = nullptr;
  std::vector<PreparedPtr> nodes;
  std::unique_ptr<KernelState> state;
};

struct StepPlan {
  uint32_t node = 0;                         ///< the last one of several
  PreparedPtr prepared;                      ///< null: run as in a run without specialisation
  std::shared_ptr<const JoinedStep> joined;  ///< in its place
  size_t scratch = SIZE_MAX;                 ///< offset in the arena
  bool by_values = false;                    ///< to be checked: values the kernel was chosen by
  uint32_t dead_begin = 0, dead_count = 0;   ///< of Specialisation::dead: kFree slots

  /// Of each of its nodes; none where it runs as in a run without specialisation.
  std::span<const PreparedPtr> kernels() const {
    if (joined != nullptr) return joined->nodes;
    return {&prepared, prepared != nullptr ? size_t{1} : size_t{0}};
  }
};

struct Instance;

struct Specialisation {
  struct Root {
    bool input = false;
    int slot = -1;  ///< of the input; of the first output that lies in it
    size_t bytes = 0;
    std::vector<int> members;  ///< slots to point into it when a run begins
  };
  Signature signature;
  std::vector<SlotPlan> slots;
  std::vector<StepPlan> steps;
  std::vector<Root> roots;
  std::vector<int> dead;
  std::vector<int> left;  ///< kFree slots that live to the end of the run
  size_t arena_bytes = 0;
  size_t kept_bytes = 0;   ///< that keeping it takes, about: of kernels' states by their tensors
  size_t fixed_nodes = 0;  ///< nodes left out because their outputs follow from the shapes
  StepSharing sharing;

  ~Specialisation();
  // Instances not in use.
  std::mutex mutex;
  std::vector<std::unique_ptr<Instance>> idle;
};
using SpecialisationPtr = std::shared_ptr<Specialisation>;

/// Makes the memory plan. `varying` says of each slot whether its shape was seen to vary, then of
/// each node whether the values were that its kernel was chosen by.
SpecialisationPtr specialise(const GraphPlan& plan, const Trace& trace,
                             const std::vector<uint8_t>& varying, const KernelOptions& options);

/// Memory for the arenas of one graph. Blocks serve all its specialisations, so that as many are
/// kept as runs went on at a time, not as many as there are shapes.
class ArenaPool {
 public:
  /// A block of at least `bytes`; the one at `preferred` when it is free and large enough.
  Result<Tensor> take(size_t bytes, const std::byte* preferred);
  void give(Tensor block);

 private:
  std::mutex mutex_;
  std::vector<Tensor> free_;
};

/// What reference kernels made of their nodes' attributes, by node. Safe to share.
class KeptTables {
 public:
  std::shared_ptr<const void> get(size_t node);
  void set(size_t node, std::shared_ptr<const void> made);

 private:
  std::mutex mutex_;
  std::vector<std::shared_ptr<const void>> made_;
};

/// What is kept for one graph: choices of kernels, and specialisations, the latest used first.
class SpecialisationCache {
 public:
  explicit SpecialisationCache(size_t nodes) : prepared(nodes) {}

  SpecialisationPtr find(const Signature& signature);
  /// Whether a run with these shapes, which have no plan, is to be traced. The first few shapes
  /// are, then only those that come a second time: a sequence that grows by one in every run would
  /// pay for plans that nothing ever follows.
  bool worth_tracing(const Signature& signature);
  /// True for the first one.
  bool insert(const GraphPlan& plan, Signature signature, const Trace& trace,
              const KernelOptions& options);
  /// These came out otherwise than `wrong` says: slots, then nodes by their values, as specialise()
  /// counts them.
  void note_varying(const GraphPlan& plan, const SpecialisationPtr& wrong,
                    const std::vector<int>& list);
  size_t size();

  PreparedCache prepared;
  KeptTables kept;
  ArenaPool arenas;

 private:
  // As many as shapes that come again and again, as far as that takes little.
  static constexpr size_t kKeepAlways = 16, kKeepMost = 256, kKeepBytes = size_t{32} << 20;
  std::mutex mutex_;
  std::list<SpecialisationPtr> list_;
  size_t kept_bytes_ = 0;  ///< of list_
  std::vector<uint8_t> varying_;
  int traced_ = 0;
  std::vector<uint64_t> seen_;  ///< hashes of shapes that came, the latest last
};

}  // namespace tombolo
