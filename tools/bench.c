/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tools/tool.h"

int tool_bench(int argc, char **argv) {
    return TOOL_FAILED;
}
