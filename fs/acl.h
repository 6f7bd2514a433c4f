/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: fs, the bottom. Access control lists in the form that programs and the kernel hand about,
 * the values of two extended attributes (acl(5), linux/posix_acl_xattr.h): a version, then entries,
 * little-endian. What lists mean for a volume's inodes is in fs/volume_acl.c.
 *
 * A sound list has its entries in the order of their tags and exactly one for the owner, the group,
 * the others and, when a user or group is named, the mask. All functions but acl_check want one.
 */
#ifndef LAYOUTFS_ACL_H
#define LAYOUTFS_ACL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fs/endian.h"

#define ACL_VERSION 2u
#define ACL_NO_ID   0xFFFFFFFFu /* of entries that name nobody */

enum acl_tag {
    ACL_USER_OWNER = 0x01,
    ACL_USER = 0x02,
    ACL_GROUP_OWNER = 0x04,
    ACL_GROUP = 0x08,
    ACL_MASK = 0x10,
    ACL_OTHER = 0x20,
};
#define ACL_NAMED (ACL_USER | ACL_GROUP)

struct acl_header {
    le32 version;
};
struct acl_entry {
    le16 tag;
    le16 permissions;
    le32 id;
};

/* The two lists an inode can have, as bits. */
enum acl_kind { ACL_ACCESS = 1, ACL_DEFAULT = 2 };

/* The attribute's name, and back (0: another attribute's). */
const char *acl_name(enum acl_kind kind);
unsigned acl_kind_of(const char *name);

/* The number of entries, or -EINVAL when the list is not sound. None at all is sound: it stands for
 * no list. *permissions: the mode's nine bits that it implies; *minimal: it says no more than they
 * do. */
int acl_check(const void *value, size_t size, uint32_t *permissions, bool *minimal);
/* chmod: the list takes over the mode's nine bits. */
void acl_set_mode(void *value, size_t size, uint32_t mode);
/* Makes a directory's default list the access list of what is created in it with `mode`: each keeps
 * only what both allow. Returns the mode as it becomes. */
uint32_t acl_inherit(void *value, size_t size, uint32_t mode);

#endif
