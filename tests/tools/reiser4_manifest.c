/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Prints the tree of a Reiser4 image with what the format keeps of each object, without a mount, in
 * the form of the manifests that come with the samples of tests/data/reiser4:
 *
 *     reiser4_manifest [-w] [-a] IMAGE [MOUNT-OPTIONS]
 *
 *     path|type|mode|uid|gid|nlink|size|sha256, target or device|plugin|bytes|extensions
 *
 * -a: in the form of those that have Adler-32 sums. -w: the volume is opened for writing. Of
 * compressed files the contents are left out.
 */
#include <inttypes.h>
#include <sha2.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "layouts/reiser4/layout.h"
#include "tests/tools/image_tree.h"

/* "." is shown as "/", and "./x" as "/x". */
static const char *shown_path(const char *path) {
    return path[1] == '\0' ? "/" : path + 1;
}

static const char *plugin_of(struct inode *inode) {
    return reiser4_plugin_name(REISER4_PLUGIN_OBJECT,
                               reiser4_inode_of(inode)->plugins.id[REISER4_PLUGIN_OBJECT]);
}

static bool is_compressed(struct inode *inode) {
    return reiser4_inode_of(inode)->plugins.id[REISER4_PLUGIN_OBJECT] == REISER4_OBJECT_CCREG40;
}

static char type_letter(uint32_t mode) {
    return S_ISREG(mode)    ? 'f'
           : S_ISDIR(mode)  ? 'd'
           : S_ISLNK(mode)  ? 'l'
           : S_ISBLK(mode)  ? 'b'
           : S_ISCHR(mode)  ? 'c'
           : S_ISFIFO(mode) ? 'p'
                            : 's';
}

/* --- with SHA-256 sums --------------------------------------------------------------------------
 */

static void sha_add(void *context, const void *bytes, size_t size) {
    SHA256Update(context, bytes, size);
}

static int print_sha(struct inode *inode, uint64_t size) {
    char text[SHA256_DIGEST_STRING_LENGTH];
    SHA2_CTX sum;

    if (is_compressed(inode)) {
        printf("?");
        return 0;
    }
    SHA256Init(&sum);
    int error = image_tree_read(inode, 0, size, sha_add, &sum);
    printf("%s", SHA256End(&sum, text));
    return error;
}

static int print_target(const char *arrow, struct inode *inode, uint64_t size) {
    int error;
    char *target = image_tree_target(inode, size, &error);

    printf("%s%s", arrow, target ? target : "");
    free(target);
    return error;
}

static int print_contents(struct inode *inode, const struct attributes *a) {
    if (S_ISREG(a->mode))
        return print_sha(inode, a->size);
    if (S_ISLNK(a->mode))
        return print_target("->", inode, a->size);
    if (S_ISBLK(a->mode) || S_ISCHR(a->mode))
        printf("%u:%u", a->rdev >> 20, a->rdev & 0xFFFFF);
    else
        printf("-");
    return 0;
}

static int print_object(void *context, const char *path, struct inode *inode) {
    const struct reiser4_inode *private = reiser4_inode_of(inode);
    struct attributes a;

    (void)context;
    volume_getattr(inode, &a);
    printf("%s|%c|%o|%u|%u|%u|%" PRIu64 "|", shown_path(path), type_letter(a.mode), a.mode & 07777,
           a.uid, a.gid, a.nlink, a.size);
    int error = print_contents(inode, &a);
    printf("|%s|%" PRIu64 "|%x\n", plugin_of(inode), private->bytes, private->mask);
    return error;
}

/* --- with Adler-32 sums -------------------------------------------------------------------------
 */

static void adler_add(void *context, const void *bytes, size_t size) {
    uLong *sum = context;

    *sum = adler32(*sum, bytes, (uInt)size);
}

static int print_adler(struct inode *inode, uint64_t size) {
    uLong sum = 1;

    if (is_compressed(inode))
        return 0;
    int error = image_tree_read(inode, 0, size, adler_add, &sum);
    printf("  len=%" PRIu64 " adler32=%08lx\n", size, sum);
    return error;
}

static int print_object_with_adler(void *context, const char *path, struct inode *inode) {
    const struct reiser4_inode *private = reiser4_inode_of(inode);
    struct attributes a;
    int error = 0;

    (void)context;
    volume_getattr(inode, &a);
    printf("%s %s mode=%o nlink=%u size=%" PRIu64 " bytes=%" PRIu64
           " uid=%u gid=%u rdev=%x mtime=%" PRId64 " mask=%x [%" PRIx64 ":1(SD):%" PRIx64
           ":%" PRIx64 ":0]",
           plugin_of(inode), shown_path(path), a.mode, a.nlink, a.size, private->bytes, a.uid,
           a.gid, a.rdev, (int64_t)a.mtime.seconds, private->mask, private->locality,
           private->ordering, a.ino);
    if (S_ISLNK(a.mode))
        error = print_target(" -> ", inode, a.size);
    putchar('\n');
    return S_ISREG(a.mode) ? print_adler(inode, a.size) : error;
}

int main(int argc, char **argv) {
    image_tree_visit print = print_object;
    bool writable = false;
    int option;

    while ((option = getopt(argc, argv, "aw")) != -1) {
        writable |= option == 'w';
        if (option == 'a')
            print = print_object_with_adler;
    }
    if (argc - optind < 1 || argc - optind > 2) {
        fputs("usage: reiser4_manifest [-w] [-a] IMAGE [MOUNT-OPTIONS]\n", stderr);
        return 2;
    }
    return image_tree_each(argv[optind], writable, argv[optind + 1], print, NULL) ? 1 : 0;
}
