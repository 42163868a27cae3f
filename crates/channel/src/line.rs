//! One direction of a link: air time, propagation, errors.

use core::ops::Range;

use base::{Duration, Instant, Rate, Serializer};
use serde::{Deserialize, Serialize};

use crate::model::{ErrorModel, Streams};
use crate::path::{self, Admission, Path};
use crate::process::{ErrorProcess, Fate};
use crate::timeline::Timeline;

/// Which end of a line the errors happen at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum End {
    /// Where frames leave: an obstacle in front of the sender hits what leaves now.
    Departure,
    /// Where frames arrive: an obstacle in front of the receiver hits what left one propagation delay ago.
    #[default]
    Arrival,
}

/// From a time on a line has another rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateChange {
    /// When, for what leaves.
    pub at: Instant,
    /// Bits per second from then on.
    pub rate: Rate,
}

/// A line as a scenario describes it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Config {
    /// Bits per second; until the first change, if there are any.
    pub rate: Rate,
    /// Other rates later on, in the order of their times, which are after the start. Error models that count bits in
    /// time ([`ErrorModel::depends_on_rate`]) go by the first rate.
    #[serde(skip)]
    pub rate_changes: Vec<RateChange>,
    /// Propagation delay, one way.
    pub delay: Duration,
    /// What goes wrong.
    #[serde(default)]
    pub errors: ErrorModel,
    /// Where it goes wrong.
    #[serde(default)]
    pub errors_at: End,
    /// What else happens on the way. Errors meet what is sent as if the delay were always `delay`.
    #[serde(skip)]
    pub path: path::Config,
}

impl Config {
    /// The line, idle, with random numbers from `streams`.
    ///
    /// # Panics
    /// If the errors name a recording that was not [loaded](ErrorModel::load), or rates change out of order.
    #[must_use]
    pub fn build(&self, streams: &Streams) -> Line {
        let changes: Vec<_> = self.rate_changes.iter().map(|change| (change.at, change.rate)).collect();
        let errors = match self.errors {
            ErrorModel::None => None,
            _ => Some(self.errors.build(self.rate, streams)),
        };
        Line {
            serializer: Serializer::with_changes(self.rate, &changes),
            delay: self.delay,
            errors,
            errors_after: match self.errors_at {
                End::Departure => Duration::ZERO,
                End::Arrival => self.delay,
            },
            timeline: Box::new(self.errors.timeline(streams)),
            path: self.path.build(self.delay, streams),
        }
    }
}

/// What became of a frame that was put on a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transit {
    /// From when the first bit leaves to when the last has left.
    pub on_air: Range<Instant>,
    /// When the last bit has arrived.
    pub arrives_at: Instant,
    /// How it arrives.
    pub fate: Fate,
}

/// One direction of a link. Frames are sent in order and arrive in order, unless its [`path`] lets them overtake.
#[derive(Debug)]
pub struct Line {
    serializer: Serializer,
    delay: Duration,
    /// None on an error-free line, which is not asked.
    errors: Option<Box<dyn ErrorProcess>>,
    /// From a bit's departure to its meeting with the errors.
    errors_after: Duration,
    /// As it was at the start of the run.
    timeline: Box<Timeline>,
    /// None where the delay is always the same and everything may pass.
    path: Option<Box<Path>>,
}

impl Line {
    /// An error-free line.
    #[must_use]
    pub fn error_free(rate: Rate, delay: Duration) -> Self {
        Self {
            serializer: Serializer::new(rate),
            delay,
            errors: None,
            errors_after: Duration::ZERO,
            timeline: Box::new(Timeline::Open),
            path: None,
        }
    }

