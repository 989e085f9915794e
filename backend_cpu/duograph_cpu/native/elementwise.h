/* Element-wise kernels; generate.py prints the row functions from the op table. Declarations only: cffi reads this file too. */

/* Computes a row of n elements. pointers: operands, then the result. Bit k of moving: operand k advances with the row; clear: one
 * element is broadcast over the row. */
typedef void (*dg_row)(void **pointers, int64_t n, int moving, const double *parameters);

typedef struct {
    dg_row row;
    int64_t n;          /* elements of the result */
    int64_t row_length; /* elements of one row of the result */
    int64_t grain;      /* elements worth a thread */
    int moving;
    int operands;
    int outer;             /* axes outside the row */
    int itemsizes[6];      /* of operands, then of the result */
    int64_t sizes[16];     /* of the outer axes, from the outermost */
    int64_t steps[6][16];  /* bytes, by operand and outer axis */
    double parameters[8];
} dg_elementwise_plan;

/* The row function of that name for this processor, or NULL. *heavy: whether an element costs much more than arithmetic. */
dg_row dg_elementwise_find(const char *name, int *heavy);

void dg_elementwise1(const dg_elementwise_plan *plan, void *out, const void *a);
void dg_elementwise2(const dg_elementwise_plan *plan, void *out, const void *a, const void *b);
void dg_elementwise3(const dg_elementwise_plan *plan, void *out, const void *a, const void *b, const void *c);
void dg_elementwise4(const dg_elementwise_plan *plan, void *out, const void *a, const void *b, const void *c,
                     const void *d);
void dg_elementwise5(const dg_elementwise_plan *plan, void *out, const void *a, const void *b, const void *c,
                     const void *d, const void *e);
void dg_stream_from(int64_t bytes); /* for tests: stream results of at least this many bytes */
