/* Every function that Python calls. Both the C compiler (through common.h) and cffi's cdef read this file, so it holds
 * declarations only and no preprocessor directives. Kernels return 0 or an error code, which kernels.py raises as an exception. */

/* ---- pool.c ---- */
int dg_threads(void);

/* ---- memory.c: blocks of at least 4 KiB; see there ---- */
void *dg_alloc(size_t bytes);
void dg_free(void *block);
void dg_memory_limits(size_t limit, size_t cache_limit);
void dg_memory_stats(int64_t *out); /* in_use, cached, peak, limit, cache_limit, allocations, hits */
void dg_memory_trim(void);

/* ---- isa.c ---- */
int dg_isa(void); /* 0 baseline, 1 AVX2, 2 AVX-512 */
void dg_isa_limit(int level); /* for tests: use at most this level */

/* ---- movement.c ---- */
void dg_copy(void *out, const void *x, int64_t bytes);

/* ---- indexing.c ---- */
int dg_wrong_index(const void *indices, int64_t type, int64_t count, int64_t n); /* returns whether an index is out of range, and records the first */
void dg_index_error(int64_t *out); /* {index, axis size} of the last index that was out of range in this thread */

/* An n-dimensional strided copy: dst[dst_offset + i*dst] = src[src_offset + i*src], in elements. Adjacent axes are already
 * merged; the innermost is last. */
typedef struct {
    int64_t ndim, itemsize, dst_offset, src_offset, bytes;
    int64_t shape[16], dst[16], src[16];
    unsigned char value[16];
} dg_nd;
int dg_strided_copy(const dg_nd *p, void *out, const void *x);
int dg_slice_update(const dg_nd *p, void *out, const void *x, const void *v); /* bytes: size of x */
int dg_pad(const dg_nd *p, void *out, const void *x);                         /* bytes: size of out; value: the padding */

typedef struct { int64_t bytes, itemsize; unsigned char value[16]; } dg_filling;
int dg_fill(const dg_filling *p, void *out);

typedef struct { int64_t type, outer, n, inner; } dg_axis;
int dg_iota(const dg_axis *p, void *out);

typedef struct { int64_t count, outer, total; int64_t *rows; } dg_joining; /* rows: bytes of each operand per outer index */
int dg_concat(const dg_joining *p, void *out, const void **xs);

/* ---- reduce.c ---- */

/* After merging, kept and reduced axes alternate. The innermost axis has `inner` elements and is of either kind. */
typedef struct {
    int64_t type, op, inner, inner_kept, nk, nr;
    int64_t kshape[16], kstride[16], rshape[16], rstride[16]; /* kept (k) and reduced (r) outer axes; strides in elements */
} dg_reduction;
int dg_reduce(const dg_reduction *p, void *out, const void *x);
int dg_argmax(const dg_axis *p, void *out, const void *x);
int dg_argmin(const dg_axis *p, void *out, const void *x);

/* x has shape (outer, n, inner); there are `count` indices of type index_type. add: 0 overwrites, 1 accumulates. */
typedef struct { int64_t type, itemsize, index_type, outer, n, inner, count, add; } dg_indexing;
int dg_checked_labels(const dg_indexing *p, void *out, const void *labels); /* a copy; an error unless all are 0 .. n-1 */
int dg_gather(const dg_indexing *p, void *out, const void *x, const void *indices);
int dg_scatter(const dg_indexing *p, void *out, const void *x, const void *indices, const void *updates);

/* shape: of the indices; stride: of x, in elements; axis: the indexed axis, of size n. */
typedef struct {
    int64_t type, itemsize, index_type, ndim, axis, n, total, add;
    int64_t shape[16], stride[16];
} dg_elements;
int dg_gather_elements(const dg_elements *p, void *out, const void *x, const void *indices);
int dg_scatter_elements(const dg_elements *p, void *out, const void *x, const void *indices, const void *updates); /* total: size of x in bytes */

