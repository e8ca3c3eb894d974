// ScatterND, and ScatterRows of ai.tombolo: of elements of 1 to 16 bytes where they replace, of
// floats where they are combined with what is there.

#include <algorithm>
#include <cstring>

#include "ops/kernels/arguments.h"
#include "runtime/kernels/elementwise/binary.h"
#include "runtime/kernels/isa.h"
#include "runtime/kernels/kernel.h"

namespace tombolo {
namespace {

// ScatterND: tuples of indices say where pieces go, the last one of a place stays, or floats are
// combined with what is there, one after the other.

enum class Combine : uint8_t { kReplace, kAdd, kMul, kMax, kMin };
constexpr Text kCombinations[] = {"none", "add", "mul", "max", "min"};

struct ScatterState final : KernelState {
  Dims lengths, steps;  ///< of the axes that a tuple names; bytes from one to the next
  int64_t piece = 1, count = 0;
  int64_t axis = 0;              ///< the first that a tuple names
  int64_t outer = 1, slice = 0;  ///< how often that is done, and bytes from one to the next
  Combine combine = Combine::kReplace;
};

/// What both operators ask for.
bool plan_any_scatter(const KernelQuery& q, ScatterState& s) {
  if (active_isa() == Isa::kScalar || q.inputs.size() != 3 || bytes_of(q.dtype(0)) == 0 ||
      q.dtype(1) != DType::kInt64 || q.dtype(2) != q.dtype(0) || element_count(q.dims(0)) < 1 ||
      element_count(q.dims(1)) < 1)
    return false;
  const auto* const how = std::find(std::begin(kCombinations), std::end(kCombinations),
                                    q.attributes.get_string("reduction", "none"));
  if (how == std::end(kCombinations)) return false;
  s.combine = static_cast<Combine>(how - kCombinations);
  return s.combine == Combine::kReplace || q.dtype(0) == DType::kFloat32;
}

bool plan_scatter(const KernelQuery& q, ScatterState& s) {
  if (!plan_any_scatter(q, s)) return false;
  const auto data = q.dims(0), index = q.dims(1);
  if (index.empty() || index.back() > static_cast<int64_t>(data.size())) return false;
  const auto depth = static_cast<size_t>(index.back());
  Dims updates;
  for (size_t j = 0; j + 1 < index.size(); ++j) updates.push_back(index[j]);
  for (size_t j = depth; j < data.size(); ++j) updates.push_back(data[j]);
  if (Dims(q.dims(2)) != updates) return false;
  s.piece = element_count(data.subspan(depth)) * static_cast<int64_t>(bytes_of(q.dtype(0)));
  for (size_t j = 0; j < depth; ++j) {
    s.lengths.push_back(data[j]);
    s.steps.push_back(element_count(data.subspan(j + 1, depth - j - 1)) * s.piece);
  }
  s.count = element_count(index.first(index.size() - 1));
  return true;
}
bool supports_scatter(const KernelQuery& q) {
  ScatterState state;
  return plan_scatter(q, state);
}
Result<std::unique_ptr<KernelState>> prepare_scatter(const PrepareContext& q) {
  auto state = std::make_unique<ScatterState>();
  plan_scatter(q, *state);
  return state;
}

/// Rows along an axis, each to where its index says.
bool plan_scatter_rows(const KernelQuery& q, ScatterState& s) {
  if (!plan_any_scatter(q, s) || q.dims(1).size() != 1) return false;
  const auto data = q.dims(0);
  s.axis = q.attributes.get_int("axis", 0);
  if (s.axis < 0 || s.axis >= static_cast<int64_t>(data.size())) return false;
  const auto at = static_cast<size_t>(s.axis);
  Dims updates(data);
  updates[at] = s.count = q.dims(1)[0];
  if (Dims(q.dims(2)) != updates) return false;
  s.outer = element_count(data.first(at));
  s.piece = element_count(data.subspan(at + 1)) * static_cast<int64_t>(bytes_of(q.dtype(0)));
  s.lengths = {data[at]};
  s.steps = {s.piece};
  s.slice = data[at] * s.piece;
  return true;
}
bool supports_scatter_rows(const KernelQuery& q) {
  ScatterState state;
  return plan_scatter_rows(q, state);
}
Result<std::unique_ptr<KernelState>> prepare_scatter_rows(const PrepareContext& q) {
  auto state = std::make_unique<ScatterState>();
  plan_scatter_rows(q, *state);
  return state;
}

/// put(to, from, bytes) for each piece; of long ones each thread takes a part of all, so that those
/// of one place come in their order.
template <typename Put>
Status scatter(KernelRun& run, const ScatterState& s, const std::byte* from, std::byte* to,
               Put&& put) {
  constexpr int64_t kLine = 64;
  const auto depth = static_cast<uint32_t>(s.lengths.size());
  const int64_t lines = (s.piece + kLine - 1) / kLine;
  Status said = ok();
  // Lines of pieces from `begin` to `end`; false where an index is beyond its axis, as all find.
  const auto part = [&](int64_t begin, int64_t end, const std::byte* source, std::byte* target) {
    const auto* index = run.data<int64_t>(1);
    const int64_t first = begin * kLine, bytes = std::min(s.piece, end * kLine) - first;
    const bool tells = source == from && begin == 0;
    source += first;
    target += first;
    const auto beyond = [&](int64_t given, uint32_t j) {
      if (tells) said = ops::checked_index(given, s.lengths[j], s.axis + j).error();
      return false;
    };
    if (depth == 1) {  // what is written could be all that is read, but for these
      const int64_t length = s.lengths[0], step = s.steps[0], piece = s.piece;
      for (int64_t i = 0; i < s.count; ++i) {
        const int64_t given = index[i], at = given < 0 ? given + length : given;
        if (static_cast<uint64_t>(at) >= static_cast<uint64_t>(length)) return beyond(given, 0);
        put(target + at * step, source, bytes);
        source += piece;
      }
      return true;
    }
    for (int64_t i = 0; i < s.count; ++i, index += depth) {
      int64_t place = 0;
      for (uint32_t j = 0; j < depth; ++j) {
        const int64_t given = index[j], at = given < 0 ? given + s.lengths[j] : given;
        if (static_cast<uint64_t>(at) >= static_cast<uint64_t>(s.lengths[j]))
          return beyond(given, j);
        place += at * s.steps[j];
      }
      put(target + place, source + i * s.piece, bytes);
    }
    return true;
  };
  run.parallel_for(s.outer * lines, std::max<int64_t>(2, 4096 / std::max<int64_t>(1, s.count)),
                   [&](int64_t begin, int64_t end) {
                     for (int64_t o = begin / lines; o * lines < end; ++o) {
                       const int64_t start = o * lines;
                       if (!part(std::max(begin, start) - start, std::min(end - start, lines),
                                 from + o * s.count * s.piece, to + o * s.slice))
                         return;
                     }
                   });
  return said;
}

/// kPiece: bytes of a piece, 0 for any number.
template <size_t kPiece>
Status replace(KernelRun& run, const ScatterState& s, const std::byte* from, std::byte* to) {
  return scatter(run, s, from, to, [](std::byte* target, const std::byte* x, int64_t bytes) {
    std::memcpy(target, x, kPiece != 0 ? kPiece : static_cast<size_t>(bytes));
  });
}

template <typename Fold>
Status combine(KernelRun& run, const ScatterState& s, const std::byte* from, std::byte* to,
               Binary op, Fold&& fold) {
  if (s.piece == int64_t{sizeof(float)})
    return scatter(run, s, from, to, [&](std::byte* target, const std::byte* source, int64_t) {
      auto* y = reinterpret_cast<float*>(target);
      *y = fold(*y, *reinterpret_cast<const float*>(source));
    });
  BinaryFn* const fn = binary_fn(op, DType::kFloat32);
  return scatter(run, s, from, to, [&](std::byte* target, const std::byte* source, int64_t bytes) {
    fn(target, false, source, false, target, bytes / int64_t{sizeof(float)});
  });
}

/// `other`, which one instruction makes, unless a stays as it is no number: seldom, as is foreseen.
float unless_nan(float a, float other) {
  if (a != a) [[unlikely]]
    return a;
  return other;
}

Status run_scatter(KernelRun& run) {
  const auto& s = run.state<ScatterState>();
  const Tensor &data = run.input(0), &updates = run.input(2);
  TRY(Tensor * y, run.output(0, data.dtype(), data.dims()));
  auto* to = y->data<std::byte>();
  if (to != data.data<std::byte>()) {
    const int64_t bytes = data.size() * static_cast<int64_t>(bytes_of(data.dtype()));
    run.parallel_for(bytes, 1 << 18, [&](int64_t begin, int64_t end) {
      std::memcpy(to + begin, data.data<std::byte>() + begin, static_cast<size_t>(end - begin));
    });
  }
  const auto* from = updates.data<std::byte>();
  switch (s.combine) {
    case Combine::kAdd:
      return combine(run, s, from, to, Binary::kAdd, [](float a, float b) { return a + b; });
    case Combine::kMul:
      return combine(run, s, from, to, Binary::kMul, [](float a, float b) { return a * b; });
    case Combine::kMax:
      return combine(run, s, from, to, Binary::kMax,
                     [](float a, float b) { return unless_nan(a, a > b ? a : b); });
    case Combine::kMin:
      return combine(run, s, from, to, Binary::kMin,
                     [](float a, float b) { return unless_nan(a, a < b ? a : b); });
    case Combine::kReplace:
      break;
  }
  switch (s.piece) {
    case 4:
      return replace<4>(run, s, from, to);
    case 8:
      return replace<8>(run, s, from, to);
    default:
      return replace<0>(run, s, from, to);
  }
}

}  // namespace

KERNEL(scatter_rows) = {
    .name = "scatter_rows",
    .op = "ScatterRows",
    .domain = "ai.tombolo",
    .supports = supports_scatter_rows,
    .prepare = prepare_scatter_rows,
    .run = run_scatter,
    .in_place = 1,
};
KERNEL(scatter_nd) = {
    .name = "scatter_nd",
    .op = "ScatterND",
    .supports = supports_scatter,
    .prepare = prepare_scatter,
    .run = run_scatter,
    .in_place = 1,
};

}  // namespace tombolo
