# Shell functions that the suites share. Source it; it sets no shell options and starts nothing.
#
#   SUITES         where downloads and builds of upstream suites live (a cache: deleting it costs time, nothing else)
#   COMPAT         the folder of this file
#   deb PKG...     installs Debian packages that are missing
#   mvn_libs D P   copies the jars of pom P to folder D, once
#   pass, fail, skip   report one case on standard output: the lines that compat/run counts

COMPAT=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
SUITES=${MONEDULA_SUITES:-${XDG_CACHE_HOME:-$HOME/.cache}/monedula-suites}
PEER=$COMPAT/peer/peer
mkdir -p "$SUITES"

pass() { echo "PASS $1"; }
fail() { local name=$1; shift; echo "FAIL $name $*"; }
skip() { local name=$1; shift; echo "SKIP $name $*"; }

# check NAME WANTED GOT: one case that compares two texts.
check() { if [ "$2" = "$3" ]; then pass "$1"; else fail "$1" "wanted [${2:0:120}] got [${3:0:120}]"; fi; }

deb() {
  local missing=()
  for p in "$@"; do dpkg -s "$p" >/dev/null 2>&1 || missing+=("$p"); done
  [ ${#missing[@]} -eq 0 ] && return 0
  (
    flock 9
    export DEBIAN_FRONTEND=noninteractive
    apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null 2>&1 && exit 0
    apt-get update -qq >/dev/null 2>&1
    apt-get install -y -qq --no-install-recommends "${missing[@]}" >"$SUITES/apt.log" 2>&1
  ) 9>"$SUITES/apt.lock" || { echo "could not install ${missing[*]}; see $SUITES/apt.log" >&2; return 1; }
}

mvn_libs() {
  local dir=$1 pom=$2; shift 2
  [ -e "$dir/.complete" ] && return 0
  deb maven || return 1
  local plugin=org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies
  # A registry that is slow for a moment should not fail a whole run: one more try.
  for _ in 1 2; do
    mvn -q -B -f "$pom" "$@" $plugin -DoutputDirectory="$dir" -DincludeScope=test >&2 && { touch "$dir/.complete"; return 0; }
  done
  return 1
}

# The class path of Kafka 4.4's own tools and clients.
peer_classpath() { "$PEER" classpath; }
