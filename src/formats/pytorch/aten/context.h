#pragma once

// Lowers calls of ATen operators to ONNX. One AtenContext lives as long as a model is imported; it
// knows the call that is being lowered, so that a handler is `void handler(AtenContext& c)`.
//
// Problems are sticky: getters never fail, they record what is wrong and give a placeholder; the
// importer looks at status() after every call.

#include <algorithm>
#include <deque>
#include <initializer_list>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "formats/pytorch/aten/table.h"

namespace tombolo::pytorch {

using Values = List<Value*>;
using Ints = List<int64_t>;
using Reals = List<double>;
using Refs = List<Ref>;
using Args = List<Arg>;
using Shape = List<SymDim>;

/// Sizes by axis.
class SymInts : public List<SymInt> {
 public:
  using Base = std::vector<SymInt>;
  using List<SymInt>::List;
  SymInts() = default;
  SymInts(const Base& sizes) : List(sizes) {}
  SymInts(Base&& sizes) noexcept : List(std::move(sizes)) {}

  void resize(size_t count) { Base::resize(count <= 2 * kMaxRank ? count : 0); }
  void erase_axis(size_t axis) {
    if (axis < size()) Base::erase(begin() + static_cast<std::ptrdiff_t>(axis));
  }
  void insert_axis(size_t axis, SymInt length) {
    Base::insert(begin() + static_cast<std::ptrdiff_t>(std::min(axis, size())), std::move(length));
  }

  static constexpr size_t kMaxRank = 64;  ///< of torch's tensors
};

/// Of numbers that handlers calculate with: products of two stay within 64 bits.
inline constexpr int64_t kMaxNumber = int64_t{1} << 31;

/// How torch's result type follows from what operands promote to.
enum class Promotion : uint8_t {
  kDefault,
  kIntToFloat,      ///< sin, div: integers become the default float type
  kComplexToFloat,  ///< abs
  kBoolToInt,       ///< sum, cumsum
};

class AtenContext {
 public:
  explicit AtenContext(Model& model) : b(model) {
    b.use_operator_inference();
    read_beyond_end() = false;  // what another model's file left
  }

  GraphBuilder b;

  // ---- calls ----

  /// Lowers one call. `args` by position in the schema, shorter where defaults hold; `named`
  /// beside them. In-place overloads without a row of their own run the functional one and write.
  Result<std::vector<Arg>> call(std::string_view overload, std::vector<Arg> args,
                                std::vector<std::pair<std::string, Arg>> named = {});
  /// True when call() knows the overload, directly or as an in-place form.
  static bool knows(std::string_view overload);
  /// For decompositions inside handlers: the first result's value. Problems are sticky; lists of
  /// results are empty then.
  Value* lower(std::string_view overload, std::vector<Arg> args,
               std::vector<std::pair<std::string, Arg>> named = {});
  Args lower_all(std::string_view overload, std::vector<Arg> args,
                 std::vector<std::pair<std::string, Arg>> named = {});

  // ---- the arguments of the call ----

  const char* detail() const { return frame().op->row->detail; }
  const Schema& schema() const { return frame().op->schema; }
  std::string_view name() const { return frame().op->schema.name; }
  bool has_arg(std::string_view name) const { return frame().op->schema.find(name) >= 0; }
  const Arg& arg(std::string_view name) const;
  bool given(std::string_view name) const { return !arg(name).is_none(); }
  Value* x(std::string_view name);          ///< a tensor that must be there
  Value* opt(std::string_view name);        ///< a tensor, or null for None
  Ref ref(std::string_view name);           ///< the place of such a tensor, to be written
  DType type(std::string_view name) const;  ///< torch's element type of a tensor argument
  bool is_complex(std::string_view name) const { return tombolo::is_complex(type(name)); }
  /// Must be known now, and of a magnitude that two of them can be multiplied.
  int64_t integer(std::string_view name);
  int64_t any_integer(std::string_view name);  ///< as integer(), of any magnitude
  SymInt sym(std::string_view name);
  double real(std::string_view name);  ///< any number known now
  bool flag(std::string_view name);
  std::string text(std::string_view name) const { return arg(name).text; }
  std::optional<DType> dtype(std::string_view name) const;
  /// A list of numbers known now; one number stands for `count` (or the schema's length). Empty, or
  /// that long where there is a count beyond 1.
  Ints ints(std::string_view name, size_t count = 0);
  SymInts syms(std::string_view name, size_t count = 0);
  Reals reals(std::string_view name);
  Refs tensors(std::string_view name);   ///< None within gives null
  Values values(std::string_view name);  ///< of a list of tensors

  // ---- results ----

  void out(Value* value);                         ///< a real tensor
  void out(Value* value, DType dtype);            ///< `dtype` says whether it is complex
  void out_list(std::span<Value* const> values);  ///< one result that is a list of tensors
  void out_arg(Arg arg) { frame().results.push_back(std::move(arg)); }
  Ref cell(Value* value, DType dtype = DType::kUndefined);

