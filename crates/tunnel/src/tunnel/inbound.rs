//! From the carrier to the LAN.

use base::Instant;
use base::wire::ip::Ecn;
use link::{Discard, LineId};
use pep::Side;

use super::{Event, Silence, Tunnel};
use crate::control::Kind;
use crate::path::{Address, Path};
use crate::proxy_side::{Delivery, poll_super_segment};
use crate::session::{self, Arrival, Call, Rejection, Reply};

impl Tunnel {
    /// Takes a datagram that came from `from`, with the ECN field of its header. It is opened in place.
    ///
    /// # Errors
    /// [`Rejection`] says why it was dropped; it is counted.
    pub(crate) fn handle_datagram(
        &mut self,
        now: Instant,
        from: Path,
        ecn: Ecn,
        datagram: &mut [u8],
    ) -> Result<(), Rejection> {
        self.traffic.datagrams_received.increment();
        self.traffic.bytes_received.add((datagram.len() + self.config.carrier.header_len) as u64);
        let result = self.session.handle_datagram(now, from, datagram);
        self.take_session_events(now);
        self.follow_lines(now);
        if self.connection.is_none() && self.session.is_heard(now) {
            // Again, under the same keys.
            self.watch_silence(now);
        }
        let taken = match result {
            Ok(Some(arrival)) => {
                if arrival.skipped > 0 {
                    // That is news, even behind a keep-alive: a report may be due at once.
                    self.stir();
                }
                let line = &mut self.lines[arrival.line];
                line.survey.reports.on_received(now, datagram.len() as u64, arrival.skipped);
                self.handle_arrival(now, ecn, datagram, arrival)
            }
            Ok(None) => Ok(()),
            Err(rejection) => Err(rejection),
        };
        taken.inspect_err(|rejection| self.rejected.increment(rejection.counter()))
    }

    /// Answers an initiation by the peer.
    ///
    /// # Errors
    /// [`Rejection`] says why it was dropped.
    pub(crate) fn handle_call(
        &mut self,
        now: Instant,
        call: Call,
        reply: Reply<'_>,
    ) -> Result<(), Rejection> {
        self.traffic.datagrams_received.increment();
        let answered = self.session.answer(now, call, reply);
        self.add_lines();
        answered
    }

    /// Whether the peer may have one more answer to an initiation, which counts.
    pub(crate) fn allows_answer(&mut self, now: Instant) -> bool {
        self.session.allows_answer(now)
    }

    fn handle_arrival(
        &mut self,
        now: Instant,
        ecn: Ecn,
        datagram: &[u8],
        arrival: Arrival,
    ) -> Result<(), Rejection> {
        let (body, id) = (&datagram[arrival.payload], arrival.line);
        if arrival.kind == Kind::Frame && body.is_empty() {
            // A keep-alive: the session has heard it, and nobody else needs to.
            return Ok(());
        }
        self.stir();
        match arrival.kind {
            kind @ (Kind::Frame | Kind::FrameOver) => {
                let over = (kind == Kind::FrameOver).then_some(id);
                self.handle_frame(now, (id, over), ecn, body, arrival.late);
            }
            kind @ (Kind::Part | Kind::PartOver) => {
                let over = (kind == Kind::PartOver).then_some(id);
                if let Some((frame, ecn)) = self.lines[id].parts.handle(ecn, body) {
                    self.handle_frame(now, (id, over), ecn, &frame, arrival.late);
                }
            }
            Kind::Terms => {
                self.lines[id].line_use.handle(body);
                self.follow_lines(now);
            }
            Kind::Pairing => {
                self.proxy_side.handle_pairing(now, body, self.ingress.proxy.as_deref_mut());
            }
            // What surveys say to each other: reports, trains, probes of packet sizes.
            kind => {
                let inside = self.ingress.queues.busy_flows();
                let survey = &mut self.lines[id].survey;
                survey.rate_controller.set_inside(now, inside);
                if !survey.handle_control(now, kind, body) {
                    return Err(Rejection::UnknownControl);
                }
            }
        }
        Ok(())
    }

