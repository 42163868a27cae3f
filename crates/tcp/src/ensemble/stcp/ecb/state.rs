//! What an ECB shows to the owner of the host.

use core::net::IpAddr;

/// What happened to an ECB since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EcbStatistics {
    /// Connections that joined.
    pub joins: u64,
    /// Connections that left.
    pub leaves: u64,
    /// Calls of the window allocation.
    pub allocations: u64,
    /// Those after which equation 1 held: `used_cwnd` equal to `n_cwnd`.
    pub allocations_balanced: u64,
    /// Most that `used_cwnd` exceeded `n_cwnd` after an allocation, in bytes.
    pub max_window_excess: u64,
    /// Payments of a member to a newcomer.
    pub payments: u64,
    /// Bytes of window paid.
    pub bytes_paid: u64,
    /// Allocations that gave a member one segment because its share was less.
    pub floors: u64,
    /// Losses found by duplicate acknowledgements, and ECN marks (equation 4).
    pub losses: u64,
    /// Time-outs (equation 5).
    pub timeouts: u64,
    /// Bytes of window taken from members that did not use it.
    pub bytes_released: u64,
    /// Looks at a member at the end of a release period.
    pub members_examined: u64,
    /// Halvings of the aggregate while it had no members.
    pub decays: u64,
}

/// An ECB's fields as the paper names them (figure 1), for traces and tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EcbState {
    /// The destination; the first address of its prefix if a prefix shares.
    pub rem_addr: IpAddr,
    /// The slow start threshold of all, in bytes.
    pub n_ssthresh: u64,
    /// The aggregate congestion window in bytes.
    pub n_cwnd: u64,
    /// The sum of the members' windows in bytes.
    pub used_cwnd: u64,
    /// Members, newcomers included.
    pub num_connections: u32,
    /// Whether a newcomer waits for its share.
    pub add_new_flag: bool,
    /// Bytes that each member is to give to the first newcomer that waits.
    pub quota: u64,
    /// Bytes that it has been given.
    pub contribution: u64,
    /// What happened so far.
    pub statistics: EcbStatistics,
}
