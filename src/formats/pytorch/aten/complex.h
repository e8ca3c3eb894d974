#pragma once

// Arithmetic of complex tensors, which are pairs of reals along an extra last axis.

#include "formats/pytorch/aten/context.h"

namespace tombolo::pytorch {

/// A function of one complex argument, by the row's detail.
void complex_unary(AtenContext& c);
Value* complex_mul(AtenContext& c, Value* a, Value* b);
Value* complex_div(AtenContext& c, Value* a, Value* b);
Value* complex_abs(AtenContext& c, Value* a);  ///< real
Value* complex_conj(AtenContext& c, Value* a);
Value* complex_exp(AtenContext& c, Value* a);
Value* complex_log(AtenContext& c, Value* a);
/// Add, Sub, Equal between pairs whose logical ranks may differ.
Value* complex_broadcast(AtenContext& c, Text type, Value* a, Value* b);
/// self ** exponent of the call.
void complex_power(AtenContext& c, DType type);
/// A call with complex tensors of an operator whose handler knows real ones only; nothing where the
/// handler is to be called. `args` by position in the schema.
std::optional<std::vector<Arg>> lower_complex(AtenContext& c, const Operator& op,
                                              const std::vector<Arg>& args);
/// Real tensors.
Value* atan2_values(AtenContext& c, Value* y, Value* x);
/// Negative exactly where `x` has its sign bit set (so that -0 counts), positive elsewhere.
Value* sign_bit_proxy(AtenContext& c, Value* x);

}  // namespace tombolo::pytorch
