//! Spearman's rank correlation (Spearman 1904): Pearson's correlation of the ranks, equal values sharing their mean rank.

/// The rank correlation of `xs` with `ys`; `None` if the two differ in length or one of them does not vary.
#[must_use]
pub fn spearman(xs: &[f64], ys: &[f64]) -> Option<f64> {
    if xs.len() != ys.len() {
        return None;
    }
    let (a, b) = (ranks(xs), ranks(ys));
    // Ranks have the same mean with ties and without.
    let middle = (xs.len() as f64 + 1.0) / 2.0;
    let sum =
        |p: &[f64], q: &[f64]| -> f64 { p.iter().zip(q).map(|(p, q)| (p - middle) * (q - middle)).sum() };
    let variances = sum(&a, &a) * sum(&b, &b);
    (variances > 0.0).then(|| sum(&a, &b) / variances.sqrt())
}

/// The rank of each value from 1 up.
fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&a, &b| values[a].total_cmp(&values[b]));
    let mut ranks = vec![0.0; values.len()];
    let mut from = 0;
    for equal in order.chunk_by(|&a, &b| values[a] == values[b]) {
        let shared = from as f64 + (equal.len() as f64 + 1.0) / 2.0;
        equal.iter().for_each(|&place| ranks[place] = shared);
        from += equal.len();
    }
    ranks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_share_ties() {
        assert_eq!(ranks(&[10.0, 30.0, 10.0, 20.0]), [1.5, 4.0, 1.5, 3.0]);
    }

    /// `scipy.stats.spearmanr` gives 0.8207826816681233 for the first pair and 1 and -1 for the others.
    #[test]
    fn correlations_are_those_of_scipy() {
        let rho = spearman(&[1.0, 2.0, 3.0, 4.0, 5.0], &[5.0, 6.0, 7.0, 8.0, 7.0]).unwrap();
        assert!((rho - 0.820_782_681_668_123_3).abs() < 1e-15, "{rho}");
        assert_eq!(
            spearman(&[1.0, 2.0, 9.0], &[3.0, f64::INFINITY, f64::INFINITY]).map(|r| r > 0.8),
            Some(true)
        );
        assert_eq!(spearman(&[1.0, 2.0, 3.0], &[9.0, 4.0, 1.0]), Some(-1.0));
        assert_eq!(
            (spearman(&[1.0, 2.0], &[3.0, 3.0]), spearman(&[1.0], &[]), spearman(&[], &[])),
            (None, None, None)
        );
    }
}
