/* Mathematics of the C family: C, OpenCL C and CUDA C share this text.
 *
 * The dialect's prelude stands before it and defines the types f32 f64 i8..i64 u8..u64, DG_FN (an inline
 * function), DG_LIBM(name) (the double function of that name), and the few things that the languages spell
 * differently: dg_bits_f32/dg_from_bits_f32 (float <-> u32), dg_fma_f32/dg_fma_f64 (one rounding where the
 * hardware has it, a*b + c elsewhere: nothing below needs the single rounding), dg_sqrt, dg_floor, ...
 *
 * float32 functions are at most 2 ulp off over the whole range; NaN, infinities, signed zeros and subnormals
 * are right. They have no branch, no table and call no library, so that loops over them are vectorised.
 * Selections are written as ?: on values already computed. Less common functions compute in float64 inside,
 * which is simpler than pairs of floats and leaves an error just above half an ulp.
 * Nothing here may be compiled with -ffast-math or with contraction of a*b + c.
 *
 * Polynomials: least squares at Chebyshev nodes, reweighted to equal ripple, coefficients rounded to float32
 * one after the other with the rest refitted. Range reduction: Cody and Waite, "Software Manual for the
 * Elementary Functions" (1980); Payne and Hanek, "Radian reduction for trigonometric functions" (1983).
 */

#define DG_INF_F32 dg_from_bits_f32(0x7f800000u)
#define DG_NAN_F32 dg_from_bits_f32(0x7fc00000u)

DG_FN f32 dg_abs_f32(f32 x) { return dg_from_bits_f32(dg_bits_f32(x) & 0x7fffffffu); }
DG_FN f32 dg_copysign_f32(f32 x, f32 sign) {
    return dg_from_bits_f32((dg_bits_f32(x) & 0x7fffffffu) | (dg_bits_f32(sign) & 0x80000000u));
}
DG_FN f64 dg_abs_f64(f64 x) { return dg_from_bits_f64(dg_bits_f64(x) & 0x7fffffffffffffffull); }
DG_FN f64 dg_copysign_f64(f64 x, f64 sign) {
    return dg_from_bits_f64((dg_bits_f64(x) & 0x7fffffffffffffffull) |
                            (dg_bits_f64(sign) & 0x8000000000000000ull));
}

/* ---- exponential ------------------------------------------------------------------------------------- */

/* e^r for |r| <= log(2); +inf for greater r, NaN for NaN */
DG_FN f32 dg_exp_near_f32(f32 r) {
    f32 q = 1.96297493e-4f;
    q = dg_fma_f32(q, r, 1.41047779e-3f);
    q = dg_fma_f32(q, r, 8.33593495e-3f);
    q = dg_fma_f32(q, r, 4.1661229e-2f);
    q = dg_fma_f32(q, r, 1.6666618e-1f);
    q = dg_fma_f32(q, r, 5.00000358e-1f);
    q = dg_fma_f32(q, r, 1.0f);
    return dg_fma_f32(q, r, 1.0f);
}

/* x + DG_ROUND_F32 rounds x to an integer n and has n + 127 in its low bits. The constant is 1.5 * 2^23 + 127. */
#define DG_ROUND_F32 12583039.0f
DG_FN f32 dg_power_of_two_f32(f32 rounded) { return dg_from_bits_f32(dg_bits_f32(rounded) << 23); }

/* The smaller of x and a positive number; a positive NaN gives the number. Compared as integers: one instruction. */
DG_FN f32 dg_at_most_f32(f32 x, f32 most) {
    i32 bits = (i32)dg_bits_f32(x), limit = (i32)dg_bits_f32(most);
    i32 smaller = bits < limit ? bits : limit; /* its own statement: otherwise gcc compares floats */
    return dg_from_bits_f32((u32)smaller);
}

/* e^x = 4^n e^r. Multiplying by 2^n twice rounds subnormal results only once, and avoids 2^128. For x > 89, n is that of
 * 89 and r grows, so that the result is infinite. NaN passes through r. For x < -104 the result is set to 0 at the end. */
DG_FN f32 dg_exp_f32(f32 x) {
    f32 rounded = dg_fma_f32(dg_at_most_f32(x, 89.0f), 0.72134752f, DG_ROUND_F32);
    f32 n = rounded - DG_ROUND_F32;
    f32 r = dg_fma_f32(n, -1.386291504f, x); /* the constant has 15 bits, so the product is exact */
    r = dg_fma_f32(n, -2.85721354e-6f, r);
    f32 y = dg_exp_near_f32(r) * dg_power_of_two_f32(rounded) * dg_power_of_two_f32(rounded);
    return x < -104.0f ? 0.0f : y;
}

DG_FN f32 dg_exp2_f32(f32 x) {
    f32 rounded = dg_fma_f32(dg_at_most_f32(x, 129.0f), 0.5f, DG_ROUND_F32);
    f32 n = rounded - DG_ROUND_F32;
    f32 r = (x - (n + n)) * 0.693147181f;
    f32 y = dg_exp_near_f32(r) * dg_power_of_two_f32(rounded) * dg_power_of_two_f32(rounded);
    return x < -151.0f ? 0.0f : y;
}

