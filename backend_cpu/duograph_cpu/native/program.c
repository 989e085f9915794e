/* The interpreter of linked programs: runs prepared kernels over numbered slots, with loops and branches, in one call from Python. */
#define _GNU_SOURCE
#include "common.h"

#include <stdlib.h>
#include <time.h>

/* An instruction is an opcode and its operands, as int32 words. Slots index the table of pointers. native_program.py has the same order. */
enum {
    CALL,            /* kernel, n, slots: f(constants, slots...) */
    LIST,            /* kernel, n, slots: f(constants, {slots}) */
    VARIADIC,        /* kernel, n, slots: f(constants, slots[0], {slots[1..]}) */
    COPY,            /* from, to: copy bytes */
    ALIAS,           /* from, to: share the pointer */
    RESET,           /* slot: point to its arena buffer again */
    ROTATE,          /* carry, next, spare: see backend/program.py, Loop */
    JUMP_IF_ZERO,    /* slot, target: jump if the byte is 0 */
    JUMP,            /* target */
    LOOP_BACK,       /* target: end of a loop iteration */
    SWITCH,          /* slot, type, n, targets: switch */
    STACK_NEW,       /* stack: a new, empty one */
    STACK_PUSH,      /* below, stack, n, slots: push a frame with copies of these */
    STACK_POP,       /* stack, below, left, n, slots: pop a frame; the slots point into it. left: whether the stack below is not empty */
    STACK_HAS_FRAME, /* stack, slot: whether the stack is not empty */
    END,
};

#define MOST_PREFETCH (1 << 19) /* bytes */
#define MOST 10 /* arguments of a kernel; native_program.py links nothing longer */

typedef int (*Function)();
typedef const void *P;

static int call(Function f, P c, void **a, int n) {
    switch (n) {
#define ONE(k, ...) case k: return ((int (*)(P, __VA_ARGS__))f)
    ONE(1, P)(c, a[0]);
    ONE(2, P, P)(c, a[0], a[1]);
    ONE(3, P, P, P)(c, a[0], a[1], a[2]);
    ONE(4, P, P, P, P)(c, a[0], a[1], a[2], a[3]);
    ONE(5, P, P, P, P, P)(c, a[0], a[1], a[2], a[3], a[4]);
    ONE(6, P, P, P, P, P, P)(c, a[0], a[1], a[2], a[3], a[4], a[5]);
    ONE(7, P, P, P, P, P, P, P)(c, a[0], a[1], a[2], a[3], a[4], a[5], a[6]);
    ONE(8, P, P, P, P, P, P, P, P)(c, a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7]);
    ONE(9, P, P, P, P, P, P, P, P, P)(c, a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8]);
    ONE(10, P, P, P, P, P, P, P, P, P, P)(c, a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9]);
    }
    return DG_NO_KERNEL;
}

static int64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static _Atomic int64_t crossings;
int64_t dg_program_crossings(void) { return crossings; }

static int64_t chosen(const void *index, int type, int64_t n) {
    int64_t i = 0;
    switch (type) {
    case DG_BOOL: case DG_U8: i = *(const uint8_t *)index; break;
    case DG_I8: i = *(const int8_t *)index; break;
    case DG_I16: i = *(const int16_t *)index; break;
    case DG_U16: i = *(const uint16_t *)index; break;
    case DG_I32: i = *(const int32_t *)index; break;
    case DG_U32: i = *(const uint32_t *)index; break;
    case DG_I64: i = *(const int64_t *)index; break;
    case DG_U64: i = *(const uint64_t *)index > INT64_MAX ? INT64_MAX : (int64_t)*(const uint64_t *)index; break;
    }
    return i < 0 ? 0 : i >= n ? n - 1 : i;
}

/* A frame of a stack, followed by its values at multiples of 64 bytes. */
typedef struct Frame {
    struct Frame *below, *next; /* next: list of all frames of the run */
    int64_t large;
    char pad[40];
} Frame;

_Static_assert(sizeof(Frame) == 64, "values must stay aligned");

/* A stack inside a frame is stored as its pointer; native_program.py gives it the size -1. */
#define STACK (-1)

static int64_t padded(int64_t bytes) { return bytes == STACK ? 64 : (bytes + 63) & ~(int64_t)63; }

static int push(const dg_program *p, void **slots, const int32_t *c) {
    int64_t bytes = sizeof(Frame);
    int n = c[3];
    for (int i = 0; i < n; i++) bytes += padded(p->sizes[c[4 + i]]);
    int large = bytes > 4096;
    Frame *frame = 0;
    if (large) frame = dg_alloc((size_t)bytes);
    else if (posix_memalign((void **)&frame, 64, (size_t)bytes)) frame = 0;
    if (!frame) return DG_NO_MEMORY;
    *frame = (Frame){.below = slots[c[1]], .next = slots[p->slots], .large = large};
    slots[p->slots] = frame;
    char *at = (char *)(frame + 1);
    for (int i = 0; i < n; i++) {
        int64_t size = p->sizes[c[4 + i]];
        if (size == STACK) *(void **)at = slots[c[4 + i]];
        else dg_copy(at, slots[c[4 + i]], size);
        at += padded(p->sizes[c[4 + i]]);
    }
    slots[c[2]] = frame;
    return DG_OK;
}

