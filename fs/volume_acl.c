/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: fs, over the layout contract and fs/acl.h. Access control lists of a volume's inodes: what
 * creating, chmod and setting one mean. Interface: fs/volume_internal.h. The exclusive lock is held
 * in every call. Who may do what is decided by who checks permissions: the kernel, over a mount.
 *
 * Invariants:
 *  1. An access list and the mode agree: owner and others, and the mask (or, without one, the
 * group) have the mode's permissions.
 *  2. An access list that says no more than the mode is not stored.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "fs/acl.h"
#include "fs/volume_internal.h"

struct acl_value {
    void *bytes; /* owned; NULL: there is no list */
    size_t size;
    bool minimal;
};

static int load_bytes(struct inode *inode, enum acl_kind kind, struct acl_value *acl) {
    struct volume *volume = inode->volume;
    uint32_t permissions;

    acl->bytes = malloc(acl->size);
    if (!acl->bytes)
        return -ENOMEM;
    int64_t length = volume->layout->xattr_get(inode, acl_name(kind), acl->bytes, acl->size);
    if (length >= 0 && acl_check(acl->bytes, acl->size, &permissions, &acl->minimal) > 0)
        return 0;
    free(acl->bytes);
    acl->bytes = NULL;
    if (length < 0)
        return (int)length;
    log_error(volume->log, "%s: inode %llu: its attribute %s is no list of permissions",
              volume->name, (unsigned long long)inode->ino, acl_name(kind));
    return -EUCLEAN;
}

static int load(struct inode *inode, enum acl_kind kind, struct acl_value *acl) {
    const struct layout *layout = inode->volume->layout;

    *acl = (struct acl_value){0};
    if (!layout->xattr_get || inode->acls_absent & kind)
        return 0;
    int64_t length = layout->xattr_get(inode, acl_name(kind), NULL, 0);
    if (length == -ENODATA || length == -ENOTSUP) {
        inode->acls_absent |= kind;
        return 0;
    }
    if (length < 0)
        return (int)length;
    acl->size = (size_t)length;
    return load_bytes(inode, kind, acl);
}

static int store(struct inode *inode, enum acl_kind kind, const void *value, size_t size) {
    int error = inode->volume->layout->xattr_set(inode, acl_name(kind), value, size, 0);

    if (!error)
        inode->acls_absent &= (uint8_t)~kind;
    return error;
}

static int discard(struct inode *inode, enum acl_kind kind) {
    int error = inode->volume->layout->xattr_remove(inode, acl_name(kind));

    if (error && error != -ENODATA)
        return error;
    inode->acls_absent |= kind;
    return 0;
}

/* The new inode's lists, made of its directory's default list. */
static int inherit(struct inode *inode, struct acl_value *acl) {
    int error = 0;

    if (S_ISDIR(inode->mode))
        error = store(inode, ACL_DEFAULT, acl->bytes, acl->size);
    inode->mode = acl_inherit(acl->bytes, acl->size, inode->mode);
    if (!error && !acl->minimal)
        error = store(inode, ACL_ACCESS, acl->bytes, acl->size);
    return error;
}

int volume_acl_create(struct inode *dir, struct inode *inode, uint32_t umask) {
    struct acl_value acl;

    inode->acls_absent = ACL_ACCESS | ACL_DEFAULT;
    if (S_ISLNK(inode->mode))
        return 0;
    int error = load(dir, ACL_DEFAULT, &acl);
    if (error)
        return error;
    if (acl.bytes)
        error = inherit(inode, &acl);
    else
        inode->mode &= ~(umask & 0777);
    free(acl.bytes);
    return error;
}

int volume_acl_chmod(struct inode *inode, uint32_t mode) {
    struct acl_value acl;

    if (S_ISLNK(inode->mode))
        return 0;
    int error = load(inode, ACL_ACCESS, &acl);
    if (error || !acl.bytes)
        return error;
    acl_set_mode(acl.bytes, acl.size, mode);
    error = store(inode, ACL_ACCESS, acl.bytes, acl.size);
    free(acl.bytes);
    return error;
}

int volume_acl_set(struct inode *inode, enum acl_kind kind, const void *value, size_t size) {
    uint32_t permissions = 0;
    bool minimal = true;
    int count = value ? acl_check(value, size, &permissions, &minimal) : 0;

    if (S_ISLNK(inode->mode))
        return -ENOTSUP;
    if (count < 0)
        return count;
    if (kind == ACL_DEFAULT && !S_ISDIR(inode->mode))
        return count > 0 ? -EACCES : 0;
    bool in_mode = kind == ACL_ACCESS && minimal;
    int error = count > 0 && !in_mode ? store(inode, kind, value, size) : discard(inode, kind);
    if (!error && count > 0 && kind == ACL_ACCESS)
        inode->mode = (inode->mode & ~0777u) | permissions;
    return error;
}
