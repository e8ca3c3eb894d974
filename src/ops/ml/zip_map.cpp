#include <memory>
#include <string>
#include <vector>

#include "ops/infer_helpers.h"
#include "ops/kernels/ml.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {

Status run_zip_map(KernelContext& context) {
  TRY(const Tensor* x, context.input(0));
  TRY(const ClassLabels labels, read_labels(context, "classlabels_int64s", "classlabels_strings"));
  if (x->dtype() != DType::kFloat32 || (x->rank() != 1 && x->rank() != 2) ||
      x->dim(x->rank() - 1) != labels.count())
    return context.error("X must be float [N, " + std::to_string(labels.count()) +
                         "], one column for each label, is " + to_string(*x));
  const int64_t columns = labels.count(), rows = x->rank() == 1 ? 1 : x->dim(0);
  const int64_t dims[] = {columns};
  TRY(const auto keys, context.made_once<Tensor>([&]() -> Result<Tensor> {
    if (labels.strings.empty()) return Tensor::int64s(labels.ints);
    return Tensor::of_strings(
        dims, std::vector<std::string>(labels.strings.begin(), labels.strings.end()));
  }));
  const int64_t shape[] = {rows, columns};
  TRY(const Tensor scores, x->clone());
  SequenceValue sequence;
  sequence.rows = std::make_shared<const MapRows>(MapRows{*keys, scores.reshaped(shape)});
  context.set_output(0, RunValue(std::move(sequence)));
  return ok();
}

}  // namespace

namespace {
Status infer_zip_map(InferContext& context) {
  InferType map;
  map.kind = Type::Kind::kMap;
  const bool strings = !context.attributes.get_strings("classlabels_strings").empty();
  map.key = strings ? DType::kString : DType::kInt64;
  map.element = std::make_shared<const InferType>(InferType::tensor(DType::kFloat32, {}));
  context.set_output(0, InferType::sequence(std::move(map)));
  return ok();
}
}  // namespace

OPERATOR(ZipMap) = {
    .name = "ZipMap",
    .domain = "ai.onnx.ml",
    .doc = "a sequence of maps from class label to the scores of each row",
    .versions = {1},
    .inputs = {{"X", "tensor(float)"}},
    .outputs = {{"Z", "T"}},
    .attributes =
        {
            {"classlabels_int64s", Attr::kInts},
            {"classlabels_strings", Attr::kStrings},
        },
    .types = {{"T", {{1, kSeqMapStrF32 | kSeqMapI64F32}}}},
    .infer = infer_zip_map,
    .reference = run_zip_map,
};

}  // namespace tombolo::ops
