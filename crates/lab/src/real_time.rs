//! The experiments of figures 4-4 and 4-15 of Faulkner 2004 (4.1.2, 4.3.1) in a size that real time allows: the kernel's
//! TCP makes them over two gateways and an emulator, and the lab beside it on the same realisations.
//!
//! Deviations: a handful of seeds instead of 25 runs a point, minutes instead of at least 150 channel periods, and the TCP
//! of today's kernel with the preset `linux` beside it instead of Linux 2.4's. The lab's link is called as the
//! emulator's channel and its transfer opens at the same time, so that blockages fall at the same times.

mod drawing;

use std::io;
use std::path::Path;

use base::config::ConfigError;
use base::{Duration, Rate};
use rayon::prelude::*;
use serde::Serialize;

use crate::run::{self, Watch};
use crate::scenario::{Scenario, Suite};

pub use drawing::{draw, draw_table};

/// Rate of the line in both directions: what the thesis calls 256 kbps (66 frames a second, 4.3.1).
pub const RATE: Rate = Rate::from_bps(262_144);
/// Propagation delay, one way (4.1).
pub const DELAY: Duration = Duration::from_millis(250);
/// Packets that the IP queue at each end of the link holds, as in Linux of the time.
pub const QUEUE: u32 = 100;
/// Bits of a full frame on the line (3.2).
pub const FRAME_BITS: u64 = 3968;
/// Frames of the baseline's window (4.1).
const WINDOW: u32 = 512;
/// Blocked fraction of figure 4-15.
const F_OF_WINDOWS: f64 = 0.3;

/// One of the two figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Figure {
    /// 4-4: throughput against the blocked fraction, with and without link ARQ.
    Blockage,
    /// 4-15: throughput against the window of the link ARQ at a blocked fraction of 0.3.
    Window,
}

/// What carries the packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Scheme {
    /// One packet a frame, nothing repaired.
    #[serde(rename = "TCP")]
    Tcp,
    /// COTMLL below TCP.
    #[serde(rename = "TCP-LL")]
    TcpLl,
}

/// One run, to be made by the kernel's TCP and in the lab.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Case {
    /// What carries the packets.
    pub scheme: Scheme,
    /// Blocked fraction of the time.
    pub f: f64,
    /// Mean duration of a blockage, in seconds.
    pub d: f64,
    /// COTMLL's window in frames.
    pub window: u32,
    /// Of the realisation.
    pub seed: u64,
}

/// When runs begin and end.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    /// When the transfer opens, from the beginning of the channel's realisation.
    pub opens: Duration,
    /// How long it lasts from then.
    pub duration: Duration,
}

/// What the lab makes of a case.
#[derive(Clone, Copy, Debug)]
pub struct Outcome {
    /// Application bits received a second, as a fraction of the line's rate.
    pub throughput: f64,
    /// What the realisation's open time less the framing would have carried, likewise.
    pub bound: f64,
    /// Segments that the sender sent again.
    pub retransmissions: u64,
}

/// A case and what came of it twice; throughput is in application bits a second as a fraction of the line's rate.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Point {
    /// What carried the packets.
    pub scheme: Scheme,
    /// Place on the figure's axis: blocked fraction, or seconds of window.
    pub x: f64,
    /// Blocked fraction of the time.
    pub f: f64,
    /// Mean duration of a blockage, in seconds.
    pub d: f64,
    /// COTMLL's window in frames.
    pub window: u32,
    /// Of the realisation.
    pub seed: u64,
    /// Of the kernel's TCP.
    pub kernel: f64,
    /// Of ours in the lab.
    pub lab: f64,
    /// What the realisation's open time less the framing would have carried.
    pub bound: f64,
    /// How long the transfer lasted.
    pub seconds: f64,
}

