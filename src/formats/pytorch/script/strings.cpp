// Strings. They are known while the program is lowered; one that numbers of the model went into is
// marked (Arg::index) and good for messages only.

#include <algorithm>
#include <cctype>
#include <cstring>

#include "formats/pytorch/script/builtins.h"

namespace tombolo::script {

namespace {

using AKind = Arg::Kind;

std::optional<int64_t> number(const Item& item) {
  if (!item.is_number() || item.arg.computed) return std::nullopt;
  return item.arg.integer.dim.constant();
}
bool is_text(const Items& args, size_t at = 0) { return args.size() > at && args[at].is_text(); }
Item text(std::string content) { return Item(Arg(std::move(content))); }
Item integer(size_t value) {
  return Item(Arg(value == std::string::npos ? int64_t{-1} : static_cast<int64_t>(value)));
}

/// Appends what Python shows of a value; false when only the model knows it.
bool show(const Item& item, std::string& out, bool quoted = false) {
  if (item.is_text()) {
    out += quoted ? "'" + item.arg.text + "'" : item.arg.text;
    return item.arg.index == 0;
  }
  if (item.is_none()) {
    out += "None";
    return true;
  }
  if (item.is_arg(AKind::kBool)) {
    const auto value = number(item);
    out += !value ? "..." : *value ? "True" : "False";
    return value.has_value();
  }
  if (item.is_arg(AKind::kInt)) {
    const auto value = number(item);
    out += value ? std::to_string(*value) : "...";
    return value.has_value();
  }
  if (item.is_arg(AKind::kFloat) && !item.arg.computed) {
    char digits[40];
    for (int precision = 1; precision <= 17; ++precision) {
      std::snprintf(digits, sizeof digits, "%.*g", precision, item.arg.real);
      if (std::strtod(digits, nullptr) == item.arg.real) break;
    }
    out += digits;
    if (std::strpbrk(digits, ".einf") == nullptr) out += ".0";
    return true;
  }
  if (item.is_sequence() && !item.box->sequence && item.box->items.size() < 1000) {
    const bool list = item.is(Item::Kind::kList);
    bool known = true;
    out += list ? "[" : "(";
    for (size_t i = 0; i < item.box->items.size(); ++i) {
      if (i != 0) out += ", ";
      known = show(item.box->items[i], out, true) && known;
    }
    out += list ? "]" : ")";
    return known;
  }
  out += "...";
  return false;
}
Item marked(std::string content, bool known) {
  Item item = text(std::move(content));
  item.arg.index = known ? 0 : 1;
  return item;
}

Answer format(Interpreter&, Items& args, NamedItems&) {
  if (!is_text(args)) return not_mine();
  std::string out;
  size_t next = 1;
  bool known = args[0].arg.index == 0;
  const std::string& pattern = args[0].arg.text;
  for (size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] == '{' && i + 1 < pattern.size() && pattern[i + 1] == '}') {
      if (next < args.size()) known = show(args[next++], out) && known;
      ++i;
    } else {
      out += pattern[i];
    }
  }
  return answer(marked(std::move(out), known));
}
/// "%d of %s" % (a, b)
Answer percent_format(Interpreter&, Items& args, NamedItems&) {
  if (!is_text(args)) return not_mine();
  Items values(args.begin() + 1, args.end());
  if (values.size() == 1 && values[0].is(Item::Kind::kTuple)) values = Items(values[0].box->items);
  std::string out;
  size_t next = 0;
  bool known = args[0].arg.index == 0;
  const std::string& pattern = args[0].arg.text;
  for (size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] != '%' || i + 1 == pattern.size()) {
      out += pattern[i];
      continue;
    }
    const char what = pattern[++i];
    if (what == '%') {
      out += '%';
    } else if (next < values.size()) {
      if (what != 's' && what != 'd' && what != 'i') known = false;  // forms of numbers
      known = show(values[next++], out) && known;
    }
  }
  return answer(marked(std::move(out), known));
}
Answer to_text(Interpreter&, Items& args, NamedItems&) {
  if (args.size() != 1) return not_mine();
  std::string out;
  const bool known = show(args[0], out);
  return answer(marked(std::move(out), known));
}

