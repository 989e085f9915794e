/* Complex numbers as pairs; sums and products as NumPy computes them, quotients by Smith's method (1962). */

typedef struct { f32 re, im; } c64;
typedef struct { f64 re, im; } c128;

#define DG_COMPLEX(C, T, S, R)                                                                               \
    DG_FN C dg_make_##S(T re, T im) { C z; z.re = re; z.im = im; return z; }                                 \
    DG_FN C dg_add_##S(C x, C y) { return dg_make_##S(x.re + y.re, x.im + y.im); }                           \
    DG_FN C dg_sub_##S(C x, C y) { return dg_make_##S(x.re - y.re, x.im - y.im); }                           \
    DG_FN C dg_mul_##S(C x, C y) {                                                                           \
        return dg_make_##S(x.re * y.re - x.im * y.im, x.re * y.im + x.im * y.re);                            \
    }                                                                                                        \
    DG_FN C dg_div_##S(C x, C y) {                                                                           \
        i32 wide = dg_abs_##R(y.re) >= dg_abs_##R(y.im);                                                     \
        T r = wide ? y.im / y.re : y.re / y.im;                                                              \
        T d = wide ? y.re + y.im * r : y.re * r + y.im;                                                      \
        C q = wide ? dg_make_##S((x.re + x.im * r) / d, (x.im - x.re * r) / d)                               \
                   : dg_make_##S((x.re * r + x.im) / d, (x.im * r - x.re) / d);                              \
        return y.re == 0 && y.im == 0 ? dg_make_##S(x.re / dg_abs_##R(y.re), x.im / dg_abs_##R(y.re)) : q;   \
    }                                                                                                        \
    DG_FN C dg_neg_##S(C x) { return dg_make_##S(-x.re, -x.im); }                                            \
    DG_FN C dg_conj_##S(C x) { return dg_make_##S(x.re, -x.im); }                                            \
    DG_FN T dg_real_##S(C x) { return x.re; }                                                                \
    DG_FN T dg_imag_##S(C x) { return x.im; }                                                                \
    DG_FN T dg_abs_##S(C x) { return dg_hypot_##R(x.re, x.im); }                                             \
    DG_FN b8 dg_equal_##S(C x, C y) { return x.re == y.re && x.im == y.im; }                                 \
    DG_FN C dg_select_##S(b8 c, C x, C y) { return c ? x : y; }
DG_COMPLEX(c64, f32, c64, f32)
DG_COMPLEX(c128, f64, c128, f64)

#ifdef DG_COMPLEX_LIBM
#define DG_COMPLEX_UNARY(name)                                                                               \
    DG_FN c64 dg_##name##_c64(c64 x) {                                                                       \
        _Complex float r = __builtin_c##name##f(__builtin_complex(x.re, x.im));                              \
        return dg_make_c64(__real__ r, __imag__ r);                                                          \
    }                                                                                                        \
    DG_FN c128 dg_##name##_c128(c128 x) {                                                                    \
        _Complex double r = __builtin_c##name(__builtin_complex(x.re, x.im));                                \
        return dg_make_c128(__real__ r, __imag__ r);                                                         \
    }
DG_COMPLEX_UNARY(exp) DG_COMPLEX_UNARY(log) DG_COMPLEX_UNARY(sqrt) DG_COMPLEX_UNARY(sin)
DG_COMPLEX_UNARY(cos) DG_COMPLEX_UNARY(tan) DG_COMPLEX_UNARY(asin) DG_COMPLEX_UNARY(acos)
DG_COMPLEX_UNARY(atan) DG_COMPLEX_UNARY(sinh) DG_COMPLEX_UNARY(cosh) DG_COMPLEX_UNARY(tanh)
DG_COMPLEX_UNARY(asinh) DG_COMPLEX_UNARY(acosh) DG_COMPLEX_UNARY(atanh)
DG_FN c64 dg_pow_c64(c64 x, c64 y) {
    _Complex float r = __builtin_cpowf(__builtin_complex(x.re, x.im), __builtin_complex(y.re, y.im));
    return y.re == 0 && y.im == 0 ? dg_make_c64(1, 0) : dg_make_c64(__real__ r, __imag__ r);
}
DG_FN c128 dg_pow_c128(c128 x, c128 y) {
    _Complex double r = __builtin_cpow(__builtin_complex(x.re, x.im), __builtin_complex(y.re, y.im));
    return y.re == 0 && y.im == 0 ? dg_make_c128(1, 0) : dg_make_c128(__real__ r, __imag__ r);
}
#endif
