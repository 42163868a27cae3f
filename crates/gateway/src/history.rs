//! The last ten minutes of a gateway, as its statuses tell them: rates from counters, and what else is drawn over time.

use std::collections::{BTreeMap, VecDeque};

use serde::Serialize;
use serde_json::Value;

use crate::daemon::Status;

/// Moments that are kept: ten minutes, one a second.
pub const MOMENTS: usize = 600;
/// Peers that are kept of each moment: what a page can show. Of others `longhaul gateway status` tells.
pub const PEERS: usize = 32;

/// How a gateway was doing at a time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Moment {
    /// Seconds since 1970.
    pub at: f64,
    /// The TUN device.
    pub device: String,
    /// Since the gateway's start, in seconds.
    pub uptime: f64,
    /// Bytes that packets and connections take.
    pub memory: u64,
    /// The first [`PEERS`] of them.
    pub peers: Vec<Peer>,
    /// How many there are beyond these.
    pub more: usize,
}

/// How a peer was.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Peer {
    /// Its name.
    pub name: String,
    /// Where it is.
    pub address: String,
    /// `connected`, `silent` or `never`.
    pub state: String,
    /// Since when it is so, in seconds.
    pub state_seconds: f64,
    /// Sent to it since the moment before, in bits per second, headers included.
    pub sent: f64,
    /// Received from it.
    pub received: f64,
    /// What is sent at most now, in bits per second.
    pub rate: Option<f64>,
    /// What the path carries, in bits per second.
    pub carries: Option<f64>,
    /// The part of what was sent that the path lost in the last half-minute.
    pub loss: Option<f64>,
    /// Of the path without queueing, in seconds.
    pub round_trip: Option<f64>,
    /// How long packets wait on the path, in seconds.
    pub queueing: Option<f64>,
    /// Bytes that wait in front of the link.
    pub queued: u64,
    /// Packets dropped from the queues since the gateway's start.
    pub dropped: u64,
    /// Connections of hosts that the proxy has open.
    pub connections: u64,
}

/// What is kept.
#[derive(Debug, Default)]
pub struct History {
    moments: VecDeque<Moment>,
    /// When the last status was made by the gateway's own count, and each peer's bytes sent and received in it.
    before: Option<(f64, BTreeMap<String, [u64; 2]>)>,
}

impl History {
    /// Takes a status that was told at `at`, in seconds since 1970.
    pub fn take(&mut self, status: &Status, at: f64) -> &Moment {
        let uptime = real(status, "/uptime_seconds").unwrap_or_default();
        // Counters of a gateway that was started anew begin at zero.
        let before = self.before.take().filter(|(then, _)| *then < uptime);
        let all = status["peers"].as_array().map(Vec::as_slice).unwrap_or_default();
        let mut counted = BTreeMap::new();
        let peers = all.iter().take(PEERS).map(|peer| {
            let key = text(peer, "/public_key");
            let bytes = ["/traffic/bytes_sent", "/traffic/bytes_received"].map(|path| number(peer, path));
            let was = before.as_ref().and_then(|(then, was)| Some((uptime - then, was.get(&key)?)));
            let per_second = |which: usize| {
                was.map_or(0.0, |(span, was)| bytes[which].saturating_sub(was[which]) as f64 * 8.0 / span)
            };
            let peer = Peer::of(peer, [per_second(0), per_second(1)]);
            counted.insert(key, bytes);
            peer
        });
        let moment = Moment {
            at,
            device: text(status, "/device"),
            uptime,
            memory: number(status, "/memory_bytes"),
            peers: peers.collect(),
            more: all.len().saturating_sub(PEERS),
        };
        self.before = Some((uptime, counted));
        // The clock was set back: what was drawn after now has no place any more.
        if self.moments.back().is_some_and(|last| last.at > at) {
            self.moments.clear();
        }
        if self.moments.len() == MOMENTS {
            self.moments.pop_front();
        }
        self.moments.push_back(moment);
        self.moments.back().unwrap_or_else(|| unreachable!("one was pushed"))
    }

    /// All that is kept, the oldest first.
    pub fn moments(&self) -> impl ExactSizeIterator<Item = &Moment> + DoubleEndedIterator {
        self.moments.iter()
    }
}

