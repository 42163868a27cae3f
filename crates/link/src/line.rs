//! What an endpoint knows of the line below it.

use base::Rate;

/// The properties of a line that an endpoint is built for. They may change later
/// ([`Endpoint::set_line`](crate::Endpoint::set_line)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineLimits {
    frame_limit: usize,
    rate: Option<Rate>,
    buffered: bool,
    overhead: usize,
}

/// Bytes of a frame that every line must carry, so that a protocol always has room for its own fields.
pub const SHORTEST_FRAME_LIMIT: usize = 64;

impl LineLimits {
    /// A line with frames of up to `frame_limit` bytes at `rate`; `None` for a line without a rate of its own, that takes
    /// frames as fast as they come. Where the rate changes, it is the one at the start.
    ///
    /// # Panics
    /// If `frame_limit` is below [`SHORTEST_FRAME_LIMIT`].
    #[must_use]
    pub const fn new(frame_limit: usize, rate: Option<Rate>) -> Self {
        assert!(frame_limit >= SHORTEST_FRAME_LIMIT);
        Self { frame_limit, rate, buffered: false, overhead: 0 }
    }

    /// This line behind a buffer: when a frame leaves is told afterwards
    /// ([`Endpoint::handle_departure`](crate::Endpoint::handle_departure)).
    #[must_use]
    pub const fn behind_buffer(self) -> Self {
        Self { buffered: true, ..self }
    }

    /// This line, on which each frame occupies `bytes` besides its own.
    #[must_use]
    pub const fn with_overhead(self, bytes: usize) -> Self {
        Self { overhead: bytes, ..self }
    }

    /// Bytes that each frame occupies besides its own.
    #[must_use]
    pub const fn overhead(&self) -> usize {
        self.overhead
    }

    /// This line for frames to which `bytes` are added, which have to be shorter by as many.
    #[must_use]
    pub(crate) const fn within(self, bytes: usize) -> Self {
        Self { frame_limit: self.frame_limit.saturating_sub(bytes), ..self }
    }

    /// Whether frames leave later than they are handed over.
    #[must_use]
    pub const fn is_buffered(&self) -> bool {
        self.buffered
    }

    /// The longest frame in bytes, as [`Endpoint::poll_frame`](crate::Endpoint::poll_frame) makes them.
    #[must_use]
    pub const fn frame_limit(&self) -> usize {
        self.frame_limit
    }

    /// Bits per second.
    #[must_use]
    pub const fn rate(&self) -> Option<Rate> {
        self.rate
    }
}

/// Frames of any length, at no particular rate.
impl Default for LineLimits {
    fn default() -> Self {
        Self::new(usize::MAX, None)
    }
}
