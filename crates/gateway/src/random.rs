//! The system's source of unpredictable bytes, fit for keys.

use ring::rand::{SecureRandom as _, SystemRandom};
use tunnel::random::{Entropy, Random};

/// The system's source.
#[must_use]
pub fn system() -> Random {
    Random::new(System(SystemRandom::new()))
}

struct System(SystemRandom);

impl Entropy for System {
    /// # Panics
    /// If the system has no random source.
    fn fill(&mut self, bytes: &mut [u8]) {
        self.0.fill(bytes).expect("the system has a random source");
    }
}
