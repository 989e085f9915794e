/* float32 and float64 products on processors with AVX-512. There OpenBLAS reaches about 80 % of the peak on large products and less on
 * thin ones, such as a layer of a network on a batch of 32; a register tile of 8 x 3 vectors over packed operands does better, and packs
 * once for all threads. Everywhere else, and for shapes that fill the tile badly, products go to BLAS. */
#include "blas.h"
#include "common.h"

#define GEMM_DEPTH 384 /* of a strip of b: what measured best of 128 to 384 */





#define ISA_SOURCE "gemm.inc"
#include "isa.h"

#ifdef DG_X86

typedef struct {
    int type, ta, tb;
    int64_t m, n, k, lda, ldb, ldc, rows, row_parts, cols, col_parts;
    const void *a, *b;
    void *c;
    char *packed;
    int *failed;
} Job;

static void pack_task(void **args, int64_t begin, int64_t end) {
    const Job *j = args[0];
    if (j->type == DG_F32) pack_rows_f32_avx512(j->packed, j->ta, j->m, j->k, j->a, j->lda, begin, end);
    else pack_rows_f64_avx512(j->packed, j->ta, j->m, j->k, j->a, j->lda, begin, end);
}

static void block_task(void **args, int64_t begin, int64_t end) {
    const Job *j = args[0];
    void *scratch = dg_alloc(GEMM_DEPTH * 24 * 8);
    if (!scratch) {
        __atomic_store_n(j->failed, 1, __ATOMIC_RELAXED);
        return;
    }
    for (int64_t u = begin; u < end; u++) {
        int64_t row = u % j->row_parts * j->rows, col = u / j->row_parts * j->cols;
        int64_t rows = DG_MIN(j->rows, j->m - row), cols = DG_MIN(j->cols, j->n - col);
        if (j->type == DG_F32)
            gemm_block_f32_avx512(j->packed, j->tb, j->k, j->b, j->ldb, j->c, j->ldc, row, rows, col, cols, scratch);
        else
            gemm_block_f64_avx512(j->packed, j->tb, j->k, j->b, j->ldb, j->c, j->ldc, row, rows, col, cols, scratch);
    }
    dg_free(scratch);
}

int dg_gemm_tiled(int type, int ta, int tb, int64_t m, int64_t n, int64_t k, const void *a, int64_t lda, const void *b, int64_t ldb,
                  void *c, int64_t ldc) {
    if (dg_isa() < 2 || (type != DG_F32 && type != DG_F64) || m < 6 || k < 16) return 0;
    int64_t width = type == DG_F32 ? 48 : 24, size = type == DG_F32 ? 4 : 8;
    int64_t padded = (n + width - 1) / width * width * ((m + 7) / 8 * 8);
    if (n < width / 2 || (double)(m * n) < 0.72 * (double)padded) return 0;
    Job j = {.type = type, .ta = ta, .tb = tb, .m = m, .n = n, .k = k, .lda = lda, .ldb = ldb, .ldc = ldc, .a = a, .b = b, .c = c};
    int failed = 0;
    j.failed = &failed;
    j.packed = dg_alloc((size_t)((m + 7) / 8 * 8 * k * size));
    if (!j.packed) return 0;
    /* about 32 units, of at least 2 Mflop and, so that packing b pays, of many rows */
    j.cols = width * 2;
    j.col_parts = (n + j.cols - 1) / j.cols;
    j.row_parts = DG_MAX(1, DG_MIN(m / 256, 32 / j.col_parts));
    j.rows = ((m + j.row_parts - 1) / j.row_parts + 7) / 8 * 8;
    j.row_parts = (m + j.rows - 1) / j.rows;
    double flops = 2.0 * (double)j.rows * (double)j.cols * (double)k;
    void *args[] = {&j};
    dg_parallel_for(pack_task, args, (m + 7) / 8, DG_MAX(1, 32768 / (8 * k)));
    dg_parallel_for(block_task, args, j.row_parts * j.col_parts, (int64_t)(1e6 / flops) + 1);
    dg_free(j.packed);
    return !failed; /* BLAS, which needs less memory, may still do it */
}

#else
int dg_gemm_tiled(int type, int ta, int tb, int64_t m, int64_t n, int64_t k, const void *a, int64_t lda, const void *b, int64_t ldb,
                  void *c, int64_t ldc) {
    (void)type, (void)ta, (void)tb, (void)m, (void)n, (void)k, (void)a, (void)lda, (void)b, (void)ldb, (void)c, (void)ldc;
    return 0;
}
#endif
