//! How an end that repeats frames until they have come finds out that one was lost: wide COTMLL's and coded ARQ's.
//!
//! After RACK-TLP (RFC 8985): frames that may only have been overtaken are waited for (`reordering`), and a sender that has been silent speaks
//! again, since nothing else would show that its last frames were lost.
//!
//! Deviation: RFC 8985, 7.2, waits for two round trips before a probe; the pause here depends on the line alone.

use base::{Duration, Instant};

use crate::endpoint::Demand;
use crate::treatment::Treatment;

use super::completion::Completion;
use super::frame::Frame;
use super::lines::{LineId, LineTerms, PerLine, Transmission};
use super::policy::Policy;
use super::sender::Arrival;
use super::{Core, Next, Reordering, Suspicion, Timer, earliest};

/// What is waited for besides reports.
#[derive(Debug, Default)]
pub(crate) struct Detection {
    /// Of the first line.
    first: Watch,
    /// Of several lines; most have but one.
    several: Option<Box<Several>>,
    /// How the packets are treated of which its sender keeps account, and the number of their class.
    treatment: Treatment,
    class: u8,
    /// When a frame came or left last.
    active_at: Option<Instant>,
    /// When one left last that is to be reported, and how often it was said since then that all such are given up.
    asked_at: Option<Instant>,
    given_up: u32,
}

/// What is known where there are several lines.
#[derive(Debug, Default)]
struct Several {
    /// Of all but the first.
    others: Vec<Watch>,
    /// What they carry.
    completion: Completion,
    /// Which have fallen silent.
    suspicion: Suspicion,
    /// When a frame without a serial left last.
    called_at: Option<Instant>,
}

impl Several {
    /// Whether a line may be used at all for packets with a treatment.
    fn may_use(&self, now: Instant, line: LineId, treatment: Treatment) -> bool {
        self.completion.may_use(now, line, treatment, |other| !self.suspicion.is_doubtful(now, other))
    }

    /// Whether a frame of `len` bytes should leave over a line while `waiting` bytes could leave over others.
    fn is_worth(&self, now: Instant, line: LineId, frame: (u64, u64, Treatment)) -> bool {
        self.completion.is_worth(now, line, frame, |other| !self.suspicion.is_doubtful(now, other))
    }
}

/// What is known of a line.
#[derive(Debug, Default)]
struct Watch {
    /// How far frames are overtaken.
    reordering: Reordering,
    /// The last transmission that is to be reported, and when it left, where there are several lines.
    asked: u64,
    asked_at: Instant,
    /// When a silent sender says again what is unacknowledged.
    tail: Timer,
}

impl Watch {
    /// Of a line over which nothing has left.
    fn silent() -> Self {
        Self { tail: Timer::Due, ..Self::default() }
    }
}

impl Detection {
    /// Of packets with this treatment, in the class with this number below 8.
    pub(crate) fn new(treatment: Treatment, class: u8) -> Self {
        Self { treatment, class, ..Self::default() }
    }

    /// The lines over which anything has left.
    fn lines(&self) -> impl Iterator<Item = LineId> + use<> {
        let others = self.several.as_ref().map_or(0, |several| several.others.len());
        (0..=others as u8).filter_map(LineId::new)
    }

    fn watch(&self, line: LineId) -> Option<&Watch> {
        match line.at().checked_sub(1) {
            None => Some(&self.first),
            Some(place) => self.several.as_ref()?.others.get(place),
        }
    }

    fn watch_mut(&mut self, line: LineId) -> &mut Watch {
        let Some(place) = line.at().checked_sub(1) else { return &mut self.first };
        let others = &mut self.several.get_or_insert_default().others;
        if others.len() <= place {
            // A line that has nothing else to carry says again what is unacknowledged: another may have fallen silent.
            others.resize_with(place + 1, Watch::silent);
        }
        &mut others[place]
    }

    fn watches(&self) -> impl Iterator<Item = &Watch> {
        core::iter::once(&self.first).chain(self.several.iter().flat_map(|several| &several.others))
    }

    fn watches_mut(&mut self) -> impl Iterator<Item = &mut Watch> {
        let others = self.several.iter_mut().flat_map(|several| &mut several.others);
        core::iter::once(&mut self.first).chain(others)
    }

