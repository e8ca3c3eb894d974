#pragma once

// AVX-512's bf16, for files of intrinsics where the processor is x86. Functions carry their target.

#include "runtime/kernels/intrinsics.h"

#define TOMBOLO_BF16 __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16")))
