// Trilu: of each row of a matrix one part is copied and the other is zero.

#include <algorithm>
#include <cstring>

#include "runtime/kernels/isa.h"
#include "runtime/kernels/kernel.h"

namespace tombolo {
namespace {

bool supports_trilu(const KernelQuery& q) {
  if (active_isa() == Isa::kScalar || q.dims(0).size() < 2 || element_count(q.dims(0)) < 1)
    return false;
  // Whole bytes an element, of which zero is all bits zero.
  switch (q.dtype(0)) {
    case DType::kFloat32:
    case DType::kFloat64:
    case DType::kFloat16:
    case DType::kBFloat16:
    case DType::kInt64:
    case DType::kInt32:
    case DType::kInt16:
    case DType::kInt8:
    case DType::kUInt8:
    case DType::kBool:
      break;
    default:
      return false;
  }
  return !q.has_input(1) || (q.dtype(1) == DType::kInt64 && element_count(q.dims(1)) == 1);
}

struct TriluState final : KernelState {
  bool upper = true;
};

Result<std::unique_ptr<KernelState>> prepare_trilu(const PrepareContext& q) {
  auto state = std::make_unique<TriluState>();
  state->upper = q.attributes.get_int("upper", 1) != 0;
  return state;
}

/// Elements [keep, keep + kept) of a row of few stay, the others become zero.
template <typename T>
void cut_row(const std::byte* from, int64_t width, int64_t keep, int64_t kept, std::byte* to) {
  const auto* const x = reinterpret_cast<const T*>(from);
  auto* const y = reinterpret_cast<T*>(to);
  for (int64_t j = 0; j < width; ++j) {
    const bool stays = static_cast<uint64_t>(j - keep) < static_cast<uint64_t>(kept);
    y[j] = static_cast<T>(x[j] & static_cast<T>(-static_cast<T>(stays)));
  }
}

Status run_trilu(KernelRun& run) {
  const bool upper = run.state<TriluState>().upper;
  const Tensor& x = run.input(0);
  TRY(Tensor * y, run.output(0, x.dtype(), x.dims()));
  const int64_t width = x.dim(x.rank() - 1), height = x.dim(x.rank() - 2);
  const auto size = static_cast<int64_t>(bytes_of(x.dtype()));
  const int64_t k = run.has_input(1) ? run.data<int64_t>(1)[0] : 0;
  const std::byte* from = x.data<std::byte>();
  std::byte* to = y->data<std::byte>();
  // Where the upper part of the first row begins; k may be anything.
  const int64_t diagonal = std::clamp(k, -height - 1, width + 1);
  // Of short rows calls would take longer than what they copy.
  constexpr int64_t kShort = 8;
  const auto cut_short = size == 1   ? &cut_row<uint8_t>
                         : size == 2 ? &cut_row<uint16_t>
                         : size == 4 ? &cut_row<uint32_t>
                                     : &cut_row<uint64_t>;
  run.parallel_for(x.size() / width, std::max<int64_t>(1, 32768 / (width * size)),
                   [&](int64_t begin, int64_t end) {
                     int64_t row = begin % height;
                     for (int64_t r = begin; r < end; ++r, row = row + 1 < height ? row + 1 : 0) {
                       const int64_t above = diagonal + row;
                       const int64_t cut = std::clamp<int64_t>(upper ? above : above + 1, 0, width);
                       const int64_t keep = upper ? cut : 0, kept = upper ? width - cut : cut;
                       const int64_t drop = upper ? 0 : cut, dropped = width - kept;
                       const int64_t at = r * width * size;
                       if (width <= kShort) {
                         cut_short(from + at, width, keep, kept, to + at);
                         continue;
                       }
                       if (to != from)
                         std::memcpy(to + at + keep * size, from + at + keep * size,
                                     static_cast<size_t>(kept * size));
                       std::memset(to + at + drop * size, 0, static_cast<size_t>(dropped * size));
                     }
                   });
  return ok();
}

}  // namespace

KERNEL(trilu) = {
    .name = "trilu",
    .op = "Trilu",
    .supports = supports_trilu,
    .prepare = prepare_trilu,
    .run = run_trilu,
    .in_place = 1,
};

}  // namespace tombolo