/* ---- blas.c ---- */
const char *dg_blas_open(const char *path); /* returns NULL, or why the library cannot be used */

/* ---- functions compiled at run time ---- */

/* Runs iterations begin .. end of a region's outer loop. args: operands, then results. Returns 0 or an error code. */
typedef int (*dg_generated)(void **args, int64_t begin, int64_t end);

/* An element-wise epilogue of a matmul or a convolution. The kernel calls f on each range of its result as soon as the range is
 * complete and still in a cache. args holds the result buffer, among others. A NULL epilogue means none. */
typedef struct {
    int64_t scale, bias, addend; /* indices into the args of f (-1: absent); scale and bias are per channel, addend per element */
    double low, high;
} dg_affine;
typedef struct {
    dg_generated f;
    void **args;
    int64_t n, grain; /* number of elements, and the least number worth a thread */
    const dg_affine *affine; /* if not NULL, f computes min(max(value * scale + bias + addend, low), high) and the kernel may do so itself */
} dg_epilogue;

/* ---- matmul.c: batches of out (m, n) = a (m, k) @ b (k, n); ta, tb: the operand is stored transposed ---- */
typedef struct {
    int64_t type, ta, tb, m, n, k, ndim, batches;
    int64_t shape[16], a_stride[16], b_stride[16]; /* batch axes; strides count matrices */
} dg_product;
int dg_matmul(const dg_product *p, void *out, const void *a, const void *b);
int dg_matmul_then(const dg_product *p, const dg_epilogue *e, void *out, const void *a, const void *b);

/* The matmul with operand 0 or 1 packed in advance. _packs: size of the packed operand in bytes, 0 if packing is impossible or
 * does not pay. _pack0, _pack1: pack it. _packed0, _packed1: the matmul. */
int64_t dg_matmul_packs(const dg_product *p, int operand);
int dg_matmul_pack0(const dg_product *p, void *out, const void *a);
int dg_matmul_pack1(const dg_product *p, void *out, const void *b);
int dg_matmul_packed0(const dg_product *p, void *out, const void *a, const void *b);
int dg_matmul_packed1(const dg_product *p, void *out, const void *a, const void *b);
int dg_matmul_packed0_then(const dg_product *p, const dg_epilogue *e, void *out, const void *a, const void *b);
int dg_matmul_packed1_then(const dg_product *p, const dg_epilogue *e, void *out, const void *a, const void *b);

/* ---- conv.c: x (batch, groups*in, size...), w (groups*out, in, kernel...), y (batch, groups*out, out_size...).
 * Always three spatial axes; fewer are padded with leading ones. */
typedef struct {
    int64_t type, batch, groups, in, out;
    int64_t size[3], kernel[3], out_size[3], stride[3], pad[3], dilation[3]; /* pad: zeros at the low end */
} dg_convolution;
int dg_conv(const dg_convolution *p, void *y, const void *x, const void *w);
int dg_conv_then(const dg_convolution *p, const dg_epilogue *e, void *y, const void *x, const void *w);

/* The convolution with weights packed in advance. _packs: size of the packed weights in bytes, 0 if packing is impossible or
 * does not pay. _pack: pack them. _packed: the convolution. */
int64_t dg_conv_packs(const dg_convolution *p);
int dg_conv_pack(const dg_convolution *p, void *out, const void *w);
int dg_conv_packed(const dg_convolution *p, void *y, const void *x, const void *w);
int dg_conv_packed_then(const dg_convolution *p, const dg_epilogue *e, void *y, const void *x, const void *w);

int dg_conv_input_grad(const dg_convolution *p, void *dx, const void *dy, const void *w);
int dg_conv_weight_grad(const dg_convolution *p, void *dw, const void *x, const void *dy);

/* ---- conv_last.c: channels-last float32 convolution: x (batch, size..., groups*in), y (batch, out_size..., groups*out), w as
 * above ---- */
