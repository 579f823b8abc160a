// A stand-in for libcublasLt.so: it has one algorithm for everything. Products of small matrices that are stored by columns
// are computed on the host (product.h), also with a bias and a rectifier. VERSION is cuBLAS's, as 120205.
#include "product.h"

struct result { unsigned long long algorithm[8]; size_t workspace; int state; float waves; int reserved[4]; };

// What descriptors are told, by the numbers of their attributes.
enum { COMPUTE, SCALE, A_IS_TRANSPOSED = 3, B_IS_TRANSPOSED, EPILOGUE = 7, BIAS, TYPE = 0, ORDER, ROWS, COLUMNS, COLUMNS_APART, COUNT, MATRICES_APART, MOST = 64 };
enum { PLAIN = 1, RECTIFIED = 2, BIASED = 4 };  // epilogues; 0 where none was set

struct descriptor { long long attributes[MOST]; };

MAKES(cublasLtCreate)
FREES(cublasLtDestroy)
FREES(cublasLtMatmulDescDestroy)
FREES(cublasLtMatrixLayoutDestroy)
MAKES(cublasLtMatmulPreferenceCreate)
FREES(cublasLtMatmulPreferenceDestroy)
DOES_NOTHING(cublasLtMatmulPreferenceSetAttribute)
size_t cublasLtGetVersion(void) { return VERSION; }
const char *cublasLtGetStatusName(int status) { return "CUBLAS_STATUS_SUCCESS"; }

int cublasLtMatmulDescCreate(struct descriptor **made, int compute, int scale) {
    *made = calloc(1, sizeof **made);
    (*made)->attributes[COMPUTE] = compute;
    (*made)->attributes[SCALE] = scale;
    return 0;
}

int cublasLtMatrixLayoutCreate(struct descriptor **made, int type, unsigned long long rows, unsigned long long columns, long long columns_apart) {
    *made = calloc(1, sizeof **made);
    **made = (struct descriptor){{[TYPE] = type, [ROWS] = (long long)rows, [COLUMNS] = (long long)columns, [COLUMNS_APART] = columns_apart, [COUNT] = 1}};
    return 0;
}

static int tell(struct descriptor *of, unsigned name, const void *value, size_t size) {
    if (name >= MOST || size > sizeof *of->attributes) return 0;
    of->attributes[name] = 0;
    memcpy(&of->attributes[name], value, size);
    return 0;
}

static int told(const struct descriptor *of, unsigned name, void *value, size_t size, size_t *written) {
    if (value) memset(value, 0, size);
    if (value && name < MOST) memcpy(value, &of->attributes[name], size < sizeof *of->attributes ? size : sizeof *of->attributes);
    if (written) *written = size;
    return 0;
}

int cublasLtMatmulDescSetAttribute(struct descriptor *of, unsigned name, const void *value, size_t size) { return tell(of, name, value, size); }
int cublasLtMatrixLayoutSetAttribute(struct descriptor *of, unsigned name, const void *value, size_t size) { return tell(of, name, value, size); }
int cublasLtMatmulDescGetAttribute(struct descriptor *of, unsigned name, void *value, size_t size, size_t *written) { return told(of, name, value, size, written); }
int cublasLtMatrixLayoutGetAttribute(struct descriptor *of, unsigned name, void *value, size_t size, size_t *written) { return told(of, name, value, size, written); }

int cublasLtMatmulAlgoGetHeuristic(
    void *handle, void *operation, void *a, void *b, void *c, void *d, void *preference, int wanted, struct result *found, int *count
) {
    memset(found, 0, sizeof *found);
    *count = 1;
    return 0;
}

static struct matrix matrix(const void *values, const struct descriptor *of, int is_transposed) {
    const long long *has = of->attributes;
    return (struct matrix){values, (enum type)has[TYPE], is_transposed, has[COLUMNS_APART], has[MATRICES_APART]};
}

int cublasLtMatmul(
    void *handle, const struct descriptor *operation, const void *alpha, const void *a, const struct descriptor *a_layout, const void *b,
    const struct descriptor *b_layout, const void *beta, const void *c, const struct descriptor *c_layout, void *d, const struct descriptor *d_layout
) {
    const long long *has = operation->attributes, *result = d_layout->attributes;
    const int a_is_transposed = has[A_IS_TRANSPOSED] != 0, epilogue = (int)has[EPILOGUE];
    const int is_by_columns = !(a_layout->attributes[ORDER] || b_layout->attributes[ORDER] || c_layout->attributes[ORDER] || result[ORDER]);
    if (!is_by_columns || epilogue & ~(PLAIN | RECTIFIED | BIASED)) return stand_in_stop("cublasLtMatmul", "its order or its epilogue isn't implemented"), 0;
    return multiply(
        "cublasLtMatmul", result[ROWS], result[COLUMNS], a_layout->attributes[a_is_transposed ? ROWS : COLUMNS], alpha,
        matrix(a, a_layout, a_is_transposed), matrix(b, b_layout, has[B_IS_TRANSPOSED] != 0), beta, matrix(c, c_layout, 0),
        matrix(d, d_layout, 0), (enum type)has[SCALE], result[COUNT], epilogue & BIASED ? (const void *)has[BIAS] : NULL, epilogue & RECTIFIED
    );
}
