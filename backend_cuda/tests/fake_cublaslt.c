/* A cuBLASLt that multiplies on the host, for tests: matrices in Fortran order, as the library's manual has them.
 *
 * It refuses what the library would refuse, and computes from nothing but what it was told. What the backend passes is
 * therefore seen twice: in the statuses, and in the numbers. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { OK, NOT_INITIALIZED = 1, INVALID = 7, EXECUTION_FAILED = 13, NOT_SUPPORTED = 15 };
enum { R_32F = 0, R_64F = 1, R_16F = 2, R_16BF = 14 };
enum { WORKSPACE = 640 };

typedef struct { int magic, compute, scale, turned[2], epilogue; uint64_t bias, aux; int64_t aux_ld; } desc;
typedef struct { int magic, type; uint64_t rows, cols; int64_t ld; int32_t count; int64_t step; } layout;
typedef struct { int magic; size_t workspace; uint32_t schemes; } preference;
typedef struct { uint64_t data[8]; } algo;
typedef struct { algo algo; size_t workspace; int state; float waves; int reserved[4]; } result;

enum { BIAS = 4, GELU_BIAS = 36, GELU_AUX_BIAS = 164, DGELU = 192 };

static int calls, heuristics, last_compute, last_epilogue, last_algorithm;
int fake_epilogue(void) { return last_epilogue; }
int fake_algorithm(void) { return last_algorithm; }
int fake_calls(void) { return calls; }
int fake_heuristics(void) { return heuristics; }
int fake_compute(void) { return last_compute; }

size_t cublasLtGetVersion(void) {
    const char *said = getenv("FAKE_CUBLASLT_VERSION");
    return said ? (size_t)atol(said) : 131000;
}
const char *cublasLtGetStatusName(int status) {
    return status == NOT_INITIALIZED    ? "CUBLAS_STATUS_NOT_INITIALIZED"
           : status == INVALID          ? "CUBLAS_STATUS_INVALID_VALUE"
           : status == NOT_SUPPORTED    ? "CUBLAS_STATUS_NOT_SUPPORTED"
           : status == EXECUTION_FAILED ? "CUBLAS_STATUS_EXECUTION_FAILED"
                                        : "CUBLAS_STATUS_SUCCESS";
}
int cublasLtCreate(void **handle) {
    if (getenv("FAKE_CUBLASLT_DOES_NOT_START")) return NOT_INITIALIZED;
    *handle = (void *)0x17;
    return OK;
}

int cublasLtMatmulDescCreate(void **made, int compute, int scale) {
    /* only these pairs exist for real matrices */
    if (!((compute == 68 || compute == 77) && scale == R_32F) && !(compute == 70 && scale == R_64F)) return INVALID;
    desc *d = calloc(1, sizeof *d);
    *d = (desc){.magic = 1, .compute = compute, .scale = scale, .epilogue = 1};
    *made = d;
    return OK;
}
int cublasLtMatmulDescSetAttribute(void *object, int attribute, const void *value, size_t bytes) {
    desc *d = object;
    if (d->magic != 1) return INVALID;
    if ((attribute == 3 || attribute == 4) && bytes == 4) d->turned[attribute - 3] = *(const int32_t *)value;
    else if (attribute == 7 && bytes == 4) d->epilogue = *(const int32_t *)value;
    else if (attribute == 8 && bytes == 8) d->bias = *(const uint64_t *)value;
    else if (attribute == 11 && bytes == 8) d->aux = *(const uint64_t *)value;
    else if (attribute == 12 && bytes == 8) d->aux_ld = *(const int64_t *)value;
    else return INVALID;
    return OK;
}
int cublasLtMatrixLayoutCreate(void **made, int type, uint64_t rows, uint64_t cols, int64_t ld) {
    if ((uint64_t)ld < rows || !rows || !cols) return INVALID;
    layout *l = calloc(1, sizeof *l);
    *l = (layout){2, type, rows, cols, ld, 1, 0};
    *made = l;
    return OK;
}
int cublasLtMatrixLayoutSetAttribute(void *object, int attribute, const void *value, size_t bytes) {
    layout *l = object;
    if (l->magic != 2) return INVALID;
    if (attribute == 5 && bytes == 4) l->count = *(const int32_t *)value;
    else if (attribute == 6 && bytes == 8) l->step = *(const int64_t *)value;
    else return INVALID;
    return OK;
}
int cublasLtMatmulPreferenceCreate(void **made) {
    preference *p = calloc(1, sizeof *p);
    *p = (preference){3, 0, 7};
    *made = p;
    return OK;
}
int cublasLtMatmulPreferenceSetAttribute(void *object, int attribute, const void *value, size_t bytes) {
    preference *p = object;
    if (p->magic != 3) return INVALID;
    if (attribute == 1 && bytes == sizeof(size_t)) p->workspace = *(const size_t *)value;
    else if (attribute == 3 && bytes == 4) p->schemes = *(const uint32_t *)value;
    else return INVALID;
    return OK;
}

