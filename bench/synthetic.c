/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: bench, over bench/source.h. A kernel-like tree made up from a seed, for when no real one
 * is at hand: the directories of a Linux tree of 2002, each with its share of the files, names put
 * together from words, sizes log-normal with a kernel tree's spread, and text for contents. Integer
 * arithmetic only, so that every machine makes the same tree.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "bench/source.h"
#include "fs/random.h"

#define POOL_BYTES (4u << 20)
#define TREE_TOP   "linux-2.5.45"
/* 2002-10-31 00:43:00 UTC, about when that kernel came out. */
#define TREE_SECONDS INT64_C(1036024980)

enum mix { MIX_SOURCE, MIX_HEADERS, MIX_ARCH, MIX_TEXT };

/* What lies below one directory of the tree. `weight` is its share of the files (a kernel tree of
 * that time has about so many there), `subdirs` the number of directories below it. */
struct subsystem {
    const char *path;
    uint16_t weight;
    uint16_t subdirs;
    enum mix mix;
};

static const struct subsystem subsystems[] = {
    {"Documentation", 700, 48, MIX_TEXT},
    {"arch/alpha", 150, 8, MIX_ARCH},
    {"arch/arm", 480, 30, MIX_ARCH},
    {"arch/cris", 100, 7, MIX_ARCH},
    {"arch/i386", 280, 12, MIX_ARCH},
    {"arch/ia64", 250, 14, MIX_ARCH},
    {"arch/m68k", 220, 14, MIX_ARCH},
    {"arch/mips", 530, 40, MIX_ARCH},
    {"arch/mips64", 180, 12, MIX_ARCH},
    {"arch/parisc", 120, 6, MIX_ARCH},
    {"arch/ppc", 380, 16, MIX_ARCH},
    {"arch/ppc64", 130, 6, MIX_ARCH},
    {"arch/s390", 80, 5, MIX_ARCH},
    {"arch/s390x", 80, 5, MIX_ARCH},
    {"arch/sh", 150, 12, MIX_ARCH},
    {"arch/sparc", 110, 6, MIX_ARCH},
    {"arch/sparc64", 120, 6, MIX_ARCH},
    {"arch/um", 140, 10, MIX_ARCH},
    {"arch/v850", 60, 3, MIX_ARCH},
    {"arch/x86_64", 100, 6, MIX_ARCH},
    {"crypto", 30, 0, MIX_SOURCE},
    {"drivers/acpi", 170, 12, MIX_SOURCE},
    {"drivers/atm", 50, 0, MIX_SOURCE},
    {"drivers/block", 60, 2, MIX_SOURCE},
    {"drivers/bluetooth", 20, 0, MIX_SOURCE},
    {"drivers/cdrom", 20, 0, MIX_SOURCE},
    {"drivers/char", 320, 14, MIX_SOURCE},
    {"drivers/ide", 105, 5, MIX_SOURCE},
    {"drivers/ieee1394", 40, 0, MIX_SOURCE},
    {"drivers/input", 125, 7, MIX_SOURCE},
    {"drivers/isdn", 320, 16, MIX_SOURCE},
    {"drivers/macintosh", 40, 0, MIX_SOURCE},
    {"drivers/md", 30, 0, MIX_SOURCE},
    {"drivers/media", 165, 6, MIX_SOURCE},
    {"drivers/message", 40, 3, MIX_SOURCE},
    {"drivers/mtd", 105, 5, MIX_SOURCE},
    {"drivers/net", 800, 22, MIX_SOURCE},
    {"drivers/parport", 20, 0, MIX_SOURCE},
    {"drivers/pci", 60, 2, MIX_SOURCE},
    {"drivers/pcmcia", 50, 0, MIX_SOURCE},
    {"drivers/pnp", 30, 3, MIX_SOURCE},
    {"drivers/s390", 90, 7, MIX_SOURCE},
    {"drivers/sbus", 60, 3, MIX_SOURCE},
    {"drivers/scsi", 420, 14, MIX_SOURCE},
    {"drivers/serial", 60, 0, MIX_SOURCE},
    {"drivers/telephony", 10, 0, MIX_SOURCE},
    {"drivers/usb", 270, 14, MIX_SOURCE},
    {"drivers/video", 320, 14, MIX_SOURCE},
    {"fs", 800, 52, MIX_SOURCE},
    {"include/acpi", 30, 1, MIX_HEADERS},
    {"include/asm-alpha", 110, 0, MIX_HEADERS},
    {"include/asm-arm", 260, 24, MIX_HEADERS},
    {"include/asm-cris", 80, 1, MIX_HEADERS},
    {"include/asm-generic", 20, 0, MIX_HEADERS},
    {"include/asm-i386", 120, 4, MIX_HEADERS},
    {"include/asm-ia64", 140, 2, MIX_HEADERS},
    {"include/asm-m68k", 110, 0, MIX_HEADERS},
    {"include/asm-mips", 230, 14, MIX_HEADERS},
    {"include/asm-parisc", 90, 0, MIX_HEADERS},
    {"include/asm-ppc", 130, 0, MIX_HEADERS},
    {"include/asm-sh", 90, 0, MIX_HEADERS},
    {"include/asm-sparc", 120, 0, MIX_HEADERS},
    {"include/asm-sparc64", 120, 0, MIX_HEADERS},
    {"include/asm-x86_64", 90, 0, MIX_HEADERS},
    {"include/linux", 740, 20, MIX_HEADERS},
    {"include/math-emu", 20, 0, MIX_HEADERS},
    {"include/net", 90, 2, MIX_HEADERS},
    {"include/pcmcia", 20, 0, MIX_HEADERS},
    {"include/sound", 60, 0, MIX_HEADERS},
    {"include/video", 20, 0, MIX_HEADERS},
    {"init", 8, 0, MIX_SOURCE},
    {"ipc", 6, 0, MIX_SOURCE},
    {"kernel", 45, 1, MIX_SOURCE},
    {"lib", 35, 1, MIX_SOURCE},
    {"mm", 30, 0, MIX_SOURCE},
    {"net", 550, 32, MIX_SOURCE},
    {"scripts", 70, 4, MIX_SOURCE},
    {"security", 12, 0, MIX_SOURCE},
    {"sound", 430, 30, MIX_SOURCE},
    {"usr", 5, 0, MIX_SOURCE},
};
#define SUBSYSTEMS (sizeof(subsystems) / sizeof(*subsystems))

