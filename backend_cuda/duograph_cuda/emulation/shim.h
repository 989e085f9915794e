/* CUDA C++ for the host's compiler: what NVRTC knows without any #include, as far as our kernels use it.
 * `machine.h` stands before it. */

typedef decltype(sizeof(0)) size_t;

#define __CUDA_ARCH__ 900
#define DG_EMULATED 1
#define __global__
#define __device__
#define __host__
#define __forceinline__ inline __attribute__((always_inline, unused))
#define __noinline__ __attribute__((noinline))
#define __shared__ static __attribute__((section("dg_shared")))
#define __constant__ static const
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))
#define DG_DYNAMIC_SHARED(T, name) T *const name = (T *)dg_this->dynamic_shared

extern "C" {
dg_machine *dg_this;
extern char __start_dg_waits[] __attribute__((weak, visibility("hidden")));
extern char __stop_dg_waits[] __attribute__((weak, visibility("hidden")));
extern char __start_dg_shared[] __attribute__((weak, visibility("hidden")));
extern char __stop_dg_shared[] __attribute__((weak, visibility("hidden")));
}
#define threadIdx (dg_this->thread)
#define blockIdx (dg_this->block)
#define blockDim (dg_this->block_size)
#define gridDim (dg_this->grid_size)
#define warpSize 32

struct __attribute__((aligned(8))) float2 { float x, y; };
struct __attribute__((aligned(16))) float4 { float x, y, z, w; };
struct __attribute__((aligned(8))) uint2 { unsigned x, y; };
struct __attribute__((aligned(16))) uint4 { unsigned x, y, z, w; };
struct __attribute__((aligned(16))) int4 { int x, y, z, w; };
#define DG_SHIM static inline __attribute__((always_inline, unused))
DG_SHIM float4 make_float4(float x, float y, float z, float w) { float4 r = {x, y, z, w}; return r; }
DG_SHIM float2 make_float2(float x, float y) { float2 r = {x, y}; return r; }
DG_SHIM uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { uint4 r = {x, y, z, w}; return r; }

/* ---- numbers ----------------------------------------------------------------------------------------------- */

