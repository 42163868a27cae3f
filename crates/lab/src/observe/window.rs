//! The congestion windows of a host's connections, and the aggregate windows that they share, at every change.

use core::net::IpAddr;

use base::Instant;
use tcp::ensemble::{EcbState, EcbStatistics};
use tcp::{ConnectionId, Host, State};

/// A connection's window from one change to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowMark {
    /// When it became so.
    pub at: Instant,
    /// Congestion window in bytes, without a recovery scheme's inflation.
    pub cwnd: u64,
    /// Slow start threshold in bytes, if there is one.
    pub ssthresh: Option<u64>,
}

/// One connection's windows, from its first segment until all that it sent is acknowledged.
#[derive(Clone, Debug)]
pub struct Windows {
    /// Local and remote port.
    pub ports: (u16, u16),
    /// Changes, in their order.
    pub marks: Vec<WindowMark>,
    id: ConnectionId,
}

/// An aggregate window from one change to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AggregateMark {
    /// When it became so.
    pub at: Instant,
    /// The aggregate congestion window in bytes.
    pub n_cwnd: u64,
    /// The sum of the members' windows in bytes.
    pub used_cwnd: u64,
    /// The members' slow start threshold in bytes.
    pub n_ssthresh: u64,
    /// Members.
    pub num_connections: u32,
    /// Losses that members found by duplicate acknowledgements so far.
    pub losses: u64,
    /// Time-outs of members so far.
    pub timeouts: u64,
}

/// The aggregate window towards one destination.
#[derive(Clone, Debug)]
pub struct Aggregate {
    /// The destination.
    pub destination: IpAddr,
    /// Changes, in their order.
    pub marks: Vec<AggregateMark>,
    /// What its control block had counted when it was last seen.
    pub statistics: EcbStatistics,
}

/// Samples a host after everything that can change a window.
#[derive(Clone, Debug, Default)]
pub struct WindowTrace {
    connections: Vec<Windows>,
    aggregates: Vec<Aggregate>,
}

impl WindowTrace {
    /// The connections seen, in the order in which they came.
    #[must_use]
    pub fn connections(&self) -> &[Windows] {
        &self.connections
    }

    /// The aggregates that its connections shared, in the order in which they came; none without sharing.
    #[must_use]
    pub fn aggregates(&self) -> &[Aggregate] {
        &self.aggregates
    }

    /// Notes what has changed.
    pub fn sample(&mut self, now: Instant, host: &Host) {
        for (id, connection) in host.connections() {
            if matches!(connection.state(), State::FinWait2 | State::TimeWait | State::Closed) {
                continue;
            }
            let mark = WindowMark { at: now, cwnd: connection.cwnd(), ssthresh: connection.ssthresh() };
            let known = self.connections.iter_mut().rev().find(|windows| windows.id == id);
            match known {
                None => {
                    let ports = (connection.local().port(), connection.remote().port());
                    self.connections.push(Windows { ports, marks: vec![mark], id });
                }
                Some(windows) => windows.note(mark),
            }
            let destination = connection.remote().ip();
            if !self.aggregates.iter().any(|aggregate| aggregate.destination == destination)
                && let Some(ecb) = host.ensemble().ecb(destination)
            {
                let marks = vec![AggregateMark::new(now, &ecb)];
                self.aggregates.push(Aggregate { destination, marks, statistics: ecb.statistics });
            }
        }
        for aggregate in &mut self.aggregates {
            if let Some(ecb) = host.ensemble().ecb(aggregate.destination) {
                aggregate.note(now, &ecb);
            }
        }
    }
}

impl AggregateMark {
    const fn new(at: Instant, ecb: &EcbState) -> Self {
        Self {
            at,
            n_cwnd: ecb.n_cwnd,
            used_cwnd: ecb.used_cwnd,
            n_ssthresh: ecb.n_ssthresh,
            num_connections: ecb.num_connections,
            losses: ecb.statistics.losses,
            timeouts: ecb.statistics.timeouts,
        }
    }
}

impl Aggregate {
    fn note(&mut self, now: Instant, ecb: &EcbState) {
        self.statistics = ecb.statistics;
        let mark = AggregateMark::new(now, ecb);
        if self.marks.last().is_none_or(|before| AggregateMark { at: now, ..*before } != mark) {
            self.marks.push(mark);
        }
    }

    /// The aggregate at a time; the last one where several fall on it, none before the first connection.
    #[must_use]
    pub fn at(&self, time: Instant) -> Option<AggregateMark> {
        let after = self.marks.partition_point(|mark| mark.at <= time);
        after.checked_sub(1).map(|place| self.marks[place])
    }
}

impl Windows {
    fn note(&mut self, mark: WindowMark) {
        let before = self.marks.last().map(|before| (before.cwnd, before.ssthresh));
        if before != Some((mark.cwnd, mark.ssthresh)) {
            self.marks.push(mark);
        }
    }

    /// The window at a time; the last one where several fall on it, none before the connection's first segment.
    #[must_use]
    pub fn at(&self, time: Instant) -> Option<WindowMark> {
        let after = self.marks.partition_point(|mark| mark.at <= time);
        after.checked_sub(1).map(|place| self.marks[place])
    }

    /// The window just before a time.
    #[must_use]
    pub fn before(&self, time: Instant) -> Option<WindowMark> {
        let after = self.marks.partition_point(|mark| mark.at < time);
        after.checked_sub(1).map(|place| self.marks[place])
    }
}