    /// A frame has come over a line, in the form of a link with one line or over `over` of several.
    fn handle_frame(
        &mut self,
        now: Instant,
        (line, over): (LineId, Option<LineId>),
        ecn: Ecn,
        frame: &[u8],
        late: bool,
    ) {
        self.lines[line].survey.reports.on_traffic(now);
        if late && self.needs_order {
            return self.traffic.datagrams_dropped_late.increment();
        }
        let handled = match over {
            None => self.endpoint.handle_frame(now, frame),
            Some(line) => {
                let lines = self.endpoint.lines().ok_or(Discard::Malformed);
                lines.and_then(|lines| lines.handle_frame_over(now, line, frame))
            }
        };
        match handled {
            Ok(()) => self.congestion.on_frame(ecn, frame.len()),
            Err(discard) => self.discarded.increment(name(discard)),
        }
        self.note_progress(now);
        self.deliver(now);
    }

    /// Tells the survey if more of what was sent has arrived than was known: somebody may keep all reports from coming.
    fn note_progress(&mut self, now: Instant) {
        let acknowledged = self.endpoint.acknowledged();
        let former = core::mem::replace(&mut self.acknowledged, acknowledged);
        // Of several lines nobody knows which has carried it.
        if acknowledged > former && self.lines.is_single() {
            self.lines.first.survey.on_progress(now, acknowledged - former);
        }
    }

    /// A packet for the LAN. Callers that look after several datagrams get longer trains.
    pub(crate) fn poll_packet(&mut self, now: Instant) -> Option<Delivery> {
        let cuts = self.config.cuts_trains;
        self.lan.pop_front().or_else(|| {
            self.ingress.proxy.as_mut().and_then(|proxy| poll_super_segment(proxy, now, Side::Lan, cuts))
        })
    }

    /// Takes what the endpoint has completed.
    pub(super) fn deliver(&mut self, now: Instant) {
        while let Some(mut packet) = self.endpoint.poll_packet() {
            let is_marked = self.congestion.mark(&mut packet);
            if !self.ingress.takes(now, Side::Link, &mut packet) {
                self.traffic.ecn_marked.add(is_marked.into());
                self.lan.push_back(Delivery { packet, train: None });
            }
        }
    }

    /// Takes what the session tells. A peer that was restarted knows nothing of what was said, so link, survey and proxy forget it too, before
    /// they take anything from its new life.
    pub(super) fn take_session_events(&mut self, now: Instant) {
        while let Some(event) = self.session.poll_event() {
            self.stir();
            let told = match (event, self.session.peer()) {
                (session::Event::Established { restarted }, peer) => {
                    for (id, line) in self.lines.all_mut() {
                        let may_pad = line.may_pad();
                        if id == LineId::FIRST || line.has_begun {
                            line.survey.on_established(now, restarted, may_pad);
                        }
                        if restarted {
                            line.parts.restart();
                            line.line_use.restart();
                        }
                    }
                    if restarted {
                        self.endpoint.reset();
                        if let Some(proxy) = &mut self.ingress.proxy {
                            self.proxy_side.on_peer_restarted(now, proxy);
                        }
                    }
                    peer.and_then(|peer| self.connect(now, peer, restarted))
                }
                // That the peer is not heard is told by itself.
                (session::Event::Lost, _) => None,
                (session::Event::Left, peer) => {
                    if let Some(proxy) = &mut self.ingress.proxy {
                        self.proxy_side.on_peer_restarted(now, proxy);
                    }
                    self.connection = None;
                    self.silence = Silence::from(now);
                    Some(Event::Left { peer })
                }
                (session::Event::Unheeded, _) => Some(Event::Unheeded),
            };
            if let Some(told) = told {
                self.tell(told);
            }
        }
    }

    /// The peer is heard at this address, which is told unless it was known.
    pub(super) fn connect(&mut self, now: Instant, peer: Address, restarted: bool) -> Option<Event> {
        let known = self.connection.filter(|(_, known)| *known == peer && !restarted);
        self.connection = known.or(Some((now, peer)));
        known.is_none().then_some(Event::Established { peer, restarted })
    }
}

const fn name(discard: Discard) -> &'static str {
    match discard {
        Discard::Truncated(_) => "truncated",
        Discard::Malformed => "malformed",
        Discard::Duplicate(_) => "duplicate",
        Discard::Late(_) => "late",
        Discard::OutsideWindow(_) => "outside_window",
    }
}
