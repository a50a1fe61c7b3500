#!/usr/bin/env bash
# Checks that each Redis script begins with its header: what it does, KEYS, ARGV where
# it takes any, and what it returns.
set -euo pipefail
cd "$(dirname "$0")/../lua"

bad=0
complain() {
	echo "lua/$1: $2" >&2
	bad=1
}
for script in *.lua; do
	header=$(awk '!/^--/ { exit } { print }' "$script")
	[[ $header == "-- "[A-Z]* ]] || complain "$script" "no header: its first line is to say what it does"
	grep -q '^-- KEYS' <<<"$header" || complain "$script" "the header names no KEYS"
	grep -qi 'returns' <<<"$header" || complain "$script" "the header does not say what it returns"
	if grep -v '^--' "$script" | grep -q ARGV; then
		grep -q '^-- ARGV' <<<"$header" || complain "$script" "the header names no ARGV"
	fi
done
exit $bad
