// Elements counted or reduced by the bin or the segment that they fall in.

#include <algorithm>
#include <cmath>

#include "formats/pytorch/aten/context.h"

namespace tombolo::pytorch {
namespace {

using C = AtenContext;

/// Whole numbers counted; the length depends on the data.
void bincount(C& c) {
  Value* x = c.cast(c.x("self"), DType::kInt64);
  const int64_t least = c.integer("minlength");
  Value* length = c.b.int_scalar(least);
  if (c.known(x, 0) != 0) {
    Value* high = c.add(c.op("ReduceMax", {x}, {{"keepdims", 0}}), c.b.int_scalar(1));
    length = c.op("Max", {high, length});
  }
  Value* bins = c.range(SymInt(SymDim(), length));
  Value* hit = c.op("Equal", {c.unsqueeze(x, {1}), bins});
  Value* weights = c.opt("weights");
  const DType type = !weights                              ? DType::kInt64
                     : c.dtype(weights) == DType::kFloat32 ? DType::kFloat32
                                                           : DType::kFloat64;
  Value* amounts = c.cast(hit, type);
  if (weights) amounts = c.mul(amounts, c.unsqueeze(c.cast(weights, type), {1}));
  c.out(c.reduce("ReduceSum", amounts, {0}, false));
}

void histc(C& c) {
  Value* x = c.reshape(c.x("self"), {SymInt(-1)});
  const int64_t bins = c.integer("bins");
  Value *low = c.operand("min", c.dtype(x)), *high = c.operand("max", c.dtype(x));
  if (c.real("min") == c.real("max")) {
    low = c.op("ReduceMin", {x}, {{"keepdims", 0}});
    high = c.op("ReduceMax", {x}, {{"keepdims", 0}});
    Value* flat = c.op("Equal", {low, high});
    Value* one = c.like(1, low);
    Value *below = c.where(flat, c.sub(low, one), low),
          *above = c.where(flat, c.add(high, one), high);
    low = below;
    high = above;
  }
  Value* inside = c.op("And", {c.op("GreaterOrEqual", {x, low}), c.op("LessOrEqual", {x, high})});
  Value* place =
      c.div(c.mul(c.sub(x, low), c.like(static_cast<double>(bins), x)), c.sub(high, low));
  Value* index =
      c.op("Min", {c.cast(c.op("Floor", {place}), DType::kInt64), c.b.int_scalar(bins - 1)});
  Value* hit = c.op("Equal", {c.unsqueeze(index, {1}), c.range(SymInt(bins))});
  hit = c.op("And", {hit, c.unsqueeze(inside, {1})});
  c.out(c.reduce("ReduceSum", c.cast(hit, c.dtype(x)), {0}, false));
}

/// `bins` + 1 edges from `low` to `high` at equal distances, counted from the nearer end as torch's
/// linspace does.
Value* even_edges(C& c, Value* low, Value* high, int64_t bins) {
  const double last = static_cast<double>(bins);
  Value* places = c.cast(c.range(SymInt(bins + 1)), c.dtype(low));
  Value* step = c.div(c.sub(high, low), c.like(last, low));
  Value* near_low = c.op("Less", {places, c.like((last + 1) / 2, low)});
  return c.where(near_low, c.add(low, c.mul(step, places)),
                 c.sub(high, c.mul(step, c.sub(c.like(last, low), places))));
}

/// histogram and histogramdd: [n, axes] points, counted in bins that hold their left edge, and the
/// last one both.
void histogram(C& c) {
  const bool many = c.name().starts_with("histogramdd");
  const bool edges_only = c.name() == "_histogramdd_bin_edges";
  const bool counts_only = c.name().starts_with("_histogramdd_from");
  Value* x = c.x("self");
  const DType type = c.dtype(x);
  const bool several = many || edges_only || counts_only;
  const auto axes = several ? c.known(x, -1) : std::optional<int64_t>(1);
  if (!axes || *axes < 1 || *axes > 64)
    return c.refuse("a histogram over an unknown number of axes");
  x = c.reshape(x, {SymInt(-1), SymInt(*axes)});
  const auto count = static_cast<size_t>(*axes);
  // The edges: given, or between a range that is given or found.
  Values edges;
  Ints bins;
  if (!several && c.arg("bins").is_tensor()) {
    edges.push_back(c.cast(c.x("bins"), type));
  } else if (c.arg("bins").kind == Arg::Kind::kList && !c.arg("bins").list.empty() &&
             c.arg("bins").list[0].is_tensor()) {
    for (Value* one : c.values("bins")) edges.push_back(c.cast(one, type));
  } else {
    bins = c.ints("bins", count);
    if (bins.size() == 1) bins.resize(count, bins[0]);
  }
  if (bins.empty())
    for (Value* one : edges) {
      const auto length = c.known(one, 0);
      if (!length || *length < 2) return c.refuse("edges of an unknown number");
      bins.push_back(*length - 1);
    }
  if (bins.size() != count) return c.refuse("a histogram with a wrong number of bins");
  int64_t cells = 1;
  for (const int64_t n : bins) {
    if (n < 1 || cells > kMaxNumber / n) return c.refuse("a histogram of no or too many bins");
    cells *= n;
  }
  const Reals range = c.has_arg("range") && c.given("range") ? c.reals("range") : Reals{};
  if (!range.empty() && range.size() != 2 * count) return c.refuse("a range of a wrong length");
  Value* place = nullptr;
  Value* inside = nullptr;
  for (size_t d = 0; d < count; ++d) {
    Value* one = c.select(x, 1, SymInt(static_cast<int64_t>(d)));
    if (edges.size() == d) {
      Value *low = nullptr, *high = nullptr;
      if (!range.empty()) {
        const double same = range[2 * d] == range[2 * d + 1] ? 0.5 : 0;
        low = c.like(range[2 * d] - same, x);
        high = c.like(range[2 * d + 1] + same, x);
      } else if (c.known(x, 0) == 0) {
        low = c.like(0, x);
        high = c.like(1, x);
      } else {
        low = c.op("ReduceMin", {one}, {{"keepdims", 0}});
        high = c.op("ReduceMax", {one}, {{"keepdims", 0}});
        Value* flat = c.op("Equal", {low, high});
        Value* half = c.where(flat, c.like(0.5, x), c.like(0, x));
        low = c.sub(low, half);
        high = c.add(high, half);
      }
      edges.push_back(even_edges(c, low, high, bins[d]));
    }
    if (edges_only) continue;
    Value* first = c.select(edges[d], 0, SymInt(0));
    Value* last = c.select(edges[d], 0, SymInt(bins[d]));
    Value* passed = c.op("GreaterOrEqual", {c.unsqueeze(one, {1}), edges[d]});
    Value* index =
        c.sub(c.op("ReduceSum", {c.cast(passed, DType::kInt64), c.b.ints({1})}, {{"keepdims", 0}}),
              c.b.int_scalar(1));
    index = c.op("Min", {index, c.b.int_scalar(bins[d] - 1)});
    Value* within =
        c.op("And", {c.op("GreaterOrEqual", {one, first}), c.op("LessOrEqual", {one, last})});
    inside = inside ? c.op("And", {inside, within}) : within;
    place = place ? c.add(c.mul(place, c.b.int_scalar(bins[d])), index) : index;
  }
  if (edges_only) return c.out_list(edges);
  // What lies outside is counted beyond the last bin.
  place = c.where(inside, place, c.b.int_scalar(cells));
  Value* amounts = c.given("weight") ? c.reshape(c.cast(c.x("weight"), type), {SymInt(-1)})
                                     : c.full({c.size(x, 0)}, 1, type);
  Value* hist = c.op("ScatterElements", {c.full({SymInt(cells + 1)}, 0, type), place, amounts},
                     {{"axis", 0}, {"reduction", "add"}});
  hist = c.slice(hist, 0, SymInt(0), SymInt(cells));
  SymInts shape;
  for (const int64_t n : bins) shape.emplace_back(n);
  hist = c.reshape(hist, shape);
  if (c.flag("density")) {
    hist = c.div(hist, c.op("ReduceSum", {hist}, {{"keepdims", 0}}));
    for (size_t d = 0; d < count; ++d) {
      Value* widths = c.sub(c.slice(edges[d], 0, SymInt(1), SymInt(INT64_MAX)),
                            c.slice(edges[d], 0, SymInt(0), SymInt(-1)));
      Ints after;
      for (size_t i = d + 1; i < count; ++i) after.push_back(static_cast<int64_t>(i - d));
      hist = c.div(hist, c.unsqueeze(widths, after));
    }
  }
  c.out(hist);
  if (counts_only) return;
  if (several) return c.out_list(edges);
  c.out(edges[0]);
}

/// Runs of an axis, given by their lengths or by where they begin, reduced to one element each.
void segment_reduce(C& c) {
  Value* x = c.x("data");
  const DType type = c.dtype(x);
  const int64_t r = c.rank(x), axis = c.axis(c.integer("axis"), r);
  Value *begin = nullptr, *end = nullptr, *length = nullptr;  // [leading.., segments]
  if (c.given("lengths")) {
    length = c.cast(c.x("lengths"), DType::kInt64);
    end = c.op("CumSum", {length, c.b.int_scalar(axis)});
    begin = c.sub(end, length);
  } else if (c.given("offsets")) {
    Value* offsets = c.cast(c.x("offsets"), DType::kInt64);
    begin = c.slice(offsets, axis, SymInt(0), SymInt(-1));
    end = c.slice(offsets, axis, SymInt(1), SymInt(INT64_MAX));
    length = c.sub(end, begin);
  } else {
    return c.refuse("segments by indices");
  }
  // [leading.., segments, places]
  Value* places = c.range(c.size(x, axis));
  Value* member = c.op("And", {c.op("GreaterOrEqual", {places, c.unsqueeze(begin, {axis + 1})}),
                               c.op("Less", {places, c.unsqueeze(end, {axis + 1})})});
  Ints rest;
  for (int64_t i = axis + 1; i < r; ++i) rest.push_back(i + 1);
  member = c.unsqueeze(member, rest);
  struct Way {
    std::string_view name;
    double identity;
    Text reduction, pair;
  };
  static constexpr Way kWays[] = {{"max", -INFINITY, "ReduceMax", "Max"},
                                  {"min", INFINITY, "ReduceMin", "Min"},
                                  {"prod", 1, "ReduceProd", "Mul"},
                                  {"sum", 0, "ReduceSum", "Add"},
                                  {"mean", 0, "ReduceSum", "Add"}};
  const std::string how = c.text("reduce");
  const Way* way = std::find_if(std::begin(kWays), std::end(kWays),
                                [&](const Way& one) { return one.name == how; });
  if (way == std::end(kWays)) return c.refuse("segments reduced by \"" + how + "\"");
  Value* spread = c.where(member, c.unsqueeze(x, {axis}), c.scalar(way->identity, type));
  Value* y = c.reduce(way->reduction, spread, {axis + 1}, false);
  if (c.given("initial")) y = c.op(way->pair, {y, c.operand("initial", type)});
  if (how == "mean") {
    for (int64_t& at : rest) --at;
    Value* counts = c.unsqueeze(length, rest);
    Value* empty = c.op("Equal", {counts, c.b.int_scalar(0)});
    Value* mean = c.div(y, c.cast(c.op("Max", {counts, c.b.int_scalar(1)}), type));
    y = c.given("initial") ? mean : c.where(empty, c.scalar(NAN, type), mean);
  }
  c.out(y);
}

constexpr Row kBinningRows[] = {
    {"bincount(Tensor self, Tensor? weights=None, SymInt minlength=0) -> Tensor", bincount},
    {"histc(Tensor self, int bins=100, Scalar min=0, Scalar max=0) -> Tensor", histc},
    {"histogram.bins_tensor(Tensor self, Tensor bins, *, Tensor? weight=None, bool density=False) "
     "-> "
     "(Tensor hist, Tensor bin_edges)",
     histogram},
    {"histogram.bin_ct(Tensor self, int bins=100, *, float[]? range=None, Tensor? weight=None, "
     "bool "
     "density=False) -> (Tensor hist, Tensor bin_edges)",
     histogram},
    {"histogramdd(Tensor self, int[] bins, float[]? range=None, Tensor? weight=None, bool "
     "density=False) -> (Tensor hist, Tensor[] bin_edges)",
     histogram},
    {"histogramdd.int_bins(Tensor self, int bins, float[]? range=None, Tensor? weight=None, bool "
     "density=False) -> (Tensor hist, Tensor[] bin_edges)",
     histogram},
    {"histogramdd.TensorList_bins(Tensor self, Tensor[] bins, float[]? range=None, Tensor? "
     "weight=None, bool density=False) -> (Tensor hist, Tensor[] bin_edges)",
     histogram},
    {"_histogramdd_bin_edges(Tensor self, int[] bins, *, float[]? range=None, Tensor? weight=None, "
     "bool density=False) -> Tensor[]",
     histogram},
    {"_histogramdd_from_bin_cts(Tensor self, int[] bins, *, float[]? range=None, Tensor? "
     "weight=None, bool density=False) -> Tensor",
     histogram},
    {"_histogramdd_from_bin_tensors(Tensor self, Tensor[] bins, *, Tensor? weight=None, bool "
     "density=False) -> Tensor",
     histogram},
    {"segment_reduce(Tensor data, str reduce, *, Tensor? lengths=None, Tensor? indices=None, "
     "Tensor? "
     "offsets=None, int axis=0, bool unsafe=False, Scalar? initial=None) -> Tensor",
     segment_reduce},
};

}  // namespace

std::span<const Row> binning_rows() { return kBinningRows; }

}  // namespace tombolo::pytorch
