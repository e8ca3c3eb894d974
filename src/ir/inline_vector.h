#pragma once

// A vector that holds its first N elements in place. A model of a million nodes has three
// small lists a node; this saves their heap blocks. Elements must be trivially copyable.

#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <span>
#include <type_traits>

namespace tombolo {

template <typename T, uint32_t N>
class InlineVector {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  InlineVector() = default;
  InlineVector(std::initializer_list<T> values) { assign({values.begin(), values.size()}); }
  explicit InlineVector(std::span<const T> values) { assign(values); }
  InlineVector(const InlineVector& other) { assign(other.span()); }
  InlineVector(InlineVector&& other) noexcept { take(other); }
  InlineVector& operator=(const InlineVector& other) {
    if (this != &other) assign(other.span());
    return *this;
  }
  InlineVector& operator=(InlineVector&& other) noexcept {
    if (this != &other) {
      release();
      take(other);
    }
    return *this;
  }
  ~InlineVector() { release(); }

  uint32_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T* data() { return is_inline() ? reinterpret_cast<T*>(inline_) : heap_; }
  const T* data() const { return is_inline() ? reinterpret_cast<const T*>(inline_) : heap_; }
  T* begin() { return data(); }
  T* end() { return data() + size_; }
  const T* begin() const { return data(); }
  const T* end() const { return data() + size_; }
  T& operator[](size_t index) { return data()[index]; }
  const T& operator[](size_t index) const { return data()[index]; }
  T& back() { return data()[size_ - 1]; }
  const T& back() const { return data()[size_ - 1]; }
  std::span<T> span() { return {data(), size_}; }
  std::span<const T> span() const { return {data(), size_}; }
  operator std::span<const T>() const { return span(); }

  void reserve(uint32_t capacity) {
    if (capacity <= capacity_) return;
    T* block = static_cast<T*>(::operator new(sizeof(T) * capacity));
    if (size_ != 0) std::memcpy(static_cast<void*>(block), data(), sizeof(T) * size_);
    if (!is_inline()) ::operator delete(heap_);
    heap_ = block;
    capacity_ = capacity;
  }
  void push_back(T value) {
    if (size_ == capacity_) reserve(capacity_ == 0 ? 2 : capacity_ * 2);
    data()[size_++] = value;
  }
  void resize(uint32_t size, T fill = T{}) {
    if (size > capacity_) reserve(size);
    for (uint32_t i = size_; i < size; ++i) data()[i] = fill;
    size_ = size;
  }
  void insert(uint32_t index, T value) {
    push_back(value);
    for (uint32_t i = size_ - 1; i > index; --i) data()[i] = data()[i - 1];
    data()[index] = value;
  }
  void erase(uint32_t index) {
    for (uint32_t i = index; i + 1 < size_; ++i) data()[i] = data()[i + 1];
    --size_;
  }
  void pop_back() { --size_; }
  void clear() { size_ = 0; }
  void assign(std::span<const T> values) {
    size_ = 0;
    reserve(static_cast<uint32_t>(values.size()));
    if (!values.empty())
      std::memcpy(static_cast<void*>(data()), values.data(), values.size_bytes());
    size_ = static_cast<uint32_t>(values.size());
  }

  friend bool operator==(const InlineVector& a, const InlineVector& b) {
    if (a.size_ != b.size_) return false;
    for (uint32_t i = 0; i < a.size_; ++i)
      if (!(a[i] == b[i])) return false;
    return true;
  }

 private:
  bool is_inline() const { return capacity_ == N; }
  void release() {
    if (!is_inline()) ::operator delete(heap_);
  }
  void take(InlineVector& other) {
    size_ = other.size_;
    capacity_ = other.capacity_;
    if (other.is_inline())
      std::memcpy(inline_, other.inline_, sizeof inline_);
    else
      heap_ = other.heap_;
    other.size_ = 0;
    other.capacity_ = N;
  }

  uint32_t size_ = 0;
  uint32_t capacity_ = N;  // equal to N exactly while the elements are in place
  union {
    T* heap_;
    alignas(T) std::byte inline_[N == 0 ? 1 : sizeof(T) * N];
  };
};

}  // namespace tombolo
