#include "base/thread_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <numeric>
#include <random>
#include <thread>
#include <vector>

#include "runtime/kernels/parallel.h"

namespace tombolo {
namespace {

class ThreadPool : public ::testing::Test {
 protected:
  void TearDown() override { set_thread_count(0); }

  /// Loops of all sizes: each element is visited once.
  static void visit(unsigned seed, int loops) {
    std::mt19937 engine(seed);
    const auto up_to = [&](unsigned most) { return static_cast<int64_t>(1 + engine() % most); };
    for (int i = 0; i < loops; ++i) {
      const FixedPieces fixed(engine() % 5 == 0);
      const int64_t count = up_to(engine() % 4 == 0 ? 6000 : 40), grain = up_to(200);
      const int64_t work = engine() % 3 == 0 ? up_to(2000) : 0;
      std::vector<std::atomic<int>> visits(static_cast<size_t>(count));
      parallel(count, grain, [&](int64_t begin, int64_t end) {
        for (volatile int64_t spent = 0; spent < work;) spent = spent + 1;
        for (; begin < end; ++begin) ++visits[static_cast<size_t>(begin)];
      });
      for (const std::atomic<int>& times : visits) ASSERT_EQ(times, 1) << count << " by " << grain;
    }
  }
};

TEST_F(ThreadPool, VisitsEachElementOnce) {
  for (const int threads : {1, 2, 3, 7, 0}) {
    set_thread_count(threads);
    visit(static_cast<unsigned>(threads), 2000);
  }
}

TEST_F(ThreadPool, TakesLoopsOfSeveralCallers) {
  std::vector<std::thread> callers;
  for (unsigned i = 0; i < 4; ++i) callers.emplace_back([i] { visit(10 + i, 1000); });
  for (std::thread& caller : callers) caller.join();
}

TEST_F(ThreadPool, RunsLoopsOfALoopInline) {
  std::atomic<int64_t> sum{0};
  parallel(8, 1, [&](int64_t begin, int64_t end) {
    for (; begin < end; ++begin)
      parallel(100, 1, [&](int64_t from, int64_t to) {
        EXPECT_EQ(to - from, 100);
        sum += to - from;
      });
  });
  EXPECT_EQ(sum, 800);
}

// What a loop read and wrote is there for the next one, whoever takes it.
TEST_F(ThreadPool, LoopsFollowOneAnother) {
  std::vector<int64_t> numbers(1000, 0);
  for (int64_t turn = 0; turn < 3000; ++turn)
    parallel(1000, 100, [&](int64_t begin, int64_t end) {
      for (; begin < end; ++begin) {
        const int64_t other = numbers[static_cast<size_t>(begin)];
        numbers[static_cast<size_t>(begin)] = other + turn % 7;
      }
    });
  int64_t want = 0;
  for (int64_t turn = 0; turn < 3000; ++turn) want += turn % 7;
  EXPECT_EQ(std::accumulate(numbers.begin(), numbers.end(), int64_t{0}), 1000 * want);
}

}  // namespace
}  // namespace tombolo
