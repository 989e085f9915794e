/* What an emulated kernel and the machine that runs it know of each other. Plain C++, no #include. */

struct uint3 { unsigned x, y, z; };
typedef uint3 dim3;

/* One warp exchanges values through slots: one for each lane, of at most so many bytes. */
#define DG_LANES 32
#define DG_SLOT 64

struct dg_machine {
    uint3 thread, block;
    dim3 block_size, grid_size;
    unsigned char *dynamic_shared;
    /* wait for all threads of the block; `line` tells places apart */
    void (*barrier)(int line);
    /* wait for all lanes in `mask`, each giving some bytes; the slots of the warp */
    const unsigned char *(*exchange)(int line, unsigned mask, const void *give, unsigned bytes);
    /* says what is wrong and ends the launch */
    void (*fail)(const char *text);
};

struct dg_kernel {
    void (*run)(void **args);
    char *shared_begin, *shared_end; /* static shared memory of the library */
    char *waits_begin, *waits_end;   /* empty when no thread of the library's kernels waits for another */
    dg_machine **machine;
    int arity;
};
