/* Convolution and its gradients, channels first.
 *
 * A tile of input is copied once into zero-padded planes, split by stride phase, so that for every kernel tap the inputs of
 * neighbouring outputs are contiguous: the im2col columns are shifted views of the planes and are never written. A register tile of
 * outputs then runs over all (channel, tap) pairs through a table of offsets. Pixels are numbered with the pitch of the planes; those
 * beyond the output width are computed and dropped.
 *
 * The input gradient is, for each stride phase, a stride-1 convolution of dy with the taps that meet that phase. The weight gradient
 * multiplies the shifted planes by dy in channels-last layout. See README.md. */
#include "common.h"
#include "conv_columns.h"
#include "conv_winograd.h"
#include "half.h"

#include <stdlib.h>
#if defined(__x86_64__) || defined(__i386__)
#include <immintrin.h>
#endif


/* One spatial axis: output o reads source o*step + tap[i] and is written to o*dst_step + dst_first. */
typedef struct {
    int64_t size, outputs, step, taps, lowest, phases, shifts, dst_step, dst_first, dst_size;
    int64_t *tap, *index; /* source offset and kernel index of each tap */
    int64_t *phase;       /* the stride phases that occur, ascending */
    int64_t *tap_phase, *tap_shift;
} Axis;

typedef struct {
    Axis axis[3];
    int64_t pitch; /* elements from row to row of a plane */
    int64_t sources, targets; /* channels that a group reads and writes */
} View;

/* The range low .. high of outputs i < n whose input first + i*step is inside the axis. */
static void span(int64_t first, int64_t step, int64_t size, int64_t n, int64_t *low, int64_t *high) {
    *low = first < 0 ? DG_MIN(n, (-first + step - 1) / step) : 0;
    *high = size > first ? DG_MAX(*low, DG_MIN(n, (size - first + step - 1) / step)) : *low;
}

/* Two-dimensional depthwise convolution: a zero-padded plane of inputs, its columns grouped by stride phase. */
typedef struct {
    int64_t step, rows, width, x_width, top, left; /* rows and columns of the inputs that are read, and their offsets inside the padding */
    int64_t pitch, phase;                          /* from row to row; from the columns of one stride phase to those of the next */
    int64_t out_rows, out_width, outs, taps;
    int neighbours; /* the kernel is 3x3 with stride 1 */
    const int32_t *offset;
} Planes;

#define ISA_SOURCE "conv.inc"
#include "isa.h"

typedef struct {
    int type, mr, nr, tall_mr, tall_nr; /* rows and columns of the two register tiles */
    int64_t size;
    void (*conv_tile)(int64_t, const void *, const void *, const int32_t *, void *, int);
    void (*wgrad_narrow)(int64_t, int64_t, int64_t, const void *, const int32_t *, const void *, int64_t, void *, int64_t);
    void (*wgrad_tile)(int64_t, int64_t, int64_t, const void *, const int32_t *, const void *, int64_t, void *, int64_t);
    void (*pack)(const View *, void *, const void *, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t);
    void (*pack_weights)(void *, const void *, int64_t, int64_t, int64_t, int64_t, const int64_t *, int64_t);
    void (*columns)(void *, const void *, const int32_t *, int64_t, const int32_t *);
    void (*depthwise)(const Planes *, void *, const void *, const void *, void *);
    void (*thin)(int64_t, int64_t, const void *, const void *, const int32_t *, void *);
    void (*interleave)(void *, int64_t, const void *, int64_t, int64_t, int64_t);
} Kernels;

static Kernels kernels(int type) {
    int bytes = dg_isa() == 2 ? 64 : dg_isa() == 1 ? 32 : 16;
    int size = type == DG_F32 ? 4 : 8;
    Kernels k = {.type = type, .mr = dg_isa() == 2 ? 8 : 4, .nr = 3 * bytes / size, .size = size};
    k.tall_mr = k.mr * 3 / 2;
    k.tall_nr = 2 * bytes / size;
    if (type == DG_F32) {
        k.conv_tile = ISA_PICK(conv_tile_f32);
        k.wgrad_tile = ISA_PICK(wgrad_tile_f32);
        k.wgrad_narrow = ISA_PICK(wgrad_narrow_f32);
        k.pack = ISA_PICK(pack_f32);
        k.columns = ISA_PICK(columns_f32);
        k.pack_weights = ISA_PICK(pack_weights_f32);
        k.interleave = ISA_PICK(interleave_f32);
        k.thin = ISA_PICK(thin_f32);
        k.depthwise = ISA_PICK(depthwise_f32);
    } else {
        k.conv_tile = ISA_PICK(conv_tile_f64);
        k.wgrad_tile = ISA_PICK(wgrad_tile_f64);
        k.wgrad_narrow = ISA_PICK(wgrad_narrow_f64);
        k.pack = ISA_PICK(pack_f64);
        k.columns = ISA_PICK(columns_f64);
        k.pack_weights = ISA_PICK(pack_weights_f64);
        k.interleave = ISA_PICK(interleave_f64);
        k.thin = ISA_PICK(thin_f64);
        k.depthwise = ISA_PICK(depthwise_f64);
    }
    return k;
}

/* ---- shifted views of the planes ---- */

/* Computes the phases and shifts of the taps of an axis; returns 0 if memory is short. */
static int close_axis(Axis *a) {
    a->tap_phase = dg_alloc((size_t)a->taps * 3 * 8);
    if (!a->tap_phase) return 0;
    a->tap_shift = a->tap_phase + a->taps;
    a->phase = a->tap_shift + a->taps;
    a->lowest = a->taps ? a->tap[0] : 0;
    for (int64_t i = 0; i < a->taps; i++) a->lowest = DG_MIN(a->lowest, a->tap[i]);
    for (int64_t i = 0; i < a->taps; i++) {
        int64_t phase = (a->tap[i] - a->lowest) % a->step, at = 0;
        a->tap_shift[i] = (a->tap[i] - a->lowest) / a->step;
        a->shifts = DG_MAX(a->shifts, a->tap_shift[i]);
        while (at < a->phases && a->phase[at] != phase) at++;
        if (at == a->phases) a->phase[a->phases++] = phase;
        a->tap_phase[i] = at;
    }
    return 1;
}

