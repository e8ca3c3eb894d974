#include "base/thread_pool.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "base/cpu.h"

namespace tombolo {

namespace {

struct Loop {
  int64_t count, chunk;
  void (*body)(void*, int64_t, int64_t);
  void* argument;
  std::atomic<int64_t> next{0};

  void work() {
    for (;;) {
      const int64_t begin = next.fetch_add(chunk, std::memory_order_relaxed);
      if (begin >= count) return;
      body(argument, begin, std::min(count, begin + chunk));
    }
  }
};

thread_local bool inside_loop = false;

class Pool {
 public:
  ~Pool() {
    {
      std::lock_guard lock(mutex_);
      stop_ = true;
    }
    wake_.notify_all();
    for (std::thread& worker : workers_) worker.join();
  }

  int threads() const {
    const int wanted = wanted_.load(std::memory_order_relaxed);
    return wanted > 0 ? wanted : default_;
  }
  void set_threads(int count) { wanted_ = std::clamp(count, 0, 1024); }

  void run(Loop& loop, int threads) {
    // One loop at a time: a second caller runs its loop alone rather than waiting.
    std::unique_lock exclusive(busy_, std::try_to_lock);
    if (!exclusive.owns_lock()) return loop.work();
    {
      std::lock_guard lock(mutex_);
      while (static_cast<int>(workers_.size()) < threads - 1)
        workers_.emplace_back([this, index = static_cast<int>(workers_.size())] { main(index); });
      loop_ = &loop;
      invited_ = threads - 1;
      ++generation_;
    }
    wake_.notify_all();
    inside_loop = true;
    loop.work();
    inside_loop = false;
    std::unique_lock lock(mutex_);
    loop_ = nullptr;  // a worker that wakes late finds nothing
    done_.wait(lock, [&] { return active_ == 0; });
  }

 private:
  void main(int index) {
    uint64_t seen = 0;
    std::unique_lock lock(mutex_);
    for (;;) {
      wake_.wait(lock, [&] { return stop_ || generation_ != seen; });
      if (stop_) return;
      seen = generation_;
      Loop* loop = loop_;
      if (loop == nullptr || index >= invited_) continue;
      ++active_;
      lock.unlock();
      inside_loop = true;
      loop->work();
      inside_loop = false;
      lock.lock();
      if (--active_ == 0) done_.notify_one();
    }
  }

  std::vector<std::thread> workers_;
  std::mutex mutex_, busy_;
  std::condition_variable wake_, done_;
  Loop* loop_ = nullptr;
  int invited_ = 0, active_ = 0;
  uint64_t generation_ = 0;
  bool stop_ = false;
  const int default_ = static_cast<int>(allowed_cores());
  std::atomic<int> wanted_{0};
};

Pool& pool() {
  static Pool instance;
  return instance;
}

}  // namespace

void set_thread_count(int count) { pool().set_threads(count); }
int thread_count() { return pool().threads(); }

void parallel_for(int64_t count, int64_t grain, void (*body)(void*, int64_t, int64_t),
                  void* argument) {
  if (count <= 0) return;
  grain = std::max<int64_t>(grain, 1);
  const int64_t parts = std::min<int64_t>(thread_count(), (count + grain - 1) / grain);
  if (parts <= 1 || inside_loop) return body(argument, 0, count);
  Loop loop{.count = count,
            .chunk = std::max(grain, (count + parts * 4 - 1) / (parts * 4)),
            .body = body,
            .argument = argument};
  pool().run(loop, static_cast<int>(parts));
}

}  // namespace tombolo
