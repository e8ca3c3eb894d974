#include "cli/measure.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "runtime/profile.h"

namespace tombolo::cli {

double Times::mean() const {
  double sum = 0;
  for (double value : values_) sum += value;
  return values_.empty() ? 0 : sum / static_cast<double>(values_.size());
}

double Times::percentile(double p) const {
  if (values_.empty()) return 0;
  std::vector<double> sorted = values_;
  std::sort(sorted.begin(), sorted.end());
  const double at = p / 100 * static_cast<double>(sorted.size() - 1);
  const auto low = static_cast<size_t>(at);
  const size_t high = std::min(low + 1, sorted.size() - 1);
  return sorted[low] + (sorted[high] - sorted[low]) * (at - static_cast<double>(low));
}

double Times::spread() const {
  const double middle = median();
  return middle > 0 ? (percentile(75) - percentile(25)) / 2 / middle : 0;
}

double now_ms() { return static_cast<double>(now_ns()) * 1e-6; }

uint64_t peak_rss_bytes() {
  // That of getrusage begins with what the process had before exec: that of who started it.
  if (std::FILE* file = std::fopen("/proc/self/status", "re")) {
    unsigned long long peak = 0;
    char line[256];
    while (peak == 0 && std::fgets(line, sizeof line, file) != nullptr)
      if (std::sscanf(line, "VmHWM: %llu kB", &peak) != 1) peak = 0;
    std::fclose(file);
    if (peak != 0) return peak * 1024;
  }
  rusage usage;
  return getrusage(RUSAGE_SELF, &usage) == 0 ? static_cast<uint64_t>(usage.ru_maxrss) * 1024 : 0;
}

uint64_t current_rss_bytes() {
  unsigned long long total = 0, resident = 0;
  if (std::FILE* file = std::fopen("/proc/self/statm", "re")) {
    if (std::fscanf(file, "%llu %llu", &total, &resident) != 2) resident = 0;
    std::fclose(file);
  }
  return resident * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

std::string short_number(double value) {
  char text[40];
  const double size = std::fabs(value);
  const int digits = size >= 1000 ? 0 : size >= 100 ? 1 : size >= 10 ? 2 : size >= 0.1 ? 3 : 5;
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

std::string json_number(double value) {
  if (!std::isfinite(value)) return "null";
  char text[40];
  std::snprintf(text, sizeof text, "%.9g", value);
  return text;
}

}  // namespace tombolo::cli
