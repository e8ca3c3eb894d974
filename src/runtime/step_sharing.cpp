#include "runtime/step_sharing.h"

#include <algorithm>
#include <numeric>

#include "base/thread_pool.h"

namespace tombolo {

namespace {

constexpr int64_t kRunsOfOneThread = 1000;  ///< until it is asked again how many there are

/// Noise is not to decide: at least four of a hundred.
bool clearly_less(StepSharing::Duration a, StepSharing::Duration b) {
  return a.count() * 26 < b.count() * 25;
}

}  // namespace

StepSharing::Mode StepSharing::begin(int threads) {
  const int64_t left = left_.load(std::memory_order_relaxed);
  if (left == kNever) return Mode::kLearned;
  if (left > 0) {  // runs that go on at the same time may count as one
    left_.store(left - 1, std::memory_order_relaxed);
    return Mode::kLearned;
  }
  if (threads <= 1) {
    left_.store(kRunsOfOneThread, std::memory_order_relaxed);
    return Mode::kLearned;
  }
  if (timing_.exchange(true, std::memory_order_acquire)) return Mode::kLearned;
  threads_ = threads;
  return mode();
}

StepSharing::Mode StepSharing::mode() const { return ways_[done_ / 2 % 2]; }

void StepSharing::give_up() {
  left_.store(kBetweenRounds, std::memory_order_relaxed);
  timing_.store(false, std::memory_order_release);
}

void StepSharing::taken(const std::vector<Step>& run) {
  const Mode way = mode();
  if (done_ % 2 == 1) {
    const auto sum =
        std::accumulate(run.begin(), run.end(), Duration(0),
                        [](Duration before, const Step& step) { return before + step.time; });
    const bool first = done_ < kRunsOfRound;
    whole(way) = first ? sum : std::min(whole(way), sum);
    if (ways_[1] == Mode::kAlone) {
      std::vector<Step>& fastest = fastest_[way == Mode::kAlone];
      if (first) fastest = run;
      for (size_t i = 0; i < run.size(); ++i) {
        fastest[i].time = std::min(fastest[i].time, run[i].time);
        fastest[i].has_loops |= run[i].has_loops;
      }
      if (first && way == Mode::kShared &&
          (sum * threads_ > kLongestAlone ||
           std::none_of(run.begin(), run.end(), [](const Step& step) { return step.has_loops; })))
        left_.store(kNever, std::memory_order_relaxed);
    }
  }
  if (++done_ % kRunsOfRound == 0) end_round();
  timing_.store(false, std::memory_order_release);
}

StepSharing::Duration StepSharing::saving() const {
  Duration sum(0);
  for (size_t i = 0; i < fastest_[0].size(); ++i)
    if (fastest_[0][i].has_loops)
      sum += std::max(Duration(0), fastest_[0][i].time - fastest_[1][i].time);
  return sum;
}

void StepSharing::end_round() {
  if (left_.load(std::memory_order_relaxed) == kNever) return;
  left_.store(kBetweenRounds, std::memory_order_relaxed);
  const Duration shared = whole(Mode::kShared), alone = whole(Mode::kAlone);
  if (ways_[1] == Mode::kAlone) {
    // What saves nothing in two rounds does not in five.
    if (done_ >= 2 * kRunsOfRound && !clearly_less(shared - saving(), shared) &&
        !clearly_less(alone, shared))
      return learn(Mode::kShared);
    if (done_ < kRounds * kRunsOfRound) return;
    mixed_.assign(fastest_[0].size(), false);
    size_t kept = 0, loops = 0;
    for (size_t i = 0; i < mixed_.size(); ++i) {
      if (!fastest_[0][i].has_loops) continue;
      mixed_[i] = clearly_less(fastest_[1][i].time, fastest_[0][i].time);
      kept += mixed_[i];
      ++loops;
    }
    const Mode better = clearly_less(alone, shared) ? Mode::kAlone : Mode::kShared;
    if (kept == 0 || kept == loops) return learn(better);
    ways_[0] = better;
    ways_[1] = Mode::kMixed;
    done_ = 0;
    return;
  }
  if (done_ < kRounds * kRunsOfRound) return;
  learn(clearly_less(whole(Mode::kMixed), whole(ways_[0])) ? Mode::kMixed : ways_[0]);
}

void StepSharing::learn(Mode mode) {
  ways_[0] = Mode::kShared;
  ways_[1] = Mode::kAlone;
  done_ = 0;
  // Something else may have had the other cores all that time: it has to be so twice.
  if (mode != Mode::kShared && learned_ == Mode::kShared && !suspected_) {
    suspected_ = true;
    return;
  }
  suspected_ = false;
  between_ = mode == learned_ ? std::min(2 * between_, kMostBetween) : kLeastBetween;
  learned_ = mode;
  if (mode != Mode::kShared) {
    if (alone_ == nullptr) alone_ = std::make_unique<std::atomic<bool>[]>(mixed_.size());
    for (size_t i = 0; i < mixed_.size(); ++i)
      alone_[i].store(mode == Mode::kAlone || mixed_[i], std::memory_order_relaxed);
  }
  any_.store(mode != Mode::kShared, std::memory_order_release);
  left_.store(std::max(between_ / std::max(whole(mode), Duration(100)), kBetweenRounds),
              std::memory_order_relaxed);
}

bool StepSharing::any_alone(Mode mode) const {
  return mode == Mode::kLearned ? any_.load(std::memory_order_acquire) : mode != Mode::kShared;
}

bool StepSharing::alone(Mode mode, size_t step) const {
  switch (mode) {
    case Mode::kLearned:
      return alone_[step].load(std::memory_order_relaxed);
    case Mode::kShared:
      return false;
    case Mode::kAlone:
      return true;
    case Mode::kMixed:
      return mixed_[step];
  }
  return false;
}

SharedRun::SharedRun(StepSharing* sharing) : sharing_(sharing) {
  if (sharing == nullptr) return;
  mode_ = sharing->begin(thread_count());
  timed_ = mode_ != StepSharing::Mode::kLearned;
  active_ = timed_ || sharing->any_alone(mode_);
}

SharedRun::~SharedRun() {
  if (alone_) keep_loops(false);
  if (timed_) sharing_->give_up();
}

void SharedRun::close_step() {
  const Clock::time_point now = Clock::now();
  if (!steps_.empty()) {
    steps_.back().time = std::chrono::duration_cast<StepSharing::Duration>(now - begun_);
    steps_.back().has_loops = shared_loops() != loops_;
  }
  begun_ = now;
  loops_ = shared_loops();
}

void SharedRun::enter(size_t step) {
  if (timed_) {
    close_step();
    steps_.emplace_back();
  }
  const bool alone = sharing_->alone(mode_, step);
  if (alone != alone_) keep_loops(alone);
  alone_ = alone;
}

void SharedRun::end() {
  if (!timed_) return;
  close_step();
  timed_ = false;
  sharing_->taken(steps_);
}

}  // namespace tombolo
