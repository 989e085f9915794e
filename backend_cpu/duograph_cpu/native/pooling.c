/* Pooling and its gradients, a plane of one channel at a time. */
#include "common.h"
#include "half.h"

#include <math.h>

/* Outputs low .. high of n whose input first + i*step lies inside the axis. */
static void span(int64_t first, int64_t step, int64_t size, int64_t n, int64_t *low, int64_t *high) {
    *low = first < 0 ? DG_MIN(n, (-first + step - 1) / step) : 0;
    *high = size > first ? DG_MAX(*low, DG_MIN(n, (size - first + step - 1) / step)) : *low;
}

/* One column of the window: outputs low .. high of a row read first + i*stride. The same for every row of a plane. */
typedef struct { int64_t first, low, high; } Tap;

/* The body runs for each tap of the window that meets the plane: input row (id, ih), outputs low .. high of the output row (od, oh) read
 * first + i*s. */
#define EACH_TAP(p)                                                                                                \
    for (int64_t kd = 0; kd < p->kernel[0]; kd++)                                                                  \
        for (int64_t kh = 0; kh < p->kernel[1]; kh++)                                                              \
            for (int64_t kw = 0, id = od * p->stride[0] + kd * p->dilation[0] - p->pad[0],                         \
                         ih = oh * p->stride[1] + kh * p->dilation[1] - p->pad[1], s = p->stride[2], first = 0, low = 0, high = 0; \
                 kw < p->kernel[2] && id >= 0 && id < p->size[0] && ih >= 0 && ih < p->size[1] &&                  \
                 (first = taps[kw].first, low = taps[kw].low, high = taps[kw].high, (void)first, (void)low, (void)high, (void)s, 1);      \
                 kw++)

/* Windows without a cell above -infinity: the first of their cells. */
static void first_cells(const dg_pooling *p, int64_t *indices, int64_t od, int64_t oh, const Tap *taps) {
    for (int64_t i = 0; i < p->out_size[2]; i++) {
        if (indices[i] >= 0) continue;
        EACH_TAP(p)
        if (indices[i] < 0 && i >= low && i < high) indices[i] = (id * p->size[1] + ih) * p->size[2] + first + i * s;
    }
}

#define ISA_SOURCE "pooling.inc"
#include "isa.h"

enum { MAX_POOL, AVG_POOL, AVG_GRAD, MAX_GRAD };

#define SPREAD_BYTES (1 << 20) /* most of a plane that is spread: it is to stay in the second-level cache */

typedef struct {
    const dg_pooling *p;
    char *out;
    int64_t *indices;
    const char *x;
    const int64_t *from;
    int what, *failed;
} Job;

static int64_t volume(const int64_t *size) { return size[0] * size[1] * size[2]; }

/* Columns of one phase of the step, of a row between cells of -infinity. */
static int64_t phase_columns(const dg_pooling *p) {
    int64_t read = (p->out_size[2] - 1) * p->stride[2] + (p->kernel[2] - 1) * p->dilation[2] + 1;
    return (DG_MAX(read, p->pad[2] + p->size[2]) + p->stride[2] - 1) / p->stride[2];
}

/* Bytes of a plane that is spread; 0 when the largest are found another way. */
static int64_t spread_bytes(const dg_pooling *p) {
    int64_t size = p->type == DG_F64 ? 8 : p->type == DG_F32 ? 4 : 0;
    int64_t bytes = (p->size[0] * p->size[1] * p->stride[2] * phase_columns(p) + 64) * size;
    /* narrow outputs would leave vectors empty */
    return bytes <= SPREAD_BYTES && volume(p->kernel) <= 4096 && p->out_size[2] >= 8 ? bytes : 0;
}

/* The largest of each window of one plane; `plane` has -infinity around what is copied to it. */
static void max_spread(const dg_pooling *p, char *y, int64_t *indices, const char *x, char *plane, int64_t *offset, const Tap *columns) {
    int64_t phase = phase_columns(p), row = phase * p->stride[2], *index = offset + volume(p->kernel), single = p->type == DG_F32;
    if (single) ISA_PICK(spread_f32)(p, (float *)plane, (const float *)x, phase);
    else ISA_PICK(spread_f64)(p, (double *)plane, (const double *)x, phase);
    for (int64_t od = 0; od < p->out_size[0]; od++)
        for (int64_t oh = 0; oh < p->out_size[1]; oh++, indices += p->out_size[2]) {
            int64_t n = 0, width = p->out_size[2], at = od * p->out_size[1] + oh;
            const Tap *taps = columns;
            int empty;
            EACH_TAP(p) {
                int64_t column = kw * p->dilation[2];
                offset[n] = (id * p->size[1] + ih) * row + column % s * phase + column / s;
                index[n++] = (id * p->size[1] + ih) * p->size[2] + first;
            }
            if (single) empty = ISA_PICK(maxima_f32)((float *)y + at * width, indices, width, (const float *)plane, n, offset, index, p->stride[2]);
            else empty = ISA_PICK(maxima_f64)((double *)y + at * width, indices, width, (const double *)plane, n, offset, index, p->stride[2]);
            if (empty) first_cells(p, indices, od, oh, taps);
        }
}

