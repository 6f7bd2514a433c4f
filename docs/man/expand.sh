#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
#   expand.sh INPUT.scd OUTPUT LAYOUTFS SCDOC
#
# Makes a manual page, with option tables as the program prints them.
set -eu

input=$1 output=$2 layoutfs=$3 scdoc=$4

while IFS= read -r line; do
    case $line in
    '@OPTIONS '*@)
        arguments=${line#@OPTIONS }
        # shellcheck disable=SC2086
        "$layoutfs" options --scdoc ${arguments%@}
        ;;
    *) printf '%s\n' "$line" ;;
    esac
done <"$input" >"$output.scd"
"$scdoc" <"$output.scd" >"$output"
rm "$output.scd"
