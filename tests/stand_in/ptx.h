// An interpreter of PTX, the assembly language of NVIDIA's GPUs: computes a kernel on the host, thread after thread.
// TensorFlow's libraries contain the PTX of each kernel for one compute capability, whatever the card's is.
//
// Registers are 64 bits wide; an instruction uses the bits of its type. A thread runs until it ends or waits for others:
// at a barrier for its block, at an exchange of registers for its warp. Addresses of shared, local and parameter memory are
// offsets, and generic addresses are the host's. Subnormal numbers are kept (.ftz), and approximations (.approx) are the
// host's results.
//
// An instruction that isn't implemented counts only if a thread reaches it. Not implemented are products in tensor cores,
// textures, asynchronous copies, calls by address, and synchronisation of several blocks or a part of a block.
#ifndef PTX_H
#define PTX_H
#define _GNU_SOURCE
#include <ctype.h>
#include <fenv.h>
#include <math.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WARP = 32, MOST_OPERANDS = 10, MOST_NAME = 4096, MOST_PARAMETERS = 256 };

// The most instructions of a launch: about a second. A kernel that has more is not computed.
enum { MOST_INSTRUCTIONS = 1 << 27 };

enum type { NO_TYPE, PRED, U8, U16, U32, U64, S8, S16, S32, S64, F16, F32, F64, F16X2, BF16, OTHER_TYPE };
enum space { GENERIC, GLOBAL, SHARED, LOCAL, PARAM };
enum compare { NO_COMPARE, EQ, NE, LT, LE, GT, GE, LO, LS, HI, HS, EQU, NEU, LTU, LEU, GTU, GEU, NUM, NAN_ };
enum combine { NO_COMBINE, AND, OR, XOR, ADD, MIN, MAX, EXCH, CAS, INC, DEC };
enum rounding { NEAREST, TO_ZERO, DOWN, UP };
enum exchange { SHIFT_UP = 1, SHIFT_DOWN, BUTTERFLY, INDEX, BALLOT, ANY, ALL };
enum bit { WIDE = 1, HIGH = 2, SATURATE = 4, TO = 8, CARRY_OUT = 16, WRAP = 32, LOW = 64, PROPAGATES_NAN = 128, LEFT = 256 };

enum operation {
    UNKNOWN, O_ABS, O_ACTIVEMASK, O_ADD, O_ADDC, O_AND, O_ATOM, O_BAR, O_BFE, O_BFI, O_BFIND, O_BRA, O_BREV, O_CLZ, O_CNOT, O_COPYSIGN, O_COS, O_CVT,
    O_CVTA, O_DIV, O_EX2, O_FMA, O_LD, O_LG2, O_LOP3, O_MAD, O_MADC, O_MAX, O_MIN, O_MOV, O_MUL, O_NEG, O_NOP, O_NOT, O_OR, O_POPC,
    O_PRMT, O_RCP, O_REM, O_RET, O_RSQRT, O_SELP, O_SET, O_SETP, O_SHF, O_SHFL, O_SHL, O_SHR, O_SIN, O_SQRT, O_ST, O_SUB, O_SUBC,
    O_TANH, O_VOTE, O_WARP_BAR, O_XOR,
};

static const struct { const char *name; enum operation is; } operations[] = {
    {"abs", O_ABS}, {"activemask", O_ACTIVEMASK}, {"add", O_ADD}, {"addc", O_ADDC}, {"and", O_AND}, {"atom", O_ATOM}, {"red", O_ATOM},
    {"bar", O_BAR}, {"barrier", O_BAR}, {"bfe", O_BFE}, {"bfi", O_BFI}, {"bfind", O_BFIND}, {"bra", O_BRA}, {"brev", O_BREV}, {"clz", O_CLZ},
    {"cnot", O_CNOT}, {"copysign", O_COPYSIGN}, {"cos", O_COS}, {"cvt", O_CVT}, {"cvta", O_CVTA}, {"div", O_DIV}, {"ex2", O_EX2}, {"exit", O_RET}, {"fence", O_NOP},
    {"fma", O_FMA}, {"ld", O_LD}, {"ldu", O_LD}, {"lg2", O_LG2}, {"lop3", O_LOP3}, {"mad", O_MAD}, {"madc", O_MADC}, {"max", O_MAX},
    {"membar", O_NOP}, {"min", O_MIN}, {"mov", O_MOV}, {"mul", O_MUL}, {"nanosleep", O_NOP}, {"neg", O_NEG}, {"not", O_NOT}, {"or", O_OR},
    {"popc", O_POPC}, {"prefetch", O_NOP}, {"prefetchu", O_NOP}, {"prmt", O_PRMT}, {"rcp", O_RCP}, {"rem", O_REM}, {"ret", O_RET},
    {"rsqrt", O_RSQRT}, {"selp", O_SELP}, {"set", O_SET}, {"setp", O_SETP}, {"shf", O_SHF}, {"shfl", O_SHFL}, {"shl", O_SHL},
    {"shr", O_SHR}, {"sin", O_SIN}, {"sqrt", O_SQRT}, {"st", O_ST}, {"sub", O_SUB}, {"subc", O_SUBC}, {"tanh", O_TANH}, {"vote", O_VOTE},
    {"xor", O_XOR},
};

enum modified { TYPE, SPACE, COMPARE, COMBINE, ROUNDING, VECTOR, EXCHANGE, BIT, NOTHING };

static const struct { const char *name; enum modified what; int value; } modifiers[] = {
    {"pred", TYPE, PRED}, {"b8", TYPE, U8}, {"u8", TYPE, U8}, {"s8", TYPE, S8}, {"b16", TYPE, U16}, {"u16", TYPE, U16}, {"s16", TYPE, S16},
    {"b32", TYPE, U32}, {"u32", TYPE, U32}, {"s32", TYPE, S32}, {"b64", TYPE, U64}, {"u64", TYPE, U64}, {"s64", TYPE, S64},
    {"f16", TYPE, F16}, {"f32", TYPE, F32}, {"f64", TYPE, F64}, {"f16x2", TYPE, F16X2}, {"bf16", TYPE, BF16},
    {"global", SPACE, GLOBAL}, {"const", SPACE, GLOBAL}, {"shared", SPACE, SHARED}, {"local", SPACE, LOCAL}, {"param", SPACE, PARAM},
    {"eq", COMPARE, EQ}, {"ne", COMPARE, NE}, {"lt", COMPARE, LT}, {"le", COMPARE, LE}, {"gt", COMPARE, GT}, {"ge", COMPARE, GE},
    {"ls", COMPARE, LS}, {"hs", COMPARE, HS}, {"equ", COMPARE, EQU}, {"neu", COMPARE, NEU}, {"ltu", COMPARE, LTU}, {"leu", COMPARE, LEU},
    {"gtu", COMPARE, GTU}, {"geu", COMPARE, GEU}, {"num", COMPARE, NUM}, {"nan", COMPARE, NAN_},
    {"and", COMBINE, AND}, {"or", COMBINE, OR}, {"xor", COMBINE, XOR}, {"add", COMBINE, ADD}, {"min", COMBINE, MIN}, {"max", COMBINE, MAX},
    {"exch", COMBINE, EXCH}, {"cas", COMBINE, CAS}, {"inc", COMBINE, INC}, {"dec", COMBINE, DEC},
    {"rn", ROUNDING, NEAREST}, {"rz", ROUNDING, TO_ZERO}, {"rm", ROUNDING, DOWN}, {"rp", ROUNDING, UP},
    {"v2", VECTOR, 2}, {"v4", VECTOR, 4}, {"up", EXCHANGE, SHIFT_UP}, {"down", EXCHANGE, SHIFT_DOWN}, {"bfly", EXCHANGE, BUTTERFLY},
    {"idx", EXCHANGE, INDEX}, {"ballot", EXCHANGE, BALLOT}, {"any", EXCHANGE, ANY}, {"all", EXCHANGE, ALL},
    {"wide", BIT, WIDE}, {"hi", BIT, HIGH}, {"lo", BIT, LOW}, {"sat", BIT, SATURATE}, {"to", BIT, TO}, {"cc", BIT, CARRY_OUT}, {"wrap", BIT, WRAP},
    {"NaN", BIT, PROPAGATES_NAN}, {"l", BIT, LEFT}, {"r", NOTHING}, {"clamp", NOTHING},
    {"ftz", NOTHING}, {"approx", NOTHING}, {"full", NOTHING}, {"uni", NOTHING}, {"sync", NOTHING}, {"red", NOTHING}, {"popc", COMBINE, ADD}, {"aligned", NOTHING}, {"nc", NOTHING},
    {"volatile", NOTHING}, {"relaxed", NOTHING}, {"acquire", NOTHING}, {"release", NOTHING}, {"acq_rel", NOTHING}, {"sc", NOTHING},
    {"gpu", NOTHING}, {"cta", NOTHING}, {"sys", NOTHING}, {"gl", NOTHING}, {"warp", NOTHING}, {"weak", NOTHING}, {"L1", NOTHING}, {"L2", NOTHING},
    {"ca", NOTHING}, {"cg", NOTHING}, {"cs", NOTHING}, {"cv", NOTHING}, {"wb", NOTHING}, {"wt", NOTHING}, {"lu", NOTHING},
};

