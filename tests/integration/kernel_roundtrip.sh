#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
. "${LAYOUTFS_SOURCE:?}/tests/lib.sh"
skip "not written yet"
