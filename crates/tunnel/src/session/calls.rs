//! How a session comes by its keys: it calls its peer, or answers a call that the reception has let in.

use base::Instant;
use link::LineId;

use super::handshake::{Greeting, RESPONSE_LEN, Terms, Welcome};
use super::reception::{Call, Reply};
use super::rejection::Rejection;
use super::timing::Timing;
use super::transport::Transport;
use super::wire::Message;
use super::{Event, Session, UNHEEDED};
use crate::path::Path;

impl Session {
    /// Whether the peer may have one more answer, which counts.
    pub fn allows_answer(&mut self, now: Instant) -> bool {
        self.standing.allows_answer(now)
    }

    /// Whether an initiation ranks above all that were answered. One that does not may be old, and is to be challenged again.
    #[must_use]
    pub fn is_newest(&self, call: &Call) -> bool {
        self.standing.is_newest(call)
    }

    /// Answers an initiation by the peer.
    ///
    /// # Errors
    /// [`Rejection`] says why it is not answered, or why no session will follow.
    pub fn answer(&mut self, now: Instant, call: Call, reply: Reply<'_>) -> Result<(), Rejection> {
        let (from, Reply { seal, cookie, random }) = (call.from, reply);
        if self.lines.exclude(from) {
            return Err(Rejection::Elsewhere);
        }
        let Greeting { terms, line, .. } = call.request.greeting;
        // Whoever has but one answers over that.
        let line = if self.lines.used(line, from.via).is_some() { line } else { LineId::FIRST };
        let agreed = terms.agreement == self.terms.agreement;
        if agreed && self.keys.prefer_ours(&call.request.ephemeral) {
            return Ok(());
        }
        self.standing.on_answered(&call);
        let local = self.keys.fresh_index(random);
        let welcome = Welcome { terms: self.terms, cookie };
        let answer = call.request.answer(&self.keys.ends().preshared, welcome);
        let (keys, noise) = answer.map_err(|_| Rejection::ForgedHandshake)?;
        let message = Message::Response { sender: local, receiver: call.sender, noise: &noise };
        let datagram = message.write(seal, &[]);
        self.send((from, line), datagram);
        // One that disagrees gets an answer too, which tells whoever runs it.
        if !agreed {
            return Err(Rejection::Disagreement(self.keys.ends().peer));
        }
        self.keys.await_first(Transport::new(&keys, local, call.sender, now, false), terms, (line, from));
        self.note_answer(now);
        Ok(())
    }

    /// A call was answered, and whether the peer takes that up is to be seen.
    fn note_answer(&mut self, now: Instant) {
        let (answers, since) = &mut self.unheeded;
        if *answers == 0 {
            *since = now;
        }
        *answers = answers.saturating_add(1);
        if (UNHEEDED.0 + 1..u8::MAX).contains(answers) && now >= *since + UNHEEDED.1 {
            *answers = u8::MAX;
            self.events.push_back(Event::Unheeded);
        }
    }

    /// Takes what answers an initiation of ours.
    pub(super) fn handle_handshake(
        &mut self,
        now: Instant,
        from: Path,
        message: Message<'_>,
    ) -> Result<(), Rejection> {
        match message {
            Message::Response { receiver, .. } if !self.keys.awaits(receiver) => {
                Err(Rejection::UnknownSession)
            }
            Message::Response { sender, receiver, noise } => {
                self.finish(now, from, (sender, receiver), noise)
            }
            Message::Challenge { receiver, cookie } => {
                if let Some((line, follows)) = self.keys.challenge(receiver)? {
                    self.lines.keep_cookie(line, *cookie);
                    self.initiate_over(now, line, follows);
                }
                Ok(())
            }
            Message::Denial { receiver, counter } => self.handle_denial(now, from, (receiver, counter)),
            Message::Initiation { .. } => Err(Rejection::UnknownType),
        }
    }

    fn finish(
        &mut self,
        now: Instant,
        from: Path,
        (sender, receiver): (u32, u32),
        noise: &[u8; RESPONSE_LEN],
    ) -> Result<(), Rejection> {
        let (id, keys, welcome) = self.keys.finish(receiver, noise)?;
        let Welcome { terms: Terms { life, agreement, keep_alive }, cookie } = welcome;
        if agreement != self.terms.agreement {
            return Err(Rejection::Disagreement(self.keys.ends().peer));
        }
        let restarted = self.keys.establish(Transport::new(&keys, receiver, sender, now, true), life);
        self.lines.keep_cookie(id, cookie);
        if restarted {
            self.lines.on_restarted(now, id);
        }
        self.expect_every(keep_alive);
        // What reached the configured address was answered, wherever the answer comes from.
        if let Some(line) = self.lines.get_mut(id) {
            line.paths.prove(line.paths.configured().unwrap_or(from));
            line.on_heard(now);
        }
        self.on_established(now, restarted);
        // The responder waits for a first datagram before it uses the keys.
        self.send_keepalive(now);
        Ok(())
    }

    pub(super) fn on_established(&mut self, now: Instant, restarted: bool) {
        // What one end has sent in vain the other knows nothing of: both count as active when they find each other.
        if restarted || self.established.get() == 0 || now > self.last_heard + self.idle().give_up {
            self.activity.on_traffic(now);
        }
        self.last_heard = now;
        // A handshake that was under way when the peer ended is still the former life's.
        self.has_left &= !restarted;
        self.unheeded.0 = 0;
        self.lines.on_established(now);
        self.established.increment();
        self.events.push_back(Event::Established { restarted });
    }

    /// Begins a handshake, over the next line.
    pub(super) fn initiate(&mut self, now: Instant) {
        if let Some(line) = self.lines.to_call() {
            self.lines.on_call();
            self.initiate_over(now, line, 0);
        }
    }

    /// Begins a handshake over a line, after so many challenges in a row.
    fn initiate_over(&mut self, now: Instant, id: LineId, follows: u8) {
        let Some(line) = self.lines.get(id) else { return };
        let Some(to) = line.paths.configured() else { return };
        let cookie = line.cookie;
        self.number += 1;
        let greeting = Greeting { terms: self.terms, line: id, number: self.number };
        let (sender, noise) = self.keys.initiate(&mut self.random, greeting, cookie.is_some(), follows);
        self.initiate_at = now + self.timing.retry;
        // Without one it looks as with one, so that nobody sees who has restarted.
        let cookie = cookie.unwrap_or_else(|| self.random.draw());
        let message = Message::Initiation { sender, cookie: &cookie, noise: &noise };
        let datagram = message.write(&self.seal, &[]);
        self.keys.on_sealed(sender, &datagram);
        self.send((to, id), datagram);
    }

    /// When the next initiation is due, if this side begins handshakes.
    pub(super) fn initiation_due(&self) -> Option<Instant> {
        if !self.lines.call_anybody() {
            return None;
        }
        let (Timing { silence, renew_after, .. }, idle) = (self.timing, self.idle());
        let current = self.keys.current().filter(|_| !self.has_left);
        let reason = current.map_or(Instant::ZERO, |current| {
            let silent = self.activity.due(self.last_heard, silence, idle.silence);
            let old = current.since + renew_after;
            let old = if self.activity.is_at(old) { old } else { current.since + idle.renew_after };
            if current.initiated { silent.min(old) } else { silent }
        });
        Some(reason.max(self.initiate_at))
    }
}
