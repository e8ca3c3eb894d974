#include "base/path_containment.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <cerrno>
#include <climits>
#include <vector>

#if __has_include(<linux/openat2.h>)
#include <linux/openat2.h>
#endif

namespace tombolo {
namespace {

Error refused(std::string_view location, const std::string& reason) {
  return parse_error("external data location " + quoted(location) + " " + reason);
}

// O_NONBLOCK: a named pipe must not make the open wait; it is refused afterwards.
constexpr int kFileFlags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW;

std::vector<std::string> components_of(std::string_view location) {
  std::vector<std::string> parts;
  while (!location.empty()) {
    const size_t slash = location.find('/');
    const auto part = location.substr(0, slash);
    if (!part.empty() && part != ".") parts.emplace_back(part);
    if (slash == std::string_view::npos) break;
    location.remove_prefix(slash + 1);
  }
  return parts;
}

// -1 with errno set on failure, as open().
int open_by_walk(int folder, const std::vector<std::string>& parts) {
  UniqueFd current;
  int at = folder;
  for (size_t i = 0; i + 1 < parts.size(); ++i) {
    // Without O_DIRECTORY a link gives ELOOP, which says more than the ENOTDIR of both flags; the
    // next openat below what is not a directory gives ENOTDIR.
    UniqueFd next(::openat(at, parts[i].c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW));
    if (!next) return -1;
    current = std::move(next);
    at = current.get();
  }
  return ::openat(at, parts.back().c_str(), kFileFlags);
}

// -2: this kernel (or a sandbox) does not offer openat2.
int open_by_openat2([[maybe_unused]] int folder, [[maybe_unused]] const std::string& path) {
#if defined(SYS_openat2) && defined(RESOLVE_BENEATH)
  open_how how{};
  how.flags = kFileFlags;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  for (int attempt = 0; attempt < 8; ++attempt) {
    const long fd = ::syscall(SYS_openat2, folder, path.c_str(), &how, sizeof(how));
    if (fd >= 0) return static_cast<int>(fd);
    if (errno == EAGAIN) continue;  // something was renamed meanwhile
    return errno == ENOSYS || errno == EPERM || errno == E2BIG || errno == EINVAL ? -2 : -1;
  }
#endif
  return -2;
}

}  // namespace

Status check_location(std::string_view location) {
  if (location.empty()) return refused(location, "is empty");
  if (location.size() >= PATH_MAX) return refused(location, "is too long");
  if (location.find('\0') != location.npos) return refused(location, "contains a NUL byte");
  if (location.find('\\') != location.npos) {
    return refused(location, "contains a backslash: only forward slashes separate folders");
  }
  if (location.front() == '/') return refused(location, "is absolute");
  const char letter = static_cast<char>(location[0] | 0x20);
  if (location.size() > 1 && location[1] == ':' && letter >= 'a' && letter <= 'z') {
    return refused(location, "starts with a drive letter");
  }
  const auto parts = components_of(location);
  if (parts.empty()) return refused(location, "names no file");
  for (const auto& part : parts) {
    if (part == "..") return refused(location, "leaves the model's folder (\"..\")");
  }
  return ok();
}

Result<MappedFile> open_contained(const std::string& folder, std::string_view location,
                                  OpenMethod method) {
  CHECK_OK(check_location(location));
  const std::string base_path = folder.empty() ? "." : folder;
  UniqueFd base(::open(base_path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!base) {
    return parse_error("cannot open the model's folder " + quoted(base_path) + ": " +
                       errno_text(errno));
  }
  const auto parts = components_of(location);
  std::string clean;
  for (const auto& part : parts) clean += (clean.empty() ? "" : "/") + part;
  int fd = method == OpenMethod::kBest ? open_by_openat2(base.get(), clean) : -2;
  if (fd == -2) fd = open_by_walk(base.get(), parts);
  if (fd < 0) {
    const int error = errno;
    if (error == ELOOP) return refused(location, "goes through a symbolic link");
    if (error == EXDEV) return refused(location, "leaves the model's folder");
    if (error == ENOENT) return refused(location, "does not exist in " + quoted(base_path));
    return refused(location, "cannot be opened: " + errno_text(error));
  }
  UniqueFd file(fd);
  struct stat info {};
  if (::fstat(file.get(), &info) != 0) {
    return refused(location, "cannot be opened: " + errno_text(errno));
  }
  if (!S_ISREG(info.st_mode)) return refused(location, "is not a regular file");
  if (location.back() == '/') return refused(location, "ends in a slash");
  if (info.st_nlink > 1) {
    return refused(location, "has " + std::to_string(info.st_nlink) +
                                 " hard links: the same file could lie outside the folder")
        .with_help("copy the file so that it has one link");
  }
  const bool has_slash = base_path.back() == '/';
  return MappedFile::from_descriptor(std::move(file), base_path + (has_slash ? "" : "/") + clean);
}

}  // namespace tombolo
