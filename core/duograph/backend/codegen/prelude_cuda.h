/* CUDA C++: types, and the few things that the languages of the C family spell differently. No #include. */

typedef signed char i8;
typedef short i16;
typedef int i32;
typedef long long i64;
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef u8 b8; /* bool: 0 or 1 */
typedef u16 f16, bf16; /* as stored; computed in f32 */
typedef float f32;
typedef double f64;

#define DG_FN static __device__ __forceinline__
#ifndef DG_KERNEL /* defined by tools that put many kernels into one translation unit, without C linkage */
#define DG_KERNEL extern "C" __global__
#endif
#define DG_GLOBAL
#define DG_SHARED __shared__
#define DG_RESTRICT __restrict__
/* Along axis d of the grid: ids of the work item, of the item within its group (PLACE), and of the group; their numbers. */
#define DG_AXIS_0 x
#define DG_AXIS_1 y
#define DG_AXIS_2 z
#define DG_OF(what, axis) what.axis
#define DG_ALONG(what, axis) DG_OF(what, axis)
#define DG_PLACE(d) ((i32)DG_ALONG(threadIdx, DG_AXIS_##d))
#define DG_GROUP(d) ((i64)DG_ALONG(blockIdx, DG_AXIS_##d))
#define DG_GROUPS(d) ((i64)DG_ALONG(gridDim, DG_AXIS_##d))
#define DG_ITEM(d) (DG_GROUP(d) * DG_ALONG(blockDim, DG_AXIS_##d) + DG_PLACE(d))
#define DG_ITEMS(d) (DG_GROUPS(d) * DG_ALONG(blockDim, DG_AXIS_##d))
#ifndef DG_DYNAMIC_SHARED /* shared memory whose size is an argument of the launch */
#define DG_DYNAMIC_SHARED(T, name)                                                                           \
    extern __shared__ __align__(128) unsigned char dg_dynamic_shared[];                                      \
    T *const name = (T *)dg_dynamic_shared
#endif
#define DG_METHOD __device__ __forceinline__ /* qualifiers of a struct's member function */
#define DG_BARRIER() __syncthreads()
/* the value x of the thread whose number in the warp differs in these bits; of the first thread of each `lanes` threads;
 * all threads call them */
#define DG_SHUFFLE(x, bits) __shfl_xor_sync(0xffffffffu, x, bits)
#define DG_OF_FIRST(x, lanes) __shfl_sync(0xffffffffu, x, 0, lanes)

/* A pack: adjacent elements that are loaded or stored at once. DG_UNROLL: the next loop must be unrolled. */
template <class T, int N> struct __align__(sizeof(T) * N < 16 ? sizeof(T) * N : 16) dg_pack { T v[N]; };
#define DG_PACK(T, N) dg_pack<T, N>
#define DG_UNROLL _Pragma("unroll")

#define DG_INDEPENDENT
#define DG_ANY_ORDER
#define DG_ADD_TO(sum, x) sum += x;

DG_FN u32 dg_bits_f32(f32 x) { return __float_as_uint(x); }
DG_FN f32 dg_from_bits_f32(u32 x) { return __uint_as_float(x); }
DG_FN u64 dg_bits_f64(f64 x) { return (u64)__double_as_longlong(x); }
DG_FN f64 dg_from_bits_f64(u64 x) { return __longlong_as_double((i64)x); }
DG_FN f32 dg_fma_f32(f32 a, f32 b, f32 c) { return __fmaf_rn(a, b, c); }
DG_FN f64 dg_fma_f64(f64 a, f64 b, f64 c) { return __fma_rn(a, b, c); }

/* conversions of 16-bit floats: NaN becomes one that may differ in its bits from other devices' */
#if defined(DG_EMULATED) || __CUDA_ARCH__ < 800
#define DG_TO_BF16(x, by) by(x)
#define DG_TO_F16(x, by) by(x)
#define DG_FROM_F16(x, by) by(x)
#else
/* instructions for two numbers, which are four times as fast as those for one */
DG_FN u16 dg_cvt_bf16(f32 x) {
    u32 r;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(0.0f), "f"(x));
    return (u16)r;
}
DG_FN u16 dg_cvt_f16(f32 x) {
    u32 r;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(0.0f), "f"(x));
    return (u16)r;
}
DG_FN f32 dg_cvt_f32(u16 x) {
    f32 r;
    asm("cvt.f32.f16 %0, %1;" : "=f"(r) : "h"(x));
    return r;
}
#define DG_TO_BF16(x, by) dg_cvt_bf16(x)
#define DG_TO_F16(x, by) dg_cvt_f16(x)
#define DG_FROM_F16(x, by) dg_cvt_f32(x)
#endif

