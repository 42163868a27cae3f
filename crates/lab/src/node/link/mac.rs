//! An end whose frames leave by a MAC buffer: a terminal of a DAMA system.
//!
//! The endpoint is asked for a frame when the buffer has room, not when the air is free, and what it sends again queues behind what
//! is there. Without flow control it is asked as soon as it has something. Frames whose trailers are filled late are complete when they enter
//! the buffer: nobody knows then when they leave. Only what is fresh is asked for; to fill a line that is not granted would take
//! requests.

use base::{Instant, Packet};
use channel::Fate;
use channel::dama::{Departure, Terminal};
use link::{Demand, FrameKind};

use super::end::{LinkEnd, Told};
use super::path::InFlight;
use crate::engine::Context;
use crate::node::earlier;
use crate::observe::Sighting;
use crate::observe::events::{FrameSealed, FrameStarted, TrailerMark, What};

/// A frame in the buffer.
#[derive(Debug)]
pub struct Buffered {
    number: u64,
    kind: FrameKind,
    bits: u32,
    trailer: Option<TrailerMark>,
    /// Frames after this one that the buffer had no room for.
    dropped_behind: u32,
    bytes: Packet,
}

impl LinkEnd {
    /// This end with frames that leave by the MAC buffer of `terminal`.
    ///
    /// # Panics
    /// If its frames are a stream, which never ends.
    #[must_use]
    pub fn behind(mut self, terminal: Terminal<Buffered>) -> Self {
        assert!(self.stream.is_none(), "a stream has its line for itself");
        self.mac = Some(Box::new(terminal));
        self
    }

    /// The terminal whose MAC buffer frames leave by, if they do.
    #[must_use]
    pub fn terminal(&self) -> Option<&Terminal<Buffered>> {
        self.mac.as_deref()
    }

    /// Sends what slots are granted for and fills the buffer.
    pub(super) fn clock_mac(&mut self, cx: &mut Context<'_>) {
        let now = cx.now();
        let Some(mut mac) = self.mac.take() else { return };
        mac.advance(now, &mut self.path.line);
        self.take_departures(cx, &mut mac);
        loop {
            self.feed(now);
            self.path.wants_line = self.endpoint.demand(now) == Demand::Fresh;
            if !self.path.wants_line || (mac.has_flow_control() && !mac.has_room()) {
                break;
            }
            let Some(frame) = self.board(now, &mac) else { break };
            let (len, kind, bits) = (frame.bytes.len(), frame.kind, frame.bits);
            match mac.push(frame, len) {
                Ok(()) => self.count(0, kind, bits),
                Err(frame) => self.drop_frame(now, &mut mac, &frame),
            }
            mac.advance(now, &mut self.path.line);
            self.take_departures(cx, &mut mac);
        }
        self.mac = Some(mac);
    }

    /// The endpoint's next frame, complete.
    fn board(&mut self, now: Instant, mac: &Terminal<Buffered>) -> Option<Buffered> {
        let mut bytes = Packet::default();
        let info = self.endpoint.poll_frame(now, bytes.as_vec_mut())?;
        if info.late_len > 0 {
            self.endpoint.seal_frame(now, &mut bytes);
        }
        let bits = mac.air_bits(bytes.len()) as u32;
        let mut trailer = None;
        if self.probe.is_some() {
            let told = Told::by(&mut *self.endpoint);
            trailer = told.sent;
            self.note_flags(now, told);
        }
        let (number, kind) = (self.counters.frames + 1, info.kind);
        Some(Buffered { number, kind, bits, trailer, dropped_behind: 0, bytes })
    }

    /// The buffer had no room for a frame. To the protocol it has left behind those that are there, as one that is lost on the air does.
    fn drop_frame(&mut self, now: Instant, mac: &mut Terminal<Buffered>, frame: &Buffered) {
        match mac.last_mut() {
            Some(last) => last.dropped_behind += 1,
            None => self.endpoint.handle_departure(now),
        }
        if let Some(probe) = &self.probe {
            probe.note(now, What::FrameDropped { bits: frame.bits });
        }
    }

    fn take_departures(&mut self, cx: &mut Context<'_>, mac: &mut Terminal<Buffered>) {
        while let Some(departure) = mac.poll_departure() {
            self.depart(cx, departure);
        }
    }

    /// A frame's last cell has its slot.
    fn depart(&mut self, cx: &mut Context<'_>, departure: Departure<Buffered>) {
        let Departure { frame, on_air, arrives_at, fate } = departure;
        let Buffered { number, kind, bits, trailer, dropped_behind, bytes } = frame;
        for _ in 0..=dropped_behind {
            self.endpoint.handle_departure(on_air.end);
        }
        let intact = fate == Fate::Intact;
        if let Some(probe) = &self.probe {
            let (from, to) = (on_air.start, on_air.end);
            let started = FrameStarted { number, kind, bits, late_bits: 0, from, to, arrives_at };
            probe.note(cx.now(), What::FrameStarted(started));
            probe.note(cx.now(), What::FrameSealed(FrameSealed { number, intact, trailer }));
        }
        if let Some(tap) = &self.tap {
            let (bytes, has_preamble) = (&*bytes, false);
            tap.on_frame(
                cx.now(),
                &Sighting { number, kind, bits, on_air, arrives_at, fate, bytes, has_preamble },
            );
        }
        let frame = InFlight { number, arrives_at, kind, bytes };
        self.launch(cx, 0, frame, intact, intact);
    }

    /// When the buffer's terminal, or an endpoint that waits for room, wants to be woken.
    pub(super) fn mac_timeout(&self) -> Option<Instant> {
        let mac = self.mac.as_ref()?;
        let room = if self.path.wants_line && mac.has_flow_control() { mac.room_at() } else { None };
        earlier(mac.poll_timeout(), room)
    }
}
