#include "base/thread_pool.h"

#if defined(__linux__)
#include <sched.h>
#endif

#include <algorithm>
#include <atomic>
#include <chrono>
#include <deque>
#include <mutex>
#include <thread>

#include "base/cpu.h"
#include "base/float_control.h"

namespace tombolo {

namespace {

constexpr int kMaxShares = 64;

/// A loop: chunks of [0, count), a stretch of them for each share.
struct Loop {
  void (*body)(void*, int64_t, int64_t);
  void* argument;
  int64_t count, chunk, chunks;
  int shares;
  bool fixed;  ///< FixedPieces

  int64_t first_of(int share) const { return chunks * share / shares; }
  void run(int64_t at) const { body(argument, at * chunk, std::min(count, (at + 1) * chunk)); }
};

thread_local bool inside_loop = false;
thread_local bool fixed_pieces = false;
thread_local bool loops_kept = false;
thread_local uint64_t loops_shared = 0;
constexpr int kFixedThreads = 8;

inline void pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

#if defined(__linux__)
int current_core() { return sched_getcpu(); }

/// Leaves this core for another that the thread may use; it may come back later.
void leave_core(int core) {
  cpu_set_t allowed;
  if (core < 0 || core >= CPU_SETSIZE || sched_getaffinity(0, sizeof allowed, &allowed) != 0)
    return;
  cpu_set_t others = allowed;
  CPU_CLR(static_cast<size_t>(core), &others);
  if (CPU_COUNT(&others) == 0 || sched_setaffinity(0, sizeof others, &others) != 0) return;
  sched_setaffinity(0, sizeof allowed, &allowed);
}
#else
int current_core() { return -1; }
void leave_core(int) {}
#endif

// How long to wait awake. Between two loops of a model lie microseconds, in models of many small
// operators a hundred; waking a sleeper costs tens of them, on a virtual machine more than the
// loops of such a model take.
constexpr std::chrono::microseconds kSpin{200};

// Waits until done() holds, at most about that long; whether it does.
template <typename Done>
bool spin(Done done) {
  const auto end = std::chrono::steady_clock::now() + kSpin;
  for (;;) {
    for (int i = 0; i < 32; ++i) {
      if (done()) return true;
      pause();
    }
    if (std::chrono::steady_clock::now() >= end) return done();
  }
}

// One loop at a time, which has a number. A core may be half a microsecond away from another, so
// that what threads tell each other is as little as can be: a line with all that workers need to
// know, which they watch, and a line of each worker, which the caller watches. Every thread begins
// with a share of its own, in one piece, so that the same part of the data meets the same core in
// one loop after the other, and takes its chunks by a word that others only look at once they have
// nothing left and have waited a little; then they take what is left of it, so that a thread whose
// core is taken away holds up one chunk at most. The caller ends the loop when nothing is left and
// nobody is busy, and never waits for a thread that the system has not scheduled.
class Pool {
 public:
  ~Pool() {
    stop_ = true;
    publish({}, 0);
    for (Worker& worker : workers_) worker.thread.join();
  }

  int threads() const {
    const int wanted = wanted_.load(std::memory_order_relaxed);
    return wanted > 0 ? wanted : default_;
  }
  /// More threads than cores only wait for one another.
  int cores() const { return default_; }
  void set_threads(int count) { wanted_ = std::clamp(count, 0, 1024); }

  void run(const Loop& loop, int threads) {
    // A second caller runs its loop alone rather than waiting.
    std::unique_lock exclusive(busy_, std::defer_lock);
    if (threads > 1) ++loops_shared;
    if (threads <= 1 || loops_kept || !exclusive.try_lock()) {
      inside_loop = true;
      for (int64_t at = 0; at < loop.chunks; ++at) loop.run(at);
      inside_loop = false;
      return;
    }
    while (static_cast<int>(workers_.size()) < threads - 1) {
      const auto share = static_cast<int>(workers_.size()) + 1;
      Worker& worker = workers_.emplace_back();
      worker.thread = std::thread([this, &worker, share] { main(worker, share); });
    }
    const uint64_t number = publish(loop, threads - 1);
    inside_loop = true;
    loop.run(0);  // its own, which nobody takes
    take(loop, number, 0);
    for (int share = 1; share < loop.shares; ++share)
      if (!wait_a_little(number, share, threads - 1)) take(loop, number, share);
    inside_loop = false;
    for (int i = 0; i < threads - 1; ++i) wait_for(workers_[static_cast<size_t>(i)], number);
  }

