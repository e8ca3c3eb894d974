#include "runtime/kernels/isa.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>

#include "base/cpu.h"

namespace tombolo {
namespace {

struct Name {
  Isa isa;
  std::string_view name;
};
constexpr Name kNames[] = {{Isa::kScalar, "scalar"},
                           {Isa::kNeon, "neon"},
                           {Isa::kSse4, "sse4"},
                           {Isa::kAvx2, "avx2"},
                           {Isa::kAvx512, "avx512"}};

Isa detect() {
#if defined(__x86_64__)
  const CpuFeatures& cpu = cpu_features();
  const bool avx2 = cpu.avx2 && cpu.fma && cpu.f16c && __builtin_cpu_supports("bmi") &&
                    __builtin_cpu_supports("bmi2");
  if (avx2 && cpu.avx512f && cpu.avx512bw && cpu.avx512dq && cpu.avx512vl) return Isa::kAvx512;
  if (avx2) return Isa::kAvx2;
  if (__builtin_cpu_supports("sse4.2")) return Isa::kSse4;
  return Isa::kScalar;
#elif defined(__aarch64__)
  return Isa::kNeon;
#else
  return Isa::kScalar;
#endif
}

Isa from_environment() {
  if (const char* text = std::getenv("TOMBOLO_ISA"))
    for (const Name& row : kNames)
      if (row.name == text) return std::min(row.isa, best_isa());
  return best_isa();
}

std::atomic<Isa>& active() {
  static std::atomic<Isa> isa{from_environment()};
  return isa;
}

}  // namespace

Isa best_isa() {
  static const Isa isa = detect();
  return isa;
}
Isa active_isa() { return active().load(std::memory_order_relaxed); }
void set_isa(Isa isa) { active() = std::min(isa, best_isa()); }

std::string_view name_of(Isa isa) {
  for (const Name& row : kNames)
    if (row.isa == isa) return row.name;
  return "unknown";
}

bool has_vnni() { return active_isa() == Isa::kAvx512 && cpu_features().avx512vnni; }
bool has_bf16_dot() { return active_isa() == Isa::kAvx512 && cpu_features().avx512bf16; }
bool has_avx_vnni() { return active_isa() == Isa::kAvx2 && cpu_features().avxvnni; }

int vector_floats() {
  switch (active_isa()) {
    case Isa::kAvx512:
      return 16;
    case Isa::kAvx2:
      return 8;
    default:
      return 4;
  }
}

}  // namespace tombolo
