#pragma once

// Tensor: a dense array in memory, in the byte layout of TensorProto.raw_data (little-endian, row
// major; 4- and 2-bit elements packed low bits first, float6 four values in three bytes).
// Cheap to copy: copies share the buffer. A buffer that is shared must not be written.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/dtype.h"
#include "base/result.h"
#include "ir/inline_vector.h"

namespace tombolo {

using Dims = InlineVector<int64_t, 6>;

/// Number of elements; 1 for rank 0. nullopt-like -1 when a dimension is negative or the product
/// overflows.
int64_t element_count(std::span<const int64_t> dims);

/// Elements that are computed from what lies elsewhere whenever somebody asks for them: a weight
/// that is read once, when it is packed, needs no memory of its own until then.
class Deferred {
 public:
  virtual ~Deferred();
  /// Writes all elements.
  virtual void write(std::byte* to) const = 0;
  /// What write() reads, and its type; it may come from the model's file again.
  virtual std::span<const std::byte> source() const = 0;
  virtual DType source_dtype() const = 0;
};

class Tensor {
 public:
  Tensor() = default;
  // Not inline: their code would stand at every use.
  Tensor(const Tensor& other);
  Tensor(Tensor&& other) noexcept;
  Tensor& operator=(const Tensor& other);
  Tensor& operator=(Tensor&& other) noexcept;
  ~Tensor();

  /// A new buffer, uninitialised (strings are empty). Fails with a resource error, never an abort,
  /// when the size overflows or the allocation is refused.
  /// What is to last, such as packed weights, gets no block that is far larger.
  static Result<Tensor> allocate(DType dtype, std::span<const int64_t> dims, bool lasting = false);
  /// A view of bytes that `owner` keeps alive. `bytes` must be exactly the packed size.
  static Tensor view(DType dtype, std::span<const int64_t> dims, std::span<const std::byte> bytes,
                     std::shared_ptr<const void> owner);
  static Tensor of_strings(std::span<const int64_t> dims, std::vector<std::string> strings);
  /// Has no data to read, and so is not aligned(); its clone() has.
  static Tensor of_deferred(DType dtype, std::span<const int64_t> dims,
                            std::shared_ptr<const Deferred> elements);

  /// Small tensors from values; for tests, passes and importers. Aborts never: sizes are trusted.
  template <typename T>
  static Tensor of(DType dtype, std::span<const int64_t> dims, std::span<const T> values);
  static Tensor int64s(std::span<const int64_t> values);  ///< rank 1
  static Tensor scalar_int64(int64_t value);              ///< rank 0
  static Tensor scalar_float(float value);                ///< rank 0

  DType dtype() const { return dtype_; }
  const Dims& dims() const { return dims_; }
  size_t rank() const { return dims_.size(); }
  int64_t dim(size_t axis) const { return dims_[axis]; }
  int64_t size() const { return count_; }  ///< number of elements
  bool is_string() const { return dtype_ == DType::kString; }

  std::span<const std::byte> bytes() const { return {data_, byte_size_}; }
  std::span<std::byte> mutable_bytes() { return {data_, byte_size_}; }
  template <typename T>
  const T* data() const {
    return reinterpret_cast<const T*>(data_);
  }
  template <typename T>
  T* data() {
    return reinterpret_cast<T*>(data_);
  }
  template <typename T>
  std::span<const T> span() const {
    return {data<T>(), static_cast<size_t>(count_)};
  }
  template <typename T>
  std::span<T> span() {
    return {data<T>(), static_cast<size_t>(count_)};
  }
  const std::vector<std::string>& strings() const { return *strings_; }
  std::vector<std::string>& strings() { return *strings_; }

  /// The same elements under another shape of equal count; shares the buffer.
  Tensor reshaped(std::span<const int64_t> dims) const;
  /// Elements from `begin` on under the shape `dims`; shares the buffer, but for strings. Elements
  /// of whole bytes only.
  Tensor part(int64_t begin, std::span<const int64_t> dims) const;
  /// The same bytes under another element type of equal width; shares the buffer.
  Tensor reinterpreted(DType dtype) const;
  /// A private, aligned copy.
  Result<Tensor> clone() const;
  /// True when no other Tensor shares the buffer, so that it may be written in place.
  bool unique() const { return owner_.use_count() == 1 && writable_; }
  /// True when data() is aligned for its element type (views into a file may not be).
  bool aligned() const;
  /// How the elements are made; null where data() has them.
  const Deferred* deferred() const {
    return is_deferred_ ? static_cast<const Deferred*>(owner_.get()) : nullptr;
  }
  /// Writes the elements to bytes().size() bytes, makes them if need be. Not of strings.
  void write_to(std::byte* to) const;
  /// What the elements are read or made from, to let go of it. Two deferred tensors may share it.
  std::span<const std::byte> source() const {
    return is_deferred_ ? deferred()->source() : bytes();
  }
  /// The same address for copies of one tensor only, as long as one of them lives.
  const void* identity() const { return is_deferred_ ? owner_.get() : data_; }

  /// Element `index` (in row-major order) of any numeric type, converted. Slow: for reference
  /// kernels on rare types, shapes, indices and tests. Sub-byte types are unpacked.
  double get_double(int64_t index) const;
  int64_t get_int64(int64_t index) const;
  /// Rounds to nearest even, saturates floats as Cast; a complex number's imaginary part is 0.
  void set_double(int64_t index, double value);
  void set_int64(int64_t index, int64_t value);  ///< wraps

  /// Same dtype, shape and bytes (strings: same text). NaNs compare by bits.
  friend bool operator==(const Tensor& a, const Tensor& b);

 private:
  DType dtype_ = DType::kUndefined;
  bool writable_ = false;
  bool is_deferred_ = false;  ///< the owner is a Deferred
  Dims dims_;
  int64_t count_ = 0;
  std::byte* data_ = nullptr;
  size_t byte_size_ = 0;
  std::shared_ptr<const void> owner_;
  std::shared_ptr<std::vector<std::string>> strings_;
};

template <typename T>
Tensor Tensor::of(DType dtype, std::span<const int64_t> dims, std::span<const T> values) {
  auto owner = std::make_shared<std::vector<T>>(values.begin(), values.end());
  return view(dtype, dims, std::as_bytes(std::span<const T>(*owner)), owner);
}

/// Bytes that Tensor::allocate has given out and that are still alive, in the whole process.
uint64_t live_tensor_bytes();

/// "float[2,3]" for messages.
std::string to_string(const Tensor& tensor);
std::string dims_to_string(std::span<const int64_t> dims);

}  // namespace tombolo