template <class To, class From> DG_SHIM To dg_same_bits(From x) {
    To r;
    __builtin_memcpy(&r, &x, sizeof r);
    return r;
}
DG_SHIM unsigned __float_as_uint(float x) { return dg_same_bits<unsigned>(x); }
DG_SHIM int __float_as_int(float x) { return dg_same_bits<int>(x); }
DG_SHIM float __uint_as_float(unsigned x) { return dg_same_bits<float>(x); }
DG_SHIM float __int_as_float(int x) { return dg_same_bits<float>(x); }
DG_SHIM long long __double_as_longlong(double x) { return dg_same_bits<long long>(x); }
DG_SHIM double __longlong_as_double(long long x) { return dg_same_bits<double>(x); }
DG_SHIM float __fmaf_rn(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
DG_SHIM double __fma_rn(double a, double b, double c) { return __builtin_fma(a, b, c); }
DG_SHIM unsigned __umulhi(unsigned a, unsigned b) { return (unsigned)(((unsigned long long)a * b) >> 32); }
DG_SHIM int __popc(unsigned x) { return __builtin_popcount(x); }
DG_SHIM int __clz(int x) { return x ? __builtin_clz((unsigned)x) : 32; }
DG_SHIM int __ffs(int x) { return __builtin_ffs(x); }
template <class T> DG_SHIM T __ldg(const T *p) { return *p; }

extern "C" {
#define DG_MATH1(name) double name(double) noexcept; float name##f(float) noexcept;
#define DG_MATH2(name) double name(double, double) noexcept; float name##f(float, float) noexcept;
DG_MATH1(sqrt) DG_MATH1(floor) DG_MATH1(ceil) DG_MATH1(trunc) DG_MATH1(rint) DG_MATH1(lgamma)
DG_MATH2(fmod) DG_MATH2(nextafter)
DG_MATH1(exp) DG_MATH1(exp2) DG_MATH1(expm1) DG_MATH1(log) DG_MATH1(log1p) DG_MATH1(log2) DG_MATH1(log10)
DG_MATH1(cbrt) DG_MATH1(sin) DG_MATH1(cos) DG_MATH1(tan) DG_MATH1(asin) DG_MATH1(acos) DG_MATH1(atan)
DG_MATH1(sinh) DG_MATH1(cosh) DG_MATH1(tanh) DG_MATH1(asinh) DG_MATH1(acosh) DG_MATH1(atanh)
DG_MATH1(erf) DG_MATH1(erfc) DG_MATH2(pow) DG_MATH2(atan2) DG_MATH2(hypot) DG_MATH2(fmin) DG_MATH2(fmax)
}

/* ---- threads together -------------------------------------------------------------------------------------- */

/* A mark in the library of a kernel whose threads wait for each other; others run without fibres. */
#define DG_WAITS() __asm__ volatile(".pushsection dg_waits,\"a\"\n.byte 1\n.popsection")
DG_SHIM void dg_barrier(int line) {
    DG_WAITS();
    dg_this->barrier(line);
}
DG_SHIM const unsigned char *dg_exchange(int line, unsigned mask, const void *give, unsigned bytes) {
    DG_WAITS();
    return dg_this->exchange(line, mask, give, bytes);
}
#define __syncthreads() dg_barrier(__LINE__)
#define __syncwarp(...) ((void)dg_exchange(__LINE__, 0xffffffffu, "", 0))
#define __shfl_sync(mask, value, lane, ...) dg_shuffle(__LINE__, mask, value, dg_lane_at<__VA_ARGS__ + 0>(lane))
#define __shfl_xor_sync(mask, value, bits, ...) dg_shuffle(__LINE__, mask, value, dg_lane_xor<__VA_ARGS__ + 0>(bits))
#define __shfl_down_sync(mask, value, by, ...) dg_shuffle(__LINE__, mask, value, dg_lane_down<__VA_ARGS__ + 0>(by))
#define __shfl_up_sync(mask, value, by, ...) dg_shuffle(__LINE__, mask, value, dg_lane_up<__VA_ARGS__ + 0>(by))
#define __ballot_sync(mask, value) dg_ballot(__LINE__, mask, (value) != 0)
#define __any_sync(mask, value) (dg_ballot(__LINE__, mask, (value) != 0) != 0)
#define __all_sync(mask, value) (dg_ballot(__LINE__, mask, (value) == 0) == 0)
#define __threadfence() ((void)0)
#define __threadfence_block() ((void)0)

DG_SHIM unsigned dg_thread() {
    return dg_this->thread.x + dg_this->block_size.x * (dg_this->thread.y + dg_this->block_size.y * dg_this->thread.z);
}
DG_SHIM int dg_lane() { return (int)(dg_thread() % 32); }
/* a width is a power of two; 0 stands for the whole warp; a lane outside of its part gives the own value */
template <int width> DG_SHIM int dg_part() { return width ? width : 32; }
template <int width> DG_SHIM int dg_lane_at(int lane) {
    return dg_lane() / dg_part<width>() * dg_part<width>() + (lane & (dg_part<width>() - 1));
}
template <int width> DG_SHIM int dg_inside(int lane) {
    int own = dg_lane();
    return lane / dg_part<width>() == own / dg_part<width>() && lane >= 0 ? lane : own;
}
template <int width> DG_SHIM int dg_lane_xor(int bits) { return dg_inside<width>(dg_lane() ^ bits); }
template <int width> DG_SHIM int dg_lane_down(int by) { return dg_inside<width>(dg_lane() + by); }
template <int width> DG_SHIM int dg_lane_up(int by) { return dg_inside<width>(dg_lane() - by); }

template <class T> DG_SHIM T dg_shuffle(int line, unsigned mask, T value, int lane) {
    const unsigned char *slots = dg_exchange(line, mask, &value, sizeof value);
    T found;
    __builtin_memcpy(&found, slots + DG_SLOT * lane, sizeof found);
    return found;
}
DG_SHIM unsigned dg_ballot(int line, unsigned mask, int value) {
    const unsigned char *slots = dg_exchange(line, mask, &value, sizeof value);
    unsigned threads = dg_this->block_size.x * dg_this->block_size.y * dg_this->block_size.z;
    unsigned first = dg_thread() / 32 * 32, found = 0;
    for (unsigned lane = 0; lane < 32 && first + lane < threads; lane++)
        found |= (unsigned)(*(const int *)(slots + DG_SLOT * lane) != 0) << lane;
    return found & mask;
}

#define DG_ATOMIC(name, T, expression)                                                                       \
    DG_SHIM T name(T *p, T x) { T old = *p; *p = expression; return old; }
DG_ATOMIC(atomicAdd, int, (int)((unsigned)old + (unsigned)x)) DG_ATOMIC(atomicAdd, unsigned, old + x)
DG_ATOMIC(atomicAdd, unsigned long long, old + x)
DG_ATOMIC(atomicAdd, float, old + x) DG_ATOMIC(atomicAdd, double, old + x)
DG_ATOMIC(atomicMax, int, old > x ? old : x) DG_ATOMIC(atomicMax, unsigned, old > x ? old : x)
DG_ATOMIC(atomicMin, int, old < x ? old : x) DG_ATOMIC(atomicMin, unsigned, old < x ? old : x)
DG_ATOMIC(atomicOr, unsigned, old | x) DG_ATOMIC(atomicAnd, unsigned, old & x)
DG_ATOMIC(atomicExch, int, x) DG_ATOMIC(atomicExch, unsigned, x)
template <class T> DG_SHIM T atomicCAS(T *p, T seen, T x) {
    T old = *p;
    if (old == seen) *p = x;
    return old;
}

/* ---- tensor cores: the fragments as the PTX manual lays them out over the lanes ----------------------------- */

struct dg_fragments { unsigned a[4], b[2]; };

DG_SHIM float dg_half_value(unsigned bits, int brain) {
    bits &= 0xffffu;
    if (brain) return __uint_as_float(bits << 16);
    float scaled = __uint_as_float((bits & 0x7fffu) << 13) * 5.192296858534828e33f;
    unsigned b = (bits & 0x7fffu) >= 0x7c00u ? ((bits & 0x7fffu) << 13) | 0x7f800000u : __float_as_uint(scaled);
    return __uint_as_float(b | (bits & 0x8000u) << 16);
}
/* d += a b, a 16 x 16 by rows, b 16 x 8 by columns, two elements in a register */
DG_SHIM void dg_emulated_mma16(int line, int brain, float *d, const unsigned *a, const unsigned *b) {
    dg_fragments own = {{a[0], a[1], a[2], a[3]}, {b[0], b[1]}};
    const unsigned char *slots = dg_exchange(line, 0xffffffffu, &own, sizeof own);
    int lane = dg_lane();
    for (int k = 0; k < 4; k++) {
        int row = lane / 4 + 8 * (k / 2), column = lane % 4 * 2 + k % 2;
        float sum = 0;
        for (int i = 0; i < 16; i++) {
            const dg_fragments *fa = (const dg_fragments *)(slots + DG_SLOT * (row % 8 * 4 + i % 8 / 2));
            const dg_fragments *fb = (const dg_fragments *)(slots + DG_SLOT * (column * 4 + i % 8 / 2));
            unsigned x = fa->a[row / 8 + 2 * (i / 8)] >> 16 * (i % 2), y = fb->b[i / 8] >> 16 * (i % 2);
            sum += dg_half_value(x, brain) * dg_half_value(y, brain);
        }
        d[k] += sum;
    }
}
/* cvt.rna.tf32.f32: every NaN becomes 0x7fffffff, as the PTX manual says of results that are NaN */
DG_SHIM unsigned dg_emulated_to_tf32(unsigned bits) {
    if ((bits & 0x7fffffffu) > 0x7f800000u) return 0x7fffffffu;
    return (bits + 0x1000u) & 0xffffe000u;
}
/* d += a b, a 16 x 8 by rows, b 8 x 8 by columns, float32 of which 10 bits of the mantissa count */
DG_SHIM void dg_emulated_mma8_tf32(int line, float *d, const unsigned *a, const unsigned *b) {
    dg_fragments own = {{a[0], a[1], a[2], a[3]}, {b[0], b[1]}};
    const unsigned char *slots = dg_exchange(line, 0xffffffffu, &own, sizeof own);
    int lane = dg_lane();
    for (int k = 0; k < 4; k++) {
        int row = lane / 4 + 8 * (k / 2), column = lane % 4 * 2 + k % 2;
        float sum = 0;
        for (int i = 0; i < 8; i++) {
            const dg_fragments *fa = (const dg_fragments *)(slots + DG_SLOT * (row % 8 * 4 + i % 4));
            const dg_fragments *fb = (const dg_fragments *)(slots + DG_SLOT * (column * 4 + i % 4));
            unsigned x = fa->a[row / 8 + 2 * (i / 4)], y = fb->b[i / 4];
            sum += __uint_as_float(x & 0xffffe000u) * __uint_as_float(y & 0xffffe000u);
        }
        d[k] += sum;
    }
}

/* ---- how the machine calls a kernel -------------------------------------------------------------------------- */

template <int... I> struct dg_places {};
template <int N, int... I> struct dg_count : dg_count<N - 1, N - 1, I...> {};
template <int... I> struct dg_count<0, I...> { typedef dg_places<I...> all; };
template <class... A, int... I> DG_SHIM void dg_call(void (*kernel)(A...), void **args, dg_places<I...>) {
    kernel(*(A *)args[I]...);
}
template <class... A> DG_SHIM void dg_run(void (*kernel)(A...), void **args) {
    dg_call(kernel, args, typename dg_count<sizeof...(A)>::all());
}
template <class... A> constexpr int dg_arity(void (*)(A...)) { return sizeof...(A); }
// The sizes of a kernel's parameters, at most 255, which HostCompiler.parameters finds behind a text.
template <int N> struct dg_sizes { unsigned char count, sizes[N + 1]; };
template <class... A> constexpr dg_sizes<sizeof...(A)> dg_sizes_of(void (*)(A...)) {
    return {sizeof...(A), {(unsigned char)(sizeof(A) < 255 ? sizeof(A) : 255)..., 0}};
}
#define DG_EXPORT(name)                                                                                      \
    extern "C" const struct {                                                                                \
        char text[sizeof "parameters of " #name];                                                            \
        dg_sizes<dg_arity(&name)> sizes;                                                                     \
    } dg_parameters_##name = {"parameters of " #name, dg_sizes_of(&name)};                                   \
    static void dg_run_##name(void **args) { dg_run(&name, args); }                                          \
    extern "C" dg_kernel dg_kernel_##name = {dg_run_##name, __start_dg_shared, __stop_dg_shared,              \
                                             __start_dg_waits, __stop_dg_waits, &dg_this, dg_arity(&name)};