static void free_view(View *v) {
    for (int d = 0; d < 3; d++) {
        dg_free(v->axis[d].tap);
        dg_free(v->axis[d].tap_phase);
    }
}

static int close_view(View *v) {
    for (int d = 0; d < 3; d++)
        if (!close_axis(&v->axis[d])) return 0;
    v->pitch = v->axis[2].outputs + v->axis[2].shifts;
    return 1;
}

static int forward_view(View *v, const dg_convolution *p) {
    *v = (View){.sources = p->in, .targets = p->out};
    for (int d = 0; d < 3; d++) {
        Axis *a = &v->axis[d];
        a->size = p->size[d];
        a->outputs = a->dst_size = p->out_size[d];
        a->step = p->stride[d];
        a->dst_step = 1;
        a->taps = p->kernel[d];
        a->tap = dg_alloc((size_t)a->taps * 2 * 8);
        if (!a->tap) return 0;
        a->index = a->tap + a->taps;
        for (int64_t i = 0; i < a->taps; i++) {
            a->tap[i] = i * p->dilation[d] - p->pad[d];
            a->index[i] = i;
        }
    }
    return close_view(v);
}

/* The view for input positions i with (i + pad) % stride == phase, as a convolution of dy. */
static int backward_view(View *v, const dg_convolution *p, const int64_t *phase) {
    *v = (View){.sources = p->out, .targets = p->in};
    for (int d = 0; d < 3; d++) {
        Axis *a = &v->axis[d];
        int64_t s = p->stride[d];
        a->size = p->out_size[d];
        a->step = 1;
        a->dst_step = s;
        a->dst_size = p->size[d];
        a->dst_first = ((phase[d] - p->pad[d]) % s + s) % s;
        a->outputs = p->size[d] > a->dst_first ? (p->size[d] - a->dst_first + s - 1) / s : 0;
        a->tap = dg_alloc((size_t)(p->kernel[d] * 2 + 1) * 8);
        if (!a->tap) return 0;
        a->index = a->tap + p->kernel[d];
        for (int64_t i = 0; i < p->kernel[d]; i++) {
            int64_t reach = a->dst_first + p->pad[d] - i * p->dilation[d];
            if (reach % s != 0) continue;
            a->tap[a->taps] = reach / s;
            a->index[a->taps++] = i;
        }
    }
    return close_view(v);
}

/* Returns the elements of the planes of one channel, and the offset of each tap in them. */
static int64_t plane_size(const View *v, int64_t rows) {
    return v->axis[0].taps * v->axis[1].phases * v->axis[2].phases * (rows + v->axis[1].shifts) * v->pitch;
}

static int64_t taps_of(const View *v) { return v->axis[0].taps * v->axis[1].taps * v->axis[2].taps; }

static void tap_offsets(const View *v, int64_t rows, int64_t channels, int32_t *offset) {
    const Axis *z = &v->axis[0], *y = &v->axis[1], *w = &v->axis[2];
    int64_t height = rows + y->shifts, channel = plane_size(v, rows);
    for (int64_t c = 0; c < channels; c++)
        for (int64_t d = 0; d < z->taps; d++)
            for (int64_t i = 0; i < y->taps; i++)
                for (int64_t j = 0; j < w->taps; j++) {
                    int64_t plane = (d * y->phases + y->tap_phase[i]) * w->phases + w->tap_phase[j];
                    *offset++ = (int32_t)(c * channel + (plane * height + y->tap_shift[i]) * v->pitch + w->tap_shift[j]);
                }
}

/* ---- forward and input gradient ---- */

static int is_thin(const dg_convolution *p) { return p->groups > 1 && p->in * p->out <= 16; }

#define PLANES (384 << 10) /* bytes of planes that a work unit packs: they must stay in L2 */
#define THIN_PLANES (24 << 10) /* the same if each output channel is a separate pass: in L1 */
#define SMALL_DEPTH 192
#define DEPTH 288          /* (channel, tap) pairs that a register tile runs over before the next tile */

typedef struct {
    const dg_convolution *p;
    const View *v;
    Kernels k;
    const char *x;
    char *y;
    const char *weights;  /* packed: [group][row block][source, tap][mr] */
    const int32_t *offset;
    int64_t depth, blocks, rows, row_parts;
    int64_t images; /* small images that a work unit packs side by side; 0: one image, its pixels numbered with the pitch */
    int backward, *failed;
    const dg_epilogue *e;
} Job;

static void pack_weights_task(void **args, int64_t begin, int64_t end) {
    const Job *j = args[0];
    const View *v = j->v;
    const dg_convolution *p = j->p;
    int64_t full = p->kernel[0] * p->kernel[1] * p->kernel[2], size = j->k.size;
    int64_t out_step = p->in * full, in_step = full; /* strides of the weights, in elements */
    for (int64_t u = begin; u < end; u++) {
        int64_t g = u / j->blocks, first = u % j->blocks * j->k.mr;
        const char *w = (const char *)args[2] + (g * p->out * out_step + first * (j->backward ? in_step : out_step)) * size;
        j->k.pack_weights((char *)args[1] + u * j->depth * j->k.mr * size, w, v->sources, j->backward ? out_step : in_step,
                          v->targets - first, j->backward ? in_step : out_step, args[3], taps_of(v));
    }
}

/* Stores pixels first .. first+nr (numbered with the pitch) of all output channels from their tile. */
static void store_tile(const Job *j, const char *tile, int64_t first, int64_t image, int64_t depth, int64_t row, int64_t rows) {
    const View *v = j->v;
    const Axis *z = &v->axis[0], *y = &v->axis[1], *w = &v->axis[2];
    int64_t size = j->k.size, nr = j->k.nr, channel = z->dst_size * y->dst_size * w->dst_size;
    for (int64_t q = first; q < first + nr;) {
        int64_t r = q / v->pitch, i = q % v->pitch, next = (r + 1) * v->pitch;
        if (r >= rows) break;
        int64_t n = DG_MIN(w->outputs - i, first + nr - q);
        if (n > 0) {
            int64_t at = ((depth * z->dst_step + z->dst_first) * y->dst_size + (row + r) * y->dst_step + y->dst_first) * w->dst_size +
                         i * w->dst_step + w->dst_first;
            char *to = j->y + (image * channel + at) * size;
            const char *from = tile + (q - first) * size;
            for (int64_t t = 0; t < v->targets; t++, to += channel * size, from += nr * size) {
                if (w->dst_step == 1) memcpy(to, from, (size_t)(n * size));
                else if (size == 4)
                    for (int64_t e = 0; e < n; e++) ((float *)to)[e * w->dst_step] = ((const float *)from)[e];
                else
                    for (int64_t e = 0; e < n; e++) ((double *)to)[e * w->dst_step] = ((const double *)from)[e];
            }
        }
        q = next;
    }
}

