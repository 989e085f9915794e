/* Batch normalisation of images (N, C, ...): sums over the channels, and what is computed of each element from them.
 *
 * A block of 256 threads takes one part of one channel, in vectors of V elements (16 bytes, or 1 element where the size of
 * an image is no multiple of that), K at a time. Another kernel joins the parts in order. */

enum { dg_threads = 256 };

/* The vectors of a channel that this block takes; `at` is the offset of vector i. */
template <int V> struct dg_part_of_channel {
    i64 channel, channels, first, last;
    u32 size; /* vectors of a channel in one image */
    DG_METHOD dg_part_of_channel(i64 images, i64 channels_, i64 size_, i64 parts) {
        channels = channels_, channel = blockIdx.x / parts, size = (u32)(size_ / V);
        const i64 count = images * size, each = (count + parts - 1) / parts;
        first = blockIdx.x % parts * each, last = first + each < count ? first + each : count;
    }
    DG_METHOD i64 at(u32 i) const {
        const u32 image = i / size;
        return ((image * channels + channel) * size + (i - image * size)) * V;
    }
};

template <class X, int V, int K>
DG_FN void dg_channel_moments(const typename X::T *x, f32 *means, f32 *squares, i64 images, i64 channels, i64 size,
                              i64 parts) {
    const dg_part_of_channel<V> p(images, channels, size, parts);
    dg_moments all = {0.0f, 0.0f, 0.0f};
    for (i64 start = p.first + threadIdx.x; start < p.last; start += K * dg_threads) {
        f32 v[K][V];
        f32 count = 0.0f, sum = 0.0f, around = 0.0f;
        #pragma unroll
        for (int k = 0; k < K; k++) {
            #pragma unroll
            for (int i = 0; i < V; i++) v[k][i] = 0.0f;
            if (start + k * dg_threads < p.last) dg_get<X, V>(x + p.at((u32)start + k * dg_threads), v[k]), count += V;
        }
        #pragma unroll
        for (int k = 0; k < K; k++)
            #pragma unroll
            for (int i = 0; i < V; i++) sum += v[k][i];
        const f32 mean = sum / count;
        #pragma unroll
        for (int k = 0; k < K; k++)
            #pragma unroll
            for (int i = 0; i < V; i++) {
                const f32 d = v[k][i] - mean;
                around += start + k * dg_threads < p.last ? d * d : 0.0f;
            }
        all = dg_joined(all, dg_moments{count, mean, around});
    }
    all = dg_row_moments<dg_threads>(all);
    if (threadIdx.x == 0) {
        means[blockIdx.x] = all.mean;
        squares[blockIdx.x] = parts == 1 ? all.squares / all.count : all.squares;
    }
}

/* Mean and biased variance of each channel, from those of its parts; a warp for each channel. */
DG_FN void dg_channel_moments_joined(const f32 *means, const f32 *squares, f32 *mean, f32 *variance, i64 images,
                                     i64 channels, i64 size, i64 v, i64 parts) {
    const i64 c = DG_ITEM(0) / 32;
    if (c >= channels) return;
    const i64 count = images * (size / v), each = (count + parts - 1) / parts;
    dg_moments all = {0.0f, 0.0f, 0.0f};
    for (i64 part = threadIdx.x % 32; part < parts && part * each < count; part += 32) {
        const i64 own = (count - part * each < each ? count - part * each : each) * v;
        all = dg_joined(all, dg_moments{(f32)own, means[c * parts + part], squares[c * parts + part]});
    }
    all = dg_row_moments<32>(all);
    if (threadIdx.x % 32 == 0) mean[c] = all.mean, variance[c] = all.squares / all.count;
}

template <class X, int V, int K>
DG_FN void dg_channel_products(const typename X::T *dout, const typename X::T *x, const f32 *mean_of, f32 *sums,
                               f32 *products, i64 images, i64 channels, i64 size, i64 parts) {
    const dg_part_of_channel<V> p(images, channels, size, parts);
    const f32 mean = mean_of[p.channel];
    f32 all[2] = {0.0f, 0.0f};
    for (i64 start = p.first + threadIdx.x; start < p.last; start += K * dg_threads) {
        f32 v[K][V], d[K][V];
        #pragma unroll
        for (int k = 0; k < K; k++) {
            #pragma unroll
            for (int i = 0; i < V; i++) v[k][i] = mean, d[k][i] = 0.0f;
            if (start + k * dg_threads < p.last) {
                const i64 at = p.at((u32)start + k * dg_threads);
                dg_get<X, V>(x + at, v[k]);
                dg_get<X, V>(dout + at, d[k]);
            }
        }
        #pragma unroll
        for (int k = 0; k < K; k++)
            #pragma unroll
            for (int i = 0; i < V; i++) all[0] += d[k][i], all[1] += d[k][i] * (v[k][i] - mean);
    }
    dg_share<dg_adding, dg_threads, 0, 2>(all);
    if (threadIdx.x == 0) sums[blockIdx.x] = all[0], products[blockIdx.x] = all[1];
}