  /// Records why the call cannot be lowered; the first reason stays.
  void refuse(std::string reason, std::string help = {});
  const Status& status() const { return status_; }
  bool failed() const { return !status_.ok() || !b.status().ok(); }
  /// The problem met since the last time, which is cleared.
  Status take_status();

  // ---- tensors ----

  Value* read(const Ref& cell);               ///< the value now, views brought up to date
  void write(const Ref& cell, Value* value);  ///< same type and shape; views and base follow
  /// Where set: what read() and write() change is noted here as it was before, so that a branch can
  /// be undone.
  std::vector<std::pair<Ref, Cell>>* journal = nullptr;
  /// The root that holds a tensor's memory.
  static Ref root(Ref cell);
  /// Whether `copy` has memory of its own or that of `base` is not known (a reshape of unknown
  /// strides, what one side of a branch gave): when one is written, reading the other is refused.
  void may_share(const Ref& base, const Ref& copy);
  /// Elements of sequences are copies in ONNX: a tensor that went into one, or came out, must not
  /// be written in place afterwards.
  static void pin(const Ref& tensor) { root(tensor)->pinned = true; }
  /// The memories that a root may be; of one that was not asked for yet a new one.
  const std::vector<uint64_t>& memories_of(const Ref& root);
  uint64_t memory_count() const { return holders_.size(); }
  /// Marks a root as changed behind its back.
  void mark_stale(const Ref& root);
  /// Strides as far as they are known, and setting them.
  std::optional<SymShape> strides(const Cell& cell) const;
  static void set_strides(Cell& cell, const SymShape& sizes, SymShape strides);

  // ---- types ----

  /// torch.result_type of arguments (tensors and numbers).
  DType promote(std::initializer_list<std::string_view> names,
                Promotion rule = Promotion::kDefault);
  DType promote(std::span<const Arg> args, Promotion rule = Promotion::kDefault);
  /// An argument, tensor or number, in this type; complex types make pairs.
  Value* operand(std::string_view name, DType type);
  Value* operand_of(const Arg& arg, DType type);
  Value* cast(Value* value, DType type);  ///< between real types
  Value* to_complex(Value* real_value, DType type);
  DType dtype(const Value* value) const { return b.dtype(value); }
  static DType real_of(DType type);     ///< kComplex64 -> kFloat32; others themselves
  static DType complex_of(DType type);  ///< kFloat64 -> kComplex128, others kComplex64
  DType default_float = DType::kFloat32;

  // ---- nodes ----

  Value* op(Text type, std::initializer_list<Value*> inputs, const Attrs& attrs = {}) {
    return b.op(type, inputs, attrs);
  }
  Value* op(Text type, std::span<Value* const> inputs, const Attrs& attrs = {}) {
    return b.op(type, inputs, attrs);
  }
  Value* scalar(double value, DType type) { return b.scalar(value, type); }
  Value* like(double value, const Value* x) { return b.scalar(value, b.dtype(x)); }
  Value* add(Value* a, Value* y) { return op("Add", {a, y}); }
  Value* sub(Value* a, Value* y) { return op("Sub", {a, y}); }
  Value* mul(Value* a, Value* y) { return op("Mul", {a, y}); }
  Value* div(Value* a, Value* y) { return op("Div", {a, y}); }
  /// Runs `type` in a wider type where ONNX lacks it for `x`'s (see through()).
  Value* reduce(Text type, Value* x, std::vector<int64_t> axes, bool keepdims);

  // ---- sizes ----

  int64_t rank(const Value* value);  ///< refuses when it is not known
  bool has_rank(const Value* value) const { return b.has_shape(value); }
  int64_t axis(int64_t axis, int64_t rank);  ///< made non-negative; rank 0 counts as 1
  SymInt size(Value* x, int64_t axis);
  SymInts sizes(Value* x);
  /// A size known now, or nothing; so small that two of them can be multiplied.
  std::optional<int64_t> known(Value* x, int64_t axis);
  /// How many things a call makes one by one: refused, and 0, where the file says too many.
  int64_t count(int64_t things, int64_t most = 1 << 12);
  SymInt numel(Value* x);
  SymInt add(const SymInt& a, const SymInt& y) { return arithmetic("Add", a, y); }
  SymInt sub(const SymInt& a, const SymInt& y) { return arithmetic("Sub", a, y); }
  SymInt mul(const SymInt& a, const SymInt& y) { return arithmetic("Mul", a, y); }
  SymInt floor_div(const SymInt& a, const SymInt& y) { return arithmetic("FloorDiv", a, y); }
  SymInt modulo(const SymInt& a, const SymInt& y) { return arithmetic("Mod", a, y); }
  SymInt minimum(const SymInt& a, const SymInt& y) { return arithmetic("Min", a, y); }
  SymInt maximum(const SymInt& a, const SymInt& y) { return arithmetic("Max", a, y); }
  /// int64 tensors of symbolic integers: rank 0, rank 1 with one element, rank 1.
  Value* int_value(const SymInt& number);
  Value* int_vector(const SymInt& number);
  Value* shape_value(std::span<const SymInt> sizes);
  /// The name of a dimension gets its value from an axis of `x`, or from a 0-d int64 tensor.
  void bind_symbol(std::string_view name, Value* x, int64_t axis);
  void bind_symbol(std::string_view name, Value* scalar);

