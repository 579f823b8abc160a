// A stand-in for libcublas.so: the functions that TensorFlow calls. Products of small matrices (product.h), and operations on
// vectors of float and double, are computed on the host. The others aren't. VERSION is cuBLAS's, as 120205.
#include "product.h"

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
    const struct matrix result = {c, c_type, 0, c_columns, c_matrices};
    return multiply(
        "cublasGemm", rows, columns, inner, alpha, (struct matrix){a, a_type, a_is_transposed, a_columns, a_matrices},
        (struct matrix){b, b_type, b_is_transposed, b_columns, b_matrices}, beta, result, result, scale_of(compute), count, NULL, 0
    );
}

int cublasGemmBatchedEx(
    void *handle, int a_is_transposed, int b_is_transposed, int rows, int columns, int inner, const void *alpha,
    const void *const *a, int a_type, int a_columns, const void *const *b, int b_type, int b_columns,
    const void *beta, void *const *c, int c_type, int c_columns, int count, int compute, int algorithm
) {
    for (int each = 0; each < count; each++)
        cublasGemmStridedBatchedEx(
            handle, a_is_transposed, b_is_transposed, rows, columns, inner, alpha, a[each], a_type, a_columns, 0, b[each], b_type, b_columns, 0,
            beta, c[each], c_type, c_columns, 0, 1, compute, algorithm
        );
    return 0;
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
            b, type, b_columns, b_matrices, beta, c, type, c_columns, c_matrices, count, type, 0 \
        ); \
    } \
    int cublas##letter##gemm_v2( \
        void *handle, int a_is_transposed, int b_is_transposed, int rows, int columns, int inner, const number *alpha, \
        const number *a, int a_columns, const number *b, int b_columns, const number *beta, number *c, int c_columns \
    ) { \
        return cublasGemmEx( \
            handle, a_is_transposed, b_is_transposed, rows, columns, inner, alpha, a, type, a_columns, b, type, b_columns, \
            beta, c, type, c_columns, type, 0 \
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

int cublasSgemmEx(
    void *handle, int a_is_transposed, int b_is_transposed, int rows, int columns, int inner, const float *alpha,
    const void *a, int a_type, int a_columns, const void *b, int b_type, int b_columns, const float *beta, void *c, int c_type, int c_columns
) {
    return cublasGemmEx(
        handle, a_is_transposed, b_is_transposed, rows, columns, inner, alpha, a, a_type, a_columns, b, b_type, b_columns,
        beta, c, c_type, c_columns, FLOAT, 0
    );
}

NOT_COMPUTED(cublasCgemm_v2)
NOT_COMPUTED(cublasZgemm_v2)
NOT_COMPUTED(cublasHgemm)
NOT_COMPUTED(cublasSgeam)
NOT_COMPUTED(cublasDgeam)
NOT_COMPUTED(cublasStrsm_v2)
NOT_COMPUTED(cublasDtrsm_v2)
NOT_COMPUTED(cublasStrsmBatched)
NOT_COMPUTED(cublasDtrsmBatched)