// Slots of a thread: one that nobody reads, special registers, then the kernel's registers and its constants.
enum slot { TRASH, CARRY, TID, NTID = TID + 3, CTAID = NTID + 3, NCTAID = CTAID + 3, LANE = NCTAID + 3, WARP_ID, MASK_LT, MASK_LE, MASK_GT, MASK_GE, MASK_EQ, ZERO, FIRST_SLOT };

static const struct { const char *name; int slot; } special[] = {
    {"%tid.x", TID}, {"%tid.y", TID + 1}, {"%tid.z", TID + 2}, {"%ntid.x", NTID}, {"%ntid.y", NTID + 1}, {"%ntid.z", NTID + 2},
    {"%ctaid.x", CTAID}, {"%ctaid.y", CTAID + 1}, {"%ctaid.z", CTAID + 2}, {"%nctaid.x", NCTAID}, {"%nctaid.y", NCTAID + 1},
    {"%nctaid.z", NCTAID + 2}, {"%laneid", LANE}, {"%warpid", WARP_ID}, {"%lanemask_lt", MASK_LT}, {"%lanemask_le", MASK_LE},
    {"%lanemask_gt", MASK_GT}, {"%lanemask_ge", MASK_GE}, {"%lanemask_eq", MASK_EQ}, {"%clock", ZERO}, {"%clock64", ZERO},
    {"%globaltimer", ZERO}, {"%smid", ZERO}, {"_", TRASH},
};

struct instruction {
    unsigned char operation, type, from, space, compare, combine, rounding, to_integer, vector, exchange;
    short bits;
    unsigned short braced, negated;  // elements of the first operand in braces; operands whose truth value is negated, by bit
    int guard, is_guard_negated;     // a predicate's slot, or 0
    int slots[MOST_OPERANDS], count;
    int also;                        // the second destination, behind "|"
    int base, target;                // memory's address; a branch
    long offset;
    const char *text;                // if it is UNKNOWN
};

struct module { const char *ptx; const void *image; struct variable { struct variable *next; char *name; void *memory; size_t size; } *variables; };

struct parameter { size_t at, size; };

struct kernel {
    const char *name;
    struct module *module;
    int is_read, waits;
    struct instruction *instructions;
    int count, slots, parameter_count;
    uint64_t *template;
    struct parameter *parameters;
    size_t parameter_bytes, shared_bytes, local_bytes;
};

struct launch { unsigned grid[3], block[3], shared; };

// Modules: PTX as text, or in a fat binary, compressed by LZ4.

static char *decompressed(const unsigned char *from, size_t size, size_t results) {
    char *text = calloc(results + 1, 1);
    const unsigned char *end = from + size;
    for (size_t at = 0; from < end;) {
        const unsigned token = *from++;
        size_t literals = token >> 4, repeats = token & 15;
        if (literals == 15) do literals += *from; while (*from++ == 255);
        if (at + literals > results) break;
        memcpy(text + at, from, literals);
        at += literals, from += literals;
        if (from >= end) return text;
        const size_t back = from[0] | from[1] << 8;
        from += 2;
        if (repeats == 15) do repeats += *from; while (*from++ == 255);
        repeats += 4;
        if (!back || back > at || at + repeats > results) break;
        for (; repeats; repeats--, at++) text[at] = text[at - back];
    }
    free(text);
    return NULL;
}

#define FIELD(of, type, at) (*(const type *)((const char *)(of) + (at)))

// The PTX of an image that a program gives the driver, or NULL.
static const char *ptx_of(const void *image) {
    enum { WRAPPER = 0x466243b1, FAT_BINARY = 0xba55ed50, IS_COMPRESSED = 0x2000 };
    if (!image) return NULL;
    if (FIELD(image, uint32_t, 0) == WRAPPER) image = FIELD(image, void *, 8);
    if (FIELD(image, uint32_t, 0) != FAT_BINARY) return *(const char *)image == '/' || *(const char *)image == '.' || *(const char *)image == '\n' ? strdup(image) : NULL;
    const char *entry = (const char *)image + FIELD(image, uint16_t, 6), *end = entry + FIELD(image, uint64_t, 8), *newest = NULL;
    for (; entry < end; entry += FIELD(entry, uint32_t, 4) + FIELD(entry, uint64_t, 8))
        if (FIELD(entry, uint16_t, 0) == 1 && (!newest || FIELD(entry, uint32_t, 28) > FIELD(newest, uint32_t, 28))) newest = entry;
    if (!newest) return NULL;
    const char *held = newest + FIELD(newest, uint32_t, 4);
    if (!(FIELD(newest, uint64_t, 40) & IS_COMPRESSED)) return strndup(held, FIELD(newest, uint64_t, 8));
    return decompressed((const unsigned char *)held, FIELD(newest, uint32_t, 16), FIELD(newest, uint64_t, 56));
}

static const char *text_of(struct module *module) {
    if (module->image) module->ptx = ptx_of(module->image), module->image = NULL;
    return module->ptx;
}

static size_t size_of_type(enum type type) {
    static const unsigned char sizes[] = {0, 1, 1, 2, 4, 8, 1, 2, 4, 8, 2, 4, 8, 4, 2};
    return type < OTHER_TYPE ? sizes[type] : 0;
}

static enum type type_named(const char *name, size_t length) {
    for (size_t at = 0; at < sizeof modifiers / sizeof *modifiers; at++)
        if (modifiers[at].what == TYPE && strlen(modifiers[at].name) == length && !strncmp(modifiers[at].name, name, length)) return modifiers[at].value;
    return NO_TYPE;
}

static int is_name(char letter) { return isalnum((unsigned char)letter) || letter == '_' || letter == '$' || letter == '%'; }

// A declaration, such as `.global .align 4 .b8 name[24] = {…}`: its name, size, alignment, and what follows the brackets.
struct declared { char name[MOST_NAME]; enum type type; size_t size, align; int is_array, count; const char *rest; };

static int read_declaration(const char *at, struct declared *of) {
    *of = (struct declared){.align = 1, .count = 1};
    while (*at && *at != ';') {
        while (isspace((unsigned char)*at)) at++;
        size_t length = 0;
        if (*at == '.') {
            while (is_name(at[1 + length])) length++;
            if (!strncmp(at + 1, "align", 5)) of->align = strtoul(at + 6, (char **)&at, 10);
            else if (!strncmp(at + 1, "ptr", 3)) at += 4;
            else {
                const enum type type = type_named(at + 1, length);
                if (type) of->type = type;
                at += 1 + length;
            }
            continue;
        }
        while (is_name(at[length])) length++;
        if (!length || length >= MOST_NAME) return 0;
        memcpy(of->name, at, length);
        at += length;
        of->size = size_of_type(of->type);
        if (of->align < of->size) of->align = of->size;
        if (*at == '<') of->count = strtol(at + 1, (char **)&at, 10), at++;
        while (isspace((unsigned char)*at)) at++;
        while (*at == '[') {
            of->is_array = 1;
            of->size *= strtoul(at + 1, (char **)&at, 10);
            at++;
        }
        of->rest = at;
        return of->type != NO_TYPE;
    }
    return 0;
}

// Where a module declares a variable outside of functions, or NULL. Its line begins with the space or with its linkage.
static const char *find_declaration(const char *ptx, const char *name) {
    const size_t length = strlen(name);
    for (const char *at = ptx; (at = strstr(at, name)); at += length) {
        const char *line = at;
        if (at > ptx && is_name(at[-1])) continue;
        if (is_name(at[length])) continue;
        while (line > ptx && line[-1] != '\n' && line[-1] != ';') line--;
        while (isspace((unsigned char)*line)) line++;
        for (const char *word; (word = *line == '.' ? line : NULL);) {
            if (!strncmp(word, ".global", 7) || !strncmp(word, ".const", 6) || !strncmp(word, ".shared", 7)) return word;
            if (strncmp(word, ".visible", 8) && strncmp(word, ".extern", 7) && strncmp(word, ".weak", 5) && strncmp(word, ".common", 7)) break;
            while (*line && !isspace((unsigned char)*line)) line++;
            while (isspace((unsigned char)*line)) line++;
        }
    }
    return NULL;
}

