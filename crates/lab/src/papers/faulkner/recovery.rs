//! Section 4.1.2, figures 4-5 to 4-7: what happens when a blockage ends.
//!
//! The thesis does not say how long its periodic channel is open, nor how large TCP's receive window was. The channel is open
//! for 10 s here. Verdicts rest on the baseline's 256 KiB; what a window of 64 KiB, as common then, would have given is told
//! beside them, since it decides whether TCP's timer expires in a blockage of 5 s at all.

mod choreography;
mod hidden;
mod idle;
mod periodic;
mod pictures;
mod trace;
mod waste;

use base::config::ConfigError;

use super::Topic;
use super::setting::{Channel, Scheme, scenario};
use crate::report::Figure;
use crate::reproduce::{Experiment, Ruling, Samples};
use crate::scenario::Scenario;

pub(super) const TOPIC: Topic =
    Topic { experiments: &EXPERIMENTS, rule, remark, cells: periodic::cells, figures };

const EXPERIMENTS: [Experiment; 5] =
    [periodic::EXPERIMENT, idle::EXPERIMENT, choreography::EXPERIMENT, hidden::EXPERIMENT, waste::EXPERIMENT];

/// Seconds of a blockage, but where several lengths are compared.
const BLOCKED: f64 = 5.0;
/// Realisations with the blockage's start jittered.
const JITTERED: u32 = 25;

/// TCP's receive window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Window {
    /// The baseline's 256 KiB.
    Baseline,
    /// As large as it can be without scaling, but for a byte.
    Small,
}

impl Window {
    const fn name(self) -> &'static str {
        match self {
            Self::Baseline => "256 KiB",
            Self::Small => "64 KiB",
        }
    }

    fn setting(self) -> String {
        format!("tcp.window.receive-buffer={}", self.name())
    }
}

/// A scheme with a receive window on a channel; if it is jittered the transfer opens up to a second later, so that blockages
/// meet it anywhere in its course.
fn setup(
    scheme: Scheme,
    window: Window,
    is_jittered: bool,
    channel: &Channel,
    seconds: f64,
) -> Result<Scenario, ConfigError> {
    let mut set = vec![window.setting()];
    if is_jittered {
        set.push("traffic.download.bulk.jitter=1 s".to_owned());
    }
    scenario(scheme, channel, seconds, &set)
}

fn rule(claim: &str, samples: &Samples) -> Option<Ruling> {
    match claim {
        periodic::LEAD => Some(periodic::lead_grows(samples)),
        periodic::FIRST_SLOWER => Some(periodic::first_is_slower(samples)),
        periodic::TWICE => Some(periodic::twice_as_fast(samples)),
        periodic::RECONNECTION => Some(periodic::reconnects(samples)),
        idle::CLAIM => Some(idle::idles(samples)),
        choreography::CLAIM => Some(choreography::in_order(samples)),
        hidden::CLAIM => Some(hidden::hides(samples)),
        waste::CLAIM => Some(waste::is_small(samples)),
        _ => None,
    }
}

fn remark(claim: &str) -> Option<&'static str> {
    match claim {
        periodic::LEAD => Some(
            "The queue has overflowed by the time of the first blockage. Plain TCP probably mends that at once with what \
             the blockage took; TCP-LL, which lost nothing else, spends the next cycle on it, and its application waits for \
             the gaps. With a receive window of 64 KiB, which the queue can hold, TCP-LL leads after every blockage, and \
             further each time.",
        ),
        periodic::FIRST_SLOWER => Some(
            "TCP does send its whole flight again after the first blockage, and RTO grows. But ten open seconds bring it \
             enough samples to forget the blockage within a few cycles, and it times out and sends all again. With 64 KiB it \
             does so in every cycle.",
        ),
        choreography::CLAIM => Some(
            "RTO is longer than the blockage, probably for what overflowing the queue has done to it, so TCP does not probe. With 64 \
             KiB it probes once, and the link sends that at once; but the first acknowledgements of the reopened link flag \
             what is missing (G) before TCP, which goes back over its flight first, has new data for it (E, F).",
        ),
        waste::CLAIM => Some(
            "Where blockages are rare the link has little to send again, and much of what TCP does is what the queue dropped. \
             With many connections more of it is needless: probably since each has a timer of its own, which fewer samples \
             adapt.",
        ),
        _ => None,
    }
}

fn figures(samples: &Samples) -> Vec<Figure> {
    let mut figures = Vec::new();
    if samples.has(periodic::NAME) {
        figures.extend(pictures::progress(samples));
    }
    if samples.has(choreography::NAME) {
        figures.extend(pictures::sequences(samples));
    }
    figures
}
