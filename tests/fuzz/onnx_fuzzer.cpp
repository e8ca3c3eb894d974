// Any bytes are an error or a model; a model that was read is written and read again unchanged, and
// its tensors decode or fail cleanly.

#include <cstdio>
#include <cstdlib>
#include <string>

#include "onnx/for_each_constant.h"
#include "onnx/json.h"
#include "onnx/reader.h"
#include "onnx/tensor_file.h"
#include "onnx/writer.h"

using namespace tombolo;

namespace {
[[noreturn]] void die(const std::string& what) {
  std::fprintf(stderr, "%s\n", what.c_str());
  std::abort();
}
}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  (void)looks_like_onnx(bytes);
  auto model = read_onnx(bytes, std::make_shared<Storage>());
  if (!model.ok()) return 0;
  auto written = write_onnx(**model);
  if (!written.ok() || written->size() != onnx_size(**model)) die("cannot be written");
  auto again = read_onnx(*written, std::make_shared<Storage>());
  if (!again.ok()) die("what was written cannot be read: " + again.error().message);
  if (*write_onnx(**again) != *written) die("writing twice gives different bytes");
  std::string difference;
  if (!equal(**model, **again, &difference)) die("differs after a round trip: " + difference);
  onnx::for_each_constant(**model, [&](const Constant& constant) {
    const int64_t count = element_count(constant.dims);
    if (!constant.is_external() && count >= 0 && count < (1 << 20))
      (void)constant.value((*model)->storage_ptr());
  });
  auto json = write_json(**model);
  if (!json.ok()) die("cannot be written as JSON");
  if (auto from_json = read_json(*json); !from_json.ok())
    die("its JSON cannot be read: " + from_json.error().message + "\n" + *json);
  const Type floats = Type::tensor(DType::kFloat32);
  const Type sequence = Type::sequence(&floats), optional = Type::optional(&sequence);
  const Type map = Type::map(DType::kInt64, &sequence);
  for (const Type* type : {&sequence, &optional, &map})
    (void)read_tensor_file(bytes, type, std::make_shared<Storage>());
  return 0;
}