/* Pixels numbered without gaps, for small images, on which the pitch would waste too much. A work unit is (images, group, depth). */
static void small_task(void **args, int64_t begin, int64_t end) {
    const Job *j = args[0];
    const View *v = j->v;
    const dg_convolution *p = j->p;
    const Axis *z = &v->axis[0], *y = &v->axis[1], *w = &v->axis[2];
    int64_t size = j->k.size, mr = j->k.mr, nr = j->k.nr, height = y->outputs + y->shifts;
    int64_t planes = plane_size(v, j->images * height - y->shifts) * v->sources;
    char *scratch = dg_alloc((size_t)((planes + j->blocks * mr * nr + SMALL_DEPTH * nr) * size));
    if (!scratch) {
        __atomic_store_n(j->failed, 1, __ATOMIC_RELAXED);
        return;
    }
    char *tile = scratch + planes * size, *columns = tile + j->blocks * mr * nr * size;
    if (j->depth == 0) memset(tile, 0, (size_t)(j->blocks * mr * nr * size));
    int64_t channel = z->size * y->size * w->size, target = z->dst_size * y->dst_size * w->dst_size;
    int64_t plane = y->outputs * w->outputs;
    int32_t position[48], linear[SMALL_DEPTH];
    int64_t to[48];
    for (int i = 0; i < SMALL_DEPTH; i++) linear[i] = (int32_t)(i * nr);
    for (int64_t u = begin; u < end; u++) {
        int64_t depth = u % z->outputs, g = u / z->outputs % p->groups, first = u / z->outputs / p->groups * j->images;
        int64_t images = DG_MIN(j->images, p->batch - first), pixels = images * plane;
        const char *x = j->x + (first * p->groups + g) * v->sources * channel * size;
        const char *weights = j->weights + g * j->blocks * j->depth * mr * size;
        /* The last unit may have fewer images: it repeats its first image and drops those results. */
        j->k.pack(v, scratch, x, v->sources, channel, j->images, images, p->groups * v->sources * channel, depth, 0, y->outputs);
        for (int64_t q = 0; q < pixels; q += nr) {
            for (int64_t l = 0; l < nr; l++) {
                int64_t at = DG_MIN(q + l, pixels - 1), n = at / plane, r = at % plane / w->outputs, i = at % w->outputs;
                position[l] = (int32_t)((n * height + r) * v->pitch + i);
                to[l] = (first + n) * p->groups * v->targets * target + ((depth * z->dst_step + z->dst_first) * y->dst_size +
                        r * y->dst_step + y->dst_first) * w->dst_size + i * w->dst_step + w->dst_first;
            }
            for (int64_t d = 0; d < j->depth; d += SMALL_DEPTH) {
                int64_t n = DG_MIN(SMALL_DEPTH, j->depth - d);
                j->k.columns(columns, scratch, j->offset + d, n, position);
                for (int64_t b = 0; b < j->blocks; b++)
                    j->k.conv_tile(n, weights + (b * j->depth + d) * mr * size, columns, linear, tile + b * mr * nr * size, d > 0);
            }
            int64_t n = DG_MIN(nr, pixels - q);
            for (int64_t t = 0; t < v->targets; t++) {
                char *y_ = j->y + (g * v->targets + t) * target * size;
                if (size == 4)
                    for (int64_t l = 0; l < n; l++) ((float *)y_)[to[l]] = ((float *)tile)[t * nr + l];
                else
                    for (int64_t l = 0; l < n; l++) ((double *)y_)[to[l]] = ((double *)tile)[t * nr + l];
            }
        }
        for (int64_t n = 0; j->e && n < images; n++)
            for (int64_t t = 0; t < v->targets; t++)
                dg_run_epilogue(j->e, (((first + n) * p->groups + g) * v->targets + t) * target + depth * plane, plane);
    }
    dg_free(scratch);
}

/* A work unit is (image, group, depth, row part). */
static void conv_task(void **args, int64_t begin, int64_t end) {
    const Job *j = args[0];
    const View *v = j->v;
    const dg_convolution *p = j->p;
    const Axis *z = &v->axis[0], *y = &v->axis[1];
    int64_t size = j->k.size, mr = j->k.mr, nr = j->k.nr;
    int64_t planes = plane_size(v, j->rows) * v->sources + nr;
    char *scratch = dg_alloc((size_t)((planes + j->blocks * mr * nr) * size));
    if (!scratch) {
        __atomic_store_n(j->failed, 1, __ATOMIC_RELAXED);
        return;
    }
    char *tile = scratch + planes * size;
    if (j->depth == 0) memset(tile, 0, (size_t)(j->blocks * mr * nr * size)); /* no tap meets this phase */
    int64_t channel = z->size * y->size * v->axis[2].size;
    for (int64_t u = begin; u < end; u++) {
        int64_t row = u % j->row_parts * j->rows, depth = u / j->row_parts % z->outputs;
        int64_t g = u / j->row_parts / z->outputs % p->groups, image = u / j->row_parts / z->outputs / p->groups;
        int64_t rows = DG_MIN(j->rows, y->outputs - row);
        const char *x = j->x + (image * p->groups + g) * v->sources * channel * size;
        const char *weights = j->weights + g * j->blocks * j->depth * mr * size;
        j->k.pack(v, scratch, x, v->sources, channel, 1, 1, 0, depth, row, j->rows);
        for (int64_t q = 0; q < rows * v->pitch; q += nr) {
            for (int64_t d = 0; d < j->depth; d += DEPTH)
                for (int64_t b = 0; b < j->blocks; b++)
                    j->k.conv_tile(DG_MIN(DEPTH, j->depth - d), weights + (b * j->depth + d) * mr * size, scratch + q * size,
                                   j->offset + d, tile + b * mr * nr * size, d > 0);
            store_tile(j, tile, q, (image * p->groups + g) * v->targets, depth, row, rows);
        }
        int64_t width = v->axis[2].outputs;
        for (int64_t t = 0; j->e && t < v->targets; t++)
            dg_run_epilogue(j->e, ((((image * p->groups + g) * v->targets + t) * z->outputs + depth) * y->outputs + row) * width, rows * width);
    }
    dg_free(scratch);
}

