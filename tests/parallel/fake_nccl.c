/* An NCCL for tests: ranks are processes or threads that exchange files, and device memory is host memory.
 *
 * It refuses what the library would refuse, and computes from nothing but what it was told. A call checks its arguments,
 * writes what this rank contributes into the folder of the communicator, and puts into the stream what takes the
 * contributions of the others. Where real ranks would hang or compute nonsense because they disagree, it reports an
 * error. Sums go from the last rank to the first: another order than that of duograph.
 *
 * FAKE_NCCL_FOLDER   where communicators have their folders
 * FAKE_NCCL_GPU      the GPU of this process; ranks with the same one are refused (default: each has its own)
 * FAKE_NCCL_VERSION  the version that it says it has
 * FAKE_NCCL_LOSES    a number: the contribution to this call (counted from 0) is lost, so that all ranks wait
 * FAKE_NCCL_BREAKS   the same, and the communicator has an asynchronous error
 */
#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { OK, CUDA_ERROR, SYSTEM, INTERNAL, INVALID, USAGE, REMOTE, IN_PROGRESS };
enum { SEND = 1, RECV, ALL_REDUCE, REDUCE_SCATTER, ALL_GATHER, BROADCAST };
enum { I8, U8, I32, U32, I64, U64, F16, F32, F64, BF16, E4M3, E5M2, TYPES };
static const int SIZES[TYPES] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};

typedef struct { char internal[128]; } unique_id;
typedef struct { size_t size; unsigned magic, version; int blocking, cga, least, most; const char *net; int share; } config;
typedef struct {
    int magic, rank, size, state, aborted, finalized, failed, calls, collectives;
    char folder[200], last[300];
    int sent[64], received[64]; /* messages by peer */
} comm;
typedef struct call { comm *c; int kind, type, op, peer; size_t count; const char *from; char *to; void *stream; int number; struct call *next; } call;
typedef struct { int kind, type, op, peer; size_t count; } header;

/* The device: runs a stream so far; puts work into one; says whether memory is a buffer. Absent ones do so at once. */
typedef int (*work)(void *);
static int (*run_stream)(void *);
static int (*put_work)(void *, work, void *);
static int (*is_buffer)(const void *, size_t);
void fake_nccl_device(int (*run)(void *), int (*put)(void *, work, void *), int (*buffer)(const void *, size_t)) {
    run_stream = run, put_work = put, is_buffer = buffer;
}
static int counted[BROADCAST + 1], live;
int fake_nccl_counted(int kind) { return counted[kind]; }
int fake_nccl_live(void) { return live; }

static __thread char last_error[300];
static __thread int depth;
static __thread call *first, *newest;

static int bad(comm *c, int status, const char *text) {
    snprintf(last_error, sizeof last_error, "%s", text);
    if (c) snprintf(c->last, sizeof c->last, "%s", text), c->failed = status;
    return status;
}
static int broken(comm *c, int status, const char *text) { return c->state = bad(c, status, text); }

int ncclGetVersion(int *version) {
    const char *said = getenv("FAKE_NCCL_VERSION");
    *version = said ? atoi(said) : 23203;
    return OK;
}
const char *ncclGetErrorString(int status) {
    static const char *const NAMES[] = {"no error", "unhandled cuda error", "unhandled system error", "internal error",
        "invalid argument", "invalid usage", "remote process exited or there was a network error", "NCCL operation in progress"};
    return status >= 0 && status <= IN_PROGRESS ? NAMES[status] : "unknown result code";
}
const char *ncclGetLastError(comm *c) { return c && c->magic == 0x17 ? c->last : last_error; }
int ncclGetUniqueId(unique_id *id) {
    static int number;
    memset(id, 0, sizeof *id);
    const char *folder = getenv("FAKE_NCCL_FOLDER");
    snprintf(id->internal, sizeof id->internal, "%s/%d-%d", folder ? folder : "/tmp", (int)getpid(), number++);
    return mkdir(id->internal, 0700) ? bad(NULL, SYSTEM, "no folder") : OK;
}

/* ---- files ------------------------------------------------------------------------------------------------------ */

static int write_file(const char *name, const void *head, size_t n, const void *data, size_t bytes) {
    char temporary[300];
    snprintf(temporary, sizeof temporary, "%s.tmp", name);
    FILE *out = fopen(temporary, "wb");
    if (!out) return 0;
    int fine = fwrite(head, 1, n, out) == n && fwrite(data, 1, bytes, out) == bytes;
    fine = !fclose(out) && fine;
    return fine && !rename(temporary, name);
}
/* the bytes of a file after its head, or NULL while it is not there */
static char *read_file(const char *name, void *head, size_t n, size_t bytes) {
    FILE *in = fopen(name, "rb");
    if (!in) return NULL;
    char *data = malloc(bytes + 1);
    if (fread(head, 1, n, in) != n || fread(data, 1, bytes, in) != bytes) memset(head, 0, n);
    fclose(in);
    return data;
}

