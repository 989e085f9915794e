/* Multi-versioning: compiles one source for several instruction sets and selects a version when it first runs.
 *
 *     // kernels.inc: functions named ISA(name)
 *     // kernels.c:
 *     #define ISA_SOURCE "kernels.inc"
 *     #include "isa.h"
 *     ... ISA_PICK(name) ...          // the best version for this processor
 *
 * The baseline is the compiler's default target; x86-64 adds AVX2 (with FMA and F16C) and AVX-512 (F, DQ, BW, VL). */
#include "common.h"

#define ISA_JOIN_(name, suffix) name##_##suffix
#define ISA_JOIN(name, suffix) ISA_JOIN_(name, suffix)
#define ISA(name) ISA_JOIN(name, ISA_SUFFIX)

#define ISA_SUFFIX base
#define ISA_LEVEL 0
#include ISA_SOURCE
#undef ISA_SUFFIX
#undef ISA_LEVEL

#if (defined(__x86_64__) || defined(__i386__)) && !defined(DG_NO_ISA)
#define DG_X86 1

#ifdef __clang__
#pragma clang attribute push(__attribute__((target("avx2,fma,f16c"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,fma,f16c")
#endif
#define ISA_SUFFIX avx2
#define ISA_LEVEL 1
#include ISA_SOURCE
#undef ISA_SUFFIX
#undef ISA_LEVEL
#ifdef __clang__
#pragma clang attribute pop
#pragma clang attribute push(__attribute__((target("avx512f,avx512dq,avx512bw,avx512vl,avx2,fma,f16c"))), apply_to = function)
#else
#pragma GCC pop_options
#pragma GCC push_options
#pragma GCC target("avx512f,avx512dq,avx512bw,avx512vl,avx2,fma,f16c,prefer-vector-width=512")
#endif
#define ISA_SUFFIX avx512
#define ISA_LEVEL 2
#include ISA_SOURCE
#undef ISA_SUFFIX
#undef ISA_LEVEL
#ifdef __clang__
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#define ISA_PICK(name) (dg_isa() == 2 ? name##_avx512 : dg_isa() == 1 ? name##_avx2 : name##_base)
#else
#define ISA_PICK(name) (name##_base)
#endif
