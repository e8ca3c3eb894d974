#include "formats/common/npy.h"

#include <zlib.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <utility>

#include "base/bit_packing.h"
#include "base/utf8.h"
#include "formats/common/zip.h"

namespace tombolo {

namespace {

struct DescrRow {
  std::string_view code;  // kind and width of numpy's descr
  DType dtype;
};
constexpr DescrRow kDescrs[] = {
    {"f4", DType::kFloat32},   {"f8", DType::kFloat64},    {"f2", DType::kFloat16},
    {"i1", DType::kInt8},      {"i2", DType::kInt16},      {"i4", DType::kInt32},
    {"i8", DType::kInt64},     {"u1", DType::kUInt8},      {"u2", DType::kUInt16},
    {"u4", DType::kUInt32},    {"u8", DType::kUInt64},     {"b1", DType::kBool},
    {"c8", DType::kComplex64}, {"c16", DType::kComplex128}};

/// The header is the text of a Python dict of three known keys.
Result<NumpyArray> parse_header(std::string_view text) {
  NumpyArray header;
  auto after = [&](std::string_view key) -> std::string_view {
    const size_t at = text.find(key);
    if (at == std::string_view::npos) return {};
    std::string_view rest = text.substr(at + key.size());
    const size_t colon = rest.find(':');
    if (colon == std::string_view::npos) return {};
    rest.remove_prefix(colon + 1);
    while (!rest.empty() && rest.front() == ' ') rest.remove_prefix(1);
    return rest;
  };
  std::string_view descr = after("descr");
  if (descr.size() < 3 || (descr[0] != '\'' && descr[0] != '"'))
    return unsupported("structured NumPy arrays");
  const size_t quote = descr.find(descr[0], 1);
  if (quote == std::string_view::npos) return parse_error("the .npy header has no descr");
  header.descr = std::string(descr.substr(1, quote - 1));
  header.fortran = after("fortran_order").starts_with("True");
  std::string_view shape = after("shape");
  if (!shape.starts_with("(")) return parse_error("the .npy header has no shape");
  shape.remove_prefix(1);
  for (;;) {
    while (!shape.empty() && (shape.front() == ' ' || shape.front() == ',')) shape.remove_prefix(1);
    if (shape.empty()) return parse_error("the .npy header's shape does not end");
    if (shape.front() == ')') break;
    int64_t dim = 0;
    auto [end, code] = std::from_chars(shape.data(), shape.data() + shape.size(), dim);
    if (code != std::errc() || dim < 0)
      return parse_error("the .npy header's shape is not a tuple of sizes");
    shape.remove_prefix(static_cast<size_t>(end - shape.data()));
    if (shape.starts_with("L")) shape.remove_prefix(1);  // Python 2 longs
    header.shape.push_back(dim);
    if (header.shape.size() > 64) return parse_error("the .npy header's shape has too many axes");
  }
  return header;
}

std::vector<uint32_t> code_points(std::string_view text) {
  std::vector<uint32_t> points;
  for (size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i]);
    const size_t length = lead < 0x80    ? 1
                          : lead >= 0xF0 ? 4
                          : lead >= 0xE0 ? 3
                          : lead >= 0xC0 ? 2
                                         : 1;
    uint32_t code = length == 1 ? lead : lead & (0xFFu >> (length + 1));
    for (size_t k = 1; k < length && i + k < text.size(); ++k)
      code = code << 6 | (static_cast<unsigned char>(text[i + k]) & 0x3Fu);
    points.push_back(code);
    i += length;
  }
  return points;
}

/// Offset in elements of the Fortran-order element that comes `index`th in C order.
int64_t fortran_offset(std::span<const int64_t> dims, int64_t index) {
  int64_t offset = 0;
  std::vector<int64_t> at(dims.size());
  for (size_t axis = dims.size(); axis-- > 0;) {
    at[axis] = index % dims[axis];
    index /= dims[axis];
  }
  for (size_t axis = dims.size(); axis-- > 0;) offset = offset * dims[axis] + at[axis];
  return offset;
}

