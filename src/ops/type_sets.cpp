#include "ops/registry.h"

#include <iterator>

namespace tombolo {
namespace {

struct Form {
  uint32_t TypeSet::*word;
  std::string_view prefix, suffix;
};
constexpr Form kForms[] = {
    {&TypeSet::tensors, "tensor(", ")"},
    {&TypeSet::sequences, "seq(tensor(", "))"},
    {&TypeSet::optionals, "optional(tensor(", "))"},
    {&TypeSet::optional_sequences, "optional(seq(tensor(", ")))"},
};

}  // namespace

std::vector<std::string> type_strings(TypeSet set) {
  std::vector<std::string> strings;
  for (const Form& form : kForms)
    for (unsigned type = 1; type < kDTypeCount; ++type)
      if (set.*form.word >> type & 1)
        strings.push_back(std::string(form.prefix) + std::string(kDTypes[type].name) +
                          std::string(form.suffix));
  for (unsigned k = 0; k < std::size(kMapTypes); ++k)
    if (set.maps >> k & 1) strings.emplace_back(kMapTypes[k]);
  return strings;
}

std::optional<TypeSet> type_set_of(std::string_view text) {
  TypeSet set;
  for (unsigned k = 0; k < std::size(kMapTypes); ++k)
    if (text == kMapTypes[k]) {
      set.maps = 1u << k;
      return set;
    }
  for (const Form& form : kForms) {
    if (!text.starts_with(form.prefix) || !text.ends_with(form.suffix)) continue;
    if (text.size() < form.prefix.size() + form.suffix.size()) continue;
    const std::string_view name =
        text.substr(form.prefix.size(), text.size() - form.prefix.size() - form.suffix.size());
    const auto type = dtype_from_name(name);
    if (!type) continue;
    set.*form.word = 1u << static_cast<unsigned>(*type);
    return set;
  }
  return std::nullopt;
}

}  // namespace tombolo