/// Every other function needs strings that are known.
template <typename Body>
Answer of_text(Items& args, size_t texts, Body&& body) {
  if (args.size() < texts) return not_mine();
  for (size_t i = 0; i < texts; ++i)
    if (!args[i].is_text()) return not_mine();
  for (const Item& item : args)
    if (item.is_text() && item.arg.index != 0) return unsupported("a string that depends on data");
  return answer(body(std::as_const(args[0].arg.text)));
}
std::string_view other(const Items& args, size_t at, std::string_view fallback = {}) {
  return is_text(args, at) ? std::string_view(args[at].arg.text) : fallback;
}
int64_t bound(const Items& args, size_t at, int64_t fallback, size_t size) {
  int64_t value = args.size() > at ? number(args[at]).value_or(fallback) : fallback;
  const auto length = static_cast<int64_t>(size);
  if (value < 0) value += length;
  return std::clamp<int64_t>(value, 0, length);
}
std::string_view window(const Items& args, std::string_view s, size_t first, int64_t& start) {
  start = bound(args, first, 0, s.size());
  const int64_t end = bound(args, first + 1, INT64_MAX, s.size());
  return end <= start ? std::string_view()
                      : s.substr(static_cast<size_t>(start), static_cast<size_t>(end - start));
}

using Letter = int (*)(int);
template <Letter Change>
Answer each_letter(Interpreter&, Items& args, NamedItems&) {
  return of_text(args, 1, [](std::string s) {
    for (char& c : s) c = static_cast<char>(Change(static_cast<unsigned char>(c)));
    return text(std::move(s));
  });
}
int swapped(int c) { return std::isupper(c) ? std::tolower(c) : std::toupper(c); }
template <Letter Test>
Answer all_letters(Interpreter&, Items& args, NamedItems&) {
  return of_text(args, 1, [](const std::string& s) {
    return Item(Arg(!s.empty() &&
                    std::all_of(s.begin(), s.end(), [](unsigned char c) { return Test(c) != 0; })));
  });
}
/// Of the letters that have a case; one at least.
template <Letter Wrong, Letter Right>
Answer cased(Interpreter&, Items& args, NamedItems&) {
  return of_text(args, 1, [](const std::string& s) {
    bool any = false;
    for (const unsigned char c : s) {
      if (Wrong(c) != 0) return Item(Arg(false));
      any = any || Right(c) != 0;
    }
    return Item(Arg(any));
  });
}
Answer capitalize(Interpreter&, Items& args, NamedItems&) {
  return of_text(args, 1, [](std::string s) {
    for (size_t i = 0; i < s.size(); ++i) {
      const auto c = static_cast<unsigned char>(s[i]);
      s[i] = static_cast<char>(i == 0 ? std::toupper(c) : std::tolower(c));
    }
    return text(std::move(s));
  });
}
Answer title(Interpreter&, Items& args, NamedItems&) {
  return of_text(args, 1, [](std::string s) {
    bool inside = false;
    for (char& letter : s) {
      const auto c = static_cast<unsigned char>(letter);
      letter = static_cast<char>(inside ? std::tolower(c) : std::toupper(c));
      inside = std::isalpha(c) != 0;
    }
    return text(std::move(s));
  });
}

Answer starts(Interpreter&, Items& args, NamedItems&) {
  return of_text(args, 2, [&](const std::string& s) {
    int64_t start = 0;
    return Item(Arg(window(args, s, 2, start).starts_with(other(args, 1))));
  });
}
Answer ends(Interpreter&, Items& args, NamedItems&) {
  return of_text(args, 2, [&](const std::string& s) {
    int64_t start = 0;
    return Item(Arg(window(args, s, 2, start).ends_with(other(args, 1))));
  });
}
template <bool Last>
Answer find(Interpreter&, Items& args, NamedItems&) {
  return of_text(args, 2, [&](const std::string& s) {
    int64_t start = 0;
    const std::string_view part = window(args, s, 2, start);
    const size_t at = Last ? part.rfind(other(args, 1)) : part.find(other(args, 1));
    return integer(at == std::string_view::npos ? at : at + static_cast<size_t>(start));
  });
}
Answer count(Interpreter&, Items& args, NamedItems&) {
  return of_text(args, 2, [&](const std::string& s) {
    int64_t start = 0;
    const std::string_view part = window(args, s, 2, start), what = other(args, 1);
    if (what.empty()) return integer(part.size() + 1);
    size_t found = 0;
    for (size_t at = part.find(what); at != part.npos; at = part.find(what, at + what.size()))
      ++found;
    return integer(found);
  });
}
Answer contains(Interpreter&, Items& args, NamedItems&) {
  return of_text(args, 2, [&](const std::string& s) {
    return Item(Arg(s.find(args[1].arg.text) != std::string::npos));
  });
}
Answer replace(Interpreter&, Items& args, NamedItems&) {
  if (!is_text(args, 2)) return not_mine();
  return of_text(args, 3, [&](std::string s) {
    const std::string_view from = other(args, 1), to = other(args, 2);
    int64_t left = args.size() > 3 ? number(args[3]).value_or(-1) : -1;
    if (from.empty()) return text(std::move(s));
    for (size_t at = s.find(from); at != s.npos && left != 0; --left) {
      s.replace(at, from.size(), to);
      at = s.find(from, at + to.size());
    }
    return text(std::move(s));
  });
}

