//! Work that takes long: on threads of its own, with Python free meanwhile, Ctrl-C heard and progress told.

use core::ops::ControlFlow;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use core::time::Duration;
use std::cell::RefCell;
use std::panic::{self, AssertUnwindSafe};
use std::sync::mpsc::RecvTimeoutError;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;

use pyo3::prelude::*;

use crate::errors::LonghaulError;

/// Time between two looks at signals and progress.
const PAUSE: Duration = Duration::from_millis(50);

/// What work tells of itself, and hears.
#[derive(Debug, Default)]
pub(crate) struct Monitor {
    is_over: AtomicBool,
    done: AtomicU64,
    all: AtomicU64,
}

thread_local! {
    /// The work that this thread does, where Python takes part in it.
    static CURRENT: RefCell<Option<Arc<Monitor>>> = const { RefCell::new(None) };
}

impl Monitor {
    /// So much more is to be done.
    pub(crate) fn add(&self, work: u64) {
        self.all.fetch_add(work, Ordering::Relaxed);
    }

    /// So much is done; whether to go on.
    pub(crate) fn advance(&self, work: u64) -> ControlFlow<()> {
        self.done.fetch_add(work, Ordering::Relaxed);
        match self.is_over.load(Ordering::Relaxed) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }

    fn tell(&self, py: Python<'_>, tell: Option<&Py<PyAny>>) -> PyResult<()> {
        let Some(tell) = tell else { return Ok(()) };
        let (done, all) = (self.done.load(Ordering::Relaxed), self.all.load(Ordering::Relaxed));
        tell.call1(py, (done, all)).map(|_| ())
    }
}

/// Whether the work of this thread has been interrupted.
pub(crate) fn is_interrupted() -> bool {
    CURRENT.with_borrow(|current| {
        current.as_ref().is_some_and(|monitor| monitor.is_over.load(Ordering::Relaxed))
    })
}

/// Ends the run of this thread with an error: machines of the lab know no errors of Python's.
pub(crate) fn abort(error: PyErr) -> ! {
    panic::resume_unwind(Box::new(error))
}

/// How work is done.
#[derive(Debug)]
pub(crate) struct Manner {
    /// Threads; none for one a core.
    pub(crate) jobs: Option<usize>,
    /// Whether controllers of Python take part. Then one thread does it all: only one can be in Python at a time.
    pub(crate) calls_python: bool,
    /// Is called with how much is done, and of how much.
    pub(crate) tell: Option<Py<PyAny>>,
}

/// Does `work`, and waits for it; what a signal's handler or `tell` raises ends it after the runs that have begun.
pub(crate) fn wait_for<T: Send>(
    py: Python<'_>,
    manner: &Manner,
    work: impl FnOnce(&Monitor) -> PyResult<T> + Send,
) -> PyResult<T> {
    let threads = if manner.calls_python { 1 } else { manner.jobs.unwrap_or(0) };
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    let pool = pool.map_err(|error| LonghaulError::new_err(error.to_string()))?;
    let monitor = Arc::new(Monitor::default());
    let (sender, receiver) = mpsc::channel();
    let receiver = Mutex::new(receiver);
    let calls_python = manner.calls_python;
    let alone = || {
        if !calls_python {
            return work(&monitor);
        }
        // A thread that Python knows need not be introduced at each call; between calls others have their turn.
        Python::attach(|py| {
            py.detach(|| {
                CURRENT.set(Some(Arc::clone(&monitor)));
                let result = work(&monitor);
                CURRENT.set(None);
                result
            })
        })
    };
    let result = thread::scope(|scope| {
        scope.spawn(move || sender.send(panic::catch_unwind(AssertUnwindSafe(|| pool.install(alone)))));
        let mut heard_of = None;
        loop {
            let wait = || receiver.lock().unwrap_or_else(PoisonError::into_inner).recv_timeout(PAUSE);
            match py.detach(wait) {
                Ok(result) => return heard_of.map_or(Ok(result), Err),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => unreachable!("the thread sends what came of it"),
            }
            let heard = py.check_signals().and_then(|()| monitor.tell(py, manner.tell.as_ref()));
            if let Err(error) = heard {
                monitor.is_over.store(true, Ordering::Relaxed);
                heard_of.get_or_insert(error);
            }
        }
    })?;
    monitor.tell(py, manner.tell.as_ref())?;
    raised(result)
}

/// Does work on this thread, in which controllers of Python may take part.
pub(crate) fn here<T>(work: impl FnOnce() -> PyResult<T>) -> PyResult<T> {
    raised(panic::catch_unwind(AssertUnwindSafe(work)))
}

/// What came of work, an error by which a controller ended it included.
fn raised<T>(result: thread::Result<PyResult<T>>) -> PyResult<T> {
    match result {
        Ok(result) => result,
        Err(thrown) => match thrown.downcast::<PyErr>() {
            Ok(error) => Err(*error),
            Err(thrown) => panic::resume_unwind(thrown),
        },
    }
}
