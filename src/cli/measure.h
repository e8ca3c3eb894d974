#pragma once

// Timing of repeated runs, for the verbs that tell how fast something is.

#include <cstdint>
#include <string>
#include <vector>

namespace tombolo::cli {

/// Times in milliseconds, and what can be said of them.
class Times {
 public:
  void add(double ms) { values_.push_back(ms); }
  size_t size() const { return values_.size(); }
  double median() const { return percentile(50); }
  double min() const { return percentile(0); }
  double max() const { return percentile(100); }
  double mean() const;
  double percentile(double p) const;  ///< interpolated; 0 when there are none
  /// Half of the range that holds the middle half of the times, in parts of the median.
  double spread() const;

 private:
  std::vector<double> values_;
};

double now_ms();
uint64_t peak_rss_bytes();     ///< of this process so far
uint64_t current_rss_bytes();  ///< of this process now

/// "12.3" with three or four significant digits, for tables.
std::string short_number(double value);
/// Enough digits to read the same number back.
std::string json_number(double value);

}  // namespace tombolo::cli
