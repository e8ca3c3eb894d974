// The rows of the format table.

#include "formats/format.h"
#include "formats/keras/keras_format.h"
#include "formats/onnx/onnx_format.h"
#include "formats/pytorch/checkpoint.h"
#include "formats/pytorch/pt2/pt2_format.h"
#include "formats/pytorch/script/importer.h"
#include "formats/pytorch/trace/trace.h"
#include "formats/weights/safetensors.h"

namespace tombolo {

std::span<const Format> formats() {
  static const Format rows[] = {
      {"onnx", "ONNX, protobuf", ".onnx", probe_onnx, load_onnx_format, save_onnx_format},
      {"text", "ONNX, text", ".onnxtxt .onnx.txt", probe_text, load_text_format, save_text_format},
      {"keras", "Keras: .keras, .h5, JSON with weights", ".keras .h5 .hdf5", probe_keras,
       load_keras_format, nullptr},
      {"pt2", "PyTorch: exported programs", ".pt2", probe_pt2, load_pt2_format, nullptr},
      {"trace", "traced graphs: python/tombolo_trace.py", ".trace.json", pytorch::probe_trace,
       pytorch::load_trace, nullptr},
      {"safetensors", "safetensors, alone or in shards with an index", ".safetensors",
       probe_safetensors, load_safetensors, save_safetensors},
      {"torchscript", "TorchScript: torch.jit.save", ".torchscript", script::probe_torchscript,
       script::load_torchscript, nullptr},
      {"checkpoint", "PyTorch checkpoints: torch.save, in shards, distributed",
       ".pt .pth .bin .ckpt", torch::probe_checkpoint, torch::load_checkpoint, nullptr},
      {"numpy", "NumPy arrays", ".npz .npy", probe_numpy, load_numpy, save_npz},
      {"json", "ONNX, protobuf's JSON", ".onnxjson .json", probe_json, load_json_format,
       save_json_format},
  };
  return rows;
}

}  // namespace tombolo