/* `pack` for stride 1 and a single row part: copies the inputs into planes whose padding is already zero. */
static void copy_plane(const View *v, char *out, const char *x, int64_t size) {
    const Axis *y = &v->axis[1], *w = &v->axis[2];
    int64_t first = DG_MAX(0, -y->lowest), last = DG_MIN(y->outputs + y->shifts, y->size - y->lowest);
    int64_t left = DG_MAX(0, -w->lowest), n = DG_MIN(v->pitch, w->size - w->lowest) - left;
    for (int64_t r = first; r < last && n > 0; r++)
        memcpy(out + (r * v->pitch + left) * size, x + ((r + y->lowest) * w->size + left + w->lowest) * size, (size_t)(n * size));
}

/* Groups of few channels, such as depthwise ones, would leave register tiles mostly empty. Each output channel is computed by
 * itself, many pixels at a time. A work unit is (image, group, depth, row part). */
static void thin_task(void **args, int64_t begin, int64_t end) {
    const Job *j = args[0];
    const char *w = args[1];
    const int64_t *tap = args[2];
    const View *v = j->v;
    const dg_convolution *p = j->p;
    const Axis *z = &v->axis[0], *y = &v->axis[1], *x = &v->axis[2];
    int64_t size = j->k.size, lanes = j->k.nr, taps = taps_of(v), full = p->kernel[0] * p->kernel[1] * p->kernel[2];
    int64_t planes = plane_size(v, j->rows) * v->sources + 2 * lanes, line = j->rows * v->pitch + 2 * lanes;
    char *scratch = dg_alloc((size_t)((planes + line + j->depth) * size));
    if (!scratch) {
        __atomic_store_n(j->failed, 1, __ATOMIC_RELAXED);
        return;
    }
    char *out = scratch + planes * size, *weights = out + line * size;
    int simple = z->taps == 1 && z->size == 1 && z->tap[0] == 0 && y->step == 1 && x->step == 1 && j->row_parts == 1;
    if (simple) memset(scratch, 0, (size_t)(planes * size));
    int64_t channel = z->size * y->size * x->size, target = z->dst_size * y->dst_size * x->dst_size;
    for (int64_t u = begin; u < end; u++) {
        int64_t row = u % j->row_parts * j->rows, depth = u / j->row_parts % z->outputs;
        int64_t g = u / j->row_parts / z->outputs % p->groups, image = u / j->row_parts / z->outputs / p->groups;
        int64_t rows = DG_MIN(j->rows, y->outputs - row);
        const char *from = j->x + (image * p->groups + g) * v->sources * channel * size;
        if (simple)
            for (int64_t s = 0; s < v->sources; s++) copy_plane(v, scratch + s * plane_size(v, j->rows) * size, from + s * channel * size, size);
        else j->k.pack(v, scratch, from, v->sources, channel, 1, 1, 0, depth, row, j->rows);
        for (int64_t t = 0; t < v->targets; t++) {
            for (int64_t s = 0; s < v->sources; s++)
                for (int64_t i = 0; i < taps; i++) {
                    int64_t o = j->backward ? s : t, c = j->backward ? t : s;
                    memcpy(weights + (s * taps + i) * size, w + (((g * p->out + o) * p->in + c) * full + tap[i]) * size, (size_t)size);
                }
            j->k.thin(rows * v->pitch, j->depth, weights, scratch, j->offset, out);
            char *to = j->y + (((image * p->groups + g) * v->targets + t) * target +
                               ((depth * z->dst_step + z->dst_first) * y->dst_size + row * y->dst_step + y->dst_first) * x->dst_size +
                               x->dst_first) * size;
            for (int64_t r = 0; r < rows; r++, to += y->dst_step * x->dst_size * size) {
                const char *line_ = out + r * v->pitch * size;
                if (x->dst_step == 1) memcpy(to, line_, (size_t)(x->outputs * size));
                else if (size == 4)
                    for (int64_t i = 0; i < x->outputs; i++) ((float *)to)[i * x->dst_step] = ((const float *)line_)[i];
                else
                    for (int64_t i = 0; i < x->outputs; i++) ((double *)to)[i * x->dst_step] = ((const double *)line_)[i];
            }
            dg_run_epilogue(j->e, ((((image * p->groups + g) * v->targets + t) * z->outputs + depth) * y->outputs + row) * x->outputs, rows * x->outputs);
        }
    }
    dg_free(scratch);
}

