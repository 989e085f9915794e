/* Matrix products on one thread, row-major: OpenBLAS where it was opened and has the type, else loops of our own. */
#ifndef DG_BLAS_H
#define DG_BLAS_H

#include "common.h"

/* c (m, n) = op(a) (m, k) @ op(b) (k, n) + (add ? c : 0); types: f32, f64, c64, c128 and integers. */
void dg_gemm(int type, int ta, int tb, int64_t m, int64_t n, int64_t k, const void *a, int64_t lda, const void *b,
             int64_t ldb, int add, void *c, int64_t ldc);

/* y = op(a) @ x for a (rows, cols), f32 and f64; 0 when there is no such routine. */
int dg_gemv(int type, int transpose, int64_t rows, int64_t cols, const void *a, int64_t lda, const void *x, void *y);

int dg_blas_is_open(void);

/* c = op(a) @ op(b) on all threads with our own kernels, float32 and float64; 0 when BLAS is to do it, or memory is short (see gemm.c):
 * then nothing was given to the epilogue, for which c begins at element `at`. */
int dg_gemm_tiled(int type, int ta, int tb, int64_t m, int64_t n, int64_t k, const void *a, int64_t lda, const void *b, int64_t ldb,
                  void *c, int64_t ldc, const dg_epilogue *e, int64_t at);

/* One operand packed beforehand, all of it, for the bits of dg_gemm_tiled: bytes of it (0: it cannot be, or need not), what packs it (`lines` rows of a, or
 * columns of b, whose ld and transposition it takes), and the product; 0 when memory is short. a may be packed when it is not transposed. */
enum { DG_LEFT = 1, DG_RIGHT = 2 };
int64_t dg_gemm_packed_bytes(int type, int side, int64_t m, int64_t n, int64_t k);
void dg_gemm_pack(int type, int side, int transposed, int64_t lines, int64_t k, const void *x, int64_t ld, void *out);
int dg_gemm_packed(int type, int side, int ta, int tb, int64_t m, int64_t n, int64_t k, const void *a, int64_t lda, const void *b,
                   int64_t ldb, void *c, int64_t ldc, const dg_epilogue *e);

/* c = a @ op(b) on one thread for at most DG_THIN rows of a; 0 when there is no such kernel. Each element is summed in an order of its own. */
#define DG_THIN 4
int dg_gemm_thin(int type, int tb, int64_t m, int64_t n, int64_t k, const void *a, int64_t lda, const void *b, int64_t ldb, void *c,
                 int64_t ldc);

/* c = op(a) @ b where b[i][j] = x[row[i] + column[j]]: a convolution whose columns are written nowhere; side: DG_LEFT when a was
 * packed, else 0. 0 as above. */
int dg_gemm_gathered(int type, int side, int ta, int64_t m, int64_t n, int64_t k, const void *a, int64_t lda, const void *x,
                     const int32_t *row, const int32_t *column, void *c, int64_t ldc, const dg_epilogue *e);

/* The pieces of such a product for those who pack its operands themselves, float32 and float64, where the lanes of a vector are not 0. Rows lie in
 * panels of the height of a tile or less, [depth][row]; panel p of n begins at row rows*p/n. Columns lie in strips of two vectors, [depth][column];
 * the last one has one vector when that is enough. c (+)= a @ b on this thread, which meanwhile fetches `bytes` at `next` into its cache. */
int64_t dg_gemm_lanes(int type);
int64_t dg_gemm_height(int type);
void dg_gemm_block(int type, int64_t rows, int64_t columns, int64_t depth, const void *a, const void *b, void *c, int64_t ldc, int add,
                   const void *next, int64_t bytes);

/* c[j][i] = x[i][j] for rows i and columns j of x, where there are lanes. */
void dg_gemm_turn(int type, void *c, int64_t ldc, const void *x, int64_t ldx, int64_t rows, int64_t columns);

#endif
