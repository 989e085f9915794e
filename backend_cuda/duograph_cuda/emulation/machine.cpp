/* Runs kernels of the emulated device: one fibre for each thread of a block, one block after the other.
 *
 * A fibre runs until it waits for others, at a barrier or in an exchange of its warp; then the next one does, in an
 * order that is shuffled for each block and each round, from a seed. What a device would leave to chance is bad here on
 * purpose: shared memory holds NaN patterns when a block begins, and blocks run in shuffled order too. A barrier that
 * some threads do not reach, or lanes of a warp that wait at different places, end the launch with a message.
 *
 * Only one fibre runs at a time, so races between threads show only where the order matters.
 */
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/mman.h>
#include "machine.h"

namespace {

const unsigned most_threads = 1024;
const size_t stack_bytes = 128 << 10;

enum State { ready, at_barrier, in_exchange, returned };

struct Fibre {
    void *stack_pointer;
    State state;
    int line;
    unsigned mask;
    unsigned turn; /* of the exchanges of its warp: which half of the slots */
};

dg_machine machine;
Fibre fibres[most_threads];
unsigned char slots[most_threads / DG_LANES][2][DG_LANES][DG_SLOT];
char *stacks;
void *scheduler_stack;
unsigned current, threads;
void (*running)(void **);
void **arguments;
char problem[512];
uint64_t random_state = 1;

uint32_t random_number(uint32_t below) {
    random_state = random_state * 6364136223846793005ull + 1442695040888963407ull;
    return (uint32_t)(((random_state >> 33) * below) >> 31);
}

/* ---- fibres ---------------------------------------------------------------------------------------------- */

extern "C" void dg_switch(void **from, void *to);

#if defined(__x86_64__)
__asm__(
    ".text\n.globl dg_switch\n.hidden dg_switch\n.type dg_switch,@function\ndg_switch:\n"
    "    pushq %rbp\n    pushq %rbx\n    pushq %r12\n    pushq %r13\n    pushq %r14\n    pushq %r15\n"
    "    movq %rsp, (%rdi)\n    movq %rsi, %rsp\n"
    "    popq %r15\n    popq %r14\n    popq %r13\n    popq %r12\n    popq %rbx\n    popq %rbp\n"
    "    ret\n.size dg_switch,.-dg_switch\n");

void body();
void *fresh(char *stack) {
    void **top = (void **)(stack + stack_bytes);
    *--top = nullptr;           /* the stack is aligned as after a call */
    *--top = (void *)&body;     /* where the first switch returns to */
    for (int k = 0; k < 6; k++) *--top = nullptr;
    return top;
}
#elif defined(__aarch64__)
__asm__(
    ".text\n.globl dg_switch\n.hidden dg_switch\n.type dg_switch,%function\ndg_switch:\n"
    "    sub sp, sp, #160\n"
    "    stp x19, x20, [sp, #0]\n    stp x21, x22, [sp, #16]\n    stp x23, x24, [sp, #32]\n"
    "    stp x25, x26, [sp, #48]\n    stp x27, x28, [sp, #64]\n    stp x29, x30, [sp, #80]\n"
    "    stp d8, d9, [sp, #96]\n    stp d10, d11, [sp, #112]\n    stp d12, d13, [sp, #128]\n"
    "    stp d14, d15, [sp, #144]\n"
    "    mov x9, sp\n    str x9, [x0]\n    mov sp, x1\n"
    "    ldp x19, x20, [sp, #0]\n    ldp x21, x22, [sp, #16]\n    ldp x23, x24, [sp, #32]\n"
    "    ldp x25, x26, [sp, #48]\n    ldp x27, x28, [sp, #64]\n    ldp x29, x30, [sp, #80]\n"
    "    ldp d8, d9, [sp, #96]\n    ldp d10, d11, [sp, #112]\n    ldp d12, d13, [sp, #128]\n"
    "    ldp d14, d15, [sp, #144]\n"
    "    add sp, sp, #160\n    ret\n");

void body();
void *fresh(char *stack) {
    void **top = (void **)(stack + stack_bytes - 160);
    memset(top, 0, 160);
    top[11] = (void *)&body; /* x30 */
    return top;
}
#else
#error "the emulated CUDA device has no fibres for this processor"
#endif

void leave() { dg_switch(&fibres[current].stack_pointer, scheduler_stack); }

void body() {
    running(arguments);
    fibres[current].state = returned;
    leave();
    abort(); /* a fibre that returned is not run again */
}

/* ---- what kernels call ------------------------------------------------------------------------------------- */

void barrier(int line) {
    fibres[current].state = at_barrier;
    fibres[current].line = line;
    leave();
}

const unsigned char *exchange(int line, unsigned mask, const void *give, unsigned bytes) {
    Fibre &f = fibres[current];
    unsigned char (*half)[DG_SLOT] = slots[current / DG_LANES][f.turn & 1];
    memcpy(half[current % DG_LANES], give, bytes);
    f.turn++;
    f.state = in_exchange;
    f.line = line;
    f.mask = mask;
    leave();
    return half[0];
}

void fail(const char *text) {
    if (!problem[0]) snprintf(problem, sizeof problem, "%s", text);
    leave();
}

/* ---- the scheduler ----------------------------------------------------------------------------------------- */

void place(unsigned t) {
    current = t;
    machine.thread.x = t % machine.block_size.x;
    machine.thread.y = t / machine.block_size.x % machine.block_size.y;
    machine.thread.z = t / machine.block_size.x / machine.block_size.y;
}

void shuffle(unsigned *order, unsigned n) {
    for (unsigned k = n; k > 1; k--) {
        unsigned other = random_number(k), kept = order[k - 1];
        order[k - 1] = order[other];
        order[other] = kept;
    }
}

/* Release a warp when all its lanes wait in an exchange at one place. */
bool release_warp(unsigned warp) {
    unsigned first = warp * DG_LANES, n = threads - first < DG_LANES ? threads - first : DG_LANES;
    unsigned mask = n == DG_LANES ? 0xffffffffu : (1u << n) - 1u;
    for (unsigned t = first; t < first + n; t++)
        if (fibres[t].state != in_exchange) return false;
    for (unsigned t = first; t < first + n; t++) {
        if (fibres[t].line != fibres[first].line || (fibres[t].mask & mask) != mask) {
            snprintf(problem, sizeof problem,
                     "lanes of warp %u wait for each other at different places (lines %d and %d, masks %08x and %08x)",
                     warp, fibres[first].line, fibres[t].line, fibres[first].mask, fibres[t].mask);
            return false;
        }
    }
    for (unsigned t = first; t < first + n; t++) fibres[t].state = ready;
    return true;
}

void describe_deadlock() {
    static const char *const words[] = {"is ready", "waits at the barrier", "waits for its warp", "has returned"};
    unsigned other = 0;
    for (unsigned t = 1; t < threads; t++)
        if (fibres[t].state != fibres[0].state || fibres[t].line != fibres[0].line) other = t;
    snprintf(problem, sizeof problem,
             "not all threads of a block reach one barrier: thread 0 %s (line %d), thread %u %s (line %d), of %u",
             words[fibres[0].state], fibres[0].line, other, words[fibres[other].state], fibres[other].line, threads);
}

void run_block() {
    unsigned order[most_threads];
    for (unsigned t = 0; t < threads; t++) {
        order[t] = t;
        fibres[t].state = ready;
        fibres[t].line = 0;
        fibres[t].turn = 0;
        fibres[t].stack_pointer = fresh(stacks + t * stack_bytes);
    }
    unsigned left = threads;
    while (left && !problem[0]) {
        shuffle(order, threads);
        bool moved = false;
        unsigned waiting = 0;
        for (unsigned k = 0; k < threads && !problem[0]; k++) {
            Fibre &f = fibres[order[k]];
            if (f.state == ready) {
                place(order[k]);
                dg_switch(&scheduler_stack, f.stack_pointer);
                moved = true;
                if (f.state == returned) left--;
                if (f.state == in_exchange) release_warp(order[k] / DG_LANES);
            }
            waiting += f.state == at_barrier;
        }
        if (moved || problem[0] || !left) continue;
        bool one_place = waiting == threads;
        for (unsigned t = 1; t < threads && one_place; t++) one_place = fibres[t].line == fibres[0].line;
        if (!one_place) {
            describe_deadlock();
            return;
        }
        for (unsigned t = 0; t < threads; t++) fibres[t].state = ready;
    }
}

uint64_t common_divisor(uint64_t a, uint64_t b) { return b ? common_divisor(b, a % b) : a; }

/* A step that visits all of 0 .. n. */
uint64_t step_of(uint64_t n) {
    uint64_t step = n < 3 ? 1 : 1 + random_number((uint32_t)(n - 1 < 0x7fffffff ? n - 1 : 0x7fffffff));
    while (common_divisor(step, n) != 1) step++;
    return step;
}

}  // namespace

