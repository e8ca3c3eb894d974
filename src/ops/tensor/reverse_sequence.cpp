#include <algorithm>
#include <cstring>
#include <vector>

#include "ops/infer_generic.h"
#include "ops/kernels/arguments.h"
#include "ops/kernels/movement.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {

struct Pair {  // complex64 need not be aligned to its size
  uint32_t words[2];
};

Status run_reverse_sequence(KernelContext& context) {
  TRY(const Tensor* x, context.input(0));
  TRY(const Tensor* lengths, context.input(1));
  CHECK_OK(check_index_type(*lengths));
  const int64_t batch_axis = context.attributes.get_int("batch_axis", 1);
  const int64_t time_axis = context.attributes.get_int("time_axis", 0);
  const bool apart = (batch_axis == 0 && time_axis == 1) || (batch_axis == 1 && time_axis == 0);
  if (x->rank() < 2 || !apart)
    return context.error("batch_axis and time_axis must be 0 and 1 or 1 and 0, are " +
                         std::to_string(batch_axis) + " and " + std::to_string(time_axis) +
                         ", for " + to_string(*x));
  const int64_t batch = x->dim(static_cast<size_t>(batch_axis));
  const int64_t times = x->dim(static_cast<size_t>(time_axis));
  if (lengths->rank() != 1 || lengths->dim(0) != batch)
    return context.error("sequence_lens must have " + std::to_string(batch) + " elements, is " +
                         to_string(*lengths));
  TRY(Tensor * out, context.output(0, x->dtype(), x->dims()));
  const int64_t run = product(x->dims(), 2, x->rank());
  std::vector<int64_t> length(static_cast<size_t>(batch));
  for (int64_t b = 0; b < batch; ++b) {
    const int64_t given = lengths->get_int64(b);
    if (given < 0 || given > times)
      return context.error("sequence length " + std::to_string(given) + " of sample " +
                           std::to_string(b) + " is out of range for " + std::to_string(times) +
                           " steps");
    length[static_cast<size_t>(b)] = given;
  }
  const auto bytes = x->is_string() ? int64_t{0} : run * static_cast<int64_t>(bytes_of(x->dtype()));
  if (run == 1 && bytes != 0) {
    const auto turn_rows = [&]<typename T>(const T* from, T* to) {
      context.parallel_for(batch, std::max<int64_t>(1, (1 << 14) / std::max<int64_t>(1, times)),
                           [&](int64_t begin, int64_t end) {
                             for (int64_t b = begin; b < end; ++b) {
                               const int64_t n = length[static_cast<size_t>(b)];
                               const T* row = from + b * times;
                               T* const rest = std::reverse_copy(row, row + n, to + b * times);
                               std::copy_n(row + n, times - n, rest);
                             }
                           });
    };
    const auto turn_columns = [&]<typename T>(const T* from, T* to) {
      context.parallel_for(times, std::max<int64_t>(1, (1 << 14) / std::max<int64_t>(1, batch)),
                           [&](int64_t begin, int64_t end) {
                             for (int64_t t = begin; t < end; ++t)
                               for (int64_t b = 0; b < batch; ++b) {
                                 const int64_t n = length[static_cast<size_t>(b)];
                                 to[t * batch + b] = from[(t < n ? n - 1 - t : t) * batch + b];
                               }
                           });
    };
    const auto turn = [&]<typename T>(const T* from, T* to) {
      batch_axis == 0 ? turn_rows(from, to) : turn_columns(from, to);
      return ok();
    };
    if (bytes == 4) return turn(x->data<uint32_t>(), out->data<uint32_t>());
    if (bytes == 8) return turn(x->data<Pair>(), out->data<Pair>());
  }
  // In the order of the output, whichever axis is the inner one.
  const int64_t inner = batch_axis == 0 ? times : batch;
  constexpr int64_t kGrain = 1 << 14;
  // Elements of less than a byte share bytes: one thread for those, and for texts.
  const int64_t grain =
      bytes != 0 ? std::max<int64_t>(1, kGrain / run) : std::max<int64_t>(1, batch * times);
  context.parallel_for(batch * times, grain, [&](int64_t begin, int64_t end) {
    int64_t outer = begin / inner, i = begin % inner;
    for (int64_t row = begin; row < end; ++row) {
      const int64_t t = batch_axis == 0 ? i : outer, b = batch_axis == 0 ? outer : i;
      const int64_t n = length[static_cast<size_t>(b)], source = t < n ? n - 1 - t : t;
      const int64_t from = row + (source - t) * (batch_axis == 0 ? 1 : batch);
      if (bytes != 0)
        std::memcpy(out->data<std::byte>() + row * bytes, x->data<std::byte>() + from * bytes,
                    static_cast<size_t>(bytes));
      else
        copy_elements(*x, from * run, *out, row * run, run);
      if (++i == inner) {
        i = 0;
        ++outer;
      }
    }
  });
  return ok();
}

}  // namespace

OPERATOR(ReverseSequence) = {
    .name = "ReverseSequence",
    .doc = "reverses the first n elements of each sequence of a batch",
    .versions = {10, 28},
    .inputs =
        {
            {"input", "T"},
            {"sequence_lens", "tensor(int64)"},
        },
    .outputs = {{"Y", "T"}},
    .attributes =
        {
            {"batch_axis", 1},
            {"time_axis", 0},
        },
    .types = {{"T", {{10, kAll}, {28, kBf16}}}},
    .infer = infer_unary,
    .reference = run_reverse_sequence,
};

}  // namespace tombolo::ops
