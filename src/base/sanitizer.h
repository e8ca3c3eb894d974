#pragma once

namespace tombolo {

// gcc and clang say in two ways what a build is made with.
#if defined(__has_feature)
#define TOMBOLO_HAS_FEATURE(name) __has_feature(name)
#else
#define TOMBOLO_HAS_FEATURE(name) 0
#endif

/// Whether the build finds wrong uses of memory itself.
#if defined(__SANITIZE_ADDRESS__) || TOMBOLO_HAS_FEATURE(address_sanitizer)
inline constexpr bool kAddressSanitizer = true;
#else
inline constexpr bool kAddressSanitizer = false;
#endif

/// Whether it finds races.
#if defined(__SANITIZE_THREAD__) || TOMBOLO_HAS_FEATURE(thread_sanitizer)
inline constexpr bool kThreadSanitizer = true;
#else
inline constexpr bool kThreadSanitizer = false;
#endif

#undef TOMBOLO_HAS_FEATURE

}  // namespace tombolo
