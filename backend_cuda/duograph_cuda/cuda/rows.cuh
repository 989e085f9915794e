/* Kernels along the rows of a tensor: softmax, log_softmax, layer_norm and their gradients.
 *
 * The template parameter `lanes` is the number of threads that share a row: a part of a warp, a warp, or a whole block.
 * Each thread reads vectors of V elements (16 bytes of the rows' dtype), K at a time, so that K loads are under way
 * together. Where K vectors a thread hold a whole row, it is read from memory once; if `paged`, the
 * row is longer, and they go over it in pages of K * lanes vectors, more than once. If `edges`, the length of a row is not a multiple of V: then elements before
 * the first multiple of V and after the last are read one by one. Every buffer begins at a multiple of 16 bytes. The
 * order of summation depends on the length and the number of the row only. */

template <int lanes, int site> DG_FN f32 dg_row_sum(f32 v) {
    dg_share<dg_adding, lanes, site, 1>(&v);
    return v;
}
template <int lanes, int site> DG_FN f32 dg_row_max(f32 v) {
    dg_share<dg_taking_larger, lanes, site, 1>(&v);
    return v;
}

/* ---- the elements of a thread -------------------------------------------------------------------------------------- */

template <int N> struct dg_some { enum { n = N }; };

/* The places in a row that a thread handles: vectors of V elements, and with `edges` at most one element more. A row past
 * the end has no places; its threads still take part in what a warp does together. */
template <int lanes_, int K_, int V_, bool edges_> struct dg_span {
    enum { lanes = lanes_, K = K_, V = V_, edges = edges_, step = K_ * lanes_ };
    i64 at;                        /* offset of the row's first element */
    i32 lane, head, whole, single; /* elements before the vectors; vectors; the element outside of them, or -1 */
    i32 page;                      /* the first vector of the present page */

    DG_METHOD dg_span(i64 row, i64 rows, i32 n) {
        lane = (i32)(threadIdx.x % lanes), page = 0;
        at = row < rows ? row * n : 0;
        head = edges ? (i32)(-at & (V - 1)) : 0;
        head = head < n ? head : n;
        whole = (n - head) / V;
        const i32 rest = n - whole * V;
        single = !edges || lane >= rest ? -1 : lane < head ? lane : whole * V + lane;
        if (row >= rows) whole = 0, single = -1;
    }
    DG_METHOD i32 element() const { return edges && page == 0 ? single : -1; }
    /* Goes to the page after this one, or before it; returns whether there is one. */
    DG_METHOD bool next() {
        if (page + step >= whole) return false;
        page += step;
        return true;
    }
    DG_METHOD bool back() { return (page -= step) >= 0; }

    /* Calls f(how many, slot, first place) for what is on the present page. */
    template <class F> DG_METHOD void each(F f) const {
        #pragma unroll
        for (int k = 0; k < K; k++) {
            const i32 i = page + k * lanes + lane;
            if (i < whole) f(dg_some<V>(), k, head + i * V);
        }
        if constexpr (edges)
            if (element() >= 0) f(dg_some<1>(), K, element());
    }
};

/* This thread's row: of a warp for each row, or of a block for each. */
template <int lanes> DG_FN i64 dg_row() {
    return lanes > 32 ? (i64)blockIdx.x : ((i64)blockIdx.x * blockDim.x + threadIdx.x) / lanes;
}

