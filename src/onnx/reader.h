#pragma once

// Reading .onnx files: ModelProto in protobuf's wire format. SPEC onnx.proto, IR versions 1 to 14.

#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "ir/model.h"

namespace tombolo {

/// Ok when `bytes` could be the beginning-to-end content of an .onnx file: a sequence of protobuf
/// fields that ModelProto has, with a graph or operator sets among them. Otherwise a parse error
/// that says what the bytes look like instead (empty, a web page, a zip archive, ...). Looks at
/// the top level only: costs nothing, proves little.
Status looks_like_onnx(std::string_view bytes);

/// Reads a model out of `bytes`, copying nothing: names and tensors are views. `storage` becomes
/// the model's and must keep `bytes` alive (Storage::keep). External data are not opened.
///
/// What the format allows is read and kept, valid as a model or not: names that nothing defines,
/// duplicate definitions, unsorted nodes, unknown fields. Errors: parse (malformed bytes, with
/// place and byte offset; nesting beyond 100 levels), resource (a file made to take far more
/// memory than its size).
Result<std::unique_ptr<Model>> read_onnx(std::string_view bytes, StoragePtr storage);

/// Maps the file at `path` ("-": standard input) and reads it. The file's folder is where external
/// data will be looked for.
Result<std::unique_ptr<Model>> load_onnx(const std::string& path);

}  // namespace tombolo
