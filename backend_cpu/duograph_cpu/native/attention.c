/* FlashAttention: attention and its gradient without the matrix of weights (Dao et al., 2022 and 2023).
 *
 * The forward pass streams blocks of keys, transposed once so that a vector holds one feature of adjacent keys, past panels of queries,
 * with an online softmax. The backward pass recomputes the weights of a block from the saved log-sums and adds to the gradients of its
 * keys, values and queries. Every operand is first copied into rows of LD elements of the compute type. This handles strides, layouts,
 * 16-bit floats and odd widths, and avoids cache set conflicts of rows a power of two apart. See README.md. */
#include "common.h"
#include "half.h"
#include "tile.h"

#include <math.h>
#if (defined(__x86_64__) || defined(__i386__)) && !defined(DG_NO_ISA)
#include <immintrin.h>
#endif

#define KEYS 128            /* keys of a block */
#define QUERIES 64          /* queries of a block of the backward pass */
#define MOST_QUERIES 512    /* queries of a work unit of the forward pass */
#define COLUMNS 128         /* features of a chunk */
#define LD 144              /* leading dimension of all rows: a chunk, or a block of keys, plus padding */
#define WIDE 16             /* widths are rounded up to the largest number of lanes */
#define STRIP_MOST 32
#define HEIGHT_MOST 14
#define PARTS 16            /* parts into which the backward pass splits long keys of few heads */
#define UNIT_FLOPS 400000.0 /* flops worth a thread */

#define UP(n, to) (((n) + (to)-1) / (to) * (to))
#define CHUNKS(depth) (((depth) + COLUMNS - 1) / COLUMNS)
#define SIZE(type) ((type) == DG_F64 ? 8 : (type) == DG_F32 ? 4 : 2)

typedef struct {
    const dg_attention *p;
    const char *q, *k, *v, *mask, *dout;
    char *out, *dq, *dk, *dv, *sums; /* sums: partial gradients of queries, [part][batch * heads][queries][features] */
    void *log_sum;
    int64_t rows, parts, width; /* queries of a work unit; parts of the keys; width of a row of sums */
    int *failed;
} Job;

/* Rows of a matrix to prefetch. */
typedef struct { const char *from; int64_t stride, rows, bytes; } Rows;

/* Prefetches part `step` of `steps` of the rows into L2. The rows of a head are short runs kilobytes apart, which hardware prefetchers
 * do not predict. */
static void fetch(const Rows *all, int count, int64_t step, int64_t steps) {
    for (const Rows *x = all; x < all + count; x++)
        for (int64_t r = x->rows * step / steps; r < x->rows * (step + 1) / steps; r++)
            for (int64_t at = 0; at < x->bytes; at += 64) __builtin_prefetch(x->from + r * x->stride + at, 0, 2);
}

#define ZIP_LOW_2 0, 2
#define ZIP_HIGH_2 1, 3
#define ZIP_LOW_4 0, 4, 1, 5
#define ZIP_HIGH_4 2, 6, 3, 7
#define ZIP_LOW_8 0, 8, 1, 9, 2, 10, 3, 11
#define ZIP_HIGH_8 4, 12, 5, 13, 6, 14, 7, 15
#define ZIP_LOW_16 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23
#define ZIP_HIGH_16 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31
#define ZIP_JOIN(name, n) name##n
#define ZIP_LOW(n) ZIP_JOIN(ZIP_LOW_, n)
#define ZIP_HIGH(n) ZIP_JOIN(ZIP_HIGH_, n)

#define ISA_SOURCE "attention.inc"
#include "isa.h"

#define PICK(job, name) ((job)->p->type == DG_F64 ? ISA_PICK(name##_f64) : ISA_PICK(name##_f32))

static int64_t bytes_of(const Job *j, int64_t elements) { return elements * (j->p->type == DG_F64 ? 8 : 4); }

static Rows rows_of(const void *x, int64_t type, const int64_t *strides, int64_t b, int64_t h, int64_t first, int64_t rows, int64_t width) {
    int64_t size = SIZE(type);
    return (Rows){(const char *)x + (b * strides[0] + h * strides[1] + first * strides[2]) * size, strides[2] * size, rows, width * size};
}

