/* Sort and topk. Elements are mapped to unsigned keys in the wanted order (NaN last, both zeros equal). Rows of (key, index) are radix
 * sorted, which is stable, and the values are gathered by index. */
#include "common.h"
#include "half.h"

typedef struct { uint64_t key; int64_t index; } Pair;

static uint64_t float_key(uint32_t u) {
    if ((u & 0x7fffffff) > 0x7f800000) return UINT32_MAX;
    if (u == 0x80000000) u = 0;
    return u & 0x80000000 ? (uint32_t)~u : u | 0x80000000;
}

static uint64_t double_key(uint64_t u) {
    if ((u & INT64_MAX) > 0x7ff0000000000000) return UINT64_MAX;
    if (u == (uint64_t)1 << 63) u = 0;
    return u >> 63 ? ~u : u | (uint64_t)1 << 63;
}

/* Key bits of a type. */
static int key_bits(int64_t type) {
    switch (type) {
    case DG_BOOL: case DG_I8: case DG_U8: return 8;
    case DG_I16: case DG_U16: return 16;
    case DG_I32: case DG_U32: case DG_F16: case DG_BF16: case DG_F32: return 32;
    default: return 64;
    }
}

/* Computes the keys of n elements, `step` apart. Descending order flips them, except for NaN. */
static void read_keys(const dg_sorting *p, const void *x, Pair *out) {
    uint64_t top = key_bits(p->type) == 64 ? UINT64_MAX : ((uint64_t)1 << key_bits(p->type)) - 1;
    int64_t step = p->inner;
#define LOOP(T, KEY, NAN_)                                                          \
    for (int64_t i = 0; i < p->n; i++) {                                            \
        T v = ((const T *)x)[i * step];                                             \
        uint64_t key = KEY;                                                         \
        if (p->descending && !(NAN_)) key = top - key;         \
        out[i] = (Pair){key, i};                                                    \
    }                                                                               \
    break;
    switch (p->type) {
    case DG_BOOL: case DG_U8: LOOP(uint8_t, v, 0)
    case DG_U16: LOOP(uint16_t, v, 0)
    case DG_U32: LOOP(uint32_t, v, 0)
    case DG_U64: LOOP(uint64_t, v, 0)
    case DG_I8: LOOP(int8_t, (uint8_t)v ^ 0x80u, 0)
    case DG_I16: LOOP(int16_t, (uint16_t)v ^ 0x8000u, 0)
    case DG_I32: LOOP(int32_t, (uint32_t)v ^ 0x80000000u, 0)
    case DG_I64: LOOP(int64_t, (uint64_t)v ^ (uint64_t)1 << 63, 0)
    case DG_F16: LOOP(uint16_t, float_key(dg_float_bits(f16_load(v))), key == top)
    case DG_BF16: LOOP(uint16_t, float_key(dg_float_bits(bf16_load(v))), key == top)
    case DG_F32: LOOP(uint32_t, float_key(v), key == top)
    case DG_F64: LOOP(uint64_t, double_key(v), key == top)
    }
#undef LOOP
}

static void insertion_sort(Pair *a, int64_t n) {
    for (int64_t i = 1; i < n; i++) {
        Pair v = a[i];
        int64_t k = i;
        for (; k > 0 && a[k - 1].key > v.key; k--) a[k] = a[k - 1];
        a[k] = v;
    }
}

/* Sorts a, with b as scratch; returns the one that holds the result. Skips digits that are equal in all keys. */
static Pair *radix_sort(Pair *a, Pair *b, int64_t n, int bits) {
    if (n <= 48) {
        insertion_sort(a, n);
        return a;
    }
    int digit = n > 100000 ? 11 : 8, passes = (bits + digit - 1) / digit;
    int64_t count[8][2048];
    uint64_t mask = ((uint64_t)1 << digit) - 1;
    memset(count, 0, sizeof count[0] * (size_t)passes);
    for (int64_t i = 0; i < n; i++)
        for (int pass = 0; pass < passes; pass++) count[pass][a[i].key >> (pass * digit) & mask]++;
    for (int pass = 0; pass < passes; pass++) {
        int64_t *c = count[pass], at = 0;
        if (dg_stop()) return a;
        if (c[a[0].key >> (pass * digit) & mask] == n) continue;
        for (uint64_t d = 0; d <= mask; d++) {
            int64_t here = c[d];
            c[d] = at;
            at += here;
        }
        for (int64_t i = 0; i < n; i++) b[c[a[i].key >> (pass * digit) & mask]++] = a[i];
        Pair *t = a;
        a = b;
        b = t;
    }
    return a;
}

/* The k smallest, in order, for small k: most elements fail the comparison with the k-th best so far. */
static void select_few(Pair *best, int64_t k, const Pair *a, int64_t n) {
    int64_t have = 0;
    for (int64_t i = 0; i < n; i++) {
        if (have == k && a[i].key >= best[k - 1].key) continue;
        int64_t at = have < k ? have++ : k - 1;
        for (; at > 0 && best[at - 1].key > a[i].key; at--) best[at] = best[at - 1];
        best[at] = a[i];
    }
}

typedef struct {
    const dg_sorting *p;
    char *values;
    int64_t *indices;
    const char *x;
    int64_t size;
    int *failed;
} Job;

static void sort_task(void **args, int64_t begin, int64_t end) {
    const Job *j = args[0];
    const dg_sorting *p = j->p;
    Pair *a = dg_alloc((size_t)p->n * 2 * sizeof(Pair)), *b = a + p->n;
    if (!a) {
        __atomic_store_n(j->failed, 1, __ATOMIC_RELAXED);
        return;
    }
    for (int64_t u = begin; u < end; u++) {
        int64_t o = u / p->inner, c = u % p->inner, from = o * p->n * p->inner + c, to = o * p->k * p->inner + c;
        read_keys(p, j->x + from * j->size, a);
        Pair *sorted = b;
        if (p->k <= 64 && p->k * 8 <= p->n) select_few(b, p->k, a, p->n);
        else sorted = radix_sort(a, b, p->n, key_bits(p->type));
        for (int64_t i = 0; i < p->k; i++) {
            j->indices[to + i * p->inner] = sorted[i].index;
            const char *v = j->x + (from + sorted[i].index * p->inner) * j->size;
            char *y = j->values + (to + i * p->inner) * j->size;
            switch (j->size) {
            case 1: *y = *v; break;
            case 2: memcpy(y, v, 2); break;
            case 4: memcpy(y, v, 4); break;
            case 8: memcpy(y, v, 8); break;
            }
        }
    }
    dg_free(a);
}

int dg_sort(const dg_sorting *p, void *values, void *indices, const void *x) {
    static const int64_t sizes[DG_TYPES] = {1, 1, 2, 4, 8, 1, 2, 4, 8, 2, 2, 4, 8, 8, 16};
    int failed = 0;
    if (p->type >= DG_C64) return DG_NO_KERNEL;
    if (p->n == 0 || p->k == 0) return DG_OK;
    Job j = {p, values, indices, x, sizes[p->type], &failed};
    dg_begin_stoppable();
    dg_parallel_for(sort_task, (void *[]){&j}, p->outer * p->inner, DG_MAX(1, 2048 / p->n));
    return dg_end_stoppable(failed ? DG_NO_MEMORY : DG_OK);
}
