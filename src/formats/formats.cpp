// The rows of the format table.

#include "formats/format.h"
#include "formats/keras/keras_format.h"
#include "formats/onnx/onnx_format.h"

namespace tombolo {

std::span<const Format> formats() {
  static const Format rows[] = {
      {"onnx", "ONNX, protobuf", ".onnx", probe_onnx, load_onnx_format, save_onnx_format},
      {"text", "ONNX, text", ".onnxtxt .onnx.txt", probe_text, load_text_format, save_text_format},
      {"keras", "Keras: .keras, .h5, JSON with weights", ".keras .h5 .hdf5", probe_keras,
       load_keras_format, nullptr},
      {"json", "ONNX, protobuf's JSON", ".onnxjson .json", probe_json, load_json_format,
       save_json_format},
  };
  return rows;
}

}  // namespace tombolo
