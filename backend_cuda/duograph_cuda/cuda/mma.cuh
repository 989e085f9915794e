/* One tensor-core product of a warp, d += a b: a is 16 rows by 8 words, b is 8 words by 8 columns, d is 16 by 8 float32.
 *
 * A word holds two elements of float16 or bfloat16, or one of TF32. The 32 lanes of the warp share the matrices. With
 * g = lane / 4 and t = lane % 4, a lane holds these words of a, as (row, word): (g, t), (g + 8, t), (g, t + 4),
 * (g + 8, t + 4); of b, as (word, column): (t, g), (t + 4, g); and these elements of d: (g, 2t), (g, 2t + 1),
 * (g + 8, 2t), (g + 8, 2t + 1). Counted in words, the layout is the same for the three kinds (PTX ISA, "Matrix fragments
 * for mma.m16n8k16" and "mma.m16n8k8"). */

enum { mma_f16, mma_bf16, mma_tf32 };

template <int kind> DG_FN void dg_mma(f32 *d, const u32 *a, const u32 *b) {
#ifdef DG_EMULATED
    if (kind == mma_tf32) dg_emulated_mma8_tf32(__LINE__, d, a, b);
    else dg_emulated_mma16(__LINE__, kind == mma_bf16, d, a, b);
#else
#define DG_MMA(shape, operands)                                                                              \
    asm volatile("mma.sync.aligned." shape ".row.col.f32." operands ".f32 {%0, %1, %2, %3}, "                \
                 "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"                                             \
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])                                            \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]))
#if __CUDA_ARCH__ >= 800
    if (kind == mma_f16) DG_MMA("m16n8k16", "f16.f16");
    if (kind == mma_bf16) DG_MMA("m16n8k16", "bf16.bf16");
    if (kind == mma_tf32) DG_MMA("m16n8k8", "tf32.tf32");
#else
    /* Compute capability 7.5 has only float16, and only the product of half this depth: two of them. */
    if (kind != mma_f16) __trap(); /* the host never launches the other kinds on such a device */
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(b[0]));
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[2]), "r"(a[3]), "r"(b[1]));
#endif
#endif
}

/* Rounds a float32 to the 10 bits of mantissa that TF32 keeps, to nearest and ties away from zero; NaN stays NaN. */
DG_FN u32 dg_to_tf32(u32 bits) {
#ifdef DG_EMULATED
    return dg_emulated_to_tf32(bits);
#elif __CUDA_ARCH__ >= 800
    u32 rounded;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(rounded) : "f"(__uint_as_float(bits)));
    return rounded;
#else
    return bits; /* compute capability 7.5 has no TF32 */
#endif
}
