#pragma once

// The table of formats: how a file is recognised, read and written. One row a format; the row's
// functions live in the format's own folder.

#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/mapped_file.h"
#include "base/result.h"
#include "ir/model.h"
#include "ir/run_value.h"
#include "onnx/writer.h"

namespace tombolo {

struct LoadOptions {
  std::string from;              ///< name of a format; empty: by content
  std::string weights;           ///< weights file, where the format keeps it apart
  std::string custom_op_domain;  ///< keep operators of the user's own as calls of this domain
  std::string signature;         ///< which entry point, where the format has several
  std::vector<std::string> input_names, output_names;  ///< cut the graph there, in this order
  std::map<std::string, std::string> set;              ///< values for arguments that are no tensors
  std::string sample;         ///< .npz of example inputs, where the file keeps no types and ranks
  bool headers_only = false;  ///< names, types and shapes suffice: weights need not be read
  /// Where to put example inputs that the file itself stores, by the names of the model's inputs.
  std::vector<NamedTensor>* stored_sample = nullptr;
};

/// What is written, and how (see SaveOptions in onnx/writer.h for external data).
struct ExportOptions {
  std::string to;              ///< name of a format; empty: by OUT's extension
  bool keep_external = false;  ///< leave references to external files as they are
  SaveOptions data;
};

/// What is looked at to recognise a format: the path and, for a file, its bytes.
struct Source {
  std::string path;  ///< "-" is standard input
  bool is_folder = false;
  MappedFile file;  ///< empty for a folder
};

struct Format {
  std::string_view name;         ///< "onnx", "keras"
  std::string_view description;  ///< one line
  std::string_view extensions;   ///< ".onnx .onnx.pb", the first is the usual one
  /// How sure the format is that the source is its own: 0 not at all, 1 only by its name, 2 by
  /// plausible content, 3 by magic bytes.
  int (*probe)(const Source& source);
  Result<std::unique_ptr<Model>> (*load)(const Source& source, const LoadOptions& options);
  Status (*save)(const Model& model, const std::string& path,
                 const ExportOptions& options);  ///< or null
};

std::span<const Format> formats();
const Format* find_format(std::string_view name);

}  // namespace tombolo
