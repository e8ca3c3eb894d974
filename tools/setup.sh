#!/usr/bin/env bash
# Installs the Debian/Ubuntu packages that a target needs, if they are missing:
#   tools/setup.sh build|test|bench|fuzz|aarch64
# The lists here are the only place that names packages.
set -euo pipefail

build="g++ cmake ninja-build ccache pkg-config libcli11-dev rapidjson-dev zlib1g-dev
  libpng-dev libjpeg-dev libwebp-dev libtiff-dev libopenjp2-7-dev libre2-dev libhwy-dev libxxhash-dev"
test="libgtest-dev clang-format-14 zstd man-db"
bench="python3-venv"
fuzz="clang libclang-rt-14-dev unzip"
# Of another architecture: Debian's archive has it beside the own one, Ubuntu's has it at an address of its own.
aarch64="g++-aarch64-linux-gnu qemu-user-static zlib1g-dev:arm64 libpng-dev:arm64 libjpeg62-turbo-dev:arm64 libwebp-dev:arm64
  libtiff-dev:arm64 libopenjp2-7-dev:arm64 libre2-dev:arm64 libgtest-dev:arm64"

case "${1:-build}" in
  build) wanted="$build" ;;
  test) wanted="$build $test" ;;
  bench) wanted="$build $bench" ;;
  fuzz) wanted="$build $test $fuzz" ;;
  aarch64) wanted="$build $test $aarch64" ;;
  *) echo "usage: tools/setup.sh build|test|bench|fuzz|aarch64" >&2; exit 2 ;;
esac

if ! command -v dpkg-query > /dev/null || ! command -v apt-get > /dev/null; then
  echo "This system has no apt: install the equivalents of these packages yourself, then set TOMBOLO_SETUP=skip:" $wanted >&2
  [ "${TOMBOLO_SETUP:-}" = skip ] && exit 0
  exit 1
fi

missing=()
for package in $wanted; do
  dpkg-query -W -f='${Status}' "$package" 2> /dev/null | grep -q 'ok installed' && continue
  # A virtual package (libjpeg-dev) counts when something that provides it is installed.
  dpkg-query -W -f='${Provides}\n' 2> /dev/null | tr ',' '\n' | sed 's/ *(.*//; s/^ *//' | grep -qx "$package" && continue
  missing+=("$package")
done
# Newer releases have only other versions of clang-format, which format otherwise: tools/check_house.sh
# then leaves the format unchecked and says so.
drop_formatter() {
  apt-cache show clang-format-14 > /dev/null 2>&1 && return
  for i in "${!missing[@]}"; do
    if [ "${missing[i]}" = clang-format-14 ]; then unset "missing[i]"; fi
  done
}
[ "${missing[*]}" != clang-format-14 ] || drop_formatter
[ ${#missing[@]} -eq 0 ] && exit 0
[ "${TOMBOLO_SETUP:-}" = skip ] && exit 0

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  if command -v sudo > /dev/null && sudo -n true 2> /dev/null; then
    as_root=(sudo)
  else
    echo "Packages are missing and this user may not install them. As root, run:" >&2
    echo "  apt-get install ${missing[*]}" >&2
    exit 1
  fi
fi
echo "Installing: ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
log=$(mktemp)
trap 'rm -f "$log"' EXIT
case "$wanted" in
  *:arm64*) "${as_root[@]}" dpkg --add-architecture arm64 && "${as_root[@]}" apt-get update > "$log" 2>&1 || true ;;
esac
install() { "${as_root[@]}" apt-get install -y --no-install-recommends "${missing[@]}" > "$log" 2>&1; }
if ! install; then  # package lists may be absent or old
  "${as_root[@]}" apt-get update >> "$log" 2>&1 || true
  drop_formatter
  if ! install; then
    tail -n 15 "$log" >&2
    echo "Could not install: ${missing[*]}. Is the machine offline? Install them by other means and run again." >&2
    exit 1
  fi
fi
