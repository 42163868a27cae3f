//! What the daemon does about what it finds out about the path: pacing, the queue's limits, the length of frames.

use base::{Duration, Instant, Rate};
use link::LineLimits;
use link::queue::{self, Site};
use serde_json::{Value, json};

use super::{Gateway, Notice};
use crate::config::{Config, LinkRate};
use crate::random::Random;
use crate::session::OVERHEAD;
use crate::survey::Survey;
use crate::survey::mtu::PathMtu;
use crate::survey::seeker::Aim;

/// A path as the configuration describes it.
pub(super) fn of(config: &Config) -> Survey {
    let sizes = (config.carrier.shortest_limit(), config.carrier.packet_limit());
    // A control datagram's kind takes a byte.
    let around = config.carrier.header_len() + OVERHEAD + 1;
    Survey::new(aim(config), on_line(config), sizes, around)
}

/// What the configuration says of the rate.
pub(super) const fn aim(config: &Config) -> Aim {
    match config.link.rate {
        LinkRate::Auto => Aim::Find,
        LinkRate::Max => Aim::Unlimited,
        LinkRate::Fixed(rate) => Aim::Known(rate),
    }
}

/// What a datagram takes on the line besides its own bytes.
pub(super) fn on_line(config: &Config) -> i64 {
    config.carrier.header_len() as i64 + i64::from(config.link.overhead.get())
}

/// The line as the endpoint sees it, with frames of up to `limit` bytes.
pub(super) fn line(config: &Config, limit: usize, rate: Option<Rate>) -> LineLimits {
    let around = usize::try_from(on_line(config)).unwrap_or(0) + OVERHEAD;
    LineLimits::new(limit, rate).with_overhead(around)
}

impl Gateway {
    /// Acts on what was found out, and tells it.
    pub(super) fn follow_path(&mut self, now: Instant, notify: &mut impl FnMut(Notice)) {
        while let Some(finding) = self.survey.poll_finding() {
            notify(Notice::Carrier(finding));
        }
        let rate = self.survey.seeker.rate(now);
        if rate != self.pacer.rate() {
            self.pacer.set_rate(now, rate);
        }
        let (rate, round_trip) = (self.survey.seeker.capacity(), self.survey.round_trip());
        if is_other(self.line.0.map(Rate::as_bps), rate.map(Rate::as_bps))
            || is_other(self.line.1.map(Duration::as_nanos), round_trip.map(Duration::as_nanos))
        {
            self.tell_edge(rate, round_trip, notify);
            self.adapt(now);
        }
        if let Some(mtu) = &self.survey.mtu {
            let limit = mtu.size() - self.header_len - OVERHEAD;
            if limit != self.frame_limit {
                notify(Notice::PathMtu(mtu.size()));
                self.frame_limit = limit;
                self.endpoint.set_line(&line(&self.config, limit, self.line.0));
            }
        }
    }

    /// Gives all that depends on the line's rate and round trip what these ask for now.
    pub(super) fn adapt(&mut self, now: Instant) {
        let former = self.config.super_segment(self.line.0);
        self.line = (self.survey.seeker.capacity(), self.survey.round_trip());
        let (rate, round_trip) = self.line;
        self.survey.set_rate(rate);
        self.endpoint.set_line(&line(&self.config, self.frame_limit, rate));
        let link = &self.config.link;
        let site = Site { rate, seed: u64::from_ne_bytes(Random::system().draw()), name: "link" };
        let queue = link.queue(rate, round_trip, self.config.tun.mtu.0);
        self.entry.reconfigure(now, &queue, &site, link.by_dscp());
        self.set_datagram_age(&queue);
        if self.config.super_segment(rate) != former {
            // Where that fails, somebody has taken the device, which is noticed elsewhere.
            let _ = self.configure_device();
            if let Some(splitting) = &mut self.splitting {
                splitting.set_rate(&self.config, rate);
            }
        }
    }

    /// Tells those who have datagrams when these are too old, on the line as it is known now.
    pub(super) fn set_datagram_age(&mut self, queue: &queue::Config) {
        let (rate, round_trip) = self.line;
        let age = self.config.link.datagram_age(queue, rate, round_trip);
        self.entry.set_datagram_age(age);
        self.endpoint.set_hold(age);
    }

    /// Once, when the round trip has been measured; a configured one was known before.
    fn tell_edge(&self, rate: Option<Rate>, measured: Option<Duration>, notify: &mut impl FnMut(Notice)) {
        if let (None, None, Some(round_trip)) = (self.config.link.round_trip, self.line.1, measured)
            && let Some(edge) = self.config.link.edge(&self.config.carrier, rate, round_trip)
        {
            notify(Notice::Edge(edge));
        }
    }

    /// What the status says of the path. Rates are in bits per second, with all headers.
    pub(super) fn path_status(&self) -> Value {
        let seconds = |time: Duration| time.as_secs_f64();
        json!({
            "rate": self.pacer.rate().map(Rate::as_bps),
            "carries": self.survey.seeker.capacity().map(Rate::as_bps),
            "experiments": self.survey.seeker.experiments,
            "channel_loss": self.survey.seeker.channel_loss(),
            "round_trip_seconds": self.survey.round_trip().map(seconds),
            "queueing_seconds": seconds(self.survey.seeker.queueing()),
            "mtu": self.survey.mtu.as_ref().map(PathMtu::size),
            "mtu_reductions": self.survey.mtu.as_ref().map(|mtu| mtu.shrunk),
        })
    }
}

/// Whether a value differs so much from the one that things were made for that it matters.
fn is_other(former: Option<u64>, present: Option<u64>) -> bool {
    match (former, present) {
        (Some(former), Some(present)) => former.abs_diff(present) > former / 10,
        (former, present) => former != present,
    }
}
