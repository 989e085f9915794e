/* Attention and its gradients; the matrix of attention weights is never stored as a whole (Dao et al., 2022 and 2023).
 *
 * A thread block handles `side` queries and loops over the keys in tiles of `side`; for the gradients of keys and values it is
 * the other way round. A warp handles 16 rows of the block. The gradient kernels compute the weights again, one kernel for the
 * queries and one for keys and values, so that neither needs atomic additions.
 *
 * A tile in shared memory has one row of P features per query or key; features past the end are zero. Float16 and bfloat16 are
 * multiplied by tensor cores. Float32 is multiplied by ordinary instructions; the sums are laid out over the threads in the same
 * way: of each 16 by 8 results, a thread holds (g, 2t), (g, 2t + 1), (g + 8, 2t), (g + 8, 2t + 1), with g and t as in mma.cuh. */

enum { in_f32 = 3 }; /* one more kind of element than mma.cuh has */

template <int kind> struct dg_stored { typedef u16 T; enum { in_word = 2 }; };
template <> struct dg_stored<in_f32> { typedef f32 T; enum { in_word = 1 }; };

template <int kind> DG_FN f32 dg_wide(u16 v) { return kind == mma_bf16 ? dg_from_bf16(v) : dg_from_f16(v); }
template <int kind> DG_FN f32 dg_wide(f32 v) { return v; }
template <int kind> DG_FN void dg_put(u16 *at, f32 v) { *at = kind == mma_bf16 ? dg_to_bf16(v) : dg_to_f16(v); }
template <int kind> DG_FN void dg_put(f32 *at, f32 v) { *at = v; }
/* two adjacent elements, of which the first has an even place */
template <int kind> DG_FN void dg_put_both(u16 *at, f32 a, f32 b) {
    u16 first, second;
    dg_put<kind>(&first, a);
    dg_put<kind>(&second, b);
    *(u32 *)at = first | (u32)second << 16;
}
template <int kind> DG_FN void dg_put_both(f32 *at, f32 a, f32 b) { *(float2 *)at = make_float2(a, b); }

/* Strides of an operand, in elements: from one batch item, head and position to the next. */
struct dg_steps { i64 batch, head, row; };
/* Sizes and strides. Query i attends to keys i + low .. i + high; `own` is the number of heads of keys and values. */
struct dg_attention {
    i64 heads, own, queries, keys, depth, value_depth, low, high;
    dg_steps q, k, v, o;
    i64 mask_batch, mask_head, mask_row, mask_key;

    DG_METHOD bool seen(i64 i, i64 j) const { return i < queries && j < keys && j - i >= low && j - i <= high; }
};

