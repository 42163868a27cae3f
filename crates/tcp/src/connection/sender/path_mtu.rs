//! A path that takes smaller packets than the two ends: what routers say (RFC 1191, RFC 8201), black holes, and the search
//! for the largest segment that passes (RFC 4821).
//!
//! A report is believed if it quotes the first byte of a segment that is outstanding and left after segments were made smaller
//! last, and if that was larger than what the report allows; the floor limits what it allows (RFC 5927, 7). What was quoted of
//! the length does not count: whoever forges a report writes it. All that is outstanding is then cut anew and sent again, which
//! is not a response to congestion (RFC 1191, 6.4).
//!
//! Deviations:
//! - what is cut anew leaves as the window allows, as in Linux (`tcp_simple_retransmit`), where RFC 1191 (6.4) begins with one
//!   segment;
//! - each connection finds out for itself, where the RFCs keep what was found with the path;
//! - the search begins only once something was found: full segments pass nearly every path (as in Linux, `tcp_mtu_probing` = 1);
//! - controllers go on counting in segments of the size that they began with.

use base::wire::ipv4;
use base::wire::tcp::coding::REPAIR_LEN;
use base::{Duration, Instant, SeqNum};

use super::Sender;
use crate::config::PathMtu as Setting;
use crate::connection::emit::TIMESTAMPS_LEN;
use crate::recovery::Phase;

/// What is known of a path that is narrower than its ends. Sizes are bytes of payload.
#[derive(Clone, Copy, Debug)]
pub(super) struct PathMtu {
    /// The largest segment that the two ends would take.
    most: u32,
    /// The largest that might pass.
    ceiling: u32,
    /// What is out to try a size.
    probe: Option<Probe>,
    /// When the next may leave.
    search_at: Instant,
    /// When segments were made smaller last.
    reduced_at: Instant,
    /// How large they were before the time-outs that nothing was acknowledged since.
    suspected: Option<u32>,
}

/// A segment that tries a size.
#[derive(Clone, Copy, Debug)]
struct Probe {
    end: u64,
    size: u32,
    /// The congestion window when it left, in bytes.
    cwnd: u64,
}

impl PathMtu {
    /// The size to try next, if a larger one than `mss` is worth a segment (RFC 4821, 7.3): the largest first, and then the
    /// middle of what is left.
    fn candidate(&self, mss: u32) -> Option<u32> {
        let size = if self.ceiling == self.most { self.most } else { (mss + self.ceiling).div_ceil(2) };
        (self.probe.is_none() && self.ceiling >= mss + SEARCH_STEP).then_some(size)
    }
}

impl Sender {
    /// Takes what a router says of the segment that begins with `seq`: that packets of `mtu` bytes pass, zero if it does not say.
    /// Whether that is to be believed.
    pub(crate) fn believes_too_big(&mut self, now: Instant, seq: SeqNum, mtu: u32) -> bool {
        let Some(record) = self.board.missing_at(self.space.offset(seq, self.una)) else {
            return false;
        };
        let overhead = self.overhead();
        let len = record.data_len() + overhead;
        let mtu = match mtu {
            0 => PLATEAUS.into_iter().find(|&mtu| mtu < len).unwrap_or(0),
            mtu => mtu,
        };
        let mtu = mtu.max(self.floor());
        // Of what left before, the reports tell nothing new (RFC 1191, 6.4), and nobody can ask for one cut after the other.
        let stale = self.path_mtu.as_ref().is_some_and(|path| record.sent_at < path.reduced_at);
        if self.config.path_mtu == Setting::Off || stale || len <= mtu {
            return false;
        }
        // Segments of the block at hand may be smaller already; those of blocks to come, and what is outstanding, are not.
        if mtu - overhead < self.largest_segment() || self.cuts_blocks() {
            self.shrink(now, mtu - overhead, PROBE_INTERVAL);
            self.send_all_again(now);
            self.rearm_retransmit(now);
        }
        true
    }

    /// Bytes of the smallest packet that a path has to take, or that is believed to be all that it takes.
    const fn floor(&self) -> u32 {
        if self.is_ipv4() { FLOOR_V4 } else { FLOOR_V6 }
    }

