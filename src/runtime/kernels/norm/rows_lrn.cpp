// LRN, floats.

#include <algorithm>
#include <memory>

#include "runtime/kernels/conv/block.h"
#include "runtime/kernels/isa.h"
#include "runtime/kernels/kernel.h"
#include "runtime/kernels/norm/lrn.h"

namespace tombolo {
namespace {

constexpr int64_t kPixels = 64;  ///< of a task

struct LrnState final : KernelState {
  Lrn lrn;
  int64_t channels = 0;
};

bool supports_lrn(const KernelQuery& query) {
  return active_isa() != Isa::kScalar && query.dtype(0) == DType::kFloat32 &&
         query.dims(0).size() >= 2 && element_count(query.dims(0)) > 0 &&
         query.attributes.get_int("size", 0) >= 1;
}
bool supports_block_lrn(const KernelQuery& query) {
  if (!supports_lrn(query) || query.dims(0).size() != 5 || query.dims(0)[4] != kBlock) return false;
  const int64_t channels = query.attributes.get_int("channels", 0);
  return channels > 0 && blocks_of(channels) == query.dims(0)[1];
}

template <bool kBlocks>
Result<std::unique_ptr<KernelState>> prepare_lrn(const PrepareContext& context) {
  auto state = std::make_unique<LrnState>();
  const auto& attributes = context.attributes;
  const int64_t size = attributes.get_int("size", 1);
  state->channels = kBlocks ? attributes.get_int("channels", 0) : context.dims(0)[1];
  Lrn& lrn = state->lrn;
  lrn.before = std::min((size - 1) / 2, state->channels);
  lrn.after = std::min(size - 1 - (size - 1) / 2, state->channels);
  lrn.factor = attributes.get_float("alpha", 0.0001f) / static_cast<float>(size);
  lrn.beta = attributes.get_float("beta", 0.75f);
  lrn.bias = attributes.get_float("bias", 1.0f);
  return state;
}

template <bool kBlocks>
Status run_lrn(KernelRun& run) {
  const auto& state = run.state<LrnState>();
  const Tensor& x = run.input(0);
  TRY(Tensor * y, run.output(0, x.dtype(), x.dims()));
  const int64_t image = x.size() / x.dim(0);
  const int64_t plane = image / x.dim(1) / (kBlocks ? kBlock : 1);
  const int64_t runs = (plane + kPixels - 1) / kPixels;
  const auto some = kBlocks ? &lrn_blocks : &lrn_run;
  run.parallel_for(x.dim(0) * runs, grain_of(state.channels * kPixels),
                   [&](int64_t begin, int64_t end) {
                     for (int64_t task = begin; task < end; ++task) {
                       const int64_t pixel = task % runs * kPixels;
                       const int64_t at = task / runs * image + pixel * (kBlocks ? kBlock : 1);
                       some(state.lrn, x.data<float>() + at, y->data<float>() + at, state.channels,
                            plane, std::min(kPixels, plane - pixel));
                     }
                   });
  return ok();
}

}  // namespace

KERNEL(lrn) = {
    .name = "lrn",
    .op = "LRN",
    .supports = supports_lrn,
    .prepare = prepare_lrn<false>,
    .run = run_lrn<false>,
};
KERNEL(block_lrn_f32) = {
    .name = "block_lrn_f32",
    .op = "BlockLRN",
    .domain = "ai.tombolo",
    .supports = supports_block_lrn,
    .prepare = prepare_lrn<true>,
    .run = run_lrn<true>,
    .in_place = 1,
};

}  // namespace tombolo
