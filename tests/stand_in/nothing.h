// Functions that succeed: what they are asked to make is a pointer, what they are asked to do is not done.
#ifndef NOTHING_H
#define NOTHING_H
#include <stdlib.h>

#define MAKES(name) int name(void **made) { *made = malloc(64); return 0; }
#define FREES(name) int name(void *made) { free(made); return 0; }
#define DOES_NOTHING(name) int name(void) { return 0; }

// Functions whose results matter, and that are not computed: from then on, nothing is (libcuda.c).
extern void stand_in_stop(const char *what, const char *why);
#define NOT_COMPUTED(name) int name(void) { stand_in_stop(#name, "it isn't implemented"); return 0; }

static inline int zero(size_t *value) { *value = 0; return 0; }
#endif
