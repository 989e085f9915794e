/* Movement: kernels that place elements and never look at them, by item size. */
#include "common.h"

#define COPY_GRAIN (256 << 10)

static void copy_task(void **args, int64_t begin, int64_t end) {
    memcpy((char *)args[0] + begin, (char *)args[1] + begin, (size_t)(end - begin));
}

void dg_copy(void *out, const void *x, int64_t bytes) {
    dg_parallel_for(copy_task, (void *[]){out, (void *)x}, bytes, COPY_GRAIN);
}