Result<Tensor> read_strings(std::string_view data, const NumpyArray& header, size_t width,
                            char kind, bool swap) {
  const int64_t count = element_count(header.shape);
  const size_t bytes = kind == 'U' ? width * 4 : width;
  TRY(Tensor tensor, Tensor::allocate(DType::kString, header.shape));
  for (int64_t i = 0; i < count; ++i) {
    const int64_t from = header.fortran ? fortran_offset(header.shape, i) : i;
    std::string_view cell = data.substr(static_cast<size_t>(from) * bytes, bytes);
    std::string& text = tensor.strings()[static_cast<size_t>(i)];
    if (kind == 'S') {
      while (!cell.empty() && cell.back() == '\0') cell.remove_suffix(1);
      text = std::string(cell);
      continue;
    }
    size_t used = width;  // trailing NULs are padding
    auto point = [&](size_t k) {
      uint32_t code;
      std::memcpy(&code, cell.data() + k * 4, 4);
      return swap ? __builtin_bswap32(code) : code;
    };
    while (used > 0 && point(used - 1) == 0) --used;
    for (size_t k = 0; k < used; ++k) append_utf8(text, point(k));
  }
  return tensor;
}

}  // namespace

Result<Tensor> read_npy(std::string_view bytes, std::shared_ptr<const void> owner) {
  if (!bytes.starts_with("\x93NUMPY") || bytes.size() < 10)
    return parse_error("not a .npy file (no NumPy magic)");
  const auto major = static_cast<unsigned char>(bytes[6]);
  const size_t length_bytes = major == 1 ? 2 : 4;
  if (major < 1 || major > 3 || bytes.size() < 8 + length_bytes)
    return parse_error("the .npy file has the unknown version " + std::to_string(major));
  size_t header_size = 0;
  for (size_t i = 0; i < length_bytes; ++i)
    header_size |= static_cast<size_t>(static_cast<unsigned char>(bytes[8 + i])) << (8 * i);
  if (header_size > bytes.size() - 8 - length_bytes || header_size > (1 << 20))
    return parse_error("the .npy header runs past the end of the file");
  TRY(NumpyArray header, parse_header(bytes.substr(8 + length_bytes, header_size)));
  return read_numpy_array(header, bytes.substr(8 + length_bytes + header_size), std::move(owner));
}

Result<Tensor> read_numpy_array(const NumpyArray& header, std::string_view data,
                                std::shared_ptr<const void> owner) {
  const int64_t count = element_count(header.shape);
  if (count < 0) return parse_error("the .npy file's shape is impossible");

  if (header.descr.size() < 2) return unsupported("structured NumPy arrays");
  const char order = header.descr[0];
  const bool swap = order == '>';
  std::string_view code = std::string_view(header.descr).substr(1);
  if (code.starts_with("U") || code.starts_with("S")) {
    size_t width = 0;
    auto [end, error] = std::from_chars(code.data() + 1, code.data() + code.size(), width);
    if (error != std::errc() || width > (size_t{1} << 28))
      return parse_error("the .npy descr \"" + header.descr + "\" is malformed");
    const size_t cell = code[0] == 'U' ? width * 4 : width;
    if (cell != 0 && static_cast<uint64_t>(count) > data.size() / cell)
      return parse_error("the .npy file ends before its data");
    // Empty text takes no bytes: bound what the shape alone may ask for.
    if (cell == 0 && count > (1 << 24)) return parse_error("the .npy file's shape is impossible");
    return read_strings(data, header, width, code[0], swap);
  }
  DType dtype = DType::kUndefined;
  for (const DescrRow& row : kDescrs)
    if (row.code == code) dtype = row.dtype;
  if (code == "V2") dtype = DType::kUInt16;  // bfloat16 as some libraries save it
  if (code == "V1") dtype = DType::kUInt8;   // float8 likewise
  if (dtype == DType::kUndefined)
    return unsupported("NumPy arrays of type \"" + header.descr + "\"")
        .with_help(code.starts_with("O") ? "save without Python objects (allow_pickle=False)" : "");
  const size_t width = bytes_of(dtype);
  if (static_cast<uint64_t>(count) > data.size() / width)
    return parse_error("the .npy file ends before its data");
  const auto payload = std::as_bytes(std::span(data.data(), static_cast<size_t>(count) * width));
  if (!swap && (!header.fortran || header.shape.size() < 2))
    return Tensor::view(dtype, header.shape, payload, std::move(owner));

  TRY(Tensor tensor, Tensor::allocate(dtype, header.shape));
  const size_t lane = is_complex(dtype) ? width / 2 : width;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t from = header.fortran ? fortran_offset(header.shape, i) : i;
    std::byte* out = tensor.mutable_bytes().data() + static_cast<size_t>(i) * width;
    std::memcpy(out, payload.data() + static_cast<size_t>(from) * width, width);
    if (swap)
      for (size_t k = 0; k < width; k += lane) std::reverse(out + k, out + k + lane);
  }
  return tensor;
}

