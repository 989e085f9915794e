/* Winograd F(2x2, 3x3) for channels-last float32; see conv_winograd.c and README.md.
 *
 * Both transforms work on vectors of channels in memory order. Transformed tiles are rows of the GEMMs, which the register tiles of
 * conv_last.c read in place; sums are transformed straight into the result. */
#include "conv_last.h"

#define POSITIONS 16
#define MOST_WEIGHTS 0x1p44f  /* with inputs up to 2^64, the square root of the largest float: sums of products do not overflow */
#define MOST_CHANNELS 4096    /* channels for which that holds */
#define MOST_BYTES (64 << 20) /* bytes of transformed weights */
#define FEW_TILES 150         /* up to this many tiles, weights are the larger operand */
#define INPUTS_BYTES (1 << 20) /* transformed inputs of a work unit: they stay in L2 */
#define APART 16              /* padding between positions, to avoid cache set conflicts */

typedef struct {
    const dg_convolution *p;
    const dg_epilogue *e;
    const float *x, *weights, *zeros; /* weights: [position][block of channels][strip of outputs][channel][output] */
    float *y, *inputs;                /* inputs: [position][tile][channel] */
    int64_t down, across, lines;      /* tiles of an image, vertically and horizontally; tile lines of all images */
    int64_t wide, deep, ld;           /* output channels in whole vectors; channels of a block; elements from tile to tile */
    int64_t rows, columns;            /* tile lines and output channels of a work unit */
    int *failed, *wild;               /* wild: some inputs are too large */
} Job;

#define ISA_SOURCE "conv_last_winograd.inc"
#include "isa.h"

static int64_t weights_step(const Job *j) { return j->p->in * j->wide + APART; }
static int64_t inputs_step(const Job *j, int64_t tiles) { return tiles * j->ld + APART; }
static int64_t sums_step(int64_t tiles, int64_t columns) { return tiles * columns + APART; }

/* Plans the convolution; returns 0 if another method is better. */
static int plan(Job *j, const dg_convolution *p) {
    if (p->type != DG_F32 || p->groups != 1 || p->in < dg_last_lanes() || p->in > MOST_CHANNELS) return 0;
    for (int d = 0; d < 3; d++)
        if (p->kernel[d] != (d ? 3 : 1) || p->stride[d] != 1 || p->dilation[d] != 1 || p->pad[d] < 0 || p->pad[d] > (d ? 2 : 0)) return 0;
    if (p->size[0] != 1 || p->out_size[0] != 1) return 0;
    *j = (Job){.p = p, .down = (p->out_size[1] + 1) / 2, .across = (p->out_size[2] + 1) / 2, .wide = dg_last_columns(p->out), .deep = dg_last_deep(p->in)};
    j->lines = p->batch * j->down;
    j->ld = p->in + (dg_last_crowded(p->in) ? 16 : 0);
    /* Measured cost model, in cycles: multiplications saved per channel pair against reading more weights and the transforms. */
    double tiles = (double)(j->lines * j->across), pairs = (double)(p->in * p->out);
    double saved = (9.0 * (double)(p->batch * p->out_size[1] * p->out_size[2]) - 16 * tiles) / 32;
    if (saved * pairs < 7 * pairs + 3 * tiles * (double)(p->in + p->out)) return 0;
    return POSITIONS * weights_step(j) * (int64_t)sizeof(float) <= MOST_BYTES;
}

/* Transforms the inputs of tile lines first .. last to [position][tile][channel]. */
static void transform_inputs(const Job *j, float *out, int64_t step, int64_t first, int64_t last) {
    const dg_convolution *p = j->p;
    int64_t rows = p->batch * p->size[1], from = rows * first / j->lines, row = p->size[2] * p->in;
    if (!ISA_PICK(tame)(j->x + from * row, (rows * last / j->lines - from) * row)) __atomic_store_n(j->wild, 1, __ATOMIC_RELAXED);
    for (int64_t line = first; line < last; line++) {
        int64_t image = line / j->down, top = 2 * (line % j->down) - p->pad[1];
        for (int64_t i = 0; i < j->across; i++, out += j->ld) {
            const float *d[POSITIONS];
            for (int q = 0; q < POSITIONS; q++) {
                int64_t y = top + q / 4, x = 2 * i - p->pad[2] + q % 4;
                int inside = y >= 0 && y < p->size[1] && x >= 0 && x < p->size[2];
                d[q] = inside ? j->x + ((image * p->size[1] + y) * p->size[2] + x) * p->in : j->zeros;
            }
            ISA_PICK(transform_tile)(out, step, d, p->in);
        }
    }
}

