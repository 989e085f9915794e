/* Vectors of elements in memory, and what the threads of a warp or a block compute together: for rows.cuh and channels.cuh.
 *
 * The order in which threads combine numbers depends on their number only. */

/* ---- stored dtypes: conversion to and from float32 --------------------------------------------------------------- */

/* T is an element in memory, E one in computations; `logical`: bool; `least` is a 32-bit word of elements that are -inf; `part` is element i of some words, `words` joins two elements. */
template <class Of> struct dg_short {
    typedef u16 T;
    typedef f32 E;
    enum { V = 8, logical = 0 };
    DG_METHOD static f32 part(const u32 *w, int i) { return Of::load((u16)(w[i / 2] >> (i % 2 * 16))); }
    DG_METHOD static u32 word(const f32 *v, int i) { return Of::store(v[2 * i]) | (u32)Of::store(v[2 * i + 1]) << 16; }
};
struct dg_of_f16 : dg_short<dg_of_f16> {
    enum : u32 { least = 0xfc00fc00u };
    DG_METHOD static f32 load(u16 v) { return dg_from_f16(v); }
    DG_METHOD static u16 store(f32 v) { return dg_to_f16(v); }
};
struct dg_of_bf16 : dg_short<dg_of_bf16> {
    enum : u32 { least = 0xff80ff80u };
    DG_METHOD static f32 load(u16 v) { return dg_from_bf16(v); }
    DG_METHOD static u16 store(f32 v) { return dg_to_bf16(v); }
};
struct dg_of_f32 {
    typedef f32 T;
    typedef f32 E;
    enum { V = 4, logical = 0 };
    enum : u32 { least = 0xff800000u };
    DG_METHOD static f32 load(f32 v) { return v; }
    DG_METHOD static f32 store(f32 v) { return v; }
    DG_METHOD static f32 part(const u32 *w, int i) { return dg_from_bits_f32(w[i]); }
    DG_METHOD static u32 word(const f32 *v, int i) { return dg_bits_f32(v[i]); }
};

/* the other dtypes, which have no vectors */
template <class Of> struct dg_alone {
    typedef Of T;
    typedef Of E;
    enum { logical = 0 };
    DG_METHOD static Of load(Of v) { return v; }
    DG_METHOD static Of store(Of v) { return v; }
};
struct dg_of_f64 : dg_alone<f64> {};
struct dg_of_i8 : dg_alone<i8> {};
struct dg_of_i16 : dg_alone<i16> {};
struct dg_of_i32 : dg_alone<i32> {};
struct dg_of_i64 : dg_alone<i64> {};
struct dg_of_u8 : dg_alone<u8> {};
struct dg_of_u16 : dg_alone<u16> {};
struct dg_of_u32 : dg_alone<u32> {};
struct dg_of_u64 : dg_alone<u64> {};
struct dg_of_b8 : dg_alone<b8> { enum { logical = 1 }; };

/* dg_fetch: N adjacent elements as 32-bit words, by the widest loads; dg_put: the opposite, from float32. */
template <class X, int N> struct dg_words { enum { bytes = N * sizeof(typename X::T), n = bytes < 4 ? 1 : bytes / 4 }; };

template <class X, int N> DG_FN void dg_fetch(const typename X::T *from, u32 *w) {
    if constexpr (dg_words<X, N>::bytes == 2) w[0] = *(const u16 *)from;
    else if constexpr (dg_words<X, N>::bytes == 4) w[0] = *(const u32 *)from;
    else if constexpr (dg_words<X, N>::bytes == 8) {
        const uint2 a = *(const uint2 *)from;
        w[0] = a.x, w[1] = a.y;
    } else {
        #pragma unroll
        for (int k = 0; k < dg_words<X, N>::n; k += 4) {
            const uint4 a = ((const uint4 *)from)[k / 4];
            w[k] = a.x, w[k + 1] = a.y, w[k + 2] = a.z, w[k + 3] = a.w;
        }
    }
}
template <class X, int N> DG_FN void dg_get(const typename X::T *from, f32 *v) {
    u32 w[dg_words<X, N>::n];
    dg_fetch<X, N>(from, w);
    #pragma unroll
    for (int i = 0; i < N; i++) v[i] = X::part(w, i);
}
template <class X, int N> DG_FN void dg_put(typename X::T *to, const f32 *v) {
    if constexpr (N == 1) *to = X::store(v[0]);
    else {
        enum { n = dg_words<X, N>::n };
        u32 w[n];
        #pragma unroll
        for (int i = 0; i < n; i++) w[i] = X::word(v, i);
        if constexpr (n == 2) *(uint2 *)to = uint2{w[0], w[1]};
        else {
            #pragma unroll
            for (int k = 0; k < n; k += 4) ((uint4 *)to)[k / 4] = uint4{w[k], w[k + 1], w[k + 2], w[k + 3]};
        }
    }
}

