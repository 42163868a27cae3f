//! What a split-connection proxy asks of its connections (RFC 3135, 2.2): to hold an answer back until the far end has
//! given one, to acknowledge no more than the far end has, to look to each end as the other one does, and not to lose a
//! round trip between two proxies.
//!
//! Deviations from RFC 7413, whose data on a SYN this is: no cookies, for the peer has proved who it is by other means; and the
//! windows of both SYNs are scaled, so that the first flight is not bound to 64 KiB.

use std::sync::Arc;

use base::{Instant, SeqNum};

use super::{Connection, Events, State};
use crate::sequence::ORIGIN;

/// What a proxy has to do with a connection.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Proxied {
    /// Bytes of data that the SYN carried.
    pub(super) sent_early: u16,
    /// Bytes of the longest segment that the peer says it takes from anybody.
    pub(super) peer_mss: u16,
    /// Code point of what is sent.
    pub(super) dscp: u8,
    marks: u8,
}

/// The SYN is not answered yet: the owner has not said what with.
const HELD: u8 = 1;
/// The owner knows of it since the SYN came.
const KNOWN: u8 = 2;
/// The SYN-ACK is out and taken for received.
const UNCONFIRMED: u8 = 4;
/// The owner hears of every acknowledgement.
const RELAYS: u8 = 8;
/// What came stays until it is read, however long the connection has been over.
const KEEPS_UNREAD: u8 = 16;
/// It resembles an end: what that end has not said yet is not said for it.
const RESEMBLES: u8 = 32;
/// The SYN-ACK has come and is not acknowledged: the end has not acknowledged its own.
const SILENT: u8 = 64;

impl Proxied {
    const fn is(self, mark: u8) -> bool {
        self.marks & mark != 0
    }

    const fn set(&mut self, marks: u8) {
        self.marks |= marks;
    }

    const fn clear(&mut self, mark: u8) {
        self.marks &= !mark;
    }
}

/// What an end says of itself in its SYN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offer {
    /// Its initial sequence number.
    pub initial_sequence: SeqNum,
    /// Bytes of its longest segment, as far as this side can use them.
    pub mss: u16,
    /// The scale of its windows; none if it does not scale any.
    pub window_scale: Option<u8>,
    /// Whether it can do selective acknowledgements.
    pub sack: bool,
}

impl Connection {
    /// Keeps what came until it is read, even when the connection is long over.
    pub(crate) const fn keep_unread(&mut self) {
        self.proxied.set(KEEPS_UNREAD);
    }

    /// What the peer's SYN said; none before it came.
    #[must_use]
    pub fn offer(&self) -> Option<Offer> {
        (self.state != State::SynSent).then(|| Offer {
            initial_sequence: self.receiver.space.number(ORIGIN),
            mss: self.proxied.peer_mss,
            window_scale: self.sender.negotiated.scaling.then_some(self.sender.window_shift),
            sack: self.sender.negotiated.sack,
        })
    }

    /// Whether the peer is a proxy of ours too, as both have said in their SYNs.
    #[must_use]
    pub const fn is_paired(&self) -> bool {
        self.sender.negotiated.paired
    }

    /// Whether the peer's SYN waits to be answered: not when the peer has given up meanwhile.
    #[must_use]
    pub fn is_held(&self) -> bool {
        self.proxied.is(HELD) && self.state == State::SynReceived
    }

    /// Whether the owner has known of it since the SYN came.
    pub(super) const fn is_known(&self) -> bool {
        self.proxied.is(KNOWN)
    }

    /// Whether it looks to its peer as another end does.
    pub(super) const fn resembles_end(&self) -> bool {
        self.proxied.is(RESEMBLES)
    }

    /// Whether the answer to the peer's SYN is taken for received.
    pub(super) const fn is_unconfirmed(&self) -> bool {
        self.proxied.is(UNCONFIRMED)
    }

