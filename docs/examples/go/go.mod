// SPDX-License-Identifier: LGPL-2.1-or-later
module gpuarb-client

go 1.19

require github.com/godbus/dbus/v5 v5.1.0
