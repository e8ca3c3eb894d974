#pragma once

#include <cstdint>

namespace tombolo {

/// Channels of a block of the operators Block... of ai.tombolo: a line of the cache, whatever the
/// instruction set.
inline constexpr int64_t kChannelBlock = 16;

}  // namespace tombolo
