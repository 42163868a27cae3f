//! What a gateway finds out about the path that its carrier takes: round trip, queueing delay, rate and largest packet.
//!
//! Sans-I/O, like the session whose control datagrams carry it: `now` is a parameter and what to send is polled.

pub mod follower;
pub mod minimum;
pub mod mtu;
pub mod report;

#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use base::{Duration, Instant, Rate};

use crate::session::FIRST_DAEMON_KIND;
use follower::{Finding, Follower};
use mtu::PathMtu;
use report::Reports;

/// Kind of the control datagram that holds a [`report`].
pub const REPORT: u8 = FIRST_DAEMON_KIND;
/// Kind of a padded datagram that asks whether packets as long as it arrive ([`mtu`]).
pub const PROBE: u8 = FIRST_DAEMON_KIND + 1;
/// Kind of the answer to it.
pub const PROBE_ANSWER: u8 = FIRST_DAEMON_KIND + 2;

/// What is known of a path. Drain order: after [`Survey::handle_control`] and when [`Survey::poll_timeout`] says so, send what
/// [`Survey::poll_control`] gives, take [`Survey::poll_finding`], and read rate, size and round trip again.
#[derive(Debug)]
pub struct Survey {
    /// What the ends tell each other of what arrives.
    pub reports: Reports,
    /// The rate to send at.
    pub follower: Follower,
    /// The largest packet; `None` where the carrier has no packets to speak of.
    pub mtu: Option<PathMtu>,
    /// Bytes that the carrier and the session add to the body of a control datagram, with its kind.
    overhead: usize,
    waiting: VecDeque<(u8, Vec<u8>)>,
    findings: VecDeque<Finding>,
}

/// Control datagrams that wait at most.
const WAITING_LIMIT: usize = 8;

impl Survey {
    /// A path of which nothing is known but what was configured: the rate, what a datagram takes on the line besides its own
    /// bytes, the shortest and longest packet. `overhead` bytes are around the body of a control datagram.
    #[must_use]
    pub fn new(rate: Option<Rate>, on_line: i64, sizes: (Option<usize>, usize), overhead: usize) -> Self {
        Self {
            reports: Reports::new(rate),
            follower: Follower::new(rate, on_line),
            mtu: sizes.0.map(|shortest| PathMtu::new(shortest, sizes.1, rate)),
            overhead,
            waiting: VecDeque::new(),
            findings: VecDeque::new(),
        }
    }

    /// Another rate is configured, as if nothing had been found out about the former one. `on_line` as in [`Survey::new`].
    pub fn configure(&mut self, rate: Option<Rate>, on_line: i64) {
        self.reports.set_rate(rate);
        self.follower.configure(rate, on_line);
        if let Some(mtu) = &mut self.mtu {
            mtu.set_rate(rate);
        }
    }

    /// A session is established. A peer that has `restarted` counts from zero.
    pub fn on_established(&mut self, restarted: bool) {
        if restarted {
            self.reports.restart();
            self.follower.restart();
        }
        self.reports.on_traffic();
    }

    /// Takes a control datagram; false if it is of no kind of ours.
    pub fn handle_control(&mut self, now: Instant, kind: u8, body: &[u8]) -> bool {
        match kind {
            REPORT => {
                if let Some(sample) = self.reports.handle_report(now, body) {
                    self.findings.extend(self.follower.on_sample(now, &sample));
                    if let Some(mtu) = &mut self.mtu {
                        mtu.on_sample(now, &sample);
                    }
                }
            }
            PROBE => {
                if let Some(answer) = PathMtu::answer(body) {
                    self.send(PROBE_ANSWER, answer.to_vec());
                }
            }
            PROBE_ANSWER => {
                if let Some(mtu) = &mut self.mtu {
                    mtu.handle_answer(now, body);
                }
            }
            _ => return false,
        }
        true
    }

    /// A control datagram to send, by kind and body.
    pub fn poll_control(&mut self, now: Instant) -> Option<(u8, Vec<u8>)> {
        if let Some(waiting) = self.waiting.pop_front() {
            return Some(waiting);
        }
        if let Some((marks, size)) = self.mtu.as_mut().and_then(|mtu| mtu.poll_probe(now)) {
            let mut padded = marks[0].to_vec();
            padded.resize(size.saturating_sub(self.overhead), 0);
            self.send(PROBE, marks[1].to_vec());
            return Some((PROBE, padded));
        }
        self.reports.poll_report(now).map(|report| (REPORT, report))
    }

    /// When [`Survey::poll_control`] wants to be called.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let probe = self.mtu.as_ref().and_then(PathMtu::poll_timeout);
        let waiting = (!self.waiting.is_empty()).then_some(Instant::ZERO);
        [self.reports.poll_timeout(), probe, waiting].into_iter().flatten().min()
    }

    /// What whoever runs the gateway should know.
    pub fn poll_finding(&mut self) -> Option<Finding> {
        self.findings.pop_front()
    }

    /// The smallest round trip of the last minutes.
    #[must_use]
    pub fn round_trip(&self) -> Option<Duration> {
        self.follower.round_trip()
    }

    fn send(&mut self, kind: u8, body: Vec<u8>) {
        if self.waiting.len() < WAITING_LIMIT {
            self.waiting.push_back((kind, body));
        }
    }
}
