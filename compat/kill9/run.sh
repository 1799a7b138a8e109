#!/usr/bin/env bash
# A node is ended by kill -9 under load, several times, while an idempotent producer (librdkafka, acks=all) goes on; then
# every acknowledged record must be there, in order, once, and so must topics and committed offsets.
# usage: run.sh BOOTSTRAP (its port is used for a node of its own)      ROUNDS=4 kills
set -u
here=$(cd "$(dirname "$0")" && pwd)
source "$here/../lib.sh"
"$here/../confluent-python/install.sh" || exit 2
W=${WORK:-$(mktemp -d)}
mkdir -p "$W/node"
# Compaction without pause and so slow that most kills come in the middle of it.
cat >"$W/node/extra.properties" <<CONF
log.cleaner.backoff.ms=100
log.cleaner.io.max.bytes.per.second=${CLEANER_RATE:-12000000}
log.segment.delete.delay.ms=500
CONF
exec timeout 300 "$SUITES/confluent-python/bin/python" -u "$here/cases.py" "${1:?BOOTSTRAP}" "$here/../node" "${TARGET:-ours}" "$W/node" "${ROUNDS:-4}"
