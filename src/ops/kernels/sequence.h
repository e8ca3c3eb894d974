#pragma once

// Reading sequences.

#include <utility>

#include "ops/kernel_context.h"

namespace tombolo::ops {

/// Input `index`, which must be a sequence.
inline Result<const SequenceValue*> sequence_input(const KernelContext& context, size_t index) {
  if (!context.has_input(index) || context.value(index).kind() != RunValue::Kind::kSequence)
    return context.error("input " + std::to_string(index) + " must be a sequence");
  return &context.value(index).sequence();
}

/// Input `index`, which is a sequence, for the kernel to change: itself where nobody else needs it,
/// so that a loop which appends does not copy what is there each time; else a copy.
inline RunValue take_sequence(KernelContext& context, size_t index) {
  RunValue* const last = context.host.last_use(index);
  if (last == nullptr || last->own_sequence() == nullptr)
    return SequenceValue(context.value(index).sequence());
  return std::exchange(*last, RunValue());
}

/// `position` in [-count, count) made non-negative.
inline Result<size_t> sequence_position(const KernelContext& context, int64_t position,
                                        size_t count) {
  const auto length = static_cast<int64_t>(count);
  if (position < -length || position >= length)
    return context.error("position " + std::to_string(position) +
                         " is out of range for a sequence of length " + std::to_string(length));
  return static_cast<size_t>(position < 0 ? position + length : position);
}

}  // namespace tombolo::ops
