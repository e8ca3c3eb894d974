#pragma once

// Tensors as PyTorch keeps them: a storage, an offset, sizes and strides, and what a pickle says of
// them. Turned into dense ONNX tensors: views of the file wherever they are contiguous.

#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "formats/common/pickle.h"
#include "formats/common/zip.h"
#include "formats/weights/weights_model.h"

namespace tombolo::torch {

/// What names of storages and element types mean: "FloatStorage", "float32".
struct ElementType {
  std::string_view name;     ///< torch.NAME
  std::string_view storage;  ///< torch.NAMEStorage, empty where there is none
  DType dtype;
  uint8_t bits;   ///< of one element as PyTorch stores it
  uint8_t lanes;  ///< ONNX elements in one of PyTorch's: 2 for complex32 and float4_e2m1fn_x2
  bool quantised;
};
const ElementType* element_type_of_dtype(std::string_view name);
const ElementType* element_type_of_storage(std::string_view name);
/// By PyTorch's ScalarType number.
const ElementType* element_type_of_number(int64_t number);

/// Bytes of a storage. `elements` counts in units of `type`; untyped storages have no type.
struct TorchStorage {
  Blob blob;
  const ElementType* type = nullptr;
  bool big_endian = false;
};

struct TorchTensor {
  TorchStorage storage;
  const ElementType* type = nullptr;
  int64_t offset = 0;
  std::vector<int64_t> sizes, strides;
  bool conjugate = false, negative = false, meta = false;
  /// Quantisation: one scale, or one for each index of `axis`.
  std::vector<double> scales;
  std::vector<double> zero_points;  ///< whole numbers but where the scheme has real ones
  int64_t axis = -1;                ///< -1: per tensor

  bool is_contiguous() const;
};

/// Dense, contiguous, with conjugate and negative bits resolved. With `data` false only type and
/// shape. `budget` bounds what tensors that are larger than their storage may grow to in sum.
Result<Weight> to_weight(const TorchTensor& tensor, std::string name, bool data, uint64_t& budget);

/// Where a checkpoint's storages lie; one for each kind of file.
class StorageSource {
 public:
  virtual ~StorageSource() = default;
  /// The storage that a persistent id names.
  virtual Result<TorchStorage> storage(const PickleValue& id) = 0;
  /// The tensor that a persistent id names, in the oldest files; null where it is none.
  virtual const TorchTensor* tensor(const PickleValue&) { return nullptr; }
};

/// Reads tensors out of a pickle's records.
class TensorReader {
 public:
  /// `owner`: of the pickle (Pickle::owner()), whose NumPy arrays become views.
  TensorReader(StorageSource& storages, std::shared_ptr<const void> owner, bool data)
      : storages_(storages), owner_(std::move(owner)), data_(data) {}

  /// True when the value describes a tensor (or parameter, or NumPy array).
  bool is_tensor(const PickleValue& value);
  /// The strided tensor that the value describes; a parameter is its tensor.
  Result<TorchTensor> strided(const PickleValue& value, int depth = 0);
  /// The same, sparse and nested ones and NumPy arrays included, as ONNX has it.
  Result<Weight> weight(const PickleValue& value, std::string name, int depth = 0);

 private:
  Result<Weight> sparse(const PickleValue& value, std::string name, int depth);
  Result<TorchStorage> storage_of(const PickleValue* value);

  StorageSource& storages_;
  std::shared_ptr<const void> owner_;
  bool data_;
  uint64_t budget_ = uint64_t{1} << 28;
};

}  // namespace tombolo::torch
