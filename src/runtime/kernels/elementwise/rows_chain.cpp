// ai.tombolo Elementwise: blocks of all inputs through the compiled steps. What is broadcast is
// spread into a block first; what has the shape of the output is read where it lies.

#include <algorithm>
#include <cstring>
#include <memory>

#include "runtime/kernels/broadcast.h"
#include "runtime/kernels/elementwise/chain.h"
#include "runtime/kernels/elementwise/spread_rows.h"
#include "runtime/kernels/isa.h"
#include "runtime/kernels/kernel.h"
#include "runtime/kernels/matmul/gemm.h"

namespace tombolo {
namespace {

constexpr int kMaxReal = 8;  ///< inputs that are no constants of one element
constexpr int64_t kChainBlock = 1024;
constexpr int64_t kChainRoom = kSpreadBefore + kChainBlock + kSpreadBehind;

struct ChainInput {
  enum class How : uint8_t { kConstant, kDense, kSingle, kBroadcast } how = How::kConstant;
  int loop = 0;  ///< its number in the loops
};

struct ChainState final : KernelState {
  ChainProgram program;
  std::vector<ChainInput> inputs;
  BroadcastLoops<kMaxReal> loops;
  int buffers = 0;  ///< inputs that need a block of memory
  int64_t grain = 0;
};

bool is_number(const KernelQuery& q, size_t i) {
  return q.constant(i) != nullptr && q.constant(i)->size() == 1;
}

std::optional<BroadcastLoops<kMaxReal>> loops_of(const KernelQuery& q) {
  std::span<const int64_t> dims[kMaxReal];
  static constexpr int64_t kOnes[] = {1, 1, 1, 1, 1, 1, 1, 1};
  size_t used = 0, rank = 0;
  for (size_t i = 0; i < q.inputs.size(); ++i) {
    rank = std::max(rank, q.dims(i).size());
    if (is_number(q, i)) continue;
    if (used == kMaxReal) return std::nullopt;
    dims[used++] = q.dims(i);
  }
  // Constants count for the rank of the result.
  if (used == 0 || rank > std::size(kOnes)) return std::nullopt;
  if (used < kMaxReal) dims[used] = std::span(kOnes).first(rank);
  auto loops = BroadcastLoops<kMaxReal>::of(
      {dims[0], dims[1], dims[2], dims[3], dims[4], dims[5], dims[6], dims[7]});
  if (loops && loops->output.size() != rank) return std::nullopt;
  return loops;
}

bool supports_chain(const KernelQuery& q) {
  if (active_isa() == Isa::kScalar || q.inputs.empty() ||
      q.inputs.size() > ops::kMaxElementwiseInputs)
    return false;
  for (size_t i = 0; i < q.inputs.size(); ++i)
    if (q.dtype(i) != DType::kFloat32) return false;
  return loops_of(q).has_value() && !ops::read_elementwise(q.attributes, q.inputs.size()).empty();
}

Result<std::unique_ptr<KernelState>> prepare_chain(const PrepareContext& q) {
  auto state = std::make_unique<ChainState>();
  state->loops = *loops_of(q);
  const auto& loops = state->loops;
  std::vector<ChainConstant> constants(q.inputs.size());
  int loop = 0;
  for (size_t i = 0; i < q.inputs.size(); ++i) {
    ChainInput input;
    if (is_number(q, i)) {
      constants[i] = {true, q.constant(i)->data<float>()[0]};
    } else {
      input.loop = loop++;
      const int64_t size = q.inputs[i].size();
      input.how = size == loops.count ? ChainInput::How::kDense
                  : size == 1         ? ChainInput::How::kSingle
                                      : ChainInput::How::kBroadcast;
      state->buffers += input.how != ChainInput::How::kDense ? 1 : 0;
    }
    state->inputs.push_back(input);
  }
  const auto steps = ops::read_elementwise(q.attributes, q.inputs.size());
  state->program = compile_chain(steps, constants);
  state->grain = std::max<int64_t>(kChainBlock, (1 << 16) / static_cast<int64_t>(steps.size() + 2));
  return state;
}

/// As spread_rows(), for rows of any length.
const float* spread(const BroadcastLoops<kMaxReal>& loops, int loop, const float* x, int64_t at,
                    int64_t n, float* to, int64_t& held) {
  if (loops.length[0] <= kShortRow) return spread_rows(loops, loop, x, at, n, to, held);
  const float* lies = to;
  loops.for_runs(at, at + n, [&](int64_t from, const int64_t* offset, int64_t count) {
    const float* source = x + offset[loop];
    float* out = to + (from - at);
    const bool one = loops.step[0][loop] == 0, whole = count == n;
    if (one && whole && held == offset[loop]) return;
    held = one && whole ? offset[loop] : -1;
    if (one)
      fill_block(out, count, *source);  // before what comes behind
    else if (whole)
      lies = source;
    else
      std::copy_n(source, count, out);
  });
  return lies;
}

void run_blocks(const KernelRun& run, const ChainState& state, float* y, int64_t begin,
                int64_t end) {
  const ChainProgram& program = state.program;
  const int64_t tile = program.tile;
  const auto inputs = state.inputs.size();
  const auto temps = static_cast<size_t>(program.temps) * kChainTile;
  const auto blocks = static_cast<size_t>(state.buffers) * kChainRoom;
  // Temporaries, blocks, and one tile for each input and for the output where they end.
  float* const room = thread_floats(1, temps + blocks + (inputs + 1) * kChainTile);
  float* const block_room = room + temps;
  float* const tail = block_room + blocks;
  const float* at_block[ops::kMaxElementwiseInputs] = {};
  const float* at_tail[ops::kMaxElementwiseInputs] = {};
  ChainFrame frame{at_block, room, nullptr};
  const auto is_used = [&](size_t i) { return state.inputs[i].how != ChainInput::How::kConstant; };
  float* next = block_room;
  float* own[ops::kMaxElementwiseInputs] = {};
  int64_t held[ops::kMaxElementwiseInputs];
  std::fill_n(held, inputs, int64_t{-1});
  for (size_t i = 0; i < inputs; ++i) {
    if (!is_used(i) || state.inputs[i].how == ChainInput::How::kDense) continue;
    own[i] = next + kSpreadBefore;
    next += kChainRoom;
    if (state.inputs[i].how == ChainInput::How::kSingle)
      std::fill_n(own[i], kChainBlock, *run.data<float>(i));
  }
  for (int64_t block = begin; block < end; block += kChainBlock) {
    const int64_t n = std::min(kChainBlock, end - block);
    for (size_t i = 0; i < inputs; ++i) {
      if (!is_used(i)) continue;
      at_block[i] = own[i];
      if (own[i] == nullptr)
        at_block[i] = run.data<float>(i) + block;
      else if (state.inputs[i].how == ChainInput::How::kBroadcast)
        at_block[i] = spread(state.loops, state.inputs[i].loop, run.data<float>(i), block, n,
                             own[i], held[i]);
    }
    const int64_t whole = n / tile * tile, rest = n - whole;
    frame.inputs = at_block;
    frame.out = y + block;
    if (whole != 0) run_chain(program, frame, whole);
    if (rest == 0) continue;
    for (size_t i = 0; i < inputs; ++i) {
      if (!is_used(i)) continue;
      float* copy = tail + i * kChainTile;
      std::fill_n(copy, tile, 1.0f);
      std::memcpy(copy, at_block[i] + whole, static_cast<size_t>(rest) * sizeof(float));
      at_tail[i] = copy;
    }
    frame.inputs = at_tail;
    frame.out = tail + inputs * kChainTile;
    run_chain(program, frame, tile);
    std::memcpy(y + block + whole, frame.out, static_cast<size_t>(rest) * sizeof(float));
  }
}

Status run_elementwise(KernelRun& run) {
  const auto& state = run.state<ChainState>();
  TRY(Tensor * y, run.output(0, DType::kFloat32, state.loops.output));
  float* out = y->data<float>();
  const int64_t blocks = (state.loops.count + kChainBlock - 1) / kChainBlock;
  run.parallel_for(blocks, std::max<int64_t>(1, state.grain / kChainBlock),
                   [&](int64_t begin, int64_t end) {
                     run_blocks(run, state, out, begin * kChainBlock,
                                std::min(state.loops.count, end * kChainBlock));
                   });
  return ok();
}

}  // namespace

KERNEL(elementwise_chain) = {
    .name = "chain",
    .op = "Elementwise",
    .domain = "ai.tombolo",
    .supports = supports_chain,
    .prepare = prepare_chain,
    .run = run_elementwise,
    .in_place = 0xFFFFFFFFu,
};

}  // namespace tombolo
