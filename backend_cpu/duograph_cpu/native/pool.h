/* The thread pool of all kernels. */
#ifndef DG_POOL_H
#define DG_POOL_H

#include <stdint.h>

/* A task function: processes elements begin .. end of the work that args describe. */
typedef void (*dg_task)(void **args, int64_t begin, int64_t end);

/* Runs task over 0 .. n in chunks of at least `grain` and returns when all are done. Chunks depend on n and grain only, never on load or
 * thread count, so rounding may depend on them. n <= grain is one chunk on the calling thread. From inside a task, or while another
 * thread uses the pool, all chunks run on the calling thread. */
void dg_parallel_for(dg_task task, void **args, int64_t n, int64_t grain);

/* For kernels that allocate or accumulate per chunk: runs task(args, i, i + 1) for each of `chunks`. */
void dg_parallel_chunks(dg_task task, void **args, int64_t chunks);

/* ---- stopping a long kernel ----
 * A kernel that may return before its work is done runs inside DG_STOPPABLE(its call), and calls dg_stop where it can break off. It
 * then leaves garbage in its results and DG_STOPPED as its code. Only kernels that may fail anyway can be stopped: memory of operands
 * is given away before those that cannot. */

/* Whether to return early. When the main thread's call has run for 100 ms, and every 100 ms from then on, it lets Python handle the
 * signals that arrived; the answer is yes if a handler raised an exception, such as KeyboardInterrupt. */
int dg_stop(void);

void dg_begin_stoppable(void);
int dg_end_stoppable(int code); /* returns code, or DG_STOPPED */
#define DG_STOPPABLE(call) (dg_begin_stoppable(), dg_end_stoppable(call))

/* Number of threads including the caller: the cores that this process may use. */
int dg_threads(void);

#endif
