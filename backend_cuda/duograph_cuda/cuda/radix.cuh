/* Stable radix sort by digits of 8 bits, for sort.cuh and scatter.cuh.
 *
 * A tile is what a block of 256 threads sorts at once: E elements a thread, in the order of warps, then of e, then of lanes.
 * Rows of more than a tile are sorted digit by digit: `radix_count` counts the digits of each tile, `radix_scan` turns the
 * counts of a digit into places, and `radix_move` moves each element to its place. */

enum { dg_threads = 256, dg_warps = 8, dg_digits = 256 };

/* The place in its tile of element e of this thread. */
template <int E> DG_FN i32 dg_tile_place(int e) {
    return (i32)(threadIdx.x / 32 * 32 * E + e * 32 + threadIdx.x % 32);
}

/* The sum of v over the threads before this one. */
DG_FN u32 dg_sum_before(u32 v) {
    DG_SHARED u32 of_warp[dg_warps];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    u32 sum = v;
    for (int by = 1; by < 32; by *= 2) {
        const u32 before = __shfl_up_sync(0xffffffffu, sum, by);
        if (lane >= by) sum += before;
    }
    if (lane == 31) of_warp[warp] = sum;
    __syncthreads();
    u32 others = 0;
    for (int w = 0; w < warp; w++) others += of_warp[w];
    __syncthreads();
    return others + sum - v;
}

/* Ranks the elements of a tile by one digit, equal ones in order: place[e] of digit[e]; starts[d] of the first of digit d. */
template <int E> DG_FN void dg_rank(const u32 *digit, i32 *place, u32 *starts) {
    DG_SHARED u32 counts[dg_warps][dg_digits];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    for (int w = 0; w < dg_warps; w++) counts[w][threadIdx.x] = 0;
    __syncthreads();
    #pragma unroll
    for (int e = 0; e < E; e++) {
        u32 same = 0xffffffffu; /* the lanes with this digit */
        #pragma unroll
        for (int bit = 0; bit < 8; bit++) {
            const u32 set = __ballot_sync(0xffffffffu, digit[e] >> bit & 1);
            same &= digit[e] >> bit & 1 ? set : ~set;
        }
        const u32 before = counts[warp][digit[e]];
        place[e] = (i32)(before + __popc(same & ((1u << lane) - 1)));
        __syncwarp();
        if (same >> lane == 1) counts[warp][digit[e]] = before + __popc(same); /* the last of them */
        __syncwarp();
    }
    __syncthreads();
    u32 sum = 0;
    for (int w = 0; w < dg_warps; w++) {
        const u32 own = counts[w][threadIdx.x];
        counts[w][threadIdx.x] = sum;
        sum += own;
    }
    starts[threadIdx.x] = dg_sum_before(sum);
    __syncthreads();
    #pragma unroll
    for (int e = 0; e < E; e++) place[e] += (i32)(starts[digit[e]] + counts[warp][digit[e]]);
}

/* Counts the digits of each tile: counts[(row * digits + digit) * tiles + tile]. */
template <class Key, int E>
DG_FN void dg_radix_count(const typename Key::T *keys, u32 *counts, i64 n, i64 tiles, i32 shift) {
    DG_SHARED u32 found[dg_digits];
    const i64 row = blockIdx.x / tiles, tile = blockIdx.x % tiles;
    found[threadIdx.x] = 0;
    __syncthreads();
    #pragma unroll
    for (int e = 0; e < E; e++) {
        const i64 j = tile * (E * dg_threads) + e * dg_threads + threadIdx.x;
        if (j < n) atomicAdd(found + (u32)(keys[row * n + j] >> shift & 255), 1u);
    }
    __syncthreads();
    counts[(row * dg_digits + threadIdx.x) * tiles + tile] = found[threadIdx.x];
}

/* The counts of a digit become the numbers of its elements in the tiles before; totals[row * digits + digit]. A warp for
 * each digit of a row. */
DG_FN void dg_radix_scan(u32 *counts, u32 *totals, i64 lines, i64 tiles) {
    const i64 line = DG_ITEM(0) / 32;
    const int lane = threadIdx.x % 32;
    if (line >= lines) return;
    u32 before = 0;
    for (i64 start = 0; start < tiles; start += 32) {
        u32 *const at = counts + line * tiles + start + lane;
        const u32 own = start + lane < tiles ? *at : 0;
        u32 sum = own;
        for (int by = 1; by < 32; by *= 2) {
            const u32 left = __shfl_up_sync(0xffffffffu, sum, by);
            if (lane >= by) sum += left;
        }
        if (start + lane < tiles) *at = before + sum - own;
        before += __shfl_sync(0xffffffffu, sum, 31);
    }
    if (lane == 0) totals[line] = before;
}

/* Moves the elements of each tile to their places by one digit. An element of the first pass is numbered by its place. */
template <class Key, int E, bool first>
DG_FN void dg_radix_move(const typename Key::T *keys, const u32 *ids, const u32 *counts, const u32 *totals,
                         typename Key::T *keys_to, u32 *ids_to, i64 n, i64 tiles, i32 shift) {
    typedef typename Key::T T;
    DG_SHARED u32 starts[dg_digits], bases[dg_digits];
    DG_SHARED T held[E * dg_threads];
    DG_SHARED u32 names[E * dg_threads];
    const i64 row = blockIdx.x / tiles, tile = blockIdx.x % tiles, from = tile * (E * dg_threads);
    T key[E];
    u32 id[E], digit[E];
    i32 place[E];
    #pragma unroll
    for (int e = 0; e < E; e++) {
        const i64 j = from + dg_tile_place<E>(e);
        key[e] = j < n ? keys[row * n + j] : (T)~(T)0; /* those past the end come last */
        id[e] = first ? (u32)j : j < n ? ids[row * n + j] : 0;
        digit[e] = j < n ? (u32)(key[e] >> shift & 255) : 255;
    }
    const u32 base = dg_sum_before(totals[row * dg_digits + threadIdx.x]);
    dg_rank<E>(digit, place, starts);
    bases[threadIdx.x] = base + counts[(row * dg_digits + threadIdx.x) * tiles + tile] - starts[threadIdx.x];
    #pragma unroll
    for (int e = 0; e < E; e++) held[place[e]] = key[e], names[place[e]] = id[e];
    __syncthreads();
    #pragma unroll
    for (int e = 0; e < E; e++) {
        const i32 j = e * dg_threads + (i32)threadIdx.x;
        if (from + j >= n) continue;
        const T k = held[j];
        const i64 to = row * n + (u32)(bases[(u32)(k >> shift & 255)] + j);
        keys_to[to] = k;
        ids_to[to] = names[j];
    }
}
