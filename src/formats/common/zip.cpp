#include "formats/common/zip.h"

#include <zlib.h>

#include <algorithm>
#include <numeric>
#include <unordered_set>

#include "formats/common/byte_reader.h"
#include "formats/common/deflate.h"

namespace tombolo {
namespace {

constexpr uint32_t kEndSignature = 0x06054b50, kEnd64Signature = 0x06064b50,
                   kLocator64Signature = 0x07064b50, kEntrySignature = 0x02014b50,
                   kLocalSignature = 0x04034b50;
constexpr size_t kEndSize = 22, kLocator64Size = 20, kEntrySize = 46, kLocalSize = 30;
constexpr size_t kMaxMembers = 1'000'000;
constexpr uint64_t kMaxExpansion = 1040;  // deflate's best case is 1032 to 1

Error damaged(const std::string& what) { return parse_error("damaged ZIP archive: " + what); }

uint32_t checksum(std::span<const std::byte> bytes) {
  uLong crc = crc32(0, nullptr, 0);
  for (size_t at = 0; at < bytes.size();) {
    const size_t part = std::min(bytes.size() - at, size_t{1} << 30);
    crc = crc32(crc, reinterpret_cast<const Bytef*>(bytes.data() + at), static_cast<uInt>(part));
    at += part;
  }
  return static_cast<uint32_t>(crc);
}

}  // namespace

bool ZipArchive::probe(std::span<const std::byte> bytes) {
  return bytes.size() >= kEndSize && ByteReader(bytes).u32() == kLocalSignature;
}

Result<ZipArchive> ZipArchive::open(std::span<const std::byte> bytes,
                                    std::shared_ptr<const void> owner) {
  ZipArchive archive;
  archive.blob_ = {bytes, std::move(owner)};
  CHECK_OK(archive.read_directory());
  return archive;
}

Status ZipArchive::read_directory() {
  const auto bytes = blob_.bytes;
  if (bytes.size() < kEndSize) return damaged("too short");
  // The end record stands last, before a comment of at most 65,535 bytes.
  size_t end = bytes.size() - kEndSize;
  const size_t lowest = end > 0xFFFF ? end - 0xFFFF : 0;
  while (ByteReader(bytes.subspan(end)).u32() != kEndSignature) {
    if (end == lowest) return damaged("no central directory; the file may be truncated");
    --end;
  }
  ByteReader in(bytes.subspan(end + 4));
  const uint16_t disk = in.u16(), first_disk = in.u16();
  in.skip(2);
  uint64_t count = in.u16(), size = in.u32(), start = in.u32();
  if (count == 0xFFFF || size == 0xFFFFFFFF || start == 0xFFFFFFFF) {
    if (end >= kLocator64Size) {
      ByteReader locator(bytes.subspan(end - kLocator64Size));
      if (locator.u32() == kLocator64Signature) {
        locator.skip(4);
        const uint64_t where = locator.u64();
        if (where > bytes.size()) return damaged("zip64 record out of range");
        ByteReader record(bytes.subspan(where));
        if (record.u32() != kEnd64Signature) return damaged("no zip64 record");
        record.skip(8 + 4 + 8 + 8);
        count = record.u64();
        size = record.u64();
        start = record.u64();
        if (!record.ok()) return damaged("zip64 record out of range");
      }
    }
  } else if (disk != 0 || first_disk != 0) {
    return unsupported("a ZIP archive in several parts is not supported");
  }
  if (start > end || size > end - start) return damaged("central directory out of range");
  if (count > kMaxMembers || count * kEntrySize > size) return damaged("member count");

  ByteReader directory(bytes.subspan(start, size));
  std::unordered_set<std::string> names;
  for (uint64_t i = 0; i < count; ++i) {
    if (directory.u32() != kEntrySignature) return damaged("central directory");
    directory.skip(4);
    const uint16_t flags = directory.u16(), method = directory.u16();
    directory.skip(4);
    Member member;
    member.crc = directory.u32();
    member.stored = directory.u32();
    member.size = directory.u32();
    const uint16_t name_size = directory.u16(), extra_size = directory.u16(),
                   comment_size = directory.u16();
    directory.skip(8);
    uint64_t local = directory.u32();
    member.name = std::string(directory.text(name_size));
    ByteReader extra(directory.take(extra_size));
    directory.skip(comment_size);
    if (!directory.ok()) return damaged("central directory");
    while (extra.left() >= 4) {
      const uint16_t id = extra.u16();
      ByteReader field(extra.take(extra.u16()));
      if (!extra.ok()) break;  // some writers pad with what is no field
      if (id != 1) continue;
      for (uint64_t* value : {&member.size, &member.stored, &local})
        if (*value == 0xFFFFFFFF) *value = field.u64();
      if (!field.ok()) return damaged("zip64 sizes");
    }
    if (!names.insert(member.name).second) {
      return parse_error("ZIP member \"" + member.name + "\" occurs twice");
    }
    if (flags & 1) return unsupported("ZIP member \"" + member.name + "\" is encrypted");
    if (method != 0 && method != 8) {
      return unsupported("ZIP member \"" + member.name + "\" uses compression method " +
                         std::to_string(method));
    }
    member.deflated = method == 8;
    if (local > bytes.size()) return damaged("member \"" + member.name + "\" out of range");
    ByteReader header(bytes.subspan(local));
    if (header.u32() != kLocalSignature) return damaged("member \"" + member.name + "\"");
    header.skip(2);
    const uint16_t local_flags = header.u16(), local_method = header.u16();
    header.skip(8);
    const uint64_t local_stored = header.u32(), local_size = header.u32();
    const uint16_t local_name = header.u16(), local_extra = header.u16();
    const uint64_t skip = uint64_t{local_name} + local_extra;
    // Two readers must not see two archives. With bit 3 the sizes stand behind the data; a size of
    // all ones stands in the extra field.
    const auto contradicts = [&](uint64_t here, uint64_t there) {
      return here != there && here != 0xFFFFFFFF && !(local_flags & 8 && here == 0);
    };
    if (header.left() >= local_name &&
        (ByteReader(bytes.subspan(local + kLocalSize)).text(local_name) != member.name ||
         local_method != method || contradicts(local_stored, member.stored) ||
         contradicts(local_size, member.size)))
      return damaged("member \"" + member.name + "\" contradicts the directory");
    if (!header.ok() || skip > header.left() || member.stored > header.left() - skip) {
      return damaged("member \"" + member.name + "\" out of range");
    }
    member.offset = local + kLocalSize + skip;
    if (member.deflated ? member.size > (member.stored + 1) * kMaxExpansion
                        : member.size != member.stored) {
      return damaged("member \"" + member.name + "\" has an impossible size");
    }
    members_.push_back(std::move(member));
  }
  by_name_.resize(members_.size());
  std::iota(by_name_.begin(), by_name_.end(), 0u);
  std::sort(by_name_.begin(), by_name_.end(),
            [&](uint32_t a, uint32_t b) { return members_[a].name < members_[b].name; });
  std::vector<std::pair<uint64_t, uint64_t>> ranges;
  for (const Member& member : members_) {
    ranges.emplace_back(member.offset, member.offset + member.stored);
  }
  std::sort(ranges.begin(), ranges.end());
  for (size_t i = 1; i < ranges.size(); ++i) {
    if (ranges[i].first < ranges[i - 1].second) return damaged("members overlap");
  }
  return ok();
}

const ZipArchive::Member* ZipArchive::find(std::string_view name) const {
  const auto found = std::lower_bound(
      by_name_.begin(), by_name_.end(), name,
      [&](uint32_t at, std::string_view text) { return members_[at].name < text; });
  return found != by_name_.end() && members_[*found].name == name ? &members_[*found] : nullptr;
}

Result<Blob> ZipArchive::read(std::string_view name) const {
  const Member* member = find(name);
  if (!member) return parse_error("the archive has no member \"" + std::string(name) + "\"");
  return read(*member);
}

Status ZipArchive::verify(const Member& member) const {
  // PyTorch leaves the checksum out on request.
  if (member.deflated || member.crc == 0) return ok();
  const auto stored = blob_.bytes.subspan(member.offset, member.stored);
  if (checksum(stored) != member.crc)
    return damaged("member \"" + member.name + "\" differs from its checksum");
  return ok();
}

Result<Blob> ZipArchive::read(const Member& member) const {
  const auto stored = blob_.bytes.subspan(member.offset, member.stored);
  if (!member.deflated) return Blob{stored, blob_.owner};
  const Result<Blob> content = inflated(stored, Deflate::kRaw, member.size);
  if (!content || content->bytes.size() != member.size || checksum(content->bytes) != member.crc)
    return damaged("member \"" + member.name + "\" does not decompress");
  return content;
}

}  // namespace tombolo
