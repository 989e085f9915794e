/* GEMM of float32 and float64 matrices on processors with AVX-512 or AVX2, blocked as in BLIS.
 *
 * Blocks of b are packed in strips of columns and stay in the L2 cache; panels of rows of a are packed into the L1 cache, where they
 * meet all strips of the block. A register tile runs over both. There is a tile for every height up to the largest, and panels differ
 * by at most one row, so matrices with few rows waste no lanes.
 * Each element of c is summed over blocks of k in order, and within a block in order. Its bits do not depend on the split of rows and
 * columns, so the split may depend on the number of threads.
 *
 * An operand that is the same in many calls can be packed in advance as a whole; its blocks are then never copied. See README.md. */
#include "blas.h"
#include "common.h"
#include "tile.h"

#include <unistd.h>
#if defined(__x86_64__) || defined(__i386__)
#include <immintrin.h>
#endif

#define DEPTH 256   /* k extent of a block: a panel of a and a strip of b fit into the L1 cache */
#define COLUMN_BYTES 2048 /* bytes of a row of a block of b, for an L2 cache of 1 MiB: the block fills half of it */
#define FEW_ROWS 255 /* up to this many rows, blocks of a packed b are smaller, and the next one is prefetched */
#define FEW_ROWS_COLUMNS 256
#define SOME_PANELS 4 /* panels of a transposed a that are packed together, so that reads exceed a cache line */

/* Shuffle masks of one transposition step on two vectors of N lanes, for its lower and upper row; see SWAP_BLOCKS. */
#define LOWER_1_4 0, 4, 2, 6
#define UPPER_1_4 1, 5, 3, 7
#define LOWER_2_4 0, 1, 4, 5
#define UPPER_2_4 2, 3, 6, 7
#define LOWER_1_8 0, 8, 2, 10, 4, 12, 6, 14
#define UPPER_1_8 1, 9, 3, 11, 5, 13, 7, 15
#define LOWER_2_8 0, 1, 8, 9, 4, 5, 12, 13
#define UPPER_2_8 2, 3, 10, 11, 6, 7, 14, 15
#define LOWER_4_8 0, 1, 2, 3, 8, 9, 10, 11
#define UPPER_4_8 4, 5, 6, 7, 12, 13, 14, 15
#define LOWER_1_16 0, 16, 2, 18, 4, 20, 6, 22, 8, 24, 10, 26, 12, 28, 14, 30
#define UPPER_1_16 1, 17, 3, 19, 5, 21, 7, 23, 9, 25, 11, 27, 13, 29, 15, 31
#define LOWER_2_16 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29
#define UPPER_2_16 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31
#define LOWER_4_16 0, 1, 2, 3, 16, 17, 18, 19, 8, 9, 10, 11, 24, 25, 26, 27
#define UPPER_4_16 4, 5, 6, 7, 20, 21, 22, 23, 12, 13, 14, 15, 28, 29, 30, 31
#define LOWER_8_16 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23
#define UPPER_8_16 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31

/* Memory to prefetch: `rows` rows of `lines` cache lines, ld bytes apart. */
typedef struct {
    const char *at;
    int64_t ld, rows, lines;
} Fetch;

/* Unpacked rows of op(a) of one block; next: what to prefetch meanwhile. */
typedef struct {
    const void *at;
    int64_t ld;
    int transposed;
    Fetch next;
} Rows;

/* Parts begin .. end of n. */
static inline Fetch slice(const Fetch *f, int64_t begin, int64_t end, int64_t n) {
    int64_t first = f->rows * begin / n;
    return (Fetch){f->at + first * f->ld, f->ld, f->rows * end / n - first, f->lines};
}

/* A Fetch of `rows` rows of `bytes` bytes. */
static inline Fetch fetch_lines(const void *at, int64_t ld, int64_t bytes, int64_t rows) { return (Fetch){at, ld, rows, (bytes + 63) / 64}; }

#define ISA_SOURCE "gemm.inc"
#include "isa.h"

#ifdef DG_X86

typedef struct {
    int64_t size, height, lanes, pitch; /* element size in bytes; rows of a tile; elements of a vector; leading dimension of packed rows of a */
    void (*pack_b)(void *, int, int, int, const void *, int64_t, int64_t, int64_t);
    void (*pack_gathered)(void *, int, const void *, const int32_t *, const int32_t *, int64_t, int64_t);
    void (*block)(int64_t, int64_t, int64_t, int, const void *, const Rows *, void *, const void *, int64_t, void *, int64_t, int, const Fetch *);
    void (*transpose)(void *, int64_t, const void *, int64_t, int64_t, int64_t);
    void (*thin)(int, int64_t, int64_t, int64_t, const void *, int64_t, const void *, int64_t, void *, int64_t);
} Kernels;

