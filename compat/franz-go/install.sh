#!/usr/bin/env bash
# The tests of franz-go's pkg/kgo 1.22.3 as one binary under SUITES; quick when it is there.
set -euo pipefail
source "$(dirname "$0")/../lib.sh"
D=$SUITES/franz-go module=github.com/twmb/franz-go version=v1.22.3
[ -x "$D/kgo.test" ] && exit
command -v go >/dev/null || deb golang
mkdir -p "$D"
cd "$D"
export GOFLAGS=-buildvcs=false
go mod download $module@$version
# A copy, because the folder of Go's own cache is read-only and some tests write beside themselves.
rm -rf kgo
cp -r "$(go env GOMODCACHE)/$module@$version" kgo
chmod -R u+w kgo
(cd kgo && go test -c -o "$D/kgo.test" ./pkg/kgo) >&2
