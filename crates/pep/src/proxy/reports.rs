//! What is said of a connection besides its data, for the other end: that there is no way to a server, and whether somebody is
//! still there.

use base::wire::icmp::{self, Cause, Report};
use base::wire::tcp::{Flags, View};
use base::wire::{ip, tcp as wire};
use base::{Instant, Packet, SeqNum};
use core::net::SocketAddr;
use tcp::{Connection, ConnectionId, State};

use super::{Proxy, Side, Verdict};

/// Reports that wait to go on; further ones are dropped, as a network might.
const MOST_REPORTS: usize = 64;

impl Proxy {
    /// An ICMP message: of a segment of ours it may be for a connection here, or for the caller on whose behalf it was sent.
    pub(super) fn handle_report(
        &mut self,
        now: Instant,
        from: Side,
        view: &ip::View<'_>,
        packet: &[u8],
    ) -> Verdict {
        if self.hosts[from as usize].handle_icmp(now, view).is_ok() {
            self.work(now);
            return Verdict::Taken;
        }
        let Ok(Some(report)) = Report::parse(view) else { return Verdict::Pass };
        match self.caller_of(from, &report) {
            Some(seq) => {
                let mut told = Packet::from_slice(packet);
                let reports = &mut self.reports[from.other() as usize];
                if icmp::renumber_quoted(&mut told, seq) && reports.len() < MOST_REPORTS {
                    reports.push_back(told);
                }
                Verdict::Taken
            }
            None => Verdict::Pass,
        }
    }

    /// If this is said of a SYN that was sent for a caller who waits: the number of the caller's own SYN.
    fn caller_of(&mut self, from: Side, report: &Report<'_>) -> Option<SeqNum> {
        if report.cause != Cause::Unreachable || report.protocol != ip::Protocol::TCP {
            return None;
        }
        let word = |at: usize| u16::from_be_bytes([report.start[at], report.start[at + 1]]);
        let seq = SeqNum(u32::from(word(4)) << 16 | u32::from(word(6)));
        let (local, remote) = (SocketAddr::new(report.src, word(0)), SocketAddr::new(report.dst, word(2)));
        let id = self.hosts[from as usize].find(local, remote)?;
        let is_ours = |it: &Connection| it.state() == State::SynSent && it.sequence_number(0) == seq;
        if !self.hosts[from as usize].connection(id).is_some_and(is_ours) {
            return None;
        }
        let caller = self.twin(from, id)?;
        let caller = self.hosts[from.other() as usize].connection(caller).filter(|it| it.is_held())?;
        Some(caller.offer()?.initial_sequence)
    }

    /// Who asks whether the other end is still there gets an answer from here, and the other end is asked.
    pub(super) fn hand_on_keep_alive(&mut self, now: Instant, from: Side, id: ConnectionId, tcp: &View<'_>) {
        let bare = |flags: wire::Flags| flags.0 & !Flags::PSH.0 == Flags::ACK.0;
        if tcp.payload().len() > 1 || !bare(tcp.flags()) {
            return;
        }
        if self.hosts[from as usize].connection(id).is_some_and(|it| it.is_keep_alive(tcp.seq()))
            && let Some(twin) = self.twin(from, id)
        {
            // Err is a twin that has gone.
            let _ = self.hosts[from.other() as usize].steer(twin, |it| it.ask_peer(now));
        }
    }
}
