//! Opening: active, passive and at the same time (RFC 9293, 3.5 and 3.10.7.3).

use core::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use base::wire::ip::Ecn;
use base::wire::tcp::coding::Coding;
use base::wire::tcp::{self, Flags, Options};
use base::{Duration, Instant, Packet, SeqNum};

use super::ecn::Echo;
use super::emit::Reset;
use super::emit::TIMESTAMPS_LEN;
use super::receiver::{MAX_SHIFT, Receiver};
use super::sender::Sender;
use super::statistics::Statistics;
use super::timers::Timers;
use super::{Address, Connection, Discard, Events, Failure, Proxied, State};
use crate::config::TcpConfig;
use crate::ensemble::Ensemble;
use crate::sequence::{ORIGIN, SeqSpace};

/// What the owner of a connection chooses for it at random (RFC 6528; RFC 7323, 5.4).
#[derive(Clone, Copy, Debug)]
pub struct Seeds {
    /// Initial sequence number.
    pub initial_sequence: SeqNum,
    /// What to add to the timestamp clock.
    pub timestamp_offset: u32,
}

impl Connection {
    fn new(
        config: Arc<TcpConfig>,
        local: SocketAddr,
        remote: SocketAddr,
        seeds: Seeds,
        passive: bool,
    ) -> Self {
        let mss = config.mss_for(remote.ip());
        let initial = config.initial_sequence.unwrap_or(seeds.initial_sequence);
        let space = SeqSpace::starting_at(initial);
        Self {
            receiver: Receiver::new(&config, mss),
            sender: Sender::new(config, remote.ip(), space, seeds.timestamp_offset),
            local: Address::of(local),
            remote: Address::of(remote),
            state: if passive { State::SynReceived } else { State::SynSent },
            passive,
            timers: Timers::new(),
            echo: Echo::default(),
            forerunners: None,
            proxied: Proxied::default(),
            syn_due: true,
            reset_due: None,
            orphaned: false,
            events: Events::default(),
            failure: None,
            statistics: Statistics::default(),
        }
    }

    /// A connection that this side opens; its SYN is ready to be polled.
    #[must_use]
    pub fn connect(config: Arc<TcpConfig>, local: SocketAddr, remote: SocketAddr, seeds: Seeds) -> Self {
        Self::new(config, local, remote, seeds, false)
    }

    /// A connection that the peer opens with the segment `syn`; its SYN-ACK is ready to be polled.
    #[must_use]
    pub fn accept(
        now: Instant,
        config: Arc<TcpConfig>,
        local: SocketAddr,
        remote: SocketAddr,
        seeds: Seeds,
        syn: &tcp::Repr,
    ) -> Self {
        let mut connection = Self::new(config, local, remote, seeds, true);
        connection.take_syn(now, syn);
        connection.statistics.segments_received += 1;
        connection
    }

    /// A connection whose SYN-ACK was sent and forgotten; the peer's answer to it is to be handled next.
    pub(crate) fn accept_answered(
        now: Instant,
        config: Arc<TcpConfig>,
        local: SocketAddr,
        remote: SocketAddr,
        seeds: Seeds,
        syn: &tcp::Repr,
    ) -> Self {
        let mut connection = Self::accept(now, config, local, remote, seeds, syn);
        // What the answer offered, this side has offered; when that was, nobody knows.
        connection.poll_transmit(now, &mut Packet::default());
        connection.sender.last_sent_at = Instant::MAX;
        connection
    }

    /// Bytes of the MSS of a peer that does not say (RFC 9293, 3.7.1).
    pub(crate) const fn default_mss(remote: IpAddr) -> u16 {
        if remote.is_ipv4() { 536 } else { 1220 }
    }

    /// Whether `segment` acknowledges our SYN, which nobody can who did not receive it.
    pub(crate) fn is_answered_by(&self, segment: &tcp::Repr) -> bool {
        self.state == State::SynReceived
            && segment.flags.has(Flags::ACK)
            && segment.ack == self.sender.space.number(ORIGIN + 1)
    }

    /// Whether nobody has answered the first SYNs.
    fn is_unheard(&self) -> bool {
        self.state == State::SynSent && self.sender.timers.retries >= 2 && !self.sender.config.proxy_is_known
    }

