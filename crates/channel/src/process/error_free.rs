//! A channel without errors.

use core::ops::Range;

use base::Instant;

use super::{ErrorProcess, Fate};

/// Every frame arrives intact.
#[derive(Clone, Copy, Debug, Default)]
pub struct ErrorFree;

impl ErrorProcess for ErrorFree {
    fn fate(&mut self, _on_air: Range<Instant>, _bits: u32) -> Fate {
        Fate::Intact
    }

    fn damage(&mut self, _on_air: Range<Instant>, _bytes: &mut [u8]) -> u32 {
        0
    }
}
