#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# git: a repository with a history, its clones, its packing and its checks.
. "${LAYOUTFS_SOURCE:?}/tests/programs.sh"
need git tar

export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null
export GIT_AUTHOR_NAME=Test GIT_AUTHOR_EMAIL=test@example.org
export GIT_COMMITTER_NAME=Test GIT_COMMITTER_EMAIL=test@example.org

# commit_changes COUNT: that many commits, each with a file changed, added, renamed and removed.
commit_changes() {
    local i
    for ((i = 1; i <= $1; i++)); do
        echo "change $i" >>README.md
        mkdir -p "added/$((i % 7))"
        seq "$i" $((i + 500)) >"added/$((i % 7))/file$i"
        [ "$i" -lt 2 ] || git mv "added/$(((i - 1) % 7))/file$((i - 1))" "added/moved$((i - 1))"
        [ "$i" -lt 4 ] || git rm -q "added/moved$((i - 3))"
        git add -A
        git commit -q -m "change $i"
    done
    find added -type d -empty -delete # git knows no empty directories
}

use_git() {
    cd "$mount_point"
    copy_project origin
    cd origin
    git init -q -b main .
    git config core.fsync all
    git config gc.autoDetach false
    git add -A
    git commit -q -m "the source"
    commit_changes $((12 * factor))
    git fsck --strict --no-progress
    git status --porcelain >../status
    [ ! -s ../status ] || fail "$type: git status: $(cat ../status)"

    # Objects are copied by the first clone and linked by the second.
    git clone -q --no-hardlinks . ../copied
    git clone -q . ../linked
    git checkout -q -b side HEAD~5
    commit_changes 2
    git checkout -q main
    git worktree add -q ../worktree side
    git gc -q --prune=now
    git repack -q -adf
    git fsck --strict --no-progress
    git count-objects -v | grep -x 'count: 0' >/dev/null || fail "$type: git gc left objects unpacked"

    local clone
    for clone in copied linked; do
        git -C ../$clone fsck --strict --no-progress
        diff -r --exclude=.git . ../$clone || fail "$type: the $clone clone differs"
        git -C ../$clone fetch -q "$PWD" side:side
        git -C ../$clone checkout -q side
        git -C ../$clone gc -q --prune=now
        git -C ../$clone fsck --strict --no-progress
        diff -r --exclude=.git ../worktree ../$clone || fail "$type: the branch in $clone differs"
    done
    rm -rf ../linked
    git fsck --strict --no-progress
}
on_every_type use_git