    /// Whether the peer has yet to prove that it received the answer to its SYN.
    pub(crate) fn is_half_open(&self) -> bool {
        self.state == State::SynReceived || (self.proxied.is(UNCONFIRMED) && self.state != State::Closed)
    }

    /// Sends with this code point from now on.
    pub const fn set_dscp(&mut self, dscp: u8) {
        self.proxied.dscp = dscp;
    }

    /// Does not answer the SYN until it is [admitted](Connection::admit) or aborted; takes what `data` it came with.
    pub(crate) fn hold(&mut self, data: &[u8]) {
        self.proxied.set(HELD | KNOWN);
        self.syn_due = false;
        self.events.raise(Events::ASKED);
        if self.sender.negotiated.paired && !data.is_empty() {
            self.receiver.open_early();
            let intake = self.receiver.take(ORIGIN + 1, data, false);
            if intake.placed.is_some() {
                self.statistics.bytes_received += self.receiver.nxt() - (ORIGIN + 1);
                self.events.raise(Events::READABLE);
            }
        }
    }

    /// Fails in the end though its SYN may never leave: whoever owns the link may have nobody to send it to.
    pub(crate) fn lose_patience_after(&mut self, now: Instant) {
        let patience = self.sender.rtt.patience(self.sender.config.limits.syn_retries.saturating_add(1));
        self.sender.timers.note_progress(now);
        self.sender.restart_retransmit(now, patience);
    }

    /// The peer is no proxy of ours: whoever let its call pass does not share its waits with it.
    pub(super) fn wait_as_unpaired(&mut self) {
        if let Some(waits) = self.sender.config.unpaired {
            let config = (*self.sender.config).clone().with(|it| (it.rto, it.limits) = waits);
            self.sender.config = Arc::new(config);
            self.sender.rtt.set_config(&self.sender.config);
        }
    }

    /// The peer has acknowledged the answer to its SYN.
    pub(super) const fn confirm(&mut self) {
        if self.proxied.is(UNCONFIRMED) {
            self.proxied.clear(UNCONFIRMED);
            self.sender.timers.forget_retries();
        }
    }

    /// Answers the SYN that was held, as the end would that made `offer`, if there is one.
    pub fn admit(&mut self, offer: Option<&Offer>) {
        let was_held = self.is_held();
        self.proxied.clear(HELD);
        if was_held {
            if let Some(offer) = offer {
                self.resemble(offer);
            }
            self.syn_due = true;
        }
    }

    /// Looks to the peer as the end does that made `offer`, so that the two could go on without this connection. Before
    /// its SYN is sent, and with timestamps off, whose clocks are the ends' own.
    pub(crate) fn resemble(&mut self, offer: &Offer) {
        self.proxied.set(RESEMBLES);
        self.sender.space = crate::sequence::SeqSpace::starting_at(offer.initial_sequence);
        self.receiver.mss = self.receiver.mss.min(offer.mss);
        self.sender.negotiated.sack &= offer.sack;
        self.sender.negotiated.scaling &= offer.window_scale.is_some();
        self.receiver.window_shift = offer.window_scale.unwrap_or(0);
        if !self.sender.negotiated.scaling {
            (self.receiver.window_shift, self.sender.window_shift) = (0, 0);
        }
        self.agree_again_on_code();
    }

    /// The SYN-ACK has come: it is acknowledged, or waits until the end has acknowledged its own.
    pub(super) const fn acknowledge_syn(&mut self) {
        self.receiver.ack_now = true;
        if self.proxied.is(RESEMBLES) {
            self.proxied.set(SILENT);
        }
    }

    pub(super) const fn is_silent(&self) -> bool {
        self.proxied.is(SILENT)
    }

    /// The end that this resembles is established: so is this, for its peer.
    pub const fn break_silence(&mut self) {
        self.proxied.clear(SILENT);
    }

