//! Something that becomes due, and stays so until it is done.

use base::Instant;

/// The earliest of some times, if there are any. An endpoint is asked for it all the time.
pub(crate) fn earliest<const N: usize>(times: [Option<Instant>; N]) -> Option<Instant> {
    let earliest =
        times.iter().fold(Instant::MAX, |earliest, time| earliest.min(time.unwrap_or(Instant::MAX)));
    (earliest < Instant::MAX).then_some(earliest)
}

/// When something is due.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Timer {
    /// It is not awaited.
    #[default]
    Off,
    /// From this time on.
    At(Instant),
    /// It is due, and no time-out is needed any more.
    Due,
}

impl Timer {
    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        if self.is_due(now) {
            *self = Self::Due;
        }
    }

    pub(crate) fn is_due(self, now: Instant) -> bool {
        match self {
            Self::Off => false,
            Self::At(due) => due <= now,
            Self::Due => true,
        }
    }

    /// When [`Timer::handle_timeout`] wants to be called.
    pub(crate) const fn poll_timeout(self) -> Option<Instant> {
        match self {
            Self::At(due) => Some(due),
            Self::Off | Self::Due => None,
        }
    }
}
