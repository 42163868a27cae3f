//! The two-way split of variance (Fisher 1925): how much of what varies goes with one factor and how much with another.

use serde::Serialize;

/// Sums of squares of a balanced two-way layout. Their sum is the whole.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct TwoWay {
    /// What goes with the first factor.
    pub a: f64,
    /// What goes with the second factor.
    pub b: f64,
    /// What goes with both together; `None` without replication, where it cannot be told from the rest.
    pub interaction: Option<f64>,
    /// What goes with neither.
    pub rest: f64,
}

impl TwoWay {
    /// The split of `cells[a][b][replicate]`.
    ///
    /// `None` if a cell is empty, cells differ in their number of values, or a factor has fewer than two levels.
    #[must_use]
    pub fn of(cells: &[Vec<Vec<f64>>]) -> Option<Self> {
        let (levels_a, levels_b) = (cells.len(), cells.first()?.len());
        let each = cells[0].first()?.len();
        let balanced =
            cells.iter().all(|row| row.len() == levels_b && row.iter().all(|cell| cell.len() == each));
        if levels_a < 2 || levels_b < 2 || each == 0 || !balanced {
            return None;
        }
        let (na, nb, r) = (levels_a as f64, levels_b as f64, each as f64);
        let cell = |i: usize, j: usize| cells[i][j].iter().sum::<f64>() / r;
        let of_a: Vec<f64> =
            (0..levels_a).map(|i| (0..levels_b).map(|j| cell(i, j)).sum::<f64>() / nb).collect();
        let of_b: Vec<f64> =
            (0..levels_b).map(|j| (0..levels_a).map(|i| cell(i, j)).sum::<f64>() / na).collect();
        let grand = of_a.iter().sum::<f64>() / na;
        let square = |value: f64| value * value;
        let a = r * nb * of_a.iter().map(|mean| square(mean - grand)).sum::<f64>();
        let b = r * na * of_b.iter().map(|mean| square(mean - grand)).sum::<f64>();
        let (mut together, mut within) = (0.0, 0.0);
        for (i, row) in cells.iter().enumerate() {
            for (j, values) in row.iter().enumerate() {
                together += r * square(cell(i, j) - of_a[i] - of_b[j] + grand);
                within += values.iter().map(|value| square(value - cell(i, j))).sum::<f64>();
            }
        }
        if each == 1 {
            return Some(Self { a, b, interaction: None, rest: together });
        }
        Some(Self { a, b, interaction: Some(together), rest: within })
    }

    /// The split of `values[a][b]`, one value in each cell, such as means over seeds.
    ///
    /// `None` as for [`TwoWay::of`].
    #[must_use]
    pub fn without_replication(values: &[Vec<f64>]) -> Option<Self> {
        let cell = |row: &Vec<f64>| row.iter().map(|&value| vec![value]).collect();
        Self::of(&values.iter().map(cell).collect::<Vec<_>>())
    }

    /// The sum of squares around the grand mean.
    #[must_use]
    pub fn total(&self) -> f64 {
        self.a + self.b + self.interaction.unwrap_or(0.0) + self.rest
    }

    /// The first factor's share of the whole; not a number where nothing varies, as with the other shares.
    #[must_use]
    pub fn share_a(&self) -> f64 {
        self.a / self.total()
    }

    /// The second factor's share of the whole.
    #[must_use]
    pub fn share_b(&self) -> f64 {
        self.b / self.total()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Penicillin yields of Box, Hunter and Hunter, Statistics for Experimenters (1978), table 7.1: five blends, four
    /// treatments; sums of squares 264, 70 and 226.
    #[test]
    fn penicillin_without_replication() {
        let yields =
            [[89, 88, 97, 94], [84, 77, 92, 79], [81, 87, 87, 85], [87, 92, 89, 84], [79, 81, 80, 88]];
        let yields = yields.map(|row| row.map(f64::from).to_vec());
        let split = TwoWay::without_replication(&yields).unwrap();
        assert!((split.a - 264.0).abs() < 1e-9 && (split.b - 70.0).abs() < 1e-9, "{split:?}");
        assert!((split.rest - 226.0).abs() < 1e-9 && split.interaction.is_none(), "{split:?}");
        let shares = split.share_a() + split.share_b() + split.rest / split.total();
        assert!((shares - 1.0).abs() < 1e-12 && (split.share_b() - 0.125).abs() < 1e-12);
    }

    /// R's `ToothGrowth`: `anova(lm(len ~ supp * factor(dose), ToothGrowth))` gives the sums of squares 205.35,
    /// 2426.43, 108.32 and 712.11.
    #[test]
    fn teeth_with_replication() {
        let cells = [
            [
                [15.2, 21.5, 17.6, 9.7, 14.5, 10.0, 8.2, 9.4, 16.5, 9.7],
                [19.7, 23.3, 23.6, 26.4, 20.0, 25.2, 25.8, 21.2, 14.5, 27.3],
                [25.5, 26.4, 22.4, 24.5, 24.8, 30.9, 26.4, 27.3, 29.4, 23.0],
            ],
            [
                [4.2, 11.5, 7.3, 5.8, 6.4, 10.0, 11.2, 11.2, 5.2, 7.0],
                [16.5, 16.5, 15.2, 17.3, 22.5, 17.3, 13.6, 14.5, 18.8, 15.5],
                [23.6, 18.5, 33.9, 25.5, 26.4, 32.5, 26.7, 21.5, 23.3, 29.5],
            ],
        ];
        let split = TwoWay::of(&cells.map(|row| row.map(|cell| cell.to_vec()).to_vec())).unwrap();
        let sums = [split.a, split.b, split.interaction.unwrap(), split.rest];
        for (sum, expected) in sums.into_iter().zip([205.35, 2426.43, 108.32, 712.11]) {
            assert!((sum - expected).abs() < 0.01, "{split:?}");
        }
    }

    #[test]
    fn a_layout_must_be_whole() {
        assert_eq!(TwoWay::without_replication(&[vec![1.0, 2.0], vec![3.0]]), None);
        assert_eq!(TwoWay::without_replication(&[vec![1.0, 2.0]]), None);
        assert_eq!(TwoWay::without_replication(&[]), None);
        assert_eq!(TwoWay::of(&[vec![vec![], vec![]], vec![vec![], vec![]]]), None);
    }
}