// A module's variable in global memory, with its first values; NULL if it has none of that name.
static struct variable *variable_of(struct module *module, const char *name) {
    struct declared declared;
    const char *ptx = text_of(module);
    for (struct variable *one = module->variables; one; one = one->next)
        if (!strcmp(one->name, name)) return one;
    const char *at = ptx ? find_declaration(ptx, name) : NULL;
    if (!at || !strncmp(at, ".shared", 7) || !read_declaration(at, &declared)) return NULL;
    struct variable *made = calloc(1, sizeof *made);
    *made = (struct variable){module->variables, strdup(name), aligned_alloc(256, (declared.size + 511) / 256 * 256), declared.size};
    memset(made->memory, 0, declared.size);
    const char *value = declared.rest;
    while (isspace((unsigned char)*value)) value++;
    const size_t width = size_of_type(declared.type);
    if (*value++ == '=')
        for (size_t element = 0; element * width < declared.size && *value != ';'; element++) {
            while (*value && *value != ';' && !isdigit((unsigned char)*value) && *value != '-') value++;
            if (*value == ';') break;
            const int is_float = *value == '0' && value[1] && strchr("fFdD", value[1]);
            const uint64_t bits = is_float ? strtoull(value + 2, (char **)&value, 16) : *value == '-' ? (uint64_t)strtoll(value, (char **)&value, 0) : strtoull(value, (char **)&value, 0);
            while (is_name(*value)) value++;  // a suffix: U
            memcpy((char *)made->memory + element * width, &bits, width);
        }
    return module->variables = made;
}

// Reading a kernel: names are those of the innermost braces.

struct symbol { char name[MOST_NAME]; int slot, count; enum space space; long offset; struct symbol *before; };
struct label { char name[MOST_NAME]; int at, is_use; struct label *before; };

struct reader { struct kernel *kernel; struct symbol *symbols; struct label *labels; int room, slot_room, depth; };

static int new_slots(struct reader *reader, int count) {
    struct kernel *kernel = reader->kernel;
    const int first = kernel->slots;
    kernel->slots += count;
    if (kernel->slots > reader->slot_room) {
        const int before = reader->slot_room;
        reader->slot_room = 2 * kernel->slots + 64;
        kernel->template = realloc(kernel->template, sizeof *kernel->template * (size_t)reader->slot_room);
        memset(kernel->template + before, 0, sizeof *kernel->template * (size_t)(reader->slot_room - before));
    }
    return first;
}

static int constant(struct reader *reader, uint64_t value) {
    const int slot = new_slots(reader, 1);
    reader->kernel->template[slot] = value;
    return slot;
}

static struct instruction *add(struct reader *reader, struct instruction instruction) {
    struct kernel *kernel = reader->kernel;
    if (kernel->count == reader->room) {
        reader->room = 2 * reader->room + 64;
        kernel->instructions = realloc(kernel->instructions, sizeof *kernel->instructions * (size_t)reader->room);
    }
    kernel->instructions[kernel->count] = instruction;
    return &kernel->instructions[kernel->count++];
}

static struct symbol *add_symbol(struct reader *reader, const char *name, struct symbol of) {
    struct symbol *made = malloc(sizeof *made);
    *made = of;
    snprintf(made->name, sizeof made->name, "%s", name);
    made->before = reader->symbols;
    return reader->symbols = made;
}

// A variable of the module, which is known in all braces: it comes behind all other names.
static struct symbol *add_module_symbol(struct reader *reader, const char *name, struct symbol of) {
    struct symbol *before = reader->symbols, *last = reader->symbols, *made = add_symbol(reader, name, of);
    if (!before) return made;
    while (last->before) last = last->before;
    reader->symbols = before;
    made->before = NULL;
    return last->before = made;
}

static size_t place(size_t *bytes, size_t size, size_t align) {
    const size_t at = (*bytes + align - 1) / align * align;
    *bytes = at + size;
    return at;
}

static void declare(struct reader *reader, const char *text) {
    struct declared declared;
    struct kernel *kernel = reader->kernel;
    if (!strncmp(text, ".reg", 4)) {
        const char *at = text + 4;
        while (at && read_declaration(at, &declared)) {
            add_symbol(reader, declared.name, (struct symbol){.slot = new_slots(reader, declared.count), .count = declared.rest[-1] == '>' ? declared.count : 0});
            at = strchr(declared.rest, ',');
            if (!at) break;
            // the names that follow are of the same type
            static __thread char next[4096];
            snprintf(next, sizeof next, ".b64 %s", at + 1);
            at = next;
        }
        return;
    }
    if (!read_declaration(text, &declared)) return;
    const int is_shared = !strncmp(text, ".shared", 7);
    size_t *bytes = is_shared ? &kernel->shared_bytes : &kernel->local_bytes;
    add_symbol(reader, declared.name, (struct symbol){.space = is_shared ? SHARED : LOCAL, .offset = (long)place(bytes, declared.size, declared.align)});
}

static struct symbol *find_symbol(struct reader *reader, const char *name) {
    size_t stem = strlen(name);
    while (stem && isdigit((unsigned char)name[stem - 1])) stem--;
    for (struct symbol *one = reader->symbols; one; one = one->before) {
        if (!one->count ? !strcmp(one->name, name) : strlen(one->name) == stem && !strncmp(one->name, name, stem) && atoi(name + stem) < one->count) return one;
    }
    // a variable of the module
    struct module *module = reader->kernel->module;
    const char *at = find_declaration(text_of(module), name);
    struct declared declared;
    if (at && !strncmp(at, ".shared", 7) && read_declaration(at, &declared))
        // what a launch gives has no size, and lies behind the rest
        return add_module_symbol(reader, name, (struct symbol){.space = SHARED, .offset = declared.size ? (long)place(&reader->kernel->shared_bytes, declared.size, declared.align) : -1});
    struct variable *variable = variable_of(module, name);
    return variable ? add_module_symbol(reader, name, (struct symbol){.space = GLOBAL, .offset = (long)(intptr_t)variable->memory}) : NULL;
}

// The slot of an operand; -1 if it has none, and another number where it is known when the kernel has been read.
enum { DYNAMIC_SHARED = -2 };

static int read_operand(struct reader *reader, char *text, struct instruction *of) {
    while (isspace((unsigned char)*text)) text++;
    for (char *end = text + strlen(text); end > text && isspace((unsigned char)end[-1]);) *--end = 0;
    if (isdigit((unsigned char)*text) || *text == '-') {
        if (*text == '0' && text[1] && strchr("fFdD", text[1])) return constant(reader, strtoull(text + 2, NULL, 16));
        return constant(reader, *text == '-' ? (uint64_t)strtoll(text, NULL, 0) : strtoull(text, NULL, 0));
    }
    for (size_t at = 0; at < sizeof special / sizeof *special; at++)
        if (!strcmp(special[at].name, text)) return special[at].slot;
    if (!strcmp(text, "WARP_SZ")) return constant(reader, WARP);
    char *plus = strchr(text, '+');
    const long further = plus ? strtol(plus + 1, NULL, 0) : 0;
    if (plus) *plus = 0;
    struct symbol *symbol = find_symbol(reader, text);
    if (!symbol) return -1;
    if (symbol->space) {
        if (symbol->space == SHARED && symbol->offset < 0) return DYNAMIC_SHARED;
        return constant(reader, (uint64_t)(symbol->offset + further));
    }
    size_t stem = strlen(symbol->name);
    return symbol->slot + (symbol->count ? atoi(text + stem) : 0);
}

static int add_operand(struct reader *reader, struct instruction *of, char *text) {
    while (isspace((unsigned char)*text)) text++;
    if (*text == '!') of->negated |= 1 << of->count, text++;
    char *second = strchr(text, '|');
    if (second) {
        *second = 0;
        of->also = read_operand(reader, second + 1, of);
        if (of->also < 0) return 0;
    }
    if (*text == '[') {
        text[strcspn(text, "]")] = 0;
        char *plus = strchr(text, '+'), *name = text + 1;
        of->offset = plus ? strtol(plus + 1, NULL, 0) : 0;
        if (plus) *plus = 0;
        while (isspace((unsigned char)*name)) name++;
        name[strcspn(name, " \t\n")] = 0;
        if (isdigit((unsigned char)*name)) return 0;
        struct symbol *symbol = find_symbol(reader, name);
        if (symbol && of->space == PARAM && symbol->space == LOCAL) of->space = LOCAL;  // an argument of a function
        of->base = read_operand(reader, name, of);
        return of->base >= 0 || of->base == DYNAMIC_SHARED;
    }
    if (of->count == MOST_OPERANDS) return 0;
    const int slot = read_operand(reader, text, of);
    if (slot == -1) return 0;
    of->slots[of->count++] = slot;
    return 1;
}