/* Computes output channels first_out .. last_out of tile lines first .. last. scratch: sums. far: inputs are in another thread's cache. */
static void multiply(const Job *j, const float *inputs, int64_t step, int64_t first, int64_t last, int64_t first_out, int64_t last_out, float *scratch, int far) {
    const dg_convolution *p = j->p;
    int64_t tiles = (last - first) * j->across, count = last_out - first_out, ld = dg_last_columns(count), sums = sums_step(tiles, ld);
    int64_t w_step = weights_step(j), bytes = ld * j->deep * (int64_t)sizeof(float);
    for (int64_t q = 0; q < POSITIONS; q++)
        for (int64_t k = 0; k < p->in; k += j->deep) {
            int64_t depth = DG_MIN(j->deep, p->in - k), after = k + depth < p->in ? k + depth : 0;
            const float *weights = j->weights + q * w_step + k * j->wide + first_out * depth;
            const float *next = j->weights + (q + (after == 0)) * w_step + after * j->wide + first_out * DG_MIN(j->deep, p->in - after);
            const float *rows = inputs + q * step + k, *more = q + 1 < POSITIONS ? inputs + (q + 1) * step : rows;
            float *to = scratch + q * sums;
            /* prefetch the next weights, then inputs, which another thread may have transformed */
            int64_t half = far && k + depth == p->in && tiles > 2 * dg_last_height() ? tiles / 2 : tiles;
            dg_last_block(half, count, depth, rows, j->ld, weights, to, ld, k > 0, next, bytes);
            if (half < tiles)
                dg_last_block(tiles - half, count, depth, rows + half * j->ld, j->ld, weights, to + half * ld, ld, k > 0, more,
                              tiles * j->ld * (int64_t)sizeof(float));
        }
    const float *from = scratch;
    dg_finish finish;
    int64_t width = p->out_size[2];
    for (int64_t line = first; line < last; line++) {
        int64_t image = line / j->down, row = 2 * (line % j->down);
        int64_t at = (image * p->out_size[1] + row) * width * p->out + first_out;
        for (int64_t i = 0; i < j->across; i++, from += ld, at += 2 * p->out)
            ISA_PICK(transform_outputs)(j->y + at, p->out, width * p->out, (int)DG_MIN(2, p->out_size[1] - row), (int)DG_MIN(2, width - 2 * i), from, sums,
                                        count, dg_finish_of(&finish, j->e, first_out, at, 0));
    }
}

/* A work unit is a block of tile lines with all channels and outputs. */
static void lines_task(void **args, int64_t begin, int64_t end) {
    const Job *j = args[0];
    const dg_convolution *p = j->p;
    int64_t most = j->rows * j->across, inputs = POSITIONS * inputs_step(j, most);
    float *scratch = dg_alloc((size_t)(inputs + POSITIONS * sums_step(most, dg_last_columns(j->columns))) * sizeof(float));
    if (!scratch) {
        __atomic_store_n(j->failed, 1, __ATOMIC_RELAXED);
        return;
    }
    for (int64_t u = begin; u < end; u++) {
        int64_t first = u * j->rows, last = DG_MIN(first + j->rows, j->lines), step = inputs_step(j, (last - first) * j->across);
        transform_inputs(j, scratch, step, first, last);
        for (int64_t o = 0; o < p->out; o += j->columns) multiply(j, scratch, step, first, last, o, DG_MIN(o + j->columns, p->out), scratch + inputs, 0);
        for (int64_t line = first, next; j->e && !j->e->affine && line < last; line = next) {
            int64_t image = line / j->down, row = 2 * (line % j->down), area = p->out_size[2] * p->out;
            next = DG_MIN(last, (image + 1) * j->down);
            dg_run_epilogue(j->e, (image * p->out_size[1] + row) * area, DG_MIN(2 * (next - line), p->out_size[1] - row) * area);
        }
    }
    dg_free(scratch);
}

/* Few tile lines: first transform all inputs (a unit is a line), then compute all outputs (a unit is a channel range). */
static void inputs_task(void **args, int64_t begin, int64_t end) {
    const Job *j = args[0];
    transform_inputs(j, j->inputs + begin * j->across * j->ld, inputs_step(j, j->lines * j->across), begin, end);
}

static void outputs_task(void **args, int64_t begin, int64_t end) {
    const Job *j = args[0];
    int64_t tiles = j->lines * j->across;
    float *scratch = dg_alloc((size_t)(POSITIONS * sums_step(tiles, dg_last_columns(j->columns))) * sizeof(float));
    if (!scratch) __atomic_store_n(j->failed, 1, __ATOMIC_RELAXED);
    for (int64_t u = begin; scratch && u < end; u++)
        multiply(j, j->inputs, inputs_step(j, tiles), 0, j->lines, u * j->columns, DG_MIN((u + 1) * j->columns, j->p->out), scratch, u == begin);
    dg_free(scratch);
}

static void whole_task(void **args, int64_t begin, int64_t end) { dg_run_epilogue(args[0], begin, end - begin); }

