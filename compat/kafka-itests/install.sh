#!/usr/bin/env bash
# Kafka's test jars and the compiled stand-in for its embedded cluster, under SUITES; quick when they are there.
set -u
here=$(cd "$(dirname "$0")" && pwd)
source "$here/../lib.sh"
D=$SUITES/kafka-itests
mvn_libs "$D/libs" "$here/pom.xml" || exit 1
src=$(find "$here/src" -name '*.java')
cat $src | cmp -s - "$D/compiled" && exit
rm -rf "$D/classes"
javac --release 17 -nowarn -cp "$D/libs/*" -d "$D/classes" $src >&2 || exit 1
cat $src >"$D/compiled"