template <int kind, int P, int side> struct dg_tiles {
    typedef typename dg_stored<kind>::T T;
    /* pitch, weight_pitch: words of a row of features and of a row of weights; the 4 extra words avoid bank conflicts */
    enum { in_word = dg_stored<kind>::in_word, pitch = P / in_word + 4, weight_pitch = side / in_word + 4, threads = side * 2, parts = side / 8, wide = P / 8 };

    /* Loads `count` rows of `depth` features into a tile; the rest of the tile is set to zero. */
    DG_METHOD static void load(u32 *tile, const T *from, i64 step, i64 count, i64 depth) {
        enum { n = 16 / sizeof(T) };
        if ((depth | step) % n == 0) { /* all rows are aligned to 16 bytes */
            for (int e = threadIdx.x; e < side * P / n; e += threads) {
                const int r = e / (P / n), d = e % (P / n) * n;
                *(uint4 *)((T *)(tile + r * pitch) + d) = r < count && d < depth ? *(const uint4 *)(from + r * step + d) : make_uint4(0, 0, 0, 0);
            }
        } else {
            for (int e = threadIdx.x; e < side * P; e += threads) {
                const int r = e / P, d = e % P;
                ((T *)(tile + r * pitch))[d] = r < count && d < depth ? from[r * step + d] : (T)0;
            }
        }
    }

    /* sums += a b, summed over `deep`: a has 16 rows of `deep` elements; b has 8 n rows of `deep`, or `deep` rows of 8 n if `across`. */
    template <int n, int deep, bool across, int a_pitch> DG_METHOD static void product(f32 (*sums)[4], const u32 *a, const u32 *b) {
        const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
        if constexpr (kind == in_f32) {
            const f32 *x = (const f32 *)a + g * a_pitch, *y = (const f32 *)b;
            for (int k = 0; k < deep; k++) {
                const f32 a0 = x[k], a1 = x[8 * a_pitch + k];
                #pragma unroll
                for (int j = 0; j < n; j++)
                    #pragma unroll
                    for (int c = 0; c < 2; c++) {
                        const int at = j * 8 + t * 2 + c;
                        const f32 v = across ? y[k * pitch + at] : y[at * pitch + k];
                        sums[j][c] = dg_fma_f32(a0, v, sums[j][c]);
                        sums[j][2 + c] = dg_fma_f32(a1, v, sums[j][2 + c]);
                    }
            }
        } else {
            const u16 *halves = (const u16 *)b;
            #pragma unroll
            for (int word = 0; word < deep / 2; word += 8) {
                u32 of_a[4], of_b[2];
                #pragma unroll
                for (int k = 0; k < 4; k++) of_a[k] = a[(g + k % 2 * 8) * a_pitch + word + t + k / 2 * 4];
                #pragma unroll
                for (int j = 0; j < n; j++) {
                    #pragma unroll
                    for (int k = 0; k < 2; k++) {
                        const int at = j * 8 + g, w = word + t + k * 4;
                        if (across) of_b[k] = halves[w * 4 * pitch + at] | (u32)halves[(w * 4 + 2) * pitch + at] << 16;
                        else of_b[k] = b[at * pitch + w];
                    }
                    dg_mma<kind>(sums[j], of_a, of_b);
                }
            }
        }
    }

    /* Stores the sums of a warp in shared memory, as 16 rows of weights. */
    DG_METHOD static void keep(u32 *rows, const f32 (*sums)[4]) {
        const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
        __syncwarp(); /* all lanes have read the earlier contents */
        #pragma unroll
        for (int j = 0; j < parts; j++)
            #pragma unroll
            for (int k = 0; k < 4; k++) dg_put<kind>((T *)(rows + (g + k / 2 * 8) * weight_pitch) + j * 8 + t * 2 + k % 2, sums[j][k]);
        __syncwarp();
    }

    /* Writes the sums of a warp to memory, multiplied by `upper` in the first 8 rows and by `lower` in the others. */
    DG_METHOD static void store(T *to, i64 step, i64 row, i64 rows, i64 depth, const f32 (*sums)[4], f32 upper, f32 lower) {
        const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
        const bool pairs = (depth | step) % 2 == 0; /* then two adjacent features are written together */
        #pragma unroll
        for (int j = 0; j < wide; j++)
            #pragma unroll
            for (int half = 0; half < 2; half++) {
                const i64 r = row + g + half * 8, d = j * 8 + t * 2;
                if (r >= rows || d >= depth) continue;
                T *const at = to + r * step + d;
                const f32 by = half ? lower : upper, a = sums[j][half * 2] * by, b = sums[j][half * 2 + 1] * by;
                if (pairs) dg_put_both<kind>(at, a, b);
                else {
                    dg_put<kind>(at, a);
                    if (d + 1 < depth) dg_put<kind>(at + 1, b);
                }
            }
    }
};

template <int n> DG_FN void dg_clear(f32 (*sums)[4]) {
    #pragma unroll
    for (int j = 0; j < n; j++)
        #pragma unroll
        for (int k = 0; k < 4; k++) sums[j][k] = 0.0f;
}

/* The score of query i for key j, as it enters the softmax. masked: 0 no mask, 1 a bool mask (true hides), 2 an added mask. */
template <int kind, int masked> DG_FN f32 dg_score(const dg_attention &p, f32 dot, f32 scale, const void *mask, i64 batch, i64 head, i64 i, i64 j) {
    if (!p.seen(i, j)) return -DG_INF_F32;
    const i64 at = batch * p.mask_batch + head * p.mask_head + i * p.mask_row + j * p.mask_key;
    if (masked == 1 && ((const u8 *)mask)[at]) return -DG_INF_F32;
    return masked == 2 ? dot * scale + dg_wide<kind>(((const typename dg_stored<kind>::T *)mask)[at]) : dot * scale;
}

