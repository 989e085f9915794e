/* Extremes with their places, and scans (cumulative sums, products and extremes), along an axis.
 *
 * A line begins at line / step * n * step + line % step, where `step` is the axis's stride. Where lines are few, each is
 * divided into `parts` of `each` elements. Lines of adjacent elements (step 1) have a block, others a thread, for each part.
 * What the parts have is combined in order. */

enum { dg_threads = 256, dg_warps = 8 };

/* The type in which elements are compared and added: at least 32 bits. */
template <class E> struct dg_wide { typedef E W; };
template <> struct dg_wide<i8> { typedef i32 W; };
template <> struct dg_wide<i16> { typedef i32 W; };
template <> struct dg_wide<u8> { typedef u32 W; };
template <> struct dg_wide<u16> { typedef u32 W; };

DG_FN i64 dg_line_start(i64 line, i64 n, i64 step) { return line / step * n * step + line % step; }

/* ---- what is scanned ---------------------------------------------------------------------------------------------- */

enum { dg_sums, dg_products, dg_most, dg_least };

/* A sum or a product; integers wrap. */
template <class X, int kind> struct dg_state {
    typedef typename dg_wide<typename X::E>::W W;
    enum { placed = 0 };
    W v;
    DG_METHOD static dg_state none() { return dg_state{(W)(kind == dg_sums ? 0 : 1)}; }
    DG_METHOD static dg_state of(typename X::T x, i32) { return dg_state{(W)X::load(x)}; }
    DG_METHOD dg_state then(dg_state o) const {
        if constexpr ((W)0.5f != 0) return dg_state{kind == dg_sums ? v + o.v : v * o.v};
        else if constexpr (sizeof(W) == 8) return dg_state{(W)(kind == dg_sums ? (u64)v + (u64)o.v : (u64)v * (u64)o.v)};
        else return dg_state{(W)(kind == dg_sums ? (u32)v + (u32)o.v : (u32)v * (u32)o.v)};
    }
    DG_METHOD dg_state shifted(int by) const { return dg_state{__shfl_up_sync(0xffffffffu, v, by)}; }
    DG_METHOD typename X::T stored() const { return X::store((typename X::E)v); }
    DG_METHOD i64 place() const { return 0; }
};

/* The greatest or least element so far and its place: the last of equals, the last NaN if there is one. */
template <class X, int kind> struct dg_place {
    typedef typename dg_wide<typename X::E>::W W;
    enum { placed = 1 };
    W v;
    i32 at; /* -1: no element yet */
    DG_METHOD static dg_place none() { return dg_place{(W)0, -1}; }
    DG_METHOD static dg_place of(typename X::T x, i32 j) { return dg_place{(W)X::load(x), j}; }
    DG_METHOD dg_place then(dg_place o) const {
        const bool better = o.v != o.v || (v == v && (kind == dg_most ? o.v >= v : o.v <= v));
        return o.at < 0 || (at >= 0 && !better) ? *this : o;
    }
    DG_METHOD dg_place shifted(int by) const {
        return dg_place{__shfl_up_sync(0xffffffffu, v, by), __shfl_up_sync(0xffffffffu, at, by)};
    }
    DG_METHOD typename X::T stored() const { return X::store((typename X::E)v); }
    DG_METHOD i64 place() const { return at; }
    /* For argmax and argmin: the better of two, else the first. `later`: of an element with a greater place. */
    DG_METHOD dg_place later(dg_place o) const {
        const bool better = v == v && (kind == dg_most ? !(o.v <= v) : !(o.v >= v));
        return at < 0 || better ? o : *this;
    }
    DG_METHOD dg_place best(dg_place o) const {
        bool better;
        if (at < 0 || o.at < 0) better = at < 0;
        else if (v != v || o.v != o.v) better = o.v != o.v && (v == v || o.at < at);
        else better = (kind == dg_most ? o.v > v : o.v < v) || (o.v == v && o.at < at);
        return better ? o : *this;
    }
    DG_METHOD dg_place other(int by) const {
        return dg_place{__shfl_xor_sync(0xffffffffu, v, by), __shfl_xor_sync(0xffffffffu, at, by)};
    }
};
template <class X, int kind, bool running> struct dg_choice { typedef dg_state<X, kind> S; };
template <class X, int kind> struct dg_choice<X, kind, true> { typedef dg_place<X, kind> S; };
/* the state of a scan */
#define DG_STATE typename dg_choice<X, kind, (kind >= dg_most)>::S

/* ---- argmax and argmin -------------------------------------------------------------------------------------------- */

template <class S> DG_FN S dg_best_of_warp(S best) {
    for (int by = 16; by > 0; by /= 2) best = best.best(best.other(by));
    return best;
}
/* For thread 0. */
template <class S> DG_FN S dg_best_of_block(S best) {
    DG_SHARED typename S::W values[dg_warps];
    DG_SHARED i32 places[dg_warps];
    best = dg_best_of_warp(best);
    if (threadIdx.x % 32 == 0) values[threadIdx.x / 32] = best.v, places[threadIdx.x / 32] = best.at;
    __syncthreads();
    for (int w = 1; w < dg_warps; w++) best = best.best(S{values[w], places[w]});
    return best;
}

