/* The float32 functions of floating.h without float64, for devices that lack it.
 *
 * Its definitions replace those of the same name (`GridDialect.single`). Where floating.h computes in float64, they
 * compute with pairs: a number is the sum of hi and lo, and |lo| is at most half an ulp of hi.
 * Dekker, "A floating-point technique for extending the available precision" (1971); Knuth, "The Art of Computer
 * Programming", vol. 2, 4.2.2. The functions are at most 2 ulp off, also where the device's division and square root
 * are up to 3 ulp off: quotients and roots are corrected by their exact residuals.
 * Nothing here may be compiled with -ffast-math or with contraction of a*b + c.
 */

typedef struct { f32 hi, lo; } f32_pair;

DG_FN f32_pair dg_make_pair(f32 hi, f32 lo) { f32_pair p; p.hi = hi; p.lo = lo; return p; }
/* the exact sum; |a| >= |b| */
DG_FN f32_pair dg_sum_ordered(f32 a, f32 b) { f32 s = a + b; return dg_make_pair(s, b - (s - a)); }
/* the exact sum */
DG_FN f32_pair dg_sum_exact(f32 a, f32 b) {
    f32 s = a + b, t = s - a;
    return dg_make_pair(s, (a - (s - t)) + (b - t));
}
/* a * b - p, exact if p is the rounded product: the factors are split into halves of 12 bits */
DG_FN f32 dg_split_error(f32 a, f32 b, f32 p) {
    f32 ah = dg_from_bits_f32(dg_bits_f32(a) & 0xfffff000u), al = a - ah;
    f32 bh = dg_from_bits_f32(dg_bits_f32(b) & 0xfffff000u), bl = b - bh;
    return ((ah * bh - p) + ah * bl + al * bh) + al * bl;
}
DG_FN f32_pair dg_product_exact(f32 a, f32 b) {
    f32 p = a * b;
    return dg_make_pair(p, DG_PRODUCT_ERROR(a, b, p, dg_split_error));
}
DG_FN f32_pair dg_add_pair(f32_pair a, f32_pair b) {
    f32_pair s = dg_sum_exact(a.hi, b.hi);
    return dg_sum_ordered(s.hi, s.lo + (a.lo + b.lo));
}
DG_FN f32_pair dg_mul_pair(f32_pair a, f32_pair b) {
    f32_pair p = dg_product_exact(a.hi, b.hi);
    return dg_sum_ordered(p.hi, p.lo + (a.hi * b.lo + a.lo * b.hi));
}
DG_FN f32_pair dg_div_pair(f32_pair a, f32_pair b) {
    f32 q = a.hi / b.hi;
    f32_pair p = dg_product_exact(q, b.hi);
    return dg_sum_ordered(q, (((a.hi - p.hi) - p.lo) + (a.lo - q * b.lo)) / b.hi);
}
DG_FN f32_pair dg_sqrt_pair(f32_pair a) {
    f32 s = DG_SQRT_F32(a.hi);
    f32_pair p = dg_product_exact(s, s);
    f32 lo = (((a.hi - p.hi) - p.lo) + a.lo) / (s + s);
    return dg_sum_ordered(s, s > 0.0f ? lo : 0.0f);
}

/* ---- exponential and logarithm ----------------------------------------------------------------------- */

/* e^(hi + lo) = 2^k p: returns p, in [0.7, 1.42] with relative error 2^-29, and stores k; |hi| <= 150 */
DG_FN f32_pair dg_exp_pair(f32 hi, f32 lo, i32 *k) {
    f32 shifted = dg_fma_f32(hi, 1.442695041f, 12582912.0f); /* 1.5 * 2^23 */
    f32 n = shifted - 12582912.0f;
    *k = (i32)dg_bits_f32(shifted) - 0x4b400000;
    f32 near = hi - n * 0.693145752f; /* the constant has 16 bits, so the product is exact */
    f32_pair r = dg_sum_exact(near, lo - n * 1.42860677e-6f);
    f32 q = 1.9944286e-4f;
    q = dg_fma_f32(q, r.hi, 1.3932681e-3f);
    q = dg_fma_f32(q, r.hi, 8.333208e-3f);
    q = dg_fma_f32(q, r.hi, 4.166649e-2f);
    q = dg_fma_f32(q, r.hi, 1.6666667e-1f);
    q = dg_fma_f32(q, r.hi, 5.0e-1f);
    f32_pair p = dg_sum_ordered(1.0f, r.hi);
    return dg_sum_ordered(p.hi, p.lo + dg_fma_f32(r.hi * r.hi, q, r.lo));
}
/* x * 2^k for |k| <= 250 */
DG_FN f32 dg_scale_f32(f32 x, i32 k) {
    i32 one = k >> 1, other = k - one;
    return x * dg_from_bits_f32((u32)(one + 127) << 23) * dg_from_bits_f32((u32)(other + 127) << 23);
}
/* e^(hi + lo) 2^shift */
DG_FN f32 dg_exp_scaled(f32 hi, f32 lo, i32 shift) {
    i32 k;
    f32_pair p = dg_exp_pair(hi, lo, &k);
    return dg_scale_f32(p.hi, k + shift);
}