/* A thread's elements of one page of a row, as float32. Slots with no element get the elements of the word `other`. */
template <class X, class S> struct dg_held {
    enum { slots = S::K + S::edges };
    f32 v[slots][S::V];

    DG_METHOD void read(const S &s, const typename X::T *p, u32 other) {
        u32 w[S::K][dg_words<X, S::V>::n];
        #pragma unroll
        for (int k = 0; k < S::K; k++) {
            const i32 i = s.page + k * S::lanes + s.lane;
            #pragma unroll
            for (int b = 0; b < dg_words<X, S::V>::n; b++) w[k][b] = other;
            if (i < s.whole) dg_fetch<X, S::V>(p + s.at + s.head + i * S::V, w[k]);
        }
        if constexpr (S::edges) {
            #pragma unroll
            for (int i = 0; i < S::V; i++) v[S::K][i] = X::part(&other, 0);
            if (s.element() >= 0) v[S::K][0] = X::load(p[s.at + s.element()]);
        }
        #pragma unroll
        for (int k = 0; k < S::K; k++)
            #pragma unroll
            for (int i = 0; i < S::V; i++) v[k][i] = X::part(w[k], i);
    }
    /* Calls f on each element, with those of empty slots, and on the elements in the same places of others. */
    template <class F, class... H> DG_METHOD void all(F f, H &...others) {
        #pragma unroll
        for (int k = 0; k < slots; k++)
            #pragma unroll
            for (int i = 0; i < (k < S::K ? S::V : 1); i++) f(v[k][i], others.v[k][i]...);
    }
};

/* N elements from place j on of a vector that all rows share (gamma, beta), which is not aligned as the rows are if these
 * have edges. */
template <class G, int N, bool edges> DG_FN void dg_column(const typename G::T *p, i32 j, f32 *v) {
    if constexpr (edges)
        for (int i = 0; i < N; i++) v[i] = G::load(p[j + i]);
    else dg_get<G, N>(p + j, v);
}
/* Writes f(slot, index in the slot) to the places of the present page. */
template <class Y, class S, class F> DG_FN void dg_write(const S &s, typename Y::T *out, F f) {
    s.each([&](auto some, int k, i32 j) {
        f32 r[decltype(some)::n];
        #pragma unroll
        for (int i = 0; i < decltype(some)::n; i++) r[i] = f(k, i);
        dg_put<Y, decltype(some)::n>(out + s.at + j, r);
    });
}

/* ---- softmax ---------------------------------------------------------------------------------------------------- */

template <class X, int lanes, int K, bool edges, bool log>
DG_FN void dg_softmax(const typename X::T *x, typename X::T *out, i64 rows, i32 n) {
    typedef dg_span<lanes, K, X::V, edges> S;
    const S s(dg_row<lanes>(), rows, n);
    dg_held<X, S> h;
    h.read(s, x, X::least);
    f32 most = -DG_INF_F32, sum = 0.0f;
    h.all([&](f32 &v) { most = dg_taking_larger::of(most, v); });
    most = dg_row_max<lanes, 0>(most);
    h.all([&](f32 &v) { /* exp(v - most) is NaN if v is infinite and the greatest, as in NumPy */
        const f32 e = dg_exp_f32(v - most);
        sum += e;
        v = log ? v : e;
    });
    sum = dg_row_sum<lanes, 1>(sum);
    const f32 by = log ? dg_log_f32(sum) : 1.0f / sum;
    dg_write<X>(s, out, [&](int k, int i) { return log ? h.v[k][i] - most - by : h.v[k][i] * by; });
}

/* The running sum rescales what it has whenever it meets a greater element. See Milakov and Gimelshein, "Online normalizer
 * calculation for softmax" (2018). */
template <class X, int lanes, int K, bool edges, bool log>
DG_FN void dg_softmax_paged(const typename X::T *x, typename X::T *out, i64 rows, i32 n) {
    typedef dg_span<lanes, K, X::V, edges> S;
    S s(dg_row<lanes>(), rows, n);
    dg_held<X, S> h;
    f32 most = -DG_INF_F32, sum = 0.0f;
    do {
        h.read(s, x, X::least);
        f32 here = most;
        h.all([&](f32 &v) { here = dg_taking_larger::of(here, v); });
        if (here > most) sum *= dg_exp_f32(most - here), most = here;
        h.all([&](f32 &v) { sum += v == -DG_INF_F32 ? 0.0f : dg_exp_f32(v - most); });
    } while (s.next());
    const f32 top = dg_row_max<lanes, 0>(most);
    /* a thread whose elements were all -inf adds nothing to the sum */
    sum = dg_row_sum<lanes, 1>(most == -DG_INF_F32 && sum == 0.0f ? 0.0f : sum * dg_exp_f32(most - top));
    const f32 by = log ? dg_log_f32(sum) : 1.0f / sum;
    do { /* backwards: what was read last may still be in the cache */
        h.read(s, x, 0);
        dg_write<X>(s, out, [&](int k, int i) {
            return log ? h.v[k][i] - top - by : dg_exp_f32(h.v[k][i] - top) * by;
        });
    } while (s.back());
}

