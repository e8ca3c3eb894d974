#include "ops/infer_helpers.h"
#include "ops/kernel_context.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {
Status infer_string_split(InferContext& context) {
  const SymShape* x = context.shape(0);
  if (x == nullptr) return ok();
  SymShape parts = *x;
  parts.push_back(context.host.fresh_symbol("parts"));
  set_shape(context, 1, *x);
  set_shape(context, 0, std::move(parts));
  return ok();
}
/// As Python's str.split: without a delimiter, runs of white space separate and ends are trimmed.
std::vector<std::string_view> split_text(std::string_view text, std::string_view delimiter,
                                         int64_t most) {
  std::vector<std::string_view> parts;
  constexpr std::string_view kSpace = " \t\n\r\f\v";
  if (!delimiter.empty()) {
    size_t end;
    while ((most < 0 || static_cast<int64_t>(parts.size()) < most) &&
           (end = text.find(delimiter)) != std::string_view::npos) {
      parts.push_back(text.substr(0, end));
      text.remove_prefix(end + delimiter.size());
    }
    parts.push_back(text);
    return parts;
  }
  while (true) {
    const size_t begin = text.find_first_not_of(kSpace);
    if (begin == std::string_view::npos) return parts;
    text.remove_prefix(begin);
    if (most >= 0 && static_cast<int64_t>(parts.size()) == most) {
      parts.push_back(text.substr(0, text.find_last_not_of(kSpace) + 1));
      return parts;
    }
    const size_t end = std::min(text.find_first_of(kSpace), text.size());
    parts.push_back(text.substr(0, end));
    text.remove_prefix(end);
  }
}

Status run_string_split(KernelContext& context) {
  TRY(const Tensor* x, context.input(0));
  if (!x->is_string()) return context.error("strings are needed, not " + to_string(*x));
  const Text delimiter = context.attributes.get_string("delimiter", "");
  const int64_t most = context.attributes.get_int("maxsplit", -1);
  TRY(Tensor * counts,
      context.output(1 < context.output_count() ? 1 : 0, DType::kInt64, x->dims()));
  std::vector<std::vector<std::string_view>> all;
  size_t longest = 0;
  for (const std::string& text : x->strings()) {
    all.push_back(split_text(text, delimiter, most));
    longest = std::max(longest, all.back().size());
    counts->data<int64_t>()[all.size() - 1] = static_cast<int64_t>(all.back().size());
  }
  Dims dims = x->dims();
  dims.push_back(static_cast<int64_t>(longest));
  TRY(Tensor * out, context.output(0, DType::kString, dims));
  for (size_t i = 0; i < all.size(); ++i)
    for (size_t k = 0; k < all[i].size(); ++k)
      out->strings()[i * longest + k] = std::string(all[i][k]);
  return ok();
}

}  // namespace

OPERATOR(StringSplit) = {
    .name = "StringSplit",
    .doc = "splits each string, with the number of parts",
    .versions = {20},
    .inputs = {{"X", "T1"}},
    .outputs =
        {
            {"Y", "T2"},
            {"Z", "T3"},
        },
    .attributes =
        {
            {"delimiter", Attr::kString},
            {"maxsplit", Attr::kInt},
        },
    .types =
        {
            {"T1", {{20, kStr}}},
            {"T2", {{20, kStr}}},
            {"T3", {{20, kI64}}},
        },
    .infer = infer_string_split,
    .reference = run_string_split,
};

}  // namespace tombolo::ops
