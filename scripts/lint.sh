#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# One kind of static check over the whole tree; exits with 77 when its tool is not installed.
#
#   scripts/lint.sh format|tidy|cppcheck|shell [BUILD]
#
# BUILD is a meson build directory, whose compile_commands.json clang-tidy reads.
set -euo pipefail

cd "$(dirname "$0")/.."
build=${2:-build}
mapfile -t sources < <(find . -path './build*' -prune -o -name '*.c' -print | sort)
mapfile -t headers < <(find . -path './build*' -prune -o -name '*.h' -print | sort)
mapfile -t scripts < <(find . -path './build*' -prune -o -name '*.sh' -print -o -path ./.ci/run \
    -print | sort)

need() {
    command -v "$1" >/dev/null || {
        echo "skip: $1 is not installed"
        exit 77
    }
}

case ${1:-} in
format)
    need clang-format
    clang-format --dry-run -Werror "${sources[@]}" "${headers[@]}"
    ;;
tidy)
    need clang-tidy
    printf '%s\0' "${sources[@]}" | xargs -0 -n 4 -P "$(nproc)" clang-tidy -p "$build" --quiet
    ;;
cppcheck)
    need cppcheck
    cppcheck --quiet --error-exitcode=1 --std=c11 -j "$(nproc)" -I . -D_GNU_SOURCE \
        --enable=warning,performance,portability --inline-suppr --suppress=missingIncludeSystem \
        --suppress=checkersReport "${sources[@]}"
    ;;
shell)
    need shellcheck
    shellcheck --severity=warning --shell=bash "${scripts[@]}"
    ;;
*)
    echo "usage: $0 format|tidy|cppcheck|shell [BUILD]" >&2
    exit 2
    ;;
esac
