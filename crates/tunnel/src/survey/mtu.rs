//! The largest packet that the path carries: Datagram PLPMTUD (RFC 8899) between two gateways.
//!
//! A probe is a control datagram padded to the size in question, sent without leave to fragment it; the other end
//! answers it. Each is followed by a small one, and a size fails only if small ones arrive and long ones do not: so losses and
//! blockages of the channel do not count against it.
//!
//! Deviations: search starts from the configured size, which is used until it fails (5.2 starts from a base of 1200 bytes: our
//! links are configured); a black hole is told from what arrives (4.3's confirmation by acknowledged data needs a protocol that acknowledges):
//! short datagrams do, and of those that are longer than every path carries none; half of what is sent not arriving is a reason to probe, and so is
//! time; after a black hole the smallest size is used at once; a probe's timer is below 15 s (5.1.1), because the small probe tells a lost
//! long one from a silent path.

use base::{Duration, Instant, Rate};

use super::report::Sample;

/// Which size of packet one end sends. Sizes are of IP packets.
#[derive(Debug)]
pub struct PathMtu {
    shortest: usize,
    longest: usize,
    size: usize,
    task: Task,
    /// The probe that waits for its answer.
    probe: Option<Probe>,
    /// Probes of this size that were lost while small ones arrived.
    failures: u32,
    number: u32,
    probe_at: Instant,
    round_trip: Duration,
    /// Between two probes: the line's time is for others.
    spacing: Duration,
    /// Samples of which less than half arrived, in a row.
    poor: u32,
    /// Samples in a row between which only short datagrams arrived, and how many long ones had left.
    only_short: (u32, u64),
    /// When the size became another one.
    changed_at: Instant,
    check_at: Instant,
    /// Times at which the path carried less than it had.
    pub shrunk: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Task {
    /// Nothing to find out before `check_at`.
    Rest,
    /// Whether the present size still arrives.
    Confirm,
    /// The largest size up to `high` that arrives; `size` does. `next` is tried now.
    Search { high: usize, next: usize },
}

#[derive(Clone, Copy, Debug)]
struct Probe {
    number: u32,
    due: Instant,
    small_arrived: bool,
}

/// RFC 8899 (5.1.2) has `MAX_PROBES` = 3; one more for channels that lose a fifth of their packets.
const MAX_PROBES: u32 = 4;
/// RFC 8899 (5.1.1): `PROBE_TIMER` is above the round trip and not below a second.
const PROBE_TIMER: Duration = Duration::from_secs(1);
/// RFC 8899 (5.1.1): `PMTU_RAISE_TIMER`.
const RAISE_TIMER: Duration = Duration::from_secs(600);
/// RFC 8899 (5.1.1): `CONFIRMATION_TIMER`; ours, as it has no value there.
const CONFIRMATION_TIMER: Duration = Duration::from_secs(30);
/// Poor samples in a row before the size is suspected: a blockage gives one.
const POOR: u32 = 2;
/// A black hole: so many samples in a row in which only short datagrams arrived, while so many long ones left. Ours: a channel that loses half
/// of all packets looks like that once in 10,000 times.
const SHORT: (u32, u64) = (3, 10);
/// A search ends when it is known to this many bytes.
const GRAIN: usize = 8;
/// A probe takes at most one part in this many of the line.
const SHARE: u64 = 50;
/// Bytes of a probe's number and of whether it is the small one.
const MARK_LEN: usize = 5;

impl PathMtu {
    /// A path that is said to carry `longest` bytes and must carry `shortest`, over a line of this rate.
    #[must_use]
    pub fn new(shortest: usize, longest: usize, rate: Option<Rate>) -> Self {
        let mut mtu = Self {
            shortest: shortest.min(longest),
            longest,
            size: longest,
            task: Task::Rest,
            probe: None,
            failures: 0,
            number: 0,
            probe_at: Instant::ZERO,
            round_trip: Duration::ZERO,
            spacing: Duration::ZERO,
            poor: 0,
            only_short: (0, 0),
            changed_at: Instant::ZERO,
            check_at: Instant::ZERO,
            shrunk: 0,
        };
        mtu.set_rate(rate);
        mtu
    }

