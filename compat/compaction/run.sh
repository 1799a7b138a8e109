#!/usr/bin/env bash
# What compaction leaves, record by record and batch by batch, beside what Apache Kafka 4.4 left of the same input.
# usage: run.sh BOOTSTRAP          KEEP=1 with TARGET=kafka writes what Kafka left to kafka-4.4/
# A consumer of the Java client tells the records, DumpLogSegments the batches of the cleaned segments.
set -u
here=$(cd "$(dirname "$0")" && pwd)
source "$here/../lib.sh"
B=${1:?BOOTSTRAP} W=${WORK:-$(mktemp -d)}
D=${BROKER:?the folder of the broker, whose data is looked at}/data
libs=$(peer_classpath)
java -Xmx512m -Dlog4j2.configurationFile="$here/../log4j2.xml" -cp "$libs" "$here/Compaction.java" "$B" "$D" "$W/left" >&2
topics=$(cd "$W/left" && ls)
logs=$(cd "$D" && ls -d {plain,tombstones-*,codec-*,idempotent,headers,sizes,without-key}-0/*.log)
(cd "$D" && "$PEER" run org.apache.kafka.tools.DumpLogSegments --files "$(tr '\n' ',' <<<"$logs" | sed 's/,$//')" >"$W/dump.txt" 2>&1)
# Of a batch what does not differ from run to run: not the producer id, the time of a horizon, the size of a codec's output.
awk '/^Dumping / { split($2, path, "/"); topic = path[1]; sub(/-0$/, "", topic); print topic, $2; next }
  /^baseOffset: / {
    for (i = 1; i < NF; i++) field[$i] = $(i + 1)
    horizon = $0 ~ /deleteHorizonMs: OptionalLong\[/ ? "horizon" : "-"
    size = field["compresscodec:"] == "none" ? field["size:"] : "-"
    print topic, "batch", field["baseOffset:"], field["lastOffset:"], "count", field["count:"], "sequence",
      field["baseSequence:"], field["lastSequence:"], horizon, field["compresscodec:"], "size", size, field["isvalid:"]
  }' "$W/dump.txt" >"$W/batches"
for t in $topics; do sed -n "s/^$t //p" "$W/batches" >"$W/left/$t-batches"; done
find "$W/left" -empty -delete
[ "${KEEP:-}" = 1 ] && [ "${TARGET:-}" = kafka ] && rm -rf "$here/kafka-4.4" && cp -r "$W/left" "$here/kafka-4.4"
for t in $(cd "$here/kafka-4.4" && ls); do
  if [ ! -e "$W/left/$t" ]; then fail "$t" "no transcript; see $W/log"
  elif why=$(diff "$here/kafka-4.4/$t" "$W/left/$t"); then pass "$t"
  else fail "$t" "differs (< Kafka): $(tr '\n' ' ' <<<"$why" | cut -c1-300)"; fi
done
