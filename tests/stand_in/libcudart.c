// A stand-in for libcudart.so, CUDA's runtime, upon that of the driver. VERSION is CUDA's, as 12020.
#include <stdlib.h>
#include <string.h>
#include <stdio.h>

enum { OK = 0, MOST_KERNELS = 1 << 18, HOST_TO_DEVICE = 1 };

typedef unsigned int u32;
typedef unsigned long long address;
typedef void *handle;
struct size { u32 x, y, z; };

// of the driver's stand-in
extern int cuDeviceGetCount(int *), cuDeviceGetAttribute(int *, int, int), cuDeviceGetName(char *, int, int);
extern int cuDeviceTotalMem_v2(size_t *, int), cuDriverGetVersion(int *), cuDeviceGetPCIBusId(char *, int, int);
extern int cuMemAlloc_v2(address *, size_t), cuMemFree_v2(address), cuMemGetInfo_v2(size_t *, size_t *);
extern int cuGetErrorName(int, const char **), cuGetErrorString(int, const char **);
extern int cuDevicePrimaryCtxRetain(handle *, int), cuCtxSetCurrent(handle), cuCtxGetCurrent(handle *), cuCtxGetDevice(int *);
struct launch { struct size grid, block; u32 shared; };
extern int stand_in_launch(handle kernel, const struct launch *, void **), stand_in_state(void), stand_in_target(handle kernel);
extern void stand_in_stop(const char *what, const char *why);
extern handle stand_in_kernel(handle module, const char *name), stand_in_module(const void *code);

static __thread struct { struct size grid, block; size_t shared; handle stream; } configured;

// Kernels, by the address of the function that launches them: a table with open places.
static struct { const void *function; handle kernel; } kernels[MOST_KERNELS];

static size_t place(const void *function) {
    size_t at = ((size_t)function >> 4) % MOST_KERNELS;
    while (kernels[at].function && kernels[at].function != function) at = (at + 1) % MOST_KERNELS;
    return at;
}

// What a compiled program calls when it is loaded, and for `kernel<<<…>>>(…)`.

handle *__cudaRegisterFatBinary(void *code) {
    handle *made = malloc(sizeof *made);
    *made = stand_in_module(code);
    return made;
}

void __cudaRegisterFatBinaryEnd(handle *code) {}
void __cudaUnregisterFatBinary(handle *code) {}
void __cudaRegisterVar(handle *code, char *host, char *device, const char *name, int is_extern, size_t size, int is_constant, int global) {}

void __cudaRegisterFunction(
    handle *code, const void *function, char *device, const char *name, int limit, void *a, void *b, void *c, void *d, int *size
) {
    size_t at = place(function);
    kernels[at].function = function;
    kernels[at].kernel = stand_in_kernel(*code, name);
}

u32 __cudaPushCallConfiguration(struct size grid, struct size block, size_t shared, handle stream) {
    configured.grid = grid;
    configured.block = block;
    configured.shared = shared;
    configured.stream = stream;
    return OK;
}

int __cudaPopCallConfiguration(struct size *grid, struct size *block, size_t *shared, handle *stream) {
    *grid = configured.grid;
    *block = configured.block;
    *shared = configured.shared;
    *stream = configured.stream;
    return OK;
}

int cudaLaunchKernel(const void *function, struct size grid, struct size block, void **arguments, size_t shared, handle stream) {
    return stand_in_launch(kernels[place(function)].kernel, &(struct launch){grid, block, (u32)shared}, arguments);
}

int cudaLaunchCooperativeKernel(const void *function, struct size grid, struct size block, void **arguments, size_t shared, handle stream) {
    stand_in_stop("a kernel", "its blocks wait for each other");
    return cudaLaunchKernel(function, grid, block, arguments, shared, stream);
}

// The driver's kernel.
int cudaGetFuncBySymbol(handle *function, const void *symbol) {
    *function = kernels[place(symbol)].kernel;
    return OK;
}

// `config` begins with the grid, the block and the shared memory.
int cudaLaunchKernelExC(const struct launch *config, const void *function, void **arguments) {
    return stand_in_launch(kernels[place(function)].kernel, config, arguments);
}

// Devices.

int cudaSetDevice(int device) {
    handle context;
    int code = cuDevicePrimaryCtxRetain(&context, device);
    return code ? code : cuCtxSetCurrent(context);
}

int cudaGetDevice(int *device) { return cuCtxGetDevice(device); }
int cudaGetDeviceCount(int *count) { return cuDeviceGetCount(count); }
int cudaSetDeviceFlags(u32 flags) { return OK; }
int cudaDeviceGetAttribute(int *value, int attribute, int device) { return cuDeviceGetAttribute(value, attribute, device); }
int cudaDeviceGetPCIBusId(char *text, int length, int device) { return cuDeviceGetPCIBusId(text, length, device); }
int cudaDeviceCanAccessPeer(int *can, int device, int peer) { *can = 0; return OK; }
int cudaDeviceGetStreamPriorityRange(int *least, int *greatest) { *least = 0; *greatest = -5; return OK; }
int cudaDeviceSynchronize(void) { return stand_in_state(); }
int cudaDeviceSetLimit(int limit, size_t value) { return OK; }
int cudaDeviceReset(void) { return OK; }
int cudaRuntimeGetVersion(int *version) { *version = VERSION; return OK; }
int cudaDriverGetVersion(int *version) { return cuDriverGetVersion(version); }