/* The best of this thread's elements, of those in the places first to last of a line, by packs of E elements; packs of
 * adjacent threads are adjacent. `last` - `first` is a multiple of E, and the packs are aligned. */
template <class X, int kind, int E, int together, int threads>
DG_FN dg_place<X, kind> dg_best_of(const typename X::T *line, i64 first, i64 last, int thread) {
    typedef dg_place<X, kind> S;
    typedef DG_PACK(typename X::T, E) P;
    S best = S::none();
    for (i64 j = first + thread * E; j < last; j += together * E * threads) {
        P v[together];
        #pragma unroll
        for (int k = 0; k < together; k++)
            if (j + k * E * threads < last) v[k] = *(const P *)(line + j + k * E * threads);
        #pragma unroll
        for (int k = 0; k < together; k++) {
            if (j + k * E * threads >= last) continue;
            #pragma unroll
            for (int e = 0; e < E; e++) best = best.later(S::of(v[k].v[e], (i32)(j + k * E * threads + e)));
        }
    }
    return best;
}

/* A block for each part of a line. If `wide`, n is a multiple of the elements in 16 bytes, which are read together. */
template <class X, int kind, bool wide>
DG_FN void dg_extreme_rows(const typename X::T *x, i64 *found, i64 n, i64 parts, i64 each) {
    enum { E = wide ? 16 / sizeof(typename X::T) : 1, together = wide ? 2 : 8 };
    const i64 line = blockIdx.x / parts, first = blockIdx.x % parts * each, last = first + each < n ? first + each : n;
    const auto best = dg_best_of_block(dg_best_of<X, kind, E, together, dg_threads>(x + line * n, first, last, threadIdx.x));
    if (threadIdx.x == 0) found[blockIdx.x] = best.at;
}

/* A warp for each short line; `wide` as above. */
template <class X, int kind, bool wide>
DG_FN void dg_extreme_short(const typename X::T *x, i64 *found, i64 lines, i64 n) {
    enum { E = wide ? 16 / sizeof(typename X::T) : 1, together = wide ? 2 : 8 };
    const i64 line = DG_ITEM(0) / 32;
    if (line >= lines) return;
    const auto best = dg_best_of_warp(dg_best_of<X, kind, E, together, 32>(x + line * n, 0, n, threadIdx.x % 32));
    if (threadIdx.x % 32 == 0) found[line] = best.at;
}

/* A thread for each part of a line; adjacent threads have adjacent lines. */
template <class X, int kind>
DG_FN void dg_extreme_columns(const typename X::T *x, i64 *found, i64 lines, i64 n, i64 step, i64 parts, i64 each) {
    typedef dg_place<X, kind> S;
    const i64 item = DG_ITEM(0), part = item / lines, line = item - part * lines;
    if (part >= parts) return;
    const i64 from = dg_line_start(line, n, step), first = part * each, last = first + each < n ? first + each : n;
    S best = S::none();
    #pragma unroll 8
    for (i64 j = first; j < last; j++) best = best.later(S::of(x[from + j * step], (i32)j));
    found[line * parts + part] = best.at;
}

/* A block for each line, from the places that its parts found. */
template <class X, int kind>
DG_FN void dg_extreme_joined(const typename X::T *x, const i64 *found, i64 *out, i64 n, i64 step, i64 parts) {
    typedef dg_place<X, kind> S;
    const i64 line = blockIdx.x, from = dg_line_start(line, n, step);
    S best = S::none();
    for (i64 part = threadIdx.x; part < parts; part += dg_threads) {
        const i64 at = found[line * parts + part];
        best = best.best(S::of(x[from + at * step], (i32)at));
    }
    best = dg_best_of_block(best);
    if (threadIdx.x == 0) out[line] = best.at;
}

/* ---- scans -------------------------------------------------------------------------------------------------------- */

/* A part's total is kept as an element and a place, so that it needs no buffer of a struct. */
template <class S> DG_FN void dg_keep(S s, typename S::W *values, i32 *places, i64 at) {
    values[at] = s.v;
    if constexpr (S::placed) places[at] = s.at;
}
template <class S> DG_FN S dg_kept(const typename S::W *values, const i32 *places, i64 at) {
    if constexpr (S::placed) return S{values[at], places[at]};
    else return S{values[at]};
}

/* The state before this thread's, over the threads of a block that come before; `whole` is that of all threads. */
template <class S> DG_FN S dg_before(S own, S *whole) {
    DG_SHARED typename S::W values[dg_warps];
    DG_SHARED i32 places[dg_warps];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    S sum = own;
    for (int by = 1; by < 32; by *= 2) {
        const S left = sum.shifted(by);
        if (lane >= by) sum = left.then(sum);
    }
    S before = sum.shifted(1);
    if (lane == 0) before = S::none();
    __syncthreads(); /* those of the previous call have been read */
    if (lane == 31) dg_keep(sum, values, places, warp);
    __syncthreads();
    S others = S::none(), all = S::none();
    for (int w = 0; w < dg_warps; w++) {
        if (w == warp) others = all;
        all = all.then(dg_kept<S>(values, places, w));
    }
    *whole = all;
    return others.then(before);
}

