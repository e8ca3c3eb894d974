// Any bytes are a checkpoint or an error with a message: reaches the readers of ZIP, pickle, tar,
// safetensors and .npy, and what rebuilds tensors. Start from real files:
// checkpoint_fuzzer CORPUS tests/pytorch/checkpoints/*

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>

#include "formats/pytorch/checkpoint.h"
#include "formats/weights/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tombolo;
  // A copy whose end the sanitizer watches.
  auto owner = std::make_shared<std::string>(reinterpret_cast<const char*>(data), size);
  const auto bytes = std::as_bytes(std::span<const char>(*owner));
  const auto check = [](const auto& result) {
    if (!result.ok() && result.error().message.empty()) std::abort();
  };
  check(torch::read_checkpoint({bytes, owner}, true));
  check(torch::read_checkpoint({bytes, owner}, false));
  check(read_safetensors(bytes, owner));
  return 0;
}
