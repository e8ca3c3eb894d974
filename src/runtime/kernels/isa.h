#pragma once

// Which instruction set the fast kernels use. Every kernel is compiled once for each (targets.h);
// the environment variable TOMBOLO_ISA=scalar|sse4|avx2|avx512|neon takes a lesser one than the
// processor offers, for tests and comparisons. `-base` behind a name leaves out the dot products
// and tiles that some processors of that level have, `-dot` the tiles alone.

#include <cstdint>
#include <string_view>

namespace tombolo {

/// In the order in which one is better than another. kScalar: no fast kernel, the reference alone.
enum class Isa : uint8_t { kScalar, kNeon, kSse4, kAvx2, kAvx512 };

/// Chosen once. A name in TOMBOLO_ISA that this processor cannot run gives the best that it can.
Isa active_isa();
/// For tests: what active_isa() gives from now on, limited to what the processor can run. Kernels
/// whose state was prepared before must not run after: layouts depend on the instruction set.
void set_isa(Isa isa);
Isa best_isa();
std::string_view name_of(Isa isa);

/// Instructions beyond the level, which some integer and bf16 kernels use. False below kAvx512.
bool has_vnni();
bool has_bf16_dot();
/// Whether products of float16 are faster than those of bf16: Intel's dot products of bf16 take
/// twice as long as products of float32 for as many numbers, those of float16 half as long. Not
/// where AMX is.
bool has_f16_products();
/// 256-bit VNNI on a machine without AVX-512, or held to AVX2.
bool has_avx_vnni();
/// Arm's dot products of signed bytes.
bool has_arm_dot();
/// AMX: products of tiles of 16 rows. Asks the operating system for the registers the first time.
bool has_amx_int8();
bool has_amx_bf16();

/// Whether weights that are taken apart on their way from memory are best read as one stream that
/// is asked for far ahead. Such work leaves a processor few loads in flight. AMD's (measured: Zen
/// 5) get 40 GB/s a core of one stream and 30 of two, Intel's more of several.
bool reads_one_stream();
/// For tests.
void set_reads_one_stream(bool one);

/// Whether to divide 16 lanes takes less than to correct a guess at the reciprocal: Zen 5 takes 2.5
/// cycles (measured), Intel's 16.
bool divides_fast();
/// For tests.
void set_divides_fast(bool fast);

/// For tests: what the functions above may say at most.
enum class Extras : uint8_t { kNone, kDot, kTiles };
void limit_extras(Extras extras);

/// Floats in a vector of the active instruction set.
int vector_floats();

}  // namespace tombolo