static int read_name(struct instruction *of, char *name) {
    char *rest, *part = strtok_r(name, ".", &rest);
    for (size_t at = 0; at < sizeof operations / sizeof *operations; at++)
        if (!strcmp(operations[at].name, part)) of->operation = operations[at].is;
    if (!of->operation) return 0;
    while ((part = strtok_r(NULL, ".", &rest))) {
        const size_t length = strlen(part);
        char *colons = strstr(part, "::");  // a hint about caches, or the space of this block
        if (colons) *colons = 0;
        if (length == 3 && part[0] == 'r' && part[2] == 'i' && strchr("nzmp", part[1])) {
            of->to_integer = 1;
            of->rounding = part[1] == 'n' ? NEAREST : part[1] == 'z' ? TO_ZERO : part[1] == 'm' ? DOWN : UP;
            continue;
        }
        size_t at = 0;
        while (at < sizeof modifiers / sizeof *modifiers && strcmp(modifiers[at].name, part)) at++;
        if (at == sizeof modifiers / sizeof *modifiers) return 0;
        const int value = modifiers[at].value;
        switch (modifiers[at].what) {
            case TYPE: if (of->type) of->from = value; else of->type = value; break;
            case SPACE: of->space = value; break;
            case COMPARE: of->compare = value; break;
            case COMBINE: of->combine = value; break;
            case ROUNDING: of->rounding = value; break;
            case VECTOR: of->vector = value; break;
            case EXCHANGE: of->exchange = value; break;
            case BIT: of->bits |= value; break;
            default: break;
        }
        if (of->operation == O_BAR && !strcmp(part, "warp")) of->operation = O_WARP_BAR;
    }
    if (of->operation == O_SETP && of->bits & LOW) of->compare = LO;
    if (of->operation == O_SETP && of->bits & HIGH) of->compare = HI;
    if (of->operation == O_VOTE && !of->exchange) return 0;
    if (of->operation == O_ATOM && of->vector) return 0;
    const int moves = of->operation == O_LD || of->operation == O_ST || of->operation == O_MOV || of->operation == O_SELP;
    if (of->type == BF16) return moves || of->operation == O_CVT;
    return of->type != F16X2 || moves || (of->operation != O_CVT && of->operation != O_ATOM && of->operation != O_SET);
}

static int read_function(struct reader *reader, const char *name, char *arguments);

// `call (result), function, (argument, …);`: the function's instructions take its place.
static int read_call(struct reader *reader, char *text) {
    char *result = NULL, *arguments = NULL, *name = text;
    if (*name == '(') {
        result = name + 1;
        name = strchr(name, ')');
        if (!name) return 0;
        *name++ = 0;
        name += strspn(name, ", \t\n");
    }
    char *end = name + strcspn(name, ", \t\n"), *open = strchr(end, '(');
    if (open && strchr(open, ')')) arguments = open + 1, *strchr(open, ')') = 0;
    *end = 0;
    static __thread char all[4096];
    snprintf(all, sizeof all, "%s,%s", result ? result : "", arguments ? arguments : "");
    return read_function(reader, name, all);
}

static void read_statement(struct reader *reader, const char *from, size_t length) {
    char *copy = strndup(from, length), *text = copy, *kept = strndup(from, length);
    struct instruction one = {0};
    int is_whole = 1;
    if (*text == '.') {
        declare(reader, text);
        free(copy), free(kept);
        return;
    }
    if (*text == '@') {
        text++;
        if (*text == '!') one.is_guard_negated = 1, text++;
        char *end = text + strcspn(text, " \t\n");
        *end = 0;
        one.guard = read_operand(reader, text, &one);
        text = end + 1;
        while (isspace((unsigned char)*text)) text++;
    }
    char *rest = text + strcspn(text, " \t\n"), name[128];
    if (*rest) *rest++ = 0;
    while (isspace((unsigned char)*rest)) rest++;
    snprintf(name, sizeof name, "%s", text);
    if (!strncmp(name, "call", 4)) {
        struct instruction skip = {.operation = O_BRA, .guard = one.guard, .is_guard_negated = !one.is_guard_negated};
        const int at = one.guard ? (add(reader, skip), reader->kernel->count - 1) : -1;
        is_whole = read_call(reader, rest);
        if (at >= 0) reader->kernel->instructions[at].target = reader->kernel->count + !is_whole;
        if (is_whole) {
            free(copy), free(kept);
            return;
        }
        one = (struct instruction){0};
    } else if ((is_whole = read_name(&one, name))) {
        if (one.operation == O_BRA) {
            struct label *use = malloc(sizeof *use);
            *use = (struct label){.at = reader->kernel->count, .is_use = 1, .before = reader->labels};
            snprintf(use->name, sizeof use->name, "%s", rest);
            use->name[strcspn(use->name, " \t\n")] = 0;
            reader->labels = use;
        } else {
            int is_reduction = !strncmp(text, "red", 3);
            if (is_reduction) one.slots[one.count++] = TRASH;
            for (int operands = 0; is_whole && *rest; operands++) {
                while (isspace((unsigned char)*rest)) rest++;
                if (*rest == '{') {
                    char *end = strchr(rest, '}');
                    const int before = one.count;
                    if (!end) { is_whole = 0; break; }
                    *end = 0;
                    for (char *part = rest + 1, *next; part; part = next) {
                        if ((next = strchr(part, ','))) *next++ = 0;
                        is_whole = is_whole && add_operand(reader, &one, part);
                    }
                    if (!operands) one.braced = (unsigned short)(one.count - before);
                    rest = end + 1;
                } else {
                    char *end = rest + strcspn(rest, ",");
                    const int is_last = !*end;
                    *end = 0;
                    is_whole = add_operand(reader, &one, rest);
                    rest = end + !is_last;
                }
                while (*rest == ',' || isspace((unsigned char)*rest)) rest++;
            }
        }
    }
    if (!is_whole) one = (struct instruction){.guard = one.guard, .is_guard_negated = one.is_guard_negated, .text = kept};
    else free(kept);
    if (one.operation == O_BAR || one.operation == O_SHFL || one.operation == O_VOTE || one.operation == O_WARP_BAR) reader->kernel->waits = 1;
    add(reader, one);
    free(copy);
}

// The statements up to the brace that ends the body, behind which `at` is.
static const char *read_body(struct reader *reader, const char *at) {
    struct label *outer = reader->labels;
    struct symbol *scopes[64] = {reader->symbols};
    int depth = 0;
    reader->labels = NULL;
    while (*at) {
        while (isspace((unsigned char)*at)) at++;
        if (*at == '{') {
            if (depth < 63) scopes[++depth] = reader->symbols;
            at++;
        } else if (*at == '}') {
            at++;
            if (!depth) break;
            while (reader->symbols != scopes[depth]) {
                struct symbol *gone = reader->symbols;
                reader->symbols = gone->before;
                free(gone);
            }
            depth--;
        } else {
            size_t length = 0;
            while (is_name(at[length])) length++;
            size_t colon = length;
            while (isspace((unsigned char)at[colon])) colon++;
            if (length && at[colon] == ':' && at[colon + 1] != ':') {
                struct label *made = malloc(sizeof *made);
                *made = (struct label){.at = reader->kernel->count, .before = reader->labels};
                snprintf(made->name, sizeof made->name, "%.*s", (int)length, at);
                reader->labels = made;
                at += colon + 1;
                continue;
            }
            if (!strncmp(at, ".loc ", 5) || !strncmp(at, ".file", 5) || !strncmp(at, "//", 2)) {
                at += strcspn(at, "\n");
                continue;
            }
            length = strcspn(at, ";");
            if (!at[length]) break;
            read_statement(reader, at, length);
            at += length + 1;
        }
    }
    for (struct label *use = reader->labels; use; use = use->before) {
        if (!use->is_use) continue;
        struct label *label = reader->labels;
        while (label && (label->is_use || strcmp(label->name, use->name))) label = label->before;
        struct instruction *branch = &reader->kernel->instructions[use->at];
        if (label) branch->target = label->at;
        else branch->operation = UNKNOWN, branch->text = strdup(use->name);
    }
    while (reader->labels) {
        struct label *gone = reader->labels;
        reader->labels = gone->before;
        free(gone);
    }
    reader->labels = outer;
    return at;
}

// Where a kernel or a function begins: its name, behind `.entry` or `.func`, and a body.
static const char *find_function(const char *ptx, const char *kind, const char *name) {
    const size_t length = strlen(name);
    for (const char *at = ptx; (at = strstr(at, name)); at += length) {
        const char *line = at, *end = at + length;
        if (is_name(at[-1]) || is_name(*end)) continue;
        end += strspn(end, " \t\n");
        if (*end != '(' && *end != '{') continue;
        // a function's result may be between
        while (line > ptx && *line != ';' && *line != '}') line--;
        const char *word = strstr(line, kind);
        if (!word || word > at) continue;
        const char *body = at + strcspn(at, "{;");
        if (*body == '{') return at;
    }
    return NULL;
}