static void pop(const dg_program *p, void **slots, const int32_t *c) {
    Frame *frame = slots[c[1]];
    slots[c[2]] = frame->below;
    *(uint8_t *)slots[c[3]] = frame->below != 0;
    char *at = (char *)(frame + 1);
    for (int i = 0; i < c[4]; i++) {
        slots[c[5 + i]] = p->sizes[c[5 + i]] == STACK ? *(void **)at : at;
        at += padded(p->sizes[c[5 + i]]);
    }
}

void dg_program_end(void **stacks) {
    for (Frame *frame = *stacks, *next; frame; frame = next) {
        next = frame->next;
        if (frame->large) dg_free(frame);
        else free(frame);
    }
    *stacks = 0;
}

_Thread_local dg_prefetch_hint dg_next_constant;

/* The prefetch hint of an instruction: its largest constant operand, up to MOST_PREFETCH bytes. */
static dg_prefetch_hint constants_of(const dg_program *p, void **slots, const int32_t *c) {
    dg_prefetch_hint found = {0, 0};
    if (*c != CALL && *c != LIST && *c != VARIADIC) return found;
    for (int i = 0; i < c[2]; i++) {
        int32_t slot = c[3 + i];
        if (p->offsets[slot] < 0 && p->sizes[slot] > found.bytes && p->sizes[slot] <= MOST_PREFETCH) found = (dg_prefetch_hint){slots[slot], p->sizes[slot]};
    }
    return found;
}

static int64_t run(const dg_program *p, void **slots, void **given, char *arena, int64_t at, dg_times *times);

int64_t dg_program_run(const dg_program *p, void **slots, void **given, char *arena, int64_t at) {
    return dg_program_timed(p, slots, given, arena, at, 0);
}

int64_t dg_program_timed(const dg_program *p, void **slots, void **given, char *arena, int64_t at, dg_times *times) {
    crossings++;
    dg_begin_stoppable(); /* the time of all its kernels counts */
    int64_t found = run(p, slots, given, arena, at, times);
    dg_end_stoppable(DG_OK);
    if (found >= 0) dg_program_end(slots + p->slots);
    return found;
}

static int64_t run(const dg_program *p, void **slots, void **given, char *arena, int64_t at, dg_times *times) {
    const int32_t *code = p->code;
    if (at == 0)
        for (int64_t i = 0; i < p->slots; i++) {
            int64_t offset = p->offsets[i];
            slots[i] = offset >= 0 ? arena + offset : offset < -p->given ? p->constants[-offset - 1 - p->given] : given[-offset - 1];
        }
    int64_t started = 0;
    void *args[MOST];
    const int32_t *c = code + at;
    for (;;) {
        switch (*c) {
        case CALL: case LIST: case VARIADIC: {
            const dg_native *k = p->kernels + c[1];
            int n = c[2];
            const int32_t *which = c + 3;
            void **a = n <= MOST ? args : malloc(sizeof(void *) * (size_t)n);
            if (!a) return (int64_t)c[1] << 8 | DG_NO_MEMORY;
            int64_t *row = times ? times->rows + 3 * times->count++ : 0;
            if (row) {
                row[0] = times->numbers[c - code];
                row[1] = row[2] = now();
            }
            for (int i = 0; i < n; i++) a[i] = slots[which[i]];
            dg_next_constant = constants_of(p, slots, c + 3 + n);
            int result = *c == CALL ? call((Function)k->f, k->constants, a, n)
                       : *c == LIST ? ((int (*)(P, void **))k->f)(k->constants, a)
                                    : ((int (*)(P, void *, void **))k->f)(k->constants, a[0], a + 1);
            if (a != args) free(a);
            dg_next_constant.bytes = 0;
            if (row) row[2] = now();
            if (result && k->checked) return (int64_t)c[1] << 8 | result;
            c += 3 + n;
            if (times && times->count == times->room) return -(int64_t)(c - code); /* the caller takes the rows and goes on */
            break;
        }
        case COPY:
            dg_copy(slots[c[2]], slots[c[1]], p->sizes[c[2]]);
            c += 3;
            break;
        case ALIAS:
            slots[c[2]] = slots[c[1]];
            c += 3;
            break;
        case RESET:
            slots[c[1]] = arena + p->offsets[c[1]];
            c += 2;
            break;
        case ROTATE: {
            void *old = slots[c[3]] ? slots[c[3]] : slots[c[1]];
            slots[c[1]] = slots[c[2]];
            slots[c[2]] = old;
            slots[c[3]] = 0;
            c += 4;
            break;
        }
        case JUMP_IF_ZERO:
            c = *(const uint8_t *)slots[c[1]] ? c + 3 : code + c[2];
            break;
        case JUMP:
            c = code + c[1];
            break;
        case LOOP_BACK: /* a long loop returns to Python now and then, so that interrupts are handled */
            c = code + c[1];
            if (!started) started = now();
            else if (now() - started > 100000000) return -(int64_t)(c - code);
            break;
        case SWITCH:
            c = code + c[4 + chosen(slots[c[1]], c[2], c[3])];
            break;
        case STACK_NEW:
            slots[c[1]] = 0;
            c += 2;
            break;
        case STACK_PUSH:
            if (push(p, slots, c)) return DG_NO_MEMORY;
            c += 4 + c[3];
            break;
        case STACK_POP:
            pop(p, slots, c);
            c += 5 + c[4];
            break;
        case STACK_HAS_FRAME:
            *(uint8_t *)slots[c[2]] = slots[c[1]] != 0;
            c += 3;
            break;
        default:
            return 0;
        }
    }
}