extern "C" void dg_seed(uint64_t seed) { random_state = seed * 2 + 1; }

extern "C" const char *dg_problem() { return problem; }

/* Run a kernel; 0, or 1 with a text in dg_problem(). */
extern "C" int dg_launch(const dg_kernel *kernel, const unsigned *grid, const unsigned *block, unsigned dynamic_bytes,
                         void **args) {
    static unsigned char dynamic[228 << 10] __attribute__((aligned(128)));
    if (!stacks) {
        void *made = mmap(nullptr, most_threads * stack_bytes, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (made == MAP_FAILED) {
            snprintf(problem, sizeof problem, "no memory for the stacks of the threads");
            return 1;
        }
        stacks = (char *)made;
    }
    problem[0] = 0;
    if (dynamic_bytes > sizeof dynamic) {
        snprintf(problem, sizeof problem, "%u bytes of dynamic shared memory; there are %zu", dynamic_bytes, sizeof dynamic);
        return 1;
    }
    const bool apart = kernel->waits_begin == kernel->waits_end;
    machine.barrier = barrier;
    machine.exchange = exchange;
    machine.fail = fail;
    machine.dynamic_shared = dynamic;
    machine.grid_size = {grid[0], grid[1], grid[2]};
    machine.block_size = {block[0], block[1], block[2]};
    threads = block[0] * block[1] * block[2];
    running = kernel->run;
    arguments = args;
    *kernel->machine = &machine;
    const uint64_t blocks = (uint64_t)grid[0] * grid[1] * grid[2];
    const uint64_t step = step_of(blocks);
    uint64_t at = random_number(0x7fffffff) % blocks;
    for (uint64_t k = 0; k < blocks && !problem[0]; k++, at = (at + step) % blocks) {
        machine.block.x = (unsigned)(at % grid[0]);
        machine.block.y = (unsigned)(at / grid[0] % grid[1]);
        machine.block.z = (unsigned)(at / grid[0] / grid[1]);
        memset(kernel->shared_begin, 0xff, (size_t)(kernel->shared_end - kernel->shared_begin));
        memset(dynamic, 0xff, dynamic_bytes);
        if (!apart) {
            run_block();
            continue;
        }
        const unsigned hop = (unsigned)step_of(threads);
        unsigned t = random_number(threads);
        for (unsigned j = 0; j < threads; j++, t = (t + hop) % threads) {
            place(t);
            running(args);
        }
    }
    return problem[0] != 0;
}
