/* Copies the rows of a matrix to rows that begin `to_pitch` elements apart, by stores of 16 bytes.
 *
 * A thread stores the V elements from a multiple of V of the target; at the ends of a row it stores one by one those that
 * belong to the row. Both buffers begin at a multiple of 16 bytes. */
template <class T>
DG_FN void dg_copy_rows(const T *from, T *to, i64 rows, i64 columns, i64 from_pitch, i64 to_pitch) {
    enum { V = 16 / sizeof(T) };
    union { T one[V]; uint4 all; } v;
    for (i64 row = blockIdx.y; row < rows; row += gridDim.y) {
        const i64 start = row * to_pitch, at = start / V * V + V * ((i64)blockIdx.x * blockDim.x + threadIdx.x);
        const T *source = from + row * from_pitch + (at - start);
        const i64 first = start - at, last = start + columns - at;
        if (first <= 0 && last >= V) {
            #pragma unroll
            for (int k = 0; k < V; k++) v.one[k] = source[k];
            *(uint4 *)(to + at) = v.all;
        } else {
            for (int k = 0; k < V; k++)
                if (k >= first && k < last) to[at + k] = source[k];
        }
    }
}
