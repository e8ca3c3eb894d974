#pragma once

#include <gtest/gtest.h>

#include "runtime/kernels/isa.h"

namespace tombolo {

/// Runs each test at the instruction set that is its parameter; skips those that this machine
/// lacks.
class EachIsa : public ::testing::TestWithParam<Isa> {
 protected:
  void SetUp() override {
    if (GetParam() > best_isa() || (best_isa() >= Isa::kSse4 && GetParam() < Isa::kSse4))
      GTEST_SKIP() << "not on this machine";
    set_isa(GetParam());
  }
  void TearDown() override { set_isa(best_isa()); }
};

/// Weights as one stream or as several, whatever this processor likes best.
class Streams {
 public:
  explicit Streams(bool one) { set_reads_one_stream(one); }
  Streams(const Streams&) = delete;
  Streams& operator=(const Streams&) = delete;
  ~Streams() { set_reads_one_stream(before_); }

 private:
  bool before_ = reads_one_stream();
};

/// Quotients by division or by guesses at reciprocals, whatever is faster here.
class Divisions {
 public:
  explicit Divisions(bool fast) { set_divides_fast(fast); }
  Divisions(const Divisions&) = delete;
  Divisions& operator=(const Divisions&) = delete;
  ~Divisions() { set_divides_fast(before_); }

 private:
  bool before_ = divides_fast();
};

}  // namespace tombolo
