/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/reiser4, the top. Every parameter and strategy of the layout, once; and a mount's
 * options as the other files want them. Interface: layouts/reiser4/layout.h.
 */
#include "layouts/reiser4/layout.h"

static const struct option_choice errors_choices[] = {
    {"remount-ro", "stop writing: the volume becomes read-only", REISER4_ERRORS_RO},
    {"continue", "say so in the log and go on", REISER4_ERRORS_CONTINUE},
    {0},
};

/* Plugins of a new volume, by mkfs.reiser4's names for them. */
static const struct option_choice node_choices[] = {
    {"node40", "without checksums", REISER4_NODE40},
    {"node41", "each node has a checksum", REISER4_NODE41},
    {0},
};
static const struct option_choice create_choices[] = {
    {"reg40", "plain files: tails and extents", REISER4_OBJECT_REG40},
    {"ccreg40", "compressed files: clusters", REISER4_OBJECT_CCREG40},
    {0},
};
static const struct option_choice formatting_choices[] = {
    {"extents", "plain files lie in blocks of their own", REISER4_FORMATTING_EXTENTS},
    {"tails", "plain files lie in the tree", REISER4_FORMATTING_TAILS},
    {"smart", "those of at most 16 KiB lie in the tree", REISER4_FORMATTING_SMART},
    {0},
};
static const struct option_choice hash_choices[] = {
    {"r5_hash", "a short multiplicative one", REISER4_HASH_R5},
    {"tea_hash", "a strong one, slower", REISER4_HASH_TEA},
    {"fnv1_hash", "Fowler, Noll and Vo's", REISER4_HASH_FNV1},
    {"rupasov_hash", "by decimal places; Linux and reiser4progs disagree about it",
     REISER4_HASH_RUPASOV},
    {"deg_hash", "all names collide, for tests", REISER4_HASH_DEG},
    {0},
};
static const struct option_choice fibration_choices[] = {
    {"lexic_fibre", "in the order of names", REISER4_FIBRE_LEXIC},
    {"dot_o_fibre", "object files behind all others", REISER4_FIBRE_DOT_O},
    {"ext_1_fibre", "by extension, of one letter", REISER4_FIBRE_EXT_1},
    {"ext_3_fibre", "by extension, of three letters", REISER4_FIBRE_EXT_3},
    {0},
};
static const struct option_choice compress_choices[] = {
    {"lzo1", "fast", REISER4_LZO1},
    {"gzip1", "smaller", REISER4_GZIP1},
    {"zstd1", "smaller, and fast", REISER4_ZSTD1},
    {0},
};
static const struct option_choice mode_choices[] = {
    {"none", "never", REISER4_MODE_NONE},
    {"latt", "less and less often where it does not pay", REISER4_MODE_LATT},
    {"ultim", "until it does not pay once", REISER4_MODE_ULTIM},
    {"force", "each cluster", REISER4_MODE_FORCE},
    {"conv", "a file that the first cluster shows to be incompressible becomes a plain one",
     REISER4_MODE_CONV},
    {0},
};
static const struct option_choice cluster_choices[] = {
    {"64K", "64 KiB", 0}, {"32K", "32 KiB", 1}, {"16K", "16 KiB", 2},
    {"8K", "8 KiB", 3},   {"4K", "4 KiB", 4},   {0},
};

const struct option_spec reiser4_option_table[] = {
    {.name = "label",
     .letter = 'L',
     .kind = OPTION_TEXT,
     .scope = OPTION_MKFS,
     .description = "the volume's name, at most 16 bytes (default: none)"},
    {.name = "uuid",
     .letter = 'U',
     .kind = OPTION_TEXT,
     .scope = OPTION_MKFS,
     .description = "the volume's UUID (default: random)"},
    {.name = "create",
     .kind = OPTION_CHOICE,
     .scope = OPTION_MKFS,
     .default_text = "reg40",
     .choices = create_choices,
     .description = "the kind of new regular files"},
    {.name = "formatting",
     .kind = OPTION_CHOICE,
     .scope = OPTION_MKFS,
     .default_text = "smart",
     .choices = formatting_choices,
     .description = "where plain files lie"},
    {.name = "node",
     .kind = OPTION_CHOICE,
     .scope = OPTION_MKFS,
     .default_text = "node40",
     .choices = node_choices,
     .description = "the format of the tree's nodes"},
    {.name = "hash",
     .kind = OPTION_CHOICE,
     .scope = OPTION_MKFS,
     .default_text = "r5_hash",
     .choices = hash_choices,
     .description = "of names longer than 23 bytes"},
    {.name = "fibration",
     .kind = OPTION_CHOICE,
     .scope = OPTION_MKFS,
     .default_text = "ext_1_fibre",
     .choices = fibration_choices,
     .description = "which names of a directory lie together"},
    {.name = "compress",
     .kind = OPTION_CHOICE,
     .scope = OPTION_MKFS,
     .default_text = "lzo1",
     .choices = compress_choices,
     .description = "how compressed files are compressed"},
    {.name = "compressMode",
     .kind = OPTION_CHOICE,
     .scope = OPTION_MKFS,
     .default_text = "conv",
     .choices = mode_choices,
     .description = "which clusters of compressed files are"},
    {.name = "cluster",
     .kind = OPTION_CHOICE,
     .scope = OPTION_MKFS,
     .default_text = "64K",
     .choices = cluster_choices,
     .description = "bytes of a compressed file that are compressed together"},
    {.name = "dont_load_bitmap",
     .kind = OPTION_BOOL,
     .scope = OPTION_MOUNT,
     .default_text = "off",
     .description = "read a bitmap when it is first needed, not all of them at mount"},
    {.name = "errors",
     .letter = 'e',
     .kind = OPTION_CHOICE,
     .scope = OPTION_MOUNT,
     .default_text = "remount-ro",
     .choices = errors_choices,
     .description = "what to do when damage is found in use"},
    {0},
};

void reiser4_options_take(const struct options *options, struct reiser4_options *taken) {
    *taken = (struct reiser4_options){
        .load_bitmaps = !options_number(options, "dont_load_bitmap"),
        .errors = (enum reiser4_errors)options_number(options, "errors"),
    };
}
