/* Channels-last float32 convolution as GEMM: x (batch, size..., groups*in), w as in conv.c, y (batch, out_size..., groups*out).
 *
 * Rows of the GEMM are output pixels, columns output channels, so a register tile is stored as it is. Rows are read in place where the
 * kernel is 1x1 with stride 1; otherwise the runs of channels that they read are copied side by side. Weights are packed in strips.
 * Each element is summed over blocks of the depth in order, so its bits depend neither on the split nor on the number of threads.
 * See README.md. */
#include "conv_last.h"
#include "tile.h"

#define PANEL_BYTES (24 << 10)  /* of results computed before the epilogue runs on them: they stay in L1 */
#define COLUMNS 512             /* columns of a block if there is an epilogue */
#define MUCH_WEIGHT (512 << 10) /* bytes of weights that do not stay in L2 beside the other operands */
#define SOME_WEIGHT (256 << 10) /* bytes of a block of weights that does */
#define SMALL_IMAGE (1 << 20)   /* bytes of inputs and outputs that stay in L2 */
#define SOME_ROWS (1 << 20)     /* bytes of rows that stay in L2 */

typedef struct {
    const dg_convolution *p;
    const dg_epilogue *e;
    const float *x, *w; /* w: [group][block of depth][strip][depth][column] */
    float *y;
    int64_t pixels, depth, deep, wide; /* outputs per channel; length of a sum, and of a block of it; columns of packed weights */
    int64_t in_step, out_step;         /* from pixel to pixel, in elements */
    int64_t rows, parts, columns;      /* rows of a work unit; work units of a group; columns computed at a time */
    int64_t halves;                    /* parts of all rows, if a work unit is a range of columns */
    int merged, in_place;              /* whether the taps of a kernel row are contiguous in x; whether rows are read in place */
    dg_prefetch_hint hint;                  /* prefetched while a unit's own rows are cached */
    float *gathered;                   /* [group][block of depth][pixel][pitch] */
    int *failed;
} Job;

/* Rows of a block: `parts` runs of `depth` elements, `gap` apart, with leading dimension `ld`. They meet the `deep` weights of a
 * column from `skip` on. */
typedef struct {
    const float *at;
    int64_t ld, depth, parts, gap, skip, deep;
} Rows;

#define ISA_SOURCE "conv_last.inc"
#include "isa.h"

int64_t dg_last_lanes(void) { return dg_isa() == 2 ? 16 : dg_isa() == 1 ? 8 : 4; }
int64_t dg_last_height(void) { return dg_isa() == 2 ? 14 : 6; }

