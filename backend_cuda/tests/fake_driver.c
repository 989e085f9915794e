/* A libcuda that has one device made of the host's memory, and one kernel: it adds 1.0f to n floats.
 *
 * The emulated device stands in for cuda-bindings; this stands in for the driver beneath the real cuda-bindings, so
 * that what the backend passes to them is seen to arrive. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t in_use;
static void *now; /* the current context */
static int loaded;
#define OK 0

static int init(unsigned flags) { return flags ? 1 : OK; }
static int version(int *v) { *v = 13000; return OK; }
static int count(int *n) { *n = 1; return OK; }
static int get(int *device, int k) { *device = 100 + k; return k ? 101 : OK; }
static int name(char *text, int n, int device) { snprintf(text, n, "fake %d", device); return OK; }
static int memory(size_t *bytes, int device) { *bytes = 8 << 20; return device == 100 ? OK : 101; }
static int attribute(int *v, int which, int device) {
    *v = which == 75 ? 9 : which == 76 ? 0 : which == 16 ? 7 : -1;
    return device == 100 ? OK : 101;
}
static int retain(void **context, int device) { *context = (void *)0xc0; return device == 100 ? OK : 101; }
static int current(void *context) { now = context; return context == (void *)0xc0 || context == (void *)0xc1 ? OK : 201; }
static int which(void **context) { *context = now; return OK; }
/* streams are 0x50, then 0x60; work of the second one never seems to end */
static int streams;
static int stream(void **s, unsigned flags) { *s = (void *)(streams++ ? 0x60 : 0x50); return flags == 1 ? OK : 1; }
static int is_stream(void *s) { return s == (void *)0x50 || (streams > 1 && s == (void *)0x60); }
static int wait_for(void *s) { return is_stream(s) ? OK : 400; }
static int ask(void *s) { return s == (void *)0x60 ? 600 : wait_for(s); }
static int wait_here(void *s, void *e, unsigned flags) {
    return e == (void *)0xe0 && !flags && (is_stream(s) || s == (void *)1) ? OK : 400;
}
static int elapsed(float *ms, void *begin, void *end) {
    *ms = 2.5f;
    return begin == (void *)0xe0 && end == (void *)0xe0 ? OK : 400;
}
static int all_done(void) { return now == (void *)0xc0 ? OK : 201; }
static int take(uint64_t *pointer, size_t n) {
    if (now != (void *)0xc0) return 201;
    if (in_use + n > 8 << 20) return 2;
    size_t *block = malloc(n + 16);
    *block = n;
    in_use += n;
    *pointer = (uint64_t)(uintptr_t)(block + 2);
    return OK;
}
static int give(uint64_t pointer) {
    size_t *block = (size_t *)(uintptr_t)pointer - 2;
    in_use -= *block;
    free(block);
    return now == (void *)0xc0 ? OK : 201;
}
static int host(void **pointer, size_t n, unsigned flags) { *pointer = malloc(n); return flags ? 1 : OK; }
static int host_free(void *pointer) { free(pointer); return OK; }
static int event(void **e, unsigned flags) { *e = (void *)0xe0; return flags == 2 || !flags ? OK : 1; }
static int use_event(void *e) { return e == (void *)0xe0 ? OK : 400; }
static int record(void *e, void *s) { return e == (void *)0xe0 && is_stream(s) ? OK : 400; }
static int in(uint64_t to, const void *from, size_t n, void *s) {
    memcpy((void *)(uintptr_t)to, from, n);
    return is_stream(s) ? OK : 400;
}
static int out(void *to, uint64_t from, size_t n, void *s) {
    memcpy(to, (void *)(uintptr_t)from, n);
    return is_stream(s) ? OK : 400;
}
static int across(uint64_t to, uint64_t from, size_t n, void *s) {
    memcpy((void *)(uintptr_t)to, (void *)(uintptr_t)from, n);
    return is_stream(s) ? OK : 400;
}
static int peer(uint64_t to, void *there, uint64_t from, void *here, size_t n, void *s) {
    return there == (void *)0xc0 && here == there ? across(to, from, n, s) : 201;
}
/* a graph is a number: 0 nothing, 1 being captured, 2 captured, 3 made into something to launch */
static int graph;
static int begin(void *s, int mode) {
    if (s != (void *)0x50 || mode != 1 || graph != 0) return 400;
    graph = 1;
    return OK;
}
static int end(void *s, void **made) {
    *made = (void *)0xa0;
    if (s != (void *)0x50 || graph != 1) return 400;
    graph = 2;
    return OK;
}
static int instantiate(void **made, void *from, unsigned long long flags) {
    *made = (void *)0xb0;
    if (from != (void *)0xa0 || flags || graph != 2) return 400;
    graph = 3;
    return OK;
}
static int destroy(void *which) { return which == (void *)0xa0 ? OK : 400; }
static int destroy_made(void *which) { return which == (void *)0xb0 ? OK : 400; }
static int launch_graph(void *which, void *s) { return which == (void *)0xb0 && s == (void *)0x50 && graph == 3 ? OK : 400; }