static void forward_task(void **args, int64_t begin, int64_t end) {
    const Job *j = args[0];
    const dg_attention *p = j->p;
    int64_t kn = DG_MIN(KEYS, UP(p->keys, STRIP_MOST)), units = (p->queries + j->rows - 1) / j->rows;
    int64_t elements = CHUNKS(p->depth) * (j->rows + STRIP_MOST) * LD + CHUNKS(p->value_depth) * kn * LD + kn * p->depth + HEIGHT_MOST * LD +
                       j->rows * (UP(p->value_depth, WIDE) + 2);
    void *scratch = dg_alloc((size_t)bytes_of(j, elements));
    if (!scratch) {
        __atomic_store_n(j->failed, 1, __ATOMIC_RELAXED);
        return;
    }
    for (int64_t u = begin; u < end; u++) {
        int64_t head = u / units, q = u % units * j->rows, n = DG_MIN(j->rows, p->queries - q);
        Rows soon[4] = {rows_of(j->out, p->type, p->o, head / p->heads, head % p->heads, q, n, p->value_depth)};
        int count = 1;
        if (u + 1 < end && (u + 1) % units == 0) { /* the next head */
            int64_t b = (head + 1) / p->heads, h = (head + 1) % p->heads, own = h / (p->heads / p->key_heads);
            soon[1] = rows_of(j->q, p->type, p->q, b, h, 0, DG_MIN(j->rows, p->queries), p->depth);
            soon[2] = rows_of(j->k, p->type, p->k, b, own, 0, DG_MIN(KEYS, p->keys), p->depth);
            soon[3] = rows_of(j->v, p->type, p->v, b, own, 0, DG_MIN(KEYS, p->keys), p->value_depth);
            count = 4;
        }
        PICK(j, forward)(j, scratch, head / p->heads, head % p->heads, q, n, soon, count);
    }
    dg_free(scratch);
}

static double flops(const dg_attention *p) { return (double)p->queries * (double)p->keys * (double)(p->depth + p->value_depth); }

static int forward_all(const dg_attention *p, void *out, void *log_sum, const void *q, const void *k, const void *v, const void *mask) {
    int failed = 0;
    int64_t heads = p->batch * p->heads;
    Job j = {.p = p, .out = out, .log_sum = log_sum, .q = q, .k = k, .v = v, .mask = mask, .rows = DG_MIN(p->queries, MOST_QUERIES), .failed = &failed};
    while (j.rows > 64 && heads * ((p->queries + j.rows - 1) / j.rows) < 4 * dg_threads()) j.rows = (j.rows + 1) / 2;
    int64_t units = (p->queries + j.rows - 1) / j.rows;
    double each = flops(p) / (double)units;
    dg_begin_stoppable();
    dg_parallel_for(forward_task, (void *[]){&j}, heads * units, 1 + (int64_t)(UNIT_FLOPS / (each + 1)));
    return dg_end_stoppable(failed ? DG_NO_MEMORY : DG_OK);
}

int dg_attention_forward(const dg_attention *p, void *out, void *log_sum, const void *q, const void *k, const void *v) {
    return forward_all(p, out, log_sum, q, k, v, 0);
}
int dg_attention_masked(const dg_attention *p, void *out, void *log_sum, const void *q, const void *k, const void *v, const void *mask) {
    return forward_all(p, out, log_sum, q, k, v, mask);
}

static void backward_task(void **args, int64_t begin, int64_t end) {
    const Job *j = args[0];
    const dg_attention *p = j->p;
    int64_t kn = DG_MIN(KEYS, UP(p->keys, STRIP_MOST)), nb = DG_MIN(QUERIES, p->queries), group = p->heads / p->key_heads;
    int64_t cd = CHUNKS(p->depth), cv = CHUNKS(p->value_depth), lq = p->queries, w = j->width, vw = UP(p->value_depth, WIDE);
    int64_t elements = cd * (kn + nb) * LD + kn * (p->depth + p->value_depth) + cv * (nb + STRIP_MOST) * LD + 2 * nb * LD +
                       kn * (w + vw) + group * lq;
    int64_t sums = j->sums ? 0 : group * lq * w;
    char *scratch = dg_alloc((size_t)bytes_of(j, elements + sums + 16));
    if (!scratch) {
        __atomic_store_n(j->failed, 1, __ATOMIC_RELAXED);
        return;
    }
    for (int64_t u = begin; u < end; u++) {
        int64_t part = u % j->parts, head = u / j->parts, b = head / p->key_heads, own = head % p->key_heads;
        int64_t blocks = (p->keys + KEYS - 1) / KEYS, k0 = blocks * part / j->parts * KEYS, k1 = DG_MIN(p->keys, blocks * (part + 1) / j->parts * KEYS);
        char *dq = j->sums ? j->sums + bytes_of(j, (part * p->batch * p->heads + head * group) * lq * w) : scratch + bytes_of(j, elements);
        Rows soon[8] = {rows_of(j->dk, p->type, p->k, b, own, k0, DG_MIN(KEYS, k1 - k0), p->depth),
                        rows_of(j->dv, p->type, p->v, b, own, k0, DG_MIN(KEYS, k1 - k0), p->value_depth)};
        int count = 2;
        if (!j->sums) soon[count++] = rows_of(j->dq, p->type, p->q, b, own * group, 0, DG_MIN(lq, MOST_QUERIES), p->depth);
        if (u + 1 < end && j->parts == 1) { /* the next head */
            int64_t nb_ = (head + 1) / p->key_heads, no = (head + 1) % p->key_heads, nq = DG_MIN(lq, MOST_QUERIES), nk = DG_MIN(KEYS, p->keys);
            soon[count++] = rows_of(j->out, p->type, p->o, nb_, no * group, 0, nq, p->value_depth);
            soon[count++] = rows_of(j->dout, p->type, p->o, nb_, no * group, 0, nq, p->value_depth);
            soon[count++] = rows_of(j->k, p->type, p->k, nb_, no, 0, nk, p->depth);
            soon[count++] = rows_of(j->v, p->type, p->v, nb_, no, 0, nk, p->value_depth);
            soon[count++] = rows_of(j->q, p->type, p->q, nb_, no * group, 0, nq, p->depth);
        }
        PICK(j, backward)(j, scratch, b, own, k0, k1, dq, soon, count);
        if (!j->sums)
            for (int64_t r = 0; r < group * lq; r++)
                PICK(j, finish)(j, b, own * group + r / lq, r % lq, dq + bytes_of(j, r * j->width), 1, 0);
    }
    dg_free(scratch);
}

