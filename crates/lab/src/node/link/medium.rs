//! Who hears whom on a link.

/// The ends that hear each end of a link, by their numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Medium {
    listeners: Box<[Box<[usize]>]>,
}

impl Medium {
    /// Two ends that hear each other.
    #[must_use]
    pub fn point_to_point() -> Self {
        Self::broadcast(2)
    }

    /// So many ends, each of which hears all others. Each has a line of its own, so they do not collide unless an
    /// [`Access`](channel::Access) that they share says so.
    #[must_use]
    pub fn broadcast(ends: usize) -> Self {
        let others = |end| (0..ends).filter(|other| *other != end).collect();
        Self { listeners: (0..ends).map(others).collect() }
    }

    /// One end that all others hear, and that hears each of them, as a hub and its terminals do: it is number 0.
    #[must_use]
    pub fn star(ends: usize) -> Self {
        let heard_by = |end| if end == 0 { (1..ends).collect() } else { [0].into() };
        Self { listeners: (0..ends).map(heard_by).collect() }
    }

    /// How many ends there are.
    #[must_use]
    pub fn ends(&self) -> usize {
        self.listeners.len()
    }

    /// The ends that hear an end, in their order.
    ///
    /// # Panics
    /// If there is no such end.
    #[must_use]
    pub fn listeners(&self, end: usize) -> &[usize] {
        &self.listeners[end]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_hears_itself() {
        let listeners = |medium: &Medium| {
            (0..medium.ends()).map(|end| medium.listeners(end).to_vec()).collect::<Vec<_>>()
        };
        assert_eq!(listeners(&Medium::point_to_point()), [[1], [0]]);
        assert_eq!(listeners(&Medium::broadcast(3)), [[1, 2], [0, 2], [0, 1]]);
        assert_eq!(listeners(&Medium::star(3)), [vec![1, 2], vec![0], vec![0]]);
    }
}
