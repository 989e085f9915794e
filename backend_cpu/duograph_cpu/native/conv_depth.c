/* Channels-last float32 depthwise convolution, vectorised over channels. Taps outside the input are skipped, so nothing is padded.
 * Sums run over kernel rows and then along each row. */
#include "conv_last.h"

#define MOST_ROWS 64 /* kernel rows, over all axes but the last */

/* The input rows that one output row reads, and their weights [tap][channel]. */
typedef struct {
    const float *x[MOST_ROWS], *w[MOST_ROWS];
    int64_t rows, taps, dilation, step, pad, width, channels;
    int64_t first_inside, last_inside; /* range of outputs all of whose taps are inside the input */
} Row;

#define ISA_SOURCE "conv_depth.inc"
#include "isa.h"

typedef struct {
    const dg_convolution *p;
    const dg_epilogue *e;
    const float *x, *w; /* w: [tap][channel] */
    float *y;
    int64_t parts; /* parts of an output row */
} Job;

int dg_conv_depthwise_takes(const dg_convolution *p) {
    return p->in == 1 && p->out == 1 && p->groups > 1 && p->kernel[0] * p->kernel[1] <= MOST_ROWS;
}

int64_t dg_conv_depthwise_packs(const dg_convolution *p) {
    return p->groups * p->kernel[0] * p->kernel[1] * p->kernel[2] * (int64_t)sizeof(float);
}

void dg_conv_depthwise_pack(const dg_convolution *p, float *out, const float *w) {
    int64_t taps = p->kernel[0] * p->kernel[1] * p->kernel[2];
    for (int64_t t = 0; t < taps; t++)
        for (int64_t c = 0; c < p->groups; c++) out[t * p->groups + c] = w[c * taps + t];
}

void dg_conv_depthwise_line(const dg_convolution *p, const dg_epilogue *e, const float *w, const float *x, int64_t ring, int64_t line, int64_t first,
                            int64_t last, float *y) {
    dg_finish f;
    int64_t channels = p->groups, s = p->stride[2];
    Row r = {.taps = p->kernel[2], .dilation = p->dilation[2], .step = s, .pad = p->pad[2], .width = p->size[2], .channels = channels};
    int64_t reach = (r.taps - 1) * r.dilation;
    r.first_inside = DG_MAX(0, (r.pad + s - 1) / s);
    r.last_inside = r.width + r.pad - reach > 0 ? (r.width + r.pad - reach - 1) / s + 1 : 0;
    int64_t oy = line % p->out_size[1], oz = line / p->out_size[1] % p->out_size[0], n = line / p->out_size[1] / p->out_size[0];
    for (int64_t t = 0; t < p->kernel[0] * p->kernel[1]; t++) {
        int64_t z = oz * p->stride[0] - p->pad[0] + t / p->kernel[1] * p->dilation[0];
        int64_t at = oy * p->stride[1] - p->pad[1] + t % p->kernel[1] * p->dilation[1];
        if (z < 0 || z >= p->size[0] || at < 0 || at >= p->size[1]) continue;
        r.x[r.rows] = x + ((n * p->size[0] + z) * p->size[1] + at) % ring * r.width * channels;
        r.w[r.rows++] = w + t * r.taps * channels;
    }
    ISA_PICK(depth_row)(&r, dg_finish_of(&f, e, 0, (line * p->out_size[2] + first) * channels, channels), y, first, last);
}

/* A work unit is a part of an output row. */
static void lines_task(void **args, int64_t begin, int64_t end) {
    const Job *j = args[0];
    int64_t channels = j->p->groups, out = j->p->out_size[2];
    for (int64_t u = begin; u < end; u++) {
        int64_t part = u % j->parts, line = u / j->parts, first = out * part / j->parts, last = out * (part + 1) / j->parts;
        int64_t at = (line * out + first) * channels;
        dg_conv_depthwise_line(j->p, j->e, j->w, j->x, INT64_MAX, line, first, last, j->y + at);
        if (j->e && !j->e->affine) dg_run_epilogue(j->e, at, (last - first) * channels);
    }
}

int dg_conv_depthwise(const dg_convolution *p, const dg_epilogue *e, float *y, const float *x, const float *w) {
    int64_t rows = p->batch * p->out_size[0] * p->out_size[1];
    Job j = {.p = p, .e = e, .x = x, .w = w, .y = y, .parts = rows < 16 ? DG_MIN(2, p->out_size[2]) : 1};
    double each = (double)(p->out_size[2] * p->groups * p->kernel[0] * p->kernel[1] * p->kernel[2]) / (double)j.parts;
    dg_parallel_for(lines_task, (void *[]){&j}, rows * j.parts, (int64_t)(1e5 / each) + 1);
    return DG_OK;
}
