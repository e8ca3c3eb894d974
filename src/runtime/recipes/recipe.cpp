#include "runtime/recipes/recipe.h"

#include <algorithm>
#include <charconv>
#include <map>

#include "ir/text/parser.h"
#include "runtime/recipes/numbers.h"

namespace tombolo {

namespace {

constexpr std::string_view kTensors =
#include "runtime/recipes/tensors.inc"
    ;
constexpr std::string_view kMath =
#include "runtime/recipes/math.inc"
    ;
constexpr std::string_view kNetworks =
#include "runtime/recipes/networks.inc"
    ;

std::string_view trim(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

/// The pieces of `text` between `mark`s.
std::vector<std::string_view> split(std::string_view text, std::string_view mark) {
  std::vector<std::string_view> parts;
  for (size_t at = 0;;) {
    const size_t end = text.find(mark, at);
    const std::string_view part = trim(text.substr(at, end - at));
    if (!part.empty()) parts.push_back(part);
    if (end == std::string_view::npos) return parts;
    at = end + mark.size();
  }
}

int number_or(std::string_view text, int fallback) {
  std::from_chars(text.data(), text.data() + text.size(), fallback);
  return fallback;
}

std::multimap<std::string, Recipe, std::less<>> read_recipes() {
  std::multimap<std::string, Recipe, std::less<>> recipes;
  for (const std::string_view table : {kTensors, kMath, kNetworks})
    for (const std::string_view line : split(table, "\n")) {
      const size_t colon = line.find(": (");
      if (colon == std::string_view::npos) continue;
      std::vector<std::string_view> names = split(line.substr(0, colon), " ");
      Recipe recipe;
      if (const std::string_view last = names.back(); last[0] >= '0' && last[0] <= '9') {
        recipe.since = number_or(last, 1);
        recipe.until = number_or(last.substr(last.find('-') + 1), 9999);
        names.pop_back();
      }
      const size_t bar = line.find(" | ");
      recipe.text = trim(line.substr(colon + 2, bar - std::min(bar, colon + 2)));
      if (bar != std::string_view::npos) recipe.options = line.substr(bar + 3);
      for (const std::string_view name : names) recipes.emplace(std::string(name), recipe);
    }
  return recipes;
}

size_t variable_named(const OpVersion& version, std::string_view name) {
  size_t i = 0;
  while (i < version.types.size() && version.types[i].name != name) ++i;
  return i;
}

/// The variable whose name starts at text[at], the longest that fits; its length in `length`.
size_t variable_at(const OpVersion& version, std::string_view text, size_t at, size_t& length) {
  size_t found = version.types.size();
  length = 0;
  for (size_t i = 0; i < version.types.size(); ++i) {
    const std::string_view name = version.types[i].name;
    if (name.size() > length && text.substr(at).starts_with(name)) found = i, length = name.size();
  }
  return found;
}

bool is_sequence(ValueType type) {
  return type.kind == ValueType::Kind::kSequence || type.kind == ValueType::Kind::kOptionalSequence;
}

/// The member of `allowed` closest to `like`: its element type, and a sequence where it is one.
std::optional<ValueType> tied(TypeSet allowed, ValueType like, bool opposite) {
  std::optional<ValueType> best;
  int best_rank = -1;
  for (const ValueType& candidate : members_of(allowed)) {
    const bool wanted = opposite ? is_string(candidate.dtype) != is_string(like.dtype)
                                 : candidate.dtype == like.dtype;
    const bool same_map =
        like.kind == ValueType::Kind::kMap || candidate.kind == ValueType::Kind::kMap;
    if (!wanted && !same_map) continue;
    if (same_map && !opposite) {  // a map and its values
      const std::string_view map = kMapTypes[static_cast<size_t>(
          like.kind == ValueType::Kind::kMap ? like.map : candidate.map)];
      const DType other = like.kind == ValueType::Kind::kMap ? candidate.dtype : like.dtype;
      const size_t comma = map.find(", ");
      if (!map.substr(comma + 2).starts_with(name_of(other))) continue;
    }
    const int rank = is_sequence(candidate) == is_sequence(like) ? 1 : 0;
    if (rank > best_rank) best = candidate, best_rank = rank;
  }
  return best;
}

/// `T1 = int8`, `T1 = T2`, `T1 = ~T2`: the right side for this variable, or nothing.
std::string_view option_of(const Recipe& recipe, std::string_view name) {
  for (const std::string_view option : split(recipe.options, " | ")) {
    const size_t equal = option.find(" = ");
    if (equal != std::string_view::npos && option.substr(0, equal) == name)
      return trim(option.substr(equal + 3));
  }
  return {};
}

}  // namespace

bool recipe_flag(const Recipe& recipe, std::string_view flag) {
  for (const std::string_view option : split(recipe.options, " | "))
    if (option == flag) return true;
  return false;
}

bool recipe_uses(const OpVersion& version, const Recipe& recipe, size_t variable) {
  const std::string text(recipe.text);
  for (size_t at = 0; (at = text.find_first_of("$#^", at)) != std::string::npos; ++at) {
    size_t length = 0;
    if (variable_at(version, text, at + 1, length) == variable) return true;
  }
  for (const std::string_view option : split(recipe.options, " | "))
    if (option.starts_with('@') && option.find(" = " + std::string(version.types[variable].name) +
                                               " ") != std::string_view::npos)
      return true;
  return false;
}

namespace {

std::string upper(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 32);
  return out;
}

/// Resolves [[T word: a // word: b // c]].
std::string choose(const OpVersion& version, std::string text, const TypeAssignment& types) {
  for (size_t open; (open = text.find("[[")) != std::string::npos;) {
    size_t close = text.find("]]", open);
    if (close == std::string::npos) return text;
    if (text.substr(close).starts_with("]]]")) ++close;  // the first one closes a list inside
    std::string_view inside = std::string_view(text).substr(open + 2, close - open - 2);
    const size_t space = inside.find(' ');
    const size_t variable = variable_named(version, inside.substr(0, space));
    const std::string type =
        variable < types.size() ? types[variable].schema_text() : std::string();
    std::string chosen;
    for (const std::string_view branch : split(inside.substr(space + 1), "//")) {
      const size_t colon = branch.find(": ");
      const bool conditional = colon != std::string_view::npos && branch.find(' ') > colon;
      if (conditional && type.find(branch.substr(0, colon)) == std::string::npos) continue;
      chosen = conditional ? branch.substr(colon + 2) : branch;
      break;
    }
    text.replace(open, close + 2 - open, chosen);
  }
  return text;
}

}  // namespace

std::string ValueType::schema_text() const {
  const std::string tensor = "tensor(" + std::string(name_of(dtype)) + ")";
  switch (kind) {
    case Kind::kTensor:
      return tensor;
    case Kind::kSequence:
      return "seq(" + tensor + ")";
    case Kind::kOptional:
      return "optional(" + tensor + ")";
    case Kind::kOptionalSequence:
      return "optional(seq(" + tensor + "))";
    case Kind::kMap:
      return std::string(kMapTypes[static_cast<size_t>(map)]);
  }
  return tensor;
}

std::string ValueType::text(std::string_view dims) const {
  const std::string tensor = std::string(name_of(dtype)) + std::string(dims);
  switch (kind) {
    case Kind::kTensor:
      return tensor;
    case Kind::kSequence:
      return "seq(" + tensor + ")";
    case Kind::kOptional:
      return "optional(" + tensor + ")";
    case Kind::kOptionalSequence:
      return "optional(seq(" + tensor + "))";
    case Kind::kMap:
      return std::string(kMapTypes[static_cast<size_t>(map)]);
  }
  return tensor;
}

std::vector<ValueType> members_of(TypeSet set) {
  using Kind = ValueType::Kind;
  std::vector<ValueType> out;
  const std::pair<uint32_t, Kind> words[] = {{set.tensors, Kind::kTensor},
                                             {set.sequences, Kind::kSequence},
                                             {set.optionals, Kind::kOptional},
                                             {set.optional_sequences, Kind::kOptionalSequence}};
  for (const auto& [word, kind] : words)
    for (size_t i = 1; i < kDTypeCount; ++i)
      if ((word >> i & 1) != 0) out.push_back({kind, static_cast<DType>(i), 0});
  for (int i = 0; i < static_cast<int>(std::size(kMapTypes)); ++i)
    if ((set.maps >> i & 1) != 0) out.push_back({Kind::kMap, DType::kUndefined, i});
  return out;
}

const Recipe* find_recipe(const OpVersion& version) {
  static const auto recipes = read_recipes();
  const std::string full =
      std::string(version.decl->domain) + "." + std::string(version.decl->name);
  for (const std::string_view name :
       {std::string_view(full), std::string_view(version.decl->name)}) {
    const Recipe* found = nullptr;
    const auto [first, last] = recipes.equal_range(name);
    for (auto it = first; it != last; ++it)
      if (it->second.since <= version.since && version.since <= it->second.until)
        found = &it->second;  // a later line wins
    if (found != nullptr) return found;
  }
  return nullptr;
}

TypeAssignment assign_types(const OpVersion& version, const Recipe& recipe, size_t variable,
                            ValueType type) {
  TypeAssignment types;
  for (const ResolvedType& row : version.types) {
    const std::vector<ValueType> all = members_of(row.allowed);
    ValueType chosen = all.empty() ? ValueType() : all.front();
    for (const ValueType& candidate : all)  // what the recipe says by name
      if (candidate.schema_text() == "tensor(" + std::string(option_of(recipe, row.name)) + ")" ||
          candidate.schema_text() == option_of(recipe, row.name))
        chosen = candidate;
    types.push_back(chosen);
  }
  types[variable] = type;
  for (size_t i = 0; i < types.size(); ++i) {
    std::string_view right = option_of(recipe, version.types[i].name);
    const bool opposite = right.starts_with('~');
    if (opposite) right.remove_prefix(1);
    if (i == variable || variable_named(version, right) != variable) continue;
    if (const auto fit = tied(version.types[i].allowed, type, opposite)) types[i] = *fit;
  }
  return types;
}

std::string recipe_text(const OpVersion& version, const Recipe& recipe,
                        const TypeAssignment& types) {
  const std::string text = choose(version, std::string(recipe.text), types);
  const std::string_view domain = version.decl->domain;
  const int opset = domain.empty() ? version.since : latest_opset("");
  std::string out = "<ir_version: 14, opset_import: [\"\" : " + std::to_string(opset);
  if (!domain.empty())
    out += ", \"" + std::string(domain) + "\" : " + std::to_string(version.since);
  out += "]>\ng ";
  for (size_t i = 0; i < text.size();) {
    size_t length = 0;
    if (std::string_view(text).substr(i, 2) == "OP" &&
        (i == 0 || text[i - 1] == ' ' || text[i - 1] == '.')) {
      out += std::string_view(version.decl->name);
      i += 2;
    } else if (text[i] == '$' || text[i] == '#' || text[i] == '^') {
      const size_t variable = variable_at(version, text, i + 1, length);
      if (variable == types.size()) return "type variable unknown at: " + text.substr(i);
      const ValueType type = types[variable];
      const char mark = text[i];
      i += 1 + length;
      if (mark == '#') {
        out += std::to_string(static_cast<int>(type.dtype));
      } else if (mark == '^') {
        out += upper(name_of(type.dtype));
      } else {
        const bool element = i < text.size() && text[i] == ':';
        i += element ? 1 : 0;
        size_t end = i;
        if (i < text.size() && text[i] == '[') end = text.find(']', i) + 1;
        // ONNX text says [] for an unknown rank and nothing for a scalar; recipes the reverse.
        std::string dims = text.substr(i, end - i);
        dims = dims.empty() ? "[]" : dims == "[]" ? "" : dims;
        out += element ? ValueType{ValueType::Kind::kTensor, type.dtype, 0}.text(dims)
                       : type.text(dims);
        i = end;
      }
    } else {
      out += text[i++];
    }
  }
  return out;
}

// ---- Values

namespace {

std::vector<double> numbers_in(std::string_view text) {
  std::vector<double> numbers;
  for (const std::string_view word : split(text, " ")) {
    double value = 0;
    if (std::from_chars(word.data(), word.data() + word.size(), value).ec == std::errc())
      numbers.push_back(value);
  }
  return numbers;
}

struct Filler {
  std::vector<double> given;  ///< empty: the usual numbers
  bool positive = false, text = false;
  size_t next = 0;

