# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
#
# readme_commands FILE SECTION: for each command in the text blocks of that section of README.md, the command
# with its lines as one word, a NUL, the output that is shown with it, and a NUL. Leaves out the examples that
# have a machine of their own.
readme_commands()
{
	awk -v section="## $2" '
		function finish() {
			if (command != "") printf "%s%c%s%c", command, 0, output, 0
			command = output = ""
		}
		/^<!-- example: / { other = !/ end / }
		/^## / { within = $0 == section }
		/^```/ { text = !text; here = 0; finish() }
		!within || other || !text || /^```/ { next }
		here { command = command "\n" $0; here = !/^END$/; next }
		/^\$ / { finish(); command = substr($0, 3); here = / <<END$/; next }
		command != "" { output = output $0 "\n" }' "$1"
}
