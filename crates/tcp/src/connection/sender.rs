//! The sending half: what was written, what is outstanding, and what may go out.
//!
//! It hears of acknowledgements (`acknowledgement`) and of its deadlines (`timers`), and says what leaves next (`transmit`). Who
//! writes packets, and what else happens to a connection, it does not know.

pub(crate) mod acknowledgement;
pub(crate) mod coding;
pub(crate) mod delivery;
pub(crate) mod marking;
mod offload;
mod pacing;
mod path_mtu;
mod recovering;
mod spurious;
pub(crate) mod timers;
pub(crate) mod transmit;
mod validation;
mod window_use;

use core::net::IpAddr;
use std::sync::Arc;

use base::wire::ip::header_len_for;
use base::{Duration, Instant, SeqNum};

use super::statistics::SenderStatistics;
use super::{Negotiated, boxed};
use crate::fec::Outgoing;
use delivery::DeliveryMeter;
use marking::Marking;
use pacing::Pacer;
use path_mtu::PathMtu;
use spurious::Prior;
use timers::Timers;
use validation::Validation;
use window_use::WindowUse;

use crate::buffer::send::SendBuffer;
use crate::config::TcpConfig;
use crate::congestion::{self, Controller, Start};
use crate::ensemble::{Closing, Ensemble, Membership, Opening};
use crate::recovery::reduction::Reduction;
use crate::recovery::scoreboard::{News, Scoreboard};
use crate::recovery::{Arrival, Machine};
use crate::rtt::RttEstimator;
use crate::sequence::{ORIGIN, SeqSpace};

/// The send sequence space of RFC 9293 (3.3.1) and what belongs to it.
#[derive(Debug)]
pub(super) struct Sender {
    /// How the connection was told to behave.
    pub(super) config: Arc<TcpConfig>,
    /// What the two sides do; until the peer's SYN comes, what this side offers.
    pub(super) negotiated: Negotiated,
    pub(super) space: SeqSpace,
    /// What to add to the clock for timestamps of ours (RFC 7323, 5.4).
    timestamp_offset: u32,
    pub(super) timers: Timers,
    pub(super) marking: Marking,
    /// SND.UNA.
    pub(super) una: u64,
    /// SND.NXT.
    pub(super) nxt: u64,
    /// SND.WND in bytes.
    pub(super) window: u32,
    /// SND.WL1 and SND.WL2, the peer's offset and ours, modulo 2^32: each acceptable segment is within a window of the last.
    window_seq: SeqNum,
    window_ack: SeqNum,
    /// Max(SND.WND).
    pub(super) max_window: u32,
    /// Snd.Wind.Shift.
    pub(super) window_shift: u8,
    /// Bytes of the IP header before its segments.
    ip_header_len: u8,
    /// Eff.snd.MSS: payload bytes of a full segment.
    pub(super) mss: u32,
    /// The application has finished.
    pub(super) fin_queued: bool,
    pub(super) fin_sent: bool,
    pub(super) buffer: SendBuffer,
    pub(super) board: Scoreboard,
    pub(super) recovery: Machine,
    /// What the last time-out changed, until it proves needed or the response is complete.
    prior: Option<Box<Prior>>,
    /// How much of the window is used, once the application has not used all.
    validation: Option<Box<Validation>>,
    /// How the window goes down during fast recovery, where not at once.
    reduction: Option<Box<Reduction>>,
    /// What spaces data out, if anything does.
    pacer: Option<Box<Pacer>>,
    /// What is known of a path that is narrower than its ends.
    path_mtu: Option<Box<PathMtu>>,
    /// Its erasure code, if it has one.
    pub(super) code: Option<Box<Outgoing>>,
    pub(super) controller: Box<dyn Controller>,
    /// What it shares with others, while it may have something to send.
    membership: Option<Box<Membership>>,
    pub(super) rtt: RttEstimator,
    meter: DeliveryMeter,
    /// How much of the congestion window is used.
    window_use: WindowUse,
    /// When data were last sent.
    pub(super) last_sent_at: Instant,
    /// SND.UNA at the last time-out: another one there leaves `ssthresh` alone (RFC 5681, 3.1).
    timeout_at: u64,
    /// A short write was made: the application waits for [`super::Event::Writable`].
    write_blocked: bool,
    /// Segments of the present burst that have not gone yet.
    burst_left: u8,
    /// KiB of memory that the scoreboard may grow by; the largest is no limit.
    allowance: u16,
    pub(super) statistics: SenderStatistics,
}

