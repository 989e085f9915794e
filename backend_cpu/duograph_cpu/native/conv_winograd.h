/* Convolutions of 3x3 with fewer multiplications; see conv_winograd.c. */
#ifndef DG_CONV_WINOGRAD_H
#define DG_CONV_WINOGRAD_H

#include "conv_columns.h"

/* Forward and input gradient; DG_NO_KERNEL where another way is faster or more exact, or memory is short: then nothing was written. */
int dg_conv_winograd(const dg_convolution *p, int what, const dg_epilogue *e, void *out, const void *a, const void *b);

/* Whether the forward direction is tried here first. With weights transformed beforehand: bytes of them, 0 where that is not worth while; what
 * transforms them; and the convolution. DG_NO_KERNEL where these weights, which are found at `plain`, and inputs are to be taken another way. */
int dg_conv_winograd_takes(const dg_convolution *p);
int64_t dg_conv_winograd_packs(const dg_convolution *p);
void dg_conv_winograd_pack(const dg_convolution *p, void *out, const void *w);
int dg_conv_winograd_packed(const dg_convolution *p, const dg_epilogue *e, void *y, const void *x, const void *w, const void **plain);

#endif
