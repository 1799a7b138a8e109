#!/usr/bin/env bash
# kcat 1.7.1 (Debian's package, librdkafka 2.0): round trips, codecs, headers, offsets, groups, errors.
# usage: run.sh BOOTSTRAP
set -u
source "$(dirname "$0")/../lib.sh"
deb kcat || exit 2
B=${1:?BOOTSTRAP}
T=kcat
W=${WORK:-$(mktemp -d)}
KC="timeout 40 kcat -b $B -X broker.address.family=v4"
n=2000
seq 1 $n >"$W/in"

check metadata-json 1 "$($KC -L -J | grep -c '"brokers"')"

# For each codec: produce, read back from the beginning, same bytes.
for c in none gzip snappy lz4 zstd; do
  $KC -P -t $T-$c -z $c -X acks=all -l "$W/in"
  check codec-$c "$(md5sum <"$W/in")" "$($KC -C -t $T-$c -o beginning -e -q | sort -n | md5sum)"
done
for a in 0 1 -1; do
  $KC -P -t $T-acks$a -X acks=$a -l "$W/in"
  sleep 1
  check acks-$a $n "$($KC -C -t $T-acks$a -o beginning -e -q | wc -l)"
done

printf 'k1:v1\nk2:\nk3:v3\n' | $KC -P -t $T-kv -K: -Z -H h1=a -H h2=b
check key-null-headers 'k1|2|h1=a,h2=b|v1 k2|-1|h1=a,h2=b| k3|2|h1=a,h2=b|v3 ' \
  "$($KC -C -t $T-kv -o beginning -e -q -f '%k|%S|%h|%s\n' | sort | tr '\n' ' ')"

# Offsets: a number, from the end, by time, and the queries that answer them.
$KC -P -t $T-p0 -p 0 -l "$W/in"
now=$(date +%s%3N)
check offset-middle 500 "$($KC -C -t $T-p0 -p 0 -o 1500 -e -q | wc -l)"
check offset-tail 10 "$($KC -C -t $T-p0 -p 0 -o -10 -e -q | wc -l)"
check offset-count 7 "$($KC -C -t $T-p0 -p 0 -o 100 -c 7 -q | wc -l)"
check query-timestamp-old "$T-p0 [0] offset 0" "$($KC -Q -t $T-p0:0:1)"
check query-end "$T-p0 [0] offset $n" "$($KC -Q -t $T-p0:0:-1)"
check query-beginning "$T-p0 [0] offset 0" "$($KC -Q -t $T-p0:0:-2)"
check timestamp-range $n "$($KC -C -t $T-p0 -p 0 -o s@$((now - 3600000)) -o e@$((now + 3600000)) -e -q | wc -l)"

# Groups: read all and commit; a second run reads nothing; a third reads only what is new.
for s in range cooperative-sticky; do
  G="-G $T-$s -X partition.assignment.strategy=$s -X auto.offset.reset=earliest -X session.timeout.ms=10000"
  check group-$s $n "$($KC $G -e -q $T-lz4 | wc -l)"
  check group-$s-resume 0 "$($KC $G -e -q $T-lz4 | wc -l)"
  echo more | $KC -P -t $T-lz4
  check group-$s-new 1 "$($KC $G -e -q $T-lz4 | wc -l)"
  n=$((n + 1))
done
n=2000

$KC -P -t $T-idempotent -X enable.idempotence=true -l "$W/in"
check idempotent $n "$($KC -C -t $T-idempotent -o beginning -e -q | wc -l)"
timeout 20 $KC -P -t $T-txn -X transactional.id=$T-tx -l "$W/in"
check transaction-commit $n "$($KC -C -t $T-txn -X isolation.level=read_committed -o beginning -e -q | wc -l)"

head -c 900000 /dev/zero | tr '\0' x >"$W/big"
$KC -P -t $T-big -p 0 "$W/big"
check big-message 900000 "$($KC -C -t $T-big -p 0 -o beginning -e -q | tr -d '\n' | wc -c)"
head -c 1500000 /dev/zero | tr '\0' x >"$W/too-big"
$KC -P -t $T-big -p 0 -X message.max.bytes=3000000 "$W/too-big" 2>"$W/err"
check too-large 1 "$(grep -ciE 'too large' "$W/err")"
$KC -C -t $T-no-such-topic -e -q -X allow.auto.create.topics=false 2>"$W/err"
check unknown-topic yes "$(grep -qiE 'Unknown topic' "$W/err" && echo yes)"
