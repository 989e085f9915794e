/* Python numbers in linked programs: int as int64, float as double, bool as a byte.
 *
 * Results beyond 64 bits, and operations that raise in Python, return DG_PYTHON: the program is then run again step by step in
 * Python. */
#include "common.h"

#include <math.h>

enum { BOOL, INT, FLOAT }; /* native_program.py: KINDS */

/* native_program.py: FUNCTIONS, in this order */
enum {
    ADD, SUB, MUL, TRUEDIV, FLOORDIV, MOD, POW, NEG, POS, INVERT, ABS, AND, OR, XOR, LSHIFT, RSHIFT,
    LT, LE, GT, GE, EQ, NE, NOT, TO_INT, TO_FLOAT, TO_BOOL, ROUND,
};

#define EXACT ((int64_t)1 << 53) /* integers up to here are exact doubles */

typedef struct {
    int kind;
    int64_t i;
    double f;
} Number;

static Number read_number(const void *p, int kind) {
    Number n = {.kind = kind};
    if (kind == FLOAT) n.f = *(const double *)p;
    else n.i = kind == BOOL ? *(const uint8_t *)p : *(const int64_t *)p;
    return n;
}

static double real(Number n) { return n.kind == FLOAT ? n.f : (double)n.i; }
static int exact(Number n) { return n.kind == FLOAT || (n.i <= EXACT && n.i >= -EXACT); }

static int whole_power(int64_t x, int64_t n, int64_t *out) {
    if (n < 0) return DG_PYTHON;
    int64_t r = 1;
    for (; n; n >>= 1) {
        if (n & 1 && __builtin_mul_overflow(r, x, &r)) return DG_PYTHON;
        if (n > 1 && __builtin_mul_overflow(x, x, &x)) return DG_PYTHON;
    }
    *out = r;
    return DG_OK;
}

static int whole(int function, int64_t a, int64_t b, int64_t *out) {
    switch (function) {
    case ADD: return __builtin_add_overflow(a, b, out) ? DG_PYTHON : DG_OK;
    case SUB: return __builtin_sub_overflow(a, b, out) ? DG_PYTHON : DG_OK;
    case MUL: return __builtin_mul_overflow(a, b, out) ? DG_PYTHON : DG_OK;
    case FLOORDIV: case MOD: {
        if (b == 0 || (a == INT64_MIN && b == -1)) return DG_PYTHON;
        int64_t q = a / b, r = a % b;
        if (r && (r < 0) != (b < 0)) { q--; r += b; }
        *out = function == MOD ? r : q;
        return DG_OK;
    }
    case POW: return whole_power(a, b, out);
    case NEG: return __builtin_sub_overflow((int64_t)0, a, out) ? DG_PYTHON : DG_OK;
    case POS: *out = a; return DG_OK;
    case INVERT: *out = ~a; return DG_OK;
    case ABS:
        if (a == INT64_MIN) return DG_PYTHON;
        *out = a < 0 ? -a : a;
        return DG_OK;
    case AND: *out = a & b; return DG_OK;
    case OR: *out = a | b; return DG_OK;
    case XOR: *out = a ^ b; return DG_OK;
    case LSHIFT:
        if (b < 0 || b > 62 || a > INT64_MAX >> b || a < INT64_MIN >> b) return DG_PYTHON;
        *out = (int64_t)((uint64_t)a << b);
        return DG_OK;
    case RSHIFT:
        if (b < 0) return DG_PYTHON;
        *out = a >> (b > 63 ? 63 : b);
        return DG_OK;
    case TO_INT: case ROUND: *out = a; return DG_OK;
    }
    return DG_PYTHON;
}

static int floating(int function, double a, double b, double *out) {
    switch (function) {
    case ADD: *out = a + b; return DG_OK;
    case SUB: *out = a - b; return DG_OK;
    case MUL: *out = a * b; return DG_OK;
    case TRUEDIV:
        if (b == 0) return DG_PYTHON;
        *out = a / b;
        return DG_OK;
    case NEG: *out = -a; return DG_OK;
    case POS: case TO_FLOAT: *out = a; return DG_OK;
    case ABS: *out = fabs(a); return DG_OK;
    }
    return DG_PYTHON; /* floor division, mod, powers and rounding have rules of their own in Python */
}

