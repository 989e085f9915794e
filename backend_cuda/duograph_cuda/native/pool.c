/* A caching allocator of device memory.
 *
 * It takes segments from the driver and cuts blocks from them; the best fitting free block serves a request, and free
 * neighbours are joined. All work runs on one stream, so a freed block may be used again at once. Small blocks have
 * segments of their own, so that they keep no large segment from being returned. */
#include <stdlib.h>
#include "native.h"

/* Blocks are multiples of this many bytes, the alignment that libraries ask for. */
#define GRANULE 512
/* Free blocks are listed by size: four lists for each power of two. */
#define LISTS 256
/* How many blocks of a list are compared to find the one that fits best. */
#define COMPARED 64

struct Block {
    unsigned long long address, size, asked;
    Block *before, *after;   /* the neighbours in the segment */
    Block *previous, *next;  /* in the list of free blocks */
    char used, small;
};

struct Pool {
    PyObject_HEAD
    PyObject *take; /* from (bytes of the block, bytes asked for, what) to (address, bytes) of a new segment */
    PyObject *lender;
    unsigned long borrower; /* the thread whose requests go to `lender` */
    Block *free[2][LISTS];
    uint64_t listed[2][LISTS / 64]; /* which lists have blocks */
    unsigned long long small_limit, reserved, in_use, peak, allocations;
    char caching;
    /* With several streams, released blocks wait in `deferred`, linked by `next`; `collect` moves them to `collected`, and
     * `settle` frees those. `join` is called if more than `kept` bytes wait and no block serves a request. */
    PyObject *join;
    Block *deferred, *collected;
    unsigned long long waiting, kept;
};

PyTypeObject *Memory_type, *Pool_type;

/* ---- lists of free blocks ------------------------------------------------------------------------------------- */

/* Number of the highest bit that is set; n is not 0. */
static int top_bit(unsigned long long n) {
#ifdef __GNUC__
    return 63 - __builtin_clzll(n);
#else
    int bit = 0;
    while (n >>= 1) bit++;
    return bit;
#endif
}

static int list_of(unsigned long long size) {
    int bit = top_bit(size | 4);
    return bit * 4 + (int)((size >> (bit - 2)) & 3);
}

static void insert(Pool *pool, Block *block) {
    int k = list_of(block->size);
    Block **list = &pool->free[(int)block->small][k];
    block->used = 0;
    block->previous = NULL;
    block->next = *list;
    if (*list) (*list)->previous = block;
    *list = block;
    pool->listed[(int)block->small][k / 64] |= 1ull << (k % 64);
}

static void take_out(Pool *pool, Block *block) {
    int k = list_of(block->size), small = block->small;
    if (block->previous) block->previous->next = block->next;
    else pool->free[small][k] = block->next;
    if (block->next) block->next->previous = block->previous;
    if (!pool->free[small][k]) pool->listed[small][k / 64] &= ~(1ull << (k % 64));
}

/* Return the best of the first blocks of a list that are large enough, or NULL. */
static Block *best_of(Block *list, unsigned long long size) {
    Block *best = NULL;
    int count = 0;
    for (Block *b = list; b && count < COMPARED; b = b->next, count++) {
        if (b->size < size || (best && b->size >= best->size)) continue;
        best = b;
        if (b->size == size) break;
    }
    return best;
}

static Block *find(Pool *pool, int small, unsigned long long size) {
    int k = list_of(size);
    Block *best = best_of(pool->free[small][k], size);
    if (best) return best;
    for (int word = ++k / 64; word < LISTS / 64; word++, k = word * 64) {
        uint64_t rest = pool->listed[small][word] >> (k % 64);
        if (!rest) continue;
        while (!(rest & 1)) rest >>= 1, k++;
        return best_of(pool->free[small][k], size);
    }
    return NULL;
}

/* ---- blocks ------------------------------------------------------------------------------------------------------ */

/* The last block that was joined to another: the next one to be cut takes its place. */
static Block *spare;

static Block *new_block(unsigned long long address, unsigned long long size, int small) {
    Block *made = spare ? memset(spare, 0, sizeof *spare) : calloc(1, sizeof *made);
    spare = NULL;
    if (!made) {
        PyErr_NoMemory();
        return NULL;
    }
    made->address = address;
    made->size = size;
    made->small = (char)small;
    return made;
}

/* Cut a block to a size, if what remains is worth a block of its own. */
static int cut(Pool *pool, Block *block, unsigned long long size) {
    unsigned long long rest = block->size - size;
    if (!pool->caching || rest < GRANULE || (!block->small && rest <= pool->small_limit)) return 0;
    Block *remaining = new_block(block->address + size, rest, block->small);
    if (!remaining) return -1;
    remaining->before = block;
    remaining->after = block->after;
    if (block->after) block->after->before = remaining;
    block->after = remaining;
    block->size = size;
    insert(pool, remaining);
    return 0;
}