    /// How far frames are overtaken on a line.
    pub(crate) fn reordering(&mut self, line: LineId) -> &mut Reordering {
        &mut self.watch_mut(line).reordering
    }

    /// Frames that were taken for lost and had only been overtaken, sent again or not.
    pub(crate) fn false_alarms(&self) -> u64 {
        self.watches().map(|watch| watch.reordering.false_alarms()).sum()
    }

    /// The last transmissions that would have come if they ever did, once those of `heard` have.
    pub(crate) fn ripe(&self, heard: &PerLine) -> PerLine {
        if self.several.is_none() {
            return PerLine::first(self.first.reordering.ripe(heard.of(LineId::FIRST)));
        }
        let mut ripe = PerLine::default();
        for (line, heard) in heard.iter() {
            ripe.set(line, self.watch(line).map_or(heard, |watch| watch.reordering.ripe(heard)));
        }
        ripe
    }

    /// After how much silence unacknowledged frames are sent again: at once where the line is blocked again and again, since whoever
    /// does not speak does not hear that it is open.
    pub(crate) fn pause<P: Policy>(core: &Core<P>) -> Duration {
        let frame_time = core.length.frame_time();
        if core.is_blocked_often() {
            return frame_time;
        }
        TAIL_PAUSE.max(frame_time.saturating_mul(4))
    }

    /// Whether nothing has left over a line for so long that unacknowledged frames are sent again.
    pub(crate) fn is_silent(&self, now: Instant, line: LineId) -> bool {
        self.watch(line).is_none_or(|watch| watch.tail.is_due(now))
    }

    /// A frame leaves over a line while so many bytes wait outside.
    pub(crate) fn on_frame<P: Policy>(&mut self, now: Instant, line: LineId, core: &Core<P>, backlog: u64) {
        self.active_at = Some(now);
        self.watch_mut(line).tail = Timer::At(now + Self::pause(core));
        if let Some(several) = &mut self.several {
            several.completion.on_frame(now, backlog);
            // Nobody was waited for until now, perhaps.
            self.watches_mut().for_each(|watch| watch.tail.handle_timeout(now));
        }
    }

    /// It has a serial, so that reports can tell of it.
    pub(crate) fn on_numbered(&mut self, now: Instant, line: LineId) {
        if let Some(several) = &mut self.several {
            several.suspicion.on_sent(now, line, self.class);
        }
    }

    /// What leaves over a line carries data, which the peer reports.
    pub(crate) fn on_asked(&mut self, now: Instant, Transmission { line, serial }: Transmission) {
        (self.asked_at, self.given_up) = (Some(now), 0);
        if let Some(several) = &mut self.several {
            several.suspicion.on_asked(now, line);
            let watch = self.watch_mut(line);
            (watch.asked, watch.asked_at) = (serial, now);
        }
    }

    /// Whether a line may carry a report or what is there anyway: if it may be used, or the peer does.
    pub(crate) fn may_speak<P: Policy>(&self, now: Instant, line: LineId, core: &Core<P>) -> bool {
        self.may_use(now, line) || core.news.is_due(now) && core.news.came_over(line)
    }

    /// Whether a line should carry a report by itself: of those over which something has come since the last one, the nearest.
    pub(crate) fn reports<P: Policy>(&self, now: Instant, line: LineId, core: &Core<P>) -> bool {
        let is_nearest = |several: &Several| {
            let news = &core.news;
            let there = |other| !several.suspicion.is_doubtful(now, other) && news.came_over(other);
            let has_come = self.lines().any(there);
            !has_come || news.came_over(line) && several.completion.is_nearest(line, there)
        };
        core.news.is_due(now) && self.several.as_deref().is_none_or(is_nearest)
    }

