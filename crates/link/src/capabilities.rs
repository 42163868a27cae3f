//! What a protocol does for its packets and needs from the layer below.

/// The properties of a protocol that its surroundings depend on. Every flag is a promise that `tests/capabilities.rs` checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// Lost frames are made good, all or nearly all, so that a packet arrives although the line loses frames, and it matters how
    /// often a packet asks to be transmitted.
    pub recovers_losses: bool,
    /// On a line that keeps order, packets of the same [treatment](crate::Treatment) are delivered in the order in which
    /// they were offered, even if frames are lost.
    pub keeps_order: bool,
    /// Loss is inferred from the order of frames: the layer below must drop a frame that was overtaken.
    pub needs_order: bool,
    /// A packet of many frames, such as a TCP super-segment, is safe on a line that loses frames. If not, one lost frame
    /// costs the whole packet.
    pub carries_super_segments: bool,
    /// Packets that ask to be [interactive](crate::Treatment::Interactive) are carried apart from the others, before them.
    pub has_classes: bool,
    /// An idle line must still get a frame now and then, because only that shows the loss of the last ones.
    pub wants_fillers: bool,
    /// Frames may go over several lines at once ([`Lines`](crate::Lines)).
    pub several_lines: bool,
}
