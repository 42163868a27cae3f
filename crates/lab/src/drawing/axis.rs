//! Ticks: round numbers at equal distances, all written alike.

use std::sync::Arc;

use kuva::render::layout::{Layout, TickFormat};

use super::sheet::Size;

/// The least distance between ticks, in the drawing's units: their words need room.
const APART: [f64; 2] = [87.5, 42.5];

/// One axis of a chart.
#[derive(Clone, Debug, Default)]
pub(super) struct Axis {
    pub(super) label: String,
    pub(super) log: bool,
    /// What is shown, if that is told.
    pub(super) range: Option<(f64, f64)>,
}

/// Which of the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    X,
    Y,
}

impl Axis {
    pub(super) fn new(label: &str) -> Self {
        Self { label: label.to_owned(), ..Self::default() }
    }

    /// The layout with this axis, which shows `values`: from zero unless it is told otherwise.
    pub(super) fn apply(
        &self,
        side: Side,
        size: Size,
        values: impl Iterator<Item = f64>,
        layout: Layout,
    ) -> Layout {
        let layout = match side {
            Side::X => layout.with_x_label(self.label.clone()),
            Side::Y => layout.with_y_label(self.label.clone()),
        };
        if self.log {
            let format = TickFormat::Custom(Arc::new(short));
            let layout = match side {
                Side::X => layout.with_log_x().with_x_tick_format(format),
                Side::Y => layout.with_log_y().with_y_tick_format(format),
            };
            return match self.range {
                Some(range) => between(layout, side, range),
                None => layout,
            };
        }
        let (least, most) = values
            .filter(|value| value.is_finite())
            .fold((0.0, 0.0), |(least, most), value| (f64::min(least, value), f64::max(most, value)));
        let (from, to) = self.range.unwrap_or((least, most));
        let most = match side {
            Side::X => (size.plot_width() / APART[0]).max(4.0),
            Side::Y => (size.height / APART[1]).max(6.0),
        };
        let step = step(if to > from { to - from } else { 1.0 }, most);
        // Up to the next tick, unless it is told where to end.
        let range = self.range.unwrap_or_else(|| {
            let ends = ((from / step + TINY).floor() * step, (to / step - TINY).ceil() * step);
            if ends.1 > ends.0 { ends } else { (ends.0, ends.0 + step) }
        });
        let decimals = (-step.log10() - TINY).ceil().clamp(0.0, 9.0) as usize;
        let layout = between(layout, side, range);
        match side {
            Side::X => layout.with_x_tick_step(step).with_x_tick_format(TickFormat::Fixed(decimals)),
            Side::Y => layout.with_y_tick_step(step).with_y_tick_format(TickFormat::Fixed(decimals)),
        }
    }
}

/// What the quotient of two equal numbers may be off.
const TINY: f64 = 1e-9;

fn between(layout: Layout, side: Side, (from, to): (f64, f64)) -> Layout {
    match side {
        Side::X => layout.with_x_axis_min(from).with_x_axis_max(to),
        Side::Y => layout.with_y_axis_min(from).with_y_axis_max(to),
    }
}

/// The step between at most so many ticks over `span`: 1, 2 or 5 times a power of ten.
fn step(span: f64, most: f64) -> f64 {
    let wanted = span / most;
    let power = 10.0_f64.powi(wanted.log10().floor() as i32);
    let factor = [1.0, 2.0, 5.0, 10.0].into_iter().find(|factor| factor * power >= wanted * (1.0 - TINY));
    factor.unwrap_or(10.0) * power
}

/// A tick of a logarithmic axis: a plain number as long as that is short.
fn short(value: f64) -> String {
    if value == 0.0 || (1e-3..1e6).contains(&value.abs()) {
        // Without what the multiplication of a power of ten leaves behind its last digit.
        let text = format!("{value:.6}");
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        format!("{value:.0e}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_few() {
        for (span, expected) in
            [(1.0, 0.2), (0.7, 0.1), (0.5, 0.1), (483.0, 100.0), (131.0, 20.0), (60.0, 10.0), (6e-3, 1e-3)]
        {
            assert!((step(span, 8.0) / expected - 1.0).abs() < 1e-9, "{span}: {}", step(span, 8.0));
        }
    }

    #[test]
    fn ticks_of_one_axis_have_as_many_decimals_as_their_step() {
        let format = |range: (f64, f64)| {
            let axis = Axis { range: Some(range), ..Axis::new("x") };
            let layout =
                axis.apply(Side::X, Size::SCREEN, core::iter::empty(), Layout::new(range, (0.0, 1.0)));
            layout.x_tick_format.format(range.1)
        };
        assert_eq!(
            [(0.0, 5.0), (0.0, 1.0), (19.0, 29.0), (0.0, 0.04)].map(format),
            ["5", "1.0", "29", "0.040"]
        );
    }

    #[test]
    fn ticks_of_a_logarithmic_axis_are_all_written_alike() {
        let ticks = [0.1, 0.1 * 2.0, 0.5, 1.0, 2.0, 1000.0].map(short);
        assert_eq!(ticks, ["0.1", "0.2", "0.5", "1", "2", "1000"]);
        assert_eq!(short(1e-6), "1e-6");
    }
}
