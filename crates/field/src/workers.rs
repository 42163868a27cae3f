//! Threads that do pieces of work which mostly wait, some at a time.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use base::Duration;

use crate::testbed::TestbedError;
use gateway::clock::sleep;
use gateway::signals::Signals;

/// How often to look for signals and results.
const LOOK: Duration = Duration::from_millis(50);

/// Has `work` done for every case, `jobs` at a time; the results come in the order of the cases, and `progress` hears
/// of each when it is there. `work` gets the case's number, and a flag that tells it to end early.
///
/// # Errors
/// The first case's that fails, or [`TestbedError::Interrupted`]; the others are told to end.
pub(crate) fn carry_out<C: Sync, R: Send>(
    cases: &[C],
    jobs: usize,
    signals: &mut Signals,
    work: impl Fn(&C, usize, &AtomicBool) -> Result<R, TestbedError> + Sync,
    mut progress: impl FnMut(&R),
) -> Result<Vec<R>, TestbedError> {
    let (next, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
    let done = Mutex::new(Vec::new());
    let take_turns = || {
        while !stop.load(Ordering::Relaxed) {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(case) = cases.get(number) else { return };
            let result = work(case, number, &stop);
            if result.is_err() {
                stop.store(true, Ordering::Relaxed);
            }
            lock(&done).push((number, result));
        }
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..jobs.max(1)).map(|_| scope.spawn(take_turns)).collect();
        let (mut interrupted, mut told) = (false, 0);
        while workers.iter().any(|worker| !worker.is_finished()) {
            if signals.received() {
                interrupted = true;
                stop.store(true, Ordering::Relaxed);
            }
            for (_, result) in &lock(&done)[told..] {
                told += 1;
                if let Ok(result) = result {
                    progress(result);
                }
            }
            sleep(LOOK);
        }
        lock(&done)[told..].iter().filter_map(|(_, result)| result.as_ref().ok()).for_each(&mut progress);
        if interrupted { Err(TestbedError::Interrupted) } else { Ok(()) }
    })?;
    let mut done = std::mem::take(&mut *lock(&done));
    // What failed before what was told to end because of it.
    if let Some(at) = done.iter().position(|(_, result)| result.is_err()) {
        return done.swap_remove(at).1.map(|_| Vec::new());
    }
    done.sort_by_key(|(number, _)| *number);
    done.into_iter().map(|(_, result)| result).collect()
}

/// What the mutex holds, also after a thread has panicked.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
