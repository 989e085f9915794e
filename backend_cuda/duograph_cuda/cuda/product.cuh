/* out[b] = x[b] y[b]: matrices in tiles of group memory, double-buffered through registers.
 *
 * An operand is read as lines (rows of x, columns of y) along the depth of the sums. `across` says that neighbours in
 * memory are of neighbouring lines (x transposed, y as it is), else they lie along the depth. */

struct dg_operand {
    i64 lines, depth, pitch; /* pitch: elements from one run of neighbours to the next */
};


/* 16 bytes of neighbours: n elements from (line, depth) on, zeros outside. `whole`: 16-byte loads are aligned, and lie
 * inside or outside as a whole. */
template <class T, bool across, bool whole> DG_FN uint4 dg_chunk(const T *from, dg_operand o, i64 line, i64 depth) {
    enum { n = 16 / sizeof(T) };
    uint4 found = make_uint4(0, 0, 0, 0);
    if (line >= o.lines || depth >= o.depth) return found;
    const T *at = from + (across ? depth * o.pitch + line : line * o.pitch + depth);
    if (whole) return *(const uint4 *)at;
    const i64 left = across ? o.lines - line : o.depth - depth;
    T *parts = (T *)&found;
    #pragma unroll
    for (int k = 0; k < n; k++)
        if (k < left) parts[k] = at[k];
    return found;
}

/* ---- tensor cores: 16 words of depth at a time, in rows of 20 words, which keeps all banks busy ------------- */

template <class T> DG_FN void dg_put(u32 *tile, int line, int depth, T v) { ((T *)(tile + line * 20))[depth] = v; }

template <int kind, class T, int lines, int threads, bool across, bool whole> struct dg_stage {
    enum { n = 16 / sizeof(T), deep = 64 / sizeof(T), chunks = lines * 4 / threads };
    uint4 kept[chunks];

    DG_METHOD void load(const T *from, dg_operand o, i64 line, i64 depth) {
        #pragma unroll
        for (int k = 0; k < chunks; k++) {
            const int c = (int)threadIdx.x + k * threads;
            if (across)
                kept[k] = dg_chunk<T, true, whole>(from, o, line + c % (lines / n) * n, depth + c / (lines / n));
            else
                kept[k] = dg_chunk<T, false, whole>(from, o, line + c / 4, depth + c % 4 * n);
        }
    }
    DG_METHOD void store(u32 *tile) {
        #pragma unroll
        for (int k = 0; k < chunks; k++) {
            const int c = (int)threadIdx.x + k * threads;
            uint4 v = kept[k];
            if (kind == mma_tf32) { /* to nearest, as cvt.rna.tf32 does */
                v.x = (v.x + 0x1000u) & 0xffffe000u;
                v.y = (v.y + 0x1000u) & 0xffffe000u;
                v.z = (v.z + 0x1000u) & 0xffffe000u;
                v.w = (v.w + 0x1000u) & 0xffffe000u;
            }
            if (across) {
                const T *parts = (const T *)&v;
                #pragma unroll
                for (int j = 0; j < n; j++) dg_put<T>(tile, c % (lines / n) * n + j, c / (lines / n), parts[j]);
            } else {
                *(uint4 *)(tile + c / 4 * 20 + c % 4 * 4) = v;
            }
        }
    }
};

template <int kind> DG_FN void dg_keep(u16 *at, f32 v) { *at = kind == mma_bf16 ? dg_to_bf16(v) : dg_to_f16(v); }
template <int kind> DG_FN void dg_keep(f32 *at, f32 v) { *at = v; }

template <int kind, class T, int side, bool x_across, bool y_across, bool whole>
DG_FN void dg_tensor_product(const T *x, const T *y, T *out, dg_operand ox, dg_operand oy, i64 x_matrix, i64 y_matrix) {
    /* a warp has `side / 2` rows by 32 columns of the tile */
    enum { warps = side / 16, threads = warps * 32, rows = side / 2, tall = rows / 16, deep = 64 / sizeof(T) };
    DG_SHARED __align__(16) u32 xs[2][side * 20];
    DG_SHARED __align__(16) u32 ys[2][side * 20];
    const i64 tiles_n = (oy.lines + side - 1) / side, tiles_m = (ox.lines + side - 1) / side;
    const i64 group = blockIdx.x, at = group / (tiles_m * tiles_n);
    const i64 row = group / tiles_n % tiles_m * side, column = group % tiles_n * side;
    x += at * x_matrix;
    y += at * y_matrix;
    out += at * ox.lines * oy.lines;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, g = lane / 4, t = lane % 4;
    const int top = warp % 2 * rows, left = warp / 2 * 32;
    f32 sums[tall][4][4];
    #pragma unroll
    for (int i = 0; i < tall; i++)
        for (int j = 0; j < 4; j++)
            for (int k = 0; k < 4; k++) sums[i][j][k] = 0.0f;
    dg_stage<kind, T, side, threads, x_across, whole> next_x;
    dg_stage<kind, T, side, threads, y_across, whole> next_y;
    next_x.load(x, ox, row, 0);
    next_y.load(y, oy, column, 0);
    next_x.store(xs[0]);
    next_y.store(ys[0]);
    __syncthreads();
    int half = 0;
    for (i64 depth = 0; depth < ox.depth; depth += deep, half ^= 1) {
        const bool more = depth + deep < ox.depth;
        if (more) {
            next_x.load(x, ox, row, depth + deep);
            next_y.load(y, oy, column, depth + deep);
        }
        const u32 *xt = xs[half], *yt = ys[half];
        #pragma unroll
        for (int word = 0; word < 16; word += 8) {
            u32 a[tall][4], b[4][2];
            #pragma unroll
            for (int i = 0; i < tall; i++)
                #pragma unroll
                for (int k = 0; k < 4; k++)
                    a[i][k] = xt[(top + i * 16 + g + k % 2 * 8) * 20 + word + t + k / 2 * 4];
            #pragma unroll
            for (int j = 0; j < 4; j++)
                #pragma unroll
                for (int k = 0; k < 2; k++) b[j][k] = yt[(left + j * 8 + g) * 20 + word + t + k * 4];
            #pragma unroll
            for (int i = 0; i < tall; i++)
                #pragma unroll
                for (int j = 0; j < 4; j++) dg_mma<kind>(sums[i][j], a[i], b[j]);
        }
        if (more) {
            next_x.store(xs[half ^ 1]);
            next_y.store(ys[half ^ 1]);
        }
        __syncthreads();
    }
    #pragma unroll
    for (int i = 0; i < tall; i++)
        #pragma unroll
        for (int j = 0; j < 4; j++)
            #pragma unroll
            for (int k = 0; k < 4; k++) {
                const i64 r = row + top + i * 16 + g + k / 2 * 8, c = column + left + j * 8 + t * 2 + k % 2;
                if (r < ox.lines && c < oy.lines) dg_keep<kind>(out + r * oy.lines + c, sums[i][j][k]);
            }
}

