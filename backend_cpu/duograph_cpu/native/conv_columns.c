/* Convolution of small planes as products of matrices.
 *
 * Where a plane of outputs has few pixels, the register tiles of conv.c are mostly empty. Here all images lie side by side: columns
 * (in * taps, batch * pixels) are written out once (im2col), and one product over them does the work. Costs memory, so for small planes only. */
#include "common.h"
#include "conv_columns.h"

#define MOST_BYTES (64 << 20) /* of columns */

typedef struct {
    const dg_convolution *p;
    int64_t size, taps, pixels, columns; /* of an element, of a kernel, of a plane of outputs, of all planes */
    char *matrix;                        /* (in * taps, columns) */
    char *planes;                        /* (out, columns) */
    char *x, *y;
} Job;

/* The body runs for each row of outputs (image, od, oh) that tap (kd, kh, kw) reads: `at` is its first column, `from` its input row or -1,
 * outputs low .. high of it read first + i*stride. */
#define EACH_ROW(p, tap)                                                                                                    \
    int64_t kd = (tap) / ((p)->kernel[1] * (p)->kernel[2]), kh = (tap) / (p)->kernel[2] % (p)->kernel[1];                    \
    int64_t first = (tap) % (p)->kernel[2] * (p)->dilation[2] - (p)->pad[2], s = (p)->stride[2], width = (p)->out_size[2];   \
    int64_t low = first < 0 ? DG_MIN(width, (-first + s - 1) / s) : 0;                                                       \
    int64_t high = (p)->size[2] > first ? DG_MAX(low, DG_MIN(width, ((p)->size[2] - first + s - 1) / s)) : low;              \
    int64_t at = 0, plane_in = (p)->size[0] * (p)->size[1] * (p)->size[2];                                                   \
    for (int64_t image = 0; image < (p)->batch; image++)                                                                     \
        for (int64_t od = 0; od < (p)->out_size[0]; od++)                                                                    \
            for (int64_t oh = 0; oh < (p)->out_size[1]; oh++, at += width)

#define ROW_OF(p, channel)                                                                                                  \
    int64_t id = od * (p)->stride[0] + kd * (p)->dilation[0] - (p)->pad[0];                                                  \
    int64_t ih = oh * (p)->stride[1] + kh * (p)->dilation[1] - (p)->pad[1];                                                  \
    int inside = id >= 0 && id < (p)->size[0] && ih >= 0 && ih < (p)->size[1];                                               \
    int64_t from = (image * (p)->in + (channel)) * plane_in + (id * (p)->size[1] + ih) * (p)->size[2] + first;

#define COLUMNS(T, NAME)                                                                                                    \
    static void write_##NAME(const dg_convolution *p, T *out, const T *x, int64_t channel, int64_t tap) {                    \
        EACH_ROW(p, tap) {                                                                                                   \
            ROW_OF(p, channel)                                                                                               \
            T *to = out + at;                                                                                                \
            if (!inside) {                                                                                                   \
                for (int64_t i = 0; i < width; i++) to[i] = 0;                                                               \
                continue;                                                                                                    \
            }                                                                                                                \
            for (int64_t i = 0; i < low; i++) to[i] = 0;                                                                     \
            for (int64_t i = low; i < high; i++) to[i] = x[from + i * s];                                                    \
            for (int64_t i = high; i < width; i++) to[i] = 0;                                                                \
        }                                                                                                                    \
    }                                                                                                                        \
    static void add_##NAME(const dg_convolution *p, T *x, const T *column, int64_t channel, int64_t tap) {                   \
        EACH_ROW(p, tap) {                                                                                                   \
            ROW_OF(p, channel)                                                                                               \
            for (int64_t i = low; inside && i < high; i++) x[from + i * s] += column[at + i];                                \
        }                                                                                                                    \
    }
COLUMNS(float, f32)
COLUMNS(double, f64)

/* A unit is a row of the matrix: (channel, tap). */
static void write_task(void **args, int64_t begin, int64_t end) {
    const Job *j = args[0];
    for (int64_t u = begin; u < end; u++) {
        char *to = j->matrix + u * j->columns * j->size;
        if (j->size == 4) write_f32(j->p, (float *)to, (const float *)j->x, u / j->taps, u % j->taps);
        else write_f64(j->p, (double *)to, (const double *)j->x, u / j->taps, u % j->taps);
    }
}

