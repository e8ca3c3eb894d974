#!/usr/bin/env bash
# tombolo weights: tensors of a checkpoint into a model; rules, and everything that does not fit.
#   tests/cli/weights.sh build/release/tombolo
set -uo pipefail
tombolo=$(realpath "${1:?path of the tombolo binary}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
failed=0
# expect CODE NAME COMMAND...; has PATTERN: in what it printed on standard output.
expect() {
  local code=$1 name=$2
  shift 2
  what=$name
  "$@" > stdout 2> stderr < /dev/null
  local got=$?
  [ "$got" -eq "$code" ] || { failed=1; echo "FAILED $name: exit $got, expected $code"; head -5 stdout stderr; }
}
has() { grep -qE -- "$1" "${2:-stdout}" || { failed=1; echo "FAILED $what: no \"$1\""; head -5 "${2:-stdout}"; }; }

cat > net.onnxtxt <<'T'
<ir_version: 10, opset_import: ["" : 21]>
net (float[1,2] x) => (float[1,3] y) <float[3,2] "fc.weight" = {0, 0, 0, 0, 0, 0}, float[3] "fc.bias" = {0, 0, 0}, float scale = {1}> {
  t = Transpose ("fc.weight")  m = MatMul (x, t)  s = Add (m, "fc.bias")  y = Mul (s, scale)
}
T
weights() {  # weights FILE DECLARATIONS: a checkpoint of these initialisers
  local values names
  values=$(echo "$2" | sed -E 's/ ([a-z_]+(\.[a-z_]+)+) =/ "\1" =/g')
  names=$(echo "$values" | sed -E 's/ = \{[^}]*\}//g')
  printf '<ir_version: 10, opset_import: ["" : 21]>\nw () => (%s) <%s> {}\n' "$names" "$values" > w.onnxtxt
  "$tombolo" convert w.onnxtxt "$1" || failed=1
}
fits='float[3,2] fc.weight = {1, 2, 3, 4, 5, 6}, float[3] fc.bias = {10, 20, 30}'
for kind in safetensors npz onnx; do
  weights "good.$kind" "$fits"
  expect 0 "$kind" "$tombolo" weights net.onnxtxt good.$kind -o "set_$kind.onnx"
  has '^2 weights set, 1 kept$'
  expect 0 "$kind: the values are there" "$tombolo" run "set_$kind.onnx" --random --seed 1
done
expect 0 "the same model from each" cmp set_npz.onnx set_safetensors.onnx
expect 0 "without OUT only the comparison" "$tombolo" weights net.onnxtxt good.npz
has '^2 weights fit, 1 kept$'
expect 1 "every weight is asked for" "$tombolo" weights net.onnxtxt good.npz --all -o all.onnx
has 'the checkpoint has nothing for "scale"'
expect 1 "nothing is written then" test -e all.onnx

weights wrong.safetensors 'float[2,3] fc.weight = {1, 2, 3, 4, 5, 6}, double[3] fc.bias = {1, 2, 3}, float[1] other = {1}'
expect 1 "all that does not fit" "$tombolo" weights net.onnxtxt wrong.safetensors -o wrong.onnx --json
has '"fc.weight\\" is float\[2,3\], the model needs float\[3,2\]'
has '"fc.bias\\" is double\[3\], the model needs float\[3\]'
has 'the model has no weight for \\"other\\"'
expect 1 "nothing is written" test -e wrong.onnx

weights named.safetensors 'float[3,2] model.head.w = {1, 2, 3, 4, 5, 6}, float[3] model.head.b = {10, 20, 30}, float[1] optimizer.step = {3}, int64 model.bn.num_batches_tracked = {7}'
expect 1 "other names" "$tombolo" weights net.onnxtxt named.safetensors
rules='model.head.w=fc.weight,model.head.b=fc.bias,optimizer.*='
expect 0 "rules on the line" "$tombolo" weights net.onnxtxt named.safetensors --map "$rules" -o mapped.onnx
has '^2 weights set, 1 kept$'
expect 0 "the same as by their own names" cmp mapped.onnx set_npz.onnx
printf '# comments and empty lines\n\nmodel.head.w = fc.weight\nmodel.head.b=fc.bias\noptimizer.*=\n' > rules.txt
expect 0 "rules in a file" "$tombolo" weights net.onnxtxt named.safetensors --map rules.txt -o mapped2.onnx
expect 0 "the same" cmp mapped2.onnx mapped.onnx
weights star.npz 'float[3,2] m.fc.weight.data = {1, 2, 3, 4, 5, 6}, float[3] m.fc.bias.data = {10, 20, 30}'
expect 0 "a star carries text over" "$tombolo" weights net.onnxtxt star.npz --map 'm.*.data=*' -o starred.onnx
expect 0 "the same again" cmp starred.onnx mapped.onnx
expect 1 "two tensors for one weight" "$tombolo" weights net.onnxtxt star.npz --map 'm.*=fc.bias'
has 'two tensors for the weight|the model needs'
expect 2 "two stars" "$tombolo" weights net.onnxtxt star.npz --map 'a*b*=c'
has 'one \*' stderr
expect 2 "no rule" "$tombolo" weights net.onnxtxt star.npz --map 'a=b,=c'
expect 3 "no checkpoint" "$tombolo" weights net.onnxtxt nowhere.npz
[ "$failed" -eq 0 ] && echo "weights: all passed"
exit "$failed"
