// tombolo_mutate: damages files in memory and does to each what the command line would do:
// recognise, read, check, infer, write in every form, run. Thousands of cases a second, so that
// every truncation and a thousand bit flips of a file take seconds.
//
//   tombolo_mutate [--truncations N] [--flips N] FILE...    0: every length, no flips
//   tombolo_mutate --length N FILE > mutant                 what a report names, to repeat it
//   tombolo_mutate --bit N FILE > mutant
//
// Passes when each case ends within ten seconds and half a gigabyte, in a model or in an error with
// a message. Files that are no models (.npz, .npy, .png, .jpg) are read as inputs.

#include <signal.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <new>
#include <sstream>
#include <stdexcept>
#include <string>

#include "analysis/checker.h"
#include "analysis/infer.h"
#include "base/image.h"
#include "formats/common/npy.h"
#include "formats/load.h"
#include "ir/text/printer.h"
#include "onnx/json.h"
#include "runtime/session.h"

namespace tombolo {
namespace {

constexpr int kSeconds = 10;
constexpr uint64_t kRunLimit = uint64_t{128} << 20;

/// What is being tried, for the signal handlers: they may only write().
char g_case[600];

void on_signal(int signal) {
  const char* what = signal == SIGALRM ? "took longer than ten seconds" : "crashed";
  (void)!write(2, g_case, std::strlen(g_case));
  (void)!write(2, what, std::strlen(what));
  (void)!write(2, "\n", 1);
  _exit(1);
}

[[noreturn]] void fail(const std::string& what) {
  std::fprintf(stderr, "%s%s\n", g_case, what.c_str());
  std::exit(1);
}

long peak_mib() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss / 1024;
}

/// How cases ended.
struct Tally {
  size_t cases = 0, refused = 0, read = 0, valid = 0, ran = 0;
};

void expect_message(const Error& error) {
  if (error.message.empty()) fail("an error without a message");
}

/// Zeros for every input, of its declared shape; false when it has none or a large one.
bool make_inputs(const Session& session, std::vector<NamedValue>& inputs) {
  for (const SessionPort& port : session.inputs()) {
    if (port.has_default) continue;
    if (port.type == nullptr || !port.type->is_tensor() || !port.type->has_shape) return false;
    std::vector<int64_t> dims;
    for (const Dim& dim : port.type->dims)
      dims.push_back(dim.kind == Dim::Kind::kValue ? dim.value : 2);
    const int64_t count = element_count(dims);
    if (count < 0 || count > (1 << 16)) return false;
    auto tensor = Tensor::allocate(port.type->dtype(), dims);
    if (!tensor) return false;
    std::ranges::fill(tensor->mutable_bytes(), std::byte{0});
    inputs.push_back({port.name, RunValue(*std::move(tensor))});
  }
  return true;
}

void exercise_model(const std::string& path, std::string bytes, Tally& tally) {
  auto loaded = load_source({path, false, MappedFile::from_memory(std::move(bytes), path)}, {});
  if (!loaded) {
    expect_message(loaded.error());
    ++tally.refused;
    return;
  }
  ++tally.read;
  Model& model = **loaded;
  Diagnostics diagnostics;
  check(model, {}, diagnostics);
  if (diagnostics.errors() == 0) ++tally.valid;
  if (auto written = write_onnx(model); !written) expect_message(written.error());
  if (auto json = write_json(model); !json) expect_message(json.error());
  (void)print_text(model);
  Diagnostics inferred;
  infer_types(model, inferred);
  if (auto written = write_onnx(model); !written) expect_message(written.error());

  SessionOptions options;
  options.memory_limit = kRunLimit;
  options.time_limit_ms = 2000;
  auto session = Session::create(std::move(*loaded), options);
  if (!session) return expect_message(session.error());
  std::vector<NamedValue> inputs;
  if (!make_inputs(**session, inputs)) return;
  auto outputs = (*session)->run(inputs);
  if (!outputs) return expect_message(outputs.error());
  ++tally.ran;
}

void exercise(const std::string& path, std::string bytes, Tally& tally) {
  ++tally.cases;
  auto settle = [&](const auto& result) {
    if (!result) expect_message(result.error());
    ++(result ? tally.read : tally.refused);
  };
  // The library returns errors; only the allocator may throw through it (as in cli/main.cpp).
  try {
    if (path.ends_with(".npz"))
      settle(read_npz(MappedFile::from_memory(std::move(bytes), path)));
    else if (path.ends_with(".npy")) {
      auto owner = std::make_shared<std::string>(std::move(bytes));
      settle(read_npy(*owner, owner));
    } else if (path.ends_with(".png") || path.ends_with(".jpg"))
      settle(decode_image(bytes));
    else
      exercise_model(path, std::move(bytes), tally);
  } catch (const std::bad_alloc&) {
    ++tally.refused;
  } catch (const std::length_error&) {
    ++tally.refused;
  } catch (const std::exception& error) {
    fail(std::string("threw ") + error.what());
  }
}

void begin(const std::string& path, const char* what, size_t at) {
  std::snprintf(g_case, sizeof g_case, "%s, %s %zu: ", path.c_str(), what, at);
  alarm(kSeconds);
}

std::string with_bit(std::string bytes, size_t bit) {
  bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << (bit % 8)));
  return bytes;
}

