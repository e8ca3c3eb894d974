#include "ops/infer_helpers.h"
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
};

}  // namespace tombolo::ops