static void join(Block *block, Block *after) {
    block->size += after->size;
    block->after = after->after;
    if (after->after) after->after->before = block;
    free(spare);
    spare = after;
}

static void free_block(Pool *pool, Block *block) {
    if (block->after && !block->after->used) {
        take_out(pool, block->after);
        join(block, block->after);
    }
    if (block->before && !block->before->used) {
        Block *before = block->before;
        take_out(pool, before);
        join(before, block);
        block = before;
    }
    insert(pool, block);
}

static void release(Pool *pool, Block *block) {
    pool->in_use -= block->asked;
    if (!pool->join) {
        free_block(pool, block);
        return;
    }
    block->next = pool->deferred;
    pool->deferred = block;
    pool->waiting += block->size;
}

/* Ask the driver for a segment; return it as one block that is in no list. */
static Block *segment(Pool *pool, unsigned long long size, unsigned long long nbytes, PyObject *what) {
    unsigned long long address, got;
    PyObject *answer = PyObject_CallFunction(pool->take, "KKO", size, nbytes, what);
    if (!answer) return NULL;
    if (!PyTuple_Check(answer)) {
        PyErr_Format(PyExc_TypeError, "a segment: got %R; wanted (address, bytes)", answer);
        Py_DECREF(answer);
        return NULL;
    }
    int fits = PyArg_ParseTuple(answer, "KK", &address, &got);
    Py_DECREF(answer);
    if (!fits) return NULL;
    Block *made = new_block(address, got, nbytes <= pool->small_limit);
    if (made) pool->reserved += got;
    return made;
}

static PyObject *new_memory(unsigned long long pointer, unsigned long long nbytes, PyObject *owner, Block *block) {
    Memory *made = PyObject_New(Memory, Memory_type);
    if (!made) return NULL;
    made->pointer = pointer;
    made->nbytes = nbytes;
    made->owner = owner;
    Py_XINCREF(owner);
    made->block = block;
    made->weak = NULL;
    return (PyObject *)made;
}

PyObject *allocated(PyObject *of, unsigned long long nbytes, PyObject *what) {
    Pool *pool = (Pool *)of;
    if (nbytes == 0) return new_memory(0, 0, NULL, NULL);
    if (pool->lender && pool->borrower == PyThread_get_thread_ident())
        return PyObject_CallMethod(pool->lender, "allocate", "KO", nbytes, what);
    unsigned long long size = pool->caching ? (nbytes + GRANULE - 1) / GRANULE * GRANULE : nbytes;
    Block *block = pool->caching ? find(pool, nbytes <= pool->small_limit, size) : NULL;
    if (!block && pool->join && pool->waiting > pool->kept) {
        PyObject *answer = PyObject_CallNoArgs(pool->join);
        if (!answer) return NULL;
        Py_DECREF(answer);
        block = pool->caching ? find(pool, nbytes <= pool->small_limit, size) : NULL;
    }
    if (block) take_out(pool, block);
    else if (!(block = segment(pool, size, nbytes, what))) return NULL;
    block->used = 1;
    if (cut(pool, block, size)) {
        block->asked = 0;
        release(pool, block);
        return NULL;
    }
    block->asked = nbytes;
    pool->in_use += nbytes;
    if (pool->in_use > pool->peak) pool->peak = pool->in_use;
    pool->allocations++;
    PyObject *made = new_memory(block->address, nbytes, (PyObject *)pool, block);
    if (!made) release(pool, block);
    return made;
}

static PyObject *Pool_allocate(Pool *pool, PyObject *const *arguments, Py_ssize_t count) {
    if (count != 2) return PyErr_Format(PyExc_TypeError, "allocate: got %zd arguments; wanted nbytes, what", count);
    unsigned long long nbytes = PyLong_AsUnsignedLongLong(arguments[0]);
    if (nbytes == (unsigned long long)-1 && PyErr_Occurred()) return NULL;
    return allocated((PyObject *)pool, nbytes, arguments[1]);
}

/* ---- the type Pool ------------------------------------------------------------------------------------------------ */

static int Pool_init(Pool *pool, PyObject *arguments, PyObject *named) {
    static char *names[] = {"take", "caching", "small_limit", NULL};
    PyObject *take;
    int caching;
    unsigned long long limit;
    if (!PyArg_ParseTupleAndKeywords(arguments, named, "OpK", names, &take, &caching, &limit)) return -1;
    set_reference(&pool->take, take);
    pool->caching = (char)caching;
    pool->small_limit = limit;
    return 0;
}

