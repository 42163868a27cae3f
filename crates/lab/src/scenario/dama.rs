//! Bandwidth on demand in a scenario: whether it makes sense, and the networks that terminals share.

use core::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use base::{Duration, Rate};
use channel::Encapsulation;
use channel::dama::{self, Control, Slots};
use channel::{duplex, line};
use link::Protocol;

use super::check::{Nonsense, nonsense};
use super::{Framing, Link, Scenario};
use crate::node::{FrameCost, LinkEnd};

impl Scenario {
    /// Looks for what the types could not refuse.
    pub(super) fn check_dama(&self) -> Result<(), Nonsense> {
        for (name, network) in &self.dama {
            if !(SHORTEST_SUPERFRAME..=LONGEST_SUPERFRAME).contains(&network.superframe) {
                let message = format!(
                    "network \"{name}\" has superframes of {}; allowed are 1 ms to 60 s",
                    network.superframe
                );
                return nonsense("superframe", message);
            }
            if network.capacity.is_some_and(|capacity| capacity.as_bps() == 0) {
                let message =
                    format!("network \"{name}\" has a capacity of 0 bit/s; allowed are 1 bit/s or more");
                return nonsense("capacity", message);
            }
            if self.members(name).next().is_none() {
                return nonsense(name, format!("no link's dama names network \"{name}\""));
            }
        }
        for (name, link) in &self.link {
            let is_wire = link.protocol.is_none() && link.dama.is_none();
            let encapsulated = link.encapsulation(true).or(link.encapsulation(false));
            if encapsulated.is_some() && (is_wire || link.framing != Framing::Ideal) {
                let message = format!(
                    "link \"{name}\" has an encapsulation, which needs a protocol and framing = \"ideal\"; allowed is that, or no encapsulation"
                );
                return nonsense("encapsulation", message);
            }
            if let Some(dama) = &link.dama {
                self.check_terminal(name, link, dama)?;
            }
        }
        for (name, network) in &self.dama {
            let constant: u64 = self.members(name).map(|(_, dama)| dama.cra.as_bps()).sum();
            let capacity = self.capacity(name, network);
            if constant > capacity.as_bps() {
                let constant = Rate::from_bps(constant);
                return nonsense(
                    "cra",
                    format!(
                        "the terminals of network \"{name}\" have {constant} of cra in all; allowed are up to {capacity}"
                    ),
                );
            }
        }
        Ok(())
    }

    fn check_terminal(&self, name: &str, link: &Link, dama: &dama::Config) -> Result<(), Nonsense> {
        if link.protocol.is_none() {
            let message = format!(
                "link \"{name}\" has dama but no protocol; allowed is any protocol, such as \"plain\""
            );
            return nonsense("dama", message);
        }
        if !link.channel.rate_changes.is_empty() {
            let message =
                format!("link \"{name}\" has both dama and rate-changes; allowed is only one of them");
            return nonsense("rate-changes", message);
        }
        if !dama.is_served() {
            let message = format!(
                "link \"{name}\" has dama, but requests no capacity; allowed are vbdc = true, rbdc or cra"
            );
            return nonsense("dama", message);
        }
        let rate = link.up_rate();
        for (key, value) in [("rbdc", dama.rbdc), ("cra", dama.cra)] {
            if value > rate {
                let message =
                    format!("link \"{name}\" has {key} = \"{value}\"; allowed are up to the line's {rate}");
                return nonsense(&value.to_string(), message);
            }
        }
        let cell = link.terminal_encapsulation();
        let packet = self.tcp.mss.map_or(0, |mss| usize::from(mss) + TCP_IP_HEADERS);
        let longest = cell.payload_for(LONGEST_PACKET.max(packet) + LONGEST_TRAILER);
        if dama.mac_buffer.0 < longest {
            let message = format!(
                "link \"{name}\" has a mac-buffer of {}; allowed are {longest} B, for a long packet, or more",
                dama.mac_buffer
            );
            return nonsense("mac-buffer", message);
        }
        let Some(network) = &dama.network else { return Ok(()) };
        if !self.dama.contains_key(network) {
            let known = self.dama.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
            let message =
                format!("link \"{name}\" is in network \"{network}\"; allowed are those of [dama]: {known}");
            return nonsense(network, message);
        }
        let others = self
            .members(network)
            .find(|(other, _)| other.terminal_encapsulation().cell_bits() != cell.cell_bits());
        match others {
            Some(_) => nonsense(
                network,
                format!(
                    "the terminals of network \"{network}\" have cells of different lengths; allowed is one length for all"
                ),
            ),
            None => Ok(()),
        }
    }

