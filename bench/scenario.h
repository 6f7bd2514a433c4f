/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: bench, over bench/workload.h. A scenario is a comparison that somebody published, or one
 * that a user wants: a disk, a machine, a workload with its parameters, and rows to compare, each a
 * layout with its options and (if there are any) the published figures. It is read from an ini
 * file; docs/scenarios.md describes the format. Those in bench/scenarios/ are built in.
 */
#ifndef LAYOUTFS_BENCH_SCENARIO_H
#define LAYOUTFS_BENCH_SCENARIO_H

#include "bench/workload.h"

#define SCENARIO_ROWS_MAX  32
#define SCENARIO_NOTES_MAX 12

/* A published figure of one step: a time, or a rate, which is kept as the time that a megabyte
 * takes, so that ratios and orders are those of times. */
struct published {
    char step[STEP_NAME_MAX];
    int64_t ns;
    bool below; /* published as "less than" this */
    bool rate;  /* ns: of 10^6 bytes */
};

struct scenario_row {
    char id[32];    /* as --layout names it */
    char label[48]; /* as the table shows it */
    char type[16];  /* "ext2"; of a layout that need not exist yet */
    char mkfs[192]; /* options */
    char mount[192];
    char workload[16]; /* of the published figures; empty: the scenario's */
    struct published published[STEPS_MAX];
    unsigned published_count;
};

enum scenario_driver {
    SCENARIO_MODEL, /* in process, on a modelled disk, in virtual time */
    SCENARIO_MOUNT, /* through a real mount of an image, in wall time */
};

struct scenario {
    char name[32];
    char title[128];
    char notes[SCENARIO_NOTES_MAX][184]; /* printed under the table */
    unsigned note_count;
    bool show_purposes; /* the table tells what was read and written by purpose */
    bool show_latency;  /* ...and how long requests took, and what the disk did for a byte */
    enum scenario_driver driver;
    char disk[32], machine[32]; /* presets; unused by SCENARIO_MOUNT */
    uint64_t memory;            /* bytes of cache; 0: the machine preset's */
    uint64_t volume_start;      /* bytes from the start of the disk */
    uint64_t volume_size;       /* bytes */
    unsigned repeat;            /* SCENARIO_MOUNT: rounds, of which the median counts */
    const struct workload *workload;
    struct options parameters; /* of the workload */
    struct scenario_row rows[SCENARIO_ROWS_MAX];
    unsigned row_count;
};

/* Reads the built-in scenario `name`, or the file of that path (a name with a '/' or a '.'). On
 * failure a sentence with file and line was logged. *scenario is freed with scenario_free. */
int scenario_load(const char *name, struct scenario *scenario, const struct log *log);
/* The same from text; `name` is for messages. */
int scenario_parse(const char *text, const char *name, struct scenario *scenario,
                   const struct log *log);
void scenario_free(struct scenario *scenario);

/* Calls visit with the name and text of each built-in scenario. */
void scenario_each(void (*visit)(void *context, const char *name, const char *text), void *context);

/* Keeps the rows that `selection` names: ids separated by commas, or TYPE[:MOUNT_OPTIONS] for one
 * that the scenario does not have (options separated by ':' in place of ','). */
int scenario_select(struct scenario *scenario, const char *selection, const struct log *log);
/* Another modelled disk; the rows then have no published figures, which are of the scenario's own.
 * A volume that would lie behind the disk's end lies at its start. -ENOENT: there is no such disk.
 */
int scenario_set_disk(struct scenario *scenario, const char *name, const struct log *log);
/* Makes everything smaller by permille/1000: the workload's size parameters and the memory. */
int scenario_scale(struct scenario *scenario, unsigned permille);

/* Does the row's layout exist, and is its workload the scenario's? Else it is only printed. */
bool scenario_emulates(const struct scenario *scenario, const struct scenario_row *row);
/* The row's published figure of a step, or NULL. */
const struct published *scenario_published(const struct scenario_row *row, const char *step);

#endif
