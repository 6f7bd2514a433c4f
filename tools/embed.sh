#!/bin/sh
# embed.sh INPUT OUTPUT NAME: writes a C file that holds INPUT as a string constant.
set -eu
symbol=embedded_$(printf %s "$3" | tr -c 'A-Za-z0-9' _)
{
    printf 'extern const char %s[];\nconst char %s[] = {' "$symbol" "$symbol"
    od -An -v -tu1 "$1" | sed 's/  *\([0-9][0-9]*\)/\1,/g'
    printf '0};\n'
} > "$2"
