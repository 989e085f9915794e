/* Batched matrix product out[b] = x[b] y[b]. Tiles of both operands are in shared memory; the next tiles are loaded into
 * registers while the present ones are multiplied.
 *
 * A line is a row of x or a column of y; the depth is the axis that is summed over. A load takes 16 adjacent bytes:
 * elements of adjacent lines if `across` (x transposed, y not), else elements along the depth. `dg_matrix` is an operand
 * stored as a matrix. An `implicit` operand is computed while it is read, such as the columns of a convolution's input.
 * It is a struct with the same members, which locates an element by two parts: one depends on the line and is kept in
 * registers (`line_at`), the other depends on the depth and is kept in a table of the block for each tile (`deep_at`). */

template <class S, bool across_, bool whole> struct dg_matrix {
    typedef S T;
    enum { across = across_, implicit = 0, n = 16 / sizeof(T) };
    struct line { bool in; };
    struct deep { bool in; };
    const T *from;
    i64 lines, depth, pitch; /* pitch: elements from one line to the next; if across, from one depth to the next */

    DG_METHOD void enter(i64 matrix) { from += matrix * lines * depth; }
    /* Loads n elements from (line, depth) on, zeros outside. `whole`: loads are aligned and never half outside. */
    DG_METHOD uint4 chunk(i64 at_line, i64 at_depth) const {
        uint4 found = make_uint4(0, 0, 0, 0);
        if (at_line >= lines || at_depth >= depth) return found;
        const T *at = from + (across ? at_depth * pitch + at_line : at_line * pitch + at_depth);
        if (whole) return *(const uint4 *)at;
        const i64 left = across ? lines - at_line : depth - at_depth;
        T *parts = (T *)&found;
        #pragma unroll
        for (int k = 0; k < n; k++)
            if (k < left) parts[k] = at[k];
        return found;
    }
};

/* The part of one operand's tile, of `lines` by `deep` elements, that one thread loads, in chunks of 16 bytes. */
template <class O, int lines, int deep, int threads> struct dg_reader {
    typedef typename O::T T;
    enum {
        across = O::across, n = 16 / sizeof(T), all = lines * deep / n, chunks = (all + threads - 1) / threads,
        mine = !O::implicit ? 1 : across ? n : chunks
    };
    uint4 kept[chunks];
    typename O::line own[mine];
    i64 first;

    /* Whether this thread has a chunk k; the chunk's first line and depth within the tile. */
    DG_METHOD static bool there(int k) { return all % threads == 0 || (int)threadIdx.x + k * threads < all; }
    DG_METHOD static int line_of(int k) {
        const int c = (int)threadIdx.x + k * threads;
        return across ? c % (lines / n) * n : c / (deep / n);
    }
    DG_METHOD static int deep_of(int k) {
        const int c = (int)threadIdx.x + k * threads;
        return across ? c / (lines / n) : c % (deep / n) * n;
    }
    DG_METHOD void begin(const O &o, i64 line, i64 count) {
        first = line;
        if constexpr (O::implicit) {
            #pragma unroll
            for (int k = 0; k < mine; k++) { /* if across, all chunks of a thread have the same lines, as threads % (lines / n) is 0 */
                const i64 at = line + (across ? line_of(0) + k : line_of(k));
                own[k] = o.line_at(at);
                own[k].in = at < count;
            }
        }
    }
    /* Loads this thread's chunks of the tile that begins at `depth`; `table` holds the depth parts of its elements. */
    DG_METHOD void load(const O &o, i64 depth, const typename O::deep *table) {
        #pragma unroll
        for (int k = 0; k < chunks; k++) {
            if (!there(k)) continue;
            if constexpr (O::implicit) {
                T *parts = (T *)(kept + k);
                #pragma unroll
                for (int j = 0; j < n; j++) {
                    const typename O::line l = own[across ? j : k];
                    const typename O::deep d = table[across ? deep_of(k) : deep_of(k) + j];
                    parts[j] = l.in && d.in ? o.at(l, d) : (T)0;
                }
            } else {
                kept[k] = o.chunk(first + line_of(k), depth + deep_of(k));
            }
        }
    }
};

/* Fills a tile's table of depth parts; thread base + k computes entry k. */
template <int deep, class O> DG_FN void dg_fill(const O &o, typename O::deep *table, i64 depth, i64 end, int base) {
    if constexpr (O::implicit) {
        const int k = (int)threadIdx.x - base;
        if (k < 0 || k >= deep) return;
        typename O::deep d = o.deep_at(depth + k);
        d.in = depth + k < end;
        table[k] = d;
    }
}

/* The result tile that a thread block computes. If `runs`, only `run` columns of a result row are adjacent in memory (see
 * `products.product_plan`). */
struct dg_tile {
    i64 m, n, depth, run, matrices, matrix, row, column;