    /// Puts a frame of `bits` on the line at `now`, or when the frames before it have left.
    ///
    /// On a line of rate zero the frame never arrives.
    #[inline]
    pub fn send(&mut self, now: Instant, bits: u32) -> Transit {
        let on_air = self.reserve(now, bits);
        let fate = match &mut self.errors {
            None => Fate::Intact,
            // Rate zero: the frame outlasts every timeline.
            Some(_) if on_air.end == Instant::MAX => Fate::Lost,
            Some(errors) => {
                let (start, end) = (on_air.start, on_air.end);
                let after = self.errors_after;
                errors.fate(start.saturating_add(after)..end.saturating_add(after), bits)
            }
        };
        match &mut self.path {
            None => Transit { arrives_at: on_air.end.saturating_add(self.delay), on_air, fate },
            Some(path) => {
                let fate = if path.silences(&on_air) { Fate::Lost } else { fate };
                Transit { arrives_at: path.arrival(&on_air), on_air, fate }
            }
        }
    }

    /// Puts a frame of `bits` on the line at `now`, which takes its time there even if the path then refuses it; it is lost if so.
    /// For who asks for the line instead of queueing in front of it.
    #[inline]
    pub fn send_unasked(&mut self, now: Instant, bits: u32) -> Transit {
        let mut transit = self.send(now, bits);
        if self.path.is_some() && self.admit(now, u64::from(bits.div_ceil(8))) != Admission::Admitted {
            transit.fate = Fate::Lost;
        }
        transit
    }

    /// What the path does with a packet of `len` bytes in front of the queue, at `now`.
    #[inline]
    pub fn admit(&mut self, now: Instant, len: u64) -> Admission {
        self.path.as_mut().map_or(Admission::Admitted, |path| path.admit(now, len))
    }

    /// What the path did to packets, if there is anything for it to do.
    #[must_use]
    pub fn path_counters(&self) -> Option<path::Counters> {
        self.path.as_ref().map(|path| path.counters())
    }

    /// Frames that each of the error models hit, if there are several; in their order.
    #[must_use]
    pub fn hits(&self) -> &[u64] {
        self.errors.as_ref().map_or(&[], |errors| errors.hits())
    }

    /// Takes the line at `now`, or when what came before has left, for a stretch of `bits`; what becomes of them is
    /// asked with [`Line::damage`], before anything else is sent.
    #[inline]
    pub fn reserve(&mut self, now: Instant, bits: u32) -> Range<Instant> {
        let bits = match &mut self.errors {
            None => bits.into(),
            Some(errors) => {
                let start = self.serializer.free_at().max(now);
                errors.air_bits(start.saturating_add(self.errors_after), bits.into())
            }
        };
        self.serializer.send(now, bits)
    }

    /// Inverts the bits of a stretch that arrive wrong; how many.
    pub fn damage(&mut self, on_air: &Range<Instant>, bytes: &mut [u8]) -> u32 {
        let Some(errors) = &mut self.errors else { return 0 };
        let after = self.errors_after;
        errors.damage(on_air.start.saturating_add(after)..on_air.end.saturating_add(after), bytes)
    }

    /// When the last bit accepted so far has left.
    #[must_use]
    #[inline]
    pub fn free_at(&self) -> Instant {
        self.serializer.free_at()
    }

    /// When the last `bits` of what is on the air until `end` start to leave.
    #[must_use]
    pub fn start_of_last(&self, end: Instant, bits: u64) -> Instant {
        self.serializer.start_of_last(end, bits)
    }

    /// Bits per second, when the last bit accepted so far has left.
    #[must_use]
    pub fn rate(&self) -> Rate {
        self.serializer.rate()
    }

    /// Propagation delay; the first one, where it changes.
    #[must_use]
    pub fn delay(&self) -> Duration {
        self.delay
    }

