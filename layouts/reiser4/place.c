/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/reiser4. Relocate or overwrite: the strategies of txmod. Interface:
 * layouts/reiser4/flush.h.
 */
#include <errno.h>

#include "layouts/reiser4/flush.h"
#include "layouts/reiser4/reiser4.h"

static uint64_t distance(uint64_t a, uint64_t b) {
    return a < b ? b - a : a - b;
}

/* The table of txmod=hybrid, for a node that has a place. */
static int decide_hybrid(struct reiser4 *r4, const struct reiser4_candidate *candidate,
                         uint64_t preceder, enum reiser4_decision *decision, uint64_t *block) {
    uint64_t away = distance(candidate->block, preceder), most = r4->options.distance;

    *decision = REISER4_RELOCATE;
    if (candidate->root || (candidate->level == REISER4_LEAF && candidate->leaf_relocate))
        return 0;
    if (preceder > 0 && candidate->block == preceder + 1) {
        *decision = REISER4_OVERWRITE;
        return 0;
    }
    int error = reiser4_space_allocate_near(r4, preceder + 1, away < most ? away : most, block);
    if (error == -ENOENT) {
        *block = 0;
        *decision = away < most ? REISER4_OVERWRITE : REISER4_RELOCATE;
        return 0;
    }
    return error;
}

int reiser4_place_decide(struct reiser4 *r4, const struct reiser4_candidate *candidate,
                         uint64_t preceder, enum reiser4_decision *decision, uint64_t *block) {
    *block = 0;
    *decision = REISER4_RELOCATE;
    if (candidate->block == 0 || r4->options.txmod == REISER4_TXMOD_WA)
        return 0;
    if (r4->options.txmod == REISER4_TXMOD_JOURNAL) {
        *decision = REISER4_OVERWRITE;
        return 0;
    }
    return decide_hybrid(r4, candidate, preceder, decision, block);
}
