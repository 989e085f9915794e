/* Convolution of small planes as GEMM.
 *
 * With few output pixels per plane the register tiles of conv.c are mostly empty. Here all images are columns of one GEMM over a matrix
 * (in * taps, batch * pixels). With our own GEMM (gemm.c) the columns are gathered from padded planes while they are packed (implicit
 * im2col). Otherwise they are written to memory once (im2col), for smaller planes only. */
#include "blas.h"
#include "common.h"
#include "conv_columns.h"

#define MOST_BYTES (64 << 20) /* of the im2col matrix */

typedef struct {
    const dg_convolution *p;
    int64_t size, taps, pixels, columns; /* element size; taps of a kernel; pixels of an output plane; of all planes */
    char *matrix;                        /* (in * taps, columns) */
    char *planes;                        /* (out, columns) */
    char *x, *y;
    const dg_epilogue *e;
} Job;

/* Runs the body for each output row (image, od, oh) of tap (kd, kh, kw): `at` is its first column, `from` its input row or -1; outputs
 * low .. high of the row read first + i*stride. */
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

/* A work unit is a row of the matrix: (channel, tap). */
static void write_task(void **args, int64_t begin, int64_t end) {
    const Job *j = args[0];
    for (int64_t u = begin; u < end; u++) {
        char *to = j->matrix + u * j->columns * j->size;
        if (j->size == 4) write_f32(j->p, (float *)to, (const float *)j->x, u / j->taps, u % j->taps);
        else write_f64(j->p, (double *)to, (const double *)j->x, u / j->taps, u % j->taps);
    }
}

/* A work unit is an input channel, to which several taps add in order. */
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

/* Transposes (batch, out, pixels) to (out, batch, pixels), or back. A work unit is an output channel. */
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
        for (int64_t image = 0; image < j->p->batch; image++) {
            int64_t plane = image * j->p->out + c;
            memcpy(j->y + plane * bytes, j->planes + (c * j->p->batch + image) * bytes, (size_t)bytes);
            dg_run_epilogue(j->e, plane * j->pixels, j->pixels);
        }
}

/* ---- implicit im2col ---- */

typedef struct {
    const dg_convolution *p;
    int64_t size, low[3], padded[3]; /* element size; padding at the low end of each axis; padded axis sizes */
    const char *x;
    char *planes;
} Padding;

/* A work unit is an input plane. */
static void pad_task(void **args, int64_t begin, int64_t end) {
    const Padding *j = args[0];
    const int64_t *n = args[1], *to = j->padded;
    for (int64_t u = begin; u < end; u++) {
        char *out = j->planes + u * to[0] * to[1] * to[2] * j->size;
        const char *x = j->x + u * n[0] * n[1] * n[2] * j->size;
        memset(out, 0, (size_t)(to[0] * to[1] * to[2] * j->size));
        for (int64_t d = 0; d < n[0]; d++)
            for (int64_t h = 0; h < n[1]; h++)
                memcpy(out + (((d + j->low[0]) * to[1] + h + j->low[1]) * to[2] + j->low[2]) * j->size, x + (d * n[1] + h) * n[2] * j->size,
                       (size_t)(n[2] * j->size));
    }
}

/* Weights for the input gradient: [in][out][reversed taps]. A work unit is an input channel. */
static void turn_task(void **args, int64_t begin, int64_t end) {
    const dg_convolution *p = args[0];
    int64_t taps = p->kernel[0] * p->kernel[1] * p->kernel[2], size = p->type == DG_F32 ? 4 : 8;
    for (int64_t first = begin; first < end; first += 16) /* a few channels at a time, contiguous in each row of w */
        for (int64_t o = 0; o < p->out; o++)
            for (int64_t c = first; c < DG_MIN(first + 16, end); c++) {
                int64_t to = (c * p->out + o) * taps, from = (o * p->in + c) * taps;
                for (int64_t t = 0; t < taps; t++) {
                    if (size == 4) ((float *)args[1])[to + t] = ((const float *)args[2])[from + taps - 1 - t];
                    else ((double *)args[1])[to + t] = ((const double *)args[2])[from + taps - 1 - t];
                }
            }
}

