#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# What debian/ says again, and must say alike: the version, the symbols' versions, and each file
# that is installed in one package. That none of them is missing dh_install sees.
#
#	check-package.sh SOURCE BUILD
set -eu
source=$1
plan=$2/meson-info/intro-install_plan.json
command -v jq >/dev/null || { echo "skipped: there is no jq"; exit 77; }
# Without dpkg-dev meson does not know Debian's: lib64, or lib.
libdir=$(jq -r '.[] | select(.name == "libdir").value' "$2/meson-info/intro-buildoptions.json")
status=0

complain() { echo "$*"; status=1; }

ours=$(sed -n "s/^\tversion: '\(.*\)',/\1/p" "$source/meson.build")
grep -q "^gpuarb ($ours) " "$source/debian/changelog" || complain "debian/changelog has no $ours"
sed 1q "$source/debian/changelog" | grep -q "^gpuarb ($ours) " ||
	complain "debian/changelog begins with another version than meson.build's $ours"

grep '^## ' "$source/CHANGELOG.md" | sed 1q | grep -q "^## $ours - " ||
	complain "CHANGELOG.md begins with another version than meson.build's $ours"

# Of other distributions.
grep -qx "Version: *$ours" "$source/docs/packaging/gpuarb.spec" ||
	complain "docs/packaging/gpuarb.spec has another Version than meson.build's $ours"
grep -qx "pkgver=$ours" "$source/docs/packaging/PKGBUILD" ||
	complain "docs/packaging/PKGBUILD has another pkgver than meson.build's $ours"
grep -qx "  version = \"$ours\";" "$source/docs/packaging/default.nix" ||
	complain "docs/packaging/default.nix has another version than meson.build's $ours"
! command -v nix-instantiate >/dev/null ||
	nix-instantiate --parse "$source/docs/packaging/default.nix" >/dev/null ||
	complain "docs/packaging/default.nix has a syntax error"
image=localhost/gpuarb-exporter:$ours
grep -qF "podman build -t $image " "$source/docs/packaging/oci/Containerfile" ||
	complain "docs/packaging/oci/Containerfile names another image than $image"
grep -qx "Image=$image" "$source/docs/packaging/oci/gpuarb-exporter.container" ||
	complain "docs/packaging/oci/gpuarb-exporter.container names another image than $image"
keys='Description|Requires|After|Image|Network|Notify|ReadOnly|DropCapability|NoNewPrivileges|Volume'
! grep -vnE "^($keys)=.|^\[(Unit|Container)\]\$|^#|^\$" "$source/docs/packaging/oci/gpuarb-exporter.container" ||
	complain "docs/packaging/oci/gpuarb-exporter.container has lines that no quadlet has"
grep -qx "version = \"$ours\"" "$source/libgpuarb/python/pyproject.toml" ||
	complain "libgpuarb/python/pyproject.toml has another version than meson.build's $ours"
for program in daemon/gpuarbd client/gpuarbctl; do
	"$2/$program" --version | grep -qw "$ours" || complain "$program --version does not print meson.build's $ours"
done
for option in $(grep -ohE -- '-D[a-z_]+=' "$source"/docs/packaging/[!o]* | sed 's/^-D//; s/=$//' | sort -u); do
	jq -e --arg name "$option" 'any(.[]; .name == $name)' "$2/meson-info/intro-buildoptions.json" >/dev/null ||
		complain "docs/packaging sets the option $option, which meson_options.txt does not have"
done
bash -n "$source/docs/packaging/PKGBUILD" || complain "docs/packaging/PKGBUILD has a syntax error"

# symbols FILE PACKAGE: each version of the one is a line of the other. A program that is built with a
# package can be installed with that package: no symbol is since a later version.
symbols()
{
	for node in $(sed -n 's/^\(GPUARB_[A-Z0-9_]*\) {$/\1/p' "$source/$1"); do
		grep -q "^ (symver)$node [0-9]" "$source/debian/$2.symbols" ||
			complain "debian/$2.symbols does not say since when there is $node of $1"
	done
	latest=$({ echo "$ours"; sed -n 's/^ .* \([0-9][0-9.]*\)$/\1/p' "$source/debian/$2.symbols"; } | sort -V | tail -n 1)
	[ "$latest" = "$ours" ] || complain "debian/$2.symbols: $latest is later than meson.build's $ours"
}
symbols libgpuarb/gpuarb.sym libgpuarb0
symbols libgpuarb/hip/gpuarb-hip.sym libgpuarb-hip0
symbols libgpuarb/rt/gpuarb-rt.sym libgpuarb-rt0

# Where debian/rules has it installed to.
installed()
{
	jq -r '.[][].destination' "$plan" | sed '
		s,^{bindir},usr/bin,
		s,^{libexecdir},usr/libexec,
		s,^{mandir},usr/share/man,
		s,^{includedir},usr/include,
		s,^{libdir[a-z_]*},usr/lib/TRIPLET,
		s,^{prefix},usr,
		s,^{py_purelib},usr/lib/python3/dist-packages,
		s,^usr/'"$libdir"'/gpuarb/,usr/lib/TRIPLET/gpuarb/,
		s,^lib/systemd/system/,usr/&,
		s,^usr/share/zsh/site-functions/,usr/share/zsh/vendor-completions/,'
}

# owners: each installed path and each package that has it, by the patterns of debian/*.install.
owners()
{
	for list in "$source"/debian/*.install; do
		package=${list##*/}
		while read -r pattern; do
			# shellcheck disable=SC2016 # as it is written
			case $pattern in
			'${env:UNIT_DIR}'*) pattern=usr/lib/systemd/system${pattern#'${env:UNIT_DIR}'} ;;
			esac
			for path in $paths; do
				# shellcheck disable=SC2254 # patterns they are
				case $path in $pattern | $pattern/*) echo "$path ${package%.install}" ;; esac
			done
		done <"$list"
	done
}

paths=$(installed)
[ -n "$paths" ] || complain "$plan names nothing"
wrong=$({ echo "$paths"; owners | sort -u; } | awk '
	NF == 1 { packages[$1] = "" }
	NF == 2 { packages[$1] = packages[$1] " " $2 }
	END { for (path in packages) {
		n = split(packages[path], names, " ")
		if (n == 0) print path " is in no package: it belongs in a file debian/*.install"
		if (n > 1) print path " is in more than one package:" packages[path]
	} }')
[ -z "$wrong" ] || complain "$wrong"
exit $status
