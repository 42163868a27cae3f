//! What an end of a tunnel found out about its path, over time.

use ::tunnel::{Event, Tunnel};
use base::{Duration, Instant};

/// Samples of an end of a tunnel, a few each second, and what it told.
#[derive(Clone, Debug, Default)]
pub struct TunnelTrace {
    /// In the order of time.
    pub samples: Vec<TunnelSample>,
    /// What was told, and when.
    pub events: Vec<(Instant, Event)>,
}

/// What was known at an instant. Rates are in bits per second on the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TunnelSample {
    /// When.
    pub at: Instant,
    /// The rate that datagrams left at; `None` without a limit.
    pub rate: Option<u64>,
    /// What the path carried.
    pub capacity: Option<u64>,
    /// How long the newest stamp waited on the path.
    pub queueing: Duration,
    /// Bytes of the longest packet.
    pub mtu: Option<usize>,
}

/// Between two samples.
const INTERVAL: Duration = Duration::from_millis(100);

impl TunnelTrace {
    /// Whether it is time for a sample.
    pub(crate) fn is_due(&self, now: Instant) -> bool {
        self.samples.last().is_none_or(|last| now >= last.at + INTERVAL)
    }

    pub(crate) fn note(&mut self, now: Instant, tunnel: &Tunnel) {
        let survey = tunnel.survey();
        self.samples.push(TunnelSample {
            at: now,
            rate: tunnel.rate().map(base::Rate::as_bps),
            capacity: survey.rate_controller.capacity().map(base::Rate::as_bps),
            queueing: survey.rate_controller.queueing(),
            mtu: survey.mtu.as_ref().map(::tunnel::survey::mtu::PathMtu::size),
        });
    }
}
