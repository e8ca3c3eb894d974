# Sourced by run.sh with FULL=1: inputs that are large rather than damaged, through every verb.
section "giants: verb, exit code, processor time, wall time, largest resident memory"

giant() {  # giant NAME FILE: prints a row of the table for each verb
  local name=$1 file=$2 verb
  for verb in info check infer print convert run; do
    local arguments=("$verb" "$file")
    case $verb in
      infer) arguments+=(giant.out.onnx) ;;
      print) arguments+=(giant.out.onnxtxt) ;;
      convert) arguments+=(giant.out.onnx) ;;
      run) arguments+=(--random) ;;
    esac
    local before=$failed
    check any "${arguments[@]}"
    read -r code time wall memory < <(tail -1 usage)
    printf '| %-28s | %-7s | %4s | %6s s | %6s s | %5s MiB | %s |\n' "$name" "$verb" "$code" "$time" "$wall" "$memory" \
      "$([ "$before" = "$failed" ] && head -1 err | cut -c1-80 || echo FAILED)"
    rm -f giant.out.*
  done
}

chain() {  # chain NODES
  printf '<ir_version: 8, opset_import: ["" : 17]>\nchain (float[4] x0) => (float[4] x%d) {\n' "$1"
  seq 1 "$1" | awk '{ print "x" $1 " = Relu (x" $1 - 1 ")" }'
  printf '}\n'
}

chain 1000000 | sed -E 's/= Relu \(x([0-9]+)\)/= LeakyRelu <alpha = 0.\1> (x\1)/' > million.onnxtxt
check 0 parse million.onnxtxt million.onnx
giant "a million nodes, attributes" million.onnx
rm -f million.*

chain 1000000 > million.onnxtxt
giant "a million nodes, text" million.onnxtxt
check 0 parse million.onnxtxt million.onnx
giant "a million nodes, .onnx" million.onnx
check 0 print million.onnx million.json
giant "a million nodes, JSON" million.json
rm -f million.*

{ printf '<ir_version: 8, opset_import: ["" : 17]>\ng () => (float[N] y) <float[16000000] w = {'
  yes '1.5' | head -n 15999999 | tr '\n' ','; printf '1.5}> { y = Relu (w) }\n'; } > numbers.onnxtxt
giant "64 MB of numbers, text" numbers.onnxtxt
rm -f numbers.*

{ printf '<ir_version: 8, opset_import: ["" : 17]>\ng () => () <'
  seq 1 2600000 | awk '{ printf "%sfloat w%d = {1}", (NR > 1 ? ", " : ""), $1 }'; printf '> { }\n'; } > constants.onnxtxt
giant "64 MB of constants, text" constants.onnxtxt
rm -f constants.*

{ printf '<ir_version: 8, opset_import: ["" : 17]>\ng () => () { '; yes ' , = A (,) ' | head -c 64000000 | tr -d '\n'; printf ' }\n'; } > nodes.onnxtxt
giant "64 MB of tiny nodes, text" nodes.onnxtxt
rm -f nodes.*

{ printf '# '; yes 'a comment' | head -c 64000000 | tr '\n' ' '; printf '\n<ir_version: 8>\ng () => () { }\n'; } > comment.onnxtxt
giant "64 MB of a comment, text" comment.onnxtxt
yes '(((((' | head -c 64000000 > brackets.onnxtxt
giant "64 MB of brackets, text" brackets.onnxtxt
rm -f comment.* brackets.*

{ printf '{"irVersion":"8","opsetImport":[{"version":"17"}],"graph":{"name":"g","initializer":[{"dims":["16000000"],"dataType":1,"name":"w","floatData":['
  yes '1.5' | head -n 15999999 | tr '\n' ','; printf '1.5]}]}}'; } > numbers.json
giant "64 MB of numbers, JSON" numbers.json
{ printf '{"irVersion":"8","opsetImport":[{"version":"17"}],"graph":{"name":"g","node":['
  yes '{"opType":"A"}' | head -n 4200000 | tr '\n' ','; printf '{}]}}'; } > numbers.json
giant "64 MB of nodes, JSON" numbers.json
{ printf '{"irVersion":"8","graph":{"name":"g","x":['; yes '{}' | head -n 21000000 | tr '\n' ','; printf '{}]}}'; } > numbers.json
giant "64 MB of empty objects, JSON" numbers.json
rm -f numbers.*

{ printf '\x08\x08'; yes ':' | head -c 64000000 | tr '\n' '\0'; } > empties.onnx  # ModelProto.graph, empty, again and again
giant "64 MB of empty graphs, .onnx" empties.onnx
{ printf '\x08\x08\x3a\x80\x90\xc2\x1e'; yes '2' | head -c 64000000 | tr '\n' '\0'; } > empties.onnx  # GraphProto has no field 6
giant "64 MB of unknown fields, .onnx" empties.onnx
{ printf '\x08\x08\x3a\x80\x90\xc2\x1e\x0a'; yes 'x' | head -c 63999999 | tr 'x' '\0'; } > empties.onnx  # empty nodes
giant "64 MB of empty nodes, .onnx" empties.onnx
{ printf '\x08\x08\x3a\x80\x90\xc2\x1e'; yes '*' | head -c 64000000 | tr '\n' '\0'; } > empties.onnx  # empty initialisers
giant "64 MB of empty tensors, .onnx" empties.onnx
rm -f empties.*
