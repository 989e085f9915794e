/* softmax, layer_norm, batch_norm and their gradients. float16 and bfloat16 are computed in float32. */
#include "common.h"
#include "half.h"

#include <math.h>

#define ISA_SOURCE "normalise.inc"
#include "isa.h"

/* ---- conversion from and to any floating type ---- */

static void load(int64_t type, const void *x, int64_t stride, int64_t n, int wide, void *out) {
#define LOOP(T, EXPRESSION)                                                                     \
    for (int64_t i = 0; i < n; i++) {                                                           \
        T v = ((const T *)x)[i * stride];                                                       \
        if (wide) ((double *)out)[i] = EXPRESSION;                                              \
        else ((float *)out)[i] = (float)(EXPRESSION);                                           \
    }                                                                                           \
    break;
    switch (type) {
    case DG_F16: LOOP(f16, f16_load(v))
    case DG_BF16: LOOP(bf16, bf16_load(v))
    case DG_F32: LOOP(float, v)
    case DG_F64: LOOP(double, v)
    }
#undef LOOP
}

static void store(int64_t type, void *out, int64_t stride, int64_t n, int wide, const void *x) {
#define LOOP(T, STORE)                                                                          \
    for (int64_t i = 0; i < n; i++)                                                             \
        ((T *)out)[i * stride] = wide ? (T)STORE(((const double *)x)[i]) : (T)STORE(((const float *)x)[i]); \
    break;
    switch (type) {
    case DG_F16: LOOP(f16, f16_store)
    case DG_BF16: LOOP(bf16, bf16_store)
    case DG_F32: LOOP(float, )
    case DG_F64: LOOP(double, )
    }
#undef LOOP
}

static int64_t size_of(int64_t type) { return type == DG_F64 ? 8 : type == DG_F32 ? 4 : 2; }

/* ---- softmax: rows in place if they are dense and of the compute type, else through a buffer ---- */

typedef void (*Row)(void *, const void *, const void *, int64_t);

typedef struct {
    const dg_axis *p;
    char *out;
    const char *a, *b;
    Row row;
    int *failed;
} Rows;

#define STRIP 16 /* adjacent columns that are read together: a cache line */

static void rows_task(void **args, int64_t begin, int64_t end) {
    const Rows *r = args[0];
    const dg_axis *p = r->p;
    int64_t size = size_of(p->type), n = p->n;
    if (p->inner == 1 && size >= 4) {
        for (int64_t i = begin; i < end; i++)
            r->row(r->out + i * n * size, r->a + i * n * size, r->b ? r->b + i * n * size : 0, n);
        return;
    }
    int wide = p->type == DG_F64;
    int64_t step = wide ? 8 : 4, strips = (p->inner + STRIP - 1) / STRIP;
    char *buffer = dg_alloc((size_t)(3 * STRIP * n * step));
    if (!buffer) {
        __atomic_store_n(r->failed, 1, __ATOMIC_RELAXED);
        return;
    }
    char *out = buffer, *a = out + STRIP * n * step, *b = a + STRIP * n * step;
    for (int64_t u = begin; u < end; u++) {
        int64_t first = u % strips * STRIP, columns = DG_MIN(STRIP, p->inner - first);
        int64_t at = (u / strips * n * p->inner + first) * size, next = p->inner * size;
        if (p->inner == 1) {
            load(p->type, r->a + at, 1, n, wide, a);
            if (r->b) load(p->type, r->b + at, 1, n, wide, b);
        } else {
            for (int64_t i = 0; i < n; i++)
                for (int64_t c = 0; c < columns; c++) {
                    load(p->type, r->a + at + i * next + c * size, 1, 1, wide, a + (c * n + i) * step);
                    if (r->b) load(p->type, r->b + at + i * next + c * size, 1, 1, wide, b + (c * n + i) * step);
                }
        }
        for (int64_t c = 0; c < columns; c++)
            r->row(out + c * n * step, a + c * n * step, b + c * n * step, n);
        if (p->inner == 1)
            store(p->type, r->out + at, 1, n, wide, out);
        else
            for (int64_t i = 0; i < n; i++)
                for (int64_t c = 0; c < columns; c++)
                    store(p->type, r->out + at + i * next + c * size, 1, 1, wide, out + (c * n + i) * step);
    }
    dg_free(buffer);
}

static int along_rows(const dg_axis *p, void *out, const void *a, const void *b, Row single, Row wide) {
    int failed = 0;
    if (p->n == 0) return DG_OK;
    Rows r = {p, out, a, b, p->type == DG_F64 ? wide : single, &failed};
    int64_t strips = (p->inner + STRIP - 1) / STRIP;
    dg_parallel_for(rows_task, (void *[]){&r}, p->outer * strips, DG_MAX(1, 8192 / (p->n * DG_MIN(STRIP, p->inner))));
    return failed ? DG_NO_MEMORY : DG_OK;
}

