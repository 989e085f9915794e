/* Data movement: kernels that copy elements by item size without looking at their values. */
#include "common.h"

#define COPY_GRAIN (256 << 10) /* bytes worth a chunk of the thread pool */

typedef struct { uint64_t low, high; } u128;

#define EACH_SIZE(X) X(1, uint8_t) X(2, uint16_t) X(4, uint32_t) X(8, uint64_t) X(16, u128)

/* ---- plain copies and fills ---- */

static void copy_task(void **args, int64_t begin, int64_t end) {
    memcpy((char *)args[0] + begin, (char *)args[1] + begin, (size_t)(end - begin));
}

void dg_copy(void *out, const void *x, int64_t bytes) {
    dg_parallel_for(copy_task, (void *[]){out, (void *)x}, bytes, COPY_GRAIN);
}

/* Repeats an item of any size over n items. */
static void fill_items(void *out, const void *value, int64_t itemsize, int64_t n) {
    switch (itemsize) {
#define X(S, T)                                            \
    case S: {                                              \
        T v, *o = out;                                     \
        memcpy(&v, value, S);                              \
        for (int64_t i = 0; i < n; i++) o[i] = v;          \
        break;                                             \
    }
        EACH_SIZE(X)
#undef X
    }
}

static void fill_task(void **args, int64_t begin, int64_t end) {
    int64_t itemsize = *(int64_t *)args[2];
    fill_items((char *)args[0] + begin * itemsize, args[1], itemsize, end - begin);
}

static void fill(void *out, const unsigned char *value, int64_t itemsize, int64_t bytes) {
    dg_parallel_for(fill_task, (void *[]){out, (void *)value, &itemsize}, bytes / itemsize, COPY_GRAIN / itemsize);
}

int dg_fill(const dg_filling *p, void *out) {
    fill(out, p->value, p->itemsize, p->bytes);
    return DG_OK;
}

/* ---- iota ---- */

#define EACH_REAL(X) \
    X(DG_I8, int8_t) X(DG_I16, int16_t) X(DG_I32, int32_t) X(DG_I64, int64_t) X(DG_U8, uint8_t) \
    X(DG_U16, uint16_t) X(DG_U32, uint32_t) X(DG_U64, uint64_t) X(DG_F32, float) X(DG_F64, double)

static void iota_task(void **args, int64_t begin, int64_t end) {
    const dg_axis *p = args[0];
    switch (p->type) {
#define X(CODE, T)                                                           \
    case CODE: {                                                             \
        T *o = args[1];                                                      \
        if (p->inner == 1 && p->outer == 1) {                                \
            for (int64_t i = begin; i < end; i++) o[i] = (T)i;               \
            break;                                                           \
        }                                                                    \
        for (int64_t row = begin; row < end; row += p->inner - row % p->inner) { \
            int64_t stop = DG_MIN(end, row - row % p->inner + p->inner);     \
            T v = (T)(row / p->inner % p->n);                                \
            for (int64_t i = row; i < stop; i++) o[i] = v;                   \
        }                                                                    \
        break;                                                               \
    }
        EACH_REAL(X)
#undef X
    }
}

int dg_iota(const dg_axis *p, void *out) {
    dg_parallel_for(iota_task, (void *[]){(void *)p, out}, p->outer * p->n * p->inner, 16384);
    return DG_OK;
}

/* ---- copies with strides ---- */

/* Copies one run of n items; strides count items. */
static void copy_run(char *dst, int64_t ds, const char *src, int64_t ss, int64_t n, int64_t itemsize) {
    if (ds == 1 && ss == 1) {
        memcpy(dst, src, (size_t)(n * itemsize));
        return;
    }
    if (ds == 1 && ss == 0) {
        fill_items(dst, src, itemsize, n);
        return;
    }
    switch (itemsize) {
#define X(S, T)                                                            \
    case S: {                                                              \
        T *d = (T *)dst;                                                   \
        const T *s = (const T *)src;                                       \
        if (ds == 1 && ss == 2)                                            \
            for (int64_t i = 0; i < n; i++) d[i] = s[2 * i];               \
        else if (ds == 1 && ss == -1)                                      \
            for (int64_t i = 0; i < n; i++) d[i] = s[-i];                  \
        else if (ds == 1)                                                  \
            for (int64_t i = 0; i < n; i++) d[i] = s[i * ss];              \
        else                                                               \
            for (int64_t i = 0; i < n; i++) d[i * ds] = s[i * ss];         \
        break;                                                             \
    }
        EACH_SIZE(X)
#undef X
    }
}

#define TILE 32

