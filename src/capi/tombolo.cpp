// The C interface over the C++ library. Exceptions (the allocator's) stop here.

#include "tombolo/tombolo.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "analysis/checker.h"
#include "base/thread_pool.h"
#include "formats/load.h"
#include "runtime/flatten.h"
#include "runtime/session.h"

using tombolo::Error;
using tombolo::ErrorKind;
using tombolo::NamedTensor;
using tombolo::Result;
using tombolo::Tensor;

struct tombolo_error {
  Error error;
};

struct tombolo_session {
  std::unique_ptr<tombolo::Session> session;
  std::vector<std::string> input_types, output_types;
};

struct tombolo_stop {
  std::atomic<bool> requested{false};
};

struct tombolo_outputs {
  std::vector<NamedTensor> tensors;
  std::vector<std::vector<const char*>> strings;  // per tensor: pointers into its strings
};

namespace {

tombolo_status fail(Error error, tombolo_error** out) {
  const auto status = static_cast<tombolo_status>(error.kind);
  if (out != nullptr) *out = new (std::nothrow) tombolo_error{std::move(error)};
  return status;
}

/// Runs `body`, which returns a Result<tombolo_status>.
template <typename Body>
tombolo_status guarded(tombolo_error** error, Body&& body) {
  if (error != nullptr) *error = nullptr;
  try {
    Result<tombolo_status> result = body();
    return result ? *result : fail(std::move(result).error(), error);
  } catch (const std::bad_alloc&) {
    return fail(tombolo::resource_error("out of memory"), error);
  } catch (const std::exception& unexpected) {
    return fail(tombolo::runtime_error(std::string("internal error: ") + unexpected.what()), error);
  }
}

/// The caller's struct as this library knows it: members beyond the caller's size are 0.
template <typename T>
Result<T> versioned(const T* given, const char* name) {
  T known = {};
  if (given == nullptr) return known;
  const size_t size = given->struct_size;
  if (size < sizeof(size_t) || size > (size_t{1} << 16))
    return tombolo::usage_error(std::string("struct_size of ") + name + " is not set");
  std::memcpy(static_cast<void*>(&known), given, std::min(sizeof(T), size));
  return known;
}

struct Layout {
  tombolo::DType dtype;
  std::span<const int64_t> dims;
};

template <typename T>
Result<Layout> layout_of(const T& given, const char* what) {
  if (given.struct_size < sizeof(T) || given.name == nullptr)
    return tombolo::usage_error(std::string("struct_size or name of an ") + what + " is not set");
  const auto dtype = tombolo::dtype_from_number(given.dtype);
  if (!dtype || given.rank < 0 || (given.rank > 0 && given.dims == nullptr))
    return tombolo::usage_error(std::string(what) + " \"" + given.name +
                                "\" has no valid type or shape");
  const std::span<const int64_t> dims(given.dims, static_cast<size_t>(given.rank));
  const int64_t count = tombolo::element_count(dims);
  if (count < 0 || (count > 0 && given.data == nullptr))
    return tombolo::usage_error(std::string(what) + " \"" + given.name +
                                "\" has no valid shape or data");
  return Layout{*dtype, dims};
}

/// A view of numbers where they lie, or a copy of strings.
Result<Tensor> tensor_of(const tombolo_tensor& given) {
  TRY(const Layout layout, layout_of(given, "input"));
  if (layout.dtype == tombolo::DType::kString) {
    TRY(Tensor tensor, Tensor::allocate(layout.dtype, layout.dims));
    const auto* texts = static_cast<const char* const*>(given.data);
    for (size_t i = 0; i < tensor.strings().size(); ++i) {
      if (texts[i] == nullptr)
        return tombolo::usage_error("string " + std::to_string(i) + " of input \"" + given.name +
                                    "\" is null");
      tensor.strings()[i] = texts[i];
    }
    return tensor;
  }
  const auto bytes = tombolo::packed_bytes(
      layout.dtype, static_cast<uint64_t>(tombolo::element_count(layout.dims)));
  if (!bytes || given.bytes != *bytes)
    return tombolo::usage_error(
        "input \"" + std::string(given.name) + "\" of type " + std::string(name_of(layout.dtype)) +
        tombolo::dims_to_string(layout.dims) + " needs " + std::to_string(bytes.value_or(0)) +
        " bytes, got " + std::to_string(given.bytes));
  return Tensor::view(layout.dtype, layout.dims,
                      {static_cast<const std::byte*>(given.data), given.bytes}, nullptr);
}

/// The memory of a binding of known shape as a tensor; one without type for another.
Result<Tensor> target_of(const tombolo_binding& given) {
  if (given.rank < 0) return Tensor();
  TRY(const Layout layout, layout_of(given, "output"));
  const auto bytes = tombolo::packed_bytes(
      layout.dtype, static_cast<uint64_t>(tombolo::element_count(layout.dims)));
  if (layout.dtype == tombolo::DType::kString || !bytes || given.bytes < *bytes)
    return tombolo::usage_error("the memory for output \"" + std::string(given.name) +
                                "\" is too small, or it is of strings");
  return Tensor::view(layout.dtype, layout.dims,
                      {static_cast<const std::byte*>(given.data), static_cast<size_t>(*bytes)},
                      nullptr);
}

const char* at(const std::vector<std::string>& list, size_t index) {
  return index < list.size() ? list[index].c_str() : "";
}

}  // namespace

