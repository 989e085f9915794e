/* Reductions over any set of axes, argmax and argmin.
 *
 * Work is split into blocks by size alone. Each block has its own accumulator, and the blocks of one result are merged in order. Sums
 * are thus blocked, with an error that grows with the logarithm of the length; they run on all cores, with the same bits on any number
 * of them. */
#include "common.h"
#include "half.h"

#include <complex.h>
#include <math.h>

#define ISA_SOURCE "reduce.inc"
#include "isa.h"

enum { SUM, PROD, MAXIMUM, MINIMUM, ALL, ANY, OPS };

typedef struct {
    void (*run)(void *acc, const void *x, int64_t n);
    void (*rows)(void *acc, const void *x, int64_t n, int64_t rows, int64_t stride);
    void (*merge)(void *acc, const void *part, int64_t n);
    void (*short_)(void *acc, const void *x, int64_t n, int64_t results);
    int acc; /* accumulator type */
} Kernel;

#define PICK(NAME, ACC) (Kernel){ISA_PICK(run_##NAME), ISA_PICK(rows_##NAME), ISA_PICK(merge_##NAME), ISA_PICK(short_##NAME), ACC}
#define ONLY(NAME, ACC) (Kernel){run_##NAME##_base, rows_##NAME##_base, merge_##NAME##_base, short_##NAME##_base, ACC}