/* log(x (1 + tail)) with relative error 2^-36, also next to 1, for x positive and finite and tail below an ulp */
DG_FN f32_pair dg_log_pair(f32 x, f32 tail) {
    i32 tiny = x < 1.17549435e-38f;
    f32 scaled = tiny ? x * 8388608.0f : x;
    i32 bits = (i32)dg_bits_f32(scaled) - 0x3f3504f3; /* the bits of sqrt(1/2) */
    f32 e = (f32)((bits >> 23) - (tiny ? 23 : 0));
    f32 m = dg_from_bits_f32((u32)((bits & 0x7fffff) + 0x3f3504f3));
    f32_pair s = dg_div_pair(dg_make_pair(m - 1.0f, 0.0f), dg_sum_exact(m, 1.0f));
    f32_pair z = dg_mul_pair(s, s);
    f32_pair third = dg_mul_pair(dg_mul_pair(z, s), dg_make_pair(0.666666687f, -1.98682152e-8f));
    f32 p = 0.168217756f;
    p = dg_fma_f32(p, z.hi, 0.181234877f);
    p = dg_fma_f32(p, z.hi, 0.222233762f);
    p = dg_fma_f32(p, z.hi, 0.285714171f);
    p = dg_fma_f32(p, z.hi, 0.400000001f);
    f32_pair y = dg_add_pair(dg_make_pair(s.hi + s.hi, s.lo + s.lo), third);
    y = dg_sum_ordered(y.hi, y.lo + dg_fma_f32(z.hi * z.hi * s.hi, p, tail));
    return dg_add_pair(dg_make_pair(e * 0.693145752f, e * 1.42860677e-6f), y);
}

/* ---- powers ------------------------------------------------------------------------------------------ */

/* With |x| = m 2^(3 q), 1 <= m < 8: a guess from the bits of m, a step of Halley, a step of Newton, and one of Newton
 * with the exact residual. */
DG_FN f32 dg_cbrt_f32(f32 x) {
    f32 a = dg_abs_f32(x);
    i32 tiny = a < 1.17549435e-38f;
    f32 scaled = tiny ? a * 16777216.0f : a;
    u32 bits = dg_bits_f32(scaled);
    i32 q = (i32)(((bits >> 23) + 2u) * 171u >> 9); /* a third, as 171/512, of a number below 512 */
    f32 m = dg_from_bits_f32(bits - ((u32)(q * 3 - 129) << 23));
    f32 y = dg_from_bits_f32(dg_bits_f32(m) / 3u + 0x2a514067u);
    f32 cube = y * y * y;
    y = y * (cube + 2.0f * m) / (2.0f * cube + m);
    y = y - (y * y * y - m) / (3.0f * y * y);
    f32_pair two = dg_product_exact(y, y);
    f32_pair three = dg_product_exact(two.hi, y);
    y = y - ((three.hi - m) + (three.lo + two.lo * y)) / (3.0f * two.hi);
    y = dg_copysign_f32(y * dg_from_bits_f32((u32)(q - 43 + 127 - (tiny ? 8 : 0)) << 23), x);
    return a == 0.0f || !(a < DG_INF_F32) ? x : y;
}