    /// Takes the report of a frame that has come over a line and heard of these transmissions, and what it shows of overtaking.
    pub(crate) fn handle_report<P: Policy>(
        &mut self,
        now: Instant,
        line: LineId,
        core: &mut Core<P>,
        frame: &Frame<'_>,
        heard: Option<&PerLine>,
    ) {
        self.active_at = Some(now);
        if let Some(several) = &mut self.several {
            several.suspicion.on_sign(line);
        }
        let Some(heard) = heard else { return core.refuse_report() };
        let (ripe, flags) = (self.ripe(heard), core.sender.flags());
        let told = core.take_report(frame, heard, &ripe, |arrival| self.on_arrival(now, arrival, heard));
        let Some(told) = told else { return };
        self.suspect(now, core, heard);
        let has_lost = core.sender.flags() > flags;
        for (line, heard) in heard.iter() {
            let told = told.over(heard);
            let reordering = self.reordering(line);
            reordering.on_report(now, told);
            if has_lost {
                reordering.on_loss(heard, core.sent_over(line));
            }
            if !reordering.window().is_zero() {
                reordering.wait_for(now, core.sender.oldest_overtaken(line, heard));
            }
        }
        core.counters.repairs_needless = self.watches().map(|watch| watch.reordering.needless()).sum();
    }

    /// Looks for lines of which a report has not heard that should have, and takes for lost what is out on them.
    fn suspect<P: Policy>(&mut self, now: Instant, core: &mut Core<P>, heard: &PerLine) {
        let class = self.class;
        for line in self.lines() {
            let watch = self.watch_mut(line);
            let (before, asked, heard) = (watch.reordering.heard(), watch.asked, heard.of(line));
            let measured = watch.reordering.round_trip();
            let since_asked = now.saturating_since(watch.asked_at);
            let Some(several) = &mut self.several else { return };
            if heard > before {
                // It is the first report of what asked for one last, too: of frames that carry no data nothing else is measured.
                let answered = (before < asked && asked <= heard).then_some(since_asked);
                let round_trip = measured.into_iter().chain(answered).min();
                if several.suspicion.is_suspect(line) {
                    core.sender.find_over(line, heard);
                }
                let left = (heard == core.sent_over(line), heard < asked);
                several.suspicion.on_heard(now, line, class, round_trip, left);
            } else if several.suspicion.on_silent(now, line, class) {
                core.sender.lose_over(line);
            }
        }
    }