    const fn is_ipv4(&self) -> bool {
        self.ip_header_len as usize == ipv4::HEADER_LEN
    }

    /// Bytes of headers before a segment's data.
    fn overhead(&self) -> u32 {
        u32::from(self.ip_header_len) + self.header_len()
    }

    fn header_len(&self) -> u32 {
        let timestamps = if self.negotiated.timestamps { TIMESTAMPS_LEN } else { 0 };
        let coding = if self.negotiated.coded { REPAIR_LEN } else { 0 };
        (base::wire::tcp::HEADER_LEN + timestamps + coding) as u32
    }

    /// Segments have at most `mss` bytes from here on, and larger ones are tried after a while: as large as can be, for the path
    /// may have changed. What is outstanding is to be deemed lost next.
    fn shrink(&mut self, now: Instant, mss: u32, after: Duration) {
        let most = self.path_mtu.as_ref().map_or(self.mss, |path| path.most);
        let search_at = now.saturating_add(after);
        let path = PathMtu { most, ceiling: most, probe: None, search_at, reduced_at: now, suspected: None };
        self.path_mtu = Some(Box::new(path));
        if let Some(code) = &mut self.code {
            code.set_most(mss);
        }
        self.mss = self.mss.min(mss);
        self.board.cut(mss);
        self.reduction = None;
    }

    /// The retransmission timer expired once more for a full segment: it may be too big for the path, and nobody tells
    /// (RFC 4821, 7.7). Or nothing passes at all: once something does, the search soon finds the old size again.
    pub(super) fn suspect_black_hole(&mut self, now: Instant) {
        let full = self.board.first().is_some_and(|head| head.data_len() == self.mss);
        if self.config.path_mtu == Setting::Probe
            && !self.cuts_blocks()
            && self.timers.retries >= BLACK_HOLE_RETRIES
            && full
        {
            let least = if self.is_ipv4() { LEAST_MSS } else { FLOOR_V6 - self.overhead() };
            let base = BASE_MSS.max(least);
            let mss = if self.mss > base { base } else { (self.mss / 2).max(least) };
            if mss < self.mss {
                let suspected = self.path_mtu.as_ref().and_then(|path| path.suspected);
                let (suspected, before) = (Some(suspected.unwrap_or(self.mss)), self.mss);
                self.shrink(now, mss, Duration::ZERO);
                self.scale_window(mss, before);
                if let Some(path) = &mut self.path_mtu {
                    path.suspected = suspected;
                }
            }
        }
    }

    /// Segments became smaller: as many as before may be under way, for a queue may count packets (in Linux windows do).
    fn scale_window(&mut self, mss: u32, before: u32) {
        let controller = &mut self.controller;
        let scaled = |bytes: u64| (u128::from(bytes) * u128::from(mss) / u128::from(before)) as u64;
        let (window, ssthresh) = (controller.window(), controller.ssthresh());
        controller
            .set_window(scaled(window), ssthresh.map(|it| if it == u64::MAX { it } else { scaled(it) }));
    }

    /// The time-outs were not needed: what they were about had passed, whatever its size.
    pub(super) fn unsuspect_black_hole(&mut self) {
        if let Some(mss) = self.path_mtu.as_mut().and_then(|path| path.suspected.take()) {
            self.mss = mss;
        }
    }

    /// The size of a segment that is to try whether a larger one passes, if one is to leave in place of the next: there have
    /// to be others behind it to tell of its loss (RFC 4821, 7.4). It takes somewhat more than its part of the window.
    pub(super) fn search_size(&self, now: Instant) -> Option<u32> {
        if self.cuts_blocks() {
            // Sizes follow the window, and whole blocks are of one size.
            return None;
        }
        let path = self.path_mtu.as_ref()?;
        let size = path.candidate(self.mss).filter(|_| now >= path.search_at)?;
        let needed = u64::from(size + FOLLOWERS * self.mss);
        let room = self.allowed().min(self.usable_window()).min(self.unsent() as u64);
        (self.recovery.phase() == Phase::Open && room >= needed).then_some(size)
    }

    /// A segment of this size leaves to try it.
    pub(super) fn note_search(&mut self, size: u32) {
        if let Some(path) = &mut self.path_mtu {
            let end = self.nxt + u64::from(size);
            path.probe = Some(Probe { end, size, cwnd: self.controller.window() });
        }
    }