/* whether three layouts are those of one product */
static int fits(const desc *d, const layout *a, const layout *b, const layout *c) {
    const uint64_t m = d->turned[0] ? a->cols : a->rows, k = d->turned[0] ? a->rows : a->cols;
    const uint64_t n = d->turned[1] ? b->rows : b->cols, other = d->turned[1] ? b->cols : b->rows;
    const int wide = d->compute == 70;
    return d->magic == 1 && a->magic == 2 && b->magic == 2 && c->magic == 2 && k == other && m == c->rows &&
           n == c->cols && a->type == b->type && (a->type == c->type || (c->type == R_32F && a->type > R_64F)) && (a->type == R_64F) == wide &&
           (d->compute != 77 || a->type == R_32F) && a->count == c->count && b->count == c->count;
}
/* whether the pointers and the pitch that an epilogue needs are set, and aligned as the manual wants them */
static int ends(const desc *d, const layout *c) {
    const int adds = d->epilogue & 4, saves = d->epilogue & 128;
    if (d->epilogue == 1) return 1;
    if (d->epilogue != BIAS && d->epilogue != GELU_BIAS && d->epilogue != GELU_AUX_BIAS && d->epilogue != DGELU) return 0;
    return c->count == 1 && (!adds || (d->bias && d->bias % 16 == 0)) &&
           (!saves || (d->aux && d->aux % 16 == 0 && d->aux_ld >= (int64_t)c->rows && d->aux_ld % 8 == 0));
}
int cublasLtMatmulAlgoGetHeuristic(void *handle, void *d, void *a, void *b, void *c, void *c2, void *p, int wanted,
                                   result *found, int *count) {
    heuristics++;
    *count = 0;
    if (handle != (void *)0x17 || wanted < 1 || c != c2 || ((preference *)p)->magic != 3) return INVALID;
    if (!fits(d, a, b, c) || !ends(d, c)) return INVALID;
    if (((preference *)p)->schemes != 2 || ((preference *)p)->workspace < WORKSPACE) return INVALID;
    if (((layout *)c)->cols == 13) return NOT_SUPPORTED; /* 13 rows: for a test of what has no algorithm */
    *count = wanted < 3 ? wanted : 3; /* it proposes three, if so many are wanted */
    memset(found, 0, (size_t)*count * sizeof *found);
    for (int k = 0; k < *count; k++) {
        found[k].algo.data[5] = 0x2a + (uint64_t)k;
        found[k].workspace = WORKSPACE;
    }
    return OK;
}

