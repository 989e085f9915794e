/* Reductions of rows, each by one warp or by a block of 8 warps: by shuffles within a warp, then through shared memory.
 *
 * `lanes` is the number of threads that share a row. All of them call these functions and get the same result. The order
 * of summation depends on the length of the row only. */

DG_FN f32 dg_add(f32 a, f32 b) { return a + b; }
DG_FN f32 dg_larger(f32 a, f32 b) { return a > b ? a : b; }

#define DG_ROW(name, combine)                                                                                \
    template <int lanes> DG_FN f32 name(f32 v) {                                                             \
        for (int by = 16; by > 0; by /= 2) v = combine(v, __shfl_xor_sync(0xffffffffu, v, by));              \
        if (lanes > 32) {                                                                                    \
            DG_SHARED f32 of_warp[32];                                                                       \
            __syncthreads(); /* of_warp of the previous call has been read */                                                 \
            if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = v;                                        \
            __syncthreads();                                                                                 \
            v = of_warp[0];                                                                                  \
            for (int w = 1; w < lanes / 32; w++) v = combine(v, of_warp[w]);                                 \
        }                                                                                                    \
        return v;                                                                                            \
    }
DG_ROW(dg_row_sum, dg_add)
DG_ROW(dg_row_max, dg_larger)

/* A running softmax sum: the greatest element so far, and the sum of exp(element - greatest). See Milakov and Gimelshein,
 * "Online normalizer calculation for softmax" (2018). dg_meet adds an element. */
struct dg_running { f32 most, sum; };
DG_FN void dg_meet(dg_running *r, f32 v) {
    if (v > r->most) {
        r->sum = r->sum * dg_exp_f32(r->most - v) + dg_exp_f32(v - v); /* exp(v - v) is 1, or NaN if v is infinite, as in NumPy */
        r->most = v;
    } else if (v != -DG_INF_F32) {
        r->sum += dg_exp_f32(v - r->most);
    }
}
template <int lanes> DG_FN void dg_row_running(dg_running *r) {
    const f32 most = dg_row_max<lanes>(r->most);
    /* a thread whose elements were all -inf adds nothing to the sum */
    const f32 part = r->most == -DG_INF_F32 && r->sum == 0.0f ? 0.0f : r->sum * dg_exp_f32(r->most - most);
    r->most = most;
    r->sum = dg_row_sum<lanes>(part);
}

/* ---- stored dtypes: conversion to and from float32 --------------------------------------------------------------- */

struct dg_of_f16 {
    typedef u16 T;
    DG_METHOD static f32 load(u16 v) { return dg_from_f16(v); }
    DG_METHOD static u16 store(f32 v) { return dg_to_f16(v); }
};
struct dg_of_bf16 {
    typedef u16 T;
    DG_METHOD static f32 load(u16 v) { return dg_from_bf16(v); }
    DG_METHOD static u16 store(f32 v) { return dg_to_bf16(v); }
};
struct dg_of_f32 {
    typedef f32 T;
    DG_METHOD static f32 load(f32 v) { return v; }
    DG_METHOD static f32 store(f32 v) { return v; }
};

/* dg_row: the number of this thread's row; DG_EACH: the loop over the elements j of the row that the thread handles. A row
 * number past the end is the same for a whole warp, which then returns. */
template <int lanes> DG_FN i64 dg_row() {
    return lanes == 32 ? (i64)blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32 : (i64)blockIdx.x;
}
#define DG_EACH(j, n) for (i64 j = threadIdx.x % lanes; j < n; j += lanes)

/* ---- softmax ---------------------------------------------------------------------------------------------------- */

template <int lanes, class X> DG_FN void dg_softmax(const typename X::T *x, typename X::T *out, i64 rows, i64 n) {
    const i64 row = dg_row<lanes>(), at = row * n;
    if (row >= rows) return;
    dg_running r = {-DG_INF_F32, 0.0f};
    DG_EACH(j, n) dg_meet(&r, X::load(x[at + j]));
    dg_row_running<lanes>(&r);
    DG_EACH(j, n) out[at + j] = X::store(dg_exp_f32(X::load(x[at + j]) - r.most) / r.sum);
}

template <int lanes, class X> DG_FN void dg_log_softmax(const typename X::T *x, typename X::T *out, i64 rows, i64 n) {
    const i64 row = dg_row<lanes>(), at = row * n;
    if (row >= rows) return;
    dg_running r = {-DG_INF_F32, 0.0f};
    DG_EACH(j, n) dg_meet(&r, X::load(x[at + j]));
    dg_row_running<lanes>(&r);
    const f32 whole = dg_log_f32(r.sum);
    DG_EACH(j, n) out[at + j] = X::store(X::load(x[at + j]) - r.most - whole);
}

