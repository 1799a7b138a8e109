#!/usr/bin/env bash
# librdkafka 2.15.1 with its tests, as the npm package @confluentinc/kafka-javascript 1.10.1 carries it.
# Built once under SUITES (a few minutes on two cores).
set -euo pipefail
source "$(dirname "$0")/../lib.sh"
D=$SUITES/librdkafka
[ -e "$D/.complete" ] && exit
deb gcc g++ make libssl-dev zlib1g-dev libcurl4-openssl-dev libzstd-dev liblz4-dev rapidjson-dev
mkdir -p "$D"
cd "$D"
npm pack --ignore-scripts --silent @confluentinc/kafka-javascript@1.10.1 >/dev/null
rm -rf package
tar xzf confluentinc-kafka-javascript-1.10.1.tgz package/deps/librdkafka
cd package/deps/librdkafka
chmod +x configure lds-gen.py tests/*.sh tests/*.py 2>/dev/null || true
# The tests assume three brokers; TEST_RF in the environment sets the replication factor of the topics that they create.
sed -i "/^void test_admin_create_topic(/,/^}/ s/const size_t newt_cnt *= 1;/& if (getenv(\"TEST_RF\")) replication_factor = atoi(getenv(\"TEST_RF\"));/" tests/test.c
grep -q TEST_RF tests/test.c
./configure --disable-optimization --disable-debug-symbols >"$D/configure.log" 2>&1
make -j2 -C src >"$D/build.log" 2>&1
make -j2 -C src-cpp >>"$D/build.log" 2>&1
make -j2 -C tests build >>"$D/build.log" 2>&1
touch "$D/.complete"