template <class X, int lanes, int K, bool edges, bool paged, bool log>
DG_FN void dg_softmax_grad(const typename X::T *y, const typename X::T *dout, typename X::T *dx, i64 rows, i32 n) {
    typedef dg_span<lanes, K, X::V, edges> S;
    S s(dg_row<lanes>(), rows, n);
    dg_held<X, S> a, b;
    f32 sum = 0.0f;
    do {
        a.read(s, y, 0);
        b.read(s, dout, 0);
        b.all([&](f32 &d, f32 &v) { sum += log ? d : v * d; }, a);
    } while (paged && s.next());
    sum = dg_row_sum<lanes, 0>(sum);
    bool fresh = true;
    do {
        if (paged && !fresh) a.read(s, y, 0), b.read(s, dout, 0);
        fresh = false;
        dg_write<X>(s, dx, [&](int k, int i) {
            const f32 v = a.v[k][i], d = b.v[k][i];
            return log ? d - dg_exp_f32(v) * sum : v * (d - sum);
        });
    } while (paged && s.back());
}

/* ---- layer_norm: X is the dtype of the rows, G that of gamma, B that of beta, S that of mean and rstd ---------------- */

/* Mean and sum of squared distances of a row, by two sums over elements in registers, or page by page. */
template <int lanes, bool paged, class S, class H, class T> DG_FN dg_moments dg_moments_of(S &s, H &h, const T *x, i32 n) {
    if constexpr (!paged) {
        h.read(s, x, 0);
        f32 sum = 0.0f, squares = 0.0f;
        h.all([&](f32 &v) { sum += v; });
        const f32 mean = dg_row_sum<lanes, 0>(sum) / (f32)n;
        s.each([&](auto some, int k, i32) {
            #pragma unroll
            for (int i = 0; i < decltype(some)::n; i++) {
                const f32 d = h.v[k][i] - mean;
                squares += d * d;
            }
        });
        return dg_moments{(f32)n, mean, dg_row_sum<lanes, 1>(squares)};
    }
    dg_moments all = {0.0f, 0.0f, 0.0f};
    do {
        h.read(s, x, 0);
        dg_moments here = {0.0f, 0.0f, 0.0f};
        s.each([&](auto some, int, i32) { here.count += decltype(some)::n; });
        h.all([&](f32 &v) { here.mean += v; });
        here.mean = here.count > 0.0f ? here.mean / here.count : 0.0f;
        s.each([&](auto some, int k, i32) {
            for (int i = 0; i < decltype(some)::n; i++) {
                const f32 d = h.v[k][i] - here.mean;
                here.squares += d * d;
            }
        });
        all = dg_joined(all, here);
    } while (s.next());
    return dg_row_moments<lanes>(all);
}

template <class X, class G, class B, class Y, class M, int lanes, int K, bool edges, bool paged>
DG_FN void dg_layer_norm(const typename X::T *x, const typename G::T *gamma, const typename B::T *beta, typename Y::T *y,
                         typename M::T *mean_of, typename M::T *rstd_of, i64 rows, i32 n, f32 eps) {
    typedef dg_span<lanes, K, X::V, edges> S;
    const i64 row = dg_row<lanes>();
    S s(row, rows, n);
    dg_held<X, S> h;
    const dg_moments m = dg_moments_of<lanes, paged>(s, h, x, n);
    const f32 rstd = 1.0f / DG_SQRT_F32(m.squares / (f32)n + eps);
    bool fresh = true;
    do {
        if (paged && !fresh) h.read(s, x, 0);
        fresh = false;
        s.each([&](auto some, int k, i32 j) {
            enum { N = decltype(some)::n };
            f32 g[N], b[N], r[N];
            dg_column<G, N, edges>(gamma, j, g);
            dg_column<B, N, edges>(beta, j, b);
            #pragma unroll
            for (int i = 0; i < N; i++) r[i] = (h.v[k][i] - m.mean) * rstd * g[i] + b[i];
            dg_put<Y, N>(y + s.at + j, r);
        });
    } while (paged && s.back());
    if (s.lane == 0 && row < rows) {
        mean_of[row] = M::store(m.mean);
        rstd_of[row] = M::store(rstd);
    }
}