/* The sums of each channel, from those of its parts; a warp for each channel. */
DG_FN void dg_channel_products_joined(const f32 *sums, const f32 *products, f32 *sum, f32 *product, i64 channels,
                                      i64 parts) {
    const i64 c = DG_ITEM(0) / 32;
    if (c >= channels) return;
    f32 all[2] = {0.0f, 0.0f};
    for (i64 part = threadIdx.x % 32; part < parts; part += 32)
        all[0] += sums[c * parts + part], all[1] += products[c * parts + part];
    dg_share<dg_adding, 32, 2, 2>(all);
    if (threadIdx.x % 32 == 0) sum[c] = all[0], product[c] = all[1];
}

/* ---- sums over the columns of a matrix, as of images with channels last --------------------------------------------------
 *
 * A block takes one part of the rows, of L * V columns: a line of L threads reads V columns (16 bytes, or 1 element) of a
 * row, and the block's lines take turns with the rows, K at a time. Arguments and results are those of the kernels above,
 * of `images` rows with a `size` of 1. */

template <int V, int L> struct dg_part_of_columns {
    enum { lines = dg_threads / L };
    i64 channels, column, part, first, last;
    DG_METHOD dg_part_of_columns(i64 rows, i64 channels_, i64 parts) {
        const i64 each = (rows + parts - 1) / parts;
        channels = channels_, part = blockIdx.x % parts;
        column = (blockIdx.x / parts * L + threadIdx.x % L) * V;
        first = part * each, last = first + each < rows ? first + each : rows;
        if (column >= channels) last = first; /* no rows for threads behind the last column */
        first += threadIdx.x / L;
    }
    DG_METHOD i64 at(i64 row) const { return row * channels + column; }
};

template <class X, int V, int L, int K>
DG_FN void dg_column_moments(const typename X::T *x, f32 *means, f32 *squares, i64 images, i64 channels, i64 size,
                             i64 parts) {
    const dg_part_of_columns<V, L> p(images, channels, parts);
    DG_SHARED f32 all[3][V][dg_threads];
    dg_moments own[V];
    #pragma unroll
    for (int i = 0; i < V; i++) own[i] = dg_moments{0.0f, 0.0f, 0.0f};
    for (i64 row = p.first; row < p.last; row += K * p.lines) {
        f32 v[K][V];
        f32 count = 0.0f;
        #pragma unroll
        for (int k = 0; k < K; k++) {
            #pragma unroll
            for (int i = 0; i < V; i++) v[k][i] = 0.0f;
            if (row + k * p.lines < p.last) dg_get<X, V>(x + p.at(row + k * p.lines), v[k]), count += 1.0f;
        }
        #pragma unroll
        for (int i = 0; i < V; i++) {
            f32 sum = 0.0f, around = 0.0f;
            #pragma unroll
            for (int k = 0; k < K; k++) sum += v[k][i];
            const f32 mean = sum / count;
            #pragma unroll
            for (int k = 0; k < K; k++) {
                const f32 d = v[k][i] - mean;
                around += row + k * p.lines < p.last ? d * d : 0.0f;
            }
            own[i] = dg_joined(own[i], dg_moments{count, mean, around});
        }
    }
    #pragma unroll
    for (int i = 0; i < V; i++) {
        all[0][i][threadIdx.x] = own[i].count;
        all[1][i][threadIdx.x] = own[i].mean;
        all[2][i][threadIdx.x] = own[i].squares;
    }
    for (u32 half = dg_threads / 2; half >= L; half /= 2) {
        __syncthreads();
        if (threadIdx.x >= half) continue;
        #pragma unroll
        for (int i = 0; i < V; i++) {
            const u32 other = threadIdx.x + half;
            own[i] = dg_joined(own[i], dg_moments{all[0][i][other], all[1][i][other], all[2][i][other]});
            all[0][i][threadIdx.x] = own[i].count;
            all[1][i][threadIdx.x] = own[i].mean;
            all[2][i][threadIdx.x] = own[i].squares;
        }
    }
    if (threadIdx.x >= L || p.column >= p.channels) return;
    #pragma unroll
    for (int i = 0; i < V; i++) {
        const i64 to = (p.column + i) * parts + p.part;
        means[to] = own[i].mean;
        squares[to] = parts == 1 ? own[i].squares / own[i].count : own[i].squares;
    }
}

