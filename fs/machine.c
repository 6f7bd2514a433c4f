/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: fs. See fs/machine.h; the presets are in fs/machines.ini.
 */
#include "fs/machine.h"

#include "fs/preset.h"

extern const char embedded_machines_ini[];

#define COST(key, cost)                                                                            \
    { key, PRESET_TIME, offsetof(struct machine, cost_ns[cost]), 0, 0, NULL }
#define FIELD(key, kind)                                                                           \
    { #key, kind, offsetof(struct machine, key), 0, 0, NULL }
#define NAMED(name, kind, member)                                                                  \
    { name, kind, offsetof(struct machine, member), 0, 0, NULL }

static const struct preset_field machine_fields[] = {
    {"description", PRESET_TEXT, offsetof(struct machine, description),
     sizeof(((struct machine *)0)->description), 0, NULL},
    NAMED("memory", PRESET_SIZE, memory_bytes),
    COST("syscall", COST_SYSCALL),
    COST("process", COST_PROCESS),
    COST("lookup", COST_LOOKUP),
    COST("inode_create", COST_INODE_CREATE),
    COST("inode_update", COST_INODE_UPDATE),
    COST("dir_entry", COST_DIR_ENTRY),
    COST("dir_hash", COST_DIR_HASH),
    COST("block_alloc", COST_BLOCK_ALLOC),
    COST("bitmap_kb", COST_BITMAP_KB),
    COST("buffer", COST_BUFFER),
    COST("page", COST_PAGE),
    COST("copy_kb", COST_COPY_KB),
    COST("request", COST_REQUEST),
    FIELD(dirty_background_percent, PRESET_COUNT),
    FIELD(dirty_percent, PRESET_COUNT),
    NAMED("dirty_expire", PRESET_TIME, dirty_expire_ns),
    NAMED("writeback_interval", PRESET_TIME, writeback_interval_ns),
    NAMED("readahead", PRESET_SIZE32, readahead_bytes),
};

static const struct preset_schema machine_schema = {
    .file = "machines.ini",
    .what = "machine",
    .text = embedded_machines_ini,
    .record_size = sizeof(struct machine),
    .name_offset = offsetof(struct machine, name),
    .fields = machine_fields,
    .field_count = sizeof(machine_fields) / sizeof(machine_fields[0]),
};

int machine_preset(const char *name, struct machine *machine, const struct log *log) {
    return preset_find(&machine_schema, name, machine, log);
}

struct visit {
    int (*visit)(void *context, const struct machine *machine);
    void *context;
};

static int visit_machine(void *context, const void *record) {
    const struct visit *visit = context;
    return visit->visit(visit->context, record);
}

int machine_each_preset(int (*visit)(void *context, const struct machine *machine), void *context) {
    struct machine machine;
    struct visit caller = {.visit = visit, .context = context};
    return preset_each(&machine_schema, &machine, visit_machine, &caller, NULL);
}
