#pragma once

// The row of a kernel: one function for each instruction set it was compiled for. Used in the part
// of a kernel file that is compiled once (HWY_ONCE):
//
//   using Fn = void(const float*, float*, int64_t);
//   ... TOMBOLO_TARGET(Fn, exp_row)(x, y, n);

#include <mutex>

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

/// Nobody gets at a function of another instruction set than the active one: even one that only
/// fills a table is compiled to instructions that this processor may not have.
template <typename Fn>
class IsaRow {
 public:
  constexpr IsaRow(Fn* a, Fn* b, Fn* c) : row_{a, b, c} {}
  Fn* get() const { return row_[isa_index()]; }
  template <typename... Args>
  auto operator()(Args... args) const {
    return get()(args...);
  }

 private:
  Fn* row_[3];
};

/// What an instruction set has to say of itself (its tiles), asked when it is first active: tests
/// change the active one.
template <typename Table>
class IsaTables {
 public:
  const Table& get(const IsaRow<Table()>& make) {
    const int i = isa_index();
    std::call_once(once_[i], [&] { tables_[i] = make(); });
    return tables_[i];
  }

 private:
  std::once_flag once_[3];
  Table tables_[3] = {};
};

}  // namespace tombolo

/// The function `name` for the active instruction set.
#define TOMBOLO_TARGET(Fn, name)                                             \
  ([]() -> const ::tombolo::IsaRow<Fn>& {                                    \
    static constexpr ::tombolo::IsaRow<Fn> row_of_isa TOMBOLO_ISA_ROW(name); \
    return row_of_isa;                                                       \
  }())
