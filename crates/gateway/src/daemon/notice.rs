//! What a gateway tells whoever runs it, as a sentence and as JSON.

use core::fmt;
use std::net::SocketAddr;

use serde_json::{Value, json};

use tunnel::Event;
use tunnel::path::Address;
use tunnel::session::Rejection;
use tunnel::survey::rate::Finding;

/// What a gateway tells whoever runs it. Its `Display` is a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// The gateway runs: what it is, and whom it waits for.
    Started(String),
    /// No device has the address yet that the carrier listens at.
    NotHere(SocketAddr),
    /// The interface of a path has come or gone.
    Interface {
        /// What the path is called.
        path: String,
        /// Whether it is there now.
        is_there: bool,
    },
    /// What happened in the tunnel to a peer.
    Tunnel {
        /// The peer's name.
        peer: String,
        /// What the path is called that it concerns, if it concerns one of several.
        path: Option<String>,
        /// What happened.
        event: Event,
    },
    /// The peer's name has another address than before, where it is called from now on.
    Resolved {
        /// The name.
        name: String,
        /// Its address.
        address: SocketAddr,
    },
    /// The peer's name cannot be resolved; told now and then only.
    Unresolved {
        /// The name.
        name: String,
        /// Why not.
        reason: String,
        /// Where the peer is called all the same, if an address was known before.
        calling: Option<SocketAddr>,
    },
    /// What is sent to a peer would go into the TUN device itself, by one of its routes.
    Looped {
        /// The peer's name.
        peer: String,
        /// Where it is.
        address: SocketAddr,
        /// The device.
        device: String,
    },
    /// The gateway ends as it was asked to.
    Ended {
        /// Connections that it had split.
        split: usize,
        /// Whether the hosts go on with them by themselves.
        goes_on: bool,
    },
    /// Packets are not led into the device as they should be.
    NotLed(String),
    /// The TUN device of this name was removed, and made again.
    DeviceRestored(String),
    /// The configuration was read again.
    Reloaded {
        /// The keys that have changed and need a restart to take effect.
        needs_restart: Vec<&'static str>,
    },
    /// The configuration was read again and is wrong; the former one stays.
    NotReloaded(String),
    /// The system gives no socket at which the gateway of this device could be asked for its status.
    NotAsked(String),
    /// Somebody wants a session who cannot have one; told now and then only.
    Refused {
        /// Who.
        from: Address,
        /// The peer's name, if it has shown that it is one.
        peer: Option<String>,
        /// Why not.
        reason: Rejection,
    },
}

impl Notice {
    /// Whether something is to be set right, as opposed to what happens in the course of things.
    #[must_use]
    pub const fn is_complaint(&self) -> bool {
        matches!(
            self,
            Self::Refused { .. }
                | Self::NotAsked(_)
                | Self::Unresolved { .. }
                | Self::NotReloaded(_)
                | Self::NotHere(_)
                | Self::Interface { is_there: false, .. }
                | Self::NotLed(_)
                | Self::Looped { .. }
                | Self::Tunnel {
                    event: Event::Silent { .. }
                        | Event::Unanswered { .. }
                        | Event::Unheeded
                        | Event::Rate { finding: Finding::TooFast { .. }, .. }
                        | Event::Line { is_open: false, .. }
                        | Event::Edge(_),
                    ..
                }
        )
    }

    /// The notice as a JSON object for programs; `notice` says which one it is.
    #[must_use]
    pub fn to_json(&self) -> Value {
        match self {
            Self::Tunnel { peer, path, event } => {
                let mut json = event_to_json(peer, event);
                if let Some(path) = path {
                    json["path"] = path.as_str().into();
                }
                json
            }
            Self::Started(what) => json!({ "notice": "started", "what": what }),
            Self::NotHere(address) => json!({ "notice": "address-not-here", "address": address }),
            Self::Interface { path, is_there } => {
                json!({ "notice": "interface", "path": path, "is_there": is_there })
            }
            Self::Resolved { name, address } => {
                json!({ "notice": "resolved", "name": name, "address": address })
            }
            Self::Unresolved { name, reason, calling } => {
                json!({ "notice": "unresolved", "name": name, "reason": reason, "calling": calling })
            }
            Self::Looped { peer, address, device } => {
                json!({ "notice": "looped", "peer": peer, "address": address, "device": device })
            }
            Self::NotLed(reason) => json!({ "notice": "not-led", "reason": reason }),
            Self::Ended { split, goes_on } => {
                json!({ "notice": "ended", "split": split, "goes_on": goes_on })
            }
            Self::DeviceRestored(name) => json!({ "notice": "device-restored", "name": name }),
            Self::Reloaded { needs_restart } => {
                json!({ "notice": "reloaded", "needs_restart": needs_restart })
            }
            Self::NotReloaded(reason) => json!({ "notice": "not-reloaded", "reason": reason }),
            Self::NotAsked(name) => json!({ "notice": "not-asked", "device": name }),
            Self::Refused { from, peer, reason } => {
                json!({ "notice": "refused", "from": from, "peer": peer, "reason": reason.to_string() })
            }
        }
    }
}

