#include "ops/text/letter_case.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <vector>

namespace tombolo::ops {

namespace {

/// Every `step`-th code from first to last moves by `distance`.
struct CaseRun {
  uint32_t first, last;
  uint8_t step;
  int32_t distance;
};
/// A code that becomes more than one.
struct LongCase {
  uint32_t code;
  const char* text;
};
struct CodeRange {
  uint32_t first, last;
};

#include "ops/text/case_tables.inc"

constexpr uint32_t kCapitalSigma = 0x3A3;

/// A code point, or a byte that belongs to none.
struct Unit {
  uint32_t code;
  size_t begin, length;
  bool valid;
};

Unit decode(std::string_view text, size_t at) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t lead = byte(at);
  const size_t length = lead < 0x80 ? 1 : lead < 0xC2 ? 0 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  if (length == 1) return {lead, at, 1, true};
  if (length == 0 || lead > 0xF4 || at + length > text.size()) return {lead, at, 1, false};
  uint32_t code = lead & (0x7Fu >> length);
  for (size_t i = 1; i < length; ++i) {
    if ((byte(at + i) & 0xC0) != 0x80) return {lead, at, 1, false};
    code = code << 6 | (byte(at + i) & 0x3Fu);
  }
  constexpr uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  if (code < kLeast[length] || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000))
    return {lead, at, 1, false};
  return {code, at, length, true};
}

void append(std::string& text, uint32_t code) {
  if (code < 0x80) {
    text += static_cast<char>(code);
    return;
  }
  const int tail = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
  constexpr uint32_t kLead[] = {0, 0xC0, 0xE0, 0xF0};
  text += static_cast<char>(kLead[tail] | code >> (6 * tail));
  for (int i = tail - 1; i >= 0; --i) text += static_cast<char>(0x80 | (code >> (6 * i) & 0x3F));
}

template <size_t N>
bool holds(const CodeRange (&ranges)[N], uint32_t code) {
  const auto* range =
      std::upper_bound(std::begin(ranges), std::end(ranges), code,
                       [](uint32_t wanted, const CodeRange& row) { return wanted < row.first; });
  return range != std::begin(ranges) && code <= std::prev(range)->last;
}

/// Whether a cased letter follows `at` in this direction, characters between words aside.
bool cased_letter_beside(const std::vector<Unit>& units, size_t at, int direction) {
  for (size_t i = at + static_cast<size_t>(direction); i < units.size();
       i += static_cast<size_t>(direction)) {
    if (units[i].valid && holds(kCaseIgnorable, units[i].code)) continue;
    return units[i].valid && holds(kCased, units[i].code);
  }
  return false;  // also before the first: the index wraps around beyond the last
}

template <size_t N, size_t M>
void append_changed(std::string& result, uint32_t code, const CaseRun (&runs)[N],
                    const LongCase (&longs)[M]) {
  const auto* several =
      std::lower_bound(std::begin(longs), std::end(longs), code,
                       [](const LongCase& row, uint32_t wanted) { return row.code < wanted; });
  if (several != std::end(longs) && several->code == code) {
    result += several->text;
    return;
  }
  const auto* run =
      std::upper_bound(std::begin(runs), std::end(runs), code,
                       [](uint32_t wanted, const CaseRun& row) { return wanted < row.first; });
  if (run != std::begin(runs)) {
    --run;
    if (code <= run->last && (code - run->first) % run->step == 0)
      code = static_cast<uint32_t>(static_cast<int32_t>(code) + run->distance);
  }
  append(result, code);
}

}  // namespace

std::string change_case(std::string_view text, bool upper) {
  if (std::all_of(text.begin(), text.end(),
                  [](char c) { return static_cast<uint8_t>(c) < 0x80; })) {
    std::string result(text);
    const char first = upper ? 'a' : 'A';
    for (char& c : result)
      if (static_cast<uint8_t>(c - first) < 26) c = static_cast<char>(c ^ 0x20);
    return result;
  }
  std::vector<Unit> units;
  for (size_t at = 0; at < text.size(); at += units.back().length)
    units.push_back(decode(text, at));
  std::string result;
  result.reserve(text.size());
  for (size_t i = 0; i < units.size(); ++i) {
    const Unit& unit = units[i];
    if (!unit.valid)
      result += text[unit.begin];
    else if (upper)
      append_changed(result, unit.code, kUpperRuns, kUpperLong);
    else if (unit.code == kCapitalSigma && cased_letter_beside(units, i, -1) &&
             !cased_letter_beside(units, i, 1))
      append(result, 0x3C2);
    else
      append_changed(result, unit.code, kLowerRuns, kLowerLong);
  }
  return result;
}

}  // namespace tombolo::ops