/* 64 words: a file is named by two of them, so a directory has room for 4,096 names of a kind. */
static const char *const words[64] = {
    "acc",  "addr",  "alloc", "apm",  "audio", "base",  "bit",   "boot",  "buf",  "bus",   "cache",
    "card", "chip",  "clk",   "core", "ctl",   "cpu",   "debug", "dev",   "dma",  "entry", "event",
    "exec", "fault", "fifo",  "file", "flash", "gen",   "head",  "host",  "hw",   "init",  "inode",
    "intr", "io",    "irq",   "key",  "link",  "lock",  "mach",  "main",  "map",  "mem",   "misc",
    "mod",  "msg",   "op",    "page", "path",  "pci",   "phy",   "pm",    "port", "proc",  "queue",
    "ring", "setup", "sig",   "smp",  "sys",   "table", "time",  "trace", "user"};
#define NAMES  4096u
#define STRIDE 1277u /* coprime to NAMES: visits every pair of words once */

/* A kind of file: its share in each mix (permille) and its size relative to the others. */
struct kind {
    const char *suffix;
    uint16_t share[4]; /* by enum mix */
    uint16_t size_permille;
};

static const struct kind kinds[] = {
    {".c", {640, 0, 560, 30}, 1450}, {".h", {320, 970, 200, 10}, 620},
    {".S", {10, 0, 190, 0}, 700},    {".txt", {0, 0, 0, 760}, 900},
    {"", {10, 10, 20, 200}, 800},    {".pl", {20, 20, 30, 0}, 300},
};
#define KINDS (sizeof(kinds) / sizeof(*kinds))

/* Quantiles 0/64 .. 64/64 of a log-normal distribution, in thousandths of its median; sigma 1.31,
 * which gives a mean 2.4 times the median as kernel trees have; ends cut at 0.05 %. */
static const uint32_t size_quantiles[65] = {
    13,   60,   87,   111,  134,  156,  178,  200,  222,  244,  266,   289,   313,
    337,  362,  387,  413,  440,  468,  497,  527,  558,  590,  624,   659,   695,
    733,  772,  814,  857,  902,  950,  1000, 1053, 1108, 1167, 1229,  1295,  1364,
    1439, 1518, 1603, 1694, 1792, 1897, 2011, 2135, 2271, 2420, 2583,  2765,  2968,
    3197, 3457, 3755, 4102, 4513, 5008, 5621, 6407, 7461, 8984, 11475, 16803, 74484};