impl Sender {
    /// Bytes on the heap: what was written, notes of what is in flight, and its parts.
    pub(super) fn memory(&self) -> usize {
        self.buffer.memory()
            + self.board.memory()
            + size_of_val(&*self.controller)
            + self.recovery.memory()
            + boxed(&self.pacer)
            + boxed(&self.path_mtu)
            + self.code.as_ref().map_or(0, |code| code.memory())
    }

    /// Whether others send by the same window.
    pub(super) const fn is_shared(&self) -> bool {
        self.membership.is_some()
    }

    /// To `peer`, with the largest segments that this side takes; a SYN is to be sent first.
    pub(super) fn new(config: Arc<TcpConfig>, peer: IpAddr, space: SeqSpace, timestamp_offset: u32) -> Self {
        let mss = config.mss_for(peer).into();
        Self {
            ip_header_len: header_len_for(peer) as u8,
            negotiated: Negotiated::offered(&config),
            space,
            timestamp_offset,
            timers: Timers::new(),
            marking: Marking::new(),
            una: ORIGIN,
            nxt: ORIGIN + 1,
            window: 0,
            window_seq: SeqNum(ORIGIN as u32),
            window_ack: SeqNum(ORIGIN as u32),
            max_window: 0,
            window_shift: 0,
            mss,
            fin_queued: false,
            fin_sent: false,
            buffer: SendBuffer::new(config.window.send_buffer.0 as usize),
            board: Scoreboard::default(),
            recovery: Machine::new(&config, false, ORIGIN + 1),
            prior: None,
            validation: None,
            reduction: None,
            pacer: None,
            path_mtu: None,
            code: None,
            controller: congestion::build(&config, &start(&config, mss, false, None)),
            membership: None,
            rtt: RttEstimator::new(&config),
            meter: DeliveryMeter::new(),
            window_use: WindowUse::default(),
            last_sent_at: Instant::ZERO,
            timeout_at: 0,
            write_blocked: false,
            burst_left: 0,
            allowance: u16::MAX,
            statistics: SenderStatistics::default(),
            config,
        }
    }

    /// The host has so many bytes of memory left for it.
    pub(super) fn set_allowance(&mut self, bytes: usize) {
        self.buffer.set_allowance(bytes);
        self.allowance = u16::try_from(bytes / 1024).unwrap_or(u16::MAX);
        if let Some(code) = &mut self.code {
            code.set_allowance(bytes / 4);
        }
    }

    /// Bytes of memory that the scoreboard may grow by.
    pub(super) fn allowance(&self) -> usize {
        if self.allowance == u16::MAX { usize::MAX } else { usize::from(self.allowance) * 1024 }
    }

    /// Takes part in what connections to `destination` share; `called`: the peer opened it.
    pub(super) fn join(
        &mut self,
        now: Instant,
        (destination, called): (IpAddr, bool),
        ensemble: &mut Ensemble,
    ) {
        if self.membership.is_some() {
            return;
        }
        let config = &self.config;
        let start = start(config, self.mss, false, self.rtt.srtt());
        let opening = Opening { now, config, start, syn_lost: false, called };
        let Some(membership) = ensemble.join(destination, &opening) else { return };
        if let Some((srtt, rttvar)) = membership.rtt(now) {
            self.rtt.seed(srtt, rttvar);
        }
        self.membership = Some(Box::new(membership));
    }