bool is_space(char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; }
template <bool Left, bool Right>
Answer strip(Interpreter&, Items& args, NamedItems&) {
  return of_text(args, 1, [&](const std::string& s) {
    const std::string_view set = other(args, 1, " \n\t\f\v\r");
    size_t begin = 0, end = s.size();
    while (Left && begin < end && set.find(s[begin]) != set.npos) ++begin;
    while (Right && end > begin && set.find(s[end - 1]) != set.npos) --end;
    return text(s.substr(begin, end - begin));
  });
}
template <bool FromRight>
Answer split(Interpreter&, Items& args, NamedItems&) {
  if (is_text(args, 1) && args[1].arg.text.empty()) return unsupported("an empty separator");
  return of_text(args, 1, [&](const std::string& s) {
    int64_t left = args.size() > 2 ? number(args[2]).value_or(-1) : -1;
    Items parts;
    if (!is_text(args, 1)) {
      // At runs of blanks.
      for (size_t at = 0; at < s.size();) {
        while (at < s.size() && is_space(s[at])) ++at;
        size_t end = at;
        while (end < s.size() && !is_space(s[end])) ++end;
        if (end > at) parts.push_back(text(s.substr(at, end - at)));
        at = end;
      }
      return Item::list(std::move(parts));
    }
    const std::string_view separator = other(args, 1);
    std::string_view rest = s;
    for (;; --left) {
      const size_t at = FromRight ? rest.rfind(separator) : rest.find(separator);
      if (at == rest.npos || left == 0) break;
      if (FromRight) {
        parts.push_back(text(std::string(rest.substr(at + separator.size()))));
        rest = rest.substr(0, at);
      } else {
        parts.push_back(text(std::string(rest.substr(0, at))));
        rest.remove_prefix(at + separator.size());
      }
    }
    parts.push_back(text(std::string(rest)));
    if (FromRight) std::reverse(parts.begin(), parts.end());
    return Item::list(std::move(parts));
  });
}
Answer split_lines(Interpreter&, Items& args, NamedItems&) {
  return of_text(args, 1, [&](const std::string& s) {
    const bool keep = args.size() > 1 && number(args[1]).value_or(0) != 0;
    Items lines;
    for (size_t at = 0; at < s.size();) {
      const size_t end = std::min(s.find('\n', at), s.size());
      lines.push_back(text(s.substr(at, end - at + (keep && end < s.size() ? 1 : 0))));
      at = end + 1;
    }
    return Item::list(std::move(lines));
  });
}
template <bool Last>
Answer partition(Interpreter&, Items& args, NamedItems&) {
  return of_text(args, 2, [&](const std::string& s) {
    const std::string_view what = other(args, 1);
    const size_t at = Last ? s.rfind(what) : s.find(what);
    if (at == s.npos)
      return Last ? Item::tuple({text(""), text(""), text(s)})
                  : Item::tuple({text(s), text(""), text("")});
    return Item::tuple(
        {text(s.substr(0, at)), text(std::string(what)), text(s.substr(at + what.size()))});
  });
}
Answer join(Interpreter&, Items& args, NamedItems&) {
  if (!is_text(args) || args.size() != 2 || !args[1].is_sequence() || args[1].box->sequence)
    return not_mine();
  std::string out;
  bool known = args[0].arg.index == 0;
  for (size_t i = 0; i < args[1].box->items.size(); ++i) {
    if (i != 0) out += args[0].arg.text;
    known = show(args[1].box->items[i], out) && known;
  }
  return answer(marked(std::move(out), known));
}
enum class Side : uint8_t { kLeft, kRight, kBoth };
template <Side Where>
Answer justify(Interpreter&, Items& args, NamedItems&) {
  return of_text(args, 1, [&](const std::string& s) {
    const auto width = static_cast<size_t>(
        std::clamp<int64_t>(args.size() > 1 ? number(args[1]).value_or(0) : 0, 0, 1 << 16));
    const std::string_view fill = other(args, 2, " ");
    const char letter = fill.empty() ? ' ' : fill[0];
    if (width <= s.size()) return text(s);
    const size_t room = width - s.size();
    const size_t before = Where == Side::kLeft    ? 0
                          : Where == Side::kRight ? room
                                                  : room / 2 + (room & width & 1);
    return text(std::string(before, letter) + s + std::string(room - before, letter));
  });
}
Answer zero_fill(Interpreter&, Items& args, NamedItems&) {
  return of_text(args, 1, [&](std::string s) {
    const int64_t width =
        std::clamp<int64_t>(args.size() > 1 ? number(args[1]).value_or(0) : 0, 0, 1 << 16);
    const size_t sign = !s.empty() && (s[0] == '-' || s[0] == '+') ? 1 : 0;
    if (static_cast<size_t>(width) > s.size())
      s.insert(sign, static_cast<size_t>(width) - s.size(), '0');
    return text(std::move(s));
  });
}
Answer order(Interpreter&, Items& args, NamedItems&) {
  return of_text(args, 1, [&](const std::string& s) {
    return Item(Arg(s.empty() ? int64_t{0} : int64_t{static_cast<unsigned char>(s[0])}));
  });
}
Answer letter(Interpreter&, Items& args, NamedItems&) {
  if (args.size() != 1 || !number(args[0])) return not_mine();
  return answer(text(std::string(1, static_cast<char>(*number(args[0])))));
}
template <int Base>
Answer in_base(Interpreter&, Items& args, NamedItems&) {
  if (args.size() != 1 || !number(args[0])) return not_mine();
  const int64_t value = *number(args[0]);
  uint64_t rest =
      value < 0 ? uint64_t{0} - static_cast<uint64_t>(value) : static_cast<uint64_t>(value);
  std::string digits;
  do {
    digits += "0123456789abcdef"[rest % Base];
    rest /= Base;
  } while (rest != 0);
  digits += Base == 16 ? "x0" : Base == 8 ? "o0" : "b0";
  if (value < 0) digits += '-';
  std::reverse(digits.begin(), digits.end());
  return answer(text(std::move(digits)));
}

