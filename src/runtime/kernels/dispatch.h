#pragma once

// The row of a kernel: one function for each instruction set it was compiled for. Used in the part
// of a kernel file that is compiled once (HWY_ONCE):
//
//   using Fn = void(const float*, float*, int64_t);
//   ... TOMBOLO_TARGET(Fn, exp_row)(x, y, n);

#include "runtime/kernels/isa.h"

#if defined(__x86_64__)
#define TOMBOLO_ISA_ROW(name) \
  { &N_SSE4::name, &N_AVX2::name, &N_AVX3::name }
#elif defined(__aarch64__)
#define TOMBOLO_ISA_ROW(name) \
  { &N_NEON::name, nullptr, nullptr }
#else
#define TOMBOLO_ISA_ROW(name) \
  { &N_EMU128::name, nullptr, nullptr }
#endif

namespace tombolo {

/// Index in a row. A scalar run never gets here, but for tests: the least there is.
inline int isa_index() {
  switch (active_isa()) {
    case Isa::kAvx512:
      return 2;
    case Isa::kAvx2:
      return 1;
    default:
      return 0;
  }
}

template <typename Fn>
struct IsaRow {
  Fn* row[3];
  Fn* get() const { return row[isa_index()]; }
  template <typename... Args>
  auto operator()(Args... args) const {
    return row[isa_index()](args...);
  }
};

}  // namespace tombolo

/// The function `name` for the active instruction set.
#define TOMBOLO_TARGET(Fn, name)                                       \
  ([]() -> const ::tombolo::IsaRow<Fn>& {                              \
    static constexpr ::tombolo::IsaRow<Fn> row{TOMBOLO_ISA_ROW(name)}; \
    return row;                                                        \
  }())
