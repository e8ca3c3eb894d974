// The rows of each operator, resolved once.

#include <algorithm>
#include <string>
#include <unordered_map>
#include <vector>

#include "ops/registry.h"
#include "runtime/kernels/kernel.h"

namespace tombolo {

namespace {

using Rows = std::vector<const KernelRow*>;

std::string key_of(std::string_view domain, std::string_view op) {
  return std::string(canonical_domain(domain)) + ":" + std::string(op);
}

const std::unordered_map<std::string, Rows>& table() {
  static const std::unordered_map<std::string, Rows> rows = [] {
    std::unordered_map<std::string, Rows> made;
    for (const KernelRow* row : kKernelIndex) made[key_of(row->domain, row->op)].push_back(row);
    for (auto& [key, list] : made)
      std::stable_sort(list.begin(), list.end(), [](const KernelRow* a, const KernelRow* b) {
        return a->priority > b->priority;
      });
    return made;
  }();
  return rows;
}

}  // namespace

std::span<const KernelRow* const> kernels_of(std::string_view domain, std::string_view op) {
  const auto found = table().find(key_of(domain, op));
  if (found == table().end()) return {};
  return found->second;
}

const KernelRow* choose_kernel(std::span<const KernelRow* const> rows, const KernelQuery& query) {
  for (const KernelRow* row : rows)
    if (row->supports(query)) return row;
  return nullptr;
}

}  // namespace tombolo
