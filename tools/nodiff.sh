#!/bin/sh
# nodiff.sh COMMAND...   fails if the command fails or changes the work tree, committed or not.
state() {
	git status --porcelain && git diff HEAD
}
before=$(state) || exit 1
"$@" || exit 1
after=$(state) || exit 1
[ "$before" = "$after" ] && exit 0
echo "changed by: $* (commit the result)"
git status --short
exit 1
