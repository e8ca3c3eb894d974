// Where an HDF5 group keeps its members: old-style symbol tables, link messages, and the fractal
// heap with its B-tree (version 2) of groups and objects that have many links or attributes.

#include <algorithm>
#include <bit>

#include "formats/common/hdf5_messages.h"

namespace tombolo {
namespace {

constexpr int kMaxTreeDepth = 32;

Error damaged(const char* what) { return parse_error(std::string("damaged HDF5 ") + what); }
Error circle() { return parse_error("the HDF5 file refers to itself in a circle"); }

/// log2 of a power of two, or nothing.
std::optional<unsigned> exact_log2(uint64_t value) {
  if (!std::has_single_bit(value)) return std::nullopt;
  return static_cast<unsigned>(std::countr_zero(value));
}
/// Bytes that hold every number up to `limit`.
size_t bytes_for(uint64_t limit) {
  return limit == 0 ? 1 : (static_cast<size_t>(std::bit_width(limit)) + 7) / 8;
}

}  // namespace

Status Hdf5File::read_symbol_table(ByteReader in, Hdf5Object& object) {
  const uint64_t tree = offset(in);
  ByteReader heap = at(offset(in));
  heap.expect("HEAP");
  heap.skip(4);
  const uint64_t size = length(heap);
  length(heap);
  ByteReader names = at(offset(heap), size);
  if (!in.ok() || !heap.ok() || !names.ok()) return damaged("group");
  return read_group_tree(tree, names.take(size), object, 0);
}

Status Hdf5File::read_group_tree(uint64_t address, std::span<const std::byte> names,
                                 Hdf5Object& object, int depth) {
  if (depth > kMaxTreeDepth || !spend()) return circle();
  ByteReader in = at(address);
  in.expect("TREE");
  const uint8_t type = in.u8();
  in.skip(1);
  const uint16_t used = in.u16();
  in.skip(2 * offset_size_);
  if (!in.ok() || type != 0) return damaged("group");
  const unsigned level = static_cast<unsigned>(*at(address, 6).take(6).rbegin());
  for (unsigned i = 0; i < used; ++i) {
    length(in);  // key
    const uint64_t child = offset(in);
    if (!in.ok()) return damaged("group");
    if (level > 0) {
      CHECK_OK(read_group_tree(child, names, object, depth + 1));
      continue;
    }
    ByteReader node = at(child);
    node.expect("SNOD");
    node.skip(2);
    const uint16_t count = node.u16();
    for (unsigned k = 0; k < count; ++k) {
      if (!spend()) return circle();
      const uint64_t name_at = offset(node);
      Hdf5Link link;
      link.address = offset(node);
      const uint32_t cache = node.u32();
      node.skip(20);
      if (!node.ok() || name_at >= names.size()) return damaged("group");
      const std::string_view rest(reinterpret_cast<const char*>(names.data()) + name_at,
                                  names.size() - name_at);
      const size_t end = rest.find('\0');
      if (end == std::string_view::npos) return damaged("group");
      if (!spend(end)) return circle();
      link.name = std::string(rest.substr(0, end));
      if (cache != 2) object.links.push_back(std::move(link));  // 2: a soft link
    }
  }
  return ok();
}

Status Hdf5File::read_link(std::span<const std::byte> body, Hdf5Object& object) {
  if (!spend()) return circle();
  ByteReader in(body);
  const uint8_t version = in.u8();
  const uint8_t flags = in.u8();
  const uint8_t type = flags & 0x08 ? in.u8() : 0;
  if (flags & 0x04) in.skip(8);
  if (flags & 0x10) in.skip(1);
  const uint64_t size = in.uint(size_t{1} << (flags & 3));
  Hdf5Link link;
  link.name = std::string(in.text(size));
  if (type != 0)
    return in.ok() ? ok() : Status(damaged("link"));  // soft and external: not followed
  link.address = offset(in);
  if (!in.ok() || version != 1) return damaged("link");
  object.links.push_back(std::move(link));
  return ok();
}

struct Hdf5File::Heap {
  size_t offset_bytes, length_bytes;
  uint64_t width, start, root;
  unsigned start_log, max_direct_log, rows;
};

Result<Hdf5File::Heap> Hdf5File::read_heap(uint64_t address) {
  Heap heap{};
  ByteReader in = at(address);
  in.expect("FRHP");
  in.skip(1 + 2);
  const uint16_t filters = in.u16();
  in.skip(1);
  const uint32_t max_managed = in.u32();
  length(in);  // next huge id
  offset(in);  // huge tree
  length(in);  // free space
  offset(in);
  for (int i = 0; i < 8; ++i) length(in);  // managed, allocated, iterator, count, huge, tiny
  heap.width = in.u16();
  heap.start = length(in);
  const uint64_t max_direct = length(in);
  const uint16_t max_bits = in.u16();
  in.skip(2);
  heap.root = offset(in);
  heap.rows = in.u16();
  const auto start_log = exact_log2(heap.start);
  const auto direct_log = exact_log2(max_direct);
  if (!in.ok() || !start_log || !direct_log || *direct_log < *start_log || max_bits > 64 ||
      !exact_log2(heap.width) || heap.rows > 64 || *direct_log > 40) {
    return damaged("fractal heap");
  }
  if (filters != 0) return unsupported("compressed HDF5 attributes or groups are not supported");
  heap.start_log = *start_log;
  heap.max_direct_log = *direct_log;
  heap.offset_bytes = (max_bits + 7u) / 8;
  heap.length_bytes = std::min<size_t>((*direct_log + 7) / 8, bytes_for(max_managed));
  return heap;
}

Result<std::span<const std::byte>> Hdf5File::heap_object(const Heap& heap,
                                                         std::span<const std::byte> id) {
  ByteReader in(id);
  const uint8_t head = in.u8();
  const unsigned kind = (head >> 4) & 3;
  if (kind == 2) return in.take(std::min<size_t>((head & 0x0F) + 1u, in.left()));  // tiny: inline
  if (kind != 0) return unsupported("an HDF5 attribute or link beyond 64 KiB is not supported");
  uint64_t where = in.uint(heap.offset_bytes);
  const uint64_t size = in.uint(heap.length_bytes);
  if (!in.ok()) return damaged("fractal heap");
  // Walk the doubling table: rows 0 and 1 hold blocks of the starting size, each further row
  // blocks of twice the size; rows beyond the largest direct block hold indirect blocks.
  uint64_t block = heap.root;
  uint64_t block_size = heap.start;
  unsigned rows = heap.rows;
  while (rows != 0) {
    if (!spend()) return circle();
    const uint64_t first_rows = heap.width << heap.start_log;
    const unsigned row =
        where < first_rows ? 0 : static_cast<unsigned>(std::bit_width(where / first_rows));
    const unsigned row_log = heap.start_log + (row == 0 ? 0 : row - 1);
    const uint64_t row_start = row == 0 ? 0 : first_rows << (row - 1);
    if (row >= rows || row_log > 50) return damaged("fractal heap");
    const uint64_t column = (where - row_start) >> row_log;
    const unsigned direct_rows = heap.max_direct_log - heap.start_log + 2;
    ByteReader node = at(block);
    node.expect("FHIB");
    node.skip(1 + offset_size_ + heap.offset_bytes);
    node.skip((row * heap.width + column) * offset_size_);
    block = offset(node);
    if (!node.ok() || undefined(block)) return damaged("fractal heap");
    where -= row_start + (column << row_log);
    block_size = uint64_t{1} << row_log;
    if (row < direct_rows) break;
    const unsigned width_log = *exact_log2(heap.width);
    if (row_log < heap.start_log + width_log) return damaged("fractal heap");
    rows = row_log - heap.start_log - width_log + 1;
  }
  ByteReader data = at(block);
  if (ByteReader(data).text(4) != "FHDB" || where > block_size || size > block_size - where) {
    return damaged("fractal heap");
  }
  data.skip(where);
  const auto result = data.take(size);
  if (!data.ok()) return damaged("fractal heap");
  return result;
}

struct Hdf5File::Tree2 {
  uint64_t node_size, record_size;
  std::vector<uint64_t> max_records;  // by level, leaf first
  std::vector<size_t> total_bytes;    // by level: width of "records below" counts
  size_t count_bytes;
};

Status Hdf5File::walk_tree2(const Tree2& tree, uint64_t address, uint64_t records, int depth,
                            std::vector<std::span<const std::byte>>& found) {
  if (!spend(1 + records)) return circle();
  ByteReader in = at(address, tree.node_size);
  in.expect(depth == 0 ? "BTLF" : "BTIN");
  in.skip(2);
  for (uint64_t i = 0; i < records && in.ok(); ++i) found.push_back(in.take(tree.record_size));
  if (!in.ok()) return damaged("index");
  if (depth == 0) return ok();
  for (uint64_t i = 0; i <= records; ++i) {
    const uint64_t child = offset(in);
    const uint64_t count = in.uint(tree.count_bytes);
    if (depth > 1) in.skip(tree.total_bytes[static_cast<size_t>(depth - 1)]);
    if (!in.ok()) return damaged("index");
    CHECK_OK(walk_tree2(tree, child, count, depth - 1, found));
  }
  return ok();
}

Status Hdf5File::read_dense(uint64_t heap_address, uint64_t tree_address, bool attributes,
                            Hdf5Object& object) {
  if (!spend()) return circle();
  TRY(const Heap heap, read_heap(heap_address));
  ByteReader in = at(tree_address);
  in.expect("BTHD");
  in.skip(1);
  const uint8_t type = in.u8();
  Tree2 tree{};
  tree.node_size = in.u32();
  tree.record_size = in.u16();
  const uint16_t depth = in.u16();
  in.skip(2);
  const uint64_t root = offset(in);
  const uint16_t root_records = in.u16();
  // Records: 5 link by name (hash, id), 6 link by order (order, id), 8 attribute by name (id,
  // flags, order, hash), 9 attribute by order (id, flags, order).
  const size_t id_at = type == 5 ? 4 : type == 6 ? 8 : 0;
  if (!in.ok() || depth > kMaxTreeDepth || tree.node_size < 32 || tree.record_size <= id_at ||
      (attributes ? type != 8 && type != 9 : type != 5 && type != 6)) {
    return damaged("index");
  }
  if (undefined(root)) return ok();
  tree.max_records.push_back((tree.node_size - 10) / tree.record_size);
  tree.count_bytes = bytes_for(tree.max_records[0]);
  tree.total_bytes.push_back(0);
  uint64_t total = tree.max_records[0];
  for (int level = 1; level <= depth; ++level) {
    const size_t pointer =
        offset_size_ + tree.count_bytes + tree.total_bytes[static_cast<size_t>(level - 1)];
    const uint64_t most = (tree.node_size - 10 - pointer) / (tree.record_size + pointer);
    if (tree.node_size < 10 + pointer || total > UINT32_MAX) return damaged("index");
    total = (most + 1) * total + most;
    tree.max_records.push_back(most);
    tree.total_bytes.push_back(bytes_for(total));
  }
  std::vector<std::span<const std::byte>> records;
  CHECK_OK(walk_tree2(tree, root, root_records, depth, records));
  const size_t id_bytes = attributes ? 8 : tree.record_size - id_at;
  for (const auto record : records) {
    if (record.size() < id_at + id_bytes) return damaged("index");
    TRY(const auto body, heap_object(heap, record.subspan(id_at, id_bytes)));
    CHECK_OK(attributes ? read_attribute(body, object) : read_link(body, object));
  }
  return ok();
}

}  // namespace tombolo
