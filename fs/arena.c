/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: fs. Interface: fs/arena.h.
 */
#include "fs/arena.h"

#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

#define PIECE_MIN (64u << 10)
#define PIECE_MAX (2u << 20) /* a huge page of the common machines */
#define ALIGNMENT 64u

#if defined(__SANITIZE_ADDRESS__)
#define OBJECTS_APART 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define OBJECTS_APART 1
#endif
#endif
#ifndef OBJECTS_APART
#define OBJECTS_APART 0
#endif

/* At the start of each piece. */
struct arena_piece {
    _Alignas(ALIGNMENT) struct arena_piece *previous;
};

static size_t round_up(size_t size, size_t unit) {
    return (size + unit - 1) / unit * unit;
}

static int add_piece(struct arena *arena, size_t room) {
    size_t size = sizeof(struct arena_piece) + room;
    size_t alignment = ALIGNMENT;

    if (!OBJECTS_APART) {
        if (arena->piece_size < PIECE_MIN)
            arena->piece_size = PIECE_MIN;
        size = round_up(size, arena->piece_size);
        if (arena->piece_size == PIECE_MAX)
            alignment = PIECE_MAX;
        else
            arena->piece_size *= 2;
    }
    struct arena_piece *piece = aligned_alloc(alignment, round_up(size, alignment));
    if (!piece)
        return -1;
    if (alignment == PIECE_MAX)
        madvise(piece, size, MADV_HUGEPAGE); /* an advice: it may fail */
    piece->previous = arena->pieces;
    arena->pieces = piece;
    arena->next = (char *)(piece + 1);
    arena->end = (char *)piece + size;
    return 0;
}

void *arena_take(struct arena *arena, size_t size) {
    if (size > SIZE_MAX / 2)
        return NULL;
    size_t room = round_up(size, size % ALIGNMENT ? 16 : ALIGNMENT);
    uintptr_t next = (uintptr_t)arena->next;
    size_t padding = room % ALIGNMENT ? 0 : round_up(next, ALIGNMENT) - next;
    size_t left = (size_t)(arena->end - arena->next);

    if (OBJECTS_APART || padding + room > left) {
        if (add_piece(arena, room))
            return NULL;
        padding = 0;
    }
    char *object = arena->next + padding;
    arena->next = object + room;
    return object;
}

void arena_release(struct arena *arena) {
    while (arena->pieces) {
        struct arena_piece *piece = arena->pieces;
        arena->pieces = piece->previous;
        free(piece);
    }
    *arena = (struct arena){0};
}