static int64_t up(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

int64_t dg_last_columns(int64_t columns) { return up(columns, dg_last_lanes()); }

int64_t dg_last_deep(int64_t depth) {
    int64_t blocks = (depth + DG_LAST_DEPTH - 1) / DG_LAST_DEPTH;
    return up((depth + blocks - 1) / blocks, 16);
}

int dg_last_crowded(int64_t ld) { return ld >= 1024 && ld % 1024 == 0; }

void dg_last_block(int64_t rows, int64_t columns, int64_t depth, const float *a, int64_t lda, const float *b, float *c, int64_t ldc, int add,
                   const void *next, int64_t bytes) {
    Rows s = {.at = a, .ld = lda, .depth = depth, .parts = 1, .deep = depth};
    ISA_PICK(block)(rows, columns, &s, b, c, ldc, add, 0, next, bytes);
}

static void whole_task(void **args, int64_t begin, int64_t end) { dg_run_epilogue(args[0], begin, end - begin); }

/* Runs the epilogue on a complete result. */
static void run_whole_epilogue(const dg_epilogue *e, int64_t count) {
    if (e) dg_parallel_for(whole_task, (void *[]){(void *)e}, count, e->grain);
}

dg_prefetch_hint dg_prefetch_part(dg_prefetch_hint all, int64_t u, int64_t units) {
    int64_t threads = dg_threads(), from = all.bytes * (u * threads % units) / units;
    return (dg_prefetch_hint){all.at + from, DG_MIN(all.bytes - from, (all.bytes * threads + units - 1) / units)};
}

static int is_affine(const dg_epilogue *e) { return e && e->affine; }

static int64_t pitch(const Job *j) { return j->deep + 16; }

/* Rows of the depth block that starts at k. */
static Rows rows_at(const Job *j, const float *gathered, int64_t rows, int64_t g, int64_t row, int64_t k) {
    Rows s = {.depth = DG_MIN(j->deep, j->depth - k), .parts = 1, .deep = DG_MIN(j->deep, j->depth - k)};
    s.ld = j->in_place ? j->in_step : pitch(j);
    s.at = j->in_place ? j->x + row * j->in_step + g * j->p->in + k : gathered + (k / j->deep * rows + row) * pitch(j);
    return s;
}

static const float *weights_at(const Job *j, int64_t g, int64_t k, int64_t column) {
    return j->w + g * j->depth * j->wide + k * j->wide + column * DG_MIN(j->deep, j->depth - k);
}

/* Elements of scratch memory for rows that are not read in place. */
static int64_t room_of(const Job *j, int64_t rows) { return (j->depth + j->deep - 1) / j->deep * rows * pitch(j); }

static void gather_rows(const Job *j, float *out, int64_t rows, int64_t g, int64_t begin, int64_t end, int64_t first) {
    for (int64_t k = 0; k < j->depth; k += j->deep)
        ISA_PICK(gather)(j, out + (k / j->deep * rows + begin - first) * pitch(j), pitch(j), g, begin, end, k, DG_MIN(k + j->deep, j->depth));
}

/* Many pixels: a work unit is a range of pixels of one group. */
static void rows_task(void **args, int64_t begin, int64_t end) {
    const Job *j = args[0];
    int64_t out = j->p->out, most = DG_MIN(j->rows, DG_MAX(1, PANEL_BYTES / 4 / (dg_last_height() * out)) * dg_last_height()), columns = j->columns;
    if (columns < out) most = j->rows;
    float *scratch = j->in_place ? 0 : dg_alloc((size_t)room_of(j, most) * sizeof(float));
    dg_finish finish;
    if (!j->in_place && !scratch) {
        __atomic_store_n(j->failed, 1, __ATOMIC_RELAXED);
        return;
    }
    for (int64_t u = begin; u < end; u++) {
        int64_t g = u / j->parts, last = DG_MIN((u % j->parts + 1) * j->rows, j->pixels);
        dg_prefetch_hint part = dg_prefetch_part(j->hint, u, j->p->groups * j->parts);
        for (int64_t row = u % j->parts * j->rows, n; row < last; row += n) {
            n = DG_MIN(most, last - row);
            if (!j->in_place) gather_rows(j, scratch, most, g, row, row + n, row);
            for (int64_t c = 0; c < out; c += columns) {
                int64_t count = DG_MIN(columns, out - c), at = row * j->out_step + g * out + c;
                for (int64_t k = 0; k < j->depth; k += j->deep) {
                    Rows s = rows_at(j, scratch, most, g, j->in_place ? row : 0, k);
                    /* prefetch what comes from memory next: the next rows or their results, whichever is larger */
                    int writes = !j->in_place || out > j->depth;
                    const float *next = writes ? j->y + at + n * j->out_step : s.at + n * j->in_step;
                    int64_t bytes = n * (writes ? count : s.depth) * 4;
                    if (columns < out) { /* many weights: prefetch the next block of them */
                        int deeper = k + j->deep < j->depth;
                        int64_t after = deeper ? c : c + columns, wide = DG_MIN(columns, out - after), at_k = deeper ? k + j->deep : 0;
                        next = weights_at(j, g, at_k, after), bytes = wide > 0 ? dg_last_columns(wide) * DG_MIN(j->deep, j->depth - at_k) * 4 : 0;
                    } else if (part.bytes) next = (const float *)part.at, bytes = k == 0 && c == 0 && row == u % j->parts * j->rows ? part.bytes : 0;
                    const dg_finish *f = k + j->deep < j->depth ? 0 : dg_finish_of(&finish, j->e, g * out + c, at, j->out_step);
                    ISA_PICK(block)(n, count, &s, weights_at(j, g, k, c), j->y + at, j->out_step, k > 0, f, (const char *)next, bytes);
                }
                if (j->p->groups == 1 && !is_affine(j->e)) dg_run_epilogue_rows(j->e, at, n, count, j->out_step);
            }
        }
    }
    dg_free(scratch);
}

/* One line of outputs of a convolution with few channels. Rows inside the image are read in place; those at its edges from `room`,
 * where the lines are copied with zero padding. */
static void line_of_taps(const Job *j, int64_t line, float *y, float *room) {
    const dg_convolution *p = j->p;
    int64_t outs = p->out_size[2], step = p->stride[2], width = p->size[2] * p->in, part = p->kernel[2] * p->in, height = dg_last_height();
    int64_t panels = (outs + height - 1) / height, top = line % p->out_size[1] * p->stride[1] - p->pad[1], d = p->dilation[1];
    int64_t low = top < 0 ? (-top + d - 1) / d : 0, high = top < p->size[1] ? DG_MAX(low, DG_MIN(p->kernel[1], (p->size[1] - top + d - 1) / d)) : low;
    const float *image = j->x + line / p->out_size[1] * p->size[1] * width;
    dg_finish finish;
    for (int64_t n = 0; n < panels; n++) {
        int64_t first = outs * n / panels, last = outs * (n + 1) / panels, left = first * step - p->pad[2], span = (last - 1 - first) * step + p->kernel[2];
        Rows s = {.at = image + (top + low * d) * width + left * p->in, .ld = step * p->in, .depth = part, .parts = high - low,
                  .gap = d * width - part, .skip = low * part, .deep = j->depth};
        if (left < 0 || left + span > p->size[2]) {
            int64_t before = DG_MIN(span, DG_MAX(0, -left)) * p->in, inside = DG_MAX(before, DG_MIN(span, p->size[2] - left) * p->in), all = span * p->in;
            memset(room, 0, (size_t)(s.parts * all) * sizeof(float));
            for (int64_t k = 0; k < s.parts; k++)
                memcpy(room + k * all + before, s.at + k * d * width + before, (size_t)(inside - before) * sizeof(float));
            s.at = room, s.gap = all - part;
        }
        int64_t at = first * p->out;
        const dg_finish *f = dg_finish_of(&finish, j->e, 0, line * outs * p->out + at, p->out);
        ISA_PICK(block)(last - first, p->out, &s, j->w, y + at, p->out, 0, f, 0, 0);
    }
}

/* A work unit is one such line. */
static void lines_task(void **args, int64_t begin, int64_t end) {
    const Job *j = args[0];
    int64_t count = j->p->out_size[2] * j->p->out;
    float *room = dg_alloc((size_t)dg_conv_line_room(j->p) * sizeof(float));
    if (!room) {
        __atomic_store_n(j->failed, 1, __ATOMIC_RELAXED);
        return;
    }
    for (int64_t u = begin; u < end; u++) {
        line_of_taps(j, u, j->y + u * count, room);
        if (!is_affine(j->e)) dg_run_epilogue(j->e, u * count, count);
    }
    dg_free(room);
}

static void gather_task(void **args, int64_t begin, int64_t end) {
    const Job *j = args[0];
    for (int64_t u = begin; u < end; u++) {
        int64_t g = u / j->pixels, row = u % j->pixels, n = DG_MIN(end - u, j->pixels - row);
        gather_rows(j, j->gathered + g * room_of(j, j->pixels), j->pixels, g, row, row + n, 0);
        u += n - 1;
    }
}

/* Few pixels, many weights: a work unit is a range of columns of one group, so weights are read once, or twice if columns are few. */
static void columns_task(void **args, int64_t begin, int64_t end) {
    const Job *j = args[0];
    dg_finish finish;
    for (int64_t u = begin; u < end; u++) {
        int64_t v = u / j->halves, g = v / j->parts, c = v % j->parts * j->columns, count = DG_MIN(j->columns, j->p->out - c);
        int64_t row = j->pixels * (u % j->halves) / j->halves, rows = j->pixels * (u % j->halves + 1) / j->halves - row;
        for (int64_t k = 0; k < j->depth; k += j->deep) {
            Rows s = rows_at(j, j->gathered + g * room_of(j, j->pixels), j->pixels, g, row, k);
            const float *next = 0;
            if (k + j->deep < j->depth) next = weights_at(j, g, k + j->deep, c);
            else if (v + 1 < j->parts * j->p->groups) next = weights_at(j, (v + 1) / j->parts, 0, (v + 1) % j->parts * j->columns);
            int64_t channel = g * j->p->out + c, at = row * j->out_step + channel;
            const dg_finish *f = k + j->deep < j->depth ? 0 : dg_finish_of(&finish, j->e, channel, at, j->out_step);
            ISA_PICK(block)(rows, count, &s, weights_at(j, g, k, c), j->y + at, j->out_step, k > 0, f, (const char *)next,
                            next ? dg_last_columns(count) * j->deep * 4 : 0);
        }
    }
}

static int64_t taps_of(const dg_convolution *p) { return p->kernel[0] * p->kernel[1] * p->kernel[2]; }

static Job job_of(const dg_convolution *p) {
    Job j = {.p = p, .pixels = p->batch * p->out_size[0] * p->out_size[1] * p->out_size[2], .depth = p->in * taps_of(p),
             .wide = dg_last_columns(p->out), .in_step = p->groups * p->in, .out_step = p->groups * p->out, .in_place = 1};
    j.deep = dg_last_deep(j.depth);
    j.merged = p->groups == 1 && p->dilation[2] == 1;
    for (int d = 0; d < 3; d++) j.in_place &= p->kernel[d] == 1 && p->stride[d] == 1 && p->pad[d] == 0 && p->size[d] == p->out_size[d];
    if (dg_last_crowded(j.in_step) && p->out > 4 * dg_last_lanes()) j.in_place = 0;
    return j;
}

static int has_lines_of_taps(const Job *j) {
    const dg_convolution *p = j->p;
    return j->merged && !j->in_place && p->kernel[0] == 1 && p->size[0] == 1 && p->pad[0] == 0 && j->deep >= j->depth && p->out < j->pixels &&
           p->out_size[2] >= 4 * dg_last_height();
}

int dg_conv_line_takes(const dg_convolution *p) {
    if (p->groups != 1 || dg_conv_last_winograd_takes(p)) return 0;
    Job j = job_of(p);
    return j.in_place ? p->out < j.pixels : has_lines_of_taps(&j);
}

int64_t dg_conv_line_room(const dg_convolution *p) { return p->kernel[1] * ((dg_last_height() - 1) * p->stride[2] + p->kernel[2]) * p->in; }

void dg_conv_line(const dg_convolution *p, const dg_epilogue *e, const float *w, const float *x, int64_t line, float *y, float *room, dg_prefetch_hint next) {
    Job j = job_of(p);
    dg_finish finish;
    j.e = e, j.x = x, j.w = w;
    if (!j.in_place) {
        line_of_taps(&j, line, y, room);
        return;
    }
    int64_t row = line * p->out_size[2];
    for (int64_t k = 0; k < j.depth; k += j.deep) {
        Rows s = rows_at(&j, 0, 0, 0, row, k);
        const dg_finish *f = k + j.deep < j.depth ? 0 : dg_finish_of(&finish, e, 0, row * p->out, p->out);
        ISA_PICK(block)(p->out_size[2], p->out, &s, weights_at(&j, 0, k, 0), y, p->out, k > 0, f, next.at, k > 0 ? 0 : next.bytes);
    }
}

static int product(const dg_convolution *p, const dg_epilogue *e, void *y, const void *x, const void *w) {
    Job j = job_of(p);
    int failed = 0;
    j.e = e, j.y = y, j.x = x, j.w = w, j.failed = &failed;
    void *args[] = {&j};
    int64_t count = j.pixels * j.out_step;
    double worth = 2e5, all = (double)j.pixels * (double)p->out * (double)j.depth; /* multiplications worth a thread */
    if (p->out >= j.pixels) {
        int64_t strip = 2 * dg_last_lanes(), strips = (p->out + strip - 1) / strip;
        j.columns = DG_MAX(1, strips / 8) * strip;
        j.parts = (p->out + j.columns - 1) / j.columns;
        int64_t all_parts = p->groups * j.parts, threads = dg_threads(); /* the same number for each thread, or many */
        j.halves = threads > 1 && (all_parts < 8 || all_parts % threads) && j.pixels >= 2 * dg_last_height() ? 2 : 1;
        if (!j.in_place) {
            j.gathered = dg_alloc((size_t)(p->groups * room_of(&j, j.pixels)) * sizeof(float));
            if (!j.gathered) return DG_NO_MEMORY;
            dg_parallel_for(gather_task, args, p->groups * j.pixels, 1 + 32768 / j.depth);
        }
        int64_t units = j.parts * j.halves;
        dg_parallel_for(columns_task, args, p->groups * units, (int64_t)(worth * (double)units / all) + 1);
        dg_free(j.gathered);
        if (!is_affine(e)) run_whole_epilogue(e, count);
        return DG_OK;
    }
    if (has_lines_of_taps(&j)) {
        int64_t lines = p->batch * p->out_size[1];
        dg_parallel_for(lines_task, args, lines, (int64_t)(worth * (double)lines / all) + 1);
        return failed ? DG_NO_MEMORY : DG_OK;
    }
    int64_t panels = (j.pixels + dg_last_height() - 1) / dg_last_height();
    j.rows = (panels + 31) / 32 * dg_last_height();
    int64_t blocks = (p->out + COLUMNS - 1) / COLUMNS;
    j.columns = e && !is_affine(e) ? up((p->out + blocks - 1) / blocks, 2 * dg_last_lanes()) : p->out;
    if (j.depth * j.wide * 4 > MUCH_WEIGHT) { /* as many rows as possible meet a block of weights while it is cached */
        int64_t threads = dg_threads(), turns = (j.pixels * j.depth * 4 / threads + SOME_ROWS - 1) / SOME_ROWS * threads;
        j.rows = DG_MAX(j.rows, (panels + turns - 1) / turns * dg_last_height());
        j.columns = DG_MIN(j.columns, DG_MAX(1, SOME_WEIGHT / 4 / j.deep / (2 * dg_last_lanes())) * 2 * dg_last_lanes());
    }
    if (j.pixels * (j.in_step + j.out_step) * 4 <= SMALL_IMAGE) j.hint = dg_next_constant;
    j.parts = (j.pixels + j.rows - 1) / j.rows;
    dg_parallel_for(rows_task, args, p->groups * j.parts, (int64_t)(worth * (double)j.parts / all) + 1);
    if (failed) return DG_NO_MEMORY;
    if (p->groups > 1 && !is_affine(e)) run_whole_epilogue(e, count);
    return DG_OK;
}

/* ---- weights ---- */

/* A work unit is a strip of a group. */
static void pack_task(void **args, int64_t begin, int64_t end) {
    const dg_convolution *p = args[0];
    float *out = args[1];
    const float *w = args[2];
    Job j = job_of(p);
    int64_t strip = 2 * dg_last_lanes(), strips = (p->out + strip - 1) / strip, taps = taps_of(p);
    for (int64_t u = begin; u < end; u++) {
        int64_t g = u / strips, first = u % strips * strip, width = DG_MIN(strip, j.wide - first), outs = DG_MIN(width, p->out - first);
        const float *from = w + (g * p->out + first) * j.depth;
        for (int64_t k = 0; k < j.depth; k += j.deep) {
            float *to = out + g * j.depth * j.wide + k * j.wide + first * DG_MIN(j.deep, j.depth - k);
            for (int64_t q = k; q < DG_MIN(k + j.deep, j.depth); q++, to += width) {
                const float *one = from + q % p->in * taps + q / p->in;
                for (int64_t l = 0; l < width; l++) to[l] = l < outs ? one[l * j.depth] : 0;
            }
        }
    }
}

static int pack(const dg_convolution *p, void *out, const void *w) {
    int64_t strip = 2 * dg_last_lanes(), strips = (p->out + strip - 1) / strip;
    dg_parallel_for(pack_task, (void *[]){(void *)p, out, (void *)w}, p->groups * strips, 1 + 16384 / (strip * p->in * taps_of(p)));
    return DG_OK;
}

/* ---- entry points ---- */

static int64_t product_packs(const dg_convolution *p) { return p->groups * p->in * taps_of(p) * dg_last_columns(p->out) * (int64_t)sizeof(float); }

int64_t dg_conv_last_packs(const dg_convolution *p) {
    if (p->type != DG_F32 || p->in == 0 || p->out == 0 || taps_of(p) == 0) return 0;
    if (dg_conv_depthwise_takes(p)) return dg_conv_depthwise_packs(p);
    return dg_conv_last_winograd_takes(p) ? dg_conv_last_winograd_packs(p) : product_packs(p);
}

int dg_conv_last_once(const dg_convolution *p) {
    if (p->groups > 1 || dg_conv_last_winograd_takes(p)) return 0;
    Job j = job_of(p);
    return j.deep >= j.depth;
}

int dg_conv_last_pack(const dg_convolution *p, void *out, const void *w) {
    if (dg_conv_depthwise_takes(p)) dg_conv_depthwise_pack(p, out, w);
    else if (dg_conv_last_winograd_takes(p)) dg_conv_last_winograd_pack(p, out, w);
    else return pack(p, out, w);
    return DG_OK;
}

/* Packs the weights for this call only. */
static int with_packed(const dg_convolution *p, int64_t bytes, int (*f)(const dg_convolution *, const dg_epilogue *, void *, const void *, const void *),
                       int (*packing)(const dg_convolution *, void *, const void *), const dg_epilogue *e, void *y, const void *x, const void *w) {
    float *packed = dg_alloc((size_t)bytes);
    if (!packed) return DG_NO_MEMORY;
    packing(p, packed, w);
    int code = f(p, e, y, x, packed);
    dg_free(packed);
    return code;
}

static int packed_then(const dg_convolution *p, const dg_epilogue *e, void *y, const void *x, const void *w) {
    if (dg_conv_depthwise_takes(p)) return dg_conv_depthwise(p, e, y, x, w);
    if (!dg_conv_last_winograd_takes(p)) return product(p, e, y, x, w);
    const float *plain;
    int code = dg_conv_last_winograd(p, e, y, x, w, &plain);
    return code == DG_NO_KERNEL ? with_packed(p, product_packs(p), product, pack, e, y, x, plain) : code;
}

int dg_conv_last_packed_then(const dg_convolution *p, const dg_epilogue *e, void *y, const void *x, const void *w) {
    return DG_STOPPABLE(packed_then(p, e, y, x, w));
}

int dg_conv_last_then(const dg_convolution *p, const dg_epilogue *e, void *y, const void *x, const void *w) {
    int64_t bytes = dg_conv_last_packs(p);
    if (bytes) return DG_STOPPABLE(with_packed(p, bytes, packed_then, dg_conv_last_pack, e, y, x, w));
    int64_t count = p->batch * p->groups * p->out * p->out_size[0] * p->out_size[1] * p->out_size[2];
    memset(y, 0, (size_t)count * sizeof(float));
    run_whole_epilogue(e, count);
    return DG_OK;
}

int dg_conv_last(const dg_convolution *p, void *y, const void *x, const void *w) { return dg_conv_last_then(p, 0, y, x, w); }
int dg_conv_last_packed(const dg_convolution *p, void *y, const void *x, const void *w) { return dg_conv_last_packed_then(p, 0, y, x, w); }
