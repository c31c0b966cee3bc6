// SPDX-License-Identifier: LGPL-2.1-or-later

// Reserves 15 CUs of a GPU, and prints what it was granted, or why it was refused. gpuarb.go beside it is
// made of the interface: make-client org.gpuarb.Arbiter1.xml go >gpuarb.go
//
// Build it with: go build. With golang-dbus-dev of Debian instead of a download:
// go mod edit -replace github.com/godbus/dbus/v5=/usr/share/gocode/src/github.com/godbus/dbus
package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/godbus/dbus/v5"
)

const (
	name = "org.gpuarb.Arbiter1"
	root = dbus.ObjectPath("/org/gpuarb/Arbiter1")
)

func connect() (*dbus.Conn, error) {
	if address := os.Getenv("GPUARB_BUS_ADDRESS"); address != "" {
		return dbus.Connect(address)
	}
	return dbus.ConnectSystemBus()
}

func list(bus *dbus.Conn) error {
	objects := map[dbus.ObjectPath]map[string]map[string]dbus.Variant{}
	err := bus.Object(name, root).Call("org.freedesktop.DBus.ObjectManager.GetManagedObjects", 0).Store(&objects)
	if err != nil {
		return err
	}
	for path, interfaces := range objects {
		if _, there := interfaces[name+".Gpu"]; !there {
			continue
		}
		gpu := Gpu{bus.Object(name, path)}
		pci, err := gpu.GetName()
		if err != nil {
			return err
		}
		free, err := gpu.GetCusFree()
		if err != nil {
			return err
		}
		fmt.Printf("%s: %d CUs free\n", pci, free)
	}
	return nil
}

// reserve returns the holder: the lease ends when it is closed, or with the process.
func reserve(bus *dbus.Conn, cus uint32) (dbus.UnixFD, error) {
	wants := []map[string]dbus.Variant{{"cus": dbus.MakeVariant(cus)}}
	options := map[string]dbus.Variant{"name": dbus.MakeVariant("go-client")}
	arbiter := Arbiter{bus.Object(name, root)}
	lease, holder, state, partitions, err := arbiter.Reserve(wants, options)
	if err != nil {
		return -1, err
	}
	fmt.Printf("%s is %s: %d CUs of %v, mask %v\n", lease, state, partitions[0]["cus"].Value(),
		partitions[0]["gpu"].Value(), partitions[0]["cu-mask"].Value())
	return holder, nil
}

func run() error {
	bus, err := connect()
	if err != nil {
		return err
	}
	defer bus.Close()
	if err := list(bus); err != nil {
		return err
	}
	if _, err := reserve(bus, 15); err != nil {
		return err
	}
	return list(bus)
}

func main() {
	err := run()
	var refused dbus.Error
	if errors.As(err, &refused) {
		fmt.Fprintf(os.Stderr, "%s: %v\n", refused.Name, refused.Body)
		os.Exit(3)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
