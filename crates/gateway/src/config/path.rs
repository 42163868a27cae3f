//! Several ways to the peers at once: a `[[path]]` each.

use std::net::{IpAddr, SocketAddr};

use base::Rate;
use link::{Treatment, Treatments, When};
use schemars::JsonSchema;
use serde::Deserialize;
use tunnel::config::{Complaint, Link, LinkRate, Place, Usage, Way};
use tunnel::path::{Address, MOST_CARRIERS};

use super::{Carrier, Config, InterfaceName, PeerName, Udp};

/// One of several ways to the peers: a satellite terminal, a modem. All carry the same link at once, and what one loses another brings.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Path {
    /// What the log calls it. Default: its interface, or `path-1` and so on.
    #[serde(default)]
    name: Option<PeerName>,
    /// Network interface that its datagrams leave and come over, whatever routes say. It may come and go.
    #[serde(default)]
    pub interface: Option<InterfaceName>,
    /// Our address on it. Default: that of its carrier.
    #[serde(default)]
    pub address: Option<IpAddr>,
    /// What carries it, where that is something else than `[carrier]`.
    #[serde(default)]
    carrier: Option<Carrier>,
    /// Where the peer is called over it. Default: where it is called anyway. For a gateway with one peer.
    #[serde(default)]
    pub endpoint: Option<SocketAddr>,
    /// How fast this end sends over it, with all headers. Default: `auto`, which measures it; on a serial line, the line's rate.
    #[serde(default)]
    rate: Option<LinkRate>,
    /// Whether it is used only while the others have been too little for what waits for some time, or are silent: it costs something. The peer
    /// is told so.
    #[serde(default)]
    metered: bool,
    /// Whether it is used only while all others are silent. The peer is told so.
    #[serde(default)]
    backup: bool,
    /// What may go over it: `"once"`, `"interactive"` and `"reliable"`. Default: everything. The peer is told so.
    #[serde(default = "everything")]
    classes: Vec<Treatment>,
}

fn everything() -> Vec<Treatment> {
    Treatment::ALL.to_vec()
}

/// Where in the file a path's values lie that are checked together.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub(super) struct Places {
    name: Option<Place>,
    interface: Option<Place>,
    address: Option<Place>,
    endpoint: Option<Place>,
    rate: Option<Place>,
    backup: Option<Place>,
    classes: Option<Place>,
}

impl Path {
    /// What carries it, where `usual` does unless it says otherwise.
    fn carrier(&self, usual: &Carrier) -> Carrier {
        let mut carrier = self.carrier.clone().unwrap_or_else(|| usual.clone());
        if let Carrier::Udp(Udp { listen, interface, .. }) = &mut carrier {
            self.address.into_iter().for_each(|address| listen.set_ip(address));
            *interface = self.interface.clone().or(interface.take());
        }
        carrier
    }

    fn rate(&self, usual: LinkRate, carrier: &Carrier) -> LinkRate {
        match carrier {
            _ if self.rate.is_some_and(|rate| rate != LinkRate::Auto) => self.rate.unwrap_or_default(),
            Carrier::Serial(serial) => LinkRate::Fixed(serial.line_rate()),
            Carrier::Udp(_) => self.rate.unwrap_or(usual),
        }
    }
}

impl Config {
    /// What carries datagrams, over one path or several.
    #[must_use]
    pub fn carriers(&self) -> Vec<Carrier> {
        match &self.paths[..] {
            [] => vec![self.carrier.clone()],
            paths => paths.iter().map(|path| path.carrier(&self.carrier)).collect(),
        }
    }

    /// What paths are called, in their order; none where there is but one.
    #[must_use]
    pub fn path_names(&self) -> Vec<String> {
        let name = |(number, path): (usize, &Path)| match (&path.name, &path.interface) {
            (Some(name), _) => name.as_str().to_owned(),
            (None, Some(interface)) => interface.as_str().to_owned(),
            (None, None) => format!("path-{}", number + 1),
        };
        self.paths.iter().enumerate().map(name).collect()
    }