static void pool_task(void **args, int64_t begin, int64_t end) {
    const Job *j = args[0];
    const dg_pooling *p = j->p;
    int64_t in = volume(p->size), out = volume(p->out_size), size = p->type == DG_F64 ? 8 : p->type == DG_F32 ? 4 : 2;
    int half = size == 2;
    int64_t spread = j->what == MAX_POOL ? spread_bytes(p) : 0, room = spread ? spread + volume(p->kernel) * 16 : half ? in * 4 : 0;
    char *scratch = dg_alloc((size_t)(p->out_size[2] * 16 + p->kernel[2] * (int64_t)sizeof(Tap) + room + 64));
    if (!scratch) {
        __atomic_store_n(j->failed, 1, __ATOMIC_RELAXED);
        return;
    }
    void *row = scratch, *row_2 = scratch + p->out_size[2] * 8;
    Tap *taps = (Tap *)(scratch + p->out_size[2] * 16);
    void *plane = taps + p->kernel[2];
    for (int64_t kw = 0; j->what != MAX_GRAD && kw < p->kernel[2]; kw++) {
        taps[kw].first = kw * p->dilation[2] - p->pad[2];
        span(taps[kw].first, p->stride[2], p->size[2], p->out_size[2], &taps[kw].low, &taps[kw].high);
    }
    int64_t *offset = (int64_t *)plane;
    char *spread_plane = (char *)plane + volume(p->kernel) * 16;
    for (int64_t i = 0; i < spread / size; i++) {
        if (size == 4) ((float *)spread_plane)[i] = -INFINITY;
        else ((double *)spread_plane)[i] = -INFINITY;
    }
    for (int64_t u = begin; u < end; u++) {
        if (spread) {
            max_spread(p, j->out + u * out * size, j->indices + u * out, j->x + u * in * size, spread_plane, offset, taps);
            continue;
        }
        if (j->what == MAX_POOL || j->what == AVG_POOL) {
            char *y = j->out + u * out * size;
            const char *x = j->x + u * in * size;
#define CALL(N, T)                                                                                          \
    if (j->what == MAX_POOL) N(max_plane)(p, (T *)y, j->indices + u * out, (const T *)x, row, row_2, taps); \
    else N(avg_plane)(p, (T *)y, (const T *)x, row, row_2, taps);                                                 \
    break;
            switch (p->type) {
#define F32(F) ISA_PICK(F##_f32)
#define F64(F) ISA_PICK(F##_f64)
#define F16(F) F##_f16_base
#define BF16(F) F##_bf16_base
            case DG_F32: CALL(F32, float)
            case DG_F64: CALL(F64, double)
            case DG_F16: CALL(F16, f16)
            case DG_BF16: CALL(BF16, bf16)
            }
#undef CALL
            continue;
        }
        char *dx = j->out + u * in * size;
        const char *dy = j->x + u * out * size;
        void *to = half ? plane : (void *)dx; /* halves are added up in float32 */
        memset(to, 0, (size_t)(in * (half ? 4 : size)));
        if (j->what == MAX_GRAD) {
            const int64_t *at = j->from + u * out;
#define ADD(T, A, LOAD)                                                                     \
    for (int64_t i = 0; i < out; i++)                                                       \
        if ((uint64_t)at[i] < (uint64_t)in) ((A *)to)[at[i]] += LOAD(((const T *)dy)[i]);   \
    break;
            switch (p->type) {
            case DG_F32: ADD(float, float, )
            case DG_F64: ADD(double, double, )
            case DG_F16: ADD(f16, float, f16_load)
            case DG_BF16: ADD(bf16, float, bf16_load)
            }
#undef ADD
        } else {
            switch (p->type) {
            case DG_F32: F32(avg_grad_plane)(p, to, (const float *)dy, row, row_2, taps); break;
            case DG_F64: F64(avg_grad_plane)(p, to, (const double *)dy, row, row_2, taps); break;
            case DG_F16: F16(avg_grad_plane)(p, to, (const f16 *)dy, row, row_2, taps); break;
            case DG_BF16: BF16(avg_grad_plane)(p, to, (const bf16 *)dy, row, row_2, taps); break;
            }
        }
        if (p->type == DG_F16)
            for (int64_t i = 0; i < in; i++) ((f16 *)dx)[i] = f16_store(((float *)plane)[i]);
        else if (p->type == DG_BF16)
            for (int64_t i = 0; i < in; i++) ((bf16 *)dx)[i] = bf16_store(((float *)plane)[i]);
    }
    dg_free(scratch);
}

static int run(Job j) {
    const dg_pooling *p = j.p;
    int failed = 0;
    j.failed = &failed;
    if (volume(p->size) > INT32_MAX) return DG_NO_KERNEL;
    int64_t work = volume(p->out_size) * (j.what == MAX_GRAD ? 1 : volume(p->kernel)) + volume(p->size);
    dg_parallel_for(pool_task, (void *[]){&j}, p->planes, DG_MAX(1, 16384 / (work + 1)));
    return failed ? DG_NO_MEMORY : DG_OK;
}

int dg_max_pool(const dg_pooling *p, void *y, void *indices, const void *x) {
    return run((Job){.p = p, .out = y, .indices = indices, .x = x, .what = MAX_POOL});
}
int dg_max_pool_grad(const dg_pooling *p, void *dx, const void *dy, const void *indices) {
    return run((Job){.p = p, .out = dx, .x = dy, .from = indices, .what = MAX_GRAD});
}
int dg_avg_pool(const dg_pooling *p, void *y, const void *x) { return run((Job){.p = p, .out = y, .x = x, .what = AVG_POOL}); }
int dg_avg_pool_grad(const dg_pooling *p, void *dx, const void *dy) {
    return run((Job){.p = p, .out = dx, .x = dy, .what = AVG_GRAD});
}