/* ---- functions whose results are rounded to 16 bits: relative errors below 2^-17 ----------------------- */

/* By approximate instructions, with errors of 2^-22 at most (PTX ISA, "Floating Point Instructions"). */
#ifdef DG_EMULATED /* errors of -1 to 2 units in the last place, as a device may have */
DG_FN f32 dg_off_f32(f32 y) {
    const u32 bits = __float_as_uint(y), size = bits & 0x7fffffffu;
    if (size < 0x00800000u || size >= 0x7f7ffff0u) return y;
    return __uint_as_float(bits - 1u + ((bits * 2654435761u) >> 30));
}
DG_FN f32 dg_power_near_f32(f32 x) { return dg_off_f32(exp2f(x)); }
DG_FN f32 dg_reciprocal_near_f32(f32 x) { return dg_off_f32(1.0f / x); }
DG_FN f32 dg_divide_narrow_f32(f32 x, f32 y) { return dg_off_f32(x / y); }
#else
DG_FN f32 dg_power_near_f32(f32 x) {
    f32 r;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
    return r;
}
DG_FN f32 dg_reciprocal_near_f32(f32 x) {
    f32 r;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
    return r;
}
DG_FN f32 dg_divide_narrow_f32(f32 x, f32 y) {
    f32 r;
    asm("div.full.f32 %0, %1, %2;" : "=f"(r) : "f"(x), "f"(y));
    return r;
}
#endif

/* The square of 2^(x/2 log2(e)): so subnormal results need no code of their own. The product x log2(e), of 127 at most, is
 * rounded to 24 bits, hence the bound on the error. */
DG_FN f32 dg_exp_narrow_f32(f32 x) {
    const f32 root = dg_power_near_f32(x * 0.72134752f);
    return root * root;
}
/* 1 - 2 / (1 + e^2a) for a = |x|; a polynomial where that would cancel */
DG_FN f32 dg_tanh_narrow_f32(f32 x) {
    const f32 a = __uint_as_float(__float_as_uint(x) & 0x7fffffffu), z = a * a;
    const f32 far = __fmaf_rn(-2.0f, dg_reciprocal_near_f32(1.0f + dg_power_near_f32(a * 2.885390082f)), 1.0f);
    f32 q = __fmaf_rn(-4.77942e-2f, z, 1.3277629e-1f);
    q = __fmaf_rn(q, z, -3.3331882e-1f);
    const f32 near = __fmaf_rn(q * z, a, a);
    return __uint_as_float(__float_as_uint(a < 0.4f ? near : far) | (__float_as_uint(x) & 0x80000000u));
}

#define DG_SQRT_F32 sqrtf
#define DG_SQRT_F64 sqrt
/* the built-in function of that name, for float32 (rounding, fmod) and for float64 */
#define DG_LIBM_F32(name) name##f
#define DG_LIBM_F64(name) name

/* ---- atomic operations --------------------------------------------------------------------------------- */

DG_FN void dg_atomic_add_i32(volatile i32 *p, i32 x) { atomicAdd((i32 *)p, x); }
DG_FN void dg_atomic_add_u32(volatile u32 *p, u32 x) { atomicAdd((u32 *)p, x); }
DG_FN void dg_atomic_add_i64(volatile i64 *p, i64 x) { atomicAdd((u64 *)p, (u64)x); }
DG_FN void dg_atomic_add_u64(volatile u64 *p, u64 x) { atomicAdd((u64 *)p, x); }
DG_FN void dg_atomic_add_f32(volatile f32 *p, f32 x) { atomicAdd((f32 *)p, x); }
DG_FN void dg_atomic_add_f64(volatile f64 *p, f64 x) { atomicAdd((f64 *)p, x); }
DG_FN void dg_atomic_max_i32(volatile i32 *p, i32 x) { atomicMax((i32 *)p, x); }
/* replaces 0 by x; returns whether it did, which happens for one thread only */
DG_FN i32 dg_atomic_claim_i32(volatile i32 *p, i32 x) { return atomicCAS((i32 *)p, 0, x) == 0; }