/* ASKED: only say whether this method applies (it then fails for lack of memory only). PACKED: the weights are packed in advance. */
enum { GATHERED, ASKED, PACKED };

/* The GEMM over padded planes; an element is addressed by an offset per tap plus one per pixel. */
static int gathered(const dg_convolution *p, int what, int how, const dg_epilogue *e, void *out, const void *a, const void *b) {
    /* The stride-1 input gradient is the convolution of dy with the reversed weights. */
    dg_convolution q = *p;
    const char *x = a, *w = b;
    int64_t taps = p->kernel[0] * p->kernel[1] * p->kernel[2], size = p->type == DG_F32 ? 4 : 8;
    if (what == DG_CONV_INPUT) {
        q.in = p->out, q.out = p->in;
        for (int d = 0; d < 3; d++) {
            q.size[d] = p->out_size[d], q.out_size[d] = p->size[d];
            q.pad[d] = p->dilation[d] * (p->kernel[d] - 1) - p->pad[d];
            if (p->stride[d] != 1 || q.pad[d] < 0) return DG_NO_KERNEL;
        }
    }
    Padding j = {.p = &q, .size = size, .x = x};
    Job k = {.p = &q, .size = size, .taps = taps, .pixels = q.out_size[0] * q.out_size[1] * q.out_size[2]};
    int64_t depth = q.in * taps;
    k.columns = q.batch * k.pixels;
    k.e = e;
    int strided = q.stride[0] * q.stride[1] * q.stride[2] > 1, padding = 0;
    /* For larger planes with stride 1, the shifted views of conv.c cost less than gathering. */
    int64_t most = strided ? 4096 : what == DG_CONV_WEIGHTS ? 300 : 100;
    if (k.pixels > most && k.columns > 1100) return DG_NO_KERNEL;
    /* Large weights cost more to reverse than small columns to write. */
    if (what == DG_CONV_INPUT && k.pixels <= 16 && k.columns < 3 * q.out) return DG_NO_KERNEL;
    if (q.groups != 1 || depth < 32 || q.out < 96 || k.columns < 16) return DG_NO_KERNEL;
    for (int d = 0; d < 3; d++) {
        j.low[d] = q.pad[d];
        j.padded[d] = DG_MAX(q.pad[d] + q.size[d], (q.out_size[d] - 1) * q.stride[d] + (q.kernel[d] - 1) * q.dilation[d] + 1);
        padding |= j.padded[d] != q.size[d];
    }
    int64_t plane = j.padded[0] * j.padded[1] * j.padded[2], all = q.batch * q.in * plane;
    int64_t planes = padding ? all * size : 0, results = q.batch > 1 || what == DG_CONV_WEIGHTS ? q.out * k.columns * size : 0;
    int64_t reversed = what == DG_CONV_INPUT ? q.out * depth * size : 0, offsets = (depth + k.columns) * 4;
    if (all > INT32_MAX || planes + results + reversed > MOST_BYTES) return DG_NO_KERNEL;
    if (how == ASKED) return DG_OK;
    char *memory = dg_alloc((size_t)(planes + results + reversed + offsets));
    if (!memory) return DG_NO_KERNEL;
    if (padding) {
        j.planes = memory;
        dg_parallel_for(pad_task, (void *[]){&j, q.size}, q.batch * q.in, DG_MAX(1, 32768 / plane));
    }
    x = padding ? memory : x;
    k.planes = memory + planes;
    int32_t *tap = (int32_t *)(memory + planes + results + reversed), *pixel = tap + depth, *to = tap;
    for (int64_t c = 0; c < q.in; c++)
        for (int64_t d = 0; d < q.kernel[0]; d++)
            for (int64_t h = 0; h < q.kernel[1]; h++)
                for (int64_t i = 0; i < q.kernel[2]; i++)
                    *to++ = (int32_t)(c * plane + (d * q.dilation[0] * j.padded[1] + h * q.dilation[1]) * j.padded[2] + i * q.dilation[2]);
    to = pixel;
    for (int64_t n = 0; n < q.batch; n++)
        for (int64_t d = 0; d < q.out_size[0]; d++)
            for (int64_t h = 0; h < q.out_size[1]; h++)
                for (int64_t i = 0; i < q.out_size[2]; i++)
                    *to++ = (int32_t)(n * q.in * plane + (d * q.stride[0] * j.padded[1] + h * q.stride[1]) * j.padded[2] + i * q.stride[2]);
    int done;
    int64_t row = DG_MAX(1, 32768 / k.columns);
    void *args[] = {&k};
    if (what == DG_CONV_WEIGHTS) {
        k.y = (char *)b;
        dg_parallel_for(gather_task, args, q.out, row);
        done = dg_gemm_gathered((int)q.type, 0, 0, q.out, depth, k.columns, k.planes, k.columns, x, pixel, tap, out, depth, 0);
    } else {
        if (reversed) {
            char *copy = k.planes + results;
            dg_parallel_for(turn_task, (void *[]){(void *)p, copy, (void *)w}, p->in, DG_MAX(1, 16384 / depth));
            w = copy;
        }
        done = dg_gemm_gathered((int)q.type, how == PACKED ? DG_LEFT : 0, 0, q.out, k.columns, depth, w, depth, x, tap, pixel, results ? k.planes : out, k.columns, results ? 0 : e);
        k.y = out;
        if (done && results) dg_parallel_for(scatter_task, args, q.out, row);
    }
    dg_free(memory);
    return done ? DG_OK : DG_NO_KERNEL;
}

