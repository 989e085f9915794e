/* Channels-last float32 pooling: x (batch, size..., channels). A work unit is a row of outputs; each output reads the contiguous channels
 * of the window elements that are inside the input. */
#include "common.h"

#include <math.h>

#define ISA_SOURCE "pooling_last.inc"
#include "isa.h"

typedef struct {
    const dg_pooling *p;
    float *y;
    const float *x;
    int mean, *failed;
} Job;

/* The elements of an output's window that are inside the input, in order. */
static int64_t cells_of(const dg_pooling *p, const float *x, const int64_t *at, const float **cells) {
    int64_t n = 0;
    for (int64_t d = 0; d < p->kernel[0]; d++) {
        int64_t id = at[0] * p->stride[0] + d * p->dilation[0] - p->pad[0];
        if (id < 0 || id >= p->size[0]) continue;
        for (int64_t h = 0; h < p->kernel[1]; h++) {
            int64_t ih = at[1] * p->stride[1] + h * p->dilation[1] - p->pad[1];
            if (ih < 0 || ih >= p->size[1]) continue;
            for (int64_t w = 0; w < p->kernel[2]; w++) {
                int64_t iw = at[2] * p->stride[2] + w * p->dilation[2] - p->pad[2];
                if (iw >= 0 && iw < p->size[2]) cells[n++] = x + ((id * p->size[1] + ih) * p->size[2] + iw) * p->channels;
            }
        }
    }
    return n;
}

static void row_task(void **args, int64_t begin, int64_t end) {
    const Job *j = args[0];
    const dg_pooling *p = j->p;
    int64_t volume = p->kernel[0] * p->kernel[1] * p->kernel[2], plane = p->size[0] * p->size[1] * p->size[2] * p->channels;
    const float **cells = dg_alloc((size_t)volume * sizeof *cells);
    if (!cells) {
        __atomic_store_n(j->failed, 1, __ATOMIC_RELAXED);
        return;
    }
    for (int64_t u = begin; u < end; u++) {
        int64_t at[3] = {u / p->out_size[1] % p->out_size[0], u % p->out_size[1], 0};
        const float *x = j->x + u / (p->out_size[0] * p->out_size[1]) * plane;
        float *y = j->y + u * p->out_size[2] * p->channels;
        for (; at[2] < p->out_size[2]; at[2]++, y += p->channels) {
            int64_t n = cells_of(p, x, at, cells);
            if (j->mean) ISA_PICK(mean)(y, p->channels, cells, n, (float)(p->divisor ? p->divisor : p->include_pad ? volume : n));
            else ISA_PICK(most)(y, p->channels, cells, n);
        }
    }
    dg_free(cells);
}

static int run(const dg_pooling *p, float *y, const float *x, int mean) {
    int failed = 0;
    Job j = {p, y, x, mean, &failed};
    int64_t row = p->out_size[2] * p->channels * (p->kernel[0] * p->kernel[1] * p->kernel[2] + 1);
    dg_parallel_for(row_task, (void *[]){&j}, p->planes * p->out_size[0] * p->out_size[1], DG_MAX(1, 65536 / (row + 1)));
    return failed ? DG_NO_MEMORY : DG_OK;
}

int dg_max_pool_last(const dg_pooling *p, void *y, const void *x) { return run(p, y, x, 0); }
int dg_avg_pool_last(const dg_pooling *p, void *y, const void *x) { return run(p, y, x, 1); }
