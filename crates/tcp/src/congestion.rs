//! Congestion control: how much may be in the network.
//!
//! A [`Controller`] sees samples and answers with a window and perhaps a rate. Which segments are lost, and
//! when they are sent again, is recovery's business.

pub mod bbr;
pub mod clocked;
pub mod cubic;
mod external;
pub mod fast;
pub mod hybla;
#[cfg(test)]
mod properties;
pub mod reno;
#[cfg(test)]
pub(crate) mod samples;
pub mod slow_start;
pub mod vegas;
pub mod westwood;

use core::fmt::Debug;

use base::{Duration, Instant, Rate};

use crate::config::{self, CubicConfig, CubicVariant, TcpConfig};

pub use bbr::Bbr;
pub(crate) use bbr::max_filter::MaxFilter;
pub use clocked::Clocked;
pub use cubic::{Cubic, LinuxCubic};
pub use external::Factory;
pub use fast::Fast;
pub use hybla::Hybla;
pub use reno::Reno;
pub use slow_start::SlowStart;
pub use vegas::Vegas;
pub use westwood::Westwood;

/// What one acknowledgement that delivered something, or is a duplicate, says.
#[derive(Clone, Copy, Debug)]
pub struct AckSample {
    /// When it arrived.
    pub now: Instant,
    /// Bytes newly acknowledged cumulatively; zero if it only carried new selective acknowledgements, or nothing new.
    pub bytes: u64,
    /// Bytes newly known to have arrived, cumulatively or selectively; each counts once.
    pub delivered_bytes: u64,
    /// Round-trip time of the latest segment that it delivered; none if that had been retransmitted (Karn).
    pub rtt: Option<Duration>,
    /// Smoothed round-trip time (RFC 6298), this sample included; none before the first.
    pub srtt: Option<Duration>,
    /// The connection's least round-trip time; [`Duration::MAX`] before the first sample.
    pub rtt_min: Duration,
    /// Bytes in the network after this acknowledgement.
    pub in_flight: u64,
    /// Bytes in the network before it: what the window had let out.
    pub prior_in_flight: u64,
    /// Whether the window, and nothing else, kept data back in the last round trip in which data were sent.
    pub limited_by_window: bool,
    /// The most bytes that were outstanding in that round trip.
    pub most_outstanding: u64,
    /// What the latest segment that it delivered says of the path's rate.
    pub delivery: Option<Delivery>,
    /// Round trips so far: it grows when a segment sent after the last growth is delivered.
    pub round: u64,
    /// Whether fast recovery was in progress before or after it, or it echoes a mark (RFC 3168, 6.1.2), or the response
    /// to a spurious time-out has counted it (RFC 4015, 3.2, step 6): a controller that is driven by loss holds its
    /// window.
    pub recovering: bool,
    /// Whether it is a duplicate (RFC 5681, 2; RFC 6675, 2): a segment has arrived, perhaps without saying which.
    pub duplicate: bool,
}

impl AckSample {
    /// Whether the sender has used its window, so that there is reason for a larger one: the window kept data back or, in slow
    /// start, is less than twice what was outstanding (Linux, `tcp_is_cwnd_limited`).
    #[must_use]
    pub const fn fills(&self, window: u64, slow_start: bool) -> bool {
        self.limited_by_window || (slow_start && window < 2 * self.most_outstanding)
    }

    /// Bytes that may open a window: those newly known to have arrived, where SND.UNA moved (Linux, `tcp_may_raise_cwnd`).
    #[must_use]
    pub const fn opening_bytes(&self) -> u64 {
        if self.bytes == 0 { 0 } else { self.delivered_bytes }
    }

    /// Whether the application, not the window, limited the sampled delivery.
    #[must_use]
    pub fn app_limited(&self) -> bool {
        self.delivery.is_some_and(|delivery| delivery.app_limited)
    }
}

/// Bytes delivered over an interval (draft-ietf-ccwg-bbr, 4.1.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// Bytes delivered while the sampled segment was in flight.
    pub bytes: u64,
    /// The longer of the intervals in which they were sent and acknowledged; not zero.
    pub interval: Duration,
    /// Whether the sender had nothing more to send when the sampled segment left.
    pub app_limited: bool,
}

impl Delivery {
    /// The rate.
    #[must_use]
    pub fn rate(&self) -> Rate {
        let bits = u128::from(self.bytes) * 8 * 1_000_000_000;
        let bps = bits / u128::from(self.interval.as_nanos().max(1));
        Rate::from_bps(u64::try_from(bps).unwrap_or(u64::MAX))
    }
}

/// What a controller is told to respond to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Recovery found a loss; once per recovery.
    Loss,
    /// The network marked packets; once per round trip.
    Ecn,
    /// The retransmission timer expired for a segment for the first time.
    Timeout,
}

/// Congestion, as recovery reports it.
#[derive(Clone, Copy, Debug)]
pub struct Congestion {
    /// When it was noticed.
    pub now: Instant,
    /// Data sent and not cumulatively acknowledged (RFC 5681, 2), without what limited transmit sent.
    pub flight_size: u64,
    /// What it is.
    pub cause: Cause,
    /// When the segment found lost had been sent last; none for ECN, or where nobody knows.
    pub sent_at: Option<Instant>,
    /// Whether that segment had been sent more than once.
    pub resent: bool,
}

/// Decides how much may be in the network.
pub trait Controller: Debug + Send {
    /// An acknowledgement that delivered something, or a duplicate.
    fn on_ack(&mut self, ack: &AckSample);

