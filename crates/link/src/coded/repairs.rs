//! When a repair is worth a turn of the line, and which frames it should be of.
//!
//! Ours. Of what the sender knows: `M` frames were lost and have not come since, `n` are on their way for the
//! first time, `m` repairs are on theirs, and of all frames a share of `p` is lost. A repair makes good for any one of the frames in it.
//!
//! | frames waiting | a repair for what was lost if | a repair for what is on its way if |
//! |---|---|---|
//! | more than 8 | M - m >= 1: a lost frame as it is | never |
//! | 3 to 8 | M - (1 - p) m >= 1 | never |
//! | 1 or 2 | M - (1 - p) m + s(m) >= 1 | M + n - (1 - p) (n + m) >= 1 |
//! | none | the same | of the newest n and the m behind them more than m are lost too often |
//!
//! with `s(x)` the standard deviation of how many of x arrive; too often is one time in a thousand, one in a hundred in the once class, where a loss is not
//! repaired later, and one in fifty where a sum delays other classes (`Risk`). While others wait, each repair that comes too much delays them; while none does, one too
//! many costs nobody anything. Of `m` only those repairs count that reach back to a frame. A repair for what was lost ends as early as it can be of use: at the first frame with more missing up to it than
//! repairs on their way will make good. What is solved by few sums is solved soon.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::arq::{LineId, MAX_WINDOW, PerLine, Transmission};

use super::losses::Sender;

/// Repairs on their way.
#[derive(Debug, Default)]
pub(super) struct Repairs {
    /// For each line the serial of each, oldest first, and what is in it.
    by_serial: Vec<VecDeque<(u64, Reach)>>,
    /// How many have each reach, of those that may still be of use.
    by_end: BTreeMap<Reach, u32>,
    /// How many of these begin at each frame.
    by_start: BTreeMap<u64, u32>,
    /// How many these are.
    useful: u64,
    /// Transmissions until it counts as if nothing had ever been lost.
    wary_until: u64,
}

/// The frames in a repair: the last and the first. A sum holds so many frames at most, so on a long link it does not reach back to all
/// that are on their way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Reach {
    pub(super) end: u64,
    pub(super) start: u64,
}

/// What the next repair should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    /// This frame, which was lost.
    Again(u64),
    /// A sum of what was lost, up to this frame.
    Lost(u64),
    /// A sum of what the receiver may lack, up to the newest frame.
    Newest,
}

impl Repairs {
    /// A repair of these frames leaves.
    pub(super) fn on_sent(&mut self, Transmission { line, serial }: Transmission, reach: Reach) {
        let place = usize::from(line.number());
        if self.by_serial.len() <= place {
            self.by_serial.resize_with(place + 1, VecDeque::new);
        }
        self.by_serial[place].push_back((serial, reach));
        *self.by_end.entry(reach).or_default() += 1;
        *self.by_start.entry(reach.start).or_default() += 1;
        self.useful += 1;
        if self.by_serial[place].len() > MOST_REPAIRS {
            self.forget_first(place);
        }
    }

    fn forget_first(&mut self, place: usize) {
        if let Some((_, reach)) = self.by_serial.get_mut(place).and_then(VecDeque::pop_front)
            && let Some(count) = self.by_end.get_mut(&reach)
        {
            *count -= 1;
            if *count == 0 {
                self.by_end.remove(&reach);
            }
            self.forget(reach.start, 1);
        }
    }

    /// So many that begin at this frame are of no use any more.
    fn forget(&mut self, start: u64, count: u32) {
        self.useful -= u64::from(count);
        if let Some(all) = self.by_start.get_mut(&start) {
            *all -= count;
            if *all == 0 {
                self.by_start.remove(&start);
            }
        }
    }

    /// The transmissions `heard` have come, and all before them over their lines that ever will; the receiver has all frames before `base`.
    pub(super) fn on_heard(&mut self, heard: &PerLine, base: u64) {
        for (line, heard) in heard.iter() {
            let place = usize::from(line.number());
            let is_over = |(serial, _): &(u64, Reach)| *serial <= heard;
            while self.by_serial.get(place).and_then(VecDeque::front).is_some_and(is_over) {
                self.forget_first(place);
            }
        }
        while let Some(entry) = self.by_end.first_entry()
            && entry.key().end < base
        {
            let (reach, count) = entry.remove_entry();
            self.forget(reach.start, count);
        }
    }

    /// Nothing that has left over a line comes any more, as far as is known.
    pub(super) fn lose_over(&mut self, line: LineId) {
        let place = usize::from(line.number());
        while self.by_serial.get(place).is_some_and(|repairs| !repairs.is_empty()) {
            self.forget_first(place);
        }
    }

    /// Something was lost, as is known after so many transmissions.
    pub(super) const fn on_loss(&mut self, transmissions: u64) {
        self.wary_until = transmissions + WARINESS;
    }

    /// What was taken for lost had been overtaken, and nothing is.
    pub(super) const fn on_false_alarm(&mut self) {
        self.wary_until = 0;
    }

