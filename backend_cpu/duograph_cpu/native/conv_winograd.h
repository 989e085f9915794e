/* Convolutions of 3x3 with fewer multiplications; see conv_winograd.c. */
#ifndef DG_CONV_WINOGRAD_H
#define DG_CONV_WINOGRAD_H

#include "conv_columns.h"

/* Forward and input gradient; DG_NO_KERNEL where another way is faster or more exact, or memory is short: then nothing was written. */
int dg_conv_winograd(const dg_convolution *p, int what, const dg_epilogue *e, void *out, const void *a, const void *b);

#endif
