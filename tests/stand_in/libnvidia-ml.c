// A stand-in for libnvidia-ml.so.1, NVIDIA's management library: what a driver would tell of the cards in cards.h.
//
//   STAND_IN_NVML_INIT=9         the error with which it starts: 9 no driver is loaded, 18 library and module differ
//   STAND_IN_NVML_LOST_AFTER=20  from so many readings of the utilisation on, the cards are lost
//   STAND_IN_PROCESS=4242        a process that computes on every card
//   STAND_IN_REASONS=0x40        why the clocks are held down: NVML's bits
//   STAND_IN_MAY_SET=1           whether clocks may be locked; else only root may
//   STAND_IN_CLOCKS_LOG=FILE     gets a line for each clock that is locked: card and MHz, 0 where it is unlocked
#include "cards.h"
#include <time.h>

enum { OK = 0, INVALID = 2, NOT_SUPPORTED = 3, NO_PERMISSION = 4, NOT_FOUND = 6, TOO_SMALL = 7, LOST = 15, WATTS = 60 };

typedef unsigned int u32;
typedef unsigned long long u64;
typedef struct card *device;  // a card, or an instance: then it is one of `instances`

struct memory { u64 total, free, used; };
struct memory_v2 { u32 version; u64 total, reserved, free, used; };
struct utilisation { u32 gpu, memory; };
struct process_v2 { u32 pid; u64 memory; u32 gpu_instance, compute_instance; };
struct pci { char legacy[16]; u32 domain, bus, device, id, subsystem; char bus_id[32]; };

static struct card instances[MOST_CARDS];
static int is_lost, locked[MOST_CARDS];
static long readings;

static int is_instance(device d) { return d >= instances && d < instances + MOST_CARDS; }
static device parent(device d) { return is_instance(d) ? cards + (d - instances) : d; }
static int state(void) { return is_lost ? LOST : OK; }
static int say(char *buffer, u32 length, const char *text) { snprintf(buffer, length, "%s", text); return state(); }
static int tell(u32 *value, u32 told) { *value = told; return state(); }

int nvmlInitWithFlags(u32 flags) { return (int)number("STAND_IN_NVML_INIT", OK); }
int nvmlInit_v2(void) { return nvmlInitWithFlags(0); }
int nvmlShutdown(void) { return OK; }

const char *nvmlErrorString(int error) {
    switch (error) {
        case OK: return "Success";
        case NOT_SUPPORTED: return "Not Supported";
        case NO_PERMISSION: return "Insufficient Permissions";
        case NOT_FOUND: return "Not Found";
        case 9: return "Driver Not Loaded";
        case LOST: return "GPU is lost";
        case 18: return "RM has detected an NVML/RM version mismatch.";
        default: return "Unknown Error";
    }
}

int nvmlSystemGetDriverVersion(char *text, u32 length) { return say(text, length, driver_version()); }
int nvmlSystemGetNVMLVersion(char *text, u32 length) {
    snprintf(text, length, "%d.%s", newest_cuda() / 1000, driver_version());
    return state();
}

int nvmlSystemGetCudaDriverVersion_v2(int *version) { *version = newest_cuda(); return OK; }
int nvmlSystemGetProcessName(u32 pid, char *text, u32 length) { return say(text, length, "/usr/bin/python3"); }
int nvmlDeviceGetCount_v2(u32 *count) { return tell(count, (u32)card_count); }

int nvmlDeviceGetHandleByIndex_v2(u32 index, device *found) {
    if (index >= (u32)card_count) return INVALID;
    *found = &cards[index];
    return state();
}

int nvmlDeviceGetUUID(device d, char *text, u32 length) {
    snprintf(text, length, UUID_FORMAT, is_instance(d) ? "MIG" : "GPU", d->index, d->index);
    return state();
}

int nvmlDeviceGetHandleByUUID(const char *uuid, device *found) {
    for (int each = 0; each < 2 * card_count; each++) {
        char own[64];
        *found = each < card_count ? &cards[each] : &instances[each - card_count];
        nvmlDeviceGetUUID(*found, own, sizeof own);
        if (strcmp(own, uuid) == 0) return state();
    }
    return NOT_FOUND;
}

int nvmlDeviceGetIndex(device d, u32 *index) { return tell(index, (u32)parent(d)->index); }
int nvmlDeviceGetMinorNumber(device d, u32 *number) { return tell(number, (u32)parent(d)->index); }  // of /dev/nvidia0
int nvmlDeviceGetName(device d, char *text, u32 length) { return say(text, length, d->name); }