template <class X, int V, int L, int K>
DG_FN void dg_column_products(const typename X::T *dout, const typename X::T *x, const f32 *mean_of, f32 *sums,
                              f32 *products, i64 images, i64 channels, i64 size, i64 parts) {
    const dg_part_of_columns<V, L> p(images, channels, parts);
    DG_SHARED f32 all[2][V][dg_threads];
    f32 mean[V], sum[V], product[V];
    #pragma unroll
    for (int i = 0; i < V; i++) {
        mean[i] = p.column < p.channels ? mean_of[p.column + i] : 0.0f;
        sum[i] = product[i] = 0.0f;
    }
    for (i64 row = p.first; row < p.last; row += K * p.lines) {
        f32 v[K][V], d[K][V];
        #pragma unroll
        for (int k = 0; k < K; k++) {
            #pragma unroll
            for (int i = 0; i < V; i++) v[k][i] = mean[i], d[k][i] = 0.0f;
            if (row + k * p.lines < p.last) {
                dg_get<X, V>(x + p.at(row + k * p.lines), v[k]);
                dg_get<X, V>(dout + p.at(row + k * p.lines), d[k]);
            }
        }
        #pragma unroll
        for (int k = 0; k < K; k++)
            #pragma unroll
            for (int i = 0; i < V; i++) sum[i] += d[k][i], product[i] += d[k][i] * (v[k][i] - mean[i]);
    }
    #pragma unroll
    for (int i = 0; i < V; i++) all[0][i][threadIdx.x] = sum[i], all[1][i][threadIdx.x] = product[i];
    for (u32 half = dg_threads / 2; half >= L; half /= 2) {
        __syncthreads();
        if (threadIdx.x >= half) continue;
        #pragma unroll
        for (int i = 0; i < V; i++) {
            all[0][i][threadIdx.x] = sum[i] += all[0][i][threadIdx.x + half];
            all[1][i][threadIdx.x] = product[i] += all[1][i][threadIdx.x + half];
        }
    }
    if (threadIdx.x >= L || p.column >= p.channels) return;
    #pragma unroll
    for (int i = 0; i < V; i++) {
        const i64 to = (p.column + i) * parts + p.part;
        sums[to] = sum[i], products[to] = product[i];
    }
}

/* ---- results and gradients, a thread for each of `count` vectors; `size` of them are a channel of an image ------------ */

template <class X, class G, class B, int V>
DG_FN void dg_channel_normalised(const typename X::T *x, const typename G::T *gamma, const typename B::T *beta,
                                 const f32 *mean_of, const f32 *variance_of, typename X::T *out, i64 count, i64 channels,
                                 i64 size, f32 eps) {
    const i64 i = DG_ITEM(0);
    if (i >= count) return;
    const u32 c = (u32)i / (u32)size % (u32)channels;
    const f32 mean = mean_of[c], scale = dg_rsqrt_f32(variance_of[c] + eps) * G::load(gamma[c]);
    const f32 shift = B::load(beta[c]);
    f32 v[V];
    dg_get<X, V>(x + i * V, v);
    #pragma unroll
    for (int k = 0; k < V; k++) v[k] = (v[k] - mean) * scale + shift;
    dg_put<X, V>(out + i * V, v);
}

/* `part` is 1 / (elements of a channel). The thread of a channel's first vector writes the gradients of gamma and beta. */
template <class X, class G, int V>
DG_FN void dg_channel_gradients(const typename X::T *x, const typename G::T *gamma, const f32 *mean_of,
                                const f32 *variance_of, const typename X::T *dout, const f32 *sums, const f32 *products,
                                typename X::T *dx, typename G::T *dgamma, typename G::T *dbeta, i64 count, i64 channels,
                                i64 size, f32 eps, f32 part) {
    const i64 i = DG_ITEM(0);
    if (i >= count) return;
    const u32 line = (u32)i / (u32)size, c = line % (u32)channels;
    const f32 mean = mean_of[c], rstd = dg_rsqrt_f32(variance_of[c] + eps);
    const f32 sum = sums[c], product = products[c] * rstd, scale = G::load(gamma[c]) * rstd;
    const f32 constant = sum * part, along = rstd * product * part;
    f32 v[V], d[V];
    dg_get<X, V>(x + i * V, v);
    dg_get<X, V>(dout + i * V, d);
    #pragma unroll
    for (int k = 0; k < V; k++) d[k] = (d[k] - constant - (v[k] - mean) * along) * scale;
    dg_put<X, V>(dx + i * V, d);
    if (line < channels && (u32)i == line * (u32)size) {
        dgamma[c] = G::store(product);
        dbeta[c] = G::store(sum);
    }
}
