// A stand-in for libcublas.so: the functions that TensorFlow calls. Products of small matrices, and operations on vectors,
// of float and double are computed on the host. The others compute nothing. VERSION is cuBLAS's, as 120205.
#include "nothing.h"

// The most multiplications of a product that is computed: on the host, a larger one would take most of a test's time.
enum { MOST_MULTIPLICATIONS = 1 << 22 };

enum type { FLOAT = 0, DOUBLE = 1 };  // by cudaDataType

struct matrix { const void *values; enum type type; int is_transposed; long columns_apart, matrices_apart; };

static double get(const void *values, enum type type, long at) { return type == DOUBLE ? ((const double *)values)[at] : ((const float *)values)[at]; }

static void set(void *values, enum type type, long at, double value) {
    if (type == DOUBLE) ((double *)values)[at] = value;
    else ((float *)values)[at] = (float)value;
}

static double element(const struct matrix *of, long number, long row, long column) {
    const long at = of->is_transposed ? row * of->columns_apart + column : column * of->columns_apart + row;
    return get(of->values, of->type, number * of->matrices_apart + at);
}

// c = alpha a b + beta c, where c has `rows` and `columns`, and its columns follow each other.
static int multiply(
    long rows, long columns, long inner, const void *alpha, struct matrix a, struct matrix b, const void *beta, struct matrix c, long count
) {
    if (a.type != b.type || a.type != c.type || c.type > DOUBLE) return 0;
    if (rows * columns * inner * count > MOST_MULTIPLICATIONS) return 0;
    const double factor = get(alpha, c.type, 0), kept = get(beta, c.type, 0);
    for (long number = 0; number < count; number++)
        for (long column = 0; column < columns; column++)
            for (long row = 0; row < rows; row++) {
                const long at = number * c.matrices_apart + column * c.columns_apart + row;
                double sum = 0;
                for (long middle = 0; middle < inner; middle++) sum += element(&a, number, row, middle) * element(&b, number, middle, column);
                // where nothing is kept, c may be no number
                set((void *)c.values, c.type, at, factor * sum + (kept ? kept * get(c.values, c.type, at) : 0));
            }
    return 0;
}

MAKES(cublasCreate_v2)
FREES(cublasDestroy_v2)
DOES_NOTHING(cublasSetStream_v2)
DOES_NOTHING(cublasSetWorkspace_v2)
DOES_NOTHING(cublasSetMathMode)
DOES_NOTHING(cublasSetPointerMode_v2)
DOES_NOTHING(cublasSetAtomicsMode)
int cublasGetStream_v2(void *handle, void **stream) { *stream = NULL; return 0; }
int cublasGetMathMode(void *handle, int *mode) { *mode = 0; return 0; }
int cublasGetPointerMode_v2(void *handle, int *mode) { *mode = 0; return 0; }
int cublasGetVersion_v2(void *handle, int *version) { *version = VERSION; return 0; }
int cublasGetProperty(int kind, int *value) { *value = kind == 0 ? VERSION / 10000 : kind == 1 ? VERSION / 100 % 100 : VERSION % 100; return 0; }
const char *cublasGetStatusString(int status) { return "CUBLAS_STATUS_SUCCESS"; }

// matrices

int cublasGemmStridedBatchedEx(
    void *handle, int a_is_transposed, int b_is_transposed, int rows, int columns, int inner, const void *alpha,
    const void *a, int a_type, int a_columns, long long a_matrices, const void *b, int b_type, int b_columns, long long b_matrices,
    const void *beta, void *c, int c_type, int c_columns, long long c_matrices, int count, int compute, int algorithm
) {
    return multiply(
        rows, columns, inner, alpha, (struct matrix){a, a_type, a_is_transposed, a_columns, a_matrices},
        (struct matrix){b, b_type, b_is_transposed, b_columns, b_matrices}, beta, (struct matrix){c, c_type, 0, c_columns, c_matrices}, count
    );
}

int cublasGemmEx(
    void *handle, int a_is_transposed, int b_is_transposed, int rows, int columns, int inner, const void *alpha,
    const void *a, int a_type, int a_columns, const void *b, int b_type, int b_columns,
    const void *beta, void *c, int c_type, int c_columns, int compute, int algorithm
) {
    return cublasGemmStridedBatchedEx(
        handle, a_is_transposed, b_is_transposed, rows, columns, inner, alpha, a, a_type, a_columns, 0, b, b_type, b_columns, 0,
        beta, c, c_type, c_columns, 0, 1, compute, algorithm
    );
}

