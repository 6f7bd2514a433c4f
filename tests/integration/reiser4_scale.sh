#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Reiser4 at its limits, in process: many files, renames, sizes around every threshold, 100,000 names
# in a directory, full disks, volumes from 64 MiB to 8 TiB, all that mkfs.reiser4 offers of nodes,
# hashes and fibrations. After every stage fsck.reiser4 finds nothing wrong in a copy, debugfs.reiser4
# parses the tree, and everything is as it was left; a new tree is packed densely.
. "${LAYOUTFS_SOURCE:?}/tests/lib.sh"
need fsck.reiser4 debugfs.reiser4 measurefs.reiser4
. "$LAYOUTFS_SOURCE/tests/scale/stages.sh"
long=$((${LAYOUTFS_TEST_FACTOR:-1} > 1))

# expect_content WHAT: the tools of the format are, with ./disk.img.
expect_content() {
    cp --sparse=always disk.img copy.img
    fsck.reiser4 --check -y -f copy.img >fsck.log 2>&1 ||
        fail "$1: fsck.reiser4: $(tail -n 20 fsck.log)"
    debugfs.reiser4 -t copy.img >/dev/null 2>debugfs.log || fail "$1: debugfs.reiser4: $(tail -n 3 debugfs.log)"
}
prepare_image() { :; }
look_again() {
    expect_content "$what" # as run_stages says
    # An extent of the file lies between the leaves before and behind it, which stay as they are.
    [ "$1" != unpack ] || [[ $what = *=extents* ]] || expect_dense
}
# Of the nodes' room, so much is used (bar: 0.90).
expect_dense() {
    local packing
    packing=$(measurefs.reiser4 -f -S copy.img 2>&1 | sed -n 's/^ *Formatted nodes:.*(\(.*\)%).*/\1/p')
    awk -v packing="$packing" 'BEGIN { exit !(packing >= 90) }' || fail "packing is '$packing' %"
    echo "packing $packing %"
}
run_scale() {
    SCALE_KEPT_BACK=64 "$scale" "$1" disk.img model "$options"
}

type=reiser4 options=cache=24M
run_stages "--size 1G" unpack halve storm sizes crowd halve clear
run_stages "--size 64M" fill halve fill clear
if [ $long -eq 1 ]; then
    for txmod in journal wa; do
        options=cache=24M,txmod=$txmod
        run_stages "--size 1G" unpack halve storm sizes crowd halve clear
        run_stages "--size 64M" fill halve fill clear
    done
    options=cache=24M
    run_stages "--size 2G -o formatting=extents" unpack halve sizes halve
    run_stages "--size 2G -o formatting=tails" unpack halve # tails have no holes: no large sizes
fi

# Plugins: a small tree with each, and 100,000 names with each hash. With `deg` all names of a
# directory collide, so that 2,000 are many.
options=cache=24M
mkdir -p host/names
(cd host/names && seq -f 'a-name-that-is-neither-long-nor-short.%04g' 2000 | xargs touch)
cp "$LAYOUTFS_SOURCE"/layouts/reiser4/*.[ch] host
seq -f 'main%g.o' 40 | (cd host && xargs touch)
number=0
for node in node40 node41; do
    for hash in r5 rupasov tea fnv1 deg; do
        for fibration in lexic dot_o ext_1 ext_3; do
            number=$((number + 1))
            [ $long -eq 1 ] || [ $((number % 7)) -eq 3 ] || continue
            rm -f disk.img
            layoutfs mkfs -q -t reiser4 --size 64M \
                -o "create=reg40,node=$node,hash=${hash}_hash,fibration=${fibration}_fibre" disk.img
            layoutfs cp -r host disk.img:/ >cp.log || fail "cp: $(cat cp.log)"
            expect_content "$node, $hash, $fibration"
            rm -rf back
            layoutfs cp -r disk.img:/host back >cp.log || fail "cp: $(cat cp.log)"
            diff -r host back >diff.log || fail "$node, $hash, $fibration: $(head -n 3 diff.log)"
        done
    done
done
for hash in rupasov tea fnv1; do
    [ $long -eq 1 ] || break # r5 was above
    run_stages "--size 1G -o hash=${hash}_hash" crowd halve
done

# Sizes.
for size in 130M 64M 2G 100G 8T; do
    [ $long -eq 1 ] || [ $size = 130M ] || break
    rm -f disk.img
    layoutfs mkfs -q -t reiser4 --size $size disk.img
    layoutfs cp -r host disk.img:/ >cp.log || fail "cp: $(cat cp.log)"
    expect_content "a volume of $size"
done
echo "everything is as it was left"