/* e^x - 1 = 2 (p 2^(n-1) + (2^(n-1) - 1/2)) with p = e^r - 1; the outer factor 2 avoids an infinite 2^128. */
DG_FN f32 dg_expm1_f32(f32 x) {
    f32 y = x < -18.0f ? -18.0f : x;
    y = y > 89.0f ? 89.0f : y;
    f32 shifted = dg_fma_f32(y, 1.442695041f, 12582912.0f);
    f32 n = shifted - 12582912.0f;
    i32 k = (i32)dg_bits_f32(shifted) - 0x4b400000;
    f32 r = dg_fma_f32(n, -0.693145752f, y);
    r = dg_fma_f32(n, -1.42860677e-6f, r);
    f32 q = 1.9944286e-4f;
    q = dg_fma_f32(q, r, 1.3932681e-3f);
    q = dg_fma_f32(q, r, 8.333208e-3f);
    q = dg_fma_f32(q, r, 4.166649e-2f);
    q = dg_fma_f32(q, r, 1.6666667e-1f);
    q = dg_fma_f32(q, r, 5.0e-1f);
    f32 p = dg_fma_f32(r * r, q, r);
    f32 s = dg_from_bits_f32((u32)(k + 126) << 23);
    f32 y1 = 2.0f * (dg_fma_f32(p, s, s - 0.5f));
    return dg_abs_f32(x) < 1e-8f ? x : y1;
}

/* ---- logarithm --------------------------------------------------------------------------------------- */

/* log(1 + f) - f for f in [-1/3, 1/3] */
DG_FN f32 dg_log_tail_f32(f32 f) {
    f32 p = 1.1957017e-1f;
    p = dg_fma_f32(p, f, -1.282994e-1f);
    p = dg_fma_f32(p, f, 1.07698485e-1f);
    p = dg_fma_f32(p, f, -1.2199449e-1f);
    p = dg_fma_f32(p, f, 1.4302702e-1f);
    p = dg_fma_f32(p, f, -1.6679294e-1f);
    p = dg_fma_f32(p, f, 1.9999681e-1f);
    p = dg_fma_f32(p, f, -2.4999827e-1f);
    p = dg_fma_f32(p, f, 3.3333334e-1f);
    f32 f2 = f * f;
    return dg_fma_f32(f2 * f, p, -0.5f * f2);
}

/* The logarithm of x if x is not in (0, inf), else y. */
DG_FN f32 dg_log_edges_f32(f32 x, f32 y) {
    y = x == DG_INF_F32 ? x : y;
    y = x == 0.0f ? -DG_INF_F32 : y;
    y = x < 0.0f ? DG_NAN_F32 : y;
    return x != x ? x : y;
}

/* Splits x = 2^e (1 + f): returns f, and stores e as a float. Subnormal numbers are scaled up first. */
DG_FN f32 dg_split_f32(f32 x, f32 *e) {
    i32 tiny = x < 1.17549435e-38f;
    f32 scaled = tiny ? x * 8388608.0f : x;
    i32 bits = (i32)dg_bits_f32(scaled) - 0x3f2aaaab; /* the bits of 2/3 */
    *e = (f32)((bits >> 23) - (tiny ? 23 : 0));
    return dg_from_bits_f32((u32)((bits & 0x7fffff) + 0x3f2aaaab)) - 1.0f;
}

DG_FN f32 dg_log_f32(f32 x) {
    f32 e;
    f32 f = dg_split_f32(x, &e);
    f32 y = dg_fma_f32(e, 1.42860677e-6f, dg_log_tail_f32(f)) + f;
    return dg_log_edges_f32(x, dg_fma_f32(e, 0.693145752f, y));
}

/* u = 1 + x is rounded; the rounding error c is added again after scaling to [2/3, 4/3). */
DG_FN f32 dg_log1p_f32(f32 x) {
    f32 u = 1.0f + x;
    f32 c = x < 1.0f ? x - (u - 1.0f) : 1.0f - (u - x);
    i32 bits = (i32)dg_bits_f32(u) - 0x3f2aaaab;
    i32 k = bits >> 23;
    f32 e = (f32)k;
    f32 f = dg_from_bits_f32((u32)((bits & 0x7fffff) + 0x3f2aaaab)) - 1.0f;
    k = k > 125 ? 125 : k;
    f = dg_fma_f32(c, dg_from_bits_f32((u32)(127 - k) << 23), f);
    f32 y = dg_fma_f32(e, 1.42860677e-6f, dg_log_tail_f32(f)) + f;
    y = dg_fma_f32(e, 0.693145752f, y);
    y = dg_abs_f32(x) < 5e-8f ? x : y;
    return dg_log_edges_f32(x < -0.5f || u != u ? u : (x == DG_INF_F32 ? x : 1.0f), y);
}