/* --- the list of files before it is a source ------------------------------------------------- */

struct draft {
    char path[160];
    uint64_t size; /* in arbitrary units until they are scaled */
    uint64_t pool_start;
    uint32_t mode;
    int64_t seconds;
};

struct plan {
    struct random random;
    struct draft *drafts;
    uint32_t count, capacity;
};

static struct draft *plan_add(struct plan *plan) {
    struct draft *draft;

    if (plan->count == plan->capacity)
        return NULL;
    draft = &plan->drafts[plan->count++];
    draft->pool_start = random_next(&plan->random) % POOL_BYTES;
    draft->mode = S_IFREG | 0644;
    draft->seconds = TREE_SECONDS - random_below(&plan->random, 86400u * 700u);
    return draft;
}

static uint64_t random_size(struct random *random, uint32_t permille) {
    uint32_t at = random_below(random, 64u << 10);
    uint64_t low = size_quantiles[at >> 10], high = size_quantiles[(at >> 10) + 1];
    uint64_t median = (low << 10) + (high - low) * (at & 1023u);

    return median * permille / 1000 + 1;
}

static const struct kind *random_kind(struct random *random, enum mix mix) {
    uint32_t at = random_below(random, 1000);

    for (size_t i = 0; i < KINDS; i++) {
        if (at < kinds[i].share[mix])
            return &kinds[i];
        at -= kinds[i].share[mix];
    }
    return &kinds[0];
}

/* The `number`th file of a directory whose names start at `first` in the cycle of word pairs. */
static void draft_file(struct plan *plan, const char *dir, uint32_t first, uint32_t number,
                       enum mix mix) {
    struct draft *draft = plan_add(plan);
    uint32_t pair = (first + number * STRIDE) % NAMES;

    if (number == 0 && mix != MIX_TEXT && mix != MIX_HEADERS) {
        snprintf(draft->path, sizeof(draft->path), "%.95s/Makefile", dir);
        draft->size = random_size(&plan->random, 120);
        return;
    }
    const struct kind *kind = random_kind(&plan->random, mix);
    snprintf(draft->path, sizeof(draft->path), "%.95s/%s%s%s%s", dir, words[pair / 64],
             pair % 3 ? "_" : "", words[pair % 64], kind->suffix);
    draft->size = random_size(&plan->random, kind->size_permille);
}

/* Names the subsystem's directories: most lie right under it, some one or two levels deeper. */
static void name_directories(struct plan *plan, const struct subsystem *subsystem,
                             char (*dirs)[96]) {
    uint32_t first = random_below(&plan->random, NAMES);

    snprintf(dirs[0], sizeof(dirs[0]), TREE_TOP "/%s", subsystem->path);
    for (uint32_t i = 1; i <= subsystem->subdirs; i++) {
        uint32_t above = random_below(&plan->random, 100) < 70 ? 0 : random_below(&plan->random, i);
        uint32_t pair = (first + i * STRIDE) % NAMES;
        size_t length = strlen(dirs[above]);
        if (length > 70) /* deep enough */
            length = strlen(dirs[above = 0]);
        memcpy(dirs[i], dirs[above], length);
        snprintf(dirs[i] + length, sizeof(dirs[i]) - length, "/%s%s", words[pair / 64],
                 words[pair % 64]);
    }
}

#define SUBDIRS_MAX 64

static void draft_subsystem(struct plan *plan, const struct subsystem *subsystem, uint32_t files) {
    char dirs[SUBDIRS_MAX][96];
    uint32_t first[SUBDIRS_MAX], held[SUBDIRS_MAX] = {0};

    name_directories(plan, subsystem, dirs);
    for (uint32_t i = 0; i <= subsystem->subdirs; i++)
        first[i] = random_below(&plan->random, NAMES);
    for (uint32_t i = 0; i < files; i++) {
        /* One for each directory, then a fifth to the top and the rest spread, crowding the early
         * ones as real trees do. */
        uint32_t dir = i;
        if (i > subsystem->subdirs)
            dir = random_below(&plan->random, 5) == 0
                      ? 0
                      : random_below(&plan->random,
                                     1 + random_below(&plan->random, subsystem->subdirs + 1u));
        draft_file(plan, dirs[dir], first[dir], held[dir]++, subsystem->mix);
    }
}