static int read_function(struct reader *reader, const char *name, char *arguments) {
    const char *at = find_function(reader->kernel->module->ptx, ".func", name);
    if (!at || reader->depth > 8) return 0;
    const char *body = at + strcspn(at, "{") + 1;
    // the result's name is before the function's
    const char *start = at;
    while (start > reader->kernel->module->ptx && strncmp(start, ".func", 5)) start--;
    struct symbol *outer = reader->symbols;
    char *header = strndup(start + 5, (size_t)(body - start - 6));
    // the caller's names, in the order of the function's
    char *theirs[64];
    int count = 0, index = 0;
    for (char *part = arguments, *next; part && count < 64; part = next) {
        if ((next = strchr(part, ','))) *next++ = 0;
        part += strspn(part, " \t\n");
        part[strcspn(part, " \t\n")] = 0;
        if (*part) theirs[count++] = part;
    }
    int is_whole = 1;
    for (char *part = header; is_whole && (part = strstr(part, ".param")); index++) {
        struct declared declared;
        struct symbol *argument = index < count ? find_symbol(reader, theirs[index]) : NULL;
        is_whole = argument && read_declaration(part, &declared);
        if (is_whole) add_symbol(reader, declared.name, *argument);
        part += 6;
    }
    if (is_whole && index == count) {
        const int begin = reader->kernel->count;
        reader->depth++;
        read_body(reader, body);
        reader->depth--;
        for (int one = begin; one < reader->kernel->count; one++)
            if (reader->kernel->instructions[one].operation == O_RET) {
                reader->kernel->instructions[one].operation = O_BRA;
                reader->kernel->instructions[one].target = reader->kernel->count;
            }
    }
    while (reader->symbols != outer) {
        struct symbol *gone = reader->symbols;
        reader->symbols = gone->before;
        free(gone);
    }
    free(header);
    return is_whole && index == count;
}

// Read the kernel from its module. Without PTX, it has no instructions.
static void read_kernel(struct kernel *kernel) {
    struct reader reader = {.kernel = kernel};
    const char *ptx = kernel->module ? text_of(kernel->module) : NULL;
    const char *at = ptx ? find_function(ptx, ".entry", kernel->name) : NULL;
    kernel->is_read = 1;
    if (!at) return;
    new_slots(&reader, FIRST_SLOT);
    add_symbol(&reader, "", (struct symbol){.count = 0});
    const char *body = at + strcspn(at, "{") + 1;
    const char *header_end = at;
    while (*header_end != ')' && header_end < body) header_end++;
    char *header = strndup(at, (size_t)(header_end - at));
    kernel->parameters = calloc(MOST_PARAMETERS, sizeof *kernel->parameters);
    for (char *part = header; (part = strstr(part, ".param")) && kernel->parameter_count < MOST_PARAMETERS; part += 6) {
        struct declared declared;
        if (!read_declaration(part, &declared)) return;
        const size_t offset = place(&kernel->parameter_bytes, declared.size, declared.align);
        kernel->parameters[kernel->parameter_count++] = (struct parameter){offset, declared.size};
        add_symbol(&reader, declared.name, (struct symbol){.space = PARAM, .offset = (long)offset});
    }
    free(header);
    read_body(&reader, body);
    while (reader.symbols) {
        struct symbol *gone = reader.symbols;
        reader.symbols = gone->before;
        free(gone);
    }
    add(&reader, (struct instruction){.operation = O_RET});
    // what a launch adds to the shared memory lies behind the kernel's own
    const int dynamic = constant(&reader, (kernel->shared_bytes + 15) / 16 * 16);
    for (int one = 0; one < kernel->count; one++) {
        struct instruction *of = &kernel->instructions[one];
        if (of->base == DYNAMIC_SHARED) of->base = dynamic;
        for (int operand = 0; operand < of->count; operand++)
            if (of->slots[operand] == DYNAMIC_SHARED) of->slots[operand] = dynamic;
    }
}

// Running a kernel.

enum state { RUNS, ENDED, WAITS_FOR_BLOCK, WAITS_FOR_WARP };

struct thread { int at; enum state state; uint64_t *slots; char *local; };
struct block { struct kernel *kernel; char *shared, *parameters; long left; const char *lacks; };

static inline float as_float(uint64_t bits) { float value; memcpy(&value, &bits, sizeof value); return value; }

static char *memory_of(const struct block *block, const struct thread *thread, enum space space, uint64_t address) {
    switch (space) {
        case SHARED: return block->shared + (uint32_t)address;
        case LOCAL: return thread->local + (uint32_t)address;
        case PARAM: return block->parameters + (uint32_t)address;
        default: return (char *)(uintptr_t)address;
    }
}

static uint64_t loaded(const char *from, enum type type) {
    switch (type) {
        case S8: return (uint64_t)*(const int8_t *)from;
        case S16: return (uint64_t)*(const int16_t *)from;
        case S32: return (uint64_t)*(const int32_t *)from;
        default: {
            uint64_t bits = 0;
            memcpy(&bits, from, size_of_type(type));
            return bits;
        }
    }
}

static int is_float(enum type type) { return type >= F16; }
static int is_signed(enum type type) { return type >= S8 && type <= S64; }

static double number_of(uint64_t bits, enum type type) {
    switch (type) {
        case F16: { _Float16 value; memcpy(&value, &bits, sizeof value); return value; }
        case BF16: return as_float(bits << 16);
        case F32: return as_float(bits);
        default: { double value; memcpy(&value, &bits, sizeof value); return value; }
    }
}

static uint64_t bits_of(double number, enum type type) {
    uint64_t bits = 0;
    switch (type) {
        case F16: { _Float16 value = (_Float16)number; memcpy(&bits, &value, sizeof value); return bits; }
        case BF16: {
            float value = (float)number;
            uint32_t word;
            memcpy(&word, &value, sizeof word);
            return isnan(number) ? 0x7fff : (word + 0x7fff + (word >> 16 & 1)) >> 16;
        }
        case F32: { float value = (float)number; memcpy(&bits, &value, sizeof value); return bits; }
        default: memcpy(&bits, &number, sizeof number); return bits;
    }
}

static uint64_t converted(const struct instruction *of, uint64_t bits) {
    const enum type to = of->type, from = of->from;
    if (!is_float(from)) {
        const int width = (int)size_of_type(from) * 8;
        const int64_t whole = is_signed(from) ? (int64_t)(bits << (64 - width)) >> (64 - width) : (int64_t)(width == 64 ? bits : bits & ((1ull << width) - 1));
        if (!is_float(to)) {
            if (!(of->bits & SATURATE)) return (uint64_t)whole;
            const int room = (int)size_of_type(to) * 8;
            const __int128 value = is_signed(from) ? (__int128)whole : (__int128)(uint64_t)whole;
            const __int128 most = is_signed(to) ? ((__int128)1 << (room - 1)) - 1 : ((__int128)1 << room) - 1, least = is_signed(to) ? -most - 1 : 0;
            return (uint64_t)(value < least ? least : value > most ? most : value);
        }
        if (to == F32) {  // rounded once
            volatile float value;
            if (is_signed(from)) value = (float)whole; else value = (float)(uint64_t)whole;
            return bits_of(value, F32);
        }
        volatile double value;
        if (is_signed(from)) value = (double)whole; else value = (double)(uint64_t)whole;
        return bits_of(value, to);
    }
    double number = number_of(bits, from);
    if (of->to_integer || !is_float(to)) {
        switch (of->rounding) {
            case TO_ZERO: number = trunc(number); break;
            case DOWN: number = floor(number); break;
            case UP: number = ceil(number); break;
            default: number = nearbyint(number);
        }
    }
    if (is_float(to)) {
        if (of->bits & SATURATE) number = number > 0 ? number < 1 ? number : 1 : 0;
        volatile double rounded = number;
        return bits_of(rounded, to);
    }
    const int room = (int)size_of_type(to) * 8;
    if (isnan(number)) return room == 64 ? 1ull << 63 : 0;
    if (is_signed(to)) {
        const double most = ldexp(1, room - 1);
        return number >= most ? (1ull << (room - 1)) - 1 : number < -most ? (uint64_t)(-1ll << (room - 1)) : (uint64_t)(int64_t)number;
    }
    return number >= ldexp(1, room) ? room == 64 ? ~0ull : (1ull << room) - 1 : number <= 0 ? 0 : (uint64_t)number;
}

#define INTEGERS(X) \
    case U8: X(uint8_t, __int128) case U16: X(uint16_t, __int128) case U32: X(uint32_t, __int128) case U64: X(uint64_t, unsigned __int128) \
    case S8: X(int8_t, __int128) case S16: X(int16_t, __int128) case S32: X(int32_t, __int128) case S64: X(int64_t, __int128)
#define FLOATS(X) case F16: X(_Float16, double) case F32: X(float, float) case F64: X(double, double)

// Whether a comparison holds; `is_none`: one of them is no number.
static int holds(enum compare compare, int is_less, int is_equal, int is_none) {
    switch (compare) {
        case EQ: return is_equal;
        case NE: return !is_equal && !is_none;
        case LT: case LO: return is_less;
        case LE: case LS: return is_less || is_equal;
        case GT: case HI: return !is_less && !is_equal && !is_none;
        case GE: case HS: return !is_less && !is_none;
        case EQU: return is_equal || is_none;
        case NEU: return !is_equal;
        case LTU: return is_less || is_none;
        case LEU: return is_less || is_equal || is_none;
        case GTU: return !is_less && !is_equal;
        case GEU: return !is_less;
        case NUM: return !is_none;
        default: return is_none;
    }
}