/* ---- communicators ---------------------------------------------------------------------------------------------- */

int ncclCommInitRankConfig(comm **made, int size, unique_id id, int rank, config *given) {
    if (size < 1 || size > 64 || rank < 0 || rank >= size) return bad(NULL, INVALID, "Invalid rank requested");
    if (!given || given->magic != 0xcafebeef || given->size != sizeof(config) || given->version < 21800)
        return bad(NULL, INVALID, "ncclConfig_t argument not initialized via NCCL_CONFIG_INITIALIZER");
    if (given->blocking != 0 || given->share != INT32_MIN || given->net) return bad(NULL, INVALID, "config");
    comm *c = calloc(1, sizeof *c);
    c->magic = 0x17, c->rank = rank, c->size = size, c->state = IN_PROGRESS;
    snprintf(c->folder, sizeof c->folder, "%s", id.internal);
    char name[260];
    snprintf(name, sizeof name, "%s/join.%d", c->folder, rank);
    const char *gpu = getenv("FAKE_NCCL_GPU");
    int on = gpu ? atoi(gpu) : 1000 + rank;
    if (!write_file(name, &on, sizeof on, "", 0)) { free(c); return bad(NULL, SYSTEM, "socket"); }
    live++;
    *made = c;
    return IN_PROGRESS;
}
static void join(comm *c) {
    int gpus[64];
    for (int r = 0; r < c->size; r++) {
        char name[260];
        snprintf(name, sizeof name, "%s/join.%d", c->folder, r);
        char *data = read_file(name, &gpus[r], sizeof(int), 0);
        if (!data) return;
        free(data);
        for (int s = 0; s < r; s++)
            if (gpus[s] == gpus[r]) {
                char text[200];
                snprintf(text, sizeof text, "Duplicate GPU detected : rank %d and rank %d both on CUDA device %x", s, r, gpus[r]);
                broken(c, USAGE, text);
                return;
            }
    }
    c->state = OK;
}
int ncclCommGetAsyncError(comm *c, int *status) {
    if (!c || c->magic != 0x17) return bad(NULL, INVALID, "comm argument is not a communicator");
    if (c->state == IN_PROGRESS && !c->finalized) join(c);
    *status = c->state;
    return OK;
}
int ncclCommFinalize(comm *c) {
    if (!c || c->magic != 0x17 || c->finalized) return bad(NULL, INVALID, "finalize");
    if (c->failed) return c->failed; /* NCCL 2.28 keeps the error of a call that was refused */
    c->finalized = 1;
    return OK;
}
static int end(comm *c) { c->magic = 0, live--; return OK; } /* the memory stays, for work that is still queued */
int ncclCommDestroy(comm *c) {
    if (!c || c->magic != 0x17 || !c->finalized) return bad(NULL, INVALID, "comm is not finalized");
    return end(c);
}
int ncclCommAbort(comm *c) {
    if (!c || c->magic != 0x17) return bad(NULL, INVALID, "abort");
    c->aborted = 1;
    return end(c);
}

/* ---- numbers ---------------------------------------------------------------------------------------------------- */

