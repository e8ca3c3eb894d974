// Trilu: of each row of a matrix one part is copied and the other is zero.

#include <algorithm>
#include <cstring>
#include <vector>

#include "runtime/kernels/elementwise/binary.h"
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

/// Where matrices are cut: row r before column `start` + r. The upper part stays, or the lower one.
struct Cut {
  int64_t width, start;
  bool upper;
  int64_t size;  ///< bytes of an element

  /// Rows [first, last) of a matrix: what goes becomes zero.
  void rows(const std::byte* from, int64_t first, int64_t last, std::byte* to) const {
    const auto keep = [&](int64_t at, int64_t elements) {
      if (to != from && elements > 0)
        std::memcpy(to + at * size, from + at * size, static_cast<size_t>(elements * size));
    };
    const auto drop = [&](int64_t at, int64_t elements) {
      if (elements > 0) std::memset(to + at * size, 0, static_cast<size_t>(elements * size));
    };
    const auto whole = [&](int64_t row, int64_t end, bool stays) {
      stays ? keep(row * width, (end - row) * width) : drop(row * width, (end - row) * width);
    };
    // Rows above and below those that are cut stay or go as a whole.
    const int64_t low = std::clamp(1 - start, first, last);
    const int64_t high = std::clamp(width - start, low, last);
    whole(first, low, upper);
    for (int64_t r = low; r < high; ++r) {
      const int64_t at = r * width, left = start + r;
      upper ? drop(at, left) : keep(at, left);
      upper ? keep(at + left, width - left) : drop(at + left, width - left);
    }
    whole(high, last, !upper);
  }
};

Status run_trilu(KernelRun& run) {
  const bool upper = run.state<TriluState>().upper;
  const Tensor& x = run.input(0);
  TRY(Tensor * y, run.output(0, x.dtype(), x.dims()));
  const int64_t width = x.dim(x.rank() - 1), height = x.dim(x.rank() - 2);
  const auto size = static_cast<int64_t>(bytes_of(x.dtype()));
  const int64_t k = run.has_input(1) ? run.data<int64_t>(1)[0] : 0;
  const std::byte* from = x.data<std::byte>();
  std::byte* to = y->data<std::byte>();
  // k may be anything.
  const int64_t diagonal = std::clamp(k, -height - 1, width + 1);
  const Cut cut{width, upper ? diagonal : diagonal + 1, upper, size};
  // Of short rows calls would take longer than what they copy: a mask of the first matrix serves
  // all the others, and is repeated to serve some of them at once.
  constexpr int64_t kShort = 256, kNear = 16384, kEnough = 1024;
  const int64_t all = x.size() * size, row = width * size, matrix = height * row;
  BinaryFn* const mask_words = binary_fn(Binary::kBitAnd, DType::kUInt8);
  if (row <= kShort && matrix <= kNear && all >= 2 * matrix && mask_words != nullptr) {
    const int64_t together = std::min(all / matrix, std::max<int64_t>(1, kEnough / matrix));
    const int64_t block = together * matrix, blocks = (all + block - 1) / block;
    std::vector<std::byte> mask(static_cast<size_t>(block), std::byte{0xFF});
    for (int64_t i = 0; i < block; i += matrix)
      cut.rows(mask.data() + i, 0, height, mask.data() + i);
    run.parallel_for(blocks, std::max<int64_t>(1, 65536 / block), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin * block; i < end * block; i += block)
        mask_words(from + i, false, mask.data(), false, to + i, std::min(block, all - i));
    });
    return ok();
  }
  run.parallel_for(x.size() / width, std::max<int64_t>(1, 32768 / row),
                   [&](int64_t begin, int64_t end) {
                     for (int64_t r = begin; r < end;) {
                       const int64_t first = r % height, last = std::min(height, first + end - r);
                       const int64_t at = (r - first) * row;
                       cut.rows(from + at, first, last, to + at);
                       r += last - first;
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
