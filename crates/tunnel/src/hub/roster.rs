//! Numbers that wait for something, each once, in the order in which they came.

use std::collections::VecDeque;

#[derive(Debug, Default)]
pub(super) struct Roster {
    waiting: VecDeque<u32>,
    is_waiting: Vec<bool>,
}

impl Roster {
    /// Adds a number, if it does not wait already.
    pub(super) fn push(&mut self, number: u32) {
        let at = number as usize;
        if at >= self.is_waiting.len() {
            self.is_waiting.resize(at + 1, false);
        }
        if !core::mem::replace(&mut self.is_waiting[at], true) {
            self.waiting.push_back(number);
        }
    }

    /// Takes a number out.
    pub(super) fn remove(&mut self, number: u32) {
        if let Some(is_waiting) = self.is_waiting.get_mut(number as usize)
            && core::mem::take(is_waiting)
        {
            self.waiting.retain(|waiting| *waiting != number);
        }
    }

    /// Who has waited longest.
    pub(super) fn first(&self) -> Option<u32> {
        self.waiting.front().copied()
    }

    /// Takes out who has waited longest; `None` if nobody waits.
    pub(super) fn pop(&mut self) -> Option<u32> {
        let number = self.waiting.pop_front()?;
        self.is_waiting[number as usize] = false;
        Some(number)
    }
}