int64_t dg_conv_columns_packs(const dg_convolution *p) {
    int64_t columns = p->batch * p->out_size[0] * p->out_size[1] * p->out_size[2], depth = p->in * p->kernel[0] * p->kernel[1] * p->kernel[2];
    if (gathered(p, DG_CONV_FORWARD, ASKED, 0, 0, 0, 0) != DG_OK) return 0;
    return dg_gemm_packed_bytes((int)p->type, DG_LEFT, p->out, columns, depth);
}

void dg_conv_columns_pack(const dg_convolution *p, void *out, const void *w) {
    int64_t depth = p->in * p->kernel[0] * p->kernel[1] * p->kernel[2];
    dg_gemm_pack((int)p->type, DG_LEFT, 0, p->out, depth, w, depth, out);
}

int dg_conv_columns_packed(const dg_convolution *p, const dg_epilogue *e, void *y, const void *x, const void *w) {
    int code = gathered(p, DG_CONV_FORWARD, PACKED, e, y, x, w);
    return code == DG_NO_KERNEL ? DG_NO_MEMORY : code;
}

int dg_conv_columns(const dg_convolution *p, int what, const dg_epilogue *e, void *out, const void *a, const void *b) {
    Job j = {.p = p, .size = p->type == DG_F32 ? 4 : 8, .taps = p->kernel[0] * p->kernel[1] * p->kernel[2],
             .pixels = p->out_size[0] * p->out_size[1] * p->out_size[2], .e = e};
    int code = gathered(p, what, GATHERED, e, out, a, b);
    if (code != DG_NO_KERNEL) return code;
    int64_t depth = p->in * j.taps;
    j.columns = p->batch * j.pixels;
    int64_t most = what == DG_CONV_WEIGHTS ? 49 : 16;
    if (p->groups != 1 || j.pixels > most || depth < 32 || p->out < 16 || j.columns < 16) return DG_NO_KERNEL;
    int64_t matrix = depth * j.columns * j.size, planes = p->out * j.columns * j.size;
    if (matrix > MOST_BYTES || planes > MOST_BYTES) return DG_NO_KERNEL;
    j.matrix = dg_alloc((size_t)(matrix + planes));
    if (!j.matrix) return DG_NO_KERNEL; /* the general method needs less memory */
    j.planes = j.matrix + matrix;
    void *args[] = {&j};
    int64_t row = DG_MAX(1, 32768 / (j.columns + 1));
    dg_product product = {.type = p->type, .batches = 1};
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
