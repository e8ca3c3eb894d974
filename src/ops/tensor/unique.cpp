#include <algorithm>
#include <bit>
#include <numeric>
#include <span>
#include <string_view>

#include "ops/infer_helpers.h"
#include "ops/kernels/arguments.h"
#include "ops/kernels/movement.h"
#include "ops/kernels/numbers.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {
Status infer_unique(InferContext& context) {
  const SymShape* x = context.shape(0);
  const SymDim count = context.host.fresh_symbol("unique");
  const auto axis = context.attributes.get_int("axis");
  SymDim all = x != nullptr ? product_of(*x) : SymDim();
  if (!axis) {
    set_shape(context, 0, {count});
  } else if (x != nullptr) {
    TRY(const size_t index, checked_axis(context, *axis, x->size()));
    SymShape out = *x;
    all = out[index];
    out[index] = count;
    set_shape(context, 0, std::move(out));
  }
  context.set_tensor(1, DType::kInt64, {count});
  context.set_tensor(2, DType::kInt64, {all});
  context.set_tensor(3, DType::kInt64, {count});
  return ok();
}
/// The slices that are compared: slice s holds the elements (o * length + s) * inner + i.
struct UniqueSlices {
  int64_t outer, length, inner;
};

/// Slices in ascending order, equal ones by index; group[s] numbers the distinct ones.
template <typename Less>
std::vector<int64_t> sort_slices(const UniqueSlices& slices, Less&& less,
                                 std::vector<int64_t>& group) {
  // -1, 0 or 1 by the first elements that differ.
  auto compare = [&](int64_t a, int64_t b) {
    for (int64_t o = 0; o < slices.outer; ++o)
      for (int64_t i = 0; i < slices.inner; ++i) {
        const int64_t x = (o * slices.length + a) * slices.inner + i;
        const int64_t y = (o * slices.length + b) * slices.inner + i;
        if (less(x, y)) return -1;
        if (less(y, x)) return 1;
      }
    return 0;
  };
  std::vector<int64_t> order(static_cast<size_t>(slices.length));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t a, int64_t b) { return compare(a, b) < 0; });
  group.assign(order.size(), 0);
  for (size_t k = 1; k < order.size(); ++k)
    group[static_cast<size_t>(order[k])] =
        group[static_cast<size_t>(order[k - 1])] + (compare(order[k - 1], order[k]) != 0);
  return order;
}

template <typename T>
bool complex_less(const T* data, int64_t a, int64_t b) {
  if (data[2 * a] != data[2 * b]) return total_less(data[2 * a], data[2 * b]);
  return total_less(data[2 * a + 1], data[2 * b + 1]);
}

/// The distinct ones of some texts: where each comes first, how often it comes, and the number of
/// each text's. They are numbered in their order (by bytes), or as they come.
void group_texts(std::span<const std::string> texts, bool sorted, std::vector<int64_t>& group,
                 std::vector<int64_t>& firsts, std::vector<int64_t>& counts) {
  struct Entry {
    uint64_t hash = 0;
    int64_t group = -1;
  };
  const int bits = static_cast<int>(std::bit_width(2 * texts.size()));
  const size_t mask = (size_t{1} << bits) - 1;
  std::vector<Entry> table(mask + 1);
  group.reserve(texts.size());
  for (size_t i = 0; i < texts.size(); ++i) {
    const uint64_t hash = std::hash<std::string_view>()(texts[i]);
    size_t at = hash & mask;
    while (table[at].group >= 0 &&
           (table[at].hash != hash ||
            texts[static_cast<size_t>(firsts[static_cast<size_t>(table[at].group)])] != texts[i]))
      at = (at + 1) & mask;
    if (table[at].group < 0) {
      table[at] = {hash, static_cast<int64_t>(firsts.size())};
      firsts.push_back(static_cast<int64_t>(i));
      counts.push_back(0);
    }
    group.push_back(table[at].group);
    ++counts[static_cast<size_t>(table[at].group)];
  }
  if (!sorted) return;
  // By their first bytes as one number, which decides between most of them.
  struct Distinct {
    uint64_t start;
    int64_t group;
  };
  std::vector<Distinct> order(firsts.size());
  const auto text_of = [&](int64_t number) -> const std::string& {
    return texts[static_cast<size_t>(firsts[static_cast<size_t>(number)])];
  };
  for (size_t k = 0; k < order.size(); ++k) {
    const std::string& text = text_of(static_cast<int64_t>(k));
    uint64_t start = 0;
    for (size_t j = 0; j < 8; ++j)
      start = start << 8 | (j < text.size() ? static_cast<unsigned char>(text[j]) : 0u);
    order[k] = {start, static_cast<int64_t>(k)};
  }
  std::sort(order.begin(), order.end(), [&](const Distinct& a, const Distinct& b) {
    return a.start != b.start ? a.start < b.start : text_of(a.group) < text_of(b.group);
  });
  std::vector<int64_t> number(order.size()), sorted_firsts, sorted_counts;
  for (size_t k = 0; k < order.size(); ++k) {
    const auto old = static_cast<size_t>(order[k].group);
    number[old] = static_cast<int64_t>(k);
    sorted_firsts.push_back(firsts[old]);
    sorted_counts.push_back(counts[old]);
  }
  for (int64_t& one : group) one = number[static_cast<size_t>(one)];
  firsts = std::move(sorted_firsts);
  counts = std::move(sorted_counts);
}

