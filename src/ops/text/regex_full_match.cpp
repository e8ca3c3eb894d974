#include <re2/re2.h>

#include "ops/infer_generic.h"
#include "ops/kernel_context.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {

Status run_regex_full_match(KernelContext& context) {
  TRY(const Tensor* x, context.input(0));
  if (!x->is_string()) return context.error("strings are needed, not " + to_string(*x));
  using Pattern = std::shared_ptr<const RE2>;
  TRY(const auto regex, context.made_once<Pattern>([&]() -> Result<Pattern> {
    const Text pattern = context.attributes.get_string("pattern", "");
    RE2::Options options;
    options.set_log_errors(false);
    auto made =
        std::make_shared<const RE2>(re2::StringPiece(pattern.data(), pattern.size()), options);
    if (!made->ok())
      return context.error("pattern \"" + std::string(pattern) + "\": " + made->error());
    return Pattern(std::move(made));
  }));
  TRY(Tensor * out, context.output(0, DType::kBool, x->dims()));
  bool* to = out->data<bool>();
  context.parallel_for(x->size(), 128, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      to[i] = RE2::FullMatch(x->strings()[static_cast<size_t>(i)], **regex);
  });
  return ok();
}

}  // namespace

OPERATOR(RegexFullMatch) = {
    .name = "RegexFullMatch",
    .doc = "whether each whole string matches a pattern",
    .versions = {20},
    .inputs = {{"X", "T1"}},
    .outputs = {{"Y", "T2"}},
    .attributes = {{"pattern", Attr::kString}},
    .types =
        {
            {"T1", {{20, kStr}}},
            {"T2", {{20, kBool}}},
        },
    .infer = infer_unary,
    .reference = run_regex_full_match,
};

}  // namespace tombolo::ops