DG_FN f32 dg_log2_f32(f32 x) {
    f32 e;
    f32 f = dg_split_f32(x, &e);
    f32 t = dg_log_tail_f32(f);
    f32 y = dg_fma_f32(f, 1.92596303e-8f, t * 1.442695041f); /* log2(e) in two parts */
    return dg_log_edges_f32(x, e + dg_fma_f32(f, 1.442695041f, y));
}

DG_FN f32 dg_log10_f32(f32 x) {
    f32 e;
    f32 f = dg_split_f32(x, &e);
    f32 y = f + dg_log_tail_f32(f);
    y = dg_fma_f32(e, 4.6050390e-6f, y * 0.434294482f);
    return dg_log_edges_f32(x, dg_fma_f32(e, 0.301025391f, y));
}

/* ---- float64 inside float32 functions ---------------------------------------------------------------- */

/* e^x with relative error 2^-45, for x in [-745, 709]; the range is not checked. */
DG_FN f64 dg_exp_wide(f64 x) {
    f64 shifted = x * 1.4426950408889634 + 6755399441055744.0; /* 1.5 * 2^52 */
    f64 n = shifted - 6755399441055744.0;
    i64 k = (i64)(dg_bits_f64(shifted) - 0x4338000000000000ull);
    f64 r = (x - n * 0.693147180369123816490) - n * 1.90821492927058770002e-10;
    f64 p = 2.7647903271797962e-06;
    p = dg_fma_f64(p, r, 2.488462625318271e-05);
    p = dg_fma_f64(p, r, 0.00019841149586572032);
    p = dg_fma_f64(p, r, 0.0013888801387903602);
    p = dg_fma_f64(p, r, 0.008333333404025334);
    p = dg_fma_f64(p, r, 0.0416666670430129);
    p = dg_fma_f64(p, r, 0.1666666666649481);
    p = dg_fma_f64(p, r, 0.49999999999433153);
    p = dg_fma_f64(p, r, 1.0000000000000118);
    p = dg_fma_f64(p, r, 1.0000000000000138);
    return p * dg_from_bits_f64((u64)(k + 1023) << 52);
}

/* log(x) with relative error 2^-48, also next to 1, for x positive, normal and finite. */
DG_FN f64 dg_log_wide(f64 x) {
    u64 bits = dg_bits_f64(x) - 0x3fe6a09e00000000ull; /* the bits of sqrt(1/2) */
    /* the exponent without a conversion from a 64-bit integer, which AVX2 lacks */
    f64 e = dg_from_bits_f64((((bits >> 52) + 2048) & 4095) | 0x4330000000000000ull) - 4503599627372544.0;
    f64 m = dg_from_bits_f64((bits & 0x000fffffffffffffull) + 0x3fe6a09e00000000ull);
    f64 s = (m - 1.0) / (m + 1.0);
    f64 z = s * s;
    f64 p = 0.1682177561045042;
    p = dg_fma_f64(p, z, 0.1812348773689367);
    p = dg_fma_f64(p, z, 0.2222337623054752);
    p = dg_fma_f64(p, z, 0.28571417069102206);
    p = dg_fma_f64(p, z, 0.4000000005263278);
    p = dg_fma_f64(p, z, 0.6666666666658647);
    return dg_fma_f64(e, 0.69314718055994531, dg_fma_f64(s * z, p, 2.0 * s));
}

/* ---- powers ------------------------------------------------------------------------------------------ */

DG_FN f32 dg_sqrt_f32(f32 x) { return DG_SQRT_F32(x); }
DG_FN f32 dg_rsqrt_f32(f32 x) { return 1.0f / DG_SQRT_F32(x); }
DG_FN f32 dg_cbrt_f32(f32 x) {
    f64 a = dg_abs_f32(x);
    f32 y = dg_copysign_f32((f32)dg_exp_wide(dg_log_wide(a) * 0.33333333333333333), x);
    return a == 0.0 || !(a < 3.5e38) ? x : y;
}

