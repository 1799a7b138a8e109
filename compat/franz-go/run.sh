#!/usr/bin/env bash
# franz-go's own tests against a broker: pkg/kgo 1.22.3 and kadm 1.20.0.
# usage: run.sh BOOTSTRAP        RECORDS=20000 a test moves, RUN=regex of tests, PARTS=11 partitions at most
# A case is a top-level test; its subtests count with it.
set -u
here=$(cd "$(dirname "$0")" && pwd)
source "$here/../lib.sh"
B=${1:?BOOTSTRAP}
D=$SUITES/franz-go W=${WORK:-$(mktemp -d)}
mkdir -p "$D"
export GOFLAGS=-buildvcs=false

# build NAME MODULE VERSION PACKAGE: the module's tests as a binary; a copy, because Go's own is read-only.
build() {
  [ -x "$D/$1.test" ] && return
  cd "$D" && go mod download "$2@$3" && rm -rf "$D/$1" && cp -r "$(go env GOMODCACHE)/$2@$3" "$D/$1" && chmod -R u+w "$D/$1" &&
    (cd "$D/$1" && go test -c -o "$D/$1.test" "$4") >&2
}
build kgo github.com/twmb/franz-go v1.22.3 ./pkg/kgo || exit 2
build kadm github.com/twmb/franz-go/pkg/kadm v1.20.0 . || exit 2

export KGO_SEEDS=$B KGO_TEST_RF=1 KGO_TEST_RECORDS=${RECORDS:-20000} KGO_TEST_MAX_TOPIC_PARTS=${PARTS:-11}
export KGO_LOG_LEVEL=none KGO_TEST_STABLE_FETCH=true
later=
if [ "${TARGET:-ours}" = ours ] && [ "${LATER:-}" != 1 ]; then
  while read -r name cause; do
    skip "$name" "$cause"
    later+="${later:+|}^${name#*.}\$"
  done < <(grep -E '^k' "$here/later")
fi
cases() { # PREFIX LOG: one line per top-level test
  sed -nE "s/^--- PASS: ([^ ]+).*/PASS $1.\1/p; s/^--- SKIP: ([^ ]+).*/SKIP $1.\1/p; s/^--- FAIL: ([^ ]+) (.*)/FAIL $1.\1 \2/p" "$2"
  # A panic or the time limit ends the process: whatever had begun and not ended has failed.
  grep -qE '^panic:' "$2" && awk -v p="$1" '/^=== RUN/ { if ($3 !~ "/") open[$3] = 1 } /^--- / { delete open[$3] }
    /^panic:/ { why = $0 } END { for (t in open) print "FAIL " p "." t " " why }' "$2"
}
cd "$D/kgo/pkg/kgo" && "$D/kgo.test" -test.v -test.timeout "${LIMIT:-9m}" ${RUN:+-test.run "$RUN"} ${later:+-test.skip "$later"} >"$W/kgo.log" 2>&1
cases kgo "$W/kgo.log"
[ -n "${RUN:-}" ] && exit
cd "$D/kadm" && "$D/kadm.test" -test.v -test.timeout 3m ${later:+-test.skip "$later"} >"$W/kadm.log" 2>&1
cases kadm "$W/kadm.log"
