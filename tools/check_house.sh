#!/usr/bin/env bash
# The checks of the house: include direction (docs/architecture.md), file budget, format.
set -uo pipefail
cd "$(dirname "$0")/.."
failed=0
complain() { echo "house: $*" >&2; failed=1; }

# What each folder may include beside itself: the table of docs/architecture.md.
allowed() {
  case "$1" in
    base) echo "" ;;
    ir) echo "base" ;;
    onnx | ops) echo "base ir" ;;
    analysis) echo "base ir onnx ops" ;;
    version) echo "base ir onnx ops analysis" ;;
    passes) echo "base ir onnx ops analysis version" ;;
    runtime) echo "base ir onnx ops analysis version passes" ;;
    formats) echo "base ir onnx ops analysis version passes" ;;
    capi | cli | server) echo "base ir onnx ops analysis version passes runtime formats capi tombolo" ;;
    *) echo "unknown" ;;
  esac
}
for folder in $(git ls-files src | awk -F/ 'NF > 2 {print $2}' | sort -u); do
  may=" $folder $(allowed "$folder") "
  [[ "$may" == *" unknown "* ]] && { complain "src/$folder has no row in the include table"; continue; }
  while IFS=: read -r file line target; do
    top=${target%%/*}
    [ -d "src/$top" ] || [ "$top" = tombolo ] || continue
    [[ "$may" == *" $top "* ]] || complain "$file:$line: src/$folder must not include $target"
  done < <(git ls-files "src/$folder" | grep -E '\.(cpp|h|inc)$' | xargs grep -nHoE '^#include "[^"]+"' | sed 's/#include "//; s/"$//')
done

# Headers must stay light: these cost seconds in every file that includes them.
while IFS= read -r hit; do complain "$hit: heavy header in a header"; done < <(
  git ls-files 'src/*.h' 'include/*.h' | xargs grep -nE '#include <(regex|iostream|filesystem|functional)>' /dev/null)

# Budget: no file above 1,000 lines by hand; the median stays near 150.
while read -r lines file; do
  [ "$lines" -le 1000 ] || complain "$file has $lines lines, the budget is 1,000"
done < <(git ls-files 'src/*.cpp' 'src/*.h' 'include/*' 'tests/*.cpp' 'tools/*' | xargs -d '\n' wc -l | grep -v ' total$')
median=$(git ls-files 'src/*.cpp' 'src/*.h' | xargs wc -l | grep -v ' total$' | sort -n | awk '{a[NR]=$1} END {print a[int((NR+1)/2)]}')
[ "$median" -le 200 ] || complain "the median file of src has $median lines, the budget is 200"

# Code of an instruction set is reached by dispatch alone: called by name, it meets processors that lack it.
while IFS= read -r hit; do complain "$hit: names an instruction set; use runtime/kernels/dispatch.h"; done < <(
  git ls-files 'src/*.cpp' 'src/*.h' | grep -v 'kernels/dispatch.h$' | xargs grep -nE 'N_(SSE4|AVX2|AVX3|NEON)::' | grep -v '(&N_')

# What of two floats is the lesser where one is no number is the machine's choice.
while IFS= read -r hit; do complain "$hit: use min_of or max_of (runtime/kernels/vec-inl.h)"; done < <(
  git ls-files 'src/runtime/*.cpp' 'src/runtime/*.h' | grep -v 'kernels/vec-inl.h$' | xargs grep -noE 'hn::(Min|Max)\(')

tools/document_rules.sh --check || failed=1

if command -v clang-format-14 > /dev/null; then
  git ls-files '*.cpp' '*.h' | xargs -P "$(nproc)" -n 40 clang-format-14 --dry-run -Werror 2> /tmp/tombolo-format.$$ || {
    grep -oE '^[^:]+:[0-9]+' /tmp/tombolo-format.$$ | sort -u | head -20 | while read -r place; do echo "house: $place: not formatted (make format)" >&2; done
    failed=1
  }
  rm -f /tmp/tombolo-format.$$
else
  echo "house: clang-format-14 is not installed: format NOT checked" >&2
fi

[ "$failed" -eq 0 ] && echo "house: include direction, headers, budget (median $median lines) and format are fine"
exit "$failed"
