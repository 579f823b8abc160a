// The cards that the stand-ins of NVIDIA's libraries have, by environment variables. What they are told, they are:
//
//   STAND_IN_GPU_0="Tesla T4;7.5;16"     card 0: name, compute capability, memory in GiB; card 1 by STAND_IN_GPU_1 ...
//   STAND_IN_GPU_0="NVIDIA A100-SXM4-40GB;8.0;40;3g.20gb"      the same, divided into one instance (MIG), by its profile
//   STAND_IN_DRIVER=550.54.15            the driver's version, which decides what the newest CUDA is that it knows
//   STAND_IN_TAKEN_GIB=15.9              what others hold of each card's memory
//
// NVML on the machine has the variables of all its cards; a container has those of the cards that it was given. A launch
// without a container has no variable of its caller: what none says is read from the file `settings` beside the library,
// with a line NAME=VALUE for each.
// With -DFIRST_CARD='"Tesla T4;7.5;15"' it is card 0 of every process that says nothing else.
//
// A driver that is older than a card ends the process: no machine has both.
#ifndef CARDS_H
#define CARDS_H
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_CARDS = 8 };

#define UUID_FORMAT "%s-0000000%d-57a4-d000-0000-00000000000%d"

struct card {
    int index;  // on the machine: in a container, that of the first card given may be 1
    char name[96];
    int major, minor;
    unsigned long long memory;  // bytes
    char profile[32];           // of its instance; empty where it is not divided
};

static struct card cards[MOST_CARDS];
static int card_count;

static char settings[32][192];
static int setting_count = -1;

#ifndef FIRST_CARD
#define FIRST_CARD ""
#endif

static void read_settings(void) {
    char path[4096];
    Dl_info own;
    setting_count = 0;
    if (!dladdr((void *)read_settings, &own) || !own.dli_fname) return;
    snprintf(path, sizeof path, "%s", own.dli_fname);
    char *slash = strrchr(path, '/');
    if (!slash) return;
    snprintf(slash + 1, sizeof path - (size_t)(slash + 1 - path), "settings");
    FILE *file = fopen(path, "r");
    while (file && setting_count < 32 && fgets(settings[setting_count], sizeof *settings, file)) {
        char *line = settings[setting_count++];
        line[strcspn(line, "\n")] = 0;
    }
    if (file) fclose(file);
}

static const char *of_file(const char *name) {
    size_t length = strlen(name);
    if (setting_count < 0) read_settings();
    for (int each = 0; each < setting_count; each++)
        if (!strncmp(settings[each], name, length) && settings[each][length] == '=') return settings[each] + length + 1;
    return NULL;
}

static const char *setting(const char *name, const char *otherwise) {
    const char *value = getenv(name);
    if (!value || !*value) value = of_file(name);
    return value && *value ? value : otherwise;
}

static long number(const char *name, long otherwise) {
    const char *value = setting(name, NULL);
    return value ? strtol(value, NULL, 0) : otherwise;
}

static unsigned long long bytes(double gibibytes) {
    return (unsigned long long)(gibibytes * 1024 * 1024 * 1024);
}

static unsigned long long taken(void) {
    return bytes(strtod(setting("STAND_IN_TAKEN_GIB", "0.5"), NULL));
}

static const char *driver_version(void) { return setting("STAND_IN_DRIVER", "550.54.15"); }
static int driver_branch(void) { return atoi(driver_version()); }

// Drivers by their branch, with the newest CUDA that each knows (CUDA's release notes).
static const struct { int branch, cuda; } drivers[] = {
    {384, 9000}, {390, 9010}, {396, 9020}, {410, 10000}, {418, 10010}, {440, 10020}, {450, 11000}, {455, 11010}, {460, 11020},
    {465, 11030}, {470, 11040}, {495, 11050}, {510, 11060}, {515, 11070}, {520, 11080}, {525, 12000}, {530, 12010},
    {535, 12020}, {545, 12030}, {550, 12040}, {555, 12050}, {560, 12060}, {565, 12070}, {570, 12080}, {575, 12090}, {580, 13000},
};

static int newest_cuda(void) {
    int newest = 0;
    for (size_t each = 0; each < sizeof drivers / sizeof *drivers; each++)
        if (drivers[each].branch <= driver_branch()) newest = drivers[each].cuda;
    return newest;
}

// Compute capabilities, with the first branch that has a driver for such cards.
static const struct { int major, minor, branch; } first_drivers[] = {
    {7, 0, 384}, {7, 5, 410}, {8, 0, 450}, {8, 6, 455}, {8, 9, 520}, {9, 0, 520}, {10, 0, 570},
};

static int first_branch(const struct card *card) {
    int first = 0;
    for (size_t each = 0; each < sizeof first_drivers / sizeof *first_drivers; each++)
        if (10 * card->major + card->minor >= 10 * first_drivers[each].major + first_drivers[each].minor)
            first = first_drivers[each].branch;
    return first;
}

__attribute__((constructor)) static void read_cards(void) {
    for (int index = 0; index < MOST_CARDS; index++) {
        char variable[32];
        snprintf(variable, sizeof variable, "STAND_IN_GPU_%d", index);
        struct card *card = &cards[card_count];
        double gibibytes = 0;
        const char *format = "%95[^;];%d.%d;%lf;%31s";
        int told = sscanf(setting(variable, index ? "" : FIRST_CARD), format, card->name, &card->major, &card->minor, &gibibytes, card->profile);
        if (told < 4) continue;
        card->index = index;
        card->memory = bytes(gibibytes);
        if (driver_branch() < first_branch(card)) {
            const char *words = "stand-in: the driver %s is older than the %s (%d.%d), which needs %d or newer\n";
            fprintf(stderr, words, driver_version(), card->name, card->major, card->minor, first_branch(card));
            _exit(70);
        }
        card_count++;
    }
}
#endif