/* The gradient of x, row by row. */
template <class X, class G, class M, class D, class DX, int lanes, int K, bool edges, bool paged>
DG_FN void dg_layer_norm_grad_rows(const typename X::T *x, const typename G::T *gamma, const typename M::T *mean_of,
                                   const typename M::T *rstd_of, const typename D::T *dout, typename DX::T *dx, i64 rows,
                                   i32 n) {
    typedef dg_span<lanes, K, X::V, edges> S;
    const i64 row = dg_row<lanes>();
    S s(row, rows, n);
    dg_held<X, S> h;
    dg_held<D, S> d;
    const f32 mean = row < rows ? M::load(mean_of[row]) : 0.0f, rstd = row < rows ? M::load(rstd_of[row]) : 0.0f;
    f32 sums[2] = {0.0f, 0.0f};
    /* from x and dout to the normalised x and the gradient of it */
    auto read = [&] {
        h.read(s, x, 0);
        d.read(s, dout, 0);
        s.each([&](auto some, int k, i32 j) {
            f32 g[decltype(some)::n];
            dg_column<G, decltype(some)::n, edges>(gamma, j, g);
            #pragma unroll
            for (int i = 0; i < decltype(some)::n; i++) {
                h.v[k][i] = (h.v[k][i] - mean) * rstd;
                d.v[k][i] *= g[i];
            }
        });
    };
    do {
        read();
        s.each([&](auto some, int k, i32) {
            #pragma unroll
            for (int i = 0; i < decltype(some)::n; i++) sums[0] += d.v[k][i], sums[1] += d.v[k][i] * h.v[k][i];
        });
    } while (paged && s.next());
    dg_share<dg_adding, lanes, 0, 2>(sums);
    const f32 sum = sums[0] / (f32)n, along = sums[1] / (f32)n;
    bool fresh = true;
    do {
        if (paged && !fresh) read();
        fresh = false;
        dg_write<DX>(s, dx, [&](int k, int i) { return rstd * (d.v[k][i] - sum - h.v[k][i] * along); });
    } while (paged && s.back());
}

/* The gradient of x for rows that fit into registers, and partial sums of the gradients of gamma and beta: each warp or block
 * takes every `teams`-th row, and each block writes its sums. V is 1 where rows are not aligned, so that a thread always
 * has the same columns. */
