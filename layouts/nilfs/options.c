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
    {0},
};

void nilfs_options_take(const struct options *options, struct nilfs_options *taken) {
    *taken = (struct nilfs_options){
        .checkpoint = options_given(options, "cp") ? (uint64_t)options_number(options, "cp") : 0,
        .barrier = options_number(options, "barrier"),
        .strict = options_number(options, "order") == 1,
        .discard = options_number(options, "discard"),
        .recover = options_number(options, "recovery"),
        .history = options_number(options, "history"),
        .errors = (enum nilfs_errors)options_number(options, "errors"),
        .interval_ns = options_number(options, "interval") * NS_PER_SEC,
    };
}
