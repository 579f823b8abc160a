// A stand-in for libcuda.so.1, the driver: device memory is the host's, streams and events are done at once, and kernels
// do nothing. Its cards are those in cards.h.
//
//   STAND_IN_CUINIT=803             the error with which it starts: 100 no device, 803 library and module differ
//   STAND_IN_LAUNCH_FAILS=719:500   the error of the 500th kernel and of all that comes after it: 719, 700
//   STAND_IN_LOG=1                  every kernel, module and allocation goes to standard error
#include "cards.h"
#include <dlfcn.h>
#include <stdint.h>
#include <strings.h>
#include <sys/mman.h>

enum { OK = 0, OUT_OF_MEMORY = 2, NO_DEVICE = 100, INVALID_DEVICE = 101, NOT_FOUND = 500, NOT_SUPPORTED = 801 };

typedef unsigned int u32;
typedef unsigned long long address;
typedef void *handle;

enum { PAGE = 4096, SYMBOL_BYTES = 1 << 26 };

static struct context { int device; } contexts[MOST_CARDS];
static size_t held[MOST_CARDS];  // bytes, by device
static __thread struct context *stack[64];
static __thread int depth;
static int error;  // once a kernel has failed, everything fails
static long launches;

static int logs(void) {
    static int told = -1;
    if (told < 0) told = (int)number("STAND_IN_LOG", 0);
    return told;
}

static struct context *current(void) { return stack[depth] ? stack[depth] : contexts; }
static struct card *card(int device) { return &cards[device < card_count ? device : 0]; }
static int give(handle *made) { *made = malloc(64); return error; }
static int drop(handle gone) { free(gone); return error; }

// Of the stand-ins alone: what traces kernels (CUPTI), and what launches them (cudart).
void (*stand_in_traced)(const char *kernel, int device);

int stand_in_launch(const char *name) {
    int code = 0;
    long at = 0;
    if (logs()) fprintf(stderr, "stand-in: kernel %.160s\n", name);
    if (stand_in_traced) stand_in_traced(name, current()->device);
    launches++;
    if (sscanf(setting("STAND_IN_LAUNCH_FAILS", ""), "%d:%ld", &code, &at) == 2 && launches >= at) error = code;
    return error;
}

int stand_in_state(void) { return error; }

// Start and devices.

int cuInit(u32 flags) {
    int fault = (int)number("STAND_IN_CUINIT", OK);
    for (int device = 0; device < MOST_CARDS; device++) contexts[device].device = device;
    return fault ? fault : card_count ? OK : NO_DEVICE;
}

int cuDriverGetVersion(int *version) { *version = (int)number("STAND_IN_CUDA", 12040); return OK; }
int cuDeviceGetCount(int *count) { *count = card_count; return OK; }
int cuDeviceGet(int *device, int ordinal) { *device = ordinal; return ordinal < card_count ? OK : INVALID_DEVICE; }
int cuDeviceGetName(char *name, int length, int device) { snprintf(name, (size_t)length, "%s", card(device)->name); return OK; }
int cuDeviceTotalMem_v2(size_t *total, int device) { *total = card(device)->memory; return OK; }

int cuDeviceGetUuid(unsigned char *uuid, int device) {  // as NVML's stand-in writes it
    unsigned char own[16] = {0, 0, 0, 0, 0x57, 0xa4, 0xd0};
    own[3] = own[15] = (unsigned char)card(device)->index;
    memcpy(uuid, own, sizeof own);
    return OK;
}

int cuDeviceGetUuid_v2(unsigned char *uuid, int device) { return cuDeviceGetUuid(uuid, device); }

int cuDeviceGetPCIBusId(char *text, int length, int device) {
    snprintf(text, (size_t)length, "0000:%02x:00.0", card(device)->index + 1);
    return OK;
}

int cuDeviceGetByPCIBusId(int *device, const char *text) {
    for (*device = 0; *device < card_count; ++*device) {
        char own[32];
        cuDeviceGetPCIBusId(own, sizeof own, *device);
        if (strcasecmp(own, text) == 0) return OK;
    }
    return INVALID_DEVICE;
}

int cuDeviceComputeCapability(int *major, int *minor, int device) {
    *major = card(device)->major;
    *minor = card(device)->minor;
    return OK;
}

