// tombolo_load_bench: times what `bench/load.sh` cannot time from outside.
//
//   parse FILE [RUNS]      best and median time of reading an .onnx file into a model, file mapped
//   and warm run RUNS COMMAND...    best wall time and largest resident memory of a command, with
//   an exit code of 0
//
// Prints `BEST_MS MEDIAN_MS MIB`.

#include <fcntl.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "onnx/reader.h"

extern char** environ;

namespace {

using Clock = std::chrono::steady_clock;

double milliseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

int report(std::vector<double> times, long peak_kib) {
  std::sort(times.begin(), times.end());
  std::printf("%.2f %.2f %.1f\n", times.front(), times[times.size() / 2],
              static_cast<double>(peak_kib) / 1024);
  return 0;
}

int parse(const std::string& path, int runs) {
  std::vector<double> times;
  for (int i = 0; i < runs; ++i) {
    const auto start = Clock::now();
    auto model = tombolo::load_onnx(path);
    times.push_back(milliseconds_since(start));
    if (!model) {
      std::fprintf(stderr, "%s\n", model.error().message.c_str());
      return 3;
    }
  }
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return report(std::move(times), usage.ru_maxrss);
}

int run(int runs, char** command) {
  std::vector<double> times;
  long peak = 0;
  for (int i = 0; i < runs; ++i) {
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
    pid_t child = 0;
    const auto start = Clock::now();
    if (const int code = posix_spawnp(&child, command[0], &actions, nullptr, command, environ);
        code != 0) {
      std::fprintf(stderr, "%s: %s\n", command[0], std::strerror(code));
      return 127;
    }
    int status = 0;
    rusage usage{};
    wait4(child, &status, 0, &usage);
    times.push_back(milliseconds_since(start));
    posix_spawn_file_actions_destroy(&actions);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
      std::fprintf(stderr, "%s failed\n", command[0]);
      return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }
    peak = std::max(peak, usage.ru_maxrss);
  }
  return report(std::move(times), peak);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  if (what == "parse" && argc >= 3) return parse(argv[2], argc > 3 ? std::atoi(argv[3]) : 20);
  if (what == "run" && argc >= 4 && std::atoi(argv[2]) > 0)
    return run(std::atoi(argv[2]), argv + 3);
  std::fputs("usage: tombolo_load_bench parse FILE [RUNS] | run RUNS COMMAND...\n", stderr);
  return 2;
}
