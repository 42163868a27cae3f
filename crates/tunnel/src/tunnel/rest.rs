//! A tunnel at rest: link, queues, proxy and survey have nothing to do before a time that is known, so nobody looks at them. Only the
//! session speaks, which is what ten thousand idle tunnels do all day.

use base::Instant;
use link::{Demand, LineId};

use super::{Line, Tunnel, proxy_side};
use crate::due::Due;

impl Tunnel {
    /// Whether it is at rest: only the session may have something to say, or to wait for.
    pub(crate) fn is_at_rest(&self, now: Instant) -> bool {
        let rests = self.rests_until.is_some_and(|until| now < until.from) && self.session.is_heard(now);
        debug_assert!(
            !rests || self.link_due(now).is_none_or(|due| due.from > now),
            "{:?}",
            self.link_due(now)
        );
        rests
    }

    /// Something has come that is not the session's alone.
    pub(super) const fn stir(&mut self) {
        self.rests_until = None;
    }

    /// There is nothing to send now: from here on it rests until something is due.
    pub(super) fn rest(&mut self, now: Instant) {
        self.rests_until = None;
        let holds_back = self.lines.open().any(|line| line.survey.holds_back(now));
        if !self.is_blocked() && !holds_back && self.session.is_heard(now) {
            self.rests_until =
                Some(self.link_due(now).unwrap_or(Due::NEVER)).filter(|until| now < until.from);
        }
    }

    /// When something is due, if nothing comes in before. Both [`Tunnel::handle_timeout`] and [`Tunnel::offer`] are to be called then.
    #[must_use]
    pub(crate) fn next_due(&self, now: Instant) -> Option<Due> {
        let link = if self.is_at_rest(now) { self.rests_until } else { self.link_due(now) };
        Due::first([link.filter(|due| *due != Due::NEVER), self.session_due(now)])
    }

    /// When something is due, whether or not anything may be sent.
    pub(crate) fn timers(&self, now: Instant) -> Option<Due> {
        Due::first([self.link_timers().map(Due::at), self.session_due(now)])
    }

    /// When link, queues, proxy or survey have something to do.
    fn link_due(&self, now: Instant) -> Option<Due> {
        Due::first([self.sending_due(now), self.link_timers().map(Due::at)])
    }

    fn link_timers(&self) -> Option<Instant> {
        let proxy = self.ingress.proxy.as_ref().and_then(|proxy| proxy.poll_timeout());
        [self.endpoint.poll_timeout(), proxy].into_iter().flatten().min()
    }

    fn session_due(&self, now: Instant) -> Option<Due> {
        let silence = self.silence_due(now, self.session.is_heard(now));
        Due::first([self.session.due(), silence.map(Due::at)])
    }

    /// When there is something to send, if it may leave then.
    fn sending_due(&self, now: Instant) -> Option<Due> {
        if !self.session.is_heard(now) {
            return None;
        }
        let mut lines =
            self.lines.all().filter(|(id, line)| self.may_use(*id) && !line.is_blocked).peekable();
        // It goes over any of them.
        let proxy = self.ingress.proxy.as_ref().filter(|_| lines.peek().is_some());
        let pairing = proxy.and_then(|_| self.proxy_side.pairing_timeout()).map(Due::at);
        Due::first(lines.map(|(id, line)| self.line_due(now, id, line)).chain([pairing]))
    }

    /// When there is something to send over a line.
    fn line_due(&self, now: Instant, id: LineId, line: &Line) -> Option<Due> {
        let transmit = match self.demand(now, id) {
            Demand::Nothing => None,
            Demand::Fresh => Some(line.pacer.free_at()),
            Demand::Filler => Some(line.pacer.filler_at()),
        };
        let waiting = (line.burst.is_some() || !line.batch.is_empty()).then_some(now);
        let says = if self.lines.is_single() { None } else { line.line_use.due() };
        let others = [says, transmit, waiting].map(|due| due.map(Due::at));
        Due::first([line.survey.due(now)].into_iter().chain(others))
    }

    /// When silence is to be looked at next.
    fn silence_due(&self, now: Instant, is_heard: bool) -> Option<Instant> {
        if is_heard {
            return None;
        }
        let given_up = self.ingress.proxy.as_ref().map(|_| self.silence.since + proxy_side::PATIENCE);
        let told = self.silence.since + self.silence.told;
        given_up.filter(|due| *due > now).map_or(Some(told), |due| Some(due.min(told)))
    }
}