int nvmlDeviceGetCudaComputeCapability(device d, int *major, int *minor) {
    *major = parent(d)->major;
    *minor = parent(d)->minor;
    return state();
}

int nvmlDeviceGetPciInfo_v3(device d, struct pci *pci) {
    memset(pci, 0, sizeof *pci);
    pci->bus = (u32)parent(d)->index + 1;
    snprintf(pci->legacy, sizeof pci->legacy, "0000:%02X:00.0", pci->bus);
    snprintf(pci->bus_id, sizeof pci->bus_id, "00000000:%02X:00.0", pci->bus);
    return state();
}

int nvmlDeviceGetMemoryInfo(device d, struct memory *memory) {
    memory->total = d->memory;
    memory->used = taken();
    memory->free = memory->total - memory->used;
    return state();
}

int nvmlDeviceGetMemoryInfo_v2(device d, struct memory_v2 *memory) {
    memory->total = d->memory;
    memory->reserved = 0;
    memory->used = taken();
    memory->free = memory->total - memory->used;
    return state();
}

// Instances (MIG): a divided card has one, with the memory that its profile's name tells, as `3g.20gb` does.

int nvmlDeviceGetMigMode(device d, u32 *current, u32 *pending) {
    if (parent(d)->major < 8) return NOT_SUPPORTED;
    *current = *pending = parent(d)->profile[0] != 0;
    return state();
}

int nvmlDeviceGetMaxMigDeviceCount(device d, u32 *count) { return tell(count, d->profile[0] ? 7 : 0); }
int nvmlDeviceIsMigDeviceHandle(device d, u32 *is) { return tell(is, (u32)is_instance(d)); }
int nvmlDeviceGetDeviceHandleFromMigDeviceHandle(device d, device *found) { *found = parent(d); return state(); }
int nvmlDeviceGetGpuInstanceId(device d, u32 *id) { return is_instance(d) ? tell(id, 1) : NOT_SUPPORTED; }
int nvmlDeviceGetComputeInstanceId(device d, u32 *id) { return is_instance(d) ? tell(id, 0) : NOT_SUPPORTED; }

int nvmlDeviceGetMigDeviceHandleByIndex(device d, u32 index, device *found) {
    if (!d->profile[0] || index > 0) return NOT_FOUND;
    struct card *instance = &instances[d - cards];
    *instance = *d;
    snprintf(instance->name, sizeof instance->name, "%.50s MIG %s", d->name, d->profile);
    instance->memory = bytes(strtod(strchr(d->profile, '.') + 1, NULL));
    *found = instance;
    return state();
}

// What a run reads while it goes on. An instance tells neither utilisation nor clocks.

int nvmlDeviceGetUtilizationRates(device d, struct utilisation *use) {
    long after = number("STAND_IN_NVML_LOST_AFTER", 0);
    if (after && ++readings > after) is_lost = 1;
    if (d->profile[0]) return NOT_SUPPORTED;
    use->gpu = 50;
    use->memory = 20;
    return state();
}

int nvmlDeviceGetClockInfo(device d, u32 kind, u32 *mhz) {
    return tell(mhz, kind == 2 ? 1215 : locked[parent(d)->index] ? (u32)locked[parent(d)->index] : 1410);
}

int nvmlDeviceGetMaxClockInfo(device d, u32 kind, u32 *mhz) { return tell(mhz, kind == 2 ? 1215 : 1590); }
int nvmlDeviceGetApplicationsClock(device d, u32 kind, u32 *mhz) { return tell(mhz, kind == 2 ? 1215 : 1410); }
int nvmlDeviceGetDefaultApplicationsClock(device d, u32 kind, u32 *mhz) { return nvmlDeviceGetApplicationsClock(d, kind, mhz); }
int nvmlDeviceGetTemperature(device d, u32 sensor, u32 *celsius) { return tell(celsius, 50); }
int nvmlDeviceGetPowerUsage(device d, u32 *milliwatts) { return tell(milliwatts, WATTS * 1000); }

int nvmlDeviceGetTotalEnergyConsumption(device d, u64 *millijoules) {  // from Volta on
    struct timespec now;
    if (parent(d)->major < 7) return NOT_SUPPORTED;
    clock_gettime(CLOCK_MONOTONIC, &now);
    *millijoules = WATTS * ((u64)now.tv_sec * 1000 + (u64)now.tv_nsec / 1000000);
    return state();
}

