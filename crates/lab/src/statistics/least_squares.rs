//! Ordinary least squares of one predictor.

use serde::Serialize;

use super::mean;

/// The line that leaves the least sum of squared residuals.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct LinearFit {
    /// By how much y grows with each unit of x.
    pub slope: f64,
    /// y at x = 0.
    pub intercept: f64,
    /// The part of y's variance that the line explains; 1 where y does not vary.
    pub r_squared: f64,
    /// The sum of squared residuals.
    pub residual_sum: f64,
    /// Points.
    pub n: usize,
}

impl LinearFit {
    /// The line through points (x, y); `None` of fewer than two points or where x does not vary.
    ///
    /// Another shape that is linear in its coefficients is a line over a transformed x: for a + b / (1 - x) give
    /// 1 / (1 - x).
    #[must_use]
    pub fn of(points: &[(f64, f64)]) -> Option<Self> {
        let x: Vec<f64> = points.iter().map(|point| point.0).collect();
        let y: Vec<f64> = points.iter().map(|point| point.1).collect();
        let (mean_x, mean_y) = (mean(&x)?, mean(&y)?);
        let around = || points.iter().map(|(x, y)| (x - mean_x, y - mean_y));
        let squares_x: f64 = around().map(|(x, _)| x * x).sum();
        let squares_y: f64 = around().map(|(_, y)| y * y).sum();
        let products: f64 = around().map(|(x, y)| x * y).sum();
        if squares_x <= 0.0 {
            return None;
        }
        let slope = products / squares_x;
        let residual_sum: f64 = around().map(|(x, y)| (y - slope * x) * (y - slope * x)).sum();
        let r_squared = if squares_y > 0.0 { 1.0 - residual_sum / squares_y } else { 1.0 };
        Some(Self { slope, intercept: mean_y - slope * mean_x, r_squared, residual_sum, n: points.len() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// NIST Statistical Reference Datasets, linear regression, Norris: (y, x), and the certified values.
    #[rustfmt::skip]
    const NORRIS: [(f64, f64); 36] = [
        (0.1, 0.2), (338.8, 337.4), (118.1, 118.2), (888.0, 884.6), (9.2, 10.1), (228.1, 226.5),
        (668.5, 666.3), (998.5, 996.3), (449.1, 448.6), (778.9, 777.0), (559.2, 558.2), (0.3, 0.4),
        (0.1, 0.6), (778.1, 775.5), (668.8, 666.9), (339.3, 338.0), (448.9, 447.5), (10.8, 11.6),
        (557.7, 556.0), (228.3, 228.1), (998.0, 995.8), (888.8, 887.6), (119.6, 120.2), (0.3, 0.3),
        (0.6, 0.3), (557.6, 556.8), (339.3, 339.1), (888.0, 887.2), (998.5, 999.0), (778.9, 779.0),
        (10.2, 11.1), (117.6, 118.3), (228.9, 229.2), (668.4, 669.1), (449.2, 448.9), (0.2, 0.5),
    ];

    #[test]
    fn norris_comes_out_as_certified() {
        let fit = LinearFit::of(&NORRIS.map(|(y, x)| (x, y))).unwrap();
        assert!((fit.intercept + 0.262_323_073_774_029).abs() < 1e-10, "{fit:?}");
        assert!((fit.slope - 1.002_116_818_020_45).abs() < 1e-12, "{fit:?}");
        assert!((fit.residual_sum - 26.617_398_529_422_4).abs() < 1e-9, "{fit:?}");
        assert!((fit.r_squared - 0.999_993_745_883_712).abs() < 1e-12, "{fit:?}");
    }

    #[test]
    fn a_line_needs_two_places() {
        assert_eq!(LinearFit::of(&[(1.0, 2.0), (1.0, 3.0)]), None);
        assert_eq!(LinearFit::of(&[]), None);
        assert_eq!(LinearFit::of(&[(0.0, 5.0), (1.0, 5.0)]).unwrap().r_squared, 1.0);
    }
}
