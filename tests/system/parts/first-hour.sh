# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash disable=SC2034,SC2154,SC2016
#
# The first hour of two users and an administrator on a fresh machine. They type the commands of README.md,
# and see the output that README.md shows: alice is its user, and the administrator installs packages and
# writes policies. bob shares the machine with them.
home=$dir/alice
readme=/opt/readme/README.md
examples=/usr/share/doc/gpuarb/examples
# shellcheck source=tests/rigs/readme.sh
. /opt/readme/rigs/readme.sh

# As after the installation of Debian, and nothing of the parts before.
is_fresh()
{
	local name
	dpkg -P gpuarb libgpuarb0
	rm -rf /etc/gpuarb "${rule:-}"
	mkdir -p "$dir/debs/gpuarb" "$home" && cp /opt/debs/*.deb "$dir/debs" || return
	for name in train serve robot; do
		printf '#!/bin/sh\nexec sleep infinity\n' >"$home/$name"
	done
	chmod 755 "$home"/*
	chown -R alice "$home"
	[ ! -e /usr/bin/gpuarbctl ]
}

# alike: lines as they are compared. Numbers of leases and processes, and ages, differ.
alike()
{
	sed -E 's/ +/ /g; s/leases? [0-9]+(, [0-9]+)*/lease N/g; s/^ ?[0-9]+ /N /; s/ $//
		s/alice [0-9]+ /alice PID /; s/\b[0-9]+(s|min|h)\b/AGE/'
}

# shows OUTPUT: the file says has these lines in this order; "..." stands for any others.
shows()
{
	local line said
	alike <"$dir/says" >"$dir/alike"
	while IFS= read -r line; do
		case $line in '' | ...) continue ;; esac
		while IFS= read -r said <&9 || { echo "no line «$line» in:"; cat "$dir/says"; return 1; }; do
			[ "$said" != "$line" ] || break
		done
	done 9<"$dir/alike" < <(alike <<<"$1")
}

# stays NAME COMMAND OUTPUT: alice starts it in the background, and reads as many lines as are shown.
stays()
{
	local line fd n
	rm -f "$dir/$1"
	mkfifo "$dir/$1"
	setpriv --reuid=alice --regid=alice --init-groups env -C "$home" bash -c "exec ${2% &}" \
		>"$dir/$1" 2>&1 </dev/null &
	client[$1]=$!
	exec {fd}<"$dir/$1"
	for ((n = $(printf %s "$3" | wc -l); n > 0; n--)); do
		read -r line <&"$fd" && echo "$line"
	done >"$dir/says"
}

