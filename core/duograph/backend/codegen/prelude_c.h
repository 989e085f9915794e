/* C: types, and the few things that the languages of the C family spell differently. GNU C, no #include. */

typedef signed char i8;
typedef short i16;
typedef int i32;
typedef __INT64_TYPE__ i64;
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef __UINT64_TYPE__ u64;
typedef u8 b8; /* bool: 0 or 1 */
typedef u16 f16, bf16; /* as stored; computed in f32 */
typedef float f32;
typedef double f64;

#define DG_FN static inline __attribute__((always_inline, unused))
#define DG_KERNEL __attribute__((visibility("default")))
/* The iterations of the next loop are independent, though an output may be the same buffer as an input. */
#ifdef __clang__
#define DG_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define DG_INDEPENDENT _Pragma("GCC ivdep")
#endif

/* Copies a block to memory that is not read soon, past the caches. */
typedef i64 dg_pair __attribute__((vector_size(16), aligned(16), may_alias));
DG_FN void dg_stream(void *out, const void *block, i64 bytes) {
    i64 i = 0;
#if defined(__clang__) || defined(__SSE2__)
    if (((u64)(__UINTPTR_TYPE__)out & 15) == 0)
        for (; i + 16 <= bytes; i += 16) {
            dg_pair v = *(const dg_pair *)((const char *)block + i);
#ifdef __clang__
            __builtin_nontemporal_store(v, (dg_pair *)((char *)out + i));
#else
            __builtin_ia32_movntdq((__attribute__((vector_size(16))) long long *)((char *)out + i),
                                   (__attribute__((vector_size(16))) long long)v);
#endif
        }
#endif
    __builtin_memcpy((char *)out + i, (const char *)block + i, (__SIZE_TYPE__)(bytes - i));
}

/* Prefetches memory that is read soon: the processor's own prefetching stops at every page and lags in long loops. */
DG_FN void dg_fetch(const void *from, i64 bytes) {
    for (i64 i = 0; i < bytes; i += 64) __builtin_prefetch((const char *)from + i, 0, 2);
}

DG_FN u32 dg_bits_f32(f32 x) { u32 r; __builtin_memcpy(&r, &x, 4); return r; }
DG_FN f32 dg_from_bits_f32(u32 x) { f32 r; __builtin_memcpy(&r, &x, 4); return r; }
DG_FN u64 dg_bits_f64(f64 x) { u64 r; __builtin_memcpy(&r, &x, 8); return r; }
DG_FN f64 dg_from_bits_f64(u64 x) { f64 r; __builtin_memcpy(&r, &x, 8); return r; }

#ifdef DG_HAS_FMA
DG_FN f32 dg_fma_f32(f32 a, f32 b, f32 c) { return __builtin_fmaf(a, b, c); }
DG_FN f64 dg_fma_f64(f64 a, f64 b, f64 c) { return __builtin_fma(a, b, c); }
#else
DG_FN f32 dg_fma_f32(f32 a, f32 b, f32 c) { return a * b + c; }
DG_FN f64 dg_fma_f64(f64 a, f64 b, f64 c) { return a * b + c; }
#endif

#define DG_TO_BF16(x, by) by(x)
#define DG_TO_F16(x, by) by(x)
#define DG_FROM_F16(x, by) by(x)

#define DG_SQRT_F32 __builtin_sqrtf
#define DG_SQRT_F64 __builtin_sqrt
/* the library's function of that name, for float32 (rounding, fmod) and for float64 */
#define DG_LIBM_F32(name) __builtin_##name##f
#define DG_LIBM_F64(name) __builtin_##name
/* the C library has complex functions such as exp */
#define DG_COMPLEX_LIBM 1
