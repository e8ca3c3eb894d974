#pragma once

/// In front of a loop whose iterations do not depend on each other through memory, though its
/// pointers may look as if: gcc need not compare addresses before it vectorises. clang compares
/// them, and warns where its own word for this does not help.
#ifdef __clang__
#define TOMBOLO_IVDEP
#else
#define TOMBOLO_IVDEP _Pragma("GCC ivdep")
#endif
