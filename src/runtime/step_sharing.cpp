#include "runtime/step_sharing.h"

#include <algorithm>
#include <numeric>

#include "base/thread_pool.h"

namespace tombolo {

namespace {

/// Noise is not to decide.
bool clearly_less(StepSharing::Duration a, StepSharing::Duration b) {
  return a.count() * 51 < b.count() * 50;
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
    left_.store(kLeastBetween, std::memory_order_relaxed);
    return Mode::kLearned;
  }
  return timing_.exchange(true, std::memory_order_acquire) ? Mode::kLearned : mode_;
}

void StepSharing::give_up() { timing_.store(false, std::memory_order_release); }

void StepSharing::taken(const std::vector<Step>& run) {
  const auto whole =
      std::accumulate(run.begin(), run.end(), Duration(0),
                      [](Duration sum, const Step& step) { return sum + step.time; });
  Duration& least = whole_[at(mode_)];
  least = done_ == 0 ? whole : std::min(least, whole);
  if (mode_ != Mode::kMixed) {
    std::vector<Step>& fastest = fastest_[at(mode_)];
    if (done_ == 0) fastest = run;
    for (size_t i = 0; i < run.size(); ++i) {
      fastest[i].time = std::min(fastest[i].time, run[i].time);
      fastest[i].has_loops |= run[i].has_loops;
    }
  }
  if (++done_ == kTimed) {
    done_ = 0;
    next_mode();
  }
  timing_.store(false, std::memory_order_release);
}

void StepSharing::next_mode() {
  const auto has_loops = [](const Step& step) { return step.has_loops; };
  if (mode_ == Mode::kShared) {
    if (whole_[0] > kLongest || std::none_of(fastest_[0].begin(), fastest_[0].end(), has_loops))
      left_.store(kNever, std::memory_order_relaxed);
    else
      mode_ = Mode::kAlone;
    return;
  }
  if (mode_ == Mode::kAlone) {
    const size_t steps = fastest_[0].size();
    mixed_.assign(steps, false);
    size_t kept = 0, loops = 0;
    for (size_t i = 0; i < steps; ++i) {
      if (!fastest_[0][i].has_loops) continue;
      mixed_[i] = clearly_less(fastest_[1][i].time, fastest_[0][i].time);
      kept += mixed_[i];
      ++loops;
    }
    whole_[2] = std::chrono::hours(1);
    if (kept != 0 && kept != loops) {
      mode_ = Mode::kMixed;
      return;
    }
  }
  compare();
  mode_ = Mode::kShared;
}

void StepSharing::compare() {
  Mode best = learned_;
  for (const Mode mode : {Mode::kShared, Mode::kAlone, Mode::kMixed})
    if (clearly_less(whole_[at(mode)], whole_[at(best)])) best = mode;
  between_ = best == learned_ ? std::min(2 * between_, kMostBetween) : kLeastBetween;
  learned_ = best;
  if (best != Mode::kShared) {
    if (alone_ == nullptr) alone_ = std::make_unique<std::atomic<bool>[]>(mixed_.size());
    for (size_t i = 0; i < mixed_.size(); ++i)
      alone_[i].store(best == Mode::kAlone || mixed_[i], std::memory_order_relaxed);
  }
  any_.store(best != Mode::kShared, std::memory_order_release);
  left_.store(between_, std::memory_order_relaxed);
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
  const bool alone = sharing_->any_alone(mode_) && sharing_->alone(mode_, step);
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