  // ---- what many handlers share; each folds away where it changes nothing ----

  Value* reshape(Value* x, const SymInts& sizes);  ///< -1 stands for what remains
  Value* expand(Value* x, const SymInts& sizes);   ///< to exactly these sizes, by broadcasting
  Value* transpose(Value* x, std::vector<int64_t> perm) { return b.transpose(x, std::move(perm)); }
  Value* swap(Value* x, int64_t a, int64_t y);
  Value* unsqueeze(Value* x, std::vector<int64_t> axes);
  Value* squeeze(Value* x, std::vector<int64_t> axes);
  Value* slice(Value* x, int64_t axis, const SymInt& start, const SymInt& end, int64_t step = 1);
  Value* select(Value* x, int64_t axis, const SymInt& index);
  Value* concat(std::span<Value* const> parts, int64_t axis);
  Value* concat(std::initializer_list<Value*> parts, int64_t axis) {
    return concat(std::span<Value* const>(parts.begin(), parts.size()), axis);
  }
  Value* where(Value* condition, Value* a, Value* y) { return op("Where", {condition, a, y}); }
  Value* full(const SymInts& sizes, Value* scalar_value);
  Value* full(const SymInts& sizes, double value, DType type);
  Value* range(const SymInt& count);  ///< int64 0, 1, ... count-1
  /// Runs body on the tensor as rank 1 where it is a scalar, and gives a scalar back.
  template <typename Body>
  Value* at_least_1d(Value* x, Body&& body) {
    if (rank(x) > 0) return body(x);
    return squeeze(body(unsqueeze(x, {0})), {0});
  }

  // ---- pairs ----

  Value* re(Value* complex);  ///< the pair's first component
  Value* im(Value* complex);
  Value* pair(Value* re, Value* im);

  /// Bodies of higher-order operators: called with arguments inside the current graph.
  using Body = Result<std::vector<Arg>> (*)(void* importer, size_t index, std::vector<Arg> args);
  Body body = nullptr;
  void* body_owner = nullptr;

  /// Forgets sizes computed inside a subgraph that is left.
  void enter(Graph& graph) { b.enter(graph); }
  void leave();

 private:
  struct Frame {
    const Operator* op = nullptr;
    std::vector<Arg> args;
    std::vector<Arg> results;
  };
  const Frame& frame() const { return frames_.back(); }
  Frame& frame() { return frames_.back(); }
  Status bind(Frame& frame, std::vector<Arg> args, std::vector<std::pair<std::string, Arg>> named);
  Result<std::vector<Arg>> run(const Operator& op, std::vector<Arg> args,
                               std::vector<std::pair<std::string, Arg>> named);
  void mark_views(Frame& frame);
  void refuse_kind(std::string_view name);
  void check_lists();  ///< refuses where a List was read beyond its end
  // layout.cpp
  enum class Sharing : uint8_t { kView, kCopy, kUnknown };
  Sharing sharing(const Frame& frame, const Cell& base, const Cell& result) const;
  std::optional<SymShape> torch_sizes(const Cell& cell) const;
  std::optional<SymShape> view_strides(const Frame& frame, const Cell& base,
                                       const Cell& shown) const;
  void lay_out_new(const Frame& frame, Cell& result) const;
  void check_stale(const Cell& root);
  void note_write(const Ref& root);
  /// Whether a tensor is a root, without views but `except`, whose memory no other root may be.
  bool is_alone(const Cell& tensor, const ViewCall* except) const;
  Value* replay(const ViewCall& view, Value* base);
  Value* written_back(const ViewCall& view, Value* base, Value* shown, Value* value);
  SymInt arithmetic(const char* kind, const SymInt& a, const SymInt& y);
  Value* expression(std::string_view text);  ///< rank 1, one element
  Value* placeholder();

  std::vector<std::vector<Ref>> holders_;  ///< of each memory: the roots that may have it
  struct Symbol {
    Value* value = nullptr;
    int64_t axis = -1;  ///< -1: `value` is the number itself
  };
  std::deque<Frame> frames_;  // references into them outlive nested calls
  Status status_ = ok();
  std::map<std::string, Symbol, std::less<>> symbols_;
  struct Cached {
    Value* value;
    size_t depth;
  };
  std::map<std::string, Cached, std::less<>> expressions_;
};

/// The name of an argument's kind, for messages.
std::string_view kind_name(const Arg& arg);

}  // namespace tombolo::pytorch
