#include "formats/pytorch/script/archive.h"

#include <algorithm>

namespace tombolo::script {

bool is_script_archive(const ZipArchive& zip) {
  for (const ZipArchive::Member& member : zip.members()) {
    const size_t slash = member.name.find('/');
    if (slash == std::string::npos) continue;
    const std::string_view rest = std::string_view(member.name).substr(slash + 1);
    if (rest == "constants.pkl" || rest == "bytecode.pkl" || rest == "mobile.ff") return true;
    if (rest.starts_with("code/") && rest.ends_with(".py")) return true;
    if (rest == "model.json") return true;
  }
  return false;
}

Result<std::unique_ptr<ScriptArchive>> ScriptArchive::open(Blob file) {
  auto script = std::make_unique<ScriptArchive>();
  TRY(script->archive_, torch::TorchArchive::open(file));
  torch::TorchArchive& archive = script->archive_;
  bool has_code = false;
  for (const ZipArchive::Member& member : archive.zip().members())
    has_code = has_code || member.name.starts_with(archive.root() + "code/");
  if (archive.find("bytecode.pkl") && !has_code)
    return unsupported("the file is for PyTorch's lite interpreter: it holds bytecode and no code")
        .with_help(
            "save the model with torch.jit.save(model, ...) instead of "
            "_save_for_lite_interpreter");
  if (archive.find("model.json"))
    return unsupported("the file is a TorchScript archive of PyTorch 1.0 or 1.1")
        .with_help("load it with PyTorch 1.2 to 1.4 and save it again");
  if (!archive.find("data.pkl")) return parse_error("the archive has no data.pkl");
  TRY(Pickle data, archive.pickle("data.pkl"));
  script->data_ = std::make_unique<Pickle>(std::move(data));
  if (archive.find("constants.pkl")) {
    TRY(Pickle constants, archive.pickle("constants.pkl"));
    script->constants_ = std::make_unique<Pickle>(std::move(constants));
  }
  if (archive.find("traced_inputs.pkl")) {
    TRY(Pickle traced, archive.pickle("traced_inputs.pkl"));
    script->traced_ = std::make_unique<Pickle>(std::move(traced));
  }
  return script;
}

Result<SourceFile*> ScriptArchive::source(const std::string& module) {
  const auto known = sources_.find(module);
  if (known != sources_.end()) return known->second.get();
  std::string path = "code/" + module;
  std::replace(path.begin(), path.end(), '.', '/');
  path += ".py";
  if (!archive_.find(path)) {
    sources_.emplace(module, nullptr);
    return static_cast<SourceFile*>(nullptr);
  }
  TRY(Blob text, archive_.read(path));
  TRY(auto parsed, parse_source(text.text(), text.owner, path, module));
  return sources_.emplace(module, std::move(parsed)).first->second.get();
}

Result<const Function*> ScriptArchive::function(std::string_view qualified) {
  const size_t dot = qualified.rfind('.');
  if (dot == std::string_view::npos) return static_cast<const Function*>(nullptr);
  TRY(SourceFile * file, source(std::string(qualified.substr(0, dot))));
  if (file == nullptr) return static_cast<const Function*>(nullptr);
  const auto found = file->functions_by_name.find(qualified.substr(dot + 1));
  return found == file->functions_by_name.end() ? nullptr : found->second;
}

Result<const Class*> ScriptArchive::type(std::string_view qualified) {
  const size_t dot = qualified.rfind('.');
  if (dot == std::string_view::npos) return static_cast<const Class*>(nullptr);
  TRY(SourceFile * file, source(std::string(qualified.substr(0, dot))));
  if (file == nullptr) return static_cast<const Class*>(nullptr);
  const auto found = file->classes_by_name.find(qualified.substr(dot + 1));
  return found == file->classes_by_name.end() ? nullptr : found->second;
}

const PickleValue* ScriptArchive::constant(size_t index) const {
  return constants_ ? constants_->root().at(index) : nullptr;
}

Result<torch::TorchTensor> ScriptArchive::tensor(const PickleValue& value, const char* folder) {
  archive_.set_storage_folder(folder);
  torch::TensorReader reader(archive_, nullptr, true);
  return reader.strided(value);
}

const std::string& ScriptArchive::origin(std::string_view file, uint32_t line) {
  auto known = origins_.find(file);
  if (known == origins_.end()) {
    known = origins_.emplace(std::string(file), Origins()).first;
    const std::string path = std::string(file) + ".debug_pkl";
    if (archive_.find(path)) {
      auto record = archive_.pickle(path);
      auto code = archive_.read(file);
      if (record.ok() && code.ok()) {
        known->second.record = std::make_unique<Pickle>(*std::move(record));
        known->second.code = *std::move(code);
      }
    }
  }
  Origins& origins = known->second;
  const auto found = origins.lines.find(line);
  if (found != origins.lines.end()) return found->second;
  return origins.lines[line] = origins.record ? find_origin(origins, line) : std::string();
}

std::string ScriptArchive::find_origin(const Origins& origins, uint32_t line) const {
  // Rows of (first byte in the code, tag, (source, file name, first line), start, end). Since 1.12
  // the first member says that texts are numbers into a table.
  const PickleValue* rows = &origins.record->root();
  const PickleValue* table = nullptr;
  if (rows->is(PickleValue::Kind::kTuple) && rows->items.size() == 3 && rows->at(0)->is_text()) {
    table = rows->at(1);
    rows = rows->at(2);
  }
  const std::string_view text = origins.code.text();
  size_t begin = 0;
  for (uint32_t at = 1; at < line; ++at) {
    const size_t end = text.find('\n', begin);
    if (end == std::string_view::npos) return {};
    begin = end + 1;
  }
  const auto end = static_cast<int64_t>(std::min(text.find('\n', begin), text.size()));
  const PickleValue* best = nullptr;
  for (const PickleValue* row : rows->items) {
    const PickleValue* offset = row->at(0);
    if (offset == nullptr || !offset->as_int() || *offset->as_int() >= end) continue;
    if (best == nullptr || *offset->as_int() >= *best->at(0)->as_int()) best = row;
  }
  if (best == nullptr) return {};
  const PickleValue* range = best->at(best->items.size() == 3 ? 1 : 2);
  for (const PickleValue* item : best->items)
    if (item->is(PickleValue::Kind::kTuple)) range = item;
  if (range == nullptr || range->items.size() < 3) return {};
  std::string source;
  std::string name;
  int64_t first = 0, start = 0;
  const auto text_of = [&](const PickleValue* value) -> std::string {
    if (value == nullptr) return {};
    if (value->is_text()) return std::string(value->text);
    if (table && value->as_int()) {
      const PickleValue* entry = table->at(static_cast<size_t>(*value->as_int()));
      return entry && entry->is_text() ? std::string(entry->text) : std::string();
    }
    // A list of indices of pieces.
    std::string joined;
    if (value->is(PickleValue::Kind::kObject) && value->at(0)) value = value->at(0);
    for (const PickleValue* piece : value->items)
      if (table && piece->as_int()) {
        const PickleValue* entry = table->at(static_cast<size_t>(*piece->as_int()));
        if (entry && entry->is_text()) joined += std::string(entry->text);
      }
    return joined;
  };
  // (source, file name, first line) beside start and end, or all five in one.
  const PickleValue* origin = range->at(0);
  if (origin && origin->is(PickleValue::Kind::kTuple)) {
    start = range->at(1) ? range->at(1)->as_int().value_or(0) : 0;
    range = origin;
  } else {
    const size_t where = range->items.size() >= 5 ? 3 : 0;
    if (where != 0) start = range->at(where)->as_int().value_or(0);
  }
  source = text_of(range->at(0));
  name = text_of(range->at(1));
  first = range->at(2) ? range->at(2)->as_int().value_or(0) : 0;
  // Traced code has the call stack in the place of the source.
  if (name.empty() || source.find("): ") != std::string::npos)
    return source.substr(0, std::min(source.find('\n'), size_t{200}));
  const size_t upto =
      std::min<size_t>(static_cast<size_t>(std::max<int64_t>(start, 0)), source.size());
  const auto newlines =
      std::count(source.begin(), source.begin() + static_cast<std::ptrdiff_t>(upto), '\n');
  return name + ":" + std::to_string(first + newlines);
}

}  // namespace tombolo::script
