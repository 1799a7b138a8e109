#!/usr/bin/env bash
# Kafka 4.4's own command line tools, 87 commands of session.txt in one JVM: exit codes and the facts of their output.
# usage: run.sh BOOTSTRAP
# The whole output is kept in WORK/transcript.txt; transcript-kafka-4.4.txt is what Apache Kafka gave.
set -u
here=$(cd "$(dirname "$0")" && pwd)
source "$here/../lib.sh"
B=${1:?BOOTSTRAP}
W=${WORK:-$(mktemp -d)}
libs=$(peer_classpath)
# Blocks are separated by blank lines; one that is marked with "# later:" is left out and named.
if [ "${TARGET:-ours}" = ours ] && [ "${LATER:-}" != 1 ]; then
  awk -v RS= -v ORS='\n\n' '!/\n# later:/' "$here/session.txt" >"$W/session.txt"
  awk -v RS= '/\n# later:/ { match($0, /# later: [^\n]*/); print "SKIP " $2 " " substr($0, RSTART + 2, RLENGTH - 2) }' "$here/session.txt"
else
  cp "$here/session.txt" "$W/session.txt"
fi
java -Xmx512m -Dlog4j2.configurationFile="$here/../log4j2.xml" -cp "$libs" "$here/ToolSession.java" \
  "$B" "$W/session.txt" "$W/transcript.txt" "${BROKER:+$BROKER/data}" 2>"$W/err.txt" |
  sed -uE 's/^ok +([^ ]+).*/PASS \1/; s/^FAIL ([^ ]+) \|/FAIL \1/; s/^[0-9]+ passed.*//' | grep --line-buffered .