template <class X, class G, class M, class D, class DX, int lanes, int K, int V, int team>
DG_FN void dg_layer_norm_grad(const typename X::T *x, const typename G::T *gamma, const typename M::T *mean_of,
                              const typename M::T *rstd_of, const typename D::T *dout, typename DX::T *dx, f32 *scales,
                              f32 *shifts, i64 rows, i32 n, i64 teams) {
    typedef dg_span<lanes, K, V, false> S;
    f32 scale[K][V] = {}, shift[K][V] = {};
    i32 turn = 0;
    for (i64 row = dg_row<lanes>(); row < rows; row += teams) {
        S s(row, rows, n);
        dg_held<X, S> h;
        dg_held<D, S> d;
        h.read(s, x, 0);
        d.read(s, dout, 0);
        const f32 mean = M::load(mean_of[row]), rstd = M::load(rstd_of[row]);
        f32 sums[2] = {0.0f, 0.0f};
        s.each([&](auto, int k, i32 j) {
            f32 g[V];
            dg_get<G, V>(gamma + j, g);
            #pragma unroll
            for (int i = 0; i < V; i++) {
                h.v[k][i] = (h.v[k][i] - mean) * rstd;
                scale[k][i] += d.v[k][i] * h.v[k][i];
                shift[k][i] += d.v[k][i];
                d.v[k][i] *= g[i];
                sums[0] += d.v[k][i];
                sums[1] += d.v[k][i] * h.v[k][i];
            }
        });
        dg_share<dg_adding, lanes, 0, 2>(sums, turn);
        turn = 1 - turn;
        const f32 sum = sums[0] / (f32)n, along = sums[1] / (f32)n;
        dg_write<DX>(s, dx, [&](int k, int i) { return rstd * (d.v[k][i] - sum - h.v[k][i] * along); });
    }
    /* the warps of a block one after another, if each has rows of its own */
    enum { held = lanes > 32 ? 1 : K * 32 * V };
    DG_SHARED f32 summed[2][held];
    const S s(0, 1, n);
    const int warp = lanes > 32 ? 0 : threadIdx.x / 32;
    for (int w = 0; w < team; w++) {
        if (w == warp)
            s.each([&](auto, int k, i32 j) {
                #pragma unroll
                for (int i = 0; i < V; i++) {
                    if constexpr (team > 1) {
                        if (w) scale[k][i] += summed[0][j + i], shift[k][i] += summed[1][j + i];
                        summed[0][j + i] = scale[k][i], summed[1][j + i] = shift[k][i];
                    }
                }
                if (w == team - 1) {
                    dg_put<dg_of_f32, V>(scales + (i64)blockIdx.x * n + j, scale[k]);
                    dg_put<dg_of_f32, V>(shifts + (i64)blockIdx.x * n + j, shift[k]);
                }
            });
        if (team > 1) __syncthreads();
    }
}

/* Gradients of gamma and beta of long rows, by column, as partial sums over `each` rows. */
template <class X, class M, class D>
DG_FN void dg_layer_norm_columns(const typename X::T *x, const typename M::T *mean_of, const typename M::T *rstd_of,
                                 const typename D::T *dout, f32 *scales, f32 *shifts, i64 rows, i64 n, i64 each,
                                 i64 parts) {
    const i64 e = DG_ITEM(0), part = e / n, j = e % n;
    if (part >= parts) return;
    const i64 first = part * each, last = first + each < rows ? first + each : rows;
    f32 scale = 0.0f, shift = 0.0f;
    #pragma unroll 4
    for (i64 row = first; row < last; row++) {
        const f32 d = D::load(dout[row * n + j]);
        scale += d * ((X::load(x[row * n + j]) - M::load(mean_of[row])) * M::load(rstd_of[row]));
        shift += d;
    }
    scales[e] = scale;
    shifts[e] = shift;
}

/* Adds up the partial sums of the gradients of gamma and beta: `deep` threads for each of 32 columns, then those in order. */
template <class G, class B, int deep>
DG_FN void dg_layer_norm_parts(const f32 *scales, const f32 *shifts, typename G::T *dgamma, typename B::T *dbeta, i64 n,
                               i64 parts) {
    DG_SHARED f32 of[2][deep][32];
    const int lane = threadIdx.x % 32, line = threadIdx.x / 32;
    const i64 j = (i64)blockIdx.x * 32 + lane;
    f32 scale = 0.0f, shift = 0.0f;
    if (j < n) {
        #pragma unroll 4
        for (i64 part = line; part < parts; part += deep) {
            scale += scales[part * n + j];
            shift += shifts[part * n + j];
        }
    }
    of[0][line][lane] = scale;
    of[1][line][lane] = shift;
    __syncthreads();
    if (line > 1 || j >= n) return;
    f32 sum = 0.0f;
    for (int k = 0; k < deep; k++) sum += of[line][k][lane];
    if (line == 0) dgamma[j] = G::store(sum);
    else dbeta[j] = B::store(sum);
}
