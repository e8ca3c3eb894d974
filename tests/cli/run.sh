#!/usr/bin/env bash
# The contract of the command line: exit codes, streams, JSON, files whole or not at all, completion, man.
#   tests/cli/run.sh build/release/tombolo
set -uo pipefail
tombolo=$(realpath "${1:?path of the tombolo binary}")
root=$(cd "$(dirname "$0")/../.." && pwd)
digits=$root/examples/digits
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
passed=0 failed=0
out=$work/stdout err=$work/stderr

# expect CODE NAME COMMAND...: runs, checks the exit code; then `has`/`lacks` look at the streams.
expect() {
  local code=$1 name=$2
  shift 2
  what=$name
  "$@" > "$out" 2> "$err" < /dev/null
  local got=$?
  if [ "$got" -eq "$code" ]; then passed=$((passed + 1)); else
    failed=$((failed + 1))
    echo "FAILED $name: exit $got, expected $code: $*"
    head -5 "$err" | sed 's/^/    /'
  fi
}
has() {  # has FILE PATTERN
  if grep -qE -- "$2" "$1"; then passed=$((passed + 1)); else
    failed=$((failed + 1))
    echo "FAILED $what: no \"$2\" in $(basename "$1"):"
    head -5 "$1" | sed 's/^/    /'
  fi
}
empty() { if [ ! -s "$1" ]; then passed=$((passed + 1)); else failed=$((failed + 1)); echo "FAILED $what: $(basename "$1") is not empty:"; head -3 "$1"; fi; }

cat > add.onnxtxt <<'T'
<ir_version: 10, opset_import: ["" : 17]>
add (float[N,3] x, float[3] b) => (float[N,3] y) { y = Add(x, b) }
T
cat > bad.onnxtxt <<'T'
<ir_version: 10, opset_import: ["" : 17]>
bad (float[2] x) => (float[2] y) { z = Relu(nothing)  y = Conv <kernel_shape = [0]> (x, x) }
T
cat > unknown.onnxtxt <<'T'
<ir_version: 10, opset_import: ["" : 17, "com.example" : 1]>
u (float[2] x) => (float[2] y) { y = com.example.Frobnicate(x) }
T
printf 'not a model at all' > junk.onnx
: > empty.onnx

expect 0 version "$tombolo" --version
has "$out" '^tombolo [0-9]+\.[0-9]+\.[0-9]+'
expect 0 help "$tombolo" --help
has "$out" convert
expect 0 "no arguments" "$tombolo"
expect 2 "unknown verb" "$tombolo" covnert a b
has "$err" 'did you mean `tombolo convert`'
expect 2 "unknown option" "$tombolo" info add.onnxtxt --frobnicate
expect 2 "missing model" "$tombolo" info
expect 3 "missing file" "$tombolo" info nowhere.onnx
has "$err" nowhere.onnx
empty "$out"
expect 3 "missing file, JSON" "$tombolo" info nowhere.onnx --json
has "$out" '"error":\{"code":"parse","message":".+","where":".*","help":".*"\}'
for verb in info check infer print run; do
  expect 3 "$verb on junk" "$tombolo" $verb junk.onnx
  expect 3 "$verb on an empty file" "$tombolo" $verb empty.onnx
  expect 3 "$verb on a folder without a model" "$tombolo" $verb .
done