    DG_METHOD void enter(int side, i64 m_, i64 n_, i64 depth_, i64 run_, i64 matrices_) {
        m = m_; n = n_; depth = depth_; run = run_; matrices = matrices_;
        const i64 tiles_n = (n + side - 1) / side, tiles_m = (m + side - 1) / side, group = blockIdx.x;
        matrix = group / (tiles_m * tiles_n);
        row = group / tiles_n % tiles_m * side;
        column = group % tiles_n * side;
    }
    template <bool runs> DG_METHOD i64 place(i64 r, i64 c) const {
        return runs ? ((c / run * matrices + matrix) * m + r) * run + c % run : (matrix * m + r) * n + c;
    }
};

/* Loops over the tiles along the depth, with two buffers (halves) in shared memory: `copy(half)` stores the loaded chunks
 * into one, `sum(half)` multiplies its contents. */
template <int deep, class X, class Y, class RX, class RY, class Copy, class Sum>
DG_FN void dg_along_depth(const dg_tile &tile, const X &x, const Y &y, RX &rx, RY &ry, Copy copy, Sum sum) {
    DG_SHARED typename X::deep x_table[2][deep];
    DG_SHARED typename Y::deep y_table[2][deep];
    const auto fill = [&](int half, i64 depth) {
        dg_fill<deep>(x, x_table[half], depth, tile.depth, 0);
        dg_fill<deep>(y, y_table[half], depth, tile.depth, deep);
    };
    if (X::implicit || Y::implicit) {
        fill(0, 0);
        fill(1, deep);
        __syncthreads();
    }
    rx.begin(x, tile.row, tile.m);
    ry.begin(y, tile.column, tile.n);
    rx.load(x, 0, x_table[0]);
    ry.load(y, 0, y_table[0]);
    copy(0);
    __syncthreads();
    int half = 0;
    for (i64 depth = 0; depth < tile.depth; depth += deep, half ^= 1) {
        const bool more = depth + deep < tile.depth;
        if (more) {
            rx.load(x, depth + deep, x_table[half ^ 1]);
            ry.load(y, depth + deep, y_table[half ^ 1]);
            fill(half, depth + 2 * deep); /* every thread has read this half: the last barrier came after */
        }
        sum(half);
        if (more) copy(half ^ 1);
        __syncthreads();
    }
}

/* ---- tensor cores ------------------------------------------------------------------------------------------------- */

/* The first word of a line of a tile, which has 16. Where a warp reads 8 adjacent lines, or writes elements of lines that
 * are 8 apart, they are in different banks; so there are 4 words more after each line and after every 8 lines. The lines
 * after line 8 n are as far from it as those after line 0. */
DG_FN int dg_line_at(int line) { return line * 20 + line / 8 * 4; }

template <int kind, int lines, int threads, class O, class R> DG_FN void dg_put_words(const R &r, u32 *tile) {
    typedef typename O::T T;
    #pragma unroll
    for (int k = 0; k < R::chunks; k++) {
        uint4 v = r.kept[k];
        if (kind == mma_tf32) {
            v.x = dg_to_tf32(v.x);
            v.y = dg_to_tf32(v.y);
            v.z = dg_to_tf32(v.z);
            v.w = dg_to_tf32(v.w);
        }
        const int line = R::line_of(k), deep = R::deep_of(k);
        if (R::across) {
            const T *parts = (const T *)&v;
            #pragma unroll
            for (int j = 0; j < R::n; j++) ((T *)(tile + dg_line_at(line) + j * 20))[deep] = parts[j];
        } else {
            *(uint4 *)((T *)(tile + dg_line_at(line)) + deep) = v;
        }
    }
}

template <int kind> DG_FN u16 dg_short_of(f32 v) { return kind == mma_bf16 ? dg_to_bf16(v) : dg_to_f16(v); }
template <int kind> DG_FN void dg_keep(u16 *at, f32 v) { *at = dg_short_of<kind>(v); }
template <int kind> DG_FN void dg_keep(f32 *at, f32 v) { *at = v; }
/* two adjacent elements, of which the first has an even place */
template <int kind> DG_FN void dg_keep_both(u16 *at, const f32 *v) {
    *(u32 *)at = dg_short_of<kind>(v[0]) | (u32)dg_short_of<kind>(v[1]) << 16;
}
template <int kind> DG_FN void dg_keep_both(f32 *at, const f32 *v) { *(float2 *)at = make_float2(v[0], v[1]); }

