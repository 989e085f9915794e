/* Regions that gather through indices or have two stages: `region.c` with scratch memory and error codes. */
#include "common.h"

/* Generated code skips a wrong index and returns DG_INDEX; this finds out which one it was. */
static int wrong_indices(const dg_staged *p, void **args) {
    for (int64_t k = 0; k < p->count; k++) {
        const dg_indices *at = p->indices + k;
        if (dg_wrong_index(args[at->operand], at->type, at->count, at->n)) return DG_WRONG_INDEX + (int)k;
    }
    return DG_INDEX;
}

int dg_staged_run(const dg_staged *p, void **args) {
    void *own[p->pointers + 1];
    memcpy(own, args, (size_t)p->pointers * sizeof *own);
    own[p->pointers] = p->bytes ? dg_alloc((size_t)p->bytes) : 0;
    if (p->bytes && !own[p->pointers]) return DG_NO_MEMORY;
    int code = dg_region_run(&p->first, own);
    if (!code && p->second.n) code = dg_region_run(&p->second, own);
    if (p->bytes) dg_free(own[p->pointers]);
    return code == DG_INDEX ? wrong_indices(p, args) : code;
}
