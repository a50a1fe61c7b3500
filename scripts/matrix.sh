#!/usr/bin/env bash
# Runs the tests of the packages given on the server of this machine, and on each one
# that scripts/fetch-servers.sh has brought. All run, also when an earlier one fails.
set -uo pipefail
cd "$(dirname "$0")/.."

here=${HEADWATER_REDIS_SERVER:-$(command -v redis-server || command -v valkey-server)}
failed=()
for server in "$here" "$PWD"/.cache/servers/*; do
	name=$("$server" --version | cut -d ' ' -f 1-3)
	echo "== $name"
	HEADWATER_REDIS_SERVER=$server go test -count=1 -p "${PROCS:-2}" -timeout 15m "$@" || failed+=("$name")
done
if [ ${#failed[@]} -gt 0 ]; then
	printf 'failed on: %s\n' "${failed[@]}"
	exit 1
fi