static float from_half(uint16_t h) {
    const int e = h >> 10 & 31, m = h & 1023;
    float v = e == 31 ? (m ? 0.0f / 0.0f : 1.0f / 0.0f) : e ? (1024 + m) * 1.0f : m * 1.0f;
    for (int k = e ? e : 1; k < 25 && e < 31; k++) v *= 0.5f;
    for (int k = 25; k < e && e < 31; k++) v *= 2.0f;
    return h >> 15 ? -v : v;
}
static double get(const void *from, int type, int64_t at) {
    if (type == R_32F) return ((const float *)from)[at];
    if (type == R_64F) return ((const double *)from)[at];
    const uint16_t bits = ((const uint16_t *)from)[at];
    if (type == R_16F) return from_half(bits);
    const uint32_t wide = (uint32_t)bits << 16;
    float v;
    memcpy(&v, &wide, 4);
    return v;
}
/* to nearest, ties to even: by search among the finite values for float16, which is slow and plainly right */
static uint16_t to_half(float v) {
    const float size = v < 0 ? -v : v;
    uint16_t low = 0, high = 0x7c00;
    while (high - low > 1) {
        const uint16_t middle = (uint16_t)((low + high) / 2);
        if (from_half(middle) <= size) low = middle;
        else high = middle;
    }
    const float below = size - from_half(low), above = (high == 0x7c00 ? 65536.0f : from_half(high)) - size;
    if (above < below || (above == below && (low & 1))) low = high;
    return low | (v < 0 ? 0x8000 : 0);
}
static void put(void *to, int type, int64_t at, double v) {
    if (type == R_32F) ((float *)to)[at] = (float)v;
    else if (type == R_64F) ((double *)to)[at] = v;
    else if (type == R_16F) ((uint16_t *)to)[at] = to_half((float)v);
    else {
        const float narrow = (float)v;
        uint32_t bits;
        memcpy(&bits, &narrow, 4);
        ((uint16_t *)to)[at] = (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
    }
}
static double scalar(const desc *d, const void *at) { return d->scale == R_64F ? *(const double *)at : *(const float *)at; }

/* gelu with tanh, or its derivative */
static double gelu(double x, int derivative) {
    const double a = 0.7978845608028654, b = 0.044715, t = tanh(a * (x + b * x * x * x));
    return derivative ? 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * a * (1 + 3 * b * x * x) : 0.5 * x * (1 + t);
}

int cublasLtMatmul(void *handle, void *desc_, const void *alpha, const void *a, void *a_, const void *b, void *b_,
                   const void *beta, const void *c, void *c_, void *out, void *out_, const algo *chosen, void *workspace,
                   size_t bytes, void *stream) {
    const desc *d = desc_;
    const layout *la = a_, *lb = b_, *lc = c_;
    if (handle != (void *)0x17 || c != out || c_ != out_ || stream != (void *)0x50 || chosen->data[5] - 0x2a > 2) return INVALID;
    if (!fits(d, la, lb, lc) || !ends(d, lc) || bytes < WORKSPACE || !workspace) return INVALID;
    if (((uintptr_t)a | (uintptr_t)b | (uintptr_t)c | (uintptr_t)workspace) % 256) return INVALID; /* as was promised */
    if (lc->rows == 17) return EXECUTION_FAILED; /* 17 columns: for a test of what fails when it runs */
    memset(workspace, 0x5a, bytes);
    calls++;
    last_compute = d->compute;
    last_epilogue = d->epilogue;
    last_algorithm = (int)(chosen->data[5] - 0x2a);
    const uint64_t depth = d->turned[0] ? la->rows : la->cols;
    for (int32_t q = 0; q < lc->count; q++)
        for (uint64_t j = 0; j < lc->cols; j++)
            for (uint64_t i = 0; i < lc->rows; i++) {
                double sum = 0;
                for (uint64_t k = 0; k < depth; k++) {
                    const int64_t in_a = d->turned[0] ? (int64_t)(i * la->ld + k) : (int64_t)(k * la->ld + i);
                    const int64_t in_b = d->turned[1] ? (int64_t)(k * lb->ld + j) : (int64_t)(j * lb->ld + k);
                    sum += get(a, la->type, q * la->step + in_a) * get(b, lb->type, q * lb->step + in_b);
                }
                const int64_t at = q * lc->step + (int64_t)(j * lc->ld + i);
                const double before = scalar(d, beta) ? scalar(d, beta) * get(out, lc->type, at) : 0;
                const int64_t beside = (int64_t)(j * d->aux_ld + i);
                double v = scalar(d, alpha) * sum + before;
                if (d->epilogue & 4) v += get((const void *)d->bias, lc->type, i);
                if (d->epilogue == GELU_AUX_BIAS) put((void *)d->aux, lc->type, beside, v);
                if (d->epilogue & 32) v = gelu(v, 0);
                if (d->epilogue == DGELU) v *= gelu(get((const void *)d->aux, lc->type, beside), 1);
                put(out, lc->type, at, v);
            }
    return OK;
}