    /// Takes part in what a host's connections share; before its handshake is over.
    pub(crate) fn join(&mut self, now: Instant, ensemble: &mut Ensemble) {
        self.sender.join(now, (self.remote.ip, self.passive), ensemble);
    }

    /// Whether the SYN or SYN-ACK that is sent now offers a code. One that was not answered is sent again without it, after some; but data
    /// between proxies may already be coded.
    fn offers_code(&self) -> bool {
        let is_used = self.passive && self.sender.negotiated.paired;
        self.sender.negotiated.coded && (is_used || self.sender.timers.retries <= LOST_SYNS)
    }

    /// Takes the peer's SYN: its numbering and what it offers.
    fn take_syn(&mut self, now: Instant, syn: &tcp::Repr) {
        let options = &syn.options;
        self.sender.negotiated.paired &= options.proxy_mss.is_some();
        if !self.sender.negotiated.paired {
            self.wait_as_unpaired();
        }
        // A SYN's window is scaled between proxies alone.
        let most = if self.sender.negotiated.paired { u64::MAX } else { u16::MAX.into() };
        self.receiver.on_syn(syn.seq, most);
        self.take_syn_ecn_flags(syn.flags);
        self.sender.negotiated.scaling &= options.window_scale.is_some();
        self.sender.negotiated.sack &= options.sack_permitted;
        self.receiver.policy.dsack &= self.sender.negotiated.sack;
        self.sender.negotiated.timestamps &= options.timestamps.is_some();
        self.sender.negotiated.coded &= options.coding.offered && self.sender.negotiated.sack;
        if self.sender.negotiated.scaling {
            let shift = options.window_scale.unwrap_or(0);
            self.sender.window_shift = shift.min(MAX_SHIFT);
            self.statistics.excessive_scales += u16::from(shift > MAX_SHIFT);
        } else {
            self.receiver.window_shift = 0;
        }
        if let Some(timestamps) = options.timestamps {
            (self.receiver.ts_recent, self.receiver.ts_recent_at) = (timestamps.value, now);
        }
        // Options take from the payload (RFC 6691).
        let usual = options
            .mss
            .unwrap_or(Self::default_mss(self.remote.ip))
            .min(self.sender.config.mss_for(self.remote.ip));
        self.proxied.peer_mss = usual;
        let paired =
            options.proxy_mss.min(self.sender.config.proxy_mss).filter(|_| self.sender.negotiated.paired);
        let mss = paired.unwrap_or(usual).max(64);
        let taken = if self.sender.negotiated.timestamps { TIMESTAMPS_LEN as u32 } else { 0 };
        self.sender.mss = u32::from(mss) - taken;
        self.agree_on_code();
        // A SYN's window is not scaled (RFC 7323, 2.2), but between proxies.
        let shift = if self.sender.negotiated.paired { self.sender.window_shift } else { 0 };
        let seq = self.receiver.space.offset(syn.seq, ORIGIN);
        self.sender.update_window(seq, self.sender.una, u32::from(syn.window) << shift);
    }

    /// Sends the SYN or SYN-ACK that is due.
    pub(super) fn poll_handshake(&mut self, now: Instant, out: &mut Packet) -> bool {
        if !self.syn_due {
            return false;
        }
        self.syn_due = false;
        let options = Options {
            mss: Some(self.receiver.mss),
            window_scale: self.sender.negotiated.scaling.then_some(self.receiver.window_shift),
            sack_permitted: self.sender.negotiated.sack,
            // Somebody between may drop what it does not know.
            proxy_mss: self
                .sender
                .config
                .proxy_mss
                .filter(|_| self.sender.negotiated.paired && !self.is_unheard()),
            coding: Coding { offered: self.offers_code(), ..Coding::default() },
            ..Options::default()
        };
        let early = self.early_data();
        self.emit_syn(now, out, options, early);
        if !matches!(self.state, State::SynSent | State::SynReceived) {
            // The peer has asked again for what it had not received.
            return true;
        }
        if self.passive && self.sender.negotiated.paired && !self.resembles_end() {
            self.establish_unconfirmed(now);
            return true;
        }
        if self.sender.timers.retries == 0 {
            self.sender.last_sent_at = now;
            self.sender.timers.note_progress(now);
        }
        self.sender.rearm_retransmit(now);
        true
    }