static int compare(int function, Number a, Number b) {
    if (a.kind != FLOAT && b.kind != FLOAT) {
        switch (function) {
        case LT: return a.i < b.i;
        case LE: return a.i <= b.i;
        case GT: return a.i > b.i;
        case GE: return a.i >= b.i;
        case EQ: return a.i == b.i;
        default: return a.i != b.i;
        }
    }
    double x = real(a), y = real(b);
    switch (function) {
    case LT: return x < y;
    case LE: return x <= y;
    case GT: return x > y;
    case GE: return x >= y;
    case EQ: return x == y;
    default: return x != y;
    }
}

int dg_scalar(const dg_scalar_plan *p, void *out, const void *x, const void *y) {
    Number a = read_number(x, (int)p->kinds[0]);
    Number b = p->count > 1 ? read_number(y, (int)p->kinds[1]) : (Number){.kind = INT};
    int function = (int)p->function;
    if (function >= LT && function <= NE) {
        if ((a.kind == FLOAT) != (b.kind == FLOAT) && !(exact(a) && exact(b))) return DG_PYTHON;
        *(uint8_t *)out = (uint8_t)compare(function, a, b);
        return DG_OK;
    }
    if (function == NOT || function == TO_BOOL) {
        int truth = a.kind == FLOAT ? a.f != 0 : a.i != 0;
        *(uint8_t *)out = (uint8_t)(truth == (function == TO_BOOL));
        return DG_OK;
    }
    if (p->result == FLOAT) {
        if (!exact(a) || !exact(b)) return DG_PYTHON;
        return floating(function, real(a), real(b), out);
    }
    int64_t found = 0;
    if (a.kind == FLOAT) {
        if (function != TO_INT || !(fabs(a.f) < 9e18)) return DG_PYTHON;
        found = (int64_t)a.f;
    } else {
        int code = whole(function, a.i, b.i, &found);
        if (code) return code;
    }
    if (p->result == BOOL) *(uint8_t *)out = (uint8_t)(found != 0);
    else *(int64_t *)out = found;
    return DG_OK;
}

/* Converts a tensor of one element to a number. */
int dg_to_host(const dg_scalar_plan *p, void *out, const void *x) {
    Number n = {.kind = INT};
    switch (p->kinds[0]) {
    case DG_BOOL: n.i = *(const uint8_t *)x != 0; break;
    case DG_I8: n.i = *(const int8_t *)x; break;
    case DG_I16: n.i = *(const int16_t *)x; break;
    case DG_I32: n.i = *(const int32_t *)x; break;
    case DG_I64: n.i = *(const int64_t *)x; break;
    case DG_U8: n.i = *(const uint8_t *)x; break;
    case DG_U16: n.i = *(const uint16_t *)x; break;
    case DG_U32: n.i = *(const uint32_t *)x; break;
    case DG_F32: n = (Number){.kind = FLOAT, .f = *(const float *)x}; break;
    case DG_F64: n = (Number){.kind = FLOAT, .f = *(const double *)x}; break;
    default: return DG_PYTHON;
    }
    if (p->result == FLOAT) {
        if (!exact(n)) return DG_PYTHON;
        *(double *)out = real(n);
    } else if (p->result == BOOL) {
        *(uint8_t *)out = n.kind == FLOAT ? n.f != 0 : n.i != 0;
    } else if (n.kind == FLOAT) {
        if (!(fabs(n.f) < 9e18)) return DG_PYTHON;
        *(int64_t *)out = (int64_t)n.f;
    } else {
        *(int64_t *)out = n.i;
    }
    return DG_OK;
}

/* Converts a number to a tensor of one element: an int wraps around, a float is rounded once. */
int dg_to_tensor(const dg_scalar_plan *p, void *out, const void *x) {
    Number n = read_number(x, (int)p->kinds[0]);
    if (n.kind == FLOAT) {
        if (p->result == DG_F32 && (fabs(n.f) <= 3e38 || n.f != n.f)) *(float *)out = (float)n.f;
        else if (p->result == DG_F64) *(double *)out = n.f;
        else return DG_PYTHON;
        return DG_OK;
    }
    switch (p->result) {
    case DG_I8: case DG_U8: *(uint8_t *)out = (uint8_t)n.i; break;
    case DG_I16: case DG_U16: *(uint16_t *)out = (uint16_t)n.i; break;
    case DG_I32: case DG_U32: *(uint32_t *)out = (uint32_t)n.i; break;
    case DG_I64: case DG_U64: *(uint64_t *)out = (uint64_t)n.i; break;
    case DG_F32: *(float *)out = (float)n.i; break;
    case DG_F64: *(double *)out = (double)n.i; break;
    case DG_BOOL: *(uint8_t *)out = n.i != 0; break;
    default: return DG_PYTHON;
    }
    return DG_OK;
}
