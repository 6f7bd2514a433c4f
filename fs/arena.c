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

/* Under AddressSanitizer, bytes behind each object that nobody may touch. */
#if defined(__SANITIZE_ADDRESS__)
#define RED_ZONE 64u
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define RED_ZONE 64u
#endif
#endif
#ifdef RED_ZONE
#include <sanitizer/asan_interface.h>
#else
#define RED_ZONE                                0u
#define ASAN_POISON_MEMORY_REGION(start, bytes) ((void)(start), (void)(bytes))
#endif

/* At the start of each piece. */
struct arena_piece {
    _Alignas(ALIGNMENT) struct arena_piece *previous;
};

static size_t round_up(size_t size, size_t unit) {
    return (size + unit - 1) / unit * unit;
}

static int add_piece(struct arena *arena, size_t room) {
    size_t alignment = ALIGNMENT;

    if (arena->piece_size < PIECE_MIN)
        arena->piece_size = PIECE_MIN;
    size_t size = round_up(sizeof(struct arena_piece) + room, arena->piece_size);
    if (arena->piece_size == PIECE_MAX)
        alignment = PIECE_MAX;
    else
        arena->piece_size *= 2;
    struct arena_piece *piece = aligned_alloc(alignment, size);
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
    size_t room = round_up(size, size % ALIGNMENT ? 16 : ALIGNMENT) + RED_ZONE;
    uintptr_t next = (uintptr_t)arena->next;
    size_t padding = room % ALIGNMENT ? 0 : round_up(next, ALIGNMENT) - next;
    size_t left = (size_t)(arena->end - arena->next);

    if (padding + room > left) {
        if (add_piece(arena, room))
            return NULL;
        padding = 0;
    }
    char *object = arena->next + padding;
    arena->next = object + room;
    ASAN_POISON_MEMORY_REGION(object + size, room - size);
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