const char* tombolo_error_message(const tombolo_error* error) {
  return error->error.message.c_str();
}
const char* tombolo_error_where(const tombolo_error* error) { return error->error.where.c_str(); }
const char* tombolo_error_help(const tombolo_error* error) { return error->error.help.c_str(); }
void tombolo_error_destroy(tombolo_error* error) { delete error; }

const char* tombolo_version(void) { return TOMBOLO_VERSION; }

tombolo_status tombolo_convert(const char* input, const char* output, tombolo_error** error) {
  return guarded(error, [&]() -> Result<tombolo_status> {
    TRY(auto model, tombolo::load_model(input));
    CHECK_OK(tombolo::save_model(*model, output));
    return TOMBOLO_OK;
  });
}

tombolo_status tombolo_check(const char* path, tombolo_diagnostic_fn report, void* user,
                             tombolo_error** error) {
  return guarded(error, [&]() -> Result<tombolo_status> {
    TRY(auto model, tombolo::load_model(path));
    tombolo::Diagnostics diagnostics;
    tombolo::check(*model, tombolo::CheckOptions{}, diagnostics);
    if (report != nullptr)
      for (const tombolo::Diagnostic& found : diagnostics.list())
        report(user, static_cast<int>(found.severity), found.code.c_str(), found.where.c_str(),
               found.message.c_str(), found.help.c_str());
    return diagnostics.errors() == 0 ? TOMBOLO_OK : TOMBOLO_NO;
  });
}

tombolo_status tombolo_session_create(const char* path, tombolo_session** session,
                                      tombolo_error** error) {
  return tombolo_session_open(path, nullptr, session, error);
}

namespace {

Result<tombolo_session*> open_session(Result<std::unique_ptr<tombolo::Model>> model,
                                      const tombolo_session_options* given) {
  if (!model) return std::move(model).error();
  TRY(const tombolo_session_options wanted, versioned(given, "tombolo_session_options"));
  if (wanted.optimise < 0 || wanted.optimise > 4)
    return tombolo::usage_error("tombolo_session_options.optimise is 0 to 4, not " +
                                std::to_string(wanted.optimise));
  tombolo::SessionOptions options;
  options.memory_limit = wanted.memory_limit;
  options.time_limit_ms = wanted.time_limit_ms;
  options.seed = wanted.seed;
  options.deterministic = wanted.deterministic != 0;
  options.fast_math = wanted.fast_math != 0;
  options.reference = wanted.reference != 0;
  if (wanted.optimise != 0) options.optimise = wanted.optimise - 1;
  if (wanted.pack_cache != nullptr) options.pack_cache = wanted.pack_cache;
  auto created = std::make_unique<tombolo_session>();
  TRY(created->session, tombolo::Session::create(*std::move(model), options));
  for (const auto& port : created->session->inputs())
    created->input_types.push_back(port.type != nullptr ? to_string(*port.type) : "");
  for (const auto& port : created->session->outputs())
    created->output_types.push_back(port.type != nullptr ? to_string(*port.type) : "");
  return created.release();
}

}  // namespace