#define PRODUCTS(letter, number, type) \
    int cublas##letter##gemmStridedBatched( \
        void *handle, int a_is_transposed, int b_is_transposed, int rows, int columns, int inner, const number *alpha, \
        const number *a, int a_columns, long long a_matrices, const number *b, int b_columns, long long b_matrices, \
        const number *beta, number *c, int c_columns, long long c_matrices, int count \
    ) { \
        return cublasGemmStridedBatchedEx( \
            handle, a_is_transposed, b_is_transposed, rows, columns, inner, alpha, a, type, a_columns, a_matrices, \
            b, type, b_columns, b_matrices, beta, c, type, c_columns, c_matrices, count, 0, 0 \
        ); \
    } \
    int cublas##letter##gemm_v2( \
        void *handle, int a_is_transposed, int b_is_transposed, int rows, int columns, int inner, const number *alpha, \
        const number *a, int a_columns, const number *b, int b_columns, const number *beta, number *c, int c_columns \
    ) { \
        return cublasGemmEx( \
            handle, a_is_transposed, b_is_transposed, rows, columns, inner, alpha, a, type, a_columns, b, type, b_columns, \
            beta, c, type, c_columns, 0, 0 \
        ); \
    } \
    int cublas##letter##gemmBatched( \
        void *handle, int a_is_transposed, int b_is_transposed, int rows, int columns, int inner, const number *alpha, \
        const number *const *a, int a_columns, const number *const *b, int b_columns, const number *beta, number *const *c, \
        int c_columns, int count \
    ) { \
        for (int each = 0; each < count; each++) \
            cublas##letter##gemm_v2( \
                handle, a_is_transposed, b_is_transposed, rows, columns, inner, alpha, a[each], a_columns, b[each], b_columns, \
                beta, c[each], c_columns \
            ); \
        return 0; \
    } \
    int cublas##letter##gemv_v2( \
        void *handle, int is_transposed, int rows, int columns, const number *alpha, const number *a, int a_columns, \
        const number *x, int x_apart, const number *beta, number *y, int y_apart \
    ) { \
        /* y is a row of columns that are `y_apart` apart, and so is x */ \
        const int results = is_transposed ? columns : rows, inner = is_transposed ? rows : columns; \
        return cublas##letter##gemm_v2(handle, 0, !is_transposed, 1, results, inner, alpha, x, x_apart, a, a_columns, beta, y, y_apart); \
    } \
    int cublas##letter##axpy_v2(void *handle, int size, const number *alpha, const number *x, int x_apart, number *y, int y_apart) { \
        for (long each = 0; each < size; each++) y[each * y_apart] += *alpha * x[each * x_apart]; \
        return 0; \
    } \
    int cublas##letter##copy_v2(void *handle, int size, const number *x, int x_apart, number *y, int y_apart) { \
        for (long each = 0; each < size; each++) y[each * y_apart] = x[each * x_apart]; \
        return 0; \
    } \
    int cublas##letter##scal_v2(void *handle, int size, const number *alpha, number *x, int apart) { \
        for (long each = 0; each < size; each++) x[each * apart] *= *alpha; \
        return 0; \
    } \
    int cublas##letter##dot_v2(void *handle, int size, const number *x, int x_apart, const number *y, int y_apart, number *result) { \
        double sum = 0; \
        for (long each = 0; each < size; each++) sum += (double)x[each * x_apart] * y[each * y_apart]; \
        *result = (number)sum; \
        return 0; \
    }
PRODUCTS(S, float, FLOAT)
PRODUCTS(D, double, DOUBLE)

DOES_NOTHING(cublasCgemm_v2)
DOES_NOTHING(cublasZgemm_v2)
DOES_NOTHING(cublasHgemm)
DOES_NOTHING(cublasSgemmEx)
DOES_NOTHING(cublasGemmBatchedEx)
DOES_NOTHING(cublasSgeam)
DOES_NOTHING(cublasDgeam)
DOES_NOTHING(cublasStrsm_v2)
DOES_NOTHING(cublasDtrsm_v2)
DOES_NOTHING(cublasStrsmBatched)
DOES_NOTHING(cublasDtrsmBatched)