    /// The links in a network, with what they say of it.
    fn members<'a>(&'a self, network: &'a str) -> impl Iterator<Item = (&'a Link, &'a dama::Config)> {
        let links = self.link.values().filter_map(|link| Some((link, link.dama.as_ref()?)));
        links.filter(move |(_, dama)| dama.network.as_deref() == Some(network))
    }

    /// The line over one of a link's channels towards the terminal, or from it with the most that the terminal can be granted.
    pub(crate) fn line(&self, link: &Link, channel: &duplex::Config, towards: bool) -> line::Config {
        match towards {
            true => channel.down(),
            // Such a link has but one channel.
            false if link.dama.is_some() => line::Config { rate: self.most_granted(link), ..channel.up() },
            false => channel.up(),
        }
    }

    /// A link's lines in one direction.
    pub(crate) fn lines(&self, link: &Link, towards: bool) -> impl Iterator<Item = line::Config> {
        link.channels().map(move |channel| self.line(link, channel, towards))
    }

    /// The most that a link's terminal can be granted; without bandwidth on demand its line's rate.
    fn most_granted(&self, link: &Link) -> Rate {
        let Some(dama) = &link.dama else { return link.up_rate() };
        let network = dama.network.as_deref().and_then(|name| Some((name, self.dama.get(name)?)));
        let shared = network.map_or(Rate::from_bps(u64::MAX), |(name, network)| self.capacity(name, network));
        let asked = if dama.vbdc { u64::MAX } else { dama.cra.as_bps().saturating_add(dama.rbdc.as_bps()) };
        link.up_rate().min(shared).min(Rate::from_bps(asked))
    }

    fn capacity(&self, name: &str, network: &dama::NetworkConfig) -> Rate {
        let lines = || self.members(name).map(|(link, _)| link.up_rate().as_bps()).sum();
        network.capacity.unwrap_or_else(|| Rate::from_bps(lines()))
    }
}

impl Link {
    /// What a frame costs on the line towards the terminal, or from it.
    pub(crate) fn frame_cost(&self, towards: bool) -> FrameCost {
        let framing = FrameCost::Framing(Protocol::FRAMING_BITS);
        self.encapsulation(towards).map_or(framing, FrameCost::Encapsulated)
    }

    fn up_rate(&self) -> Rate {
        self.channel.up_rate.unwrap_or(self.channel.rate)
    }

    fn terminal_encapsulation(&self) -> Encapsulation {
        self.encapsulation(false).unwrap_or(Encapsulation::Aal5)
    }
}

/// The control centres of a scenario's networks.
#[derive(Debug)]
pub(crate) struct Networks<'a> {
    named: BTreeMap<&'a str, (Rc<RefCell<Control>>, Slots)>,
}

impl<'a> Networks<'a> {
    /// Those that the scenario names.
    pub(crate) fn new(scenario: &'a Scenario) -> Self {
        let named = scenario.dama.iter().filter_map(|(name, network)| {
            let (link, _) = scenario.members(name).next()?;
            let cell_bits = link.terminal_encapsulation().cell_bits();
            let slots = Slots::new(scenario.capacity(name, network), cell_bits, network.superframe);
            Some((name.as_str(), (Rc::new(RefCell::new(Control::new(slots, network.processing))), slots)))
        });
        Self { named: named.collect() }
    }

    /// The terminal's end of a link, which sends by bandwidth on demand if the link has that.
    pub(crate) fn join(&self, link: &Link, end: LinkEnd) -> LinkEnd {
        let Some(dama) = &link.dama else { return end };
        let encapsulation = link.terminal_encapsulation();
        let network = dama.network.as_deref().and_then(|name| self.named.get(name));
        let (control, slots) = network.map_or_else(
            || {
                let alone = dama::NetworkConfig::default();
                let slots = Slots::new(end.line().rate(), encapsulation.cell_bits(), alone.superframe);
                (Rc::new(RefCell::new(Control::new(slots, alone.processing))), slots)
            },
            |(control, slots)| (Rc::clone(control), slots.at_rate(end.line().rate())),
        );
        let delay = end.line().delay();
        end.behind(dama::Terminal::join(control, dama.clone(), encapsulation, slots, delay))
    }
}

/// Ours: shorter ones are those of no system.
const SHORTEST_SUPERFRAME: Duration = Duration::from_millis(1);
const LONGEST_SUPERFRAME: Duration = Duration::from_secs(60);

/// Bytes. Ours: what any buffer must hold, since without flow control a frame that it has no room for even when empty never leaves.
const LONGEST_PACKET: usize = 1500;
const TCP_IP_HEADERS: usize = 60;
/// What a protocol adds to a packet in a frame. Ours: more than any does when it has little to report.
const LONGEST_TRAILER: usize = 100;
