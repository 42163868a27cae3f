//! What is read off a measured curve: where it crosses a level, and where it is highest.
//!
//! Curves are points (x, y) in ascending x.

/// The first x at which the curve reaches `level`, from below or from above, by linear interpolation.
///
/// For two curves over the same x, give their difference and the level 0. `None` if the level is never reached.
#[must_use]
pub fn crossing(points: &[(f64, f64)], level: f64) -> Option<f64> {
    if let Some(&(x, y)) = points.first()
        && y == level
    {
        return Some(x);
    }
    points.windows(2).find_map(|pair| {
        let [(x0, y0), (x1, y1)] = [pair[0], pair[1]];
        let crosses = (y0 < level && y1 >= level) || (y0 > level && y1 <= level);
        crosses.then(|| x0 + (level - y0) / (y1 - y0) * (x1 - x0))
    })
}

/// The height of the curve at `x` by linear interpolation; beyond its ends that of the end. `None` of no points.
#[must_use]
pub fn interpolate(points: &[(f64, f64)], x: f64) -> Option<f64> {
    let after = points.partition_point(|point| point.0 < x);
    match (after.checked_sub(1).map(|before| points[before]), points.get(after).copied()) {
        (Some((x0, y0)), Some((x1, y1))) => Some(y0 + (x - x0) / (x1 - x0) * (y1 - y0)),
        (end, other) => end.or(other).map(|point| point.1),
    }
}

/// The centred running mean over `width` values, an odd number; at the ends over those that there are.
///
/// # Panics
/// If `width` is even.
#[must_use]
pub fn running_mean(values: &[f64], width: usize) -> Vec<f64> {
    assert!(width % 2 == 1, "a centred mean has an odd width, not {width}");
    let reach = width / 2;
    let around = |place: usize| {
        let window = &values[place.saturating_sub(reach)..(place + reach + 1).min(values.len())];
        window.iter().sum::<f64>() / window.len() as f64
    };
    (0..values.len()).map(around).collect()
}

/// The x of the highest point, the first of several; `None` of no points.
#[must_use]
pub fn argmax(points: &[(f64, f64)]) -> Option<f64> {
    highest(points.iter().map(|point| point.1)).map(|place| points[place].0)
}

/// Where a noisy curve over positive, roughly geometrically spaced x is highest; `None` of no points.
///
/// The smoother: y becomes its [`running_mean`] over three points; through the largest of these and its two
/// neighbours goes a parabola in ln x, and the answer is its vertex. Where the largest is the first or the last
/// point, the answer is that point's x: the curve has no maximum inside.
///
/// # Panics
/// If an x is not positive.
#[must_use]
pub fn smoothed_argmax(points: &[(f64, f64)]) -> Option<f64> {
    assert!(points.iter().all(|point| point.0 > 0.0), "a logarithmic axis needs positive places");
    let smooth = running_mean(&points.iter().map(|point| point.1).collect::<Vec<_>>(), 3);
    let place = highest(smooth.iter().copied())?;
    if place == 0 || place + 1 == points.len() {
        return Some(points[place].0);
    }
    let log = |k: usize| libm::log(points[k].0);
    let (left, right) = (log(place - 1) - log(place), log(place + 1) - log(place));
    let (fall_left, fall_right) = (smooth[place] - smooth[place - 1], smooth[place] - smooth[place + 1]);
    // The vertex of the parabola through (left, -fall_left), (0, 0), (right, -fall_right).
    let bend = fall_left * right - fall_right * left;
    if bend <= 0.0 {
        return Some(points[place].0);
    }
    let vertex = 0.5 * (fall_left * right * right - fall_right * left * left) / bend;
    Some(points[place].0 * libm::exp(vertex))
}

fn highest(values: impl Iterator<Item = f64>) -> Option<usize> {
    let larger = |best: Option<(usize, f64)>, (place, value): (usize, f64)| match best {
        Some((_, most)) if value <= most => best,
        _ => Some((place, value)),
    };
    values.enumerate().fold(None, larger).map(|(place, _)| place)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_is_crossed_from_both_sides() {
        let curve = [(0.0, 0.0), (1.0, 4.0), (3.0, 0.0)];
        assert_eq!(crossing(&curve, 1.0), Some(0.25));
        assert_eq!(crossing(&curve[1..], 1.0), Some(2.5));
        assert_eq!(crossing(&curve, 0.0), Some(0.0));
        assert_eq!(crossing(&curve, 4.0), Some(1.0));
        assert_eq!((crossing(&curve, 5.0), crossing(&[], 0.0)), (None, None));
    }

    #[test]
    fn a_height_is_read_off_between_the_points_and_held_beyond_them() {
        let curve = [(1.0, 0.0), (2.0, 4.0), (4.0, 2.0)];
        let heights = [0.0, 1.0, 1.5, 2.0, 3.0, 9.0].map(|x| interpolate(&curve, x));
        assert_eq!(heights, [0.0, 0.0, 2.0, 4.0, 3.0, 2.0].map(Some));
        assert_eq!(interpolate(&[], 1.0), None);
    }

    #[test]
    fn a_running_mean_shrinks_at_the_ends() {
        assert_eq!(running_mean(&[3.0, 6.0, 0.0, 9.0], 3), [4.5, 3.0, 5.0, 4.5]);
        assert_eq!(running_mean(&[3.0, 6.0], 1), [3.0, 6.0]);
        assert_eq!(running_mean(&[1.0, 2.0, 3.0], 5), [2.0, 2.0, 2.0]);
    }

    /// On a geometric grid the running mean lowers a parabola in ln x by the same amount everywhere inside, so the
    /// vertex is exact.
    #[test]
    fn the_vertex_of_a_parabola_in_the_logarithm_is_found() {
        for vertex in [0.5, 0.87, 1.3, 2.2] {
            let height = |x: f64| 5.0 - libm::pow(libm::log(x / vertex), 2.0);
            let points = (-8..=8).map(|k| libm::pow(2.0, f64::from(k) / 4.0)).map(|x| (x, height(x)));
            let points: Vec<_> = points.collect();
            let found = smoothed_argmax(&points).unwrap();
            assert!((found / vertex - 1.0).abs() < 1e-12, "{vertex}: {found}");
        }
    }

    #[test]
    fn one_outlier_does_not_move_the_maximum_far() {
        let mut points: Vec<_> =
            (0..9).map(|k| (libm::pow(2.0, f64::from(k)), -f64::from((k - 6) * (k - 6)))).collect();
        points[1].1 = 1.0;
        assert_eq!(argmax(&points), Some(2.0));
        assert!((smoothed_argmax(&points).unwrap() - 64.0).abs() < 1e-9);
    }

    #[test]
    fn a_curve_that_only_falls_peaks_at_its_first_point() {
        let points = [(1.0, 3.0), (2.0, 2.0), (4.0, 1.0)];
        assert_eq!((smoothed_argmax(&points), argmax(&points)), (Some(1.0), Some(1.0)));
        assert_eq!((smoothed_argmax(&[]), smoothed_argmax(&[(3.0, 1.0)])), (None, Some(3.0)));
        assert_eq!(smoothed_argmax(&[(1.0, 2.0), (2.0, 2.0), (4.0, 2.0)]), Some(1.0));
    }
}
