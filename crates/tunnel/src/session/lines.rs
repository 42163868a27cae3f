//! The lines of a session: one, or several ways to the same peer at once, under the same keys.
//!
//! Whoever calls has as many lines as ways to call, and names each datagram's line in its counter. The other end knows a line from the first
//! datagram over it on, and where to answer once that address is proved, as for any address that a peer is heard at (`paths`). Nothing but what proves it
//! goes over a line that was not heard of late: the caller *asks* there for an answer, once a second while anything passes.

use base::{Duration, Instant};
use link::{LineId, MAX_LINES};

use super::activity::Activity;
use super::cookies::Cookie;
use super::paths::{Paths, Peer};
use super::timing::Idle;
use super::{Kind, Session};
use crate::path::{Address, CarrierId, Path};

/// A line of a session.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) paths: Paths,
    /// Whether it was configured here, and not learnt from the peer.
    is_own: bool,
    /// The last cookie that the peer gave us over it.
    pub(super) cookie: Option<Cookie>,
    /// When the peer was heard over it last, where it is.
    pub(super) heard_at: Option<Instant>,
    /// Whether that was lately.
    is_open: bool,
    pub(super) last_sent: Instant,
    /// From when on it may be asked whether anybody hears it, and when it was since then.
    asks_from: Instant,
    asked_at: Option<Instant>,
}

/// The lines of a session, one at least.
#[derive(Debug)]
pub(super) struct Lines {
    first: Line,
    others: Vec<Line>,
    /// Whether the peer may use more than there are.
    grow: bool,
    /// Initiations since a handshake was complete last.
    calls: usize,
}

/// Between two questions whether a line is heard while something passes.
const ASK_INTERVAL: Duration = Duration::from_secs(1);

impl Line {
    const fn new(peer: Peer, via: CarrierId, is_own: bool) -> Self {
        Self {
            paths: Paths::new(peer, via),
            is_own,
            cookie: None,
            heard_at: None,
            is_open: false,
            last_sent: Instant::ZERO,
            asks_from: Instant::ZERO,
            asked_at: None,
        }
    }

    /// It is to be asked as soon as it may be silent.
    const fn ask_from(&mut self, now: Instant) {
        (self.asks_from, self.asked_at) = (now, None);
    }

    /// When it is to be asked next.
    fn asks_at(&self, activity: &Activity, idle: Idle) -> Instant {
        self.asked_at.map_or(self.asks_from, |asked| activity.due(asked, ASK_INTERVAL, idle.keepalive))
    }

    /// Something newer than all before has come from `from`.
    pub(super) fn note_heard(&mut self, now: Instant, from: Path) {
        if self.paths.is_here(from) {
            self.on_heard(now);
        }
    }

    /// The peer is heard where it is.
    pub(super) const fn on_heard(&mut self, now: Instant) {
        (self.heard_at, self.is_open) = (Some(now), true);
    }

    /// When its peer will have been silent for too long.
    fn silent_at(&self, idle: Idle) -> Instant {
        self.heard_at.unwrap_or_default() + idle.silence
    }
}

impl Lines {
    pub(super) const fn new(peer: Peer) -> Self {
        Self { first: Line::new(peer, CarrierId::FIRST, true), others: Vec::new(), grow: false, calls: 0 }
    }

    pub(super) const fn is_single(&self) -> bool {
        self.others.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        1 + self.others.len()
    }

    pub(super) fn all(&self) -> impl Iterator<Item = (LineId, &Line)> {
        let numbered = (0..).filter_map(LineId::new);
        numbered.zip(core::iter::once(&self.first).chain(&self.others))
    }

    fn all_mut(&mut self) -> impl Iterator<Item = (LineId, &mut Line)> {
        let numbered = (0..).filter_map(LineId::new);
        numbered.zip(core::iter::once(&mut self.first).chain(&mut self.others))
    }

    /// The first line.
    pub(super) const fn first(&self) -> &Line {
        &self.first
    }

    pub(super) fn get(&self, line: LineId) -> Option<&Line> {
        match usize::from(line.number()).checked_sub(1) {
            None => Some(&self.first),
            Some(place) => self.others.get(place),
        }
    }

    pub(super) fn get_mut(&mut self, line: LineId) -> Option<&mut Line> {
        match usize::from(line.number()).checked_sub(1) {
            None => Some(&mut self.first),
            Some(place) => self.others.get_mut(place),
        }
    }

    /// A line that the peer has used, over one of our carriers. It is known from now on, unless there is but one.
    pub(super) fn used(&mut self, line: LineId, via: CarrierId) -> Option<&mut Line> {
        if self.grow {
            let (count, pinned) = (usize::from(line.number()), self.first.paths.is_pinned());
            let unknown = || Line::new(Peer { address: None, pinned }, via, false);
            self.others.resize_with(self.others.len().max(count), unknown);
        }
        self.get_mut(line)
    }

    /// Whether every line's peer is pinned to an address other than `from`.
    pub(super) fn exclude(&self, from: Path) -> bool {
        self.all().all(|(_, line)| line.paths.exclude(from))
    }

    /// The line that the next call goes over: where the peer was heard last, and then each in turn.
    pub(super) fn to_call(&self) -> Option<LineId> {
        let callable: Vec<LineId> =
            self.all().filter(|(_, line)| line.paths.configured().is_some()).map(|(id, _)| id).collect();
        let heard = |id: &LineId| self.get(*id).and_then(|line| line.heard_at);
        // The first of equals.
        let preferred = (0..callable.len()).rev().max_by_key(|at| heard(&callable[*at])).unwrap_or(0);
        callable.get((preferred + self.calls) % callable.len().max(1)).copied()
    }