    /// A segment for a connection in SYN-SENT.
    pub(super) fn handle_in_syn_sent(
        &mut self,
        now: Instant,
        ecn: Ecn,
        segment: &tcp::Repr,
        payload: &[u8],
    ) -> Result<(), Discard> {
        let acks = segment.flags.has(Flags::ACK);
        let taken = segment.ack.distance(self.sender.space.number(ORIGIN + 1));
        if acks && !(0..=i64::from(self.proxied.sent_early)).contains(&i64::from(taken)) {
            if !segment.flags.has(Flags::RST) {
                self.reset_due = Some(Reset::Answer(segment.ack));
            }
            return Err(Discard::BadAck(segment.ack));
        }
        if segment.flags.has(Flags::RST) {
            if acks {
                self.fail(now, Failure::Refused);
                return Ok(());
            }
            return Err(Discard::OutsideWindow(segment.seq));
        }
        if !segment.flags.has(Flags::SYN) {
            let is_kept = acks && self.keep_forerunner(ecn, segment, payload);
            return if is_kept { Ok(()) } else { Err(Discard::NoAck) };
        }
        self.take_syn(now, segment);
        if acks {
            self.establish(now, segment);
            self.skip_early_data(taken as usize);
            self.acknowledge_syn();
            self.take_forerunners(now);
        } else {
            // Both opened at once: answer as if we had listened (RFC 9293, figure 8).
            self.state = State::SynReceived;
            self.syn_due = true;
        }
        Ok(())
    }

    /// Whether this SYN may open the connection anew although it is in TIME-WAIT (RFC 6191, 2).
    pub(crate) fn may_be_replaced(&self, now: Instant, syn: &tcp::Repr) -> bool {
        if !syn.flags.has(Flags::SYN) || syn.flags.any(Flags::ACK | Flags::RST) {
            return false;
        }
        let later = self.receiver.space.offset(syn.seq, self.receiver.nxt()) > self.receiver.nxt();
        match syn.options.timestamps.filter(|_| self.sender.config.timestamps) {
            Some(_) if !self.sender.negotiated.timestamps => true,
            Some(timestamps) if timestamps.value != self.receiver.ts_recent => {
                !self.receiver.is_old_timestamp(now, timestamps.value)
            }
            _ => later,
        }
    }

    /// Whether an attempt to connect to the same port may take its place: it has ended, or the peer can tell by a later
    /// timestamp that the old connection is over (RFC 6191; `tcp_tw_reuse` of Linux).
    pub(crate) fn may_be_reopened(&self, now: Instant) -> bool {
        let waited = now.saturating_since(self.receiver.ts_recent_at);
        match self.state {
            State::Closed => self.reset_due.is_none(),
            State::TimeWait => self.sender.negotiated.timestamps && waited >= REOPENED_AFTER,
            _ => false,
        }
    }

    /// Our SYN was acknowledged.
    pub(super) fn establish(&mut self, now: Instant, segment: &tcp::Repr) {
        let syn_lost = self.sender.timers.retries > 0;
        self.sender.una = ORIGIN + 1;
        self.sender.timers.stop_retransmit();
        self.sender.timers.note_progress(now);
        let bounds = (self.sender.una, self.sender.nxt);
        let sent_at = Some(self.sender.last_sent_at).filter(|&at| !syn_lost && at < Instant::MAX);
        let rtt =
            sent_at.map(|at| now.saturating_since(at)).or_else(|| self.sender.timestamp_rtt(now, segment));
        if let Some(rtt) = rtt {
            self.sender.rtt.on_sample(rtt, 0, bounds);
        }
        self.sender.last_sent_at = self.sender.last_sent_at.min(now);
        self.sender.on_established(now, syn_lost);
        self.syn_due = false;
        self.state = State::Established;
        self.events.raise(Events::CONNECTED);
    }
}

/// SYNs that may be lost before one leaves without an offer of ours: those who make it expect losses.
pub(super) const LOST_SYNS: u16 = 3;
/// Timestamps have moved on by then, whatever the peer's clock ticks in; 1 s in Linux.
const REOPENED_AFTER: Duration = Duration::from_secs(1);
