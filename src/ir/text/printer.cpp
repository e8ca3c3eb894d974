// Characters of the printer, and the entry points of printer.h.

#include <algorithm>

#include "ir/text/printer_impl.h"

namespace tombolo::text {

bool is_word(Text text) {
  auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  if (text.empty() || !letter(text[0])) return false;
  for (char c : text)
    if (!letter(c) && !(c >= '0' && c <= '9')) return false;
  return true;
}

bool is_reserved(Text word) {
  for (std::string_view keyword :
       {"seq", "map", "optional", "sparse_tensor", "opaque", "undefined"})
    if (word == keyword) return true;
  if (const auto dtype = dtype_from_name(word)) return *dtype != DType::kUndefined;
  if (word.size() > 8) return false;
  std::string lower(word);
  for (char& c : lower)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return lower == "inf" || lower == "nan" || lower == "infinity";
}

void Printer::flush() {
  if (sink_ != nullptr && status_.ok()) status_ = sink_->write(buffer_);
  buffer_.clear();
}

Status Printer::finish() {
  if (!buffer_.empty()) flush();
  return std::move(status_);
}

void Printer::line(int indent) {
  put('\n');
  buffer_.append(static_cast<size_t>(2 * indent), ' ');
}

void Printer::quoted(Text text) {
  put('"');
  size_t begin = 0;
  for (size_t i = 0; i < text.size(); ++i)
    if (text[i] == '"' || text[i] == '\\') {
      put(text.substr(begin, i - begin));
      put('\\');
      begin = i;
    }
  put(text.substr(begin));
  put('"');
}

void Printer::name(Text text) {
  if (is_word(text))
    put(text);
  else
    quoted(text);
}

void Printer::qualified(Text text) {
  bool plain = true;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find('.', begin), text.size());
    plain = plain && is_word(text.substr(begin, end - begin));
    begin = end + 1;
  }
  if (plain)
    put(text);
  else
    quoted(text);
}

void Printer::hex(std::string_view bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  constexpr size_t kBlock = size_t{16} << 20;  // what is printed of a large field is let go
  put('"');
  char pair[2];
  while (!bytes.empty()) {
    const std::string_view block = bytes.substr(0, kBlock);
    for (char c : block) {
      pair[0] = kDigits[static_cast<uint8_t>(c) >> 4];
      pair[1] = kDigits[static_cast<uint8_t>(c) & 15];
      put(std::string_view(pair, 2));
    }
    if (block.size() == kBlock && storage_ != nullptr) storage_->release(block);
    bytes.remove_prefix(block.size());
  }
  put('"');
}

void Printer::entries(const std::vector<StringEntry>& entries) {
  put('[');
  list(entries, ", ", [&](const StringEntry& entry) {
    quoted(entry.key);
    put(": ");
    quoted(entry.value);
    Annotation(*this).hex("unknown", entry.unknown);
  });
  put(']');
}

void Printer::integers(std::span<const int64_t> values) {
  put('[');
  list(values, ", ", [&](int64_t value) { number(value); });
  put(']');
}

}  // namespace tombolo::text

namespace tombolo {

Status print_text(const Model& model, TextSink& sink, const PrintOptions& options) {
  text::Printer printer(&sink, options);
  printer.model(model);
  return printer.finish();
}

std::string print_text(const Model& model, const PrintOptions& options) {
  text::Printer printer(nullptr, options);
  printer.model(model);
  return printer.take();
}

std::string print_graph(const Graph& graph, const PrintOptions& options) {
  text::Printer printer(nullptr, options);
  printer.graph(graph);
  return printer.take();
}

std::string print_function(const Function& function, const PrintOptions& options) {
  text::Printer printer(nullptr, options);
  printer.function(function);
  return printer.take();
}

std::string print_node(const Node& node, const PrintOptions& options) {
  text::Printer printer(nullptr, options);
  printer.node(node);
  return printer.take();
}

}  // namespace tombolo
