/* The thread pool that all kernels split their work over. */
#ifndef DG_POOL_H
#define DG_POOL_H

#include <stdint.h>

/* A piece of work: elements begin .. end of something that args describe. */
typedef void (*dg_task)(void **args, int64_t begin, int64_t end);

/* Runs task over 0 .. n in chunks of at least `grain` and returns when all are done. The chunks depend on n and grain
 * alone, never on the load or on the number of threads, so a kernel may let its rounding depend on them. n <= grain is one chunk, run
 * here. Called from inside a task, or while another thread has the pool, it runs all chunks here. */
void dg_parallel_for(dg_task task, void **args, int64_t n, int64_t grain);

/* The same for kernels that allocate or accumulate per chunk: exactly `chunks` calls task(args, i, i + 1). */
void dg_parallel_chunks(dg_task task, void **args, int64_t chunks);

/* How many threads work together, the caller included: the cores this process may use. */
int dg_threads(void);

#endif
