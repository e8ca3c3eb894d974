#include "ir/storage.h"

#include <algorithm>
#include <cstring>
#include <functional>

#include "base/path_containment.h"
#include "ir/type.h"

namespace tombolo {

Storage::~Storage() = default;

Result<std::string_view> Storage::external_file(Text location) {
  std::string key(location);
  if (auto known = external_files_.find(key); known != external_files_.end()) return known->second;
  TRY(MappedFile file, open_contained(folder_, location));
  const std::string_view bytes = file.size() != 0 ? file.text() : std::string_view("");
  keep(std::move(file));
  external_files_.emplace(std::move(key), bytes);
  return bytes;
}

void Storage::release(std::string_view bytes) const {
  const std::less_equal<> before;
  for (const MappedFile& file : files_) {
    const std::string_view whole = file.text();
    if (before(whole.data(), bytes.data()) &&
        before(bytes.data() + bytes.size(), whole.data() + whole.size()))
      file.release_pages(std::as_bytes(std::span(bytes)));
  }
}

std::span<std::byte> Storage::allocate(size_t bytes) {
  constexpr size_t kBlock = 1 << 16, kAlign = 16;
  const size_t rounded = (bytes + kAlign - 1) / kAlign * kAlign;
  if (rounded > kBlock / 4) {  // large requests get a block of their own
    blocks_.push_back(std::make_unique<std::byte[]>(rounded));
    return {blocks_.back().get(), bytes};
  }
  if (rounded > block_left_) {
    blocks_.push_back(std::make_unique<std::byte[]>(kBlock));
    block_at_ = blocks_.back().get();
    block_left_ = kBlock;
  }
  std::byte* at = block_at_;
  block_at_ += rounded;
  block_left_ -= rounded;
  return {at, bytes};
}

Text Storage::copy(Text text) {
  if (text.empty()) return "";
  auto bytes = allocate(text.size());
  std::memcpy(bytes.data(), text.data(), text.size());
  return {reinterpret_cast<const char*>(bytes.data()), text.size()};
}

const Type* Storage::intern(Type type) {
  auto mix = [](size_t hash, size_t value) {
    return (hash ^ value) * 0x9E3779B97F4A7C15ull + (hash >> 29);
  };
  auto text_hash = [](Text text) { return std::hash<std::string_view>()(text); };
  size_t hash = mix(static_cast<size_t>(type.kind), static_cast<size_t>(type.elem_type));
  hash = mix(hash, type.dims.size() * 2 + (type.has_shape ? 1 : 0));
  hash = mix(hash, reinterpret_cast<size_t>(type.element) ^ static_cast<size_t>(type.key_type));
  for (const Dim& dim : type.dims)
    hash = mix(mix(hash, static_cast<size_t>(dim.value)), text_hash(dim.param));
  auto [begin, end] = types_.equal_range(hash);
  for (auto it = begin; it != end; ++it)
    if (*it->second == type) return it->second.get();
  return types_.emplace(hash, std::make_unique<const Type>(std::move(type)))->second.get();
}

}  // namespace tombolo
