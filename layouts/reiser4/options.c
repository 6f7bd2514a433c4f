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

const struct option_spec reiser4_option_table[] = {
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
