#!/bin/sh
# Runs the demonstration of the migration on a server of its own, which ends with it.
set -eu
cd "$(dirname "$0")/.."
dir=$(mktemp -d)
port=${PORT:-16390}
redis-server --port "$port" --save '' --dir "$dir" --logfile "$dir/log" &
server=$!
trap 'kill "$server" 2>/dev/null; wait "$server" 2>/dev/null || true; rm -rf "$dir"' EXIT
until redis-cli -p "$port" ping >/dev/null 2>&1; do
	kill -0 "$server" 2>/dev/null || { cat "$dir/log" >&2; exit 1; }
	sleep 0.1
done
go run ./examples/order-service/migration "redis://127.0.0.1:$port/0"
