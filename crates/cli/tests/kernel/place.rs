//! A network namespace for one case, removed however the case ends.

use std::net::{IpAddr, SocketAddr};

use field::stack::Options;
use field::testbed::namespaces::{Namespace, check_namespaces};

use super::case::Case;

/// The kernel's port where it listens, and ours.
pub(crate) const PORT: u16 = 7_000;

pub(crate) struct Place {
    pub(crate) namespace: Namespace,
}

/// Why these tests cannot run here, if they cannot.
pub(crate) fn missing() -> Option<String> {
    check_namespaces(&format!("longhaul-probe-k{}", std::process::id())).err().map(|error| error.to_string())
}

impl Place {
    pub(crate) fn new(case: &Case) -> Result<Self, String> {
        let name = format!("longhaul-k{}-{}", std::process::id(), case.number);
        let place = Self { namespace: Namespace::new(name) };
        place.namespace.add().map_err(|error| error.to_string())?;
        let switch = |on: bool| if on { "1" } else { "0" };
        let kernel = &case.kernel;
        let parameters = [
            ("ipv4/tcp_sack", switch(kernel.sack)),
            ("ipv4/tcp_timestamps", switch(kernel.timestamps)),
            ("ipv4/tcp_window_scaling", switch(kernel.scaling)),
        ];
        place.namespace.set_parameters(&parameters).map_err(|error| error.to_string())?;
        Ok(place)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // Nothing is left to do about one that does not go.
        let _ = self.namespace.delete();
    }
}

/// Our address and the kernel's.
pub(crate) fn addresses(case: &Case) -> [IpAddr; 2] {
    let pair = if case.ipv6 { ["fd79::2", "fd79::1"] } else { ["10.79.0.2", "10.79.0.1"] };
    pair.map(|address| address.parse().expect("an address"))
}

/// Where the kernel is, as seen by us, or we by it.
pub(crate) fn listener(case: &Case) -> SocketAddr {
    let [ours, kernels] = addresses(case);
    SocketAddr::new(if case.we_connect { kernels } else { ours }, PORT)
}

pub(crate) fn stack(case: &Case) -> Options {
    let [ours, _] = addresses(case);
    let kernel = if case.ipv6 { "fd79::1/64" } else { "10.79.0.1/24" };
    Options {
        device: "tcp0".to_owned(),
        mtu: 1500,
        hosts: vec![ours],
        kernel: vec![kernel.parse().expect("a prefix")],
        seed: case.seed,
        impairments: Some(case.impairments.clone()),
    }
}
