// SPDX-License-Identifier: LGPL-2.1-or-later

//! Reserves 15 CUs of a GPU, and prints what it was granted, or why it was refused. gpuarb.rs beside it is
//! made of the interface: make-client org.gpuarb.Arbiter1.xml rust >src/gpuarb.rs

mod gpuarb;

use dbus::arg::{PropMap, RefArg, Variant};
use dbus::blocking::stdintf::org_freedesktop_dbus::ObjectManager;
use dbus::blocking::{Connection, Proxy};
use dbus::channel::{BusType, Channel};
use gpuarb::{Arbiter, Gpu};
use std::time::Duration;

const NAME: &str = "org.gpuarb.Arbiter1";
const ROOT: &str = "/org/gpuarb/Arbiter1";
const TIMEOUT: Duration = Duration::from_secs(25);

fn connect() -> Result<Connection, dbus::Error> {
    let mut channel = match std::env::var("GPUARB_BUS_ADDRESS") {
        Ok(address) => Channel::open_private(&address)?,
        Err(_) => return Channel::get_private(BusType::System).map(Connection::from),
    };
    channel.register()?;
    Ok(Connection::from(channel))
}

fn list(bus: &Connection) -> Result<(), dbus::Error> {
    let objects = Proxy::new(NAME, ROOT, TIMEOUT, bus).get_managed_objects()?;
    for (path, interfaces) in objects {
        if interfaces.contains_key("org.gpuarb.Arbiter1.Gpu") {
            let gpu = Gpu(Proxy::new(NAME, path, TIMEOUT, bus));
            println!("{}: {} CUs free", gpu.get_name()?, gpu.get_cus_free()?);
        }
    }
    Ok(())
}

fn value(value: impl RefArg + 'static) -> Variant<Box<dyn RefArg>> {
    Variant(Box::new(value))
}

fn run() -> Result<(), dbus::Error> {
    let bus = connect()?;
    list(&bus)?;
    let arbiter = Arbiter(Proxy::new(NAME, ROOT, TIMEOUT, &bus));
    let want = PropMap::from([("cus".to_string(), value(15u32))]);
    let options = PropMap::from([("name".to_string(), value("rust-client".to_string()))]);
    // The lease ends when the holder is dropped, or with the process.
    let (lease, _holder, state, partitions) = arbiter.reserve(vec![want], options)?;
    println!(
        "{} is {}: {} CUs of {}, mask {:?}",
        lease,
        state,
        partitions[0]["cus"].as_u64().unwrap_or(0),
        partitions[0]["gpu"].as_str().unwrap_or(""),
        partitions[0]["cu-mask"].0
    );
    list(&bus)
}

fn main() {
    if let Err(error) = run() {
        eprintln!("{}: {}", error.name().unwrap_or(""), error.message().unwrap_or(""));
        std::process::exit(3);
    }
}
