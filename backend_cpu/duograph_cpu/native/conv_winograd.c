/* Winograd convolution F(2x2, 3x3) for 3x3 kernels with stride 1, channels first.
 *
 * A tile of 2x2 outputs reads 4x4 inputs. Inputs d and weights g of a channel are transformed to V = B'dB and U = GgG', 4x4 elements
 * each; U*V is summed over channels, and A'(sum of U*V)A is the tile of outputs: 16 multiplications instead of 36. Each of the 16
 * positions is a GEMM, (tiles, channels) by (channels, outputs), whose operands the transforms write in the packed layout of gemm.c:
 * tiles in panels of rows, outputs in strips of columns. The number of tiles may be anything.
 *
 * The transforms only add, and halve weights, so the accuracy is about that of direct sums. They would spread an infinity or NaN over
 * the tile and overflow earlier, so outputs of very large inputs are computed directly. */
#include "conv_winograd.h"
#include "blas.h"
#include "common.h"

#define POSITIONS 16
#define DEPTH 256             /* channels of a block of the GEMM */
#define MOST_WEIGHTS 0x1p44f  /* with inputs up to 2^64, the square root of the largest float: sums of products do not overflow */
#define MOST_BYTES (64 << 20) /* bytes of transformed weights */
#define MOST_PACKED 1024      /* tiles up to which packing pays; with more, the weight transform is negligible */
#define LARGEST_LANES 16

/* One convolution; tile lines are numbered over all images. */
typedef struct {
    const float *x, *w;
    float *y;
    const dg_epilogue *e;
    int64_t batch, in, out, height, width, out_height, out_width, top, left; /* of an image; top, left: padding */
    int64_t down, across, lines, lanes, tall, deep; /* tiles of an image, vertically and horizontally; tile lines of all images; vector and panel size of gemm.c; channels of a block */
    int64_t pitch, outs;                            /* elements of a padded row; output channels in whole vectors */
    int backward;
    float *weights, *inputs; /* [position][block of channels]: [strip of outputs][channel][output]; [panel of tiles][channel][tile] */
    int64_t weights_step, rows, columns;            /* elements from position to position; tile lines and output channels of a work unit */
    int wild, failed;
} Job;

#define ISA_SOURCE "conv_winograd.inc"
#include "isa.h"

#ifdef DG_X86
#define KERNEL(name) (dg_isa() == 2 ? name##_avx512 : name##_avx2)

