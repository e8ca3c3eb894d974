// Speed of the main kernels beside the peak of fused multiply-adds, one thread, in its own
// processor time, so that a busy machine disturbs little. Prints the best of some runs for each
// shape.
//
//   cmake --preset release -DTOMBOLO_BENCH=ON && ninja -C build/release tombolo_kernels_bench
//   TOMBOLO_ISA=avx2 build/release/bench/tombolo_kernels_bench [products|bytes|convolutions]

#include <time.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <random>
#include <string>
#include <vector>

#include "base/thread_pool.h"
#include "runtime/kernels/conv/conv.h"
#include "runtime/kernels/isa.h"
#include "runtime/kernels/matmul/gemm.h"
#include "runtime/kernels/matmul/nbits.h"
#include "runtime/kernels/quant/qgemm.h"

namespace tombolo {
namespace {

double now() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

template <typename Body>
double best_of(int runs, Body&& body) {
  double best = 1e9;
  for (int i = 0; i < runs; ++i) {
    const double start = now();
    body();
    best = std::min(best, now() - start);
  }
  return best;
}

double peak = 1;

void report(const std::string& name, const char* how, double seconds, double operations) {
  const double rate = operations / seconds * 1e-9;
  std::printf("| %-34s | %-10s | %9.3f | %7.1f | %4.0f %% |\n", name.c_str(), how, seconds * 1e3,
              rate, 100 * rate / peak);
}

std::string name_of_shape(int64_t m, int64_t n, int64_t k) {
  return std::to_string(m) + " x " + std::to_string(n) + " x " + std::to_string(k);
}

/// A tile whose operands stay in the first cache does little but multiply and add.
double measure_peak() {
  const GemmTiles& tiles = gemm_tiles();
  const int64_t k = 128;
  std::vector<float> a(static_cast<size_t>(tiles.max_rows * k), 0.5f);
  std::vector<float> b(static_cast<size_t>(tiles.panel() * k), 0.5f);
  std::vector<float> c(static_cast<size_t>(tiles.max_rows * tiles.panel()));
  const GemmTile tile{.a = a.data(),
                      .lda = tiles.max_rows,
                      .b = b.data(),
                      .ldb = tiles.panel(),
                      .k = k,
                      .c = c.data(),
                      .ldc = tiles.panel(),
                      .cols = tiles.panel(),
                      .next = a.data()};
  const double seconds = best_of(20, [&] {
    for (int i = 0; i < 2000; ++i) tiles.packed_tile(tiles.max_rows, tiles.panel())(tile);
  });
  return 2e-9 * 2000 * static_cast<double>(k * tiles.max_rows * tiles.panel()) / seconds;
}

void products() {
  const int64_t shapes[][3] = {{1024, 1024, 1024}, {128, 768, 768},  {128, 3072, 768},
                               {128, 768, 3072},   {16, 4096, 4096}, {4, 4096, 4096},
                               {1, 4096, 4096}};
  for (const auto& [m, n, k] : shapes) {
    std::vector<float> a(static_cast<size_t>(m * k), 1), b(static_cast<size_t>(k * n), 1),
        c(static_cast<size_t>(m * n)), packed(static_cast<size_t>(packed_b_floats(k, n)));
    pack_b(b.data(), n, 1, k, n, 1, packed.data());
    const std::string name = name_of_shape(m, n, k);
    const double operations = 2 * static_cast<double>(m * n * k);
    report(name, "float",
           best_of(10, [&] { gemm(m, n, k, a.data(), k, packed.data(), c.data(), n, {}); }),
           operations);
    // As in a network: no weight is in a cache when its turn comes.
    std::vector<std::vector<float>> cold(std::max<size_t>(2, (96 << 20) / 4 / packed.size()),
                                         packed);
    size_t turn = 0;
    report(name, "float cold",
           best_of(std::max(10, static_cast<int>(cold.size())),
                   [&] {
                     gemm(m, n, k, a.data(), k, cold[turn++ % cold.size()].data(), c.data(), n, {});
                   }),
           operations);
    std::vector<uint8_t> bytes(static_cast<size_t>(std::max(m, n) * k), 3);
    std::vector<std::byte> rows(static_cast<size_t>(m * q_row_bytes(k))),
        panels(q_panel_bytes(k, n));
    q_pack_rows(bytes.data(), k, m, k, false, false, rows.data());
    q_pack_panels(bytes.data(), n, 1, k, n, false, true, panels.data(), nullptr);
    QFinish finish;
    finish.out = c.data();
    finish.ldo = n;
    report(name, q_tiles().name,
           best_of(10, [&] { qgemm(m, n, k, rows.data(), panels.data(), finish); }), operations);
    const NbitsShape shape{n, k, 32};
    std::vector<float> scales(static_cast<size_t>(n * shape.blocks()), 1);
    std::vector<std::byte> codes(nbits_packed_bytes(shape));
    nbits_pack(shape, {.codes = bytes.data(), .row_bytes = shape.k / 2, .scales = scales.data()},
               codes.data());
    report(name, "4 bits",
           best_of(5, [&] { nbits_gemm(shape, m, a.data(), codes.data(), nullptr, c.data()); }),
           operations);
  }
}

/// Bytes by constant ones, as networks have them: numbers around their middle, few far from it.
void bytes() {
  const int64_t shapes[][3] = {{60, 64, 64},    {60, 64, 256},    {60, 64, 768},    {60, 64, 3072},
                               {128, 768, 768}, {128, 3072, 768}, {128, 768, 3072}, {16, 768, 768},
                               {4, 768, 768},   {1, 768, 768}};
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  const auto numbers = [&](int64_t count, float spread, float middle) {
    std::vector<uint8_t> x(static_cast<size_t>(count));
    for (uint8_t& of : x)
      of = static_cast<uint8_t>(
          std::clamp(std::nearbyint(spread * normal(random) + middle), middle - 127, middle + 127));
    return x;
  };
  for (const auto& [m, n, k] : shapes) {
    const std::vector<uint8_t> a = numbers(m * k, 30, 128);
    std::vector<uint8_t> b = numbers(k * n, 28, 128);
    const QTiles& tiles = q_constant_tiles(b.data(), n, 1, k, n, true, m);
    std::vector<std::byte> rows(static_cast<size_t>(m * q_row_bytes(k, tiles))),
        panels(q_panel_bytes(k, n, tiles));
    std::vector<float> c(static_cast<size_t>(m * n)), scales(static_cast<size_t>(n), 0.01f);
    q_pack_rows(a.data(), k, m, k, false, false, rows.data(), tiles);
    q_pack_panels(b.data(), n, 1, k, n, true, true, panels.data(), nullptr, tiles);
    QFinish finish;
    finish.kind = QFinish::Kind::kFloat;
    finish.column_scale = scales.data();
    finish.below_one = true;
    finish.out = c.data();
    finish.ldo = n;
    const std::string name = name_of_shape(m, n, k);
    report(name, tiles.name,
           best_of(200, [&] { qgemm(m, n, k, rows.data(), panels.data(), finish, tiles); }),
           2 * static_cast<double>(m * n * k));
  }
}

struct Layer {
  const char* name;
  int64_t groups, in, out, size, kernel, stride, pad;
};

void convolutions() {
  const Layer layers[] = {{"3x3 64 at 56", 1, 64, 64, 56, 3, 1, 1},
                          {"3x3 128 at 28", 1, 128, 128, 28, 3, 1, 1},
                          {"3x3 256 at 14", 1, 256, 256, 14, 3, 1, 1},
                          {"3x3 512 at 7", 1, 512, 512, 7, 3, 1, 1},
                          {"3x3 256 at 56", 1, 256, 256, 56, 3, 1, 1},
                          {"7x7 stride 2, 3 to 64 at 224", 1, 3, 64, 224, 7, 2, 3},
                          {"1x1 64 to 256 at 56", 1, 64, 256, 56, 1, 1, 0},
                          {"1x1 512 to 128 at 28", 1, 512, 128, 28, 1, 1, 0},
                          {"1x1 2048 to 512 at 7", 1, 2048, 512, 7, 1, 1, 0},
                          {"3x3 stride 2, 128 at 56", 1, 128, 128, 56, 3, 2, 1},
                          {"depthwise 3x3 144 at 56", 144, 1, 1, 56, 3, 1, 1},
                          {"depthwise 3x3 stride 2, 144 at 56", 144, 1, 1, 56, 3, 2, 1},
                          {"depthwise 3x3 960 at 7", 960, 1, 1, 7, 3, 1, 1},
                          {"32 groups of 4 at 56", 32, 4, 4, 56, 3, 1, 1},
                          {"3x3 64 to 3 at 112", 1, 64, 3, 112, 3, 1, 1}};
  for (const Layer& layer : layers) {
    ConvGeometry s;
    s.groups = layer.groups;
    s.in_channels = layer.in;
    s.out_channels = layer.out;
    for (int axis = 1; axis < 3; ++axis) {
      s.in[axis] = layer.size;
      s.kernel[axis] = layer.kernel;
      s.stride[axis] = layer.stride;
      s.pad[axis] = layer.pad;
      s.out[axis] = (layer.size + 2 * layer.pad - layer.kernel) / layer.stride + 1;
    }
    const ConvPlan plan = plan_convolution(s);
    std::vector<float> x(static_cast<size_t>(s.groups * s.in_channels * s.in_plane()), 0.5f);
    std::vector<float> w(static_cast<size_t>(s.groups * s.out_channels * s.depth()), 0.1f);
    std::vector<float> y(static_cast<size_t>(s.groups * s.out_channels * s.out_plane()));
    std::vector<float> packed(plan.weight_floats + 64), scratch(plan.scratch_floats + 64);
    pack_convolution(plan, w.data(), packed.data());
    report(layer.name, name_of(plan.algorithm),
           best_of(10,
                   [&] {
                     run_convolution(plan, x.data(), packed.data(), y.data(), {}, scratch.data());
                   }),
           2 * static_cast<double>(y.size()) * static_cast<double>(s.depth()));
  }
}

}  // namespace
}  // namespace tombolo

int main(int count, char** words) {
  using namespace tombolo;
  set_thread_count(1);
  peak = measure_peak();
  std::printf("%s, peak %.1f Gflop/s\n\n", std::string(name_of(active_isa())).c_str(), peak);
  std::printf("| shape | how | ms | G/s | of the float peak |\n|---|---|---|---|---|\n");
  const std::string only = count > 1 ? words[1] : "";
  if (only.empty() || only == "products") products();
  if (only.empty() || only == "bytes") bytes();
  if (only.empty() || only == "convolutions") convolutions();
  return 0;
}
