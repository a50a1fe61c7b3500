#!/usr/bin/env bash
# Makes sure that a redis-server (or valkey-server) is there for the tests, installing
# the system's package where none is. The tests start it themselves, on free ports.
set -euo pipefail

say() { echo "ensure-redis: $*"; }

find_server() { command -v redis-server || command -v valkey-server; }

if [ -n "${HEADWATER_REDIS_SERVER:-}" ]; then
	say "HEADWATER_REDIS_SERVER is set: $("$HEADWATER_REDIS_SERVER" --version)"
	exit
fi
if server=$(find_server); then
	say "found $server: $("$server" --version)"
	exit
fi

as_root() {
	if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

# Debian's package starts a daemon on the default port; this policy, for the time of
# the installation, keeps it from that. A policy that is there already stays as it is.
policy=/usr/sbin/policy-rc.d
install_debian() {
	local ours=
	if [ ! -e "$policy" ]; then
		ours=yes
		printf '#!/bin/sh\nexit 101\n' | as_root tee "$policy" >/dev/null
		as_root chmod 755 "$policy"
		trap 'as_root rm -f "$policy"' EXIT
	fi
	as_root apt-get update -qq
	as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends redis-server
	if [ -n "$ours" ]; then
		as_root rm -f "$policy"
		trap - EXIT
	fi
}

say "no redis-server on PATH: installing it"
if command -v apt-get >/dev/null; then
	install_debian
elif command -v apk >/dev/null; then
	as_root apk add --no-cache redis
elif command -v dnf >/dev/null; then
	as_root dnf install -y redis || as_root dnf install -y valkey
elif command -v brew >/dev/null; then
	brew install redis
else
	say "no package manager that this script knows: put a redis-server 6.2 or newer on PATH," >&2
	say "or name one in HEADWATER_REDIS_SERVER" >&2
	exit 1
fi

if ! server=$(find_server); then
	say "the package is installed, and there is still no redis-server on PATH" >&2
	exit 1
fi
say "installed $server: $("$server" --version)"
