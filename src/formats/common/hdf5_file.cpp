#include "formats/common/hdf5_file.h"

#include <algorithm>

#include "formats/common/hdf5_messages.h"

namespace tombolo {
namespace {

constexpr std::string_view kSignature("\x89HDF\r\n\x1a\n", 8);

// A user block may stand before the superblock: it is at 0, 512, 1024, 2048, ...
std::optional<size_t> find_superblock(std::span<const std::byte> bytes) {
  for (size_t at = 0; at + kSignature.size() <= bytes.size(); at = at == 0 ? 512 : at * 2) {
    if (std::memcmp(bytes.data() + at, kSignature.data(), kSignature.size()) == 0) return at;
  }
  return std::nullopt;
}

}  // namespace

const Hdf5Attribute* Hdf5Object::attribute(std::string_view name) const {
  for (const Hdf5Attribute& attribute : attributes)
    if (attribute.name == name) return &attribute;
  return nullptr;
}

const Hdf5Link* Hdf5Object::link(std::string_view name) const {
  for (const Hdf5Link& link : links)
    if (link.name == name) return &link;
  return nullptr;
}

bool Hdf5File::probe(std::span<const std::byte> bytes) {
  return find_superblock(bytes).has_value();
}

Result<std::unique_ptr<Hdf5File>> Hdf5File::open(std::span<const std::byte> bytes,
                                                 std::shared_ptr<const void> owner) {
  std::unique_ptr<Hdf5File> file(new Hdf5File(bytes, std::move(owner)));
  CHECK_OK(file->read_superblock());
  return file;
}

Status Hdf5File::read_superblock() {
  const auto start = find_superblock(bytes_);
  if (!start) return parse_error("not an HDF5 file");
  budget_ = bytes_.size() + 100'000;
  ByteReader in(bytes_.subspan(*start));
  in.skip(kSignature.size());
  const uint8_t version = in.u8();
  if (version > 3) {
    return unsupported("HDF5 superblock version " + std::to_string(version) + " is not known");
  }
  if (version < 2) {
    in.skip(4);
    offset_size_ = in.u8();
    length_size_ = in.u8();
    in.skip(version == 0 ? 9 : 13);
  } else {
    offset_size_ = in.u8();
    length_size_ = in.u8();
    in.skip(1);
  }
  const auto fits = [](size_t size) { return size == 2 || size == 4 || size == 8; };
  if (!in.ok() || !fits(offset_size_) || !fits(length_size_)) {
    return parse_error("damaged HDF5 superblock");
  }
  base_ = offset(in);
  offset(in);  // free space, or superblock extension
  const uint64_t end = offset(in);
  if (version < 2) {
    offset(in);  // driver information
    offset(in);  // name of the root's symbol-table entry
  }
  root_ = offset(in);
  // h5py leaves 0 here even behind a user block, in which case addresses count from the signature.
  if (base_ == 0) base_ = *start;
  if (!in.ok()) return parse_error("truncated HDF5 superblock");
  // What is lost may be weights that nobody asks for, or not: HDF5's own library refuses too.
  // Without adding base_: writers differ in whether the end counts from it.
  if (!undefined(end) && end > bytes_.size())
    return parse_error("the HDF5 file is cut short: it has " + std::to_string(bytes_.size()) +
                       " of " + std::to_string(end) + " bytes");
  return load(root_) ? ok() : Status(load(root_).error());
}

ByteReader Hdf5File::at(uint64_t address) const {
  ByteReader none(std::span<const std::byte>{});
  none.fail();
  if (undefined(address) || address > bytes_.size() || base_ > bytes_.size() - address) return none;
  return ByteReader(bytes_.subspan(base_ + address));
}

ByteReader Hdf5File::at(uint64_t address, uint64_t length) const {
  ByteReader rest = at(address);
  if (!rest.ok() || length > rest.left()) {
    rest.fail();
    return rest;
  }
  return ByteReader(rest.take(length));
}

bool Hdf5File::undefined(uint64_t address) const {
  return address == (offset_size_ == 8 ? ~uint64_t{0} : (uint64_t{1} << (8 * offset_size_)) - 1);
}

bool Hdf5File::spend(uint64_t units) {
  if (budget_ < units) return false;
  budget_ -= units;
  return true;
}

Result<const Hdf5Object*> Hdf5File::load(uint64_t address) {
  const auto found = objects_.find(address);
  if (found != objects_.end()) return found->second.get();
  auto object = std::make_unique<Hdf5Object>();
  CHECK_OK(read_header(address, *object));
  const Hdf5Object* result = object.get();
  objects_.emplace(address, std::move(object));
  return result;
}

Result<const Hdf5Object*> Hdf5File::object(std::string_view path) {
  TRY(const Hdf5Object* here, load(root_));
  std::string_view rest = path;
  while (!rest.empty()) {
    const size_t slash = rest.find('/');
    const std::string_view part = rest.substr(0, slash);
    rest = slash == std::string_view::npos ? std::string_view() : rest.substr(slash + 1);
    if (part.empty() || part == ".") continue;
    const Hdf5Link* link = here->link(part);
    if (!link) return parse_error("the HDF5 file has no \"" + std::string(path) + "\"");
    auto next = load(link->address);
    if (!next) return std::move(next).at(std::string(path)).error();
    here = *next;
  }
  return here;
}

bool Hdf5File::exists(std::string_view path) { return object(path).ok(); }

Status Hdf5File::read_header(uint64_t address, Hdf5Object& object) {
  if (!spend()) return parse_error("the HDF5 file refers to itself in a circle");
  ByteReader in = at(address);
  std::vector<std::pair<uint64_t, uint64_t>> continuations;
  int version = 1;
  bool creation_order = false;
  if (in.left() >= 4 && ByteReader(in).text(4) == "OHDR") {
    version = 2;
    in.skip(5);
    const uint8_t flags = in.u8();
    if (flags & 0x20) in.skip(16);
    if (flags & 0x10) in.skip(4);
    creation_order = flags & 0x04;
    const uint64_t size = in.uint(size_t{1} << (flags & 3));
    ByteReader body(in.take(size));
    if (!in.ok()) return parse_error("damaged HDF5 object header");
    CHECK_OK(read_messages(body, version, creation_order, object, continuations));
  } else {
    if (in.u8() != 1) return parse_error("no HDF5 object header at " + std::to_string(address));
    in.skip(7);
    const uint32_t size = in.u32();
    in.skip(4);
    // Some writers count the padding of the prefix into the size; what lies past the end is cut.
    ByteReader body(in.take(std::min<size_t>(size, in.left())));
    if (!in.ok()) return parse_error("damaged HDF5 object header");
    CHECK_OK(read_messages(body, version, creation_order, object, continuations));
  }
  for (size_t i = 0; i < continuations.size(); ++i) {
    if (!spend()) return parse_error("the HDF5 file refers to itself in a circle");
    ByteReader body = at(continuations[i].first, continuations[i].second);
    if (version == 2) {
      body.expect("OCHK");
      if (!body.ok() || body.left() < 4) return parse_error("damaged HDF5 object header");
      body = ByteReader(body.take(body.left() - 4));
    }
    if (!body.ok()) return parse_error("damaged HDF5 object header");
    CHECK_OK(read_messages(body, version, creation_order, object, continuations));
  }
  return ok();
}

Status Hdf5File::read_messages(ByteReader in, int version, bool creation_order, Hdf5Object& object,
                               std::vector<std::pair<uint64_t, uint64_t>>& continuations) {
  const size_t prefix = version == 1 ? 8 : creation_order ? 6 : 4;
  while (in.left() >= prefix) {
    if (!spend()) return parse_error("the HDF5 file refers to itself in a circle");
    const uint16_t type = version == 1 ? in.u16() : in.u8();
    const uint16_t size = in.u16();
    const uint8_t flags = in.u8();
    in.skip(version == 1 ? 3 : creation_order ? 2 : 0);
    const auto body = in.take(size);
    if (!in.ok()) return parse_error("damaged HDF5 object header");
    CHECK_OK(read_message(type, flags, body, object, continuations));
  }
  return ok();
}

Status Hdf5File::read_message(uint16_t type, uint8_t flags, std::span<const std::byte> body,
                              Hdf5Object& object,
                              std::vector<std::pair<uint64_t, uint64_t>>& continuations) {
  ByteReader in(body);
  if (flags & 0x02) {  // the body is a reference to a committed (shared) message
    if (type == hdf5::kDatatype) object.problem = "its type is a committed datatype";
    return ok();
  }
  switch (type) {
    case hdf5::kDataspace: {
      auto dims = hdf5::read_dataspace(in, length_size_);
      if (!dims) return dims.error();
      object.dims = *dims;
      return ok();
    }
    case hdf5::kDatatype:
      object.type = hdf5::read_datatype(in);
      return ok();
    case hdf5::kExternalFiles:
      object.problem = "its data are in another file";
      return ok();
    case hdf5::kLayout:
      object.is_dataset = true;
      read_layout(in, object);
      return ok();
    case hdf5::kFilters:
      read_filters(in, object);
      return ok();
    case hdf5::kAttribute:
      return read_attribute(body, object);
    case hdf5::kSymbolTable:
      return read_symbol_table(in, object);
    case hdf5::kLink:
      return read_link(body, object);
    case hdf5::kLinkInfo:
    case hdf5::kAttributeInfo: {
      const bool attributes = type == hdf5::kAttributeInfo;
      in.skip(1);
      const uint8_t tracked = in.u8();
      if (tracked & 1) in.skip(attributes ? 2 : 8);
      const uint64_t heap = offset(in);
      const uint64_t names = offset(in);
      const uint64_t order = tracked & 2 ? offset(in) : 0;
      if (!in.ok()) return parse_error("damaged HDF5 group");
      if (undefined(heap)) return ok();
      return read_dense(heap, tracked & 2 ? order : names, attributes, object);
    }
    case hdf5::kContinuation: {
      const uint64_t where = offset(in);
      const uint64_t size = length(in);
      if (!in.ok()) return parse_error("damaged HDF5 object header");
      continuations.emplace_back(where, size);
      return ok();
    }
    default:
      return ok();
  }
}

std::optional<std::string> Hdf5File::string(std::string_view path, std::string_view name) {
  auto found = object(path);
  if (!found) return std::nullopt;
  const Hdf5Attribute* attribute = (*found)->attribute(name);
  if (!attribute || !attribute->value.is_string() || attribute->value.strings().empty()) {
    return std::nullopt;
  }
  return attribute->value.strings().front();
}

Result<std::vector<std::string>> Hdf5File::strings(std::string_view path, std::string_view name) {
  TRY(const Hdf5Object* object, this->object(path));
  std::vector<std::string> result;
  const auto append = [&](const Hdf5Attribute& attribute) -> Status {
    if (!attribute.problem.empty()) {
      return parse_error("attribute \"" + attribute.name + "\": " + attribute.problem);
    }
    if (attribute.value.is_string()) {
      const auto& list = attribute.value.strings();
      result.insert(result.end(), list.begin(), list.end());
    } else if (attribute.value.size() != 0) {  // h5py stores an empty list as float64[0]
      return parse_error("attribute \"" + attribute.name + "\" does not hold strings");
    }
    return ok();
  };
  if (const Hdf5Attribute* whole = object->attribute(name)) {
    CHECK_OK(append(*whole));
    return result;
  }
  for (size_t part = 0;; ++part) {
    const Hdf5Attribute* piece = object->attribute(std::string(name) + std::to_string(part));
    if (!piece && part == 0) {
      return parse_error("\"" + std::string(path) + "\" has no attribute \"" + std::string(name) +
                         "\"");
    }
    if (!piece) return result;
    CHECK_OK(append(*piece));
  }
}

}  // namespace tombolo