/* ---- float32 without tensor cores: 256 threads, each `each` by `each` of the tile --------------------------- */

template <int each, bool across, bool whole> struct dg_stage_f32 {
    enum { side = each * 16, deep = 8, chunks = side * deep / 4 / 256 + (side * deep / 4 % 256 != 0) };
    uint4 kept[chunks];

    DG_METHOD static bool mine(int c) { return c < side * deep / 4; }
    DG_METHOD void load(const f32 *from, dg_operand o, i64 line, i64 depth) {
        #pragma unroll
        for (int k = 0; k < chunks; k++) {
            const int c = (int)threadIdx.x + k * 256;
            if (!mine(c)) continue;
            if (across) kept[k] = dg_chunk<f32, true, whole>(from, o, line + c % (side / 4) * 4, depth + c / (side / 4));
            else kept[k] = dg_chunk<f32, false, whole>(from, o, line + c / 2, depth + c % 2 * 4);
        }
    }
    DG_METHOD void store(f32 *tile) {
        #pragma unroll
        for (int k = 0; k < chunks; k++) {
            const int c = (int)threadIdx.x + k * 256;
            if (!mine(c)) continue;
            if (across) {
                *(uint4 *)(tile + c / (side / 4) * (side + 4) + c % (side / 4) * 4) = kept[k];
                continue;
            }
            const f32 *parts = (const f32 *)&kept[k];
            #pragma unroll
            for (int j = 0; j < 4; j++) tile[(c % 2 * 4 + j) * (side + 4) + c / 2] = parts[j];
        }
    }
};

template <int each, bool x_across, bool y_across, bool whole>
DG_FN void dg_plain_product(const f32 *x, const f32 *y, f32 *out, dg_operand ox, dg_operand oy, i64 x_matrix, i64 y_matrix) {
    enum { side = each * 16, deep = 8, pitch = side + 4 };
    DG_SHARED __align__(16) f32 xs[2][deep * pitch];
    DG_SHARED __align__(16) f32 ys[2][deep * pitch];
    const i64 tiles_n = (oy.lines + side - 1) / side, tiles_m = (ox.lines + side - 1) / side;
    const i64 group = blockIdx.x, at = group / (tiles_m * tiles_n);
    const i64 row = group / tiles_n % tiles_m * side, column = group % tiles_n * side;
    x += at * x_matrix;
    y += at * y_matrix;
    out += at * ox.lines * oy.lines;
    /* a thread has quads of 4 by 4, 64 apart, so that its reads of group memory are 16 bytes without conflicts */
    const int px = threadIdx.x % 16 * 4, py = threadIdx.x / 16 * 4;
    f32 sums[each][each];
    #pragma unroll
    for (int i = 0; i < each; i++)
        for (int j = 0; j < each; j++) sums[i][j] = 0.0f;
    dg_stage_f32<each, x_across, whole> next_x;
    dg_stage_f32<each, y_across, whole> next_y;
    next_x.load(x, ox, row, 0);
    next_y.load(y, oy, column, 0);
    next_x.store(xs[0]);
    next_y.store(ys[0]);
    __syncthreads();
    int half = 0;
    for (i64 depth = 0; depth < ox.depth; depth += deep, half ^= 1) {
        const bool more = depth + deep < ox.depth;
        if (more) {
            next_x.load(x, ox, row, depth + deep);
            next_y.load(y, oy, column, depth + deep);
        }
        #pragma unroll
        for (int k = 0; k < deep; k++) {
            f32 a[each], b[each];
            #pragma unroll
            for (int q = 0; q < each; q += 4) {
                *(float4 *)(a + q) = *(const float4 *)(xs[half] + k * pitch + q * 16 + py);
                *(float4 *)(b + q) = *(const float4 *)(ys[half] + k * pitch + q * 16 + px);
            }
            #pragma unroll
            for (int i = 0; i < each; i++)
                #pragma unroll
                for (int j = 0; j < each; j++) sums[i][j] = dg_fma_f32(a[i], b[j], sums[i][j]);
        }
        if (more) {
            next_x.store(xs[half ^ 1]);
            next_y.store(ys[half ^ 1]);
        }
        __syncthreads();
    }
    #pragma unroll
    for (int i = 0; i < each; i++)
        #pragma unroll
        for (int j = 0; j < each; j++) {
            const i64 r = row + i / 4 * 64 + py + i % 4, c = column + j / 4 * 64 + px + j % 4;
            if (r < ox.lines && c < oy.lines) out[r * oy.lines + c] = sums[i][j];
        }
}