/* Four rows of four words, transposed. */
static inline void transpose_four(uint32_t *d, int64_t di, const uint32_t *s, int64_t sj) {
    typedef uint32_t four __attribute__((vector_size(16), aligned(4), may_alias));
#define ROW(P, STEP, R) (*(four *)((P) + (R) * (STEP)))
    four a = ROW(s, sj, 0), b = ROW(s, sj, 1), c = ROW(s, sj, 2), e = ROW(s, sj, 3);
    four x = __builtin_shufflevector(a, b, 0, 4, 1, 5), y = __builtin_shufflevector(a, b, 2, 6, 3, 7);
    four z = __builtin_shufflevector(c, e, 0, 4, 1, 5), w = __builtin_shufflevector(c, e, 2, 6, 3, 7);
    ROW(d, di, 0) = __builtin_shufflevector(x, z, 0, 1, 4, 5), ROW(d, di, 1) = __builtin_shufflevector(x, z, 2, 3, 6, 7);
    ROW(d, di, 2) = __builtin_shufflevector(y, w, 0, 1, 4, 5), ROW(d, di, 3) = __builtin_shufflevector(y, w, 2, 3, 6, 7);
#undef ROW
}

/* `transpose_block` for one word size. */
static void turn_words(uint32_t *restrict d, int64_t di, const uint32_t *restrict s, int64_t sj, int64_t ni, int64_t nj) {
    if (nj == 3 && di == 3) { /* the colour planes of an image */
        for (int64_t i = 0; i < ni; i++) d[3 * i] = s[i], d[3 * i + 1] = s[sj + i], d[3 * i + 2] = s[2 * sj + i];
        return;
    }
    int64_t i4 = ni & ~(int64_t)3, j4 = nj & ~(int64_t)3;
    for (int64_t j0 = 0; j0 < j4; j0 += TILE)
        for (int64_t i0 = 0; i0 < i4; i0 += 16)
            for (int64_t i = i0; i < DG_MIN(i4, i0 + 16); i += 4)
                for (int64_t j = j0; j < DG_MIN(j4, j0 + TILE); j += 4) transpose_four(d + i * di + j, di, s + j * sj + i, sj);
    for (int64_t i = i4; i < ni; i++)
        for (int64_t j = 0; j < j4; j++) d[i * di + j] = s[j * sj + i];
    for (int64_t i = 0; i < ni; i++)
        for (int64_t j = j4; j < nj; j++) d[i * di + j] = s[j * sj + i];
}

/* Copies a transposed block: dst is dense along j, src along i. Works in tiles, so that all of a source cache line is used before it is
 * evicted. */
static void copy_transposed(char *dst, int64_t di, const char *src, int64_t sj, int64_t ni, int64_t nj, int64_t itemsize) {
    if (itemsize == 4) {
        turn_words((uint32_t *)dst, di, (const uint32_t *)src, sj, ni, nj);
        return;
    }
    switch (itemsize) {
#define X(S, T)                                                                              \
    case S: {                                                                                \
        T *d = (T *)dst;                                                                     \
        const T *s = (const T *)src;                                                         \
        int64_t j0 = 0;                                                                      \
        for (; j0 + TILE <= nj; j0 += TILE) {                                                \
            int64_t i0 = 0;                                                                  \
            for (; i0 + 8 <= ni; i0 += 8) {                                                  \
                T tile[TILE][8];                                                             \
                for (int j = 0; j < TILE; j++) memcpy(tile[j], s + (j0 + j) * sj + i0, sizeof tile[j]); \
                for (int i = 0; i < 8; i++)                                                  \
                    for (int j = 0; j < TILE; j++) d[(i0 + i) * di + j0 + j] = tile[j][i];   \
            }                                                                                \
            for (; i0 < ni; i0++)                                                            \
                for (int j = 0; j < TILE; j++) d[i0 * di + j0 + j] = s[(j0 + j) * sj + i0];  \
        }                                                                                    \
        for (int64_t i = 0; i < ni; i++)                                                     \
            for (int64_t j = j0; j < nj; j++) d[i * di + j] = s[j * sj + i];                 \
        break;                                                                               \
    }
        EACH_SIZE(X)
#undef X
    }
}

/* The outer axes of an n-dimensional copy; the inner ones are handled within a chunk. */
typedef struct {
    const dg_nd *p;
    char *dst;
    const char *src;
    int outer[16], nouter;
    int last, across; /* across: dense axis of the source in a transposing copy, else -1 */
} Walk;

