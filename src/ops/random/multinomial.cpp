#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cmath>

#include "ops/infer_helpers.h"
#include "ops/kernels/arguments.h"
#include "ops/kernels/elementwise.h"
#include "ops/kernels/random.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {
Status infer_multinomial(InferContext& context) {
  CHECK_OK(expect_rank(context, 0, 2));
  const SymShape* x = context.shape(0);
  const auto dtype = dtype_from_number(context.attributes.get_int("dtype", 6));
  if (dtype != DType::kInt32 && dtype != DType::kInt64)
    return context.error("dtype must be int32 (6) or int64 (7), but it is " +
                         std::to_string(context.attributes.get_int("dtype", 6)));
  context.set_tensor(
      0, *dtype,
      {x != nullptr ? (*x)[0] : SymDim(), SymDim(context.attributes.get_int("sample_size", 1))});
  return ok();
}
/// In four lists, so that one comparison need not wait for the last.
double greatest(const std::vector<double>& values) {
  double most[4];
  std::fill_n(most, 4, values[0]);
  size_t i = 0;
  for (; i + 4 <= values.size(); i += 4)
    for (size_t k = 0; k < 4; ++k) most[k] = values[i + k] > most[k] ? values[i + k] : most[k];
  for (; i < values.size(); ++i) most[0] = std::max(most[0], values[i]);
  return *std::max_element(most, most + 4);
}

/// x[i] = e^(x[i] - most), of which none is above 0.
void exponentials(std::vector<double>& values, double most) {
  constexpr double kLeast = -708;  // below it results lose digits
  if (std::any_of(values.begin(), values.end(),
                  [&](double value) { return value - most < kLeast; })) {
    for (double& value : values) value = std::exp(value - most);
    return;
  }
  // To some units in the last place, without a branch or a call: 2^(k / 64) * e^rest, where the
  // compiler has vectors for the latter and k, its fraction from a table.
  constexpr uint64_t kParts = 64;
  static const std::array<double, kParts> kPowers = [] {
    std::array<double, kParts> powers;
    for (size_t i = 0; i < kParts; ++i) powers[i] = std::exp2(static_cast<double>(i) / kParts);
    return powers;
  }();
  constexpr double kRound = 0x1.8p52, kLog2E = 1.4426950408889634 * kParts;
  constexpr double kLn2High = 0x1.62e42fefa0000p-7, kLn2Low = 0x1.cf79abc9e3b3ap-46;
  constexpr size_t kBlock = 128;
  uint64_t places[kBlock];  // k in the low bits
  for (size_t first = 0; first < values.size(); first += kBlock) {
    double* const some = values.data() + first;
    const size_t count = std::min(kBlock, values.size() - first);
    for (size_t i = 0; i < count; ++i) {
      const double x = some[i] - most, rounded = x * kLog2E + kRound, k = rounded - kRound;
      const double rest = (x - k * kLn2High) - k * kLn2Low;
      double sum = 1.0 / 120;  // of the powers of the rest, each over its factorial
      sum = sum * rest + 1.0 / 24;
      sum = sum * rest + 1.0 / 6;
      sum = sum * rest + 0.5;
      sum = sum * rest + 1;
      some[i] = sum * rest + 1;
      places[i] = std::bit_cast<uint64_t>(rounded);
    }
    for (size_t i = 0; i < count; ++i) {
      const auto part = std::bit_cast<uint64_t>(kPowers[places[i] % kParts]);
      some[i] *= std::bit_cast<double>(part + (places[i] / kParts << 52));
    }
  }
}

/// Each value becomes the sum up to it, four at a time: one after the other they would wait for
/// each addition. Gives the last one.
double add_up(std::vector<double>& values) {
  double sum = 0;
  size_t i = 0;
  for (double* v = values.data(); i + 4 <= values.size(); i += 4, v += 4) {
    const double two = v[0] + v[1], three = two + v[2], four = two + (v[2] + v[3]);
    v[0] = sum + v[0];
    v[1] = sum + two;
    v[2] = sum + three;
    v[3] = sum += four;
  }
  for (; i < values.size(); ++i) values[i] = sum += values[i];
  return sum;
}

Status run_multinomial(KernelContext& context) {
  TRY(const Tensor* x, context.input(0));
  TRY(const DType dtype, dtype_attribute(context, "dtype", DType::kInt32));
  const int64_t samples = context.attributes.get_int("sample_size", 1);
  if (x->rank() != 2 || !is_float(x->dtype()) || x->dim(1) == 0 || samples < 0 ||
      (dtype != DType::kInt32 && dtype != DType::kInt64))
    return context.error("[batch, classes] logarithms of probabilities are needed, not " +
                         to_string(*x) + ", and draws of type int32 or int64");
  const int64_t classes = x->dim(1);
  const int64_t dims[] = {x->dim(0), samples};
  TRY(Tensor * out, context.output(0, dtype, dims));
  // Drawn in order, whichever thread has a row.
  TRY(Tensor units, context.allocate(DType::kFloat64, dims));
  CHECK_OK(with_random(context, [&](auto& random) -> Status {
    for (int64_t i = 0; i < units.size(); ++i) units.data<double>()[i] = random.next_unit();
    return ok();
  }));
  std::atomic<int64_t> without = dims[0];  // the first row that has no finite probabilities
  const int64_t grain = std::max<int64_t>(1, 4096 / (classes + samples));
  context.parallel_for(dims[0], grain, [&](int64_t first, int64_t last) {
    std::vector<double> sums(static_cast<size_t>(classes));
    for (int64_t row = first; row < last; ++row) {
      load_doubles(*x, row * classes, classes, sums.data());
      const double most = greatest(sums);
      exponentials(sums, most);
      const double sum = add_up(sums);
      if (!(sum > 0) || std::isinf(sum)) {
        int64_t known = without;
        while (row < known && !without.compare_exchange_weak(known, row)) continue;
        return;
      }
      for (int64_t i = row * samples; i < (row + 1) * samples; ++i) {
        const auto place =
            std::upper_bound(sums.begin(), sums.end(), units.data<double>()[i] * sum) -
            sums.begin();
        out->set_int64(i, std::min<int64_t>(place, classes - 1));
      }
    }
  });
  if (without < dims[0])
    return context.error("row " + std::to_string(without) + " has no finite probabilities");
  return ok();
}

}  // namespace

OPERATOR(Multinomial) = {
    .name = "Multinomial",
    .doc = "draws classes by unnormalised log-probabilities",
    .versions = {7, 22},
    .inputs = {{"input", "T1"}},
    .outputs = {{"output", "T2"}},
    .attributes =
        {
            {"dtype", 6},
            {"sample_size", 1},
            {"seed", Attr::kFloat},
        },
    .types =
        {
            {"T1", {{7, kFloats}, {22, kBf16}}},
            {"T2", {{7, kIndices}}},
        },
    .determinism = Determinism::kRandom,
    .infer = infer_multinomial,
    .reference = run_multinomial,
};

}  // namespace tombolo::ops
