//! What a configuration would meet on this host: what would keep a gateway from working, what its operator should know, and what is as it
//! should be.

mod call;
mod firewall;
mod host;

use core::fmt;
use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;

use base::Prefix;
use serde_json::Value;

use crate::config::{Carrier, Config, WhenDown};
use crate::daemon::Status;
use crate::daemon::query::{self, Asked};
use crate::privileges;
use crate::routing::{self, Routing, Way};

/// One thing that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finding {
    /// The gateway would not start, or carry nothing.
    Fault(String),
    /// It may not do what is expected of it.
    Advice(String),
    /// As it should be.
    Good(String),
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fault(text) | Self::Advice(text) | Self::Good(text) => f.write_str(text),
        }
    }
}

/// Looks at all that [`examine`] does, and at the kernel, the firewall and the peers: a gateway that runs says how these are, and where none
/// runs they are called. Makes a device for a moment, and changes nothing else.
#[must_use]
pub fn visit(config: &Config) -> Vec<Finding> {
    let mut running = query::running().unwrap_or_default();
    running.retain(|place| place.device() == config.tun.name.as_str());
    let mut found = host::examine(config, !running.is_empty());
    found.extend(firewall::examine(config));
    found.extend(examine(config));
    // A call in the name of a gateway that runs would take its session away.
    if running.is_empty() {
        found.extend(left_behind(config));
        if config.calls_itself().is_none() {
            found.extend(call::examine(config));
        }
        return found;
    }
    for Asked { status, .. } in query::ask(&running) {
        match status {
            Ok(status) => found.extend(told(config, &status)),
            Err(error) => found.push(Finding::Fault(format!(
                "the gateway runs, and does not say how it hears its peers: {error}; ask as root, or as its user"
            ))),
        }
    }
    found
}

/// What a gateway that was killed has left, so that nothing leaves in clear.
fn left_behind(config: &Config) -> Option<Finding> {
    let is_set = Routing::is_set(config.tun.name.as_str()).unwrap_or(false);
    is_set.then(|| {
        Finding::Fault(
            "no gateway runs, and the routes of one that was killed keep what was to go through the tunnel from going anywhere: start it, or \
             for both ip -4 and ip -6: ip rule flush protocol 76; ip route flush table all protocol 76"
                .to_owned(),
        )
    })
}

/// How a gateway that runs hears its peers.
fn told(config: &Config, status: &Status) -> Vec<Finding> {
    let peers = status["peers"].as_array().into_iter().flatten();
    let told = peers.flat_map(|peer| core::iter::once(told_of(config, peer)).chain(silent_paths(peer)));
    told.collect()
}

/// Paths over which a peer is not heard that is heard over others.
fn silent_paths(peer: &Value) -> Vec<Finding> {
    let paths = || peer["paths"].as_array().into_iter().flatten();
    if !paths().any(|path| path["is_open"] == true) {
        return Vec::new();
    }
    let name = |value: &Value| value["name"].as_str().unwrap_or_default().to_owned();
    let silent = paths().filter(|path| path["is_open"] == false);
    let told = |path| {
        Finding::Advice(format!(
            "the gateway runs, but does not hear peer {} over path {}: the path is down, or its interface has no route",
            name(peer),
            name(path)
        ))
    };
    silent.map(told).collect()
}

/// How it hears a peer.
fn told_of(config: &Config, peer: &Value) -> Finding {
    let text = |key: &str| peer[key].as_str().unwrap_or_default();
    let (name, state) = (text("name"), text("state"));
    let since = peer["state_seconds"].as_f64().unwrap_or_default();
    let is_called = config.peers.iter().any(|peer| peer.name() == name && peer.endpoint.is_some());
    match (state, is_called) {
        ("connected", _) => {
            Finding::Good(format!("the gateway runs, and has heard peer {name} for {since:.0} s"))
        }
        ("silent", true) => Finding::Fault(format!(
            "the gateway runs, but has not heard peer {name} for {since:.0} s: the path is down, or the gateway there is"
        )),
        (_, true) => Finding::Fault(format!(
            "the gateway runs, but has never heard peer {name}, which it calls; its log says more, and where none runs the doctor calls it"
        )),
        // It may be switched off.
        ("silent", false) => Finding::Advice(format!(
            "the gateway runs; peer {name}, which is to call, has not been heard for {since:.0} s"
        )),
        (_, false) => Finding::Advice(format!("the gateway runs; peer {name}, which is to call, never has")),
    }
}