impl Figure {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Blockage, Self::Window];

    /// Its number in the thesis.
    #[must_use]
    pub const fn number(self) -> &'static str {
        match self {
            Self::Blockage => "4-4",
            Self::Window => "4-15",
        }
    }

    /// The figure with this number.
    #[must_use]
    pub fn numbered(number: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|figure| figure.number() == number)
    }

    /// Places on its axis: blocked fractions, or windows in frames.
    #[must_use]
    pub const fn places(self) -> &'static [f64] {
        match self {
            Self::Blockage => &[0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.7],
            Self::Window => &[16.0, 32.0, 53.0, 66.0, 92.0, 132.0, 200.0, 512.0],
        }
    }

    /// Why there can be nothing at this place, if there cannot.
    #[must_use]
    pub fn complaint(self, place: f64) -> Option<String> {
        let (fits, allowed) = match self {
            Self::Blockage => ((0.0..1.0).contains(&place), "blocked fractions from 0 to below 1"),
            Self::Window => {
                let most = f64::from(WINDOW);
                ((1.0..=most).contains(&place) && place.fract() == 0.0, "windows of 1 to 512 frames")
            }
        };
        (!fits).then(|| format!("nothing at {place} in figure {}; allowed are {allowed}", self.number()))
    }

    /// All runs for these places, mean durations of a blockage in seconds, and seeds; the schemes of one realisation
    /// follow each other, so that they meet the same load of the machine.
    #[must_use]
    pub fn cases(self, places: &[f64], durations: &[f64], seeds: &[u64]) -> Vec<Case> {
        let mut cases = Vec::new();
        for &seed in seeds {
            for &d in durations {
                for &place in places {
                    match self {
                        Self::Blockage => cases.extend([Scheme::Tcp, Scheme::TcpLl].map(|scheme| Case {
                            scheme,
                            f: place,
                            d,
                            window: WINDOW,
                            seed,
                        })),
                        Self::Window => {
                            let (scheme, window) = (Scheme::TcpLl, place as u32);
                            cases.push(Case { scheme, f: F_OF_WINDOWS, d, window, seed });
                        }
                    }
                }
            }
        }
        cases
    }

    fn x(self, case: &Case) -> f64 {
        match self {
            Self::Blockage => case.f,
            Self::Window => RATE.time_for(u64::from(case.window) * FRAME_BITS).as_secs_f64(),
        }
    }

    /// The point of a case for which the `kernel` reached this throughput.
    #[must_use]
    pub fn point(self, case: &Case, kernel: f64, lab: Outcome, span: Span) -> Point {
        Point {
            scheme: case.scheme,
            x: self.x(case),
            f: case.f,
            d: case.d,
            window: case.window,
            seed: case.seed,
            kernel,
            lab: lab.throughput,
            bound: lab.bound,
            seconds: span.duration.as_secs_f64(),
        }
    }
}

impl Scheme {
    /// As the thesis calls it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tcp => "TCP",
            Self::TcpLl => "TCP-LL",
        }
    }
}

impl Case {
    /// What goes wrong on the channel, as `emulate --errors` takes it.
    #[must_use]
    pub fn errors(&self) -> String {
        if self.f == 0.0 {
            return "none".to_owned();
        }
        format!("gilbert-elliott={{f={},d=\"{} s\"}}", self.f, self.d)
    }

    /// The link's protocol and queue, as lines of TOML.
    #[must_use]
    pub fn link(&self) -> String {
        let protocol = match self.scheme {
            Scheme::Tcp => "\"plain\"".to_owned(),
            Scheme::TcpLl => format!("{{ cotmll-thesis = {{ window = {} }} }}", self.window),
        };
        format!("protocol = {protocol}\nqueue = {{ drop-tail = {{ packets = {QUEUE} }} }}\n")
    }

    /// This case as a scenario of the lab, with `tcp` as lines of a `[tcp]` table and a link called `link`; `span`
    /// says when the transfer opens and how long it lasts.
    ///
    /// # Errors
    /// `tcp` says something that is not allowed.
    pub fn scenario(&self, tcp: &str, link: &str, span: Span) -> Result<Scenario, ConfigError> {
        let errors = self.errors();
        let errors = if errors == "none" { "\"none\"".to_owned() } else { format!("{{ {errors} }}") };
        let text = format!(
            "name = \"{scheme}\"\nduration = \"{end} s\"\nseed = {seed}\n[tcp]\n{tcp}\n\
             [link.{link}]\nends = [\"hub\", \"terminal\"]\n{protocol}\
             [link.{link}.channel]\nrate = \"{rate} bit/s\"\ndelay = \"{delay} ms\"\nerrors = {errors}\n\
             [traffic.transfer.bulk]\nfrom = \"hub\"\nto = \"terminal\"\nopened-by = \"sender\"\nstart = \"{start} s\"\n",
            scheme = self.scheme.name(),
            end = (span.opens + span.duration).as_secs_f64(),
            seed = self.seed,
            protocol = self.link(),
            rate = RATE.as_bps(),
            delay = DELAY.as_millis(),
            start = span.opens.as_secs_f64(),
        );
        Ok(Suite::parse("the lab's scenario", &text, Path::new(""), &[])?.scenario)
    }
}

