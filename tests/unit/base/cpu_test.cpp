#include "base/cpu.h"

#include <gtest/gtest.h>

#ifdef __linux__
#include <sched.h>
#endif

#include "temporary_folder.h"

namespace tombolo {
namespace {

#ifdef __x86_64__
TEST(Cpu, FeaturesAgreeWithTheCompilersRuntime) {
  __builtin_cpu_init();
  const auto& f = cpu_features();
  EXPECT_EQ(f.avx, __builtin_cpu_supports("avx") != 0);
  EXPECT_EQ(f.avx2, __builtin_cpu_supports("avx2") != 0);
  EXPECT_EQ(f.fma, __builtin_cpu_supports("fma") != 0);
  EXPECT_EQ(f.avx512f, __builtin_cpu_supports("avx512f") != 0);
  EXPECT_EQ(f.avx512bw, __builtin_cpu_supports("avx512bw") != 0);
  EXPECT_EQ(f.avx512dq, __builtin_cpu_supports("avx512dq") != 0);
  EXPECT_EQ(f.avx512vl, __builtin_cpu_supports("avx512vl") != 0);
  EXPECT_EQ(f.avx512vnni, __builtin_cpu_supports("avx512vnni") != 0);
  EXPECT_EQ(f.avx512bf16, __builtin_cpu_supports("avx512bf16") != 0);
}
#endif

TEST(Cpu, NamesFollowTheFlags) {
  CpuFeatures features;
  EXPECT_TRUE(features.names().empty());
  features.avx2 = features.neon = true;
  EXPECT_EQ(features.names(), (std::vector<std::string_view>{"avx2", "neon"}));
  EXPECT_FALSE(cpu_name().empty());
}

class ControlGroups : public testing::Test {
 protected:
  void write(const std::string& path, const std::string& content) {
    std::filesystem::create_directories(
        std::filesystem::path(folder_.file("mount/" + path)).parent_path());
    folder_.write("mount/" + path, content);
  }
  std::optional<unsigned> cores(const std::string& membership) {
    return control_group_cores(folder_.file("mount"), folder_.write("membership", membership));
  }
  TemporaryFolder folder_;
};

TEST_F(ControlGroups, Version2TakesTheSmallestLimitUpToTheRoot) {
  write("a/b/cpu.max", "max 100000\n");
  write("a/cpu.max", "250000 100000\n");
  EXPECT_EQ(cores("0::/a/b\n"), 3u);
  write("cpu.max", "100000 100000\n");
  EXPECT_EQ(cores("0::/a/b\n"), 1u);
  EXPECT_EQ(cores("0::/not/visible/here\n"), 1u);
}

TEST_F(ControlGroups, Version1) {
  write("cpu,cpuacct/x/cpu.cfs_quota_us", "150000\n");
  write("cpu,cpuacct/x/cpu.cfs_period_us", "100000\n");
  write("cpu,cpuacct/cpu.cfs_quota_us", "-1\n");
  write("cpu,cpuacct/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(cores("5:memory:/y\n4:cpu,cpuacct:/x\n"), 2u);
  EXPECT_EQ(cores("4:cpu,cpuacct:/\n"), std::nullopt);
}

TEST_F(ControlGroups, NoLimit) {
  EXPECT_EQ(cores(""), std::nullopt);
  EXPECT_EQ(cores("nonsense\n:\n0:\n0::\n"), std::nullopt);
  write("cpu.max", "max 100000\n");
  EXPECT_EQ(cores("0::/\n"), std::nullopt);
  write("cpu.max", "100000 0\n");
  EXPECT_EQ(cores("0::/\n"), std::nullopt);
}

TEST(Cpu, AllowedCoresFollowTheAffinity) {
  EXPECT_GE(allowed_cores(), 1u);
#ifdef __linux__
  cpu_set_t before, one;
  ASSERT_EQ(::sched_getaffinity(0, sizeof(before), &before), 0);
  CPU_ZERO(&one);
  for (int i = 0; i < CPU_SETSIZE; ++i) {
    if (CPU_ISSET(i, &before)) {
      CPU_SET(i, &one);
      break;
    }
  }
  ASSERT_EQ(::sched_setaffinity(0, sizeof(one), &one), 0);
  EXPECT_EQ(allowed_cores(), 1u);
  ::sched_setaffinity(0, sizeof(before), &before);
#endif
}

}  // namespace
}  // namespace tombolo
