#include "ops/registry.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>

#include "ops/op_index.h"

namespace tombolo {
namespace {

struct DomainRow {
  std::string_view name;
  int latest;
};
constexpr DomainRow kDomains[] = {
    {"", 28},
    {"ai.onnx.ml", 5},
    {"ai.onnx.preview", 1},
    {"ai.onnx.preview.training", 1},
    {"ai.onnx.training", 1},
};

/// Opset and IR version of each release, oldest first; an opset without a row takes the next one's.
struct Release {
  int opset, ir;
};
constexpr Release kReleases[] = {
    {1, 3},   {5, 3},   {6, 3},   {7, 3},   {8, 3},   {9, 4},   {10, 5},  {11, 6}, {12, 7},
    {13, 7},  {14, 7},  {15, 8},  {16, 8},  {17, 8},  {18, 8},  {19, 9},  {20, 9}, {21, 10},
    {22, 10}, {23, 11}, {24, 12}, {25, 13}, {26, 13}, {27, 13}, {28, 14},
};

/// All tables, resolved from the declarations. The vectors are filled once and never grow again:
/// the versions hold spans into them.
class Registry {
 public:
  static const Registry& get() {
    static const Registry registry;
    return registry;
  }

  std::span<const OpDecl* const> operators() const { return operators_; }
  std::span<const OpVersion> versions() const { return versions_; }

  /// Position in operators(), or -1.
  int find(std::string_view domain, std::string_view name) const {
    domain = canonical_domain(domain);
    for (uint32_t slot = hash(domain, name) & kMask;; slot = (slot + 1) & kMask) {
      const int at = slots_[slot];
      if (at < 0) return -1;
      const OpDecl& op = *operators_[static_cast<size_t>(at)];
      if (op.name == name && op.domain == domain) return at;
    }
  }

  /// The same; a name that ai.onnx lacks is sought among its guests.
  int find_or_guest(std::string_view domain, std::string_view name) const {
    const int at = find(domain, name);
    return at < 0 && canonical_domain(domain).empty() ? find(kGuestDomain, name) : at;
  }

  std::span<const OpVersion> versions_at(size_t at) const {
    return std::span(versions_).subspan(first_version_[at],
                                        first_version_[at + 1] - first_version_[at]);
  }

 private:
  static constexpr uint32_t kSlots = 1024, kMask = kSlots - 1;

  /// FNV-1a. Names differ across domains, so only the domain's length joins in.
  static uint32_t hash(std::string_view domain, std::string_view name) {
    uint32_t h = 2166136261u ^ static_cast<uint32_t>(domain.size());
    for (const char c : name) h = (h ^ static_cast<unsigned char>(c)) * 16777619u;
    return h ^ h >> 15;
  }

  Registry() {
    operators_.assign(kOperatorIndex.begin(), kOperatorIndex.end());
    std::sort(operators_.begin(), operators_.end(), [](const OpDecl* a, const OpDecl* b) {
      const std::string_view da = a->domain, db = b->domain;
      return da != db ? da < db : std::string_view(a->name) < std::string_view(b->name);
    });
    slots_.fill(-1);
    for (size_t at = 0; at < operators_.size(); ++at) {
      uint32_t slot = hash(operators_[at]->domain, operators_[at]->name) & kMask;
      while (slots_[slot] >= 0) slot = (slot + 1) & kMask;
      slots_[slot] = static_cast<int16_t>(at);
    }
    // Count before filling, so that the spans stay valid.
    size_t versions = 0, params = 0, attributes = 0, types = 0, functions = 0;
    for (const OpDecl* op : operators_) {
      versions += op->versions.size();
      params += op->versions.size() * (op->inputs.size() + op->outputs.size());
      attributes += op->versions.size() * op->attributes.size();
      types += op->versions.size() * op->types.size();
      functions += op->versions.size() * op->functions.size();
    }
    versions_.reserve(versions);
    params_.reserve(params);
    attributes_.reserve(attributes);
    types_.reserve(types);
    functions_.reserve(functions);
    for (const OpDecl* op : operators_) {
      first_version_.push_back(versions_.size());
      for (const int* v = op->versions.begin(); v != op->versions.end(); ++v)
        add(*op, *v, v + 1 == op->versions.end() ? 9999 : v[1] - 1);
    }
    first_version_.push_back(versions_.size());
  }

  template <typename T>
  static std::span<const T> tail(const std::vector<T>& all, size_t from) {
    return std::span(all).subspan(from);
  }

  /// Those of `rows` that hold at `since`, as pointers at the end of `into`.
  template <typename Row>
  static std::span<const Row* const> select(std::initializer_list<Row> rows, int since,
                                            std::vector<const Row*>& into) {
    const size_t from = into.size();
    for (const Row& row : rows)
      if (row.versions.holds(since)) into.push_back(&row);
    return tail(into, from);
  }

