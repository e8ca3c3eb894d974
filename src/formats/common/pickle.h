#pragma once

// Reading Python's pickles as data, never as code. Protocols 0 to 5. What a pickle would call is
// looked up in a table of harmless constructors (pickle_values.cpp; docs/formats/checkpoints.md
// publishes it) and kept as a record; a call of anything else is an error that names it. Classes
// that are only instantiated and filled (NEWOBJ, BUILD) are inert records, whatever their name:
// nothing of them runs. Nodes may form cycles: who walks them bounds the depth.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace tombolo {

struct PickleValue {
  enum class Kind : uint8_t {
    kNone,
    kBool,
    kInt,
    kLong,  ///< beyond int64: `text` is little-endian two's complement
    kFloat,
    kString,  ///< UTF-8 (Python 2's str: its bytes)
    kBytes,
    kList,   ///< also deque
    kTuple,  ///< also torch.Size
    kSet,
    kDict,        ///< also OrderedDict, defaultdict, Counter; `entries`
    kGlobal,      ///< a class or function, named and no more: `module`, `text`
    kObject,      ///< `callable` (mostly a kGlobal) applied to `items`, then `state`
    kPersistent,  ///< a reference that the file format resolves: `callable` is its id
  };
  Kind kind = Kind::kNone;
  bool is_new = false;  ///< object: made without a call (NEWOBJ), so `callable` is a class
  union {
    int64_t integer = 0;
    double real;
  };
  std::string_view text;
  std::string_view module;            ///< of a global
  std::vector<PickleValue*> items;    ///< list, tuple, set; object: arguments
  std::vector<PickleValue*> entries;  ///< dict, and items set on an object: key, value, ...
  const PickleValue* callable = nullptr;
  const PickleValue* state = nullptr;  ///< what BUILD gave

  bool is(Kind what) const { return kind == what; }
  bool is_none() const { return kind == Kind::kNone; }
  bool is_text() const { return kind == Kind::kString; }
  bool is_sequence() const { return kind == Kind::kList || kind == Kind::kTuple; }
  std::optional<int64_t> as_int() const;  ///< also a bool
  std::optional<double> as_double() const;
  std::optional<std::vector<int64_t>> as_ints() const;  ///< of a list or tuple
  /// A member of a list, tuple or an object's arguments; null beyond the end.
  const PickleValue* at(size_t index) const;
  /// The value under a text key of a dict (or of items set on an object); null when there is none.
  const PickleValue* find(std::string_view key) const;
  /// Of an object: the attribute under `name` in its state; null when there is none.
  const PickleValue* attribute(std::string_view name) const;
  /// "torch._utils._rebuild_tensor_v2" of a global, or of the global that an object comes from.
  std::string qualified_name() const;
  bool is_global(std::string_view of_module, std::string_view name) const;
  bool is_object_of(std::string_view of_module, std::string_view name) const;
};

struct PickleLimits {
  size_t nodes = 4'000'000;  ///< values in one pickle
};

class Pickle {
 public:
  /// Parses the first pickle in `bytes`, which `owner` keeps alive: long texts are views of it.
  /// Inside joblib's files the bytes of arrays stand between opcodes; they become `kBytes`.
  static Result<Pickle> parse(std::span<const std::byte> bytes, std::shared_ptr<const void> owner,
                              const PickleLimits& limits = {});
  /// True when the bytes start as a pickle of protocol 2 or later does, or as one of an older
  /// protocol that can hold a container.
  static bool probe(std::span<const std::byte> bytes);

  const PickleValue& root() const { return *root_; }
  /// Keeps alive what values view: the bytes parsed, and texts that were decoded.
  std::shared_ptr<const void> owner() const { return arena_; }
  size_t size() const { return size_; }  ///< bytes up to and including STOP
  int protocol() const { return protocol_; }

 private:
  friend class PickleMachine;
  struct Arena;
  std::shared_ptr<Arena> arena_;
  const PickleValue* root_ = nullptr;
  size_t size_ = 0;
  int protocol_ = 0;
};

/// One row of the table of harmless constructors. A name that ends in '*' stands for all that begin
/// so.
struct HarmlessCall {
  std::string_view module, name;
};
std::span<const HarmlessCall> harmless_calls();
bool is_harmless_call(std::string_view module, std::string_view name);

}  // namespace tombolo