/* As C defines it: pow(x, 0) and pow(1, y) are 1 whatever the other is, NaN included. */
DG_FN f32 dg_pow_f32(f32 x, f32 y) {
    f32 a = dg_abs_f32(x);
    f32_pair l = dg_log_pair(a, 0.0f);
    l.hi = a == 0.0f ? -1e6f : l.hi; /* finite, as an infinity times 0 is NaN; the result for y = 0 is set below */
    l.hi = a == DG_INF_F32 ? 1e6f : l.hi;
    f32 power = y < -1e12f ? -1e12f : y;
    power = power > 1e12f ? 1e12f : power;
    f32_pair t = dg_product_exact(l.hi, power);
    t.lo = dg_fma_f32(l.lo, power, t.lo);
    f32 far = t.hi < 0.0f ? -150.0f : 150.0f; /* a power of 0 or inf is 0 or inf, however small y is */
    t.hi = (a == 0.0f) | (a == DG_INF_F32) ? far : t.hi;
    t.lo = dg_abs_f32(t.hi) < 150.0f ? t.lo : 0.0f;
    t.hi = t.hi < -150.0f ? -150.0f : t.hi;
    t.hi = t.hi > 150.0f ? 150.0f : t.hi;
    f32 r = dg_exp_scaled(t.hi, t.lo, 0);
    /* Tests by its bits whether y is an integer, and odd: `places` of its 24 mantissa bits are fractional. */
    u32 bits = dg_bits_f32(y) & 0x7fffffffu;
    u32 m = (bits & 0x7fffffu) | 0x800000u;
    i32 places = 150 - (i32)(bits >> 23);
    u32 behind = (u32)(places < 0 ? 0 : places > 24 ? 24 : places);
    i32 whole = (m & ((1u << behind) - 1u)) == 0u;
    u32 odd = (m >> behind) & (u32)whole & (u32)(places >= 0);
    f32 negative = dg_from_bits_f32(dg_bits_f32(r) ^ (odd << 31));
    negative = whole | (a == DG_INF_F32) | (a == 0.0f) ? negative : DG_NAN_F32;
    r = dg_bits_f32(x) >> 31 ? negative : r;
    r = (x != x) | (y != y) ? DG_NAN_F32 : r;
    i32 one = (x == 1.0f) | (y == 0.0f) | ((x == -1.0f) & (dg_abs_f32(y) == DG_INF_F32));
    return one ? 1.0f : r;
}

/* The operands are scaled, so that the larger one is about 1. */
DG_FN f32 dg_hypot_f32(f32 x, f32 y) {
    f32 ax = dg_abs_f32(x), ay = dg_abs_f32(y);
    f32 high = ax > ay ? ax : ay, low = ax > ay ? ay : ax;
    u32 e = dg_bits_f32(high) >> 23;
    e = e < 1u ? 1u : e > 253u ? 253u : e;
    f32 down = dg_from_bits_f32((254u - e) << 23);
    f32_pair a = dg_product_exact(high * down, high * down), b = dg_product_exact(low * down, low * down);
    f32 r = dg_sqrt_pair(dg_add_pair(a, b)).hi * dg_from_bits_f32(e << 23);
    r = x != x || y != y ? DG_NAN_F32 : r;
    return ax == DG_INF_F32 || ay == DG_INF_F32 ? DG_INF_F32 : r;
}

/* ---- trigonometric ----------------------------------------------------------------------------------- */

/* The words, counted from 0, of 32 zeros and then the binary digits of 2/pi. */
DG_FN u32 dg_word_of_two_over_pi(i32 k) {
    u32 low = k == 0 ? 0u : k == 1 ? 0xA2F9836Eu : k == 2 ? 0x4E441529u : 0xFC2757D1u;
    u32 high = k == 4 ? 0xF534DDC0u : k == 5 ? 0xDB629599u : k == 6 ? 0x3C439041u : 0xFE5163ABu;
    return k < 4 ? low : high;
}

