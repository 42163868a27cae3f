//! The grid of what the paper leaves unsaid.
//!
//! The default point is chosen from the text and its time, not from the outcome: 2 Mbit/s is a satellite link of 2001,
//! 64 KiB the largest window without scaling, which the paper does not mention; an acknowledgement for each segment is
//! what section 2 describes ("doubled for every round trip"), fast recovery is that of RFC 2581, which it cites, and the
//! initial threshold is "arbitrarily high" as section 3.2 says; section 3.1 names the receiver's window as another one.

use base::Rate;
use base::units::Size;

use crate::reproduce::Point;
use crate::scenario::Override;

/// A place on each axis.
#[derive(Clone, Copy, PartialEq)]
struct Settings {
    rate: &'static str,
    window: &'static str,
    /// The bottleneck's queue in products of rate and [`RTT`].
    queue: f64,
    /// Their name, and the value of `acknowledgements.delay`.
    acks: (&'static str, &'static str),
    recovery: &'static str,
    ssthresh: &'static str,
}

const RATES: [&str; 5] = ["1.5 Mbit/s", "2 Mbit/s", "5 Mbit/s", "10 Mbit/s", "45 Mbit/s"];
const WINDOWS: [&str; 3] = ["64 KiB", "256 KiB", "1 MiB"];
const QUEUES: [f64; 3] = [0.5, 1.0, 2.0];
const ACKS: [(&str, &str); 2] = [("each", "off"), ("delayed", "on")];
const RECOVERIES: [&str; 2] = ["reno", "sack"];
/// The slow start threshold of a new connection or ensemble: arbitrarily high, or the receiver's window.
const SSTHRESHES: [&str; 2] = ["high", "window"];

const DEFAULT: Settings = Settings {
    rate: RATES[1],
    window: WINDOWS[0],
    queue: 1.0,
    acks: ACKS[0],
    recovery: RECOVERIES[0],
    ssthresh: SSTHRESHES[0],
};

/// Seconds of a round trip without queueing.
const RTT: f64 = 0.5;

/// Every point, the default one first; a coarse grid if there is little time.
pub(super) fn points(quick: bool) -> Vec<Point> {
    let mut all = vec![DEFAULT];
    for rate in RATES {
        for window in WINDOWS {
            for queue in QUEUES {
                for acks in ACKS {
                    for recovery in RECOVERIES {
                        let settings = |ssthresh| Settings { rate, window, queue, acks, recovery, ssthresh };
                        all.extend(SSTHRESHES.map(settings));
                    }
                }
            }
        }
    }
    let coarse = |settings: &Settings| {
        [RATES[1], RATES[3]].contains(&settings.rate)
            && settings.window != WINDOWS[1]
            && settings.queue == 1.0
            && settings.recovery == RECOVERIES[0]
    };
    let wanted = |(place, settings): &(usize, Settings)| {
        *place == 0 || (*settings != DEFAULT && (!quick || coarse(settings)))
    };
    all.into_iter().enumerate().filter(wanted).map(|(_, settings)| point(settings)).collect()
}

fn point(settings: Settings) -> Point {
    let Settings { rate, window, queue, acks: (acks, delayed), recovery, ssthresh } = settings;
    let high = ssthresh == SSTHRESHES[0];
    let bps = rate.parse::<Rate>().expect("a rate of the grid").as_bps();
    let bytes = Size((bps as f64 * RTT / 8.0 * queue) as u64);
    let set = |key: &str, value: String| -> Override {
        format!("{key}={value}").parse().expect("a setting of the grid")
    };
    let mut overrides = vec![
        set("link.satellite.channel.rate", rate.to_owned()),
        set("link.satellite.queue.drop-tail.bytes", bytes.to_string()),
        set("tcp.window.receive-buffer", window.to_owned()),
        set("tcp.acknowledgements.delay", delayed.to_owned()),
        set("tcp.recovery", recovery.to_owned()),
    ];
    if !high {
        overrides.push(set("tcp.window.initial-ssthresh", window.to_owned()));
    }
    Point {
        name: format!(
            "{rate}, window {window}, queue {queue} BDP, ACKs {acks}, {recovery}, initial ssthresh {ssthresh}"
        ),
        coordinates: vec![
            ("rate", rate.to_owned()),
            ("window", window.to_owned()),
            ("queue", format!("{queue} BDP")),
            ("ACKs", acks.to_owned()),
            ("recovery", recovery.to_owned()),
            ("ssthresh", ssthresh.to_owned()),
        ],
        overrides,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_point_comes_first_and_once() {
        for (quick, count) in [(false, 360), (true, 16)] {
            let names: Vec<String> = points(quick).into_iter().map(|point| point.name).collect();
            assert_eq!(
                names[0],
                "2 Mbit/s, window 64 KiB, queue 1 BDP, ACKs each, reno, initial ssthresh high"
            );
            assert_eq!(names.len(), count);
            assert!(names.iter().enumerate().all(|(place, name)| !names[..place].contains(name)));
        }
    }

    #[test]
    fn the_queue_is_a_product_of_rate_and_round_trip() {
        let overrides = point(DEFAULT).overrides;
        assert_eq!(overrides[1].to_string(), "link.satellite.queue.drop-tail.bytes=\"125 kB\"");
    }
}
