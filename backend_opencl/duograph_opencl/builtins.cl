/* Declarations of the built-in functions that kernels call, with every overload that a call may mean, as in clang's
 * opencl-c.h. */

#define DG_DECLARE_CONST __attribute__((overloadable, const))
#define DG_DECLARE(type, qualifiers) type __attribute__((overloadable, qualifiers))

DG_DECLARE_CONST size_t get_global_id(uint);
DG_DECLARE_CONST size_t get_global_size(uint);
DG_DECLARE_CONST size_t get_local_id(uint);
DG_DECLARE_CONST size_t get_group_id(uint);
DG_DECLARE_CONST size_t get_num_groups(uint);
DG_DECLARE(void, convergent) barrier(cl_mem_fence_flags);

int __attribute__((overloadable)) atomic_add(volatile __global int *, int);
uint __attribute__((overloadable)) atomic_add(volatile __global uint *, uint);
int __attribute__((overloadable)) atomic_max(volatile __global int *, int);
uint __attribute__((overloadable)) atomic_max(volatile __global uint *, uint);
int __attribute__((overloadable)) atomic_cmpxchg(volatile __global int *, int, int);
uint __attribute__((overloadable)) atomic_cmpxchg(volatile __global uint *, uint, uint);

DG_DECLARE_CONST float fma(float, float, float);
#ifdef cl_khr_fp64
DG_DECLARE_CONST double fma(double, double, double);
#define DG_UNARY_BUILTIN(name) DG_DECLARE_CONST float name(float); DG_DECLARE_CONST double name(double);
#define DG_BINARY_BUILTIN(name)                                                                              \
    DG_DECLARE_CONST float name(float, float); DG_DECLARE_CONST double name(double, double);
#else
#define DG_UNARY_BUILTIN(name) DG_DECLARE_CONST float name(float);
#define DG_BINARY_BUILTIN(name) DG_DECLARE_CONST float name(float, float);
#endif
DG_UNARY_BUILTIN(sqrt) DG_UNARY_BUILTIN(floor) DG_UNARY_BUILTIN(ceil) DG_UNARY_BUILTIN(trunc)
DG_UNARY_BUILTIN(rint) DG_UNARY_BUILTIN(lgamma)
DG_UNARY_BUILTIN(exp) DG_UNARY_BUILTIN(exp2) DG_UNARY_BUILTIN(expm1)
DG_UNARY_BUILTIN(log) DG_UNARY_BUILTIN(log1p) DG_UNARY_BUILTIN(log2) DG_UNARY_BUILTIN(log10)
DG_UNARY_BUILTIN(cbrt) DG_UNARY_BUILTIN(erf) DG_UNARY_BUILTIN(erfc)
DG_UNARY_BUILTIN(sin) DG_UNARY_BUILTIN(cos) DG_UNARY_BUILTIN(tan)
DG_UNARY_BUILTIN(asin) DG_UNARY_BUILTIN(acos) DG_UNARY_BUILTIN(atan)
DG_UNARY_BUILTIN(sinh) DG_UNARY_BUILTIN(cosh) DG_UNARY_BUILTIN(tanh)
DG_UNARY_BUILTIN(asinh) DG_UNARY_BUILTIN(acosh) DG_UNARY_BUILTIN(atanh)
DG_BINARY_BUILTIN(fmod) DG_BINARY_BUILTIN(nextafter)
DG_BINARY_BUILTIN(pow) DG_BINARY_BUILTIN(atan2) DG_BINARY_BUILTIN(hypot)
