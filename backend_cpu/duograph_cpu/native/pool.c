/* The pool starts its threads at the first job worth splitting, and restarts them in a forked child. A fork does not wait for a job:
 * the job's thread may itself wait for the forking one, which holds Python's lock. Each thread has a fixed share of the
 * chunks of every job, so that it finds its data in its cache; when its share is done it steals chunks of others. Between jobs a worker
 * spins briefly and then sleeps. */
#define _GNU_SOURCE
#include "common.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/syscall.h>
#endif

#define MAX_THREADS 256
#define CHUNKS 32          /* chunks of a large job: enough to balance up to 16 cores or an uneven load */
#define SPIN_NS 200000     /* a thread spins this long before it sleeps; waking up takes up to 50 us */
#define ALONE_NS 30000     /* part of the spinning without yielding the core */
#define POLL_NS 100000000  /* a stoppable call asks Python for signals at this interval */

/* The rest of a thread's share of a job: job number << 32 | next chunk. */
typedef struct {
    _Atomic uint64_t next;
    char pad[56]; /* padding to a whole cache line */
} Share;

static Share shares[MAX_THREADS] __attribute__((aligned(64)));

#define ALONE_IN_A_LINE __attribute__((aligned(64)))

static struct {
    pthread_mutex_t owner;         /* held by the thread whose job runs */
    pthread_mutex_t mutex;         /* guards sleeping, on both conditions */
    pthread_cond_t wake, finished;
    int started;                   /* workers running */
    int sleeping;
    bool waiting;                  /* the owner sleeps on `finished` */
    /* Fields that threads poll have a cache line of their own. */
    ALONE_IN_A_LINE _Atomic uint32_t number; /* job number; 0 before the first */
    ALONE_IN_A_LINE _Atomic int64_t left;    /* chunks not yet finished */
    ALONE_IN_A_LINE _Atomic int64_t chunks;
    _Atomic bool stop;             /* the remaining chunks do nothing */
    _Atomic int threads;           /* threads that have a share */
    dg_task task;                  /* from here on, read only by threads that took a chunk */
    void **args;
    int64_t n, chunk;
} pool = {.owner = PTHREAD_MUTEX_INITIALIZER, .mutex = PTHREAD_MUTEX_INITIALIZER,
          .wake = PTHREAD_COND_INITIALIZER, .finished = PTHREAD_COND_INITIALIZER};

static _Thread_local bool inside_task, is_worker;
static pthread_once_t fork_once = PTHREAD_ONCE_INIT;

int dg_threads(void) {
    static int known;
    if (known == 0) {
        int n = 0;
#ifdef __linux__
        cpu_set_t set;
        if (sched_getaffinity(0, sizeof set, &set) == 0) n = CPU_COUNT(&set);
#endif
        if (n <= 0) n = (int)sysconf(_SC_NPROCESSORS_ONLN);
        known = n < 1 ? 1 : n > MAX_THREADS ? MAX_THREADS : n;
    }
    return known;
}

static inline void relax(void) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static int64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* One step of a spin wait; returns false after SPIN_NS. `spin` and `until` start at 0. */
static inline bool waits(int *spin, int64_t *until) {
    relax();
    if (++*spin % 32 != 0) return true;
    int64_t now = now_ns();
    if (*until == 0) *until = now + SPIN_NS;
    if (now >= *until) return false;
    if (now >= *until - SPIN_NS + ALONE_NS) sched_yield();
    return true;
}

/* The first chunk of a thread's share. */
static int64_t share_begin(int64_t chunks, int threads, int thread) { return chunks * thread / threads; }

/* Runs chunks of job `number` until there are none: first this thread's share, then those of the others. */
static void work(uint32_t number, int thread) {
    int threads = pool.threads;
    int64_t chunks = pool.chunks;
    for (int turn = 0; turn < threads; turn++) {
        int of = (thread + turn) % threads;
        int64_t last = share_begin(chunks, threads, of + 1);
        uint64_t t = atomic_load(&shares[of].next);
        for (;;) {
            do {
                if ((uint32_t)(t >> 32) != number || (int64_t)(uint32_t)t >= last) break;
            } while (!atomic_compare_exchange_weak(&shares[of].next, &t, t + 1));
            if ((uint32_t)(t >> 32) != number || (int64_t)(uint32_t)t >= last) break;
            int64_t begin = (int64_t)(uint32_t)t * pool.chunk;
            int64_t end = begin + pool.chunk < pool.n ? begin + pool.chunk : pool.n;
            if (!dg_stop()) pool.task(pool.args, begin, end);
            t = atomic_load(&shares[of].next);
            if (atomic_fetch_sub(&pool.left, 1) == 1) {
                pthread_mutex_lock(&pool.mutex);
                if (pool.waiting) pthread_cond_signal(&pool.finished);
                pthread_mutex_unlock(&pool.mutex);
            }
        }
    }
}

static void *worker(void *thread) {
    inside_task = is_worker = true;
    uint32_t seen = 0;
    for (;;) {
        int64_t until = 0;
        for (int spin = 0;;) {
            uint32_t number = atomic_load(&pool.number);
            if (number != seen) {
                seen = number;
                break;
            }
            if (waits(&spin, &until)) continue;
            pthread_mutex_lock(&pool.mutex);
            pool.sleeping++;
            while (atomic_load(&pool.number) == seen)
                pthread_cond_wait(&pool.wake, &pool.mutex);
            pool.sleeping--;
            pthread_mutex_unlock(&pool.mutex);
        }
        work(seen, (int)(intptr_t)thread);
    }
    return 0;
}