/// Looks whether this host has what `config` needs. Changes nothing.
#[must_use]
pub fn examine(config: &Config) -> Vec<Finding> {
    let mut found = Vec::new();
    found.extend(config.calls_itself().map(Finding::Fault));
    found.extend(unknown_user(config));
    found.extend(missing_directory(config));
    found.extend(absent_address(config));
    found.extend(loops(config));
    found.extend(half_tunnel(config));
    found.extend(name_behind_tunnel(config));
    found.extend(no_forwarding(config));
    found.extend(strict_filter(config));
    found
}

fn unknown_user(config: &Config) -> Option<Finding> {
    let user = config.user.as_deref().filter(|user| !privileges::is_user(user))?;
    Some(Finding::Fault(format!(
        "user = \"{user}\": there is no such user; make it with: useradd --system --shell /usr/sbin/nologin {user}"
    )))
}

fn missing_directory(config: &Config) -> Option<Finding> {
    let directory = config.status.as_ref()?.directory();
    (!directory.is_dir()).then(|| {
        let directory = directory.display();
        Finding::Fault(format!(
            "[status] file: there is no directory {directory}; make it, or have systemd make it with RuntimeDirectory="
        ))
    })
}

fn absent_address(config: &Config) -> Option<Finding> {
    let address = config.carriers().iter().find_map(Carrier::absent_address)?.ip();
    Some(Finding::Advice(format!(
        "listen: no device has the address {address} yet; the gateway waits for one that has"
    )))
}

/// Peers to which the carrier's datagrams would go through the tunnel itself.
fn loops(config: &Config) -> Vec<Finding> {
    // What has an interface of its own goes nowhere else.
    let carriers = config.carriers();
    let goes_by_routes = carriers.iter().find_map(|carrier| match carrier {
        Carrier::Udp(udp) if udp.interface.is_none() => Some(udp.listen.port()),
        _ => None,
    });
    let Some(port) = goes_by_routes else { return Vec::new() };
    let port = Some(port).filter(|port| *port > 0);
    let called = config.peers.iter().filter_map(|peer| Some((peer, peer.endpoint.as_ref()?.address()?)));
    let looped = called.filter_map(|(peer, address)| {
        let covers = |network: &&Prefix| network.len > 0 && network.contains(address.ip());
        let network = config.tun.routes.iter().filter(covers).max_by_key(|network| network.len)?;
        // Where a gateway runs already, its own routes are found, which are as long.
        let is_shadowed = Way::to(address, port, true).ok()?.is_none_or(|way| way.matched <= network.len);
        is_shadowed.then(|| {
            Finding::Fault(format!(
                "peer {} at {} lies in routes = \"{network}\": what is sent to it would go into the tunnel itself; allowed are routes \
                 without it, a more specific route to it elsewhere, or \"0.0.0.0/0\" or \"::/0\", which go around it",
                peer.name(),
                address.ip(),
            ))
        })
    });
    looped.collect()
}