    /// What the path of this number is called, which may be the peer's and not known here.
    #[must_use]
    pub fn path_name(&self, number: usize) -> String {
        self.path_names().get(number).cloned().unwrap_or_else(|| format!("path-{}", number + 1))
    }

    /// The ways to a peer that is called at `endpoint`, and sent to at the rate of its link, unless a path has its own.
    pub(super) fn ways(&self, rate: LinkRate, endpoint: Option<SocketAddr>) -> Vec<Way> {
        // What the first has of its own is not for the others.
        let usual = endpoint.filter(|_| self.paths.first().is_some_and(|path| path.endpoint.is_some()));
        let way = |(path, carrier): (&Path, Carrier)| Way {
            rate: path.rate(rate, &carrier),
            usage: Usage {
                when: When::of(path.metered, path.backup),
                carries: Treatments::of(&path.classes),
            },
            carrier: carrier.limits(),
            address: match carrier {
                Carrier::Udp(_) => path.endpoint.or(usual).map(Address::Udp),
                Carrier::Serial(_) => Some(Address::Serial),
            },
        };
        self.paths.iter().zip(self.carriers()).map(way).collect()
    }

    /// Refuses paths that cannot be beside each other.
    pub(super) fn check_paths(&self, places: &[Places]) -> Result<(), Complaint> {
        let count = self.paths.len();
        if count > MOST_CARRIERS {
            let message = format!("{count} paths; allowed are up to {MOST_CARRIERS}");
            return Err(Complaint::at(places.last().and_then(Places::any), message));
        }
        if count > 1
            && let LinkRate::Fixed(rate) = self.link.rate
            && let Some((_, place)) = self.paths.iter().zip(places).find(|(path, _)| path.rate.is_none())
        {
            let message = format!(
                "[link] has rate = \"{rate}\", but there are {count} paths; allowed is a rate of each path's own, or none in [link]"
            );
            return Err(Complaint::at(place.any(), message));
        }
        self.paths.iter().zip(places).try_for_each(|(path, place)| path.check(place))?;
        self.check_classes(places)?;
        if count > 1 && matches!(self.carriers().first(), Some(Carrier::Serial(_))) {
            let message = "a serial line as the first of several paths; allowed is one behind the first";
            return Err(Complaint::at(places.first().and_then(Places::any), message.to_owned()));
        }
        self.check_distinct_paths(places)
    }

    /// Refuses paths of which none carries some packets while all is well.
    fn check_classes(&self, places: &[Places]) -> Result<(), Complaint> {
        let carried = |treatment: &Treatment| {
            let mut paths = self.paths.iter().filter(|path| !path.backup);
            self.paths.is_empty() || paths.any(|path| path.classes.contains(treatment))
        };
        if Treatment::ALL.iter().all(carried) {
            return Ok(());
        }
        let place = places.iter().find_map(|it| it.classes.as_ref().or(it.backup.as_ref()));
        let message = "some packets have no path but a backup; allowed is for each class a path that is none";
        Err(Complaint::at(place, message.to_owned()))
    }

