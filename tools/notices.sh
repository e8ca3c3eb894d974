#!/usr/bin/env bash
# Writes THIRD_PARTY_NOTICES from what the release binary is really made of: the packages that own the
# system headers its objects include and the static archives it links.
#   tools/notices.sh build/release > THIRD_PARTY_NOTICES
set -euo pipefail
build=${1:?build folder}

headers=$(ninja -C "$build" -t deps 2> /dev/null | sed -n 's#^ *\(/usr/include/[^ ]*\)#\1#p' | sort -u)
archives=$(ninja -C "$build" -t commands tombolo_cli | tail -1 | tr ' ' '\n' | grep -E '^/usr/.*\.a$' | sort -u)
packages=$(for file in $headers $archives; do realpath -q "$file"; done | sort -u | xargs -d '\n' dpkg -S 2> /dev/null |
  sed 's/:.*//' | sort -u | grep -vE '^(libc6-dev|linux-libc-dev|libstdc\+\+.*|libgtest-dev|libgcc.*|g\+\+.*)$')

cat <<'TEXT'
Tombolo contains code of the projects below. This file is made by tools/notices.sh from what the
release binary includes and links; the C and C++ runtime libraries of the compiler come on top
(GPL 3 with the GCC Runtime Library Exception).

TEXT
for package in $packages; do
  version=$(dpkg-query -W -f='${source:Package} ${source:Upstream-Version}' "$package")
  echo "================================================================================"
  echo "$package ($version)"
  echo "================================================================================"
  cat "/usr/share/doc/$package/copyright"
  echo
done
