//! What a proxy counts.

/// Connections and packets, by what became of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Counters {
    /// Connections that were taken up.
    pub split: u64,
    /// Those that were answered before the far end had.
    pub answered_early: u64,
    /// Those that the far end refused.
    pub refused: u64,
    /// Those whose far end did not answer.
    pub unanswered: u64,
    /// Those that passed as they are because of a rule, or because their segments are authenticated.
    pub passed_by_rule: u64,
    /// Those that passed as they are because there was no place or no memory.
    pub passed_for_want_of_room: u64,
    /// Those that passed as they are because their caller had more connections than its share.
    pub passed_for_share: u64,
    /// Half-open ones that were given up for callers that had fewer.
    pub crowded_out: u64,
    /// Connections that ended with a reset or by time-out.
    pub broken: u64,
    /// Bytes relayed from the LAN to the link.
    pub bytes_to_link: u64,
    /// Bytes relayed from the link to the LAN.
    pub bytes_to_lan: u64,
}

impl Counters {
    /// The counters by name.
    #[must_use]
    pub fn named(&self) -> [(&'static str, u64); 11] {
        [
            ("split", self.split),
            ("answered-early", self.answered_early),
            ("refused", self.refused),
            ("unanswered", self.unanswered),
            ("passed-by-rule", self.passed_by_rule),
            ("passed-for-want-of-room", self.passed_for_want_of_room),
            ("passed-for-share", self.passed_for_share),
            ("crowded-out", self.crowded_out),
            ("broken", self.broken),
            ("bytes-to-link", self.bytes_to_link),
            ("bytes-to-lan", self.bytes_to_lan),
        ]
    }
}