/* Remove the segments of which no block is used; return their addresses and bytes. */
static PyObject *Pool_trim(Pool *pool, PyObject *unused) {
    PyObject *found = PyList_New(0);
    if (!found) return NULL;
    for (int small = 0; small < 2; small++)
        for (int k = 0; k < LISTS; k++)
            for (Block *b = pool->free[small][k], *next; b; b = next) {
                next = b->next;
                if (b->before || b->after) continue;
                PyObject *pair = Py_BuildValue("KK", b->address, b->size);
                if (!pair || PyList_Append(found, pair)) {
                    Py_XDECREF(pair);
                    return found; /* the others are found the next time */
                }
                Py_DECREF(pair);
                take_out(pool, b);
                pool->reserved -= b->size;
                free(b);
            }
    return found;
}

static PyObject *Pool_lend(Pool *pool, PyObject *lender) {
    PyObject *before = pool->lender;
    pool->borrower = PyThread_get_thread_ident();
    pool->lender = lender == Py_None ? NULL : lender;
    Py_XINCREF(pool->lender);
    return before ? before : Py_NewRef(Py_None);
}

static PyObject *Pool_defer(Pool *pool, PyObject *arguments) {
    PyObject *join;
    if (!PyArg_ParseTuple(arguments, "KO", &pool->kept, &join)) return NULL;
    set_reference(&pool->join, join);
    Py_RETURN_NONE;
}

static PyObject *Pool_collect(Pool *pool, PyObject *unused) {
    while (pool->deferred) {
        Block *block = pool->deferred;
        pool->deferred = block->next;
        block->next = pool->collected;
        pool->collected = block;
    }
    pool->waiting = 0;
    Py_RETURN_NONE;
}

static PyObject *Pool_settle(Pool *pool, PyObject *unused) {
    while (pool->collected) {
        Block *block = pool->collected;
        pool->collected = block->next;
        free_block(pool, block);
    }
    Py_RETURN_NONE;
}

static int Pool_traverse(Pool *pool, visitproc visit, void *arg) {
    Py_VISIT(Py_TYPE((PyObject *)pool));
    Py_VISIT(pool->take);
    Py_VISIT(pool->lender);
    Py_VISIT(pool->join);
    return 0;
}

static int Pool_clear(Pool *pool) {
    Py_CLEAR(pool->take);
    Py_CLEAR(pool->lender);
    Py_CLEAR(pool->join);
    return 0;
}

/* The device's memory goes with its context: nothing is returned to the driver here. */
static void Pool_dealloc(Pool *pool) {
    PyTypeObject *type = Py_TYPE((PyObject *)pool);
    PyObject_GC_UnTrack(pool);
    Pool_clear(pool);
    for (int small = 0; small < 2; small++)
        for (int k = 0; k < LISTS; k++)
            for (Block *b = pool->free[small][k], *next; b; b = next) {
                next = b->next;
                free(b);
            }
    freefunc release_object = PyType_GetSlot(type, Py_tp_free);
    release_object(pool);
    Py_DECREF(type);
}

static PyMethodDef Pool_methods[] = {
    {"defer", (PyCFunction)Pool_defer, METH_VARARGS,
     "Keep released blocks from now on; call `join` if more than `limit` bytes are kept and a request finds no block."},
    {"collect", (PyCFunction)Pool_collect, METH_NOARGS, "Note which kept blocks the next `settle` frees."},
    {"settle", (PyCFunction)Pool_settle, METH_NOARGS, "Free the blocks that `collect` noted."},
    {"allocate", (PyCFunction)(void (*)(void))Pool_allocate, METH_FASTCALL,
     "Return a Memory of `nbytes` bytes; `what` names the request in errors."},
    {"trim", (PyCFunction)Pool_trim, METH_NOARGS, "Remove all unused segments; return their (address, bytes)."},
    {"lend", (PyCFunction)Pool_lend, METH_O,
     "Serve this thread's requests by an object's `allocate`, or by the pool for None; return the former object."},
    {NULL}};
static PyMemberDef Pool_members[] = {
    {"reserved", T_ULONGLONG, offsetof(Pool, reserved), READONLY, "bytes of all segments"},
    {"in_use", T_ULONGLONG, offsetof(Pool, in_use), READONLY, "bytes asked for and not released"},
    {"peak", T_ULONGLONG, offsetof(Pool, peak), 0, "the highest `in_use`"},
    {"allocations", T_ULONGLONG, offsetof(Pool, allocations), READONLY, "number of requests served"},
    {NULL}};
