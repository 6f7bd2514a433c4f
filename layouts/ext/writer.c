/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/ext, under store.c and the placement strategies. Interface: layouts/ext/ext.h
 * ("writer.c").
 *
 * Invariants:
 *  1. A writer is on ext->writers, and its inode points at it.
 *  2. While there are more than WRITERS_IDLE, an idle one goes when another is made; one with
 *     pending blocks, promises or a hold stays as long as its inode.
 *
 * What is lost with an idle one is a hint: where the file's last allocation ended.
 */
#include <stdlib.h>

#include "layouts/ext/ext.h"

/* More files than are written to in turns, and less memory than anyone minds. */
#define WRITERS_IDLE 4096u
/* So many of the oldest are looked at for one that is idle. */
#define WRITERS_LOOK 4u

static bool writer_is_idle(const struct ext_writer *writer) {
    return writer->pending.blocks == 0 && writer->promised_data == 0 && writer->promised_map == 0 &&
           writer->hold.count == 0;
}

static void writer_free(struct ext *ext, struct ext_writer *writer) {
    TAILQ_REMOVE(&ext->writers, writer, link);
    ext->writer_count--;
    writer->inode->writer = NULL;
    block_set_clear(&writer->pending);
    free(writer);
}

/* Those that are busy go behind the others, so that the next look finds new ones. */
static void writers_trim(struct ext *ext) {
    for (unsigned i = 0; i < WRITERS_LOOK && ext->writer_count > WRITERS_IDLE; i++) {
        struct ext_writer *oldest = TAILQ_FIRST(&ext->writers);
        if (writer_is_idle(oldest)) {
            writer_free(ext, oldest);
        } else {
            TAILQ_REMOVE(&ext->writers, oldest, link);
            TAILQ_INSERT_TAIL(&ext->writers, oldest, link);
        }
    }
}

struct ext_writer *ext_writer_take(struct inode *inode) {
    struct ext *ext = ext_of(inode->volume);
    struct ext_inode *private = ext_inode_of(inode);
    struct ext_writer *writer = private->writer;
    if (writer) {
        TAILQ_REMOVE(&ext->writers, writer, link);
    } else {
        writers_trim(ext);
        writer = calloc(1, sizeof *writer);
        if (!writer)
            return NULL;
        writer->inode = private;
        ext_inode_of(inode)->writer = writer;
        ext->writer_count++;
    }
    TAILQ_INSERT_TAIL(&ext->writers, writer, link);
    return writer;
}

const struct ext_writer *ext_writer_look(struct inode *inode) {
    static const struct ext_writer idle;
    const struct ext_writer *writer = ext_inode_of(inode)->writer;
    return writer ? writer : &idle;
}

void ext_writer_release(struct inode *inode) {
    struct ext_writer *writer = ext_inode_of(inode)->writer;
    if (writer)
        writer_free(ext_of(inode->volume), writer);
}
