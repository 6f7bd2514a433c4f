/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/ext, between acl.c and xattr.c.
 * Access control lists: ext's compact form on disk against the form of the attributes
 * system.posix_acl_access and system.posix_acl_default (acl(5), linux/posix_acl_xattr.h).
 */
#ifndef LAYOUTFS_EXT_ACL_H
#define LAYOUTFS_EXT_ACL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Both return the length of the result, which is written when it fits in `room`. */

/* -EUCLEAN: it makes no sense. */
int64_t ext_acl_from_disk(const void *disk, size_t size, void *value, size_t room);
/* -EINVAL: it makes no sense; 0: it has no entries. *permissions: the file mode's nine bits as the
 * list implies them; *minimal: the list says no more than these. */
int64_t ext_acl_to_disk(const void *value, size_t size, void *disk, size_t room,
                        uint32_t *permissions, bool *minimal);

#endif
