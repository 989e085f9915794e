/* Common definitions, included by every kernel source. */
#ifndef DG_COMMON_H
#define DG_COMMON_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "native.h"
#include "pool.h"

#define DG_MAX_DIMS 16

#define DG_MIN(a, b) ((a) < (b) ? (a) : (b))
#define DG_MAX(a, b) ((a) > (b) ? (a) : (b))

/* Codes of element types: the order of duograph.dtype.ALL. */
enum {
    DG_BOOL, DG_I8, DG_I16, DG_I32, DG_I64, DG_U8, DG_U16, DG_U32, DG_U64,
    DG_F16, DG_BF16, DG_F32, DG_F64, DG_C64, DG_C128, DG_TYPES
};

/* Return codes of kernels. */
enum { DG_OK = 0, DG_NO_MEMORY = 1, DG_INDEX = 2, DG_NO_KERNEL = 3, DG_PYTHON = 4, DG_STOPPED = 5, DG_WRONG_INDEX = 16 };

/* Returns n and tells the compiler that n <= most, which silences its warnings about larger sizes. */
#define DG_AT_MOST(n, most) ({ size_t n_ = (n); if (n_ > (most)) __builtin_unreachable(); n_; })

/* Copies fewer than 64 bytes, a multiple of 4, as two possibly overlapping vector copies, without a call or a loop. */
static inline void dg_copy_few(void *out, const void *x, size_t bytes) {
    char *to = out;
    const char *from = x;
#define DG_TWICE(N)                                                                                                   \
    if (bytes >= N) { /* vector types stay in registers; arrays would not */                                                   \
        typedef char some __attribute__((vector_size(N), aligned(1), may_alias));                                     \
        some a = *(const some *)from, b = *(const some *)(from + bytes - N);                                          \
        *(some *)to = a, *(some *)(to + bytes - N) = b;                                                               \
        return;                                                                                                       \
    }
    DG_TWICE(32) DG_TWICE(16) DG_TWICE(8) DG_TWICE(4)
#undef DG_TWICE
}

/* Prefetch hint: a constant operand of the next kernel of a program, which the running kernel may fetch into the cache of each
 * thread. program.c sets it for kernels that the same thread calls. */
typedef struct {
    const char *at;
    int64_t bytes;
} dg_prefetch_hint;
extern _Thread_local dg_prefetch_hint dg_next_constant;

/* Runs the epilogue on elements at .. at + count, which are complete. */
static inline void dg_run_epilogue(const dg_epilogue *e, int64_t at, int64_t count) {
    if (e) e->f(e->args, at, at + count);
}

/* Runs the epilogue on complete rows of `columns` elements with leading dimension `ld`. */
static inline void dg_run_epilogue_rows(const dg_epilogue *e, int64_t at, int64_t rows, int64_t columns, int64_t ld) {
    if (!e) return;
    if (columns == ld) e->f(e->args, at, at + rows * columns);
    else
        for (int64_t r = 0; r < rows; r++, at += ld) e->f(e->args, at, at + columns);
}

#endif