    /// Nothing more is to be sent: what it learnt and held is left to the others.
    pub(super) fn leave(&mut self, now: Instant) {
        if let Some(membership) = self.membership.take() {
            // What it was seeded with is not its own.
            let srtt = self.rtt.srtt().filter(|_| self.rtt.min() < Duration::MAX);
            let rttvar = self.rtt.rttvar();
            membership.leave(&Closing { now, ssthresh: self.controller.ssthresh(), srtt, rttvar });
        }
    }

    /// The handshake has settled what the two sides use; `syn_lost` if the SYN had to be sent again.
    pub(super) fn on_established(&mut self, now: Instant, syn_lost: bool) {
        let (config, Negotiated { sack, paired, .. }) = (&self.config, self.negotiated);
        self.recovery = Machine::new(config, sack, ORIGIN + 1);
        let start = Start { paired, ..start(config, self.mss, syn_lost, self.rtt.srtt()) };
        self.controller = match &mut self.membership {
            Some(membership) => {
                membership.establish(&Opening { now, config, start, syn_lost, called: false })
            }
            None => congestion::build(config, &start),
        };
        self.timers.forget_retries();
        if syn_lost {
            self.rtt.on_lost_syn();
        }
    }

    /// The retransmission time-out, back-off included.
    pub(super) fn rto(&self) -> Duration {
        self.rtt.backed_off(self.timers.backoff.into())
    }

    /// The peer's window as an acceptable segment tells it (RFC 9293, 3.10.7.4, fifth); whether it changed.
    pub(super) fn update_window(&mut self, seq: u64, ack: u64, window: u32) -> bool {
        let (seq, ack) = (SeqNum(seq as u32), SeqNum(ack as u32));
        if seq.lt(self.window_seq) || (self.window_seq == seq && ack.lt(self.window_ack)) {
            return false;
        }
        let changed = self.window != window;
        (self.window, self.window_seq, self.window_ack) = (window, seq, ack);
        self.max_window = self.max_window.max(window);
        changed
    }

    /// Bytes written and never sent.
    pub(super) const fn unsent(&self) -> usize {
        if self.fin_sent { 0 } else { self.buffer.len().saturating_sub((self.nxt - self.una) as usize) }
    }

    /// Whether a FIN is to be sent for the first time.
    pub(super) const fn fin_waits(&self) -> bool {
        self.fin_queued && !self.fin_sent
    }

    /// Bytes of the peer's window that are free.
    pub(super) const fn usable_window(&self) -> u64 {
        (self.una + self.window as u64).saturating_sub(self.nxt)
    }

    /// The window that the controller and recovery allow together.
    pub(super) fn allowed(&self) -> u64 {
        let window = self.reduction.as_ref().map_or_else(|| self.controller.window(), |it| it.window());
        match self.recovery.inflation(&self.board, u64::from(self.mss)) {
            0 => window,
            inflation => window.saturating_add_signed(inflation).max(u64::from(self.mss)),
        }
    }

