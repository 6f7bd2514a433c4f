/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: fs, inside the FUSE front end. Directory listings. Interface: fs/fuse_server.h.
 *
 * The kernel keeps what a listing from the start to the end has brought, packed into pages, and
 * serves later ones from there. A place that is not in its copy any more (the name that was read
 * last is gone, and another process has listed the directory since) it looks up here, with one
 * exception: when the packed copy ends exactly where a page does, it takes the place for the end,
 * and a reader misses all that follows (Linux 4.20 to 6.18 at least; fs/fuse/readdir.c,
 * fuse_readdir_cached). So each reply counts on how far the copy reaches, as the kernel packs it,
 * and a listing that ends at a page's end is taken from the kernel again.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fs/fuse_server.h"

/* --- directory listings ---------------------------------------------------------------------- */

struct listing {
    fuse_req_t request;
    char *data;
    size_t size, used;
    bool with_attributes;
};

/* Adds one entry; of READDIRPLUS's, the attributes follow in complete_entries, for an inode cannot
 * be loaded in the middle of an iteration. */
static bool listing_add(void *context, const struct dir_entry *found) {
    struct listing *listing = context;
    char name[NAME_LENGTH_MAX + 1];
    if (found->name_length > NAME_LENGTH_MAX)
        return true;
    memcpy(name, found->name, found->name_length);
    name[found->name_length] = '\0';

    struct fuse_entry_param entry = {.attr = {.st_ino = found->ino, .st_mode = found->type}};
    char *position = listing->data + listing->used;
    size_t left = listing->size - listing->used;
    size_t needed = listing->with_attributes
                        ? fuse_add_direntry_plus(listing->request, position, left, name, &entry,
                                                 (off_t)found->cookie)
                        : fuse_add_direntry(listing->request, position, left, name, &entry.attr,
                                            (off_t)found->cookie);
    if (needed > left)
        return false;
    listing->used += needed;
    return true;
}

static bool is_dots(const struct fuse_dirent *entry) {
    return (entry->namelen == 1 && entry->name[0] == '.') ||
           (entry->namelen == 2 && entry->name[0] == '.' && entry->name[1] == '.');
}

/* Fills in the nodes of a READDIRPLUS reply; the kernel gets a reference to each. An entry whose
 * inode is gone by now or cannot be read keeps node 0, which is only a name. */
static void complete_entries(struct listing *listing) {
    struct volume *volume = fuse_server_of(listing->request)->volume;
    size_t position = 0;
    while (position < listing->used) {
        /* libfuse aligns every entry in the buffer to eight bytes, as the protocol does. */
        struct fuse_direntplus *raw = (void *)(listing->data + position);
        size_t length = FUSE_DIRENTPLUS_SIZE(raw);
        struct inode *inode;
        if (!is_dots(&raw->dirent) && volume_get(volume, raw->dirent.ino, &inode) == 0) {
            char name[NAME_LENGTH_MAX + 1];
            struct fuse_entry_param entry;
            memcpy(name, raw->dirent.name, raw->dirent.namelen);
            name[raw->dirent.namelen] = '\0';
            fuse_server_entry(inode, &entry);
            fuse_add_direntry_plus(listing->request, listing->data + position, length, name, &entry,
                                   (off_t)raw->dirent.off);
        }
        position += length;
    }
}

/* --- how far the kernel's copy reaches --- */

static struct fuse_listing_mark *mark_of(struct fuse_server *server, uint64_t node,
                                         uint64_t cookie) {
    uint64_t hash = (node ^ cookie) * UINT64_C(0x9E3779B97F4A7C15);
    return &server->listing_marks[hash >> 32 & (FUSE_LISTING_MARKS - 1)];
}

/* The end of the copy before the entry after `cookie`. False: forgotten, others have listed since.
 */
static bool mark_recall(struct fuse_server *server, uint64_t node, uint64_t cookie, uint64_t *end) {
    *end = 0;
    if (cookie == 0)
        return true;
    pthread_mutex_lock(&server->listing_lock);
    const struct fuse_listing_mark *mark = mark_of(server, node, cookie);
    bool found = mark->node == node && mark->cookie == cookie;
    if (found)
        *end = mark->end;
    pthread_mutex_unlock(&server->listing_lock);
    return found;
}

static void mark_keep(struct fuse_server *server, uint64_t node, uint64_t cookie, uint64_t end) {
    pthread_mutex_lock(&server->listing_lock);
    *mark_of(server, node, cookie) =
        (struct fuse_listing_mark){.node = node, .cookie = cookie, .end = end};
    pthread_mutex_unlock(&server->listing_lock);
}

/* An entry lies in one page. */
static uint64_t copy_append(uint64_t end, uint64_t length, uint64_t page) {
    uint64_t left = page - end % page;
    return end + (length > left ? left : 0) + length;
}

/* The end of the copy once this reply is added to it; *last: the cookie of its last entry. */
static uint64_t copy_end(const struct listing *listing, uint64_t end, uint64_t *last) {
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    size_t position = 0;
    while (position < listing->used) {
        const char *raw = listing->data + position;
        const struct fuse_dirent *entry =
            listing->with_attributes ? &((const struct fuse_direntplus *)(const void *)raw)->dirent
                                     : (const struct fuse_dirent *)(const void *)raw;
        end = copy_append(end, FUSE_DIRENT_SIZE(entry), page);
        *last = entry->off;
        position += listing->with_attributes
                        ? FUSE_DIRENTPLUS_SIZE((const struct fuse_direntplus *)(const void *)raw)
                        : FUSE_DIRENT_SIZE(entry);
    }
    return end;
}

/* Before the reply to a READDIR from `cookie` on; an empty one completes the kernel's copy. */
static void follow_copy(const struct listing *listing, uint64_t node, uint64_t cookie) {
    struct fuse_server *server = fuse_server_of(listing->request);
    uint64_t end, last = cookie;
    bool known = mark_recall(server, node, cookie, &end);
    if (listing->used > 0) {
        end = copy_end(listing, end, &last);
        if (known)
            mark_keep(server, node, last, end);
    } else if (!known || end % (uint64_t)sysconf(_SC_PAGESIZE) == 0) {
        (void)fuse_lowlevel_notify_inval_inode(server->session, node, 0, 0);
    }
}

static void list(fuse_req_t request, fuse_ino_t node, size_t size, off_t cookie,
                 bool with_attributes) {
    union fuse_reply *buffer;
    struct inode *dir = fuse_server_inode_and_buffer(request, node, &buffer);
    if (!dir)
        return;
    struct listing listing = {
        .request = request,
        .data = buffer->data,
        .size = size < sizeof buffer->data ? size : sizeof buffer->data,
        .with_attributes = with_attributes,
    };
    int error = volume_readdir(dir, (uint64_t)cookie, listing_add, &listing);
    if (!error)
        follow_copy(&listing, node, (uint64_t)cookie);
    if (!error && with_attributes)
        complete_entries(&listing);
    volume_put(dir, 1);
    fuse_server_reply_buffer(request, buffer, error ? error : (int64_t)listing.used);
}

void fuse_server_readdir(fuse_req_t request, fuse_ino_t node, size_t size, off_t cookie,
                         struct fuse_file_info *file) {
    list(request, node, size, cookie, false);
}

void fuse_server_readdirplus(fuse_req_t request, fuse_ino_t node, size_t size, off_t cookie,
                             struct fuse_file_info *file) {
    list(request, node, size, cookie, true);
}
