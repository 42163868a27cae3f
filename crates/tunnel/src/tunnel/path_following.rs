//! What a tunnel does about what it finds out about the path: pacing, the queue's limits, the length of frames. It looks before each
//! decision what to send, so that nothing leaves at a rate that is known to be wrong.

use base::{Duration, Instant, Rate};
use link::queue::{self, Site};

use super::{Event, Line, Tunnel};
use crate::config::{Config, Link};
use crate::pacer::Pacer;
use crate::session::OVERHEAD;
use crate::survey::mtu::PathMtu;

impl Tunnel {
    /// Acts on what was found out, and tells it.
    pub(super) fn follow_path(&mut self, now: Instant) {
        let is_single = self.lines.is_single();
        let told_of = |id| (!is_single).then_some(id);
        for id in self.lines.ids() {
            while let Some(finding) = self.lines[id].survey.poll_finding() {
                self.tell(Event::Rate { line: told_of(id), finding });
            }
            let line = &mut self.lines[id];
            let rate = line.survey.rate_controller.rate(now);
            if rate != line.pacer.rate() {
                line.pacer.set_rate(now, rate);
            }
        }
        let (rate, round_trip) = self.found();
        if is_other(self.line.0.map(Rate::as_bps), rate.map(Rate::as_bps))
            || is_other(self.line.1.map(Duration::as_nanos), round_trip.map(Duration::as_nanos))
        {
            self.tell_edge(rate, round_trip);
            self.adapt(now);
        }
        for id in self.lines.ids() {
            let line = &mut self.lines[id];
            let Some(size) = line.survey.mtu.as_ref().map(PathMtu::size) else { continue };
            let limit = size - line.way.carrier.header_len - OVERHEAD;
            if limit != line.frame_limit {
                line.frame_limit = limit;
                self.tell(Event::PathMtu { line: told_of(id), size });
            }
        }
        let limit = self.least_frame_limit();
        if limit != self.frame_limit {
            self.frame_limit = limit;
            self.endpoint.set_line(&self.config.line(limit, self.line.0));
        }
        if !self.lines.is_single() {
            self.tell_lines();
        }
    }

    /// What all lines carry together, and the longest of their round trips, if each is known.
    fn found(&self) -> (Option<Rate>, Option<Duration>) {
        let longest = |one: Option<Duration>, line: &Line| Some(one?.max(line.found().1?));
        let round_trip = match self.lines.is_single() {
            true => self.lines.first.found().1,
            false => self.lines.open().fold(Some(Duration::ZERO), longest),
        };
        (self.lines.sum(|line| line.found().0), round_trip.filter(|time| *time > Duration::ZERO))
    }

    /// The longest frame that leaves whole over every line.
    fn least_frame_limit(&self) -> usize {
        self.lines.open().map(|line| line.frame_limit).min().unwrap_or(self.frame_limit)
    }

    /// Sends otherwise from now on: rate, round trip, queue, fillers, marks and keep-alives are taken over, the rest stays as it is. What is
    /// known of the path stays too, unless that differs.
    pub fn reconfigure(&mut self, now: Instant, link: &Link, keep_alive: Duration) {
        self.stir();
        self.config.keep_alive = keep_alive;
        self.config.link = self.config.link.reconfigured(link);
        self.session.set_timing(self.config.timing());
        let (first, overhead) = (self.config.first_way(), link.overhead);
        self.lines.first.way.rate = first.rate;
        for (_, line) in self.lines.all_mut() {
            line.pacer = Pacer::new(line.way.rate.fixed(), link.fillers);
            line.survey.configure(line.way.aim(), line.way.on_line(overhead));
        }
        self.adapt(now);
    }

    /// Gives all that depends on the line's rate and round trip what these ask for now.
    pub(super) fn adapt(&mut self, now: Instant) {
        let former = self.super_segment();
        self.line = self.found();
        let (rate, round_trip) = self.line;
        self.lines.all_mut().for_each(|(_, line)| line.survey.set_rate(line.found().0));
        self.frame_limit = self.least_frame_limit();
        self.endpoint.set_line(&self.config.line(self.frame_limit, rate));
        let Config { link, mtu, .. } = &self.config;
        let site = Site { rate, seed: self.rng.bits(), name: "link" };
        let queue = link.queue(rate, round_trip, *mtu);
        self.ingress.queues.reconfigure(now, &queue, &site, link.by_dscp());
        self.set_datagram_age(&queue);
        if self.super_segment() != former {
            self.proxy_side.fit_segments(&self.config, rate, self.ingress.proxy.as_deref_mut());
        }
    }

    /// Tells those who have datagrams when these are too old, on the line as it is known now.
    pub(super) fn set_datagram_age(&mut self, queue: &queue::Config) {
        let (rate, round_trip) = self.line;
        let age = self.config.link.datagram_age(queue, rate, round_trip);
        self.ingress.queues.set_datagram_age(age);
        self.endpoint.set_hold(age);
    }

    /// Once, when the round trip has been measured; a configured one was known before.
    fn tell_edge(&mut self, rate: Option<Rate>, measured: Option<Duration>) {
        if let (None, None, Some(round_trip)) = (self.config.link.round_trip, self.line.1, measured)
            && let Some(edge) = self.config.link.edge(&self.config.carrier, rate, round_trip)
        {
            self.tell(Event::Edge(edge));
        }
    }
}

/// Whether a value differs so much from the one that things were made for that it matters.
fn is_other(former: Option<u64>, present: Option<u64>) -> bool {
    match (former, present) {
        (Some(former), Some(present)) => former.abs_diff(present) > former / 10,
        (former, present) => former != present,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_than_a_tenth_is_another_value() {
        let others = [89, 90, 110, 111].map(|present| is_other(Some(100), Some(present)));
        assert_eq!(others, [true, false, false, true]);
        assert!(is_other(None, Some(1)) && is_other(Some(1), None) && !is_other(None, None));
        assert!(!is_other(Some(5), Some(5)) && is_other(Some(5), Some(6)));
    }
}
