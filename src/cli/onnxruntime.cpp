#include "cli/onnxruntime.h"

#include <dlfcn.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>

namespace tombolo::cli {

namespace {

/// Places of functions in the table that OrtGetApiBase()->GetApi(1) gives: they never move.
enum Place : size_t {
  kGetErrorMessage = 2,
  kCreateEnv = 3,
  kCreateSession = 7,
  kRun = 9,
  kCreateSessionOptions = 10,
  kSetGraphOptimizationLevel = 23,
  kSetIntraOpNumThreads = 24,
  kSetInterOpNumThreads = 25,
  kSessionGetInputCount = 30,
  kSessionGetOutputCount = 31,
  kSessionGetInputName = 36,
  kSessionGetOutputName = 37,
  kCreateTensor = 48,
  kCreateTensorWithData = 49,
  kIsTensor = 50,
  kGetTensorMutableData = 51,
  kFillStringTensor = 52,
  kGetStringTensorDataLength = 53,
  kGetStringTensorContent = 54,
  kGetTensorElementType = 60,
  kGetDimensionsCount = 61,
  kGetDimensions = 62,
  kGetTensorTypeAndShape = 65,
  kGetValueType = 67,
  kCreateCpuMemoryInfo = 69,
  kAllocatorFree = 76,
  kGetDefaultAllocator = 78,
  kGetValue = 80,
  kGetValueCount = 81,
  kReleaseEnv = 92,
  kReleaseStatus = 93,
  kReleaseMemoryInfo = 94,
  kReleaseSession = 95,
  kReleaseValue = 96,
  kReleaseTensorTypeAndShape = 99,
  kReleaseSessionOptions = 100,
  kAddSessionConfigEntry = 130,
};

struct ApiBase {
  const void* const* (*get_api)(uint32_t version);
  const char* (*get_version)();
};

}  // namespace

struct OnnxRuntime::Impl {
  const void* const* api = nullptr;
  std::string version;
  void* env = nullptr;
  void* options = nullptr;
  void* session = nullptr;
  void* memory = nullptr;
  void* allocator = nullptr;
  std::vector<std::string> inputs, outputs;
  std::vector<void*> values;
  /// Inputs of text, which ONNX Runtime has copies of: made once for each text that lies elsewhere.
  std::map<const std::string*, void*> texts;

