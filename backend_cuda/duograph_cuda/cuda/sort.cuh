/* Stable sort along an axis: NaN last in both directions, -0 equal to 0. Elements become unsigned keys with the same order.
 *
 * Line l along the axis begins at l / step * n * step + l % step, where `step` is the axis's stride. Results are the first
 * `chosen` elements of each line. */

template <class X> DG_FN u64 dg_key_bits(typename X::T v) {
    typedef typename X::T T;
    const u64 top = (u64)1 << (8 * sizeof(T) - 1);
    if constexpr ((typename X::E)0.5f != 0) { /* floating: negative ones in the opposite order */
        u64 bits;
        if constexpr (sizeof(T) == 8) bits = dg_bits_f64(v);
        else if constexpr (sizeof(T) == 4) bits = dg_bits_f32(v);
        else bits = v;
        return (bits & (top - 1)) == 0 ? top : bits & top ? ~bits : bits | top;
    } else if constexpr ((T)-1 < (T)0) return (u64)(i64)v ^ top;
    else return v;
}
template <class X, class Key, bool down> DG_FN typename Key::T dg_sort_key(typename X::T v) {
    typedef typename Key::T K;
    const typename X::E e = X::load(v);
    const u64 bits = dg_key_bits<X>(v);
    return e != e ? (K)~(K)0 : (K)(down ? ~bits : bits); /* only the low bits of the element's size count */
}

/* A block sorts each line. */
template <class X, class Key, int E, bool down>
DG_FN void dg_sort_lines(const typename X::T *x, typename X::T *values, i64 *indices, i32 n, i64 step, i32 chosen) {
    typedef typename Key::T T;
    DG_SHARED u32 starts[dg_digits];
    DG_SHARED T held[E * dg_threads];
    DG_SHARED u32 names[E * dg_threads];
    const i64 line = blockIdx.x, from = line / step * n * step + line % step;
    const i64 to = line / step * chosen * step + line % step;
    T key[E];
    u32 id[E], digit[E];
    i32 place[E];
    #pragma unroll
    for (int e = 0; e < E; e++) {
        id[e] = (u32)dg_tile_place<E>(e);
        key[e] = id[e] < n ? dg_sort_key<X, Key, down>(x[from + id[e] * step]) : (T)~(T)0; /* last: the sort is stable */
    }
    for (u32 shift = 0; shift < 8 * sizeof(typename X::T); shift += 8) {
        #pragma unroll
        for (int e = 0; e < E; e++) digit[e] = (u32)(key[e] >> shift & 255);
        dg_rank<E>(digit, place, starts);
        #pragma unroll
        for (int e = 0; e < E; e++) held[place[e]] = key[e], names[place[e]] = id[e];
        __syncthreads();
        #pragma unroll
        for (int e = 0; e < E; e++) key[e] = held[dg_tile_place<E>(e)], id[e] = names[dg_tile_place<E>(e)];
        __syncthreads();
    }
    #pragma unroll
    for (int e = 0; e < E; e++) {
        const i32 j = dg_tile_place<E>(e);
        if (j >= chosen) continue;
        indices[to + j * step] = id[e];
        values[to + j * step] = x[from + id[e] * step];
    }
}

template <class X, class Key, bool down>
DG_FN void dg_sort_keys(const typename X::T *x, typename Key::T *keys, i64 size, i64 n, i64 step) {
    const i64 i = DG_ITEM(0), line = i / n, j = i - line * n;
    if (i < size) keys[i] = dg_sort_key<X, Key, down>(x[(line / step * n + j) * step + line % step]);
}
template <class X>
DG_FN void dg_sort_results(const typename X::T *x, const u32 *ids, typename X::T *values, i64 *indices, i64 size, i64 n,
                           i64 step, i64 chosen) {
    const i64 i = DG_ITEM(0), line = i / chosen, j = i - line * chosen;
    if (i >= size) return;
    const i64 id = ids[line * n + j], to = (line / step * chosen + j) * step + line % step;
    indices[to] = id;
    values[to] = x[(line / step * n + id) * step + line % step];
}
