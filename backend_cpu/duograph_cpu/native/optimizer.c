/* Fused optimiser steps. The composite ops read and write each parameter a dozen times; these kernels do it once. */
#include "common.h"

#include <math.h>

typedef struct { float beta1, beta2, rest1, rest2, eps, decay, scale, rate, decoupled; int nesterov, flush; } Step;

#ifdef __clang__
#define DG_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define DG_INDEPENDENT _Pragma("GCC ivdep")
#endif

/* Moments of parameters with zero gradients decay to subnormal numbers and stay there, because 0.9 times the smallest ones rounds to
 * itself; squares of small gradients are subnormal at once. x86 processors are a hundred times slower on subnormals. They are
 * negligible beside eps, so they are flushed to zero if eps is large enough. */
#ifdef __SSE__
#include <xmmintrin.h>
static unsigned flush_subnormals(int yes) {
    unsigned before = _mm_getcsr();
    if (yes) _mm_setcsr(before | 0x8040); /* flush results and operands */
    __asm__ volatile("" ::: "memory");
    return before;
}
static void flush_no_more(unsigned before) {
    __asm__ volatile("" ::: "memory");
    _mm_setcsr(before);
}
#else
static unsigned flush_subnormals(int yes) { return (unsigned)yes; }
static void flush_no_more(unsigned before) { (void)before; }
#endif
#define FLUSHED_EPS 1e-12 /* the square root of the largest subnormal number is 1e-19 */

#define ISA_SOURCE "optimizer.inc"
#include "isa.h"

#define GRAIN 4096

static Step constants(const dg_step *p, float rate) {
    return (Step){(float)p->beta1, (float)p->beta2, (float)(1 - p->beta1), (float)(1 - p->beta2), (float)p->eps,
                       (float)p->weight_decay, (float)p->scale, rate, 0, (int)p->nesterov, p->eps >= FLUSHED_EPS};
}

#define AT(k) ((float *)args[k] + begin)

static void adam_task(void **args, int64_t begin, int64_t end) {
    unsigned before = flush_subnormals(((const Step *)args[0])->flush);
    ISA_PICK(adam_run)(end - begin, args[0], AT(1), AT(2), AT(3), AT(4), AT(5), AT(6), AT(7));
    flush_no_more(before);
}

static void momentum_task(void **args, int64_t begin, int64_t end) {
    unsigned before = flush_subnormals(1);
    ISA_PICK(momentum_run)(end - begin, args[0], AT(1), AT(2), AT(3), AT(4), AT(5), *(float *)args[6]);
    flush_no_more(before);
}

int dg_adam(const dg_step *p, void *p1, void *m1, void *v1, const void *p0, const void *m0, const void *v0, const void *grad,
            const void *lr, const void *beta1_power, const void *beta2_power) {
    float rate = *(const float *)lr * sqrtf(1 - *(const float *)beta2_power) / (1 - *(const float *)beta1_power);
    Step s = constants(p, rate);
    void *args[] = {&s, p1, m1, v1, (void *)p0, (void *)m0, (void *)v0, (void *)grad};
    dg_parallel_for(adam_task, args, p->n, GRAIN);
    return DG_OK;
}

int dg_adam_weight_decay(const dg_step *p, void *p1, void *m1, void *v1, const void *p0, const void *m0, const void *v0,
                         const void *grad, const void *lr) {
    Step s = constants(p, *(const float *)lr);
    s.decoupled = s.decay;
    s.decay = 0;
    void *args[] = {&s, p1, m1, v1, (void *)p0, (void *)m0, (void *)v0, (void *)grad};
    dg_parallel_for(adam_task, args, p->n, GRAIN);
    return DG_OK;
}

int dg_momentum(const dg_step *p, void *p1, void *a1, const void *p0, const void *a0, const void *grad, const void *lr,
                const void *momentum) {
    Step s = constants(p, *(const float *)lr);
    void *args[] = {&s, p1, a1, (void *)p0, (void *)a0, (void *)grad, (void *)momentum};
    dg_parallel_for(momentum_task, args, p->n, GRAIN);
    return DG_OK;
}
