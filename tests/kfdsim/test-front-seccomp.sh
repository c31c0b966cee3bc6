#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# What the front end without FUSE does by itself: system calls of programs without a library, and
# all of it without any privilege. Arguments: test-kfd, then the clients of AMD's libraries.

mapfile -t clients < <(realpath "$@")
test_kfd=${clients[0]}
unset 'clients[0]'
export KFDSIM_FRONT=seccomp
cd "$GPUARB_ROOT/tests/kfdsim" || exit 1
# shellcheck source=tests/kfdsim/rig.sh
. ./rig.sh
rig_need jq setpriv
rig_need_kfdsim
state=/sys/kernel/debug/kfdsim/state
control=/sys/kernel/debug/kfdsim/control
sim() { local code=$1; shift; ends "$code" kfdsim --gpu radeon-vii "$@"; }

for test in every_thread_can_use_the_file inherited_file_returns_ebadf_and_a_new_one_works \
	a_signal_ends_a_wait foreign_ioctls_return_enotty \
	mapping_an_offset_twice_gives_the_same_memory \
	opening_with_truncation_does_not_clear_the_device \
	the_last_close_of_several_changes_nothing_while_the_process_lives; do
	sim 0 -- "$test_kfd" "$test"
	out_is "$test"
done

# Consoles and other files have ioctls of that type, too: they are asked themselves.
# shellcheck disable=SC2016
sim 0 -- bash -c 'exec 3<>/dev/kfd; test -t 3; test "$(stat -c %F /dev/kfd)" = "regular file"'

# A fault takes hold before what is called after it; one that is wrong is said by kfdsim.
# shellcheck disable=SC2016
sim 0 -- bash -c 'echo get-version:1:ENODEV >"$1"; "$2" every_thread_can_use_the_file; test $? = 134' \
	sh "$control" "$test_kfd"
sim 0 -- sh -c "printf 'nonsense\\nshift:1\\nrubbish\\n' >$control; cat $state"
err_has 'debug/kfdsim/control: '
[ "$(wc -l <"$dir/err")" = 2 ] || complain 'not two sentences'

# What a process has is gone from the texts when its parent knows that it has ended.
# shellcheck disable=SC2016
sim 0 -- bash -c 'for i in {1..20}; do
	exec 3<>/dev/kfd
	grep -q "\"pid\": $$," '$state' || exit 1
	bash -c "exec 4<>/dev/kfd; echo \$\$" >/dev/null
	test "$(grep -c "\"alive\": true" '$state')" = 1 || exit 2
done'

# Relative paths are the emulator's too, where they begin in one of its directories.
# shellcheck disable=SC2016
sim 0 -- bash -c 'cd /sys/class/kfd/kfd/proc || exit 1
	exec 3<>/dev/kfd; cd $$ || exit 1; read -r line <pasid; test -n "$line"'

# Sizes of other files change as ever, and a device's by no path.
# shellcheck disable=SC2016
sim 0 -- bash -c 'cd "$1" || exit 1; echo 1234 >x; truncate -s 2 x; [ "$(cat x)" = 12 ] || exit 2
	cd /dev || exit 3; ! truncate -s 0 kfd || exit 4; : >kfd
	[ "$(stat -c %s kfd)" -gt 4096 ] && exec 3<>kfd' sh "$dir"

# One listener in another is one too many for a kernel.
sim 125 -- "$KFDSIM" --gpu radeon-vii --front seccomp -- true
err_has "another's listener"

# The same for a user who has no privilege at all. Copies, since that one may read no more, and
# from where that one may be.
chmod 755 "$dir"
cd "$dir" || exit 1
cp -r "$KFDSIM" "$GPUARB_ROOT/conf/gpus" "$test_kfd" "${clients[@]}" "$dir"
mkdir "$dir/tmp" # HIP compiles there
chown 65534:65534 "$dir/tmp"
plain() { TMPDIR=$dir/tmp setpriv --reuid 65534 --regid 65534 --clear-groups "$@"; }
if ! plain unshare --user --mount true 2>/dev/null; then
	echo 'no user namespaces here: nothing was run without privilege'
	rig_done
fi
user()
{
	local code=$1
	shift
	ends "$code" plain "$dir/kfdsim" --profiles "$dir/gpus" --gpu radeon-vii "$@"
}
user 0 --front seccomp -- id -u
out_is 65534
user 0 --front seccomp -- "$dir/test-kfd" smi_events_come_by_a_descriptor
user 0 --front seccomp -- "$dir/test-kfd" a_render_node_names_its_driver
user 0 --front seccomp -- "$dir/test-kfd" inherited_file_returns_ebadf_and_a_new_one_works
user 0 -- jq .front $state # FUSE is not to be had, and nothing is said of it
out_is '"seccomp"'
[ ! -s "$dir/err" ] || complain 'something was said'
# shellcheck disable=SC2016
ends 125 plain unshare --user --map-root-user sh -c 'echo 0 >/proc/sys/user/max_user_namespaces
	exec setpriv --bounding-set -all "$0" --front seccomp --gpu radeon-vii --profiles "$1" \
		true' \
	"$dir/kfdsim" "$dir/gpus"
err_has 'namespace'
for client in "${clients[@]}"; do
	name=${client##*/}
	# shellcheck disable=SC2016
	user 0 --front seccomp -- sh -c '"$1" --streams 1 --masked 0xff --work --copy >&2 &&
		cat "$2"' sh "$dir/$name" $state
	json_out '.processes | length == 1 and .[0].alive == false'
	json_out '[.processes[0].queues[] | select(.mask_bits > 0)] | length == 1'
	json_out '[.processes[0].queues[].stopped] | any | not'
done
rig_done