 private:
  /// What workers watch: one line. Written while `number` is odd.
  struct alignas(64) Job {
    std::atomic<uint64_t> number{0};  ///< of the loop, twice
    std::atomic<void (*)(void*, int64_t, int64_t)> body{nullptr};
    std::atomic<void*> argument{nullptr};
    std::atomic<int64_t> count{0}, chunk{1};
    std::atomic<uint32_t> control{0};
    std::atomic<int> chunks{0};
    std::atomic<int16_t> shares{0};
    std::atomic<bool> fixed{false};
    std::atomic<int> invited{0};
    std::atomic<int> core{-1};  ///< of the caller; -1: not known, or a worker has left it
  };
  struct alignas(64) Worker {
    /// The number of the loop that it was last in, twice, and 1 while it may hold a chunk of it.
    std::atomic<uint64_t> state{0};
    std::thread thread;
  };
  /// The number of the loop that last took a chunk of the share, and which is next.
  struct alignas(64) Share {
    std::atomic<uint64_t> next{0};
  };
  static constexpr int kChunkBits = 20;
  static constexpr uint64_t kChunkMask = (1 << kChunkBits) - 1;
  // Pauses: 0.15 microseconds or more, and 0.1 to begin.
  static constexpr int kPatience = 6, kBeginning = 4;

  /// The loop's number.
  uint64_t publish(const Loop& loop, int invited) {
    using std::memory_order_release;
    const uint64_t number = job_.number.load(std::memory_order_relaxed) / 2 + 1;
    job_.number.store(2 * number - 1, std::memory_order_relaxed);
    job_.body.store(loop.body, memory_order_release);
    job_.argument.store(loop.argument, memory_order_release);
    job_.count.store(loop.count, memory_order_release);
    job_.chunk.store(loop.chunk, memory_order_release);
    job_.chunks.store(static_cast<int>(loop.chunks), memory_order_release);
    job_.control.store(float_control(), memory_order_release);
    job_.shares.store(static_cast<int16_t>(loop.shares), memory_order_release);
    job_.fixed.store(loop.fixed, memory_order_release);
    job_.invited.store(invited, memory_order_release);
    job_.core.store(current_core(), memory_order_release);
    job_.number.store(2 * number, std::memory_order_seq_cst);
    if (sleepers_.load(std::memory_order_seq_cst) > 0) job_.number.notify_all();
    return number;
  }

  /// The next chunk of a share, or -1. One whose word is of an earlier loop is untouched; of a
  /// later one, the loop is over.
  int64_t claim(const Loop& loop, uint64_t number, int share) {
    std::atomic<uint64_t>& next = shares_[share].next;
    const int64_t end = loop.first_of(share + 1);
    // The first one of all is the caller's.
    const int64_t first = share == 0 ? 1 : loop.first_of(share);
    uint64_t word = next.load(std::memory_order_acquire);
    for (;;) {
      const uint64_t last = word >> kChunkBits;
      if (last > number) return -1;
      const int64_t at = last == number ? static_cast<int64_t>(word & kChunkMask) : first;
      if (at >= end) return -1;
      if (next.compare_exchange_weak(word, number << kChunkBits | static_cast<uint64_t>(at + 1),
                                     std::memory_order_acq_rel, std::memory_order_acquire))
        return at;
    }
  }
  void take(const Loop& loop, uint64_t number, int share) {
    for (int64_t at; (at = claim(loop, number, share)) >= 0;) loop.run(at);
  }

  /// Whether the worker whose share it is has found its end. Who is at work has most often as
  /// little left as it takes to ask; who has not begun may not be scheduled.
  bool wait_a_little(uint64_t number, int share, int invited) const {
    if (share > invited) return false;
    const std::atomic<uint64_t>& state = workers_[static_cast<size_t>(share - 1)].state;
    for (int i = 0; i < kPatience; ++i) {
      const uint64_t now = state.load(std::memory_order_acquire);
      if (now == 2 * number) return true;
      if (now != 2 * number + 1 && i >= kBeginning) return false;
      pause();
    }
    return false;
  }
  /// Nothing is left to take, so who is not busy now will not be.
  void wait_for(Worker& worker, uint64_t number) {
    const uint64_t busy = 2 * number + 1;
    const auto done = [&] { return worker.state.load(std::memory_order_acquire) != busy; };
    if (spin(done)) return;
    waits_.store(true, std::memory_order_seq_cst);
    while (worker.state.load(std::memory_order_seq_cst) == busy) worker.state.wait(busy);
    waits_.store(false, std::memory_order_relaxed);
  }

  /// The system may wake a thread where its waker runs, and a worker that only gets there when the
  /// loop is over sleeps again before it is moved: one that shares the caller's core leaves it.
  void make_way() {
    const int core = job_.core.load(std::memory_order_relaxed);
    if (core < 0 || core != current_core()) return;
    job_.core.store(-1, std::memory_order_relaxed);
    leave_core(core);
  }

