/* Cumulative sums, products, maxima and minima. Strips of adjacent columns are scanned together; 16-bit floats run in float32. */
#include "common.h"
#include "half.h"

#include <complex.h>

#define STRIP 256

typedef struct {
    const dg_scanning *p;
    void *y, *indices;
    const void *x;
    void (*strip)(const dg_scanning *, void *, void *, const void *, int64_t, int64_t);
} Job;

static void put_index(const dg_scanning *p, void *indices, int64_t at, int64_t i) {
    if (p->index_type == DG_I64) ((int64_t *)indices)[at] = i;
    else ((int32_t *)indices)[at] = (int32_t)i;
}

/* Scans m columns from element `at` on; m rows if the axis is the innermost. */
#define SCAN(NAME, T, A, LOAD, STORE, STEP, FIRST)                                                           \
    static void NAME(const dg_scanning *p, void *y_, void *unused, const void *x_, int64_t at, int64_t m) {   \
        (void)unused;                                                                                        \
        const T *x = (const T *)x_ + at;                                                                     \
        T *y = (T *)y_ + at;                                                                                 \
        A acc[STRIP];                                                                                        \
        if (p->inner == 1) { /* m rows: several chains of additions run in parallel */                      \
            int64_t n = p->n, low = p->reverse ? n - 1 : 0, step = p->reverse ? -1 : 1;                      \
            int64_t r = 0;                                                                                   \
            for (; r + 4 <= m; r += 4) {                                                                     \
                const T *x0 = x + r * n + low, *x1 = x0 + n, *x2 = x1 + n, *x3 = x2 + n;                     \
                T *y0 = y + r * n + low, *y1 = y0 + n, *y2 = y1 + n, *y3 = y2 + n;                           \
                A a0 = FIRST, a1 = FIRST, a2 = FIRST, a3 = FIRST;                                            \
                for (int64_t k = 0, i = 0; k < n; k++, i += step) {                                          \
                    A v0 = LOAD(x0[i]), v1 = LOAD(x1[i]), v2 = LOAD(x2[i]), v3 = LOAD(x3[i]);                \
                    A n0 = STEP(a0, v0), n1 = STEP(a1, v1), n2 = STEP(a2, v2), n3 = STEP(a3, v3);            \
                    y0[i] = (T)STORE(p->exclusive ? a0 : n0);                                                \
                    y1[i] = (T)STORE(p->exclusive ? a1 : n1);                                                \
                    y2[i] = (T)STORE(p->exclusive ? a2 : n2);                                                \
                    y3[i] = (T)STORE(p->exclusive ? a3 : n3);                                                \
                    a0 = n0, a1 = n1, a2 = n2, a3 = n3;                                                      \
                }                                                                                            \
            }                                                                                                \
            for (; r < m; r++) {                                                                             \
                A a = FIRST;                                                                                 \
                for (int64_t k = 0, i = r * n + low; k < n; k++, i += step) {                                \
                    A v = LOAD(x[i]), next = STEP(a, v);                                                     \
                    y[i] = (T)STORE(p->exclusive ? a : next);                                                \
                    a = next;                                                                                \
                }                                                                                            \
            }                                                                                                \
            return;                                                                                          \
        }                                                                                                    \
        for (int64_t c = 0; c < m; c++) acc[c] = FIRST;                                                      \
        int64_t step = p->inner;                                                                             \
        if (p->reverse) x += (p->n - 1) * step, y += (p->n - 1) * step, step = -step;                        \
        for (int64_t i = 0; i < p->n; i++, x += step, y += step)                                             \
            for (int64_t c = 0; c < m; c++) {                                                                \
                A v = LOAD(x[c]), next = STEP(acc[c], v);                                                    \
                y[c] = (T)STORE(p->exclusive ? acc[c] : next);                                               \
                acc[c] = next;                                                                               \
            }                                                                                                \
    }

/* The last of equal elements wins; NaN propagates. */
#define EXTREME(NAME, T, A, LOAD, STORE, TAKES)                                                              \
    static void NAME(const dg_scanning *p, void *y_, void *indices, const void *x_, int64_t at, int64_t m) {  \
        const T *x = (const T *)x_ + at;                                                                     \
        T *y = (T *)y_ + at;                                                                                 \
        for (int64_t c = 0; c < m; c++) {                                                                    \
            T best = x[c];                                                                                   \
            A b = LOAD(best);                                                                                \
            int64_t where = 0;                                                                               \
            for (int64_t i = 0; i < p->n; i++) {                                                             \
                A v = LOAD(x[i * p->inner + c]);                                                             \
                if ((v TAKES b) | (v != v)) best = x[i * p->inner + c], b = v, where = i;                    \
                y[i * p->inner + c] = best;                                                                  \
                put_index(p, indices, at + i * p->inner + c, where);                                         \
            }                                                                                                \
        }                                                                                                    \
    }