static int64_t up(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

static int64_t inputs_step(const Job *j, int64_t tiles) { return tiles * j->in + LARGEST_LANES; } /* not a power of two, to avoid cache set conflicts */

/* A work unit is a vector of output channels. */
static void weights_task(void **args, int64_t begin, int64_t end) {
    Job *j = args[0];
    enum { CHANNELS = 32 };
    float taps[(CHANNELS * 9 + LARGEST_LANES) * LARGEST_LANES];
    int64_t lanes = j->lanes, last = j->in * j->out * 9;
    for (int64_t u = begin; u < end; u++) {
        int64_t first = u * lanes, outs = DG_MIN(lanes, j->out - first), strip = first / (2 * lanes) * 2 * lanes;
        int64_t width = DG_MIN(2 * lanes, j->outs - strip);
        memset(taps, 0, sizeof taps);
        for (int64_t c = 0, n; c < j->in; c += n) {
            int64_t block = c / j->deep * j->deep, deep = DG_MIN(j->deep, j->in - block);
            n = DG_MIN(CHANNELS, block + deep - c);
            for (int64_t i = 0; j->backward && i < n; i++) { /* whole vectors of taps while that many weights remain */
                int64_t from = ((c + i) * j->out + first) * 9;
                dg_gemm_transpose(DG_F32, taps + i * 9 * lanes, lanes, j->w + from, 9, outs, from + outs * 9 + lanes <= last ? up(9, lanes) : 9);
            }
            if (!j->backward) dg_gemm_transpose(DG_F32, taps, lanes, j->w + (first * j->in + c) * 9, j->in * 9, outs, n * 9);
            float *to = j->weights + block * j->outs + strip * deep + (c - block) * width + first - strip;
            if (!KERNEL(transform_weights)(to, j->weights_step, width, taps, n, j->backward)) __atomic_store_n(&j->wild, 1, __ATOMIC_RELAXED);
        }
    }
}

/* Scratch elements for the transform of a channel. */
static int64_t channel_room(const Job *j, int64_t tiles) {
    return (2 * tiles / j->across + 2 * j->batch + 4) * j->pitch + 4 * j->lanes + POSITIONS * (tiles + j->lanes);
}

/* Transforms channels begin .. end of tile lines first .. last into panels; returns 0 if some inputs are too large. */
static int transform_inputs(const Job *j, float *out, float *scratch, int64_t first, int64_t last, int64_t begin, int64_t end) {
    int64_t tiles = (last - first) * j->across, step = inputs_step(j, tiles), plane = j->height * j->width, tame = 1;
    int64_t v_step = tiles + j->lanes;
    float *v = scratch, *padded = scratch + POSITIONS * v_step;
    memset(padded, 0, (size_t)(channel_room(j, tiles) - POSITIONS * v_step) * sizeof(float));
    for (int64_t c = begin; c < end; c++) {
        for (int64_t line = first, next; line < last; line = next) {
            int64_t image = line / j->down;
            next = DG_MIN(last, (image + 1) * j->down);
            tame &= KERNEL(transform_channel)(j, v + (line - first) * j->across, v_step, padded, j->x + (image * j->in + c) * plane,
                                              line - image * j->down, next - line);
        }
        int64_t block = c / j->deep * j->deep, deep = DG_MIN(j->deep, j->in - block);
        KERNEL(to_panels)(out + block * tiles, step, v, v_step, tiles, j->tall, deep, c - block, c + 1 == end || c + 1 == block + deep);
    }
    return (int)tame;
}

/* Computes output channels first_out .. last_out of tile lines of one image directly. */
static void direct(const Job *j, int64_t image, int64_t line, int64_t lines, int64_t first_out, int64_t last_out) {
    int64_t row = 2 * line, rows = DG_MIN(2 * lines, j->out_height - row), plane = j->out_height * j->out_width;
    for (int64_t o = first_out; o < last_out; o++) {
        float *y = j->y + (image * j->out + o) * plane + row * j->out_width;
        memset(y, 0, (size_t)(rows * j->out_width) * sizeof(float));
        for (int64_t c = 0; c < j->in; c++) {
            const float *x = j->x + (image * j->in + c) * j->height * j->width;
            for (int64_t t = 0; t < 9; t++) {
                float w = j->backward ? j->w[(c * j->out + o) * 9 + 8 - t] : j->w[(o * j->in + c) * 9 + t];
                int64_t left = t % 3 - j->left, begin = DG_MAX(0, -left), end = DG_MIN(j->out_width, j->width - left);
                for (int64_t r = 0; r < rows; r++) {
                    int64_t from = row + r + t / 3 - j->top;
                    if (from < 0 || from >= j->height) continue;
                    for (int64_t i = begin; i < end; i++) y[r * j->out_width + i] += w * x[from * j->width + i + left];
                }
            }
        }
    }
}

/* Computes the outputs of tile lines first .. last from transformed inputs, by blocks of output channels. */
static void multiply(const Job *j, const float *inputs, int tame, int64_t first, int64_t last, int64_t first_out, int64_t last_out, float *scratch) {
    int64_t tiles = (last - first) * j->across, step = inputs_step(j, tiles), plane = j->out_height * j->out_width;
    int64_t most = DG_MIN(j->columns, j->outs), sums_step = tiles * most + LARGEST_LANES;
    float *pixels = scratch + POSITIONS * sums_step;
    for (int64_t o = first_out; o < last_out; o += most) {
        int64_t columns = DG_MIN(most, up(last_out, j->lanes) - o);
        for (int64_t i = 0; tame && i < POSITIONS; i++)
            for (int64_t c = 0; c < j->in; c += j->deep) {
                int64_t deep = DG_MIN(j->deep, j->in - c);
                const float *weights = j->weights + i * j->weights_step + c * j->outs + o * deep;
                int64_t next = c + deep < j->in ? deep * j->outs + o * (DG_MIN(deep, j->in - c - deep) - deep) : j->weights_step - (j->in - deep) * j->outs;
                dg_gemm_block(DG_F32, tiles, columns, deep, inputs + i * step + c * tiles, weights, scratch + i * sums_step, most, c > 0,
                              weights + next, columns * deep * (int64_t)sizeof(float));
            }
        for (int64_t line = first, next; line < last; line = next) {
            int64_t image = line / j->down, row = 2 * (line - image * j->down), outs = DG_MIN(columns, last_out - o);
            next = DG_MIN(last, (image + 1) * j->down);
            int64_t count = DG_MIN(2 * (next - line), j->out_height - row) * j->out_width;
            int64_t at = (image * j->out + o) * plane + row * j->out_width;
            if (!tame) direct(j, image, row / 2, next - line, o, o + outs);
            for (int64_t q = 0; tame && q < outs; q += j->lanes) {
                KERNEL(transform_outputs)(j, pixels, scratch + (line - first) * j->across * most + q, sums_step, most, row / 2, next - line);
                dg_gemm_transpose(DG_F32, j->y + at + q * plane, plane, pixels, j->lanes, count, DG_MIN(j->lanes, outs - q));
            }
            for (int64_t q = 0; j->e && q < outs; q++) dg_run_epilogue(j->e, at + q * plane, count);
        }
    }
}

/* Scratch elements for that. */
static int64_t product_room(const Job *j, int64_t lines, int64_t columns) {
    return POSITIONS * (lines * j->across * DG_MIN(columns, j->outs) + LARGEST_LANES) + (2 * lines * j->out_width + j->lanes) * j->lanes;
}

/* A work unit is a block of tile lines with all channels and outputs. */
static void lines_task(void **args, int64_t begin, int64_t end) {
    Job *j = args[0];
    int64_t inputs = POSITIONS * inputs_step(j, j->rows * j->across), channel = channel_room(j, j->rows * j->across);
    float *scratch = dg_alloc((size_t)(inputs + DG_MAX(channel, product_room(j, j->rows, j->columns))) * sizeof(float));
    if (!scratch) {
        __atomic_store_n(&j->failed, 1, __ATOMIC_RELAXED);
        return;
    }
    for (int64_t u = begin; u < end; u++) {
        int64_t first = u * j->rows, last = DG_MIN(first + j->rows, j->lines);
        int tame = transform_inputs(j, scratch, scratch + inputs, first, last, 0, j->in);
        multiply(j, scratch, tame, first, last, 0, j->out, scratch + inputs);
    }
    dg_free(scratch);
}

/* Few tile lines: first transform all inputs, then compute all outputs; a unit is a channel range. */
static void channels_task(void **args, int64_t begin, int64_t end) {
    Job *j = args[0];
    float *scratch = dg_alloc((size_t)channel_room(j, j->lines * j->across) * sizeof(float));
    if (!scratch) __atomic_store_n(&j->failed, 1, __ATOMIC_RELAXED);
    else if (!transform_inputs(j, j->inputs, scratch, 0, j->lines, begin, end)) __atomic_store_n(&j->wild, 1, __ATOMIC_RELAXED);
    dg_free(scratch);
}

static void outputs_task(void **args, int64_t begin, int64_t end) {
    Job *j = args[0];
    float *scratch = dg_alloc((size_t)product_room(j, j->lines, j->columns) * sizeof(float));
    if (!scratch) __atomic_store_n(&j->failed, 1, __ATOMIC_RELAXED);
    for (int64_t u = begin; scratch && u < end; u++)
        multiply(j, j->inputs, 1, 0, j->lines, u * j->columns, DG_MIN((u + 1) * j->columns, j->out), scratch);
    dg_free(scratch);
}

static void transform_all_weights(Job *j) {
    dg_parallel_for(weights_task, (void *[]){j}, j->outs / j->lanes, DG_MAX(1, 4096 / j->in));
}

/* Runs with transformed weights. */
static int run(Job *j) {
    void *args[] = {j};
    int64_t tiles = j->lines * j->across;
    if (tiles > 150) {
        /* blocks of lines whose inputs stay in L2, evenly distributed over threads */
        int64_t most = DG_MAX(48, DG_MIN(112, (1 << 20) / (POSITIONS * 4 * j->in))) / j->across, threads = dg_threads(), least = INT64_MAX;
        most = DG_MAX(1, DG_MIN(most, j->lines));
        for (int64_t rows = most; rows >= (most + 1) / 2; rows--) {
            int64_t turns = ((j->lines + rows - 1) / rows + threads - 1) / threads;
            if (turns * rows < least) least = turns * rows, j->rows = rows;
        }
        j->columns = 64;
        dg_parallel_chunks(lines_task, args, (j->lines + j->rows - 1) / j->rows);
        return j->failed ? DG_NO_MEMORY : DG_OK;
    }
    j->inputs = dg_alloc((size_t)(POSITIONS * inputs_step(j, tiles)) * sizeof(float));
    if (!j->inputs) return DG_NO_KERNEL;
    j->columns = DG_MAX(2 * j->lanes, DG_MIN(64, up(j->out / 4, 2 * j->lanes)));
    dg_parallel_for(channels_task, args, j->in, 8);
    int code = j->failed || j->wild ? DG_NO_KERNEL : DG_OK;
    if (code == DG_OK) dg_parallel_chunks(outputs_task, args, (j->out + j->columns - 1) / j->columns);
    dg_free(j->inputs);
    return code == DG_OK && j->failed ? DG_NO_MEMORY : code;
}

/* Plans the convolution; returns 0 if another method is better. */
static int plan(Job *j, const dg_convolution *p, int what) {
    int64_t lanes = dg_gemm_lanes(DG_F32);
    if (lanes == 0 || what == DG_CONV_WEIGHTS || p->type != DG_F32 || p->groups != 1) return 0;
    for (int d = 0; d < 3; d++)
        if (p->kernel[d] != (d ? 3 : 1) || p->stride[d] != 1 || p->dilation[d] != 1) return 0;
    if (p->size[0] != 1 || p->out_size[0] != 1 || p->pad[0] != 0) return 0;
    *j = (Job){.batch = p->batch, .in = p->in, .out = p->out, .height = p->size[1], .width = p->size[2], .out_height = p->out_size[1],
               .out_width = p->out_size[2], .top = p->pad[1], .left = p->pad[2], .lanes = lanes, .tall = dg_gemm_height(DG_F32)};
    if (what == DG_CONV_INPUT) { /* the convolution of dy with reversed weights */
        j->in = p->out, j->out = p->in, j->height = p->out_size[1], j->width = p->out_size[2];
        j->out_height = p->size[1], j->out_width = p->size[2], j->top = 2 - p->pad[1], j->left = 2 - p->pad[2], j->backward = 1;
    }
    if (j->top < 0 || j->left < 0 || j->top > 2 || j->left > 2) return 0;
    j->down = (j->out_height + 1) / 2, j->across = (j->out_width + 1) / 2, j->lines = j->batch * j->down;
    /* Measured cost model, in cycles: savings per channel pair against the transforms of weights, inputs and outputs. */
    double tiles = (double)(j->lines * j->across), pairs = (double)(j->in * j->out);
    double saved = (9.0 * (double)(j->batch * j->out_height * j->out_width) - 16 * tiles) / 32;
    if (saved * pairs < 14 * pairs + 7.5 * tiles * (double)(j->in + j->out)) return 0;
    int64_t depths = (j->in + DEPTH - 1) / DEPTH;
    j->deep = (j->in + depths - 1) / depths;
    j->pitch = 2 * j->across + 2;
    j->outs = up(j->out, lanes);
    j->weights_step = j->in * j->outs + LARGEST_LANES;
    return POSITIONS * j->weights_step * (int64_t)sizeof(float) <= MOST_BYTES;
}

int dg_conv_winograd(const dg_convolution *p, int what, const dg_epilogue *e, void *out, const void *a, const void *b) {
    Job j;
    if (!plan(&j, p, what)) return DG_NO_KERNEL;
    j.x = a, j.w = b, j.y = out, j.e = e;
    j.weights = dg_alloc((size_t)(POSITIONS * j.weights_step) * sizeof(float));
    if (!j.weights) return DG_NO_KERNEL;
    transform_all_weights(&j);
    int code = j.wild ? DG_NO_KERNEL : run(&j);
    dg_free(j.weights);
    return code;
}

/* ---- weights transformed in advance: followed by the original weights and a flag for overflow ---- */

int dg_conv_winograd_takes(const dg_convolution *p) {
    Job j;
    return plan(&j, p, DG_CONV_FORWARD);
}

int64_t dg_conv_winograd_packs(const dg_convolution *p) {
    Job j;
    if (!plan(&j, p, DG_CONV_FORWARD) || j.lines * j.across > MOST_PACKED) return 0;
    return (POSITIONS * j.weights_step + j.in * j.out * 9 + 1) * (int64_t)sizeof(float);
}

void dg_conv_winograd_pack(const dg_convolution *p, void *out, const void *w) {
    Job j;
    if (!plan(&j, p, DG_CONV_FORWARD)) return;
    j.w = w, j.weights = out;
    transform_all_weights(&j);
    float *plain = j.weights + POSITIONS * j.weights_step;
    memcpy(plain, w, (size_t)(j.in * j.out * 9) * sizeof(float));
    plain[j.in * j.out * 9] = (float)j.wild;
}

int dg_conv_winograd_packed(const dg_convolution *p, const dg_epilogue *e, void *y, const void *x, const void *w, const void **plain) {
    Job j;
    if (!plan(&j, p, DG_CONV_FORWARD)) return DG_NO_KERNEL;
    j.x = x, j.y = y, j.e = e, j.weights = (float *)w, j.w = j.weights + POSITIONS * j.weights_step;
    *plain = j.w;
    return j.w[j.in * j.out * 9] != 0 ? DG_NO_KERNEL : run(&j);
}

#else

int dg_conv_winograd(const dg_convolution *p, int what, const dg_epilogue *e, void *out, const void *a, const void *b) {
    (void)p, (void)what, (void)e, (void)out, (void)a, (void)b;
    return DG_NO_KERNEL;
}

int dg_conv_winograd_takes(const dg_convolution *p) {
    (void)p;
    return 0;
}

int64_t dg_conv_winograd_packs(const dg_convolution *p) {
    (void)p;
    return 0;
}

/* Never called: nothing is packed. */
void dg_conv_winograd_pack(const dg_convolution *p, void *out, const void *w) { (void)p, (void)out, (void)w; }

int dg_conv_winograd_packed(const dg_convolution *p, const dg_epilogue *e, void *y, const void *x, const void *w, const void **plain) {
    (void)p, (void)e, (void)y, (void)x, (void)w, (void)plain;
    return DG_NO_KERNEL;
}

#endif
