#include "runtime/roofline.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "base/cpu.h"
#include "runtime/profile.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace tombolo {

namespace {

// Twelve independent sums: more than latency times units on every processor of today. Unrolled, or
// they live in memory.
#if defined(__x86_64__)
__attribute__((target("avx512f"))) double fma_512(int64_t rounds) {
  __m512 sums[12];
  for (int i = 0; i < 12; ++i) sums[i] = _mm512_set1_ps(static_cast<float>(i));
  const __m512 a = _mm512_set1_ps(0.999f), b = _mm512_set1_ps(0.001f);
  for (int64_t r = 0; r < rounds; ++r)
#pragma GCC unroll 12
    for (int i = 0; i < 12; ++i) sums[i] = _mm512_fmadd_ps(sums[i], a, b);
  float total = 0;
  for (auto& sum : sums) total += _mm512_cvtss_f32(sum);
  return static_cast<double>(total);
}
__attribute__((target("avx2,fma"))) double fma_256(int64_t rounds) {
  __m256 sums[12];
  for (int i = 0; i < 12; ++i) sums[i] = _mm256_set1_ps(static_cast<float>(i));
  const __m256 a = _mm256_set1_ps(0.999f), b = _mm256_set1_ps(0.001f);
  for (int64_t r = 0; r < rounds; ++r)
#pragma GCC unroll 12
    for (int i = 0; i < 12; ++i) sums[i] = _mm256_fmadd_ps(sums[i], a, b);
  float total = 0;
  for (auto& sum : sums) total += _mm256_cvtss_f32(sum);
  return static_cast<double>(total);
}
#endif

double fma_plain(int64_t rounds) {
  float sums[48];
  for (int i = 0; i < 48; ++i) sums[i] = static_cast<float>(i);
  for (int64_t r = 0; r < rounds; ++r)
    for (float& sum : sums) sum = sum * 0.999f + 0.001f;
  float total = 0;
  for (float sum : sums) total += sum;
  return static_cast<double>(total);
}

std::atomic<double> sink;  ///< so that nothing is left out as unused

/// Operations of one thread.
double arithmetic() {
  constexpr int64_t kRounds = 1 << 22;
#if defined(__x86_64__)
  if (cpu_features().avx512f) {
    sink = fma_512(kRounds);
    return kRounds * 12.0 * 16 * 2;
  }
  if (cpu_features().avx2 && cpu_features().fma) {
    sink = fma_256(kRounds);
    return kRounds * 12.0 * 8 * 2;
  }
#endif
  sink = fma_plain(kRounds / 4);
  return kRounds / 4 * 48.0 * 2;
}

uint64_t read_all(const std::vector<uint64_t>& data) {
  uint64_t sums[8] = {};
  for (size_t i = 0; i + 8 <= data.size(); i += 8)
    for (size_t k = 0; k < 8; ++k) sums[k] += data[i + k];
  uint64_t total = 0;
  for (uint64_t sum : sums) total += sum;
  return total;
}

/// The best rate of five rounds of `work` on all threads at a time; `work(thread)` gives its
/// amount.
template <typename Work>
double best_rate(int threads, Work&& work) {
  double best = 0;
  for (int round = 0; round < 5; ++round) {
    std::atomic<int> ready{0};
    std::vector<double> amount(static_cast<size_t>(threads));
    std::vector<uint64_t> begin(amount.size()), end(amount.size());
    auto body = [&](size_t i) {
      ++ready;
      while (ready < threads) std::this_thread::yield();
      begin[i] = now_ns();
      amount[i] = work(i);
      end[i] = now_ns();
    };
    std::vector<std::thread> others;
    for (size_t i = 1; i < amount.size(); ++i) others.emplace_back(body, i);
    body(0);
    for (std::thread& other : others) other.join();
    double total = 0;
    for (double part : amount) total += part;
    const uint64_t first = *std::min_element(begin.begin(), begin.end());
    const uint64_t last = *std::max_element(end.begin(), end.end());
    best = std::max(best, total / (static_cast<double>(last - first) * 1e-9));
  }
  return best;
}

}  // namespace

Roofline measure_roofline(int threads) {
  Roofline roofline;
  threads = std::max(threads, 1);
  roofline.flops = best_rate(threads, [](size_t) { return arithmetic(); });
  constexpr size_t kLarge = size_t{128} << 20, kSmall = size_t{256} << 10;
  auto rate = [&](size_t bytes, int times) {
    std::vector<std::vector<uint64_t>> data(static_cast<size_t>(threads));
    for (auto& part : data) part.assign(bytes / 8, 1);
    return best_rate(threads, [&](size_t i) {
      for (int k = 0; k < times; ++k) sink = static_cast<double>(read_all(data[i]));
      return static_cast<double>(bytes) * times;
    });
  };
  roofline.bandwidth = rate(kLarge / static_cast<size_t>(threads), 1);
  roofline.cached = rate(kSmall, 64);
  return roofline;
}

}  // namespace tombolo
