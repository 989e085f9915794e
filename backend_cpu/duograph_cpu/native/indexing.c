/* Gather and scatter. Indices of any type are first converted to int64 offsets, with range checks; negative ones count from the end. */
#include "common.h"
#include "half.h"

#include <complex.h>

static _Thread_local int64_t index_error[2];

void dg_index_error(int64_t *out) { memcpy(out, index_error, sizeof index_error); }

#define EACH_INDEX(X)                                                                                   \
    X(DG_I8, int8_t) X(DG_I16, int16_t) X(DG_I32, int32_t) X(DG_I64, int64_t) X(DG_U8, uint8_t) X(DG_U16, uint16_t) \
    X(DG_U32, uint32_t) X(DG_U64, uint64_t)

typedef struct { const void *indices; int64_t type, n, *out; int *bad; } Reading;

static void read_task(void **args, int64_t begin, int64_t end) {
    const Reading *r = args[0];
    int bad = 0;
    switch (r->type) {
#define X(CODE, T)                                               \
    case CODE: {                                                 \
        const T *from = r->indices;                              \
        for (int64_t i = begin; i < end; i++) {                  \
            int64_t v = (int64_t)from[i];                        \
            v = v < 0 ? v + r->n : v;                            \
            bad |= (uint64_t)v >= (uint64_t)r->n;                \
            r->out[i] = v;                                       \
        }                                                        \
        break;                                                   \
    }
        EACH_INDEX(X)
#undef X
    default: bad = 1;
    }
    if (bad) __atomic_store_n(r->bad, 1, __ATOMIC_RELAXED);
}

/* Returns the indices as offsets 0 .. n-1, which the caller frees; NULL with *code set if one is out of range. */
static int64_t *read_indices(const void *indices, int64_t type, int64_t count, int64_t n, int *code) {
    int bad = 0;
    int64_t *out = dg_alloc((size_t)count * 8);
    if (!out) {
        *code = DG_NO_MEMORY;
        return 0;
    }
    Reading r = {indices, type, n, out, &bad};
    dg_parallel_for(read_task, (void *[]){&r}, count, 65536);
    if (!bad) return out;
    dg_free(out);
    dg_wrong_index(indices, type, count, n);
    *code = DG_INDEX;
    return 0;
}

int dg_wrong_index(const void *indices, int64_t type, int64_t count, int64_t n) {
    switch (type) {
#define X(CODE, T)                                                       \
    case CODE:                                                           \
        for (int64_t i = 0; i < count; i++) {                            \
            int64_t given = (int64_t)((const T *)indices)[i];            \
            if ((uint64_t)(given < 0 ? given + n : given) < (uint64_t)n) continue; \
            index_error[0] = given;                                      \
            index_error[1] = n;                                          \
            return 1;                                                    \
        }                                                                \
        break;
        EACH_INDEX(X)
#undef X
    }
    return 0;
}

int dg_checked_labels(const dg_indexing *p, void *out, const void *labels) {
    switch (p->index_type) {
#define X(CODE, T)                                                       \
    case CODE: {                                                         \
        const T *from = labels;                                          \
        int bad = 0;                                                     \
        for (int64_t i = 0; i < p->count; i++)                           \
            bad |= (uint64_t)(int64_t)from[i] >= (uint64_t)p->n;         \
        for (int64_t i = 0; bad && i < p->count; i++) {                  \
            if ((uint64_t)(int64_t)from[i] < (uint64_t)p->n) continue;   \
            index_error[0] = (int64_t)from[i];                           \
            index_error[1] = p->n;                                       \
            return DG_INDEX;                                             \
        }                                                                \
        break;                                                           \
    }
        EACH_INDEX(X)
#undef X
    }
    memcpy(out, labels, (size_t)(p->count * p->itemsize));
    return DG_OK;
}

typedef struct { uint64_t low, high; } u128;
#define EACH_SIZE(X) X(1, uint8_t) X(2, uint16_t) X(4, uint32_t) X(8, uint64_t) X(16, u128)

/* ---- whole slices along an axis ---- */

