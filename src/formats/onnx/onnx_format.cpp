#include "formats/onnx/onnx_format.h"

#include "base/output_file.h"
#include "ir/text/parser.h"
#include "ir/text/printer.h"
#include "onnx/json.h"
#include "onnx/reader.h"

namespace tombolo {

namespace {

std::string folder_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash + 1);
}

std::string_view after_spaces(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\n' || text.front() == '\r' ||
                           text.front() == '\t'))
    text.remove_prefix(1);
  return text;
}

}  // namespace

int probe_onnx(const Source& source) {
  if (source.is_folder || source.file.size() == 0) return 0;
  if (looks_like_onnx(source.file.text())) return 2;
  return source.path.ends_with(".onnx") ? 1 : 0;
}

int probe_text(const Source& source) {
  if (source.is_folder) return 0;
  if (looks_like_text(source.file.text())) return 2;
  return source.path.ends_with(".onnxtxt") ? 1 : 0;
}

int probe_json(const Source& source) {
  if (source.is_folder) return 0;
  const std::string_view text = after_spaces(source.file.text());
  if (!text.starts_with("{")) return 0;
  const std::string_view head = text.substr(0, 4096);
  const bool model = head.find("\"irVersion\"") != std::string_view::npos ||
                     head.find("\"ir_version\"") != std::string_view::npos ||
                     head.find("\"opsetImport\"") != std::string_view::npos ||
                     head.find("\"graph\"") != std::string_view::npos;
  return model ? 2 : 0;
}

Result<std::unique_ptr<Model>> load_onnx_format(const Source& source, const LoadOptions&) {
  auto storage = std::make_shared<Storage>();
  storage->keep(source.file);
  storage->set_folder(folder_of(source.path));
  auto model = read_onnx(source.file.text(), std::move(storage));
  // Reading touched the pages of the graph: a large one need not stay resident beside what was made
  // of it. Names and weights come back when they are looked at.
  if (source.file.size() > size_t{16} << 20) source.file.release_pages(source.file.bytes());
  return model;
}

Result<std::unique_ptr<Model>> load_text_format(const Source& source, const LoadOptions&) {
  TRY(std::unique_ptr<Model> model, parse_text(source.file.text()));
  model->storage().set_folder(folder_of(source.path));
  return model;
}

Result<std::unique_ptr<Model>> load_json_format(const Source& source, const LoadOptions&) {
  TRY(std::unique_ptr<Model> model, read_json(source.file.text()));
  model->storage().set_folder(folder_of(source.path));
  return model;
}

Status save_onnx_format(const Model& model, const std::string& path, const ExportOptions& options) {
  SaveOptions data = options.data;
  if (options.keep_external) data.data = SaveOptions::Data::kKeep;
  return save_onnx(model, path, data);
}

Status save_text_format(const Model& model, const std::string& path, const ExportOptions&) {
  TRY(OutputFile file, OutputFile::create(path));
  struct Sink final : TextSink {
    explicit Sink(OutputFile& out) : file(out) {}
    Status write(std::string_view piece) override { return file.write(piece); }
    OutputFile& file;
  } sink(file);
  CHECK_OK(print_text(model, sink));
  return file.commit();
}

Status save_json_format(const Model& model, const std::string& path, const ExportOptions&) {
  return save_json(model, path);
}

}  // namespace tombolo
