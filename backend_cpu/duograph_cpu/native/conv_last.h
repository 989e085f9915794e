/* Convolutions of tensors whose channels lie innermost; see conv_last.c. */
#ifndef DG_CONV_LAST_H
#define DG_CONV_LAST_H

#include "common.h"
#if defined(__x86_64__) || defined(__i386__)
#include <immintrin.h>
#endif

#define DG_LAST_DEPTH 256 /* of a block: a panel of rows and a strip of weights fit into the first-level cache */

/* What an epilogue that is affine does with a vector: min(max(value * scale + bias + more, low), high). Without scale, bias or more these are NULL.
 * `zero` is added to the bias: 0 where `low` is 0, so that no sum is -0, else -0, which changes nothing. */
typedef struct {
    const float *scale, *bias, *more;
    int64_t ld; /* of more */
    float low, high, zero;
} dg_finish;

/* That of an epilogue for elements from `at` on, which begin with a channel; or NULL. */
static inline const dg_finish *dg_finish_of(dg_finish *to, const dg_epilogue *e, int64_t channel, int64_t at, int64_t ld) {
    if (!e || !e->affine) return 0;
    const dg_affine *a = e->affine;
    *to = (dg_finish){.scale = a->scale < 0 ? 0 : (const float *)e->args[a->scale] + channel, .bias = a->bias < 0 ? 0 : (const float *)e->args[a->bias] + channel,
                      .more = a->more < 0 ? 0 : (const float *)e->args[a->more] + at, .ld = ld, .low = (float)a->low, .high = (float)a->high,
                      .zero = a->low == 0 ? 0.0f : -0.0f};
    return to;
}

/* The same for one value. */
static inline float dg_finished(float value, const dg_finish *f, int64_t channel, int64_t more) {
    volatile float v = value; /* each operation is rounded by itself */
    if (f->scale) v = v * f->scale[channel];
    v = v + (f->bias ? f->bias[channel] + f->zero : f->zero);
    if (f->more) v = v + f->more[more];
    v = f->low > v ? f->low : v;
    return f->high < v ? f->high : v;
}

/* Lanes of a vector, and rows of the tallest register tile. */
int64_t dg_last_lanes(void);
int64_t dg_last_height(void);

/* c (+)= a @ b on this thread: rows of a lie lda apart, b in strips of two vectors of columns, [depth][column]; the last one has one
 * vector when that is enough. Meanwhile `bytes` at `next` are fetched into the cache. */
void dg_last_block(int64_t rows, int64_t columns, int64_t depth, const float *a, int64_t lda, const float *b, float *c, int64_t ldc, int add,
                   const void *next, int64_t bytes);

/* Elements of columns that were packed: whole vectors. */
int64_t dg_last_columns(int64_t columns);

/* The depth of blocks: equal parts, in whole lines of the cache. */
int64_t dg_last_deep(int64_t depth);

/* Rows of a that are so far apart fall into few sets of the first-level cache. */
int dg_last_crowded(int64_t ld);

/* One channel for each group. */
int dg_conv_depthwise_takes(const dg_convolution *p);
int64_t dg_conv_depthwise_packs(const dg_convolution *p);
void dg_conv_depthwise_pack(const dg_convolution *p, float *out, const float *w);
int dg_conv_depthwise(const dg_convolution *p, const dg_epilogue *e, float *y, const float *x, const float *w);

/* Outputs first .. last of a line of them, counted over all images, with what an affine epilogue does. Line i of the inputs lies at i % ring. */
void dg_conv_depthwise_line(const dg_convolution *p, const dg_epilogue *e, const float *w, const float *x, int64_t ring, int64_t line, int64_t first,
                            int64_t last, float *y);

/* Of a convolution that dg_conv_line_takes: one group, whose lines of outputs can be computed one by one: memory that this takes; and a line, counted
 * over all images, with what an affine epilogue does. */
int64_t dg_conv_line_room(const dg_convolution *p);
void dg_conv_line(const dg_convolution *p, const dg_epilogue *e, const float *w, const float *x, int64_t line, float *y, float *room, dg_coming next);

/* The part of what comes that is fetched with unit u of so many, of which each thread has as many, one after the other. */
dg_coming dg_part_of_coming(dg_coming all, int64_t u, int64_t units);

/* Kernels of 3x3 in steps of one with fewer multiplications. DG_NO_KERNEL: where inputs, or weights, which are found at `plain` as they were, are
 * so large that they are to be taken another way; then nothing was written. */
int dg_conv_last_winograd_takes(const dg_convolution *p);
int64_t dg_conv_last_winograd_packs(const dg_convolution *p);
void dg_conv_last_winograd_pack(const dg_convolution *p, float *out, const float *w);
int dg_conv_last_winograd(const dg_convolution *p, const dg_epilogue *e, float *y, const float *x, const float *w, const float **plain);

#endif
