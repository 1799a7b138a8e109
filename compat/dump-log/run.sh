#!/usr/bin/env bash
# Kafka's DumpLogSegments on every file that a node leaves behind: data segments and their indexes, committed offsets,
# producer snapshots, the metadata log and its snapshots. The data comes from two kinds of client with every codec.
# usage: run.sh BOOTSTRAP (its port is used for a node of its own)
set -u
here=$(cd "$(dirname "$0")" && pwd)
source "$here/../lib.sh"
deb kcat || exit 2
B=${1:?BOOTSTRAP} W=${WORK:-$(mktemp -d)} TARGET=${TARGET:-ours}
N=$W/node
mkdir -p "$N"
cp "$here/settings.properties" "$N/extra.properties"
"$here/../node" start "$TARGET" "${B##*:}" "$N" >/dev/null || exit 2
tool() { "$PEER" run "org.apache.kafka.tools.$@"; }
kc() { timeout 60 kcat -b "$B" -X broker.address.family=v4 "$@"; }

# Small segments, so that there are sealed ones with whole indexes.
tool TopicCommand --bootstrap-server "$B" --create --topic dump --partitions 2 --replication-factor 1 \
  --config segment.bytes=1048576 --config index.interval.bytes=500 >&2
seq 1 20000 | sed 's/$/ a line that is long enough to fill a segment soon/' >"$W/in"
for c in none none none gzip snappy lz4 zstd none; do kc -P -t dump -z $c -X acks=all -X enable.idempotence=true -l "$W/in"; done
sed 's/^\([0-9]*\) /\1\t/' "$W/in" | head -5000 | tool ConsoleProducer --bootstrap-server "$B" --topic dump \
  --reader-property parse.key=true --compression-codec zstd --command-property acks=all >&2
for g in a b c; do kc -G dump-$g -X auto.offset.reset=earliest -e -q dump >"$W/read-$g"; done
check read-back 165000 "$(wc -l <"$W/read-a")"
for i in 1 2 3 4 5 6; do kc -P -t short-$i <<<x; done
tool ConfigCommand --bootstrap-server "$B" --alter --entity-type topics --entity-name short-1 --add-config retention.ms=3600001 >&2
tool TopicCommand --bootstrap-server "$B" --delete --topic short-2 >&2
"$here/../node" stop "$N" || fail stops-in-order "it had to be killed"

cd "$N/data" || exit 2
list() { local IFS=,; echo "$*"; }
# dump CASE FILES ARGS...: the tool must not complain of anything, and must print something.
# (For every segment but the first it says that offset -1 is followed by the base offset; that is its way, not a gap.)
complaints='isvalid: false|[Mm]ismatch|^ +[0-9]+ is followed by|Exception|[Cc]orrupt|not a valid|out of order|No timeindex|[Cc]ould not|Unable|sanity check failed'
dump() {
  local name=$1 files=$2; shift 2
  [ -n "$files" ] || { fail "$name" "no such file"; return; }
  tool DumpLogSegments --files "$files" "$@" >"$W/$name.txt" 2>&1 || { fail "$name" "exit code not 0: $(tail -1 "$W/$name.txt")"; return; }
  local bad
  bad=$(grep -E "$complaints" "$W/$name.txt" | grep -v "passed the sanity check" | head -1)
  if [ -n "$bad" ]; then fail "$name" "${bad:0:200}"; elif [ ! -s "$W/$name.txt" ]; then fail "$name" "no output"; else pass "$name"; fi
}
dump segments "$(list dump-*/*.log)" --deep-iteration --print-data-log
check segments-hold-every-record 165000 "$(grep -c '^| offset: ' "$W/segments.txt")"
check several-segments yes "$([ "$(ls dump-?/*.log | wc -l)" -gt 3 ] && echo yes)"
dump indexes "$(list dump-*/*.index)" --index-sanity-check
dump indexes-verified "$(list dump-*/*.index)" --verify-index-only
dump time-indexes "$(list dump-*/*.timeindex)" --index-sanity-check
dump time-indexes-verified "$(list dump-*/*.timeindex)" --verify-index-only
dump producer-snapshots "$(list dump-*/*.snapshot)"
dump offsets "$(list $(find __consumer_offsets-* -name '*.log' -size +0))" --offsets-decoder
check offsets-of-every-group 3 "$(grep -oE '"group":"dump-[abc]"' "$W/offsets.txt" | sort -u | wc -l)"
dump offsets-indexes "$(list __consumer_offsets-*/*.index)" --index-sanity-check
dump metadata-log "$(list __cluster_metadata-0/*.log)" --cluster-metadata-decoder
check metadata-log-tells-of-topics yes "$(grep -q '"type":"TOPIC_RECORD".*"name":"dump"' "$W/metadata-log.txt" && echo yes)"
dump metadata-indexes "$(list __cluster_metadata-0/*.index)" --index-sanity-check
dump metadata-snapshot "$(list __cluster_metadata-0/*.checkpoint)" --cluster-metadata-decoder
check metadata-snapshot-tells-of-topics yes "$(grep -q '"type":"TOPIC_RECORD".*"name":"dump"' "$W/metadata-snapshot.txt" && echo yes)"

# What is read back after an orderly start is what was there.
"$here/../node" again "$N" >/dev/null && check read-after-restart 165000 "$(kc -C -t dump -o beginning -e -q | wc -l)"
"$here/../node" stop "$N"