static int run_view(const dg_convolution *p, const View *v, int backward, const dg_epilogue *e, void *y, const void *x, const void *w) {
    int failed = 0;
    Job j = {.p = p, .v = v, .k = kernels((int)p->type), .x = x, .y = y, .backward = backward, .failed = &failed, .e = e};
    const Axis *a = &v->axis[1];
    if (p->batch * p->groups * v->targets == 0 || v->axis[0].outputs * a->outputs * v->axis[2].outputs == 0) return DG_OK;
    j.depth = v->sources * taps_of(v);
    j.blocks = (v->targets + j.k.mr - 1) / j.k.mr;
    /* rows per unit: its planes fit the cache, and small batches still yield enough units */
    int64_t row_bytes = plane_size(v, 1) / (1 + a->shifts) * v->sources * j.k.size;
    int64_t units = p->batch * p->groups * v->axis[0].outputs;
    int thin = is_thin(p);
    j.rows = DG_MAX(1, (thin ? THIN_PLANES : PLANES) / DG_MAX(1, row_bytes) - a->shifts);
    if (units < 16) j.rows = DG_MIN(j.rows, DG_MAX((16 + v->pitch - 1) / v->pitch, (a->outputs * units + 15) / 16));
    j.rows = DG_MIN(j.rows, a->outputs);
    j.row_parts = (a->outputs + j.rows - 1) / j.rows;
    j.rows = (a->outputs + j.row_parts - 1) / j.row_parts;
    /* Pixels without gaps cost a gather each, so they pay only if the pitch would waste enough. */
    int64_t nr = j.k.nr, valid = a->outputs * v->axis[2].outputs;
    double waste = (double)((j.rows * v->pitch + nr - 1) / nr * nr) / (double)(j.rows * v->axis[2].outputs);
    int64_t image_bytes = plane_size(v, a->outputs) * v->sources * j.k.size;
    if (!thin && j.depth > 0 && j.row_parts == 1 && waste > 1.05 + 4.0 / (double)j.blocks && image_bytes <= 4 * PLANES) {
        j.images = DG_MAX(1, DG_MIN(DG_MIN(2 * PLANES / image_bytes, 8 * nr / valid + 1), (p->batch * p->groups + 3) / 4));
        j.images = DG_MIN(j.images, p->batch);
        units = (p->batch + j.images - 1) / j.images * p->groups * v->axis[0].outputs;
    }
    int64_t plane_rows = j.images ? j.images * (a->outputs + a->shifts) - a->shifts : j.rows;
    if (plane_size(v, plane_rows) * v->sources > INT32_MAX) return DG_NO_KERNEL;
    int64_t packed = thin ? 0 : p->groups * j.blocks * j.depth * j.k.mr * j.k.size;
    char *memory = dg_alloc((size_t)(packed + j.depth * 4 + taps_of(v) * 8 + 64));
    if (!memory) return DG_NO_MEMORY;
    j.weights = memory;
    j.offset = (int32_t *)(memory + packed);
    tap_offsets(v, plane_rows, v->sources, (int32_t *)j.offset);
    int64_t *tap = (int64_t *)(memory + packed + j.depth * 4 + 8 - (packed + j.depth * 4) % 8), n = 0;
    for (int64_t d = 0; d < v->axis[0].taps; d++)
        for (int64_t i = 0; i < v->axis[1].taps; i++)
            for (int64_t k = 0; k < v->axis[2].taps; k++)
                tap[n++] = (v->axis[0].index[d] * p->kernel[1] + v->axis[1].index[i]) * p->kernel[2] + v->axis[2].index[k];
    double flops = 2.0 * (double)j.depth * (double)v->targets * (double)(j.rows * v->pitch);
    if (thin) {
        dg_parallel_for(thin_task, (void *[]){&j, (void *)w, tap}, units * j.row_parts, (int64_t)(1e5 / (flops + 4.0 * (double)plane_size(v, j.rows))) + 1);
        dg_free(memory);
        return failed ? DG_NO_MEMORY : DG_OK;
    }
    dg_parallel_for(pack_weights_task, (void *[]){&j, memory, (void *)w, tap}, p->groups * j.blocks,
                    DG_MAX(1, 16384 / (j.depth * j.k.mr + 1)));
    if (j.images) dg_parallel_chunks(small_task, (void *[]){&j}, units);
    else dg_parallel_for(conv_task, (void *[]){&j}, units * j.row_parts, (int64_t)(2e5 / (flops + 1)) + 1);
    dg_free(memory);
    return failed ? DG_NO_MEMORY : DG_OK;
}

/* ---- weight gradient ---- */

typedef struct {
    const dg_convolution *p;
    const View *v;
    Kernels k;
    const char *x, *dy;
    char *parts;           /* [part][group][source, tap padded to mr][out padded to nr] */
    int64_t rows, row_parts, ranges, range, parts_n, units, depth, outs;
    int *failed;
} GradJob;

/* A work unit is (part, group, range of input channels); it processes its share of (image, depth, row part). */
static void weight_grad_task(void **args, int64_t begin, int64_t end) {
    const GradJob *j = args[0];
    const View *v = j->v;
    const dg_convolution *p = j->p;
    const Axis *z = &v->axis[0], *y = &v->axis[1], *w = &v->axis[2];
    int64_t size = j->k.size, mr = j->k.tall_mr, nr = j->k.tall_nr, taps = taps_of(v);
    int64_t channel = z->size * y->size * w->size, out_channel = z->outputs * y->outputs * w->outputs;
    int64_t planes = plane_size(v, j->rows) * j->range + nr, pixels = j->rows * w->outputs;
    int64_t offsets = j->range * taps + mr;
    char *scratch = dg_alloc((size_t)((planes + pixels * j->outs) * size + offsets * 4));
    if (!scratch) {
        __atomic_store_n(j->failed, 1, __ATOMIC_RELAXED);
        return;
    }
    char *gradient = scratch + planes * size;
    int32_t *offset = (int32_t *)(gradient + pixels * j->outs * size);
    for (int64_t u = begin; u < end; u++) {
        int64_t range = u % j->ranges, g = u / j->ranges % p->groups, part = u / j->ranges / p->groups;
        int64_t first = range * j->range, channels = DG_MIN(j->range, p->in - first);
        int64_t depth = channels * taps;
        char *out = j->parts + (((part * p->groups + g) * j->depth) + first * taps) * j->outs * size;
        memset(out, 0, (size_t)(depth * j->outs * size));
        tap_offsets(v, j->rows, channels, offset);
        for (int64_t i = depth; i < depth + mr; i++) offset[i] = 0;
        for (int64_t s = j->units * part / j->parts_n; s < j->units * (part + 1) / j->parts_n; s++) {
            int64_t row = s % j->row_parts * j->rows, od = s / j->row_parts % z->outputs, image = s / j->row_parts / z->outputs;
            int64_t rows = DG_MIN(j->rows, y->outputs - row);
            const char *x = j->x + ((image * p->groups + g) * p->in + first) * channel * size;
            const char *dy = j->dy + ((image * p->groups + g) * p->out * out_channel + (od * y->outputs + row) * w->outputs) * size;
            j->k.pack(v, scratch, x, channels, channel, 1, 1, 0, od, row, j->rows);
            j->k.interleave(gradient, j->outs, dy, out_channel, p->out, rows * w->outputs);
            for (int64_t d = 0; d < depth; d += mr) {
                if (d + mr <= depth) {
                    for (int64_t o = 0; o < j->outs; o += nr)
                        (j->outs - o < nr ? j->k.wgrad_narrow : j->k.wgrad_tile)(rows, w->outputs, v->pitch, scratch, offset + d, gradient + o * size, j->outs,
                                        out + (d * j->outs + o) * size, j->outs);
                } else { /* leftover rows: into a separate tile first */
                    double last[12 * 32];
                    for (int64_t o = 0; o < j->outs; o += nr) {
                        int64_t width = DG_MIN(nr, j->outs - o);
                        memset(last, 0, sizeof last);
                        (width < nr ? j->k.wgrad_narrow : j->k.wgrad_tile)(rows, w->outputs, v->pitch, scratch, offset + d,
                                                                           gradient + o * size, j->outs, last, nr);
                        for (int64_t r = 0; r < depth - d; r++)
                            for (int64_t i = 0; i < width; i++)
                                if (size == 4) ((float *)out)[(d + r) * j->outs + o + i] += ((float *)last)[r * nr + i];
                                else ((double *)out)[(d + r) * j->outs + o + i] += last[r * nr + i];
                    }
                }
            }
        }
    }
    dg_free(scratch);
}

