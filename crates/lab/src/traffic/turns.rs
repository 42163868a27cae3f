//! Whose turn it is: applications of a host that open their connections only when others of it have ended.

use rustc_hash::FxHashMap;

/// Applications, by their numbers at their host, that wait for the ends of others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Turn {
    /// Those that have to end, one at least.
    pub before: Vec<usize>,
    /// Those that wait for all of them; nobody waits in two turns.
    pub behind: Vec<usize>,
}

/// All turns of a host.
#[derive(Clone, Debug, Default)]
pub struct Turns {
    /// How many each turn still waits for, and who waits.
    left: Vec<(usize, Vec<usize>)>,
    /// The turns that wait for an application, until it ends.
    awaited: FxHashMap<usize, Vec<usize>>,
}

impl Turns {
    /// These turns, of which none has begun.
    #[must_use]
    pub fn new(turns: Vec<Turn>) -> Self {
        let mut all = Self::default();
        for (number, turn) in turns.into_iter().enumerate() {
            for &application in &turn.before {
                all.awaited.entry(application).or_default().push(number);
            }
            all.left.push((turn.before.len(), turn.behind));
        }
        all
    }

    /// An application has ended; those whose turn it is now.
    pub fn on_ended(&mut self, application: usize) -> Vec<usize> {
        let mut begun = Vec::new();
        // That it ends again says nothing new.
        for number in self.awaited.remove(&application).unwrap_or_default() {
            let (left, behind) = &mut self.left[number];
            *left -= 1;
            if *left == 0 {
                begun.append(behind);
            }
        }
        begun
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_begins_when_all_before_it_have_ended_once() {
        let mut turns = Turns::new(vec![
            Turn { before: vec![0, 1], behind: vec![2] },
            Turn { before: vec![1], behind: vec![3, 4] },
        ]);
        assert!(turns.on_ended(0).is_empty());
        assert!(turns.on_ended(0).is_empty());
        assert!(turns.on_ended(7).is_empty());
        assert_eq!(turns.on_ended(1), [2, 3, 4]);
        assert!(turns.on_ended(1).is_empty());
    }
}
