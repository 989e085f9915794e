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

/* Mean and biased variance of each channel, from those of its parts; a thread for each channel. */
DG_FN void dg_channel_moments_joined(const f32 *means, const f32 *squares, f32 *mean, f32 *variance, i64 images,
                                     i64 channels, i64 size, i64 v, i64 parts) {
    const i64 c = DG_ITEM(0);
    if (c >= channels) return;
    const i64 count = images * (size / v), each = (count + parts - 1) / parts;
    dg_moments all = {0.0f, 0.0f, 0.0f};
    for (i64 part = 0; part < parts && part * each < count; part++) {
        const i64 own = (count - part * each < each ? count - part * each : each) * v;
        all = dg_joined(all, dg_moments{(f32)own, means[c * parts + part], squares[c * parts + part]});
    }
    mean[c] = all.mean;
    variance[c] = all.squares / all.count;
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

DG_FN void dg_channel_products_joined(const f32 *sums, const f32 *products, f32 *sum, f32 *product, i64 channels,
                                      i64 parts) {
    const i64 c = DG_ITEM(0);
    if (c >= channels) return;
    f32 all = 0.0f, both = 0.0f;
    for (i64 part = 0; part < parts; part++) all += sums[c * parts + part], both += products[c * parts + part];
    sum[c] = all;
    product[c] = both;
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
