/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/nilfs, the top. Every parameter and strategy of the layout, once; and a mount's
 * options as the other files want them. Interface: layouts/nilfs/layout.h.
 */
#include "layouts/nilfs/layout.h"

static const struct option_choice block_size_choices[] = {
    {"1024", "1 KiB", 1024},
    {"2048", "2 KiB", 2048},
    {"4096", "4 KiB: fewest blocks to translate", 4096},
    {0},
};

static const struct option_choice errors_choices[] = {
    {"remount-ro", "stop writing: the volume becomes read-only", NILFS_ERRORS_RO},
    {"continue", "say so in the log and go on", NILFS_ERRORS_CONTINUE},
    {0},
};

static const struct option_choice order_choices[] = {
    {"relaxed", "fdatasync of old blocks writes these alone, in a log of their own", 0},
    {"strict", "every fdatasync makes a checkpoint", 1},
    {0},
};

static const struct option_choice cleaner_choices[] = {
    {"timestamp", "the segments that were written longest ago first, as Linux' cleaner has it",
     NILFS_POLICY_TIMESTAMP},
    {"greedy", "those with the fewest live blocks first", NILFS_POLICY_GREEDY},
    {"cost-benefit",
     "those first where the space that is won, weighed by age, is worth the copying",
     NILFS_POLICY_COST_BENEFIT},
    {"off", "nothing is cleaned", NILFS_POLICY_OFF},
    {0},
};

static const struct option_choice fault_choices[] = {
    {"super-first", "the super blocks name a log before it is durable", NILFS_FAULT_SUPER_FIRST},
    {"no-order", "a checkpoint's last log does not wait for those before it", NILFS_FAULT_NO_ORDER},
    {"no-flush", "a commit counts as durable without a flush", NILFS_FAULT_NO_FLUSH},
    {"unchecked", "recovery takes logs whose checksums do not hold", NILFS_FAULT_UNCHECKED},
    {"no-replay", "recovery drops what fdatasync has written", NILFS_FAULT_NO_REPLAY},
    {0},
};

