//! The measures that make channels comparable (Faulkner 2004, section 3.4).

use base::Rate;

/// Application bits per second over the channel's rate; `None` at rate zero.
#[must_use]
pub fn normalized_throughput(throughput_bps: f64, channel: Rate) -> Option<f64> {
    let rate = channel.as_bps() as f64;
    (rate > 0.0).then(|| throughput_bps / rate)
}

/// Application bits per second over what blockage leaves of the channel's rate, which is blocked for the fraction
/// `blocked` of the time; `None` if it leaves nothing.
#[must_use]
pub fn throughput_per_capacity(throughput_bps: f64, channel: Rate, blocked: f64) -> Option<f64> {
    let capacity = channel.as_bps() as f64 * (1.0 - blocked);
    (capacity > 0.0).then(|| throughput_bps / capacity)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The thesis's own two examples.
    #[test]
    fn half_the_rate_is_half_the_throughput_and_all_of_a_half_open_channel() {
        let channel = Rate::from_bps(256_000);
        assert_eq!(normalized_throughput(128e3, channel), Some(0.5));
        assert_eq!(throughput_per_capacity(128e3, channel, 0.0), Some(0.5));
        assert_eq!(throughput_per_capacity(128e3, channel, 0.5), Some(1.0));
    }

    #[test]
    fn a_channel_that_carries_nothing_has_no_measure() {
        assert_eq!(normalized_throughput(0.0, Rate::from_bps(0)), None);
        assert_eq!(throughput_per_capacity(1.0, Rate::from_bps(256_000), 1.0), None);
    }
}