template <int Which>
Answer compare(Interpreter&, Items& args, NamedItems&) {
  return of_text(args, 2, [&](const std::string& s) {
    const int order = s.compare(args[1].arg.text);
    return Item(Arg(Which == 0   ? order < 0
                    : Which == 1 ? order <= 0
                    : Which == 2 ? order > 0
                                 : order >= 0));
  });
}
Answer concat(Interpreter&, Items& args, NamedItems&) {
  if (!is_text(args) || !is_text(args, 1)) return not_mine();
  return answer(marked(args[0].arg.text + args[1].arg.text,
                       args[0].arg.index == 0 && args[1].arg.index == 0));
}

constexpr BuiltinRow kTextRows[] = {
    {"format", format},
    {"percentFormat", percent_format},
    {"str", to_text},
    {"add", concat},
    {"lower", each_letter<std::tolower>},
    {"upper", each_letter<std::toupper>},
    {"swapcase", each_letter<swapped>},
    {"capitalize", capitalize},
    {"title", title},
    {"isdigit", all_letters<std::isdigit>},
    {"isdecimal", all_letters<std::isdigit>},
    {"isnumeric", all_letters<std::isdigit>},
    {"isalpha", all_letters<std::isalpha>},
    {"isalnum", all_letters<std::isalnum>},
    {"isspace", all_letters<std::isspace>},
    {"islower", cased<std::isupper, std::islower>},
    {"isupper", cased<std::islower, std::isupper>},
    {"startswith", starts},
    {"endswith", ends},
    {"find", find<false>},
    {"rfind", find<true>},
    {"index", find<false>},
    {"rindex", find<true>},
    {"count", count},
    {"__contains__", contains},
    {"replace", replace},
    {"strip", strip<true, true>},
    {"lstrip", strip<true, false>},
    {"rstrip", strip<false, true>},
    {"split", split<false>},
    {"rsplit", split<true>},
    {"splitlines", split_lines},
    {"partition", partition<false>},
    {"rpartition", partition<true>},
    {"join", join},
    {"ljust", justify<Side::kLeft>},
    {"rjust", justify<Side::kRight>},
    {"center", justify<Side::kBoth>},
    {"zfill", zero_fill},
    {"ord", order},
    {"chr", letter},
    {"hex", in_base<16>},
    {"oct", in_base<8>},
    {"bin", in_base<2>},
    {"lt", compare<0>},
    {"le", compare<1>},
    {"gt", compare<2>},
    {"ge", compare<3>},
};

}  // namespace

std::span<const BuiltinRow> text_builtins() { return kTextRows; }

}  // namespace tombolo::script
