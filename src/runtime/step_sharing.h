#pragma once

// Which steps of a short run share their loops among threads.
//
// What it costs to hand work to another core depends on where that core is: 0.1 microseconds there
// and back within a group of cores, 0.5 to the next one, more where it is busy with something else;
// a virtual machine is moved from one to the other while it runs. Kernels cut loops for the first
// case, and in a network whose layers take microseconds two threads may then take longer than one.
// So short runs are timed now and then, some with all loops shared and some with none, and each
// step has what took less time for it. How loops are cut does not change, so neither do results.

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace tombolo {

/// What was learned about the steps of one plan for inputs of certain shapes. Safe to share.
class StepSharing {
 public:
  using Duration = std::chrono::nanoseconds;
  /// What a run does: as was learned, or one of those that are timed.
  enum class Mode : uint8_t { kLearned, kShared, kAlone, kMixed };
  struct Step {
    Duration time{0};
    bool has_loops = false;  ///< that more than one thread could share
  };

  /// For one run on `threads`. Anything but kLearned asks for taken(), or for give_up() where the
  /// run did not come to its end.
  Mode begin(int threads);
  void taken(const std::vector<Step>& run);
  void give_up();

  /// Whether any step of such a run keeps its loops, and whether this one does.
  bool any_alone(Mode mode) const;
  bool alone(Mode mode, size_t step) const;

  /// Two ways take turns of two runs, so that what disturbs the machine meets both; the second of
  /// two counts, which finds its data where it left them, and of so many rounds the fastest. Rounds
  /// are far apart: a median of few runs is not to be that of the slower way.
  static constexpr int kRounds = 5, kRunsOfRound = 4;
  static constexpr int64_t kBetweenRounds = 60;
  /// How long until ways are compared again: twice as long each time that nothing changes.
  static constexpr Duration kLeastBetween = std::chrono::milliseconds(20),
                            kMostBetween = std::chrono::seconds(4);
  /// Runs that may take longer on one thread share all loops: that costs little beside them, and
  /// nobody should have to wait for one that is only timed.
  static constexpr Duration kLongestAlone = std::chrono::milliseconds(4);

 private:
  static constexpr int64_t kNever = -1;
  Mode mode() const;
  /// What each step would save if it kept its loops where that is faster.
  Duration saving() const;
  void end_round();
  void learn(Mode mode);
  Duration& whole(Mode mode) { return whole_[static_cast<size_t>(mode) - 1]; }

  std::atomic<int64_t> left_{kBetweenRounds};  ///< runs until some are timed, or kNever
  std::atomic<bool> any_{false};
  std::unique_ptr<std::atomic<bool>[]> alone_;  ///< of each step; there once any_ is

  std::atomic<bool> timing_{false};  ///< whether a run is timed, whose thread owns what follows
  Mode ways_[2] = {Mode::kShared, Mode::kAlone};  ///< that take turns
  int done_ = 0;                                  ///< runs of these
  int threads_ = 1;
  Mode learned_ = Mode::kShared;
  bool suspected_ = false;  ///< the last comparison said otherwise, for the first time
  Duration between_ = kLeastBetween;
  std::vector<Step> fastest_[2];  ///< of kShared and kAlone
  std::vector<bool> mixed_;
  Duration whole_[3] = {};  ///< of a run: kShared, kAlone, kMixed
};

/// One run along steps, which says when it comes to each.
class SharedRun {
 public:
  /// Nothing is learned or done where `sharing` is null.
  explicit SharedRun(StepSharing* sharing);
  ~SharedRun();
  SharedRun(const SharedRun&) = delete;
  SharedRun& operator=(const SharedRun&) = delete;

  void begin_step(size_t step) {
    if (active_) enter(step);
  }
  /// All steps went as planned.
  void finish() {
    if (active_) end();
  }

 private:
  using Clock = std::chrono::steady_clock;
  void enter(size_t step);
  void end();
  void close_step();

  StepSharing* const sharing_;
  StepSharing::Mode mode_ = StepSharing::Mode::kLearned;
  bool active_ = false, timed_ = false, alone_ = false;
  Clock::time_point begun_;
  uint64_t loops_ = 0;
  std::vector<StepSharing::Step> steps_;
};

}  // namespace tombolo
