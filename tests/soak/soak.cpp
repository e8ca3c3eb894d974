// Random models, shapes, threads and cancellations for a while; then the memory must be what it
// was.
//   tombolo_soak SECONDS [SEED]
// Every model runs with the fast kernels along plans and, for a part of the runs, with the
// reference kernels node by node; both must agree. Prints one line every ten seconds.

#include <malloc.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "base/block_cache.h"
#include "base/sanitizer.h"
#include "ir/text/parser.h"
#include "runtime/session.h"

namespace tombolo {
namespace {

struct Random {
  uint64_t state;
  uint64_t next() {
    state += 0x9E3779B97F4A7C15u;
    uint64_t mixed = (state ^ (state >> 30)) * 0xBF58476D1CE4E5B9u;
    mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EBu;
    return mixed ^ (mixed >> 31);
  }
  int below(int limit) { return static_cast<int>(next() % static_cast<uint64_t>(limit)); }
};

/// A model over values of shape [N, M]: every operator takes and gives such.
std::string random_model(Random& random) {
  std::string body;
  int values = 1;
  const auto pick = [&] { return "v" + std::to_string(random.below(values)); };
  const int nodes = 3 + random.below(25);
  for (int i = 0; i < nodes; ++i) {
    const std::string y = "v" + std::to_string(values), t = "t" + std::to_string(i);
    const std::string a = pick(), b = pick();
    switch (random.below(15)) {
      case 0:
        body += y + " = Relu (" + a + ")\n";
        break;
      case 1:
        body += y + " = Neg (" + a + ")\n";
        break;
      case 2:
        body += y + " = Add (" + a + ", " + b + ")\n";
        break;
      case 3:
        body += y + " = Mul (" + a + ", half)\n";
        break;
      case 4:
        body += y + " = Tanh (" + a + ")\n";
        break;
      case 5:
        body += y + " = Softmax <axis = -1> (" + a + ")\n";
        break;
      case 6:
        body += t + " = Reshape (" + a + ", flat)\n" + t + "s = Shape (" + a + ")\n" + y +
                " = Reshape (" + t + ", " + t + "s)\n";
        break;
      case 7:
        body += t + " = Transpose <perm = [1, 0]> (" + a + ")\n" + y +
                " = Transpose <perm = [1, 0]> (" + t + ")\n";
        break;
      case 8:  // joined and split again, along either axis
        body += t + " = Concat <axis = " + std::to_string(random.below(2)) + "> (" + a + ", " + b +
                ")\n" + t + "s = Shape (" + a + ")\n" + y + " = Slice (" + t + ", zeros, " + t +
                "s)\n";
        break;
      case 9:
        body += t + "p, " + t + "q = Split <axis = 0, num_outputs = 2> (" + a + ")\n" + y +
                " = Concat <axis = 0> (" + t + "p, " + t + "q)\n";
        break;
      case 10:
        body += t + " = ReduceMean <keepdims = 1> (" + a + ", one)\n" + y + " = Sub (" + a + ", " +
                t + ")\n";
        break;
      case 11:
        body += y + " = Max (" + a + ", " + b + ")\n";
        break;
      case 12:
        body += y + " = Loop (three, yes, " + a + ") <body = g" + t + " (int64 i" + t + ", bool c" +
                t + ", float[P,Q] s" + t + ") => (bool d" + t + ", float[P,Q] u" + t + ") { d" + t +
                " = Identity (c" + t + ") u" + t + " = Mul (s" + t + ", half) }>\n";
        break;
      case 13:  // by size: a sum near zero would have the sign of its rounding
        body += t + " = Size (" + a + ")\n" + t + "c = Greater (" + t + ", many)\n" + y +
                " = If (" + t + "c) <then_branch = a" + t + " () => (float[P,Q] w" + t + ") { w" +
                t + " = Neg (" + a + ") }, else_branch = b" + t + " () => (float[P,Q] x" + t +
                ") { x" + t + " = Identity (" + a + ") }>\n";
        break;
      default:
        body += y + " = Identity (" + a + ")\n";
        break;
    }
    ++values;
  }
  return "<ir_version: 10, opset_import: [\"\" : 21]>\nmain (float[N,M] v0) => (float[N,M] v" +
         std::to_string(values - 1) + ", float[N,M] v" +
         std::to_string(1 + random.below(values - 1)) +
         ")\n<int64[1] flat = {-1}, float half = {0.5}, int64[2] zeros = {0, 0}, int64[1] one = "
         "{1}, int64 three = {3}, bool yes = {1}, int64 many = {500}> {\n" +
         body + "}\n";
}

RunValue random_input(Random& random) {
  const int64_t dims[] = {2 + random.below(40), 1 + random.below(60)};
  std::vector<float> values(static_cast<size_t>(dims[0] * dims[1]));
  for (float& value : values) value = static_cast<float>(random.below(2000)) / 500 - 2;
  return Tensor::of<float>(DType::kFloat32, dims, values);
}

bool close(const RunValue& a, const RunValue& b) {
  if (!a.is_tensor() || !b.is_tensor() || !(a.tensor().dims() == b.tensor().dims())) return false;
  for (int64_t i = 0; i < a.tensor().size(); ++i) {
    const double x = a.tensor().get_double(i), y = b.tensor().get_double(i);
    if (!(std::fabs(x - y) <= 1e-4 + 1e-4 * std::fabs(y)) && !(std::isnan(x) && std::isnan(y)))
      return false;
  }
  return true;
}

struct Counts {
  std::atomic<uint64_t> models{0}, runs{0}, cancelled{0}, wrong{0};
};

void one_model(Random& random, Counts& counts) {
  const std::string text = random_model(random);
  auto make = [&](bool reference) -> std::unique_ptr<Session> {
    auto model = parse_text(text);
    if (!model) return nullptr;
    SessionOptions options;
    options.reference = reference;
    options.specialise = !reference;
    auto session = Session::create(*std::move(model), options);
    return session ? *std::move(session) : nullptr;
  };
  auto fast = make(false), reference = make(true);
  ++counts.models;
  if (!fast || !reference) {
    ++counts.wrong;
    std::fprintf(stderr, "refused:\n%s", text.c_str());
    return;
  }
  std::vector<std::thread> threads;
  const int thread_count = 1 + random.below(4);
  for (int t = 0; t < thread_count; ++t)
    threads.emplace_back([&, seed = random.next()] {
      Random own{seed};
      std::vector<RunValue> inputs;
      for (int i = 0; i < 4; ++i) inputs.push_back(random_input(own));
      for (int i = 0; i < 30; ++i) {
        const RunValue& input = inputs[static_cast<size_t>(own.below(4))];
        std::atomic<bool> stop{false};
        std::thread stopper;
        RunOptions options;
        const bool cancel = own.below(20) == 0;
        if (cancel) {
          options.cancelled = &stop;
          stopper = std::thread([&] {
            std::this_thread::sleep_for(std::chrono::microseconds(own.below(200)));
            stop = true;
          });
        }
        auto outputs = fast->run({{"v0", input}}, options);
        if (cancel) stopper.join();
        ++counts.runs;
        if (!outputs) {
          if (cancel && outputs.error().kind == ErrorKind::kResource) {
            ++counts.cancelled;
          } else {
            ++counts.wrong;
            std::fprintf(stderr, "failed: %s: %s\n%s", outputs.error().where.c_str(),
                         outputs.error().message.c_str(), text.c_str());
            return;
          }
          continue;
        }
        if (own.below(5) != 0) continue;
        auto expected = reference->run({{"v0", input}});
        for (size_t k = 0; k < outputs->size(); ++k)
          if (!expected || !close((*outputs)[k], (*expected)[k])) {
            ++counts.wrong;
            std::fprintf(stderr, "output %zu differs:\n%s", k, text.c_str());
            return;
          }
      }
    });
  for (std::thread& thread : threads) thread.join();
}

uint64_t resident() {
  unsigned long long total = 0, pages = 0;
  if (std::FILE* file = std::fopen("/proc/self/statm", "re")) {
    if (std::fscanf(file, "%llu %llu", &total, &pages) != 2) pages = 0;
    std::fclose(file);
  }
  return pages * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

int soak(double seconds, uint64_t seed) {
  using Clock = std::chrono::steady_clock;
  Counts counts;
  Random random{seed};
  auto settle = [] {
    drop_kept_blocks();
    malloc_trim(0);
    return resident();
  };
  // A warm-up first: tables, threads and the allocator's own.
  for (int i = 0; i < 30; ++i) one_model(random, counts);
  const uint64_t before = settle();
  const auto start = Clock::now();
  auto told = start;
  while (std::chrono::duration<double>(Clock::now() - start).count() < seconds) {
    one_model(random, counts);
    if (Clock::now() - told < std::chrono::seconds(10)) continue;
    told = Clock::now();
    std::printf("%llu models, %llu runs, %llu cancelled, %llu wrong, %.1f MB resident\n",
                static_cast<unsigned long long>(counts.models),
                static_cast<unsigned long long>(counts.runs),
                static_cast<unsigned long long>(counts.cancelled),
                static_cast<unsigned long long>(counts.wrong),
                static_cast<double>(resident()) * 1e-6);
    std::fflush(stdout);
  }
  const uint64_t after = settle();
  std::printf(
      "%llu models, %llu runs, %llu cancelled, %llu wrong; resident %.1f MB, at the start %.1f MB; "
      "%llu bytes of tensors left\n",
      static_cast<unsigned long long>(counts.models), static_cast<unsigned long long>(counts.runs),
      static_cast<unsigned long long>(counts.cancelled),
      static_cast<unsigned long long>(counts.wrong), static_cast<double>(after) * 1e-6,
      static_cast<double>(before) * 1e-6, static_cast<unsigned long long>(live_tensor_bytes()));
  // Sanitizers keep books of what was freed.
  const bool flat = kAddressSanitizer || kThreadSanitizer || after < before + (uint64_t{8} << 20);
  return counts.wrong == 0 && flat && live_tensor_bytes() == 0 ? 0 : 1;
}

}  // namespace
}  // namespace tombolo

int main(int argc, char** argv) {
  return tombolo::soak(argc > 1 ? std::atof(argv[1]) : 600,
                       argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1);
}