int nvmlDeviceGetCurrentClocksThrottleReasons(device d, u64 *reasons) {
    *reasons = (u64)number("STAND_IN_REASONS", 0);
    return state();
}

int nvmlDeviceGetCurrentClocksEventReasons(device d, u64 *reasons) { return nvmlDeviceGetCurrentClocksThrottleReasons(d, reasons); }

int nvmlDeviceGetComputeRunningProcesses_v3(device d, u32 *count, struct process_v2 *found) {
    u32 room = *count, pid = (u32)number("STAND_IN_PROCESS", 0);
    *count = pid ? 1 : 0;
    if (*count > room) return TOO_SMALL;
    if (pid) *found = (struct process_v2){pid, 1u << 28, ~0u, ~0u};
    return state();
}

int nvmlDeviceGetComputeRunningProcesses_v2(device d, u32 *count, struct process_v2 *found) {
    return nvmlDeviceGetComputeRunningProcesses_v3(d, count, found);
}

int nvmlDeviceGetGraphicsRunningProcesses_v3(device d, u32 *count, struct process_v2 *found) { return tell(count, 0); }

// How it is set up.

int nvmlDeviceGetPersistenceMode(device d, u32 *is_on) { return tell(is_on, (u32)number("STAND_IN_PERSISTENCE", 1)); }
int nvmlDeviceGetComputeMode(device d, u32 *mode) { return tell(mode, 0); }
int nvmlDeviceGetVirtualizationMode(device d, u32 *mode) { return tell(mode, 0); }
int nvmlDeviceGetDisplayActive(device d, u32 *is_on) { return tell(is_on, 0); }

int nvmlDeviceGetEccMode(device d, u32 *current, u32 *pending) {
    if (strstr(d->name, "GeForce")) return NOT_SUPPORTED;
    *current = *pending = 1;
    return state();
}

int nvmlDeviceGetPowerManagementLimit(device d, u32 *milliwatts) { return tell(milliwatts, (u32)number("STAND_IN_POWER_LIMIT", 70000)); }
int nvmlDeviceGetEnforcedPowerLimit(device d, u32 *milliwatts) { return nvmlDeviceGetPowerManagementLimit(d, milliwatts); }
int nvmlDeviceGetPowerManagementDefaultLimit(device d, u32 *milliwatts) { return tell(milliwatts, 70000); }

int nvmlDeviceGetPowerManagementLimitConstraints(device d, u32 *least, u32 *most) {
    *least = 60000;
    *most = 70000;
    return state();
}

int nvmlDeviceGetCurrPcieLinkGeneration(device d, u32 *generation) { return tell(generation, 3); }
int nvmlDeviceGetMaxPcieLinkGeneration(device d, u32 *generation) { return tell(generation, 3); }
int nvmlDeviceGetGpuMaxPcieLinkGeneration(device d, u32 *generation) { return tell(generation, 3); }
int nvmlDeviceGetCurrPcieLinkWidth(device d, u32 *lanes) { return tell(lanes, 16); }
int nvmlDeviceGetMaxPcieLinkWidth(device d, u32 *lanes) { return tell(lanes, 16); }

int nvmlDeviceGetSupportedMemoryClocks(device d, u32 *count, u32 *clocks) {
    u32 room = *count;
    *count = 1;
    if (room < 1) return TOO_SMALL;
    *clocks = 1215;
    return state();
}

int nvmlDeviceGetSupportedGraphicsClocks(device d, u32 memory, u32 *count, u32 *clocks) {
    u32 room = *count;
    *count = 3;
    if (room < 3) return TOO_SMALL;
    clocks[0] = 1590, clocks[1] = 1110, clocks[2] = 300;
    return state();
}

// Nobody can read which clocks are locked; so it is said to a log, where a test asks for one.
static int lock(device d, int mhz) {
    if (!number("STAND_IN_MAY_SET", 0)) return NO_PERMISSION;
    if (parent(d)->major < 7) return NOT_SUPPORTED;
    locked[parent(d)->index] = mhz;
    FILE *log = fopen(setting("STAND_IN_CLOCKS_LOG", "/dev/null"), "a");
    if (log) fprintf(log, "%d %d\n", parent(d)->index, mhz), fclose(log);
    return state();
}

// 0xffffff01 is NVML_CLOCK_LIMIT_ID_TDP, the base clock
int nvmlDeviceSetGpuLockedClocks(device d, u32 least, u32 most) { return lock(d, most == 0xffffff01u ? 1110 : (int)most); }
int nvmlDeviceResetGpuLockedClocks(device d) { return lock(d, 0); }