const struct option_spec nilfs_option_table[] = {
    {.name = "block_size",
     .letter = 'b',
     .kind = OPTION_CHOICE,
     .scope = OPTION_MKFS,
     .default_text = "4096",
     .choices = block_size_choices,
     .description = "bytes in a block"},
    {.name = "blocks_per_segment",
     .letter = 'B',
     .kind = OPTION_NUMBER,
     .scope = OPTION_MKFS,
     .default_text = "2048",
     .minimum = NILFS_SEGMENT_MIN,
     .maximum = 1 << 20,
     .description = "blocks in a segment, what is written in one go and cleaned in one: a power of "
                    "two"},
    {.name = "reserved",
     .letter = 'm',
     .kind = OPTION_NUMBER,
     .scope = OPTION_MKFS,
     .default_text = "5",
     .minimum = 1,
     .maximum = 99,
     .description = "percent of the segments, and 8 at least, kept for the cleaner, deletions and "
                    "checkpoints"},
    {.name = "label",
     .letter = 'L',
     .kind = OPTION_TEXT,
     .scope = OPTION_MKFS,
     .description = "the volume's name, at most 80 bytes (default: none)"},
    {.name = "uuid",
     .letter = 'U',
     .kind = OPTION_TEXT,
     .scope = OPTION_MKFS,
     .description = "the volume's UUID (default: random)"},
    {.name = "block_max",
     .kind = OPTION_NUMBER,
     .scope = OPTION_MKFS,
     .default_text = "0",
     .minimum = 0,
     .maximum = UINT32_MAX,
     .description = "changed blocks after which Linux starts to write them, 0: its default, 3600"},
    {.name = "interval",
     .kind = OPTION_NUMBER,
     .scope = OPTION_MKFS | OPTION_MOUNT,
     .default_text = "0",
     .minimum = 0,
     .maximum = 3600,
     .description = "seconds after a change until a checkpoint is made, 0: as the volume says (5, "
                    "unless mkfs was told otherwise)"},
    {.name = "cp",
     .kind = OPTION_NUMBER,
     .scope = OPTION_MOUNT,
     .minimum = 1,
     .maximum = INT64_MAX,
     .description = "the checkpoint to show, read-only (default: the newest)"},
    {.name = "order",
     .kind = OPTION_CHOICE,
     .scope = OPTION_MOUNT,
     .default_text = "relaxed",
     .choices = order_choices,
     .description = "what fdatasync writes"},
    {.name = "barrier",
     .kind = OPTION_BOOL,
     .scope = OPTION_MOUNT,
     .default_text = "on",
     .description = "flush the disk's cache in a sync, and before and after a super block"},
    {.name = "recovery",
     .kind = OPTION_BOOL,
     .scope = OPTION_MOUNT,
     .default_text = "on",
     .description =
         "after a crash, take up what fdatasync has written since the newest checkpoint; "
         "without, such a volume can only be read"},
    {.name = "discard",
     .kind = OPTION_BOOL,
     .scope = OPTION_MOUNT,
     .default_text = "off",
     .description = "tell the disk which segments the cleaner has freed"},
    {.name = "errors",
     .letter = 'e',
     .kind = OPTION_CHOICE,
     .scope = OPTION_MOUNT,
     .default_text = "remount-ro",
     .choices = errors_choices,
     .description = "what to do when damage is found in use"},
    {.name = "history",
     .kind = OPTION_BOOL,
     .scope = OPTION_MOUNT,
     .default_text = "off",
     .description = "show every checkpoint as a directory in .checkpoints/, which is not listed"},
    {.name = "cleaner",
     .kind = OPTION_CHOICE,
     .scope = OPTION_MOUNT,
     .default_text = "timestamp",
     .choices = cleaner_choices,
     .description = "which segments the cleaner takes first"},
    {.name = "protection_period",
     .kind = OPTION_NUMBER,
     .scope = OPTION_MOUNT,
     .default_text = "3600",
     .minimum = 0,
     .maximum = INT32_MAX,
     .description = "seconds for which segments and checkpoints are left alone"},
    {.name = "min_clean_segments",
     .kind = OPTION_NUMBER,
     .scope = OPTION_MOUNT,
     .default_text = "10",
     .minimum = 0,
     .maximum = 100,
     .description = "percent of the segments, beside the reserve: with fewer clean ones the "
                    "cleaner starts, 0: it never rests"},
    {.name = "max_clean_segments",
     .kind = OPTION_NUMBER,
     .scope = OPTION_MOUNT,
     .default_text = "20",
     .minimum = 1,
     .maximum = 100,
     .description = "percent of the segments, beside the reserve: with more clean ones it stops"},
    {.name = "clean_check_interval",
     .kind = OPTION_NUMBER,
     .scope = OPTION_MOUNT,
     .default_text = "10",
     .minimum = 1,
     .maximum = 3600,
     .description = "seconds between looks at whether it has to start"},
    {.name = "cleaning_interval",
     .kind = OPTION_NUMBER,
     .scope = OPTION_MOUNT,
     .default_text = "5",
     .minimum = 0,
     .maximum = 3600,
     .description = "seconds between steps"},
    {.name = "mc_cleaning_interval",
     .kind = OPTION_NUMBER,
     .scope = OPTION_MOUNT,
     .default_text = "1",
     .minimum = 0,
     .maximum = 3600,
     .description = "the same while clean segments are fewer than min_clean_segments"},
    {.name = "nsegments_per_clean",
     .kind = OPTION_NUMBER,
     .scope = OPTION_MOUNT,
     .default_text = "2",
     .minimum = 1,
     .maximum = CLEAN_SEGMENTS_MAX,
     .description = "segments cleaned in one step"},
    {.name = "mc_nsegments_per_clean",
     .kind = OPTION_NUMBER,
     .scope = OPTION_MOUNT,
     .default_text = "4",
     .minimum = 1,
     .maximum = CLEAN_SEGMENTS_MAX,
     .description = "the same while clean segments are fewer than min_clean_segments"},
    {.name = "min_reclaimable_blocks",
     .kind = OPTION_NUMBER,
     .scope = OPTION_MOUNT,
     .default_text = "10",
     .minimum = 0,
     .maximum = 100,
     .description = "percent of a segment's blocks: a segment that would give fewer is put off"},
    {.name = "mc_min_reclaimable_blocks",
     .kind = OPTION_NUMBER,
     .scope = OPTION_MOUNT,
     .default_text = "1",
     .minimum = 0,
     .maximum = 100,
     .description = "the same while clean segments are fewer than min_clean_segments"},
    {.name = "wait",
     .kind = OPTION_BOOL,
     .scope = OPTION_MOUNT,
     .default_text = "off",
     .description = "who finds no space waits for the cleaner, instead of failing at once"},
    {.name = "log_fault",
     .kind = OPTION_CHOICE,
     .scope = OPTION_MOUNT | OPTION_UNLISTED,
     .choices = fault_choices,
     .description = "for tests: logs that are wrong in this way"},
    {0},
};

static void take_cleaner(const struct options *options, struct nilfs_cleaner_options *taken) {
    static const char *const intervals[] = {"cleaning_interval", "mc_cleaning_interval"};
    static const char *const segments[] = {"nsegments_per_clean", "mc_nsegments_per_clean"};
    static const char *const blocks[] = {"min_reclaimable_blocks", "mc_min_reclaimable_blocks"};

    *taken = (struct nilfs_cleaner_options){
        .policy = (enum nilfs_policy)options_number(options, "cleaner"),
        .protection = options_number(options, "protection_period"),
        .min_clean = (uint32_t)options_number(options, "min_clean_segments"),
        .max_clean = (uint32_t)options_number(options, "max_clean_segments"),
        .check_ns = options_number(options, "clean_check_interval") * NS_PER_SEC,
        .wait = options_number(options, "wait"),
    };
    for (int few = 0; few < 2; few++) {
        taken->interval_ns[few] = options_number(options, intervals[few]) * NS_PER_SEC;
        taken->segments_per_step[few] = (uint32_t)options_number(options, segments[few]);
        taken->min_reclaimable[few] = (uint32_t)options_number(options, blocks[few]);
    }
}

void nilfs_options_take(const struct options *options, struct nilfs_options *taken) {
    *taken = (struct nilfs_options){
        .checkpoint = options_given(options, "cp") ? (uint64_t)options_number(options, "cp") : 0,
        .barrier = options_number(options, "barrier"),
        .strict = options_number(options, "order") == 1,
        .discard = options_number(options, "discard"),
        .recover = options_number(options, "recovery"),
        .history = options_number(options, "history"),
        .errors = (enum nilfs_errors)options_number(options, "errors"),
        .fault = options_given(options, "log_fault")
                     ? (enum nilfs_fault)options_number(options, "log_fault")
                     : 0,
        .interval_ns = options_number(options, "interval") * NS_PER_SEC,
    };
    take_cleaner(options, &taken->cleaner);
}
