/* Fused chains of channels-last convolutions: a pointwise or line-by-line one, a depthwise one and a pointwise one; two of them or all
 * three, each with its element-wise epilogue.
 *
 * A work unit is a band of result lines. Intermediate values exist a few lines at a time, in the L2 cache of the thread that computes
 * them: a ring of lines of the first convolution, as many as the depthwise one reads, and one line of the depthwise one. Lines of the
 * first convolution at the border of two bands are computed twice. Sums have the order of the separate convolutions, hence the bits. */
#include "conv_last.h"

#define LEAST_BYTES (1 << 20) /* size of the first intermediate from which recomputing border lines is cheaper than storing it */

typedef struct {
    const dg_chain *p;
    void **args;
    int64_t bands;
    dg_prefetch_hint hint;
    int *failed;
} Job;

/* Runs the epilogue of a stage on elements at .. at + count, stored at `value`, unless the kernel already applied it. */
static void run_stage_epilogue(const dg_chain_stage *s, const dg_epilogue *e, float *value, int64_t at, int64_t count) {
    if (e->affine) return;
    for (int64_t i = 0; i < s->count; i++)
        if (s->positions[i] < 0) e->args[i] = value - at;
    dg_run_epilogue(e, at, count);
}

static int64_t ring_of(const dg_convolution *d) { return (d->kernel[1] - 1) * d->dilation[1] + 1; }

static void bands_task(void **args, int64_t begin, int64_t end) {
    const Job *j = args[0];
    const dg_chain *p = j->p;
    const dg_chain_stage *first = p->first < 0 ? 0 : p->stage + p->first, *depth = p->stage + p->first + 1, *last = depth + 1 < p->stage + p->stages ? depth + 1 : 0;
    const dg_convolution *f = first ? first->plan : 0, *d = depth->plan, *l = last ? last->plan : 0;
    const float *x = j->args[p->left];
    float *y = j->args[p->out];
    int64_t ring = first ? ring_of(d) : INT64_MAX, in_line = d->size[2] * d->groups, out_line = d->out_size[2] * d->groups, lines = d->batch * d->out_size[1];
    int64_t room = first ? dg_conv_line_room(f) : 0;
    float *scratch = dg_alloc((size_t)((first ? ring * in_line : 0) + (last ? out_line : 0) + room + 64) * sizeof(float));
    if (!scratch) {
        __atomic_store_n(j->failed, 1, __ATOMIC_RELAXED);
        return;
    }
    float *wide = scratch, *narrow = wide + (first ? ring * in_line : 0), *rest = narrow + (last ? out_line : 0);
    void *own[3][sizeof p->stage->positions / sizeof *p->stage->positions];
    dg_epilogue e[3];
    for (int64_t i = 0; i < p->stages; i++) {
        const dg_chain_stage *s = p->stage + i;
        e[i] = (dg_epilogue){.f = s->f, .args = own[i], .affine = s->has_affine ? &s->affine : 0};
        for (int64_t k = 0; k < s->count; k++) own[i][k] = s->positions[k] < 0 ? 0 : j->args[s->positions[k]];
    }
    const dg_prefetch_hint nothing = {0, 0};
    const dg_epilogue *then_depth = e + (first ? 1 : 0), *then_last = then_depth + 1;
    for (int64_t u = begin; u < end; u++) {
        int64_t next = 0;
        for (int64_t line = lines * u / j->bands; line < lines * (u + 1) / j->bands; line++) {
            int64_t top = line % d->out_size[1] * d->stride[1] - d->pad[1], image = line / d->out_size[1] * d->size[1];
            if (first) {
                next = DG_MAX(next, image + DG_MAX(0, top));
                for (; next < image + DG_MIN(d->size[1], top + ring); next++) {
                    float *to = wide + next % ring * in_line;
                    dg_conv_line(f, e, j->args[first->weights], x, next, to, rest, nothing);
                    run_stage_epilogue(first, e, to, next * in_line, in_line);
                }
            }
            float *to = last ? narrow : y + line * out_line;
            dg_conv_depthwise_line(d, then_depth, j->args[depth->weights], first ? wide : x, ring, line, 0, d->out_size[2], to);
            run_stage_epilogue(depth, then_depth, to, line * out_line, out_line);
            if (last) {
                int64_t count = l->out_size[2] * l->out;
                dg_conv_line(l, then_last, j->args[last->weights], narrow - line * out_line, line, y + line * count, 0, dg_prefetch_part(j->hint, line, lines));
                run_stage_epilogue(last, then_last, y + line * count, line * count, count);
            }
        }
    }
    dg_free(scratch);
}

static int chain(const dg_chain *p, void **args) {
    int failed = 0;
    const dg_convolution *d = p->stage[p->first + 1].plan;
    int64_t lines = d->batch * d->out_size[1], threads = dg_threads();
    /* few lines are computed twice */
    int64_t bands = p->first < 0 ? 2 * threads : DG_MAX(threads, lines / 28 / threads * threads);
    Job j = {.p = p, .args = args, .bands = DG_MAX(1, DG_MIN(bands, lines)), .hint = dg_next_constant, .failed = &failed};
    dg_parallel_chunks(bands_task, (void *[]){&j}, j.bands);
    return failed ? DG_NO_MEMORY : DG_OK;
}

int dg_conv_chain(const dg_chain *p, void **args) { return DG_STOPPABLE(chain(p, args)); }

static int is_depthwise(const dg_convolution *p) { return dg_conv_depthwise_takes(p) && p->kernel[0] == 1 && p->size[0] == 1 && p->out_size[0] == 1 && p->pad[0] == 0; }

int dg_conv_chains(const dg_convolution *a, const dg_convolution *b) {
    if (a->type != DG_F32 || b->type != DG_F32 || a->in == 0 || a->groups * a->out != b->groups * b->in) return 0;
    int64_t pixels = a->out_size[1] * a->out_size[2];
    if (is_depthwise(b)) return dg_conv_line_takes(a) && a->out_size[2] >= 2 * dg_last_height() && a->batch * pixels * a->out * 4 >= LEAST_BYTES;
    for (int d = 0; d < 3; d++)
        if (b->kernel[d] != 1 || b->pad[d] != 0 || b->size[d] != b->out_size[d]) return 0;
    return is_depthwise(a) && dg_conv_line_takes(b) && a->out_size[2] >= dg_last_height();
}
