/* Branch-free conversions of float16 and bfloat16 bits, so that loops over them vectorise on any processor. */
#ifndef DG_HALF_H
#define DG_HALF_H

#include <stdint.h>
#include <string.h>

typedef uint16_t f16;
typedef uint16_t bf16;

static inline float dg_bits_float(uint32_t u) {
    float f;
    memcpy(&f, &u, 4);
    return f;
}

static inline uint32_t dg_float_bits(float f) {
    uint32_t u;
    memcpy(&u, &f, 4);
    return u;
}

static inline float bf16_load(bf16 x) { return dg_bits_float((uint32_t)x << 16); }

/* Round to nearest even; NaN stays NaN. */
static inline bf16 bf16_store(float f) {
    uint32_t u = dg_float_bits(f);
    uint32_t rounded = (u + 0x7fff + ((u >> 16) & 1)) >> 16;
    uint32_t nan = (u >> 16) | 0x40;
    return (bf16)((u & 0x7fffffff) > 0x7f800000 ? nan : rounded);
}

/* A multiplication rebiases the exponent and normalises subnormal numbers. */
static inline float f16_load(f16 x) {
    uint32_t sign = (uint32_t)(x & 0x8000) << 16;
    uint32_t magnitude = (uint32_t)(x & 0x7fff) << 13;
    float f = dg_bits_float(magnitude) * 0x1p112f;
    uint32_t special = dg_float_bits(f) | 0x7f800000; /* infinity and NaN: the exponent is all ones in both */
    return dg_bits_float((magnitude >= 0x0f800000 ? special : dg_float_bits(f)) | sign);
}

static inline f16 f16_store(float f) {
    uint32_t u = dg_float_bits(f);
    uint32_t sign = (u >> 16) & 0x8000;
    u &= 0x7fffffff;
    /* normal: rebias the exponent and round to nearest even */
    uint32_t normal = (u - (112u << 23) + 0xfff + ((u >> 13) & 1)) >> 13;
    /* subnormal: adding one half aligns the mantissa and rounds */
    uint32_t small = dg_float_bits(dg_bits_float(u) + 0.5f) - dg_float_bits(0.5f);
    uint32_t huge = u > 0x7f800000 ? 0x7e00 | ((u >> 13) & 0x3ff) : 0x7c00;
    uint32_t r = u < (113u << 23) ? small : normal;
    r = u >= 0x477ff000 ? huge : r;
    return (f16)(r | sign);
}

#endif