impl Peer {
    fn of(peer: &Value, [sent, received]: [f64; 2]) -> Self {
        let of = |path| real(peer, path);
        let queues = ["/queue", "/interactive_queue", "/once_queue"];
        let drops = queues.iter().filter_map(|queue| peer.pointer(queue)?.as_object()).flatten();
        // What is marked passes too.
        let drops = drops
            .filter(|(name, _)| *name != "passed" && *name != "marked")
            .filter_map(|(_, count)| count.as_u64());
        Self {
            name: text(peer, "/name"),
            address: text(peer, "/peer"),
            state: text(peer, "/state"),
            state_seconds: of("/state_seconds").unwrap_or_default(),
            sent,
            received,
            rate: of("/path/rate"),
            carries: of("/path/carries"),
            loss: of("/path/loss"),
            round_trip: of("/path/round_trip_seconds"),
            queueing: of("/path/queueing_seconds"),
            queued: number(peer, "/queued_bytes"),
            dropped: drops.sum(),
            connections: number(peer, "/pep/connections/lan"),
        }
    }
}

fn real(of: &Value, path: &str) -> Option<f64> {
    of.pointer(path)?.as_f64()
}

fn number(of: &Value, path: &str) -> u64 {
    of.pointer(path).and_then(Value::as_u64).unwrap_or_default()
}

fn text(of: &Value, path: &str) -> String {
    of.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn status(uptime: f64, sent: u64, peers: usize) -> Status {
        let peer = |number: usize| {
            json!({
                "name": format!("t{number}"), "public_key": number.to_string(), "state": "connected", "queued_bytes": 9,
                "traffic": { "bytes_sent": sent, "bytes_received": 2 * sent }, "path": { "rate": 5_000_000, "carries": null },
                "queue": { "passed": 100, "dropped-for-bytes": 2 }, "interactive_queue": { "passed": 7, "expired": 1, "marked": 50 },
                "pep": { "connections": { "lan": 3, "link": 4 } },
            })
        };
        json!({ "device": "sat0", "uptime_seconds": uptime, "peers": (0..peers).map(peer).collect::<Vec<_>>() })
    }

    #[test]
    fn rates_follow_from_counters_and_the_gateways_own_time() {
        let mut history = History::default();
        assert_eq!(history.take(&status(10.0, 1000, 1), 500.0).peers[0].sent, 0.0, "nothing came before");
        let peer = history.take(&status(12.0, 3500, 1), 503.0).peers[0].clone();
        assert_eq!((peer.sent, peer.received), (10_000.0, 20_000.0), "in two seconds, not three");
        assert_eq!((peer.dropped, peer.connections, peer.queued), (3, 3, 9));
        assert_eq!((&*peer.name, &*peer.state), ("t0", "connected"));
        assert_eq!((peer.rate, peer.carries, peer.loss), (Some(5e6), None, None));
        assert_eq!(history.take(&status(12.0, 4000, 1), 503.5).peers[0].sent, 0.0, "no time has passed");
        let again = history.take(&status(1.0, 10, 1), 504.0);
        assert_eq!(again.peers[0].sent, 0.0, "the gateway was started anew");
        let next = history.take(&status(2.0, 135, 1), 505.0);
        assert_eq!(next.peers[0].sent, 1000.0);
    }

    #[test]
    fn a_clock_that_is_set_back_begins_anew() {
        let mut history = History::default();
        [100.0, 101.0, 40.0, 41.0].into_iter().for_each(|at| _ = history.take(&status(at, 0, 1), at));
        assert_eq!(history.moments().map(|moment| moment.at).collect::<Vec<_>>(), [40.0, 41.0]);
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let mut history = History::default();
        for second in 0..MOMENTS + 5 {
            history.take(&status(second as f64, 0, PEERS + 3), second as f64);
        }
        assert_eq!(history.moments().len(), MOMENTS);
        let last = history.moments().next_back().unwrap();
        assert_eq!((last.peers.len(), last.more, last.at), (PEERS, 3, (MOMENTS + 4) as f64));
        assert_eq!(history.moments().next().unwrap().at, 5.0);
    }
}
