// tombolo doctor, tombolo --version: the build and the machine it runs on.

#include <sys/utsname.h>
#include <unistd.h>

#include "base/cpu.h"
#include "base/sanitizer.h"
#include "base/thread_pool.h"
#include "cli/open.h"
#include "cli/verbs.h"
#include "ops/registry.h"
#include "runtime/kernels/isa.h"
#include "runtime/kernels/matmul/nbits.h"
#include "runtime/session.h"
#include "tombolo/version.h"

namespace tombolo::cli {

namespace {

std::string build_text() {
  std::string text = TOMBOLO_BUILD_TYPE;
#if defined(__clang__)
  text += ", clang " __clang_version__;
#else
  text += ", g++ " __VERSION__;
#endif
  if (kAddressSanitizer) text += ", AddressSanitizer";
  return text;
}

std::string features_text() {
  std::string text;
  for (std::string_view name : cpu_features().names())
    text += (text.empty() ? "" : " ") + std::string(name);
  return text.empty() ? "none" : text;
}

/// What --fast-math does here.
std::string_view fast_math_text() {
  if (has_amx_bf16()) return "bf16 by tiles and dot products";
  if (has_f16_products()) return "float16, scaled";
  if (has_bf16_dot()) return "bf16 by dot products";
  return nbits_has_bytes() ? "no bf16 here: only what meets weights of few bits is rounded"
                           : "no bf16 here: --fast-math changes nothing";
}

Result<int> run_doctor(const Args&, Console& console) {
  utsname system;
  const bool known = uname(&system) == 0;
  const std::string system_text =
      known ? std::string(system.sysname) + " " + system.release + " " + system.machine : "unknown";
  const uint64_t memory = default_memory_limit();
  if (console.json) {
    std::string names;
    for (std::string_view name : cpu_features().names())
      names += (names.empty() ? "" : ",") + json_quote(name);
    console.print("{\"version\":" + json_quote(TOMBOLO_VERSION) + ",\"build\":" +
                  json_quote(build_text()) + ",\"system\":" + json_quote(system_text) +
                  ",\"cpu\":" + json_quote(cpu_name()) + ",\"cpu_features\":[" + names +
                  "],\"fast_math\":" + json_quote(std::string(fast_math_text())) +
                  ",\"cores_allowed\":" + std::to_string(allowed_cores()) + ",\"threads\":" +
                  std::to_string(thread_count()) + ",\"memory_limit\":" + std::to_string(memory) +
                  ",\"opset\":" + std::to_string(latest_opset("")) +
                  ",\"ir_version\":" + std::to_string(kNewestIrVersion) + "}\n");
    return kYes;
  }
  console.print("tombolo      " TOMBOLO_VERSION "\n");
  console.print("build        " + build_text() + "\n");
  console.print("system       " + system_text + "\n");
  console.print("cpu          " + cpu_name() + "\n");
  console.print("features     " + features_text() + "\n");
  console.print("fast math    " + std::string(fast_math_text()) + "\n");
  console.print("cores        " + std::to_string(allowed_cores()) + " allowed, " +
                std::to_string(thread_count()) + " threads used\n");
  console.print("memory       " + human_bytes(memory) + " for a run\n");
  console.print("newest ONNX  opset " + std::to_string(latest_opset("")) + ", ml " +
                std::to_string(latest_opset("ai.onnx.ml")) + ", IR " +
                std::to_string(kNewestIrVersion) + "\n");
  return kYes;
}

}  // namespace

Result<int> run_version(Console& console) {
  console.print("tombolo " TOMBOLO_VERSION " (" + build_text() + "; cpu: " + features_text() +
                "; " + std::to_string(allowed_cores()) + " cores allowed)\n");
  return kYes;
}

const Verb doctor_verb = {
    .name = "doctor",
    .summary = "say what this build and this machine are",
    .description = "",
    .positionals = {},
    .options = {},
    .examples = {"tombolo doctor"},
    .run = run_doctor,
};

}  // namespace tombolo::cli
