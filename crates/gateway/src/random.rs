//! Unpredictable bytes, handed to whatever needs them.

use core::fmt;

use base::random::Rng;
use ring::rand::{SecureRandom as _, SystemRandom};

/// A source of bytes.
pub struct Random(Box<dyn FnMut(&mut [u8]) + Send>);

impl Random {
    /// The system's source, fit for keys.
    ///
    /// # Panics
    /// Not here, but when drawn from, if the system has no random source.
    #[must_use]
    pub fn system() -> Self {
        let system = SystemRandom::new();
        Self(Box::new(move |bytes| system.fill(bytes).expect("the system has a random source")))
    }

    /// The same bytes for the same seed: for tests, never for keys.
    #[must_use]
    pub fn seeded(seed: u64) -> Self {
        let mut stream = Rng::named(seed, "gateway");
        Self(Box::new(move |bytes| bytes.fill_with(|| stream.bits() as u8)))
    }

    /// The next bytes.
    pub fn draw<const N: usize>(&mut self) -> [u8; N] {
        let mut bytes = [0; N];
        (self.0)(&mut bytes);
        bytes
    }
}

impl fmt::Debug for Random {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Random")
    }
}
