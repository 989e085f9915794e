/* Row-major GEMM on one thread: OpenBLAS if it is open and supports the type, else our own loops. Tiled multi-threaded GEMM is in
 * gemm.c. */
#ifndef DG_BLAS_H
#define DG_BLAS_H

#include "common.h"

/* c (m, n) = op(a) (m, k) @ op(b) (k, n) + (add ? c : 0); types: f32, f64, c64, c128 and integers. */
void dg_gemm(int type, int ta, int tb, int64_t m, int64_t n, int64_t k, const void *a, int64_t lda, const void *b,
             int64_t ldb, int add, void *c, int64_t ldc);

/* y = op(a) @ x for a (rows, cols), f32 and f64; returns 0 if there is no such routine. */
int dg_gemv(int type, int transpose, int64_t rows, int64_t cols, const void *a, int64_t lda, const void *x, void *y);

int dg_blas_is_open(void);

/* c = op(a) @ op(b) on all threads with our own float32 and float64 kernels. Returns 0 if BLAS is preferable or memory is short;
 * the epilogue has not run then. c starts at element `at` of the epilogue's range. See gemm.c. */
int dg_gemm_tiled(int type, int ta, int tb, int64_t m, int64_t n, int64_t k, const void *a, int64_t lda, const void *b, int64_t ldb,
                  void *c, int64_t ldc, const dg_epilogue *e, int64_t at);

/* dg_gemm_tiled with one operand packed in advance; same bits. _packed_bytes: size of the packed operand, 0 if packing is
 * impossible or does not pay. _pack: packs `lines` rows of a or columns of b. _packed: the GEMM; returns 0 if memory is short.
 * a can be packed only if it is not transposed. */
enum { DG_LEFT = 1, DG_RIGHT = 2 };
int64_t dg_gemm_packed_bytes(int type, int side, int64_t m, int64_t n, int64_t k);
void dg_gemm_pack(int type, int side, int transposed, int64_t lines, int64_t k, const void *x, int64_t ld, void *out);
int dg_gemm_packed(int type, int side, int ta, int tb, int64_t m, int64_t n, int64_t k, const void *a, int64_t lda, const void *b,
                   int64_t ldb, void *c, int64_t ldc, const dg_epilogue *e);

/* c = a @ op(b) on one thread for at most DG_THIN rows of a; returns 0 if there is no such kernel. The summation order differs from
 * that of dg_gemm_tiled. */
#define DG_THIN 4
int dg_gemm_thin(int type, int tb, int64_t m, int64_t n, int64_t k, const void *a, int64_t lda, const void *b, int64_t ldb, void *c,
                 int64_t ldc);

/* c = op(a) @ b where b[i][j] = x[row[i] + column[j]]: implicit im2col. side: DG_LEFT if a was packed, else 0. Returns 0 if memory
 * is short. */
int dg_gemm_gathered(int type, int side, int ta, int64_t m, int64_t n, int64_t k, const void *a, int64_t lda, const void *x,
                     const int32_t *row, const int32_t *column, void *c, int64_t ldc, const dg_epilogue *e);

/* Building blocks for callers that pack both operands themselves, float32 and float64; available if dg_gemm_lanes is not 0. Rows are
 * packed in panels of at most dg_gemm_height rows, [depth][row]; panel p of n starts at row rows*p/n. Columns are packed in strips of
 * two vectors, [depth][column]; the last strip has one vector if that suffices. dg_gemm_block computes c (+)= a @ b on this thread
 * and prefetches `bytes` at `next`. */
int64_t dg_gemm_lanes(int type);
int64_t dg_gemm_height(int type);
void dg_gemm_block(int type, int64_t rows, int64_t columns, int64_t depth, const void *a, const void *b, void *c, int64_t ldc, int add,
                   const void *next, int64_t bytes);

/* Matrix transposition: c[j][i] = x[i][j]; available if dg_gemm_lanes is not 0. */
void dg_gemm_transpose(int type, void *c, int64_t ldc, const void *x, int64_t ldx, int64_t rows, int64_t columns);

#endif
