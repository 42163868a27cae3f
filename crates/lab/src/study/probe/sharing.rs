//! How the connections of bulk transfers share what there is.

use super::{Method, Probe};

/// Of the bytes that the connections of all bulk transfers received: `jain`, Jain's index (1: all the same; 1 / n: one of n has all),
/// and `least_of_mean`, those of the one with the fewest over their mean.
pub(super) const SHARING: Probe = Probe {
    name: "sharing",
    version: 1,
    quantities: &["jain", "least_of_mean"],
    series: &[],
    method: Method::Run {
        watch: |_| {},
        read: |_, run, measured| {
            let bytes: Vec<f64> = run.transfers.iter().map(|transfer| transfer.bytes as f64).collect();
            let mean = bytes.iter().sum::<f64>() / bytes.len().max(1) as f64;
            let least = bytes.iter().copied().reduce(f64::min);
            measured.note("jain", jain(&bytes));
            measured.note("least_of_mean", least.filter(|_| mean > 0.0).map(|least| least / mean));
            Ok(())
        },
    },
};

/// Jain's fairness index of some shares; none where nobody has anything. Jain, Chiu and Hawe 1984.
#[must_use]
pub fn jain(shares: &[f64]) -> Option<f64> {
    let sum: f64 = shares.iter().sum();
    let squares: f64 = shares.iter().map(|share| share * share).sum();
    (squares > 0.0).then(|| sum * sum / (shares.len() as f64 * squares))
}

#[cfg(test)]
mod tests {
    use super::jain;

    #[test]
    fn the_index_is_jain_s() {
        assert_eq!(jain(&[5.0, 5.0, 5.0, 5.0]), Some(1.0));
        assert_eq!(jain(&[8.0, 0.0, 0.0, 0.0]), Some(0.25));
        assert!((jain(&[100.0, 300.0]).unwrap() - 0.8).abs() < 1e-12);
        assert_eq!((jain(&[0.0, 0.0]), jain(&[])), (None, None));
    }
}
