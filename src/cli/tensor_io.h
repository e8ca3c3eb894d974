#pragma once

// Tensors between files and sessions: what `run` and `conformance` take and give (cli.md, `run`).

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "formats/common/npy.h"
#include "runtime/session.h"

namespace tombolo::cli {

/// `name:1x3x224x224`, `name:1,3,224,224` or `name[1,3,224,224]`.
struct NamedShape {
  std::string name;
  std::vector<int64_t> dims;
};
std::optional<NamedShape> parse_named_shape(std::string_view text);

/// How pictures become tensors: value = (pixel / 255 - mean) / std, per channel.
struct ImageOptions {
  std::vector<double> mean, std;
};

/// One tensor for `port` from .npy, .pb (TensorProto, SequenceProto, OptionalProto), .png, .jpg,
/// or .json (nested arrays).
Result<RunValue> read_value(const std::string& path, const SessionPort& port,
                            const ImageOptions& options);

/// The values of `tensors` (members of an .npz) for the session's inputs: by name, or by position
/// when the members are arr_0, arr_1, ... or `prefix`0, `prefix`1, ...; sequences as NAME.0,
/// NAME.1. Casts to the declared type where that is exact.
Result<std::vector<NamedValue>> bind_inputs(std::vector<NamedTensor> tensors,
                                            const Session& session,
                                            std::string_view prefix = "arr_");

/// A tensor of the declared type; the same values in another type when every one is exact.
Result<RunValue> fit(Tensor tensor, const SessionPort& port);

/// Random values for `port`: floats standard normal, integers 0 to 9, bools fair, strings "a".."j".
/// Unknown dimensions are 1 unless `dims` gives the shape.
Result<RunValue> random_value(const SessionPort& port, const std::vector<int64_t>* dims,
                              uint64_t seed);

/// Stacks tensors of equal type and shape along their first axis.
Result<Tensor> concatenate(const std::vector<Tensor>& tensors);

}  // namespace tombolo::cli