static void finish_task(void **args, int64_t begin, int64_t end) {
    const Job *j = args[0];
    const dg_attention *p = j->p;
    int64_t rows = p->batch * p->heads * p->queries;
    for (int64_t r = begin; r < end; r++) {
        int64_t head = r / p->queries;
        PICK(j, finish)(j, head / p->heads, head % p->heads, r % p->queries, j->sums + bytes_of(j, r * j->width), j->parts, rows * j->width);
    }
}

static int backward_all(const dg_attention *p, void *dq, void *dk, void *dv, const void *q, const void *k, const void *v, const void *mask,
                        const void *out, const void *log_sum, const void *dout) {
    int failed = 0;
    int64_t heads = p->batch * p->key_heads, rows = p->batch * p->heads * p->queries, blocks = (p->keys + KEYS - 1) / KEYS;
    Job j = {.p = p, .q = q, .k = k, .v = v, .mask = mask, .out = (char *)out, .log_sum = (void *)log_sum, .dout = dout, .dq = dq, .dk = dk, .dv = dv,
             .width = UP(p->depth, WIDE), .failed = &failed};
    /* The parts determine the summation order, so they depend on sizes only. */
    j.parts = DG_MAX(1, DG_MIN(blocks / 2, PARTS / heads));
    if (j.parts > 1) {
        j.sums = dg_alloc((size_t)bytes_of(&j, j.parts * rows * j.width));
        if (!j.sums) return DG_NO_MEMORY;
    }
    double each = 2.5 * flops(p) * (double)(p->heads / p->key_heads) / (double)j.parts;
    dg_begin_stoppable();
    dg_parallel_for(backward_task, (void *[]){&j}, heads * j.parts, 1 + (int64_t)(UNIT_FLOPS / (each + 1)));
    if (j.sums && !failed) dg_parallel_for(finish_task, (void *[]){&j}, rows, 1 + 16384 / (j.width * j.parts));
    dg_free(j.sums);
    return dg_end_stoppable(failed ? DG_NO_MEMORY : DG_OK);
}

int dg_attention_grad(const dg_attention *p, void *dq, void *dk, void *dv, const void *q, const void *k, const void *v, const void *out,
                      const void *log_sum, const void *dout) {
    return backward_all(p, dq, dk, dv, q, k, v, 0, out, log_sum, dout);
}
int dg_attention_grad_masked(const dg_attention *p, void *dq, void *dk, void *dv, const void *q, const void *k, const void *v, const void *mask,
                             const void *out, const void *log_sum, const void *dout) {
    return backward_all(p, dq, dk, dv, q, k, v, mask, out, log_sum, dout);
}

/* Offsets in bytes of keys and values in a row that holds all three. */
#define KEYS_AT(p) ((p)->heads * (p)->depth * SIZE((p)->type))
#define VALUES_AT(p) (((p)->heads + (p)->key_heads) * (p)->depth * SIZE((p)->type))

int dg_self_attention_masked(const dg_attention *p, void *out, void *log_sum, const void *x, const void *mask) {
    return forward_all(p, out, log_sum, x, (const char *)x + KEYS_AT(p), (const char *)x + VALUES_AT(p), mask);
}
int dg_self_attention(const dg_attention *p, void *out, void *log_sum, const void *x) {
    return dg_self_attention_masked(p, out, log_sum, x, 0);
}
int dg_self_attention_grad_masked(const dg_attention *p, void *dx, const void *x, const void *mask, const void *out, const void *log_sum,
                                  const void *dout) {
    return backward_all(p, dx, (char *)dx + KEYS_AT(p), (char *)dx + VALUES_AT(p), x, (const char *)x + KEYS_AT(p), (const char *)x + VALUES_AT(p),
                        mask, out, log_sum, dout);
}
int dg_self_attention_grad(const dg_attention *p, void *dx, const void *x, const void *out, const void *log_sum, const void *dout) {
    return dg_self_attention_grad_masked(p, dx, x, 0, out, log_sum, dout);
}
