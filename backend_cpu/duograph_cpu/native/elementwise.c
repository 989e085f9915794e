/* Runs the generated row kernels: small results in one call, large ones over the thread pool, broadcast operands row by row. */
#include "common.h"
#include "elementwise.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#define MAX_OPERANDS 5
#define BLOCK 8192 /* bytes of a result that are computed in L1 before they are streamed out */

/* Results that do not fit the caches are written with streaming stores: plain stores would first read the lines they overwrite. */
static int64_t stream_from = 32 << 20;
void dg_stream_from(int64_t bytes) { stream_from = bytes; }

static void move(const dg_elementwise_plan *p, void **pointers, int64_t elements) {
    for (int k = 0; k < p->operands; k++)
        if (p->moving >> k & 1) pointers[k] = (char *)pointers[k] + elements * p->itemsizes[k];
}

#ifdef __SSE2__
static void stream(char *out, const char *block, int64_t bytes) {
    int64_t i = 0;
    for (; i + 64 <= bytes; i += 64) {
        __m128i a = _mm_load_si128((const __m128i *)(block + i));
        __m128i b = _mm_load_si128((const __m128i *)(block + i + 16));
        __m128i c = _mm_load_si128((const __m128i *)(block + i + 32));
        __m128i d = _mm_load_si128((const __m128i *)(block + i + 48));
        _mm_stream_si128((__m128i *)(out + i), a);
        _mm_stream_si128((__m128i *)(out + i + 16), b);
        _mm_stream_si128((__m128i *)(out + i + 32), c);
        _mm_stream_si128((__m128i *)(out + i + 48), d);
    }
    memcpy(out + i, block + i, (size_t)(bytes - i));
}
#endif

/* Computes one row or a part of one. */
static void run(const dg_elementwise_plan *p, void **pointers, int64_t n, int streamed) {
#ifdef __SSE2__
    int size = p->itemsizes[p->operands];
    char *out = pointers[p->operands];
    if (streamed && n * size >= BLOCK && ((uintptr_t)out & 15) == 0) {
        _Alignas(64) char block[BLOCK];
        int64_t step = BLOCK / size;
        pointers[p->operands] = block;
        for (int64_t i = 0; i < n; i += step) {
            int64_t some = DG_MIN(step, n - i);
            p->row(pointers, some, p->moving, p->parameters);
            stream(out + i * size, block, some * size);
            move(p, pointers, some);
        }
        _mm_sfence();
        return;
    }
#else
    (void)streamed;
#endif
    p->row(pointers, n, p->moving, p->parameters);
}

/* args: plan, operands, result */
static void task(void **args, int64_t begin, int64_t end) {
    const dg_elementwise_plan *p = args[0];
    int count = p->operands, size = p->itemsizes[count];
    int streamed = p->n * size >= stream_from;
    void *pointers[MAX_OPERANDS + 1];
    if (p->outer == 0) {
        memcpy(pointers, args + 1, sizeof(void *) * (size_t)(count + 1));
        move(p, pointers, begin);
        pointers[count] = (char *)pointers[count] + begin * size;
        run(p, pointers, end - begin, streamed);
        return;
    }
    int64_t index[DG_MAX_DIMS];
    int64_t row = begin / p->row_length, inside = begin % p->row_length;
    for (int d = p->outer - 1; d >= 0; d--) {
        index[d] = row % p->sizes[d];
        row /= p->sizes[d];
    }
    char *starts[MAX_OPERANDS];
    for (int k = 0; k < count; k++) {
        starts[k] = args[1 + k];
        for (int d = 0; d < p->outer; d++) starts[k] += index[d] * p->steps[k][d];
    }
    char *out = (char *)args[1 + count] + begin * size;
    while (begin < end) {
        int64_t n = DG_MIN(p->row_length - inside, end - begin);
        for (int k = 0; k < count; k++) pointers[k] = starts[k];
        if (inside) move(p, pointers, inside);
        pointers[count] = out;
        run(p, pointers, n, streamed);
        inside = 0;
        begin += n;
        out += n * size;
        for (int d = p->outer - 1; d >= 0; d--) { /* advance to the next row */
            for (int k = 0; k < count; k++) starts[k] += p->steps[k][d];
            if (++index[d] < p->sizes[d]) break;
            for (int k = 0; k < count; k++) starts[k] -= p->steps[k][d] * p->sizes[d];
            index[d] = 0;
        }
    }
}

static inline void start(const dg_elementwise_plan *p, void **args) {
    if (p->n <= p->grain && p->outer == 0) {
        p->row(args + 1, p->n, p->moving, p->parameters);
        return;
    }
    dg_parallel_for(task, args, p->n, p->grain);
}

void dg_elementwise1(const dg_elementwise_plan *plan, void *out, const void *a) {
    void *args[] = {(void *)plan, (void *)a, out};
    start(plan, args);
}

void dg_elementwise2(const dg_elementwise_plan *plan, void *out, const void *a, const void *b) {
    void *args[] = {(void *)plan, (void *)a, (void *)b, out};
    start(plan, args);
}

void dg_elementwise3(const dg_elementwise_plan *plan, void *out, const void *a, const void *b, const void *c) {
    void *args[] = {(void *)plan, (void *)a, (void *)b, (void *)c, out};
    start(plan, args);
}

void dg_elementwise4(const dg_elementwise_plan *plan, void *out, const void *a, const void *b, const void *c,
                     const void *d) {
    void *args[] = {(void *)plan, (void *)a, (void *)b, (void *)c, (void *)d, out};
    start(plan, args);
}

void dg_elementwise5(const dg_elementwise_plan *plan, void *out, const void *a, const void *b, const void *c,
                     const void *d, const void *e) {
    void *args[] = {(void *)plan, (void *)a, (void *)b, (void *)c, (void *)d, (void *)e, out};
    start(plan, args);
}
