#!/bin/sh
# picture.sh   draws docs/seeing.png anew: the page of a job that runs, as a browser without a screen shows it. It needs what
# tools/install-test-deps.sh installs.
set -eu
cd "$(dirname "$0")/.."

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
go build -o "$dir/pgasrun" ./cmd/pgasrun
go build -o "$dir/heat" ./examples/heat
PGAS_LOCAL=off "$dir/pgasrun" -n 4 --serve :0 "$dir/heat" -rows 256 -cols 20000 -steps 1000000 >"$dir/out" 2>"$dir/err" &
job=$!
trap 'kill "$job" 2>/dev/null; rm -rf "$dir"' EXIT
until url=$(grep -o 'http://[0-9.:]*/' "$dir/err" | head -n 1) && [ -n "$url" ]; do sleep 0.1; done
sleep 8 # something to see
chromium-headless-shell --no-sandbox --hide-scrollbars --window-size=900,1010 --virtual-time-budget=2000 \
	--screenshot="$PWD/docs/seeing.png" "$url" 2>/dev/null
ls -l docs/seeing.png
