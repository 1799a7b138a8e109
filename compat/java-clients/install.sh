#!/usr/bin/env bash
# The test tools of every release in `versions` with that release's client, under SUITES; quick when they are there.
set -u
here=$(cd "$(dirname "$0")" && pwd)
source "$here/../lib.sh"
deb unzip || exit 1
for v in $(cat "$here/versions"); do
  mvn_libs "$SUITES/java-clients/$v" "$here/pom.xml" -Dkv="$v" || { echo "java-clients: no jars of $v" >&2; exit 1; }
done
