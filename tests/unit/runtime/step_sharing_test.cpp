#include "runtime/step_sharing.h"

#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

#include "base/thread_pool.h"
#include "runtime/kernels/parallel.h"

namespace tombolo {
namespace {

using Mode = StepSharing::Mode;
using Steps = std::vector<StepSharing::Step>;

StepSharing::Step step(int64_t microseconds, bool has_loops = true) {
  return {std::chrono::microseconds(microseconds), has_loops};
}

/// Steps that take so long shared and alone.
struct Costs {
  std::vector<int64_t> shared, alone;
  int64_t apart = 0;  ///< more for a shared step next to one that is not

  Steps of(const StepSharing& sharing, Mode mode) const {
    Steps steps;
    for (size_t i = 0; i < shared.size(); ++i) {
      const auto kept = [&](size_t at) {
        return sharing.any_alone(mode) && sharing.alone(mode, at);
      };
      const bool next = i + 1 < shared.size() && kept(i + 1);
      steps.push_back(step(kept(i) ? alone[i] : shared[i] + (next ? apart : 0)));
    }
    return steps;
  }
};

/// So many runs; the modes of those that were timed.
std::vector<Mode> runs(StepSharing& sharing, const Costs& costs, int64_t count) {
  std::vector<Mode> timed;
  for (int64_t i = 0; i < count; ++i) {
    const Mode mode = sharing.begin(2);
    if (mode == Mode::kLearned) continue;
    timed.push_back(mode);
    sharing.taken(costs.of(sharing, mode));
  }
  return timed;
}

std::vector<bool> learned(const StepSharing& sharing, size_t steps) {
  std::vector<bool> kept(steps);
  for (size_t i = 0; i < steps; ++i)
    kept[i] = sharing.any_alone(Mode::kLearned) && sharing.alone(Mode::kLearned, i);
  return kept;
}

constexpr int kTimed = StepSharing::kRounds * StepSharing::kRunsOfRound;  // two ways in turns
constexpr int64_t kRound = StepSharing::kRunsOfRound + StepSharing::kBetweenRounds;
constexpr int64_t kFirst = 4 * StepSharing::kRounds * kRound;  // two ways, twice

TEST(StepSharing, KeepsStepsThatAreFasterAlone) {
  StepSharing sharing;
  const std::vector<Mode> timed = runs(sharing, {{10, 30, 10}, {18, 20, 19}}, kFirst);
  EXPECT_EQ(timed.size(), 4u * kTimed);
  EXPECT_EQ(std::set<Mode>(timed.begin(), timed.end()),
            (std::set<Mode>{Mode::kShared, Mode::kAlone, Mode::kMixed}));
  EXPECT_EQ(learned(sharing, 3), (std::vector<bool>{false, true, false}));
}

TEST(StepSharing, TakesWhatIsFastestForTheWholeRun) {
  // Each step alone would have it mixed, were it not for what lies between them.
  StepSharing sharing;
  runs(sharing, {{10, 30, 10}, {12, 20, 12}, 30}, kFirst);
  EXPECT_EQ(learned(sharing, 3), (std::vector<bool>{true, true, true}));
  StepSharing shared;
  runs(shared, {{10, 21, 10}, {40, 20, 40}, 30}, kFirst);
  EXPECT_EQ(learned(shared, 3), (std::vector<bool>{false, false, false}));
}

TEST(StepSharing, SharesWhereThatIsFaster) {
  StepSharing sharing;
  const std::vector<Mode> timed = runs(sharing, {{10, 10}, {18, 19}}, kFirst);
  EXPECT_LT(timed.size(), 1u * kTimed);  // two rounds show it
  EXPECT_FALSE(sharing.any_alone(Mode::kLearned));
}

TEST(StepSharing, FollowsWhatChanges) {
  StepSharing sharing;
  const Costs near{{10, 10}, {18, 19}}, far{{30, 30}, {18, 19}};
  runs(sharing, near, 300000);  // a second and more
  EXPECT_EQ(learned(sharing, 2), (std::vector<bool>{false, false}));
  runs(sharing, far, 300000);
  EXPECT_EQ(learned(sharing, 2), (std::vector<bool>{true, true}));
  runs(sharing, near, 300000);
  EXPECT_EQ(learned(sharing, 2), (std::vector<bool>{false, false}));
}

TEST(StepSharing, TimesFewRuns) {
  // Nor does a median of some see the slower way.
  StepSharing fresh;
  const std::vector<Mode> timed = runs(fresh, {{1000}, {1900}}, 40);
  EXPECT_TRUE(timed.empty());
  EXPECT_LE(runs(fresh, {{1000}, {1900}}, 160).size(), 12u);
  StepSharing sharing;
  const Costs costs{{10, 30}, {18, 19}};
  runs(sharing, costs, 200000);
  EXPECT_LE(runs(sharing, costs, 300000).size(), 1000u);
}

TEST(StepSharing, LeavesLongRunsAndThoseWithoutLoops) {
  StepSharing lengthy;
  EXPECT_LT(runs(lengthy, {{1500, 1500}, {10, 10}}, 100000).size(), 4u);
  EXPECT_FALSE(lengthy.any_alone(Mode::kLearned));
  StepSharing plain;
  for (int i = 0; i < 1000; ++i)
    if (plain.begin(2) != Mode::kLearned) {
      EXPECT_LT(i, kRound);
      plain.taken({step(10, false), step(20, false)});
    }
}

TEST(StepSharing, WhatDisturbsForAWhileDoesNotDecide) {
  StepSharing sharing;
  const Costs quiet{{10, 10}, {18, 19}}, disturbed{{40, 40}, {20, 20}};
  runs(sharing, disturbed, StepSharing::kRounds * kRound);
  runs(sharing, quiet, kFirst);
  EXPECT_FALSE(sharing.any_alone(Mode::kLearned));
}

TEST(StepSharing, OneRunIsTimedAtATime) {
  StepSharing sharing;
  while (sharing.begin(2) == Mode::kLearned) continue;
  for (int i = 0; i < 100; ++i) EXPECT_EQ(sharing.begin(2), Mode::kLearned);
  sharing.give_up();  // it failed: a later one takes its place
  for (int64_t i = 0; i < StepSharing::kBetweenRounds; ++i)
    EXPECT_EQ(sharing.begin(2), Mode::kLearned);
  EXPECT_EQ(sharing.begin(2), Mode::kShared);
  StepSharing one_thread;
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(one_thread.begin(1), Mode::kLearned);
}

TEST(StepSharing, RunsKeepAndTimeLoops) {
  set_thread_count(2);
  StepSharing sharing;
  std::set<std::pair<int64_t, int64_t>> pieces[2];
  for (int i = 0; i < 1000; ++i) {
    SharedRun run(&sharing);
    for (size_t at = 0; at < 2; ++at) {
      run.begin_step(at);
      std::atomic<int64_t> sum{0};
      parallel(1000, 100, [&](int64_t begin, int64_t end) { sum += end - begin; });
      EXPECT_EQ(sum, 1000);
    }
    if (i % 7 != 0) run.finish();
  }
  set_thread_count(0);
  // Whatever it learned, loops after it are shared, and cut alike when they are kept.
  for (const bool alone : {false, true}) {
    set_thread_count(2);
    keep_loops(alone);
    std::mutex mutex;
    parallel(1000, 7, [&](int64_t begin, int64_t end) {
      const std::lock_guard lock(mutex);
      pieces[alone].insert({begin, end});
    });
    keep_loops(false);
    set_thread_count(0);
  }
  EXPECT_EQ(pieces[0], pieces[1]);
}

}  // namespace
}  // namespace tombolo
