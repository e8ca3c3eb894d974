#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tombolo {

/// Instruction sets that processor *and* operating system offer. False on other architectures.
struct CpuFeatures {
  bool avx = false;
  bool avx2 = false;
  bool fma = false;
  bool f16c = false;
  bool avx512f = false;
  bool avx512bw = false;
  bool avx512dq = false;
  bool avx512vl = false;
  bool avx512vnni = false;
  bool avx512bf16 = false;
  bool avx512fp16 = false;
  bool avxvnni = false;
  bool amx_int8 = false;
  bool amx_bf16 = false;
  bool neon = false;
  bool dotprod = false;
  bool i8mm = false;
  bool bf16 = false;
  bool fp16 = false;
  bool sve = false;
  /// Who made it: the same instructions cost otherwise. No names of their own.
  bool intel = false;
  bool amd = false;

  /// Names of those that are there, in the order above.
  std::vector<std::string_view> names() const;
};

/// Detected once.
const CpuFeatures& cpu_features();

/// The processor's name as it tells it ("AMD EPYC 9B45"), or "unknown".
std::string cpu_name();

/// Cores that this process may keep busy: the affinity mask, limited by the CPU quota of its
/// control group (v1 or v2, rounded up to whole cores). At least 1.
unsigned allowed_cores();

/// The quota alone, in cores rounded up: the smallest one from the process's control group up to
/// the root. Nothing if there is no limit. The parameters are for tests.
std::optional<unsigned> control_group_cores(const std::string& mount = "/sys/fs/cgroup",
                                            const std::string& membership = "/proc/self/cgroup");

}  // namespace tombolo