static void gather_task(void **args, int64_t begin, int64_t end) {
    const dg_indexing *p = args[0];
    const int64_t *at = args[3];
    int64_t bytes = p->inner * p->itemsize;
    char *out = (char *)args[1] + begin * bytes;
    int64_t o = begin / p->count, k = begin % p->count;
    const char *x = (const char *)args[2] + o * p->n * bytes;
    if (p->inner == 1)
        switch (p->itemsize) {
#define X(S, T)                                                         \
    case S:                                                             \
        for (int64_t i = begin; i < end; i++) {                         \
            ((T *)args[1])[i] = ((const T *)x)[at[k]];                  \
            if (++k == p->count) k = 0, x += p->n * S;                  \
        }                                                               \
        return;
            EACH_SIZE(X)
#undef X
        }
    for (int64_t i = begin; i < end; i++, out += bytes) {
        memcpy(out, x + at[k] * bytes, (size_t)bytes);
        if (++k == p->count) k = 0, x += p->n * bytes;
    }
}

int dg_gather(const dg_indexing *p, void *out, const void *x, const void *indices) {
    int code = DG_OK;
    if (p->count == 0) return DG_OK;
    int64_t *at = read_indices(indices, p->index_type, p->count, p->n, &code);
    if (!at) return code;
    dg_parallel_for(gather_task, (void *[]){(void *)p, out, (void *)x, at}, p->outer * p->count,
                    DG_MAX(1, 65536 / (p->inner * p->itemsize + 8)));
    dg_free(at);
    return DG_OK;
}

/* out[i] += v[i] for n elements */
static void add_run(void *out, const void *v, int64_t n, int64_t type) {
    switch (type) {
#define X(CODE, T)                                                                    \
    case CODE:                                                                        \
        for (int64_t i = 0; i < n; i++) ((T *)out)[i] += ((const T *)v)[i];           \
        break;
        EACH_INDEX(X)
        X(DG_F32, float) X(DG_F64, double) X(DG_C64, float _Complex) X(DG_C128, double _Complex)
#undef X
    case DG_BOOL:
        for (int64_t i = 0; i < n; i++) ((uint8_t *)out)[i] |= ((const uint8_t *)v)[i];
        break;
    case DG_F16:
        for (int64_t i = 0; i < n; i++)
            ((f16 *)out)[i] = f16_store(f16_load(((f16 *)out)[i]) + f16_load(((const f16 *)v)[i]));
        break;
    case DG_BF16:
        for (int64_t i = 0; i < n; i++)
            ((bf16 *)out)[i] = bf16_store(bf16_load(((bf16 *)out)[i]) + bf16_load(((const bf16 *)v)[i]));
        break;
    }
}

#define SCATTER_TILE 512

/* A work unit is a strip of columns of one outer index; it processes all indices in order, so duplicates are applied in order. */
static void scatter_task(void **args, int64_t begin, int64_t end) {
    const dg_indexing *p = args[0];
    const int64_t *at = args[3];
    int64_t strips = (p->inner + SCATTER_TILE - 1) / SCATTER_TILE;
    for (int64_t u = begin; u < end; u++) {
        int64_t o = u / strips, first = u % strips * SCATTER_TILE, n = DG_MIN(SCATTER_TILE, p->inner - first);
        char *out = (char *)args[1] + (o * p->n * p->inner + first) * p->itemsize;
        const char *v = (const char *)args[2] + (o * p->count * p->inner + first) * p->itemsize;
        int64_t row = p->inner * p->itemsize;
        if (p->add && p->type == DG_F32 && n == 1)
            for (int64_t k = 0; k < p->count; k++) *(float *)(out + at[k] * row) += *(const float *)(v + k * row);
        else if (p->add)
            for (int64_t k = 0; k < p->count; k++) add_run(out + at[k] * row, v + k * row, n, p->type);
        else
            for (int64_t k = 0; k < p->count; k++) memcpy(out + at[k] * row, v + k * row, (size_t)(n * p->itemsize));
    }
}