/// One family goes through the tunnel, and the other does not though it could leave.
fn half_tunnel(config: &Config) -> Option<Finding> {
    let is_full = |is_v4: bool| {
        config.tun.routes.iter().any(|network| network.len == 0 && network.address.is_ipv4() == is_v4)
    };
    let (other, route, far): (_, _, IpAddr) = match (is_full(true), is_full(false)) {
        (true, false) => ("IPv6", "::/0", Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 1).into()),
        (false, true) => ("IPv4", "0.0.0.0/0", Ipv4Addr::new(1, 0, 0, 1).into()),
        _ => return None,
    };
    Way::to(SocketAddr::new(far, 9), None, false).ok()??;
    Some(Finding::Advice(format!(
        "{other} does not go through the tunnel, and has a way out beside it; add \"{route}\" to routes if it is not meant to"
    )))
}

/// With a full tunnel a name can only be asked for before there is one.
fn name_behind_tunnel(config: &Config) -> Option<Finding> {
    let is_full = config.tun.routes.iter().any(|network| network.len == 0);
    let peer = config.peers.iter().find(|peer| peer.host_name().is_some()).filter(|_| is_full)?;
    let until = match config.tun.when_down {
        WhenDown::Drop => "until its address is known, packets take other routes, perhaps in clear",
        WhenDown::Pass => "until its address is known, packets take other routes",
    };
    Some(Finding::Advice(format!(
        "peer {} is called by name: {until}; an address has no such gap",
        peer.name()
    )))
}

/// Packets of other hosts would end here. What only calls, with all its routes default routes, may be a single host.
fn no_forwarding(config: &Config) -> Option<Finding> {
    let setting = |is_v4: bool| if is_v4 { "net.ipv4.ip_forward" } else { "net.ipv6.conf.all.forwarding" };
    let is_off = |is_v4: &bool| {
        let path = Path::new("/proc/sys").join(setting(*is_v4).replace('.', "/"));
        fs::read_to_string(path).is_ok_and(|text| text.trim() == "0")
    };
    let is_called = is_called(config);
    let own = config.tun.addresses.iter().filter(|_| is_called);
    let networks =
        || config.tun.routes.iter().filter(|network| is_called || network.len > 0).chain(own.clone());
    let has = |is_v4: &bool| networks().any(|network| network.address.is_ipv4() == *is_v4);
    let off: Vec<_> = [true, false].into_iter().filter(has).filter(is_off).map(setting).collect();
    (!off.is_empty()).then(|| {
        let commands: Vec<_> = off.iter().map(|setting| format!("sysctl -w {setting}=1")).collect();
        Finding::Advice(format!(
            "this host forwards nothing for others ({} is 0): whoever comes through the tunnel reaches this host and nothing beyond; if more is \
             wanted: {}",
            off.join(" and "),
            commands.join("; ")
        ))
    })
}

/// Whether a peer calls this end: then it is a hub, or one of two equals.
fn is_called(config: &Config) -> bool {
    config.peers.iter().any(|peer| peer.endpoint.is_none())
}

/// What comes from the tunnel is believed only if it would be sent there (RFC 3704, 2.2), and not all that peers may send would be.
fn strict_filter(config: &Config) -> Option<Finding> {
    let device = config.tun.name.as_str();
    // One that is still to come has what is the default.
    let own = routing::reverse_path_filter(device).or_else(|_| routing::reverse_path_filter("default"));
    // The larger of both counts, and 2 is loose.
    if routing::reverse_path_filter("all").ok()?.max(own.ok()?) != 1 {
        return None;
    }
    let network = unrouted(config)?;
    Some(Finding::Advice(format!(
        "this host's reverse-path filter is strict (rp_filter is 1), and routes has nothing that holds {network}, from where a peer may send: \
         that is dropped; add it to routes, or once the gateway runs: sysctl -w net.ipv4.conf.{device}.rp_filter=2"
    )))
}