/* ---- what the threads of a row share ------------------------------------------------------------------------------- */

struct dg_adding { DG_METHOD static f32 of(f32 a, f32 b) { return a + b; } };
struct dg_taking_larger { DG_METHOD static f32 of(f32 a, f32 b) { return a > b ? a : b; } };

/* Combines each of the N numbers v over the threads of a row, which all get the results. Calls of a kernel differ in
 * `site`, each with shared memory of its own; in a loop, every other call of a site uses the other half (`turn`). */
template <class Op, int lanes, int site, int N> DG_FN void dg_share(f32 *v, int turn = 0) {
    #pragma unroll
    for (int by = (lanes < 32 ? lanes : 32) / 2; by > 0; by /= 2)
        for (int i = 0; i < N; i++) v[i] = Op::of(v[i], __shfl_xor_sync(0xffffffffu, v[i], by));
    if constexpr (lanes > 32) {
        enum { warps = lanes / 32 };
        DG_SHARED f32 of_warp[2][N][warps];
        if (threadIdx.x % 32 == 0)
            for (int i = 0; i < N; i++) of_warp[turn][i][threadIdx.x / 32] = v[i];
        __syncthreads();
        for (int i = 0; i < N; i++) {
            v[i] = of_warp[turn][i][threadIdx.x % warps];
            #pragma unroll
            for (int by = warps / 2; by > 0; by /= 2) v[i] = Op::of(v[i], __shfl_xor_sync(0xffffffffu, v[i], by));
        }
    }
}

/* The number, the mean, and the sum of squared distances from it, of elements seen so far; dg_joined joins two such. See
 * Chan, Golub and LeVeque, "Updating formulae and a pairwise algorithm for computing sample variances" (1979). */
struct dg_moments { f32 count, mean, squares; };
DG_FN dg_moments dg_joined(dg_moments a, dg_moments b) {
    const f32 count = a.count + b.count, part = b.count / count, apart = b.mean - a.mean;
    /* as weights, so that the mean of numbers with an infinite one is infinite */
    const dg_moments both = {count, a.mean * (1.0f - part) + b.mean * part,
                             a.squares + b.squares + apart * apart * a.count * part};
    return b.count == 0.0f ? a : a.count == 0.0f ? b : both;
}
/* Joins the moments of the threads of a row; they all get the same. The lower lane's come first. */
template <int lanes> DG_FN dg_moments dg_row_moments(dg_moments m) {
    #pragma unroll
    for (int by = 1; by < (lanes < 32 ? lanes : 32); by *= 2) {
        const dg_moments o = {__shfl_xor_sync(0xffffffffu, m.count, by), __shfl_xor_sync(0xffffffffu, m.mean, by),
                              __shfl_xor_sync(0xffffffffu, m.squares, by)};
        m = threadIdx.x & by ? dg_joined(o, m) : dg_joined(m, o);
    }
    if constexpr (lanes > 32) {
        enum { warps = lanes / 32 };
        DG_SHARED dg_moments of_warp[warps];
        if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = m;
        __syncthreads();
        m = of_warp[0];
        for (int w = 1; w < warps; w++) m = dg_joined(m, of_warp[w]);
    }
    return m;
}
