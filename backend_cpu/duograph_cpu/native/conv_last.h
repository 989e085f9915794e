/* Channels-last convolutions; see conv_last.c. */
#ifndef DG_CONV_LAST_H
#define DG_CONV_LAST_H

#include "common.h"
#if defined(__x86_64__) || defined(__i386__)
#include <immintrin.h>
#endif

#define DG_LAST_DEPTH 256 /* depth of a block: a panel of rows and a strip of weights fit into L1 */

/* An affine epilogue on a vector: min(max(value * scale + bias + addend, low), high); absent operands are NULL. `zero` is added to the
 * bias: +0 if `low` is 0, so that no sum is -0; else -0, which changes nothing. */
typedef struct {
    const float *scale, *bias, *addend;
    int64_t ld; /* leading dimension of addend */
    float low, high, zero;
} dg_finish;

/* The affine form of an epilogue for elements from `at` on, where `at` is channel 0; NULL if it is not affine. */
static inline const dg_finish *dg_finish_of(dg_finish *to, const dg_epilogue *e, int64_t channel, int64_t at, int64_t ld) {
    if (!e || !e->affine) return 0;
    const dg_affine *a = e->affine;
    *to = (dg_finish){.scale = a->scale < 0 ? 0 : (const float *)e->args[a->scale] + channel, .bias = a->bias < 0 ? 0 : (const float *)e->args[a->bias] + channel,
                      .addend = a->addend < 0 ? 0 : (const float *)e->args[a->addend] + at, .ld = ld, .low = (float)a->low, .high = (float)a->high,
                      .zero = a->low == 0 ? 0.0f : -0.0f};
    return to;
}

/* An affine epilogue on one value. */
static inline float dg_finished(float value, const dg_finish *f, int64_t channel, int64_t at) {
    volatile float v = value; /* volatile: each operation is rounded by itself */
    if (f->scale) v = v * f->scale[channel];
    v = v + (f->bias ? f->bias[channel] + f->zero : f->zero);
    if (f->addend) v = v + f->addend[at];
    v = f->low > v ? f->low : v;
    return f->high < v ? f->high : v;
}

/* Elements of a vector, and rows of the tallest register tile. */
int64_t dg_last_lanes(void);
int64_t dg_last_height(void);

/* c (+)= a @ b on this thread. b is packed in strips of two vectors of columns, [depth][column]; the last strip has one vector if that
 * suffices. Prefetches `bytes` at `next`. */
void dg_last_block(int64_t rows, int64_t columns, int64_t depth, const float *a, int64_t lda, const float *b, float *c, int64_t ldc, int add,
                   const void *next, int64_t bytes);

/* Packed columns: rounded up to whole vectors. */
int64_t dg_last_columns(int64_t columns);

/* The depth of blocks: equal parts, in whole cache lines. */
int64_t dg_last_deep(int64_t depth);

/* Whether rows with this leading dimension map to few sets of the L1 cache. */
int dg_last_crowded(int64_t ld);

/* Depthwise: one channel per group. */
int dg_conv_depthwise_takes(const dg_convolution *p);
int64_t dg_conv_depthwise_packs(const dg_convolution *p);
void dg_conv_depthwise_pack(const dg_convolution *p, float *out, const float *w);
int dg_conv_depthwise(const dg_convolution *p, const dg_epilogue *e, float *y, const float *x, const float *w);

/* Computes outputs of one line, numbered over all images, and applies an affine epilogue. Input line i is stored at i % ring. */
void dg_conv_depthwise_line(const dg_convolution *p, const dg_epilogue *e, const float *w, const float *x, int64_t ring, int64_t line, int64_t first,
                            int64_t last, float *y);

/* For a convolution that dg_conv_line_takes (one group, computable line by line): _room: scratch elements; dg_conv_line: computes one
 * line, numbered over all images, and applies an affine epilogue. */
int64_t dg_conv_line_room(const dg_convolution *p);
void dg_conv_line(const dg_convolution *p, const dg_epilogue *e, const float *w, const float *x, int64_t line, float *y, float *room, dg_prefetch_hint next);

/* The part of a prefetch hint that belongs to unit u of `units`; each thread runs equally many consecutive units. */
dg_prefetch_hint dg_prefetch_part(dg_prefetch_hint all, int64_t u, int64_t units);

/* Winograd for 3x3 kernels with stride 1. Returns DG_NO_KERNEL, with nothing written, if inputs or weights (`plain`: untransformed)
 * are so large that the transforms could overflow. */
int dg_conv_last_winograd_takes(const dg_convolution *p);
int64_t dg_conv_last_winograd_packs(const dg_convolution *p);
void dg_conv_last_winograd_pack(const dg_convolution *p, float *out, const float *w);
int dg_conv_last_winograd(const dg_convolution *p, const dg_epilogue *e, float *y, const float *x, const float *w, const float **plain);

#endif
