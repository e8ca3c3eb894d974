// No include guard: Highway includes a kernel file once for each target, and each time this file
// comes before its headers. The targets are those of runtime/kernels/isa.h; attributes are set by
// function (HWY_BEFORE_NAMESPACE), never by compiler flags of a file, which would leak into inline
// functions of headers.
#ifndef TOMBOLO_KERNEL_TARGETS
#define TOMBOLO_KERNEL_TARGETS
#if defined(__x86_64__)
#define HWY_DISABLE_PCLMUL_AES
#define HWY_BASELINE_TARGETS HWY_SSE4
#define HWY_DISABLED_TARGETS (~(HWY_SSE4 | HWY_AVX2 | HWY_AVX3))
#elif defined(__aarch64__)
#define HWY_BASELINE_TARGETS HWY_NEON
#define HWY_DISABLED_TARGETS (~HWY_NEON)
#endif
#endif
