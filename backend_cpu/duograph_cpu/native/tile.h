/* Unrolls register tiles: ROWS_H(X) expands X(r) for each row r < H. Accumulators are named variables, because compilers do not reliably
 * keep arrays in registers. */
#ifndef DG_TILE_H
#define DG_TILE_H

#define ROWS_1(X) X(0)
#define ROWS_2(X) ROWS_1(X) X(1)
#define ROWS_3(X) ROWS_2(X) X(2)
#define ROWS_4(X) ROWS_3(X) X(3)
#define ROWS_5(X) ROWS_4(X) X(4)
#define ROWS_6(X) ROWS_5(X) X(5)
#define ROWS_7(X) ROWS_6(X) X(6)
#define ROWS_8(X) ROWS_7(X) X(7)
#define ROWS_9(X) ROWS_8(X) X(8)
#define ROWS_10(X) ROWS_9(X) X(9)
#define ROWS_11(X) ROWS_10(X) X(10)
#define ROWS_12(X) ROWS_11(X) X(11)
#define ROWS_13(X) ROWS_12(X) X(12)
#define ROWS_14(X) ROWS_13(X) X(13)

#endif