    /// From now on there is an [`Event::Acknowledged`](super::Event::Acknowledged) when the peer has acknowledged more.
    pub const fn relay_acknowledgements(&mut self) {
        self.proxied.set(RELAYS);
    }

    pub(super) const fn note_acknowledged(&mut self) {
        if self.proxied.is(RELAYS) {
            self.events.raise(Events::ACKNOWLEDGED);
        }
    }

    /// Whether what came is kept for its owner, who has not read all of it.
    pub(super) const fn keeps_unread(&self) -> bool {
        self.proxied.is(KEEPS_UNREAD) && self.receiver.reassembly.unread() > 0
    }

    /// Nobody wants what came any more.
    pub(super) const fn drop_unread(&mut self) {
        self.proxied.clear(KEEPS_UNREAD);
    }

    /// A proxy has many connections, most of them idle: what came takes no memory once it is read.
    pub(super) fn release_if_read(&mut self) {
        if self.proxied.is(KEEPS_UNREAD) {
            self.receiver.reassembly.release_if_empty();
        }
    }

    /// What was sent takes none once it is acknowledged.
    pub(super) fn release_if_acknowledged(&mut self) {
        if self.proxied.is(KEEPS_UNREAD) && self.sender.buffer.len() == 0 {
            self.sender.buffer.release();
        }
    }

    /// How much of the stream, FIN included, the peer has acknowledged.
    #[must_use]
    pub const fn acknowledged(&self) -> u64 {
        self.sender.una.saturating_sub(ORIGIN + 1)
    }

    /// Acknowledges from now on only the first `count` of the stream's bytes and FIN, whatever has come; a count never falls.
    pub fn acknowledge_only(&mut self, count: u64) {
        self.receiver.set_ceiling(ORIGIN + 1 + count);
    }

    /// Whether an empty segment, or one with a byte, and this number asks whether somebody is still there (RFC 9293, 3.8.4).
    #[must_use]
    pub fn is_keep_alive(&self, seq: SeqNum) -> bool {
        let received = self.receiver.acknowledged();
        self.may_stay_silent() && self.receiver.space.offset(seq, received) + 1 == received
    }

    /// Asks the peer whether it is still there, unless its answer to something is awaited anyway: the connection fails if it is not.
    pub fn ask_peer(&mut self, now: Instant) {
        if self.may_stay_silent() && self.timers.keep_alives == 0 {
            self.on_keep_alive_timer(now);
        }
    }

    /// Bytes that a SYN of ours takes along, which is the first one to a proxy alone.
    pub(super) fn early_data(&mut self) -> usize {
        if self.state != State::SynSent || !self.sender.negotiated.paired || self.sender.timers.retries > 0 {
            return 0;
        }
        let room = usize::from(self.sender.config.mss_for(self.remote.ip)) - MOST_SYN_OPTIONS;
        let len = self.sender.buffer.len().min(room);
        self.proxied.sent_early = len as u16;
        len
    }

    /// The peer has taken `count` bytes from our SYN.
    pub(super) fn skip_early_data(&mut self, count: usize) {
        let sender = &mut self.sender;
        sender.buffer.acknowledge(count);
        sender.una += count as u64;
        sender.nxt = sender.nxt.max(sender.una);
        self.sender.statistics.bytes_acked += count as u64;
        if count > 0 {
            self.note_acknowledged();
        }
    }

    /// The SYN-ACK to a proxy has left: what follows need not wait for its answer.
    pub(super) fn establish_unconfirmed(&mut self, now: Instant) {
        self.proxied.set(UNCONFIRMED);
        self.sender.una = ORIGIN + 1;
        self.sender.timers.note_progress(now);
        self.sender.rearm_retransmit(now);
        self.sender.on_established(now, false);
        self.state = State::Established;
        self.events.raise(Events::CONNECTED);
    }
}

/// Bytes of options that a SYN has at most.
const MOST_SYN_OPTIONS: usize = 40;
