#!/usr/bin/env bash
# Kafka's own JUnit integration tests, against brokers that compat/node starts: src/ holds the class that stands in for
# Kafka's embedded cluster. The newest release with test jars is 4.3.1.
# usage: run.sh BOOTSTRAP (not used)
#   ONLY=regex of classes   METHOD=regex of CLASS.METHOD   FRESH=true|false a broker for every test (default: ours true)
# A case is CLASS.METHOD; it passes when each of its invocations that ran has passed and at least one did.
set -u
here=$(cd "$(dirname "$0")" && pwd)
source "$here/../lib.sh"
TARGET=${TARGET:-ours} W=${WORK:-$(mktemp -d)} D=$SUITES/kafka-itests
"$here/install.sh" || exit 2
select=$(grep -vE '^#' "$here/classes.txt" | grep -E "${ONLY:-.}" | sed 's/^/--select-class /')
filter=()
[ -n "${METHOD:-}" ] && filter+=("--include-methodname=$METHOD")
if [ "$TARGET" = ours ] && [ "${LATER:-}" != 1 ]; then
  while read -r pattern cause; do filter+=("--exclude-methodname=.*$pattern"); done < <(grep -vE '^(#|$)' "$here/later")
fi
[ "$TARGET" = ours ] && FRESH=${FRESH:-true}
timeout "${LIMIT:-1400}" java -Xmx1g -Dlog4j2.configurationFile="$here/../log4j2.xml" \
  -Dext.launch="$here/../node start $TARGET" -Dext.fresh="${FRESH:-false}" -Dext.port="${PORT:-23000}" -Dext.dir="$W/brokers" \
  -Djunit.jupiter.extensions.autodetection.enabled=true -Djunit.jupiter.execution.timeout.default="${TEST_LIMIT:-60s}" \
  -cp "$D/classes:$D/libs/*" org.junit.platform.console.ConsoleLauncher execute --disable-banner --disable-ansi-colors \
  --details=testfeed $select "${filter[@]}" >"$W/junit.txt" 2>"$W/junit-errors.txt"
exec python3 "$here/cases.py" "$W/junit.txt"