static void nd_task(void **args, int64_t begin, int64_t end) {
    Walk *w = args[0];
    const dg_nd *p = w->p;
    int64_t size = p->itemsize, at[16], d = 0, s = 0, rest = begin;
    for (int k = w->nouter - 1; k >= 0; k--) {
        int a = w->outer[k];
        at[k] = rest % p->shape[a];
        rest /= p->shape[a];
        d += at[k] * p->dst[a];
        s += at[k] * p->src[a];
    }
    int last = w->last, across = w->across;
    int64_t n = p->shape[last], ds = p->dst[last], ss = p->src[last];
    for (int64_t i = begin; i < end; i++) {
        if (across >= 0)
            copy_transposed(w->dst + d * size, p->dst[across], w->src + s * size, ss, p->shape[across], n, size);
        else
            copy_run(w->dst + d * size, ds, w->src + s * size, ss, n, size);
        for (int k = w->nouter - 1; k >= 0; k--) {
            int a = w->outer[k];
            d += p->dst[a];
            s += p->src[a];
            if (++at[k] < p->shape[a]) break;
            d -= at[k] * p->dst[a];
            s -= at[k] * p->src[a];
            at[k] = 0;
        }
    }
}

/* A transposing copy without outer axes: split over the axis of dst rows. */
static void transpose_task(void **args, int64_t begin, int64_t end) {
    Walk *w = args[0];
    const dg_nd *p = w->p;
    int64_t size = p->itemsize, di = p->dst[w->across];
    copy_transposed(w->dst + begin * di * size, di, w->src + begin * size, p->src[w->last], end - begin,
                    p->shape[w->last], size);
}

static void run_task(void **args, int64_t begin, int64_t end) {
    Walk *w = args[0];
    const dg_nd *p = w->p;
    int64_t ds = p->dst[0], ss = p->src[0], size = p->itemsize;
    copy_run(w->dst + begin * ds * size, ds, w->src + begin * ss * size, ss, end - begin, size);
}

static void nd_copy(const dg_nd *p, void *dst, const void *src) {
    Walk w = {.p = p, .dst = (char *)dst + p->dst_offset * p->itemsize,
              .src = (const char *)src + p->src_offset * p->itemsize, .across = -1};
    void *args[] = {&w};
    if (p->ndim == 0) {
        memcpy(w.dst, w.src, (size_t)p->itemsize);
        return;
    }
    int64_t total = 1;
    for (int64_t k = 0; k < p->ndim; k++) total *= p->shape[k];
    if (total == 0) return;
    int64_t grain = DG_MAX(1, COPY_GRAIN / 4 / p->itemsize);
    w.last = (int)p->ndim - 1;
    if (p->ndim == 1) {
        dg_parallel_for(run_task, args, p->shape[0], grain);
        return;
    }
    int64_t unit = p->shape[w.last];
    if (p->dst[w.last] == 1 && p->src[w.last] != 1 && p->src[w.last] != 0)
        for (int k = 0; k < w.last; k++)
            if (p->src[k] == 1 && p->shape[k] >= 4) w.across = k;
    if (w.across >= 0) {
        unit *= p->shape[w.across];
        if (p->ndim == 2) {
            dg_parallel_for(transpose_task, args, p->shape[w.across], DG_MAX(8, grain / p->shape[w.last]));
            return;
        }
    }
    for (int k = 0; k < w.last; k++)
        if (k != w.across) w.outer[w.nouter++] = k;
    dg_parallel_for(nd_task, args, total / unit, DG_MAX(1, grain / unit));
}

int dg_strided_copy(const dg_nd *p, void *out, const void *x) {
    nd_copy(p, out, x);
    return DG_OK;
}

int dg_slice_update(const dg_nd *p, void *out, const void *x, const void *v) {
    dg_copy(out, x, p->bytes);
    nd_copy(p, out, v);
    return DG_OK;
}

int dg_pad(const dg_nd *p, void *out, const void *x) {
    fill(out, p->value, p->itemsize, p->bytes);
    nd_copy(p, out, x);
    return DG_OK;
}

/* ---- concat ---- */

static void concat_task(void **args, int64_t begin, int64_t end) {
    const dg_joining *p = args[0];
    const char **xs = args[2];
    for (int64_t i = begin; i < end; i++) {
        char *out = (char *)args[1] + i * p->total;
        for (int64_t k = 0; k < p->count; k++) {
            memcpy(out, xs[k] + i * p->rows[k], (size_t)p->rows[k]);
            out += p->rows[k];
        }
    }
}

int dg_concat(const dg_joining *p, void *out, const void **xs) {
    if (p->outer == 1) {
        char *o = out;
        for (int64_t k = 0; k < p->count; k++) {
            dg_copy(o, xs[k], p->rows[k]);
            o += p->rows[k];
        }
        return DG_OK;
    }
    dg_parallel_for(concat_task, (void *[]){(void *)p, out, xs}, p->outer, DG_MAX(1, COPY_GRAIN / DG_MAX(1, p->total)));
    return DG_OK;
}