    /// How often a frame is lost.
    fn loss(&self, sender: &Sender, transmissions: u64) -> f64 {
        let least = if transmissions < self.wary_until { LEAST_LOSS } else { 0.0 };
        f64::from(sender.loss()).clamp(least, MOST_LOSS) / 256.0
    }

    pub(super) fn reset(&mut self) {
        *self = Self::default();
    }

    /// The repair that is worth a turn now, while so many frames wait.
    pub(super) fn wanted(
        &self,
        sender: &Sender,
        transmissions: u64,
        waiting: u64,
        risk: Risk,
    ) -> Option<Wanted> {
        let (missing, repairs) = (sender.policy.missing(), self.useful);
        if waiting > MANY {
            let flagged = sender.first_flagged()?;
            let is_lacking = missing.len() as u64 > repairs || self.first_short(missing, 0.0, 0.0).is_some();
            return is_lacking.then_some(Wanted::Again(flagged));
        }
        let loss = self.loss(sender, transmissions);
        let deviations = if waiting <= FEW { 1.0 } else { 0.0 };
        if let Some(end) = self.first_short(missing, loss, deviations) {
            return Some(Wanted::Lost(end));
        }
        let on_their_way = sender.outstanding() - missing.len() as u64;
        if waiting > FEW || on_their_way == 0 || loss == 0.0 {
            return None;
        }
        let is_thin = if waiting == 0 {
            // A repair ends with the newest frame that has not come: one behind it would count none for what is before it, for ever.
            self.is_thin(sender.newest()?, on_their_way, loss, risk)
        } else {
            let lacking = missing.len() as u64 + on_their_way;
            let mut tally = Tally { lacking: lacking as f64, count: 0.0, loss };
            tally.expect(on_their_way + repairs);
            tally.lacking >= 1.0
        };
        is_thin.then_some(Wanted::Newest)
    }

    /// The first of the missing frames with more missing up to it than the repairs that reach it, or one before it, will make good.
    fn first_short(&self, missing: &BTreeSet<u64>, loss: f64, deviations: f64) -> Option<u64> {
        let mut starts = self.by_start.iter().peekable();
        let (mut tally, mut surplus) = (Tally { lacking: 0.0, count: 0.0, loss }, 0);
        missing.iter().enumerate().find_map(|(before, frame)| {
            while let Some((_, count)) = starts.next_if(|(start, _)| *start <= frame) {
                tally.expect((*count).into());
                surplus = tally.surplus(deviations);
            }
            (before >= surplus).then_some(*frame)
        })
    }

    /// Whether among the newest frames, of so many that are on their way, more may be lost than repairs behind them make good.
    fn is_thin(&self, newest: u64, on_their_way: u64, loss: f64, risk: Risk) -> bool {
        let mut repairs = 0;
        let ends = self.by_end.iter().rev().map(|(reach, count)| (reach.end, *count));
        for (end, count) in ends.chain([(0, 0)]).take(MOST) {
            let frames = newest.saturating_sub(end).min(on_their_way);
            if is_risky(frames, repairs, loss, risk) {
                return true;
            }
            if frames == on_their_way {
                return false;
            }
            repairs += u64::from(count);
        }
        false
    }
}

/// What is missing up to some frame.
struct Tally {
    /// Frames, less those that are expected of what is on its way.
    lacking: f64,
    /// Transmissions on their way.
    count: f64,
    loss: f64,
}

impl Tally {
    fn expect(&mut self, transmissions: u64) {
        self.lacking -= (1.0 - self.loss) * transmissions as f64;
        self.count += transmissions as f64;
    }

    /// Of further frames, how many would be made good, with so many standard deviations to spare.
    fn surplus(&self, deviations: f64) -> usize {
        (-self.lacking - deviations * self.deviation()).max(0.0).ceil() as usize
    }

    fn deviation(&self) -> f64 {
        (self.count * self.loss * (1.0 - self.loss)).sqrt()
    }
}

/// Whether, of so many frames and repairs for them, more are lost than there are repairs, too often for an idle line.
fn is_risky(frames: u64, repairs: u64, loss: f64, risk: Risk) -> bool {
    let (count, spare) = ((frames + repairs) as f64, repairs as f64);
    let mean = count * loss;
    if mean > MANY_LOSSES {
        return mean + risk.deviations * (mean * (1.0 - loss)).sqrt() >= spare + 1.0;
    }
    // The binomial distribution, term by term from no loss on.
    let mut term = power(1.0 - loss, frames + repairs);
    let mut enough = term;
    for lost in 1..=repairs {
        term *= (count - lost as f64 + 1.0) / lost as f64 * loss / (1.0 - loss);
        enough += term;
    }
    1.0 - enough > risk.share
}

/// `base` times itself, by squaring: a turn of the line asks for many of these, and `f64::powi` is not the same on every machine.
fn power(mut base: f64, mut exponent: u64) -> f64 {
    let mut power = 1.0;
    while exponent > 0 {
        if exponent % 2 == 1 {
            power *= base;
        }
        base *= base;
        exponent /= 2;
    }
    power
}

