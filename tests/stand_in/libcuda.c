// A stand-in for libcuda.so.1, the driver: device memory is the host's, streams and events are done at once, and kernels
// are computed on the host, where there is PTX of them (ptx.h). Its cards are those in cards.h.
//
// Once something isn't computed, nothing is computed from there on, but four kernels that decide whether work goes on. So a
// model's step counter stays behind, from which the report sees that the work is not what was asked for. The first such
// kernel goes to standard error.
//
//   STAND_IN_CUINIT=803             the error with which it starts: 100 no device, 802 no fabric manager, 803 library and
//                                   module differ, 804 the image's library is newer than the card allows
//   STAND_IN_LAUNCH_FAILS=719:500   the error of the 500th kernel and of all that comes after it: 719, 700
//   STAND_IN_LOG=1                  every kernel, module and allocation goes to standard error
#include "cards.h"
#include <stdint.h>
#include <strings.h>
#include "ptx.h"
#include <sys/mman.h>

enum { OK = 0, INVALID_VALUE = 1, OUT_OF_MEMORY = 2, NO_DEVICE = 100, INVALID_DEVICE = 101, INVALID_HANDLE = 400, NOT_FOUND = 500, NOT_SUPPORTED = 801 };

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

// The kernels that are always computed. TensorFlow makes shapes of gradients with the first two, and a shape that is not true ends
// the step. They are of int32, along the first axis.

// tensorflow/core/kernels/dynamic_stitch_op_gpu.cu.cc; its arrays are gpu_device_array.h's.
static void stitch(void **arguments) {
    const int slice = *(int *)arguments[0], size = *(int *)arguments[1], many = 8;
    const struct { int count, inside[8]; const int *outside; } *indices = arguments[2];
    const struct { int count; const int *inside[8], **outside; } *parts = arguments[3];
    const int *from = indices->count <= many ? indices->inside : indices->outside;
    const int *const *data = parts->count <= many ? parts->inside : parts->outside;
    int *to = *(int **)arguments[4];
    for (int at = 0; at < size; at++)
        if (from[at / slice] != -1) to[at] = data[from[at / slice]][at % slice];
}

// tensorflow/core/kernels/gather_functor_gpu.cu.h
static void gather(void **arguments) {
    const int *values = *(int **)arguments[0], *indices = *(int **)arguments[1];
    const long rows = *(long *)arguments[3], slice = *(long *)arguments[5], size = *(long *)arguments[6];
    int *to = *(int **)arguments[2];
    for (long at = 0; at < size; at++) {
        const long row = indices[at / slice];
        to[at] = row >= 0 && row < rows ? values[row * slice + at % slice] : 0;
    }
}

static int is_on_device(address memory);

// Truth values: one that is not true ends the making of a variable, and one that is none the choice of a branch. The
// arguments are an expression of Eigen's, in which an address on the device is an array (the result's comes first), and a
// size.
static const void *array_of(void **arguments) {
    const address *words = arguments[0];
    for (int at = 1; at < 16; at++)
        if (is_on_device(words[at]) && words[at] != words[0]) return (void *)(uintptr_t)words[at];
    return NULL;
}

static void negate(void **arguments) {
    const char *from = array_of(arguments);
    const int size = *(int *)arguments[1];
    for (int at = 0; from && at < size; at++) (*(char **)arguments[0])[at] = !from[at];
}

static void are_not_zero(void **arguments) {
    const int *from = array_of(arguments), size = *(int *)arguments[1];
    for (int at = 0; from && at < size; at++) (*(char **)arguments[0])[at] = from[at] != 0;
}

static const struct { const char *name; void (*compute)(void **); } always_computed[] = {
    {"DynamicStitchKernelIi", stitch},
    {"GatherOpKernelINS_13AlignedVectorIiLi1EEEiLb1E", gather},
    {"scalar_boolean_not_op", negate},
    {"TensorConversionOpIbKNS4_INS5_IKi", are_not_zero},
};

// Of the stand-ins alone: what traces kernels (CUPTI), and what launches them (cudart).
void (*stand_in_traced)(const char *kernel, int device);

static int is_stopped;

