/* Pooling and its gradients, a plane of one channel at a time. */
#include "common.h"
#include "half.h"

#include <math.h>

/* The range low .. high of outputs i < n whose input first + i*step is inside the axis. */
static void span(int64_t first, int64_t step, int64_t size, int64_t n, int64_t *low, int64_t *high) {
    *low = first < 0 ? DG_MIN(n, (-first + step - 1) / step) : 0;
    *high = size > first ? DG_MAX(*low, DG_MIN(n, (size - first + step - 1) / step)) : *low;
}

/* One column of the window: outputs low .. high of a row read first + i*stride, in every row of a plane. */
typedef struct { int64_t first, low, high; } Tap;

/* Runs the body for each tap of the window that meets the plane: outputs low .. high of output row (od, oh) read first + i*s of input
 * row (id, ih). */
#define EACH_TAP(p)                                                                                                \
    for (int64_t kd = 0; kd < p->kernel[0]; kd++)                                                                  \
        for (int64_t kh = 0; kh < p->kernel[1]; kh++)                                                              \
            for (int64_t kw = 0, id = od * p->stride[0] + kd * p->dilation[0] - p->pad[0],                         \
                         ih = oh * p->stride[1] + kh * p->dilation[1] - p->pad[1], s = p->stride[2], first = 0, low = 0, high = 0; \
                 kw < p->kernel[2] && id >= 0 && id < p->size[0] && ih >= 0 && ih < p->size[1] &&                  \
                 (first = taps[kw].first, low = taps[kw].low, high = taps[kw].high, (void)first, (void)low, (void)high, (void)s, 1);      \
                 kw++)

/* Windows without an element above -infinity: use their first element. */
static void first_cells(const dg_pooling *p, int64_t *indices, int64_t od, int64_t oh, const Tap *taps) {
    for (int64_t i = 0; i < p->out_size[2]; i++) {
        if (indices[i] >= 0) continue;
        EACH_TAP(p)
        if (indices[i] < 0 && i >= low && i < high) indices[i] = (id * p->size[1] + ih) * p->size[2] + first + i * s;
    }
}

/* Planes for max pooling, padded with -infinity and split by stride phase: [depth][row phase][column phase][plane][row][column]. The
 * outputs of all planes are then lanes of vectors whose inputs for one window element are contiguous. If rows and columns beyond the
 * outputs are among them, results go through the buffers `best` and `at`, or rows are processed one by one (`apart`). */
typedef struct {
    int64_t planes, rows, columns, cell_count, taps;
    int apart;
    void *cells, *best, *index, *first; /* index and first: see `maxima` in pooling.inc */
    int64_t *offset, *at;
} Spread;

#define ISA_SOURCE "pooling.inc"
#include "isa.h"

enum { MAX_POOL, AVG_POOL, AVG_GRAD, MAX_GRAD };

#define SPREAD_BYTES (1 << 20) /* largest padded plane: it must stay in L2 */

typedef struct {
    const dg_pooling *p;
    char *out;
    int64_t *indices;
    const char *x;
    const int64_t *from;
    int what, *failed;
} Job;

static int64_t volume(const int64_t *size) { return size[0] * size[1] * size[2]; }

static int64_t element(const dg_pooling *p) { return p->type == DG_F64 ? 8 : p->type == DG_F32 ? 4 : 2; }

/* The number of steps of an axis that windows and input cover. */
static int64_t reach(const dg_pooling *p, int axis) {
    int64_t read = (p->out_size[axis] - 1) * p->stride[axis] + (p->kernel[axis] - 1) * p->dilation[axis] + 1;
    return (DG_MAX(read, p->pad[axis] + p->size[axis]) + p->stride[axis] - 1) / p->stride[axis];
}

/* Plans the layout; 0 planes if another method is better. */
static Spread spread_of(const dg_pooling *p) {
    Spread s = {.rows = reach(p, 1), .columns = reach(p, 2), .taps = volume(p->kernel)};
    int64_t size = element(p), room = s.rows * s.columns, out = p->out_size[1] * p->out_size[2];
    if (size == 2 || s.taps > 4096) return s;
    int flat = p->size[0] == 1 && p->kernel[0] == 1 && p->out_size[0] == 1 && p->pad[0] == 0;
    s.apart = p->out_size[2] * size >= 64;
    if (!s.apart && room > 4 * out) return s; /* too few lanes would be outputs */
    int64_t planes = flat ? DG_MIN(DG_MAX(1, 256 / room), p->planes) : 1;
    s.cell_count = reach(p, 0) * p->stride[0] * p->stride[1] * p->stride[2] * planes * room + 64;
    s.cell_count += (p->kernel[1] * p->dilation[1] / p->stride[1]) * s.columns + p->kernel[2] * p->dilation[2] / p->stride[2];
    if (s.cell_count * size <= SPREAD_BYTES) s.planes = planes;
    return s;
}

/* Sets the addresses of the buffers; returns their size in bytes. */
static int64_t spread_bytes(const Spread *s, int64_t size) {
    int64_t all = s->planes * s->rows * s->columns + 64;
    return s->planes ? s->cell_count * size + all * (2 * size + 8) + s->taps * 16 : 0;
}

static void spread_over(Spread *s, int64_t size, char *room) {
    int64_t all = s->planes * s->rows * s->columns + 64;
    s->offset = (int64_t *)room;
    s->at = s->offset + s->taps;
    s->cells = s->at + all;
    s->best = (char *)s->cells + s->cell_count * size;
    s->first = (char *)s->best + all * size;
    s->index = (char *)s->first + all * size;
}

static void pool_task(void **args, int64_t begin, int64_t end) {
    const Job *j = args[0];
    const dg_pooling *p = j->p;
    int64_t in = volume(p->size), out = volume(p->out_size), size = element(p);
    int half = size == 2;
    Spread spread = {0};
    if (j->what == MAX_POOL) spread = spread_of(p);
    int64_t room = spread.planes ? spread_bytes(&spread, size) : half ? in * 4 : 0;
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
    if (spread.planes) {
        spread_over(&spread, size, plane);
        if (size == 4) ISA_PICK(max_begin_f32)(p, &spread);
        else ISA_PICK(max_begin_f64)(p, &spread);
    }
    for (int64_t u = begin; u < end; u++) {
        if (spread.planes) {
            int64_t planes = DG_MIN(spread.planes, end - u), *indices = j->indices + u * out;
            if (size == 4) ISA_PICK(max_planes_f32)(p, &spread, (float *)j->out + u * out, indices, (const float *)j->x + u * in, planes, taps);
            else ISA_PICK(max_planes_f64)(p, &spread, (double *)j->out + u * out, indices, (const double *)j->x + u * in, planes, taps);
            u += planes - 1;
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
        void *to = half ? plane : (void *)dx; /* 16-bit floats accumulate in float32 */
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
    int64_t fast = j.what == MAX_POOL && spread_of(p).planes ? 4 : 1;
    dg_parallel_for(pool_task, (void *[]){&j}, p->planes, DG_MAX(1, fast * 16384 / (work + 1)));
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
