#!/usr/bin/env bash
# The pinned Python client in an environment of its own under SUITES; quick when it is there.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
source "$here/../lib.sh"
V=$SUITES/confluent-python
cmp -s "$here/requirements.txt" "$V/requirements.txt" && exit
deb python3 python3-venv
rm -rf "$V"
python3 -m venv "$V"
"$V/bin/pip" -q install --only-binary :all: -r "$here/requirements.txt" >&2
cp "$here/requirements.txt" "$V/requirements.txt"
