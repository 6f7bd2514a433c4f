/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: crash. Interface: crash/state.h.
 */
#include "crash/state.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fs/device/fork.h"
#include "fs/random.h"

/* --- names ------------------------------------------------------------------------------------ */

void state_text(const struct state *state, char text[STATE_TEXT_SIZE]) {
    if (state->kind == STATE_ALL)
        snprintf(text, STATE_TEXT_SIZE, "%zu.a", state->cut);
    else
        snprintf(text, STATE_TEXT_SIZE, "%zu.%c%" PRIu32, state->cut, (char)state->kind,
                 state->argument);
}

/* Where the flush epoch that holds the cut begins. */
static size_t epoch_start(const struct write_log *log, size_t cut) {
    while (cut > 0 && log->records[cut - 1].kind != RECORD_FLUSH)
        cut--;
    return cut;
}

static uint32_t epoch_writes(const struct write_log *log, size_t cut) {
    uint32_t writes = 0;

    for (size_t i = epoch_start(log, cut); i < cut; i++)
        writes += log->records[i].kind == RECORD_WRITE;
    return writes;
}

static bool state_exists(const struct state *state, const struct write_log *log) {
    switch (state->kind) {
    case STATE_DROP:
    case STATE_KEEP:
        return state->argument < epoch_writes(log, state->cut);
    case STATE_ALL:
    case STATE_RANDOM:
    case STATE_TORN:
        return true;
    }
    return false;
}

/* What is not spelled as we spell it (signs, spaces, more behind it) is no name. */
int state_parse(const char *text, const struct write_log *log, size_t start, struct state *state) {
    char kind, spelled[STATE_TEXT_SIZE];
    int fields = sscanf(text, "%zu.%c%" SCNu32, &state->cut, &kind, &state->argument);

    if (fields < 2)
        return -EINVAL;
    state->kind = (enum state_kind)kind;
    if (fields == 2)
        state->argument = 0;
    state_text(state, spelled);
    if (strcmp(spelled, text) != 0 || state->cut < start || state->cut > log->count)
        return -EINVAL;
    return state_exists(state, log) ? 0 : -EINVAL;
}

/* --- the list --------------------------------------------------------------------------------- */

static int add_state(struct state_list *list, size_t cut, enum state_kind kind, uint32_t argument) {
    if (list->count == list->room) {
        size_t room = list->room ? list->room * 2 : 256;
        struct state *states = reallocarray(list->states, room, sizeof(*states));

        if (!states)
            return -ENOMEM;
        list->states = states;
        list->room = room;
    }
    list->states[list->count++] = (struct state){cut, kind, argument};
    return 0;
}

void state_list_free(struct state_list *list) {
    free(list->states);
    *list = (struct state_list){0};
}

/* Super blocks are taken to be written whole: formats whose super block has one checksum over two
 * sectors count on it. */
static bool can_tear(const struct record *record) {
    return record->purpose != PURPOSE_SUPER && record->length >= 2 * DEVICE_SECTOR;
}

/* The states between one write and the next. */
static int add_boundary(const struct write_log *log, size_t write, size_t next, bool tear,
                        struct state_list *list) {
    const struct record *record = &log->records[write];
    uint32_t sectors = record->length / DEVICE_SECTOR;
    int error = 0;

    if (tear && can_tear(record))
        error = add_state(list, write + 1, STATE_TORN,
                          1 + (uint32_t)(write * 2654435761u % (sectors - 1)));
    return error ? error : add_state(list, next, STATE_ALL, 0);
}

/* The lossy states of an epoch of `writes` writes that ends at `cut`. */
static int add_epoch(size_t cut, uint32_t writes, unsigned subsets, struct state_list *list) {
    uint32_t singles = writes < subsets ? writes : subsets;
    int error = 0;

    if (writes < 2)
        return 0;
    /* Without the last, or with only the first, the state is a boundary. */
    for (uint32_t i = 0; i < singles && !error; i++) {
        uint32_t pick = (uint32_t)((uint64_t)i * writes / singles);

        if (pick + 1 < writes)
            error = add_state(list, cut, STATE_DROP, pick);
        if (!error && pick > 0)
            error = add_state(list, cut, STATE_KEEP, pick);
    }
    for (uint32_t i = 0; writes > 2 && i < (subsets + 2) / 3 && !error; i++)
        error = add_state(list, cut, STATE_RANDOM, i);
    return error;
}

int state_list_make(const struct write_log *log, size_t start, unsigned subsets, bool tear,
                    struct state_list *list) {
    size_t write = SIZE_MAX; /* the last one */
    uint32_t writes = 0;     /* in this epoch */
    int error = 0;

    list->count = 0;
    for (size_t i = start; i <= log->count && !error; i++) {
        bool end = i == log->count;
        enum record_kind kind = end ? RECORD_FLUSH : log->records[i].kind;

        if (write != SIZE_MAX && (end || kind == RECORD_WRITE))
            error = add_boundary(log, write, i, tear, list);
        if (kind == RECORD_WRITE) {
            write = i;
            writes++;
        } else if (kind == RECORD_FLUSH && !error) {
            error = add_epoch(i, writes, subsets, list);
            writes = 0;
        }
    }
    return error;
}

/* --- making them ------------------------------------------------------------------------------ */

void state_maker_start(struct state_maker *maker, const struct write_log *log) {
    maker->log = log;
    maker->stable_cut = 0;
    device_fork_reset(maker->device);
    device_fork_reset(maker->stable);
}

static size_t last_write(const struct write_log *log, size_t cut) {
    while (cut > 0 && log->records[cut - 1].kind != RECORD_WRITE)
        cut--;
    return cut - 1;
}

static int advance_stable(struct state_maker *maker, size_t cut) {
    int error = 0;

    if (cut < maker->stable_cut)
        state_maker_start(maker, maker->log);
    for (; maker->stable_cut < cut && !error; maker->stable_cut++) {
        const struct record *record = &maker->log->records[maker->stable_cut];

        if (record->kind == RECORD_WRITE)
            error = write_log_apply(maker->log, record, record->length, maker->stable);
    }
    return error;
}

/* How many bytes of the epoch's n-th write, record number `at`, are on the disk. */
static uint32_t stored(const struct state *state, const struct write_log *log, uint32_t n,
                       size_t at, struct random *random) {
    uint32_t length = log->records[at].length;

    switch (state->kind) {
    case STATE_ALL:
        return length;
    case STATE_DROP:
        return n == state->argument ? 0 : length;
    case STATE_KEEP:
        return n == state->argument ? length : 0;
    case STATE_RANDOM:
        return random_below(random, 2) ? length : 0;
    case STATE_TORN:
        return at == last_write(log, state->cut) && state->argument < length / DEVICE_SECTOR
                   ? state->argument * DEVICE_SECTOR
                   : length;
    }
    return length;
}

int state_make(struct state_maker *maker, const struct state *state) {
    const struct write_log *log = maker->log;
    struct random random = {(uint64_t)state->cut << 32 | state->argument};
    size_t start = epoch_start(log, state->cut);
    uint32_t n = 0;
    int error = advance_stable(maker, start);

    device_fork_reset(maker->device);
    for (size_t i = start; i < state->cut && !error; i++) {
        const struct record *record = &log->records[i];

        if (record->kind != RECORD_WRITE)
            continue;
        error = write_log_apply(log, record, stored(state, log, n, i, &random), maker->device);
        n++;
    }
    return error;
}
