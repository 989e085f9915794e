/* What is used of cublasLt.h, cublas_api.h and library_types.h, for cffi: a test compares it with the headers. Handles and
 * descriptors are pointers to what only the library knows. */

typedef struct { uint64_t data[8]; } cublasLtMatmulAlgo_t;
typedef struct {
    cublasLtMatmulAlgo_t algo; size_t workspaceSize; int state; float wavesCount; int reserved[4];
} cublasLtMatmulHeuristicResult_t;

enum { CUDA_R_32F = 0, CUDA_R_64F = 1, CUDA_R_16F = 2, CUDA_R_16BF = 14 };
enum { CUBLAS_COMPUTE_32F = 68, CUBLAS_COMPUTE_64F = 70, CUBLAS_COMPUTE_32F_FAST_TF32 = 77 };
enum { CUBLAS_OP_T = 1 };
enum {
    CUBLASLT_MATMUL_DESC_TRANSA = 3, CUBLASLT_MATMUL_DESC_TRANSB = 4, CUBLASLT_MATMUL_DESC_EPILOGUE = 7,
    CUBLASLT_MATMUL_DESC_BIAS_POINTER = 8, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER = 11,
    CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD = 12
};
enum {
    CUBLASLT_EPILOGUE_BIAS = 4, CUBLASLT_EPILOGUE_GELU_BIAS = 36, CUBLASLT_EPILOGUE_GELU_AUX_BIAS = 164,
    CUBLASLT_EPILOGUE_DGELU = 192
};
enum { CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT = 5, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET = 6 };
enum { CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES = 1, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK = 3 };
enum { CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE = 2 };

size_t cublasLtGetVersion(void);
const char *cublasLtGetStatusName(int status);
int cublasLtCreate(void **handle);
int cublasLtMatmulDescCreate(void **desc, int compute, int scale);
int cublasLtMatmulDescSetAttribute(void *desc, int attribute, const void *value, size_t bytes);
int cublasLtMatrixLayoutCreate(void **layout, int type, uint64_t rows, uint64_t cols, int64_t ld);
int cublasLtMatrixLayoutSetAttribute(void *layout, int attribute, const void *value, size_t bytes);
int cublasLtMatmulPreferenceCreate(void **preference);
int cublasLtMatmulPreferenceSetAttribute(void *preference, int attribute, const void *value, size_t bytes);
int cublasLtMatmulAlgoGetHeuristic(void *handle, void *desc, void *a, void *b, void *c, void *d, void *preference,
                                   int wanted, cublasLtMatmulHeuristicResult_t *results, int *found);
int cublasLtMatmul(void *handle, void *desc, const void *alpha, const void *a, void *a_layout, const void *b,
                   void *b_layout, const void *beta, const void *c, void *c_layout, void *d, void *d_layout,
                   const cublasLtMatmulAlgo_t *algo, void *workspace, size_t bytes, void *stream);