static void draft_top(struct plan *plan) {
    static const char *const names[] = {"COPYING", "CREDITS",    "MAINTAINERS",   "Makefile",
                                        "README",  "Rules.make", "REPORTING-BUGS"};

    for (size_t i = 0; i < sizeof(names) / sizeof(*names) && plan->count < plan->capacity; i++) {
        struct draft *draft = plan_add(plan);
        snprintf(draft->path, sizeof(draft->path), TREE_TOP "/%s", names[i]);
        draft->size = random_size(&plan->random, 1500);
    }
}

static void draft_all(struct plan *plan) {
    uint32_t total = 0, passed = 0, done = 0;

    draft_top(plan);
    uint32_t rest = plan->capacity - plan->count;
    for (size_t i = 0; i < SUBSYSTEMS; i++)
        total += subsystems[i].weight;
    for (size_t i = 0; i < SUBSYSTEMS; i++) {
        passed += subsystems[i].weight;
        uint32_t until = (uint32_t)((uint64_t)rest * passed / total);
        draft_subsystem(plan, &subsystems[i], until - done);
        done = until;
    }
}

/* --- making it a source ---------------------------------------------------------------------- */

/* A directory's contents follow it at once: '/' sorts before every other byte. */
static int by_path(const void *left, const void *right) {
    const unsigned char *a = (const unsigned char *)((const struct draft *)left)->path;
    const unsigned char *b = (const unsigned char *)((const struct draft *)right)->path;

    while (*a && *a == *b)
        a++, b++;
    return (*a == '/' ? 1 : *a) - (*b == '/' ? 1 : *b);
}

/* Makes the sizes add up to `bytes`, give or take a byte a file. */
static void scale_sizes(struct plan *plan, uint64_t bytes) {
    unsigned __int128 sum = 0;

    for (uint32_t i = 0; i < plan->count; i++)
        sum += plan->drafts[i].size;
    for (uint32_t i = 0; i < plan->count; i++)
        plan->drafts[i].size = (uint64_t)((unsigned __int128)plan->drafts[i].size * bytes / sum);
}

static int add_drafts(struct source *source, const struct plan *plan) {
    for (uint32_t i = 0; i < plan->count; i++) {
        const struct draft *draft = &plan->drafts[i];
        struct timestamp mtime = {.seconds = draft->seconds};
        struct source_entry *entry;
        int error = source_add(source, draft->path, draft->mode, mtime, &entry);
        if (error)
            return error;
        entry->size = draft->size;
        entry->pool_start = draft->pool_start;
    }
    return 0;
}

/* Lines of words with some indentation: compresses about as source text does. */
static int fill_pool(struct source *source, struct random *random) {
    uint64_t at = 0;

    source->pool = malloc(POOL_BYTES);
    if (!source->pool)
        return -ENOMEM;
    source->pool_size = POOL_BYTES;
    while (at < POOL_BYTES) {
        uint64_t bits = random_next(random);
        const char *word = words[bits & 63];
        char end = (bits >> 6 & 7) == 0 ? '\n' : " ,();_*="[bits >> 9 & 7];
        for (; *word && at < POOL_BYTES; word++)
            source->pool[at++] = *word;
        if (at < POOL_BYTES)
            source->pool[at++] = end;
    }
    return 0;
}

int source_synthetic(uint32_t files, uint64_t bytes, uint64_t seed, const struct log *log,
                     struct source **result) {
    struct plan plan = {.random = {.state = seed}, .capacity = files};
    struct source *source;
    int error;

    if (files < 1000) {
        log_error(log, "synthetic tree: %u files asked for, at least 1000 are needed", files);
        return -EINVAL;
    }
    error = source_create(&source);
    if (error)
        return error;
    plan.drafts = calloc(files, sizeof(*plan.drafts));
    error = plan.drafts ? fill_pool(source, &plan.random) : -ENOMEM;
    if (!error) {
        draft_all(&plan);
        scale_sizes(&plan, bytes);
        qsort(plan.drafts, plan.count, sizeof(*plan.drafts), by_path);
        error = add_drafts(source, &plan);
    }
    free(plan.drafts);
    if (error) {
        log_error(log, "synthetic tree: %s", strerror(-error));
        source_close(source);
        return error;
    }
    source_finish(source);
    snprintf(source->description, sizeof(source->description),
             "synthetic kernel-like tree, seed %llu", (unsigned long long)seed);
    *result = source;
    return 0;
}