expect 0 parse "$tombolo" parse add.onnxtxt add.onnx
expect 0 "print text" "$tombolo" print add.onnx
has "$out" 'Add ?\(x, b\)'
expect 0 "print JSON" "$tombolo" print add.onnx add.json --format json
expect 0 "parse JSON" "$tombolo" parse add.json again.onnx
expect 0 "JSON round trip" cmp add.onnx again.onnx
expect 0 "print --json" "$tombolo" print add.onnx --json
has "$out" '"irVersion"'
expect 0 "print to stdout, parse from stdin" bash -c "'$tombolo' print add.onnx | '$tombolo' parse - -o piped.onnx"
expect 0 "text round trip" cmp add.onnx piped.onnx
expect 0 convert "$tombolo" convert add.onnx same.onnx
expect 0 "convert changes nothing" cmp add.onnx same.onnx
expect 2 "OUT twice" "$tombolo" convert add.onnx a.onnx -o b.onnx
expect 0 "convert to a newer opset" "$tombolo" convert add.onnx newer.onnx --opset 28
expect 0 "newer opset: info" "$tombolo" info newer.onnx --json
has "$out" '"ai.onnx":28'
expect 0 "opset" "$tombolo" opset add.onnx 21 opset21.onnx
expect 0 "opset downwards" "$tombolo" opset add.onnx 7 opset7.onnx
expect 4 "opset too far down" "$tombolo" opset add.onnx 6 older.onnx --json
has "$out" '^\{"error":\{"code":"unsupported"'
expect 1 "opset downwards writes nothing" test -e older.onnx
expect 0 "run --sample: inputs that torch.export.save stored" "$tombolo" run "$root/tests/pytorch/sample/model.pt2" --sample --expected "$root/tests/pytorch/sample/expected.npz"
for script in "$root"/tests/pytorch/refused/*; do  # tensors that may be one another, written in place
  expect 4 "refused: $(basename "$script")" "$tombolo" convert "$script/model.pt" refused.onnx --sample "$script/io.npz"
  has "$err" 'shares the memory of another one|a tensor is written in place that a list holds'
done
expect 4 "refused with the place in the user's source" "$tombolo" convert "$root/tests/pytorch/sample/refused.pt2" refused.onnx
has "$err" '"rand_like at refused_program.py:7"'
expect 2 "run --sample without any" "$tombolo" run add.onnx --sample
expect 0 "info" "$tombolo" info add.onnx
has "$out" 'x +float\[N,3\]'
expect 0 "info JSON" "$tombolo" info add.onnx --json
has "$out" '"operators":\{"Add":1\}'
expect 0 infer "$tombolo" infer add.onnx
has "$out" 'y.*float\[N,3\]'

expect 0 "check, valid" "$tombolo" check add.onnx
expect 1 "check, invalid" "$tombolo" check bad.onnxtxt
has "$err" 'nothing'
expect 1 "check, invalid, JSON" "$tombolo" check bad.onnxtxt --json
has "$out" '"valid":false,"diagnostics":\[\{"severity":"error","code":"[a-z-]+","where":"[^"]'

expect 0 "run, random" "$tombolo" run add.onnx --random --input x:2x3
has "$out" 'y +float\[2,3\]'
printf '[[1,2,3]]' > x.json
printf '[10,20,30]' > b.json
printf '[1,2,3]' > c.json
expect 0 "run, JSON inputs" "$tombolo" run add.onnx --input x=x.json --input b=b.json --json
has "$out" '"data":\[\[11,22,33\]\]'
expect 0 "run, a batch of files" "$tombolo" run add.onnx -i x=x.json -i x=x.json -i b=b.json --outputs y.npz
expect 0 "run, expected" "$tombolo" run add.onnx -i x=x.json -i x=x.json -i b=b.json --expected y.npz
expect 0 "run, several times" "$tombolo" run add.onnx -i x=x.json -i x=x.json -i b=b.json --expected y.npz --runs 4
expect 2 "run, never" "$tombolo" run add.onnx -i x=x.json -i b=b.json --runs 0
has "$err" "must be 1 at least"
expect 1 "run, not as expected" "$tombolo" run add.onnx -i x=x.json -i x=x.json -i b=c.json --expected y.npz
expect 2 "run, missing input" "$tombolo" run add.onnx --input x=x.json
has "$err" '"b" is missing'
has "$err" 'help: give it with --input b=FILE'
expect 2 "run, unknown input" "$tombolo" run add.onnx --input q=x.json
has "$err" 'its inputs are: x, b'
expect 2 "run, wrong shape" "$tombolo" run add.onnx --random --input b:4
expect 4 "run, unknown operator" "$tombolo" run unknown.onnxtxt --random
has "$err" 'com.example.Frobnicate'
cat > blocks.onnxtxt <<'T'
<ir_version: 10, opset_import: ["" : 17, "com.microsoft.nchwc" : 1]>
g (float[1,16,4,4] x) => (float[1,16,1,1] y) { y = com.microsoft.nchwc.GlobalMaxPool (x) }
T
expect 4 "run, blocks of ONNX Runtime's" "$tombolo" run blocks.onnxtxt --random
has "$err" "ORT_ENABLE_EXTENDED"
expect 4 "unsupported, JSON" "$tombolo" run unknown.onnxtxt --random --json
has "$out" '"code":"unsupported"'

cat > doubling.onnxtxt <<T
<ir_version: 10, opset_import: ["" : 17]>
d (float[N] x0) => (float[M] x60) {
$(for i in $(seq 0 59); do echo "x$((i + 1)) = Concat <axis = 0> (x$i, x$i)"; done)
}
T
expect 6 "sixty doublings" "$tombolo" run doubling.onnxtxt --input x0:1
has "$err" 'limit'

# A failing command leaves an existing OUT as it was.
printf precious > keep.onnx
expect 3 "OUT kept on failure" "$tombolo" convert junk.onnx keep.onnx
expect 0 "OUT kept on failure: content" grep -qx precious keep.onnx
expect 3 "OUT in a missing folder" "$tombolo" convert add.onnx nowhere/out.onnx

expect 0 "Keras" "$tombolo" convert "$digits/digits.keras" digits.onnx
expect 0 "Keras agrees" "$tombolo" run digits.onnx --inputs "$digits/inputs.npz" --expected "$digits/expected.npz" --atol 1e-5 --rtol 0
expect 0 "Keras .h5 agrees" "$tombolo" run "$digits/digits.h5" --inputs "$digits/inputs.npz" --expected "$digits/expected.npz" --atol 1e-5 --rtol 0
expect 0 "packed weights are kept" "$tombolo" run "$digits/digits.keras" --input "image=$digits/7.png" --top 1 --pack-cache packs
expect 2 "no folder for packed weights" "$tombolo" run "$digits/digits.keras" --input "image=$digits/7.png" --pack-cache none/packs
has "$err" 'none/packs'
expect 0 "a picture" "$tombolo" run "$digits/digits.keras" --input "image=$digits/7.png" --top 1
has "$out" '7: 0\.9'
for verb in info check infer print; do expect 0 "$verb takes Keras" "$tombolo" $verb "$digits/digits.keras"; done

cat > two.onnxtxt <<'T'
<ir_version: 10, opset_import: ["" : 17]>
two (float[N] x) => (float[N] y) { h = Relu(x)  y = Neg(h) }
T
expect 0 "cut at names" "$tombolo" convert two.onnxtxt cut.onnx --input-names h --output-names y
expect 0 "cut at names: info" "$tombolo" info cut.onnx --json
has "$out" '"inputs":\[\{"name":"h".*"operators":\{"Neg":1\}'
expect 2 "cut at an unknown name" "$tombolo" convert two.onnxtxt cut.onnx --output-names nope
expect 0 "ops JSON" "$tombolo" ops --json
has "$out" '\{"operators":\['
expect 0 "doctor" "$tombolo" doctor
has "$out" 'cores +[0-9]+ allowed'
expect 0 "threads by environment" env TOMBOLO_THREADS=1 "$tombolo" doctor
has "$out" ' 1 threads used'

cat > slow.onnxtxt <<'T'
<ir_version: 10, opset_import: ["" : 17]>
g (float[N,3] x) => (float[N,3] y) <float one = {1}> { a = Identity(x) b = Mul(a, one) y = Relu(b) }
T
expect 0 "optimise" "$tombolo" optimise slow.onnxtxt fast.onnx --verify 2
has "$err" 'nodes   3 -> 1'
has "$err" 'opset   17 -> 17'
cat > resize.onnxtxt <<'T'
<ir_version: 6, opset_import: ["" : 11]>
g (float[1,3,2,2] x) => (float[1,3,4,4] y) <float[0] roi = {}, float[4] s = {1, 1, 2, 2}> { a = Identity(x) y = Resize(a, roi, s) }
T
expect 0 "optimise, what an old operator set must have" "$tombolo" optimise resize.onnxtxt resized.onnx
has "$err" 'opset   11 -> 13'
expect 0 "optimise, still valid" "$tombolo" check resized.onnx
cat > causal.onnxtxt <<'T'
<ir_version: 10, opset_import: ["" : 17]>
g (float[1,1,9] x) => (float[1,1,9] y)
<float[1,1,3] w = {1, 2, 3}, float[1,1,11] c, float[1,1,9] cut, int64[1] zero = {0}, int64[1] end = {-2}, int64[1] axis = {2}> {
  c = Conv <pads = [2, 2]> (x, w)  cut = Slice (c, zero, end, axis)  y = Relu (cut)
}
T
expect 0 "optimise, a shape that was declared" "$tombolo" optimise causal.onnxtxt causal.onnx --verify 2
expect 0 "optimise, as declared" "$tombolo" check causal.onnx
expect 0 "optimise JSON" "$tombolo" optimise slow.onnxtxt fast.onnx --level O1 --verify 1 --json
has "$out" '"nodes_after":1.*"verify":\{"equal":true'
expect 0 "optimise, one pass" "$tombolo" optimise slow.onnxtxt fast.onnx --passes remove-identities
expect 2 "optimise, unknown pass" "$tombolo" optimise slow.onnxtxt fast.onnx --disable nope
expect 2 "optimise, unknown level" "$tombolo" optimise slow.onnxtxt fast.onnx --level 4
expect 2 "optimise without OUT" "$tombolo" optimise slow.onnxtxt
expect 0 "optimise --list" "$tombolo" optimise --list
sed -n '/^```$/,/^```$/p' "$root/docs/passes.md" | sed '1d;$d' > passes.listed
what="docs/passes.md holds what optimise --list prints"
if diff -q "$out" passes.listed > /dev/null; then passed=$((passed + 1)); else failed=$((failed + 1)); echo "FAILED $what"; diff "$out" passes.listed | head -5; fi

cat > pair.onnxtxt <<'T'
<ir_version: 10, opset_import: ["" : 17]>
two (float[N,3] x, float[3] b) => (float[N,3] y) { z = Add(x, b)  y = Relu(z) }
T
expect 0 bench "$tombolo" bench add.onnxtxt --runs 3 --size N=4 --no-roofline
has "$out" '^median '
expect 0 "bench --json" "$tombolo" bench add.onnxtxt --runs 3 --json --no-roofline
for key in model threads runs load_ms first_ms median_ms min_ms p90_ms p99_ms peak_rss_bytes; do has "$out" "\"$key\":"; done
# The peak is that of the process, not of a shell of 300 MB that starts it.
(big=$(head -c 300000000 /dev/zero | tr '\0' x) && "$tombolo" bench add.onnxtxt --runs 1 --json --no-roofline > "$out" && : "${#big}")
what="bench tells its own peak"
has "$out" '"peak_rss_bytes": ?[0-9]{6,8}[,}]'
expect 0 "bench only loads" "$tombolo" bench add.onnxtxt --runs 0
expect 0 "bench --each" "$tombolo" bench add.onnxtxt --runs 2 --no-roofline --each N=1,2 --each threads=1,2 --format csv
has "$out" '^N,threads'
expect 2 "bench of nonsense" "$tombolo" bench add.onnxtxt --each N=a
expect 0 "profile --size" "$tombolo" profile pair.onnxtxt --runs 2 --size N=6 -v
has "$out" 'float\[6,3\]'
expect 0 "run --size" "$tombolo" run pair.onnxtxt --random --size N=6
has "$out" '\[6,3\]'
expect 2 "compare with a size that is no number" "$tombolo" compare pair.onnxtxt --runs 1 --size N=six
has "$err" 'takes whole numbers, not "six"'
expect 2 "a size of what no input has" "$tombolo" bench pair.onnxtxt --runs 1 --size M=6
has "$err" 'its inputs name: N'
expect 0 profile "$tombolo" profile pair.onnxtxt --runs 2 --trace trace.json
has "$out" 'Elementwise'
has trace.json traceEvents
expect 0 "profile --json" "$tombolo" profile pair.onnxtxt --runs 2 --json
has "$out" '"kernel":'
expect 0 "compare with itself" "$tombolo" compare pair.onnxtxt --runs 2
expect 0 "compare two models" "$tombolo" compare pair.onnxtxt pair.onnxtxt --runs 2 --json
has "$out" '"equal":true'
expect 1 "compare models that differ" "$tombolo" compare pair.onnxtxt add.onnxtxt --runs 0 --input x:5x3 --input b:3
has "$out" 'DIFFERS'
expect 0 "run with the reference" "$tombolo" run pair.onnxtxt --random --reference

for shell in bash zsh fish; do expect 0 "completion $shell" "$tombolo" completion $shell; done
expect 0 "completion loads in bash" bash -c "source <('$tombolo' completion bash) && complete -p tombolo"
expect 0 "completion completes verbs" bash -c "source <('$tombolo' completion bash); COMP_WORDS=(tombolo con); COMP_CWORD=1; _tombolo; [[ \" \${COMPREPLY[*]} \" == *' convert '* ]]"
for verb in $("$tombolo" man --list); do
  expect 0 "man $verb" "$tombolo" man "$verb"
  has "$out" '^\.TH tombolo-'
  expect 0 "$verb --help" "$tombolo" "$verb" --help
done

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
