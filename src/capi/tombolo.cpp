// The C interface over the C++ library. Exceptions (the allocator's) stop here.

#include "tombolo/tombolo.h"

#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "analysis/checker.h"
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

Result<Tensor> tensor_of(const tombolo_tensor& given) {
  if (given.struct_size < sizeof(tombolo_tensor) || given.name == nullptr)
    return tombolo::usage_error("an input's struct_size or name is not set");
  const auto dtype = tombolo::dtype_from_number(given.dtype);
  if (!dtype || given.rank < 0 || (given.rank > 0 && given.dims == nullptr))
    return tombolo::usage_error("input \"" + std::string(given.name) +
                                "\" has no valid type or shape");
  const std::span<const int64_t> dims(given.dims, static_cast<size_t>(given.rank));
  const int64_t count = tombolo::element_count(dims);
  if (count < 0 || (count > 0 && given.data == nullptr))
    return tombolo::usage_error("input \"" + std::string(given.name) +
                                "\" has no valid shape or data");
  TRY(Tensor tensor, Tensor::allocate(*dtype, dims));
  if (tensor.is_string()) {
    const auto* texts = static_cast<const char* const*>(given.data);
    for (int64_t i = 0; i < count; ++i) tensor.strings()[static_cast<size_t>(i)] = texts[i];
    return tensor;
  }
  if (given.bytes != tensor.bytes().size())
    return tombolo::usage_error(
        "input \"" + std::string(given.name) + "\" of type " + to_string(tensor) + " needs " +
        std::to_string(tensor.bytes().size()) + " bytes, got " + std::to_string(given.bytes));
  if (given.bytes != 0) std::memcpy(tensor.mutable_bytes().data(), given.data, given.bytes);
  return tensor;
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
  *session = nullptr;
  return guarded(error, [&]() -> Result<tombolo_status> {
    auto created = std::make_unique<tombolo_session>();
    TRY(auto model, tombolo::load_model(path));
    TRY(created->session, tombolo::Session::create(std::move(model)));
    for (const auto& port : created->session->inputs())
      created->input_types.push_back(port.type != nullptr ? to_string(*port.type) : "");
    for (const auto& port : created->session->outputs())
      created->output_types.push_back(port.type != nullptr ? to_string(*port.type) : "");
    *session = created.release();
    return TOMBOLO_OK;
  });
}

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
  *outputs = nullptr;
  return guarded(error, [&]() -> Result<tombolo_status> {
    std::vector<tombolo::NamedValue> values;
    for (size_t i = 0; i < input_count; ++i) {
      TRY(Tensor tensor, tensor_of(inputs[i]));
      values.push_back({inputs[i].name, tombolo::RunValue(std::move(tensor))});
    }
    TRY(auto results, session->session->run(values));
    auto list = std::make_unique<tombolo_outputs>();
    list->tensors = tombolo::flatten_outputs(session->session->outputs(), results);
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