int cuDeviceGetAttribute(int *value, int attribute, int device) {
    switch (attribute) {  // by CUdevice_attribute
        case 1: *value = 1024; break;              // threads a block
        case 2: case 3: *value = 1024; break;      // block's width, height
        case 4: *value = 64; break;                // block's depth
        case 5: *value = 2147483647; break;        // grid's width
        case 6: case 7: *value = 65535; break;     // grid's height, depth
        case 8: *value = 49152; break;             // shared memory a block
        case 9: *value = 65536; break;             // constant memory
        case 10: *value = 32; break;               // threads a warp
        case 12: case 82: *value = 65536; break;   // registers a block, a multiprocessor
        case 13: *value = 1590000; break;          // clock in kHz
        case 16: *value = 40; break;               // multiprocessors
        case 17: *value = 0; break;                // no limit on how long a kernel runs
        case 31: case 41: *value = 1; break;       // kernels at the same time, one address space
        case 33: *value = card(device)->index + 1; break;  // PCI bus
        case 36: *value = 1215000; break;          // memory's clock in kHz
        case 37: *value = 256; break;              // memory's bus in bits
        case 38: *value = 4 << 20; break;          // cache
        case 39: *value = 2048; break;             // threads a multiprocessor
        case 40: *value = 2; break;                // copies at the same time
        case 75: *value = card(device)->major; break;
        case 76: *value = card(device)->minor; break;
        case 81: *value = 65536; break;            // shared memory a multiprocessor
        case 97: *value = 65536; break;            // shared memory a block that asks for it
        case 106: *value = 16; break;              // blocks a multiprocessor
        default: *value = 0;
    }
    return OK;
}

int cuDeviceCanAccessPeer(int *can, int device, int peer) { *can = 0; return OK; }
int cuDeviceGetP2PAttribute(int *value, int attribute, int device, int peer) { *value = 0; return OK; }
int cuDeviceGetDefaultMemPool(handle *pool, int device) { return NOT_SUPPORTED; }
int cuDeviceGetMemPool(handle *pool, int device) { return NOT_SUPPORTED; }

// Contexts: one a device.

int cuDevicePrimaryCtxRetain(struct context **context, int device) { *context = &contexts[device]; return error; }
int cuDevicePrimaryCtxRelease_v2(int device) { return OK; }
int cuDevicePrimaryCtxRelease(int device) { return OK; }
int cuDevicePrimaryCtxReset_v2(int device) { return OK; }
int cuDevicePrimaryCtxSetFlags_v2(int device, u32 flags) { return OK; }
int cuDevicePrimaryCtxSetFlags(int device, u32 flags) { return OK; }
int cuDevicePrimaryCtxGetState(int device, u32 *flags, int *is_active) { *flags = 0; *is_active = 1; return OK; }
int cuCtxCreate_v2(struct context **context, u32 flags, int device) { *context = &contexts[device]; return error; }
int cuCtxDestroy_v2(struct context *context) { return OK; }
int cuCtxSetCurrent(struct context *context) { stack[depth] = context; return OK; }
int cuCtxGetCurrent(struct context **context) { *context = stack[depth]; return OK; }
int cuCtxPushCurrent_v2(struct context *context) { stack[++depth] = context; return OK; }
int cuCtxPopCurrent_v2(struct context **context) { *context = stack[depth]; depth -= depth > 0; return OK; }
int cuCtxGetDevice(int *device) { *device = current()->device; return OK; }
int cuCtxGetApiVersion(struct context *context, u32 *version) { *version = 3020; return OK; }
int cuCtxGetStreamPriorityRange(int *least, int *greatest) { *least = 0; *greatest = -5; return OK; }
int cuCtxGetSharedMemConfig(int *config) { *config = 0; return OK; }
int cuCtxSetSharedMemConfig(int config) { return OK; }
int cuCtxGetLimit(size_t *value, int limit) { *value = 1024; return OK; }
int cuCtxSetLimit(int limit, size_t value) { return OK; }
int cuCtxEnablePeerAccess(struct context *peer, u32 flags) { return OK; }
int cuCtxSynchronize(void) { return error; }

// Memory. An allocation begins with a page of its own that holds its size; no more of it exists than is touched.

static size_t *size_of(address memory) { return (size_t *)(uintptr_t)(memory - PAGE); }