static const Kernels kernels[2][2] = {
    {{4, 6, 8, DEPTH + 8, pack_b_f32_avx2, pack_gathered_f32_avx2, block_f32_avx2, transpose_matrix_f32_avx2, thin_f32_avx2}, {8, 6, 4, DEPTH + 4, pack_b_f64_avx2, pack_gathered_f64_avx2, block_f64_avx2, transpose_matrix_f64_avx2, thin_f64_avx2}},
    {{4, 14, 16, DEPTH + 16, pack_b_f32_avx512, pack_gathered_f32_avx512, block_f32_avx512, transpose_matrix_f32_avx512, thin_f32_avx512},
     {8, 14, 8, DEPTH + 8, pack_b_f64_avx512, pack_gathered_f64_avx512, block_f64_avx512, transpose_matrix_f64_avx512, thin_f64_avx512}},
};

typedef struct {
    const Kernels *k;
    int ta, tb, c_transposed; /* c is written transposed */
    int64_t m, n, depth, lda, ldb, ldc, rows, row_parts, columns, column_parts, deep; /* deep: k extent of a block */
    const char *a, *b;
    int packed; /* DG_LEFT, DG_RIGHT: a or b was packed by dg_gemm_pack */
    const int32_t *b_row, *b_column; /* implicit im2col: element (i, j) of b is at b_row[i] + b_column[j] */
    char *c, *shared_b;
    const dg_epilogue *e;
    int64_t at; /* offset of c in the epilogue's range */
    int *failed;
} Job;