static Kernel pick(int64_t type, int64_t op) {
    if (type == DG_BOOL) { /* sums and maxima of bools are `any`, products and minima `all` */
        type = DG_U8;
        op = op == SUM || op == MAXIMUM ? ANY : op == PROD || op == MINIMUM ? ALL : op;
    }
#define CASES(CODE, N, ACC)                          \
    case CODE:                                       \
        switch (op) {                                \
        case SUM: return PICK(sum_##N, ACC);         \
        case PROD: return PICK(prod_##N, ACC);       \
        case MAXIMUM: return PICK(max_##N, ACC);     \
        case MINIMUM: return PICK(min_##N, ACC);     \
        case ALL: return PICK(all_##N, DG_U8);       \
        case ANY: return PICK(any_##N, DG_U8);       \
        }                                            \
        break;
#define UNSIGNED_CASES(CODE, N, SIGNED, ACC)         \
    case CODE:                                       \
        switch (op) {                                \
        case SUM: return PICK(sum_##SIGNED, ACC);    \
        case PROD: return PICK(prod_##SIGNED, ACC);  \
        case MAXIMUM: return PICK(max_##N, ACC);     \
        case MINIMUM: return PICK(min_##N, ACC);     \
        case ALL: return PICK(all_##SIGNED, DG_U8);  \
        case ANY: return PICK(any_##SIGNED, DG_U8);  \
        }                                            \
        break;
#define COMPLEX_CASES(CODE, N)                       \
    case CODE:                                       \
        switch (op) {                                \
        case SUM: return ONLY(sum_##N, CODE);        \
        case PROD: return ONLY(prod_##N, CODE);      \
        case ALL: return ONLY(all_##N, DG_U8);       \
        case ANY: return ONLY(any_##N, DG_U8);       \
        }                                            \
        break;
    switch (type) {
        CASES(DG_I8, i8, DG_I8)
        CASES(DG_I16, i16, DG_I16)
        CASES(DG_I32, i32, DG_I32)
        CASES(DG_I64, i64, DG_I64)
        UNSIGNED_CASES(DG_U8, u8, i8, DG_U8)
        UNSIGNED_CASES(DG_U16, u16, i16, DG_U16)
        UNSIGNED_CASES(DG_U32, u32, i32, DG_U32)
        UNSIGNED_CASES(DG_U64, u64, i64, DG_U64)
        CASES(DG_F16, f16, DG_F32)
        CASES(DG_BF16, bf16, DG_F32)
        CASES(DG_F32, f32, DG_F32)
        CASES(DG_F64, f64, DG_F64)
        COMPLEX_CASES(DG_C64, c64)
        COMPLEX_CASES(DG_C128, c128)
    }
    return (Kernel){0};
}

static const int64_t SIZES[DG_TYPES] = {1, 1, 2, 4, 8, 1, 2, 4, 8, 2, 2, 4, 8, 8, 16};

/* Fills n accumulators with the neutral element. */
static void start(void *acc, int64_t op, int acc_type, int64_t n) {
    int one = op == PROD || op == ALL;
    switch (acc_type) {
#define X(CODE, T, LOW, HIGH)                                                                              \
    case CODE: {                                                                                           \
        T v = op == MAXIMUM ? (T)(LOW) : op == MINIMUM ? (T)(HIGH) : (T)one, *a = acc;                     \
        for (int64_t i = 0; i < n; i++) a[i] = v;                                                          \
        break;                                                                                             \
    }
        X(DG_I8, int8_t, INT8_MIN, INT8_MAX)
        X(DG_I16, int16_t, INT16_MIN, INT16_MAX)
        X(DG_I32, int32_t, INT32_MIN, INT32_MAX)
        X(DG_I64, int64_t, INT64_MIN, INT64_MAX)
        X(DG_U8, uint8_t, 0, UINT8_MAX)
        X(DG_U16, uint16_t, 0, UINT16_MAX)
        X(DG_U32, uint32_t, 0, UINT32_MAX)
        X(DG_U64, uint64_t, 0, UINT64_MAX)
        X(DG_F32, float, -INFINITY, INFINITY)
        X(DG_F64, double, -INFINITY, INFINITY)
        X(DG_C64, float _Complex, 0, 0)
        X(DG_C128, double _Complex, 0, 0)
#undef X
    }
}

static void finish(void *out, const void *acc, int64_t type, int acc_type, int64_t n) {
    if (type == DG_F16 && acc_type == DG_F32) {
        for (int64_t i = 0; i < n; i++) ((f16 *)out)[i] = f16_store(((const float *)acc)[i]);
    } else if (type == DG_BF16 && acc_type == DG_F32) {
        for (int64_t i = 0; i < n; i++) ((bf16 *)out)[i] = bf16_store(((const float *)acc)[i]);
    } else {
        memcpy(out, acc, (size_t)(n * SIZES[acc_type]));
    }
}

#define BLOCK 65536 /* elements of one accumulator */
#define TILE 1024   /* adjacent accumulators */

typedef struct {
    const dg_reduction *p;
    Kernel k;
    const char *x;
    char *out, *parts;
    int64_t size, acc_size, out_size;
    int64_t reduced;            /* elements of one result; rows if the innermost axis is kept */
    int64_t blocks, block;      /* number and size of blocks of these */
    int64_t tile, tiles;        /* size and number of tiles of a kept innermost axis */
} Job;

static int64_t offset_of(int64_t i, int64_t n, const int64_t *shape, const int64_t *stride) {
    int64_t offset = 0;
    for (int64_t k = n - 1; k > 0; k--) {
        offset += i % shape[k] * stride[k];
        i /= shape[k];
    }
    return n ? offset + i * stride[0] : 0;
}

/* Innermost axis reduced: accumulates elements begin .. end of one result. */
static void reduce_runs(const Job *j, void *acc, const char *x, int64_t begin, int64_t end) {
    const dg_reduction *p = j->p;
    while (begin < end) {
        int64_t at = begin % p->inner, n = DG_MIN(p->inner - at, end - begin);
        int64_t offset = offset_of(begin / p->inner, p->nr, p->rshape, p->rstride) + at;
        j->k.run(acc, x + offset * j->size, n);
        begin += n;
    }
}

/* Innermost axis kept: accumulates rows begin .. end of n adjacent results. */
static void reduce_rows(const Job *j, void *acc, const char *x, int64_t n, int64_t begin, int64_t end) {
    const dg_reduction *p = j->p;
    int64_t run = p->rshape[p->nr - 1], stride = p->rstride[p->nr - 1];
    while (begin < end) {
        int64_t at = begin % run, rows = DG_MIN(run - at, end - begin);
        j->k.rows(acc, x + offset_of(begin, p->nr, p->rshape, p->rstride) * j->size, n, rows, stride);
        begin += rows;
    }
}

/* A work unit is (kept index, tile, block). */
static void reduce_task(void **args, int64_t begin, int64_t end) {
    const Job *j = args[0];
    const dg_reduction *p = j->p;
    double acc[2 * TILE];
    for (int64_t u = begin; u < end; u++) {
        int64_t block = u % j->blocks, tile = u / j->blocks % j->tiles, kept = u / j->blocks / j->tiles;
        int64_t first = block * j->block, last = DG_MIN(first + j->block, j->reduced);
        const char *x = j->x + offset_of(kept, p->nk, p->kshape, p->kstride) * j->size;
        int64_t n = 1, at = kept;
        if (p->inner_kept) {
            n = DG_MIN(j->tile, p->inner - tile * j->tile);
            at = kept * p->inner + tile * j->tile;
            x += tile * j->tile * j->size;
        }
        start(acc, p->op, j->k.acc, n);
        if (p->inner_kept) reduce_rows(j, acc, x, n, first, last);
        else reduce_runs(j, acc, x, first, last);
        if (j->blocks == 1) {
            finish(j->out + at * j->out_size, acc, p->type, j->k.acc, n);
        } else { /* parts: [kept][tile][block][n] */
            int64_t base = p->inner_kept ? (at - tile * j->tile) * j->blocks + tile * j->tile * j->blocks : at * j->blocks;
            memcpy(j->parts + (base + block * n) * j->acc_size, acc, (size_t)(n * j->acc_size));
        }
    }
}

/* Dense results of a few elements each: TILE results at a time. */
static void short_task(void **args, int64_t begin, int64_t end) {
    const Job *j = args[0];
    double acc[2 * TILE];
    for (int64_t i = begin; i < end; i += TILE) {
        int64_t n = DG_MIN(TILE, end - i);
        j->k.short_(acc, j->x + i * j->p->inner * j->size, j->p->inner, n);
        finish(j->out + i * j->out_size, acc, j->p->type, j->k.acc, n);
    }
}

static void merge_task(void **args, int64_t begin, int64_t end) {
    const Job *j = args[0];
    const dg_reduction *p = j->p;
    double acc[2 * TILE];
    for (int64_t u = begin; u < end; u++) {
        int64_t tile = u % j->tiles, kept = u / j->tiles, n = 1, at = kept;
        if (p->inner_kept) {
            n = DG_MIN(j->tile, p->inner - tile * j->tile);
            at = kept * p->inner + tile * j->tile;
        }
        const char *part = j->parts + at * j->blocks * j->acc_size;
        start(acc, p->op, j->k.acc, n);
        for (int64_t b = 0; b < j->blocks; b++) j->k.merge(acc, part + b * n * j->acc_size, n);
        finish(j->out + at * j->out_size, acc, p->type, j->k.acc, n);
    }
}

int dg_reduce(const dg_reduction *p, void *out, const void *x) {
    Job j = {.p = p, .k = pick(p->type, p->op), .x = x, .out = out, .size = SIZES[p->type], .tile = 1, .tiles = 1};
    if (!j.k.run) return DG_NO_KERNEL;
    j.acc_size = SIZES[j.k.acc];
    j.out_size = p->op == ALL || p->op == ANY ? 1 : j.size;
    int64_t kept = 1;
    j.reduced = 1;
    for (int64_t k = 0; k < p->nk; k++) kept *= p->kshape[k];
    for (int64_t k = 0; k < p->nr; k++) j.reduced *= p->rshape[k];
    j.block = BLOCK;
    int64_t width = 1;
    if (p->inner_kept) {
        width = p->inner;
        j.tile = TILE;
        j.tiles = (p->inner + TILE - 1) / TILE;
        j.block = DG_MAX(64, BLOCK / DG_MIN(TILE, DG_MAX(1, p->inner)));
    } else {
        j.reduced *= p->inner;
    }
    j.blocks = DG_MAX(1, (j.reduced + j.block - 1) / j.block);
    if (kept * width == 0) return DG_OK;
    void *args[] = {&j};
    if (!p->inner_kept && p->inner > 0 && p->inner < 48 && j.reduced == p->inner && p->nk == 1 && p->kstride[0] == p->inner) {
        dg_parallel_for(short_task, args, kept, DG_MAX(1, 16384 / p->inner));
        return DG_OK;
    }
    int64_t units = kept * j.tiles * j.blocks;
    int64_t work = DG_MIN(j.block, j.reduced) * DG_MIN(j.tile, width) + 8;
    if (j.blocks > 1 && !(j.parts = dg_alloc((size_t)(kept * width * j.blocks * j.acc_size)))) return DG_NO_MEMORY;
    dg_parallel_for(reduce_task, args, units, DG_MAX(1, 32768 / work));
    if (j.blocks > 1) {
        dg_parallel_for(merge_task, args, kept * j.tiles, DG_MAX(1, 32768 / (j.blocks * j.tile)));
        dg_free(j.parts);
    }
    return DG_OK;
}

/* ---- argmax, argmin: the first occurrence; a NaN wins ---- */

#define ARG_TILE 256

#define ARG(NAME, T, A, LOAD, BETTER)                                                                      \
    static void NAME(const dg_axis *p, int64_t *out, const void *x_, int64_t begin, int64_t end) {          \
        const T *x = x_;                                                                                   \
        int64_t tiles = (p->inner + ARG_TILE - 1) / ARG_TILE;                                              \
        for (int64_t u = begin; u < end; u++) {                                                            \
            int64_t o = u / tiles, first = u % tiles * ARG_TILE;                                           \
            int64_t m = DG_MIN(ARG_TILE, p->inner - first);                                                \
            const T *row = x + o * p->n * p->inner + first;                                                \
            int64_t *best = out + o * p->inner + first;                                                    \
            A value[ARG_TILE];                                                                             \
            for (int64_t c = 0; c < m; c++) value[c] = (A)LOAD(row[c]), best[c] = 0;                       \
            for (int64_t i = 1; i < p->n; i++) {                                                           \
                row += p->inner;                                                                           \
                for (int64_t c = 0; c < m; c++) {                                                          \
                    A v = (A)LOAD(row[c]);                                                                 \
                    int take = BETTER(v, value[c]);                                                        \
                    value[c] = take ? v : value[c];                                                        \
                    best[c] = take ? i : best[c];                                                          \
                }                                                                                          \
            }                                                                                              \
        }                                                                                                  \
    }

#define ID(v) (v)
#define GREATER(v, best) ((v) > (best))
#define LESS(v, best) ((v) < (best))
#define NAN_GREATER(v, best) (((v) > (best)) | (((v) != (v)) & ((best) == (best))))
#define NAN_LESS(v, best) (((v) < (best)) | (((v) != (v)) & ((best) == (best))))

#define EACH_ARG(X)                                                                                        \
    X(DG_BOOL, b8, uint8_t, uint8_t, ID, GREATER, LESS) X(DG_I8, i8, int8_t, int8_t, ID, GREATER, LESS)    \
    X(DG_I16, i16, int16_t, int16_t, ID, GREATER, LESS) X(DG_I32, i32, int32_t, int32_t, ID, GREATER, LESS) \
    X(DG_I64, i64, int64_t, int64_t, ID, GREATER, LESS) X(DG_U8, u8, uint8_t, uint8_t, ID, GREATER, LESS)  \
    X(DG_U16, u16, uint16_t, uint16_t, ID, GREATER, LESS)                                                  \
    X(DG_U32, u32, uint32_t, uint32_t, ID, GREATER, LESS)                                                  \
    X(DG_U64, u64, uint64_t, uint64_t, ID, GREATER, LESS)                                                  \
    X(DG_F16, f16, uint16_t, float, f16_load, NAN_GREATER, NAN_LESS)                                       \
    X(DG_BF16, bf16, uint16_t, float, bf16_load, NAN_GREATER, NAN_LESS)                                    \
    X(DG_F32, f32, float, float, ID, NAN_GREATER, NAN_LESS)                                                \
    X(DG_F64, f64, double, double, ID, NAN_GREATER, NAN_LESS)

#define X(CODE, N, T, A, LOAD, UP, DOWN) ARG(argmax_##N, T, A, LOAD, UP) ARG(argmin_##N, T, A, LOAD, DOWN)
EACH_ARG(X)
#undef X

static void arg_task(void **args, int64_t begin, int64_t end) {
    const dg_axis *p = args[0];
    int lowest = args[3] != 0;
    if (p->inner == 1 && p->n < INT32_MAX) {
        int64_t (*row)(const void *, int64_t) = 0;
#define X(CODE, N) \
    if (p->type == CODE) row = lowest ? ISA_PICK(argmin_row_##N) : ISA_PICK(argmax_row_##N);
        X(DG_F32, f32) X(DG_F64, f64) X(DG_F16, f16) X(DG_BF16, bf16) X(DG_I32, i32) X(DG_I64, i64)
#undef X
        for (int64_t u = begin; row && u < end; u++)
            ((int64_t *)args[1])[u] = row((const char *)args[2] + u * p->n * SIZES[p->type], p->n);
        if (row) return;
    }
    switch (p->type) {
#define X(CODE, N, T, A, LOAD, UP, DOWN) \
    case CODE: (lowest ? argmin_##N : argmax_##N)(p, args[1], args[2], begin, end); break;
        EACH_ARG(X)
#undef X
    }
}

static int arg(const dg_axis *p, void *out, const void *x, int lowest) {
    int64_t tiles = (p->inner + ARG_TILE - 1) / ARG_TILE;
    void *args[] = {(void *)p, out, (void *)x, lowest ? out : 0};
    dg_parallel_for(arg_task, args, p->outer * tiles, DG_MAX(1, 16384 / (p->n * DG_MIN(ARG_TILE, p->inner) + 1)));
    return DG_OK;
}

int dg_argmax(const dg_axis *p, void *out, const void *x) { return arg(p, out, x, 0); }
int dg_argmin(const dg_axis *p, void *out, const void *x) { return arg(p, out, x, 1); }
