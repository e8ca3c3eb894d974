// Concat along channels in blocks, where inputs begin inside of a block of the result.

#include <algorithm>
#include <cstring>
#include <vector>

#include "runtime/kernels/conv/block.h"
#include "runtime/kernels/isa.h"
#include "runtime/kernels/kernel.h"

namespace tombolo {
namespace {

/// Channels of one block of the result that come from one block of an input.
struct Piece {
  size_t input = 0;
  int64_t block = 0, from = 0, to = 0, count = 0;
};
struct BlockConcatState final : KernelState {
  Dims output;
  int64_t plane = 1;
  std::vector<int64_t> blocks;             ///< of each input
  std::vector<std::vector<Piece>> pieces;  ///< of each block of the result, channels rising
};

bool supports_block_concat(const KernelQuery& q) {
  const auto channels = q.attributes.get_ints("channels");
  if (active_isa() == Isa::kScalar || q.inputs.empty() || channels.size() != q.inputs.size())
    return false;
  for (size_t i = 0; i < q.inputs.size(); ++i) {
    if (!q.has_input(i) || q.dtype(i) != DType::kFloat32 || q.dims(i).size() != 5 ||
        element_count(q.dims(i)) < 1 || channels[i] < 1 || blocks_of(channels[i]) != q.dims(i)[1])
      return false;
    for (const size_t axis : {0u, 2u, 3u, 4u})
      if (q.dims(i)[axis] != q.dims(0)[axis]) return false;
  }
  return q.dims(0)[4] == kBlock;
}

Result<std::unique_ptr<KernelState>> prepare_block_concat(const PrepareContext& q) {
  auto state = std::make_unique<BlockConcatState>();
  const auto channels = q.attributes.get_ints("channels");
  int64_t at = 0;
  for (size_t i = 0; i < channels.size(); ++i) {
    state->blocks.push_back(blocks_of(channels[i]));
    for (int64_t c = 0; c < channels[i];) {
      Piece piece{i, c / kBlock, c % kBlock, at % kBlock, 0};
      piece.count = std::min({channels[i] - c, kBlock - piece.from, kBlock - piece.to});
      if (piece.to == 0) state->pieces.emplace_back();
      state->pieces.back().push_back(piece);
      c += piece.count;
      at += piece.count;
    }
  }
  state->output = Dims(q.dims(0));
  state->output[1] = blocks_of(at);
  state->plane = state->output[2] * state->output[3];
  return state;
}

/// Pixels [begin, end) of one block of the result. Whole blocks are written: what is too much lies
/// in the way of the next piece or the next pixel, and is written over by it.
void join(const std::vector<Piece>& pieces, const std::vector<const float*>& sources, int64_t begin,
          int64_t end, float* y) {
  constexpr size_t kBytes = kBlock * sizeof(float);
  const int64_t last = end - 1;
  if (pieces.size() == 1 && pieces[0].count == kBlock) {
    std::copy_n(sources[0] + begin * kBlock, (end - begin) * kBlock, y + begin * kBlock);
    return;
  }
  const int64_t filled = pieces.back().to + pieces.back().count;
  for (int64_t p = begin; p < last; ++p)
    for (size_t i = 0; i < pieces.size(); ++i)
      std::memcpy(y + p * kBlock + pieces[i].to, sources[i] + p * kBlock, kBytes);
  for (int64_t p = begin; p < end && filled < kBlock; ++p)
    std::fill(y + p * kBlock + filled, y + (p + 1) * kBlock, 0.0f);
  for (size_t i = 0; i < pieces.size(); ++i)
    std::copy_n(sources[i] + last * kBlock, pieces[i].count, y + last * kBlock + pieces[i].to);
}

Status run_block_concat(KernelRun& run) {
  const auto& s = run.state<BlockConcatState>();
  TRY(Tensor * y, run.output(0, DType::kFloat32, s.output));
  const auto blocks = static_cast<int64_t>(s.pieces.size());
  run.parallel_for(s.output[0] * blocks * s.plane, 1 << 11, [&](int64_t begin, int64_t end) {
    std::vector<const float*> sources;
    while (begin < end) {
      const int64_t block = begin / s.plane % blocks, n = begin / s.plane / blocks;
      const int64_t first = begin % s.plane, last = std::min(s.plane, first + end - begin);
      const auto& pieces = s.pieces[static_cast<size_t>(block)];
      sources.clear();
      for (const Piece& piece : pieces)
        sources.push_back(run.data<float>(piece.input) +
                          (n * s.blocks[piece.input] + piece.block) * s.plane * kBlock +
                          piece.from);
      join(pieces, sources, first, last, y->data<float>() + (begin - first) * kBlock);
      begin += last - first;
    }
  });
  return ok();
}

}  // namespace

KERNEL(block_concat_f32) = {
    .name = "block_concat_f32",
    .op = "BlockConcat",
    .domain = "ai.tombolo",
    .supports = supports_block_concat,
    .prepare = prepare_block_concat,
    .run = run_block_concat,
};

}  // namespace tombolo
