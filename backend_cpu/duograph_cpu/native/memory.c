/* A caching allocator for buffers of more than a few KiB. The page faults of a fresh 64 MiB block cost more than most kernels, so freed
 * blocks are kept by size class, up to a limit on their sum.
 *
 * Size classes are eighths of a power of two, so at most 12.5 % is lost. Blocks of 2 MiB and more have their own mapping, on huge pages if
 * available. Smaller ones, down to 32 KiB, are cut from slabs on huge pages, which keeps TLB misses low for networks with many
 * parameters. A slab is unmapped as a whole when none of its blocks is in use. A 64-byte aligned header precedes each block. */
#define _GNU_SOURCE
#include "common.h"

#include <pthread.h>
#include <stdlib.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <sys/mman.h>
#include <unistd.h>

#define HUGE_PAGE ((size_t)2 << 20)
#ifdef __SANITIZE_ADDRESS__ /* exact sizes and no reuse, so that the sanitizer sees out-of-bounds accesses */
#define EXACT 1
#else
#define EXACT 0
#endif
#define CLASSES (64 * 8)
#define TRIMMING ((size_t)16 << 20)
#define SLAB ((size_t)8 << 20)
#define LEAST_CUT ((size_t)32 << 10)

/* Header at the start of a slab's mapping. Blocks are cut from front to end and never merged. */
typedef struct Slab {
    struct Slab *next;
    size_t cut;      /* bytes already cut off */
    int64_t in_use;  /* blocks that are not in a free list */
    char pad[40];
} Slab;

typedef struct Header {
    struct Header *next; /* in the free list */
    size_t bytes;        /* usable bytes: the size class */
    size_t mapped;       /* length of the mapping; 0 for blocks from malloc or a slab */
    void *base;          /* address to unmap or free */
    Slab *slab;          /* the slab of the block, or NULL */
    int class_;
    int dry;             /* cached, but its pages were returned to the system */
    char pad[16];
} Header;

_Static_assert(sizeof(Header) == 64 && sizeof(Slab) == 64, "blocks must stay 64-byte aligned");

static struct {
    pthread_mutex_t mutex;
    Header *free_[CLASSES];
    Slab *slabs;
    size_t in_use, cached, peak, limit, cache_limit;
    int64_t allocations, hits;
} memory = {.mutex = PTHREAD_MUTEX_INITIALIZER, .limit = SIZE_MAX, .cache_limit = SIZE_MAX};

static pthread_once_t fork_once = PTHREAD_ONCE_INIT;
static void lock(void) { pthread_mutex_lock(&memory.mutex); }
static void unlock(void) { pthread_mutex_unlock(&memory.mutex); }
static void watch_forks(void) { pthread_atfork(lock, unlock, unlock); }

/* The size class and rounded size of a request: 8 classes per power of two. */
static int class_of(size_t bytes, size_t *rounded) {
    if (bytes < 4096) bytes = 4096;
    int top = 63 - __builtin_clzll((unsigned long long)bytes);
    size_t step = (size_t)1 << (top - 3);
    size_t up = (bytes + step - 1) & ~(step - 1);
    top = 63 - __builtin_clzll((unsigned long long)up);
    *rounded = up;
    return top * 8 + (int)((up >> (top - 3)) & 7);
}

/* Maps a multiple of the huge page size. */
static void *map_huge(size_t length) {
    char *p = mmap(0, length + HUGE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) return 0;
    char *start = (char *)(((uintptr_t)p + HUGE_PAGE - 1) & ~(uintptr_t)(HUGE_PAGE - 1));
    if (start != p) munmap(p, (size_t)(start - p));
    char *end = p + length + HUGE_PAGE;
    if (start + length != end) munmap(start + length, (size_t)(end - (start + length)));
#ifdef MADV_HUGEPAGE
    madvise(start, length, MADV_HUGEPAGE);
#endif
    return start;
}

/* Cuts a block from a slab; returns NULL if there is no memory for a new slab. */
static Header *cut(size_t bytes) {
    lock();
    Slab *s = memory.slabs;
    while (s && SLAB - s->cut < sizeof(Header) + bytes) s = s->next;
#ifdef __GLIBC__
    if (!s && memory.slabs) malloc_trim(0); /* as for large blocks below; not before the first slab, for small processes */
#endif
    if (!s && (s = map_huge(SLAB))) {
        *s = (Slab){.next = memory.slabs, .cut = sizeof(Slab)};
        memory.slabs = s;
    }
    Header *h = s ? (Header *)((char *)s + s->cut) : 0;
    if (h) {
        *h = (Header){.slab = s};
        s->cut += sizeof(Header) + bytes;
        s->in_use++;
    }
    unlock();
    return h;
}

