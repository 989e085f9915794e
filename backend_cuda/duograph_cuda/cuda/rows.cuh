/* A row for a warp, or for a block of 8 warps: sums and maxima by shuffles, then through group memory.
 *
 * `lane` and `lanes` are the thread's place among those that share the row. Every thread of a row calls these; the
 * results are the same in all of them, and the order of the sums does not depend on anything but the row's length. */

DG_FN f32 dg_add(f32 a, f32 b) { return a + b; }
DG_FN f32 dg_larger(f32 a, f32 b) { return a > b ? a : b; }

#define DG_ROW(name, combine)                                                                                \
    template <int lanes> DG_FN f32 name(f32 v) {                                                             \
        for (int by = 16; by > 0; by /= 2) v = combine(v, __shfl_xor_sync(0xffffffffu, v, by));              \
        if (lanes > 32) {                                                                                    \
            DG_SHARED f32 of_warp[32];                                                                       \
            __syncthreads(); /* what was read here before */                                                 \
            if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = v;                                        \
            __syncthreads();                                                                                 \
            v = of_warp[0];                                                                                  \
            for (int w = 1; w < lanes / 32; w++) v = combine(v, of_warp[w]);                                 \
        }                                                                                                    \
        return v;                                                                                            \
    }
DG_ROW(dg_row_sum, dg_add)
DG_ROW(dg_row_max, dg_larger)

/* the greatest element so far, and the sum of exp(element - greatest); Milakov and Gimelshein, "Online normalizer
 * calculation for softmax" (2018) */
struct dg_running { f32 most, sum; };
DG_FN void dg_meet(dg_running *r, f32 v) {
    if (v > r->most) {
        r->sum = r->sum * dg_exp_f32(r->most - v) + dg_exp_f32(v - v); /* NaN when v is infinite, as in NumPy */
        r->most = v;
    } else if (v != -DG_INF_F32) {
        r->sum += dg_exp_f32(v - r->most);
    }
}
template <int lanes> DG_FN void dg_row_running(dg_running *r) {
    const f32 most = dg_row_max<lanes>(r->most);
    /* a thread that met nothing but -inf has no part in the sum */
    const f32 part = r->most == -DG_INF_F32 && r->sum == 0.0f ? 0.0f : r->sum * dg_exp_f32(r->most - most);
    r->most = most;
    r->sum = dg_row_sum<lanes>(part);
}
