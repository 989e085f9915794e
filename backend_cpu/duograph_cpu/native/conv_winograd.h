/* Winograd convolution of 3x3 kernels; see conv_winograd.c. */
#ifndef DG_CONV_WINOGRAD_H
#define DG_CONV_WINOGRAD_H

#include "conv_columns.h"

/* Forward and input gradient. Returns DG_NO_KERNEL, with nothing written, if another method is better or memory is short. */
int dg_conv_winograd(const dg_convolution *p, int what, const dg_epilogue *e, void *out, const void *a, const void *b);

/* _takes: whether the forward direction is tried here first. _packs: bytes of weights transformed in advance, 0 if that does not pay;
 * _pack: transforms them; _packed: the convolution, DG_NO_KERNEL if weights (`plain`: untransformed) or inputs are too large. */
int dg_conv_winograd_takes(const dg_convolution *p);
int64_t dg_conv_winograd_packs(const dg_convolution *p);
void dg_conv_winograd_pack(const dg_convolution *p, void *out, const void *w);
int dg_conv_winograd_packed(const dg_convolution *p, const dg_epilogue *e, void *y, const void *x, const void *w, const void **plain);

#endif