/* As C defines it: pow(x, 0) and pow(1, y) are 1 whatever the other is, NaN included. */
DG_FN f32 dg_pow_f32(f32 x, f32 y) {
    f32 a = dg_abs_f32(x);
    f64 l = dg_log_wide(a);
    l = a == 0.0f ? -1e6 : l; /* finite, as an infinity times 0 is NaN; the result for y = 0 is set below */
    l = a == DG_INF_F32 ? 1e6 : l;
    f64 power = y;
    power = power < -1e38 ? -1e38 : power;
    power = power > 1e38 ? 1e38 : power;
    f64 t = l * power;
    f64 far = t < 0.0 ? -150.0 : 150.0; /* a power of 0 or inf is 0 or inf, however small y is */
    t = (a == 0.0f) | (a == DG_INF_F32) ? far : t;
    t = t < -150.0 ? -150.0 : t;
    t = t > 150.0 ? 150.0 : t;
    f32 r = (f32)dg_exp_wide(t);
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

DG_FN f32 dg_hypot_f32(f32 x, f32 y) {
    f32 r = (f32)DG_SQRT_F64((f64)x * x + (f64)y * y);
    return dg_abs_f32(x) == DG_INF_F32 || dg_abs_f32(y) == DG_INF_F32 ? DG_INF_F32 : r;
}

/* ---- trigonometric ----------------------------------------------------------------------------------- */

/* Reduces |x|, in radians, to quarter turns: returns their number modulo 4, and stores the rest in [-pi/4, pi/4] in *r.
 * With x = m 2^(E-150), it multiplies m by the 96 bits of 2/pi that matter modulo 4. It selects their words by masks rather
 * than by branches, so that all lanes of a vector run the same instructions. */
DG_FN u32 dg_quarter_turns_f32(f32 x, f64 *r) {
    u32 bits = dg_bits_f32(x) & 0x7fffffffu;
    u32 m = (bits & 0x7fffffu) | 0x800000u;
    i32 offset = (i32)(bits >> 23) - 120;
    offset = offset < 0 ? 0 : offset;
    i32 j = offset >> 5;
    u32 s = (u32)offset & 31u;
    /* shifts, by whole words, 0 and 2/pi = 0.A2F9836E 4E441529 FC2757D1 F534DDC0 DB629599 3C439041 FE5163AB */
    u32 four = 0u - (u32)(j >> 2), two = 0u - (u32)((j >> 1) & 1), one = 0u - (u32)(j & 1);
    u32 b0 = 0u ^ (four & (0u ^ 0xF534DDC0u));
    u32 b1 = 0xA2F9836Eu ^ (four & (0xA2F9836Eu ^ 0xDB629599u));
    u32 b2 = 0x4E441529u ^ (four & (0x4E441529u ^ 0x3C439041u));
    u32 b3 = 0xFC2757D1u ^ (four & (0xFC2757D1u ^ 0xFE5163ABu));
    u32 b4 = 0xF534DDC0u;
    u32 b5 = 0xDB629599u;
    u32 b6 = 0x3C439041u;
    u32 c0 = b0 ^ (two & (b0 ^ b2));
    u32 c1 = b1 ^ (two & (b1 ^ b3));
    u32 c2 = b2 ^ (two & (b2 ^ b4));
    u32 c3 = b3 ^ (two & (b3 ^ b5));
    u32 c4 = b4 ^ (two & (b4 ^ b6));
    u32 a0 = c0 ^ (one & (c0 ^ c1));
    u32 a1 = c1 ^ (one & (c1 ^ c2));
    u32 a2 = c2 ^ (one & (c2 ^ c3));
    u32 a3 = c3 ^ (one & (c3 ^ c4));
    u32 w0 = (a0 << s) | ((a1 >> 1) >> (31u - s));
    u32 w1 = (a1 << s) | ((a2 >> 1) >> (31u - s));
    u32 w2 = (a2 << s) | ((a3 >> 1) >> (31u - s));
    u64 low = (u64)m * w1 + (((u64)m * w2) >> 32);
    u32 hi = (u32)(low >> 32) + m * w0; /* 2 bits of quadrant, then 62 bits of fraction in hi, lo */
    u32 lo = (u32)low;
    u32 q = (hi + 0x20000000u) >> 30;
    i32 f = (i32)(hi - (q << 30));
    i32 sign = f >> 31; /* the complement serves as magnitude: an error of one in the last place does not matter */
    f64 turns = (f64)(f ^ sign) * 9.3132257461547852e-10 +
                (f64)(i32)((lo ^ (u32)sign) >> 1) * 4.3368086899420177e-19;
    turns = sign ? -turns : turns;
    i32 small = bits < 0x3f000000u; /* |x| < 1/2 needs no reduction, which would lose bits */
    *r = small ? (f64)dg_abs_f32(x) : turns * 1.5707963267948966;
    return small ? 0u : q;
}

DG_FN f32 dg_sin_quadrant_f32(u32 q, f32 r) {
    f32 z = r * r;
    f32 s = 2.8372663e-6f;
    s = dg_fma_f32(s, z, -1.98535e-4f);
    s = dg_fma_f32(s, z, 8.33338e-3f);
    s = dg_fma_f32(s, z, -1.6666667e-1f);
    s = dg_fma_f32(s * z, r, r);
    f32 c = 2.4430678e-5f;
    c = dg_fma_f32(c, z, -1.3887301e-3f);
    c = dg_fma_f32(c, z, 4.1666646e-2f);
    c = dg_fma_f32(c, z, -0.5f);
    c = dg_fma_f32(c, z, 1.0f);
    f32 y = (q & 1u) ? c : s;
    return dg_from_bits_f32(dg_bits_f32(y) ^ ((q & 2u) << 30));
}

DG_FN f32 dg_sin_f32(f32 x) {
    f64 r;
    u32 q = dg_quarter_turns_f32(x, &r);
    f32 y = dg_sin_quadrant_f32(q, (f32)r);
    y = dg_from_bits_f32(dg_bits_f32(y) ^ (dg_bits_f32(x) & 0x80000000u));
    return dg_abs_f32(x) < DG_INF_F32 ? y : DG_NAN_F32;
}

DG_FN f32 dg_cos_f32(f32 x) {
    f64 r;
    u32 q = dg_quarter_turns_f32(x, &r);
    f32 y = dg_sin_quadrant_f32(q + 1u, (f32)r);
    return dg_abs_f32(x) < DG_INF_F32 ? y : DG_NAN_F32;
}

DG_FN f32 dg_tan_f32(f32 x) {
    f64 r;
    u32 q = dg_quarter_turns_f32(x, &r);
    f64 z = r * r;
    f64 s = -2.4761169581147975e-08;
    s = dg_fma_f64(s, z, 2.755535119878359e-06);
    s = dg_fma_f64(s, z, -0.0001984126379232827);
    s = dg_fma_f64(s, z, 0.008333333325214768);
    s = dg_fma_f64(s, z, -0.16666666666631247);
    s = dg_fma_f64(s * z, r, r);
    f64 c = 2.0647300992958615e-09;
    c = dg_fma_f64(c, z, -2.755556036025704e-07);
    c = dg_fma_f64(c, z, 2.4801580934492425e-05);
    c = dg_fma_f64(c, z, -0.0013888888878190334);
    c = dg_fma_f64(c, z, 0.041666666666601626);
    c = dg_fma_f64(c, z, -0.5);
    c = dg_fma_f64(c, z, 1.0);
    i32 odd = (i32)(q & 1u);
    f32 y = (f32)((odd ? -c : s) / (odd ? s : c));
    y = dg_from_bits_f32(dg_bits_f32(y) ^ (dg_bits_f32(x) & 0x80000000u));
    return dg_abs_f32(x) < DG_INF_F32 ? y : DG_NAN_F32;
}

/* atan(b), 0 <= b <= 1 */
DG_FN f64 dg_atan_wide(f64 b) {
    f64 z = b * b;
    f64 p = -0.0007110584621104948;
    p = dg_fma_f64(p, z, 0.004998042593014737);
    p = dg_fma_f64(p, z, -0.016468663487207835);
    p = dg_fma_f64(p, z, 0.03470128830688197);
    p = dg_fma_f64(p, z, -0.054702063380505664);
    p = dg_fma_f64(p, z, 0.0726927961009018);
    p = dg_fma_f64(p, z, -0.08988766673115796);
    p = dg_fma_f64(p, z, 0.11095199812122035);
    p = dg_fma_f64(p, z, -0.1428425097443541);
    p = dg_fma_f64(p, z, 0.19999932239810422);
    p = dg_fma_f64(p, z, -0.3333333223738391);
    return dg_fma_f64(p * z, b, b);
}

DG_FN f32 dg_atan_f32(f32 x) {
    f64 a = dg_abs_f32(x);
    f64 p = dg_atan_wide(a > 1.0 ? 1.0 / a : a);
    return dg_copysign_f32((f32)(a > 1.0 ? 1.5707963267948966 - p : p), x);
}

DG_FN f32 dg_atan2_f32(f32 y, f32 x) {
    f64 ay = dg_abs_f32(y), ax = dg_abs_f32(x);
    f64 low = ay > ax ? ax : ay, high = ay > ax ? ay : ax;
    f64 b = low / high;
    b = high == 0.0 ? 0.0 : b;
    b = low > 3.5e38 ? 1.0 : b;
    f64 p = dg_atan_wide(b);
    p = ay > ax ? 1.5707963267948966 - p : p;
    p = dg_bits_f32(x) >> 31 ? 3.1415926535897932 - p : p;
    return x != x || y != y ? DG_NAN_F32 : dg_copysign_f32((f32)p, y);
}

/* (asin(s) - s) / s, for z = s^2 <= 1/4 */
DG_FN f64 dg_asin_tail(f64 z) {
    f64 p = 0.03295127634155911;
    p = dg_fma_f64(p, z, 0.0019398311832902167);
    p = dg_fma_f64(p, z, 0.020662171426150414);
    p = dg_fma_f64(p, z, 0.02186242547079233);
    p = dg_fma_f64(p, z, 0.03042690069312072);
    p = dg_fma_f64(p, z, 0.04464068461676129);
    p = dg_fma_f64(p, z, 0.0750000505007388);
    p = dg_fma_f64(p, z, 0.16666666626639307);
    return p * z;
}

DG_FN f32 dg_asin_f32(f32 x) {
    f64 a = dg_abs_f32(x);
    f64 z = a > 0.5 ? (1.0 - a) * 0.5 : a * a;
    f64 s = a > 0.5 ? DG_SQRT_F64(z) : a;
    f64 p = dg_fma_f64(dg_asin_tail(z), s, s);
    return dg_copysign_f32((f32)(a > 0.5 ? 1.5707963267948966 - 2.0 * p : p), x);
}

DG_FN f32 dg_acos_f32(f32 x) {
    f64 a = dg_abs_f32(x);
    f64 z = a > 0.5 ? (1.0 - a) * 0.5 : a * a;
    f64 s = a > 0.5 ? DG_SQRT_F64(z) : a;
    f64 p = dg_fma_f64(dg_asin_tail(z), s, s);
    f64 far = x > 0.0f ? 2.0 * p : 3.1415926535897932 - 2.0 * p;
    f64 near = x > 0.0f ? 1.5707963267948966 - p : 1.5707963267948966 + p;
    return (f32)(a > 0.5 ? far : near);
}

/* ---- hyperbolic -------------------------------------------------------------------------------------- */

/* With a = |x| = h + n log(2)/2, t = tanh(h), s = 2^(n-1) and e = (s - 1/2) + (s + 1/2) t, tanh(a) = e / (e + 1 - t). The
 * rounding error of e is in numerator and denominator, so it nearly cancels. For n = 0 the quotient is t / 1, right to half
 * an ulp. n becomes 1 at a = 0.27: errors for n = 1 are greatest for small results, which are above 1/4 there. */
DG_FN f32 dg_tanh_f32(f32 x) {
    f32 a = dg_abs_f32(x);
    f32 rounded = dg_fma_f32(a - 0.0936f, 2.885390082f, DG_ROUND_F32 - 1.0f);
    f32 h = dg_fma_f32(rounded - (DG_ROUND_F32 - 1.0f), -0.34657359f, a);
    f32 z = h * h;
    f32 q = -5.13151102e-2f;
    q = dg_fma_f32(q, z, 1.33233935e-1f);
    q = dg_fma_f32(q, z, -3.3333227e-1f);
    f32 t = dg_fma_f32(q * z, h, h);
    f32 s = dg_power_of_two_f32(rounded);
    f32 e = dg_fma_f32(t, s + 0.5f, s - 0.5f);
    f32 y = e / (e + (1.0f - t));
    y = a > 9.011f ? 1.0f : y;
    return dg_copysign_f32(y, x);
}

DG_FN f32 dg_sinh_f32(f32 x) {
    f64 a = dg_abs_f32(x);
    f64 z = a * a;
    f64 p = 2.552973121888765e-08;
    p = dg_fma_f64(p, z, 2.755206593132606e-06);
    p = dg_fma_f64(p, z, 0.00019841296033530658);
    p = dg_fma_f64(p, z, 0.008333333276359642);
    p = dg_fma_f64(p, z, 0.16666666667069346);
    f64 near = dg_fma_f64(p * z, a, a);
    f64 e = dg_exp_wide(a > 100.0 ? 100.0 : a);
    return dg_copysign_f32((f32)(a < 1.0 ? near : 0.5 * (e - 1.0 / e)), x);
}

DG_FN f32 dg_cosh_f32(f32 x) {
    f64 a = dg_abs_f32(x);
    f64 e = dg_exp_wide(a > 100.0 ? 100.0 : a);
    return (f32)(0.5 * (e + 1.0 / e));
}

DG_FN f32 dg_asinh_f32(f32 x) {
    f64 a = dg_abs_f32(x);
    f64 r = dg_log_wide(a + DG_SQRT_F64(a * a + 1.0));
    r = a < 9.765625e-4 ? a - a * a * a * 0.16666666666666667 : r;
    return a < 3.5e38 ? dg_copysign_f32((f32)r, x) : x;
}

DG_FN f32 dg_acosh_f32(f32 x) {
    f64 a = x;
    f64 r = dg_log_wide(a + DG_SQRT_F64(a * a - 1.0));
    f32 y = x < 1.0f ? DG_NAN_F32 : (f32)r;
    return x < DG_INF_F32 ? y : x;
}

DG_FN f32 dg_atanh_f32(f32 x) {
    f64 a = dg_abs_f32(x);
    f64 r = 0.5 * dg_log_wide((1.0 + a) / (1.0 - a));
    r = a < 9.765625e-4 ? a + a * a * a * 0.33333333333333333 : r;
    f32 y = a == 1.0 ? DG_INF_F32 : (f32)r;
    return a <= 1.0 ? dg_copysign_f32(y, x) : DG_NAN_F32;
}

/* ---- error function ---------------------------------------------------------------------------------- */

/* Near zero a polynomial in x^2; further out 1 - exp(polynomial that fits log(erfc)). */
DG_FN f32 dg_erf_f32(f32 x) {
    f32 z = x * x;
    f32 p = 7.918161e-5f;
    p = dg_fma_f32(p, z, -8.035051e-4f);
    p = dg_fma_f32(p, z, 5.1914393e-3f);
    p = dg_fma_f32(p, z, -2.6855474e-2f);
    p = dg_fma_f32(p, z, 1.12836234e-1f);
    p = dg_fma_f32(p, z, -3.761263e-1f);
    p = dg_fma_f32(p, z, 1.2837917e-1f);
    f32 near = dg_fma_f32(p, x, x);
    f32 a = dg_abs_f32(x);
    f32 t = a > 4.0f ? 4.0f : a;
    f32 l = -2.0564385e-5f;
    l = dg_fma_f32(l, t, 4.2832264e-4f);
    l = dg_fma_f32(l, t, -4.141335e-3f);
    l = dg_fma_f32(l, t, 2.5041314e-2f);
    l = dg_fma_f32(l, t, -1.0815972e-1f);
    l = dg_fma_f32(l, t, -6.3345575e-1f);
    l = dg_fma_f32(l, t, -1.1294614e+0f);
    l = dg_fma_f32(l, t, 1.6363524e-4f);
    f32 far = 1.0f - dg_exp_f32(l);
    return dg_copysign_f32(a < 0.875f ? near : far, x);
}

/* erfc(a) = exp(-a^2) g / (1 + 2a), g a polynomial in (a-2)/(a+2); Shepherd and Laframboise (1981). */
DG_FN f32 dg_erfc_f32(f32 x) {
    f64 a = dg_abs_f32(x);
    a = a > 10.5 ? 10.5 : a;
    f64 q = (a - 2.0) / (a + 2.0);
    f64 g = -7.479906605428339e-06;
    g = dg_fma_f64(g, q, -2.742591352594387e-05);
    g = dg_fma_f64(g, q, -3.244653582350771e-06);
    g = dg_fma_f64(g, q, 0.00014380666415771357);
    g = dg_fma_f64(g, q, 0.00020555899020000497);
    g = dg_fma_f64(g, q, -0.0004514402815674969);
    g = dg_fma_f64(g, q, -0.001456173935323107);
    g = dg_fma_f64(g, q, 0.0012707107754869255);
    g = dg_fma_f64(g, q, 0.00872249897566301);
    g = dg_fma_f64(g, q, -0.008033943544426533);
    g = dg_fma_f64(g, q, -0.05421998538449404);
    g = dg_fma_f64(g, q, 0.16405127630472316);
    g = dg_fma_f64(g, q, -0.16603039816768983);
    g = dg_fma_f64(g, q, -0.09276382652678344);
    g = dg_fma_f64(g, q, 1.2769783815555644);
    f64 r = dg_exp_wide(-a * a) * g / (1.0 + 2.0 * a);
    return (f32)(x < 0.0f ? 2.0 - r : r);
}

/* ---- rounding and the rest --------------------------------------------------------------------------- */

#define DG_ROUNDING(T, S, LIBM)                                                                              \
    DG_FN T dg_floor_##S(T x) { return LIBM(floor)(x); }                                                     \
    DG_FN T dg_ceil_##S(T x) { return LIBM(ceil)(x); }                                                       \
    DG_FN T dg_trunc_##S(T x) { return LIBM(trunc)(x); }                                                     \
    DG_FN T dg_round_##S(T x) { return LIBM(rint)(x); } /* halves to even */                                 \
    DG_FN T dg_fmod_##S(T x, T y) { return LIBM(fmod)(x, y); }                                               \
    /* has the sign of y, as in Python; NaN if y is 0 */                                                     \
    DG_FN T dg_remainder_##S(T x, T y) {                                                                     \
        T r = LIBM(fmod)(x, y);                                                                              \
        T wrapped = (r < 0) != (y < 0) ? r + y : r;                                                          \
        return r == 0 ? dg_copysign_##S(0, y) : wrapped;                                                     \
    }                                                                                                        \
    /* (x - remainder) / y, an integer but for rounding; x / y if y is 0 */                                  \
    DG_FN T dg_floor_divide_##S(T x, T y) {                                                                  \
        T r = LIBM(fmod)(x, y);                                                                              \
        T q = (x - r) / y;                                                                                   \
        q = r != 0 && (r < 0) != (y < 0) ? q - 1 : q;                                                        \
        T whole = LIBM(floor)(q);                                                                            \
        whole = q - whole > (T)0.5 ? whole + 1 : whole;                                                      \
        return y == 0 ? x / y : q == 0 ? dg_copysign_##S(0, x / y) : whole;                                  \
    }                                                                                                        \
    DG_FN T dg_nextafter_##S(T x, T y) { return LIBM(nextafter)(x, y); }                                     \
    DG_FN T dg_lgamma_##S(T x) { return LIBM(lgamma)(x); }
