// The values of HDF5 datasets and attributes: contiguous, chunked and compressed.

#include <zlib.h>

#include <algorithm>
#include <bit>

#include "formats/common/hdf5_messages.h"

namespace tombolo {
namespace {

constexpr int kMaxChunkDepth = 32;
/// zlib's best case is 1032 to 1: what claims more is damaged.
constexpr uint64_t kMaxFilterExpansion = 1040;

Error damaged(const char* what) { return parse_error(std::string("damaged HDF5 ") + what); }

void swap_bytes(std::span<std::byte> data, size_t width) {
  for (size_t i = 0; i + width <= data.size(); i += width) {
    std::reverse(data.begin() + static_cast<ptrdiff_t>(i),
                 data.begin() + static_cast<ptrdiff_t>(i + width));
  }
}

/// Deflate with the zlib header; the size of the result is known.
Status inflate_exactly(std::span<const std::byte> in, std::span<std::byte> out) {
  z_stream stream{};
  if (inflateInit(&stream) != Z_OK) return resource_error("zlib cannot start");
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(in.data()));
  stream.avail_in = static_cast<uInt>(in.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  const int code = inflate(&stream, Z_FINISH);
  const bool done = code == Z_STREAM_END && stream.avail_out == 0;
  inflateEnd(&stream);
  return done ? ok() : Status(damaged("chunk: it does not decompress"));
}

/// Undoes shuffle: byte k of all elements, then byte k + 1 of all.
void unshuffle(std::span<const std::byte> in, std::span<std::byte> out, size_t width) {
  const size_t count = in.size() / width;
  for (size_t k = 0; k < width; ++k)
    for (size_t i = 0; i < count; ++i) out[i * width + k] = in[k * count + i];
  std::copy(in.begin() + static_cast<ptrdiff_t>(count * width), in.end(),
            out.begin() + static_cast<ptrdiff_t>(count * width));
}

/// The element type as a tensor's, kUndefined when there is none.
DType tensor_type(const Hdf5Type& type) {
  if (type.kind == Hdf5Type::Kind::kNumber) return type.dtype;
  if (type.kind == Hdf5Type::Kind::kOpaque && type.size == 2) return DType::kBFloat16;
  return DType::kUndefined;
}

}  // namespace

Result<std::string> Hdf5File::variable_string(ByteReader& in) {
  const uint32_t size = in.u32();
  const uint64_t collection = offset(in);
  const uint32_t index = in.u32();
  if (!in.ok()) return damaged("string");
  if (size == 0 || collection == 0 || undefined(collection)) return std::string();
  ByteReader head = at(collection);
  head.expect("GCOL");
  head.skip(4);
  const uint64_t total = length(head);
  ByteReader heap = at(collection, total);
  heap.skip(8 + length_size_);
  while (heap.ok() && heap.left() >= 8 + length_size_) {
    if (!spend()) return parse_error("the HDF5 file refers to itself in a circle");
    const uint16_t id = heap.u16();
    heap.skip(6);
    const uint64_t bytes = length(heap);
    if (id == 0) break;
    if (id == index) {
      const std::string_view text = heap.text(std::min<uint64_t>(bytes, size));
      if (!heap.ok() || !spend(text.size())) break;
      return std::string(text.substr(0, text.find('\0')));
    }
    heap.skip(bytes);
    heap.skip(std::min<size_t>((8 - bytes % 8) % 8, heap.left()));
  }
  return damaged("string");
}

Status Hdf5File::read_values(const Hdf5Type& type, const Dims& dims,
                             std::span<const std::byte> data, Tensor& value) {
  const auto count = static_cast<uint64_t>(element_count(dims.span()));
  const DType dtype = tensor_type(type);
  const bool text =
      type.kind == Hdf5Type::Kind::kFixedString || type.kind == Hdf5Type::Kind::kVariableString;
  if (!text && dtype == DType::kUndefined) {
    return unsupported("HDF5 values of class " + type.what + " are not supported");
  }
  const uint64_t width =
      type.kind == Hdf5Type::Kind::kVariableString ? 8 + offset_size_ : type.size;
  if (count != 0 && (width > data.size() || count > data.size() / width)) {
    return damaged("data: fewer bytes than the shape asks for");
  }
  if (!text) {
    TRY(value, Tensor::allocate(dtype, dims.span()));
    if (value.bytes().size() != count * width) return damaged("data");
    if (count != 0) std::memcpy(value.mutable_bytes().data(), data.data(), count * width);
    if (type.big_endian && type.kind == Hdf5Type::Kind::kNumber) {
      swap_bytes(value.mutable_bytes(), type.size);
    }
    return ok();
  }
  std::vector<std::string> strings;
  ByteReader in(data);
  for (uint64_t i = 0; i < count; ++i) {
    if (type.kind == Hdf5Type::Kind::kVariableString) {
      TRY(std::string item, variable_string(in));
      strings.push_back(std::move(item));
    } else {
      const std::string_view item = in.text(type.size);
      strings.emplace_back(item.substr(0, item.find('\0')));
    }
  }
  value = Tensor::of_strings(dims.span(), std::move(strings));
  return ok();
}

Result<Tensor> Hdf5File::dataset(std::string_view path) {
  using Layout = Hdf5Object::Layout;
  TRY(const Hdf5Object* object, this->object(path));
  const auto where = [&](Error error) { return std::move(error).at(std::string(path)); };
  if (!object->is_dataset) return where(parse_error("not an HDF5 dataset"));
  if (!object->problem.empty()) {
    return where(unsupported("the HDF5 dataset cannot be read: " + object->problem));
  }
  if (object->type.size == 0) return where(damaged("dataset: it has no type"));
  const auto count = static_cast<uint64_t>(element_count(object->dims.span()));
  const uint64_t width =
      object->type.kind == Hdf5Type::Kind::kVariableString ? 8 + offset_size_ : object->type.size;
  // Nothing is allocated that the file could not fill.
  const uint64_t most = bytes_.size() * kMaxFilterExpansion;
  if (count != 0 && (width > most || count > most / width)) {
    return where(parse_error("damaged HDF5 dataset: " + dims_to_string(object->dims.span()) +
                             " does not fit the file"));
  }
  const uint64_t size = count * width;
  Tensor value;
  if (object->layout == Layout::kCompact) {
    auto done = read_values(object->type, object->dims, object->compact, value);
    return done ? Result<Tensor>(value) : where(done.error());
  }
  if (object->layout == Layout::kContiguous) {
    if (undefined(object->address)) {  // never written: zeros
      if (size > bytes_.size()) return where(damaged("dataset: it has no data"));
      const std::vector<std::byte> zeros(size);
      auto done = read_values(object->type, object->dims, zeros, value);
      return done ? Result<Tensor>(value) : where(done.error());
    }
    ByteReader in = at(object->address, std::min(size, object->stored_bytes));
    const auto data = in.take(in.left());
    if (!in.ok() || data.size() < size) return where(parse_error("the HDF5 file is truncated"));
    const DType dtype = tensor_type(object->type);
    if (dtype != DType::kUndefined && !object->type.big_endian &&
        reinterpret_cast<uintptr_t>(data.data()) % std::max<size_t>(1, bytes_of(dtype)) == 0) {
      return Tensor::view(dtype, object->dims.span(), data, owner_);
    }
    auto done = read_values(object->type, object->dims, data, value);
    return done ? Result<Tensor>(value) : where(done.error());
  }
  // Chunked: gather the raw elements, then read them as if they were contiguous.
  if (object->layout == Layout::kChunked && object->chunk.size() != object->dims.size()) {
    return where(damaged("chunk shape"));
  }
  const std::array<int64_t, 1> flat{static_cast<int64_t>(size)};
  TRY(Tensor raw, Tensor::allocate(DType::kUInt8, flat));
  if (size != 0) std::memset(raw.mutable_bytes().data(), 0, size);
  if (object->layout == Layout::kChunked && !undefined(object->address)) {
    auto done = read_chunks(*object, object->address, 0, raw.mutable_bytes());
    if (!done) return where(done.error());
  } else if (object->layout == Layout::kSingleChunk && !undefined(object->address)) {
    uint64_t stored = width;
    for (const int64_t n : object->chunk.span()) {
      if (stored > most) return where(damaged("chunk shape"));
      stored *= static_cast<uint64_t>(n);
    }
    if (object->stored_bytes != UINT64_MAX) stored = object->stored_bytes;
    ByteReader in = at(object->address, stored);
    if (!in.ok()) return where(parse_error("the HDF5 file is truncated"));
    const std::vector<uint64_t> origin(object->dims.size(), 0);
    auto done =
        place_chunk(*object, in.take(stored), object->filter_mask, origin, raw.mutable_bytes());
    if (!done) return where(done.error());
  }
  auto done = read_values(object->type, object->dims, raw.bytes(), value);
  return done ? Result<Tensor>(value) : where(done.error());
}

Status Hdf5File::read_chunks(const Hdf5Object& object, uint64_t address, int depth,
                             std::span<std::byte> out) {
  if (depth > kMaxChunkDepth || !spend()) return damaged("chunk index");
  ByteReader in = at(address);
  in.expect("TREE");
  const uint8_t type = in.u8();
  const uint8_t level = in.u8();
  const uint16_t used = in.u16();
  in.skip(2 * offset_size_);
  if (!in.ok() || type != 1) return damaged("chunk index");
  std::vector<uint64_t> origin(object.dims.size());
  for (unsigned i = 0; i < used; ++i) {
    const uint32_t stored = in.u32();
    const uint32_t mask = in.u32();
    for (uint64_t& start : origin) start = in.u64();
    in.u64();  // offset within an element
    const uint64_t child = offset(in);
    if (!in.ok()) return damaged("chunk index");
    if (level > 0) {
      CHECK_OK(read_chunks(object, child, depth + 1, out));
      continue;
    }
    ByteReader data = at(child, stored);
    if (!data.ok()) return parse_error("the HDF5 file is truncated");
    CHECK_OK(place_chunk(object, data.take(stored), mask, origin, out));
  }
  return ok();
}

Status Hdf5File::place_chunk(const Hdf5Object& object, std::span<const std::byte> stored,
                             uint32_t mask, std::span<const uint64_t> origin,
                             std::span<std::byte> out) {
  const size_t rank = object.dims.size();
  const size_t width =
      object.type.kind == Hdf5Type::Kind::kVariableString ? 8 + offset_size_ : object.type.size;
  if (object.chunk.size() != rank || origin.size() != rank) return damaged("chunk shape");
  uint64_t size = width;
  for (size_t axis = 0; axis < rank; ++axis) {
    size *= static_cast<uint64_t>(object.chunk[axis]);
    // A chunk may be larger than the data, but not beyond what compression can explain.
    if (size > UINT32_MAX || size > (stored.size() + 64) * kMaxFilterExpansion) {
      return damaged("chunk shape");
    }
    if (origin[axis] >= static_cast<uint64_t>(object.dims[axis])) return damaged("chunk index");
  }
  if (!spend(1 + size / 64)) return damaged("chunk index");
  // Filters are undone in reverse order; a set bit of the mask says that one was skipped.
  std::vector<std::byte> buffer, next;
  std::span<const std::byte> data = stored;
  for (size_t i = object.filters.size(); i-- > 0;) {
    if (i < 32 && mask >> i & 1) continue;
    const auto& filter = object.filters[i];
    if (filter.id == hdf5::kFletcher32) {  // its checksum is not ours to enforce
      if (data.size() < 4) return damaged("chunk");
      data = data.first(data.size() - 4);
      continue;
    }
    const bool checked_before = std::any_of(
        object.filters.begin(), object.filters.begin() + static_cast<ptrdiff_t>(i),
        [](const Hdf5Object::Filter& earlier) { return earlier.id == hdf5::kFletcher32; });
    next.assign(filter.id == hdf5::kDeflate ? size + (checked_before ? 4 : 0) : data.size(), {});
    if (filter.id == hdf5::kDeflate) {
      CHECK_OK(inflate_exactly(data, next));
    } else {
      const size_t element = filter.parameter == 0 ? width : filter.parameter;
      if (element > data.size()) return damaged("chunk");
      unshuffle(data, next, element);
    }
    buffer.swap(next);
    data = buffer;
  }
  if (data.size() != size) return damaged("chunk: its size is wrong");
  if (rank == 0) {
    std::copy(data.begin(), data.end(), out.begin());
    return ok();
  }
  // Copy row by row; rows and columns that stick out of the dataset are dropped.
  const size_t last = rank - 1;
  const uint64_t row = std::min<uint64_t>(static_cast<uint64_t>(object.chunk[last]),
                                          static_cast<uint64_t>(object.dims[last]) - origin[last]);
  const uint64_t rows = size / width / static_cast<uint64_t>(object.chunk[last]);
  for (uint64_t r = 0; r < rows; ++r) {
    uint64_t rest = r, target = 0, stride = static_cast<uint64_t>(object.dims[last]);
    bool inside = true;
    for (size_t axis = last; axis-- > 0;) {
      const auto extent = static_cast<uint64_t>(object.chunk[axis]);
      const uint64_t index = origin[axis] + rest % extent;
      rest /= extent;
      inside = inside && index < static_cast<uint64_t>(object.dims[axis]);
      target += index * stride;
      stride *= static_cast<uint64_t>(object.dims[axis]);
    }
    if (!inside) continue;
    const uint64_t from = r * static_cast<uint64_t>(object.chunk[last]) * width;
    std::memcpy(out.data() + (target + origin[last]) * width, data.data() + from, row * width);
  }
  return ok();
}

}  // namespace tombolo
