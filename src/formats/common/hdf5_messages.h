#pragma once

// Message types of HDF5 object headers and the decoding of those that stand alone.

#include "formats/common/hdf5_file.h"

namespace tombolo::hdf5 {

enum MessageType : uint16_t {
  kDataspace = 0x01,
  kLinkInfo = 0x02,
  kDatatype = 0x03,
  kLink = 0x06,
  kExternalFiles = 0x07,
  kLayout = 0x08,
  kFilters = 0x0B,
  kAttribute = 0x0C,
  kContinuation = 0x10,
  kSymbolTable = 0x11,
  kAttributeInfo = 0x15,
};

enum FilterId : uint16_t { kDeflate = 1, kShuffle = 2, kFletcher32 = 3 };

/// The shape; a null dataspace gives one dimension of 0.
Result<Dims> read_dataspace(ByteReader& in, size_t length_size);
/// Never fails: what cannot be read is kOther with a reason.
Hdf5Type read_datatype(ByteReader& in);

}  // namespace tombolo::hdf5