DG_FN i64 dg_least(i64 a, i64 b) { return a < b ? a : b; }
DG_FN i64 dg_most(i64 a, i64 b) { return a > b ? a : b; }
/* The sum, and the maximum, over the 4 lanes that share a row. */
DG_FN f32 dg_quad_sum(f32 v) {
    v += __shfl_xor_sync(0xffffffffu, v, 1);
    return v + __shfl_xor_sync(0xffffffffu, v, 2);
}
DG_FN f32 dg_quad_max(f32 v) {
    f32 other = __shfl_xor_sync(0xffffffffu, v, 1);
    v = other > v ? other : v;
    other = __shfl_xor_sync(0xffffffffu, v, 2);
    return other > v ? other : v;
}

template <int kind, int P, int side, int masked, class T>
DG_FN void dg_attend(const dg_attention &p, f32 scale, const T *q, const T *k, const T *v, const void *mask, T *out, f32 *log_sum) {
    typedef dg_tiles<kind, P, side> tiles;
    DG_SHARED __align__(16) u32 query[side * tiles::pitch], key[side * tiles::pitch], value[side * tiles::pitch];
    DG_SHARED __align__(16) u32 weights[side * tiles::weight_pitch];
    const i64 count = (p.queries + side - 1) / side, at = blockIdx.x / count, batch = at / p.heads, head = at % p.heads;
    const i64 q0 = blockIdx.x % count * side, own = head / (p.heads / p.own);
    const int warp = threadIdx.x / 32, g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    tiles::load(query, q + batch * p.q.batch + head * p.q.head + q0 * p.q.row, p.q.row, p.queries - q0, p.depth);
    f32 sums[tiles::wide][4], top[2] = {-DG_INF_F32, -DG_INF_F32}, total[2] = {0.0f, 0.0f};
    dg_clear<tiles::wide>(sums);
    const i64 last = dg_least(p.keys, q0 + side + p.high);
    for (i64 k0 = dg_most(0, q0 + p.low) / side * side; k0 < last; k0 += side) {
        __syncthreads();
        tiles::load(key, k + batch * p.k.batch + own * p.k.head + k0 * p.k.row, p.k.row, p.keys - k0, p.depth);
        tiles::load(value, v + batch * p.v.batch + own * p.v.head + k0 * p.v.row, p.v.row, p.keys - k0, p.value_depth);
        __syncthreads();
        f32 s[tiles::parts][4];
        dg_clear<tiles::parts>(s);
        tiles::template product<tiles::parts, P, false, tiles::pitch>(s, query + warp * 16 * tiles::pitch, key);
        f32 most[2] = {top[0], top[1]}, base[2], factor[2];
        #pragma unroll
        for (int j = 0; j < tiles::parts; j++)
            #pragma unroll
            for (int e = 0; e < 4; e++) {
                s[j][e] = dg_score<kind, masked>(p, s[j][e], scale, mask, batch, head, q0 + warp * 16 + g + e / 2 * 8, k0 + j * 8 + t * 2 + e % 2);
                most[e / 2] = s[j][e] > most[e / 2] ? s[j][e] : most[e / 2];
            }
        #pragma unroll
        for (int r = 0; r < 2; r++) {
            most[r] = dg_quad_max(most[r]);
            base[r] = most[r] == -DG_INF_F32 ? 0.0f : most[r];
            factor[r] = dg_exp_f32(top[r] - base[r]);
            top[r] = most[r];
            total[r] *= factor[r];
        }
        #pragma unroll
        for (int j = 0; j < tiles::parts; j++)
            #pragma unroll
            for (int e = 0; e < 4; e++) {
                s[j][e] = dg_exp_f32(s[j][e] - base[e / 2]);
                total[e / 2] += s[j][e];
            }
        #pragma unroll
        for (int j = 0; j < tiles::wide; j++)
            #pragma unroll
            for (int e = 0; e < 4; e++) sums[j][e] *= factor[e / 2];
        u32 *rows = weights + warp * 16 * tiles::weight_pitch;
        tiles::keep(rows, s);
        tiles::template product<tiles::wide, side, true, tiles::weight_pitch>(sums, rows, value);
    }
    #pragma unroll
    for (int r = 0; r < 2; r++) {
        total[r] = dg_quad_sum(total[r]);
        const i64 row = q0 + warp * 16 + g + r * 8;
        if (t == 0 && row < p.queries) log_sum[at * p.queries + row] = total[r] == 0.0f ? 0.0f : top[r] + dg_log_f32(total[r]);
        total[r] = total[r] == 0.0f ? 0.0f : 1.0f / total[r];
    }
    tiles::store(out + batch * p.o.batch + head * p.o.head, p.o.row, q0 + warp * 16, p.queries, p.value_depth, sums, total[0], total[1]);
}