/* Adds the parts in order and makes the output channel outermost. */
static void merge_weights_task(void **args, int64_t begin, int64_t end) {
    const GradJob *j = args[0];
    const dg_convolution *p = j->p;
    int64_t part = p->groups * j->depth * j->outs;
    for (int64_t u = begin; u < end; u++) { /* (group, output channel) */
        int64_t g = u / p->out, o = u % p->out;
        for (int64_t d = 0; d < j->depth; d++) {
            int64_t from = (g * j->depth + d) * j->outs + o;
            if (j->k.size == 4) {
                float sum = 0;
                for (int64_t i = 0; i < j->parts_n; i++) sum += ((const float *)j->parts)[i * part + from];
                ((float *)args[1])[u * j->depth + d] = sum;
            } else {
                double sum = 0;
                for (int64_t i = 0; i < j->parts_n; i++) sum += ((const double *)j->parts)[i * part + from];
                ((double *)args[1])[u * j->depth + d] = sum;
            }
        }
    }
}

static int weight_grad(const dg_convolution *p, void *dw, const void *x, const void *dy) {
    View v;
    if (!forward_view(&v, p)) {
        free_view(&v);
        return DG_NO_MEMORY;
    }
    int failed = 0;
    GradJob j = {.p = p, .v = &v, .k = kernels((int)p->type), .x = x, .dy = dy, .failed = &failed};
    const Axis *a = &v.axis[1];
    j.depth = p->in * taps_of(&v);
    j.outs = (p->out + j.k.tall_nr / 2 - 1) / (j.k.tall_nr / 2) * (j.k.tall_nr / 2);
    int64_t results = p->groups * p->out * j.depth;
    if (results == 0) {
        free_view(&v);
        return DG_OK;
    }
    if (p->batch * v.axis[0].outputs * a->outputs * v.axis[2].outputs == 0) {
        memset(dw, 0, (size_t)(results * j.k.size));
        free_view(&v);
        return DG_OK;
    }
    /* channel ranges large enough to amortise the transposition of dy; the remaining parallelism comes from the batch */
    j.ranges = DG_MAX(1, DG_MIN(8, j.depth / 256));
    j.range = (p->in + j.ranges - 1) / j.ranges;
    j.ranges = (p->in + j.range - 1) / j.range;
    int64_t row_bytes = (plane_size(&v, 1) / (1 + a->shifts) * j.range + v.axis[2].outputs * j.outs) * j.k.size;
    j.rows = DG_MIN(a->outputs, DG_MAX(1, PLANES / DG_MAX(1, row_bytes) - a->shifts));
    j.row_parts = (a->outputs + j.rows - 1) / j.rows;
    j.rows = (a->outputs + j.row_parts - 1) / j.row_parts;
    j.units = p->batch * v.axis[0].outputs * j.row_parts;
    int64_t part = p->groups * j.depth * j.outs * j.k.size;
    j.parts_n = (16 + j.ranges * p->groups - 1) / (j.ranges * p->groups);
    j.parts_n = DG_MAX(1, DG_MIN(DG_MIN(j.parts_n, j.units), (64 << 20) / part));
    if (plane_size(&v, j.rows) * j.range > INT32_MAX) {
        free_view(&v);
        return DG_NO_KERNEL;
    }
    j.parts = dg_alloc((size_t)(part * j.parts_n));
    int code = DG_NO_MEMORY;
    if (j.parts) {
        void *args[] = {&j, dw};
        dg_parallel_chunks(weight_grad_task, args, j.parts_n * p->groups * j.ranges);
        dg_parallel_for(merge_weights_task, args, p->groups * p->out, DG_MAX(1, 16384 / (j.depth * j.parts_n)));
        code = failed ? DG_NO_MEMORY : DG_OK;
        dg_free(j.parts);
    }
    free_view(&v);
    return code;
}

enum { FORWARD = DG_CONV_FORWARD, INPUT = DG_CONV_INPUT, WEIGHT = DG_CONV_WEIGHTS };

/* The weight gradient for groups of few channels. A work unit is (group, output channel). */
static void thin_weights_task(void **args, int64_t begin, int64_t end) {
    const dg_convolution *p = args[0];
    char *out = args[1];
    const char *x = args[2], *y = args[3];
    int64_t size = p->type == DG_F32 ? 4 : 8, taps = p->kernel[0] * p->kernel[1] * p->kernel[2];
    int64_t plane = p->size[0] * p->size[1] * p->size[2], out_plane = p->out_size[0] * p->out_size[1] * p->out_size[2];
    for (int64_t u = begin; u < end; u++) {
        char *to = out + u * p->in * taps * size;
        memset(to, 0, (size_t)(p->in * taps * size));
        for (int64_t n = 0; n < p->batch; n++)
            for (int64_t c = 0; c < p->in; c++) {
                const char *in = x + ((n * p->groups + u / p->out) * p->in + c) * plane * size;
                const char *dy = y + (n * p->groups * p->out + u) * out_plane * size;
                if (size == 4) ISA_PICK(direct_weight_rows_f32)(p, (float *)to + c * taps, (const float *)in, (const float *)dy);
                else ISA_PICK(direct_weight_rows_f64)(p, (double *)to + c * taps, (const double *)in, (const double *)dy);
            }
    }
}

