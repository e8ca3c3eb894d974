#include "runtime/kernels/isa.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>

#include "base/cpu.h"

#if defined(__x86_64__) && defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

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

/// TOMBOLO_ISA without what stands behind the dash.
std::string_view asked_name() {
  const char* text = std::getenv("TOMBOLO_ISA");
  const std::string_view name = text == nullptr ? "" : text;
  return name.substr(0, name.find('-'));
}

Isa from_environment() {
  const std::string_view name = asked_name();
  for (const Name& row : kNames)
    if (row.name == name) return std::min(row.isa, best_isa());
  return best_isa();
}

Extras extras_from_environment() {
  const char* text = std::getenv("TOMBOLO_ISA");
  const std::string_view name = text == nullptr ? "" : text;
  if (name.ends_with("-base")) return Extras::kNone;
  return name.ends_with("-dot") ? Extras::kDot : Extras::kTiles;
}

std::atomic<Extras>& extras() {
  static std::atomic<Extras> value{extras_from_environment()};
  return value;
}
bool allows(Extras least) { return extras().load(std::memory_order_relaxed) >= least; }

/// The registers of tiles are large: Linux gives them to a process that asks.
bool tiles_granted() {
#if defined(TOMBOLO_EMULATE_AMX)
  return true;
#elif defined(__x86_64__) && defined(__linux__)
  constexpr long kRequestPermission = 0x1023, kTileData = 18;  // <asm/prctl.h>, XFEATURE_XTILEDATA
  return ::syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
#else
  return false;
#endif
}
bool has_tiles() {
  if (active_isa() != Isa::kAvx512 || !allows(Extras::kTiles)) return false;
  static const bool granted = tiles_granted();
  return granted;
}

std::atomic<Isa>& active() {
  static std::atomic<Isa> isa{from_environment()};
  return isa;
}

bool& one_stream() {
  static bool one = cpu_features().amd;
  return one;
}

bool& fast_division() {
  // Of those with AVX-512, AVX-VNNI tells Zen 5 and what came after it from Zen 4.
  static bool fast = cpu_features().amd && cpu_features().avxvnni;
  return fast;
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

void limit_extras(Extras most) { extras() = most; }

bool has_vnni() {
  return active_isa() == Isa::kAvx512 && cpu_features().avx512vnni && allows(Extras::kDot);
}
bool has_bf16_dot() {
  return active_isa() == Isa::kAvx512 && cpu_features().avx512bf16 && allows(Extras::kDot);
}
bool has_avx_vnni() {
  return active_isa() == Isa::kAvx2 && cpu_features().avxvnni && allows(Extras::kDot);
}
bool has_arm_dot() {
  return active_isa() == Isa::kNeon && cpu_features().dotprod && allows(Extras::kDot);
}
bool has_amx_int8() { return cpu_features().amx_int8 && has_vnni() && has_tiles(); }
bool has_f16_products() {
  return has_bf16_dot() && cpu_features().avx512fp16 && cpu_features().intel && !has_amx_bf16();
}
bool reads_one_stream() { return one_stream(); }
void set_reads_one_stream(bool one) { one_stream() = one; }
bool divides_fast() { return fast_division(); }
void set_divides_fast(bool fast) { fast_division() = fast; }
bool has_amx_bf16() { return cpu_features().amx_bf16 && has_bf16_dot() && has_tiles(); }

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
