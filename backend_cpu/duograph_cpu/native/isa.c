/* The instruction set that the kernels of this process use; see isa.h. */
#include "common.h"

static int chosen = -1;
static int limit = 2;

static int detect(void) {
#if (defined(__x86_64__) || defined(__i386__)) && !defined(DG_NO_ISA)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl"))
        return 2;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return 1;
#endif
    return 0;
}

int dg_isa(void) {
    if (chosen < 0) chosen = DG_MIN(detect(), limit);
    return chosen;
}

void dg_isa_limit(int level) {
    limit = level;
    chosen = -1;
}
