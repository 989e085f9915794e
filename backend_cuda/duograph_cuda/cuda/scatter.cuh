/* scatter_add: adds rows of updates to rows of a tensor by index, after the indices are sorted. An op on single elements is
 * one on rows of one element.
 *
 * `rows` are the sorted indices (those out of range, -1, come last) and `ids` their places before sorting. A work item adds up
 * one column of `chunk` sorted indices. Where a row's indices end in later chunks, the sum goes to `tails`, and those of the
 * other chunks to `heads`; another kernel adds these in order. So sums depend on the indices only, not on timing. */

enum { dg_chunk = 32, dg_together = 8 };

/* The sum of two elements: of integers modulo a power of two, of bools as in NumPy. */
template <class X> DG_FN typename X::E dg_sum_of(typename X::E a, typename X::E b) {
    typedef typename X::E E;
    if constexpr (X::logical) return a | b;
    else if constexpr ((E)0.5f != (E)0) return a + b;
    else if constexpr (sizeof(E) == 8) return (E)((u64)a + (u64)b);
    else return (E)((u32)a + (u32)b);
}

template <class X>
DG_FN void dg_scatter_chunks(const i32 *rows, const u32 *ids, const typename X::T *updates, typename X::T *out,
                             typename X::E *heads, typename X::E *tails, i64 count, i64 n, i64 inner, i64 columns) {
    const i64 item = DG_ITEM(0), chunk = item / columns, column = item - chunk * columns;
    const i64 first = chunk * dg_chunk, last = first + dg_chunk < count ? first + dg_chunk : count;
    if (first >= count) return;
    const i64 outer = column / inner, c = column - outer * inner;
    const typename X::T *const from = updates + outer * count * inner + c;
    typename X::T *const to = out + outer * n * inner + c;
    i32 row = rows[first];
    bool whole = first == 0 || rows[first - 1] != row; /* the sum has all of the row's indices so far */
    typename X::E sum = 0;
    bool some = false;
    for (i64 start = first; start < last && row >= 0; start += dg_together) {
        typename X::T v[dg_together];
        #pragma unroll
        for (int k = 0; k < dg_together; k++)
            if (start + k < last) v[k] = from[ids[start + k] * inner];
        #pragma unroll
        for (int k = 0; k < dg_together; k++) {
            if (start + k >= last) break;
            const i32 here = rows[start + k];
            if (here != row) {
                if (whole) to[row * inner] = X::store(dg_sum_of<X>(X::load(to[row * inner]), sum));
                else heads[item] = sum;
                row = here, whole = true, some = false;
            }
            if (row < 0) break;
            sum = some ? dg_sum_of<X>(sum, X::load(v[k])) : X::load(v[k]);
            some = true;
        }
    }
    if (row < 0) return;
    if (!whole) heads[item] = sum;
    else if (last < count && rows[last] == row) tails[item] = sum;
    else to[row * inner] = X::store(dg_sum_of<X>(X::load(to[row * inner]), sum));
}

/* Adds up what the chunks of a row have, where these are several. */
template <class X>
DG_FN void dg_scatter_joined(const i32 *rows, const typename X::E *heads, const typename X::E *tails,
                             typename X::T *out, i64 count, i64 n, i64 inner, i64 columns) {
    const i64 item = DG_ITEM(0), chunk = item / columns, column = item - chunk * columns;
    const i64 last = (chunk + 1) * dg_chunk;
    if (last >= count) return;
    const i32 row = rows[last];
    if (row < 0 || rows[last - 1] != row) return;                                          /* none of its rows goes on */
    if (rows[chunk * dg_chunk] == row && chunk > 0 && rows[chunk * dg_chunk - 1] == row) return; /* it began before */
    typename X::E sum = tails[item];
    i64 next = chunk + 1;
    for (; (next + 1) * dg_chunk < count && rows[(next + 1) * dg_chunk] == row && rows[(next + 1) * dg_chunk - 1] == row;
         next++)
        sum = dg_sum_of<X>(sum, heads[next * columns + column]);
    sum = dg_sum_of<X>(sum, heads[next * columns + column]);
    typename X::T *const to = out + (column / inner * n + row) * inner + column % inner;
    *to = X::store(dg_sum_of<X>(X::load(*to), sum));
}

/* The last update of each row replaces it. */
template <class X>
DG_FN void dg_scatter_last(const i32 *rows, const u32 *ids, const typename X::T *updates, typename X::T *out, i64 count) {
    const i64 i = DG_ITEM(0);
    if (i >= count || rows[i] < 0 || (i + 1 < count && rows[i + 1] == rows[i])) return;
    out[rows[i]] = updates[ids[i]];
}