    /// Refuses endpoints of paths where it is not clear whose they are, or that cannot be reached.
    pub(super) fn check_endpoints(&self, places: &[Places]) -> Result<(), Complaint> {
        let called = self.peers.iter().filter_map(|peer| peer.endpoint.as_ref()?.address());
        let called: Vec<SocketAddr> = called.collect();
        for ((path, carrier), place) in self.paths.iter().zip(self.carriers()).zip(places) {
            let Some(listen) = carrier.listen() else { continue };
            let targets = path.endpoint.map_or_else(|| called.clone(), |endpoint| vec![endpoint]);
            if let Some(target) = targets.iter().find(|target| target.is_ipv4() != listen.is_ipv4()) {
                let message = format!(
                    "{target} cannot be reached from {listen}; allowed is the same address family for both"
                );
                return Err(Complaint::at(place.endpoint.as_ref().or(place.any()), message));
            }
        }
        let mut with = self.paths.iter().zip(places).filter(|(path, _)| path.endpoint.is_some());
        let Some((_, place)) = with.next() else { return Ok(()) };
        let message = match &self.peers[..] {
            [peer] if peer.endpoint.as_ref().is_some_and(|it| it.address().is_some()) => return Ok(()),
            [peer] if peer.endpoint.is_some() => {
                "a path with an endpoint, but the peer is called by its name; allowed is an address for both"
                    .to_owned()
            }
            [_] => {
                "a path with an endpoint, but the peer has none; allowed is none, or an endpoint of the peer"
                    .to_owned()
            }
            peers => format!("a path with an endpoint, but {} peers; allowed is one peer", peers.len()),
        };
        Err(Complaint::at(place.endpoint.as_ref(), message))
    }

    /// Refuses a protocol that goes over one path only.
    pub(super) fn check_several(&self, link: &Link) -> Result<(), Complaint> {
        let (count, protocol) = (self.paths.len(), link.protocol);
        if count < 2 || protocol.capabilities().several_lines {
            return Ok(());
        }
        let name = protocol.name();
        let message = format!("{count} paths, but {name} goes over one; allowed are coded and cotmll");
        Err(Complaint::at(None, message))
    }

    /// Refuses two paths of one name, or over one socket.
    fn check_distinct_paths(&self, places: &[Places]) -> Result<(), Complaint> {
        let (names, carriers) = (self.path_names(), self.carriers());
        for at in 1..names.len() {
            let place = &places[at];
            if names[..at].contains(&names[at]) {
                let message =
                    format!("two paths are called \"{}\"; allowed are names that differ", names[at]);
                return Err(Complaint::at(place.name.as_ref().or(place.any()), message));
            }
            if let Some(other) = carriers[..at].iter().position(|other| other.clashes(&carriers[at])) {
                let message = format!(
                    "paths \"{}\" and \"{}\" both send from {}; allowed are an interface or an address of each path's own",
                    names[other], names[at], carriers[at]
                );
                return Err(Complaint::at(place.any(), message));
            }
        }
        Ok(())
    }
}

impl Path {
    fn check(&self, places: &Places) -> Result<(), Complaint> {
        if self.metered && self.backup {
            let message = "both metered and backup; allowed is one of them";
            return Err(Complaint::at(places.backup.as_ref(), message.to_owned()));
        }
        if self.classes.is_empty() {
            let message = "no classes, so nothing could go over it; allowed are one or more";
            return Err(Complaint::at(places.classes.as_ref(), message.to_owned()));
        }
        if let Some(LinkRate::Fixed(rate)) = self.rate
            && let Some(Carrier::Serial(serial)) = &self.carrier
            && rate > serial.line_rate()
        {
            return Err(Complaint::at(places.rate.as_ref(), too_fast(serial.baud.get(), serial.line_rate())));
        }
        let has_own_place = self.interface.is_some() || self.address.is_some() || self.endpoint.is_some();
        if matches!(self.carrier, Some(Carrier::Serial(_))) && has_own_place {
            let message = "a serial line has no interface, address or endpoint; allowed is none of them";
            return Err(Complaint::at(places.any(), message.to_owned()));
        }
        Ok(())
    }
}

/// What is said of a rate that a serial line does not carry.
pub(super) fn too_fast(baud: u32, limit: Rate) -> String {
    format!("a line with {baud} baud carries less; allowed are rates up to {limit}, or no rate")
}

impl Places {
    /// Where anything of it is.
    fn any(&self) -> Option<&Place> {
        let Self { name, interface, address, endpoint, rate, backup, classes } = self;
        [name, interface, address, endpoint, rate, backup, classes].into_iter().find_map(Option::as_ref)
    }
}
