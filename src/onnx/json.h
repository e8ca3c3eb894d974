#pragma once

// Models as JSON, in protobuf's JSON mapping of ModelProto: what google.protobuf.json_format and
// `protoc` write and read.
//
// Names are lowerCamelCase (snake_case is read too), 64-bit integers are strings, bytes are
// base64, absent fields are left out. Where the mapping cannot say what the model holds:
//  - unknown fields, enumeration numbers without a name, and attribute floats that are NaNs other
//    than the usual one stand as wire bytes in base64 under the key "@unknown" of their message.
//    Other readers refuse that key unless told to ignore unknown ones; most models have none;
//  - float_data and double_data with such NaNs are written as rawData, which means the same;
//  - bytes that are not UTF-8 inside strings become lone surrogates \udc80 to \udcff, as Python's
//    surrogateescape has it.

#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "ir/model.h"

namespace tombolo {

/// The model as JSON text; data where they are (external stay external).
Result<std::string> write_json(const Model& model);
/// Streams the model to `path` ("-": standard output), external data embedded. Errors: those of
/// OutputFile, and of reading external data.
Status save_json(const Model& model, const std::string& path);

/// Reads JSON text. Errors: parse, with line and column: malformed JSON, unknown keys, values of
/// the wrong type or out of range, nesting too deep; and what read_onnx refuses.
Result<std::unique_ptr<Model>> read_json(std::string_view text);
/// Reads the file at `path` ("-": standard input). Its folder is where external data are looked
/// for.
Result<std::unique_ptr<Model>> load_json(const std::string& path);

}  // namespace tombolo
