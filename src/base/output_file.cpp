#include "base/output_file.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>

namespace tombolo {
namespace {

constexpr size_t kBufferSize = size_t{256} << 10;

Error cannot_create(const std::string& name, int error) {
  return parse_error("cannot create " + quoted(name) + ": " + errno_text(error));
}

Error cannot_write(const std::string& name, int error) {
  std::string message = "cannot write " + quoted(name) + ": " + errno_text(error);
  const bool full = error == ENOSPC || error == EDQUOT || error == EFBIG;
  return full ? resource_error(std::move(message)) : runtime_error(std::move(message));
}

std::string folder_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == path.npos) return "";
  return path.substr(0, slash + 1);
}

// The file a path leads to through symbolic links, in one spelling for each file. It need not
// exist: a dangling link is followed too, its target is what gets created.
std::string follow_links(std::string path) {
  if (char* real = ::realpath(path.c_str(), nullptr)) {
    path = real;
    std::free(real);
    return path;
  }
  for (int depth = 0; depth < 40; ++depth) {
    std::array<char, 4096> link;
    const ssize_t size = ::readlink(path.c_str(), link.data(), link.size());
    if (size <= 0 || static_cast<size_t>(size) == link.size()) break;
    const std::string next(link.data(), static_cast<size_t>(size));
    const size_t slash = path.rfind('/');
    path = next[0] == '/' || slash == path.npos ? next : path.substr(0, slash + 1) + next;
  }
  const std::string folder = folder_of(path);
  if (char* real = ::realpath(folder.empty() ? "." : folder.c_str(), nullptr)) {
    path = std::string(real) + "/" + path.substr(folder.size());
    std::free(real);
  }
  return path;
}

// What a signal handler needs to find this process's temporaries again: the last folders that got
// one (a command writes to one or two), and how many names were given out. A name that is being
// replaced meanwhile leads nowhere.
struct TemporaryFolders {
  std::array<std::array<char, 4096>, 8> names{};
  std::atomic<size_t> count{0};  ///< of all that were added; the last ones are kept
  std::mutex mutex;

  size_t kept() const { return std::min(count.load(), names.size()); }

  void add(const std::string& folder) {
    const std::lock_guard lock(mutex);
    for (size_t i = 0; i < kept(); ++i)
      if (folder == names[i].data()) return;
    const size_t used = count.load();
    auto& name = names[used % names.size()];
    if (folder.size() + 64 > name.size()) return;
    std::memcpy(name.data(), folder.c_str(), folder.size() + 1);
    count.store(used + 1);
  }
};
TemporaryFolders temporary_folders;
std::atomic<unsigned> temporary_counter{0};

// Without allocating: also called by a signal handler.
void append_number(char*& at, unsigned long number) {
  std::array<char, 24> digits;
  size_t size = 0;
  do digits[size++] = static_cast<char>('0' + number % 10);
  while ((number /= 10) != 0);
  while (size != 0) *at++ = digits[--size];
}

// FOLDER.tombolo-PID-NUMBER.tmp; `at` has room for 64 characters more than the folder.
void append_temporary_name(char* at, unsigned number) {
  constexpr std::string_view kPrefix = ".tombolo-", kSuffix = ".tmp";
  at = std::copy(kPrefix.begin(), kPrefix.end(), at);
  append_number(at, static_cast<unsigned long>(::getpid()));
  *at++ = '-';
  append_number(at, number);
  at = std::copy(kSuffix.begin(), kSuffix.end(), at);
  *at = 0;
}

// Unique in the process by the counter, between processes by the id; O_EXCL settles the rest.
UniqueFd create_temporary(const std::string& folder, std::string& temporary) {
  temporary_folders.add(folder);
  for (int attempt = 0; attempt < 100; ++attempt) {
    std::array<char, 64> name;
    append_temporary_name(name.data(), temporary_counter.fetch_add(1));
    temporary = folder + name.data();
    // 0666 less the umask, as any program creates files; mkstemp would give 0600.
    UniqueFd fd(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
    if (fd || errno != EEXIST) return fd;
  }
  return {};
}

}  // namespace

void remove_temporaries() noexcept {
  const size_t folders = temporary_folders.kept();
  const unsigned used = temporary_counter.load();
  for (size_t i = 0; i < folders; ++i) {
    std::array<char, 4096> path = temporary_folders.names[i];
    char* const end = path.data() + std::strlen(path.data());
    for (unsigned number = 0; number < used; ++number) {
      append_temporary_name(end, number);
      ::unlink(path.data());
    }
  }
}

OutputFile::OutputFile(std::string name, std::string target, std::string temporary, UniqueFd fd)
    : name_(std::move(name)),
      target_(std::move(target)),
      temporary_(std::move(temporary)),
      fd_(std::move(fd)) {}

OutputFile::OutputFile(OutputFile&& other) noexcept
    : name_(std::move(other.name_)),
      target_(std::move(other.target_)),
      temporary_(std::exchange(other.temporary_, {})),
      fd_(std::move(other.fd_)),
      buffer_(std::move(other.buffer_)),
      position_(other.position_),
      state_(std::exchange(other.state_, State::kDone)) {}

OutputFile::~OutputFile() {
  fd_.reset();
  const bool pending = state_ == State::kWriting || state_ == State::kFinished;
  if (pending && !temporary_.empty()) ::unlink(temporary_.c_str());
}

