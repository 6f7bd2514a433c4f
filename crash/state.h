/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: crash, over fs/device/record.h. The states in which a power cut may leave the disk.
 *
 * Writes since the last flush lie in the disk's cache: any of them may be lost, and the last one
 * may be torn between sectors. A state is named by where in the log the power goes (`cut`: records
 * before it have happened) and which of the writes since the last flush are on the disk.
 */
#ifndef LAYOUTFS_CRASH_STATE_H
#define LAYOUTFS_CRASH_STATE_H

#include "fs/device/record.h"

enum state_kind {
    STATE_ALL = 'a',    /* all of them */
    STATE_DROP = 'd',   /* all but the n-th */
    STATE_KEEP = 'k',   /* only the n-th */
    STATE_RANDOM = 'r', /* by chance, from the seed n */
    STATE_TORN = 't',   /* all, but of the last only the first n sectors */
};

struct state {
    size_t cut;
    enum state_kind kind;
    uint32_t argument;
};

struct state_list {
    struct state *states; /* owned, ascending by cut */
    size_t count, room;
};

#define STATE_TEXT_SIZE 48
/* "57.d3". */
void state_text(const struct state *state, char text[STATE_TEXT_SIZE]);
/* -EINVAL: the text names no state of the log from record `start` on. */
int state_parse(const char *text, const struct write_log *log, size_t start, struct state *state);

/* All states from record `start` on: every write boundary; for each flush epoch at most `subsets`
 * of each kind; torn writes if `tear`. 0 or -ENOMEM. */
int state_list_make(const struct write_log *log, size_t start, unsigned subsets, bool tear,
                    struct state_list *list);
void state_list_free(struct state_list *list);

/* Makes states on a fork that stands on `stable`, itself a fork, which follows the flushed part. */
struct state_maker {
    const struct write_log *log;
    struct device *stable, *device; /* borrowed forks */
    size_t stable_cut;              /* records before it are in `stable` */
};
void state_maker_start(struct state_maker *maker, const struct write_log *log);
/* Cheapest for states in their list's order. 0 or negative errno. */
int state_make(struct state_maker *maker, const struct state *state);

#endif