  template <typename... Args>
  Status call(Place place, Args... args) const {
    using Function = void* (*)(Args...);
    void* status = reinterpret_cast<Function>(const_cast<void*>(api[place]))(args...);
    if (status == nullptr) return ok();
    const char* message = reinterpret_cast<const char* (*)(const void*)>(
        const_cast<void*>(api[kGetErrorMessage]))(status);
    Error error = runtime_error(std::string("ONNX Runtime: ") + message);
    release(kReleaseStatus, status);
    return error;
  }
  void release(Place place, void* object) const {
    if (object != nullptr) reinterpret_cast<void (*)(void*)>(const_cast<void*>(api[place]))(object);
  }
  void drop_values() {
    for (void* value : values) release(kReleaseValue, value);
    values.clear();
  }
  Result<void*> text_value(const Tensor& tensor);
  Result<RunValue> result_of(const void* value) const;
  Result<RunValue> tensor_of(const void* value) const;
  ~Impl() {
    if (api == nullptr) return;
    drop_values();
    for (const auto& [text, value] : texts) release(kReleaseValue, value);
    release(kReleaseMemoryInfo, memory);
    release(kReleaseSession, session);
    release(kReleaseSessionOptions, options);
    release(kReleaseEnv, env);
  }
};

Result<void*> OnnxRuntime::Impl::text_value(const Tensor& tensor) {
  void*& value = texts[tensor.strings().data()];
  if (value != nullptr) return value;
  std::vector<const char*> lines;
  for (const std::string& line : tensor.strings()) lines.push_back(line.c_str());
  CHECK_OK(call(kCreateTensor, allocator, tensor.dims().data(), tensor.rank(),
                static_cast<int>(DType::kString), &value));
  CHECK_OK(call(kFillStringTensor, value, lines.data(), lines.size()));
  return value;
}

Result<RunValue> OnnxRuntime::Impl::tensor_of(const void* value) const {
  void* shape = nullptr;
  int type = 0;
  size_t rank = 0;
  CHECK_OK(call(kGetTensorTypeAndShape, value, &shape));
  CHECK_OK(call(kGetTensorElementType, shape, &type));
  CHECK_OK(call(kGetDimensionsCount, shape, &rank));
  std::vector<int64_t> dims(rank);
  CHECK_OK(call(kGetDimensions, shape, dims.data(), rank));
  release(kReleaseTensorTypeAndShape, shape);
  const auto dtype = dtype_from_number(type);
  if (!dtype) return RunValue();
  TRY(Tensor tensor, Tensor::allocate(*dtype, dims));
  if (tensor.is_string()) {
    size_t length = 0;
    CHECK_OK(call(kGetStringTensorDataLength, value, &length));
    std::string all(length, ' ');
    std::vector<size_t> starts(static_cast<size_t>(tensor.size()));
    CHECK_OK(call(kGetStringTensorContent, value, static_cast<void*>(all.data()), length,
                  starts.data(), starts.size()));
    for (size_t i = 0; i < starts.size(); ++i)
      tensor.strings()[i] =
          all.substr(starts[i], (i + 1 < starts.size() ? starts[i + 1] : length) - starts[i]);
    return RunValue(std::move(tensor));
  }
  void* data = nullptr;
  CHECK_OK(call(kGetTensorMutableData, value, &data));
  if (!tensor.bytes().empty())
    std::memcpy(tensor.mutable_bytes().data(), data, tensor.bytes().size());
  return RunValue(std::move(tensor));
}

Result<RunValue> OnnxRuntime::Impl::result_of(const void* value) const {
  if (value == nullptr) return RunValue();
  int is_tensor = 0, kind = 0;
  CHECK_OK(call(kIsTensor, value, &is_tensor));
  if (is_tensor != 0) return tensor_of(value);
  constexpr int kSequence = 2, kMap = 3;
  CHECK_OK(call(kGetValueType, value, &kind));
  if (kind != kSequence && kind != kMap) return RunValue();
  size_t count = 0;
  CHECK_OK(call(kGetValueCount, value, &count));
  std::vector<RunValue> items;
  for (size_t i = 0; i < count; ++i) {
    void* item = nullptr;
    CHECK_OK(call(kGetValue, value, static_cast<int>(i), allocator, &item));
    auto result = result_of(item);
    release(kReleaseValue, item);
    if (!result) return result;
    items.push_back(*std::move(result));
  }
  if (kind == kSequence) return RunValue(SequenceValue{std::move(items)});
  if (items.size() != 2 || !items[0].is_tensor() || !items[1].is_tensor()) return RunValue();
  return RunValue(MapValue{items[0].tensor(), {}, items[1].tensor()});
}

OnnxRuntime::OnnxRuntime() : impl_(std::make_unique<Impl>()) {}
OnnxRuntime::~OnnxRuntime() = default;

std::string find_onnxruntime(const std::string& given) {
  if (!given.empty()) return given;
  if (const char* named = std::getenv("TOMBOLO_ONNXRUNTIME")) return named;
  for (const char* name : {"libonnxruntime.so", "libonnxruntime.so.1"})
    if (void* library = dlopen(name, RTLD_LAZY | RTLD_LOCAL)) {
      dlclose(library);
      return name;
    }
  return "";
}

Result<std::unique_ptr<OnnxRuntime>> OnnxRuntime::open(const std::string& library,
                                                       const std::string& model,
                                                       const Options& options) {
  // Never closed: its threads and static objects do not survive that.
  void* handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return parse_error(std::string("cannot load ONNX Runtime: ") + dlerror());
  const auto get_base = reinterpret_cast<const ApiBase* (*)()>(dlsym(handle, "OrtGetApiBase"));
  if (get_base == nullptr)
    return parse_error("\"" + library + "\" is not ONNX Runtime: it has no OrtGetApiBase");
  std::unique_ptr<OnnxRuntime> made(new OnnxRuntime);
  Impl& impl = *made->impl_;
  impl.version = get_base()->get_version();
  impl.api = get_base()->get_api(16);
  if (impl.api == nullptr)
    return unsupported("ONNX Runtime " + impl.version + " is older than this interface");
  constexpr int kErrorsOnly = 3, kAll = 99;
  CHECK_OK(impl.call(kCreateEnv, kErrorsOnly, "tombolo", &impl.env));
  CHECK_OK(impl.call(kCreateSessionOptions, &impl.options));
  CHECK_OK(impl.call(kSetGraphOptimizationLevel, impl.options, kAll));
  CHECK_OK(impl.call(kSetIntraOpNumThreads, impl.options, options.threads));
  CHECK_OK(impl.call(kSetInterOpNumThreads, impl.options, 1));
  if (!options.disabled.empty())
    CHECK_OK(impl.call(kAddSessionConfigEntry, impl.options,
                       "optimization.disable_specified_optimizers", options.disabled.c_str()));
  CHECK_OK(impl.call(kCreateSession, impl.env, model.c_str(), impl.options, &impl.session));
  constexpr int kArena = 1, kDefault = 0;
  CHECK_OK(impl.call(kCreateCpuMemoryInfo, kArena, kDefault, &impl.memory));
  CHECK_OK(impl.call(kGetDefaultAllocator, &impl.allocator));
  auto names = [&](Place count_of, Place name_of, std::vector<std::string>& list) -> Status {
    size_t count = 0;
    CHECK_OK(impl.call(count_of, impl.session, &count));
    for (size_t i = 0; i < count; ++i) {
      char* name = nullptr;
      CHECK_OK(impl.call(name_of, impl.session, i, impl.allocator, &name));
      list.emplace_back(name);
      CHECK_OK(impl.call(kAllocatorFree, impl.allocator, static_cast<void*>(name)));
    }
    return ok();
  };
  CHECK_OK(names(kSessionGetInputCount, kSessionGetInputName, impl.inputs));
  CHECK_OK(names(kSessionGetOutputCount, kSessionGetOutputName, impl.outputs));
  return made;
}

const std::string& OnnxRuntime::version() const { return impl_->version; }
const std::vector<std::string>& OnnxRuntime::inputs() const { return impl_->inputs; }
const std::vector<std::string>& OnnxRuntime::outputs() const { return impl_->outputs; }

Status OnnxRuntime::run(const std::vector<NamedTensor>& inputs) {
  Impl& impl = *impl_;
  impl.drop_values();
  std::vector<const char*> names, output_names;
  std::vector<void*> values;
  Status status = ok();
  std::vector<void*> own;
  for (const NamedTensor& input : inputs) {
    void* value = nullptr;
    if (input.tensor.is_string()) {
      auto text = impl.text_value(input.tensor);
      if (text)
        value = *text;
      else
        status = std::move(text).error();
    } else {
      // An empty buffer may be null, which ONNX Runtime refuses.
      static std::byte nothing[64];
      const std::span<const std::byte> bytes = input.tensor.bytes();
      status = impl.call(
          kCreateTensorWithData, impl.memory,
          static_cast<void*>(bytes.empty() ? nothing : const_cast<std::byte*>(bytes.data())),
          bytes.size(), input.tensor.dims().data(), input.tensor.rank(),
          static_cast<int>(input.tensor.dtype()), &value);
      if (status) own.push_back(value);
    }
    if (!status) break;
    names.push_back(input.name.c_str());
    values.push_back(value);
  }
  if (status) {
    for (const std::string& name : impl.outputs) output_names.push_back(name.c_str());
    impl.values.assign(impl.outputs.size(), nullptr);
    status = impl.call(kRun, impl.session, static_cast<const void*>(nullptr), names.data(),
                       values.data(), values.size(), output_names.data(), output_names.size(),
                       impl.values.data());
  }
  for (void* value : own) impl.release(kReleaseValue, value);
  return status;
}

Result<std::vector<RunValue>> OnnxRuntime::results() const {
  const Impl& impl = *impl_;
  std::vector<RunValue> results;
  for (const void* value : impl.values) {
    TRY(RunValue result, impl.result_of(value));
    results.push_back(std::move(result));
  }
  return results;
}

}  // namespace tombolo::cli