static int compared(const struct instruction *of, enum type type, uint64_t first, uint64_t second) {
#define COMPARED(type, wide) { type a, b; memcpy(&a, &first, sizeof a), memcpy(&b, &second, sizeof b); return holds(of->compare, a < b, a == b, a != a || b != b); }
    switch (type) {
        INTEGERS(COMPARED)
        FLOATS(COMPARED)
        default: return holds(of->compare, (first & 1) < (second & 1), (first & 1) == (second & 1), 0);
    }
}

// The value that an atomic operation stores.
static uint64_t combined(const struct instruction *of, uint64_t old, uint64_t first, uint64_t second) {
    const size_t size = size_of_type(of->type);
    const uint64_t mask = size == 8 ? ~0ull : (1ull << 8 * size) - 1;
    switch (of->combine) {
        case AND: return old & first;
        case OR: return old | first;
        case XOR: return old ^ first;
        case EXCH: return first;
        case CAS: return (old & mask) == (first & mask) ? second : old;
        case INC: return (uint32_t)old >= (uint32_t)first ? 0 : old + 1;
        case DEC: return !(uint32_t)old || (uint32_t)old > (uint32_t)first ? first : old - 1;
        default: break;
    }
#define COMBINED(type, wide) { type a, b; memcpy(&a, &old, sizeof a), memcpy(&b, &first, sizeof b); \
        const type result = of->combine == ADD ? (type)(a + b) : of->combine == MIN ? (a < b ? a : b) : (a > b ? a : b); \
        uint64_t bits = 0; memcpy(&bits, &result, sizeof result); return bits; }
    switch (of->type) {
        INTEGERS(COMBINED)
        FLOATS(COMBINED)
        default: return old;
    }
}

static uint64_t bits_between(uint64_t value, unsigned start, unsigned length, int is_negative_possible, unsigned width) {
    start &= 255, length &= 255;
    const unsigned sign_at = start + length - 1 < width - 1 ? start + length - 1 : width - 1;
    const uint64_t sign = is_negative_possible && length && value >> sign_at & 1 ? ~0ull : 0;
    uint64_t result = sign;
    for (unsigned bit = 0; bit < length && bit < width; bit++) {
        const uint64_t one = start + bit < width ? value >> (start + bit) & 1 : sign & 1;
        result = (result & ~(1ull << bit)) | one << bit;
    }
    return result;
}

// Computes an instruction of arithmetic. Returns 0 if it has none of its type.
static int compute(const struct instruction *of, uint64_t *slots) {
    const uint64_t first = slots[of->slots[1]], second = slots[of->slots[2]], third = slots[of->slots[3]];
    uint64_t *result = &slots[of->slots[0]];
    const enum type type = of->type;
    const unsigned width = 8 * (unsigned)size_of_type(type);
#define TYPED(ctype, E) { ctype a, b, c; memcpy(&a, &first, sizeof a), memcpy(&b, &second, sizeof b), memcpy(&c, &third, sizeof c); \
        E; uint64_t bits = 0; memcpy(&bits, &r, sizeof r); *result = bits; return 1; }
#define SATURATED(r) if (of->bits & SATURATE) r = r > 0 ? r < 1 ? r : 1 : 0
#define BOTH(E_integer, E_float) switch (type) { INTEGERS(E_integer) FLOATS(E_float) default: return 0; }
#define ONLY_FLOATS(E) switch (type) { FLOATS(E) default: return 0; }
#define ONLY_INTEGERS(E) switch (type) { INTEGERS(E) default: return 0; }
    switch (of->operation) {
#define A(t, w) TYPED(t, t r = (t)((w)a + (w)b); if (of->bits & CARRY_OUT) slots[CARRY] = (uint64_t)((unsigned __int128)(first & (~0ull >> (64 - width))) + (second & (~0ull >> (64 - width))) >> width))
#define F(t, w) TYPED(t, volatile t x = a; t r = (t)(x + b); SATURATED(r))
        case O_ADD: BOTH(A, F)
#undef A
#undef F
#define A(t, w) TYPED(t, const unsigned __int128 all = (unsigned __int128)(first & (~0ull >> (64 - width))) + (second & (~0ull >> (64 - width))) + slots[CARRY]; t r = (t)all; if (of->bits & CARRY_OUT) slots[CARRY] = (uint64_t)(all >> width))
        case O_ADDC: ONLY_INTEGERS(A)
#undef A
#define A(t, w) TYPED(t, t r = (t)((w)a - (w)b); if (of->bits & CARRY_OUT) slots[CARRY] = (first & (~0ull >> (64 - width))) < (second & (~0ull >> (64 - width))))
#define F(t, w) TYPED(t, volatile t x = a; t r = (t)(x - b); SATURATED(r))
        case O_SUB: BOTH(A, F)
#undef A
#undef F
#define A(t, w) TYPED(t, const __int128 all = (__int128)(first & (~0ull >> (64 - width))) - (second & (~0ull >> (64 - width))) - (slots[CARRY] & 1); t r = (t)all; if (of->bits & CARRY_OUT) slots[CARRY] = all < 0)
        case O_SUBC: ONLY_INTEGERS(A)
#undef A
        case O_MUL: case O_MAD: case O_MADC: case O_FMA:
#define A(t, w) { \
            t a, b; memcpy(&a, &first, sizeof a), memcpy(&b, &second, sizeof b); \
            const w all = (w)a * (w)b; \
            const unsigned room = of->bits & WIDE ? 2 * width : width; \
            const uint64_t mask = ~0ull >> (64 - room); \
            uint64_t bits = (uint64_t)(of->bits & HIGH ? all >> width : all) & mask; \
            if (of->operation != O_MUL) { \
                const unsigned __int128 sum = (unsigned __int128)bits + (third & mask) + (of->operation == O_MADC ? slots[CARRY] : 0); \
                bits = (uint64_t)sum & mask; \
                if (of->bits & CARRY_OUT) slots[CARRY] = (uint64_t)(sum >> room); \
            } \
            *result = bits; return 1; }
#define F(t, w) TYPED(t, volatile t x = a; t r = of->operation == O_MUL ? (t)(x * b) : sizeof(t) == 8 ? (t)fma(x, b, c) : sizeof(t) == 4 ? (t)fmaf((float)x, (float)b, (float)c) : (t)((double)x * b + c); SATURATED(r))
            BOTH(A, F)
#undef A
#undef F
#define A(t, w) TYPED(t, t r = b ? (t)((w)a / (w)b) : (t)-1)
#define F(t, w) TYPED(t, volatile t x = a; t r = (t)(x / b))
        case O_DIV: BOTH(A, F)
#undef A
#undef F
#define A(t, w) TYPED(t, t r = b ? (t)((w)a % (w)b) : a)
        case O_REM: ONLY_INTEGERS(A)
#undef A
#define A(t, w) TYPED(t, t r = a < 0 ? (t)-(w)a : a)
#define F(t, w) TYPED(t, t r = signbit((double)a) ? -a : a)
        case O_ABS: BOTH(A, F)
#undef A
#undef F
#define A(t, w) TYPED(t, t r = (t)-(w)a)
#define F(t, w) TYPED(t, t r = -a)
        case O_NEG: BOTH(A, F)
#undef A
#undef F
#define A(t, w) TYPED(t, t r = a < b ? a : b)
#define F(t, w) TYPED(t, t r = a != a ? (of->bits & PROPAGATES_NAN ? a : b) : b != b ? (of->bits & PROPAGATES_NAN ? b : a) : a < b || (a == b && signbit((double)a)) ? a : b)
        case O_MIN: BOTH(A, F)
#undef A
#undef F
#define A(t, w) TYPED(t, t r = a > b ? a : b)
#define F(t, w) TYPED(t, t r = a != a ? (of->bits & PROPAGATES_NAN ? a : b) : b != b ? (of->bits & PROPAGATES_NAN ? b : a) : a > b || (a == b && !signbit((double)a)) ? a : b)
        case O_MAX: BOTH(A, F)
#undef A
#undef F
#define F(t, w) TYPED(t, volatile t x = a; t r = (t)(1 / x))
        case O_RCP: ONLY_FLOATS(F)
#undef F
#define F(t, w) TYPED(t, volatile double x = a; t r = (t)(sizeof(t) == 4 ? sqrtf((float)x) : sqrt(x)))
        case O_SQRT: ONLY_FLOATS(F)
#undef F
#define F(t, w) TYPED(t, t r = (t)(1 / sqrt((double)a)))
        case O_RSQRT: ONLY_FLOATS(F)
#undef F
#define F(t, w) TYPED(t, t r = (t)exp2((double)a))
        case O_EX2: ONLY_FLOATS(F)
