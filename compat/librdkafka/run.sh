#!/usr/bin/env bash
# librdkafka's own tests against a broker, one process per test number, because the runner's filter knows only numbers.
# usage: run.sh BOOTSTRAP
#   JOBS=3      processes at a time           LIMIT=150  seconds a test may take
#   ONLY=regex  of test names                 FULL=1     without the runner's quick mode, which leaves out subtests: the
#                                                        tests in `full` would be empty in it and still pass
#   PROTOCOL=classic|consumer                 group protocol of the consumers
# What is never run: tests that need no broker, manual ones, known issues, a socket emulator, and names in `left-out`.
set -u
here=$(cd "$(dirname "$0")" && pwd)
source "$here/../lib.sh"
export BROKERS=${1:?BOOTSTRAP}
"$here/install.sh" || exit 2
D=$SUITES/librdkafka
R=${WORK:-$(mktemp -d)}/tests
mkdir -p "$R"
export R LIMIT=${LIMIT:-150} FULL=${FULL:-} FULL_LIST=$here/full
cd "$D/package/deps/librdkafka/tests" || exit 2
printf 'bootstrap.servers=%s\nbroker.address.family=v4\ntest.timeout.multiplier=2\n' "$BROKERS" >"$R/test.conf"
export TEST_RF=1 RDKAFKA_TEST_CONF=$R/test.conf LD_LIBRARY_PATH=../src:../src-cpp TEST_KAFKA_VERSION=4.4.0
# The tests allow more time, and leave measurements of time out, where this is set; set everywhere, so that the cases that
# run are the same on every machine.
export CI=true
[ -n "${PROTOCOL:-}" ] && export TEST_CONSUMER_GROUP_PROTOCOL=$PROTOCOL

# A few tests call kafka-topics.sh and kafka-acls.sh under KAFKA_PATH.
export KAFKA_PATH=$R/kafka
mkdir -p "$KAFKA_PATH/bin"
for t in topics:TopicCommand acls:AclCommand; do
  printf '#!/bin/sh\nexec env KAFKA_HEAP_OPTS=-Xmx128m "%s" run org.apache.kafka.tools.%s "$@"\n' "$PEER" "${t#*:}" >"$KAFKA_PATH/bin/kafka-${t%:*}.sh"
  chmod +x "$KAFKA_PATH/bin/kafka-${t%:*}.sh"
done

# Names of the tests that want a broker, from the runner's own table.
python3 - >"$R/all" <<'P'
import re
s = open('test.c').read()
s = s[s.index('struct test tests[] = {'):]
s = re.sub(r'/\*.*?\*/', '', s[:s.index('\n};')], flags=re.S)
for m in re.split(r'(?=_TEST\()', s)[1:]:
    name = re.match(r'_TEST\((\w+)', m).group(1)
    scenario = re.search(r'\.scenario = "([^"]*)"', m)
    if re.search(r'TEST_F_(LOCAL|MANUAL|SOCKEM|KNOWN_ISSUE)\b', m):
        continue
    if not scenario or 'default' in scenario.group(1).split(','):
        print(name)
P
grep -oE '^[0-9][^ ]*' "$here/left-out" | grep -vxFf - "$R/all" | grep -E "${ONLY:-.}" >"$R/list"
if [ "${TARGET:-ours}" = ours ] && [ "${LATER:-}" != 1 ]; then
  while read -r name cause; do
    grep -qx "$name" "$R/list" && skip "$name" "$cause"
  done < <(grep -E '^[0-9]' "$here/later")
  grep -oE '^[0-9][^ ]*' "$here/later" | grep -vxFf - "$R/list" >"$R/now"
  mv "$R/now" "$R/list"
fi

# The line after the failure's headline says what went wrong; the assertion that follows it is the same for all.
reason() {
  plain "$1" | awk '/^### Test .* failed at /{ getline; print; exit }' | grep . ||
    plain "$1" | grep -aE 'Test failed|: (expected|Expected)|Assert|FAILED' | head -1
} 2>/dev/null
plain() { sed 's/\x1b\[[0-9;]*m//g' "$1"; }
one() {
  local n=$1 rc v state quick=-Q
  if [ "$FULL" = 1 ] || grep -qx "$n" "$FULL_LIST"; then quick=; fi
  TESTS=$n timeout -k 5 "$LIMIT" ./test-runner -p1 -L $quick -s default >"$R/$n.log" 2>&1
  rc=$?
  grep "^$n" "$R/list" | while read -r v; do
    state=$(plain "$R/$n.log" | awk -F'|' -v n="$v" '$2 ~ "^ *"n" *$" { gsub(/ /, "", $3); s = $3 } END { print s }')
    # The runner ends without its summary when a failed test leaves threads behind; then the lines of each test tell.
    [ -z "$state" ] && state=$(plain "$R/$n.log" | awk -v n="$v" 'index($0, "Test " n " PASSED") { s = "PASSED" }
      index($0, "### Test \"" n "\"") || index($0, "### Test \"" n " (") { s = "FAILED" }
      index($0, "Test " n " SKIPPED") { s = "SKIPPED" } END { print s }')
    case $state in
      PASSED) pass "$v" ;;
      SKIPPED) skip "$v" "by the test itself" ;;
      *) [ $rc -eq 124 ] || [ $rc -eq 137 ] && state="no end within $LIMIT s"
        fail "$v" "${state:-exit $rc} $(reason "$R/$n.log" | tr -s ' ' | cut -c1-300)" ;;
    esac
  done
}
export -f one plain reason pass fail skip
cut -c1-4 "$R/list" | sort -u | xargs -P "${JOBS:-3}" -I{} bash -c 'one {}'
