#include "base/thread_pool.h"

#if defined(__linux__)
#include <sched.h>
#endif

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>
#include <vector>

#include "base/cpu.h"
#include "base/float_control.h"

namespace tombolo {

namespace {

constexpr int kMaxShares = 64;

/// Every thread has a share of its own, in one piece, and takes chunks of it; then what is left of
/// the others'. So the same part of the data meets the same core in one loop after the other, and a
/// thread whose core is taken away holds up one chunk at most.
struct Loop {
  struct alignas(64) Share {
    std::atomic<int64_t> next{0};
    int64_t end = 0;
  };
  int64_t count, chunk;
  int shares;
  void (*body)(void*, int64_t, int64_t);
  void* argument;
  bool fixed;  ///< FixedPieces
  uint64_t control = float_control();
  Share share[kMaxShares] = {};

  Loop(int64_t all, int64_t most, int64_t parts, void (*function)(void*, int64_t, int64_t),
       void* data, bool fixed_pieces)
      : count(all),
        chunk(most),
        shares(static_cast<int>(std::min<int64_t>(parts, kMaxShares))),
        body(function),
        argument(data),
        fixed(fixed_pieces) {
    // Shares are whole chunks.
    const int64_t chunks = (count + chunk - 1) / chunk;
    for (int i = 0; i < shares; ++i) {
      share[i].next.store(chunks * i / shares * chunk, std::memory_order_relaxed);
      share[i].end = std::min(count, chunks * (i + 1) / shares * chunk);
    }
  }

  void work(int index) {
    for (int turn = 0; turn < shares; ++turn) {
      Share& own = share[(index + turn) % shares];
      for (;;) {
        if (own.next.load(std::memory_order_relaxed) >= own.end) break;
        const int64_t begin = own.next.fetch_add(chunk, std::memory_order_relaxed);
        if (begin >= own.end) break;
        body(argument, begin, std::min(own.end, begin + chunk));
      }
    }
  }
};

thread_local bool inside_loop = false;
thread_local bool fixed_pieces = false;
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

// One loop at a time. `state_` is the number of the loop, whether it is open for workers to join,
// and how many are in it; the caller closes it when nothing is left to hand out and waits for those
// who joined, never for one that the system has not scheduled.
class Pool {
 public:
  ~Pool() {
    stop_ = true;
    publish(nullptr, 0);
    for (std::thread& worker : workers_) worker.join();
  }

  int threads() const {
    const int wanted = wanted_.load(std::memory_order_relaxed);
    return wanted > 0 ? wanted : default_;
  }
  /// More threads than cores only wait for one another.
  int cores() const { return default_; }
  void set_threads(int count) { wanted_ = std::clamp(count, 0, 1024); }

  void run(Loop& loop, int threads) {
    // A second caller runs its loop alone rather than waiting.
    std::unique_lock exclusive(busy_, std::defer_lock);
    if (threads <= 1 || !exclusive.try_lock()) return work_alone(loop);
    while (static_cast<int>(workers_.size()) < threads - 1)
      workers_.emplace_back([this, index = static_cast<int>(workers_.size())] { main(index); });
    core_.store(current_core(), std::memory_order_relaxed);
    publish(&loop, threads - 1);
    work_alone(loop);
    uint64_t state = state_.fetch_and(~kOpen, std::memory_order_acq_rel) & ~kOpen;
    if (spin([&] {
          state = state_.load(std::memory_order_acquire);
          return (state & kJoined) == 0;
        }))
      return;
    while (((state = state_.load(std::memory_order_acquire)) & kJoined) != 0) state_.wait(state);
  }

 private:
  static constexpr uint64_t kJoined = 0xFFFF, kOpen = 1 << 16, kNumber = 1 << 17;

  static void work_alone(Loop& loop) {
    inside_loop = true;
    loop.work(0);
    inside_loop = false;
  }

  void publish(Loop* loop, int invited) {
    loop_ = loop;
    invited_ = invited;
    const uint64_t number = (state_.load(std::memory_order_relaxed) & ~(kNumber - 1)) + kNumber;
    state_.store(number | kOpen, std::memory_order_seq_cst);
    if (sleepers_.load(std::memory_order_seq_cst) > 0) state_.notify_all();
  }

  /// The system may wake a thread where its waker runs, and a worker that only gets there when the
  /// loop is over sleeps again before it is moved: one that shares the caller's core leaves it.
  void make_way() {
    const int core = core_.load(std::memory_order_relaxed);
    if (core < 0 || core != current_core()) return;
    core_.store(-1, std::memory_order_relaxed);
    leave_core(core);
  }

  void main(int index) {
    inside_loop = true;
    uint64_t seen = 0;
    for (;;) {
      uint64_t state;
      const auto fresh = [&] {
        make_way();
        state = state_.load(std::memory_order_seq_cst);
        return (state & kOpen) != 0 && (state & ~(kNumber - 1)) != seen;
      };
      if (!spin(fresh)) {
        sleepers_.fetch_add(1, std::memory_order_seq_cst);
        while (!fresh()) state_.wait(state);
        sleepers_.fetch_sub(1, std::memory_order_seq_cst);
      }
      // Joining fails when the loop was closed, or another worker joined, in between.
      if (!state_.compare_exchange_strong(state, state + 1, std::memory_order_acq_rel)) continue;
      if (stop_) return;
      seen = state & ~(kNumber - 1);
      if (index < invited_) {
        fixed_pieces = loop_->fixed;
        set_float_control(loop_->control);
        loop_->work(index + 1);
      }
      const uint64_t before = state_.fetch_sub(1, std::memory_order_acq_rel);
      if ((before & kJoined) == 1 && (before & kOpen) == 0) state_.notify_all();
    }
  }

  std::vector<std::thread> workers_;
  std::mutex busy_;
  std::atomic<uint64_t> state_{0};
  std::atomic<int> sleepers_{0};
  Loop* loop_ = nullptr;  ///< written while no worker is in a loop and none may join
  int invited_ = 0;
  std::atomic<int> core_{-1};  ///< of the caller; -1: not known, or a worker has left it
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
  Loop loop(count, chunk, parts, body, argument, fixed_pieces);
  pool().run(loop, static_cast<int>(fixed_pieces ? std::min(threads, chunks) : parts));
}

}  // namespace tombolo