tombolo_status tombolo_session_open(const char* path, const tombolo_session_options* options,
                                    tombolo_session** session, tombolo_error** error) {
  *session = nullptr;
  return guarded(error, [&]() -> Result<tombolo_status> {
    if (path == nullptr) return tombolo::usage_error("the path is null");
    TRY(*session, open_session(tombolo::load_model(path), options));
    return TOMBOLO_OK;
  });
}

tombolo_status tombolo_session_open_memory(const void* bytes, size_t size,
                                           const tombolo_session_options* options,
                                           tombolo_session** session, tombolo_error** error) {
  *session = nullptr;
  return guarded(error, [&]() -> Result<tombolo_status> {
    if (bytes == nullptr && size != 0) return tombolo::usage_error("the bytes are null");
    tombolo::Source source;
    source.file = tombolo::MappedFile::from_memory(
        std::string(static_cast<const char*>(bytes), size), "memory");
    TRY(*session, open_session(tombolo::load_source(source), options));
    return TOMBOLO_OK;
  });
}

void tombolo_set_threads(int32_t count) { tombolo::set_thread_count(count); }

void tombolo_session_destroy(tombolo_session* session) { delete session; }
size_t tombolo_session_input_count(const tombolo_session* session) {
  return session->session->inputs().size();
}
size_t tombolo_session_output_count(const tombolo_session* session) {
  return session->session->outputs().size();
}
const char* tombolo_session_input_name(const tombolo_session* session, size_t index) {
  const auto& ports = session->session->inputs();
  return index < ports.size() ? ports[index].name.c_str() : "";
}
const char* tombolo_session_output_name(const tombolo_session* session, size_t index) {
  const auto& ports = session->session->outputs();
  return index < ports.size() ? ports[index].name.c_str() : "";
}
const char* tombolo_session_input_type(const tombolo_session* session, size_t index) {
  return at(session->input_types, index);
}
const char* tombolo_session_output_type(const tombolo_session* session, size_t index) {
  return at(session->output_types, index);
}

tombolo_status tombolo_session_run(const tombolo_session* session, const tombolo_tensor* inputs,
                                   size_t input_count, tombolo_outputs** outputs,
                                   tombolo_error** error) {
  return tombolo_session_run_bound(session, inputs, input_count, nullptr, 0, nullptr, outputs,
                                   error);
}

tombolo_stop* tombolo_stop_create(void) { return new (std::nothrow) tombolo_stop; }
void tombolo_stop_request(tombolo_stop* stop) { stop->requested = true; }
void tombolo_stop_clear(tombolo_stop* stop) { stop->requested = false; }
void tombolo_stop_destroy(tombolo_stop* stop) { delete stop; }

namespace {

/// Outputs whose shape was not known before the run go to the caller's memory now.
tombolo::Status copy_out(const tombolo_binding& binding, NamedTensor& made) {
  const Tensor& tensor = made.tensor;
  const auto given = static_cast<int32_t>(tensor.dtype());
  if (binding.dtype != given || tensor.is_string() || tensor.bytes().size() > binding.bytes)
    return tombolo::usage_error("output \"" + made.name + "\" is " + to_string(tensor) + " of " +
                                std::to_string(tensor.bytes().size()) +
                                " bytes, which the memory bound to it does not take");
  auto* target = static_cast<std::byte*>(binding.data);
  if (tensor.bytes().data() == target) return tombolo::ok();
  if (!tensor.bytes().empty()) std::memcpy(target, tensor.bytes().data(), tensor.bytes().size());
  made.tensor =
      Tensor::view(tensor.dtype(), tensor.dims(), {target, tensor.bytes().size()}, nullptr);
  return tombolo::ok();
}

}  // namespace