static double half(uint16_t h) {
    const int e = h >> 10 & 31, m = h & 1023;
    const double v = e == 31 ? (m ? NAN : INFINITY) : e ? ldexp(1024 + m, e - 25) : ldexp(m, -24);
    return h >> 15 ? -v : v;
}
static double tiny(uint8_t b, int type) {
    if (type == E5M2) return half((uint16_t)(b << 8));
    const int e = b >> 3 & 15, m = b & 7;
    const double v = (b & 127) == 127 ? NAN : e ? ldexp(8 + m, e - 10) : ldexp(m, -9);
    return b >> 7 ? -v : v;
}
static double get(const char *x, int type, size_t i) {
    switch (type) {
    case F32: return ((const float *)x)[i];
    case F64: return ((const double *)x)[i];
    case F16: return half(((const uint16_t *)x)[i]);
    case BF16: { uint32_t w = (uint32_t)((const uint16_t *)x)[i] << 16; float v; memcpy(&v, &w, 4); return v; }
    default: return tiny(((const uint8_t *)x)[i], type);
    }
}
/* to nearest, ties to even, by search among all values of one or two bytes: slow and plainly right */
static unsigned nearest(double v, int type, unsigned largest) {
    unsigned best = 0;
    double gap = INFINITY;
    if (isnan(v)) return type == F16 ? 0x7e00 : type == BF16 ? 0x7fc0 : type == E5M2 ? 0x7e : 0x7f;
    for (unsigned low = 0, high = largest; low <= high;) {
        const unsigned middle = (low + high) / 2;
        const uint16_t wide = (uint16_t)middle;
        const uint8_t narrow = (uint8_t)middle;
        const double found = get(SIZES[type] == 2 ? (const char *)&wide : (const char *)&narrow, type, 0), by = fabs(found - fabs(v));
        if (by < gap || (by == gap && !(middle & 1))) best = middle, gap = by;
        if (found < fabs(v)) low = middle + 1;
        else if (!middle) break;
        else high = middle - 1;
    }
    return best | (signbit(v) ? (SIZES[type] == 2 ? 0x8000u : 0x80u) : 0);
}
static void put(char *x, int type, size_t i, double v) {
    switch (type) {
    case F32: ((float *)x)[i] = (float)v; break;
    case F64: ((double *)x)[i] = v; break;
    case F16: ((uint16_t *)x)[i] = (uint16_t)nearest(v, type, 0x7bff); break;
    case BF16: ((uint16_t *)x)[i] = (uint16_t)nearest(v, type, 0x7f7f); break;
    case E4M3: ((uint8_t *)x)[i] = (uint8_t)nearest(v, type, 0x7e); break;
    default: ((uint8_t *)x)[i] = (uint8_t)nearest(v, type, 0x7b);
    }
}
#define WITH(T) { T a = ((T *)x)[i], b = ((const T *)y)[i]; \
    ((T *)x)[i] = (T)(op == 0 ? a + b : op == 1 ? a * b : op == 2 ? (a > b ? a : b) : (a < b ? a : b)); break; }
static void combine(char *x, const char *y, size_t n, int type, int op) {
    for (size_t i = 0; i < n; i++)
        switch (type) {
        case I8: WITH(int8_t)
        case U8: WITH(uint8_t)
        case I32: WITH(int32_t)
        case U32: WITH(uint32_t)
        case I64: WITH(int64_t)
        case U64: WITH(uint64_t)
        default: {
            const double a = get(x, type, i), b = get(y, type, i);
            put(x, type, i, op == 0 ? a + b : op == 1 ? a * b : op == 2 ? fmax(a, b) : fmin(a, b));
        }
        }
}

/* ---- collectives ------------------------------------------------------------------------------------------------ */