/* A block for each part of a line: its total, or the scan that starts from the totals before (`bases`, if `based`). If
 * `wide`, n and `each` are multiples of E, and elements are read and written E at a time. */
template <class X, int kind, bool exclusive, bool reverse, bool based, bool totals_only, bool wide>
DG_FN void dg_scan_rows(const typename X::T *x, typename X::T *values, i64 *indices,
                        typename dg_wide<typename X::E>::W *bases, i32 *base_places, i64 n, i64 parts, i64 each) {
    typedef DG_STATE S;
    typedef typename X::T T;
    enum { E = 4 };
    const i64 line = blockIdx.x / parts, first = blockIdx.x % parts * each, last = first + each < n ? first + each : n;
    S carry = S::none();
    if constexpr (based && !totals_only) carry = dg_kept<S>(bases, base_places, blockIdx.x);
    for (i64 start = first; start < last; start += E * dg_threads) {
        const i64 mine = start + threadIdx.x * E, low = reverse ? n - E - mine : mine; /* the least place of the E */
        const i64 count = last - mine < E ? last - mine : E, at = line * n + low;
        DG_PACK(T, E) v, out;
        DG_PACK(i64, E) where;
        if constexpr (wide) {
            if (count > 0) v = *(const DG_PACK(T, E) *)(x + at);
        } else {
            #pragma unroll
            for (int e = 0; e < E; e++)
                if (e < count) v.v[reverse ? E - 1 - e : e] = x[at + (reverse ? E - 1 - e : e)];
        }
        S own = S::none(), whole;
        #pragma unroll
        for (int e = 0; e < E; e++) {
            const int k = reverse ? E - 1 - e : e;
            if (e < count) own = own.then(S::of(v.v[k], (i32)(low + k)));
        }
        S sum = carry.then(dg_before(own, &whole));
        carry = carry.then(whole);
        if constexpr (totals_only) continue;
        #pragma unroll
        for (int e = 0; e < E; e++) {
            const int k = reverse ? E - 1 - e : e;
            if (e >= count) continue;
            const S next = sum.then(S::of(v.v[k], (i32)(low + k)));
            out.v[k] = (exclusive ? sum : next).stored(), where.v[k] = (exclusive ? sum : next).place();
            if constexpr (!wide) values[at + k] = out.v[k];
            if constexpr (!wide && S::placed) indices[at + k] = where.v[k];
            sum = next;
        }
        if constexpr (wide) {
            if (count <= 0) continue;
            *(DG_PACK(T, E) *)(values + at) = out;
            if constexpr (S::placed) *(DG_PACK(i64, E) *)(indices + at) = where;
        }
    }
    if constexpr (totals_only)
        if (threadIdx.x == 0) dg_keep(carry, bases, base_places, blockIdx.x);
}

/* A thread for each part of a line, as above. */
template <class X, int kind, bool exclusive, bool reverse, bool based, bool totals_only>
DG_FN void dg_scan_columns(const typename X::T *x, typename X::T *values, i64 *indices,
                           typename dg_wide<typename X::E>::W *bases, i32 *base_places, i64 lines, i64 n, i64 step,
                           i64 parts, i64 each) {
    typedef DG_STATE S;
    const i64 item = DG_ITEM(0), part = item / lines, line = item - part * lines;
    if (part >= parts) return;
    const i64 from = dg_line_start(line, n, step), first = part * each, last = first + each < n ? first + each : n;
    S sum = S::none();
    if constexpr (based && !totals_only) sum = dg_kept<S>(bases, base_places, line * parts + part);
    #pragma unroll 4
    for (i64 j = first; j < last; j++) {
        const i64 place = reverse ? n - 1 - j : j, at = from + place * step;
        const S next = sum.then(S::of(x[at], (i32)place));
        if constexpr (!totals_only) values[at] = (exclusive ? sum : next).stored();
        if constexpr (!totals_only && S::placed) indices[at] = next.place();
        sum = next;
    }
    if constexpr (totals_only) dg_keep(sum, bases, base_places, line * parts + part);
}

/* The totals of the parts of a line become those of the parts before; a block for each line. */
template <class X, int kind>
DG_FN void dg_scan_bases(typename dg_wide<typename X::E>::W *bases, i32 *base_places, i64 parts) {
    typedef DG_STATE S;
    S carry = S::none();
    for (i64 start = 0; start < parts; start += dg_threads) {
        const i64 part = start + threadIdx.x, at = blockIdx.x * parts + part;
        S whole;
        const S before = dg_before(part < parts ? dg_kept<S>(bases, base_places, at) : S::none(), &whole);
        if (part < parts) dg_keep(carry.then(before), bases, base_places, at);
        carry = carry.then(whole);
    }
}