namespace {

/// The unsigned integer type that carries a type NumPy lacks; kUndefined where NumPy has it.
DType carrier_of(DType dtype) {
  switch (dtype) {
    case DType::kBFloat16:
      return DType::kUInt16;
    case DType::kFloat8E4M3FN:
    case DType::kFloat8E4M3FNUZ:
    case DType::kFloat8E5M2:
    case DType::kFloat8E5M2FNUZ:
    case DType::kFloat8E8M0:
      return DType::kUInt8;
    default:
      return is_sub_byte(dtype) ? DType::kUInt8 : DType::kUndefined;
  }
}

/// The tensor as NumPy can hold it.
Result<Tensor> to_carrier(const Tensor& tensor) {
  const DType carrier = carrier_of(tensor.dtype());
  if (carrier == DType::kUndefined) return tensor;
  if (!is_sub_byte(tensor.dtype())) return tensor.reinterpreted(carrier);
  TRY(Tensor out, Tensor::allocate(DType::kUInt8, tensor.dims()));
  unpack_codes(tensor.data<uint8_t>(), bits_of(tensor.dtype()), static_cast<size_t>(tensor.size()),
               out.data<uint8_t>());
  // int4 and int2 travel as two's-complement bytes would: sign-extended reads the same either way.
  return out;
}

constexpr std::string_view kDTypesMember = "__dtypes__.json";

/// {"NAME":"bfloat16"}: a flat object of strings, written by us or by hand.
Result<std::map<std::string, DType>> parse_dtypes(std::string_view text) {
  std::map<std::string, DType> types;
  size_t at = 0;
  auto next_string = [&]() -> Result<std::string> {
    at = text.find('"', at);
    if (at == std::string_view::npos) return std::string();
    std::string out;
    for (++at; at < text.size() && text[at] != '"'; ++at) {
      if (text[at] == '\\' && at + 1 < text.size()) ++at;
      out += text[at];
    }
    if (at >= text.size()) return parse_error("__dtypes__.json is malformed");
    ++at;
    return out;
  };
  while (text.find('"', at) != std::string_view::npos) {
    TRY(std::string name, next_string());
    TRY(std::string type, next_string());
    auto dtype = dtype_from_user_name(type);
    if (!dtype)
      return parse_error("__dtypes__.json gives \"" + name + "\" the unknown type \"" + type +
                         "\"");
    types[name] = *dtype;
  }
  return types;
}

}  // namespace

Result<Tensor> from_numpy_carrier(Tensor tensor, DType dtype) {
  const DType carrier = carrier_of(dtype);
  if (carrier == DType::kUndefined || tensor.dtype() == dtype) return tensor;
  const bool signed_byte = tensor.dtype() == DType::kInt8 && carrier == DType::kUInt8;
  if (tensor.dtype() != carrier && !signed_byte) return tensor;
  if (!is_sub_byte(dtype)) return tensor.reinterpreted(dtype);
  TRY(Tensor out, Tensor::allocate(dtype, tensor.dims()));
  pack_codes(tensor.data<uint8_t>(), bits_of(dtype), static_cast<size_t>(tensor.size()),
             out.data<uint8_t>());
  return out;
}