    /// Keeps a cookie that the peer gave over a line.
    pub(super) fn keep_cookie(&mut self, line: LineId, cookie: Cookie) {
        if let Some(line) = self.get_mut(line) {
            line.cookie = Some(cookie);
        }
    }

    /// Whether any leads to where the peer is called.
    pub(super) fn call_anybody(&self) -> bool {
        self.all().any(|(_, line)| line.paths.configured().is_some())
    }

    pub(super) const fn on_call(&mut self) {
        self.calls += 1;
    }

    /// A handshake is complete: lines are asked whether they are heard.
    pub(super) fn on_established(&mut self, now: Instant) {
        self.calls = 0;
        self.all_mut().for_each(|(_, line)| line.ask_from(now));
    }

    /// The peer has restarted, and called or answered over this line: of others nobody knows whether it still has them.
    pub(super) fn on_restarted(&mut self, now: Instant, called: LineId) {
        for (_, line) in self.all_mut().filter(|(id, _)| *id != called) {
            (line.heard_at, line.is_open) = (None, false);
            line.ask_from(now);
            line.paths.forget();
        }
    }

    /// The peer is to be called at `address`, over all lines that are not told apart.
    pub(super) fn configure(&mut self, address: Address) {
        let own = self.all_mut().filter(|(_, line)| line.is_own);
        own.for_each(|(_, line)| line.paths.configure(address));
    }

    /// The line that the peer was heard over last, of those that lead anywhere, and where to.
    pub(super) fn latest(&self) -> Option<(LineId, Path)> {
        let leading = self.all().filter_map(|(id, line)| Some((id, line.paths.current()?, line.heard_at)));
        // The first of equals.
        let latest = leading.reduce(|one, other| if other.2 > one.2 { other } else { one });
        latest.map(|(id, path, _)| (id, path))
    }

    /// Whether the peer is at this address, by any line.
    pub(super) fn lead_to(&self, peer: Address) -> bool {
        self.all().any(|(_, line)| line.paths.current().is_some_and(|path| path.peer == peer))
    }

    /// The line that a person is told of: the first that leads anywhere.
    pub(super) fn shown(&self) -> Option<Path> {
        self.all().find_map(|(_, line)| line.paths.current())
    }
}

impl Session {
    /// Gives it so many lines in all, the further ones over carriers of their own: where each calls the peer, if it does so elsewhere. Without any it is left to
    /// the peer to use several.
    #[must_use]
    pub fn with_lines(mut self, others: &[Option<Address>]) -> Self {
        self.lines.grow = true;
        let peer = self.lines.first.paths.peer();
        for (number, own) in (1..MAX_LINES as u8).zip(others) {
            let address = own.or(peer.address);
            let mut line = Line::new(Peer { address, ..peer }, CarrierId(number), true);
            line.paths.set_apart(own.is_some());
            self.lines.others.push(line);
        }
        self
    }

    /// Whether the peer was heard of late over a line, so that it may carry something. The only one may as long as there is a session.
    #[must_use]
    pub fn is_open(&self, line: LineId) -> bool {
        self.lines.is_single() || self.lines.get(line).is_some_and(|line| line.is_open)
    }

    /// Lines that there are, whether or not anything is heard over them.
    #[must_use]
    pub fn lines(&self) -> usize {
        self.lines.len()
    }

    /// When the peer was heard over a line last, where it is.
    #[must_use]
    pub fn heard_over(&self, line: LineId) -> Option<Instant> {
        self.lines.get(line)?.heard_at
    }

    /// Which of our carriers a line goes over.
    #[must_use]
    pub fn carrier_of(&self, line: LineId) -> CarrierId {
        self.lines.get(line).map_or(CarrierId::FIRST, |line| line.paths.carrier())
    }

    /// Where data goes over a line.
    #[must_use]
    pub fn path_over(&self, line: LineId) -> Option<Path> {
        self.lines.get(line)?.paths.current()
    }

    /// When a line is to be asked next, or is to say that it is there, or is not heard any more.
    pub(super) fn lines_due(&self) -> Option<Instant> {
        if self.lines.is_single() || self.keys.current().is_none() || self.has_left {
            return None;
        }
        let idle = self.idle();
        let due = |(_, line): (LineId, &Line)| {
            line.paths.current()?;
            match line.is_open {
                true => Some((line.last_sent + self.timing.idle.keepalive).min(line.silent_at(idle))),
                false => line.paths.configured().map(|_| line.asks_at(&self.activity, self.timing.idle)),
            }
        };
        self.lines.all().filter_map(due).min()
    }

    /// Asks over silent lines whether they are heard, and says over others that this end is there.
    pub(super) fn tend_lines(&mut self, now: Instant) {
        let idle = self.idle();
        let (activity, usual) = (self.activity, self.timing.idle);
        let mut says = Vec::new();
        for (id, line) in self.lines.all_mut() {
            let Some(to) = line.paths.current() else { continue };
            line.is_open &= now < line.silent_at(idle);
            if line.is_open {
                if now >= line.last_sent + self.timing.idle.keepalive {
                    says.push((id, to, Kind::Frame));
                }
            } else if let Some(called) = line.paths.configured()
                && now >= line.asks_at(&activity, usual)
            {
                line.asked_at = Some(now);
                says.push((id, called, Kind::PathChallenge));
                // Where it was heard last it may be still.
                says.extend((to != called).then_some((id, to, Kind::PathChallenge)));
            }
        }
        for (line, to, kind) in says {
            match kind {
                Kind::PathChallenge => self.challenge(now, line, to),
                kind => {
                    self.control_to((to, line), kind, &[]);
                    self.note_sent(now, line);
                }
            }
        }
    }
}
