#!/usr/bin/env bash
# franz-go's own tests against a broker: those of pkg/kgo 1.22.3 that talk to one (tests.txt).
# usage: run.sh BOOTSTRAP        RECORDS=20000 that a test moves, ONLY=regex of tests, PARTS=11 partitions at most
# A case is a top-level test; its subtests count with it.
set -u
here=$(cd "$(dirname "$0")" && pwd)
source "$here/../lib.sh"
B=${1:?BOOTSTRAP}
D=$SUITES/franz-go W=${WORK:-$(mktemp -d)}
"$here/install.sh" || exit 2
grep '^Test' "$here/tests.txt" | grep -E "${ONLY:-.}" >"$W/tests"
if [ "${TARGET:-ours}" = ours ] && [ "${LATER:-}" != 1 ]; then
  while read -r name cause; do grep -qx "$name" "$W/tests" && skip "$name" "$cause"; done < <(grep '^Test' "$here/later")
  grep -oE '^Test[^ ]*' "$here/later" | grep -vxFf - "$W/tests" >"$W/now"
  mv "$W/now" "$W/tests"
fi
export KGO_SEEDS=$B KGO_TEST_RF=1 KGO_TEST_RECORDS=${RECORDS:-20000} KGO_TEST_MAX_TOPIC_PARTS=${PARTS:-11}
export KGO_LOG_LEVEL=none KGO_TEST_STABLE_FETCH=true
cd "$D/kgo/pkg/kgo" || exit 2
"$D/kgo.test" -test.v -test.timeout "${LIMIT:-9m}" -test.run "^($(paste -sd'|' "$W/tests"))\$" >"$W/kgo.log" 2>&1
sed -nE 's/^--- PASS: ([^ ]+).*/PASS \1/p; s/^--- SKIP: ([^ ]+).*/SKIP \1/p; s/^--- FAIL: ([^ ]+) (.*)/FAIL \1 \2/p' "$W/kgo.log"
# A panic or the time limit ends the process: whatever had begun and not ended has failed.
grep -qE '^panic:' "$W/kgo.log" && awk '/^=== RUN/ { if ($3 !~ "/") open[$3] = 1 } /^--- / { delete open[$3] }
  /^panic:/ { why = $0 } END { for (t in open) print "FAIL " t " " why }' "$W/kgo.log"
exit 0