// No kernel is computed from here on.
void stand_in_stop(const char *what, const char *why) {
    if (!is_stopped) fprintf(stderr, "stand-in: %.600s is not computed: %.200s. From here on, results are not those of the work.\n", what, why);
    is_stopped = 1;
}

// A part of a program, which is read where one of its kernels is launched.
struct module *stand_in_module(const void *code) {
    struct module *made = calloc(1, sizeof *made);
    made->image = code;
    return made;
}

struct kernel *stand_in_kernel(struct module *module, const char *name) {
    struct kernel *made = calloc(1, sizeof *made);
    made->name = name;
    made->module = module;
    return made;
}

// The compute capability for which a kernel was compiled, as 80; 0 if that isn't known. By it, libraries in a program choose how
// many threads they launch.
int stand_in_target(struct kernel *kernel) {
    pthread_mutex_lock(&reading);
    const char *ptx = kernel && kernel->module ? text_of(kernel->module) : NULL;
    pthread_mutex_unlock(&reading);
    const char *target = ptx ? strstr(ptx, ".target sm_") : NULL;
    return target ? atoi(target + strlen(".target sm_")) : 0;
}

int stand_in_launch(struct kernel *kernel, const struct launch *launch, void **arguments) {
    int code = 0;
    long at = 0;
    const char *name = kernel ? kernel->name : "?";
    if (logs()) fprintf(stderr, "stand-in: kernel %.600s\n", name);
    if (stand_in_traced) stand_in_traced(name, current()->device);
    // XLA delays a stream by a kernel that waits for the host: the host would wait for it here
    const int is_skipped = is_stopped || strstr(name, "DelayKernel");
    const char *lacks = is_skipped ? NULL : !kernel || !arguments ? "it has no name or no arguments" : run_kernel(kernel, launch, arguments);
    if (lacks) stand_in_stop(name, lacks);
    for (size_t each = 0; is_stopped && arguments && each < sizeof always_computed / sizeof *always_computed; each++)
        if (strstr(name, always_computed[each].name)) always_computed[each].compute(arguments);
    launches++;
    if (sscanf(setting("STAND_IN_LAUNCH_FAILS", ""), "%d:%ld", &code, &at) == 2 && launches >= at) error = code;
    return error;
}

int stand_in_state(void) { return error; }

// Start and devices.

// Those of CUDA_VISIBLE_DEVICES, by index or UUID, in its order; up to the first that is not there, as the driver does.
static void choose(void) {
    const char *wanted = getenv("CUDA_VISIBLE_DEVICES");
    struct card chosen[MOST_CARDS];
    int count = 0;
    if (!wanted) return;
    while (*wanted && count < MOST_CARDS) {
        size_t length = strcspn(wanted, ",");
        int found = -1;
        for (int each = 0; each < card_count; each++) {
            char index[8], uuid[64];
            snprintf(index, sizeof index, "%d", cards[each].index);
            snprintf(uuid, sizeof uuid, UUID_FORMAT, "GPU", cards[each].index, cards[each].index);
            if ((strlen(index) == length && !strncmp(wanted, index, length)) || (strlen(uuid) == length && !strncmp(wanted, uuid, length))) found = each;
        }
        if (found < 0) break;
        chosen[count++] = cards[found];
        wanted += length + (wanted[length] == ',');
    }
    memcpy(cards, chosen, sizeof *cards * (size_t)count);
    card_count = count;
}

// XLA gives a driver what NVIDIA's assembler, ptxas, makes of its PTX. Of such code nothing could be computed: so XLA finds the
// script `ptxas` beside this library, which leaves PTX as it is.
static void replace_assembler(void) {
    char path[8192];
    Dl_info own;
    if (!dladdr((void *)replace_assembler, &own) || !strrchr(own.dli_fname, '/')) return;
    snprintf(path, sizeof path, "%.*s:%s", (int)(strrchr(own.dli_fname, '/') - own.dli_fname), own.dli_fname, getenv("PATH") ? getenv("PATH") : "");
    setenv("PATH", path, 1);
}

static void start(void) {
    choose();
    replace_assembler();
}

