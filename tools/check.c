/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: tools. `layoutfs check`: examines an image that is not mounted.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "fs/device/fork.h"
#include "tools/image.h"
#include "tools/print.h"
#include "tools/tool.h"

struct check {
    struct image_arguments arguments;
    bool json, repair, contents;
    json_t *findings; /* with json: what was found, as objects */
};

static const char *severity_name(enum check_severity severity) {
    return severity == CHECK_WRONG ? "wrong" : "note";
}

static void check_finding(void *context, enum check_severity severity, const char *text) {
    struct check *check = context;

    if (check->json)
        json_array_append_new(check->findings, json_pack("{s:s, s:s}", "severity",
                                                         severity_name(severity), "text", text));
    else
        printf("%s: %s\n", severity_name(severity), text);
}

static void check_conclude(const struct check *check, const struct probe_result *probe,
                           const struct check_report *report) {
    if (check->json) {
        json_t *object =
            json_pack("{s:s, s:s, s:s, s:b, s:I, s:I, s:O}", "image", check->arguments.image,
                      "type", probe->type, "description", probe->description, "clean",
                      report->wrong == 0, "wrong", (json_int_t)report->wrong, "repaired",
                      (json_int_t)report->repaired, "findings", check->findings);
        print_json(stdout, object);
        json_decref(object);
    } else if (report->wrong == 0) {
        printf("%s: %s: clean\n", check->arguments.image, probe->description);
    } else {
        printf("%s: %s: %" PRIu64 " wrong, %" PRIu64 " repaired\n", check->arguments.image,
               probe->description, report->wrong, report->repaired);
    }
}

static int check_incomplete(const struct check *check, int error) {
    return tool_fail("%s: the check was not completed: %s", check->arguments.image,
                     strerror(-error));
}

static int check_volume(struct check *check, const struct log *log, struct device *device,
                        const struct layout *layout, const struct probe_result *probe) {
    struct check_report report = {
        .finding = check_finding,
        .context = check,
        .repair = check->repair,
        .contents = check->contents,
    };
    int error = layout->check(device, log, &report);

    if (!error && check->repair)
        error = device_flush(device);
    if (error)
        return check_incomplete(check, error);
    check_conclude(check, probe, &report);
    return report.wrong == report.repaired ? TOOL_DONE : TOOL_FAILED;
}

/* Mounts the volume and unmounts it; the log is replayed, and what a crash has left to do is done.
 */
static int recover(const struct check *check, const struct log *log, struct device *device) {
    struct clock clock;
    struct volume_config config = {.clock = &clock, .log = log};
    struct volume *volume;
    int error = device_open_borrowed(device, &config.device);

    if (error)
        return check_incomplete(check, error);
    clock_init_virtual(&clock, NULL); /* without a thread of its own, which a fork could not bear */
    clock.epoch = clock_calendar(device->clock);
    config.device->clock = &clock;
    error = volume_open(&config, &volume);
    if (error)
        device_close(config.device);
    else
        error = volume_close(volume);
    return error ? tool_fail("%s: the volume cannot be recovered: %s", check->arguments.image,
                             strerror(-error))
                 : TOOL_DONE;
}

/* A log that was not replayed: what lies around it is not in order, and need not be. The volume is
 * examined as a mount will find it; for that the image is changed only to be repaired. */
static int check_recovered(struct check *check, const struct log *log, struct device *device,
                           const struct layout *layout, const struct probe_result *probe) {
    struct device *recovered = device;
    int error = check->repair ? 0 : device_open_fork(device, &recovered);

    if (error)
        return check_incomplete(check, error);
    check_finding(check, CHECK_NOTE,
                  check->repair
                      ? "the journal was not replayed; that is done first"
                      : "the journal has not been replayed: examined is what the volume will be "
                        "then; to replay it, mount the volume once");
    int code = recover(check, log, recovered);
    if (code == TOOL_DONE)
        code = check_volume(check, log, recovered, layout, probe);
    if (recovered != device)
        device_close(recovered);
    return code;
}

static int check_device(struct check *check, const struct log *log, struct device *device) {
    struct probe_result probe;
    const struct layout *layout;
    int error = layout_probe(device, &layout, &probe);

    if (error)
        return TOOL_FAILED;
    if (!layout->check)
        return tool_fail("%s: %s images cannot be checked", check->arguments.image, probe.type);
    return (probe.recover ? check_recovered : check_volume)(check, log, device, layout, &probe);
}

enum { KEY_JSON = 0x100, KEY_REPAIR, KEY_CONTENTS };

static const struct argp_option check_options[] = {
    {"contents", KEY_CONTENTS, NULL, 0,
     "Examine files' contents, too, where the format has checksums of them: all that is in use is "
     "read",
     0},
    {"json", KEY_JSON, NULL, 0, "Print one JSON object", 0},
    {"repair", KEY_REPAIR, NULL, 0, "Mend what can be mended", 0},
    {0},
};

static error_t check_parse(int key, char *argument, struct argp_state *state) {
    struct check *check = state->input;

    switch (key) {
    case KEY_JSON:
        check->json = true;
        return 0;
    case KEY_CONTENTS:
        check->contents = true;
        return 0;
    case KEY_REPAIR:
        check->repair = true;
        return 0;
    default:
        return image_arguments_parse(&check->arguments, 0, 0, key, state);
    }
}

int tool_check(int argc, char **argv) {
    static const struct argp argp = {
        .options = check_options,
        .parser = check_parse,
        .args_doc = "IMAGE",
        .doc = "Examines an image that is not mounted, and tells what is wrong with it.\v"
               "The exit code is 0 when nothing is wrong (or all was repaired), 1 otherwise.",
    };
    struct check check = {0};
    struct tool_image image;
    struct device *device;

    argp_parse(&argp, argc, argv, 0, NULL, &check);
    if (tool_image_open_device(&image, check.arguments.image, !check.repair, &device))
        return TOOL_FAILED;
    check.findings = json_array();
    int code = check_device(&check, &image.log, device);
    json_decref(check.findings);
    device_close(device);
    return code;
}
