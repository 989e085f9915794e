/* What every kernel source includes. */
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

/* What kernels return. */
enum { DG_OK = 0, DG_NO_MEMORY = 1, DG_INDEX = 2, DG_NO_KERNEL = 3, DG_PYTHON = 4, DG_WRONG_INDEX = 16 };

/* n, which is no more than that: the compiler need not warn of what more would do. */
#define DG_AT_MOST(n, most) ({ size_t n_ = (n); if (n_ > (most)) __builtin_unreachable(); n_; })

/* Less than 64 bytes, a multiple of 4: two copies of half of that or more, which may overlap; without a call or a loop. */
static inline void dg_copy_few(void *out, const void *x, size_t bytes) {
    char *to = out;
    const char *from = x;
#define DG_TWICE(N)                                                                                                   \
    if (bytes >= N) { /* vectors: arrays would go through memory */                                                   \
        typedef char some __attribute__((vector_size(N), aligned(1), may_alias));                                     \
        some a = *(const some *)from, b = *(const some *)(from + bytes - N);                                          \
        *(some *)to = a, *(some *)(to + bytes - N) = b;                                                               \
        return;                                                                                                       \
    }
    DG_TWICE(32) DG_TWICE(16) DG_TWICE(8) DG_TWICE(4)
#undef DG_TWICE
}

/* What the kernel that runs after this one reads, and did not change: a kernel may fetch it into the cache of each thread meanwhile. Set by program.c,
 * for kernels that the same thread calls; it is only a hint. */
typedef struct {
    const char *at;
    int64_t bytes;
} dg_coming;
extern _Thread_local dg_coming dg_next_constants;

/* Elements at .. at + count of a product are there. */
static inline void dg_then(const dg_epilogue *e, int64_t at, int64_t count) {
    if (e) e->f(e->args, at, at + count);
}

/* Rows of `columns` elements, `ld` apart, are there. */
static inline void dg_then_rows(const dg_epilogue *e, int64_t at, int64_t rows, int64_t columns, int64_t ld) {
    if (!e) return;
    if (columns == ld) e->f(e->args, at, at + rows * columns);
    else
        for (int64_t r = 0; r < rows; r++, at += ld) e->f(e->args, at, at + columns);
}

#endif