int cuInit(u32 flags) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, start);
    int fault = (int)number("STAND_IN_CUINIT", OK);
    for (int device = 0; device < MOST_CARDS; device++) contexts[device].device = device;
    return fault ? fault : card_count ? OK : NO_DEVICE;
}

int cuDriverGetVersion(int *version) { *version = newest_cuda(); return OK; }
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

static struct allocation { address from; size_t size; } allocations[4096];

static pthread_mutex_t allocating = PTHREAD_MUTEX_INITIALIZER;

static int is_on_device(address memory) {
    int is_found = 0;
    pthread_mutex_lock(&allocating);
    for (size_t each = 0; !is_found && each < sizeof allocations / sizeof *allocations; each++)
        is_found = memory - allocations[each].from < allocations[each].size;
    pthread_mutex_unlock(&allocating);
    return is_found;
}

// Put one in the place of another; 0, 0: none.
static void note(address old, address from, size_t size) {
    pthread_mutex_lock(&allocating);
    size_t each = 0;
    while (each < sizeof allocations / sizeof *allocations && allocations[each].from != old) each++;
    if (each < sizeof allocations / sizeof *allocations) allocations[each] = (struct allocation){from, size};
    pthread_mutex_unlock(&allocating);
}

int cuMemAlloc_v2(address *memory, size_t size) {
    int device = current()->device;
    if (error) return error;
    if (held[device] + size + taken() > card(device)->memory) return OUT_OF_MEMORY;
    void *made = mmap(NULL, size + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (made == MAP_FAILED) return OUT_OF_MEMORY;
    *memory = (address)(uintptr_t)made + PAGE;
    *size_of(*memory) = size;
    note(0, *memory, size);
    held[device] += size;
    if (logs()) fprintf(stderr, "stand-in: %zu bytes at %llx on device %d\n", size, *memory, device);
    return OK;
}

int cuMemFree_v2(address memory) {
    if (!memory) return OK;
    size_t size = *size_of(memory);
    held[current()->device] -= size;
    note(memory, 0, 0);
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

int cuMemcpy(address to, address from, size_t size) { return copy(at(to), at(from), size); }

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
    if (!is_on_device(memory)) return INVALID_VALUE;
    switch (attribute) {  // by CUpointer_attribute
        case 1: *(struct context **)value = current(); return OK;
        case 2: *(u32 *)value = 2; return OK;  // on the device
        case 8: *(u32 *)value = 0; return OK;  // not managed
        case 9: *(int *)value = current()->device; return OK;
        default: return INVALID_VALUE;
    }
}

int cuPointerGetAttributes(u32 count, int *attributes, void **values, address memory) {
    for (u32 each = 0; each < count; each++)  // of what is not known there is nothing
        if (values[each] && cuPointerGetAttribute(values[each], attributes[each], memory)) *(u32 *)values[each] = 0;
    return OK;
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

// Modules and kernels.

int cuModuleLoadFatBinary(struct module **module, const void *image) {
    *module = calloc(1, sizeof **module);
    (*module)->ptx = ptx_of(image);  // the image may not be there later
    return error;
}

int cuModuleLoadData(struct module **module, const void *image) { return cuModuleLoadFatBinary(module, image); }

int cuModuleLoadDataEx(struct module **module, const void *image, u32 count, void *options, void *values) {
    return cuModuleLoadFatBinary(module, image);
}

int cuModuleUnload(struct module *module) { return error; }

int cuModuleGetFunction(struct kernel **function, struct module *module, const char *name) {
    *function = stand_in_kernel(module, strdup(name));
    return error;
}

int cuModuleGetGlobal_v2(address *memory, size_t *size, struct module *module, const char *name) {
    static address symbols;  // every symbol of which there is no PTX is here, as large as any
    pthread_mutex_lock(&reading);
    const struct variable *variable = variable_of(module, name);
    pthread_mutex_unlock(&reading);
    if (!variable && !symbols && cuMemAlloc_v2(&symbols, SYMBOL_BYTES)) return OUT_OF_MEMORY;
    if (memory) *memory = variable ? (address)(uintptr_t)variable->memory : symbols;
    if (size) *size = variable ? variable->size : SYMBOL_BYTES;
    return error;
}

int cuFuncGetAttribute(int *value, int attribute, struct kernel *function) {
    // 0: threads of a block; 5, 6: for what it was compiled
    *value = attribute == 0 ? 1024 : attribute == 5 || attribute == 6 ? stand_in_target(function) : 0;
    return error;
}

int cuFuncSetAttribute(struct kernel *function, int attribute, int value) { return error; }
int cuFuncSetCacheConfig(struct kernel *function, int config) { return error; }
int cuFuncGetModule(handle *module, struct kernel *function) { return give(module); }
int cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, struct kernel *function, int threads, size_t shared) { *blocks = 1; return error; }

int cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, struct kernel *function, int threads, size_t shared, u32 flags) {
    *blocks = 1;
    return error;
}

