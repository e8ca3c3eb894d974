#include "ir/tensor.h"

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <new>

#include "base/block_cache.h"

namespace tombolo {

namespace {
std::atomic<uint64_t> live_bytes{0};

/// Memory of a small tensor beside the count of its owners: one block of the system's allocator,
/// without the detour that alignment costs there. Loops make such tensors in every iteration.
template <size_t N>
struct SmallBlock {
  SmallBlock() { live_bytes.fetch_add(N, std::memory_order_relaxed); }
  ~SmallBlock() { live_bytes.fetch_sub(N, std::memory_order_relaxed); }
  std::byte* data() {
    return reinterpret_cast<std::byte*>((reinterpret_cast<uintptr_t>(raw) + 63) / 64 * 64);
  }
  alignas(16) std::byte raw[N + 48];
};

template <size_t N>
std::byte* take_small(std::shared_ptr<const void>& owner) {
  auto block = std::make_shared_for_overwrite<SmallBlock<N>>();
  std::byte* data = block->data();
  owner = std::move(block);
  return data;
}
}  // namespace

uint64_t live_tensor_bytes() { return live_bytes; }

int64_t element_count(std::span<const int64_t> dims) {
  int64_t count = 1;
  bool zero = false;
  for (int64_t dim : dims) {
    if (dim < 0) return -1;
    if (dim == 0) zero = true;
  }
  if (zero) return 0;
  for (int64_t dim : dims)
    if (__builtin_mul_overflow(count, dim, &count)) return -1;
  return count;
}

Deferred::~Deferred() = default;

Tensor::Tensor(const Tensor& other) = default;
Tensor::Tensor(Tensor&& other) noexcept = default;
Tensor& Tensor::operator=(const Tensor& other) = default;
Tensor& Tensor::operator=(Tensor&& other) noexcept = default;
Tensor::~Tensor() = default;

Result<Tensor> Tensor::allocate(DType dtype, std::span<const int64_t> dims, bool lasting) {
  Tensor tensor;
  tensor.dtype_ = dtype;
  tensor.dims_.assign(dims);
  tensor.count_ = element_count(dims);
  if (tensor.count_ < 0)
    return resource_error("a tensor of shape " + dims_to_string(dims) + " is impossible");
  tensor.writable_ = true;
  if (dtype == DType::kString) {
    if (static_cast<uint64_t>(tensor.count_) > (uint64_t{1} << 34) / sizeof(std::string))
      return resource_error("a string tensor of shape " + dims_to_string(dims) + " is too large");
    tensor.strings_ = take_texts(static_cast<size_t>(tensor.count_));
    return tensor;
  }
  auto bytes = packed_bytes(dtype, static_cast<uint64_t>(tensor.count_));
  if (!bytes || *bytes > (uint64_t{1} << 46))
    return resource_error("a tensor of shape " + dims_to_string(dims) + " is too large");
  // 64-byte alignment and a tail of one cache line, so that vector loads need no special last step.
  const size_t rounded = (static_cast<size_t>(*bytes) + 127) / 64 * 64;
  if (rounded <= 512) {
    tensor.data_ = rounded <= 128   ? take_small<128>(tensor.owner_)
                   : rounded <= 256 ? take_small<256>(tensor.owner_)
                                    : take_small<512>(tensor.owner_);
    tensor.byte_size_ = static_cast<size_t>(*bytes);
    if (is_sub_byte(dtype) && tensor.byte_size_ != 0)
      tensor.data_[tensor.byte_size_ - 1] = std::byte{0};
    return tensor;
  }
  const Block block = take_block(rounded, lasting);
  if (block.data == nullptr)
    return resource_error("out of memory for a tensor of shape " + dims_to_string(dims));
  live_bytes += block.size;
  tensor.owner_ = std::shared_ptr<const void>(block.data, [size = block.size](void* data) {
    live_bytes -= size;
    give_block({data, size});
  });
  tensor.data_ = static_cast<std::byte*>(block.data);
  tensor.byte_size_ = static_cast<size_t>(*bytes);
  // Writing packed elements one by one leaves the unused bits of the last byte as they are.
  if (is_sub_byte(dtype) && tensor.byte_size_ != 0)
    tensor.data_[tensor.byte_size_ - 1] = std::byte{0};
  return tensor;
}

Tensor Tensor::view(DType dtype, std::span<const int64_t> dims, std::span<const std::byte> bytes,
                    std::shared_ptr<const void> owner) {
  Tensor tensor;
  tensor.dtype_ = dtype;
  tensor.dims_.assign(dims);
  tensor.count_ = element_count(dims);
  tensor.data_ = const_cast<std::byte*>(bytes.data());
  tensor.byte_size_ = bytes.size();
  tensor.owner_ = std::move(owner);
  return tensor;
}

Tensor Tensor::part(int64_t begin, std::span<const int64_t> dims) const {
  const auto first = static_cast<size_t>(begin), count = static_cast<size_t>(element_count(dims));
  if (is_string())
    return of_strings(
        dims, std::vector<std::string>(strings_->begin() + begin,
                                       strings_->begin() + begin + static_cast<int64_t>(count)));
  const size_t width = bits_of(dtype_) / 8;
  return view(dtype_, dims, bytes().subspan(first * width, count * width), owner_);
}

Tensor Tensor::of_strings(std::span<const int64_t> dims, std::vector<std::string> strings) {
  Tensor tensor;
  tensor.dtype_ = DType::kString;
  tensor.dims_.assign(dims);
  tensor.count_ = element_count(dims);
  tensor.strings_ = std::make_shared<std::vector<std::string>>(std::move(strings));
  tensor.writable_ = true;
  return tensor;
}

Tensor Tensor::of_deferred(DType dtype, std::span<const int64_t> dims,
                           std::shared_ptr<const Deferred> elements) {
  Tensor tensor;
  tensor.dtype_ = dtype;
  tensor.dims_.assign(dims);
  tensor.count_ = element_count(dims);
  tensor.byte_size_ =
      static_cast<size_t>(packed_bytes(dtype, static_cast<uint64_t>(tensor.count_)).value_or(0));
  tensor.is_deferred_ = true;
  tensor.owner_ = std::move(elements);
  return tensor;
}

Tensor Tensor::int64s(std::span<const int64_t> values) {
  const int64_t dims[] = {static_cast<int64_t>(values.size())};
  return of<int64_t>(DType::kInt64, dims, values);
}
Tensor Tensor::scalar_int64(int64_t value) {
  auto tensor = allocate(DType::kInt64, {});  // one small block, where of() takes three
  if (!tensor) return of<int64_t>(DType::kInt64, {}, std::span<const int64_t>(&value, 1));
  *tensor->data<int64_t>() = value;
  return *std::move(tensor);
}
Tensor Tensor::scalar_float(float value) {
  return of<float>(DType::kFloat32, {}, std::span<const float>(&value, 1));
}

Tensor Tensor::reshaped(std::span<const int64_t> dims) const {
  Tensor tensor = *this;
  tensor.dims_.assign(dims);
  return tensor;
}

Tensor Tensor::reinterpreted(DType dtype) const {
  Tensor tensor = *this;
  tensor.dtype_ = dtype;
  return tensor;
}

Result<Tensor> Tensor::clone() const {
  TRY(Tensor copy, allocate(dtype_, dims_));
  if (is_string())
    *copy.strings_ = *strings_;
  else
    write_to(copy.data_);
  return copy;
}

void Tensor::write_to(std::byte* to) const {
  if (is_deferred_)
    deferred()->write(to);
  else if (byte_size_ != 0)
    std::memcpy(to, data_, byte_size_);
}

bool Tensor::aligned() const {
  if (is_deferred_) return false;
  const size_t width = bytes_of(dtype_);
  const size_t need = is_complex(dtype_) ? width / 2 : width;
  return need < 2 || reinterpret_cast<uintptr_t>(data_) % need == 0;
}

bool operator==(const Tensor& a, const Tensor& b) {
  if (a.dtype_ != b.dtype_ || !(a.dims_ == b.dims_)) return false;
  if (a.is_string()) return *a.strings_ == *b.strings_;
  return a.byte_size_ == b.byte_size_ &&
         (a.byte_size_ == 0 || std::memcmp(a.data_, b.data_, a.byte_size_) == 0);
}

std::string dims_to_string(std::span<const int64_t> dims) {
  std::string text = "[";
  for (size_t i = 0; i < dims.size(); ++i) {
    if (i != 0) text += ',';
    text += std::to_string(dims[i]);
  }
  return text + "]";
}

std::string to_string(const Tensor& tensor) {
  return std::string(name_of(tensor.dtype())) + dims_to_string(tensor.dims());
}

}  // namespace tombolo
