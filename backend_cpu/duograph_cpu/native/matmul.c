/* Batched matmul over the thread pool: a large matmul is split by rows and columns, a batch of small ones by batch index. */
#include "blas.h"
#include "common.h"
#include "half.h"

static const int64_t SIZES[DG_TYPES] = {1, 1, 2, 4, 8, 1, 2, 4, 8, 2, 2, 4, 8, 8, 16};

typedef struct {
    const dg_product *p;
    const char *a, *b;
    char *out;
    const dg_epilogue *e;
    int type;
    int64_t size, rows, row_parts, cols, col_parts; /* a work unit is (batch, row part, column part) */
} Job;

static int64_t up(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

/* A long matmul calls BLAS for pieces of so many flops of float32, a second or two, and can stop between them. */
#define PIECE 1e11
/* Pieces are a multiple of so many rows. The register tiles of OpenBLAS divide it, so the bits are those of one whole call, and b is
 * packed again not more often than costs 3 % of the time. Pieces of fewer columns would change bits. */
#define PIECE_ROWS 1536

/* dg_gemm, in pieces if it takes long. */
static void gemm(int type, int ta, int tb, int64_t m, int64_t n, int64_t k, const char *a, int64_t lda, const char *b, int64_t ldb, char *c,
                 int64_t ldc) {
    double slower = type < DG_F32 || !dg_blas_is_open() ? 8 : type == DG_F32 ? 1 : type == DG_F64 ? 2 : type == DG_C64 ? 4 : 8;
    double most = PIECE / slower / (2 * (double)k * (double)n);
    int64_t rows = (double)m > most ? DG_MAX(1, (int64_t)most / PIECE_ROWS) * PIECE_ROWS : m;
    for (int64_t i = 0; i < m; i += rows) {
        if (i > 0 && dg_stop()) return;
        dg_gemm(type, ta, tb, DG_MIN(rows, m - i), n, k, a + (ta ? i : i * lda) * SIZES[type], lda, b, ldb, 0, c + i * ldc * SIZES[type], ldc);
    }
}

static void matmul_task(void **args, int64_t begin, int64_t end) {
    const Job *j = args[0];
    const dg_product *p = j->p;
    int64_t m = p->m, n = p->n, k = p->k, lda = p->ta ? m : k, ldb = p->tb ? k : n, size = j->size;
    for (int64_t u = begin; u < end; u++) {
        int64_t batch = u / j->row_parts / j->col_parts, ia = 0, ib = 0, rest = batch;
        for (int64_t d = p->ndim - 1; d >= 0; d--) {
            ia += rest % p->shape[d] * p->a_stride[d];
            ib += rest % p->shape[d] * p->b_stride[d];
            rest /= p->shape[d];
        }
        int64_t i = u / j->col_parts % j->row_parts * j->rows, jj = u % j->col_parts * j->cols;
        int64_t rows = DG_MIN(j->rows, m - i), cols = DG_MIN(j->cols, n - jj);
        if (rows <= 0 || cols <= 0) continue;
        const char *a = j->a + (ia * m * k + (p->ta ? i : i * k)) * size;
        const char *b = j->b + (ib * k * n + (p->tb ? jj * k : jj)) * size;
        int64_t at = batch * m * n + i * n + jj;
        char *c = j->out + at * size;
        int done = 0;
        if (m == 1) done = p->tb ? dg_gemv(j->type, 0, cols, k, b, ldb, a, c) : dg_gemv(j->type, 1, k, cols, b, ldb, a, c);
        else if (n == 1) done = p->ta ? dg_gemv(j->type, 1, k, rows, a, lda, b, c) : dg_gemv(j->type, 0, rows, k, a, lda, b, c);
        else if (m <= DG_THIN && !p->ta) done = dg_gemm_thin(j->type, (int)p->tb, rows, cols, k, a, lda, b, ldb, c, n);
        if (!done && m > 1 && n > 1 && dg_gemm_tiled(j->type, (int)p->ta, (int)p->tb, rows, cols, k, a, lda, b, ldb, c, n, j->e, at)) continue;
        if (!done) gemm(j->type, (int)p->ta, (int)p->tb, rows, cols, k, a, lda, b, ldb, c, n);
        dg_run_epilogue_rows(j->e, at, rows, cols, n);
    }
}

static int matmul(const dg_product *p, int type, const dg_epilogue *e, void *out, const void *a, const void *b) {
    Job j = {.p = p, .e = e, .a = a, .b = b, .out = out, .type = type, .size = SIZES[type],
             .rows = p->m, .row_parts = 1, .cols = p->n, .col_parts = 1};
    /* A single matmul: the tiled kernels choose the best split. In a batch they run too, each on one thread. */
    int thin = p->m <= DG_THIN && !p->ta;
    if (p->batches == 1 && p->m > 1 && p->n > 1 && !(thin && dg_isa() > 0) &&
        dg_gemm_tiled(type, (int)p->ta, (int)p->tb, p->m, p->n, p->k, a, p->ta ? p->m : p->k, b, p->tb ? p->k : p->n, out, p->n, e, 0))
        return DG_OK;
    int64_t threads = dg_threads(), vector = thin || p->m == 1 || p->n == 1;
    /* A part is worth a thread from about 4 Mflop. A matrix times few vectors is memory bound and worth one from less. */
    double flops = 2.0 * (double)p->m * (double)p->n * (double)p->k;
    double worth = vector ? 2.5e5 : 4e6;
    int64_t parts = flops * (double)p->batches < 2 * worth ? 1 : (int64_t)DG_MIN(flops / worth, 2.0 * (double)threads);
    if (p->batches >= 4 * threads) parts = 1;
    while (j.row_parts * j.col_parts < parts) {
        if (p->m / j.row_parts >= p->n / j.col_parts) j.row_parts *= 2;
        else j.col_parts *= 2;
    }
    if (j.row_parts > 1) j.rows = up((p->m + j.row_parts - 1) / j.row_parts, 16);
    if (j.col_parts > 1) j.cols = up((p->n + j.col_parts - 1) / j.col_parts, 32);
    j.row_parts = (p->m + j.rows - 1) / j.rows;
    j.col_parts = (p->n + j.cols - 1) / j.cols;
    void *args[] = {&j};
    int64_t units = p->batches * j.row_parts * j.col_parts;
    double each = flops / (double)(j.row_parts * j.col_parts) + 1;
    if (each * (double)units < 2 * worth) matmul_task(args, 0, units);
    else if (each >= worth) dg_parallel_chunks(matmul_task, args, units);
    else dg_parallel_for(matmul_task, args, units, (int64_t)(worth / each) + 1);
    return DG_OK;
}

/* ---- float16 and bfloat16: matmul of float32 copies, rounded once ---- */

static void widen_task(void **args, int64_t begin, int64_t end) {
    float *out = args[0];
    const uint16_t *x = args[1];
    if (args[2])
        for (int64_t i = begin; i < end; i++) out[i] = f16_load(x[i]);
    else
        for (int64_t i = begin; i < end; i++) out[i] = bf16_load(x[i]);
}

static void narrow_task(void **args, int64_t begin, int64_t end) {
    uint16_t *out = args[0];
    const float *x = args[1];
    if (args[2])
        for (int64_t i = begin; i < end; i++) out[i] = f16_store(x[i]);
    else
        for (int64_t i = begin; i < end; i++) out[i] = bf16_store(x[i]);
    dg_run_epilogue(args[3], begin, end - begin);
}

static int64_t matrices(const dg_product *p, const int64_t *stride) {
    int64_t last = 0;
    for (int64_t d = 0; d < p->ndim; d++) last += (p->shape[d] - 1) * stride[d];
    return last + 1;
}

static void whole_task(void **args, int64_t begin, int64_t end) { dg_run_epilogue(args[0], begin, end - begin); }

static int product(const dg_product *p, const dg_epilogue *e, void *out, const void *a, const void *b) {
    int64_t total = p->batches * p->m * p->n;
    if (total == 0) return DG_OK;
    if (p->k == 0) {
        memset(out, 0, (size_t)(total * SIZES[p->type]));
        if (e) dg_parallel_for(whole_task, (void *[]){(void *)e}, total, e->grain);
        return DG_OK;
    }
    if (p->type == DG_F16 || p->type == DG_BF16) {
        int64_t na = matrices(p, p->a_stride) * p->m * p->k, nb = matrices(p, p->b_stride) * p->k * p->n;
        float *wide = dg_alloc((size_t)(na + nb + total) * sizeof(float));
        if (!wide) return DG_NO_MEMORY;
        void *half = p->type == DG_F16 ? wide : 0;
        dg_parallel_for(widen_task, (void *[]){wide, (void *)a, half}, na, 16384);
        dg_parallel_for(widen_task, (void *[]){wide + na, (void *)b, half}, nb, 16384);
        matmul(p, DG_F32, 0, wide + na + nb, wide, wide + na);
        dg_parallel_for(narrow_task, (void *[]){out, wide + na + nb, half, (void *)e}, total, 16384);
        dg_free(wide);
        return DG_OK;
    }
    if (p->type != DG_BOOL) return matmul(p, (int)p->type, e, out, a, b);
    int code = matmul(p, DG_BOOL, 0, out, a, b);
    for (int64_t i = 0; i < total; i++) ((uint8_t *)out)[i] = ((uint8_t *)out)[i] != 0;
    if (code == DG_OK && e) dg_parallel_for(whole_task, (void *[]){(void *)e}, total, e->grain);
    return code;
}

int dg_matmul_then(const dg_product *p, const dg_epilogue *e, void *out, const void *a, const void *b) {
    return DG_STOPPABLE(product(p, e, out, a, b));
}

int dg_matmul(const dg_product *p, void *out, const void *a, const void *b) { return dg_matmul_then(p, 0, out, a, b); }

/* ---- one operand packed in advance ---- */

int64_t dg_matmul_packs(const dg_product *p, int operand) {
    if (p->type != DG_F32 && p->type != DG_F64) return 0;
    if (p->batches != 1 || p->m <= DG_THIN || (operand == 0 && p->ta)) return 0;
    return dg_gemm_packed_bytes((int)p->type, operand == 0 ? DG_LEFT : DG_RIGHT, p->m, p->n, p->k);
}

int dg_matmul_pack0(const dg_product *p, void *out, const void *a) {
    dg_gemm_pack((int)p->type, DG_LEFT, 0, p->m, p->k, a, p->k, out);
    return DG_OK;
}

int dg_matmul_pack1(const dg_product *p, void *out, const void *b) {
    dg_gemm_pack((int)p->type, DG_RIGHT, (int)p->tb, p->n, p->k, b, p->tb ? p->k : p->n, out);
    return DG_OK;
}

static int packed(const dg_product *p, int side, const dg_epilogue *e, void *out, const void *a, const void *b) {
    int64_t lda = p->ta ? p->m : p->k, ldb = p->tb ? p->k : p->n;
    return DG_STOPPABLE(dg_gemm_packed((int)p->type, side, (int)p->ta, (int)p->tb, p->m, p->n, p->k, a, lda, b, ldb, out, p->n, e) ? DG_OK : DG_NO_MEMORY);
}

int dg_matmul_packed0_then(const dg_product *p, const dg_epilogue *e, void *out, const void *a, const void *b) {
    return packed(p, DG_LEFT, e, out, a, b);
}

int dg_matmul_packed1_then(const dg_product *p, const dg_epilogue *e, void *out, const void *a, const void *b) {
    return packed(p, DG_RIGHT, e, out, a, b);
}

int dg_matmul_packed0(const dg_product *p, void *out, const void *a, const void *b) { return packed(p, DG_LEFT, 0, out, a, b); }
int dg_matmul_packed1(const dg_product *p, void *out, const void *a, const void *b) { return packed(p, DG_RIGHT, 0, out, a, b); }
