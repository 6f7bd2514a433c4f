/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: fs. Formats messages and hands them to a sink. See log.h.
 */
#include "fs/log.h"

#include <stdint.h>
#include <stdio.h>

void log_vmessage(const struct log *log, enum log_level level, const char *format, va_list args) {
    char text[1024];

    if (!log || !log->emit || level > log->threshold)
        return;
    vsnprintf(text, sizeof(text), format, args);
    log->emit(log->context, level, text);
}

void log_message(const struct log *log, enum log_level level, const char *format, ...) {
    va_list args;

    va_start(args, format);
    log_vmessage(log, level, format, args);
    va_end(args);
}

static void emit_to_stderr(void *context, enum log_level level, const char *text) {
    static const char *const label[] = {"", "warning: ", "", "debug: "};

    /* One call, so that lines of several threads do not mix. */
    fprintf(stderr, "%s: %s%s\n", (const char *)context, label[level], text);
}

struct log log_to_stderr(const char *prefix, enum log_level threshold) {
    return (struct log){
        .emit = emit_to_stderr, .context = (void *)(uintptr_t)prefix, .threshold = threshold};
}
