/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: fs, the bottom. Interface: fs/acl.h.
 */
#include "fs/acl.h"

#include <errno.h>
#include <string.h>

#define ACL_BASE  (ACL_USER_OWNER | ACL_GROUP_OWNER | ACL_OTHER)
#define ACL_KNOWN (ACL_BASE | ACL_NAMED | ACL_MASK)

const char *acl_name(enum acl_kind kind) {
    return kind == ACL_ACCESS ? "system.posix_acl_access" : "system.posix_acl_default";
}

unsigned acl_kind_of(const char *name) {
    if (strcmp(name, acl_name(ACL_ACCESS)) == 0)
        return ACL_ACCESS;
    return strcmp(name, acl_name(ACL_DEFAULT)) == 0 ? ACL_DEFAULT : 0;
}

static size_t entry_count(size_t size) {
    return (size - sizeof(struct acl_header)) / sizeof(struct acl_entry);
}

/* What the entries seen so far amount to. */
struct acl_summary {
    uint32_t tags; /* enum acl_tag, or-ed */
    uint32_t last;
    uint32_t permissions[ACL_OTHER + 1]; /* by tag */
};

static bool summary_add(struct acl_summary *summary, const struct acl_entry *entry) {
    uint32_t tag = le16_load(entry->tag), permissions = le16_load(entry->permissions);

    if (!(tag & ACL_KNOWN) || tag & (tag - 1) || permissions > 7 || tag < summary->last ||
        (tag == summary->last && !(tag & ACL_NAMED)))
        return false;
    summary->last = tag;
    summary->tags |= tag;
    summary->permissions[tag] = permissions;
    return true;
}

static bool summary_complete(const struct acl_summary *summary) {
    return (summary->tags & ACL_BASE) == ACL_BASE &&
           (!(summary->tags & ACL_NAMED) || summary->tags & ACL_MASK);
}

int acl_check(const void *value, size_t size, uint32_t *permissions, bool *minimal) {
    const struct acl_header *header = value;
    const struct acl_entry *entries = (const struct acl_entry *)(header + 1);
    struct acl_summary summary = {0};

    if (size < sizeof(*header) || (size - sizeof(*header)) % sizeof(*entries) != 0 ||
        size > INT32_MAX || le32_load(header->version) != ACL_VERSION)
        return -EINVAL;
    size_t count = entry_count(size);
    for (size_t i = 0; i < count; i++)
        if (!summary_add(&summary, &entries[i]))
            return -EINVAL;
    if (count > 0 && !summary_complete(&summary))
        return -EINVAL;
    uint32_t group = summary.tags & ACL_MASK ? ACL_MASK : ACL_GROUP_OWNER;
    *minimal = !(summary.tags & ~(uint32_t)ACL_BASE);
    *permissions = summary.permissions[ACL_USER_OWNER] << 6 | summary.permissions[group] << 3 |
                   summary.permissions[ACL_OTHER];
    return (int)count;
}

/* The entries that the three classes of a file's mode show; the group's is the mask where there is
 * one. */
struct acl_classes {
    struct acl_entry *entries[3]; /* others, group, owner: by the mode's bits from below */
};

static struct acl_classes find_classes(void *value, size_t size) {
    struct acl_entry *entries = (struct acl_entry *)((struct acl_header *)value + 1);
    struct acl_classes classes = {0};

    for (size_t i = 0; i < entry_count(size); i++) {
        uint32_t tag = le16_load(entries[i].tag);
        if (tag == ACL_OTHER)
            classes.entries[0] = &entries[i];
        else if (tag == ACL_GROUP_OWNER || tag == ACL_MASK) /* the mask comes later */
            classes.entries[1] = &entries[i];
        else if (tag == ACL_USER_OWNER)
            classes.entries[2] = &entries[i];
    }
    return classes;
}

void acl_set_mode(void *value, size_t size, uint32_t mode) {
    struct acl_classes classes = find_classes(value, size);

    for (unsigned i = 0; i < 3; i++)
        le16_store(&classes.entries[i]->permissions, mode >> 3 * i & 7);
}

uint32_t acl_inherit(void *value, size_t size, uint32_t mode) {
    struct acl_classes classes = find_classes(value, size);

    for (unsigned i = 0; i < 3; i++) {
        uint32_t allowed = le16_load(classes.entries[i]->permissions) & mode >> 3 * i & 7;

        le16_store(&classes.entries[i]->permissions, allowed);
        mode = (mode & ~(7u << 3 * i)) | allowed << 3 * i;
    }
    return mode;
}
