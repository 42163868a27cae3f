//! `[tcp.limits]`: when a connection, an attempt or a listener gives up.

use base::Duration;
use base::units::above_zero;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::range;

/// Patience and its bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", default, deny_unknown_fields)]
pub struct LimitsConfig {
    /// Retransmissions of a SYN or SYN-ACK before the attempt fails. 6 in Linux (127 s).
    pub syn_retries: u32,
    /// Consecutive time-outs without progress before the connection fails; R2 of RFC 1122 (4.2.3.5). 15 in Linux.
    pub data_retries: u32,
    /// Time without progress on sent data before the connection fails (RFC 9293, 3.8.3); by default only
    /// `data_retries` counts.
    pub user_timeout: Option<Duration>,
    /// How long TIME-WAIT lasts, and how long any connection can be asked for statistics after it ended.
    /// 2 MSL is 4 min in RFC 9293; 60 s in Linux.
    pub time_wait: Duration,
    /// How long a connection that was closed for good waits in FIN-WAIT-2 for the peer's FIN. 60 s in Linux
    /// (`tcp_fin_timeout`).
    pub fin_wait_2: Duration,
    /// Silence after which the peer is asked whether it is still there (RFC 1122, 4.2.3.6; RFC 9293, 3.8.4), at least a
    /// second; by default it never is. 2 h in Linux, where an application asks for it.
    #[serde(deserialize_with = "range::keep_alive")]
    #[schemars(transform = above_zero, extend("examples" = ["2 h"]))]
    pub keep_alive: Option<Duration>,
    /// Half-open connections that a listener holds; further SYNs are answered with cookies (RFC 4987, 3.6).
    #[serde(deserialize_with = "range::one_or_more")]
    #[schemars(range(min = 1))]
    pub backlog: u32,
}

impl Default for LimitsConfig {
    fn default() -> Self {
        Self {
            syn_retries: 6,
            data_retries: 15,
            user_timeout: None,
            time_wait: Duration::from_secs(60),
            fin_wait_2: Duration::from_secs(60),
            keep_alive: None,
            backlog: 128,
        }
    }
}
