#pragma once

namespace tombolo {

/// What this machine can do with a number of threads, measured in a fraction of a second.
struct Roofline {
  double flops = 0;      ///< float multiply-adds a second, each counted as two
  double bandwidth = 0;  ///< bytes a second, reading memory that no cache holds
  double cached = 0;     ///< bytes a second, reading what the second-level cache holds
};

Roofline measure_roofline(int threads);

}  // namespace tombolo