/// Bits per second from which on a path is rather a wire than a link, and has no bottleneck that could be found: docs/rate.md.
const NO_LINK: u64 = 500_000_000;

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tunnel { peer, path, event } => {
                write!(f, "{peer}: ")?;
                if let Some(path) = path {
                    write!(f, "{path}: ")?;
                }
                write_event(f, event)
            }
            Self::Started(what) => f.write_str(what),
            Self::NotHere(address) => {
                write!(
                    f,
                    "no device has the address {} yet; the carrier waits for one that has",
                    address.ip()
                )
            }
            Self::Interface { path, is_there: true } => write!(f, "{path}: its interface is there"),
            Self::Interface { path, is_there: false } => {
                write!(f, "{path}: its interface is gone; it is used again once there is one of that name")
            }
            Self::Resolved { name, address } => write!(f, "peer {name} is now at {address}"),
            Self::Unresolved { name, reason, calling: None } => {
                write!(f, "the address of {name} is not known yet: {reason}")
            }
            Self::Unresolved { name, reason, calling: Some(address) } => {
                write!(f, "the address of {name} cannot be found: {reason}; still calling {address}")
            }
            Self::Looped { peer, address, device } => write!(
                f,
                "{peer}: its address {} lies in one of [tun] routes, so what is sent to it would go into {device} itself; allowed are \
                 routes without it, a more specific route to it elsewhere, or \"0.0.0.0/0\" or \"::/0\", which go around it",
                address.ip()
            ),
            Self::NotLed(reason) => write!(f, "routes are not as they should be: {reason}"),
            Self::Ended { split: 0, .. } => f.write_str("ended; no connection was split"),
            Self::Ended { split, goes_on: true } => {
                write!(
                    f,
                    "ended; the hosts go on with {split} connections by themselves, since ack = \"end-to-end\""
                )
            }
            Self::Ended { split, goes_on: false } => {
                write!(f, "ended; {split} connections that were split are broken, and their hosts were told")
            }
            Self::DeviceRestored(name) => write!(f, "{name} was removed, and has been created again"),
            Self::Reloaded { needs_restart } => {
                f.write_str("configuration reloaded")?;
                if needs_restart.is_empty() {
                    return Ok(());
                }
                write!(f, "; these changes need a restart: {}", needs_restart.join(", "))
            }
            Self::NotReloaded(reason) => write!(f, "{reason}; the previous configuration stays in effect"),
            Self::NotAsked(name) => {
                write!(f, "`longhaul gateway status` cannot show {name}: the system gives no socket for it")
            }
            Self::Refused { from, peer, reason } => {
                if let Some(peer) = peer {
                    write!(f, "{peer}: ")?;
                }
                write!(f, "refused {from}: {reason}; {}", remedy(*reason))
            }
        }
    }
}

/// What whoever runs the gateway can do about a refusal.
const fn remedy(reason: Rejection) -> &'static str {
    match reason {
        Rejection::UnknownPeer(_) => "if it should be one, add it with `longhaul peer add` or as a [[peer]]",
        Rejection::Disagreement(_) => "both ends need the same protocol",
        _ => "each end needs the other's public key, and both the same pre-shared key, if they have one",
    }
}

