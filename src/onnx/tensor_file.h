#pragma once

// Test data files (.pb): one TensorProto, SparseTensorProto, SequenceProto, MapProto or
// OptionalProto. The file does not say which: the type of the value does. SPEC onnx-data.proto.

#include <string>
#include <string_view>

#include "base/result.h"
#include "ir/run_value.h"
#include "ir/storage.h"
#include "ir/type.h"

namespace tombolo {

/// Reads the content of a .pb file as a value of `type`; a null or empty type means a tensor.
/// Tensors may be views of `bytes`, which `storage` must keep alive. An empty file is an empty
/// sequence or optional. An optional may also be stored as its bare content. Nesting is limited to
/// 100 levels. Errors: parse.
Result<RunValue> read_tensor_file(std::string_view bytes, const Type* type,
                                  const StoragePtr& storage);
/// The same for the file at `path`.
Result<RunValue> load_tensor_file(const std::string& path, const Type* type);

/// The content of a .pb file that holds `value`. Tensors are written as raw_data (strings as
/// string_data). `name` is left out when empty. Errors: usage, when there is no value (kNone).
Result<std::string> write_tensor_file(const RunValue& value, std::string_view name = {});
Status save_tensor_file(const RunValue& value, const std::string& path, std::string_view name = {});

}  // namespace tombolo