# types COMMAND OUTPUT: whoever has the right for the command.
types()
{
	local command=${1//\/tmp\/gpuarb\//\/etc\/gpuarb\/} who="as alice env -C $home" name=${1##*./}
	case $command in
	'sudo apt-get build-dep'* | dpkg-buildpackage*) return 0 ;; # tests/system/package has done it
	'sudo '*)
		command=${command#sudo }
		who="env -C $dir/debs/gpuarb"
		;;
	*/etc/gpuarb/* | 'gpuarbctl reload') who='' command=${command//'$(id -un)'/alice} ;;
	*' &')
		stays "${name% &}" "$command" "$2" && shows "$2"
		return
		;;
	esac
	# shellcheck disable=SC2086 # a command
	$who bash -c "$command" >"$dir/says" 2>&1 </dev/null
	case $? in
	0) ;;
	3) [[ $command = 'gpuarbctl plan '* ]] ;;
	*) false ;;
	esac && shows "$2" && return
	echo "$command: said"
	cat "$dir/says"
	return 1
}

# types_section NAME N: has at least N commands.
types_section()
{
	local command output n=0
	while IFS= read -r -d '' command && IFS= read -r -d '' output; do
		types "$command" "$output" || return
		n=$((n + 1))
	done < <(readme_commands "$readme" "$1")
	[ "$n" -ge "$2" ] || { echo "$1 has $n commands"; return 1; }
}

installs_as_readme_says()
{
	types_section Install 3 && fails 0 'found none on this machine' as alice gpuarbctl || return
	printf '[daemon]\nbackend = simulated\n' >"$settings"
	systemctl restart gpuarbd && fails 0 'No leases' as alice gpuarbctl
}

# ---- 2: refusals ---------------------------------------------------------------------------------

# What a refusal offers is typed, too.
names_the_holder_and_what_helps()
{
	local option
	fails 3 'serve, besteffort of alice, 15 CUs.*, for [0-9]*[smh]' as bob gpuarbctl reserve --cus=50 || return
	option=$(grep -o -e '--cus=[0-9]*' "$dir/says" | head -n 1)
	grep -e '--wait ' "$dir/says" && grep 'gpuarbctl plan' "$dir/says" && [ -n "$option" ] &&
		fails 0 granted as bob gpuarbctl plan "$option" &&
		same "$(as bob gpuarbctl plan --cus=50 --wait --json | jq -r .verdict)" waiting &&
		fails 3 'would fit if' as bob gpuarbctl plan --cus=50
}

# ---- 1: policies -----------------------------------------------------------------------------------

begins_with_a_policy()
{
	fails 0 '^match-group = adm' as bob gpuarbctl config init lab &&
		fails 4 'ermission denied' as bob gpuarbctl config init lab --yes &&
		[ ! -e /etc/gpuarb/tenants.d/50-lab.conf ] || return
	usermod -a -G adm bob
	gpuarbctl config init lab --yes && gpuarbctl config check && gpuarbctl reload &&
		same "$(as bob gpuarbctl plan --class=guaranteed --cus=1 --json | jq -r .verdict)" granted &&
		fails 3 'staff' as carol gpuarbctl plan --class=guaranteed --cus=1 --tenant=staff
	local status=$?
	gpasswd -d bob adm
	rm /etc/gpuarb/tenants.d/50-lab.conf && gpuarbctl reload && return "$status"
}

# policy_of UNIT: the tenant in the comment of an example.
policy_of() { sed -n 's/^#\t//p' "$examples/units/$1.service"; }

is_leased_as_its_tenant()
{
	gpuarbctl list --json | jq -e --arg name "$1" 'any(.tenant == $name and .state == "granted" and
		.owner.unit == $name + ".service")'
}

# gpuarbctl stands for a program that uses libgpuarb. Which program another user runs cannot be read here.
runs_example_units()
{
	local unit
	cp "$examples"/units/*.service /etc/systemd/system
	for unit in train speech; do cp "$home/train" "/usr/local/bin/$unit"; done
	cp /usr/bin/gpuarbctl /usr/local/bin/serve
	sed -i '/^ExecStart=/s/$/ reserve --class=guaranteed --cus=4/' /etc/systemd/system/serve.service
	useradd --system train
	useradd --system serve
	groupadd --system gpu-services
	getent group render >/dev/null || groupadd --system render # systemd-udevd has it
	# The bus refuses users without a name. Where nothing names a dynamic user, there is a user for it.
	compgen -G '/usr/lib/*/libnss_systemd.so.2' || useradd --system dynamic
	for unit in train serve dynamic; do policy_of "$unit"; done |
		sed 's/^match-executable = .*/match-unit = serve.service/' >"$policy"
	same "$(grep -c '^\[tenant' "$policy")" 3 && gpuarbctl config check && gpuarbctl reload &&
		systemctl daemon-reload && systemctl start train serve dynamic || return
	for unit in train serve dynamic; do soon is_leased_as_its_tenant "$unit" || return; done
	systemctl stop train serve dynamic && soon no_leases && rm "$policy" && gpuarbctl reload
}

# ---- 3: the configuration ------------------------------------------------------------------

fails_to_start_with_a_reason()
{
	printf '[daemon]\nbackend = simulated\nsimulate = radeon-viii\n' >"$settings"
	systemctl stop gpuarbd
	fails 5 'passwd 4711' setpriv --reuid=4711 --regid=4711 --clear-groups gpuarbctl &&
		fails 5 'radeon-viii' as alice gpuarbctl &&
		fails 125 'radeon-viii' as alice gpuarbctl run -- true &&
		fails 6 'radeon-viii' gpuarbctl config check || return
	printf '[daemon]\nbackend = simulated\n' >"$settings"
	systemctl stop gpuarbd
	systemctl reset-failed gpuarbd
	fails 0 'No leases' as alice gpuarbctl
}

