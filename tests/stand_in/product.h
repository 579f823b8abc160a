// Products of matrices on the host, for the stand-ins of cuBLAS: of float16, bfloat16, float32 and float64.
#ifndef PRODUCT_H
#define PRODUCT_H
#include "nothing.h"
#include <string.h>

// The most multiplications of a product that is computed: on the host, a larger one would take most of a test's time.
enum { MOST_MULTIPLICATIONS = 1 << 22 };

enum type { FLOAT = 0, DOUBLE = 1, HALF = 2, BRAIN = 14 };  // by cudaDataType

struct matrix { const void *values; enum type type; int is_transposed; long columns_apart, matrices_apart; };

static double get(const void *values, enum type type, long at) {
    unsigned word = 0;
    float number;
    switch (type) {
        case DOUBLE: return ((const double *)values)[at];
        case HALF: return ((const _Float16 *)values)[at];
        case BRAIN: word = (unsigned)((const unsigned short *)values)[at] << 16; memcpy(&number, &word, sizeof number); return number;
        default: return ((const float *)values)[at];
    }
}

static void set(void *values, enum type type, long at, double value) {
    float number = (float)value;
    unsigned word;
    switch (type) {
        case DOUBLE: ((double *)values)[at] = value; break;
        case HALF: ((_Float16 *)values)[at] = (_Float16)value; break;
        case BRAIN: memcpy(&word, &number, sizeof word); ((unsigned short *)values)[at] = (unsigned short)((word + 0x7fff + (word >> 16 & 1)) >> 16); break;
        default: ((float *)values)[at] = number;
    }
}

static double element(const struct matrix *of, long number, long row, long column) {
    const long at = of->is_transposed ? row * of->columns_apart + column : column * of->columns_apart + row;
    return get(of->values, of->type, number * of->matrices_apart + at);
}

static int is_known(enum type type) { return type == FLOAT || type == DOUBLE || type == HALF || type == BRAIN; }

// The type of alpha and beta, by that of the computation: a cudaDataType up to CUDA 10, then a cublasComputeType.
static enum type scale_of(int compute) {
    return compute == DOUBLE || compute == 70 || compute == 71 ? DOUBLE : compute == HALF || compute == 64 || compute == 65 ? HALF : FLOAT;
}

// d = alpha a b + beta c, where d has `rows` and `columns`; then, if there is a bias, d + bias, one for each row, and, if it
// `is_rectified`, none of it below 0.
static int multiply(
    const char *name, long rows, long columns, long inner, const void *alpha, struct matrix a, struct matrix b, const void *beta,
    struct matrix c, struct matrix d, enum type scale, long count, const void *bias, int is_rectified
) {
    if (!is_known(a.type) || !is_known(b.type) || !is_known(c.type) || !is_known(d.type)) return stand_in_stop(name, "a type isn't implemented"), 0;
    if (rows * columns * inner * count > MOST_MULTIPLICATIONS) return stand_in_stop(name, "it is too large"), 0;
    const double factor = get(alpha, scale, 0), kept = get(beta, scale, 0);
    for (long number = 0; number < count; number++)
        for (long column = 0; column < columns; column++)
            for (long row = 0; row < rows; row++) {
                double sum = 0;
                for (long middle = 0; middle < inner; middle++) sum += element(&a, number, row, middle) * element(&b, number, middle, column);
                // where nothing is kept, c may be no number
                sum = factor * sum + (kept ? kept * element(&c, number, row, column) : 0);
                if (bias) sum += get(bias, d.type, row);
                set((void *)d.values, d.type, number * d.matrices_apart + column * d.columns_apart + row, is_rectified && sum < 0 ? 0 : sum);
            }
    return 0;
}
#endif
