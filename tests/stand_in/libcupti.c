// A stand-in for libcupti.so, which traces a device: kernels alone, of which each is said to take STAND_IN_KERNEL_NS
// nanoseconds (2000), one after the other.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { OK = 0, NO_MORE_RECORDS = 12, KERNELS = 3, KERNELS_AT_ONCE = 10, MOST = 1 << 16 };

typedef unsigned char byte;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef void *handle;

// The beginning of a CUpti_ActivityKernel, which is the same in all releases from 9.0 on; the rest is 0.
struct kernel {
    u32 kind;
    byte cache, shared_config;
    unsigned short registers;
    u32 cache_requested, cache_executed;
    u64 start, end, completed;
    u32 device, context, stream, grid[3], block[3], shared_static, shared_dynamic, local_thread, local_total, correlation;
    u64 grid_id;
    const char *name;
    byte rest[144];
};

extern void (*stand_in_traced)(const char *kernel, int device);  // the driver's stand-in calls it

static struct { const char *name; int device; u64 start; } kernels[MOST];
static u32 count, enabled;
static u64 free_at;
static void (*request)(byte **buffer, size_t *size, size_t *most);
static void (*complete)(handle context, u32 stream, byte *buffer, size_t size, size_t valid);

static u64 now(void) {
    struct timespec at;
    clock_gettime(CLOCK_REALTIME, &at);
    return (u64)at.tv_sec * 1000000000 + (u64)at.tv_nsec;
}

static u64 nanoseconds(void) {
    const char *told = getenv("STAND_IN_KERNEL_NS");
    return told ? strtoull(told, NULL, 10) : 2000;
}

static void traced(const char *name, int device) {
    u32 place = __atomic_fetch_add(&count, 1, __ATOMIC_RELAXED);
    u64 at = now();
    if (place >= MOST) return;
    kernels[place].name = name;
    kernels[place].device = device;
    kernels[place].start = at > free_at ? at : free_at;
    free_at = kernels[place].start + nanoseconds();
}

int cuptiActivityEnable(u32 kind) {
    if (kind == KERNELS || kind == KERNELS_AT_ONCE) enabled = kind, count = 0, stand_in_traced = traced;
    return OK;
}

int cuptiActivityDisable(u32 kind) {
    if (kind == enabled) stand_in_traced = NULL;
    return OK;
}

int cuptiActivityRegisterCallbacks(void (*requests)(byte **, size_t *, size_t *), void (*completes)(handle, u32, byte *, size_t, size_t)) {
    request = requests;
    complete = completes;
    return OK;
}

int cuptiActivityFlushAll(u32 flags) {
    u32 total = count < MOST ? count : MOST;
    for (u32 done = 0; done < total && request;) {
        byte *buffer;
        size_t size, most, used = 0;
        request(&buffer, &size, &most);
        if (!buffer || size < sizeof(struct kernel)) return OK;
        for (; done < total && used + sizeof(struct kernel) <= size; done++, used += sizeof(struct kernel)) {
            struct kernel *record = (struct kernel *)(buffer + used);
            memset(record, 0, sizeof *record);
            record->kind = enabled;
            record->start = kernels[done].start;
            record->end = record->completed = record->start + nanoseconds();
            record->device = (u32)kernels[done].device;
            record->context = 1;
            record->stream = 7;
            record->correlation = done + 1;
            record->name = kernels[done].name;
            for (int side = 0; side < 3; side++) record->grid[side] = record->block[side] = 1;
        }
        complete(NULL, 0, buffer, size, used);
    }
    count = 0;
    return OK;
}

int cuptiActivityGetNextRecord(byte *buffer, size_t valid, byte **record) {
    *record = *record ? *record + sizeof(struct kernel) : buffer;
    return *record + sizeof(struct kernel) <= buffer + valid ? OK : NO_MORE_RECORDS;
}

int cuptiActivityGetNumDroppedRecords(handle context, u32 stream, size_t *dropped) { *dropped = 0; return OK; }
int cuptiActivityConfigureUnifiedMemoryCounter(void *config, u32 counters) { return OK; }
int cuptiActivityUsePerThreadBuffer(void) { return OK; }
int cuptiActivityEnableHWTrace(byte is_on) { return OK; }
int cuptiSetThreadIdType(u32 type) { return OK; }
int cuptiSubscribe(handle *subscriber, handle callback, handle data) { *subscriber = malloc(8); return OK; }
int cuptiUnsubscribe(handle subscriber) { free(subscriber); return OK; }
int cuptiEnableCallback(u32 is_on, handle subscriber, u32 domain, u32 which) { return OK; }
int cuptiEnableDomain(u32 is_on, handle subscriber, u32 domain) { return OK; }
int cuptiFinalize(void) { stand_in_traced = NULL; return OK; }
int cuptiGetTimestamp(u64 *at) { *at = now(); return OK; }
int cuptiGetVersion(u32 *version) { *version = 18; return OK; }
int cuptiGetDeviceId(handle context, u32 *device) { *device = 0; return OK; }
int cuptiGetContextId(handle context, u32 *id) { *id = 1; return OK; }
int cuptiGetStreamIdEx(handle context, handle stream, byte per_thread, u32 *id) { *id = 7; return OK; }
int cuptiGetGraphId(handle graph, u32 *id) { *id = 1; return OK; }
int cuptiGetGraphExecId(handle graph, u32 *id) { *id = 1; return OK; }
int cuptiGetResultString(int result, const char **text) { *text = result ? "CUPTI_ERROR_UNKNOWN" : "CUPTI_SUCCESS"; return OK; }