int dg_conv_last(const dg_convolution *p, void *y, const void *x, const void *w);
int dg_conv_last_then(const dg_convolution *p, const dg_epilogue *e, void *y, const void *x, const void *w);
int64_t dg_conv_last_packs(const dg_convolution *p);
int dg_conv_last_pack(const dg_convolution *p, void *out, const void *w);
int dg_conv_last_packed(const dg_convolution *p, void *y, const void *x, const void *w);
int dg_conv_last_packed_then(const dg_convolution *p, const dg_epilogue *e, void *y, const void *x, const void *w);
int dg_conv_last_once(const dg_convolution *p); /* whether each result is written once, after its `addend` was read, so that the two may share memory */

/* ---- normalise.c ---- */

/* Along one axis; `type` is that of all operands and results. */
int dg_softmax(const dg_axis *p, void *y, const void *x);
int dg_log_softmax(const dg_axis *p, void *y, const void *x);
int dg_softmax_grad(const dg_axis *p, void *dx, const void *y, const void *dy);
int dg_log_softmax_grad(const dg_axis *p, void *dx, const void *y, const void *dy);

/* layer_norm: `outer` rows of n elements. batch_norm: n channels of `inner` elements in a batch of `outer`. type: of x and y;
 * weight_type: of gamma and beta; stat_type: of mean, rstd and var. */
typedef struct { int64_t type, weight_type, stat_type, outer, n, inner; double eps; } dg_normalisation;
int dg_layer_norm(const dg_normalisation *p, void *y, void *mean, void *rstd, const void *x, const void *gamma, const void *beta);
int dg_layer_norm_grad(const dg_normalisation *p, void *dx, void *dgamma, void *dbeta, const void *x, const void *gamma,
                       const void *mean, const void *rstd, const void *dy);
int dg_batch_norm(const dg_normalisation *p, void *y, void *mean, void *var, const void *x, const void *gamma, const void *beta);
int dg_batch_norm_grad(const dg_normalisation *p, void *dx, void *dgamma, void *dbeta, const void *x, const void *gamma,
                       const void *mean, const void *var, const void *dy);

/* ---- attention.c: query i attends to keys i + low .. i + high. Strides count elements, in the order batch, head, position; o: of
 * the result and its gradient; mask strides have the key axis too, and are 0 where the mask broadcasts. Gradients have the layout
 * of their operands. ---- */
typedef struct {
    int64_t type, mask_type, batch, heads, key_heads, queries, keys, depth, value_depth, low, high;
    double scale;
    int64_t q[3], k[3], v[3], o[3], mask_stride[4];
} dg_attention;
int dg_attention_forward(const dg_attention *p, void *out, void *log_sum, const void *q, const void *k, const void *v);
int dg_attention_masked(const dg_attention *p, void *out, void *log_sum, const void *q, const void *k, const void *v, const void *mask);
int dg_attention_grad(const dg_attention *p, void *dq, void *dk, void *dv, const void *q, const void *k, const void *v, const void *out,
                      const void *log_sum, const void *dout);
int dg_attention_grad_masked(const dg_attention *p, void *dq, void *dk, void *dv, const void *q, const void *k, const void *v,
                             const void *mask, const void *out, const void *log_sum, const void *dout);
/* Query, key and value are concatenated in each row of x, and so are their gradients in dx. */
int dg_self_attention(const dg_attention *p, void *out, void *log_sum, const void *x);
int dg_self_attention_masked(const dg_attention *p, void *out, void *log_sum, const void *x, const void *mask);
int dg_self_attention_grad(const dg_attention *p, void *dx, const void *x, const void *out, const void *log_sum, const void *dout);
int dg_self_attention_grad_masked(const dg_attention *p, void *dx, const void *x, const void *mask, const void *out, const void *log_sum,
                                  const void *dout);