Result<std::vector<NamedTensor>> read_npz(const MappedFile& file) {
  std::vector<NamedTensor> tensors;
  if (file.size() == 0) return tensors;
  TRY(ZipArchive archive, ZipArchive::open(file.bytes(), file.owner()));
  std::map<std::string, DType> types;
  for (const ZipArchive::Member& member : archive.members()) {
    TRY(Blob content, archive.read(member));
    if (member.name == kDTypesMember) {
      TRY(types, parse_dtypes(content.text()));
      continue;
    }
    std::string name = member.name;
    if (name.ends_with(".npy")) name.resize(name.size() - 4);
    auto tensor = read_npy(content.text(), content.owner);
    if (!tensor) return std::move(tensor).error().at("member \"" + member.name + "\"");
    tensors.push_back({std::move(name), *std::move(tensor)});
  }
  for (NamedTensor& named : tensors)
    if (auto found = types.find(named.name); found != types.end()) {
      TRY(named.tensor, from_numpy_carrier(std::move(named.tensor), found->second));
    }
  return tensors;
}

std::string npy_header(const Tensor& tensor) {
  std::string descr;
  if (tensor.is_string()) {
    size_t width = 1;
    for (const std::string& text : tensor.strings())
      width = std::max(width, code_points(text).size());
    descr = "<U" + std::to_string(width);
  } else {
    for (const DescrRow& row : kDescrs)
      if (row.dtype == tensor.dtype())
        descr = (bytes_of(row.dtype) == 1 ? "|" : "<") + std::string(row.code);
  }
  std::string text = "{'descr': '" + descr + "', 'fortran_order': False, 'shape': (";
  for (size_t axis = 0; axis < tensor.rank(); ++axis)
    text += (axis == 0 ? "" : ", ") + std::to_string(tensor.dim(axis));
  text += tensor.rank() == 1 ? ",), }" : "), }";
  while ((10 + text.size() + 1) % 64 != 0) text += ' ';
  text += '\n';
  std::string header = "\x93NUMPY";
  header += '\x01';
  header += '\0';
  header += static_cast<char>(text.size() & 0xFF);
  header += static_cast<char>(text.size() >> 8);
  return header + text;
}

