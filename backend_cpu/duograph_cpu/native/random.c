/* Random bits: Philox 4x32-10 (Salmon and others, SC 2011). Element i is word i % 4 of block i / 4; the counter is (block lo, block hi,
 * offset lo, offset hi), so that any part of the stream can be computed independently. */
#include "common.h"

#define ISA_SOURCE "random.inc"
#include "isa.h"

static void bits_task(void **args, int64_t begin, int64_t end) {
    const dg_bits *p = args[0];
    uint32_t *out = args[1], group[64];
    for (int64_t g = begin; g < end; g++) {
        int64_t n = DG_MIN(64, p->n - g * 64);
        uint32_t *to = n == 64 ? out + g * 64 : group;
        ISA_PICK(philox)(to, (uint64_t)g * 16, args[2]);
        if (n < 64) memcpy(out + g * 64, group, (size_t)n * 4);
    }
}

int dg_random_bits(const dg_bits *p, void *out, const void *state) {
    dg_parallel_for(bits_task, (void *[]){(void *)p, out, (void *)state}, (p->n + 63) / 64, 256);
    return DG_OK;
}
