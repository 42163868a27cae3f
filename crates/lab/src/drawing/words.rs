//! Words at points of a figure, moved until none covers another.

use core::fmt::Write as _;

use super::sheet::FONT;
use super::tone::INK;
use crate::report::html::escape;

/// A word, and the point that it is about, in the units of the drawing.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Word {
    pub(super) text: String,
    pub(super) x: f64,
    pub(super) y: f64,
}

/// Where the middle of a word stands.
type Place = (f64, f64);

impl Word {
    fn width(&self) -> f64 {
        0.65 * FONT * self.text.chars().count() as f64
    }
}

/// How far a word is from its point, at least.
const DISTANCE: f64 = 1.6 * FONT;
/// The height of a word, with what it keeps free.
const HEIGHT: f64 = 1.15 * FONT;

/// A place for each word inside `left..right` and `top..bottom`: above its point, or as near to that as others leave room.
pub(super) fn places(words: &[Word], (left, right): (f64, f64), (top, bottom): (f64, f64)) -> Vec<Place> {
    let mut taken: Vec<(Place, f64)> = Vec::new();
    for word in words {
        let half = word.width() / 2.0;
        let inside = |x: f64| x.clamp(left + half, (right - half).max(left + half));
        let is_free = |&(x, y): &Place| {
            let is_apart = |&((its_x, its_y), its_half): &(Place, f64)| {
                (x - its_x).abs() > half + its_half + BESIDE || (y - its_y).abs() >= HEIGHT
            };
            (top + HEIGHT / 2.0..=bottom - HEIGHT / 2.0).contains(&y) && taken.iter().all(is_apart)
        };
        // Beside what stands right above a point rather than above that: its line would go through it.
        let row = |y: f64| {
            let sideways = |places: f64| (inside(word.x + places * (2.0 * half + 2.0 * BESIDE)), y);
            [0.0, -1.0, 1.0, -2.0, 2.0].map(sideways)
        };
        let above = (0..TRIES).flat_map(|times| row(word.y - DISTANCE - HEIGHT * f64::from(times)));
        let below = (0..TRIES).flat_map(|times| row(word.y + DISTANCE + HEIGHT * f64::from(times)));
        let place = above.chain(below).find(is_free).unwrap_or((inside(word.x), word.y - DISTANCE));
        taken.push((place, half));
    }
    taken.into_iter().map(|(place, _)| place).collect()
}

/// What is free beside a word.
const BESIDE: f64 = 3.0;
/// How many rows above a word's point, and how many below it, are tried.
const TRIES: u32 = 20;

/// Draws the words, each with a thin line to its point.
pub(super) fn draw(svg: &mut String, words: &[Word], places: &[Place]) {
    for (word, (x, y)) in words.iter().zip(places) {
        let near = if *y < word.y { y + 0.5 * FONT } else { y - 0.6 * FONT };
        let _ = write!(
            svg,
            "<line x1=\"{x:.1}\" y1=\"{near:.1}\" x2=\"{:.1}\" y2=\"{:.1}\" stroke=\"{INK}\" stroke-width=\"0.8\"/>\
             <text x=\"{x:.1}\" y=\"{:.1}\" font-size=\"{FONT}\" text-anchor=\"middle\">{}</text>",
            word.x,
            word.y,
            y + 0.35 * FONT,
            escape(&word.text)
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_one_place_do_not_cover_each_other() {
        let word = |text: &str, x, y| Word { text: text.to_owned(), x, y };
        let words = [
            word("E", 300.0, 100.0),
            word("I", 301.0, 102.0),
            word("at the edge", 399.0, 20.0),
            word("A", 50.0, 100.0),
        ];
        let places = places(&words, (0.0, 400.0), (0.0, 200.0));
        for (index, (word, (x, y))) in words.iter().zip(&places).enumerate() {
            let half = word.width() / 2.0;
            assert!(
                x - half >= 0.0 && x + half <= 400.0 && *y >= HEIGHT / 2.0 && *y <= 200.0,
                "{word:?} at {x}, {y}"
            );
            for (other, (its_x, its_y)) in words[..index].iter().zip(&places) {
                let is_apart = (x - its_x).abs() > half + other.width() / 2.0 || (y - its_y).abs() >= HEIGHT;
                assert!(is_apart, "{word:?} and {other:?}");
            }
        }
        assert_eq!(places[3], (50.0, 100.0 - DISTANCE), "alone, right above its point");
        assert!(places[2].1 > 20.0, "below, where there is no room above");
    }
}
