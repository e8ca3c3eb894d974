#!/usr/bin/env bash
# Writes docs/checks.md from the checker's table (src/analysis/rules.inc); with --check only says whether it is true.
set -euo pipefail
cd "$(dirname "$0")/.."
page() {
  echo "# What \`tombolo check\` finds"
  echo
  echo "Made from \`src/analysis/rules.inc\` by \`tools/document_rules.sh\`. An error makes a model invalid (exit code 1); a warning does not."
  # A rule may stretch over several lines: join them up to the closing parenthesis.
  awk '
    /^\/\/ [A-Z].*\(analysis\// { title = $0; sub(/^\/\/ /, "", title); sub(/ \(analysis.*/, "", title)
      printf "\n## %s\n\n| code | severity | meaning |\n|---|---|---|\n", title; next }
    /^RULE\(/ { row = "" }
    /^RULE\(|^ +"/ { row = row $0; if (row ~ /"\)$/) {
      match(row, /"[^"]*"/); code = substr(row, RSTART + 1, RLENGTH - 2)
      severity = row ~ /kError/ ? "error" : row ~ /kWarning/ ? "warning" : "note"
      text = row; sub(/"\)$/, "", text); sub(/.*k(Error|Warning|Note), */, "", text)
      gsub(/" +"/, "", text); sub(/^"/, "", text); gsub(/\\"/, "\"", text); gsub(/\|/, "\\|", text)
      printf "| `%s` | %s | %s |\n", code, severity, text } }
  ' src/analysis/rules.inc
}
if [ "${1:-}" = --check ]; then
  page | cmp -s - docs/checks.md || { echo "docs/checks.md is not what src/analysis/rules.inc says: run tools/document_rules.sh" >&2; exit 1; }
else
  page > docs/checks.md
fi