/* As dg_quarter_turns_f32: returns the number of quarter turns in |x|, modulo 4, and stores the rest in [-pi/4, pi/4]. */
DG_FN u32 dg_quarter_turns_pair(f32 x, f32_pair *r) {
    u32 bits = dg_bits_f32(x) & 0x7fffffffu;
    u32 m = (bits & 0x7fffffu) | 0x800000u;
    i32 offset = (i32)(bits >> 23) - 120;
    offset = offset < 0 ? 0 : offset;
    i32 j = offset >> 5;
    u32 s = (u32)offset & 31u;
    u32 a1 = dg_word_of_two_over_pi(j + 1), a2 = dg_word_of_two_over_pi(j + 2);
    u32 w0 = (dg_word_of_two_over_pi(j) << s) | ((a1 >> 1) >> (31u - s));
    u32 w1 = (a1 << s) | ((a2 >> 1) >> (31u - s));
    u32 w2 = (a2 << s) | ((dg_word_of_two_over_pi(j + 3) >> 1) >> (31u - s));
    u64 low = (u64)m * w1 + (((u64)m * w2) >> 32);
    u32 hi = (u32)(low >> 32) + m * w0; /* 2 bits of quadrant, then 62 bits of fraction in hi, lo */
    u32 lo = (u32)low;
    u32 q = (hi + 0x20000000u) >> 30;
    i32 f = (i32)(hi - (q << 30));
    u32 sign = 0u - (u32)(f < 0); /* the complement serves as magnitude: an error of one in the last place does not matter */
    u32 top = (u32)f ^ sign, rest = lo ^ sign;
    /* its bits in pieces of 24, 24 and 14, which are exact as floats */
    f32 first = (f32)(top >> 6) * 5.9604645e-8f;
    f32 second = (f32)(((top & 63u) << 18) | (rest >> 14)) * 3.5527137e-15f;
    f32 third = (f32)(rest & 16383u) * 2.1684043e-19f;
    f32_pair turns = dg_sum_exact(first, second);
    turns = dg_mul_pair(dg_sum_ordered(turns.hi, turns.lo + third), dg_make_pair(1.57079637f, -4.37113883e-8f));
    i32 small = bits < 0x3f000000u; /* |x| < 1/2 needs no reduction, which would lose bits */
    r->hi = small ? dg_abs_f32(x) : sign ? -turns.hi : turns.hi;
    r->lo = small ? 0.0f : sign ? -turns.lo : turns.lo;
    return small ? 0u : q;
}

DG_FN f32 dg_sin_f32(f32 x) {
    f32_pair r;
    u32 q = dg_quarter_turns_pair(x, &r);
    f32 y = dg_sin_quadrant_f32(q, r.hi);
    y = dg_from_bits_f32(dg_bits_f32(y) ^ (dg_bits_f32(x) & 0x80000000u));
    return dg_abs_f32(x) < DG_INF_F32 ? y : DG_NAN_F32;
}

DG_FN f32 dg_cos_f32(f32 x) {
    f32_pair r;
    u32 q = dg_quarter_turns_pair(x, &r);
    f32 y = dg_sin_quadrant_f32(q + 1u, r.hi);
    return dg_abs_f32(x) < DG_INF_F32 ? y : DG_NAN_F32;
}

DG_FN f32 dg_tan_f32(f32 x) {
    f32_pair r;
    u32 q = dg_quarter_turns_pair(x, &r);
    f32_pair z = dg_mul_pair(r, r);
    f32 s = 2.75553512e-6f;
    s = dg_fma_f32(s, z.hi, -1.98412638e-4f);
    s = dg_fma_f32(s, z.hi, 8.33333333e-3f);
    s = dg_fma_f32(s, z.hi, -1.66666667e-1f);
    f32_pair sine = dg_sum_ordered(r.hi, dg_fma_f32(s * z.hi, r.hi, r.lo));
    f32 c = -2.75555604e-7f;
    c = dg_fma_f32(c, z.hi, 2.48015809e-5f);
    c = dg_fma_f32(c, z.hi, -1.38888889e-3f);
    c = dg_fma_f32(c, z.hi, 4.16666667e-2f);
    f32_pair cosine = dg_sum_ordered(1.0f, -0.5f * z.hi);
    cosine = dg_sum_ordered(cosine.hi, cosine.lo + dg_fma_f32(z.hi * z.hi, c, -0.5f * z.lo));
    i32 odd = (i32)(q & 1u);
    f32_pair over = odd ? dg_make_pair(-cosine.hi, -cosine.lo) : sine;
    f32_pair y = dg_div_pair(over, odd ? sine : cosine);
    f32 t = dg_from_bits_f32(dg_bits_f32(y.hi) ^ (dg_bits_f32(x) & 0x80000000u));
    t = dg_abs_f32(x) < 1e-6f ? x : t; /* the residual of a tiny quotient would be subnormal */
    return dg_abs_f32(x) < DG_INF_F32 ? t : DG_NAN_F32;
}

