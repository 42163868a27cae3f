//! What some flows of CUBIC (RFC 9438) would take of a bottleneck whose queue somebody else keeps full.
//!
//! Each has a window that grows as CUBIC's does and is cut when the queue drops something. All that is sent is paced, so that who is hit is not chosen by
//! chance: flows take turns. Windows are in packets of 1500 bytes.

use base::{Duration, Instant};

/// Windows of so many flows.
#[derive(Clone, Debug, Default)]
pub struct VirtualFlows {
    flows: Vec<Flow>,
    /// Whose turn it is to be hit.
    next: usize,
}

#[derive(Clone, Copy, Debug)]
struct Flow {
    /// Since when it grows.
    since: Instant,
    /// From this window.
    least: f64,
    /// `W_max`: the window at which it was last too large.
    most: f64,
    cut_at: Instant,
}

/// Bits of a packet.
const PACKET: f64 = 12_000.0;
/// `C` and `beta_cubic` (RFC 9438, 5.1, 4.6).
const C: f64 = 0.4;
const BETA: f64 = 0.7;
/// Flows at most: one packet more or less does not matter to so many. Ours.
const MOST: usize = 64;
/// A window at least, in packets. RFC 5681, 3.1.
const LEAST: f64 = 2.0;

impl Flow {
    const fn new(now: Instant, window: f64) -> Self {
        Self { since: now, least: window, most: window, cut_at: Instant::ZERO }
    }

    /// RFC 9438, 4.2 and 4.3.
    fn window(&self, now: Instant, round_trip: f64) -> f64 {
        let t = now.saturating_since(self.since).as_secs_f64();
        let k = ((self.most - self.least) / C).cbrt();
        let cubic = C * (t - k).powi(3) + self.most;
        let as_reno = self.least + 3.0 * (1.0 - BETA) / (1.0 + BETA) * t / round_trip;
        cubic.max(as_reno)
    }

    /// RFC 9438, 4.6 and 4.7.
    fn cut(&mut self, now: Instant, round_trip: f64) {
        let window = self.window(now, round_trip);
        let most = if window < self.most { window * (1.0 + BETA) / 2.0 } else { window };
        let least = (window * BETA).max(LEAST);
        *self = Self { since: now, least, most: most.max(least), cut_at: now };
    }
}

impl VirtualFlows {
    /// From now on there are `count` of them. Those that come take as much as the others have; the first ones take `rate` bits per second
    /// together.
    pub fn resize(&mut self, now: Instant, count: usize, rate: f64, round_trip: Duration) {
        let (count, round_trip) = (count.clamp(1, MOST), seconds(round_trip));
        let mean = match self.flows.len() {
            0 => rate * round_trip / PACKET / count as f64,
            former => self.window(now, round_trip) / former as f64,
        };
        self.flows.resize(count, Flow::new(now, mean.max(LEAST)));
    }

    /// There are none.
    pub fn clear(&mut self) {
        self.flows.clear();
    }

    /// `lost` packets were dropped of what had left before `sent_at`: as many flows are hit, as far as they have not been since then.
    pub fn on_lost(&mut self, now: Instant, sent_at: Instant, lost: u64, round_trip: Duration) {
        for _ in 0..lost.min(self.flows.len() as u64) {
            let count = self.flows.len();
            let flow = &mut self.flows[self.next % count];
            if flow.cut_at > sent_at {
                return;
            }
            flow.cut(now, seconds(round_trip));
            self.next = (self.next + 1) % count;
        }
    }

    /// Bits per second of all of them.
    #[must_use]
    pub fn rate(&self, now: Instant, round_trip: Duration) -> f64 {
        let round_trip = seconds(round_trip);
        self.window(now, round_trip) * PACKET / round_trip
    }

    /// Altogether they take `rate` bits per second at most.
    pub fn limit(&mut self, now: Instant, rate: f64, round_trip: Duration) {
        let part = rate / self.rate(now, round_trip);
        if part < 1.0 {
            let round_trip = seconds(round_trip);
            for flow in &mut self.flows {
                let window = flow.window(now, round_trip) * part;
                *flow = Flow { cut_at: flow.cut_at, ..Flow::new(now, window) };
            }
        }
    }

    fn window(&self, now: Instant, round_trip: f64) -> f64 {
        self.flows.iter().map(|flow| flow.window(now, round_trip)).sum()
    }
}