  void add(const OpDecl& op, int since, int until) {
    OpVersion version;
    version.decl = &op;
    version.since = since;
    version.until = until;
    version.deprecated =
        std::find(op.deprecated.begin(), op.deprecated.end(), since) != op.deprecated.end();
    version.types = resolve_types(op, since);
    version.inputs =
        resolve_params(op.inputs, since, version.types, version.min_inputs, version.max_inputs);
    version.outputs =
        resolve_params(op.outputs, since, version.types, version.min_outputs, version.max_outputs);
    version.attributes = select(op.attributes, since, attributes_);
    version.functions = select(op.functions, since, functions_);
    versions_.push_back(version);
  }

  std::span<const ResolvedType> resolve_types(const OpDecl& op, int since) {
    const size_t from = types_.size();
    for (const TypeVar& row : op.types) {
      if (!row.versions.holds(since)) continue;
      ResolvedType type{row.name, {}};
      for (const TypeStep& step : row.steps)
        if (step.since <= since) type.allowed = type.allowed | step.types;
      types_.push_back(type);
    }
    return tail(types_, from);
  }

  std::span<const ResolvedParam> resolve_params(std::initializer_list<Param> rows, int since,
                                                std::span<const ResolvedType> types, size_t& fewest,
                                                size_t& most) {
    const size_t from = params_.size();
    for (const Param& row : rows) {
      if (!row.versions.holds(since)) continue;
      ResolvedParam param{row.name, row.type, row.option, row.min_arity, row.homogeneous, -1, {}};
      for (size_t k = 0; k < types.size(); ++k)
        if (types[k].name == param.type) param.type_var = static_cast<int>(k);
      param.allowed = param.type_var >= 0 ? types[static_cast<size_t>(param.type_var)].allowed
                                          : type_set_of(param.type).value_or(TypeSet{});
      ++most;
      if (row.option == Option::kSingle) fewest = most;
      // The places before a variadic count even where they are optional: they can be left empty,
      // not left out.
      if (row.option == Option::kVariadic) fewest = most - 1 + static_cast<size_t>(row.min_arity);
      params_.push_back(param);
    }
    const std::span<const ResolvedParam> params = tail(params_, from);
    if (!params.empty() && params.back().option == Option::kVariadic) most = SIZE_MAX;
    return params;
  }

  std::vector<const OpDecl*> operators_;
  std::vector<OpVersion> versions_;
  std::vector<size_t> first_version_;
  std::vector<ResolvedParam> params_;
  std::vector<ResolvedType> types_;
  std::vector<const AttrDecl*> attributes_;
  std::vector<const FunctionBody*> functions_;
  std::array<int16_t, kSlots> slots_;
};

const OpVersion* in_force(std::span<const OpVersion> versions, int opset) {
  for (size_t k = versions.size(); k-- > 0;)
    if (versions[k].since <= opset) return &versions[k];
  return nullptr;
}

}  // namespace

const AttrDecl* OpVersion::attribute(std::string_view name) const {
  for (const AttrDecl* row : attributes)
    if (row->name == name) return row;
  return nullptr;
}

std::span<const OpDecl* const> all_operators() { return Registry::get().operators(); }

std::span<const OpVersion> all_versions() { return Registry::get().versions(); }

const OpDecl* find_operator(std::string_view domain, std::string_view name) {
  const Registry& registry = Registry::get();
  const int at = registry.find_or_guest(domain, name);
  return at < 0 ? nullptr : registry.operators()[static_cast<size_t>(at)];
}

std::span<const OpVersion> versions_of(const OpDecl& op) {
  const Registry& registry = Registry::get();
  const int at = registry.find(op.domain, op.name);
  if (at < 0) return {};
  return registry.versions_at(static_cast<size_t>(at));
}

const OpVersion* resolve(const OpDecl& op, int opset) { return in_force(versions_of(op), opset); }

const OpVersion* find_version(std::string_view domain, std::string_view name, int opset) {
  const Registry& registry = Registry::get();
  const int at = registry.find_or_guest(domain, name);
  return at < 0 ? nullptr : in_force(registry.versions_at(static_cast<size_t>(at)), opset);
}

int latest_opset(std::string_view domain) {
  for (const DomainRow& row : kDomains)
    if (row.name == canonical_domain(domain)) return row.latest;
  return 0;
}

int ir_version_for_opset(int opset) {
  for (const Release& row : kReleases)
    if (opset <= row.opset) return row.ir;
  return std::rbegin(kReleases)->ir;
}

int opset_for_ir_version(int ir_version) {
  int opset = 0;
  for (const Release& row : kReleases)
    if (row.ir == ir_version) opset = row.opset;
  return opset;
}

}  // namespace tombolo
