#!/usr/bin/env bash
# Runs every fuzz target of the module, one after the other, for the time given (20s).
set -euo pipefail
cd "$(dirname "$0")/.."
duration=${1:-20s}

targets=$(git ls-files --cached --others --exclude-standard '*_test.go' | xargs grep -HoE '^func Fuzz[A-Za-z0-9_]+' | sort)
while IFS=: read -r file declaration; do
	target=${declaration#func }
	echo "== $(dirname "$file") $target"
	go test -run '^$' -fuzz "^$target\$" -fuzztime "$duration" -parallel 2 "./$(dirname "$file")"
done <<<"$targets"
