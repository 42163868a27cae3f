//! Lines of an endpoint: their numbers, what each may be used for, and what was sent over each.
//!
//! On one line frames come in the order in which they left, or nearly so, and that is what tells a lost one: a report says what had come when
//! some later transmission had. Over several lines there is no such order, so each counts its own transmissions, a report names the newest that
//! has come over each, and nothing is taken for lost because of what came over another line.

use base::{Duration, Rate};

use crate::treatment::Treatment;

/// Lines of an endpoint at most.
pub const MAX_LINES: usize = 8;

/// A line of an endpoint, the same at both ends. The first is 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct LineId(u8);

impl LineId {
    /// The only line of most endpoints.
    pub const FIRST: Self = Self(0);

    /// The line with this number; `None` from [`MAX_LINES`] on.
    #[must_use]
    pub const fn new(number: u8) -> Option<Self> {
        if (number as usize) < MAX_LINES { Some(Self(number)) } else { None }
    }

    /// Its number.
    #[must_use]
    pub const fn number(self) -> u8 {
        self.0
    }

    pub(crate) const fn at(self) -> usize {
        self.0 as usize
    }
}

/// When a line is used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum When {
    /// Whenever that is of use.
    #[default]
    Always,
    /// Only while the others have been too little for what waits for some time, or have fallen silent: it costs something.
    Metered,
    /// Only while all others are silent.
    Backup,
}

impl When {
    /// Of a line that is metered, or kept for bad times.
    #[must_use]
    pub const fn of(metered: bool, backup: bool) -> Self {
        match (metered, backup) {
            (_, true) => Self::Backup,
            (true, false) => Self::Metered,
            (false, false) => Self::Always,
        }
    }
}

/// Some treatments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Treatments(u8);

impl Treatments {
    /// All of them.
    pub const ALL: Self = Self::of(&Treatment::ALL);

    /// These.
    #[must_use]
    pub const fn of(treatments: &[Treatment]) -> Self {
        let (mut bits, mut at) = (0, 0);
        while at < treatments.len() {
            bits |= 1 << treatments[at] as u8;
            at += 1;
        }
        Self(bits)
    }

    /// A bit for each.
    #[must_use]
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// Those of these bits; bits of none say nothing.
    #[must_use]
    pub const fn of_bits(bits: u8) -> Self {
        Self(bits & Self::ALL.0)
    }

    /// Those that are in both.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Whether a treatment is among them.
    #[must_use]
    pub const fn contains(self, treatment: Treatment) -> bool {
        self.0 & 1 << treatment as u8 != 0
    }
}

/// What is known of a line, and what it may be used for.
#[derive(Clone, Copy, Debug)]
pub struct LineTerms {
    /// What it carries.
    pub rate: Rate,
    /// How long a frame is under way. The same unknown amount more on all lines matters to nobody.
    pub delay: Duration,
    /// When it is used.
    pub when: When,
    /// What may go over it. What may go over no line waits.
    pub carries: Treatments,
}

impl LineTerms {
    /// Those of a line that is used for everything.
    #[must_use]
    pub const fn new(rate: Rate, delay: Duration) -> Self {
        Self { rate, delay, when: When::Always, carries: Treatments::ALL }
    }
}

/// Which line a frame goes over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Over {
    /// The only one.
    Only,
    /// One of several: frames say what was heard over the others.
    OneOf(LineId),
}

impl Over {
    pub(crate) const fn line(self) -> LineId {
        match self {
            Self::Only => LineId::FIRST,
            Self::OneOf(line) => line,
        }
    }
}

/// For each line a number, such as the newest transmission that has been heard of.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PerLine {
    count: u8,
    of: [u64; MAX_LINES],
}

impl PerLine {
    /// Of the first line alone.
    pub(crate) fn first(number: u64) -> Self {
        let mut of = [0; MAX_LINES];
        of[0] = number;
        Self { count: 1, of }
    }

    pub(crate) const fn of(&self, line: LineId) -> u64 {
        self.of[line.at()]
    }

    /// Sets it for a line, which there is from now on.
    pub(crate) fn set(&mut self, line: LineId, number: u64) {
        self.count = self.count.max(line.0 + 1);
        self.of[line.at()] = number;
    }

    /// Every line that there is, with its number.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (LineId, u64)> {
        (0..self.count).zip(&self.of).map(|(number, of)| (LineId(number), *of))
    }
}

/// A frame's leaving over a line: its serial there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Transmission {
    pub(crate) line: LineId,
    pub(crate) serial: u64,
}

#[cfg(test)]
impl Transmission {
    /// Over the first line.
    pub(crate) const fn first(serial: u64) -> Self {
        Self { line: LineId::FIRST, serial }
    }
}