    /// When the line is blocked, from the start of the run, at the end where errors happen.
    #[must_use]
    pub fn timeline(&self) -> Timeline {
        (*self.timeline).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    fn line(errors_at: End) -> Line {
        let errors = "{ periodic = { open = \"1 s\", blocked = \"100 ms\", first = \"500 ms\" } }";
        let text = format!("rate = \"1 Mbit/s\"\ndelay = \"250 ms\"\nerrors = {errors}\n");
        let config = base::config::parse::<Config>("line.toml", &text).unwrap();
        let streams = Streams {
            seed: 1,
            timeline: "sat".to_owned(),
            later: Duration::ZERO,
            line: "sat/down".to_owned(),
        };
        Config { errors_at, ..config }.build(&streams)
    }

    #[test]
    fn a_frame_waits_its_turn_and_arrives_after_the_delay() {
        let mut line = Line::error_free(Rate::from_bps(1_000_000), Duration::from_millis(250));
        let first = line.send(at(10), 5000);
        assert_eq!(
            (first.on_air.clone(), first.arrives_at, first.fate),
            (at(10)..at(15), at(265), Fate::Intact)
        );
        let second = line.send(at(11), 1000);
        assert_eq!((second.on_air, second.arrives_at), (at(15)..at(16), at(266)));
        assert_eq!(line.free_at(), at(16));
    }

    /// An obstacle from 500 to 600 ms hits what departs then, or what arrives then.
    #[test]
    fn errors_happen_at_their_end() {
        let fates = |errors_at| {
            let mut line = line(errors_at);
            [240, 260, 340, 360, 490, 510, 590, 610].map(|t| line.send(at(t), 5000).fate.is_intact())
        };
        assert_eq!(fates(End::Arrival), [true, false, false, true, true, true, true, true]);
        assert_eq!(fates(End::Departure), [true, true, true, true, true, false, false, true]);
    }

    #[test]
    fn a_line_of_rate_zero_carries_nothing() {
        let config = Config {
            rate: Rate::from_bps(0),
            rate_changes: Vec::new(),
            delay: Duration::ZERO,
            errors: ErrorModel::BitErrors { ber: 0.1.try_into().unwrap() },
            errors_at: End::Arrival,
            path: path::Config::default(),
        };
        let streams = Streams {
            seed: 1,
            timeline: "sat".to_owned(),
            later: Duration::ZERO,
            line: "sat/down".to_owned(),
        };
        let transit = config.build(&streams).send(at(1), 8);
        assert_eq!((transit.arrives_at, transit.fate), (Instant::MAX, Fate::Lost));
    }

    /// A frame gets through if the channel is open when it starts and stays so: (1 - f) exp(-(f / (1 - f)) T / d).
    /// Faulkner 2004, 4.2.1 and figure 4-10. Tolerance: five standard errors over independent realisations.
    #[test]
    fn short_blockages_hit_frames_by_their_length() {
        let frame_time = 3968.0 / 262_144.0;
        for (f, d) in [(0.1, 0.015), (0.3, 0.2), (0.5, 0.05), (0.3, 1.0)] {
            let text = format!(
                "rate = \"262144 bit/s\"\ndelay = \"250 ms\"\n\
                 errors = {{ gilbert-elliott = {{ f = {f}, d = \"{d} s\" }} }}"
            );
            let config = base::config::parse::<Config>("line.toml", &text).unwrap();
            let shares: Vec<f64> = (0..100)
                .map(|seed| {
                    let streams = Streams {
                        seed,
                        timeline: "sat".to_owned(),
                        later: Duration::ZERO,
                        line: "sat/down".to_owned(),
                    };
                    let mut line = config.build(&streams);
                    let intact = (0..5000).filter(|_| line.send(Instant::ZERO, 3968).fate.is_intact());
                    intact.count() as f64 / 5000.0
                })
                .collect();
            let mean = shares.iter().sum::<f64>() / 100.0;
            let variance = shares.iter().map(|share| (share - mean).powi(2)).sum::<f64>() / 99.0;
            let expected = (1.0 - f) * libm::exp(-(f / (1.0 - f)) * frame_time / d);
            assert!((mean - expected).abs() < 5.0 * (variance / 100.0).sqrt(), "{f} {d}: {mean} {expected}");
        }
    }
}
