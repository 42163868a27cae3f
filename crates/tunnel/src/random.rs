//! Unpredictable bytes, handed to whatever needs them.

use core::fmt;

use base::random::Rng;

/// Where unpredictable bytes come from: the system, outside tests and the lab.
pub trait Entropy: Send {
    /// Fills `bytes`.
    fn fill(&mut self, bytes: &mut [u8]);
}

/// A source of bytes.
pub struct Random(Box<dyn Entropy>);

impl Random {
    /// Bytes from `source`.
    #[must_use]
    pub fn new(source: impl Entropy + 'static) -> Self {
        Self(Box::new(source))
    }

    /// A stream that depends on `seed` alone: for tests and the lab, never for real keys.
    #[must_use]
    pub fn seeded(seed: u64) -> Self {
        Self::new(Seeded(Rng::named(seed, "gateway")))
    }

    /// The next bytes.
    pub fn draw<const N: usize>(&mut self) -> [u8; N] {
        let mut bytes = [0; N];
        self.0.fill(&mut bytes);
        bytes
    }

    /// A seed for streams that need not be secret.
    pub fn seed(&mut self) -> u64 {
        u64::from_le_bytes(self.draw())
    }
}

impl fmt::Debug for Random {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Random")
    }
}

struct Seeded(Rng);

impl Entropy for Seeded {
    fn fill(&mut self, bytes: &mut [u8]) {
        bytes.fill_with(|| self.0.bits() as u8);
    }
}
