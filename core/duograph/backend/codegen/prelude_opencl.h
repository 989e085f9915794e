/* OpenCL C 1.2: types, and the few things that the languages of the C family spell differently. */

#pragma OPENCL FP_CONTRACT OFF
/* Build options with which a device does without a feature that it has: see features.py of the OpenCL backend. */
#ifdef DG_WITHOUT_FP64
#undef cl_khr_fp64
#undef __opencl_c_fp64
#define double no_float64_on_this_device
#endif
#ifdef DG_WITHOUT_FMA
#undef __FMA__
#undef FP_FAST_FMAF
#undef FP_FAST_FMA
#endif
typedef char i8;
typedef short i16;
typedef int i32;
typedef long i64;
typedef uchar u8;
typedef ushort u16;
typedef uint u32;
typedef ulong u64;
typedef u8 b8; /* bool: 0 or 1 */
typedef u16 f16, bf16; /* as stored; computed in f32 */
typedef float f32;
#if defined(cl_khr_fp64) || defined(__opencl_c_fp64)
typedef double f64;
#endif

#define DG_FN static inline __attribute__((always_inline))
#define DG_KERNEL __kernel
#define DG_GLOBAL __global
#define DG_SHARED __local
#define DG_RESTRICT restrict
/* Along axis d of the grid: ids of the work item, of the item within its group (PLACE), and of the group; their numbers. */
#define DG_ITEM(d) ((i64)get_global_id(d))
#define DG_ITEMS(d) ((i64)get_global_size(d))
#define DG_PLACE(d) ((i32)get_local_id(d))
#define DG_GROUP(d) ((i64)get_group_id(d))
#define DG_GROUPS(d) ((i64)get_num_groups(d))
#define DG_BARRIER() barrier(CLK_LOCAL_MEM_FENCE)

/* A pack: adjacent elements that are loaded or stored at once. DG_UNROLL: the next loop must be unrolled. */
#define DG_PACK(T, N) dg_pack_##T##_##N
#define DG_PACK_OF(T, N)                                                                                     \
    typedef struct { T v[N]; } __attribute__((aligned(sizeof(T) * N < 16 ? sizeof(T) * N : 16))) DG_PACK(T, N);
#define DG_PACKS(T)                                                                                          \
    DG_PACK_OF(T, 1) DG_PACK_OF(T, 2) DG_PACK_OF(T, 4) DG_PACK_OF(T, 8) DG_PACK_OF(T, 16)
DG_PACKS(i8) DG_PACKS(i16) DG_PACKS(i32) DG_PACKS(i64) DG_PACKS(u8) DG_PACKS(u16) DG_PACKS(u32) DG_PACKS(u64)
DG_PACKS(b8) DG_PACKS(f16) DG_PACKS(bf16) DG_PACKS(f32)
#if defined(cl_khr_fp64) || defined(__opencl_c_fp64)
DG_PACKS(f64)
#endif
#define DG_UNROLL _Pragma("unroll")

#if defined(__clang__) && !defined(DG_WITHOUT_PRAGMAS)
/* DG_INDEPENDENT: the iterations of the next loop are independent. DG_ANY_ORDER: it sums, in any order. */
#define DG_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
/* The same for loops of fused regions; with 32 elements per iteration they were 1.7 times as fast as by LLVM's choice. */
#define DG_REGION_LOOP                                                                                       \
    _Pragma("clang loop vectorize(assume_safety) vectorize_width(16) interleave_count(2)")
#define DG_ANY_ORDER _Pragma("clang loop vectorize(enable)")
#else
#define DG_INDEPENDENT
#define DG_REGION_LOOP
#define DG_ANY_ORDER
#endif
/* clang 11 and older refuse this pragma, and vendors' compilers are built on those */
#if defined(__clang__) && __clang_major__ >= 12 && !defined(DG_WITHOUT_PRAGMAS)
#define DG_ADD_TO(sum, x) { _Pragma("clang fp reassociate(on)") sum += x; }
#else
#define DG_ADD_TO(sum, x) sum += x;
#endif

DG_FN u32 dg_bits_f32(f32 x) { return as_uint(x); }
DG_FN f32 dg_from_bits_f32(u32 x) { return as_float(x); }
/* a * b + c, rounded once where that is fast. Devices that do not define FP_FAST_FMAF may have the instruction all the
 * same (PoCL), or one that multiplies and adds: DG_FUSE lets the compiler take it. */