/// How often more may be lost than an idle line makes good.
#[derive(Clone, Copy, Debug)]
pub(super) struct Risk {
    share: f64,
    /// Standard deviations that leave about so much beyond.
    deviations: f64,
}

/// What is sent again if necessary. Ours: an idle line costs nobody, and who waits for a page has hundreds of packets.
pub(super) const REPEATED: Risk = Risk { share: 0.001, deviations: 3.0 };

/// What others wait behind. Ours: each repair that comes too much delays them.
pub(super) const SHARED: Risk = Risk { share: 0.02, deviations: 2.0 };

/// What is sent once. Ours: a call is as good with one packet in a hundred missing (ITU-T G.113, appendix I), and its repairs cost others.
pub(super) const ONCE: Risk = Risk { share: 0.01, deviations: 2.3 };

/// Losses, on average, from which on the normal distribution is near enough.
const MANY_LOSSES: f64 = 16.0;

/// Transmissions. Ours: where one in a thousand is lost, 49 of 50 losses come within so many of the last.
const WARINESS: u64 = 4096;

/// In 256ths. Ours: a report that says 0 may mean anything up to one.
const LEAST_LOSS: f64 = 0.5;

/// Frames that wait: with more, no repair goes out but for what is known to be lost.
pub(super) const MANY: u64 = 8;

/// Frames that wait: up to so few, repairs go out for what may be lost.
const FEW: u64 = 2;

/// Repairs on their way at most, the oldest of which are forgotten: a blocked line gets them without end.
const MOST_REPAIRS: usize = 2 * MAX_WINDOW as usize;

/// Of the newest repairs, as many are looked at.
const MOST: usize = 256;

/// In 256ths: where more is lost, no number of repairs makes good for it.
const MOST_LOSS: f64 = 192.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_risk_is_the_binomial_distribution_s() {
        assert!((power(0.9, 13) - 0.254_186_582_832_9).abs() < 1e-12);
        assert!((power(0.5, 0) - 1.0).abs() < f64::EPSILON);
        // One in a hundred is lost: of 4 and 1 repair 2 are 0.98 times in a thousand, of 5 and 1 1.46 times.
        assert!(
            is_risky(1, 0, 0.01, REPEATED)
                && !is_risky(4, 1, 0.01, REPEATED)
                && is_risky(5, 1, 0.01, REPEATED)
        );
        // Where the normal distribution takes over, it says about the same.
        let enough = |frames| (0..).find(|repairs| !is_risky(frames, *repairs, 0.1, REPEATED)).unwrap();
        assert!(enough(150).abs_diff(enough(120) * 150 / 120) <= 4, "{} {}", enough(120), enough(150));
    }

    /// A blocked line gets fillers for ever.
    #[test]
    fn repairs_that_nobody_hears_of_take_bounded_memory() {
        let mut repairs = Repairs::default();
        for serial in 0..MOST_REPAIRS as u64 + 1000 {
            repairs.on_sent(Transmission::first(serial), Reach { end: serial / 3, start: serial / 6 });
        }
        assert_eq!(repairs.by_serial[0].len(), MOST_REPAIRS);
        let of = |counts: &mut dyn Iterator<Item = &u32>| counts.map(|count| *count as usize).sum::<usize>();
        assert_eq!(of(&mut repairs.by_end.values()), MOST_REPAIRS);
        assert_eq!(of(&mut repairs.by_start.values()), MOST_REPAIRS);
        assert_eq!(repairs.useful, MOST_REPAIRS as u64);
        repairs.on_heard(&PerLine::first(u64::MAX), 0);
        assert!(repairs.by_end.is_empty() && repairs.by_start.is_empty() && repairs.useful == 0);
    }

    /// On a long link sums of the newest frames do not reach what is found to be lost a round trip later.
    #[test]
    fn a_repair_counts_for_what_is_in_it() {
        let mut repairs = Repairs::default();
        for serial in 0..40 {
            repairs.on_sent(Transmission::first(serial), Reach { end: 1000 + serial, start: 744 + serial });
        }
        let short = |repairs: &Repairs, missing: &[u64]| {
            repairs.first_short(&missing.iter().copied().collect(), 0.1, 0.0)
        };
        assert_eq!(short(&repairs, &[500]), Some(500));
        assert_eq!(short(&repairs, &[500, 990]), Some(500));
        assert_eq!(short(&repairs, &[800, 990]), None);
        repairs.on_sent(Transmission::first(40), Reach { end: 500, start: 500 });
        repairs.on_sent(Transmission::first(41), Reach { end: 500, start: 500 });
        assert_eq!(short(&repairs, &[500, 990]), None);
        // What ends before the first frame that is missing has done all that it can.
        repairs.on_heard(&PerLine::first(0), 600);
        assert_eq!((repairs.useful, short(&repairs, &[700])), (39, Some(700)));
    }
}