    /// SND.UNA moved: a larger segment may have passed.
    pub(super) fn check_search(&mut self, now: Instant) {
        let Some(path) = &mut self.path_mtu else { return };
        path.suspected = None;
        if let Some(Probe { size, .. }) = path.probe.take_if(|probe| probe.end <= self.una) {
            self.mss = size;
            if path.candidate(size).is_none() {
                (path.ceiling, path.search_at) = (path.most, now.saturating_add(PROBE_INTERVAL));
            }
        }
    }

    /// Whether the segment that tried a size is all that was found lost: no congestion (RFC 4821, 7.6.2).
    pub(super) fn lost_only_search(&self) -> bool {
        let (board, path) = (&self.board, self.path_mtu.as_ref());
        let (Some(probe), Some(head)) = (path.and_then(|path| path.probe), board.first()) else {
            return false;
        };
        head.end() == probe.end && board.lost() == u64::from(head.len)
    }

    /// The record with this index is to be sent again: if it is larger than segments may be, it is cut, or all are, and
    /// another is to be looked for.
    pub(super) fn cuts_before_resending(&mut self, now: Instant, index: u64) -> bool {
        let (record, most) = (self.board.record(index), self.largest_segment());
        if self.path_mtu.is_none() || record.data_len() <= most {
            return false;
        }
        self.note_search_failed(now, record.end());
        if !self.board.cut_head(most) {
            self.board.cut(most);
            self.send_all_again(now);
        }
        true
    }

    /// The segment before `end` was lost: if it tried a size, that does not pass, and the next is not tried before congestion
    /// would be expected: after as many round trips as the window has segments, and five times that where a time-out had to
    /// tell (RFC 4821, 7.6.2 and 7.6.3).
    fn note_search_failed(&mut self, now: Instant, end: u64) {
        let Some(path) = &mut self.path_mtu else { return };
        let Some(probe) = path.probe.take_if(|probe| probe.end == end) else { return };
        let rounds = probe.cwnd.max(self.controller.window()) / u64::from(self.mss) + 1;
        let patience = if self.recovery.phase() == Phase::Timeout { TIMEOUT_PATIENCE } else { 1 };
        let wait = self.rtt.srtt().unwrap_or_default().saturating_mul(rounds * patience);
        (path.ceiling, path.search_at) = (probe.size - 1, now.saturating_add(wait));
        if path.candidate(self.mss).is_none() {
            (path.ceiling, path.search_at) = (path.most, now.saturating_add(PROBE_INTERVAL));
        }
    }
}

/// Bytes; Linux, `min_pmtu`. RFC 1191 allows 68, which nobody has but attackers (RFC 5927, 7).
const FLOOR_V4: u32 = 552;
/// Bytes; RFC 8201 (4).
const FLOOR_V6: u32 = 1280;
/// Bytes of packets of routers that do not say: RFC 1191 (7.1).
const PLATEAUS: [u32; 9] = [32_000, 17_914, 8166, 4352, 2002, 1492, 1006, 508, 296];
/// RFC 1191 (6.3): no sooner is a larger size tried after a report. Linux, `tcp_probe_interval`.
const PROBE_INTERVAL: Duration = Duration::from_secs(600);
/// Consecutive time-outs before this one: the threshold R1 (RFC 4821, 7.7), at least 3 retransmissions (RFC 1122, 4.2.3.5).
const BLACK_HOLE_RETRIES: u16 = 3;
/// Factor: RFC 4821 (7.6.3).
const TIMEOUT_PATIENCE: u64 = 5;
/// Payload bytes after a black hole, if the floor is not above: RFC 4821 (7.2); Linux, `tcp_base_mss`.
const BASE_MSS: u32 = 1024;
/// Payload bytes below which nothing is tried over IPv4: what the least host has to take (RFC 791).
const LEAST_MSS: u32 = 256;
/// Bytes; closer than this the search is over. Linux, `tcp_probe_threshold`.
const SEARCH_STEP: u32 = 8;
/// Segments behind one that tries a size.
const FOLLOWERS: u32 = 4;
