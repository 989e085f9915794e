/* Convolution of small planes; see conv_columns.c. */
#ifndef DG_CONV_COLUMNS_H
#define DG_CONV_COLUMNS_H

#include "common.h"

/* The direction, result (operands): y (x, w); dx (dy, w); dw (x, dy). */
enum { DG_CONV_FORWARD, DG_CONV_INPUT, DG_CONV_WEIGHTS };

/* float32 and float64. e: epilogue of the forward direction. Returns DG_NO_KERNEL if planes are not small or memory is short. */
int dg_conv_columns(const dg_convolution *p, int what, const dg_epilogue *e, void *out, const void *a, const void *b);

/* The forward direction with weights packed in advance; _packs: their bytes, 0 if another method runs or packing does not pay. */
int64_t dg_conv_columns_packs(const dg_convolution *p);
void dg_conv_columns_pack(const dg_convolution *p, void *out, const void *w);
int dg_conv_columns_packed(const dg_convolution *p, const dg_epilogue *e, void *y, const void *x, const void *w);

#endif