tombolo_status tombolo_session_run_bound(const tombolo_session* session,
                                         const tombolo_tensor* inputs, size_t input_count,
                                         const tombolo_binding* bindings, size_t binding_count,
                                         const tombolo_run_options* given,
                                         tombolo_outputs** outputs, tombolo_error** error) {
  *outputs = nullptr;
  return guarded(error, [&]() -> Result<tombolo_status> {
    const tombolo::Session& runner = *session->session;
    TRY(const tombolo_run_options wanted, versioned(given, "tombolo_run_options"));
    tombolo::RunOptions options;
    options.borrowed_inputs = true;
    options.time_limit_ms = wanted.time_limit_ms;
    options.memory_limit = wanted.memory_limit;
    if (wanted.stop != nullptr) options.cancelled = &wanted.stop->requested;
    std::vector<tombolo::RunValue> values(runner.inputs().size());
    for (size_t i = 0; i < input_count; ++i) {
      TRY(Tensor tensor, tensor_of(inputs[i]));
      TRY(const size_t index, runner.input_index(inputs[i].name));
      values[index] = tombolo::RunValue(std::move(tensor));
    }
    std::vector<const tombolo_binding*> bound(runner.outputs().size());
    for (size_t i = 0; i < binding_count; ++i) {
      TRY(Tensor target, target_of(bindings[i]));
      size_t index = 0;
      while (index < bound.size() && runner.outputs()[index].name != bindings[i].name) ++index;
      if (index == bound.size())
        return tombolo::usage_error("the model has no output \"" + std::string(bindings[i].name) +
                                    "\"");
      bound[index] = &bindings[i];
      options.outputs.resize(bound.size());
      options.outputs[index] = std::move(target);
    }
    TRY(auto results, runner.run_ordered(std::move(values), options));
    auto list = std::make_unique<tombolo_outputs>();
    list->tensors = tombolo::flatten_outputs(runner.outputs(), results);
    for (size_t i = 0; i < bound.size(); ++i)
      if (bound[i] != nullptr) {
        const auto made = std::find_if(
            list->tensors.begin(), list->tensors.end(),
            [&](const NamedTensor& named) { return named.name == runner.outputs()[i].name; });
        if (made == list->tensors.end())
          return tombolo::usage_error("output \"" + runner.outputs()[i].name +
                                      "\" is no tensor: it cannot be bound");
        const tombolo_binding& binding = *bound[i];
        const Tensor& tensor = made->tensor;
        if (binding.rank >= 0 && !(options.outputs[i].dims() == tensor.dims()))
          return tombolo::usage_error("output \"" + made->name + "\" is " + to_string(tensor) +
                                      ", bound to memory of shape " +
                                      tombolo::dims_to_string(options.outputs[i].dims()));
        CHECK_OK(copy_out(binding, *made));
      }
    for (const NamedTensor& named : list->tensors) {
      list->strings.emplace_back();
      if (named.tensor.is_string())
        for (const std::string& text : named.tensor.strings())
          list->strings.back().push_back(text.c_str());
    }
    *outputs = list.release();
    return TOMBOLO_OK;
  });
}

size_t tombolo_outputs_count(const tombolo_outputs* outputs) { return outputs->tensors.size(); }

tombolo_status tombolo_outputs_get(const tombolo_outputs* outputs, size_t index,
                                   tombolo_tensor* tensor) {
  if (index >= outputs->tensors.size() || tensor->struct_size < sizeof(tombolo_tensor))
    return TOMBOLO_USAGE;
  const NamedTensor& named = outputs->tensors[index];
  tensor->name = named.name.c_str();
  tensor->dtype = static_cast<int32_t>(named.tensor.dtype());
  tensor->rank = static_cast<int32_t>(named.tensor.rank());
  tensor->dims = named.tensor.dims().data();
  if (named.tensor.is_string()) {
    tensor->data = outputs->strings[index].data();
    tensor->bytes = outputs->strings[index].size() * sizeof(const char*);
  } else {
    tensor->data = named.tensor.bytes().data();
    tensor->bytes = named.tensor.bytes().size();
  }
  return TOMBOLO_OK;
}

void tombolo_outputs_destroy(tombolo_outputs* outputs) { delete outputs; }