    /// The lines that are suspect.
    pub(crate) fn dark(&self) -> impl Iterator<Item = LineId> + use<'_> {
        let several = self.several.as_deref();
        several
            .into_iter()
            .flat_map(|several| self.lines().filter(|line| several.suspicion.is_suspect(*line)))
    }

    /// A line is dark, as somebody else has found out.
    pub(crate) fn darken<P: Policy>(&mut self, line: LineId, core: &mut Core<P>) {
        if let Some(several) = &mut self.several
            && several.suspicion.darken(line)
        {
            core.sender.lose_over(line);
        }
    }

    /// What is known of which lines are silent, for the other classes.
    pub(crate) fn suspicion(&self) -> Option<&Suspicion> {
        self.several.as_ref().map(|several| &several.suspicion)
    }

    /// Takes over what another class has found out.
    pub(crate) fn share<P: Policy>(&mut self, core: &mut Core<P>, suspicion: &Suspicion) {
        let Some(before) = self.suspicion().cloned() else { return };
        for line in self.lines() {
            match (before.is_suspect(line), suspicion.is_suspect(line)) {
                (false, true) => core.sender.lose_over(line),
                (true, false) => {
                    let heard = self.reordering(line).heard();
                    core.sender.find_over(line, heard);
                }
                _ => {}
            }
        }
        if let Some(several) = &mut self.several {
            several.suspicion.clone_from(suspicion);
        }
    }

    /// What a line carries, how long it takes and what it may be used for.
    pub(crate) fn set_line(&mut self, line: LineId, terms: LineTerms) {
        self.watch_mut(line);
        self.several.get_or_insert_default().completion.set(line, terms);
    }

    /// Whether what an idle line carries costs nobody anything.
    pub(crate) fn is_free(&self, line: LineId) -> bool {
        self.several.as_ref().is_none_or(|several| several.completion.is_free(line))
    }

    /// Whether a line that is there may be used at all.
    pub(crate) fn may_use(&self, now: Instant, line: LineId) -> bool {
        self.several.as_ref().is_none_or(|several| several.may_use(now, line, self.treatment))
    }

    /// Whether a line should take one of the frames of which so many bytes wait, rather than that another takes it.
    pub(crate) fn is_worth<P: Policy>(
        &self,
        now: Instant,
        line: LineId,
        core: &Core<P>,
        waiting: u64,
    ) -> bool {
        self.is_worth_for(now, line, core, waiting, self.treatment)
    }

    /// As [`Detection::is_worth`], where packets with this treatment wait. Of those that are sent once none goes where it may be lost.
    fn is_worth_for<P: Policy>(
        &self,
        now: Instant,
        line: LineId,
        core: &Core<P>,
        waiting: u64,
        treatment: Treatment,
    ) -> bool {
        self.several.as_ref().is_none_or(|several| {
            let len = core.length.usual() as u64;
            let is_shunned = treatment.is_once() && self.is_doubtful_for(now, line, treatment);
            !is_shunned && several.is_worth(now, line, (len, waiting.saturating_sub(len), treatment))
        })
    }

    /// Whether a line should take a frame of a packet that is sent once.
    pub(crate) fn is_worth_once<P: Policy>(&self, now: Instant, line: LineId, core: &Core<P>) -> bool {
        core.unreliable_sender.is_pending()
            && !self.is_suspect_for(line, Treatment::Once)
            && self.is_worth_for(now, line, core, 0, Treatment::Once)
    }

    /// Whether a line should take a frame that was lost.
    pub(crate) fn is_worth_repair<P: Policy>(&self, now: Instant, line: LineId, core: &Core<P>) -> bool {
        self.is_worth(now, line, core, core.sender.flagged() as u64 * core.length.usual() as u64)
    }

    /// Whether a line has fallen silent and another has not that may carry the same, so that it carries a probe now and then. Where all have, each goes
    /// on as the only line of a link would.
    pub(crate) fn is_suspect(&self, line: LineId) -> bool {
        self.is_suspect_for(line, self.treatment)
    }

    /// As [`Detection::is_suspect`], for packets with this treatment.
    pub(crate) fn is_suspect_for(&self, line: LineId, treatment: Treatment) -> bool {
        self.several.as_ref().is_some_and(|several| {
            let is_suspect = |line| several.suspicion.is_suspect(line);
            let mut others = self.lines().filter(|it| several.completion.carries(*it, treatment));
            is_suspect(line) && !others.all(is_suspect)
        })
    }

    /// Whether a line is in doubt, and another is not that may carry packets with this treatment.
    fn is_doubtful_for(&self, now: Instant, line: LineId, treatment: Treatment) -> bool {
        self.several.as_ref().is_some_and(|several| {
            let is_doubtful = |line| several.suspicion.is_doubtful(now, line);
            let mut others = self.lines().filter(|it| several.completion.carries(*it, treatment));
            is_doubtful(line) && others.any(|other| !is_doubtful(other))
        })
    }

    /// Whether a frame with a serial should go before the next without one. A report that answers the latter tells of the former, and so of the line.
    pub(crate) fn is_sign_due(&self, now: Instant, line: LineId) -> bool {
        let asked_at = self.watch(line).map_or(Instant::ZERO, |watch| watch.asked_at);
        self.several.as_ref().is_some_and(|it| now >= asked_at + it.suspicion.patience(line) / 2)
    }

    /// A frame without a serial leaves.
    pub(crate) fn on_unnumbered(&mut self, now: Instant) {
        if let Some(several) = &mut self.several {
            several.called_at = Some(now);
        }
    }

    /// A frame has come, as a report is the first to tell. It may have come with a sum over another line.
    fn on_arrival(&mut self, now: Instant, arrival: Arrival, heard: &PerLine) {
        if self.several.is_none() {
            return self.first.reordering.on_arrival(now, arrival);
        }
        let mut others = self.lines().filter(|line| *line != arrival.line);
        let is_summed = others.any(|line| {
            let watch = self.watch(line);
            watch.is_some_and(|watch| watch.reordering.may_be_in_sum(arrival.sequence, 0, heard.of(line)))
        });
        if !is_summed {
            self.reordering(arrival.line).on_arrival(now, arrival);
        }
    }

    /// Takes frames for lost whose time is up, besides what [`Core::handle_timeout`] does.
    pub(crate) fn handle_timeout<P: Policy>(&mut self, now: Instant, core: &mut Core<P>) {
        if let Some(several) = &mut self.several {
            several.completion.handle_timeout(now);
            several.suspicion.handle_timeout(now);
        }
        for line in self.lines() {
            let watch = self.watch_mut(line);
            watch.tail.handle_timeout(now);
            if let Some((told, ripe)) = watch.reordering.handle_timeout(now) {
                core.sender.flag(line, told, ripe);
                watch.reordering.wait_for(now, core.sender.oldest_overtaken(line, told.heard));
            }
        }
        core.handle_timeout(now);
        if self.gives_up_at(core).is_some_and(|at| at <= now) {
            (self.asked_at, self.given_up) = (Some(now), self.given_up.saturating_add(1));
            core.sender.abandon();
        }
        if self.rests_at(core).is_some_and(|at| at <= now) {
            self.watches_mut().for_each(|watch| watch.reordering.forget_transmissions());
        }
    }

    /// When a frame was lost or unacknowledged frames are to be sent again, or [`Core::poll_timeout`] says so.
    pub(crate) fn poll_timeout<P: Policy>(&self, core: &Core<P>) -> Option<Instant> {
        let awaits_report = core.sender.awaits_report();
        let of_line = |watch: &Watch| {
            let tail = watch.tail.poll_timeout().filter(|_| awaits_report);
            earliest([tail, watch.reordering.poll_timeout()])
        };
        // Asked for after every step: most have but one line.
        let others = self.several.as_ref().and_then(|several| {
            earliest([
                several.others.iter().filter_map(of_line).min(),
                several.suspicion.poll_timeout(),
                several.completion.poll_timeout(),
            ])
        });
        let of_all = [self.rests_at(core), self.gives_up_at(core)];
        earliest([of_line(&self.first), others, core.poll_timeout(), earliest(of_all)])
    }

    /// When frames that were sent once and never reported are given up, as no later frame would show their loss; or when the peer is told
    /// again, for want of an answer.
    fn gives_up_at<P: Policy>(&self, core: &Core<P>) -> Option<Instant> {
        let waits = self.treatment.is_once() && core.sender.awaits_report();
        let pause = STALE.saturating_mul(1 << self.given_up.min(4));
        self.asked_at.filter(|_| waits).map(|at| at.saturating_add(pause))
    }

    /// When what is noted of transmissions is forgotten, if it is worth it: nothing is under way then, and has not been for long.
    fn rests_at<P: Policy>(&self, core: &Core<P>) -> Option<Instant> {
        if core.sender.awaits_report() { None } else { self.forgets_at(self.memory()) }
    }

    /// When `bytes` of memory are given back that what was under way may have needed: once the line has been quiet for long.
    pub(crate) fn forgets_at(&self, bytes: usize) -> Option<Instant> {
        self.active_at.filter(|_| bytes > LITTLE).map(|at| at.saturating_add(QUIET))
    }

    /// What to do with a line that is free, where what was lost goes out as it was.
    pub(crate) fn demand<P: Policy>(
        &self,
        now: Instant,
        line: LineId,
        core: &Core<P>,
        backlog: u64,
    ) -> Demand {
        if self.is_worth_once(now, line, core) {
            return Demand::Fresh;
        }
        if self.is_suspect(line) {
            return self.probe(now, line, core);
        }
        if !self.may_speak(now, line, core) {
            return Demand::Nothing;
        }
        // Copies go out on a line with a rate only, since what an idle one carries costs nobody else's.
        let is_worth_copying = core.length.line.rate().is_some() && core.sender.may_copy();
        let has_due = self.next_due(now, line, core, backlog).is_some();
        if is_worth_copying || has_due || self.reports(now, line, core) || core.sender.has_floor_news() {
            Demand::Fresh
        } else if core.sender.awaits_report() && self.is_silent(now, line) {
            Demand::Filler
        } else {
            Demand::Nothing
        }
    }

    /// What has to go, of what should go over this line: what was lost, or what is new.
    pub(crate) fn next_due<P: Policy>(
        &self,
        now: Instant,
        line: LineId,
        core: &Core<P>,
        backlog: u64,
    ) -> Option<Next> {
        let sender = &core.sender;
        if sender.has_flagged() && self.is_worth_repair(now, line, core) {
            return Some(Next::Due);
        }
        (sender.may_cut() && self.is_worth(now, line, core, backlog + sender.pending_bytes()))
            .then_some(Next::New)
    }

    /// What to do with a line that has fallen silent.
    pub(crate) fn probe<P: Policy>(&self, now: Instant, line: LineId, core: &Core<P>) -> Demand {
        // A peer with nothing to say does not answer, and nobody needs the line.
        let wants_answer = core.sender.awaits_report() || core.news.is_due(now) || self.is_calling(now);
        match self.hoped(now, line, core) {
            Some(_) => Demand::Fresh,
            None if self.is_probe_due(now, line) && wants_answer => Demand::Filler,
            None => Demand::Nothing,
        }
    }

    /// Whether frames without serials leave, which the peer answers.
    fn is_calling(&self, now: Instant) -> bool {
        let called_at = self.several.as_ref().and_then(|several| several.called_at);
        called_at.is_some_and(|at| now < at + CALLING)
    }

    fn is_probe_due(&self, now: Instant, line: LineId) -> bool {
        self.several.as_ref().is_some_and(|several| several.suspicion.is_probe_due(now, line))
    }

    /// What a line carries that has fallen silent, besides probes: while more is lost than the others have carried again, it costs nobody anything to
    /// hope that the line is back.
    pub(crate) fn hoped<P: Policy>(&self, now: Instant, line: LineId, core: &Core<P>) -> Option<Next> {
        let may_hope = self.several.as_ref().is_some_and(|it| it.suspicion.may_hope(now, line));
        (may_hope && core.sender.has_flagged() && self.may_use(now, line)).then_some(Next::Hoped)
    }

    /// Bytes of memory that it takes.
    pub(crate) fn memory(&self) -> usize {
        self.watches().map(|watch| watch.reordering.memory()).sum()
    }

    /// Numbers start anew; the path is the same.
    pub(crate) fn reset(&mut self) {
        for watch in self.watches_mut() {
            watch.reordering.reset();
            (watch.asked, watch.tail) = (0, Timer::Due);
        }
        self.first.tail = Timer::Off;
        if let Some(several) = &mut self.several {
            (several.suspicion, several.called_at) = (Suspicion::default(), None);
        }
    }
}

