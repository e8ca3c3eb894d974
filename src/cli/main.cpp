// The command line: builds the parser from the verb rows. The only file that includes CLI11.

#include <malloc.h>
#include <signal.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <new>
#include <utility>

#include "base/output_file.h"
#include "base/thread_pool.h"
#include "cli/command.h"

namespace tombolo::cli {

Result<int> run_version(Console& console);

std::span<const Option> common_options() {
  static const Option options[] = {
      {"json", "", "", "print one JSON document on standard output"},
      {"quiet", "q", "", "print errors only"},
      {"verbose", "v", "", "say more; twice for even more", "", true},
      {"threads", "", "N", "threads to use (default: the cores this process may use)"},
      {"color", "", "WHEN", "colour messages: auto, always or never", "auto", false,
       Completes::kNothing, "auto|always|never"},
      {"no-progress", "", "", "no progress line on the terminal"},
  };
  return options;
}

namespace {

std::string environment_name(std::string_view option) {
  std::string name = "TOMBOLO_";
  for (char c : option) name += c == '-' ? '_' : static_cast<char>(std::toupper(c));
  return name;
}

/// Everything CLI11 writes into, by option name.
struct Parsed {
  std::map<std::string, std::string> singles;  // positionals that do not repeat
  std::map<std::string, std::vector<std::string>> values;
};

/// How often a flag was given. Read from its results: releases of CLI11 differ in what a counter
/// that several subcommands share holds at the end.
int flag_count(const CLI::Option& flag) {
  int count = 0;
  for (const std::string& text :
       flag.results()) {  // "true", or what --flag=TEXT and the environment say
    if (text.empty() || text == "false" || text == "off" || text == "no" || text == "disable")
      continue;
    const bool number = text.find_first_not_of("0123456789") == std::string::npos;
    count += number ? std::atoi(text.substr(0, 3).c_str()) : 1;
  }
  return count;
}

void add_option(CLI::App& app, const Option& option, Parsed& parsed, bool common) {
  const std::string name(option.name);
  std::string spelling = "--" + name;
  if (!option.short_name.empty()) spelling = "-" + std::string(option.short_name) + "," + spelling;
  std::string help(option.help);
  if (!option.default_text.empty()) help += " (default: " + std::string(option.default_text) + ")";
  CLI::Option* added;
  if (option.value.empty()) {
    // Const: newer releases take a string that may be written to for the place of the result.
    added = app.add_flag(spelling, std::as_const(help));
  } else {
    added =
        app.add_option(spelling, parsed.values[name], help)->option_text(std::string(option.value));
    if (option.repeats)
      added->take_all()->allow_extra_args(false);
    else
      added->take_last()->expected(1);
    if (!option.choices.empty()) {
      std::vector<std::string> choices;
      std::string_view rest = option.choices;
      while (!rest.empty()) {
        const size_t bar = rest.find('|');
        choices.emplace_back(rest.substr(0, bar));
        rest = bar == std::string_view::npos ? "" : rest.substr(bar + 1);
      }
      added->check(CLI::IsMember(choices));
    }
  }
  if (common || !option.value.empty()) added->envname(environment_name(option.name));
  if (common) added->group("Everywhere");
}

/// The nearest known verb, for "did you mean".
std::string nearest_verb(std::string_view given) {
  std::string best;
  size_t best_distance = 3;
  for (const Verb& verb : verbs()) {
    const std::string_view name = verb.name;
    std::vector<size_t> row(name.size() + 1);
    for (size_t j = 0; j <= name.size(); ++j) row[j] = j;
    for (size_t i = 1; i <= given.size(); ++i) {
      size_t diagonal = row[0];
      row[0] = i;
      for (size_t j = 1; j <= name.size(); ++j) {
        const size_t replaced = diagonal + (given[i - 1] == name[j - 1] ? 0 : 1);
        diagonal = row[j];
        row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
      }
    }
    if (row.back() < best_distance) {
      best_distance = row.back();
      best = name;
    }
  }
  return best;
}

std::string footer_of(const Verb& verb) {
  std::string text;
  if (!verb.examples.empty()) {
    text = "Examples:\n";
    for (std::string_view example : verb.examples) text += "  " + std::string(example) + "\n";
  }
  return text +
         "Exit codes: 0 yes, 1 no, 2 usage, 3 cannot read, 4 unsupported, 5 failed while running, "
         "6 resources, 130 interrupted.";
}

int finish(Console& console, Result<int> result) {
  console.step_done();
  int code = kYes;
  if (result)
    code = *result;
  else {
    console.error(result.error());
    code = static_cast<int>(result.error().kind);
  }
  if (Status status = console.flush(); !status && code == kYes) {
    console.error(status.error());
    code = static_cast<int>(status.error().kind);
  }
  return code;
}

// Interrupted: nothing half-written stays beside the target; the signal then ends the process as
// usual.
void end_by_signal(int number) {
  remove_temporaries();
  signal(number, SIG_DFL);
  raise(number);
}

int fail(Console& console, Error error) { return finish(console, std::move(error)); }

}  // namespace

int main(int argc, char** argv) {
  signal(SIGPIPE, SIG_IGN);
  for (const int number : {SIGINT, SIGTERM, SIGHUP})
    if (signal(number, end_by_signal) == SIG_IGN) signal(number, SIG_IGN);  // as nohup set it
  // A fixed threshold: glibc would raise it to 32 MB, and the tables of large models would then
  // fragment the heap.
  mallopt(M_MMAP_THRESHOLD, 1 << 20);
  // Fixing one fixes the other, at 128 KiB: lists of strings that come and go with every run would
  // hand their pages back and fault them in again.
  mallopt(M_TRIM_THRESHOLD, 4 << 20);
  Console console;
  for (int i = 1; i < argc; ++i)
    if (std::string_view(argv[i]) == "--json") console.json = true;
  console.color = isatty(2) != 0 && std::getenv("NO_COLOR") == nullptr;

  CLI::App app("Tombolo: one native toolkit for neural-network models in the ONNX format",
               "tombolo");
  app.require_subcommand(0, 1);
  app.set_help_all_flag("--help-all", "help of every verb");
  app.footer(
      "`tombolo VERB --help` explains a verb. MODEL is a file or folder of any format that can be "
      "read.");
  bool show_version = false;
  app.add_flag("--version", show_version, "print version and build");
  Parsed parsed;
  for (const Verb& verb : verbs()) {
    CLI::App* sub = app.add_subcommand(std::string(verb.name), std::string(verb.summary));
    // The long text belongs to the verb's own help, not to the list of verbs.
    if (!verb.description.empty() && argc > 1 && verb.name == argv[1])
      sub->description(std::string(verb.summary) + "\n\n" + std::string(verb.description));
    for (const Positional& positional : verb.positionals) {
      const std::string name(positional.name), help(positional.help);
      CLI::Option* added = positional.repeats ? sub->add_option(name, parsed.values[name], help)
                                              : sub->add_option(name, parsed.singles[name], help);
      added->option_text(" ");
      if (positional.required) added->required();
    }
    for (const Option& option : verb.options) add_option(*sub, option, parsed, false);
    for (const Option& option : common_options()) add_option(*sub, option, parsed, true);
    sub->footer(footer_of(verb));
  }

  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp& help) {
    return app.exit(help) == 0 ? finish(console, kYes) : kYes;
  } catch (const CLI::CallForAllHelp& help) {
    return app.exit(help) == 0 ? finish(console, kYes) : kYes;
  } catch (const CLI::ParseError& error) {
    std::string help = "see tombolo --help";
    for (CLI::App* sub : app.get_subcommands()) help = "see tombolo " + sub->get_name() + " --help";
    if (app.get_subcommands().empty() && argc > 1)
      if (std::string near = nearest_verb(argv[1]); !near.empty())
        help = "did you mean `tombolo " + near + "`?";
    std::string message = error.what();
    while (!message.empty() && (message.back() == '\n' || message.back() == '.'))
      message.pop_back();
    return fail(console, usage_error(message).with_help(help));
  }
  if (show_version) return finish(console, run_version(console));
  const auto chosen = app.get_subcommands();
  if (chosen.empty()) {
    const std::string help = app.help();
    std::fwrite(help.data(), 1, help.size(), argc > 1 ? stderr : stdout);
    return argc > 1 ? static_cast<int>(ErrorKind::kUsage) : finish(console, kYes);
  }

