/* Integers: Python's division, defined where C is not. x / 0 and x % 0 are 0, as in NumPy; the least number
 * divided by -1 and its absolute value wrap; shifts by the width or more leave 0, or the sign. */

#define DG_SIGNED(T, U, S)                                                                                   \
    DG_FN T dg_abs_##S(T x) { return x < 0 ? (T)(0 - (U)x) : x; }                                            \
    DG_FN T dg_sign_##S(T x) { return (T)((x > 0) - (x < 0)); }                                              \
    DG_FN T dg_trunc_divide_##S(T x, T y) {                                                                  \
        T d = y == 0 || y == -1 ? 1 : y;                                                                     \
        return y == 0 ? 0 : y == -1 ? (T)(0 - (U)x) : (T)(x / d);                                            \
    }                                                                                                        \
    DG_FN T dg_floor_divide_##S(T x, T y) {                                                                  \
        T d = y == 0 || y == -1 ? 1 : y;                                                                     \
        T q = (T)(x / d - (x % d != 0 && (x < 0) != (d < 0)));                                               \
        return y == 0 ? 0 : y == -1 ? (T)(0 - (U)x) : q;                                                     \
    }                                                                                                        \
    DG_FN T dg_fmod_##S(T x, T y) {                                                                          \
        T d = y == 0 || y == -1 ? 1 : y;                                                                     \
        return (T)(x % d);                                                                                   \
    }                                                                                                        \
    DG_FN T dg_remainder_##S(T x, T y) {                                                                     \
        T d = y == 0 || y == -1 ? 1 : y;                                                                     \
        T r = (T)(x % d);                                                                                    \
        return r != 0 && (r < 0) != (d < 0) ? (T)(r + d) : r;                                                \
    }                                                                                                        \
    DG_FN T dg_shift_right_##S(T x, T y) {                                                                   \
        T last = (T)(8 * sizeof(T) - 1);                                                                     \
        return (T)(x >> (y < 0 || y > last ? last : y));                                                     \
    }                                                                                                        \
    DG_FN T dg_pow_##S(T x, T y) {                                                                           \
        U r = 1, b = (U)x;                                                                                   \
        for (T e = y; e > 0; e >>= 1, b = (U)(b * b)) r = e & 1 ? (U)(r * b) : r;                            \
        /* x to a negative power is a fraction, so 0 for all but 1 and -1 */                                 \
        T inverse = x == 1 ? 1 : x == -1 ? (y & 1 ? -1 : 1) : 0;                                             \
        return y < 0 ? inverse : (T)r;                                                                       \
    }                                                                                                        \
    DG_SHIFT_LEFT(T, U, S)

#define DG_UNSIGNED(T, U, S)                                                                                 \
    DG_FN T dg_abs_##S(T x) { return x; }                                                                    \
    DG_FN T dg_sign_##S(T x) { return (T)(x > 0); }                                                          \
    DG_FN T dg_trunc_divide_##S(T x, T y) { return y == 0 ? 0 : (T)(x / y); }                                \
    DG_FN T dg_floor_divide_##S(T x, T y) { return y == 0 ? 0 : (T)(x / y); }                                \
    DG_FN T dg_fmod_##S(T x, T y) { return y == 0 ? 0 : (T)(x % y); }                                        \
    DG_FN T dg_remainder_##S(T x, T y) { return y == 0 ? 0 : (T)(x % y); }                                   \
    DG_FN T dg_shift_right_##S(T x, T y) { return y >= 8 * sizeof(T) ? 0 : (T)(x >> y); }                    \
    DG_FN T dg_pow_##S(T x, T y) {                                                                           \
        U r = 1, b = (U)x;                                                                                   \
        for (T e = y; e > 0; e >>= 1, b = (U)(b * b)) r = e & 1 ? (U)(r * b) : r;                            \
        return (T)r;                                                                                         \
    }                                                                                                        \
    DG_SHIFT_LEFT(T, U, S)

#define DG_SHIFT_LEFT(T, U, S)                                                                               \
    DG_FN T dg_shift_left_##S(T x, T y) {                                                                    \
        U by = (U)y;                                                                                         \
        return by >= 8 * sizeof(T) ? 0 : (T)((U)x << by);                                                    \
    }

/* the second type is the unsigned one in which C computes without promotion to int */
DG_SIGNED(i8, u32, i8)
DG_SIGNED(i16, u32, i16)
DG_SIGNED(i32, u32, i32)
DG_SIGNED(i64, u64, i64)
DG_UNSIGNED(u8, u32, u8)
DG_UNSIGNED(u16, u32, u16)
DG_UNSIGNED(u32, u32, u32)
DG_UNSIGNED(u64, u64, u64)
