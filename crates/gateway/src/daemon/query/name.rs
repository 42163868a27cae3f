//! The names of gateways' sockets: `longhaul-gateway/DEVICE/NUMBER`.
//!
//! The number is drawn when the gateway starts. Without it, any user of the machine could listen under a gateway's name before it does,
//! and it could never be asked.

use std::io;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::SocketAddr;

use crate::config::InterfaceName;

/// Where somebody listens as a gateway does.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    device: String,
    number: u64,
}

impl Place {
    /// That of a device's gateway.
    pub(super) fn new(device: &str, number: u64) -> Self {
        Self { device: device.to_owned(), number }
    }

    /// The device that the gateway is said to have.
    #[must_use]
    pub fn device(&self) -> &str {
        &self.device
    }

    pub(super) fn name(&self) -> String {
        format!("{PREFIX}{}/{:016x}", self.device, self.number)
    }

    pub(super) fn address(&self) -> io::Result<SocketAddr> {
        SocketAddr::from_abstract_name(self.name())
    }

    /// Reads a name; `None` if a gateway has no such name.
    fn parse(name: &str) -> Option<Self> {
        let (device, number) = name.strip_prefix(PREFIX)?.split_once('/')?;
        let is_device = InterfaceName::try_from(device.to_owned()).is_ok()
            && device.bytes().all(|byte| byte.is_ascii_graphic());
        let number = u64::from_str_radix(number, 16).ok()?;
        let place = Self::new(device, number);
        (is_device && place.name() == name).then_some(place)
    }
}

/// Where gateways of this thread's network namespace may be asked, by device. Anybody may listen under such a name.
///
/// # Errors
/// The kernel's list cannot be read.
pub fn running() -> io::Result<Vec<Place>> {
    let all = std::fs::read("/proc/thread-self/net/unix")?;
    // Others may have names of any bytes; those of gateways are printable.
    let place = |line: &[u8]| {
        let line = std::str::from_utf8(line).ok()?;
        Place::parse(line.split_whitespace().nth(7)?.strip_prefix('@')?)
    };
    let mut places: Vec<Place> = all.split(|byte| *byte == b'\n').filter_map(place).collect();
    // A connection that is being made is listed beside its listener.
    places.sort_unstable();
    places.dedup();
    Ok(places)
}

/// Before the device's name.
const PREFIX: &str = "longhaul-gateway/";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_written() {
        let place = Place::new("sat0", 0x1f);
        assert_eq!(place.name(), "longhaul-gateway/sat0/000000000000001f");
        assert_eq!(Place::parse(&place.name()), Some(place));
        for wrong in
            ["sat0", "sat0/1f", "sat0/+00000000000001f", "/000000000000001f", "sat0/00000000000000lf"]
        {
            assert_eq!(Place::parse(&format!("{PREFIX}{wrong}")), None, "{wrong}");
        }
        assert_eq!(Place::parse(&format!("{PREFIX}\u{1b}[31m/000000000000001f")), None);
        assert_eq!(Place::parse("sat0/000000000000001f"), None);
    }
}
