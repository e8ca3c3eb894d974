#include "base/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>

namespace tombolo {
namespace {

Error cannot(const char* verb, const std::string& name, int error) {
  std::string message = std::string("cannot ") + verb + " " + quoted(name) + ": ";
  if (error == ENOMEM) return resource_error(message + "out of memory");
  return parse_error(message + errno_text(error));
}

struct Buffer {
  std::shared_ptr<const void> owner;
  const char* data = nullptr;
  size_t size = 0;
};

// realloc rather than a vector: large blocks grow without being copied.
Result<Buffer> read_stream(int fd, const std::string& name, size_t limit) {
  char* data = nullptr;
  size_t size = 0, capacity = 0;
  while (true) {
    if (size == capacity) {
      // One byte beyond the limit is what tells "exactly the limit" from "too much".
      const size_t room = limit == SIZE_MAX ? limit : limit + 1;
      capacity = std::min(room, std::max<size_t>(size_t{64} << 10, capacity * 2));
      if (size == capacity) {
        std::free(data);
        return resource_error(quoted(name) + " holds more than " + std::to_string(limit) +
                              " bytes and cannot be mapped into memory")
            .with_help("save it to a regular file first");
      }
      char* larger = static_cast<char*>(std::realloc(data, capacity));
      if (larger == nullptr) {
        std::free(data);
        return cannot("read", name, ENOMEM);
      }
      data = larger;
    }
    const ssize_t got = ::read(fd, data + size, capacity - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      const int error = errno;
      std::free(data);
      return cannot("read", name, error);
    }
    if (got == 0) break;
    size += static_cast<size_t>(got);
  }
  if (char* smaller = static_cast<char*>(std::realloc(data, std::max<size_t>(size, 1)))) {
    data = smaller;
  }
  return Buffer{std::shared_ptr<const void>(data, std::free), data, size};
}

}  // namespace

Result<MappedFile> MappedFile::open(const std::string& path, size_t stream_limit) {
  if (path == "-") {
    UniqueFd fd(::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3));
    if (!fd) return cannot("read", "standard input", errno);
    return from_descriptor(std::move(fd), "standard input", stream_limit);
  }
  if (path.find('\0') != std::string::npos) return cannot("open", path, EINVAL);
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return cannot("open", path, errno);
  return from_descriptor(std::move(fd), path, stream_limit);
}

Result<MappedFile> MappedFile::from_descriptor(UniqueFd fd, std::string name, size_t stream_limit) {
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) return cannot("open", name, errno);
  if (S_ISDIR(info.st_mode)) return cannot("read", name, EISDIR);
  MappedFile file;
  file.name_ = std::move(name);
  // Files of /proc are regular and say size 0: they are read. Standard input redirected from a
  // file may have been read in part: mapping would start over, so only offset 0 maps.
  const bool mappable =
      S_ISREG(info.st_mode) && info.st_size > 0 && ::lseek(fd.get(), 0, SEEK_CUR) == 0;
  if (!mappable) {
    TRY(Buffer buffer, read_stream(fd.get(), file.name_, stream_limit));
    file.owner_ = std::move(buffer.owner);
    file.data_ = buffer.data;
    file.size_ = buffer.size;
    return file;
  }
  if (static_cast<uint64_t>(info.st_size) > SIZE_MAX) return cannot("map", file.name_, ENOMEM);
  const auto size = static_cast<size_t>(info.st_size);
  void* data = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd.get(), 0);
  if (data == MAP_FAILED) return cannot("map", file.name_, errno);
  file.owner_ = std::shared_ptr<const void>(
      data, [size](const void* p) { ::munmap(const_cast<void*>(p), size); });
  file.data_ = static_cast<const char*>(data);
  file.size_ = size;
  file.mapped_ = true;
  return file;
}

MappedFile MappedFile::from_memory(std::string bytes, std::string name) {
  auto owner = std::make_shared<const std::string>(std::move(bytes));
  MappedFile file;
  file.data_ = owner->data();
  file.size_ = owner->size();
  file.owner_ = std::move(owner);
  file.name_ = std::move(name);
  return file;
}

void MappedFile::release_pages(std::span<const std::byte> part) const {
  if (!mapped_ || part.empty()) return;
  const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto base = reinterpret_cast<uintptr_t>(data_);
  const auto from = std::max(reinterpret_cast<uintptr_t>(part.data()), base);
  const auto to = std::min(reinterpret_cast<uintptr_t>(part.data()) + part.size(), base + size_);
  const uintptr_t first = (from + page - 1) / page * page;
  const uintptr_t last = to / page * page;
  if (first < last) ::madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED);
}

}  // namespace tombolo
