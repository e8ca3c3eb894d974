#pragma once

// The one thread pool of the process: workers look for work for some microseconds, then sleep; a
// loop is split into chunks, a stretch of them for each thread, so that neighbouring loops find
// their data in the same core's cache; who is done takes from the others' stretches, so that a
// thread whose core is taken away holds up one chunk at most.

#include <cstdint>

namespace tombolo {

/// How many threads a loop uses at most, the caller included. 0 means: the cores this process may
/// use. Takes effect for the next loop; raising it starts workers.
void set_thread_count(int count);
int thread_count();

/// Calls body(argument, begin, end) over disjoint parts of [0, count), each about `grain` long or
/// longer, and returns when all are done. Runs inline up to one and a half of these, or when called
/// from inside a loop.
void parallel_for(int64_t count, int64_t grain, void (*body)(void*, int64_t, int64_t),
                  void* argument);

/// Whether loops that this thread starts are cut as ever, but left to it alone: a caller may know
/// that to share them takes longer. Off when a thread begins.
void keep_loops(bool alone);
/// How many threads share the loops that this thread starts now: 1 where they are left to it, as
/// those are and loops within a loop.
int loop_threads();
/// How many loops this thread has shared, or would have.
uint64_t shared_loops();

/// While one lives, `fixed`, what its thread starts is cut into pieces as for one number of
/// threads, which thread_count() gives then, and each piece is worked on by itself: results that
/// depend on where pieces end are the same for any number of threads.
class FixedPieces {
 public:
  explicit FixedPieces(bool fixed);
  ~FixedPieces();
  FixedPieces(const FixedPieces&) = delete;
  FixedPieces& operator=(const FixedPieces&) = delete;

 private:
  const bool before_;
};

}  // namespace tombolo
