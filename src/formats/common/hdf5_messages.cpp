#include "formats/common/hdf5_messages.h"

namespace tombolo {
namespace hdf5 {

Result<Dims> read_dataspace(ByteReader& in, size_t length_size) {
  const uint8_t version = in.u8();
  const uint8_t rank = in.u8();
  in.skip(1);  // flags: whether maximum sizes follow
  const uint8_t kind = version == 2 ? in.u8() : 1;
  if (version == 1) in.skip(5);
  if (!in.ok() || version < 1 || version > 2 || rank > 32) {
    return parse_error("damaged HDF5 dataspace");
  }
  Dims dims;
  if (kind == 2) dims.push_back(0);
  for (size_t i = 0; i < rank; ++i) {
    const uint64_t size = in.uint(length_size);
    if (size > static_cast<uint64_t>(INT64_MAX)) return parse_error("damaged HDF5 dataspace");
    dims.push_back(static_cast<int64_t>(size));
  }
  if (!in.ok() || element_count(dims.span()) < 0) return parse_error("damaged HDF5 dataspace");
  return dims;
}

namespace {

DType integer_type(uint32_t size, bool is_signed) {
  switch (size) {
    case 1:
      return is_signed ? DType::kInt8 : DType::kUInt8;
    case 2:
      return is_signed ? DType::kInt16 : DType::kUInt16;
    case 4:
      return is_signed ? DType::kInt32 : DType::kUInt32;
    case 8:
      return is_signed ? DType::kInt64 : DType::kUInt64;
    default:
      return DType::kUndefined;
  }
}

DType float_type(uint32_t size, uint8_t exponent_bits) {
  if (size == 2 && exponent_bits == 5) return DType::kFloat16;
  if (size == 2 && exponent_bits == 8) return DType::kBFloat16;
  if (size == 4 && exponent_bits == 8) return DType::kFloat32;
  if (size == 8 && exponent_bits == 11) return DType::kFloat64;
  return DType::kUndefined;
}

constexpr std::string_view kClassNames[] = {"integer",  "float",    "time",      "string",
                                            "bitfield", "opaque",   "compound",  "reference",
                                            "enum",     "variable", "array type"};

}  // namespace

Hdf5Type read_datatype(ByteReader& in) {
  Hdf5Type type;
  const uint8_t head = in.u8();
  const uint8_t bits = in.u8();
  const uint16_t more_bits = in.u16();
  type.size = in.u32();
  const unsigned kind = head & 0x0F;
  type.what = kind < std::size(kClassNames) ? std::string(kClassNames[kind]) : "unknown type";
  if (!in.ok() || type.size == 0) {
    type.what = "damaged type";
    return type;
  }
  type.big_endian = bits & 1;
  if (kind == 0) {
    type.dtype = integer_type(type.size, bits & 8);
  } else if (kind == 1) {
    in.skip(5);
    type.dtype = float_type(type.size, in.u8());
  } else if (kind == 3) {
    type.kind = Hdf5Type::Kind::kFixedString;
  } else if (kind == 5) {
    type.kind = Hdf5Type::Kind::kOpaque;
  } else if (kind == 8) {  // h5py's bool is an enum of int8 with FALSE = 0 and TRUE = 1
    const Hdf5Type base = read_datatype(in);
    const unsigned members = bits | (more_bits & 0xFFu) << 8;
    type.dtype = base.size == 1 && members == 2 ? DType::kBool : base.dtype;
    type.big_endian = base.big_endian;
    if (base.size != type.size) type.dtype = DType::kUndefined;
  } else if (kind == 9 && (bits & 0x0F) == 1) {
    type.kind = Hdf5Type::Kind::kVariableString;
  }
  if (in.ok() && type.dtype != DType::kUndefined) type.kind = Hdf5Type::Kind::kNumber;
  return type;
}

}  // namespace hdf5

void Hdf5File::read_layout(ByteReader in, Hdf5Object& object) {
  using Layout = Hdf5Object::Layout;
  const uint8_t version = in.u8();
  object.layout = Layout::kOther;
  const auto chunk_dims = [&](size_t rank, size_t width) {
    // The last entry is the size of an element.
    for (size_t i = 0; i < rank && in.ok(); ++i) {
      const uint64_t size = in.uint(width);
      if (i + 1 < rank) object.chunk.push_back(static_cast<int64_t>(size));
      if (size == 0 || size > UINT32_MAX) in.fail();
    }
  };
  if (version == 1 || version == 2) {
    const uint8_t rank = in.u8();
    const uint8_t kind = in.u8();
    in.skip(5);
    if (kind != 0) object.address = offset(in);
    if (kind == 2) {
      chunk_dims(rank, 4);
      object.layout = Layout::kChunked;
    } else if (kind <= 1) {
      in.skip(4u * rank);
      if (kind == 0) object.compact = in.take(in.u32());
      object.stored_bytes = UINT64_MAX;  // not recorded
      object.layout = kind == 0 ? Layout::kCompact : Layout::kContiguous;
    }
  } else if (version == 3 || version == 4) {
    const uint8_t kind = in.u8();
    if (kind == 0) {
      object.compact = in.take(in.u16());
      object.layout = Layout::kCompact;
    } else if (kind == 1) {
      object.address = offset(in);
      object.stored_bytes = length(in);
      object.layout = Layout::kContiguous;
    } else if (kind == 2 && version == 3) {
      const uint8_t rank = in.u8();
      object.address = offset(in);
      chunk_dims(rank, 4);
      object.layout = Layout::kChunked;
    } else if (kind == 2) {
      const uint8_t flags = in.u8();
      const uint8_t rank = in.u8();
      chunk_dims(rank, in.u8());
      const uint8_t index = in.u8();
      object.stored_bytes = UINT64_MAX;
      if (index == 1 && (flags & 2)) {
        object.stored_bytes = length(in);
        object.filter_mask = in.u32();
      }
      object.address = offset(in);
      if (index == 1) object.layout = Layout::kSingleChunk;
      if (index != 1) object.problem = "its chunks are indexed as only HDF5 1.10 and newer do";
    } else if (kind == 3) {
      object.problem = "it is a virtual dataset, whose data are in other files";
    }
  }
  if (!in.ok()) object.problem = "its layout is damaged";
  if (object.layout == Layout::kOther && object.problem.empty()) {
    object.problem = "its layout is unknown";
  }
}

void Hdf5File::read_filters(ByteReader in, Hdf5Object& object) {
  const uint8_t version = in.u8();
  const uint8_t count = in.u8();
  if (version == 1) in.skip(6);
  for (unsigned i = 0; i < count && in.ok(); ++i) {
    const uint16_t id = in.u16();
    size_t name = version == 1 || id >= 256 ? in.u16() : 0;
    in.skip(2);
    const uint16_t parameters = in.u16();
    if (version == 1) name = (name + 7) / 8 * 8;
    in.skip(name);
    uint32_t first = 0;
    for (unsigned k = 0; k < parameters && in.ok(); ++k) {
      const uint32_t value = in.u32();
      if (k == 0) first = value;
    }
    if (version == 1 && parameters % 2) in.skip(4);
    if (id < hdf5::kDeflate || id > hdf5::kFletcher32) {
      object.problem = "it is compressed with filter " + std::to_string(id);
    }
    object.filters.push_back({id, first});
  }
  if (!in.ok() || version < 1 || version > 2) object.problem = "its filters are damaged";
}

Status Hdf5File::read_attribute(std::span<const std::byte> body, Hdf5Object& object) {
  if (!spend(1 + body.size() / 64))
    return parse_error("the HDF5 file refers to itself in a circle");
  ByteReader in(body);
  const uint8_t version = in.u8();
  const uint8_t flags = in.u8();
  const size_t sizes[3] = {in.u16(), in.u16(), in.u16()};
  if (version == 3) in.skip(1);
  if (!in.ok() || version < 1 || version > 3) return parse_error("damaged HDF5 attribute");
  const auto part = [&](size_t size) {
    const auto data = in.take(size);
    if (version == 1) in.skip((8 - size % 8) % 8);
    return data;
  };
  const auto name = part(sizes[0]);
  ByteReader type_bytes(part(sizes[1]));
  ByteReader space_bytes(part(sizes[2]));
  if (!in.ok()) return parse_error("damaged HDF5 attribute");
  Hdf5Attribute attribute;
  const std::string_view text(reinterpret_cast<const char*>(name.data()), name.size());
  attribute.name = std::string(text.substr(0, text.find('\0')));
  if (flags & 3) {
    attribute.problem = "its type or shape is a committed one";
  } else {
    const Hdf5Type type = hdf5::read_datatype(type_bytes);
    TRY(const Dims dims, hdf5::read_dataspace(space_bytes, length_size_));
    auto read = read_values(type, dims, in.take(in.left()), attribute.value);
    if (!read) attribute.problem = read.error().message;
  }
  object.attributes.push_back(std::move(attribute));
  return ok();
}

}  // namespace tombolo
