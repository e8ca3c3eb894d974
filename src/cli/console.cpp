#include <unistd.h>

#include <charconv>
#include <chrono>
#include <cstdio>

#include "cli/command.h"

namespace tombolo::cli {

std::string_view kind_name(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kUsage:
      return "usage";
    case ErrorKind::kParse:
      return "parse";
    case ErrorKind::kUnsupported:
      return "unsupported";
    case ErrorKind::kRuntime:
      return "runtime";
    case ErrorKind::kResource:
      return "resource";
  }
  return "error";
}

std::optional<std::string> Args::get(std::string_view option) const {
  auto found = all_.find(std::string(option));
  if (found == all_.end()) return std::nullopt;
  return found->second.back();
}

std::vector<std::string> Args::all(std::string_view option) const {
  auto found = all_.find(std::string(option));
  return found == all_.end() ? std::vector<std::string>() : found->second;
}

std::string Args::positional(std::string_view name) const { return get(name).value_or(""); }
std::vector<std::string> Args::positionals(std::string_view name) const { return all(name); }

std::optional<int64_t> read_whole(std::string_view text) {
  int64_t value = 0;
  const char* const last = text.data() + text.size();
  const auto [end, code] = std::from_chars(text.data(), last, value);
  if (code != std::errc() || end != last || value < 0) return std::nullopt;
  return value;
}

Result<int64_t> Args::get_int(std::string_view option, int64_t fallback) const {
  auto text = get(option);
  if (!text) return fallback;
  if (const std::optional<int64_t> value = read_whole(*text)) return *value;
  return usage_error("--" + std::string(option) + " takes a number, not \"" + *text + "\"");
}

namespace {
/// Text that comes from a model may hold terminal escapes: control characters are shown, not sent.
std::string printable(std::string_view text) {
  std::string out;
  for (char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte < 0x20 && c != '\n' && c != '\t') || byte == 0x7F) {
      char code[8];
      std::snprintf(code, sizeof code, "\\x%02x", byte);
      out += code;
    } else {
      out += c;
    }
  }
  return out;
}

std::string report(std::string_view severity, std::string_view paint, std::string_view code,
                   std::string_view message, std::string_view where, std::string_view help,
                   bool color) {
  std::string out;
  if (color) out += paint;
  out += severity;
  if (!code.empty()) out += "[" + std::string(code) + "]";
  if (color) out += "\x1b[0m";
  out += ": " + printable(message) + "\n";
  if (!where.empty()) out += "  --> " + printable(where) + "\n";
  if (!help.empty()) out += "  = help: " + printable(help) + "\n";
  return out;
}
}  // namespace

void Console::print(std::string_view text) { std::fwrite(text.data(), 1, text.size(), stdout); }

void Console::message(std::string_view text) {
  if (quiet) return;
  step_done();
  std::fwrite(text.data(), 1, text.size(), stderr);
}

void Console::error(const Error& error) {
  step_done();
  const std::string text =
      report("error", "\x1b[1;31m", "", error.message, error.where, error.help, color);
  std::fwrite(text.data(), 1, text.size(), stderr);
  if (json)
    print("{\"error\":{\"code\":" + json_quote(kind_name(error.kind)) +
          ",\"message\":" + json_quote(error.message) + ",\"where\":" + json_quote(error.where) +
          ",\"help\":" + json_quote(error.help) + "}}\n");
}

void Console::diagnostic(const Diagnostic& diagnostic) {
  step_done();
  const bool fatal = diagnostic.severity == Severity::kError;
  if (quiet && !fatal) return;
  const std::string_view severity = fatal                                       ? "error"
                                    : diagnostic.severity == Severity::kWarning ? "warning"
                                                                                : "note";
  const std::string text = report(severity, fatal ? "\x1b[1;31m" : "\x1b[1;33m", diagnostic.code,
                                  diagnostic.message, diagnostic.where, diagnostic.help, color);
  std::fwrite(text.data(), 1, text.size(), stderr);
}

void Console::step(std::string_view task, size_t done, size_t total) {
  if (!progress || quiet) return;
  const int64_t now = std::chrono::duration_cast<std::chrono::milliseconds>(
                          std::chrono::steady_clock::now().time_since_epoch())
                          .count();
  if (now - last_step_ms_ < 100 && done != total) return;
  last_step_ms_ = now;
  step_shown_ = true;
  std::fprintf(stderr, "\r\x1b[K%.*s %zu/%zu", static_cast<int>(task.size()), task.data(), done,
               total);
  std::fflush(stderr);
}

void Console::step_done() {
  if (!step_shown_) return;
  std::fputs("\r\x1b[K", stderr);
  step_shown_ = false;
}

Status Console::flush() {
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0)
    return resource_error("could not write to standard output");
  return ok();
}

}  // namespace tombolo::cli
