#include "formats/common/json_tensor.h"

#include <rapidjson/document.h>
#include <rapidjson/error/en.h>

#include <charconv>
#include <cmath>
#include <limits>

#include "base/json_quote.h"
#include "formats/common/json_view.h"

namespace tombolo {

namespace {

constexpr size_t kMaxArrayDepth = 32;

struct Reader {
  std::vector<int64_t> dims;
  std::vector<const rapidjson::Value*> leaves;

  Status visit(const rapidjson::Value& value, size_t depth) {
    if (!value.IsArray()) {
      if (depth != dims.size())
        return parse_error("the JSON arrays do not form a tensor: ragged nesting");
      leaves.push_back(&value);
      return ok();
    }
    if (depth >= kMaxArrayDepth) return parse_error("the JSON arrays nest too deeply");
    const auto size = static_cast<int64_t>(value.Size());
    if (depth == dims.size()) {
      if (!leaves.empty())
        return parse_error("the JSON arrays do not form a tensor: ragged nesting");
      dims.push_back(size);
    } else if (dims[depth] != size) {
      return parse_error("the JSON arrays do not form a tensor: lengths " +
                         std::to_string(dims[depth]) + " and " + std::to_string(size));
    }
    for (const auto& item : value.GetArray()) CHECK_OK(visit(item, depth + 1));
    return ok();
  }
};

Result<double> number_of(const rapidjson::Value& value) {
  if (value.IsNumber()) return value.GetDouble();
  if (value.IsBool()) return value.GetBool() ? 1.0 : 0.0;
  if (value.IsString()) {
    const std::string_view text(value.GetString(), value.GetStringLength());
    if (text == "NaN") return std::numeric_limits<double>::quiet_NaN();
    if (text == "Infinity") return std::numeric_limits<double>::infinity();
    if (text == "-Infinity") return -std::numeric_limits<double>::infinity();
  }
  return parse_error("a JSON value is neither a number nor \"NaN\", \"Infinity\" or \"-Infinity\"");
}

}  // namespace

Result<Tensor> tensor_from_json(std::string_view text, DType dtype) {
  std::string room;
  text = without_powers_of_zero(text, room);
  rapidjson::Document document;
  document.Parse<rapidjson::kParseIterativeFlag | rapidjson::kParseFullPrecisionFlag>(text.data(),
                                                                                      text.size());
  if (document.HasParseError())
    return parse_error(std::string("JSON: ") +
                       rapidjson::GetParseError_En(document.GetParseError()) + " at byte " +
                       std::to_string(document.GetErrorOffset()));
  Reader reader;
  CHECK_OK(reader.visit(document, 0));
  // An empty inner array fixes no further axes, and a leaf count that does not match the shape
  // cannot happen: visit() checked every level.
  if (dtype == DType::kUndefined) {
    dtype = DType::kInt64;
    for (const rapidjson::Value* leaf : reader.leaves) {
      if (leaf->IsString()) dtype = DType::kString;
      if (leaf->IsBool() && dtype == DType::kInt64) dtype = DType::kBool;
      if (leaf->IsNumber() && !leaf->IsInt64() && dtype != DType::kString) dtype = DType::kFloat32;
    }
    if (reader.leaves.empty()) dtype = DType::kFloat32;
  }
  if (is_complex(dtype)) return unsupported("complex tensors as JSON");
  TRY(Tensor tensor, Tensor::allocate(dtype, reader.dims));
  if (!tensor.is_string())
    for (std::byte& byte : tensor.mutable_bytes()) byte = std::byte{0};
  for (size_t i = 0; i < reader.leaves.size(); ++i) {
    const rapidjson::Value& leaf = *reader.leaves[i];
    const auto at = static_cast<int64_t>(i);
    if (tensor.is_string()) {
      if (!leaf.IsString()) return parse_error("a JSON value is not a string");
      tensor.strings()[i] = std::string(leaf.GetString(), leaf.GetStringLength());
      continue;
    }
    if (leaf.IsInt64() && !is_float(dtype)) {
      tensor.set_int64(at, leaf.GetInt64());
      if (tensor.get_int64(at) != leaf.GetInt64())
        return usage_error(std::to_string(leaf.GetInt64()) + " does not fit type " +
                           std::string(name_of(dtype)));
      continue;
    }
    if (leaf.IsUint64() && dtype == DType::kUInt64) {
      tensor.data<uint64_t>()[i] = leaf.GetUint64();
      continue;
    }
    TRY(double value, number_of(leaf));
    tensor.set_double(at, value);
    if (!is_float(dtype) && tensor.get_double(at) != value)
      return usage_error("the JSON number " + std::to_string(value) + " does not fit type " +
                         std::string(name_of(dtype)));
  }
  return tensor;
}

namespace {

void append_real(std::string& out, double value, bool narrow) {
  if (std::isnan(value)) {
    out += "\"NaN\"";
  } else if (std::isinf(value)) {
    out += value > 0 ? "\"Infinity\"" : "\"-Infinity\"";
  } else {
    char text[40];
    const auto result = narrow ? std::to_chars(text, text + sizeof text, static_cast<float>(value))
                               : std::to_chars(text, text + sizeof text, value);
    out.append(text, result.ptr);
  }
}

void append_element(std::string& out, const Tensor& tensor, int64_t index) {
  const DType dtype = tensor.dtype();
  if (tensor.is_string()) {
    out += json_quote(tensor.strings()[static_cast<size_t>(index)]);
  } else if (dtype == DType::kBool) {
    out += tensor.get_int64(index) != 0 ? "true" : "false";
  } else if (is_complex(dtype)) {
    const bool narrow = dtype == DType::kComplex64;
    out += '[';
    append_real(out,
                narrow ? static_cast<double>(tensor.data<float>()[2 * index])
                       : tensor.data<double>()[2 * index],
                narrow);
    out += ',';
    append_real(out,
                narrow ? static_cast<double>(tensor.data<float>()[2 * index + 1])
                       : tensor.data<double>()[2 * index + 1],
                narrow);
    out += ']';
  } else if (is_float(dtype)) {
    append_real(out, tensor.get_double(index), dtype != DType::kFloat64);
  } else if (dtype == DType::kUInt64) {
    out += std::to_string(static_cast<uint64_t>(tensor.get_int64(index)));
  } else {
    out += std::to_string(tensor.get_int64(index));
  }
}

void append_level(std::string& out, const Tensor& tensor, size_t axis, int64_t& index) {
  if (axis == tensor.rank()) return append_element(out, tensor, index++);
  out += '[';
  for (int64_t i = 0; i < tensor.dim(axis); ++i) {
    if (i != 0) out += ',';
    append_level(out, tensor, axis + 1, index);
  }
  out += ']';
}

}  // namespace

std::string tensor_to_json(const Tensor& tensor) {
  Tensor aligned = tensor;
  if (!aligned.aligned())
    if (auto copy = tensor.clone()) aligned = *std::move(copy);
  std::string out;
  int64_t index = 0;
  // A shape with a zero axis has no elements, whatever the axes before it say.
  if (tensor.size() == 0 && tensor.rank() > 0) return "[]";
  append_level(out, aligned, 0, index);
  return out;
}

}  // namespace tombolo
