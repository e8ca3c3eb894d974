#pragma once

// What a model holds that cannot be converted: gathered while importing, reported all at once.

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace tombolo {

class Refusals {
 public:
  /// `kind` is what the source calls it ("layer Lambda"), `name` where it stands, `reason` why.
  void add(std::string_view kind, std::string_view name, std::string_view reason,
           std::string_view help = {}) {
    Entry& entry = entries_[{std::string(kind), std::string(reason)}];
    if (entry.names.size() < 5) entry.names.emplace_back(name);
    ++entry.count;
    if (help_.empty()) help_ = help;
  }
  bool empty() const { return entries_.empty(); }

  /// One unsupported error that lists everything, with counts and the first names.
  Error error() const {
    std::string text = "cannot convert ";
    bool first = true;
    for (const auto& [key, entry] : entries_) {
      if (!first) text += "; ";
      first = false;
      text += key.first + " (" + std::to_string(entry.count) + "): ";
      for (size_t i = 0; i < entry.names.size(); ++i) {
        text += std::string(i == 0 ? "" : ", ") + "\"" + entry.names[i] + "\"";
      }
      if (entry.count > entry.names.size()) text += ", ...";
      if (!key.second.empty()) text += ": " + key.second;
    }
    return unsupported(std::move(text)).with_help(help_);
  }

 private:
  struct Entry {
    size_t count = 0;
    std::vector<std::string> names;
  };
  std::map<std::pair<std::string, std::string>, Entry> entries_;  // by kind and reason
  std::string help_;
};

}  // namespace tombolo