int dg_scatter(const dg_indexing *p, void *out, const void *x, const void *indices, const void *updates) {
    int code = DG_OK;
    int64_t *at = 0;
    if (p->count && !(at = read_indices(indices, p->index_type, p->count, p->n, &code))) return code;
    dg_copy(out, x, p->outer * p->n * p->inner * p->itemsize);
    if (p->count == 0) return DG_OK;
    int64_t strips = (p->inner + SCATTER_TILE - 1) / SCATTER_TILE;
    dg_parallel_for(scatter_task, (void *[]){(void *)p, out, (void *)updates, at}, p->outer * strips,
                    DG_MAX(1, 16384 / (p->count * DG_MIN(SCATTER_TILE, p->inner) + 1)));
    dg_free(at);
    return DG_OK;
}

/* ---- single elements along one axis ---- */

typedef struct { const dg_elements *p; char *out; const char *x; const int64_t *at; } Elements;

/* Indices along the last axis. */
static void gather_elements_task(void **args, int64_t begin, int64_t end) {
    const Elements *e = args[0];
    const dg_elements *p = e->p;
    int last = (int)p->ndim - 1;
    int64_t n = p->shape[last], step = p->axis == last ? 0 : p->stride[last], jump = p->stride[p->axis];
    for (int64_t row = begin; row < end; row++) {
        int64_t offset = 0, rest = row;
        for (int k = last - 1; k >= 0; k--) {
            if (k != p->axis) offset += rest % p->shape[k] * p->stride[k];
            rest /= p->shape[k];
        }
        const int64_t *at = e->at + row * n;
        switch (p->itemsize) {
#define X(S, T)                                                                                           \
    case S:                                                                                               \
        for (int64_t i = 0; i < n; i++)                                                                   \
            ((T *)e->out)[row * n + i] = ((const T *)e->x)[offset + i * step + at[i] * jump];             \
        break;
            EACH_SIZE(X)
#undef X
        }
    }
}

int dg_gather_elements(const dg_elements *p, void *out, const void *x, const void *indices) {
    int code = DG_OK;
    int64_t count = 1;
    for (int64_t k = 0; k < p->ndim; k++) count *= p->shape[k];
    if (count == 0) return DG_OK;
    int64_t *at = read_indices(indices, p->index_type, count, p->n, &code);
    if (!at) return code;
    Elements e = {p, out, x, at};
    int64_t n = p->shape[p->ndim - 1];
    dg_parallel_for(gather_elements_task, (void *[]){&e}, count / n, DG_MAX(1, 8192 / n));
    dg_free(at);
    return DG_OK;
}

/* Scatters line by line along the indexed axis; lines write disjoint elements. */
static void scatter_elements_task(void **args, int64_t begin, int64_t end) {
    const Elements *e = args[0];
    const dg_elements *p = e->p;
    int64_t inner = 1, n = p->shape[p->axis], jump = p->stride[p->axis], size = p->itemsize;
    for (int64_t k = p->axis + 1; k < p->ndim; k++) inner *= p->shape[k];
    for (int64_t line = begin; line < end; line++) {
        int64_t offset = 0, rest = line;
        for (int64_t k = p->ndim - 1; k >= 0; k--) {
            if (k == p->axis) continue;
            offset += rest % p->shape[k] * p->stride[k];
            rest /= p->shape[k];
        }
        int64_t from = line / inner * n * inner + line % inner;
        for (int64_t i = 0; i < n; i++, from += inner) {
            char *out = e->out + (offset + e->at[from] * jump) * size;
            if (p->add) add_run(out, e->x + from * size, 1, p->type);
            else memcpy(out, e->x + from * size, (size_t)size);
        }
    }
}

int dg_scatter_elements(const dg_elements *p, void *out, const void *x, const void *indices, const void *updates) {
    int code = DG_OK;
    int64_t count = 1;
    for (int64_t k = 0; k < p->ndim; k++) count *= p->shape[k];
    int64_t *at = 0;
    if (count && !(at = read_indices(indices, p->index_type, count, p->n, &code))) return code;
    dg_copy(out, x, p->total);
    if (count == 0) return DG_OK;
    Elements e = {p, out, updates, at};
    int64_t n = p->shape[p->axis];
    dg_parallel_for(scatter_elements_task, (void *[]){&e}, count / n, DG_MAX(1, 4096 / n));
    dg_free(at);
    return DG_OK;
}
