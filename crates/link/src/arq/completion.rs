//! Who gets the next frame: the line over which it arrives earliest.
//!
//! Ours. A line that is free asks. It gets something only if that arrives no later this way than by waiting for another line, behind
//! all that waits: a key stroke never goes by satellite while a faster line is there, a short page leaves by the faster line alone, and of a download
//! with much behind it both get as much as they carry. Where nothing is known of the lines, each takes what there is.

use base::{Duration, Rate};

use super::lines::{LineId, MAX_LINES};

/// What is known of the lines.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Completion {
    lines: [Option<Line>; MAX_LINES],
}

#[derive(Clone, Copy, Debug)]
struct Line {
    rate: Rate,
    /// How long a frame is under way. The same unknown amount more on all lines matters to nobody.
    delay: Duration,
}

impl Completion {
    /// A line carries so much, and takes so long.
    pub(crate) fn set(&mut self, line: LineId, rate: Rate, delay: Duration) {
        self.lines[line.at()] = Some(Line { rate, delay });
    }

    /// Whether a frame of `len` bytes should leave over this line while `waiting` bytes could leave over others that `is_there`.
    pub(crate) fn is_worth(
        &self,
        line: LineId,
        len: u64,
        waiting: u64,
        is_there: impl Fn(LineId) -> bool,
    ) -> bool {
        let Some(this) = self.lines[line.at()] else { return true };
        let arrival = this.delay + this.rate.time_for(len * 8);
        let others =
            self.lines.iter().zip(0..).filter_map(|(other, number)| Some((LineId::new(number)?, (*other)?)));
        others
            .filter(|(other, _)| *other != line && is_there(*other))
            .all(|(_, other)| arrival <= other.delay + other.rate.time_for((len + waiting) * 8))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(number: u8) -> LineId {
        LineId::new(number).unwrap()
    }

    /// 20 Mbit/s at 25 ms and 50 Mbit/s at 300 ms: the second is worth it from 275 ms of the first one's line on.
    #[test]
    fn a_slow_line_is_worth_it_once_much_waits() {
        let mut completion = Completion::default();
        assert!(completion.is_worth(line(1), 1400, 0, |_| true), "nothing is known");
        for (number, (mbps, millis)) in [(20, 25), (50, 300)].into_iter().enumerate() {
            let rate = Rate::from_bps(mbps * 1_000_000);
            completion.set(line(number as u8), rate, Duration::from_millis(millis));
        }
        let is_worth = |number, waiting| completion.is_worth(line(number), 1400, waiting, |_| true);
        assert!(is_worth(0, 0) && is_worth(0, 1 << 30));
        // 275 ms, and the 224 us that a frame takes there, less 560 us here.
        let enough = 275 * 20_000 / 8 - 1400 * 3 / 5;
        assert_eq!([enough - 1, enough].map(|waiting| is_worth(1, waiting)), [false, true]);
        assert!(completion.is_worth(line(1), 1400, 0, |other| other != line(0)), "the other one is dark");
    }
}
