/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: fs (no dependencies).
 * Messages for people. A function that fails returns a negative errno and, where the reason is not
 * plain from it, says one sentence here: it names the file or volume, the structure, the block, and
 * what was expected. Messages never hold file contents.
 *
 * Locking: log_message may be called from any thread; the sink serialises itself.
 */
#ifndef LAYOUTFS_LOG_H
#define LAYOUTFS_LOG_H

#include <stdarg.h>

enum log_level { LOG_LEVEL_ERROR, LOG_LEVEL_WARNING, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG };

struct log {
    /* Called with a finished sentence without newline; `text` is only valid during the call. */
    void (*emit)(void *context, enum log_level level, const char *text);
    void *context;
    enum log_level threshold; /* messages above it are dropped */
};

/* A sink that writes "PREFIX: text" lines to standard error. `prefix` is borrowed. */
struct log log_to_stderr(const char *prefix, enum log_level threshold);

/* `log` may be NULL: the message is dropped. */
void log_message(const struct log *log, enum log_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void log_vmessage(const struct log *log, enum log_level level, const char *format, va_list args)
    __attribute__((format(printf, 3, 0)));

#define log_error(log, ...)   log_message((log), LOG_LEVEL_ERROR, __VA_ARGS__)
#define log_warning(log, ...) log_message((log), LOG_LEVEL_WARNING, __VA_ARGS__)
#define log_info(log, ...)    log_message((log), LOG_LEVEL_INFO, __VA_ARGS__)

#endif
