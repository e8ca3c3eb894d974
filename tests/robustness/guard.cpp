// guard SECONDS MIB FILE COMMAND...: runs COMMAND and watches it; kills it beyond SECONDS of
// processor time, twelve times that of wall time (the machine may be busy), or MIB of resident
// memory. Appends one line `CODE SECONDS WALL MIB` to FILE: the exit code, 128 + N after signal N,
// 124 when the time was up, 125 when the memory was; what it took. Exits with CODE.

#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>

static double resident_mib(pid_t pid) {
  std::FILE* file = std::fopen(("/proc/" + std::to_string(pid) + "/statm").c_str(), "re");
  if (file == nullptr) return 0;
  unsigned long size = 0, resident = 0;
  const int got = std::fscanf(file, "%lu %lu", &size, &resident);
  std::fclose(file);
  const auto page = static_cast<double>(sysconf(_SC_PAGESIZE));
  return got == 2 ? static_cast<double>(resident) * page / (1 << 20) : 0;
}

int main(int argc, char** argv) {
  if (argc < 5) {
    std::fputs("usage: guard SECONDS MIB FILE COMMAND...\n", stderr);
    return 2;
  }
  const double seconds = std::atof(argv[1]), mib = std::atof(argv[2]);
  const auto start = std::chrono::steady_clock::now();
  const auto elapsed = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  const pid_t child = fork();
  if (child < 0) return 126;
  if (child == 0) {
    const auto cap = static_cast<rlim_t>(seconds) + 1;
    const rlimit limit{cap, cap + 1};
    setrlimit(RLIMIT_CPU, &limit);
    execv(argv[4], argv + 4);
    _exit(127);
  }
  int status = 0, killed = 0;
  rusage usage{};
  // Short steps first: most commands end within milliseconds.
  for (useconds_t step = 200; wait4(child, &status, WNOHANG, &usage) == 0;
       step = step < 10000 ? step * 5 / 4 : step) {
    if (killed == 0 && elapsed() > 12 * seconds) killed = 124;
    if (killed == 0 && resident_mib(child) > mib) killed = 125;
    if (killed != 0) kill(child, SIGKILL);
    usleep(step);
  }
  // The high-water mark; a child that only failed to exec inherits ours, which is small.
  const double peak = static_cast<double>(usage.ru_maxrss) / 1024;
  const double cpu = static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
                     static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
  int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  if (peak > mib) code = 125;
  if (cpu > seconds) code = 124;
  if (killed != 0) code = killed;
  if (std::FILE* file = std::fopen(argv[3], "ae")) {
    std::fprintf(file, "%d %.2f %.2f %.0f\n", code, cpu, elapsed(), peak);
    std::fclose(file);
  }
  return code;
}
