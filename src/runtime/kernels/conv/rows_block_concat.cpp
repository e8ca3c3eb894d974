// Concat along channels in blocks, where inputs begin inside of a block of the result.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/kernels/conv/rows_block_concat.cpp"
#include "runtime/kernels/targets.h"
// After targets.h, which sets macros for Highway.
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "runtime/kernels/conv/block.h"
#include "runtime/kernels/dispatch.h"
#include "runtime/kernels/isa.h"
#include "runtime/kernels/kernel.h"

#ifndef TOMBOLO_ROWS_BLOCK_CONCAT_ONCE  // included once for each target
#define TOMBOLO_ROWS_BLOCK_CONCAT_ONCE
namespace tombolo {
namespace {

/// Channels of one block of the result that come from one block of an input.
struct Piece {
  size_t input = 0;
  int64_t block = 0, from = 0, to = 0, count = 0;
};
/// Pixels of a block of the result from their first pieces on.
struct JoinTask {
  const std::vector<Piece>& pieces;
  const std::vector<const float*>& sources;  ///< of each piece: that of the first pixel
  int64_t pixels;
  float* y;
};

}  // namespace
}  // namespace tombolo
#endif

HWY_BEFORE_NAMESPACE();
namespace tombolo {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
using JoinFloats = hn::ScalableTag<float>;
constexpr int64_t kJoinLanes = HWY_LANES(float);

/// A vector of each pixel, of so many pieces: what a mask leaves out is not read.
template <int kPieces>
void join_vectors(const hn::Mask<JoinFloats>* masks, const float* const* at, int64_t pixels,
                  float* y) {
  const JoinFloats f;
  hn::Mask<JoinFloats> mask[kPieces];
#pragma GCC unroll 4
  for (int i = 0; i < kPieces; ++i) mask[i] = masks[i];
  for (int64_t p = 0; p < pixels; ++p) {
    auto v = hn::MaskedLoad(mask[0], f, at[0] + p * kBlock);
#pragma GCC unroll 4
    for (int i = 1; i < kPieces; ++i) v = hn::Or(v, hn::MaskedLoad(mask[i], f, at[i] + p * kBlock));
    hn::StoreU(v, f, y + p * kBlock);
  }
}

void join_pixels(const JoinTask& t) {
  constexpr int64_t kAtOnce = 32;  // pixels, which the first cache holds for the next vector
  const JoinFloats f;
  for (int64_t first = 0; first < t.pixels; first += kAtOnce)
    for (int64_t lane = 0; lane < kBlock; lane += kJoinLanes) {
      hn::Mask<JoinFloats> masks[kBlock];
      const float* at[kBlock];
      int count = 0;
      for (size_t i = 0; i < t.pieces.size(); ++i) {
        const Piece& piece = t.pieces[i];
        const int64_t from = std::max(piece.to - lane, int64_t{0});
        const int64_t to = std::min(piece.to + piece.count - lane, kJoinLanes);
        if (from >= to) continue;
        masks[count] = hn::And(hn::FirstN(f, static_cast<size_t>(to)),
                               hn::Not(hn::FirstN(f, static_cast<size_t>(from))));
        at[count++] = t.sources[i] + first * kBlock + lane - piece.to;
      }
      const int64_t pixels = std::min(kAtOnce, t.pixels - first);
      float* const y = t.y + first * kBlock + lane;
      for (int64_t p = 0; p < pixels && count == 0; ++p) hn::StoreU(hn::Zero(f), f, y + p * kBlock);
      using Fn = void(const hn::Mask<JoinFloats>*, const float* const*, int64_t, float*);
      static constexpr Fn* kFns[] = {&join_vectors<1>, &join_vectors<2>, &join_vectors<3>,
                                     &join_vectors<4>};
      if (count > 0) kFns[std::min(count, 4) - 1](masks, at, pixels, y);
      // Many pieces of few channels: the rest on top.
      for (int i = 4; i < count; ++i)
        for (int64_t p = 0; p < pixels; ++p) {
          const auto more = hn::MaskedLoad(masks[i], f, at[i] + p * kBlock);
          hn::StoreU(hn::Or(hn::LoadU(f, y + p * kBlock), more), f, y + p * kBlock);
        }
    }
}
#else
/// Whole blocks are written: what is too much lies in the way of the next piece or the next pixel,
/// and is written over by it.
void join_pixels(const JoinTask& t) {
  constexpr size_t kBytes = kBlock * sizeof(float);
  const int64_t last = t.pixels - 1, filled = t.pieces.back().to + t.pieces.back().count;
  for (int64_t p = 0; p < last; ++p)
    for (size_t i = 0; i < t.pieces.size(); ++i)
      std::memcpy(t.y + p * kBlock + t.pieces[i].to, t.sources[i] + p * kBlock, kBytes);
  for (int64_t p = 0; p < t.pixels && filled < kBlock; ++p)
    std::fill(t.y + p * kBlock + filled, t.y + (p + 1) * kBlock, 0.0f);
  for (size_t i = 0; i < t.pieces.size(); ++i)
    std::copy_n(t.sources[i] + last * kBlock, t.pieces[i].count,
                t.y + last * kBlock + t.pieces[i].to);
}
#endif

}  // namespace HWY_NAMESPACE
}  // namespace tombolo
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tombolo {
namespace {

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
                          ((n * s.blocks[piece.input] + piece.block) * s.plane + first) * kBlock +
                          piece.from);
      float* const to = y->data<float>() + begin * kBlock;
      const JoinTask task{pieces, sources, last - first, to};
      if (pieces.size() == 1 && pieces[0].count == kBlock)
        std::copy_n(sources[0], (last - first) * kBlock, to);
      else
        TOMBOLO_TARGET(void(const JoinTask&), join_pixels)(task);
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
#endif