/// Runs every case in the lab, as [`Case::scenario`] has it; what comes of them, in their order.
///
/// # Errors
/// `tcp` says something that is not allowed; the kind is `InvalidInput` then.
pub fn measure(cases: &[Case], tcp: &str, link: &str, span: Span) -> io::Result<Vec<Outcome>> {
    let rate = RATE.as_bps() as f64;
    let one = |case: &Case| {
        let wrong = |error: ConfigError| io::Error::new(io::ErrorKind::InvalidInput, error.to_string());
        let scenario = case.scenario(tcp, link, span).map_err(wrong)?;
        let run = run::run(case.scheme.name(), &scenario, case.seed, &Watch::default())?;
        Ok(Outcome {
            throughput: run.bytes as f64 * 8.0 / span.duration.as_secs_f64() / rate,
            bound: run.bound_bps / rate,
            retransmissions: run.transfers.iter().map(|transfer| transfer.retransmissions).sum(),
        })
    };
    cases.par_iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPAN: Span = Span { opens: Duration::from_secs(2), duration: Duration::from_secs(60) };

    #[test]
    fn places_have_their_cases() {
        let cases = Figure::Blockage.cases(&[0.0, 0.3], &[1.0], &[1, 2]);
        assert_eq!(cases.len(), 2 * 2 * 2);
        assert!(cases.chunks(2).all(|pair| (pair[0].f, pair[0].seed) == (pair[1].f, pair[1].seed)));
        let cases = Figure::Window.cases(Figure::Window.places(), &[0.6, 1.0], &[1]);
        assert_eq!((cases.len(), cases[3].window), (16, 66));
        assert!(cases.iter().all(|case| case.scheme == Scheme::TcpLl));
        assert!((Figure::Window.x(&cases[3]) - 0.999).abs() < 1e-3, "66 frames are a second");
        for figure in Figure::ALL {
            assert_eq!(Figure::numbered(figure.number()), Some(figure));
            assert!(figure.places().iter().all(|place| figure.complaint(*place).is_none()));
        }
        assert!(Figure::Window.complaint(1.5).is_some() && Figure::Blockage.complaint(1.0).is_some());
    }

    #[test]
    fn link_arq_wins_where_the_channel_is_blocked_and_costs_framing_where_not() {
        let cases = Figure::Blockage.cases(&[0.0, 0.3], &[1.0], &[3, 4]);
        let outcomes = measure(&cases, "preset = \"linux\"", "sat", SPAN).unwrap();
        let mean = |f: f64, scheme: Scheme| {
            let own = cases.iter().zip(&outcomes).filter(|(case, _)| case.f == f && case.scheme == scheme);
            own.map(|(_, outcome)| outcome.throughput).sum::<f64>() / 2.0
        };
        let (clear, clear_ll) = (mean(0.0, Scheme::Tcp), mean(0.0, Scheme::TcpLl));
        assert!(clear > clear_ll && clear_ll > 0.8);
        let (blocked, blocked_ll) = (mean(0.3, Scheme::Tcp), mean(0.3, Scheme::TcpLl));
        assert!(blocked_ll > 1.2 * blocked && blocked > 0.0);
        assert!(outcomes.iter().all(|outcome| outcome.throughput <= outcome.bound));
    }

    #[test]
    fn a_wrong_setting_is_refused() {
        let cases = Figure::Window.cases(&[66.0], &[1.0], &[1]);
        let error = measure(&cases, "preset = \"windows\"", "sat", SPAN).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    }
}
