#include "base/cpu.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <thread>

#ifdef __linux__
#include <sched.h>
#endif
#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#define TOMBOLO_X86 1
#endif
#if defined(__aarch64__) && defined(__linux__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

namespace tombolo {
namespace {

struct FeatureName {
  std::string_view name;
  bool CpuFeatures::*flag;
};

constexpr FeatureName kNames[] = {
    {"avx", &CpuFeatures::avx},
    {"avx2", &CpuFeatures::avx2},
    {"fma", &CpuFeatures::fma},
    {"f16c", &CpuFeatures::f16c},
    {"avx512f", &CpuFeatures::avx512f},
    {"avx512bw", &CpuFeatures::avx512bw},
    {"avx512dq", &CpuFeatures::avx512dq},
    {"avx512vl", &CpuFeatures::avx512vl},
    {"avx512vnni", &CpuFeatures::avx512vnni},
    {"avx512bf16", &CpuFeatures::avx512bf16},
    {"avx512fp16", &CpuFeatures::avx512fp16},
    {"avxvnni", &CpuFeatures::avxvnni},
    {"amx-int8", &CpuFeatures::amx_int8},
    {"amx-bf16", &CpuFeatures::amx_bf16},
    {"neon", &CpuFeatures::neon},
    {"dotprod", &CpuFeatures::dotprod},
    {"i8mm", &CpuFeatures::i8mm},
    {"bf16", &CpuFeatures::bf16},
    {"fp16", &CpuFeatures::fp16},
    {"sve", &CpuFeatures::sve},
};

#ifdef TOMBOLO_X86

enum Register { kEax, kEbx, kEcx, kEdx };
using Leaf = std::array<uint32_t, 4>;

Leaf cpuid(uint32_t leaf, uint32_t subleaf = 0) {
  Leaf r{};
  __get_cpuid_count(leaf, subleaf, &r[kEax], &r[kEbx], &r[kEcx], &r[kEdx]);
  return r;
}

// Which registers the system saves on a context switch (XCR0); without that an instruction set
// is of no use, whatever the processor says.
uint64_t saved_state() {
  constexpr uint32_t osxsave = 1u << 27;
  if ((cpuid(1)[kEcx] & osxsave) == 0) return 0;
  uint32_t low, high;
  __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return uint64_t{high} << 32 | low;
}

constexpr uint64_t kYmm = 0x6, kZmm = 0xE6, kTiles = 0x60000;

// Intel SDM volume 2, CPUID.
struct FeatureBit {
  bool CpuFeatures::*flag;
  uint8_t leaf, subleaf;
  Register reg;
  uint8_t bit;
  uint64_t state;
};

constexpr FeatureBit kBits[] = {
    {&CpuFeatures::avx, 1, 0, kEcx, 28, kYmm},
    {&CpuFeatures::fma, 1, 0, kEcx, 12, kYmm},
    {&CpuFeatures::f16c, 1, 0, kEcx, 29, kYmm},
    {&CpuFeatures::avx2, 7, 0, kEbx, 5, kYmm},
    {&CpuFeatures::avx512f, 7, 0, kEbx, 16, kZmm},
    {&CpuFeatures::avx512dq, 7, 0, kEbx, 17, kZmm},
    {&CpuFeatures::avx512bw, 7, 0, kEbx, 30, kZmm},
    {&CpuFeatures::avx512vl, 7, 0, kEbx, 31, kZmm},
    {&CpuFeatures::avx512vnni, 7, 0, kEcx, 11, kZmm},
    {&CpuFeatures::avx512fp16, 7, 0, kEdx, 23, kZmm},
    {&CpuFeatures::amx_bf16, 7, 0, kEdx, 22, kTiles},
    {&CpuFeatures::amx_int8, 7, 0, kEdx, 25, kTiles},
    {&CpuFeatures::avxvnni, 7, 1, kEax, 4, kYmm},
    {&CpuFeatures::avx512bf16, 7, 1, kEax, 5, kZmm},
};

#endif

CpuFeatures detect() {
  CpuFeatures features;
#ifdef TOMBOLO_X86
  const uint64_t state = saved_state();
  for (const auto& row : kBits) {
    const Leaf leaf = cpuid(row.leaf, row.subleaf);
    features.*row.flag = (leaf[row.reg] >> row.bit & 1) && (state & row.state) == row.state;
  }
#ifdef TOMBOLO_EMULATE_AMX
  features.amx_int8 = features.avx512vnni;
  features.amx_bf16 = features.avx512bf16;
#endif
  const Leaf vendor = cpuid(0);
  const auto made_by = [&](uint32_t ebx, uint32_t edx, uint32_t ecx) {
    return vendor[kEbx] == ebx && vendor[kEdx] == edx && vendor[kEcx] == ecx;
  };
  features.intel = made_by(signature_INTEL_ebx, signature_INTEL_edx, signature_INTEL_ecx);
  features.amd = made_by(signature_AMD_ebx, signature_AMD_edx, signature_AMD_ecx);
#elif defined(__aarch64__)
  features.neon = true;  // part of the architecture
#ifdef __linux__
  const unsigned long low = ::getauxval(AT_HWCAP), high = ::getauxval(AT_HWCAP2);
  features.dotprod = low & HWCAP_ASIMDDP;
  features.fp16 = low & HWCAP_ASIMDHP;
  features.sve = low & HWCAP_SVE;
  features.i8mm = high & HWCAP2_I8MM;
  features.bf16 = high & HWCAP2_BF16;
#elif defined(__APPLE__)
  features.dotprod = features.fp16 = true;  // every processor that macOS runs on
#endif
#endif
  return features;
}

// A small system file, or "" if it is not there. fopen: these files have no size to map.
std::string read_small(const std::string& path) {
  std::string text;
  if (FILE* file = std::fopen(path.c_str(), "re")) {
    char buffer[4096];
    size_t n;
    while ((n = std::fread(buffer, 1, sizeof(buffer), file)) > 0 && text.size() < 1 << 20) {
      text.append(buffer, n);
    }
    std::fclose(file);
  }
  return text;
}

std::string_view next_token(std::string_view& text, std::string_view separators) {
  const size_t from = std::min(text.find_first_not_of(separators), text.size());
  const size_t to = std::min(text.find_first_of(separators, from), text.size());
  const auto token = text.substr(from, to - from);
  text.remove_prefix(to);
  return token;
}

// Cores of a quota in microseconds per period; nothing for "max", -1 and what is no number.
std::optional<unsigned> cores_of(std::string_view quota, std::string_view period) {
  int64_t q = 0, p = 0;
  std::from_chars(quota.data(), quota.data() + quota.size(), q);
  std::from_chars(period.data(), period.data() + period.size(), p);
  if (q <= 0 || p <= 0) return std::nullopt;
  return static_cast<unsigned>(std::clamp<int64_t>(q / p + (q % p != 0), 1, 1 << 20));
}

std::optional<unsigned> group_quota(const std::string& folder) {
  const std::string v2 = read_small(folder + "/cpu.max");
  if (!v2.empty()) {
    std::string_view text = v2;
    const auto quota = next_token(text, " \n");
    return cores_of(quota, next_token(text, " \n"));
  }
  return cores_of(read_small(folder + "/cpu.cfs_quota_us"),
                  read_small(folder + "/cpu.cfs_period_us"));
}

// The controller lists that mean a hierarchy with CPU quotas: v2 has an empty list.
bool governs_cpu(std::string_view controllers) {
  if (controllers.empty()) return true;
  while (!controllers.empty()) {
    if (next_token(controllers, ",") == "cpu") return true;
  }
  return false;
}

}  // namespace

std::vector<std::string_view> CpuFeatures::names() const {
  std::vector<std::string_view> result;
  for (const auto& row : kNames) {
    if (this->*row.flag) result.push_back(row.name);
  }
  return result;
}

const CpuFeatures& cpu_features() {
  static const CpuFeatures features = detect();
  return features;
}

std::string cpu_name() {
#ifdef TOMBOLO_X86
  if (static_cast<uint32_t>(__get_cpuid_max(0x80000000u, nullptr)) >= 0x80000004u) {
    std::string name;
    for (uint32_t leaf = 0x80000002u; leaf <= 0x80000004u; ++leaf) {
      for (const uint32_t word : cpuid(leaf)) {
        for (int i = 0; i < 4; ++i) name += static_cast<char>(word >> 8 * i & 0xFF);
      }
    }
    name.resize(std::min(name.find('\0'), name.size()));
    const size_t from = std::min(name.find_first_not_of(' '), name.size());
    const size_t to = name.find_last_not_of(' ');
    if (from < name.size()) return name.substr(from, to - from + 1);
  }
#endif
  return "unknown";
}

std::optional<unsigned> control_group_cores(const std::string& mount,
                                            const std::string& membership) {
  std::optional<unsigned> result;
  const std::string text = read_small(membership);
  std::string_view lines = text;
  while (!lines.empty()) {
    // hierarchy-number:controllers:/path
    const auto line = next_token(lines, "\n");
    const size_t first = line.find(':');
    const size_t second = first == line.npos ? line.npos : line.find(':', first + 1);
    if (second == line.npos) continue;
    const auto controllers = line.substr(first + 1, second - first - 1);
    if (!governs_cpu(controllers)) continue;
    // v1 hierarchies are mounted under their controllers' names, v2 at the top or, beside v1,
    // under "unified".
    std::vector<std::string> roots;
    if (controllers.empty()) {
      roots = {mount, mount + "/unified"};
    } else {
      roots = {mount + "/" + std::string(controllers), mount + "/cpu"};
    }
    for (const auto& root : roots) {
      // A limit of any ancestor holds too. Inside a container the path may not exist, while the
      // root shows the container's own limit.
      std::string path(line.substr(second + 1));
      while (true) {
        while (!path.empty() && path.back() == '/') path.pop_back();
        if (auto cores = group_quota(root + path)) {
          result = std::min(result.value_or(*cores), *cores);
        }
        if (path.empty()) break;
        path.resize(std::min(path.rfind('/'), path.size()));
        if (path.find('/') == path.npos) path.clear();
      }
    }
  }
  return result;
}

unsigned allowed_cores() {
  unsigned cores = std::thread::hardware_concurrency();
#ifdef __linux__
  // The set must be at least as large as the kernel's: grow until it fits.
  for (size_t count = 1024; count <= size_t{1} << 20; count *= 2) {
    cpu_set_t* set = CPU_ALLOC(count);
    if (set == nullptr) break;
    const size_t size = CPU_ALLOC_SIZE(count);
    const bool done = ::sched_getaffinity(0, size, set) == 0;
    if (done) cores = static_cast<unsigned>(CPU_COUNT_S(size, set));
    CPU_FREE(set);
    if (done) break;
  }
  if (auto quota = control_group_cores()) cores = std::min(cores, *quota);
#endif
  return std::max(cores, 1u);
}

}  // namespace tombolo
