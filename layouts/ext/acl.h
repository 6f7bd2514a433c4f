/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/ext, between acl.c and xattr.c.
 * Access control lists: ext's compact form on disk against the form of fs/acl.h.
 */
#ifndef LAYOUTFS_EXT_ACL_H
#define LAYOUTFS_EXT_ACL_H

#include <stddef.h>
#include <stdint.h>

/* Both return the length of the result, which is written when it fits in `room`. */

/* -EUCLEAN: it makes no sense. */
int64_t ext_acl_from_disk(const void *disk, size_t size, void *value, size_t room);
/* `value` is a sound list. */
int64_t ext_acl_to_disk(const void *value, size_t size, void *disk, size_t room);

#endif
