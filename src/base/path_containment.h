#pragma once

// Files named by a model (external data) are opened only inside the model's folder. The name comes
// from an untrusted file: it must not reach anything that the model's author did not put there.

#include <string>
#include <string_view>

#include "base/mapped_file.h"
#include "base/result.h"

namespace tombolo {

/// Whether `location` is a plain relative path: not empty, not absolute, no `..` component, no NUL,
/// no backslash, no drive letter, at most 4,095 bytes. Looks at the text only.
Status check_location(std::string_view location);

enum class OpenMethod {
  kBest,           ///< openat2 where the kernel has it, else the walk
  kComponentWalk,  ///< one openat a component, none through a symbolic link
};

/// Opens the regular file `location` below `folder` ("" is the current one). Beyond
/// check_location, refuses symbolic links in any component, files with more than one hard link,
/// and what is not a regular file. `folder` itself is trusted. Errors: parse, naming the location
/// and the reason; resource if it cannot be mapped.
Result<MappedFile> open_contained(const std::string& folder, std::string_view location,
                                  OpenMethod method = OpenMethod::kBest);

}  // namespace tombolo