static int64_t up(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

/* The part size for n in equal parts of at most `most`, rounded up to a multiple of `unit`. */
static int64_t part(int64_t n, int64_t most, int64_t unit) {
    int64_t parts = (n + most - 1) / most;
    return up((n + parts - 1) / parts, unit);
}

/* Columns of a block of b. The block fills half of the L2 cache, because rows of a are packed again for each block. */
static int64_t block_columns(const Kernels *k) {
    static int64_t known;
    if (known == 0) {
        long bytes = 0;
#ifdef _SC_LEVEL2_CACHE_SIZE
        bytes = sysconf(_SC_LEVEL2_CACHE_SIZE);
#endif
        known = bytes <= 0 ? COLUMN_BYTES : DG_MAX(COLUMN_BYTES / 2, DG_MIN(bytes / 2 / DEPTH, 2 * COLUMN_BYTES));
    }
    return known / k->size;
}

/* The k extent of blocks: equal parts of at most DEPTH. */
static int64_t deep_of(int64_t depth) {
    int64_t blocks = (depth + DEPTH - 1) / DEPTH;
    return (depth + blocks - 1) / blocks;
}

/* Address of rows of a that were packed in advance, `pitch` apart: [block of k][row]. */
static const char *row_at(const Job *j, int64_t row, int64_t k) {
    return j->a + (k / j->deep * j->m + row) * j->k->pitch * j->k->size;
}

static const char *a_at(const Job *j, int64_t row, int64_t k) { return j->a + (j->ta ? k * j->lda + row : row * j->lda + k) * j->k->size; }
static const char *b_at(const Job *j, int64_t k, int64_t column) {
    return j->b + (j->tb ? column * j->ldb + k : k * j->ldb + column) * j->k->size;
}

/* The first column of a part; parts differ by at most one strip. */
static int64_t column_of(const Job *j, int64_t part_) {
    int64_t strip = 2 * j->k->lanes, strips = (j->n + strip - 1) / strip;
    return strips * part_ / j->column_parts * strip;
}

static char *packed_b(const Job *j, int64_t k, int64_t column, int64_t depth) {
    return j->shared_b + (k * up(j->n, 2 * j->k->lanes) + column * depth) * j->k->size;
}

static void pack_columns(const Job *j, char *out, int64_t k, int64_t column, int64_t columns, int64_t depth) {
    if (j->b_row) j->k->pack_gathered(out, j->ta, j->b, j->b_row + k, j->b_column + column, columns, depth);
    else j->k->pack_b(out, j->ta, j->shared_b != 0, j->tb, b_at(j, k, column), j->ldb, columns, depth);
}

/* A work unit is a strip of one block of k. */
static void share_b_task(void **args, int64_t begin, int64_t end) {
    const Job *j = args[0];
    int64_t strip = 2 * j->k->lanes, strips = (j->n + strip - 1) / strip;
    for (int64_t u = begin; u < end; u++) {
        int64_t k = u / strips * j->deep, depth = DG_MIN(j->deep, j->depth - k), column = u % strips * strip;
        pack_columns(j, packed_b(j, k, column, depth), k, column, DG_MIN(strip, j->n - column), depth);
    }
}

/* The block of b after block (k, column), as a Fetch that can be spread over many tiles; empty if it is not prefetched. */
static Fetch next_columns(const Job *j, int64_t k, int64_t column, int64_t columns, int64_t last_column) {
    int64_t depth = DG_MIN(j->deep, j->depth - k), size = j->k->size;
    if (k + depth < j->depth) k += depth;
    else k = 0, column += columns;
    if (column >= last_column || j->b_row || (j->tb && !(j->packed & DG_RIGHT))) return (Fetch){0};
    depth = DG_MIN(j->deep, j->depth - k);
    columns = DG_MIN(columns, last_column - column);
    if (!(j->packed & DG_RIGHT)) return fetch_lines(b_at(j, k, column), j->ldb * size, columns * size, depth);
    return (Fetch){packed_b(j, k, column, depth), 1024, columns * depth * size / 1024, 16};
}

static void unit_task(void **args, int64_t begin, int64_t end) {
    const Job *j = args[0];
    const Kernels *f = j->k;
    int64_t size = f->size, left = j->packed & DG_LEFT, right = j->packed & DG_RIGHT, most_rows = j->rows;
    int64_t most_columns = part(j->columns, right && j->rows <= FEW_ROWS ? FEW_ROWS_COLUMNS : block_columns(f), 2 * f->lanes);
    /* the epilogue reads its rows again, so they must still be in a near cache */
    if (j->e && !j->ta && j->deep == j->depth && !j->c_transposed) most_rows = DG_MIN(most_rows, 2 * f->height);
    int64_t room_rows = (j->ta ? SOME_PANELS : 1) * f->height, room_a = up(room_rows * f->pitch * size, 64);
    int64_t room_b = j->shared_b ? 0 : most_columns * j->deep * size, room_c = j->c_transposed ? j->rows * most_columns * size : 0;
    char *scratch = dg_alloc((size_t)(room_a + room_b + room_c));
    if (!scratch) {
        __atomic_store_n(j->failed, 1, __ATOMIC_RELAXED);
        return;
    }
    char *straight = scratch + room_a + room_b;
    for (int64_t u = begin; u < end; u++) { /* row parts outermost: each thread writes one contiguous part of c */
        int64_t row = u / j->column_parts * j->rows, last_row = DG_MIN(row + j->rows, j->m);
        int64_t column = column_of(j, u % j->column_parts), last_column = DG_MIN(column_of(j, u % j->column_parts + 1), j->n);
        for (int64_t c = column; c < last_column; c += most_columns) {
            int64_t nc = DG_MIN(most_columns, last_column - c);
            for (int64_t k = 0; k < j->depth; k += j->deep) {
                if ((k > 0 || c > column) && dg_stop()) goto stopped;
                int64_t depth = DG_MIN(j->deep, j->depth - k);
                char *b = j->shared_b ? packed_b(j, k, c, depth) : scratch + room_a;
                if (!j->shared_b) pack_columns(j, b, k, c, nc, depth);
                Fetch next_b = next_columns(j, k, c, nc, last_column); /* weights often come from memory and meet few columns */
                for (int64_t r = row; r < last_row; r += most_rows) {
                    int64_t nr = DG_MIN(most_rows, last_row - r), next_r = r + nr < last_row ? r + nr : row, next_k = r + nr < last_row ? k : k + depth;
                    Rows a = {a_at(j, r, k), j->lda, j->ta, {0}};
                    Fetch next = slice(&next_b, r - row, r + nr - row, last_row - row);
                    if (left && next_k < j->depth)
                        next = fetch_lines(row_at(j, next_r, next_k), f->pitch * size, DG_MIN(j->deep, j->depth - next_k) * size, DG_MIN(most_rows, last_row - next_r));
                    else if (next_k < j->depth) {
                        int64_t some = DG_MIN(room_rows, last_row - next_r), deep = DG_MIN(j->deep, j->depth - next_k);
                        a.next = fetch_lines(a_at(j, next_r, next_k), j->lda * size, (j->ta ? some : deep) * size, j->ta ? deep : some);
                    }
                    char *c_ = j->c_transposed ? straight + (r - row) * most_columns * size : j->c + (r * j->ldc + c) * size;
                    int64_t ldc = j->c_transposed ? most_columns : j->ldc;
                    int there = j->tb || j->b_row || right || r > row;
                    f->block(nr, nc, depth, j->ta, left ? row_at(j, r, k) : scratch, left ? 0 : &a, b, there ? 0 : b_at(j, k, c), j->ldb, c_, ldc, k > 0, &next);
                    if (k + depth < j->depth) continue;
                    if (j->c_transposed) {
                        f->transpose(j->c + (c * j->ldc + r) * size, j->ldc, c_, ldc, nr, nc);
                        dg_run_epilogue_rows(j->e, j->at + c * j->ldc + r, nc, nr, j->ldc);
                    } else {
                        dg_run_epilogue_rows(j->e, j->at + r * j->ldc + c, nr, nc, j->ldc);
                    }
                }
            }
        }
    }
stopped:
    dg_free(scratch);
}

/* Chooses the numbers of row and column parts: units of at least 2 Mflop or 256 KB of c, two per thread, with little repacking. */
static void split(Job *j) {
    double flops = 2.0 * (double)j->m * (double)j->n * (double)j->depth, bytes = (double)(j->m * j->n * j->k->size);
    int64_t units = (int64_t)DG_MIN(flops / 2e6 + bytes / 262144, 2.0 * dg_threads()), strip = 2 * j->k->lanes;
    double pack_a = j->ta ? 2 : 3, pack_b = j->b_row ? 8 : j->tb || j->packed & DG_RIGHT ? 3 : 2; /* cost per element; a packed operand is only read */
    j->row_parts = j->column_parts = 1;
    while (j->row_parts * j->column_parts < units) {
        double a = pack_a * (double)j->m * (double)j->column_parts, b = pack_b * (double)j->n * (double)j->row_parts;
        int rows_left = j->m / (j->row_parts * 2) >= 2 * j->k->height, columns_left = j->n / (j->column_parts * 2) >= strip;
        if (rows_left && (2 * b + a <= b + 2 * a || !columns_left)) j->row_parts *= 2;
        else if (columns_left) j->column_parts *= 2;
        else break;
    }
    j->rows = (j->m + j->row_parts - 1) / j->row_parts;
    j->row_parts = (j->m + j->rows - 1) / j->rows;
    int64_t strips = (j->n + strip - 1) / strip;
    j->column_parts = DG_MIN(j->column_parts, strips);
    j->columns = (strips + j->column_parts - 1) / j->column_parts * strip; /* at most */
}

static int tiled(Job *j) {
    int failed = 0;
    j->failed = &failed;
    j->deep = deep_of(j->depth);
    split(j);
    void *args[] = {j};
    int64_t depths = (j->depth + j->deep - 1) / j->deep;
    int right = j->packed & DG_RIGHT;
    j->shared_b = right ? (char *)j->b : 0;
    if (!right && j->row_parts > 1 && j->column_parts == 1 && (j->tb || j->b_row)) {
        int64_t strip = 2 * j->k->lanes, strips = (j->n + strip - 1) / strip;
        j->shared_b = dg_alloc((size_t)(strips * strip * j->depth * j->k->size));
        if (!j->shared_b) return 0;
        dg_parallel_for(share_b_task, args, depths * strips, 1 + 16384 / (strip * j->deep));
    }
    dg_parallel_chunks(unit_task, args, j->row_parts * j->column_parts);
    if (!right) dg_free(j->shared_b);
    return !failed;
}

/* The kernels of this processor and type; NULL if OpenBLAS is as fast (AVX2) or there are none. */
static const Kernels *kernels_for(int type) {
    int isa = dg_isa();
    return isa == 0 || (isa == 1 && dg_blas_is_open()) || (type != DG_F32 && type != DG_F64) ? 0 : &kernels[isa - 1][type == DG_F64];
}

int dg_gemm_tiled(int type, int ta, int tb, int64_t m, int64_t n, int64_t k, const void *a, int64_t lda, const void *b, int64_t ldb,
                  void *c, int64_t ldc, const dg_epilogue *e, int64_t at) {
    const Kernels *found = kernels_for(type);
    if (!found || m * n * k == 0) return 0;
    Job j = {.k = found, .ta = ta, .tb = tb, .m = m, .n = n, .depth = k, .lda = lda, .ldb = ldb, .ldc = ldc,
             .a = a, .b = b, .c = c, .e = e, .at = at};
    /* Few columns would leave vector lanes empty: compute the transposed product, which has few rows instead. */
    if (n < j.k->lanes && m > n) {
        j.c_transposed = 1, j.ta = !tb, j.tb = !ta, j.m = n, j.n = m, j.lda = ldb, j.ldb = lda, j.a = b, j.b = a;
    }
    return tiled(&j);
}

/* Packing in advance pays if few rows or columns of the other operand amortise the copy. Columns are transposed into strips, rows
 * only copied with a pitch, so the limits differ. Measured; operands below FEWEST_BYTES gain nothing. */
#define MOST_ROWS 1024
#define MOST_COLUMNS 256
#define FEWEST_BYTES 16384

/* The layout of one or two leftover columns depends on the caller, so b is not packed in advance if it has such columns. */
int64_t dg_gemm_packed_bytes(int type, int side, int64_t m, int64_t n, int64_t k) {
    const Kernels *found = kernels_for(type);
    if (!found || m < 2 || n < found->lanes || (side == DG_LEFT ? m : n) * k * found->size < FEWEST_BYTES) return 0;
    if (side == DG_LEFT) {
        int64_t room = (k + DEPTH - 1) / DEPTH * found->pitch;
        return n <= MOST_COLUMNS && room <= 2 * k ? m * room * found->size : 0;
    }
    int few = n % found->lanes != 0 && n % found->lanes <= 2;
    return m <= MOST_ROWS && !few ? up(n, 2 * found->lanes) * k * found->size : 0;
}

static void pack_rows_task(void **args, int64_t begin, int64_t end) {
    const Job *j = args[0];
    for (int64_t row = begin; row < end; row++)
        for (int64_t k = 0; k < j->depth; k += j->deep)
            memcpy((char *)args[1] + (row_at(j, row, k) - j->a), j->b + (row * j->lda + k) * j->k->size,
                   (size_t)(DG_MIN(j->deep, j->depth - k) * j->k->size));
}

/* An operand packed before BLAS was opened stays packed, so these functions do not check for BLAS. */
void dg_gemm_pack(int type, int side, int transposed, int64_t lines, int64_t k, const void *x, int64_t ld, void *out) {
    Job j = {.k = &kernels[dg_isa() - 1][type == DG_F64], .depth = k, .deep = deep_of(k), .ta = 1 /* no leftover columns */, .b = x};
    int64_t strip = 2 * j.k->lanes, strips = (lines + strip - 1) / strip;
    if (side == DG_LEFT) {
        j.m = lines, j.lda = ld, j.a = out;
        dg_parallel_for(pack_rows_task, (void *[]){&j, out}, lines, 1 + 16384 / k);
    } else {
        j.n = lines, j.ldb = ld, j.tb = transposed, j.shared_b = out;
        dg_parallel_for(share_b_task, (void *[]){&j}, (k + j.deep - 1) / j.deep * strips, 1 + 16384 / (strip * j.deep));
    }
}

int dg_gemm_packed(int type, int side, int ta, int tb, int64_t m, int64_t n, int64_t k, const void *a, int64_t lda, const void *b,
                   int64_t ldb, void *c, int64_t ldc, const dg_epilogue *e) {
    Job j = {.k = &kernels[dg_isa() - 1][type == DG_F64], .packed = side, .ta = ta, .tb = tb, .m = m, .n = n, .depth = k, .lda = lda, .ldb = ldb, .ldc = ldc,
             .a = a, .b = b, .c = c, .e = e};
    return tiled(&j);
}

int dg_gemm_thin(int type, int tb, int64_t m, int64_t n, int64_t k, const void *a, int64_t lda, const void *b, int64_t ldb, void *c,
                 int64_t ldc) {
    if (dg_isa() == 0 || m > DG_THIN || (type != DG_F32 && type != DG_F64) || m * n * k == 0) return 0;
    kernels[dg_isa() - 1][type == DG_F64].thin(tb, m, n, k, a, lda, b, ldb, c, ldc);
    return 1;
}

int dg_gemm_gathered(int type, int side, int ta, int64_t m, int64_t n, int64_t k, const void *a, int64_t lda, const void *b,
                     const int32_t *row, const int32_t *column, void *c, int64_t ldc, const dg_epilogue *e) {
    if (dg_isa() == 0 || (type != DG_F32 && type != DG_F64) || m * n * k == 0) return 0;
    Job j = {.k = &kernels[dg_isa() - 1][type == DG_F64], .packed = side, .ta = ta, .m = m, .n = n, .depth = k, .lda = lda, .ldc = ldc, .a = a,
             .b = b, .c = c, .e = e, .b_row = row, .b_column = column};
    return tiled(&j);
}

int64_t dg_gemm_lanes(int type) { return dg_isa() == 0 || (type != DG_F32 && type != DG_F64) ? 0 : kernels[dg_isa() - 1][type == DG_F64].lanes; }
int64_t dg_gemm_height(int type) { return kernels[dg_isa() - 1][type == DG_F64].height; }

void dg_gemm_block(int type, int64_t rows, int64_t columns, int64_t depth, const void *a, const void *b, void *c, int64_t ldc, int add,
                   const void *next, int64_t bytes) {
    const Kernels *k = &kernels[dg_isa() - 1][type == DG_F64];
    int64_t tiles = ((rows + k->height - 1) / k->height) * ((columns + 2 * k->lanes - 1) / (2 * k->lanes)), lines = bytes / 64 / tiles;
    k->block(rows, columns, depth, 1, a, 0, (void *)b, 0, 0, c, ldc, add, &(Fetch){next, lines * 64, lines ? tiles : 0, lines});
}

void dg_gemm_transpose(int type, void *c, int64_t ldc, const void *x, int64_t ldx, int64_t rows, int64_t columns) {
    kernels[dg_isa() - 1][type == DG_F64].transpose(c, ldc, x, ldx, rows, columns);
}

#else
int64_t dg_gemm_lanes(int type) {
    (void)type;
    return 0;
}

int dg_gemm_thin(int type, int tb, int64_t m, int64_t n, int64_t k, const void *a, int64_t lda, const void *b, int64_t ldb, void *c,
                 int64_t ldc) {
    (void)type, (void)tb, (void)m, (void)n, (void)k, (void)a, (void)lda, (void)b, (void)ldb, (void)c, (void)ldc;
    return 0;
}

int64_t dg_gemm_packed_bytes(int type, int side, int64_t m, int64_t n, int64_t k) {
    (void)type, (void)side, (void)m, (void)n, (void)k;
    return 0;
}

/* Never called: packed_bytes is 0. */
void dg_gemm_pack(int type, int side, int transposed, int64_t lines, int64_t k, const void *x, int64_t ld, void *out) {
    (void)type, (void)side, (void)transposed, (void)lines, (void)k, (void)x, (void)ld, (void)out;
}

int dg_gemm_packed(int type, int side, int ta, int tb, int64_t m, int64_t n, int64_t k, const void *a, int64_t lda, const void *b,
                   int64_t ldb, void *c, int64_t ldc, const dg_epilogue *e) {
    (void)e, (void)side, (void)type, (void)ta, (void)tb, (void)m, (void)n, (void)k, (void)a, (void)lda, (void)b, (void)ldb, (void)c, (void)ldc;
    return 0;
}

int dg_gemm_gathered(int type, int side, int ta, int64_t m, int64_t n, int64_t k, const void *a, int64_t lda, const void *b,
                     const int32_t *row, const int32_t *column, void *c, int64_t ldc, const dg_epilogue *e) {
    (void)e, (void)side, (void)type, (void)ta, (void)m, (void)n, (void)k, (void)a, (void)lda, (void)b, (void)row, (void)column, (void)c, (void)ldc;
    return 0;
}

int dg_gemm_tiled(int type, int ta, int tb, int64_t m, int64_t n, int64_t k, const void *a, int64_t lda, const void *b, int64_t ldb,
                  void *c, int64_t ldc, const dg_epilogue *e, int64_t at) {
    (void)e, (void)at, (void)type, (void)ta, (void)tb, (void)m, (void)n, (void)k, (void)a, (void)lda, (void)b, (void)ldb, (void)c, (void)ldc;
    return 0;
}
#endif
