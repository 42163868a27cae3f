//! Segments of no connection: they open one, or are reset (RFC 9293, 3.10.7.1 and 3.10.7.2).
//!
//! A listener keeps `limits.backlog` half-open connections. Further SYNs are answered by cookies, which keep no state: a
//! flood of SYNs costs an answer each, and locks nobody out.

use core::net::SocketAddr;
use std::sync::Arc;

use base::wire::ip::Ecn;
use base::wire::tcp::{self, Flags};
use base::{Instant, Packet, SeqNum};

use super::cookies::Cookies;
use super::ports::Key;
use super::{Discard, Host};
use crate::config::TcpConfig;
use crate::connection::emit::write_packet;
use crate::connection::{Connection, Seeds, State};

/// A port that accepts connections.
#[derive(Debug)]
pub(super) struct Listener {
    pub(super) config: Arc<TcpConfig>,
    pub(super) half_open: u32,
    /// When the cookies that it gave out are good no more.
    cookies_until: Instant,
}

impl Listener {
    pub(super) const fn new(config: Arc<TcpConfig>) -> Self {
        Self { config, half_open: 0, cookies_until: Instant::ZERO }
    }

    /// Takes a place in the backlog, if there is one; else there will be a cookie.
    fn admit(&mut self, now: Instant) -> bool {
        let room = self.half_open < self.config.limits.backlog;
        if room {
            self.half_open += 1;
        } else {
            self.cookies_until = Cookies::expiry(now);
        }
        room
    }

    /// Gives a place in the backlog back.
    pub(super) const fn discharge(&mut self) {
        self.half_open = self.half_open.saturating_sub(1);
    }
}

/// Answers to segments of no connection that wait to be sent; further ones are dropped, as a network might.
const MAX_ANSWERS: usize = 64;

impl Host {
    /// A segment of no connection.
    pub(super) fn handle_stranger(
        &mut self,
        now: Instant,
        ecn: Ecn,
        ends: (SocketAddr, SocketAddr),
        segment: &tcp::Repr,
        payload: &[u8],
    ) -> Result<(), Discard> {
        let port = segment.dst_port;
        let kind = segment.flags.0 & (Flags::SYN | Flags::ACK | Flags::RST).0;
        if self.stands_in() {
            // What is not its own goes on to whom it is for, who answers it.
            return match kind == Flags::SYN.0 {
                true => self.open_held(now, ends, segment, payload),
                false => Err(Discard::NoConnection(port)),
            };
        }
        if kind == Flags::SYN.0 && self.ports.listener(port).is_some() {
            return self.open_passively(now, ends, segment);
        }
        if kind == Flags::ACK.0
            && let Some(result) = self.accept_cookie(now, ecn, ends, segment, payload)
        {
            return result;
        }
        if !segment.flags.has(Flags::RST) && self.answers.len() < MAX_ANSWERS {
            self.answers.push_back(reset_for(ends, segment, payload.len()));
        }
        Err(Discard::NoConnection(port))
    }

    /// A SYN for a listener.
    fn open_passively(
        &mut self,
        now: Instant,
        (local, remote): (SocketAddr, SocketAddr),
        syn: &tcp::Repr,
    ) -> Result<(), Discard> {
        let port = syn.dst_port;
        let Some(listener) = self.ports.listener(port) else { return Err(Discard::NoConnection(port)) };
        if !self.budget.has_room() {
            return Err(Discard::NoMemory(port));
        }
        let half_open = listener.admit(now);
        if !half_open && self.answers.len() == MAX_ANSWERS {
            return Err(Discard::BacklogFull(port));
        }
        let config = Arc::clone(&listener.config);
        let seeds = self.seeds(now, local, remote);
        if half_open {
            let slot = self.insert(Connection::accept(now, config, local, remote, seeds, syn));
            self.slots[slot as usize].half_open = true;
            self.touch(slot);
            return Ok(());
        }
        let mss = syn.options.mss.unwrap_or(Connection::default_mss(remote.ip()));
        let asked = (mss, config.timestamps);
        let (seeds, syn) = self.cookies.bake(now, Key::new(local, remote), syn, asked, seeds);
        // It lives as long as it takes to write the answer.
        let mut connection = Connection::accept(now, config, local, remote, seeds, &syn);
        connection.set_allowance(self.budget.first_allowance());
        let mut answer = Packet::default();
        if connection.poll_transmit(now, &mut answer) {
            self.answers.push_back(answer);
            self.cookies.statistics.sent += 1;
        }
        Ok(())
    }

    /// While there may be cookies of the listener's out, its settings, and the SYN that this acknowledgement follows if it
    /// brings a true one.
    pub(super) fn recall_syn(
        &mut self,
        now: Instant,
        (local, remote): (SocketAddr, SocketAddr),
        segment: &tcp::Repr,
    ) -> Option<(Arc<TcpConfig>, Option<tcp::Repr>)> {
        let port = segment.dst_port;
        let listener = self.ports.listener(port).filter(|it| now < it.cookies_until)?;
        let config = Arc::clone(&listener.config);
        let syn = self.cookies.recall(now, Key::new(local, remote), segment, config.timestamps);
        Some((config, syn))
    }

    /// An acknowledgement that may bring a cookie back; none if it does not.
    fn accept_cookie(
        &mut self,
        now: Instant,
        ecn: Ecn,
        (local, remote): (SocketAddr, SocketAddr),
        segment: &tcp::Repr,
        payload: &[u8],
    ) -> Option<Result<(), Discard>> {
        let port = segment.dst_port;
        let (config, syn) = self.recall_syn(now, (local, remote), segment)?;
        let Some(syn) = syn else {
            self.cookies.statistics.refused += 1;
            return None;
        };
        if !self.budget.has_room() {
            return Some(Err(Discard::NoMemory(port)));
        }
        let seeds = Seeds {
            initial_sequence: SeqNum(segment.ack.0.wrapping_sub(1)),
            ..self.seeds(now, local, remote)
        };
        let mut connection = Connection::accept_answered(now, config, local, remote, seeds, &syn);
        connection.set_allowance(self.budget.first_allowance());
        connection.join(now, &mut self.ensemble);
        let result = connection.handle_segment(now, ecn, segment, payload);
        if connection.state() == State::SynReceived {
            return Some(result.map_err(Discard::from));
        }
        self.cookies.statistics.accepted += 1;
        let slot = self.insert(connection);
        self.touch(slot);
        Some(result.map_err(Discard::from))
    }
}

fn reset_for((local, remote): (SocketAddr, SocketAddr), segment: &tcp::Repr, len: usize) -> Packet {
    let flags = segment.flags;
    let occupied = len as u32 + u32::from(flags.has(Flags::SYN)) + u32::from(flags.has(Flags::FIN));
    let (seq, ack, flags) = if flags.has(Flags::ACK) {
        (segment.ack, SeqNum(0), Flags::RST)
    } else {
        (SeqNum(0), segment.seq + occupied, Flags::RST | Flags::ACK)
    };
    let repr = tcp::Repr {
        src_port: local.port(),
        dst_port: remote.port(),
        seq,
        ack,
        flags,
        window: 0,
        urgent: 0,
        options: tcp::Options::default(),
    };
    let mut packet = Packet::default();
    write_packet(&mut packet, &repr, (local.ip(), remote.ip()), (0, Ecn::NotEct), 0, |_| {});
    packet
}