DG_ROUNDING(f32, f32, DG_LIBM_F32)
DG_ROUNDING(f64, f64, DG_LIBM_F64)

/* float64: the library's functions, which are within 1 ulp */
#define DG_UNARY_F64(name) DG_FN f64 dg_##name##_f64(f64 x) { return DG_LIBM_F64(name)(x); }
#define DG_BINARY_F64(name) DG_FN f64 dg_##name##_f64(f64 x, f64 y) { return DG_LIBM_F64(name)(x, y); }
DG_UNARY_F64(exp) DG_UNARY_F64(exp2) DG_UNARY_F64(expm1) DG_UNARY_F64(log) DG_UNARY_F64(log1p)
DG_UNARY_F64(log2) DG_UNARY_F64(log10) DG_UNARY_F64(cbrt) DG_UNARY_F64(sin) DG_UNARY_F64(cos)
DG_UNARY_F64(tan) DG_UNARY_F64(asin) DG_UNARY_F64(acos) DG_UNARY_F64(atan) DG_UNARY_F64(sinh)
DG_UNARY_F64(cosh) DG_UNARY_F64(tanh) DG_UNARY_F64(asinh) DG_UNARY_F64(acosh) DG_UNARY_F64(atanh)
DG_UNARY_F64(erf) DG_UNARY_F64(erfc)
DG_BINARY_F64(pow) DG_BINARY_F64(atan2) DG_BINARY_F64(hypot)
DG_FN f64 dg_sqrt_f64(f64 x) { return DG_SQRT_F64(x); }
DG_FN f64 dg_rsqrt_f64(f64 x) { return 1.0 / DG_SQRT_F64(x); }