/* Computes the gradient of the queries and, for dg_attend_keys, `inner`: the sums of out * dout over the features. */
template <int kind, int P, int side, int masked, class T>
DG_FN void dg_attend_queries(const dg_attention &p, f32 scale, const T *q, const T *k, const T *v, const void *mask, const T *out, const f32 *log_sum,
                             const T *dout, T *dq, f32 *inner) {
    typedef dg_tiles<kind, P, side> tiles;
    DG_SHARED __align__(16) u32 query[side * tiles::pitch], grads[side * tiles::pitch], key[side * tiles::pitch], value[side * tiles::pitch];
    DG_SHARED __align__(16) u32 weights[side * tiles::weight_pitch];
    const i64 count = (p.queries + side - 1) / side, at = blockIdx.x / count, batch = at / p.heads, head = at % p.heads;
    const i64 q0 = blockIdx.x % count * side, own = head / (p.heads / p.own), of_out = batch * p.o.batch + head * p.o.head + q0 * p.o.row;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    tiles::load(query, q + batch * p.q.batch + head * p.q.head + q0 * p.q.row, p.q.row, p.queries - q0, p.depth);
    tiles::load(grads, dout + of_out, p.o.row, p.queries - q0, p.value_depth);
    f32 sums[tiles::wide][4], row_sum[2], shift[2];
    dg_clear<tiles::wide>(sums);
    #pragma unroll
    for (int r = 0; r < 2; r++) {
        const i64 row = warp * 16 + g + r * 8;
        f32 sum = 0.0f;
        if (q0 + row < p.queries)
            for (i64 d = t; d < p.value_depth; d += 4)
                sum += dg_wide<kind>(out[of_out + row * p.o.row + d]) * dg_wide<kind>(dout[of_out + row * p.o.row + d]);
        row_sum[r] = dg_quad_sum(sum);
        shift[r] = q0 + row < p.queries ? log_sum[at * p.queries + q0 + row] : 0.0f;
        if (t == 0 && q0 + row < p.queries) inner[at * p.queries + q0 + row] = row_sum[r];
    }
    const i64 last = dg_least(p.keys, q0 + side + p.high);
    for (i64 k0 = dg_most(0, q0 + p.low) / side * side; k0 < last; k0 += side) {
        __syncthreads();
        tiles::load(key, k + batch * p.k.batch + own * p.k.head + k0 * p.k.row, p.k.row, p.keys - k0, p.depth);
        tiles::load(value, v + batch * p.v.batch + own * p.v.head + k0 * p.v.row, p.v.row, p.keys - k0, p.value_depth);
        __syncthreads();
        f32 s[tiles::parts][4], ds[tiles::parts][4];
        dg_clear<tiles::parts>(s);
        dg_clear<tiles::parts>(ds);
        tiles::template product<tiles::parts, P, false, tiles::pitch>(s, query + warp * 16 * tiles::pitch, key);
        tiles::template product<tiles::parts, P, false, tiles::pitch>(ds, grads + warp * 16 * tiles::pitch, value);
        #pragma unroll
        for (int j = 0; j < tiles::parts; j++)
            #pragma unroll
            for (int e = 0; e < 4; e++) {
                const f32 score = dg_score<kind, masked>(p, s[j][e], scale, mask, batch, head, q0 + warp * 16 + g + e / 2 * 8, k0 + j * 8 + t * 2 + e % 2);
                ds[j][e] = dg_exp_f32(score - shift[e / 2]) * (ds[j][e] - row_sum[e / 2]);
            }
        u32 *rows = weights + warp * 16 * tiles::weight_pitch;
        tiles::keep(rows, ds);
        tiles::template product<tiles::wide, side, true, tiles::weight_pitch>(sums, rows, key);
    }
    tiles::store(dq + batch * p.q.batch + head * p.q.head, p.q.row, q0 + warp * 16, p.queries, p.depth, sums, scale, scale);
}

