// Tensors out of a pickle's records: the functions of torch._utils that rebuild them.

#include <algorithm>
#include <cstring>

#include "formats/common/numpy_pickle.h"
#include "formats/pytorch/torch_tensor.h"

namespace tombolo::torch {

namespace {

using Kind = PickleValue::Kind;

bool is_rebuild(const PickleValue& value) {
  if (!value.is(Kind::kObject) || !value.callable || !value.callable->is(Kind::kGlobal))
    return false;
  const std::string_view module = value.callable->module, name = value.callable->text;
  if (module == "torch._utils" || module == "torch._tensor" || module == "torch.tensor")
    return name.starts_with("_rebuild");
  if (module == "torch.nn.parameter") return name == "Parameter" || name == "Buffer";
  return module == "torch.jit._pickle" && name == "build_tensor_from_id";
}

Error malformed(const PickleValue& value) {
  return parse_error("a record of " + value.qualified_name() + " that is incomplete");
}

const ElementType* dtype_of(const PickleValue* value) {
  if (value == nullptr || !value->is(Kind::kGlobal) || value->module != "torch") return nullptr;
  return element_type_of_dtype(value->text);
}

bool flag(const PickleValue* metadata, std::string_view name) {
  const PickleValue* value = metadata ? metadata->find(name) : nullptr;
  return value != nullptr && value->as_int().value_or(0) != 0;
}

}  // namespace

bool TensorReader::is_tensor(const PickleValue& value) {
  if (value.is(Kind::kPersistent)) {
    const PickleValue* kind = value.callable->at(0);
    return (kind && kind->is_text() && kind->text == "storage") ||
           storages_.tensor(*value.callable);
  }
  return is_rebuild(value) || (is_numpy_array(value) && value.callable->text != "scalar");
}

Result<TorchStorage> TensorReader::storage_of(const PickleValue* value) {
  if (value == nullptr) return parse_error("a tensor without a storage");
  // torch.storage.TypedStorage(wrap_storage=..., dtype=...)
  if (value->is(Kind::kObject) && value->callable->text == "TypedStorage" && value->state) {
    const PickleValue* inner = value->state->find("_untyped_storage");
    if (inner == nullptr) inner = value->state->find("_storage");
    TRY(TorchStorage storage, storage_of(inner));
    storage.type = dtype_of(value->state->find("dtype"));
    return storage;
  }
  if (!value->is(Kind::kPersistent)) return parse_error("a tensor whose storage is no storage");
  return storages_.storage(*value->callable);
}

Result<TorchTensor> TensorReader::strided(const PickleValue& value, int depth) {
  if (depth > 20) return parse_error("tensors nested without end");
  if (value.is(Kind::kPersistent)) {
    if (const TorchTensor* tensor = storages_.tensor(*value.callable)) return *tensor;
    // A bare storage: all of it.
    TorchTensor tensor;
    TRY(tensor.storage, storages_.storage(*value.callable));
    tensor.type = tensor.storage.type ? tensor.storage.type : element_type_of_dtype("uint8");
    tensor.sizes = {static_cast<int64_t>(tensor.storage.blob.bytes.size() * 8 / tensor.type->bits)};
    tensor.strides = {1};
    return tensor;
  }
  if (!is_rebuild(value)) return malformed(value);
  const std::string_view name = value.callable->text;
  if (name.starts_with("_rebuild_parameter") || name == "Parameter" || name == "Buffer") {
    const PickleValue* inner = value.at(0);
    if (inner == nullptr && value.state != nullptr) inner = value.attribute("data");
    if (inner == nullptr && value.state != nullptr) inner = value.state->at(0);
    if (inner == nullptr) return malformed(value);
    return strided(*inner, depth + 1);
  }
  if (name.starts_with("_rebuild_from_type")) {
    // (function, type, its arguments, state): the function's own record.
    const PickleValue *function = value.at(0), *arguments = value.at(2);
    if (function == nullptr || arguments == nullptr || !function->is(Kind::kGlobal))
      return malformed(value);
    PickleValue inner;
    inner.kind = Kind::kObject;
    inner.callable = function;
    inner.items = arguments->items;
    return strided(inner, depth + 1);
  }
  TorchTensor tensor;
  const bool quantised = name == "_rebuild_qtensor";
  if (name == "_rebuild_tensor" || name == "_rebuild_tensor_v2" || name == "_rebuild_tensor_v3" ||
      quantised) {
    const auto offset = value.at(1) ? value.at(1)->as_int() : std::nullopt;
    const auto sizes = value.at(2) ? value.at(2)->as_ints() : std::nullopt;
    const auto strides = value.at(3) ? value.at(3)->as_ints() : std::nullopt;
    if (!offset || !sizes || !strides) return malformed(value);
    TRY(tensor.storage, storage_of(value.at(0)));
    tensor.offset = *offset;
    tensor.sizes = *sizes;
    tensor.strides = *strides;
    tensor.type = name == "_rebuild_tensor_v3" ? dtype_of(value.at(6)) : tensor.storage.type;
    if (tensor.type == nullptr) return unsupported("a tensor of an unknown element type");
    const PickleValue* metadata = value.at(name == "_rebuild_tensor_v3" ? 7 : 6);
    if (!quantised) {
      tensor.conjugate = flag(metadata, "conj");
      tensor.negative = flag(metadata, "neg");
    }
    if (!quantised) return tensor;
    const PickleValue* parameters = value.at(4);
    if (parameters == nullptr || parameters->items.size() < 3) return malformed(value);
    if (const auto scale = parameters->at(1)->as_double()) {
      tensor.scales = {*scale};
      tensor.zero_points = {static_cast<double>(parameters->at(2)->as_int().value_or(0))};
      return tensor;
    }
    // (scheme, scales, zero points, axis)
    const PickleValue* axis = parameters->at(3);
    tensor.axis = axis ? axis->as_int().value_or(0) : 0;
    for (const size_t part : {size_t{1}, size_t{2}}) {
      const PickleValue& list = *parameters->at(part);
      if (list.is_sequence()) {
        for (const PickleValue* item : list.items) {
          if (part == 1) tensor.scales.push_back(item->as_double().value_or(1));
          if (part == 2) tensor.zero_points.push_back(item->as_double().value_or(0));
        }
        continue;
      }
      TRY(TorchTensor inner, strided(list, depth + 1));
      TRY(Weight dense, to_weight(inner, "", true, budget_));
      for (int64_t i = 0; i < dense.tensor.size(); ++i) {
        if (part == 1) tensor.scales.push_back(dense.tensor.get_double(i));
        if (part == 2) tensor.zero_points.push_back(dense.tensor.get_double(i));
      }
    }
    return tensor;
  }
  if (name == "_rebuild_meta_tensor_no_storage") {
    tensor.type = dtype_of(value.at(0));
    const auto sizes = value.at(1) ? value.at(1)->as_ints() : std::nullopt;
    const auto strides = value.at(2) ? value.at(2)->as_ints() : std::nullopt;
    if (!tensor.type || !sizes || !strides) return malformed(value);
    tensor.sizes = *sizes;
    tensor.strides = *strides;
    tensor.meta = true;
    return tensor;
  }
  if (name.starts_with("_rebuild_device_tensor_from_cpu_tensor") && value.at(0))
    return strided(*value.at(0), depth + 1);
  return unsupported("tensors rebuilt by " + value.qualified_name());
}

Result<Weight> TensorReader::weight(const PickleValue& value, std::string name, int depth) {
  if (depth > 20) return parse_error("tensors nested without end");
  if (is_numpy_array(value)) {
    auto tensor = numpy_tensor(value, owner_);
    if (!tensor.ok()) return std::move(tensor).error();
    return Weight::of(std::move(name), *std::move(tensor));
  }
  if (is_rebuild(value)) {
    const std::string_view function = value.callable->text;
    const bool parameter = function.starts_with("_rebuild_parameter") || function == "Parameter";
    if (parameter && value.at(0)) return weight(*value.at(0), std::move(name), depth + 1);
    if (function.starts_with("_rebuild_sparse")) return sparse(value, std::move(name), depth);
    if (function.starts_with("_rebuild_nested"))
      return unsupported("a nested tensor has no dense form");
    // (array, dtype, device, requires_grad), of devices whose storages cannot be saved
    if (function == "_rebuild_device_tensor_from_numpy" || function == "_rebuild_xla_tensor") {
      if (value.at(0) && is_numpy_array(*value.at(0)))
        return weight(*value.at(0), std::move(name), depth + 1);
      return malformed(value);
    }
  }
  TRY(TorchTensor tensor, strided(value, depth));
  return to_weight(tensor, std::move(name), data_, budget_);
}

Result<Weight> TensorReader::sparse(const PickleValue& value, std::string name, int depth) {
  // (layout, (indices, values, size)) or (layout, (compressed, plain, values, size))
  const PickleValue *layout = value.at(0), *parts = value.at(1);
  if (!layout || !parts) return malformed(value);
  std::string_view kind;
  if (layout->is(Kind::kGlobal)) kind = layout->text;
  if (layout->is(Kind::kObject) && layout->at(0) && layout->at(0)->is_text())
    kind = layout->at(0)->text;
  if (kind.starts_with("torch.")) kind.remove_prefix(6);
  const bool coo = kind == "sparse_coo";
  const bool csr = kind == "sparse_csr", csc = kind == "sparse_csc", bsr = kind == "sparse_bsr",
             bsc = kind == "sparse_bsc";
  if (!coo && !csr && !csc && !bsr && !bsc)
    return unsupported("a tensor of layout " + std::string(kind));
  const size_t first = coo ? 1 : 2;
  const PickleValue* size = parts->at(first + 1);
  const auto dims = size ? size->as_ints() : std::nullopt;
  if (!dims || element_count(*dims) < 0) return malformed(value);
  const bool data = data_;
  data_ = true;
  auto dense_of = [&](size_t index) -> Result<Tensor> {
    TRY(Weight dense, weight(*parts->at(index), "", depth + 1));
    return dense.tensor;
  };
  auto indices = dense_of(0);
  auto plain = coo ? Result<Tensor>(Tensor()) : dense_of(1);
  auto values = dense_of(first);
  data_ = data;
  if (!indices.ok()) return std::move(indices).error();
  if (!plain.ok()) return std::move(plain).error();
  if (!values.ok()) return std::move(values).error();

  const DType dtype = values->dtype();
  Weight result;
  result.name = std::move(name);
  result.dtype = dtype;
  result.dims = *dims;
  if (!data_) return result;
  const size_t width = bytes_of(dtype);
  const uint64_t total = static_cast<uint64_t>(element_count(*dims)) * width;
  if (width == 0) return unsupported("a sparse tensor of this element type");
  if (total > budget_ + values->bytes().size() * 64)
    return resource_error("a sparse tensor becomes " + std::to_string(total) + " bytes when dense");
  TRY(result.tensor, Tensor::allocate(dtype, *dims));
  const auto out = result.tensor.mutable_bytes();
  if (out.empty()) return result;
  std::memset(out.data(), 0, out.size());

  const size_t rank = dims->size();
  std::vector<int64_t> steps(rank);
  for (size_t i = rank, step = 1; i-- > 0; step *= static_cast<size_t>((*dims)[i]))
    steps[i] = static_cast<int64_t>(step);
  auto add = [&](std::byte* to, const std::byte* from) {
    // Uncoalesced entries add up; a first one is simply copied, so that bits stay.
    bool zero = true;
    for (size_t i = 0; i < width; ++i) zero = zero && to[i] == std::byte{0};
    if (zero) {
      std::memcpy(to, from, width);
      return;
    }
    const DType real = dtype == DType::kComplex64    ? DType::kFloat32
                       : dtype == DType::kComplex128 ? DType::kFloat64
                                                     : dtype;
    const size_t lane = bytes_of(real);
    const int64_t one[] = {1};
    for (size_t at = 0; at < width; at += lane) {
      Tensor a = Tensor::view(real, one, {to + at, lane}, nullptr);
      const Tensor b = Tensor::view(real, one, {from + at, lane}, nullptr);
      if (is_float(real)) {
        a.set_double(0, a.get_double(0) + b.get_double(0));
      } else {
        a.set_int64(0, a.get_int64(0) + b.get_int64(0));
      }
    }
  };
  auto misplaced = [] { return parse_error("a sparse tensor with an index out of range"); };
  if (coo) {
    // indices [sparse dims, nnz], values [nnz, dense dims...]
    if (indices->rank() != 2 || values->rank() == 0 || indices->dim(1) != values->dim(0) ||
        static_cast<size_t>(indices->dim(0)) + values->rank() - 1 != rank)
      return malformed(value);
    const auto sparse_dims = static_cast<size_t>(indices->dim(0));
    int64_t slice = 1;
    for (size_t i = sparse_dims; i < rank; ++i) {
      if (values->dim(i - sparse_dims + 1) != (*dims)[i]) return malformed(value);
      slice *= (*dims)[i];
    }
    for (int64_t k = 0; k < values->dim(0); ++k) {
      int64_t at = 0;
      for (size_t axis = 0; axis < sparse_dims; ++axis) {
        const int64_t index = indices->get_int64(static_cast<int64_t>(axis) * indices->dim(1) + k);
        if (index < 0 || index >= (*dims)[axis]) return misplaced();
        at += index * steps[axis];
      }
      for (int64_t i = 0; i < slice; ++i)
        add(out.data() + static_cast<size_t>(at + i) * width,
            values->bytes().data() + static_cast<size_t>(k * slice + i) * width);
    }
    return result;
  }
  // Compressed rows or columns, of elements or blocks; batches in front, dense dims behind.
  const size_t batch = indices->rank() - 1;
  const size_t block = bsr || bsc ? 2 : 0;
  if (indices->rank() == 0 || plain->rank() != batch + 1 || rank < batch + 2 ||
      values->rank() != batch + 1 + block + (rank - batch - 2))
    return malformed(value);
  const int64_t height = block ? values->dim(batch + 1) : 1;
  const int64_t breadth = block ? values->dim(batch + 2) : 1;
  int64_t batches = 1, inner = 1;
  for (size_t i = 0; i < batch; ++i) batches *= (*dims)[i];
  for (size_t i = batch + 2; i < rank; ++i) inner *= (*dims)[i];
  const int64_t rows = (*dims)[batch], columns = (*dims)[batch + 1];
  const int64_t lines = indices->dim(batch) - 1, nnz = plain->dim(batch);
  if (values->dim(batch) != nnz || indices->size() != batches * (lines + 1) ||
      plain->size() != batches * nnz || values->size() != batches * nnz * height * breadth * inner)
    return malformed(value);
  const bool by_row = csr || bsr;
  for (int64_t b = 0; b < batches; ++b)
    for (int64_t line = 0; line < lines; ++line) {
      const int64_t from = indices->get_int64(b * (lines + 1) + line);
      const int64_t to = indices->get_int64(b * (lines + 1) + line + 1);
      if (from < 0 || to > nnz || from > to) return misplaced();
      for (int64_t k = from; k < to; ++k) {
        const int64_t other = plain->get_int64(b * nnz + k);
        if (other < 0 || other >= std::max(rows, columns)) return misplaced();
        const int64_t row = (by_row ? line : other) * height;
        const int64_t column = (by_row ? other : line) * breadth;
        if (row < 0 || column < 0 || row + height > rows || column + breadth > columns)
          return misplaced();
        for (int64_t y = 0; y < height; ++y)
          for (int64_t x = 0; x < breadth; ++x)
            for (int64_t i = 0; i < inner; ++i) {
              const int64_t target = ((b * rows + row + y) * columns + column + x) * inner + i;
              const int64_t source = (((b * nnz + k) * height + y) * breadth + x) * inner + i;
              std::memcpy(out.data() + static_cast<size_t>(target) * width,
                          values->bytes().data() + static_cast<size_t>(source) * width, width);
            }
      }
    }
  return result;
}

}  // namespace tombolo::torch
