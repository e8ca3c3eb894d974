#include "passes/splice.h"

namespace tombolo {
namespace {

struct Names final : NameSource {
  explicit Names(Rewriter& from) : rewriter(from) {}
  Text fresh_name(std::string_view hint) override { return rewriter.unique_name(Text(hint)); }
  Rewriter& rewriter;
};

}  // namespace

std::vector<Value*> splice(Rewriter& rewriter, const Graph& body, std::span<Value* const> inputs,
                           Node& before, std::vector<Node*>* made) {
  Names names(rewriter);
  auto outputs = splice(rewriter.model().storage_ptr(), names, body, inputs, before, made);
  rewriter.changed();
  return outputs;
}

}  // namespace tombolo