template <int lanes, class X>
DG_FN void dg_softmax_grad(const typename X::T *y, const typename X::T *dout, typename X::T *dx, i64 rows, i64 n) {
    const i64 row = dg_row<lanes>(), at = row * n;
    if (row >= rows) return;
    f32 sum = 0.0f;
    DG_EACH(j, n) sum += X::load(y[at + j]) * X::load(dout[at + j]);
    sum = dg_row_sum<lanes>(sum);
    DG_EACH(j, n) dx[at + j] = X::store(X::load(y[at + j]) * (X::load(dout[at + j]) - sum));
}

template <int lanes, class X>
DG_FN void dg_log_softmax_grad(const typename X::T *y, const typename X::T *dout, typename X::T *dx, i64 rows, i64 n) {
    const i64 row = dg_row<lanes>(), at = row * n;
    if (row >= rows) return;
    f32 sum = 0.0f;
    DG_EACH(j, n) sum += X::load(dout[at + j]);
    sum = dg_row_sum<lanes>(sum);
    DG_EACH(j, n) dx[at + j] = X::store(X::load(dout[at + j]) - dg_exp_f32(X::load(y[at + j])) * sum);
}

/* ---- layer_norm: X is the dtype of the rows, G that of gamma and beta, S that of mean and rstd -------------------- */

template <int lanes, class X, class G, class B, class Y, class S>
DG_FN void dg_layer_norm(const typename X::T *x, const typename G::T *gamma, const typename B::T *beta, typename Y::T *y,
                         typename S::T *mean_of, typename S::T *rstd_of, i64 rows, i64 n, f32 eps) {
    const i64 row = dg_row<lanes>(), at = row * n;
    if (row >= rows) return;
    f32 sum = 0.0f;
    DG_EACH(j, n) sum += X::load(x[at + j]);
    const f32 mean = dg_row_sum<lanes>(sum) / (f32)n;
    f32 squares = 0.0f;
    DG_EACH(j, n) {
        const f32 d = X::load(x[at + j]) - mean;
        squares += d * d;
    }
    const f32 rstd = 1.0f / DG_SQRT_F32(dg_row_sum<lanes>(squares) / (f32)n + eps);
    DG_EACH(j, n)
        y[at + j] = Y::store((X::load(x[at + j]) - mean) * rstd * G::load(gamma[j]) + B::load(beta[j]));
    if (threadIdx.x % lanes == 0) {
        mean_of[row] = S::store(mean);
        rstd_of[row] = S::store(rstd);
    }
}

template <int lanes, class X, class G, class S, class D, class DX>
DG_FN void dg_layer_norm_grad(const typename X::T *x, const typename G::T *gamma, const typename S::T *mean_of,
                              const typename S::T *rstd_of, const typename D::T *dout, typename DX::T *dx, i64 rows,
                              i64 n) {
    const i64 row = dg_row<lanes>(), at = row * n;
    if (row >= rows) return;
    const f32 mean = S::load(mean_of[row]), rstd = S::load(rstd_of[row]);
    f32 sum = 0.0f, along = 0.0f;
    DG_EACH(j, n) {
        const f32 h = (X::load(x[at + j]) - mean) * rstd, g = D::load(dout[at + j]) * G::load(gamma[j]);
        sum += g;
        along += g * h;
    }
    sum = dg_row_sum<lanes>(sum) / (f32)n;
    along = dg_row_sum<lanes>(along) / (f32)n;
    DG_EACH(j, n) {
        const f32 h = (X::load(x[at + j]) - mean) * rstd, g = D::load(dout[at + j]) * G::load(gamma[j]);
        dx[at + j] = DX::store(rstd * (g - sum - h * along));
    }
}

/* Computes the gradients of gamma and beta by column, as partial sums over `each` rows. */
template <class X, class S, class D>
DG_FN void dg_layer_norm_columns(const typename X::T *x, const typename S::T *mean_of, const typename S::T *rstd_of,
                                 const typename D::T *dout, f32 *scales, f32 *shifts, i64 rows, i64 n, i64 each,
                                 i64 parts) {
    const i64 e = DG_ITEM(0), part = e / n, j = e % n;
    if (part >= parts) return;
    const i64 first = part * each, last = first + each < rows ? first + each : rows;
    f32 scale = 0.0f, shift = 0.0f;
    for (i64 row = first; row < last; row++) {
        const f32 d = D::load(dout[row * n + j]);
        scale += d * ((X::load(x[row * n + j]) - S::load(mean_of[row])) * S::load(rstd_of[row]));
        shift += d;
    }
    scales[e] = scale;
    shifts[e] = shift;
}

/* Adds up the partial sums of the gradients of gamma and beta, in order. */
template <class G, class B>
DG_FN void dg_layer_norm_parts(const f32 *scales, const f32 *shifts, typename G::T *dgamma, typename B::T *dbeta, i64 n,
                               i64 parts) {
    const i64 j = DG_ITEM(0);
    if (j >= n) return;
    f32 scale = 0.0f, shift = 0.0f;
    for (i64 part = 0; part < parts; part++) {
        scale += scales[part * n + j];
        shift += shifts[part * n + j];
    }
    dgamma[j] = G::store(scale);
    dbeta[j] = B::store(shift);
}
