//! Unpredictable bytes, handed to whatever needs them.

use base::random::Rng;
use ring::rand::{SecureRandom as _, SystemRandom};

/// A source of bytes.
#[derive(Debug)]
pub struct Random(Source);

#[derive(Debug)]
enum Source {
    System(SystemRandom),
    Seeded(Box<Rng>),
}

impl Random {
    /// The system's source, fit for keys.
    #[must_use]
    pub fn system() -> Self {
        Self(Source::System(SystemRandom::new()))
    }

    /// The same bytes for the same seed: for tests, never for keys.
    #[must_use]
    pub fn seeded(seed: u64) -> Self {
        Self(Source::Seeded(Box::new(Rng::named(seed, "gateway"))))
    }

    /// The next bytes.
    ///
    /// # Panics
    /// If the system has no random source.
    pub fn draw<const N: usize>(&mut self) -> [u8; N] {
        let mut bytes = [0; N];
        match &mut self.0 {
            Source::System(system) => system.fill(&mut bytes).expect("the system has a random source"),
            Source::Seeded(stream) => bytes.fill_with(|| stream.bits() as u8),
        }
        bytes
    }
}