#undef F
#define F(t, w) TYPED(t, t r = (t)log2((double)a))
        case O_LG2: ONLY_FLOATS(F)
#undef F
#define F(t, w) TYPED(t, t r = (t)sin((double)a))
        case O_SIN: ONLY_FLOATS(F)
#undef F
#define F(t, w) TYPED(t, t r = (t)cos((double)a))
        case O_COS: ONLY_FLOATS(F)
#undef F
#define F(t, w) TYPED(t, t r = (t)tanh((double)a))
        case O_TANH: ONLY_FLOATS(F)
#undef F
#define F(t, w) TYPED(t, t r = (t)copysign((double)b, (double)a))
        case O_COPYSIGN: ONLY_FLOATS(F)
#undef F
        case O_AND: *result = first & second; return 1;
        case O_OR: *result = first | second; return 1;
        case O_XOR: *result = first ^ second; return 1;
        case O_NOT: *result = type == PRED ? !(first & 1) : ~first; return 1;
        case O_CNOT: *result = !(first & (~0ull >> (64 - width))); return 1;
        case O_SHL: *result = (uint32_t)second >= width ? 0 : first << (uint32_t)second; return 1;
#define A(t, w) TYPED(t, const uint32_t by = (uint32_t)second; t r = (t)(by >= width ? (a < 0 ? -1 : 0) : a >> by))
        case O_SHR: ONLY_INTEGERS(A)
#undef A
        case O_SHF: {  // a and b are the low and the high word
            const uint64_t both = (first & 0xffffffff) | second << 32;
            const unsigned by = of->bits & WRAP ? third & 31 : (uint32_t)third < 32 ? (uint32_t)third : 32;
            *result = of->bits & LEFT ? (uint32_t)((by == 32 ? both << 32 : both << by) >> 32) : (uint32_t)(both >> by);
            return 1;
        }
        case O_POPC: *result = (uint64_t)__builtin_popcountll(first & (~0ull >> (64 - width))); return 1;
        case O_CLZ: { const uint64_t value = first & (~0ull >> (64 - width)); *result = value ? (uint64_t)__builtin_clzll(value) - (64 - width) : width; return 1; }
        case O_BFIND: {
            uint64_t value = first & (~0ull >> (64 - width));
            if (is_signed(type) && value >> (width - 1)) value = ~value & (~0ull >> (64 - width));
            *result = value ? 63 - (uint64_t)__builtin_clzll(value) : 0xffffffff;
            return 1;
        }
        case O_BREV: {
            uint64_t reversed = 0;
            for (unsigned bit = 0; bit < width; bit++) reversed |= (first >> bit & 1) << (width - 1 - bit);
            *result = reversed;
            return 1;
        }
        case O_BFE: *result = bits_between(first, (unsigned)second, (unsigned)third, is_signed(type), width); return 1;
        case O_BFI: {
            const uint64_t start = third & 255, length = slots[of->slots[4]] & 255;
            const uint64_t mask = start >= width || !length ? 0 : (length >= 64 ? ~0ull : (1ull << length) - 1) << start;
            *result = (second & ~mask) | (first << (start & 63) & mask);
            return 1;
        }
        case O_PRMT: {
            const uint64_t all = (first & 0xffffffff) | second << 32;
            uint64_t bytes = 0;
            for (int byte = 0; byte < 4; byte++) {
                const unsigned choice = third >> 4 * byte & 15;
                uint64_t value = all >> 8 * (choice & 7) & 255;
                if (choice & 8) value = value & 128 ? 255 : 0;
                bytes |= value << 8 * byte;
            }
            *result = bytes;
            return 1;
        }
        case O_LOP3: {
            const unsigned table = (unsigned)slots[of->slots[4]];
            uint64_t bits = 0;
            for (int row = 0; row < 8; row++)
                if (table >> row & 1) bits |= (row & 4 ? first : ~first) & (row & 2 ? second : ~second) & (row & 1 ? third : ~third);
            *result = bits;
            return 1;
        }
        default: return 0;
    }
}

// Two numbers of float16 in a register: each as one of its own.
static int compute_pair(const struct instruction *of, uint64_t *slots) {
    struct instruction one = *of;
    uint64_t halves[8 + 4] = {0}, results[2];
    one.type = F16;
    for (int operand = 0; operand < 4; operand++) one.slots[operand] = 4 + operand;
    one.bits &= ~CARRY_OUT;
    for (int half = 0; half < 2; half++) {
        for (int operand = 1; operand < 4; operand++) halves[4 + operand] = slots[of->slots[operand]] >> 16 * half & 0xffff;
        if (!compute(&one, halves)) return 0;
        results[half] = halves[4] & 0xffff;
    }
    slots[of->slots[0]] = results[0] | results[1] << 16;
    return 1;
}

// Run a thread until it ends or waits.
static void run_thread(struct block *block, struct thread *thread) {
    const struct instruction *instructions = block->kernel->instructions;
    uint64_t *slots = thread->slots;
    int at = thread->at;
    thread->state = RUNS;
    while (thread->state == RUNS) {
        const struct instruction *of = &instructions[at++];
        if (--block->left < 0) { block->lacks = "it is too long"; break; }
        if (of->guard && !(slots[of->guard] & 1) != of->is_guard_negated) continue;
        switch (of->operation) {
            case O_NOP: break;
            case O_BRA: at = of->target; break;
            case O_RET: thread->state = ENDED; break;
            case O_BAR: thread->state = WAITS_FOR_BLOCK; break;
            case O_SHFL: case O_VOTE: case O_WARP_BAR: thread->state = WAITS_FOR_WARP; break;
            case O_ACTIVEMASK: slots[of->slots[0]] = slots[MASK_EQ]; break;  // as if it ran alone
            case O_MOV:
                if (of->braced) {
                    const unsigned width = 8 * (unsigned)size_of_type(of->type) / of->braced;
                    const uint64_t whole = slots[of->slots[of->braced]];
                    for (int part = 0; part < of->braced; part++) slots[of->slots[part]] = whole >> width * (unsigned)part & (~0ull >> (64 - width));
                } else if (of->count > 2) {
                    const unsigned width = 8 * (unsigned)size_of_type(of->type) / (unsigned)(of->count - 1);
                    uint64_t whole = 0;
                    for (int part = 1; part < of->count; part++) whole |= (slots[of->slots[part]] & (~0ull >> (64 - width))) << width * (unsigned)(part - 1);
                    slots[of->slots[0]] = whole;
                } else slots[of->slots[0]] = slots[of->slots[1]];
                break;
            case O_LD: {
                const char *from = memory_of(block, thread, of->space, slots[of->base] + (uint64_t)of->offset);
                for (int part = 0; part < of->count; part++) slots[of->slots[part]] = loaded(from + (size_t)part * size_of_type(of->type), of->type);
                break;
            }
            case O_ST: {
                char *to = memory_of(block, thread, of->space, slots[of->base] + (uint64_t)of->offset);
                for (int part = 0; part < of->count; part++) memcpy(to + (size_t)part * size_of_type(of->type), &slots[of->slots[part]], size_of_type(of->type));
                break;
            }
            case O_ATOM: {
                char *memory = memory_of(block, thread, of->space, slots[of->base] + (uint64_t)of->offset);
                const uint64_t old = loaded(memory, of->type), stored = combined(of, old, slots[of->slots[1]], slots[of->slots[2]]);
                memcpy(memory, &stored, size_of_type(of->type));
                slots[of->slots[0]] = old;
                break;
            }
            case O_CVTA: {
                const uint64_t address = slots[of->slots[1]];
                const uint64_t begin = of->space == GLOBAL ? 0 : (uint64_t)(uintptr_t)memory_of(block, thread, of->space, 0);
                slots[of->slots[0]] = of->bits & TO ? address - begin : address + begin;
                break;
            }
            case O_CVT:
                if (of->rounding != NEAREST && is_float(of->type) && !of->to_integer) {
                    fesetround(of->rounding == TO_ZERO ? FE_TOWARDZERO : of->rounding == DOWN ? FE_DOWNWARD : FE_UPWARD);
                    slots[of->slots[0]] = converted(of, slots[of->slots[1]]);
                    fesetround(FE_TONEAREST);
                } else slots[of->slots[0]] = converted(of, slots[of->slots[1]]);
                break;
            case O_SELP: slots[of->slots[0]] = slots[of->slots[3]] & 1 ? slots[of->slots[1]] : slots[of->slots[2]]; break;
            case O_SET: case O_SETP: {
                // `set` has the type of its result before that of its operands
                const enum type type = of->operation == O_SET ? of->from : of->type;
                const uint64_t first = slots[of->slots[1]], second = slots[of->slots[2]];
                int is = compared(of, type == F16X2 ? F16 : type, first, second), other = !is;
                if (type == F16X2) other = compared(of, F16, first >> 16, second >> 16);
                if (of->combine) {
                    const int with = (int)(slots[of->slots[3]] & 1) ^ (of->negated >> 3 & 1);
                    is = of->combine == AND ? is & with : of->combine == OR ? is | with : is ^ with;
                    other = of->combine == AND ? other & with : of->combine == OR ? other | with : other ^ with;
                }
                slots[of->slots[0]] = of->operation == O_SETP ? (uint64_t)is : !is ? 0 : of->type == F32 ? bits_of(1, F32) : ~0ull;
                if (of->also) slots[of->also] = (uint64_t)other;
                break;
            }
            default: {
                const int is_directed = of->rounding != NEAREST;
                if (is_directed) fesetround(of->rounding == TO_ZERO ? FE_TOWARDZERO : of->rounding == DOWN ? FE_DOWNWARD : FE_UPWARD);
                const int is_computed = of->type == F16X2 ? compute_pair(of, slots) : compute(of, slots);
                if (is_directed) fesetround(FE_TONEAREST);
                if (!is_computed) {
                    block->lacks = of->text ? of->text : "an instruction of this type";
                    thread->state = ENDED;
                }
            }
        }
        if (block->lacks) break;
    }
    thread->at = at;
}