static int run(Job *j) {
    const dg_convolution *p = j->p;
    void *args[] = {j};
    int64_t tiles = j->lines * j->across;
    if (tiles > FEW_TILES) {
        /* blocks of lines whose inputs stay in L2, evenly distributed over threads */
        int64_t most = DG_MAX(48, DG_MIN(112, INPUTS_BYTES / (POSITIONS * 4 * p->in))) / j->across, threads = dg_threads(), least = INT64_MAX;
        most = DG_MAX(1, DG_MIN(most, j->lines));
        for (int64_t rows = most; rows >= (most + 1) / 2; rows--) {
            int64_t turns = ((j->lines + rows - 1) / rows + threads - 1) / threads;
            if (turns * rows < least) least = turns * rows, j->rows = rows;
        }
        j->columns = 64;
        dg_parallel_chunks(lines_task, args, (j->lines + j->rows - 1) / j->rows);
        return *j->failed ? DG_NO_MEMORY : DG_OK;
    }
    j->inputs = dg_alloc((size_t)(POSITIONS * inputs_step(j, tiles)) * sizeof(float));
    if (!j->inputs) return DG_NO_MEMORY;
    j->columns = DG_MAX(1, DG_MIN(4, p->out / (8 * dg_last_lanes()))) * 2 * dg_last_lanes();
    dg_parallel_for(inputs_task, args, j->lines, 1 + 16384 / (j->across * p->in * POSITIONS));
    if (*j->wild) {
        dg_free(j->inputs);
        return DG_OK;
    }
    dg_parallel_chunks(outputs_task, args, (p->out + j->columns - 1) / j->columns);
    dg_free(j->inputs);
    if (*j->failed) return DG_NO_MEMORY;
    if (j->e && !j->e->affine) dg_parallel_for(whole_task, (void *[]){(void *)j->e}, p->batch * p->out_size[1] * p->out_size[2] * p->out, j->e->grain);
    return DG_OK;
}

/* ---- packed weights: transformed weights, the original weights, and a flag for overflow ---- */

int dg_conv_last_winograd_takes(const dg_convolution *p) {
    Job j;
    return plan(&j, p);
}

int64_t dg_conv_last_winograd_packs(const dg_convolution *p) {
    Job j = {.p = p};
    plan(&j, p);
    return (POSITIONS * weights_step(&j) + p->in * p->out * 9 + 1) * (int64_t)sizeof(float);
}

/* A work unit is a strip. */
static void weights_task(void **args, int64_t begin, int64_t end) {
    const Job *j = args[0];
    const float *w = args[1];
    int64_t strip = 2 * dg_last_lanes(), in = j->p->in;
    for (int64_t u = begin; u < end; u++) {
        int64_t first = u * strip, width = DG_MIN(strip, j->wide - first), outs = DG_MIN(width, j->p->out - first);
        for (int64_t k = 0; k < in; k += j->deep) {
            int64_t depth = DG_MIN(j->deep, in - k);
            ISA_PICK(transform_weights)((float *)args[2] + k * j->wide + first * depth, weights_step(j), width, w + (first * in + k) * 9, in * 9, outs, depth);
        }
    }
}

void dg_conv_last_winograd_pack(const dg_convolution *p, float *out, const float *w) {
    Job j;
    plan(&j, p);
    int64_t strip = 2 * dg_last_lanes(), count = p->in * p->out * 9;
    float *plain = out + POSITIONS * weights_step(&j), largest = 0;
    dg_parallel_for(weights_task, (void *[]){&j, (void *)w, out}, (j.wide + strip - 1) / strip, 1 + 1024 / p->in);
    memcpy(plain, w, (size_t)count * sizeof(float));
    for (int64_t i = 0; i < count; i++) largest += (w[i] < MOST_WEIGHTS && w[i] > -MOST_WEIGHTS) ? 0 : 1; /* also false for NaN */
    plain[count] = largest;
}

int dg_conv_last_winograd(const dg_convolution *p, const dg_epilogue *e, float *y, const float *x, const float *w, const float **plain) {
    Job j;
    int failed = 0, wild = 0;
    plan(&j, p);
    *plain = w + POSITIONS * weights_step(&j);
    if ((*plain)[p->in * p->out * 9] != 0) return DG_NO_KERNEL;
    float *zeros = dg_alloc((size_t)p->in * sizeof(float));
    if (!zeros) return DG_NO_MEMORY;
    memset(zeros, 0, (size_t)p->in * sizeof(float));
    j.e = e, j.y = y, j.x = x, j.weights = w, j.zeros = zeros, j.failed = &failed, j.wild = &wild;
    int code = run(&j);
    dg_free(zeros);
    return code == DG_OK && wild ? DG_NO_KERNEL : code;
}