Status write_ints(KernelContext& context, size_t index, const std::vector<int64_t>& values) {
  if (!context.wants_output(index)) return ok();
  const int64_t dims[] = {static_cast<int64_t>(values.size())};
  TRY(Tensor * out, context.output(index, DType::kInt64, dims));
  std::copy(values.begin(), values.end(), out->data<int64_t>());
  return ok();
}

Status run_unique(KernelContext& context) {
  TRY(const Tensor* x, context.input(0));
  const std::optional<int64_t> given = context.attributes.get_int("axis");
  UniqueSlices slices{1, x->size(), 1};
  Dims dims{x->size()};
  size_t at = 0;
  if (given) {
    TRY(const int64_t axis, normalize_axis(*given, static_cast<int64_t>(x->rank())));
    at = static_cast<size_t>(axis);
    dims = x->dims();
    slices = {product(dims, 0, at), dims[at], product(dims, at + 1, dims.size())};
  }

  const bool sorted = context.attributes.get_int("sorted", 1) != 0;
  std::vector<int64_t> group, order, firsts, counts;
  const bool single_texts = x->is_string() && slices.outer == 1 && slices.inner == 1;
  if (single_texts) {
    group_texts(x->strings(), sorted, group, firsts, counts);
  } else if (x->is_string()) {
    const auto& texts = x->strings();
    order = sort_slices(
        slices,
        [&](int64_t a, int64_t b) {
          return texts[static_cast<size_t>(a)] < texts[static_cast<size_t>(b)];
        },
        group);
  } else if (x->dtype() == DType::kComplex64) {
    order = sort_slices(
        slices, [&](int64_t a, int64_t b) { return complex_less(x->data<float>(), a, b); }, group);
  } else if (x->dtype() == DType::kComplex128) {
    order = sort_slices(
        slices, [&](int64_t a, int64_t b) { return complex_less(x->data<double>(), a, b); }, group);
  } else {
    CHECK_OK(with_numbers(context, *x, [&]<typename T>(const Tensor& numbers) -> Status {
      const T* data = numbers.data<T>();
      order = sort_slices(
          slices, [&](int64_t a, int64_t b) { return total_less(data[a], data[b]); }, group);
      return ok();
    }));
  }

  // Equal slices are sorted by index, so the first of a group is its first occurrence.
  for (const int64_t slice : order) {
    if (static_cast<size_t>(group[static_cast<size_t>(slice)]) == firsts.size()) {
      firsts.push_back(slice);
      counts.push_back(0);
    }
    ++counts.back();
  }
  std::vector<int64_t> ranks(firsts.size());
  std::iota(ranks.begin(), ranks.end(), 0);
  if (!sorted && !single_texts) {
    std::sort(ranks.begin(), ranks.end(), [&](int64_t a, int64_t b) {
      return firsts[static_cast<size_t>(a)] < firsts[static_cast<size_t>(b)];
    });
  }
  std::vector<int64_t> places(ranks.size()), out_firsts, out_counts, inverse;
  for (size_t k = 0; k < ranks.size(); ++k) {
    const auto rank = static_cast<size_t>(ranks[k]);
    places[rank] = static_cast<int64_t>(k);
    out_firsts.push_back(firsts[rank]);
    out_counts.push_back(counts[rank]);
  }
  for (const int64_t number : group) inverse.push_back(places[static_cast<size_t>(number)]);

  dims[at] = static_cast<int64_t>(out_firsts.size());
  TRY(Tensor * out, context.output(0, x->dtype(), dims));
  int64_t to = 0;
  for (int64_t o = 0; o < slices.outer; ++o)
    for (const int64_t slice : out_firsts) {
      copy_elements(*x, (o * slices.length + slice) * slices.inner, *out, to, slices.inner);
      to += slices.inner;
    }
  CHECK_OK(write_ints(context, 1, out_firsts));
  CHECK_OK(write_ints(context, 2, inverse));
  return write_ints(context, 3, out_counts);
}

}  // namespace

OPERATOR(Unique) = {
    .name = "Unique",
    .doc = "distinct elements or slices, with first places, inverse and counts",
    .versions = {11, 28},
    .inputs = {{"X", "T"}},
    .outputs =
        {
            {"Y", "T"},
            {"indices", "tensor(int64)", kOptional},
            {"inverse_indices", "tensor(int64)", kOptional},
            {"counts", "tensor(int64)", kOptional},
        },
    .attributes =
        {
            {"axis", Attr::kInt},
            {"sorted", 1},
        },
    .types = {{"T", {{11, kAll}, {28, kBf16}}}},
    .infer = infer_unique,
    .reference = run_unique,
};

}  // namespace tombolo::ops