/* ---- pooling.c: planes = batch * channels; always three spatial axes, as in dg_convolution ---- */
typedef struct {
    int64_t type, planes, include_pad, divisor; /* divisor: 0 means the number of window elements */
    int64_t channels;                           /* number of channels, for channels-last layouts */
    int64_t size[3], kernel[3], out_size[3], stride[3], pad[3], dilation[3];
} dg_pooling;
int dg_max_pool(const dg_pooling *p, void *y, void *indices, const void *x);
int dg_max_pool_grad(const dg_pooling *p, void *dx, const void *dy, const void *indices); /* size[0] and out_size[0] count whole planes */
int dg_avg_pool(const dg_pooling *p, void *y, const void *x);
int dg_avg_pool_grad(const dg_pooling *p, void *dx, const void *dy);

/* ---- pooling_last.c: channels innermost, float32; planes = batch ---- */
int dg_max_pool_last(const dg_pooling *p, void *y, const void *x);
int dg_avg_pool_last(const dg_pooling *p, void *y, const void *x);

/* ---- scan.c: cumulative sums, products, maxima and minima along an axis ---- */
typedef struct { int64_t type, index_type, outer, n, inner, exclusive, reverse; } dg_scanning;
int dg_cumsum(const dg_scanning *p, void *y, const void *x);
int dg_cumprod(const dg_scanning *p, void *y, const void *x);
int dg_cummax(const dg_scanning *p, void *y, void *indices, const void *x);
int dg_cummin(const dg_scanning *p, void *y, void *indices, const void *x);

/* ---- sort.c: the first k of n in sorted order; stable, NaN last ---- */
typedef struct { int64_t type, outer, n, inner, k, descending; } dg_sorting;
int dg_sort(const dg_sorting *p, void *values, void *indices, const void *x);

/* ---- random.c ---- */
typedef struct { int64_t n; } dg_bits;
int dg_random_bits(const dg_bits *p, void *out, const void *state);

/* ---- optimizer.c: one optimiser step in one pass over float32 parameters; rates are 0-d operands ---- */
typedef struct { int64_t n, nesterov; double beta1, beta2, eps, weight_decay, scale; } dg_step;
int dg_adam(const dg_step *p, void *p1, void *m1, void *v1, const void *p0, const void *m0, const void *v0, const void *grad,
            const void *lr, const void *beta1_power, const void *beta2_power);
int dg_adam_weight_decay(const dg_step *p, void *p1, void *m1, void *v1, const void *p0, const void *m0, const void *v0,
                         const void *grad, const void *lr);
int dg_momentum(const dg_step *p, void *p1, void *a1, const void *p0, const void *a0, const void *grad, const void *lr,
                const void *momentum);

/* ---- region.c: running functions compiled at run time ---- */
void *dg_open(const char *path);                    /* NULL: see dg_open_problem */
void dg_close(void *library);
void *dg_symbol(void *library, const char *name);   /* NULL: see dg_open_problem */
const char *dg_open_problem(void);                  /* why the last call of either failed in this thread */

typedef struct {
    dg_generated f;
    int64_t n, grain; /* number of iterations, and the least number worth a thread */
} dg_region;

/* These split the iterations over the thread pool and return the greatest error code. */
int dg_region_run(const dg_region *r, void **args);
int dg_region0(const dg_region *r, void *out);
int dg_region1(const dg_region *r, void *out, const void *a);
int dg_region2(const dg_region *r, void *out, const void *a, const void *b);
int dg_region3(const dg_region *r, void *out, const void *a, const void *b, const void *c);
int dg_region4(const dg_region *r, void *out, const void *a, const void *b, const void *c, const void *d);
int dg_region5(const dg_region *r, void *out, const void *a, const void *b, const void *c, const void *d, const void *e);
int dg_region6(const dg_region *r, void *out, const void *a, const void *b, const void *c, const void *d, const void *e,
               const void *f);