static int thin_weights(const dg_convolution *p, void *dw, const void *x, const void *dy) {
    int64_t each = p->out_size[0] * p->out_size[1] * p->out_size[2] * p->kernel[0] * p->kernel[1] * p->kernel[2] * p->in * p->batch;
    dg_parallel_for(thin_weights_task, (void *[]){(void *)p, dw, (void *)x, (void *)dy}, p->groups * p->out, DG_MAX(1, 65536 / (each + 1)));
    return DG_OK;
}

/* A 1x1 kernel is a GEMM of the weights and each image, in place. */
static int as_product(const dg_convolution *p, dg_product *q) {
    int64_t pixels = 1;
    for (int d = 0; d < 3; d++) {
        if (p->kernel[d] != 1 || p->stride[d] != 1 || p->pad[d] != 0 || p->size[d] != p->out_size[d]) return 0;
        pixels *= p->size[d];
    }
    if (pixels < 32 && p->batch > 1) return 0; /* all images side by side: conv_columns.c */
    *q = (dg_product){.type = p->type, .batches = p->batch * p->groups, .n = pixels, .m = p->out, .k = p->in};
    if (q->batches > 1) {
        q->ndim = 2, q->shape[0] = p->batch, q->shape[1] = p->groups;
        q->a_stride[1] = 1, q->b_stride[0] = p->groups, q->b_stride[1] = 1;
    }
    return 1;
}

static int pointwise(const dg_convolution *p, int what, const dg_epilogue *e, void *out, const void *a, const void *b) {
    dg_product q;
    if (!as_product(p, &q)) return DG_NO_KERNEL;
    if (what == FORWARD) return dg_matmul_then(&q, e, out, b, a);
    if (what == INPUT) {
        q.ta = 1, q.m = p->in, q.k = p->out;
        return dg_matmul(&q, out, b, a);
    }
    if (p->batch > 1) return DG_NO_KERNEL;
    q.tb = 1, q.m = p->out, q.k = q.n, q.n = p->in;
    return dg_matmul(&q, out, b, a);
}

/* ---- entry points ---- */

static int input_grad(const dg_convolution *p, void *dx, const void *dy, const void *w) {
    int64_t s[3];
    for (s[0] = 0; s[0] < p->stride[0]; s[0]++)
        for (s[1] = 0; s[1] < p->stride[1]; s[1]++)
            for (s[2] = 0; s[2] < p->stride[2]; s[2]++) {
                View v;
                int code = backward_view(&v, p, s) ? run_view(p, &v, 1, 0, dx, dy, w) : DG_NO_MEMORY;
                free_view(&v);
                if (code) return code;
            }
    return DG_OK;
}

static int forward(const dg_convolution *p, const dg_epilogue *e, void *y, const void *x, const void *w) {
    View v;
    int code = forward_view(&v, p) ? run_view(p, &v, 0, e, y, x, w) : DG_NO_MEMORY;
    free_view(&v);
    return code;
}

typedef struct {
    const dg_convolution *p;
    const Planes *planes;
    Kernels k;
    const dg_epilogue *e;
    char *y;
    const char *x, *w;
    int64_t room; /* elements of a zero-padded plane */
    int *failed;
} DepthJob;

/* A work unit is (image, group). */
static void depthwise_task(void **args, int64_t begin, int64_t end) {
    const DepthJob *j = args[0];
    const dg_convolution *p = j->p;
    int64_t size = j->k.size, outputs = p->out_size[1] * p->out_size[2] * p->out;
    char *planes = dg_alloc((size_t)(j->room * size));
    if (!planes) {
        __atomic_store_n(j->failed, 1, __ATOMIC_RELAXED);
        return;
    }
    memset(planes, 0, (size_t)(j->room * size));
    for (int64_t u = begin; u < end; u++) {
        j->k.depthwise(j->planes, j->y + u * outputs * size, j->x + u * p->size[1] * p->size[2] * size,
                       j->w + u % p->groups * p->out * j->planes->taps * size, planes);
        dg_run_epilogue(j->e, u * outputs, outputs);
    }
    dg_free(planes);
}

static int depthwise(const dg_convolution *p, const dg_epilogue *e, void *y, const void *x, const void *w) {
    int64_t taps = p->kernel[1] * p->kernel[2], s = p->stride[2];
    int64_t plain = p->in == 1 && p->size[0] == 1 && p->kernel[0] == 1 && p->out_size[0] == 1 && p->pad[0] == 0 && p->stride[1] == s;
    if (!plain || taps == 0 || taps > 64 || p->out_size[1] * p->out_size[2] * p->batch == 0) return DG_NO_KERNEL;
    int32_t offset[64];
    DepthJob j = {.p = p, .k = kernels((int)p->type), .e = e, .y = y, .x = x, .w = w};
    int64_t height = (p->out_size[1] - 1) * s + (p->kernel[1] - 1) * p->dilation[1] + 1;
    int64_t width = (p->out_size[2] - 1) * s + (p->kernel[2] - 1) * p->dilation[2] + 1;
    if (p->pad[1] < 0 || p->pad[2] < 0 || p->pad[1] > height || p->pad[2] > width) return DG_NO_KERNEL;
    int64_t lanes = j.k.nr / 3;
    Planes g = {.step = s, .rows = DG_MIN(p->size[1], height - p->pad[1]), .width = DG_MIN(p->size[2], width - p->pad[2]), .x_width = p->size[2],
                .top = p->pad[1], .left = p->pad[2], .phase = (width + s - 1) / s, .out_rows = p->out_size[1], .out_width = p->out_size[2],
                .outs = p->out, .taps = taps, .offset = offset,
                .neighbours = s == 1 && p->kernel[1] == 3 && p->kernel[2] == 3 && p->dilation[1] == 1 && p->dilation[2] == 1};
    g.pitch = g.phase * s;
    j.room = height * g.pitch + 2 * lanes; /* the last vectors of a row read beyond it */
    if (j.room > INT32_MAX) return DG_NO_KERNEL;
    for (int64_t t = 0; t < taps; t++) {
        int64_t column = t % p->kernel[2] * p->dilation[2];
        offset[t] = (int32_t)(t / p->kernel[2] * p->dilation[1] * g.pitch + column % s * g.phase + column / s);
    }
    int failed = 0;
    j.planes = &g, j.failed = &failed;
    double each = (double)(p->out * taps * p->out_size[1] * p->out_size[2]) * 2 + 4.0 * (double)j.room;
    dg_parallel_for(depthwise_task, (void *[]){&j}, p->batch * p->groups, (int64_t)(1e5 / each) + 1);
    return failed ? DG_NO_MEMORY : DG_OK;
}