/* ---- float16 and bfloat16 as 16 bits; to nearest, ties to even ---------------------------------------- */

/* A prelude defines DG_TO_BF16(x, by), DG_TO_F16 and DG_FROM_F16 as the device's own instruction, or as by(x). */

DG_FN f32 dg_from_bf16(bf16 x) { return dg_from_bits_f32((u32)x << 16); }
DG_FN bf16 dg_round_bf16(f32 x) {
    u32 b = dg_bits_f32(x);
    u32 rounded = (b + 0x7fffu + ((b >> 16) & 1u)) >> 16;
    u32 nan = (b >> 16) | 0x40u;
    return (bf16)((b & 0x7fffffffu) > 0x7f800000u ? nan : rounded);
}
DG_FN bf16 dg_to_bf16(f32 x) { return DG_TO_BF16(x, dg_round_bf16); }

DG_FN bf16 dg_upper_half_f32(f32 x) { return (bf16)(dg_bits_f32(x) >> 16); } /* of a value that is rounded already */

/* A multiplication changes the exponent's bias, and normalises subnormal numbers as well. */
DG_FN f32 dg_widen_f16(f16 x) {
    u32 magnitude = (u32)(x & 0x7fffu) << 13;
    f32 scaled = dg_from_bits_f32(magnitude) * 5.192296858534828e33f; /* 2^112 */
    u32 b = magnitude >= 0x0f800000u ? magnitude | 0x7f800000u : dg_bits_f32(scaled);
    return dg_from_bits_f32(b | ((u32)(x & 0x8000u) << 16));
}
DG_FN f32 dg_from_f16(f16 x) { return DG_FROM_F16(x, dg_widen_f16); }
DG_FN f16 dg_round_f16(f32 x) {
    u32 b = dg_bits_f32(x);
    u32 sign = (b >> 16) & 0x8000u;
    b &= 0x7fffffffu;
    /* subnormal results: adding 1/2 leaves the rounded value in the low bits */
    u32 tiny = dg_bits_f32(dg_from_bits_f32(b) + 0.5f) - 0x3f000000u;
    u32 normal = (b - 0x38000000u + 0xfffu + ((b >> 13) & 1u)) >> 13;
    u32 r = b < 0x38800000u ? tiny : normal;
    r = b >= 0x477ff000u ? 0x7c00u : r;
    r = b > 0x7f800000u ? 0x7e00u | (b >> 13 & 0x3ffu) : r;
    return (f16)(r | sign);
}
DG_FN f16 dg_to_f16(f32 x) { return DG_TO_F16(x, dg_round_f16); }

