#!/usr/bin/env bash
# What loading costs, beside the official package's `onnx.load`: a 1.9 GB model, models beyond 2 GB in every verb, long
# chains of nodes. Prints a markdown table; exits with 1 when a bar is missed.
#
#   bench/load.sh TOMBOLO [TOMBOLO_LOAD_BENCH]
#
# PYTHON: a Python with the package `onnx` (default: the one of build/bench-venv, if there). BENCH_DIR: where to put
# the models, about 10 GB for a while (default: a temporary folder).
set -eu
[ $# -ge 1 ] || { echo "usage: $0 TOMBOLO [TOMBOLO_LOAD_BENCH]" >&2; exit 2; }
root=$(cd "$(dirname "$0")/.." && pwd)
tombolo=$(realpath "$1")
bench=$(realpath "${2:-$(dirname "$tombolo")/bench/tombolo_load_bench}")
[ -x "$bench" ] || { echo "$bench is not built: cmake --preset release -DTOMBOLO_BENCH=ON" >&2; exit 2; }
python=${PYTHON:-$root/build/bench-venv/bin/python}
work=$(mktemp -d "${BENCH_DIR:-${TMPDIR:-/tmp}}/tombolo-load.XXXXXX")
trap 'rm -rf "$work"' EXIT
cd "$work"
missed=0

# model NAME MATRICES: x times MATRICES matrices of 64 MiB each, added up. Real bytes: the files are not sparse.
model() {
  yes 'abc' | tr '\n' '<' | head -c 67108864 > matrix.bin  # floats of 0.0139
  : > weights.bin
  for ((i = 0; i < $2; ++i)); do cat matrix.bin >> weights.bin; done
  { printf '<ir_version: 8, opset_import: ["" : 17]>\nbig (float[1,4096] x) => (float[1,4096] y)\n<\n'
    for ((i = 0; i < $2; ++i)); do
      printf '%s  float[4096,4096] w%d = ["location": "weights.bin", "offset": "%d", "length": "67108864"]' \
        "$([ $i = 0 ] || printf ',\n')" $i $((i * 67108864))
    done
    printf '\n> {\n'
    for ((i = 0; i < $2; ++i)); do printf '  m%d = MatMul (x, w%d)\n' $i $i; done
    printf '  y = Sum ('
    for ((i = 0; i < $2; ++i)); do printf '%sm%d' "$([ $i = 0 ] || echo ', ')" $i; done
    printf ')\n}\n'; } > "$1.onnxtxt"
  "$tombolo" convert "$1.onnxtxt" "$1.onnx" --external none
  rm -f weights.bin matrix.bin
}

chain() {  # chain NAME NODES
  { printf '<ir_version: 8, opset_import: ["" : 17]>\nchain (float[4] x0) => (float[4] x%d) {\n' "$2"
    seq 1 "$2" | awk '{ print "x" $1 " = Relu (x" $1 - 1 ")" }'
    printf '}\n'; } > "$1.onnxtxt"
  "$tombolo" parse "$1.onnxtxt" "$1.onnx"
  rm "$1.onnxtxt"
}

# row WHAT BAR_MS BAR_MIB BEST MEDIAN MIB [PYTHON_MS PYTHON_MIB]; a bar of - is none
row() {
  local verdict
  verdict=$(awk -v ms="$4" -v mib="$6" -v bar="$2" -v memory="$3" 'BEGIN {
    if (bar == "-" && memory == "-") print "";
    else print ((bar == "-" || ms < bar) && (memory == "-" || mib < memory)) ? "met" : "MISSED" }')
  [ "$verdict" != MISSED ] || missed=1
  local bar="" ratio=""
  [ "$2" = - ] || bar="$2 ms"
  [ "$3" = - ] || bar="$bar${bar:+, }$3 MiB"
  [ -z "${7:-}" ] || ratio=$(awk -v a="$4" -v b="$7" 'BEGIN { printf "%.0fx", b / a }')
  printf '| %s | %s ms | %s MiB | %s | %s | %s | %s |\n' "$1" "$4" "$6" "${bar:-}" "$verdict" \
    "${7:+$7 ms, $8 MiB}" "$ratio"
}

# Best of three `onnx.load`, without the interpreter's start, and the largest resident memory: `MS MIB`.
official() {
  [ -x "$python" ] && "$python" -c 'import onnx' 2> /dev/null || return 0
  "$python" - "$1" << 'END' || true
import resource, sys, time
import onnx
times = []
for _ in range(3):
    start = time.perf_counter()
    model = onnx.load(sys.argv[1])
    times.append(1000 * (time.perf_counter() - start))
    del model
print(f"{min(times):.1f} {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f}")
END
}

echo "Best of ten runs (one for the verbs on 2.5 GB), files in the page cache; verbs with the start of the process."
echo
echo "| what | time | largest resident | bar | | onnx.load | ratio |"
echo "|---|---|---|---|---|---|---|"
chain small 10000
chain large 1000000
row "parse a chain of 10,000 nodes" 5 - $("$bench" parse small.onnx 50) $(official small.onnx)
row "parse a chain of 1,000,000 nodes" - 512 $("$bench" parse large.onnx 5) $(official large.onnx)
row "\`info\`, 10,000 nodes" - - $("$bench" run 10 "$tombolo" info small.onnx)
row "\`info\`, 1,000,000 nodes" - 512 $("$bench" run 3 "$tombolo" info large.onnx)
rm -f small.onnx large.onnx

model near 28
cat near.onnx > /dev/null
row "\`info\`, $(stat -c %s near.onnx) bytes embedded" 50 60 $("$bench" run 10 "$tombolo" info near.onnx) $(official near.onnx)
rm -f near.*

model beyond 38
cat beyond.onnx > /dev/null
# verb WHAT ARGUMENTS MODEL
verb() { row "\`$1\`, $3" - "$([ "$1" = run ] && echo - || echo 512)" $(eval "\"$bench\" run 1 \"$tombolo\" $2"); }
row "\`info\`, $(stat -c %s beyond.onnx) bytes embedded" 50 60 $("$bench" run 10 "$tombolo" info beyond.onnx)
verb check "check beyond.onnx" "2.5 GB embedded"
verb infer "infer beyond.onnx inferred.onnx" "2.5 GB embedded"
rm -f inferred.onnx*
verb run "run beyond.onnx --random" "2.5 GB embedded"
verb "convert --external one" "convert beyond.onnx split.onnx --external one" "2.5 GB embedded"
verb info "info split.onnx" "2.5 GB external"
verb check "check split.onnx" "2.5 GB external"
verb infer "infer split.onnx inferred.onnx" "2.5 GB external"
verb print "print split.onnx" "2.5 GB external"
verb run "run split.onnx --random" "2.5 GB external"
verb "convert --external none" "convert split.onnx again.onnx --external none" "2.5 GB external"
cmp again.onnx beyond.onnx && echo "| embedded -> external -> embedded | | | equal bytes | met | | |"
rm -f again.onnx split.onnx* inferred.onnx*
[ -z "${PRINT_ALL:-}" ] || verb print "print beyond.onnx" "2.5 GB embedded"
exit $missed
