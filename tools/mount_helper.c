/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: tools. What mount(8) and umount(8) run for a type that they do not know themselves. Under
 * the names mount.layoutfs, mount.fuse.layoutfs, umount.layoutfs and umount.fuse.layoutfs (links)
 * this program follows their conventions, which "EXTERNAL HELPERS" in the manuals of both
 * describes:
 *
 *   mount.TYPE SOURCE DIR [-sfnv] [-N NAMESPACE] [-o OPTIONS] [-t TYPE.SUBTYPE]
 *   umount.TYPE DIR [-nlfvr] [-N NAMESPACE] [-t TYPE.SUBTYPE]
 *
 * and exits as mount(8) does: 0 done, 1 usage, 2 system error, 32 mount failure. The kernel calls
 * such a mount fuse.layoutfs.ext2, and umount(8) drops the last part when it looks for a helper.
 */
#include "tools/mount_helper.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tools/image.h"
#include "tools/mount.h"
#include "tools/tool.h"

enum { HELPER_USAGE = 1, HELPER_FAILED = 32 };

static int helper_exit(int code) {
    return code == TOOL_DONE ? 0 : code == TOOL_USAGE ? HELPER_USAGE : HELPER_FAILED;
}

/* "ext2" of "fuse.layoutfs.ext2"; NULL where nothing follows the program's name. */
static const char *layout_type_of(const char *type) {
    const char *own = strstr(type, "layoutfs.");
    own = own ? own + strlen("layoutfs.") : NULL;
    return own && *own ? own : NULL;
}

static int mount_usage(void) {
    fputs("usage: mount.layoutfs IMAGE DIR [-sfnvrw] [-o OPTION,...] [-t layoutfs.TYPE]\n", stderr);
    return HELPER_USAGE;
}

/* 0, or the exit code. */
static int take_mount_flag(struct mount_request *request, int flag, const char *argument) {
    const char *option = flag == 'o' ? argument : flag == 'r' ? "ro" : flag == 'w' ? "rw" : NULL;
    if (option)
        return mount_options_add(request->options, option) == 0 ? 0 : HELPER_USAGE;
    switch (flag) {
    case 's':
        request->sloppy = true;
        return 0;
    case 'f':
        request->pretend = true;
        return 0;
    case 'v':
        request->verbose = true;
        return 0;
    case 'n': /* "do not write /etc/mtab", which is long gone */
        return 0;
    case 't':
        request->type = layout_type_of(argument);
        return 0;
    case 'N':
        tool_fail("mounting in another namespace is left to nsenter(1)");
        return HELPER_USAGE;
    default:
        return mount_usage();
    }
}

static int run_mount(int argc, char **argv) {
    struct mount_options options = {0};
    struct mount_request request = {.options = &options, .type = layout_type_of(argv[0])};
    int code = 0, flag;

    while (!code && (flag = getopt(argc, argv, "sfnvrwN:o:t:")) != -1)
        code = take_mount_flag(&request, flag, optarg);
    if (!code && argc - optind != 2)
        code = mount_usage();
    if (!code) {
        request.image = argv[optind];
        request.directory = argv[optind + 1];
        code = helper_exit(mount_image(&request));
    }
    mount_options_free(&options);
    return code;
}

static int run_umount(int argc, char **argv) {
    struct unmount_request request = {0};
    int flag;

    while ((flag = getopt(argc, argv, "nlfvrN:t:")) != -1) {
        if (flag == 'l')
            request.lazy = true;
        else if (flag == 'N' || flag == '?')
            return HELPER_USAGE;
        /* f: a server that hangs cannot be forced without losing what it holds; r: a mount cannot
         * become read-only. Both are wishes for when an unmount fails, and then it just fails. */
    }
    if (argc - optind != 1) {
        fputs("usage: umount.layoutfs DIR [-nlfvr]\n", stderr);
        return HELPER_USAGE;
    }
    request.directory = argv[optind];
    return helper_exit(unmount_image(&request));
}

mount_helper mount_helper_find(const char *program) {
    size_t length;
    const char *name = path_last(program, &length);
    if (strncmp(name, "mount.", strlen("mount.")) == 0)
        return run_mount;
    return strncmp(name, "umount.", strlen("umount.")) == 0 ? run_umount : NULL;
}
