#!/usr/bin/env bash
# confluent-kafka for Python (its wheel carries librdkafka): produce, consume, groups, admin.
# usage: run.sh BOOTSTRAP
set -u
here=$(cd "$(dirname "$0")" && pwd)
source "$here/../lib.sh"
"$here/install.sh" || exit 2
exec timeout 300 "$SUITES/confluent-python/bin/python" -u "$here/cases.py" "${1:?BOOTSTRAP}"