    /// What recovery is told of an acknowledgement with these news; that is nothing new where a timer asks.
    fn arrival<'a>(&self, now: Instant, news: &'a News) -> Arrival<'a> {
        Arrival {
            now,
            news,
            una: self.una,
            nxt: self.nxt,
            mss: u64::from(self.mss),
            cwnd: self.controller.window(),
            new_data: self.recovery.doubts() && self.next_new().is_some(),
            srtt: self.rtt.srtt().unwrap_or_default(),
            rttvar: self.rtt.rttvar(),
            rtt_min: self.rtt.min(),
        }
    }

    /// Our timestamp clock: a tick a millisecond (RFC 7323, 5.4).
    pub(super) const fn timestamp(&self, now: Instant) -> u32 {
        self.timestamp_offset.wrapping_add((now.as_nanos() / 1_000_000) as u32)
    }

    /// Bytes that the buffer and the limit of what waits to be sent have room for.
    pub(super) fn room(&self) -> usize {
        self.buffer.room().min(self.unsent_limit().saturating_sub(self.unsent()))
    }

    fn unsent_limit(&self) -> usize {
        self.config.window.unsent_limit.map_or(usize::MAX, |limit| limit.0 as usize)
    }

    /// A write took less than it was given: the application is to hear of room.
    pub(super) const fn note_short_write(&mut self) {
        self.write_blocked = true;
    }

    /// Whether the application is to hear of room now, once there is enough: an eighth of the buffer, half of what may wait, or
    /// any if nothing is left to send.
    pub(super) fn unblocks(&mut self) -> bool {
        if !self.write_blocked || self.fin_queued {
            return false;
        }
        let enough = (self.buffer.limit() / 8).min(self.unsent_limit() / 2).max(1);
        let starved = self.unsent() < self.mss as usize;
        let room = self.room();
        let unblocks = room >= enough || (starved && room > 0);
        self.write_blocked = !unblocks;
        unblocks
    }

    /// New data left, or have to wait for the congestion window, which is full then.
    pub(super) const fn note_window_use(&mut self, full: bool) {
        self.window_use.note(self.una, self.nxt, full);
    }

    /// `bytes` went out, new or again.
    pub(super) fn note_sent(&mut self, bytes: u64) {
        if let Some(reduction) = &mut self.reduction {
            reduction.on_sent(bytes);
        }
    }

    /// The next new segment that the peer's window, silly window avoidance and Nagle let out: bytes and FIN.
    /// RFC 9293 (3.8.6.2.1), where everything written counts as pushed; a FIN never waits for Nagle. None if there is no memory
    /// to note it: an acknowledgement of what is outstanding makes room.
    pub(super) fn next_new(&self) -> Option<(u32, bool)> {
        self.next_segment(self.una == self.nxt || !self.config.nagle)
    }

    /// The next new segment for a tail loss probe, which does not wait for Nagle: any unsent segment that the peer's
    /// window allows will do (RFC 8985, 7.3). Bytes and FIN; none if there is no memory to note it.
    pub(super) fn next_new_probe(&self) -> Option<(u32, bool)> {
        self.next_segment(true)
    }

    /// The next new segment; Nagle has no say if it is `free`.
    fn next_segment(&self, free: bool) -> Option<(u32, bool)> {
        if !self.board.has_room(self.allowance()) {
            return None;
        }
        let usable = self.usable_window();
        let unsent = self.unsent() as u64;
        if unsent == 0 {
            return (self.fin_waits() && usable > 0).then_some((0, true));
        }
        let len = u64::from(self.mss).min(unsent).min(usable);
        let fin = self.fin_waits() && len == unsent && usable > len;
        let goes = len == u64::from(self.mss)
            || (len == unsent && (free || self.fin_queued))
            || (free && len > 0 && 2 * len >= u64::from(self.max_window));
        goes.then_some((len as u32, fin))
    }

    /// How many samples to expect in a round trip, as a power of two (RFC 7323, appendix G).
    pub(super) const fn samples_log2(&self) -> u32 {
        let expected = (self.nxt - self.una) / (2 * self.mss as u64);
        if expected == 0 { 0 } else { expected.ilog2() }
    }
}

/// RFC 5681 (3.1): one segment if the SYN was lost.
fn start(config: &TcpConfig, mss: u32, syn_lost: bool, srtt: Option<Duration>) -> Start {
    let mss = u64::from(mss);
    Start {
        mss,
        initial_window: if syn_lost { mss } else { config.window.initial.bytes(mss) },
        byte_counting_limit: u64::from(config.window.byte_counting_limit),
        ssthresh: config.window.initial_ssthresh.map_or(u64::MAX, |ssthresh| ssthresh.0),
        srtt,
        slow_start: config.window.slow_start,
        paced: config.pacing,
        paired: false,
    }
}
