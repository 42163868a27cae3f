//! What a curve looks like: a colour, and a mark and dashes that tell it from others without colour.

use std::collections::BTreeMap;

use kuva::plot::scatter::MarkerShape;

use super::tone::{BOUND, COLOURS, INK, Tone};

/// What a curve looks like.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Look {
    pub(crate) colour: Tone,
    pub(crate) mark: MarkerShape,
    /// As SVG's `stroke-dasharray`; `None` for a solid line.
    pub(crate) dashes: Option<&'static str>,
}

const MARKS: [MarkerShape; 8] = [
    MarkerShape::Circle,
    MarkerShape::Square,
    MarkerShape::Triangle,
    MarkerShape::Diamond,
    MarkerShape::TriangleDown,
    MarkerShape::Cross,
    MarkerShape::Plus,
    MarkerShape::Star,
];

/// Solid first; no two look alike at the size of a legend.
const DASHES: [Option<&str>; 6] =
    [None, Some("9 4"), Some("2 3"), Some("9 3 2 3"), Some("16 4"), Some("5 2 1 2 1 2")];

impl Look {
    /// The look with this number. The first 64 are different, and the first eight have different colours.
    pub(crate) const fn numbered(number: usize) -> Self {
        let mark = MARKS[(number + number / COLOURS.len()) % MARKS.len()];
        Self { colour: COLOURS[number % COLOURS.len()], mark, dashes: DASHES[number % DASHES.len()] }
    }

    /// Of what is calculated, which has no marks: the physical bound, or one of several.
    pub(crate) const fn calculated(number: usize) -> Self {
        Self { colour: BOUND, mark: MarkerShape::Circle, dashes: DASHES[1 + number % (DASHES.len() - 1)] }
    }

    /// Of what stands beside what is measured, in the colour of words.
    pub(crate) const fn plain(mark: MarkerShape) -> Self {
        Self { colour: INK, mark, dashes: None }
    }

    /// The look of a scheme under other circumstances: this colour, with another mark and other dashes. Variant 0 is
    /// this look itself.
    pub(crate) fn varied(self, variant: usize) -> Self {
        let place = MARKS.iter().position(|mark| *mark == self.mark).unwrap_or_default();
        let dashes = DASHES.iter().position(|dashes| *dashes == self.dashes).unwrap_or_default();
        let (mark, dashes) =
            (MARKS[(place + variant) % MARKS.len()], DASHES[(dashes + variant) % DASHES.len()]);
        Self { mark, dashes, ..self }
    }
}

/// Gives each look a mark of its own, for what has no dashes: its own mark unless one before has it, or else the next free one.
/// Beyond as many looks as there are marks, marks come again.
pub(crate) fn tell_apart_by_mark(looks: &mut [Look]) {
    for place in 1..looks.len() {
        let (before, after) = looks.split_at_mut(place);
        let look = &mut after[0];
        let is_free = |mark: &MarkerShape| before.iter().all(|other| other.mark != *mark);
        let variants = (0..MARKS.len()).map(|variant| look.varied(variant).mark);
        look.mark = variants.into_iter().find(is_free).unwrap_or(look.mark);
    }
}

/// The looks of everything that has a name in a report, the same in all of its figures.
#[derive(Clone, Debug, Default)]
pub(crate) struct Looks {
    numbers: BTreeMap<String, usize>,
}

impl Looks {
    /// Looks for the names in `figures`, each with the names that stand in it. Names that stand in one figure get different
    /// colours as long as there are colours.
    pub(crate) fn of(figures: &[Vec<String>]) -> Self {
        let mut numbers: BTreeMap<String, usize> = BTreeMap::new();
        for name in figures.iter().flatten() {
            if numbers.contains_key(name) {
                continue;
            }
            let beside = figures.iter().filter(|names| names.contains(name)).flatten();
            let taken: Vec<usize> = beside.filter_map(|other| numbers.get(other).copied()).collect();
            let free = (0..).find(|number| !taken.contains(number)).unwrap_or_default();
            numbers.insert(name.clone(), free);
        }
        Self { numbers }
    }

    /// The look of a name; that of none is the first.
    pub(crate) fn look(&self, name: &str) -> Look {
        Look::numbered(self.numbers.get(name).copied().unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_alone_tell_looks_apart() {
        let looks = [0, 1].map(Look::numbered);
        // A variant of the first has the second's mark.
        let mut all = [looks[0], looks[0].varied(1), looks[1], looks[1].varied(1)];
        assert_eq!(all[1].mark, all[2].mark);
        tell_apart_by_mark(&mut all);
        for (place, look) in all.iter().enumerate() {
            assert!(all[..place].iter().all(|other| other.mark != look.mark), "{all:?}");
        }
        assert_eq!(all[0], looks[0]);
        let mut many = [looks[0]; 9];
        tell_apart_by_mark(&mut many);
        assert_eq!(many[8], looks[0], "no mark is left");
    }

    #[test]
    fn a_name_looks_the_same_in_all_figures_and_unlike_what_stands_beside_it() {
        let figures = [["a", "b", "c"], ["d", "c", "b"], ["e", "f", "a"]]
            .map(|names| names.map(str::to_owned).to_vec());
        let looks = Looks::of(&figures);
        for names in &figures {
            for (index, name) in names.iter().enumerate() {
                assert!(
                    names[..index].iter().all(|other| looks.look(other).colour != looks.look(name).colour),
                    "{names:?}"
                );
            }
        }
        assert_eq!(looks.look("d"), looks.look("a"), "never in one figure");
    }

    #[test]
    fn without_colour_looks_still_differ() {
        let marks: Vec<_> = (0..8).map(|number| Look::numbered(number).mark).collect();
        for (index, mark) in marks.iter().enumerate() {
            assert!(!marks[..index].contains(mark));
        }
        let looks: Vec<_> = (0..64).map(Look::numbered).collect();
        for (index, look) in looks.iter().enumerate() {
            assert!(!looks[..index].contains(look), "{index}");
            assert_ne!(look.varied(1), *look);
            assert_ne!(look.varied(1).dashes, look.varied(2).dashes);
        }
    }
}