Result<OutputFile> OutputFile::create(const std::string& path) {
  if (path == "-") {
    UniqueFd fd(::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3));
    if (!fd) return cannot_create("standard output", errno);
    return OutputFile("standard output", "-", "", std::move(fd));
  }
  if (path.empty()) return cannot_create(path, ENOENT);
  if (path.find('\0') != path.npos) return cannot_create(path, EINVAL);
  if (path.back() == '/') return cannot_create(path, EISDIR);
  std::string target = follow_links(path);
  struct stat info {};
  const bool exists = ::stat(target.c_str(), &info) == 0;
  if (exists && S_ISDIR(info.st_mode)) return cannot_create(path, EISDIR);
  if (exists && !S_ISREG(info.st_mode)) {
    UniqueFd fd(::open(target.c_str(), O_WRONLY | O_CLOEXEC));
    if (!fd) return cannot_create(path, errno);
    return OutputFile(path, std::move(target), "", std::move(fd));
  }
  // A rename needs no permission on the file that it replaces; writing it would, so ask.
  if (exists && ::access(target.c_str(), W_OK) != 0) return cannot_create(path, errno);
  std::string temporary;
  UniqueFd fd = create_temporary(folder_of(target), temporary);
  if (!fd && errno == ENOENT) {
    return cannot_create(path, ENOENT).with_help("create the folder first");
  }
  if (!fd) return cannot_create(path, errno);
  if (exists) {
    // Best effort: some file systems know no permissions, and then there is nothing to keep.
    (void)!::fchmod(fd.get(), info.st_mode & 07777);
  }
  return OutputFile(path, std::move(target), std::move(temporary), std::move(fd));
}

Status OutputFile::write_through(const std::byte* data, size_t size) {
  while (size != 0) {
    // One call writes at most 0x7ffff000 bytes on Linux; other systems refuse more than 2^31.
    const ssize_t done = ::write(fd_.get(), data, std::min(size, size_t{1} << 30));
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) return cannot_write(name_, errno);
    data += done;
    size -= static_cast<size_t>(done);
  }
  return ok();
}

Status OutputFile::flush() {
  auto status = write_through(buffer_.data(), buffer_.size());
  buffer_.clear();
  return status;
}

Status OutputFile::write(std::span<const std::byte> bytes) {
  position_ += bytes.size();
  if (buffer_.size() + bytes.size() > kBufferSize) CHECK_OK(flush());
  if (bytes.size() >= kBufferSize) return write_through(bytes.data(), bytes.size());
  if (buffer_.capacity() == 0) buffer_.reserve(kBufferSize);
  buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
  return ok();
}

Status OutputFile::pad_to(uint64_t alignment) {
  static constexpr std::array<std::byte, 4096> zeros{};
  uint64_t missing = (alignment - position_ % alignment) % alignment;
  while (missing != 0) {
    const auto n = std::min<uint64_t>(missing, zeros.size());
    CHECK_OK(write(std::span(zeros).first(static_cast<size_t>(n))));
    missing -= n;
  }
  return ok();
}

Status OutputFile::finish() {
  CHECK_OK(flush());
  if (fd_.reset() != 0) return cannot_write(name_, errno);
  state_ = State::kFinished;
  return ok();
}

Status OutputFile::publish(bool undoable) {
  if (temporary_.empty()) {
    state_ = State::kDone;
    return ok();
  }
  struct stat info {};
  const bool replaces = ::lstat(target_.c_str(), &info) == 0;
#ifdef RENAME_EXCHANGE
  // Keeps the old version under the temporary's name, so that a set can go back. Where the file
  // system cannot exchange, a plain rename does.
  if (undoable && replaces && S_ISREG(info.st_mode) &&
      ::renameat2(AT_FDCWD, temporary_.c_str(), AT_FDCWD, target_.c_str(), RENAME_EXCHANGE) == 0) {
    state_ = State::kExchanged;
    return ok();
  }
#endif
  if (::rename(temporary_.c_str(), target_.c_str()) != 0) return cannot_write(name_, errno);
  // What replaced an old version for good cannot be taken back; a new file can.
  state_ = replaces || !undoable ? State::kDone : State::kPublished;
  return ok();
}

void OutputFile::revert() {
#ifdef RENAME_EXCHANGE
  if (state_ == State::kExchanged) {
    ::renameat2(AT_FDCWD, temporary_.c_str(), AT_FDCWD, target_.c_str(), RENAME_EXCHANGE);
    ::unlink(temporary_.c_str());
  }
#endif
  if (state_ == State::kPublished) ::unlink(target_.c_str());
  state_ = State::kDone;
}

void OutputFile::conclude() {
  if (state_ == State::kExchanged) ::unlink(temporary_.c_str());
  state_ = State::kDone;
}

Status OutputFile::commit() {
  CHECK_OK(finish());
  return publish(false);
}

Result<OutputFile*> OutputSet::create(const std::string& path) {
  TRY(OutputFile file, OutputFile::create(path));
  for (const auto& other : files_) {
    if (other->target_ == file.target_) {
      return usage_error("two outputs have the same name: " + quoted(path));
    }
  }
  files_.push_back(std::make_unique<OutputFile>(std::move(file)));
  return files_.back().get();
}

Status OutputSet::commit() {
  for (const auto& file : files_) CHECK_OK(file->finish());
  for (size_t i = 0; i < files_.size(); ++i) {
    if (auto status = files_[i]->publish(true); !status) {
      while (i-- > 0) files_[i]->revert();
      return status;
    }
  }
  for (const auto& file : files_) file->conclude();
  return ok();
}

}  // namespace tombolo
