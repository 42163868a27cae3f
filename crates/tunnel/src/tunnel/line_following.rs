//! Several lines: which of them carry anything, and what the endpoint is told of each.
//!
//! A line is used from when the peer is heard over it until it is silent for too long, which the session knows. The endpoint notices much sooner that a
//! line that carries something has become dark; what only the session can know is that one has that carries nothing.

use base::{Duration, Instant, Rate};
use link::{LineId, LineTerms, When};

use super::{Event, Line, Tunnel};

/// The one-way delay of a line that nothing was measured of yet, above that of the nearest. Ours: a download goes there, a request does not.
const DELAY_UNKNOWN: Duration = Duration::from_millis(300);
/// What a line carries that nobody paces, as far as it matters beside others. Ours.
const UNLIMITED: Rate = Rate::from_bps(10_000_000_000);
/// Delays that differ by less are the same. Ours: a busy path's vary by as much.
const DELAY_STEP: Duration = Duration::from_millis(5);

impl Tunnel {
    /// Whether a line may carry frames, and what is said about it.
    pub(super) fn may_use(&self, line: LineId) -> bool {
        self.lines.is_single() || self.lines[line].is_open
    }

    /// Looks after lines that have come, and which of them are heard.
    pub(super) fn follow_lines(&mut self, now: Instant) {
        self.add_lines();
        if self.lines.is_single() {
            return;
        }
        let mut has_changed = false;
        for id in self.lines.ids() {
            let is_open = self.session.is_established() && self.session.is_open(id);
            let line = &mut self.lines[id];
            if is_open != line.is_open {
                line.is_open = is_open;
                has_changed = true;
            }
            // Whatever the endpoint hears of it, or forgets: nobody may wait for a line that nothing leaves over.
            if !is_open
                && line.told.is_some()
                && let Some(lines) = self.endpoint.lines()
            {
                lines.suspect(id);
            }
            let line = &mut self.lines[id];
            if line.is_open && !line.has_begun && line.line_use.is_agreed() {
                line.has_begun = true;
                let may_pad = line.may_pad();
                line.survey.on_established(now, false, may_pad);
                has_changed = true;
            }
        }
        if has_changed {
            self.tell_of_lines();
            self.stir();
            self.adapt(now);
            self.tell_lines();
        }
    }

    /// Tells which lines are heard and which are not any more; where none is the peer is silent, which is told otherwise.
    fn tell_of_lines(&mut self) {
        if self.lines.all().all(|(_, line)| !line.is_open) {
            return;
        }
        for line in self.lines.ids() {
            let is_open = self.lines[line].is_open;
            if is_open != core::mem::replace(&mut self.lines[line].was_told_open, is_open) {
                self.tell(Event::Line { line, is_open });
            }
        }
    }

    /// Knows as many lines as the session does.
    pub(super) fn add_lines(&mut self) {
        let known = self.lines.len();
        if self.session.lines() <= known {
            return;
        }
        if known == 1 {
            // What was cut is in the form of a link with one line.
            self.lines.first.parts.restart();
            self.ingress.counts_waiting = true;
            if let Some(proxy) = &mut self.ingress.proxy {
                proxy.expect_several_lines();
            }
        }
        for number in known..self.session.lines() {
            let via = LineId::new(number as u8).map(|id| self.session.carrier_of(id)).unwrap_or_default();
            let way = self.config.further_way(via);
            self.lines.others.push(Line::new(&self.config, way));
        }
    }

    /// Tells the endpoint what each line carries, as far as that is news.
    pub(super) fn tell_lines(&mut self) {
        let nearest = self.lines.open().filter_map(|line| line.survey.least_delay()).min();
        let Some(endpoint) = self.endpoint.lines() else { return };
        for (id, line) in self.lines.all_mut().filter(|(_, line)| line.is_open) {
            let above = line.survey.least_delay().zip(nearest).map(|(delay, nearest)| delay - nearest);
            let terms = LineTerms {
                rate: line.found().0.unwrap_or(UNLIMITED),
                delay: above
                    .map_or(DELAY_UNKNOWN, |above| Duration::from_nanos(above.max(0).cast_unsigned())),
                when: line.line_use.usage().when,
                carries: line.line_use.usage().carries,
            };
            if line.told.is_none_or(|told| is_other(told, terms)) {
                line.told = Some(terms);
                endpoint.set_line_over(id, terms);
            }
        }
    }
}

impl Line {
    /// Whether padding may be sent to find out what it carries: not where bytes cost something.
    pub(super) fn may_pad(&self) -> bool {
        self.line_use.usage().when == When::Always
    }
}

/// Whether a line's terms differ so much that it matters.
fn is_other(former: LineTerms, present: LineTerms) -> bool {
    let (before, after) = (former.rate.as_bps(), present.rate.as_bps());
    let moved = former.delay.max(present.delay).saturating_sub(former.delay.min(present.delay));
    before.abs_diff(after) > before / 10
        || moved > DELAY_STEP.max(former.delay / 10)
        || former.when != present.when
        || former.carries != present.carries
}
