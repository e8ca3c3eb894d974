#pragma once

// A read-only view of an HDF5 file: groups, attributes and datasets as h5py writes them.
//
// Our own parser instead of libhdf5: a model file is hostile input, and libhdf5 1.10 reads and
// writes out of bounds on damaged files, follows links to other files and loads plug-ins; and it
// copies what a view can show. Everything here is a bounds-checked view of the caller's bytes.
// Covered: superblocks 0 to 3, object headers 1 and 2, old-style groups, new-style groups (compact
// and dense), attributes (compact and dense) with fixed and variable strings, contiguous, compact
// and chunked (B-tree 1, or a single chunk) datasets, filters deflate, shuffle and fletcher32.
// Not covered, and refused by name: external and soft links, external and virtual storage, other
// filters, the chunk indices of the "latest" format, huge fractal-heap objects.
//
// Source: HDF5 File Format Specification, version 3.0.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "formats/common/byte_reader.h"
#include "ir/tensor.h"

namespace tombolo {

/// The element type of a dataset or attribute.
struct Hdf5Type {
  enum class Kind : uint8_t { kNumber, kFixedString, kVariableString, kOpaque, kOther };
  Kind kind = Kind::kOther;
  DType dtype = DType::kUndefined;  ///< of a number
  uint32_t size = 0;                ///< bytes per element in the file
  bool big_endian = false;
  std::string what;  ///< kOther: the name of what it is, for messages
};

struct Hdf5Attribute {
  std::string name;
  Tensor value;         ///< strings as a string tensor; empty type when `unreadable` says why
  std::string problem;  ///< why the value could not be read; empty when it could
};

struct Hdf5Link {
  std::string name;
  uint64_t address = 0;  ///< of the object header
};

/// A group or a dataset.
struct Hdf5Object {
  std::vector<Hdf5Link> links;  ///< of a group; ordered as stored (by name, or as created)
  std::vector<Hdf5Attribute> attributes;
  bool is_dataset = false;
  Hdf5Type type;
  Dims dims;
  struct Filter {
    uint16_t id;
    uint32_t parameter;  ///< first client value: shuffle's element size
  };
  std::vector<Filter> filters;
  enum class Layout : uint8_t { kNone, kCompact, kContiguous, kChunked, kSingleChunk, kOther };
  Layout layout = Layout::kNone;
  std::span<const std::byte> compact;
  uint64_t address = 0, stored_bytes = 0;  ///< contiguous data, chunk tree, or the single chunk
  uint32_t filter_mask = 0;                ///< single chunk
  Dims chunk;                              ///< chunk shape
  std::string problem;                     ///< why its data cannot be read; empty when they can

  const Hdf5Attribute* attribute(std::string_view name) const;
  const Hdf5Link* link(std::string_view name) const;
};

class Hdf5File {
 public:
  /// Opens a file that lies in memory (mapped or not). `owner` keeps the bytes alive, also for the
  /// tensors that are views of them.
  static Result<std::unique_ptr<Hdf5File>> open(std::span<const std::byte> bytes,
                                                std::shared_ptr<const void> owner);
  /// True when the bytes start as an HDF5 file does.
  static bool probe(std::span<const std::byte> bytes);

  /// The object at a path such as "model_weights/dense/kernel:0"; "" is the root group.
  Result<const Hdf5Object*> object(std::string_view path);
  bool exists(std::string_view path);
  /// The values of a dataset. A view when the file holds them contiguous and little-endian.
  /// Opaque 16-bit data (how bfloat16 is stored) come as bfloat16.
  Result<Tensor> dataset(std::string_view path);

  /// A list-of-strings attribute of the object at `path`. What h5py could not store in one
  /// attribute of 64 KiB Keras splits into name0, name1, ...: these are joined.
  Result<std::vector<std::string>> strings(std::string_view path, std::string_view name);
  /// A scalar string attribute; nullopt when absent or not a string.
  std::optional<std::string> string(std::string_view path, std::string_view name);

 private:
  struct Heap;  // fractal heap
  Hdf5File(std::span<const std::byte> bytes, std::shared_ptr<const void> owner)
      : bytes_(bytes), owner_(std::move(owner)) {}

  Status read_superblock();
  ByteReader at(uint64_t address) const;
  ByteReader at(uint64_t address, uint64_t length) const;
  uint64_t offset(ByteReader& in) const { return in.uint(offset_size_); }
  uint64_t length(ByteReader& in) const { return in.uint(length_size_); }
  bool undefined(uint64_t address) const;
  /// One unit of work; false when the file has cost more than its size can justify (a cycle).
  bool spend(uint64_t units = 1);

  Result<const Hdf5Object*> load(uint64_t address);
  Status read_header(uint64_t address, Hdf5Object& object);
  Status read_messages(ByteReader in, int version, bool creation_order, Hdf5Object& object,
                       std::vector<std::pair<uint64_t, uint64_t>>& continuations);
  Status read_message(uint16_t type, uint8_t flags, std::span<const std::byte> body,
                      Hdf5Object& object,
                      std::vector<std::pair<uint64_t, uint64_t>>& continuations);
  void read_layout(ByteReader in, Hdf5Object& object);
  void read_filters(ByteReader in, Hdf5Object& object);
  Status read_attribute(std::span<const std::byte> body, Hdf5Object& object);
  Status read_symbol_table(ByteReader in, Hdf5Object& object);
  Status read_group_tree(uint64_t address, std::span<const std::byte> names, Hdf5Object& object,
                         int depth);
  Status read_link(std::span<const std::byte> body, Hdf5Object& object);
  Status read_dense(uint64_t heap, uint64_t tree, bool attributes, Hdf5Object& object);
  Result<Heap> read_heap(uint64_t address);
  Result<std::span<const std::byte>> heap_object(const Heap& heap, std::span<const std::byte> id);
  struct Tree2;
  Status walk_tree2(const Tree2& tree, uint64_t address, uint64_t records, int depth,
                    std::vector<std::span<const std::byte>>& found);
  Status read_values(const Hdf5Type& type, const Dims& dims, std::span<const std::byte> data,
                     Tensor& value);
  Result<std::string> variable_string(ByteReader& in);
  Status read_chunks(const Hdf5Object& object, uint64_t address, int depth,
                     std::span<std::byte> out);
  Status place_chunk(const Hdf5Object& object, std::span<const std::byte> stored, uint32_t mask,
                     std::span<const uint64_t> origin, std::span<std::byte> out);

  std::span<const std::byte> bytes_;
  std::shared_ptr<const void> owner_;
  uint64_t base_ = 0;
  size_t offset_size_ = 8, length_size_ = 8;
  uint64_t root_ = 0;
  uint64_t budget_ = 0;
  std::unordered_map<uint64_t, std::unique_ptr<Hdf5Object>> objects_;
};

}  // namespace tombolo
