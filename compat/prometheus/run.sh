#!/usr/bin/env bash
# A real Prometheus (Debian's package) scrapes the node; the series of `series` must be there after some load, and promtool
# must have nothing against the page. Apache Kafka serves no such page, so there everything is skipped.
# usage: run.sh BOOTSTRAP      (the page is on the next port)
set -u
here=$(cd "$(dirname "$0")" && pwd)
source "$here/../lib.sh"
B=${1:?BOOTSTRAP} W=${WORK:-$(mktemp -d)}
http=localhost:$((${B##*:} + 1)) own=localhost:$((${B##*:} + 2))
series() { grep -vE '^(#|$)' "$here/series"; }
if [ "${TARGET:-ours}" = kafka ]; then series | while read -r name _; do skip "$name" "no metrics page"; done; exit; fi
deb kcat prometheus curl || exit 2

seq 1 1000 | timeout 30 kcat -P -b "$B" -t scraped -X acks=all
timeout 60 kcat -b "$B" -G scraper -X auto.offset.reset=earliest -e -q scraped | wc -l | grep -qx 1000 || echo "the group did not read everything" >&2

status() { curl -s -o /dev/null -w '%{http_code}' "http://$http$1"; }
check healthz 200 "$(status /healthz)"
check readyz 200 "$(status /readyz)"
check not-found 404 "$(status /nothing-here)"
curl -s "http://$http/metrics" >"$W/metrics.txt"
promtool check metrics <"$W/metrics.txt" >"$W/promtool.txt" 2>&1
if grep -qE 'error while|text format parsing|duplicate' "$W/promtool.txt"; then fail promtool "$(head -1 "$W/promtool.txt")"; else pass promtool; fi

cat >"$W/prometheus.yml" <<Y
global: { scrape_interval: 1s }
scrape_configs:
  - job_name: monedula
    static_configs: [{ targets: ["$http"] }]
Y
prometheus --config.file="$W/prometheus.yml" --storage.tsdb.path="$W/tsdb" --web.listen-address="$own" --log.level=warn >"$W/prometheus.log" 2>&1 &
trap "kill $!" EXIT
ask() { curl -s -G "http://$own/api/v1/query" --data-urlencode "query=$1" | python3 -c 'import json, sys; sys.exit(not json.load(sys.stdin)["data"]["result"])' 2>/dev/null; }
for _ in $(seq 60); do ask 'up{job="monedula"} == 1' && break; sleep 0.5; done
sleep 2
series | while read -r name expression; do
  if ask "$expression"; then pass "$name"; else fail "$name" "$expression selects nothing"; fi
done
