// A stand-in for libcudnn.so: it has one algorithm for every convolution, which needs no memory. It computes nothing.
// VERSION is cuDNN's, as 8904 or 90300.
#include "nothing.h"
#include <string.h>

typedef void *handle;

// As cudnnConvolutionFwdAlgoPerf_t; those of the other directions are the same.
struct algorithm { int algorithm, status; float milliseconds; size_t workspace; int determinism, math, reserved[3]; };

MAKES(cudnnCreate)
FREES(cudnnDestroy)
DOES_NOTHING(cudnnSetStream)
int cudnnGetStream(handle of, handle *stream) { *stream = NULL; return 0; }
size_t cudnnGetVersion(void) { return VERSION; }
size_t cudnnGetCudartVersion(void) { return 12020; }
const char *cudnnGetErrorString(int status) { return status ? "CUDNN_STATUS_NOT_SUPPORTED" : "CUDNN_STATUS_SUCCESS"; }

int cudnnGetProperty(int kind, int *value) {
    int thousand = VERSION >= 90000 ? 10000 : 1000;
    *value = kind == 0 ? VERSION / thousand : kind == 1 ? VERSION % thousand / 100 : VERSION % 100;
    return 0;
}

DOES_NOTHING(cudnnOpsInferVersionCheck)
DOES_NOTHING(cudnnOpsTrainVersionCheck)
DOES_NOTHING(cudnnCnnInferVersionCheck)
DOES_NOTHING(cudnnCnnTrainVersionCheck)
DOES_NOTHING(cudnnAdvInferVersionCheck)
DOES_NOTHING(cudnnAdvTrainVersionCheck)
DOES_NOTHING(cudnnGraphVersionCheck)
DOES_NOTHING(cudnnOpsVersionCheck)
DOES_NOTHING(cudnnCnnVersionCheck)
DOES_NOTHING(cudnnAdvVersionCheck)

// Descriptors.
MAKES(cudnnCreateTensorDescriptor)
FREES(cudnnDestroyTensorDescriptor)
DOES_NOTHING(cudnnSetTensor4dDescriptor)
DOES_NOTHING(cudnnSetTensor4dDescriptorEx)
DOES_NOTHING(cudnnSetTensorNdDescriptor)
DOES_NOTHING(cudnnSetTensorNdDescriptorEx)
MAKES(cudnnCreateFilterDescriptor)
FREES(cudnnDestroyFilterDescriptor)
DOES_NOTHING(cudnnSetFilter4dDescriptor)
DOES_NOTHING(cudnnSetFilterNdDescriptor)
MAKES(cudnnCreateConvolutionDescriptor)
FREES(cudnnDestroyConvolutionDescriptor)
DOES_NOTHING(cudnnSetConvolution2dDescriptor)
DOES_NOTHING(cudnnSetConvolutionNdDescriptor)
DOES_NOTHING(cudnnSetConvolutionGroupCount)
DOES_NOTHING(cudnnSetConvolutionMathType)
DOES_NOTHING(cudnnSetConvolutionReorderType)
int cudnnGetConvolutionMathType(handle convolution, int *type) { *type = 0; return 0; }
MAKES(cudnnCreateActivationDescriptor)
FREES(cudnnDestroyActivationDescriptor)
DOES_NOTHING(cudnnSetActivationDescriptor)
MAKES(cudnnCreatePoolingDescriptor)
FREES(cudnnDestroyPoolingDescriptor)
DOES_NOTHING(cudnnSetPoolingNdDescriptor)
MAKES(cudnnCreateDropoutDescriptor)
FREES(cudnnDestroyDropoutDescriptor)
DOES_NOTHING(cudnnSetDropoutDescriptor)

// Convolutions: which algorithms there are, and what memory they need.

static int first(int wanted, int *count, struct algorithm *found) {
    if (wanted < 1) return *count = 0;
    memset(found, 0, sizeof *found);
    found->milliseconds = 0.01f;
    found->algorithm = 1;  // 0 is not deterministic for filters, and TensorFlow takes 1 in all three directions
    found->determinism = 1;
    return !(*count = 1);
}

