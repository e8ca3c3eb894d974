#pragma once

// What a node costs by its meaning, whatever its kernel: floating-point (or integer) operations.

#include <cstdint>
#include <span>

#include "ir/run_value.h"

namespace tombolo {

class Node;

/// Operations of one execution, a multiply-add counted as two; 0 for operators that only move data.
uint64_t operation_count(const Node& node, std::span<const RunValue* const> inputs,
                         std::span<const RunValue* const> outputs);

}  // namespace tombolo
