//! Fragments that arrive: what they make whole, and what of that is worth a report.

use base::{Instant, Packet};

use crate::arq::frame::Part;
use crate::arq::sequence::{SPACE, beyond};
use crate::arq::{Core, LineId};
use crate::endpoint::Discard;

use super::code;
use super::gathering::Block;
use super::header::{Header, Transmission};
use super::{Harq, Transmissions};

/// The newest transmission that the receiver has heard of.
#[derive(Clone, Copy, Debug)]
pub(super) struct Newest {
    pub(super) serial: u32,
    /// Its block is whole, or its failure is news already.
    pub(super) is_settled: bool,
}

pub(super) const NOTHING: Newest = Newest { serial: 0, is_settled: true };

impl Harq {
    /// Takes note of which blocks will not be sent again.
    pub(super) fn handle_floor(&mut self, now: Instant, floor: Option<u32>) {
        if self.core.on_floor(floor) {
            self.core.news.on_frame(now);
            self.awaited.forget_before(self.core.receiver.next());
        }
    }

    /// Takes a fragment of a block that may be sent again.
    pub(super) fn handle_sent(
        &mut self,
        now: Instant,
        header: &Header,
        transmission: Transmission,
        fragment: &[u8],
    ) -> Result<(), Discard> {
        self.handle_floor(now, transmission.floor);
        self.core.receiver.on_serial(now, LineId::FIRST, transmission.serial);
        let ahead = beyond(self.newest.serial.into(), transmission.serial);
        if (1..SPACE / 2).contains(&ahead) {
            // The one before is over.
            self.settle(now);
            self.newest = Newest { serial: transmission.serial, is_settled: false };
        }
        let is_newest = self.newest.serial == transmission.serial;
        let number = match self.core.receiver.awaits(header.number) {
            Ok(number) => number,
            // Redundancy that was not needed.
            Err(Discard::Duplicate(_)) if is_newest && self.newest.is_settled => return Ok(()),
            Err(discard) => {
                self.settle(now);
                return Err(discard);
            }
        };
        let rules = (self.config.data.get() as usize, self.config.combine);
        let whole = self.awaited.add(number, (transmission.serial, header.index), fragment, rules)?;
        let is_last = (u32::from(header.index) + 1).is_multiple_of(self.config.fragments.get());
        let Some(block) = whole else {
            if is_last && is_newest {
                self.settle(now);
            }
            return Ok(());
        };
        self.newest.is_settled |= is_newest;
        self.core.news.on_frame(now);
        self.handle_block(&block, |core, content| {
            let code::Content { first, last, payload } = content;
            let part = Part { sequence: header.number, first, last, back: 0, payload };
            core.receiver.handle(&part, &mut core.ready)
        })?;
        self.awaited.forget_before(self.core.receiver.next());
        Ok(())
    }

    /// What becomes of the newest transmission is known, and worth a report.
    fn settle(&mut self, now: Instant) {
        if !self.newest.is_settled {
            self.newest.is_settled = true;
            self.core.news.on_frame(now);
        }
    }

    /// Takes a fragment of a block that is sent once.
    pub(super) fn handle_once(&mut self, header: &Header, fragment: &[u8]) -> Result<(), Discard> {
        let data = self.config.data.get() as usize;
        let Some(block) = self.recent.add(header.number, header.index, fragment, data)? else {
            return Ok(());
        };
        let ordered = self.config.ordered.0;
        self.handle_block(&block, |core, content| {
            let code::Content { first, last, payload } = content;
            let taken = core.unreliable_receiver.handle(header.number, first, last, payload, &mut core.ready);
            match taken {
                Err(Discard::Late(_)) if first && last && !ordered => {
                    core.ready.push(Packet::from_slice(payload));
                    Ok(())
                }
                taken => taken,
            }
        })
    }

    /// Takes a block that is whole.
    fn handle_block(
        &mut self,
        (block, is_decoded): &Block,
        take: impl FnOnce(&mut Core<Transmissions>, code::Content<'_>) -> Result<(), Discard>,
    ) -> Result<(), Discard> {
        self.counters.blocks_decoded += u64::from(*is_decoded);
        let content = code::read(block).ok_or(Discard::Malformed)?;
        take(&mut self.core, content)
    }
}
