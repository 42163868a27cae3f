//! Ctrl-C during long work: the first ends it in order, the second at once.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use signal_hook::iterator::Signals;

use crate::commands::outcome::complain;

/// Whether the user wants the work to end.
#[derive(Clone, Debug)]
pub(crate) struct Interruption(Arc<AtomicBool>);

impl Interruption {
    /// Takes over SIGINT and SIGTERM for the rest of the process, and says `notice` when the first of them comes.
    ///
    /// # Errors
    /// What the kernel says.
    pub(crate) fn watch(notice: &'static str) -> io::Result<Self> {
        let flag = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            // In this order, so that the first signal finds the flag unset.
            flag::register_conditional_shutdown(signal, i32::from(EXIT_CODE), Arc::clone(&flag))?;
            flag::register(signal, Arc::clone(&flag))?;
        }
        let mut signals = Signals::new([SIGINT, SIGTERM])?;
        std::thread::spawn(move || signals.forever().for_each(|_| complain(notice)));
        Ok(Self(flag))
    }

    /// Whether a signal has come.
    pub(crate) fn has_come(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// What shells say of a command that SIGINT ended.
pub(crate) const EXIT_CODE: u8 = 130;
