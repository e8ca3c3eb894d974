#pragma once

// Errors are values. A function that can fail returns Result<T> (or Status when there is nothing
// to return); the caller adds *where* on the way up. The library never prints, exits or aborts on
// input. std::expected is not in g++ 12 with -std=c++20, hence this file.

#include <string>
#include <type_traits>
#include <utility>
#include <variant>

namespace tombolo {

/// What kind of failure it is. The values are the exit codes of the command line.
enum class ErrorKind {
  kUsage = 2,        ///< the request itself is wrong (unknown input name, bad option value)
  kParse = 3,        ///< cannot be read: missing file, malformed bytes, illegal path
  kUnsupported = 4,  ///< understood, but this operator, type, version or feature is not supported
  kRuntime = 5,      ///< failed while running a model
  kResource = 6,     ///< memory, disk or time limit
};

struct Error {
  ErrorKind kind = ErrorKind::kParse;
  std::string message;  ///< one clear sentence, lower case, no full stop
  std::string where;    ///< path of places, outermost first: `model > graph > node "conv1" (Conv)`
  std::string help;     ///< the way out, may be empty

  /// Adds an outer place in front of `where`.
  Error&& at(std::string place) && {
    where = where.empty() ? std::move(place) : std::move(place) + " > " + where;
    return std::move(*this);
  }
  Error&& with_help(std::string text) && {
    help = std::move(text);
    return std::move(*this);
  }
};

inline Error usage_error(std::string message) { return {ErrorKind::kUsage, std::move(message)}; }
inline Error parse_error(std::string message) { return {ErrorKind::kParse, std::move(message)}; }
inline Error unsupported(std::string message) {
  return {ErrorKind::kUnsupported, std::move(message)};
}
inline Error runtime_error(std::string message) {
  return {ErrorKind::kRuntime, std::move(message)};
}
inline Error resource_error(std::string message) {
  return {ErrorKind::kResource, std::move(message)};
}

/// A T or an Error. Test with `if (!result)`; `*result` and `result->` reach the value.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}
  template <typename U>
  requires(std::is_convertible_v<U&&, T> && !std::is_same_v<std::decay_t<U>, Error> &&
           !std::is_same_v<std::decay_t<U>, Result> && !std::is_same_v<std::decay_t<U>, T>)
      Result(U&& value)
      : state_(std::in_place_index<0>, std::forward<U>(value)) {}

  explicit operator bool() const { return state_.index() == 0; }
  bool ok() const { return state_.index() == 0; }

  T& operator*() & { return *std::get_if<0>(&state_); }
  const T& operator*() const& { return *std::get_if<0>(&state_); }
  T&& operator*() && { return std::move(*std::get_if<0>(&state_)); }
  T* operator->() { return std::get_if<0>(&state_); }
  const T* operator->() const { return std::get_if<0>(&state_); }

  Error& error() & { return *std::get_if<1>(&state_); }
  const Error& error() const& { return *std::get_if<1>(&state_); }
  Error&& error() && { return std::move(*std::get_if<1>(&state_)); }

  /// Adds an outer place to the error, if there is one.
  Result at(std::string place) && {
    if (!ok()) std::move(*std::get_if<1>(&state_)).at(std::move(place));
    return std::move(*this);
  }

 private:
  std::variant<T, Error> state_;
};

struct Ok {};
/// Success, or an Error.
using Status = Result<Ok>;
inline Status ok() { return Status(Ok{}); }

#define TOMBOLO_CONCAT_(a, b) a##b
#define TOMBOLO_CONCAT(a, b) TOMBOLO_CONCAT_(a, b)

/// TRY(auto x, f()) : declares x from the result of f(), or returns its error.
#define TRY(declaration, expression) \
  TRY_IMPL_(TOMBOLO_CONCAT(try_result_, __COUNTER__), declaration, expression)
#define TRY_IMPL_(name, declaration, expression)  \
  auto name = (expression);                       \
  if (!name.ok()) return std::move(name).error(); \
  declaration = *std::move(name)

/// CHECK_OK(f()) : returns the error of f(), if any.
#define CHECK_OK(expression)                                    \
  do {                                                          \
    if (auto check_result_ = (expression); !check_result_.ok()) \
      return std::move(check_result_).error();                  \
  } while (0)

}  // namespace tombolo
