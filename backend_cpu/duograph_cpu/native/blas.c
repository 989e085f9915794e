/* OpenBLAS, loaded at run time, with our own loops for types and sizes that it does not support. */
#include "blas.h"

#include <complex.h>
#include <dlfcn.h>
#include <stdio.h>

#include "common.h"

#define ISA_SOURCE "gemm_loops.inc"
#include "isa.h"

enum { ROW_MAJOR = 101, NO_TRANS = 111, TRANS = 112 };

typedef void gemm_f32(int, int, int, int, int, int, float, const float *, int, const float *, int, float, float *, int);
typedef void gemm_f64(int, int, int, int, int, int, double, const double *, int, const double *, int, double, double *, int);
typedef void gemm_complex(int, int, int, int, int, int, const void *, const void *, int, const void *, int, const void *,
                          void *, int);
typedef void gemv_f32(int, int, int, int, float, const float *, int, const float *, int, float, float *, int);
typedef void gemv_f64(int, int, int, int, double, const double *, int, const double *, int, double, double *, int);

static struct {
    gemm_f32 *sgemm;
    gemm_f64 *dgemm;
    gemm_complex *cgemm, *zgemm;
    gemv_f32 *sgemv;
    gemv_f64 *dgemv;
} blas;

const char *dg_blas_open(const char *path) {
    if (blas.sgemm) return 0;
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) return dlerror();
    void (*threads)(int) = (void (*)(int))dlsym(library, "scipy_openblas_set_num_threads");
    if (threads) threads(1); /* our own thread pool splits the work */
    blas.dgemm = (gemm_f64 *)dlsym(library, "scipy_cblas_dgemm");
    blas.cgemm = (gemm_complex *)dlsym(library, "scipy_cblas_cgemm");
    blas.zgemm = (gemm_complex *)dlsym(library, "scipy_cblas_zgemm");
    blas.sgemv = (gemv_f32 *)dlsym(library, "scipy_cblas_sgemv");
    blas.dgemv = (gemv_f64 *)dlsym(library, "scipy_cblas_dgemv");
    blas.sgemm = (gemm_f32 *)dlsym(library, "scipy_cblas_sgemm");
    return blas.sgemm && blas.dgemm && blas.cgemm && blas.zgemm && blas.sgemv && blas.dgemv ? 0 : "a routine is missing";
}

int dg_blas_is_open(void) { return blas.sgemm != 0; }

static int fits(int64_t a, int64_t b, int64_t c) { return a <= INT32_MAX && b <= INT32_MAX && c <= INT32_MAX; }

static void loops(int type, int ta, int tb, int64_t m, int64_t n, int64_t k, const void *a, int64_t lda, const void *b,
                  int64_t ldb, int add, void *c, int64_t ldc) {
    static const int64_t sizes[DG_TYPES] = {1, 1, 2, 4, 8, 1, 2, 4, 8, 2, 2, 4, 8, 8, 16};
    int64_t size = sizes[type], ai = ta ? 1 : lda, ak = ta ? lda : 1;
    void *copy = 0;
    if (tb) { /* the loops need dense rows of b */
        dg_nd to = {.ndim = 2, .itemsize = size, .shape = {k, n}, .dst = {n, 1}, .src = {1, ldb}};
        copy = dg_alloc((size_t)(k * n * size));
        if (copy) {
            dg_strided_copy(&to, copy, b);
            b = copy;
            ldb = n;
        }
    }
    if (!add)
        for (int64_t i = 0; i < m; i++) memset((char *)c + i * ldc * size, 0, (size_t)(n * size));
    switch (type) {
#define CASE(PICKED, T) PICKED(m, n, k, a, ai, ak, b, ldb, c, ldc); break;
    case DG_BOOL: case DG_I8: case DG_U8: CASE(ISA_PICK(gemm_u8), uint8_t)
    case DG_I16: case DG_U16: CASE(ISA_PICK(gemm_u16), uint16_t)
    case DG_I32: case DG_U32: CASE(ISA_PICK(gemm_u32), uint32_t)
    case DG_I64: case DG_U64: CASE(ISA_PICK(gemm_u64), uint64_t)
    case DG_F32: CASE(ISA_PICK(gemm_f32), float)
    case DG_F64: CASE(ISA_PICK(gemm_f64), double)
    case DG_C64: CASE(gemm_c64_base, float _Complex)
    case DG_C128: CASE(gemm_c128_base, double _Complex)
#undef CASE
    }
    dg_free(copy);
}

void dg_gemm(int type, int ta, int tb, int64_t m, int64_t n, int64_t k, const void *a, int64_t lda, const void *b,
             int64_t ldb, int add, void *c, int64_t ldc) {
    if (m == 0 || n == 0) return;
    if (k == 0 || !blas.sgemm || !fits(m, n, k) || !fits(lda, ldb, ldc) || type < DG_F32) {
        loops(type, ta, tb, m, n, k, a, lda, b, ldb, add, c, ldc);
        return;
    }
    int A = ta ? TRANS : NO_TRANS, B = tb ? TRANS : NO_TRANS;
    float _Complex one_c = 1, beta_c = (float)add;
    double _Complex one_z = 1, beta_z = add;
    switch (type) {
#define DIMS ROW_MAJOR, A, B, (int)m, (int)n, (int)k
    case DG_F32: blas.sgemm(DIMS, 1, a, (int)lda, b, (int)ldb, (float)add, c, (int)ldc); break;
    case DG_F64: blas.dgemm(DIMS, 1, a, (int)lda, b, (int)ldb, add, c, (int)ldc); break;
    case DG_C64: blas.cgemm(DIMS, &one_c, a, (int)lda, b, (int)ldb, &beta_c, c, (int)ldc); break;
    case DG_C128: blas.zgemm(DIMS, &one_z, a, (int)lda, b, (int)ldb, &beta_z, c, (int)ldc); break;
#undef DIMS
    }
}

int dg_gemv(int type, int transpose, int64_t rows, int64_t cols, const void *a, int64_t lda, const void *x, void *y) {
    if (!blas.sgemm || !fits(rows, cols, lda) || rows == 0 || cols == 0) return 0;
    int t = transpose ? TRANS : NO_TRANS;
    if (type == DG_F32)
        blas.sgemv(ROW_MAJOR, t, (int)rows, (int)cols, 1, a, (int)lda, x, 1, 0, y, 1);
    else if (type == DG_F64)
        blas.dgemv(ROW_MAJOR, t, (int)rows, (int)cols, 1, a, (int)lda, x, 1, 0, y, 1);
    else
        return 0;
    return 1;
}