/* atan(b), 0 <= b <= 1 */
DG_FN f32_pair dg_atan_pair(f32_pair b) {
    f32 z = b.hi * b.hi;
    f32 p = -7.11058462e-4f;
    p = dg_fma_f32(p, z, 4.99804259e-3f);
    p = dg_fma_f32(p, z, -1.64686635e-2f);
    p = dg_fma_f32(p, z, 3.47012883e-2f);
    p = dg_fma_f32(p, z, -5.47020634e-2f);
    p = dg_fma_f32(p, z, 7.26927961e-2f);
    p = dg_fma_f32(p, z, -8.98876668e-2f);
    p = dg_fma_f32(p, z, 1.10951998e-1f);
    p = dg_fma_f32(p, z, -1.42842510e-1f);
    p = dg_fma_f32(p, z, 1.99999322e-1f);
    p = dg_fma_f32(p, z, -3.33333322e-1f);
    return dg_sum_ordered(b.hi, dg_fma_f32(p * z, b.hi, b.lo / (1.0f + z)));
}
/* hi + lo - p, rounded once, for hi above p */
DG_FN f32 dg_angle_minus(f32 hi, f32 lo, f32_pair p) {
    f32_pair s = dg_sum_ordered(hi, -p.hi);
    return s.hi + (s.lo + (lo - p.lo));
}
#define DG_HALF_PI_MINUS(p) dg_angle_minus(1.57079637f, -4.37113883e-8f, p)
#define DG_PI_MINUS(p) dg_angle_minus(3.14159274f, -8.74227766e-8f, p)

DG_FN f32 dg_atan_f32(f32 x) {
    f32 a = dg_abs_f32(x);
    i32 turned = a > 1.0f;
    f32 low = a > 1e15f ? 1e15f : a; /* pi/2 - 1e-15 is pi/2 */
    f32_pair b = dg_div_pair(dg_make_pair(1.0f, 0.0f), dg_make_pair(turned ? low : 1.0f, 0.0f));
    f32_pair p = dg_atan_pair(turned ? b : dg_make_pair(a, 0.0f));
    return dg_copysign_f32(turned ? DG_HALF_PI_MINUS(p) : p.hi, x);
}

DG_FN f32 dg_atan2_f32(f32 y, f32 x) {
    f32 ay = dg_abs_f32(y), ax = dg_abs_f32(x);
    f32 low = ay > ax ? ax : ay, high = ay > ax ? ay : ax;
    f32 up = high < 8.6736174e-19f ? 1.8446744e19f : 1.0f; /* so that residuals are not subnormal */
    f32_pair b = dg_div_pair(dg_make_pair(low * up, 0.0f), dg_make_pair(high * up, 0.0f));
    /* the residual of a subnormal product, or of an infinite operand, has no meaning */
    i32 plain = low * up > 1e-30f && high < DG_INF_F32;
    b.lo = plain ? b.lo : 0.0f;
    b.hi = plain ? b.hi : high == 0.0f || high == DG_INF_F32 ? 0.0f : low / high;
    b.hi = low == DG_INF_F32 ? 1.0f : b.hi;
    f32_pair p = dg_atan_pair(b);
    p = ay > ax ? dg_sum_ordered(DG_HALF_PI_MINUS(p), 0.0f) : p;
    f32 r = dg_bits_f32(x) >> 31 ? DG_PI_MINUS(p) : p.hi;
    return x != x || y != y ? DG_NAN_F32 : dg_copysign_f32(r, y);
}

