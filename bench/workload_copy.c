/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: bench. What a journal costs and saves: a tree of small files is copied onto the volume and
 * deleted, each with the sync that makes it durable; then mail is delivered, each message made
 * durable before the next, which is what journals were tuned for.
 *
 * Steps are kept apart by emptying the caches between them, so that none pays for what the one
 * before has put off; what is put off is measured then, untimed, up to the last block.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "bench/workload.h"

#define MAIL_BYTES_MAX 65536u
#define PROGRESS_STEP  64u

static const struct option_spec copy_parameters[] = {
    {"files", 0, OPTION_NUMBER, WORKLOAD_OPTIONS, "20000", 1, 10000000, NULL,
     "files of a synthetic tree, and of a fitted one"},
    {"bytes", 0, OPTION_SIZE, WORKLOAD_OPTIONS, "100M", 1, INT64_MAX, NULL, "bytes in them"},
    {"mails", 0, OPTION_NUMBER, WORKLOAD_OPTIONS, "2000", 1, 10000000, NULL, "messages to deliver"},
    {"mail_bytes", 0, OPTION_SIZE, WORKLOAD_OPTIONS, "4K", 1, MAIL_BYTES_MAX, NULL,
     "bytes in each"},
    {0},
};

static int copy(struct workload_run *run) {
    int error = step_begin(run, "copy", true);

    if (!error)
        error = tree_unpack(run, 0);
    if (!error)
        step_end(run, run->source->files, run->source->bytes);
    return error;
}

static int delete (struct workload_run *run) {
    struct tree_count count = {0};
    int error = step_begin(run, "delete", true);

    if (!error)
        error = tree_remove(run, &count);
    if (!error)
        step_end(run, count.files, 0);
    return error;
}

static int sync_step(struct workload_run *run, const char *step) {
    int error = step_begin(run, step, true);

    if (!error)
        error = run->driver->operations->sync(run->driver);
    if (!error)
        step_end(run, 0, 0);
    return error;
}

/* --- mail --------------------------------------------------------------------------------------
 */

/* A mailbox in the form of maildir: written in one directory, moved to the other when durable. */
struct mailbox {
    struct driver_node root, incoming, delivered;
};

static int deliver(struct driver *driver, const struct mailbox *box, uint32_t number, size_t size) {
    static const char content[MAIL_BYTES_MAX] = "From: a sender";
    struct driver_node message;
    char name[24];

    snprintf(name, sizeof(name), "mail%07u", number);
    int error = driver->operations->create(driver, &box->incoming, name, 0600, &message);
    if (error)
        return error;
    error = driver->operations->write(driver, &message, content, size, 0);
    if (!error)
        error = driver->operations->fsync(driver, &message);
    driver->operations->close(driver, &message);
    if (error)
        return error;
    return driver->operations->rename(driver, &box->incoming, name, &box->delivered, name);
}

static int enter_new(struct driver *driver, const struct driver_node *root, const char *name,
                     struct driver_node *dir) {
    int error = driver->operations->mkdir(driver, root, name, 0700);

    return error ? error : driver->operations->enter(driver, root, name, dir);
}

static int mailbox_open(struct driver *driver, struct mailbox *box) {
    int error = driver->operations->root(driver, &box->root);

    if (error)
        return error;
    error = enter_new(driver, &box->root, "tmp", &box->incoming);
    if (!error) {
        error = enter_new(driver, &box->root, "new", &box->delivered);
        if (error)
            driver->operations->leave(driver, &box->incoming);
    }
    if (error)
        driver->operations->leave(driver, &box->root);
    return error;
}

static void mailbox_close(struct driver *driver, struct mailbox *box) {
    driver->operations->leave(driver, &box->delivered);
    driver->operations->leave(driver, &box->incoming);
    driver->operations->leave(driver, &box->root);
}

static int mail(struct workload_run *run) {
    uint32_t count = (uint32_t)options_number(run->parameters, "mails");
    size_t size = (size_t)options_number(run->parameters, "mail_bytes");
    struct mailbox box;
    int error = mailbox_open(run->driver, &box);

    if (error)
        return error;
    error = step_begin(run, "mail", true);
    for (uint32_t i = 0; i < count && !error; i++) {
        error = deliver(run->driver, &box, i, size);
        if (i % PROGRESS_STEP == 0)
            step_progress(run, i, count);
    }
    if (!error)
        step_end(run, count, (uint64_t)count * size);
    mailbox_close(run->driver, &box);
    return error;
}

static int copy_run(struct workload_run *run) {
    int error = copy(run);

    if (!error)
        error = sync_step(run, "sync after copy");
    if (!error)
        error = step_cool(run, "reboot before delete");
    if (!error)
        error = delete (run);
    if (!error)
        error = sync_step(run, "sync after delete");
    if (!error)
        error = step_cool(run, "reboot before mail");
    if (!error)
        error = mail(run);
    if (!error)
        error = step_cool(run, "shutdown");
    return error;
}

static const char *const copy_scaled[] = {"files", "bytes", "mails", NULL};

extern const struct workload workload_copy;
const struct workload workload_copy = {
    .name = "copy",
    .description = "copy a tree of small files and delete it, each with sync; deliver mail with "
                   "fsync",
    .parameters = copy_parameters,
    .scaled = copy_scaled,
    .needs_source = true,
    .run = copy_run,
};