/* Allocates a block of class size `bytes`, of which `asked` are needed. */
static Header *fresh(size_t bytes, size_t asked) {
    Header *h = !EXACT && bytes >= LEAST_CUT && bytes < HUGE_PAGE ? cut(bytes) : 0;
    if (h) {
        h->bytes = bytes;
        return h;
    }
    if (EXACT || bytes < HUGE_PAGE) {
        void *p;
        if (posix_memalign(&p, 64, (EXACT ? asked : bytes) + sizeof(Header)) != 0) return 0;
        h = p;
        h->mapped = 0;
        h->slab = 0;
        h->dry = 0;
        h->base = p;
    } else {
        size_t length = (bytes + sizeof(Header) + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
#ifdef __GLIBC__
        /* malloc keeps memory that others freed, such as arrays that weights were made from. Trimming it costs less than mapping a block
         * of this size. */
        if (length >= TRIMMING) malloc_trim(0);
#endif
        char *start = map_huge(length);
        if (!start) return 0;
        h = (Header *)start;
        h->mapped = length;
        h->slab = 0;
        h->dry = 0;
        h->base = start;
    }
    h->bytes = bytes;
    return h;
}

static void release(Header *h) {
    if (h->mapped) munmap(h->base, h->mapped);
    else free(h->base);
}

/* Releases a block to the system. */
typedef struct { Header *blocks; Slab *slabs; } Given;

/* Releases the pages of a free block that stays in its slab. */
static void dry(Header *h) {
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), begin = ((uintptr_t)(h + 1) + page - 1) & ~(page - 1), end = ((uintptr_t)(h + 1) + h->bytes) & ~(page - 1);
    if (end > begin) madvise((void *)begin, end - begin, MADV_DONTNEED);
    h->dry = 1;
}

/* Removes every cached block from the free lists, with the lock held; the caller releases them without it. Blocks of slabs that are in
 * use only release their pages. */
static Given take_cached(void) {
    Given all = {0, 0};
    for (int c = 0; c < CLASSES; c++)
        for (Header **at = &memory.free_[c], *h; (h = *at);) {
            if (!h->dry) memory.cached -= h->bytes;
            if (h->slab && h->slab->in_use) {
                if (!h->dry) dry(h);
                at = &h->next;
                continue;
            }
            *at = h->next;
            if (h->slab) continue; /* released with its slab */
            h->next = all.blocks;
            all.blocks = h;
        }
    for (Slab **at = &memory.slabs, *s; (s = *at);) {
        if (s->in_use) {
            at = &s->next;
            continue;
        }
        *at = s->next;
        s->next = all.slabs;
        all.slabs = s;
    }
    return all;
}

static void release_all(Given all) {
    for (Header *h = all.blocks, *next; h; h = next) {
        next = h->next;
        release(h);
    }
    for (Slab *s = all.slabs, *next; s; s = next) {
        next = s->next;
        munmap(s, SLAB);
    }
}

void *dg_alloc(size_t bytes) {
    if (bytes > (size_t)1 << 60) return 0;
    pthread_once(&fork_once, watch_forks);
    size_t rounded;
    int class_ = class_of(bytes, &rounded);
    lock();
    if (memory.in_use + rounded > memory.limit) {
        unlock();
        return 0;
    }
    Header *h = memory.free_[class_];
    if (h) {
        memory.free_[class_] = h->next;
        if (h->slab) h->slab->in_use++;
        if (!h->dry) memory.cached -= rounded;
        h->dry = 0;
        memory.hits++;
    }
    memory.in_use += rounded;
    if (memory.in_use > memory.peak) memory.peak = memory.in_use;
    memory.allocations++;
    /* The limit covers cached and used blocks together. */
    Given excess = {0, 0};
    if (memory.in_use + memory.cached > memory.limit) excess = take_cached();
    unlock();
    release_all(excess);
    if (!h) {
        h = fresh(rounded, bytes);
        if (!h) { /* out of memory: release the cache and retry */
            dg_memory_trim();
            h = fresh(rounded, bytes);
        }
        if (!h) {
            lock();
            memory.in_use -= rounded;
            memory.allocations--;
            unlock();
            return 0;
        }
        h->class_ = class_;
    }
    return h + 1;
}

void dg_free(void *block) {
    if (!block) return;
    Header *h = (Header *)block - 1;
    lock();
    memory.in_use -= h->bytes;
    int keep = !EXACT && (h->slab || memory.cached + h->bytes <= memory.cache_limit);
    if (h->slab) h->slab->in_use--;
    if (keep) {
        h->next = memory.free_[h->class_];
        memory.free_[h->class_] = h;
        memory.cached += h->bytes;
    }
    Given excess = {0, 0};
    if (memory.cached > memory.cache_limit) excess = take_cached();
    unlock();
    if (!keep) release(h);
    release_all(excess);
}

void dg_memory_limits(size_t limit, size_t cache_limit) {
    lock();
    memory.limit = limit;
    memory.cache_limit = cache_limit;
    unlock();
}

void dg_memory_stats(int64_t *out) {
    lock();
    out[0] = (int64_t)memory.in_use;
    out[1] = (int64_t)memory.cached;
    out[2] = (int64_t)memory.peak;
    out[3] = memory.limit > INT64_MAX ? INT64_MAX : (int64_t)memory.limit;
    out[4] = memory.cache_limit > INT64_MAX ? INT64_MAX : (int64_t)memory.cache_limit;
    out[5] = memory.allocations;
    out[6] = memory.hits;
    unlock();
}

void dg_memory_trim(void) {
    lock();
    Given all = take_cached();
    unlock();
    release_all(all);
}