/* If `pairs`, every run has an even number of columns, and two adjacent results are written together. */
template <int kind, int side, bool runs, bool pairs, class X, class Y, class Out>
DG_FN void dg_tensor_product(X x, Y y, Out *out, dg_tile tile) {
    /* A warp computes `side / 2` rows by 32 columns of the result tile. */
    enum { warps = side / 16, threads = warps * 32, rows = side / 2, tall = rows / 16, deep = 64 / sizeof(typename X::T) };
    DG_SHARED __align__(16) u32 xs[2][side * 20 + side / 2];
    DG_SHARED __align__(16) u32 ys[2][side * 20 + side / 2];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, g = lane / 4, t = lane % 4;
    const int top = warp % 2 * rows, left = warp / 2 * 32;
    f32 sums[tall][4][4];
    #pragma unroll
    for (int i = 0; i < tall; i++)
        for (int j = 0; j < 4; j++)
            for (int k = 0; k < 4; k++) sums[i][j][k] = 0.0f;
    typedef dg_reader<X, side, deep, threads> read_x;
    typedef dg_reader<Y, side, deep, threads> read_y;
    read_x next_x;
    read_y next_y;
    const auto copy = [&](int half) {
        dg_put_words<kind, side, threads, X>(next_x, xs[half]);
        dg_put_words<kind, side, threads, Y>(next_y, ys[half]);
    };
    const auto sum = [&](int half) {
        const u32 *xt = xs[half] + dg_line_at(top) + g * 20 + t, *yt = ys[half] + dg_line_at(left) + g * 20 + t;
        #pragma unroll
        for (int word = 0; word < 16; word += 8) {
            u32 a[tall][4], b[4][2];
            #pragma unroll
            for (int i = 0; i < tall; i++)
                #pragma unroll
                for (int k = 0; k < 4; k++)
                    a[i][k] = xt[dg_line_at(i * 16 + k % 2 * 8) + word + k / 2 * 4];
            #pragma unroll
            for (int j = 0; j < 4; j++)
                #pragma unroll
                for (int k = 0; k < 2; k++) b[j][k] = yt[dg_line_at(j * 8) + word + k * 4];
            #pragma unroll
            for (int i = 0; i < tall; i++)
                #pragma unroll
                for (int j = 0; j < 4; j++) dg_mma<kind>(sums[i][j], a[i], b[j]);
        }
    };
    dg_along_depth<deep>(tile, x, y, next_x, next_y, copy, sum);
    #pragma unroll
    for (int j = 0; j < 4; j++) {
        const i64 c = tile.column + left + j * 8 + t * 2;
        #pragma unroll
        for (int i = 0; i < tall * 2; i++) {
            const i64 r = tile.row + top + i * 8 + g;
            if (r >= tile.m || c >= tile.n) continue;
            const f32 *both = sums[i / 2][j] + i % 2 * 2;
            Out *to = out + tile.place<runs>(r, c);
            if constexpr (pairs) dg_keep_both<kind>(to, both);
            else {
                dg_keep<kind>(to, both[0]);
                if (c + 1 < tile.n) dg_keep<kind>(out + tile.place<runs>(r, c + 1), both[1]);
            }
        }
    }
}

/* ---- float32 without tensor cores: each of 256 threads computes `each` by `each` results -------------------- */

template <int lines, class R> DG_FN void dg_put_floats(const R &r, f32 *tile) {
    enum { pitch = lines + 4 };
    #pragma unroll
    for (int k = 0; k < R::chunks; k++) {
        if (!R::there(k)) continue;
        const int line = R::line_of(k), deep = R::deep_of(k);
        if (R::across) {
            *(uint4 *)(tile + deep * pitch + line) = r.kept[k];
            continue;
        }
        const f32 *parts = (const f32 *)(r.kept + k);
        #pragma unroll
        for (int j = 0; j < 4; j++) tile[(deep + j) * pitch + line] = parts[j];
    }
}

/* If `fours`, the number of columns of a run is a multiple of 4, and four adjacent results are written together. */
template <int side, bool runs, bool fours, class X, class Y> DG_FN void dg_plain_product(X x, Y y, f32 *out, dg_tile tile) {
    enum { each = side / 16, deep = 8, pitch = side + 4 };
    DG_SHARED __align__(16) f32 xs[2][deep * pitch];
    DG_SHARED __align__(16) f32 ys[2][deep * pitch];
    /* A thread's results are squares of 4 by 4, 64 apart: it reads shared memory by 16 bytes without bank conflicts. */
    const int px = threadIdx.x % 16 * 4, py = threadIdx.x / 16 * 4;
    f32 sums[each][each];
    #pragma unroll
    for (int i = 0; i < each; i++)
        for (int j = 0; j < each; j++) sums[i][j] = 0.0f;
    dg_reader<X, side, deep, 256> next_x;
    dg_reader<Y, side, deep, 256> next_y;
    const auto copy = [&](int half) {
        dg_put_floats<side>(next_x, xs[half]);
        dg_put_floats<side>(next_y, ys[half]);
    };
    const auto sum = [&](int half) {
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
    };
    dg_along_depth<deep>(tile, x, y, next_x, next_y, copy, sum);
    #pragma unroll
    for (int j = 0; j < each; j += 4) {
        const i64 c = tile.column + j / 4 * 64 + px;
        #pragma unroll
        for (int i = 0; i < each; i++) {
            const i64 r = tile.row + i / 4 * 64 + py + i % 4;
            if (r >= tile.m || c >= tile.n) continue;
            const f32 *four = sums[i] + j;
            if constexpr (fours) *(float4 *)(out + tile.place<runs>(r, c)) = make_float4(four[0], four[1], four[2], four[3]);
            else
                #pragma unroll
                for (int k = 0; k < 4; k++)
                    if (c + k < tile.n) out[tile.place<runs>(r, c + k)] = four[k];
        }
    }
}