// The structure is written as CUDA 10.0 has it, whose size no later one falls below.
int cudaGetDeviceProperties(char *found, int device) {
    enum { NAME = 0, TOTAL = 288, SHARED = 296, WARP = 308, THREADS = 320, MAJOR = 360, MINOR = 364, PROCESSORS = 388 };
    // of one processor: where there are none, TensorFlow launches no kernel
    enum { MOST_THREADS = VERSION < 11000 ? 620 : 624 };
    memset(found, 0, 632);
    cuDeviceGetName(found + NAME, 256, device);
    cuDeviceTotalMem_v2((size_t *)(found + TOTAL), device);
    *(size_t *)(found + SHARED) = 49152;
    cuDeviceGetAttribute((int *)(found + WARP), 10, device);
    cuDeviceGetAttribute((int *)(found + THREADS), 1, device);
    cuDeviceGetAttribute((int *)(found + MAJOR), 75, device);
    cuDeviceGetAttribute((int *)(found + MINOR), 76, device);
    cuDeviceGetAttribute((int *)(found + PROCESSORS), 16, device);
    cuDeviceGetAttribute((int *)(found + MOST_THREADS), 39, device);
    return OK;
}

int cudaGetDeviceProperties_v2(char *found, int device) { return cudaGetDeviceProperties(found, device); }

// Errors: the driver's numbers are the runtime's.

const char *cudaGetErrorString(int code) { const char *text; return cuGetErrorString(code, &text) ? "unknown error" : text; }
const char *cudaGetErrorName(int code) { const char *name; return cuGetErrorName(code, &name) ? "cudaErrorUnknown" : name; }
int cudaGetLastError(void) { return stand_in_state(); }
int cudaPeekAtLastError(void) { return stand_in_state(); }

// Memory.

int cudaMalloc(address *memory, size_t size) { return cuMemAlloc_v2(memory, size); }
int cudaFree(address memory) { return cuMemFree_v2(memory); }
int cudaMemGetInfo(size_t *available, size_t *total) { return cuMemGetInfo_v2(available, total); }
int cudaMallocHost(void **memory, size_t size) { return posix_memalign(memory, 4096, size) ? 2 : OK; }
int cudaHostAlloc(void **memory, size_t size, u32 flags) { return cudaMallocHost(memory, size); }
int cudaFreeHost(void *memory) { free(memory); return OK; }
int cudaHostRegister(void *memory, size_t size, u32 flags) { return OK; }
int cudaHostUnregister(void *memory) { return OK; }
int cudaMemcpy(void *to, const void *from, size_t size, int kind) { memmove(to, from, size); return stand_in_state(); }
int cudaMemcpyAsync(void *to, const void *from, size_t size, int kind, handle stream) { return cudaMemcpy(to, from, size, kind); }
int cudaMemset(void *memory, int value, size_t size) { memset(memory, value, size); return stand_in_state(); }
int cudaMemsetAsync(void *memory, int value, size_t size, handle stream) { return cudaMemset(memory, value, size); }
int cudaMemcpyToSymbol(const void *symbol, const void *from, size_t size, size_t offset, int kind) {
    stand_in_stop("a variable", "copies to it are not kept");
    return OK;
}

int cudaGetSymbolAddress(void **memory, const void *symbol) { *memory = (void *)symbol; return OK; }
int cudaPointerGetAttributes(void *found, const void *memory) { memset(found, 0, 24); *(int *)found = 2; return OK; }

// Streams and events: what is asked has been done.

int cudaStreamCreate(handle *stream) { *stream = malloc(64); return OK; }
int cudaStreamCreateWithFlags(handle *stream, u32 flags) { return cudaStreamCreate(stream); }
int cudaStreamCreateWithPriority(handle *stream, u32 flags, int priority) { return cudaStreamCreate(stream); }
int cudaStreamDestroy(handle stream) { free(stream); return OK; }
int cudaStreamSynchronize(handle stream) { return stand_in_state(); }
int cudaStreamQuery(handle stream) { return stand_in_state(); }
int cudaStreamWaitEvent(handle stream, handle event, u32 flags) { return stand_in_state(); }
int cudaStreamIsCapturing(handle stream, int *is) { *is = 0; return OK; }
int cudaStreamAddCallback(handle stream, void (*call)(handle, int, void *), void *data, u32 flags) { call(stream, OK, data); return OK; }
int cudaLaunchHostFunc(handle stream, void (*call)(void *), void *data) { call(data); return OK; }
int cudaEventCreate(handle *event) { *event = malloc(64); return OK; }
int cudaEventCreateWithFlags(handle *event, u32 flags) { return cudaEventCreate(event); }
int cudaEventDestroy(handle event) { free(event); return OK; }
int cudaEventRecord(handle event, handle stream) { return stand_in_state(); }
int cudaEventQuery(handle event) { return stand_in_state(); }
int cudaEventSynchronize(handle event) { return stand_in_state(); }
int cudaEventElapsedTime(float *milliseconds, handle start, handle end) { *milliseconds = 0.01f; return OK; }

// Functions and how many of their blocks fit.

int cudaFuncGetAttributes(char *found, const void *function) {
    enum { THREADS = 24, TARGET = 32, BINARY = 36 };
    memset(found, 0, 56);
    *(int *)(found + THREADS) = 1024;
    *(int *)(found + TARGET) = *(int *)(found + BINARY) = stand_in_target(kernels[place(function)].kernel);
    return OK;
}

int cudaFuncSetAttribute(const void *function, int attribute, int value) { return OK; }
int cudaFuncSetCacheConfig(const void *function, int config) { return OK; }
int cudaFuncSetSharedMemConfig(const void *function, int config) { return OK; }
int cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, const void *function, int threads, size_t shared) { *blocks = 1; return OK; }

int cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, const void *function, int threads, size_t shared, u32 flags) {
    *blocks = 1;
    return OK;
}
