//! How long a super-segment may be: a packet of many, which crosses the link whole.

use base::{Duration, Rate};
use link::LineLimits;

use super::{Config, LinkRate};
use crate::batch;
use crate::session::OVERHEAD;
use crate::super_segment::METADATA_LEN;

impl Config {
    /// Whether the link carries super-segments, or may once its rate is known.
    #[must_use]
    pub fn wants_offloads(&self) -> bool {
        match self.link.rate {
            LinkRate::Auto => self.may_carry_super_segments(),
            rate => self.super_segment(rate.fixed()).is_some(),
        }
    }

    fn may_carry_super_segments(&self) -> bool {
        self.link.protocol.capabilities().carries_super_segments || self.link.clean
    }

    /// The largest super-segment, in bytes, that the link carries whole at this rate; `None` if packets stay single. Its frames leave in
    /// one batch: a datagram or two left over would cost a send of their own.
    #[must_use]
    pub fn super_segment(&self, rate: Option<Rate>) -> Option<u32> {
        if !self.may_carry_super_segments() {
            return None;
        }
        let in_time = rate.map_or(u64::MAX, |rate| rate.bits_in(AIR_TIME) / 8);
        let bytes = in_time.min(self.batch_payload(rate));
        // Below a few packets they cost more than they give.
        (bytes >= 3 * u64::from(self.mtu)).then_some(bytes as u32)
    }

    /// Bytes of one packet that a batch carries.
    fn batch_payload(&self, rate: Option<Rate>) -> u64 {
        let line = LineLimits::new(self.carrier.frame_limit(), rate);
        let payload = self.link.protocol.frame_payload(&line);
        let frame = line.frame_limit().min(payload as usize + FRAME_FIELDS);
        (batch::datagrams_of(frame + OVERHEAD) as u64 * payload).saturating_sub(METADATA_LEN as u64)
    }
}

/// Air time that one packet may take.
const AIR_TIME: Duration = Duration::from_millis(4);
/// What a protocol adds to a packet's bytes in a frame, at most.
const FRAME_FIELDS: usize = 64;
