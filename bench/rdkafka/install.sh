#!/usr/bin/env bash
# librdkafka 2.12.1 and its rdkafka_performance, optimised, from the sources inside the crate rdkafka-sys 4.10.0.
# Prints the path of the program.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
source "$here/../../compat/lib.sh"
D=$SUITES/rdkafka-performance
if [ ! -x "$D/rdkafka_performance" ]; then
  deb gcc g++ make libssl-dev zlib1g-dev libzstd-dev liblz4-dev
  mkdir -p "$D"
  cp "$here/Cargo.toml" "$here/lib.rs" "$D/"
  manifest=$(cd "$D" && cargo metadata --format-version 1 2>/dev/null | python3 -c '
import json, sys
print(next(p["manifest_path"] for p in json.load(sys.stdin)["packages"] if p["name"] == "rdkafka-sys"))')
  rm -rf "$D/librdkafka"
  cp -r "$(dirname "$manifest")/librdkafka" "$D/librdkafka"
  cd "$D/librdkafka"
  chmod +x configure lds-gen.py 2>/dev/null || true
  ./configure --disable-gssapi --disable-curl >"$D/build.log" 2>&1
  make -j2 -C src librdkafka.a >>"$D/build.log" 2>&1
  libs=$(sed -n 's/^LIBS+=//p' Makefile.config | tr '\n' ' ')
  gcc -O2 -Isrc examples/rdkafka_performance.c -o "$D/rdkafka_performance" src/librdkafka.a $libs -lpthread -lm -ldl >>"$D/build.log" 2>&1
fi
echo "$D/rdkafka_performance"