fn event_to_json(name: &str, event: &Event) -> Value {
    let mut json = match event {
        Event::Established { peer, restarted } => {
            json!({ "notice": "connected", "address": peer, "restarted": restarted })
        }
        Event::Left { peer } => json!({ "notice": "left", "address": peer }),
        Event::Unanswered { peer, silence } => {
            json!({ "notice": "unanswered", "address": peer, "silence_seconds": silence.as_secs_f64() })
        }
        Event::Silent { peer, silence } => {
            json!({ "notice": "silent", "address": peer, "silence_seconds": silence.as_secs_f64() })
        }
        Event::Unheeded => json!({ "notice": "unheeded" }),
        Event::Rate { finding: Finding::TooFast { measured, queueing, lost }, .. } => json!({
            "notice": "rate-too-high",
            "measured_bits_per_second": measured.as_bps(),
            "queueing_seconds": queueing.as_secs_f64(),
            "lost_percent": lost,
        }),
        Event::Rate { finding: Finding::Found { measured }, .. } => {
            json!({ "notice": "rate-found", "measured_bits_per_second": measured.as_bps() })
        }
        Event::Rate { finding: Finding::TooSlow { measured }, .. } => {
            json!({ "notice": "rate-too-low", "measured_bits_per_second": measured.as_bps() })
        }
        Event::PathMtu { size, .. } => json!({ "notice": "path-mtu", "bytes": size }),
        Event::Line { is_open, .. } => json!({ "notice": "path", "is_heard": is_open }),
        Event::Edge(edge) => json!({ "notice": "edge", "reason": edge.to_string() }),
    };
    json["peer"] = name.into();
    json
}

fn write_event(f: &mut fmt::Formatter<'_>, event: &Event) -> fmt::Result {
    match event {
        Event::Established { peer, restarted: false } => write!(f, "connected to {peer}"),
        Event::Established { peer, restarted: true } => {
            write!(f, "connected to {peer}, which has restarted: the link starts afresh")
        }
        Event::Left { peer } => {
            f.write_str("has ended")?;
            peer.iter().try_for_each(|peer| write!(f, " at {peer}"))?;
            f.write_str("; if it does not come back at once, hosts that want to reach it are told so")
        }
        Event::Unanswered { peer, silence } => {
            f.write_str("no answer")?;
            if let Some(peer) = peer {
                write!(f, " from {peer}")?;
            }
            let seconds = silence.as_nanos() / 1_000_000_000;
            write!(
                f,
                " for {seconds} s: a wrong address, a blocked UDP port, a different key or protocol at the other end, or \
                     no gateway there; if the other end refuses this one, its log says so"
            )
        }
        Event::Silent { peer, silence } => {
            match peer {
                Some(peer) => write!(f, "silent at {peer}")?,
                None => f.write_str("silent")?,
            }
            let seconds = silence.as_nanos() / 1_000_000_000;
            write!(f, ": nothing was heard for {seconds} s; hosts that want to reach it are told so")
        }
        Event::Unheeded => f.write_str(
            "the peer calls but takes up no answer: its pre-shared key is another than the one here, or nothing that is sent from \
             here reaches it",
        ),
        Event::Rate { finding: Finding::TooFast { measured, queueing, lost }, .. } => write!(
            f,
            "the carrier is slower than this end sends: packets waited up to {} ms and {lost} % were lost; set rate to \
                 \"{measured}\", as measured, or to \"auto\"",
            queueing.as_millis()
        ),
        Event::Rate { finding: Finding::Found { measured }, .. } if measured.as_bps() >= NO_LINK => write!(
            f,
            "the path carries {measured}; if nothing on it is slower than these machines, rate = \"max\" is faster"
        ),
        Event::Rate { finding: Finding::Found { measured }, .. } => write!(f, "the path carries {measured}"),
        Event::Rate { finding: Finding::TooSlow { measured }, .. } => {
            write!(f, "the path carries {measured}, more than the configured rate; \"auto\" would use it")
        }
        Event::PathMtu { size, .. } => {
            write!(f, "the path carries packets of at most {size} bytes: frames are shortened to fit")
        }
        Event::Line { is_open: true, .. } => f.write_str("heard over this path, which is used"),
        Event::Line { is_open: false, .. } => {
            f.write_str("not heard over this path any more; what it carried goes over others")
        }
        Event::Edge(edge) => write!(f, "{edge}"),
    }
}
