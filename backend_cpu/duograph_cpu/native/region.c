/* Loads libraries compiled at run time, and runs their functions over the thread pool. */
#define _GNU_SOURCE
#include "common.h"

#include <dlfcn.h>
#include <stdatomic.h>

static _Thread_local const char *problem;

/* RTLD_LOCAL: libraries may define the same names. */
void *dg_open(const char *path) {
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    problem = library ? 0 : dlerror();
    return library;
}

void dg_close(void *library) { dlclose(library); }

void *dg_symbol(void *library, const char *name) {
    void *address = dlsym(library, name);
    problem = address ? 0 : dlerror();
    return address;
}

const char *dg_open_problem(void) { return problem ? problem : ""; }

typedef struct {
    const dg_region *region;
    void **args;
    _Atomic int code;
} job;

static void task(void **args, int64_t begin, int64_t end) {
    job *j = args[0];
    int code = j->region->f(j->args, begin, end);
    int before = atomic_load_explicit(&j->code, memory_order_relaxed);
    while (code > before && !atomic_compare_exchange_weak(&j->code, &before, code)) {}
}

/* All chunks share `args`, so generated code copies the pointers that it advances. */
static inline int start(const dg_region *r, void **args) {
    if (r->n <= r->grain) return r->n > 0 ? r->f(args, 0, r->n) : DG_OK;
    job j = {.region = r, .args = args};
    void *outer[] = {&j};
    dg_parallel_for(task, outer, r->n, r->grain);
    return atomic_load(&j.code);
}

int dg_region_run(const dg_region *r, void **pointers) { return start(r, pointers); }

int dg_region0(const dg_region *r, void *out) {
    void *args[] = {out};
    return start(r, args);
}

int dg_region1(const dg_region *r, void *out, const void *a) {
    void *args[] = {(void *)a, out};
    return start(r, args);
}

int dg_region2(const dg_region *r, void *out, const void *a, const void *b) {
    void *args[] = {(void *)a, (void *)b, out};
    return start(r, args);
}

int dg_region3(const dg_region *r, void *out, const void *a, const void *b, const void *c) {
    void *args[] = {(void *)a, (void *)b, (void *)c, out};
    return start(r, args);
}

int dg_region4(const dg_region *r, void *out, const void *a, const void *b, const void *c, const void *d) {
    void *args[] = {(void *)a, (void *)b, (void *)c, (void *)d, out};
    return start(r, args);
}

int dg_region5(const dg_region *r, void *out, const void *a, const void *b, const void *c, const void *d,
               const void *e) {
    void *args[] = {(void *)a, (void *)b, (void *)c, (void *)d, (void *)e, out};
    return start(r, args);
}

int dg_region6(const dg_region *r, void *out, const void *a, const void *b, const void *c, const void *d,
               const void *e, const void *f) {
    void *args[] = {(void *)a, (void *)b, (void *)c, (void *)d, (void *)e, (void *)f, out};
    return start(r, args);
}

typedef int dg_then_function(const void *plan, const dg_epilogue *e, void *out, const void *a, const void *b);

int dg_fused_run(const dg_fused *p, void **args) {
    void *own[sizeof p->places / sizeof *p->places];
    void *value = p->value < 0 ? dg_alloc((size_t)p->bytes) : args[p->value];
    if (!value) return DG_NO_MEMORY;
    for (int64_t i = 0; i < p->count; i++) own[i] = p->places[i] < 0 ? value : args[p->places[i]];
    dg_epilogue e = {.f = p->f, .args = own, .n = p->n, .grain = p->grain, .affine = p->has_affine ? &p->affine : 0};
    int code = ((dg_then_function *)p->product)(p->plan, &e, value, args[p->left], args[p->right]);
    if (p->value < 0) dg_free(value);
    return code;
}
