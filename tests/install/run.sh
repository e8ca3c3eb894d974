#!/usr/bin/env bash
# Installs into a temporary prefix, builds the C example against it by find_package and by pkg-config,
# and runs both on the digits model.
#   tests/install/run.sh BUILD_DIR
set -euo pipefail
build=$(realpath "${1:?build folder}")
root=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

DESTDIR= cmake --install "$build" --prefix "$work/prefix" > "$work/log" 2>&1 || { cat "$work/log"; exit 1; }
export PKG_CONFIG_PATH=$(dirname "$(find "$work/prefix" -name tombolo.pc)")
for example in c cpp; do
  cmake -S "$root/examples/$example" -B "$work/cmake/$example" -DCMAKE_PREFIX_PATH="$work/prefix" > "$work/log" 2>&1 &&
    cmake --build "$work/cmake/$example" >> "$work/log" 2>&1 || { cat "$work/log"; exit 1; }
done
# The pkg-config file names the prefix it was configured for; a moved tree overrides it.
cc "$root/examples/c/run_model.c" $(pkg-config --define-variable=prefix="$work/prefix" --cflags --libs tombolo) -o "$work/by_pkg_config"

for program in "$work/cmake/c/run_model" "$work/cmake/cpp/run_model_cpp" "$work/by_pkg_config"; do
  out=$("$program" "$root/examples/digits/digits.keras" 1 8 8 1)
  echo "$out"
  [[ "$out" == *"output digit:"* ]] || { echo "no output from $program"; exit 1; }
  if "$program" /nonexistent 2> /dev/null; then echo "$program accepted a missing file"; exit 1; fi
done
"$work/prefix/bin/tombolo" --version
for page in tombolo tombolo-run tombolo-convert; do
  [ -s "$work/prefix/share/man/man1/$page.1" ] || { echo "no manual page $page"; exit 1; }
done
[ -s "$work/prefix/share/bash-completion/completions/tombolo" ] || { echo "no completion"; exit 1; }
echo "install: fine"
