#pragma once

// Constant: a TensorProto as the file holds it: an initialiser or a tensor attribute. Its data stay
// where they are (mapped file, arena, external file) in the encoding the file chose, so that
// writing gives back what was read; value() gives the dense Tensor, a view wherever the encoding
// allows.

#include <memory>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "ir/storage.h"
#include "ir/tensor.h"

namespace tombolo {

struct Constant {
  /// Which field of TensorProto holds the data.
  enum class Encoding : uint8_t {
    kNone,    ///< no data field (legal for zero elements, and for external data)
    kRaw,     ///< raw_data; `bytes` are it
    kFloat,   ///< float_data; `bytes` are the packed little-endian values
    kDouble,  ///< double_data; likewise
    kInt32,   ///< int32_data; `bytes` are the packed varints of the wire
    kInt64,   ///< int64_data; likewise
    kUInt64,  ///< uint64_data; likewise
    kString,  ///< string_data; `strings`
  };
  struct Extra {
    Text doc;
    std::vector<StringEntry> external;  ///< external_data, in file order
    bool has_location = false;
    int32_t location = 0;  ///< data_location as in the file: 1 is EXTERNAL
    bool has_segment = false, has_segment_begin = false, has_segment_end = false;
    int64_t segment_begin = 0, segment_end = 0;
    std::vector<StringEntry> metadata;
    Text unknown;  ///< unknown fields, and data fields beside the main one, as wire bytes
    std::shared_ptr<const Deferred> deferred;  ///< in place of any encoding; never in a file
  };

  Text name;
  int32_t data_type = 0;  ///< TensorProto.DataType as in the file
  bool has_data_type = false;
  Encoding encoding = Encoding::kNone;
  InlineVector<int64_t, 4> dims;
  std::string_view bytes;
  std::vector<Text> strings;
  std::unique_ptr<Extra> extra;

  Extra& ensure_extra() {
    if (!extra) extra = std::make_unique<Extra>();
    return *extra;
  }
  DType dtype() const;  ///< kUndefined when the number is none of ONNX's
  bool is_external() const { return extra && extra->location == 1; }

  /// The dense tensor. A view into the file where the encoding is raw (or packed floats); decoded
  /// otherwise. `storage` (of the model) is kept alive by the view and resolves external data.
  /// Fails when the data do not fit type and shape.
  Result<Tensor> value(const StoragePtr& storage) const;
  /// The same, with elements that are deferred left so.
  Result<Tensor> lazy_value(const StoragePtr& storage) const;

  /// A constant in raw encoding whose bytes stay in `tensor`'s buffer (kept alive by `storage`).
  static Constant from_tensor(const Tensor& tensor, Text name, Storage& storage);
  /// One whose elements are made each time that somebody asks for them.
  static Constant from_deferred(DType dtype, std::span<const int64_t> dims,
                                std::shared_ptr<const Deferred> elements, Text name,
                                Storage& storage);
  const Deferred* deferred() const { return extra ? extra->deferred.get() : nullptr; }
};

/// What a constant's external_data entries say, checked: SPEC ExternalData.md.
struct ExternalData {
  Text location;
  uint64_t offset = 0;
  bool has_length = false;
  uint64_t length = 0;
  Text checksum;  ///< SHA-1 in hex; null when absent
};
Result<ExternalData> external_data(const Constant& constant);

/// SparseTensorProto.
struct SparseConstant {
  Constant values;   ///< its name is the value's name
  Constant indices;  ///< int64 [nnz] or [nnz, rank]
  bool has_values = false, has_indices = false;
  InlineVector<int64_t, 4> dims;
  Text unknown;
};

}  // namespace tombolo
