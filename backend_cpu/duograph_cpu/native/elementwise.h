/* Elementwise kernels; rows are printed by generate.py from the op table. Declarations only: cffi reads this file too. */

/* Computes n elements in a row. pointers: operands, then the result. Bit k of moving: operand k has an element for
 * each of the row's; clear: one element serves the whole row. */
typedef void (*dg_row)(void **pointers, int64_t n, int moving, const double *parameters);

typedef struct {
    dg_row row;
    int64_t n;          /* elements of the result */
    int64_t row_length; /* elements of the result in one row; n when there is one row */
    int64_t grain;      /* elements worth a thread */
    int moving;
    int operands;
    int outer;             /* axes outside the row */
    int itemsizes[6];      /* of operands, then of the result */
    int64_t sizes[16];     /* of the outer axes, from the outermost */
    int64_t steps[6][16];  /* bytes, by operand and outer axis */
    double parameters[8];
} dg_elementwise_plan;

/* The row of that name for this processor, or null; *heavy tells whether an element costs more than arithmetic. */
dg_row dg_elementwise_find(const char *name, int *heavy);

void dg_elementwise1(const dg_elementwise_plan *plan, void *out, const void *a);
void dg_elementwise2(const dg_elementwise_plan *plan, void *out, const void *a, const void *b);
void dg_elementwise3(const dg_elementwise_plan *plan, void *out, const void *a, const void *b, const void *c);
void dg_elementwise4(const dg_elementwise_plan *plan, void *out, const void *a, const void *b, const void *c,
                     const void *d);
void dg_elementwise5(const dg_elementwise_plan *plan, void *out, const void *a, const void *b, const void *c,
                     const void *d, const void *e);
void dg_stream_from(int64_t bytes); /* results of at least so many bytes are written past the caches */
