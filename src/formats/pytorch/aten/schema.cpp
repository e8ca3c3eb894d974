#include "formats/pytorch/aten/schema.h"

#include <charconv>

namespace tombolo::pytorch {
namespace {

std::string_view trim(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

/// Calls visit for every part between commas that stand outside of brackets.
template <typename Visit>
void split(std::string_view text, Visit&& visit) {
  int depth = 0;
  size_t start = 0;
  for (size_t i = 0; i <= text.size(); ++i) {
    const char c = i < text.size() ? text[i] : ',';
    if (c == '(' || c == '[') ++depth;
    if (c == ')' || c == ']') --depth;
    if (c != ',' || (depth != 0 && i < text.size())) continue;
    const std::string_view part = trim(text.substr(start, i - start));
    if (!part.empty()) visit(part);
    start = i + 1;
  }
}

Arg parse_default(std::string_view text, std::string_view type) {
  if (text == "None") return {};
  if (text == "True" || text == "False") return Arg(text == "True");
  if (text == "contiguous_format") return Arg(0);
  if (text == "Mean") return Arg(1);
  if (text == "long") return Arg(DType::kInt64);
  if (!text.empty() && (text.front() == '"' || text.front() == '\''))
    return Arg(std::string(text.substr(1, text.size() - 2)));
  if (!text.empty() && text.front() == '[') {
    std::vector<Arg> items;
    split(text.substr(1, text.size() - 2),
          [&](std::string_view item) { items.push_back(parse_default(item, type)); });
    return Arg(std::move(items));
  }
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc() && end == text.data() + text.size()) {
    return type.starts_with("float") ? Arg(static_cast<double>(number)) : Arg(number);
  }
  double real = 0;
  std::from_chars(text.data(), text.data() + text.size(), real);
  return Arg(real);
}

}  // namespace

int Schema::find(std::string_view arg) const {
  for (size_t i = 0; i < args.size(); ++i)
    if (args[i].name == arg) return static_cast<int>(i);
  return -1;
}

Schema parse_schema(std::string_view text) {
  Schema schema;
  const size_t open = text.find('(');
  schema.name = trim(text.substr(0, open));
  if (open == text.npos) return schema;
  const size_t arrow = text.rfind("->");
  const std::string_view head = arrow == text.npos ? text : text.substr(0, arrow);
  const size_t close = head.rfind(')');
  bool keyword = false;
  split(text.substr(open + 1, close - open - 1), [&](std::string_view part) {
    if (part == "*") {
      keyword = true;
      return;
    }
    SchemaArg arg;
    arg.keyword = keyword;
    // The default may hold spaces ("[0, 0]"): the name ends at the first '=' after the type.
    const size_t equals = part.find('=');
    std::string_view declaration = trim(part.substr(0, equals));
    const size_t space = declaration.rfind(' ');
    arg.name = declaration.substr(space + 1);
    std::string_view type = trim(declaration.substr(0, space));
    if (const size_t alias = type.find('('); alias != type.npos) {
      arg.mutated = type.find('!') != type.npos;
      type = type.substr(0, alias);
    }
    if (const size_t bracket = type.find('['); bracket != type.npos && bracket + 1 < type.size() &&
                                               type[bracket + 1] >= '0' &&
                                               type[bracket + 1] <= '9') {
      std::from_chars(type.data() + bracket + 1, type.data() + type.size(), arg.list_length);
    }
    arg.type = type;
    arg.required = equals == part.npos;
    if (!arg.required) arg.fallback = parse_default(trim(part.substr(equals + 1)), type);
    schema.args.push_back(std::move(arg));
  });
  if (arrow != text.npos) {
    std::string_view results = trim(text.substr(arrow + 2));
    if (!results.empty() && results.front() == '(') results = results.substr(1, results.size() - 2);
    split(results, [&](std::string_view part) { schema.results.push_back(part); });
  }
  return schema;
}

}  // namespace tombolo::pytorch