/* ---- float to integer: NaN gives 0; out of range gives the nearest for i32 and i64, wraps for the rest - */

DG_FN i32 dg_f32_to_i32(f32 x) {
    f32 c = x < -2147483648.0f ? -2147483648.0f : x;
    c = c > 2147483520.0f ? 2147483520.0f : c;
    i32 k = (i32)(c == c ? c : 0.0f);
    return x >= 2147483648.0f ? 2147483647 : k;
}
DG_FN i32 dg_f64_to_i32(f64 x) {
    f64 c = x < -2147483648.0 ? -2147483648.0 : x;
    c = c > 2147483647.0 ? 2147483647.0 : c;
    return (i32)(c == c ? c : 0.0);
}
DG_FN i64 dg_f64_to_i64(f64 x) {
    f64 c = x < -9223372036854775808.0 ? -9223372036854775808.0 : x;
    c = c > 9223372036854774784.0 ? 9223372036854774784.0 : c;
    i64 k = (i64)(c == c ? c : 0.0);
    return x >= 9223372036854775808.0 ? 9223372036854775807ll : k;
}
DG_FN i64 dg_f32_to_i64(f32 x) { return dg_f64_to_i64((f64)x); }
DG_FN u64 dg_f64_to_u64(f64 x) {
    f64 high = x - 9223372036854775808.0;
    return x >= 9223372036854775808.0 ? (u64)dg_f64_to_i64(high) + 0x8000000000000000ull
                                      : (u64)dg_f64_to_i64(x);
}
DG_FN u64 dg_f32_to_u64(f32 x) { return dg_f64_to_u64((f64)x); }
