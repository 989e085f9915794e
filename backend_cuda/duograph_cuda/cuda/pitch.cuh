/* Copies a matrix to rows that begin `to_pitch` elements apart, by stores of 16 bytes.
 *
 * The target has `to_rows` rows of `to_columns` elements; those that the source (rows of `columns` elements) has not are zero. A
 * thread stores the V elements from a multiple of V of the target; at the ends of a row it stores one by one those that belong
 * to the row. Both buffers begin at a multiple of 16 bytes. */
template <class T>
DG_FN void dg_copy_rows(const T *from, T *to, i64 rows, i64 columns, i64 from_pitch, i64 to_rows, i64 to_columns, i64 to_pitch) {
    enum { V = 16 / sizeof(T) };
    union { T one[V]; uint4 all; } v;
    for (i64 row = blockIdx.y; row < to_rows; row += gridDim.y) {
        const i64 start = row * to_pitch, at = start / V * V + V * ((i64)blockIdx.x * blockDim.x + threadIdx.x);
        const T *source = from + row * from_pitch + (at - start);
        /* of V elements, those from `first` to `last` belong to the row, and those up to `known` come from the source */
        const i64 first = start - at, last = start + to_columns - at, known = row < rows ? start + columns - at : 0;
        if (first <= 0 && last >= V) {
            if (known >= V) {
                #pragma unroll
                for (int k = 0; k < V; k++) v.one[k] = source[k];
            } else {
                for (int k = 0; k < V; k++) v.one[k] = k < known ? source[k] : (T)0;
            }
            *(uint4 *)(to + at) = v.all;
        } else {
            for (int k = 0; k < V; k++)
                if (k >= first && k < last) to[at + k] = k < known ? source[k] : (T)0;
        }
    }
}
