/* Every function that Python calls. Read by the C compiler (through common.h) and, as it stands, by cffi's cdef:
 * so declarations only, no preprocessor. Kernels return 0, or a code that kernels.py turns into an exception. */

/* ---- pool.c ---- */
int dg_threads(void);

/* ---- memory.c: blocks of at least 4 KiB; see there ---- */
void *dg_alloc(size_t bytes);
void dg_free(void *block);
void dg_memory_limits(size_t limit, size_t cache_limit);
void dg_memory_stats(int64_t *out); /* in_use, cached, peak, limit, cache_limit, allocations, hits */
void dg_memory_trim(void);

/* ---- isa.c ---- */
int dg_isa(void); /* 0 baseline, 1 AVX2, 2 AVX-512 */
void dg_isa_limit(int level); /* for tests: use at most this level */

/* ---- movement.c ---- */
void dg_copy(void *out, const void *x, int64_t bytes);

/* ---- indexing.c ---- */
void dg_index_error(int64_t *out); /* value, axis, size of the last index that was out of range in this thread */
