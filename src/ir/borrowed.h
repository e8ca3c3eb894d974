#pragma once

#include "ir/storage.h"

namespace tombolo {

/// The storage without a share in it, for views of constants that may become constants of the same
/// model: a storage that kept such a view would keep itself alive for ever.
inline StoragePtr borrowed(const StoragePtr& storage) { return {StoragePtr(), storage.get()}; }

}  // namespace tombolo
