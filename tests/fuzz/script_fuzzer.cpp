// Any bytes are a TorchScript archive, a file of its code, or an error with a message. Start from
// real files: script_fuzzer CORPUS tests/pytorch/torchscript/*

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>

#include "formats/pytorch/script/importer.h"
#include "formats/pytorch/script/syntax.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tombolo;
  auto owner = std::make_shared<std::string>(reinterpret_cast<const char*>(data), size);
  const auto bytes = std::as_bytes(std::span<const char>(*owner));
  if (ZipArchive::probe(bytes)) {
    const int64_t dims[] = {2, 3};
    const float values[] = {1, -2, 3, -4, 5, -6};
    std::vector<NamedTensor> samples(4);
    for (NamedTensor& sample : samples)
      sample.tensor = Tensor::of<float>(DType::kFloat32, dims, values);
    auto model = script::import_torchscript({bytes, owner}, samples, {});
    if (!model.ok() && model.error().message.empty()) std::abort();
    return 0;
  }
  auto source = script::parse_source(*owner, owner, "code/fuzz.py", "fuzz");
  if (!source.ok() && (source.error().message.empty() || source.error().where.empty()))
    std::abort();
  return 0;
}