static void before_fork(void) { pthread_mutex_lock(&pool.mutex); }

static void after_fork_parent(void) { pthread_mutex_unlock(&pool.mutex); }

/* The child has one thread, no workers, and no job of another thread. */
static void after_fork_child(void) {
    pthread_mutex_unlock(&pool.mutex);
    pthread_mutex_init(&pool.owner, 0);
    pthread_cond_init(&pool.wake, 0);
    pthread_cond_init(&pool.finished, 0);
    pool.started = pool.sleeping = 0;
    pool.threads = 0;
    pool.waiting = false;
    uint64_t closed = (uint64_t)atomic_load(&pool.number) << 32 | UINT32_MAX;
    for (int t = 0; t < MAX_THREADS; t++) atomic_store(&shares[t].next, closed);
}

static void watch_forks(void) { pthread_atfork(before_fork, after_fork_parent, after_fork_child); }

static void start_workers(void) {
    pthread_once(&fork_once, watch_forks);
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attributes, 4 << 20);
    while (pool.started < dg_threads() - 1) {
        pthread_t thread;
        if (pthread_create(&thread, &attributes, worker, (void *)(intptr_t)(pool.started + 1)) != 0) break;
        pool.started++;
    }
    pthread_attr_destroy(&attributes);
}

/* ---- stopping ---- */

/* The stoppable call of this thread. */
typedef struct {
    int depth;      /* of calls inside each other: a kernel of a program, or of another kernel */
    bool stopped;
    int64_t next;   /* when to let Python handle signals; 0: not known yet */
} Call;

static _Thread_local Call call;

/* Python: lets the signal handlers run and returns whether one raised; see signals.py. */
int dg_handle_signals(void);

static bool handles_signals(void) {
#ifdef __linux__
    return getpid() == (pid_t)syscall(SYS_gettid);
#elif defined(__APPLE__)
    return pthread_main_np();
#else
    return true;
#endif
}

void dg_begin_stoppable(void) { call.depth++; }

int dg_end_stoppable(int code) {
    if (call.stopped) code = DG_STOPPED;
    if (--call.depth == 0) call = (Call){0};
    return code;
}

int dg_stop(void) {
    if (is_worker) return atomic_load_explicit(&pool.stop, memory_order_relaxed);
    if (call.depth == 0 || call.stopped) return call.stopped;
    int64_t now = now_ns();
    if (call.next == 0) call.next = handles_signals() ? now + POLL_NS : INT64_MAX;
    if (now < call.next) return 0;
    Call before = call; /* a handler may call kernels */
    call = (Call){0};
    int stop = dg_handle_signals();
    call = before;
    call.next = now_ns() + POLL_NS;
    call.stopped = stop;
    if (stop && inside_task) atomic_store(&pool.stop, true); /* this thread owns the job */
    return stop;
}

/* ---- jobs ---- */

static void run_here(dg_task task, void **args, int64_t n, int64_t chunk) {
    for (int64_t begin = 0; begin < n && (begin == 0 || !dg_stop()); begin += chunk)
        task(args, begin, begin + chunk < n ? begin + chunk : n);
}

static void run(dg_task task, void **args, int64_t n, int64_t chunk) {
    if (call.stopped) return;
    if (n <= chunk || inside_task || dg_threads() == 1 || pthread_mutex_trylock(&pool.owner) != 0) {
        run_here(task, args, n, chunk);
        return;
    }
    inside_task = true;
    if (pool.started < dg_threads() - 1) start_workers();
    /* All chunks of the last job are done. Close its shares before the fields change, so that a worker that wakes up late takes
     * nothing. */
    uint64_t last = atomic_load(&pool.number);
    uint32_t number = (uint32_t)(last + 1);
    for (int t = 0; t < pool.threads; t++) atomic_store(&shares[t].next, last << 32 | UINT32_MAX);
    atomic_store(&pool.stop, false);
    pool.task = task;
    pool.args = args;
    pool.n = n;
    pool.chunk = chunk;
    int64_t chunks = (n + chunk - 1) / chunk;
    int threads = pool.started + 1;
    atomic_store(&pool.chunks, chunks);
    atomic_store(&pool.left, chunks);
    atomic_store(&pool.threads, threads);
    for (int t = 0; t < threads; t++) atomic_store(&shares[t].next, (uint64_t)number << 32 | (uint64_t)share_begin(chunks, threads, t));
    pthread_mutex_lock(&pool.mutex);
    atomic_store(&pool.number, number);
    if (pool.sleeping) pthread_cond_broadcast(&pool.wake);
    pthread_mutex_unlock(&pool.mutex);

    work(number, 0);

    int64_t until = 0;
    for (int spin = 0; atomic_load(&pool.left) != 0;) {
        if (waits(&spin, &until)) continue;
        pthread_mutex_lock(&pool.mutex);
        pool.waiting = true;
        while (atomic_load(&pool.left) != 0) pthread_cond_wait(&pool.finished, &pool.mutex);
        pool.waiting = false;
        pthread_mutex_unlock(&pool.mutex);
    }
    inside_task = false;
    pthread_mutex_unlock(&pool.owner);
}

void dg_parallel_for(dg_task task, void **args, int64_t n, int64_t grain) {
    if (n <= 0) return;
    int64_t chunk = (n + CHUNKS - 1) / CHUNKS;
    if (chunk < grain) chunk = grain;
    if (n > 4096) chunk = (chunk + 63) & ~(int64_t)63; /* whole cache lines */
    run(task, args, n, chunk);
}

void dg_parallel_chunks(dg_task task, void **args, int64_t chunks) {
    if (chunks > 0) run(task, args, chunks, 1);
}