static void name_of(char *name, const call *k, int rank) {
    comm *c = k->c;
    if (k->kind == SEND) snprintf(name, 260, "%s/m.%d.%d.%d", c->folder, c->rank, k->peer, k->number);
    else if (k->kind == RECV) snprintf(name, 260, "%s/m.%d.%d.%d", c->folder, k->peer, c->rank, k->number);
    else snprintf(name, 260, "%s/c.%d.%d", c->folder, k->number, rank);
}
/* what a rank contributes to a call, when it is there; NULL: the communicator was aborted, or ranks disagree */
static char *contribution(const call *k, int rank, size_t bytes) {
    char name[260], *data = NULL;
    header found, wanted = {k->kind == RECV ? SEND : k->kind, k->type, k->op, k->kind == RECV ? 0 : k->peer, k->count};
    name_of(name, k, rank);
    while (!(data = read_file(name, &found, sizeof found, bytes))) {
        if (k->c->aborted) return NULL;
        usleep(200);
    }
    if (memcmp(&found, &wanted, sizeof found)) {
        free(data);
        broken(k->c, INVALID, "ranks call different collectives");
        return NULL;
    }
    return data;
}
static int take(void *given) {
    call *k = given;
    comm *c = k->c;
    const size_t n = k->count, bytes = n * SIZES[k->type];
    const size_t all = bytes * (k->kind == REDUCE_SCATTER ? c->size : 1);
    char *sum = NULL;
    for (int r = c->size - 1; r >= 0; r--) {
        if (k->kind == SEND || ((k->kind == RECV || k->kind == BROADCAST) && r != k->peer)) continue;
        char *data = contribution(k, r, all);
        if (!data) { free(sum), free(k); return OK; }
        if (k->kind == ALL_GATHER) memcpy(k->to + bytes * r, data, bytes);
        else if (k->kind == RECV || k->kind == BROADCAST) memcpy(k->to, data, bytes);
        else if (!sum) { sum = data; continue; }
        else combine(sum, data, all / SIZES[k->type], k->type, k->op);
        free(data);
    }
    if (sum) memcpy(k->to, sum + (k->kind == REDUCE_SCATTER ? bytes * c->rank : 0), bytes);
    free(sum), free(k);
    return OK;
}
static int start(call *k) {
    comm *c = k->c;
    const size_t bytes = k->count * SIZES[k->type] * (k->kind == REDUCE_SCATTER ? c->size : 1);
    const char *loses = getenv("FAKE_NCCL_LOSES"), *breaks = getenv("FAKE_NCCL_BREAKS");
    if (run_stream) run_stream(k->stream);
    header head = {k->kind, k->type, k->op, k->kind == SEND ? 0 : k->peer, k->count};
    char name[260];
    name_of(name, k, c->rank);
    const int fails = breaks && atoi(breaks) == c->calls, lost = fails || (loses && atoi(loses) == c->calls);
    c->calls++;
    const int sends = k->kind != RECV && (k->kind != BROADCAST || k->peer == c->rank);
    if (sends && !lost && !write_file(name, &head, sizeof head, k->from, bytes)) return broken(c, SYSTEM, "cannot send");
    if (fails) broken(c, REMOTE, "Call to recv from a peer failed : Connection reset by peer");
    return OK;
}
int ncclGroupStart(void) { depth++; return OK; }
int ncclGroupEnd(void) {
    if (!depth) return bad(NULL, USAGE, "ncclGroupEnd: not in a group call");
    if (--depth) return OK;
    int status = OK;
    call *k = first, *then;
    for (call *s = first; s; s = s->next) if (start(s)) status = s->c->state;
    for (first = newest = NULL; k; k = then) {
        then = k->next;
        if (put_work) put_work(k->stream, take, k);
        else take(k);
    }
    return status;
}
static int add(comm *c, int kind, const void *from, void *to, size_t count, int type, int op, int peer, void *stream) {
    if (!c || c->magic != 0x17) return bad(NULL, INVALID, "comm argument is not a communicator");
    if (c->state == IN_PROGRESS) return bad(c, INVALID, "the communicator is not ready");
    if (c->state || c->finalized) return bad(c, USAGE, "the communicator has failed or ended");
    if (type < 0 || type >= TYPES) return bad(c, INVALID, "invalid type");
    if (op < 0 || op > 3) return bad(c, INVALID, "invalid reduction operation");
    if (peer < 0 || peer >= c->size) {
        char text[100];
        snprintf(text, sizeof text, "invalid root or peer %d (peer should be in the 0..%d range)", peer, c->size - 1);
        return bad(c, INVALID, text);
    }
    if (!stream) return bad(c, INVALID, "the default stream");
    const size_t bytes = count * SIZES[type];
    const size_t in = bytes * (kind == REDUCE_SCATTER ? c->size : 1), out = bytes * (kind == ALL_GATHER ? c->size : 1);
    const int sends = kind != RECV, receives = kind != SEND;
    if (count && ((sends && !from) || (receives && !to))) return bad(c, INVALID, "sendbuff or recvbuff is NULL");
    if (count && is_buffer && ((sends && !is_buffer(from, in)) || (receives && !is_buffer(to, out))))
        return bad(c, INVALID, "memory that is no buffer of the device");
    call *k = calloc(1, sizeof *k);
    counted[kind]++;
    *k = (call){c, kind, type, op, peer, count, from, to, stream, 0, NULL};
    k->number = kind == SEND ? c->sent[peer]++ : kind == RECV ? c->received[peer]++ : c->collectives++;
    if (!count) { free(k); return OK; }
    ncclGroupStart();
    if (newest) newest->next = k; else first = k;
    newest = k;
    return ncclGroupEnd();
}
int ncclAllReduce(const void *x, void *y, size_t n, int type, int op, comm *c, void *s) { return add(c, ALL_REDUCE, x, y, n, type, op, 0, s); }
int ncclReduceScatter(const void *x, void *y, size_t n, int type, int op, comm *c, void *s) { return add(c, REDUCE_SCATTER, x, y, n, type, op, 0, s); }
int ncclAllGather(const void *x, void *y, size_t n, int type, comm *c, void *s) { return add(c, ALL_GATHER, x, y, n, type, 0, 0, s); }
int ncclBroadcast(const void *x, void *y, size_t n, int type, int root, comm *c, void *s) { return add(c, BROADCAST, x, y, n, type, 0, root, s); }
int ncclSend(const void *x, size_t n, int type, int peer, comm *c, void *s) { return add(c, SEND, x, NULL, n, type, 0, peer, s); }
int ncclRecv(void *y, size_t n, int type, int peer, comm *c, void *s) { return add(c, RECV, NULL, y, n, type, 0, peer, s); }