  Args args;
  for (auto& [name, value] : parsed.singles)
    if (!value.empty()) args.add(name, std::move(value));
  for (auto& [name, values] : parsed.values)
    for (std::string& value : values) args.add(name, std::move(value));
  const auto add_flags = [&](std::span<const Option> options) {
    for (const Option& option : options) {
      if (!option.value.empty()) continue;
      const std::string name(option.name);
      const int count = flag_count(*chosen[0]->get_option("--" + name));
      for (int i = 0; i < count; ++i) args.add(name, "");
    }
  };
  add_flags(common_options());
  for (const Verb& verb : verbs())
    if (verb.name == chosen[0]->get_name()) add_flags(verb.options);
  console.json = args.flag("json");
  console.quiet = args.flag("quiet");
  console.verbosity = static_cast<int>(args.all("verbose").size());
  const std::string color = args.get("color").value_or("auto");
  if (color != "auto") console.color = color == "always";
  console.progress = isatty(2) != 0 && !args.flag("no-progress");
  auto threads = args.get_int("threads", 0);
  if (!threads) return fail(console, std::move(threads).error());
  set_thread_count(static_cast<int>(std::min<int64_t>(*threads, 1024)));

  for (const Verb& verb : verbs()) {
    if (verb.name != chosen[0]->get_name()) continue;
    // The library returns errors; only the allocator may throw through it.
    try {
      return finish(console, verb.run(args, console));
    } catch (const std::bad_alloc&) {
      return fail(console, resource_error("out of memory"));
    } catch (const std::length_error&) {
      return fail(console, resource_error("out of memory"));
    } catch (const std::exception& error) {
      return fail(console, {ErrorKind::kRuntime, std::string("internal error: ") + error.what(), "",
                            "this is a fault of tombolo: please report it with the file"});
    }
  }
  return static_cast<int>(ErrorKind::kUsage);
}

}  // namespace tombolo::cli

int main(int argc, char** argv) { return tombolo::cli::main(argc, argv); }
