//! What a tunnel keeps of each way to its peer: of most tunnels there is but one.

use core::ops::{Index, IndexMut};

use base::{Duration, Rate};
use link::{LineId, LineTerms};

use super::outbound::Burst;
use crate::batch::Batch;
use crate::config::{Config, Way};
use crate::counters::Counter;
use crate::line_use::LineUse;
use crate::pacer::Pacer;
use crate::parts::Parts;
use crate::session::OVERHEAD;
use crate::survey::Survey;

/// A way over which datagrams leave and come: what is known of it, and what waits to leave over it.
#[derive(Debug)]
pub struct Line {
    pub(super) way: Way,
    pub(super) survey: Survey,
    pub(super) pacer: Pacer,
    /// The longest frame that a datagram holds.
    pub(super) frame_limit: usize,
    pub(super) batch: Batch,
    /// Frames that are longer than datagrams are now.
    pub(super) parts: Parts,
    pub(super) burst: Option<Burst>,
    /// Whether its carrier's buffer is full.
    pub(super) is_blocked: bool,
    /// What both ends use it for.
    pub(super) line_use: LineUse,
    /// Whether the endpoint may use it. The only one always may.
    pub(super) is_open: bool,
    /// Whether it was heard when that was told last.
    pub(super) was_told_open: bool,
    /// Whether it is being found out what it carries.
    pub(super) has_begun: bool,
    /// What the endpoint was told of it last, where there are others.
    pub(super) told: Option<LineTerms>,
    pub(super) datagrams: Counter,
    /// With all headers.
    pub(super) bytes: Counter,
}

/// All lines of a tunnel.
#[derive(Debug)]
pub(super) struct Lines {
    pub(super) first: Line,
    pub(super) others: Vec<Line>,
}

impl Line {
    /// Of which nothing is known but what is configured.
    pub(super) fn new(config: &Config, way: Way) -> Self {
        let says = config.ways.len() > 1;
        Self {
            survey: Survey::over(&way, config.link.overhead),
            pacer: Pacer::new(way.rate.fixed(), config.link.fillers),
            frame_limit: way.carrier.frame_limit(),
            batch: Batch::default(),
            parts: Parts::default(),
            burst: None,
            is_blocked: false,
            line_use: LineUse::new(way.usage, says),
            is_open: false,
            was_told_open: false,
            has_begun: false,
            told: None,
            datagrams: Counter::default(),
            bytes: Counter::default(),
            way,
        }
    }

    /// Bytes of the longest datagram, without what the carrier adds.
    pub(super) const fn datagram_limit(&self) -> usize {
        self.frame_limit + OVERHEAD
    }

    /// What is known of it.
    #[must_use]
    pub const fn survey(&self) -> &Survey {
        &self.survey
    }

    /// The rate that datagrams leave at over it, headers included; `None` is as fast as the carrier takes them.
    #[must_use]
    pub fn rate(&self) -> Option<Rate> {
        self.pacer.rate()
    }

    /// Datagrams and bytes that have left over it, with all headers.
    #[must_use]
    pub const fn sent(&self) -> (u64, u64) {
        (self.datagrams.get(), self.bytes.get())
    }

    /// What it carries, and its round trip.
    pub(super) fn found(&self) -> (Option<Rate>, Option<Duration>) {
        (self.survey.rate_controller.capacity(), self.survey.round_trip())
    }
}

impl Lines {
    pub(super) const fn new(first: Line) -> Self {
        Self { first, others: Vec::new() }
    }

    pub(super) const fn is_single(&self) -> bool {
        self.others.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        1 + self.others.len()
    }

    pub(super) fn ids(&self) -> impl Iterator<Item = LineId> + use<> {
        (0..self.len() as u8).filter_map(LineId::new)
    }

    pub(super) fn all(&self) -> impl Iterator<Item = (LineId, &Line)> {
        self.ids().zip(core::iter::once(&self.first).chain(&self.others))
    }

    pub(super) fn all_mut(&mut self) -> impl Iterator<Item = (LineId, &mut Line)> {
        self.ids().zip(core::iter::once(&mut self.first).chain(&mut self.others))
    }

    /// Those that the endpoint may use.
    pub(super) fn open(&self) -> impl Iterator<Item = &Line> {
        let is_single = self.is_single();
        self.all().map(|(_, line)| line).filter(move |line| is_single || line.is_open)
    }

    /// The rates of those that the endpoint may use, added up; `None` if one has none.
    pub(super) fn sum(&self, rate: impl Fn(&Line) -> Option<Rate>) -> Option<Rate> {
        if self.is_single() {
            return rate(&self.first);
        }
        let bps = self.open().map(|line| rate(line).map(Rate::as_bps)).sum::<Option<u64>>()?;
        // Before any is open.
        Some(bps).filter(|bps| *bps > 0).map_or_else(|| rate(&self.first), |bps| Some(Rate::from_bps(bps)))
    }
}

impl Index<LineId> for Lines {
    type Output = Line;
    fn index(&self, line: LineId) -> &Line {
        match usize::from(line.number()).checked_sub(1) {
            None => &self.first,
            Some(place) => &self.others[place],
        }
    }
}

impl IndexMut<LineId> for Lines {
    fn index_mut(&mut self, line: LineId) -> &mut Line {
        match usize::from(line.number()).checked_sub(1) {
            None => &mut self.first,
            Some(place) => &mut self.others[place],
        }
    }
}
