#pragma once

// What a call of an ATen operator is given and gives: tensors as a PyTorch program holds them,
// numbers that may be symbolic, lists, strings, types. The same for every source of programs
// (export JSON, TorchScript, traces).

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "formats/common/graph_builder.h"

namespace tombolo::pytorch {

/// Whether this thread has read beyond the end of a List; AtenContext asks after each call.
bool& read_beyond_end();

/// A list whose length a file says. What is read beyond its end is a default, never memory beyond
/// it, and the call that did so is refused.
template <typename T>
class List : public std::vector<T> {
 public:
  using Base = std::vector<T>;
  using Base::Base;
  List() = default;
  List(const Base& items) : Base(items) {}
  List(Base&& items) noexcept : Base(std::move(items)) {}

  T& operator[](size_t i) { return i < this->size() ? Base::operator[](i) : absent(); }
  const T& operator[](size_t i) const { return i < this->size() ? Base::operator[](i) : absent(); }
  T& front() { return (*this)[0]; }
  const T& front() const { return (*this)[0]; }
  T& back() { return (*this)[this->size() - 1]; }
  const T& back() const { return (*this)[this->size() - 1]; }
  void pop_back() {
    if (!this->empty()) Base::pop_back();
  }

 private:
  static T& absent() {
    thread_local T none;
    read_beyond_end() = true;
    return none = T();
  }
};
/// A number that is known, cut to an integer; none where 64 bits do not hold it.
inline std::optional<int64_t> to_int64(double number) {
  if (!(number >= -0x1p63 && number < 0x1p63)) return std::nullopt;
  return static_cast<int64_t>(number);
}

/// An integer of the program: a number, an expression over named dimensions, or one that is
/// computed at run time (`value`, a 0-d int64 tensor). Both may be known.
struct SymInt {
  SymDim dim;
  Value* value = nullptr;
  SymInt() = default;
  SymInt(int64_t number) : dim(number) {}
  SymInt(SymDim expression) : dim(std::move(expression)) {}
  SymInt(SymDim expression, Value* computed) : dim(std::move(expression)), value(computed) {}
  bool is_number() const { return dim.is_value(); }
  bool is(int64_t number) const { return dim.is_value() && dim.value() == number; }
};

/// How a quantised tensor of TorchScript is read: real = (stored - zero_point) * scale.
struct Quantization {
  Value* scale = nullptr;
  Value* zero_point = nullptr;
  int64_t axis = -1;  ///< -1: per tensor
};

struct Arg;
struct ViewCall;

/// What is known of a tensor's order in memory.
enum class CellLayout : uint8_t {
  kContiguous,
  kStrided,  ///< `strides` say how
  kUnknown,
};

/// A tensor as the program holds it. Views share a base: writing to one is seen by the others.
struct Cell {
  Value* value = nullptr;           ///< complex tensors are pairs of reals along an extra last axis
  DType dtype = DType::kUndefined;  ///< torch's element type: kComplex64 and kComplex128 for pairs
  CellLayout layout = CellLayout::kContiguous;
  SymShape strides;                ///< where the layout is kStrided
  uint64_t version = 0;            ///< of a root: how often it was written
  uint64_t seen = 0;               ///< of a view: the root's version that `value` shows
  std::shared_ptr<ViewCall> view;  ///< how a view came to be; null for a root
  /// Of a root: the memories of which it may be one (AtenContext::may_share); grows only.
  std::vector<uint64_t> memories;
  /// Of a root: what may be the same memory was written through another tensor.
  bool stale = false;
  bool pinned = false;  ///< of a root: a sequence of the model holds a copy of it
  bool number = false;  ///< a Python number that a trace holds as a tensor: promoted as one
  std::shared_ptr<Cell> origin;  ///< of a copy that leaves a branch: the tensor that it shows
  std::vector<std::weak_ptr<ViewCall>> views;        ///< that were made of it
  std::shared_ptr<const Quantization> quantization;  ///< `value` is uint8, int8 or int32 then

  Cell();
  Cell(const Cell& other);
  Cell(Cell&& other) noexcept;
  Cell& operator=(const Cell& other);
  Cell& operator=(Cell&& other) noexcept;
  ~Cell();
};
using Ref = std::shared_ptr<Cell>;

struct Arg {
  enum class Kind : uint8_t {
    kNone,
    kTensor,
    kInt,    ///< also memory formats, layouts, and dtypes where the source gives their numbers
    kFloat,  ///< `real`, or `computed` (0-d double)
    kBool,   ///< `integer` 0 or 1, or `computed` (0-d bool)
    kComplex,
    kString,
    kDType,
    kList,   ///< lists and tuples
    kGraph,  ///< a body of a higher-order operator: `index` among the caller's bodies
    kOther,  ///< what no handler looks at: devices, generators
  };
  Kind kind = Kind::kNone;
  Ref tensor;
  SymInt integer;
  double real = 0, imaginary = 0;
  Value* computed = nullptr;
  DType dtype = DType::kUndefined;
  std::string text;
  List<Arg> list;
  size_t index = 0;

  Arg() = default;
  Arg(Ref ref) : kind(ref ? Kind::kTensor : Kind::kNone), tensor(std::move(ref)) {}
  Arg(SymInt number) : kind(Kind::kInt), integer(std::move(number)) {}
  Arg(int64_t number) : kind(Kind::kInt), integer(number) {}
  Arg(int number) : kind(Kind::kInt), integer(int64_t{number}) {}
  Arg(double number) : kind(Kind::kFloat), real(number) {}
  Arg(bool flag) : kind(Kind::kBool), integer(int64_t{flag}) {}
  Arg(DType type) : kind(Kind::kDType), dtype(type) {}
  Arg(std::string string) : kind(Kind::kString), text(std::move(string)) {}
  Arg(const char* string) : kind(Kind::kString), text(string) {}
  Arg(std::vector<Arg> items) : kind(Kind::kList), list(std::move(items)) {}
  // Not inline: their code would stand at every use.
  Arg(const Arg& other);
  Arg(Arg&& other) noexcept;
  Arg& operator=(const Arg& other);
  Arg& operator=(Arg&& other) noexcept;
  ~Arg();
  static Arg complex(double re, double im);
  static Arg ints(const std::vector<int64_t>& numbers);
  static Arg ints(const std::vector<SymInt>& numbers);

  bool is_none() const { return kind == Kind::kNone; }
  bool is_tensor() const { return kind == Kind::kTensor; }
  bool is_number() const {
    return kind == Kind::kInt || kind == Kind::kFloat || kind == Kind::kBool ||
           kind == Kind::kComplex;
  }
};

/// The call that made a view, to be repeated when its base has changed.
struct ViewCall {
  Ref base;
  std::string overload;
  std::vector<Arg> args;  ///< by position in the schema
  size_t self = 0;        ///< which of them is the base
  size_t result = 0;      ///< which result the view is (element, where the result is a list)
};

/// c10::ScalarType's numbers, as TorchScript and pickles hold them; nothing for quantised types.
std::optional<DType> dtype_from_c10(int64_t number);
/// The numbers of the export schema.
std::optional<DType> dtype_from_export(int64_t number);
/// "float32", "complex64": for messages.
std::string torch_name(DType dtype);

}  // namespace tombolo::pytorch