/// Of a round trip: one of less than a millisecond is not told from none.
fn seconds(round_trip: Duration) -> f64 {
    round_trip.as_secs_f64().max(1e-3)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROUND_TRIP: Duration = Duration::from_millis(200);

    const fn ms(millis: u64) -> Instant {
        Instant::from_nanos(millis * 1_000_000)
    }

    /// `count` flows of 100 packets each, at 1 s.
    fn flows(count: usize) -> VirtualFlows {
        let mut flows = VirtualFlows::default();
        flows.resize(ms(1000), count, count as f64 * 100.0 * PACKET / 0.2, ROUND_TRIP);
        flows
    }

    /// Packets of all windows.
    fn windows(flows: &VirtualFlows, at: Instant) -> f64 {
        (flows.window(at, 0.2) * 10.0).round() / 10.0
    }

    #[test]
    fn a_window_grows_as_cubic_does() {
        let mut flows = flows(1);
        // From a plateau: 0.4 t^3, but at first as Reno, 0.53 packets a round trip.
        assert_eq!([1000, 2000, 6000].map(|at| windows(&flows, ms(at))), [100.0, 102.6, 150.0]);
        flows.on_lost(ms(6000), ms(5900), 1, ROUND_TRIP);
        // K = (45 / 0.4)^(1/3) = 4.83 s.
        assert_eq!([6000, 10_830, 16_000].map(|at| windows(&flows, ms(at))), [105.0, 150.0, 205.4]);
    }

    #[test]
    fn each_loss_hits_one_flow_and_none_twice_in_a_round_trip() {
        for (lost, left) in [(0, 400.0), (1, 370.0), (3, 310.0), (4, 280.0), (50, 280.0)] {
            let mut flows = flows(4);
            flows.on_lost(ms(1000), ms(900), lost, ROUND_TRIP);
            // What left before the cut says nothing more.
            flows.on_lost(ms(1000), ms(900), if lost < 4 { 0 } else { 4 }, ROUND_TRIP);
            assert_eq!(windows(&flows, ms(1000)), left, "{lost} lost");
        }
        let mut flows = flows(2);
        flows.on_lost(ms(1000), ms(900), 1, ROUND_TRIP);
        flows.on_lost(ms(1000), ms(900), 1, ROUND_TRIP);
        assert_eq!(windows(&flows, ms(1000)), 140.0, "they take turns");
        flows.on_lost(ms(1300), ms(1001), 1, ROUND_TRIP);
        assert!(windows(&flows, ms(1300)) < 130.0, "and again once what left since tells");
    }

    #[test]
    fn one_that_did_not_grow_back_gives_way() {
        let mut flows = flows(1);
        flows.on_lost(ms(1000), ms(900), 1, ROUND_TRIP);
        flows.on_lost(ms(1300), ms(1200), 1, ROUND_TRIP);
        // K = (30 / 0.4)^(1/3) = 4.22 s, so that it had grown back to 76.0: it aims at 0.85 of that.
        assert_eq!((flows.flows[0].most * 10.0).round() / 10.0, 64.6);
        let k = ((flows.flows[0].most - flows.flows[0].least) / C).cbrt();
        let at = Instant::ZERO + Duration::from_secs_f64(1.3 + k);
        assert!((windows(&flows, at) - flows.flows[0].most).abs() < 0.2);
    }

    #[test]
    fn they_keep_their_mean_and_a_limit() {
        let mut flows = flows(2);
        flows.resize(ms(1000), 3, 0.0, ROUND_TRIP);
        assert_eq!(windows(&flows, ms(1000)), 300.0);
        flows.resize(ms(1000), 1, 0.0, ROUND_TRIP);
        assert_eq!(windows(&flows, ms(1000)), 100.0);
        flows.limit(ms(1000), 120.0 * PACKET / 0.2, ROUND_TRIP);
        assert_eq!(windows(&flows, ms(1000)), 100.0);
        flows.limit(ms(1000), 60.0 * PACKET / 0.2, ROUND_TRIP);
        assert_eq!(windows(&flows, ms(1000)), 60.0);
        assert_eq!(flows.rate(ms(1000), ROUND_TRIP), 60.0 * PACKET / 0.2);
        (0..40).for_each(|n| flows.on_lost(ms(2000 + 300 * n), ms(1999 + 300 * n), 1, ROUND_TRIP));
        assert!(windows(&flows, ms(13_701)) < 3.0 && windows(&flows, ms(13_701)) >= LEAST);
    }
}