# ---- 7, and 10 to 13 ------------------------------------------------------------------------------

# The mask of a program in its environment, and of its lease.
shows_the_mask_of_a_program()
{
	local pid mask
	pid=$(gpuarbctl show "$(lease serve)" --json | jq .owner.pid)
	mask=$(tr '\0' '\n' <"/proc/$pid/environ" | sed -n 's/^HSA_CU_MASK=0://p')
	same "$mask" "$(as bob gpuarbctl show "$(lease serve)" --json | jq -r '.partitions[0].cu_mask')"
}

# used FILTER: what jq computes of the usage.
used() { gpuarbctl usage --json | jq "$1"; }

# All users may see it, and it stays over restarts.
accounts_for_users()
{
	local before
	as bob gpuarbctl usage --json | jq -e '.usage |
		any(.user == "alice" and .class == "realtime" and .leases == 1 and .cu_usec > 0) and
		any(.user == "bob" and .refusals > 0)' || return
	before=$(used '[.usage[].leases] | add')
	systemctl restart gpuarbd && [ "$(used '[.usage[].leases] | add')" -ge "$before" ] && [ "$before" -ge 3 ]
}

doctor_repeats_nothing()
{
	gpuarbctl doctor >"$dir/says"
	same "$(sort "$dir/says" | uniq -d)" ''
}

installs_what_readme_names()
{
	local file
	for file in README.md.gz hardware.md.gz examples/follow-lease.py; do
		[ -e "/usr/share/doc/gpuarb/$file" ] || [ -e "/usr/share/doc/gpuarb/${file%.gz}" ] ||
			{ echo "no $file"; return 1; }
	done
	[ -e /usr/share/man/man7/gpuarb-record.7.gz ] && sed 40q "$readme" | grep 'never run on a real GPU' &&
		grep -e '-Dtests=false' "$readme"
}

# ---- 8: numbers --------------------------------------------------------------------------------------

numbers_begin_at_1() { same "$(gpuarbctl list --json | jq -c 'map(.id)')" '[1,2,3]'; }

# numbers_after LAST MOST: alice gets a lease with a number between them. It becomes LAST.
numbers_after()
{
	local id
	hold alice next reserve --name=next --cus=1 || return
	id=$(lease next)
	let_go next
	if [ "$id" -le "$1" ] || [ "$id" -gt "$2" ]; then
		echo "$id is not above $1 and up to $2"
		return 1
	fi
	last=$id
}

# A reboot empties /run, and keeps /var.
numbers_are_never_used_again()
{
	local last=3
	systemctl restart gpuarbd && numbers_after "$last" 64 || return
	systemctl kill -s KILL gpuarbd
	soon eval '[ "$(of_unit ActiveState)" = active ]'
	numbers_after "$last" 128 || return
	systemctl stop gpuarbd
	[ ! -e /run/gpuarb ] && numbers_after "$last" 256 || return
	# The machine loses power, or a kill ends gpuarbd in the same moment.
	systemctl kill -s KILL gpuarbd
	systemctl stop gpuarbd
	rm -rf /run/gpuarb
	systemctl reset-failed gpuarbd
	numbers_after "$last" 4096
}

check 'the machine is fresh' is_fresh
check '1: the commands of README.md install the packages' installs_as_readme_says
check '1: alice runs what README.md shows' types_section Run 4
check '1: the administrator enables the policy of README.md, and alice uses it' types_section Policy 4
check '8: numbers of leases begin at 1' numbers_begin_at_1
check '2: a refusal names the holder, and what it offers works' names_the_holder_and_what_helps
check '10: the program has the mask that show prints' shows_the_mask_of_a_program
check '7: usage accounts for each user, over restarts' accounts_for_users
check '13: doctor repeats nothing' doctor_repeats_nothing
check '11, 12: the packages have the files that README.md names' installs_what_readme_names
check '1: config init begins with a policy' begins_with_a_policy
for name in train serve robot; do let_go "$name"; done
check '1: the example units start with the tenants in their comments' runs_example_units
check '8: numbers are not used again, also not after a reboot' numbers_are_never_used_again
check '3: a gpuarbd that does not start is explained' fails_to_start_with_a_reason