#define ID(v) (v)
#define TRUTH(v) ((v) != 0)
#define ADD(a, b) ((a) + (b))
#define MUL(a, b) ((a) * (b))

#define EACH_REAL(X)                                                                                        \
    X(DG_I8, i8, int8_t, int8_t, ID, ID) X(DG_I16, i16, int16_t, int16_t, ID, ID)                           \
    X(DG_I32, i32, int32_t, int32_t, ID, ID) X(DG_I64, i64, int64_t, int64_t, ID, ID)                       \
    X(DG_U8, u8, uint8_t, uint8_t, ID, ID) X(DG_U16, u16, uint16_t, uint16_t, ID, ID)                       \
    X(DG_U32, u32, uint32_t, uint32_t, ID, ID) X(DG_U64, u64, uint64_t, uint64_t, ID, ID)                   \
    X(DG_F16, f16, uint16_t, float, f16_load, f16_store) X(DG_BF16, bf16, uint16_t, float, bf16_load, bf16_store) \
    X(DG_F32, f32, float, float, ID, ID) X(DG_F64, f64, double, double, ID, ID)                             \
    X(DG_BOOL, b8, uint8_t, uint8_t, ID, TRUTH)
#define EACH_TYPE(X)                                                                                        \
    EACH_REAL(X) X(DG_C64, c64, float _Complex, float _Complex, ID, ID) X(DG_C128, c128, double _Complex, double _Complex, ID, ID)

#define X(CODE, N, T, A, LOAD, STORE) SCAN(sum_##N, T, A, LOAD, STORE, ADD, 0) SCAN(prod_##N, T, A, LOAD, STORE, MUL, 1)
EACH_TYPE(X)
#undef X
#define X(CODE, N, T, A, LOAD, STORE) EXTREME(max_##N, T, A, LOAD, STORE, >=) EXTREME(min_##N, T, A, LOAD, STORE, <=)
EACH_REAL(X)
#undef X

static void scan_task(void **args, int64_t begin, int64_t end) {
    const Job *j = args[0];
    const dg_scanning *p = j->p;
    int64_t strips = (p->inner + STRIP - 1) / STRIP;
    if (p->inner == 1 && !j->indices) {
        j->strip(p, j->y, 0, j->x, begin * p->n, end - begin);
        return;
    }
    for (int64_t u = begin; u < end; u++) {
        int64_t first = u % strips * STRIP;
        j->strip(p, j->y, j->indices, j->x, u / strips * p->n * p->inner + first, DG_MIN(STRIP, p->inner - first));
    }
}

static int scan(Job j) {
    const dg_scanning *p = j.p;
    if (!j.strip) return DG_NO_KERNEL;
    if (p->n == 0) return DG_OK;
    dg_parallel_for(scan_task, (void *[]){&j}, p->outer * ((p->inner + STRIP - 1) / STRIP),
                    DG_MAX(1, 16384 / (p->n * DG_MIN(STRIP, p->inner))));
    return DG_OK;
}

int dg_cumsum(const dg_scanning *p, void *y, const void *x) {
    Job j = {.p = p, .y = y, .x = x};
#define X(CODE, N, T, A, LOAD, STORE) if (p->type == CODE) j.strip = sum_##N;
    EACH_TYPE(X)
#undef X
    return scan(j);
}

int dg_cumprod(const dg_scanning *p, void *y, const void *x) {
    Job j = {.p = p, .y = y, .x = x};
#define X(CODE, N, T, A, LOAD, STORE) if (p->type == CODE) j.strip = prod_##N;
    EACH_TYPE(X)
#undef X
    return scan(j);
}

int dg_cummax(const dg_scanning *p, void *y, void *indices, const void *x) {
    Job j = {.p = p, .y = y, .indices = indices, .x = x};
#define X(CODE, N, T, A, LOAD, STORE) if (p->type == CODE) j.strip = max_##N;
    EACH_REAL(X)
#undef X
    return scan(j);
}

int dg_cummin(const dg_scanning *p, void *y, void *indices, const void *x) {
    Job j = {.p = p, .y = y, .indices = indices, .x = x};
#define X(CODE, N, T, A, LOAD, STORE) if (p->type == CODE) j.strip = min_##N;
    EACH_REAL(X)
#undef X
    return scan(j);
}