/// An IPv4 network of a peer's that no address and no route of the device holds.
fn unrouted(config: &Config) -> Option<Prefix> {
    let routed = |network: &Prefix| {
        let mut known = config.tun.routes.iter().chain(&config.tun.addresses);
        known.any(|known| known.len <= network.len && known.overlaps(*network))
    };
    let allowed = config.peers.iter().flat_map(|peer| &peer.allowed);
    // A peer that may send from anywhere is not expected to.
    let mut networks = allowed.filter(|network| network.address.is_ipv4() && network.len > 0);
    networks.find(|network| !routed(network)).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(top: &str, tun: &str, endpoint: &str) -> Config {
        let text = format!(
            "{top}\n[tun]\nname = \"sat0\"\n{tun}\n[carrier.udp]\nlisten = \"0.0.0.0:51900\"\n[identity]\nprivate-key = \
             \"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\"\n[[peer]]\nname = \"hub\"\npublic-key = \
             \"hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo=\"\nendpoint = \"{endpoint}\"\n"
        );
        Config::parse("site.toml", &text).unwrap()
    }

    fn faults(config: &Config) -> Vec<String> {
        let faults = examine(config).into_iter().filter(|finding| matches!(finding, Finding::Fault(_)));
        faults.map(|finding| finding.to_string()).collect()
    }

    #[test]
    fn what_this_host_lacks_is_found() {
        assert!(faults(&config("user = \"root\"", "", "192.0.2.9:51900")).is_empty());
        let found = faults(&config("user = \"no-such-user\"", "", "192.0.2.9:51900"));
        assert!(
            found.len() == 1 && found[0].contains("useradd --system") && found[0].contains("no-such-user")
        );
        let mut site = config("", "", "192.0.2.9:51900");
        let file = Path::new("/no/such/directory/status.json").to_owned();
        site.status = Some(crate::config::Status { file, interval: base::Duration::from_secs(1) });
        let found = faults(&site);
        assert!(found.len() == 1 && found[0].contains("/no/such/directory"), "{found:?}");
    }

    /// The way to the loopback address is a route of 32 bits in the kernel's own table.
    #[test]
    fn a_route_over_the_peer_is_found_unless_its_own_is_longer() {
        let routes = |routes: &str| faults(&config("", &format!("routes = [{routes}]"), "192.0.2.9:51900"));
        let found = routes("\"10.0.0.0/8\", \"192.0.2.0/24\"");
        assert!(
            found.len() == 1 && found[0].contains("peer hub at 192.0.2.9 lies in routes = \"192.0.2.0/24\"")
        );
        assert!(routes("\"0.0.0.0/0\", \"10.0.0.0/8\"").is_empty());
        assert!(faults(&config("", "routes = [\"127.0.0.0/8\"]", "127.0.0.1:51901")).is_empty());
    }

    #[test]
    fn a_name_beyond_a_full_tunnel_is_told() {
        let told = |routes: &str, endpoint: &str| {
            let found = examine(&config("", &format!("routes = [{routes}]"), endpoint));
            found.iter().any(|finding| finding.to_string().contains("is called by name"))
        };
        assert!(told("\"0.0.0.0/0\"", "hub.example.org:1") && !told("\"0.0.0.0/0\"", "192.0.2.9:1"));
        assert!(!told("\"10.0.0.0/8\"", "hub.example.org:1"));
    }

    #[test]
    fn a_network_of_a_peer_without_a_route_is_found() {
        let of = |tun: &str, allowed: &str| {
            let mut text = config("", tun, "192.0.2.9:51900");
            text.peers[0].allowed = allowed.split(' ').map(|prefix| prefix.parse().unwrap()).collect();
            unrouted(&text).map(|network| network.to_string())
        };
        let tun = "addresses = [\"10.77.0.1/24\"]\nroutes = [\"10.8.0.0/16\"]";
        assert_eq!(of(tun, "10.77.0.2/32 10.8.7.0/24 fd00::/64 0.0.0.0/0"), None);
        assert_eq!(of(tun, "10.77.0.2/32 10.9.0.0/24").as_deref(), Some("10.9.0.0/24"));
        assert_eq!(of(tun, "10.0.0.0/8").as_deref(), Some("10.0.0.0/8"), "a part of it has none");
    }
}