static PyType_Slot Pool_slots[] = {
    {Py_tp_doc, "Caching allocator of device memory."},
    {Py_tp_init, Pool_init},
    {Py_tp_new, PyType_GenericNew},
    {Py_tp_dealloc, Pool_dealloc},
    {Py_tp_traverse, Pool_traverse},
    {Py_tp_clear, Pool_clear},
    {Py_tp_methods, Pool_methods},
    {Py_tp_members, Pool_members},
    {0}};
static PyType_Spec Pool_spec = {"duograph_cuda._native.Pool", sizeof(Pool), 0,
                                Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, Pool_slots};

/* ---- the type Memory ---------------------------------------------------------------------------------------------- */

static PyObject *Memory_new(PyTypeObject *type, PyObject *arguments, PyObject *named) {
    static char *names[] = {"pointer", "nbytes", "owner", NULL};
    unsigned long long pointer, nbytes;
    PyObject *owner = NULL;
    if (!PyArg_ParseTupleAndKeywords(arguments, named, "KK|O", names, &pointer, &nbytes, &owner)) return NULL;
    return new_memory(pointer, nbytes, owner, NULL);
}

static void drop(Memory *memory) {
    PyObject *owner = memory->owner;
    if (memory->block) release((Pool *)owner, memory->block);
    memory->block = NULL;
    memory->owner = NULL;
    Py_XDECREF(owner);
}

static PyObject *Memory_move(Memory *memory, PyObject *other) {
    if (!PyObject_TypeCheck(other, Memory_type))
        return PyErr_Format(PyExc_TypeError, "move: got %R; wanted a Memory", other);
    Py_INCREF(other);
    drop(memory);
    memory->pointer = ((Memory *)other)->pointer;
    memory->owner = other;
    Py_RETURN_NONE;
}

static PyObject *Memory_share(Memory *memory, PyObject *unused) {
    PyObject *made = new_memory(memory->pointer, memory->nbytes, memory->owner, memory->block);
    if (!made || !memory->block) return made;
    PyObject *pool = memory->owner;
    memory->block = NULL;
    memory->owner = made;
    Py_INCREF(made);
    Py_DECREF(pool);
    return made;
}

static void Memory_dealloc(Memory *memory) {
    PyTypeObject *type = Py_TYPE((PyObject *)memory);
    if (memory->weak) PyObject_ClearWeakRefs((PyObject *)memory);
    drop(memory);
    PyObject_Free(memory);
    Py_DECREF(type);
}

static PyMethodDef Memory_methods[] = {
    {"move", (PyCFunction)Memory_move, METH_O, "Refer to the memory of another handle from now on."},
    {"share", (PyCFunction)Memory_share, METH_NOARGS, "Return a second handle, which keeps the memory after a `move` of this one."},
    {NULL}};
static PyMemberDef Memory_members[] = {
    {"pointer", T_ULONGLONG, offsetof(Memory, pointer), READONLY, "address on the device; 0 for no bytes"},
    {"nbytes", T_ULONGLONG, offsetof(Memory, nbytes), READONLY, "size in bytes"},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(Memory, weak), READONLY, NULL},
    {NULL}};
static PyObject *Memory_borrowed(Memory *memory, void *unused) {
    return PyBool_FromLong(memory->owner && PyObject_TypeCheck(memory->owner, Memory_type));
}

static PyObject *Memory_exclusive(Memory *memory, void *unused) {
    return PyBool_FromLong(memory->block || !memory->nbytes);
}

static PyGetSetDef Memory_getset[] = {
    {"exclusive", (getter)Memory_exclusive, NULL, "whether no object but this handle has the memory", NULL},
    {"borrowed", (getter)Memory_borrowed, NULL, "whether the memory is that of another handle", NULL},
    {NULL}};
static PyType_Slot Memory_slots[] = {
    {Py_tp_doc, "Handle that owns device memory; Memory(pointer, nbytes, owner) shares that of `owner`."},
    {Py_tp_new, Memory_new},
    {Py_tp_dealloc, Memory_dealloc},
    {Py_tp_methods, Memory_methods},
    {Py_tp_getset, Memory_getset},
    {Py_tp_members, Memory_members},
    {0}};
static PyType_Spec Memory_spec = {"duograph_cuda._native.Memory", sizeof(Memory), 0, Py_TPFLAGS_DEFAULT, Memory_slots};

int pool_types(PyObject *module) {
    return add_type(module, "Memory", &Memory_spec, &Memory_type) || add_type(module, "Pool", &Pool_spec, &Pool_type);
}
