#!/usr/bin/env bash
# confluent-kafka for Python (its wheel carries librdkafka): produce, consume, groups, admin.
# usage: run.sh BOOTSTRAP
set -u
here=$(cd "$(dirname "$0")" && pwd)
source "$here/../lib.sh"
V=$SUITES/confluent-python
if ! cmp -s "$here/requirements.txt" "$V/requirements.txt"; then
  deb python3 python3-venv || exit 2
  rm -rf "$V" && python3 -m venv "$V" && "$V/bin/pip" -q install --only-binary :all: -r "$here/requirements.txt" >&2 || exit 2
  cp "$here/requirements.txt" "$V/requirements.txt"
fi
exec timeout 300 "$V/bin/python" -u "$here/cases.py" "${1:?BOOTSTRAP}"