void mutate(const std::string& path, const std::string& bytes, size_t truncations, size_t flips) {
  const auto start = std::chrono::steady_clock::now();
  Tally tally;
  begin(path, "whole, length", bytes.size());
  exercise(path, bytes, tally);
  if (tally.read == 0) fail("the undamaged file cannot be read");
  const size_t count =
      truncations == 0 ? bytes.size() : std::min<size_t>(truncations, bytes.size());
  for (size_t i = 0; i < count; ++i) {
    const size_t length = bytes.size() * i / count;
    begin(path, "cut to --length", length);
    exercise(path, bytes.substr(0, length), tally);
  }
  uint64_t state = 0x9E3779B97F4A7C15;
  for (size_t i = 0; i < flips && !bytes.empty(); ++i) {
    state = state * 6364136223846793005 + 1442695040888963407;
    const size_t bit = (state >> 16) % (bytes.size() * 8);
    begin(path, "flipped --bit", bit);
    exercise(path, with_bit(bytes, bit), tally);
  }
  alarm(0);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  const size_t slash = path.rfind('/');
  const size_t folder = slash == path.npos || slash == 0 ? path.npos : path.rfind('/', slash - 1);
  std::printf("%-34s %7zu cases: %7zu refused, %6zu read, %6zu valid, %6zu ran; %.1f s, %ld MiB\n",
              path.substr(folder == path.npos ? 0 : folder + 1).c_str(), tally.cases, tally.refused,
              tally.read, tally.valid, tally.ran, seconds.count(), peak_mib());
  std::fflush(stdout);
  if (peak_mib() > 512) fail("the process took more than 512 MiB");
}

int run(int argc, char** argv) {
  size_t truncations = 0, flips = 0;
  long length = -1, bit = -1;
  std::vector<std::string> files;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    const char* value = i + 1 < argc ? argv[i + 1] : "0";
    if (argument == "--truncations")
      truncations = std::strtoul(value, nullptr, 10), ++i;
    else if (argument == "--flips")
      flips = std::strtoul(value, nullptr, 10), ++i;
    else if (argument == "--length")
      length = std::strtol(value, nullptr, 10), ++i;
    else if (argument == "--bit")
      bit = std::strtol(value, nullptr, 10), ++i;
    else
      files.push_back(argument);
  }
  if (files.empty()) {
    std::fputs("usage: tombolo_mutate [--truncations N] [--flips N] FILE...\n", stderr);
    return 2;
  }
  for (const std::string& path : files) {
    std::ifstream in(path, std::ios::binary);
    std::ostringstream text;
    text << in.rdbuf();
    std::string bytes = text.str();
    if (!in || bytes.empty()) {
      std::fprintf(stderr, "%s: cannot be read\n", path.c_str());
      return 2;
    }
    if (length >= 0 || bit >= 0) {
      if (length >= 0) bytes.resize(std::min(bytes.size(), static_cast<size_t>(length)));
      if (bit >= 0 && static_cast<size_t>(bit) < bytes.size() * 8)
        bytes = with_bit(bytes, static_cast<size_t>(bit));
      std::fwrite(bytes.data(), 1, bytes.size(), stdout);
      continue;
    }
    mutate(path, bytes, truncations, flips);
  }
  return 0;
}

}  // namespace
}  // namespace tombolo

int main(int argc, char** argv) {
  for (int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGALRM})
    ::signal(signal, tombolo::on_signal);
  return tombolo::run(argc, argv);
}
