//! Was a time-out needed? F-RTO (RFC 5682), basic and SACK-enhanced, and the Eifel detection (RFC 3522).
//!
//! While F-RTO has not decided, of what is outstanding only the first segment counts as lost, and two new segments
//! go out instead of others again.
//!
//! Deviations:
//! - a time-out during fast recovery is taken as needed: what was sent again would answer for what was not;
//! - step 2b of RFC 5682 without new data, or without room for it: the time-out is taken as needed, the
//!   first of the choices that it leaves;
//! - step 1 of RFC 5682, 3.1, leaves the scoreboard as it is, as RFC 6675 (5.1) allows: what the peer had before the
//!   time-out is no news to step 3;
//! - an acknowledgement that reports data that came twice (RFC 2883) is no duplicate in steps 2 and 3;
//! - the Eifel detection is for time-outs here, without step 5 of RFC 3522; for fast recovery it is in `doubt`.

use super::Arrival;
use super::scoreboard::Scoreboard;

/// What to find out about a time-out; only until it is decided.
#[derive(Clone, Debug)]
pub(crate) struct Suspicion {
    /// SND.NXT at the time-out.
    recover: u64,
    forward: Option<Forward>,
    eifel: Option<Eifel>,
}

/// Where F-RTO stands.
#[derive(Clone, Copy, Debug)]
struct Forward {
    sack: bool,
    step: Step,
    /// New segments that may go out now, whatever the window.
    quota: u8,
}

/// The steps of RFC 5682, 2.1 and 3.1.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// The first segment was sent again.
    Two,
    /// New data were sent; `RecoveryPoint` is what had been sent before.
    Three { recovery_point: u64 },
}

/// `RetransmitTS` of RFC 3522 (3.2), once the segment has left.
#[derive(Clone, Copy, Debug, Default)]
struct Eifel {
    retransmit_ts: Option<u32>,
}

/// What an acknowledgement decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Nothing yet.
    Open,
    /// The time-out was needed, or nobody will know.
    Needed,
    /// It was not.
    Spurious,
}

/// The methods to use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Methods {
    /// F-RTO; the SACK-enhanced algorithm if this holds true.
    pub(crate) forward: Option<bool>,
    /// The Eifel detection.
    pub(crate) eifel: bool,
    /// Reports of data that came twice (`doubt`).
    pub(crate) reports: bool,
}

impl Suspicion {
    pub(super) fn new(methods: Methods, recover: u64) -> Option<Box<Self>> {
        let forward = methods.forward.map(|sack| Forward { sack, step: Step::Two, quota: 0 });
        let eifel = methods.eifel.then(Eifel::default);
        (forward.is_some() || eifel.is_some()).then(|| Box::new(Self { recover, forward, eifel }))
    }

    /// Whether what was outstanding at the time-out, apart from the first segment, is not yet deemed lost.
    pub(super) const fn holds(&self) -> bool {
        self.forward.is_some()
    }

    /// Whether new data may go out now, whatever the window.
    pub(super) fn lets_new_out(&self) -> bool {
        self.forward.is_some_and(|forward| forward.quota > 0)
    }

    /// New data went out.
    pub(super) fn on_new_sent(&mut self) {
        if let Some(forward) = &mut self.forward {
            forward.quota = forward.quota.saturating_sub(1);
        }
    }

    /// A segment was sent again with this timestamp.
    pub(super) fn on_resent(&mut self, timestamp: u32) {
        if let Some(eifel) = &mut self.eifel {
            eifel.retransmit_ts.get_or_insert(timestamp);
        }
    }

    /// The timer expired again for the same segment: F-RTO cannot tell any more (RFC 5682, 2.1, step 1); the Eifel
    /// detection still can.
    pub(super) const fn on_another_timeout(&mut self) {
        self.forward = None;
    }

    pub(super) fn on_ack(&mut self, board: &Scoreboard, arrival: &Arrival<'_>) -> Verdict {
        if let Some(eifel) = self.eifel
            && arrival.news.acked > 0
        {
            // RFC 3522 (3.2, step 4): the first acceptable acknowledgement decides.
            if eifel.is_spurious(arrival) {
                return Verdict::Spurious;
            }
            self.eifel = None;
        }
        let recover = self.recover;
        match &mut self.forward {
            Some(forward) if forward.sack => forward.on_ack_with_sack(board, arrival, recover),
            Some(forward) => forward.on_ack(arrival, recover),
            None if self.eifel.is_none() => Verdict::Needed,
            None => Verdict::Open,
        }
    }
}

impl Forward {
    /// RFC 5682 (2.1).
    fn on_ack(&mut self, arrival: &Arrival<'_>, recover: u64) -> Verdict {
        match (self.step, arrival.news.acked > 0) {
            (_, false) if arrival.news.duplicate => Verdict::Needed, // 2a, 3a.
            (_, false) => Verdict::Open,
            (Step::Two, true) => self.go_on(arrival, recover),
            (Step::Three { .. }, true) => Verdict::Spurious, // 3b.
        }
    }

    /// RFC 5682 (3.1).
    fn on_ack_with_sack(&mut self, board: &Scoreboard, arrival: &Arrival<'_>, recover: u64) -> Verdict {
        match self.step {
            Step::Two if arrival.news.acked > 0 => self.go_on(arrival, recover),
            Step::Two => Verdict::Open,
            Step::Three { recovery_point } => {
                let furthest = board.highest_sacked().unwrap_or(0).max(arrival.una);
                let delivers = arrival.news.acked > 0 || arrival.news.sacked > 0;
                match (furthest > recovery_point, delivers) {
                    (true, _) => Verdict::Needed,                                // 3a.
                    (false, true) => Verdict::Spurious,                          // 3b.
                    (false, false) if arrival.news.duplicate => Verdict::Needed, // 3a, its second sentence.
                    (false, false) => Verdict::Open, // Neither a duplicate nor new: ignored.
                }
            }
        }
    }

    /// Step 2 with an acknowledgement of something new.
    fn go_on(&mut self, arrival: &Arrival<'_>, recover: u64) -> Verdict {
        if arrival.una >= recover || !arrival.new_data {
            return Verdict::Needed; // 2a.
        }
        self.step = Step::Three { recovery_point: arrival.nxt };
        self.quota = NEW_SEGMENTS; // 2b.
        Verdict::Open
    }
}

impl Eifel {
    /// The echo is older than the retransmission.
    fn is_spurious(self, arrival: &Arrival<'_>) -> bool {
        match (self.retransmit_ts, arrival.news.echo) {
            (Some(sent), Some(echo)) => (echo.wrapping_sub(sent) as i32) < 0,
            _ => false,
        }
    }
}

/// RFC 5682 (2.1), step 2b.
const NEW_SEGMENTS: u8 = 2;
