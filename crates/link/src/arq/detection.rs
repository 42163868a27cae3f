//! How an end that repeats frames until they have come finds out that one was lost: wide COTMLL's and coded ARQ's.
//!
//! After RACK-TLP (RFC 8985): frames that may only have been overtaken are waited for (`reordering`), and a sender that has been silent speaks
//! again, since nothing else would show that its last frames were lost.
//!
//! Deviation: RFC 8985, 7.2, waits for two round trips before a probe; the pause here depends on the line alone.

use base::{Duration, Instant};

use crate::endpoint::Demand;

use super::frame::Frame;
use super::policy::Policy;
use super::{Core, Reordering, Timer, earliest};

/// What is waited for besides reports.
#[derive(Debug, Default)]
pub(crate) struct Detection {
    /// How far frames are overtaken.
    pub(crate) reordering: Reordering,
    /// When a silent sender says again what is unacknowledged.
    tail: Timer,
    /// When a frame came or left last.
    active_at: Option<Instant>,
}

impl Detection {
    /// After how much silence unacknowledged frames are sent again: at once where the line is blocked again and again, since whoever
    /// does not speak does not hear that it is open.
    pub(crate) fn pause<P: Policy>(core: &Core<P>) -> Duration {
        let frame_time = core.length.frame_time();
        if core.is_blocked_often() {
            return frame_time;
        }
        TAIL_PAUSE.max(frame_time.saturating_mul(4))
    }

    /// Whether nothing has left for so long that unacknowledged frames are sent again.
    pub(crate) fn is_silent(&self, now: Instant) -> bool {
        self.tail.is_due(now)
    }

    /// A frame leaves.
    pub(crate) fn on_frame<P: Policy>(&mut self, now: Instant, core: &Core<P>) {
        self.active_at = Some(now);
        self.tail = Timer::At(now + Self::pause(core));
    }

    /// Takes the report of a frame that has heard of the transmission `heard`, and what it shows of overtaking.
    pub(crate) fn handle_report<P: Policy>(
        &mut self,
        now: Instant,
        core: &mut Core<P>,
        frame: &Frame<'_>,
        heard: Option<u64>,
    ) {
        self.active_at = Some(now);
        let reordering = &mut self.reordering;
        let (ripe, flags) = (heard.map_or(0, |heard| reordering.ripe(heard)), core.sender.flags());
        let told = core.take_report(frame, heard, ripe, |arrival| reordering.on_arrival(now, arrival));
        let Some(told) = told else { return };
        reordering.on_report(now, told);
        if core.sender.flags() > flags {
            reordering.on_loss(told.heard, core.serial);
        }
        if !reordering.window().is_zero() {
            reordering.wait_for(now, core.sender.oldest_overtaken(told.heard));
        }
        core.counters.repairs_needless = reordering.needless();
    }

    /// Takes frames for lost whose time is up, besides what [`Core::handle_timeout`] does.
    pub(crate) fn handle_timeout<P: Policy>(&mut self, now: Instant, core: &mut Core<P>) {
        self.tail.handle_timeout(now);
        if let Some((told, ripe)) = self.reordering.handle_timeout(now) {
            core.sender.flag(told, ripe);
            self.reordering.wait_for(now, core.sender.oldest_overtaken(told.heard));
        }
        core.handle_timeout(now);
        if self.rests_at(core).is_some_and(|at| at <= now) {
            self.reordering.forget_transmissions();
        }
    }

    /// When a frame was lost or unacknowledged frames are to be sent again, or [`Core::poll_timeout`] says so.
    pub(crate) fn poll_timeout<P: Policy>(&self, core: &Core<P>) -> Option<Instant> {
        let tail = self.tail.poll_timeout().filter(|_| core.sender.awaits_report());
        earliest([tail, self.reordering.poll_timeout(), core.poll_timeout(), self.rests_at(core)])
    }

    /// When what is noted of transmissions is forgotten, if it is worth it: nothing is under way then, and has not been for long.
    fn rests_at<P: Policy>(&self, core: &Core<P>) -> Option<Instant> {
        self.forgets_at(self.memory()).filter(|_| !core.sender.awaits_report())
    }

    /// When `bytes` of memory are given back that what was under way may have needed: once the line has been quiet for long.
    pub(crate) fn forgets_at(&self, bytes: usize) -> Option<Instant> {
        self.active_at.filter(|_| bytes > LITTLE).map(|at| at.saturating_add(QUIET))
    }

    /// What to do with a free line where what was lost goes out as it was.
    pub(crate) fn demand<P: Policy>(&self, now: Instant, core: &Core<P>) -> Demand {
        // Copies go out on a line with a rate only, since what an idle one carries costs nobody else's.
        let is_worth_copying = core.length.line.rate().is_some() && core.sender.may_copy();
        if is_worth_copying || core.has_fresh(now) || core.sender.has_floor_news() {
            Demand::Fresh
        } else if core.sender.awaits_report() && self.is_silent(now) {
            Demand::Filler
        } else {
            Demand::Nothing
        }
    }

    /// Bytes of memory that it takes.
    pub(crate) fn memory(&self) -> usize {
        self.reordering.memory()
    }

    /// Numbers start anew; the path is the same.
    pub(crate) fn reset(&mut self) {
        self.reordering.reset();
        self.tail = Timer::Off;
    }
}

/// The shortest silence after which unacknowledged frames are sent again. Ours: little beside a satellite's round trip, and one frame
/// in four on a line of 1 Mbit/s that is otherwise idle.
const TAIL_PAUSE: Duration = Duration::from_millis(50);
/// Bytes that are not worth a deadline. Ours.
const LITTLE: usize = 4096;
/// Longer than any blockage that is to cost no more than it lasts. Ours.
const QUIET: Duration = Duration::from_secs(30);
