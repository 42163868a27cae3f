//! Bells: how a worker hears that there is something for it, while it waits for packets.

use std::io::{self, PipeReader, PipeWriter, Read as _, Write as _};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Readable from when it is rung until it is answered. Its clones are the same bell.
#[derive(Clone, Debug)]
pub(super) struct Bell(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    is_rung: AtomicBool,
    /// Holds a byte while it is rung.
    pipe: (PipeReader, PipeWriter),
}

impl Bell {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self(Arc::new(Shared { is_rung: AtomicBool::new(false), pipe: io::pipe()? })))
    }

    /// Rings it, after something was left for whoever answers it. The kernel is asked only if it was silent: however much is left between
    /// two answers costs one call.
    pub(super) fn ring(&self) {
        if !self.0.is_rung.swap(true, Ordering::AcqRel) {
            // The pipe is empty, so there is room.
            let _ = (&self.0.pipe.1).write(&[0]);
        }
    }

    /// Silences it, before what was left is taken; only while it is readable.
    pub(super) fn answer(&self) {
        let _ = (&self.0.pipe.0).read(&mut [0]);
        // Whoever leaves something from now on rings again; what was left before is seen after this.
        self.0.is_rung.swap(false, Ordering::AcqRel);
    }
}

impl AsFd for Bell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.pipe.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use base::Duration;

    use super::*;
    use crate::readiness::{Interest, wait};

    fn is_rung(bell: &Bell) -> bool {
        wait([Interest::read(bell.as_fd())], Some(Duration::ZERO)).unwrap()[0].read
    }

    #[test]
    fn a_bell_rings_once_until_it_is_answered() {
        let bell = Bell::new().unwrap();
        assert!(!is_rung(&bell));
        for _ in 0..3 {
            // More often than the pipe has room for.
            (0..100_000).for_each(|_| bell.ring());
            assert!(is_rung(&bell));
            bell.answer();
            assert!(!is_rung(&bell));
        }
    }

    /// Whatever the two threads do at the same time, nothing is left that nobody is told of.
    #[test]
    fn nothing_is_left_unheard() {
        const COUNT: u32 = 100_000;
        let bell = Bell::new().unwrap();
        let (sender, receiver) = mpsc::sync_channel(16);
        let ringing = bell.clone();
        let thread = std::thread::spawn(move || {
            for number in 0..COUNT {
                sender.send(number).unwrap();
                ringing.ring();
            }
        });
        let mut next = 0;
        while next < COUNT {
            let ready = wait([Interest::read(bell.as_fd())], Some(Duration::from_secs(60))).unwrap();
            assert!(ready[0].read, "{next} of {COUNT} were heard of");
            bell.answer();
            while let Ok(number) = receiver.try_recv() {
                assert_eq!(number, next);
                next += 1;
            }
        }
        thread.join().unwrap();
    }
}