#define ALONG(NAME) (Row)ISA_PICK(NAME##_float), (Row)ISA_PICK(NAME##_double)
int dg_softmax(const dg_axis *p, void *y, const void *x) { return along_rows(p, y, x, 0, ALONG(softmax)); }
int dg_log_softmax(const dg_axis *p, void *y, const void *x) { return along_rows(p, y, x, 0, ALONG(log_softmax)); }
int dg_softmax_grad(const dg_axis *p, void *dx, const void *y, const void *dy) { return along_rows(p, dx, y, dy, ALONG(softmax_grad)); }
int dg_log_softmax_grad(const dg_axis *p, void *dx, const void *y, const void *dy) {
    return along_rows(p, dx, y, dy, ALONG(log_softmax_grad));
}

/* ---- layer_norm and batch_norm, for one stored type T computed in A ---- */

typedef struct {
    const dg_normalisation *p;
    void *y, *a, *b;            /* results; the entry points name them */
    const void *x, *dy, *mean, *stat;
    void *gamma, *beta;         /* in the compute type A */
    void *parts;
    int64_t chunks;
} Norm;

/* Channels of a batch_norm work unit: one if its runs are long, else a cache line of adjacent ones. */
static int64_t channels_of(const dg_normalisation *p) { return p->inner >= 64 ? 1 : 16; }

