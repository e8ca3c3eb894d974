#include "ir/model.h"

namespace tombolo {

Model Model::create(int64_t opset, Text graph_name) {
  Model model;
  model.has_ir_version = true;
  model.ir_version = kNewestIrVersion;
  model.set_opset("", opset);
  model.graph = std::make_unique<Graph>(model.storage_);
  model.graph->name = model.storage_->copy(graph_name);
  return model;
}

int64_t Model::opset(Text domain_name) const {
  for (const OpsetImport& import : opset_imports)
    if (canonical_domain(import.domain) == canonical_domain(domain_name)) return import.version;
  // SPEC IR.md: before IR 3 a model imports nothing and means version 1 of the default domain.
  return opset_imports.empty() && ir_version < 3 && canonical_domain(domain_name).empty() ? 1 : 0;
}

void Model::set_opset(Text domain_name, int64_t version) {
  for (OpsetImport& import : opset_imports) {
    if (canonical_domain(import.domain) != canonical_domain(domain_name)) continue;
    import.version = version;
    import.has_version = true;
    return;
  }
  opset_imports.push_back({storage_->copy(domain_name), true, version, {}});
}

const Function* Model::find_function(Text domain_name, Text name, Text overload) const {
  for (const auto& function : functions)
    if (function->name == name &&
        canonical_domain(function->domain) == canonical_domain(domain_name) &&
        function->overload == overload)
      return function.get();
  return nullptr;
}

}  // namespace tombolo
