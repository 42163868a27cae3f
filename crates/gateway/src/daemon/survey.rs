//! What the daemon does about what it finds out about the path: pacing, the queue's limits, the length of frames.

use base::{Duration, Instant, Rate};
use link::LineLimits;
use link::queue::Site;
use serde_json::{Value, json};

use super::{Gateway, Notice};
use crate::config::Config;
use crate::random::Random;
use crate::session::OVERHEAD;
use crate::survey::Survey;
use crate::survey::mtu::PathMtu;

/// A path as the configuration describes it.
pub(super) fn of(config: &Config) -> Survey {
    let sizes = (config.carrier.shortest_limit(), config.carrier.packet_limit());
    // A control datagram's kind takes a byte.
    let around = config.carrier.header_len() + OVERHEAD + 1;
    Survey::new(rate(config), on_line(config), sizes, around)
}

fn rate(config: &Config) -> Option<Rate> {
    config.link.rate.map(|rate| rate.0)
}

/// What a datagram takes on the line besides its own bytes.
pub(super) fn on_line(config: &Config) -> i64 {
    config.carrier.header_len() as i64 + i64::from(config.link.overhead.get())
}

impl Gateway {
    /// Acts on what was found out, and tells it.
    pub(super) fn follow_path(&mut self, now: Instant, notify: &mut impl FnMut(Notice)) {
        while let Some(finding) = self.survey.poll_finding() {
            notify(Notice::Carrier(finding));
        }
        let rate = self.survey.follower.rate();
        if rate != self.pacer.rate() {
            self.pacer.set_rate(now, rate);
        }
        let (queue_rate, round_trip) = (self.survey.follower.lasting_rate(), self.survey.round_trip());
        if queue_rate != self.queue_for.0 || is_other(self.queue_for.1, round_trip) {
            self.tell_edge(round_trip, notify);
            self.queue_for = (queue_rate, round_trip);
            self.limit_queue(now);
        }
        if let Some(mtu) = &self.survey.mtu {
            let limit = mtu.size() - self.header_len - OVERHEAD;
            if limit != self.frame_limit {
                notify(Notice::PathMtu(mtu.size()));
                self.frame_limit = limit;
                let rate = self.config.link.rate.map(|rate| rate.0);
                self.endpoint.set_line(&LineLimits::new(limit, rate));
            }
        }
    }

    /// Gives the queue the limits that the present rate and round trip ask for, or makes it another kind.
    pub(super) fn limit_queue(&mut self, now: Instant) {
        let (link, (rate, round_trip)) = (&self.config.link, self.queue_for);
        let site = Site { rate, seed: u64::from_ne_bytes(Random::system().draw()), name: "link" };
        let queue = link.queue(rate, round_trip, self.config.tun.mtu.0);
        self.entry.reconfigure(now, &queue, &site, link.once_dscp);
    }

    /// Once, when the round trip has been measured; a configured one was known before.
    fn tell_edge(&self, measured: Option<Duration>, notify: &mut impl FnMut(Notice)) {
        if let (None, None, Some(round_trip)) = (self.config.link.round_trip, self.queue_for.1, measured)
            && let Some(edge) = self.config.link.edge(&self.config.carrier, round_trip)
        {
            notify(Notice::Edge(edge));
        }
    }

    /// What the status says of the path. Rates are in bits per second, with all headers.
    pub(super) fn path_status(&self) -> Value {
        let seconds = |time: Duration| time.as_secs_f64();
        json!({
            "rate": self.pacer.rate().map(Rate::as_bps),
            "followed_rate": self.survey.follower.followed().map(Rate::as_bps),
            "rate_reductions": self.survey.follower.reductions,
            "round_trip_seconds": self.survey.round_trip().map(seconds),
            "queueing_seconds": seconds(self.survey.follower.queueing()),
            "mtu": self.survey.mtu.as_ref().map(PathMtu::size),
            "mtu_reductions": self.survey.mtu.as_ref().map(|mtu| mtu.shrunk),
        })
    }
}

/// Whether a round trip differs so much from the one that the queue was made for that it matters.
fn is_other(former: Option<Duration>, measured: Option<Duration>) -> bool {
    match (former, measured) {
        (Some(former), Some(measured)) => former.abs_diff(measured).as_nanos() > former.as_nanos() / 10,
        (former, measured) => former != measured,
    }
}