/* A region that gathers through indices, or has a second stage, which reads what the first stage wrote to scratch memory. */
typedef struct { int64_t operand, type, count, n; } dg_indices; /* position of the index operand, its dtype, number of indices, and the size of the indexed axis */
typedef struct {
    dg_region first, second;  /* second.n: 0 if there is no second stage */
    int64_t pointers, bytes;  /* number of operands and results; bytes of scratch memory, whose address follows them in args */
    int64_t count;
    dg_indices indices[16];
} dg_staged;
int dg_staged_run(const dg_staged *p, void **args); /* returns DG_WRONG_INDEX + k if indices[k] holds a wrong index; see dg_index_error */

/* A matmul or convolution and the region that follows it, as one call. */
typedef struct {
    const void *product, *plan; /* a function such as dg_matmul_then or dg_conv_then, and its first argument */
    dg_generated f;
    int64_t n, grain, bytes;    /* of the region; bytes: size of the contraction's value if it needs scratch memory (`value` is -1) */
    int64_t left, right, value; /* indices into args of the contraction's operands and of its value */
    int64_t has_affine;         /* see dg_epilogue */
    dg_affine affine;
    int64_t count;              /* number of the region's operands and results, and their indices in args; -1: the contraction's value */
    int64_t places[72];
} dg_fused;
int dg_fused_run(const dg_fused *p, void **args);

/* ---- conv_chain.c: consecutive convolutions, each with its epilogue, as one call ---- */
typedef struct {
    const dg_convolution *plan;
    dg_generated f;
    int64_t weights, has_affine;
    dg_affine affine;
    int64_t count;              /* number of its operands and results; `positions`: their indices in args; -1: the value of the stage */
    int64_t positions[12];
} dg_chain_stage;
typedef struct {
    int64_t stages, first, left, out; /* first: 0, or -1 if the first stage is depthwise; left, out: indices in args of input and result */
    dg_chain_stage stage[3];
} dg_chain;
int dg_conv_chain(const dg_chain *p, void **args);
int dg_conv_line_takes(const dg_convolution *p); /* whether this convolution can be the first of three */
int dg_conv_chains(const dg_convolution *a, const dg_convolution *b); /* whether fusing b into its producer a is possible and pays */

/* ---- program.c: whole programs; see program.py ---- */
typedef struct {
    void *f;
    const void *constants;
    int checked; /* whether f returns an error code */
} dg_native;
typedef struct {
    const int32_t *code;
    const dg_native *kernels;
    const int64_t *offsets; /* by slot: its offset in the arena; or -1 - k: pointer k of the call, or constant k - given */
    const int64_t *sizes;
    void **constants;
    int64_t slots, given;
} dg_program;

/* `slots` has one entry more than there are slots. Returns 0; kernel << 8 | code if a kernel failed; or -at: a long loop was
 * interrupted, call again with `at` and the same slots. */
int64_t dg_program_run(const dg_program *p, void **slots, void **given, char *arena, int64_t at);
/* The times of a run's kernels: rows of the kernel's number, by its position in `code`, and begin and end in nanoseconds of
 * CLOCK_MONOTONIC. After `room` rows the run is interrupted, as in a long loop; the caller takes them and sets `count` to 0. */
typedef struct {
    const int32_t *numbers;
    int64_t *rows, count, room;
} dg_times;
int64_t dg_program_timed(const dg_program *p, void **slots, void **given, char *arena, int64_t at, dg_times *times);
int64_t dg_program_crossings(void); /* number of calls in this process */
void dg_program_end(void **stacks); /* frees the stack frames of an abandoned run; stacks: slots + p->slots */

/* ---- scalar.c: Python numbers ---- */
typedef struct { int64_t function, count, kinds[2], result; } dg_scalar_plan; /* kinds: those of numbers, or the dtype of a tensor */
int dg_scalar(const dg_scalar_plan *p, void *out, const void *x, const void *y);
int dg_to_host(const dg_scalar_plan *p, void *out, const void *x);
int dg_to_tensor(const dg_scalar_plan *p, void *out, const void *x);
