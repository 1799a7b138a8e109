#!/usr/bin/env bash
# Kafka's own test of what a client of each minor release can do with a broker (ClientCompatibilityTest of kafka-tools with
# the kafka-clients of the same release), and VerifiableProducer and VerifiableConsumer of the oldest, a middle and the
# newest release. A fresh broker for each release, because the test wants a topic that does not exist.
# usage: run.sh BOOTSTRAP (not used)      ONLY=regex of versions, JOBS=releases at a time (default 2)
set -u
here=$(cd "$(dirname "$0")" && pwd)
source "$here/../lib.sh"
export TARGET=${TARGET:-ours} PORT=${PORT:-23000} WORK=${WORK:-$(mktemp -d)} here SUITES COMPAT
# DescribeAcls is an API that the broker does not serve yet; the test wants to know.
[ "$TARGET" = kafka ] && export ACLS=True || export ACLS=False

one() {
  local v=$1 port=$((PORT + 2 * $2)) d=$WORK/$1
  source "$here/../lib.sh"
  local jars="$SUITES/java-clients/$v" B=localhost:$port
  local java=(timeout 120 java -Xmx256m -XX:TieredStopAtLevel=1 -cp "$jars/*")
  mkdir -p "$d"
  "$here/../node" start "$TARGET" $port "$d" >/dev/null || { fail compat-$v "the broker did not start"; return; }
  local flags="--bootstrap-server $B --topic compat --num-cluster-nodes 1 --offsets-for-times-supported True"
  flags+=" --cluster-id-supported True --expect-record-too-large-exception False --create-topics-supported True"
  flags+=" --describe-acls-supported $ACLS"
  # Options that came later than 2.1: describe-configs in 2.2, the idempotent producer in 3.0.
  unzip -p "$jars/kafka-tools-$v.jar" 'org/apache/kafka/tools/ClientCompatibilityTest.class' >"$d/class"
  unzip -p "$jars/kafka-tools-$v.jar" 'org/apache/kafka/tools/ClientCompatibilityTest$TestConfig.class' >>"$d/class"
  for o in describe-configs-supported idempotent-producer-supported; do
    grep -q -- "--$o\|$(sed -E 's/-(.)/\U\1/g' <<<$o)" "$d/class" && flags+=" --$o True"
  done
  "${java[@]}" org.apache.kafka.tools.ClientCompatibilityTest $flags >"$d/compat.log" 2>&1
  if grep -q '^SUCCESS\.' "$d/compat.log"; then pass compat-$v; else
    fail compat-$v "$(grep -E 'Exception|rror' "$d/compat.log" | head -1 | cut -c1-200)"; fi
  case $v in 2.1.1 | 3.1.2 | 4.4.0)
    local bs=--bootstrap-server
    [ $v = 2.1.1 ] && bs=--broker-list
    "${java[@]}" org.apache.kafka.tools.VerifiableProducer $bs $B --topic verify --max-messages 5000 --acks -1 >"$d/producer.log" 2>&1
    if grep -q '"sent":5000,"acked":5000' "$d/producer.log"; then pass verifiable-producer-$v; else
      fail verifiable-producer-$v "$(tail -1 "$d/producer.log" | cut -c1-200)"; fi
    "${java[@]}" org.apache.kafka.tools.VerifiableConsumer $bs $B --topic verify --group-id g --max-messages 5000 \
      --reset-policy earliest >"$d/consumer.log" 2>&1
    if [ "$(grep -o '"name":"records_consumed","count":[0-9]*' "$d/consumer.log" "$d/consumer.log" -h |
      awk -F: '{ n += $3 } END { print n / 2 }')" = 5000 ] && grep -q '"name":"offsets_committed".*"success":true' "$d/consumer.log"; then
      pass verifiable-consumer-$v; else fail verifiable-consumer-$v "$(tail -1 "$d/consumer.log" | cut -c1-200)"; fi ;;
  esac
  "$here/../node" stop "$d"
}
export -f one

"$here/install.sh" || exit 2
versions=$(grep -E "${ONLY:-.}" "$here/versions")
echo "$versions" | xargs -P "${JOBS:-2}" --process-slot-var=SLOT -I{} bash -c 'one {} $SLOT'