/// The shortest silence after which unacknowledged frames are sent again. Ours: little beside a satellite's round trip, and one frame
/// in four on a line of 1 Mbit/s that is otherwise idle.
const TAIL_PAUSE: Duration = Duration::from_millis(50);
/// Bytes that are not worth a deadline. Ours.
const LITTLE: usize = 4096;
/// What is sent once is of no use any more so long after it left. Ours: a call's packets are not by far.
const STALE: Duration = Duration::from_secs(5);
/// A call goes on so long after its last packet, or over. Ours: probes of a suspect line are at most half as far apart.
const CALLING: Duration = Duration::from_secs(2);
/// Longer than any blockage that is to cost no more than it lasts. Ours.
const QUIET: Duration = Duration::from_secs(30);

#[cfg(test)]
mod tests {
    use base::Rate;

    use super::*;

    /// A line is dark beside one that is not. Where all are, nothing would ever leave if each waited for another.
    #[test]
    fn where_all_lines_are_silent_none_is_suspect() {
        let lines = [0, 1].map(|number| LineId::new(number).unwrap());
        let mut detection = Detection::new(Treatment::Reliable, 0);
        let (sent, later) = (Instant::ZERO, Instant::ZERO + Duration::from_secs(10));
        for line in lines {
            detection.set_line(line, LineTerms::new(Rate::from_bps(1_000_000), Duration::from_millis(50)));
        }
        for (line, suspects) in lines.into_iter().zip([[true, false], [false, false]]) {
            let suspicion = &mut detection.several.as_mut().unwrap().suspicion;
            suspicion.on_sent(sent, line, 0);
            assert!(suspicion.on_silent(later, line, 0));
            assert_eq!(lines.map(|line| detection.is_suspect(line)), suspects);
        }
    }
}
