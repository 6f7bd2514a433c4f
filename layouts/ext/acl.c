/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/ext, the bottom. Access control lists as ext stores them: a version, then entries
 * of which only those for a named user or group carry an id.
 *
 * Invariant: a list that is written has its entries in the order of their tags, and exactly one for
 * the owner, the group, the others, and, when somebody is named, the mask.
 */
#include "layouts/ext/acl.h"

#include <errno.h>

#include "fs/endian.h"

#define ACL_DISK_VERSION  1u
#define ACL_VALUE_VERSION 2u
#define ACL_NO_ID         0xFFFFFFFFu

enum acl_tag {
    ACL_USER_OWNER = 0x01,
    ACL_USER = 0x02,
    ACL_GROUP_OWNER = 0x04,
    ACL_GROUP = 0x08,
    ACL_MASK = 0x10,
    ACL_OTHER = 0x20,
};
#define ACL_NAMED (ACL_USER | ACL_GROUP)
#define ACL_BASE  (ACL_USER_OWNER | ACL_GROUP_OWNER | ACL_OTHER)
#define ACL_KNOWN (ACL_BASE | ACL_NAMED | ACL_MASK)

struct acl_disk_header {
    le32 version;
};
struct acl_disk_entry {
    le16 tag;
    le16 permissions;
    le32 id; /* not stored unless the tag is in ACL_NAMED */
};
#define ACL_DISK_SHORT 4u

static bool acl_tag_known(uint32_t tag) {
    return tag & ACL_KNOWN && (tag & (tag - 1)) == 0;
}

/* What the entries seen so far amount to. */
struct acl_summary {
    uint32_t tags; /* enum acl_tag, or-ed */
    uint32_t last;
    uint32_t permissions[ACL_OTHER + 1]; /* by tag */
};

static int acl_summary_add(struct acl_summary *summary, uint32_t tag, uint32_t permissions) {
    if (!acl_tag_known(tag) || permissions > 7 || tag < summary->last ||
        (tag == summary->last && !(tag & ACL_NAMED)))
        return -EINVAL;
    summary->last = tag;
    summary->tags |= tag;
    summary->permissions[tag] = permissions;
    return 0;
}

static bool acl_summary_complete(const struct acl_summary *summary) {
    return (summary->tags & ACL_BASE) == ACL_BASE &&
           (!(summary->tags & ACL_NAMED) || summary->tags & ACL_MASK);
}

int64_t ext_acl_from_disk(const void *disk, size_t size, void *value, size_t room) {
    const char *in = disk;
    struct acl_disk_header *header = value;
    struct acl_disk_entry *out = (struct acl_disk_entry *)(header + 1);
    size_t length = sizeof *header;
    size_t done = sizeof *header;

    if (size < done ||
        le32_load(((const struct acl_disk_header *)disk)->version) != ACL_DISK_VERSION)
        return -EUCLEAN;
    if (length <= room)
        le32_store(&header->version, ACL_VALUE_VERSION);
    while (done < size) {
        const struct acl_disk_entry *entry = (const struct acl_disk_entry *)(in + done);
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

int64_t ext_acl_to_disk(const void *value, size_t size, void *disk, size_t room,
                        uint32_t *permissions, bool *minimal) {
    const struct acl_disk_header *header = value;
    const struct acl_disk_entry *in = (const struct acl_disk_entry *)(header + 1);
    struct acl_summary summary = {0};
    char *out = disk;
    size_t length = sizeof *header;

    if (size < sizeof *header || (size - sizeof *header) % sizeof *in != 0 ||
        le32_load(header->version) != ACL_VALUE_VERSION)
        return -EINVAL;
    if (size == sizeof *header)
        return 0;
    if (length <= room)
        le32_store(&((struct acl_disk_header *)disk)->version, ACL_DISK_VERSION);
    for (size_t count = (size - sizeof *header) / sizeof *in; count-- > 0; in++) {
        uint32_t tag = le16_load(in->tag);
        int rc = acl_summary_add(&summary, tag, le16_load(in->permissions));
        if (rc < 0)
            return rc;
        size_t step = tag & ACL_NAMED ? sizeof *in : ACL_DISK_SHORT;
        if (length + step <= room) {
            struct acl_disk_entry *entry = (struct acl_disk_entry *)(out + length);
            entry->tag = in->tag;
            entry->permissions = in->permissions;
            if (tag & ACL_NAMED)
                entry->id = in->id;
        }
        length += step;
    }
    if (!acl_summary_complete(&summary))
        return -EINVAL;
    *minimal = !(summary.tags & ~(uint32_t)ACL_BASE);
    uint32_t group = summary.tags & ACL_MASK ? ACL_MASK : ACL_GROUP_OWNER;
    *permissions = summary.permissions[ACL_USER_OWNER] << 6 | summary.permissions[group] << 3 |
                   summary.permissions[ACL_OTHER];
    return (int64_t)length;
}
