#pragma once

// A TorchScript archive: objects, constants and code.

#include <map>
#include <memory>
#include <string>

#include "formats/pytorch/checkpoint.h"
#include "formats/pytorch/script/syntax.h"

namespace tombolo::script {

class ScriptArchive {
 public:
  static Result<std::unique_ptr<ScriptArchive>> open(Blob file);

  /// The function or class of a qualified name ("__torch__.net.helper"); null when there is none.
  Result<const Function*> function(std::string_view qualified);
  Result<const Class*> type(std::string_view qualified);

  const PickleValue& root() const { return data_->root(); }
  const PickleValue* constant(size_t index) const;
  /// Example inputs that tracing recorded; null when there are none.
  const PickleValue* traced_inputs() const { return traced_ ? &traced_->root() : nullptr; }
  /// A tensor that one of the archive's pickles describes. `folder` holds its storage: "data/",
  /// "constants/", "traced_inputs/".
  Result<torch::TorchTensor> tensor(const PickleValue& value, const char* folder);
  /// Where a line of a file of code/ came from: "model.py:12"; empty when it is not recorded.
  const std::string& origin(std::string_view file, uint32_t line);
  /// Of the operators: what decides which meaning an old operator has.
  int version() const { return archive_.version(); }

 private:
  Result<SourceFile*> source(const std::string& module);
  /// The record of where a file's code came from, read once.
  struct Origins {
    std::unique_ptr<Pickle> record;
    Blob code;
    std::map<uint32_t, std::string> lines;
  };
  std::string find_origin(const Origins& origins, uint32_t line) const;

  torch::TorchArchive archive_;
  std::unique_ptr<Pickle> data_, constants_, traced_;
  std::map<std::string, std::unique_ptr<SourceFile>, std::less<>> sources_;
  std::map<std::string, Origins, std::less<>> origins_;
};

/// True when the archive is TorchScript: with code or with bytecode.
bool is_script_archive(const ZipArchive& zip);

}  // namespace tombolo::script
