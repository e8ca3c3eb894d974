#include "cli/tensor_io.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>

#include "base/image.h"
#include "base/mapped_file.h"
#include "formats/common/json_tensor.h"
#include "onnx/tensor_file.h"
#include "ops/kernel_context.h"

namespace tombolo::cli {

std::optional<NamedShape> parse_named_shape(std::string_view text) {
  NamedShape shape;
  std::string_view sizes;
  if (text.ends_with("]")) {
    const size_t open = text.rfind('[');
    if (open == std::string_view::npos || open == 0) return std::nullopt;
    shape.name = std::string(text.substr(0, open));
    sizes = text.substr(open + 1, text.size() - open - 2);
  } else {
    const size_t colon = text.rfind(':');
    if (colon == std::string_view::npos || colon == 0) return std::nullopt;
    shape.name = std::string(text.substr(0, colon));
    sizes = text.substr(colon + 1);
  }
  while (!sizes.empty()) {
    int64_t dim = 0;
    auto [end, code] = std::from_chars(sizes.data(), sizes.data() + sizes.size(), dim);
    if (code != std::errc() || dim < 0) return std::nullopt;
    shape.dims.push_back(dim);
    sizes.remove_prefix(static_cast<size_t>(end - sizes.data()));
    if (sizes.empty()) break;
    if (sizes.front() != 'x' && sizes.front() != ',' && sizes.front() != 'X') return std::nullopt;
    sizes.remove_prefix(1);
    if (sizes.empty()) return std::nullopt;
  }
  return shape;
}

namespace {

DType declared_dtype(const SessionPort& port) {
  const Type* type = port.type;
  while (type != nullptr && !type->is_tensor()) type = type->element;
  return type != nullptr ? type->dtype() : DType::kUndefined;
}

Result<Tensor> image_tensor(std::string_view bytes, const SessionPort& port,
                            const ImageOptions& options) {
  const Type* type = port.type;
  if (type == nullptr || !type->is_tensor() || !type->has_shape || type->dims.size() < 2 ||
      type->dims.size() > 4)
    return usage_error("input \"" + port.name + "\" does not declare a picture's shape")
        .with_help("give it as .npy instead");
  // The channel axis is the one of size 1 or 3: [N,C,H,W], [N,H,W,C], [C,H,W], [H,W,C], [N,H,W],
  // [H,W].
  const size_t rank = type->dims.size();
  auto fixed = [&](size_t axis) {
    return type->dims[axis].kind == Dim::Kind::kValue ? type->dims[axis].value : -1;
  };
  auto is_channel = [&](size_t axis) { return fixed(axis) == 1 || fixed(axis) == 3; };
  const size_t first = rank == 4 ? 1 : 0;
  bool channels_first = rank >= 3 && is_channel(first);
  bool channels_last = rank >= 3 && !channels_first && is_channel(rank - 1);
  if (rank == 4 && !channels_first && !channels_last)
    return usage_error("input \"" + port.name + "\" of type " + to_string(*type) +
                       " has no axis of 1 or 3 channels")
        .with_help("give it as .npy instead");
  const int channels = channels_first  ? static_cast<int>(fixed(first))
                       : channels_last ? static_cast<int>(fixed(rank - 1))
                                       : 1;
  TRY(Image image, decode_image(bytes, channels));

  std::vector<int64_t> dims;
  if (rank == 4) dims.push_back(1);
  if (channels_first) dims.push_back(channels);
  if (rank == 3 && !channels_first && !channels_last) dims.push_back(1);
  dims.push_back(image.height);
  dims.push_back(image.width);
  if (channels_last) dims.push_back(channels);
  for (size_t axis = rank == 4 ? 1 : 0; axis < rank; ++axis)
    if (fixed(axis) >= 0 && fixed(axis) != dims[axis])
      return usage_error("input \"" + port.name + "\" must be " + to_string(*type) +
                         ", the picture is " + std::to_string(image.width) + "x" +
                         std::to_string(image.height))
          .with_help("resize the picture first");

  const DType dtype = type->dtype();
  TRY(Tensor tensor, Tensor::allocate(dtype, dims));
  if (tensor.is_string() || is_complex(dtype))
    return usage_error("input \"" + port.name + "\" is no picture");
  const int64_t plane = static_cast<int64_t>(image.width) * image.height;
  for (int64_t at = 0; at < plane; ++at)
    for (int64_t c = 0; c < channels; ++c) {
      double value = image.pixels[static_cast<size_t>(at * channels + c)];
      if (is_float(dtype)) {
        // In float, as every framework computes it: the model saw exactly these values.
        float scaled = static_cast<float>(value) / 255.0f;
        const auto k = static_cast<size_t>(c);
        if (!options.mean.empty())
          scaled -= static_cast<float>(options.mean[std::min(k, options.mean.size() - 1)]);
        if (!options.std.empty())
          scaled /= static_cast<float>(options.std[std::min(k, options.std.size() - 1)]);
        value = scaled;
      }
      tensor.set_double(channels_first ? c * plane + at : at * channels + c, value);
    }
  return tensor;
}

bool has_extension(const std::string& path, std::string_view extension) {
  if (path.size() < extension.size()) return false;
  std::string tail = path.substr(path.size() - extension.size());
  std::transform(tail.begin(), tail.end(), tail.begin(),
                 [](unsigned char c) { return std::tolower(c); });
  return tail == extension;
}

/// The same numbers as `dtype`, when none changes.
Result<Tensor> cast_exactly(const Tensor& tensor, DType dtype, const std::string& name) {
  auto refuse = [&](const std::string& why) {
    return usage_error("input \"" + name + "\" must be of type " + std::string(name_of(dtype)) +
                       ", is " + to_string(tensor) + why);
  };
  if (tensor.is_string() || dtype == DType::kString || is_complex(tensor.dtype()) ||
      is_complex(dtype))
    return refuse("");
  TRY(Tensor out, Tensor::allocate(dtype, tensor.dims()));
  auto bytes = out.mutable_bytes();
  std::fill(bytes.begin(), bytes.end(), std::byte{0});
  for (int64_t i = 0; i < tensor.size(); ++i) {
    bool exact;
    if (is_float(tensor.dtype()) || is_float(dtype)) {
      const double value = tensor.get_double(i);
      out.set_double(i, value);
      const double back = out.get_double(i);
      exact = back == value || (std::isnan(back) && std::isnan(value));
      // int64 and uint64 beyond 2^53 do not survive the way through a double.
      if (!is_float(tensor.dtype()))
        exact = exact && static_cast<int64_t>(back) == tensor.get_int64(i);
    } else {
      out.set_int64(i, tensor.get_int64(i));
      exact = out.get_int64(i) == tensor.get_int64(i) &&
              (out.get_double(i) < 0) == (tensor.get_double(i) < 0);
    }
    if (!exact) return refuse(", and element " + std::to_string(i) + " does not fit exactly");
  }
  return out;
}

}  // namespace

Result<RunValue> fit(Tensor tensor, const SessionPort& port) {
  const DType dtype = declared_dtype(port);
  if (dtype != DType::kUndefined && tensor.dtype() != dtype) {
    TRY(tensor, from_numpy_carrier(std::move(tensor), dtype));
    if (!tensor.aligned()) {
      TRY(tensor, tensor.clone());
    }
    if (tensor.dtype() != dtype) {
      TRY(tensor, cast_exactly(tensor, dtype, port.name));
    }
  }
  if (port.type != nullptr && port.type->kind == Type::Kind::kOptional)
    return RunValue::optional_of(RunValue(std::move(tensor)));
  return RunValue(std::move(tensor));
}

Result<RunValue> read_value(const std::string& path, const SessionPort& port,
                            const ImageOptions& options) {
  auto at = [&](Error error) { return std::move(error).at("file \"" + path + "\""); };
  if (has_extension(path, ".pb")) {
    auto value = load_tensor_file(path, port.type);
    if (!value) return at(std::move(value).error());
    return value;
  }
  TRY(MappedFile file, MappedFile::open(path));
  Result<Tensor> tensor = unsupported("input files other than .npy, .pb, .png, .jpg and .json");
  if (has_extension(path, ".npy"))
    tensor = read_npy(file.text(), file.owner());
  else if (has_extension(path, ".json"))
    tensor = tensor_from_json(file.text(), declared_dtype(port));
  else if (has_extension(path, ".png") || has_extension(path, ".jpg") ||
           has_extension(path, ".jpeg"))
    tensor = image_tensor(file.text(), port, options);
  if (!tensor) return at(std::move(tensor).error());
  return fit(*std::move(tensor), port);
}

Result<std::vector<NamedValue>> bind_inputs(std::vector<NamedTensor> tensors,
                                            const Session& session, std::string_view prefix) {
  std::vector<NamedValue> values;
  std::vector<SequenceValue> sequences(session.inputs().size());
  auto position = [&](const std::string& name) -> std::optional<size_t> {
    if (!name.starts_with(prefix)) return std::nullopt;
    size_t index = 0;
    const char* begin = name.data() + prefix.size();
    auto [end, code] = std::from_chars(begin, name.data() + name.size(), index);
    if (code != std::errc() || end != name.data() + name.size() || begin == end)
      return std::nullopt;
    return index;
  };
  for (NamedTensor& named : tensors) {
    const SessionPort* port = nullptr;
    bool item = false;
    for (const SessionPort& candidate : session.inputs())
      if (candidate.name == named.name) port = &candidate;
    if (port == nullptr) {  // NAME.k: an item of a sequence
      const size_t dot = named.name.rfind('.');
      if (dot != std::string::npos)
        for (const SessionPort& candidate : session.inputs())
          if (named.name.compare(0, dot, candidate.name) == 0 && candidate.type != nullptr &&
              candidate.type->kind == Type::Kind::kSequence) {
            port = &candidate;
            item = true;
          }
    }
    if (port == nullptr)
      if (auto index = position(named.name)) {
        if (*index >= session.inputs().size())
          return usage_error("the file gives " + named.name + ", the model has " +
                             std::to_string(session.inputs().size()) + " inputs");
        port = &session.inputs()[*index];
      }
    if (port == nullptr) {
      std::string names;
      for (const SessionPort& known : session.inputs())
        names += (names.empty() ? "" : ", ") + known.name;
      return usage_error("the model has no input \"" + named.name + "\"")
          .with_help("its inputs are: " + names);
    }
    if (item) {
      SequenceValue& sequence = sequences[static_cast<size_t>(port - session.inputs().data())];
      TRY(RunValue value, fit(std::move(named.tensor), *port));
      sequence.elem = value.tensor().dtype();
      sequence.items.push_back(std::move(value));
      continue;
    }
    TRY(RunValue value, fit(std::move(named.tensor), *port));
    values.push_back({port->name, std::move(value)});
  }
  for (size_t i = 0; i < sequences.size(); ++i)
    if (!sequences[i].items.empty())
      values.push_back({session.inputs()[i].name, RunValue(std::move(sequences[i]))});
  return values;
}

Result<RunValue> random_value(const SessionPort& port, const std::vector<int64_t>* dims,
                              uint64_t seed) {
  if (port.type == nullptr || !port.type->is_tensor())
    return usage_error("input \"" + port.name +
                       "\" is no tensor: random values cannot be made for it");
  std::vector<int64_t> shape;
  if (dims != nullptr) {
    shape = *dims;
  } else {
    if (!port.type->has_shape)
      return usage_error("input \"" + port.name + "\" declares no shape")
          .with_help("give one: --input " + port.name + ":1x3x224x224");
    for (const Dim& dim : port.type->dims)
      shape.push_back(dim.kind == Dim::Kind::kValue ? dim.value : 1);
  }
  const DType dtype = port.type->dtype();
  if (auto bytes =
          packed_bytes(dtype, static_cast<uint64_t>(std::max<int64_t>(element_count(shape), 0)));
      bytes && *bytes > default_memory_limit())
    return resource_error("input \"" + port.name + "\" of shape " + dims_to_string(shape) +
                          " needs " + std::to_string(*bytes) + " bytes");
  TRY(Tensor tensor, Tensor::allocate(dtype, shape));
  RandomStream stream = RandomStream::seeded(seed);
  for (int64_t i = 0; i < tensor.size(); ++i) {
    if (tensor.is_string())
      tensor.strings()[static_cast<size_t>(i)] =
          std::string(1, static_cast<char>('a' + stream.next() % 10));
    else if (is_complex(dtype))
      for (int64_t part = 2 * i; part < 2 * i + 2; ++part)
        dtype == DType::kComplex64
            ? void(tensor.data<float>()[part] = static_cast<float>(stream.next_normal()))
            : void(tensor.data<double>()[part] = stream.next_normal());
    else if (is_float(dtype))
      tensor.set_double(i, stream.next_normal());
    else
      tensor.set_int64(
          i, static_cast<int64_t>(stream.next() % (dtype == DType::kBool || bits_of(dtype) < 4 ? 2
                                                   : bits_of(dtype) == 4                       ? 8
                                                                         : 10)));
  }
  return RunValue(std::move(tensor));
}

Result<Tensor> concatenate(const std::vector<Tensor>& tensors) {
  if (tensors.size() == 1) return tensors[0];
  Dims dims = tensors[0].dims();
  if (dims.empty()) return usage_error("scalars cannot be stacked");
  dims[0] = 0;
  for (const Tensor& tensor : tensors) {
    Dims rest = tensor.dims();
    if (tensor.dtype() != tensors[0].dtype() || rest.size() != dims.size() || tensor.is_string() ||
        is_sub_byte(tensor.dtype()))
      return usage_error("inputs of different types or ranks cannot be stacked");
    for (size_t axis = 1; axis < dims.size(); ++axis)
      if (rest[axis] != dims[axis])
        return usage_error("inputs of shapes " + dims_to_string(tensors[0].dims()) + " and " +
                           dims_to_string(rest) + " cannot be stacked");
    dims[0] += rest[0];
  }
  TRY(Tensor out, Tensor::allocate(tensors[0].dtype(), dims));
  std::byte* at = out.mutable_bytes().data();
  for (const Tensor& tensor : tensors) {
    std::memcpy(at, tensor.bytes().data(), tensor.bytes().size());
    at += tensor.bytes().size();
  }
  return out;
}

}  // namespace tombolo::cli
