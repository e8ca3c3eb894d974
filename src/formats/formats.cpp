// The rows of the format table.

#include "formats/format.h"
#include "formats/onnx/onnx_format.h"

namespace tombolo {

std::span<const Format> formats() {
  static const Format rows[] = {
      {"onnx", "ONNX, protobuf", ".onnx", probe_onnx, load_onnx_format, save_onnx_format},
      {"text", "ONNX, text", ".onnxtxt .onnx.txt", probe_text, load_text_format, save_text_format},
  };
  return rows;
}

}  // namespace tombolo