  /// The loop of a number, and how many workers it wants; false where it is another by now.
  bool read_job(uint64_t twice, Loop& loop, int& invited, uint64_t& control) const {
    using std::memory_order_acquire;
    loop.body = job_.body.load(memory_order_acquire);
    loop.argument = job_.argument.load(memory_order_acquire);
    loop.count = job_.count.load(memory_order_acquire);
    loop.chunk = job_.chunk.load(memory_order_acquire);
    loop.chunks = job_.chunks.load(memory_order_acquire);
    control = job_.control.load(memory_order_acquire);
    loop.shares = job_.shares.load(memory_order_acquire);
    loop.fixed = job_.fixed.load(memory_order_acquire);
    invited = job_.invited.load(memory_order_acquire);
    return job_.number.load(std::memory_order_relaxed) == twice;
  }

  void main(Worker& self, int share) {
    inside_loop = true;
    Loop loop{};
    uint64_t seen = 0;
    bool helped = true;  ///< with what others had left of it
    for (;;) {
      uint64_t twice = 0;
      const auto fresh = [&] {
        make_way();
        twice = job_.number.load(std::memory_order_seq_cst);
        return twice != seen && twice % 2 == 0;
      };
      if (!helped) {
        bool another = false;
        for (int i = 0; i < kPatience && !another; ++i) {
          another = fresh();
          if (!another) pause();
        }
        helped = true;
        if (!another) {
          work(self, seen / 2, loop, share + 1, loop.shares);
          continue;
        }
      }
      if (!spin(fresh)) {
        sleepers_.fetch_add(1, std::memory_order_seq_cst);
        while (!fresh()) job_.number.wait(twice);
        sleepers_.fetch_sub(1, std::memory_order_seq_cst);
      }
      if (stop_) return;
      int invited = 0;
      uint64_t control = 0;
      if (!read_job(twice, loop, invited, control)) continue;
      seen = twice;
      if (share > invited) continue;
      fixed_pieces = loop.fixed;
      set_float_control(control);
      helped = false;
      work(self, twice / 2, loop, share, 1);
    }
  }

  /// A worker takes what is left of some shares.
  void work(Worker& self, uint64_t number, const Loop& loop, int first, int count) {
    // Told before anything is taken: who finds nothing left finds this, too.
    self.state.store(2 * number + 1, std::memory_order_relaxed);
    for (int i = 0; i < count; ++i) {
      const int share = (first + i) % loop.shares;
      take(loop, number, share);
    }
    self.state.store(2 * number, std::memory_order_seq_cst);
    if (waits_.load(std::memory_order_seq_cst)) self.state.notify_all();
  }

  std::deque<Worker> workers_;
  std::mutex busy_;
  Job job_;
  Share shares_[kMaxShares];
  alignas(64) std::atomic<int> sleepers_{0};
  std::atomic<bool> waits_{false};
  std::atomic<bool> stop_{false};
  const int default_ = static_cast<int>(allowed_cores());
  std::atomic<int> wanted_{0};
};

Pool& pool() {
  static Pool instance;
  return instance;
}

}  // namespace

void set_thread_count(int count) { pool().set_threads(count); }
int thread_count() { return fixed_pieces ? kFixedThreads : pool().threads(); }

void keep_loops(bool alone) { loops_kept = alone; }
int loop_threads() { return loops_kept || inside_loop ? 1 : thread_count(); }
uint64_t shared_loops() { return loops_shared; }

FixedPieces::FixedPieces(bool fixed) : before_(fixed_pieces) { fixed_pieces = fixed; }
FixedPieces::~FixedPieces() { fixed_pieces = before_; }

void parallel_for(int64_t count, int64_t grain, void (*body)(void*, int64_t, int64_t),
                  void* argument) {
  if (count <= 0) return;
  grain = std::max<int64_t>(grain, 1);
  if (inside_loop) return body(argument, 0, count);
  const int64_t threads = std::min(pool().threads(), pool().cores());
  const int64_t parts = std::min<int64_t>(fixed_pieces ? kFixedThreads : threads,
                                          count / grain + (count % grain > grain / 2 ? 1 : 0));
  if (parts <= 1) return body(argument, 0, count);
  // Of little work as much for each thread, of more some chunks for each, rather more than fewer:
  // 36 pieces on 16 threads are three turns by one and four by two. Of many elements whole cache
  // lines.
  const int64_t each = std::clamp<int64_t>(count / grain / parts, 1, 8), chunks = parts * each;
  int64_t chunk = each == 1 ? (count + chunks - 1) / chunks : count / chunks;
  if (chunk >= 1024) chunk = (chunk + 63) / 64 * 64;
  // Each has a chunk at least.
  const int64_t made = (count + chunk - 1) / chunk;
  const auto shares = static_cast<int>(std::min({parts, made, int64_t{kMaxShares}}));
  const Loop loop{body, argument, count, chunk, made, shares, fixed_pieces};
  pool().run(loop, static_cast<int>(fixed_pieces ? std::min(threads, chunks) : parts));
}

}  // namespace tombolo
