//! A ring of bytes that takes memory only as far as it was ever filled.

use core::cell::RefCell;
use core::fmt;

/// A window of bytes that slides forward. Positions count from its head.
pub(crate) struct Ring {
    bytes: Box<[u8]>,
    /// Below 2^30, as all buffers are.
    head: u32,
    /// Bytes that it may grow by.
    allowance: u32,
}

impl Default for Ring {
    fn default() -> Self {
        Self { bytes: Box::default(), head: 0, allowance: u32::MAX }
    }
}

impl Ring {
    /// Bytes of memory that it takes.
    pub(crate) const fn memory(&self) -> usize {
        self.bytes.len()
    }

    /// The host has so many bytes of memory left for it; [`SMALLEST`] are always granted.
    pub(crate) fn set_allowance(&mut self, bytes: usize) {
        self.allowance = u32::try_from(bytes).unwrap_or(u32::MAX);
    }

    /// Positions that it can have within a limit.
    pub(crate) const fn most(&self, limit: usize) -> usize {
        let size = if self.bytes.len() > SMALLEST { self.bytes.len() } else { SMALLEST };
        let size = size.saturating_add(self.allowance as usize);
        if size < limit { size } else { limit }
    }

    /// Makes positions below `len` usable, of which the first `used` hold data, within a ring of at most `limit` bytes.
    pub(crate) fn reserve(&mut self, used: usize, len: usize, limit: usize) {
        if len > self.bytes.len() {
            self.grow(used, len, limit);
        }
    }

    #[cold]
    fn grow(&mut self, used: usize, len: usize, limit: usize) {
        let size = len.max(2 * self.bytes.len()).max(SMALLEST).min(limit.max(len));
        let mut grown = spare_of(size).unwrap_or_else(|| vec![0; size].into_boxed_slice());
        let (first, second) = self.slices(0, used);
        grown[..first.len()].copy_from_slice(first);
        grown[first.len()..used].copy_from_slice(second);
        (self.bytes, self.head) = (grown, 0);
    }

    /// Where position `at` lies.
    fn index(&self, at: usize) -> usize {
        let index = self.head as usize + at;
        if index >= self.bytes.len() { index - self.bytes.len() } else { index }
    }

    /// The bytes at positions `at..at + len`, in two pieces where they wrap.
    pub(crate) fn slices(&self, at: usize, len: usize) -> (&[u8], &[u8]) {
        let start = self.index(at);
        match self.bytes.get(start..start + len) {
            Some(whole) => (whole, &[]),
            None => {
                let first = &self.bytes[start..];
                (first, &self.bytes[..len - first.len()])
            }
        }
    }

    /// The bytes at positions `at..at + len` to write to, in two pieces where they wrap.
    pub(crate) fn slices_mut(&mut self, at: usize, len: usize) -> (&mut [u8], &mut [u8]) {
        let start = self.index(at);
        let (front, back) = self.bytes.split_at_mut(start);
        if len <= back.len() {
            (&mut back[..len], &mut [])
        } else {
            let wrapped = len - back.len();
            (back, &mut front[..wrapped])
        }
    }

    /// Copies `data` to position `at`.
    pub(crate) fn write(&mut self, at: usize, data: &[u8]) {
        let (first, second) = self.slices_mut(at, data.len());
        let (head, tail) = data.split_at(first.len());
        first.copy_from_slice(head);
        second.copy_from_slice(tail);
    }

    /// Moves the head forward by `count` positions.
    pub(crate) fn advance(&mut self, count: usize) {
        self.head = if self.bytes.is_empty() { 0 } else { self.index(count) as u32 };
    }

    /// Gives the memory back, unless it is little; only for an empty ring. One that fills and empties in small steps lends the smallest piece of
    /// memory to the thread's other rings meanwhile: of thousands of connections few hold data, and those find it in the cache.
    pub(crate) fn rest(&mut self) {
        if self.bytes.len() < SMALLEST {
            return;
        }
        let bytes = core::mem::take(&mut self.bytes);
        self.head = 0;
        if bytes.len() == SMALLEST {
            // Err only while the thread ends.
            let _ = SPARE.try_with(|spare| {
                let mut spare = spare.borrow_mut();
                if spare.len() < SPARE_KEPT {
                    spare.push(bytes);
                }
            });
        }
    }

    /// Gives the memory back; only for an empty ring.
    pub(crate) fn release(&mut self) {
        *self = Self { allowance: self.allowance, ..Self::default() };
    }
}

impl fmt::Debug for Ring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Ring({} bytes)", self.bytes.len())
    }
}

/// Bytes of the first allocation, which needs no allowance.
pub(crate) const SMALLEST: usize = 4096;

/// Spare pieces that a thread keeps: 1 MiB.
const SPARE_KEPT: usize = 256;

thread_local! {
    /// Pieces of [`SMALLEST`] bytes. What is in them was somebody's data; a ring reads only what was written to it.
    static SPARE: RefCell<Vec<Box<[u8]>>> = const { RefCell::new(Vec::new()) };
}

fn spare_of(size: usize) -> Option<Box<[u8]>> {
    if size != SMALLEST {
        return None;
    }
    SPARE.try_with(|spare| spare.borrow_mut().pop()).ok().flatten()
}
