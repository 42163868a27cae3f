//! Section 2.3: what block acknowledgements cost in frames that are sent again for nothing.
//!
//! A transmission is redundant if an earlier one of the same frame was going to arrive, or had.

use link::FrameKind;
use link::cotmll::SubProtocol;

use super::{DIRECTIONS, LINK, SPACE};
use crate::observe::EventLog;
use crate::observe::events::LinkDirection;
use crate::study::probe::{Method, Probe};

/// Of both directions together, per delivered frame: `redundant`, redundant transmissions; `by_flag`, those of them that had been
/// flagged as lost; `again`, all transmissions but the first. `lost_share`: lost ones, of all transmissions.
pub(super) const TRANSMISSIONS: Probe = Probe {
    name: "transmissions",
    version: 1,
    quantities: &["redundant", "by_flag", "again", "lost_share"],
    series: &[],
    method: Method::Run {
        watch: |watch| watch.events = true,
        read: |_, run, measured| {
            let mut transmissions = Transmissions::default();
            DIRECTIONS.into_iter().for_each(|direction| transmissions.note(&run.log, direction));
            let per_frame = |count: u32| {
                (transmissions.delivered > 0).then(|| f64::from(count) / f64::from(transmissions.delivered))
            };
            measured.note("redundant", per_frame(transmissions.redundant));
            measured.note("by_flag", per_frame(transmissions.by_flag));
            measured.note("again", per_frame(transmissions.all).map(|all| all - 1.0));
            let lost =
                (transmissions.all > 0).then(|| f64::from(transmissions.lost) / f64::from(transmissions.all));
            measured.note("lost_share", lost);
            Ok(())
        },
    },
};

/// What both directions put on the line.
#[derive(Debug, Default, PartialEq, Eq)]
struct Transmissions {
    all: u32,
    redundant: u32,
    /// Of the redundant ones, those that had been flagged as lost.
    by_flag: u32,
    lost: u32,
    delivered: u32,
}

impl Transmissions {
    fn note(&mut self, log: &EventLog, direction: LinkDirection) {
        let mut comes = [false; SPACE];
        for frame in log.frames(LINK, direction) {
            let (Some(trailer), Some(intact)) = (frame.trailer, frame.intact) else { continue };
            if trailer.class != SubProtocol::Reliable {
                continue;
            }
            let comes = &mut comes[usize::from(trailer.tx)];
            if frame.kind == FrameKind::New {
                *comes = false;
            }
            self.all += 1;
            self.lost += u32::from(!intact);
            self.redundant += u32::from(*comes);
            self.by_flag += u32::from(*comes && frame.kind == FrameKind::Retransmission);
            self.delivered += u32::from(intact && !*comes);
            *comes |= intact;
        }
    }
}
