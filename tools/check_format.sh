#!/usr/bin/env bash
# Complains about every C file that clang-format would change; changes nothing.
#   tools/check_format.sh          all of src, sim, tests, include, bench
#   tools/check_format.sh FILE…    these files
set -u
cd "$(dirname "$0")/.." || exit 1
formatter=$(command -v clang-format-14 || command -v clang-format) || {
    echo "check_format: clang-format-14 is not installed (scripts/deps test installs it)" >&2
    exit 1
}
if [ $# -gt 0 ]; then
    files=("$@")
else
    mapfile -t files < <(find src sim tests include bench bindings examples -name '*.[ch]')
fi
bad=$(for file in "${files[@]}"; do [ -e "$file" ] && echo "$file"; done |
    xargs -r -P "$(nproc)" -I{} sh -c '"$1" --dry-run -Werror "$2" >/dev/null 2>&1 || echo "$2"' \
        sh "$formatter" {} | sort)
[ -z "$bad" ] && exit 0
echo "$bad" | sed 's/$/: not formatted/'
echo "mend with: $(basename "$formatter") -i $(echo "$bad" | tr '\n' ' ')"
exit 1