static int most(int *count) { *count = 1; return 0; }

int cudnnGetConvolutionForwardAlgorithmMaxCount(handle h, int *count) { return most(count); }
int cudnnGetConvolutionBackwardDataAlgorithmMaxCount(handle h, int *count) { return most(count); }
int cudnnGetConvolutionBackwardFilterAlgorithmMaxCount(handle h, int *count) { return most(count); }

#define ALGORITHMS(name) \
    int name(handle h, handle x, handle y, handle convolution, handle z, int wanted, int *count, struct algorithm *found) { \
        return first(wanted, count, found); \
    }
ALGORITHMS(cudnnGetConvolutionForwardAlgorithm_v7)
ALGORITHMS(cudnnGetConvolutionBackwardDataAlgorithm_v7)
ALGORITHMS(cudnnGetConvolutionBackwardFilterAlgorithm_v7)
ALGORITHMS(cudnnFindConvolutionForwardAlgorithm)
ALGORITHMS(cudnnFindConvolutionBackwardDataAlgorithm)
ALGORITHMS(cudnnFindConvolutionBackwardFilterAlgorithm)

#define ALGORITHM(name) \
    int name(handle h, handle x, handle y, handle convolution, handle z, int preference, size_t limit, int *algorithm) { \
        *algorithm = 1; \
        return 0; \
    }
ALGORITHM(cudnnGetConvolutionForwardAlgorithm)
ALGORITHM(cudnnGetConvolutionBackwardDataAlgorithm)
ALGORITHM(cudnnGetConvolutionBackwardFilterAlgorithm)

#define WORKSPACE(name) int name(handle h, handle x, handle y, handle convolution, handle z, int algorithm, size_t *bytes) { return zero(bytes); }
WORKSPACE(cudnnGetConvolutionForwardWorkspaceSize)
WORKSPACE(cudnnGetConvolutionBackwardDataWorkspaceSize)
WORKSPACE(cudnnGetConvolutionBackwardFilterWorkspaceSize)

// What computes.
NOT_COMPUTED(cudnnConvolutionForward)
NOT_COMPUTED(cudnnConvolutionBackwardData)
NOT_COMPUTED(cudnnConvolutionBackwardFilter)
NOT_COMPUTED(cudnnConvolutionBackwardBias)
NOT_COMPUTED(cudnnConvolutionBiasActivationForward)
NOT_COMPUTED(cudnnAddTensor)
NOT_COMPUTED(cudnnTransformTensor)
NOT_COMPUTED(cudnnActivationForward)
NOT_COMPUTED(cudnnActivationBackward)
NOT_COMPUTED(cudnnPoolingForward)
NOT_COMPUTED(cudnnPoolingBackward)
NOT_COMPUTED(cudnnSoftmaxForward)
NOT_COMPUTED(cudnnSoftmaxBackward)

// The backend, from 8 on: descriptors of which each attribute that is read is 0, or empty. An engine configuration is
// the heuristics' one result.

enum { INT64 = 3, HEURISTICS_RESULTS = 202, CONFIGURATION_ENGINE = 300, PLAN_CONFIGURATION = 401 };

int cudnnBackendCreateDescriptor(int type, handle *descriptor) { *descriptor = calloc(1, 64); return 0; }
FREES(cudnnBackendDestroyDescriptor)
DOES_NOTHING(cudnnBackendInitialize)
DOES_NOTHING(cudnnBackendFinalize)
DOES_NOTHING(cudnnBackendSetAttribute)
NOT_COMPUTED(cudnnBackendExecute)

int cudnnBackendGetAttribute(handle descriptor, int name, int type, long long wanted, long long *count, void *values) {
    long long has = type == INT64 || name == HEURISTICS_RESULTS || name == CONFIGURATION_ENGINE || name == PLAN_CONFIGURATION;
    if (count) *count = has;
    if (type == INT64 && wanted > 0 && values) *(long long *)values = 0;
    return 0;
}