int cuMemAlloc_v2(address *memory, size_t size) {
    int device = current()->device;
    if (error) return error;
    if (held[device] + size + taken() > card(device)->memory) return OUT_OF_MEMORY;
    void *made = mmap(NULL, size + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (made == MAP_FAILED) return OUT_OF_MEMORY;
    *memory = (address)(uintptr_t)made + PAGE;
    *size_of(*memory) = size;
    held[device] += size;
    if (logs()) fprintf(stderr, "stand-in: %zu bytes at %llx on device %d\n", size, *memory, device);
    return OK;
}

int cuMemFree_v2(address memory) {
    if (!memory) return OK;
    size_t size = *size_of(memory);
    held[current()->device] -= size;
    munmap(size_of(memory), size + PAGE);
    return error;
}

int cuMemGetInfo_v2(size_t *available, size_t *total) {
    int device = current()->device;
    *total = card(device)->memory;
    *available = *total - held[device] - taken();
    return error;
}

int cuMemGetAddressRange_v2(address *base, size_t *size, address memory) { *base = memory; *size = *size_of(memory); return OK; }
int cuMemAllocManaged(address *memory, size_t size, u32 flags) { return cuMemAlloc_v2(memory, size); }
int cuMemHostAlloc(handle *memory, size_t size, u32 flags) { return posix_memalign(memory, PAGE, size) ? OUT_OF_MEMORY : error; }
int cuMemAllocHost_v2(handle *memory, size_t size) { return cuMemHostAlloc(memory, size, 0); }
int cuMemFreeHost(handle memory) { return drop(memory); }
int cuMemHostRegister_v2(handle memory, size_t size, u32 flags) { return error; }
int cuMemHostUnregister(handle memory) { return error; }
int cuMemHostGetDevicePointer_v2(address *device, handle host, u32 flags) { *device = (address)(uintptr_t)host; return error; }

static int copy(void *to, const void *from, size_t size) { if (!error) memmove(to, from, size); return error; }
static void *at(address memory) { return (void *)(uintptr_t)memory; }

int cuMemcpyHtoD_v2(address to, const void *from, size_t size) { return copy(at(to), from, size); }
int cuMemcpyDtoH_v2(void *to, address from, size_t size) { return copy(to, at(from), size); }
int cuMemcpyDtoD_v2(address to, address from, size_t size) { return copy(at(to), at(from), size); }
int cuMemcpyHtoDAsync_v2(address to, const void *from, size_t size, handle stream) { return copy(at(to), from, size); }
int cuMemcpyDtoHAsync_v2(void *to, address from, size_t size, handle stream) { return copy(to, at(from), size); }
int cuMemcpyDtoDAsync_v2(address to, address from, size_t size, handle stream) { return copy(at(to), at(from), size); }
int cuMemcpyAsync(address to, address from, size_t size, handle stream) { return copy(at(to), at(from), size); }

int cuMemcpyPeerAsync(address to, handle to_context, address from, handle from_context, size_t size, handle stream) {
    return copy(at(to), at(from), size);
}

int cuMemsetD8_v2(address memory, unsigned char value, size_t count) { memset(at(memory), value, count); return error; }
int cuMemsetD8Async(address memory, unsigned char value, size_t count, handle stream) { return cuMemsetD8_v2(memory, value, count); }

int cuMemsetD32_v2(address memory, u32 value, size_t count) {
    for (size_t each = 0; each < count; each++) ((u32 *)at(memory))[each] = value;
    return error;
}

int cuMemsetD32Async(address memory, u32 value, size_t count, handle stream) { return cuMemsetD32_v2(memory, value, count); }

int cuPointerGetAttribute(void *value, int attribute, address memory) {
    switch (attribute) {  // by CUpointer_attribute
        case 1: *(struct context **)value = current(); return OK;
        case 2: *(u32 *)value = 2; return OK;  // on the device
        case 8: *(u32 *)value = 0; return OK;  // not managed
        case 9: *(int *)value = current()->device; return OK;
        default: return 1;
    }
}

// Streams and events: what is asked has been done.

int cuStreamCreate(handle *stream, u32 flags) { return give(stream); }
int cuStreamCreateWithPriority(handle *stream, u32 flags, int priority) { return give(stream); }
int cuStreamDestroy_v2(handle stream) { return drop(stream); }
int cuStreamQuery(handle stream) { return error; }
int cuStreamSynchronize(handle stream) { return error; }
int cuStreamWaitEvent(handle stream, handle event, u32 flags) { return error; }
int cuStreamGetPriority(handle stream, int *priority) { *priority = 0; return error; }
int cuStreamGetCtx(handle stream, struct context **context) { *context = current(); return error; }
int cuStreamIsCapturing(handle stream, int *is) { *is = 0; return error; }
int cuStreamAddCallback(handle stream, void (*call)(handle, int, void *), void *data, u32 flags) { call(stream, error, data); return error; }
int cuLaunchHostFunc(handle stream, void (*call)(void *), void *data) { call(data); return error; }
int cuEventCreate(handle *event, u32 flags) { return give(event); }
int cuEventDestroy_v2(handle event) { return drop(event); }
int cuEventRecord(handle event, handle stream) { return error; }
int cuEventQuery(handle event) { return error; }
int cuEventSynchronize(handle event) { return error; }
int cuEventElapsedTime(float *milliseconds, handle start, handle end) { *milliseconds = 0.01f; return error; }
int cuEventElapsedTime_v2(float *milliseconds, handle start, handle end) { return cuEventElapsedTime(milliseconds, start, end); }

// Modules and kernels: any code is taken, and a kernel is its name.

int cuModuleLoadData(handle *module, const void *image) { return give(module); }
int cuModuleLoadDataEx(handle *module, const void *image, u32 count, void *options, void *values) { return give(module); }
int cuModuleLoadFatBinary(handle *module, const void *image) { return give(module); }
int cuModuleUnload(handle module) { return drop(module); }
int cuModuleGetFunction(char **function, handle module, const char *name) { *function = strdup(name); return error; }

int cuModuleGetGlobal_v2(address *memory, size_t *size, handle module, const char *name) {
    static address symbols;  // every symbol is here, as large as any
    if (!symbols && cuMemAlloc_v2(&symbols, SYMBOL_BYTES)) return OUT_OF_MEMORY;
    if (memory) *memory = symbols;
    if (size) *size = SYMBOL_BYTES;
    return error;
}

int cuFuncGetAttribute(int *value, int attribute, char *function) { *value = attribute ? 0 : 1024; return error; }
int cuFuncSetAttribute(char *function, int attribute, int value) { return error; }
int cuFuncSetCacheConfig(char *function, int config) { return error; }
int cuFuncGetModule(handle *module, char *function) { return give(module); }
int cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, char *function, int threads, size_t shared) { *blocks = 1; return error; }

int cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, char *function, int threads, size_t shared, u32 flags) {
    *blocks = 1;
    return error;
}

int cuOccupancyMaxPotentialBlockSize(int *blocks, int *threads, char *function, handle of, size_t shared, int limit) {
    *blocks = 40;
    *threads = 256;
    return error;
}

int cuLaunchKernel(
    char *function, u32 grid_x, u32 grid_y, u32 grid_z, u32 block_x, u32 block_y, u32 block_z, u32 shared, handle stream,
    void **arguments, void **extra
) {
    return stand_in_launch(function);
}

// `config` begins with the grid, the block and the shared memory, which nothing needs.
int cuLaunchKernelEx(const void *config, char *function, void **arguments, void **extra) { return stand_in_launch(function); }

// The rest: errors by name, and functions by name.

static const struct { int code; const char *name, *text; } errors[] = {
    {OK, "CUDA_SUCCESS", "no error"},
    {OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {NO_DEVICE, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {NOT_FOUND, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {700, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
    {719, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
    {NOT_SUPPORTED, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
    {803, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH", "system has unsupported display driver / cuda driver combination"},
    {999, "CUDA_ERROR_UNKNOWN", "unknown error"},
};

static int described(int code, const char **text, int as_name) {
    for (size_t each = 0; each < sizeof errors / sizeof *errors; each++) {
        if (errors[each].code != code) continue;
        *text = as_name ? errors[each].name : errors[each].text;
        return OK;
    }
    *text = NULL;
    return 1;
}

int cuGetErrorName(int code, const char **name) { return described(code, name, 1); }
int cuGetErrorString(int code, const char **text) { return described(code, text, 0); }
int cuGetExportTable(const void **table, const void *id) { return NOT_FOUND; }
int cuProfilerStart(void) { return OK; }
int cuProfilerStop(void) { return OK; }

int cuGetProcAddress_v2(const char *name, handle *function, int version, unsigned long long flags, int *status) {
    char newer[128];
    void *self = dlopen("libcuda.so.1", RTLD_NOLOAD | RTLD_LAZY);
    snprintf(newer, sizeof newer, "%s_v2", name);
    *function = self ? dlsym(self, newer) : NULL;
    if (!*function && self) *function = dlsym(self, name);
    if (status) *status = *function ? 0 : 1;
    return *function ? OK : NOT_FOUND;
}

int cuGetProcAddress(const char *name, handle *function, int version, unsigned long long flags) {
    return cuGetProcAddress_v2(name, function, version, flags, NULL);
}
