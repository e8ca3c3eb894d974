// No include guard: Highway includes a kernel file once for each target, and each time this file
// comes before its headers. The targets are those of runtime/kernels/isa.h; attributes are set by
// function (HWY_BEFORE_NAMESPACE), never by compiler flags of a file, which would leak into inline
// functions of headers.
#if defined(__x86_64__) && !defined(TOMBOLO_KERNEL_TARGETS)
#define TOMBOLO_KERNEL_TARGETS
#define HWY_DISABLE_PCLMUL_AES
#define HWY_BASELINE_TARGETS HWY_SSE4
#define HWY_DISABLED_TARGETS (~(HWY_SSE4 | HWY_AVX2 | HWY_AVX3))
#endif
