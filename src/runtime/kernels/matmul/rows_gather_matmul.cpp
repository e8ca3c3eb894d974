// GatherMatMul of ai.tombolo: the rows of each matrix are multiplied together, so that a matrix is
// read once, and those that nobody asks for are not read. Those of 16 bits stay such in memory.

#include <algorithm>
#include <string>
#include <vector>

#include "runtime/kernels/blocks.h"
#include "runtime/kernels/isa.h"
#include "runtime/kernels/kernel.h"
#include "runtime/kernels/matmul/gemm.h"
#include "runtime/kernels/matmul/grouped.h"
#include "runtime/kernels/parallel.h"

namespace tombolo {
namespace {

struct GatherMatMulState final : KernelState {
  int64_t count = 1, batch = 1, m = 1, k = 1, n = 1;  ///< matrices, products and their sizes
  bool turned = false;
  PanelFormat format = PanelFormat::kFloat32;
  size_t packed_bytes = 0;            ///< of one matrix
  const std::byte* packed = nullptr;  ///< matrix after matrix
};

constexpr int64_t kMostPicked = 512;  ///< rows of a matrix at a time, so that little memory does

bool plan_gather_matmul(const KernelQuery& q, GatherMatMulState& s) {
  if (active_isa() == Isa::kScalar || q.inputs.size() != 3 || q.dtype(0) != DType::kFloat32 ||
      !is_f32_or_short(q.dtype(1)) || q.constant(1) == nullptr ||
      (q.dtype(2) != DType::kInt64 && q.dtype(2) != DType::kInt32))
    return false;
  const auto a = q.dims(0), b = q.dims(1), picks = q.dims(2);
  if (a.size() != 3 || b.size() != 3 || picks.size() != 1 || element_count(a) < 1 ||
      element_count(b) < 1 || picks[0] < 1)
    return false;
  s.turned = q.attributes.get_int("transB", 0) != 0;
  s.count = b[0];
  s.k = b[s.turned ? 2 : 1];
  s.n = b[s.turned ? 1 : 2];
  s.m = a[1];
  s.batch = std::max(a[0], picks[0]);
  const PanelFormat halves =
      q.dtype(1) == DType::kFloat16 ? PanelFormat::kFloat16 : PanelFormat::kBfloat16;
  if (q.dtype(1) != DType::kFloat32 && takes_panels(halves)) s.format = halves;
  const size_t width = s.format == PanelFormat::kFloat32 ? 4 : 2;
  s.packed_bytes = (static_cast<size_t>(packed_b_floats(s.k, s.n)) * width + 63) / 64 * 64;
  return a[2] == s.k && (a[0] == s.batch || a[0] == 1) && (picks[0] == s.batch || picks[0] == 1);
}
bool supports_gather_matmul(const KernelQuery& query) {
  GatherMatMulState state;
  return plan_gather_matmul(query, state);
}

/// Matrix `e` of B.
void pack_matrix(const GatherMatMulState& s, const Tensor& b, int64_t e, std::byte* target) {
  const int64_t start = e * s.k * s.n, row = s.turned ? 1 : s.n, column = s.turned ? s.k : 1;
  if (s.format == PanelFormat::kFloat32) {
    std::vector<float> room(static_cast<size_t>(b.dtype() == DType::kFloat32 ? 0 : s.k * s.n));
    return pack_b(load_floats(b, start, s.k * s.n, room.data()), row, column, s.k, s.n, 1,
                  reinterpret_cast<float*>(target));
  }
  const int64_t width = gemm_tiles().panel(), panels = (s.n + width - 1) / width;
  parallel(panels, std::max<int64_t>(1, 16384 / (s.k * width)), [&](int64_t begin, int64_t end) {
    for (int64_t j = begin * width; j < std::min(s.n, end * width); j += width)
      pack_b_panel(b.data<uint16_t>() + start + j * column, row, column, s.k,
                   std::min(width, s.n - j), reinterpret_cast<uint16_t*>(target) + j * s.k);
  });
}

Result<std::unique_ptr<KernelState>> prepare_gather_matmul(const PrepareContext& q) {
  auto state = std::make_unique<GatherMatMulState>();
  GatherMatMulState& s = *state;
  plan_gather_matmul(q, s);
  auto fill = [&](std::byte* target) {
    Tensor made;
    const Tensor& b = q.aligned_constant(1, made);
    const size_t bytes = b.bytes().size() / static_cast<size_t>(s.count);
    for (int64_t e = 0; e < s.count; ++e) {
      const auto at = static_cast<size_t>(e);
      pack_matrix(s, b, e, target + at * s.packed_bytes);
      if (&b != &made) q.packs.release({b.data<std::byte>() + at * bytes, bytes});
    }
  };
  TRY(s.packed,
      q.packed(1, "gather_matmul/" + std::string(name_of(active_isa())) + (s.turned ? "/t" : "/n"),
               static_cast<size_t>(s.count) * s.packed_bytes, fill));
  const int64_t rows = std::min(s.batch, kMostPicked) * s.m;
  s.scratch_bytes = static_cast<size_t>(rows * (s.k + s.n)) * sizeof(float);
  return state;
}

/// Copies pieces of `length` floats: to(i) from from(i).
template <typename From, typename To>
void copy_pieces(const KernelRun& run, int64_t count, int64_t length, From&& from, To&& to) {
  run.parallel_for(count, std::max<int64_t>(1, (1 << 14) / length),
                   [&](int64_t begin, int64_t end) {
                     for (int64_t i = begin; i < end; ++i) std::copy_n(from(i), length, to(i));
                   });
}

Status run_gather_matmul(KernelRun& run) {
  const auto& s = run.state<GatherMatMulState>();
  const Tensor &a = run.input(0), &picks = run.input(2);
  std::vector<int64_t> matrices(static_cast<size_t>(s.batch));
  for (int64_t t = 0; t < s.batch; ++t) {
    const int64_t given = picks.get_int64(picks.size() == 1 ? 0 : t);
    if (given < -s.count || given >= s.count)
      return runtime_error("index " + std::to_string(given) + " is beyond the " +
                           std::to_string(s.count) + " matrices of B");
    matrices[static_cast<size_t>(t)] = given < 0 ? given + s.count : given;
  }
  const Grouped products(matrices, s.count);
  TRY(Tensor * y, run.output(0, DType::kFloat32, std::array{s.batch, s.m, s.n}));
  const int64_t in = s.m * s.k, out = s.m * s.n, step = a.dim(0) == 1 ? 0 : in;
  const auto* const x = a.data<float>();
  auto* const to = y->data<float>();
  auto* const rows = reinterpret_cast<float*>(run.scratch());
  float* const results = rows + std::min(s.batch, kMostPicked) * in;
  for (int64_t e = 0; e < s.count; ++e) {
    const int64_t end = products.end(e);
    for (int64_t i = products.begin(e); i < end; i += kMostPicked) {
      const int64_t* own = products.members.data() + i;
      const int64_t count = std::min(kMostPicked, end - i);
      // Side by side they are read and written where they lie.
      const bool together = own[count - 1] - own[0] == count - 1 && (step != 0 || count == 1);
      if (!together)
        copy_pieces(
            run, count, in, [&](int64_t r) { return x + own[r] * step; },
            [&](int64_t r) { return rows + r * in; });
      gemm(count * s.m, s.n, s.k, together ? x + own[0] * step : rows, s.k,
           s.packed + static_cast<size_t>(e) * s.packed_bytes, s.format,
           together ? to + own[0] * out : results, s.n, {});
      if (!together)
        copy_pieces(
            run, count, out, [&](int64_t r) { return results + r * out; },
            [&](int64_t r) { return to + own[r] * out; });
    }
  }
  return ok();
}

}  // namespace

KERNEL(gather_matmul) = {
    .name = "gather_matmul",
    .op = "GatherMatMul",
    .domain = "ai.tombolo",
    .supports = supports_gather_matmul,
    .prepare = prepare_gather_matmul,
    .run = products<run_gather_matmul>,
};

}  // namespace tombolo