/* (asin(s) - s) / s, for z = s^2 <= 1/4 */
DG_FN f32 dg_asin_tail_f32(f32 z) {
    f32 p = 3.29512763e-2f;
    p = dg_fma_f32(p, z, 1.93983118e-3f);
    p = dg_fma_f32(p, z, 2.06621714e-2f);
    p = dg_fma_f32(p, z, 2.18624255e-2f);
    p = dg_fma_f32(p, z, 3.04269007e-2f);
    p = dg_fma_f32(p, z, 4.46406847e-2f);
    p = dg_fma_f32(p, z, 7.50000505e-2f);
    p = dg_fma_f32(p, z, 1.66666666e-1f);
    return p * z;
}
/* asin(a) for a in [0, 1/2]; for a in (1/2, 1] half of acos(a) */
DG_FN f32_pair dg_asin_half_pair(f32 a) {
    i32 high = a > 0.5f;
    f32 z = high ? (1.0f - a) * 0.5f : a * a;
    f32_pair s = high ? dg_sqrt_pair(dg_make_pair(z, 0.0f)) : dg_make_pair(a, 0.0f);
    return dg_sum_ordered(s.hi, dg_fma_f32(dg_asin_tail_f32(z), s.hi, s.lo));
}

DG_FN f32 dg_asin_f32(f32 x) {
    f32 a = dg_abs_f32(x);
    f32_pair p = dg_asin_half_pair(a);
    f32_pair twice = dg_make_pair(p.hi + p.hi, p.lo + p.lo);
    f32 y = dg_copysign_f32(a > 0.5f ? DG_HALF_PI_MINUS(twice) : p.hi, x);
    return a <= 1.0f ? y : DG_NAN_F32;
}

DG_FN f32 dg_acos_f32(f32 x) {
    f32 a = dg_abs_f32(x);
    f32_pair p = dg_asin_half_pair(a);
    f32_pair twice = dg_make_pair(p.hi + p.hi, p.lo + p.lo), minus = dg_make_pair(-p.hi, -p.lo);
    f32 far = x > 0.0f ? twice.hi : DG_PI_MINUS(twice);
    f32 near = x > 0.0f ? DG_HALF_PI_MINUS(p) : DG_HALF_PI_MINUS(minus);
    return a <= 1.0f ? (a > 0.5f ? far : near) : DG_NAN_F32;
}

/* ---- hyperbolic -------------------------------------------------------------------------------------- */

DG_FN f32 dg_sinh_f32(f32 x) {
    f32 a = dg_abs_f32(x);
    f32 z = a * a;
    f32 p = 2.75520659e-6f;
    p = dg_fma_f32(p, z, 1.98412960e-4f);
    p = dg_fma_f32(p, z, 8.33333328e-3f);
    p = dg_fma_f32(p, z, 1.66666667e-1f);
    f32 near = dg_fma_f32(p * z, a, a);
    f32 e = dg_exp_scaled(a > 100.0f ? 100.0f : a, 0.0f, -1);
    f32 y = dg_copysign_f32(a < 1.0f ? near : e - 0.25f / e, x);
    return x != x ? x : y;
}

DG_FN f32 dg_cosh_f32(f32 x) {
    f32 a = dg_abs_f32(x);
    f32 e = dg_exp_scaled(a > 100.0f ? 100.0f : a, 0.0f, -1);
    return x != x ? x : e + 0.25f / e;
}

/* log(u) of a pair */
DG_FN f32_pair dg_log_of_pair(f32_pair u) { return dg_log_pair(u.hi, u.lo / u.hi); }

DG_FN f32 dg_asinh_f32(f32 x) {
    f32 a = dg_abs_f32(x);
    i32 large = a > 4096.0f; /* then a + sqrt(a^2 + 1) is 2 a */
    f32 b = large ? 1.0f : a;
    f32_pair root = dg_sqrt_pair(dg_add_pair(dg_product_exact(b, b), dg_make_pair(1.0f, 0.0f)));
    f32_pair u = dg_add_pair(root, dg_make_pair(b, 0.0f));
    f32_pair l = dg_log_of_pair(large ? dg_make_pair(a, 0.0f) : u);
    f32 r = l.hi + (large ? 0.693147181f + l.lo : 0.0f);
    r = a < 9.765625e-4f ? a - a * a * a * 0.166666667f : r;
    return a < DG_INF_F32 ? dg_copysign_f32(r, x) : x;
}

