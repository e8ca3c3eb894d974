// The leaves of a model: types, tensors, entries. See decoder.h for the conventions.

#include <algorithm>
#include <bit>
#include <functional>

#include "onnx/decoder.h"

namespace tombolo::onnx {

Decoder::Decoder(std::string_view file, StoragePtr storage)
    : file_(file),
      storage_(std::move(storage)),
      // Two bytes of file can ask for a node of hundreds. Real models stay below six bytes of
      // memory for each of the file; beyond that, and beyond what a million nodes take, refuse. No
      // file may make a command hold more than half a gigabyte by describing things.
      allowance_(std::min((size_t{256} << 20) + 6 * file.size(), size_t{416} << 20)) {}

bool Decoder::at(std::string place) {
  std::move(error).at(std::move(place));
  return false;
}

bool Decoder::malformed(const WireReader& reader) {
  std::string message = "field";
  if (reader.field != 0) message += " " + std::to_string(reader.field);
  if (std::less_equal<>()(file_.data(), reader.fault_at) &&
      std::less_equal<>()(reader.fault_at, file_.data() + file_.size()))
    message += " at byte " + std::to_string(reader.fault_at - file_.data());
  error = parse_error(message + " " + reader.fault);
  return false;
}

bool Decoder::too_large() {
  error = resource_error("the file of " + std::to_string(file_.size()) +
                         " bytes would take more than " + std::to_string(allowance_ >> 20) +
                         " MiB of memory to describe");
  return false;
}

Decoder::Took Decoder::texts(const WireReader& reader, std::vector<Text>& out) {
  if (reader.type != WireType::kBytes) return Took::kNo;
  if (!spend(sizeof(Text))) return Took::kFailed;
  out.push_back(reader.bytes);
  return Took::kYes;
}

Decoder::Took Decoder::floats(const WireReader& reader, std::vector<float>& out) {
  if (reader.type == WireType::kFixed32) {
    out.push_back(std::bit_cast<float>(static_cast<uint32_t>(reader.number)));
    return Took::kYes;
  }
  if (reader.type != WireType::kBytes) return Took::kNo;
  if (reader.bytes.size() % sizeof(float) != 0) {
    error = parse_error("a packed list of floats has a broken float at its end");
    return Took::kFailed;
  }
  const size_t old = out.size();
  out.resize(old + reader.bytes.size() / sizeof(float));
  if (!reader.bytes.empty())
    std::memcpy(out.data() + old, reader.bytes.data(), reader.bytes.size());
  return Took::kYes;
}

bool Decoder::entry(std::string_view bytes, StringEntry& entry) {
  return fields(bytes, entry.unknown, [&](const WireReader& r) {
    switch (r.field) {
      case 1:
        return text(r, entry.key);
      case 2:
        return text(r, entry.value);
      default:
        return Took::kNo;
    }
  });
}

Decoder::Took Decoder::entries(const WireReader& reader, std::vector<StringEntry>& out) {
  return items(reader, out, "entry",
               [&](std::string_view bytes, StringEntry& item) { return entry(bytes, item); });
}

// ---- types

bool Decoder::dim(std::string_view bytes, Dim& dim) {
  return fields(bytes, dim.unknown, [&](const WireReader& r) {
    if (r.is(1, WireType::kVarint)) {
      dim.value = static_cast<int64_t>(r.number);
      dim.kind = Dim::kind_of(dim.value);
      dim.param = Text();
      return Took::kYes;
    }
    if (r.is(2, WireType::kBytes)) {
      dim.kind = Dim::Kind::kParam;
      dim.value = 0;
      dim.param = r.bytes;
      return Took::kYes;
    }
    return r.field == 3 ? text(r, dim.denotation) : Took::kNo;
  });
}

bool Decoder::shape(std::string_view bytes, Type& type) {
  return fields(bytes, type.unknown_shape, [&](const WireReader& r) {
    if (r.field != 1) return Took::kNo;
    return items(r, type.dims, "dimension",
                 [&](std::string_view part, Dim& item) { return dim(part, item); });
  });
}

bool Decoder::type_member(std::string_view bytes, Type& type, int depth) {
  Pieces inner;
  auto inner_type = [&] {
    return !inner.any() || this->type(inner.text(*storage_), type.element, depth + 1);
  };
  switch (type.kind) {
    case Type::Kind::kTensor:
    case Type::Kind::kSparseTensor:
      if (!fields(bytes, type.unknown_inner, [&](const WireReader& r) {
            if (r.field == 1) return number(r, type.elem_type, type.has_elem_type);
            return r.field == 2 ? piece(r, inner) : Took::kNo;
          }))
        return false;
      type.has_shape = inner.any();
      return !type.has_shape || shape(inner.text(*storage_), type) || at("shape");
    case Type::Kind::kSequence:
    case Type::Kind::kOptional:
      return fields(
                 bytes, type.unknown_inner,
                 [&](const WireReader& r) { return r.field == 1 ? piece(r, inner) : Took::kNo; }) &&
             inner_type();
    case Type::Kind::kMap:
      return fields(bytes, type.unknown_inner,
                    [&](const WireReader& r) {
                      if (r.field == 1) return number(r, type.key_type, type.has_key_type);
                      return r.field == 2 ? piece(r, inner) : Took::kNo;
                    }) &&
             inner_type();
    case Type::Kind::kOpaque:
      return fields(bytes, type.unknown_inner, [&](const WireReader& r) {
        if (r.field == 1) return text(r, type.opaque_domain);
        return r.field == 2 ? text(r, type.opaque_name) : Took::kNo;
      });
    case Type::Kind::kNone:
      break;
  }
  return true;
}

bool Decoder::type(std::string_view bytes, const Type*& out, int depth) {
  if (depth > kMaxDepth) {
    error = parse_error("types nest deeper than " + std::to_string(kMaxDepth) + " levels");
    return false;
  }
  Type type;
  Pieces member;
  auto take = [&](const WireReader& r, Type::Kind kind) {
    if (r.type != WireType::kBytes) return Took::kNo;
    if (type.kind != kind) member = Pieces();  // of a oneof the last one counts
    type.kind = kind;
    member.add(r.bytes);
    return Took::kYes;
  };
  if (!fields(bytes, type.unknown, [&](const WireReader& r) {
        switch (r.field) {
          case 1:
            return take(r, Type::Kind::kTensor);
          case 4:
            return take(r, Type::Kind::kSequence);
          case 5:
            return take(r, Type::Kind::kMap);
          case 6:
            return text(r, type.denotation);
          case 7:
            return take(r, Type::Kind::kOpaque);
          case 8:
            return take(r, Type::Kind::kSparseTensor);
          case 9:
            return take(r, Type::Kind::kOptional);
          default:
            return Took::kNo;
        }
      }))
    return at("type");
  if (member.any() && !type_member(member.text(*storage_), type, depth)) return at("type");
  out = storage_->intern(std::move(type));
  return true;
}

// ---- tensors

namespace {

/// A field that holds a tensor's data, the encoding it means, and the wire type of one element
/// that is not packed.
struct DataField {
  uint32_t field;
  Constant::Encoding encoding;
  WireType element;
};
constexpr DataField kDataFields[] = {
    {9, Constant::Encoding::kRaw, WireType::kBytes},
    {4, Constant::Encoding::kFloat, WireType::kFixed32},
    {5, Constant::Encoding::kInt32, WireType::kVarint},
    {6, Constant::Encoding::kString, WireType::kBytes},
    {7, Constant::Encoding::kInt64, WireType::kVarint},
    {10, Constant::Encoding::kDouble, WireType::kFixed64},
    {11, Constant::Encoding::kUInt64, WireType::kVarint},
};

const DataField* data_field(const WireReader& reader) {
  for (const DataField& row : kDataFields)
    if (row.field == reader.field &&
        (reader.type == row.element || reader.type == WireType::kBytes))
      return &row;
  return nullptr;
}

/// What a packed list holds must be whole elements; protobuf refuses the message otherwise.
bool whole_elements(std::string_view packed, WireType element) {
  switch (element) {
    case WireType::kFixed32:
      return packed.size() % 4 == 0;
    case WireType::kFixed64:
      return packed.size() % 8 == 0;
    default:
      return packed.empty() || static_cast<uint8_t>(packed.back()) < 0x80;
  }
}

}  // namespace

bool Decoder::constant(std::string_view bytes, Constant& constant) {
  uint32_t present_fields = 0, main_field = 0;
  Pieces unknown;
  const bool fine = fields(bytes, unknown, [&](const WireReader& r) {
    switch (r.field) {
      case 1:
        return integers(r, constant.dims);
      case 2:
        return number(r, constant.data_type, constant.has_data_type);
      case 3: {
        if (r.type != WireType::kBytes) return Took::kNo;
        Constant::Extra& extra = constant.ensure_extra();
        extra.has_segment = true;
        Pieces odd;
        if (!fields(r.bytes, odd, [&](const WireReader& s) {
              if (s.field == 1) return number(s, extra.segment_begin, extra.has_segment_begin);
              return s.field == 2 ? number(s, extra.segment_end, extra.has_segment_end) : Took::kNo;
            }))
          return Took::kFailed;
        // Written again beside the segment proper, into which protobuf merges it.
        return odd.any() ? Took::kNo : Took::kYes;
      }
      case 8:
        return text(r, constant.name);
      case 12:
        return r.type == WireType::kBytes ? text(r, constant.ensure_extra().doc) : Took::kNo;
      case 13:
        return r.type == WireType::kBytes ? entries(r, constant.ensure_extra().external)
                                          : Took::kNo;
      case 14: {
        if (r.type != WireType::kVarint) return Took::kNo;
        Constant::Extra& extra = constant.ensure_extra();
        return number(r, extra.location, extra.has_location);
      }
      case 16:
        return r.type == WireType::kBytes ? entries(r, constant.ensure_extra().metadata)
                                          : Took::kNo;
      default:
        break;
    }
    const DataField* row = data_field(r);
    if (row == nullptr) return Took::kNo;
    if (row->encoding == Constant::Encoding::kRaw) constant.bytes = r.bytes;
    // An empty packed list says nothing; an empty raw_data or string does.
    else if (row->encoding != Constant::Encoding::kString && r.type == WireType::kBytes &&
             r.bytes.empty())
      return Took::kYes;
    present_fields |= 1u << row->field;
    return Took::kYes;
  });
  if (!fine) return false;
  for (const DataField& row : kDataFields)  // raw_data comes first: it wins, as upstream has it
    if ((present_fields >> row.field & 1) != 0) {
      constant.encoding = row.encoding;
      main_field = row.field;
      break;
    }
  if (present_fields != 0 && present_fields != 1u << 9 &&
      !constant_data(bytes, main_field, constant, unknown))
    return false;
  if (unknown.any()) constant.ensure_extra().unknown = unknown.text(*storage_);
  return true;
}

bool Decoder::constant_data(std::string_view bytes, uint32_t main_field, Constant& constant,
                            Pieces& unknown) {
  Pieces data;
  Pieces seen;  // everything else was taken by constant() before
  const bool fine = fields(bytes, seen, [&](const WireReader& r) {
    const DataField* row = data_field(r);
    if (row == nullptr) return Took::kYes;
    if (r.field != main_field) {
      unknown.add(r.slice());
      return Took::kYes;
    }
    if (row->encoding == Constant::Encoding::kRaw) return Took::kYes;
    if (row->encoding == Constant::Encoding::kString) return texts(r, constant.strings);
    const bool packed = r.type == WireType::kBytes;
    if (packed && !whole_elements(r.bytes, row->element)) {
      error =
          parse_error("tensor field " + std::to_string(r.field) + " ends inside one of its values");
      return Took::kFailed;
    }
    data.add(packed ? r.bytes : r.payload());
    return Took::kYes;
  });
  if (data.any()) constant.bytes = data.text(*storage_);
  return fine;
}

bool Decoder::sparse(std::string_view bytes, SparseConstant& sparse) {
  Pieces values, indices;
  if (!fields(bytes, sparse.unknown, [&](const WireReader& r) {
        switch (r.field) {
          case 1:
            return piece(r, values);
          case 2:
            return piece(r, indices);
          case 3:
            return integers(r, sparse.dims);
          default:
            return Took::kNo;
        }
      }))
    return false;
  sparse.has_values = values.any();
  sparse.has_indices = indices.any();
  return (!values.any() || constant(values.text(*storage_), sparse.values) || at("values")) &&
         (!indices.any() || constant(indices.text(*storage_), sparse.indices) || at("indices"));
}

}  // namespace tombolo::onnx