/* A unit is a channel of the input: several taps add to it, in order. */
static void add_task(void **args, int64_t begin, int64_t end) {
    const Job *j = args[0];
    const dg_convolution *p = j->p;
    int64_t plane = p->size[0] * p->size[1] * p->size[2];
    for (int64_t c = begin; c < end; c++) {
        for (int64_t image = 0; image < p->batch; image++)
            memset(j->x + (image * p->in + c) * plane * j->size, 0, (size_t)(plane * j->size));
        for (int64_t tap = 0; tap < j->taps; tap++) {
            const char *column = j->matrix + (c * j->taps + tap) * j->columns * j->size;
            if (j->size == 4) add_f32(p, (float *)j->x, (const float *)column, c, tap);
            else add_f64(p, (double *)j->x, (const double *)column, c, tap);
        }
    }
}

/* (batch, out, pixels) to (out, batch, pixels), or back. A unit is a channel of the output. */
static void gather_task(void **args, int64_t begin, int64_t end) {
    const Job *j = args[0];
    int64_t bytes = j->pixels * j->size;
    for (int64_t c = begin; c < end; c++)
        for (int64_t image = 0; image < j->p->batch; image++)
            memcpy(j->planes + (c * j->p->batch + image) * bytes, j->y + (image * j->p->out + c) * bytes, (size_t)bytes);
}

static void scatter_task(void **args, int64_t begin, int64_t end) {
    const Job *j = args[0];
    int64_t bytes = j->pixels * j->size;
    for (int64_t c = begin; c < end; c++)
        for (int64_t image = 0; image < j->p->batch; image++)
            memcpy(j->y + (image * j->p->out + c) * bytes, j->planes + (c * j->p->batch + image) * bytes, (size_t)bytes);
}

int dg_conv_columns(const dg_convolution *p, int what, void *out, const void *a, const void *b) {
    Job j = {.p = p, .size = p->type == DG_F32 ? 4 : 8, .taps = p->kernel[0] * p->kernel[1] * p->kernel[2],
             .pixels = p->out_size[0] * p->out_size[1] * p->out_size[2]};
    int64_t depth = p->in * j.taps;
    j.columns = p->batch * j.pixels;
    int64_t most = what == DG_CONV_WEIGHTS ? 49 : 16;
    if (p->groups != 1 || j.pixels > most || depth < 32 || p->out < 16 || j.columns < 16) return DG_NO_KERNEL;
    int64_t matrix = depth * j.columns * j.size, planes = p->out * j.columns * j.size;
    if (matrix > MOST_BYTES || planes > MOST_BYTES) return DG_NO_KERNEL;
    j.matrix = dg_alloc((size_t)(matrix + planes));
    if (!j.matrix) return DG_NO_KERNEL; /* the other way needs less memory */
    j.planes = j.matrix + matrix;
    void *args[] = {&j};
    int64_t row = DG_MAX(1, 32768 / (j.columns + 1));
    dg_product product = {.type = p->type, .batches = 1};
    int code;
    if (what == DG_CONV_FORWARD) {
        j.x = (char *)a, j.y = out;
        dg_parallel_for(write_task, args, depth, row);
        product.m = p->out, product.n = j.columns, product.k = depth;
        code = dg_matmul(&product, j.planes, b, j.matrix);
        dg_parallel_for(scatter_task, args, p->out, row);
    } else if (what == DG_CONV_INPUT) {
        j.x = out, j.y = (char *)a;
        dg_parallel_for(gather_task, args, p->out, row);
        product.ta = 1, product.m = depth, product.n = j.columns, product.k = p->out;
        code = dg_matmul(&product, j.matrix, b, j.planes);
        dg_parallel_for(add_task, args, p->in, DG_MAX(1, row / j.taps));
    } else {
        j.x = (char *)a, j.y = (char *)b;
        dg_parallel_for(write_task, args, depth, row);
        dg_parallel_for(gather_task, args, p->out, row);
        product.tb = 1, product.m = p->out, product.n = depth, product.k = j.columns;
        code = dg_matmul(&product, out, j.planes, j.matrix);
    }
    dg_free(j.matrix);
    return code;
}