#define DRIVER(N, T, A, WIDE)                                                                                          \
    static void layer_norm_##N(void **args, int64_t begin, int64_t end) {                                              \
        const Norm *j = args[0];                                                                                       \
        const dg_normalisation *p = j->p;                                                                              \
        int64_t n = p->n;                                                                                              \
        for (int64_t i = begin; i < end; i++) {                                                                        \
            A mean, rstd;                                                                                              \
            ISA_PICK(layer_norm_row_##N)((T *)j->y + i * n, &mean, &rstd, (const T *)j->x + i * n, j->gamma, j->beta, n, p->eps); \
            store(p->stat_type, (char *)j->a + i * size_of(p->stat_type), 1, 1, WIDE, &mean);                          \
            store(p->stat_type, (char *)j->b + i * size_of(p->stat_type), 1, 1, WIDE, &rstd);                          \
        }                                                                                                              \
    }                                                                                                                  \
    static void layer_norm_grad_##N(void **args, int64_t chunk, int64_t last) {                                        \
        const Norm *j = args[0];                                                                                       \
        const dg_normalisation *p = j->p;                                                                              \
        int64_t n = p->n;                                                                                              \
        for (; chunk < last; chunk++) {                                                                                \
            A *dgamma = (A *)j->parts + chunk * 2 * n, *dbeta = dgamma + n;                                            \
            memset(dgamma, 0, (size_t)(2 * n) * sizeof(A));                                                            \
            for (int64_t i = p->outer * chunk / j->chunks; i < p->outer * (chunk + 1) / j->chunks; i++) {              \
                A mean, rstd;                                                                                          \
                load(p->stat_type, (const char *)j->mean + i * size_of(p->stat_type), 1, 1, WIDE, &mean);              \
                load(p->stat_type, (const char *)j->stat + i * size_of(p->stat_type), 1, 1, WIDE, &rstd);              \
                ISA_PICK(layer_norm_grad_row_##N)((T *)j->y + i * n, dgamma, dbeta, (const T *)j->x + i * n, j->gamma, mean, rstd, \
                                                  (const T *)j->dy + i * n, n);                                        \
            }                                                                                                          \
        }                                                                                                              \
    }                                                                                                                  \
    static void merge_##N(void **args, int64_t begin, int64_t end) {                                                   \
        const Norm *j = args[0];                                                                                       \
        const dg_normalisation *p = j->p;                                                                              \
        for (int64_t i = begin; i < end; i++) {                                                                        \
            A g = 0, b = 0;                                                                                            \
            for (int64_t c = 0; c < j->chunks; c++) {                                                                  \
                g += ((A *)j->parts)[c * 2 * p->n + i];                                                                \
                b += ((A *)j->parts)[c * 2 * p->n + p->n + i];                                                         \
            }                                                                                                          \
            store(p->weight_type, (char *)j->a + i * size_of(p->weight_type), 1, 1, WIDE, &g);                         \
            store(p->weight_type, (char *)j->b + i * size_of(p->weight_type), 1, 1, WIDE, &b);                         \
        }                                                                                                              \
    }                                                                                                                  \
    static void batch_norm_##N(void **args, int64_t begin, int64_t end) {                                              \
        const Norm *j = args[0];                                                                                       \
        const dg_normalisation *p = j->p;                                                                              \
        int64_t step = channels_of(p), inner = p->inner;                                                               \
        double m = (double)(p->outer * inner);                                                                         \
        for (int64_t u = begin; u < end; u++) {                                                                        \
            int64_t first = u * step, count = DG_MIN(step, p->n - first);                                              \
            A sum[16] = {0}, square[16] = {0}, scale[16], shift[16];                                                   \
            for (int64_t o = 0; o < p->outer; o++)                                                                     \
                for (int64_t c = 0; c < count; c++)                                                                    \
                    sum[c] += ISA_PICK(run_sum_##N)((const T *)j->x + (o * p->n + first + c) * inner, inner);          \
            for (int64_t c = 0; c < count; c++) sum[c] = (A)((double)sum[c] / m);                                      \
            for (int64_t o = 0; o < p->outer; o++)                                                                     \
                for (int64_t c = 0; c < count; c++)                                                                    \
                    square[c] += ISA_PICK(run_square_##N)((const T *)j->x + (o * p->n + first + c) * inner, sum[c], inner); \
            for (int64_t c = 0; c < count; c++) {                                                                      \
                square[c] = (A)((double)square[c] / m);                                                                \
                scale[c] = (A)(((A *)j->gamma)[first + c] / sqrt((double)square[c] + p->eps));                         \
                shift[c] = ((A *)j->beta)[first + c] - sum[c] * scale[c];                                              \
            }                                                                                                          \
            for (int64_t o = 0; o < p->outer; o++)                                                                     \
                for (int64_t c = 0; c < count; c++) {                                                                  \
                    int64_t at = (o * p->n + first + c) * inner;                                                       \
                    ISA_PICK(run_scale_##N)((T *)j->y + at, (const T *)j->x + at, scale[c], shift[c], inner);          \
                }                                                                                                      \
            store(p->stat_type, (char *)j->a + first * size_of(p->stat_type), 1, count, WIDE, sum);                    \
            store(p->stat_type, (char *)j->b + first * size_of(p->stat_type), 1, count, WIDE, square);                 \
        }                                                                                                              \
    }                                                                                                                  \
    static void batch_norm_grad_##N(void **args, int64_t begin, int64_t end) {                                         \
        const Norm *j = args[0];                                                                                       \
        const dg_normalisation *p = j->p;                                                                              \
        int64_t step = channels_of(p), inner = p->inner;                                                               \
        A m = (A)(p->outer * inner);                                                                                   \
        for (int64_t u = begin; u < end; u++) {                                                                        \
            int64_t first = u * step, count = DG_MIN(step, p->n - first);                                              \
            A sum[16] = {0}, dot[16] = {0}, mean[16], var[16], a[16], b[16], c_[16];                                   \
            load(p->stat_type, (const char *)j->mean + first * size_of(p->stat_type), 1, count, WIDE, mean);           \
            load(p->stat_type, (const char *)j->stat + first * size_of(p->stat_type), 1, count, WIDE, var);            \
            for (int64_t o = 0; o < p->outer; o++)                                                                     \
                for (int64_t c = 0; c < count; c++) {                                                                  \
                    int64_t at = (o * p->n + first + c) * inner;                                                       \
                    sum[c] += ISA_PICK(run_sum_##N)((const T *)j->dy + at, inner);                                     \
                    dot[c] += ISA_PICK(run_dot_##N)((const T *)j->x + at, mean[c], (const T *)j->dy + at, inner);      \
                }                                                                                                      \
            for (int64_t c = 0; c < count; c++) {                                                                      \
                A rstd = (A)(1 / sqrt((double)var[c] + p->eps));                                                       \
                dot[c] *= rstd; /* dgamma */                                                                           \
                a[c] = ((A *)j->gamma)[first + c] * rstd;                                                              \
                b[c] = -a[c] * rstd * dot[c] / m;                                                                      \
                c_[c] = -a[c] * sum[c] / m - b[c] * mean[c];                                                           \
            }                                                                                                          \
            for (int64_t o = 0; o < p->outer; o++)                                                                     \
                for (int64_t c = 0; c < count; c++) {                                                                  \
                    int64_t at = (o * p->n + first + c) * inner;                                                       \
                    ISA_PICK(run_scale_two_##N)((T *)j->y + at, (const T *)j->dy + at, a[c], (const T *)j->x + at, b[c], c_[c], inner); \
                }                                                                                                      \
            store(p->weight_type, (char *)j->a + first * size_of(p->weight_type), 1, count, WIDE, dot);                \
            store(p->weight_type, (char *)j->b + first * size_of(p->weight_type), 1, count, WIDE, sum);                \
        }                                                                                                              \
    }

DRIVER(f32, float, float, 0)
DRIVER(f64, double, double, 1)
DRIVER(f16, f16, float, 0)
DRIVER(bf16, bf16, float, 0)

#define BY_TYPE(NAME, TYPE)                                                                       \
    ((TYPE) == DG_F32 ? NAME##_f32 : (TYPE) == DG_F64 ? NAME##_f64 : (TYPE) == DG_F16 ? NAME##_f16 : NAME##_bf16)

/* gamma and beta, either of which may be NULL, converted to the compute type into one buffer */
static void *weights_of(const dg_normalisation *p, const void *gamma, const void *beta) {
    int wide = p->type == DG_F64;
    int64_t size = wide ? 8 : 4;
    char *out = dg_alloc((size_t)(2 * p->n * size));
    if (out && gamma) load(p->weight_type, gamma, 1, p->n, wide, out);
    if (out && beta) load(p->weight_type, beta, 1, p->n, wide, out + p->n * size);
    return out;
}

static void *half_of(const dg_normalisation *p, void *weights) { return (char *)weights + p->n * (p->type == DG_F64 ? 8 : 4); }

int dg_layer_norm(const dg_normalisation *p, void *y, void *mean, void *rstd, const void *x, const void *gamma, const void *beta) {
    void *w = weights_of(p, gamma, beta);
    if (!w) return DG_NO_MEMORY;
    Norm j = {.p = p, .y = y, .a = mean, .b = rstd, .x = x, .gamma = w, .beta = half_of(p, w)};
    dg_parallel_for(BY_TYPE(layer_norm, p->type), (void *[]){&j}, p->outer, DG_MAX(1, 8192 / (p->n + 1)));
    dg_free(w);
    return DG_OK;
}

int dg_layer_norm_grad(const dg_normalisation *p, void *dx, void *dgamma, void *dbeta, const void *x, const void *gamma,
                       const void *mean, const void *rstd, const void *dy) {
    void *w = weights_of(p, gamma, 0);
    if (!w) return DG_NO_MEMORY;
    /* each chunk of rows has its own partial gradients of gamma and beta */
    int64_t chunks = DG_MAX(1, DG_MIN(DG_MIN(32, p->outer), p->outer * p->n / 8192));
    Norm j = {.p = p, .y = dx, .a = dgamma, .b = dbeta, .x = x, .dy = dy, .mean = mean, .stat = rstd, .gamma = w, .chunks = chunks};
    j.parts = dg_alloc((size_t)(chunks * 2 * p->n * (p->type == DG_F64 ? 8 : 4)));
    if (j.parts) {
        dg_parallel_chunks(BY_TYPE(layer_norm_grad, p->type), (void *[]){&j}, chunks);
        dg_parallel_for(BY_TYPE(merge, p->type), (void *[]){&j}, p->n, 2048);
        dg_free(j.parts);
    }
    dg_free(w);
    return j.parts ? DG_OK : DG_NO_MEMORY;
}

static int64_t channel_grain(const dg_normalisation *p) { return DG_MAX(1, 8192 / (p->outer * p->inner * channels_of(p) + 1)); }

int dg_batch_norm(const dg_normalisation *p, void *y, void *mean, void *var, const void *x, const void *gamma, const void *beta) {
    void *w = weights_of(p, gamma, beta);
    if (!w) return DG_NO_MEMORY;
    Norm j = {.p = p, .y = y, .a = mean, .b = var, .x = x, .gamma = w, .beta = half_of(p, w)};
    int64_t units = (p->n + channels_of(p) - 1) / channels_of(p);
    dg_parallel_for(BY_TYPE(batch_norm, p->type), (void *[]){&j}, units, channel_grain(p));
    dg_free(w);
    return DG_OK;
}

int dg_batch_norm_grad(const dg_normalisation *p, void *dx, void *dgamma, void *dbeta, const void *x, const void *gamma,
                       const void *mean, const void *var, const void *dy) {
    void *w = weights_of(p, gamma, 0);
    if (!w) return DG_NO_MEMORY;
    Norm j = {.p = p, .y = dx, .a = dgamma, .b = dbeta, .x = x, .dy = dy, .mean = mean, .stat = var, .gamma = w};
    int64_t units = (p->n + channels_of(p) - 1) / channels_of(p);
    dg_parallel_for(BY_TYPE(batch_norm_grad, p->type), (void *[]){&j}, units, channel_grain(p));
    dg_free(w);
    return DG_OK;
}
