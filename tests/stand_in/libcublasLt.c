// A stand-in for libcublasLt.so: it has one algorithm for everything, which computes nothing.
#include "nothing.h"
#include <string.h>

struct result { unsigned long long algorithm[8]; size_t workspace; int state; float waves; int reserved[4]; };

MAKES(cublasLtCreate)
FREES(cublasLtDestroy)
MAKES(cublasLtMatmulDescCreate)
FREES(cublasLtMatmulDescDestroy)
MAKES(cublasLtMatrixLayoutCreate)
FREES(cublasLtMatrixLayoutDestroy)
MAKES(cublasLtMatmulPreferenceCreate)
FREES(cublasLtMatmulPreferenceDestroy)
DOES_NOTHING(cublasLtMatmulDescSetAttribute)
DOES_NOTHING(cublasLtMatrixLayoutSetAttribute)
DOES_NOTHING(cublasLtMatmulPreferenceSetAttribute)
DOES_NOTHING(cublasLtMatmul)
size_t cublasLtGetVersion(void) { return VERSION; }
const char *cublasLtGetStatusName(int status) { return "CUBLAS_STATUS_SUCCESS"; }

static int attribute(void *value, size_t size, size_t *written) {
    if (value) memset(value, 0, size);
    if (written) *written = size;
    return 0;
}

int cublasLtMatmulDescGetAttribute(void *of, int name, void *value, size_t size, size_t *written) { return attribute(value, size, written); }
int cublasLtMatrixLayoutGetAttribute(void *of, int name, void *value, size_t size, size_t *written) { return attribute(value, size, written); }

int cublasLtMatmulAlgoGetHeuristic(
    void *handle, void *operation, void *a, void *b, void *c, void *d, void *preference, int wanted, struct result *found, int *count
) {
    memset(found, 0, sizeof *found);
    *count = 1;
    return 0;
}
