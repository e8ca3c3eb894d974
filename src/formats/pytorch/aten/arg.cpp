#include "formats/pytorch/aten/arg.h"

namespace tombolo::pytorch {

bool& read_beyond_end() {
  thread_local bool seen = false;
  return seen;
}

Arg::Arg(const Arg& other) = default;
Arg::Arg(Arg&& other) noexcept = default;
Arg& Arg::operator=(const Arg& other) = default;
Arg& Arg::operator=(Arg&& other) noexcept = default;
Arg::~Arg() = default;

Cell::Cell() = default;
Cell::Cell(const Cell& other) = default;
Cell::Cell(Cell&& other) noexcept = default;
Cell& Cell::operator=(const Cell& other) = default;
Cell& Cell::operator=(Cell&& other) noexcept = default;
Cell::~Cell() = default;

Arg Arg::complex(double re, double im) {
  Arg arg;
  arg.kind = Kind::kComplex;
  arg.real = re;
  arg.imaginary = im;
  return arg;
}

Arg Arg::ints(const std::vector<int64_t>& numbers) {
  std::vector<Arg> items(numbers.begin(), numbers.end());
  return Arg(std::move(items));
}

Arg Arg::ints(const std::vector<SymInt>& numbers) {
  std::vector<Arg> items(numbers.begin(), numbers.end());
  return Arg(std::move(items));
}

std::optional<DType> dtype_from_c10(int64_t number) {
  switch (number) {
    case 0:
      return DType::kUInt8;
    case 1:
      return DType::kInt8;
    case 2:
      return DType::kInt16;
    case 3:
      return DType::kInt32;
    case 4:
      return DType::kInt64;
    case 5:
      return DType::kFloat16;
    case 6:
      return DType::kFloat32;
    case 7:
      return DType::kFloat64;
    case 9:
      return DType::kComplex64;
    case 10:
      return DType::kComplex128;
    case 11:
      return DType::kBool;
    case 15:
      return DType::kBFloat16;
    case 23:
      return DType::kFloat8E5M2;
    case 24:
      return DType::kFloat8E4M3FN;
    case 25:
      return DType::kFloat8E5M2FNUZ;
    case 26:
      return DType::kFloat8E4M3FNUZ;
    case 27:
      return DType::kUInt16;
    case 28:
      return DType::kUInt32;
    case 29:
      return DType::kUInt64;
    case 44:
      return DType::kFloat8E8M0;
    default:
      return std::nullopt;
  }
}

std::optional<DType> dtype_from_export(int64_t number) {
  switch (number) {
    case 1:
      return DType::kUInt8;
    case 2:
      return DType::kInt8;
    case 3:
      return DType::kInt16;
    case 4:
      return DType::kInt32;
    case 5:
      return DType::kInt64;
    case 6:
      return DType::kFloat16;
    case 7:
      return DType::kFloat32;
    case 8:
      return DType::kFloat64;
    case 10:
      return DType::kComplex64;
    case 11:
      return DType::kComplex128;
    case 12:
      return DType::kBool;
    case 13:
      return DType::kBFloat16;
    case 28:
      return DType::kUInt16;
    case 29:
      return DType::kFloat8E4M3FN;
    case 30:
      return DType::kFloat8E5M2;
    default:
      return std::nullopt;
  }
}

std::string torch_name(DType dtype) { return std::string(numpy_name_of(dtype)); }

}  // namespace tombolo::pytorch
