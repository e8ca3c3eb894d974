#include "formats/common/numpy_pickle.h"

#include <charconv>

namespace tombolo {

namespace {

using Kind = PickleValue::Kind;

constexpr std::string_view kArrayModules[] = {"numpy.core.multiarray", "numpy._core.multiarray",
                                              "numpy.core.numeric", "numpy._core.numeric",
                                              "numpy.ma.core"};

bool is_call(const PickleValue& value, std::string_view name) {
  if (!value.is(Kind::kObject) || value.callable == nullptr || value.callable->text != name)
    return false;
  for (const std::string_view module : kArrayModules)
    if (value.callable->module == module) return true;
  return false;
}

/// numpy.dtype("f4", False, True) with the state (3, "<", ...), or numpy.dtype[float32] types.
Result<std::string> descr_of(const PickleValue* dtype) {
  if (dtype == nullptr || !dtype->is_object_of("numpy", "dtype"))
    return parse_error("an array without an element type");
  const PickleValue* code = dtype->at(0);
  if (code == nullptr || !code->is_text())
    return unsupported("an array whose element type is a Python class");
  char order = '|';
  if (dtype->state != nullptr) {
    const PickleValue* mark = dtype->state->at(1);
    if (mark != nullptr && mark->is_text() && mark->text.size() == 1) order = mark->text[0];
  }
  std::string text(code->text);
  if (!text.empty() && (text[0] == '<' || text[0] == '>' || text[0] == '|' || text[0] == '=')) {
    order = text[0];
    text.erase(0, 1);
  }
  text.insert(text.begin(), order);
  return text;
}

/// Bytes of one element; 0 where the descr does not say.
uint64_t item_size(std::string_view descr) {
  uint64_t size = 0;
  const std::string_view digits = descr.size() > 2 ? descr.substr(2) : std::string_view();
  std::from_chars(digits.data(), digits.data() + digits.size(), size);
  return descr.size() > 1 && descr[1] == 'U' ? size * 4 : size;
}

Result<Tensor> from_parts(const PickleValue* dtype, const PickleValue* shape, bool fortran,
                          const PickleValue* data, const std::shared_ptr<const void>& owner) {
  NumpyArray array;
  TRY(array.descr, descr_of(dtype));
  if (array.descr.find('O') != std::string::npos)
    return unsupported("a NumPy array of Python objects");
  const auto dims = shape ? shape->as_ints() : std::nullopt;
  if (!dims || data == nullptr || (!data->is(Kind::kBytes) && !data->is_text()))
    return parse_error("a NumPy array that is incomplete");
  array.shape = *dims;
  array.fortran = fortran;
  return read_numpy_array(array, data->text, owner);
}

}  // namespace

Result<PickledArray> joblib_array(const PickleValue& state) {
  PickledArray result;
  TRY(result.array.descr, descr_of(state.find("dtype")));
  result.is_object = result.array.descr.find('O') != std::string::npos;
  const PickleValue* shape = state.find("shape");
  const auto dims = shape ? shape->as_ints() : std::nullopt;
  const int64_t count = dims ? element_count(*dims) : -1;
  if (count < 0) return parse_error("a joblib array without a shape");
  result.array.shape = *dims;
  const PickleValue* order = state.find("order");
  result.array.fortran = order != nullptr && order->is_text() && order->text == "F";
  const uint64_t width = item_size(result.array.descr);
  if (width != 0 && static_cast<uint64_t>(count) > UINT64_MAX / 4 / width)
    return parse_error("a joblib array with an impossible shape");
  result.bytes = static_cast<uint64_t>(count) * width;
  return result;
}

bool is_numpy_array(const PickleValue& value) {
  return is_call(value, "_reconstruct") || is_call(value, "scalar") ||
         is_call(value, "_frombuffer") ||
         value.is_object_of("joblib.numpy_pickle", "NumpyArrayWrapper");
}

Result<Tensor> numpy_tensor(const PickleValue& value, const std::shared_ptr<const void>& owner) {
  if (value.is_object_of("joblib.numpy_pickle", "NumpyArrayWrapper") && value.state) {
    TRY(PickledArray header, joblib_array(*value.state));
    return read_numpy_array(header.array, value.text, owner);
  }
  if (is_call(value, "scalar")) {
    PickleValue shape;
    shape.kind = Kind::kTuple;
    return from_parts(value.at(0), &shape, false, value.at(1), owner);
  }
  if (is_call(value, "_frombuffer")) {
    const PickleValue* order = value.at(3);
    return from_parts(value.at(1), value.at(2),
                      order != nullptr && order->is_text() && order->text == "F", value.at(0),
                      owner);
  }
  // (version, shape, dtype, Fortran order, data)
  if (value.state == nullptr || value.state->items.size() < 5)
    return parse_error("a NumPy array that is incomplete");
  const PickleValue& state = *value.state;
  const PickleValue* fortran = state.at(3);
  return from_parts(state.at(2), state.at(1), fortran->as_int().value_or(0) != 0, state.at(4),
                    owner);
}

}  // namespace tombolo