    /// The line has another rate.
    pub fn set_rate(&mut self, rate: Option<Rate>) {
        let bits = self.longest as u64 * 8 * SHARE;
        self.spacing = rate.map_or(Duration::ZERO, |rate| rate.time_for(bits));
    }

    /// The longest packet to send.
    #[must_use]
    pub const fn size(&self) -> usize {
        self.size
    }

    /// Takes what arrived of what was sent; traffic flows, so the size matters.
    pub fn on_sample(&mut self, now: Instant, sample: &Sample) {
        self.round_trip = sample.round_trip;
        let Some(span) = sample.span else { return };
        // Where reports are lost, so is much else.
        let began_at = sample.sent_at.saturating_sub(span.sent_in);
        let is_short = sample.missed == 0 && sample.long.received == 0 && began_at >= self.changed_at;
        let (samples, long) = self.only_short;
        self.only_short = if is_short { (samples + 1, long + sample.long.sent) } else { (0, 0) };
        if self.only_short.0 >= SHORT.0 && self.only_short.1 >= SHORT.1 && self.size > self.shortest {
            self.only_short = (0, 0);
            return self.shrink(now);
        }
        self.poor = if span.received.bytes * 2 < span.sent.bytes { self.poor + 1 } else { 0 };
        let is_suspect = self.poor >= POOR && now >= self.probe_at;
        if self.task != Task::Rest || (!is_suspect && now < self.check_at) {
            return;
        }
        self.poor = 0;
        if self.size < self.longest && now >= self.check_at {
            self.try_size(Task::Search { high: self.longest, next: self.longest });
        } else {
            self.try_size(Task::Confirm);
        }
    }

    /// The kernel says that a packet of `size` bytes is too long for its device.
    pub fn on_too_long(&mut self, now: Instant, size: usize) {
        match self.task {
            // A frame that was cut before says less than a probe: only what is no shorter fails.
            Task::Search { high, next } if size <= next && size > self.size => self.fail(now, high, size),
            Task::Search { high, next } if size > next => {
                self.task = Task::Search { high: high.min(size - 1), next };
            }
            _ if size <= self.size && self.size > self.shortest => self.shrink(now),
            _ => {}
        }
    }