#ifdef DG_WITHOUT_FMA
#define DG_FUSE
#elif defined(__clang__) && !defined(DG_WITHOUT_PRAGMAS)
#define DG_FUSE _Pragma("clang fp contract(on)")
#else
#define DG_FUSE _Pragma("OPENCL FP_CONTRACT ON")
#endif
#ifdef FP_FAST_FMAF
#define DG_FMA_F32(a, b, c) fma(a, b, c)
#else
#define DG_FMA_F32(a, b, c) a * b + c
#endif
#ifdef FP_FAST_FMA
#define DG_FMA_F64(a, b, c) fma(a, b, c)
#else
#define DG_FMA_F64(a, b, c) a * b + c
#endif
/* a * b - p for the rounded product p; by() computes it without the instruction */
#ifdef FP_FAST_FMAF
#define DG_PRODUCT_ERROR(a, b, p, by) fma(a, b, -(p))
#else
#define DG_PRODUCT_ERROR(a, b, p, by) by(a, b, p)
#endif
DG_FN f32 dg_fma_f32(f32 a, f32 b, f32 c) { DG_FUSE return DG_FMA_F32(a, b, c); }
#if defined(cl_khr_fp64) || defined(__opencl_c_fp64)
DG_FN u64 dg_bits_f64(f64 x) { return as_ulong(x); }
DG_FN f64 dg_from_bits_f64(u64 x) { return as_double(x); }
DG_FN f64 dg_fma_f64(f64 a, f64 b, f64 c) { DG_FUSE return DG_FMA_F64(a, b, c); }
#endif

/* Vectors of sixteen elements, for matrix products on processors. They are loaded through a type that is aligned as its
 * elements, not by vload16: PoCL 3.0 builds its library of functions for other vector registers than the kernel where it
 * does not know the processor, so that half of a vector of 512 bits that passes between the two is lost. */
#define DG_SIXTEEN(T, V, FMA)                                                                                \
    typedef V T##x16;                                                                                        \
    typedef V dg_loose_##T##x16 __attribute__((aligned(sizeof(T))));                                         \
    DG_FN V dg_load_##T##x16(const __global T *p) { return *(const __global dg_loose_##T##x16 *)p; }         \
    DG_FN V dg_fma_##T##x16(V a, V b, V c) { DG_FUSE return FMA(a, b, c); }
#define DG_MAD(a, b, c) a * b + c
DG_SIXTEEN(f32, float16, DG_FMA_F32)
DG_SIXTEEN(u32, uint16, DG_MAD)
DG_SIXTEEN(u64, ulong16, DG_MAD)
#if defined(cl_khr_fp64) || defined(__opencl_c_fp64)
DG_SIXTEEN(f64, double16, DG_FMA_F64)
#endif

#define DG_TO_BF16(x, by) by(x)
#ifdef DG_WITH_FP16 /* the device converts float16 by an instruction */
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
#define DG_TO_F16(x, by) as_ushort((half)(x))
#define DG_FROM_F16(x, by) (f32)as_half((ushort)(x))
#else
#define DG_TO_F16(x, by) by(x)
#define DG_FROM_F16(x, by) by(x)
#endif

#define DG_SQRT_F32 sqrt
#define DG_SQRT_F64 sqrt
/* the built-in function of that name, for float32 (rounding, fmod) and for float64 */
#define DG_LIBM_F32(name) name
#define DG_LIBM_F64(name) name

/* ---- atomic operations on 32-bit integers ---------------------------------------------------- */

DG_FN void dg_atomic_add_i32(volatile __global i32 *p, i32 x) { atomic_add(p, x); }
DG_FN void dg_atomic_add_u32(volatile __global u32 *p, u32 x) { atomic_add(p, x); }
DG_FN void dg_atomic_max_i32(volatile __global i32 *p, i32 x) { atomic_max(p, x); }
/* replaces 0 by x; returns whether it did, which happens for one work item only */
DG_FN i32 dg_atomic_claim_i32(volatile __global i32 *p, i32 x) { return atomic_cmpxchg(p, 0, x) == 0; }

/* ---- subgroups -------------------------------------------------------------------------------- */

/* The number of work items in the subgroup, the item's place in it, and the subgroup's in the group; their number; and
 * x of the item whose place differs in the given bits. */
#ifdef DG_WITH_SUBGROUPS
#ifdef cl_khr_subgroups
#pragma OPENCL EXTENSION cl_khr_subgroups : enable
#endif
#if DG_WITH_SUBGROUPS == 1
#pragma OPENCL EXTENSION cl_khr_subgroup_shuffle : enable
#define DG_SUBGROUP_SHUFFLE(x, bits) sub_group_shuffle_xor(x, (uint)(bits))
#else
#pragma OPENCL EXTENSION cl_intel_subgroups : enable
#define DG_SUBGROUP_SHUFFLE(x, bits) intel_sub_group_shuffle_xor(x, (uint)(bits))
#endif
#define DG_SUBGROUP_SIZE() ((i32)get_sub_group_size())
#define DG_SUBGROUP_PLACE() ((i32)get_sub_group_local_id())
#define DG_SUBGROUP() ((i32)get_sub_group_id())
#define DG_SUBGROUPS() ((i32)get_num_sub_groups())
#endif