// Exchange registers between those threads of a warp that wait at the same instruction. Returns how many go on.
static int exchange(struct block *block, struct thread *threads, int count) {
    int going = 0;
    for (int lane = 0; lane < count; lane++) {
        if (threads[lane].state != WAITS_FOR_WARP) continue;
        const struct instruction *of = &block->kernel->instructions[threads[lane].at - 1];
        const int mask_at = of->operation == O_WARP_BAR ? 0 : of->operation == O_VOTE ? 2 : 4;
        const uint64_t wanted = of->count > mask_at ? threads[lane].slots[of->slots[mask_at]] : ~0ull;
        uint64_t there = 0, votes = 0, values[WARP] = {0};
        int is_whole = 1;
        for (int other = 0; other < count; other++) {
            if (!(wanted >> other & 1) || threads[other].state == ENDED) continue;
            is_whole = is_whole && threads[other].state == WAITS_FOR_WARP && threads[other].at == threads[lane].at;
            there |= 1ull << other;
        }
        if (!is_whole) continue;
        for (int other = 0; other < count; other++)
            if (there >> other & 1 && of->operation != O_WARP_BAR) {
                values[other] = threads[other].slots[of->slots[1]];
                votes |= (uint64_t)((values[other] & 1) ^ (of->negated >> 1 & 1)) << other;
            }
        for (int other = 0; other < count; other++) {
            if (!(there >> other & 1)) continue;
            uint64_t *slots = threads[other].slots;
            if (of->operation == O_VOTE)
                slots[of->slots[0]] = of->exchange == BALLOT ? votes : of->exchange == ANY ? votes != 0 : votes == there;
            if (of->operation == O_SHFL) {
                const int by = (int)(slots[of->slots[2]] & 31), clamp = (int)(slots[of->slots[3]] & 31), segment = (int)(slots[of->slots[3]] >> 8 & 31);
                const int most = (other & segment) | (clamp & ~segment), least = other & segment;
                int from = 0, is_inside = 0;
                switch (of->exchange) {
                    case SHIFT_UP: from = other - by, is_inside = from >= most; break;
                    case SHIFT_DOWN: from = other + by, is_inside = from <= most; break;
                    case BUTTERFLY: from = other ^ by, is_inside = from <= most; break;
                    default: from = least | (by & ~segment), is_inside = from <= most;
                }
                if (!is_inside) from = other;
                slots[of->slots[0]] = values[from & 31];
                if (of->also) slots[of->also] = (uint64_t)is_inside;
            }
            threads[other].state = RUNS;
            going++;
        }
    }
    return going;
}

// Let the threads of a block go on that all wait at a barrier, which may count their truth values.
static void meet(struct block *block, struct thread *threads, int count) {
    const struct instruction *instructions = block->kernel->instructions;
    uint64_t true_ones = 0, there = 0;
    for (int one = 0; one < count; one++) {
        if (threads[one].state != WAITS_FOR_BLOCK) continue;
        const struct instruction *of = &instructions[threads[one].at - 1];
        const int last = of->count - 1;
        there++;
        if (of->combine) true_ones += (threads[one].slots[of->slots[last]] & 1) ^ (of->negated >> last & 1);
    }
    for (int one = 0; one < count; one++) {
        if (threads[one].state != WAITS_FOR_BLOCK) continue;
        const struct instruction *of = &instructions[threads[one].at - 1];
        if (of->combine) threads[one].slots[of->slots[0]] = of->combine == ADD ? true_ones : of->combine == OR ? true_ones > 0 : true_ones == there;
        threads[one].state = RUNS;
    }
}

static void run_block(struct block *block, struct thread *threads, int count) {
    for (int running = count; running && !block->lacks;) {
        int going = 0, ended = 0, waiting = 0;
        for (int first = 0; first < count && !block->lacks; first += WARP) {
            const int lanes = count - first < WARP ? count - first : WARP;
            do
                for (int lane = first; lane < first + lanes && !block->lacks; lane++)
                    if (threads[lane].state == RUNS) run_thread(block, &threads[lane]), going++;
            while (!block->lacks && block->kernel->waits && exchange(block, threads + first, lanes));
        }
        for (int one = 0; one < count; one++) ended += threads[one].state == ENDED, waiting += threads[one].state == WAITS_FOR_BLOCK;
        running = count - ended;
        if (running && waiting == running) meet(block, threads, count);
        else if (running && !going) block->lacks = "threads that wait for each other";
    }
}

static pthread_mutex_t reading = PTHREAD_MUTEX_INITIALIZER;

// Compute a launch of the kernel. Returns why it is not computed, or NULL.
static const char *run_kernel(struct kernel *kernel, const struct launch *launch, void **arguments) {
    pthread_mutex_lock(&reading);
    if (!kernel->is_read) read_kernel(kernel);
    pthread_mutex_unlock(&reading);
    if (!kernel->count) return "there is no PTX of it";
    fenv_t before;  // TensorFlow's threads replace subnormal numbers by 0
    fegetenv(&before), fesetenv(FE_DFL_ENV);
    const int count = (int)(launch->block[0] * launch->block[1] * launch->block[2]);
    const int held = kernel->waits ? count : 1;
    const size_t local_bytes = (kernel->local_bytes + 63) / 64 * 64, slots = (size_t)kernel->slots;
    struct block block = {.kernel = kernel, .left = MOST_INSTRUCTIONS};
    struct thread *threads = calloc((size_t)count, sizeof *threads);
    uint64_t *registers = malloc(sizeof *registers * slots * (size_t)held);
    char *local = calloc(local_bytes * (size_t)held + 1, 1);
    block.shared = aligned_alloc(256, (kernel->shared_bytes + launch->shared + 511) / 256 * 256);
    block.parameters = aligned_alloc(256, (kernel->parameter_bytes + 511) / 256 * 256);
    for (int one = 0; one < kernel->parameter_count; one++)
        memcpy(block.parameters + kernel->parameters[one].at, arguments[one], kernel->parameters[one].size);
    unsigned where[3];
    for (where[2] = 0; where[2] < launch->grid[2]; where[2]++)
        for (where[1] = 0; where[1] < launch->grid[1]; where[1]++)
            for (where[0] = 0; where[0] < launch->grid[0] && !block.lacks; where[0]++) {
                for (int one = 0; one < count && !block.lacks; one++) {
                    struct thread *thread = &threads[one];
                    const int own = kernel->waits ? one : 0, lane = one % WARP;
                    *thread = (struct thread){.slots = registers + slots * (size_t)own, .local = local + local_bytes * (size_t)own};
                    uint64_t *values = memcpy(thread->slots, kernel->template, sizeof *values * slots);
                    values[TID] = (unsigned)one % launch->block[0];
                    values[TID + 1] = (unsigned)one / launch->block[0] % launch->block[1];
                    values[TID + 2] = (unsigned)one / launch->block[0] / launch->block[1];
                    for (int axis = 0; axis < 3; axis++) {
                        values[NTID + axis] = launch->block[axis];
                        values[CTAID + axis] = where[axis];
                        values[NCTAID + axis] = launch->grid[axis];
                    }
                    values[LANE] = (uint64_t)lane;
                    values[WARP_ID] = (uint64_t)(one / WARP);
                    values[MASK_EQ] = 1ull << lane;
                    values[MASK_LT] = values[MASK_EQ] - 1;
                    values[MASK_LE] = values[MASK_LT] | values[MASK_EQ];
                    values[MASK_GE] = 0xffffffff & ~values[MASK_LT];
                    values[MASK_GT] = 0xffffffff & ~values[MASK_LE];
                    if (!kernel->waits) run_thread(&block, thread);
                }
                if (kernel->waits) run_block(&block, threads, count);
            }
    fesetenv(&before);
    free(threads), free(registers), free(local), free(block.shared), free(block.parameters);
    return block.lacks;
}
#endif