int cuOccupancyMaxPotentialBlockSize(int *blocks, int *threads, struct kernel *function, handle of, size_t shared, int limit) {
    *blocks = 40;
    *threads = 256;
    return error;
}

int cuLaunchKernel(
    struct kernel *function, u32 grid_x, u32 grid_y, u32 grid_z, u32 block_x, u32 block_y, u32 block_z, u32 shared, handle stream,
    void **arguments, void **extra
) {
    return stand_in_launch(function, &(struct launch){{grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared}, arguments);
}

// `config` begins with the grid, the block and the shared memory.
int cuLaunchKernelEx(const struct launch *config, struct kernel *function, void **arguments, void **extra) {
    return stand_in_launch(function, config, arguments);
}

int cuLaunchCooperativeKernel(
    struct kernel *function, u32 grid_x, u32 grid_y, u32 grid_z, u32 block_x, u32 block_y, u32 block_z, u32 shared, handle stream, void **arguments
) {
    stand_in_stop(function->name, "its blocks wait for each other");
    return stand_in_launch(function, NULL, arguments);
}

// Graphs, of which XLA makes its commands from 2.16 on: they contain nothing.

int cuGraphCreate(handle *graph, u32 flags) { return give(graph); }
int cuGraphDestroy(handle graph) { return drop(graph); }
int cuGraphInstantiateWithFlags(handle *made, handle graph, unsigned long long flags) { return give(made); }
int cuGraphInstantiate(handle *made, handle graph, unsigned long long flags) { return give(made); }
int cuGraphExecDestroy(handle made) { return drop(made); }
int cuGraphLaunch(handle made, handle stream) { stand_in_stop("a graph", "graphs are not kept"); return error; }
int cuGraphUpload(handle made, handle stream) { return error; }
int cuGraphAddKernelNode_v2(handle *node, handle graph, const handle *after, size_t count, const void *of) { return give(node); }
int cuGraphAddKernelNode(handle *node, handle graph, const handle *after, size_t count, const void *of) { return give(node); }
int cuGraphAddMemcpyNode(handle *node, handle graph, const handle *after, size_t count, const void *of, handle context) { return give(node); }
int cuGraphAddMemsetNode(handle *node, handle graph, const handle *after, size_t count, const void *of, handle context) { return give(node); }
int cuGraphAddEmptyNode(handle *node, handle graph, const handle *after, size_t count) { return give(node); }
int cuGraphAddChildGraphNode(handle *node, handle graph, const handle *after, size_t count, handle child) { return give(node); }
int cuGraphAddNode(handle *node, handle graph, const handle *after, size_t count, void *of) { return give(node); }
int cuGraphExecKernelNodeSetParams_v2(handle made, handle node, const void *of) { return error; }
int cuGraphExecKernelNodeSetParams(handle made, handle node, const void *of) { return error; }
int cuGraphExecMemcpyNodeSetParams(handle made, handle node, const void *of, handle context) { return error; }
int cuGraphExecMemsetNodeSetParams(handle made, handle node, const void *of, handle context) { return error; }
int cuGraphExecChildGraphNodeSetParams(handle made, handle node, handle child) { return error; }
int cuGraphExecUpdate(handle made, handle graph, handle node, int *result) { return error; }
int cuGraphExecUpdate_v2(handle made, handle graph, void *result) { return error; }
int cuGraphNodeSetEnabled(handle made, handle node, u32 is) { return error; }
int cuGraphNodeGetType(handle node, int *type) { *type = 0; return error; }
int cuGraphGetNodes(handle graph, handle *nodes, size_t *count) { if (nodes && *count) *nodes = graph; *count = 1; return error; }
int cuGraphDebugDotPrint(handle graph, const char *path, u32 flags) { return error; }
int cuStreamBeginCapture_v2(handle stream, int mode) { return error; }
int cuStreamBeginCapture(handle stream, int mode) { return error; }
int cuStreamBeginCaptureToGraph(handle stream, handle graph, const handle *after, const void *data, size_t count, int mode) { return error; }
int cuStreamEndCapture(handle stream, handle *graph) { return give(graph); }

// Tables of functions that NVIDIA documents nowhere: a runtime that is linked into a program, as in TensorFlow's wheels up
// to 2.0, works by them. Their numbers and arguments are those that ZLUDA (github.com/vosen/ZLUDA, dark_api) has found.

static int load(struct module **module, const void *code) {
    *module = stand_in_module(code);
    return error;
}

static int load_more(struct module **module, const void *code, void *a, void *b, u32 c) { return load(module, code); }
static int load_header(const void *code, struct module **module, void *a, void *b, u32 c) { return load(module, code); }
static void nothing(size_t argument) {}
static int retain(struct context **context, int device) { return cuDevicePrimaryCtxRetain(context, device); }

static void first_hooks(void **hooks, size_t *size) {
    static char made[4096];
    *hooks = made;
    *size = 1024;
}

static void last_hooks(void **hooks, size_t *size) {
    static char made[64];
    *hooks = made;
    *size = 14;
}

// What a runtime keeps with a context, by a key of its own.
static struct kept { struct kept *next; struct context *context; void *key, *value; } *all_kept;

static struct kept *find_kept(struct context *context, void *key) {
    struct kept *each = all_kept;
    while (each && (each->context != (context ? context : current()) || each->key != key)) each = each->next;
    return each;
}

static int keep(struct context *context, void *key, void *value, void *at_end) {
    struct kept *made = find_kept(context, key);
    if (!made) {
        made = malloc(sizeof *made);
        *made = (struct kept){all_kept, context ? context : current(), key};
        all_kept = made;
    }
    made->value = value;
    return OK;
}

static int forget(struct context *context, void *key) {
    struct kept *gone = find_kept(context, key);
    if (gone) gone->key = gone;  // a key that nobody has
    return OK;
}

static int recall(void **value, struct context *context, void *key) {
    struct kept *found = find_kept(context, key);
    if (found) *value = found->value;
    return found ? OK : INVALID_HANDLE;
}

static const void *runtime[13] = {(void *)sizeof runtime, load, retain, [6] = load_more, [7] = nothing, [8] = load_header};
static const void *hooks[7] = {(void *)sizeof hooks, [2] = first_hooks, [6] = last_hooks};
static const void *local_to_threads[4] = {(void *)sizeof local_to_threads};
static const void *storage[4] = {keep, forget, recall};

int cuGetExportTable(const void **table, const unsigned char *id) {
    static const struct { u32 begins; const void **table; } known[] = {
        {0x6bd5fb6c, runtime}, {0xa094798c, hooks}, {0x42d85a81, local_to_threads}, {0xc693336e, storage},
    };
    const u32 begins = (u32)id[0] << 24 | (u32)id[1] << 16 | (u32)id[2] << 8 | id[3];
    for (size_t each = 0; each < sizeof known / sizeof *known; each++)
        if (known[each].begins == begins) return *table = known[each].table, OK;
    if (logs()) fprintf(stderr, "stand-in: no table %08x\n", begins);
    return NOT_FOUND;
}

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
    {802, "CUDA_ERROR_SYSTEM_NOT_READY", "system not yet initialized"},
    {803, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH", "system has unsupported display driver / cuda driver combination"},
    {804, "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE", "forward compatibility was attempted on non supported HW"},
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
