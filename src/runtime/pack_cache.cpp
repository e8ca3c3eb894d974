#include "runtime/pack_cache.h"

#include <dlfcn.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/cpu.h"
#include "base/output_file.h"
#include "runtime/kernels/isa.h"
#include "runtime/kernels/matmul/gemm.h"

namespace tombolo {
namespace {

constexpr size_t kLine = 64;
constexpr char kMagic[8] = {'T', 'O', 'M', 'B', 'P', 'A', 'C', 'K'};

/// In front of a pack, which thereby is aligned; a line of zeros follows it.
struct alignas(kLine) Header {
  char magic[sizeof kMagic] = {};
  uint64_t bytes = 0;
  XXH128_hash_t check = {};  ///< of the pack
};
static_assert(sizeof(Header) == kLine);

/// What packs depend on beside weights and layout: the program file that holds this code, told by
/// size and time, and what kernels ask the processor.
std::string identity() {
  static const std::string program = [] {
    Dl_info info = {};
    struct stat file = {};
    if (dladdr(reinterpret_cast<const void*>(&gemm_tiles), &info) == 0 ||
        stat(info.dli_fname, &file) != 0)
      stat("/proc/self/exe", &file);
    return std::to_string(file.st_size) + "." + std::to_string(file.st_mtim.tv_sec) + "." +
           std::to_string(file.st_mtim.tv_nsec) + " " + cpu_name() + " " +
           std::to_string(near_bytes());
  }();
  std::string text = program + " " + std::string(name_of(active_isa()));
  for (const bool extra :
       {has_vnni(), has_bf16_dot(), has_avx_vnni(), has_arm_dot(), has_amx_int8(), has_amx_bf16()})
    text += extra ? '1' : '0';
  return text;
}

}  // namespace

Result<std::unique_ptr<PackCache>> PackCache::open(std::string folder) {
  const auto fail = [&](const std::string& why) {
    return usage_error("packed weights cannot be kept in \"" + folder + "\": " + why)
        .with_help("name a folder that can be written; its parent has to be there");
  };
  if (mkdir(folder.c_str(), 0777) != 0 && errno != EEXIST) return fail(std::strerror(errno));
  struct stat status = {};
  if (stat(folder.c_str(), &status) != 0) return fail(std::strerror(errno));
  if (!S_ISDIR(status.st_mode)) return fail("it is no folder");
  if (access(folder.c_str(), R_OK | W_OK | X_OK) != 0) return fail(std::strerror(errno));
  return std::unique_ptr<PackCache>(new PackCache(std::move(folder)));
}

std::string PackCache::name_of(std::span<const Tensor* const> sources, std::string_view key,
                               size_t bytes) const {
  XXH3_state_t state;
  XXH3_128bits_reset(&state);
  const auto add = [&](const void* data, size_t size) {
    const uint64_t length = size;  // so that no two lists of parts look alike
    XXH3_128bits_update(&state, &length, sizeof length);
    XXH3_128bits_update(&state, data, size);
  };
  const std::string process = identity();
  add(process.data(), process.size());
  add(key.data(), key.size());
  add(&bytes, sizeof bytes);
  for (const Tensor* source : sources) {
    const auto dtype = static_cast<int32_t>(source->dtype());
    add(&dtype, sizeof dtype);
    add(source->dims().data(), source->dims().size() * sizeof(int64_t));
    if (source->deferred() != nullptr) {
      std::vector<std::byte> made(source->bytes().size());
      source->write_to(made.data());
      add(made.data(), made.size());
    } else {
      add(source->bytes().data(), source->bytes().size());
    }
  }
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(&state));
  std::string name = folder_ + "/";
  for (const unsigned char byte : canonical.digest)
    for (const int digit : {byte >> 4, byte & 15}) name += "0123456789abcdef"[digit];
  return name + ".pack";
}

const std::byte* PackCache::find(const std::string& name, size_t bytes) {
  auto file = MappedFile::open(name);
  if (!file || file->size() != sizeof(Header) + bytes + kLine) return nullptr;
  Header header;
  std::memcpy(&header, file->bytes().data(), sizeof header);
  const std::byte* const pack = file->bytes().data() + sizeof header;
  if (std::memcmp(header.magic, kMagic, sizeof kMagic) != 0 || header.bytes != bytes ||
      XXH128_isEqual(header.check, XXH3_128bits(pack, bytes)) == 0)
    return nullptr;
  std::lock_guard lock(mutex_);
  files_.push_back(*std::move(file));
  return pack;
}

void PackCache::keep(const std::string& name, std::span<const std::byte> pack) const {
  Header header;
  std::memcpy(header.magic, kMagic, sizeof kMagic);
  header.bytes = pack.size();
  header.check = XXH3_128bits(pack.data(), pack.size());
  auto file = OutputFile::create(name);
  constexpr std::byte line[kLine] = {};
  if (file && file->write(std::as_bytes(std::span(&header, 1))) && file->write(pack) &&
      file->write(line))
    (void)file->commit();
}

}  // namespace tombolo