    /// Congestion.
    fn on_congestion(&mut self, event: &Congestion);

    /// New data wait, and `in_flight` bytes are out: the window is about to be asked for.
    fn on_send_opportunity(&mut self, _now: Instant, _in_flight: u64) {}

    /// Fast recovery ended.
    fn on_recovery_exit(&mut self, _now: Instant) {}

    /// Whether it moves its window through fast recovery itself, so that nothing else should.
    fn steers_recovery(&self) -> bool {
        false
    }

    /// The last time-out or loss was found to be spurious; the response allows this window and threshold, in bytes.
    fn on_spurious_congestion(&mut self, _now: Instant, window: u64, ssthresh: u64) {
        self.set_window(window, Some(ssthresh));
    }

    /// The first data after an idle time longer than the retransmission time-out (RFC 5681, 4.1).
    fn on_restart(&mut self, _now: Instant) {}

    /// The window in bytes.
    fn window(&self) -> u64;

    /// Somebody who knows better sets the window, in bytes, and perhaps the slow start threshold of those that have
    /// one: recovery when it ends (RFC 6582, 3.2, step 3), Careful Resume, the response to a spurious time-out. It goes
    /// on from there with what it knows otherwise. A window below a segment counts as one.
    fn set_window(&mut self, window: u64, ssthresh: Option<u64>);

    /// The slow start threshold in bytes, for those that have one.
    fn ssthresh(&self) -> Option<u64> {
        None
    }

    /// The rate to pace at; none sends as the window allows.
    fn pacing_rate(&self) -> Option<Rate> {
        None
    }
}

/// What a controller knows when it begins.
#[derive(Clone, Copy, Debug)]
pub struct Start {
    /// Payload bytes of a full segment.
    pub mss: u64,
    /// Initial window in bytes.
    pub initial_window: u64,
    /// Segments that one acknowledgement can open the window by in slow start (RFC 3465).
    pub byte_counting_limit: u64,
    /// Initial slow start threshold in bytes; [`u64::MAX`] is "arbitrarily high" (RFC 5681, 3.1).
    pub ssthresh: u64,
    /// Round-trip time that the handshake showed.
    pub srtt: Option<Duration>,
    /// How slow start ends.
    pub slow_start: config::SlowStart,
    /// Whether the connection spaces out what a window lets go.
    pub paced: bool,
    /// Whether the peer is a proxy of ours at the other end of a link.
    pub paired: bool,
}

/// Bytes of the largest window that TCP can advertise (RFC 7323, 2.3): a controller needs no more.
const MAX_WINDOW: u64 = 1 << 30;

/// Bytes that a paced sender lets go at once: about a millisecond's worth, at least one segment on slow paths and two
/// on others (draft-cardwell-iccrg-bbr-congestion-control-00, 4.2.2).
pub(crate) fn burst_quantum(rate: Rate, mss: u64) -> u64 {
    match rate.as_bps() {
        0..1_200_000 => mss,
        1_200_000..24_000_000 => 2 * mss,
        bps => (bps / 8 / 1000).min(MAX_QUANTUM),
    }
}

/// Bytes; the same section.
const MAX_QUANTUM: u64 = 64 * 1024;

/// The controller that `config` names or brings along.
pub(crate) fn build(config: &TcpConfig, start: &Start) -> Box<dyn Controller> {
    match config.congestion {
        config::Congestion::External(ref factory) => factory.build(start),
        config::Congestion::Reno => Box::new(Reno::new(start)),
        config::Congestion::Link if start.paired => Box::new(Clocked),
        config::Congestion::Cubic(CubicConfig { variant: CubicVariant::Linux }) => {
            Box::new(LinuxCubic::new(start))
        }
        config::Congestion::Cubic(_) | config::Congestion::Link => Box::new(Cubic::new(start)),
        config::Congestion::Bbr => Box::new(Bbr::new(start)),
        config::Congestion::WestwoodEre => Box::new(Westwood::<westwood::EligibleRate>::new(start)),
        config::Congestion::WestwoodPlus => Box::new(Westwood::<westwood::Plus>::new(start)),
        config::Congestion::Vegas(config) => Box::new(Vegas::new(start, config)),
        config::Congestion::Fast(config) => Box::new(Fast::new(start, config)),
        config::Congestion::Hybla(config) => Box::new(Hybla::new(start, config)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 3135 (3.1.2): only on a path that is known, between two proxies, is there no congestion control; strangers are on the
    /// Internet.
    #[test]
    fn the_link_clocks_nobody_but_the_proxy_at_its_other_end() {
        let config = TcpConfig { congestion: config::Congestion::Link, ..TcpConfig::default() };
        for paired in [true, false] {
            let mut controller = build(&config, &Start { paired, ..samples::start(10) });
            let cause = Cause::Loss;
            let loss =
                Congestion { now: Instant::ZERO, flight_size: 10_000, cause, sent_at: None, resent: false };
            controller.on_congestion(&loss);
            assert_eq!(controller.window() == MAX_WINDOW, paired, "a stranger's path is flooded");
            assert_eq!(controller.ssthresh().is_none(), paired);
        }
    }

    #[test]
    fn a_delivery_has_a_rate() {
        let delivery = Delivery { bytes: 1000, interval: Duration::from_millis(1), app_limited: false };
        assert_eq!(delivery.rate(), Rate::from_bps(8_000_000));
    }
}
