// The cards that the stand-ins of NVIDIA's libraries have, by environment variables. What they are told, they are:
//
//   STAND_IN_GPU_0="Tesla T4;7.5;16"     card 0: name, compute capability, memory in GiB; card 1 by STAND_IN_GPU_1 ...
//   STAND_IN_GPU_0="NVIDIA A100-SXM4-40GB;8.0;40;3g.20gb"      the same, divided into one instance (MIG), by its profile
//   STAND_IN_DRIVER=550.54.15            the driver's version
//   STAND_IN_CUDA=12040                  the newest CUDA that it knows: 12.4
//   STAND_IN_TAKEN_GIB=15.9              what others hold of each card's memory
//
// NVML on the machine has the variables of all its cards; a container has those of the cards that it was given.
#ifndef CARDS_H
#define CARDS_H
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_CARDS = 8 };

struct card {
    int index;  // on the machine: in a container, that of the first card given may be 1
    char name[96];
    int major, minor;
    unsigned long long memory;  // bytes
    char profile[32];           // of its instance; empty where it is not divided
};

static struct card cards[MOST_CARDS];
static int card_count;

static const char *setting(const char *name, const char *otherwise) {
    const char *value = getenv(name);
    return value && *value ? value : otherwise;
}

static long number(const char *name, long otherwise) {
    const char *value = getenv(name);
    return value && *value ? strtol(value, NULL, 0) : otherwise;
}

static unsigned long long bytes(double gibibytes) {
    return (unsigned long long)(gibibytes * 1024 * 1024 * 1024);
}

static unsigned long long taken(void) {
    return bytes(strtod(setting("STAND_IN_TAKEN_GIB", "0.5"), NULL));
}

__attribute__((constructor)) static void read_cards(void) {
    for (int index = 0; index < MOST_CARDS; index++) {
        char variable[32];
        snprintf(variable, sizeof variable, "STAND_IN_GPU_%d", index);
        struct card *card = &cards[card_count];
        double gibibytes = 0;
        const char *format = "%95[^;];%d.%d;%lf;%31s";
        int told = sscanf(setting(variable, ""), format, card->name, &card->major, &card->minor, &gibibytes, card->profile);
        if (told < 4) continue;
        card->index = index;
        card->memory = bytes(gibibytes);
        card_count++;
    }
}
#endif