/* Computes the gradients of keys and values; rows of the tiles of weights are keys, columns are queries. */
template <int kind, int P, int side, int masked, class T>
DG_FN void dg_attend_keys(const dg_attention &p, f32 scale, const T *q, const T *k, const T *v, const void *mask, const f32 *log_sum, const T *dout,
                          const f32 *inner, T *dk, T *dv) {
    typedef dg_tiles<kind, P, side> tiles;
    DG_SHARED __align__(16) u32 query[side * tiles::pitch], grads[side * tiles::pitch], key[side * tiles::pitch], value[side * tiles::pitch];
    DG_SHARED __align__(16) u32 weights[side * tiles::weight_pitch];
    DG_SHARED f32 shifts[side], row_sums[side];
    const i64 count = (p.keys + side - 1) / side, at = blockIdx.x / count, batch = at / p.own, own = at % p.own, group = p.heads / p.own;
    const i64 k0 = blockIdx.x % count * side;
    const int warp = threadIdx.x / 32, g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    tiles::load(key, k + batch * p.k.batch + own * p.k.head + k0 * p.k.row, p.k.row, p.keys - k0, p.depth);
    tiles::load(value, v + batch * p.v.batch + own * p.v.head + k0 * p.v.row, p.v.row, p.keys - k0, p.value_depth);
    f32 of_key[tiles::wide][4], of_value[tiles::wide][4];
    dg_clear<tiles::wide>(of_key);
    dg_clear<tiles::wide>(of_value);
    u32 *rows = weights + warp * 16 * tiles::weight_pitch;
    const i64 last = dg_least(p.queries, k0 + side - p.low);
    for (i64 head = own * group; head < (own + 1) * group; head++)
        for (i64 q0 = dg_most(0, k0 - p.high) / side * side; q0 < last; q0 += side) {
            __syncthreads();
            tiles::load(query, q + batch * p.q.batch + head * p.q.head + q0 * p.q.row, p.q.row, p.queries - q0, p.depth);
            tiles::load(grads, dout + batch * p.o.batch + head * p.o.head + q0 * p.o.row, p.o.row, p.queries - q0, p.value_depth);
            if (threadIdx.x < side) {
                const i64 row = (batch * p.heads + head) * p.queries + q0 + threadIdx.x;
                const bool in = q0 + threadIdx.x < p.queries;
                shifts[threadIdx.x] = in ? log_sum[row] : 0.0f;
                row_sums[threadIdx.x] = in ? inner[row] : 0.0f;
            }
            __syncthreads();
            f32 s[tiles::parts][4], ds[tiles::parts][4];
            dg_clear<tiles::parts>(s);
            dg_clear<tiles::parts>(ds);
            tiles::template product<tiles::parts, P, false, tiles::pitch>(s, key + warp * 16 * tiles::pitch, query);
            tiles::template product<tiles::parts, P, false, tiles::pitch>(ds, value + warp * 16 * tiles::pitch, grads);
            #pragma unroll
            for (int j = 0; j < tiles::parts; j++)
                #pragma unroll
                for (int e = 0; e < 4; e++) {
                    const int column = j * 8 + t * 2 + e % 2;
                    const f32 score = dg_score<kind, masked>(p, s[j][e], scale, mask, batch, head, q0 + column, k0 + warp * 16 + g + e / 2 * 8);
                    s[j][e] = dg_exp_f32(score - shifts[column]);
                    ds[j][e] = s[j][e] * (ds[j][e] - row_sums[column]);
                }
            tiles::keep(rows, s);
            tiles::template product<tiles::wide, side, true, tiles::weight_pitch>(of_value, rows, grads);
            tiles::keep(rows, ds);
            tiles::template product<tiles::wide, side, true, tiles::weight_pitch>(of_key, rows, query);
        }
    tiles::store(dk + batch * p.k.batch + own * p.k.head, p.k.row, k0 + warp * 16, p.keys, p.depth, of_key, scale, scale);
    tiles::store(dv + batch * p.v.batch + own * p.v.head, p.v.row, k0 + warp * 16, p.keys, p.value_depth, of_value, 1.0f, 1.0f);
}