/* The general case: not thin, not pointwise, not Winograd. */
static int without_tiles(const dg_convolution *p, int what, const dg_epilogue *e, void *out, const void *x, const void *w) {
    int code = dg_conv_columns(p, what, e, out, x, w);
    if (code != DG_NO_KERNEL) return code;
    return what == FORWARD ? forward(p, e, out, x, w) : what == INPUT ? input_grad(p, out, x, w) : weight_grad(p, out, x, w);
}

static int dispatch(const dg_convolution *p, int what, const dg_epilogue *e, void *out, const void *x, const void *w) {
    if (is_thin(p) && what == FORWARD) {
        int done = depthwise(p, e, out, x, w);
        if (done != DG_NO_KERNEL) return done;
    }
    if (is_thin(p)) return what == FORWARD ? forward(p, e, out, x, w) : what == INPUT ? input_grad(p, out, x, w) : thin_weights(p, out, x, w);
    int code = pointwise(p, what, e, out, x, w);
    if (code == DG_NO_KERNEL) code = dg_conv_winograd(p, what, e, out, x, w);
    return code == DG_NO_KERNEL ? without_tiles(p, what, e, out, x, w) : code;
}

static void widen_task(void **args, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i++)
        ((float *)args[0])[i] = args[2] ? f16_load(((const f16 *)args[1])[i]) : bf16_load(((const bf16 *)args[1])[i]);
}

static void narrow_task(void **args, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i++)
        ((uint16_t *)args[0])[i] = args[2] ? f16_store(((const float *)args[1])[i]) : bf16_store(((const float *)args[1])[i]);
    dg_run_epilogue(args[3], begin, end - begin);
}

/* float16 and bfloat16 are computed in float32 and rounded once. */
static int convolve(const dg_convolution *p, int what, const dg_epilogue *e, void *out, const void *x, const void *w) {
    if (p->type == DG_F32 || p->type == DG_F64) return dispatch(p, what, e, out, x, w);
    if (p->type != DG_F16 && p->type != DG_BF16) return DG_NO_KERNEL;
    int64_t nx = p->batch * p->groups * p->in * p->size[0] * p->size[1] * p->size[2];
    int64_t ny = p->batch * p->groups * p->out * p->out_size[0] * p->out_size[1] * p->out_size[2];
    int64_t nw = p->groups * p->out * p->in * p->kernel[0] * p->kernel[1] * p->kernel[2];
    int64_t a = what == INPUT ? ny : nx, b = what == WEIGHT ? ny : nw, c = what == FORWARD ? ny : what == INPUT ? nx : nw;
    float *wide = dg_alloc((size_t)(a + b + c) * 4);
    if (!wide) return DG_NO_MEMORY;
    void *half = p->type == DG_F16 ? wide : 0;
    dg_parallel_for(widen_task, (void *[]){wide, (void *)x, half}, a, 16384);
    dg_parallel_for(widen_task, (void *[]){wide + a, (void *)w, half}, b, 16384);
    dg_convolution single = *p;
    single.type = DG_F32;
    int code = dispatch(&single, what, 0, wide + a + b, wide, wide + a);
    dg_parallel_for(narrow_task, (void *[]){out, wide + a + b, half, (void *)e}, c, 16384);
    dg_free(wide);
    return code;
}

int dg_conv_then(const dg_convolution *p, const dg_epilogue *e, void *y, const void *x, const void *w) { return DG_STOPPABLE(convolve(p, FORWARD, e, y, x, w)); }
int dg_conv(const dg_convolution *p, void *y, const void *x, const void *w) { return DG_STOPPABLE(convolve(p, FORWARD, 0, y, x, w)); }
int dg_conv_input_grad(const dg_convolution *p, void *dx, const void *dy, const void *w) { return DG_STOPPABLE(convolve(p, INPUT, 0, dx, dy, w)); }
int dg_conv_weight_grad(const dg_convolution *p, void *dw, const void *x, const void *dy) { return DG_STOPPABLE(convolve(p, WEIGHT, 0, dw, x, dy)); }

/* ---- weights packed in advance ---- */

int64_t dg_conv_packs(const dg_convolution *p) {
    dg_product q;
    if ((p->type != DG_F32 && p->type != DG_F64) || is_thin(p)) return 0;
    if (as_product(p, &q)) return dg_matmul_packs(&q, 0);
    return dg_conv_winograd_takes(p) ? dg_conv_winograd_packs(p) : dg_conv_columns_packs(p);
}

int dg_conv_pack(const dg_convolution *p, void *out, const void *w) {
    dg_product q;
    if (as_product(p, &q)) return dg_matmul_pack0(&q, out, w);
    if (dg_conv_winograd_takes(p)) dg_conv_winograd_pack(p, out, w);
    else dg_conv_columns_pack(p, out, w);
    return DG_OK;
}

static int packed_then(const dg_convolution *p, const dg_epilogue *e, void *y, const void *x, const void *w) {
    dg_product q;
    if (as_product(p, &q)) return dg_matmul_packed0_then(&q, e, y, w, x);
    if (!dg_conv_winograd_takes(p)) return dg_conv_columns_packed(p, e, y, x, w);
    const void *plain;
    int code = dg_conv_winograd_packed(p, e, y, x, w, &plain);
    return code == DG_NO_KERNEL ? without_tiles(p, FORWARD, e, y, x, plain) : code;
}

int dg_conv_packed_then(const dg_convolution *p, const dg_epilogue *e, void *y, const void *x, const void *w) {
    return DG_STOPPABLE(packed_then(p, e, y, x, w));
}

int dg_conv_packed(const dg_convolution *p, void *y, const void *x, const void *w) { return dg_conv_packed_then(p, 0, y, x, w); }
