#pragma once

// NumPy's .npy and .npz. Format: numpy.lib.format, versions 1 to 3; an .npz is a zip of .npy
// members.
//
// Element types that NumPy lacks travel as raw unsigned integers of their width, 6-, 4- and 2-bit
// values one element to a uint8; the member `__dtypes__.json` of an .npz says which (cli.md,
// `run`).

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/mapped_file.h"
#include "base/output_file.h"
#include "base/result.h"
#include "ir/run_value.h"

namespace tombolo {

/// One array from the bytes of a .npy file. Whole-byte arrays in C order are views of `owner`.
/// Fortran order is transposed, big-endian swapped, fixed-width text becomes strings. Object arrays
/// (pickles) are refused.
Result<Tensor> read_npy(std::string_view bytes, std::shared_ptr<const void> owner);

/// What describes an array's bytes: numpy's descr ("<f4"), order and shape.
struct NumpyArray {
  std::string descr;
  bool fortran = false;
  std::vector<int64_t> shape;
};
/// As read_npy, for bytes that stand without a header of their own.
Result<Tensor> read_numpy_array(const NumpyArray& array, std::string_view data,
                                std::shared_ptr<const void> owner);

/// Members of an .npz in file order, without ".npy". Members that `__dtypes__.json` names come back
/// in that type (packed); the member itself is not listed.
Result<std::vector<NamedTensor>> read_npz(const MappedFile& file);

/// Turns an array of raw unsigned integers (as read_npy gave it) into `dtype` where NumPy lacks the
/// type; other tensors come back as they are.
Result<Tensor> from_numpy_carrier(Tensor tensor, DType dtype);

/// The bytes of a .npy header for the tensor, padded to 64 bytes.
std::string npy_header(const Tensor& tensor);

/// Writes an .npz of stored members, with `__dtypes__.json` when a type needs it.
Status write_npz(const std::vector<NamedTensor>& tensors, OutputFile& out);
Status write_npy(const Tensor& tensor, OutputFile& out);

}  // namespace tombolo