DG_FN f32 dg_acosh_f32(f32 x) {
    i32 large = x > 4096.0f;
    f32 b = large ? 1.0f : x - 1.0f; /* exact below 2, where it matters */
    f32_pair v = dg_sum_exact(large ? 1.0f : x, -1.0f);
    f32_pair root = dg_sqrt_pair(dg_mul_pair(v, dg_add_pair(v, dg_make_pair(2.0f, 0.0f))));
    f32_pair u = dg_add_pair(dg_add_pair(dg_make_pair(1.0f, 0.0f), v), root);
    f32_pair l = dg_log_of_pair(large ? dg_make_pair(x, 0.0f) : u);
    f32 r = l.hi + (large ? 0.693147181f + l.lo : 0.0f);
    r = b < 0.0f ? DG_NAN_F32 : r;
    return x < DG_INF_F32 ? r : x;
}

DG_FN f32 dg_atanh_f32(f32 x) {
    f32 a = dg_abs_f32(x);
    f32 b = a < 1.0f ? a : 0.5f;
    f32_pair q = dg_div_pair(dg_sum_ordered(1.0f, b), dg_sum_ordered(1.0f, -b));
    f32 r = 0.5f * dg_log_of_pair(q).hi;
    r = a < 9.765625e-4f ? a + a * a * a * 0.333333333f : r;
    r = a == 1.0f ? DG_INF_F32 : r;
    return a <= 1.0f ? dg_copysign_f32(r, x) : DG_NAN_F32;
}

/* ---- error function ---------------------------------------------------------------------------------- */

/* erfc(a) = exp(-a^2) g / (1 + 2a), g a polynomial in (a-2)/(a+2); Shepherd and Laframboise (1981). */
DG_FN f32 dg_erfc_f32(f32 x) {
    f32 a = dg_abs_f32(x);
    a = a > 10.5f ? 10.5f : a;
    f32_pair q = dg_div_pair(dg_sum_exact(a, -2.0f), dg_sum_exact(a, 2.0f));
    f32 g = -7.47990661e-6f;
    g = dg_fma_f32(g, q.hi, -2.74259135e-5f);
    g = dg_fma_f32(g, q.hi, -3.24465358e-6f);
    g = dg_fma_f32(g, q.hi, 1.43806664e-4f);
    g = dg_fma_f32(g, q.hi, 2.05558990e-4f);
    g = dg_fma_f32(g, q.hi, -4.51440282e-4f);
    g = dg_fma_f32(g, q.hi, -1.45617394e-3f);
    g = dg_fma_f32(g, q.hi, 1.27071077e-3f);
    g = dg_fma_f32(g, q.hi, 8.72249898e-3f);
    g = dg_fma_f32(g, q.hi, -8.03394354e-3f);
    g = dg_fma_f32(g, q.hi, -5.42199854e-2f);
    g = dg_fma_f32(g, q.hi, 1.64051276e-1f);
    g = dg_fma_f32(g, q.hi, -1.66030398e-1f);
    g = dg_fma_f32(g, q.hi, -9.27638265e-2f);
    f32_pair high = dg_product_exact(g, q.hi); /* the last step of Horner's scheme with a pair */
    high = dg_add_pair(dg_make_pair(1.27697838f, -2.08e-10f), dg_make_pair(high.hi, dg_fma_f32(g, q.lo, high.lo)));
    f32_pair part = dg_div_pair(high, dg_sum_exact(a + a, 1.0f));
    f32_pair square = dg_product_exact(a, a);
    i32 k;
    f32_pair e = dg_exp_pair(-square.hi, -square.lo, &k);
    f32 r = dg_scale_f32(dg_mul_pair(e, part).hi, k);
    r = x < 0.0f ? 2.0f - r : r;
    return x != x ? x : r;
}

/* ---- float to 64-bit integer: NaN gives 0; out of range gives the nearest ----------------------------- */

DG_FN i64 dg_f32_to_i64(f32 x) {
    f32 c = x < -9223372036854775808.0f ? -9223372036854775808.0f : x;
    c = c > 9223371487098961920.0f ? 9223371487098961920.0f : c;
    i64 k = (i64)(c == c ? c : 0.0f);
    return x >= 9223372036854775808.0f ? 9223372036854775807 : k;
}
DG_FN u64 dg_f32_to_u64(f32 x) {
    f32 high = x - 9223372036854775808.0f;
    return x >= 9223372036854775808.0f ? (u64)dg_f32_to_i64(high) + 0x8000000000000000u : (u64)dg_f32_to_i64(x);
}
