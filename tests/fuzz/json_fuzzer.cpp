// Any text is an error or a model, and the model's own JSON can be read.

#include <cstdio>
#include <cstdlib>

#include "onnx/json.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  auto model = tombolo::read_json({reinterpret_cast<const char*>(data), size});
  if (!model.ok()) return 0;
  auto json = tombolo::write_json(**model);
  if (json.ok() && tombolo::read_json(*json).ok()) return 0;
  std::fprintf(stderr, "the model's JSON cannot be read\n");
  std::abort();
}
