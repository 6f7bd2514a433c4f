#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# One kind of static check over the whole tree; exits with 77 when its tool is not installed.
#
#   scripts/lint.sh format|tidy|analyze|cppcheck|shell [BUILD]
#
# BUILD is a meson build directory, whose compile_commands.json clang-tidy reads. `analyze` takes long
# and errs now and then: it is for reading, not for `make check`.
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

tidy() {
    printf '%s\0' "${sources[@]}" |
        xargs -0 -n 4 -P "$(nproc)" clang-tidy -p "$build" --quiet "$@" \
            2> >(grep -v 'warnings* generated' >&2)
}

case ${1:-} in
format)
    need clang-format
    clang-format --dry-run -Werror "${sources[@]}" "${headers[@]}"
    ;;
tidy)
    need clang-tidy
    tidy
    ;;
analyze)
    need clang-tidy
    tidy --checks='-*,clang-analyzer-*,-clang-analyzer-security.insecureAPI.*'
    ;;
cppcheck)
    need cppcheck
    # Without these macros of system headers it cannot read the code; expanded in full, sys/tree.h's
    # only cost time.
    headers=()
    for header in /usr/include/jansson.h /usr/include/*/sys/queue.h; do
        [ ! -f "$header" ] || headers+=("--include=$header")
    done
    cppcheck --quiet --error-exitcode=1 --std=c11 -j "$(nproc)" -I . -D_GNU_SOURCE \
        --library=gnu,posix "${headers[@]}" -D'RB_GENERATE_INTERNAL(a,b,c,d,e)=' \
        -D'RB_PROTOTYPE_INTERNAL(a,b,c,d,e)=' -D'RB_PROTOTYPE(a,b,c,d)=' -D'RB_GENERATE(a,b,c,d)=' --enable=warning,performance,portability --inline-suppr \
        --suppress=missingIncludeSystem --suppress=readdirCalled --suppress=autoVariables \
        --suppress=invalidFunctionArg --suppress=invalidFunctionArgBool --suppress=uninitvar \
        "${sources[@]}"
    ;;
shell)
    need shellcheck
    shellcheck --severity=warning --exclude=SC2120 --shell=bash "${scripts[@]}"
    ;;
*)
    echo "usage: $0 format|tidy|analyze|cppcheck|shell [BUILD]" >&2
    exit 2
    ;;
esac