  Result<Tensor> tensor(DType dtype, std::span<const int64_t> dims) {
    TRY(Tensor out, Tensor::allocate(dtype, dims));
    const std::vector<double> numbers = given.empty() ? usual_numbers(dtype, positive) : given;
    for (int64_t i = 0; i < out.size(); ++i)
      put_number(out, i, numbers[next++ % numbers.size()], text);
    return out;
  }

  Result<RunValue> value(const Type& type) {
    switch (type.kind) {
      case Type::Kind::kTensor: {
        Dims dims;
        for (const Dim& dim : type.dims) dims.push_back(dim.value);
        TRY(Tensor out, tensor(type.dtype(), dims));
        return RunValue(std::move(out));
      }
      case Type::Kind::kSequence: {
        SequenceValue sequence;
        for (int i = 0; i < 2; ++i) {
          TRY(RunValue item, value(*type.element));
          if (item.is_tensor()) sequence.elem = item.tensor().dtype();
          sequence.items.push_back(std::move(item));
        }
        return RunValue(std::move(sequence));
      }
      case Type::Kind::kOptional: {
        TRY(RunValue content, value(*type.element));
        return RunValue::optional_of(std::move(content));
      }
      case Type::Kind::kMap: {
        MapValue map;
        const int64_t two[] = {2};
        TRY(map.keys, Tensor::allocate(static_cast<DType>(type.key_type), two));
        for (int64_t i = 0; i < 2; ++i) {
          put_number(map.keys, i, static_cast<double>(i), false);
          TRY(Tensor item, tensor(type.element->dtype(), {}));
          map.values.push_back(RunValue(std::move(item)));
        }
        return RunValue(std::move(map));
      }
      default:
        return unsupported("no value of this type");
    }
  }
};

}  // namespace

Result<RecipeRun> open_recipe(const OpVersion& version, const Recipe& recipe,
                              const TypeAssignment& types, const std::vector<NamedValue>* like) {
  const std::string text = recipe_text(version, recipe, types);
  TRY(std::unique_ptr<Model> model, parse_text(text));
  Node* node = nullptr;
  for (Node* candidate : model->graph->nodes())
    if (candidate->op_type() == std::string_view(version.decl->name)) node = candidate;
  for (const std::string_view option : split(recipe.options, " | ")) {
    if (!option.starts_with('@') || node == nullptr) continue;
    const size_t equal = option.find(" = ");
    const std::string_view right = trim(option.substr(equal + 3));
    const size_t variable = variable_named(version, right.substr(0, right.find(' ')));
    Filler filler{numbers_in(right.substr(right.find(' '))), false, recipe_flag(recipe, "text")};
    const int64_t count[] = {static_cast<int64_t>(filler.given.size())};
    TRY(const Tensor tensor, filler.tensor(types[variable].dtype, count));
    node->set_tensor(option.substr(1, equal - 1), tensor);
  }
  RecipeRun run;
  TRY(run.session, Session::create(std::move(model)));
  for (const SessionPort& port : run.session->inputs()) {
    Filler filler{numbers_in(option_of(recipe, port.name)), recipe_flag(recipe, "positive"),
                  recipe_flag(recipe, "text")};
    if (like != nullptr) {
      Numbers numbers;
      for (const NamedValue& named : *like)
        if (named.name == port.name) collect_numbers(named.value, numbers);
      filler.given = std::move(numbers.values);
    }
    if (port.type == nullptr) return unsupported("input " + port.name + " has no type");
    TRY(RunValue value, filler.value(*port.type));
    run.inputs.push_back({port.name, std::move(value)});
  }
  return run;
}

}  // namespace tombolo
