#pragma once

// The few system-call helpers that the file classes share.

#include <unistd.h>

#include <string>
#include <string_view>
#include <utility>

namespace tombolo {

/// A file descriptor that closes itself.
class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~UniqueFd() { reset(); }

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  int release() { return std::exchange(fd_, -1); }
  /// The result of close(): writers must look at it, some file systems report errors only there.
  int reset() { return fd_ >= 0 ? ::close(std::exchange(fd_, -1)) : 0; }

 private:
  int fd_ = -1;
};

/// Text of an errno value, safe in threads.
std::string errno_text(int error);

/// A path or location in double quotes, control characters and quotes escaped, cut when long:
/// names out of files must not play with the terminal.
std::string quoted(std::string_view text);

}  // namespace tombolo
