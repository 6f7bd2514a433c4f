/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Prints the tree of an image as tests/vm/manifest.sh prints that of a directory, without a mount:
 * one line an object, in byte order of the paths.
 *
 *     manifest [-w] IMAGE [MOUNT-OPTIONS]
 *
 * -w: the volume is opened for writing, so that what must be recovered is so on the disk, too.
 */
#include <inttypes.h>
#include <sha2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/tools/image_tree.h"

#define WHOLE_SIZE (UINT64_C(32) << 20) /* larger files: the first and last PART only */
#define PART       (UINT64_C(1) << 20)

static void sum_add(void *context, const void *bytes, size_t size) {
    SHA256Update(context, bytes, size);
}

static int print_sum(struct inode *inode, uint64_t size) {
    char text[SHA256_DIGEST_STRING_LENGTH];
    bool whole = size <= WHOLE_SIZE;
    SHA2_CTX sum;

    SHA256Init(&sum);
    int error = image_tree_read(inode, 0, whole ? size : PART, sum_add, &sum);
    if (!error && !whole)
        error = image_tree_read(inode, size - PART, size, sum_add, &sum);
    printf("%s%s\n", whole ? "" : "ends:", SHA256End(&sum, text));
    return error;
}

static int print_target(struct inode *inode, uint64_t size) {
    int error;
    char *target = image_tree_target(inode, size, &error);

    printf("->%s\n", target ? target : "");
    free(target);
    return error;
}

static const char *type_name(const struct attributes *a) {
    switch (a->mode & S_IFMT) {
    case S_IFREG:
        return a->size ? "regular file" : "regular empty file";
    case S_IFDIR:
        return "directory";
    case S_IFLNK:
        return "symbolic link";
    case S_IFCHR:
        return "character special file";
    case S_IFBLK:
        return "block special file";
    case S_IFIFO:
        return "fifo";
    default:
        return "socket";
    }
}

static int print_object(void *context, const char *path, struct inode *inode) {
    struct attributes a;

    (void)context;
    volume_getattr(inode, &a);
    printf("%s|%o|%" PRIu32 "|%" PRIu32 "|%" PRIu32 "|%" PRIu64 "|%" PRIu64 "|%x:%x|%" PRId64
           "|%s|",
           type_name(&a), a.mode & 07777, a.uid, a.gid, a.nlink, a.size, a.ino, a.rdev >> 20,
           a.rdev & 0xFFFFF, (int64_t)a.mtime.seconds, path);
    if (S_ISREG(a.mode))
        return print_sum(inode, a.size);
    if (S_ISLNK(a.mode))
        return print_target(inode, a.size);
    puts("-");
    return 0;
}

int main(int argc, char **argv) {
    bool writable = argc > 1 && strcmp(argv[1], "-w") == 0;
    char **arguments = argv + 1 + writable;
    int count = argc - 1 - writable;

    if (count < 1 || count > 2) {
        fputs("usage: manifest [-w] IMAGE [MOUNT-OPTIONS]\n", stderr);
        return 2;
    }
    return image_tree_each(arguments[0], writable, count == 2 ? arguments[1] : NULL, print_object,
                           NULL)
               ? 1
               : 0;
}
