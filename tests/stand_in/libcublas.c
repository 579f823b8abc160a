// A stand-in for libcublas.so: the functions that TensorFlow calls, of which none computes. VERSION is cuBLAS's, as 120205.
#include "nothing.h"

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
DOES_NOTHING(cublasSgemm_v2)
DOES_NOTHING(cublasDgemm_v2)
DOES_NOTHING(cublasCgemm_v2)
DOES_NOTHING(cublasZgemm_v2)
DOES_NOTHING(cublasHgemm)
DOES_NOTHING(cublasSgemmEx)
DOES_NOTHING(cublasGemmEx)
DOES_NOTHING(cublasGemmBatchedEx)
DOES_NOTHING(cublasGemmStridedBatchedEx)
DOES_NOTHING(cublasSgemmBatched)
DOES_NOTHING(cublasDgemmBatched)
DOES_NOTHING(cublasSgemmStridedBatched)
DOES_NOTHING(cublasDgemmStridedBatched)
DOES_NOTHING(cublasSgeam)
DOES_NOTHING(cublasDgeam)
DOES_NOTHING(cublasStrsm_v2)
DOES_NOTHING(cublasDtrsm_v2)
DOES_NOTHING(cublasStrsmBatched)
DOES_NOTHING(cublasDtrsmBatched)

// vectors
DOES_NOTHING(cublasSgemv_v2)
DOES_NOTHING(cublasDgemv_v2)
DOES_NOTHING(cublasSaxpy_v2)
DOES_NOTHING(cublasDaxpy_v2)
DOES_NOTHING(cublasScopy_v2)
DOES_NOTHING(cublasDcopy_v2)
DOES_NOTHING(cublasSscal_v2)
DOES_NOTHING(cublasDscal_v2)
DOES_NOTHING(cublasSdot_v2)
DOES_NOTHING(cublasDdot_v2)