static int load(void **module, const void *image) { /* a cubin is an ELF file */
    *module = (void *)0xd0;
    loaded = memcmp(image, "\177ELF", 4) == 0;
    return loaded ? OK : 200;
}
static int function(void **f, void *module, const char *label) {
    *f = (void *)0xf0;
    return module == (void *)0xd0 && !strcmp(label, "k") ? OK : 500;
}
static int unload(void *module) { return module == (void *)0xd0 ? OK : 400; }
static int launch(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared,
                  void *s, void **parameters, void **extra) {
    if (now != (void *)0xc0) return 201;
    if (f != (void *)0xf0 || !is_stream(s) || shared || extra) return 400;
    if (gx != 3 || gy != 1 || gz != 1 || bx != 32 || by != 2 || bz != 1) return 1;
    float *x = *(float **)parameters[0];
    int n = *(int *)parameters[1];
    if (n < 0) return 719;
    for (int k = 0; k < n; k++) x[k] += 1.0f;
    return OK;
}
static int error_name(int code, const char **text) { *text = code == 719 ? "CUDA_ERROR_LAUNCH_FAILED" : "CUDA_ERROR"; return OK; }
static int error_text(int code, const char **text) { *text = code == 719 ? "unspecified launch failure" : "fake"; return OK; }

static const struct { const char *name; void *function; } known[] = {
    {"cuInit", init}, {"cuDriverGetVersion", version}, {"cuDeviceGetCount", count}, {"cuDeviceGet", get},
    {"cuDeviceGetName", name}, {"cuDeviceTotalMem", memory}, {"cuDeviceGetAttribute", attribute},
    {"cuDevicePrimaryCtxRetain", retain}, {"cuCtxSetCurrent", current}, {"cuStreamCreate", stream},
    {"cuStreamSynchronize", wait_for}, {"cuCtxGetCurrent", which}, {"cuMemAlloc", take}, {"cuMemFree", give},
    {"cuMemHostAlloc", host}, {"cuMemFreeHost", host_free}, {"cuEventCreate", event}, {"cuEventDestroy", use_event},
    {"cuEventQuery", use_event}, {"cuEventSynchronize", use_event}, {"cuEventRecord", record}, {"cuModuleUnload", unload},
    {"cuMemcpyDtoDAsync", across}, {"cuStreamBeginCapture", begin}, {"cuStreamEndCapture", end},
    {"cuGraphInstantiateWithFlags", instantiate}, {"cuGraphDestroy", destroy}, {"cuGraphExecDestroy", destroy_made},
    {"cuGraphLaunch", launch_graph}, {"cuMemcpyHtoDAsync", in}, {"cuMemcpyDtoHAsync", out}, {"cuModuleLoadData", load},
    {"cuModuleGetFunction", function}, {"cuLaunchKernel", launch}, {"cuGetErrorName", error_name},
    {"cuGetErrorString", error_text}, {"cuStreamQuery", ask}, {"cuStreamWaitEvent", wait_here},
    {"cuEventElapsedTime", elapsed}, {"cuMemcpyPeerAsync", peer}, {"cuCtxSynchronize", all_done},
};
int cuGetProcAddress_v2(const char *label, void **found, int version_, uint64_t flags, int *status) {
    *found = 0;
    for (unsigned k = 0; k < sizeof known / sizeof *known; k++)
        if (!strcmp(label, known[k].name)) *found = known[k].function;
    if (!strcmp(label, "cuGetProcAddress")) *found = (void *)cuGetProcAddress_v2;
    if (status) *status = *found ? 0 : 1;
    return *found ? OK : 500;
}
int cuGetProcAddress(const char *label, void **found, int version_, uint64_t flags) {
    return cuGetProcAddress_v2(label, found, version_, flags, 0);
}