namespace {

/// Gives the bytes of a .npy file in pieces: header, then data.
Status npy_pieces(const Tensor& given, auto&& sink) {
  TRY(Tensor tensor, to_carrier(given));
  const std::string header = npy_header(tensor);
  CHECK_OK(sink(std::string_view(header)));
  if (!tensor.is_string())
    return sink(std::string_view(reinterpret_cast<const char*>(tensor.bytes().data()),
                                 tensor.bytes().size()));
  size_t width = 1;
  for (const std::string& text : tensor.strings())
    width = std::max(width, code_points(text).size());
  for (const std::string& text : tensor.strings()) {
    std::vector<uint32_t> points = code_points(text);
    points.resize(width);
    CHECK_OK(sink(std::string_view(reinterpret_cast<const char*>(points.data()), width * 4)));
  }
  return ok();
}

template <typename T>
void put(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

struct Entry {
  std::string name;
  uint32_t crc;
  uint64_t size, offset;
};

/// A local or central zip header; sizes always in the zip64 extra field, as NumPy writes them.
std::string zip_header(const Entry& entry, bool central) {
  std::string out;
  put<uint32_t>(out, central ? 0x02014B50 : 0x04034B50);
  if (central) put<uint16_t>(out, 45);
  put<uint16_t>(out, 45);       // version needed: zip64
  put<uint16_t>(out, 1 << 11);  // names are UTF-8
  put<uint16_t>(out, 0);        // stored
  put<uint16_t>(out, 0);        // time: fixed, so that equal tensors give equal files
  put<uint16_t>(out, 33);       // date: 1980-01-01
  put<uint32_t>(out, entry.crc);
  put<uint32_t>(out, 0xFFFFFFFF);
  put<uint32_t>(out, 0xFFFFFFFF);
  put<uint16_t>(out, static_cast<uint16_t>(entry.name.size()));
  put<uint16_t>(out, central ? 28 : 20);
  if (central) {
    put<uint16_t>(out, 0);  // comment
    put<uint16_t>(out, 0);  // disk
    put<uint16_t>(out, 0);
    put<uint32_t>(out, 0);
    put<uint32_t>(out, 0xFFFFFFFF);  // offset
  }
  out += entry.name;
  put<uint16_t>(out, 1);  // the zip64 field
  put<uint16_t>(out, central ? 24 : 16);
  put<uint64_t>(out, entry.size);
  put<uint64_t>(out, entry.size);
  if (central) put<uint64_t>(out, entry.offset);
  return out;
}

}  // namespace

Status write_npy(const Tensor& tensor, OutputFile& out) {
  return npy_pieces(tensor, [&](std::string_view piece) { return out.write(piece); });
}

Status write_npz(const std::vector<NamedTensor>& tensors, OutputFile& out) {
  std::vector<Entry> entries;
  std::string types;
  auto add = [&](const std::string& name, auto&& produce) -> Status {
    if (name.size() > 0xFFFF)
      return unsupported("a name of " + std::to_string(name.size()) + " bytes in an .npz");
    Entry entry{name, 0, 0, out.position()};
    // The checksum stands before the data: a first pass computes it.
    CHECK_OK(produce([&](std::string_view piece) {
      for (size_t at = 0; at < piece.size(); at += 1u << 30) {
        const std::string_view part = piece.substr(at, 1u << 30);
        entry.crc =
            static_cast<uint32_t>(crc32(entry.crc, reinterpret_cast<const Bytef*>(part.data()),
                                        static_cast<uInt>(part.size())));
      }
      entry.size += piece.size();
      return ok();
    }));
    CHECK_OK(out.write(zip_header(entry, false)));
    CHECK_OK(produce([&](std::string_view piece) { return out.write(piece); }));
    entries.push_back(std::move(entry));
    return ok();
  };
  for (const NamedTensor& named : tensors) {
    if (carrier_of(named.tensor.dtype()) != DType::kUndefined) {
      std::string quoted;
      for (char c : named.name)
        quoted += c == '"' || c == '\\' ? std::string("\\") + c : std::string(1, c);
      types += (types.empty() ? "{\"" : ",\"") + quoted + "\":\"" +
               std::string(name_of(named.tensor.dtype())) + "\"";
    }
    CHECK_OK(add(named.name + ".npy", [&](auto&& sink) { return npy_pieces(named.tensor, sink); }));
  }
  if (!types.empty()) {
    types += "}";
    CHECK_OK(add(std::string(kDTypesMember),
                 [&](auto&& sink) { return sink(std::string_view(types)); }));
  }
  const uint64_t directory = out.position();
  for (const Entry& entry : entries) CHECK_OK(out.write(zip_header(entry, true)));
  const uint64_t directory_size = out.position() - directory;
  std::string end;
  put<uint32_t>(end, 0x06064B50);  // zip64 end of central directory
  put<uint64_t>(end, 44);
  put<uint16_t>(end, 45);
  put<uint16_t>(end, 45);
  put<uint32_t>(end, 0);
  put<uint32_t>(end, 0);
  put<uint64_t>(end, entries.size());
  put<uint64_t>(end, entries.size());
  put<uint64_t>(end, directory_size);
  put<uint64_t>(end, directory);
  put<uint32_t>(end, 0x07064B50);  // its locator
  put<uint32_t>(end, 0);
  put<uint64_t>(end, directory + directory_size);
  put<uint32_t>(end, 1);
  put<uint32_t>(end, 0x06054B50);  // end of central directory
  put<uint32_t>(end, 0);
  put<uint16_t>(end, entries.size() > 0xFFFF ? 0xFFFF : static_cast<uint16_t>(entries.size()));
  put<uint16_t>(end, entries.size() > 0xFFFF ? 0xFFFF : static_cast<uint16_t>(entries.size()));
  put<uint32_t>(end, 0xFFFFFFFF);
  put<uint32_t>(end, 0xFFFFFFFF);
  put<uint16_t>(end, 0);
  return out.write(end);
}

}  // namespace tombolo
