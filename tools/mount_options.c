/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: tools. Interface: tools/mount_options.h. The meaning of the generic options: mount(8).
 */
#include "tools/mount_options.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fs/volume.h"
#include "tools/image.h"

#define FLAG(option_name, text)                                                                    \
    .spec = {                                                                                      \
        .name = (option_name),                                                                     \
        .kind = OPTION_BOOL,                                                                       \
        .scope = OPTION_MOUNT,                                                                     \
        .description = (text),                                                                     \
    }
#define VALUE(option_name, text)                                                                   \
    .spec = {                                                                                      \
        .name = (option_name),                                                                     \
        .kind = OPTION_TEXT,                                                                       \
        .scope = OPTION_MOUNT,                                                                     \
        .description = (text),                                                                     \
    }

const struct mount_option mount_option_table[] = {
    {FLAG("ro", "read-only: no byte of the image changes"), .fuse = "ro"},
    {FLAG("rw", "the opposite of ro, and the default"), .fuse = "rw"},
    {FLAG("nosuid", "set-id bits have no effect; a plain user's mounts always are"),
     .fuse = "nosuid"},
    {FLAG("suid", "the opposite of nosuid; root's default"), .fuse = "suid"},
    {FLAG("nodev", "device nodes cannot be opened; a plain user's mounts always are"),
     .fuse = "nodev"},
    {FLAG("dev", "the opposite of nodev; root's default"), .fuse = "dev"},
    {FLAG("noexec", "no program can be run from here"), .fuse = "noexec"},
    {FLAG("exec", "the opposite of noexec"), .fuse = "exec"},
    {FLAG("sync", "a write returns once the kernel has passed it on"), .fuse = "sync"},
    {FLAG("async", "the opposite of sync"), .fuse = "async"},
    {FLAG("dirsync", "the same as sync, for directories"), .fuse = "dirsync"},
    {FLAG("noatime", "as atime=noatime"), .fuse = "noatime", .volume = "atime=noatime"},
    {FLAG("relatime", "as atime=relatime"), .volume = "atime=relatime"},
    {FLAG("strictatime", "as atime=strictatime"), .volume = "atime=strictatime"},
    {FLAG("allow_other", "other users may enter, as far as permissions let them; root's default; "
                         "plain users need user_allow_other in /etc/fuse.conf"),
     .fuse = "allow_other"},
    {FLAG("default_permissions", "the kernel checks permissions; always so")},
    {FLAG("writeback", "the kernel holds written data back: faster for programs that write little "
                       "at a time, but a full disk is noticed only at close or fsync")},
    {FLAG("nowriteback", "the opposite of writeback, and the default")},
    {FLAG("io_uring",
          "the kernel is asked to pass requests by io_uring, which is faster, though its "
          "setting for all mounts is against it; needs root and Linux 6.14")},
    {VALUE("log=*", "messages go to the end of this file once the mount is there, instead of "
                    "syslog (in the foreground: standard error)")},
    {VALUE("context=*", "for SELinux, as are fscontext=, defcontext= and rootcontext="),
     .fuse = ""},
    {VALUE("fscontext=*", "see context="), .fuse = ""},
    {VALUE("defcontext=*", "see context="), .fuse = ""},
    {VALUE("rootcontext=*", "see context="), .fuse = ""},
    {VALUE("fsname=*", "accepted, and ignored: /proc/mounts shows the image, by which umount knows "
                       "what to wait for")},
    {VALUE("subtype=*", "accepted, and ignored: it is layoutfs.TYPE")},
    {FLAG("defaults", "means nothing here, like all that mount(8) and fstab(5) say to each other: "
                      "auto, nofail, _netdev, user, x-* and so on")},
    {.spec = {0}},
};

static const char *const ignored_options[] = {
    "auto",    "noauto", "nofail", "_netdev",   "user",     "user=*",    "nouser", "users",
    "nousers", "owner",  "group",  "comment=*", "helper=*", "uhelper=*", "x-*",    "X-*",
};

static bool append_option(char **list, const char *option) {
    char *longer;
    int length =
        *list ? asprintf(&longer, "%s,%s", *list, option) : asprintf(&longer, "%s", option);
    if (length < 0)
        return false;
    free(*list);
    *list = longer;
    return true;
}

static const struct mount_option *find_option(const char *text) {
    for (const struct mount_option *option = mount_option_table; option->spec.name; option++)
        if (fnmatch(option->spec.name, text, 0) == 0)
            return option;
    return NULL;
}

static bool is_ignored(const char *text) {
    for (size_t i = 0; i < sizeof ignored_options / sizeof *ignored_options; i++)
        if (fnmatch(ignored_options[i], text, 0) == 0)
            return true;
    return false;
}

/* What is neither the kernel's nor the volume's. */
static bool take_own_option(struct mount_options *options, const char *text) {
    if (strcmp(text, "ro") == 0 || strcmp(text, "rw") == 0)
        options->read_only = text[1] == 'o';
    if (strcmp(text, "writeback") == 0 || strcmp(text, "nowriteback") == 0)
        options->delayed_writes = text[0] == 'w';
    if (strcmp(text, "io_uring") == 0)
        options->io_uring = true;
    if (strncmp(text, "log=", 4) == 0) {
        free(options->log);
        options->log = strdup(text + 4);
        return options->log != NULL;
    }
    return true;
}

static int add_option(struct mount_options *options, const char *text) {
    const struct mount_option *known = find_option(text);
    if (strcmp(text, "remount") == 0) {
        tool_fail("remount: the options of a mount cannot change; unmount it and mount it again");
        return -EINVAL;
    }
    if (is_ignored(text))
        return 0;
    if (!known)
        return append_option(&options->volume, text) ? 0 : -ENOMEM;
    const char *fuse = known->fuse && !*known->fuse ? text : known->fuse;
    bool done = take_own_option(options, text) && (!fuse || append_option(&options->fuse, fuse)) &&
                (!known->volume || append_option(&options->volume, known->volume));
    return done ? 0 : -ENOMEM;
}

int mount_options_add(struct mount_options *options, const char *text) {
    char *copy = strdup(text), *rest = copy, *option;
    int error = copy ? 0 : -ENOMEM;
    while (!error && (option = strsep(&rest, ",")))
        if (*option)
            error = add_option(options, option);
    free(copy);
    return error;
}

/* What a kernel filesystem offers without being asked. A plain user's mount is nosuid and nodev,
 * and for that user alone: fusermount3 sees to it. */
int mount_options_complete(struct mount_options *options, const char *type) {
    char subtype[64];
    snprintf(subtype, sizeof subtype, "subtype=layoutfs.%s", type);
    char *users = options->fuse;
    options->fuse = NULL;
    bool done = append_option(&options->fuse, "default_permissions") &&
                append_option(&options->fuse, subtype) &&
                (geteuid() != 0 || append_option(&options->fuse, "allow_other,suid,dev")) &&
                (!users || append_option(&options->fuse, users));
    free(users);
    return done ? 0 : -ENOMEM;
}

int mount_options_drop_unknown(struct mount_options *options, const char *type,
                               const struct log *log) {
    char *all = options->volume, *rest = all, *option;
    int error = 0;
    options->volume = NULL;
    while (!error && rest && (option = strsep(&rest, ","))) {
        if (volume_options_check(type, option, NULL) != 0)
            log_warning(log, "option \"%s\" is dropped", option);
        else if (!append_option(&options->volume, option))
            error = -ENOMEM;
    }
    free(all);
    return error;
}

void mount_options_free(struct mount_options *options) {
    free(options->fuse);
    free(options->volume);
    free(options->log);
    *options = (struct mount_options){0};
}
