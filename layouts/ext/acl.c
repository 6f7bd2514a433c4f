/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/ext, the bottom. Access control lists as ext stores them: a version, then entries
 * of which only those for a named user or group carry an id.
 */
#include "layouts/ext/acl.h"

#include <errno.h>

#include "fs/acl.h"

#define ACL_DISK_VERSION 1u
#define ACL_DISK_SHORT   4u /* an entry without its id */

static bool acl_tag_known(uint32_t tag) {
    return tag != 0 && tag <= ACL_OTHER && (tag & (tag - 1)) == 0;
}

int64_t ext_acl_from_disk(const void *disk, size_t size, void *value, size_t room) {
    const char *in = disk;
    struct acl_header *header = value;
    struct acl_entry *out = (struct acl_entry *)(header + 1);
    size_t length = sizeof *header;
    size_t done = sizeof *header;

    if (size < done || le32_load(((const struct acl_header *)disk)->version) != ACL_DISK_VERSION)
        return -EUCLEAN;
    if (length <= room)
        le32_store(&header->version, ACL_VERSION);
    while (done < size) {
        const struct acl_entry *entry = (const struct acl_entry *)(in + done);
        if (size - done < ACL_DISK_SHORT || !acl_tag_known(le16_load(entry->tag)))
            return -EUCLEAN;
        bool named = le16_load(entry->tag) & ACL_NAMED;
        if (named && size - done < sizeof *entry)
            return -EUCLEAN;
        length += sizeof *out;
        if (length <= room) {
            out->tag = entry->tag;
            out->permissions = entry->permissions;
            le32_store(&out->id, named ? le32_load(entry->id) : ACL_NO_ID);
            out++;
        }
        done += named ? sizeof *entry : ACL_DISK_SHORT;
    }
    return (int64_t)length;
}

int64_t ext_acl_to_disk(const void *value, size_t size, void *disk, size_t room) {
    const struct acl_header *header = value;
    const struct acl_entry *in = (const struct acl_entry *)(header + 1);
    char *out = disk;
    size_t length = sizeof *header;

    if (length <= room)
        le32_store(&((struct acl_header *)disk)->version, ACL_DISK_VERSION);
    for (size_t count = (size - sizeof *header) / sizeof *in; count-- > 0; in++) {
        bool named = le16_load(in->tag) & ACL_NAMED;
        size_t step = named ? sizeof *in : ACL_DISK_SHORT;
        if (length + step <= room) {
            struct acl_entry *entry = (struct acl_entry *)(out + length);
            entry->tag = in->tag;
            entry->permissions = in->permissions;
            if (named)
                entry->id = in->id;
        }
        length += step;
    }
    return (int64_t)length;
}
