// Views of a pickle's values, and the table of what a pickle may call.

#include "formats/common/pickle.h"

namespace tombolo {

std::optional<int64_t> PickleValue::as_int() const {
  if (kind == Kind::kInt || kind == Kind::kBool) return integer;
  return std::nullopt;
}

std::optional<double> PickleValue::as_double() const {
  if (kind == Kind::kFloat) return real;
  if (kind == Kind::kInt || kind == Kind::kBool) return static_cast<double>(integer);
  return std::nullopt;
}

std::optional<std::vector<int64_t>> PickleValue::as_ints() const {
  if (!is_sequence()) return std::nullopt;
  std::vector<int64_t> values;
  values.reserve(items.size());
  for (const PickleValue* item : items) {
    const auto value = item->as_int();
    if (!value) return std::nullopt;
    values.push_back(*value);
  }
  return values;
}

const PickleValue* PickleValue::at(size_t index) const {
  return index < items.size() ? items[index] : nullptr;
}

const PickleValue* PickleValue::find(std::string_view key) const {
  // The last one wins, as in Python.
  for (size_t i = entries.size(); i >= 2; i -= 2) {
    const PickleValue& name = *entries[i - 2];
    if (name.is_text() && name.text == key) return entries[i - 1];
  }
  return nullptr;
}

const PickleValue* PickleValue::attribute(std::string_view name) const {
  if (state == nullptr) return nullptr;
  if (const PickleValue* found = state->find(name)) return found;
  // (state of __dict__, state of __slots__)
  if (state->is(Kind::kTuple) && state->items.size() == 2) {
    for (const PickleValue* part : state->items)
      if (const PickleValue* found = part->find(name)) return found;
  }
  return nullptr;
}

std::string PickleValue::qualified_name() const {
  const PickleValue* global = is(Kind::kGlobal) ? this : callable;
  if (global == nullptr || !global->is(Kind::kGlobal)) return "?";
  return std::string(global->module) + "." + std::string(global->text);
}

bool PickleValue::is_global(std::string_view of_module, std::string_view name) const {
  return kind == Kind::kGlobal && text == name && module == of_module;
}

bool PickleValue::is_object_of(std::string_view of_module, std::string_view name) const {
  return kind == Kind::kObject && callable != nullptr && callable->is_global(of_module, name);
}

namespace {

// Constructors of plain data: calling them for real could at worst make a value. Functions that
// import, open, look up attributes or evaluate are not here and must never be.
constexpr HarmlessCall kHarmless[] = {
    // Python
    {"builtins", "bool"},
    {"builtins", "bytearray"},
    {"builtins", "bytes"},
    {"builtins", "complex"},
    {"builtins", "dict"},
    {"builtins", "float"},
    {"builtins", "frozenset"},
    {"builtins", "int"},
    {"builtins", "list"},
    {"builtins", "object"},
    {"builtins", "range"},
    {"builtins", "set"},
    {"builtins", "slice"},
    {"builtins", "str"},
    {"builtins", "tuple"},
    {"collections", "ChainMap"},
    {"collections", "Counter"},
    {"collections", "OrderedDict"},
    {"collections", "UserDict"},
    {"collections", "UserList"},
    {"collections", "defaultdict"},
    {"collections", "deque"},
    {"_codecs", "encode"},
    {"copy_reg", "_reconstructor"},
    {"copyreg", "_reconstructor"},
    {"copyreg", "__newobj__"},
    {"copy_reg", "__newobj__"},
    {"datetime", "date"},
    {"datetime", "datetime"},
    {"datetime", "time"},
    {"datetime", "timedelta"},
    {"datetime", "timezone"},
    {"decimal", "Decimal"},
    {"fractions", "Fraction"},
    {"functools", "partial"},
    {"pathlib", "Path"},
    {"pathlib", "PosixPath"},
    {"pathlib", "PurePosixPath"},
    {"pathlib", "PureWindowsPath"},
    {"pathlib", "WindowsPath"},
    {"pathlib._local", "PosixPath"},
    {"pathlib._local", "WindowsPath"},
    {"uuid", "UUID"},
    // NumPy, SciPy, joblib
    {"numpy", "dtype"},
    {"numpy", "ndarray"},
    {"numpy", "datetime64"},
    {"numpy", "timedelta64"},
    {"numpy.core.multiarray", "_reconstruct"},
    {"numpy.core.multiarray", "scalar"},
    {"numpy._core.multiarray", "_reconstruct"},
    {"numpy._core.multiarray", "scalar"},
    {"numpy.core.numeric", "_frombuffer"},
    {"numpy._core.numeric", "_frombuffer"},
    {"numpy.ma.core", "_mareconstruct"},
    {"numpy.random._pickle", "__randomstate_ctor"},
    {"numpy.random._pickle", "__generator_ctor"},
    {"numpy.random._pickle", "__bit_generator_ctor"},
    // PyTorch
    {"torch", "Generator"},
    {"torch", "Size"},
    {"torch", "device"},
    {"torch", "dtype"},
    {"torch", "tensor"},
    {"torch._tensor", "_rebuild_from_type*"},
    {"torch.tensor", "_rebuild_from_type*"},
    {"torch._utils", "_rebuild*"},
    {"torch.jit._pickle", "build_boollist"},
    {"torch.jit._pickle", "build_doublelist"},
    {"torch.jit._pickle", "build_intlist"},
    {"torch.jit._pickle", "build_tensor_from_id"},
    {"torch.jit._pickle", "build_tensorlist"},
    {"torch.jit._pickle", "restore_type_tag"},
    {"torch.nested._internal.nested_tensor", "_rebuild_njt"},
    {"torch.nn.parameter", "Buffer"},
    {"torch.nn.parameter", "Parameter"},
    {"torch.nn.parameter", "UninitializedBuffer"},
    {"torch.nn.parameter", "UninitializedParameter"},
    {"torch.serialization", "_get_layout"},
    {"torch.storage", "TypedStorage"},
    {"torch.storage", "UntypedStorage"},
    {"torch.storage", "_load_from_bytes"},
    {"torch.distributed._shard.sharded_tensor.metadata", "MEM_FORMAT_ENCODING"},
    {"torch.distributed.checkpoint.metadata", "BytesStorageMetadata"},
    {"torch.distributed.checkpoint.metadata", "ChunkStorageMetadata"},
    {"torch.distributed.checkpoint.metadata", "Metadata"},
    {"torch.distributed.checkpoint.metadata", "MetadataIndex"},
    {"torch.distributed.checkpoint.metadata", "StorageMeta"},
    {"torch.distributed.checkpoint.metadata", "TensorProperties"},
    {"torch.distributed.checkpoint.metadata", "TensorStorageMetadata"},
    {"torch.distributed.checkpoint.metadata", "_MEM_FORMAT_ENCODING"},
    {"torch.distributed.checkpoint.filesystem", "_StorageInfo"},
    {"torch.distributed.tensor", "DTensor"},
    {"torch.distributed.tensor._dtensor_spec", "DTensorSpec"},
    {"torch.distributed.tensor._dtensor_spec", "TensorMeta"},
    {"torch.distributed.device_mesh", "DeviceMesh"},
    {"torch.distributed.tensor.placement_types", "Partial"},
    {"torch.distributed.tensor.placement_types", "Replicate"},
    {"torch.distributed.tensor.placement_types", "Shard"},
    {"torchao.quantization.quant_primitives", "MappingType"},
    {"torchao.quantization.quant_primitives", "ZeroPointDomain"},
    {"torchao.quantization.quantize_.common.kernel_preference", "KernelPreference"},
};

/// Python 2 called the module of built-in things otherwise.
std::string_view modern_module(std::string_view module) {
  return module == "__builtin__" ? std::string_view("builtins") : module;
}

}  // namespace

std::span<const HarmlessCall> harmless_calls() { return kHarmless; }

bool is_harmless_call(std::string_view module, std::string_view name) {
  module = modern_module(module);
  // Classes of a TorchScript archive: its own code, which is data here too.
  if (module.starts_with("__torch__")) return true;
  for (const HarmlessCall& row : kHarmless) {
    if (row.module != module) continue;
    if (row.name.ends_with('*') ? name.starts_with(row.name.substr(0, row.name.size() - 1))
                                : name == row.name)
      return true;
  }
  return false;
}

}  // namespace tombolo
