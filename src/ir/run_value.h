#pragma once

// RunValue: what flows along an edge when a model runs, and what test data files hold: a tensor, a
// sequence, an optional, a map or a sparse tensor. Copies share their content.

#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "ir/tensor.h"

namespace tombolo {

class RunValue;

/// Maps of the same keys to scalars: a row of `scalars` each.
struct MapRows {
  Tensor keys;     ///< [C]
  Tensor scalars;  ///< [N, C]
};
struct SequenceValue {
  std::vector<RunValue> items;
  DType elem = DType::kUndefined;  ///< element type of the tensors; known even when empty
  /// In place of `items`: thousands of maps of a few scalars are made when somebody looks at them.
  std::shared_ptr<const MapRows> rows;
  /// Memory in which nothing inside lies, where that was found out: a loop that appends to a
  /// sequence looks at what is new, not at all of it each time.
  struct Memory {
    const std::byte *begin = nullptr, *end = nullptr;
    bool operator==(const Memory&) const = default;
  };
  Memory apart_from;

  size_t size() const;
  RunValue item(size_t index) const;
};
struct OptionalValue;
/// The values, one for each key, are scalars of one type in one tensor, or whatever they are.
struct MapValue {
  Tensor keys;                   ///< rank 1, integers or strings
  std::vector<RunValue> values;  ///< empty where `scalars` has them
  Tensor scalars;                ///< rank 1

  bool of_scalars() const { return scalars.dtype() != DType::kUndefined; }
  size_t size() const;
  RunValue value(size_t index) const;
};
struct SparseValue {
  Tensor values;   ///< [nnz]
  Tensor indices;  ///< int64 [nnz] or [nnz, rank]
  Dims dims;
};

class RunValue {
 public:
  enum class Kind : uint8_t { kNone, kTensor, kSequence, kOptional, kMap, kSparse };

  RunValue() = default;  ///< kNone: an absent optional input
  RunValue(Tensor tensor) : state_(std::move(tensor)) {}
  // Not inline: their code would stand at every use.
  RunValue(const RunValue& other);
  RunValue(RunValue&& other) noexcept;
  RunValue& operator=(const RunValue& other);
  RunValue& operator=(RunValue&& other) noexcept;
  ~RunValue();
  RunValue(SequenceValue sequence);
  RunValue(MapValue map);
  RunValue(SparseValue sparse);
  static RunValue optional_of(RunValue value);
  static RunValue empty_optional();

  Kind kind() const { return static_cast<Kind>(state_.index()); }
  bool is_tensor() const { return kind() == Kind::kTensor; }
  bool is_none() const { return kind() == Kind::kNone; }

  const Tensor& tensor() const { return std::get<Tensor>(state_); }
  Tensor& tensor() { return std::get<Tensor>(state_); }
  const SequenceValue& sequence() const;
  /// The sequence to write to, where nobody else holds it; else null.
  SequenceValue* own_sequence();
  const MapValue& map() const;
  const SparseValue& sparse() const;
  /// The content of an optional, null when it is empty.
  const RunValue* optional_content() const;

 private:
  std::variant<std::monostate, Tensor, std::shared_ptr<const SequenceValue>,
               std::shared_ptr<const OptionalValue>, std::shared_ptr<const MapValue>,
               std::shared_ptr<const SparseValue>>
      state_;
};

struct OptionalValue {
  bool has = false;
  RunValue content;
};

struct NamedTensor {
  std::string name;
  Tensor tensor;
};

}  // namespace tombolo
