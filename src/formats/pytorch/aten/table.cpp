#include "formats/pytorch/aten/table.h"

#include <algorithm>
#include <mutex>
#include <string>
#include <unordered_map>

namespace tombolo::pytorch {
namespace {

constexpr std::span<const Row> (*kFamilies[])() = {
    elementwise_rows,  comparison_rows,    activation_rows, reduction_rows,     shape_rows,
    view_rows,         indexing_rows,      creation_rows,   linear_rows,        convolution_rows,
    pooling_rows,      normalization_rows, attention_rows,  resize_rows,        recurrent_rows,
    loss_rows,         symbolic_rows,      fourier_rows,    decomposition_rows, special_rows,
    quantization_rows, misc_rows,          binning_rows,    spectrum_rows,
};

std::string_view name_of_row(const Row& row) {
  const std::string_view schema = row.schema;
  return schema.substr(0, schema.find('('));
}

struct Index {
  std::unordered_map<std::string_view, const Row*> rows;
  std::unordered_map<std::string_view, Operator> parsed;
  std::mutex mutex;
};

Index& index() {
  static Index* made = [] {
    auto* fresh = new Index;
    for (const auto family : kFamilies)
      for (const Row& row : family()) fresh->rows.emplace(name_of_row(row), &row);
    return fresh;
  }();
  return *made;
}

}  // namespace

const Operator* find_operator_row(std::string_view name) {
  if (name.starts_with("aten::")) name.remove_prefix(6);
  if (name.ends_with(".default")) name.remove_suffix(8);
  Index& all = index();
  const auto found = all.rows.find(name);
  if (found == all.rows.end()) return nullptr;
  const std::lock_guard lock(all.mutex);
  const auto [entry, fresh] = all.parsed.try_emplace(found->first);
  if (fresh) entry->second = {found->second, parse_schema(found->second->schema)};
  return &entry->second;
}

std::vector<const Operator*> overloads_of(std::string_view base) {
  if (base.starts_with("aten::")) base.remove_prefix(6);
  std::vector<const Operator*> result;
  for (const auto family : kFamilies)
    for (const Row& row : family()) {
      const std::string_view name = name_of_row(row);
      if (name == base || (name.starts_with(base) && name[base.size()] == '.'))
        result.push_back(find_operator_row(name));
    }
  return result;
}

std::vector<const Row*> all_rows() {
  std::vector<const Row*> rows;
  for (const auto family : kFamilies)
    for (const Row& row : family()) rows.push_back(&row);
  std::sort(rows.begin(), rows.end(),
            [](const Row* a, const Row* b) { return name_of_row(*a) < name_of_row(*b); });
  return rows;
}

std::string functional_name(std::string_view name) {
  const size_t dot = name.find('.');
  const std::string_view base = name.substr(0, dot);
  if (base.size() < 2 || base.back() != '_' || base.ends_with("__")) return {};
  // Where the functional overload has another name, or the same name means another order of
  // arguments.
  static constexpr std::pair<std::string_view, std::string_view> kRenamed[] = {
      {"pow_.Scalar", "pow.Tensor_Scalar"},
      {"pow_.Tensor", "pow.Tensor_Tensor"},
      {"float_power_.Scalar", "float_power.Tensor_Scalar"},
      {"float_power_.Tensor", "float_power.Tensor_Tensor"},
      {"floor_divide_.Tensor", "floor_divide"},
      {"ldexp_", "ldexp.Tensor"},
      {"transpose_", "transpose.int"},
      {"polygamma_", ""},
  };
  std::string_view whole = name.starts_with("aten::") ? name.substr(6) : name;
  if (whole.ends_with(".default")) whole.remove_suffix(8);
  for (const auto& [in_place, functional] : kRenamed)
    if (whole == in_place) return std::string(functional);
  return std::string(base.substr(0, base.size() - 1)) +
         std::string(dot == name.npos ? "" : name.substr(dot));
}

}  // namespace tombolo::pytorch