    /// When [`PathMtu::poll_probe`] wants to be called.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        match self.probe {
            Some(probe) => Some(probe.due),
            None => (self.task != Task::Rest).then_some(self.probe_at),
        }
    }

    /// A probe to send, and its size as a packet: two bodies, the first to be padded to it.
    pub fn poll_probe(&mut self, now: Instant) -> Option<([[u8; MARK_LEN]; 2], usize)> {
        if self.poll_timeout()? > now {
            return None;
        }
        if let Some(probe) = self.probe.take()
            && probe.small_arrived
        {
            self.failures += 1;
            if self.failures >= MAX_PROBES {
                match self.task {
                    Task::Search { high, next } => self.fail(now, high, next),
                    _ => self.shrink(now),
                }
            }
        }
        let size = match self.task {
            Task::Rest => return None,
            Task::Confirm => self.size,
            Task::Search { next, .. } => next,
        };
        self.number = self.number.wrapping_add(1);
        let wait = PROBE_TIMER.max(self.round_trip.saturating_mul(2)).max(self.spacing);
        self.probe = Some(Probe { number: self.number, due: now + wait, small_arrived: false });
        let mark = |small: u8| {
            let [a, b, c, d] = self.number.to_le_bytes();
            [a, b, c, d, small]
        };
        Some(([mark(0), mark(1)], size))
    }

    /// The answer to a probe's body.
    #[must_use]
    pub fn answer(body: &[u8]) -> Option<&[u8]> {
        body.get(..MARK_LEN)
    }

    /// Takes the other end's answer; whether the size has changed.
    pub fn handle_answer(&mut self, now: Instant, body: &[u8]) -> bool {
        let (Some(number), Some(small), Some(probe)) =
            (body.first_chunk::<4>(), body.get(4), &mut self.probe)
        else {
            return false;
        };
        if u32::from_le_bytes(*number) != probe.number {
            return false;
        }
        if *small != 0 {
            probe.small_arrived = true;
            return false;
        }
        self.probe = None;
        match self.task {
            Task::Search { high, next } => {
                (self.size, self.changed_at) = (next, now);
                self.search(now, high);
                true
            }
            _ => {
                self.rest(now);
                false
            }
        }
    }

    fn try_size(&mut self, task: Task) {
        self.task = task;
        self.probe = None;
        self.failures = 0;
    }

    /// A present size that was in doubt is not.
    fn rest(&mut self, now: Instant) {
        self.try_size(Task::Rest);
        let wait = if self.size < self.longest { RAISE_TIMER } else { CONFIRMATION_TIMER };
        self.check_at = now + wait.max(self.spacing);
        self.probe_at = now + self.spacing;
    }

    /// `next` does not arrive.
    fn fail(&mut self, now: Instant, high: usize, next: usize) {
        self.search(now, high.min(next - 1));
    }

    /// Sizes above `high` do not arrive, and `size` does.
    fn search(&mut self, now: Instant, high: usize) {
        if high < self.size + GRAIN {
            return self.rest(now);
        }
        self.probe_at = now;
        self.try_size(Task::Search { high, next: self.size + (high - self.size).div_ceil(2) });
    }

    /// The present size does not arrive any more: what every path carries, until more is known.
    fn shrink(&mut self, now: Instant) {
        let high = self.size - 1;
        self.shrunk += 1;
        (self.size, self.changed_at) = (self.shortest, now);
        self.search(now, high);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::survey::report::{Long, Span, Totals};
    use crate::survey::silence::Silence;

    /// A path that carries packets of up to `carries` bytes, 300 ms long both ways, that loses each packet with `loss`.
    struct Path {
        mtu: PathMtu,
        now: Instant,
        carries: usize,
        loss: f64,
        rng: base::Rng,
        probes: u32,
    }

    fn path(carries: usize) -> Path {
        let mtu = PathMtu::new(576, 1500, Some(Rate::from_bps(1_000_000)));
        Path { mtu, now: Instant::ZERO, carries, loss: 0.0, rng: base::Rng::named(1, "path"), probes: 0 }
    }

    impl Path {
        /// Traffic flows for so many seconds; reports come five times a second.
        fn flow(&mut self, seconds: u64) {
            for _ in 0..seconds * 5 {
                let passes = self.mtu.size() <= self.carries;
                let came = (0..10).filter(|_| passes && !self.rng.chance(self.loss)).count() as u64;
                let sent = Totals { datagrams: 11, bytes: 10_100 };
                let received = Totals { datagrams: came + 1, bytes: came * 1000 + 100 };
                let long = Long { sent: 10, received: came };
                let span = Span { sent, received, ..Span::default() };
                let round_trip = Duration::from_millis(300);
                let sample = Sample {
                    sent_at: self.now,
                    round_trip,
                    delay: 0,
                    span: Some(span),
                    // Where hardly anything passes, neither do reports.
                    missed: if self.carries == 0 { 3 } else { 0 },
                    after: Totals::default(),
                    long,
                    silence: Silence::default(),
                };
                self.mtu.on_sample(self.now, &sample);
                if let Some((marks, size)) = self.mtu.poll_probe(self.now) {
                    self.probes += 1;
                    for (mark, len) in marks.iter().zip([size, 70]) {
                        if len <= self.carries && !self.rng.chance(self.loss) {
                            let answer = PathMtu::answer(mark).unwrap();
                            self.mtu.handle_answer(self.now + round_trip, answer);
                        }
                    }
                }
                self.now += Duration::from_millis(200);
            }
        }
    }

    #[test]
    fn a_path_that_carries_what_is_configured_is_confirmed_now_and_then() {
        let mut path = path(1500);
        path.flow(300);
        assert_eq!((path.mtu.size(), path.mtu.shrunk, path.probes), (1500, 0, 10));
    }

    #[test]
    fn a_black_hole_is_found_within_seconds_and_searched() {
        for carries in [576, 600, 1000, 1280, 1420, 1499] {
            let mut path = path(1500);
            path.flow(20);
            path.carries = carries;
            path.flow(8);
            assert!(path.mtu.size() <= carries, "{} of {carries}", path.mtu.size());
            path.flow(60);
            assert!(
                (carries - GRAIN + 1..=carries).contains(&path.mtu.size()),
                "{} of {carries}",
                path.mtu.size()
            );
            assert_eq!(path.mtu.shrunk, 1);
            path.carries = 1500;
            path.flow(620);
            assert_eq!(path.mtu.size(), 1500, "it is used again");
        }
    }

    #[test]
    fn losses_and_blockages_leave_the_size() {
        let mut lossy = path(1500);
        lossy.loss = 0.2;
        lossy.flow(600);
        assert_eq!((lossy.mtu.size(), lossy.mtu.shrunk), (1500, 0));
        let mut blocked = path(0);
        blocked.flow(600);
        assert_eq!(blocked.mtu.shrunk, 0, "nothing arrives, so length is not what matters");
    }

    #[test]
    fn what_the_kernel_refuses_is_not_tried_for_long() {
        let mut path = path(1000);
        path.mtu.on_too_long(path.now, 1500);
        assert_eq!(path.mtu.size(), 576);
        for _ in 0..12 {
            if let Some((_, size)) = path.mtu.poll_probe(path.now).filter(|(_, size)| *size > 1000) {
                path.mtu.on_too_long(path.now, size);
            }
            path.flow(1);
        }
        assert!(path.mtu.size() > 1000 - GRAIN, "{}", path.mtu.size());
    }

    /// Frames that were cut for a wider device meet a narrower one in a burst, before anything can be done about it.
    /// What arrived of what left since the sample before, of which so many were long.
    fn sample(at: u64, sent: u64, received: u64, long: (u64, u64)) -> Sample {
        let totals = |bytes| Totals { datagrams: 10, bytes };
        let sent_in = Duration::from_millis(100);
        let span = Span { sent: totals(sent), received: totals(received), sent_in, ..Span::default() };
        Sample {
            sent_at: Instant::ZERO + Duration::from_millis(at),
            round_trip: Duration::from_millis(300),
            delay: 0,
            span: Some(span),
            missed: 0,
            after: Totals::default(),
            long: Long { sent: long.0, received: long.1 },
            silence: Silence::default(),
        }
    }

    /// Three samples in a row, and ten long datagrams, of which none arrived.
    #[test]
    fn only_short_ones_must_arrive_for_long_enough_before_the_size_is_given_up() {
        let size = |longs: &[(u64, u64)], missed: usize, from: u64| {
            let mut mtu = PathMtu::new(576, 1500, None);
            (mtu.check_at, mtu.changed_at) =
                (Instant::from_nanos(u64::MAX), Instant::ZERO + Duration::from_millis(1000));
            for (at, long) in (from..).step_by(100).zip(longs) {
                let sample = Sample { missed, ..sample(at, 1000, 900, *long) };
                mtu.on_sample(sample.sent_at, &sample);
            }
            mtu.size()
        };
        assert_eq!(size(&[(4, 0), (3, 0), (3, 0)], 0, 1100), 576);
        assert_eq!(size(&[(4, 0), (3, 0), (2, 0)], 0, 1100), 1500, "nine");
        assert_eq!(size(&[(9, 0), (9, 0)], 0, 1100), 1500, "two samples");
        assert_eq!(size(&[(4, 0), (9, 1), (4, 0), (4, 0)], 0, 1100), 1500, "one has arrived");
        assert_eq!(size(&[(9, 0); 3], 1, 1100), 1500, "where reports are lost, so is much else");
        assert_eq!(size(&[(9, 0); 3], 0, 1099), 1500, "some left before the size was this one");
        assert_eq!(size(&[(9, 0); 4], 0, 1099), 576);
        let mut shortest = PathMtu::new(576, 576, None);
        (1..=9).for_each(|at| shortest.on_sample(Instant::ZERO, &sample(at * 100, 1000, 900, (9, 0))));
        assert_eq!((shortest.size(), shortest.shrunk), (576, 0));
    }

    /// Two samples in a row of which less than half arrived are looked into, if nothing else is.
    #[test]
    fn much_that_is_lost_makes_a_probe() {
        let probes = |received: &[u64]| {
            let mut mtu = PathMtu::new(576, 1500, None);
            mtu.check_at = Instant::from_nanos(u64::MAX);
            for (at, received) in (100..).step_by(100).zip(received) {
                let sample = sample(at, 1000, *received, (0, 1));
                mtu.on_sample(sample.sent_at, &sample);
            }
            mtu.poll_timeout().is_some()
        };
        assert_eq!([probes(&[499]), probes(&[499, 499]), probes(&[500, 500])], [false, true, false]);
        assert_eq!([probes(&[499, 900, 499]), probes(&[0, 0])], [false, true]);
    }

    /// A device says at once what is too long for it: only what says something new about what is tried counts.
    #[test]
    fn what_is_said_to_be_too_long_narrows_the_search() {
        let now = Instant::ZERO;
        let task = |said: &[usize]| {
            let mut mtu = PathMtu::new(576, 1500, None);
            said.iter().for_each(|size| mtu.on_too_long(now, *size));
            (mtu.size(), mtu.task)
        };
        assert_eq!(task(&[1501]), (1500, Task::Rest), "such are not sent");
        assert_eq!(task(&[1500]), (576, Task::Search { high: 1499, next: 576 + 462 }));
        assert_eq!(
            task(&[1500, 1200]),
            (576, Task::Search { high: 1199, next: 1038 }),
            "longer than what is tried"
        );
        assert_eq!(task(&[1500, 1200, 1300]), (576, Task::Search { high: 1199, next: 1038 }));
        assert_eq!(task(&[1500, 1038]), (576, Task::Search { high: 1037, next: 576 + 231 }));
        assert_eq!(task(&[1500, 1039]), (576, Task::Search { high: 1038, next: 1038 }));
        assert_eq!(task(&[1500, 600]), (576, Task::Search { high: 599, next: 588 }));
        assert_eq!(task(&[1500, 577]), (576, Task::Rest), "nothing is left to try");
        assert_eq!(
            task(&[1500, 576]),
            (576, Task::Search { high: 1499, next: 1038 }),
            "no path carries less"
        );
    }

    #[test]
    fn a_size_below_the_longest_is_tried_again_after_ten_minutes_and_the_longest_confirmed_after_half_a_minute()
     {
        for (longest, wait) in [(583, 600), (576, 30)] {
            let mut mtu = PathMtu::new(576, longest, None);
            mtu.size = 576;
            mtu.rest(Instant::ZERO);
            assert_eq!(mtu.check_at, Instant::ZERO + Duration::from_secs(wait));
        }
        let mut mtu = PathMtu::new(576, 1500, None);
        mtu.size = 576;
        for (high, is_search) in [(576 + GRAIN - 1, false), (576 + GRAIN, true)] {
            mtu.search(Instant::ZERO, high);
            assert_eq!(mtu.task != Task::Rest, is_search, "{high}");
        }
    }

    #[test]
    fn probes_take_a_fiftieth_of_a_slow_line() {
        for (bps, wait) in [(64_000, 9375), (9_600, 62_500), (1_000_000, 1000)] {
            let mut mtu = PathMtu::new(576, 1500, None);
            mtu.set_rate(Some(Rate::from_bps(bps)));
            mtu.on_too_long(Instant::ZERO, 1500);
            assert!(mtu.poll_probe(Instant::ZERO).is_some());
            assert_eq!(mtu.poll_timeout(), Some(Instant::ZERO + Duration::from_millis(wait)), "{bps}");
        }
    }

    #[test]
    fn a_burst_that_the_kernel_refuses_counts_once() {
        let mut path = path(1400);
        for _ in 0..50 {
            path.mtu.on_too_long(path.now, 1500);
        }
        assert_eq!((path.mtu.size(), path.mtu.shrunk), (576, 1));
        path.flow(30);
        assert!(path.mtu.size() > 1400 - GRAIN, "{}", path.mtu.size());
    }

    #[test]
    fn other_bytes_change_nothing() {
        let mut path = path(1500);
        for body in [&[][..], &[0; 4], &[0; 5], &[9; 6]] {
            assert!(!path.mtu.handle_answer(Instant::ZERO, body));
        }
        assert_eq!(PathMtu::answer(&[1, 2, 3, 4]), None);
    }
}
