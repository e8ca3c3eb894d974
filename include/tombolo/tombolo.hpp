#ifndef TOMBOLO_TOMBOLO_HPP_
#define TOMBOLO_TOMBOLO_HPP_

// The C++ interface of Tombolo: values and exceptions over the C interface of tombolo.h, nothing
// else, so that a program keeps working with a newer library. C++17.
//
//   tombolo::Session session("model.onnx");
//   std::vector<float> pixels(3 * 224 * 224);
//   auto outputs = session.run({tombolo::tensor("image", pixels, {1, 3, 224, 224})});
//   const float* scores = outputs[0].data<float>();

#include <cstdint>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tombolo/tombolo.h"

namespace tombolo {
// Names of the library itself never meet these.
inline namespace interface_1 {

/// What went wrong: what() is the message.
class Failure : public std::runtime_error {
 public:
  Failure(tombolo_status status, const std::string& message, std::string where, std::string help)
      : std::runtime_error(message),
        status_(status),
        where_(std::move(where)),
        help_(std::move(help)) {}
  tombolo_status status() const { return status_; }
  const std::string& where() const { return where_; }  ///< the place in the model, or ""
  const std::string& help() const { return help_; }    ///< the way out, or ""

 private:
  tombolo_status status_;
  std::string where_, help_;
};

namespace detail {
/// After the call that made `error`, not in one expression with it: arguments have no order.
inline void check(tombolo_status status, tombolo_error* error) {
  if (status == TOMBOLO_OK) return;
  if (error == nullptr) throw Failure(status, "tombolo failed", "", "");
  Failure failure(status, tombolo_error_message(error), tombolo_error_where(error),
                  tombolo_error_help(error));
  tombolo_error_destroy(error);
  throw failure;
}
struct Destroy {
  void operator()(tombolo_session* session) const { tombolo_session_destroy(session); }
  void operator()(tombolo_outputs* outputs) const { tombolo_outputs_destroy(outputs); }
  void operator()(tombolo_stop* stop) const { tombolo_stop_destroy(stop); }
};
}  // namespace detail

/// ONNX's number of a C++ type.
template <typename T>
struct DTypeOf;
template <>
struct DTypeOf<float> {
  static constexpr int32_t value = 1;
};
template <>
struct DTypeOf<uint8_t> {
  static constexpr int32_t value = 2;
};
template <>
struct DTypeOf<int8_t> {
  static constexpr int32_t value = 3;
};
template <>
struct DTypeOf<uint16_t> {
  static constexpr int32_t value = 4;
};
template <>
struct DTypeOf<int16_t> {
  static constexpr int32_t value = 5;
};
template <>
struct DTypeOf<int32_t> {
  static constexpr int32_t value = 6;
};
template <>
struct DTypeOf<int64_t> {
  static constexpr int32_t value = 7;
};
template <>
struct DTypeOf<bool> {
  static constexpr int32_t value = 9;
};
template <>
struct DTypeOf<double> {
  static constexpr int32_t value = 11;
};
template <>
struct DTypeOf<uint32_t> {
  static constexpr int32_t value = 12;
};
template <>
struct DTypeOf<uint64_t> {
  static constexpr int32_t value = 13;
};

/// A named tensor in the caller's memory, which must live as long as the run that gets it.
struct TensorRef {
  std::string name;
  int32_t dtype = 0;
  std::vector<int64_t> dims;
  void* data = nullptr;
  size_t bytes = 0;
};

template <typename T>
TensorRef tensor(std::string name, const T* data, std::vector<int64_t> dims) {
  size_t count = 1;
  for (int64_t dim : dims) count *= static_cast<size_t>(dim);
  return {std::move(name), DTypeOf<T>::value, std::move(dims), const_cast<T*>(data),
          count * sizeof(T)};
}
template <typename T>
TensorRef tensor(std::string name, const std::vector<T>& data, std::vector<int64_t> dims) {
  TensorRef made = tensor(std::move(name), data.data(), std::move(dims));
  if (made.bytes != data.size() * sizeof(T))
    throw Failure(TOMBOLO_USAGE,
                  "tensor " + made.name + " has " + std::to_string(data.size()) +
                      " elements, its shape says otherwise",
                  "", "");
  return made;
}

/// The outputs of one run.
class Outputs {
 public:
  class Tensor {
   public:
    const char* name() const { return raw_.name; }
    int32_t dtype() const { return raw_.dtype; }
    std::vector<int64_t> dims() const { return {raw_.dims, raw_.dims + raw_.rank}; }
    size_t bytes() const { return raw_.bytes; }
    const void* raw() const { return raw_.data; }
    template <typename T>
    const T* data() const {
      if (raw_.dtype != DTypeOf<T>::value)
        throw Failure(TOMBOLO_USAGE, std::string("output ") + raw_.name + " is of another type", "",
                      "");
      return static_cast<const T*>(raw_.data);
    }
    template <typename T>
    size_t size() const {
      return raw_.bytes / sizeof(T);
    }

   private:
    friend class Outputs;
    tombolo_tensor raw_ = {};
  };

  explicit Outputs(tombolo_outputs* raw) : raw_(raw) {}
  size_t size() const { return tombolo_outputs_count(raw_.get()); }
  Tensor operator[](size_t index) const {
    Tensor tensor;
    tensor.raw_.struct_size = sizeof tensor.raw_;
    if (tombolo_outputs_get(raw_.get(), index, &tensor.raw_) != TOMBOLO_OK)
      throw Failure(TOMBOLO_USAGE, "there is no output " + std::to_string(index), "", "");
    return tensor;
  }
  Tensor operator[](const std::string& name) const {
    for (size_t i = 0; i < size(); ++i)
      if (Tensor tensor = (*this)[i]; name == tensor.name()) return tensor;
    throw Failure(TOMBOLO_USAGE, "there is no output \"" + name + "\"", "", "");
  }

 private:
  std::unique_ptr<tombolo_outputs, detail::Destroy> raw_;
};

/// Lets one thread end the runs of others.
class Stop {
 public:
  Stop() : raw_(tombolo_stop_create()) {
    if (!raw_) throw std::bad_alloc();
  }
  void request() { tombolo_stop_request(raw_.get()); }
  void clear() { tombolo_stop_clear(raw_.get()); }
  const tombolo_stop* raw() const { return raw_.get(); }

 private:
  std::unique_ptr<tombolo_stop, detail::Destroy> raw_;
};

struct SessionOptions {
  uint64_t memory_limit = 0, time_limit_ms = 0, seed = 0;
  bool deterministic = false, fast_math = false, reference = false;
  int optimise = -1;  ///< level of graph rewrites, 0 to 3; -1: as is best
  /// A folder where weights in the layouts of kernels are kept for sessions to come; empty: none.
  std::string pack_cache;
};

struct RunOptions {
  const Stop* stop = nullptr;
  uint64_t time_limit_ms = 0, memory_limit = 0;
};

/// A model made ready. Many threads may run one session at a time.
class Session {
 public:
  explicit Session(const std::string& path, const SessionOptions& options = {}) {
    const tombolo_session_options raw = raw_of(options);
    tombolo_session* session = nullptr;
    tombolo_error* error = nullptr;
    const tombolo_status status = tombolo_session_open(path.c_str(), &raw, &session, &error);
    detail::check(status, error);
    raw_.reset(session);
  }
  Session(const void* bytes, size_t size, const SessionOptions& options = {}) {
    const tombolo_session_options raw = raw_of(options);
    tombolo_session* session = nullptr;
    tombolo_error* error = nullptr;
    const tombolo_status status = tombolo_session_open_memory(bytes, size, &raw, &session, &error);
    detail::check(status, error);
    raw_.reset(session);
  }

  size_t input_count() const { return tombolo_session_input_count(raw_.get()); }
  size_t output_count() const { return tombolo_session_output_count(raw_.get()); }
  std::string input_name(size_t i) const { return tombolo_session_input_name(raw_.get(), i); }
  std::string output_name(size_t i) const { return tombolo_session_output_name(raw_.get(), i); }
  std::string input_type(size_t i) const { return tombolo_session_input_type(raw_.get(), i); }
  std::string output_type(size_t i) const { return tombolo_session_output_type(raw_.get(), i); }

  /// Runs once. `targets`: memory that outputs of these names and shapes are written to.
  Outputs run(const std::vector<TensorRef>& inputs, const std::vector<TensorRef>& targets = {},
              const RunOptions& options = {}) const {
    std::vector<tombolo_tensor> given;
    given.reserve(inputs.size());
    for (const TensorRef& input : inputs)
      given.push_back({sizeof(tombolo_tensor), input.name.c_str(), input.dtype,
                       static_cast<int32_t>(input.dims.size()), input.dims.data(), input.data,
                       input.bytes});
    std::vector<tombolo_binding> bound;
    bound.reserve(targets.size());
    for (const TensorRef& target : targets)
      bound.push_back({sizeof(tombolo_binding), target.name.c_str(), target.dtype,
                       static_cast<int32_t>(target.dims.size()), target.dims.data(), target.data,
                       target.bytes});
    tombolo_run_options raw = {};
    raw.struct_size = sizeof raw;
    raw.stop = options.stop != nullptr ? options.stop->raw() : nullptr;
    raw.time_limit_ms = options.time_limit_ms;
    raw.memory_limit = options.memory_limit;
    tombolo_outputs* outputs = nullptr;
    tombolo_error* error = nullptr;
    const tombolo_status status = tombolo_session_run_bound(
        raw_.get(), given.data(), given.size(), bound.data(), bound.size(), &raw, &outputs, &error);
    detail::check(status, error);
    return Outputs(outputs);
  }

 private:
  static tombolo_session_options raw_of(const SessionOptions& options) {
    tombolo_session_options raw = {};
    raw.struct_size = sizeof raw;
    raw.memory_limit = options.memory_limit;
    raw.time_limit_ms = options.time_limit_ms;
    raw.seed = options.seed;
    raw.deterministic = options.deterministic;
    raw.fast_math = options.fast_math;
    raw.reference = options.reference;
    raw.optimise = options.optimise + 1;
    if (!options.pack_cache.empty()) raw.pack_cache = options.pack_cache.c_str();
    return raw;
  }
  std::unique_ptr<tombolo_session, detail::Destroy> raw_;
};

}  // namespace interface_1
}  // namespace tombolo
#endif
