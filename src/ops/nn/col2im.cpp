#include "ops/expansions.h"
#include "ops/infer_helpers.h"
#include "ops/kernels/arguments.h"
#include "ops/kernels/by_parts.h"
#include "ops/kernels/movement.h"
#include "ops/kernels/numbers.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {
Status infer_col2im(InferContext& context) {
  const SymShape* x = context.shape(0);
  const auto image = elements_or_unknown(context, 1);
  const auto block = elements_or_unknown(context, 2);
  if (!image) return ok();
  SymShape out(2);
  if (x != nullptr && x->size() == 3) {
    out[0] = (*x)[0];
    if (block) out[1] = floor_div((*x)[1], product_of(*block));
  }
  out.insert(out.end(), image->begin(), image->end());
  set_shape(context, 0, std::move(out));
  return ok();
}
/// A list attribute of one number an axis.
Result<std::vector<int64_t>> axis_list(const KernelContext& context, const char* name, size_t count,
                                       int64_t fallback, int64_t least) {
  const auto given = context.attributes.get_ints(name);
  if (given.empty()) return std::vector<int64_t>(count, fallback);
  for (const int64_t value : given)
    if (value < least || value > INT32_MAX)
      return context.error(std::string(name) + " holds " + std::to_string(value));
  if (given.size() != count)
    return context.error(std::string(name) + " has " + std::to_string(given.size()) +
                         " elements, not " + std::to_string(count));
  return std::vector<int64_t>(given.begin(), given.end());
}

Status fold(KernelContext& context, const Tensor* x) {
  TRY(const std::vector<int64_t> image, context.input_ints(1));
  TRY(const std::vector<int64_t> block, context.input_ints(2));
  const size_t rank = image.size();
  TRY(const auto dilations, axis_list(context, "dilations", rank, 1, 1));
  TRY(const auto strides, axis_list(context, "strides", rank, 1, 1));
  TRY(const auto pads, axis_list(context, "pads", 2 * rank, 0, 0));
  // How many blocks fit along each axis.
  Dims blocks;
  bool fits = x->rank() == 3 && block.size() == rank && rank > 0;
  for (size_t j = 0; fits && j < rank; ++j) {
    fits = image[j] >= 0 && image[j] <= INT32_MAX && block[j] > 0 && block[j] <= INT32_MAX;
    if (!fits) break;
    const int64_t room = image[j] + pads[j] + pads[rank + j] - dilations[j] * (block[j] - 1) - 1;
    fits = room >= 0;
    blocks.push_back(room / strides[j] + 1);
  }
  const int64_t taps = fits ? element_count(block) : -1;
  if (!fits || taps <= 0 || x->dim(1) % taps != 0 || x->dim(2) != element_count(blocks))
    return context.error("columns " + to_string(*x) + ", image " + dims_to_string(image) +
                         " and block " + dims_to_string(block) + " do not fit");
  Dims dims{x->dim(0), x->dim(1) / taps};
  for (const int64_t dim : image) dims.push_back(dim);
  return with_numbers(context, *x, [&]<typename T>(const Tensor& columns) -> Status {
    TRY(Tensor out, context.allocate(dtype_of<T>(), dims));
    fill_zero(out);
    if (columns.size() == 0) return give(context, 0, x->dtype(), std::move(out));
    const Dims plane = contiguous_strides(image);
    const int64_t plane_size = element_count(image);
    const T* from = columns.data<T>();
    for (int64_t map = 0; map < dims[0] * dims[1]; ++map) {
      Odometer tap(block);
      do {
        Odometer place(blocks);
        do {
          int64_t to = map * plane_size;
          bool inside = true;
          for (size_t j = 0; j < rank; ++j) {
            const int64_t at = place.index[j] * strides[j] + tap.index[j] * dilations[j] - pads[j];
            inside &= at >= 0 && at < image[j];
            to += at * plane[j];
          }
          if (inside) out.data<T>()[to] = wrap_add(out.data<T>()[to], *from);
          ++from;
        } while (place.next());
      } while (tap.next());
    }
    return give(context, 0, x->dtype(), std::move(out));
  });
}

Status run_col2im(KernelContext& context) {
  TRY(const Tensor* x, context.input(0));
  return by_parts(context, *x, [&](const Tensor& numbers) { return fold(context, &numbers); });
}

}  // namespace

OPERATOR(Col2Im) = {
    .name = "Col2Im",
    .doc = "sums sliding blocks back into an image",
    .versions = {18},
    .inputs =
        {
            {"input", "T"},
            {"image_shape", "tensor(int64)"},
            {"block_shape", "tensor(int64)"},
        },
    .outputs = {{"output", "T"}},
    .attributes =
        {
            {"dilations", Attr::kInts},
            {"pads", Attr::kInts},
            {"strides", Attr::kInts},
        },
    .types = {{"T", {{18, kAll | kBf16}}}},
    .infer = infer_col2im,
    .reference = run_col2im,
    .down = {{18, 0, expand_col2im}},
};

}  // namespace tombolo::ops
